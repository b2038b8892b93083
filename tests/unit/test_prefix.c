// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../user/prefix.h"
#include "random.h"

#define ROUNDS 100000
#define SEED   20240608ULL

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct rl_prefix target(const char *text)
{
	struct rl_prefix out;
	struct rl_error err = {0};

	cr_assert_eq(rl_prefix_parse(text, &out, &err), 0, "%s: %s", text, err.text);
	return out;
}

Test(prefix, accepted)
{
	static const struct {
		const char *text, *printed;
		unsigned int family, bits;
	} cases[] = {
	    {"203.0.113.7", "203.0.113.7", 4, 32},
	    {"203.0.113.7/32", "203.0.113.7", 4, 32},
	    {"198.51.100.0/24", "198.51.100.0/24", 4, 24},
	    {"10.0.0.0/8", "10.0.0.0/8", 4, 8},
	    {"128.0.0.0/1", "128.0.0.0/1", 4, 1},
	    {"0.0.0.0/0", "0.0.0.0/0", 4, 0},
	    {"0.0.0.0", "0.0.0.0", 4, 32},
	    {"10.0.0.128/25", "10.0.0.128/25", 4, 25},
	    {"::/0", "::/0", 6, 0},
	    {"::", "::", 6, 128},
	    {"::1", "::1", 6, 128},
	    {"2001:db8::/32", "2001:db8::/32", 6, 32},
	    {"2001:DB8:0:0:0:0:0:1", "2001:db8::1", 6, 128},
	    {"2001:0db8::0001/128", "2001:db8::1", 6, 128},
	    {"2001:db8:0:0:1:0:0:0", "2001:db8:0:0:1::", 6, 128},
	    {"2001:db8:0:1::/64", "2001:db8:0:1::/64", 6, 64},
	    {"fe80::/10", "fe80::/10", 6, 10},
	    {"8000::/1", "8000::/1", 6, 1},
	    {"64:ff9b::192.0.2.1", "64:ff9b::c000:201", 6, 128},
	    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 6, 128},
	    {"::ff00:0:0/88", "::ff00:0:0/88", 6, 88},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_prefix t = target(cases[i].text);
		char buf[RL_PREFIX_TEXT];

		cr_expect_eq(t.family, cases[i].family, "%s", cases[i].text);
		cr_expect_eq(t.prefixlen, RL_PREFIX_FAMILY_BITS + cases[i].bits, "%s", cases[i].text);
		cr_expect_str_eq(rl_prefix_print(&t, buf), cases[i].printed);
	}
}

Test(prefix, key_bytes)
{
	static const struct rl_prefix v4 = {.prefixlen = 56, .family = 4, .addr = {198, 51, 100}};
	static const struct rl_prefix v6 = {.prefixlen = 64, .family = 6, .addr = {0x20, 0x01, 0x0d, 0xb8}};
	static const struct rl_prefix any;
	struct rl_prefix t = target("198.51.100.0/24");
	char buf[RL_PREFIX_TEXT];

	cr_expect(!memcmp(&t, &v4, sizeof(t)));
	t = target("2001:db8::/32");
	cr_expect(!memcmp(&t, &v6, sizeof(t)));
	t = target("any");
	cr_expect(!memcmp(&t, &any, sizeof(t)));
	cr_expect_str_eq(rl_prefix_print(&t, buf), "any");
}

