// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench.c - what a packet costs, ours and others', by the number of sources, the policy and the verdict (scenario.c).
 *
 * Two ways to send. `run`: the program alone, by BPF_PROG_TEST_RUN. `veth`: real frames into a veth, whose other end is in
 * another network namespace; sender and receiver share one CPU, and the time is what that CPU worked for a frame that the device
 * took in, sending included. Each packet's source is picked at random.
 *
 * Every figure is a difference or a ratio of two times within one round (contest.h). The common base is a bare XDP_DROP.
 *
 * What passes ends where what drops does, so that nobody's network stack is measured. An XDP limiter is built a second time for
 * the veth, with XDP_DROP for every verdict (dropping.bpf.c); with `run` a verdict has no effect anyhow. Behind a packet filter's
 * limit stands a rule that drops the rest.
 *
 * An XDP limiter decides before the kernel makes an skb of the frame, a filter after it. For frames that are rejected that is the
 * difference between them; one that passes takes an skb either way. So a filter's cost is told twice: over XDP_DROP, and over
 * `skb`, the same way to the same place without a limiter. Among passing frames the latter compares with an XDP limiter's cost
 * over XDP_DROP.
 */
#include <errno.h>
#include <popt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/loader.h"
#include "report.h"
#include "traffic.h"
#include "work.h"

#define ROUNDS	     9
#define PACKETS	     500000 /* of each measurement: of the program alone, */
#define FRAMES	     200000 /* and over veth */
#define QUICK	     20000
#define PREFIXES_MAX (1U << 20)

struct request {
	struct scenario_choice choice;
	struct contest_options options;
	char *json, *only, *sources, *prefixes;
	int quick, lru, list, verbose, rounds;
};

static int complain(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	return -1;
}

/* "1,16384,1048576" into at most eight numbers, behind them a 0. */
static int parse_list(const char *text, const char *what, __u32 most, __u32 out[9])
{
	char *end = NULL;

	memset(out, 0, 9 * sizeof(*out));
	for (int i = 0; i < 8; i++) {
		unsigned long value = strtoul(text, &end, 10);

		if (end == text || !value || value > most || (*end && *end != ','))
			break;
		out[i] = (__u32)value;
		if (!*end)
			return 0;
		text = end + 1;
	}
	fprintf(stderr,
		"bench: %s takes up to eight whole numbers from 1 to %u with commas between: \"%s\"\n", what,
		most, text);
	return -1;
}

static int parse_words(struct request *request, int argc, const char **argv)
{
	struct poptOption options[] = {
	    {"json", 0, POPT_ARG_STRING, &request->json, 0, "where the figures go, build/bench.json", "FILE"},
	    {"only", 0, POPT_ARG_STRING, &request->only, 0, "what matches this (extended regular expression)",
	     "REGEX"},
	    {"list", 0, POPT_ARG_NONE, &request->list, 0, "name what would be measured", NULL},
	    {"quick", 0, POPT_ARG_NONE, &request->quick, 0,
	     "few packets and sources: to see that it works, not to compare", NULL},
	    {"lru", 0, POPT_ARG_NONE, &request->lru, 0, "ours with the store `lru` instead of `table`", NULL},
	    {"sources", 0, POPT_ARG_STRING, &request->sources, 0, "1,16384,1048576,16777216", "LIST"},
	    {"prefixes", 0, POPT_ARG_STRING, &request->prefixes, 0, "1,1048576", "LIST"},
	    {"rounds", 0, POPT_ARG_INT, &request->rounds, 0, "7 to 63; 9", "N"},
	    {"verbose", 0, POPT_ARG_NONE, &request->verbose, 0, "what libbpf says, too", NULL},
	    POPT_AUTOHELP POPT_TABLEEND};
	poptContext context = poptGetContext("bench", argc, argv, options, 0);
	int rc = poptGetNextOpt(context), bad = rc < -1 || poptPeekArg(context);

	if (rc < -1)
		fprintf(stderr, "bench: %s: %s\n", poptBadOption(context, 0), poptStrerror(rc));
	else if (bad)
		complain("takes options alone; --help names them");
	poptFreeContext(context);
	return bad ? -1 : 0;
}

