// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "explain.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../bpf/rl_class.h"
#include "../bpf/rl_gcra.h"
#include "prefix.h"
#include "sources.h"
#include "units.h"

#define BYTES_MAX (1 << 17) /* more than any frame, and as much as rl_gcra_cost() takes */

typedef unsigned __int128 u128;

const char *rl_explain_why_name(enum rl_explain_why why)
{
	static const char *const names[] = {
	    [RL_EXPLAIN_LONGEST] = "longest_prefix",
	    [RL_EXPLAIN_ALLOWED] = "allowed",
	    [RL_EXPLAIN_DENIED] = "denied",
	    [RL_EXPLAIN_NO_PREFIX] = "no_prefix",
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == RL_EXPLAIN_WHYS, "each has a name");
	return why < RL_EXPLAIN_WHYS ? names[why] : "unknown";
}

const char *rl_level_name(enum rl_level level)
{
	static const char *const names[] = {
	    [RL_LEVEL_SOURCE] = "source", [RL_LEVEL_CLASS] = "class", [RL_LEVEL_TENANT] = "tenant",
	    [RL_LEVEL_DEVICE] = "device", [RL_LEVEL_NEW] = "new",
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == RL_LEVELS, "each level has a name");
	return level < RL_LEVELS ? names[level] : "unknown";
}

static int parse_address(const char *text, struct rl_prefix *out, struct rl_error *err)
{
	const char *expected = "expected an address, such as 203.0.113.7 or 2001:db8::1";
	struct rl_prefix address;
	struct rl_error why = {};
	int rc = rl_prefix_parse(text, &address, &why);
	const char *targets = rc ? strstr(why.text, "; expected any") : NULL;

	if (targets) /* what a limit can be for, and more than one packet comes from */
		return rl_error_set(err, RL_ERROR_USAGE, -rc, "%.*s; %s", (int)(targets - why.text), why.text,
				    expected);
	if (rc) {
		*err = why;
		return rc;
	}
	if (address.prefixlen != RL_PREFIX_FAMILY_BITS + (address.family == 4 ? 32U : 128U))
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "\"%.64s\" holds many addresses, as a limit's target may; %s", text,
				    expected);
	*out = address;
	return 0;
}

/* As IANA numbers it; `icmp` is each family's own. */
static int parse_proto(const char *text, __u8 family, __u8 *out, struct rl_error *err)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long number = 0;

	if (!strcmp(text, "tcp"))
		number = IPPROTO_TCP;
	else if (!strcmp(text, "udp"))
		number = IPPROTO_UDP;
	else if (!strcmp(text, "icmp"))
		number = family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	else if (!digits || digits > 3 || text[digits] || (number = strtoul(text, NULL, 10)) > 255)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "--proto \"%.64s\" is no protocol; expected tcp, udp, icmp, or its number, 0 to "
		    "255",
		    text);
	*out = (__u8)number;
	return 0;
}

/* What contradicts itself. */
static int check_words(const struct rl_explain_words *words, const struct rl_packet *packet,
		       struct rl_error *err)
{
	if (words->syn && packet->proto != IPPROTO_TCP)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "--syn is TCP's: say --proto tcp, or leave --proto out");
	if (words->frag && (words->syn || words->dport))
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "a fragment is looked at without its ports and TCP flags: leave out --dport and --syn, or "
		    "--frag");
	if (words->dport && packet->proto != IPPROTO_TCP && packet->proto != IPPROTO_UDP)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "--dport takes --proto tcp or --proto udp: nothing else has ports");
	return 0;
}

int rl_explain_parse(const struct rl_explain_words *words, struct rl_explain_packet *out,
		     struct rl_error *err)
{
	struct rl_explain_packet explained = {};
	struct rl_packet packet = {};
	__u64 port = 0, bytes = RL_EXPLAIN_BYTES;
	int rc = parse_address(words->address, &explained.source, err);

	packet.family = explained.source.family;
	packet.proto = IPPROTO_NONE; /* of no class */
	if (words->syn)
		packet.proto = IPPROTO_TCP;
	if (!rc && words->proto)
		rc = parse_proto(words->proto, packet.family, &packet.proto, err);
	if (!rc)
		rc = check_words(words, &packet, err);
	if (!rc && words->dport)
		rc = rl_count_parse(words->dport, "--dport", UINT16_MAX, &port, err);
	if (!rc && words->bytes)
		rc = rl_count_parse(words->bytes, "--bytes", BYTES_MAX, &bytes, err);
	if (rc)
		return rc;
	packet.flags = (__u8)((words->syn ? RL_PACKET_SYN : 0) | (words->frag ? RL_PACKET_FRAGMENT : 0) |
			      (port ? RL_PACKET_PORTS : 0));
	explained.kinds = rl_packet_kinds(&packet);
	explained.port = (__u16)port;
	explained.bytes = (__u32)bytes;
	*out = explained;
	return 0;
}

