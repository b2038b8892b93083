// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "generate.h"

#include <stdlib.h>
#include <string.h>

#include "../../user/class.h"
#include "../../user/limit.h"
#include "../../user/target.h"
#include "../../user/units.h"
#include "../unit/random.h"

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define NS_PER_DAY    (86400ULL * 1000000000)
#define CLOCK_MOST    (20000 * NS_PER_DAY) /* stamps are told apart up to half of their wrap, 73 years */
#define WHATS_LIMITED 10		   /* the first kinds, all but what is never limited */
#define SOURCES_HOT   3
#define SOURCES_NEAR  17 /* the first of the pool, which meet the prefixes' edges */

static const char *const targets[] = {
    "any",	     "0.0.0.0/0",   "10.0.0.0/8",      "10.0.0.0/24",
    "10.0.0.0/28",   "10.0.0.1",    "10.1.0.0/16",     "192.0.2.0/24",
    "192.0.2.0/25",  "::/0",	    "2001:db8::/32",   "2001:db8::/48",
    "2001:db8::/64", "2001:db8::1", "2001:db8:1::/48", "2001:db8:1::/80",
    "tenant:acme",   "tenant:bulk", "dev:eth0",	       "dev:eth1",
    "new",
};

static const char *const tenants[] = {"acme", "bulk", "tiny"};

static const char *const classes[] = {"tcp",  "syn",	 "udp",	   "icmp",
				      "frag", "tcp/443", "udp/53", "udp/1000-2000"};

static bool chance(struct generator *g, unsigned int one_in)
{
	return random_between(&g->state, 1, one_in) == 1;
}

static size_t pick(struct generator *g, size_t count)
{
	return (size_t)random_between(&g->state, 0, count - 1);
}

static void cool_down(struct generator *g)
{
	g->hot = (__u8)pick(g, SOURCES_NEAR);
	g->hot_what = (__u8)pick(g, WHATS_LIMITED);
	g->hot_device = (__u8)pick(g, MODEL_DEVICES);
}

struct generator generate_open(__u64 seed, unsigned int calm)
{
	struct generator g = {.state = seed, .calm = calm, .next = {.kind = OP_KINDS}};

	cool_down(&g);
	return g;
}

static void parse_target(const char *text, struct rl_target *out)
{
	struct rl_error err = {0};

	if (rl_target_parse(text, out, &err)) {
		fprintf(stderr, "%s: %s\n", text, err.text);
		abort();
	}
}

static void parse_class(const char *text, struct rl_class *out)
{
	struct rl_error err = {0};

	if (rl_class_parse(text, out, &err)) {
		fprintf(stderr, "%s: %s\n", text, err.text);
		abort();
	}
}

/* Rates and bursts: often small enough that a handful of packets meets them, sometimes anything. */
static void random_rates(struct generator *g, struct rl_terms *terms)
{
	static const __u64 hourly[] = {
	    1, 60, 3600, 3 * 3600, 7 * 3600, 1000 * 3600, 333333ULL * 3600, 148800000ULL * 3600};
	static const __u64 bits[] = {1000,	64000,	    1000000,	 15000000,
				     600000000, 1200000000, 40000000000, 800000000000};
	unsigned int which = (unsigned int)random_between(&g->state, 0, 3);

	if (which != 0) {
		terms->packets_per_hour = chance(g, 3)
					      ? random_magnitude(&g->state, 1, RL_PACKETS_PER_HOUR_MAX)
					      : hourly[pick(g, COUNT(hourly))];
		terms->burst_packets = random_between(&g->state, 1, 6);
		if (chance(g, 8))
			terms->burst_packets = random_magnitude(&g->state, 1, 1000000);
	}
	if (which < 2) {
		terms->bits_per_second = chance(g, 3) ? random_magnitude(&g->state, 1000, RL_BITS_MAX)
						      : bits[pick(g, COUNT(bits))];
		terms->burst_bytes = random_between(&g->state, RL_BURST_BYTES_MTU, 4000);
		if (chance(g, 8))
			terms->burst_bytes = random_magnitude(&g->state, RL_BURST_BYTES_MTU, 100000000);
	}
}

static void random_costs(struct generator *g, struct rl_terms *terms)
{
	terms->cost_count = (__u8)random_between(&g->state, 1, 3);
	for (int i = 0; i < terms->cost_count; i++) {
		parse_class(classes[(pick(g, 3) + 3 * (size_t)i) % COUNT(classes)], &terms->cost[i].class);
		terms->cost[i].tokens = (__u16)random_between(&g->state, 1, chance(g, 6) ? 65535 : 4);
	}
}

