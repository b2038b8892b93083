// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "scenarios.h"

#include <stdio.h>
#include <string.h>

#include "../../bpf/rl_gcra.h"

#define START	 WORLD_START
#define SECOND	 WORLD_SECOND
#define MINUTE	 WORLD_MINUTE
#define TICK	 (1ULL << RL_GCRA_STAMP)
#define LONG_AGO (START - 10 * MINUTE) /* longer than RL_BUCKET_IDLE: buckets are brought up to date first */
#define LATELY	 (START - 2 * TICK)    /* within a place's grace time */

#define EXPECT(holds, ...)                                                                                   \
	do { /* a macro: it returns */                                                                       \
		if (!(holds)) {                                                                              \
			snprintf(text, SCHEDULE_TEXT, __VA_ARGS__);                                          \
			return false;                                                                        \
		}                                                                                            \
	} while (0)

static __u64 owed_by(int source)
{
	int places;
	const struct rl_buckets *buckets = world_buckets(source, &places);

	return buckets ? world_owed(buckets, (enum world_slot)world.policy[source]) : 0;
}

/* Nothing was minted: the source has one place or none, and owes what an ideal bucket would that had been full at `tat`. */
static bool nothing_minted(int source, __u64 tat, char text[SCHEDULE_TEXT])
{
	int places;
	__u64 ideal = world_ideal(source, (enum world_slot)world.policy[source], tat);

	world_buckets(source, &places);
	EXPECT(places < 2, "source %d has %d places", source, places);
	EXPECT(owed_by(source) >= ideal, "source %d owes %.3f s and should owe %.3f s", source,
	       (double)owed_by(source) / 1e9, (double)ideal / 1e9);
	return true;
}

/* Two packets at once and no more, whatever happened before: offered again, it gets what is left. */
static bool two_pass(int source, char text[SCHEDULE_TEXT])
{
	EXPECT(world_passed(source) <= 2, "%d packets of source %d passed", world_passed(source), source);
	world_offer(source, 3);
	EXPECT(world_passed(source) == 2, "in the end %d packets of source %d passed", world_passed(source),
	       source);
	return true;
}

static void policy_slow(void)
{
	world_limit(SLOT_SOURCE, 0, 60, 2, 0); /* a packet a minute */
}

/* --- stamps: a CPU that was held up, with an older clock --- */

static void stamps_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 3600, 2, 0);
}

static void stamps_prepare(void)
{
	world_settle(0, 0, LONG_AGO, LONG_AGO);
}

static void stamps_run(int cpu)
{
	if (cpu == 1)
		world_wait(20 * SECOND);
	world_offer(0, cpu == 1 ? 3 : 1);
}

static bool stamps_check(char text[SCHEDULE_TEXT])
{
	EXPECT(world_passed(0) <= 3, "%d packets passed, and two are a burst", world_passed(0));
	return nothing_minted(0, 0, text);
}

/* --- idle: a bucket that was idle for as long as is told by its stamp alone --- */

static void idle_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 3600000, 2, 0);
}

static void idle_prepare(void)
{
	world_settle(0, 0, START - 3 * TICK, START - 3 * TICK);
}

static void idle_run(int cpu)
{
	(void)cpu;
	world_offer(0, 2);
}

static bool idle_check(char text[SCHEDULE_TEXT])
{
	return nothing_minted(0, 0, text) && two_pass(0, text);
}

/* --- evict: a source comes back while its place is given away --- */

static void evict_prepare(void)
{
	world_settle(0, 0, LONG_AGO, LONG_AGO);
	world_settle(1, -1, LONG_AGO, LONG_AGO);
	world_occupy(2);
}

static void evict_run(int cpu)
{
	world_offer(cpu, 2);
}

static bool evict_check(char text[SCHEDULE_TEXT])
{
	return nothing_minted(0, 0, text) && nothing_minted(1, 0, text) && two_pass(0, text) &&
	       two_pass(1, text);
}

