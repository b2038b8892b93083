// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "policies.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../user/clock.h"
#include "../../user/limit.h"
#include "../../user/policy.h"
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

static int set(const struct rl_state *state, const char *name, enum verdict verdict, const char *tenant,
	       struct rl_error *err)
{
	struct rl_target target;
	struct rl_terms terms;
	int rc = rl_target_parse(name, &target, err);

	rc = rc ?: terms_of(verdict, &target, &terms, err);
	if (!rc && tenant)
		strncpy(terms.tenant, tenant, sizeof(terms.tenant) - 1);
	return rc ?: rl_policy_set(state, &target, &terms, rl_clock_ns(), err);
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

/*
 * The prefixes inside `any`, one by one; what loads a whole policy at once would take the place of this loop. A policy that is full
 * ends it.
 */
static int load_tiles(const struct rl_state *state, const struct scenario *scenario, __u32 count,
		      __u32 *loaded, struct rl_error *err)
{
	__u32 bits = tile_bits(count);
	int rc = 0;

	for (*loaded = 0; *loaded < count; ++*loaded) {
		const struct rl_prefix prefix = tile(scenario->family, bits, *loaded);
		const struct rl_target target = rl_target_prefix(&prefix);
		struct rl_terms terms;

		rc = terms_of(scenario->verdict, &target, &terms, err);
		rc = rc ?: rl_policy_set(state, &target, &terms, rl_clock_ns(), err);
		if (rc)
			break;
	}
	return rc == -ENOSPC && *loaded ? 0 : rc;
}

int policies_load(const struct rl_state *state, const struct scenario *scenario, __u32 *prefixes,
		  struct rl_error *err)
{
	bool all = scenario->levels == LEVELS_ALL;
	__u32 most =
	    RL_DEFAULT_LIMITS - (all ? 4 : 2); /* beside `any`, tenant and device; slot 0 is nobody's */
	__u32 loaded = 0, tiles = scenario->prefixes - 1 < most ? scenario->prefixes - 1 : most;
	int rc = device_enter(state, err);

	rc = rc ?: set(state, "any", scenario->verdict, all ? TENANT : NULL, err);
	if (all) {
		rc = rc ?: set(state, "tenant:" TENANT, PASSING, NULL, err);
		rc = rc ?: set(state, "dev:" POLICIES_DEVICE, PASSING, NULL, err);
	}
	rc = rc ?: load_tiles(state, scenario, tiles, &loaded, err);
	if (!rc)
		*prefixes = loaded + 1;
	return rc;
}
