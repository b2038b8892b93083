// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>

#include "../../bpf/rl_gcra.h"
#include "../../user/class.h"
#include "limits.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef unsigned __int128 u128;

static const char *const packet_rates[] = {"1/h",    "1/m",	  "1pps",  "7pps",
					   "100pps", "333333pps", "1mpps", "148.8mpps"};
static const char *const bit_rates[] = {"1kbit",   "15mbit", "29mbit",	"30mbit", "600mbit",
					"1.2gbit", "40gbit", "400gbit", "800gbit"};

/*
 * What `tokens` cost by the bucket's arithmetic against what they take at the exact rate of `rate` tokens per
 * `seconds`: never less, and at most 0.1 % more. Both sides in ns * 2^shift * rate.
 */
static void check_cost(const char *name, const struct rl_rate *r, __u64 tokens, __u64 rate, __u64 seconds)
{
	u128 exact = ((u128)tokens * seconds * 1000000000 << r->shift); /* < 2^(17 + 12 + 30 + 22) */
	u128 got = (u128)rl_gcra_cost(r, tokens) * rate;

	cr_expect(got >= exact, "%s: %llu tokens are too cheap", name, tokens);
	cr_expect((got - exact) * 1000 <= exact, "%s: %llu tokens cost 0.1 %% too much", name, tokens);
}

static void check_rate(const char *name, const struct rl_rate *r)
{
	cr_expect(r->shift >= 8 && r->shift <= 22, "%s: shift %u", name, r->shift);
	cr_expect_lt(r->mult, 1ULL << 54, "%s", name);
	cr_expect_lt(r->burst, RL_GCRA_BURST_MAX, "%s", name);
	cr_expect_eq(r->burst & RL_GCRA_TAG, 0, "%s", name);
	cr_expect_eq(r->pad, 0);
}

Test(limit, packet_rates)
{
	for (size_t i = 0; i < COUNT(packet_rates); i++) {
		struct rl_limit limit = limit_of(packet_rates[i], NULL);
		const struct rl_rate *r = &limit.rate[RL_PACKETS];

		check_rate(packet_rates[i], r);
		check_cost(packet_rates[i], r, 1, limit.terms.packets_per_hour, 3600);
		cr_expect_eq(r->burst, limit.terms.burst_packets * rl_gcra_cost(r, 1),
			     "%s: a full bucket holds its burst", packet_rates[i]);
		cr_expect_eq(limit.rate[RL_BYTES].mult, 0);
		cr_expect_eq(limit.rate[RL_BYTES].burst, 0);
		cr_expect_eq(limit.rate[RL_BYTES].shift, 0);
	}
}

Test(limit, bit_rates)
{
	static const __u64 sizes[] = {60, 61, 64, 100, 577, 1500, 1522, 9014, 65535, 131071};

	for (size_t i = 0; i < COUNT(bit_rates); i++) {
		struct rl_limit limit = limit_of(bit_rates[i], NULL);
		const struct rl_rate *r = &limit.rate[RL_BYTES];

		check_rate(bit_rates[i], r);
		cr_expect_lt(r->mult, 1ULL << 36, "%s", bit_rates[i]);
		for (size_t j = 0; j < COUNT(sizes); j++)
			check_cost(bit_rates[i], r, sizes[j], limit.terms.bits_per_second, 8);
		cr_expect_eq(limit.rate[RL_PACKETS].mult, 0);
	}
}

/* One frame as large as the burst must pass a full bucket, and one byte more must not. */
Test(limit, byte_burst_holds_one_frame_of_its_size)
{
	for (size_t i = 0; i < COUNT(bit_rates); i++) {
		struct rl_limit limit = limit_of(bit_rates[i], "1.522kb");
		const struct rl_rate *r = &limit.rate[RL_BYTES];

		cr_expect_eq(r->burst, rl_gcra_cost(r, 1522), "%s", bit_rates[i]);
		cr_expect_gt(rl_gcra_cost(r, 1523), r->burst, "%s", bit_rates[i]);
	}
}

/* The shift is the smallest that is exact enough, since each step halves the longest idle time. */
Test(limit, shift)
{
	static const struct {
		const char *rate;
		enum rl_unit unit;
		unsigned int shift;
	} cases[] = {
	    {"1/h", RL_PACKETS, 8},	   {"244kpps", RL_PACKETS, 8}, {"245kpps", RL_PACKETS, 9},
	    {"148.8mpps", RL_PACKETS, 18}, {"1kbit", RL_BYTES, 8},     {"117mbit", RL_BYTES, 8},
	    {"118mbit", RL_BYTES, 9},	   {"800gbit", RL_BYTES, 21},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_limit limit = limit_of(cases[i].rate, NULL);

		cr_expect_eq(limit.rate[cases[i].unit].shift, cases[i].shift, "%s: %u", cases[i].rate,
			     limit.rate[cases[i].unit].shift);
	}
}