/* --- late: it was there all the time, but for a packet that is held up until it can be given away --- */

static void late_prepare(void)
{
	world_settle(0, 0, LATELY, LATELY);
	world_settle(1, -1, LONG_AGO, LONG_AGO);
	world_occupy(2);
}

static void late_run(int cpu)
{
	if (cpu == 1)
		world_wait(20 * SECOND);
	world_offer(cpu, 2);
}

/* --- debtor: its limit has become slower, and by the old rate it owes nothing any more --- */

static void debtor_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 3600, 2, 0);
	world_limit(SLOT_SOURCE, 1, 60, 2, START - 19 * SECOND);
}

/* It owed 1 s at the change, a packet's time: hence 60 s from then on. */
static void debtor_prepare(void)
{
	world_settle(0, 0, START - 20 * SECOND, START - 18 * SECOND);
	world_occupy(1);
	world_switch(SLOT_SOURCE);
}

static void debtor_run(int cpu)
{
	if (cpu == 0) {
		world_offer(1, 1);
		world_wait(11 * SECOND);
		world_offer(1, 1);
		return;
	}
	world_offer(0, 2);
}

static bool debtor_check(char text[SCHEDULE_TEXT])
{
	EXPECT(!world_passed(1), "its place was given away");
	world_offer(0, 1);
	return nothing_minted(0, START - 19 * SECOND + MINUTE, text);
}

/* --- insert: two CPUs meet the same new source --- */

static void nothing(void)
{
}

static void insert_run(int cpu)
{
	(void)cpu;
	world_offer(0, 2);
}

/* --- replace: likewise, where the table is full, though not for long --- */

static void replace_prepare(void)
{
	for (int i = 0; i < 2 * RL_ROW; i++)
		world_settle(i, -1, LONG_AGO, LONG_AGO);
}

/* --- last: there is one place left, and two CPUs with a new source each --- */

static void last_prepare(void)
{
	world_occupy(1);
}

/* A source without a place is never let in: the table is full, and closed. */
static bool last_check(char text[SCHEDULE_TEXT])
{
	EXPECT(world_passed(0) == 0 || world_passed(1) == 0, "both sources were let in");
	EXPECT(world_passed(-1) == 2, "%d packets passed", world_passed(-1));
	return nothing_minted(0, 0, text) && nothing_minted(1, 0, text);
}

/* --- new: the limit of new sources changes while two CPUs meet the same one --- */

#define NEW_OWED 70

static void new_policy(void)
{
	policy_slow();
	world_limit(SLOT_NEW, 0, 3600, 100, 0);
	world_limit(SLOT_NEW, 1, 60, 100, START);
}

static void new_prepare(void)
{
	world_charge(&world.own[SLOT_NEW].buckets, SLOT_NEW, START, START + NEW_OWED * SECOND);
}

static void new_run(int cpu)
{
	if (cpu == 2)
		world_switch(SLOT_NEW);
	else
		world_offer(0, 1);
}

/* Of the two one was given a place. The other has its token back, or has forfeited it. */
static bool new_check(char text[SCHEDULE_TEXT])
{
	__u64 owed;

	world_offer(1, 1); /* brings the bucket up to date, and takes one itself */
	owed = world_owed(&world.own[SLOT_NEW].buckets, SLOT_NEW) / MINUTE;
	EXPECT(owed == NEW_OWED + 2 || owed == NEW_OWED + 3, "`new` owes %llu", owed);
	return true;
}

/* --- change: a source's limit changes --- */

static void change_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 3600, 3, 0);
	world_limit(SLOT_SOURCE, 1, 60, 2, START);
}

static void change_run(int cpu)
{
	if (cpu == 2)
		world_switch(SLOT_SOURCE);
	else
		world_offer(0, 2);
}

