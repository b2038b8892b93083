// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "attached.h"
#include "cleanup.h"
#include "device.h"
#include "cmd.h"
#include "loader.h"
#include "lockout.h"
#include "snapshot.h"
#include "units.h"

#define MAX_SOURCES_DEFAULT 1000000
#define MAX_SOURCES_MAX	    100000000 /* about 15 GB */

static const char *mode_text, *max_sources_text;
static int no_frags, verbose;

static const struct poptOption options[] = {
    {"mode", 'm', POPT_ARG_STRING, &mode_text, 0, "auto (default: native or refuse), native, generic",
     "MODE"},
    {"max-sources", 0, POPT_ARG_STRING, &max_sources_text, 0, "buckets in the table of sources (default 1m)",
     "COUNT"},
    {"no-frags", 0, POPT_ARG_NONE, &no_frags, 0,
     "do without frames of several buffers, for drivers that refuse them", NULL},
    {"verbose", 'v', POPT_ARG_NONE, &verbose, 0, "print what the kernel says where it refuses", NULL},
    POPT_TABLEEND,
};

/* What was asked for, checked. */
struct request {
	char name[IFNAMSIZ]; /* the device's own, where an alternative one was given */
	__u32 ifindex;
	enum rl_mode mode;
	bool mode_given;
	__u64 max_sources;
	bool max_sources_given;
};

/* What came of it. */
struct outcome {
	bool adopted; /* it was attached before */
	bool paused;  /* and still is */
	enum rl_mode mode;
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

	if (rl_device_read(name, &device, err))
		return device_missing(name, err);
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

static int request_parse(int argc, const char **argv, struct request *out, struct rl_error *err)
{
	struct request request = {.mode = RL_MODE_NATIVE, .max_sources = MAX_SOURCES_DEFAULT};
	const char *name;
	int count, rc = rl_cmd_parse(&rl_cmd_attach, argc, argv, 1, 1, &name, &count, err);

	if (!rc)
		rc = device_find(name, &request, err);
	if (rc)
		return rc;
	if (mode_text && strcmp(mode_text, "auto")) {
		request.mode_given = true;
		if (!strcmp(mode_text, "generic"))
			request.mode = RL_MODE_GENERIC;
		else if (strcmp(mode_text, "native"))
			return rl_error_set(
			    err, RL_ERROR_USAGE, EINVAL,
			    "--mode %s: there is no such mode; expected auto, native or generic", mode_text);
	}
	if (max_sources_text) {
		request.max_sources_given = true;
		rc = rl_count_parse(max_sources_text, "--max-sources", MAX_SOURCES_MAX, &request.max_sources,
				    err);
		if (rc)
			return rc;
	}
	*out = request;
	return 0;
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
			    "%d devices are attached already, and that is the most: detach one",
			    RL_MAX_DEVICES);
}

static int kept_table_check(const struct rl_state *state, const struct request *request, struct rl_error *err)
{
	struct rl_meta meta;
	__u32 zero = 0;

	if (!request->max_sources_given)
		return 0;
	if (bpf_map_lookup_elem(state->map[RL_MAP_META], &zero, &meta))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't read the state's settings: %s",
				    strerror(errno));
	if (meta.max_sources == request->max_sources)
		return 0;
	return rl_error_set(
	    err, RL_ERROR_USAGE, EEXIST,
	    "the table of sources is there already, with room for %llu, and can't change its size: leave "
	    "--max-sources out, or start anew with `rl-agent detach --all`, which gives up policy and "
	    "buckets",
	    (unsigned long long)meta.max_sources);
}

static int adopt_check(const struct rl_attached *own, const struct request *request, struct rl_error *err)
{
	if (!request->mode_given || own->device.mode == request->mode)
		return 0;
	return rl_error_set(err, RL_ERROR_USAGE, EEXIST,
			    "%s is attached in %s mode, which can't change in place: `rl-agent detach %s "
			    "--keep`, then attach "
			    "again; policy and buckets stay",
			    request->name, rl_mode_name(own->device.mode), request->name);
}

static int attach_to(struct rl_state *state, bool fresh, const struct request *request,
		     struct outcome *outcome, struct rl_error *err)
{
	__attribute__((cleanup(rl_program_free))) struct rl_program *program = NULL;
	struct rl_load_options load = {.max_sources = (__u32)request->max_sources, .frags = !no_frags};
	struct rl_attached attached[RL_MAX_DEVICES];
	const struct rl_attached *own = NULL;
	size_t count = 0;
	int rc = 0;

	if (!fresh)
		rc = rl_state_attached(state, true, attached, &count, err);
	if (!rc)
		rc = slot_choose(request, attached, count, &load.slot, &own, err);
	if (!rc && !fresh)
		rc = kept_table_check(state, request, err);
	if (!rc)
		rc = own ? adopt_check(own, request, err)
			 : rl_device_check_foreign(request->ifindex, request->name, err);
	if (!rc)
		rc = rl_program_load(state, fresh, &load, &program, err);
	if (!rc && fresh)
		rc = rl_program_pin(program, state, err);
	if (!rc && fresh)
		rc = rl_state_open(state, err);
	if (rc)
		return rc;
	*outcome = (struct outcome){.mode = request->mode};
	if (own) {
		outcome->adopted = true;
		outcome->mode = own->device.mode;
		outcome->paused = own->device.flags & RL_DEVICE_PAUSED;
	}
	if (own)
		return rl_program_replace(program, state, own->slot, request->name, err);
	return rl_program_attach(program, state, load.slot, request->ifindex, request->name, request->mode,
				 err);
}

static int attach_locked(const struct request *request, struct outcome *outcome, struct rl_error *err)
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
	if (!rc && !outcome->adopted)
		rl_lockout_warn(&state, NULL);
	return rc;
}

static void outcome_print(const struct request *request, const struct outcome *outcome)
{
	if (!outcome->adopted)
		printf("%s: attached, %s XDP\n", request->name, rl_mode_name(outcome->mode));
	else
		printf(
		    "%s: was attached, %s XDP; the program is replaced in place, limits, buckets and counters go on%s\n",
		    request->name, rl_mode_name(outcome->mode),
		    outcome->paused ? "; it is still paused" : "");
	if (outcome->mode == RL_MODE_GENERIC)
		fprintf(
		    stderr,
		    "rl-agent: warning: generic XDP sees packets that the kernel merged (GRO) as one: limits in packets let "
		    "more through, and counters show fewer; `ethtool -K %s gro off` prevents it\n",
		    request->name);
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	bool had_bpffs = rl_state_bpffs_mounted();
	RL_CLOSE int lock = -1;
	struct request request;
	struct outcome outcome;
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
    .arguments = "DEV [--mode MODE] [--max-sources COUNT] [--no-frags] [--verbose]",
    .summary = "Put the limiter into DEV's receive path",
    .help = "Returns at once: enforcement is in the kernel and needs no process. Attaching again replaces "
	    "the program in\n"
	    "place over the same limits, buckets and counters. All devices of a network namespace share one "
	    "policy and\n"
	    "one set of buckets.\n\n"
	    "Native XDP runs in the driver. Generic XDP works on every device, but later and slower, and "
	    "sees packets that\n"
	    "the kernel has merged as one.\n",
    .options = options,
    .run = run,
};
