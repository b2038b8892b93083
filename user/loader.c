// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>

#include "attached.h"
#include "cleanup.h"
#include "device.h"
#include "hook.h"
#include "clock.h"
#include "limit.h"
#include "policy.h"
#include "ranges.h"
#include "reserve.h"

#include "rl_path.skel.h"

#define RL_PROGRAM_NAME "rl_xdp" /* as it is called in bpf/rl_path.bpf.c */

#define REGION_PLACES ((__u64)RL_ROW * RL_REGION_ROWS)

struct rl_program {
	struct rl_path *skel;
	struct rl_load_options options;
};

/* Of the one that its mode asks for. */
static int program_fd(const struct rl_program *program)
{
	return bpf_program__fd(program->options.mode == RL_MODE_TC ? program->skel->progs.rl_tc
								   : program->skel->progs.rl_xdp);
}

/*
 * libbpf tells the verifier's and the drivers' reasons in its log alone. A driver's words are kept for the
 * error text; the rest is for `attach --verbose`.
 */
static struct {
	bool verbose;
	char driver[256];
} libbpf_log;

static int on_libbpf_print(enum libbpf_print_level level, const char *format, va_list args)
{
	static const char mark[] = "Kernel error message: ";
	char line[512];
	const char *words;
	va_list whole;

	if (level == LIBBPF_DEBUG)
		return 0;
	va_copy(whole, args); /* the verifier's log comes in one call, far longer than a line */
	vsnprintf(line, sizeof(line), format, args);
	words = strstr(line, mark);
	if (words) {
		snprintf(libbpf_log.driver, sizeof(libbpf_log.driver), "%s", words + strlen(mark));
		libbpf_log.driver[strcspn(libbpf_log.driver, "\n")] = '\0';
	}
	if (libbpf_log.verbose)
		vfprintf(stderr, format, whole);
	va_end(whole);
	return 0;
}

void rl_loader_log(bool verbose)
{
	libbpf_set_print(on_libbpf_print);
	libbpf_log.verbose = verbose;
}

void rl_program_free(struct rl_program **program)
{
	if (*program)
		rl_path__destroy((*program)->skel);
	free(*program);
	*program = NULL;
}

int rl_load_options_new(enum rl_store store, __u32 max_sources, __u32 max_limits, struct rl_load_options *out,
			struct rl_error *err)
{
	struct rl_load_options options = {
	    .frags = true, .store = store, .max_sources = max_sources, .max_limits = max_limits};

	if (getrandom(options.seed, sizeof(options.seed), 0) != sizeof(options.seed))
		return rl_error_set(err, RL_ERROR_KERNEL, EIO, "the kernel gave no random numbers: %s",
				    strerror(errno));
	*out = options;
	return 0;
}

int rl_load_options_kept(const struct rl_state *state, struct rl_load_options *out, struct rl_error *err)
{
	struct rl_meta meta;
	int rc = rl_state_meta(state, &meta, err);

	if (rc)
		return rc;
	*out = (struct rl_load_options){
	    .frags = true,
	    .store = (enum rl_store)meta.store,
	    .max_sources = (__u32)meta.max_sources,
	    .seed = {meta.seed[0], meta.seed[1]},
	    .regions = meta.regions,
	    .max_limits = meta.max_limits,
	};
	return 0;
}

/* 1.6 places for each source, so that a row that is full is an exception (rl_table.h). At least one region. */
static __u32 regions_of(const struct rl_load_options *options)
{
	__u64 places = (options->max_sources * 16ULL + 9) / 10;

	if (options->regions)
		return options->regions;
	if (options->store == RL_STORE_LRU || places <= REGION_PLACES)
		return 1;
	return (__u32)((places + REGION_PLACES - 1) / REGION_PLACES);
}

static __u32 limits_of(const struct rl_load_options *options)
{
	return options->max_limits ? options->max_limits : RL_DEFAULT_LIMITS;
}

/* Those of the policy. */
static int policy_size(struct rl_path *skel, const struct rl_load_options *options)
{
	__u32 limits = limits_of(options), cells = RL_CELLS(limits);
	const struct {
		struct bpf_map *map;
		__u32 entries;
	} sizes[] = {
	    {skel->maps.rl_ranges, rl_ranges_blocks(limits)},
	    {skel->maps.rl_index, 2 * limits},
	    {skel->maps.rl_heads, limits},
	    {skel->maps.rl_limits, cells},
	    {skel->maps.rl_own, limits},
	    {skel->maps.rl_limit_count, limits},
	    {skel->maps.rl_slots, limits},
	    {skel->maps.rl_cells, cells},
	    {skel->maps.rl_names, limits},
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		rc = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);
	return rc;
}

