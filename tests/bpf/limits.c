// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * limits.c - which limit and which bucket a source gets, and what a packet costs there; in both stores.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "stories.h"

static struct rl_frame_spec from(const char *source)
{
	return (struct rl_frame_spec){.src = source};
}

static void expect_from(int line, struct fixture *fx, const char *source, enum rl_reason reason,
			const struct rl_limit *limit)
{
	struct rl_frame_spec spec = from(source);

	fx->what = source;
	fixture_expect_at(line, fx, &spec, reason, limit);
}
#define expect_from(...) expect_from(__LINE__, __VA_ARGS__)

StoreTest(limits, longest_prefix_wins)
{
	struct fixture fx = story_open(*store);
	struct rl_limit any, wide4, mid4, one4, wide6, mid6, one6;

	one4 = fixture_limit(&fx, "198.51.100.7", "1kpps", NULL);
	any = fixture_limit(&fx, "any", "1kpps", NULL);
	wide4 = fixture_limit(&fx, "198.0.0.0/8", "1kpps", NULL);
	mid4 = fixture_limit(&fx, "198.51.100.0/24", "1kpps", NULL);
	wide6 = fixture_limit(&fx, "2001:db8::/32", "1kpps", NULL);
	one6 = fixture_limit(&fx, "2001:db8:1:2::7", "1kpps", NULL);
	mid6 = fixture_limit(&fx, "2001:db8:1::/48", "1kpps", NULL);

	expect_from(&fx, "198.51.100.7", RL_PASS_LIMIT, &one4);
	expect_from(&fx, "198.51.100.8", RL_PASS_LIMIT, &mid4);
	expect_from(&fx, "198.51.101.7", RL_PASS_LIMIT, &wide4);
	expect_from(&fx, "199.51.100.7", RL_PASS_LIMIT, &any);
	expect_from(&fx, "2001:db8:1:2::7", RL_PASS_LIMIT, &one6);
	expect_from(&fx, "2001:db8:1:2::8", RL_PASS_LIMIT, &mid6);
	expect_from(&fx, "2001:db8:2::7", RL_PASS_LIMIT, &wide6);
	expect_from(&fx, "2001:db9::7", RL_PASS_LIMIT, &any);

	/* What covers a target takes over when it goes. */
	fixture_unlimit(&fx, "198.51.100.7");
	fixture_unlimit(&fx, "2001:db8:1::/48");
	fixture_unlimit(&fx, "any");
	expect_from(&fx, "198.51.100.7", RL_PASS_LIMIT, &mid4);
	expect_from(&fx, "2001:db8:1:2::8", RL_PASS_LIMIT, &wide6);
	expect_from(&fx, "199.51.100.7", RL_PASS_NO_LIMIT, NULL);
	expect_from(&fx, "2001:db9::7", RL_PASS_NO_LIMIT, NULL);
	fixture_close(&fx);
}

/* A narrower limit takes a source out of the wider one altogether: neither charges the other's bucket. */
StoreTest(limits, only_the_longest_is_charged)
{
	struct fixture fx = story_open(*store);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "1", NULL);
	struct rl_limit mid4 = fixture_limit(&fx, "198.51.100.0/24", "1/h", "2", NULL);
	struct rl_limit mid6 = fixture_limit(&fx, "2001:db8::/32", "1/h", "2", NULL);
	struct rl_source none;

	for (int i = 0; i < 3; i++) {
		expect_from(&fx, "198.51.100.7", i < 2 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &mid4);
		expect_from(&fx, "2001:db8::7", i < 2 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &mid6);
	}
	cr_assert_not(fixture_source(&fx, &any, "198.51.100.7", &none));
	cr_assert_not(fixture_source(&fx, &any, "2001:db8::7", &none));
	fixture_close(&fx);
}

StoreTest(limits, any_is_both_families)
{
	struct fixture fx = story_open(*store);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "1", NULL), all4, all6;

	expect_from(&fx, "203.0.113.7", RL_PASS_LIMIT, &any);
	expect_from(&fx, "2001:db8::7", RL_PASS_LIMIT, &any);
	expect_from(&fx, "203.0.113.7", RL_DROP_SOURCE, &any);
	expect_from(&fx, "2001:db8::7", RL_DROP_SOURCE, &any);
	expect_from(&fx, "0.0.0.0", RL_PASS_LIMIT, &any);
	expect_from(&fx, "255.255.255.255", RL_PASS_LIMIT, &any);
	expect_from(&fx, "::", RL_PASS_LIMIT, &any);
	expect_from(&fx, "ffff:ffff:ffff:ffff::", RL_PASS_LIMIT, &any);

	all4 = fixture_limit(&fx, "0.0.0.0/0", "1/h", "1", NULL);
	expect_from(&fx, "203.0.113.7", RL_PASS_LIMIT, &all4);
	expect_from(&fx, "2001:db8::7", RL_DROP_SOURCE, &any);
	all6 = fixture_limit(&fx, "::/0", "1/h", "1", NULL);
	expect_from(&fx, "2001:db8::7", RL_PASS_LIMIT, &all6);
	fixture_close(&fx);
}

