// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The policy as a whole from files, in the real maps: the same as limit by limit; whole or not at all, for an agent that is
 * killed anywhere and for packets meanwhile; nothing is lost, and what is said again isn't touched.
 */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/class.h"
#include "../../user/cleanup.h"
#include "../../user/limit.h"
#include "../../user/policy.h"
#include "../../user/policy_apply.h"
#include "../../user/prefix.h"
#include "../../user/room.h"
#include "../../user/statement.h"
#include "../../user/target.h"
#include "fixture.h"
#include "maps.h"

#define TEXT 16384

static __u64 now = 1000000000000;

TestSuite(apply, .init = maps_make_few, .fini = maps_end, .timeout = 300);

/* ---- short forms ---- */

static struct rl_policy_file file_of(const char *text)
{
	struct rl_policy_file file = {};
	struct rl_error err = {};
	FILE *in = *text ? fmemopen((void *)text, strlen(text), "r") : fopen("/dev/null", "r");
	int rc;

	cr_assert_not_null(in);
	rc = rl_policy_file_read(in, "p", &file, &err);
	if (!rc)
		rc = rl_policy_file_check(&file, &err);
	cr_assert_eq(rc, 0, "%s", err.text);
	fclose(in);
	return file;
}

static int try_apply(const struct rl_state *state, const char *text, enum rl_apply_how how,
		     struct rl_applied *out, struct rl_error *err)
{
	RL_POLICY_FILE struct rl_policy_file file = file_of(text);

	now += 1000;
	return rl_policy_apply(state, &file, how, now, out, err);
}

static struct rl_diff_counts apply(const char *text)
{
	struct rl_applied applied = {};
	struct rl_error err = {};
	int rc = try_apply(&maps, text, RL_APPLY, &applied, &err);

	cr_assert_eq(rc, 0, "%d %s", rc, err.text);
	return applied.said;
}

/* All of the policy as lines, with the tenant in force behind each. Classes in any order: they are ordered here. */
static int lines_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void dump_limit(const struct rl_limit *limit, char out[RL_STATEMENT_TEXT + RL_TENANT_LEN + 8])
{
	struct rl_limit tenant = {};

	if (limit->tenant)
		cr_assert(rl_policy_slot(&maps, limit->tenant, &tenant) && tenant.level == RL_LEVEL_TENANT,
			  "a tenant's slot without a tenant");
	rl_statement_print(&limit->target, &limit->terms, out);
	sprintf(out + strlen(out), " of %s", tenant.id ? tenant.target.name : "-");
}

static const char *dump(char buf[TEXT])
{
	RL_FREE struct rl_limit *limits = NULL;
	static char texts[MAPS_SLOTS][RL_STATEMENT_TEXT + RL_TENANT_LEN + 8];
	char *lines[MAPS_SLOTS];
	struct rl_error err;
	size_t count, used = 0;

	cr_assert_eq(rl_policy_read(&maps, &limits, &count, &err), 0, "%s", err.text);
	cr_assert_lt(count, MAPS_SLOTS);
	for (size_t i = 0; i < count; i++) {
		dump_limit(&limits[i], texts[i]);
		lines[i] = texts[i];
	}
	qsort(lines, count, sizeof(*lines), lines_compare);
	buf[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		used += (size_t)snprintf(buf + used, TEXT - used, "%s\n", lines[i]);
		cr_assert_lt(used, TEXT);
	}
	return buf;
}

static bool find(const char *target_text, const char *class_text, struct rl_limit *out)
{
	struct rl_target target;
	struct rl_class class = {};
	struct rl_error err;

	cr_assert_eq(rl_target_parse(target_text, &target, &err), 0, "%s", err.text);
	if (class_text)
		cr_assert_eq(rl_class_parse(class_text, &class, &err), 0, "%s", err.text);
	return rl_policy_find(&maps, &target, &class, out);
}

