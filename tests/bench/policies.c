// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "policies.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/clock.h"
#include "../../user/limit.h"
#include "../../user/policy_apply.h"
#include "../../user/target.h"
#include "../../user/units.h"
#include "traffic.h"

#define TENANT	   "bench"
#define BEFORE_IP6 32 /* bits of 2001:db8 */

static const struct {
	const char *rate, *burst;
} words[] = {[PASSING] = {"148.8mpps", "10m"}, [REJECTED] = {"1/h", "1"}};

static int terms_of(enum verdict verdict, const struct rl_target *target, struct rl_terms *out,
		    struct rl_error *err)
{
	struct rl_terms terms = RL_TERMS_INIT;
	int rc = rl_rate_parse(words[verdict].rate, &terms, err);

	rc = rc ?: rl_burst_parse(words[verdict].burst, &terms, err);
	rc = rc ?: rl_terms_complete(target, &terms, err);
	if (!rc)
		*out = terms;
	return rc;
}

/* "dev:" names a device that is attached. */
static int device_enter(const struct rl_state *state, struct rl_error *err)
{
	const struct rl_device device = {.flags = RL_DEVICE_ATTACHED, .ifindex = 1, .name = POLICIES_DEVICE};
	__u32 slot = 0;

	if (bpf_map_update_elem(state->map[RL_MAP_DEVICES], &slot, &device, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't enter the device: %s",
				    strerror(errno));
	return 0;
}

/* Bits of the sources' 32 that prefixes have, so that there are at least so many. */
static __u32 tile_bits(__u32 prefixes)
{
	__u32 bits = 0;

	while (bits < TRAFFIC_BITS && 1U << bits < prefixes)
		bits++;
	return 32 - TRAFFIC_BITS + bits;
}

static struct rl_prefix tile(__u8 family, __u32 bits, __u32 number)
{
	__u32 first = TRAFFIC_FIRST + (number << (32 - bits));
	const __u8 ip4[] = {(__u8)(first >> 24), (__u8)(first >> 16), (__u8)(first >> 8), (__u8)first};
	__u8 ip6[16] = {0x20, 0x01, 0x0d, 0xb8};

	memcpy(ip6 + BEFORE_IP6 / 8, ip4, sizeof(ip4));
	return family == 4 ? rl_prefix_cut(4, ip4, bits) : rl_prefix_cut(6, ip6, BEFORE_IP6 + bits);
}

/* A policy as from a file, with the terms that its lines have. */
struct policy {
	struct rl_policy_file file;
	struct rl_terms any, tile, shared;
};

static void add(struct policy *policy, const struct rl_target *target, const struct rl_terms *terms)
{
	policy->file.lines[policy->file.count++] =
	    (struct rl_policy_line){.target = *target, .terms = terms, .number = (__u32)policy->file.count};
}

static int add_named(struct policy *policy, const char *name, enum verdict verdict, struct rl_terms *terms,
		     struct rl_error *err)
{
	struct rl_target target;
	int rc = rl_target_parse(name, &target, err);

	rc = rc ?: terms_of(verdict, &target, terms, err);
	if (!rc)
		add(policy, &target, terms);
	return rc;
}

/* `any`, and with all levels its tenant and the device. */
static int add_levels(struct policy *policy, const struct scenario *scenario, struct rl_error *err)
{
	int rc = add_named(policy, "any", scenario->verdict, &policy->any, err);

	if (scenario->levels != LEVELS_ALL)
		return rc;
	strcpy(policy->any.tenant, TENANT);
	rc = rc ?: add_named(policy, "tenant:" TENANT, PASSING, &policy->shared, err);
	return rc ?: add_named(policy, "dev:" POLICIES_DEVICE, PASSING, &policy->shared, err);
}

/* The prefixes inside `any`. */
static int add_tiles(struct policy *policy, const struct scenario *scenario, __u32 count,
		     struct rl_error *err)
{
	__u32 bits = tile_bits(count);
	int rc = 0;

	for (__u32 i = 0; !rc && i < count; i++) {
		const struct rl_prefix prefix = tile(scenario->family, bits, i);
		const struct rl_target target = rl_target_prefix(&prefix);

		rc = i ? 0 : terms_of(scenario->verdict, &target, &policy->tile, err);
		add(policy, &target, &policy->tile);
	}
	return rc;
}

static int policy_make(struct policy *policy, const struct scenario *scenario, struct rl_error *err)
{
	int rc;

	policy->file.name = "the benchmark's policy";
	policy->file.lines = calloc(scenario->prefixes + 3UL, sizeof(*policy->file.lines));
	if (!policy->file.lines)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	rc = add_levels(policy, scenario, err);
	rc = rc ?: add_tiles(policy, scenario, scenario->prefixes - 1, err);
	return rc ?: rl_policy_file_order(&policy->file, err);
}

int policies_load(const struct rl_state *state, const struct scenario *scenario, __u32 *prefixes,
		  struct rl_error *err)
{
	struct policy policy = {};
	struct rl_applied applied;
	int rc = device_enter(state, err);

	rc = rc ?: policy_make(&policy, scenario, err);
	rc = rc ?: rl_policy_apply(state, &policy.file, RL_APPLY, rl_clock_ns(), &applied, err);
	rl_policy_file_free(&policy.file);
	if (!rc)
		*prefixes = scenario->prefixes;
	return rc;
}
