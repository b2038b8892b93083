// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "mapping.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int rl_mapping_open(const struct rl_state *state, enum rl_map map, size_t element, bool writable,
		    struct rl_mapping *out, struct rl_error *err)
{
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size;
	void *base;

	if (bpf_obj_get_info_by_fd(state->map[map], &info, &length))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't look at the map %s: %s",
				    rl_map_name(map), strerror(errno));
	if (info.value_size != element)
		return rl_error_set(err, RL_ERROR_KERNEL, EPROTO,
				    "the map %s has elements of %u bytes, expected %zu: it isn't rl-agent's; "
				    "`rl-agent detach --all` and attach make it anew",
				    rl_map_name(map), info.value_size, element);
	size = (element * info.max_entries + page - 1) / page * page;
	base =
	    mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, state->map[map], 0);
	if (base == MAP_FAILED)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't map %s into memory: %s",
				    rl_map_name(map), strerror(errno));
	*out = (struct rl_mapping){.base = base, .size = size, .entries = info.max_entries};
	return 0;
}

void rl_mapping_close(struct rl_mapping *mapping)
{
	if (mapping->base)
		munmap(mapping->base, mapping->size);
	*mapping = (struct rl_mapping){};
}