static struct rl_limit get(const char *target, const char *class)
{
	struct rl_limit limit;

	cr_assert(find(target, class, &limit), "%s isn't there", target);
	return limit;
}

static void expect_claimed(__u32 slots, const char *what)
{
	cr_assert_eq(maps_claimed(RL_MAP_SLOTS), slots, "%s: %u slots are taken, want %u", what,
		     maps_claimed(RL_MAP_SLOTS), slots);
	cr_assert_eq(maps_claimed(RL_MAP_CELLS), slots, "%s: %u cells are taken, want %u", what,
		     maps_claimed(RL_MAP_CELLS), slots);
}

static __u32 unfinished(void)
{
	struct rl_meta meta;
	struct rl_error err;

	cr_assert_eq(rl_state_meta(&maps, &meta, &err), 0);
	return meta.unfinished;
}

/* Every kind, and two policies that have little in common: what stays, changes, comes and goes, of each kind. */
static const char one[] = "set-limit any --rate 5kpps --tenant c\n"
			  "set-limit 10.0.0.0/8 --rate 1kpps --tenant acme\n"
			  "set-limit 10.1.0.0/16 --class syn --rate 10pps\n"
			  "set-limit 10.1.0.0/16 --class icmp --rate 10pps\n"
			  "set-limit 10.1.2.0/24 --rate 3kpps\n"
			  "set-limit 10.1.2.3 --rate 3kpps\n"
			  "set-limit 172.16.0.0/12 --rate 7kpps\n"
			  "set-limit 172.16.0.0/12 --class udp --rate 7kpps\n"
			  "allow 192.0.2.0/28\n"
			  "deny 192.0.2.66\n"
			  "set-limit 2001:db8::/32 --rate 1kpps --cost syn=5\n"
			  "set-limit tenant:acme --rate 2kpps\n"
			  "set-limit tenant:gone --rate 2kpps\n"
			  "set-limit dev:eth0 --rate 1mpps\n"
			  "set-limit new --rate 20kpps\n";
#define ONE_CLAIMED (15 + 1 + 1) /* a general limit for the classes, a tenant that is only named */

static const char other[] = "set-limit any --rate 6kpps\n"
			    "set-limit 10.0.0.0/9 --rate 1kpps --tenant b\n"
			    "set-limit 10.1.0.0/16 --rate 10kpps\n"
			    "set-limit 10.1.0.0/16 --class udp --rate 20pps\n"
			    "set-limit 10.1.0.0/16 --class icmp --rate 20pps\n"
			    "set-limit 10.1.2.0/25 --rate 3kpps\n"
			    "set-limit 10.1.2.3 --rate 3kpps\n"
			    "set-limit 172.16.0.0/12 --rate 7kpps --shared\n"
			    "set-limit 172.16.0.0/12 --class udp --rate 7kpps\n"
			    "deny 192.0.2.0/28\n"
			    "set-limit 2001:db8:1::/80 --rate 1kpps --tenant acme\n"
			    "set-limit tenant:b --rate 2kpps --shadow\n"
			    "set-limit dev:eth1 --rate 1mpps\n";
#define OTHER_CLAIMED (13 + 1)

/* ---- what it does ---- */

Test(apply, policies_follow_upon_each_other)
{
	char was[TEXT], is[TEXT];
	struct rl_diff_counts said = apply(one);

	cr_expect(said.limits == 15 && said.come == 15);
	expect_claimed(ONE_CLAIMED, "one");
	dump(was);
	said = apply(other);
	cr_expect(said.limits == 13 && said.come == 7 && said.changed == 4 && said.same == 2 &&
		      said.gone == 9,
		  "%zu limits, %zu new, %zu changed, %zu the same, %zu deleted", said.limits, said.come,
		  said.changed, said.same, said.gone);
	expect_claimed(OTHER_CLAIMED, "other");
	apply(one);
	cr_expect_str_eq(dump(is), was);
	expect_claimed(ONE_CLAIMED, "one again");
	apply("");
	cr_expect_str_eq(dump(is), "");
	expect_claimed(0, "nothing");
}

