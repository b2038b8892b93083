// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * verdicts.c - each reason that a packet can be counted under, and each kind of frame: limited by its source
 * at the limit and one past it, or apart for a reason of its own.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "fixture.h"
#include "kinds.h"

static const struct rl_frame_spec v4 = {.src = KIND_SOURCE4}, v6 = {.src = KIND_SOURCE6};
static const struct rl_frame_spec arp = {.src = KIND_SOURCE4, .ethertype = 0x0806};
static const struct rl_frame_spec echo4 = {.src = KIND_SOURCE4, .proto = 1, .icmp_type = 8};
static const struct rl_frame_spec echo6 = {.src = KIND_SOURCE6, .proto = 58, .icmp_type = 128};
static const struct rl_frame_spec solicitation = {
    .src = KIND_SOURCE6, .proto = 58, .icmp_type = 135, .hop_limit = 255};

static bool is_v4(const struct kind *kind)
{
	return !strcmp(kind->spec.src, KIND_SOURCE4);
}

/* Is it limited by its source? */
static bool limited(const struct kind *kind)
{
	return kind->result == RL_PARSE_IP && !(kind->flags & RL_PACKET_ND);
}

/* Why it passes where it isn't limited; within a limit likewise, but for plain frames. */
static enum rl_reason passing(const struct kind *kind)
{
	if (kind->result == RL_PARSE_UNPARSED)
		return RL_PASS_UNPARSED;
	if (kind->result == RL_PARSE_NOT_IP)
		return RL_PASS_NOT_IP;
	if (kind->flags & RL_PACKET_ND)
		return RL_PASS_ND;
	return kind->flags & RL_PACKET_MALFORMED ? RL_PASS_MALFORMED : RL_PASS_NO_LIMIT;
}

Test(verdicts, every_kind_without_limit)
{
	struct fixture fx = fixture_open();
	static uint8_t frame[RL_FRAME_MAX];

	for (size_t i = 0; i < kind_count; i++) {
		size_t len = kind_build(&kinds[i], frame);

		fx.what = kinds[i].name;
		fixture_expect_bytes(&fx, frame, len, passing(&kinds[i]), NULL);
	}
	fixture_close(&fx);
}

Test(verdicts, every_kind_at_its_limit_and_one_past)
{
	struct fixture fx = fixture_open();
	static uint8_t frame[RL_FRAME_MAX];

	for (size_t i = 0; i < kind_count; i++) {
		const struct kind *kind = &kinds[i];
		const char *target = is_v4(kind) ? KIND_TARGET4 : KIND_TARGET6;
		const char *source = is_v4(kind) ? KIND_SOURCE4 : KIND_SOURCE6;
		enum rl_reason within = kind->flags & RL_PACKET_MALFORMED ? RL_PASS_MALFORMED : RL_PASS_LIMIT;
		size_t len = kind_build(kind, frame);
		struct rl_limit limit;
		struct rl_source none;

		fx.what = kind->name;
		limit = fixture_limit(&fx, target, "1/h", "2", NULL);
		if (limited(kind)) {
			fixture_expect_bytes(&fx, frame, len, within, &limit);
			fixture_expect_bytes(&fx, frame, len, within, &limit);
			fixture_expect_bytes(&fx, frame, len, RL_DROP_SOURCE, &limit);
			fixture_expect_source(&fx, &limit, source, 2, 1, len);
		} else {
			for (int n = 0; n < 4; n++)
				fixture_expect_bytes(&fx, frame, len, passing(kind), NULL);
			cr_assert_not(fixture_source(&fx, &limit, source, &none), "%s: has a bucket",
				      kind->name);
		}
		fixture_unlimit(&fx, target);
		fixture_advance(&fx, 4000000000); /* its place is nobody's then */
	}
	fixture_close(&fx);
}

