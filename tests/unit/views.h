/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * views.h - an example of all that can be shown, and what is printed of it taken apart.
 */
#ifndef VIEWS_H
#define VIEWS_H

#include <criterion/criterion.h>

#include "../../user/view.h"
#include "snapshots.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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

static inline void say_all(struct example *example)
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

static inline struct example *make_example(void)
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
	    .sources_time = 2000000000,
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

/* The object as it is printed, parsed again: what a script sees. */
static inline json_t *printed(json_t *object)
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
static inline void check_keys(json_t *object, const char *const *keys, size_t count)
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

static inline json_t *get(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	cr_assert_not_null(value, "no %s", key);
	return value;
}

static inline void check_integer(json_t *object, const char *key, json_int_t expected)
{
	cr_assert(json_is_integer(get(object, key)), "%s is no integer", key);
	cr_assert_eq(json_integer_value(get(object, key)), expected, "%s", key);
}

static inline void check_text(json_t *object, const char *key, const char *expected)
{
	cr_assert(json_is_string(get(object, key)), "%s is no string", key);
	cr_assert_str_eq(json_string_value(get(object, key)), expected);
}

static inline void check_count(json_t *object, const char *key, json_int_t packets, json_int_t bytes)
{
	json_t *count = get(object, key);

	check_keys_are(count, "packets", "bytes");
	check_integer(count, "packets", packets);
	check_integer(count, "bytes", bytes);
}

static inline json_t *item(json_t *object, const char *key, size_t index)
{
	json_t *value = json_array_get(get(object, key), index);

	cr_assert_not_null(value, "%s has no item %zu", key, index);
	return value;
}

static inline void check_null(json_t *object, const char *key)
{
	cr_assert(json_is_null(get(object, key)), "%s isn't null", key);
}

static inline void check_truth(json_t *object, const char *key, bool expected)
{
	cr_assert(json_is_boolean(get(object, key)), "%s is neither true nor false", key);
	cr_assert_eq(json_is_true(get(object, key)), expected, "%s", key);
}

#endif
