// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/limit.h"
#include "../../user/policy.h"
#include "../../user/prefix.h"
#include "../../user/ranges.h"
#include "../../user/reset.h"
#include "../../user/sources.h"
#include "rl_path.skel.h"

#define DEVICE_FIRST 5	   /* slot of the first device; not 0, so that a forgotten slot shows */
#define FIRST_ID     101   /* likewise */
#define REGIONS	     64	   /* 16384 rows: more than an episode needs, so that nobody is evicted */
#define LRU_PLACES   65536 /* as above; the kernel evicts some before all are taken */
#define CPUS_MAX     256
#define COUNTED	     8192 /* slots whose counters there are; an episode makes fewer limits */

static struct {
	enum rl_store store;
	struct rl_path
	    *skel[MODEL_DEVICES]; /* a program a device, as attach loads them; the maps are the first one's */
	struct rl_state state;
	struct rl_sources sources; /* mapped as long as the state is there */
	struct rl_device_count seen[MODEL_DEVICES];
	struct rl_limit general; /* the last one looked for; id 0: none, or there was a change since */
	int cpus;
} kernel;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(2);
}

/* As user/loader.c sizes them, but for what only takes the kernel time to make. */
static void size_maps(struct rl_path *skel)
{
	struct bpf_map *const rows[] = {skel->maps.rl_rows, skel->maps.rl_address6, skel->maps.rl_kept};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		bpf_map__set_max_entries(rows[i], REGIONS * RL_REGION_ROWS);
	bpf_map__set_max_entries(skel->maps.rl_ranges, rl_ranges_blocks(COUNTED));
	bpf_map__set_max_entries(skel->maps.rl_locks, REGIONS + RL_GROUP_REGIONS);
	bpf_map__set_max_entries(skel->maps.rl_limit_count, COUNTED);
	bpf_map__set_max_entries(skel->maps.rl_pending, RL_CPU_PENDINGS * (__u32)rl_possible_cpus());
	if (kernel.store == RL_STORE_LRU)
		bpf_map__set_max_entries(skel->maps.rl_sources, LRU_PLACES);
}

/* The first device's maps serve the second device's program too. */
static void share_maps(struct rl_path *skel)
{
	for (int i = 0; i < RL_MAPS; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, rl_map_name((enum rl_map)i));

		if (!map || bpf_map__reuse_fd(map, kernel.state.map[i]))
			fail("can't share the map %s", rl_map_name((enum rl_map)i));
	}
}

static struct rl_path *load(int device)
{
	struct rl_path *skel = rl_path__open();

	if (!skel)
		fail("the skeleton doesn't open");
	skel->rodata->rl_clock_given = true;
	skel->rodata->rl_device_slot = (__u32)(DEVICE_FIRST + device);
	skel->rodata->rl_store_lru = kernel.store == RL_STORE_LRU;
	skel->bss->rl_table.seed[0] = 0x6a09e667f3bcc908;
	skel->bss->rl_table.seed[1] = 0xbb67ae8584caa73b;
	skel->bss->rl_table.regions = REGIONS;
	rl_limit_nd(&skel->bss->rl_nd_limit);
	bpf_program__set_flags(skel->progs.rl_xdp, BPF_F_XDP_HAS_FRAGS);
	size_maps(skel);
	if (device)
		share_maps(skel);
	if (rl_path__load(skel))
		fail("the program doesn't load: %s; it takes root", strerror(errno));
	return skel;
}

static void write_element(enum rl_map map, __u32 key, const void *value)
{
	if (bpf_map_update_elem(kernel.state.map[map], &key, value, BPF_ANY))
		fail("can't write the map %s: %s", rl_map_name(map), strerror(errno));
}

/* What attach writes. */
static void write_state(void)
{
	const struct rl_settings settings = {.when_full = RL_FULL_CLOSED};
	const struct rl_meta meta = {.abi = RL_ABI_VERSION,
				     .next_limit_id = FIRST_ID,
				     .store = kernel.store,
				     .seed = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b},
				     .regions = REGIONS};

	write_element(RL_MAP_META, 0, &meta);
	write_element(RL_MAP_SETTINGS, 0, &settings);
	for (int i = 0; i < MODEL_DEVICES; i++) {
		struct rl_device device = {.flags = RL_DEVICE_ATTACHED};

		strcpy(device.name, ops_device_names[i]);
		write_element(RL_MAP_DEVICES, (__u32)(DEVICE_FIRST + i), &device);
	}
}

