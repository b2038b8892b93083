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

/* What the kernel merges at most, unless it is told otherwise: as much as IPv4 can say the length of (RFC 791). */
#define MERGED_MOST 65535
#define MERGED_OWN                                                                                           \
	52 /* headers of TCP and IPv4 in each, with the timestamps that senders agree on as a rule */

/* A device, as far as its packets go. */
struct largest {
	char name[RL_NAME_LEN];
	int mtu;		/* 0: none was found */
	bool merged;		/* several at once */
	__u32 tokens[RL_UNITS]; /* what the largest takes */
};

static bool is_held(const struct rl_target *target, const char *device)
{
	return target->kind != RL_TARGET_DEVICE || !strncmp(target->name, device, RL_NAME_LEN);
}

/* Does the limit take tokens for packets that can be merged? What the kernel merges are TCP's segments and UDP's datagrams. */
static bool is_for_merged(const struct rl_target *target, const struct rl_class *class)
{
	return target->kind != RL_TARGET_NEW && !(class->kinds & (RL_KIND_SYN | RL_KIND_ICMP | RL_KIND_FRAG));
}

static struct largest largest_of(const char *name, enum rl_mode mode)
{
	struct largest largest = {.mtu = rl_device_mtu(name), .merged = mode == RL_MODE_TC};
	__u32 mtu = (__u32)largest.mtu, one = mtu + FRAME_AROUND;
	__u32 payload = mtu > 2 * MERGED_OWN ? mtu - MERGED_OWN : MERGED_OWN, packets = 1;

	memcpy(largest.name, name, sizeof(largest.name));
	if (largest.merged)
		packets = (MERGED_MOST + payload - 1) / payload;
	largest.tokens[RL_PACKETS] = packets;
	largest.tokens[RL_BYTES] = packets > 1 ? MERGED_MOST + packets * (FRAME_AROUND + MERGED_OWN) : one;
	return largest;
}

/* Of the attached devices that the target's limit holds, that with the largest packets in this unit. */
static int largest_find(const struct rl_state *state, const struct rl_target *target,
			const struct rl_class *class, enum rl_unit unit, struct largest *out,
			struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	struct largest largest = {};
	size_t count = 0;
	int rc = rl_state_attached(state, true, attached, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		enum rl_mode mode = (enum rl_mode)attached[i].device.mode;
		struct largest device;

		if (attached[i].where != RL_HERE || !is_held(target, attached[i].name))
			continue;
		device = largest_of(attached[i].name, is_for_merged(target, class) ? mode : RL_MODE_NATIVE);
		if (device.mtu && device.tokens[unit] > largest.tokens[unit])
			largest = device;
	}
	if (!rc)
		*out = largest;
	return rc;
}

static const char *print_burst(enum rl_unit unit, __u64 burst, char buf[RL_UNIT_TEXT])
{
	return unit == RL_PACKETS ? rl_burst_print_packets(burst, buf) : rl_burst_print_bytes(burst, buf);
}

static __u64 burst_of(const struct rl_terms *terms, enum rl_unit unit)
{
	return unit == RL_PACKETS ? terms->burst_packets : terms->burst_bytes;
}

/* "a full frame of rl0, whose MTU is 1500 (1522 bytes with two VLAN tags)" */
static void print_largest(const struct largest *largest, char *buf, size_t size)
{
	if (largest->merged)
		snprintf(
		    buf, size,
		    "what the kernel may have merged into one before TC sees it on %s, whose MTU is %d (%u packets, "
		    "%u bytes)",
		    largest->name, largest->mtu, largest->tokens[RL_PACKETS], largest->tokens[RL_BYTES]);
	else
		snprintf(buf, size, "a full frame of %s, whose MTU is %d (%u bytes with two VLAN tags)",
			 largest->name, largest->mtu, largest->tokens[RL_BYTES]);
}

static int refuse_burst(const struct rl_terms *terms, enum rl_unit unit, const struct largest *largest,
			__u64 least, struct rl_error *err)
{
	char given[RL_UNIT_TEXT], wanted[RL_UNIT_TEXT], reserve[RL_RESERVE_TEXT], object[256];
	bool reserved = *rl_reserve_print(terms, reserve);

	print_largest(largest, object, sizeof(object));
	return rl_error_set(
	    err, RL_ERROR_USAGE, ERANGE,
	    "burst %s %s %s%s%s: such packets would never pass; expected at least %s, or leave it out for the default",
	    print_burst(unit, burst_of(terms, unit), given),
	    reserved ? "leaves the lowest priority less than" : "is less than", object,
	    reserved ? " under reserve " : "", reserve, print_burst(unit, least, wanted));
}

