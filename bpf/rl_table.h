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
 * The victim of a new source is a place whose buckets are full, by the rate in force, and that was left alone for a grace
 * time. Full buckets hold no information: the source that had it finds a full one again when it comes back, so eviction is
 * lossless. The grace keeps the places of sources that were talking before a flood of new ones. A place changes hands like
 * this:
 *
 *     key = 0                          nobody finds it any more
 *     each word: seen -> full, by CAS  a packet that had found it before has charged it: the CAS fails, and all is put back
 *     version, stamps                  the new owner's
 *     key = the new owner's            by CAS, so that everything above is seen before it
 *
 * A packet that found the place before, and hasn't charged it yet, reads the key again before its own CAS (rl_bucket.h).
 * It may still be counted in the tally beside it, which is the new owner's by then, where drops of it aren't pending elsewhere
 * (rl_tally.h): one packet of each CPU that was under way, one that was charged nothing. Reading the key again there would make
 * that rarer, and not impossible.
 *
 * A lock is one word, taken by CAS. Who holds it runs for about 200 ns and can't be interrupted by another packet on its
 * CPU; who doesn't get it in RL_LOCK_TRIES gives up, and its packet is dropped as contended.
 */
#ifndef RL_TABLE_H
#define RL_TABLE_H

#include "rl_bucket.h"
#include "rl_bytes.h"
#include "rl_job.h"

#define RL_TABLE_GRACE	10 /* stamps, about a second each */
#define RL_TABLE_ORPHAN 2  /* likewise: where the limit is deleted */
#define RL_LOCK_TRIES	512

/* Where a key may be. */
struct rl_rows {
	__u32 row[2]; /* different ones of one region */
	__u32
	    home; /* the place in either that is looked at first, and taken if it is free: mostly it is there */
};

/* The cut address as one number: IPv4's own, and a hash of IPv6's. addr: cut, 4 or 16 bytes. */
RL_INLINE __u64 rl_table_number(const struct rl_table *table, __u8 family, const __u8 *addr)
{
	if (family == 4)
		return rl_be32(addr);
	return rl_mix(rl_mix(rl_be64(addr) ^ table->seed[1]) ^ rl_be64(addr + 8) ^ table->seed[0]);
}

/*
 * The key of a source under a limit: exact for IPv4; for IPv6 a hash, and who finds it compares the address too. Never 0, no
 * limit's id is.
 */
RL_INLINE __u64 rl_table_key(__u32 limit_id, __u8 family, __u64 number)
{
	return (family == 4 ? 0 : RL_KEY_SIX) | (__u64)limit_id << 32 | (__u32)number;
}

/*
 * What decides on a source's rows: its address alone, so that it can be looked for before it is known which limit it is
 * under (rl_fast.h). The buckets that it has under its classes' limits are elsewhere, each class's for itself.
 */
RL_INLINE __u64 rl_table_spot(enum rl_level level, __u32 limit_id, __u64 number)
{
	return level == RL_LEVEL_CLASS ? number ^ (__u64)limit_id << 32 : number;
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
	__u64 first = family == 4 ? (__u64)rl_be32(addr) << 32 : rl_be64(addr);
	__u32 bits = rl_table_group_bits(limit, family);

	first = bits ? first >> (64 - bits) << (64 - bits) : 0;
	if (family == 4)
		return (__u64)limit->id << 32 | first >> 32;
	return (__u64)limit->id << 32 | (__u32)(rl_mix(first ^ table->seed[0]) | 1);
}

/* The rows of a spot in a table of so many regions. */
RL_INLINE struct rl_rows rl_table_rows(const struct rl_table *table, __u32 regions, __u64 spot)
{
	__u64 hash = rl_mix(rl_mix(spot ^ table->seed[0]) ^ table->seed[1]);
	struct rl_rows rows;
	__u32 first = hash & (RL_REGION_ROWS - 1), second = (hash / RL_REGION_ROWS) & (RL_REGION_ROWS - 1),
	      region;

	if (second == first)
		second = (first + 1) & (RL_REGION_ROWS - 1);
	rows.home = (hash / RL_REGION_ROWS / RL_REGION_ROWS) & (RL_ROW - 1);
	region = (__u32)((hash >> 32) * regions >> 32);
	rows.row[0] = region * RL_REGION_ROWS + first;
	rows.row[1] = region * RL_REGION_ROWS + second;
	return rows;
}

