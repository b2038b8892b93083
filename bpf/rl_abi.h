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
 *   policy    rl_limit   what the operator said and the arithmetic that follows; user space writes it
 *   buckets   rl_buckets the packet path alone writes it; user space only fills one whose limit has no rate (user/names.c)
 *   counters  rl_count   the packet path writes it, readers sum it; `reset` zeroes it
 *   devices   rl_device  what is attached, and the pause flag; user space writes it
 *
 * Names that run through all of it:
 *
 *   limit   anything that has a bucket or a verdict of its own: a prefix, one class of a prefix's packets, a tenant, a
 *           device, `new`
 *   slot    a limit's place for as long as it lives: the index of its head, its counters and its own bucket
 *   cell    one version of a limit. A cell that packets can see is never written again: a change writes another one
 *           and switches the head, by one store
 *   head    rl_heads[slot]: which cell is in force (rl_ref.h)
 *   id      never used twice; a bucket that knows its limit's id can't be mistaken for a deleted limit's
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

#define RL_ABI_VERSION 9

/*
 * Limits: as many slots as attach made room for (rl_meta.max_limits), and twice as many cells, so that all of a full policy
 * can change at once. Slot 0 is nobody's, cell 0 is no limit.
 */
#define RL_DEFAULT_LIMITS 65536
#define RL_SLOT_BITS	  22 /* the most that there can be */
#define RL_MOST_LIMITS	  (1U << RL_SLOT_BITS)
#define RL_CELLS(limits)  (2 * (limits))
#define RL_MAX_DEVICES	  64 /* attached devices of one network namespace */
#define RL_MAX_CLASSES	  8  /* class limits of one prefix */
#define RL_MAX_COSTS	  8  /* classes of packets whose cost a limit says */
#define RL_MAX_HOLDS                                                                                         \
	(RL_MAX_CLASSES + 3) /* limits that one packet is held to: source, classes, tenant, device */
#define RL_NAME_LEN   16     /* IFNAMSIZ */
#define RL_TENANT_LEN 32     /* bytes of a tenant's name with its NUL */
#define RL_PAST	      4	     /* earlier generations of a limit whose buckets can still be converted exactly */

/* What a bucket counts. */
enum rl_unit {
	RL_PACKETS,
	RL_BYTES,
	RL_UNITS, /* a power of two: a unit is masked where the verifier wants its range */
};

/*
 * Why a packet got its verdict. Each packet is counted under exactly one, so received = the sum of all.
 * The order is part of the ABI: what passes comes first, then what would have been dropped were it not for shadow, in
 * the order of what drops, from RL_DROP_FIRST on.
 */
enum rl_reason {
	RL_PASS_NO_LIMIT,  /* no limit applies to it */
	RL_PASS_LIMIT,	   /* within every limit that applies, and charged to each */
	RL_PASS_ALLOWED,   /* its source is trusted: never limited */
	RL_PASS_NOT_IP,	   /* ARP, LLDP, anything that is neither IPv4 nor IPv6 */
	RL_PASS_ND,	   /* IPv6 neighbour discovery, within the device's budget */
	RL_PASS_PAUSED,	   /* the device is paused */
	RL_PASS_UNPARSED,  /* no source address to be read: truncated, or more than two VLAN tags */
	RL_PASS_MALFORMED, /* the header contradicts itself; limited by its source all the same, and within
			      the limit */
	RL_PASS_AGGREGATE, /* the table had no room for its source: within the limit, held by its /24 or /48 */
	RL_PASS_OPEN,	   /* the table had no room for its source, and `--when-full open` lets it pass */
	RL_PASS_ERROR,	   /* a failure inside: it drops nothing */

	RL_SHADOW_SOURCE,
	RL_SHADOW_CLASS,
	RL_SHADOW_TENANT,
	RL_SHADOW_DEVICE,
	RL_SHADOW_NEW,
	RL_SHADOW_AGGREGATE,
	RL_SHADOW_FULL,
	RL_SHADOW_DENIED,
	RL_SHADOW_CONTENDED,

	RL_DROP_SOURCE,	   /* over the source's limit */
	RL_DROP_CLASS,	   /* over the limit of one of its classes */
	RL_DROP_TENANT,	   /* over the tenant's limit */
	RL_DROP_DEVICE,	   /* over the device's limit */
	RL_DROP_NEW,	   /* its source is new, and more than `new` grants are */
	RL_DROP_AGGREGATE, /* the table had no room for its source, and its /24 or /48 is over the limit */
	RL_DROP_FULL, /* the table had no room, and `--when-full closed`, or none for its /24 or /48 either */
	RL_DROP_DENIED,	   /* its source is denied */
	RL_DROP_CONTENDED, /* a bucket's compare-and-swap kept losing: the verdict that can't over-admit */
	RL_REASONS,
};
#define RL_SHADOW_FIRST RL_SHADOW_SOURCE
#define RL_DROP_FIRST	RL_DROP_SOURCE

