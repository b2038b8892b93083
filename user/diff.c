// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "large.h"
#include "limit.h"
#include "target.h"

static const struct rl_class whole;
static const struct rl_terms unsaid = RL_TERMS_INIT;

static bool is_general(const struct rl_step *step)
{
	return step->target->kind == RL_TARGET_PREFIX && !rl_class_is_set(step->class);
}

static bool is_class(const struct rl_step *step)
{
	return rl_class_is_set(step->class);
}

/* ---- the tenants that lines name ---- */

static int tenants_compare(const void *a, const void *b)
{
	const struct rl_diff_tenant *one = a, *other = b;

	return memcmp(one->target.name, other->target.name, sizeof(one->target.name));
}

static size_t phrases_count(const struct rl_policy_file *file)
{
	size_t count = 0;

	for (const struct rl_phrase *phrase = file->phrases.last; phrase; phrase = phrase->before)
		count++;
	return count;
}

/* Each once. */
static void tenants_fold(struct rl_diff *diff)
{
	size_t kept = 0;

	for (size_t i = 0; i < diff->tenant_count; i++)
		if (!kept || tenants_compare(&diff->tenants[kept - 1], &diff->tenants[i]) != 0)
			diff->tenants[kept++] = diff->tenants[i];
	diff->tenant_count = kept;
}

static int tenants_make(struct rl_diff *diff, const struct rl_policy_file *file, struct rl_error *err)
{
	diff->tenants = calloc(phrases_count(file) + 1, sizeof(*diff->tenants));
	if (!diff->tenants)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (const struct rl_phrase *phrase = file->phrases.last; phrase; phrase = phrase->before) {
		struct rl_target *target = &diff->tenants[diff->tenant_count].target;

		if (!phrase->terms.tenant[0])
			continue;
		*target = (struct rl_target){.kind = RL_TARGET_TENANT};
		memcpy(target->name, phrase->terms.tenant, sizeof(target->name));
		diff->tenant_count++;
	}
	qsort(diff->tenants, diff->tenant_count, sizeof(*diff->tenants), tenants_compare);
	tenants_fold(diff);
	return 0;
}

static struct rl_step *tenant_find(const struct rl_diff *diff, const char *name)
{
	struct rl_diff_tenant key;
	const struct rl_diff_tenant *found;

	memcpy(key.target.name, name, sizeof(key.target.name));
	found = bsearch(&key, diff->tenants, diff->tenant_count, sizeof(key), tenants_compare);
	return found ? found->step : NULL;
}

/* ---- both policies as steps ---- */

/* What has not become steps yet of three lists that are in order of their targets. */
struct merge {
	const struct rl_limit *const *old;
	const struct rl_policy_line *line;
	struct rl_diff_tenant *tenant;
	size_t olds, lines, tenants; /* so many */
};

static const struct rl_target *old_target(const struct merge *rest)
{
	return rest->olds ? &(*rest->old)->target : NULL;
}

static const struct rl_target *line_target(const struct merge *rest)
{
	return rest->lines ? &rest->line->target : NULL;
}

static const struct rl_target *tenant_target(const struct merge *rest)
{
	return rest->tenants ? &rest->tenant->target : NULL;
}

/* Of two targets, NULL for none. */
static const struct rl_target *earlier(const struct rl_target *a, const struct rl_target *b)
{
	if (!a || !b)
		return a ? a : b;
	return rl_target_compare(b, a) < 0 ? b : a;
}

static bool is_same(const struct rl_target *at, const struct rl_target *target)
{
	return at && (at == target || !rl_target_compare(at, target));
}

static struct rl_step *step_add(struct rl_diff *diff, const struct rl_target *target,
				const struct rl_class *class)
{
	struct rl_step *step = &diff->steps[diff->count++];

	*step = (struct rl_step){.target = target, .class = class, .slot = RL_SLOT_UNCLAIMED};
	return step;
}

static void old_take(struct merge *rest, struct rl_step *step)
{
	step->old = *rest->old;
	step->id = step->old->id;
	step->slot = step->old->slot;
	rest->old++;
	rest->olds--;
}

static void line_take(struct merge *rest, struct rl_step *step)
{
	step->line = rest->line++;
	step->wanted = true;
	rest->lines--;
}

static void tenant_take(struct merge *rest, struct rl_step *step)
{
	rest->tenant->step = step;
	step->wanted = true;
	rest->tenant++;
	rest->tenants--;
}

/* A target's limit as a whole. It is wanted also for its classes, and for those who name it. */
static struct rl_step *general_merge(struct rl_diff *diff, struct merge *rest, const struct rl_target *target)
{
	struct rl_step *step = step_add(diff, target, &whole);

