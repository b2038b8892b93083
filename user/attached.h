/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attached.h - what is attached: the devices' map and the pinned links, read together.
 */
#ifndef RL_ATTACHED_H
#define RL_ATTACHED_H

#include "state.h"

/* Where an attached device is. A link knows its device's index, but not in which network namespace that is. */
enum rl_whereabouts {
	RL_HERE,  /* a device of the state's own network namespace runs the link's program */
	RL_MOVED, /* the link is on a device, but of another namespace: it was moved there */
	RL_GONE,  /* the device is gone */
};

const char *rl_whereabouts_name(enum rl_whereabouts where); /* "here", "moved", "gone" */

/* What is attached: one entry for each taken slot of rl_devices. */
struct rl_attached {
	__u32 slot;
	struct rl_device device;
	char name
	    [RL_NAME_LEN]; /* present name where it is here, otherwise the one that it had when it was attached */
	enum rl_whereabouts where;
	__u32 link_id;
	__u32 program_id;
	__u32 ifindex; /* in its own namespace; 0 where the device is gone */
};

/*
 * out has room for RL_MAX_DEVICES. `own`: the state is that of the calling process's network namespace, so its devices
 * can be asked. Another's can't: a device that isn't gone then counts as here, under the name that it had.
 */
int rl_state_attached(const struct rl_state *state, bool own, struct rl_attached *out, size_t *count,
		      struct rl_error *err);

/* The one that `name` means: a device here by any of its names, otherwise a recorded name. NULL: none. */
const struct rl_attached *rl_attached_find(const struct rl_attached *attached, size_t count,
					   const char *name);

/* The target `dev:NAME` by the name that the device has at present. RL_ERROR_USAGE where none of these is called so, or it
 * is gone: a limit would hold nothing, and nobody would notice. */
int rl_attached_resolve(const struct rl_attached *attached, size_t count, struct rl_target *target,
			struct rl_error *err);

/* The target "dev:NAME" by the device's own name, where NAME is another one of it and no limit is called so. */
void rl_attached_target(const struct rl_state *state, struct rl_target *target);

/* Write the record of a device. Under the lock. */
int rl_attached_write(const struct rl_state *state, __u32 slot, const struct rl_device *device,
		      struct rl_error *err);

/*
 * Records of devices that were renamed since get the present name, and the limit that goes with it: "dev:eth0" is for the
 * device that is called so. A limit that one loses or gets by that is told on stderr, here and now: the next command doesn't
 * notice any more. Under the lock, after devices or their limits were changed: a command that is refused moves no limit.
 */
int rl_attached_rename(const struct rl_state *state, struct rl_error *err);

/* To stderr, where no device is attached: a policy can be kept without one, and a limit then waits. */
void rl_attached_warn_none(const struct rl_state *state);

/*
 * A device that was attached just now: where it has no limit of its own, but one waits for a device of a name that none
 * attached has, as when this one was called so before, that is told on stderr.
 */
void rl_attached_tell_idle(const struct rl_state *state, const char *name);

#endif
