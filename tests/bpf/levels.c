// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * levels.c - source, class, tenant, device: a packet is charged at all of them or at none, the first that
 * refuses gives the reason; and whose tenant a prefix is.
 */
#include <stdio.h>
#include <string.h>

#include "stories.h"

enum { SOURCE, CLASS, TENANT, DEVICE, LEVELS };

/* A bucket that holds one frame, and one that holds many, refilled by next to nothing. */
struct unit_case {
	const char *rate, *little, *plenty;
	size_t len;
};

static const struct unit_case units[] = {
    {"1/h", "1", "100", STORY_LEN},
    {"1kbit", "2kb", "200kb", 2000},
};

static struct rl_limit level_set(struct fixture *fx, const struct family *family, int level, const char *rate,
				 const char *burst)
{
	switch (level) {
	case SOURCE:
		return fixture_limit(fx, family->target, rate, burst, "tenant=acme", NULL);
	case CLASS:
		return fixture_limit(fx, family->target, "class=udp", rate, burst, NULL);
	case TENANT:
		return fixture_limit(fx, "tenant:acme", rate, burst, NULL);
	default:
		return fixture_limit(fx, STORY_DEVICE, rate, burst, NULL);
	}
}

static void levels_clear(struct fixture *fx, const struct family *family)
{
	fixture_unlimit(fx, family->target);
	fixture_unlimit(fx, "tenant:acme");
	fixture_unlimit(fx, STORY_DEVICE);
}

/* All four refuse; one after the other is given room, until all admit. */
static void in_order(struct fixture *fx, const struct family *family, const struct unit_case *unit)
{
	static const enum rl_reason reasons[LEVELS] = {RL_DROP_SOURCE, RL_DROP_CLASS, RL_DROP_TENANT,
						       RL_DROP_DEVICE};
	struct rl_frame_spec spec = {.src = family->source, .len = unit->len};
	struct rl_limit limit[LEVELS];
	struct ledger ledger;

	for (int i = 0; i < LEVELS; i++)
		limit[i] = level_set(fx, family, i, unit->rate, unit->little);
	cr_assert_eq(fixture_send(fx, &spec).passed, LEVELS);
	for (int i = 0; i < LEVELS; i++) {
		fixture_expect(fx, &spec, reasons[i], &limit[i]); /* brings up to date what was changed */
		ledger = ledger_open(fx, family->source, &limit[0], &limit[1], &limit[2], &limit[3], NULL);
		for (int n = 0; n < 3; n++)
			fixture_expect(fx, &spec, reasons[i], &limit[i]);
		ledger_same(&ledger);
		limit[i] = level_set(fx, family, i, unit->rate, unit->plenty);
	}
	cr_assert_eq(fixture_send(fx, &spec).passed, LEVELS);
	ledger = ledger_open(fx, family->source, &limit[0], &limit[1], &limit[2], &limit[3], NULL);
	cr_assert_eq(fixture_send(fx, &spec).passed, LEVELS);
	for (int i = 0; i < LEVELS; i++)
		ledger_charged(&ledger, i, 1, unit->len);
}

StoreTest(levels, the_first_that_refuses_is_the_reason)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
			fx.what = units[u].rate;
			in_order(&fx, &families[f], &units[u]);
			levels_clear(&fx, &families[f]);
		}
	}
	fixture_close(&fx);
}

/* A level with two units refuses for either, and none of the others is charged in any. */
StoreTest(levels, either_unit_of_a_level_refuses_for_all)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_frame_spec small = {.src = family->source, .len = 100},
				     large = {.src = family->source, .len = 1000};
		struct rl_limit source, tenant, device;
		struct ledger ledger;

		source =
		    fixture_limit(&fx, family->target, "1/h", "100", "1kbit", "100kb", "tenant=acme", NULL);
		tenant = fixture_limit(&fx, "tenant:acme", "1/h", "4", "1kbit", "2.5kb", NULL);
		device = fixture_limit(&fx, STORY_DEVICE, "1/h", "100", "1kbit", "100kb", NULL);
		fixture_expect(&fx, &large, RL_PASS_LIMIT, &tenant);
		fixture_expect(&fx, &large, RL_PASS_LIMIT, &tenant);
		ledger = ledger_open(&fx, family->source, &source, &tenant, &device, NULL);
		fixture_expect(&fx, &large, RL_DROP_TENANT, &tenant); /* no bytes left */
		ledger_same(&ledger);
		fixture_expect(&fx, &small, RL_PASS_LIMIT, &tenant);
		fixture_expect(&fx, &small, RL_PASS_LIMIT, &tenant);
		for (int i = 0; i < 3; i++)
			ledger_charged(&ledger, i, 2, 200);
		ledger = ledger_open(&fx, family->source, &source, &tenant, &device, NULL);
		fixture_expect(&fx, &small, RL_DROP_TENANT, &tenant); /* no packets left */
		ledger_same(&ledger);
		levels_clear(&fx, family);
	}
	fixture_close(&fx);
}

