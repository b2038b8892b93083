// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "noise.h"

#define WRONG 0.01 /* of the packets */
#define CELL  40

static void read_cpu(char *buf, size_t size)
{
	static const char mark[] = "model name";
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, size, "unknown CPU");
	while (file && fgets(line, sizeof(line), file)) {
		const char *colon = strchr(line, ':');

		if (strncmp(line, mark, strlen(mark)) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(buf, size, "%s", colon + 2);
		break;
	}
	if (file)
		fclose(file);
}

void report_begin(struct report *report, const struct contest_options *options)
{
	struct utsname name;

	report->options = options;
	uname(&name);
	snprintf(report->kernel, sizeof(report->kernel), "Linux %.70s", name.release);
	read_cpu(report->cpu, sizeof(report->cpu));
	footprint_compiler(report->compiler, sizeof(report->compiler));
}

static bool is_limiter(enum subject_id subject)
{
	return subject != SUBJECT_DROP && subject != SUBJECT_SKB;
}

bool result_is_noisy(const struct result *result)
{
	return !result->skipped[0] && (result->noise > NOISE_SPREAD || result->others > NOISE_OTHERS);
}

bool result_is_wrong(const struct result *result)
{
	double right = result->scenario.verdict == PASSING ? result->passed : 1 - result->passed;

	return !result->skipped[0] && is_limiter(result->subject) && right < 1 - WRONG;
}

/* ---- the table ---- */

/* One decimal where it may mean something. */
static int decimals(double ns)
{
	return ns < 100 && ns > -100 ? 1 : 0;
}

static const char *cell(const struct spread *spread, int digits, char buf[CELL])
{
	snprintf(buf, CELL, "%.*f (%.*f to %.*f)", digits, spread->median, digits, spread->low, digits,
		 spread->high);
	return buf;
}

void report_heading(const struct report *report)
{
	printf("%s, %s, %s\n", report->cpu, report->kernel, report->compiler);
	printf("%d rounds; median (quartiles) of differences and ratios within a round; ns per packet\n\n",
	       report->options->rounds);
	printf("%-43s %7s  %-20s  %-20s  %-26s %7s\n", "", "in all", "over XDP_DROP", "over a bare skb",
	       "ratio to", "passed");
}

void report_result(const struct result *result)
{
	char over_drop[CELL] = "", over_skb[CELL] = "", ratio[CELL] = "", to[CELL + 16] = "", passed[16] = "";

	if (result->skipped[0]) {
		printf("%-43s skipped: %s\n", result->name, result->skipped);
		fflush(stdout);
		return;
	}
	if (result->subject != SUBJECT_DROP)
		cell(&result->over_drop, decimals(result->over_drop.median), over_drop);
	if (result->has_skb)
		cell(&result->over_skb, decimals(result->over_skb.median), over_skb);
	if (result->ratio_to)
		snprintf(to, sizeof(to), "%s %s", cell(&result->ratio, 2, ratio), result->ratio_to);
	if (is_limiter(result->subject))
		snprintf(passed, sizeof(passed), "%.1f %%", 100 * result->passed);
	printf("%-43s %7.*f  %-20s  %-20s  %-26s %7s%s\n", result->name, decimals(result->ns.median),
	       result->ns.median, over_drop, over_skb, to, passed, result_is_noisy(result) ? "  noisy" : "");
	fflush(stdout);
}

void report_memory(const struct report_memory *memory)
{
	if (memory->skipped[0])
		printf("memory/%-36s skipped: %s\n", subject_name(memory->subject), memory->skipped);
	else
		printf("memory/%-36s %7.0f  MB for %d sources\n", subject_name(memory->subject),
		       (double)memory->bytes / 1e6, FOOTPRINT_SOURCES);
	fflush(stdout);
}

void report_programs(const struct report *report)
{
	for (int i = 0; i < report->program_count; i++) {
		const struct footprint_program *program = &report->programs[i];

		printf("program/%-35s %7u  instructions verified, %u bytes xlated, %u jited\n", program->name,
		       program->verified, program->xlated, program->jited);
	}
}

/* ---- warnings ---- */

static void warn_noise(const struct report *report)
{
	double noise = 0, others = 0;
	int noisy = 0;

	for (size_t i = 0; i < report->count; i++) {
		const struct result *result = &report->results[i];

		noisy += result_is_noisy(result);
		noise = result->noise > noise ? result->noise : noise;
		others = result->others > others ? result->others : others;
	}
	if (noisy)
		printf(
		    "warning: %d figures are noisy: XDP_DROP's own times spread by up to %.0f %%, and others used "
		    "up to %.0f %% of a CPU meanwhile; above %.0f %% and %.0f %% figures are rough\n",
		    noisy, 100 * noise, 100 * others, 100 * NOISE_SPREAD, 100 * NOISE_OTHERS);
}

static void warn_result(const struct result *result)
{
	if (result_is_wrong(result))
		printf(
		    "warning: %s passed %.1f %% of packets that should be %s: its figures are of something else\n",
		    result->name, 100 * result->passed,
		    result->scenario.verdict == PASSING ? "passing" : "rejected");
	if (!result->skipped[0] && result->lost > REPORT_LOST)
		printf(
		    "warning: %s: %.1f %% of the frames were lost before the device, and their sending is part of the "
		    "cost of the others\n",
		    result->name, 100 * result->lost);
	if (!result->skipped[0] && is_limiter(result->subject) &&
	    result->prefixes < result->scenario.prefixes)
		printf("note: %s: the policy took %u prefixes of %u\n", result->name, result->prefixes,
		       result->scenario.prefixes);
}

void report_warnings(const struct report *report)
{
	printf("\n");
	for (size_t i = 0; i < report->count; i++)
		warn_result(&report->results[i]);
	warn_noise(report);
}
