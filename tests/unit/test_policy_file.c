// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A policy file's text: which lines there are, how an error is told, and that no two lines are about the same. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../user/policy_apply.h"
#include "../../user/class.h"
#include "../../user/limit.h"
#include "../../user/statement.h"
#include "../../user/target.h"
#include "random.h"

#define TEXT 4096

static int read_bytes(const char *text, size_t size, struct rl_policy_file *file, struct rl_error *err)
{
	FILE *in = size ? fmemopen((void *)text, size, "r") : fopen("/dev/null", "r");
	int rc;

	cr_assert_not_null(in);
	*file = (struct rl_policy_file){};
	*err = (struct rl_error){};
	rc = rl_policy_file_read(in, "p", file, err);
	fclose(in);
	cr_assert(!rc || (!file->lines && !file->count && err->text[0]),
		  "something is left of what was refused");
	return rc;
}

static int read_text(const char *text, struct rl_policy_file *file, struct rl_error *err)
{
	return read_bytes(text, strlen(text), file, err);
}

/* What was read, a line each: its number, and what it says. */
static const char *print(const struct rl_policy_file *file, char out[TEXT])
{
	char line[RL_STATEMENT_TEXT];
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < file->count; i++)
		used +=
		    (size_t)snprintf(out + used, TEXT - used, "%u %s\n", file->lines[i].number,
				     rl_statement_print(&file->lines[i].target, file->lines[i].terms, line));
	return out;
}

static void expect_bytes(const char *text, size_t size, const char *wanted)
{
	RL_POLICY_FILE struct rl_policy_file file = {};
	struct rl_error err;
	char out[TEXT];

	cr_assert_eq(read_bytes(text, size, &file, &err), 0, "%s", err.text);
	cr_expect_str_eq(print(&file, out), wanted);
}

static void expect(const char *text, const char *wanted)
{
	expect_bytes(text, strlen(text), wanted);
}

/* Refused, with a text that begins so and goes on so. */
static void refused_bytes(const char *text, size_t size, const char *begins, const char *has)
{
	struct rl_policy_file file;
	struct rl_error err;

	cr_expect_lt(read_bytes(text, size, &file, &err), 0, "%s", text);
	cr_expect_eq(err.kind, RL_ERROR_USAGE);
	cr_expect_eq(strncmp(err.text, begins, strlen(begins)), 0, "\"%s\" begins with \"%s\"", err.text,
		     begins);
	cr_expect_not_null(strstr(err.text, has), "\"%s\" has \"%s\"", err.text, has);
}

static void refused(const char *text, const char *begins, const char *has)
{
	refused_bytes(text, strlen(text), begins, has);
}

Test(policy_file, lines_are_limits_in_order)
{
	expect(
	    "set-limit new --rate 20kpps\n"
	    "set-limit dev:eth0 --rate 1mpps --reserve high=20%,normal=5%\n"
	    "set-limit tenant:acme --rate 2kpps --burst 4000 --priority high --shadow\n"
	    "deny 192.0.2.66 --shadow\n"
	    "allow 192.0.2.0/28\n"
	    "set-limit 198.51.100.0/24 --class udp/53 --rate 7/m\n"
	    "set-limit 198.51.100.0/24 --rate 1kpps --rate 10mbit --burst 2000 --burst 256kb --tenant acme "
	    "--cost syn=10,frag=4 --priority low --per /28 --enforce\n"
	    "set-limit 198.51.100.0/24 --class syn --rate 100pps\n"
	    "set-limit any --rate 5kpps --shared\n",
	    "9 set-limit any --rate 5kpps --burst 1250p --shared\n"
	    "5 allow 192.0.2.0/28\n"
	    "4 deny 192.0.2.66 --shadow\n"
	    "7 set-limit 198.51.100.0/24 --rate 1kpps --burst 2000p --rate 10mbit --burst 256kb --tenant acme "
	    "--cost syn=10,frag=4 --priority low --per /28\n"
	    "6 set-limit 198.51.100.0/24 --class udp/53 --rate 7/m --burst 16p\n"
	    "8 set-limit 198.51.100.0/24 --class syn --rate 100pps --burst 25p\n"
	    "3 set-limit tenant:acme --rate 2kpps --burst 4000p --priority high --shadow\n"
	    "2 set-limit dev:eth0 --rate 1mpps --burst 250000p --reserve high=20%,normal=5%\n"
	    "1 set-limit new --rate 20kpps --burst 5000p\n");
}