/* Its own bucket and its counters are untouched, and so is the epoch, by which every source would be looked up anew. */
Test(apply, what_is_said_again_is_left_alone)
{
	struct rl_source source = {.buckets = {.word = {1, 2}}, .tally = {.passed = {3, 4}}}, after;
	static const char *const targets[] = {"any", "10.1.2.3", "tenant:acme", "dev:eth0", "new"};
	struct rl_limit was[5];
	__u32 epoch;

	apply(one);
	for (int i = 0; i < 5; i++) {
		was[i] = get(targets[i], NULL);
		cr_assert_eq(bpf_map_update_elem(maps.map[RL_MAP_OWN], &was[i].slot, &source, BPF_ANY), 0);
	}
	epoch = maps_settings().epoch;
	cr_expect_eq(apply(one).same, 15);
	cr_expect_eq(maps_settings().epoch, epoch);
	for (int i = 0; i < 5; i++) {
		struct rl_limit is = get(targets[i], NULL);

		cr_expect_eq(memcmp(&is, &was[i], sizeof(is)), 0, "%s", targets[i]);
		cr_assert_eq(bpf_map_lookup_elem(maps.map[RL_MAP_OWN], &is.slot, &after), 0);
		cr_expect_eq(memcmp(&after, &source, sizeof(after)), 0, "%s", targets[i]);
	}
	/* And changed, it keeps them all the same. */
	apply(
	    "set-limit any --rate 6kpps\nset-limit 10.1.2.3 --rate 1kpps\nset-limit tenant:acme --rate 1kpps\n"
	    "set-limit dev:eth0 --rate 5kpps\nset-limit new --rate 3pps\n");
	cr_expect_eq(maps_settings().epoch, epoch + 1);
	for (int i = 0; i < 5; i++) {
		struct rl_limit is = get(targets[i], NULL);

		cr_expect(is.id == was[i].id && is.slot == was[i].slot && is.gen == was[i].gen + 1, "%s",
			  targets[i]);
		cr_assert_eq(bpf_map_lookup_elem(maps.map[RL_MAP_OWN], &is.slot, &after), 0);
		cr_expect_eq(memcmp(&after, &source, sizeof(after)), 0, "%s", targets[i]);
	}
}

Test(apply, packets_find_what_is_found_by_name)
{
	maps_attach(0, "eth0");
	maps_attach(1, "eth1");
	apply(one);
	cr_expect_eq(maps_device_limit(0), get("dev:eth0", NULL).slot);
	cr_expect_eq(maps_device_limit(1), 0);
	cr_expect_eq(maps_settings().fresh, get("new", NULL).slot);
	cr_expect_eq(maps_settings().split, 0);
	apply(other);
	cr_expect_eq(maps_device_limit(0), 0);
	cr_expect_eq(maps_device_limit(1), get("dev:eth1", NULL).slot);
	cr_expect_eq(maps_settings().fresh, 0);
	cr_expect_eq(maps_settings().split, 1);
}

Test(apply, a_check_changes_nothing)
{
	struct rl_applied applied;
	char was[TEXT], is[TEXT];
	struct rl_error err;

	apply(one);
	dump(was);
	cr_assert_eq(try_apply(&maps, other, RL_APPLY_CHECK, &applied, &err), 0);
	cr_expect(applied.said.come == 7 && applied.said.gone == 9);
	cr_expect_str_eq(dump(is), was);
	expect_claimed(ONE_CLAIMED, "checked");
}

