// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_apply.c - apply, and what attach --policy tells of the same. */
#include "cmd_apply.h"

#include <errno.h>
#include <stdio.h>

#include "cleanup.h"
#include "clock.h"
#include "cmd.h"
#include "frames.h"
#include "lockout.h"
#include "view_text.h"

static int check, empty;

static const struct poptOption options[] = {
    {"check", 0, POPT_ARG_NONE, &check, 0, "tell what would be refused or changed, and change nothing", NULL},
    {"empty", 0, POPT_ARG_NONE, &empty, 0, "a file that says no limit is meant so: delete them all", NULL},
    POPT_TABLEEND,
};

/* Who used up a larger burst is shut out until that is made up for. */
static void note_of_debts(const struct rl_applied *applied)
{
	char duration[RL_DURATION_TEXT];

	if (!applied->overdrawn)
		return;
	fprintf(
	    stderr,
	    "rl-agent: note: %zu of the changed limits had a larger burst: who used that up before passes nothing for "
	    "up to %s; `rl-agent del-limit` before setting such a limit anew forgives that\n",
	    applied->overdrawn, rl_text_duration(applied->longest, duration));
}

int rl_cmd_apply_says(const struct rl_policy_file *file, const char *way, struct rl_error *err)
{
	if (file->count)
		return 0;
	return rl_error_set(
	    err, RL_ERROR_USAGE, ENODATA,
	    "%s says no limit at all, and every one that there is would be deleted: nothing was changed; "
	    "expected lines of set-limit, allow or deny; %s",
	    file->name, way);
}

void rl_cmd_apply_print(const char *name, enum rl_apply_how how, const struct rl_applied *applied)
{
	const struct rl_diff_counts *said = &applied->said;

	printf("policy of %s %s: %zu limit%s, %zu new, %zu changed, %zu deleted, %zu as they were\n", name,
	       how == RL_APPLY ? "in force" : "is right, and would be in force", said->limits,
	       said->limits == 1 ? "" : "s", said->come, said->changed, said->gone, said->same);
	note_of_debts(applied);
}

/* Is it in force, and not as it was? Then the operator's own session may be held to it. */
static void warn_of_lockout(const struct rl_state *state, const struct rl_policy_file *file,
			    const struct rl_applied *applied)
{
	if (!applied->said.come && !applied->said.changed && !applied->said.gone)
		return;
	rl_lockout_warn(state, NULL);
	for (size_t i = 0; i < file->count; i++)
		if (file->lines[i].target.kind == RL_TARGET_DEVICE)
			rl_lockout_warn(state, &file->lines[i].target);
}

/* Bursts that hold less than the largest packets of a device. */
static void warn_of_frames(const struct rl_state *state)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	struct rl_error ignored;
	size_t count = 0;

	if (rl_state_attached(state, true, attached, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++)
		if (attached[i].where == RL_HERE)
			rl_frames_warn(state, attached[i].name, (enum rl_mode)attached[i].device.mode);
}

static int resolve(const struct rl_state *state, struct rl_policy_file *file, struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	size_t count;
	int rc = rl_state_attached(state, true, attached, &count, err);

	return rc ? rc : rl_policy_file_resolve(file, attached, count, err);
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	RL_POLICY_FILE struct rl_policy_file file = {};
	struct rl_applied applied;
	RL_CLOSE int lock = -1;
	const char *path;
	int count, rc = rl_cmd_parse(&rl_cmd_apply, argc, argv, 1, 1, &path, &count, err);
	enum rl_apply_how how = check ? RL_APPLY_CHECK : RL_APPLY;

	if (!rc)
		rc = rl_policy_file_open(path, &file, err);
	if (!rc && !empty)
		rc = rl_cmd_apply_says(&file, "`apply --empty` does it", err);
	if (!rc)
		rc = rl_policy_file_check(&file, err);
	if (!rc)
		rc = rl_privilege_check("apply", err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = resolve(&state, &file, err);
	if (!rc)
		rc = rl_policy_apply(&state, &file, how, rl_clock_ns(), &applied, err);
	if (rc)
		return rc;
	rl_cmd_apply_print(file.name, how, &applied);
	rl_attached_warn_none(&state);
	if (how == RL_APPLY) {
		warn_of_frames(&state);
		warn_of_lockout(&state, &file, &applied);
	}
	return 0;
}

const struct rl_command rl_cmd_apply = {
    .name = "apply",
    .arguments = "FILE [--check] [--empty]",
    .summary = "Make the policy what FILE says, all of it at once",
    .help =
	"FILE, or - for standard input, has lines of set-limit, allow and deny, written as on the command line but without\n"
	"`rl-agent`; empty lines, and those that begin with #, are left out. `rl-agent list --policy` prints such lines.\n\n"
	"All or nothing: the file is read and checked as a whole before anything changes, and a packet sees the old policy\n"
	"or the new one. What the file doesn't say is deleted; a file that says no limit at all is refused, unless --empty is\n"
	"given. A limit that is there and that the file says again keeps its buckets, what they owe, and its counters; nothing\n"
	"is refilled. Each line states the whole limit.\n",
    .options = options,
    .run = run,
};
