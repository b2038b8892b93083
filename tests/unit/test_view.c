// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What list, stats, status, top and explain print: each key of each JSON object, and tables to the letter. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>

#include "../../user/grid.h"
#include "../../user/view.h"
#include "snapshots.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The object as it is printed, parsed again: what a script sees. */
static json_t *printed(json_t *object)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *parsed;

	cr_assert_eq(rl_view_json_print(object, out), 0);
	fclose(out);
	cr_assert_eq(text[size - 1], '\n');
	parsed = json_loads(text, 0, NULL);
	free(text);
	cr_assert_not_null(parsed);
	cr_assert_eq(json_integer_value(json_object_get(parsed, "schema_version")), RL_VIEW_SCHEMA_VERSION);
	return parsed;
}

/* The object has these keys, in this order, and no other. */
static void check_keys(json_t *object, const char *const *keys, size_t count)
{
	const char *key;
	json_t *value;
	size_t i = 0;

	cr_assert(json_is_object(object));
	json_object_foreach(object, key, value)
	{
		cr_assert_lt(i, count, "%s is one too many", key);
		cr_assert_str_eq(key, keys[i]);
		i++;
	}
	cr_assert_eq(i, count);
}
#define check_keys_are(object, ...)                                                                          \
	check_keys(object, (const char *[]){__VA_ARGS__}, COUNT(((const char *[]){__VA_ARGS__})))

static json_t *get(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	cr_assert_not_null(value, "no %s", key);
	return value;
}

static void check_integer(json_t *object, const char *key, json_int_t expected)
{
	cr_assert(json_is_integer(get(object, key)), "%s is no integer", key);
	cr_assert_eq(json_integer_value(get(object, key)), expected, "%s", key);
}

static void check_text(json_t *object, const char *key, const char *expected)
{
	cr_assert(json_is_string(get(object, key)), "%s is no string", key);
	cr_assert_str_eq(json_string_value(get(object, key)), expected);
}

static void check_count(json_t *object, const char *key, json_int_t packets, json_int_t bytes)
{
	json_t *count = get(object, key);

	check_keys_are(count, "packets", "bytes");
	check_integer(count, "packets", packets);
	check_integer(count, "bytes", bytes);
}

static json_t *item(json_t *object, const char *key, size_t index)
{
	json_t *value = json_array_get(get(object, key), index);

	cr_assert_not_null(value, "%s has no item %zu", key, index);
	return value;
}

/*
 * A device that is held, one that is gone; a limit in both units with a class, and one of a packet an hour; one
 * of each other target, and with each other thing that can be said.
 */
struct example {
	struct rl_device_stats devices[2];
	struct rl_limit_stats limits[8];
	struct rl_source_stats sources[1];
	struct rl_snapshot snapshot;
};

enum { ANY, ACME, ACME_SYN, OFFICE, BAD, TENANT, DEVICE, NEW };

static void say_all(struct example *example)
{
	struct rl_terms *office = &example->limits[OFFICE].limit.terms;
	struct rl_terms *bad = &example->limits[BAD].limit.terms;
	struct rl_terms *tenant = &example->limits[TENANT].limit.terms;

	example->limits[ANY].limit.terms.packets_per_hour = 1;
	example->limits[ANY].limit.terms.burst_packets = 16;
	example->limits[ACME].limit.terms.bits_per_second = 10000000;
	example->limits[ACME].limit.terms.burst_bytes = 256000;
	example->limits[ACME_SYN].limit.terms.shadow = 1;
	office->per = 28;
	office->priority = RL_PRIORITY_HIGH;
	office->cost_count = 2;
	office->cost[0] = (struct rl_cost){.class = test_class("syn"), .tokens = 10};
	office->cost[1] = (struct rl_cost){.class = test_class("frag"), .tokens = 4};
	*bad = (struct rl_terms){.action = RL_ACTION_DENY, .priority = RL_PRIORITY_UNSET};
	tenant->reserve[0] = 2000;
	tenant->reserve[1] = 525;
	example->limits[NEW].limit.terms.shared = 1; /* it isn't said of `new`; here it is */
}

static struct example *make_example(void)
{
	static struct example example;

