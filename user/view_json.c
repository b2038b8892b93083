// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hook.h"
#include "view.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "cleanup.h"
#include "prefix.h"
#include "target.h"

/* Digits of a real: enough to get a rate per hour back, few enough to print 0.1 as 0.1. */
#define REAL_DIGITS 15

/* jansson's integers are signed. */
static json_int_t exact(__u64 value)
{
	return value > INT64_MAX ? INT64_MAX : (json_int_t)value;
}

static json_t *number_or_null(__u64 value)
{
	return value ? json_integer(exact(value)) : json_null();
}

/* Any bytes but '/', ':' and spaces make a device's name, JSON takes UTF-8 alone. */
static json_t *text(const char *bytes)
{
	json_t *string = json_string(bytes);
	RL_FREE char *ascii = NULL;

	if (string)
		return string;
	ascii = strdup(bytes);
	for (char *c = ascii; c && *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return ascii ? json_string(ascii) : NULL;
}

static json_t *text_or_null(const char *bytes)
{
	return bytes[0] ? text(bytes) : json_null();
}

static json_t *prefix_text(const struct rl_prefix *prefix)
{
	char buf[RL_PREFIX_TEXT];

	return json_string(rl_prefix_print(prefix, buf));
}

static json_t *target_text(const struct rl_target *target)
{
	char buf[RL_TARGET_TEXT];

	return text(rl_target_print(target, buf));
}

/* The members of b behind those of a. Takes both over; NULL if one of them is. */
static json_t *joined(json_t *a, json_t *b)
{
	if (!a || !b || json_object_update(a, b)) {
		json_decref(a);
		a = NULL;
	}
	json_decref(b);
	return a;
}

/* {"schema_version": ..., name: items}; takes the items over. */
static json_t *versioned(const char *name, json_t *items)
{
	return json_pack("{s:i, s:o}", "schema_version", RL_VIEW_SCHEMA_VERSION, name, items);
}

static json_t *count_json(struct rl_count count)
{
	return json_pack("{s:I, s:I}", "packets", exact(count.packets), "bytes", exact(count.bytes));
}

/* A whole number of packets a second is an integer; 1/h isn't one. */
static json_t *rate_pps(__u64 packets_per_hour)
{
	if (packets_per_hour % 3600)
		return json_real((double)packets_per_hour / 3600);
	return number_or_null(packets_per_hour / 3600);
}

static json_t *class_text(const struct rl_class *class)
{
	char buf[RL_CLASS_TEXT];

	return rl_class_is_set(class) ? json_string(rl_class_print(class, buf)) : json_null();
}

/* {"syn": 10, "icmp": 2} */
static json_t *costs_json(const struct rl_terms *terms)
{
	json_t *costs = terms->cost_count ? json_object() : json_null();
	char buf[RL_CLASS_TEXT];

	for (int i = 0; i < terms->cost_count && i < RL_MAX_COSTS; i++) {
		if (json_object_set_new(costs, rl_class_print(&terms->cost[i].class, buf),
					json_integer(terms->cost[i].tokens))) {
			json_decref(costs);
			return NULL;
		}
	}
	return costs;
}

static json_t *percent_or_null(__u16 part)
{
	if (!part)
		return json_null();
	return part % 100 ? json_real(part / 100.0) : json_integer(part / 100);
}

/* {"high": 20, "normal": null}, in percent. */
static json_t *reserve_json(const struct rl_terms *terms)
{
	if (!terms->reserve[0] && !terms->reserve[1])
		return json_null();
	return json_pack("{s:o, s:o}", "high", percent_or_null(terms->reserve[0]), "normal",
			 percent_or_null(terms->reserve[1]));
}

static json_t *priority_json(__u8 priority)
{
	const char *name = rl_priority_name(priority);

	return name ? json_string(name) : json_null();
}

static bool in_shadow(const struct rl_limit_stats *limit)
{
	return limit->limit.terms.shadow != 0;
}

/* What the policy says about a target, all but whether it is in shadow: the same in list, stats and explain. */
static json_t *policy_json(const struct rl_limit_stats *limit)
{
	const struct rl_terms *terms = &limit->limit.terms;
	json_t *rates = json_pack(
	    "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "target", target_text(&limit->limit.target), "class",
	    class_text(&terms->class), "action", rl_action_name(terms->action), "tenant",
	    text_or_null(limit->tenant), "rate_pps", rate_pps(terms->packets_per_hour), "burst_packets",
	    number_or_null(terms->burst_packets), "rate_bits", number_or_null(terms->bits_per_second),
	    "burst_bytes", number_or_null(terms->burst_bytes));

	return joined(rates, json_pack("{s:o, s:b, s:o, s:o, s:o}", "per", number_or_null(terms->per),
				       "shared", terms->shared, "cost", costs_json(terms), "priority",
				       priority_json(terms->priority), "reserve", reserve_json(terms)));
}

static json_t *limit_json(const struct rl_limit_stats *limit)
{
	return joined(policy_json(limit), json_pack("{s:b}", "shadow", in_shadow(limit)));
}

static json_t *counts_json(const struct rl_count *passed, const struct rl_count *dropped,
			   const struct rl_count *shadow)
{
	return json_pack("{s:o, s:o, s:o}", "passed", count_json(*passed), "dropped", count_json(*dropped),
			 "shadow", count_json(*shadow));
}

/* Here `shadow` counts packets, as `passed` and `dropped` do. */
static json_t *limit_counts_json(const struct rl_limit_stats *limit)
{
	const struct rl_limit_count *count = &limit->count;

	return joined(joined(policy_json(limit), json_pack("{s:b}", "in_shadow", in_shadow(limit))),
		      counts_json(&count->passed, &count->dropped, &count->shadow));
}

static json_t *limits_json(const struct rl_snapshot *snapshot,
			   json_t *(*each)(const struct rl_limit_stats *limit))
{
	json_t *limits = json_array();

	for (size_t i = 0; i < snapshot->limit_count; i++) {
		if (json_array_append_new(limits, each(&snapshot->limits[i]))) {
			json_decref(limits);
			return NULL;
		}
	}
	return limits;
}

/* Which device it is: the same in stats, status and top. */
static json_t *device_json(const struct rl_attached *attached)
{
	return json_pack("{s:o, s:o, s:s, s:s, s:s}", "name", text(attached->name), "ifindex",
			 number_or_null(attached->ifindex), "direction", "in", "mode",
			 rl_mode_name(attached->device.mode), "hook", rl_hook_name(attached->device.hook));
}

static json_t *device_flags_json(const struct rl_attached *attached)
{
	return json_pack("{s:b, s:b}", "paused", !!(attached->device.flags & RL_DEVICE_PAUSED), "in_shadow",
			 !!(attached->device.flags & RL_DEVICE_SHADOW));
}

static json_t *device_totals_json(const struct rl_device_stats *device)
{
	struct rl_count passed = rl_device_passed(&device->count);
	struct rl_count dropped = rl_device_dropped(&device->count);
	struct rl_count shadow = rl_device_shadow(&device->count);
	struct rl_count received = {passed.packets + dropped.packets, passed.bytes + dropped.bytes};

	return joined(joined(joined(device_json(&device->attached), device_flags_json(&device->attached)),
			     json_pack("{s:o}", "received", count_json(received))),
		      counts_json(&passed, &dropped, &shadow));
}

static json_t *reasons_json(const struct rl_device_count *count)
{
	json_t *reasons = json_object();

	for (int reason = 0; reason < RL_REASONS; reason++) {
		if (json_object_set_new(reasons, rl_reason_name(reason),
					json_integer(exact(count->by_reason[reason].packets)))) {
			json_decref(reasons);
			return NULL;
		}
	}
	return reasons;
}

static json_t *device_stats_json(const struct rl_device_stats *device)
{
	return joined(device_totals_json(device),
		      json_pack("{s:o}", "reasons", reasons_json(&device->count)));
}

static json_t *device_status_json(const struct rl_device_stats *device)
{
	const struct rl_attached *attached = &device->attached;
	char since[RL_TIME_TEXT];

	return joined(device_json(attached),
		      json_pack("{s:o, s:o, s:b, s:b, s:s, s:b, s:s}", "program_id",
				number_or_null(attached->program_id), "link_id",
				number_or_null(attached->link_id), "paused",
				!!(attached->device.flags & RL_DEVICE_PAUSED), "in_shadow",
				!!(attached->device.flags & RL_DEVICE_SHADOW), "since",
				rl_view_time(attached->device.since, since), "attached",
				attached->where != RL_GONE, "where", rl_whereabouts_name(attached->where)));
}

static json_t *devices_json(const struct rl_snapshot *snapshot,
			    json_t *(*each)(const struct rl_device_stats *device))
{
	json_t *devices = json_array();

	for (size_t i = 0; i < snapshot->device_count; i++) {
		if (json_array_append_new(devices, each(&snapshot->devices[i]))) {
			json_decref(devices);
			return NULL;
		}
	}
	return devices;
}

json_t *rl_view_list_json(const struct rl_snapshot *snapshot)
{
	return versioned("limits", limits_json(snapshot, limit_json));
}

json_t *rl_view_stats_json(const struct rl_snapshot *snapshot)
{
	return joined(versioned("devices", devices_json(snapshot, device_stats_json)),
		      json_pack("{s:o}", "limits", limits_json(snapshot, limit_counts_json)));
}

/* The kernel makes room in the LRU map by itself. */
static json_t *when_full_json(const struct rl_snapshot *snapshot)
{
	if (snapshot->meta.store == RL_STORE_LRU)
		return json_null();
	return json_string(rl_when_full_name(snapshot->settings.when_full));
}

static json_t *namespace_json(const struct rl_view_status *status)
{
	json_t *object = json_pack("{s:I, s:s}", "namespace", exact(status->cookie), "state", status->path);
	const struct rl_snapshot *snapshot = status->snapshot;

	if (!snapshot)
		return joined(object, json_pack("{s:o}", "error", text(status->error)));
	return joined(
	    object,
	    json_pack("{s:s, s:I, s:o, s:o, s:I, s:o}", "store", rl_store_name(snapshot->meta.store),
		      "max_sources", exact(snapshot->meta.max_sources), "when_full", when_full_json(snapshot),
		      "memory_bytes", number_or_null(status->memory), "limits", exact(snapshot->limit_count),
		      "devices", devices_json(snapshot, device_status_json)));
}

json_t *rl_view_status_json(const struct rl_view_status *status)
{
	return joined(json_pack("{s:i}", "schema_version", RL_VIEW_SCHEMA_VERSION), namespace_json(status));
}

json_t *rl_view_status_all_json(const struct rl_view_status *statuses, size_t count)
{
	json_t *namespaces = json_array();

	for (size_t i = 0; i < count; i++) {
		if (json_array_append_new(namespaces, namespace_json(&statuses[i]))) {
			json_decref(namespaces);
			return NULL;
		}
	}
	return versioned("namespaces", namespaces);
}

static json_t *rates_json(const struct rl_top_rates *rates)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "passed_pps", rates->passed_pps, "dropped_pps",
			 rates->dropped_pps, "shadow_pps", rates->shadow_pps, "passed_bits_per_second",
			 rates->passed_bits, "dropped_bits_per_second", rates->dropped_bits,
			 "shadow_bits_per_second", rates->shadow_bits);
}