/* Few different ones: each change of it leaves the buckets of the one before. */
static __u8 random_per(struct generator *g, __u8 family)
{
	static const __u8 per[2][5] = {{8, 24, 28, 31, 32}, {32, 48, 60, 64, 128}};

	return per[family == 6][pick(g, COUNT(per[0]))];
}

static void random_prefix_terms(struct generator *g, const struct rl_prefix *prefix, struct rl_terms *terms)
{
	if (chance(g, 3))
		strcpy(terms->tenant, tenants[pick(g, COUNT(tenants))]);
	if (chance(g, 12)) {
		terms->action = chance(g, 2) ? RL_ACTION_ALLOW : RL_ACTION_DENY;
		return;
	}
	random_rates(g, terms);
	if (chance(g, 4))
		random_costs(g, terms);
	if (chance(g, 6))
		terms->shared = 1;
	else if (chance(g, 6) && prefix->family)
		terms->per = random_per(g, prefix->family);
	if (chance(g, 2))
		terms->priority = (__u8)pick(g, RL_PRIORITIES);
}

static void random_reserve(struct generator *g, struct rl_terms *terms)
{
	terms->reserve[0] = (__u16)random_between(&g->state, 0, 6000);
	terms->reserve[1] = (__u16)random_between(&g->state, 0, 3000);
}

/* A change of what is there: the same terms but for one thing. */
static void random_edit(struct generator *g, const struct model_limit *old, struct rl_terms *terms)
{
	struct rl_terms other = {0};

	*terms = old->terms;
	random_rates(g, &other);
	switch (pick(g, 6)) {
	case 0:
		terms->shadow = !terms->shadow;
		break;
	case 1:
		if (terms->burst_packets)
			terms->burst_packets = random_between(&g->state, 1, 2 * terms->burst_packets);
		break;
	case 2:
		if (terms->packets_per_hour && other.packets_per_hour)
			terms->packets_per_hour = other.packets_per_hour;
		break;
	case 3:
		if (terms->bits_per_second && other.bits_per_second)
			terms->bits_per_second = other.bits_per_second;
		break;
	case 4:
		if (terms->packets_per_hour && terms->bits_per_second)
			terms->bits_per_second = terms->burst_bytes = 0;
		break;
	default:
		terms->packets_per_hour = other.packets_per_hour;
		terms->burst_packets = other.burst_packets;
		terms->bits_per_second = other.bits_per_second;
		terms->burst_bytes = other.burst_bytes;
		break;
	}
}

/* By preference one that most packets are held to. */
static void random_target(struct generator *g, struct rl_target *out)
{
	struct rl_prefix source = ops_source(g->hot);

	if (g->again) {
		*out = g->changed;
		return;
	}
	if (chance(g, 10)) {
		*out = (struct rl_target){.kind = RL_TARGET_NEW};
		return;
	}
	for (int try = 0; try < 4; try++) {
		parse_target(targets[pick(g, COUNT(targets))], out);
		if (out->kind == RL_TARGET_PREFIX && rl_prefix_covers(&out->prefix, &source))
			break;
		if (out->kind == RL_TARGET_DEVICE && !strcmp(out->name, ops_device_names[g->hot_device]))
			break;
	}
}

static void random_terms(struct generator *g, const struct rl_target *target, struct rl_terms *terms)
{
	switch ((enum rl_target_kind)target->kind) {
	case RL_TARGET_PREFIX:
		if (!chance(g, 3)) {
			random_prefix_terms(g, &target->prefix, terms);
			break;
		}
		parse_class(classes[pick(g, COUNT(classes))], &terms->class);
		random_rates(g, terms);
		break;
	case RL_TARGET_TENANT:
		if (chance(g, 2))
			terms->priority = (__u8)pick(g, RL_PRIORITIES);
		if (!chance(g, 6))
			random_rates(g, terms);
		if (chance(g, 2))
			random_reserve(g, terms);
		break;
	case RL_TARGET_DEVICE:
		random_rates(g, terms);
		if (chance(g, 2))
			random_reserve(g, terms);
		break;
	default:
		random_rates(g, terms);
		terms->bits_per_second = terms->burst_bytes = 0;
		break;
	}
	terms->shadow = chance(g, 6);
}

