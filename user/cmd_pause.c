// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_pause.c - pause and resume: the two values of one flag. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attached.h"
#include "cleanup.h"
#include "cmd.h"
#include "device.h"
#include "lockout.h"
#include "plain.h"

static int device_pause(const struct rl_state *state, const struct rl_attached *attached, bool paused,
			struct rl_error *err)
{
	struct rl_device device = attached->device;
	int rc;

	device.flags &= ~(__u32)RL_DEVICE_PAUSED;
	if (paused)
		device.flags |= RL_DEVICE_PAUSED;
	rc = rl_attached_write(state, attached->slot, &device, err);
	if (rc)
		return rc;
	rl_plain_print(stdout, "%s: %s\n", attached->name,
		       paused ? "paused, everything passes and is counted"
		       : device.flags & RL_DEVICE_SHADOW
			   ? "resumed, in shadow: limits count what they would drop, and drop nothing"
			   : "limits hold again");
	return 0;
}

/* *changed: a device that was not in that state before is now. */
static int pause_all(const struct rl_state *state, const char *name, bool paused, bool *changed,
		     struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	const struct rl_attached *named = NULL;
	size_t count, done = 0;
	int rc = rl_state_attached(state, true, attached, &count, err);

	if (!rc && name)
		named = rl_attached_find(attached, count, name);
	for (size_t i = 0; !rc && i < count; i++) {
		if (attached[i].where == RL_GONE || (name && &attached[i] != named))
			continue;
		*changed |= paused != !!(attached[i].device.flags & RL_DEVICE_PAUSED);
		rc = device_pause(state, &attached[i], paused, err);
		done++;
	}
	if (rc || done)
		return rc;
	if (!name)
		return rl_error_set(
		    err, RL_ERROR_NOT_ATTACHED, ENODEV,
		    "no device is attached, so everything passes: `rl-agent attach DEV` puts the policy "
		    "that was kept in force");
	return rl_error_set(
	    err, RL_ERROR_NOT_ATTACHED, ENODEV,
	    "not attached to %s: `rl-agent status` shows where it is, `rl-agent attach %s` puts it "
	    "there",
	    name, name);
}

static int run_as(const struct rl_command *command, bool paused, int argc, const char **argv,
		  struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	RL_CLOSE int lock = -1;
	const char *name = NULL;
	char own[RL_NAME_LEN];
	bool changed = false;
	int count, rc;

	rc = rl_cmd_parse(command, argc, argv, 0, 1, &name, &count, err);
	if (!rc && name)
		rc = rl_device_name(name, own, err);
	if (!rc)
		rc = rl_privilege_check(command->name, err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = pause_all(&state, name ? own : NULL, paused, &changed, err);
	if (!rc && changed && !paused)
		rl_lockout_warn(&state, NULL);
	return rc;
}

static int run_pause(int argc, const char **argv, struct rl_error *err)
{
	return run_as(&rl_cmd_pause, true, argc, argv, err);
}

static int run_resume(int argc, const char **argv, struct rl_error *err)
{
	return run_as(&rl_cmd_resume, false, argc, argv, err);
}

const struct rl_command rl_cmd_pause = {
    .name = "pause",
    .arguments = "[DEV]",
    .summary = "Let everything pass on DEV, or on every device, without detaching",
    .help = "A flag: packets are counted as paused, charged to no bucket, and nothing is detached.\n",
    .run = run_pause,
};

const struct rl_command rl_cmd_resume = {
    .name = "resume",
    .arguments = "[DEV]",
    .summary = "Let the limits hold again after pause",
    .run = run_resume,
};
