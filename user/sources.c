// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sources.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "prefix.h"

/* What rl_bucket.h asks of who includes it. */
static inline __u64 rl_now(void)
{
	return rl_clock_ns();
}

#include "../bpf/rl_job.h"
#include "../bpf/rl_table.h"

#define CHUNK 16384 /* entries of one batch read: 1.7 MB of keys and values */
#define TIMELY                                                                                               \
	64 /* rows that are read at one time: reading a large table takes a while, the first time longer than the next */
#define AHEAD 16 /* rows: some 80 ns of work each, where a miss takes 100 to 400 */

int rl_sources_open(const struct rl_state *state, struct rl_sources *out, struct rl_error *err)
{
	const __u32 only = 0;
	struct rl_meta meta;

	if (bpf_map_lookup_elem(state->map[RL_MAP_META], &only, &meta))
		return rl_state_read_failed(err, RL_MAP_META, errno);
	*out = (struct rl_sources){.state = state, .meta = meta};
	return rl_pendings_open(state, false, &out->pending, err);
}

static void table_close(struct rl_source_table *table)
{
	rl_mapping_close(&table->rows);
	rl_mapping_close(&table->addresses);
}

void rl_sources_close(struct rl_sources *sources)
{
	table_close(&sources->table);
	rl_pendings_close(&sources->pending);
	sources->state = NULL;
}

static int table_map(const struct rl_state *state, struct rl_source_table *out, struct rl_error *err)
{
	int rc = rl_mapping_open(state, RL_MAP_ROWS, sizeof(struct rl_row), false, RL_MAPPING_WHOLE,
				 &out->rows, err);

	if (!rc)
		rc = rl_mapping_open(state, RL_MAP_ADDRESS6, sizeof(struct rl_row_address), false,
				     RL_MAPPING_WHOLE, &out->addresses, err);
	if (rc || out->addresses.entries >= out->rows.entries)
		return rc;
	return rl_error_set(
	    err, RL_ERROR_KERNEL, EPROTO,
	    "the table's maps differ in size, so the state is damaged: `rl-agent detach --all` "
	    "and attach make it anew");
}

static int table_get(struct rl_sources *sources, const struct rl_source_table **out, struct rl_error *err)
{
	struct rl_source_table *table = &sources->table;
	int rc = 0;

	if (!table->rows.base)
		rc = table_map(sources->state, table, err);
	if (rc)
		table_close(table);
	*out = table;
	return rc;
}

static struct rl_count read_count(const struct rl_count *count)
{
	return (struct rl_count){rl_word_read(&count->packets), rl_word_read(&count->bytes)};
}

static struct rl_tally read_tally(const struct rl_row *row, int at)
{
	return (struct rl_tally){
	    .passed = read_count(&row->at[at].passed),
	    .dropped = read_count(&row->at[at].dropped),
	    .shadow = read_count(&row->shadow[at]),
	};
}

/* With what is pending for the source `key`. */
static struct rl_tally read_whole_tally(const struct rl_pendings *pending, const struct rl_row *row,
					__u32 index, int at, __u64 key)
{
	__u64 place = rl_place_number(index, (__u32)at);
	struct rl_pendings_reading reading = rl_pendings_begin(pending, place);
	struct rl_tally tally;

	do {
		tally = read_tally(row, at);
		rl_pendings_add(pending, place, key, &tally);
	} while (rl_pendings_again(pending, &reading));
	return tally;
}

static struct rl_buckets read_buckets(const struct rl_buckets *buckets)
{
	struct rl_buckets copy;

	/* The words before their stamp: rl_bucket.h says why. */
	for (int unit = 0; unit < RL_UNITS; unit++)
		copy.word[unit] = rl_word_read(&buckets->word[unit]);
	copy.stamp = *(const volatile __u32 *)&buckets->stamp;
	copy.known = *(const volatile __u32 *)&buckets->known;
	copy.version = rl_word_read(&buckets->version);
	return copy;
}

/* Whose the place is. IPv4's key says the address itself. */
static void read_name(const struct rl_source_table *table, __u64 key, __u32 row, int at,
		      struct rl_source_place *out)
{
	const struct rl_row_address *addresses = table->addresses.base;
	__u32 number = htonl((__u32)key);

	*out = (struct rl_source_place){.family = key & RL_KEY_SIX ? 6 : 4, .limit_id = rl_key_id(key)};
	if (out->family == 6)
		memcpy(out->addr, addresses[row].addr[at], sizeof(out->addr));
	else
		memcpy(out->addr, &number, sizeof(number));
}

/*
 * The keys of a row that is read soon. Rows are farther apart than the processor foresees; without this, a table that is mostly
 * empty costs a miss a row.
 */