Test(apply, what_is_owed_beyond_the_new_burst_is_told)
{
	struct rl_applied applied;
	struct rl_error err;

	apply(
	    "set-limit any --rate 1kpps --burst 1000\nset-limit 10.0.0.0/8 --rate 1kpps --burst 1000\nallow 10.1.0.0/16\n");
	cr_assert_eq(
	    try_apply(
		&maps,
		"set-limit any --rate 10pps --burst 20\nset-limit 10.0.0.0/8 --rate 2kpps --burst 1000\n",
		RL_APPLY, &applied, &err),
	    0);
	cr_expect_eq(applied.overdrawn, 1);
	cr_expect(applied.longest > 97 * SEC && applied.longest < 99 * SEC, "%llu", applied.longest);
}

/* ---- the same as limit by limit ---- */

static const char *const random_targets[] = {
    "any",	   "10.0.0.0/8",   "10.1.0.0/16", "10.1.2.0/24", "10.1.2.128/25", "10.1.2.3",
    "10.2.0.0/16", "192.0.2.0/24", "192.0.2.1",	  "::/0",	 "2001:db8::/32", "2001:db8:1::/48",
    "tenant:t0",   "tenant:t1",	   "tenant:t2",	  "dev:eth0",	 "new",
};
#define TARGETS (sizeof(random_targets) / sizeof(random_targets[0]))

/* The lines of one target: a whole one, or classes, or both. */
static void random_lines(const char *target, char *out, size_t size)
{
	static const char *const classes[] = {"syn", "udp", "icmp"}, *const tenants[] = {"t0", "t1", "t2"};
	bool prefix = strchr(target, '.') || strstr(target, "::") || !strcmp(target, "any");
	int kind = prefix ? rand() % 6 : 2;
	size_t used = 0;

	out[0] = '\0';
	if (kind < 2) {
		snprintf(out, size, "%s %s\n", kind ? "allow" : "deny", target);
		return;
	}
	if (kind != 5)
		used = (size_t)snprintf(out, size, "set-limit %s --rate %dpps%s%s%s\n", target,
					1 + rand() % 3, rand() % 4 ? "" : " --shadow",
					prefix && rand() % 2 ? " --tenant " : "", "");
	if (kind != 5 && used > 10 && !strcmp(out + used - 10, "--tenant \n"))
		used += (size_t)snprintf(out + used - 1, size - used, "%s\n", tenants[rand() % 3]) - 1;
	for (int i = 0; kind > 3 && i < 3; i++)
		if (rand() % 2 || (kind == 5 && !i))
			used += (size_t)snprintf(out + used, size - used,
						 "set-limit %s --class %s --rate %dpps\n", target, classes[i],
						 1 + rand() % 3);
}

/* Targets in a random order; each one's lines stay together. */
static void random_policy(char out[TEXT])
{
	size_t order[TARGETS], used = 0;

	for (size_t i = 0; i < TARGETS; i++)
		order[i] = i;
	for (size_t i = TARGETS - 1; i > 0; i--) {
		size_t k = (size_t)rand() % (i + 1), at = order[i];

		order[i] = order[k];
		order[k] = at;
	}
	out[0] = '\0';
	for (size_t i = 0; i < TARGETS; i++) {
		if (rand() % 3 == 0)
			continue;
		random_lines(random_targets[order[i]], out + used, TEXT - used);
		used += strlen(out + used);
	}
}

/* As set-limit, allow and deny would have made it, over nothing. */
static void set_each(const char *text)
{
	char copy[TEXT], *rest = copy, *line;

	apply("");
	snprintf(copy, sizeof(copy), "%s", text);
	while ((line = strtok_r(rest, "\n", &rest))) {
		const char *words[32];
		struct rl_statement statement;
		struct rl_error err;
		int count = 0;

		while ((words[count] = strtok_r(line, " ", &line)))
			count++;
		cr_assert_eq(rl_statement_parse(count, words, &statement, &err), 0, "%s", err.text);
		cr_assert_eq(rl_policy_set(&maps, &statement.target, &statement.terms, now, &err), 0, "%s",
			     err.text);
	}
}