	example = (struct example){
	    .devices = {test_device("eth0", 0, 900, 100), test_device("eth1", 1, 0, 0)},
	    .limits = {test_limit("any", 1, ""), test_limit("10.0.0.0/8", 2, "acme"),
		       test_class_limit("10.0.0.0/8", 3, "syn"), test_limit("192.0.2.0/24", 4, ""),
		       test_limit("203.0.113.66", 5, ""), test_limit("tenant:acme", 6, ""),
		       test_limit("dev:eth0", 7, ""), test_limit("new", 8, "")},
	    .sources = {test_source("10.0.0.7", ACME, 800, 200)},
	};
	example.devices[0].count.by_reason[RL_SHADOW_CLASS] = (struct rl_count){50, 5000};
	example.devices[1].attached.where = RL_GONE;
	example.devices[1].attached.ifindex = 0;
	example.devices[1].attached.device.mode = RL_MODE_GENERIC;
	say_all(&example);
	example.limits[ACME].count.passed = (struct rl_count){800, 80000};
	example.limits[ACME].count.dropped = (struct rl_count){200, 20000};
	example.limits[ACME_SYN].count.shadow = (struct rl_count){50, 5000};
	example.sources[0].tally.shadow = (struct rl_count){50, 5000};
	rl_tenants_inherit(example.limits, COUNT(example.limits));
	example.snapshot = (struct rl_snapshot){
	    .time = 2000000000,
	    .meta = {.abi = RL_ABI_VERSION, .max_sources = 1000000, .netns_cookie = 42},
	    .devices = example.devices,
	    .device_count = COUNT(example.devices),
	    .limits = example.limits,
	    .limit_count = COUNT(example.limits),
	    .sources = example.sources,
	    .source_count = COUNT(example.sources),
	};
	return &example;
}

static void check_null(json_t *object, const char *key)
{
	cr_assert(json_is_null(get(object, key)), "%s isn't null", key);
}

static void check_truth(json_t *object, const char *key, bool expected)
{
	cr_assert(json_is_boolean(get(object, key)), "%s is neither true nor false", key);
	cr_assert_eq(json_is_true(get(object, key)), expected, "%s", key);
}

static void check_rates_said(json_t *object)
{
	json_t *any = item(object, "limits", ANY), *acme = item(object, "limits", ACME);
	json_t *bad = item(object, "limits", BAD);

	check_text(any, "target", "any");
	check_null(any, "tenant");
	cr_assert(json_is_real(get(any, "rate_pps")));
	cr_assert_float_eq(json_real_value(get(any, "rate_pps")) * 3600, 1, 1e-12);
	check_integer(any, "burst_packets", 16);
	check_null(any, "rate_bits");
	check_null(any, "burst_bytes");

	check_text(acme, "target", "10.0.0.0/8");
	check_null(acme, "class");
	check_text(acme, "action", "limit");
	check_text(acme, "tenant", "acme");
	check_integer(acme, "rate_pps", 1000);
	check_integer(acme, "burst_packets", 100);
	check_integer(acme, "rate_bits", 10000000);
	check_integer(acme, "burst_bytes", 256000);

	check_text(bad, "action", "deny");
	check_null(bad, "rate_pps");
	check_null(bad, "burst_packets");
}

static void check_policy(json_t *object)
{
	json_t *acme = item(object, "limits", ACME), *office = item(object, "limits", OFFICE);
	json_t *tenant = item(object, "limits", TENANT);

	check_rates_said(object);
	check_text(item(object, "limits", ACME_SYN), "target", "10.0.0.0/8");
	check_text(item(object, "limits", ACME_SYN), "class", "syn");
	check_text(item(object, "limits", ACME_SYN), "tenant", "acme");
	check_null(acme, "per");
	check_null(acme, "cost");
	check_null(acme, "priority");
	check_null(acme, "reserve");
	check_truth(acme, "shared", false);

	check_integer(office, "per", 28);
	check_text(office, "priority", "high");
	check_keys_are(get(office, "cost"), "syn", "frag");
	check_integer(get(office, "cost"), "syn", 10);
	check_integer(get(office, "cost"), "frag", 4);

	check_text(tenant, "target", "tenant:acme");
	check_null(tenant, "tenant");
	check_keys_are(get(tenant, "reserve"), "high", "normal");
	check_integer(get(tenant, "reserve"), "high", 20);
	cr_assert_eq(json_number_value(get(get(tenant, "reserve"), "normal")), 5.25);
	check_text(item(object, "limits", DEVICE), "target", "dev:eth0");
	check_text(item(object, "limits", NEW), "target", "new");
	check_truth(item(object, "limits", NEW), "shared", true);
}

