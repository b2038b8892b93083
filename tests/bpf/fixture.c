// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "../../user/class.h"
#include "../../user/clock.h"
#include "../../user/limit.h"
#include "../../user/loader.h"
#include "../../user/policy.h"
#include "../../user/prefix.h"
#include "../../user/target.h"
#include "../../user/units.h"
#include "native.h"
#include "rl_path.skel.h"
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

	cr_assert_eq(bpf_map_lookup_elem(bpf_map__fd(fx->skel->maps.rl_limit_count), &slot, per_cpu), 0,
		     "slot %u", slot);
	for (int cpu = 0; cpu < n; cpu++) {
		sum.passed.packets += per_cpu[cpu].passed.packets;
		sum.passed.bytes += per_cpu[cpu].passed.bytes;
		sum.dropped.packets += per_cpu[cpu].dropped.packets;
		sum.dropped.bytes += per_cpu[cpu].dropped.bytes;
		sum.shadow.packets += per_cpu[cpu].shadow.packets;
		sum.shadow.bytes += per_cpu[cpu].shadow.bytes;
	}
	return sum;
}

static void read_counters(const struct fixture *fx, struct counters *out)
{
	out->device = read_device(fx, FIXTURE_DEVICE);
	for (__u32 i = 0; i < fx->slot_count; i++)
		out->limit[i] = read_limit(fx, fx->slots[i]);
}

struct fixture fixture_open(void)
{
	return fixture_open_with(&(struct fixture_options){});
}

static struct rl_load_options load_options(const struct fixture_options *options)
{
	return (struct rl_load_options){
	    .slot = FIXTURE_DEVICE,
	    .frags = true,
	    .store = options->store,
	    .max_sources = options->max_sources ? options->max_sources : FIXTURE_MAX_SOURCES,
	    .seed = {0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL},
	};
}

/* Ids that begin elsewhere than at 1, so that one mistaken for a slot shows. */
static void move_ids(const struct fixture *fx)
{
	struct rl_meta meta;
	__u32 zero = 0;

	cr_assert_eq(bpf_map_lookup_elem(fx->state.map[RL_MAP_META], &zero, &meta), 0);
	meta.next_limit_id = FIXTURE_FIRST_ID;
	cr_assert_eq(bpf_map_update_elem(fx->state.map[RL_MAP_META], &zero, &meta, BPF_ANY), 0);
}

struct fixture fixture_open_with(const struct fixture_options *options)
{
	struct fixture fx = {.state = RL_STATE_INIT, .slots = calloc(FIXTURE_LIMITS, sizeof(*fx.slots))};
	struct rl_load_options load = load_options(options);

	if (geteuid())
		cr_skip_test("loading BPF programs needs root");
	cr_assert_not_null(fx.slots);
	fx.skel = rl_path__open();
	cr_assert_not_null(fx.skel, "the skeleton doesn't open");
	cr_assert_eq(rl_skeleton_prepare(fx.skel, &load), 0);
	fx.skel->rodata->rl_clock_given = !options->real_clock;
	/* Stories look at what a packet took from each bucket: from the bucket, then, and not from a slice of it. */
	if (!options->real_clock)
		fx.skel->rodata->rl_slices_shift = 0;
	fx.real_clock = options->real_clock;
	/* An array of 65536 per-CPU counters takes the kernel most of a second to make. */
	if (!options->all_limits)
		bpf_map__set_max_entries(fx.skel->maps.rl_limit_count, 4 * FIXTURE_LIMITS);
	bpf_program__set_autoload(fx.skel->progs.rl_tc, options->tc);
	cr_assert_eq(rl_path__load(fx.skel), 0, "the program doesn't load");
	cr_assert_eq(rl_skeleton_settle(fx.skel, &load, 0, options->when_full), 0);
	fx.program = bpf_program__fd(fx.skel->progs.rl_xdp);
	for (int i = 0; i < RL_MAPS; i++)
		fx.state.map[i] = bpf_object__find_map_fd_by_name(fx.skel->obj, rl_map_name((enum rl_map)i));
	fx.table = fx.skel->bss->rl_table;
	move_ids(&fx);
	fixture_device_name(&fx, "fixture0");
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
	rl_path__destroy(fx->skel);
	free(fx->slots);
}

