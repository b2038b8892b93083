// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "attached.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "device.h"
#include "hook.h"
#include "limit.h"
#include "plain.h"
#include "policy.h"
#include "statement.h"
#include "walk.h"

const char *rl_whereabouts_name(enum rl_whereabouts where)
{
	static const char *const names[] = {[RL_HERE] = "here", [RL_MOVED] = "moved", [RL_GONE] = "gone"};

	return names[where];
}

int rl_state_attached(const struct rl_state *state, bool own, struct rl_attached *out, size_t *count,
		      struct rl_error *err)
{
	size_t n = 0;

	for (__u32 slot = 0; slot < RL_MAX_DEVICES; slot++) {
		struct rl_attached one = {.slot = slot};
		char pin[RL_PATH_LEN];

		if (bpf_map_lookup_elem(state->map[RL_MAP_DEVICES], &slot, &one.device))
			return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't read the devices' map: %s",
					    strerror(errno));
		/* An entry without a pin is an attach that was killed before it took effect. */
		if (!(one.device.flags & RL_DEVICE_ATTACHED) ||
		    !rl_hook_read(rl_state_link_path(state, slot, pin), own, &one))
			continue;
		if (!own || one.where != RL_HERE || !if_indextoname(one.ifindex, one.name))
			memcpy(one.name, one.device.name, sizeof(one.name));
		one.name[sizeof(one.name) - 1] = '\0';
		out[n++] = one;
	}
	*count = n;
	return 0;
}

const struct rl_attached *rl_attached_find(const struct rl_attached *attached, size_t count, const char *name)
{
	__u32 ifindex = rl_device_index(name);
	const struct rl_attached *found = NULL;

	for (size_t i = 0; i < count; i++) {
		if (attached[i].where == RL_HERE && ifindex && attached[i].ifindex == ifindex)
			return &attached[i];
		if (attached[i].where != RL_HERE && !strcmp(attached[i].name, name))
			found = &attached[i];
	}
	return found;
}

/* Its limit would hold nothing, and nobody would notice. */
static int device_missing(const char *name, const struct rl_attached *attached, size_t count,
			  struct rl_error *err)
{
	char names[RL_MAX_DEVICES * (RL_NAME_LEN + 2)] = "";
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		if (attached[i].where != RL_GONE)
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
						 attached[i].name);
	return rl_error_set(
	    err, RL_ERROR_USAGE, ENOENT,
	    "the device \"%s\" isn't attached, and a limit would hold nothing: `rl-agent attach %s` "
	    "first%s%s",
	    name, name, used ? ", or name one that is: " : "; nothing is attached here", names);
}

int rl_attached_resolve(const struct rl_attached *attached, size_t count, struct rl_target *target,
			struct rl_error *err)
{
	const struct rl_attached *found = rl_attached_find(attached, count, target->name);

	if (!found || found->where == RL_GONE)
		return device_missing(target->name, attached, count, err);
	memset(target->name, 0, sizeof(target->name));
	memcpy(target->name, found->name, sizeof(found->name));
	return 0;
}

void rl_attached_target(const struct rl_state *state, struct rl_target *target)
{
	char name[RL_NAME_LEN];
	struct rl_error ignored;
	struct rl_limit limit;

	if (target->kind != RL_TARGET_DEVICE || rl_policy_find(state, target, NULL, &limit) ||
	    rl_device_name(target->name, name, &ignored))
		return;
	memset(target->name, 0, sizeof(target->name));
	memcpy(target->name, name, sizeof(name));
}