Test(view_json, list)
{
	json_t *object = printed(rl_view_list_json(&make_example()->snapshot));

	check_keys_are(object, "schema_version", "limits");
	cr_assert_eq(json_array_size(get(object, "limits")), 8);
	check_keys_are(item(object, "limits", 0), "target", "class", "action", "tenant", "rate_pps",
		       "burst_packets", "rate_bits", "burst_bytes", "per", "shared", "cost", "priority",
		       "reserve", "shadow");
	check_policy(object);
	check_truth(item(object, "limits", ACME), "shadow", false);
	check_truth(item(object, "limits", ACME_SYN), "shadow", true);
	json_decref(object);
}

Test(view_json, stats)
{
	json_t *object = printed(rl_view_stats_json(&make_example()->snapshot));
	json_t *device = item(object, "devices", 0), *limit = item(object, "limits", ACME);
	json_t *class = item(object, "limits", ACME_SYN);

	check_keys_are(object, "schema_version", "devices", "limits");
	check_keys_are(device, "name", "ifindex", "direction", "mode", "received", "passed", "dropped",
		       "shadow", "reasons");
	check_text(device, "name", "eth0");
	check_integer(device, "ifindex", 2);
	check_text(device, "direction", "in");
	check_text(device, "mode", "native");
	check_count(device, "received", 1050, 105000);
	check_count(device, "passed", 950, 95000);
	check_count(device, "dropped", 100, 10000);
	check_count(device, "shadow", 50, 5000);
	check_keys_are(get(device, "reasons"), "no_limit", "within_limit", "allowed", "not_ip",
		       "neighbour_discovery", "paused", "unparsed", "malformed", "aggregated",
		       "table_full_open", "internal_error", "shadow_source_limit", "shadow_class_limit",
		       "shadow_tenant_limit", "shadow_device_limit", "shadow_new_source",
		       "shadow_aggregate_limit", "shadow_table_full", "shadow_denied", "shadow_contended",
		       "source_limit", "class_limit", "tenant_limit", "device_limit", "new_source",
		       "aggregate_limit", "table_full", "denied", "contended");
	check_integer(get(device, "reasons"), "shadow_class_limit", 50);
	check_integer(get(device, "reasons"), "within_limit", 900);
	check_integer(get(device, "reasons"), "source_limit", 100);
	check_integer(get(device, "reasons"), "not_ip", 0);

	check_keys_are(limit, "target", "class", "action", "tenant", "rate_pps", "burst_packets", "rate_bits",
		       "burst_bytes", "per", "shared", "cost", "priority", "reserve", "in_shadow", "passed",
		       "dropped", "shadow");
	check_policy(object);
	check_truth(limit, "in_shadow", false);
	check_count(limit, "passed", 800, 80000);
	check_count(limit, "dropped", 200, 20000);
	check_count(limit, "shadow", 0, 0);
	check_truth(class, "in_shadow", true);
	check_count(class, "dropped", 0, 0);
	check_count(class, "shadow", 50, 5000);
	json_decref(object);
}

static void check_namespace(json_t *object)
{
	json_t *device = item(object, "devices", 0), *gone = item(object, "devices", 1);

	check_integer(object, "namespace", 42);
	check_text(object, "state", "/somewhere/42");
	check_integer(object, "max_sources", 1000000);
	check_integer(object, "limits", 8);
	check_text(object, "store", "table");
	check_text(object, "when_full", "aggregate");
	check_keys_are(device, "name", "ifindex", "direction", "mode", "program_id", "link_id", "paused",
		       "in_shadow", "since", "attached", "where");
	check_text(device, "name", "eth0");
	check_integer(device, "ifindex", 2);
	check_text(device, "direction", "in");
	check_text(device, "mode", "native");
	check_integer(device, "program_id", 80);
	check_integer(device, "link_id", 70);
	check_truth(device, "paused", false);
	check_truth(device, "in_shadow", false);
	check_text(device, "since", "2024-02-29T12:00:00Z");
	cr_assert(json_is_true(get(device, "attached")));
	check_text(device, "where", "here");

	check_text(gone, "mode", "generic");
	cr_assert(json_is_null(get(gone, "ifindex")));
	cr_assert(json_is_false(get(gone, "attached")));
	check_text(gone, "where", "gone");
}

