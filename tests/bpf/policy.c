// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The policy in the real maps, without a packet: what is set is found, whom a prefix belongs to, that nothing is lost or
 * taken twice, and that an agent may be killed anywhere.
 */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../user/class.h"
#include "../../user/cleanup.h"
#include "../../user/limit.h"
#include "../../user/policy.h"
#include "../../user/target.h"
#include "../../user/units.h"

static inline __u64 rl_now(void)
{
	return 0; /* no bucket is refunded here */
}

#include "../../bpf/rl_gcra.h"
#include "../../bpf/rl_ref.h"
#include "../../bpf/rl_table.h"
#include "maps.h"

#define TEXT 8192

static __u64 now = 1000000000000;

TestSuite(policy, .init = maps_make_few, .fini = maps_end, .timeout = 300);

/* ---- short forms ---- */

static struct rl_target target_of(const char *text)
{
	struct rl_target target;
	struct rl_error err;

	cr_assert_eq(rl_target_parse(text, &target, &err), 0, "%s", err.text);
	return target;
}

/* What set-limit says, as words: a rate, a burst "50p", "@tenant", ".class", a cost "syn=10", a reserve "high=20%", "shared",
 * "/28", "high", "shadow", "allow", "deny". */
static struct rl_terms terms_of(const struct rl_target *target, const char *words)
{
	struct rl_terms terms = {.priority = RL_PRIORITY_UNSET};
	struct rl_error err = {};
	char copy[128], *rest = copy;
	int rc = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word; !rc && (word = strtok_r(rest, " ", &rest));) {
		if (*word == '@')
			snprintf(terms.tenant, sizeof(terms.tenant), "%s", word + 1);
		else if (*word == '.')
			rc = rl_class_parse(word + 1, &terms.class, &err);
		else if (*word == '/')
			rc = rl_per_parse(word, &terms.per, &err);
		else if (strchr(word, '%'))
			rc = rl_reserve_parse(word, &terms, &err);
		else if (strchr(word, '='))
			rc = rl_costs_parse(word, &terms, &err);
		else if (!strcmp(word + strspn(word, "0123456789"), "p"))
			rc = rl_burst_parse(word, &terms, &err);
		else if (!strcmp(word, "shared"))
			terms.shared = 1;
		else if (!strcmp(word, "shadow"))
			terms.shadow = 1;
		else if (!strcmp(word, "allow"))
			terms.action = RL_ACTION_ALLOW;
		else if (!strcmp(word, "deny"))
			terms.action = RL_ACTION_DENY;
		else if (!strcmp(word, "high") || !strcmp(word, "normal") || !strcmp(word, "low"))
			rc = rl_priority_parse(word, &terms.priority, &err);
		else
			rc = rl_rate_parse(word, &terms, &err);
	}
	if (!rc)
		rc = rl_terms_complete(target, &terms, &err);
	cr_assert_eq(rc, 0, "%s: %s", words, err.text);
	return terms;
}

static int try_set(const char *text, const char *words, struct rl_error *err)
{
	struct rl_target target = target_of(text);
	struct rl_terms terms = terms_of(&target, words);

	now += 1000;
	return rl_policy_set(&maps, &target, &terms, now, err);
}

static void set(const char *text, const char *words)
{
	struct rl_error err = {};
	int rc = try_set(text, words, &err);

	cr_assert_eq(rc, 0, "%s %s: %d %s", text, words, rc, err.text);
}

static struct rl_class class_of(const char *text)
{
	struct rl_class class = {};
	struct rl_error err;

	if (text)
		cr_assert_eq(rl_class_parse(text, &class, &err), 0, "%s", err.text);
	return class;
}

static int try_del(const char *text, const char *class_text, struct rl_error *err)
{
	struct rl_target target = target_of(text);
	struct rl_class class = class_of(class_text);

	now += 1000;
	return rl_policy_delete(&maps, &target, class_text ? &class : NULL, now, err);
}

static void del(const char *text, const char *class)
{
	struct rl_error err = {};
	int rc = try_del(text, class, &err);

	cr_assert_eq(rc, 0, "%s: %d %s", text, rc, err.text);
}

static bool find(const char *text, const char *class_text, struct rl_limit *out)
{
	struct rl_target target = target_of(text);
	struct rl_class class = class_of(class_text);

	return rl_policy_find(&maps, &target, class_text ? &class : NULL, out);
}

static struct rl_limit get(const char *text, const char *class)
{
	struct rl_limit limit = {};

	cr_assert(find(text, class, &limit), "%s %s isn't there", text, class ? class : "");
	return limit;
}

static const char *tenant_name(const struct rl_limit *limit, struct rl_limit *tenant)
{
	if (!limit->tenant)
		return "-";
	cr_assert(rl_policy_slot(&maps, limit->tenant, tenant), "a tenant's slot without a limit");
	cr_assert_eq(tenant->level, RL_LEVEL_TENANT);
	return tenant->target.name;
}

static const char *tenant_of(const char *text)
{
	static struct rl_limit tenant;
	struct rl_limit limit = get(text, NULL);

	return tenant_name(&limit, &tenant);
}

/* All of the policy as text: targets, classes, terms, tenants in force. */
static const char *dump(char buf[TEXT])
{
	RL_FREE struct rl_limit *limits = NULL;
	struct rl_error err;
	size_t count, used = 0;

	cr_assert_eq(rl_policy_read(&maps, &limits, &count, &err), 0, "%s", err.text);
	buf[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT], terms[RL_TERMS_TEXT];
		bool is_class = rl_class_is_set(&limits[i].terms.class);
		struct rl_limit tenant;

		used += (size_t)snprintf(
		    buf + used, TEXT - used, "%s%s%s: %s of %s\n", rl_target_print(&limits[i].target, target),
		    is_class ? " " : "", is_class ? rl_class_print(&limits[i].terms.class, class) : "",
		    rl_terms_print(&limits[i].terms, terms), tenant_name(&limits[i], &tenant));
		cr_assert_lt(used, TEXT);
	}
	return buf;
}

/* As often as one likes. */
static void drop(const char *text, const char *class)
{
	struct rl_error err = {};
	int rc = try_del(text, class, &err);

	cr_assert(!rc || rc == -ENOENT, "%s: %d %s", text, rc, err.text);
}

