// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "native_maps.h"

#include <string.h>
#include <sys/mman.h>

#include "../../user/limit.h"

struct native native;
__u64 native_clock_now;

/* --- what the packet path asks its includer for --- */

static inline const struct rl_limit *rl_limit_at(__u32 cell)
{
	return cell ? &native.limit[cell] : NULL;
}

static inline __u32 rl_cell_of(__u32 epoch, __u32 slot)
{
	(void)epoch;
	return slot;
}

static inline const struct rl_settings *rl_settings_at(void)
{
	return &native.settings;
}

static inline const struct rl_table *rl_table_at(void)
{
	return &native.table;
}

static inline struct rl_source *rl_own_at(__u32 slot)
{
	return &native.own[slot];
}

static inline struct rl_slice *rl_slice_at(__u32 slot)
{
	return &native.slice[slot & (RL_SLICES - 1)];
}

static inline struct rl_pending *rl_pending_at(__u32 index)
{
	return &native.pending[index];
}

static inline struct rl_row *rl_row_at(__u32 where, __u32 index)
{
	if (where == RL_AT_GROUPS)
		return &native.groups[index];
	return &native.rows[index];
}

static inline struct rl_row_address *rl_row_address_at(__u32 index)
{
	return &native.address[index];
}

static inline struct rl_kept *rl_kept_at(__u32 index)
{
	return &native.kept[index];
}

static inline __u32 *rl_lock_at(__u32 index)
{
	return &native.lock[index];
}

static inline struct rl_limit_count *rl_limit_count_at(__u32 slot)
{
	return &native.limit_count[slot];
}

static inline struct rl_device_count *rl_device_count_at(__u32 device)
{
	return &native.device_count[device];
}

static inline const struct rl_device *rl_device_at(__u32 device)
{
	return &native.device[device];
}

static inline struct rl_source *rl_nd_at(__u32 device)
{
	return &native.nd[device];
}

static inline const struct rl_limit *rl_nd_budget(void)
{
	return &native.nd_budget;
}

static inline __u32 rl_slot_of(const struct rl_packet *packet)
{
	return native_classify(packet->family, packet->src);
}

static inline int rl_lru_used(void)
{
	return native.store == RL_STORE_LRU;
}

/* The source's place, or the free one where it belongs. */
static struct native_lru *lru_place(const struct rl_source_key *key)
{
	__u64 hash = rl_table_number(&native.table, 6, key->addr) ^ rl_mix(key->limit_id);

	for (__u32 i = 0; i < LRU_PLACES; i++) {
		struct native_lru *place = &native.lru[(hash + i) % LRU_PLACES];

		if (!place->used || !memcmp(&place->key, key, sizeof(*key)))
			return place;
	}
	return NULL;
}

static inline struct rl_source *rl_lru_find(const struct rl_source_key *key)
{
	struct native_lru *place = lru_place(key);

	return place && place->used ? &place->source : NULL;
}

static inline int rl_lru_make(const struct rl_source_key *key, const struct rl_source *fresh)
{
	struct native_lru *place = lru_place(key);

	if (!place || place->used)
		return 0;
	*place = (struct native_lru){.used = true, .key = *key, .source = *fresh};
	return 1;
}

#include "../../bpf/rl_sources.h"

static inline struct rl_source *rl_lru_at(const struct rl_job *job, const struct rl_limit *limit)
{
	struct rl_source_key key = rl_source_key(job, limit);

	return rl_lru_find(&key);
}

#include "../../bpf/rl_admit.h"

/* --- the backend --- */

static void native_open(struct backend *backend)
{
	enum native_fault fault = native.fault;
	enum rl_store store = native.store;

	(void)backend;
	/* All zero again. It is large, and an episode touches little of it. */
	if (madvise(&native, sizeof(native), MADV_DONTNEED))
		memset(&native, 0, sizeof(native));
	native.slots = 1;
	native.fault = fault;
	native.store = store;
	native.table =
	    (struct rl_table){.seed = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b}, .regions = REGIONS};
	rl_limit_nd(&native.nd_budget);
	for (int i = 0; i < MODEL_DEVICES; i++) {
		struct rl_device *device = &native.device[DEVICE_FIRST + i];

		device->flags = RL_DEVICE_ATTACHED;
		strcpy(device->name, ops_device_names[i]);
	}
}

static void native_close(struct backend *backend)
{
	(void)backend;
}

