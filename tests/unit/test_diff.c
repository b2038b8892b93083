// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From one policy to another: what stays, changes, comes and goes, and what each limit is then. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/class.h"
#include "../../user/cleanup.h"
#include "../../user/diff.h"
#include "../../user/target.h"

#define NOW  1000000000000ULL
#define MOST 64

/* A policy in force: what the last diff has made. Slot and id are 100 and more. */
struct policy {
	struct rl_limit at[MOST];
	size_t count;
	__u32 next;
};

struct change {
	struct rl_policy_file file;
	struct rl_diff diff;
};

static struct rl_policy_file file_of(const char *text)
{
	struct rl_policy_file file = {};
	struct rl_error err = {};
	FILE *in = *text ? fmemopen((void *)text, strlen(text), "r") : fopen("/dev/null", "r");

	cr_assert_not_null(in);
	cr_assert_eq(rl_policy_file_read(in, "p", &file, &err), 0, "%s", err.text);
	fclose(in);
	return file;
}

static int diff_make(const struct rl_limit *old, size_t count, const struct rl_policy_file *file, __u64 now,
		     struct rl_diff *out, struct rl_error *err)
{
	RL_FREE const struct rl_limit **each = calloc(count + 1, sizeof(void *));

	cr_assert_not_null(each);
	for (size_t i = 0; i < count; i++)
		each[i] = &old[i];
	return rl_diff_make(each, count, file, now, out, err);
}

static struct change change_to(const struct policy *policy, const char *text, __u64 now)
{
	struct change change = {.file = file_of(text)};
	struct rl_error err = {};

	cr_assert_eq(diff_make(policy->at, policy->count, &change.file, now, &change.diff, &err), 0, "%s",
		     err.text);
	return change;
}

static void change_end(struct change *change)
{
	rl_diff_free(&change->diff);
	rl_policy_file_free(&change->file);
}

static const struct rl_step *step_of(const struct rl_diff *diff, const char *target_text,
				     const char *class_text)
{
	struct rl_target target;
	struct rl_class class = {};
	struct rl_error err;

	cr_assert_eq(rl_target_parse(target_text, &target, &err), 0);
	if (class_text)
		cr_assert_eq(rl_class_parse(class_text, &class, &err), 0);
	for (size_t i = 0; i < diff->count; i++)
		if (!rl_target_compare(diff->steps[i].target, &target) &&
		    rl_class_same(diff->steps[i].class, &class))
			return &diff->steps[i];
	cr_assert_fail("no step for %s %s", target_text, class_text ? class_text : "");
	return NULL;
}

/* Make it so: what comes gets a slot, and all that is wanted is in force. */
static void make_true(struct policy *policy, struct change *change)
{
	struct policy after = {.next = policy->next};
	size_t general = 0;

	for (size_t i = 0; i < change->diff.count; i++) {
		struct rl_step *step = &change->diff.steps[i];

		if (step->fate == RL_FATE_COMES)
			step->slot = step->id = 100 + after.next++;
	}
	for (size_t i = 0; i < change->diff.count; i++) {
		const struct rl_step *step = &change->diff.steps[i];
		bool class = rl_class_is_set(step->class);
		struct rl_error err;

		if (!step->wanted)
			continue;
		if (!class)
			general = after.count;
		cr_assert_lt(after.count, MOST);
		cr_assert_eq(rl_diff_limit(&change->diff, step, class ? &after.at[general] : NULL,
					   &after.at[after.count], &err),
			     0);
		after.count++;
	}
	*policy = after;
}

static struct rl_diff_counts apply_at(struct policy *policy, const char *text, __u64 now)
{
	struct change change = change_to(policy, text, now);
	struct rl_diff_counts said = change.diff.said;

	make_true(policy, &change);
	change_end(&change);
	return said;
}

static struct rl_diff_counts apply(struct policy *policy, const char *text)
{
	return apply_at(policy, text, NOW);
}

static const struct rl_limit *find(const struct policy *policy, const char *target_text,
				   const char *class_text)
{
	struct rl_class class = {};
	struct rl_target target;
	struct rl_error err;

	cr_assert_eq(rl_target_parse(target_text, &target, &err), 0);
	if (class_text)
		cr_assert_eq(rl_class_parse(class_text, &class, &err), 0);
	for (size_t i = 0; i < policy->count; i++)
		if (!rl_target_compare(&policy->at[i].target, &target) &&
		    rl_class_same(&policy->at[i].terms.class, &class))
			return &policy->at[i];
	return NULL;
}

/* The tenant of a prefix; "": none. */
static const char *tenant_of(const struct policy *policy, const char *target)
{
	const struct rl_limit *limit = find(policy, target, NULL);

	cr_assert_not_null(limit, "%s", target);
	for (size_t i = 0; i < policy->count; i++)
		if (limit->tenant && policy->at[i].slot == limit->tenant)
			return policy->at[i].target.name;
	cr_assert_eq(limit->tenant, 0, "%s has a tenant that isn't there", target);
	return "";
}

