// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../../user/units.h"
#include "random.h"

#define ROUNDS 100000
#define SEED   20240607ULL

struct accepted {
	const char *text;
	enum rl_unit unit;
	__u64 value;
	const char *printed;
};

struct refused {
	const char *text;
	int code;
	const char *says; /* a part of the error's text */
};

static const struct accepted rates[] = {
    {"1pps", RL_PACKETS, 3600, "1pps"},
    {"1000pps", RL_PACKETS, 3600000, "1kpps"},
    {"1kpps", RL_PACKETS, 3600000, "1kpps"},
    {"1mpps", RL_PACKETS, 3600000000, "1mpps"},
    {"148.8mpps", RL_PACKETS, RL_PACKETS_PER_HOUR_MAX, "148.8mpps"},
    {"333333pps", RL_PACKETS, 333333ULL * 3600, "333333pps"},
    {"1.5kpps", RL_PACKETS, 5400000, "1500pps"},
    {"100/s", RL_PACKETS, 360000, "100pps"},
    {"7/m", RL_PACKETS, 420, "7/m"},
    {"60/m", RL_PACKETS, 3600, "1pps"},
    {"30/m", RL_PACKETS, 1800, "30/m"},
    {"0.5pps", RL_PACKETS, 1800, "30/m"},
    {"0.5/m", RL_PACKETS, 30, "30/h"},
    {"1/h", RL_PACKETS, 1, "1/h"},
    {"1.0/h", RL_PACKETS, 1, "1/h"},
    {"1kbit", RL_BYTES, 1000, "1kbit"},
    {"1.001kbit", RL_BYTES, 1001, "1.001kbit"},
    {"10mbit", RL_BYTES, 10000000, "10mbit"},
    {"1.2gbit", RL_BYTES, 1200000000, "1.2gbit"},
    {"1200mbit", RL_BYTES, 1200000000, "1.2gbit"},
    {"800gbit", RL_BYTES, RL_BITS_MAX, "800gbit"},
    {"800.000000000gbit", RL_BYTES, RL_BITS_MAX, "800gbit"},
};

