// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* native_policy.c - the policy of the native backend: limits in an array by slot, what hangs on them settled after each change. */
#include "native_maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/class.h"
#include "../../user/limit.h"
#include "../../user/prefix.h"

static const struct rl_terms no_terms = {.priority = RL_PRIORITY_UNSET};

const char *native_fault_name(enum native_fault fault)
{
	static const char *const names[FAULTS] = {
	    [FAULT_NONE] = "none",
	    [FAULT_BURST_MORE] = "a burst larger by 2^8 units",
	    [FAULT_BURST_LESS] = "a burst smaller by 2^8 units",
	    [FAULT_COST] = "packets dearer by 2^8 units",
	    [FAULT_BYTE] = "bytes dearer by 2^-4 units",
	    [FAULT_RESERVE] = "reserves that keep nothing",
	    [FAULT_HISTORY] = "the rate before a change forgotten",
	    [FAULT_UNTIL] = "a change one ns late",
	    [FAULT_GENERATION] = "a change that buckets don't notice",
	    [FAULT_INHERITANCE] = "tenants that aren't inherited",
	    [FAULT_PRIORITY] = "priorities of tenants that aren't their prefixes'",
	    [FAULT_OLD_BUCKET] = "a deleted limit's bucket found again",
	    [FAULT_CLASS] = "a class longer by one port",
	    [FAULT_COSTS] = "the first cost for the highest",
	};

	return names[fault];
}

/* --- the longest match --- */

__u32 native_classify(__u8 family, const __u8 *addr)
{
	__u64 hash;
	struct native_match *match;
	struct rl_prefix source = {.prefixlen = RL_PREFIX_FAMILY_BITS + (family == 4 ? 32U : 128U),
				   .family = family};
	const struct rl_limit *best = NULL;

	memcpy(source.addr, addr, sizeof(source.addr));
	hash = rl_mix(rl_mix(rl_be64(addr)) ^ rl_be64(addr + 8));
	match = &native.match[hash % MATCHES];
	if (match->family == family && !memcmp(match->addr, addr, sizeof(match->addr)))
		return match->slot;
	for (const struct rl_limit *limit = native.limit + 1; limit < native.limit + native.slots; limit++)
		if (limit->id && limit->level == RL_LEVEL_SOURCE &&
		    rl_prefix_covers(&limit->target.prefix, &source) &&
		    (!best || limit->target.prefix.prefixlen > best->target.prefix.prefixlen))
			best = limit;
	match->family = family;
	memcpy(match->addr, addr, sizeof(match->addr));
	match->slot = best ? (__u32)(best - native.limit) : 0;
	return match->slot;
}

/* --- slots --- */

__u32 native_find(const struct rl_target *target, const struct rl_class *class)
{
	static const struct rl_class none;

	for (__u32 slot = 1; slot < native.slots; slot++)
		if (native.exact[slot].id && !memcmp(&native.exact[slot].target, target, sizeof(*target)) &&
		    rl_class_same(&native.exact[slot].terms.class, class ? class : &none))
			return slot;
	return 0;
}

/* The first free slot: often the one that was freed last. */
static __u32 slot_make(void)
{
	__u32 id = ++native.next_id;

	for (__u32 slot = 1; slot < SLOTS; slot++) {
		if (native.exact[slot].id)
			continue;
		if (slot >= native.slots)
			native.slots = slot + 1;
		if (native.fault != FAULT_OLD_BUCKET)
			memset(&native.own[slot], 0, sizeof(native.own[slot]));
		native.own[slot].key = id;
		memset(&native.limit_count[slot], 0, sizeof(native.limit_count[slot]));
		native.exact[slot].id = id;
		return slot;
	}
	abort();
}

static void slot_free(__u32 slot)
{
	memset(&native.exact[slot], 0, sizeof(native.exact[slot]));
}

/* --- what hangs on a prefix's limit --- */

static __u32 tenant_slot(const char *name)
{
	struct rl_target target = {.kind = RL_TARGET_TENANT};

	memcpy(target.name, name, sizeof(target.name));
	return native_find(&target, NULL);
}