static bool change_check(char text[SCHEDULE_TEXT])
{
	world_offer(0, 2);
	EXPECT(world_passed(0) == 2 || world_passed(0) == 3, "%d packets passed", world_passed(0));
	EXPECT(owed_by(0) == (__u64)world_passed(0) * MINUTE, "%d packets passed, and it owes %.3f s",
	       world_passed(0), (double)owed_by(0) / 1e9);
	return true;
}

/* --- refund: a source that its tenant refuses; or the device, after its tenant did not --- */

static void refund_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 60, 4, 0);
	world_limit(SLOT_TENANT, 0, 60, 1, 0);
}

static void device_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 60, 4, 0);
	world_limit(SLOT_TENANT, 0, 60, 4, 0);
	world_limit(SLOT_DEVICE, 0, 60, 1, 0);
}

/* Sources owe something, so that a refund is due. */
static void refund_prepare(void)
{
	world_settle(0, 0, START, START + MINUTE);
	world_settle(1, 1, START, START + MINUTE);
}

static void device_prepare(void)
{
	refund_prepare();
	world_charge(&world.own[SLOT_TENANT].buckets, SLOT_TENANT, START, START + MINUTE);
}

static void refund_run(int cpu)
{
	if (cpu == 1)
		world_offer(1, 1);
	world_offer(0, 1);
}

static __u64 own_owed(enum world_slot slot)
{
	return world_owed(&world.own[slot].buckets, slot);
}

static bool sources_paid(char text[SCHEDULE_TEXT])
{
	EXPECT(world_passed(-1) == 1, "%d packets passed", world_passed(-1));
	for (int i = 0; i < 2; i++)
		EXPECT(owed_by(i) == (__u64)(1 + world_passed(i)) * MINUTE,
		       "source %d: %d passed, and it owes %.3f s", i, world_passed(i),
		       (double)owed_by(i) / 1e9);
	return true;
}

static bool refund_check(char text[SCHEDULE_TEXT])
{
	EXPECT(own_owed(SLOT_TENANT) == MINUTE, "the tenant was charged for more than passed");
	return sources_paid(text);
}

static bool device_check(char text[SCHEDULE_TEXT])
{
	EXPECT(own_owed(SLOT_TENANT) == 2 * MINUTE, "the tenant was charged for more than passed");
	EXPECT(own_owed(SLOT_DEVICE) == MINUTE, "the device was charged for more than passed");
	return sources_paid(text);
}

/* --- stalled: a CPU is held up before its refund, until the bucket was full --- */

static void stalled_prepare(void)
{
	world_settle(0, 0, START, START + 72 * SECOND);
	world_settle(1, 1, START, START);
}

static void stalled_run(int cpu)
{
	if (cpu == 2)
		world_wait(80 * SECOND);
	world_offer(cpu == 1, 1);
}

static bool stalled_check(char text[SCHEDULE_TEXT])
{
	return nothing_minted(0, START + 72 * SECOND, text);
}

/* --- refunds: two at once, of which the second comes late --- */

static void refunds_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 60, 4, 0);
	world_limit(SLOT_TENANT, 0, 120, 1, 0);
}

static void refunds_prepare(void)
{
	world_settle(0, 0, START, START + 30 * SECOND);
	world_settle(1, 1, START, START);
}

static void refunds_run(int cpu)
{
	world_offer(cpu == 2, 1);
	if (cpu)
		return;
	world_wait(40 * SECOND);
	world_offer(0, 1);
}

/* A refund doesn't see another's (rl_bucket.h): 10 s flowed in that an ideal bucket, full after 30 s, has no room for. */
static bool refunds_check(char text[SCHEDULE_TEXT])
{
	__u64 ideal = world_ideal(0, SLOT_SOURCE, START + 30 * SECOND);

	EXPECT(owed_by(0) + 10 * SECOND >= ideal, "it owes %.3f s and should owe %.3f s",
	       (double)owed_by(0) / 1e9, (double)ideal / 1e9);
	return true;
}