/* The prefixes around the source stand in the order of their length. */
static void find_limit(const struct rl_snapshot *snapshot, struct rl_explain *out)
{
	for (size_t i = 0; i < snapshot->limit_count; i++) {
		const struct rl_limit_stats *limit = &snapshot->limits[i];

		if (limit->limit.target.kind != RL_TARGET_PREFIX || limit->limit.level == RL_LEVEL_CLASS ||
		    !rl_prefix_covers(&limit->limit.target.prefix, &out->packet.source))
			continue;
		if (out->limit && out->wider_count < RL_EXPLAIN_WIDER)
			out->wider[out->wider_count++] = out->limit;
		out->limit = limit;
		if (limit->limit.terms.tenant[0])
			out->tenant_from = limit;
	}
}

static void add_level(struct rl_explain *out, const struct rl_limit_stats *limit)
{
	if (limit && out->level_count < RL_EXPLAIN_LEVELS)
		out->level[out->level_count++].limit = limit;
}

/* Levels of a limited source that are the same on every device. */
static void find_levels(const struct rl_snapshot *snapshot, struct rl_explain *out)
{
	const struct rl_limit *limit = &out->limit->limit;
	const struct rl_limit_stats *tenant = rl_snapshot_slot(snapshot, limit->tenant);

	add_level(out, out->limit);
	for (int i = 0; i < limit->class_count && i < RL_MAX_CLASSES; i++)
		if (rl_class_matches(&limit->class[i].class, out->packet.kinds, out->packet.port))
			add_level(out, rl_snapshot_slot(snapshot, limit->class[i].slot));
	add_level(out, tenant);
	add_level(out, rl_snapshot_slot(snapshot, snapshot->settings.fresh));
	if (limit->priority < RL_PRIORITIES)
		out->priority = limit->priority;
	else if (tenant && tenant->limit.priority < RL_PRIORITIES)
		out->priority = tenant->limit.priority;
	out->cost = rl_packet_cost(limit, out->packet.kinds, out->packet.port);
}

static void find_devices(const struct rl_snapshot *snapshot, const struct rl_device_stats *only,
			 struct rl_explain *out)
{
	for (size_t i = 0; i < snapshot->device_count && out->device_count < RL_MAX_DEVICES; i++) {
		const struct rl_device_stats *device = &snapshot->devices[i];

		if (device->attached.where == RL_GONE || (only && device != only))
			continue;
		out->device[out->device_count++] = (struct rl_explain_device){
		    .device = device,
		    .level.limit = rl_snapshot_slot(snapshot, device->attached.device.limit),
		};
	}
}

void rl_explain_begin(const struct rl_snapshot *snapshot, const struct rl_explain_packet *packet,
		      const struct rl_device_stats *only, struct rl_explain *out)
{
	static const enum rl_explain_why whys[RL_ACTIONS] = {
	    [RL_ACTION_LIMIT] = RL_EXPLAIN_LONGEST,
	    [RL_ACTION_ALLOW] = RL_EXPLAIN_ALLOWED,
	    [RL_ACTION_DENY] = RL_EXPLAIN_DENIED,
	};

	*out = (struct rl_explain){
	    .packet = *packet,
	    .why = RL_EXPLAIN_NO_PREFIX,
	    .source = packet->source,
	    .cost = 1,
	    .priority = RL_PRIORITY_NORMAL,
	    .when_full = (enum rl_when_full)snapshot->settings.when_full,
	};
	find_limit(snapshot, out);
	find_devices(snapshot, only, out);
	if (!out->limit)
		return;
	out->why =
	    out->limit->limit.action < RL_ACTIONS ? whys[out->limit->limit.action] : RL_EXPLAIN_LONGEST;
	if (out->why != RL_EXPLAIN_LONGEST) {
		/* Charged nowhere, so its device's limit doesn't hold it either. */
		for (size_t i = 0; i < out->device_count; i++)
			out->device[i].level.limit = NULL;
		return;
	}
	out->source = out->limit->limit.flags & RL_LIMIT_OWN_BUCKET
			  ? out->limit->limit.target.prefix
			  : rl_prefix_cut(packet->source.family, packet->source.addr,
					  rl_source_bits(&out->limit->limit, packet->source.family));
	find_levels(snapshot, out);
}

