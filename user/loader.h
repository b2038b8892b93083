/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loader.h - the packet program into the kernel and onto a device. Separate steps: load (over new maps or
 * those that are pinned), pin the maps, attach or replace in place.
 */
#ifndef RL_LOADER_H
#define RL_LOADER_H

#include "state.h"

struct rl_program; /* a loaded program and its maps, not attached to anything yet */

struct rl_load_options {
	__u32 slot;	   /* the device's slot in the per-device maps */
	__u32 max_sources; /* size of a new sources' map */
	bool frags;	   /* accept frames of several buffers */
};

/*
 * Load the program. With `fresh` its maps are new; otherwise they are the open ones of `state`.
 * The program is released by rl_program_free; what is pinned or attached stays.
 */
int rl_program_load(const struct rl_state *state, bool fresh, const struct rl_load_options *options,
		    struct rl_program **out, struct rl_error *err);
void rl_program_free(struct rl_program **program);

/* Pin the maps of a program that was loaded fresh, the meta map last. Killed on the way: unfinished
 * (state.h). */
int rl_program_pin(const struct rl_program *program, const struct rl_state *state, struct rl_error *err);

/* Attach to a device, and pin the link as the slot's. Every refusal of the kernel is explained. */
int rl_program_attach(const struct rl_program *program, const struct rl_state *state, __u32 slot,
		      __u32 ifindex, const char *name, enum rl_mode mode, struct rl_error *err);

/* Put the program in the place of the one that the slot's link runs: no packet is seen by neither or both. */
int rl_program_replace(const struct rl_program *program, const struct rl_state *state, __u32 slot,
		       const char *name, struct rl_error *err);

/* -EBUSY with a text that names it where a program that isn't ours is on the device. */
int rl_device_check_foreign(__u32 ifindex, const char *name, struct rl_error *err);

/* Take what libbpf says: to stderr if `verbose`, otherwise it only serves error texts. Before any use of libbpf. */
void rl_loader_log(bool verbose);

#endif
