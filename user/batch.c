// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "batch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#define CHUNK 4096 /* elements: so that a system call is done in a moment */

int rl_batch_write(const struct rl_state *state, enum rl_map map, const __u32 *keys, const void *values,
		   size_t size, size_t count, struct rl_error *err)
{
	for (size_t done = 0; done < count;) {
		__u32 now = (__u32)(count - done < CHUNK ? count - done : CHUNK);

		if (bpf_map_update_batch(state->map[map], keys + done, (const char *)values + done * size,
					 &now, NULL))
			return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't write the map %s: %s",
					    rl_map_name(map), strerror(errno));
		done += now;
	}
	return 0;
}
