/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_job.h - the packet at hand and what it is held to. Filled in on its way (rl_admit.h); compiles on both sides.
 */
#ifndef RL_JOB_H
#define RL_JOB_H

#include "rl_parse.h"

/* Which buckets. */
enum rl_where {
	RL_AT_NONE,   /* no bucket: the limit is counted, and holds nothing back */
	RL_AT_OWN,    /* rl_own; index: the limit's slot */
	RL_AT_LRU,    /* rl_sources, by key */
	RL_AT_ROWS4,  /* rl_rows, by the key alone; index: row */
	RL_AT_ROWS6,  /* likewise, and by the address */
	RL_AT_GROUPS, /* rl_groups, by the key alone; index: row */
};

/* One limit that the packet is held to, and where its bucket is. No pointers: they can't be kept in memory. */
struct rl_hold {
	__u32 cell;
	__u32 slot;
	__u32 where; /* enum rl_where */
	__u32 index;
	__u32 place;	      /* in the row */
	__u32 shadowed;	      /* 1: in shadow, and would have dropped the packet */
	__u64 whose;	      /* the key that the place must have */
	__u64 spot;	      /* in the table: what decides on its rows (rl_table_spot) */
	__u64 left[RL_UNITS]; /* the words that the packet's charge left; 0: not charged */
};

/* A place as it was read by who would give it to another source: before it is judged, so that who charges it afterwards
 * makes a swap fail. */
struct rl_victim {
	__u64 key;
	__u64 word[RL_UNITS];
	__u64 version;
	__u32 stamp;
	__u32 pad;
};

/*
 * Which of a row's places can't be given away yet, since they were seen to be within their grace time: so that a flood doesn't look
 * at each of them, a cache line, for each packet. It is what one program found out, true in one epoch, since limits that are
 * deleted leave places which are nobody's. Written under the region's lock, read without it too: then it may be of two moments,
 * and a packet does without a place that it could have had.
 */
struct rl_kept {
	__u32 epoch;
	__u32 since;	    /* stamp */
	__u8 until[RL_ROW]; /* stamps from then on; 0: unknown */
};

#define RL_TIERS 3 /* source, tenant, device */

/* What one level of a common packet would do, and did (rl_tier.h). */
struct rl_tier {
	__u32 cell;	       /* of its limit; 0: there is none */
	__u32 slot;	       /* likewise */
	__u64 whose;	       /* the key that its place must have */
	__u64 seen[RL_UNITS];  /* the words as they were */
	__u64 next[RL_UNITS];  /* what they would be; 0: this unit isn't limited */
	__u64 left[RL_UNITS];  /* what they were made; 0: not charged */
	__u64 ahead[RL_UNITS]; /* of what they are made, beyond this packet's cost (rl_slice.h) */
	__u32 pays;	       /* bit `unit`: this CPU's slice will pay for the packet */
	__u32 paid;	       /* likewise: it did, and gets it back if another level refuses */
};

struct rl_job {
	struct rl_packet packet;
	__u64 tick;   /* rl_tick() when this CPU read the clock last for rl_lately() */
	__u64 ticked; /* ns; what it said */
	__u32 lates;  /* packets since then */
	__u32 pad2;
	__u64 now;	/* ns */
	__u32 segments; /* packets on the wire: more than one where the kernel has merged them; at least 1 */
	__u32 len;	/* bytes on the wire, of all of them; at most RL_MERGED_BYTES */
	__u32 device;	/* slot in the per-device maps */
	__u32 epoch;	/* of the policy that the packet sees */
	__u32 cost;	/* tokens in a packet bucket */
	__u16 port;	/* the service's: destination port of what comes in; 0: none */
	__u8 kinds;	/* enum rl_kind */
	__u8 shadow;	/* 1: the device drops nothing */
	__u8 priority;	/* enum rl_priority, below RL_PRIORITIES */
	__u8 given;	/* 1: it is this packet that gave its source a place */
	__u8 pad[2];
	__u64 new_left; /* the word that its charge of `new` left; 0: not charged */
	__u32 passes;	/* enum rl_reason: why it passes, if it does */
	__u32 shadows;	/* enum rl_reason: what would have dropped it first; 0: nothing */
	__u32 new_cell; /* the version of the limit of `new` that it was charged to */
	/* Slot of the limit of `new`, where that is in shadow and would have dropped the packet; or 0. */
	__u32 new_shadowed;
	struct rl_tier tier[RL_TIERS];
	__u32 dropper; /* slot of the limit that drops it; 0: none, or not yet */
	__u32 count;   /* of hold */
	struct rl_hold hold[RL_MAX_HOLDS];
	struct rl_victim victim;  /* the place that it might be given */
	struct rl_source_key key; /* of the source under the limit at hand */
	struct rl_source fresh;	  /* what the LRU map is given for a new one */
};

#endif
