/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reserve.h - large maps, made before the program is loaded. The kernel zeroes all of an array's pages while it makes it, which
 * takes a second for some gigabytes; libbpf makes one map after the other, and here two are made at a time.
 */
#ifndef RL_RESERVE_H
#define RL_RESERVE_H

#include <stddef.h>

struct bpf_map;

/*
 * Make these maps, arrays of an opened object whose sizes are set: loading it takes them as they are. 0 or a negative errno,
 * and *refused is the map that the kernel refused, or NULL; what was made goes with the object. Best with the largest first.
 */
int rl_reserve(struct bpf_map *const *maps, size_t count, const struct bpf_map **refused);

#endif