Test(policy_file, what_is_no_line_is_left_out_and_counted)
{
	static const char marked[] = "\n# a comment\n   \t \n \t# another --rate\n#\n##\n"
				     "\t allow \t 192.0.2.1 \t\n\n";

	expect("", "");
	expect("\n", "");
	expect("\n\n# nothing\n", "");
	expect("# nothing", "");
	expect(marked, "7 allow 192.0.2.1\n");
}

Test(policy_file, a_line_ends_as_it_likes)
{
	expect("allow 192.0.2.1\r\n\r\n# c\r\nallow 192.0.2.2\r\n", "1 allow 192.0.2.1\n4 allow 192.0.2.2\n");
	expect("allow 192.0.2.1\nallow 192.0.2.2", "1 allow 192.0.2.1\n2 allow 192.0.2.2\n");
	expect("allow 192.0.2.1\r\nallow 192.0.2.2\r", "1 allow 192.0.2.1\n2 allow 192.0.2.2\n");
	refused("allow 192.0.2.1\rallow 192.0.2.2\n", "p:1: ", "too many arguments");
}

Test(policy_file, an_error_names_its_line)
{
	refused("allow 192.0.2.1\n\nset-limit any --rate 5\n", "p:3: ", "\"5\"");
	refused("allow 192.0.2.1\n#\nset-limit any\n", "p:3: no rate was given for any", "expected");
	refused("set-limit\n", "p:1: set-limit: an argument is missing: TARGET", "usage");
	refused("allow 192.0.2.1 192.0.2.2\n", "p:1: allow: too many arguments: \"192.0.2.2\"", "usage");
	refused("allow 192.0.2.1 --rate 5pps\n", "p:1: allow: --rate: unknown option", "usage");
	refused("set-limit any --rate 1pps --shared --shared", "p:1: ", "--shared is given twice");
	refused("set-limit any --rate 1pps --tenant", "p:1: ", "--tenant");
	refused("deny tenant:acme\n", "p:1: deny takes sources", "expected");
	refused("set-limit 10.0.0.1/8 --rate 1pps", "p:1: ", "10.0.0.0/8");
	refused("set-limit any --rate 1pps --shadow --enforce", "p:1: --shadow and --enforce contradict",
		"one of them");
}

Test(policy_file, only_whole_limits_are_lines)
{
	refused("rl-agent allow 192.0.2.1\n", "p:1: a line begins with set-limit, allow or deny",
		"leave out rl-agent");
	refused("attach eth0\n", "p:1: \"attach\" states no limit", "expected set-limit, allow or deny");
	refused("del-limit any\n", "p:1: \"del-limit\" states no limit", "expected");
	refused("set-limit any --shadow\n", "p:1: --shadow alone changes a limit that is there", "--rate");
	refused("set-limit any --class syn --enforce\n", "p:1: --enforce alone changes", "--rate");
	refused("allow 192.0.2.1 # trusted\n", "p:1: there is a # behind other words", "line of its own");
}

Test(policy_file, whatever_bytes_there_are)
{
	static const char nul[] = "allow 192.0.2.1\nallow 192.0.2.2\0 x\n", behind[] = "allow 192.0.2.1\n\0";
	char words[600] = "set-limit any";

	refused_bytes(nul, sizeof(nul) - 1, "p:2: the line has a NUL byte", "expected text");
	refused_bytes(behind, sizeof(behind) - 1, "p:2: the line has a NUL byte", "expected text");
	refused("\x1b[31m\xff\n", "p:1: \"\\x1b[31m\\xff\" states no limit", "expected");
	for (int i = 0; i < 70; i++)
		strcat(words, " --x=1");
	refused(words, "p:1: there are more than 64 words", "one limit a line");
}

