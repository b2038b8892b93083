/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frames.h - byte bursts against the largest frames of attached devices: what a bucket can't hold never passes. Only devices
 * of this network namespace can be asked for their MTU, and as it is at present.
 */
#ifndef RL_FRAMES_H
#define RL_FRAMES_H

#include <stdbool.h>

#include "state.h"

/*
 * A limit that is to be set, with complete terms: a byte burst that was `chosen` and holds less than a full frame of a
 * device that the limit holds is refused with RL_ERROR_USAGE; a default one is raised to it.
 */
int rl_frames_fit(const struct rl_state *state, const struct rl_target *target, bool chosen,
		  struct rl_terms *terms, struct rl_error *err);

/* A device that was attached, by its own name: limits whose bursts hold less than its frames are told on stderr. */
void rl_frames_warn(const struct rl_state *state, const char *name);

#endif