static void row_prefetch(const struct rl_source_table *table, __u32 row)
{
	if (row < table->rows.entries)
		__builtin_prefetch(&((const struct rl_row *)table->rows.base)[row]);
}

static int table_read(const struct rl_source_table *table, const struct rl_pendings *pending,
		      rl_source_use use, void *context)
{
	const struct rl_row *rows = table->rows.base;
	struct rl_source_place place;
	__u64 time = 0;
	int rc = 0;

	for (__u32 row = 0; row < table->rows.entries; row++) {
		if (row % TIMELY == 0)
			time = rl_clock_ns();
		row_prefetch(table, row + AHEAD);
		for (int at = 0; at < RL_ROW && !rc; at++) {
			__u64 key = rl_word_read(&rows[row].key[at]);

			if (!key)
				continue;
			read_name(table, key, row, at, &place);
			place.time = time;
			if (rl_pendings_seen(pending, rl_place_number(row, (__u32)at)))
				place.tally = read_whole_tally(pending, &rows[row], row, at, key);
			else
				place.tally = read_tally(&rows[row], at);
			/* Given to another source meanwhile: what was read may be of both. */
			if (rl_word_read(&rows[row].key[at]) == key)
				rc = use(context, &place);
		}
		if (rc)
			return rc;
	}
	return 0;
}

static bool is_of(const struct rl_source_place *place, const struct rl_source_key *wanted)
{
	return place->limit_id == wanted->limit_id && place->family == wanted->family &&
	       !memcmp(place->addr, wanted->addr, sizeof(wanted->addr));
}

static bool row_find(const struct rl_sources *sources, __u32 row, __u64 key,
		     const struct rl_source_key *wanted, struct rl_source_place *out)
{
	const struct rl_source_table *table = &sources->table;
	const struct rl_row *rows = table->rows.base;

	for (int at = 0; at < RL_ROW; at++) {
		struct rl_source_place place;

		if (rl_word_read(&rows[row].key[at]) != key)
			continue;
		read_name(table, key, row, at, &place);
		place.buckets = read_buckets(&rows[row].at[at].buckets);
		place.tally = read_whole_tally(&sources->pending, &rows[row], row, at, key);
		if (!is_of(&place, wanted) || rl_word_read(&rows[row].key[at]) != key)
			continue;
		*out = place;
		return true;
	}
	return false;
}

/* Where packets look for it. */
static bool table_find(const struct rl_sources *sources, enum rl_level level,
		       const struct rl_source_key *wanted, struct rl_source_place *out)
{
	const struct rl_meta *meta = &sources->meta;
	const struct rl_table shape = {.seed = {meta->seed[0], meta->seed[1]}, .regions = meta->regions};
	__u64 number = rl_table_number(&shape, wanted->family, wanted->addr);
	__u64 key = rl_table_key(wanted->limit_id, wanted->family, number);
	struct rl_rows rows =
	    rl_table_rows(&shape, meta->regions, rl_table_spot(level, wanted->limit_id, number));

	for (int i = 0; i < 2; i++)
		if (rows.row[i] < sources->table.rows.entries &&
		    row_find(sources, rows.row[i], key, wanted, out))
			return true;
	return false;
}

static struct rl_source_place place_of(const struct rl_source_key *key, const struct rl_source *source)
{
	struct rl_source_place place = {
	    .limit_id = key->limit_id,
	    .family = key->family,
	    .buckets = source->buckets,
	    .tally = source->tally,
	};

	memcpy(place.addr, key->addr, sizeof(place.addr));
	return place;
}

/*
 * The kernel's batch read of a hash map goes bucket by bucket, each under its lock, so it ends and skips
 * nothing while sources come and go; a walk by get_next_key would start over at each evicted key.
 */
static int lru_read(const struct rl_state *state, rl_source_use use, void *context, struct rl_error *err)
{
	__u32 chunk = CHUNK, batch = 0, count;
	bool first = true;
	__u64 time;

	for (;;) {
		RL_FREE struct rl_source_key *keys = malloc(chunk * sizeof(*keys));
		RL_FREE struct rl_source *values = malloc(chunk * sizeof(*values));
		int rc = 0, used;

		if (!keys || !values)
			return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM,
					    "out of memory while reading the sources");
		while (!rc) {
			count = chunk;
			time = rl_clock_ns();
			rc = bpf_map_lookup_batch(state->map[RL_MAP_SOURCES], first ? NULL : &batch, &batch,
						  keys, values, &count, NULL);
			if (rc && rc != -ENOENT)
				break;
			for (__u32 i = 0; i < count; i++) {
				struct rl_source_place place = place_of(&keys[i], &values[i]);

				place.time = time;
				used = use(context, &place);
				if (used)
					return used;
			}
			first = false;
		}
		if (rc == -ENOENT)
			return 0;
		/* One bucket of the hash holds more than a whole chunk. */
		if (rc != -ENOSPC || chunk > UINT32_MAX / 2)
			return rl_state_read_failed(err, RL_MAP_SOURCES, -rc);
		chunk *= 2;
	}
}

