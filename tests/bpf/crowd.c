// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "crowd.h"

#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <stdio.h>

#include "native.h"
#include "rl_path.skel.h"
#include "tests/bpf/many.skel.h"

#define FRESH	  0x0a000000U
#define KNOWN	  0xcb007100U
#define KNOWN_MAX 256
#define ROUND	  4096 /* packets between two looks at whether the table is full */

struct fixture crowd_small(enum rl_when_full when_full)
{
	return fixture_open_with(
	    &(struct fixture_options){.max_sources = CROWD_SMALL, .when_full = when_full});
}

struct crowd crowd_open(struct fixture *fx)
{
	struct crowd crowd = {.fx = fx, .skel = many__open()};
	__u32 zero = 0;

	cr_assert_not_null(crowd.skel);
	crowd.skel->rodata->clock_at = (__u32)((char *)&fx->skel->bss->rl_clock_now - (char *)fx->skel->bss);
	cr_assert_eq(bpf_map__reuse_fd(crowd.skel->maps.packet_bss, bpf_map__fd(fx->skel->maps.bss)), 0);
	cr_assert_eq(many__load(crowd.skel), 0, "the crowd's program doesn't load");
	cr_assert_eq(bpf_map_update_elem(bpf_map__fd(crowd.skel->maps.next), &zero, &fx->program, BPF_ANY),
		     0);
	return crowd;
}

void crowd_close(struct crowd *crowd)
{
	many__destroy(crowd->skel);
}

static const char *text_of(__u8 family, __u32 number, char text[CROWD_TEXT])
{
	if (family == 4)
		snprintf(text, CROWD_TEXT, "%u.%u.%u.%u", number >> 24, number >> 16 & 255, number >> 8 & 255,
			 number & 255);
	else
		snprintf(text, CROWD_TEXT, "2001:db8:%x:%x::1", number >> 16, number & 0xffff);
	return text;
}

const char *crowd_fresh_text(__u8 family, __u32 number, char text[CROWD_TEXT])
{
	return text_of(family, FRESH + number, text);
}

const char *crowd_known_text(__u8 family, __u32 number, char text[CROWD_TEXT])
{
	return text_of(family, KNOWN + number, text);
}

static void send_many(struct crowd *crowd, __u8 family, const struct crowd_plan *plan)
{
	static uint8_t frame[RL_FRAME_MAX];
	struct rl_frame_spec spec = {.src = family == 4 ? "10.0.0.0" : "2001:db8::1", .len = CROWD_LEN};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = CROWD_LEN,
		    .repeat = (int)plan->packets);

	rl_frame_build(&spec, frame, sizeof(frame));
	crowd->skel->bss->step = plan->step;
	crowd->skel->bss->fresh = FRESH + crowd->fresh;
	crowd->skel->bss->stride = plan->stride ? plan->stride : 1;
	crowd->skel->bss->known = KNOWN;
	crowd->skel->bss->knowns = plan->known;
	crowd->skel->bss->every = plan->every;
	crowd->skel->bss->sent = 0;
	cr_assert_eq(bpf_prog_test_run_opts(bpf_program__fd(crowd->skel->progs.many), &opts), 0);
	cr_assert_eq(crowd->skel->bss->sent, plan->packets);
	crowd->fresh = crowd->skel->bss->fresh - FRESH;
	crowd->fx->now += plan->step * plan->packets;
	cr_assert_eq(crowd->fx->skel->bss->rl_clock_now, crowd->fx->now);
	fixture_account(crowd->fx, plan->packets, (__u64)plan->packets * CROWD_LEN);
}

/* What the device let pass, and what the known sources' own counters say of them. */
static __u64 device_passed(const struct fixture *fx)
{
	struct rl_device_count count = fixture_device(fx);
	__u64 passed = 0;

	for (int reason = 0; reason < RL_DROP_FIRST; reason++)
		passed += count.by_reason[reason].packets;
	return passed;
}

static void read_known(const struct fixture *fx, __u8 family, __u32 known, const struct rl_limit *limit,
		       __u64 passed[KNOWN_MAX])
{
	char text[CROWD_TEXT];
	struct rl_source source;

	cr_assert_leq(known, KNOWN_MAX);
	for (__u32 i = 0; i < known; i++) {
		passed[i] = 0;
		if (fixture_source(fx, limit, crowd_known_text(family, i, text), &source))
			passed[i] = source.tally.passed.packets;
	}
}

struct crowd_result crowd_run(struct crowd *crowd, __u8 family, const struct crowd_plan *plan,
			      const struct rl_limit *limit)
{
	struct crowd_result result = {.known = plan->every ? plan->packets / plan->every : 0};
	__u64 before[KNOWN_MAX], after[KNOWN_MAX], passed = device_passed(crowd->fx);

	read_known(crowd->fx, family, plan->known, limit, before);
	send_many(crowd, family, plan);
	read_known(crowd->fx, family, plan->known, limit, after);
	for (__u32 i = 0; i < plan->known; i++) /* who was evicted began to count anew */
		result.known_passed += after[i] >= before[i] ? after[i] - before[i] : after[i];
	result.passed = device_passed(crowd->fx) - passed - result.known_passed;
	result.dropped = plan->packets - result.known - result.passed;
	return result;
}

__u64 crowd_places(const struct fixture *fx)
{
	return (__u64)fx->table.regions * RL_REGION_ROWS * RL_ROW;
}

__u64 crowd_taken(const struct fixture *fx)
{
	return native_taken(&fx->state, &fx->table, 4) + native_taken(&fx->state, &fx->table, 6);
}

void crowd_empty(const struct fixture *fx)
{
	static const struct rl_row none;

	for (__u32 i = 0; i < fx->table.regions * RL_REGION_ROWS; i++)
		cr_assert_eq(bpf_map_update_elem(fx->state.map[RL_MAP_ROWS], &i, &none, BPF_ANY), 0);
}

__u32 crowd_fill(struct crowd *crowd, __u8 family)
{
	const struct crowd_plan plan = {.packets = ROUND};
	__u32 first = crowd->fresh;

	for (int round = 0; round < 64 && crowd_taken(crowd->fx) < crowd_places(crowd->fx); round++)
		send_many(crowd, family, &plan);
	cr_assert_eq(crowd_taken(crowd->fx), crowd_places(crowd->fx), "the table isn't full");
	return first;
}
