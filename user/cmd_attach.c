// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "attached.h"
#include "cleanup.h"
#include "clock.h"
#include "cmd.h"
#include "cmd_apply.h"
#include "device.h"
#include "frames.h"
#include "heads.h"
#include "loader.h"
#include "lockout.h"
#include "plain.h"
#include "policy.h"
#include "snapshot.h"
#include "units.h"

#define MAX_SOURCES_DEFAULT 1000000
#define MAX_SOURCES_MAX	    100000000 /* about 17 GB */
#define TABLE_SOURCES_MIN   1280      /* what one region of 2048 places has room for (loader.c) */

static const char *mode_text, *store_text, *max_sources_text, *max_limits_text, *when_full_text, *policy_path;
static int shadow, enforce, no_frags, verbose;

static const struct poptOption options[] = {
    {"mode", 'm', POPT_ARG_STRING, &mode_text, 0, "auto (default: native, or else tc), native, tc, generic",
     "MODE"},
    {"store", 0, POPT_ARG_STRING, &store_text, 0, "table (default), or lru: the kernel's LRU hash", "STORE"},
    {"max-sources", 0, POPT_ARG_STRING, &max_sources_text, 0,
     "sources that the store has room for (default 1m; a table, at least 1280)", "COUNT"},
    {"max-limits", 0, POPT_ARG_STRING, &max_limits_text, 0,
     "limits that the policy has room for (default 65535, or what FILE says and a quarter more)", "COUNT"},
    {"when-full", 0, POPT_ARG_STRING, &when_full_text, 0,
     "a source without room: aggregate (default: its /24 or /48 counts), open, closed", "WHAT"},
    {"policy", 0, POPT_ARG_STRING, &policy_path, 0,
     "with this policy in force from the first packet on, as by `apply`", "FILE"},
    {"shadow", 0, POPT_ARG_NONE, &shadow, 0, "drop nothing, count what would have been dropped", NULL},
    {"enforce", 0, POPT_ARG_NONE, &enforce, 0, "drop again; the default for a new device", NULL},
    {"no-frags", 0, POPT_ARG_NONE, &no_frags, 0,
     "do without frames of several buffers, for drivers that refuse them", NULL},
    {"verbose", 'v', POPT_ARG_NONE, &verbose, 0, "print what the kernel says where it refuses", NULL},
    POPT_TABLEEND,
};

/* What was asked for, checked. Where a thing wasn't said, -1: what is there stays, or the default. */
struct request {
	char name[IFNAMSIZ]; /* the device's own, where an alternative one was given */
	__u32 ifindex;
	int mode;		      /* enum rl_mode */
	int store;		      /* enum rl_store */
	int when_full;		      /* enum rl_when_full */
	int shadow;		      /* 1 or 0 */
	__u64 max_sources;	      /* 0: not said */
	__u64 max_limits;	      /* likewise */
	struct rl_policy_file policy; /* its name is NULL: not said */
};

static void request_free(struct request *request)
{
	rl_policy_file_free(&request->policy);
}

/* What came of it. */
struct outcome {
	bool adopted; /* it was attached before */
	bool paused;  /* and still is */
	bool shadow;
	enum rl_mode mode;
	const char
	    *instead; /* why it isn't native XDP, which was tried first; NULL: it is, or wasn't asked for */
	enum rl_store store;
	struct rl_applied applied;
	__u32 max_sources;
};

static int device_missing(const char *name, struct rl_error *err)
{
	struct if_nameindex *list = if_nameindex();
	char names[256] = "";
	size_t len = 0;

	for (struct if_nameindex *i = list; i && i->if_index && len < sizeof(names) - IFNAMSIZ - 2; i++)
		len +=
		    (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "", i->if_name);
	if_freenameindex(list);
	return rl_error_set(err, RL_ERROR_USAGE, ENODEV,
			    "there is no device \"%s\" in this network namespace; there is: %s", name, names);
}