/* One that the store doesn't use keeps its one entry. */
static int sources_size(struct rl_path *skel, const struct rl_load_options *options)
{
	struct bpf_map *const by_row[] = {skel->maps.rl_rows, skel->maps.rl_address6, skel->maps.rl_kept};
	__u32 regions = regions_of(options);
	int rc = bpf_map__set_max_entries(skel->maps.rl_locks, regions + RL_GROUP_REGIONS);

	/* The LRU map's CPUs hold up to 128 free entries each back from the others: more than were asked for, or sources
	 * that fit would be evicted. */
	if (options->store == RL_STORE_LRU)
		return rc ? rc
			  : bpf_map__set_max_entries(skel->maps.rl_sources,
						     options->max_sources + 256 * (__u32)rl_possible_cpus());
	for (size_t i = 0; !rc && i < sizeof(by_row) / sizeof(by_row[0]); i++)
		rc = bpf_map__set_max_entries(by_row[i], regions * RL_REGION_ROWS);
	return rc;
}

static int maps_size(struct rl_path *skel, const struct rl_load_options *options)
{
	int rc = policy_size(skel, options);

	if (!rc)
		rc = bpf_map__set_max_entries(skel->maps.rl_pending,
					      RL_CPU_PENDINGS * (__u32)rl_possible_cpus());
	return rc ? rc : sources_size(skel, options);
}

static void variables_set(struct rl_path *skel, const struct rl_load_options *options)
{
	skel->rodata->rl_device_slot = options->slot;
	skel->rodata->rl_store_lru = options->store == RL_STORE_LRU;
	skel->rodata->rl_slices_shift = rl_slice_shift_of((__u32)rl_possible_cpus());
	memcpy(skel->bss->rl_table.seed, options->seed, sizeof(options->seed));
	skel->bss->rl_table.regions = regions_of(options);
	rl_limit_nd(&skel->bss->rl_nd_limit);
	bpf_program__set_flags(skel->progs.rl_xdp, options->frags ? BPF_F_XDP_HAS_FRAGS : 0);
	bpf_program__set_autoload(skel->progs.rl_xdp, options->mode != RL_MODE_TC);
	bpf_program__set_autoload(skel->progs.rl_tc, options->mode == RL_MODE_TC);
}

int rl_skeleton_prepare(struct rl_path *skel, const struct rl_load_options *options)
{
	variables_set(skel, options);
	return maps_size(skel, options);
}

static int maps_reuse(struct rl_path *skel, const struct rl_state *state)
{
	for (int i = 0; i < RL_MAPS; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, rl_map_name(i));
		int rc = map ? bpf_map__reuse_fd(map, state->map[i]) : -ENOENT;

		if (rc)
			return rc;
	}
	return 0;
}

/* New ones: those that take long here, the others as the program is loaded. */
static int maps_make(struct rl_path *skel, const struct rl_load_options *options)
{
	struct bpf_map *const large[] = {
	    skel->maps.rl_rows,	  skel->maps.rl_address6, skel->maps.rl_limit_count,
	    skel->maps.rl_limits, skel->maps.rl_kept,	  skel->maps.rl_ranges,
	};
	const struct bpf_map *refused;
	int rc = maps_size(skel, options);

	if (rc)
		return rc;
	rc = rl_reserve(large, sizeof(large) / sizeof(large[0]), &refused);
	if (rc && refused && libbpf_log.verbose)
		fprintf(stderr, "rl-agent: the map %s can't be made: %s\n", bpf_map__name(refused),
			strerror(-rc));
	return rc;
}

static int load_error(int rc, const struct rl_load_options *options, bool fresh, struct rl_error *err)
{
	struct utsname name;

	uname(&name);
	if (rc == -ENOMEM && fresh)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, ENOMEM,
		    "the kernel has no memory for a table of %u sources and a policy of %u limits: give a smaller "
		    "--max-sources or --max-limits",
		    options->max_sources, limits_of(options) - 1);
	if (rc == -EPERM)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, EPERM,
		    "the kernel doesn't permit BPF programs here (kernel lockdown, or a user namespace such as a "
		    "container's): attach from the host");
	return rl_error_set(
	    err, RL_ERROR_KERNEL, -rc,
	    "kernel %s refused the packet program: %s; rl-agent needs Linux 6.1 or later: `rl-agent probe` "
	    "tells what is missing, `attach --verbose` what the kernel said",
	    name.release, strerror(-rc));
}

int rl_program_load(const struct rl_state *state, bool fresh, const struct rl_load_options *options,
		    struct rl_program **out, struct rl_error *err)
{
	__attribute__((cleanup(rl_program_free))) struct rl_program *program = calloc(1, sizeof(*program));
	int rc;