static json_t *top_device_json(const struct rl_top_device *device)
{
	const struct rl_top_rates *rates = &device->rates;
	json_t *received = json_pack("{s:f, s:f}", "received_pps", rates->passed_pps + rates->dropped_pps,
				     "received_bits_per_second", rates->passed_bits + rates->dropped_bits);

	return joined(joined(device_totals_json(device->stats), received), rates_json(rates));
}

static json_t *top_source_json(const struct rl_top *top, const struct rl_top_source *source)
{
	const struct rl_limit_stats *limit = &top->now->limits[source->stats->limit];

	const struct rl_tally *tally = &source->stats->tally;
	json_t *names = json_pack("{s:o, s:o, s:o}", "source", prefix_text(&source->stats->source), "limit",
				  target_text(&limit->limit.target), "tenant", text_or_null(limit->tenant));

	return joined(joined(names, counts_json(&tally->passed, &tally->dropped, &tally->shadow)),
		      rates_json(&source->rates));
}

static json_t *top_devices_json(const struct rl_top *top)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < top->device_count; i++) {
		if (json_array_append_new(devices, top_device_json(&top->devices[i]))) {
			json_decref(devices);
			return NULL;
		}
	}
	return devices;
}

static json_t *top_sources_json(const struct rl_top *top)
{
	json_t *sources = json_array();

	for (size_t i = 0; i < top->source_count; i++) {
		if (json_array_append_new(sources, top_source_json(top, &top->sources[i]))) {
			json_decref(sources);
			return NULL;
		}
	}
	return sources;
}

