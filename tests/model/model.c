// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model.h"

#include <stdlib.h>
#include <string.h>

/* What a tenant says that is only named, and a prefix that only has classes. */
static const struct rl_terms no_terms = {.priority = RL_PRIORITY_UNSET};

/* One limit that a packet is held to, and the buckets that it is charged to there. */
struct hold {
	struct model_limit *limit;
	struct model_bucket *bucket;
	enum rl_level level;
	model_units cost[RL_UNITS], kept[RL_UNITS];
};

struct holds {
	struct hold at[RL_MAX_HOLDS];
	int count;
};

int model_open(struct model *model)
{
	memset(model, 0, sizeof(*model));
	model->limit = malloc(MODEL_LIMITS * sizeof(*model->limit)); /* zeroed one by one */
	model->end = model->limit;
	return model->limit ? 0 : -1;
}

void model_close(struct model *model)
{
	free(model->limit);
	model->limit = NULL;
}

/* --- the policy --- */

static bool is_class(const struct model_limit *limit)
{
	return limit->terms.class.kinds;
}

static bool same_target(const struct rl_target *a, const struct rl_target *b)
{
	return !memcmp(a, b, sizeof(*a));
}

struct model_limit *model_find(struct model *model, const struct rl_target *target,
			       const struct rl_class *class)
{
	static const struct rl_class none;

	if (!class)
		class = &none;
	for (struct model_limit *limit = model->limit; limit < model->end; limit++)
		if (limit->used && same_target(&limit->target, target) &&
		    !memcmp(&limit->terms.class, class, sizeof(*class)))
			return limit;
	return NULL;
}

static struct model_limit *limit_make(struct model *model, const struct rl_target *target,
				      const struct rl_terms *terms)
{
	for (struct model_limit *limit = model->limit; limit < model->limit + MODEL_LIMITS; limit++) {
		if (limit < model->end && limit->used)
			continue;
		if (limit >= model->end)
			model->end = limit + 1;
		memset(limit, 0, sizeof(*limit));
		limit->used = true;
		limit->made = model->made++;
		limit->target = *target;
		limit->terms = *terms;
		limit->quantum.gen = 1;
		return limit;
	}
	return NULL;
}

/* The limit of this target is there, stated or not. */
static struct model_limit *limit_ensure(struct model *model, const struct rl_target *target)
{
	struct model_limit *limit = model_find(model, target, NULL);

	return limit ? limit : limit_make(model, target, &no_terms);
}

static struct rl_target tenant_of(const char *name)
{
	struct rl_target target = {.kind = RL_TARGET_TENANT};

	memcpy(target.name, name, sizeof(target.name));
	return target;
}

/* --- what follows from the policy --- */

static bool bits_equal(const __u8 *a, const __u8 *b, unsigned int bits)
{
	if (memcmp(a, b, bits / 8))
		return false;
	return !(bits % 8) || !((a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8));
}

/* Is the address, or the prefix that begins with it, inside `outer`? */
static bool inside(const struct rl_prefix *outer, __u8 family, const __u8 *addr)
{
	if (!outer->prefixlen)
		return true;
	return outer->family == family &&
	       bits_equal(outer->addr, addr, outer->prefixlen - RL_PREFIX_FAMILY_BITS);
}

static int by_length(const void *a, const void *b)
{
	const struct model_limit *const *x = a, *const *y = b;

	return (int)(*y)->target.prefix.prefixlen - (int)(*x)->target.prefix.prefixlen;
}

/* Its own tenant, or that of the nearest prefix around it that has one. */
static struct model_limit *resolve_tenant(struct model *model, const struct model_limit *of)
{
	const struct rl_prefix *prefix = &of->target.prefix;

	for (int i = 0; i < model->general_count; i++) {
		const struct model_limit *outer = model->general[i];
		struct rl_target target;

		if (!outer->terms.tenant[0] || outer->target.prefix.prefixlen > prefix->prefixlen ||
		    !inside(&outer->target.prefix, prefix->family, prefix->addr))
			continue;
		target = tenant_of(outer->terms.tenant);
		return model_find(model, &target, NULL);
	}
	return NULL;
}

