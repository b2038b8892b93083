/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * contest.h - measures one scenario: all its subjects are made ready, and get a packet of each source; then each round sends to
 * each of them once, beginning with another one each time. So what drifts hits all alike, and every figure is a difference or a
 * ratio within a round; what is told is its median over the rounds, and the quartiles.
 */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include "scenario.h"
#include "spread.h"

struct contest_options {
	int rounds;	  /* ROUNDS_MIN to ROUNDS_MAX */
	__u32 packets[2]; /* of each measurement, by enum drive */
	int cpu;
	int beside; /* another one; -1: there is none */
};

#define RESULT_TEXT 320

struct result {
	char name[SCENARIO_NAME];
	struct scenario scenario;
	enum subject_id subject;
	char skipped[RESULT_TEXT]; /* why nothing was measured; "": it was */
	__u32 prefixes;		   /* that the policy had */
	struct spread ns;	   /* a packet, in all */
	struct spread over_drop;   /* ns over XDP_DROP, 0 for itself */
	struct spread over_skb; /* ns over SUBJECT_SKB: a filter's own; not where it stands before an skb */
	struct spread ratio;	/* as `ratio_to` says */
	const char *ratio_to;	/* "drop", "table", ...; NULL: none */
	bool has_skb;
	double passed, lost; /* shares of the packets; lost ones came to no program */
	double noise;	     /* spread of XDP_DROP's own times */
	double others;	     /* of one CPU, that others used meanwhile */
};

/* results: room for SUBJECTS of them. Returns how many: what could not be measured is skipped, with the reason. */
size_t contest_run(const struct scenario *scenario, const struct contest_options *options,
		   struct result *results);

#endif
