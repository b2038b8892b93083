/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * no_lru.h - the packet path compiled natively over the store `table` alone: what rl_sources.h asks for of the other one. Included
 * before the path's headers, by tests that simulate CPUs.
 */
#ifndef RL_NO_LRU_H
#define RL_NO_LRU_H

#include "../../bpf/rl_abi.h"

static inline int rl_lru_used(void)
{
	return 0;
}

static inline struct rl_source *rl_lru_find(const struct rl_source_key *key)
{
	(void)key;
	return 0;
}

static inline int rl_lru_make(const struct rl_source_key *key, const struct rl_source *fresh)
{
	(void)key, (void)fresh;
	return 0;
}

#endif
