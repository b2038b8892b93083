// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>

#include "cmd.h"
#include "snapshot.h"
#include "view.h"

static const struct poptOption options[] = {RL_CMD_OPTION_JSON, POPT_TABLEEND};

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_SNAPSHOT struct rl_snapshot snapshot = {};
	RL_STATE struct rl_state state = RL_STATE_INIT;
	int rc, count;

	rc = rl_cmd_parse(&rl_cmd_list, argc, argv, 0, 0, NULL, &count, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_snapshot_take(&state, RL_SNAPSHOT_LIMITS, &snapshot, err);
	if (rc)
		return rc;
	rc = rl_cmd_json ? rl_view_json_print(rl_view_list_json(&snapshot), stdout)
			 : rl_view_list_table(&snapshot, stdout);
	return rc ? rl_error_set(err, RL_ERROR_KERNEL, -rc, "out of memory while printing") : 0;
}

const struct rl_command rl_cmd_list = {
    .name = "list",
    .arguments = "[-j]",
    .summary = "Show the limits in force",
    .help =
	"Each target with what was said of it, most general first, and its classes behind it. A prefix without a\n"
	"tenant of its own shows that of the nearest prefix around it.\n",
    .options = options,
    .run = run,
};