Test(limit, known_values)
{
	struct rl_rate r;

	cr_assert_eq(rl_rate_compute(100, 1, 200, 1, &r), 0);
	cr_expect_eq(r.shift, 8);
	cr_expect_eq(r.mult, 10000000ULL << RL_GCRA_FRAC);
	cr_expect_eq(r.burst, 2000000000ULL << 8);
	cr_assert_eq(rl_rate_compute(800000000000, 8, 2000, 60, &r), 0);
	cr_expect_eq(r.shift, 21);
	cr_expect_eq(r.mult, 335545);	       /* 0.01 ns * 2^13 * 2^12 = 335544.32 */
	cr_expect_eq(r.burst, 163841ULL << 8); /* 2000 * 335545 / 2^12 = 163840.3 */
}

Test(limit, compute_refuses_what_does_not_fit)
{
	struct rl_rate r = {.mult = 7}, untouched = r;

	cr_expect_eq(rl_rate_compute(1, 3600, 5003, 1, &r), 0); /* 5003 h < 2^54 ns < 5004 h */
	r = untouched;
	cr_expect_eq(rl_rate_compute(1, 3600, 5004, 1, &r), -ERANGE);
	cr_expect_eq(rl_rate_compute(1, 3600, ~0ULL, 1, &r), -ERANGE);
	cr_expect_eq(rl_rate_compute(1000, 8, ~0ULL, 60, &r), -ERANGE);
	cr_expect_eq(rl_rate_compute(~0ULL, 1, 1, 1, &r), -ERANGE);
	cr_expect_eq(rl_rate_compute(1, 36000, 1, 1, &r), -ERANGE);
	cr_expect_eq(memcmp(&r, &untouched, sizeof(r)), 0);
}

Test(limit, default_bursts)
{
	static const struct {
		const char *rate;
		__u64 packets, bytes;
	} cases[] = {
	    {"1/h", 16, 0},
	    {"64pps", 16, 0},
	    {"65pps", 17, 0},
	    {"1kpps", 250, 0},
	    {"1001pps", 251, 0},
	    {"148.8mpps", 37200000, 0},
	    {"1kbit", 0, 16384},
	    {"10mbit", 0, 312500},
	    {"10.000001mbit", 0, 312501},
	    {"524.288kbit", 0, 16384},
	    {"524.289kbit", 0, 16385},
	    {"800gbit", 0, 25000000000},
	    {"1kpps 10mbit", 250, 312500},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_terms terms = terms_of(cases[i].rate, NULL);

		cr_expect_eq(terms.burst_packets, cases[i].packets, "%s: %llu", cases[i].rate,
			     terms.burst_packets);
		cr_expect_eq(terms.burst_bytes, cases[i].bytes, "%s: %llu", cases[i].rate, terms.burst_bytes);
	}
}

Test(limit, given_bursts_are_kept)
{
	struct rl_terms terms = terms_of("1kpps 10mbit", "1 1.522kb");

	cr_expect_eq(terms.burst_packets, 1);
	cr_expect_eq(terms.burst_bytes, 1522);
}

