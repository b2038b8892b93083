/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe.h - what this kernel can do, found out by trying: tiny programs and maps of our own,
 * never a version number. Nothing is attached and nothing is left behind.
 */
#ifndef RL_PROBE_H
#define RL_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include "../bpf/rl_abi.h"
#include "error.h"

enum rl_probe_id {
	RL_PROBE_PRIVILEGE,
	RL_PROBE_BPFFS,
	RL_PROBE_COOKIE,
	RL_PROBE_XDP,
	RL_PROBE_FRAGS,
	RL_PROBE_CAS,
	RL_PROBE_LPM,
	RL_PROBE_LRU,
	RL_PROBE_JIT,
	RL_PROBES,
};

struct rl_probe {
	const char *name;    /* "xdp" */
	const char *what;    /* what was tried, and since when the kernel has it */
	const char *without; /* what follows where it is missing */
	bool needed;	     /* attach can't do without */
};

/* The table of probes, RL_PROBES long. */
const struct rl_probe *rl_probe_table(void);

/* Try one. */
bool rl_probe_run(enum rl_probe_id id);

#endif
