// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "../../user/limit.h"
#include "../../user/target.h"
#include "../../user/units.h"
#include "rl_xdp.skel.h"
#include "tests/bpf/offer.skel.h"

#define CPUS_MAX 256
#define FEW                                                                                                  \
	4096 /* runs that are cheaper one by one: to repeat one, the kernel first waits for a grace period   \
	      */

struct counters {
	struct rl_device_count device;
	struct rl_limit_count limit[FIXTURE_LIMITS];
};

static const char *what(const struct fixture *fx)
{
	return fx->what ? fx->what : "-";
}

static int cpus(void)
{
	int n = libbpf_num_possible_cpus();

	cr_assert(n > 0 && n <= CPUS_MAX);
	return n;
}

static struct rl_device_count read_device(const struct fixture *fx, __u32 slot)
{
	static struct rl_device_count per_cpu[CPUS_MAX];
	struct rl_device_count sum = {};
	int n = cpus();

	cr_assert_eq(bpf_map_lookup_elem(bpf_map__fd(fx->skel->maps.rl_device_count), &slot, per_cpu), 0);
	for (int cpu = 0; cpu < n; cpu++) {
		for (int reason = 0; reason < RL_REASONS; reason++) {
			sum.by_reason[reason].packets += per_cpu[cpu].by_reason[reason].packets;
			sum.by_reason[reason].bytes += per_cpu[cpu].by_reason[reason].bytes;
		}
	}
	return sum;
}

static struct rl_limit_count read_limit(const struct fixture *fx, __u32 slot)
{
	static struct rl_limit_count per_cpu[CPUS_MAX];
	struct rl_limit_count sum = {};
	int n = cpus();

	cr_assert_eq(bpf_map_lookup_elem(bpf_map__fd(fx->skel->maps.rl_limit_count), &slot, per_cpu), 0);
	for (int cpu = 0; cpu < n; cpu++) {
		sum.passed.packets += per_cpu[cpu].passed.packets;
		sum.passed.bytes += per_cpu[cpu].passed.bytes;
		sum.dropped.packets += per_cpu[cpu].dropped.packets;
		sum.dropped.bytes += per_cpu[cpu].dropped.bytes;
	}
	return sum;
}

static void read_counters(const struct fixture *fx, struct counters *out)
{
	out->device = read_device(fx, FIXTURE_DEVICE);
	for (__u32 i = 0; i < fx->next; i++)
		out->limit[i] = read_limit(fx, FIXTURE_FIRST_SLOT + i);
}

struct fixture fixture_open(void)
{
	return fixture_open_with(&(struct fixture_options){});
}

struct fixture fixture_open_with(const struct fixture_options *options)
{
	struct fixture fx = {.limits = calloc(FIXTURE_LIMITS, sizeof(*fx.limits))};

	if (geteuid())
		cr_skip_test("loading BPF programs needs root");
	cr_assert_not_null(fx.limits);
	fx.skel = rl_xdp__open();
	cr_assert_not_null(fx.skel, "the skeleton doesn't open");
	fx.skel->rodata->rl_clock_given = true;
	fx.skel->rodata->rl_device_slot = FIXTURE_DEVICE;
	rl_limit_nd(&fx.skel->bss->rl_nd_limit);
	bpf_map__set_max_entries(fx.skel->maps.rl_sources,
				 options->max_sources ? options->max_sources : FIXTURE_MAX_SOURCES);
	/* An array of 65536 per-CPU counters takes the kernel most of a second to make. */
	bpf_map__set_max_entries(fx.skel->maps.rl_limit_count, FIXTURE_FIRST_SLOT + FIXTURE_LIMITS);
	if (options->fixed_table)
		bpf_map__set_type(fx.skel->maps.rl_sources, BPF_MAP_TYPE_HASH);
	bpf_program__set_flags(fx.skel->progs.rl_xdp, BPF_F_XDP_HAS_FRAGS);
	cr_assert_eq(rl_xdp__load(fx.skel), 0, "the program doesn't load");
	fx.program = bpf_program__fd(fx.skel->progs.rl_xdp);
	fixture_clock(&fx, FIXTURE_CLOCK);
	return fx;
}

