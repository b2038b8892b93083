/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scenarios.h - races, one a scenario: what the world is like, what its CPUs do, and what must hold whatever their order.
 */
#ifndef INTERLEAVE_SCENARIOS_H
#define INTERLEAVE_SCENARIOS_H

#include "world.h"

struct scenario {
	const char *name;
	const char *claim;
	__u8 family;
	__u8 paths;	 /* enum world_path, as bits */
	bool counts;	 /* tallies are of interest: no packet reads them, so elsewhere they are no points */
	int preemptions; /* up to so many, in every order */
	void (*policy)(void);
	void (*prepare)(void); /* after world_begin() */
	int cpus;
	void (*run)(int cpu);
	bool (*check)(char text[SCHEDULE_TEXT]);
};

extern const struct scenario scenarios[];
extern const int scenarios_count;

#endif