Test(limit, terms_refused)
{
	static const struct {
		struct rl_terms terms;
		int code;
		const char *says[2];
	} cases[] = {
	    {{0}, EINVAL, {"no rate was given for any", "10mbit"}},
	    {{.burst_packets = 5}, EINVAL, {"burst 5p is in packets", "100pps"}},
	    {{.burst_bytes = 65536}, EINVAL, {"burst 64kib is in bytes", "10mbit"}},
	    {{.bits_per_second = 1000000, .burst_packets = 200},
	     EINVAL,
	     {"burst 200p", "no rate in packets"}},
	    {{.packets_per_hour = 3600, .burst_bytes = 2000}, EINVAL, {"burst 2kb", "no rate in bits"}},
	    {{.bits_per_second = 1000000, .burst_bytes = 1521}, ERANGE, {"starve TCP", "at least 1.522kb"}},
	    {{.packets_per_hour = 1, .burst_packets = 5004}, ERANGE, {"burst 5004p", "1p to 5003p"}},
	    {{.packets_per_hour = 3600000, .burst_packets = 1000000000000},
	     ERANGE,
	     {"rate 1kpps", "1p to 18014398509p"}},
	    {{.bits_per_second = 1000, .burst_bytes = 1000000000000},
	     ERANGE,
	     {"burst 1000000mb", "1.522kb to "}},
	    {{.bits_per_second = 800000000000, .burst_bytes = 1000000000000000},
	     ERANGE,
	     {"rate 800gbit", "1.522kb to "}},
	    {{.packets_per_hour = RL_PACKETS_PER_HOUR_MAX + 1}, ERANGE, {"1/h to 148.8mpps", ""}},
	    {{.bits_per_second = 999}, ERANGE, {"1kbit to 800gbit", ""}},
	    {{.bits_per_second = RL_BITS_MAX + 1}, ERANGE, {"1kbit to 800gbit", ""}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_target any = target_of("any");
		struct rl_terms terms = cases[i].terms;
		struct rl_error err = {0};

		cr_expect_eq(rl_terms_complete(&any, &terms, &err), -cases[i].code, "%zu: %s", i, err.text);
		cr_expect_eq(err.kind, RL_ERROR_USAGE);
		cr_expect(strstr(err.text, cases[i].says[0]) && strstr(err.text, cases[i].says[1]),
			  "%zu says: %s", i, err.text);
		cr_expect(!memcmp(&terms, &cases[i].terms, sizeof(terms)), "%zu was changed", i);
	}
}

/* The largest burst that the message names is accepted, and one more isn't. */
Test(limit, named_range_is_exact)
{
	static const char *const rates[] = {"1/h",   "7pps",   "333333pps", "148.8mpps",
					    "1kbit", "15mbit", "40gbit",    "800gbit"};

	for (size_t i = 0; i < COUNT(rates); i++) {
		struct rl_target any = target_of("any");
		struct rl_terms terms = RL_TERMS_INIT, named, more;
		struct rl_error err = {0};

		cr_assert_eq(rl_rate_parse(rates[i], &terms, &err), 0);
		named = terms;
		if (terms.packets_per_hour)
			terms.burst_packets = 1000000000000000;
		else
			terms.burst_bytes = 1000000000000000;
		cr_assert_eq(rl_terms_complete(&any, &terms, &err), -ERANGE);
		cr_assert_eq(rl_burst_parse(strstr(err.text, " to ") + 4, &named, &err), 0, "%s", err.text);
		more = named;
		cr_expect_eq(rl_terms_complete(&any, &named, &err), 0, "%s: %s", rates[i], err.text);
		if (terms.packets_per_hour)
			more.burst_packets++;
		else
			more.burst_bytes++;
		cr_expect_eq(rl_terms_complete(&any, &more, &err), -ERANGE, "%s", rates[i]);
	}
}

Test(limit, new_one)
{
	struct rl_limit limit = limit_of("1kpps", NULL);
	struct rl_class_ref no_class[RL_MAX_CLASSES] = {0};
	struct rl_target any = target_of("any");
	struct rl_past none[RL_PAST] = {0};

	cr_expect_eq(limit.id, LIMITS_ID);
	cr_expect_eq(limit.slot, LIMITS_SLOT);
	cr_expect_eq(limit.gen, 1);
	cr_expect_eq(limit.flags, 0);
	cr_expect_eq(limit.level, RL_LEVEL_SOURCE);
	cr_expect_eq(limit.action, RL_ACTION_LIMIT);
	cr_expect_eq(limit.priority, RL_PRIORITY_UNSET);
	cr_expect(!limit.class_count && !limit.cost_count && !limit.tenant);
	cr_expect_eq(limit.terms.packets_per_hour, 3600000);
	cr_expect_eq(limit.terms.burst_packets, 250);
	cr_expect(!memcmp(&limit.target, &any, sizeof(any)));
	cr_expect(!memcmp(limit.past, none, sizeof(none)));
	cr_expect(!memcmp(limit.class, no_class, sizeof(no_class)));
}

/* What of the terms the packet path reads is copied to where it reads it. */
Test(limit, words_of_the_terms)
{
	struct rl_terms terms = terms_said("1kpps", NULL);
	struct rl_limit limit;
	struct rl_error err;

	cr_assert_eq(rl_costs_parse("syn=10,icmp=2", &terms, &err), 0);
	terms.priority = RL_PRIORITY_LOW;
	terms.shadow = 1;
	terms = terms_completed("198.51.100.0/24", terms);
	limit = limit_under("198.51.100.0/24", &terms, NULL, LIMITS_START);
	cr_expect_eq(limit.flags, RL_LIMIT_SHADOW);
	cr_expect_eq(limit.priority, RL_PRIORITY_LOW);
	cr_expect_eq(limit.cost_count, 2);
	cr_expect(!memcmp(limit.cost, terms.cost, sizeof(limit.cost)));
	cr_expect(!memcmp(&limit.terms, &terms, sizeof(terms)));
	cr_expect_str_eq(limit.target.name, "");
}

Test(limit, granularity)
{
	static const struct {
		const char *target, *class;
		__u8 shared, per;
		enum rl_level level;
		unsigned int flags;
		__u8 bits[2];
	} cases[] = {
	    {"10.0.0.1", NULL, 0, 0, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"10.0.0.0/31", NULL, 0, 0, RL_LEVEL_SOURCE, 0, {32, 64}},
	    {"10.0.0.0/24", NULL, 1, 0, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"10.0.0.0/24", NULL, 0, 28, RL_LEVEL_SOURCE, 0, {28, 64}},
	    {"10.0.0.0/24", NULL, 0, 32, RL_LEVEL_SOURCE, 0, {32, 64}},
	    {"10.0.0.0/24", NULL, 0, 24, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {24, 64}},
	    {"10.0.0.1", NULL, 0, 32, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"0.0.0.0/0", NULL, 0, 1, RL_LEVEL_SOURCE, 0, {1, 64}},
	    {"2001:db8::/64", NULL, 0, 0, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"2001:db8::1", NULL, 0, 0, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"2001:db8::/63", NULL, 0, 0, RL_LEVEL_SOURCE, 0, {32, 64}},
	    {"2001:db8::/32", NULL, 0, 48, RL_LEVEL_SOURCE, 0, {32, 48}},
	    {"2001:db8::/48", NULL, 0, 48, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {32, 48}},
	    {"2001:db8::/96", NULL, 0, 128, RL_LEVEL_SOURCE, 0, {32, 128}},
	    {"2001:db8::/96", NULL, 0, 0, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"any", NULL, 0, 0, RL_LEVEL_SOURCE, 0, {32, 64}},
	    {"any", NULL, 1, 0, RL_LEVEL_SOURCE, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"tenant:acme", NULL, 0, 0, RL_LEVEL_TENANT, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"dev:eth0", NULL, 0, 0, RL_LEVEL_DEVICE, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"new", NULL, 0, 0, RL_LEVEL_NEW, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    /* A class: by its own terms as they are. */
	    {"10.0.0.0/24", "syn", 0, 0, RL_LEVEL_CLASS, 0, {32, 64}},
	    {"10.0.0.0/24", "syn", 1, 0, RL_LEVEL_CLASS, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"2001:db8::/32", "tcp/443", 0, 48, RL_LEVEL_CLASS, 0, {32, 48}},
	    {"10.0.0.1", "udp", 0, 0, RL_LEVEL_CLASS, RL_LIMIT_OWN_BUCKET, {32, 64}},
	    {"any", "icmp", 0, 0, RL_LEVEL_CLASS, 0, {32, 64}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_target target = target_of(cases[i].target);
		struct rl_terms terms = terms_of("1kpps", NULL);
		struct rl_limit limit;
		struct rl_error err;

		if (cases[i].class)
			cr_assert_eq(rl_class_parse(cases[i].class, &terms.class, &err), 0);
		terms.shared = cases[i].shared;
		terms.per = cases[i].per;
		limit = limit_under(cases[i].target, &terms, NULL, LIMITS_START);
		cr_expect_eq(limit.level, cases[i].level, "%zu: %s", i, cases[i].target);
		cr_expect_eq(limit.flags, cases[i].flags, "%zu: %s", i, cases[i].target);
		cr_expect(limit.bits[0] == cases[i].bits[0] && limit.bits[1] == cases[i].bits[1],
			  "%zu: %s: %u %u", i, cases[i].target, limit.bits[0], limit.bits[1]);
		cr_expect(!memcmp(&limit.target, &target, sizeof(target)));
	}
}

Test(limit, generations)
{
	static const char *const rates[] = {"1pps", "2pps", "3mbit", "4pps 4mbit", "500kpps", "6pps"};
	struct rl_limit all[COUNT(rates)];

	all[0] = limit_of(rates[0], NULL);
	for (size_t i = 1; i < COUNT(rates); i++) {
		struct rl_target any = target_of("any");
		struct rl_terms terms = terms_of(rates[i], NULL);
		struct rl_error err;

		/* The id and slot given are of no meaning where an old limit is. */
		cr_assert_eq(rl_limit_compute(&any, &terms, &all[i - 1], 99, 98, LIMITS_START, &all[i], &err),
			     0);
		cr_expect_eq(all[i].id, LIMITS_ID);
		cr_expect_eq(all[i].slot, LIMITS_SLOT);
		cr_expect_eq(all[i].gen, i + 1);
		for (size_t back = 0; back < RL_PAST; back++) {
			for (int unit = 0; unit < RL_UNITS; unit++) {
				struct rl_rate zero = {0};
				const struct rl_rate *was = back < i ? &all[i - 1 - back].rate[unit] : &zero;

				cr_expect_eq(all[i].past[back].mult[unit], was->mult, "%zu %zu", i, back);
				cr_expect_geq(all[i].past[back].owed[unit], was->burst, "%zu %zu", i, back);
				cr_expect_eq(all[i].past[back].shift[unit], was->shift, "%zu %zu", i, back);
			}
		}
	}
}

Test(limit, same_arithmetic_keeps_the_generation)
{
	struct rl_limit first = limit_of("1pps", NULL), second = limit_change(&first, "2pps", NULL);
	struct rl_limit again = limit_change(&second, "120/m", "16"), burst, into;
	struct rl_terms terms = second.terms;
	struct rl_target any = target_of("any");
	struct rl_error err;

	cr_expect(!memcmp(&again, &second, sizeof(again)), "the same limit in other words");
	strcpy(terms.tenant, "acme");
	cr_assert_eq(rl_limit_compute(&any, &terms, &second, 0, 0, LIMITS_START, &again, &err), 0);
	cr_expect_eq(again.gen, 2);
	cr_expect(!memcmp(again.past, second.past, sizeof(again.past)));
	cr_expect_str_eq(again.terms.tenant, "acme");

	burst = limit_change(&second, "2pps", "17");
	cr_expect_eq(burst.gen, 3);
	cr_expect_eq(burst.past[0].mult[RL_PACKETS], second.rate[RL_PACKETS].mult);
	cr_expect_eq(burst.past[1].mult[RL_PACKETS], first.rate[RL_PACKETS].mult);

	into = second; /* in place */
	terms = terms_of("5pps", NULL);
	cr_assert_eq(rl_limit_compute(&any, &terms, &into, 0, 0, LIMITS_START, &into, &err), 0);
	cr_expect_eq(into.gen, 3);
	cr_expect_eq(into.past[0].mult[RL_PACKETS], second.rate[RL_PACKETS].mult);
}

Test(limit, refused_leaves_its_output)
{
	struct rl_terms terms = {.bits_per_second = 1000000, .burst_bytes = 100};
	struct rl_limit limit, untouched;
	struct rl_target any = target_of("any");
	struct rl_error err = {0};

	memset(&limit, 0xa5, sizeof(limit));
	untouched = limit;
	cr_expect_eq(rl_limit_compute(&any, &terms, NULL, 1, 2, LIMITS_START, &limit, &err), -ERANGE);
	cr_expect_eq(err.kind, RL_ERROR_USAGE);
	cr_expect(!memcmp(&limit, &untouched, sizeof(limit)));
}

Test(limit, neighbour_discovery)
{
	struct rl_limit nd, same = limit_of("1kpps", "1k");

	rl_limit_nd(&nd);
	cr_expect_eq(nd.gen, 1);
	cr_expect(!memcmp(nd.rate, same.rate, sizeof(nd.rate)));
	cr_expect_eq(nd.terms.burst_packets, 1000);
}

/* So many packets of one token and one packet of so many tokens are the same, up to the largest bucket that there is. */
Test(limit, costs_are_counted_exactly)
{
	for (size_t i = 0; i < COUNT(packet_rates); i++) {
		struct rl_terms terms = terms_said(packet_rates[i], NULL);
		struct rl_limit limit;
		__u64 tokens = 65535;

		terms.burst_packets = terms.packets_per_hour > 100 ? tokens : (tokens = 5003);
		terms = terms_completed("any", terms);
		limit = limit_under("any", &terms, NULL, LIMITS_START);
		cr_expect_eq(rl_gcra_cost(&limit.rate[RL_PACKETS], tokens), limit.rate[RL_PACKETS].burst,
			     "%s", packet_rates[i]);
	}
}

/* At a tenant or device, whose bucket may be too small for a prefix's costs: such a packet is too much for it. */
Test(limit, costs_are_never_less_for_being_too_much)
{
	struct rl_limit limit = limit_of("1/h", "5003");

	for (__u64 tokens = 5004; tokens <= 65535; tokens++)
		cr_assert_gt(rl_gcra_cost(&limit.rate[RL_PACKETS], tokens), limit.rate[RL_PACKETS].burst,
			     "%llu", tokens);
}

/* What isn't arithmetic changes without a new generation, and takes effect all the same. */
Test(limit, change_of_words_keeps_the_generation)
{
	struct rl_terms terms = terms_completed("tenant:acme", terms_said("1kpps 10mbit", NULL)),
			more = terms;
	struct rl_limit first = limit_under("tenant:acme", &terms, NULL, LIMITS_START), second, third;

	terms.reserve[0] = 2000;
	terms.shadow = 1;
	terms.priority = RL_PRIORITY_LOW;
	second = limit_under("tenant:acme", &terms, &first, LIMITS_START + 5);
	cr_expect_eq(second.gen, 1);
	cr_expect(!memcmp(second.past, first.past, sizeof(first.past)));
	cr_expect_eq(second.flags, RL_LIMIT_OWN_BUCKET | RL_LIMIT_SHADOW);
	cr_expect_eq(second.priority, RL_PRIORITY_LOW);
	for (int unit = 0; unit < RL_UNITS; unit++) {
		cr_expect_eq(second.rate[unit].owed, first.rate[unit].owed);
		cr_expect_geq(second.rate[unit].kept[RL_PRIORITY_NORMAL], first.rate[unit].burst / 5);
	}
	third = limit_under("tenant:acme", &more, &second, LIMITS_START + 9);
	cr_expect(!memcmp(&third, &first, sizeof(first)), "and back");
}

/* A larger debt of an earlier burst is still remembered where only words change. */
Test(limit, change_of_words_keeps_what_is_owed)
{
	struct rl_limit first = limit_of("10pps", "1000"), second = limit_change(&first, "10pps", "16"),
			third;
	struct rl_terms terms = second.terms;

	cr_expect_gt(second.rate[RL_PACKETS].owed, second.rate[RL_PACKETS].burst);
	terms.priority = RL_PRIORITY_HIGH;
	third = limit_under("any", &terms, &second, LIMITS_START);
	cr_expect_eq(third.gen, 2);
	cr_expect(!memcmp(third.rate, second.rate, sizeof(third.rate)));
}

Test(limit, change_keeps_what_hangs_on_it)
{
	struct rl_limit old = limit_of("1kpps", NULL), changed, same;

	old.tenant = 17;
	old.class_count = 2;
	old.class[0] = (struct rl_class_ref){.class = {RL_KIND_SYN, 0, 0, 65535}, .slot = 41};
	old.class[1] = (struct rl_class_ref){.class = {RL_KIND_UDP, 0, 0, 65535}, .slot = 42};
	changed = limit_change(&old, "2kpps", NULL);
	same = limit_change(&old, "1kpps", NULL);
	cr_expect_eq(changed.gen, 2);
	cr_expect_eq(same.gen, 1);
	cr_expect(changed.tenant == 17 && same.tenant == 17);
	cr_expect(changed.class_count == 2 && same.class_count == 2);
	cr_expect(!memcmp(changed.class, old.class, sizeof(old.class)));
	cr_expect(!memcmp(same.class, old.class, sizeof(old.class)));
}

/* Allow and deny in between forgive nothing: what was owed is counted in tokens until there is a rate again. */
Test(limit, debts_outlive_allow_and_deny)
{
	struct rl_terms allow = {.action = RL_ACTION_ALLOW, .priority = RL_PRIORITY_UNSET}, deny = allow,
			none = allow;
	struct rl_limit first = limit_of("10pps", "1000"), limit;

	deny.action = RL_ACTION_DENY;
	none.action = RL_ACTION_LIMIT; /* a general limit of which only classes were said */
	limit = limit_under("any", &deny, &first, LIMITS_START);
	cr_expect_eq(limit.gen, 2);
	cr_expect_eq(limit.action, RL_ACTION_DENY);
	cr_expect_eq(limit.rate[RL_PACKETS].mult, 0);
	cr_expect_eq(limit.rate[RL_PACKETS].owed, 1000);
	cr_expect_eq(limit.past[0].mult[RL_PACKETS], first.rate[RL_PACKETS].mult);
	limit = limit_under("any", &allow, &limit, LIMITS_START);
	cr_expect_eq(limit.gen, 2, "no arithmetic changed");
	cr_expect_eq(limit.action, RL_ACTION_ALLOW);
	limit = limit_under("any", &none, &limit, LIMITS_START);
	cr_expect_eq(limit.gen, 2);
	cr_expect_eq(limit.rate[RL_PACKETS].owed, 1000);
	limit = limit_change(&limit, "10mbit", NULL);
	cr_expect_eq(limit.gen, 3);
	cr_expect_eq(limit.rate[RL_PACKETS].owed, 1000);
	limit = limit_change(&limit, "100pps", "16");
	cr_expect_eq(limit.gen, 4);
	cr_expect_eq(limit.rate[RL_PACKETS].owed, 1000 * rl_gcra_cost(&limit.rate[RL_PACKETS], 1));
	cr_expect_eq(limit.rate[RL_BYTES].owed, 312500, "in tokens again");
	cr_expect_eq(limit.past[1].mult[RL_PACKETS], 0);
	cr_expect_eq(limit.past[2].mult[RL_PACKETS], first.rate[RL_PACKETS].mult);
}

/* The text of a refused change tells how to forgive the debt, of a class too. */
Test(limit, refused_change_names_its_object)
{
	struct rl_terms fast = terms_of("148.8mpps", "10m"), slow = terms_of("1/h", NULL);
	struct rl_target target = target_of("10.0.0.0/8");
	struct rl_limit limit = limit_under("10.0.0.0/8", &fast, NULL, LIMITS_START), out;
	struct rl_error err = {0};

	cr_expect_eq(rl_limit_compute(&target, &slow, &limit, 0, 0, LIMITS_START, &out, &err), -ERANGE);
	cr_expect(strstr(err.text, "10.0.0.0/8: what may be owed") &&
		      strstr(err.text, "`rl-agent del-limit 10.0.0.0/8`"),
		  "%s", err.text);
	cr_assert_eq(rl_class_parse("tcp/443", &slow.class, &err), 0);
	cr_expect_eq(rl_limit_compute(&target, &slow, &limit, 0, 0, LIMITS_START, &out, &err), -ERANGE);
	cr_expect(strstr(err.text, "class tcp/443 of 10.0.0.0/8: what may be owed") &&
		      strstr(err.text, "`rl-agent del-limit 10.0.0.0/8 --class tcp/443`"),
		  "%s", err.text);
}

static struct rl_limit shared_by(const char *rates, const char *bursts, __u16 high, __u16 normal)
{
	struct rl_terms terms = terms_said(rates, bursts);

	terms.reserve[RL_PRIORITY_HIGH] = high;
	terms.reserve[RL_PRIORITY_NORMAL] = normal;
	terms = terms_completed("tenant:acme", terms);
	return limit_under("tenant:acme", &terms, NULL, LIMITS_START);
}

static struct rl_limit costing(const char *costs)
{
	struct rl_terms terms = terms_said("10mbit", NULL);
	struct rl_error err = {0};

	cr_assert_eq(rl_costs_parse(costs, &terms, &err), 0, "%s", err.text);
	terms = terms_completed("10.0.0.0/8", terms);
	return limit_under("10.0.0.0/8", &terms, NULL, LIMITS_START);
}

static int cost_check(const struct rl_limit *payer, enum rl_priority priority, const struct rl_limit *shared,
		      struct rl_error *err)
{
	const struct rl_stated pays = {.target = &payer->target, .terms = &payer->terms};
	const struct rl_stated of = {.target = &shared->target, .terms = &shared->terms};

	return rl_cost_check(&pays, priority, &of, err);
}

/* Every cost that is accepted passes a full bucket, and no other; a burst that is named as enough is, and one less isn't. */
Test(limit, costs_fit_into_a_shared_bucket)
{
	static const __u16 reserves[][2] = {{0, 0}, {2000, 500}, {0, 3333}, {9000, 0}, {1, 1}};

	for (size_t i = 0; i < COUNT(packet_rates) * COUNT(reserves); i++) {
		const __u16 *reserve = reserves[i / COUNT(packet_rates)];
		struct rl_limit shared =
		    shared_by(packet_rates[i % COUNT(packet_rates)], NULL, reserve[0], reserve[1]);
		const struct rl_rate *rate = &shared.rate[RL_PACKETS];

		for (int p = 0; p < RL_PRIORITIES; p++) {
			__u64 most = (rate->burst - rate->kept[p]) / rl_gcra_cost(rate, 1);
			struct rl_limit payer = costing("syn=2,udp=1");
			struct rl_error err = {0};

			if (most >= 65535)
				continue;
			payer.terms.cost[0].tokens = (__u16)most;
			cr_expect_eq(cost_check(&payer, (enum rl_priority)p, &shared, &err), 0, "%s",
				     err.text);
			payer.terms.cost[0].tokens++;
			cr_expect_eq(cost_check(&payer, (enum rl_priority)p, &shared, &err), -ERANGE);
			cr_expect_eq(err.kind, RL_ERROR_USAGE);
			cr_assert(strstr(err.text, "at least "));
			shared.terms.burst_packets = 0;
			cr_assert_eq(rl_burst_parse(strstr(err.text, "at least ") + 9, &shared.terms, &err),
				     0, "%s", err.text);
			cr_expect_eq(cost_check(&payer, (enum rl_priority)p, &shared, &err), 0,
				     "%s, priority %d: %s", packet_rates[i % COUNT(packet_rates)], p,
				     err.text);
			shared.terms.burst_packets--;
			cr_expect_eq(cost_check(&payer, (enum rl_priority)p, &shared, &err), -ERANGE);
			shared.terms =
			    shared_by(packet_rates[i % COUNT(packet_rates)], NULL, reserve[0], reserve[1])
				.terms;
		}
	}
}

Test(limit, costs_and_buckets_that_have_nothing_to_do_with_each_other)
{
	struct rl_limit packets = shared_by("100pps", "1", 0, 0), bits = shared_by("10mbit", "2kb", 0, 0);
	struct rl_limit dear = costing("syn=65535"), plain = costing("syn=1");
	struct rl_error err = {0};

	cr_expect_eq(cost_check(&dear, RL_PRIORITY_HIGH, &bits, &err), 0);
	cr_expect_eq(cost_check(&plain, RL_PRIORITY_LOW, &packets, &err), 0);
	cr_expect_eq(cost_check(&dear, RL_PRIORITY_HIGH, &packets, &err), -ERANGE);
	cr_expect(strstr(err.text, "cost syn=65535 of 10.0.0.0/8") &&
		      strstr(err.text, "tenant:acme ever holds for priority high, 1 (burst 1p)") &&
		      strstr(err.text, "a cost of at most 1, or a burst of tenant:acme of at least 65535p"),
		  "%s", err.text);
}

/* A burst that the rate can't have is no way out: only what works is named. */
Test(limit, no_burst_is_named_that_would_be_refused)
{
	struct rl_limit slow = shared_by("1/h", "16", 0, 0), reserved = shared_by("1/h", "5000", 9000, 0);
	struct rl_limit dear = costing("syn=65535"), cheap = costing("syn=501");
	struct rl_error err = {0};

	cr_expect_eq(cost_check(&dear, RL_PRIORITY_HIGH, &slow, &err), -ERANGE);
	cr_expect(strstr(err.text, "expected a cost of at most 16") && !strstr(err.text, "or a burst"), "%s",
		  err.text);
	cr_expect_eq(cost_check(&cheap, RL_PRIORITY_NORMAL, &reserved, &err), -ERANGE);
	cr_expect(!strstr(err.text, "or a burst"), "5010 of 5003: %s", err.text);
}

/* Of the burst that a frame takes, all that isn't kept holds it; of one byte less it doesn't. */
Test(limit, bursts_for_frames)
{
	static const __u16 reserves[][2] = {{0, 0}, {2000, 500}, {9000, 0}};
	static const char *const rates[] = {"1kbit", "10mbit", "25gbit", "800gbit"};
	static const __u32 frames[] = {1522, 9022, 65557};

	for (size_t i = 0; i < COUNT(rates) * COUNT(reserves) * COUNT(frames); i++) {
		const __u16 *reserve = reserves[i / COUNT(rates) % COUNT(reserves)];
		__u32 frame = frames[i / COUNT(rates) / COUNT(reserves)];
		struct rl_limit limit = shared_by(rates[i % COUNT(rates)], NULL, reserve[0], reserve[1]);

		for (__u64 less = 0; less < 2; less++) {
			struct rl_terms terms = limit.terms;
			const struct rl_rate *rate = &limit.rate[RL_BYTES];

			terms.burst_bytes = rl_burst_to_hold(&limit.terms, RL_BYTES, frame) - less;
			if (terms.burst_bytes < rl_burst_to_hold(&limit.terms, RL_BYTES, 1522))
				continue; /* refused */
			limit = limit_under("tenant:acme", &terms, NULL, LIMITS_START);
			cr_expect_eq(rl_gcra_cost(rate, frame) > rate->burst - rate->kept[RL_PRIORITY_LOW],
				     less, "%s, frame %u, burst %llu", rates[i % COUNT(rates)], frame,
				     terms.burst_bytes);
		}
	}
	cr_expect_eq(rl_burst_to_hold(&(struct rl_terms){.packets_per_hour = 3600}, RL_BYTES, 1522), 0);
}
