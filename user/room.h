/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * room.h - slots and cells for limits.
 *
 * -ENOSPC, with a text, where all are taken: then what was claimed for the change is given back, and rl_room_reclaim may
 * find some that agents that were killed had claimed.
 */
#ifndef RL_ROOM_H
#define RL_ROOM_H

#include "heads.h"

/* An id and a slot for a new limit: no cell in force, its bucket full, its counts zero. */
int rl_room_slot(const struct rl_heads *heads, __u32 *id, __u32 *slot, struct rl_error *err);

/*
 * Slots for many new limits, found (claims.h) and nobody's yet: made as those above. Their heads go first, since they are
 * claimed afterwards: a head that is staged still would be settled as if it were the new owner's (stage.h).
 */
int rl_room_empty(const struct rl_heads *heads, const __u32 *slots, const __u32 *ids, size_t count,
		  struct rl_error *err);

/* Write the limit into a free cell, looked for from `from` on. Nobody reads it yet. */
int rl_room_cell(const struct rl_heads *heads, const struct rl_limit *limit, __u32 from, __u32 *cell,
		 struct rl_error *err);

/* A slot and a cell for a new limit, in force there, but out of reach. Its id and slot are filled in. */
int rl_room_place(const struct rl_heads *heads, struct rl_limit *limit, struct rl_error *err);

/* Another version of a limit in its slot, in force by one store. */
int rl_room_replace(const struct rl_heads *heads, const struct rl_limit *limit, struct rl_error *err);

/* Give back all that nobody can reach, and drop tenants that no prefix names and that say nothing. No change is under way,
 * neither staged nor by the caller, who would lose what it claimed. */
int rl_room_reclaim(const struct rl_heads *heads, struct rl_error *err);

/* Give back a slot that can't be reached any more, and its cell. */
void rl_room_free(const struct rl_heads *heads, __u32 slot);

#endif
