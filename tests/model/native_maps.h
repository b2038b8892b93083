/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * native_maps.h - what stands in the place of the maps where the packet path is compiled natively: between native.c, which
 * runs it, and native_policy.c, which writes its policy.
 */
#ifndef MODEL_NATIVE_MAPS_H
#define MODEL_NATIVE_MAPS_H

#include "native.h"

extern __u64 native_clock_now;

static inline __u64 rl_now(void)
{
	return native_clock_now;
}

static inline __u64 rl_tick(void)
{
	return native_clock_now;
}

/* Slices are not for one CPU's model: a bucket is a little less full while they are held. */
static inline __u32 rl_slice_shift(void)
{
	return 0;
}

#include "../../bpf/rl_job.h"
#include "../../bpf/rl_table.h"

#define SLOTS	     256
#define DEVICE_FIRST 5	/* slot of the first device; not 0, so that a forgotten slot shows */
#define REGIONS	     64 /* 16384 rows: more than an episode needs, so that nobody is evicted */
#define ROWS	     (REGIONS * RL_REGION_ROWS)
#define GROUP_ROWS   (RL_GROUP_REGIONS * RL_REGION_ROWS)
#define LRU_PLACES   16384 /* of a hash that evicts nobody: as above */
#define MATCHES	     256   /* of the cache of longest matches */

struct native_match {
	__u8 family; /* 0: free */
	__u8 addr[16];
	__u32 slot;
};

struct native_lru {
	bool used;
	struct rl_source_key key;
	struct rl_source source;
};

struct native {
	enum native_fault fault;
	enum rl_store store;

	/* Policy. A limit's cell has its slot's number, and is changed in place. */
	__u32 next_id;
	__u32 slots;		      /* those from this one on are free, and so are some below */
	struct rl_limit limit[SLOTS]; /* id 0: free */
	struct rl_limit exact[SLOTS]; /* without the fault */
	struct rl_settings settings;
	struct rl_device device[RL_MAX_DEVICES];
	struct native_match match[MATCHES];

	/* Buckets and counters. */
	struct rl_source own[SLOTS];
	struct rl_slice slice[RL_SLICES];
	struct rl_pending pending[RL_CPU_PENDINGS];
	struct rl_limit_count limit_count[SLOTS];
	struct rl_device_count device_count[RL_MAX_DEVICES];
	struct rl_source nd[RL_MAX_DEVICES];
	struct rl_limit nd_budget;
	struct rl_table table;
	struct rl_row rows[ROWS], groups[GROUP_ROWS];
	struct rl_row_address address[ROWS];
	struct rl_kept kept[ROWS];
	__u32 lock[REGIONS + RL_GROUP_REGIONS];
	struct native_lru lru[LRU_PLACES];
} __attribute__((aligned(4096))); /* of whole pages, which native_open() drops */

extern struct native native;

/* The limit of this very target (class NULL: the general one) has this slot; 0: there is none. */
__u32 native_find(const struct rl_target *target, const struct rl_class *class);

/* The slot of the longest prefix that the address is in; 0: none. */
__u32 native_classify(__u8 family, const __u8 *addr);

int native_set(struct backend *backend, const struct rl_target *target, const struct rl_terms *terms,
	       __u64 now);
int native_erase(struct backend *backend, const struct rl_target *target, const struct rl_class *class,
		 __u64 now);

#endif