RL_INLINE int rl_reason_drops(enum rl_reason reason)
{
	return reason >= RL_DROP_FIRST;
}

RL_INLINE int rl_reason_shadows(enum rl_reason reason)
{
	return reason >= RL_SHADOW_FIRST && reason < RL_DROP_FIRST;
}

/* What a drop is called where it isn't enforced. */
RL_INLINE enum rl_reason rl_reason_shadow(enum rl_reason drop)
{
	return (enum rl_reason)(drop - RL_DROP_FIRST + RL_SHADOW_FIRST);
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

/* Whom a limit is for. */
enum rl_target_kind {
	RL_TARGET_PREFIX,
	RL_TARGET_TENANT, /* "tenant:acme" */
	RL_TARGET_DEVICE, /* "dev:eth0" */
	RL_TARGET_NEW,	  /* "new": sources that have no bucket yet */
	RL_TARGETS,
};

struct rl_target {
	__u32 kind; /* enum rl_target_kind */
	__u32 pad;
	struct rl_prefix prefix;  /* of PREFIX; zero otherwise */
	char name[RL_TENANT_LEN]; /* of TENANT and DEVICE, NUL-padded; zero otherwise */
};

/* What kind of packet: a packet has all that are true of it (rl_class.h). */
enum rl_kind {
	RL_KIND_TCP = 1 << 0,
	RL_KIND_SYN = 1 << 1, /* TCP with SYN and without ACK */
	RL_KIND_UDP = 1 << 2,
	RL_KIND_ICMP = 1 << 3, /* ICMP and ICMPv6 */
	RL_KIND_FRAG = 1 << 4, /* any fragment, the first included; it has no ports */
	RL_KIND_PORTS = 1 << 5,
};

/* A class of packets: "tcp", "syn", "tcp/443", "udp/1000-2000". All zero: none. */
struct rl_class {
	__u8 kinds; /* enum rl_kind: a packet must have all of these */
	__u8 pad;
	__u16 from; /* the service's port, host byte order; 0 and 65535 where any does */
	__u16 to;
};

/* What a packet of a class takes from a packet bucket. */
struct rl_cost {
	struct rl_class class;
	__u16 tokens; /* 1 to 65535 */
};

/* Where a class limit of a prefix is. */
struct rl_class_ref {
	struct rl_class class;
	__u16 pad;
	__u32 slot;
};

enum rl_priority {
	RL_PRIORITY_HIGH,
	RL_PRIORITY_NORMAL,
	RL_PRIORITY_LOW,
	RL_PRIORITIES,
	RL_PRIORITY_UNSET = RL_PRIORITIES, /* a limit's: its tenant's; a tenant's: normal */
};

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
	__u64
	    kept[RL_PRIORITIES]; /* units of the burst that are kept for the priorities above; [HIGH] is 0 */
	__u32 shift;		 /* one bucket time unit is 2^-shift ns */
	__u32 pad;
};

/* What is left of an earlier generation of a limit: enough to carry a debt counted in it over to the next. */
struct rl_past {
	__u64 mult[RL_UNITS]; /* as in struct rl_rate; 0: it had no limit in this unit */
	__u64 owed[RL_UNITS];
	__u32 shift[RL_UNITS];
	__u64 until; /* ns, CLOCK_MONOTONIC: when the next generation took its place */
};

enum rl_action {
	RL_ACTION_LIMIT, /* hold to the rates */
	RL_ACTION_ALLOW, /* pass, whatever other limits say */
	RL_ACTION_DENY,	 /* drop */
	RL_ACTIONS,
};

#define RL_RESERVE_WHOLE 10000 /* a reserve of 100 % */

