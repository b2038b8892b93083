// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What list, stats, status and top print: each key of each JSON object, and tables to the letter. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>

#include "../../user/table.h"
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
	cr_assert_eq(json_integer_value(json_object_get(parsed, "schema_version")), 1);
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

/* A device that is held, one that is gone; a limit in both units, and one of a packet an hour. */
struct example {
	struct rl_device_stats devices[2];
	struct rl_limit_stats limits[2];
	struct rl_source_stats sources[1];
	struct rl_snapshot snapshot;
};

static struct example *make_example(void)
{
	static struct example example;

	example = (struct example){
	    .devices = {test_device("eth0", 0, 900, 100), test_device("eth1", 1, 0, 0)},
	    .limits = {test_limit("any", 1, ""), test_limit("10.0.0.0/8", 2, "acme")},
	    .sources = {test_source("10.0.0.7", 1, 800, 200)},
	};
	example.devices[1].attached.where = RL_GONE;
	example.devices[1].attached.ifindex = 0;
	example.devices[1].attached.device.mode = RL_MODE_GENERIC;
	example.limits[0].limit.terms.packets_per_hour = 1;
	example.limits[0].limit.terms.burst_packets = 16;
	example.limits[1].limit.terms.bits_per_second = 10000000;
	example.limits[1].limit.terms.burst_bytes = 256000;
	example.limits[1].count.passed = (struct rl_count){800, 80000};
	example.limits[1].count.dropped = (struct rl_count){200, 20000};
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

static void check_policy(json_t *object)
{
	json_t *any = item(object, "limits", 0), *acme = item(object, "limits", 1);

	check_text(any, "target", "any");
	cr_assert(json_is_null(get(any, "tenant")));
	cr_assert(json_is_real(get(any, "rate_pps")));
	cr_assert_float_eq(json_real_value(get(any, "rate_pps")) * 3600, 1, 1e-12);
	check_integer(any, "burst_packets", 16);
	cr_assert(json_is_null(get(any, "rate_bits")));
	cr_assert(json_is_null(get(any, "burst_bytes")));

	check_text(acme, "target", "10.0.0.0/8");
	check_text(acme, "tenant", "acme");
	check_integer(acme, "rate_pps", 1000);
	check_integer(acme, "burst_packets", 100);
	check_integer(acme, "rate_bits", 10000000);
	check_integer(acme, "burst_bytes", 256000);
}

Test(view_json, list)
{
	json_t *object = printed(rl_view_list_json(&make_example()->snapshot));

	check_keys_are(object, "schema_version", "limits");
	check_keys_are(item(object, "limits", 0), "target", "tenant", "rate_pps", "burst_packets",
		       "rate_bits", "burst_bytes");
	check_policy(object);
	json_decref(object);
}

Test(view_json, stats)
{
	json_t *object = printed(rl_view_stats_json(&make_example()->snapshot));
	json_t *device = item(object, "devices", 0), *limit = item(object, "limits", 1);

	check_keys_are(object, "schema_version", "devices", "limits");
	check_keys_are(device, "name", "ifindex", "direction", "mode", "received", "passed", "dropped",
		       "reasons");
	check_text(device, "name", "eth0");
	check_integer(device, "ifindex", 2);
	check_text(device, "direction", "in");
	check_text(device, "mode", "native");
	check_count(device, "received", 1000, 100000);
	check_count(device, "passed", 900, 90000);
	check_count(device, "dropped", 100, 10000);
	check_keys_are(get(device, "reasons"), "no_limit", "within_limit", "not_ip", "neighbour_discovery",
		       "paused", "unparsed", "malformed", "no_bucket", "source_limit", "contended");
	check_integer(get(device, "reasons"), "within_limit", 900);
	check_integer(get(device, "reasons"), "source_limit", 100);
	check_integer(get(device, "reasons"), "not_ip", 0);

	check_keys_are(limit, "target", "tenant", "rate_pps", "burst_packets", "rate_bits", "burst_bytes",
		       "passed", "dropped");
	check_policy(object);
	check_count(limit, "passed", 800, 80000);
	check_count(limit, "dropped", 200, 20000);
	json_decref(object);
}

static void check_namespace(json_t *object)
{
	json_t *device = item(object, "devices", 0), *gone = item(object, "devices", 1);

	check_integer(object, "namespace", 42);
	check_text(object, "state", "/somewhere/42");
	check_integer(object, "max_sources", 1000000);
	check_integer(object, "limits", 2);
	check_keys_are(device, "name", "ifindex", "direction", "mode", "program_id", "link_id", "paused",
		       "since", "attached", "where");
	check_text(device, "name", "eth0");
	check_integer(device, "ifindex", 2);
	check_text(device, "direction", "in");
	check_text(device, "mode", "native");
	check_integer(device, "program_id", 80);
	check_integer(device, "link_id", 70);
	cr_assert(json_is_false(get(device, "paused")));
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
	check_keys_are(object, "schema_version", "namespace", "state", "max_sources", "limits", "devices");
	check_namespace(object);
	json_decref(object);

	example->devices[0].attached.device.flags |= RL_DEVICE_PAUSED;
	object = printed(rl_view_status_json(&status));
	cr_assert(json_is_true(get(item(object, "devices", 0), "paused")));
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
	check_keys_are(item(object, "namespaces", 0), "namespace", "state", "max_sources", "limits",
		       "devices");
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

static void check_rates(json_t *object, double passed, double dropped)
{
	cr_assert_eq(json_number_value(get(object, "passed_pps")), passed);
	cr_assert_eq(json_number_value(get(object, "dropped_pps")), dropped);
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
		       "passed_pps", "dropped_pps", "passed_bits_per_second", "dropped_bits_per_second");
	check_text(device, "name", "eth0");
	check_count(device, "received", 1000, 100000);
	check_rates(device, 900, 100);
	check_keys_are(source, "source", "limit", "tenant", "passed", "dropped", "passed_pps", "dropped_pps",
		       "passed_bits_per_second", "dropped_bits_per_second");
	check_text(source, "source", "10.0.0.7");
	check_text(source, "limit", "10.0.0.0/8");
	check_text(source, "tenant", "acme");
	check_count(source, "passed", 800, 80000);
	check_count(source, "dropped", 200, 20000);
	check_rates(source, 800, 200);
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
		    "TARGET              RATE       BURST  TENANT\n"
		    "any                  1/h         16p  -\n"
		    "10.0.0.0/8  1kpps,10mbit  100p,256kb  acme\n");
}

