// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ranges.c - what finding a source's prefix costs, in the ranges and in the kernel's trie, and what it costs to build and to
 * change them. `build/tests/bench-ranges [PREFIXES]`, as root; 2^20 if not said.
 *
 * Addresses are picked among those of the prefixes, at random, so that what is read is what a million sources would read.
 * Each is looked up by BPF_PROG_TEST_RUN; the cost is the best of some rounds, over a program that only takes the address.
 */
#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../user/ranges.h"
#include "../lib/lpm.h"
#include "../unit/random.h"
#include "tests/bpf/classify.skel.h"

#define MILLION (1U << 20)
#define ROUNDS	7
#define PATCHES 20000

struct policy {
	struct rl_ranges_prefix *list;
	struct lpm lpm;
	__u32 count, room;
	__u64 random;
};

struct kind {
	const char *name;
	struct rl_prefix (*next)(__u64 *random);
};

static struct rl_prefix host4(__u64 *random)
{
	__u64 word = random_next(random);

	return lpm_cut(4, (__u8 *)&word, 32);
}

/* As in the Internet's table: more than half are /24s, in two fifths of the first bytes. */
static struct rl_prefix network4(__u64 *random)
{
	__u64 word = random_next(random);
	__u8 *address = (__u8 *)&word;

	address[0] = (__u8)(1 + address[0] % 90 * 2);
	return lpm_cut(4, address, address[4] % 5 < 3 ? 24 : (__u32)random_between(random, 16, 28));
}

/* In the first bits that registries give networks of. */
static void place6(__u64 *random, __u8 *address)
{
	static const __u16 firsts[] = {0x2001, 0x2003, 0x2400, 0x2401, 0x2402, 0x2403, 0x2404, 0x2405, 0x2406,
				       0x2407, 0x240a, 0x240e, 0x2600, 0x2601, 0x2602, 0x2604, 0x2605, 0x2606,
				       0x2607, 0x2620, 0x2800, 0x2803, 0x2804, 0x2a00, 0x2a01, 0x2a02, 0x2a03,
				       0x2a04, 0x2a05, 0x2a06, 0x2a07, 0x2a09, 0x2a0a, 0x2a0b, 0x2a0c, 0x2a0d,
				       0x2a0e, 0x2a0f, 0x2a10, 0x2a12, 0x2c0f};
	__u16 first = firsts[random_between(random, 0, sizeof(firsts) / sizeof(firsts[0]) - 1)];

	for (int i = 0; i < 16; i++)
		address[i] = (__u8)random_next(random);
	address[0] = (__u8)(first >> 8);
	address[1] = (__u8)first;
	address[3] &= 0xf8;
}

static struct rl_prefix network6(__u64 *random)
{
	static const __u8 lengths[] = {32, 36, 40, 44, 48, 48, 48, 48, 48, 56};
	__u8 address[16];

	place6(random, address);
	return lpm_cut(6, address, lengths[random_between(random, 0, sizeof(lengths) - 1)]);
}

/* Customers of one network. */
static struct rl_prefix customer6(__u64 *random)
{
	__u8 address[16] = {0x20, 1, 0xd, 0xb8};
	__u64 word = random_next(random);

	memcpy(address + 4, &word, 4);
	return lpm_cut(6, address, word >> 63 ? 56 : 64);
}

static struct rl_prefix host6(__u64 *random)
{
	__u8 address[16];

	place6(random, address);
	return lpm_cut(6, address, 128);
}

static const struct kind kinds[] = {{"IPv4 hosts", host4},
				    {"IPv4 networks", network4},
				    {"IPv6 networks", network6},
				    {"IPv6 customers", customer6},
				    {"IPv6 hosts", host6}};

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
	fprintf(stderr, "bench-ranges: %s\n", what);
	exit(1);
}

static struct policy policy_make(const struct kind *kind, __u32 count)
{
	struct policy policy = {
	    .list = calloc(count, sizeof(*policy.list)), .lpm = lpm_make(count), .random = 1};

	if (!policy.list || !policy.lpm.entry)
		fail("out of memory");
	while (policy.count < count) {
		struct rl_prefix prefix = kind->next(&policy.random);

		if (lpm_get(&policy.lpm, &prefix))
			continue;
		policy.list[policy.count] =
		    (struct rl_ranges_prefix){.prefix = prefix, .slot = policy.count + 1};
		lpm_set(&policy.lpm, &prefix, ++policy.count);
	}
	return policy;
}

static void *map_memory(const struct bpf_map *map, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (memory == MAP_FAILED)
		fail("can't map a map");
	return memory;
}

