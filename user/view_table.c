// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "view.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "table.h"
#include "target.h"
#include "units.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0])) /* a macro: the type of element varies */
#define PAIR_TEXT    (2UL * RL_UNIT_TEXT)
#define NUMBER_TEXT  24

static const char *number(__u64 value, char buf[NUMBER_TEXT])
{
	snprintf(buf, NUMBER_TEXT, "%" PRIu64, (uint64_t)value);
	return buf;
}

static const char *human_bytes(__u64 bytes, char buf[RL_UNIT_TEXT])
{
	rl_human((double)bytes, buf);
	strncat(buf, "B", RL_UNIT_TEXT - strlen(buf) - 1);
	return buf;
}

/* "1kpps", "10mbit" or "1kpps,10mbit"; each part is "" where that unit isn't limited. */
static const char *pair(const char *packets, const char *bytes, char buf[PAIR_TEXT])
{
	snprintf(buf, PAIR_TEXT, "%s%s%s", packets, packets[0] && bytes[0] ? "," : "", bytes);
	return buf;
}

static const char *rates_text(const struct rl_terms *terms, char buf[PAIR_TEXT])
{
	char packets[RL_UNIT_TEXT] = "", bits[RL_UNIT_TEXT] = "";

	if (terms->packets_per_hour)
		rl_rate_print_packets(terms->packets_per_hour, packets);
	if (terms->bits_per_second)
		rl_rate_print_bits(terms->bits_per_second, bits);
	return pair(packets, bits, buf);
}

static const char *bursts_text(const struct rl_terms *terms, char buf[PAIR_TEXT])
{
	char packets[RL_UNIT_TEXT] = "", bytes[RL_UNIT_TEXT] = "";

	if (terms->burst_packets)
		rl_burst_print_packets(terms->burst_packets, packets);
	if (terms->burst_bytes)
		rl_burst_print_bytes(terms->burst_bytes, bytes);
	return pair(packets, bytes, buf);
}

const char *rl_view_time(__u64 seconds, char buf[RL_TIME_TEXT])
{
	time_t when = (time_t)seconds;
	struct tm utc;

	if (!gmtime_r(&when, &utc) || !strftime(buf, RL_TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &utc))
		buf[0] = '\0';
	return buf;
}

static const char no_limit[] = "no limit is set\n";
static const char no_device[] = "no device attached; policy and buckets are kept\n";

int rl_view_list_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {{"TARGET", -1}, {"RATE", 1}, {"BURST", 1}, {"TENANT", -1}};
	RL_TABLE struct rl_table table = rl_table_make(columns, COUNT(columns));

	if (!snapshot->limit_count) {
		fputs(no_limit, out);
		return 0;
	}
	for (size_t i = 0; i < snapshot->limit_count; i++) {
		const struct rl_limit_stats *limit = &snapshot->limits[i];
		char target[RL_TARGET_TEXT], rates[PAIR_TEXT], bursts[PAIR_TEXT];

		rl_table_add(&table, (const char *[]){
					 rl_target_print(&limit->target, target),
					 rates_text(&limit->limit.terms, rates),
					 bursts_text(&limit->limit.terms, bursts),
					 limit->tenant,
				     });
	}
	return rl_table_print(&table, out);
}

static int device_counts_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"DEVICE", -1}, {"MODE", -1}, {"RECEIVED", 1}, {"BYTES", 1},
	    {"PASSED", 1},  {"BYTES", 1}, {"DROPPED", 1},  {"BYTES", 1},
	};
	RL_TABLE struct rl_table table = rl_table_make(columns, COUNT(columns));

	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct rl_device_stats *device = &snapshot->devices[i];
		struct rl_count passed = rl_device_passed(&device->count);
		struct rl_count dropped = rl_device_dropped(&device->count);
		char packets[3][NUMBER_TEXT], bytes[3][RL_UNIT_TEXT];

		rl_table_add(&table, (const char *[]){
					 device->attached.name,
					 rl_mode_name(device->attached.device.mode),
					 number(passed.packets + dropped.packets, packets[0]),
					 human_bytes(passed.bytes + dropped.bytes, bytes[0]),
					 number(passed.packets, packets[1]),
					 human_bytes(passed.bytes, bytes[1]),
					 number(dropped.packets, packets[2]),
					 human_bytes(dropped.bytes, bytes[2]),
				     });
	}
	return rl_table_print(&table, out);
}