void fixture_close(struct fixture *fx)
{
	for (__u32 slot = 0; slot < RL_MAX_DEVICES; slot++) {
		struct rl_device_count count = read_device(fx, slot);
		struct rl_count sum = {};

		for (int reason = 0; reason < RL_REASONS; reason++) {
			sum.packets += count.by_reason[reason].packets;
			sum.bytes += count.by_reason[reason].bytes;
		}
		cr_assert_eq(sum.packets, slot == FIXTURE_DEVICE ? fx->sent.packets : 0,
			     "device %u: %llu of %llu packets", slot, sum.packets, fx->sent.packets);
		cr_assert_eq(sum.bytes, slot == FIXTURE_DEVICE ? fx->sent.bytes : 0);
	}
	offer__destroy(fx->offer);
	rl_xdp__destroy(fx->skel);
	free(fx->limits);
}

void fixture_clock(struct fixture *fx, __u64 now)
{
	fx->now = now;
	*(volatile __u64 *)&fx->skel->bss->rl_clock_now = now;
}

void fixture_advance(struct fixture *fx, __u64 ns)
{
	fixture_clock(fx, fx->now + ns);
}

static struct rl_prefix parse_target(const char *text)
{
	struct rl_error err = {};
	struct rl_prefix target;

	cr_assert_eq(rl_target_parse(text, &target, &err), 0, "%s: %s", text, err.text);
	return target;
}

static struct fixture_limit *find_limit(struct fixture *fx, const struct rl_prefix *target)
{
	for (__u32 i = 0; i < fx->next; i++)
		if (fx->limits[i].used && !memcmp(&fx->limits[i].target, target, sizeof(*target)))
			return &fx->limits[i];
	return NULL;
}

static void write_policy(struct fixture *fx, const struct rl_prefix *target, const struct rl_limit *limit)
{
	cr_assert_eq(bpf_map_update_elem(bpf_map__fd(fx->skel->maps.rl_policy), target, limit, BPF_ANY), 0);
}

void fixture_policy_write(struct fixture *fx, const char *target, const struct rl_limit *limit)
{
	struct rl_prefix prefix = parse_target(target);

	write_policy(fx, &prefix, limit);
}

struct rl_limit fixture_limit(struct fixture *fx, const char *target, ...)
{
	struct rl_prefix prefix = parse_target(target);
	struct fixture_limit *known = find_limit(fx, &prefix);
	struct rl_terms terms = {};
	struct rl_error err = {};
	struct rl_limit limit;
	const char *text;
	__u32 id;
	va_list texts;

	va_start(texts, target);
	while ((text = va_arg(texts, const char *))) {
		bool rate = strstr(text, "pps") || strstr(text, "bit") || strchr(text, '/');
		int error = rate ? rl_rate_parse(text, &terms, &err) : rl_burst_parse(text, &terms, &err);

		cr_assert_eq(error, 0, "%s: %s", text, err.text);
	}
	va_end(texts);
	cr_assert_eq(rl_terms_complete(&terms, &err), 0, "%s: %s", target, err.text);

	cr_assert(known || fx->next < FIXTURE_LIMITS);
	id = 101 + fx->next;
	cr_assert_eq(rl_limit_compute(&prefix, &terms, known ? &known->limit : NULL, id,
				      FIXTURE_FIRST_SLOT + fx->next, fx->skel->bss->rl_clock_now, &limit,
				      &err),
		     0, "%s: %s", target, err.text);
	if (!known)
		known = &fx->limits[fx->next++];
	*known = (struct fixture_limit){.used = true, .target = prefix, .limit = limit};
	write_policy(fx, &prefix, &limit);
	return limit;
}

void fixture_unlimit(struct fixture *fx, const char *target)
{
	struct rl_prefix prefix = parse_target(target);
	struct fixture_limit *known = find_limit(fx, &prefix);

	cr_assert_not_null(known);
	cr_assert_eq(bpf_map_delete_elem(bpf_map__fd(fx->skel->maps.rl_policy), &prefix), 0);
	known->used = false; /* the slot stays taken: its counters must move no more */
}

void fixture_pause(struct fixture *fx, bool paused)
{
	struct rl_device device = {.flags = RL_DEVICE_ATTACHED | (paused ? RL_DEVICE_PAUSED : 0)};
	__u32 slot = FIXTURE_DEVICE;

	cr_assert_eq(bpf_map_update_elem(bpf_map__fd(fx->skel->maps.rl_devices), &slot, &device, BPF_ANY), 0);
}

static int run_program(int program, const uint8_t *frame, size_t len, __u32 n)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (__u32)len, .repeat = (int)n);
	int error = bpf_prog_test_run_opts(program, &opts);

	return error ? error : (int)opts.retval;
}

