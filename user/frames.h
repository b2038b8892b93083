/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frames.h - bursts against the largest packets of attached devices: what a bucket can't hold never passes. In XDP that is a full
 * frame; TC sees packets that the kernel has merged, each charged whole or not at all. Only devices of this network namespace can
 * be asked for their MTU, and as it is at present.
 */
#ifndef RL_FRAMES_H
#define RL_FRAMES_H

#include <stdbool.h>

#include "state.h"

/*
 * A limit that is to be set, with complete terms: a burst that was `chosen`, by enum rl_unit, and holds less than the largest
 * packet of a device that the limit holds is refused with RL_ERROR_USAGE; a default one is raised to it.
 */
int rl_frames_fit(const struct rl_state *state, const struct rl_target *target, const bool chosen[RL_UNITS],
		  struct rl_terms *terms, struct rl_error *err);

/* A device that was attached, by its own name (RL_NAME_LEN bytes): limits whose bursts hold less than its packets are told on stderr. */
void rl_frames_warn(const struct rl_state *state, const char *name, enum rl_mode mode);

#endif
