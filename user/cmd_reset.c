// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>

#include "attached.h"
#include "cleanup.h"
#include "cmd.h"
#include "plain.h"
#include "reset.h"
#include "target.h"

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	RL_CLOSE int lock = -1;
	char text[RL_TARGET_TEXT];
	const char *word = NULL;
	struct rl_target target;
	int rc, count;

	rc = rl_cmd_parse(&rl_cmd_reset, argc, argv, 0, 1, &word, &count, err);
	if (!rc && word)
		rc = rl_cmd_target(word, &target, err);
	if (!rc)
		rc = rl_privilege_check(rl_cmd_reset.name, err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc && word)
		rl_attached_target(&state, &target);
	if (!rc)
		rc = rl_reset_counters(&state, word ? &target : NULL, err);
	if (!rc)
		rl_plain_print(stdout, "%s: counters are zero, buckets as they were\n",
			       word ? rl_target_print(&target, text) : "everything");
	return rc;
}

const struct rl_command rl_cmd_reset = {
    .name = "reset",
    .arguments = "[TARGET]",
    .summary = "Zero the counters of a target, or all of them",
    .help =
	"Without TARGET: those of every device, limit and source. With it: those of its limit, its classes and its\n"
	"sources; of `dev:NAME`, the device's too. What sources owe stays as it is: no bucket is refilled.\n",
    .run = run,
};