Test(view_json, status)
{
	struct example *example = make_example();
	struct rl_view_status status = {
	    .cookie = 42, .path = "/somewhere/42", .snapshot = &example->snapshot};
	json_t *object;

	object = printed(rl_view_status_json(&status));
	check_keys_are(object, "schema_version", "namespace", "state", "store", "max_sources", "when_full",
		       "limits", "devices");
	check_namespace(object);
	json_decref(object);

	example->devices[0].attached.device.flags |= RL_DEVICE_PAUSED | RL_DEVICE_SHADOW;
	example->snapshot.settings.when_full = RL_FULL_CLOSED;
	object = printed(rl_view_status_json(&status));
	check_truth(item(object, "devices", 0), "paused", true);
	check_truth(item(object, "devices", 0), "in_shadow", true);
	check_text(object, "when_full", "closed");
	json_decref(object);

	example->snapshot.meta.store = RL_STORE_LRU;
	object = printed(rl_view_status_json(&status));
	check_text(object, "store", "lru");
	check_null(object, "when_full");
	json_decref(object);
}

Test(view_json, status_of_all_namespaces)
{
	struct rl_view_status statuses[] = {
	    {.cookie = 42, .path = "/somewhere/42", .snapshot = &make_example()->snapshot},
	    {.cookie = 43, .path = "/somewhere/43", .error = "another version"},
	};
	json_t *object = printed(rl_view_status_all_json(statuses, 2));
	json_t *unreadable = item(object, "namespaces", 1);

	check_keys_are(object, "schema_version", "namespaces");
	check_keys_are(item(object, "namespaces", 0), "namespace", "state", "store", "max_sources",
		       "when_full", "limits", "devices");
	check_namespace(item(object, "namespaces", 0));
	check_keys_are(unreadable, "namespace", "state", "error");
	check_text(unreadable, "error", "another version");
	json_decref(object);

	object = printed(rl_view_status_all_json(NULL, 0));
	cr_assert_eq(json_array_size(get(object, "namespaces")), 0);
	cr_assert(json_is_array(get(object, "namespaces")));
	json_decref(object);
}

static struct rl_top make_top(struct example *example)
{
	struct rl_snapshot before = {.time = 1000000000};
	struct rl_top_query query = {.rows = 20};
	struct rl_top top = {};

	cr_assert_eq(rl_top_compute(&before, &example->snapshot, &query, &top), 0);
	return top;
}

static void check_rates(json_t *object, double passed, double dropped, double shadow)
{
	cr_assert_eq(json_number_value(get(object, "passed_pps")), passed);
	cr_assert_eq(json_number_value(get(object, "dropped_pps")), dropped);
	cr_assert_eq(json_number_value(get(object, "shadow_pps")), shadow);
	cr_assert_eq(json_number_value(get(object, "shadow_bits_per_second")), shadow * 800);
	cr_assert_eq(json_number_value(get(object, "passed_bits_per_second")), passed * 800);
	cr_assert_eq(json_number_value(get(object, "dropped_bits_per_second")), dropped * 800);
}

Test(view_json, top)
{
	RL_TOP struct rl_top top = make_top(make_example());
	json_t *object = printed(rl_view_top_json(&top, RL_TOP_BY_DROPS));
	json_t *device = item(object, "devices", 0), *source = item(object, "sources", 0);

	check_keys_are(object, "schema_version", "seconds", "by", "sources_tracked", "sources_matched",
		       "devices", "sources");
	cr_assert_eq(json_number_value(get(object, "seconds")), 1);
	check_text(object, "by", "drops");
	check_integer(object, "sources_tracked", 1);
	check_integer(object, "sources_matched", 1);
	check_keys_are(device, "name", "ifindex", "direction", "mode", "received", "passed", "dropped",
		       "shadow", "passed_pps", "dropped_pps", "shadow_pps", "passed_bits_per_second",
		       "dropped_bits_per_second", "shadow_bits_per_second");
	check_text(device, "name", "eth0");
	check_count(device, "received", 1050, 105000);
	check_rates(device, 950, 100, 50);
	check_keys_are(source, "source", "limit", "tenant", "passed", "dropped", "shadow", "passed_pps",
		       "dropped_pps", "shadow_pps", "passed_bits_per_second", "dropped_bits_per_second",
		       "shadow_bits_per_second");
	check_text(source, "source", "10.0.0.7");
	check_text(source, "limit", "10.0.0.0/8");
	check_text(source, "tenant", "acme");
	check_count(source, "passed", 800, 80000);
	check_count(source, "dropped", 200, 20000);
	check_count(source, "shadow", 50, 5000);
	check_rates(source, 800, 200, 50);
	json_decref(object);
}

/*
 * A source of ACME's: its general limit, its class in shadow, its tenant that keeps some, and no limit of the
 * device's.
 */
