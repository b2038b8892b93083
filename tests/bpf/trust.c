// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * trust.c - allow and deny: the longest prefix decides, among them and the limits; neither is charged
 * anywhere; and neither ARP nor neighbour discovery is in anybody's way.
 */
#include <stdio.h>
#include <string.h>

#include "stories.h"

/* Five prefixes inside one another, and a source that only the first n of them hold. */
static const char *const nests[2][5] = {
    {"10.0.0.0/8", "10.16.0.0/16", "10.16.1.0/24", "10.16.1.128/25", "10.16.1.200"},
    {"2001:db8::/32", "2001:db8:16::/48", "2001:db8:16:100::/56", "2001:db8:16:180::/57",
     "2001:db8:16:1c8::/64"},
};
static const char *const sources[2][5] = {
    {"10.1.1.1", "10.16.2.1", "10.16.1.1", "10.16.1.129", "10.16.1.200"},
    {"2001:db8:1::1", "2001:db8:16:200::1", "2001:db8:16:101::1", "2001:db8:16:181::1", "2001:db8:16:1c8::1"},
};

StoreTest(trust, the_longest_prefix_decides)
{
	static const char *const action[5] = {"deny", "1mpps", "allow", "deny", "allow"};
	static const enum rl_reason reasons[5] = {RL_DROP_DENIED, RL_PASS_LIMIT, RL_PASS_ALLOWED,
						  RL_DROP_DENIED, RL_PASS_ALLOWED};
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		struct rl_limit limit[5];
		const char *const *target = nests[f];

		for (int i = 0; i < 5; i++)
			limit[i] = fixture_limit(&fx, target[i], action[i], NULL);
		for (int i = 0; i < 5; i++) {
			story_repeat(&fx, sources[f][i], 3, reasons[i], &limit[i]);
			story_counted(&fx, &limit[i], rl_reason_drops(reasons[i]) ? 0 : 3,
				      rl_reason_drops(reasons[i]) ? 3 : 0, 0);
		}
		/* Which is gone leaves its sources to the next one. */
		fixture_unlimit(&fx, target[4]);
		story_expect(&fx, sources[f][4], RL_DROP_DENIED, &limit[3]);
		fixture_unlimit(&fx, target[3]);
		story_expect(&fx, sources[f][4], RL_PASS_ALLOWED, &limit[2]);
		fixture_unlimit(&fx, target[2]);
		story_expect(&fx, sources[f][4], RL_PASS_LIMIT, &limit[1]);
		fixture_unlimit(&fx, target[1]);
		story_expect(&fx, sources[f][4], RL_DROP_DENIED, &limit[0]);
		fixture_unlimit(&fx, target[0]);
		story_expect(&fx, sources[f][4], RL_PASS_NO_LIMIT, NULL);
	}
	fixture_close(&fx);
}

/* `any` is both families; a narrower limit, or trust, takes its sources out of it. */
StoreTest(trust, any)
{
	struct fixture fx = story_open(*store);
	struct rl_limit any = fixture_limit(&fx, "any", "deny", NULL);

	for (int f = 0; f < 2; f++) {
		struct rl_limit allowed = fixture_limit(&fx, families[f].target, "allow", NULL);

		story_expect(&fx, families[f].outside, RL_DROP_DENIED, &any);
		story_expect(&fx, families[f].source, RL_PASS_ALLOWED, &allowed);
	}
	any = fixture_limit(&fx, "any", "allow", NULL);
	for (int f = 0; f < 2; f++) {
		struct rl_limit denied = fixture_limit(&fx, families[f].target, "deny", NULL);

		story_expect(&fx, families[f].outside, RL_PASS_ALLOWED, &any);
		story_expect(&fx, families[f].source, RL_DROP_DENIED, &denied);
	}
	fixture_close(&fx);
}