int fixture_run(const struct fixture *fx, const uint8_t *frame, size_t len, __u32 n)
{
	int verdict = 0;

	if (n > FEW)
		return run_program(fx->program, frame, len, n);
	for (__u32 i = 0; i < n && verdict >= 0; i++)
		verdict = run_program(fx->program, frame, len, 1);
	return verdict;
}

static struct offer *load_offer(const struct fixture *fx)
{
	int bss = bpf_map__fd(fx->skel->maps.bss);
	struct offer *skel = offer__open();
	__u32 zero = 0;

	cr_assert_not_null(skel);
	skel->rodata->clock_at = (__u32)((char *)&fx->skel->bss->rl_clock_now - (char *)fx->skel->bss);
	cr_assert_eq(bpf_map__reuse_fd(skel->maps.packet_bss, bss), 0);
	cr_assert_eq(offer__load(skel), 0, "the offering program doesn't load");
	cr_assert_eq(bpf_map_update_elem(bpf_map__fd(skel->maps.next), &zero, &fx->program, BPF_ANY), 0);
	return skel;
}

void fixture_offer(struct fixture *fx, const uint8_t *frame, size_t len, __u64 step, __u32 each, __u32 steps)
{
	int verdict;

	if (!fx->offer)
		fx->offer = load_offer(fx);
	fx->offer->bss->step = step;
	fx->offer->bss->each = each;
	fx->offer->bss->left = 0;
	verdict = run_program(bpf_program__fd(fx->offer->progs.offer), frame, len, each * steps);
	cr_assert(verdict == XDP_PASS || verdict == XDP_DROP, "%s: verdict %d", what(fx), verdict);
	fx->now += step * steps;
	cr_assert_eq(fx->skel->bss->rl_clock_now, fx->now);
	fixture_account(fx, (__u64)each * steps, (__u64)each * steps * len);
}

void fixture_account(struct fixture *fx, __u64 packets, __u64 bytes)
{
	fx->sent.packets += packets;
	fx->sent.bytes += bytes;
}

/* Run and account; checks that every counter's bytes are its packets times the frame's length. */
static int run_counted(struct fixture *fx, const uint8_t *frame, size_t len, __u32 n, struct counters *before,
		       struct counters *after)
{
	int verdict;

	read_counters(fx, before);
	verdict = fixture_run(fx, frame, len, n);
	cr_assert(verdict == XDP_PASS || verdict == XDP_DROP, "%s: verdict %d", what(fx), verdict);
	read_counters(fx, after);
	fixture_account(fx, n, (__u64)n * len);
	return verdict;
}

/* How many packets a counter grew by; its bytes must have grown by as many frames. */
static __u64 growth(const struct fixture *fx, const struct rl_count *before, const struct rl_count *after,
		    size_t len)
{
	__u64 packets = after->packets - before->packets;

	cr_assert_eq(after->bytes - before->bytes, packets * len,
		     "%s: %llu packets of %zu bytes counted as %llu bytes", what(fx), packets, len,
		     after->bytes - before->bytes);
	return packets;
}

struct fixture_outcome fixture_send_bytes(struct fixture *fx, const uint8_t *frame, size_t len)
{
	static struct counters before, after;
	struct fixture_outcome outcome = {.reason = RL_REASONS, .slot = -1};
	int verdict = run_counted(fx, frame, len, 1, &before, &after);

	for (int reason = 0; reason < RL_REASONS; reason++) {
		__u64 grown =
		    growth(fx, &before.device.by_reason[reason], &after.device.by_reason[reason], len);

		if (!grown)
			continue;
		cr_assert(grown == 1 && outcome.reason == RL_REASONS,
			  "%s: counted under more than one reason", what(fx));
		outcome.reason = (enum rl_reason)reason;
	}
	cr_assert_neq(outcome.reason, RL_REASONS, "%s: not counted", what(fx));
	cr_assert_eq(verdict, rl_reason_drops(outcome.reason) ? XDP_DROP : XDP_PASS,
		     "%s: verdict %d for reason %d", what(fx), verdict, outcome.reason);

	for (__u32 i = 0; i < fx->next; i++) {
		__u64 passed = growth(fx, &before.limit[i].passed, &after.limit[i].passed, len);
		__u64 dropped = growth(fx, &before.limit[i].dropped, &after.limit[i].dropped, len);

		if (!passed && !dropped)
			continue;
		cr_assert(passed + dropped == 1 && outcome.slot == -1, "%s: counted more than once",
			  what(fx));
		cr_assert_eq(dropped == 1, !!rl_reason_drops(outcome.reason), "%s: limit and device disagree",
			     what(fx));
		outcome.slot = (int)(FIXTURE_FIRST_SLOT + i);
	}
	return outcome;
}