/*
 * Each limit counts what passed under it and what it dropped itself; a source's tally what any level dropped.
 */
StoreTest(levels, counters)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit limit[LEVELS];

		limit[SOURCE] = level_set(&fx, family, SOURCE, "1/h", "5");
		limit[CLASS] = level_set(&fx, family, CLASS, "1/h", "4");
		limit[TENANT] = level_set(&fx, family, TENANT, "1/h", "6");
		limit[DEVICE] = level_set(&fx, family, DEVICE, "1/h", "8");
		story_repeat(&fx, family->source, 4, RL_PASS_LIMIT, &limit[CLASS]);
		story_repeat(&fx, family->source, 3, RL_DROP_CLASS, &limit[CLASS]);
		story_repeat(&fx, family->other, 2, RL_PASS_LIMIT, &limit[TENANT]);
		story_repeat(&fx, family->other, 5, RL_DROP_TENANT, &limit[TENANT]);
		story_repeat(&fx, family->outside, 2, RL_PASS_LIMIT, &limit[DEVICE]);
		story_repeat(&fx, family->outside, 7, RL_DROP_DEVICE, &limit[DEVICE]);
		limit[CLASS] = level_set(&fx, family, CLASS, "1/h", "100");
		limit[TENANT] = level_set(&fx, family, TENANT, "1/h", "100");
		limit[DEVICE] = level_set(&fx, family, DEVICE, "1/h", "100");
		story_repeat(&fx, family->source, 1, RL_PASS_LIMIT, &limit[SOURCE]);
		story_repeat(&fx, family->source, 9, RL_DROP_SOURCE, &limit[SOURCE]);
		story_counted(&fx, &limit[SOURCE], 7, 9, 0);
		story_counted(&fx, &limit[CLASS], 7, 3, 0);
		story_counted(&fx, &limit[TENANT], 7, 5, 0);
		story_counted(&fx, &limit[DEVICE], 9, 7, 0);
		fixture_expect_source(&fx, &limit[SOURCE], family->source, 5, 12, STORY_LEN);
		fixture_expect_source(&fx, &limit[SOURCE], family->other, 2, 5, STORY_LEN);
		fixture_expect_source(&fx, &limit[CLASS], family->source, 5, 12, STORY_LEN);
		levels_clear(&fx, family);
	}
	fixture_close(&fx);
}

/* A tenant's prefixes, of both families, share its bucket; another tenant's has its own. */
StoreTest(levels, a_tenant_is_one_bucket_for_its_prefixes)
{
	struct fixture fx = story_open(*store);
	struct rl_limit acme, other, named;

	named = fixture_limit(&fx, "203.0.113.0/24", "1mpps", "tenant=acme", NULL);
	fixture_limit(&fx, "198.51.100.7", "1mpps", "tenant=acme", NULL);
	fixture_limit(&fx, "2001:db8::/32", "1mpps", "tenant=acme", NULL);
	fixture_limit(&fx, "2001:db9::/32", "1mpps", "tenant=other", NULL);
	story_expect(&fx, "203.0.113.7", RL_PASS_LIMIT, &named);
	acme = fixture_limit(&fx, "tenant:acme", "10pps", "6", NULL);
	other = fixture_limit(&fx, "tenant:other", "10pps", "2", NULL);
	story_repeat(&fx, "203.0.113.7", 2, RL_PASS_LIMIT, &acme);
	story_expect(&fx, "203.0.113.8", RL_PASS_LIMIT, &acme);
	story_expect(&fx, "198.51.100.7", RL_PASS_LIMIT, &acme);
	story_repeat(&fx, "2001:db8:1::", 2, RL_PASS_LIMIT, &acme);
	story_expect(&fx, "2001:db8:1::", RL_DROP_TENANT, &acme);
	story_expect(&fx, "203.0.113.9", RL_DROP_TENANT, &acme);
	story_expect(&fx, "198.51.100.7", RL_DROP_TENANT, &acme);
	story_repeat(&fx, "2001:db9::7", 2, RL_PASS_LIMIT, &other);
	story_expect(&fx, "2001:db9::7", RL_DROP_TENANT, &other);
	fixture_advance(&fx, 100 * MS - 1);
	story_expect(&fx, "203.0.113.9", RL_DROP_TENANT, &acme);
	fixture_advance(&fx, 1);
	story_expect(&fx, "203.0.113.9", RL_PASS_LIMIT, &acme);
	story_expect(&fx, "2001:db8:2::", RL_DROP_TENANT, &acme);
	story_counted(&fx, &acme, 8, 5, 0); /* it counts from its first prefix on */
	/* Without its limit a tenant holds nobody back. */
	fixture_unlimit(&fx, "tenant:acme");
	for (int i = 0; i < 20; i++)
		cr_assert_eq(fixture_send(&fx, &(struct rl_frame_spec){.src = "203.0.113.7"}).reason,
			     RL_PASS_LIMIT);
	fixture_close(&fx);
}