json_t *rl_view_top_json(const struct rl_top *top, enum rl_top_by by)
{
	return json_pack("{s:i, s:f, s:s, s:I, s:I, s:o, s:o}", "schema_version", RL_VIEW_SCHEMA_VERSION,
			 "seconds", top->seconds, "by", rl_top_by_name(by), "sources_tracked",
			 exact(top->now->source_count), "sources_matched", exact(top->matched), "devices",
			 top_devices_json(top), "sources", top_sources_json(top));
}

/* Seconds; null: it never will. */
static json_t *wait_json(__u64 wait)
{
	return wait == RL_EXPLAIN_NEVER ? json_null() : json_real((double)wait / 1e9);
}

static json_t *explain_unit_json(const struct rl_explain_unit *unit)
{
	if (!unit->limited)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:o}", "left", exact(unit->left), "burst", exact(unit->burst),
			 "kept", exact(unit->kept), "enough_in_seconds", wait_json(unit->wait));
}

/* A source without room in the table; all null otherwise. */
static json_t *explain_room_json(const struct rl_explain *explain, const struct rl_explain_level *level)
{
	const struct rl_trial *trial = &level->trial;

	if (!rl_explain_no_room(level))
		return json_pack("{s:n, s:n, s:n}", "no_room", "aggregate", "room_in_seconds");
	return json_pack("{s:s, s:o, s:o}", "no_room", rl_when_full_name(explain->when_full), "aggregate",
			 trial->reason == RL_PASS_AGGREGATE ? prefix_text(&trial->group) : json_null(),
			 "room_in_seconds", wait_json(trial->room));
}