static void expect_claimed(__u32 slots)
{
	cr_expect_eq(maps_claimed(RL_MAP_SLOTS), slots, "%u slots are taken, want %u",
		     maps_claimed(RL_MAP_SLOTS), slots);
	cr_expect_eq(maps_claimed(RL_MAP_CELLS), slots, "%u cells are taken, want %u",
		     maps_claimed(RL_MAP_CELLS), slots);
}

/* ---- set, find, read, delete ---- */

Test(policy, every_kind_is_found_and_read_in_order)
{
	char text[TEXT];

	maps_attach(3, "eth0");
	set("new", "20kpps");
	set("dev:eth0", "1mpps");
	set("tenant:zeta", "3kpps");
	set("tenant:acme", "2kpps high");
	set("2001:db8::/32", "500pps");
	set("198.51.100.0/24", "10mbit @acme");
	set("198.51.100.0/24", "100pps .syn");
	set("198.51.100.0/24", "200pps .udp/53 shadow");
	set("203.0.113.7", "1kpps shadow");
	set("any", "5kpps");
	set("192.0.2.0/24", "allow");
	set("192.0.2.128/25", "deny");
	cr_expect_str_eq(dump(text), "any: 5kpps burst 1250p of -\n"
				     "192.0.2.0/24: allow of -\n"
				     "192.0.2.128/25: deny of -\n"
				     "198.51.100.0/24: 10mbit burst 312.5kb, tenant acme of acme\n"
				     "198.51.100.0/24 syn: 100pps burst 25p of -\n"
				     "198.51.100.0/24 udp/53: 200pps burst 50p, shadow of -\n"
				     "203.0.113.7: 1kpps burst 250p, shadow of -\n"
				     "2001:db8::/32: 500pps burst 125p of -\n"
				     "tenant:acme: 2kpps burst 500p, priority high of -\n"
				     "tenant:zeta: 3kpps burst 750p of -\n"
				     "dev:eth0: 1mpps burst 250000p of -\n"
				     "new: 20kpps burst 5000p of -\n");
	expect_claimed(12);
	cr_expect_eq(maps_device_limit(3), get("dev:eth0", NULL).slot);
	cr_expect_eq(rl_policy_device(&maps, "eth0"), get("dev:eth0", NULL).slot);
	cr_expect_eq(maps_settings().fresh, get("new", NULL).slot);
	cr_expect_eq(get("198.51.100.0/24", "syn").level, RL_LEVEL_CLASS);
}

Test(policy, what_is_deleted_is_gone_and_given_back)
{
	static const char *const targets[] = {"new",	       "dev:eth0",	 "tenant:acme",
					      "2001:db8::/32", "203.0.113.0/24", "any"};
	struct rl_error err;
	struct rl_limit limit;

	maps_attach(0, "eth0");
	for (int i = 0; i < 6; i++)
		set(targets[i], "1kpps");
	set("203.0.113.0/24", "10pps .icmp");
	set("203.0.113.0/24", "10pps .tcp/443");
	expect_claimed(8);
	for (int i = 0; i < 6; i++) {
		del(targets[i], NULL);
		cr_expect(!find(targets[i], NULL, &limit), "%s", targets[i]);
		cr_expect_eq(try_del(targets[i], NULL, &err), -ENOENT);
		cr_expect_eq(err.kind, RL_ERROR_USAGE);
	}
	expect_claimed(0);
	cr_expect_eq(maps_device_limit(0), 0);
	cr_expect_eq(maps_settings().fresh, 0);
	cr_expect_eq(try_del("203.0.113.0/24", "icmp", &err), -ENOENT);
}

/* It waits for a device of its name, and leaves the others alone. */
Test(policy, a_devices_limit_goes_with_the_name)
{
	maps_attach(0, "eth0");
	set("dev:eth1", "1kpps");
	cr_expect_eq(maps_device_limit(0), 0);
	maps_attach(1, "eth1");
	cr_expect_eq(maps_device_limit(1), get("dev:eth1", NULL).slot);
}

/* Identity, bucket and counters outlive a change; the cell doesn't. */
static void check_changed_in_place(const char *text, const char *first, const char *second)
{
	struct rl_source source = {.buckets = {.word = {1, 2}}, .tally = {.passed = {3, 4}}}, after;
	struct rl_limit was, is;

	set(text, first);
	was = get(text, NULL);
	source.key = was.id;
	cr_assert_eq(bpf_map_update_elem(maps.map[RL_MAP_OWN], &was.slot, &source, BPF_ANY), 0);
	set(text, second);
	is = get(text, NULL);
	cr_expect_eq(is.id, was.id, "%s", text);
	cr_expect_eq(is.slot, was.slot, "%s", text);
	cr_expect_eq(is.gen, was.gen + 1, "%s", text);
	cr_assert_eq(bpf_map_lookup_elem(maps.map[RL_MAP_OWN], &was.slot, &after), 0);
	cr_expect_eq(memcmp(&after, &source, sizeof(after)), 0, "%s", text);
}

Test(policy, a_changed_limit_keeps_its_identity_and_its_bucket)
{
	maps_attach(0, "eth0");
	check_changed_in_place("203.0.113.7", "1kpps", "2kpps");
	check_changed_in_place("198.51.100.0/24", "1kpps @acme", "2kpps @other");
	check_changed_in_place("tenant:acme", "1kpps", "2kpps");
	check_changed_in_place("dev:eth0", "1kpps", "2kpps");
	check_changed_in_place("new", "1kpps", "2kpps");
	/* Trusted for a while: what it owed is kept. */
	check_changed_in_place("203.0.113.8", "1kpps", "allow");
	set("203.0.113.8", "1kpps");
	cr_expect_eq(get("203.0.113.8", NULL).gen, 3);
}

