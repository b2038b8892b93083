// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "snapshot.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "cleanup.h"
#include "clock.h"
#include "prefix.h"

#define SLOTS_CHUNK 4096 /* slots of one batch read; each holds a value per possible CPU */

/* Where a slot's or an id's limit stands in the snapshot. */
struct limit_ref {
	__u32 id;
	__u32 limit;
};

struct limit_index {
	struct limit_ref *by_id; /* sorted, one a limit */
	__u32 *by_slot;		 /* index + 1, 0 for a slot that no limit owns */
	__u32 slots;		 /* one more than the highest slot in use */
};

static int out_of_memory(struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading the maps");
}

static void limit_index_free(struct limit_index *index)
{
	free(index->by_id);
	free(index->by_slot);
}

static int compare_ids(const void *a, const void *b)
{
	__u32 x = ((const struct limit_ref *)a)->id, y = ((const struct limit_ref *)b)->id;

	return (x > y) - (x < y);
}

static int limit_index_build(const struct rl_snapshot *snapshot, struct limit_index *out,
			     struct rl_error *err)
{
	const struct rl_limit_stats *limits = snapshot->limits;

	for (size_t i = 0; i < snapshot->limit_count; i++)
		if (limits[i].limit.slot < RL_MOST_LIMITS && limits[i].limit.slot >= out->slots)
			out->slots = limits[i].limit.slot + 1;
	out->by_id = calloc(snapshot->limit_count + 1, sizeof(*out->by_id));
	out->by_slot = calloc(out->slots + 1, sizeof(*out->by_slot));
	if (!out->by_id || !out->by_slot)
		return out_of_memory(err);
	for (__u32 i = 0; i < snapshot->limit_count; i++) {
		out->by_id[i] = (struct limit_ref){.id = limits[i].limit.id, .limit = i};
		if (limits[i].limit.slot < out->slots)
			out->by_slot[limits[i].limit.slot] = i + 1;
	}
	qsort(out->by_id, snapshot->limit_count, sizeof(*out->by_id), compare_ids);
	return 0;
}

static void add_count(struct rl_count *sum, const struct rl_count *count)
{
	sum->packets += count->packets;
	sum->bytes += count->bytes;
}

/* What is done with a limit's value; `cpus` values where the map is per CPU. */
typedef int (*slot_use)(void *context, __u32 limit, const void *value, int cpus);

/* context: struct rl_snapshot */
static int use_limit_count(void *context, __u32 limit, const void *value, int cpus)
{
	struct rl_snapshot *snapshot = context;
	const struct rl_limit_count *counts = value;
	struct rl_limit_count *sum = &snapshot->limits[limit].count;

	for (int cpu = 0; cpu < cpus; cpu++) {
		add_count(&sum->passed, &counts[cpu].passed);
		add_count(&sum->dropped, &counts[cpu].dropped);
		add_count(&sum->shadow, &counts[cpu].shadow);
	}
	return 0;
}

/* What the reading of limits' own buckets fills. */
struct own_reading {
	struct rl_sources *sources;
	struct rl_snapshot *snapshot;
	struct rl_error *err;
};

/* context: struct own_reading. There is room: the caller reserved one source a limit. */
static int use_own(void *context, __u32 limit, const void *value, int cpus)
{
	struct own_reading *reading = context;
	struct rl_snapshot *snapshot = reading->snapshot;
	const struct rl_limit *owner = &snapshot->limits[limit].limit;
	struct rl_source source = *(const struct rl_source *)value;
	bool found = source.key == owner->id;
	int rc = 0;

	(void)cpus;
	if (owner->level != RL_LEVEL_SOURCE || !(owner->flags & RL_LIMIT_OWN_BUCKET) || !found)
		return 0;
	if (rl_pendings_seen(&reading->sources->pending, RL_PLACE_OWN | owner->slot))
		rc = rl_sources_own(reading->sources, owner, &source, &found, reading->err);
	if (rc || !found || !(source.tally.passed.packets | source.tally.dropped.packets))
		return rc;
	snapshot->sources[snapshot->source_count++] = (struct rl_source_stats){
	    .source = owner->target.prefix,
	    .limit = limit,
	    .tally = source.tally,
	    .after = rl_clock_ns() - snapshot->sources_time,
	};
	return 0;
}

