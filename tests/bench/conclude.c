// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* conclude.c - from the rounds' times to what is told of a subject. */
#include <stdio.h>
#include <string.h>

#include "contestant.h"

/* Of one round, as all that follow; ns. */
static double over(const struct contest *contest, const struct contestant *whose, enum subject_id base,
		   int lane, int round)
{
	return whose->ns[lane][round] - contest->contestants[base].ns[lane][round];
}

static struct spread spread_over(const struct contest *contest, const struct contestant *whose,
				 enum subject_id base, int lane)
{
	double values[ROUNDS_MAX];

	for (int round = 0; round < contest->options->rounds; round++)
		values[round] = over(contest, whose, base, lane, round);
	return spread_of(values, contest->options->rounds);
}

/* Which of ours took part, or XDP_DROP. */
static enum subject_id ours_of(const struct contest *contest)
{
	if (contest->contestants[SUBJECT_TABLE].there)
		return SUBJECT_TABLE;
	return contest->contestants[SUBJECT_LRU].there ? SUBJECT_LRU : SUBJECT_DROP;
}

/* What this one's time for a packet is told as a multiple of. */
static enum subject_id base_of(const struct contest *contest, enum subject_id id)
{
	bool is_limiter = id == SUBJECT_GCRA || id == SUBJECT_HASHLIMIT || id == SUBJECT_NFT;

	return is_limiter ? ours_of(contest) : SUBJECT_DROP;
}

static double ratio_in(const struct contest *contest, const struct contestant *whose, int round)
{
	const struct contestant *drop = &contest->contestants[SUBJECT_DROP];
	double scaling = whose->ns[0][round] / whose->ns[1][round];

	switch (contest->scenario->compare) {
	case NEW_TO_KNOWN:
		return over(contest, whose, SUBJECT_DROP, 1, round) /
		       over(contest, whose, SUBJECT_DROP, 0, round);
	case TWO_CPUS_TO_1:
		return whose == drop ? scaling : scaling / (drop->ns[0][round] / drop->ns[1][round]);
	default:
		return whose->ns[0][round] /
		       contest->contestants[base_of(contest, whose->subject.id)].ns[0][round];
	}
}

static const char *ratio_name(const struct contest *contest, enum subject_id id)
{
	switch (contest->scenario->compare) {
	case NEW_TO_KNOWN:
		return id == SUBJECT_DROP ? NULL : "known";
	case TWO_CPUS_TO_1:
		return id == SUBJECT_DROP ? "one CPU" : "drop's";
	default:
		return id == SUBJECT_DROP ? NULL : subject_name(base_of(contest, id));
	}
}

static void conclude_ratio(const struct contest *contest, enum subject_id id, struct result *out)
{
	double values[ROUNDS_MAX];

	out->ratio_to = ratio_name(contest, id);
	if (!out->ratio_to)
		return;
	for (int round = 0; round < contest->options->rounds; round++)
		values[round] = ratio_in(contest, &contest->contestants[id], round);
	out->ratio = spread_of(values, contest->options->rounds);
}

static void conclude_counts(const struct contestant *whose, struct result *out)
{
	if (whose->received)
		out->passed = 1 - (double)whose->dropped / (double)whose->received;
	if (whose->sent)
		out->lost = 1 - (double)whose->received / (double)whose->sent;
}

void contest_conclude(const struct contest *contest, enum subject_id id, const char *failed,
		      struct result *out)
{
	const struct contestant *whose = &contest->contestants[id];
	const struct contestant *drop = &contest->contestants[SUBJECT_DROP];
	bool behind = id == SUBJECT_HASHLIMIT || id == SUBJECT_NFT;
	int last = contest->scenario->compare == OVER_DROP ? 0 : LANES - 1, rounds = contest->options->rounds;
	struct spread base;

	*out = (struct result){.scenario = *contest->scenario, .subject = id};
	scenario_name(contest->scenario, id, out->name);
	if (failed || !whose->there) {
		snprintf(out->skipped, sizeof(out->skipped), "%.*s", RESULT_TEXT - 1,
			 failed ? failed : whose->skipped);
		return;
	}
	base = spread_of(drop->ns[0], rounds);
	out->prefixes = whose->subject.prefixes;
	out->noise = (base.high - base.low) / base.median;
	out->others = contest->others;
	out->ns = spread_of(whose->ns[last], rounds);
	out->over_drop = spread_over(contest, whose, SUBJECT_DROP, last);
	out->has_skb = behind && contest->contestants[SUBJECT_SKB].there;
	if (out->has_skb)
		out->over_skb = spread_over(contest, whose, SUBJECT_SKB, last);
	conclude_ratio(contest, id, out);
	conclude_counts(whose, out);
}