/* Sources whose bytes are the same and whose families differ are two, in the policy and in the table. */
StoreTest(limits, families_are_never_mistaken)
{
	struct fixture fx = story_open(*store);
	struct rl_limit limit4 = fixture_limit(&fx, "203.0.113.0/24", "1/h", "1", NULL), any;

	expect_from(&fx, "203.0.113.7", RL_PASS_LIMIT, &limit4);
	expect_from(&fx, "cb00:7107::", RL_PASS_NO_LIMIT, NULL);
	fixture_unlimit(&fx, "203.0.113.0/24");
	any = fixture_limit(&fx, "any", "1/h", "1", NULL);
	expect_from(&fx, "203.0.113.7", RL_PASS_LIMIT, &any);
	expect_from(&fx, "cb00:7107::", RL_PASS_LIMIT, &any);
	expect_from(&fx, "203.0.113.7", RL_DROP_SOURCE, &any);
	expect_from(&fx, "cb00:7107::", RL_DROP_SOURCE, &any);
	fixture_close(&fx);
}

/* Each length of prefix ends at its bit: the last bit that counts tells two sources apart, the next one
 * doesn't. */
static void every_length(const enum rl_store *store, int family, const char *address, int bits)
{
	struct fixture fx = story_open(*store);
	__u8 whole[16];

	cr_assert_eq(inet_pton(family, address, whole), 1);
	for (int length = 1; length <= bits; length++) {
		char target[64], inside[48], outside[48];
		__u8 network[16] = {}, other[16];
		struct rl_limit limit;

		for (int bit = 0; bit < length; bit++)
			network[bit / 8] |= whole[bit / 8] & (0x80 >> bit % 8);
		inet_ntop(family, network, inside, sizeof(inside));
		snprintf(target, sizeof(target), "%s/%d", inside, length);
		memcpy(other, network, sizeof(other));
		other[(length - 1) / 8] ^= 0x80 >> (length - 1) % 8;
		inet_ntop(family, other, outside, sizeof(outside));
		memcpy(other, network, sizeof(other));
		if (length < bits)
			other[length / 8] ^= 0x80 >> length % 8;
		inet_ntop(family, other, inside, sizeof(inside));

		limit = fixture_limit(&fx, target, "1/h", "1", NULL);
		expect_from(&fx, outside, RL_PASS_NO_LIMIT, NULL);
		expect_from(&fx, inside, RL_PASS_LIMIT, &limit);
		expect_from(&fx, inside, RL_DROP_SOURCE, &limit);
		fixture_unlimit(&fx, target);
	}
	fixture_close(&fx);
}

StoreTest(limits, every_prefix_length_v4)
{
	every_length(store, AF_INET, "173.85.170.165", 32);
}

StoreTest(limits, every_prefix_length_v6)
{
	every_length(store, AF_INET6, "3aa5:5aa5:a55a:5555:aaaa:5a5a:a5a5:c33d", 128);
}

StoreTest(limits, each_source_of_a_prefix_has_its_bucket)
{
	struct fixture fx = story_open(*store);
	struct rl_limit limit4 = fixture_limit(&fx, "203.0.113.0/24", "1/h", "2", NULL);
	struct rl_limit limit6 = fixture_limit(&fx, "2001:db8::/32", "1/h", "2", NULL);

	for (int i = 0; i < 256; i++) {
		char source4[48], source6[48];

		snprintf(source4, sizeof(source4), "203.0.113.%d", i);
		snprintf(source6, sizeof(source6), "2001:db8:0:%x::1", i);
		for (int n = 0; n < 3; n++) {
			expect_from(&fx, source4, n < 2 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &limit4);
			expect_from(&fx, source6, n < 2 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &limit6);
		}
		fixture_expect_source(&fx, &limit4, source4, 2, 1, 60);
	}
	cr_assert_eq(fixture_limit_count(&fx, &limit4).passed.packets, 512);
	cr_assert_eq(fixture_limit_count(&fx, &limit4).dropped.packets, 256);
	cr_assert_eq(fixture_limit_count(&fx, &limit6).passed.packets, 512);
	cr_assert_eq(fixture_limit_count(&fx, &limit6).dropped.packets, 256);
	fixture_close(&fx);
}

