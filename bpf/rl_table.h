/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_table.h - the table of sources: rows of eight places in an array, found by a seeded hash. Compiles on both sides.
 *
 * A key hashes to a region and to two rows in it; it is in one of the two, or nowhere. A new one goes to the emptier row,
 * which keeps both from filling up while the table has room (two choices: with 8 places and 1.6 places a source, fewer than
 * one row in 10^9 wants a ninth; Azar, Broder, Karlin, Upfal, Balanced Allocations, 1999).
 *
 * Looking up takes no lock. Giving a place takes the region's: so two CPUs that meet the same new source make one place,
 * never two, since both its rows are in that region and both CPUs look again once they hold the lock.
 *
 * The victim of a new source is a place whose buckets are full (by the rate in force: buckets of an earlier generation are
 * brought up to date before they are judged) and were so for a grace time. Full buckets hold no
 * information: the source that had it finds a full one again when it comes back, so eviction is lossless. The grace keeps
 * the places of sources that were talking before a flood of new ones. A place changes hands like this:
 *
 *     key = 0                          nobody finds it any more
 *     each word: seen -> full, by CAS  a packet that had found it before has charged it: the CAS fails, and all is put back
 *     version, stamps                  the new owner's
 *     key = the new owner's            by CAS, so that everything above is seen before it
 *
 * A packet that found the place before, and hasn't charged it yet, reads the key again before its own CAS (rl_bucket.h).
 * It may still be counted in the tally beside it, which is the new owner's by then: one packet of each CPU that was under
 * way, one that was charged nothing. Reading the key again there would make that rarer, and not impossible.
 *
 * A lock is one word, taken by CAS. Who holds it runs for about 200 ns and can't be interrupted by another packet on its
 * CPU; who doesn't get it in RL_LOCK_TRIES gives up, and its packet is dropped as contended.
 */
#ifndef RL_TABLE_H
#define RL_TABLE_H

#include "rl_bucket.h"

#define RL_TABLE_GRACE 10 /* stamps, about a second each */
#define RL_LOCK_TRIES  512

/* Where a key may be. */
struct rl_rows {
	__u32 region;
	__u32 row[2]; /* different ones */
};