static struct rl_explain make_explain(const struct example *example)
{
	struct rl_explain explain = {
	    .packet = {.source = test_prefix("10.0.0.7"),
		       .bytes = 60,
		       .port = 443,
		       .kinds = RL_KIND_TCP | RL_KIND_SYN | RL_KIND_PORTS},
	    .why = RL_EXPLAIN_LONGEST,
	    .limit = &example->limits[ACME],
	    .wider = {&example->limits[ANY]},
	    .wider_count = 1,
	    .tenant_from = &example->limits[ACME],
	    .source = test_prefix("10.0.0.7"),
	    .cost = 10,
	    .priority = RL_PRIORITY_NORMAL,
	    .level_count = 3,
	    .device_count = 1,
	};
	struct rl_explain_level *level = explain.level;

	level[0] = (struct rl_explain_level){
	    .limit = &example->limits[ACME], .found = true, .tally = example->sources[0].tally};
	level[0].unit[RL_PACKETS] = (struct rl_explain_unit){true, 100, 7, 0, 3000000};
	level[0].unit[RL_BYTES] = (struct rl_explain_unit){true, 256000, 12345, 0, 0};
	level[0].wait = 3000000;
	level[1] = (struct rl_explain_level){.limit = &example->limits[ACME_SYN], .found = true};
	level[1].unit[RL_PACKETS] = (struct rl_explain_unit){true, 100, 100, 0, 0};
	level[2] = (struct rl_explain_level){.limit = &example->limits[TENANT], .found = true};
	level[2].unit[RL_PACKETS] = (struct rl_explain_unit){true, 100, 100, 25, RL_EXPLAIN_NEVER};
	explain.device[0] = (struct rl_explain_device){
	    .device = &example->devices[0], .reason = RL_DROP_SOURCE, .wait = 3000000};
	return explain;
}

Test(view_json, explain)
{
	struct rl_explain explain = make_explain(make_example());
	json_t *object = printed(rl_view_explain_json(&explain));
	json_t *packet = get(object, "packet"), *source = item(object, "levels", 0);
	json_t *tenant = item(object, "levels", 2), *device = item(object, "devices", 0);

	check_keys_are(object, "schema_version", "address", "packet", "why", "limit", "wider", "tenant",
		       "tenant_from", "source", "passed", "dropped", "shadow", "levels", "devices");
	check_text(object, "address", "10.0.0.7");
	check_text(object, "why", "longest_prefix");
	check_text(object, "limit", "10.0.0.0/8");
	cr_assert_str_eq(json_string_value(item(object, "wider", 0)), "any");
	check_text(object, "tenant", "acme");
	check_text(object, "tenant_from", "10.0.0.0/8");
	check_text(object, "source", "10.0.0.7");
	check_count(object, "passed", 800, 80000);
	check_count(object, "shadow", 50, 5000);
	check_keys_are(packet, "bytes", "kinds", "port", "cost", "priority");
	check_integer(packet, "cost", 10);
	check_integer(packet, "port", 443);
	check_text(packet, "priority", "normal");
	cr_assert_eq(json_array_size(get(packet, "kinds")), 2);

	cr_assert_eq(json_array_size(get(object, "levels")), 3);
	check_keys_are(source, "level", "has_bucket", "packets", "bytes", "target", "class", "action",
		       "tenant", "rate_pps", "burst_packets", "rate_bits", "burst_bytes", "per", "shared",
		       "cost", "priority", "reserve", "in_shadow", "passed", "dropped", "shadow");
	check_text(source, "level", "source");
	check_truth(source, "has_bucket", true);
	check_keys_are(get(source, "packets"), "left", "burst", "kept", "enough_in_seconds");
	check_integer(get(source, "packets"), "left", 7);
	check_integer(get(source, "packets"), "burst", 100);
	cr_assert_eq(json_number_value(get(get(source, "packets"), "enough_in_seconds")), 0.003);
	check_integer(get(source, "bytes"), "left", 12345);
	check_null(tenant, "bytes");
	check_integer(get(tenant, "packets"), "kept", 25);
	check_null(get(tenant, "packets"), "enough_in_seconds");

	check_keys_are(device, "name", "level", "verdict", "reason", "passes_in_seconds");
	check_null(device, "level");
	check_text(device, "verdict", "drop");
	check_text(device, "reason", "source_limit");
	cr_assert_eq(json_number_value(get(device, "passes_in_seconds")), 0.003);
	json_decref(object);
}

