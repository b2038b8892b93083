/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_admit.h - the way of a packet: parse, classify, hold, look, charge, count. Every entry point is a thin shell around
 * rl_handle(), which returns why the packet passes or drops. Compiles on both sides.
 *
 *   hold    which limits apply: its source's, those of its classes, its tenant's, its device's, in this order
 *   look    would each admit it? The first that wouldn't drops it, and nothing is charged
 *   charge  all of them. Only a race can make one fail then; those before it are refunded
 *
 * A limit in shadow that wouldn't admit the packet lets it pass, and then nothing is charged at any level.
 *
 * The includer defines, besides what rl_fast.h and rl_fresh.h ask for:
 *   __u32 rl_slot_of(const struct rl_packet *)     the slot of the longest prefix that matches its source; 0: none
 *   const struct rl_device *rl_device_at(__u32 device)
 *   struct rl_source *rl_nd_at(__u32 device), const struct rl_limit *rl_nd_budget(void)
 *   struct rl_device_count *rl_device_count_at(__u32 device)
 *   struct rl_source *rl_lru_at(const struct rl_job *, const struct rl_limit *)   the source that it is held to
 */
#ifndef RL_ADMIT_H
#define RL_ADMIT_H

#include "rl_class.h"
#include "rl_fast.h"
#include "rl_fresh.h"
#include "rl_ref.h"
#include "rl_sources.h"

/* The buckets that a hold is about; false where there are none, or not any more. */
RL_INLINE int rl_hold_place(const struct rl_job *job, const struct rl_hold *hold,
			    const struct rl_limit *limit, struct rl_place *out)
{
	struct rl_source *source;
	struct rl_row *row;

	out->whose = hold->whose;
	switch (hold->where) {
	case RL_AT_OWN:
		source = rl_own_at(hold->index);
		break;
	case RL_AT_LRU:
		source = rl_lru_at(job, limit);
		break;
	case RL_AT_ROWS4:
	case RL_AT_ROWS6:
	case RL_AT_GROUPS:
		row = rl_row_at(hold->where, hold->index);
		if (!row)
			return 0;
		out->buckets = &row->at[hold->place & (RL_ROW - 1)].buckets;
		out->key = &row->key[hold->place & (RL_ROW - 1)];
		return 1;
	default:
		return 0;
	}
	if (!source)
		return 0;
	out->buckets = &source->buckets;
	out->key = &source->key;
	return 1;
}

/*
 * What the packet costs this limit, in bucket time: each of those that the kernel merged into it, or bytes on the wire. At most
 * RL_GCRA_BURST_MAX, which no burst holds.
 */
RL_INLINE __u64 rl_hold_cost(const struct rl_job *job, const struct rl_limit *limit, enum rl_unit unit)
{
	__u64 each;

	if (unit == RL_BYTES)
		return rl_bucket_cost(limit, unit, job->len);
	each = rl_bucket_cost(limit, unit, limit->level == RL_LEVEL_CLASS ? 1 : job->cost);
	if (job->segments > 1 && each > RL_GCRA_BURST_MAX / job->segments)
		return RL_GCRA_BURST_MAX;
	return each * job->segments;
}

/* The drop's name: the level that wouldn't admit it. */
RL_INLINE enum rl_reason rl_hold_reason(const struct rl_hold *hold, const struct rl_limit *limit,
					enum rl_gcra_verdict verdict)
{
	if (verdict != RL_GCRA_REJECT && verdict != RL_GCRA_REPAIR)
		return RL_DROP_CONTENDED;
	if (hold->where == RL_AT_GROUPS)
		return RL_DROP_AGGREGATE;
	switch (limit->level) {
	case RL_LEVEL_CLASS:
		return RL_DROP_CLASS;
	case RL_LEVEL_TENANT:
		return RL_DROP_TENANT;
	case RL_LEVEL_DEVICE:
		return RL_DROP_DEVICE;
	default:
		return RL_DROP_SOURCE;
	}
}