static const struct refused bad_rates[] = {
    {"", EINVAL, "is empty"},
    {"1000", EINVAL, "it has no unit: write 1000pps for packets; 1kbit is 1000 bits a second"},
    {"200000000", EINVAL, "it has no unit; 1kbit is 1000 bits a second"},
    {"0", EINVAL, "it has no unit; 1kbit"},
    {"1.5", EINVAL, "write 1.5pps"},
    {"abc", EINVAL, "does not begin with a number"},
    {"pps", EINVAL, "does not begin with a number"},
    {"-5pps", EINVAL, "is negative"},
    {"+5pps", EINVAL, "does not begin with a number"},
    {" 5pps", EINVAL, "does not begin with a number"},
    {".5pps", EINVAL, "write 0 in front"},
    {"5.pps", EINVAL, "\".pps\" is not a unit"},
    {"1.2.3pps", EINVAL, "\".3pps\" is not a unit"},
    {"1e6pps", EINVAL, "\"e6pps\" is not a unit"},
    {"0x10pps", EINVAL, "\"x10pps\" is not a unit"},
    {"1,000pps", EINVAL, "without separators"},
    {"1_000pps", EINVAL, "without separators"},
    {"1000 pps", EINVAL, "without a space"},
    {"1000pps ", EINVAL, "is not a unit"},
    {"1000bps", EINVAL, "bits to some tools and bytes to others"},
    {"10Kbps", EINVAL, "write 10kbit"},
    {"10kbps", EINVAL, "write 10kbit"},
    {"10Mbps", EINVAL, "write 10mbit"},
    {"10gbps", EINVAL, "write 10gbit"},
    {"10Mb", EINVAL, "write 10mbit"},
    {"10MB", EINVAL, "write 10mbit"},
    {"10KB", EINVAL, "write 10kbit"},
    {"10kb", EINVAL, "write 10kbit"},
    {"10GB", EINVAL, "write 10gbit"},
    {"10kib", EINVAL, "rates are in bits, and 1kib is 8.192kbit"},
    {"10mib", EINVAL, "rates are in bits, and 1mib is 8.388608mbit"},
    {"10GiB", EINVAL, "rates are in bits, and 1gib is 8.589934592gbit"},
    {"10Kibit", EINVAL, "steps of 1000, and 1kibit is 1.024kbit"},
    {"10mibit", EINVAL, "steps of 1000, and 1mibit is 1.048576mbit"},
    {"10gibit", EINVAL, "steps of 1000, and 1gibit is 1.073741824gbit"},
    {"1000bit", EINVAL, "1kbit, 1000 bits a second, is the lowest rate; expected"},
    {"999bit", EINVAL, "\"bit\" is no unit here"},
    {"1000b", EINVAL, "1kbit is 1000 bits"},
    {"1tbit", EINVAL, "1tbit is 1000gbit, and 800gbit is the highest"},
    {"1gpps", EINVAL, "1gpps is 1000mpps, and 148.8mpps is the highest"},
    {"10k", EINVAL, "kpps and kbit tell them apart; expected"},
    {"10M", EINVAL, "mpps and mbit tell them apart; expected"},
    {"10g", EINVAL, "write 10gbit for bits"},
    {"900g", EINVAL, "gbit is 10^9 bits a second; expected"},
    {"900Gbps", EINVAL, "bytes to others; expected"},
    {"10p", EINVAL, "write 10pps"},
    {"10p/s", EINVAL, "write 10pps"},
    {"10/sec", EINVAL, "write 10/s"},
    {"10/second", EINVAL, "write 10/s"},
    {"10/min", EINVAL, "write 10/m"},
    {"10/minute", EINVAL, "write 10/m"},
    {"10/hour", EINVAL, "write 10/h"},
    {"10/d", EINVAL, "the longest is the hour"},
    {"10/day", EINVAL, "the longest is the hour"},
    {"10/", EINVAL, "is not a unit"},
    {"10Mbit", EINVAL, "units are lower case: write 10mbit for bits"},
    {"801Gbit", EINVAL, "units are lower case; expected"},
    {"0.3/Minute", EINVAL, "write 0.3/m for packets"},
    {"10KPPS", EINVAL, "units are lower case: write 10kpps"},
    {"10/H", EINVAL, "units are lower case: write 10/h"},
    {"0.5/h", EINVAL, "not a whole number of packets an hour"},
    {"0.0001pps", EINVAL, "not a whole number of packets an hour"},
    {"1.0001kbit", EINVAL, "not a whole number of bits a second"},
    {"0pps", ERANGE, "from 1/h to 148.8mpps"},
    {"0/h", ERANGE, "out of range"},
    {"148.801mpps", ERANGE, "from 1/h to 148.8mpps"},
    {"0kbit", ERANGE, "from 1kbit to 800gbit"},
    {"0.999kbit", ERANGE, "from 1kbit to 800gbit"},
    {"800.000000001gbit", ERANGE, "from 1kbit to 800gbit"},
    {"801gbit", ERANGE, "out of range"},
    {"18446744073709551617pps", ERANGE, "out of range"},
    {"9999999999999999999999999999gbit", ERANGE, "out of range"},
    {"10000000000000000000000000000gbit", EINVAL, "too many digits"},
    {"0.00000000000000000000000000001gbit", EINVAL, "too many digits"},
};

static const struct accepted bursts[] = {
    {"1", RL_PACKETS, 1, "1p"},
    {"200", RL_PACKETS, 200, "200p"},
    {"2000p", RL_PACKETS, 2000, "2000p"},
    {"2k", RL_PACKETS, 2000, "2000p"},
    {"2kp", RL_PACKETS, 2000, "2000p"},
    {"1.5m", RL_PACKETS, 1500000, "1500000p"},
    {"3mp", RL_PACKETS, 3000000, "3000000p"},
    {"64kib", RL_BYTES, 65536, "64kib"},
    {"1.5kb", RL_BYTES, 1500, "1.5kb"},
    {"1.514kb", RL_BYTES, 1514, "1.514kb"},
    {"0.001kb", RL_BYTES, 1, "0.001kb"},
    {"64kb", RL_BYTES, 64000, "64kb"},
    {"2mb", RL_BYTES, 2000000, "2mb"},
    {"2mib", RL_BYTES, 2097152, "2mib"},
    {"0.5mib", RL_BYTES, 524288, "512kib"},
    {"1000000000000000p", RL_PACKETS, 1000000000000000, "1000000000000000p"},
    {"1000000000mb", RL_BYTES, 1000000000000000, "1000000000mb"},
};