Test(policy, a_new_limit_at_an_old_ones_slot_finds_nothing_of_it)
{
	struct rl_source source = {.key = 1, .buckets = {.word = {77, 78}}}, found;
	struct rl_limit limit;
	__u32 first = 0;

	maps_end();
	maps_make(3, 8); /* two slots: one is taken, the other one comes again each time */
	set("any", "1kpps");
	for (int i = 0; i < 10; i++) {
		char text[32];

		snprintf(text, sizeof(text), "192.0.2.%d", i);
		set(text, "1kpps");
		limit = get(text, NULL);
		cr_assert_eq(bpf_map_lookup_elem(maps.map[RL_MAP_OWN], &limit.slot, &found), 0);
		cr_expect_eq(found.buckets.word[0], 0);
		cr_expect_eq(found.key, limit.id);
		cr_expect_gt(limit.id, first, "an id came again");
		first = limit.id;
		source.key = limit.id;
		cr_assert_eq(bpf_map_update_elem(maps.map[RL_MAP_OWN], &limit.slot, &source, BPF_ANY), 0);
		del(text, NULL);
	}
	expect_claimed(1);
}

/* ---- classes ---- */

Test(policy, a_class_makes_its_prefix_a_limit_without_a_rate)
{
	struct rl_limit limit;

	set("198.51.0.0/16", "1kpps @acme");
	set("198.51.100.0/24", "100pps .syn");
	limit = get("198.51.100.0/24", NULL);
	cr_expect_eq(limit.rate[RL_PACKETS].mult, 0);
	cr_expect_eq(limit.priority, RL_PRIORITY_UNSET);
	cr_expect_eq(limit.class_count, 1);
	cr_expect_str_eq(tenant_of("198.51.100.0/24"), "acme");
	expect_claimed(4);
	set("198.51.100.0/24", "100pps .udp");
	set("198.51.100.0/24", "50pps .syn");
	cr_expect_eq(get("198.51.100.0/24", "syn").terms.packets_per_hour, 50 * 3600);
	cr_expect_eq(get("198.51.100.0/24", "syn").gen, 2);
	expect_claimed(5);
	del("198.51.100.0/24", "syn");
	cr_expect(!find("198.51.100.0/24", "syn", &limit));
	cr_expect(find("198.51.100.0/24", "udp", &limit));
	expect_claimed(4);
	/* With the last class goes what was made for it. */
	del("198.51.100.0/24", "udp");
	cr_expect(!find("198.51.100.0/24", NULL, &limit));
	expect_claimed(2);
	/* But not a limit that was set. */
	set("198.51.0.0/16", "100pps .syn");
	del("198.51.0.0/16", "syn");
	cr_expect(find("198.51.0.0/16", NULL, &limit));
	expect_claimed(2);
}

Test(policy, a_prefix_has_eight_classes_at_most)
{
	char words[32], before[TEXT], after[TEXT];
	struct rl_error err = {};

	for (int i = 1; i <= RL_MAX_CLASSES; i++) {
		snprintf(words, sizeof(words), "100pps .tcp/%d", i);
		set("198.51.100.0/24", words);
	}
	dump(before);
	cr_expect_eq(try_set("198.51.100.0/24", "100pps .tcp/9", &err), -E2BIG);
	cr_expect_eq(err.kind, RL_ERROR_KERNEL, "as where the whole policy is full");
	cr_expect_str_eq(dump(after), before);
	expect_claimed(9);
	set("198.51.100.0/24", "100pps .tcp/8");
	set("198.51.100.0/24", "1kpps");
	cr_expect_eq(get("198.51.100.0/24", NULL).class_count, 8);
	expect_claimed(9);
	del("198.51.100.0/24", "tcp/3");
	set("198.51.100.0/24", "100pps .tcp/9");
	expect_claimed(9);
}

Test(policy, trust_takes_the_place_of_the_classes)
{
	struct rl_error err = {};

	set("198.51.100.0/24", "1kpps");
	set("198.51.100.0/24", "100pps .syn");
	set("198.51.100.0/24", "allow");
	cr_expect_eq(get("198.51.100.0/24", NULL).class_count, 0);
	expect_claimed(1);
	cr_expect_eq(try_set("198.51.100.0/24", "100pps .syn", &err), -EINVAL);
	cr_expect_eq(err.kind, RL_ERROR_USAGE);
	set("198.51.100.0/24", "deny");
	cr_expect_eq(get("198.51.100.0/24", NULL).action, RL_ACTION_DENY);
	expect_claimed(1);
}

Test(policy, a_class_has_its_buckets_where_its_target_has_them)
{
	set("198.51.100.0/24", "1kpps shared");
	set("198.51.100.0/24", "100pps .syn");
	cr_expect(get("198.51.100.0/24", "syn").flags & RL_LIMIT_OWN_BUCKET);
	set("198.51.100.0/24", "1kpps /28");
	cr_expect(!(get("198.51.100.0/24", "syn").flags & RL_LIMIT_OWN_BUCKET));
	cr_expect_eq(get("198.51.100.0/24", "syn").bits[0], 28);
	set("198.51.100.0/24", "1kpps");
	cr_expect_eq(get("198.51.100.0/24", "syn").bits[0], 32);
	set("198.51.100.0/24", "99pps .syn");
	cr_expect_eq(get("198.51.100.0/24", "syn").bits[0], 32);
	set("203.0.113.7", "10pps .icmp");
	cr_expect(get("203.0.113.7", "icmp").flags & RL_LIMIT_OWN_BUCKET);
	expect_claimed(4);
}

/* ---- tenants ---- */

Test(policy, a_tenant_has_a_place_as_soon_as_it_is_named)
{
	struct rl_limit limit, tenant;
	struct rl_error err;
	__u32 slot;

	set("198.51.100.0/24", "1kpps @acme");
	cr_expect(!find("tenant:acme", NULL, &limit), "it says nothing yet");
	cr_expect_eq(try_del("tenant:acme", NULL, &err), -ENOENT);
	slot = get("198.51.100.0/24", NULL).tenant;
	cr_assert(rl_policy_slot(&maps, slot, &tenant));
	cr_expect_eq(tenant.rate[RL_PACKETS].mult, 0);
	cr_expect_eq(tenant.priority, RL_PRIORITY_UNSET);
	set("tenant:acme", "2kpps");
	cr_expect_eq(get("tenant:acme", NULL).slot, slot);
	cr_expect_eq(get("tenant:acme", NULL).id, tenant.id);
	expect_claimed(2);
	/* Deleted, it keeps its place. */
	del("tenant:acme", NULL);
	cr_expect(!find("tenant:acme", NULL, &limit));
	cr_expect_str_eq(tenant_of("198.51.100.0/24"), "acme");
	set("tenant:acme", "2kpps");
	cr_expect_eq(get("tenant:acme", NULL).gen, 4);
	cr_expect_eq(get("tenant:acme", NULL).slot, slot);
	/* Where nobody belongs to it, it goes. */
	del("198.51.100.0/24", NULL);
	del("tenant:acme", NULL);
	expect_claimed(0);
}

