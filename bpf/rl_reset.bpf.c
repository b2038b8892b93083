// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rl_reset.bpf.c - zero the tallies of the sources in the LRU map.
 *
 * User space can replace a whole value of that map, and would undo what packets do to its buckets meanwhile. A
 * program can store single words of it. Run once by `reset` (BPF_PROG_TYPE_SYSCALL and bpf_for_each_map_elem:
 * Linux 5.14), attached nowhere.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rl_reset.h"

/* maps.bpf.h says what it is. The one that is pinned takes its place. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct rl_source_key);
	__type(value, struct rl_source);
} rl_sources SEC(".maps");

static void zero_count(volatile struct rl_count *count)
{
	count->packets = 0;
	count->bytes = 0;
}

static long zero_tally(void *map, struct rl_source_key *key, struct rl_source *source,
		       const struct rl_reset_request *request)
{
	int wanted = !request->count;

	(void)map;
	for (int i = 0; i < RL_RESET_IDS; i++)
		wanted |= i < (int)request->count && request->id[i] == key->limit_id;
	if (!wanted)
		return 0;
	zero_count(&source->tally.passed);
	zero_count(&source->tally.dropped);
	zero_count(&source->tally.shadow);
	return 0;
}

SEC("syscall")
int rl_reset(struct rl_reset_request *asked)
{
	struct rl_reset_request request = *asked; /* what a callback is given is on the stack */

	bpf_for_each_map_elem(&rl_sources, zero_tally, &request, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