	if (!program)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	program->skel = rl_path__open();
	if (!program->skel)
		return load_error(-errno, options, fresh, err);
	program->options = *options;
	variables_set(program->skel, options);
	rc = fresh ? maps_make(program->skel, options) : maps_reuse(program->skel, state);
	if (!rc)
		rc = rl_path__load(program->skel);
	if (rc)
		return load_error(rc, options, fresh, err);
	*out = RL_TAKE_PTR(program);
	return 0;
}

static int map_pin(const struct rl_program *program, const struct rl_state *state, enum rl_map which,
		   struct rl_error *err)
{
	struct bpf_map *map = bpf_object__find_map_by_name(program->skel->obj, rl_map_name(which));
	char path[RL_PATH_LEN];

	if (bpf_obj_pin(bpf_map__fd(map), rl_state_map_path(state, which, path)))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't pin a map as %s: %s", path,
				    strerror(errno));
	return 0;
}

int rl_skeleton_settle(const struct rl_path *skel, const struct rl_load_options *options, __u64 cookie,
		       enum rl_when_full when_full)
{
	const struct rl_settings settings = {.when_full = when_full};
	const struct rl_meta meta = {
	    .abi = RL_ABI_VERSION,
	    .next_limit_id = 1,
	    .max_sources = options->max_sources,
	    .netns_cookie = cookie,
	    .seed = {options->seed[0], options->seed[1]},
	    .store = options->store,
	    .regions = options->store == RL_STORE_TABLE ? regions_of(options) : 0,
	    .max_limits = limits_of(options),
	};
	__u32 only = 0;

	if (bpf_map_update_elem(bpf_map__fd(skel->maps.rl_settings), &only, &settings, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(skel->maps.rl_meta), &only, &meta, BPF_ANY))
		return -errno;
	return 0;
}

int rl_program_pin(const struct rl_program *program, const struct rl_state *state,
		   enum rl_when_full when_full, struct rl_error *err)
{
	int rc = rl_skeleton_settle(program->skel, &program->options, state->cookie, when_full);

	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "can't write the state's settings: %s",
				    strerror(-rc));
	for (int i = 0; !rc && i < RL_MAPS; i++)
		rc = i == RL_MAP_META ? 0 : map_pin(program, state, i, err);
	return rc ? rc : map_pin(program, state, RL_MAP_META, err);
}

static void program_name(__u32 id, char *buf, size_t size)
{
	RL_CLOSE int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) || !info.name[0])
		snprintf(buf, size, "unnamed");
	else
		snprintf(buf, size, "%s", info.name);
}

int rl_device_check_foreign(__u32 ifindex, const char *name, struct rl_error *err)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	char program[BPF_OBJ_NAME_LEN + 1];
	__u32 id;

	if (bpf_xdp_query((int)ifindex, 0, &query))
		return 0; /* attaching will tell */
	id = query.prog_id	 ? query.prog_id
	     : query.drv_prog_id ? query.drv_prog_id
	     : query.hw_prog_id	 ? query.hw_prog_id
				 : query.skb_prog_id;
	if (!id)
		return 0;
	program_name(id, program, sizeof(program));
	if (!strcmp(program, RL_PROGRAM_NAME))
		return rl_error_set(
		    err, RL_ERROR_KERNEL, EBUSY,
		    "%s runs a program of rl-agent's (id %u) that isn't in the state of this network namespace: it was "
		    "moved here while attached elsewhere; `rl-agent status --all` shows where, and `rl-agent detach` there "
		    "ends it",
		    name, id);
	return rl_error_set(
	    err, RL_ERROR_KERNEL, EBUSY,
	    "%s already runs an XDP program that isn't rl-agent's: \"%s\" (id %u); it was left as it is; "
	    "remove it "
	    "with the tool that attached it (`bpftool net show dev %s` tells more), then attach again",
	    name, program, id, name);
}

/*
 * The driver's own reason. Creating a link doesn't tell it, the older netlink request does: ask by that, and
 * take the program off again at once should it succeed this time.
 */
static const char *driver_reason(int program_fd, __u32 ifindex)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, ours, .old_prog_fd = program_fd);

	libbpf_log.driver[0] = '\0';
	if (bpf_xdp_attach((int)ifindex, program_fd, XDP_FLAGS_DRV_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST,
			   NULL) == 0)
		bpf_xdp_detach((int)ifindex, XDP_FLAGS_DRV_MODE, &ours);
	return libbpf_log.driver;
}