	if (is_same(old_target(rest), target) && !rl_class_is_set(&(*rest->old)->terms.class))
		old_take(rest, step);
	if (is_same(line_target(rest), target)) {
		step->wanted = true;
		if (!rl_class_is_set(&rest->line->terms->class))
			line_take(rest, step);
	}
	if (is_same(tenant_target(rest), target))
		tenant_take(rest, step);
	return step;
}

/* The step of this class among those behind the general one; made where there is none. */
static struct rl_step *class_step(struct rl_diff *diff, const struct rl_step *general,
				  const struct rl_class *class)
{
	for (struct rl_step *step = diff->steps + diff->count - 1; step > general; step--)
		if (!memcmp(step->class, class, sizeof(*class)))
			return step;
	return step_add(diff, general->target, class);
}

static void classes_merge(struct rl_diff *diff, struct merge *rest, struct rl_step *general)
{
	while (is_same(old_target(rest), general->target))
		old_take(rest, class_step(diff, general, &(*rest->old)->terms.class));
	while (is_same(line_target(rest), general->target))
		line_take(rest, class_step(diff, general, &rest->line->terms->class));
	general->classes = (__u8)(diff->steps + diff->count - 1 - general);
}

static int steps_make(struct rl_diff *diff, const struct rl_limit *const *old, size_t count,
		      const struct rl_policy_file *file, struct rl_error *err)
{
	struct merge rest = {.old = old, .olds = count, .line = file->lines, .lines = file->count};
	const struct rl_target *target;
	int rc = tenants_make(diff, file, err);

	if (rc)
		return rc;
	/* Of each line its limit and its prefix's. What isn't needed is never touched. */
	diff->steps = rl_large_alloc(count + 2 * file->count + diff->tenant_count + 1, sizeof(*diff->steps));
	if (!diff->steps)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	rest.tenant = diff->tenants;
	rest.tenants = diff->tenant_count;
	while ((target = earlier(earlier(old_target(&rest), line_target(&rest)), tenant_target(&rest))))
		classes_merge(diff, &rest, general_merge(diff, &rest, target));
	return 0;
}

/* ---- what is around a prefix ---- */

/* Prefixes, each inside the one before: no two are of one length. */
struct nest {
	struct rl_step *prefix;
	struct rl_step *old, *wanted; /* the nearest that is so, itself included */
	struct rl_step *tenant;	      /* of the nearest that is wanted */
};

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
	if (step->line && step->line->terms->tenant[0])
		nest.tenant = tenant_find(diff, step->line->terms->tenant);
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
	int rc = rl_limit_compute(step->target, line ? line->terms : &unsaid, step->old, step->id, step->slot,
				  diff->now, out, err);

	if (rc)
		return line ? rl_policy_line_error(diff->name, line->number, rc, err) : rc;
	if (is_general(step)) {
		out->tenant = step->tenant ? step->tenant->slot : 0;
		classes_name(step, out);
	}
	if (general)
		rl_limit_follow(out, general);
	return 0;
}

/* Of a wanted one that is in force: does anything of it change? */
static int change_find(const struct rl_diff *diff, struct rl_step *step, const struct rl_limit *general,
		       struct rl_error *err)
{
	struct rl_limit limit;
	int rc = rl_diff_limit(diff, step, general, &limit, err);

	if (!rc && !rl_limit_same(&limit, step->old))
		step->fate = RL_FATE_CHANGES;
	return rc;
}

static int fate_find(const struct rl_diff *diff, struct rl_step *step, const struct rl_limit *general,
		     struct rl_error *err)
{
	step->fate = !step->wanted ? RL_FATE_GOES : step->old ? RL_FATE_STAYS : RL_FATE_COMES;
	return step->fate == RL_FATE_STAYS ? change_find(diff, step, general, err) : 0;
}

/* What is told of it. */
static void step_count(const struct rl_step *step, struct rl_diff_counts *said)
{
	bool was = step->old && rl_limit_says(step->old), is = step->line != NULL;

	said->limits += is;
	said->come += is && !was;
	said->gone += was && !is;
	if (was && is && memcmp(&step->old->terms, step->line->terms, sizeof(*step->line->terms)) != 0)
		said->changed++;
	else if (was && is)
		said->same++;
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
		step_count(step, &diff->said);
	}
	return rc;
}

int rl_diff_make(const struct rl_limit *const *old, size_t count, const struct rl_policy_file *file,
		 __u64 now, struct rl_diff *out, struct rl_error *err)
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
	*out = diff;
	return 0;
}

void rl_diff_free(struct rl_diff *diff)
{
	free(diff->steps);
	free(diff->tenants);
	*diff = (struct rl_diff){};
}
