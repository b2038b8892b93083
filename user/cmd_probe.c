// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "cmd.h"
#include "device.h"
#include "plain.h"
#include "probe.h"
#include "view.h"

#define RL_PAGE_FRAME                                                                                        \
	3498 /* bytes of MTU that fit one page beside XDP's headroom and the kernel's own data */

static const struct poptOption options[] = {
    RL_CMD_OPTION_JSON,
    POPT_TABLEEND,
};

static const char *const native_names[] = {
    [RL_NATIVE_UNKNOWN] = "unknown",
    [RL_NATIVE_NO] = "no",
    [RL_NATIVE_YES] = "yes",
};

/* Without privilege the kernel refuses every program: nothing follows from that. */
static bool can_tell(enum rl_probe_id id, const bool *found)
{
	return found[RL_PROBE_PRIVILEGE] || id == RL_PROBE_PRIVILEGE || id == RL_PROBE_BPFFS ||
	       id == RL_PROBE_COOKIE;
}

static const char *device_follows(const struct rl_device_info *device)
{
	if (device->program_id)
		return "it runs an XDP program: attach replaces it if it is rl-agent's (`rl-agent status`), and refuses if not";
	if (!device->ethernet)
		return "its frames have no Ethernet header: attach refuses it";
	if (device->native == RL_NATIVE_NO)
		return "no native XDP: `rl-agent attach --mode generic` works, slower, and counts merged "
		       "packets as one";
	if (device->native == RL_NATIVE_UNKNOWN)
		return "this kernel doesn't tell whether the driver has native XDP (Linux 6.3 does): attach "
		       "finds out";
	if (!device->frags && device->mtu > RL_PAGE_FRAME)
		return "native XDP, but not for frames of several buffers: at this MTU the driver may "
		       "refuse; "
		       "`ip link set DEV mtu 1500` helps";
	return "native XDP: `rl-agent attach` works";
}

static void print_text(const char *release, const bool *found, bool works, const char *name,
		       const struct rl_device_info *device)
{
	const struct rl_probe *table = rl_probe_table();

	printf("kernel %s\n", release);
	for (int i = 0; i < RL_PROBES; i++) {
		const char *follows =
		    !can_tell(i, found) ? "can't be told without privilege" : table[i].without;

		printf("  %-3s  %-13s %s%s%s\n",
		       found[i]		    ? "yes"
		       : can_tell(i, found) ? "no"
					    : "?",
		       table[i].name, table[i].what, found[i] ? "" : ": ", found[i] ? "" : follows);
	}
	printf("%s\n", works			   ? "rl-agent works here"
		       : found[RL_PROBE_PRIVILEGE] ? "rl-agent can't work here: see above"
						   : "run it with sudo to see whether rl-agent works here");
	if (!name)
		return;
	putchar('\n');
	rl_plain_print(stdout, "%s: driver %s, MTU %d, native XDP %s", name,
		       device->driver[0] ? device->driver : "unknown", device->mtu,
		       native_names[device->native]);
	if (device->native == RL_NATIVE_YES)
		printf(", frames of several buffers %s", device->frags ? "yes" : "no");
	if (device->program_id)
		printf(", runs XDP program %u", device->program_id);
	printf("\n  %s\n", device_follows(device));
}

static void print_json(const char *release, const bool *found, bool works, const char *name,
		       const struct rl_device_info *device)
{
	const struct rl_probe *table = rl_probe_table();
	json_t *checks = json_array();
	json_t *object;

	for (int i = 0; i < RL_PROBES; i++)
		json_array_append_new(checks,
				      json_pack("{s:s, s:s, s:b, s:o, s:s?}", "name", table[i].name, "what",
						table[i].what, "needed", table[i].needed, "found",
						can_tell(i, found) ? json_boolean(found[i]) : json_null(),
						"follows", found[i] ? NULL : table[i].without));
	object = json_pack("{s:i, s:s, s:b, s:o, s:n}", "schema_version", RL_VIEW_SCHEMA_VERSION, "kernel",
			   release, "works", works, "checks", checks, "device");
	if (name)
		json_object_set_new(
		    object, "device",
		    json_pack("{s:s, s:I, s:s, s:i, s:s, s:b, s:I, s:s}", "name", name, "ifindex",
			      (json_int_t)device->ifindex, "driver", device->driver, "mtu", device->mtu,
			      "native", native_names[device->native], "frags", device->frags, "program_id",
			      (json_int_t)device->program_id, "follows", device_follows(device)));
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	struct rl_device_info device = {};
	bool found[RL_PROBES], works = true;
	char own[RL_NAME_LEN];
	const char *name = NULL;
	struct utsname kernel;
	int count, rc;

	rc = rl_cmd_parse(&rl_cmd_probe, argc, argv, 0, 1, &name, &count, err);
	if (!rc && name)
		rc = rl_device_name(name, own, err);
	if (!rc && name)
		rc = rl_device_read(own, &device, err);
	if (rc)
		return rc;
	uname(&kernel);
	for (int i = 0; i < RL_PROBES; i++) {
		found[i] = rl_probe_run(i);
		works &= found[i] || !rl_probe_table()[i].needed;
	}
	(rl_cmd_json ? print_json : print_text)(kernel.release, found, works, name ? own : NULL, &device);
	rl_cmd_answered = rl_cmd_json;
	if (!works)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOTSUP,
				    "what rl-agent needs is missing, or can't be told");
	return 0;
}

const struct rl_command rl_cmd_probe = {
    .name = "probe",
    .arguments = "[DEV] [-j]",
    .summary = "Tell what this kernel and DEV can do, and what follows from it",
    .help =
	"Tries each feature with a tiny program or map of its own. Attaches nothing and leaves nothing "
	"behind.\n\n"
	"Exit code, with --json too: 0 where rl-agent works, 2 where what it needs is missing or can't be told.\n",
    .options = options,
    .run = run,
};