/* What the file says, and a general limit for classes, and a tenant for those who name it. */
static __u32 claims_of(const char *text)
{
	RL_POLICY_FILE struct rl_policy_file file = file_of(text);
	struct rl_error err;
	struct rl_diff diff = {};
	__u32 count;

	cr_assert_eq(rl_diff_make(NULL, 0, &file, now, &diff, &err), 0);
	count = (__u32)diff.count;
	rl_diff_free(&diff);
	return count;
}

Test(apply, any_policy_is_as_limit_by_limit_in_any_order)
{
	int rounds = getenv("RL_LONG") ? 2000 : 60;
	char text[TEXT], applied[TEXT], set[TEXT];

	srand(5);
	for (int round = 0; round < rounds; round++) {
		random_policy(text);
		apply(text);
		expect_claimed(claims_of(text), text);
		dump(applied);
		cr_assert_eq(apply(text).same, apply(text).limits, "%s", text);
		if (round % 3 == 0) {
			set_each(text);
			cr_assert_str_eq(dump(set), applied, "of %s", text);
			cr_assert_eq(apply(text).same, apply(text).limits, "%s", text);
		}
	}
}

/* ---- room ---- */

static void many_say(char *text, size_t size, int from, int to, const char *rate)
{
	size_t used = 0;

	for (int i = from; i < to; i++)
		used += (size_t)snprintf(text + used, size - used, "set-limit 10.0.%d.%d --rate %s\n", i >> 8,
					 i & 255, rate);
}

static void expect_refused(const char *text, const char *has)
{
	struct rl_applied applied;
	struct rl_error err = {};
	char was[TEXT], is[TEXT];

	dump(was);
	cr_expect_eq(try_apply(&maps, text, RL_APPLY, &applied, &err), -ENOSPC);
	cr_expect_eq(err.kind, RL_ERROR_KERNEL);
	cr_expect_not_null(strstr(err.text, has), "\"%s\" has \"%s\"", err.text, has);
	cr_expect_str_eq(dump(is), was);
	cr_expect_eq(unfinished(), 0);
}

Test(apply, what_does_not_fit_is_refused_whole_with_numbers)
{
	char text[8192];

	maps_end();
	maps_make(64, 80);
	many_say(text, sizeof(text), 0, 64, "1pps");
	expect_refused(text, "p has 64 limits, 64 of them new and 0 changed, and 63 of all fit");
	many_say(text, sizeof(text), 0, 63, "1pps");
	cr_expect_eq(apply(text).come, 63);
	expect_claimed(63, "full");
	/* Each of them changed takes a cell more; 16 are free. */
	many_say(text, sizeof(text), 0, 63, "2pps");
	expect_refused(text, "p has 63 limits, 0 of them new and 63 changed, and 16 of all fit");
	many_say(text, sizeof(text), 0, 16, "2pps");
	cr_expect_eq(apply(text).changed, 16);
	expect_claimed(16, "fewer");
	many_say(text, sizeof(text), 100, 150, "2pps");
	expect_refused(text, "p has 50 limits, 50 of them new and 0 changed, and 47 of all fit");
	many_say(text, sizeof(text), 100, 147, "2pps");
	cr_expect_eq(apply(text).come, 47);
	expect_claimed(47, "others");
}

Test(apply, what_killed_agents_had_claimed_is_found_again)
{
	struct rl_claim claim = {.id = 999999};

	apply(one);
	for (__u32 i = 1; i < MAPS_CELLS; i++) {
		struct rl_claim there;

		bpf_map_lookup_elem(maps.map[RL_MAP_CELLS], &i, &there);
		if (!there.id)
			bpf_map_update_elem(maps.map[RL_MAP_CELLS], &i, &claim, BPF_ANY);
		if (i < MAPS_SLOTS && bpf_map_lookup_elem(maps.map[RL_MAP_SLOTS], &i, &there) == 0 &&
		    !there.id)
			bpf_map_update_elem(maps.map[RL_MAP_SLOTS], &i, &claim, BPF_ANY);
	}
	apply(other);
	expect_claimed(OTHER_CLAIMED, "other");
}

