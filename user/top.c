// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prefix.h"
#include "target.h"

static const char *const by_names[] = {
    [RL_TOP_BY_DROPS] = "drops",
    [RL_TOP_BY_PASSED] = "passed",
    [RL_TOP_BY_BITS] = "bits",
};
_Static_assert(sizeof(by_names) / sizeof(by_names[0]) == RL_TOP_BYS, "each order has a name");

const char *rl_top_by_name(enum rl_top_by by)
{
	return by < RL_TOP_BYS ? by_names[by] : "unknown";
}

int rl_top_by_parse(const char *text, enum rl_top_by *out, struct rl_error *err)
{
	for (int by = 0; by < RL_TOP_BYS; by++) {
		if (strcmp(text, by_names[by]) == 0) {
			*out = by;
			return 0;
		}
	}
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
			    "unknown order '%s': it is one of drops, passed, bits", text);
}

/* An address with a mistake in it must not pass for a tenant that nobody has. */
static bool looks_like_address(const char *text)
{
	return strpbrk(text, "/:") || strspn(text, "0123456789.") == strlen(text);
}

int rl_top_filter_parse(const char *text, struct rl_top_filter *out, struct rl_error *err)
{
	struct rl_top_filter filter = {};
	struct rl_error reason = {};
	int rc;

	if (!text || !text[0]) {
		*out = filter;
		return 0;
	}
	rc = rl_prefix_parse(text, &filter.prefix, &reason);
	if (rc == 0) {
		filter.kind = RL_TOP_FILTER_PREFIX;
	} else if (looks_like_address(text)) {
		*err = reason;
		return rc;
	} else {
		rc = rl_tenant_check(text, err);
		if (rc)
			return rc;
		filter.kind = RL_TOP_FILTER_TENANT;
		memcpy(filter.tenant, text, strlen(text) + 1);
	}
	*out = filter;
	return 0;
}

static const struct rl_limit_stats *limit_of(const struct rl_snapshot *snapshot,
					     const struct rl_source_stats *source)
{
	return &snapshot->limits[source->limit];
}

static bool filter_matches(const struct rl_top_filter *filter, const struct rl_snapshot *snapshot,
			   const struct rl_source_stats *source)
{
	switch (filter->kind) {
	case RL_TOP_FILTER_PREFIX:
		/* An address inside an IPv6 source's /64 finds that source. */
		return rl_prefix_covers(&filter->prefix, &source->source) ||
		       rl_prefix_covers(&source->source, &filter->prefix);
	case RL_TOP_FILTER_TENANT:
		return strcmp(filter->tenant, limit_of(snapshot, source)->tenant) == 0;
	default:
		return true;
	}
}

static bool went_down(const struct rl_count *before, const struct rl_count *now)
{
	return now->packets < before->packets || now->bytes < before->bytes;
}

static struct rl_top_rates compute_rates(struct rl_tally before, struct rl_tally now, double seconds)
{
	if (went_down(&before.passed, &now.passed) || went_down(&before.dropped, &now.dropped) ||
	    went_down(&before.shadow, &now.shadow))
		before = (struct rl_tally){};
	if (seconds <= 0)
		return (struct rl_top_rates){};
	return (struct rl_top_rates){
	    .passed_pps = (double)(now.passed.packets - before.passed.packets) / seconds,
	    .dropped_pps = (double)(now.dropped.packets - before.dropped.packets) / seconds,
	    .shadow_pps = (double)(now.shadow.packets - before.shadow.packets) / seconds,
	    .passed_bits = 8 * (double)(now.passed.bytes - before.passed.bytes) / seconds,
	    .dropped_bits = 8 * (double)(now.dropped.bytes - before.dropped.bytes) / seconds,
	    .shadow_bits = 8 * (double)(now.shadow.bytes - before.shadow.bytes) / seconds,
	};
}

static double rank_of(enum rl_top_by by, const struct rl_top_rates *rates)
{
	switch (by) {
	case RL_TOP_BY_PASSED:
		return rates->passed_pps;
	case RL_TOP_BY_BITS:
		return rates->passed_bits + rates->dropped_bits;
	default:
		return rates->dropped_pps + rates->shadow_pps;
	}
}

static struct rl_tally device_totals(const struct rl_device_stats *device)
{
	return (struct rl_tally){
	    .passed = rl_device_passed(&device->count),
	    .dropped = rl_device_dropped(&device->count),
	    .shadow = rl_device_shadow(&device->count),
	};
}

