/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * view.h - values in, text or JSON out: what list, stats, status, top and explain print. Nothing here reads a
 * map or a clock.
 *
 * Tables go to a stream; 0 or -ENOMEM is returned, and errors of writing stay in the stream. JSON functions
 * return a new object that the caller hands to rl_view_json_print(), or NULL where memory ran out. Every
 * object has "schema_version"; unset values are null; integers are exact up to 2^63 - 1 (bytes of 23 years at
 * 100 Gbit/s) and stay there beyond.
 */
#ifndef RL_VIEW_H
#define RL_VIEW_H

#include <jansson.h>
#include <stdio.h>

#include "explain.h"
#include "snapshot.h"
#include "top.h"

/*
 * 2: limits have a class, so several may have one target; a target can be a tenant, a device or `new`; the
 * reason "no_bucket" is gone.
 */
#define RL_VIEW_SCHEMA_VERSION 2

/* One network namespace's state. Where it couldn't be read, `error` says why and `snapshot` is NULL. */
struct rl_view_status {
	__u64 cookie;
	const char *path;
	const struct rl_snapshot *snapshot;
	const char *error;
	__u64 memory; /* bytes reserved; 0: unknown */
};

int rl_view_list_table(const struct rl_snapshot *snapshot, FILE *out);
int rl_view_list_policy(const struct rl_snapshot *snapshot, FILE *out); /* lines that apply takes */
int rl_view_stats_table(const struct rl_snapshot *snapshot, FILE *out);
int rl_view_status_table(const struct rl_view_status *status, FILE *out);
int rl_view_top_devices_table(const struct rl_top *top, FILE *out);
int rl_view_top_sources_table(const struct rl_top *top, FILE *out);
int rl_view_explain_table(const struct rl_explain *explain, FILE *out);

json_t *rl_view_list_json(const struct rl_snapshot *snapshot);
json_t *rl_view_stats_json(const struct rl_snapshot *snapshot);
json_t *rl_view_status_json(const struct rl_view_status *status);
json_t *rl_view_status_all_json(const struct rl_view_status *statuses, size_t count);
json_t *rl_view_top_json(const struct rl_top *top, enum rl_top_by by);

/*
 * Of each level beside its limit: "has_bucket"; "no_room", what --when-full makes of a source that has none and for which the
 * table has no room ("aggregate", "open", "closed"); "aggregate", the prefix whose bucket then holds it, which `packets` and
 * `bytes` are about (both null where nothing does); "room_in_seconds", when there is room if nothing else comes.
 */
json_t *rl_view_explain_json(const struct rl_explain *explain);

/* Print the object with a newline and let it go. -ENOMEM for NULL. */
int rl_view_json_print(json_t *object, FILE *out);

#define RL_VIEW_NO_DEVICE "no device attached; policy and buckets are kept\n"

/* Seconds since the epoch as "2024-02-29T12:00:00Z". Returns buf. */
#define RL_TIME_TEXT 32
const char *rl_view_time(__u64 seconds, char buf[RL_TIME_TEXT]);

#endif