/* Neither tenant, device nor `new` is charged, and no source is given a bucket. */
StoreTest(trust, is_charged_nowhere)
{
	static const char *const action[] = {"allow", "deny"};
	static const enum rl_reason reasons[] = {RL_PASS_ALLOWED, RL_DROP_DENIED};
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];

		for (int i = 0; i < 2; i++) {
			struct rl_limit trust =
			    fixture_limit(&fx, family->target, action[i], "tenant=acme", NULL);
			struct rl_limit tenant = fixture_limit(&fx, "tenant:acme", "1/h", "3", NULL);
			struct rl_limit device = fixture_limit(&fx, STORY_DEVICE, "1/h", "2", NULL);
			struct rl_limit fresh = fixture_limit(&fx, "new", "1/h", "1", NULL), out;
			struct rl_source none;
			struct ledger ledger;

			out = fixture_limit(&fx, family->outside, "1mpps", "tenant=acme", NULL);
			story_expect(&fx, family->outside, RL_PASS_LIMIT, &out);
			ledger = ledger_open(&fx, family->outside, &tenant, &device, NULL);
			story_repeat(&fx, family->source, 20, reasons[i], &trust);
			story_repeat(&fx, family->other, 20, reasons[i], &trust);
			ledger_same(&ledger);
			story_counted(&fx, &tenant, 1, 0, 0);
			story_counted(&fx, &device, 1, 0, 0);
			story_counted(&fx, &fresh, 0, 0, 0);
			story_counted(&fx, &trust, i ? 0 : 40, i ? 40 : 0, 0);
			cr_assert_not(fixture_source(&fx, &trust, family->source, &none));
			story_expect(&fx, family->outside, RL_PASS_LIMIT, &device);
			story_expect(&fx, family->outside, RL_DROP_DEVICE, &device);
			fixture_unlimit(&fx, family->target);
			fixture_unlimit(&fx, family->outside);
			fixture_unlimit(&fx, "tenant:acme");
			fixture_unlimit(&fx, STORY_DEVICE);
			fixture_unlimit(&fx, "new");
		}
	}
	fixture_close(&fx);
}

/* Whoever is trusted for a while, or denied, finds its bucket as it left it. */
StoreTest(trust, changes_refill_nothing)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		const char *targets[2] = {family->target, family->host};

		for (int i = 0; i < 2; i++) {
			struct rl_limit limit = fixture_limit(&fx, targets[i], "1/h", "1", NULL);

			story_expect(&fx, family->source, RL_PASS_LIMIT, &limit);
			story_expect(&fx, family->source, RL_DROP_SOURCE, &limit);
			limit = fixture_limit(&fx, targets[i], "allow", NULL);
			story_repeat(&fx, family->source, 5, RL_PASS_ALLOWED, &limit);
			limit = fixture_limit(&fx, targets[i], "deny", NULL);
			story_repeat(&fx, family->source, 5, RL_DROP_DENIED, &limit);
			limit = fixture_limit(&fx, targets[i], "1/h", "1", NULL);
			story_expect(&fx, family->source, RL_DROP_SOURCE, &limit);
			story_counted(&fx, &limit, 6, 7, 0);
			fixture_unlimit(&fx, targets[i]);
		}
	}
	fixture_close(&fx);
}

/* What is malformed has a source all the same. */
Test(trust, of_malformed_packets)
{
	static const struct rl_frame_spec malformed[2] = {
	    {.src = "203.0.113.7", .version = 5, .len = STORY_LEN},
	    {.src = "2001:db8:0:7::1", .version = 7, .len = STORY_LEN}};
	struct fixture fx = fixture_open();

	for (int f = 0; f < 2; f++) {
		struct rl_limit limit = fixture_limit(&fx, families[f].target, "deny", NULL);

		fixture_expect(&fx, &malformed[f], RL_DROP_DENIED, &limit);
		limit = fixture_limit(&fx, families[f].target, "allow", NULL);
		fixture_expect(&fx, &malformed[f], RL_PASS_ALLOWED, &limit);
	}
	fixture_close(&fx);
}

/* What must pass, and what shows that the hour is a hard one. */
enum { ARP, SOLICITATION, ADVERTISEMENT, ROUTER, ECHO4, ECHO6, FRAMES };