int rl_sources_read(struct rl_sources *sources, rl_source_use use, void *context, struct rl_error *err)
{
	const struct rl_source_table *table;
	int rc;

	if (sources->meta.store == RL_STORE_LRU)
		return lru_read(sources->state, use, context, err);
	rc = table_get(sources, &table, err);
	if (rc)
		return rc;
	rl_pendings_look(&sources->pending);
	return table_read(table, &sources->pending, use, context);
}

int rl_sources_row(struct rl_sources *sources, __u32 where, __u32 index, struct rl_row *row,
		   struct rl_row_address *address, struct rl_error *err)
{
	const struct rl_source_table *table;
	const struct rl_row *rows;
	int rc;

	if (where == RL_AT_GROUPS)
		return bpf_map_lookup_elem(sources->state->map[RL_MAP_GROUPS], &index, row)
			   ? rl_state_read_failed(err, RL_MAP_GROUPS, errno)
			   : 0;
	rc = table_get(sources, &table, err);
	if (rc)
		return rc;
	if (index >= table->rows.entries)
		return rl_state_read_failed(err, RL_MAP_ROWS, ENOENT);
	rows = table->rows.base;
	for (int at = 0; at < RL_ROW; at++) {
		row->key[at] = rl_word_read(&rows[index].key[at]);
		row->at[at].buckets = read_buckets(&rows[index].at[at].buckets);
	}
	if (where == RL_AT_ROWS6)
		*address = ((const struct rl_row_address *)table->addresses.base)[index];
	return 0;
}

unsigned int rl_source_bits(const struct rl_limit *limit, __u8 family)
{
	return limit->bits[family == 6];
}

int rl_sources_own(const struct rl_sources *sources, const struct rl_limit *limit, struct rl_source *out,
		   bool *found, struct rl_error *err)
{
	__u64 place = RL_PLACE_OWN | limit->slot;
	struct rl_pendings_reading reading = rl_pendings_begin(&sources->pending, place);

	do {
		if (bpf_map_lookup_elem(sources->state->map[RL_MAP_OWN], &limit->slot, out))
			return rl_state_read_failed(err, RL_MAP_OWN, errno);
		rl_pendings_add(&sources->pending, place, limit->id, &out->tally);
	} while (rl_pendings_again(&sources->pending, &reading));
	/* What was another limit's is none of this one's. */
	*found = out->key == limit->id;
	return 0;
}

static int own_find(const struct rl_sources *sources, const struct rl_limit *limit,
		    struct rl_source_place *out, bool *found, struct rl_error *err)
{
	struct rl_source source;
	int rc = rl_sources_own(sources, limit, &source, found, err);

	if (rc || !*found)
		return rc;
	out->buckets = source.buckets;
	out->tally = source.tally;
	return 0;
}

static int lru_find(const struct rl_state *state, const struct rl_source_key *key,
		    struct rl_source_place *out, bool *found, struct rl_error *err)
{
	struct rl_source value;

	*found = bpf_map_lookup_elem(state->map[RL_MAP_SOURCES], key, &value) == 0;
	if (!*found && errno != ENOENT)
		return rl_state_read_failed(err, RL_MAP_SOURCES, errno);
	if (*found)
		*out = place_of(key, &value);
	return 0;
}

int rl_sources_find(struct rl_sources *sources, const struct rl_limit *limit, const struct rl_prefix *source,
		    struct rl_source_place *out, bool *found, struct rl_error *err)
{
	struct rl_prefix cut =
	    rl_prefix_cut(source->family, source->addr, rl_source_bits(limit, source->family));
	struct rl_source_key key = {.limit_id = limit->id, .family = source->family};
	const struct rl_source_table *table;
	int rc;

	memcpy(key.addr, cut.addr, sizeof(key.addr));
	*out = place_of(&key, &(const struct rl_source){});
	if (limit->flags & RL_LIMIT_OWN_BUCKET)
		return own_find(sources, limit, out, found, err);
	if (sources->meta.store == RL_STORE_LRU)
		return lru_find(sources->state, &key, out, found, err);
	rc = table_get(sources, &table, err);
	if (!rc)
		*found = table_find(sources, (enum rl_level)limit->level, &key, out);
	return rc;
}
