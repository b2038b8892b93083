/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * feed.h - top's view of the maps over time: the last two snapshots of a state that may be detached
 * meanwhile.
 *
 * Open maps outlive their pins, so after a detach they could be read for ever without a change. What tells is
 * the state's folder: it is gone, or it is another one.
 */
#ifndef RL_FEED_H
#define RL_FEED_H

#include <sys/types.h>

#include "snapshot.h"

struct rl_feed {
	const struct rl_state *state; /* outlives the feed */
	struct rl_sources sources;
	dev_t device; /* of the state's folder */
	ino_t inode;
	struct rl_snapshot before;
	struct rl_snapshot now;
};

#define RL_FEED __attribute__((cleanup(rl_feed_close)))

/* Start from a zeroed feed; `now` is the first snapshot then, and `before` an empty one. */
int rl_feed_open(const struct rl_state *state, struct rl_feed *feed, struct rl_error *err);

/* `now` becomes `before`, and a new one is read. -ENOENT and RL_ERROR_NOT_ATTACHED once the state is gone. */
int rl_feed_next(struct rl_feed *feed, struct rl_error *err);

void rl_feed_close(struct rl_feed *feed);

#endif