/* Only what has happened: most reasons never do. */
static int reasons_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"DEVICE", -1}, {"VERDICT", -1}, {"REASON", -1}, {"PACKETS", 1}, {"BYTES", 1}};
	RL_TABLE struct rl_table table = rl_table_make(columns, COUNT(columns));

	for (size_t i = 0; i < snapshot->device_count; i++) {
		for (int reason = 0; reason < RL_REASONS; reason++) {
			const struct rl_count *count = &snapshot->devices[i].count.by_reason[reason];
			char packets[NUMBER_TEXT], bytes[RL_UNIT_TEXT];

			if (!count->packets)
				continue;
			rl_table_add(&table, (const char *[]){
						 snapshot->devices[i].attached.name,
						 rl_reason_drops(reason) ? "drop" : "pass",
						 rl_reason_name(reason),
						 number(count->packets, packets),
						 human_bytes(count->bytes, bytes),
					     });
		}
	}
	if (!table.row_count && !table.failed)
		return 0;
	fputc('\n', out);
	return rl_table_print(&table, out);
}

static int limit_counts_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"TARGET", -1}, {"RATE", 1},  {"BURST", 1},	  {"TENANT", -1},
	    {"PASSED", 1},  {"BYTES", 1}, {"DROPPED", 1}, {"BYTES", 1},
	};
	RL_TABLE struct rl_table table = rl_table_make(columns, COUNT(columns));

	for (size_t i = 0; i < snapshot->limit_count; i++) {
		const struct rl_limit_stats *limit = &snapshot->limits[i];
		char target[RL_TARGET_TEXT], rates[PAIR_TEXT], bursts[PAIR_TEXT];
		char packets[2][NUMBER_TEXT], bytes[2][RL_UNIT_TEXT];

		rl_table_add(&table, (const char *[]){
					 rl_target_print(&limit->target, target),
					 rates_text(&limit->limit.terms, rates),
					 bursts_text(&limit->limit.terms, bursts),
					 limit->tenant,
					 number(limit->count.passed.packets, packets[0]),
					 human_bytes(limit->count.passed.bytes, bytes[0]),
					 number(limit->count.dropped.packets, packets[1]),
					 human_bytes(limit->count.dropped.bytes, bytes[1]),
				     });
	}
	return rl_table_print(&table, out);
}

int rl_view_stats_table(const struct rl_snapshot *snapshot, FILE *out)
{
	int rc = 0;

	if (!snapshot->device_count)
		fputs(no_device, out);
	else
		rc = device_counts_table(snapshot, out);
	if (!rc && snapshot->device_count)
		rc = reasons_table(snapshot, out);
	if (rc)
		return rc;
	fputc('\n', out);
	if (snapshot->limit_count)
		return limit_counts_table(snapshot, out);
	fputs(no_limit, out);
	return 0;
}

static const char *device_state(const struct rl_attached *attached)
{
	if (attached->where == RL_GONE)
		return "gone";
	if (attached->where == RL_MOVED)
		return "moved";
	return attached->device.flags & RL_DEVICE_PAUSED ? "paused" : "enforcing";
}

static void status_hints(const struct rl_snapshot *snapshot, FILE *out)
{
	bool gone = false, moved = false;

	for (size_t i = 0; i < snapshot->device_count; i++) {
		gone |= snapshot->devices[i].attached.where == RL_GONE;
		moved |= snapshot->devices[i].attached.where == RL_MOVED;
	}
	if (gone)
		fputs("\nWhat is gone: `rl-agent detach --stale` clears it.\n", out);
	if (moved)
		fputs(
		    "\nWhat is moved is limited still, in another network namespace; `rl-agent detach` ends it.\n",
		    out);
}

static int status_devices_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"DEVICE", -1}, {"INDEX", 1},   {"DIRECTION", -1}, {"MODE", -1},
	    {"STATE", -1},  {"PROGRAM", 1}, {"LINK", 1},       {"SINCE", -1},
	};
	RL_TABLE struct rl_table table = rl_table_make(columns, COUNT(columns));

	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct rl_attached *attached = &snapshot->devices[i].attached;
		char index[NUMBER_TEXT], program[NUMBER_TEXT], link[NUMBER_TEXT], since[RL_TIME_TEXT];

		rl_table_add(&table, (const char *[]){
					 attached->name,
					 attached->ifindex ? number(attached->ifindex, index) : NULL,
					 "in",
					 rl_mode_name(attached->device.mode),
					 device_state(attached),
					 attached->program_id ? number(attached->program_id, program) : NULL,
					 attached->link_id ? number(attached->link_id, link) : NULL,
					 rl_view_time(attached->device.since, since),
				     });
	}
	if (rl_table_print(&table, out))
		return -ENOMEM;
	status_hints(snapshot, out);
	return 0;
}