Test(policy, tenants_are_inherited_from_the_nearest_prefix_around)
{
	char text[TEXT];

	set("10.1.2.3", "1pps");
	set("10.1.2.0/24", "1pps");
	set("10.1.0.0/16", "1pps");
	set("10.1.0.0/16", "1pps .syn");
	cr_expect_str_eq(tenant_of("10.1.2.3"), "-");
	set("10.0.0.0/8", "1pps @a");
	cr_expect_str_eq(tenant_of("10.1.2.3"), "a");
	cr_expect_str_eq(tenant_of("10.1.0.0/16"), "a");
	set("10.1.2.0/24", "1pps @b");
	cr_expect_str_eq(tenant_of("10.1.2.3"), "b");
	cr_expect_str_eq(tenant_of("10.1.0.0/16"), "a");
	set("any", "1pps @c");
	cr_expect_str_eq(tenant_of("10.1.0.0/16"), "a");
	set("10.0.0.0/8", "1pps");
	cr_expect_str_eq(tenant_of("10.0.0.0/8"), "c");
	cr_expect_str_eq(tenant_of("10.1.0.0/16"), "c");
	cr_expect_str_eq(tenant_of("10.1.2.3"), "b");
	set("10.1.2.3", "deny");
	cr_expect_str_eq(tenant_of("10.1.2.3"), "b");
	set("2001:db8::/32", "1pps");
	cr_expect_str_eq(tenant_of("2001:db8::/32"), "c");
	del("10.1.2.0/24", NULL);
	cr_expect_str_eq(tenant_of("10.1.2.3"), "c");
	del("any", NULL);
	cr_expect_str_eq(tenant_of("10.1.2.3"), "-");
	cr_expect_str_eq(tenant_of("2001:db8::/32"), "-");
	cr_expect_eq(get("10.1.0.0/16", NULL).class_count, 1);
	cr_expect_str_eq(dump(text), "10.0.0.0/8: 1pps burst 16p of -\n"
				     "10.1.0.0/16: 1pps burst 16p of -\n"
				     "10.1.0.0/16 syn: 1pps burst 16p of -\n"
				     "10.1.2.3: deny of -\n"
				     "2001:db8::/32: 1pps burst 16p of -\n");
	expect_claimed(5 + 3);
}

/* ---- contradictions ---- */

/* Would `words` for the target, or with NULL its deletion, contradict what there is? The text of the refusal, or NULL. */
static const char *refusal(const char *text, const char *words)
{
	static struct rl_error err;
	struct rl_target target = target_of(text);
	struct rl_terms terms = {};

	if (words)
		terms = terms_of(&target, words);
	err = (struct rl_error){};
	if (!rl_policy_check(&maps, &target, &terms.class, words ? &terms : NULL, &err))
		return NULL;
	cr_expect_eq(err.kind, RL_ERROR_USAGE);
	return err.text;
}

/* Refused for what `payer` costs `shared`. */
static void check_contradicts(const char *text, const char *words, const char *payer, const char *shared)
{
	const char *why = refusal(text, words);

	cr_assert_not_null(why, "%s %s is accepted", text, words ? words : "deleted");
	cr_expect(strstr(why, payer) && strstr(why, shared), "%s %s: %s", text, words ? words : "deleted",
		  why);
}

/* Accepted, and done. */
static void set_checked(const char *text, const char *words)
{
	const char *why = refusal(text, words);

	cr_assert_null(why, "%s %s: %s", text, words, why);
	set(text, words);
}

Test(policy, a_cost_that_a_tenant_can_never_hold_is_refused_in_any_order)
{
	set_checked("tenant:acme", "100pps 50p");
	check_contradicts("10.0.0.0/8", "1kpps @acme syn=51", "cost syn=51 of 10.0.0.0/8", "burst 50p");
	set_checked("10.0.0.0/8", "1kpps @acme syn=50");
	check_contradicts("tenant:acme", "100pps 49p", "of 10.0.0.0/8", "burst 49p");
	check_contradicts("tenant:acme", "100pps 50p high=2%", "priority normal, 49", "at least 52p");
	set_checked("tenant:acme", "100pps 50p normal=2%");
	check_contradicts("tenant:acme", "100pps 50p normal=2% low", "priority low, 49", "at least 52p");
	check_contradicts("10.0.0.0/8", "1kpps @acme syn=50 low", "priority low, 49", "tenant:acme");
	/* A limit's priority beats its tenant's. */
	set_checked("10.0.0.0/8", "1kpps @acme syn=50 normal");
	set_checked("tenant:acme", "100pps 50p normal=2% low");
	/* Bits have no costs, and a tenant that says no rate holds whatever there is. */
	set_checked("tenant:acme", "10mbit");
	set_checked("10.0.0.0/8", "10mbit @acme syn=65535");
	check_contradicts("tenant:acme", "100pps 50p", "cost syn=65535", "at least 65535p");
	set_checked("10.0.0.0/8", "1kpps @acme");
	set_checked("tenant:acme", "100pps 1p");
}