Test(view_json, explain_where_no_limit_is)
{
	struct rl_explain explain = {
	    .packet = {.source = test_prefix("2001:db8::1"), .bytes = 60},
	    .why = RL_EXPLAIN_NO_PREFIX,
	    .cost = 1,
	    .priority = RL_PRIORITY_NORMAL,
	};
	json_t *object = printed(rl_view_explain_json(&explain));

	check_text(object, "why", "no_prefix");
	check_null(object, "limit");
	check_null(object, "tenant");
	check_null(object, "tenant_from");
	check_null(object, "source");
	check_null(object, "passed");
	check_null(get(object, "packet"), "port");
	cr_assert_eq(json_array_size(get(object, "levels")), 0);
	cr_assert_eq(json_array_size(get(object, "devices")), 0);
	json_decref(object);
}

Test(view_json, integers_are_exact_up_to_the_largest)
{
	static const struct {
		__u64 value;
		json_int_t printed;
	} cases[] = {
	    {0, 0},
	    {(1ULL << 53) + 1, (1LL << 53) + 1},
	    {INT64_MAX, INT64_MAX},
	    {(__u64)INT64_MAX + 1, INT64_MAX},
	    {UINT64_MAX, INT64_MAX},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct example *example = make_example();
		json_t *object;

		example->limits[0].count.passed = (struct rl_count){cases[i].value, cases[i].value};
		object = printed(rl_view_stats_json(&example->snapshot));
		check_count(item(object, "limits", 0), "passed", cases[i].printed, cases[i].printed);
		json_decref(object);
	}
}

Test(view_json, a_device_name_that_is_no_text)
{
	struct example *example = make_example();
	json_t *object;

	strcpy(example->devices[0].attached.name, "e\xff\"h");
	object = printed(rl_view_stats_json(&example->snapshot));
	check_text(item(object, "devices", 0), "name", "e?\"h");
	json_decref(object);
}

Test(view_json, nothing_to_print)
{
	cr_assert_eq(rl_view_json_print(NULL, stdout), -ENOMEM);
}

typedef int (*table_view)(const struct rl_snapshot *snapshot, FILE *out);

static void check_table(table_view view, const struct rl_snapshot *snapshot, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(view(snapshot, out), 0);
	fclose(out);
	cr_assert_str_eq(text, expected, "got:\n%s", text);
	free(text);
}

static int print_status(const struct rl_snapshot *snapshot, FILE *out)
{
	struct rl_view_status status = {.cookie = 42, .path = "/somewhere/42", .snapshot = snapshot};

	return rl_view_status_table(&status, out);
}

static int print_top(const struct rl_snapshot *snapshot, FILE *out)
{
	struct rl_snapshot before = {.time = snapshot->time - 1000000000};
	struct rl_top_query query = {.rows = 20};
	RL_TOP struct rl_top top = {};

	cr_assert_eq(rl_top_compute(&before, snapshot, &query, &top), 0);
	cr_assert_eq(rl_view_top_devices_table(&top, out), 0);
	return rl_view_top_sources_table(&top, out);
}

Test(view_table, list)
{
	check_table(rl_view_list_table, &make_example()->snapshot,
		    "TARGET        CLASS          RATE       BURST  TENANT  MORE\n"
		    "any           -               1/h         16p  -       -\n"
		    "10.0.0.0/8    -      1kpps,10mbit  100p,256kb  acme    -\n"
		    "10.0.0.0/8    syn           1kpps        100p  acme    shadow\n"
		    "192.0.2.0/24  -             1kpps        100p  -       per /28, cost syn=10,frag=4, "
		    "priority high\n"
		    "203.0.113.66  -              deny           -  -       -\n"
		    "tenant:acme   -             1kpps        100p  -       reserve high=20%,normal=5.25%\n"
		    "dev:eth0      -             1kpps        100p  -       -\n"
		    "new           -             1kpps        100p  -       shared\n");
}

