// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * run.c - the packet path on two or three simulated CPUs, in every order.
 *
 *     interleave [SCENARIO]       each race of scenarios.c, or one; "idle", or "idle/fast": on one path alone
 *
 * What is explored: schedule.h. Up to two preemptions, or three where that is still quick; one more with RL_LONG=1 in the
 * environment; then random orders, from a seed that is the same each time. Each scenario is also given the packet path with
 * a mistake (mutants.def), and has to find it: on each of its paths (world.h), or on the one that the mistake is said for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios.h"

#define SEED	    20261130ULL
#define RANDOM	    5000ULL /* random orders */
#define RANDOM_LONG 500000ULL

#define MUTANT(name, scenario, what) extern const struct subject subject_##name;
extern const struct subject subject_true;
#include "mutants.def"
#undef MUTANT

#define MUTANT(name, scenario, what) {&subject_##name, scenario, what},
static const struct {
	const struct subject *subject;
	const char *scenario, *what;
} mutants[] = {
#include "mutants.def"
};
#undef MUTANT
#define MUTANTS (sizeof(mutants) / sizeof(mutants[0]))

static const char *const path_names[PATHS] = {"general", "fast"};

static const struct scenario *at_hand;

static void prepare(void)
{
	world_begin();
	at_hand->prepare();
}

static bool is_long(void)
{
	const char *text = getenv("RL_LONG");

	return text && !strcmp(text, "1");
}

/* Is this the scenario's name, or its name on this path? */
static bool is_named(const char *name, const struct scenario *scenario, enum world_path path)
{
	size_t len = strlen(scenario->name);

	return !strncmp(name, scenario->name, len) &&
	       (!name[len] || (name[len] == '/' && !strcmp(name + len + 1, path_names[path])));
}

static struct schedule_result explore(const struct scenario *scenario, enum world_path path,
				      const struct subject *subject, bool verbose)
{
	const struct schedule_case what = {
	    .cpus = scenario->cpus,
	    .prepare = prepare,
	    .run = scenario->run,
	    .check = scenario->check,
	    .describe = world_describe,
	    .shared = &world,
	    .size = sizeof(world),
	    .apart = scenario->counts ? NULL : world_is_tally,
	};

	at_hand = scenario;
	world_open(scenario->family, path, subject);
	scenario->policy();
	return schedule_explore(&what, scenario->preemptions + is_long(), is_long() ? RANDOM_LONG : RANDOM,
				SEED, verbose);
}

/* Its mistakes are found. How many aren't, or -1 where none is known, which is a mistake of its own. */
static int find_mutants(const struct scenario *scenario, enum world_path path)
{
	int missed = 0, known = 0;

	for (size_t i = 0; i < MUTANTS; i++) {
		struct schedule_result result;

		if (!is_named(mutants[i].scenario, scenario, path))
			continue;
		known++;
		result = explore(scenario, path, mutants[i].subject, false);
		missed += !result.broken;
		printf("    %s after %llu orders: %s\n", result.broken ? "found" : "NOT FOUND", result.runs,
		       mutants[i].what);
	}
	return known ? missed : -1;
}

static bool try_scenario(const struct scenario *scenario, enum world_path path)
{
	struct schedule_result result = explore(scenario, path, &subject_true, true);
	bool went = path != PATH_FAST || world_fast;
	int missed;

	printf("%s %s/%s: %s: %llu orders of up to %u points\n", result.broken ? "FAIL" : "PASS",
	       scenario->name, path_names[path], scenario->claim, result.runs, result.points);
	if (!went)
		printf("FAIL %s: no packet is judged on the fast path\n", scenario->name);
	missed = find_mutants(scenario, path);
	if (missed)
		printf("FAIL %s: a mistake isn't found, or there is none that it is known to find\n",
		       scenario->name);
	fflush(stdout);
	return !result.broken && went && !missed;
}

int main(int argc, char **argv)
{
	int tried = 0, failed = 0;

	printf("seed %llu\n", SEED);
	for (int i = 0; i < scenarios_count; i++) {
		for (enum world_path path = PATH_GENERAL; path < PATHS; path++) {
			if (!(scenarios[i].paths & 1U << path) ||
			    (argc > 1 && !is_named(argv[1], &scenarios[i], path)))
				continue;
			tried++;
			failed += !try_scenario(&scenarios[i], path);
		}
	}
	if (!tried)
		fprintf(stderr, "usage: %s [SCENARIO]\n", argv[0]);
	return failed || !tried;
}