Test(prefix, refused)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} cases[] = {
	    {"10.0.0.0/33", ERANGE, "expected 0 to 32 for IPv4"},
	    {"10.0.0.1/99999999999999999999", ERANGE, "expected 0 to 32 for IPv4"},
	    {"2001:db8::/129", ERANGE, "expected 0 to 128 for IPv6"},
	    {"::1/4294967297", ERANGE, "expected 0 to 128 for IPv6"},
	    {"10.0.0.1/8", EINVAL, "write 10.0.0.0/8"},
	    {"10.0.0.1/0", EINVAL, "write 0.0.0.0/0"},
	    {"10.0.0.255/25", EINVAL, "write 10.0.0.128/25"},
	    {"192.0.2.3/31", EINVAL, "write 192.0.2.2/31"},
	    {"2001:db8::1/32", EINVAL, "write 2001:db8::/32"},
	    {"2001:db8::1/127", EINVAL, "write 2001:db8::/127"},
	    {"::1/0", EINVAL, "write ::/0"},
	    {"::ffff:203.0.113.7", EINVAL, "write 203.0.113.7"},
	    {"::ffff:cb00:7107", EINVAL, "write 203.0.113.7"},
	    {"::ffff:10.0.0.0/104", EINVAL, "write 10.0.0.0/8"},
	    {"::ffff:10.0.0.1/104", EINVAL, "write 10.0.0.0/8"},
	    {"::ffff:0:0/96", EINVAL, "write 0.0.0.0/0"},
	    {"fe80::1%eth0", EINVAL, "zone id"},
	    {"fe80::1%eth0/64", EINVAL, "zone id"},
	    {"", EINVAL, "is empty"},
	    {"10.0.0/8", EINVAL, "four numbers"},
	    {"10/8", EINVAL, "four numbers"},
	    {"10.0.0.256", EINVAL, "four numbers"},
	    {"010.0.0.1", EINVAL, "leading zeros"},
	    {"10.0.0.0/", EINVAL, "prefix length"},
	    {"10.0.0.0/+8", EINVAL, "prefix length"},
	    {"10.0.0.0/-1", EINVAL, "prefix length"},
	    {"10.0.0.0/08", EINVAL, "prefix length"},
	    {"10.0.0.0/8 ", EINVAL, "prefix length"},
	    {"10.0.0.0/8/8", EINVAL, "prefix length"},
	    {"10.0.0.0/255.0.0.0", EINVAL, "prefix length"},
	    {" 10.0.0.1", EINVAL, "is not an address"},
	    {"example.org", EINVAL, "is not an address"},
	    {"ANY", EINVAL, "is not an address"},
	    {"any/0", EINVAL, "is not an address"},
	    {"/8", EINVAL, "is not an"},
	    {"[::1]", EINVAL, "is not an address"},
	    {"2001:db8::1::", EINVAL, "is not an address"},
	    {"2001:0db8:0000:0000:0000:0000:0000:0001:0000:0000", EINVAL, "is not an address"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_prefix out, untouched;
		struct rl_error err = {0};

		memset(&out, 0xa5, sizeof(out));
		untouched = out;
		cr_expect_eq(rl_prefix_parse(cases[i].text, &out, &err), -cases[i].code, "%s: %s",
			     cases[i].text, err.text);
		cr_expect_eq(err.kind, RL_ERROR_USAGE);
		cr_expect(strstr(err.text, cases[i].says), "%s says: %s", cases[i].text, err.text);
		cr_expect(strstr(err.text, cases[i].text), "%s says: %s", cases[i].text, err.text);
		cr_expect(!memcmp(&out, &untouched, sizeof(out)), "%s", cases[i].text);
	}
}

/* Zero bits from `bits` on. */
static void keep_bits(__u8 addr[16], unsigned int bits)
{
	for (unsigned int i = bits; i < 128; i++)
		addr[i / 8] &= (__u8) ~(0x80 >> i % 8);
}

static struct rl_prefix random_target(__u64 *state)
{
	struct rl_prefix t = {.family = random_next(state) & 1 ? 4 : 6};
	unsigned int bits = (unsigned int)random_between(state, 0, t.family == 4 ? 32 : 128);

	for (unsigned int i = 0; i < 16; i++) /* with runs of zeros, for RFC 5952's :: */
		t.addr[i] = random_next(state) & 1 ? 0 : (__u8)random_next(state);
	keep_bits(t.addr, bits);
	t.prefixlen = RL_PREFIX_FAMILY_BITS + bits;
	return t;
}

static bool is_mapped(const struct rl_prefix *t)
{
	static const __u8 mapped[12] = {[10] = 0xff, [11] = 0xff};

	return t->family == 6 && t->prefixlen >= RL_PREFIX_FAMILY_BITS + 96 &&
	       !memcmp(t->addr, mapped, sizeof(mapped));
}

Test(prefix, printed_is_parsed_back)
{
	__u64 state = SEED;

	cr_log_info("seed %llu", SEED);
	for (int i = 0; i < ROUNDS; i++) {
		struct rl_prefix t = random_target(&state), back;
		char buf[RL_PREFIX_TEXT], again[RL_PREFIX_TEXT];
		struct rl_error err = {0};

		if (is_mapped(&t))
			continue;
		cr_assert_eq(rl_prefix_parse(rl_prefix_print(&t, buf), &back, &err), 0, "%s, seed %llu",
			     err.text, SEED);
		cr_assert(!memcmp(&t, &back, sizeof(t)), "%s, seed %llu", buf, SEED);
		cr_assert_str_eq(rl_prefix_print(&back, again), buf);
	}
}

Test(prefix, covers)
{
	static const struct {
		const char *outer, *inner;
		bool covers;
	} cases[] = {
	    {"any", "any", true},
	    {"any", "0.0.0.0/0", true},
	    {"any", "2001:db8::1", true},
	    {"0.0.0.0/0", "any", false},
	    {"::/0", "any", false},
	    {"0.0.0.0/0", "10.0.0.1", true},
	    {"0.0.0.0/0", "::1", false},
	    {"::/0", "10.0.0.1", false},
	    {"::/0", "0.0.0.0/0", false},
	    {"10.0.0.0/8", "10.0.0.0/8", true},
	    {"10.0.0.0/8", "10.255.255.255", true},
	    {"10.0.0.0/8", "11.0.0.0/8", false},
	    {"10.0.0.0/8", "10.0.0.0/7", false},
	    {"10.0.0.128/25", "10.0.0.129", true},
	    {"10.0.0.128/25", "10.0.0.127", false},
	    {"10.0.0.1", "10.0.0.1", true},
	    {"10.0.0.1", "10.0.0.0/24", false},
	    {"2001:db8::/33", "2001:db8:7fff::1", true},
	    {"2001:db8::/33", "2001:db8:8000::1", false},
	    {"a00::/8", "10.0.0.1", false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_prefix outer = target(cases[i].outer), inner = target(cases[i].inner);

		cr_expect_eq(rl_prefix_covers(&outer, &inner), cases[i].covers, "%s %s", cases[i].outer,
			     cases[i].inner);
	}
}

Test(prefix, is_source)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
	    {"any", false},	     {"0.0.0.0/0", false},    {"10.0.0.0/31", false},
	    {"10.0.0.1", true},	     {"::/0", false},	      {"2001:db8::/63", false},
	    {"2001:db8::/64", true}, {"2001:db8::/65", true}, {"2001:db8::1", true},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_prefix t = target(cases[i].text);

		cr_expect_eq(rl_prefix_is_source(&t), cases[i].is, "%s", cases[i].text);
	}
}