/*
 * The tenant that a source's packet is charged to; NULL: none. Apart from it there is only its prefix's
 * limit.
 */
static void tenant_is(int line, struct fixture *fx, const char *source, const struct rl_limit *tenant)
{
	struct rl_frame_spec spec = {.src = source};
	struct fixture_outcome outcome = fixture_send(fx, &spec);
	bool found = !tenant;

	cr_assert_eq(outcome.reason, RL_PASS_LIMIT, "line %d, %s: reason %d", line, source, outcome.reason);
	cr_assert_eq(outcome.passed, tenant ? 2 : 1, "line %d, %s: held to %u limits", line, source,
		     outcome.passed);
	for (__u32 i = 0; tenant && i < outcome.passed; i++)
		found = found || outcome.slots[i] == tenant->slot;
	cr_assert(found, "line %d, %s: another tenant's", line, source);
}
#define tenant_is(...) tenant_is(__LINE__, __VA_ARGS__)

/*
 * Prefixes inside one another, from the widest to one source, and a source that only the first n of them
 * hold.
 */
struct nest {
	const char *prefix[4];
	const char *in[4];
	const char *between;	/* between the first and the second */
	const char *in_between; /* held by it and not by the second */
};

static const struct nest nests[] = {
    {{"10.0.0.0/8", "10.16.0.0/16", "10.16.1.0/24", "10.16.1.7"},
     {"10.99.0.1", "10.16.9.1", "10.16.1.1", "10.16.1.7"},
     "10.16.0.0/12",
     "10.17.0.1"},
    {{"2001:db8::/32", "2001:db8:10::/48", "2001:db8:10:10::/60", "2001:db8:10:11::/64"},
     {"2001:db8:9999::1", "2001:db8:10:99::1", "2001:db8:10:12::1", "2001:db8:10:11::1"},
     "2001:db8::/40",
     "2001:db8:11::1"},
};

struct tenants {
	struct rl_limit a, b, c;
};

static void tenants_are(struct fixture *fx, const struct nest *nest, const struct rl_limit *const whose[4])
{
	for (int i = 0; i < 4; i++)
		tenant_is(fx, nest->in[i], whose[i]);
}

/* At the end the widest is c's, the third is b's, and the others have none of their own. */
static void heirs_of_what_is_set(struct fixture *fx, const struct nest *nest, const struct tenants *of)
{
	const char *const *in = nest->in;
	const struct rl_limit *whose[4] = {&of->a, &of->a, &of->b, &of->b};

	/* From the inside out, so that each inherits from what comes later. */
	fixture_limit(fx, nest->prefix[3], "1mpps", NULL);
	tenant_is(fx, in[3], NULL);
	fixture_limit(fx, nest->prefix[1], "1mpps", NULL);
	fixture_limit(fx, nest->prefix[0], "1mpps", "tenant=a", NULL);
	tenant_is(fx, in[3], &of->a);
	fixture_limit(fx, nest->prefix[2], "1mpps", "tenant=b", NULL);
	tenants_are(fx, nest, whose);

	/*
	 * Whoever inherited from the widest goes with it; who has a tenant of its own, and its heirs, don't.
	 */
	fixture_limit(fx, nest->prefix[0], "1mpps", "tenant=c", NULL);
	whose[0] = whose[1] = &of->c;
	tenants_are(fx, nest, whose);
}

