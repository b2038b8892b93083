/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * units.h - rates, bursts and counts, between text and exact integers. One parser and one printer for the
 * command line, files and output: parse(print(x)) = x.
 *
 *   rate   N pps | kpps | mpps (10^3 steps), N/s | N/m | N/h in packets; N kbit | mbit | gbit (10^3) a second
 *   burst  N, Np, N k, N m (packets, 10^3 steps; "kp" and "mp" too); N kb | mb (10^3 bytes), kib | mib (2^10)
 *   count  N, N k, N m (10^3 steps)
 *
 * Units are lower case, directly behind the number; decimals are allowed where the value is a whole number of
 * the integer's unit (packets per hour, bits per second, packets, bytes). A bare rate, "bps", "Mb", "KB" and
 * the like are refused with a hint, since tools disagree on what they mean. All errors are RL_ERROR_USAGE and
 * name the offending text and the accepted range.
 */
#ifndef RL_UNITS_H
#define RL_UNITS_H

#include <stddef.h>
#include "../bpf/rl_abi.h"
#include "error.h"

#define RL_PACKETS_PER_HOUR_MIN 1ULL
#define RL_PACKETS_PER_HOUR_MAX (148800000ULL * 3600) /* 148.8 Mpps: 64-byte frames at 100 Gbit/s */
#define RL_BITS_MIN		1000ULL
#define RL_BITS_MAX		800000000000ULL
#define RL_UNIT_TEXT		40 /* bytes that any printed quantity needs, its NUL included */

/* A rate into terms->packets_per_hour or terms->bits_per_second; -EEXIST where that unit was given before. */
int rl_rate_parse(const char *text, struct rl_terms *terms, struct rl_error *err);

/* A burst into terms->burst_packets or terms->burst_bytes; -EEXIST where that unit was given before. At
 * least 1. */
int rl_burst_parse(const char *text, struct rl_terms *terms, struct rl_error *err);

/* A count of things ("1000000", "1m") from 1 to max; `what` names it in the error. */
int rl_count_parse(const char *text, const char *what, __u64 max, __u64 *out, struct rl_error *err);

/* Likewise, from min on. */
int rl_count_between_parse(const char *text, const char *what, __u64 min, __u64 max, __u64 *out,
			   struct rl_error *err);

/* The shortest exact form: "1kpps", "7/m", "1/h", "1.2gbit", "2000p", "64kib", "1.5kb". Returns buf. */
const char *rl_rate_print_packets(__u64 per_hour, char buf[RL_UNIT_TEXT]);
const char *rl_rate_print_bits(__u64 bits_per_second, char buf[RL_UNIT_TEXT]);
const char *rl_burst_print_packets(__u64 packets, char buf[RL_UNIT_TEXT]);
const char *rl_burst_print_bytes(__u64 bytes, char buf[RL_UNIT_TEXT]);

/* For people, not to be parsed: three significant digits and a 10^3 prefix, "1.23M", "999", "12.3k". Returns
 * buf. */
const char *rl_human(double value, char buf[RL_UNIT_TEXT]);

#endif