Test(policy, a_cost_counts_at_the_tenant_that_is_inherited)
{
	set_checked("tenant:acme", "100pps 50p");
	set_checked("10.1.2.0/24", "1kpps syn=51");
	check_contradicts("10.0.0.0/8", "1kpps @acme", "of 10.1.2.0/24", "tenant:acme");
	check_contradicts("any", "deny @acme", "of 10.1.2.0/24", "tenant:acme");
	set_checked("10.1.0.0/16", "1kpps @other");
	set_checked("10.0.0.0/8", "1kpps @acme");
	check_contradicts("10.1.0.0/16", "1kpps", "of 10.1.2.0/24", "tenant:acme");
	check_contradicts("10.1.0.0/16", "allow", "of 10.1.2.0/24", "tenant:acme");
	check_contradicts("10.1.0.0/16", NULL, "of 10.1.2.0/24", "tenant:acme");
	check_contradicts("10.1.2.0/25", "1kpps @acme syn=51", "of 10.1.2.0/25", "tenant:acme");
	set_checked("10.1.2.0/25", "1kpps syn=51");
	set_checked("10.1.2.0/24", "1kpps");
	check_contradicts("10.1.2.0/24", "1kpps @acme", "of 10.1.2.0/25", "tenant:acme");
	cr_expect_null(refusal("tenant:acme", NULL));
	cr_expect_null(refusal("10.0.0.0/8", NULL));
	cr_expect_null(refusal("10.1.0.0/16", "1pps .syn"));
}

Test(policy, a_cost_that_a_device_can_never_hold_is_refused_in_any_order)
{
	set_checked("tenant:acme", "1kpps high");
	set_checked("10.0.0.0/8", "1kpps @acme syn=50");
	set_checked("192.0.2.0/24", "1kpps udp=40");
	check_contradicts("dev:eth0", "1kpps 49p", "of 10.0.0.0/8", "dev:eth0");
	check_contradicts("dev:eth0", "1kpps 50p high=30%", "of 192.0.2.0/24", "priority normal, 35");
	set_checked("dev:eth0", "1kpps 50p high=20%");
	check_contradicts("10.0.0.0/8", "1kpps syn=50", "priority normal, 40", "dev:eth0");
	check_contradicts("tenant:acme", "1kpps", "of 10.0.0.0/8", "dev:eth0");
	check_contradicts("tenant:acme", NULL, "of 10.0.0.0/8", "dev:eth0");
	check_contradicts("192.0.2.0/24", "1kpps udp=41", "of 192.0.2.0/24", "dev:eth0");
	/* Each of them, attached or not. */
	set_checked("dev:eth1", "1kpps 60p");
	check_contradicts("any", "1kpps udp=61 high", "cost udp=61 of any", "dev:eth0");
	cr_expect_null(refusal("dev:eth0", NULL));
	del("dev:eth0", NULL);
	check_contradicts("any", "1kpps udp=61 high", "cost udp=61 of any", "dev:eth1");
	set_checked("any", "1kpps udp=60 high");
	cr_expect_null(refusal("new", "1pps"));
}

/* As an older rl-agent may have left it: nothing stands in the way of what makes it better. */
Test(policy, a_policy_that_contradicts_itself_already_can_be_changed)
{
	set("tenant:acme", "100pps 50p");
	set("10.0.0.0/8", "1kpps @acme syn=51");
	set("10.1.0.0/16", "1kpps @acme syn=52");
	set_checked("10.0.0.0/8", "1kpps @acme");
	set_checked("10.1.0.0/16", "1kpps @acme");
	check_contradicts("10.0.0.0/8", "1kpps @acme syn=51", "of 10.0.0.0/8", "tenant:acme");
}

/* Is there a prefix in force whose dearest packet its tenant's or a device's bucket, as packets find them, can't hold? */
static bool contradicts_itself(void)
{
	RL_FREE struct rl_limit *limits = NULL;
	struct rl_error err;
	bool found = false;
	size_t count;

	cr_assert_eq(rl_policy_read(&maps, &limits, &count, &err), 0, "%s", err.text);
	for (size_t i = 0; i < count; i++) {
		const struct rl_limit *limit = &limits[i];
		struct rl_limit shared[2];
		__u8 priority = limit->priority;
		size_t n = rl_policy_slot(&maps, limit->tenant, &shared[0]);

		if (limit->level != RL_LEVEL_SOURCE || !limit->cost_count)
			continue;
		if (priority == RL_PRIORITY_UNSET && n)
			priority = shared[0].priority;
		if (priority == RL_PRIORITY_UNSET)
			priority = RL_PRIORITY_NORMAL;
		n += rl_policy_slot(&maps, maps_device_limit(0), &shared[n]);
		while (n--) {
			const struct rl_rate *rate = &shared[n].rate[RL_PACKETS];

			found |= rate->mult && rl_gcra_cost(rate, limit->cost[0].tokens) >
						   rate->burst - rate->kept[priority];
		}
	}
	return found;
}

static const char *random_words(const char *target, char words[128])
{
	static const char *const priorities[] = {"", " high", " normal", " low"};
	static const char *const tenants[] = {"", " @acme", " @bulk"};
	static const char *const reserves[] = {"", " high=10%", " normal=10%", " high=10%,normal=10%"};
	int used = snprintf(words, 128, "1kpps");

	if (!strcmp(target, "dev:eth0") || !strncmp(target, "tenant:", 7))
		used += snprintf(words + used, 128 - (size_t)used, " %dp%s", 5 + rand() % 10,
				 reserves[rand() % 4]);
	else
		used += snprintf(words + used, 128 - (size_t)used, "%s", tenants[rand() % 3]);
	if (strchr(target, '.') && rand() % 2)
		used += snprintf(words + used, 128 - (size_t)used, " syn=%d", 2 + rand() % 10);
	if (strcmp(target, "dev:eth0") != 0)
		snprintf(words + used, 128 - (size_t)used, "%s", priorities[rand() % 4]);
	return words;
}

/* What is refused would contradict, and what is accepted doesn't: done all the same, seen as packets see it, and undone. */
Test(policy, what_is_refused_contradicts_and_nothing_else)
{
	static const char *const targets[] = {"10.0.0.0/8",   "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3",
					      "192.0.2.0/24", "tenant:acme", "tenant:bulk", "dev:eth0"};
	int steps = getenv("RL_LONG") ? 50000 : 3000, refused = 0;

	maps_attach(0, "eth0");
	srand(11);
	for (int i = 0; i < steps; i++) {
		const char *target = targets[rand() % 8], *words = NULL, *why;
		struct rl_limit old;
		struct rl_error err;
		bool there = find(target, NULL, &old);
		char buf[128];

		if (!there || rand() % 4)
			words = random_words(target, buf);
		why = refusal(target, words);
		if (words)
			set(target, words);
		else
			del(target, NULL);
		cr_assert_eq(why != NULL, contradicts_itself(), "step %d: %s %s: %s", i, target,
			     words ? words : "deleted", why ? why : "accepted");
		refused += why != NULL;
		if (why && there)
			cr_assert_eq(rl_policy_set(&maps, &old.target, &old.terms, now, &err), 0, "%s",
				     err.text);
		else if (why)
			del(target, NULL);
	}
	cr_expect(refused > steps / 20 && refused < steps / 2, "%d of %d refused", refused, steps);
}

