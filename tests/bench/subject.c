// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "subject.h"

static int open_drop(struct subject *subject, struct rl_error *err)
{
	(void)subject, (void)err; /* whoever sends has the program */
	return 0;
}

static const struct subject_kind subject_drop = {.open = open_drop};

static const struct subject_kind *const kinds[SUBJECTS] = {
    [SUBJECT_DROP] = &subject_drop, [SUBJECT_TABLE] = &subject_ours, [SUBJECT_LRU] = &subject_ours,
    [SUBJECT_GCRA] = &subject_gcra, [SUBJECT_SKB] = &subject_skb,    [SUBJECT_HASHLIMIT] = &subject_hashlimit,
    [SUBJECT_NFT] = &subject_nft,
};

int subject_open(enum subject_id id, const struct scenario *scenario, int netns, struct subject *out,
		 struct rl_error *err)
{
	struct subject subject = {.kind = kinds[id],
				  .id = id,
				  .scenario = scenario,
				  .netns = netns,
				  .program = -1,
				  .prefixes = scenario->prefixes};
	int rc = subject.kind->open(&subject, err);

	if (rc) {
		subject_close(&subject);
		return rc;
	}
	*out = subject;
	return 0;
}

void subject_close(struct subject *subject)
{
	if (subject->kind && subject->kind->close)
		subject->kind->close(subject);
	*subject = (struct subject){.netns = -1, .program = -1};
}
