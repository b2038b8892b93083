// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* view_explain.c - what explain prints for people. */
#include "view.h"

#include <inttypes.h>
#include <stdio.h>

#include "class.h"
#include "grid.h"
#include "target.h"
#include "view_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0])) /* a macro: the type of element varies */
#define WAIT_TEXT    40
#define SAME	     "\"" /* as in the line above */

/* "now", "in 12.3 ms", "in 1.2 h", "never". */
static const char *wait_text(__u64 wait, char buf[WAIT_TEXT])
{
	char duration[RL_DURATION_TEXT];

	if (!wait)
		return "now";
	if (wait == RL_EXPLAIN_NEVER)
		return "never";
	snprintf(buf, WAIT_TEXT, "in %s", rl_text_duration(wait, duration));
	return buf;
}

static void print_why(const struct rl_explain *explain, FILE *out)
{
	static const char *const texts[RL_EXPLAIN_WHYS] = {
	    [RL_EXPLAIN_LONGEST] = "is held to the limit of",
	    [RL_EXPLAIN_ALLOWED] = "is allowed, so never limited, by",
	    [RL_EXPLAIN_DENIED] = "is denied by",
	};
	char address[RL_PREFIX_TEXT], target[RL_TARGET_TEXT];

	rl_prefix_print(&explain->packet.source, address);
	if (!explain->limit) {
		fprintf(out, "%s: no limit names it, so only its device's limit holds\n", address);
		return;
	}
	fprintf(out, "%s %s %s, the longest prefix around it", address, texts[explain->why],
		rl_target_print(&explain->limit->limit.target, target));
	for (size_t i = 0; i < explain->wider_count; i++)
		fprintf(out, "%s%s", i ? ", " : "; wider, so not taken: ",
			rl_target_print(&explain->wider[i]->limit.target, target));
	fputc('\n', out);
}

static void print_packet(const struct rl_explain *explain, FILE *out)
{
	const struct rl_explain_packet *packet = &explain->packet;
	const char *name;
	__u8 kind;

	fprintf(out, "packet: %u bytes", packet->bytes);
	for (unsigned int i = 0; (name = rl_kind_name(i, &kind)); i++)
		if (packet->kinds & kind)
			fprintf(out, ", %s", name);
	if (packet->port)
		fprintf(out, ", port %u", packet->port);
	fprintf(out, "; costs %u, priority %s\n", explain->cost, rl_priority_name((__u8)explain->priority));
}

/* A source for which the table has no room: what then, and until when. */
static void print_no_room(const struct rl_explain *explain, const struct rl_explain_level *level, FILE *out)
{
	const struct rl_trial *trial = &level->trial;
	const char *when_full = rl_when_full_name(explain->when_full);
	char group[RL_PREFIX_TEXT], wait[WAIT_TEXT];

	rl_prefix_print(&trial->group, group);
	fputs("the table has no room for it, ", out);
	if (trial->reason == RL_PASS_AGGREGATE)
		fprintf(out, "so it shares the bucket of %s", group);
	else if (trial->reason == RL_PASS_OPEN)
		fputs("so no bucket holds it", out);
	else if (explain->when_full == RL_FULL_AGGREGATE)
		fprintf(out, "nor for a bucket of %s, so it is dropped", group);
	else
		fputs("so it is dropped", out);
	fprintf(out, " (--when-full %s)", when_full);
	if (trial->room != RL_TRIAL_NEVER)
		fprintf(out, "; if nothing else comes, there is room %s", wait_text(trial->room, wait));
	fputc('\n', out);
}

/* A new source isn't given a bucket now. */
static bool is_refused(const struct rl_explain *explain)
{
	const struct rl_explain_level *fresh = rl_explain_new(explain);

	return fresh && fresh->wait;
}

static void print_bucket(const struct rl_explain *explain, const struct rl_explain_level *level, FILE *out)
{
	const struct rl_tally *tally = &level->tally;
	char wait[WAIT_TEXT];

	if (level->found)
		fprintf(out, "%" PRIu64 " packets passed, %" PRIu64 " dropped, %" PRIu64 " in shadow\n",
			(uint64_t)tally->passed.packets, (uint64_t)tally->dropped.packets,
			(uint64_t)tally->shadow.packets);
	else if (is_refused(explain))
		fprintf(out, "without a bucket: a new source isn't given one now, `new` has a token %s\n",
			wait_text(rl_explain_new(explain)->wait, wait));
	else if (rl_explain_no_room(level))
		print_no_room(explain, level, out);
	else
		fputs("without a bucket yet: it will be given a full one\n", out);
}

/* Its classes have buckets of their own, for which there may be no room. */
static void print_classes(const struct rl_explain *explain, FILE *out)
{
	char text[RL_CLASS_TEXT];

	for (size_t i = 1; i < explain->level_count; i++) {
		const struct rl_explain_level *level = &explain->level[i];

		if (!rl_explain_no_room(level))
			continue;
		fprintf(out, "class %s: ", rl_text_class(&level->limit->limit.terms, text));
		print_no_room(explain, level, out);
	}
}