/* The limit wouldn't admit the packet: RL_PASS_LIMIT where it is in shadow, which is noted, or the drop's reason. */
RL_INLINE int rl_hold_refuses(struct rl_job *job, struct rl_hold *hold, const struct rl_limit *limit,
			      enum rl_reason drop)
{
	if (!job->shadow && !(limit->flags & RL_LIMIT_SHADOW)) {
		job->dropper = limit->slot;
		return drop;
	}
	hold->shadowed = 1;
	if (!job->shadows)
		job->shadows = rl_reason_shadow(drop);
	return RL_PASS_LIMIT;
}

/* Would the limit of hold i admit the packet? RL_PASS_LIMIT, also where it is in shadow, or why not. */
RL_FUNCTION int rl_look(struct rl_job *job, __u32 i)
{
	enum rl_gcra_verdict verdict;
	const struct rl_limit *limit;
	struct rl_place place;
	struct rl_hold *hold;

	if (!job || i >= RL_MAX_HOLDS)
		return RL_PASS_LIMIT; /* never so: said for the verifier */
	hold = &job->hold[i];
	limit = rl_limit_at(hold->cell);
	if (!limit || !rl_hold_place(job, hold, limit, &place)) {
		if (hold->where != RL_AT_NONE && hold->where != RL_AT_LRU)
			job->passes = RL_PASS_ERROR; /* never so, but it would pass unheld: counted */
		return RL_PASS_LIMIT;
	}
	verdict = (enum rl_gcra_verdict)rl_place_renew(&place, limit, job->now);
	if (!verdict && limit->rate[RL_PACKETS].mult)
		verdict = rl_bucket_look(&place, limit, RL_PACKETS, rl_hold_cost(job, limit, RL_PACKETS),
					 rl_rate_kept(&limit->rate[RL_PACKETS], job->priority), job->now);
	if (!verdict && limit->rate[RL_BYTES].mult)
		verdict = rl_bucket_look(&place, limit, RL_BYTES, rl_hold_cost(job, limit, RL_BYTES),
					 rl_rate_kept(&limit->rate[RL_BYTES], job->priority), job->now);
	if (verdict == RL_GCRA_ADMIT)
		return RL_PASS_LIMIT;
	return rl_hold_refuses(job, hold, limit, rl_hold_reason(hold, limit, verdict));
}

/* Charge one unit of a hold. */
RL_INLINE enum rl_gcra_verdict rl_charge_unit(const struct rl_job *job, struct rl_hold *hold,
					      const struct rl_place *place, const struct rl_limit *limit,
					      enum rl_unit unit)
{
	__u64 left;

	if (!limit->rate[unit].mult)
		return RL_GCRA_ADMIT;
	left = rl_bucket_charge(place, limit, unit, rl_hold_cost(job, limit, unit),
				rl_rate_kept(&limit->rate[unit], job->priority), job->now);
	if (rl_bucket_verdict(left) == RL_GCRA_ADMIT)
		hold->left[unit] = left;
	return rl_bucket_verdict(left);
}

/* Charge the limit of hold i, in each unit that it has. RL_PASS_LIMIT, also where a shadow lets it pass uncharged, or why
 * not; what was charged of it then is for rl_refund() to give back. */
RL_FUNCTION int rl_charge(struct rl_job *job, __u32 i)
{
	enum rl_gcra_verdict verdict;
	const struct rl_limit *limit;
	struct rl_place place;
	struct rl_hold *hold;

	if (!job || i >= RL_MAX_HOLDS)
		return RL_PASS_LIMIT; /* never so: said for the verifier */
	hold = &job->hold[i];
	limit = rl_limit_at(hold->cell);
	if (!limit || !rl_hold_place(job, hold, limit, &place))
		return RL_PASS_LIMIT;
	verdict = rl_charge_unit(job, hold, &place, limit, RL_PACKETS);
	if (verdict == RL_GCRA_ADMIT)
		verdict = rl_charge_unit(job, hold, &place, limit, RL_BYTES);
	if (verdict == RL_GCRA_ADMIT)
		return RL_PASS_LIMIT;
	return rl_hold_refuses(job, hold, limit, rl_hold_reason(hold, limit, verdict));
}