Test(view_table, stats)
{
	struct example *example = make_example();

	example->snapshot.limit_count = ACME_SYN + 1;
	check_table(rl_view_stats_table, &example->snapshot,
		    "DEVICE  MODE     RECEIVED  BYTES  PASSED   BYTES  DROPPED   BYTES  SHADOW   BYTES\n"
		    "eth0    native       1050  105kB     950  95.0kB      100  10.0kB      50  5.00kB\n"
		    "eth1    generic         0     0B       0      0B        0      0B       0      0B\n"
		    "\n"
		    "DEVICE  VERDICT  REASON              PACKETS   BYTES\n"
		    "eth0    pass     within_limit            900  90.0kB\n"
		    "eth0    shadow   shadow_class_limit       50  5.00kB\n"
		    "eth0    drop     source_limit            100  10.0kB\n"
		    "\n"
		    "TARGET      CLASS          RATE       BURST  TENANT  PASSED   BYTES  DROPPED   BYTES  "
		    "SHADOW   BYTES\n"
		    "any         -               1/h         16p  -            0      0B        0      0B  "
		    "     0      0B\n"
		    "10.0.0.0/8  -      1kpps,10mbit  100p,256kb  acme       800  80.0kB      200  20.0kB  "
		    "     0      0B\n"
		    "10.0.0.0/8  syn           1kpps        100p  acme         0      0B        0      0B  "
		    "    50  5.00kB\n");
}

static const char table_status[] =
    "network namespace 42, state in /somewhere/42\n"
    "8 limits\n"
    "store table, room for 1000000 sources; when full, a new one is held by its /24 or /48 (aggregate)\n"
    "\n"
    "DEVICE  INDEX  DIRECTION  MODE     STATE      PROGRAM  LINK  SINCE\n"
    "eth0        2  in         native   enforcing       80    70  2024-02-29T12:00:00Z\n"
    "eth1        -  in         generic  gone            81    71  2024-02-29T12:00:00Z\n"
    "\nWhat is gone: `rl-agent detach --stale` clears it.\n";

Test(view_table, status)
{
	struct example *example = make_example();

	check_table(print_status, &example->snapshot, table_status);

	example->snapshot.meta.store = RL_STORE_LRU;
	example->snapshot.limit_count = 1;
	example->devices[0].attached.device.flags |= RL_DEVICE_SHADOW;
	example->snapshot.device_count = 1;
	check_table(print_status, &example->snapshot,
		    "network namespace 42, state in /somewhere/42\n"
		    "1 limit\n"
		    "store lru, room for 1000000 sources; when full, the least recently seen is forgotten\n"
		    "\n"
		    "DEVICE  INDEX  DIRECTION  MODE    STATE   PROGRAM  LINK  SINCE\n"
		    "eth0        2  in         native  shadow       80    70  2024-02-29T12:00:00Z\n");
}

Test(view_table, top)
{
	check_table(
	    print_top, &make_example()->snapshot,
	    "DEVICE      MODE      IN pps  PASS pps  DROP pps  SHADOW pps  IN bit/s  PASS bit/s  DROP bit/s\n"
	    "eth0        native     1.05k       950       100          50      840k        760k       80.0k\n"
	    "eth1        gone           0         0         0           0         0           0           0\n"
	    "SOURCE              PASS pps  DROP pps  SHADOW pps  PASS bit/s  DROP bit/s  LIMIT                 "
	    "RATE  TENANT\n"
	    "10.0.0.7                 800       200          50        640k        160k  10.0.0.0/8    "
	    "1kpps,10mbit  acme\n");
}

static void check_explained(const struct rl_explain *explain, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(rl_view_explain_table(explain, out), 0);
	fclose(out);
	cr_assert_str_eq(text, expected, "got:\n%s", text);
	free(text);
}

Test(view_table, explain)
{
	struct rl_explain explain = make_explain(make_example());

	check_explained(
	    &explain,
	    "10.0.0.7 is held to the limit of 10.0.0.0/8, the longest prefix around it; wider, so not taken: any\n"
	    "packet: 60 bytes, tcp, syn, port 443; costs 10, priority normal\n"
	    "tenant: acme, said by 10.0.0.0/8\n"
	    "source: 10.0.0.7, 800 packets passed, 200 dropped, 50 in shadow\n"
	    "\n"
	    "LEVEL   LIMIT        CLASS    RATE      LEFT     OF  KEPT   ENOUGH  STATE      PASSED  DROPPED  SHADOW\n"
	    "source  10.0.0.0/8   -       1kpps        7p   100p     -  in 3 ms  enforcing     800      200       0\n"
	    "\"       \"            \"      10mbit  12.345kb  256kb     -      now  enforcing       \"        \"       \"\n"
	    "class   10.0.0.0/8   syn     1kpps      100p   100p     -      now  enforcing       0        0      50\n"
	    "tenant  tenant:acme  -       1kpps      100p   100p   25p    never  enforcing       0        0       0\n"
	    "\n"
	    "DEVICE  STATE      VERDICT  REASON        PASSES\n"
	    "eth0    enforcing  drop     source_limit  in 3 ms\n");
}

