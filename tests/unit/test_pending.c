// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reading drops that CPUs have counted for themselves (user/pending.h), over elements in the test's own memory.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "../../user/pending.h"

#define CPUS  3
#define PLACE 1000
#define KEY   77

static struct rl_pending elements[CPUS * RL_CPU_PENDINGS];
static struct rl_pendings pendings;

static struct rl_pending *element_of(int cpu)
{
	return &elements[cpu * RL_CPU_PENDINGS + PLACE % RL_CPU_PENDINGS];
}

static void begin(void)
{
	memset(elements, 0, sizeof(elements));
	pendings.map.base = elements;
	pendings.map.entries = CPUS * RL_CPU_PENDINGS;
	for (int cpu = 0; cpu < CPUS; cpu++)
		*element_of(cpu) = (struct rl_pending){.place = PLACE, .key = KEY, .dropped = {1, 100}};
}

static struct rl_tally added(__u64 place, __u64 key)
{
	struct rl_tally tally = {.dropped = {10, 1000}};

	rl_pendings_add(&pendings, place, key, &tally);
	return tally;
}

Test(pending, all_cpus_are_added)
{
	begin();
	cr_expect_eq(added(PLACE, KEY).dropped.packets, 13);
	cr_expect_eq(added(PLACE, KEY).dropped.bytes, 1300);
	cr_expect_eq(added(PLACE, KEY + 1).dropped.packets, 10, "another source's");
	cr_expect_eq(added(PLACE + RL_CPU_PENDINGS, KEY).dropped.packets, 10, "another place's");
	element_of(1)->key = 0;
	cr_expect_eq(added(PLACE, KEY).dropped.packets, 12, "nobody's");
}

Test(pending, a_look_says_where_something_is)
{
	begin();
	rl_pendings_look(&pendings);
	cr_expect(rl_pendings_seen(&pendings, PLACE));
	cr_expect_not(rl_pendings_seen(&pendings, PLACE + 1));
	for (int cpu = 0; cpu < CPUS; cpu++)
		element_of(cpu)->key = 0;
	rl_pendings_look(&pendings);
	cr_expect_not(rl_pendings_seen(&pendings, PLACE));
}

Test(pending, what_is_read_meanwhile_is_read_again)
{
	struct rl_pendings_reading reading;

	begin();
	reading = rl_pendings_begin(&pendings, PLACE);
	cr_expect_not(rl_pendings_again(&pendings, &reading), "nothing has changed");
	reading = rl_pendings_begin(&pendings, PLACE);
	element_of(2)->turns += 2;
	cr_expect(rl_pendings_again(&pendings, &reading), "it changed hands");
	cr_expect_not(rl_pendings_again(&pendings, &reading));
	elements[PLACE % RL_CPU_PENDINGS + 1].turns += 2;
	cr_expect_not(rl_pendings_again(&pendings, &reading), "another element did");
}

static void *finish(void *element)
{
	struct timespec while_it_lasts = {.tv_nsec = 20000000};

	nanosleep(&while_it_lasts, NULL);
	__atomic_store_n(&((struct rl_pending *)element)->turns, 2, __ATOMIC_SEQ_CST);
	return NULL;
}

/* An element that changes hands at the beginning is waited for; one that does at the end makes the reader read again. */
Test(pending, nothing_is_read_in_the_middle)
{
	struct rl_pendings_reading reading;
	pthread_t other;

	begin();
	element_of(1)->turns = 1;
	cr_assert_eq(pthread_create(&other, NULL, finish, element_of(1)), 0);
	reading = rl_pendings_begin(&pendings, PLACE);
	if (element_of(1)->turns == 2)
		cr_expect_eq(reading.turns, 2);
	pthread_join(other, NULL);
	reading = rl_pendings_begin(&pendings, PLACE);
	element_of(1)->turns = 3;
	cr_expect(rl_pendings_again(&pendings, &reading), "an element changes hands");
}

/* Not even one whose program was killed on the way, which can't be: no reader waits for ever. */
Test(pending, it_ends)
{
	struct rl_pendings_reading reading;
	int times = 0;

	begin();
	element_of(1)->turns = 1;
	reading = rl_pendings_begin(&pendings, PLACE);
	while (rl_pendings_again(&pendings, &reading))
		cr_assert_lt(++times, 10000);
}

static bool is_chosen(const void *context, __u32 id)
{
	return id == *(const __u32 *)context;
}

/* The id of a limit is above a place's number; for a limit's own bucket it is all of the key. */
Test(pending, what_is_forgotten_is_the_limits_own)
{
	__u32 id = 5;

	begin();
	element_of(0)->key = 5ULL << 32 | 1;
	element_of(1)->key = RL_KEY_SIX | 5ULL << 32 | 1;
	element_of(2)->key = 6ULL << 32 | 5;
	elements[0] = (struct rl_pending){.place = RL_PLACE_OWN | 64, .key = 5};
	elements[1] = (struct rl_pending){.place = RL_PLACE_OWN | 65, .key = 6};
	rl_pendings_forget(&pendings, is_chosen, &id);
	cr_expect_eq(element_of(0)->key, 0);
	cr_expect_eq(element_of(1)->key, 0);
	cr_expect_neq(element_of(2)->key, 0);
	cr_expect_eq(elements[0].key, 0);
	cr_expect_eq(elements[1].key, 6);
}
