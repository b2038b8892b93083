/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * large.h - memory for arrays as large as a policy. A page fault costs about as much as the work on what the page holds, so
 * it is asked for in huge pages, which the kernel gives where it has them (transparent_hugepage: always or madvise).
 */
#ifndef RL_LARGE_H
#define RL_LARGE_H

#include <stddef.h>

/* `count` of `size` bytes, with anything in them, for free(). What isn't touched takes no memory. NULL: there is none. */
void *rl_large_alloc(size_t count, size_t size);

/* As reallocarray(): moved to a larger place, of which what is behind the first `count` is anything. */
void *rl_large_grow(void *old, size_t count, size_t room, size_t size);

#endif