static int native_refused(int code, const char *name, const char *reason, bool frags, struct rl_error *err)
{
	static const char elsewise[] = "`rl-agent attach --mode tc` works on every device, but later";
	const char *says = reason[0] ? reason : strerror(code);
	struct rl_device_info device = {};
	struct rl_error ignored;
	bool by_mtu;

	rl_device_read(name, &device, &ignored);
	by_mtu = reason[0] ? strcasestr(reason, "mtu") != NULL
			   : device.mtu > 1500 && (code == ERANGE || code == EINVAL);
	if (by_mtu)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, code,
		    "%s refused native XDP at its MTU of %d: %s; lower it (`ip link set %s mtu 1500`; on veth, that of "
		    "the other end)%s; or: %s; nothing was attached",
		    name, device.mtu, says, name, frags ? "" : ", or leave out --no-frags", elsewise);
	if (code == EOPNOTSUPP || device.native == RL_NATIVE_NO)
		return rl_error_set(err, RL_ERROR_KERNEL, code,
				    "the driver of %s has no native XDP; %s; nothing was attached", name,
				    elsewise);
	return rl_error_set(
	    err, RL_ERROR_KERNEL, code,
	    "%s refused native XDP: %s; many drivers want spare queues (`ethtool -L %s combined N` with half as "
	    "many) and no LRO (`ethtool -K %s lro off`); or: %s; nothing was attached",
	    name, says, name, name, elsewise);
}

static int attach_refused(int code, const struct rl_program *program, __u32 ifindex, const char *name,
			  enum rl_mode mode, struct rl_error *err)
{
	switch (code) {
	case EBUSY:
	case EEXIST:
		return rl_error_set(err, RL_ERROR_KERNEL, code,
				    "%s took another XDP program in this moment; nothing was attached: "
				    "`bpftool net show dev %s` "
				    "tells whose it is",
				    name, name);
	case ENODEV:
		return rl_error_set(err, RL_ERROR_USAGE, code, "%s is gone: nothing was attached", name);
	default:
		break;
	}
	if (mode == RL_MODE_NATIVE)
		return native_refused(code, name, driver_reason(program_fd(program), ifindex),
				      program->options.frags, err);
	return rl_error_set(err, RL_ERROR_KERNEL, code, "%s refused %s: %s; nothing was attached", name,
			    mode == RL_MODE_TC ? "a TC program" : "generic XDP", strerror(code));
}

/* A new device begins with no counts, whoever had the slot before. */
static int device_enter(const struct rl_state *state, __u32 slot, const struct rl_device *device,
			struct rl_error *err)
{
	struct rl_device entered = *device;
	RL_FREE struct rl_device_count *zero = calloc((size_t)rl_possible_cpus(), sizeof(*zero));

	entered.flags |= RL_DEVICE_ATTACHED;
	entered.since = (__u64)time(NULL);
	entered.limit = rl_policy_device(state, device->name);
	if (!zero)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	if (bpf_map_update_elem(state->map[RL_MAP_DEVICE_COUNT], &slot, zero, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't zero the device's counters: %s",
				    strerror(errno));
	return rl_attached_write(state, slot, &entered, err);
}

/* Where it would sit. */
static enum rl_hook hook_of(enum rl_mode mode)
{
	if (mode != RL_MODE_TC)
		return RL_HOOK_XDP;
	return rl_hook_has_tcx() ? RL_HOOK_TCX : RL_HOOK_CLSACT;
}

int rl_program_attach(const struct rl_program *program, const struct rl_state *state, __u32 slot,
		      const struct rl_device *device, struct rl_error *err)
{
	struct rl_device entered = *device;
	const struct rl_device none = {};
	struct rl_error ignored;
	char path[RL_PATH_LEN];
	bool pinned;
	int rc;

	entered.hook = hook_of((enum rl_mode)device->mode);
	rc = device_enter(state, slot, &entered, err);
	if (rc)
		return rc;
	rl_hook_detach(rl_state_link_path(state, slot, path)); /* a device that is gone had the slot */
	rc = rl_hook_attach(program_fd(program), &entered, path, &pinned);
	if (rc && pinned)
		rc = attach_refused(-rc, program, device->ifindex, device->name, (enum rl_mode)device->mode,
				    err);
	else if (rc)
		rc = rl_error_set(err, RL_ERROR_KERNEL, -rc,
				  "can't pin what is attached as %s: %s; nothing was attached", path,
				  strerror(-rc));
	if (rc)
		rl_attached_write(state, slot, &none, &ignored);
	return rc;
}

int rl_program_replace(const struct rl_program *program, const struct rl_state *state, __u32 slot,
		       const struct rl_device *device, struct rl_error *err)
{
	char path[RL_PATH_LEN];
	int rc = rl_hook_replace(program_fd(program), device, rl_state_link_path(state, slot, path));

	if (rc)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, -rc,
		    "the kernel refused to replace the program on %s: %s; the one that was there goes on",
		    device->name, strerror(-rc));
	return 0;
}
