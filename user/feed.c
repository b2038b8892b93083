// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int find_folder(const struct rl_state *state, struct stat *out, struct rl_error *err)
{
	if (stat(state->path, out) == 0)
		return 0;
	if (errno == ENOENT)
		return rl_error_set(
		    err, RL_ERROR_NOT_ATTACHED, ENOENT,
		    "rl-agent was detached while top was running: nothing is limited any more");
	return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't look at %s: %s", state->path,
			    strerror(errno));
}

int rl_feed_next(struct rl_feed *feed, struct rl_error *err)
{
	struct rl_snapshot snapshot = {};
	struct stat folder;
	int rc = find_folder(feed->state, &folder, err);

	if (rc)
		return rc;
	if (folder.st_dev != feed->device || folder.st_ino != feed->inode)
		return rl_error_set(
		    err, RL_ERROR_NOT_ATTACHED, ENOENT,
		    "rl-agent was detached and attached anew while top was running: start top again");
	rc = rl_snapshot_take_from(
	    &feed->sources, RL_SNAPSHOT_DEVICES | RL_SNAPSHOT_LIMITS | RL_SNAPSHOT_SOURCES, &snapshot, err);
	if (rc)
		return rc;
	rl_snapshot_free(&feed->before);
	feed->before = feed->now;
	feed->now = snapshot;
	return 0;
}

int rl_feed_open(const struct rl_state *state, struct rl_feed *feed, struct rl_error *err)
{
	struct stat folder;
	int rc = find_folder(state, &folder, err);

	if (!rc)
		rc = rl_sources_open(state, &feed->sources, err);
	if (rc)
		return rc;
	feed->state = state;
	feed->device = folder.st_dev;
	feed->inode = folder.st_ino;
	return rl_feed_next(feed, err);
}

void rl_feed_close(struct rl_feed *feed)
{
	rl_snapshot_free(&feed->before);
	rl_snapshot_free(&feed->now);
	rl_sources_close(&feed->sources);
	feed->state = NULL;
}
