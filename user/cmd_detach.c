// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attached.h"
#include "cleanup.h"
#include "cmd.h"
#include "device.h"
#include "hook.h"
#include "netns.h"
#include "plain.h"

static int keep, all, stale;

static const struct poptOption options[] = {
    {"keep", 'k', POPT_ARG_NONE, &keep, 0, "keep policy and buckets for the next attach", NULL},
    {"all", 'a', POPT_ARG_NONE, &all, 0, "every device of this network namespace", NULL},
    {"stale", 0, POPT_ARG_NONE, &stale, 0, "clear what devices and network namespaces that are gone left",
     NULL},
    POPT_TABLEEND,
};

/* Take one device out. */
static int device_detach(const struct rl_state *state, const struct rl_attached *attached,
			 struct rl_error *err)
{
	char path[RL_PATH_LEN];
	const struct rl_device none = {};
	int rc = rl_hook_detach(rl_state_link_path(state, attached->slot, path));

	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "can't remove %s: %s", path, strerror(-rc));
	return rl_attached_write(state, attached->slot, &none, err);
}

static int state_end(const struct rl_state *state, bool unknown, struct rl_error *err)
{
	int rc = rl_state_remove(state, unknown, err);

	if (!rc)
		rl_state_tidy();
	return rc;
}

static int none_found(const char *name, size_t count, struct rl_error *err)
{
	const char *foreign =
	    rl_device_index(name) ? "; an XDP program on it that isn't rl-agent's is left alone" : "";

	if (!count)
		return rl_error_set(err, RL_ERROR_NOT_ATTACHED, ENODEV,
				    "not attached to %s nor to anything else here%s; `rl-agent "
				    "detach --all` gives up "
				    "the policy that was kept",
				    name, foreign);
	return rl_error_set(err, RL_ERROR_NOT_ATTACHED, ENODEV,
			    "not attached to %s%s: `rl-agent status` shows where it is", name, foreign);
}

/* Whoever wants to detach needs no advice on how to attach. */
static int nothing_attached(struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_NOT_ATTACHED, ENOENT,
			    "nothing is attached in this network namespace");
}

static int detach_one(const struct rl_state *state, const char *name, struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	const struct rl_attached *found;
	size_t count, left = 0;
	int rc = rl_state_attached(state, true, attached, &count, err);

	if (rc)
		return rc;
	found = rl_attached_find(attached, count, name);
	if (!found)
		return none_found(name, count, err);
	rc = device_detach(state, found, err);
	for (size_t i = 0; i < count; i++)
		left += &attached[i] != found && attached[i].where != RL_GONE;
	if (!rc && !left && !keep)
		rc = state_end(state, false, err);
	if (rc)
		return rc;
	rl_plain_print(stdout, "%s: detached%s\n", found->name,
		       left   ? "; policy and buckets serve the other devices"
		       : keep ? "; policy and buckets are kept"
			      : "; policy and buckets are removed");
	return 0;
}

static int detach_all(struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	struct rl_attached attached[RL_MAX_DEVICES];
	size_t count;
	int rc;

	if (!keep) {
		rc = rl_state_find(&state, err);
		if (!rc)
			rc = state_end(&state, true, err);
		if (!rc)
			printf("detached from every device; policy and buckets are removed\n");
		return rc;
	}
	rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_state_attached(&state, true, attached, &count, err);
	for (size_t i = 0; !rc && i < count; i++)
		rc = device_detach(&state, &attached[i], err);
	if (!rc)
		printf("detached from every device; policy and buckets are kept\n");
	return rc;
}

/* A state that nothing can come back to: never finished, or of a namespace that is gone. */
static int stale_remove(struct rl_state *state, __u64 cookie, const char *why, size_t *cleared,
			struct rl_error *err)
{
	int rc;

	snprintf(state->path, sizeof(state->path), RL_BASE "/%" PRIu64, (uint64_t)cookie);
	rc = rl_state_remove(state, true, err);
	if (rc)
		return rc;
	printf("%s: cleared, %s\n", state->path, why);
	*cleared += 1;
	*err = (struct rl_error){};
	return 0;
}