/* A host can pick any address of its /64. */
StoreTest(limits, an_ipv6_64_is_one_source)
{
	struct fixture fx = story_open(*store);
	struct rl_limit wide = fixture_limit(&fx, "2001:db8::/32", "1/h", "2", NULL), net, part;

	expect_from(&fx, "2001:db8:0:1::1", RL_PASS_LIMIT, &wide);
	expect_from(&fx, "2001:db8:0:1:ffff:ffff:ffff:ffff", RL_PASS_LIMIT, &wide);
	expect_from(&fx, "2001:db8:0:1:8000::", RL_DROP_SOURCE, &wide);
	expect_from(&fx, "2001:db8:0:2::1", RL_PASS_LIMIT, &wide);

	/* A /64 as the target, and less than one: each is one source with one bucket. */
	net = fixture_limit(&fx, "2001:db8:0:1::/64", "1/h", "2", NULL);
	part = fixture_limit(&fx, "2001:db8:0:1:8000::/65", "1/h", "2", NULL);
	for (int i = 0; i < 3; i++) {
		expect_from(&fx, i % 2 ? "2001:db8:0:1::1" : "2001:db8:0:1::2",
			    i < 2 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &net);
		expect_from(&fx, i % 2 ? "2001:db8:0:1:8000::1" : "2001:db8:0:1:ffff::",
			    i < 2 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &part);
	}
	fixture_close(&fx);
}

StoreTest(limits, explicit_targets_have_buckets_of_their_own)
{
	struct fixture fx = fixture_open_with(&(struct fixture_options){.max_sources = 8, .store = *store});
	struct rl_limit one4 = fixture_limit(&fx, "203.0.113.7", "1/h", "2", NULL);
	struct rl_limit one6 = fixture_limit(&fx, "2001:db8::7", "1/h", "2", NULL);

	fixture_limit(&fx, "any", "1/h", "1", NULL);
	cr_assert(one4.flags & RL_LIMIT_OWN_BUCKET);
	cr_assert(one6.flags & RL_LIMIT_OWN_BUCKET);
	for (int i = 0; i < 3; i++) {
		expect_from(&fx, "203.0.113.7", i < 2 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &one4);
		expect_from(&fx, "2001:db8::7", i < 2 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &one6);
	}
	/* No flood of other sources evicts them. */
	for (int i = 0; i < 1000; i++) {
		char source[48];
		struct rl_frame_spec spec = {.src = source};

		snprintf(source, sizeof(source), "10.1.%d.%d", i / 256, i % 256);
		fixture_send(&fx, &spec);
	}
	expect_from(&fx, "203.0.113.7", RL_DROP_SOURCE, &one4);
	expect_from(&fx, "2001:db8::7", RL_DROP_SOURCE, &one6);
	fixture_expect_source(&fx, &one4, "203.0.113.7", 2, 2, 60);
	fixture_close(&fx);
}

