// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a policy file: refused with a line, or limits whose lines, printed, are the same file again. And the
 * way from one policy to another, split at the first byte 0xff: applied twice, nothing is left to do.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/class.h"
#include "../../user/diff.h"
#include "../../user/limit.h"
#include "../../user/policy_file.h"
#include "../../user/statement.h"

#define NOW 1000000000000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static int read_bytes(const void *data, size_t size, struct rl_policy_file *file)
{
	FILE *in = fmemopen((void *)data, size, "r");
	struct rl_error err = {0};
	int rc;

	require(in != NULL);
	*file = (struct rl_policy_file){0};
	rc = rl_policy_file_read(in, "p", file, &err);
	fclose(in);
	if (rc)
		require(err.kind == RL_ERROR_USAGE && !strncmp(err.text, "p:", 2) && !file->lines);
	return rc;
}

static void check_printed(const struct rl_policy_file *file)
{
	char line[RL_STATEMENT_TEXT], *text = NULL;
	struct rl_policy_file again;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	require(out != NULL);
	for (size_t i = 0; i < file->count; i++)
		fprintf(out, "%s\n", rl_statement_print(&file->lines[i].target, file->lines[i].terms, line));
	fclose(out);
	require(size == 0 || !read_bytes(text, size, &again));
	for (size_t i = 0; size && i < file->count; i++)
		require(
		    !memcmp(&again.lines[i].target, &file->lines[i].target, sizeof(file->lines[i].target)) &&
		    !memcmp(again.lines[i].terms, file->lines[i].terms, sizeof(*file->lines[i].terms)));
	if (size)
		rl_policy_file_free(&again);
	free(text);
}

static int diff_make(const struct rl_limit *old, size_t count, const struct rl_policy_file *file,
		     struct rl_diff *out, struct rl_error *err)
{
	const struct rl_limit **each = calloc(count + 1, sizeof(void *));
	int rc;

	require(each != NULL);
	for (size_t i = 0; i < count; i++)
		each[i] = &old[i];
	rc = rl_diff_make(each, count, file, NOW, out, err);
	free(each);
	return rc;
}

/* What is in force after the diff, in its order; NULL where the diff is refused. */
static struct rl_limit *step_on(const struct rl_limit *old, size_t old_count,
				const struct rl_policy_file *file, size_t *count, size_t *touched)
{
	struct rl_diff diff = {0};
	struct rl_error err = {0};
	struct rl_limit *limits;
	__u32 next = (__u32)old_count + 1;

	if (diff_make(old, old_count, file, &diff, &err)) {
		require(err.kind == RL_ERROR_USAGE);
		return NULL;
	}
	require(diff.said.limits == file->count &&
		diff.said.come + diff.said.changed + diff.said.same == file->count);
	for (size_t i = 0; i < diff.count; i++)
		if (diff.steps[i].fate == RL_FATE_COMES)
			diff.steps[i].slot = diff.steps[i].id = 1000000 * (old_count != 0) + next++;
	limits = calloc(diff.count + 1, sizeof(*limits));
	require(limits != NULL);
	*count = 0;
	for (size_t i = 0, general = 0; i < diff.count; i++) {
		const struct rl_step *step = &diff.steps[i];
		int class = rl_class_is_set(step->class);

		if (!step->wanted)
			continue;
		if (!class)
			general = *count;
		require(!rl_diff_limit(&diff, step, class ? &limits[general] : NULL, &limits[*count], &err));
		++*count;
	}
	*touched = diff.count - diff.fates[RL_FATE_STAYS];
	rl_diff_free(&diff);
	return limits;
}

static void check_diff(const struct rl_policy_file *from, const struct rl_policy_file *to)
{
	size_t first, second, third, touched;
	struct rl_limit *old = step_on(NULL, 0, from, &first, &touched), *new, *same;

	require(old != NULL);
	new = step_on(old, first, to, &second, &touched);
	if (new) {
		same = step_on(new, second, to, &third, &touched);
		require(same && touched == 0 && third == second && !memcmp(same, new, second * sizeof(*new)));
		free(same);
	}
	free(new);
	free(old);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *split = memchr(data, 0xff, size);
	size_t head = split ? (size_t)(split - data) : size;
	struct rl_policy_file from, to;

	if (!head || read_bytes(data, head, &from))
		return 0;
	check_printed(&from);
	if (split && size > head + 1 && !read_bytes(split + 1, size - head - 1, &to)) {
		check_diff(&from, &to);
		rl_policy_file_free(&to);
	}
	rl_policy_file_free(&from);
	return 0;
}
