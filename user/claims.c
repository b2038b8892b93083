// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "claims.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "policy.h"

static __u32 seconds(void)
{
	__u32 now = rl_clock_seconds();

	return now ? now : 1; /* 0 is "long ago" */
}

int rl_ids_take(const struct rl_state *state, size_t count, __u32 *first, struct rl_error *err)
{
	struct rl_meta meta;
	int rc = rl_state_meta(state, &meta, err);
	__u32 taken;

	if (rc)
		return rc;
	taken = meta.next_limit_id;
	if (taken > RL_MOST_IDS || count > RL_MOST_IDS - taken)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, EOVERFLOW,
		    "all of the 2^31 limit numbers are used up: `rl-agent detach --all`, and attach again");
	meta.next_limit_id += (__u32)count;
	rc = rl_state_meta_write(state, &meta, err);
	if (!rc)
		*first = taken;
	return rc;
}

static const struct rl_mapping *mapping(const struct rl_heads *heads, enum rl_map which)
{
	return which == RL_MAP_SLOTS ? &heads->slots : &heads->claims;
}

__u32 rl_claims_count(const struct rl_heads *heads, enum rl_map which)
{
	return mapping(heads, which)->entries;
}

struct rl_claim rl_claim_read(const struct rl_heads *heads, enum rl_map which, __u32 index)
{
	struct rl_claim claim;

	memcpy(&claim, rl_mapping_at(mapping(heads, which), index), sizeof(claim));
	return claim;
}

static void claim_write(const struct rl_heads *heads, enum rl_map which, __u32 index, struct rl_claim claim)
{
	__u64 word;

	_Static_assert(sizeof(claim) == sizeof(word), "one store");
	memcpy(&word, &claim, sizeof(word));
	if (index < rl_claims_count(heads, which))
		rl_word_write(rl_mapping_at(mapping(heads, which), index), word);
}

static __u32 common_divisor(__u32 a, __u32 b)
{
	while (b) {
		__u32 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/*
 * How far apart one free index of n is looked for: those in use stand together, since a policy that is applied whole takes them
 * in a row, and are left at once by steps of the golden section. Without a divisor in common with n, so that each comes once.
 */
static __u32 stride(__u32 n)
{
	__u32 step = (__u32)((__u64)n * 0x9e3779b9 >> 32) + 1;

	while (common_divisor(step, n) != 1)
		step++;
	return step;
}

/*
 * Free ones, from `from` on and around by steps of `step`, behind the *found that *out has: those that no packet reads any more,
 * or the others. Until there are `count`.
 */
static void pick(const struct rl_heads *heads, enum rl_map which, __u32 from, __u32 step, bool fresh,
		 size_t count, __u32 *out, size_t *found)
{
	__u32 entries = rl_claims_count(heads, which), now = seconds();

	for (__u32 i = 0; i + 1 < entries && *found < count; i++) {
		__u32 index = 1 + (__u32)((from + (__u64)i * step) % (entries - 1));
		struct rl_claim claim = rl_claim_read(heads, which, index);
		bool is_fresh = claim.freed && now - claim.freed < RL_POLICY_QUARANTINE;

		if (!claim.id && is_fresh == fresh)
			out[(*found)++] = index;
	}
}

/* Behind a grace period: whatever is free is free for all. */
static void quarantine_end(const struct rl_heads *heads, enum rl_map which)
{
	const struct rl_claim clean = {};

	for (__u32 index = 1; index < rl_claims_count(heads, which); index++) {
		struct rl_claim claim = rl_claim_read(heads, which, index);

		if (!claim.id && claim.freed)
			claim_write(heads, which, index, clean);
	}
}

static int find(const struct rl_heads *heads, enum rl_map which, __u32 from, __u32 step, size_t count,
		__u32 *out, size_t *found, struct rl_error *err)
{
	int rc = 0;

	*found = 0;
	pick(heads, which, from, step, false, count, out, found);
	if (*found < count) {
		pick(heads, which, from, step, true, count, out, found);
		rc = rl_grace_wait(err);
		if (!rc)
			quarantine_end(heads, which);
	}
	return rc ? rc : *found < count ? -ENOSPC : 0;
}

int rl_claims_find(const struct rl_heads *heads, enum rl_map which, __u32 from, size_t count, __u32 *out,
		   size_t *found, struct rl_error *err)
{
	return find(heads, which, from, 1, count, out, found, err);
}

void rl_claims_write(const struct rl_heads *heads, enum rl_map which, const __u32 *indexes, const __u32 *ids,
		     size_t count)
{
	for (size_t i = 0; i < count; i++)
		claim_write(heads, which, indexes[i], (struct rl_claim){.id = ids[i]});
}

int rl_claim_take(const struct rl_heads *heads, enum rl_map which, __u32 id, __u32 from, __u32 *out,
		  struct rl_error *err)
{
	size_t found;
	__u32 index;
	int rc = find(heads, which, from, stride(rl_claims_count(heads, which) - 1), 1, &index, &found, err);

	if (rc)
		return rc;
	claim_write(heads, which, index, (struct rl_claim){.id = id});
	*out = index;
	return 0;
}

void rl_claim_free(const struct rl_heads *heads, enum rl_map which, __u32 index)
{
	if (index)
		claim_write(heads, which, index, (struct rl_claim){.freed = seconds()});
}

void rl_claims_keep(const struct rl_heads *heads, enum rl_map which, const __u32 *owners, __u32 count)
{
	for (__u32 i = 0; i < count && i < rl_claims_count(heads, which); i++)
		if (rl_claim_read(heads, which, i).id != owners[i])
			claim_write(heads, which, i,
				    (struct rl_claim){.id = owners[i], .freed = owners[i] ? 0 : seconds()});
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