Test(policy_file, a_line_may_be_long_but_not_endless)
{
	static const char first[] = "allow 192.0.2.1";
	char text[2 * RL_POLICY_LINE_BYTES + 64];

	memset(text, ' ', sizeof(text));
	memcpy(text, first, sizeof(first) - 1);
	strcpy(text + RL_POLICY_LINE_BYTES - 1, "\nallow 192.0.2.2\n");
	expect(text, "1 allow 192.0.2.1\n2 allow 192.0.2.2\n");
	memset(text, '\n', 3);
	memset(text + 3, 'a', sizeof(text) - 3);
	refused_bytes(text, RL_POLICY_LINE_BYTES + 3, "p:4: the line is longer than 4095 bytes",
		      "no limit needs");
	refused_bytes(text, sizeof(text), "p:4: the line is longer than 4095 bytes", "no limit needs");
}

Test(policy_file, a_target_and_a_class_of_it_are_named_once)
{
	refused("allow 192.0.2.1\nset-limit any --rate 1pps\n\ndeny 192.0.2.1/32\n",
		"p:4: 192.0.2.1 is in line 1 already", "once");
	refused("set-limit tenant:a --rate 1pps\nset-limit tenant:a --rate 1pps\n",
		"p:2: tenant:a is in line 1", "");
	refused("set-limit new --rate 1pps\nset-limit new --rate 1pps\n", "p:2: new is in line 1 already",
		"");
	refused(
	    "set-limit any --class syn --rate 1pps\nset-limit any --rate 1pps\nset-limit any --class syn --rate 2pps",
	    "p:3: class syn of any is in line 1 already", "once");
	/* The first of several, read from the top. */
	refused("allow 192.0.2.9\nallow 192.0.2.1\nallow 192.0.2.9\nallow 192.0.2.1\nallow 192.0.2.1\n",
		"p:3: 192.0.2.9 is in line 1 already", "once");
	expect(
	    "set-limit any --class tcp --rate 1pps\nset-limit any --rate 1pps\nset-limit any --class tcp/80 --rate 2pps",
	    "2 set-limit any --rate 1pps --burst 16p\n1 set-limit any --class tcp --rate 1pps --burst 16p\n"
	    "3 set-limit any --class tcp/80 --rate 2pps --burst 16p\n");
}

Test(policy_file, what_is_trusted_has_no_classes)
{
	refused("set-limit 10.0.0.0/8 --class syn --rate 1pps\nallow 10.0.0.0/8\n",
		"p:2: it contradicts line 1: by allow", "expected one of the two");
	refused("deny 10.0.0.0/8\nset-limit 10.0.0.0/8 --class syn --rate 1pps\n",
		"p:2: it contradicts line 1: by deny", "expected one of the two");
}

static size_t classes_say(char *text, size_t size, int count, const char *first)
{
	size_t used = (size_t)snprintf(text, size, "%s", first);

	for (int i = 1; i <= count; i++)
		used += (size_t)snprintf(text + used, size - used,
					 "set-limit any --class tcp/%d --rate 1pps\n", i);
	return used;
}

Test(policy_file, a_prefix_has_eight_classes_at_most)
{
	RL_POLICY_FILE struct rl_policy_file file = {};
	struct rl_error err;
	char text[2048];

	for (int general = 0; general < 2; general++) {
		const char *first = general ? "set-limit any --rate 1pps\n" : "# without a general limit\n";

		classes_say(text, sizeof(text), RL_MAX_CLASSES, first);
		cr_expect_eq(read_text(text, &file, &err), 0, "%s", err.text);
		cr_expect_eq(file.count, (size_t)RL_MAX_CLASSES + (size_t)general);
		rl_policy_file_free(&file);
		classes_say(text, sizeof(text), RL_MAX_CLASSES + 3, first);
		refused(text, "p:10: class tcp/9 of any is one too many", "8 classes of it from line 2 on");
	}
	classes_say(text, sizeof(text), RL_MAX_CLASSES, "");
	strcat(text, "set-limit any --class tcp/3 --rate 1pps\n");
	refused(text, "p:9: class tcp/3 of any is in line 3 already", "once");
}

Test(policy_file, many_lines_about_one_are_refused_as_quickly_as_others)
{
	static char text[20000 * 27 + 1];
	size_t used = 0;

	for (int i = 0; i < 20000; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "set-limit any --rate 1pps\n");
	refused(text, "p:2: any is in line 1 already", "once");
}