static const struct rl_frame_spec hour_specs[FRAMES] = {
    [ARP] = {.src = "203.0.113.7", .ethertype = 0x0806, .len = STORY_LEN},
    [SOLICITATION] =
	{.src = "2001:db8::7", .proto = 58, .icmp_type = 135, .hop_limit = 255, .len = STORY_LEN},
    [ADVERTISEMENT] =
	{.src = "2001:db8::7", .proto = 58, .icmp_type = 136, .hop_limit = 255, .len = STORY_LEN},
    [ROUTER] = {.src = "fe80::1", .proto = 58, .icmp_type = 134, .hop_limit = 255, .len = STORY_LEN},
    [ECHO4] = {.src = "203.0.113.7", .proto = 1, .len = STORY_LEN},
    [ECHO6] = {.src = "2001:db8::7", .proto = 58, .len = STORY_LEN},
};

#define HOUR_STEPS 12000 /* of 300 ms */

/* One of each frame every 300 ms for an hour. Returns how many of the last two passed. */
static __u64 an_hour(struct fixture *fx)
{
	static uint8_t frame[FRAMES][RL_FRAME_MAX];
	__u64 passed = 0;

	for (int i = 0; i < FRAMES; i++)
		rl_frame_build(&hour_specs[i], frame[i], RL_FRAME_MAX);
	for (int step = 0; step < HOUR_STEPS; step++) {
		for (int i = 0; i < ECHO4; i++)
			cr_assert_eq(fixture_run(fx, frame[i], STORY_LEN, 1), 2,
				     "%s: frame %d dropped in step %d", fx->what, i, step);
		for (int i = ECHO4; i < FRAMES; i++)
			passed += fixture_run(fx, frame[i], STORY_LEN, 1) == 2;
		fixture_advance(fx, 300 * MS);
	}
	fixture_account(fx, FRAMES * HOUR_STEPS, (__u64)FRAMES * HOUR_STEPS * STORY_LEN);
	return passed;
}

/* CASES.md 26. */
Test(trust, arp_and_discovery_outlive_deny_any, .timeout = 60)
{
	struct fixture fx = fixture_open();

	fx.what = "deny";
	fixture_limit(&fx, "any", "deny", NULL);
	fixture_limit(&fx, STORY_DEVICE, "1/h", "1", NULL);
	fixture_limit(&fx, "new", "1/h", "1", NULL);
	cr_assert_eq(an_hour(&fx), 0);
	cr_assert_eq(story_reason(&fx, RL_PASS_NOT_IP), HOUR_STEPS);
	cr_assert_eq(story_reason(&fx, RL_PASS_ND), 3 * HOUR_STEPS);
	cr_assert_eq(story_reason(&fx, RL_DROP_DENIED), 2 * HOUR_STEPS);
	fixture_close(&fx);
}

Test(trust, arp_and_discovery_outlive_low_limits, .timeout = 60)
{
	struct fixture fx = fixture_open();

	fx.what = "low limits";
	fixture_limit(&fx, "any", "1/h", "1", "tenant=acme", NULL);
	fixture_limit(&fx, "any", "class=icmp", "1/h", "1", NULL);
	fixture_limit(&fx, "tenant:acme", "1/h", "1", NULL);
	fixture_limit(&fx, STORY_DEVICE, "1/h", "1", NULL);
	cr_assert_eq(an_hour(&fx), 1);
	cr_assert_eq(story_reason(&fx, RL_PASS_NOT_IP), HOUR_STEPS);
	cr_assert_eq(story_reason(&fx, RL_PASS_ND), 3 * HOUR_STEPS);
	fixture_close(&fx);
}

/* Beyond its budget discovery is a packet like any other: then what is denied is denied. */
Test(trust, discovery_beyond_its_budget_is_denied)
{
	struct fixture fx = fixture_open();
	struct rl_limit any = fixture_limit(&fx, "any", "deny", NULL);

	cr_assert_eq(fixture_flood(&fx, &hour_specs[SOLICITATION], 999), 999);
	fixture_expect(&fx, &hour_specs[SOLICITATION], RL_PASS_ND, NULL);
	fixture_expect(&fx, &hour_specs[SOLICITATION], RL_DROP_DENIED, &any);
	any = fixture_limit(&fx, "any", "allow", NULL);
	fixture_expect(&fx, &hour_specs[SOLICITATION], RL_PASS_ALLOWED, &any);
	fixture_close(&fx);
}
