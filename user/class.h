/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * class.h - the smaller words of a limit, between text and struct rl_terms: classes of packets, costs, priorities,
 * reserves, granularity; and which of them a target can have. Pure. parse(print(x)) = x. All errors are RL_ERROR_USAGE,
 * name the offending text and what was expected, and leave *out as it was.
 */
#ifndef RL_CLASS_TEXT_H
#define RL_CLASS_TEXT_H

#include "../bpf/rl_abi.h"
#include "error.h"
#include "target.h"

#define RL_CLASS_TEXT	16  /* "udp/10000-20000" */
#define RL_COSTS_TEXT	200 /* RL_MAX_COSTS of "udp/10000-20000=65535," */
#define RL_RESERVE_TEXT 40  /* "high=99.99%,normal=0.01%" */

/* "tcp", "syn", "udp", "icmp", "frag", "tcp/443", "udp/1000-2000" (from <= to, 1 to 65535). */
int rl_class_parse(const char *text, struct rl_class *out, struct rl_error *err);
const char *rl_class_print(const struct rl_class *class, char buf[RL_CLASS_TEXT]);
int rl_class_is_set(const struct rl_class *class); /* all zero: no class */
int rl_class_same(const struct rl_class *a, const struct rl_class *b);

/* The name of the i-th kind that a class can be of, and the kind; NULL behind the last. */
const char *rl_kind_name(unsigned int i, __u8 *kind);

/* "syn=10,icmp=2,frag=4" into terms->cost, behind those that are there: at most RL_MAX_COSTS, each class once, 1 to 65535. */
int rl_costs_parse(const char *text, struct rl_terms *terms, struct rl_error *err);
const char *rl_costs_print(const struct rl_terms *terms, char buf[RL_COSTS_TEXT]);

/* "high", "normal", "low". */
int rl_priority_parse(const char *text, __u8 *out, struct rl_error *err);
const char *rl_priority_name(__u8 priority); /* NULL where it is UNSET */

/*
 * "high=20%,normal=5%" (one or both, each once, in any order; decimals to 0.01 %) into terms->reserve. They nest: with
 * these, low stops at 25 % left and normal at 20 % left. Their sum is at most 100 %.
 */
int rl_reserve_parse(const char *text, struct rl_terms *terms, struct rl_error *err);
const char *rl_reserve_print(const struct rl_terms *terms, char buf[RL_RESERVE_TEXT]);

/* "/28": 1 to 128. Whether the target can have it is rl_terms_complete's to say. */
int rl_per_parse(const char *text, __u8 *out, struct rl_error *err);

/* "limit", "allow", "deny". */
const char *rl_action_name(__u8 action);

/* What a limit is for, in a text: the target, or "class syn of 198.51.100.0/24". Returns buf. */
#define RL_OBJECT_TEXT (RL_TARGET_TEXT + RL_CLASS_TEXT + 16)
const char *rl_object_print(const struct rl_target *target, const struct rl_class *class,
			    char buf[RL_OBJECT_TEXT]);

/* Can this target, class or action have the words that are said (the table in limit.h), and beside each other? */
int rl_words_check(const struct rl_target *target, const struct rl_terms *terms, struct rl_error *err);

/* "tenant acme, per /28, cost syn=10, priority high, shadow", for people: what was said besides action, class and rates.
 * Returns buf, empty where nothing was said. */
#define RL_WORDS_TEXT 370
const char *rl_words_print(const struct rl_terms *terms, char buf[RL_WORDS_TEXT]);

#endif