static int parse(struct request *request, int argc, const char **argv)
{
	const char *sources, *prefixes;

	if (parse_words(request, argc, argv))
		return -1;
	sources = request->sources ? request->sources
		  : request->quick ? "1,16384"
				   : "1,16384,1048576,16777216";
	prefixes = request->prefixes ? request->prefixes : request->quick ? "1,1024" : "1,1048576";
	if (parse_list(sources, "--sources", TRAFFIC_MAX, request->choice.sources) ||
	    parse_list(prefixes, "--prefixes", PREFIXES_MAX, request->choice.prefixes))
		return -1;
	if (request->rounds < ROUNDS_MIN || request->rounds > ROUNDS_MAX)
		return complain("--rounds takes 7 to 63");
	request->choice.lru = request->lru;
	request->choice.only = request->only;
	request->options = (struct contest_options){
	    .rounds = request->rounds,
	    .packets = {request->quick ? QUICK : PACKETS, request->quick ? QUICK : FRAMES},
	    .cpu = work_cpu(),
	};
	request->options.beside = work_cpu_beside(request->options.cpu);
	return 0;
}

/* ---- run ---- */

static const enum subject_id remembering[] = {SUBJECT_TABLE, SUBJECT_LRU, SUBJECT_GCRA};
#define REMEMBERING (sizeof(remembering) / sizeof(remembering[0]))

static const char *memory_name(enum subject_id subject, char buf[SCENARIO_NAME])
{
	snprintf(buf, SCENARIO_NAME, "memory/%s", subject_name(subject));
	return buf;
}

static void measure_memory(const struct request *request, struct report *report)
{
	char name[SCENARIO_NAME];

	for (size_t i = 0; i < REMEMBERING; i++) {
		struct report_memory *memory = &report->memory[report->memories];
		struct rl_error err;

		if (!scenario_wants(&request->choice, memory_name(remembering[i], name)))
			continue;
		memory->subject = remembering[i];
		if (footprint_memory(memory->subject, FOOTPRINT_SOURCES, &memory->bytes, &err))
			snprintf(memory->skipped, sizeof(memory->skipped), "%.*s", RESULT_TEXT - 1, err.text);
		report_memory(memory);
		report->memories++;
	}
}

static int measure(const struct request *request, const struct scenario *scenarios, size_t count)
{
	struct report report = {};
	int rc;

	report.results = calloc(count * SUBJECTS + 1, sizeof(*report.results));
	if (!report.results)
		return complain("out of memory");
	report_begin(&report, &request->options);
	report_heading(&report);
	for (size_t i = 0; i < count; i++) {
		struct result *results = &report.results[report.count];
		size_t more = contest_run(&scenarios[i], &request->options, results);

		for (size_t j = 0; j < more; j++)
			report_result(&results[j]);
		report.count += more;
	}
	measure_memory(request, &report);
	if (scenario_wants(&request->choice, "program"))
		report.program_count = footprint_programs(report.programs);
	report_programs(&report);
	report_warnings(&report);
	rc = report_write(&report, request->json);
	if (rc)
		fprintf(stderr, "bench: can't write %s\n", request->json);
	free(report.results);
	return rc;
}

/* Better before than after all was measured. */
static int can_write(const char *path)
{
	FILE *file = fopen(path, "ae");

	if (!file) {
		fprintf(stderr, "bench: can't write %s: %s\n", path, strerror(errno));
		return 0;
	}
	fclose(file);
	return 1;
}

static int wants_anything(const struct request *request, size_t scenarios)
{
	char name[SCENARIO_NAME];

	for (size_t i = 0; i < REMEMBERING; i++)
		if (scenario_wants(&request->choice, memory_name(remembering[i], name)))
			return 1;
	return scenarios || scenario_wants(&request->choice, "program");
}

static void list(const struct request *request, const struct scenario *scenarios, size_t count)
{
	char name[SCENARIO_NAME];

	for (size_t i = 0; i < count; i++)
		for (unsigned int j = 0; j < SUBJECTS; j++)
			if (scenarios[i].subjects & 1U << j)
				printf("%s\n", scenario_name(&scenarios[i], j, name));
	for (size_t i = 0; i < REMEMBERING; i++)
		if (scenario_wants(&request->choice, memory_name(remembering[i], name)))
			printf("%s\n", name);
	if (scenario_wants(&request->choice, "program"))
		printf("program\n");
}

int main(int argc, const char **argv)
{
	static char default_json[] = "build/bench.json";
	struct request request = {.json = default_json, .rounds = ROUNDS};
	struct scenario *scenarios = NULL;
	size_t count = 0;
	int rc = 0;

	if (parse(&request, argc, argv))
		return 1;
	if (scenarios_make(&request.choice, &scenarios, &count)) {
		complain("--only takes an extended regular expression");
		return 1;
	}
	if (!wants_anything(&request, count)) {
		complain("nothing has a name that --only matches: --list shows them");
		free(scenarios);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN); /* a program that we write to may end early, and then says why */
	rl_loader_log(request.verbose);
	if (request.list)
		list(&request, scenarios, count);
	else
		rc = can_write(request.json) ? measure(&request, scenarios, count) : -1;
	free(scenarios);
	return rc ? 2 : 0;
}