/* Give back what hold i was charged. */
RL_FUNCTION int rl_refund(struct rl_job *job, __u32 i)
{
	const struct rl_limit *limit;
	struct rl_place place;
	struct rl_hold *hold;

	if (!job || i >= RL_MAX_HOLDS)
		return 0; /* never so: said for the verifier */
	hold = &job->hold[i];
	limit = rl_limit_at(hold->cell);
	if (!limit || !rl_hold_place(job, hold, limit, &place))
		return 0;
	if (hold->left[RL_PACKETS])
		rl_bucket_refund(&place, limit, RL_PACKETS, rl_hold_cost(job, limit, RL_PACKETS),
				 hold->left[RL_PACKETS], rl_limit_sliced(limit));
	if (hold->left[RL_BYTES])
		rl_bucket_refund(&place, limit, RL_BYTES, rl_hold_cost(job, limit, RL_BYTES),
				 hold->left[RL_BYTES], rl_limit_sliced(limit));
	return 0;
}

/* Would all that the packet is held to admit it? RL_PASS_LIMIT, also where what wouldn't is in shadow, or why not. */
RL_FUNCTION int rl_look_all(struct rl_job *job)
{
	int reason = RL_PASS_LIMIT;

	if (!job)
		return reason; /* never so: said for the verifier */
	for (__u32 i = 0; i < RL_MAX_HOLDS && i < job->count && reason == RL_PASS_LIMIT; i++)
		reason = rl_look(job, i);
	return reason;
}

/* Charge all of it, and give it back where that fails on the way. As above. */
RL_FUNCTION int rl_charge_all(struct rl_job *job)
{
	int reason = RL_PASS_LIMIT;

	if (!job)
		return reason; /* never so: said for the verifier */
	for (__u32 i = 0; i < RL_MAX_HOLDS && i < job->count && reason == RL_PASS_LIMIT && !job->shadows; i++)
		reason = rl_charge(job, i);
	if (reason == RL_PASS_LIMIT && !job->shadows)
		return reason;
	for (__u32 i = 0; i < RL_MAX_HOLDS && i < job->count; i++)
		rl_refund(job, i);
	return reason;
}

RL_INLINE enum rl_reason rl_admit(struct rl_job *job)
{
	int reason = rl_look_all(job);

	if (reason == RL_PASS_LIMIT && !job->shadows)
		reason = rl_charge_all(job);
	if (reason != RL_PASS_LIMIT)
		return (enum rl_reason)reason;
	return (enum rl_reason)(job->shadows ? job->shadows : job->passes);
}

/* What became of finding the source's place: go on (RL_PASS_LIMIT), or drop. */
RL_INLINE int rl_held(struct rl_job *job, const struct rl_limit *limit, int reason)
{
	__u32 last = job->count - 1;

	if (reason == RL_PASS_AGGREGATE || reason == RL_PASS_OPEN || reason == RL_PASS_ERROR)
		job->passes = (__u32)reason;
	if (reason == RL_SHADOW_NEW)
		job->shadows = RL_SHADOW_NEW;
	if (!rl_reason_drops((enum rl_reason)reason))
		return RL_PASS_LIMIT;
	if (job->dropper) /* `new`'s */
		return reason;
	if (last >= RL_MAX_HOLDS)
		return RL_PASS_LIMIT; /* never so: said for the verifier */
	return rl_hold_refuses(job, &job->hold[last], limit, (enum rl_reason)reason);
}