static int by_age(const void *a, const void *b)
{
	const struct model_limit *const *x = a, *const *y = b;

	return ((*x)->made > (*y)->made) - ((*x)->made < (*y)->made);
}

static void resolve_classes(struct model *model, struct model_limit *general)
{
	general->class_count = 0;
	for (struct model_limit *limit = model->limit; limit < model->end; limit++)
		if (limit->used && is_class(limit) && same_target(&limit->target, &general->target))
			general->class[general->class_count++] = limit;
	qsort(general->class, (size_t)general->class_count, sizeof(struct model_limit *), by_age);
}

static struct model_limit *find_named(struct model *model, enum rl_target_kind kind, const char *name)
{
	struct rl_target target = {.kind = kind};

	strncpy(target.name, name, sizeof(target.name) - 1);
	return model_find(model, &target, NULL);
}

/* After each change. */
static void resolve(struct model *model)
{
	model->general_count = 0;
	for (struct model_limit *limit = model->limit; limit < model->end; limit++)
		if (limit->used && limit->target.kind == RL_TARGET_PREFIX && !is_class(limit))
			model->general[model->general_count++] = limit;
	qsort(model->general, (size_t)model->general_count, sizeof(struct model_limit *), by_length);
	for (int i = 0; i < model->general_count; i++) {
		model->general[i]->tenant = resolve_tenant(model, model->general[i]);
		resolve_classes(model, model->general[i]);
	}
	model->fresh = find_named(model, RL_TARGET_NEW, "");
	for (int i = 0; i < MODEL_DEVICES; i++)
		model->device[i].limit = find_named(model, RL_TARGET_DEVICE, model->device[i].name);
}

/* --- changes --- */

static void change_buckets(struct model_limit *limit, const struct rl_limit *quantum, __u64 now)
{
	for (int unit = 0; unit < RL_UNITS; unit++) {
		model_level_change(&limit->whole.unit[unit], &quantum->rate[unit], now);
		for (int i = 0; i < MODEL_SOURCES && limit->source[i].family; i++)
			model_level_change(&limit->source[i].unit[unit], &quantum->rate[unit], now);
	}
}

/* What a target has: everything, or its classes alone. */
static void delete_all(struct model *model, const struct rl_target *target, bool only_classes)
{
	for (struct model_limit *limit = model->limit; limit < model->end; limit++)
		if (limit->used && same_target(&limit->target, target) && (is_class(limit) || !only_classes))
			limit->used = false;
}

bool model_set(struct model *model, const struct rl_target *target, const struct rl_terms *terms,
	       const struct rl_limit *quantum, __u64 now)
{
	struct model_limit *limit = model_find(model, target, &terms->class);

	if (terms->class.kinds && !limit_ensure(model, target))
		return false;
	if (terms->tenant[0]) {
		struct rl_target tenant = tenant_of(terms->tenant);

		if (!limit_ensure(model, &tenant))
			return false;
	}
	if (!limit)
		limit = limit_make(model, target, terms);
	else if (limit->quantum.gen != quantum->gen)
		change_buckets(limit, quantum, now);
	if (!limit)
		return false;
	limit->stated = true;
	limit->terms = *terms;
	limit->quantum = *quantum;
	if (terms->action != RL_ACTION_LIMIT)
		delete_all(model, target, true);
	resolve(model);
	return true;
}

bool model_refuses(struct model *model, const struct rl_target *target, const struct rl_terms *terms)
{
	const struct model_limit *general = model_find(model, target, NULL);

	return terms->class.kinds && general && general->terms.action != RL_ACTION_LIMIT;
}

bool model_is_named(const struct model *model, const struct rl_target *tenant)
{
	for (int i = 0; i < model->general_count; i++)
		if (!memcmp(model->general[i]->terms.tenant, tenant->name, sizeof(tenant->name)))
			return true;
	return false;
}