/* A map that is indexed by slot. */
struct slotted {
	const struct rl_state *state;
	enum rl_map map;
	size_t size; /* of an element as it is read */
	int cpus;    /* values in it */
};

static int read_slots_one_by_one(const struct slotted *slotted, const struct rl_snapshot *snapshot,
				 slot_use use, void *context, struct rl_error *err)
{
	RL_FREE void *value = malloc(slotted->size);
	int rc = 0;

	if (!value)
		return out_of_memory(err);
	for (__u32 i = 0; i < snapshot->limit_count && !rc; i++) {
		if (bpf_map_lookup_elem(slotted->state->map[slotted->map], &snapshot->limits[i].limit.slot,
					value))
			return rl_state_read_failed(err, slotted->map, errno);
		rc = use(context, i, value, slotted->cpus);
	}
	return rc;
}

static int read_slots_in_batches(const struct slotted *slotted, const struct limit_index *index, slot_use use,
				 void *context, struct rl_error *err)
{
	__u32 chunk = index->slots < SLOTS_CHUNK ? index->slots : SLOTS_CHUNK;
	RL_FREE char *values = malloc(chunk * slotted->size);
	RL_FREE __u32 *keys = malloc(chunk * sizeof(*keys));
	__u32 batch = 0, count;
	int used = 0;

	if (!values || !keys)
		return out_of_memory(err);
	for (__u32 done = 0; done < index->slots && !used; done += count) {
		int rc;

		count = chunk;
		rc = bpf_map_lookup_batch(slotted->state->map[slotted->map], done ? &batch : NULL, &batch,
					  keys, values, &count, NULL);
		if (rc && rc != -ENOENT)
			return rl_state_read_failed(err, slotted->map, -rc);
		for (__u32 i = 0; i < count && !used; i++)
			if (keys[i] < index->slots && index->by_slot[keys[i]])
				used = use(context, index->by_slot[keys[i]] - 1, values + i * slotted->size,
					   slotted->cpus);
		if (rc || !count)
			break;
	}
	return used;
}

/* Hand every limit's value in the map to `use`, until that returns other than 0. */
static int read_slots(const struct slotted *slotted, const struct limit_index *index,
		      const struct rl_snapshot *snapshot, slot_use use, void *context, struct rl_error *err)
{
	/* A system call costs about as much as copying eight slots in a batch. */
	if (index->slots / 8 <= snapshot->limit_count && index->slots > 8)
		return read_slots_in_batches(slotted, index, use, context, err);
	return read_slots_one_by_one(slotted, snapshot, use, context, err);
}

static int reserve_sources(struct rl_snapshot *snapshot, size_t more, size_t *room, struct rl_error *err)
{
	size_t need = snapshot->source_count + more;
	size_t grown = need > 2 * *room ? need : 2 * *room;
	void *bigger;

	if (need <= *room && snapshot->sources)
		return 0;
	bigger = realloc(snapshot->sources, (grown ? grown : 1) * sizeof(*snapshot->sources));
	if (!bigger)
		return out_of_memory(err);
	snapshot->sources = bigger;
	*room = grown;
	return 0;
}

/* What the reading of sources fills, and by what it finds their limits. */
struct reading {
	struct rl_snapshot *snapshot;
	const struct limit_index *index;
	const struct limit_ref *last; /* of the source before: often the next one's too */
	size_t room;
	struct rl_error *err;
};