/* What the operator said, as exact integers; the packet path reads none of it. 0 is "not said". */
struct rl_terms {
	__u64 packets_per_hour;
	__u64 burst_packets;
	__u64 bits_per_second;
	__u64 burst_bytes;
	char tenant[RL_TENANT_LEN]; /* NUL-padded; empty: none of its own */
	__u8 action;		    /* enum rl_action */
	__u8 shadow;		    /* 1: counts what it would drop, and drops nothing */
	__u8 shared;		    /* 1: one bucket for the whole target */
	__u8 per;		    /* bits of an address that are one source; 0: the default, /32 or /64 */
	__u8 priority;		    /* enum rl_priority; UNSET: not said */
	__u8 cost_count;
	__u16 reserve
	    [2]; /* of RL_RESERVE_WHOLE, kept from those below HIGH, and further from those below NORMAL */
	__u16 pad;
	struct rl_class class; /* of a class limit; zero: of the target as a whole */
	__u8 pad2[6];
	struct rl_cost cost[RL_MAX_COSTS];
};

enum rl_limit_flags {
	RL_LIMIT_OWN_BUCKET = 1U << 0, /* one bucket for all of its packets: in rl_own, never evicted */
	RL_LIMIT_SHADOW = 1U << 1,
};

/* Bits of an address that are one source where nothing else is said; of IPv6, since one host can pick any address of its /64. */
#define RL_SOURCE_BITS(family) ((family) == 4 ? 32 : 64)

enum rl_level {
	RL_LEVEL_SOURCE, /* of a prefix: each source's own */
	RL_LEVEL_CLASS,	 /* of a prefix, for one class of packets: each source's own */
	RL_LEVEL_TENANT,
	RL_LEVEL_DEVICE,
	RL_LEVEL_NEW,
	RL_LEVELS,
};

/* One version of a limit: a cell. A cell that a head names is never written. */
struct rl_limit {
	__u32 id;
	__u32 slot;
	__u32 gen;     /* generation: 1, then one more with each change of rate or burst */
	__u32 flags;   /* enum rl_limit_flags */
	__u8 level;    /* enum rl_level */
	__u8 action;   /* enum rl_action */
	__u8 priority; /* enum rl_priority */
	__u8 bits[2];  /* of an address that are one source: of IPv4, of IPv6 */
	__u8 class_count;
	__u8 cost_count;
	__u8 pad;
	__u32 tenant; /* slot of its tenant's limit, said or inherited; 0: none */
	__u32 pad2;
	struct rl_rate rate[RL_UNITS];
	struct rl_past past[RL_PAST]; /* past[i] is generation gen - 1 - i */
	struct rl_class_ref class[RL_MAX_CLASSES];
	struct rl_cost cost[RL_MAX_COSTS];
	struct rl_target target; /* whose it is, for user space */
	struct rl_terms terms;	 /* likewise */
};

/*
 * A bucket of each unit, as the packet path keeps them. rl_gcra.h says what a word holds; all zero is full. Both words are
 * stored by each packet that is admitted, so one stamp serves both.
 */
struct rl_buckets {
	__u64 word[RL_UNITS];
	__u64
	    version; /* slot, bits of the id, and generation of the limit, that both words were brought up to (rl_bucket_version) */
	__u32
	    stamp; /* when a word was last stored, ns >> RL_GCRA_STAMP: tells a long idle time from a debt */
	__u32
	    known; /* rl_known() of the policy's epoch in which a packet's source was last found to be this limit's;
			   0: never. As long as the epoch is that, the policy needn't be asked (rl_fast.h) */
};

/* What became of one source's packets. */
struct rl_tally {
	struct rl_count passed; /* those that shadow let pass included */
	struct rl_count dropped;
	struct rl_count shadow; /* that would have been dropped; counted in `passed` too */
};

/* A limit's own bucket (rl_own), and a source in the LRU map. */
struct rl_source {
	__u64 key; /* whose it is: the limit's id in rl_own, rl_table_key() in the LRU map */
	struct rl_buckets buckets;
	struct rl_tally tally;
};

#define RL_SLICES      64 /* of one CPU; a power of two */
#define RL_SLICE_PARTS 7  /* all CPUs' slices of a bucket are at most its burst >> this */

/* Log2 of how often one CPU's slice goes into a burst; 0: there are none, as one CPU needs none. cpus: at least 1 */
RL_INLINE __u32 rl_slice_shift_of(__u32 cpus)
{
	__u32 shift = 0;

	while (shift < 31 && cpus > 1U << shift)
		shift++;
	return shift ? shift + RL_SLICE_PARTS : 0;
}

/* What one CPU may spend of a limit's own bucket without asking (rl_slice.h). */
struct rl_slice {
	__u32 id;	       /* of the limit, which no other ever has; 0: never used */
	__u32 gen;	       /* its generation */
	__u64 end[RL_UNITS];   /* the words that taking it left */
	__u64 left[RL_UNITS];  /* bucket time before that, not spent yet */
	__u64 until[RL_UNITS]; /* ns; after that all of it is worth nothing */
};