/* ---- against a model ---- */

#define MODEL_PREFIXES 40
#define MODEL_TENANTS  4

struct model {
	const char *text;
	struct rl_prefix prefix;
	bool there;
	int tenant; /* of its own; -1: none */
	int classes;
};

/* The longest prefix that is there and covers this one; but for itself where `around`. */
static int model_match(const struct model *model, const struct rl_prefix *prefix, bool around)
{
	int best = -1;

	for (int i = 0; i < MODEL_PREFIXES; i++) {
		if (!model[i].there || !rl_prefix_covers(&model[i].prefix, prefix) ||
		    (around && !rl_prefix_compare(&model[i].prefix, prefix)))
			continue;
		if (best < 0 || model[i].prefix.prefixlen > model[best].prefix.prefixlen)
			best = i;
	}
	return best;
}

static int model_tenant(const struct model *model, int i)
{
	while (i >= 0 && model[i].tenant < 0)
		i = model_match(model, &model[i].prefix, true);
	return i < 0 ? -1 : model[i].tenant;
}

static void model_check(const struct model *model, int step)
{
	struct rl_limit limit, tenant;
	__u32 expected = 0;

	for (int i = 0; i < MODEL_PREFIXES; i++) {
		int matched = model_match(model, &model[i].prefix, false), belongs;
		bool found = rl_policy_match(&maps, &model[i].prefix, &limit);

		expected += model[i].there ? 1 + (__u32)model[i].classes : 0;
		cr_assert_eq(found, matched >= 0, "step %d: %s", step, model[i].text);
		if (!found)
			continue;
		belongs = model_tenant(model, matched);
		cr_assert_eq(rl_prefix_compare(&limit.target.prefix, &model[matched].prefix), 0,
			     "step %d: %s", step, model[i].text);
		cr_assert_eq(limit.class_count, model[matched].classes, "step %d: %s", step, model[i].text);
		cr_assert_eq(limit.tenant != 0, belongs >= 0, "step %d: %s", step, model[i].text);
		if (belongs >= 0)
			cr_assert_eq(tenant_name(&limit, &tenant)[1], '0' + belongs, "step %d: %s", step,
				     model[i].text);
	}
	/* And the tenants that were ever named. */
	cr_assert_leq(maps_claimed(RL_MAP_SLOTS), expected + MODEL_TENANTS, "step %d", step);
	cr_assert_eq(maps_claimed(RL_MAP_SLOTS), maps_claimed(RL_MAP_CELLS), "step %d", step);
}

static void model_step(struct model *model)
{
	struct model *one = &model[rand() % MODEL_PREFIXES];
	int what = rand() % 8, tenant = rand() % (MODEL_TENANTS + 2) - 2;
	char words[64];

	if (what == 0 && one->there) {
		del(one->text, NULL);
		*one = (struct model){.text = one->text, .prefix = one->prefix, .tenant = -1};
	} else if (what == 1 && one->there && one->classes < 3) {
		snprintf(words, sizeof(words), "5pps .tcp/%d", one->classes + 1);
		set(one->text, words);
		one->classes++;
	} else if (what > 1) {
		one->tenant = tenant < 0 ? -1 : tenant;
		one->there = true;
		snprintf(words, sizeof(words), "%dpps", 1 + rand() % 9);
		if (one->tenant >= 0)
			snprintf(words + strlen(words), sizeof(words) - strlen(words), " @t%d", one->tenant);
		set(one->text, words);
	}
}

Test(policy, random_changes_agree_with_a_model)
{
	static struct model model[MODEL_PREFIXES];
	static char texts[MODEL_PREFIXES][RL_PREFIX_TEXT];
	int steps = getenv("RL_LONG") ? 20000 : 1000;

	srand(7);
	for (int i = 0; i < MODEL_PREFIXES; i++) {
		__u8 addr[16] = {10, (__u8)(i & 1), (__u8)(i >> 1 & 1), (__u8)(i >> 2)};
		bool six = i % 4 == 3;

		model[i].prefix = rl_prefix_cut(six ? 6 : 4, addr, (unsigned int)(i % 11 * 3 + 2));
		if (i == 0)
			model[i].prefix = (struct rl_prefix){};
		model[i].text = rl_prefix_print(&model[i].prefix, texts[i]);
		model[i].tenant = -1;
		for (int k = 0; k < i; k++) /* two alike would be one target */
			if (!rl_prefix_compare(&model[k].prefix, &model[i].prefix))
				model[i] = (struct model){
				    .text = model[k].text, .prefix = model[k].prefix, .tenant = -2};
	}
	for (int i = 0; i < MODEL_PREFIXES; i++)
		if (model[i].tenant == -2) { /* one of its own instead */
			model[i].prefix = rl_prefix_cut(4, (__u8[16]){10, 0, (__u8)i, (__u8)i}, 32);
			model[i].text = rl_prefix_print(&model[i].prefix, texts[i]);
			model[i].tenant = -1;
		}
	for (int step = 0; step < steps; step++) {
		model_step(model);
		model_check(model, step);
	}
}

/* ---- room ---- */

