// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "frames.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attached.h"
#include "cleanup.h"
#include "class.h"
#include "device.h"
#include "limit.h"
#include "plain.h"
#include "policy.h"
#include "target.h"
#include "units.h"

#define FRAME_AROUND 22 /* bytes of a frame beside its MTU: an Ethernet header, and two VLAN tags */

/* A device, as far as its frames go. */
struct widest {
	char name[RL_NAME_LEN];
	int mtu; /* 0: none was found */
};

static bool is_held(const struct rl_target *target, const char *device)
{
	return target->kind != RL_TARGET_DEVICE || !strncmp(target->name, device, RL_NAME_LEN);
}

/* The attached device with the largest frames that the target's limit holds. */
static int widest_find(const struct rl_state *state, const struct rl_target *target, struct widest *out,
		       struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	struct widest widest = {};
	size_t count = 0;
	int rc = rl_state_attached(state, true, attached, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		bool asked = attached[i].where == RL_HERE && is_held(target, attached[i].name);
		int mtu = asked ? rl_device_mtu(attached[i].name) : 0;

		if (mtu <= widest.mtu)
			continue;
		widest.mtu = mtu;
		memcpy(widest.name, attached[i].name, sizeof(widest.name));
	}
	if (!rc)
		*out = widest;
	return rc;
}

static int refuse_burst(const struct rl_terms *terms, const struct widest *widest, __u64 least,
			struct rl_error *err)
{
	char given[RL_UNIT_TEXT], wanted[RL_UNIT_TEXT], reserve[RL_RESERVE_TEXT];
	bool reserved = *rl_reserve_print(terms, reserve);

	return rl_error_set(
	    err, RL_ERROR_USAGE, ERANGE,
	    "burst %s %s a full frame of %s, whose MTU is %d (%d bytes with two VLAN tags)%s%s: such packets would never "
	    "pass; expected at least %s, or leave it out for the default",
	    rl_burst_print_bytes(terms->burst_bytes, given),
	    reserved ? "leaves the lowest priority less than" : "is less than", widest->name, widest->mtu,
	    widest->mtu + FRAME_AROUND, reserved ? " under reserve " : "", reserve,
	    rl_burst_print_bytes(least, wanted));
}

int rl_frames_fit(const struct rl_state *state, const struct rl_target *target, bool chosen,
		  struct rl_terms *terms, struct rl_error *err)
{
	struct widest widest;
	__u64 least;
	int rc;

	if (!terms->bits_per_second)
		return 0;
	rc = widest_find(state, target, &widest, err);
	if (rc)
		return rc;
	least = rl_burst_for_frame(terms, (__u32)widest.mtu + FRAME_AROUND);
	if (terms->burst_bytes >= least)
		return 0;
	if (chosen)
		return refuse_burst(terms, &widest, least, err);
	terms->burst_bytes = least;
	return 0;
}

/* How many of the limits hold less than such a frame; *first is one of them. */
static size_t narrow_count(const struct rl_limit *limits, size_t count, const char *device, __u32 frame,
			   const struct rl_limit **first)
{
	size_t narrow = 0;

	for (size_t i = 0; i < count; i++) {
		const struct rl_terms *terms = &limits[i].terms;

		if (!is_held(&limits[i].target, device) ||
		    terms->burst_bytes >= rl_burst_for_frame(terms, frame))
			continue;
		if (!narrow++)
			*first = &limits[i];
	}
	return narrow;
}

static void warn(const char *device, int mtu, const struct rl_limit *limit, size_t others)
{
	char burst[RL_UNIT_TEXT], least[RL_UNIT_TEXT], object[RL_OBJECT_TEXT], more[64] = "";
	__u64 wanted = rl_burst_for_frame(&limit->terms, (__u32)mtu + FRAME_AROUND);

	if (others)
		snprintf(more, sizeof(more), " nor that of %zu other%s", others, others > 1 ? "s" : "");
	rl_plain_print(
	    stderr,
	    "rl-agent: warning: %s has an MTU of %d, and its full frames never pass the limit of %s (burst %s)%s: "
	    "`rl-agent set-limit` with a burst of at least %s lets them\n",
	    device, mtu, rl_object_print(&limit->target, &limit->terms.class, object),
	    rl_burst_print_bytes(limit->terms.burst_bytes, burst), more, rl_burst_print_bytes(wanted, least));
}

void rl_frames_warn(const struct rl_state *state, const char *name)
{
	RL_FREE struct rl_limit *limits = NULL;
	const struct rl_limit *first = NULL;
	int mtu = rl_device_mtu(name);
	struct rl_error ignored;
	size_t count, narrow;

	/* Every burst holds such frames; a large policy needn't be read for that. */
	if (mtu + FRAME_AROUND <= RL_BURST_BYTES_MTU || rl_policy_read(state, &limits, &count, &ignored))
		return;
	narrow = narrow_count(limits, count, name, (__u32)mtu + FRAME_AROUND, &first);
	if (narrow)
		warn(name, mtu, first, narrow - 1);
}
