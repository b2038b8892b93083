// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_trust.c - allow and deny: what stands in the place of a prefix's limit. */
#include <stdio.h>

#include "cleanup.h"
#include "clock.h"
#include "cmd.h"
#include "lockout.h"
#include "policy.h"
#include "statement.h"
#include "target.h"

static const char *outcome(const struct rl_terms *terms)
{
	if (terms->action == RL_ACTION_ALLOW)
		return "allowed, never limited";
	return terms->shadow ? "denied, in shadow: nothing drops" : "denied, all of it drops";
}

static int run_trust(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	struct rl_statement statement;
	RL_CLOSE int lock = -1;
	char text[RL_TARGET_TEXT];
	int rc = rl_statement_parse(argc, argv, &statement, err);

	if (!rc)
		rc = rl_privilege_check(argv[0], err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_policy_check(&state, &statement.target, NULL, &statement.terms, err);
	if (!rc)
		rc = rl_policy_set(&state, &statement.target, &statement.terms, rl_clock_ns(), err);
	if (rc)
		return rc;
	printf("%s: %s\n", rl_target_print(&statement.target, text), outcome(&statement.terms));
	rl_lockout_warn(&state, &statement.target);
	return 0;
}

const struct rl_command rl_cmd_allow = {
    .name = RL_ALLOW,
    .arguments = RL_ALLOW_ARGUMENTS,
    .summary = "Let the sources of PREFIX pass, whatever other limits say",
    .help =
	"PREFIX is an address, a prefix or `any`. It takes the place of the limits that PREFIX has, and the longest\n"
	"prefix wins: a longer one with a limit is limited still. Its packets are counted and charged nowhere,\n"
	"not to a device's limit either.\n"
	"`del-limit PREFIX` takes it back.\n",
    .run = run_trust,
};

const struct rl_command rl_cmd_deny = {
    .name = RL_DENY,
    .arguments = RL_DENY_ARGUMENTS,
    .summary = "Drop whatever the sources of PREFIX send",
    .help =
	"PREFIX is an address, a prefix or `any`. It takes the place of the limits that PREFIX has, and the longest\n"
	"prefix wins. ARP, and neighbour discovery within its budget, pass. What drops is charged nowhere, not to a\n"
	"device's limit either. --shadow counts without dropping; `del-limit PREFIX` takes it back.\n",
    .options = rl_deny_options,
    .run = run_trust,
};