/* --- taken: likewise, until its place was another source's --- */

static void taken_prepare(void)
{
	stalled_prepare();
	world_occupy(2);
}

static void taken_run(int cpu)
{
	if (cpu == 0) {
		world_offer(0, 1);
		return;
	}
	world_offer(1, 1);
	world_wait(150 * SECOND);
	world_offer(2, 1);
}

static bool taken_check(char text[SCHEDULE_TEXT])
{
	return nothing_minted(2, 0, text);
}

/* --- convert: likewise, until what it owes is counted at another rate --- */

static void convert_policy(void)
{
	refund_policy();
	world_limit(SLOT_SOURCE, 1, 3600, 4, START);
}

static void convert_run(int cpu)
{
	if (cpu == 0) {
		world_offer(0, 1);
		return;
	}
	world_offer(1, 1);
	world_switch(SLOT_SOURCE);
	world_offer(0, 1);
}

static bool convert_check(char text[SCHEDULE_TEXT])
{
	world_offer(0, 1);
	return nothing_minted(0, START + SECOND, text);
}

/* --- tally: a packet is counted while its source's place is given away --- */

static void tally_prepare(void)
{
	evict_prepare();
	world.row[0].at[0].passed.packets = world.row[0].at[0].dropped.packets = 1000;
}

static bool tally_check(char text[SCHEDULE_TEXT])
{
	struct rl_tally tally;
	__u64 passed = (__u64)world_passed(1), dropped = 2 - passed;

	if (!world_tally(1, &tally))
		return true;
	EXPECT(tally.passed.packets == passed, "%llu counted as passed, and %llu did", tally.passed.packets,
	       passed);
	EXPECT(tally.dropped.packets <= dropped + 1, "%llu counted as dropped, and %llu were",
	       tally.dropped.packets, dropped);
	return true;
}

/* --- pending: drops that were counted for a source are brought home while its place is given away --- */

static void pending_prepare(void)
{
	evict_prepare();
	world_pend(0, 0, 1000);
	world_settle(1, 2, WORLD_START, WORLD_START + 60 * WORLD_MINUTE);
}

static void pending_run(int cpu)
{
	world_offer(cpu ? 1 : 2, 2);
}

/* --- known: a prefix comes into the policy that holds a source which is under another --- */

static void known_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 60, 4, 0);
	world_limit(SLOT_INNER, 0, 60, 4, 0);
}

static void known_run(int cpu)
{
	if (cpu == 2)
		world_enter(0);
	else
		world_offer(0, 2);
}

/* Packets of a source that came after that are held to the prefix's limit. */
static bool is_reclassified(int source, char text[SCHEDULE_TEXT])
{
	world_offer(source, 1);
	for (int i = 0; i < world_packets; i++)
		EXPECT(world_packet[i].source != source || !world_packet[i].epoch ||
			   world_packet[i].slot == SLOT_INNER,
		       "packet %d, on CPU %d, is held to the limit that its source was under before", i,
		       world_packet[i].cpu);
	return true;
}

static bool known_check(char text[SCHEDULE_TEXT])
{
	return is_reclassified(0, text);
}

/* --- handed: likewise, and it was just given a place where another was known --- */

static void handed_prepare(void)
{
	world_settle(0, 0, LONG_AGO, LONG_AGO);
	world_occupy(1);
}

static void handed_run(int cpu)
{
	if (cpu == 2)
		world_enter(1);
	else
		world_offer(cpu, 1);
}

static bool handed_check(char text[SCHEDULE_TEXT])
{
	return is_reclassified(1, text);
}

/* --- alike: the place was that of another limit's source --- */

static void alike_policy(void)
{
	known_policy();
	world_limit(SLOT_OTHER, 0, 60, 4, 0);
}

static void alike_prepare(void)
{
	world_settle_other(LONG_AGO);
	world_occupy(1);
}

/* --- unrated: a place goes to a source of a limit without a rate --- */