static const struct refused bad_bursts[] = {
    {"", EINVAL, "is empty"},
    {"0", ERANGE, "out of range"},
    {"0kib", ERANGE, "from 1 to 10^15"},
    {"1000000000000001", ERANGE, "from 1 to 10^15"},
    {"99999999999999999999999m", ERANGE, "out of range"},
    {"-1", EINVAL, "is negative"},
    {"0.5", EINVAL, "not a whole number of packets"},
    {"1.0005kb", EINVAL, "not a whole number of bytes"},
    {"0.3kib", EINVAL, "not a whole number of bytes"},
    {"100b", EINVAL, "1.5kb is 1500 bytes"},
    {"1500bytes", EINVAL, "1.5kb is 1500 bytes"},
    {"1500byte", EINVAL, "1.5kb is 1500 bytes"},
    {"64KB", EINVAL, "units are lower case: write 64kb"},
    {"64KiB", EINVAL, "units are lower case: write 64kib"},
    {"64Mb", EINVAL, "units are lower case: write 64mb"},
    {"2K", EINVAL, "units are lower case: write 2k"},
    {"64ki", EINVAL, "write 64kib for bytes"},
    {"64Mi", EINVAL, "write 64mib"},
    {"1g", EINVAL, "1000m is 10^9"},
    {"1gb", EINVAL, "1000mb"},
    {"1GiB", EINVAL, "1024mib"},
    {"8bit", EINVAL, "packets or bytes"},
    {"8kbit", EINVAL, "packets or bytes"},
    {"8mbit", EINVAL, "packets or bytes"},
    {"8gbit", EINVAL, "packets or bytes"},
    {"100pps", EINVAL, "is a rate: a burst is an amount: write 100p"},
    {"1kpps", EINVAL, "write 1k"},
    {"1mpps", EINVAL, "write 1m"},
    {"0.5pps", EINVAL, "a burst is an amount; expected"},
    {"0KiB", EINVAL, "units are lower case; expected"},
    {"10packets", EINVAL, "write 10p"},
    {"1packet", EINVAL, "write 1p"},
    {"100ms", EINVAL, "is a time"},
    {"1s", EINVAL, "is a time"},
    {"10 p", EINVAL, "without a space"},
    {"10q", EINVAL, "\"q\" is not a unit"},
};