void model_empty(struct model *model, struct model_limit *tenant, const struct rl_limit *quantum, __u64 now)
{
	const struct rl_target target = tenant->target;

	model_set(model, &target, &no_terms, quantum, now);
	memset(tenant->whole.unit, 0, sizeof(tenant->whole.unit)); /* never charged */
	tenant->stated = false;
}

/* A general limit that was made for its classes goes with the last of them. */
static void delete_class(struct model *model, struct model_limit *class)
{
	struct model_limit *general = model_find(model, &class->target, NULL);

	class->used = false;
	if (!general->stated && general->class_count == 1)
		general->used = false;
}

bool model_delete(struct model *model, const struct rl_target *target, const struct rl_class *class)
{
	struct model_limit *found = model_find(model, target, class);

	if (!found || (target->kind == RL_TARGET_TENANT && !found->stated))
		return false;
	if (class)
		delete_class(model, found);
	else
		delete_all(model, target, false);
	resolve(model);
	return true;
}

void model_reset(struct model *model)
{
	for (struct model_limit *limit = model->limit; limit < model->end; limit++) {
		memset(&limit->count, 0, sizeof(limit->count));
		memset(&limit->whole.tally, 0, sizeof(limit->whole.tally));
		for (int i = 0; i < MODEL_SOURCES; i++)
			memset(&limit->source[i].tally, 0, sizeof(limit->source[i].tally));
	}
	for (int i = 0; i < MODEL_DEVICES; i++)
		memset(&model->device[i].count, 0, sizeof(model->device[i].count));
}

/* --- which limits a packet meets --- */

static struct model_limit *classify(struct model *model, const struct model_packet *packet)
{
	for (int i = 0; i < model->general_count; i++)
		if (inside(&model->general[i]->target.prefix, packet->family, packet->addr))
			return model->general[i];
	return NULL;
}

static bool class_matches(const struct rl_class *class, const struct model_packet *packet)
{
	return (packet->kinds & class->kinds) == class->kinds && packet->port >= class->from &&
	       packet->port <= class->to;
}

static __u64 cost_of(const struct rl_terms *terms, const struct model_packet *packet)
{
	__u64 dearest = 0;

	for (int i = 0; i < terms->cost_count; i++)
		if (class_matches(&terms->cost[i].class, packet) && terms->cost[i].tokens > dearest)
			dearest = terms->cost[i].tokens;
	return dearest ? dearest : 1;
}

static enum rl_priority priority_of(const struct model_limit *limit, const struct model_limit *of_tenant)
{
	if (limit->terms.priority != RL_PRIORITY_UNSET)
		return limit->terms.priority;
	if (of_tenant && of_tenant->terms.priority != RL_PRIORITY_UNSET)
		return of_tenant->terms.priority;
	return RL_PRIORITY_NORMAL;
}

/* --- buckets --- */

/* Bits of an address that are one source, by the general limit of its prefix. */
static unsigned int granularity(const struct model_limit *general, __u8 family)
{
	if (general->terms.per)
		return general->terms.per;
	return family == 4 ? 32 : 64;
}

static bool has_one_bucket(const struct model_limit *general)
{
	const struct rl_prefix *prefix = &general->target.prefix;

	if (general->terms.shared)
		return true;
	return prefix->prefixlen &&
	       prefix->prefixlen - RL_PREFIX_FAMILY_BITS >= granularity(general, prefix->family);
}

static void cut(const struct model_limit *general, const struct model_packet *packet, __u8 addr[16])
{
	unsigned int bits = granularity(general, packet->family);

	memset(addr, 0, 16);
	memcpy(addr, packet->addr, (bits + 7) / 8);
	if (bits % 8)
		addr[bits / 8] &= (__u8)(0xff << (8 - bits % 8));
}

/* The bucket of the packet's source under a limit of the prefix whose general limit this is; NULL: it has none yet. */
static struct model_bucket *bucket_find(const struct model_limit *general, struct model_limit *limit,
					const struct model_packet *packet)
{
	__u8 addr[16];

	if (has_one_bucket(general))
		return &limit->whole;
	cut(general, packet, addr);
	for (int i = 0; i < MODEL_SOURCES && limit->source[i].family; i++)
		if (limit->source[i].family == packet->family &&
		    !memcmp(limit->source[i].addr, addr, sizeof(addr)))
			return &limit->source[i];
	return NULL;
}

