// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "contest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contestant.h"
#include "noise.h"

#define WARM_UP 10 /* a tenth of the packets before each measurement: caches belong to the one before */

static int open_senders(struct contest *contest, struct rl_error *err)
{
	const struct contest_options *options = contest->options;
	int rc = sender_open(&contest->senders[0], contest->scenario, err);

	rc = rc ?: sender_stay(&contest->senders[0], options->cpu, err);
	if (rc || contest->scenario->compare != TWO_CPUS_TO_1)
		return rc;
	if (options->beside < 0)
		return rl_error_set(err, RL_ERROR_KERNEL, EOPNOTSUPP, "there is one CPU alone to run on");
	return sender_open(&contest->senders[1], contest->scenario, err);
}

/* Whoever can't be made ready is skipped; without XDP_DROP the whole contest is. */
static int open_all(struct contest *contest, struct rl_error *err)
{
	int rc = contest->scenario->drive == DRIVE_VETH ? veth_open(&contest->veth, err) : 0;

	rc = rc ?: open_senders(contest, err);
	for (unsigned int i = 0; !rc && i < SUBJECTS; i++) {
		struct contestant *contestant = &contest->contestants[i];
		int failed;

		if (!(contest->scenario->subjects & 1U << i))
			continue;
		failed = contestant_open(contest, contestant, i, err);
		failed = failed ?: contestant_fill(contest, contestant, err);
		if (failed) {
			snprintf(contestant->skipped, sizeof(contestant->skipped), "%.*s", RESULT_TEXT - 1,
				 err->text);
			contestant_close(contestant);
		}
		if (i == SUBJECT_DROP)
			rc = failed;
	}
	return rc;
}

static void close_all(struct contest *contest)
{
	for (int i = 0; i < SUBJECTS; i++)
		contestant_close(&contest->contestants[i]);
	sender_close(&contest->senders[0]);
	sender_close(&contest->senders[1]);
	veth_close(&contest->veth);
}

static int measure(struct contest *contest, struct contestant *contestant, int round, struct rl_error *err)
{
	__u32 packets = contest->options->packets[contest->scenario->drive];
	int lanes = contest->scenario->compare == OVER_DROP ? 1 : LANES;
	struct sent sent;
	int rc = 0;

	for (int lane = 0; !rc && lane < lanes; lane++) {
		rc = contestant_send(contest, contestant, lane, packets / WARM_UP, &sent, err);
		rc = rc ?: contestant_send(contest, contestant, lane, packets, &sent, err);
		if (!rc && !sent.packets)
			rc = rl_error_set(err, RL_ERROR_KERNEL, EIO, "no frame arrived at %s",
					  subject_name(contestant->subject.id));
		if (!rc)
			contestant->ns[lane][round] = sent.ns / (double)sent.packets;
	}
	return rc;
}

static int count_all(struct contest *contest, struct rl_error *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < SUBJECTS; i++)
		if (contest->contestants[i].there)
			rc = contestant_count(&contest->contestants[i], err);
	return rc;
}

static int measure_all(struct contest *contest, struct rl_error *err)
{
	const struct work *work = &contest->senders[0].work;
	struct noise_mark mark;
	int rc = count_all(contest, err);

	noise_settle(work);
	mark = noise_begin(work);
	for (int round = 0; round < contest->options->rounds; round++) {
		for (int i = 0; !rc && i < SUBJECTS; i++) {
			struct contestant *contestant = &contest->contestants[(i + round) % SUBJECTS];

			if (contestant->there)
				rc = measure(contest, contestant, round, err);
		}
	}
	contest->others = noise_others(&mark, work);
	return rc ?: count_all(contest, err);
}

size_t contest_run(const struct scenario *scenario, const struct contest_options *options,
		   struct result *results)
{
	struct contest *contest = calloc(1, sizeof(*contest));
	struct rl_error err = {};
	size_t count = 0;
	int rc;

	if (!contest)
		return 0;
	*contest = (struct contest){.scenario = scenario,
				    .options = options,
				    .veth = VETH_INIT,
				    .senders = {SENDER_INIT, SENDER_INIT}};
	rc = open_all(contest, &err);
	rc = rc ?: measure_all(contest, &err);
	for (unsigned int i = 0; i < SUBJECTS; i++)
		if (scenario->subjects & 1U << i)
			contest_conclude(contest, i, rc ? err.text : NULL, &results[count++]);
	close_all(contest);
	free(contest);
	return count;
}