static void compute_devices(const struct rl_snapshot *before, struct rl_top *top)
{
	for (size_t i = 0; i < top->now->device_count; i++) {
		const struct rl_device_stats *device = &top->now->devices[i];
		struct rl_tally past = {};

		for (size_t j = 0; j < before->device_count; j++)
			if (before->devices[j].attached.slot == device->attached.slot)
				past = device_totals(&before->devices[j]);
		top->devices[i].stats = device;
		top->devices[i].rates = compute_rates(past, device_totals(device), top->seconds);
	}
	top->device_count = top->now->device_count;
}

/* The order that the sources of every snapshot have; an index of a limit means nothing in another snapshot.
 */
static int compare_across(const struct rl_snapshot *a, const struct rl_source_stats *x,
			  const struct rl_snapshot *b, const struct rl_source_stats *y)
{
	int order = rl_prefix_compare(&x->source, &y->source);

	return order ? order
		     : rl_prefix_compare(&limit_of(a, x)->limit.target.prefix,
					 &limit_of(b, y)->limit.target.prefix);
}

static double seconds_between(__u64 before, __u64 now)
{
	return now > before ? (double)(now - before) / 1e9 : 0;
}

/* The source as it was in `before`, or NULL; *at moves on through it. */
static const struct rl_source_stats *source_before(const struct rl_snapshot *before, size_t *at,
						   const struct rl_snapshot *now,
						   const struct rl_source_stats *source)
{
	int order = 1;

	while (*at < before->source_count) {
		order = compare_across(before, &before->sources[*at], now, source);
		if (order >= 0)
			break;
		++*at;
	}
	if (order == 0) {
		const struct rl_source_stats *past = &before->sources[*at];

		/* Under another id it is a limit made anew, with counters of its own. */
		if (limit_of(before, past)->limit.id == limit_of(now, source)->limit.id)
			return past;
	}
	return NULL;
}

static void compute_sources(const struct rl_snapshot *before, const struct rl_top_query *query,
			    struct rl_top *top)
{
	size_t at = 0;

	for (size_t i = 0; i < top->now->source_count; i++) {
		const struct rl_source_stats *source = &top->now->sources[i];
		struct rl_top_source *row = &top->sources[top->matched];
		const struct rl_source_stats *past;

		if (!filter_matches(&query->filter, top->now, source))
			continue;
		past = source_before(before, &at, top->now, source);
		row->stats = source;
		row->rates = compute_rates(past ? past->tally : (struct rl_tally){}, source->tally,
					   seconds_between(before->sources_time + (past ? past->after : 0),
							   top->now->sources_time + source->after));
		row->rank = rank_of(query->by, &row->rates);
		top->matched++;
	}
}

/* Negative where a stands above b. A snapshot's sources are in the order of their targets. */
static int compare_rank(const void *a, const void *b)
{
	const struct rl_top_source *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return (x->stats > y->stats) - (x->stats < y->stats);
}

/* Let the row at `at` sink in a heap whose root stands below all others. */
static void sink(struct rl_top_source *heap, size_t count, size_t at)
{
	for (;;) {
		size_t last = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
			if (compare_rank(&heap[child], &heap[last]) > 0)
				last = child;
		if (last == at)
			return;

		struct rl_top_source row = heap[at];

		heap[at] = heap[last];
		heap[last] = row;
		at = last;
	}
}

/* The first `rows` of all matched, in order: a heap of that many passes over the rest, which is cheaper than
 * a sort. */
static void keep_first(struct rl_top *top, size_t rows)
{
	size_t count = rows < top->matched ? rows : top->matched;
	struct rl_top_source *heap = top->sources;

	for (size_t i = count / 2; i-- > 0;)
		sink(heap, count, i);
	for (size_t i = count; i < top->matched && count; i++) {
		if (compare_rank(&heap[i], &heap[0]) < 0) {
			heap[0] = heap[i];
			sink(heap, count, 0);
		}
	}
	qsort(heap, count, sizeof(*heap), compare_rank);
	top->source_count = count;
}

int rl_top_compute(const struct rl_snapshot *before, const struct rl_snapshot *now,
		   const struct rl_top_query *query, struct rl_top *out)
{
	struct rl_top top = {.now = now};

	top.seconds = seconds_between(before->time, now->time);
	top.devices = calloc(now->device_count + 1, sizeof(*top.devices));
	top.sources = calloc(now->source_count + 1, sizeof(*top.sources));
	if (!top.devices || !top.sources) {
		rl_top_free(&top);
		return -ENOMEM;
	}
	compute_devices(before, &top);
	compute_sources(before, query, &top);
	keep_first(&top, query->rows);
	*out = top;
	return 0;
}

void rl_top_free(struct rl_top *top)
{
	free(top->devices);
	free(top->sources);
	*top = (struct rl_top){};
}
