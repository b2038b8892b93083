// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "limit.h"
#include "target.h"

static const struct rl_class whole;
static const struct rl_terms unsaid = RL_TERMS_INIT;

#define RANK_NEW (1ULL << 32) /* behind all that are in force */

static bool is_general(const struct rl_step *step)
{
	return step->target->kind == RL_TARGET_PREFIX && !rl_class_is_set(step->class);
}

static bool is_class(const struct rl_step *step)
{
	return rl_class_is_set(step->class);
}

/* ---- both policies as steps ---- */

static struct rl_step *step_add(struct rl_diff *diff, const struct rl_target *target,
				const struct rl_class *class)
{
	struct rl_step *step = &diff->steps[diff->count++];

	*step = (struct rl_step){
	    .target = target, .class = class, .slot = RL_SLOT_UNCLAIMED, .cell = 0, .rank = RANK_NEW};
	return step;
}

static void old_add(struct rl_diff *diff, const struct rl_limit *old, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rl_step *step = step_add(diff, &old[i].target, &old[i].terms.class);

		step->old = &old[i];
		step->id = old[i].id;
		step->slot = old[i].slot;
		step->rank = i;
	}
}

static void tenant_add(struct rl_diff *diff, struct rl_target *tenant, const char *name)
{
	*tenant = (struct rl_target){.kind = RL_TARGET_TENANT};
	memcpy(tenant->name, name, sizeof(tenant->name));
	step_add(diff, tenant, &whole)->wanted = true;
}

/* A line's limit, and what has to be there for it. Lines that follow each other often want the same. */
static void line_add(struct rl_diff *diff, const struct rl_policy_line *line,
		     const struct rl_policy_line *last, size_t *tenants)
{
	struct rl_step *step = step_add(diff, &line->target, &line->terms.class);
	const char *tenant = line->terms.tenant;

	step->line = line;
	step->wanted = true;
	step->rank = RANK_NEW + line->number;
	if (is_class(step) && !(last && !rl_target_compare(&last->target, &line->target)))
		step_add(diff, &line->target, &whole)->wanted = true;
	if (*tenant && !(last && !memcmp(last->terms.tenant, tenant, RL_TENANT_LEN)))
		tenant_add(diff, &diff->tenants[(*tenants)++], tenant);
}

static int steps_compare(const void *a, const void *b)
{
	const struct rl_step *one = a, *other = b;
	int order = rl_target_compare(one->target, other->target);

	return order ? order : memcmp(one->class, other->class, sizeof(*one->class));
}

/* Of several about one limit, one that knows all. */
static void steps_fold(struct rl_diff *diff)
{
	size_t kept = 0;

	for (size_t i = 0; i < diff->count; i++) {
		struct rl_step *step = &diff->steps[i], *last = kept ? &diff->steps[kept - 1] : NULL;

		if (!last || steps_compare(last, step) != 0) {
			diff->steps[kept++] = *step;
			continue;
		}
		last->wanted |= step->wanted;
		if (step->line)
			last->line = step->line;
		if (step->rank < last->rank)
			last->rank = step->rank;
		if (step->old) {
			last->old = step->old;
			last->id = step->id;
			last->slot = step->slot;
		}
	}
	diff->count = kept;
}

static int ranks_compare(const void *a, const void *b)
{
	const struct rl_step *one = a, *other = b;

	return (one->rank > other->rank) - (one->rank < other->rank);
}

/* The steps of each prefix's classes in the order that its limit names them. */
static void classes_order(struct rl_diff *diff)
{
	struct rl_step *end = diff->steps + diff->count, *next;

	for (struct rl_step *step = diff->steps; step < end; step = next) {
		next = step + 1;
		if (!is_general(step))
			continue;
		while (next < end && is_class(next) && !rl_target_compare(next->target, step->target))
			next++;
		step->classes = (size_t)(next - step) - 1;
		qsort(step + 1, step->classes, sizeof(*step), ranks_compare);
	}
}

static int steps_make(struct rl_diff *diff, const struct rl_limit *old, size_t count,
		      const struct rl_policy_file *file, struct rl_error *err)
{
	size_t tenants = 0;

	/* Of each line its limit, its prefix's and its tenant's. */
	diff->steps = calloc(count + 3 * file->count + 1, sizeof(*diff->steps));
	diff->tenants = calloc(file->count + 1, sizeof(*diff->tenants));
	if (!diff->steps || !diff->tenants)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	old_add(diff, old, count);
	for (size_t i = 0; i < file->count; i++)
		line_add(diff, &file->lines[i], i ? &file->lines[i - 1] : NULL, &tenants);
	qsort(diff->steps, diff->count, sizeof(*diff->steps), steps_compare);
	steps_fold(diff);
	classes_order(diff);
	return 0;
}

/* ---- what is around a prefix ---- */

/* Prefixes, each inside the one before: no two are of one length. */
struct nest {
	struct rl_step *prefix;
	struct rl_step *old, *wanted; /* the nearest that is so, itself included */
	struct rl_step *tenant;	      /* of the nearest that is wanted */
};

static struct rl_step *tenant_find(const struct rl_diff *diff, const char *name)
{
	struct rl_target target = {.kind = RL_TARGET_TENANT};
	const struct rl_step key = {.target = &target, .class = &whole};