struct fixture_outcome fixture_send(struct fixture *fx, const struct rl_frame_spec *spec)
{
	static uint8_t frame[RL_FRAME_MAX];

	return fixture_send_bytes(fx, frame, rl_frame_build(spec, frame, sizeof(frame)));
}

void fixture_expect_bytes_at(int line, struct fixture *fx, const uint8_t *frame, size_t len,
			     enum rl_reason reason, const struct rl_limit *limit)
{
	struct fixture_outcome outcome = fixture_send_bytes(fx, frame, len);

	cr_assert_eq(outcome.reason, reason, "line %d, %s: reason %d, expected %d", line, what(fx),
		     outcome.reason, reason);
	cr_assert_eq(outcome.slot, limit ? (int)limit->slot : -1, "line %d, %s: slot %d", line, what(fx),
		     outcome.slot);
}

void fixture_expect_at(int line, struct fixture *fx, const struct rl_frame_spec *spec, enum rl_reason reason,
		       const struct rl_limit *limit)
{
	static uint8_t frame[RL_FRAME_MAX];

	fixture_expect_bytes_at(line, fx, frame, rl_frame_build(spec, frame, sizeof(frame)), reason, limit);
}

__u64 fixture_flood_bytes(struct fixture *fx, const uint8_t *frame, size_t len, __u32 n)
{
	static struct counters before, after;
	__u64 passed = 0, dropped = 0, limit_dropped = 0;

	run_counted(fx, frame, len, n, &before, &after);
	for (int reason = 0; reason < RL_REASONS; reason++) {
		__u64 grown =
		    growth(fx, &before.device.by_reason[reason], &after.device.by_reason[reason], len);

		if (rl_reason_drops((enum rl_reason)reason))
			dropped += grown;
		else
			passed += grown;
	}
	cr_assert_eq(passed + dropped, n, "%s: %u sent, %llu passed, %llu dropped", what(fx), n, passed,
		     dropped);
	for (__u32 i = 0; i < fx->next; i++) {
		growth(fx, &before.limit[i].passed, &after.limit[i].passed, len);
		limit_dropped += growth(fx, &before.limit[i].dropped, &after.limit[i].dropped, len);
	}
	cr_assert_eq(limit_dropped, dropped, "%s: limits and device disagree", what(fx));
	return passed;
}

__u64 fixture_flood(struct fixture *fx, const struct rl_frame_spec *spec, __u32 n)
{
	static uint8_t frame[RL_FRAME_MAX];

	return fixture_flood_bytes(fx, frame, rl_frame_build(spec, frame, sizeof(frame)), n);
}

struct rl_device_count fixture_device(const struct fixture *fx)
{
	return read_device(fx, FIXTURE_DEVICE);
}

struct rl_limit_count fixture_limit_count(const struct fixture *fx, const struct rl_limit *limit)
{
	return read_limit(fx, limit->slot);
}

bool fixture_source(const struct fixture *fx, const struct rl_limit *limit, const char *source,
		    struct rl_source *out)
{
	struct rl_prefix prefix = parse_target(source);
	struct rl_source_key key = {.limit_id = limit->id, .family = prefix.family};

	if (limit->flags & RL_LIMIT_OWN_BUCKET)
		return !bpf_map_lookup_elem(bpf_map__fd(fx->skel->maps.rl_own), &limit->slot, out);
	memcpy(key.addr, prefix.addr, 8);
	return !bpf_map_lookup_elem(bpf_map__fd(fx->skel->maps.rl_sources), &key, out);
}

void fixture_expect_source_at(int line, const struct fixture *fx, const struct rl_limit *limit,
			      const char *source, __u64 passed, __u64 dropped, size_t len)
{
	struct rl_source found;

	cr_assert(fixture_source(fx, limit, source, &found), "line %d, %s: no bucket of %s", line, what(fx),
		  source);
	cr_assert_eq(found.passed.packets, passed, "line %d, %s: %llu passed", line, what(fx),
		     found.passed.packets);
	cr_assert_eq(found.dropped.packets, dropped, "line %d, %s: %llu dropped", line, what(fx),
		     found.dropped.packets);
	cr_assert_eq(found.passed.bytes, passed * len, "line %d, %s", line, what(fx));
	cr_assert_eq(found.dropped.bytes, dropped * len, "line %d, %s", line, what(fx));
}