/* The key's place in the row, or RL_ROW. home: rl_rows.home */
RL_FUNCTION __u32 rl_row_find(const struct rl_row *row, __u64 key, __u32 home)
{
	if (!row)
		return RL_ROW; /* never so: said for the verifier */
	for (__u32 n = 0; n < RL_ROW; n++) {
		__u32 i = (home + n) & (RL_ROW - 1);

		if (*(const volatile __u64 *)&row->key[i] == key)
			return i;
	}
	return RL_ROW;
}

/*
 * What rl_buckets.known is while the policy is in this epoch. Of the key too, so that what is written for one source isn't
 * true of another that was given the place in the same moment: of its number and its limit, which are alike in other sources
 * and limits, hence mixed. Never 0.
 */
RL_INLINE __u32 rl_known(__u32 epoch, __u64 key)
{
	__u32 known = epoch + 1 + (__u32)rl_mix(key);

	return known ? known : 1;
}

/* Is this the very address? */
RL_INLINE int rl_address_same(const __u8 *one, const __u8 *other)
{
	return rl_be64(one) == rl_be64(other) && rl_be64(one + 8) == rl_be64(other + 8);
}

/* As rl_row_find(), for IPv6: among those with this key, the one of this address. */
RL_FUNCTION __u32 rl_row_find6(const struct rl_row *row, const struct rl_row_address *address, __u64 key,
			       const struct rl_source_key *source)
{
	if (!row || !address || !source)
		return RL_ROW; /* never so: said for the verifier */
	for (__u32 i = 0; i < RL_ROW; i++)
		if (*(const volatile __u64 *)&row->key[i] == key &&
		    rl_address_same(address->addr[i], source->addr))
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

RL_INLINE void rl_victim_read(const struct rl_row *row, __u32 place, struct rl_victim *out)
{
	const struct rl_buckets *buckets = &row->at[place].buckets;

	out->key = *(const volatile __u64 *)&row->key[place];
	out->word[RL_PACKETS] = *(const volatile __u64 *)&buckets->word[RL_PACKETS];
	out->word[RL_BYTES] = *(const volatile __u64 *)&buckets->word[RL_BYTES];
	out->stamp = *(const volatile __u32 *)&buckets->stamp;
	out->version = *(const volatile __u64 *)&buckets->version;
}

/* Was it left alone for the grace time? */
RL_INLINE int rl_victim_idle(const struct rl_victim *seen, __u32 grace, __u64 now)
{
	return (__s32)((__u32)(now >> RL_GCRA_STAMP) - seen->stamp) >= (__s32)grace;
}

/* Is one bucket of it full? owner: the limit in force that it belongs to. */
RL_INLINE int rl_victim_full(const struct rl_limit *owner, const struct rl_victim *seen, enum rl_unit unit,
			     __u64 now)
{
	const struct rl_bucket bucket = {
	    .word = seen->word[unit], .gen = (__u32)seen->version, .stamp = seen->stamp};

	return !rl_gcra_owes(owner, unit, &bucket, now);
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
 * Take a place from the owner that it was read with, if nobody charges it meanwhile. Its key is 0 then, and its buckets are
 * those of a new source under the limit. Under the region's lock.
 */
RL_INLINE int rl_place_take(struct rl_row *row, __u32 place, const struct rl_victim *seen,
			    const struct rl_limit *limit, __u64 now)
{
	struct rl_buckets *buckets = &row->at[place].buckets;
	__u64 fresh[RL_UNITS];

	fresh[RL_PACKETS] = rl_bucket_fresh(limit, RL_PACKETS, now, seen->word[RL_PACKETS]);
	fresh[RL_BYTES] = rl_bucket_fresh(limit, RL_BYTES, now, seen->word[RL_BYTES]);
	if (__sync_val_compare_and_swap(&row->key[place], seen->key, 0) != seen->key)
		return 0;
	if (__sync_val_compare_and_swap(&buckets->word[RL_PACKETS], seen->word[RL_PACKETS],
					fresh[RL_PACKETS]) != seen->word[RL_PACKETS]) {
		__sync_val_compare_and_swap(&row->key[place], 0, seen->key);
		return 0;
	}
	if (__sync_val_compare_and_swap(&buckets->word[RL_BYTES], seen->word[RL_BYTES], fresh[RL_BYTES]) !=
	    seen->word[RL_BYTES]) {
		__sync_val_compare_and_swap(&buckets->word[RL_PACKETS], fresh[RL_PACKETS],
					    seen->word[RL_PACKETS]);
		__sync_val_compare_and_swap(&row->key[place], 0, seen->key);
		return 0;
	}
	*(volatile __u32 *)&buckets->known = 0;
	*(volatile __u64 *)&buckets->version = rl_bucket_version(limit);
	*(volatile __u32 *)&buckets->stamp = (__u32)(now >> RL_GCRA_STAMP);
	return 1;
}

/*
 * Take a free place. It was never anybody's, since none is given back: nobody can be about to charge it, and no packet was
 * counted there. Under the region's lock.
 */
RL_INLINE void rl_place_fill(struct rl_buckets *buckets, const struct rl_limit *limit, __u64 now)
{
	*(volatile __u64 *)&buckets->word[RL_PACKETS] = rl_bucket_fresh(limit, RL_PACKETS, now, 0);
	*(volatile __u64 *)&buckets->word[RL_BYTES] = rl_bucket_fresh(limit, RL_BYTES, now, 0);
	*(volatile __u64 *)&buckets->version = rl_bucket_version(limit);
	*(volatile __u32 *)&buckets->stamp = (__u32)(now >> RL_GCRA_STAMP);
}

/* Let everybody find the place that was taken. */
RL_INLINE void rl_place_publish(struct rl_row *row, __u32 place, __u64 key)
{
	__sync_val_compare_and_swap(&row->key[place], 0, key);
}

/* 1 for 0, else 0: without a branch, which the processor would guess wrong as often as not, and the verifier go both ways. */
RL_INLINE __u32 rl_is_zero(__u64 x)
{
	x |= -x;
	asm volatile("" : "+r"(x)); /* or the compiler makes a branch of it */
	return (__u32)(~x >> 63);
}

/* The row's free places: bit i is place i. *count: how many. */
RL_INLINE __u32 rl_row_vacant(const struct rl_row *row, __u32 *count)
{
	__u32 mask = 0;

	*count = 0;
	for (__u32 i = 0; i < RL_ROW; i++) {
		__u32 free = rl_is_zero(*(const volatile __u64 *)&row->key[i]);

		mask |= free << i;
		*count += free;
	}
	return mask;
}

/* Of such places the nearest to home, which is looked at first. mask: not 0 */
RL_INLINE __u32 rl_row_nearest(__u32 mask, __u32 home)
{
	__u32 turned = (mask | mask << RL_ROW) >> home, lowest = turned & -turned;

	return (home + 7 - 4 * rl_is_zero(lowest & 0xf0) - 2 * rl_is_zero(lowest & 0xcc) -
		rl_is_zero(lowest & 0xaa)) &
	       (RL_ROW - 1);
}

/* Is the key in the row? */
RL_INLINE int rl_row_has(const struct rl_row *row, __u64 key)
{
	for (__u32 i = 0; i < RL_ROW; i++)
		if (*(const volatile __u64 *)&row->key[i] == key)
			return 1;
	return 0;
}

/* --- what is remembered of a row (struct rl_kept) --- */

#define RL_KEPT_LONG 240 /* stamps; then it begins anew */

RL_INLINE int rl_kept_stale(const struct rl_kept *kept, __u32 epoch, __u64 now)
{
	return *(const volatile __u32 *)&kept->epoch != epoch ||
	       (__u32)(now >> RL_GCRA_STAMP) - *(const volatile __u32 *)&kept->since > RL_KEPT_LONG;
}

/* The places that may be given away: bit i is place i. kept: NULL where nothing is remembered. */
RL_INLINE __u32 rl_kept_others(const struct rl_kept *kept, __u32 epoch, __u64 now)
{
	__u32 mask = 0, time;

	if (!kept || rl_kept_stale(kept, epoch, now))
		return (1U << RL_ROW) - 1;
	time = (__u32)(now >> RL_GCRA_STAMP) - *(const volatile __u32 *)&kept->since;
	for (__u32 i = 0; i < RL_ROW; i++)
		mask |= ((*(const volatile __u8 *)&kept->until[i] - time - 1) >> 31) << i;
	return mask;
}

/* Remember when a place was last stamped. Under the region's lock. */
RL_INLINE void rl_kept_note(struct rl_kept *kept, __u32 epoch, __u64 now, __u32 place, __u32 stamp)
{
	__u32 left;

	if (rl_kept_stale(kept, epoch, now)) {
		*(volatile __u64 *)kept->until = 0;
		*(volatile __u32 *)&kept->since = (__u32)(now >> RL_GCRA_STAMP);
		*(volatile __u32 *)&kept->epoch = epoch;
	}
	left = stamp + RL_TABLE_GRACE - kept->since;
	*(volatile __u8 *)&kept->until[place & (RL_ROW - 1)] = left < 255 ? (__u8)left : 0;
}

#endif
