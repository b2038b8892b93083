/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stories.h - what the tests of levels, classes, shadow and the rest have in common: each story is told for
 * both families, and for both stores where the sources fit; and a ledger shows what a packet was charged, and
 * where.
 */
#ifndef RL_STORIES_H
#define RL_STORIES_H

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "fixture.h"

/*
 * A test that runs for each store, in a process of its own: *store says which. A macro, since it declares
 * functions.
 */
#define StoreTest(suite, name)                                                                               \
	ParameterizedTestParameters(suite, name)                                                             \
	{                                                                                                    \
		static enum rl_store stores[RL_STORES] = {RL_STORE_TABLE, RL_STORE_LRU};                     \
		return cr_make_param_array(enum rl_store, stores, RL_STORES);                                \
	}                                                                                                    \
	ParameterizedTest(enum rl_store *store, suite, name)

struct fixture story_open(enum rl_store store);

#define STORY_DEVICE "dev:fixture0"
#define STORY_LEN    80 /* bytes of a plain frame here, whatever it carries, of either family */

struct family {
	__u8 family;
	const char *target;  /* with many sources */
	const char *source;  /* one of them */
	const char *other;   /* another one */
	const char *host;    /* `source` as a target */
	const char *outside; /* a source of no target here */
};

extern const struct family families[2];

/* Of either family: two sources of one /24 or /48, and one of the next. */
extern const char *const story_neighbours[2][3];

bool story_has_bucket(const struct fixture *fx, const struct rl_limit *limit, const char *source);

/* Send a plain frame from `source`, and assert its reason and its limit, as fixture_expect does. */
#define story_expect(fx, source, reason, limit) story_expect_at(__LINE__, fx, source, reason, limit)
void story_expect_at(int line, struct fixture *fx, const char *source, enum rl_reason reason,
		     const struct rl_limit *limit);

/* The same n times, at one instant. */
#define story_repeat(fx, source, n, reason, limit) story_repeat_at(__LINE__, fx, source, n, reason, limit)
void story_repeat_at(int line, struct fixture *fx, const char *source, int n, enum rl_reason reason,
		     const struct rl_limit *limit);

/* Assert what a limit counted in all, its frames having been of STORY_LEN bytes. */
#define story_counted(fx, limit, passed, dropped, shadow)                                                    \
	story_counted_at(__LINE__, fx, limit, passed, dropped, shadow)
void story_counted_at(int line, const struct fixture *fx, const struct rl_limit *limit, __u64 passed,
		      __u64 dropped, __u64 shadow);

/* What the device counted under a reason, in packets. */
__u64 story_reason(const struct fixture *fx, enum rl_reason reason);

/*
 * Buckets as they were at one moment, of limits and of one source under them. The clock must stand still from
 * then on, and each bucket owe something: a full one's word says only that it is full.
 */
#define LEDGER_MAX 12
struct ledger {
	struct fixture *fx;
	const char *source;
	int count;
	struct rl_limit limit[LEDGER_MAX];
	struct rl_buckets before[LEDGER_MAX];
};

/* Limits up to a NULL. Each must have a bucket for the source. */
struct ledger ledger_open(struct fixture *fx, const char *source, ...) __attribute__((sentinel));

/* Assert that nothing was charged anywhere. */
#define ledger_same(ledger) ledger_same_at(__LINE__, ledger)
void ledger_same_at(int line, const struct ledger *ledger);

/*
 * Assert what was charged to the limit `at` this place in the ledger's list; a unit that it doesn't have
 * isn't looked at.
 */
#define ledger_charged(ledger, at, packets, bytes) ledger_charged_at(__LINE__, ledger, at, packets, bytes)
void ledger_charged_at(int line, const struct ledger *ledger, int at, __u64 packets, __u64 bytes);

#endif