/* Returns false where what came out isn't accepted; the next try is another. */
static bool random_set(struct generator *g, struct model *model, struct op *out)
{
	struct rl_terms terms = {.priority = RL_PRIORITY_UNSET};
	const struct model_limit *old;
	struct rl_error err = {0};

	*out = (struct op){.kind = OP_SET};
	random_target(g, &out->target);
	random_terms(g, &out->target, &terms);
	old = model_find(model, &out->target, &terms.class);
	if (old && old->stated && !chance(g, 3))
		random_edit(g, old, &terms);
	if (rl_terms_complete(&out->target, &terms, &err))
		return false;
	out->terms = terms;
	if (g->again)
		g->again--;
	else if (chance(g, 4))
		g->again = (__u8)random_between(&g->state, 1, 2 * RL_PAST);
	g->changed = out->target;
	g->probe = true;
	return true;
}

static void random_delete(struct generator *g, struct op *out)
{
	*out = (struct op){.kind = OP_DELETE};
	parse_target(targets[pick(g, COUNT(targets))], &out->target);
	if (out->target.kind == RL_TARGET_PREFIX && chance(g, 2))
		parse_class(classes[pick(g, COUNT(classes))], &out->terms.class);
}

static void random_packet(struct generator *g, struct op *out)
{
	static const __u16 lengths[] = {60, 61, 100, 576, 1000, 1514};

	*out = (struct op){.kind = OP_PACKET, .source = g->hot, .what = g->hot_what, .device = g->hot_device};
	if (chance(g, 2))
		out->source = (__u8)((g->hot + pick(g, SOURCES_HOT)) % SOURCES_NEAR);
	if (chance(g, 4))
		out->what = (__u8)pick(g, (size_t)ops_whats());
	if (chance(g, 12))
		out->source = (__u8)pick(g, (size_t)ops_sources());
	if (chance(g, 8))
		out->device = (__u8)pick(g, MODEL_DEVICES);
	out->len =
	    chance(g, 4) ? (__u16)random_between(&g->state, 60, 1514) : lengths[pick(g, COUNT(lengths))];
}

/* To where a packet is about to be admitted, or just is; that packet is the next operation. */
static bool step_to_boundary(struct generator *g, struct model *model, __u64 now, struct op *out)
{
	struct model_packet packet;
	__u64 wait;

	random_packet(g, &g->next);
	packet = ops_packet(&g->next);
	wait = model_wait(model, g->next.device, &packet, now, 400 * NS_PER_DAY);
	if (!wait)
		return false;
	*out = (struct op){.kind = OP_CLOCK, .step = wait - 1 + pick(g, 3)};
	return true;
}

static void random_clock(struct generator *g, struct model *model, __u64 now, struct op *out)
{
	if (!chance(g, 3) && step_to_boundary(g, model, now, out))
		return;
	g->next.kind = OP_KINDS;
	*out = (struct op){.kind = OP_CLOCK, .step = random_magnitude(&g->state, 1, 1000000000)};
	if (chance(g, 20))
		out->step = random_magnitude(&g->state, 1, NS_PER_DAY);
	if (chance(g, 400))
		out->step = random_between(&g->state, 0, 400 * NS_PER_DAY);
}

static void random_device(struct generator *g, struct op *out)
{
	*out =
	    (struct op){.kind = chance(g, 2) ? OP_PAUSE : OP_SHADOW, .device = (__u8)pick(g, MODEL_DEVICES)};
	out->on = chance(g, 10);
}

/* Soon after a change: the clock to the next boundary, or one more change, or what comes. */
static bool random_probe(struct generator *g, struct model *model, __u64 now, struct op *out)
{
	g->probe = false;
	if (g->again && chance(g, 2))
		return random_set(g, model, out);
	return chance(g, 2) && step_to_boundary(g, model, now, out);
}

static void random_op(struct generator *g, struct model *model, __u64 now, struct op *out)
{
	switch (random_between(&g->state, 0, 99)) {
	case 0:
	case 1:
	case 2:
		if (!chance(g, g->calm) || !random_set(g, model, out))
			random_packet(g, out);
		break;
	case 3:
		if (!chance(g, g->calm))
			random_packet(g, out);
		else if (chance(g, 4))
			random_delete(g, out);
		else if (chance(g, 4))
			random_device(g, out);
		else if (chance(g, 30))
			*out = (struct op){.kind = OP_RESET};
		else
			random_packet(g, out);
		break;
	case 4:
		cool_down(g);
		random_packet(g, out);
		break;
	default:
		if (chance(g, 4))
			random_clock(g, model, now, out);
		else
			random_packet(g, out);
		break;
	}
}

void generate(struct generator *g, struct model *model, __u64 now, struct op *out)
{
	if (g->next.kind == OP_PACKET) {
		*out = g->next;
		g->next.kind = OP_KINDS;
		return;
	}
	if (!g->probe || !random_probe(g, model, now, out))
		random_op(g, model, now, out);
	if (out->kind == OP_CLOCK && now + out->step > CLOCK_MOST)
		out->step = 0;
}
