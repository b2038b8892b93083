// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "cmd.h"
#include "device.h"
#include "explain.h"
#include "sources.h"
#include "units.h"
#include "view.h"

#define FRAME_MIN 14	/* an Ethernet header */
#define FRAME_MAX 65557 /* an Ethernet header, two VLAN tags, and what the largest MTU holds: 65535 bytes */

static struct rl_explain_words words;
static const char *option_dev;
static char dev_name[RL_NAME_LEN];

static const struct poptOption options[] = {
    {"proto", 0, POPT_ARG_STRING, &words.proto, 0, "the packet's protocol: tcp, udp, icmp, or its number",
     "PROTO"},
    {"dport", 0, POPT_ARG_STRING, &words.dport, 0, "its destination port", "N"},
    {"syn", 0, POPT_ARG_NONE, &words.syn, 0, "it opens a TCP connection", NULL},
    {"frag", 0, POPT_ARG_NONE, &words.frag, 0, "it is a fragment", NULL},
    {"bytes", 0, POPT_ARG_STRING, &words.bytes, 0,
     "its length, from the Ethernet header on, 14 to 65557 (60)", "N"},
    {"dev", 0, POPT_ARG_STRING, &option_dev, 0, "on this device alone", "DEV"},
    RL_CMD_OPTION_JSON,
    POPT_TABLEEND,
};

/* --dev by the device's own name. */
static int dev_parse(struct rl_error *err)
{
	int rc = option_dev ? rl_device_name(option_dev, dev_name, err) : 0;

	if (!rc && option_dev)
		option_dev = dev_name;
	return rc;
}

/* *out stays NULL where no device was asked for. */
static int find_device(const struct rl_snapshot *snapshot, const struct rl_device_stats **out,
		       struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	const struct rl_attached *found;
	size_t count = 0;

	if (!option_dev)
		return 0;
	for (; count < snapshot->device_count && count < RL_MAX_DEVICES; count++)
		attached[count] = snapshot->devices[count].attached;
	found = rl_attached_find(attached, count, option_dev);
	if (!found || found->where == RL_GONE)
		return rl_error_set(err, RL_ERROR_NOT_ATTACHED, ENODEV,
				    "not attached to %s: `rl-agent status` shows where it is", option_dev);
	*out = &snapshot->devices[found - attached];
	return 0;
}

/* Where packets look for buckets, as they do at present. */
struct lookup {
	struct rl_sources *sources;
	const struct rl_snapshot *snapshot;
	const struct rl_prefix *source;
};

static int read_row(void *context, __u32 where, __u32 index, struct rl_row *row,
		    struct rl_row_address *address, struct rl_error *err)
{
	return rl_sources_row(context, where, index, row, address, err);
}

/* A source without a bucket. The LRU map makes room for each. */
static int try_level(struct lookup *lookup, struct rl_explain_level *level, struct rl_error *err)
{
	const struct rl_trial_rows rows = {.read = read_row, .context = lookup->sources};
	const struct rl_limit *limit = &level->limit->limit;

	if ((limit->flags & RL_LIMIT_OWN_BUCKET) || lookup->snapshot->meta.store != RL_STORE_TABLE)
		return 0;
	return rl_trial_source(lookup->snapshot, limit, lookup->source, &rows, rl_clock_ns(), &level->trial,
			       err);
}

static int read_level(struct lookup *lookup, struct rl_explain_level *level, struct rl_error *err)
{
	struct rl_source_place place;
	int rc;

	if (!level->limit)
		return 0;
	rc = rl_sources_find(lookup->sources, &level->limit->limit, lookup->source, &place, &level->found,
			     err);
	if (!rc && !level->found)
		rc = try_level(lookup, level, err);
	if (rc)
		return rc;
	level->buckets = place.buckets;
	level->tally = place.tally;
	return 0;
}

static int read_levels(const struct rl_state *state, const struct rl_snapshot *snapshot,
		       struct rl_explain *explain, struct rl_error *err)
{
	RL_SOURCES struct rl_sources sources = {};
	struct lookup lookup = {.sources = &sources, .snapshot = snapshot, .source = &explain->packet.source};
	int rc = rl_sources_open(state, &sources, err);

	for (size_t i = 0; i < explain->level_count && !rc; i++)
		rc = read_level(&lookup, &explain->level[i], err);
	for (size_t i = 0; i < explain->device_count && !rc; i++)
		rc = read_level(&lookup, &explain->device[i].level, err);
	return rc;
}

static int explain_packet(const struct rl_explain_packet *packet, struct rl_error *err)
{
	RL_SNAPSHOT struct rl_snapshot snapshot = {};
	RL_STATE struct rl_state state = RL_STATE_INIT;
	const struct rl_device_stats *only = NULL;
	struct rl_explain explain;
	int rc = rl_state_open(&state, err);

	if (!rc)
		rc = rl_snapshot_take(&state, RL_SNAPSHOT_DEVICES | RL_SNAPSHOT_LIMITS | RL_SNAPSHOT_COUNTS,
				      &snapshot, err);
	if (!rc)
		rc = find_device(&snapshot, &only, err);
	if (rc)
		return rc;
	rl_explain_begin(&snapshot, packet, only, &explain);
	rc = read_levels(&state, &snapshot, &explain, err);
	if (rc)
		return rc;
	rl_explain_finish(&explain, rl_clock_ns());
	rc = rl_cmd_json ? rl_view_json_print(rl_view_explain_json(&explain), stdout)
			 : rl_view_explain_table(&explain, stdout);
	return rc ? rl_error_set(err, RL_ERROR_KERNEL, -rc, "out of memory while printing") : 0;
}

/* A frame's, narrower than what rl_explain_parse() can compute with. */
static int bytes_check(struct rl_error *err)
{
	__u64 bytes;

	return words.bytes ? rl_count_between_parse(words.bytes, "--bytes", FRAME_MIN, FRAME_MAX, &bytes, err)
			   : 0;
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	struct rl_explain_packet packet;
	int count, rc = rl_cmd_parse(&rl_cmd_explain, argc, argv, 1, 1, &words.address, &count, err);

	if (!rc)
		rc = bytes_check(err);
	if (!rc)
		rc = rl_explain_parse(&words, &packet, err);
	if (!rc)
		rc = dev_parse(err);
	return rc ? rc : explain_packet(&packet, err);
}

const struct rl_command rl_cmd_explain = {
    .name = "explain",
    .arguments = "ADDRESS [--proto tcp|udp|icmp|N] [--dport N] [--syn] [--frag] [--bytes N] [--dev DEV] [-j]",
    .summary = "Show what a packet from ADDRESS would be held to, and when it would pass",
    .help =
	"The limit that applies and why, its classes, tenant and device; what is left in each bucket, how much of it\n"
	"is kept for higher priorities, and when it is enough for this packet if nothing else comes. Classes are\n"
	"those of the packet that the options describe. Nothing is charged, and nothing changed.\n\n"
	"A source without a bucket is given a full one by its first packet. Where `new` has no token left, or the table has\n"
	"no room for it, explain says so, and what becomes of the packet then (attach --when-full).\n",
    .options = options,
    .run = run,
};