/* Its own, or that of the nearest prefix around it that has one. */
static __u32 tenant_of(const struct rl_limit *limit)
{
	const struct rl_limit *nearest = NULL;

	for (const struct rl_limit *outer = native.exact + 1; outer < native.exact + native.slots; outer++)
		if (outer->id && outer->level == RL_LEVEL_SOURCE && outer->terms.tenant[0] &&
		    rl_prefix_covers(&outer->target.prefix, &limit->target.prefix) &&
		    (!nearest || outer->target.prefix.prefixlen > nearest->target.prefix.prefixlen))
			nearest = outer;
	if (!nearest || (native.fault == FAULT_INHERITANCE && nearest != limit))
		return 0;
	return tenant_slot(nearest->terms.tenant);
}

/* Its class limits are named in the order of their ids, which is that in which they came. */
static void name_class(struct rl_limit *general, const struct rl_limit *class)
{
	__u32 at = general->class_count++;

	for (; at && native.exact[general->class[at - 1].slot].id > class->id; at--)
		general->class[at] = general->class[at - 1];
	general->class[at] = (struct rl_class_ref){.class = class->terms.class, .slot = class->slot};
	if (native.fault == FAULT_CLASS && class->terms.class.to < 65535)
		general->class[at].class.to++;
}

static void settle_classes(struct rl_limit *general)
{
	general->class_count = 0;
	for (struct rl_limit *class = native.exact + 1; class < native.exact + native.slots; class ++) {
		if (!class->id || class->level != RL_LEVEL_CLASS ||
		    memcmp(&class->target, &general->target, sizeof(class->target)) != 0)
			continue;
		class->flags =
		    (class->flags & ~(__u32)RL_LIMIT_OWN_BUCKET) | (general->flags & RL_LIMIT_OWN_BUCKET);
		memcpy(class->bits, general->bits, sizeof(class->bits));
		name_class(general, class);
	}
}

/* The limit as packets see it: with the mistake that is to be found. */
static void put(__u32 slot)
{
	struct rl_limit *limit = &native.limit[slot];
	struct rl_rate *rate;

	*limit = native.exact[slot];
	rate = limit->rate;
	if (native.fault == FAULT_BURST_MORE && rate[RL_PACKETS].mult)
		rate[RL_PACKETS].burst += 256;
	if (native.fault == FAULT_BURST_LESS && rate[RL_PACKETS].mult)
		rate[RL_PACKETS].burst -= 256;
	if (native.fault == FAULT_COST && rate[RL_PACKETS].mult)
		rate[RL_PACKETS].mult += 1 << 12;
	if (native.fault == FAULT_BYTE && rate[RL_BYTES].mult)
		rate[RL_BYTES].mult++;
	if (native.fault == FAULT_RESERVE)
		memset(rate[RL_PACKETS].kept, 0, sizeof(rate[RL_PACKETS].kept));
	if (native.fault == FAULT_HISTORY)
		memset(limit->past, 0, sizeof(limit->past));
	if (native.fault == FAULT_UNTIL && limit->gen > 1)
		limit->past[0].until++;
	if (native.fault == FAULT_GENERATION)
		limit->gen = 1;
	if (native.fault == FAULT_PRIORITY && limit->level == RL_LEVEL_TENANT)
		limit->priority = RL_PRIORITY_UNSET;
	if (native.fault == FAULT_COSTS && limit->cost_count > 1)
		limit->cost_count = 1;
}

/* After each change. */
static void settle(void)
{
	struct rl_target fresh = {.kind = RL_TARGET_NEW};

	for (struct rl_limit *limit = native.exact + 1; limit < native.exact + native.slots; limit++) {
		if (!limit->id || limit->level != RL_LEVEL_SOURCE)
			continue;
		limit->tenant = tenant_of(limit);
		settle_classes(limit);
	}
	for (__u32 slot = 1; slot < native.slots; slot++)
		put(slot);
	native.settings.fresh = native_find(&fresh, NULL);
	for (int i = 0; i < MODEL_DEVICES; i++) {
		struct rl_target target = {.kind = RL_TARGET_DEVICE};

		strcpy(target.name, ops_device_names[i]);
		native.device[DEVICE_FIRST + i].limit = native_find(&target, NULL);
	}
	memset(native.match, 0, sizeof(native.match));
	native.settings.epoch++;
	for (const struct rl_limit *limit = native.exact + 1; limit < native.exact + native.slots; limit++)
		if (limit->id && limit->target.prefix.family == 6 &&
		    limit->target.prefix.prefixlen > RL_PREFIX_FAMILY_BITS + 64)
			native.settings.split = 1;
}

