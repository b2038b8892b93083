/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cleanup.h - owned things that release themselves when they go out of scope. Each starts at NULL or -1 and
 * leaves its owner by RL_TAKE_PTR or RL_TAKE_FD. Macros, since the attribute and the emptied variable can't
 * be had by a function.
 */
#ifndef RL_CLEANUP_H
#define RL_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void rl_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void rl_cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define RL_FREE	 __attribute__((cleanup(rl_cleanup_free)))
#define RL_CLOSE __attribute__((cleanup(rl_cleanup_close)))

#define RL_TAKE_PTR(p)                                                                                       \
	({                                                                                                   \
		__typeof__(p) taken_ = (p);                                                                  \
		(p) = NULL;                                                                                  \
		taken_;                                                                                      \
	})
#define RL_TAKE_FD(fd)                                                                                       \
	({                                                                                                   \
		int taken_ = (fd);                                                                           \
		(fd) = -1;                                                                                   \
		taken_;                                                                                      \
	})

#endif
