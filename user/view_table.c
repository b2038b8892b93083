// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hook.h"
#include "view.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "prefix.h"
#include "grid.h"
#include "limit.h"
#include "statement.h"
#include "target.h"
#include "view_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0])) /* a macro: the type of element varies */

/* What was said besides: the tenant has a column of its own. */
static const char *more_text(const struct rl_terms *terms, char buf[RL_WORDS_TEXT])
{
	struct rl_terms others = *terms;

	memset(others.tenant, 0, sizeof(others.tenant));
	return rl_words_print(&others, buf);
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
static const char no_device[] = RL_VIEW_NO_DEVICE;

int rl_view_list_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {{"TARGET", -1}, {"CLASS", -1},  {"RATE", 1},
						   {"BURST", 1},   {"TENANT", -1}, {"MORE", -1}};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	if (!snapshot->limit_count) {
		fputs(no_limit, out);
		return 0;
	}
	for (size_t i = 0; i < snapshot->limit_count; i++) {
		const struct rl_limit_stats *limit = &snapshot->limits[i];
		const struct rl_terms *terms = &limit->limit.terms;
		char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT], rates[RL_PAIR_TEXT], bursts[RL_PAIR_TEXT],
		    more[RL_WORDS_TEXT];

		rl_grid_add(&table, (const char *[]){
					rl_target_print(&limit->limit.target, target),
					rl_text_class(terms, class),
					rl_text_rates(terms, rates),
					rl_text_bursts(terms, bursts),
					limit->tenant,
					more_text(terms, more),
				    });
	}
	return rl_grid_print(&table, out);
}

int rl_view_list_policy(const struct rl_snapshot *snapshot, FILE *out)
{
	char line[RL_STATEMENT_TEXT];

	for (size_t i = 0; i < snapshot->limit_count; i++) {
		const struct rl_limit *limit = &snapshot->limits[i].limit;

		if (rl_limit_says(limit))
			fprintf(out, "%s\n", rl_statement_print(&limit->target, &limit->terms, line));
	}
	return 0;
}

static int device_counts_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"DEVICE", -1}, {"MODE", -1},   {"RECEIVED", 1}, {"BYTES", 1},  {"PASSED", 1},
	    {"BYTES", 1},   {"DROPPED", 1}, {"BYTES", 1},    {"SHADOW", 1}, {"BYTES", 1},
	};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct rl_device_stats *device = &snapshot->devices[i];
		struct rl_count passed = rl_device_passed(&device->count);
		struct rl_count dropped = rl_device_dropped(&device->count);
		struct rl_count shadow = rl_device_shadow(&device->count);
		char packets[4][RL_NUMBER_TEXT], bytes[4][RL_UNIT_TEXT];

		rl_grid_add(&table, (const char *[]){
					device->attached.name,
					rl_text_device_mode(&device->attached),
					rl_text_number(passed.packets + dropped.packets, packets[0]),
					rl_text_bytes(passed.bytes + dropped.bytes, bytes[0]),
					rl_text_number(passed.packets, packets[1]),
					rl_text_bytes(passed.bytes, bytes[1]),
					rl_text_number(dropped.packets, packets[2]),
					rl_text_bytes(dropped.bytes, bytes[2]),
					rl_text_number(shadow.packets, packets[3]),
					rl_text_bytes(shadow.bytes, bytes[3]),
				    });
	}
	return rl_grid_print(&table, out);
}

/* Only what has happened: most reasons never do. */
static int reasons_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"DEVICE", -1}, {"VERDICT", -1}, {"REASON", -1}, {"PACKETS", 1}, {"BYTES", 1}};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	for (size_t i = 0; i < snapshot->device_count; i++) {
		for (int reason = 0; reason < RL_REASONS; reason++) {
			const struct rl_count *count = &snapshot->devices[i].count.by_reason[reason];
			char packets[RL_NUMBER_TEXT], bytes[RL_UNIT_TEXT];

			if (!count->packets)
				continue;
			rl_grid_add(&table, (const char *[]){
						snapshot->devices[i].attached.name,
						rl_text_verdict(reason),
						rl_reason_name(reason),
						rl_text_number(count->packets, packets),
						rl_text_bytes(count->bytes, bytes),
					    });
		}
	}
	if (!table.row_count && !table.failed)
		return 0;
	fputc('\n', out);
	return rl_grid_print(&table, out);
}

