// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rl_path.bpf.c - the packet path as an object: its maps, and an entry point for each way into the kernel, of which an attached
 * device's program has one (user/loader.c). All of them share what is behind: rl_admit.h.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "access.bpf.h"
#include "rl_admit.h"
#include "rl_merged.h"

const volatile __u32 rl_device_slot; /* the attached device's slot in the per-device maps; set before load */

#include "rl_tc.bpf.h"
#include "rl_xdp.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
