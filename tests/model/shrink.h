/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shrink.h - fewer and simpler operations that still show a difference (delta debugging; Zeller, Hildebrandt, Simplifying
 * and Isolating Failure-Inducing Input, 2002).
 */
#ifndef MODEL_SHRINK_H
#define MODEL_SHRINK_H

#include "play.h"

/*
 * ops[0 .. count) shows a difference. Leaves a smaller list that does, and returns its length; `difference` is what it
 * shows. Plays the list at most `tries` times.
 */
size_t shrink(struct backend *backend, struct op *ops, size_t count, size_t tries,
	      char difference[PLAY_TEXT]);

#endif