/* Buckets of a deleted limit are no start for the next one on the same target. */
StoreTest(limits, a_new_limit_starts_with_new_buckets)
{
	struct fixture fx = story_open(*store);
	const char *targets[] = {"203.0.113.0/24", "203.0.113.7", "2001:db8::/32", "2001:db8::7"};
	const char *sources[] = {"203.0.113.7", "203.0.113.7", "2001:db8::7", "2001:db8::7"};

	for (int i = 0; i < 4; i++) {
		struct rl_limit limit = fixture_limit(&fx, targets[i], "1/h", "1", NULL);

		expect_from(&fx, sources[i], RL_PASS_LIMIT, &limit);
		expect_from(&fx, sources[i], RL_DROP_SOURCE, &limit);
		fixture_unlimit(&fx, targets[i]);
		limit = fixture_limit(&fx, targets[i], "1/h", "1", NULL);
		expect_from(&fx, sources[i], RL_PASS_LIMIT, &limit);
		expect_from(&fx, sources[i], RL_DROP_SOURCE, &limit);
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

/*
 * A byte limit charges the frame from its Ethernet header on, tags and padding included: 15000 bytes of burst
 * are exactly n frames of 15000 / n, and no byte more.
 */
static void bytes_charged(const enum rl_store *store, const char *target, const char *source,
			  const uint16_t *vlan)
{
	static const size_t lens[] = {100, 150, 1500, 5000, 7500};
	struct fixture fx = story_open(*store);

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct rl_limit limit = fixture_limit(&fx, target, "1kbit", "15kb", NULL);
		struct rl_frame_spec spec = {.src = source, .len = lens[i]};
		__u64 frames = 15000 / lens[i];

		if (vlan)
			memcpy(spec.vlan, vlan, 2 * sizeof(*vlan));
		fx.what = source;
		cr_assert_eq(fixture_flood(&fx, &spec, (__u32)frames - 1), frames - 1, "%zu bytes", lens[i]);
		spec.len++;
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		spec.len--;
		fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		/* 1 kbit is a byte every 8 ms. */
		fixture_advance(&fx, lens[i] * 8 * MS - 1);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		fixture_advance(&fx, 1);
		fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		fixture_unlimit(&fx, target);
	}
	fixture_close(&fx);
}

StoreTest(limits, bytes_v4)
{
	bytes_charged(store, "203.0.113.0/24", "203.0.113.7", NULL);
}

StoreTest(limits, bytes_v6)
{
	bytes_charged(store, "2001:db8::/32", "2001:db8::7", NULL);
}

StoreTest(limits, bytes_with_tags)
{
	static const uint16_t tags[2] = {0x88a8, 0x8100};

	bytes_charged(store, "203.0.113.0/24", "203.0.113.7", tags);
	bytes_charged(store, "2001:db8::/32", "2001:db8::7", tags);
}

/* Frames of several buffers count whole, not by their first buffer. */
StoreTest(limits, bytes_of_multi_buffer_frames)
{
	struct fixture fx = story_open(*store);
	const char *targets[] = {"203.0.113.0/24", "2001:db8::/32"};
	const char *sources[] = {"203.0.113.7", "2001:db8::7"};

	for (int i = 0; i < 2; i++) {
		struct rl_limit limit = fixture_limit(&fx, targets[i], "1kbit", "90kb", NULL);
		struct rl_frame_spec spec = {.src = sources[i], .len = 9000};

		for (int n = 0; n < 11; n++)
			fixture_expect(&fx, &spec, n < 10 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &limit);
		fixture_expect_source(&fx, &limit, sources[i], 10, 1, 9000);
	}
	fixture_close(&fx);
}

static __u64 word(const struct fixture *fx, const struct rl_limit *limit, const char *source,
		  enum rl_unit unit)
{
	struct rl_source found;

	cr_assert(fixture_source(fx, limit, source, &found));
	return found.buckets.word[unit];
}

/* Two units hold together, and a packet that one of them refuses is charged in neither. */
static void two_units(const enum rl_store *store, const char *target, const char *source)
{
	struct fixture fx = story_open(*store);
	struct rl_limit limit = fixture_limit(&fx, target, "1pps", "10", "8kbit", "3kb", NULL);
	struct rl_frame_spec small = {.src = source, .len = 100}, large = {.src = source, .len = 1500};
	__u64 packets, bytes;

	fx.what = source;
	fixture_expect(&fx, &large, RL_PASS_LIMIT, &limit);
	fixture_expect(&fx, &large, RL_PASS_LIMIT, &limit);

	/* No bytes left: eight packets are, and stay. */
	packets = word(&fx, &limit, source, RL_PACKETS);
	bytes = word(&fx, &limit, source, RL_BYTES);
	for (int i = 0; i < 20; i++)
		fixture_expect(&fx, i % 2 ? &small : &large, RL_DROP_SOURCE, &limit);
	cr_assert_eq(word(&fx, &limit, source, RL_PACKETS), packets);
	cr_assert_eq(word(&fx, &limit, source, RL_BYTES), bytes);

	/* 900 ms are 900 bytes and 0.9 packets: eight small packets pass, the ninth has its bytes but no
	 * token. */
	fixture_advance(&fx, 900 * MS);
	for (int i = 0; i < 8; i++)
		fixture_expect(&fx, &small, RL_PASS_LIMIT, &limit);
	packets = word(&fx, &limit, source, RL_PACKETS);
	bytes = word(&fx, &limit, source, RL_BYTES);
	for (int i = 0; i < 20; i++)
		fixture_expect(&fx, &small, RL_DROP_SOURCE, &limit);
	cr_assert_eq(word(&fx, &limit, source, RL_PACKETS), packets);
	cr_assert_eq(word(&fx, &limit, source, RL_BYTES), bytes);

	/* 100 ms later it has both: 200 bytes are left, and one token. */
	fixture_advance(&fx, 100 * MS);
	small.len = 201;
	fixture_expect(&fx, &small, RL_DROP_SOURCE, &limit);
	small.len = 200;
	fixture_expect(&fx, &small, RL_PASS_LIMIT, &limit);
	fixture_expect(&fx, &small, RL_DROP_SOURCE, &limit);
	fixture_close(&fx);
}

StoreTest(limits, two_units_are_all_or_nothing_v4)
{
	two_units(store, "203.0.113.0/24", "203.0.113.7");
	two_units(store, "203.0.113.7", "203.0.113.7");
}

StoreTest(limits, two_units_are_all_or_nothing_v6)
{
	two_units(store, "2001:db8::/32", "2001:db8::7");
	two_units(store, "2001:db8::7", "2001:db8::7");
}
