// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "large.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20) /* of x86-64 and, with pages of 4 KiB, arm64; elsewhere it does no harm */

void *rl_large_alloc(size_t count, size_t size)
{
	size_t bytes;
	void *at;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	if (bytes < HUGE_PAGE)
		return malloc(bytes ? bytes : 1);
	at = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	if (at) /* a kernel without huge pages refuses, and small ones do as well */
		madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

void *rl_large_grow(void *old, size_t count, size_t room, size_t size)
{
	void *grown = rl_large_alloc(room, size);

	if (!grown)
		return NULL;
	if (count)
		memcpy(grown, old, count * size);
	free(old);
	return grown;
}