static int device_find(const char *name, struct request *request, struct rl_error *err)
{
	struct rl_device_info device;
	char own[RL_NAME_LEN];
	int rc = rl_device_name(name, own, err);

	if (rc)
		return rc;
	if (rl_device_read(own, &device, err))
		return device_missing(own, err);
	if (!device.ethernet)
		return rl_error_set(err, RL_ERROR_KERNEL, EOPNOTSUPP,
				    "%s carries packets without an Ethernet header, which XDP programs here "
				    "can't read: attach to "
				    "the device that its packets arrive on",
				    name);
	request->ifindex = device.ifindex;
	memcpy(request->name, device.name, sizeof(request->name));
	return 0;
}

/* One of a few words, by its place; -1 where it wasn't given. */
static int word_parse(const char *option, const char *text, const char *const *words, int count, int *out,
		      struct rl_error *err)
{
	char expected[64] = "";
	size_t used = 0;

	*out = -1;
	for (int i = 0; text && i < count; i++) {
		if (!strcmp(text, words[i]))
			*out = i;
		used += (size_t)snprintf(expected + used, sizeof(expected) - used, "%s%s", i ? ", " : "",
					 words[i]);
	}
	if (!text || *out >= 0)
		return 0;
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL, "%s %s: there is no such thing; expected one of %s",
			    option, text, expected);
}

static int options_parse(struct request *request, struct rl_error *err)
{
	const char *const modes[] = {rl_mode_name(RL_MODE_NATIVE), rl_mode_name(RL_MODE_GENERIC),
				     rl_mode_name(RL_MODE_TC), "auto"};
	const char *const stores[] = {rl_store_name(RL_STORE_TABLE), rl_store_name(RL_STORE_LRU)};
	const char *const fulls[] = {rl_when_full_name(RL_FULL_AGGREGATE), rl_when_full_name(RL_FULL_OPEN),
				     rl_when_full_name(RL_FULL_CLOSED)};
	int rc;

	_Static_assert(sizeof(modes) / sizeof(modes[0]) == RL_MODES + 1, "a mode without a word");
	_Static_assert(sizeof(stores) / sizeof(stores[0]) == RL_STORES, "a store without a word");
	_Static_assert(sizeof(fulls) / sizeof(fulls[0]) == RL_FULLS, "a policy without a word");

	request->mode = request->shadow = -1;
	rc = word_parse("--mode", mode_text, modes, RL_MODES + 1, &request->mode, err);
	if (request->mode == RL_MODES)
		request->mode = -1;
	if (!rc)
		rc = word_parse("--store", store_text, stores, RL_STORES, &request->store, err);
	if (!rc)
		rc = word_parse("--when-full", when_full_text, fulls, RL_FULLS, &request->when_full, err);
	if (!rc && max_sources_text)
		rc = rl_count_parse(max_sources_text, "--max-sources", MAX_SOURCES_MAX, &request->max_sources,
				    err);
	if (!rc && max_limits_text)
		rc = rl_count_parse(max_limits_text, "--max-limits", RL_MOST_LIMITS - 1, &request->max_limits,
				    err);
	if (!rc && shadow && enforce)
		rc = rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				  "--shadow and --enforce contradict each other: give one of them");
	if (shadow || enforce)
		request->shadow = shadow;
	return rc;
}

static int request_parse(int argc, const char **argv, struct request *out, struct rl_error *err)
{
	struct request request = {};
	const char *name;
	int count, rc = rl_cmd_parse(&rl_cmd_attach, argc, argv, 1, 1, &name, &count, err);

	if (!rc)
		rc = device_find(name, &request, err);
	if (!rc)
		rc = options_parse(&request, err);
	if (!rc && policy_path)
		rc = rl_policy_file_open(policy_path, &request.policy, err);
	if (!rc && policy_path)
		rc = rl_cmd_apply_says(&request.policy, "without --policy the policy stays as it is", err);
	if (!rc && policy_path)
		rc = rl_policy_file_check(&request.policy, err);
	if (rc)
		rl_policy_file_free(&request.policy);
	else
		*out = request;
	return rc;
}