Test(policy, a_full_policy_is_refused_whole_and_can_still_be_changed)
{
	char text[32], before[TEXT], after[TEXT];
	struct rl_error err = {};
	int made = 0;

	maps_end();
	maps_make(32, 40);
	while (made < 100) {
		snprintf(text, sizeof(text), "192.0.2.%d", made);
		if (try_set(text, "1kpps", &err))
			break;
		made++;
	}
	cr_expect_eq(made, 31);
	cr_expect_eq(err.kind, RL_ERROR_KERNEL);
	cr_expect_not_null(strstr(err.text, "full"), "%s", err.text);
	dump(before);
	cr_expect_eq(try_set("198.51.100.0/24", "1pps .syn", &err), -ENOSPC);
	cr_expect_eq(try_set("192.0.2.3", "1kpps @acme", &err), -ENOSPC);
	cr_expect_str_eq(dump(after), before);
	expect_claimed(31);
	for (int i = 0; i < 200; i++)
		set("192.0.2.5", i % 2 ? "1kpps" : "2kpps");
	del("192.0.2.7", NULL);
	set("198.51.100.0/24", "1kpps");
	expect_claimed(31);
}

/* More heirs than there are free cells: refused, and nothing of it stays. */
Test(policy, a_change_of_too_many_is_refused_whole)
{
	char text[32], before[TEXT], after[TEXT];
	struct rl_error err = {};

	maps_end();
	maps_make(32, 40);
	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "192.0.2.%d", i);
		set(text, "1kpps");
	}
	dump(before);
	cr_expect_eq(try_set("192.0.2.0/24", "1kpps @acme", &err), -ENOSPC);
	cr_expect_not_null(strstr(err.text, "touches more limits"), "%s", err.text);
	cr_expect_str_eq(dump(after), before);
	set("192.0.2.0/24", "1kpps");
	cr_expect_leq(maps_claimed(RL_MAP_SLOTS), 22);
}

Test(policy, what_killed_agents_had_claimed_is_found_again)
{
	struct rl_claim claim = {.id = 999999};

	set("198.51.100.0/24", "1kpps @acme");
	set("198.51.100.0/24", "1pps .syn");
	set("198.51.100.7", "1kpps");
	for (__u32 i = 1; i < MAPS_CELLS; i++) {
		struct rl_claim there;

		bpf_map_lookup_elem(maps.map[RL_MAP_CELLS], &i, &there);
		if (!there.id)
			bpf_map_update_elem(maps.map[RL_MAP_CELLS], &i, &claim, BPF_ANY);
		if (i < MAPS_SLOTS && bpf_map_lookup_elem(maps.map[RL_MAP_SLOTS], &i, &there) == 0 &&
		    !there.id)
			bpf_map_update_elem(maps.map[RL_MAP_SLOTS], &i, &claim, BPF_ANY);
	}
	set("192.0.2.1", "1kpps");
	expect_claimed(5);
	cr_expect_str_eq(tenant_of("198.51.100.7"), "acme");
	cr_expect_eq(get("198.51.100.0/24", "syn").level, RL_LEVEL_CLASS);
}

/* ---- killed anywhere ---- */

struct scenario {
	const char *name;
	void (*before)(void);
	void (*act)(void);
	void (*undo)(void);
};

static void check_scenario(const struct scenario *scenario)
{
	char was[TEXT], is[TEXT], found[TEXT];
	int n = 1;

	scenario->before();
	dump(was);
	scenario->act();
	dump(is);
	scenario->undo();
	cr_assert_str_eq(dump(found), was, "%s: undone", scenario->name);
	cr_assert_str_neq(was, is, "%s", scenario->name);
	for (; maps_killed_at(scenario->act, n, 0); n++) {
		dump(found);
		cr_assert(!strcmp(found, was) || !strcmp(found, is), "%s killed at %d:\n%s", scenario->name,
			  n, found);
		scenario->act();
		cr_assert_str_eq(dump(found), is, "%s killed at %d, done again", scenario->name, n);
		scenario->undo();
		cr_assert_str_eq(dump(found), was, "%s killed at %d, undone", scenario->name, n);
	}
	scenario->undo();
	cr_expect_gt(n, 10);
}

static void nested(void)
{
	set("any", "1pps @c");
	set("10.1.2.3", "1pps");
	set("10.1.2.0/24", "1pps");
	set("10.1.0.0/16", "1pps");
	set("10.1.0.0/16", "1pps .syn");
	set("10.1.9.0/24", "1pps @d");
}

static void nested_more(void)
{
	nested();
	set("10.0.0.0/8", "1pps");
}

static void add_owned(void)
{
	set("10.0.0.0/8", "2pps @a");
}
static void drop_eight(void)
{
	drop("10.0.0.0/8", NULL);
}
static void plain_eight(void)
{
	set("10.0.0.0/8", "1pps");
}
static void nested_owned(void)
{
	nested();
	set("10.0.0.0/8", "2pps @a");
	set("10.0.0.0/8", "1pps .udp");
}
static void owned_again(void)
{
	set("10.0.0.0/8", "2pps @a");
	set("10.0.0.0/8", "1pps .udp");
}
static void add_plain(void)
{
	set("10.2.0.0/16", "2pps");
}
static void drop_plain(void)
{
	drop("10.2.0.0/16", NULL);
}
static void add_class(void)
{
	set("10.3.0.0/16", "2pps .udp");
}
static void drop_class(void)
{
	drop("10.3.0.0/16", "udp");
}
static void add_tenant(void)
{
	set("tenant:c", "2pps");
}
static void drop_tenant(void)
{
	drop("tenant:c", NULL);
}
static void add_new(void)
{
	set("new", "2pps");
}
static void drop_new(void)
{
	drop("new", NULL);
}
static void with_device(void)
{
	nested();
	maps_attach(0, "eth0");
}
static void add_device(void)
{
	set("dev:eth0", "2pps");
}
static void drop_device(void)
{
	drop("dev:eth0", NULL);
}

static const struct scenario scenarios[] = {
    {"a prefix whose tenant others inherit", nested, add_owned, drop_eight},
    {"a tenant for a prefix that is there", nested_more, add_owned, plain_eight},
    {"a prefix whose tenant others inherited goes", nested_owned, drop_eight, owned_again},
    {"a prefix", nested, add_plain, drop_plain},
    {"a prefix goes", nested_more, drop_eight, plain_eight},
    {"a class and its prefix", nested, add_class, drop_class},
    {"a tenant that is named", nested, add_tenant, drop_tenant},
    {"new", nested, add_new, drop_new},
    {"a device", with_device, add_device, drop_device},
};

Test(policy, an_agent_killed_at_any_system_call_leaves_the_old_policy_or_the_new)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		maps_end();
		maps_make_few();
		check_scenario(&scenarios[i]);
	}
}

