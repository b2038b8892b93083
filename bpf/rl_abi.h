/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_abi.h - everything that crosses the kernel line.
 *
 * The packet programs (bpf/) and the agent (user/) share these types through pinned maps, so a map written by
 * one release is read by the next. Rules: UAPI types only, explicit padding, an assert on each size, and
 * RL_ABI_VERSION goes up with every change of layout or meaning; an agent that finds another version refuses
 * (see user/state.h).
 *
 * Four kinds of data, each in maps of its own, so that writing one never disturbs another:
 *
 *   policy    rl_limit   what the operator said and the arithmetic that follows; user space writes it, whole
 *   buckets   rl_source  the packet path alone writes it: user space never writes a live bucket's state
 *   counters  rl_count   per CPU; the packet path writes it, readers sum it
 *   devices   rl_device  what is attached, and the pause flag; user space writes it
 */
#ifndef RL_ABI_H
#define RL_ABI_H

#include <linux/types.h>

/* BPF takes five arguments and no struct by value, so what isn't inlined must be said to be a function. */
#define RL_INLINE static inline __attribute__((always_inline))
#ifdef __bpf__
/* A global function: the verifier checks it once by itself, instead of once for each way that leads to it. */
#define RL_FUNCTION __attribute__((noinline))
#else
#define RL_FUNCTION static __attribute__((noinline, unused))
#endif

#define RL_ABI_VERSION 1

#define RL_MAX_LIMITS  65536 /* targets in the policy; each owns a slot: its counters, its own bucket */
#define RL_MAX_DEVICES 64    /* attached devices of one network namespace */
#define RL_NAME_LEN    16    /* IFNAMSIZ */
#define RL_TENANT_LEN  32    /* bytes of a tenant's name with its NUL */
#define RL_PAST	       4     /* earlier generations of a limit whose buckets can still be converted exactly */

/* What a bucket counts. */
enum rl_unit {
	RL_PACKETS,
	RL_BYTES,
	RL_UNITS, /* a power of two: a unit is masked where the verifier wants its range */
};

/*
 * Why a packet got its verdict. Each packet is counted under exactly one, so received = the sum of all.
 * The order is part of the ABI: what passes comes first, what drops from RL_DROP_FIRST on.
 */
enum rl_reason {
	RL_PASS_NO_LIMIT,  /* no limit names the source */
	RL_PASS_LIMIT,	   /* within its limit, and charged to it */
	RL_PASS_NOT_IP,	   /* ARP, LLDP, anything that is neither IPv4 nor IPv6 */
	RL_PASS_ND,	   /* IPv6 neighbour discovery, within the device's budget */
	RL_PASS_PAUSED,	   /* the device is paused */
	RL_PASS_UNPARSED,  /* no source address to be read: truncated, or more than two VLAN tags */
	RL_PASS_MALFORMED, /* the header contradicts itself; limited by its source all the same, and within
			      the limit */
	RL_PASS_NO_BUCKET, /* the sources' table gave no bucket: an internal failure drops nothing */
	RL_DROP_SOURCE,	   /* over the source's limit */
	RL_DROP_CONTENDED, /* the bucket's compare-and-swap kept losing: the verdict that can't over-admit */
	RL_REASONS,
};
#define RL_DROP_FIRST RL_DROP_SOURCE

RL_INLINE int rl_reason_drops(enum rl_reason reason)
{
	return reason >= RL_DROP_FIRST;
}

struct rl_count {
	__u64 packets;
	__u64 bytes; /* on the wire, from the Ethernet header on, without the frame check sequence */
};

/*
 * Key of the policy: which sources a limit is for. One longest-prefix-match key holds both families, told
 * apart by the family byte in front of the address: prefixlen 0 is `any` (both families, in one entry that
 * one system call replaces), 32 + n is the first n bits of an address of that family.
 */
struct rl_prefix {
	__u32 prefixlen;
	__u8 family; /* 4 or 6; 0 in `any` */
	__u8 pad[3];
	__u8 addr[16]; /* network byte order; IPv4 in the first four bytes, the rest zero */
};
#define RL_PREFIX_FAMILY_BITS 32
#define RL_PREFIX_MAX_BITS    (RL_PREFIX_FAMILY_BITS + 128)

/*
 * One bucket's arithmetic, computed by user space from a rate and a burst (user/limit.h), applied by rl_gcra.h where
 * the units are explained. mult is 0: this unit isn't limited, and
 * `owed` counts tokens, kept for a later limit that has it.
 */
struct rl_rate {
	__u64 mult;  /* bucket time units << RL_GCRA_FRAC that one token (packet, byte) takes to refill */
	__u64 burst; /* bucket time units that a full bucket holds; the lowest 8 bits are zero */
	__u64
	    owed; /* units; the most that a bucket can owe: the burst, or what is left of larger ones before it */
	__u32 shift; /* one bucket time unit is 2^-shift ns */
	__u32 pad;
};