	memcpy(target.name, name, sizeof(target.name));
	return bsearch(&key, diff->steps, diff->count, sizeof(key), steps_compare);
}

/* What the step is inside of is `around`; itself is then what others are inside of. */
static struct nest prefix_nest(const struct rl_diff *diff, struct rl_step *step, const struct nest *around)
{
	struct nest nest = *around;

	nest.prefix = step;
	step->around_old = around->old;
	step->around_new = around->wanted;
	if (step->old)
		nest.old = step;
	if (!step->wanted)
		return nest;
	nest.wanted = step;
	if (step->line && step->line->terms.tenant[0])
		nest.tenant = tenant_find(diff, step->line->terms.tenant);
	step->tenant = nest.tenant;
	return nest;
}

static void prefixes_nest(struct rl_diff *diff)
{
	struct nest nests[RL_PREFIX_MAX_BITS + 2] = {};
	size_t depth = 0; /* nests[0] is outside of all */

	for (size_t i = 0; i < diff->count; i++) {
		struct rl_step *step = &diff->steps[i];

		if (!is_general(step))
			continue;
		while (depth &&
		       !rl_prefix_covers(&nests[depth].prefix->target->prefix, &step->target->prefix))
			depth--;
		nests[depth + 1] = prefix_nest(diff, step, &nests[depth]);
		depth++;
	}
}

/* ---- what becomes of each ---- */

static void classes_name(const struct rl_step *general, struct rl_limit *limit)
{
	limit->class_count = 0;
	memset(limit->class, 0, sizeof(limit->class));
	for (const struct rl_step *class = general + 1; class <= general + general->classes; class ++)
		if (class->wanted && limit->class_count < RL_MAX_CLASSES)
			limit->class[limit->class_count++] =
			    (struct rl_class_ref){.class = *class->class, .slot = class->slot};
}

int rl_diff_limit(const struct rl_diff *diff, const struct rl_step *step, const struct rl_limit *general,
		  struct rl_limit *out, struct rl_error *err)
{
	const struct rl_policy_line *line = step->line;
	struct rl_limit limit;
	int rc = rl_limit_compute(step->target, line ? &line->terms : &unsaid, step->old, step->id,
				  step->slot, diff->now, &limit, err);

	if (rc)
		return line ? rl_policy_line_error(diff->name, line->number, rc, err) : rc;
	if (is_general(step)) {
		limit.tenant = step->tenant ? step->tenant->slot : 0;
		classes_name(step, &limit);
	}
	if (general)
		rl_limit_follow(&limit, general);
	*out = limit;
	return 0;
}

/* Of a wanted one that is in force: does anything of it change? */
static int change_find(const struct rl_diff *diff, struct rl_step *step, const struct rl_limit *general,
		       struct rl_error *err)
{
	struct rl_limit limit;
	int rc = rl_diff_limit(diff, step, general, &limit, err);

	if (!rc && memcmp(&limit, step->old, sizeof(limit)) != 0)
		step->fate = RL_FATE_CHANGES;
	return rc;
}

static int fate_find(const struct rl_diff *diff, struct rl_step *step, const struct rl_limit *general,
		     struct rl_error *err)
{
	step->fate = !step->wanted ? RL_FATE_GOES : step->old ? RL_FATE_STAYS : RL_FATE_COMES;
	return step->fate == RL_FATE_STAYS ? change_find(diff, step, general, err) : 0;
}

static int fates_find(struct rl_diff *diff, struct rl_error *err)
{
	struct rl_limit general;
	int rc = 0;

	for (size_t i = 0; !rc && i < diff->count; i++) {
		struct rl_step *step = &diff->steps[i];

		if (step->classes && step->wanted)
			rc = rl_diff_limit(diff, step, NULL, &general, err);
		if (!rc)
			rc = fate_find(diff, step, is_class(step) && step->wanted ? &general : NULL, err);
		diff->fates[step->fate]++;
	}
	return rc;
}

/* ---- what is told of it ---- */

static void steps_count(struct rl_diff *diff)
{
	struct rl_diff_counts *said = &diff->said;

	for (size_t i = 0; i < diff->count; i++) {
		const struct rl_step *step = &diff->steps[i];
		bool was = step->old && rl_limit_says(step->old), is = step->line != NULL;

		said->limits += is;
		said->come += is && !was;
		said->gone += was && !is;
		if (was && is &&
		    memcmp(&step->old->terms, &step->line->terms, sizeof(step->line->terms)) != 0)
			said->changed++;
		else if (was && is)
			said->same++;
	}
}

int rl_diff_make(const struct rl_limit *old, size_t count, const struct rl_policy_file *file, __u64 now,
		 struct rl_diff *out, struct rl_error *err)
{
	struct rl_diff diff = {.now = now, .name = file->name};
	int rc = steps_make(&diff, old, count, file, err);

	if (!rc)
		prefixes_nest(&diff);
	if (!rc)
		rc = fates_find(&diff, err);
	if (rc) {
		rl_diff_free(&diff);
		return rc;
	}
	steps_count(&diff);
	*out = diff;
	return 0;
}

void rl_diff_free(struct rl_diff *diff)
{
	free(diff->steps);
	free(diff->tenants);
	*diff = (struct rl_diff){};
}
