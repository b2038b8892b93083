/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf.h - the real program in the kernel, a packet a BPF_PROG_TEST_RUN, its policy written by user/policy.c, its counters
 * read as the agent's commands read them: as a backend.
 */
#ifndef MODEL_BPF_H
#define MODEL_BPF_H

#include "play.h"

/* There is one, with the state of all: sources in the given store. Exits where the kernel refuses. */
struct backend bpf_backend(enum rl_store store);

#endif