Test(view_table, explain_what_has_no_bucket_no_limit_or_no_rate)
{
	struct example *example = make_example();
	struct rl_explain explain = {
	    .packet = {.source = test_prefix("192.0.2.7"), .bytes = 1514, .kinds = RL_KIND_FRAG},
	    .why = RL_EXPLAIN_LONGEST,
	    .limit = &example->limits[OFFICE],
	    .source = test_prefix("192.0.2.0/28"),
	    .cost = 4,
	    .priority = RL_PRIORITY_HIGH,
	    .level = {{.limit = &example->limits[OFFICE]}},
	    .level_count = 1,
	};

	check_explained(
	    &explain,
	    "192.0.2.7 is held to the limit of 192.0.2.0/24, the longest prefix around it\n"
	    "packet: 1514 bytes, frag; costs 4, priority high\n"
	    "source: 192.0.2.0/28, without a bucket yet: it will be given a full one\n"
	    "\n"
	    "LEVEL   LIMIT         CLASS  RATE  LEFT  OF  KEPT  ENOUGH  STATE      PASSED  DROPPED  SHADOW\n"
	    "source  192.0.2.0/24  -         -     -   -     -     now  enforcing       0        0       0\n"
	    "\n"
	    "no device attached; policy and buckets are kept\n");
	explain = (struct rl_explain){
	    .packet = {.source = test_prefix("203.0.113.66"), .bytes = 60},
	    .why = RL_EXPLAIN_DENIED,
	    .limit = &example->limits[BAD],
	    .cost = 1,
	    .priority = RL_PRIORITY_NORMAL,
	    .device = {{.device = &example->devices[0], .reason = RL_DROP_DENIED, .wait = RL_EXPLAIN_NEVER}},
	    .device_count = 1,
	};
	check_explained(&explain, "203.0.113.66 is denied by 203.0.113.66, the longest prefix around it\n"
				  "packet: 60 bytes; costs 1, priority normal\n"
				  "\n"
				  "DEVICE  STATE      VERDICT  REASON  PASSES\n"
				  "eth0    enforcing  drop     denied  never\n");
	explain.why = RL_EXPLAIN_NO_PREFIX;
	explain.limit = NULL;
	explain.device[0].reason = RL_PASS_NO_LIMIT;
	explain.device[0].wait = 0;
	check_explained(&explain, "203.0.113.66: no limit names it, so only its device's limit holds\n"
				  "packet: 60 bytes; costs 1, priority normal\n"
				  "\n"
				  "DEVICE  STATE      VERDICT  REASON    PASSES\n"
				  "eth0    enforcing  pass     no_limit  now\n");
}

Test(view_table, nothing_there)
{
	struct rl_snapshot empty = {.meta = {.max_sources = 1000}, .settings.when_full = RL_FULL_OPEN};

	check_table(rl_view_list_table, &empty, "no limit is set\n");
	check_table(rl_view_stats_table, &empty,
		    "no device attached; policy and buckets are kept\n\nno limit is set\n");
	check_table(print_status, &empty,
		    "network namespace 42, state in /somewhere/42\n0 limits\n"
		    "store table, room for 1000 sources; when full, a new one passes (open)\n\n"
		    "no device attached; policy and buckets are kept\n");
	check_table(print_top, &empty,
		    "no device attached; policy and buckets are kept\n"
		    "no source tracked yet: only sources that a limit names are; `rl-agent set-limit any "
		    "...` tracks every "
		    "source\n");
}

Test(grid, columns_are_as_wide_as_their_widest_cell)
{
	static const struct rl_column columns[] = {{"A", -1}, {"NUMBER", 1}, {"WIDE", -8}, {"LAST", -1}};
	RL_GRID struct rl_grid table = rl_grid_make(columns, COUNT(columns));
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	rl_grid_add(&table, (const char *[]){"sm\xc3\xb8rrebr\xc3\xb8"
					     "d",
					     "1", "", NULL});
	rl_grid_add(&table, (const char *[]){"b", "12345678", "w", "a\x1b[31mb\n"});
	cr_assert_eq(rl_grid_print(&table, out), 0);
	fclose(out);
	cr_assert_str_eq(text, "A             NUMBER  WIDE      LAST\n"
			       "sm\xc3\xb8rrebr\xc3\xb8"
			       "d         1  -         -\n"
			       "b           12345678  w         a?[31mb?\n");
	free(text);
}