/* Classes' buckets aren't sources of their own: what became of their packets is in the general limit's. */
static int add_source(void *context, const struct rl_source_place *place)
{
	struct reading *reading = context;
	struct rl_snapshot *snapshot = reading->snapshot;
	struct limit_ref wanted = {.id = place->limit_id};
	const struct rl_limit *limit;

	if (!reading->last || reading->last->id != wanted.id)
		reading->last = bsearch(&wanted, reading->index->by_id, snapshot->limit_count, sizeof(wanted),
					compare_ids);
	if (!reading->last)
		return 0;
	limit = &snapshot->limits[reading->last->limit].limit;
	if (limit->level != RL_LEVEL_SOURCE)
		return 0;
	if (reserve_sources(snapshot, 1, &reading->room, reading->err))
		return -ENOMEM;
	snapshot->sources[snapshot->source_count++] = (struct rl_source_stats){
	    .source = rl_prefix_cut(place->family, place->addr, rl_source_bits(limit, place->family)),
	    .limit = reading->last->limit,
	    .tally = place->tally,
	    .after = place->time - snapshot->sources_time,
	};
	return 0;
}

/* Sorting moves these instead of the sources, and mostly needs to look no further than the key. */
struct sort_item {
	__u64 key; /* orders as rl_prefix_compare() does, where it differs */
	const struct rl_source_stats *source;
};

static __u64 sort_key(const struct rl_prefix *source)
{
	__u64 first;

	memcpy(&first, source->addr, sizeof(first));
	first = be64toh(first) >> 1;
	return source->family == 6 ? first | 1ULL << 63 : first;
}

static int compare_items(const void *a, const void *b)
{
	const struct sort_item *x = a, *y = b;
	int order;

	if (x->key != y->key)
		return x->key > y->key ? 1 : -1;
	order = rl_prefix_compare(&x->source->source, &y->source->source);
	return order ? order : (x->source->limit > y->source->limit) - (x->source->limit < y->source->limit);
}

/* By source, then by limit. */
static int sort_sources(struct rl_snapshot *snapshot, struct rl_error *err)
{
	RL_FREE struct sort_item *items = malloc((snapshot->source_count + 1) * sizeof(*items));
	RL_FREE struct rl_source_stats *sorted = malloc((snapshot->source_count + 1) * sizeof(*sorted));

	if (!items || !sorted)
		return out_of_memory(err);
	for (size_t i = 0; i < snapshot->source_count; i++) {
		items[i].key = sort_key(&snapshot->sources[i].source);
		items[i].source = &snapshot->sources[i];
	}
	qsort(items, snapshot->source_count, sizeof(*items), compare_items);
	for (size_t i = 0; i < snapshot->source_count; i++)
		sorted[i] = *items[i].source;
	free(snapshot->sources);
	snapshot->sources = RL_TAKE_PTR(sorted);
	return 0;
}

static int read_sources(struct rl_sources *sources, const struct limit_index *index,
			struct rl_snapshot *snapshot, struct rl_error *err)
{
	const struct slotted slotted = {sources->state, RL_MAP_OWN, sizeof(struct rl_source), 1};
	struct own_reading own = {.sources = sources, .snapshot = snapshot, .err = err};
	struct reading reading = {.snapshot = snapshot, .index = index, .err = err};
	int rc = reserve_sources(snapshot, snapshot->limit_count, &reading.room, err);
	snapshot->sources_time = rl_clock_ns();
	rl_pendings_look(&sources->pending);
	if (!rc)
		rc = read_slots(&slotted, index, snapshot, use_own, &own, err);
	if (!rc)
		rc = rl_sources_read(sources, add_source, &reading, err);
	return rc ? rc : sort_sources(snapshot, err);
}

static int read_limits(const struct rl_state *state, struct rl_snapshot *snapshot, struct rl_error *err)
{
	RL_FREE struct rl_limit *limits = NULL;
	size_t count = 0;
	int rc = rl_policy_read(state, &limits, &count, err);

	if (rc)
		return rc;
	snapshot->limits = calloc(count + 1, sizeof(*snapshot->limits));
	if (!snapshot->limits)
		return out_of_memory(err);
	for (size_t i = 0; i < count; i++)
		snapshot->limits[i].limit = limits[i];
	snapshot->limit_count = count;
	rl_tenants_inherit(snapshot->limits, count);
	return 0;
}

