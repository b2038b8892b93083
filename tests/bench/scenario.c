// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "scenario.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define K 1024U
#define M (1024U * 1024U)

#define COUNT 16 /* bytes of a number's text */

#define DROP	(1U << SUBJECT_DROP)
#define OURS	(1U << SUBJECT_TABLE)
#define GCRA	(1U << SUBJECT_GCRA)
#define XDP	(OURS | GCRA)
#define FILTERS (1U << SUBJECT_HASHLIMIT | 1U << SUBJECT_NFT)
#define EVERY	(XDP | 1U << SUBJECT_SKB | FILTERS)

enum pick {
	EACH,	 /* of the numbers of sources that were asked for and lie in the row's range */
	LARGEST, /* of them */
};

enum prefixes {
	ONE,  /* `any` alone */
	MANY, /* every number of them that was asked for, above 1 */
};

struct row {
	enum drive drive;
	__u8 family;
	enum pick pick; /* sources */
	__u32 most;
	enum prefixes prefixes;
	enum levels levels;
	enum verdict verdict;
	enum compare compare;
	unsigned int subjects; /* but XDP_DROP, which is always there */
};

static const struct row rows[] = {
    {DRIVE_RUN, 4, EACH, 16 * M, ONE, LEVELS_SOURCE, PASSING, OVER_DROP, XDP},
    {DRIVE_RUN, 4, EACH, 1 * M, ONE, LEVELS_SOURCE, REJECTED, OVER_DROP, XDP},
    {DRIVE_RUN, 6, EACH, 16 * M, ONE, LEVELS_SOURCE, PASSING, OVER_DROP, XDP},
    {DRIVE_RUN, 6, EACH, 1 * M, ONE, LEVELS_SOURCE, REJECTED, OVER_DROP, XDP},
    {DRIVE_RUN, 4, EACH, 1 * M, ONE, LEVELS_ALL, PASSING, OVER_DROP, OURS},
    {DRIVE_RUN, 6, EACH, 1 * M, ONE, LEVELS_ALL, PASSING, OVER_DROP, OURS},
    {DRIVE_RUN, 4, LARGEST, 1 * M, MANY, LEVELS_SOURCE, PASSING, OVER_DROP, OURS},
    {DRIVE_RUN, 6, LARGEST, 1 * M, MANY, LEVELS_SOURCE, PASSING, OVER_DROP, OURS},
    {DRIVE_RUN, 4, LARGEST, 1 * M, MANY, LEVELS_ALL, PASSING, OVER_DROP, OURS},

    {DRIVE_VETH, 4, EACH, 16 * M, ONE, LEVELS_SOURCE, PASSING, OVER_DROP, EVERY},
    {DRIVE_VETH, 4, EACH, 1 * M, ONE, LEVELS_SOURCE, REJECTED, OVER_DROP, EVERY},
    {DRIVE_VETH, 6, EACH, 1 * M, ONE, LEVELS_SOURCE, PASSING, OVER_DROP, EVERY},
    {DRIVE_VETH, 6, LARGEST, 1 * M, ONE, LEVELS_SOURCE, REJECTED, OVER_DROP, EVERY},
    {DRIVE_VETH, 4, LARGEST, 1 * M, MANY, LEVELS_ALL, PASSING, OVER_DROP, OURS},

    {DRIVE_RUN, 4, LARGEST, 1 * M, ONE, LEVELS_SOURCE, PASSING, NEW_TO_KNOWN, XDP},
    {DRIVE_RUN, 6, LARGEST, 1 * M, ONE, LEVELS_SOURCE, PASSING, NEW_TO_KNOWN, XDP},
    {DRIVE_RUN, 4, LARGEST, 16 * K, ONE, LEVELS_ALL, PASSING, TWO_CPUS_TO_1, OURS},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *const names[SUBJECTS] = {"drop", "table", "lru", "gcra", "skb", "hashlimit", "nft"};

const char *subject_name(enum subject_id subject)
{
	return names[subject];
}

/* 16384 is 16Ki. */
static const char *print_count(__u32 count, char buf[COUNT])
{
	if (count % M == 0)
		snprintf(buf, COUNT, "%uMi", count / M);
	else if (count % K == 0)
		snprintf(buf, COUNT, "%uKi", count / K);
	else
		snprintf(buf, COUNT, "%u", count);
	return buf;
}

const char *scenario_name(const struct scenario *scenario, enum subject_id subject, char buf[SCENARIO_NAME])
{
	static const char *const comparisons[] = {"", "/new", "/2cpus"};

	char sources[COUNT], prefixes[COUNT];

	snprintf(buf, SCENARIO_NAME, "%s/ip%u/%s/%s/p%s/%s/%s%s",
		 scenario->drive == DRIVE_RUN ? "run" : "veth", scenario->family, subject_name(subject),
		 print_count(scenario->sources, sources), print_count(scenario->prefixes, prefixes),
		 scenario->levels == LEVELS_SOURCE ? "source" : "levels",
		 scenario->verdict == PASSING ? "passing" : "rejected", comparisons[scenario->compare]);
	return buf;
}

bool scenario_wants(const struct scenario_choice *choice, const char *name)
{
	regex_t only;
	bool wanted;

	if (!choice->only)
		return true;
	if (regcomp(&only, choice->only, REG_EXTENDED | REG_NOSUB))
		return false;
	wanted = !regexec(&only, name, 0, NULL, 0);
	regfree(&only);
	return wanted;
}

/* What others are compared with: XDP_DROP, a filter with `skb`, and other limiters with ours. */
static unsigned int bases_of(unsigned int wanted)
{
	unsigned int bases = DROP;

	if (wanted & FILTERS)
		bases |= 1U << SUBJECT_SKB;
	if (wanted & (FILTERS | GCRA))
		bases |= OURS | 1U << SUBJECT_LRU;
	return bases;
}

/* The subjects whose names are wanted, and what they are compared with; 0 where there are none. */
static unsigned int subjects_of(const struct scenario_choice *choice, const struct scenario *scenario)
{
	unsigned int all = scenario->subjects, wanted = 0;
	char name[SCENARIO_NAME];

	if (choice->lru && (all & OURS))
		all = (all & ~OURS) | 1U << SUBJECT_LRU;
	for (unsigned int i = 0; i < SUBJECTS; i++)
		if ((all & 1U << i) && scenario_wants(choice, scenario_name(scenario, i, name)))
			wanted |= 1U << i;
	return wanted ? wanted | (bases_of(wanted) & (all | DROP)) : 0;
}

struct list {
	const struct scenario_choice *choice;
	struct scenario *at; /* NULL: only count */
	size_t count;
};

static void add(struct list *list, const struct row *row, __u32 sources, __u32 prefixes)
{
	struct scenario scenario = {.drive = row->drive,
				    .family = row->family,
				    .sources = sources,
				    .prefixes = prefixes,
				    .levels = row->levels,
				    .verdict = row->verdict,
				    .compare = row->compare,
				    .subjects = row->subjects};

	scenario.subjects = subjects_of(list->choice, &scenario);
	if (!scenario.subjects)
		return;
	if (list->at)
		list->at[list->count] = scenario;
	list->count++;
}

static void add_prefixes(struct list *list, const struct row *row, __u32 sources)
{
	const __u32 *prefixes = list->choice->prefixes;

	if (row->prefixes == ONE)
		add(list, row, sources, 1);
	for (int i = 0; row->prefixes == MANY && prefixes[i]; i++)
		if (prefixes[i] > 1)
			add(list, row, sources, prefixes[i]);
}

static void add_row(struct list *list, const struct row *row)
{
	const __u32 *sources = list->choice->sources;
	__u32 largest = 0;

	for (int i = 0; sources[i]; i++) {
		if (sources[i] > row->most)
			continue;
		if (row->pick == EACH)
			add_prefixes(list, row, sources[i]);
		else if (sources[i] > largest)
			largest = sources[i];
	}
	if (largest)
		add_prefixes(list, row, largest);
}

int scenarios_make(const struct scenario_choice *choice, struct scenario **out, size_t *count)
{
	struct list list = {.choice = choice};
	regex_t only;

	if (choice->only) {
		if (regcomp(&only, choice->only, REG_EXTENDED | REG_NOSUB))
			return -EINVAL;
		regfree(&only);
	}
	for (size_t i = 0; i < ROWS; i++)
		add_row(&list, &rows[i]);
	list.at = calloc(list.count + 1, sizeof(*list.at));
	if (!list.at)
		return -ENOMEM;
	list.count = 0;
	for (size_t i = 0; i < ROWS; i++)
		add_row(&list, &rows[i]);
	*out = list.at;
	*count = list.count;
	return 0;
}
