/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * explains.h - a policy made by hand and a packet that explain is asked about, with buckets charged as the packet path does.
 */
#ifndef EXPLAINS_H
#define EXPLAINS_H

#include <criterion/criterion.h>

#include "limits.h"
#include "random.h"
#include "snapshots.h"
#include "../../user/explain.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SEED	     20240609ULL
#define MS	     1000000ULL
#define SECOND	     (1000 * MS)
#define START	     LIMITS_START
#define NOW	     (START + 5 * SECOND)

/* What rl_bucket.h asks of who includes it; read for refunds alone. */
static inline __u64 rl_now(void)
{
	return NOW;
}

#include "../../bpf/rl_bucket.h"

/* A policy of at most so many limits, two devices, and the packet that is asked about. */
static struct {
	struct rl_limit_stats limits[16];
	struct rl_device_stats devices[2];
	struct rl_snapshot snapshot;
	struct rl_explain explain;
} world;

static inline void begin_policy(void)
{
	memset(&world, 0, sizeof(world));
	world.devices[0] = test_device("eth0", 0, 0, 0);
	world.devices[1] = test_device("eth1", 1, 0, 0);
	world.snapshot.limits = world.limits;
	world.snapshot.devices = world.devices;
	world.snapshot.device_count = 2;
}

/* Under complete terms, in the order that a snapshot has them; id and slot are its place, from 1 on. */
static inline struct rl_limit *add(const char *target, struct rl_terms terms)
{
	__u32 id = (__u32)++world.snapshot.limit_count;
	struct rl_target whose = target_of(target);
	struct rl_limit *limit = &world.limits[id - 1].limit;
	struct rl_error err = {};

	cr_assert_eq(rl_limit_compute(&whose, &terms, NULL, id, id, START, limit, &err), 0, "%s", err.text);
	return limit;
}

static inline struct rl_limit *add_rate(const char *target, const char *rate, const char *burst)
{
	return add(target, terms_completed(target, terms_said(rate, burst)));
}

/* A class of the limit that was added before it, or of one before that. */
static inline struct rl_limit *add_class(struct rl_limit *of, const char *class, const char *rate,
					 const char *burst)
{
	struct rl_terms terms = terms_said(rate, burst);
	char text[RL_TARGET_TEXT];
	struct rl_limit *limit;

	terms.class = test_class(class);
	rl_target_print(&of->target, text);
	limit = add(text, terms_completed(text, terms));
	of->class[of->class_count++] = (struct rl_class_ref){.class = terms.class, .slot = limit->slot};
	return limit;
}

static inline struct rl_explain_packet packet_of(struct rl_explain_words words)
{
	struct rl_explain_packet packet = {};
	struct rl_error err = {};

	cr_assert_eq(rl_explain_parse(&words, &packet, &err), 0, "%s", err.text);
	return packet;
}

/* Both steps, with every source's bucket there and full. */
static inline const struct rl_explain *explain(struct rl_explain_words words)
{
	struct rl_explain_packet packet = packet_of(words);

	rl_tenants_inherit(world.limits, world.snapshot.limit_count);
	rl_explain_begin(&world.snapshot, &packet, NULL, &world.explain);
	for (size_t i = 0; i < world.explain.level_count; i++)
		world.explain.level[i].found = true;
	for (size_t i = 0; i < world.explain.device_count; i++)
		world.explain.device[i].level.found = true;
	rl_explain_finish(&world.explain, NOW);
	return &world.explain;
}

#define explain_words(...) explain((struct rl_explain_words){__VA_ARGS__})

/* Charge `count` packets of len bytes at `now`, as the packet path does; each must be admitted. */
static inline void charge(struct rl_explain_level *level, __u32 len, __u32 count, __u64 now)
{
	const struct rl_limit *limit = &level->limit->limit;
	const __u64 key = 1;
	struct rl_place place = {.buckets = &level->buckets, .key = &key, .whose = 1};

	level->found = true;
	cr_assert_eq(rl_place_renew(&place, limit, now), 0);
	while (count--)
		for (int unit = 0; unit < RL_UNITS; unit++)
			if (limit->rate[unit].mult)
				cr_assert_eq(
				    rl_bucket_verdict(rl_bucket_charge(
					&place, limit, unit,
					rl_bucket_cost(limit, unit, unit == RL_BYTES ? len : 1), 0, now)),
				    RL_GCRA_ADMIT);
}

static inline void check_levels(const char *const *targets, size_t count)
{
	const struct rl_explain *found = &world.explain;

	cr_assert_eq(found->level_count, count, "%zu levels, not %zu", found->level_count, count);
	for (size_t i = 0; i < count; i++) {
		const struct rl_limit *limit = &found->level[i].limit->limit;
		char text[RL_OBJECT_TEXT];

		cr_assert_str_eq(rl_object_print(&limit->target, &limit->terms.class, text), targets[i],
				 "level %zu", i);
	}
}
#define check_levels_are(...)                                                                                \
	check_levels((const char *[]){__VA_ARGS__}, COUNT(((const char *[]){__VA_ARGS__})))

#endif