/* The counters and the sources of the limits read before. */
static int read_slotted(struct rl_sources *sources, unsigned int parts, struct rl_snapshot *snapshot,
			struct rl_error *err)
{
	const int cpus = rl_possible_cpus();
	const struct slotted slotted = {sources->state, RL_MAP_LIMIT_COUNT,
					sizeof(struct rl_limit_count) * (size_t)cpus, cpus};
	__attribute__((cleanup(limit_index_free))) struct limit_index index = {};
	int rc = limit_index_build(snapshot, &index, err);

	if (!rc && (parts & RL_SNAPSHOT_COUNTS))
		rc = read_slots(&slotted, &index, snapshot, use_limit_count, snapshot, err);
	if (!rc && (parts & RL_SNAPSHOT_SOURCES))
		rc = read_sources(sources, &index, snapshot, err);
	return rc;
}

static int read_device_count(const struct rl_state *state, int cpus, struct rl_device_count *by_cpu,
			     struct rl_device_stats *device, struct rl_error *err)
{
	int rc = bpf_map_lookup_elem(state->map[RL_MAP_DEVICE_COUNT], &device->attached.slot, by_cpu);

	if (rc)
		return rl_state_read_failed(err, RL_MAP_DEVICE_COUNT, -rc);
	for (int cpu = 0; cpu < cpus; cpu++)
		for (int reason = 0; reason < RL_REASONS; reason++)
			add_count(&device->count.by_reason[reason], &by_cpu[cpu].by_reason[reason]);
	return 0;
}

static int read_devices(const struct rl_state *state, struct rl_snapshot *snapshot, struct rl_error *err)
{
	RL_FREE struct rl_attached *attached = calloc(RL_MAX_DEVICES, sizeof(*attached));
	RL_FREE struct rl_device_count *by_cpu = NULL;
	struct rl_error ignored;
	size_t count = 0;
	__u64 cookie;
	bool own;
	int rc, cpus = rl_possible_cpus();

	if (!attached)
		return out_of_memory(err);
	own = rl_state_cookie(&cookie, &ignored) == 0 && cookie == state->cookie;
	rc = rl_state_attached(state, own, attached, &count, err);
	if (rc)
		return rc;
	snapshot->devices = calloc(count + 1, sizeof(*snapshot->devices));
	by_cpu = calloc((size_t)cpus, sizeof(*by_cpu));
	if (!snapshot->devices || !by_cpu)
		return out_of_memory(err);
	for (; snapshot->device_count < count && !rc; snapshot->device_count++) {
		struct rl_device_stats *device = &snapshot->devices[snapshot->device_count];

		device->attached = attached[snapshot->device_count];
		rc = read_device_count(state, cpus, by_cpu, device, err);
	}
	return rc;
}

static int read_only_element(const struct rl_state *state, enum rl_map map, void *out, struct rl_error *err)
{
	const __u32 only = 0;
	int rc = bpf_map_lookup_elem(state->map[map], &only, out);

	return rc ? rl_state_read_failed(err, map, -rc) : 0;
}

int rl_snapshot_take_from(struct rl_sources *sources, unsigned int parts, struct rl_snapshot *out,
			  struct rl_error *err)
{
	RL_SNAPSHOT struct rl_snapshot snapshot = {.time = rl_clock_ns()};
	const struct rl_state *state = sources->state;
	int rc = read_only_element(state, RL_MAP_META, &snapshot.meta, err);

	if (!rc)
		rc = read_only_element(state, RL_MAP_SETTINGS, &snapshot.settings, err);
	if (!rc && (parts & RL_SNAPSHOT_DEVICES))
		rc = read_devices(state, &snapshot, err);
	if (!rc && (parts & RL_SNAPSHOT_LIMITS))
		rc = read_limits(state, &snapshot, err);
	if (!rc && (parts & (RL_SNAPSHOT_COUNTS | RL_SNAPSHOT_SOURCES)))
		rc = read_slotted(sources, parts, &snapshot, err);
	if (rc)
		return rc;
	*out = snapshot;
	snapshot = (struct rl_snapshot){};
	return 0;
}