/* Key of the LRU map: the limit and the source cut to its granularity. */
struct rl_source_key {
	__u32 limit_id;
	__u8 family; /* 4 or 6 */
	__u8 pad[3];
	__u8 addr[16];
};

/*
 * The table of sources (rl_table.h): rows of eight, of both families. A key of 0 is a free place. A key is the limit's id << 32
 * and the cut address as a number; in IPv6 32 bits of its hash, and the whole address stands beside the row. Its highest bit
 * tells the families apart, hence ids are below RL_MOST_IDS.
 */
#define RL_ROW	    8 /* places in a row */
#define RL_KEY_SIX  (1ULL << 63)
#define RL_MOST_IDS (1U << 31)

/* The id of the limit that a key is of. */
RL_INLINE __u32 rl_key_id(__u64 key)
{
	return (__u32)((key & ~RL_KEY_SIX) >> 32);
}

/* What of a key is the source's alone, whatever the limit. */
RL_INLINE __u64 rl_key_source(__u64 key)
{
	return key & (RL_KEY_SIX | 0xffffffff);
}

/* One cache line: all that a packet of the source writes, but for shadow. */
struct rl_row_place {
	struct rl_buckets buckets;
	struct rl_count passed, dropped; /* as in struct rl_tally */
};

struct rl_row {
	__u64 key[RL_ROW]; /* one cache line, read first */
	struct rl_row_place at[RL_ROW];
	struct rl_count shadow[RL_ROW]; /* of each place's tally */
};

struct rl_row_address {
	__u8 addr[RL_ROW][16]; /* cut, as in struct rl_source_key; anything where the place is IPv4's */
};

#define RL_CPU_PENDINGS 64	     /* a power of two */
#define RL_PLACE_OWN	(1ULL << 63) /* of a limit's own bucket: the slot follows */

/* A place of the table, as one number. at: below RL_ROW */
RL_INLINE __u64 rl_place_number(__u32 row, __u32 at)
{
	return (__u64)row * RL_ROW + at;
}

/* Drops that a CPU has counted for one source, and that aren't in the source's own tally yet (rl_tally.h). */
struct rl_pending {
	__u64 place; /* rl_place_number(), or RL_PLACE_OWN */
	__u64 key;   /* which the place has to have; 0: nobody's, and what is counted here is of no use */
	__u64 turns; /* odd while the element changes hands */
	__u64 tick;  /* when it was last added to */
	struct rl_count dropped;
	__u64 pad[2]; /* a cache line */
};

/*
 * A region is what one lock guards while a source is given its place: both rows that it may be in. So many rows that
 * regions fill evenly: of 1280 sources in 2048 places, the standard deviation is 36.
 */
#define RL_REGION_ROWS	 256
#define RL_GROUP_REGIONS 32 /* of rl_groups: 65536 places */

/* The table's shape, in the program's .rodata; the same for every program over the same maps. */
struct rl_table {
	__u64 seed[2]; /* so that nobody outside can choose addresses that collide */
	__u32 regions;
	__u32 pad;
};

/* What one limit did. */
struct rl_limit_count {
	struct rl_count passed;	 /* packets that it applied to, and that passed; shadow's included */
	struct rl_count dropped; /* that it dropped itself */
	struct rl_count shadow;	 /* that it would have dropped */
};

/* What one device did, by reason. */
struct rl_device_count {
	struct rl_count by_reason[RL_REASONS];
};

enum rl_device_flags {
	RL_DEVICE_ATTACHED = 1U << 0, /* the slot is taken */
	RL_DEVICE_PAUSED = 1U << 1,   /* everything passes, counted */
	RL_DEVICE_SHADOW = 1U << 2,   /* nothing is dropped; what would have been is counted */
};

enum rl_mode {
	RL_MODE_NATIVE,
	RL_MODE_GENERIC,
	RL_MODE_TC,
	RL_MODES,
};

/* Where on the device its program sits (user/hook.h). */
enum rl_hook {
	RL_HOOK_XDP,
	RL_HOOK_TCX,
	RL_HOOK_CLSACT,
	RL_HOOKS,
};

struct rl_device {
	__u32 flags; /* enum rl_device_flags */
	__u32 ifindex;
	__u32 mode;  /* enum rl_mode */
	__u32 hook;  /* enum rl_hook */
	__u32 limit; /* slot of the limit of "dev:" and its name; 0: none */
	__u32 pad;
	__u64 since;		/* seconds since the epoch (CLOCK_REALTIME) when it was first attached */
	char name[RL_NAME_LEN]; /* when it was attached; it may have been renamed since */
};

