// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DIGITS_MAX   28 /* of a number: 10^28 < 2^94, so a unit's factor below 2^33 fits beside it */
#define DECIMALS_MAX 10 /* that printing tries; 2^64 * 10^10 < 2^98 */
#define BURST_MAX                                                                                            \
	1000000000000000ULL /* above what any accepted rate can have: 2^54 ns at 800 Gbit/s or less */
#define TEXT_SHOWN 64	    /* bytes of the offending text that an error repeats */

typedef unsigned __int128 u128;

struct unit {
	const char *name;
	__u64 factor; /* in the integer's unit */
	enum rl_unit counts;
	bool prints; /* the printer may choose it */
};

/* A unit that people write and that isn't one here; matched in any case. */
struct hint {
	const char *name;
	const char *why;
	const char *instead; /* the unit to write behind the very same number, or NULL */
};

struct quantity {
	const char *what;
	const char *expected;
	const char *whole[RL_UNITS];   /* what a value is a whole number of, "" where that says nothing */
	const char *suggest[RL_UNITS]; /* what follows a suggestion: whom it is for */
	__u64 least[RL_UNITS], most[RL_UNITS];
	const struct unit *units;
	const struct hint *hints;
};

struct number {
	u128 digits;
	int decimals;
	size_t length; /* bytes of text that it takes */
};

static const struct unit rate_units[] = {
    {"pps", 3600, RL_PACKETS, true},	    {"kpps", 3600000, RL_PACKETS, true},
    {"mpps", 3600000000, RL_PACKETS, true}, {"/s", 3600, RL_PACKETS, false},
    {"/m", 60, RL_PACKETS, true},	    {"/h", 1, RL_PACKETS, true},
    {"kbit", 1000, RL_BYTES, true},	    {"mbit", 1000000, RL_BYTES, true},
    {"gbit", 1000000000, RL_BYTES, true},   {0},
};

static const struct hint rate_hints[] = {
    {"bit",
     "is no unit here: bits are written in thousands, and 1kbit, 1000 bits a second, is the lowest rate",
     NULL},
    {"bps", "means bits to some tools and bytes to others; 1kbit is 1000 bits a second", NULL},
    {"kbps", "means bits to some tools and bytes to others", "kbit"},
    {"mbps", "means bits to some tools and bytes to others", "mbit"},
    {"gbps", "means bits to some tools and bytes to others", "gbit"},
    {"b", "means bits to some tools and bytes to others; 1kbit is 1000 bits a second", NULL},
    {"kb", "means bits to some tools and bytes to others", "kbit"},
    {"mb", "means bits to some tools and bytes to others", "mbit"},
    {"gb", "means bits to some tools and bytes to others", "gbit"},
    {"kib", "is a size, as of a burst; rates are in bits, and 1kib is 8.192kbit", NULL},
    {"mib", "is a size, as of a burst; rates are in bits, and 1mib is 8.388608mbit", NULL},
    {"gib", "is a size, as of a burst; rates are in bits, and 1gib is 8.589934592gbit", NULL},
    {"kibit", "is not used: rates go in steps of 1000, and 1kibit is 1.024kbit", NULL},
    {"mibit", "is not used: rates go in steps of 1000, and 1mibit is 1.048576mbit", NULL},
    {"gibit", "is not used: rates go in steps of 1000, and 1gibit is 1.073741824gbit", NULL},
    {"tbit", "is not used: 1tbit is 1000gbit, and 800gbit is the highest rate", NULL},
    {"k", "could be packets or bits: kpps and kbit tell them apart", NULL},
    {"m", "could be packets or bits: mpps and mbit tell them apart", NULL},
    {"g", "could be packets or bits: gbit is 10^9 bits a second", "gbit"},
    {"gpps", "is not used: 1gpps is 1000mpps, and 148.8mpps is the highest rate", NULL},
    {"p", "is an amount, as of a burst", "pps"},
    {"p/s", "is written differently", "pps"},
    {"/sec", "is written shorter", "/s"},
    {"/second", "is written shorter", "/s"},
    {"/min", "is written shorter", "/m"},
    {"/minute", "is written shorter", "/m"},
    {"/hour", "is written shorter", "/h"},
    {"/d", "is not a period here: the longest is the hour, /h", NULL},
    {"/day", "is not a period here: the longest is the hour, /h", NULL},
    {0},
};

static const struct quantity rate_quantity = {
    .what = "rate",
    .expected = "a number with a unit: pps, kpps, mpps, /s, /m, /h for packets, from 1/h to 148.8mpps; "
		"kbit, mbit, gbit for bits a second, from 1kbit to 800gbit",
    .whole = {" of packets an hour", " of bits a second"},
    .suggest = {" for packets", " for bits"},
    .least = {RL_PACKETS_PER_HOUR_MIN, RL_BITS_MIN},
    .most = {RL_PACKETS_PER_HOUR_MAX, RL_BITS_MAX},
    .units = rate_units,
    .hints = rate_hints,
};