int rl_snapshot_take(const struct rl_state *state, unsigned int parts, struct rl_snapshot *out,
		     struct rl_error *err)
{
	RL_SOURCES struct rl_sources sources = {};
	int rc = rl_sources_open(state, &sources, err);

	return rc ? rc : rl_snapshot_take_from(&sources, parts, out, err);
}

void rl_snapshot_free(struct rl_snapshot *snapshot)
{
	free(snapshot->devices);
	free(snapshot->limits);
	free(snapshot->sources);
	*snapshot = (struct rl_snapshot){};
}

static struct rl_count sum_reasons(const struct rl_device_count *count, int first, int end)
{
	struct rl_count sum = {};

	for (int reason = first; reason < end; reason++)
		add_count(&sum, &count->by_reason[reason]);
	return sum;
}

struct rl_count rl_device_passed(const struct rl_device_count *count)
{
	return sum_reasons(count, 0, RL_DROP_FIRST);
}

struct rl_count rl_device_dropped(const struct rl_device_count *count)
{
	return sum_reasons(count, RL_DROP_FIRST, RL_REASONS);
}

struct rl_count rl_device_shadow(const struct rl_device_count *count)
{
	return sum_reasons(count, RL_SHADOW_FIRST, RL_DROP_FIRST);
}

const struct rl_limit_stats *rl_snapshot_slot(const struct rl_snapshot *snapshot, __u32 slot)
{
	for (size_t i = 0; slot && i < snapshot->limit_count; i++)
		if (snapshot->limits[i].limit.slot == slot)
			return &snapshot->limits[i];
	return NULL;
}

/* Both are positional, so that a reason without a description doesn't compile. */
static const struct {
	const char *name;
	const char *about;
} reasons[] = {
    [RL_PASS_NO_LIMIT] = {"no_limit", "no limit applies to it"},
    [RL_PASS_LIMIT] = {"within_limit", "within every limit that applies, and charged to each"},
    [RL_PASS_ALLOWED] = {"allowed", "its source is allowed: never limited"},
    [RL_PASS_NOT_IP] = {"not_ip", "ARP, LLDP, anything that is neither IPv4 nor IPv6"},
    [RL_PASS_ND] = {"neighbour_discovery", "IPv6 neighbour discovery, within 1000 packets a second a device"},
    [RL_PASS_PAUSED] = {"paused", "the device is paused"},
    [RL_PASS_UNPARSED] = {"unparsed", "no source address to be read: truncated, or more than two VLAN tags"},
    [RL_PASS_MALFORMED] = {"malformed",
			   "its header contradicts itself; within its source's limits all the same"},
    [RL_PASS_AGGREGATE] = {"aggregated", "no room for its source: within the limit, held by its /24 or /48"},
    [RL_PASS_OPEN] = {"table_full_open", "no room for its source: --when-full open"},
    [RL_PASS_ERROR] = {"internal_error", "a failure inside: it drops nothing"},
    [RL_SHADOW_SOURCE] = {"shadow_source_limit", "over its source's limit"},
    [RL_SHADOW_CLASS] = {"shadow_class_limit", "over the limit of one of its classes"},
    [RL_SHADOW_TENANT] = {"shadow_tenant_limit", "over its tenant's limit"},
    [RL_SHADOW_DEVICE] = {"shadow_device_limit", "over its device's limit"},
    [RL_SHADOW_NEW] = {"shadow_new_source", "its source is new, and more are than `new` grants"},
    [RL_SHADOW_AGGREGATE] = {"shadow_aggregate_limit",
			     "no room for its source, and its /24 or /48 is over the limit"},
    [RL_SHADOW_FULL] = {"shadow_table_full",
			"no room for its source: --when-full closed, or none for its /24 or /48 either"},
    [RL_SHADOW_DENIED] = {"shadow_denied", "its source is denied"},
    [RL_SHADOW_CONTENDED] = {"shadow_contended",
			     "too many CPUs at one bucket: dropped rather than let too much pass"},
    [RL_DROP_SOURCE] = {"source_limit", "over its source's limit"},
    [RL_DROP_CLASS] = {"class_limit", "over the limit of one of its classes"},
    [RL_DROP_TENANT] = {"tenant_limit", "over its tenant's limit"},
    [RL_DROP_DEVICE] = {"device_limit", "over its device's limit"},
    [RL_DROP_NEW] = {"new_source", "its source is new, and more are than `new` grants"},
    [RL_DROP_AGGREGATE] = {"aggregate_limit", "no room for its source, and its /24 or /48 is over the limit"},
    [RL_DROP_FULL] = {"table_full",
		      "no room for its source: --when-full closed, or none for its /24 or /48 either"},
    [RL_DROP_DENIED] = {"denied", "its source is denied"},
    [RL_DROP_CONTENDED] = {"contended", "too many CPUs at one bucket: dropped rather than let too much pass"},
};
_Static_assert(sizeof(reasons) / sizeof(reasons[0]) == RL_REASONS, "each reason has a name");

