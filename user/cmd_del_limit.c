// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>

#include "cleanup.h"
#include "cmd.h"
#include "lockout.h"
#include "policy.h"
#include "target.h"

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	char text[RL_TARGET_TEXT];
	RL_CLOSE int lock = -1;
	struct rl_prefix target;
	const char *word;
	int count, rc;

	rc = rl_cmd_parse(&rl_cmd_del_limit, argc, argv, 1, 1, &word, &count, err);
	if (!rc)
		rc = rl_target_parse(word, &target, err);
	if (!rc)
		rc = rl_privilege_check("del-limit", err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_policy_delete(&state, &target, err);
	if (rc)
		return rc;
	printf("%s: limit deleted\n", rl_target_print(&target, text));
	rl_lockout_warn(&state, &target);
	return 0;
}

const struct rl_command rl_cmd_del_limit = {
    .name = "del-limit",
    .arguments = "TARGET",
    .summary = "Delete the limit of TARGET",
    .help = "TARGET is written as `rl-agent list` shows it. Its sources fall to the next shorter prefix that "
	    "has a limit,\n"
	    "or to none.\n",
    .run = run,
};
