// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an operator can say of whom: each contradiction is refused with its reason, and changes nothing.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "../../bpf/rl_gcra.h"
#include "../../user/class.h"
#include "limits.h"
#include "random.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef unsigned __int128 u128;

/* Completing `terms` for `target` is refused with these words, and changes nothing. */
static void check_refused(const char *target, struct rl_terms terms, int code, const char *says,
			  const char *too)
{
	struct rl_target whose = target_of(target);
	struct rl_terms untouched = terms;
	struct rl_error err = {0};
	int ret = rl_terms_complete(&whose, &terms, &err);

	cr_expect_eq(ret, -code, "%s: %d, %s; expected \"%s\"", target, ret, err.text, says);
	cr_expect_eq(err.kind, RL_ERROR_USAGE, "%s: %s", target, says);
	cr_expect(strstr(err.text, says) && strstr(err.text, too), "%s says: %s", target, err.text);
	cr_expect(!memcmp(&terms, &untouched, sizeof(terms)), "%s: changed", target);
}

/* Each word that a limit can say, alone. */
enum word { TENANT, CLASS, SHARED, PER, COST, PRIORITY, RESERVE, SHADOW, WORDS };

static const char *const word_names[WORDS] = {"--tenant", "--class",	"--shared",  "--per",
					      "--cost",	  "--priority", "--reserve", "--shadow"};

static void say(struct rl_terms *terms, enum word word)
{
	struct rl_error err;

	if (word == TENANT)
		strcpy(terms->tenant, "acme");
	if (word == CLASS)
		rl_class_parse("syn", &terms->class, &err);
	if (word == SHARED)
		terms->shared = 1;
	if (word == PER)
		terms->per = 28;
	if (word == COST)
		rl_costs_parse("syn=10", terms, &err);
	if (word == PRIORITY)
		terms->priority = RL_PRIORITY_HIGH;
	if (word == RESERVE)
		rl_reserve_parse("high=20%,normal=5%", terms, &err);
	if (word == SHADOW)
		terms->shadow = 1;
}