int rl_view_status_table(const struct rl_view_status *status, FILE *out)
{
	fprintf(out, "network namespace %" PRIu64 ", state in %s\n", (uint64_t)status->cookie, status->path);
	if (!status->snapshot) {
		fprintf(out, "unreadable: %s\n", status->error);
		return 0;
	}
	fprintf(out, "%zu limit%s, room for %" PRIu64 " sources\n\n", status->snapshot->limit_count,
		status->snapshot->limit_count == 1 ? "" : "s", (uint64_t)status->snapshot->meta.max_sources);
	if (status->snapshot->device_count)
		return status_devices_table(status->snapshot, out);
	fputs(no_device, out);
	return 0;
}

/* Wide enough for any number that rl_human() prints, so that a full screen doesn't jump. */
#define RATE_WIDTH 7

int rl_view_top_devices_table(const struct rl_top *top, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"DEVICE", -10},
	    {"MODE", -7},
	    {"IN pps", RATE_WIDTH},
	    {"PASS pps", RATE_WIDTH},
	    {"DROP pps", RATE_WIDTH},
	    {"IN bit/s", RATE_WIDTH},
	    {"PASS bit/s", RATE_WIDTH},
	    {"DROP bit/s", RATE_WIDTH},
	};
	RL_TABLE struct rl_table table = rl_table_make(columns, COUNT(columns));

	if (!top->device_count) {
		fputs(no_device, out);
		return 0;
	}
	for (size_t i = 0; i < top->device_count; i++) {
		const struct rl_attached *attached = &top->devices[i].stats->attached;
		const struct rl_top_rates *rates = &top->devices[i].rates;
		char text[6][RL_UNIT_TEXT];

		rl_table_add(&table,
			     (const char *[]){
				 attached->name,
				 attached->where == RL_HERE && !(attached->device.flags & RL_DEVICE_PAUSED)
				     ? rl_mode_name(attached->device.mode)
				     : device_state(attached),
				 rl_human(rates->passed_pps + rates->dropped_pps, text[0]),
				 rl_human(rates->passed_pps, text[1]),
				 rl_human(rates->dropped_pps, text[2]),
				 rl_human(rates->passed_bits + rates->dropped_bits, text[3]),
				 rl_human(rates->passed_bits, text[4]),
				 rl_human(rates->dropped_bits, text[5]),
			     });
	}
	return rl_table_print(&table, out);
}

static int no_sources(const struct rl_top *top, FILE *out)
{
	if (top->now->source_count)
		fputs("no tracked source matches the filter\n", out);
	else if (top->now->limit_count)
		fputs("no packet yet from a source that a limit names\n", out);
	else
		fputs("no source tracked yet: only sources that a limit names are; "
		      "`rl-agent set-limit any ...` tracks every source\n",
		      out);
	return 0;
}

int rl_view_top_sources_table(const struct rl_top *top, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"SOURCE", -18},
	    {"PASS pps", RATE_WIDTH},
	    {"DROP pps", RATE_WIDTH},
	    {"PASS bit/s", RATE_WIDTH},
	    {"DROP bit/s", RATE_WIDTH},
	    {"LIMIT", -12},
	    {"RATE", 8},
	    {"TENANT", -1},
	};
	RL_TABLE struct rl_table table = rl_table_make(columns, COUNT(columns));

	if (!top->source_count)
		return no_sources(top, out);
	for (size_t i = 0; i < top->source_count; i++) {
		const struct rl_top_source *source = &top->sources[i];
		const struct rl_limit_stats *limit = &top->now->limits[source->stats->limit];
		char address[RL_TARGET_TEXT], target[RL_TARGET_TEXT], limits[PAIR_TEXT],
		    text[4][RL_UNIT_TEXT];

		rl_table_add(&table, (const char *[]){
					 rl_target_print(&source->stats->source, address),
					 rl_human(source->rates.passed_pps, text[0]),
					 rl_human(source->rates.dropped_pps, text[1]),
					 rl_human(source->rates.passed_bits, text[2]),
					 rl_human(source->rates.dropped_bits, text[3]),
					 rl_target_print(&limit->target, target),
					 rates_text(&limit->limit.terms, limits),
					 limit->tenant,
				     });
	}
	return rl_table_print(&table, out);
}