Test(policy_file, what_was_said_of_one_target_is_said_of_others)
{
	/* Whatever the kind, the family and the blanks; and where what is said depends on whom it is said of. */
	expect("set-limit 10.0.0.0/8 --rate 1kpps --tenant acme\n"
	       "set-limit  2001:db8::/32 --rate 1kpps --tenant acme\n"
	       "\tset-limit 10.1.0.0/16 --rate 1kpps --tenant acme\r\n"
	       "set-limit --rate 1kpps 10.2.0.0/16 --tenant acme\n"
	       "set-limit any --rate 1kpps\nset-limit new --rate 1kpps\nset-limit tenant:a --rate 1kpps\n"
	       "set-limit 10.4.0.0/16 --rate 1kpps --per /24\nset-limit 10.3.0.0/16 --rate 1kpps --per /24\n"
	       "allow 10.5.0.0/16\nallow 10.6.0.0/16\ndeny 10.7.0.0/16\n",
	       "5 set-limit any --rate 1kpps --burst 250p\n"
	       "1 set-limit 10.0.0.0/8 --rate 1kpps --burst 250p --tenant acme\n"
	       "3 set-limit 10.1.0.0/16 --rate 1kpps --burst 250p --tenant acme\n"
	       "4 set-limit 10.2.0.0/16 --rate 1kpps --burst 250p --tenant acme\n"
	       "9 set-limit 10.3.0.0/16 --rate 1kpps --burst 250p --per /24\n"
	       "8 set-limit 10.4.0.0/16 --rate 1kpps --burst 250p --per /24\n"
	       "10 allow 10.5.0.0/16\n11 allow 10.6.0.0/16\n12 deny 10.7.0.0/16\n"
	       "2 set-limit 2001:db8::/32 --rate 1kpps --burst 250p --tenant acme\n"
	       "7 set-limit tenant:a --rate 1kpps --burst 250p\n6 set-limit new --rate 1kpps --burst 250p\n");
	refused(
	    "set-limit 10.4.0.0/16 --rate 1pps --per /24\nset-limit 10.4.3.128/25 --rate 1pps --per /24\n",
	    "p:2: --per /24 of 10.4.3.128/25 is out of range", "expected");
	refused("set-limit any --rate 1mbit\nset-limit new --rate 1mbit\n", "p:2: new counts sources", "");
	refused("set-limit any --rate 1pps --tenant a\nset-limit dev:e --rate 1pps --tenant a\n",
		"p:2: dev:e takes no --tenant", "");
	refused("allow 10.0.0.0/8\nallow tenant:a\n", "p:2: allow takes sources, and tenant:a is none", "");
	refused("allow 10.0.0.0/8\nallow 10.0.0.1/8\n", "p:2: ", "10.0.0.0/8 for the network");
	refused("allow 10.0.0.0/8\nallow #\n", "p:2: there is a # behind other words", "");
	refused("allow 10.0.0.0/8\nallow\n", "p:2: allow: an argument is missing", "");
}

/* Thousands of lines with little in common, so that what was said is looked up among as much. */
Test(policy_file, each_line_may_say_something_else)
{
	RL_POLICY_FILE struct rl_policy_file file = {};
	static char text[20000 * 80];
	struct rl_error err;
	size_t used = 0;

	for (int i = 0; i < 20000; i++) {
		int rate = i % 10000;

		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "set-limit 10.%d.%d.0/24 --rate %dpps --burst %d\n", i >> 8, i & 255,
					 1 + rate, 10 + rate);
	}
	cr_assert_eq(read_text(text, &file, &err), 0, "%s", err.text);
	cr_assert_eq(file.count, 20000);
	for (__u32 i = 0; i < 20000; i++) {
		cr_assert_eq(file.lines[i].number, i + 1);
		cr_assert_eq(file.lines[i].terms->burst_packets, 10 + i % 10000);
		cr_assert_eq(file.lines[i].terms->packets_per_hour, 3600ULL * (1 + i % 10000));
	}
}

static __u64 below(__u64 *seed, __u64 end)
{
	return random_between(seed, 0, end - 1);
}