/* One set between the first and the second: it hands on its own tenant, or what is around it. */
static void heirs_of_what_is_between(struct fixture *fx, const struct nest *nest, const struct tenants *of)
{
	const char *const *in = nest->in;
	const struct rl_limit *whose[4] = {&of->c, &of->a, &of->b, &of->b};

	fixture_limit(fx, nest->between, "1mpps", NULL);
	tenant_is(fx, nest->in_between, &of->c);
	tenant_is(fx, in[1], &of->c);
	fixture_limit(fx, nest->between, "1mpps", "tenant=a", NULL);
	tenant_is(fx, nest->in_between, &of->a);
	tenants_are(fx, nest, whose);
	fixture_limit(fx, nest->between, "2mpps", NULL);
	tenant_is(fx, nest->in_between, &of->c);
	tenant_is(fx, in[1], &of->c);
	fixture_limit(fx, nest->between, "2mpps", "tenant=b", NULL);
	tenant_is(fx, in[1], &of->b);
	fixture_unlimit(fx, nest->between);
	tenant_is(fx, nest->in_between, &of->c);
	tenant_is(fx, in[1], &of->c);
}

/* Its own tenant taken away, and then itself: its heirs look further out. */
static void heirs_of_what_is_gone(struct fixture *fx, const struct nest *nest, const struct tenants *of)
{
	const char *const *in = nest->in;

	fixture_limit(fx, nest->prefix[2], "1mpps", NULL);
	tenant_is(fx, in[2], &of->c);
	tenant_is(fx, in[3], &of->c);
	fixture_limit(fx, nest->prefix[2], "1mpps", "tenant=b", NULL);
	tenant_is(fx, in[3], &of->b);
	fixture_unlimit(fx, nest->prefix[2]);
	tenant_is(fx, in[2], &of->c);
	tenant_is(fx, in[3], &of->c);
	fixture_unlimit(fx, nest->prefix[0]);
	story_expect(fx, in[0], RL_PASS_NO_LIMIT, NULL);
	tenant_is(fx, in[1], NULL);
	tenant_is(fx, in[3], NULL);

	/* `any` is around all of them. */
	fixture_limit(fx, "any", "1mpps", "tenant=a", NULL);
	for (int i = 0; i < 4; i++)
		tenant_is(fx, in[i], &of->a);
	fixture_unlimit(fx, "any");
	fixture_unlimit(fx, nest->prefix[1]);
	fixture_unlimit(fx, nest->prefix[3]);
}

static void heirs(struct fixture *fx, const struct nest *nest)
{
	const struct tenants of = {.a = fixture_limit(fx, "tenant:a", "1mpps", NULL),
				   .b = fixture_limit(fx, "tenant:b", "1mpps", NULL),
				   .c = fixture_limit(fx, "tenant:c", "1mpps", NULL)};

	heirs_of_what_is_set(fx, nest, &of);
	heirs_of_what_is_between(fx, nest, &of);
	heirs_of_what_is_gone(fx, nest, &of);
}

StoreTest(levels, a_prefix_inherits_its_tenant)
{
	struct fixture fx = story_open(*store);

	for (size_t i = 0; i < sizeof(nests) / sizeof(nests[0]); i++)
		heirs(&fx, &nests[i]);
	fixture_close(&fx);
}

/* Going over to another tenant and back refills neither the source's bucket nor the tenants'. */
StoreTest(levels, another_tenant_refills_nothing)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit a = fixture_limit(&fx, "tenant:a", "1/h", "2", NULL);
		struct rl_limit b = fixture_limit(&fx, "tenant:b", "1/h", "2", NULL), source;

		fixture_limit(&fx, family->target, "1/h", "4", "tenant=a", NULL);
		story_repeat(&fx, family->source, 2, RL_PASS_LIMIT, &a);
		story_expect(&fx, family->source, RL_DROP_TENANT, &a);
		fixture_limit(&fx, family->target, "1/h", "4", "tenant=b", NULL);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &b);
		fixture_limit(&fx, family->target, "1/h", "4", "tenant=a", NULL);
		story_expect(&fx, family->source, RL_DROP_TENANT, &a);
		source = fixture_limit(&fx, family->target, "1/h", "4", "tenant=b", NULL);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &b);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &source);
		story_expect(&fx, family->other, RL_DROP_TENANT, &b);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, "tenant:a");
		fixture_unlimit(&fx, "tenant:b");
	}
	fixture_close(&fx);
}