static void touch(struct model_bucket *bucket, const struct model_limit *limit, __u64 now)
{
	for (int unit = 0; unit < RL_UNITS; unit++)
		model_level_touch(&bucket->unit[unit], &limit->quantum, (enum rl_unit)unit, now);
}

/* A source is given its bucket: full, and counted at the limit's present rate from now on. */
static struct model_bucket *bucket_make(const struct model_limit *general, struct model_limit *limit,
					const struct model_packet *packet, __u64 now)
{
	for (int i = 0; i < MODEL_SOURCES; i++) {
		struct model_bucket *bucket = &limit->source[i];

		if (bucket->family)
			continue;
		memset(bucket, 0, sizeof(*bucket));
		bucket->family = packet->family;
		cut(general, packet, bucket->addr);
		touch(bucket, limit, now);
		return bucket;
	}
	abort(); /* the pool of sources is smaller than that */
}

/* --- a packet --- */

static void hold_add(struct holds *holds, enum rl_level level, struct model_limit *limit,
		     struct model_bucket *bucket, __u64 tokens, __u32 len, enum rl_priority priority)
{
	struct hold *hold = &holds->at[holds->count++];
	const struct rl_rate *rate = limit->quantum.rate;

	*hold = (struct hold){.limit = limit, .bucket = bucket, .level = level};
	hold->cost[RL_PACKETS] = model_cost(&rate[RL_PACKETS], tokens);
	hold->cost[RL_BYTES] = model_cost(&rate[RL_BYTES], len);
	for (int unit = 0; unit < RL_UNITS; unit++)
		if (level == RL_LEVEL_TENANT || level == RL_LEVEL_DEVICE)
			hold->kept[unit] = rate[unit].kept[priority];
}

/* Is the packet within this hold in both units? */
static bool hold_admits(const struct hold *hold, __u64 now)
{
	if (!hold->bucket)
		return true;
	touch(hold->bucket, hold->limit, now);
	for (int unit = 0; unit < RL_UNITS; unit++)
		if (model_level_lack(&hold->bucket->unit[unit], &hold->limit->quantum.rate[unit],
				     hold->cost[unit], hold->kept[unit], now) > 0)
			return false;
	return true;
}

static void hold_take(const struct hold *hold)
{
	for (int unit = 0; unit < RL_UNITS; unit++)
		if (hold->bucket && hold->limit->quantum.rate[unit].mult)
			model_level_take(&hold->bucket->unit[unit], hold->cost[unit]);
}

static void count(struct rl_count *counter, __u32 len)
{
	counter->packets++;
	counter->bytes += len;
}

/* Is one more source granted a bucket? */
static bool admits_new(struct model_limit *fresh, __u64 now)
{
	struct hold hold = {.limit = fresh, .bucket = &fresh->whole};

	hold.cost[RL_PACKETS] = model_cost(&fresh->quantum.rate[RL_PACKETS], 1);
	if (!hold_admits(&hold, now))
		return false;
	hold_take(&hold);
	return true;
}

/* A source's packet comes for the first time: may it have a bucket? Returns 0, or the reason why not. */
static enum rl_reason admit_source(struct model *model, struct model_device *device,
				   const struct model_packet *packet, __u64 now)
{
	struct model_limit *fresh = model->fresh;

	if (!fresh)
		return 0;
	if (admits_new(fresh, now)) {
		count(&fresh->count.passed, packet->len);
		return 0;
	}
	if (fresh->terms.shadow || device->shadow)
		return RL_SHADOW_NEW; /* counted once nothing else drops it */
	count(&fresh->count.dropped, packet->len);
	return RL_DROP_NEW;
}

