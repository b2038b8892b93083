/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * footprint.h - what the kernel sets aside: memory for so many sources, and the programs' sizes. Nothing of it is a time.
 */
#ifndef BENCH_FOOTPRINT_H
#define BENCH_FOOTPRINT_H

#include <linux/types.h>

#include "../../user/error.h"
#include "scenario.h"

#define FOOTPRINT_SOURCES  10000000
#define FOOTPRINT_PROGRAMS 8

/* Bytes of all maps of a subject with room for so many sources, as the kernel accounts them (memlock in a map's fdinfo): of both
 * families together, but for gcra's, which has one. */
int footprint_memory(enum subject_id id, __u32 sources, __u64 *bytes, struct rl_error *err);

struct footprint_program {
	char name[16];
	__u32 verified;	     /* instructions that the verifier walked through, global functions included */
	__u32 xlated, jited; /* bytes */
};

/* The packet program, those that `reset` and `apply` run, and gcra. Returns how many could be loaded. */
int footprint_programs(struct footprint_program programs[FOOTPRINT_PROGRAMS]);

/* The compiler of all BPF programs: "clang 14.0.6". */
const char *footprint_compiler(char *buf, unsigned int size);

#endif
