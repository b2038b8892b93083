/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * top_screen.h - top on a whole terminal: refreshed at an interval, worked by keys.
 */
#ifndef RL_TOP_SCREEN_H
#define RL_TOP_SCREEN_H

#include "feed.h"
#include "top.h"

/*
 * Run until the operator quits, SIGINT or SIGTERM; the terminal is restored whatever ends it. `filter` is the
 * text that query->filter was parsed from, or NULL. Fails with RL_ERROR_USAGE where there is no terminal or
 * it is too small, and as rl_feed_next() does.
 */
int rl_top_screen_run(struct rl_feed *feed, const struct rl_top_query *query, const char *filter,
		      double interval, struct rl_error *err);

#endif