/* Hold the packet to class limit i of its prefix, if it is of that class. */
RL_FUNCTION int rl_hold_class(struct rl_job *job, __u32 cell, __u32 i)
{
	const struct rl_limit *limit = rl_limit_at(cell), *class;
	__u32 of;

	if (!job || !limit || i >= RL_MAX_CLASSES)
		return RL_PASS_LIMIT; /* never so: said for the verifier */
	if (!rl_class_matches(&limit->class[i].class, job->kinds, job->port))
		return RL_PASS_LIMIT;
	of = rl_cell_of(job->epoch, limit->class[i].slot);
	class = rl_limit_at(of);
	if (!class)
		return RL_PASS_LIMIT;
	return rl_held(job, class, rl_source_hold(job, of, 1));
}

/* Hold the packet to each class limit of its prefix that it matches. */
RL_INLINE int rl_hold_classes(struct rl_job *job, __u32 cell, __u32 count)
{
	int reason = RL_PASS_LIMIT;

	for (__u32 i = 0; i < RL_MAX_CLASSES && i < count && reason == RL_PASS_LIMIT; i++)
		reason = rl_hold_class(job, cell, i);
	return reason;
}

/* Hold the packet to a limit with a bucket of its own: a tenant's, a device's. */
RL_FUNCTION int rl_hold_own(struct rl_job *job, __u32 slot)
{
	const struct rl_limit *limit;
	struct rl_hold *hold;
	__u32 cell, count;

	if (!job)
		return 0; /* never so: said for the verifier */
	cell = rl_cell_of(job->epoch, slot);
	limit = rl_limit_at(cell);
	count = job->count;
	if (!limit || count >= RL_MAX_HOLDS)
		return 0;
	job->count = count + 1;
	hold = &job->hold[count];
	hold->cell = cell;
	hold->slot = hold->index = limit->slot;
	hold->shadowed = 0;
	hold->left[RL_PACKETS] = hold->left[RL_BYTES] = 0;
	hold->where = RL_AT_OWN;
	hold->whose = limit->id;
	return 1;
}

/* A prefix that is trusted, or denied. RL_PASS_LIMIT: neither. */
RL_INLINE enum rl_reason rl_trust(struct rl_job *job, const struct rl_limit *limit)
{
	if (limit->action == RL_ACTION_ALLOW)
		return RL_PASS_ALLOWED;
	if (limit->action != RL_ACTION_DENY)
		return RL_PASS_LIMIT;
	if (job->shadow || (limit->flags & RL_LIMIT_SHADOW))
		return RL_SHADOW_DENIED;
	job->dropper = limit->slot;
	return RL_DROP_DENIED;
}

/* Remember, for counting, a limit that holds nothing back. */
RL_INLINE void rl_hold_trust(struct rl_job *job, __u32 cell, const struct rl_limit *limit,
			     enum rl_reason reason)
{
	job->count = 1;
	job->hold[0] = (struct rl_hold){
	    .cell = cell, .slot = limit->slot, .where = RL_AT_NONE, .shadowed = reason == RL_SHADOW_DENIED};
}

