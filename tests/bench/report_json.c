// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "report.h"

#define SCHEMA_VERSION 2

/* Two decimals: more are noise. */
static json_t *number(double value)
{
	return json_real((double)(long long)(value * 100 + (value < 0 ? -0.5 : 0.5)) / 100);
}

static json_t *share(double value)
{
	return json_real((double)(long long)(value * 10000 + (value < 0 ? -0.5 : 0.5)) / 10000);
}

static json_t *of_spread(const struct spread *spread)
{
	return json_pack("{s:o, s:o, s:o}", "median", number(spread->median), "q1", number(spread->low), "q3",
			 number(spread->high));
}

static json_t *of_scenario(const struct result *result)
{
	static const char *const compares[] = {"over drop", "new to known", "two CPUs to one"};
	const struct scenario *scenario = &result->scenario;

	return json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:s, s:s, s:s}", "name", result->name, "subject",
			 subject_name(result->subject), "drive",
			 scenario->drive == DRIVE_RUN ? "run" : "veth", "family", scenario->family, "sources",
			 (json_int_t)scenario->sources, "prefixes_asked", (json_int_t)scenario->prefixes,
			 "levels", scenario->levels == LEVELS_ALL ? "all" : "source", "verdict",
			 scenario->verdict == PASSING ? "passing" : "rejected", "compare",
			 compares[scenario->compare]);
}

static json_t *of_result(const struct result *result)
{
	json_t *out = of_scenario(result);

	if (result->skipped[0]) {
		json_object_set_new(out, "skipped", json_string(result->skipped));
		return out;
	}
	json_object_set_new(out, "prefixes", json_integer(result->prefixes));
	json_object_set_new(out, "ns", of_spread(&result->ns));
	json_object_set_new(out, "over_drop_ns", of_spread(&result->over_drop));
	if (result->has_skb)
		json_object_set_new(out, "over_skb_ns", of_spread(&result->over_skb));
	if (result->ratio_to) {
		json_object_set_new(out, "ratio", of_spread(&result->ratio));
		json_object_set_new(out, "ratio_to", json_string(result->ratio_to));
	}
	json_object_set_new(out, "passed_share", share(result->passed));
	json_object_set_new(out, "lost_share", share(result->lost));
	json_object_set_new(out, "drop_spread", share(result->noise));
	json_object_set_new(out, "others_cpu_share", share(result->others));
	json_object_set_new(out, "noisy", json_boolean(result_is_noisy(result)));
	json_object_set_new(out, "wrong_verdict", json_boolean(result_is_wrong(result)));
	return out;
}

static json_t *of_memory(const struct report_memory *memory)
{
	json_t *out =
	    json_pack("{s:s, s:i}", "subject", subject_name(memory->subject), "sources", FOOTPRINT_SOURCES);

	if (memory->skipped[0])
		json_object_set_new(out, "skipped", json_string(memory->skipped));
	else
		json_object_set_new(out, "bytes", json_integer((json_int_t)memory->bytes));
	return out;
}

static json_t *of_program(const struct footprint_program *program)
{
	return json_pack("{s:s, s:I, s:I, s:I}", "name", program->name, "verified_instructions",
			 (json_int_t)program->verified, "xlated_bytes", (json_int_t)program->xlated,
			 "jited_bytes", (json_int_t)program->jited);
}

static json_t *of_report(const struct report *report)
{
	json_t *results = json_array(), *memory = json_array(), *programs = json_array();
	bool noisy = false;

	for (size_t i = 0; i < report->count; i++) {
		json_array_append_new(results, of_result(&report->results[i]));
		noisy |= result_is_noisy(&report->results[i]);
	}
	for (int i = 0; i < report->memories; i++)
		json_array_append_new(memory, of_memory(&report->memory[i]));
	for (int i = 0; i < report->program_count; i++)
		json_array_append_new(programs, of_program(&report->programs[i]));
	return json_pack("{s:i, s:s, s:s, s:s, s:i, s:{s:I, s:I}, s:b, s:o, s:o, s:o}", "schema_version",
			 SCHEMA_VERSION, "cpu", report->cpu, "kernel", report->kernel, "compiler",
			 report->compiler, "rounds", report->options->rounds, "packets", "run",
			 (json_int_t)report->options->packets[DRIVE_RUN], "veth",
			 (json_int_t)report->options->packets[DRIVE_VETH], "noisy", noisy, "results", results,
			 "memory", memory, "programs", programs);
}

int report_write(const struct report *report, const char *path)
{
	json_t *root = of_report(report);
	int failed = root ? json_dump_file(root, path, JSON_INDENT(2)) : -1;

	json_decref(root);
	return failed ? -EIO : 0;
}