/* One namespace's leftovers. `present`: the namespace was found to exist, so its policy may be wanted again. */
static int stale_clear(__u64 cookie, bool present, size_t *cleared, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	struct rl_attached attached[RL_MAX_DEVICES];
	size_t count, left = 0, before = *cleared;
	int rc = rl_state_open_cookie(cookie, &state, err);

	if (rc == -ENOENT)
		return stale_remove(&state, cookie, "an attach was killed before it was done", cleared, err);
	if (rc == -EPROTO && !present)
		return stale_remove(&state, cookie, "the network namespace is gone", cleared, err);
	if (!rc)
		rc = rl_state_attached(&state, false, attached, &count, err);
	for (size_t i = 0; !rc && i < count; i++) {
		if (attached[i].where != RL_GONE) {
			left++;
			continue;
		}
		rc = device_detach(&state, &attached[i], err);
		if (rc)
			break;
		rl_plain_print(stdout, "%s: cleared, the device is gone\n", attached[i].name);
		*cleared += 1;
	}
	if (rc || left)
		return rc;
	if (!present && count)
		return stale_remove(&state, cookie, "the network namespace is gone", cleared, err);
	if (!present && !count) {
		/* Kept on purpose, and a namespace that something else than a process or a name holds can't be seen. */
		printf(
		    "%s: left alone: a policy that was kept, for a network namespace that can't be seen from here; if it is "
		    "gone for good, remove the folder\n",
		    state.path);
		return 0;
	}
	if (*cleared > before)
		printf("no device is left in network namespace %" PRIu64
		       ": its policy and buckets are kept; `rl-agent detach --all` in it gives them up\n",
		       (uint64_t)cookie);
	return 0;
}

/* Go on behind one that fails; the first failure is told at the end. */
static int detach_stale(struct rl_error *err)
{
	RL_FREE unsigned long long *present = NULL;
	RL_FREE __u64 *cookies = NULL;
	size_t present_count, count, cleared = 0;
	int rc = rl_netns_cookies(&present, &present_count, err), first = 0;

	if (!rc)
		rc = rl_state_list(&cookies, &count, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++) {
		struct rl_error one = {};
		bool found = false;

		for (size_t k = 0; k < present_count; k++)
			found |= present[k] == cookies[i];
		rc = stale_clear(cookies[i], found, &cleared, &one);
		if (rc && !first) {
			first = rc;
			*err = one;
		}
	}
	rl_state_tidy();
	if (!cleared && !first)
		printf("nothing stale\n");
	return first;
}

static int request_parse(int argc, const char **argv, const char **name, struct rl_error *err)
{
	int count, rc = rl_cmd_parse(&rl_cmd_detach, argc, argv, 0, 1, name, &count, err);

	if (rc)
		return rc;
	if ((*name != NULL) + all + stale != 1)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "detach: expected one of a device's name, --all and --stale; `rl-agent status` shows the devices");
	if (stale && keep)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "detach: --keep goes with a device or --all, and --stale clears only what nothing can come "
		    "back to: leave one of them out");
	return 0;
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	RL_CLOSE int lock = -1;
	const char *name = NULL;
	char own[RL_NAME_LEN];
	int rc = request_parse(argc, argv, &name, err);

	if (!rc && name)
		rc = rl_device_name(name, own, err);
	if (!rc)
		rc = rl_privilege_check("detach", err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (rc == -ENOENT && stale && err->kind == RL_ERROR_NOT_ATTACHED) {
		printf("nothing stale\n");
		*err = (struct rl_error){};
		return 0;
	}
	if (rc == -ENOENT && err->kind == RL_ERROR_NOT_ATTACHED)
		return nothing_attached(err);
	if (rc)
		return rc;
	if (all)
		return detach_all(err);
	if (stale)
		return detach_stale(err);
	rc = rl_state_open(&state, err);
	if (rc == -ENOENT && err->kind == RL_ERROR_NOT_ATTACHED)
		return nothing_attached(err);
	return rc ? rc : detach_one(&state, own, err);
}

const struct rl_command rl_cmd_detach = {
    .name = "detach",
    .arguments = "DEV [--keep] | --all [--keep] | --stale",
    .summary = "Take the limiter off DEV",
    .help =
	"The last detach removes policy, buckets and counters, unless --keep. A program that isn't "
	"rl-agent's is never\n"
	"touched. --stale clears what devices that are gone left, and whole policies where the network namespace is\n"
	"gone too; a policy that can still be used stays.\n",
    .options = options,
    .run = run,
};