static int unit_fit(const struct rl_state *state, const struct rl_target *target, enum rl_unit unit,
		    bool chosen, struct rl_terms *terms, struct rl_error *err)
{
	struct largest largest;
	__u64 least;
	int rc = largest_find(state, target, &terms->class, unit, &largest, err);

	if (rc || !largest.mtu)
		return rc;
	least = rl_burst_to_hold(terms, unit, largest.tokens[unit]);
	if (burst_of(terms, unit) >= least)
		return 0;
	if (chosen)
		return refuse_burst(terms, unit, &largest, least, err);
	*(unit == RL_PACKETS ? &terms->burst_packets : &terms->burst_bytes) = least;
	return 0;
}

int rl_frames_fit(const struct rl_state *state, const struct rl_target *target, const bool chosen[RL_UNITS],
		  struct rl_terms *terms, struct rl_error *err)
{
	int rc = 0;

	for (int unit = 0; unit < RL_UNITS && !rc; unit++)
		rc = unit_fit(state, target, (enum rl_unit)unit, chosen[unit], terms, err);
	return rc;
}

/* The largest that the limit has to hold, of a device's; itself, or *single. */
static const struct largest *largest_for(const struct rl_limit *limit, const struct largest *largest,
					 struct largest *single)
{
	*single = largest_of(largest->name, RL_MODE_NATIVE);
	return is_for_merged(&limit->target, &limit->terms.class) ? largest : single;
}

/* The unit in which the limit holds less than that; RL_UNITS: it holds it. */
static enum rl_unit narrow_unit(const struct rl_limit *limit, const struct largest *largest)
{
	struct largest single;
	const struct largest *wanted = largest_for(limit, largest, &single);
	enum rl_unit unit = RL_PACKETS;

	if (!is_held(&limit->target, largest->name))
		return RL_UNITS;
	while (unit < RL_UNITS &&
	       burst_of(&limit->terms, unit) >= rl_burst_to_hold(&limit->terms, unit, wanted->tokens[unit]))
		unit++;
	return unit;
}

/* How many of the limits hold less than such a packet; *first is one of them. */
static size_t narrow_count(const struct rl_limit *limits, size_t count, const struct largest *largest,
			   const struct rl_limit **first)
{
	size_t narrow = 0;

	for (size_t i = 0; i < count; i++) {
		if (narrow_unit(&limits[i], largest) == RL_UNITS)
			continue;
		if (!narrow++)
			*first = &limits[i];
	}
	return narrow;
}

static void warn(const struct largest *largest, const struct rl_limit *limit, size_t others)
{
	char burst[RL_UNIT_TEXT], least[RL_UNIT_TEXT], object[RL_OBJECT_TEXT], more[64] = "", what[160];
	enum rl_unit unit = narrow_unit(limit, largest);
	struct largest single;
	const struct largest *wanted = largest_for(limit, largest, &single);

	if (others)
		snprintf(more, sizeof(more), " nor that of %zu other%s", others, others > 1 ? "s" : "");
	if (wanted->merged)
		snprintf(what, sizeof(what),
			 "the kernel may have merged %u packets (%u bytes) into one before TC sees it, which",
			 wanted->tokens[RL_PACKETS], wanted->tokens[RL_BYTES]);
	else
		snprintf(what, sizeof(what), "its full frames");
	rl_plain_print(
	    stderr,
	    "rl-agent: warning: %s has an MTU of %d, and %s never pass%s the limit of %s (burst %s)%s: "
	    "`rl-agent set-limit` with a burst of at least %s lets them\n",
	    wanted->name, wanted->mtu, what, wanted->merged ? "es" : "",
	    rl_object_print(&limit->target, &limit->terms.class, object),
	    print_burst(unit, burst_of(&limit->terms, unit), burst), more,
	    print_burst(unit, rl_burst_to_hold(&limit->terms, unit, wanted->tokens[unit]), least));
}

void rl_frames_warn(const struct rl_state *state, const char *name, enum rl_mode mode)
{
	RL_FREE struct rl_limit *limits = NULL;
	const struct rl_limit *first = NULL;
	struct largest largest = largest_of(name, mode);
	struct rl_error ignored;
	size_t count, narrow;

	/* Every burst holds such frames; a large policy needn't be read for that. */
	if (largest.tokens[RL_BYTES] <= RL_BURST_BYTES_MTU ||
	    rl_policy_read(state, &limits, &count, &ignored))
		return;
	narrow = narrow_count(limits, count, &largest, &first);
	if (narrow)
		warn(&largest, first, narrow - 1);
}
