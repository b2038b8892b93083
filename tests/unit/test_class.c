// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../user/class.h"
#include "../../user/limit.h"
#include "random.h"

#define ROUNDS 100000
#define SEED   20261130ULL

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct rl_class class_of(const char *text)
{
	struct rl_class class;
	struct rl_error err = {0};

	memset(&class, 0xa5, sizeof(class));
	cr_assert_eq(rl_class_parse(text, &class, &err), 0, "%s: %s", text, err.text);
	return class;
}

/* What a parser says of a text that it refuses. */
struct refusal {
	const char *text;
	int code;
	const char *says[2];
};

static void check_refusal(const struct refusal *refusal, int ret, const struct rl_error *err)
{
	cr_expect_eq(ret, -refusal->code, "%s: %d, %s", refusal->text, ret, err->text);
	cr_expect_eq(err->kind, RL_ERROR_USAGE, "%s", refusal->text);
	cr_expect(strstr(err->text, refusal->says[0]) && strstr(err->text, refusal->says[1]), "%s says: %s",
		  refusal->text, err->text);
	cr_expect(strstr(err->text, "expected") || strstr(err->text, "write"), "%s says: %s", refusal->text,
		  err->text);
	cr_expect(strlen(err->text) < 300, "%s", err->text);
}

Test(class, accepted)
{
	static const struct {
		const char *text;
		struct rl_class class;
		const char *printed;
	} cases[] = {
	    {"tcp", {RL_KIND_TCP, 0, 0, 65535}, NULL},
	    {"syn", {RL_KIND_SYN, 0, 0, 65535}, NULL},
	    {"udp", {RL_KIND_UDP, 0, 0, 65535}, NULL},
	    {"icmp", {RL_KIND_ICMP, 0, 0, 65535}, NULL},
	    {"frag", {RL_KIND_FRAG, 0, 0, 65535}, NULL},
	    {"tcp/443", {RL_KIND_TCP | RL_KIND_PORTS, 0, 443, 443}, NULL},
	    {"udp/53", {RL_KIND_UDP | RL_KIND_PORTS, 0, 53, 53}, NULL},
	    {"udp/1000-2000", {RL_KIND_UDP | RL_KIND_PORTS, 0, 1000, 2000}, NULL},
	    {"udp/10000-20000", {RL_KIND_UDP | RL_KIND_PORTS, 0, 10000, 20000}, NULL},
	    {"tcp/1-65535", {RL_KIND_TCP | RL_KIND_PORTS, 0, 1, 65535}, NULL}, /* isn't tcp: fragments */
	    {"tcp/65535", {RL_KIND_TCP | RL_KIND_PORTS, 0, 65535, 65535}, NULL},
	    {"tcp/80-80", {RL_KIND_TCP | RL_KIND_PORTS, 0, 80, 80}, "tcp/80"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_class class = class_of(cases[i].text);
		char buf[RL_CLASS_TEXT];

		cr_expect(!memcmp(&class, &cases[i].class, sizeof(class)), "%s", cases[i].text);
		cr_expect(rl_class_is_set(&class));
		cr_expect_str_eq(rl_class_print(&class, buf),
				 cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

Test(class, refused)
{
	static const struct refusal cases[] = {
	    {"", EINVAL, {"\"\" is empty", "tcp, syn, udp"}},
	    {"sctp", EINVAL, {"\"sctp\" is not a class", "expected tcp, syn, udp, icmp, frag"}},
	    {"TCP", EINVAL, {"\"TCP\" is not a class", "tcp/443"}},
	    {"tcp ", EINVAL, {"\"tcp \" is not a class", ""}},
	    {"tcp,udp", EINVAL, {"\"tcp,udp\" is not a class", ""}},
	    {"tc", EINVAL, {"\"tc\" is not a class", ""}},
	    {"/443", EINVAL, {"\"/443\" is not a class", ""}},
	    {"icmp/8", EINVAL, {"\"icmp/8\" has a port", "only tcp and udp"}},
	    {"syn/443", EINVAL, {"\"syn/443\" has a port", "only tcp and udp"}},
	    {"frag/1", EINVAL, {"\"frag/1\" has a port", "only tcp and udp"}},
	    {"tcp/", EINVAL, {"\"tcp/\"", "from 1 to 65535"}},
	    {"tcp/0", ERANGE, {"\"tcp/0\"", "from 1 to 65535"}},
	    {"tcp/65536", ERANGE, {"\"tcp/65536\"", "from 1 to 65535"}},
	    {"tcp/4294967376", ERANGE, {"\"tcp/4294967376\"", "from 1 to 65535"}},
	    {"tcp/080", EINVAL, {"\"tcp/080\"", "from 1 to 65535"}},
	    {"tcp/+80", EINVAL, {"\"tcp/+80\"", "from 1 to 65535"}},
	    {"tcp/http", EINVAL, {"\"tcp/http\"", "from 1 to 65535"}},
	    {"tcp/80/443", EINVAL, {"\"tcp/80/443\"", "from 1 to 65535"}},
	    {"udp/1000-", EINVAL, {"\"udp/1000-\"", "from 1 to 65535"}},
	    {"udp/-2000", EINVAL, {"\"udp/-2000\"", "from 1 to 65535"}},
	    {"udp/0-53", ERANGE, {"\"udp/0-53\"", "from 1 to 65535"}},
	    {"udp/1-65536", ERANGE, {"\"udp/1-65536\"", "from 1 to 65535"}},
	    {"udp/1-2-3", EINVAL, {"\"udp/1-2-3\"", "from 1 to 65535"}},
	    {"udp/2000-1000", EINVAL, {"runs backwards", "expected udp/1000-2000"}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_class out, untouched;
		struct rl_error err = {0};

		memset(&out, 0xa5, sizeof(out));
		untouched = out;
		check_refusal(&cases[i], rl_class_parse(cases[i].text, &out, &err), &err);
		cr_expect(!memcmp(&out, &untouched, sizeof(out)), "%s", cases[i].text);
	}
}

Test(class, none)
{
	struct rl_class none = {0};
	char buf[RL_CLASS_TEXT];

	cr_expect(!rl_class_is_set(&none));
	cr_expect_str_eq(rl_class_print(&none, buf), "");
}

Test(class, same)
{
	static const char *const all[] = {"tcp",    "syn",     "udp",	 "icmp",       "frag",
					  "tcp/80", "tcp/443", "udp/80", "udp/80-443", "udp/81-443"};

	for (size_t i = 0; i < COUNT(all); i++) {
		for (size_t j = 0; j < COUNT(all); j++) {
			struct rl_class a = class_of(all[i]), b = class_of(all[j]);

			cr_expect_eq(rl_class_same(&a, &b), i == j, "%s %s", all[i], all[j]);
		}
	}
}

/* Any class that can be. */
static struct rl_class random_class(__u64 *state)
{
	static const __u8 kinds[] = {RL_KIND_TCP, RL_KIND_SYN, RL_KIND_UDP, RL_KIND_ICMP, RL_KIND_FRAG};
	struct rl_class class = {.kinds = kinds[random_between(state, 0, COUNT(kinds) - 1)], .to = 65535};

	if (class.kinds != RL_KIND_TCP && class.kinds != RL_KIND_UDP)
		return class;
	if (random_next(state) & 3) {
		class.kinds |= RL_KIND_PORTS;
		class.from = (__u16)random_magnitude(state, 1, 65535);
		class.to =
		    (__u16)random_between(state, class.from, random_next(state) & 1 ? class.from : 65535);
	}
	return class;
}

Test(class, printed_is_parsed_back)
{
	__u64 state = SEED;

	for (int i = 0; i < ROUNDS; i++) {
		struct rl_class class = random_class(&state), back;
		char buf[RL_CLASS_TEXT];

		back = class_of(rl_class_print(&class, buf));
		cr_assert(!memcmp(&class, &back, sizeof(class)), "%s, seed %llu", buf, SEED);
	}
}

Test(cost, accepted)
{
	struct rl_terms terms = RL_TERMS_INIT, rest = RL_TERMS_INIT;
	struct rl_class syn = class_of("syn"), frag = class_of("frag");
	struct rl_error err = {0};
	char buf[RL_COSTS_TEXT];

	cr_expect_str_eq(rl_costs_print(&terms, buf), "");
	cr_assert_eq(rl_costs_parse("syn=10,icmp=2,frag=4", &terms, &err), 0, "%s", err.text);
	cr_expect_eq(terms.cost_count, 3);
	cr_expect(rl_class_same(&terms.cost[0].class, &syn) && terms.cost[0].tokens == 10);
	cr_expect_eq(terms.cost[1].tokens, 2);
	cr_expect(rl_class_same(&terms.cost[2].class, &frag) && terms.cost[2].tokens == 4);
	cr_expect_str_eq(rl_costs_print(&terms, buf), "syn=10,icmp=2,frag=4");

	/* A second list adds to the first. */
	cr_assert_eq(rl_costs_parse("tcp/443=65535,udp/1000-2000=1", &terms, &err), 0, "%s", err.text);
	cr_expect_eq(terms.cost_count, 5);
	cr_expect_str_eq(rl_costs_print(&terms, buf), "syn=10,icmp=2,frag=4,tcp/443=65535,udp/1000-2000=1");
	memcpy(rest.cost, terms.cost, sizeof(rest.cost));
	rest.cost_count = terms.cost_count;
	cr_expect(!memcmp(&terms, &rest, sizeof(terms)), "nothing else was said");
}

Test(cost, as_many_as_there_can_be)
{
	static const char eight[] = "udp/10000-20000=65535,udp/10001-20001=65535,udp/10002-20002=65535,"
				    "udp/10003-20003=65535,udp/10004-20004=65535,udp/10005-20005=65535,"
				    "udp/10006-20006=65535,udp/10007-20007=65535";
	struct rl_terms terms = RL_TERMS_INIT, untouched;
	struct refusal more = {"syn=2", E2BIG, {"cost \"syn=2\" is one too many", "at most 8"}};
	struct rl_error err = {0};
	char buf[RL_COSTS_TEXT];

	cr_assert_eq(rl_costs_parse(eight, &terms, &err), 0, "%s", err.text);
	cr_expect_eq(terms.cost_count, RL_MAX_COSTS);
	cr_expect_str_eq(rl_costs_print(&terms, buf), eight);
	untouched = terms;
	check_refusal(&more, rl_costs_parse(more.text, &terms, &err), &err);
	cr_expect(!memcmp(&terms, &untouched, sizeof(terms)));
}

Test(cost, refused)
{
	static const struct refusal cases[] = {
	    {"", EINVAL, {"cost \"\" is empty", "syn=10,icmp=2,frag=4"}},
	    {"syn=10,", EINVAL, {"cost \"\" is empty", "syn=10"}},
	    {",syn=10", EINVAL, {"cost \"\" is empty", "syn=10"}},
	    {"syn", EINVAL, {"cost \"syn\" has no number", "syn=10"}},
	    {"10", EINVAL, {"cost \"10\" has no number", "syn=10"}},
	    {"syn=", EINVAL, {"cost \"syn=\" is not a whole number", "1 to 65535"}},
	    {"syn=0", ERANGE, {"cost \"syn=0\" is out of range", "1 to 65535"}},
	    {"syn=65536", ERANGE, {"cost \"syn=65536\" is out of range", "1 to 65535"}},
	    {"syn=4294967297", ERANGE, {"out of range", "1 to 65535"}},
	    {"syn=2.5", EINVAL, {"cost \"syn=2.5\" is not a whole number", "1 to 65535"}},
	    {"syn=-2", EINVAL, {"cost \"syn=-2\" is not a whole number", "1 to 65535"}},
	    {"syn=02", EINVAL, {"cost \"syn=02\" is not a whole number", "1 to 65535"}},
	    {"syn=10 ", EINVAL, {"cost \"syn=10 \" is not a whole number", "1 to 65535"}},
	    {"syn=1=2", EINVAL, {"cost \"syn=1=2\" is not a whole number", "1 to 65535"}},
	    {"=10", EINVAL, {"class \"\" is empty", "expected tcp, syn"}},
	    {"sin=10", EINVAL, {"class \"sin\" is not a class", "expected tcp, syn"}},
	    {"tcp/0=10", ERANGE, {"class \"tcp/0\"", "from 1 to 65535"}},
	    {"syn=10,icmp=2,syn=4",
	     EEXIST,
	     {"cost \"syn=4\" is of a class that has a cost already", "syn=10"}},
	    {"tcp/80=2,tcp/80-80=3", EEXIST, {"cost \"tcp/80-80=3\"", "already"}},
	    {"syn=10;icmp=2", EINVAL, {"cost \"syn=10;icmp=2\" is not a whole number", ""}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_terms terms = RL_TERMS_INIT, untouched = terms;
		struct rl_error err = {0};

		check_refusal(&cases[i], rl_costs_parse(cases[i].text, &terms, &err), &err);
		cr_expect(!memcmp(&terms, &untouched, sizeof(terms)), "%s", cases[i].text);
	}
}

Test(cost, printed_is_parsed_back)
{
	__u64 state = SEED;

	for (int i = 0; i < ROUNDS / 10; i++) {
		struct rl_terms terms = RL_TERMS_INIT, back = RL_TERMS_INIT;
		size_t count = random_between(&state, 1, RL_MAX_COSTS);
		struct rl_error err = {0};
		char buf[RL_COSTS_TEXT];

		while (terms.cost_count < count) {
			struct rl_cost cost = {random_class(&state),
					       (__u16)random_magnitude(&state, 1, 65535)};
			bool is_there = false;

			for (int j = 0; j < terms.cost_count; j++)
				is_there |= rl_class_same(&terms.cost[j].class, &cost.class);
			if (!is_there)
				terms.cost[terms.cost_count++] = cost;
		}
		cr_assert_eq(rl_costs_parse(rl_costs_print(&terms, buf), &back, &err), 0, "%s, seed %llu",
			     err.text, SEED);
		cr_assert(!memcmp(&terms, &back, sizeof(terms)), "%s, seed %llu", buf, SEED);
	}
}

Test(priority, names)
{
	static const char *const names[RL_PRIORITIES] = {"high", "normal", "low"};

	for (int i = 0; i < RL_PRIORITIES; i++) {
		__u8 priority = 99;
		struct rl_error err = {0};

		cr_assert_eq(rl_priority_parse(names[i], &priority, &err), 0, "%s", err.text);
		cr_expect_eq(priority, i);
		cr_expect_str_eq(rl_priority_name((__u8)i), names[i]);
	}
	cr_expect_null(rl_priority_name(RL_PRIORITY_UNSET));
	cr_expect_null(rl_priority_name(255));
}

Test(priority, refused)
{
	static const char *const texts[] = {"", "High", "hig", "highest", "medium", "0", "low "};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct refusal refusal = {texts[i], EINVAL, {"priority \"", "expected high, normal or low"}};
		struct rl_error err = {0};
		__u8 priority = 99;

		check_refusal(&refusal, rl_priority_parse(texts[i], &priority, &err), &err);
		cr_expect_eq(priority, 99);
	}
}

Test(reserve, accepted)
{
	static const struct {
		const char *text;
		__u16 high, normal;
		const char *printed;
	} cases[] = {
	    {"high=20%,normal=5%", 2000, 500, NULL},
	    {"normal=5%,high=20%", 2000, 500, "high=20%,normal=5%"},
	    {"high=20%", 2000, 0, NULL},
	    {"normal=5%", 0, 500, NULL},
	    {"high=0.01%", 1, 0, NULL},
	    {"high=99.99%,normal=0.01%", 9999, 1, NULL},
	    {"high=12.5%", 1250, 0, NULL},
	    {"high=12.50%", 1250, 0, "high=12.5%"},
	    {"high=12.05%", 1205, 0, NULL},
	    {"high=20.00%", 2000, 0, "high=20%"},
	    {"high=100%", 10000, 0, NULL},
	    {"high=50%,normal=50%", 5000, 5000, NULL},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_terms terms = RL_TERMS_INIT;
		struct rl_error err = {0};
		char buf[RL_RESERVE_TEXT];

		cr_assert_eq(rl_reserve_parse(cases[i].text, &terms, &err), 0, "%s", err.text);
		cr_expect_eq(terms.reserve[RL_PRIORITY_HIGH], cases[i].high, "%s", cases[i].text);
		cr_expect_eq(terms.reserve[RL_PRIORITY_NORMAL], cases[i].normal, "%s", cases[i].text);
		cr_expect_str_eq(rl_reserve_print(&terms, buf),
				 cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

Test(reserve, refused)
{
	static const struct refusal cases[] = {
	    {"", EINVAL, {"reserve \"\" is empty", "high=20%,normal=5%"}},
	    {"high=20%,", EINVAL, {"reserve \"\" is empty", "high=20%"}},
	    {"20%", EINVAL, {"\"20%\" is for no priority", "expected high, normal or both"}},
	    {"urgent=20%", EINVAL, {"\"urgent=20%\" is for no priority", "expected high"}},
	    {"low=20%", EINVAL, {"\"low=20%\"", "nothing is below low"}},
	    {"high", EINVAL, {"\"high\" has no share", "high=20%"}},
	    {"high=", EINVAL, {"\"high=\" is not a share", "high=20%"}},
	    {"high=20", EINVAL, {"\"high=20\" does not end in %", "high=20%"}},
	    {"high=20%%", EINVAL, {"does not end in %", "high=20%"}},
	    {"high=20 %", EINVAL, {"does not end in %", "high=20%"}},
	    {"high=.5%", EINVAL, {"is not a share", ""}},
	    {"high=5.%", EINVAL, {"is not a share", ""}},
	    {"high=05%", EINVAL, {"is not a share", ""}},
	    {"high=-5%", EINVAL, {"is not a share", ""}},
	    {"high=0.001%", EINVAL, {"is finer than 0.01%", ""}},
	    {"high=0%", EINVAL, {"is out of range: from 0.01% to 100%", ""}},
	    {"high=0.00%", EINVAL, {"is out of range: from 0.01% to 100%", ""}},
	    {"high=100.01%", EINVAL, {"\"high=100.01%\" is out of range: from 0.01% to 100%", ""}},
	    {"high=120%", EINVAL, {"\"high=120%\" is out of range: from 0.01% to 100%", ""}},
	    {"high=99999999999999999999%", EINVAL, {"is out of range: from 0.01% to 100%", ""}},
	    {"high=20%,high=5%", EEXIST, {"\"high=5%\" is of a priority that has a reserve already", ""}},
	    {"high=60%,normal=50%", ERANGE, {"\"normal=50%\" makes more than 100%", ""}},
	    {"normal=0.01%,high=100%", ERANGE, {"\"high=100%\" makes more than 100%", ""}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_terms terms = RL_TERMS_INIT, untouched = terms;
		struct rl_error err = {0};

		check_refusal(&cases[i], rl_reserve_parse(cases[i].text, &terms, &err), &err);
		cr_expect(!memcmp(&terms, &untouched, sizeof(terms)), "%s", cases[i].text);
	}
}

/* Each share that there is, alone and beside another. */
Test(reserve, printed_is_parsed_back)
{
	for (__u16 share = 0; share <= RL_RESERVE_WHOLE; share++) {
		for (int other = 0; other < 2; other++) {
			struct rl_terms terms = RL_TERMS_INIT, back = RL_TERMS_INIT;
			struct rl_error err = {0};
			char buf[RL_RESERVE_TEXT];

			terms.reserve[other] = share;
			terms.reserve[!other] = (__u16)((RL_RESERVE_WHOLE - share) * other);
			if (!terms.reserve[0] && !terms.reserve[1]) {
				cr_assert_str_eq(rl_reserve_print(&terms, buf), "");
				continue;
			}
			cr_assert_eq(rl_reserve_parse(rl_reserve_print(&terms, buf), &back, &err), 0, "%s",
				     err.text);
			cr_assert(!memcmp(&terms, &back, sizeof(terms)), "%s", buf);
		}
	}
}

Test(per, accepted)
{
	for (unsigned int bits = 1; bits <= 128; bits++) {
		char text[8];
		__u8 per = 0;
		struct rl_error err = {0};

		snprintf(text, sizeof(text), "/%u", bits);
		cr_assert_eq(rl_per_parse(text, &per, &err), 0, "%s", err.text);
		cr_expect_eq(per, bits);
	}
}

Test(per, refused)
{
	static const struct refusal cases[] = {
	    {"28", EINVAL, {"per \"28\" has no /", "write /28"}},
	    {"", EINVAL, {"per \"\"", "such as /28 or /48"}},
	    {"/", EINVAL, {"per \"/\"", "such as /28 or /48"}},
	    {"/0", ERANGE, {"per \"/0\"", "/1 to /32 for IPv4, /1 to /128 for IPv6"}},
	    {"/129", ERANGE, {"per \"/129\"", "/1 to /128"}},
	    {"/4294967320", ERANGE, {"per \"/4294967320\"", "/1 to /128"}},
	    {"/028", EINVAL, {"per \"/028\"", "such as /28"}},
	    {"//28", EINVAL, {"per \"//28\"", "such as /28"}},
	    {"/28 ", EINVAL, {"per \"/28 \"", "such as /28"}},
	    {"10.0.0.0/28", EINVAL, {"per \"10.0.0.0/28\"", "such as /28"}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_error err = {0};
		__u8 per = 99;

		check_refusal(&cases[i], rl_per_parse(cases[i].text, &per, &err), &err);
		cr_expect_eq(per, 99);
	}
}

/* What is refused is repeated in part, however long it is. */
Test(words, long_ones_are_cut)
{
	static const char *const before[] = {"", "high=", "syn=", "tcp/", "/"};
	static char text[5000];

	for (size_t i = 0; i < COUNT(before); i++) {
		struct rl_terms terms = RL_TERMS_INIT;
		struct rl_class class;
		struct rl_error err;
		__u8 byte;

		memset(text, '7', sizeof(text) - 1);
		memcpy(text, before[i], strlen(before[i]));
		cr_expect(rl_class_parse(text, &class, &err) && strlen(err.text) < 300, "%s", err.text);
		cr_expect(rl_costs_parse(text, &terms, &err) && strlen(err.text) < 300, "%s", err.text);
		cr_expect(rl_reserve_parse(text, &terms, &err) && strlen(err.text) < 300, "%s", err.text);
		cr_expect(rl_priority_parse(text, &byte, &err) && strlen(err.text) < 300, "%s", err.text);
		cr_expect(rl_per_parse(text, &byte, &err) && strlen(err.text) < 300, "%s", err.text);
	}
}

Test(words, object)
{
	struct rl_target target;
	struct rl_class class = {0};
	struct rl_error err;
	char buf[RL_OBJECT_TEXT];

	cr_assert_eq(rl_target_parse("198.51.100.0/24", &target, &err), 0);
	cr_expect_str_eq(rl_object_print(&target, &class, buf), "198.51.100.0/24");
	class = class_of("udp/10000-20000");
	cr_expect_str_eq(rl_object_print(&target, &class, buf), "class udp/10000-20000 of 198.51.100.0/24");
}