/* What to do where there is no room. */
static void print_way_out(const struct rl_explain *explain, FILE *out)
{
	for (size_t i = 0; i < explain->level_count; i++) {
		if (!rl_explain_no_room(&explain->level[i]))
			continue;
		fputs(
		    "for more room start anew: `rl-agent detach --all`, which gives up policy and buckets, then "
		    "attach with a larger --max-sources\n",
		    out);
		return;
	}
}

static void print_source(const struct rl_explain *explain, FILE *out)
{
	char text[RL_TARGET_TEXT];

	if (explain->tenant_from)
		fprintf(out, "tenant: %s, said by %s\n", explain->tenant_from->limit.terms.tenant,
			rl_target_print(&explain->tenant_from->limit.target, text));
	if (explain->why != RL_EXPLAIN_LONGEST)
		return;
	fprintf(out, "source: %s, ", rl_prefix_print(&explain->source, text));
	print_bucket(explain, &explain->level[0], out);
	if (is_refused(explain))
		return;
	print_classes(explain, out);
	print_way_out(explain, out);
}

static const char *tokens_text(int unit, __u64 tokens, char buf[RL_UNIT_TEXT])
{
	return unit == RL_PACKETS ? rl_burst_print_packets(tokens, buf) : rl_burst_print_bytes(tokens, buf);
}

/* One unit's line; `first`: with what holds for the level as a whole. */
static void add_unit(const struct rl_explain_level *level, int i, bool first, struct rl_grid *table)
{
	const struct rl_explain_unit *unit = &level->unit[i];
	const struct rl_limit_stats *limit = level->limit;
	const struct rl_terms *terms = &limit->limit.terms;
	char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT], count[3][RL_NUMBER_TEXT], wait[WAIT_TEXT];
	char rate[RL_UNIT_TEXT], left[RL_UNIT_TEXT], burst[RL_UNIT_TEXT], kept[RL_UNIT_TEXT];

	if (i == RL_PACKETS)
		rl_rate_print_packets(terms->packets_per_hour, rate);
	else
		rl_rate_print_bits(terms->bits_per_second, rate);
	rl_grid_add(table, (const char *[]){
			       first ? rl_level_name(limit->limit.level) : SAME,
			       first ? rl_target_print(&limit->limit.target, target) : SAME,
			       first ? rl_text_class(terms, class) : SAME,
			       unit->limited ? rate : NULL,
			       unit->limited ? tokens_text(i, unit->left, left) : NULL,
			       unit->limited ? tokens_text(i, unit->burst, burst) : NULL,
			       unit->kept ? tokens_text(i, unit->kept, kept) : NULL,
			       wait_text(unit->limited ? unit->wait : level->wait, wait),
			       limit->limit.flags & RL_LIMIT_SHADOW ? "shadow" : "enforcing",
			       first ? rl_text_number(limit->count.passed.packets, count[0]) : SAME,
			       first ? rl_text_number(limit->count.dropped.packets, count[1]) : SAME,
			       first ? rl_text_number(limit->count.shadow.packets, count[2]) : SAME,
			   });
}

static void add_level(const struct rl_explain_level *level, struct rl_grid *table)
{
	bool packets = level->unit[RL_PACKETS].limited, bytes = level->unit[RL_BYTES].limited;

	if (packets || !bytes)
		add_unit(level, RL_PACKETS, true, table);
	if (bytes)
		add_unit(level, RL_BYTES, !packets, table);
}

static int print_levels(const struct rl_explain *explain, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"LEVEL", -1}, {"LIMIT", -1}, {"CLASS", -1}, {"RATE", 1},	{"LEFT", 1},	{"OF", 1},
	    {"KEPT", 1},   {"ENOUGH", 1}, {"STATE", -1}, {"PASSED", 1}, {"DROPPED", 1}, {"SHADOW", 1},
	};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	for (size_t i = 0; i < explain->level_count; i++)
		add_level(&explain->level[i], &table);
	for (size_t i = 0; i < explain->device_count; i++)
		if (explain->device[i].level.limit)
			add_level(&explain->device[i].level, &table);
	if (!table.row_count && !table.failed)
		return 0;
	fputc('\n', out);
	return rl_grid_print(&table, out);
}

static int print_devices(const struct rl_explain *explain, FILE *out)
{
	static const struct rl_column columns[] = {
	    {"DEVICE", -1}, {"STATE", -1}, {"VERDICT", -1}, {"REASON", -1}, {"PASSES", -1}};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));

	for (size_t i = 0; i < explain->device_count; i++) {
		const struct rl_explain_device *device = &explain->device[i];
		char wait[WAIT_TEXT];

		rl_grid_add(&table, (const char *[]){
					device->device->attached.name,
					rl_text_device_state(&device->device->attached),
					rl_text_verdict(device->reason),
					rl_reason_name(device->reason),
					wait_text(device->wait, wait),
				    });
	}
	fputc('\n', out);
	if (explain->device_count)
		return rl_grid_print(&table, out);
	fputs(RL_VIEW_NO_DEVICE, out);
	return 0;
}

int rl_view_explain_table(const struct rl_explain *explain, FILE *out)
{
	int rc;

	print_why(explain, out);
	print_packet(explain, out);
	print_source(explain, out);
	rc = print_levels(explain, out);
	return rc ? rc : print_devices(explain, out);
}