#define expect_counts(said, limits_, come_, changed_, gone_, same_)                                          \
	do {                                                                                                 \
		struct rl_diff_counts got_ = (said); /* a macro, for the line of the failure */              \
		cr_expect_eq(got_.limits, limits_, "%zu limits", got_.limits);                               \
		cr_expect_eq(got_.come, come_, "%zu new", got_.come);                                        \
		cr_expect_eq(got_.changed, changed_, "%zu changed", got_.changed);                           \
		cr_expect_eq(got_.gone, gone_, "%zu deleted", got_.gone);                                    \
		cr_expect_eq(got_.same, same_, "%zu the same", got_.same);                                   \
	} while (0)

static const char all_kinds[] = "set-limit any --rate 5kpps\n"
				"set-limit 10.0.0.0/8 --rate 1kpps --tenant acme\n"
				"set-limit 10.1.0.0/16 --class syn --rate 10pps\n"
				"set-limit 10.1.0.0/16 --class icmp --rate 10pps\n"
				"allow 192.0.2.0/28\n"
				"deny 192.0.2.66 --shadow\n"
				"set-limit tenant:acme --rate 2kpps\n"
				"set-limit dev:eth0 --rate 1mpps\n"
				"set-limit new --rate 20kpps\n";

Test(diff, from_nothing_all_comes)
{
	struct policy policy = {};
	struct change change = change_to(&policy, all_kinds, NOW);

	expect_counts(change.diff.said, 9, 9, 0, 0, 0);
	/* And the general limit of the prefix of which only classes are said. */
	cr_expect_eq(change.diff.fates[RL_FATE_COMES], 10);
	cr_expect_eq(change.diff.count, 10);
	cr_expect_null(step_of(&change.diff, "10.1.0.0/16", NULL)->line);
	change_end(&change);
}

Test(diff, the_same_again_is_nothing)
{
	struct policy policy = {}, before;
	struct change change;

	apply(&policy, all_kinds);
	before = policy;
	change = change_to(&policy, all_kinds, NOW + 5);
	expect_counts(change.diff.said, 9, 0, 0, 0, 9);
	cr_expect_eq(change.diff.fates[RL_FATE_STAYS], change.diff.count);
	make_true(&policy, &change);
	cr_expect_eq(policy.count, before.count);
	cr_expect_eq(memcmp(policy.at, before.at, sizeof(policy.at)), 0);
	change_end(&change);
}

Test(diff, to_nothing_all_goes)
{
	struct policy policy = {};
	struct change change;

	apply(&policy, all_kinds);
	change = change_to(&policy, "# nothing\n", NOW);
	expect_counts(change.diff.said, 0, 0, 0, 9, 0);
	cr_expect_eq(change.diff.fates[RL_FATE_GOES], 10);
	change_end(&change);
}

Test(diff, a_changed_limit_keeps_what_it_is)
{
	struct policy policy = {}, before;

	apply(&policy, all_kinds);
	before = policy;
	expect_counts(
	    apply_at(&policy,
		     "set-limit any --rate 6kpps --burst 1250\nset-limit tenant:acme --rate 2kpps --shadow\n"
		     "deny 192.0.2.66\n",
		     NOW + 7),
	    3, 0, 3, 6, 0);
	cr_expect_eq(find(&policy, "any", NULL)->id, find(&before, "any", NULL)->id);
	cr_expect_eq(find(&policy, "any", NULL)->slot, find(&before, "any", NULL)->slot);
	cr_expect_eq(find(&policy, "any", NULL)->gen, 2);
	cr_expect_eq(find(&policy, "any", NULL)->past[0].until, NOW + 7);
	/* Its rate is as it was. */
	cr_expect_eq(find(&policy, "tenant:acme", NULL)->gen, 1);
	cr_expect_eq(find(&policy, "tenant:acme", NULL)->flags & RL_LIMIT_SHADOW, RL_LIMIT_SHADOW);
	cr_expect_eq(find(&policy, "192.0.2.66", NULL)->id, find(&before, "192.0.2.66", NULL)->id);
	cr_expect_eq(policy.count, 3);
}