/* Finalizer of MurmurHash3: each bit of the input flips each bit of the output with a chance of one half. */
RL_INLINE __u64 rl_table_mix(__u64 x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

/* The first four and eight bytes of an address as numbers that keep its order. */
RL_INLINE __u32 rl_table_be32(const __u8 *p)
{
	return (__u32)p[0] << 24 | (__u32)p[1] << 16 | (__u32)p[2] << 8 | p[3];
}

RL_INLINE __u64 rl_table_be64(const __u8 *p)
{
	return (__u64)rl_table_be32(p) << 32 | rl_table_be32(p + 4);
}

/* The first `bits` bits of an address in network byte order; bits: 0 to 8 * size. */
RL_INLINE void rl_address_cut(__u8 *addr, __u32 size, __u32 bits)
{
	for (__u32 i = 0; i < size; i++) {
		if (i * 8 >= bits)
			addr[i] = 0;
		else if (bits - i * 8 < 8)
			addr[i] &= (__u8)(0xff00 >> (bits - i * 8));
	}
}

/* IPv4: exact. addr: cut, four bytes. Never 0, no limit's id is. */
RL_INLINE __u64 rl_table_key4(__u32 limit_id, const __u8 *addr)
{
	return (__u64)limit_id << 32 | rl_table_be32(addr);
}

/* IPv6: a hash; who finds it compares the address too. addr: cut, 16 bytes. Never 0. */
RL_INLINE __u64 rl_table_key6(const struct rl_table *table, __u32 limit_id, const __u8 *addr)
{
	__u64 hash = rl_table_mix(limit_id ^ table->seed[1]);

	hash = rl_table_mix(hash ^ rl_table_be64(addr));
	hash = rl_table_mix(hash ^ rl_table_be64(addr + 8) ^ table->seed[0]);
	return hash ? hash : 1;
}

/* Bits of an address that are one neighbourhood under the limit: a /24 or /48, or the source itself where it is larger. */
RL_INLINE __u32 rl_table_group_bits(const struct rl_limit *limit, __u8 family)
{
	__u32 bits = family == 4 ? limit->bits[0] : limit->bits[1], most = family == 4 ? 24 : 48;

	return bits < most ? bits : most;
}

/*
 * A neighbourhood in rl_groups. Exact for IPv4; two of a limit's /48s may share a bucket, which then holds both to what one
 * may have. addr: as in the packet.
 */
RL_INLINE __u64 rl_table_group(const struct rl_table *table, const struct rl_limit *limit, __u8 family,
			       const __u8 *addr)
{
	__u64 first = family == 4 ? (__u64)rl_table_be32(addr) << 32 : rl_table_be64(addr);
	__u32 bits = rl_table_group_bits(limit, family);

	first = bits ? first >> (64 - bits) << (64 - bits) : 0;
	if (family == 4)
		return (__u64)limit->id << 32 | first >> 32;
	return (__u64)limit->id << 32 | (__u32)(rl_table_mix(first ^ table->seed[0]) | 1);
}

/* The rows of a key in a table of so many regions. */
RL_INLINE struct rl_rows rl_table_rows(const struct rl_table *table, __u32 regions, __u64 key)
{
	__u64 hash = rl_table_mix(rl_table_mix(key ^ table->seed[0]) ^ table->seed[1]);
	struct rl_rows rows;
	__u32 first = hash & (RL_REGION_ROWS - 1), second = (hash / RL_REGION_ROWS) & (RL_REGION_ROWS - 1);

	if (second == first)
		second = (first + 1) & (RL_REGION_ROWS - 1);
	rows.region = (__u32)((hash >> 32) * regions >> 32);
	rows.row[0] = rows.region * RL_REGION_ROWS + first;
	rows.row[1] = rows.region * RL_REGION_ROWS + second;
	return rows;
}

/* The key's place in the row, or RL_ROW. */
RL_FUNCTION __u32 rl_row_find(const struct rl_row *row, __u64 key)
{
	if (!row)
		return RL_ROW; /* never so: said for the verifier */
	for (__u32 i = 0; i < RL_ROW; i++)
		if (*(const volatile __u64 *)&row->key[i] == key)
			return i;
	return RL_ROW;
}

RL_INLINE int rl_lock(__u32 *lock)
{
	for (int try = 0; try < RL_LOCK_TRIES; try++)
		if (!__sync_val_compare_and_swap(lock, 0, 1))
			return 1;
	return 0;
}

RL_INLINE void rl_unlock(__u32 *lock)
{
	__sync_val_compare_and_swap(lock, 1, 0);
}

/* Can the place be given away? */
RL_INLINE int rl_place_idle(const struct rl_buckets *buckets, __u32 grace, __u64 now)
{
	__u32 stamp = (__u32)(now >> RL_GCRA_STAMP);

	return (__s32)(stamp - *(const volatile __u32 *)&buckets->full) > 0 &&
	       (__s32)(stamp - *(const volatile __u32 *)&buckets->stamp) >= (__s32)grace;
}

/* A word of a bucket that is full as of now, and differs from the one that it replaces; 0 in a unit that isn't limited. */
RL_INLINE __u64 rl_bucket_fresh(const struct rl_limit *limit, enum rl_unit unit, __u64 now, __u64 old)
{
	__u64 word = rl_gcra_time(&limit->rate[unit], now) | rl_gcra_tag(limit->gen);

	if (!limit->rate[unit].mult)
		return 0;
	return word == old ? word - (RL_GCRA_TAG + 1) : word;
}

/*
 * Take a place from its owner, if it is idle and nobody charges it meanwhile. Its key is 0 then, and its buckets are those of
 * a new source under the limit. Key and words are read before it is asked whether it is idle: who charges it afterwards makes
 * a swap fail. Under the region's lock.
 */
RL_INLINE int rl_place_take(struct rl_row *row, __u32 place, const struct rl_limit *limit, __u32 grace,
			    __u64 now)
{
	struct rl_buckets *buckets = &row->buckets[place];
	__u64 owner = *(volatile __u64 *)&row->key[place], old[RL_UNITS], fresh[RL_UNITS];

	old[RL_PACKETS] = *(volatile __u64 *)&buckets->word[RL_PACKETS];
	old[RL_BYTES] = *(volatile __u64 *)&buckets->word[RL_BYTES];
	if (owner && !rl_place_idle(buckets, grace, now))
		return 0;
	fresh[RL_PACKETS] = rl_bucket_fresh(limit, RL_PACKETS, now, old[RL_PACKETS]);
	fresh[RL_BYTES] = rl_bucket_fresh(limit, RL_BYTES, now, old[RL_BYTES]);
	if (__sync_val_compare_and_swap(&row->key[place], owner, 0) != owner)
		return 0;
	if (__sync_val_compare_and_swap(&buckets->word[RL_PACKETS], old[RL_PACKETS], fresh[RL_PACKETS]) !=
	    old[RL_PACKETS]) {
		__sync_val_compare_and_swap(&row->key[place], 0, owner);
		return 0;
	}
	if (__sync_val_compare_and_swap(&buckets->word[RL_BYTES], old[RL_BYTES], fresh[RL_BYTES]) !=
	    old[RL_BYTES]) {
		__sync_val_compare_and_swap(&buckets->word[RL_PACKETS], fresh[RL_PACKETS], old[RL_PACKETS]);
		__sync_val_compare_and_swap(&row->key[place], 0, owner);
		return 0;
	}
	*(volatile __u64 *)&buckets->version = rl_bucket_version(limit);
	*(volatile __u32 *)&buckets->stamp = (__u32)(now >> RL_GCRA_STAMP);
	*(volatile __u32 *)&buckets->full = (__u32)(now >> RL_GCRA_STAMP);
	return 1;
}

/* Let everybody find the place that was taken. */
RL_INLINE void rl_place_publish(struct rl_row *row, __u32 place, __u64 key)
{
	__sync_val_compare_and_swap(&row->key[place], 0, key);
}

/* How many places of the row are free. */
RL_FUNCTION __u32 rl_row_free(const struct rl_row *row)
{
	__u32 count = 0;

	if (!row)
		return 0; /* never so: said for the verifier */
	for (__u32 i = 0; i < RL_ROW; i++)
		count += !row->key[i];
	return count;
}

#endif