/* --- changes --- */

static int limit_set(const struct rl_target *target, const struct rl_terms *terms, __u64 now)
{
	__u32 slot = native_find(target, &terms->class);
	struct rl_error err = {0};
	struct rl_limit limit;
	int rc = rl_limit_compute(target, terms, slot ? &native.exact[slot] : NULL, 0, 0, now, &limit, &err);

	if (rc)
		return rc;
	if (!slot)
		slot = slot_make();
	limit.id = native.exact[slot].id;
	limit.slot = slot;
	native.exact[slot] = limit;
	return 0;
}

static void classes_free(const struct rl_target *target)
{
	for (__u32 slot = 1; slot < native.slots; slot++)
		if (native.exact[slot].id && native.exact[slot].level == RL_LEVEL_CLASS &&
		    !memcmp(&native.exact[slot].target, target, sizeof(*target)))
			slot_free(slot);
}

/* A class goes with a general limit, which is made for it where there is none; not with allow and deny. */
static int class_check(const struct rl_target *target, __u64 now)
{
	__u32 general = native_find(target, NULL);

	if (!general)
		return limit_set(target, &no_terms, now);
	return native.exact[general].action == RL_ACTION_LIMIT ? 0 : -EINVAL;
}

int native_set(struct backend *backend, const struct rl_target *target, const struct rl_terms *terms,
	       __u64 now)
{
	struct rl_target tenant = {.kind = RL_TARGET_TENANT};
	int rc = 0;

	(void)backend;
	if (rl_class_is_set(&terms->class))
		rc = class_check(target, now);
	if (!rc)
		rc = limit_set(target, terms, now);
	if (rc)
		return rc;
	memcpy(tenant.name, terms->tenant, sizeof(tenant.name));
	if (terms->tenant[0] && !native_find(&tenant, NULL))
		rc = limit_set(&tenant, &no_terms, now);
	if (terms->action != RL_ACTION_LIMIT)
		classes_free(target);
	settle();
	return rc;
}

static bool says_nothing(const struct rl_limit *limit)
{
	return limit->action == RL_ACTION_LIMIT && !limit->terms.packets_per_hour &&
	       !limit->terms.bits_per_second && limit->terms.priority == RL_PRIORITY_UNSET;
}

/* A tenant that prefixes belong to stays, without a rate, and owes nothing. */
static int tenant_silence(__u32 slot, __u64 now)
{
	const struct rl_limit old = native.exact[slot];
	int rc = limit_set(&old.target, &no_terms, now);

	if (rc)
		return rc;
	rl_limit_forgive(&native.exact[slot], &old);
	native.own[slot].buckets.word[RL_PACKETS] = native.own[slot].buckets.word[RL_BYTES] = 0;
	return 0;
}

static int tenant_erase(__u32 slot, __u64 now)
{
	if (says_nothing(&native.exact[slot]))
		return -ENOENT;
	for (__u32 i = 1; i < native.slots; i++)
		if (native.exact[i].id && native.exact[i].level == RL_LEVEL_SOURCE &&
		    native.exact[i].tenant == slot)
			return tenant_silence(slot, now);
	slot_free(slot);
	return 0;
}

static int class_erase(const struct rl_target *target, __u32 slot)
{
	__u32 general = native_find(target, NULL);

	slot_free(slot);
	settle_classes(&native.exact[general]);
	if (says_nothing(&native.exact[general]) && !native.exact[general].class_count)
		slot_free(general);
	return 0;
}

int native_erase(struct backend *backend, const struct rl_target *target, const struct rl_class *class,
		 __u64 now)
{
	__u32 slot = native_find(target, class);
	int rc = 0;

	(void)backend;
	if (!slot)
		return -ENOENT;
	if (target->kind == RL_TARGET_TENANT) {
		rc = tenant_erase(slot, now);
	} else if (class) {
		rc = class_erase(target, slot);
	} else {
		classes_free(target);
		slot_free(slot);
	}
	settle();
	return rc;
}