/* An IP packet against every limit that applies to it. */
RL_FUNCTION int rl_judge_source(struct rl_job *job)
{
	const struct rl_device *device;
	const struct rl_limit *limit, *tenant = 0;
	__u32 cell;
	int reason;

	if (!job)
		return RL_PASS_ERROR; /* never so: said for the verifier */
	device = rl_device_at(job->device);
	cell = rl_cell_of(job->epoch, rl_slot_of(&job->packet));
	limit = rl_limit_at(cell);
	job->passes = RL_PASS_LIMIT;
	job->cost = 1;
	job->kinds = rl_packet_kinds(&job->packet);
	job->port = job->packet.dport;
	if (limit) {
		reason = rl_trust(job, limit);
		if (reason != RL_PASS_LIMIT) {
			rl_hold_trust(job, cell, limit, (enum rl_reason)reason);
			return reason;
		}
		job->cost = rl_packet_cost(limit, job->kinds, job->port);
		tenant = rl_limit_at(rl_cell_of(job->epoch, limit->tenant));
		reason = rl_held(job, limit, rl_source_hold(job, cell, 0));
		/* What `new` in shadow doesn't grant a bucket isn't given one for its classes either. */
		if (reason == RL_PASS_LIMIT && job->shadows != RL_SHADOW_NEW)
			reason = rl_hold_classes(job, cell, limit->class_count);
		if (reason != RL_PASS_LIMIT)
			return reason;
		if (tenant)
			rl_hold_own(job, limit->tenant);
	}
	job->priority = rl_priority_of(limit, tenant);
	if (device)
		rl_hold_own(job, device->limit);
	if (!job->count)
		return job->packet.flags & RL_PACKET_MALFORMED ? RL_PASS_MALFORMED : RL_PASS_NO_LIMIT;
	if (job->packet.flags & RL_PACKET_MALFORMED)
		job->passes = RL_PASS_MALFORMED;
	return rl_admit(job);
}

/* Is there room in the device's budget for neighbour discovery? Without it, such a packet is one like any
 * other. */
RL_INLINE int rl_nd_admit(const struct rl_job *job)
{
	const struct rl_limit *budget = rl_nd_budget();
	struct rl_source *nd = rl_nd_at(job->device);
	struct rl_place place;

	if (!budget || !nd)
		return 1;
	place.buckets = &nd->buckets;
	place.key = &nd->key;
	place.whose = 0;
	if (rl_place_renew(&place, budget, job->now))
		return 0;
	return rl_bucket_verdict(rl_bucket_charge(&place, budget, RL_PACKETS,
						  rl_gcra_cost(&budget->rate[RL_PACKETS], 1), 0, job->now)) ==
	       RL_GCRA_ADMIT;
}

/* The counters of a source whose bucket isn't in a row. */
RL_INLINE void rl_count_apart(const struct rl_job *job, struct rl_tally *tally, const struct rl_hold *hold,
			      enum rl_reason reason)
{
	if (!rl_reason_drops(reason))
		rl_tally_pass(job, &tally->passed, &tally->shadow, reason);
	else if (hold->where == RL_AT_LRU)
		rl_count_shared(&tally->dropped, job->segments, job->len);
	else
		rl_tally_drop(job, &tally->dropped, RL_PLACE_OWN | hold->index, hold->whose);
}

/* The source's own counters, beside its bucket. */
RL_INLINE void rl_count_source(const struct rl_job *job, const struct rl_hold *hold, enum rl_reason reason)
{
	const struct rl_limit *limit = rl_limit_at(hold->cell);
	struct rl_row *row;
	struct rl_source *source = 0;

	/* Those of tenants and devices are counted per CPU alone. */
	if (hold->where == RL_AT_OWN && limit && limit->level <= RL_LEVEL_CLASS)
		source = rl_own_at(hold->index);
	if (hold->where == RL_AT_LRU && limit)
		source = rl_lru_at(job, limit);
	if (source)
		rl_count_apart(job, &source->tally, hold, reason);
	if (hold->where != RL_AT_ROWS4 && hold->where != RL_AT_ROWS6)
		return;
	row = rl_row_at(hold->where, hold->index);
	if (row)
		rl_tally_row(job, row, hold->index, hold->place & (RL_ROW - 1), hold->whose, reason);
}

/* What the limit of hold i did with the packet. */
RL_FUNCTION int rl_count_hold(struct rl_job *job, __u32 i, int reason)
{
	struct rl_limit_count *count;
	struct rl_hold *hold;

	if (!job || i >= RL_MAX_HOLDS)
		return 0; /* never so: said for the verifier */
	hold = &job->hold[i];
	count = rl_limit_count_at(hold->slot);
	if (count && !rl_reason_drops((enum rl_reason)reason))
		rl_count_local(&count->passed, job->segments, job->len);
	if (count && hold->shadowed && !rl_reason_drops((enum rl_reason)reason))
		rl_count_local(&count->shadow, job->segments, job->len);
	rl_count_source(job, hold, (enum rl_reason)reason);
	return 0;
}

