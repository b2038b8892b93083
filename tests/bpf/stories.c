// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stories.h"

#include <stdarg.h>
#include <string.h>

#include "../../bpf/rl_gcra.h"

const struct family families[2] = {
    {4, "203.0.113.0/24", "203.0.113.7", "203.0.113.8", "203.0.113.7", "198.51.100.7"},
    {6, "2001:db8::/32", "2001:db8:0:7::1", "2001:db8:0:8::1", "2001:db8:0:7::/64", "2001:db9::1"},
};

const char *const story_neighbours[2][3] = {
    {"198.51.100.1", "198.51.100.255", "198.51.101.1"},
    {"2001:db9:1:1::", "2001:db9:1:ffff::", "2001:db9:2:1::"},
};

struct fixture story_open(enum rl_store store)
{
	return fixture_open_with(&(struct fixture_options){.store = store});
}

bool story_has_bucket(const struct fixture *fx, const struct rl_limit *limit, const char *source)
{
	struct rl_source found;

	return fixture_source(fx, limit, source, &found);
}

void story_expect_at(int line, struct fixture *fx, const char *source, enum rl_reason reason,
		     const struct rl_limit *limit)
{
	struct rl_frame_spec spec = {.src = source, .len = STORY_LEN};
	const char *what = fx->what;

	if (!what)
		fx->what = source;
	fixture_expect_at(line, fx, &spec, reason, limit);
	fx->what = what;
}

void story_repeat_at(int line, struct fixture *fx, const char *source, int n, enum rl_reason reason,
		     const struct rl_limit *limit)
{
	for (int i = 0; i < n; i++)
		story_expect_at(line, fx, source, reason, limit);
}

void story_counted_at(int line, const struct fixture *fx, const struct rl_limit *limit, __u64 passed,
		      __u64 dropped, __u64 shadow)
{
	struct rl_limit_count count = fixture_limit_count(fx, limit);
	const char *what = fx->what ? fx->what : "-";

	cr_assert_eq(count.passed.packets, passed, "line %d, %s: %llu passed, expected %llu", line, what,
		     count.passed.packets, passed);
	cr_assert_eq(count.dropped.packets, dropped, "line %d, %s: %llu dropped, expected %llu", line, what,
		     count.dropped.packets, dropped);
	cr_assert_eq(count.shadow.packets, shadow, "line %d, %s: %llu shadow, expected %llu", line, what,
		     count.shadow.packets, shadow);
	cr_assert_eq(count.passed.bytes, STORY_LEN * passed, "line %d, %s", line, what);
	cr_assert_eq(count.dropped.bytes, STORY_LEN * dropped, "line %d, %s", line, what);
	cr_assert_eq(count.shadow.bytes, STORY_LEN * shadow, "line %d, %s", line, what);
}

__u64 story_reason(const struct fixture *fx, enum rl_reason reason)
{
	return fixture_device(fx).by_reason[reason].packets;
}

static struct rl_buckets buckets_of(const struct fixture *fx, const struct rl_limit *limit,
				    const char *source)
{
	struct rl_source found;

	cr_assert(fixture_source(fx, limit, source, &found), "%s has no bucket in slot %u", source,
		  limit->slot);
	return found.buckets;
}

struct ledger ledger_open(struct fixture *fx, const char *source, ...)
{
	struct ledger ledger = {.fx = fx, .source = source};
	const struct rl_limit *limit;
	va_list limits;

	va_start(limits, source);
	while ((limit = va_arg(limits, const struct rl_limit *))) {
		cr_assert(ledger.count < LEDGER_MAX);
		ledger.limit[ledger.count] = *limit;
		ledger.before[ledger.count++] = buckets_of(fx, limit, source);
	}
	va_end(limits);
	return ledger;
}

void ledger_same_at(int line, const struct ledger *ledger)
{
	for (int i = 0; i < ledger->count; i++) {
		struct rl_buckets now = buckets_of(ledger->fx, &ledger->limit[i], ledger->source);

		cr_assert_eq(memcmp(&now, &ledger->before[i], sizeof(now)), 0,
			     "line %d, %s: limit %d of the ledger was touched", line, ledger->source, i);
	}
}

void ledger_charged_at(int line, const struct ledger *ledger, int at, __u64 packets, __u64 bytes)
{
	const struct rl_limit *limit = &ledger->limit[at];
	struct rl_buckets now = buckets_of(ledger->fx, limit, ledger->source);
	const __u64 tokens[RL_UNITS] = {packets, bytes};

	for (int unit = 0; unit < RL_UNITS; unit++) {
		__u64 charged = now.word[unit] - ledger->before[at].word[unit];
		__u64 expected = rl_gcra_cost(&limit->rate[unit], tokens[unit]);

		if (!limit->rate[unit].mult)
			continue;
		cr_assert_eq(charged, expected, "line %d, %s: limit %d, unit %d: charged %llu, expected %llu",
			     line, ledger->source, at, unit, charged, expected);
	}
}
