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

	rc = rl_cmd_parse(&rl_cmd_stats, argc, argv, 0, 0, NULL, &count, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_snapshot_take(&state, RL_SNAPSHOT_DEVICES | RL_SNAPSHOT_LIMITS | RL_SNAPSHOT_COUNTS,
				      &snapshot, err);
	if (rc)
		return rc;
	rc = rl_cmd_json ? rl_view_json_print(rl_view_stats_json(&snapshot), stdout)
			 : rl_view_stats_table(&snapshot, stdout);
	return rc ? rl_error_set(err, RL_ERROR_KERNEL, -rc, "out of memory while printing") : 0;
}

static void reasons_print(int first, int end)
{
	for (int reason = first; reason < end; reason++)
		printf("  %-19s %s\n", rl_reason_name(reason), rl_reason_about(reason));
}

static void help_more(void)
{
	printf("\nReasons to pass:\n");
	reasons_print(0, RL_SHADOW_FIRST);
	printf(
	    "Reasons to drop; with shadow_ in front, what passed because the limit or the device is in shadow:\n");
	reasons_print(RL_DROP_FIRST, RL_REASONS);
	printf(
	    "Neighbour discovery beyond its budget is limited as any other packet is. Frames that can't be parsed pass.\n");
}

const struct rl_command rl_cmd_stats = {
    .name = "stats",
    .arguments = "[-j]",
    .summary = "Show what was passed and dropped, by device, reason and limit",
    .help =
	"Packets and bytes since the device was attached, the limit was made, or `reset`. Bytes are those of whole\n"
	"frames, from the Ethernet header on. Each packet has exactly one reason, so received is the sum of all\n"
	"reasons. A limit counts as passed what it applied to and what passed, as dropped what it dropped itself, and\n"
	"in shadow what it would have dropped, which is among what passed.\n",
    .help_more = help_more,
    .options = options,
    .run = run,
};
