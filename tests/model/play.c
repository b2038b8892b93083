// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "play.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/class.h"
#include "../../user/limit.h"
#include "../../user/target.h"

void play_open(struct play *play, struct backend *backend)
{
	memset(play, 0, sizeof(*play));
	play->backend = backend;
	if (model_open(&play->model)) {
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	for (int i = 0; i < MODEL_DEVICES; i++)
		strcpy(play->model.device[i].name, ops_device_names[i]);
	backend->open(backend);
	play->now = PLAY_CLOCK;
	backend->clock(backend, play->now);
}

void play_close(struct play *play)
{
	play->backend->close(play->backend);
	model_close(&play->model);
}

/* The first one counts. */
__attribute__((format(printf, 2, 3))) static void differ(struct play *play, const char *format, ...)
{
	va_list args;

	if (play->difference[0])
		return;
	va_start(args, format);
	vsnprintf(play->difference, sizeof(play->difference), format, args);
	va_end(args);
}

static void play_packet(struct play *play, const struct op *op)
{
	struct model_packet packet = ops_packet(op);
	enum rl_reason expected = model_packet(&play->model, op->device, &packet, play->now);
	enum rl_reason got = play->backend->packet(play->backend, op->device, ops_frame(op), packet.len);

	play->packets++;
	play->reasons[expected]++;
	if (got != expected)
		differ(play, "the model says %s, the %s %s", ops_reason_name(expected), play->backend->name,
		       ops_reason_name(got));
}

static void play_set(struct play *play, const struct op *op)
{
	const struct model_limit *old = model_find(&play->model, &op->target, &op->terms.class);
	struct rl_error err = {0};
	struct rl_limit quantum;
	int refused = model_refuses(&play->model, &op->target, &op->terms) ||
		      rl_limit_compute(&op->target, &op->terms, old ? &old->quantum : NULL, 1, 1, play->now,
				       &quantum, &err);
	int got = play->backend->set(play->backend, &op->target, &op->terms, play->now);

	play->changes++;
	if (!refused != !got)
		differ(play, "the %s answers %d to the change, user/limit.c %d %s", play->backend->name, got,
		       refused, err.text);
	if (!refused && !model_set(&play->model, &op->target, &op->terms, &quantum, play->now))
		differ(play, "more limits than the model has room for");
}

/* A tenant's limit, while prefixes name it: it loses its rates. */
static bool empty_tenant(struct play *play, const struct op *op)
{
	static const struct rl_terms no_terms = {.priority = RL_PRIORITY_UNSET};
	struct model_limit *tenant = model_find(&play->model, &op->target, NULL);
	struct rl_error err = {0};
	struct rl_limit quantum;

	if (op->target.kind != RL_TARGET_TENANT || !tenant || !tenant->stated ||
	    !model_is_named(&play->model, &op->target))
		return false;
	if (rl_limit_compute(&op->target, &no_terms, &tenant->quantum, 1, 1, play->now, &quantum, &err))
		differ(play, "user/limit.c refuses a tenant without a rate: %s", err.text);
	else {
		rl_limit_forgive(&quantum, &tenant->quantum);
		model_empty(&play->model, tenant, &quantum, play->now);
	}
	return true;
}

static void play_erase(struct play *play, const struct op *op)
{
	const struct rl_class *class = rl_class_is_set(&op->terms.class) ? &op->terms.class : NULL;
	bool expected = empty_tenant(play, op) || model_delete(&play->model, &op->target, class);
	int got = play->backend->erase(play->backend, &op->target, class, play->now);

	play->changes++;
	if (expected != !got)
		differ(play, "the %s answers %d to the deletion, the model %s", play->backend->name, got,
		       expected ? "has such a limit" : "has none");
}

static void play_device(struct play *play, const struct op *op)
{
	struct model_device *device = &play->model.device[op->device];

	if (op->kind == OP_PAUSE)
		device->paused = op->on;
	else
		device->shadow = op->on;
	play->backend->device(play->backend, op->device, device->paused, device->shadow);
}

bool play_op(struct play *play, const struct op *op)
{
	switch ((enum op_kind)op->kind) {
	case OP_PACKET:
		play_packet(play, op);
		break;
	case OP_CLOCK:
		play->now += op->step;
		play->backend->clock(play->backend, play->now);
		break;
	case OP_SET:
		play_set(play, op);
		break;
	case OP_DELETE:
		play_erase(play, op);
		break;
	case OP_PAUSE:
	case OP_SHADOW:
		play_device(play, op);
		break;
	case OP_RESET:
		model_reset(&play->model);
		play->backend->reset(play->backend);
		break;
	case OP_KINDS:
		break;
	}
	return !play->difference[0];
}

static void compare_count(struct play *play, const char *whose, const char *what,
			  const struct rl_count *expected, const struct rl_count *got)
{
	if (expected->packets != got->packets || expected->bytes != got->bytes)
		differ(play, "%s, %s: the model counts %llu packets, %llu bytes, the %s %llu, %llu", whose,
		       what, expected->packets, expected->bytes, play->backend->name, got->packets,
		       got->bytes);
}

static void compare_tally(struct play *play, const char *whose, const struct model_limit *limit,
			  const struct model_bucket *bucket)
{
	struct rl_prefix source = {.family = bucket->family};
	char text[RL_PREFIX_TEXT] = "its one bucket", name[2 * RL_TARGET_TEXT];
	struct rl_tally got = {0};

	memcpy(source.addr, bucket->addr, sizeof(source.addr));
	source.prefixlen = RL_PREFIX_FAMILY_BITS + (source.family == 4 ? 32 : 128);
	if (!play->backend->tally(play->backend, &limit->target, bucket->family ? &source : NULL, &got))
		return;
	if (bucket->family)
		rl_prefix_print(&source, text);
	snprintf(name, sizeof(name), "%s, %s", whose, text);
	compare_count(play, name, "passed", &bucket->tally.passed, &got.passed);
	compare_count(play, name, "dropped", &bucket->tally.dropped, &got.dropped);
	compare_count(play, name, "shadow", &bucket->tally.shadow, &got.shadow);
}

static void compare_limit(struct play *play, const struct model_limit *limit)
{
	char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT], name[RL_TARGET_TEXT + RL_CLASS_TEXT + 16];
	bool general = !rl_class_is_set(&limit->terms.class);
	struct rl_limit_count got = {0};

	snprintf(name, sizeof(name), "%s%s%s", rl_target_print(&limit->target, target),
		 general ? "" : " class ", general ? "" : rl_class_print(&limit->terms.class, class));
	play->backend->limit_count(play->backend, &limit->target, general ? NULL : &limit->terms.class, &got);
	compare_count(play, name, "passed", &limit->count.passed, &got.passed);
	compare_count(play, name, "dropped", &limit->count.dropped, &got.dropped);
	compare_count(play, name, "shadow", &limit->count.shadow, &got.shadow);
	if (!general || limit->target.kind != RL_TARGET_PREFIX)
		return;
	compare_tally(play, name, limit, &limit->whole);
	for (int i = 0; i < MODEL_SOURCES && limit->source[i].family; i++)
		compare_tally(play, name, limit, &limit->source[i]);
}

static void compare_device(struct play *play, unsigned int device)
{
	const struct rl_device_count *expected = &play->model.device[device].count;
	struct rl_device_count got = {0};

	play->backend->device_count(play->backend, device, &got);
	for (int reason = 0; reason < RL_REASONS; reason++)
		compare_count(play, ops_device_names[device], ops_reason_name((enum rl_reason)reason),
			      &expected->by_reason[reason], &got.by_reason[reason]);
}

bool play_compare(struct play *play)
{
	for (unsigned int device = 0; device < MODEL_DEVICES; device++)
		compare_device(play, device);
	for (const struct model_limit *limit = play->model.limit; limit < play->model.end; limit++)
		if (limit->used)
			compare_limit(play, limit);
	return !play->difference[0];
}
