/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * target.h - whom a limit is for, between text and struct rl_target: a prefix (prefix.h), `tenant:acme`, `dev:eth0`, or
 * `new`. Pure.
 */
#ifndef RL_TARGET_H
#define RL_TARGET_H

#include <stdbool.h>

#include "../bpf/rl_abi.h"
#include "error.h"
#include "prefix.h"

#define RL_TARGET_DEV  "dev:"
#define RL_TARGET_TEXT RL_PREFIX_TEXT /* "tenant:" and 31 bytes take less than a prefix */

/*
 * Any target. Refused with RL_ERROR_USAGE, besides what rl_prefix_parse refuses: a tenant's name that rl_tenant_check
 * refuses, a device's name that is empty, longer than 15 bytes or holds '/' or white space.
 */
int rl_target_parse(const char *text, struct rl_target *out, struct rl_error *err);

/* Its canonical text. Returns buf. */
const char *rl_target_print(const struct rl_target *target, char buf[RL_TARGET_TEXT]);

/* Order: prefixes (rl_prefix_compare), tenants by name, devices by name, `new`. */
int rl_target_compare(const struct rl_target *a, const struct rl_target *b);

struct rl_target rl_target_prefix(const struct rl_prefix *prefix);

/*
 * A tenant's name: a letter, then letters, digits, '.', '_' and '-'; 1 to 31 bytes; not "any", "new", "all" or "none".
 * Such a name needs no quotes anywhere, and can't be taken for an address, a prefix or an option.
 */
int rl_tenant_check(const char *name, struct rl_error *err);

#endif