/* A limit counts a source's packets together, whatever form they have: no form is a way around it. */
Test(verdicts, kinds_of_one_source_share_its_bucket)
{
	struct fixture fx = fixture_open();
	struct rl_limit limit4, limit6;
	static uint8_t frame[RL_FRAME_MAX];

	limit4 = fixture_limit(&fx, KIND_TARGET4, "1/h", "1", NULL);
	limit6 = fixture_limit(&fx, KIND_TARGET6, "1/h", "1", NULL);
	fixture_expect(&fx, &v4, RL_PASS_LIMIT, &limit4);
	fixture_expect(&fx, &v6, RL_PASS_LIMIT, &limit6);
	for (size_t i = 0; i < kind_count; i++) {
		size_t len = kind_build(&kinds[i], frame);

		fx.what = kinds[i].name;
		if (limited(&kinds[i]))
			fixture_expect_bytes(&fx, frame, len, RL_DROP_SOURCE,
					     is_v4(&kinds[i]) ? &limit4 : &limit6);
	}
	fixture_close(&fx);
}

/* A paused device passes everything, charges nobody, and takes up where it was. */
Test(verdicts, paused)
{
	struct fixture fx = fixture_open();
	struct rl_limit limit4, limit6;
	static uint8_t frame[RL_FRAME_MAX];

	limit4 = fixture_limit(&fx, KIND_TARGET4, "1/h", "2", NULL);
	limit6 = fixture_limit(&fx, KIND_TARGET6, "1/h", "2", NULL);
	fixture_pause(&fx, false);
	fixture_expect(&fx, &v4, RL_PASS_LIMIT, &limit4);
	fixture_expect(&fx, &v6, RL_PASS_LIMIT, &limit6);
	fixture_pause(&fx, true);
	for (size_t i = 0; i < kind_count; i++) {
		size_t len = kind_build(&kinds[i], frame);

		fx.what = kinds[i].name;
		fixture_expect_bytes(&fx, frame, len, RL_PASS_PAUSED, NULL);
	}
	fx.what = NULL;
	fixture_expect_source(&fx, &limit4, KIND_SOURCE4, 1, 0, 60);
	fixture_pause(&fx, false);
	fixture_expect(&fx, &v4, RL_PASS_LIMIT, &limit4);
	fixture_expect(&fx, &v4, RL_DROP_SOURCE, &limit4);
	fixture_expect(&fx, &v6, RL_PASS_LIMIT, &limit6);
	fixture_expect(&fx, &v6, RL_DROP_SOURCE, &limit6);
	fixture_close(&fx);
}

/* Neighbour discovery has a budget of 1000 a second and a burst of 1000; beyond it, it's a packet like any
 * other. */
Test(verdicts, discovery_at_its_budget_and_one_past)
{
	struct fixture fx = fixture_open();
	struct rl_limit limit;
	struct rl_device_count count;

	cr_assert_eq(fixture_flood(&fx, &solicitation, 999), 999);
	fixture_expect(&fx, &solicitation, RL_PASS_ND, NULL);
	fixture_expect(&fx, &solicitation, RL_PASS_NO_LIMIT, NULL);
	count = fixture_device(&fx);
	cr_assert_eq(count.by_reason[RL_PASS_ND].packets, 1000);

	limit = fixture_limit(&fx, KIND_TARGET6, "1/h", "1", NULL);
	fixture_expect(&fx, &solicitation, RL_PASS_LIMIT, &limit);
	fixture_expect(&fx, &solicitation, RL_DROP_SOURCE, &limit);
	fixture_advance(&fx, MS - 1);
	fixture_expect(&fx, &solicitation, RL_DROP_SOURCE, &limit);
	fixture_advance(&fx, 1);
	fixture_expect(&fx, &solicitation, RL_PASS_ND, NULL);
	fixture_expect(&fx, &solicitation, RL_DROP_SOURCE, &limit);
	fixture_advance(&fx, 10 * SEC);
	cr_assert_eq(fixture_flood(&fx, &solicitation, 1500), 1000);
	fixture_close(&fx);
}

/* A flood of ICMP is limited in both families, and takes nothing from neighbour discovery. */
Test(verdicts, icmp_flood_is_limited_and_discovery_is_apart)
{
	struct fixture fx = fixture_open();
	struct rl_limit any = fixture_limit(&fx, "any", "100pps", "100", NULL);

	cr_assert_eq(fixture_flood(&fx, &echo4, 5000), 100);
	cr_assert_eq(fixture_flood(&fx, &echo6, 5000), 100);
	fixture_expect(&fx, &echo4, RL_DROP_SOURCE, &any);
	fixture_expect(&fx, &echo6, RL_DROP_SOURCE, &any);
	cr_assert_eq(fixture_flood(&fx, &solicitation, 1000), 1000);
	fixture_expect(&fx, &solicitation, RL_DROP_SOURCE, &any);
	fixture_close(&fx);
}

