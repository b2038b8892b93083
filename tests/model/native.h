/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * native.h - the packet path (bpf/rl_admit.h), compiled for this processor over arrays instead of maps, as a backend. Its
 * policy is kept by a few lines of its own: what writes real maps is played by run_bpf.c.
 */
#ifndef MODEL_NATIVE_H
#define MODEL_NATIVE_H

#include "play.h"

/* Mistakes to be found, made in copies of what user/limit.c computes, or between it and the packet path. */
enum native_fault {
	FAULT_NONE,
	FAULT_BURST_MORE, /* a bucket holds 2^8 units more: the smallest difference that there is */
	FAULT_BURST_LESS,
	FAULT_COST,	   /* a packet takes 2^8 units more */
	FAULT_BYTE,	   /* a byte takes 2^8 / 2^12 units more */
	FAULT_RESERVE,	   /* nothing is kept from lower priorities */
	FAULT_HISTORY,	   /* the rate before the last change is forgotten */
	FAULT_UNTIL,	   /* the last change was one ns later */
	FAULT_GENERATION,  /* buckets don't notice a change */
	FAULT_INHERITANCE, /* an inner prefix without a tenant has none */
	FAULT_PRIORITY,	   /* a tenant's priority isn't its prefixes' */
	FAULT_OLD_BUCKET,  /* a new limit finds a deleted one's bucket */
	FAULT_CLASS,	   /* a class is one port longer */
	FAULT_COSTS,	   /* of several costs the first counts */
	FAULTS,
};

const char *native_fault_name(enum native_fault fault);

/* There is one, with the state of all: sources in the given store, and this fault. */
struct backend native_backend(enum rl_store store, enum native_fault fault);

#endif