static int limit_counts_table(const struct rl_snapshot *snapshot, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"TARGET", -1}, {"CLASS", -1},  {"RATE", 1},  {"BURST", 1},	 {"TENANT", -1}, {"PASSED", 1},
	    {"BYTES", 1},   {"DROPPED", 1}, {"BYTES", 1}, {"SHADOW", 1}, {"BYTES", 1},
	};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	for (size_t i = 0; i < snapshot->limit_count; i++) {
		const struct rl_limit_stats *limit = &snapshot->limits[i];
		const struct rl_terms *terms = &limit->limit.terms;
		char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT], rates[RL_PAIR_TEXT], bursts[RL_PAIR_TEXT];
		char packets[3][RL_NUMBER_TEXT], bytes[3][RL_UNIT_TEXT];

		rl_grid_add(&table, (const char *[]){
					rl_target_print(&limit->limit.target, target),
					rl_text_class(terms, class),
					rl_text_rates(terms, rates),
					rl_text_bursts(terms, bursts),
					limit->tenant,
					rl_text_number(limit->count.passed.packets, packets[0]),
					rl_text_bytes(limit->count.passed.bytes, bytes[0]),
					rl_text_number(limit->count.dropped.packets, packets[1]),
					rl_text_bytes(limit->count.dropped.bytes, bytes[1]),
					rl_text_number(limit->count.shadow.packets, packets[2]),
					rl_text_bytes(limit->count.shadow.bytes, bytes[2]),
				    });
	}
	return rl_grid_print(&table, out);
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
	    {"DEVICE", -1}, {"INDEX", 1},   {"DIRECTION", -1}, {"MODE", -1},  {"HOOK", -1},
	    {"STATE", -1},  {"PROGRAM", 1}, {"LINK", 1},       {"SINCE", -1},
	};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct rl_attached *attached = &snapshot->devices[i].attached;
		char index[RL_NUMBER_TEXT], program[RL_NUMBER_TEXT], link[RL_NUMBER_TEXT],
		    since[RL_TIME_TEXT];

		rl_grid_add(&table,
			    (const char *[]){
				attached->name,
				attached->ifindex ? rl_text_number(attached->ifindex, index) : NULL,
				"in",
				rl_mode_name(attached->device.mode),
				rl_hook_name(attached->device.hook),
				rl_text_device_state(attached),
				attached->program_id ? rl_text_number(attached->program_id, program) : NULL,
				attached->link_id ? rl_text_number(attached->link_id, link) : NULL,
				rl_view_time(attached->device.since, since),
			    });
	}
	if (rl_grid_print(&table, out))
		return -ENOMEM;
	status_hints(snapshot, out);
	return 0;
}

/* What becomes of a source that the store has no room for. */
static const char *full_text(const struct rl_snapshot *snapshot)
{
	static const char *const texts[RL_FULLS] = {
	    [RL_FULL_AGGREGATE] = "a new one is held by its /24 or /48 (aggregate)",
	    [RL_FULL_OPEN] = "a new one passes (open)",
	    [RL_FULL_CLOSED] = "a new one is dropped (closed)",
	};

	if (snapshot->meta.store == RL_STORE_LRU)
		return "the least recently seen is forgotten";
	return snapshot->settings.when_full < RL_FULLS ? texts[snapshot->settings.when_full] : "unknown";
}

int rl_view_status_table(const struct rl_view_status *status, FILE *out)
{
	const struct rl_snapshot *snapshot = status->snapshot;
	char memory[RL_UNIT_TEXT];

	fprintf(out, "network namespace %" PRIu64 ", state in %s\n", (uint64_t)status->cookie, status->path);
	if (!snapshot) {
		fprintf(out, "unreadable: %s\n", status->error);
		return 0;
	}
	fprintf(out, "%zu limit%s\nstore %s, room for %" PRIu64 " sources; when full, %s\n",
		snapshot->limit_count, snapshot->limit_count == 1 ? "" : "s",
		rl_store_name(snapshot->meta.store), (uint64_t)snapshot->meta.max_sources,
		full_text(snapshot));
	if (status->memory)
		fprintf(out, "memory reserved for it all: %s\n", rl_text_bytes(status->memory, memory));
	fputc('\n', out);
	if (snapshot->device_count)
		return status_devices_table(snapshot, out);
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
	    {"SHADOW pps", RATE_WIDTH},
	    {"IN bit/s", RATE_WIDTH},
	    {"PASS bit/s", RATE_WIDTH},
	    {"DROP bit/s", RATE_WIDTH},
	};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	if (!top->device_count) {
		fputs(no_device, out);
		return 0;
	}
	for (size_t i = 0; i < top->device_count; i++) {
		const struct rl_attached *attached = &top->devices[i].stats->attached;
		const struct rl_top_rates *rates = &top->devices[i].rates;
		char text[7][RL_UNIT_TEXT];

		rl_grid_add(&table, (const char *[]){
					attached->name,
					rl_text_device_mode(attached),
					rl_human(rates->passed_pps + rates->dropped_pps, text[0]),
					rl_human(rates->passed_pps, text[1]),
					rl_human(rates->dropped_pps, text[2]),
					rl_human(rates->shadow_pps, text[3]),
					rl_human(rates->passed_bits + rates->dropped_bits, text[4]),
					rl_human(rates->passed_bits, text[5]),
					rl_human(rates->dropped_bits, text[6]),
				    });
	}
	return rl_grid_print(&table, out);
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
	    {"SHADOW pps", RATE_WIDTH},
	    {"PASS bit/s", RATE_WIDTH},
	    {"DROP bit/s", RATE_WIDTH},
	    {"LIMIT", -12},
	    {"RATE", 8},
	    {"TENANT", -1},
	};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	if (!top->source_count)
		return no_sources(top, out);
	for (size_t i = 0; i < top->source_count; i++) {
		const struct rl_top_source *source = &top->sources[i];
		const struct rl_limit_stats *limit = &top->now->limits[source->stats->limit];
		char address[RL_PREFIX_TEXT], target[RL_TARGET_TEXT], limits[RL_PAIR_TEXT],
		    text[5][RL_UNIT_TEXT];

		rl_grid_add(&table, (const char *[]){
					rl_prefix_print(&source->stats->source, address),
					rl_human(source->rates.passed_pps, text[0]),
					rl_human(source->rates.dropped_pps, text[1]),
					rl_human(source->rates.shadow_pps, text[2]),
					rl_human(source->rates.passed_bits, text[3]),
					rl_human(source->rates.dropped_bits, text[4]),
					rl_target_print(&limit->limit.target, target),
					rl_text_rates(&limit->limit.terms, limits),
					limit->tenant,
				    });
	}
	return rl_grid_print(&table, out);
}
