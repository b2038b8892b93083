// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What list, stats, status and top print for people: tables to the letter. */
#include <criterion/criterion.h>

#include "../../user/grid.h"
#include "../../user/plain.h"
#include "views.h"

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
	struct rl_view_status status = {
	    .cookie = 42, .path = "/somewhere/42", .snapshot = snapshot, .memory = 640000000};

	return rl_view_status_table(&status, out);
}

static int print_top(const struct rl_snapshot *snapshot, FILE *out)
{
	struct rl_snapshot before = {.time = snapshot->time - 1000000000,
				     .sources_time = snapshot->sources_time - 1000000000};
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
		    "DEVICE  MODE    RECEIVED  BYTES  PASSED   BYTES  DROPPED   BYTES  SHADOW   BYTES\n"
		    "eth0    native      1050  105kB     950  95.0kB      100  10.0kB      50  5.00kB\n"
		    "eth1    gone           0     0B       0      0B        0      0B       0      0B\n"
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
    "memory reserved for it all: 640MB\n"
    "\n"
    "DEVICE  INDEX  DIRECTION  MODE     HOOK  STATE      PROGRAM  LINK  SINCE\n"
    "eth0        2  in         native   xdp   enforcing       80    70  2024-02-29T12:00:00Z\n"
    "eth1        -  in         generic  xdp   gone            81    71  2024-02-29T12:00:00Z\n"
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
		    "memory reserved for it all: 640MB\n"
		    "\n"
		    "DEVICE  INDEX  DIRECTION  MODE    HOOK  STATE   PROGRAM  LINK  SINCE\n"
		    "eth0        2  in         native  xdp   shadow       80    70  2024-02-29T12:00:00Z\n");
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

Test(view_table, nothing_there)
{
	struct rl_snapshot empty = {.meta = {.max_sources = 1000}, .settings.when_full = RL_FULL_OPEN};

	check_table(rl_view_list_table, &empty, "no limit is set\n");
	check_table(rl_view_stats_table, &empty,
		    "no device attached; policy and buckets are kept\n\nno limit is set\n");
	check_table(print_status, &empty,
		    "network namespace 42, state in /somewhere/42\n0 limits\n"
		    "store table, room for 1000 sources; when full, a new one passes (open)\n"
		    "memory reserved for it all: 640MB\n\n"
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
			       "b           12345678  w         a\\x1b[31mb\\x0a\n");
	free(text);
}

/* Control characters, also those of more than one byte, and bytes that are no text are shown, not sent. */
Test(plain, what_a_terminal_obeys_is_escaped)
{
	static const struct {
		const char *text, *plain;
	} cases[] = {
	    {"eth0", "eth0"},
	    {"", ""},
	    {"a\x1b]0;b\x07\x7f\n", "a\\x1b]0;b\\x07\\x7f\\x0a"},
	    {"sm\xc3\xb8r \xe2\x82\xac \xf0\x9f\x90\xa7", "sm\xc3\xb8r \xe2\x82\xac \xf0\x9f\x90\xa7"},
	    {"\xc2\x9b"
	     "2J",
	     "\\xc2\\x9b"
	     "2J"}, /* U+009B is ESC [ */
	    {"\x9b"
	     "2J",
	     "\\x9b"
	     "2J"},
	    {"\xc1\x9b", "\\xc1\\x9b"},			  /* overlong */
	    {"\xe0\x80\x9b", "\\xe0\\x80\\x9b"},	  /* likewise */
	    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},	  /* a surrogate */
	    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
	    {"\xe2\x82", "\\xe2\\x82"},			  /* cut */
	};
	char out[RL_PLAIN_ROOM(32)];

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_str_eq(rl_plain(cases[i].text, out, sizeof(out)), cases[i].plain);
	cr_expect_str_eq(rl_plain_ascii("\xc3\xb8 a\x1b", out, sizeof(out)), "\\xc3\\xb8 a\\x1b");
	cr_expect_str_eq(rl_plain("ab\x1b", out, 6), "ab", "never half of one");
	cr_expect_str_eq(rl_plain("ab\x1b", out, 7), "ab\\x1b");
}

Test(plain, a_line_is_printed_as_one)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	rl_plain_print(out, "%s: %d\n", "a\nb", 7);
	rl_plain_print(out, "%s", "c\n");
	fclose(out);
	cr_expect_str_eq(text, "a\\x0ab: 7\nc\\x0a");
	free(text);
}
