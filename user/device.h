/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.h - a network device of this namespace, by any of its names, and what it can do. Only asks, changes nothing.
 */
#ifndef RL_DEVICE_H
#define RL_DEVICE_H

#include <stdbool.h>
#include "../bpf/rl_abi.h"
#include "error.h"

/* The index of the device that has this name, or this alternative name (Linux 5.5; up to 127 bytes). 0: there is none. */
__u32 rl_device_index(const char *name);

/*
 * A device here is named by its own name: this is it, of the one that has `name` as any of its names; where none has it, `name`
 * itself, which one that is gone may have had. RL_ERROR_USAGE where it is too long for that.
 */
int rl_device_name(const char *name, char out[RL_NAME_LEN], struct rl_error *err);

/* Bytes of its frames behind the Ethernet header, by its own name. 0: there is no such device. */
int rl_device_mtu(const char *name);

enum rl_native {
	RL_NATIVE_UNKNOWN, /* the kernel doesn't tell (before 6.3): attach finds out */
	RL_NATIVE_NO,
	RL_NATIVE_YES,
};

struct rl_device_info {
	__u32 ifindex;
	char name[RL_NAME_LEN]; /* its own, where it was asked for by an alternative one */
	char driver[32];	/* "" where it has none */
	int mtu;
	enum rl_native native;
	bool frags;	  /* native XDP takes frames of several buffers; meaningful with RL_NATIVE_YES */
	__u32 program_id; /* of an XDP program on it, 0: none */
	bool ethernet;	  /* its frames begin with an Ethernet header */
};

/* By any of its names. -ENODEV with RL_ERROR_USAGE where there is no such device. */
int rl_device_read(const char *name, struct rl_device_info *out, struct rl_error *err);

#endif