static void kernel_open(struct backend *backend)
{
	struct rl_error err = {0};

	(void)backend;
	kernel.state = (struct rl_state)RL_STATE_INIT;
	kernel.cpus = libbpf_num_possible_cpus();
	if (kernel.cpus < 1 || kernel.cpus > CPUS_MAX)
		fail("%d processors; expected 1 to %d", kernel.cpus, CPUS_MAX);
	kernel.skel[0] = load(0);
	for (int i = 0; i < RL_MAPS; i++)
		kernel.state.map[i] =
		    bpf_object__find_map_fd_by_name(kernel.skel[0]->obj, rl_map_name((enum rl_map)i));
	for (int i = 1; i < MODEL_DEVICES; i++)
		kernel.skel[i] = load(i);
	write_state();
	memset(&kernel.sources, 0, sizeof(kernel.sources));
	if (rl_sources_open(&kernel.state, &kernel.sources, &err))
		fail("rl_sources_open: %s", err.text);
	memset(kernel.seen, 0, sizeof(kernel.seen));
	kernel.general.id = 0;
}

static void kernel_close(struct backend *backend)
{
	(void)backend;
	rl_sources_close(&kernel.sources);
	for (int i = MODEL_DEVICES - 1; i >= 0; i--)
		rl_path__destroy(kernel.skel[i]);
}

static void kernel_clock(struct backend *backend, __u64 now)
{
	(void)backend;
	for (int i = 0; i < MODEL_DEVICES; i++)
		*(volatile __u64 *)&kernel.skel[i]->bss->rl_clock_now = now;
}

static void kernel_device_count(struct backend *backend, unsigned int device, struct rl_device_count *out)
{
	static struct rl_device_count per_cpu[CPUS_MAX];
	__u32 slot = DEVICE_FIRST + device;

	(void)backend;
	memset(out, 0, sizeof(*out));
	if (bpf_map_lookup_elem(kernel.state.map[RL_MAP_DEVICE_COUNT], &slot, per_cpu))
		fail("can't read the device's counters: %s", strerror(errno));
	for (int cpu = 0; cpu < kernel.cpus; cpu++) {
		for (int reason = 0; reason < RL_REASONS; reason++) {
			out->by_reason[reason].packets += per_cpu[cpu].by_reason[reason].packets;
			out->by_reason[reason].bytes += per_cpu[cpu].by_reason[reason].bytes;
		}
	}
}

/* The verdict says whether it dropped; why, only the counter that grew. RL_REASONS: not one, or not this verdict's. */
static enum rl_reason reason_given(unsigned int device, __u32 verdict)
{
	struct rl_device_count now;
	enum rl_reason given = RL_REASONS;

	kernel_device_count(NULL, device, &now);
	for (int reason = 0; reason < RL_REASONS; reason++) {
		__u64 grown = now.by_reason[reason].packets - kernel.seen[device].by_reason[reason].packets;

		if (!grown)
			continue;
		if (grown != 1 || given != RL_REASONS)
			return RL_REASONS;
		given = (enum rl_reason)reason;
	}
	kernel.seen[device] = now;
	if (given == RL_REASONS || verdict != (rl_reason_drops(given) ? XDP_DROP : XDP_PASS))
		return RL_REASONS;
	return given;
}

static enum rl_reason kernel_packet(struct backend *backend, unsigned int device, const uint8_t *frame,
				    __u32 len)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = len, .repeat = 1);

	(void)backend;
	if (bpf_prog_test_run_opts(bpf_program__fd(kernel.skel[device]->progs.rl_xdp), &opts))
		fail("the test run fails: %s", strerror(errno));
	return reason_given(device, opts.retval);
}

static int kernel_set(struct backend *backend, const struct rl_target *target, const struct rl_terms *terms,
		      __u64 now)
{
	struct rl_error err = {0};
	int rc = rl_policy_set(&kernel.state, target, terms, now, &err);

	(void)backend;
	kernel.general.id = 0;
	if (rc && err.kind != RL_ERROR_USAGE)
		fail("rl_policy_set: %s", err.text);
	return rc;
}

static int kernel_erase(struct backend *backend, const struct rl_target *target, const struct rl_class *class,
			__u64 now)
{
	struct rl_error err = {0};
	int rc = rl_policy_delete(&kernel.state, target, class, now, &err);

	(void)backend;
	kernel.general.id = 0;
	if (rc && err.kind != RL_ERROR_USAGE)
		fail("rl_policy_delete: %s", err.text);
	return rc;
}

static void kernel_device(struct backend *backend, unsigned int index, bool paused, bool shadow)
{
	__u32 slot = DEVICE_FIRST + index;
	struct rl_device device;

	(void)backend;
	if (bpf_map_lookup_elem(kernel.state.map[RL_MAP_DEVICES], &slot, &device))
		fail("can't read the device: %s", strerror(errno));
	device.flags =
	    RL_DEVICE_ATTACHED | (paused ? RL_DEVICE_PAUSED : 0U) | (shadow ? RL_DEVICE_SHADOW : 0U);
	write_element(RL_MAP_DEVICES, slot, &device);
}

/* The limit's slot; a tenant that is only named has one too. 0: none. */
static __u32 slot_of(const struct rl_target *target, const struct rl_class *class)
{
	struct rl_limit limit;
	__u32 slot;

	if (rl_policy_find(&kernel.state, target, class, &limit))
		return limit.slot;
	if (target->kind == RL_TARGET_TENANT &&
	    !bpf_map_lookup_elem(kernel.state.map[RL_MAP_NAMES], target, &slot))
		return slot;
	return 0;
}

