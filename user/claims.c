// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "claims.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "batch.h"
#include "cleanup.h"
#include "clock.h"
#include "policy.h"

#define CHUNK_FIRST   8 /* claims read at first: mostly the one that is looked for is among them */
#define CHUNK_MOST    8192
#define NS_PER_SECOND 1000000000ULL

static __u32 seconds(void)
{
	__u32 now = (__u32)(rl_clock_ns() / NS_PER_SECOND);

	return now ? now : 1; /* 0 is "long ago" */
}

static int failed(enum rl_map which, const char *what, struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't %s the map %s: %s", what, rl_map_name(which),
			    strerror(errno));
}

int rl_id_take(const struct rl_state *state, __u32 *id, struct rl_error *err)
{
	return rl_ids_take(state, 1, id, err);
}

int rl_ids_take(const struct rl_state *state, size_t count, __u32 *first, struct rl_error *err)
{
	struct rl_meta meta;
	int rc = rl_state_meta(state, &meta, err);
	__u32 taken;

	if (rc)
		return rc;
	taken = meta.next_limit_id;
	if (count > UINT32_MAX - taken)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, EOVERFLOW,
		    "all of the 2^32 limit numbers are used up: `rl-agent detach --all`, and attach again");
	meta.next_limit_id += (__u32)count;
	rc = rl_state_meta_write(state, &meta, err);
	if (!rc)
		*first = taken;
	return rc;
}

__u32 rl_claims_count(const struct rl_state *state, enum rl_map which)
{
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);

	return bpf_obj_get_info_by_fd(state->map[which], &info, &length) ? 0 : info.max_entries;
}

/* The claims [from, from + *count), as far as there are so many. */
static int claims_read(const struct rl_state *state, enum rl_map which, __u32 from, __u32 *count,
		       struct rl_claim *out, struct rl_error *err)
{
	RL_FREE __u32 *keys = malloc(*count * sizeof(*keys));
	__u32 before = from - 1, next;

	if (!keys)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	if (bpf_map_lookup_batch(state->map[which], from ? &before : NULL, &next, keys, out, count, NULL) &&
	    errno != ENOENT) /* the end */
		return failed(which, "read", err);
	return 0;
}

static int claim_write(const struct rl_state *state, enum rl_map which, __u32 index,
		       const struct rl_claim *claim, struct rl_error *err)
{
	return bpf_map_update_elem(state->map[which], &index, claim, BPF_ANY) ? failed(which, "write", err)
									      : 0;
}

/*
 * A free one in [from, end) that no packet reads any more. -ENOSPC, without a text: there is none; *fresh then tells
 * whether there are any that packets may still read.
 */
static int find_between(const struct rl_state *state, enum rl_map which, __u32 from, __u32 end, __u32 *out,
			bool *fresh, struct rl_error *err)
{
	RL_FREE struct rl_claim *claims = malloc(CHUNK_MOST * sizeof(*claims));
	__u32 chunk = CHUNK_FIRST, now = seconds();

	if (!claims)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	while (from < end) {
		__u32 count = chunk < end - from ? chunk : end - from;
		int rc = claims_read(state, which, from, &count, claims, err);

		if (rc || !count)
			return rc ? rc : -ENOSPC;
		for (__u32 i = 0; i < count; i++) {
			if (claims[i].id)
				continue;
			if (!claims[i].freed || now - claims[i].freed >= RL_POLICY_QUARANTINE) {
				*out = from + i;
				return 0;
			}
			*fresh = true;
		}
		from += count;
		chunk = chunk * 8 < CHUNK_MOST ? chunk * 8 : CHUNK_MOST;
	}
	return -ENOSPC;
}

static int find(const struct rl_state *state, enum rl_map which, __u32 from, __u32 *out, bool *fresh,
		struct rl_error *err)
{
	__u32 count = rl_claims_count(state, which);
	int rc;

	if (count < 2)
		return -ENOSPC;
	from = 1 + from % (count - 1);
	*fresh = false;
	rc = find_between(state, which, from, count, out, fresh, err);
	return rc == -ENOSPC ? find_between(state, which, 1, from, out, fresh, err) : rc;
}

/* Behind a grace period: whatever is free is free for all. */
static int quarantine_end(const struct rl_state *state, enum rl_map which, struct rl_error *err)
{
	RL_FREE struct rl_claim *claims = malloc(CHUNK_MOST * sizeof(*claims));
	const struct rl_claim clean = {};
	__u32 from = 0, count;
	int rc = 0;

	if (!claims)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	do {
		count = CHUNK_MOST;
		rc = claims_read(state, which, from, &count, claims, err);
		for (__u32 i = 0; !rc && i < count; i++)
			if (!claims[i].id && claims[i].freed)
				rc = claim_write(state, which, from + i, &clean, err);
		from += count;
	} while (!rc && count == CHUNK_MOST);
	return rc;
}