static void unrated_policy(void)
{
	world_limit(SLOT_SOURCE, 0, 60, 2, 0);
	world_limit(SLOT_OTHER, 0, 60, 4, 0);
	memset(world_limits[SLOT_OTHER].rate, 0, sizeof(world_limits[SLOT_OTHER].rate));
}

static void unrated_prepare(void)
{
	world_settle(0, 0, LONG_AGO, LONG_AGO);
	world_settle(1, -1, LONG_AGO, LONG_AGO);
	world_occupy(2);
	world.policy[1] = SLOT_OTHER;
}

static void unrated_run(int cpu)
{
	world_offer(cpu, 1);
}

static bool unrated_check(char text[SCHEDULE_TEXT])
{
	for (int i = 0; i < world_packets; i++)
		EXPECT(world_packet[i].source || world_packet[i].slot == SLOT_SOURCE,
		       "packet %d was held to the limit in slot %u", i, world_packet[i].slot);
	return two_pass(0, text);
}

/* --- split: likewise, and it shares its place with one that stays where it was --- */

static void split_run(int cpu)
{
	if (cpu == 2)
		world_enter(NEIGHBOUR);
	else
		world_offer(cpu ? NEIGHBOUR : 0, 2);
}

static bool split_check(char text[SCHEDULE_TEXT])
{
	return is_reclassified(NEIGHBOUR, text);
}

/* --- per: a limit's /24s, of which one has the address of a source under another, become /32s --- */

static void per_policy(void)
{
	known_policy();
	world_limit(SLOT_SOURCE, 1, 60, 4, START);
	world_limits[SLOT_SOURCE].bits[0] = 24;
}

static void per_prepare(void)
{
	world_enter(0);
}

static void per_run(int cpu)
{
	if (cpu == 1)
		world_switch(SLOT_SOURCE);
	else
		world_offer(NEIGHBOUR, 2);
}

static bool per_check(char text[SCHEDULE_TEXT])
{
	world_offer(NEIGHBOUR, 2);
	return is_reclassified(0, text);
}

/* --- orphan: a place under a limit that a packet under way doesn't know yet --- */

static void orphan_prepare(void)
{
	world_settle(0, -1, LONG_AGO, LONG_AGO);
	world_occupy(1);
}

static void orphan_run(int cpu)
{
	if (cpu == 2)
		world_enter(0);
	else
		world_offer(!cpu, 2);
}

/* That of the prefix is what counts: there may be another, under the limit that its source was under before. */
static bool orphan_check(char text[SCHEDULE_TEXT])
{
	__u64 passed = 0;

	for (int i = 0; i < world_packets; i++)
		passed += world_packet[i].slot == SLOT_INNER && !rl_reason_drops(world_packet[i].reason);
	EXPECT(owed_by(0) == passed * MINUTE, "%llu packets passed, and it owes %.3f s", passed,
	       (double)owed_by(0) / 1e9);
	return true;
}

#define GENERAL (1 << PATH_GENERAL)
#define FAST	(1 << PATH_FAST)
#define BOTH	(GENERAL | FAST)

