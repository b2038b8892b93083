/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix.h - which sources: an address, a prefix or `any`, between text and the policy's key.
 */
#ifndef RL_PREFIX_H
#define RL_PREFIX_H

#include <stdbool.h>
#include "../bpf/rl_abi.h"
#include "error.h"

#define RL_PREFIX_TEXT 56 /* an IPv6 address, "/128" and the NUL */

/*
 * "any", "203.0.113.7", "198.51.100.0/24", "2001:db8::/32". Refused with RL_ERROR_USAGE: a prefix length out
 * of range (the range is named), host bits set (the network meant is named), IPv4-mapped IPv6 (the IPv4 form
 * is named), zone ids, anything else.
 */
int rl_prefix_parse(const char *text, struct rl_prefix *out, struct rl_error *err);

/* Canonical text (RFC 5952); a host prints without a length. Returns buf. */
const char *rl_prefix_print(const struct rl_prefix *target, char buf[RL_PREFIX_TEXT]);

/* Every source of `inner` is one of `outer`; true for equal ones. */
bool rl_prefix_covers(const struct rl_prefix *outer, const struct rl_prefix *inner);

/* The target is one source at the default granularity: /32 for IPv4, /64 or longer for IPv6. */
bool rl_prefix_is_source(const struct rl_prefix *target);

/* The prefix of the first `bits` bits of an address (network byte order; 4 bytes are read of an IPv4 address, 16 of an
 * IPv6 one). More bits than the family has are all of them. */
struct rl_prefix rl_prefix_cut(__u8 family, const __u8 *addr, unsigned int bits);

/* Order: any, IPv4, IPv6; by address; the shorter prefix first. So whatever covers a target stands before it.
 */
int rl_prefix_compare(const struct rl_prefix *a, const struct rl_prefix *b);

#endif