const char *rl_reason_name(enum rl_reason reason)
{
	return reason < RL_REASONS ? reasons[reason].name : "unknown";
}

const char *rl_reason_about(enum rl_reason reason)
{
	return reason < RL_REASONS ? reasons[reason].about : "unknown";
}

const char *rl_mode_name(enum rl_mode mode)
{
	static const char *const names[] = {
	    [RL_MODE_NATIVE] = "native", [RL_MODE_GENERIC] = "generic", [RL_MODE_TC] = "tc"};

	_Static_assert(sizeof(names) / sizeof(names[0]) == RL_MODES, "each mode has a name");
	return mode < RL_MODES ? names[mode] : "unknown";
}

const char *rl_store_name(enum rl_store store)
{
	static const char *const names[] = {[RL_STORE_TABLE] = "table", [RL_STORE_LRU] = "lru"};

	_Static_assert(sizeof(names) / sizeof(names[0]) == RL_STORES, "each store has a name");
	return store < RL_STORES ? names[store] : "unknown";
}

const char *rl_when_full_name(enum rl_when_full policy)
{
	static const char *const names[] = {
	    [RL_FULL_AGGREGATE] = "aggregate", [RL_FULL_OPEN] = "open", [RL_FULL_CLOSED] = "closed"};

	_Static_assert(sizeof(names) / sizeof(names[0]) == RL_FULLS, "each way has a name");
	return policy < RL_FULLS ? names[policy] : "unknown";
}

void rl_tenants_inherit(struct rl_limit_stats *limits, size_t count)
{
	/* The prefixes around the present one, widest first: each is longer than the one before it, so they
	 * fit. */
	const struct rl_limit_stats *around[RL_PREFIX_MAX_BITS + 1];
	size_t depth = 0;

	for (size_t i = 0; i < count && limits[i].limit.target.kind == RL_TARGET_PREFIX; i++) {
		struct rl_limit_stats *limit = &limits[i];
		const struct rl_prefix *prefix = &limit->limit.target.prefix;
		const char *tenant = limit->limit.terms.tenant;

		while (depth && !rl_prefix_covers(&around[depth - 1]->limit.target.prefix, prefix))
			depth--;
		if (!tenant[0] && depth)
			tenant = around[depth - 1]->tenant;
		memcpy(limit->tenant, tenant, sizeof(limit->tenant));
		limit->tenant[sizeof(limit->tenant) - 1] = '\0';
		/* A class stands behind its target, which is as wide. */
		if (limit->limit.level != RL_LEVEL_CLASS && depth < sizeof(around) / sizeof(around[0]))
			around[depth++] = limit;
	}
}