Test(prefix, cut)
{
	static const __u8 v4[4] = {192, 0, 2, 255}, v6[16] = {0x20, 0x01, 0x0d, 0xb8, 0,    0,	  0,	7,
							      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const struct {
		__u8 family;
		unsigned int bits;
		const char *text;
	} cases[] = {
	    {4, 32, "192.0.2.255"},
	    {4, 31, "192.0.2.254/31"},
	    {4, 25, "192.0.2.128/25"},
	    {4, 24, "192.0.2.0/24"},
	    {4, 1, "128.0.0.0/1"},
	    {4, 0, "0.0.0.0/0"},
	    {4, 64, "192.0.2.255"}, /* more than there are */
	    {6, 128, "2001:db8:0:7:ffff:ffff:ffff:ffff"},
	    {6, 127, "2001:db8:0:7:ffff:ffff:ffff:fffe/127"},
	    {6, 65, "2001:db8:0:7:8000::/65"},
	    {6, 64, "2001:db8:0:7::/64"},
	    {6, 48, "2001:db8::/48"},
	    {6, 0, "::/0"},
	    {6, 255, "2001:db8:0:7:ffff:ffff:ffff:ffff"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_prefix got =
		    rl_prefix_cut(cases[i].family, cases[i].family == 4 ? v4 : v6, cases[i].bits);
		struct rl_prefix want = target(cases[i].text);

		cr_expect(!memcmp(&got, &want, sizeof(got)), "%s", cases[i].text);
	}
}

/* Bit by bit. */
Test(prefix, cut_property)
{
	__u64 state = SEED;

	for (int i = 0; i < ROUNDS; i++) {
		struct rl_prefix whole = random_target(&state), got, want;
		unsigned int most = whole.family == 4 ? 32 : 128;
		unsigned int bits = (unsigned int)random_between(&state, 0, most);

		for (unsigned int byte = 0; byte < most / 8; byte++)
			whole.addr[byte] = (__u8)random_next(&state);
		want = whole;
		want.prefixlen = RL_PREFIX_FAMILY_BITS + bits;
		keep_bits(want.addr, bits);
		got = rl_prefix_cut(whole.family, whole.addr, bits);
		cr_assert(!memcmp(&got, &want, sizeof(got)), "round %d, seed %llu", i, SEED);
	}
}

Test(prefix, order)
{
	static const char *const sorted[] = {
	    "any",	"0.0.0.0/0",	 "0.0.0.0",	  "10.0.0.0/8",	    "10.0.0.0/24",
	    "10.0.0.0", "10.0.0.1",	 "192.0.2.0/24",  "192.0.2.128/25", "::/0",
	    "::1",	"2001:db8::/32", "2001:db8::/64", "2001:db8::1",
	};

	for (size_t i = 0; i < COUNT(sorted); i++) {
		for (size_t j = 0; j < COUNT(sorted); j++) {
			struct rl_prefix a = target(sorted[i]), b = target(sorted[j]);
			int order = rl_prefix_compare(&a, &b);

			cr_expect_eq((order > 0) - (order < 0), (i > j) - (i < j), "%s %s", sorted[i],
				     sorted[j]);
		}
	}
}

/* Order and containment agree: what covers a target stands before it. */
Test(prefix, order_property)
{
	__u64 state = SEED;

	for (int i = 0; i < ROUNDS; i++) {
		struct rl_prefix inner = random_target(&state), outer = inner;
		unsigned int bits =
		    (unsigned int)random_between(&state, 0, inner.prefixlen - RL_PREFIX_FAMILY_BITS);

		keep_bits(outer.addr, bits);
		outer.prefixlen = RL_PREFIX_FAMILY_BITS + bits;
		cr_assert(rl_prefix_covers(&outer, &inner));
		cr_assert_leq(rl_prefix_compare(&outer, &inner), 0);
		cr_assert_eq(rl_prefix_covers(&inner, &outer), inner.prefixlen == outer.prefixlen);
		if (inner.prefixlen != outer.prefixlen)
			cr_assert_gt(rl_prefix_compare(&inner, &outer), 0);
	}
}
