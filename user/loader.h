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
	__u32 slot;	     /* the device's slot in the per-device maps */
	enum rl_mode mode;   /* which program */
	bool frags;	     /* accept frames of several buffers */
	enum rl_store store; /* the rest is the state's, and has to be what it was made with */
	__u32 max_sources;   /* that the store has room for */
	__u64 seed[2];	     /* of the table's hash */
	__u32 regions;	     /* of the table; 0: as many as max_sources takes */
	__u32 max_limits;    /* slots, 0 included; 0: the default */
};

/* Options for a new state: a seed that nobody can guess. */
int rl_load_options_new(enum rl_store store, __u32 max_sources, __u32 max_limits, struct rl_load_options *out,
			struct rl_error *err);

/* Options for a state that is there. */
int rl_load_options_kept(const struct rl_state *state, struct rl_load_options *out, struct rl_error *err);

/*
 * Load the program. With `fresh` its maps are new; otherwise they are the open ones of `state`.
 * The program is released by rl_program_free; what is pinned or attached stays.
 */
int rl_program_load(const struct rl_state *state, bool fresh, const struct rl_load_options *options,
		    struct rl_program **out, struct rl_error *err);
void rl_program_free(struct rl_program **program);

/* Pin the maps of a program that was loaded fresh, the meta map last. Killed on the way: unfinished
 * (state.h). */
int rl_program_pin(const struct rl_program *program, const struct rl_state *state,
		   enum rl_when_full when_full, struct rl_error *err);

/* Attach to a device, and pin that as the slot's. `device`: its index, name, mode and flags (RL_DEVICE_SHADOW); the
 * rest is filled in. Every refusal of the kernel is explained. */
int rl_program_attach(const struct rl_program *program, const struct rl_state *state, __u32 slot,
		      const struct rl_device *device, struct rl_error *err);

/* Put the program in the place of the one that runs there: no packet is seen by neither or both. */
int rl_program_replace(const struct rl_program *program, const struct rl_state *state, __u32 slot,
		       const struct rl_device *device, struct rl_error *err);

/* -EBUSY with a text that names it where a program that isn't ours is on the device. */
int rl_device_check_foreign(__u32 ifindex, const char *name, struct rl_error *err);

/*
 * The two steps of loading that need the skeleton, for whoever loads the program without pinning it (tests, benchmark):
 * a skeleton that was opened, made ready to be loaded over new maps; and what its state and its packets read, written once
 * it is loaded. 0 or a negative errno.
 */
struct rl_path;
int rl_skeleton_prepare(struct rl_path *skel, const struct rl_load_options *options);
int rl_skeleton_settle(const struct rl_path *skel, const struct rl_load_options *options, __u64 cookie,
		       enum rl_when_full when_full);

/* Take what libbpf says: to stderr if `verbose`, otherwise it only serves error texts. Before any use of libbpf. */
void rl_loader_log(bool verbose);

#endif