Test(diff, a_tenant_is_there_as_long_as_it_is_named)
{
	struct policy policy = {};
	__u32 id;

	expect_counts(apply(&policy, "set-limit 10.0.0.0/8 --rate 1pps --tenant acme"), 1, 1, 0, 0, 0);
	cr_assert_not_null(find(&policy, "tenant:acme", NULL));
	id = find(&policy, "tenant:acme", NULL)->id;
	/* It is given a limit, which an operator hasn't seen before, and loses it again. */
	expect_counts(
	    apply(&policy,
		  "set-limit 10.0.0.0/8 --rate 1pps --tenant acme\nset-limit tenant:acme --rate 5pps"),
	    2, 1, 0, 0, 1);
	cr_expect_eq(find(&policy, "tenant:acme", NULL)->id, id);
	expect_counts(apply(&policy, "set-limit 10.0.0.0/8 --rate 1pps --tenant acme"), 1, 0, 0, 1, 1);
	cr_expect_eq(find(&policy, "tenant:acme", NULL)->id, id);
	cr_expect_eq(find(&policy, "tenant:acme", NULL)->terms.packets_per_hour, 0);
	expect_counts(apply(&policy, "set-limit 10.0.0.0/8 --rate 1pps"), 1, 0, 1, 0, 0);
	cr_expect_null(find(&policy, "tenant:acme", NULL));
	/* One that nobody names, and that says something, stays. */
	expect_counts(apply(&policy, "set-limit tenant:idle --rate 5pps"), 1, 1, 0, 1, 0);
	cr_expect_not_null(find(&policy, "tenant:idle", NULL));
}

Test(diff, tenants_are_inherited_from_the_nearest_prefix_around)
{
	struct policy policy = {};

	apply(&policy,
	      "set-limit any --rate 1pps --tenant c\nset-limit 10.0.0.0/8 --rate 1pps\n"
	      "set-limit 10.1.0.0/16 --rate 1pps --tenant d\nset-limit 10.1.2.0/24 --class syn --rate 1pps\n"
	      "allow 10.1.2.3\nset-limit 10.2.0.0/16 --rate 1pps\nset-limit 2001:db8::/32 --rate 1pps\n");
	cr_expect_str_eq(tenant_of(&policy, "10.0.0.0/8"), "c");
	cr_expect_str_eq(tenant_of(&policy, "10.1.2.0/24"), "d");
	cr_expect_str_eq(tenant_of(&policy, "10.1.2.3"), "d");
	cr_expect_str_eq(tenant_of(&policy, "10.2.0.0/16"), "c");
	cr_expect_str_eq(tenant_of(&policy, "2001:db8::/32"), "c");
	/* The one between goes, the outer one changes. */
	apply(
	    &policy,
	    "set-limit any --rate 1pps\nset-limit 10.0.0.0/8 --rate 1pps --tenant e\n"
	    "set-limit 10.1.2.0/24 --class syn --rate 1pps\nallow 10.1.2.3\nset-limit 2001:db8::/32 --rate 1pps\n");
	cr_expect_str_eq(tenant_of(&policy, "any"), "");
	cr_expect_str_eq(tenant_of(&policy, "10.1.2.0/24"), "e");
	cr_expect_str_eq(tenant_of(&policy, "10.1.2.3"), "e");
	cr_expect_str_eq(tenant_of(&policy, "2001:db8::/32"), "");
	cr_expect_null(find(&policy, "tenant:d", NULL));
}

Test(diff, what_is_around_a_prefix_is_of_its_own_policy)
{
	struct policy policy = {};
	struct change change;

	apply(
	    &policy,
	    "set-limit any --rate 1pps\nset-limit 10.1.0.0/16 --rate 1pps\nset-limit 10.1.2.3 --rate 1pps\n");
	change = change_to(&policy,
			   "set-limit 10.0.0.0/8 --rate 1pps\nset-limit 10.1.2.0/24 --rate 1pps\n"
			   "set-limit 10.1.2.128/25 --rate 1pps\nset-limit 11.0.0.0/8 --rate 1pps\n",
			   NOW);
	cr_expect_eq(step_of(&change.diff, "10.0.0.0/8", NULL)->around_old,
		     step_of(&change.diff, "any", NULL));
	cr_expect_eq(step_of(&change.diff, "10.1.2.0/24", NULL)->around_old,
		     step_of(&change.diff, "10.1.0.0/16", NULL));
	cr_expect_eq(step_of(&change.diff, "10.1.2.128/25", NULL)->around_old,
		     step_of(&change.diff, "10.1.0.0/16", NULL));
	cr_expect_eq(step_of(&change.diff, "11.0.0.0/8", NULL)->around_old,
		     step_of(&change.diff, "any", NULL));
	cr_expect_null(step_of(&change.diff, "any", NULL)->around_new);
	cr_expect_eq(step_of(&change.diff, "10.1.0.0/16", NULL)->around_new,
		     step_of(&change.diff, "10.0.0.0/8", NULL));
	cr_expect_eq(step_of(&change.diff, "10.1.2.3", NULL)->around_new,
		     step_of(&change.diff, "10.1.2.0/24", NULL));
	change_end(&change);
}