/* The limits of its classes. A source that has its general bucket, or would have one, is given theirs for nothing. */
static void hold_classes(struct model_limit *general, const struct model_packet *packet, struct holds *holds,
			 __u64 now)
{
	for (int i = 0; i < general->class_count; i++) {
		struct model_limit *limit = general->class[i];
		struct model_bucket *bucket;

		if (!class_matches(&limit->terms.class, packet))
			continue;
		bucket = bucket_find(general, limit, packet);
		if (!bucket)
			bucket = bucket_make(general, limit, packet, now);
		hold_add(holds, RL_LEVEL_CLASS, limit, bucket, 1, packet->len, 0);
	}
}

static void hold_shared(const struct model_device *device, struct model_limit *general,
			const struct model_packet *packet, struct holds *holds)
{
	struct model_limit *of_tenant = general ? general->tenant : NULL;
	struct model_limit *of_device = device->limit;
	enum rl_priority priority = general ? priority_of(general, of_tenant) : RL_PRIORITY_NORMAL;
	__u64 tokens = general ? cost_of(&general->terms, packet) : 1;

	if (of_tenant)
		hold_add(holds, RL_LEVEL_TENANT, of_tenant, &of_tenant->whole, tokens, packet->len, priority);
	if (of_device)
		hold_add(holds, RL_LEVEL_DEVICE, of_device, &of_device->whole, tokens, packet->len, priority);
}

/*
 * The packet against all that it is held to: charged to each, or to none. `shadow` is what would have dropped it already, or
 * 0; so is what is returned: within all of them.
 */
static enum rl_reason judge_holds(const struct model_device *device, const struct holds *holds,
				  enum rl_reason shadow, __u32 len, __u64 now)
{
	static const enum rl_reason drop[RL_LEVELS] = {RL_DROP_SOURCE, RL_DROP_CLASS, RL_DROP_TENANT,
						       RL_DROP_DEVICE};
	bool shadowed[RL_MAX_HOLDS] = {false};

	for (int i = 0; i < holds->count; i++) {
		const struct hold *hold = &holds->at[i];

		if (hold_admits(hold, now))
			continue;
		if (!hold->limit->terms.shadow && !device->shadow) {
			count(&hold->limit->count.dropped, len);
			return drop[hold->level];
		}
		shadowed[i] = true;
		if (!shadow)
			shadow = rl_reason_shadow(drop[hold->level]);
	}
	for (int i = 0; i < holds->count; i++) {
		count(&holds->at[i].limit->count.passed, len);
		if (shadowed[i])
			count(&holds->at[i].limit->count.shadow, len);
		if (!shadow)
			hold_take(&holds->at[i]);
	}
	return shadow;
}

static void tally(struct model_bucket *bucket, enum rl_reason reason, __u32 len)
{
	count(rl_reason_drops(reason) ? &bucket->tally.dropped : &bucket->tally.passed, len);
	if (rl_reason_shadows(reason))
		count(&bucket->tally.shadow, len);
}

static enum rl_reason deny(const struct model_device *device, struct model_limit *general, __u32 len)
{
	if (!general->terms.shadow && !device->shadow) {
		count(&general->count.dropped, len);
		return RL_DROP_DENIED;
	}
	count(&general->count.passed, len);
	count(&general->count.shadow, len);
	return RL_SHADOW_DENIED;
}

/*
 * The source's own limit and its classes'. Returns 0, or what drops it, or would, before any bucket is asked; *bucket is
 * its general one, NULL where `new` is in shadow and didn't grant it.
 */
static enum rl_reason hold_prefix(struct model *model, struct model_device *device,
				  struct model_limit *general, const struct model_packet *packet,
				  struct holds *holds, struct model_bucket **bucket, __u64 now)
{
	enum rl_reason reason = 0;

	*bucket = bucket_find(general, general, packet);
	if (!*bucket) {
		reason = admit_source(model, device, packet, now);
		if (rl_reason_drops(reason))
			return reason;
		if (!reason)
			*bucket = bucket_make(general, general, packet, now);
	}
	hold_add(holds, RL_LEVEL_SOURCE, general, *bucket, cost_of(&general->terms, packet), packet->len, 0);
	if (!reason) /* what `new` in shadow doesn't grant a bucket isn't given one for its classes either */
		hold_classes(general, packet, holds, now);
	return reason;
}