static void zero_element(enum rl_map map, __u32 key)
{
	static const char zero[CPUS_MAX * sizeof(struct rl_device_count)];

	write_element(map, key, zero);
}

/*
 * The devices aren't attached, only said to be, so the command doesn't find them. Nor does it find tenants that nobody
 * names any more, which no other command shows either.
 */
static void kernel_reset(struct backend *backend)
{
	static const char *const tenants[] = {"acme", "bulk", "tiny"};
	struct rl_error err = {0};

	(void)backend;
	if (rl_reset_counters(&kernel.state, NULL, &err))
		fail("rl_reset_counters: %s", err.text);
	for (size_t i = 0; i < sizeof(tenants) / sizeof(tenants[0]); i++) {
		struct rl_target target = {.kind = RL_TARGET_TENANT};
		__u32 slot;

		strcpy(target.name, tenants[i]);
		slot = slot_of(&target, NULL);
		if (slot)
			zero_element(RL_MAP_LIMIT_COUNT, slot);
	}
	for (__u32 i = 0; i < MODEL_DEVICES; i++)
		zero_element(RL_MAP_DEVICE_COUNT, DEVICE_FIRST + i);
	memset(kernel.seen, 0, sizeof(kernel.seen));
}

static void kernel_limit_count(struct backend *backend, const struct rl_target *target,
			       const struct rl_class *class, struct rl_limit_count *out)
{
	static struct rl_limit_count per_cpu[CPUS_MAX];
	__u32 slot = slot_of(target, class);

	(void)backend;
	memset(out, 0, sizeof(*out));
	if (!slot)
		return;
	if (bpf_map_lookup_elem(kernel.state.map[RL_MAP_LIMIT_COUNT], &slot, per_cpu))
		fail("can't read the counters of slot %u: %s", slot, strerror(errno));
	for (int cpu = 0; cpu < kernel.cpus; cpu++) {
		out->passed.packets += per_cpu[cpu].passed.packets;
		out->passed.bytes += per_cpu[cpu].passed.bytes;
		out->dropped.packets += per_cpu[cpu].dropped.packets;
		out->dropped.bytes += per_cpu[cpu].dropped.bytes;
		out->shadow.packets += per_cpu[cpu].shadow.packets;
		out->shadow.bytes += per_cpu[cpu].shadow.bytes;
	}
}

/* Do packets of this limit still ask for a bucket of this very name? */
static bool is_asked_for(const struct rl_limit *limit, const struct rl_prefix *source)
{
	struct rl_prefix cut =
	    rl_prefix_cut(source->family, source->addr, rl_source_bits(limit, source->family));

	return !(limit->flags & RL_LIMIT_OWN_BUCKET) && !memcmp(cut.addr, source->addr, sizeof(cut.addr));
}

/* The target's general limit, which is asked for once for each of its sources; NULL: none. */
static const struct rl_limit *general_of(const struct rl_target *target)
{
	struct rl_limit *general = &kernel.general;

	if (general->id && !memcmp(&general->target, target, sizeof(*target)))
		return general;
	general->id = 0;
	return rl_policy_find(&kernel.state, target, NULL, general) ? general : NULL;
}

static bool own_tally(const struct rl_limit *limit, struct rl_tally *out)
{
	struct rl_error err = {0};
	struct rl_source own;
	bool found;

	if (rl_sources_own(&kernel.sources, limit, &own, &found, &err))
		fail("rl_sources_own: %s", err.text);
	*out = own.tally;
	return true;
}

static bool kernel_tally(struct backend *backend, const struct rl_target *target,
			 const struct rl_prefix *source, struct rl_tally *out)
{
	const struct rl_limit *limit = general_of(target);
	struct rl_source_place place;
	struct rl_error err = {0};
	bool found;

	(void)backend;
	if (!limit)
		return true;
	if (!source)
		return own_tally(limit, out);
	if (!is_asked_for(limit, source))
		return false;
	if (rl_sources_find(&kernel.sources, limit, source, &place, &found, &err))
		fail("rl_sources_find: %s", err.text);
	if (found)
		*out = place.tally;
	return true;
}

struct backend bpf_backend(enum rl_store store)
{
	kernel.store = store;
	return (struct backend){
	    .name = store == RL_STORE_TABLE ? "program in the kernel, over the table"
					    : "program in the kernel, over the LRU map",
	    .open = kernel_open,
	    .close = kernel_close,
	    .clock = kernel_clock,
	    .packet = kernel_packet,
	    .set = kernel_set,
	    .erase = kernel_erase,
	    .device = kernel_device,
	    .reset = kernel_reset,
	    .limit_count = kernel_limit_count,
	    .device_count = kernel_device_count,
	    .tally = kernel_tally,
	};
}