/* The limits' counters: each that the packet was held to, and the one that dropped it. */
RL_FUNCTION int rl_count_limits(struct rl_job *job, int reason)
{
	int drops = rl_reason_drops((enum rl_reason)reason);
	struct rl_limit_count *count;
	__u32 slot;

	if (!job)
		return 0; /* never so: said for the verifier */
	for (__u32 i = 0; i < RL_MAX_HOLDS && i < job->count; i++)
		rl_count_hold(job, i, reason);
	slot = drops ? job->dropper : job->new_shadowed;
	count = slot ? rl_limit_count_at(slot) : 0;
	if (count)
		rl_count_local(drops ? &count->dropped : &count->shadow, job->segments, job->len);
	return 0;
}

RL_INLINE void rl_count_device(const struct rl_job *job, enum rl_reason reason)
{
	struct rl_device_count *count = rl_device_count_at(job->device);

	if (count && reason < RL_REASONS)
		rl_count_local(&count->by_reason[reason], job->segments, job->len);
}

/* Judge an IP packet, whatever it is, and count what limits do with it. */
RL_INLINE int rl_judge_any(struct rl_job *job)
{
	int reason;

	job->passes = job->shadows = job->dropper = job->count = 0;
	job->new_left = job->new_shadowed = job->given = 0;
	job->now = rl_now();
	if ((job->packet.flags & RL_PACKET_ND) && rl_nd_admit(job))
		return RL_PASS_ND;
	reason = rl_judge_source(job);
	rl_count_limits(job, reason);
	return reason;
}

RL_INLINE int rl_judge_ip(struct rl_job *job, const struct rl_device *device)
{
	const struct rl_settings *settings = rl_settings_at();
	int reason = RL_NOT_FAST;

	job->epoch = settings ? *(const volatile __u32 *)&settings->epoch : 0;
	job->shadow = device && (device->flags & RL_DEVICE_SHADOW);
	if (device && !job->shadow && job->segments == 1 &&
	    !(job->packet.flags & (RL_PACKET_ND | RL_PACKET_MALFORMED)))
		reason = rl_fast(job, device->limit);
	if (device && reason == RL_NOT_KNOWN)
		reason = rl_fresh(job, device->limit);
	if (reason == RL_NO_ROOM && rl_group_hold(job, &job->hold[0]) == RL_PASS_AGGREGATE)
		reason = RL_HELD;
	if (reason == RL_HELD)
		reason = rl_fresh_settle(job);
	return reason < 0 ? rl_judge_any(job) : reason;
}

RL_INLINE enum rl_reason rl_judge(struct rl_job *job, const void *data, const void *data_end)
{
	const struct rl_device *device = rl_device_at(job->device);

	if (device && (device->flags & RL_DEVICE_PAUSED))
		return RL_PASS_PAUSED;
	switch (rl_parse(data, data_end, &job->packet)) {
	case RL_PARSE_IP:
		return (enum rl_reason)rl_judge_ip(job, device);
	case RL_PARSE_NOT_IP:
		return RL_PASS_NOT_IP;
	default:
		return RL_PASS_UNPARSED;
	}
}

/*
 * Judge and count one frame, or several that the kernel merged into one. [data, data_end) starts at the Ethernet header. *job is
 * room, of any content, but that its segments and len are set.
 */
RL_INLINE enum rl_reason rl_handle(struct rl_job *job, const void *data, const void *data_end, __u32 device)
{
	const struct rl_packet none = {};
	enum rl_reason reason;

	job->packet = none;
	job->device = device;
	reason = rl_judge(job, data, data_end);
	rl_count_device(job, reason);
	return reason;
}

#endif
