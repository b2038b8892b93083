/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hook.h - where on a device a packet program sits: XDP, TCX, or a filter of clsact, and what of that is pinned as the device's.
 *
 * XDP and TCX are links (Linux 5.9, 6.6): the pin is the link, and without it the program is off the device. clsact knows none: the
 * pin is the program, made before the filter, so that a filter without a pin is never ours; and the filter has to be removed.
 */
#ifndef RL_HOOK_H
#define RL_HOOK_H

#include "attached.h"

const char *rl_hook_name(enum rl_hook hook); /* "xdp", "tcx", "clsact" */

/* Does this kernel have TCX? Found out by trying, on no device. */
bool rl_hook_has_tcx(void);

/*
 * Put the program on the device: its ifindex, mode and hook say where. A negative errno where the kernel refuses; *pinned is
 * false where it was the pin that failed. Nothing is left behind then.
 */
int rl_hook_attach(int program_fd, const struct rl_device *device, const char *pin, bool *pinned);

/* The program in the place of the one that is there: no packet is seen by neither or both. A negative errno. */
int rl_hook_replace(int program_fd, const struct rl_device *device, const char *pin);

/*
 * What runs there: fills in link_id, program_id, ifindex and where of *out, whose device is given. `own`: as in
 * rl_state_attached(). False where nothing is pinned.
 */
bool rl_hook_read(const char *pin, bool own, struct rl_attached *out);

/* Take the program off the device at once, not whenever the kernel drops the last reference, and remove the pin. A negative errno
 * where that stays. */
int rl_hook_detach(const char *pin);

#endif