/* The slot that the device has, or may take: a free one, or that of a device of its name that is gone. */
static int slot_choose(const struct request *request, const struct rl_attached *attached, size_t count,
		       __u32 *slot, const struct rl_attached **own, struct rl_error *err)
{
	bool taken[RL_MAX_DEVICES] = {false};
	const struct rl_attached *gone = NULL, *namesake = NULL;

	for (size_t i = 0; i < count; i++) {
		taken[attached[i].slot] = true;
		if (attached[i].where == RL_HERE && attached[i].ifindex == request->ifindex) {
			*own = &attached[i];
			*slot = attached[i].slot;
			return 0;
		}
		if (attached[i].where == RL_GONE)
			gone = &attached[i];
		if (attached[i].where == RL_GONE && !strcmp(attached[i].name, request->name))
			namesake = &attached[i];
	}
	*own = NULL;
	for (*slot = 0; *slot < RL_MAX_DEVICES && taken[*slot]; (*slot)++)
		;
	if (namesake || (gone && *slot == RL_MAX_DEVICES))
		*slot = namesake ? namesake->slot : gone->slot;
	if (*slot < RL_MAX_DEVICES)
		return 0;
	return rl_error_set(err, RL_ERROR_KERNEL, ENOSPC,
			    "%d devices are attached already, and that is the most: `rl-agent detach` one; "
			    "`rl-agent status` shows them",
			    RL_MAX_DEVICES);
}

/* A table can't be smaller than a region: what it has room for is what is said of it. */
static __u32 max_sources_of(const struct request *request, enum rl_store store)
{
	__u64 sources = request->max_sources ? request->max_sources : MAX_SOURCES_DEFAULT;

	return store == RL_STORE_TABLE && sources < TABLE_SOURCES_MIN ? TABLE_SOURCES_MIN : (__u32)sources;
}

/* Slots, of which the first is nobody's. Of a policy that is larger than usual a quarter may come without anything going. */
static __u32 slots_of(const struct request *request)
{
	__u64 said = request->max_limits, most = RL_MOST_LIMITS - 1;

	if (!said)
		said = request->policy.count + request->policy.count / 4;
	if (!request->max_limits && said < RL_DEFAULT_LIMITS - 1)
		said = RL_DEFAULT_LIMITS - 1;
	return (__u32)(said < most ? said : most) + 1;
}

/* Store and policy are made once, by the first attach. */
static int kept_check(const struct rl_load_options *kept, const struct request *request, struct rl_error *err)
{
	static const char way_out[] =
	    "start anew with `rl-agent detach --all`, which gives up policy and buckets";

	if (request->store >= 0 && kept->store != (enum rl_store)request->store)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EEXIST,
		    "the store of sources is there already, and is %s, which can't change while it is in use: "
		    "leave --store out, or %s",
		    rl_store_name(kept->store), way_out);
	if (request->max_sources && kept->max_sources != max_sources_of(request, kept->store))
		return rl_error_set(
		    err, RL_ERROR_USAGE, EEXIST,
		    "the store of sources is there already, with room for %u, and can't change its size: leave "
		    "--max-sources out, or %s",
		    kept->max_sources, way_out);
	if (request->max_limits && kept->max_limits != slots_of(request))
		return rl_error_set(
		    err, RL_ERROR_USAGE, EEXIST,
		    "the policy is there already, with room for %u limits, and can't change its size: leave --max-limits "
		    "out, or %s",
		    kept->max_limits - 1, way_out);
	return 0;
}

static int load_options(const struct rl_state *state, bool fresh, const struct request *request,
			struct rl_load_options *out, struct rl_error *err)
{
	enum rl_store store = request->store < 0 ? RL_STORE_TABLE : (enum rl_store)request->store;
	struct rl_load_options kept;
	int rc;

	if (fresh)
		return rl_load_options_new(store, max_sources_of(request, store), slots_of(request), out,
					   err);
	rc = rl_load_options_kept(state, &kept, err);
	if (!rc)
		rc = kept_check(&kept, request, err);
	if (!rc)
		*out = kept;
	return rc;
}