/* Minutes of the tightest limit, the source's bucket long empty, kill neither ARP nor neighbour discovery. */
Test(verdicts, arp_and_discovery_outlive_a_tight_limit)
{
	struct fixture fx = fixture_open();
	struct rl_device_count count;
	uint8_t frames[4][RL_FRAME_MAX];
	const struct rl_frame_spec *specs[] = {&arp, &solicitation, &echo4, &echo6};
	const int rounds = 60000; /* ten minutes, one every 10 ms */

	fixture_limit(&fx, "any", "1/h", "1", NULL);
	for (int i = 0; i < 4; i++)
		rl_frame_build(specs[i], frames[i], RL_FRAME_MAX);
	for (int round = 0; round < rounds; round++) {
		cr_assert_eq(fixture_run(&fx, frames[0], 60, 1), 2, "ARP dropped in round %d", round);
		cr_assert_eq(fixture_run(&fx, frames[1], 62, 1), 2, "discovery dropped in round %d", round);
		cr_assert_eq(fixture_run(&fx, frames[2], 60, 1), round ? 1 : 2);
		cr_assert_eq(fixture_run(&fx, frames[3], 62, 1), round ? 1 : 2);
		fixture_advance(&fx, 10 * MS);
	}
	fixture_account(&fx, 4ULL * rounds, 244ULL * rounds);
	count = fixture_device(&fx);
	cr_assert_eq(count.by_reason[RL_PASS_NOT_IP].packets, rounds);
	cr_assert_eq(count.by_reason[RL_PASS_ND].packets, rounds);
	cr_assert_eq(count.by_reason[RL_PASS_LIMIT].packets, 2);
	cr_assert_eq(count.by_reason[RL_DROP_SOURCE].packets, 2 * rounds - 2);
	fixture_close(&fx);
}

/* A damaged policy drops nothing: the ranges name a slot that nobody is in. */
Test(verdicts, an_empty_slot_is_no_limit)
{
	struct fixture fx = fixture_open();
	struct rl_limit limit4 = fixture_limit(&fx, KIND_TARGET4, "1/h", "1", NULL);
	struct rl_limit limit6 = fixture_limit(&fx, KIND_TARGET6, "1/h", "1", NULL);

	fixture_head(&fx, limit4.slot, 0);
	fixture_head(&fx, limit6.slot, 0);
	for (int i = 0; i < 3; i++) {
		fixture_expect(&fx, &v4, RL_PASS_NO_LIMIT, NULL);
		fixture_expect(&fx, &v6, RL_PASS_NO_LIMIT, NULL);
	}
	fixture_close(&fx);
}

/* A CPU that still holds the limit as it was before a change meets a bucket that has moved on: it admits
 * nothing. */
Test(verdicts, bucket_of_a_newer_generation)
{
	struct fixture fx = fixture_open();
	const char *targets[] = {KIND_TARGET4, KIND_TARGET6};
	const struct rl_frame_spec *specs[] = {&v4, &v6};

	for (int i = 0; i < 2; i++) {
		struct rl_limit before = fixture_limit(&fx, targets[i], "10pps", "20", NULL), after;
		__u64 old = fixture_head(&fx, before.slot, FIXTURE_HEAD_ASK), new;

		fixture_expect(&fx, specs[i], RL_PASS_LIMIT, &before);
		after = fixture_limit(&fx, targets[i], "20pps", "20", NULL);
		fixture_expect(&fx, specs[i], RL_PASS_LIMIT, &after);
		new = fixture_head(&fx, before.slot, old);
		fixture_expect(&fx, specs[i], RL_DROP_CONTENDED, &before);
		fixture_head(&fx, before.slot, new);
		fixture_expect(&fx, specs[i], RL_PASS_LIMIT, &after);
	}
	fixture_close(&fx);
}
