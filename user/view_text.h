/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * view_text.h - cells that several tables have: numbers, rates, classes, states. Each returns its text, in buf
 * or static.
 */
#ifndef RL_VIEW_TEXT_H
#define RL_VIEW_TEXT_H

#include "attached.h"
#include "class.h"
#include "units.h"

#define RL_PAIR_TEXT   (2UL * RL_UNIT_TEXT)
#define RL_NUMBER_TEXT 24

const char *rl_text_number(__u64 value, char buf[RL_NUMBER_TEXT]);
const char *rl_text_bytes(__u64 bytes, char buf[RL_UNIT_TEXT]); /* for people: "12.3kB" */

/* "1kpps", "10mbit", "1kpps,10mbit", or "" without a rate; what is allowed or denied says that. */
const char *rl_text_rates(const struct rl_terms *terms, char buf[RL_PAIR_TEXT]);
const char *rl_text_bursts(const struct rl_terms *terms, char buf[RL_PAIR_TEXT]);

/* For people: "12.3 ms", "1.2 h". */
#define RL_DURATION_TEXT 32
const char *rl_text_duration(__u64 ns, char buf[RL_DURATION_TEXT]);

/* "" for a limit of the target as a whole. */
const char *rl_text_class(const struct rl_terms *terms, char buf[RL_CLASS_TEXT]);

/* "pass", "drop", or "shadow": what is in shadow passes, but isn't meant to. */
const char *rl_text_verdict(enum rl_reason reason);

/* "enforcing", "shadow", "paused", "moved", "gone". */
const char *rl_text_device_state(const struct rl_attached *attached);

/* How it runs where it enforces, "native" or "generic", and its state otherwise. */
const char *rl_text_device_mode(const struct rl_attached *attached);

#endif
