/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cmd_apply.h - what apply and attach --policy tell alike. */
#ifndef RL_CMD_APPLY_H
#define RL_CMD_APPLY_H

#include "policy_apply.h"

/* RL_ERROR_USAGE where the file says no limit, as when what should have written it failed: `way` says what else to do. */
int rl_cmd_apply_says(const struct rl_policy_file *file, const char *way, struct rl_error *err);

/* "policy of FILE in force: 12 limits, 3 new, 1 changed, 2 deleted, 8 as they were", and what it leaves owed. */
void rl_cmd_apply_print(const char *name, enum rl_apply_how how, const struct rl_applied *applied);

#endif