/* A packet whose source can be read. */
static enum rl_reason judge(struct model *model, struct model_device *device,
			    const struct model_packet *packet, __u64 now)
{
	struct model_limit *general = classify(model, packet);
	struct model_bucket *bucket = NULL;
	struct holds holds = {.count = 0};
	enum rl_reason reason = 0;

	if (general && general->terms.action == RL_ACTION_ALLOW) {
		count(&general->count.passed, packet->len);
		return RL_PASS_ALLOWED;
	}
	if (general && general->terms.action == RL_ACTION_DENY)
		return deny(device, general, packet->len);
	if (general)
		reason = hold_prefix(model, device, general, packet, &holds, &bucket, now);
	if (rl_reason_drops(reason))
		return reason;
	hold_shared(device, general, packet, &holds);
	reason = judge_holds(device, &holds, reason, packet->len, now);
	if (reason == RL_SHADOW_NEW)
		count(&model->fresh->count.shadow, packet->len);
	if (bucket)
		tally(bucket, reason, packet->len);
	if (reason)
		return reason;
	if (packet->malformed)
		return RL_PASS_MALFORMED;
	return holds.count ? RL_PASS_LIMIT : RL_PASS_NO_LIMIT;
}

enum rl_reason model_packet(struct model *model, unsigned int device_index, const struct model_packet *packet,
			    __u64 now)
{
	struct model_device *device = &model->device[device_index];
	enum rl_reason reason;

	if (device->paused)
		reason = RL_PASS_PAUSED;
	else if (packet->not_ip)
		reason = RL_PASS_NOT_IP;
	else if (packet->unparsed)
		reason = RL_PASS_UNPARSED;
	else
		reason = judge(model, device, packet, now);
	count(&device->count.by_reason[reason], packet->len);
	return reason;
}

/* --- looking ahead --- */

/* ns until the hold admits its packet; rounded up. */
static __u64 hold_wait(const struct hold *hold, __u64 now, __u64 most)
{
	__u64 wait = 0;

	for (int unit = 0; unit < RL_UNITS; unit++) {
		struct model_level copy = hold->bucket->unit[unit];
		const struct rl_rate *rate = &hold->limit->quantum.rate[unit];
		model_units lack;

		model_level_touch(&copy, &hold->limit->quantum, (enum rl_unit)unit, now);
		lack = model_level_lack(&copy, rate, hold->cost[unit], hold->kept[unit], now);
		if (lack <= 0)
			continue;
		lack = (lack + ((model_units)1 << rate->shift) - 1) >> rate->shift;
		if (lack > wait)
			wait = lack > most ? most : (__u64)lack;
	}
	return wait;
}

__u64 model_wait(struct model *model, unsigned int device_index, const struct model_packet *packet, __u64 now,
		 __u64 most)
{
	struct model_limit *general;
	struct holds holds = {.count = 0};
	__u64 wait = 0;

	if (packet->not_ip || packet->unparsed)
		return 0;
	general = classify(model, packet);
	if (general && (general->terms.action != RL_ACTION_LIMIT || !bucket_find(general, general, packet)))
		return 0;
	if (general)
		hold_add(&holds, RL_LEVEL_SOURCE, general, bucket_find(general, general, packet),
			 cost_of(&general->terms, packet), packet->len, 0);
	for (int i = 0; general && i < general->class_count; i++)
		if (class_matches(&general->class[i] -> terms.class, packet) &&
		    bucket_find(general, general->class[i], packet))
			hold_add(&holds, RL_LEVEL_CLASS, general->class[i],
				 bucket_find(general, general->class[i], packet), 1, packet -> len, 0);
	hold_shared(&model->device[device_index], general, packet, &holds);
	for (int i = 0; i < holds.count; i++) {
		__u64 needs = hold_wait(&holds.at[i], now, most);

		if (needs > wait)
			wait = needs;
	}
	return wait;
}