/* The table of limit.h, line by line. */
Test(words, who_can_have_what)
{
	static const struct {
		const char *target;
		const char can[WORDS + 1]; /* in the order of enum word */
	} cases[] = {
	    {"10.0.0.0/24", "xxxxxx-x"}, {"10.0.0.0/28", "xxxxxx-x"}, {"any", "xxx-xx-x"},
	    {"tenant:acme", "-----xxx"}, {"dev:eth0", "------xx"},    {"new", "-------x"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (int word = 0; word < WORDS; word++) {
			struct rl_terms terms = terms_said("1kpps", NULL);

			say(&terms, (enum word)word);
			if (cases[i].can[word] == 'x')
				terms_completed(cases[i].target, terms);
			else
				check_refused(cases[i].target, terms, EINVAL, word_names[word],
					      cases[i].target);
		}
	}
}

Test(words, who_has_them_is_told)
{
	static const struct {
		const char *target;
		enum word word;
		const char *says, *too;
	} cases[] = {
	    {"tenant:acme", TENANT, "tenant:acme takes no --tenant", "for addresses, prefixes and any"},
	    {"tenant:acme", CLASS, "tenant:acme takes no --class", "leave it out"},
	    {"dev:eth0", SHARED, "dev:eth0 takes no --shared", "for addresses, prefixes and any"},
	    {"dev:eth0", PER, "dev:eth0 takes no --per", "for prefixes"},
	    {"dev:eth0", COST, "dev:eth0 takes no --cost", "for addresses, prefixes and any"},
	    {"dev:eth0", PRIORITY, "dev:eth0 takes no --priority", "any and tenants"},
	    {"new", PRIORITY, "new takes no --priority", "leave it out"},
	    {"new", RESERVE, "new takes no --reserve", "for tenants and devices"},
	    {"10.0.0.0/24", RESERVE, "10.0.0.0/24 takes no --reserve", "for tenants and devices"},
	    {"any", PER, "--per /28 of any", "0.0.0.0/0 or ::/0"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_terms terms = terms_said("1kpps", NULL);

		say(&terms, cases[i].word);
		check_refused(cases[i].target, terms, EINVAL, cases[i].says, cases[i].too);
	}
}

Test(words, a_class_has_rates_and_shadow)
{
	for (int word = 0; word < WORDS; word++) {
		struct rl_terms terms = terms_said("100pps", NULL);

		say(&terms, CLASS);
		say(&terms, (enum word)word);
		if (word == CLASS || word == SHADOW)
			terms_completed("198.51.100.0/24", terms);
		else
			check_refused("198.51.100.0/24", terms, EINVAL, word_names[word],
				      word == RESERVE ? "tenants and devices"
						      : "class syn of 198.51.100.0/24 takes no");
	}
	check_refused("198.51.100.0/24",
		      (struct rl_terms){.priority = RL_PRIORITY_UNSET, .class = {RL_KIND_UDP, 0, 0, 65535}},
		      EINVAL, "no rate was given for class udp of 198.51.100.0/24", "expected");
}

Test(words, shared_with_per)
{
	struct rl_terms terms = terms_said("1kpps", NULL);

	terms.shared = 1;
	terms.per = 28;
	check_refused("198.51.100.0/24", terms, EINVAL, "--shared makes one bucket of 198.51.100.0/24",
		      "--per /28 one for each /28");
}

Test(words, per_lies_between_target_and_address)
{
	static const struct {
		const char *target;
		__u8 least, most;
	} cases[] = {{"198.51.100.0/24", 24, 32}, {"10.0.0.0/8", 8, 32},      {"0.0.0.0/0", 1, 32},
		     {"10.0.0.1", 32, 32},	  {"2001:db8::/32", 32, 128}, {"::/0", 1, 128},
		     {"2001:db8::/65", 65, 128},  {"2001:db8::1", 128, 128}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char range[24];

		if (cases[i].least == cases[i].most)
			snprintf(range, sizeof(range), "one source already");
		else
			snprintf(range, sizeof(range), "expected /%u to /%u", cases[i].least, cases[i].most);
		for (unsigned int per = 1; per <= 128; per++) {
			struct rl_terms terms = terms_said("1kpps", NULL);

			terms.per = (__u8)per;
			if (per >= cases[i].least && per <= cases[i].most)
				cr_expect_eq(terms_completed(cases[i].target, terms).per, per);
			else
				check_refused(cases[i].target, terms, ERANGE, cases[i].target, range);
		}
	}
}

Test(words, allow_and_deny)
{
	static const char *const names[] = {[RL_ACTION_ALLOW] = "allow", [RL_ACTION_DENY] = "deny"};
	static const char *const others[] = {"tenant:acme", "dev:eth0", "new"};

	for (int action = RL_ACTION_ALLOW; action <= RL_ACTION_DENY; action++) {
		struct rl_terms terms = RL_TERMS_INIT, rate = terms_said("1kpps", NULL),
				burst = terms_said(NULL, "64kib"), untouched;
		char text[RL_TERMS_TEXT], says[64];
		struct rl_limit limit;

		terms.action = rate.action = burst.action = (__u8)action;
		untouched = terms;
		terms = terms_completed("10.0.0.0/8", terms);
		cr_expect(!memcmp(&terms, &untouched, sizeof(terms)), "%s has no bursts", names[action]);
		cr_expect_str_eq(rl_terms_print(&terms, text), names[action]);
		limit = limit_under("10.0.0.0/8", &terms, NULL, LIMITS_START);
		cr_expect_eq(limit.action, action);
		cr_expect(!limit.rate[RL_PACKETS].mult && !limit.rate[RL_BYTES].mult);

		for (size_t i = 0; i < COUNT(others); i++)
			check_refused(others[i], terms, EINVAL, others[i],
				      "expected an address, a prefix or any");
		snprintf(says, sizeof(says), "%s of 10.0.0.0/8 takes no rate", names[action]);
		check_refused("10.0.0.0/8", rate, EINVAL, says, "expected set-limit");
		check_refused("10.0.0.0/8", burst, EINVAL, says, "expected set-limit");
		for (int word = 0; word < WORDS; word++) {
			struct rl_terms more = terms;

			say(&more, (enum word)word);
			snprintf(says, sizeof(says), "%s of 10.0.0.0/8 takes no %s", names[action],
				 word_names[word]);
			if (word == TENANT || (word == SHADOW && action == RL_ACTION_DENY))
				terms_completed("10.0.0.0/8", more);
			else if (word != RESERVE)
				check_refused("10.0.0.0/8", more, EINVAL, says, "leave it out");
		}
	}
}

/* A tenant can have a priority to give to its prefixes, without a rate of its own. */
Test(words, rates_that_are_missing)
{
	struct rl_terms priority = RL_TERMS_INIT, more;

	say(&priority, PRIORITY);
	more = terms_completed("tenant:acme", priority);
	cr_expect(!memcmp(&more, &priority, sizeof(more)));
	say(&more, SHADOW);
	terms_completed("tenant:acme", more);
	check_refused("10.0.0.0/8", priority, EINVAL, "no rate was given for 10.0.0.0/8", "expected");
	say(&priority, RESERVE);
	check_refused("tenant:acme", priority, EINVAL, "no rate was given for tenant:acme", "expected");
	for (int i = 0; i < 3; i++) {
		static const char *const others[] = {"tenant:acme", "dev:eth0", "new"};
		char says[64];

		more = (struct rl_terms)RL_TERMS_INIT;
		snprintf(says, sizeof(says), "no rate was given for %s", others[i]);
		check_refused(others[i], more, EINVAL, says, "expected");
		say(&more, SHADOW);
		check_refused(others[i], more, EINVAL, says, "expected");
	}
}

Test(words, new_counts_sources)
{
	struct rl_terms terms = terms_completed("new", terms_said("20kpps", NULL));
	struct rl_limit limit = limit_under("new", &terms, NULL, LIMITS_START),
			same = limit_of("20kpps", NULL);

	cr_expect_eq(terms.burst_packets, 5000);
	cr_expect(!memcmp(limit.rate, same.rate, sizeof(limit.rate)), "a source is a packet");
	check_refused("new", terms_said("10mbit", NULL), EINVAL, "new counts sources", "20kpps");
	check_refused("new", terms_said("20kpps 10mbit", NULL), EINVAL, "new counts sources", "20kpps");
	check_refused("new", terms_said("20kpps", "64kib"), EINVAL, "new counts sources", "2000");
}

static struct rl_terms terms_costing(const char *rates, const char *bursts, const char *costs)
{
	struct rl_terms terms = terms_said(rates, bursts);
	struct rl_error err = {0};

	cr_assert_eq(rl_costs_parse(costs, &terms, &err), 0, "%s", err.text);
	return terms;
}

/* A bucket that can't hold the dearest packet would drop it for ever. */
Test(cost, fits_into_the_burst)
{
	struct rl_terms terms;

	check_refused("any", terms_costing("100pps", "5", "syn=10"), ERANGE, "burst 5p", "cost syn=10");
	check_refused("any", terms_costing("100pps", "5", "syn=10"), ERANGE, "expected at least 10p", "");
	check_refused("any", terms_costing("100pps", "9", "icmp=2,tcp/443=10,frag=4"), ERANGE, "burst 9p",
		      "cost tcp/443=10");
	terms_completed("any", terms_costing("100pps", "10", "syn=10,icmp=2"));
	terms_completed("any", terms_costing("100pps", "1", "syn=1"));
	/* It counts at tenant and device too: without a rate of packets it is no contradiction. */
	terms_completed("any", terms_costing("10mbit", NULL, "syn=65535"));

	/* The default is never refused. */
	terms = terms_completed("any", terms_costing("100pps", NULL, "syn=10"));
	cr_expect_eq(terms.burst_packets, 25);
	terms = terms_completed("any", terms_costing("100pps", NULL, "syn=65535"));
	cr_expect_eq(terms.burst_packets, 65535);

	/* 1/h fills 5003 packets in the longest time that there is. */
	terms_completed("any", terms_costing("1/h", NULL, "syn=5003"));
	check_refused("any", terms_costing("1/h", NULL, "syn=5004"), ERANGE, "cost syn=5004", "at most 5003");
	check_refused("any", terms_costing("1/h", "16", "syn=5004"), ERANGE, "cost syn=5004", "at most 5003");
	check_refused("any", terms_costing("1/h", "5004", "syn=10"), ERANGE, "burst 5004p is out of range",
		      "expected 10p to 5003p");
}

static struct rl_terms terms_reserving(const char *rates, const char *bursts, __u16 high, __u16 normal)
{
	struct rl_terms terms = terms_said(rates, bursts);

	terms.reserve[RL_PRIORITY_HIGH] = high;
	terms.reserve[RL_PRIORITY_NORMAL] = normal;
	return terms;
}

/* Low stops at 25 % left, normal at 20 %, high never. */
Test(reserve, nests)
{
	struct rl_terms terms = terms_completed("tenant:acme", terms_reserving("50kpps", "100k", 2000, 500));
	struct rl_limit limit = limit_under("tenant:acme", &terms, NULL, LIMITS_START);
	const struct rl_rate *rate = &limit.rate[RL_PACKETS];

	cr_expect_eq(rate->kept[RL_PRIORITY_HIGH], 0);
	cr_expect_eq(rate->kept[RL_PRIORITY_NORMAL], 20000 * rl_gcra_cost(rate, 1));
	cr_expect_eq(rate->kept[RL_PRIORITY_LOW], 25000 * rl_gcra_cost(rate, 1));
	cr_expect_eq(rate->owed, rate->burst);
	for (int priority = 0; priority < RL_PRIORITIES; priority++)
		cr_expect_eq(limit.rate[RL_BYTES].kept[priority], 0);
}

Test(reserve, without_one_nothing_is_kept)
{
	struct rl_limit limit = limit_of("1kpps 10mbit", NULL);

	for (int unit = 0; unit < RL_UNITS; unit++)
		for (int priority = 0; priority < RL_PRIORITIES; priority++)
			cr_expect_eq(limit.rate[unit].kept[priority], 0);
}

/* How many packets of one token a priority can take from a full bucket. */
static __u64 packets_admitted(const struct rl_rate *rate, enum rl_priority priority)
{
	return (rate->burst - rate->kept[priority]) / rl_gcra_cost(rate, 1);
}

/* Never more than what was stated, and less by no more than a packet: exact where the share is a whole number. */
Test(reserve, never_leaves_more_than_stated)
{
	__u64 state = 20261130;

	for (int i = 0; i < 20000; i++) {
		__u16 high = (__u16)random_between(&state, 0, 9999),
		      normal = (__u16)random_between(&state, 0, 9999U - high);
		struct rl_terms terms = RL_TERMS_INIT;
		struct rl_target acme = target_of("tenant:acme");
		struct rl_limit limit;
		struct rl_error err = {0};

		terms.packets_per_hour = random_magnitude(&state, 1, RL_PACKETS_PER_HOUR_MAX);
		terms.bits_per_second = random_magnitude(&state, RL_BITS_MIN, RL_BITS_MAX);
		terms.reserve[0] = high;
		terms.reserve[1] = normal;
		if (rl_terms_complete(&acme, &terms, &err)) {
			cr_assert(strstr(err.text, "expected a smaller reserve"), "%s", err.text);
			continue;
		}
		limit = limit_under("tenant:acme", &terms, NULL, LIMITS_START);
		for (int unit = 0; unit < RL_UNITS; unit++) {
			const struct rl_rate *rate = &limit.rate[unit];

			cr_assert_eq(rate->kept[RL_PRIORITY_HIGH], 0);
			for (int p = RL_PRIORITY_NORMAL; p <= RL_PRIORITY_LOW; p++) {
				u128 kept = (u128)rate->kept[p] * RL_RESERVE_WHOLE;
				u128 stated =
				    (u128)rate->burst * (p == RL_PRIORITY_LOW ? high + normal : high);

				cr_assert_eq(rate->kept[p] & RL_GCRA_TAG, 0);
				cr_assert_leq(rate->kept[p], rate->burst);
				cr_assert(kept >= stated && kept < stated + 256 * (u128)RL_RESERVE_WHOLE,
					  "%u+%u of %llu", high, normal, rate->burst);
			}
		}
		cr_assert_geq(packets_admitted(&limit.rate[RL_PACKETS], RL_PRIORITY_LOW), 1);
		cr_assert_leq((u128)packets_admitted(&limit.rate[RL_PACKETS], RL_PRIORITY_NORMAL) *
				  RL_RESERVE_WHOLE,
			      (u128)terms.burst_packets * (RL_RESERVE_WHOLE - high));
	}
}

/* What is left to the lowest priority holds at least the dearest packet, and the least burst that is named does. */
Test(reserve, leaves_a_packet_to_the_lowest)
{
	static const struct {
		const char *rate, *burst;
		__u16 high, normal;
		const char *least;
	} cases[] = {
	    {"100pps", "3", 5000, 2500, "4p"},
	    {"100pps", "1", 1, 0, "2p"},
	    {"100pps", "1", 0, 1, "2p"},
	    {"100pps", "99", 9900, 0, "100p"},
	    {"100pps", "9999", 5000, 4999, "10000p"},
	    {"10mbit", "1.522kb", 0, 1, "1.523kb"},
	    {"10mbit", "3.043kb", 5000, 0, "3.044kb"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_terms terms =
		    terms_reserving(cases[i].rate, cases[i].burst, cases[i].high, cases[i].normal);
		char reserve[RL_RESERVE_TEXT], least[RL_UNIT_TEXT + 24];

		rl_reserve_print(&terms, reserve);
		snprintf(least, sizeof(least), "expected at least %s,", cases[i].least);
		check_refused("dev:eth0", terms, ERANGE, least, reserve);
		check_refused("tenant:acme", terms, ERANGE, "leaves the lowest priority less than one",
			      cases[i].burst);
		terms_completed("dev:eth0", terms_reserving(cases[i].rate, cases[i].least, cases[i].high,
							    cases[i].normal));
	}
	check_refused("dev:eth0", terms_reserving("100pps", NULL, 10000, 0), ERANGE,
		      "reserve high=100% of dev:eth0 leaves nothing", "expected less than 100%");
	check_refused("dev:eth0", terms_reserving("100pps", NULL, 5000, 5000), ERANGE,
		      "reserve high=50%,normal=50% of dev:eth0 leaves nothing", "expected less than 100%");
	check_refused("dev:eth0", terms_reserving("100pps", NULL, 9000, 9000), ERANGE, "leaves nothing", "");
	check_refused("dev:eth0", terms_reserving("1/h", NULL, 9999, 0), ERANGE,
		      "reserve high=99.99% leaves the lowest priority less than one packet",
		      "1/h can have, 5003p");
}

/* Can the lowest priority send the largest packet into a full bucket of this burst? Computed anew, by another way. */
static bool holds_a_packet(const struct rl_terms *terms, enum rl_unit unit, __u64 burst)
{
	struct rl_rate rate;
	u128 left;
	int rc;

	if (unit == RL_PACKETS)
		rc = rl_rate_compute(terms->packets_per_hour, 3600, burst, 1, &rate);
	else
		rc = rl_rate_compute(terms->bits_per_second, 8, burst, 60, &rate);
	cr_assert_eq(rc, 0);
	left =
	    (u128)rate.burst * (RL_RESERVE_WHOLE - terms->reserve[0] - terms->reserve[1]) / RL_RESERVE_WHOLE;
	return left >> 8 >= rl_gcra_cost(&rate, unit == RL_PACKETS ? 1 : RL_BURST_BYTES_MTU) >> 8;
}

/* For every rate: the least burst that is named holds a packet and is accepted, one less doesn't and isn't. */
Test(reserve, least_burst_is_exact)
{
	__u64 state = 7;

	for (int i = 0; i < 20000; i++) {
		struct rl_terms terms = RL_TERMS_INIT, least;
		struct rl_target acme = target_of("tenant:acme");
		struct rl_error err = {0};
		enum rl_unit unit = i & 1 ? RL_PACKETS : RL_BYTES;
		__u64 *burst = unit == RL_PACKETS ? &least.burst_packets : &least.burst_bytes;

		if (unit == RL_PACKETS)
			terms.packets_per_hour = random_magnitude(&state, 100000, RL_PACKETS_PER_HOUR_MAX);
		else
			terms.bits_per_second = random_magnitude(&state, 100000, RL_BITS_MAX);
		/* Where the least burst is a whole number, rounding can take one more. */
		terms.reserve[0] = i % 3 ? (__u16)random_between(&state, 1, 9999) : 5000;
		least = terms;
		*burst = 1;
		cr_assert_eq(rl_terms_complete(&acme, &least, &err), -ERANGE);
		*burst = 0;
		cr_assert_eq(rl_burst_parse(strtok(strstr(err.text, "at least ") + 9, ","), &least, &err), 0);
		cr_assert_eq(rl_terms_complete(&acme, &least, &err), 0, "%s", err.text);
		cr_assert(holds_a_packet(&terms, unit, *burst), "%llu", *burst);
		--*burst;
		cr_assert_eq(rl_terms_complete(&acme, &least, &err), -ERANGE);
		cr_assert(!holds_a_packet(&terms, unit, *burst), "%llu", *burst);
		cr_assert_eq(rl_terms_complete(&acme, &terms, &err), 0, "the default: %s", err.text);
	}
}

Test(terms, printed)
{
	struct rl_terms terms = terms_of("1kpps 10mbit", "2000 256kb"), none = RL_TERMS_INIT;
	char text[RL_TERMS_TEXT];
	struct rl_error err;

	cr_expect_str_eq(rl_terms_print(&none, text), "no rate");
	strcpy(none.tenant, "acme");
	cr_expect_str_eq(rl_terms_print(&none, text), "no rate, tenant acme");
	cr_expect_str_eq(rl_terms_print(&terms, text), "1kpps burst 2000p and 10mbit burst 256kb");
	strcpy(terms.tenant, "acme");
	terms.shadow = 1;
	cr_expect_str_eq(rl_terms_print(&terms, text),
			 "1kpps burst 2000p and 10mbit burst 256kb, tenant acme, shadow");
	terms.bits_per_second = 0;
	terms.per = 28;
	terms.priority = RL_PRIORITY_HIGH;
	rl_costs_parse("syn=10,icmp=2", &terms, &err);
	cr_expect_str_eq(rl_terms_print(&terms, text), "1kpps burst 2000p, tenant acme, per /28, "
						       "cost syn=10,icmp=2, priority high, shadow");
	terms = terms_reserving("600mbit", "1mb", 2000, 500);
	terms.shared = 1;
	cr_expect_str_eq(rl_terms_print(&terms, text),
			 "600mbit burst 1mb, shared, reserve high=20%,normal=5%");
}

/* The longest that there can be. */
Test(terms, printed_fits)
{
	struct rl_terms terms = RL_TERMS_INIT;
	char text[RL_TERMS_TEXT];

	terms.packets_per_hour = terms.bits_per_second = terms.burst_packets = terms.burst_bytes = ~0ULL;
	memset(terms.tenant, 'x', sizeof(terms.tenant) - 1);
	terms.shared = terms.shadow = 1;
	terms.per = 255;
	terms.priority = RL_PRIORITY_NORMAL;
	terms.reserve[0] = terms.reserve[1] = 65535;
	terms.cost_count = RL_MAX_COSTS;
	for (int i = 0; i < RL_MAX_COSTS; i++)
		terms.cost[i] = (struct rl_cost){{RL_KIND_UDP | RL_KIND_PORTS, 0, 10000, 20000}, 65535};
	rl_terms_print(&terms, text);
	cr_expect_str_eq(strrchr(text, ','), ", shadow");
}