/*
 * A prefix was deleted, and set anew in another slot; the old slot's head is staged still. An agent claims that slot for
 * something else and is killed before it writes the head: the next change of several heads takes nothing away for it.
 */
Test(policy, a_head_that_was_left_staged_takes_no_prefix_away)
{
	struct rl_claim claim = {.id = 99};
	struct rl_limit gone, alive;

	set("10.0.0.0/24", "1pps");
	gone = get("10.0.0.0/24", NULL);
	del("10.0.0.0/24", NULL);
	set("10.0.0.0/24", "2pps");
	alive = get("10.0.0.0/24", NULL);
	cr_assert_neq(alive.slot, gone.slot);
	cr_assert_eq(bpf_map_update_elem(maps.map[RL_MAP_SLOTS], &gone.slot, &claim, BPF_ANY), 0);
	set("10.1.0.0/16", "1pps");
	set("10.1.1.0/24", "1pps");
	set("10.1.0.0/16", "1pps @acme");
	cr_expect_str_eq(tenant_of("10.1.1.0/24"), "acme", "the change wasn't one of several heads");
	cr_expect_eq(get("10.0.0.0/24", NULL).id, alive.id);
}

/* Between two system calls heads are staged one by one, and settled one by one. */
Test(policy, a_change_that_is_half_staged_or_half_settled_is_mended)
{
	static const char *const heirs[] = {"10.1.0.0/16", "10.1.2.0/24", "10.1.2.3"};
	char was[TEXT], found[TEXT];
	struct rl_meta meta;
	struct rl_error err;

	nested();
	dump(was);
	for (__u32 flipped = 0; flipped < 2; flipped++)
		for (int staged = 1; staged <= 3; staged++) {
			__u32 epoch = maps_settings().epoch, only = 0;

			for (int i = 0; i < staged; i++) {
				struct rl_limit limit = get(heirs[i], NULL), other = limit;
				__u32 cell = MAPS_CELLS - 1 - (__u32)i;
				struct rl_claim claim = {.id = limit.id};
				__u64 ref;

				other.tenant = 0;
				bpf_map_lookup_elem(maps.map[RL_MAP_HEADS], &limit.slot, &ref);
				ref = flipped ? rl_ref_staged(cell, rl_ref_cell(ref, epoch), epoch)
					      : rl_ref_staged(rl_ref_cell(ref, epoch), cell, epoch + 1);
				bpf_map_update_elem(maps.map[RL_MAP_LIMITS], &cell, &other, BPF_ANY);
				bpf_map_update_elem(maps.map[RL_MAP_CELLS], &cell, &claim, BPF_ANY);
				bpf_map_update_elem(maps.map[RL_MAP_HEADS], &limit.slot, &ref, BPF_ANY);
			}
			cr_assert_eq(rl_state_meta(&maps, &meta, &err), 0);
			meta.unfinished = 1;
			cr_assert_eq(rl_state_meta_write(&maps, &meta, &err), 0);
			cr_expect_str_eq(dump(found), was, "%d staged", staged);
			set("new", "1pps");
			del("new", NULL);
			cr_expect_str_eq(dump(found), was, "%d staged, mended", staged);
			cr_assert_eq(rl_state_meta(&maps, &meta, &err), 0);
			cr_expect_eq(meta.unfinished, 0);
			expect_claimed(6 + 2);
			(void)only;
		}
}

/* ---- time ---- */

/* Of the processor, which others may be using too. */
static double seconds(void)
{
	struct timespec spent;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	return (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}

/* A key has room for so many (rl_abi.h). */
Test(policy, ids_end_before_the_bit_that_tells_families_apart)
{
	struct rl_error err = {};
	struct rl_meta meta;

	cr_assert_eq(rl_state_meta(&maps, &meta, &err), 0);
	meta.next_limit_id = RL_MOST_IDS - 1;
	cr_assert_eq(rl_state_meta_write(&maps, &meta, &err), 0);
	set("10.0.0.0/8", "1pps");
	cr_assert_eq(get("10.0.0.0/8", NULL).id, RL_MOST_IDS - 1);
	cr_assert_eq(try_set("11.0.0.0/8", "1pps", &err), -EOVERFLOW);
	cr_assert_not_null(strstr(err.text, "detach --all"), "%s", err.text);
	cr_assert_eq(maps_claimed(RL_MAP_SLOTS), 1);
}

Test(policy, as_many_limits_as_there_can_be_are_read_in_a_moment)
{
	RL_FREE struct rl_limit *limits = NULL;
	struct rl_error err = {};
	struct rl_target target = {};
	struct rl_terms terms;
	size_t count;
	double start, filling, reading;
	/* All of them take a quarter of a minute to set. */
	__u32 slots = getenv("RL_LONG") ? RL_DEFAULT_LIMITS : RL_DEFAULT_LIMITS / 4;

	maps_end();
	maps_make(slots, slots + 4096);
	target = target_of("10.0.0.1");
	terms = terms_of(&target, "1kpps");
	start = seconds();
	for (unsigned int i = 1; i < slots; i++) {
		__u8 addr[16] = {10, (__u8)(i >> 16), (__u8)(i >> 8), (__u8)i};

		target.prefix = rl_prefix_cut(4, addr, 32);
		cr_assert_eq(rl_policy_set(&maps, &target, &terms, now, &err), 0, "%u: %s", i, err.text);
	}
	filling = seconds() - start;
	start = seconds();
	cr_assert_eq(rl_policy_read(&maps, &limits, &count, &err), 0, "%s", err.text);
	reading = seconds() - start;
	cr_expect_eq(count, slots - 1);
	cr_log_info("%zu limits set in %.2f s, read in %.3f s", count, filling, reading);
	cr_expect_lt(reading, 0.3 * slots / RL_DEFAULT_LIMITS + 0.02, "read in %.3f s", reading);
	target = target_of("192.0.2.1");
	cr_expect_eq(rl_policy_set(&maps, &target, &terms, now, &err), -ENOSPC);
	set("10.0.0.5", "2kpps");
	del("10.0.0.6", NULL);
	set("192.0.2.1", "2kpps");
}
