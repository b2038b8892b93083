// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What explain prints, for scripts and for people. */
#include <criterion/criterion.h>

#include "views.h"

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

Test(view_explain, json)
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
	check_keys_are(source, "level", "has_bucket", "no_room", "aggregate", "room_in_seconds", "packets",
		       "bytes", "target", "class", "action", "tenant", "rate_pps", "burst_packets",
		       "rate_bits", "burst_bytes", "per", "shared", "cost", "priority", "reserve",
		       "in_shadow", "passed", "dropped", "shadow");
	check_text(source, "level", "source");
	check_truth(source, "has_bucket", true);
	check_null(source, "no_room");
	check_null(source, "aggregate");
	check_null(source, "room_in_seconds");
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

Test(view_explain, json_where_no_limit_is)
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

Test(view_explain, table)
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

Test(view_explain, what_has_no_bucket_no_limit_or_no_rate)
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

/* A source of ANY's on a device that says `reason`: without a bucket, and without room for one unless `held` is 0. */
static struct rl_explain make_homeless(const struct example *example, enum rl_when_full when_full,
				       enum rl_reason held, enum rl_reason reason)
{
	struct rl_explain explain = {
	    .packet = {.source = test_prefix("198.51.100.7"), .bytes = 60},
	    .why = RL_EXPLAIN_LONGEST,
	    .limit = &example->limits[ANY],
	    .source = test_prefix("198.51.100.7"),
	    .cost = 1,
	    .priority = RL_PRIORITY_NORMAL,
	    .when_full = when_full,
	    .level = {{.limit = &example->limits[ANY]}},
	    .level_count = 1,
	    .device = {{.device = &example->devices[0], .reason = reason}},
	    .device_count = 1,
	};

	if (held)
		explain.level[0].trial = (struct rl_trial){
		    .reason = held, .group = test_prefix("198.51.100.0/24"), .room = 8500000000};
	return explain;
}

#define ABOVE                                                                                                \
	"198.51.100.7 is held to the limit of any, the longest prefix around it\n"                           \
	"packet: 60 bytes; costs 1, priority normal\n"
#define WAY_OUT                                                                                                            \
	"for more room start anew: `rl-agent detach --all`, which gives up policy and buckets, then attach with a larger " \
	"--max-sources\n"

Test(view_explain, held_by_the_bucket_of_its_neighbourhood)
{
	struct rl_explain explain =
	    make_homeless(make_example(), RL_FULL_AGGREGATE, RL_PASS_AGGREGATE, RL_DROP_AGGREGATE);
	json_t *object, *level;

	explain.level[0].unit[RL_PACKETS] = (struct rl_explain_unit){true, 16, 0, 0, 3600000000000};
	explain.level[0].wait = explain.device[0].wait = 8500000000;
	check_explained(
	    &explain, ABOVE
	    "source: 198.51.100.7, the table has no room for it, so it shares the bucket of 198.51.100.0/24 (--when-full "
	    "aggregate); if nothing else comes, there is room in 8.5 s\n" WAY_OUT "\n"
	    "LEVEL   LIMIT  CLASS  RATE  LEFT   OF  KEPT  ENOUGH  STATE      PASSED  DROPPED  SHADOW\n"
	    "source  any    -       1/h    0p  16p     -  in 1 h  enforcing       0        0       0\n"
	    "\n"
	    "DEVICE  STATE      VERDICT  REASON           PASSES\n"
	    "eth0    enforcing  drop     aggregate_limit  in 8.5 s\n");

	object = printed(rl_view_explain_json(&explain));
	level = item(object, "levels", 0);
	check_truth(level, "has_bucket", false);
	check_text(level, "no_room", "aggregate");
	check_text(level, "aggregate", "198.51.100.0/24");
	cr_assert_eq(json_number_value(get(level, "room_in_seconds")), 8.5);
	check_integer(get(level, "packets"), "left", 0);
	check_null(object, "passed");
	json_decref(object);
}

