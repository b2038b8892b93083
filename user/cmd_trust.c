// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_trust.c - allow and deny: what stands in the place of a prefix's limit. */
#include <errno.h>
#include <stdio.h>

#include "cleanup.h"
#include "clock.h"
#include "cmd.h"
#include "limit.h"
#include "lockout.h"
#include "policy.h"
#include "target.h"

static int prefix_parse(const struct rl_command *command, int argc, const char **argv, struct rl_target *out,
			struct rl_error *err)
{
	char text[RL_TARGET_TEXT];
	const char *word;
	int count, rc = rl_cmd_parse(command, argc, argv, 1, 1, &word, &count, err);

	if (!rc)
		rc = rl_target_parse(word, out, err);
	if (rc || out->kind == RL_TARGET_PREFIX)
		return rc;
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
			    "%s takes sources, and %s is none; expected an address, a prefix, or any",
			    command->name, rl_target_print(out, text));
}

static int run_as(const struct rl_command *command, enum rl_action action, int argc, const char **argv,
		  struct rl_error *err)
{
	struct rl_terms terms = {.action = (__u8)action, .priority = RL_PRIORITY_UNSET};
	RL_STATE struct rl_state state = RL_STATE_INIT;
	RL_CLOSE int lock = -1;
	char text[RL_TARGET_TEXT];
	struct rl_target target;
	int rc = prefix_parse(command, argc, argv, &target, err);

	if (!rc)
		rc = rl_terms_complete(&target, &terms, err);
	if (!rc)
		rc = rl_privilege_check(command->name, err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_policy_check(&state, &target, NULL, &terms, err);
	if (!rc)
		rc = rl_policy_set(&state, &target, &terms, rl_clock_ns(), err);
	if (rc)
		return rc;
	printf("%s: %s\n", rl_target_print(&target, text),
	       action == RL_ACTION_ALLOW ? "allowed, never limited" : "denied, all of it drops");
	rl_lockout_warn(&state, &target);
	return 0;
}

static int run_allow(int argc, const char **argv, struct rl_error *err)
{
	return run_as(&rl_cmd_allow, RL_ACTION_ALLOW, argc, argv, err);
}

static int run_deny(int argc, const char **argv, struct rl_error *err)
{
	return run_as(&rl_cmd_deny, RL_ACTION_DENY, argc, argv, err);
}

const struct rl_command rl_cmd_allow = {
    .name = "allow",
    .arguments = "PREFIX",
    .summary = "Let the sources of PREFIX pass, whatever other limits say",
    .help =
	"PREFIX is an address, a prefix or `any`. It takes the place of the limits that PREFIX has, and the longest\n"
	"prefix wins: a longer one with a limit is limited still. Its packets are counted and charged nowhere,\n"
	"not to a device's limit either.\n"
	"`del-limit PREFIX` takes it back.\n",
    .run = run_allow,
};

const struct rl_command rl_cmd_deny = {
    .name = "deny",
    .arguments = "PREFIX",
    .summary = "Drop whatever the sources of PREFIX send",
    .help =
	"PREFIX is an address, a prefix or `any`. It takes the place of the limits that PREFIX has, and the longest\n"
	"prefix wins. ARP, and neighbour discovery within its budget, pass. What drops is charged nowhere, not to a\n"
	"device's limit either. `set-limit PREFIX --shadow` counts without\n"
	"dropping; `del-limit PREFIX` takes it back.\n",
    .run = run_deny,
};
