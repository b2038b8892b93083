// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What list, stats, status and top print for scripts: each key of each JSON object. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>

#include "views.h"

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
	check_keys_are(device, "name", "ifindex", "direction", "mode", "hook", "paused", "in_shadow",
		       "received", "passed", "dropped", "shadow", "reasons");
	check_text(device, "name", "eth0");
	check_integer(device, "ifindex", 2);
	check_text(device, "direction", "in");
	check_text(device, "mode", "native");
	check_text(device, "hook", "xdp");
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
	check_keys_are(device, "name", "ifindex", "direction", "mode", "hook", "program_id", "link_id",
		       "paused", "in_shadow", "since", "attached", "where");
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
		       "memory_bytes", "limits", "devices");
	check_namespace(object);
	check_null(object, "memory_bytes");
	json_decref(object);

	status.memory = 123456789;
	example->devices[0].attached.device.flags |= RL_DEVICE_PAUSED | RL_DEVICE_SHADOW;
	example->snapshot.settings.when_full = RL_FULL_CLOSED;
	object = printed(rl_view_status_json(&status));
	check_truth(item(object, "devices", 0), "paused", true);
	check_truth(item(object, "devices", 0), "in_shadow", true);
	check_text(object, "when_full", "closed");
	check_integer(object, "memory_bytes", 123456789);
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
		       "when_full", "memory_bytes", "limits", "devices");
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
	struct rl_snapshot before = {.time = 1000000000, .sources_time = 1000000000};
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
	check_keys_are(device, "name", "ifindex", "direction", "mode", "hook", "paused", "in_shadow",
		       "received", "passed", "dropped", "shadow", "received_pps", "received_bits_per_second",
		       "passed_pps", "dropped_pps", "shadow_pps", "passed_bits_per_second",
		       "dropped_bits_per_second", "shadow_bits_per_second");
	check_text(device, "name", "eth0");
	check_count(device, "received", 1050, 105000);
	check_rates(device, 950, 100, 50);
	cr_assert_eq(json_number_value(get(device, "received_pps")), 1050);
	cr_assert_eq(json_number_value(get(device, "received_bits_per_second")), 840000);
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
