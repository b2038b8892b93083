// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>

#include "cmd.h"
#include "snapshot.h"
#include "view.h"

static int as_policy;

static const struct poptOption options[] = {
    RL_CMD_OPTION_JSON,
    {"policy", 0, POPT_ARG_NONE, &as_policy, 0, "print lines that `rl-agent apply` takes", NULL},
    POPT_TABLEEND,
};

static int options_check(struct rl_error *err)
{
	if (!as_policy || !rl_cmd_json)
		return 0;
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
			    "--json and --policy contradict each other: give one of them");
}

static int print(const struct rl_snapshot *snapshot)
{
	if (as_policy)
		return rl_view_list_policy(snapshot, stdout);
	return rl_cmd_json ? rl_view_json_print(rl_view_list_json(snapshot), stdout)
			   : rl_view_list_table(snapshot, stdout);
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_SNAPSHOT struct rl_snapshot snapshot = {};
	RL_STATE struct rl_state state = RL_STATE_INIT;
	int rc, count;

	rc = rl_cmd_parse(&rl_cmd_list, argc, argv, 0, 0, NULL, &count, err);
	if (!rc)
		rc = options_check(err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_snapshot_take(&state, RL_SNAPSHOT_LIMITS, &snapshot, err);
	if (rc)
		return rc;
	rc = print(&snapshot);
	return rc ? rl_error_set(err, RL_ERROR_KERNEL, -rc, "out of memory while printing") : 0;
}

const struct rl_command rl_cmd_list = {
    .name = "list",
    .arguments = "[-j | --policy]",
    .summary = "Show the limits in force",
    .help =
	"Each target with what was said of it, most general first, and its classes behind it. A prefix without a\n"
	"tenant of its own shows that of the nearest prefix around it. --policy: as a file for `rl-agent apply`.\n",
    .options = options,
    .run = run,
};