static const struct refused bad_counts[] = {
    {"", EINVAL, "is empty"},
    {"0", ERANGE, "from 1 to 5000000"},
    {"5000001", ERANGE, "from 1 to 5000000"},
    {"5.000001m", ERANGE, "out of range"},
    {"0.5", EINVAL, "it is not a whole number; expected a count from 1 to 5000000; 5k is 5000, 1m is 10^6"},
    {"6M", EINVAL, "units are lower case; expected"},
    {"1M", EINVAL, "write 1m"},
    {"1K", EINVAL, "write 1k"},
    {"1Ki", EINVAL, "1ki is 1024"},
    {"1mi", EINVAL, "1mi is 1048576"},
    {"1g", EINVAL, "1000m is 10^9"},
    {"1x", EINVAL, "\"x\" is not a unit"},
    {"-1", EINVAL, "is negative"},
    {"many", EINVAL, "does not begin with a number"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void check_refused(const struct refused *c, const char *what, int ret, const struct rl_error *err)
{
	cr_expect_eq(ret, -c->code, "%s \"%s\": %d", what, c->text, ret);
	cr_expect_eq(err->kind, RL_ERROR_USAGE, "%s \"%s\"", what, c->text);
	cr_expect(strstr(err->text, c->says), "%s \"%s\" says: %s", what, c->text, err->text);
	cr_expect(strstr(err->text, "expected "), "%s \"%s\" says: %s", what, c->text, err->text);
	cr_expect(strstr(err->text, c->text), "%s \"%s\" says: %s", what, c->text, err->text);
}

Test(units, rates)
{
	for (size_t i = 0; i < COUNT(rates); i++) {
		const struct accepted *c = &rates[i];
		struct rl_terms terms = {0};
		struct rl_error err = {0};
		char buf[RL_UNIT_TEXT];

		cr_assert_eq(rl_rate_parse(c->text, &terms, &err), 0, "%s: %s", c->text, err.text);
		cr_expect_eq(terms.packets_per_hour, c->unit == RL_PACKETS ? c->value : 0, "%s", c->text);
		cr_expect_eq(terms.bits_per_second, c->unit == RL_BYTES ? c->value : 0, "%s", c->text);
		cr_expect_eq(terms.burst_packets + terms.burst_bytes, 0);
		cr_expect_str_eq(c->unit == RL_PACKETS ? rl_rate_print_packets(c->value, buf)
						       : rl_rate_print_bits(c->value, buf),
				 c->printed);
	}
}

Test(units, rates_refused)
{
	for (size_t i = 0; i < COUNT(bad_rates); i++) {
		struct rl_terms terms = {0}, untouched = {0};
		struct rl_error err = {0};

		check_refused(&bad_rates[i], "rate", rl_rate_parse(bad_rates[i].text, &terms, &err), &err);
		cr_expect(!memcmp(&terms, &untouched, sizeof(terms)), "%s", bad_rates[i].text);
	}
}

Test(units, bursts)
{
	for (size_t i = 0; i < COUNT(bursts); i++) {
		const struct accepted *c = &bursts[i];
		struct rl_terms terms = {0};
		struct rl_error err = {0};
		char buf[RL_UNIT_TEXT];

		cr_assert_eq(rl_burst_parse(c->text, &terms, &err), 0, "%s: %s", c->text, err.text);
		cr_expect_eq(terms.burst_packets, c->unit == RL_PACKETS ? c->value : 0, "%s", c->text);
		cr_expect_eq(terms.burst_bytes, c->unit == RL_BYTES ? c->value : 0, "%s", c->text);
		cr_expect_eq(terms.packets_per_hour + terms.bits_per_second, 0);
		cr_expect_str_eq(c->unit == RL_PACKETS ? rl_burst_print_packets(c->value, buf)
						       : rl_burst_print_bytes(c->value, buf),
				 c->printed);
	}
}

Test(units, bursts_refused)
{
	for (size_t i = 0; i < COUNT(bad_bursts); i++) {
		struct rl_terms terms = {0}, untouched = {0};
		struct rl_error err = {0};

		check_refused(&bad_bursts[i], "burst", rl_burst_parse(bad_bursts[i].text, &terms, &err),
			      &err);
		cr_expect(!memcmp(&terms, &untouched, sizeof(terms)), "%s", bad_bursts[i].text);
	}
}

Test(units, one_of_each_unit)
{
	struct rl_terms terms = {0};
	struct rl_error err = {0};

	cr_expect_eq(rl_rate_parse("10/m", &terms, &err), 0);
	cr_expect_eq(rl_rate_parse("1mbit", &terms, &err), 0);
	cr_expect_eq(rl_rate_parse("20pps", &terms, &err), -EEXIST);
	cr_expect(strstr(err.text, "\"20pps\"") && strstr(err.text, "10/m"), "%s", err.text);
	cr_expect_eq(rl_rate_parse("1mbit", &terms, &err), -EEXIST);
	cr_expect(strstr(err.text, "in bits"), "%s", err.text);
	cr_expect_eq(rl_burst_parse("100", &terms, &err), 0);
	cr_expect_eq(rl_burst_parse("64kib", &terms, &err), 0);
	cr_expect_eq(rl_burst_parse("1k", &terms, &err), -EEXIST);
	cr_expect(strstr(err.text, "100p"), "%s", err.text);
	cr_expect_eq(rl_burst_parse("1mb", &terms, &err), -EEXIST);
	cr_expect(strstr(err.text, "64kib"), "%s", err.text);
	cr_expect_eq(terms.packets_per_hour, 600);
	cr_expect_eq(terms.bits_per_second, 1000000);
	cr_expect_eq(terms.burst_packets, 100);
	cr_expect_eq(terms.burst_bytes, 65536);
}

Test(units, counts)
{
	static const struct {
		const char *text;
		__u64 value;
	} counts[] = {{"1", 1},	      {"200", 200},	    {"5k", 5000},
		      {"1.5k", 1500}, {"1000000", 1000000}, {"5m", 5000000}};

	for (size_t i = 0; i < COUNT(counts); i++) {
		struct rl_error err = {0};
		__u64 value = 0;

		cr_expect_eq(rl_count_parse(counts[i].text, "sources", 5000000, &value, &err), 0, "%s",
			     err.text);
		cr_expect_eq(value, counts[i].value, "%s", counts[i].text);
	}
	for (size_t i = 0; i < COUNT(bad_counts); i++) {
		struct rl_error err = {0};
		__u64 value = 77;

		check_refused(&bad_counts[i], "sources",
			      rl_count_parse(bad_counts[i].text, "sources", 5000000, &value, &err), &err);
		cr_expect_eq(strncmp(err.text, "sources \"", 9), 0, "%s", err.text);
		cr_expect_eq(value, 77);
	}
}

/* The examples in the text are within the range too. */
Test(units, counts_from_some_number_on)
{
	static const struct {
		const char *text, *expected;
		__u64 max;
	} refused[] = {
	    {"13", "expected a count from 14 to 65535; 5k is 5000", 65535},
	    {"65536", "expected a count from 14 to 65535; 5k is 5000", 65535},
	    {"13", "expected a count from 14 to 100", 100},
	};
	struct rl_error err = {0};
	__u64 value = 77;

	for (size_t i = 0; i < COUNT(refused); i++) {
		cr_expect_eq(
		    rl_count_between_parse(refused[i].text, "--bytes", 14, refused[i].max, &value, &err),
		    -ERANGE);
		cr_expect_str_eq(strstr(err.text, "expected"), refused[i].expected);
		cr_expect_eq(value, 77);
	}
	cr_expect_eq(rl_count_between_parse("14", "--bytes", 14, 65535, &value, &err), 0);
	cr_expect_eq(value, 14);
}

/* Every hint's suggestion, taken as it stands, is accepted. */
static void check_suggestion(const char *text, const struct rl_error *err, bool burst)
{
	const char *from = strstr(err->text, ": write "), *to;
	struct rl_terms terms = {0};
	char written[64];
	struct rl_error ignored;

	if (!from)
		return;
	from += strlen(": write ");
	to = strchr(from, ' ');
	cr_assert(to && (size_t)(to - from) < sizeof(written), "%s", err->text);
	snprintf(written, sizeof(written), "%.*s", (int)(to - from), from);
	if (!strcmp(written, "0")) /* "write 0 in front of it" */
		return;
	cr_expect_eq((burst ? rl_burst_parse : rl_rate_parse)(written, &terms, &ignored), 0, "%s: %s", text,
		     err->text);
}

Test(units, what_is_suggested_is_accepted)
{
	static const char *const numbers[] = {"0", "0.001", "0.5", "1", "999", "1000", "100000000000"};

	for (size_t n = 0; n < COUNT(numbers); n++)
		for (size_t i = 0; i < COUNT(bad_rates) + COUNT(bad_bursts); i++) {
			bool burst = i >= COUNT(bad_rates);
			const char *bad = burst ? bad_bursts[i - COUNT(bad_rates)].text : bad_rates[i].text;
			struct rl_terms terms = {0};
			struct rl_error err = {0};
			char text[64];

			snprintf(text, sizeof(text), "%s%s", numbers[n], bad + strspn(bad, "-+ .0123456789"));
			if ((burst ? rl_burst_parse : rl_rate_parse)(text, &terms, &err))
				check_suggestion(text, &err, burst);
		}
}

Test(units, long_text_is_cut_in_the_error)
{
	struct rl_terms terms = {0};
	struct rl_error err = {0};
	static char text[100000];

	memset(text, 'x', sizeof(text) - 1);
	cr_expect_eq(rl_rate_parse(text, &terms, &err), -EINVAL);
	cr_expect_lt(strlen(err.text), 600);
	text[0] = '1';
	cr_expect_eq(rl_burst_parse(text, &terms, &err), -EINVAL);
	cr_expect(strstr(err.text, "expected an amount"), "%s", err.text);
	memset(text, '1', sizeof(text) - 1);
	cr_expect_eq(rl_rate_parse(text, &terms, &err), -EINVAL);
	cr_expect(strstr(err.text, "too many digits"), "%s", err.text);
}

Test(units, printed_is_parsed_back)
{
	__u64 state = SEED;
	char buf[RL_UNIT_TEXT];
	struct rl_error err;

	cr_log_info("seed %llu", SEED);
	for (int i = 0; i < ROUNDS; i++) {
		__u64 packets = random_magnitude(&state, RL_PACKETS_PER_HOUR_MIN, RL_PACKETS_PER_HOUR_MAX);
		__u64 bits = random_magnitude(&state, RL_BITS_MIN, RL_BITS_MAX);
		__u64 burst = random_magnitude(&state, 1, 1000000000000000);
		struct rl_terms terms = {0};
		__u64 count = 0;

		if (i % 2) { /* round ones, which take the larger units */
			packets -= packets % 3600 < packets ? packets % 3600 : 0;
			bits -= bits % 1000;
			burst -= burst % 1024 < burst ? burst % 1024 : 0;
		}
		cr_assert_eq(rl_rate_parse(rl_rate_print_packets(packets, buf), &terms, &err), 0, "%llu %s",
			     packets, buf);
		cr_assert_eq(terms.packets_per_hour, packets, "%s, seed %llu", buf, SEED);
		cr_assert_eq(rl_rate_parse(rl_rate_print_bits(bits, buf), &terms, &err), 0, "%llu %s", bits,
			     buf);
		cr_assert_eq(terms.bits_per_second, bits, "%s, seed %llu", buf, SEED);
		cr_assert_eq(rl_burst_parse(rl_burst_print_packets(burst, buf), &terms, &err), 0, "%llu %s",
			     burst, buf);
		cr_assert_eq(terms.burst_packets, burst, "%s, seed %llu", buf, SEED);
		snprintf(buf, sizeof(buf), "%llu", burst);
		cr_assert_eq(rl_count_parse(buf, "count", ~0ULL, &count, &err), 0, "%s", buf);
		cr_assert_eq(count, burst, "%s, seed %llu", buf, SEED);
		cr_assert_eq(rl_burst_parse(rl_burst_print_bytes(burst, buf), &terms, &err), 0, "%llu %s",
			     burst, buf);
		cr_assert_eq(terms.burst_bytes, burst, "%s, seed %llu", buf, SEED);
	}
}

Test(units, human)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
	    {0, "0"},	      {1, "1"},		 {999, "999"},	   {1000, "1.00k"},   {1234, "1.23k"},
	    {12345, "12.3k"}, {123456, "123k"},	 {999499, "999k"}, {999500, "1.00M"}, {1234567, "1.23M"},
	    {1.5, "1.50"},    {0.25, "0.25"},	 {9.999, "10.0"},  {99.96, "100"},    {999.7, "1.00k"},
	    {1e9, "1.00G"},   {1.2e12, "1.20T"}, {1e15, "1.00P"},  {1e18, "1.00E"},   {18.4e18, "18.4E"},
	    {-5, "0"},	      {NAN, "0"},
	};
	char buf[RL_UNIT_TEXT];

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_str_eq(rl_human(cases[i].value, buf), cases[i].text, "%g: %s", cases[i].value, buf);
	cr_expect_lt(strlen(rl_human(1e300, buf)), RL_UNIT_TEXT);
	cr_expect_lt(strlen(rl_human(INFINITY, buf)), RL_UNIT_TEXT);
}