enum rl_when_full {
	RL_FULL_AGGREGATE, /* the packet is charged to its /24 or /48, at the limit's own rate */
	RL_FULL_OPEN,	   /* it passes */
	RL_FULL_CLOSED,	   /* it drops */
	RL_FULLS,
};

/* Where the prefixes are among the blocks of rl_ranges (rl_ranges.h). */
struct rl_ranges_head {
	__u64 word;    /* rl_ranges_word(); packets read this alone */
	__u32 used[2]; /* of each half's blocks, beyond the tables at its beginning */
};

/* What packets read of the whole state. User space writes single words of it. */
struct rl_settings {
	__u32 epoch;	 /* rl_ref.h: which of a head's two cells is in force */
	__u32 when_full; /* enum rl_when_full */
	__u32 fresh;	 /* slot of the limit of `new`; 0: none */
	__u32 split; /* 1: there is, or was, a prefix longer than /64: not all of a /64 need be one limit's */
	struct rl_ranges_head ranges;
};

enum rl_store {
	RL_STORE_TABLE,
	RL_STORE_LRU,
	RL_STORES,
};

/* One per pinned state, read and written by user space alone. */
struct rl_meta {
	__u32 abi;	     /* RL_ABI_VERSION; first, so that every version can read it */
	__u32 next_limit_id; /* below RL_MOST_IDS, or that: they are used up */
	__u64 max_sources;
	__u64 netns_cookie; /* SO_NETNS_COOKIE of the network namespace it belongs to */
	__u64 seed[2];	    /* of the table's hash */
	__u32 store;	    /* enum rl_store */
	__u32 regions;	    /* of the table; 0 without one */
	__u32 unfinished;   /* 1 while a staged change is on its way: the next one mends it */
	__u32 max_limits;   /* slots, 0 included */
};

/* Who has a slot or a cell; user space alone. */
struct rl_claim {
	__u32 id;    /* of the limit; 0: free */
	__u32 freed; /* s, CLOCK_MONOTONIC: packets that came before may still read it */
};

/* BPF's integer types: a size that differs between the two compilers would silently break keys. */
_Static_assert(sizeof(struct rl_count) == 16, "rl_count");
_Static_assert(sizeof(struct rl_prefix) == 24, "rl_prefix");
_Static_assert(sizeof(struct rl_target) == 64, "rl_target");
_Static_assert(sizeof(struct rl_class) == 6, "rl_class");
_Static_assert(sizeof(struct rl_cost) == 8, "rl_cost");
_Static_assert(sizeof(struct rl_class_ref) == 12, "rl_class_ref");
_Static_assert(sizeof(struct rl_rate) == 56, "rl_rate");
_Static_assert(sizeof(struct rl_past) == 48, "rl_past");
_Static_assert(sizeof(struct rl_terms) == 152, "rl_terms");
_Static_assert(sizeof(struct rl_limit) == 712, "rl_limit");
_Static_assert(sizeof(struct rl_buckets) == 32, "rl_buckets");
_Static_assert(sizeof(struct rl_tally) == 48, "rl_tally");
_Static_assert(sizeof(struct rl_source) == 88, "rl_source");
_Static_assert(sizeof(struct rl_slice) == 56, "rl_slice");
_Static_assert(sizeof(struct rl_source_key) == 24, "rl_source_key");
_Static_assert(sizeof(struct rl_row_place) == 64, "rl_row_place");
_Static_assert(sizeof(struct rl_row) == 704, "rl_row");
_Static_assert(sizeof(struct rl_row_address) == 128, "rl_row_address");
_Static_assert(sizeof(struct rl_pending) == 64, "rl_pending");
_Static_assert(sizeof(struct rl_limit_count) == 48, "rl_limit_count");
_Static_assert(sizeof(struct rl_device_count) == 16UL * RL_REASONS, "rl_device_count");
_Static_assert(sizeof(struct rl_device) == 48, "rl_device");
_Static_assert(sizeof(struct rl_ranges_head) == 16, "rl_ranges_head");
_Static_assert(sizeof(struct rl_settings) == 32, "rl_settings");
_Static_assert(sizeof(struct rl_meta) == 56, "rl_meta");
_Static_assert(sizeof(struct rl_claim) == 8, "rl_claim");

#endif