int rl_attached_write(const struct rl_state *state, __u32 slot, const struct rl_device *device,
		      struct rl_error *err)
{
	if (bpf_map_update_elem(state->map[RL_MAP_DEVICES], &slot, device, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't write the devices' map: %s",
				    strerror(errno));
	return 0;
}

/* Its name has changed, and with it the limit that holds it: slots, 0 for none. */
static void rename_tell(const struct rl_state *state, const struct rl_device *was, const struct rl_device *is)
{
	char terms[RL_TERMS_TEXT], again[RL_STATEMENT_TEXT];
	struct rl_target target = {.kind = RL_TARGET_DEVICE};
	bool had, has;
	struct rl_limit old, new;

	had = rl_policy_slot(state, was->limit, &old);
	has = rl_policy_slot(state, is->limit, &new);
	if (!had && !has)
		return;
	rl_plain_print(stderr, "rl-agent: warning: %s was called %s: ", is->name, was->name);
	if (had)
		rl_plain_print(stderr, "the limit of dev:%s (%s) doesn't hold it any more", old.target.name,
			       rl_terms_print(&old.terms, terms));
	if (has)
		rl_plain_print(stderr, "%sthat of dev:%s (%s) holds it now", had ? "; " : "", new.target.name,
			       rl_terms_print(&new.terms, terms));
	memcpy(target.name, is->name, sizeof(is->name));
	if (had)
		rl_plain_print(stderr, "; `rl-agent %s` sets it again for the new name",
			       rl_statement_print(&target, &old.terms, again));
	fputc('\n', stderr);
}

int rl_attached_rename(const struct rl_state *state, struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	size_t count = 0;
	int rc = rl_state_attached(state, true, attached, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		struct rl_device *device = &attached[i].device, was = *device;

		if (attached[i].where != RL_HERE ||
		    !strncmp(device->name, attached[i].name, sizeof(device->name)))
			continue;
		memcpy(device->name, attached[i].name, sizeof(device->name));
		device->limit = rl_policy_device(state, device->name);
		rc = rl_attached_write(state, attached[i].slot, device, err);
		if (!rc)
			rename_tell(state, &was, device);
	}
	return rc;
}

void rl_attached_warn_none(const struct rl_state *state)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	struct rl_error ignored;
	size_t count;

	if (rl_state_attached(state, true, attached, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++)
		if (attached[i].where != RL_GONE)
			return;
	fprintf(
	    stderr,
	    "rl-agent: warning: no device is attached: limits take effect with the next `rl-agent attach`\n");
}

static bool is_attached(const struct rl_attached *attached, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (attached[i].where == RL_HERE && !strcmp(attached[i].name, name))
			return true;
	return false;
}

/* The first limit of a device that isn't attached. */
static bool idle_find(const struct rl_state *state, struct rl_limit *out)
{
	RL_FREE struct rl_walk_name *names = NULL;
	struct rl_attached attached[RL_MAX_DEVICES];
	size_t count = 0, attached_count = 0;
	struct rl_error ignored;

	if (rl_state_attached(state, true, attached, &attached_count, &ignored) ||
	    rl_walk_names(state, &names, &count, &ignored))
		return false;
	for (size_t i = 0; i < count; i++)
		if (names[i].target.kind == RL_TARGET_DEVICE &&
		    !is_attached(attached, attached_count, names[i].target.name) &&
		    rl_policy_slot(state, names[i].slot, out))
			return true;
	return false;
}

void rl_attached_tell_idle(const struct rl_state *state, const char *name)
{
	struct rl_target target = {.kind = RL_TARGET_DEVICE};
	char terms[RL_TERMS_TEXT], again[RL_STATEMENT_TEXT];
	struct rl_limit idle;

	if (rl_policy_device(state, name) || !idle_find(state, &idle))
		return;
	snprintf(target.name, sizeof(target.name), "%s", name);
	rl_plain_print(
	    stderr,
	    "rl-agent: warning: %s has no limit of its own; that of dev:%s (%s) holds no device, since none of that name is "
	    "attached: `rl-agent %s` sets it for %s, `rl-agent del-limit dev:%s` gives it up\n",
	    name, idle.target.name, rl_terms_print(&idle.terms, terms),
	    rl_statement_print(&target, &idle.terms, again), name, idle.target.name);
}