static void native_clock(struct backend *backend, __u64 now)
{
	(void)backend;
	native_clock_now = now;
}

static enum rl_reason native_packet(struct backend *backend, unsigned int device, const uint8_t *frame,
				    __u32 len)
{
	static struct rl_job job;

	(void)backend;
	job.segments = 1;
	job.len = (__u32)len;
	return rl_handle(&job, frame, frame + len, DEVICE_FIRST + device);
}

static void native_device(struct backend *backend, unsigned int device, bool paused, bool shadow)
{
	(void)backend;
	native.device[DEVICE_FIRST + device].flags =
	    RL_DEVICE_ATTACHED | (paused ? RL_DEVICE_PAUSED : 0U) | (shadow ? RL_DEVICE_SHADOW : 0U);
}

static void native_reset(struct backend *backend)
{
	const struct rl_tally none = {0};
	struct rl_row *row;

	(void)backend;
	memset(native.limit_count, 0, sizeof(native.limit_count));
	memset(native.device_count, 0, sizeof(native.device_count));
	memset(native.pending, 0, sizeof(native.pending));
	for (int i = 0; i < ROWS * RL_ROW; i++) {
		row = &native.rows[i / RL_ROW];
		row->at[i % RL_ROW].passed = row->at[i % RL_ROW].dropped = row->shadow[i % RL_ROW] =
		    none.shadow;
	}
	for (int i = 0; i < SLOTS; i++)
		native.own[i].tally = none;
	for (int i = 0; i < LRU_PLACES; i++)
		native.lru[i].source.tally = none;
}

static void native_limit_count(struct backend *backend, const struct rl_target *target,
			       const struct rl_class *class, struct rl_limit_count *out)
{
	(void)backend;
	*out = native.limit_count[native_find(target, class)];
}

static void native_device_count(struct backend *backend, unsigned int device, struct rl_device_count *out)
{
	(void)backend;
	*out = native.device_count[DEVICE_FIRST + device];
}

/* What the source has beside its tally. */
static void add_pending(__u64 place, __u64 key, struct rl_tally *tally)
{
	const struct rl_pending *pending = &native.pending[place & (RL_CPU_PENDINGS - 1)];

	if (pending->place != place || pending->key != key)
		return;
	tally->dropped.packets += pending->dropped.packets;
	tally->dropped.bytes += pending->dropped.bytes;
}

static void table_tally(const struct rl_source_key *key, struct rl_tally *out)
{
	__u64 number = rl_table_number(&native.table, key->family, key->addr);
	__u32 where = key->family == 4 ? RL_AT_ROWS4 : RL_AT_ROWS6, row, place;
	struct rl_rows rows = rl_table_rows(&native.table, native.table.regions, number);
	__u64 whose = rl_table_key(key->limit_id, key->family, number);
	const struct rl_row *at;

	if (!rl_rows_find(where, &rows, whose, key, &row, &place))
		return;
	at = &native.rows[row];
	*out = (struct rl_tally){at->at[place].passed, at->at[place].dropped, at->shadow[place]};
	add_pending(rl_place_number(row, place), whose, out);
}

static bool native_tally(struct backend *backend, const struct rl_target *target,
			 const struct rl_prefix *source, struct rl_tally *out)
{
	__u32 slot = native_find(target, NULL);
	struct rl_source_key key = {.limit_id = native.limit[slot].id};

	(void)backend;
	if (!source) {
		*out = native.own[slot].tally;
		add_pending(RL_PLACE_OWN | slot, key.limit_id, out);
		return true;
	}
	key.family = source->family;
	memcpy(key.addr, source->addr, sizeof(key.addr));
	if (native.store == RL_STORE_TABLE)
		table_tally(&key, out);
	else if (rl_lru_find(&key))
		*out = rl_lru_find(&key)->tally;
	return true;
}

struct backend native_backend(enum rl_store store, enum native_fault fault)
{
	native.store = store;
	native.fault = fault;
	return (struct backend){
	    .name =
		store == RL_STORE_TABLE ? "native program over the table" : "native program over the LRU map",
	    .open = native_open,
	    .close = native_close,
	    .clock = native_clock,
	    .packet = native_packet,
	    .set = native_set,
	    .erase = native_erase,
	    .device = native_device,
	    .reset = native_reset,
	    .limit_count = native_limit_count,
	    .device_count = native_device_count,
	    .tally = native_tally,
	};
}