static const struct unit burst_units[] = {
    {"", 1, RL_PACKETS, false},
    {"p", 1, RL_PACKETS, true},
    {"k", 1000, RL_PACKETS, false},
    {"kp", 1000, RL_PACKETS, false},
    {"m", 1000000, RL_PACKETS, false},
    {"mp", 1000000, RL_PACKETS, false},
    {"kb", 1000, RL_BYTES, true},
    {"mb", 1000000, RL_BYTES, true},
    {"kib", 1 << 10, RL_BYTES, true},
    {"mib", 1 << 20, RL_BYTES, true},
    {0},
};

static const struct hint burst_hints[] = {
    {"b", "is too fine: bytes are written in thousands, 1.5kb is 1500 bytes", NULL},
    {"byte", "is too fine: bytes are written in thousands, 1.5kb is 1500 bytes", NULL},
    {"bytes", "is too fine: bytes are written in thousands, 1.5kb is 1500 bytes", NULL},
    {"g", "is not used: 1000m is 10^9 packets", NULL},
    {"gb", "is not used: 1000mb is 10^9 bytes", NULL},
    {"gib", "is not used: 1024mib is 2^30 bytes", NULL},
    {"ki", "lacks its last letter", "kib"},
    {"mi", "lacks its last letter", "mib"},
    {"bit", "counts bits: a burst is in packets or bytes, 1kb is 8000 bits", NULL},
    {"kbit", "counts bits: a burst is in packets or bytes, 1kb is 8kbit", NULL},
    {"mbit", "counts bits: a burst is in packets or bytes, 1mb is 8mbit", NULL},
    {"gbit", "counts bits: a burst is in packets or bytes, 125mb is 1gbit", NULL},
    {"pps", "is a rate: a burst is an amount", "p"},
    {"kpps", "is a rate: a burst is an amount", "k"},
    {"mpps", "is a rate: a burst is an amount", "m"},
    {"packet", "is written shorter", "p"},
    {"packets", "is written shorter", "p"},
    {"ms", "is a time: a burst is an amount, the rate times that time", NULL},
    {"s", "is a time: a burst is an amount, the rate times that time", NULL},
    {0},
};

static const struct quantity burst_quantity = {
    .what = "burst",
    .expected =
	"an amount of packets: 200, 200p, 2k, 2m; or of bytes: 64kb, 64mb (steps of 1000), 64kib, 64mib "
	"(steps of 1024); from 1 to 10^15",
    .whole = {" of packets", " of bytes"},
    .suggest = {" for packets", " for bytes"},
    .least = {1, 1},
    .most = {BURST_MAX, BURST_MAX},
    .units = burst_units,
    .hints = burst_hints,
};

static const struct unit count_units[] = {
    {"", 1, RL_PACKETS, true},
    {"k", 1000, RL_PACKETS, true},
    {"m", 1000000, RL_PACKETS, true},
    {0},
};

static const struct hint count_hints[] = {
    {"ki", "is not used: counts go in steps of 1000, and 1ki is 1024", NULL},
    {"mi", "is not used: counts go in steps of 1000, and 1mi is 1048576", NULL},
    {"g", "is not used: 1000m is 10^9", NULL},
    {0},
};

__attribute__((format(printf, 5, 6))) static int refuse(struct rl_error *err, const struct quantity *quantity,
							const char *text, int code, const char *format, ...)
{
	char reason[512];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return rl_error_set(err, RL_ERROR_USAGE, code, "%s \"%.*s\": %s; expected %s", quantity->what,
			    TEXT_SHOWN, text, reason, quantity->expected);
}

/* Digits, and a point with more digits. Returns why the text doesn't begin with a number, or NULL. */
static const char *read_number(const char *text, struct number *out)
{
	struct number number = {0};
	const char *p = text;
	int digits = 0;
	bool point = false;

	if (*p == '-')
		return "is negative";
	if (*p == '.' && isdigit((unsigned char)p[1]))
		return "begins with a point: write 0 in front of it";
	if (!isdigit((unsigned char)*p))
		return *p ? "does not begin with a number" : "is empty";
	for (;; p++) {
		if (*p == '.' && !point && isdigit((unsigned char)p[1])) {
			point = true;
			continue;
		}
		if (!isdigit((unsigned char)*p))
			break;
		if (++digits > DIGITS_MAX)
			return "has too many digits";
		number.digits = number.digits * 10 + (unsigned int)(*p - '0');
		number.decimals += point;
	}
	number.length = (size_t)(p - text);
	*out = number;
	return NULL;
}

