// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* policy.c - the writing half of policy.h: what every change begins and ends with. policy_read.c is the other half. */
#include "policy.h"

#include <errno.h>

#include "class.h"
#include "names.h"
#include "policy_parts.h"
#include "prefixes.h"
#include "room.h"
#include "stage.h"
#include "target.h"

const struct rl_terms rl_no_terms = {.action = RL_ACTION_LIMIT, .priority = RL_PRIORITY_UNSET};

int rl_policy_absent(const struct rl_target *target, const struct rl_class *class, struct rl_error *err)
{
	char text[RL_TARGET_TEXT], what[RL_CLASS_TEXT];
	bool is_class = class && rl_class_is_set(class);

	return rl_error_set(err, RL_ERROR_USAGE, ENOENT,
			    "%s has no limit of its own%s%s: nothing deleted; `rl-agent list` shows the "
			    "targets that have one",
			    rl_target_print(target, text), is_class ? " for the class " : "",
			    is_class ? rl_class_print(class, what) : "");
}

/* A change: what to do to which limit. Without terms: delete it. */
struct request {
	const struct rl_target *target;
	const struct rl_terms *terms;
	const struct rl_class *class;
	__u64 now;
};

static int request_do(const struct rl_heads *heads, const struct request *request, struct rl_error *err)
{
	const struct rl_target *target = request->target;
	bool prefix = target->kind == RL_TARGET_PREFIX;
	__u32 slot;

	if (request->terms)
		return prefix ? rl_prefixes_set(heads, target, request->terms, request->now, err)
			      : rl_names_set(heads, target, request->terms, request->now, &slot, err);
	if (prefix)
		return rl_prefixes_delete(heads, target, request->class, err);
	if (request->class && rl_class_is_set(request->class))
		return rl_policy_absent(target, request->class, err);
	return rl_names_delete(heads, target, request->now, err);
}

/* Where there is no room, once more with what killed agents had claimed. */
static int request_run(const struct rl_state *state, const struct request *request, struct rl_error *err)
{
	RL_HEADS struct rl_heads heads = {};
	int rc = rl_heads_open(state, RL_HEADS_WRITE, &heads, err);

	if (!rc)
		rc = rl_stage_mend(&heads, err);
	if (rc)
		return rc;
	rc = request_do(&heads, request, err);
	if (rc != -ENOSPC || err->kind != RL_ERROR_KERNEL)
		return rc;
	rc = rl_room_reclaim(&heads, err);
	return rc ? rc : request_do(&heads, request, err);
}

int rl_policy_set(const struct rl_state *state, const struct rl_target *target, const struct rl_terms *terms,
		  __u64 now, struct rl_error *err)
{
	const struct request request = {.target = target, .terms = terms, .now = now};

	return request_run(state, &request, err);
}

int rl_policy_delete(const struct rl_state *state, const struct rl_target *target,
		     const struct rl_class *class, __u64 now, struct rl_error *err)
{
	const struct request request = {.target = target, .class = class, .now = now};

	return request_run(state, &request, err);
}