Test(view_table, stats)
{
	check_table(rl_view_stats_table, &make_example()->snapshot,
		    "DEVICE  MODE     RECEIVED  BYTES  PASSED   BYTES  DROPPED   BYTES\n"
		    "eth0    native       1000  100kB     900  90.0kB      100  10.0kB\n"
		    "eth1    generic         0     0B       0      0B        0      0B\n"
		    "\n"
		    "DEVICE  VERDICT  REASON        PACKETS   BYTES\n"
		    "eth0    pass     within_limit      900  90.0kB\n"
		    "eth0    drop     source_limit      100  10.0kB\n"
		    "\n"
		    "TARGET              RATE       BURST  TENANT  PASSED   BYTES  DROPPED   BYTES\n"
		    "any                  1/h         16p  -            0      0B        0      0B\n"
		    "10.0.0.0/8  1kpps,10mbit  100p,256kb  acme       800  80.0kB      200  20.0kB\n");
}

Test(view_table, status)
{
	check_table(print_status, &make_example()->snapshot,
		    "network namespace 42, state in /somewhere/42\n"
		    "2 limits, room for 1000000 sources\n"
		    "\n"
		    "DEVICE  INDEX  DIRECTION  MODE     STATE      PROGRAM  LINK  SINCE\n"
		    "eth0        2  in         native   enforcing       80    70  2024-02-29T12:00:00Z\n"
		    "eth1        -  in         generic  gone            81    71  2024-02-29T12:00:00Z\n"
		    "\nWhat is gone: `rl-agent detach --stale` clears it.\n");
}

Test(view_table, top)
{
	check_table(print_top, &make_example()->snapshot,
		    "DEVICE      MODE      IN pps  PASS pps  DROP pps  IN bit/s  PASS bit/s  DROP bit/s\n"
		    "eth0        native     1.00k       900       100      800k        720k       80.0k\n"
		    "eth1        gone           0         0         0         0           0           0\n"
		    "SOURCE              PASS pps  DROP pps  PASS bit/s  DROP bit/s  LIMIT                 "
		    "RATE  TENANT\n"
		    "10.0.0.7                 800       200        640k        160k  10.0.0.0/8    "
		    "1kpps,10mbit  acme\n");
}

Test(view_table, nothing_there)
{
	struct rl_snapshot empty = {.meta = {.max_sources = 1000}};

	check_table(rl_view_list_table, &empty, "no limit is set\n");
	check_table(rl_view_stats_table, &empty,
		    "no device attached; policy and buckets are kept\n\nno limit is set\n");
	check_table(print_status, &empty,
		    "network namespace 42, state in /somewhere/42\n0 limits, room for 1000 sources\n\n"
		    "no device attached; policy and buckets are kept\n");
	check_table(print_top, &empty,
		    "no device attached; policy and buckets are kept\n"
		    "no source tracked yet: only sources that a limit names are; `rl-agent set-limit any "
		    "...` tracks every "
		    "source\n");
}

Test(table, columns_are_as_wide_as_their_widest_cell)
{
	static const struct rl_column columns[] = {{"A", -1}, {"NUMBER", 1}, {"WIDE", -8}, {"LAST", -1}};
	RL_TABLE struct rl_table table = rl_table_make(columns, COUNT(columns));
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	rl_table_add(&table, (const char *[]){"sm\xc3\xb8rrebr\xc3\xb8"
					      "d",
					      "1", "", NULL});
	rl_table_add(&table, (const char *[]){"b", "12345678", "w", "a\x1b[31mb\n"});
	cr_assert_eq(rl_table_print(&table, out), 0);
	fclose(out);
	cr_assert_str_eq(text, "A             NUMBER  WIDE      LAST\n"
			       "sm\xc3\xb8rrebr\xc3\xb8"
			       "d         1  -         -\n"
			       "b           12345678  w         a?[31mb?\n");
	free(text);
}