/* number * factor as an integer. -EINVAL where it isn't whole; what doesn't fit becomes the largest value. */
static int scale_number(const struct number *number, __u64 factor, __u64 *out)
{
	u128 value = number->digits * factor; /* < 2^94 * 2^33 */

	for (int i = 0; i < number->decimals; i++) {
		if (value % 10)
			return -EINVAL;
		value /= 10;
	}
	*out = value > ~0ULL ? ~0ULL : (__u64)value;
	return 0;
}

static const struct unit *find_unit(const struct quantity *quantity, const char *name, bool any_case)
{
	for (const struct unit *unit = quantity->units; unit->name; unit++)
		if (!strcmp(unit->name, name) || (any_case && !strcasecmp(unit->name, name)))
			return unit;
	return NULL;
}

static const struct hint *find_hint(const struct quantity *quantity, const char *name)
{
	for (const struct hint *hint = quantity->hints; hint->name; hint++)
		if (!strcasecmp(hint->name, name))
			return hint;
	return NULL;
}

static bool is_in_range(const struct quantity *quantity, enum rl_unit counts, __u64 value)
{
	return value >= quantity->least[counts] && value <= quantity->most[counts];
}

/* ": write 10pps for packets", or nothing where that wouldn't be accepted either. */
static void suggest(const struct quantity *quantity, const char *text, const struct number *number,
		    const char *name, char *buf, size_t size)
{
	const struct unit *unit = name ? find_unit(quantity, name, false) : NULL;
	__u64 value;

	buf[0] = '\0';
	if (unit && !scale_number(number, unit->factor, &value) && is_in_range(quantity, unit->counts, value))
		snprintf(buf, size, ": write %.*s%s%s", (int)number->length, text, unit->name,
			 quantity->suggest[unit->counts]);
}

/* Say what is wrong with a unit that isn't one of the quantity's. */
static int refuse_unit(struct rl_error *err, const struct quantity *quantity, const char *text,
		       const struct number *number)
{
	const char *name = text + number->length;
	const struct unit *unit = find_unit(quantity, name, true);
	const struct hint *hint = find_hint(quantity, name);
	const char *instead = unit ? unit->name : hint ? hint->instead : *name ? NULL : "pps";
	char advice[80]; /* a number has at most DIGITS_MAX digits and a point */

	suggest(quantity, text, number, instead, advice, sizeof(advice));
	if (!*name) /* only rates need one */
		return refuse(err, quantity, text, EINVAL, "it has no unit%s; 1kbit is 1000 bits a second",
			      advice);
	if (unit)
		return refuse(err, quantity, text, EINVAL, "units are lower case%s", advice);
	if (hint)
		return refuse(err, quantity, text, EINVAL, "\"%s\" %s%s", name, hint->why, advice);
	if (isspace((unsigned char)*name))
		return refuse(err, quantity, text, EINVAL,
			      "a unit stands directly behind its number, without a space");
	if (*name == ',' || *name == '_' || *name == '\'')
		return refuse(err, quantity, text, EINVAL,
			      "digits are written without separators, and decimals with a point");
	return refuse(err, quantity, text, EINVAL, "\"%.*s\" is not a unit of it", TEXT_SHOWN, name);
}

static int parse_quantity(const struct quantity *quantity, const char *text, enum rl_unit *counts, __u64 *out,
			  struct rl_error *err)
{
	struct number number;
	const char *fault = read_number(text, &number);
	const struct unit *unit;
	__u64 value;

	if (fault)
		return refuse(err, quantity, text, EINVAL, "it %s", fault);
	unit = find_unit(quantity, text + number.length, false);
	if (!unit)
		return refuse_unit(err, quantity, text, &number);
	if (scale_number(&number, unit->factor, &value))
		return refuse(err, quantity, text, EINVAL, "it is not a whole number%s",
			      quantity->whole[unit->counts]);
	if (!is_in_range(quantity, unit->counts, value))
		return refuse(err, quantity, text, ERANGE, "it is out of range");
	*counts = unit->counts;
	*out = value;
	return 0;
}

int rl_rate_parse(const char *text, struct rl_terms *terms, struct rl_error *err)
{
	enum rl_unit unit;
	char given[RL_UNIT_TEXT];
	__u64 value, *field;
	int ret = parse_quantity(&rate_quantity, text, &unit, &value, err);

	if (ret)
		return ret;
	field = unit == RL_PACKETS ? &terms->packets_per_hour : &terms->bits_per_second;
	if (*field)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EEXIST,
		    "rate \"%s\": a rate in %s was given before, %s; one in packets and one in bits "
		    "can be combined",
		    text, unit == RL_PACKETS ? "packets" : "bits",
		    unit == RL_PACKETS ? rl_rate_print_packets(*field, given)
				       : rl_rate_print_bits(*field, given));
	*field = value;
	return 0;
}