const struct scenario scenarios[] = {
    {"stamps", "a CPU with an older clock lowers no stamp", 4, GENERAL, false, 3, stamps_policy,
     stamps_prepare, 2, stamps_run, stamps_check},
    {"idle", "an idle bucket that is charged isn't taken for idle", 4, BOTH, false, 3, idle_policy,
     idle_prepare, 2, idle_run, idle_check},
    {"evict4", "a source that comes back while its place is given away loses no debt", 4, BOTH, false, 3,
     policy_slow, evict_prepare, 2, evict_run, evict_check},
    {"evict6", "likewise, known by a hash, and idle for as long as is told by its stamp alone", 6, BOTH,
     false, 2, idle_policy, evict_prepare, 2, evict_run, evict_check},
    {"late4", "nor does one whose packet is held up until then", 4, BOTH, false, 3, policy_slow, late_prepare,
     2, late_run, evict_check},
    {"late6", "likewise, known by a hash", 6, BOTH, false, 2, policy_slow, late_prepare, 2, late_run,
     evict_check},
    {"debtor", "a debtor keeps its place through a change", 4, GENERAL, false, 3, debtor_policy,
     debtor_prepare, 2, debtor_run, debtor_check},
    {"insert4", "two CPUs that meet a new source make one place", 4, BOTH, false, 3, policy_slow, nothing, 2,
     insert_run, idle_check},
    {"insert6", "likewise, known by a hash", 6, BOTH, false, 2, policy_slow, nothing, 2, insert_run,
     idle_check},
    {"replace4", "likewise, and one takes another's place", 4, BOTH, false, 3, policy_slow, replace_prepare,
     2, insert_run, idle_check},
    {"replace6", "likewise, known by a hash", 6, BOTH, false, 2, policy_slow, replace_prepare, 2, insert_run,
     idle_check},
    {"last4", "two new sources don't share the last place", 4, BOTH, false, 3, policy_slow, last_prepare, 2,
     evict_run, last_check},
    {"new", "a new source is settled at the rate that it was charged", 4, GENERAL, false, 2, new_policy,
     new_prepare, 3, new_run, new_check},
    {"change", "a change keeps what is owed", 4, BOTH, false, 2, change_policy, nothing, 3, change_run,
     change_check},
    {"refund", "a packet is charged at every level or at none", 4, BOTH, false, 3, refund_policy,
     refund_prepare, 2, refund_run, refund_check},
    {"device", "likewise, where the last of them refuses", 4, BOTH, false, 3, device_policy, device_prepare,
     2, refund_run, device_check},
    {"stalled", "a refund that comes late mints nothing", 4, BOTH, false, 2, refund_policy, stalled_prepare,
     3, stalled_run, stalled_check},
    {"refunds", "two that come late mint no more than flowed in meanwhile", 4, BOTH, false, 2, refunds_policy,
     refunds_prepare, 3, refunds_run, refunds_check},
    {"taken", "nor in a place that is another source's by then", 4, BOTH, false, 2, refund_policy,
     taken_prepare, 2, taken_run, taken_check},
    {"convert", "nor at another rate", 4, BOTH, false, 3, convert_policy, stalled_prepare, 2, convert_run,
     convert_check},
    {"tally", "a source's packet is counted as another's at most once, as dropped", 4, BOTH, true, 2,
     policy_slow, tally_prepare, 2, evict_run, tally_check},
    {"pending", "nor are drops that were pending for who had its place before", 4, BOTH, true, 2, policy_slow,
     pending_prepare, 2, pending_run, tally_check},
    {"known", "a source isn't known any more once a prefix around it came into the policy", 4, FAST, false, 2,
     known_policy, nothing, 3, known_run, known_check},
    {"handed", "nor in the place that it was just given", 4, FAST, false, 2, known_policy, handed_prepare, 3,
     handed_run, handed_check},
    {"alike", "nor where that was another limit's", 4, FAST, false, 2, alike_policy, alike_prepare, 3,
     handed_run, handed_check},
    {"unrated", "whoever else was given its place, it is held to its own limit", 4, FAST, false, 2,
     unrated_policy, unrated_prepare, 2, unrated_run, unrated_check},
    {"split", "nor in one that it shares", 6, FAST, false, 2, known_policy, nothing, 3, split_run,
     split_check},
    {"per", "nor by the address of its neighbourhood", 4, FAST, false, 2, per_policy, per_prepare, 2, per_run,
     per_check},
    {"orphan", "a place isn't nobody's because a packet under way doesn't know its limit", 4, BOTH, false, 2,
     known_policy, orphan_prepare, 3, orphan_run, orphan_check},
};
const int scenarios_count = sizeof(scenarios) / sizeof(scenarios[0]);