/* ---- killed anywhere ---- */

static void act_one(void)
{
	apply(one);
}
static void act_other(void)
{
	apply(other);
}
static void act_nothing(void)
{
	apply("");
}

static const struct scenario {
	const char *name;
	void (*from)(void), (*to)(void);
} scenarios[] = {
    {"one to other", act_one, act_other},
    {"other to one", act_other, act_one},
    {"nothing to one", act_nothing, act_one},
    {"one to nothing", act_one, act_nothing},
};
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* The old policy or the new one is found; and each follows upon it, with nothing lost that isn't found again. */
static void check_killed(const struct scenario *scenario, const char *was, const char *is, const char *where)
{
	RL_HEADS struct rl_heads heads = {};
	char found[TEXT];
	struct rl_error err;
	__u32 claimed;

	dump(found);
	cr_assert(!strcmp(found, was) || !strcmp(found, is), "%s killed %s:\n%s", scenario->name, where,
		  found);
	scenario->to();
	cr_assert_str_eq(dump(found), is, "%s killed %s, done again", scenario->name, where);
	cr_assert_eq(unfinished(), 0);
	cr_assert_eq(rl_heads_open(&maps, RL_HEADS_WRITE, &heads, &err), 0);
	cr_assert_eq(rl_room_reclaim(&heads, &err), 0, "%s", err.text);
	claimed = maps_claimed(RL_MAP_SLOTS);
	cr_assert_eq(claimed,
		     scenario->to == act_one	 ? ONE_CLAIMED
		     : scenario->to == act_other ? OTHER_CLAIMED
						 : 0,
		     "%s killed %s: %u slots are taken", scenario->name, where, claimed);
	cr_assert_eq(maps_claimed(RL_MAP_CELLS), claimed, "%s killed %s", scenario->name, where);
	scenario->from();
	cr_assert_str_eq(dump(found), was, "%s killed %s, undone", scenario->name, where);
}

static void dump_both(const struct scenario *scenario, char was[TEXT], char is[TEXT])
{
	maps_attach(0, "eth0");
	maps_attach(1, "eth1");
	scenario->to();
	dump(is);
	scenario->from();
	dump(was);
	cr_assert_str_neq(was, is);
}

/* All of them take minutes, since each try waits for several grace periods. */
Test(apply, an_agent_killed_at_any_system_call_leaves_the_old_policy_or_the_new)
{
	int stride = getenv("RL_LONG") ? 1 : 29;
	char was[TEXT], is[TEXT], where[32];

	for (int i = 0; i < (int)SCENARIOS; i++) {
		int n = 1 + i;

		maps_end();
		maps_make_few();
		dump_both(&scenarios[i], was, is);
		for (; maps_killed_at(scenarios[i].to, n, 0); n += stride) {
			snprintf(where, sizeof(where), "at %d", n);
			check_killed(&scenarios[i], was, is, where);
		}
		cr_expect_gt(n, 50);
	}
}

/* Between two system calls heads are staged one by one, and settled one by one. */
Test(apply, an_agent_killed_between_system_calls_leaves_the_old_policy_or_the_new)
{
	int times = getenv("RL_LONG") ? 1000 : 6;
	char was[TEXT], is[TEXT], where[32];

	srand(3);
	for (size_t i = 0; i < SCENARIOS; i++) {
		maps_end();
		maps_make_few();
		dump_both(&scenarios[i], was, is);
		for (int time = 0; time < times; time++) {
			int n = 1 + rand() % 100, further = 1 + rand() % (rand() % 4 ? 300 : 4000);

			snprintf(where, sizeof(where), "at %d and %d", n, further);
			if (!maps_killed_at(scenarios[i].to, n, further))
				scenarios[i].to();
			check_killed(&scenarios[i], was, is, where);
		}
	}
}
