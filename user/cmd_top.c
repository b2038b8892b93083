// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "cmd.h"
#include "feed.h"
#include "top.h"
#include "top_screen.h"
#include "units.h"
#include "view.h"

#define ROWS_ONCE    20
#define ROWS_MAX     100000000
#define INTERVAL_MIN 0.1
#define INTERVAL_MAX 60.0

static int option_once;
static const char *option_rows;
static const char *option_by;
static const char *option_filter;
static double option_interval = 1;

static const struct poptOption options[] = {
    {"once", 0, POPT_ARG_NONE, &option_once, 0, "print one table after one interval, and end", NULL},
    {"rows", 'n', POPT_ARG_STRING, &option_rows, 0, "show at most N sources (with --once: 20)", "N"},
    {"by", 0, POPT_ARG_STRING, &option_by, 0, "sort by drops (default), passed or bits", "ORDER"},
    {"filter", 0, POPT_ARG_STRING, &option_filter, 0, "show only the sources of a prefix or tenant",
     "PREFIX|TENANT"},
    {"interval", 0, POPT_ARG_DOUBLE, &option_interval, 0, "seconds between refreshes, 0.1 to 60", "SECONDS"},
    RL_CMD_OPTION_JSON,
    POPT_TABLEEND,
};

static int query_from_options(struct rl_top_query *out, struct rl_error *err)
{
	struct rl_top_query query = {.rows = rl_cmd_json || option_once ? ROWS_ONCE : SIZE_MAX};
	__u64 rows;
	int rc = 0;

	if (!(option_interval >= INTERVAL_MIN && option_interval <= INTERVAL_MAX))
		return rl_error_set(err, RL_ERROR_USAGE, ERANGE,
				    "--interval %g is out of range: it takes %g to %g seconds",
				    option_interval, INTERVAL_MIN, INTERVAL_MAX);
	if (option_rows) {
		rc = rl_count_parse(option_rows, "--rows", ROWS_MAX, &rows, err);
		query.rows = rc ? 0 : (size_t)rows;
	}
	if (!rc && option_by)
		rc = rl_top_by_parse(option_by, &query.by, err);
	if (!rc)
		rc = rl_top_filter_parse(option_filter, &query.filter, err);
	if (rc)
		return rc;
	*out = query;
	return 0;
}

static void sleep_interval(void)
{
	struct timespec left = {.tv_sec = (time_t)option_interval};

	left.tv_nsec = (long)((option_interval - (double)left.tv_sec) * 1e9);
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

static int run_once(struct rl_feed *feed, const struct rl_top_query *query, struct rl_error *err)
{
	RL_TOP struct rl_top top = {};
	int rc;

	sleep_interval();
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
	int rc, count;

	rc = rl_cmd_parse(&rl_cmd_top, argc, argv, 0, 0, NULL, &count, err);
	if (!rc)
		rc = query_from_options(&query, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_feed_open(&state, &feed, err);
	if (rc)
		return rc;
	if (option_once || rl_cmd_json)
		return run_once(&feed, &query, err);
	return rl_top_screen_run(&feed, &query, option_filter, option_interval, err);
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