static int adopt_check(const struct rl_attached *own, const struct request *request, struct rl_error *err)
{
	if (request->mode < 0 || own->device.mode == (__u32)request->mode)
		return 0;
	return rl_error_set(err, RL_ERROR_USAGE, EEXIST,
			    "%s is attached in %s mode, which can't change in place: `rl-agent detach %s "
			    "--keep`, then attach "
			    "again; policy and buckets stay",
			    request->name, rl_mode_name(own->device.mode), request->name);
}

/* Load the program, and pin its maps where they are new. */
static int program_make(struct rl_state *state, bool fresh, const struct request *request,
			const struct rl_load_options *load, struct rl_program **program, struct rl_error *err)
{
	enum rl_when_full when_full =
	    request->when_full < 0 ? RL_FULL_AGGREGATE : (enum rl_when_full)request->when_full;
	int rc = rl_program_load(state, fresh, load, program, err);

	if (!rc && fresh)
		rc = rl_program_pin(*program, state, when_full, err);
	if (!rc && fresh)
		rc = rl_state_open(state, err);
	return rc;
}

static void device_shadow(struct rl_device *device, const struct request *request)
{
	if (request->shadow < 0)
		return;
	device->flags &= ~(__u32)RL_DEVICE_SHADOW;
	if (request->shadow)
		device->flags |= RL_DEVICE_SHADOW;
}

/* The program in the place of the one that is there, and what was asked for besides. */
static int device_adopt(const struct rl_program *program, const struct rl_state *state,
			const struct rl_attached *own, const struct request *request, struct outcome *outcome,
			struct rl_error *err)
{
	struct rl_device device = own->device;
	int rc = rl_program_replace(program, state, own->slot, &own->device, err);

	device_shadow(&device, request);
	if (!rc && memcmp(&device, &own->device, sizeof(device)) != 0)
		rc = rl_attached_write(state, own->slot, &device, err);
	outcome->adopted = true;
	outcome->paused = device.flags & RL_DEVICE_PAUSED;
	outcome->shadow = device.flags & RL_DEVICE_SHADOW;
	outcome->mode = (enum rl_mode)device.mode;
	return rc;
}

static int device_attach(const struct rl_program *program, const struct rl_state *state, __u32 slot,
			 const struct request *request, enum rl_mode mode, struct outcome *outcome,
			 struct rl_error *err)
{
	struct rl_device device = {.ifindex = request->ifindex, .mode = mode};

	device_shadow(&device, request);
	memcpy(device.name, request->name, sizeof(device.name));
	outcome->shadow = device.flags & RL_DEVICE_SHADOW;
	outcome->mode = (enum rl_mode)device.mode;
	return rl_program_attach(program, state, slot, &device, err);
}

/* By TC, where native XDP was refused and nobody insists on it. */
static int device_attach_tc(const struct rl_state *state, struct rl_load_options *load,
			    const struct request *request, struct outcome *outcome, struct rl_error *err)
{
	__attribute__((cleanup(rl_program_free))) struct rl_program *program = NULL;
	int rc;

	load->mode = RL_MODE_TC;
	rc = rl_program_load(state, false, load, &program, err);
	return rc ? rc : device_attach(program, state, load->slot, request, RL_MODE_TC, outcome, err);
}

static int when_full_write(const struct rl_state *state, const struct request *request, struct rl_error *err)
{
	RL_HEADS struct rl_heads heads = {};
	int rc;

	if (request->when_full < 0)
		return 0;
	rc = rl_heads_open(state, RL_HEADS_WRITE, &heads, err);
	if (!rc)
		rl_setting_write(&rl_heads_settings(&heads)->when_full, (__u32)request->when_full);
	return rc;
}

/* The policy before the program: no packet is to pass that one under another. */
static int policy_put(const struct rl_state *state, struct request *request,
		      const struct rl_attached *attached, size_t count, struct outcome *outcome,
		      struct rl_error *err)
{
	struct rl_attached devices[RL_MAX_DEVICES + 1];
	int rc;

	if (!request->policy.name)
		return 0;
	memcpy(devices, attached, count * sizeof(*devices));
	devices[count] = (struct rl_attached){.where = RL_HERE, .ifindex = request->ifindex};
	memcpy(devices[count].name, request->name, sizeof(devices[count].name));
	rc = rl_policy_file_resolve(&request->policy, devices, count + 1, err);
	return rc ? rc
		  : rl_policy_apply(state, &request->policy, RL_APPLY, rl_clock_ns(), &outcome->applied, err);
}

