/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * world.h - what simulated CPUs share: the packet path's maps, as small as can be. Two rows of the table, which are the
 * rows of all sources; limits of the sources, of a prefix inside theirs, of their tenant, of their device and of `new` in two
 * versions each; and a clock.
 *
 * Versions never change once packets can see them, and a CPU's counters are its own: neither is in struct world.
 */
#ifndef INTERLEAVE_WORLD_H
#define INTERLEAVE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "../../bpf/rl_job.h"
#include "schedule.h"

#define WORLD_SOURCES 4
#define NEIGHBOUR     (WORLD_SOURCES - 1) /* in the /24 or /64 of source 0, whose address is the whole of that */
#define WORLD_SECOND  1000000000ULL
#define WORLD_MINUTE  (60 * WORLD_SECOND)
#define WORLD_START   (1000 * WORLD_SECOND) /* ns */

enum world_slot {
	SLOT_NONE,
	SLOT_SOURCE,
	SLOT_INNER, /* of a prefix inside SLOT_SOURCE's: in the policy from world_enter() on */
	SLOT_OTHER, /* of another prefix; its id differs from SLOT_SOURCE's as source 0's number does from source 1's */
	SLOT_TENANT,
	SLOT_NEW,
	SLOT_DEVICE,
	SLOTS,
};

struct world {
	__u64 clock; /* ns */
	struct rl_settings settings;
	__u64 head[SLOTS];
	__u32 policy[WORLD_SOURCES]; /* slot of the longest prefix around each source */
	__u32 lock[4];
	struct rl_kept kept[2];
	struct rl_source own[SLOTS];
	struct rl_slice slice[SCHEDULE_CPUS][SLOTS]; /* each CPU's */
	struct rl_pending pending[SCHEDULE_CPUS];    /* each CPU's only one */
	struct rl_row row[2];
	struct rl_row_address address[2];
};

extern struct world world;

/* What stands beside it. */
extern struct rl_limit world_limits[2 * SLOTS]; /* by cell */
extern struct rl_table world_table;
extern __u32 world_rows[2]; /* indices of the two rows */
extern struct rl_device world_device;
extern __u32 world_slices; /* rl_slice_shift(); 0 but where a scenario says otherwise */

/* Which way packets go. */
enum world_path {
	PATH_GENERAL, /* they are malformed, which rl_fast.h leaves alone; limits hold them like any other */
	PATH_FAST,    /* where rl_fast.h can judge them */
	PATHS,
};

/* The packet path, compiled as it is or with a mistake: subject.c. */
struct subject {
	enum rl_reason (*packet)(struct rl_job *job, const uint8_t *frame, __u32 len);
};

/* A source and its frames, of either family. */
struct world_source {
	uint8_t frame[PATHS][64];
	__u32 len;
	__u8 addr[16];
	__u64 number; /* rl_table_number() */
};
extern struct world_source world_source[WORLD_SOURCES];

/* A packet that was offered, and what became of it. */
struct world_packet {
	int cpu, source;
	__u64 now;   /* ns, as its CPU read the clock */
	__u32 epoch; /* of the policy, when it came */
	__u32 slot;  /* of the limit on its source that it was held to */
	bool fast;   /* by rl_fast.h */
	enum rl_reason reason;
};
#define WORLD_PACKETS 32
extern struct world_packet world_packet[WORLD_PACKETS];
extern int world_packets;
extern __u64 world_fast; /* packets that rl_fast.h judged since world_open() */

/* --- once for each scenario --- */

/* No limits; sources of this family. */
void world_open(__u8 family, enum world_path path, const struct subject *subject);

/* A version of a limit: 0, or 1, which comes after it, at `change`, ns. The tenant's is given between the sources' two. */
void world_limit(enum world_slot slot, int version, __u64 packets_per_hour, __u64 burst, __u64 change);
const struct rl_limit *world_version(enum world_slot slot, int version);

/* --- at the beginning of each run --- */

/* Everything empty and version 0 in force; the clock at WORLD_START. On the fast path, tenant and device were
 * charged before and owe nothing: buckets that have to be brought up to date first aren't for it. */
void world_begin(void);

/* Buckets of a limit's version 0 that were last charged at one time, ns, and are full at another. */
void world_charge(struct rl_buckets *buckets, enum world_slot slot, __u64 charged, __u64 full);

/* Place i (0 to 15) is this source's, which is known, or with -1 somebody else's; its bucket likewise. */
void world_settle(int i, int source, __u64 charged, __u64 full);

/* On this CPU so many drops of the source at place i are pending. */
void world_pend(int cpu, int i, __u64 drops);

/* The places from this one on are taken by debtors, for longer than any run. */
void world_occupy(int from);

/* --- what CPUs do --- */

/* So many packets of a source. */
void world_offer(int source, int count);

/* Time passes. */
void world_wait(__u64 ns);

/* The other version comes in force, as an agent does it. */
void world_switch(enum world_slot slot);

/*
 * A prefix that holds this source alone comes into the policy, as an agent does it: its head, which until then names the limit
 * around it; its entry; the epoch; and its head settled.
 */
void world_enter(int source);

/* Source 0 is under SLOT_OTHER, and its place was charged last then. */
void world_settle_other(__u64 charged);

/* --- what became of it --- */

/* How many of a source's packets were let through, or with -1 of all sources. */
int world_passed(int source);

/* The source's buckets under the limit that it is under at the end, and how many places it has there; NULL without one. */
const struct rl_buckets *world_buckets(int source, int *places);

/* Is it a tally's word that is at this offset of the world? */
bool world_is_tally(size_t offset);

/* Its tally likewise, with what is pending. */
bool world_tally(int source, struct rl_tally *out);

/*
 * What an ideal bucket owes at the end, in ns, that was charged with what passed of the source, or with -1 of all of
 * them, when their clocks said: of all orders the one that leaves the least. `tat`: when it would have been full without.
 */
__u64 world_ideal(int source, enum world_slot slot, __u64 tat);

/* What buckets owe as they are read at the end, ns, by the version in force: what a victim is judged by (rl_table.h). */
__u64 world_owed(const struct rl_buckets *buckets, enum world_slot slot);

/* What a word of the shared memory is, for people. */
void world_describe(size_t offset, char text[SCHEDULE_TEXT]);

#endif