static json_t *explain_level_json(const struct rl_explain *explain, const struct rl_explain_level *level)
{
	json_t *names;

	if (!level->limit)
		return json_null();
	names = json_pack("{s:s, s:b}", "level", rl_level_name(level->limit->limit.level), "has_bucket",
			  level->found);
	return joined(joined(joined(names, explain_room_json(explain, level)),
			     json_pack("{s:o, s:o}", "packets", explain_unit_json(&level->unit[RL_PACKETS]),
				       "bytes", explain_unit_json(&level->unit[RL_BYTES]))),
		      limit_counts_json(level->limit));
}

static json_t *explain_levels_json(const struct rl_explain *explain)
{
	json_t *levels = json_array();

	for (size_t i = 0; i < explain->level_count; i++) {
		if (json_array_append_new(levels, explain_level_json(explain, &explain->level[i]))) {
			json_decref(levels);
			return NULL;
		}
	}
	return levels;
}

static json_t *explain_device_json(const struct rl_explain *explain, const struct rl_explain_device *device)
{
	const char *verdict = rl_reason_drops(device->reason) ? "drop" : "pass";

	return json_pack("{s:o, s:o, s:s, s:s, s:o}", "name", text(device->device->attached.name), "level",
			 explain_level_json(explain, &device->level), "verdict", verdict, "reason",
			 rl_reason_name(device->reason), "passes_in_seconds", wait_json(device->wait));
}

static json_t *explain_devices_json(const struct rl_explain *explain)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < explain->device_count; i++) {
		if (json_array_append_new(devices, explain_device_json(explain, &explain->device[i]))) {
			json_decref(devices);
			return NULL;
		}
	}
	return devices;
}

static json_t *explain_wider_json(const struct rl_explain *explain)
{
	json_t *wider = json_array();

	for (size_t i = 0; i < explain->wider_count; i++) {
		if (json_array_append_new(wider, target_text(&explain->wider[i]->limit.target))) {
			json_decref(wider);
			return NULL;
		}
	}
	return wider;
}

static json_t *explain_packet_json(const struct rl_explain *explain)
{
	const struct rl_explain_packet *packet = &explain->packet;
	const char *name;
	__u8 kind;
	json_t *kinds = json_array();

	for (unsigned int i = 0; (name = rl_kind_name(i, &kind)); i++)
		if (packet->kinds & kind)
			json_array_append_new(kinds, json_string(name));
	return json_pack("{s:I, s:o, s:o, s:I, s:s}", "bytes", exact(packet->bytes), "kinds", kinds, "port",
			 number_or_null(packet->port), "cost", exact(explain->cost), "priority",
			 rl_priority_name((__u8)explain->priority));
}

/* What became of the source's packets; null where it has no bucket of its own to count them beside. */
static json_t *explain_tally_json(const struct rl_explain *explain)
{
	const struct rl_tally *tally = &explain->level[0].tally;

	if (explain->why != RL_EXPLAIN_LONGEST || !explain->level[0].found)
		return json_pack("{s:n, s:n, s:n}", "passed", "dropped", "shadow");
	return counts_json(&tally->passed, &tally->dropped, &tally->shadow);
}

json_t *rl_view_explain_json(const struct rl_explain *explain)
{
	const struct rl_limit_stats *limit = explain->limit, *tenant = explain->tenant_from;
	json_t *why = json_pack(
	    "{s:i, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "schema_version", RL_VIEW_SCHEMA_VERSION,
	    "address", prefix_text(&explain->packet.source), "packet", explain_packet_json(explain), "why",
	    rl_explain_why_name(explain->why), "limit",
	    limit ? target_text(&limit->limit.target) : json_null(), "wider", explain_wider_json(explain),
	    "tenant", tenant ? text_or_null(tenant->limit.terms.tenant) : json_null(), "tenant_from",
	    tenant ? target_text(&tenant->limit.target) : json_null(), "source",
	    explain->why == RL_EXPLAIN_LONGEST ? prefix_text(&explain->source) : json_null());

	return joined(joined(why, explain_tally_json(explain)),
		      json_pack("{s:o, s:o}", "levels", explain_levels_json(explain), "devices",
				explain_devices_json(explain)));
}

int rl_view_json_print(json_t *object, FILE *out)
{
	if (!object)
		return -ENOMEM;
	json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS));
	fputc('\n', out);
	json_decref(object);
	return 0;
}
