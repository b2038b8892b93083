// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>

#include "attached.h"
#include "class.h"
#include "cleanup.h"
#include "clock.h"
#include "cmd.h"
#include "lockout.h"
#include "plain.h"
#include "policy.h"
#include "target.h"

static const char *class_text;

static const struct poptOption options[] = {
    {"class", 0, POPT_ARG_STRING, &class_text, 0, "only the limit of this class of its packets", "CLASS"},
    POPT_TABLEEND,
};

static int request_parse(int argc, const char **argv, struct rl_target *target, struct rl_class *class,
			 struct rl_error *err)
{
	const char *word;
	int count, rc = rl_cmd_parse(&rl_cmd_del_limit, argc, argv, 1, 1, &word, &count, err);

	*class = (struct rl_class){};
	if (!rc)
		rc = rl_cmd_target(word, target, err);
	return rc || !class_text ? rc : rl_class_parse(class_text, class, err);
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	char text[RL_TARGET_TEXT], what[RL_CLASS_TEXT];
	RL_CLOSE int lock = -1;
	struct rl_target target;
	struct rl_class class;
	bool is_class;
	int rc = request_parse(argc, argv, &target, &class, err);

	if (!rc)
		rc = rl_privilege_check("del-limit", err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rl_attached_target(&state, &target);
	if (!rc)
		rc = rl_policy_check(&state, &target, &class, NULL, err);
	if (!rc)
		rc = rl_policy_delete(&state, &target, &class, rl_clock_ns(), err);
	if (rc)
		return rc;
	is_class = rl_class_is_set(&class);
	rl_plain_print(stdout, "%s%s%s: limit deleted\n", rl_target_print(&target, text), is_class ? " " : "",
		       is_class ? rl_class_print(&class, what) : "");
	rl_lockout_warn(&state, &target);
	return 0;
}

const struct rl_command rl_cmd_del_limit = {
    .name = "del-limit",
    .arguments = "TARGET [--class CLASS]",
    .summary = "Delete the limits of TARGET, or what allow or deny said of it",
    .help =
	"TARGET is written as `rl-agent list` shows it. With its general limit a prefix loses those of its classes. Its\n"
	"sources fall to the next shorter prefix that has a limit, or to none. A tenant keeps its prefixes.\n",
    .options = options,
    .run = run,
};