/* Any address of some prefix. */
static void ask(struct policy *policy, struct rl_prefix *asked)
{
	for (__u32 i = 0; i < MILLION; i++) {
		struct rl_prefix prefix =
		    policy->list[random_between(&policy->random, 0, policy->count - 1)].prefix;
		__u32 most = prefix.family == 4 ? 32 : 128;

		for (__u32 bit = prefix.prefixlen - RL_PREFIX_FAMILY_BITS; bit < most; bit++)
			prefix.addr[bit / 8] |= (__u8)((random_next(&policy->random) & 1) << (7 - bit % 8));
		prefix.prefixlen = RL_PREFIX_FAMILY_BITS + most;
		asked[i] = prefix;
	}
}

/* ns a lookup. */
static double run(const struct bpf_program *program)
{
	static __u8 frame[64];
	double best = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
			    .repeat = MILLION);

		if (bpf_prog_test_run_opts(bpf_program__fd(program), &opts))
			fail("a test run was refused");
		if (opts.duration < best)
			best = opts.duration;
	}
	return best;
}

/* Prefixes go and come again; us of processor time. */
static void patch(const struct rl_ranges *ranges, struct policy *policy, double *mean, double *most)
{
	double total = 0;
	struct rl_error err;

	*most = 0;
	for (int i = 0; i < PATCHES; i++) {
		const struct rl_ranges_prefix *own = &policy->list[(__u32)i / 2 * 7919 % policy->count];
		__u32 around = lpm_around(&policy->lpm, &own->prefix);
		double begin = seconds(CLOCK_THREAD_CPUTIME_ID), took;

		if (rl_ranges_patch(ranges, &own->prefix, i % 2 ? around : own->slot,
				    i % 2 ? own->slot : around, &err) &&
		    (rl_ranges_compact(ranges, &err) ||
		     rl_ranges_patch(ranges, &own->prefix, i % 2 ? around : own->slot,
				     i % 2 ? own->slot : around, &err)))
			fail(err.text);
		took = (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e6;
		total += took;
		*most = took > *most ? took : *most;
	}
	*mean = total / PATCHES;
}

static void measure(const struct kind *kind, __u32 count)
{
	struct policy policy = policy_make(kind, count);
	struct rl_ranges ranges = {.blocks = rl_ranges_blocks(count)};
	struct classify *skel = classify__open();
	double none, begin, built, compacted, mean, most;
	struct rl_prefix *asked;
	struct rl_error err;
	__u32 used;

	if (!skel)
		fail("can't open the programs");
	skel->rodata->asked_most = MILLION;
	bpf_map__set_max_entries(skel->maps.asked, MILLION);
	bpf_map__set_max_entries(skel->maps.blocks, ranges.blocks);
	if (classify__load(skel))
		fail("can't load the programs; it takes root");
	asked = map_memory(skel->maps.asked, MILLION * sizeof(*asked));
	ranges.block = map_memory(skel->maps.blocks, (size_t)ranges.blocks * sizeof(*ranges.block));
	ranges.head = map_memory(skel->maps.head, sizeof(*ranges.head));
	for (__u32 i = 0; i < count; i++)
		if (bpf_map_update_elem(bpf_map__fd(skel->maps.trie), &policy.list[i].prefix,
					&policy.list[i].slot, 0))
			fail("the trie is full");
	begin = seconds(CLOCK_THREAD_CPUTIME_ID);
	if (rl_ranges_build(&ranges, policy.list, count, &err))
		fail(err.text);
	built = seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
	used = ranges.head->used[1];
	ask(&policy, asked);
	none = run(skel->progs.with_none);
	printf("%-15s %8u %6.0f %6.0f", kind->name, count, run(skel->progs.with_ranges) - none,
	       run(skel->progs.with_trie) - none);
	patch(&ranges, &policy, &mean, &most);
	begin = seconds(CLOCK_THREAD_CPUTIME_ID);
	if (rl_ranges_compact(&ranges, &err))
		fail(err.text);
	compacted = seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
	printf(" %7.1f %8.0f %8.0f %8.1f %8.0f\n", (double)used * sizeof(*ranges.block) / count, built * 1e3,
	       compacted * 1e3, mean, most);
	fflush(stdout);
	munmap(ranges.block, (size_t)ranges.blocks * sizeof(*ranges.block));
	munmap(ranges.head, sizeof(*ranges.head));
	munmap(asked, MILLION * sizeof(*asked));
	classify__destroy(skel);
	lpm_free(&policy.lpm);
	free(policy.list);
}

int main(int argc, char **argv)
{
	__u32 count = argc > 1 ? (__u32)strtoul(argv[1], NULL, 10) : MILLION;

	if (count < 1 || count > MILLION) {
		fprintf(stderr, "usage: bench-ranges [PREFIXES]; 1 to %u\n", MILLION);
		return 1;
	}
	printf(
	    "prefixes         number ranges   trie  bytes/p build ms compact ms patch us  most us   (ranges, trie: ns)\n");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		measure(&kinds[i], count);
	return 0;
}
