// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cmd.h"
#include "feed.h"
#include "target.h"
#include "top.h"
#include "top_screen.h"
#include "units.h"
#include "view.h"

#define ROWS_ONCE	 20
#define ROWS_MAX	 100000000
#define INTERVAL_MIN	 0.1 /* seconds */
#define INTERVAL_MAX	 60.0
#define INTERVAL_DEFAULT "1"

static int option_once;
static const char *option_rows;
static const char *option_by;
static const char *option_filter;
static const char *option_interval;

static const struct poptOption options[] = {
    {"once", 0, POPT_ARG_NONE, &option_once, 0, "print one table after one interval, and end", NULL},
    {"rows", 'n', POPT_ARG_STRING, &option_rows, 0, "show at most N sources (with --once: 20)", "N"},
    {"by", 0, POPT_ARG_STRING, &option_by, 0, "sort by drops (default), passed or bits", "ORDER"},
    {"filter", 0, POPT_ARG_STRING, &option_filter, 0, "show only the sources of a prefix or tenant",
     "PREFIX|TENANT"},
    {"interval", 0, POPT_ARG_STRING, &option_interval, 0, "seconds between refreshes, 0.1 to 60 (1)",
     "SECONDS"},
    RL_CMD_OPTION_JSON,
    POPT_TABLEEND,
};

static int filter_parse(struct rl_top_filter *out, struct rl_error *err)
{
	struct rl_top_filter filter = {};
	struct rl_error reason = {};
	int rc = rl_top_filter_parse(option_filter, &filter, &reason);

	if (rc)
		return rl_error_set(err, RL_ERROR_USAGE, -rc,
				    "--filter \"%.64s\" is no address, no prefix and no tenant's name: %s",
				    option_filter, reason.text);
	*out = filter;
	return 0;
}

static int interval_parse(double *out, struct rl_error *err)
{
	const char *text = option_interval ? option_interval : INTERVAL_DEFAULT;
	char *end;
	double seconds = strtod(text, &end);

	if (*end || !(seconds >= INTERVAL_MIN && seconds <= INTERVAL_MAX))
		return rl_error_set(err, RL_ERROR_USAGE, ERANGE,
				    "--interval \"%.64s\": expected seconds, from %g to %g, such as 0.5",
				    text, INTERVAL_MIN, INTERVAL_MAX);
	*out = seconds;
	return 0;
}

static int query_from_options(struct rl_top_query *out, struct rl_error *err)
{
	struct rl_top_query query = {.rows = rl_cmd_json || option_once ? ROWS_ONCE : SIZE_MAX};
	__u64 rows;
	int rc = 0;

	if (option_rows) {
		rc = rl_count_parse(option_rows, "--rows", ROWS_MAX, &rows, err);
		query.rows = rc ? 0 : (size_t)rows;
	}
	if (!rc && option_by)
		rc = rl_top_by_parse(option_by, &query.by, err);
	if (!rc && option_filter)
		rc = filter_parse(&query.filter, err);
	if (rc)
		return rc;
	*out = query;
	return 0;
}

static void sleep_for(double seconds)
{
	struct timespec left = {.tv_sec = (time_t)seconds};

	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static int print(const struct rl_top *top, enum rl_top_by by)
{
	int rc;

	if (rl_cmd_json)
		return rl_view_json_print(rl_view_top_json(top, by), stdout);
	rc = rl_view_top_devices_table(top, stdout);
	putchar('\n');
	return rc ? rc : rl_view_top_sources_table(top, stdout);
}

static int run_once(struct rl_feed *feed, const struct rl_top_query *query, double interval,
		    struct rl_error *err)
{
	RL_TOP struct rl_top top = {};
	int rc;

	sleep_for(interval);
	rc = rl_feed_next(feed, err);
	if (rc)
		return rc;
	rc = rl_top_compute(&feed->before, &feed->now, query, &top);
	if (!rc)
		rc = print(&top, query->by);
	return rc ? rl_error_set(err, RL_ERROR_KERNEL, -rc, "out of memory while printing") : 0;
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	RL_FEED struct rl_feed feed = {};
	struct rl_top_query query;
	double interval = 0;
	int rc, count;

	rc = rl_cmd_parse(&rl_cmd_top, argc, argv, 0, 0, NULL, &count, err);
	if (!rc)
		rc = query_from_options(&query, err);
	if (!rc)
		rc = interval_parse(&interval, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_feed_open(&state, &feed, err);
	if (rc)
		return rc;
	if (option_once || rl_cmd_json)
		return run_once(&feed, &query, interval, err);
	return rl_top_screen_run(&feed, &query, option_filter, interval, err);
}

const struct rl_command rl_cmd_top = {
    .name = "top",
    .arguments =
	"[--once] [-n N] [--by drops|passed|bits] [--filter PREFIX|TENANT] [--interval SECONDS] [-j]",
    .summary = "Show which sources are dropped and passed most, now",
    .help =
	"Fills the terminal and is refreshed each second; h shows the keys. --once and --json print one "
	"measurement.\n"
	"Rates are those over the interval. What a limit in shadow would have dropped is shown apart, and counted\n"
	"as passed too; `--by drops` sorts by both. Sources that no limit names aren't tracked.\n",
    .options = options,
    .run = run,
};
