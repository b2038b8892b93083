// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ranges.c - the ranges of prefixes inside BPF: the verifier takes them, and they say what the kernel's trie says.
 */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/ranges.h"
#include "tests/bpf/classify.skel.h"

#define ASKED	  65536
#define INSNS_MAX 4000 /* that the verifier looks at; more would crowd the packet program */

/* The program, and the ranges in its maps. */
struct world {
	struct classify *skel;
	struct rl_ranges ranges;
	struct rl_prefix *asked;
	size_t size; /* of the blocks, bytes */
};

static void *map_memory(const struct bpf_map *map, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	cr_assert_neq(memory, MAP_FAILED);
	return memory;
}

static struct world world_open(__u32 blocks)
{
	struct world world = {.size = (size_t)blocks * RL_RANGES_BLOCK};

	if (geteuid())
		cr_skip_test("loading BPF programs needs root");
	world.skel = classify__open();
	cr_assert_not_null(world.skel);
	world.skel->rodata->asked_most = ASKED;
	cr_assert_eq(bpf_map__set_max_entries(world.skel->maps.asked, ASKED), 0);
	cr_assert_eq(bpf_map__set_max_entries(world.skel->maps.blocks, blocks), 0);
	cr_assert_eq(classify__load(world.skel), 0, "the programs don't load");
	world.ranges.blocks = blocks;
	world.ranges.block = map_memory(world.skel->maps.blocks, world.size);
	world.ranges.head = map_memory(world.skel->maps.head, sizeof(struct rl_ranges_head));
	world.asked = map_memory(world.skel->maps.asked, ASKED * sizeof(*world.asked));
	return world;
}

static void world_close(struct world *world)
{
	munmap(world->ranges.block, world->size);
	munmap(world->ranges.head, sizeof(struct rl_ranges_head));
	munmap(world->asked, ASKED * sizeof(*world->asked));
	classify__destroy(world->skel);
}

static void trie_set(const struct world *world, const struct rl_prefix *prefix, __u32 slot)
{
	int map = bpf_map__fd(world->skel->maps.trie);

	if (slot)
		cr_assert_eq(bpf_map_update_elem(map, prefix, &slot, BPF_ANY), 0);
	else
		cr_assert_eq(bpf_map_delete_elem(map, prefix), 0);
}

/* Addresses at and beside a policy's borders, and random ones. */
static void ask(const struct world *world, struct policy *policy)
{
	for (__u32 i = 0; i < ASKED; i++) {
		__u8 address[16], family = i % 4 < 2 ? 4 : 6;
		__u32 most = family == 4 ? 32 : 128;

		random_address(&policy->random, address);
		if (policy->count && i % 8) {
			const struct rl_prefix *near =
			    &policy->list[random_between(&policy->random, 0, policy->count - 1)].prefix;
			__u32 bits = near->prefixlen ? near->prefixlen - RL_PREFIX_FAMILY_BITS : 0;

			family = near->family ? near->family : family;
			most = family == 4 ? 32 : 128;
			if (i % 8 < 6) /* its first or its last one */
				memset(address, i & 1 ? 255 : 0, sizeof(address));
			for (__u32 bit = 0; bit < bits; bit++) {
				address[bit / 8] &= (__u8) ~(0x80 >> bit % 8);
				address[bit / 8] |= near->addr[bit / 8] & (0x80 >> bit % 8);
			}
			if (i % 8 < 4)
				address_step(address, (int)most / 8, i & 1 ? 1 : -1);
		}
		world->asked[i] = lpm_cut(family, address, most);
	}
}

static void compare(const struct world *world, struct policy *policy, const char *where)
{
	static __u8 frame[64];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = ASKED);
	char text[RL_PREFIX_TEXT];
	bool some = false;

	ask(world, policy);
	world->skel->bss->found = 0;
	cr_assert_eq(bpf_prog_test_run_opts(bpf_program__fd(world->skel->progs.compare), &opts), 0);
	cr_assert_eq(world->skel->bss->next, 0, "not all of them were asked for");
	cr_assert_eq(world->skel->bss->wrong, 0, "%s: %s has the slot %#x, in the trie %#x", where,
		     rl_prefix_print((struct rl_prefix *)&world->skel->bss->wrong_at, text),
		     world->skel->bss->wrong_slot[0], world->skel->bss->wrong_slot[1]);
	for (size_t i = 0; i < policy->count; i++)
		some |= lpm_get(&policy->lpm, &policy->list[i].prefix) != 0;
	cr_assert(!some || world->skel->bss->found, "%s: nothing was found", where);
}

/* A prefix of the policy comes or goes, in both. No packet is under way. */
static void change(const struct world *world, struct policy *policy, const struct rl_ranges_prefix *own)
{
	__u32 around = lpm_around(&policy->lpm, &own->prefix);
	bool there = lpm_get(&policy->lpm, &own->prefix);
	__u32 from = there ? own->slot : around, to = there ? around : own->slot;
	struct rl_error err = {0};
	int rc = rl_ranges_patch(&world->ranges, &own->prefix, from, to, &err);

	if (rc == -ENOSPC) {
		cr_assert_eq(rl_ranges_compact(&world->ranges, &err), 0, "%s", err.text);
		rc = rl_ranges_patch(&world->ranges, &own->prefix, from, to, &err);
	}
	cr_assert_eq(rc, 0, "%s", err.text);
	lpm_set(&policy->lpm, &own->prefix, there ? 0 : own->slot);
	trie_set(world, &own->prefix, there ? 0 : own->slot);
}

/* Each shape as built, and then as changed prefix by prefix. */
Test(ranges, as_the_trie)
{
	for (size_t i = 0; i < shape_count; i++) {
		struct world world = world_open(rl_ranges_blocks(6000));
		struct policy policy = policy_make(shapes[i].count < 6000 ? shapes[i].count : 6000, SEED);

		shapes[i].fill(&policy);
		build(&world.ranges, &policy);
		for (size_t j = 0; j < policy.count; j++)
			trie_set(&world, &policy.list[j].prefix, policy.list[j].slot);
		compare(&world, &policy, shapes[i].name);
		for (size_t j = 0; j < policy.count && j < 200; j++) {
			change(&world, &policy,
			       &policy.list[random_between(&policy.random, 0, policy.count - 1)]);
			if (j % 40 == 39)
				compare(&world, &policy, shapes[i].name);
		}
		policy_free(&policy);
		world_close(&world);
	}
}

/* They don't crowd the packet program. */
Test(ranges, verified)
{
	struct world world = world_open(2 * RL_RANGES_TABLES);
	struct bpf_prog_info info = {};
	__u32 length = sizeof(info);

	cr_assert_eq(bpf_obj_get_info_by_fd(bpf_program__fd(world.skel->progs.with_ranges), &info, &length),
		     0);
	cr_log_info("%u instructions verified", info.verified_insns);
	cr_assert(info.verified_insns > 0 && info.verified_insns < INSNS_MAX, "%u instructions",
		  info.verified_insns);
	world_close(&world);
}
