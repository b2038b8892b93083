// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "policy.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "limit.h"
#include "target.h"

static int entry_compare(const void *a, const void *b)
{
	return rl_target_compare(&((const struct rl_policy_entry *)a)->target,
				 &((const struct rl_policy_entry *)b)->target);
}

/* A key that was deleted while we stood on it sends the kernel's iteration back to the start: the same keys
 * come again. */
static size_t drop_repeats(struct rl_policy_entry *entries, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!kept || rl_target_compare(&entries[kept - 1].target, &entries[i].target))
			entries[kept++] = entries[i];
	return kept;
}

/* The key behind *key, or the first one where it is NULL. -ENOENT at the end. */
static int key_next(int fd, const struct rl_prefix *key, struct rl_prefix *next)
{
	for (int try = 0; try < 3; try++) {
		if (bpf_map_get_next_key(fd, key, next) == 0)
			return 0;
		if (errno != ENOMEM && errno != EAGAIN) /* the kernel allocates for this, and must not wait */
			break;
	}
	return -errno;
}

int rl_policy_read(const struct rl_state *state, struct rl_policy_entry **out, size_t *count,
		   struct rl_error *err)
{
	RL_FREE struct rl_policy_entry *entries = NULL;
	int fd = state->map[RL_MAP_POLICY], rc;
	struct rl_prefix key, *previous = NULL;
	size_t n = 0, room = 0, steps = 0;

	for (; (rc = key_next(fd, previous, &key)) == 0; steps++) {
		struct rl_policy_entry entry = {.target = key};

		previous = &key;
		/* Bounded, so that it ends even if somebody deletes every key that we stand on. */
		if (steps >= 4UL * RL_MAX_LIMITS)
			return rl_error_set(err, RL_ERROR_KERNEL, EAGAIN,
					    "the policy changes faster than it can be read: try again");
		if (bpf_map_lookup_elem(fd, &key, &entry.limit) || entry.limit.prefixlen != key.prefixlen)
			continue; /* deleted since */
		if (n == room) {
			struct rl_policy_entry *grown =
			    reallocarray(entries, room ? room * 2 : 64, sizeof(*entries));

			if (!grown)
				return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
			entries = grown;
			room = room ? room * 2 : 64;
		}
		entries[n++] = entry;
	}
	if (rc != -ENOENT)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "can't read the policy: %s", strerror(-rc));
	if (n)
		qsort(entries, n, sizeof(*entries), entry_compare);
	*count = drop_repeats(entries, n);
	*out = RL_TAKE_PTR(entries);
	return 0;
}

/* The target's own limit, and not that of a prefix around it. */
static bool policy_find(const struct rl_state *state, const struct rl_prefix *target, struct rl_limit *out)
{
	return bpf_map_lookup_elem(state->map[RL_MAP_POLICY], target, out) == 0 &&
	       out->prefixlen == target->prefixlen;
}

static int slot_owner(const struct rl_state *state, __u32 slot, __u32 *id, struct rl_error *err)
{
	if (bpf_map_lookup_elem(state->map[RL_MAP_SLOTS], &slot, id))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't read the slots' map: %s",
				    strerror(errno));
	return 0;
}

static int slot_give(const struct rl_state *state, __u32 slot, __u32 id, struct rl_error *err)
{
	if (bpf_map_update_elem(state->map[RL_MAP_SLOTS], &slot, &id, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't write the slots' map: %s",
				    strerror(errno));
	return 0;
}

/* A free slot, looked for from the id's own place on: so a slot that was just freed is taken again as late as
 * can be. */
static int slot_find(const struct rl_state *state, __u32 id, __u32 *out, struct rl_error *err)
{
	for (__u32 i = 0; i < RL_MAX_LIMITS; i++) {
		__u32 slot = (id + i) % RL_MAX_LIMITS, owner;
		int rc = slot_owner(state, slot, &owner, err);

		if (rc)
			return rc;
		if (!owner) {
			*out = slot;
			return 0;
		}
	}
	return -ENOSPC;
}

/* Free every slot whose owner isn't in the policy: what set-limits that were killed had claimed. */
static int slots_reclaim(const struct rl_state *state, struct rl_error *err)
{
	RL_FREE struct rl_policy_entry *entries = NULL;
	RL_FREE __u32 *owners = calloc(RL_MAX_LIMITS, sizeof(*owners));
	size_t count;
	int rc;

	if (!owners)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	rc = rl_policy_read(state, &entries, &count, err);
	for (size_t i = 0; !rc && i < count; i++)
		owners[entries[i].limit.slot % RL_MAX_LIMITS] = entries[i].limit.id;
	for (__u32 slot = 0; !rc && slot < RL_MAX_LIMITS; slot++)
		rc = slot_give(state, slot, owners[slot], err);
	return rc;
}

/* Take the next id for good: an id that was given once is never given again, whatever happens after this. */
static int id_take(const struct rl_state *state, __u32 *id, struct rl_error *err)
{
	int fd = state->map[RL_MAP_META];
	struct rl_meta meta;
	__u32 zero = 0;

	if (bpf_map_lookup_elem(fd, &zero, &meta))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't read the state's settings: %s",
				    strerror(errno));
	*id = meta.next_limit_id++;
	if (!meta.next_limit_id)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, EOVERFLOW,
		    "all of the 2^32 limit numbers are used up: `rl-agent detach --all`, and attach again");
	if (bpf_map_update_elem(fd, &zero, &meta, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't write the state's settings: %s",
				    strerror(errno));
	return 0;
}