static struct rl_target random_target(__u64 *seed)
{
	struct rl_target target = {.kind = (__u32)below(seed, RL_TARGETS)};
	__u8 address[16] = {0x20, 1};

	if (target.kind == RL_TARGET_TENANT || target.kind == RL_TARGET_DEVICE)
		snprintf(target.name, sizeof(target.name), "a%.*s%u", (int)below(seed, 15), "--------------",
			 (unsigned int)below(seed, 300));
	if (target.kind != RL_TARGET_PREFIX || !below(seed, 50))
		return target;
	for (size_t i = 0; i < 3; i++)
		address[below(seed, sizeof(address))] = (__u8)below(seed, 256);
	target.prefix = below(seed, 2) ? rl_prefix_cut(4, address, (unsigned int)below(seed, 33))
				       : rl_prefix_cut(6, address, (unsigned int)below(seed, 129));
	return target;
}

Test(policy_file, any_targets_come_into_order)
{
	__u64 seed = 20240608;

	for (int round = 0; round < 200; round++) {
		RL_POLICY_FILE struct rl_policy_file file = {.name = "p"};
		static const struct rl_terms terms = RL_TERMS_INIT;
		struct rl_error err = {};
		size_t count = 1 + below(&seed, round % 10 ? 30 : 3000), named = 0;
		int rc;

		file.lines = calloc(count, sizeof(*file.lines));
		cr_assert_not_null(file.lines);
		for (file.count = 0; file.count < count; file.count++)
			file.lines[file.count] = (struct rl_policy_line){
			    .target = random_target(&seed), .terms = &terms, .number = (__u32)file.count + 1};
		rc = rl_policy_file_order(&file, &err);
		for (size_t i = 1; i < count; i++) {
			int order = rl_target_compare(&file.lines[i - 1].target, &file.lines[i].target);

			cr_assert_leq(order, 0);
			cr_assert(order || file.lines[i - 1].number < file.lines[i].number);
			named += !order;
		}
		cr_assert_eq(rc, named ? -EEXIST : 0);
	}
}

Test(policy_file, a_cost_that_no_bucket_holds_is_of_its_line)
{
	static const char text[] = "set-limit tenant:acme --rate 1kpps --burst 20\n"
				   "set-limit 10.1.0.0/16 --rate 1kpps --burst 100 --cost syn=%d\n"
				   "set-limit 10.0.0.0/8 --rate 1kpps --tenant acme\n"
				   "set-limit dev:eth0 --rate 1kpps --burst 50\n";
	RL_POLICY_FILE struct rl_policy_file file = {};
	struct rl_error err;
	char say[512];

	for (int cost = 19; cost <= 51; cost++) {
		snprintf(say, sizeof(say), text, cost);
		cr_assert_eq(read_text(say, &file, &err), 0, "%s", err.text);
		cr_expect_eq(rl_policy_file_check(&file, &err) != 0, cost > 20, "cost %d", cost);
		cr_expect(cost <= 20 || !strncmp(err.text, "p:2: cost syn=", 14), "%s", err.text);
		rl_policy_file_free(&file);
	}
	/* Without the prefix around it, it has no tenant, and only the device's burst bounds it. */
	snprintf(say, sizeof(say),
		 "set-limit tenant:acme --rate 1kpps --burst 20\nset-limit dev:eth0 --rate 1kpps --burst 50\n"
		 "set-limit 10.1.0.0/16 --rate 1kpps --burst 100 --cost syn=50\n");
	cr_assert_eq(read_text(say, &file, &err), 0, "%s", err.text);
	cr_expect_eq(rl_policy_file_check(&file, &err), 0, "%s", err.text);
}

Test(policy_file, a_file_that_is_not_there_is_named)
{
	struct rl_policy_file file = {};
	struct rl_error err;

	cr_expect_lt(rl_policy_file_open("/nonexistent/policy", &file, &err), 0);
	cr_expect_not_null(strstr(err.text, "/nonexistent/policy: No such file"), "%s", err.text);
	cr_expect_lt(rl_policy_file_open("/", &file, &err), 0);
	cr_expect_not_null(strstr(err.text, "can't read /: Is a directory"), "%s", err.text);
	cr_expect_eq(err.kind, RL_ERROR_USAGE);
}