static const char *classes_of(const struct policy *policy, const char *target, char out[128])
{
	const struct rl_limit *limit = find(policy, target, NULL);
	char class[RL_CLASS_TEXT];

	out[0] = '\0';
	for (int i = 0; i < limit->class_count; i++) {
		const struct rl_limit *its;

		strcat(strcat(out, i ? " " : ""), rl_class_print(&limit->class[i].class, class));
		its = find(policy, target, class);
		cr_assert_not_null(its);
		cr_expect_eq(its->slot, limit->class[i].slot);
		cr_expect_eq(its->level, RL_LEVEL_CLASS);
	}
	return out;
}

Test(diff, classes_hang_on_their_prefix_in_the_order_of_their_making)
{
	struct policy policy = {};
	char text[128];

	apply(&policy, "set-limit any --class udp --rate 1pps\nset-limit any --class tcp --rate 1pps\n");
	cr_expect_str_eq(classes_of(&policy, "any", text), "udp tcp");
	expect_counts(
	    apply(&policy, "set-limit any --class frag --rate 1pps\nset-limit any --class tcp --rate 1pps\n"
			   "set-limit any --class udp --rate 2pps\nset-limit any --class icmp --rate 1pps\n"),
	    4, 2, 1, 0, 1);
	cr_expect_str_eq(classes_of(&policy, "any", text), "udp tcp frag icmp");
	expect_counts(
	    apply(&policy, "set-limit any --class frag --rate 1pps\nset-limit any --class udp --rate 2pps\n"),
	    2, 0, 0, 2, 2);
	cr_expect_str_eq(classes_of(&policy, "any", text), "udp frag");
	/* A general limit comes to be said, and is unsaid again. */
	expect_counts(apply(&policy, "set-limit any --rate 1pps\nset-limit any --class udp --rate 2pps\n"), 2,
		      1, 0, 1, 1);
	expect_counts(apply(&policy, "set-limit any --class udp --rate 2pps\n"), 1, 0, 0, 1, 1);
	cr_expect_eq(find(&policy, "any", NULL)->terms.packets_per_hour, 0);
	expect_counts(apply(&policy, "allow any\n"), 1, 1, 0, 1, 0);
	cr_expect_str_eq(classes_of(&policy, "any", text), "");
}

Test(diff, a_class_has_its_buckets_where_its_prefix_has_them)
{
	struct policy policy = {};

	apply(&policy,
	      "set-limit 10.0.0.0/8 --rate 1pps --shared\nset-limit 10.0.0.0/8 --class udp --rate 1pps\n");
	cr_expect_eq(find(&policy, "10.0.0.0/8", "udp")->flags, RL_LIMIT_OWN_BUCKET);
	expect_counts(apply(&policy, "set-limit 10.0.0.0/8 --rate 1pps --per /24\n"
				     "set-limit 10.0.0.0/8 --class udp --rate 1pps\n"),
		      2, 0, 1, 0, 1);
	cr_expect_eq(find(&policy, "10.0.0.0/8", "udp")->flags, 0);
	cr_expect_eq(find(&policy, "10.0.0.0/8", "udp")->bits[0], 24);
}

Test(diff, a_debt_that_no_bucket_can_remember_is_of_its_line)
{
	struct rl_policy_file file = file_of("# too slow\nset-limit any --rate 1/h --burst 16\n");
	struct policy policy = {};
	struct rl_diff diff = {};
	struct rl_error err = {};

	apply(&policy, "set-limit any --rate 100mpps --burst 100m\n");
	cr_expect_lt(diff_make(policy.at, policy.count, &file, NOW, &diff, &err), 0);
	cr_expect_eq(strncmp(err.text, "p:2: any: what may be owed", 26), 0, "%s", err.text);
	cr_expect_null(diff.steps);
	rl_policy_file_free(&file);
}

Test(diff, a_large_policy_is_compared_in_a_moment)
{
	static char text[60000 * 64];
	size_t used = 0, count;
	struct rl_limit *limits;
	struct policy none = {};
	struct change change;
	struct rl_error err;

	for (int i = 0; i < 60000; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "set-limit 10.%d.%d.0/24 --rate 1kpps --tenant t%d\n", i >> 8,
					 i & 255, i % 1000);
	change = change_to(&none, text, NOW);
	count = change.diff.count;
	cr_expect_eq(count, 61000);
	limits = calloc(count, sizeof(*limits));
	for (size_t i = 0; i < count; i++)
		change.diff.steps[i].slot = change.diff.steps[i].id = (__u32)i + 1;
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(rl_diff_limit(&change.diff, &change.diff.steps[i], NULL, &limits[i], &err), 0);
	change_end(&change);
	change.file = file_of(text);
	cr_assert_eq(diff_make(limits, count, &change.file, NOW, &change.diff, &err), 0);
	cr_expect_eq(change.diff.fates[RL_FATE_STAYS], count);
	change_end(&change);
	free(limits);
}