__u64 fixture_time(const struct fixture *fx)
{
	return fx->real_clock ? rl_clock_ns() : fx->now;
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

static struct rl_prefix parse_prefix(const char *text)
{
	struct rl_error err = {};
	struct rl_prefix prefix;

	cr_assert_eq(rl_prefix_parse(text, &prefix, &err), 0, "%s: %s", text, err.text);
	return prefix;
}

static struct rl_target parse_target(const char *text)
{
	struct rl_error err = {};
	struct rl_target target;

	cr_assert_eq(rl_target_parse(text, &target, &err), 0, "%s: %s", text, err.text);
	return target;
}

/* "per=/28": what follows the word and its '=', or NULL. */
static const char *word_value(const char *text, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(text, word, len) && text[len] == '=' ? text + len + 1 : NULL;
}

static void parse_text(const char *text, struct rl_terms *terms)
{
	struct rl_error err = {};
	const char *value;
	int error = 0;

	if ((value = word_value(text, "class")))
		error = rl_class_parse(value, &terms->class, &err);
	else if ((value = word_value(text, "cost")))
		error = rl_costs_parse(value, terms, &err);
	else if ((value = word_value(text, "priority")))
		error = rl_priority_parse(value, &terms->priority, &err);
	else if ((value = word_value(text, "reserve")))
		error = rl_reserve_parse(value, terms, &err);
	else if ((value = word_value(text, "per")))
		error = rl_per_parse(value, &terms->per, &err);
	else if ((value = word_value(text, "tenant")))
		strncpy(terms->tenant, value, sizeof(terms->tenant) - 1);
	else if (!strcmp(text, "shared"))
		terms->shared = 1;
	else if (!strcmp(text, "shadow"))
		terms->shadow = 1;
	else if (!strcmp(text, "allow"))
		terms->action = RL_ACTION_ALLOW;
	else if (!strcmp(text, "deny"))
		terms->action = RL_ACTION_DENY;
	else if (strstr(text, "pps") || strstr(text, "bit") || strchr(text, '/'))
		error = rl_rate_parse(text, terms, &err);
	else
		error = rl_burst_parse(text, terms, &err);
	cr_assert_eq(error, 0, "%s: %s", text, err.text);
}

static bool is_watched(const struct fixture *fx, __u32 slot)
{
	for (__u32 i = 0; i < fx->slot_count; i++)
		if (fx->slots[i] == slot)
			return true;
	return false;
}

void fixture_watch(struct fixture *fx, const struct rl_limit *limit)
{
	if (is_watched(fx, limit->slot))
		return;
	cr_assert(fx->slot_count < FIXTURE_LIMITS);
	fx->slots[fx->slot_count++] = limit->slot;
}

/* Watch every slot that has a limit, for good: a deleted limit's counters must move no more. */
static void watch_slots(struct fixture *fx)
{
	struct rl_limit *limits = NULL;
	struct rl_error err = {};
	size_t count = 0;

	cr_assert_eq(rl_policy_read(&fx->state, &limits, &count, &err), 0, "%s", err.text);
	for (size_t i = 0; i < count; i++) {
		if (limits[i].target.kind == RL_TARGET_NEW)
			fx->fresh = limits[i].slot;
		fixture_watch(fx, &limits[i]);
	}
	free(limits);
}

struct rl_limit fixture_limit(struct fixture *fx, const char *target, ...)
{
	struct rl_target whom = parse_target(target);
	struct rl_terms terms = RL_TERMS_INIT;
	struct rl_error err = {};
	struct rl_limit limit;
	const char *text;
	va_list texts;

	va_start(texts, target);
	while ((text = va_arg(texts, const char *)))
		parse_text(text, &terms);
	va_end(texts);
	cr_assert_eq(rl_terms_complete(&whom, &terms, &err), 0, "%s: %s", target, err.text);
	cr_assert_eq(rl_policy_set(&fx->state, &whom, &terms, fixture_time(fx), &err), 0, "%s: %s", target,
		     err.text);
	cr_assert(
	    rl_policy_find(&fx->state, &whom, rl_class_is_set(&terms.class) ? &terms.class : NULL, &limit));
	if (!is_watched(fx, limit.slot))
		watch_slots(fx);
	return limit;
}

static void unlimit(struct fixture *fx, const char *target, const struct rl_class *class)
{
	struct rl_target whom = parse_target(target);
	struct rl_error err = {};

	cr_assert_eq(rl_policy_delete(&fx->state, &whom, class, fixture_time(fx), &err), 0, "%s: %s", target,
		     err.text);
}

void fixture_unlimit(struct fixture *fx, const char *target)
{
	unlimit(fx, target, NULL);
}

void fixture_unclass(struct fixture *fx, const char *target, const char *class)
{
	struct rl_error err = {};
	struct rl_class of;

	cr_assert_eq(rl_class_parse(class, &of, &err), 0, "%s", err.text);
	unlimit(fx, target, &of);
}

__u64 fixture_head(struct fixture *fx, __u32 slot, __u64 head)
{
	__u64 old;

	cr_assert_eq(bpf_map_lookup_elem(fx->state.map[RL_MAP_HEADS], &slot, &old), 0);
	if (head != FIXTURE_HEAD_ASK)
		cr_assert_eq(bpf_map_update_elem(fx->state.map[RL_MAP_HEADS], &slot, &head, BPF_ANY), 0);
	return old;
}

struct rl_limit fixture_now(const struct fixture *fx, const char *target)
{
	struct rl_target whom = parse_target(target);
	struct rl_limit limit;

	cr_assert(rl_policy_find(&fx->state, &whom, NULL, &limit), "%s", target);
	return limit;
}

void fixture_when_full(struct fixture *fx, enum rl_when_full when_full)
{
	struct rl_settings settings;
	__u32 zero = 0;

	cr_assert_eq(bpf_map_lookup_elem(fx->state.map[RL_MAP_SETTINGS], &zero, &settings), 0);
	settings.when_full = when_full;
	cr_assert_eq(bpf_map_update_elem(fx->state.map[RL_MAP_SETTINGS], &zero, &settings, BPF_ANY), 0);
}

static void change_device(struct fixture *fx, const char *name, __u32 set, __u32 clear)
{
	struct rl_device device;
	__u32 slot = FIXTURE_DEVICE;

	cr_assert_eq(bpf_map_lookup_elem(fx->state.map[RL_MAP_DEVICES], &slot, &device), 0);
	device.flags = (device.flags | set) & ~clear;
	if (name)
		strncpy(device.name, name, sizeof(device.name) - 1);
	cr_assert_eq(bpf_map_update_elem(fx->state.map[RL_MAP_DEVICES], &slot, &device, BPF_ANY), 0);
}

void fixture_device_name(struct fixture *fx, const char *name)
{
	change_device(fx, name, RL_DEVICE_ATTACHED, 0);
}

void fixture_shadow(struct fixture *fx, bool shadow)
{
	change_device(fx, NULL, shadow ? RL_DEVICE_SHADOW : 0, shadow ? 0 : RL_DEVICE_SHADOW);
}

void fixture_pause(struct fixture *fx, bool paused)
{
	change_device(fx, NULL, paused ? RL_DEVICE_PAUSED : 0, paused ? 0 : RL_DEVICE_PAUSED);
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

/* What the limits counted. */
static void count_limits(const struct fixture *fx, const struct counters *before,
			 const struct counters *after, size_t len, struct fixture_outcome *outcome)
{
	for (__u32 i = 0; i < fx->slot_count; i++) {
		__u64 passed = growth(fx, &before->limit[i].passed, &after->limit[i].passed, len);
		__u64 dropped = growth(fx, &before->limit[i].dropped, &after->limit[i].dropped, len);
		__u64 shadow = growth(fx, &before->limit[i].shadow, &after->limit[i].shadow, len);

		cr_assert(passed <= 1 && dropped <= 1 && shadow <= 1 && passed + dropped <= 1,
			  "%s: counted more than once", what(fx));
		outcome->shadowed += (__u32)shadow;
		if (dropped) {
			cr_assert_eq(outcome->dropper, 0, "%s: dropped by two limits", what(fx));
			outcome->dropper = fx->slots[i];
		}
		if (passed && fx->slots[i] != fx->fresh) {
			cr_assert(outcome->passed < FIXTURE_COUNTED);
			outcome->slots[outcome->passed++] = fx->slots[i];
		}
	}
	if (rl_reason_drops(outcome->reason))
		cr_assert_eq(outcome->passed, 0, "%s: dropped, and counted as passed", what(fx));
	else
		cr_assert_eq(outcome->dropper, 0, "%s: passed, and counted as dropped", what(fx));
	cr_assert(!outcome->shadowed || !rl_reason_drops(outcome->reason), "%s: shadow, and dropped",
		  what(fx));
}

struct fixture_outcome fixture_send_bytes(struct fixture *fx, const uint8_t *frame, size_t len)
{
	static struct counters before, after;
	struct fixture_outcome outcome = {.reason = RL_REASONS};
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
	count_limits(fx, &before, &after, len, &outcome);
	return outcome;
}

static bool outcome_names(const struct fixture_outcome *outcome, const struct rl_limit *limit)
{
	bool found = false;

	if (!limit)
		return !outcome->dropper && !outcome->passed;
	if (rl_reason_drops(outcome->reason))
		return outcome->dropper == limit->slot;
	for (__u32 i = 0; i < outcome->passed; i++)
		found = found || outcome->slots[i] == limit->slot;
	return found;
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
	cr_assert(outcome_names(&outcome, limit),
		  "line %d, %s: dropped by slot %u, passed %u limits, expected slot %u", line, what(fx),
		  outcome.dropper, outcome.passed, limit ? limit->slot : 0);
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
	for (__u32 i = 0; i < fx->slot_count; i++) {
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
	struct rl_prefix prefix = parse_prefix(source);

	if (limit->flags & RL_LIMIT_OWN_BUCKET) {
		if (bpf_map_lookup_elem(fx->state.map[RL_MAP_OWN], &limit->slot, out))
			return false;
		native_add_pending(&fx->state, RL_PLACE_OWN | limit->slot, limit->id, out);
		return true;
	}
	prefix = rl_prefix_cut(prefix.family, prefix.addr, limit->bits[prefix.family == 6]);
	if (fx->skel->rodata->rl_store_lru) {
		struct rl_source_key key = {.limit_id = limit->id, .family = prefix.family};

		memcpy(key.addr, prefix.addr, sizeof(key.addr));
		return !bpf_map_lookup_elem(fx->state.map[RL_MAP_SOURCES], &key, out);
	}
	return native_find(&fx->state, &fx->table, limit, prefix.family, prefix.addr, out);
}

void fixture_expect_source_at(int line, const struct fixture *fx, const struct rl_limit *limit,
			      const char *source, __u64 passed, __u64 dropped, size_t len)
{
	struct rl_source found;

	cr_assert(fixture_source(fx, limit, source, &found), "line %d, %s: no bucket of %s", line, what(fx),
		  source);
	cr_assert_eq(found.tally.passed.packets, passed, "line %d, %s: %llu passed", line, what(fx),
		     found.tally.passed.packets);
	cr_assert_eq(found.tally.dropped.packets, dropped, "line %d, %s: %llu dropped", line, what(fx),
		     found.tally.dropped.packets);
	cr_assert_eq(found.tally.passed.bytes, passed * len, "line %d, %s", line, what(fx));
	cr_assert_eq(found.tally.dropped.bytes, dropped * len, "line %d, %s", line, what(fx));
}