const struct rl_explain_level *rl_explain_new(const struct rl_explain *explain)
{
	const struct rl_explain_level *last = explain->level + explain->level_count - 1;

	return explain->level_count && last->limit->limit.level == RL_LEVEL_NEW ? last : NULL;
}

bool rl_explain_no_room(const struct rl_explain_level *level)
{
	enum rl_reason reason = level->trial.reason;

	return !level->found &&
	       (reason == RL_PASS_AGGREGATE || reason == RL_PASS_OPEN || reason == RL_DROP_FULL);
}

/* It is held by its neighbourhood's bucket. */
static bool is_aggregated(const struct rl_explain_level *level)
{
	return rl_explain_no_room(level) && level->trial.reason == RL_PASS_AGGREGATE;
}

/*
 * What the bucket owes, in units of the limit in force. One that no limit in force can read owes all that can
 * be owed.
 */
static __u64 debt_of(const struct rl_limit *limit, enum rl_unit unit, const struct rl_explain_level *level,
		     __u64 now)
{
	const struct rl_buckets *buckets = is_aggregated(level) ? &level->trial.buckets : &level->buckets;
	struct rl_bucket seen = {
	    .word = buckets->word[unit],
	    .gen = (__u32)buckets->version,
	    .stamp = buckets->stamp,
	};
	__u64 debt = 0;

	if (!seen.word)
		return 0;
	if (rl_gcra_present(limit, &seen))
		return rl_gcra_debt(&seen, limit->rate[unit].shift, limit->rate[unit].owed, now);
	rl_gcra_carry(limit, unit, &seen, now, &debt);
	return debt;
}

/* Whole tokens. One takes mult * 2^8 / 2^RL_GCRA_FRAC units. */
static __u64 tokens_of(const struct rl_rate *rate, __u64 units, __u64 most)
{
	u128 tokens = ((u128)units << RL_GCRA_FRAC >> 8) / rate->mult;

	return tokens < most ? (__u64)tokens : most;
}

static struct rl_explain_unit explain_unit(const struct rl_explain *explain,
					   const struct rl_explain_level *level, enum rl_unit unit, __u64 now)
{
	const struct rl_limit *limit = &level->limit->limit;
	const struct rl_rate *rate = &limit->rate[unit];
	bool plain = limit->level == RL_LEVEL_CLASS || limit->level == RL_LEVEL_NEW;
	struct rl_explain_unit out = {.limited = rate->mult != 0};
	__u64 debt, cost, kept = 0, room;

	if (!out.limited)
		return out;
	if (limit->level == RL_LEVEL_TENANT || limit->level == RL_LEVEL_DEVICE)
		kept = rate->kept[explain->priority];
	debt = debt_of(limit, unit, level, now);
	cost = rl_gcra_cost(rate, unit == RL_BYTES ? explain->packet.bytes : plain ? 1 : explain->cost);
	room = rate->burst > kept ? rate->burst - kept : 0;
	out.burst = unit == RL_BYTES ? limit->terms.burst_bytes : limit->terms.burst_packets;
	out.left = tokens_of(rate, rate->burst > debt ? rate->burst - debt : 0, out.burst);
	out.kept = tokens_of(rate, kept, out.left);
	if (cost > room)
		out.wait = RL_EXPLAIN_NEVER;
	else if (debt + cost > room)
		out.wait = ((debt + cost - room - 1) >> rate->shift) + 1;
	return out;
}

/* Without room a full bucket is given as soon as there is some; until then a neighbourhood's has its say, or none. */
static void finish_without_room(struct rl_explain_level *level)
{
	__u64 room = level->trial.room;

	if (is_aggregated(level)) {
		if (level->wait != RL_EXPLAIN_NEVER && room < level->wait)
			level->wait = room;
		return;
	}
	if (level->trial.reason == RL_PASS_OPEN)
		level->wait = 0;
	else if (room > level->wait)
		level->wait = room;
	memset(level->unit, 0, sizeof(level->unit));
}

static void finish_level(const struct rl_explain *explain, struct rl_explain_level *level, __u64 now)
{
	level->wait = 0;
	for (int unit = 0; unit < RL_UNITS; unit++) {
		level->unit[unit] = explain_unit(explain, level, unit, now);
		if (level->unit[unit].wait > level->wait)
			level->wait = level->unit[unit].wait;
	}
	if (rl_explain_no_room(level))
		finish_without_room(level);
}