/* It was too late to leave the policy as it was for the devices that are attached already. */
static int policy_stays(const struct request *request, bool fresh, int rc, struct rl_error *err)
{
	const struct rl_error what = *err;

	if (fresh || !request->policy.name)
		return rc;
	return rl_error_set(err, what.kind, -rc, "%s; the policy of %s is in force all the same", what.text,
			    request->policy.name);
}

/* Native XDP first, where nothing is said; TC at once, where somebody else's XDP program is there. */
static int mode_choose(const struct request *request, const struct rl_attached *own, enum rl_mode *mode,
		       struct outcome *outcome, struct rl_error *err)
{
	int rc;

	*mode = own		    ? (enum rl_mode)own->device.mode
		: request->mode < 0 ? RL_MODE_NATIVE
				    : (enum rl_mode)request->mode;
	if (own || *mode == RL_MODE_TC)
		return 0;
	rc = rl_device_check_foreign(request->ifindex, request->name, err);
	if (!rc || request->mode >= 0)
		return rc;
	*mode = RL_MODE_TC;
	outcome->instead = "another XDP program is there";
	return 0;
}

static int attach_to(struct rl_state *state, bool fresh, struct request *request, struct outcome *outcome,
		     struct rl_error *err)
{
	__attribute__((cleanup(rl_program_free))) struct rl_program *program = NULL;
	struct rl_attached attached[RL_MAX_DEVICES];
	const struct rl_attached *own = NULL;
	struct rl_load_options load;
	size_t count = 0;
	__u32 slot = 0;
	int rc = fresh ? 0 : rl_state_attached(state, true, attached, &count, err);

	if (!rc)
		rc = slot_choose(request, attached, count, &slot, &own, err);
	if (!rc)
		rc = load_options(state, fresh, request, &load, err);
	if (!rc && own)
		rc = adopt_check(own, request, err);
	if (rc)
		return rc;
	load.slot = slot;
	load.frags = !no_frags;
	*outcome = (struct outcome){.store = load.store, .max_sources = load.max_sources};
	rc = mode_choose(request, own, &load.mode, outcome, err);
	if (rc)
		return rc;
	rc = program_make(state, fresh, request, &load, &program, err);
	if (!rc)
		rc = policy_put(state, request, attached, count, outcome, err);
	if (rc)
		return rc;
	rc = own ? device_adopt(program, state, own, request, outcome, err)
		 : device_attach(program, state, slot, request, load.mode, outcome, err);
	if (rc && !own && request->mode < 0 && load.mode == RL_MODE_NATIVE) {
		outcome->instead = strerror(-rc);
		rc = device_attach_tc(state, &load, request, outcome, err);
	}
	if (rc)
		return policy_stays(request, fresh, rc, err);
	rc = rl_attached_rename(state, err);
	return rc ? rc : when_full_write(state, request, err);
}

static int attach_locked(struct request *request, struct outcome *outcome, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	struct rl_error ignored;
	bool fresh;
	int rc = rl_state_prepare(&state, &fresh, err);

	if (!rc && !fresh)
		rc = rl_state_open(&state, err);
	if (rc)
		return rc;
	rc = attach_to(&state, fresh, request, outcome, err);
	if (rc && fresh)
		rl_state_remove(&state, false, &ignored);
	if (rc)
		return rc;
	rl_frames_warn(&state, request->name, outcome->mode);
	if (!outcome->adopted)
		rl_attached_tell_idle(&state, request->name);
	if (!outcome->shadow && (!outcome->adopted || request->policy.name))
		rl_lockout_warn(&state, NULL);
	return 0;
}