int rl_burst_parse(const char *text, struct rl_terms *terms, struct rl_error *err)
{
	enum rl_unit unit;
	char given[RL_UNIT_TEXT];
	__u64 value, *field;
	int ret = parse_quantity(&burst_quantity, text, &unit, &value, err);

	if (ret)
		return ret;
	field = unit == RL_PACKETS ? &terms->burst_packets : &terms->burst_bytes;
	if (*field)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EEXIST,
		    "burst \"%s\": a burst in %s was given before, %s; one in packets and one in bytes "
		    "can be combined",
		    text, unit == RL_PACKETS ? "packets" : "bytes",
		    unit == RL_PACKETS ? rl_burst_print_packets(*field, given)
				       : rl_burst_print_bytes(*field, given));
	*field = value;
	return 0;
}

int rl_count_between_parse(const char *text, const char *what, __u64 min, __u64 max, __u64 *out,
			   struct rl_error *err)
{
	char expected[128];
	const struct quantity quantity = {
	    .what = what,
	    .expected = expected,
	    .whole = {""},
	    .suggest = {""},
	    .least = {min},
	    .most = {max},
	    .units = count_units,
	    .hints = count_hints,
	};
	enum rl_unit unit;

	snprintf(expected, sizeof(expected), "a count from %llu to %llu%s%s", min, max,
		 max >= 5000 ? "; 5k is 5000" : "", max >= 1000000 ? ", 1m is 10^6" : "");
	return parse_quantity(&quantity, text, &unit, out, err);
}

int rl_count_parse(const char *text, const char *what, __u64 max, __u64 *out, struct rl_error *err)
{
	return rl_count_between_parse(text, what, 1, max, out, err);
}

/* value / factor as an exact decimal with its unit, or an empty text where that takes too many decimals. */
static void print_in(__u64 value, const struct unit *unit, char buf[RL_UNIT_TEXT])
{
	u128 scaled = value, power = 1;
	int decimals = 0;

	buf[0] = '\0';
	for (; scaled % unit->factor; scaled *= 10, power *= 10)
		if (++decimals > DECIMALS_MAX)
			return;
	scaled /= unit->factor;
	if (decimals)
		snprintf(buf, RL_UNIT_TEXT, "%llu.%0*llu%s", (unsigned long long)(scaled / power), decimals,
			 (unsigned long long)(scaled % power), unit->name);
	else
		snprintf(buf, RL_UNIT_TEXT, "%llu%s", (unsigned long long)scaled, unit->name);
}

/* The shortest exact form; of equally short ones the unit that stands first in the table. */
static const char *print_shortest(__u64 value, const struct unit *units, enum rl_unit counts,
				  char buf[RL_UNIT_TEXT])
{
	char text[RL_UNIT_TEXT];

	buf[0] = '\0';
	for (const struct unit *unit = units; unit->name; unit++) {
		if (unit->counts != counts || !unit->prints)
			continue;
		print_in(value, unit, text);
		if (text[0] && (!buf[0] || strlen(text) < strlen(buf)))
			memcpy(buf, text, sizeof(text));
	}
	return buf;
}

const char *rl_rate_print_packets(__u64 per_hour, char buf[RL_UNIT_TEXT])
{
	return print_shortest(per_hour, rate_units, RL_PACKETS, buf);
}

const char *rl_rate_print_bits(__u64 bits_per_second, char buf[RL_UNIT_TEXT])
{
	return print_shortest(bits_per_second, rate_units, RL_BYTES, buf);
}

const char *rl_burst_print_packets(__u64 packets, char buf[RL_UNIT_TEXT])
{
	return print_shortest(packets, burst_units, RL_PACKETS, buf);
}

const char *rl_burst_print_bytes(__u64 bytes, char buf[RL_UNIT_TEXT])
{
	return print_shortest(bytes, burst_units, RL_BYTES, buf);
}

const char *rl_human(double value, char buf[RL_UNIT_TEXT])
{
	static const char prefixes[] = "\0kMGTPE";
	int prefix = 0;

	if (!(value > 0))
		value = 0;
	if (value < 999.5 && value == (int)value) {
		snprintf(buf, RL_UNIT_TEXT, "%d", (int)value);
		return buf;
	}
	/* 999.5 rounds to 1000, which is the next prefix's 1.00. */
	for (; value >= 999.5 && prefixes[prefix + 1]; prefix++)
		value /= 1000;
	snprintf(buf, RL_UNIT_TEXT, "%.*f%.1s",
		 value < 9.995	 ? 2
		 : value < 99.95 ? 1
				 : 0,
		 value, prefixes + prefix);
	return buf;
}
