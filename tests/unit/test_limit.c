// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>

#include "../../bpf/rl_gcra.h"
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
	    {"160pps", 16, 0},
	    {"161pps", 17, 0},
	    {"1kpps", 100, 0},
	    {"1001pps", 101, 0},
	    {"148.8mpps", 14880000, 0},
	    {"1kbit", 0, 16384},
	    {"10mbit", 0, 125000},
	    {"10.000001mbit", 0, 125001},
	    {"1.31072mbit", 0, 16384},
	    {"1.310721mbit", 0, 16385},
	    {"800gbit", 0, 10000000000},
	    {"1kpps 10mbit", 100, 125000},
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
	    {{0}, EINVAL, {"no rate was given", "10mbit"}},
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
		struct rl_terms terms = cases[i].terms;
		struct rl_error err = {0};

		cr_expect_eq(rl_terms_complete(&terms, &err), -cases[i].code, "%zu: %s", i, err.text);
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
		struct rl_terms terms = {0}, named = {0}, more;
		struct rl_error err = {0};

		cr_assert_eq(rl_rate_parse(rates[i], &terms, &err), 0);
		named = terms;
		if (terms.packets_per_hour)
			terms.burst_packets = 1000000000000000;
		else
			terms.burst_bytes = 1000000000000000;
		cr_assert_eq(rl_terms_complete(&terms, &err), -ERANGE);
		cr_assert_eq(rl_burst_parse(strstr(err.text, " to ") + 4, &named, &err), 0, "%s", err.text);
		more = named;
		cr_expect_eq(rl_terms_complete(&named, &err), 0, "%s: %s", rates[i], err.text);
		if (terms.packets_per_hour)
			more.burst_packets++;
		else
			more.burst_bytes++;
		cr_expect_eq(rl_terms_complete(&more, &err), -ERANGE, "%s", rates[i]);
	}
}

Test(limit, new_one)
{
	struct rl_limit limit = limit_of("1kpps", NULL);
	struct rl_past none[RL_PAST] = {0};

	cr_expect_eq(limit.id, 7);
	cr_expect_eq(limit.slot, 3);
	cr_expect_eq(limit.gen, 1);
	cr_expect_eq(limit.flags, 0);
	cr_expect_eq(limit.prefixlen, 0);
	cr_expect_eq(limit.terms.packets_per_hour, 3600000);
	cr_expect_eq(limit.terms.burst_packets, 100);
	cr_expect(!memcmp(limit.past, none, sizeof(none)));
}

Test(limit, own_bucket)
{
	static const struct {
		const char *target;
		unsigned int flags;
	} cases[] = {{"10.0.0.1", RL_LIMIT_OWN_BUCKET},
		     {"10.0.0.0/31", 0},
		     {"2001:db8::/64", RL_LIMIT_OWN_BUCKET},
		     {"2001:db8::1", RL_LIMIT_OWN_BUCKET},
		     {"2001:db8::/63", 0},
		     {"any", 0}};
	struct rl_terms terms = terms_of("1kpps", NULL);

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_prefix target;
		struct rl_limit limit;
		struct rl_error err;

		cr_assert_eq(rl_target_parse(cases[i].target, &target, &err), 0);
		cr_assert_eq(rl_limit_compute(&target, &terms, NULL, 1, 0, LIMITS_START, &limit, &err), 0);
		cr_expect_eq(limit.flags, cases[i].flags, "%s", cases[i].target);
		cr_expect_eq(limit.prefixlen, target.prefixlen, "%s", cases[i].target);
	}
}

Test(limit, generations)
{
	static const char *const rates[] = {"1pps", "2pps", "3mbit", "4pps 4mbit", "500kpps", "6pps"};
	struct rl_limit all[COUNT(rates)];

	all[0] = limit_of(rates[0], NULL);
	for (size_t i = 1; i < COUNT(rates); i++) {
		struct rl_prefix any = {0};
		struct rl_terms terms = terms_of(rates[i], NULL);
		struct rl_error err;

		/* The id and slot given are of no meaning where an old limit is. */
		cr_assert_eq(rl_limit_compute(&any, &terms, &all[i - 1], 99, 98, LIMITS_START, &all[i], &err),
			     0);
		cr_expect_eq(all[i].id, 7);
		cr_expect_eq(all[i].slot, 3);
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
	struct rl_prefix any = {0};
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
	struct rl_prefix any = {0};
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