/* What no prefix names is held to its device, whatever IP packet it is. */
StoreTest(levels, without_a_prefix_the_device_holds)
{
	static const struct rl_frame_spec malformed[2] = {
	    {.src = "198.51.100.7", .version = 5, .len = STORY_LEN},
	    {.src = "2001:db9::1", .version = 7, .len = STORY_LEN}};
	struct fixture fx = story_open(*store);
	struct rl_limit device;

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];

		fixture_limit(&fx, family->target, "1mpps", "tenant=acme", NULL);
		fixture_limit(&fx, "tenant:acme", "1mpps", NULL);
		story_expect(&fx, family->outside, RL_PASS_NO_LIMIT, NULL);
		device = fixture_limit(&fx, STORY_DEVICE, "10pps", "3", NULL);
		story_expect(&fx, family->outside, RL_PASS_LIMIT, &device);
		fixture_expect(&fx, &malformed[f], RL_PASS_MALFORMED, &device);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &device);
		story_expect(&fx, family->outside, RL_DROP_DEVICE, &device);
		fixture_expect(&fx, &malformed[f], RL_DROP_DEVICE, &device);
		story_expect(&fx, family->source, RL_DROP_DEVICE, &device);
		fixture_advance(&fx, 100 * MS);
		story_expect(&fx, family->outside, RL_PASS_LIMIT, &device);
		story_expect(&fx, family->outside, RL_DROP_DEVICE, &device);
		story_counted(&fx, &device, 4, 4, 0);
		fixture_unlimit(&fx, STORY_DEVICE);
		story_expect(&fx, family->outside, RL_PASS_NO_LIMIT, NULL);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, "tenant:acme");
	}
	fixture_close(&fx);
}

/* What comes before every limit isn't charged to the device either. */
Test(levels, what_is_apart_is_charged_nowhere)
{
	static const struct rl_frame_spec apart[] = {
	    {.ethertype = 0x0806},
	    {.vlan = {0x8100, 0x8100, 0x8100}},
	    {.src = "2001:db9::1", .vlan = {0x8100, 0x8100, 0x8100}},
	    {.src = "2001:db9::1", .proto = 58, .icmp_type = 135, .hop_limit = 255},
	};
	static const enum rl_reason reasons[] = {RL_PASS_NOT_IP, RL_PASS_UNPARSED, RL_PASS_UNPARSED,
						 RL_PASS_ND};
	struct fixture fx = fixture_open();
	struct rl_limit device = fixture_limit(&fx, STORY_DEVICE, "1/h", "1", NULL);
	struct ledger ledger;

	story_expect(&fx, "198.51.100.7", RL_PASS_LIMIT, &device);
	ledger = ledger_open(&fx, "198.51.100.7", &device, NULL);
	for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
		for (int n = 0; n < 3; n++)
			fixture_expect(&fx, &apart[i], reasons[i], NULL);
	ledger_same(&ledger);
	story_expect(&fx, "198.51.100.7", RL_DROP_DEVICE, &device);
	story_expect(&fx, "2001:db9::1", RL_DROP_DEVICE, &device);
	story_counted(&fx, &device, 1, 2, 0);
	fixture_close(&fx);
}

/*
 * A source that its tenant or device refuses has lost nothing: it sends its whole burst as soon as they have
 * room.
 */
StoreTest(levels, a_refused_source_keeps_its_burst)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit source = level_set(&fx, family, SOURCE, "1/h", "20");
		struct rl_limit tenant = level_set(&fx, family, TENANT, "1mpps", "1");
		struct rl_limit device = level_set(&fx, family, DEVICE, "1/h", "10");

		story_expect(&fx, family->source, RL_PASS_LIMIT, &source);
		story_repeat(&fx, family->source, 50, RL_DROP_TENANT, &tenant);
		for (int i = 0; i < 9; i++) {
			fixture_advance(&fx, US);
			story_expect(&fx, family->source, RL_PASS_LIMIT, &device);
		}
		fixture_advance(&fx, US);
		story_repeat(&fx, family->source, 50, RL_DROP_DEVICE, &device);
		fixture_unlimit(&fx, STORY_DEVICE);
		level_set(&fx, family, TENANT, "1mpps", "1000");
		fixture_advance(&fx, MS);
		story_repeat(&fx, family->source, 10, RL_PASS_LIMIT, &source);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &source);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, "tenant:acme");
	}
	fixture_close(&fx);
}
