// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../user/target.h"
#include "random.h"

#define ROUNDS 100000
#define SEED   20261130ULL

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define LETTERS	  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_31	  "a234567890123456789012345678901"
#define DEVICE_15 "d23456789012345"

static struct rl_target target(const char *text)
{
	struct rl_target out;
	struct rl_error err = {0};

	memset(&out, 0xa5, sizeof(out));
	cr_assert_eq(rl_target_parse(text, &out, &err), 0, "%s: %s", text, err.text);
	return out;
}

Test(target, accepted)
{
	static const struct {
		const char *text;
		enum rl_target_kind kind;
		const char *name, *printed;
	} cases[] = {
	    {"203.0.113.7", RL_TARGET_PREFIX, "", NULL},
	    {"203.0.113.7/32", RL_TARGET_PREFIX, "", "203.0.113.7"},
	    {"2001:db8::/32", RL_TARGET_PREFIX, "", NULL},
	    {"any", RL_TARGET_PREFIX, "", NULL},
	    {"tenant:acme", RL_TARGET_TENANT, "acme", NULL},
	    {"tenant:" NAME_31, RL_TARGET_TENANT, NAME_31, NULL},
	    {"tenant:A-1._x", RL_TARGET_TENANT, "A-1._x", NULL},
	    {"dev:eth0", RL_TARGET_DEVICE, "eth0", NULL},
	    {"dev:" DEVICE_15, RL_TARGET_DEVICE, DEVICE_15, NULL},
	    {"dev:new", RL_TARGET_DEVICE, "new", NULL},
	    {"dev:eth0.100@x", RL_TARGET_DEVICE, "eth0.100@x", NULL},
	    {"new", RL_TARGET_NEW, "", NULL},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_target t = target(cases[i].text);
		char buf[RL_TARGET_TEXT], name[RL_TENANT_LEN] = {0};
		struct rl_prefix none = {0};

		cr_expect_eq(t.kind, cases[i].kind, "%s", cases[i].text);
		cr_expect_eq(t.pad, 0);
		memcpy(name, cases[i].name, strlen(cases[i].name));
		cr_expect(!memcmp(t.name, name, sizeof(name)), "%s", cases[i].text);
		cr_expect(t.kind == RL_TARGET_PREFIX || !memcmp(&t.prefix, &none, sizeof(none)), "%s",
			  cases[i].text);
		cr_expect_str_eq(rl_target_print(&t, buf),
				 cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

Test(target, refused)
{
	static const struct {
		const char *text;
		const char *says[2];
	} cases[] = {
	    {"tenant:", {"tenant \"\"", "1 to 31 bytes, this one 0"}},
	    {"tenant:" NAME_31 "x", {NAME_31 "x", "1 to 31 bytes, this one 32"}},
	    {"tenant:two words", {"\"two words\"", "without spaces"}},
	    {"tenant:acme ", {"\"acme \"", "expected a letter"}},
	    {"tenant:1st", {"\"1st\"", "expected a letter"}},
	    {"tenant:-x", {"\"-x\"", "expected a letter"}},
	    {"tenant:a/b", {"\"a/b\"", "expected a letter"}},
	    {"tenant:a:b", {"\"a:b\"", "expected a letter"}},
	    {"tenant:a,b", {"\"a,b\"", "expected a letter"}},
	    {"tenant:caf\xc3\xa9", {"\"caf\\xc3\\xa9\"", "expected a letter"}},
	    {"tenant:any", {"\"any\"", "another name"}},
	    {"tenant:new", {"\"new\"", "another name"}},
	    {"tenant:all", {"\"all\"", "another name"}},
	    {"tenant:none", {"\"none\"", "another name"}},
	    {"dev:", {"\"dev:\"", "1 to 15 bytes, this one 0"}},
	    {"dev:" DEVICE_15 "6", {"dev:" DEVICE_15 "6", "1 to 15 bytes, this one 16"}},
	    {"dev:a/b", {"\"dev:a/b\"", "no '/' and no spaces"}},
	    {"dev:a b", {"\"dev:a b\"", "no '/' and no spaces"}},
	    {"dev:a/\x1b[31m", {"\"dev:a/\\x1b[31m\"", "no '/' and no spaces"}},
	    {"dev:a\tb", {"\"dev:a\\x09b\"", "no '/' and no spaces"}},
	    {"acme", {"\"acme\"", "tenant:NAME, dev:NAME, new"}},
	    {"eth0", {"\"eth0\"", "dev:NAME"}},
	    {"fade", {"\"fade\"", "dev:NAME"}}, /* hexadecimal digits, and a name all the same */
	    {"none", {"\"none\"", "dev:NAME"}},
	    {"NEW", {"\"NEW\"", "dev:NAME, new"}},
	    {"Tenant:acme", {"\"Tenant:acme\"", "tenant:NAME"}},
	    {"device:eth0", {"\"device:eth0\"", "dev:NAME"}},
	    {"example.org", {"\"example.org\"", "neither an address nor a network"}},
	    {"new ", {"\"new \"", "neither an address"}},
	    {"", {"\"\"", "is empty"}},
	    {"10.0.0.1/8", {"10.0.0.1/8", "write 10.0.0.0/8"}},
	    {"10.0.0.256", {"10.0.0.256", "four numbers"}},
	    {"fe80::1%eth0", {"fe80::1%eth0", "zone id"}},
	    {"dead::beef::1", {"dead::beef::1", "is not an address"}},
	    {"any/0", {"any/0", "is not an address"}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_target out, untouched;
		struct rl_error err = {0};

		memset(&out, 0xa5, sizeof(out));
		untouched = out;
		cr_expect_eq(rl_target_parse(cases[i].text, &out, &err), -EINVAL, "%s: %s", cases[i].text,
			     err.text);
		cr_expect_eq(err.kind, RL_ERROR_USAGE);
		cr_expect(strstr(err.text, cases[i].says[0]) && strstr(err.text, cases[i].says[1]),
			  "%s says: %s", cases[i].text, err.text);
		cr_expect(!memcmp(&out, &untouched, sizeof(out)), "%s", cases[i].text);
	}
}

/* A name as long as a command line can be is repeated in part. */
Test(target, long_names_are_cut)
{
	static const char *const before[] = {"tenant:", "dev:", ""};
	char text[5000];

	for (size_t i = 0; i < COUNT(before); i++) {
		struct rl_target out;
		struct rl_error err = {0};

		memset(text, 'x', sizeof(text));
		memcpy(text, before[i], strlen(before[i]));
		text[sizeof(text) - 1] = '\0';
		cr_expect_eq(rl_target_parse(text, &out, &err), -EINVAL);
		cr_expect(strlen(err.text) < 300, "%s", err.text);
	}
}

Test(target, tenant_names)
{
	static const struct {
		const char *name;
		int code;
	} cases[] = {{"a", 0},
		     {"Z9", 0},
		     {"a.b_c-d", 0},
		     {NAME_31, 0},
		     {"anyone", 0},
		     {"newer", 0},
		     {"", -EINVAL},
		     {NAME_31 "x", -EINVAL},
		     {"a b", -EINVAL},
		     {" a", -EINVAL},
		     {"9", -EINVAL},
		     {".a", -EINVAL},
		     {"a\n", -EINVAL},
		     {"any", -EINVAL},
		     {"new", -EINVAL},
		     {"all", -EINVAL},
		     {"none", -EINVAL},
		     {"a=b", -EINVAL},
		     {"a%", -EINVAL},
		     {"2001:db8::", -EINVAL},
		     {"10.0.0.1", -EINVAL}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_error err = {0};

		cr_expect_eq(rl_tenant_check(cases[i].name, &err), cases[i].code, "%s: %s", cases[i].name,
			     err.text);
		cr_expect_eq(err.kind, cases[i].code ? RL_ERROR_USAGE : RL_ERROR_NONE);
	}
}

Test(target, order)
{
	static const char *const sorted[] = {
	    "any",	   "10.0.0.0/8", "10.0.0.1", "::/0",	 "2001:db8::1", "tenant:a",
	    "tenant:acme", "tenant:b",	 "dev:a",    "dev:eth0", "dev:eth1",	"new",
	};

	for (size_t i = 0; i < COUNT(sorted); i++) {
		for (size_t j = 0; j < COUNT(sorted); j++) {
			struct rl_target a = target(sorted[i]), b = target(sorted[j]);
			int order = rl_target_compare(&a, &b);

			cr_expect_eq((order > 0) - (order < 0), (i > j) - (i < j), "%s %s", sorted[i],
				     sorted[j]);
		}
	}
}

Test(target, of_prefix)
{
	struct rl_target t = target("198.51.100.0/24"), made = rl_target_prefix(&t.prefix);

	cr_expect(!memcmp(&t, &made, sizeof(t)));
}

/* A letter, then up to `most` - 1 bytes of a set. */
static void random_name(__u64 *state, const char *set, size_t most, char *out)
{
	size_t length = random_between(state, 1, most);

	for (size_t i = 0; i < length; i++) {
		const char *from = i ? set : LETTERS;

		out[i] = from[random_between(state, 0, strlen(from) - 1)];
	}
	out[length] = '\0';
}

Test(target, printed_is_parsed_back)
{
	static const char tenants[] = LETTERS "0123456789._-", devices[] = LETTERS "0123456789._-:@%\\\"'&";
	__u64 state = SEED;

	for (int i = 0; i < ROUNDS; i++) {
		char text[RL_TARGET_TEXT], name[RL_TENANT_LEN], printed[RL_TARGET_TEXT];
		bool tenant = random_next(&state) & 1;
		struct rl_target t, back;
		struct rl_error ignored;

		random_name(&state, tenant ? tenants : devices, tenant ? RL_TENANT_LEN - 1 : RL_NAME_LEN - 1,
			    name);
		if (tenant && rl_tenant_check(name, &ignored)) /* "any" and the like */
			continue;
		snprintf(text, sizeof(text), "%s:%s", tenant ? "tenant" : "dev", name);
		t = target(text);
		cr_assert_str_eq(rl_target_print(&t, printed), text, "seed %llu", SEED);
		back = target(printed);
		cr_assert(!memcmp(&t, &back, sizeof(t)) && !rl_target_compare(&t, &back), "%s", text);
	}
}