int rl_claim_take(const struct rl_state *state, enum rl_map which, __u32 id, __u32 from, __u32 *out,
		  struct rl_error *err)
{
	const struct rl_claim claim = {.id = id};
	__u32 index;
	bool fresh;
	int rc = find(state, which, from, &index, &fresh, err);

	if (rc == -ENOSPC && fresh) {
		rc = rl_grace_wait(err);
		if (!rc)
			rc = quarantine_end(state, which, err);
		if (!rc)
			rc = find(state, which, from, &index, &fresh, err);
	}
	if (!rc)
		rc = claim_write(state, which, index, &claim, err);
	if (!rc)
		*out = index;
	return rc;
}

/* Free ones of `claims` from the n-th on and around, behind the *found that *out has: those that no packet reads any more, or
 * the others. */
static void pick(const struct rl_claim *claims, __u32 entries, __u32 from, bool fresh, size_t count,
		 __u32 *out, size_t *found)
{
	__u32 now = seconds();

	for (__u32 i = 0; i < entries - 1; i++) {
		__u32 index = 1 + (from + i) % (entries - 1);
		const struct rl_claim *claim = &claims[index];
		bool is_fresh = claim->freed && now - claim->freed < RL_POLICY_QUARANTINE;

		if (claim->id || is_fresh != fresh)
			continue;
		if (*found < count)
			out[*found] = index;
		++*found;
	}
}

int rl_claims_find(const struct rl_state *state, enum rl_map which, __u32 from, size_t count, __u32 *out,
		   size_t *found, struct rl_error *err)
{
	__u32 entries = rl_claims_count(state, which), read = entries;
	RL_FREE struct rl_claim *claims = calloc(entries + 1, sizeof(*claims));
	int rc;

	*found = 0;
	if (!claims)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	if (entries < 2)
		return -ENOSPC;
	rc = claims_read(state, which, 0, &read, claims, err);
	if (rc)
		return rc;
	pick(claims, read, from, false, count, out, found);
	if (*found < count) {
		pick(claims, read, from, true, count, out, found);
		rc = rl_grace_wait(err);
	}
	return rc ? rc : *found < count ? -ENOSPC : 0;
}

int rl_claims_write(const struct rl_state *state, enum rl_map which, const __u32 *indexes, const __u32 *ids,
		    size_t count, struct rl_error *err)
{
	RL_FREE struct rl_claim *claims = calloc(count + 1, sizeof(*claims));

	if (!claims)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		claims[i].id = ids[i];
	return rl_batch_write(state, which, indexes, claims, sizeof(*claims), count, err);
}

void rl_claim_free(const struct rl_state *state, enum rl_map which, __u32 index)
{
	const struct rl_claim claim = {.freed = seconds()};
	struct rl_error ignored;

	if (index)
		claim_write(state, which, index, &claim, &ignored);
}

int rl_claims_keep(const struct rl_state *state, enum rl_map which, const __u32 *owners, __u32 count,
		   struct rl_error *err)
{
	RL_FREE struct rl_claim *claims = malloc(count * sizeof(*claims));
	const __u32 now = seconds();
	__u32 read = count;
	int rc;

	if (!claims)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	rc = claims_read(state, which, 0, &read, claims, err);
	for (__u32 i = 0; !rc && i < read; i++) {
		const struct rl_claim right = {.id = owners[i], .freed = owners[i] ? 0 : now};

		if (claims[i].id != owners[i])
			rc = claim_write(state, which, i, &right, err);
	}
	return rc;
}

/*
 * The kernel waits for the programs that run at present before an update of a map of maps returns, so that nobody uses the
 * map that was replaced (Linux 4.20, "bpf: wait for running BPF programs when updating map-in-map"). membarrier(2) does so
 * too, but not on kernels with full dynamic ticks.
 */
int rl_grace_wait(struct rl_error *err)
{
	RL_CLOSE int inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rl_grace", 4, 4, 1, NULL);
	LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = (__u32)inner);
	RL_CLOSE int outer = -1;
	__u32 zero = 0;

	if (inner >= 0)
		outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "rl_grace", 4, 4, 1, &options);
	if (outer < 0 || bpf_map_update_elem(outer, &zero, &inner, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno,
				    "can't wait for the packets that are under way: %s", strerror(errno));
	return 0;
}
