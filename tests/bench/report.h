/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * report.h - the results, as a table on stdout while they come, and as a JSON file.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>

#include "contest.h"
#include "footprint.h"

struct report_memory {
	enum subject_id subject;
	__u64 bytes;
	char skipped[RESULT_TEXT]; /* as in struct result */
};

struct report {
	const struct contest_options *options;
	struct result *results;
	size_t count;
	struct report_memory memory[SUBJECTS];
	int memories;
	struct footprint_program programs[FOOTPRINT_PROGRAMS];
	int program_count;
	char kernel[80], cpu[80], compiler[80];
};

/* Fill in what the figures were taken with. */
void report_begin(struct report *report, const struct contest_options *options);

void report_heading(const struct report *report);
void report_result(const struct result *result);
void report_memory(const struct report_memory *memory);
void report_programs(const struct report *report);

/* What makes figures rough or wrong, a line each. */
void report_warnings(const struct report *report);

bool result_is_noisy(const struct result *result);

/* Did it let pass what should, and drop what should? */
bool result_is_wrong(const struct result *result);

#define REPORT_LOST 0.001 /* of the frames: above this it is said */

int report_write(const struct report *report, const char *path);

#endif