static void outcome_print(const struct request *request, const struct outcome *outcome)
{
	static const char *const ways[] = {
	    [RL_MODE_NATIVE] = "native XDP", [RL_MODE_GENERIC] = "generic XDP", [RL_MODE_TC] = "TC"};
	const char *in_shadow = outcome->shadow ? "; in shadow: nothing is dropped" : "",
		   *by = ways[outcome->mode];

	if (!outcome->adopted)
		rl_plain_print(stdout, "%s: attached, %s%s\n", request->name, by, in_shadow);
	else
		rl_plain_print(
		    stdout,
		    "%s: was attached, %s; the program is replaced in place, limits, buckets and counters go on%s%s\n",
		    request->name, by, outcome->paused ? "; it is still paused" : "", in_shadow);
	if (outcome->instead)
		rl_plain_print(
		    stderr,
		    "rl-agent: note: %s takes no native XDP program (%s): attached by TC, where packets have cost "
		    "the kernel more by the time they are dropped; `rl-agent attach %s --mode native` tells more\n",
		    request->name, outcome->instead, request->name);
	if (outcome->mode == RL_MODE_GENERIC)
		rl_plain_print(
		    stderr,
		    "rl-agent: warning: generic XDP sees packets that the kernel merged (GRO) as one: limits in packets let "
		    "more through, and counters show fewer; `ethtool -K %s gro off` prevents it\n",
		    request->name);
	if (request->max_sources && request->max_sources != outcome->max_sources)
		fprintf(
		    stderr,
		    "rl-agent: note: the table has room for %u sources, the least that it can be made for, "
		    "not for %llu\n",
		    outcome->max_sources, (unsigned long long)request->max_sources);
	if (request->when_full >= 0 && outcome->store == RL_STORE_LRU)
		fprintf(stderr,
			"rl-agent: warning: --when-full means nothing to the store lru: where it is full, it "
			"forgets the source that was seen the longest ago\n");
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	bool had_bpffs = rl_state_bpffs_mounted();
	RL_CLOSE int lock = -1;
	__attribute__((cleanup(request_free))) struct request request = {};
	struct outcome outcome = {0};
	int rc = request_parse(argc, argv, &request, err);

	rl_loader_log(verbose);
	if (!rc)
		rc = rl_privilege_check("attach", err);
	if (!rc)
		rc = rl_state_lock(true, &lock, err);
	if (!rc)
		rc = attach_locked(&request, &outcome, err);
	if (rc && lock >= 0)
		rl_state_tidy(); /* nothing half attached: what this call made goes with it */
	if (rc)
		return rc;
	outcome_print(&request, &outcome);
	if (request.policy.name)
		rl_cmd_apply_print(request.policy.name, RL_APPLY, &outcome.applied);
	if (!had_bpffs && rl_state_mounts_private())
		fprintf(stderr,
			"rl-agent: warning: %s was mounted in a mount namespace of this process's own: "
			"enforcement ends with "
			"that namespace\n",
			RL_BPFFS);
	return 0;
}

const struct rl_command rl_cmd_attach = {
    .name = "attach",
    .arguments =
	"DEV [--mode MODE] [--store STORE] [--max-sources COUNT] [--max-limits COUNT] [--when-full WHAT] "
	"[--policy FILE] [--shadow | --enforce] [--no-frags] [--verbose]",
    .summary = "Put the limiter into DEV's receive path",
    .help =
	"Returns at once: enforcement is in the kernel and needs no process. Attaching again replaces "
	"the program in\n"
	"place over the same limits, buckets and counters. All devices of a network namespace share one "
	"policy and\n"
	"one set of buckets.\n\n"
	"Native XDP runs in the driver. TC works on every device, later: a packet that the kernel has merged from several\n"
	"is charged all of them, or dropped with all of them. Generic XDP is as late, and sees them as one.\n\n"
	"The first attach makes the store of sources. The table keeps every debt: it gives a source's place away only "
	"when\n"
	"its bucket is full and was idle for a while. Where it has no place for a source, its packets are charged to "
	"the\n"
	"bucket of its /24 or /48 (--when-full aggregate), pass (open), or drop (closed); the default is aggregate. "
	"A later\n"
	"attach can change --when-full and --shadow; what isn't said stays.\n\n"
	"With --policy the device begins under the policy that FILE says (`rl-agent help apply`): no packet passes before\n"
	"that is in force.\n",
    .options = options,
    .run = run,
};
