// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "view.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
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

static json_t *target_text(const struct rl_prefix *target)
{
	char buf[RL_TARGET_TEXT];

	return json_string(rl_target_print(target, buf));
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

/* {"schema_version": 1, name: items}; takes the items over. */
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

/* What the policy says about a target: the same in list and stats. */
static json_t *policy_json(const struct rl_limit_stats *limit)
{
	const struct rl_terms *terms = &limit->limit.terms;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "target", target_text(&limit->target), "tenant",
			 text_or_null(limit->tenant), "rate_pps", rate_pps(terms->packets_per_hour),
			 "burst_packets", number_or_null(terms->burst_packets), "rate_bits",
			 number_or_null(terms->bits_per_second), "burst_bytes",
			 number_or_null(terms->burst_bytes));
}

static json_t *limit_counts_json(const struct rl_limit_stats *limit)
{
	return joined(policy_json(limit), json_pack("{s:o, s:o}", "passed", count_json(limit->count.passed),
						    "dropped", count_json(limit->count.dropped)));
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
	return json_pack("{s:o, s:o, s:s, s:s}", "name", text(attached->name), "ifindex",
			 number_or_null(attached->ifindex), "direction", "in", "mode",
			 rl_mode_name(attached->device.mode));
}

static json_t *device_totals_json(const struct rl_device_stats *device)
{
	struct rl_count passed = rl_device_passed(&device->count);
	struct rl_count dropped = rl_device_dropped(&device->count);
	struct rl_count received = {passed.packets + dropped.packets, passed.bytes + dropped.bytes};

	return joined(device_json(&device->attached),
		      json_pack("{s:o, s:o, s:o}", "received", count_json(received), "passed",
				count_json(passed), "dropped", count_json(dropped)));
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
		      json_pack("{s:o, s:o, s:b, s:s, s:b, s:s}", "program_id",
				number_or_null(attached->program_id), "link_id",
				number_or_null(attached->link_id), "paused",
				!!(attached->device.flags & RL_DEVICE_PAUSED), "since",
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
	return versioned("limits", limits_json(snapshot, policy_json));
}

json_t *rl_view_stats_json(const struct rl_snapshot *snapshot)
{
	return joined(versioned("devices", devices_json(snapshot, device_stats_json)),
		      json_pack("{s:o}", "limits", limits_json(snapshot, limit_counts_json)));
}

static json_t *namespace_json(const struct rl_view_status *status)
{
	json_t *object = json_pack("{s:I, s:s}", "namespace", exact(status->cookie), "state", status->path);
	const struct rl_snapshot *snapshot = status->snapshot;

	if (!snapshot)
		return joined(object, json_pack("{s:o}", "error", text(status->error)));
	return joined(object, json_pack("{s:I, s:I, s:o}", "max_sources", exact(snapshot->meta.max_sources),
					"limits", exact(snapshot->limit_count), "devices",
					devices_json(snapshot, device_status_json)));
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
	return json_pack("{s:f, s:f, s:f, s:f}", "passed_pps", rates->passed_pps, "dropped_pps",
			 rates->dropped_pps, "passed_bits_per_second", rates->passed_bits,
			 "dropped_bits_per_second", rates->dropped_bits);
}

static json_t *top_device_json(const struct rl_top_device *device)
{
	return joined(device_totals_json(device->stats), rates_json(&device->rates));
}

static json_t *top_source_json(const struct rl_top *top, const struct rl_top_source *source)
{
	const struct rl_limit_stats *limit = &top->now->limits[source->stats->limit];

	return joined(json_pack("{s:o, s:o, s:o, s:o, s:o}", "source", target_text(&source->stats->source),
				"limit", target_text(&limit->target), "tenant", text_or_null(limit->tenant),
				"passed", count_json(source->stats->passed), "dropped",
				count_json(source->stats->dropped)),
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

int rl_view_json_print(json_t *object, FILE *out)
{
	if (!object)
		return -ENOMEM;
	json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS));
	fputc('\n', out);
	json_decref(object);
	return 0;
}