/* What is left of an earlier generation of a limit: enough to carry a debt counted in it over to the next. */
struct rl_past {
	__u64 mult[RL_UNITS]; /* as in struct rl_rate; 0: it had no limit in this unit */
	__u64 owed[RL_UNITS];
	__u32 shift[RL_UNITS];
	__u64 until; /* ns, CLOCK_MONOTONIC: when the next generation took its place */
};

/* What the operator said, as exact integers; the packet path reads none of it. 0 is "no limit in this unit".
 */
struct rl_terms {
	__u64 packets_per_hour;
	__u64 burst_packets;
	__u64 bits_per_second;
	__u64 burst_bytes;
	char tenant[RL_TENANT_LEN]; /* NUL-terminated; empty: none of its own */
};

enum rl_limit_flags {
	RL_LIMIT_OWN_BUCKET = 1U << 0, /* the target is one source: its bucket is in rl_own, never evicted */
};

/*
 * A limit: the value of the policy map. It is replaced whole by one map update, so a packet sees the old
 * limit or the new one, and an agent killed at any moment has changed everything or nothing.
 */
struct rl_limit {
	__u32 id;    /* never used twice; part of the source's key, so buckets can't be mistaken for another
			limit's */
	__u32 slot;  /* index in rl_own and rl_limit_count; reused after del-limit */
	__u32 gen;   /* generation: 1, then one more with each change of rate or burst */
	__u32 flags; /* enum rl_limit_flags */
	struct rl_rate rate[RL_UNITS];
	struct rl_past past[RL_PAST]; /* past[i] is generation gen - 1 - i */
	__u32 prefixlen; /* of its own key: a lookup by longest match tells by it whether it hit the very
			    target */
	__u32 pad;
	struct rl_terms terms;
};

/* Key of a dynamic bucket: the limit and the source cut to its granularity, /32 for IPv4 and /64 for IPv6. */
struct rl_source_key {
	__u32 limit_id;
	__u8 family; /* 4 or 6 */
	__u8 pad[3];
	__u8 addr[16];
};

/* A bucket's state. rl_gcra.h says what the word holds; 0 is a bucket never charged, that is a full one. */
struct rl_bucket {
	__u64 word;
	__u32
	    gen; /* the limit's whole generation when the word was last stored: tells apart tags that repeat */
	__u32 stamp; /* when that was, ns >> RL_GCRA_STAMP: tells a long idle time from a debt */
};

/* One source under one limit: its buckets, and what became of its packets. One cache line. */
struct rl_source {
	struct rl_bucket bucket[RL_UNITS];
	struct rl_count passed;
	struct rl_count dropped;
};

/* What one limit did, over all its sources. */
struct rl_limit_count {
	struct rl_count passed;
	struct rl_count dropped;
};

/* What one device did, by reason. */
struct rl_device_count {
	struct rl_count by_reason[RL_REASONS];
};

enum rl_device_flags {
	RL_DEVICE_ATTACHED = 1U << 0, /* the slot is taken */
	RL_DEVICE_PAUSED = 1U << 1,   /* everything passes, counted */
};

enum rl_mode {
	RL_MODE_NATIVE,
	RL_MODE_GENERIC,
	RL_MODES,
};

struct rl_device {
	__u32 flags; /* enum rl_device_flags */
	__u32 ifindex;
	__u32 mode; /* enum rl_mode */
	__u32 pad;
	__u64 since;		/* seconds since the epoch (CLOCK_REALTIME) when it was first attached */
	char name[RL_NAME_LEN]; /* when it was attached; it may have been renamed since */
};

/* One per pinned state, read and written by user space alone. */
struct rl_meta {
	__u32 abi; /* RL_ABI_VERSION; first, so that every version can read it */
	__u32 next_limit_id;
	__u64 max_sources;
	__u64 netns_cookie; /* SO_NETNS_COOKIE of the network namespace it belongs to */
};

/* BPF's integer types: a size that differs between the two compilers would silently break keys. */
_Static_assert(sizeof(struct rl_count) == 16, "rl_count");
_Static_assert(sizeof(struct rl_prefix) == 24, "rl_prefix");
_Static_assert(sizeof(struct rl_rate) == 32, "rl_rate");
_Static_assert(sizeof(struct rl_past) == 48, "rl_past");
_Static_assert(sizeof(struct rl_terms) == 64, "rl_terms");
_Static_assert(sizeof(struct rl_limit) == 344, "rl_limit");
_Static_assert(sizeof(struct rl_source_key) == 24, "rl_source_key");
_Static_assert(sizeof(struct rl_bucket) == 16, "rl_bucket");
_Static_assert(sizeof(struct rl_source) == 64, "rl_source");
_Static_assert(sizeof(struct rl_limit_count) == 32, "rl_limit_count");
_Static_assert(sizeof(struct rl_device_count) == 160, "rl_device_count");
_Static_assert(sizeof(struct rl_device) == 40, "rl_device");
_Static_assert(sizeof(struct rl_meta) == 24, "rl_meta");

#endif