/* Held by no bucket: what is said then, and shown at its level. */
static void check_homeless(enum rl_when_full when_full, enum rl_reason held, enum rl_reason reason,
			   const char *line, const char *levels)
{
	struct rl_explain explain = make_homeless(make_example(), when_full, held, reason);
	json_t *object, *level;
	char *expected = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&expected, &size);

	explain.level[0].wait = explain.device[0].wait = rl_reason_drops(reason) ? 8500000000 : 0;
	fprintf(
	    out,
	    ABOVE
	    "source: 198.51.100.7, the table has no room for it, %s; if nothing else comes, there is room in 8.5 "
	    "s\n" WAY_OUT "\n%s\n"
	    "DEVICE  STATE      VERDICT  REASON%*s  PASSES\n"
	    "eth0    enforcing  %s     %s  %s\n",
	    line, levels, (int)strlen(rl_reason_name(reason)) - 6, "",
	    rl_reason_drops(reason) ? "drop" : "pass", rl_reason_name(reason),
	    rl_reason_drops(reason) ? "in 8.5 s" : "now");
	fclose(out);
	check_explained(&explain, expected);
	free(expected);

	object = printed(rl_view_explain_json(&explain));
	level = item(object, "levels", 0);
	check_text(level, "no_room", rl_when_full_name(when_full));
	check_null(level, "aggregate");
	check_null(level, "packets");
	json_decref(object);
}

Test(view_explain, held_by_no_bucket)
{
	static const char *const dropped =
	    "LEVEL   LIMIT  CLASS  RATE  LEFT  OF  KEPT    ENOUGH  STATE      PASSED  DROPPED  SHADOW\n"
	    "source  any    -         -     -   -     -  in 8.5 s  enforcing       0        0       0\n";
	static const char *const passed =
	    "LEVEL   LIMIT  CLASS  RATE  LEFT  OF  KEPT  ENOUGH  STATE      PASSED  DROPPED  SHADOW\n"
	    "source  any    -         -     -   -     -     now  enforcing       0        0       0\n";

	check_homeless(RL_FULL_OPEN, RL_PASS_OPEN, RL_PASS_OPEN, "so no bucket holds it (--when-full open)",
		       passed);
	check_homeless(RL_FULL_CLOSED, RL_DROP_FULL, RL_DROP_FULL, "so it is dropped (--when-full closed)",
		       dropped);
	check_homeless(RL_FULL_AGGREGATE, RL_DROP_FULL, RL_DROP_FULL,
		       "nor for a bucket of 198.51.100.0/24, so it is dropped (--when-full aggregate)",
		       dropped);
}

/* A source has its bucket, one of its classes has none. */
Test(view_explain, a_class_without_room)
{
	struct example *example = make_example();
	struct rl_explain explain = make_homeless(example, RL_FULL_OPEN, 0, RL_PASS_OPEN);

	explain.level[0].found = true;
	explain.level[1] = (struct rl_explain_level){
	    .limit = &example->limits[ACME_SYN],
	    .trial = {.reason = RL_PASS_OPEN, .room = RL_TRIAL_NEVER},
	};
	explain.level_count = 2;
	explain.device_count = 0;
	check_explained(
	    &explain, ABOVE
	    "source: 198.51.100.7, 0 packets passed, 0 dropped, 0 in shadow\n"
	    "class syn: the table has no room for it, so no bucket holds it (--when-full open)\n" WAY_OUT "\n"
	    "LEVEL   LIMIT       CLASS  RATE  LEFT  OF  KEPT  ENOUGH  STATE      PASSED  DROPPED  SHADOW\n"
	    "source  any         -         -     -   -     -     now  enforcing       0        0       0\n"
	    "class   10.0.0.0/8  syn       -     -   -     -     now  enforcing       0        0      50\n"
	    "\n"
	    "no device attached; policy and buckets are kept\n");
}

/* Whether there is room isn't asked then. */
Test(view_explain, new_has_no_token)
{
	struct example *example = make_example();
	struct rl_explain explain = make_homeless(example, RL_FULL_CLOSED, RL_DROP_FULL, RL_DROP_NEW);

	explain.level[1] =
	    (struct rl_explain_level){.limit = &example->limits[NEW], .found = true, .wait = 12000000};
	explain.level[1].limit = &example->limits[NEW];
	example->limits[NEW].limit.level = RL_LEVEL_NEW;
	explain.level[1].unit[RL_PACKETS] = (struct rl_explain_unit){true, 100, 0, 0, 12000000};
	explain.level[0].trial.reason = 0;
	explain.level_count = 2;
	explain.device[0].wait = 12000000;
	for (int full = 0; full < 2; full++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);

		explain.level[0].trial.reason = full ? RL_DROP_FULL : 0;
		cr_assert_eq(rl_view_explain_table(&explain, out), 0);
		fclose(out);
		cr_assert_not_null(
		    strstr(
			text,
			"source: 198.51.100.7, without a bucket: a new source isn't given one now, `new` has a token "
			"in 12 ms\n\nLEVEL"),
		    "got:\n%s", text);
		free(text);
	}
}