static bool in_shadow(const struct rl_explain_device *device, const struct rl_limit *limit)
{
	return (limit->flags & RL_LIMIT_SHADOW) || (device->device->attached.device.flags & RL_DEVICE_SHADOW);
}

/* A limit refuses the packet for so long: the first that drops it has its say, and before that the first that would. */
static void refuse(struct rl_explain_device *device, const struct rl_limit *limit, enum rl_reason drop,
		   __u64 wait)
{
	if (in_shadow(device, limit)) {
		if (!rl_reason_drops(device->reason) && !rl_reason_shadows(device->reason))
			device->reason = rl_reason_shadow(drop);
		return;
	}
	if (!rl_reason_drops(device->reason))
		device->reason = drop;
	if (wait > device->wait)
		device->wait = wait;
}

/* What comes of giving a level's source its place; the packet path does that for all levels before it looks at a bucket. */
static void judge_place(struct rl_explain_device *device, const struct rl_explain_level *level)
{
	if (!rl_explain_no_room(level))
		return;
	if (level->trial.reason == RL_DROP_FULL)
		refuse(device, &level->limit->limit, RL_DROP_FULL, level->wait);
	else if (!rl_reason_drops(device->reason) && !rl_reason_shadows(device->reason))
		device->reason = level->trial.reason;
}

static void judge_bucket(struct rl_explain_device *device, const struct rl_explain_level *level)
{
	static const enum rl_reason drops[RL_LEVELS] = {
	    [RL_LEVEL_SOURCE] = RL_DROP_SOURCE, [RL_LEVEL_CLASS] = RL_DROP_CLASS,
	    [RL_LEVEL_TENANT] = RL_DROP_TENANT, [RL_LEVEL_DEVICE] = RL_DROP_DEVICE,
	    [RL_LEVEL_NEW] = RL_DROP_NEW,
	};
	const struct rl_limit *limit = &level->limit->limit;

	if (device->reason == RL_PASS_NO_LIMIT)
		device->reason = RL_PASS_LIMIT;
	if (!level->wait || (rl_explain_no_room(level) && level->trial.reason == RL_DROP_FULL))
		return;
	refuse(device, limit, is_aggregated(level) ? RL_DROP_AGGREGATE : drops[limit->level], level->wait);
}

static void deny(struct rl_explain_device *device, const struct rl_limit *limit)
{
	bool shadow = in_shadow(device, limit);

	device->reason = shadow ? RL_SHADOW_DENIED : RL_DROP_DENIED;
	device->wait = shadow ? 0 : RL_EXPLAIN_NEVER;
}

/* The levels of the source itself, `new` first. What that in shadow doesn't grant a bucket is held by none of them. */
static void judge_source(const struct rl_explain *explain, struct rl_explain_device *device)
{
	const struct rl_explain_level *fresh = rl_explain_new(explain);
	size_t count = explain->level_count - (fresh ? 1 : 0), first = 0;

	if (fresh)
		judge_bucket(device, fresh);
	if (fresh && fresh->wait && in_shadow(device, &fresh->limit->limit))
		while (first < count && explain->level[first].limit->limit.level != RL_LEVEL_TENANT)
			first++;
	for (size_t i = first; i < count; i++)
		judge_place(device, &explain->level[i]);
	for (size_t i = first; i < count; i++)
		judge_bucket(device, &explain->level[i]);
}

static void finish_device(const struct rl_explain *explain, struct rl_explain_device *device, __u64 now)
{
	if (device->level.limit)
		finish_level(explain, &device->level, now);
	device->wait = 0;
	device->reason = RL_PASS_PAUSED;
	if (device->device->attached.device.flags & RL_DEVICE_PAUSED)
		return;
	device->reason = RL_PASS_ALLOWED;
	if (explain->why == RL_EXPLAIN_ALLOWED)
		return;
	if (explain->why == RL_EXPLAIN_DENIED) {
		deny(device, &explain->limit->limit);
		return;
	}
	device->reason = RL_PASS_NO_LIMIT;
	judge_source(explain, device);
	if (device->level.limit)
		judge_bucket(device, &device->level);
}

void rl_explain_finish(struct rl_explain *explain, __u64 now)
{
	/* A source that has its bucket asks nothing of `new`. */
	if (rl_explain_new(explain) &&
	    (explain->level[0].found || explain->limit->limit.flags & RL_LIMIT_OWN_BUCKET))
		explain->level_count--;
	for (size_t i = 0; i < explain->level_count; i++)
		finish_level(explain, &explain->level[i], now);
	for (size_t i = 0; i < explain->device_count; i++)
		finish_device(explain, &explain->device[i], now);
}
