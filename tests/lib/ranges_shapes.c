// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ranges.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Every length, anywhere. */
static void fill_random(struct policy *policy)
{
	while (policy->count < policy->room) {
		__u8 address[16], family = random_next(&policy->random) & 1 ? 4 : 6;

		random_address(&policy->random, address);
		policy_cut(policy, family, address,
			   (__u32)random_between(&policy->random, 0, family == 4 ? 32 : 128));
	}
}

/* All prefixes of an address, from the whole family to the address. */
static void fill_chains(struct policy *policy)
{
	while (policy->count < policy->room) {
		__u8 address[16], family = random_next(&policy->random) & 1 ? 4 : 6;

		random_address(&policy->random, address);
		for (__u32 bits = 0; bits <= (family == 4 ? 32U : 128U); bits++)
			policy_cut(policy, family, address, bits);
	}
}

/* Chains of neighbours: each differs from one before in a single bit, mostly a late one. */
static void fill_near(struct policy *policy)
{
	__u8 address[2][16] = {{0}, {0}};

	random_address(&policy->random, address[0]);
	random_address(&policy->random, address[1]);
	while (policy->count < policy->room) {
		bool six = random_next(&policy->random) & 1;
		__u32 most = six ? 128 : 32, bit = most - (__u32)random_magnitude(&policy->random, 1, most);

		address[six][bit / 8] ^= (__u8)(0x80 >> bit % 8);
		policy_cut(policy, six ? 6 : 4, address[six],
			   (__u32)random_between(&policy->random, bit, most));
	}
}

/* Hosts one beside the other, across the borders of entries, nodes and trees. */
static void fill_adjacent(struct policy *policy)
{
	__u8 address[2][16] = {{10, 0, 0xbf, 0x80}, {0x20, 1, 0xd, 0xb8, [8] = 0xff, [14] = 0xfe}};

	for (size_t i = 0; policy->count < policy->room; i++) {
		bool six = i & 1;

		policy_cut(policy, six ? 6 : 4, address[six], six ? 128 : 32);
		address_step(address[six], six ? 16 : 4, 1);
	}
}

/* Networks of one length, one beside the other and with gaps, as operators have them. */
static void fill_networks(struct policy *policy)
{
	static const __u8 lengths4[] = {16, 18, 19, 20, 22, 24, 25, 30},
			  lengths6[] = {20, 32, 40, 48, 56, 64, 72, 80};
	__u8 address[16];

	for (size_t i = 0; policy->count < policy->room; i++) {
		bool six = random_next(&policy->random) & 1;
		size_t which = random_between(&policy->random, 0, COUNT(lengths4) - 1);
		__u32 bits = six ? lengths6[which] : lengths4[which];

		if (i % 32 == 0)
			random_address(&policy->random, address);
		if (six) {
			address[0] = 0x20;
			address[1] = (__u8)(i >> 10);
		}
		address_step(address, (int)(bits + 7) / 8, random_next(&policy->random) & 1 ? 1 : 3);
		policy_cut(policy, six ? 6 : 4, address, bits);
	}
}

/* All addresses of a /18, each with a slot of its own: the deepest tree of IPv4. */
static void fill_full(struct policy *policy)
{
	__u8 address[16] = {192, 0, 64};

	while (policy->count < policy->room) {
		policy_cut(policy, 4, address, 32);
		address_step(address, 4, 1);
	}
}

/* One IPv6 network with prefixes longer than /64 in many of its /64s, nested. */
static void fill_long(struct policy *policy)
{
	__u8 address[16] = {0x2a, 2, 6, 0xb8};

	while (policy->count < policy->room) {
		__u64 low = random_next(&policy->random);

		address[7] = (__u8)random_next(&policy->random);
		memcpy(address + 8, &low, 8);
		if (random_next(&policy->random) & 1)
			memset(address + 8, (int)(low & 0x80 ? 0xff : 0), 3);
		policy_cut(policy, 6, address, (__u32)random_between(&policy->random, 60, 128));
	}
}

/* Where addresses end, and where a tree of trees begins and ends. */
static void fill_ends(struct policy *policy)
{
	static const char *const texts[] = {
	    "any",
	    "0.0.0.0/0",
	    "0.0.0.0/1",
	    "128.0.0.0/1",
	    "0.0.0.0",
	    "255.255.255.255",
	    "255.255.255.254/31",
	    "0.0.0.0/18",
	    "255.255.192.0/18",
	    "0.0.64.0/18",
	    "0.0.128.0/17",
	    "127.255.255.255",
	    "128.0.0.0",
	    "::/0",
	    "::/1",
	    "8000::/1",
	    "::",
	    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	    "::/16",
	    "ffff::/16",
	    "::/72",
	    "ffff:ffff:ffff:ffff:ff00::/72",
	    "ffff:ffff:ffff:ffff:ffff::/80",
	    "::/71",
	    "0:0:0:0:100::/72",
	    "0:0:0:0:ff::",
	    "0:0:0:0:ff:ffff:ffff:ffff",
	    "0:0:0:0:100::",
	    "0:0:0:0:100::/73",
	    "0:ffff:ffff:ffff:ff00::",
	    "1::",
	};

	for (size_t i = 0; i < COUNT(texts); i++)
		policy_text(policy, texts[i]);
}

static void fill_none(struct policy *policy)
{
	(void)policy;
}

static void fill_any(struct policy *policy)
{
	policy_text(policy, "any");
}

static void fill_families(struct policy *policy)
{
	policy_text(policy, "any");
	policy_text(policy, "0.0.0.0/0");
	policy_text(policy, "::/0");
}

const struct shape shapes[] = {
    {"none", fill_none, 1},
    {"any", fill_any, 1},
    {"families", fill_families, 3},
    {"ends", fill_ends, 64},
    {"one", fill_random, 1},
    {"few", fill_random, 50},
    {"random", fill_random, 6000},
    {"chains", fill_chains, 4000},
    {"near", fill_near, 4000},
    {"adjacent", fill_adjacent, 6000},
    {"networks", fill_networks, 6000},
    {"full", fill_full, 16384},
    {"long", fill_long, 6000},
};
const size_t shape_count = COUNT(shapes);