/* Full bucket, no counts: what a new limit finds at its slot. */
static int slot_zero(const struct rl_state *state, __u32 slot, struct rl_error *err)
{
	const struct rl_source fresh = {};
	int cpus = rl_possible_cpus();
	RL_FREE struct rl_limit_count *zero = calloc((size_t)cpus, sizeof(*zero));

	if (!zero)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	if (bpf_map_update_elem(state->map[RL_MAP_OWN], &slot, &fresh, BPF_ANY) ||
	    bpf_map_update_elem(state->map[RL_MAP_LIMIT_COUNT], &slot, zero, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't prepare a limit's slot: %s",
				    strerror(errno));
	return 0;
}

static int slot_claim(const struct rl_state *state, __u32 *id, __u32 *slot, struct rl_error *err)
{
	int rc = id_take(state, id, err);

	if (!rc)
		rc = slot_find(state, *id, slot, err);
	if (rc == -ENOSPC) {
		rc = slots_reclaim(state, err);
		if (!rc)
			rc = slot_find(state, *id, slot, err);
	}
	if (rc == -ENOSPC)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOSPC,
				    "the policy is full: %d limits; delete some with `rl-agent del-limit`, "
				    "or name wider prefixes",
				    RL_MAX_LIMITS);
	if (!rc)
		rc = slot_give(state, *slot, *id, err);
	return rc ? rc : slot_zero(state, *slot, err);
}

int rl_policy_set(const struct rl_state *state, const struct rl_prefix *target, const struct rl_terms *terms,
		  struct rl_error *err)
{
	char text[RL_TARGET_TEXT];
	struct rl_limit old, limit;
	bool there = policy_find(state, target, &old);
	__u32 id = 0, slot = 0, none = 0;
	int rc;

	/* Refuse what doesn't fit before anything is claimed. */
	rc = rl_limit_compute(target, terms, there ? &old : NULL, id, slot, rl_clock_ns(), &limit, err);
	if (!rc && !there) {
		rc = slot_claim(state, &id, &slot, err);
		if (!rc)
			rc = rl_limit_compute(target, terms, NULL, id, slot, rl_clock_ns(), &limit, err);
	}
	if (rc)
		return rc;
	if (bpf_map_update_elem(state->map[RL_MAP_POLICY], target, &limit, there ? BPF_EXIST : BPF_NOEXIST) ==
	    0)
		return 0;
	rc = rl_error_set(err, RL_ERROR_KERNEL, errno, "the kernel refused the limit of %s: %s",
			  rl_target_print(target, text), strerror(errno));
	if (!there)
		bpf_map_update_elem(state->map[RL_MAP_SLOTS], &slot, &none, BPF_ANY);
	return rc;
}

int rl_policy_delete(const struct rl_state *state, const struct rl_prefix *target, struct rl_error *err)
{
	char text[RL_TARGET_TEXT];
	struct rl_limit old;

	rl_target_print(target, text);
	if (!policy_find(state, target, &old))
		return rl_error_set(err, RL_ERROR_USAGE, ENOENT,
				    "%s has no limit of its own: nothing deleted; `rl-agent list` shows the "
				    "targets that have one",
				    text);
	if (bpf_map_delete_elem(state->map[RL_MAP_POLICY], target))
		return rl_error_set(err, RL_ERROR_KERNEL, errno,
				    "the kernel refused to delete the limit of %s: %s", text,
				    strerror(errno));
	return slot_give(state, old.slot, 0, err);
}

bool rl_policy_match(const struct rl_state *state, const struct rl_prefix *source, struct rl_limit *out)
{
	return bpf_map_lookup_elem(state->map[RL_MAP_POLICY], source, out) == 0;
}
