// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ranges_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ranges_node.h"

const struct rl_tree_shape rl_tree4 = {
    .leaf = RL_RANGES_LEAF4,
    .inner = RL_RANGES_INNER4,
    .lines = 1,
    .depth = RL_RANGES_DEPTH4,
    .last = (1ULL << RL_RANGES_KEY4) - 1,
};
static const struct rl_tree_shape tree6_below = {
    .leaf = RL_RANGES_LEAF6,
    .inner = RL_RANGES_INNER6,
    .lines = 2,
    .depth = RL_RANGES_DEPTH6,
    .last = (1ULL << RL_RANGES_KEY6) - 1,
};
const struct rl_tree_shape rl_tree6 = {
    .leaf = RL_RANGES_LEAF6,
    .inner = RL_RANGES_INNER6,
    .lines = 2,
    .depth = RL_RANGES_DEPTH6,
    .last = (1ULL << RL_RANGES_KEY6) - 1,
    .below = &tree6_below,
};

int rl_space_take(struct rl_space *space, __u32 blocks, __u32 *at)
{
	if (space->end - space->next < blocks)
		return -ENOSPC;
	*at = space->next;
	space->next += blocks;
	return 0;
}

void rl_range_list_free(struct rl_range_list *list)
{
	free(list->range);
	*list = (struct rl_range_list){};
}

int rl_range_add(struct rl_range_list *list, __u64 key, __u32 value)
{
	if (list->count && list->range[list->count - 1].key == key)
		list->count--;
	if (list->count && list->range[list->count - 1].value == value)
		return 0;
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct rl_range *grown = reallocarray(list->range, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->range = grown;
		list->room = room;
	}
	list->range[list->count++] = (struct rl_range){.key = key, .value = value};
	return 0;
}

/* Ranges that a tree of so many nodes from root to leaf has room for. */
static size_t tree_room(const struct rl_tree_shape *shape, __u32 depth)
{
	size_t room = shape->leaf;

	while (--depth)
		room *= shape->inner;
	return room;
}

/* So many nodes from root to leaf that this many ranges take. */
static __u32 tree_depth(const struct rl_tree_shape *shape, size_t count)
{
	__u32 depth = 1;

	while (tree_room(shape, depth) < count)
		depth++;
	return depth;
}

/* Ranges as a node and all below it, of that depth; each child gets as many as the others, or one more. */
static int node_write(struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
		      const struct rl_range *range, size_t count, __u32 depth)
{
	__u32 child, children;
	size_t room, done = 0;
	int rc;

	if (depth == 1) {
		rl_leaf_write(space, shape, at, range, (__u32)count);
		return 0;
	}
	room = tree_room(shape, depth - 1);
	children = (__u32)((count + room - 1) / room);
	rc = rl_space_take(space, children * shape->lines, &child);
	if (!rc)
		rl_inner_begin(space, shape, at, child, children);
	for (__u32 i = 0; !rc && i < children; i++) {
		size_t share = (count - done) / (children - i);

		if (i)
			rl_key_write(space, shape, at, i - 1, range[done].key);
		rc = node_write(space, shape, child + i * shape->lines, range + done, share, depth - 1);
		done += share;
	}
	return rc;
}

int rl_tree_write(struct rl_space *space, const struct rl_tree_shape *shape, const struct rl_range_list *list,
		  __u32 *value)
{
	__u32 at, depth = tree_depth(shape, list->count);
	int rc;

	if (list->count == 1) {
		*value = list->range[0].value;
		return 0;
	}
	rc = rl_space_take(space, rl_leaf_small(shape, list->count) ? 1 : shape->lines, &at);
	if (!rc)
		rc = node_write(space, shape, at, list->range, list->count, depth);
	if (!rc)
		*value = RL_RANGES_TREE | at;
	return rc;
}

static int node_read(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at, __u64 first,
		     __u32 depth, struct rl_range_list *out)
{
	__u32 child, ranges, children;
	int rc = rl_node_check(space, shape, at, depth);

	if (rc)
		return rc;
	ranges = rl_node_ranges(space, shape, at);
	for (__u32 i = 0; !rc && i < ranges; i++)
		rc = rl_range_add(out, i ? rl_key_read(space, shape, at, i - 1) : first,
				  rl_leaf_value(space, shape, at, i));
	if (ranges)
		return rc;
	child = rl_inner_child(space, at);
	children = rl_inner_children(space, at);
	for (__u32 i = 0; !rc && i < children; i++)
		rc = node_read(space, shape, child + i * shape->lines,
			       i ? rl_key_read(space, shape, at, i - 1) : first, depth - 1, out);
	return rc;
}

int rl_tree_read(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 value,
		 struct rl_range_list *out)
{
	if (!(value & RL_RANGES_TREE))
		return rl_range_add(out, 0, value);
	return node_read(space, shape, value & RL_RANGES_INDEX, 0, shape->depth, out);
}

int rl_tree_copy(struct rl_space *space, const struct rl_tree_shape *shape, __u32 value, __u32 *out)
{
	RL_RANGE_LIST struct rl_range_list list = {}, copy = {};
	int rc;

	*out = value;
	if (!(value & RL_RANGES_TREE))
		return 0;
	if (!shape)
		return -EPROTO;
	rc = rl_tree_read(space, shape, value, &list);
	for (size_t i = 0; !rc && i < list.count; i++) {
		rc = rl_tree_copy(space, shape->below, list.range[i].value, &value);
		if (!rc)
			rc = rl_range_add(&copy, list.range[i].key, value);
	}
	return rc ? rc : rl_tree_write(space, shape, &copy, out);
}

int rl_value_edit(struct rl_space *space, const struct rl_tree_shape *shape, __u32 from, __u32 to,
		  __u32 *value)
{
	struct rl_tree_edit all = {.from = from, .to = to};
	struct rl_tree_store store;
	int rc;

	if (*value == from)
		*value = to;
	if (!(*value & RL_RANGES_TREE) || *value == to)
		return 0;
	if (!shape)
		return -EPROTO;
	all.last = shape->last;
	rc = rl_tree_edit(space, shape, *value, &all, &store);
	if (!rc)
		*value = store.value;
	return rc;
}

/* The ranges up to key `last`, with an edit made in them. */
static int list_edit(struct rl_space *space, const struct rl_tree_shape *shape,
		     const struct rl_range_list *list, __u64 last, const struct rl_tree_edit *edit,
		     struct rl_range_list *out)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < list->count; i++) {
		__u64 begin = list->range[i].key,
		      end = i + 1 < list->count ? list->range[i + 1].key - 1 : last;
		__u32 value = list->range[i].value, inside = value;

		if (begin > edit->last || end < edit->first) {
			rc = rl_range_add(out, begin, value);
			continue;
		}
		rc = rl_value_edit(space, shape->below, edit->from, edit->to, &inside);
		if (!rc && begin < edit->first)
			rc = rl_range_add(out, begin, value);
		if (!rc)
			rc = rl_range_add(out, begin < edit->first ? edit->first : begin, inside);
		if (!rc && end > edit->last)
			rc = rl_range_add(out, edit->last + 1, value);
	}
	return rc;
}

static bool list_same(const struct rl_range_list *a, const struct rl_range_list *b)
{
	for (size_t i = 0; a->count == b->count && i < a->count; i++)
		if (a->range[i].key != b->range[i].key || a->range[i].value != b->range[i].value)
			return false;
	return a->count == b->count;
}

/* A node on the way down, and the keys that it is for. */
struct step {
	__u32 at;
	__u32 child; /* of its parent: which */
	__u64 first, last;
};

/* The nodes that hold all of an edit, the lowest one last. */
static int steps_find(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 value,
		      const struct rl_tree_edit *edit, struct step *step, __u32 *count)
{
	__u32 depth = shape->depth, at = value & RL_RANGES_INDEX, i;
	__u64 first = 0, last = shape->last;
	int rc;

	step[0] = (struct step){.at = at, .last = last};
	for (*count = 1;; (*count)++) {
		rc = rl_node_check(space, shape, at, depth--);
		if (rc || rl_node_ranges(space, shape, at))
			return rc;
		i = rl_node_rank(space, shape, at, edit->first);
		if (i)
			first = rl_key_read(space, shape, at, i - 1);
		if (i + 1 < rl_inner_children(space, at))
			last = rl_key_read(space, shape, at, i) - 1;
		if (edit->last > last)
			return 0;
		at = rl_inner_child(space, at) + i * shape->lines;
		step[*count] = (struct step){.at = at, .child = i, .first = first, .last = last};
	}
}

/* The children of an inner node again, with one of them written anew from ranges. */
static int siblings_write(struct rl_space *space, const struct rl_tree_shape *shape, __u32 parent,
			  __u32 child, const struct rl_range_list *list, struct rl_tree_store *out)
{
	__u32 blocks = rl_inner_children(space, parent) * shape->lines, at;
	int rc = rl_space_take(space, blocks, &at);

	if (rc)
		return rc;
	memcpy(&space->block[at], &space->block[rl_inner_child(space, parent)],
	       blocks * sizeof(*space->block));
	*out = (struct rl_tree_store){.where = &space->block[parent].inner.child, .value = at};
	return node_write(space, shape, at + child * shape->lines, list->range, list->count,
			  tree_depth(shape, list->count));
}

/* One step's node with the edit made; -EAGAIN where it would become too deep. */
static int step_edit(struct rl_space *space, const struct rl_tree_shape *shape, const struct step *step,
		     __u32 above, const struct rl_tree_edit *edit, struct rl_tree_store *out)
{
	RL_RANGE_LIST struct rl_range_list before = {}, after = {};
	int rc = node_read(space, shape, step->at, step->first, shape->depth - above, &before);

	if (!rc)
		rc = list_edit(space, shape, &before, step->last, edit, &after);
	if (rc || list_same(&before, &after))
		return rc;
	if (!above)
		return rl_tree_write(space, shape, &after, &out->value);
	if (above + tree_depth(shape, after.count) > shape->depth)
		return -EAGAIN;
	return siblings_write(space, shape, step[-1].at, step->child, &after, out);
}

int rl_tree_edit(struct rl_space *space, const struct rl_tree_shape *shape, __u32 value,
		 const struct rl_tree_edit *edit, struct rl_tree_store *out)
{
	RL_RANGE_LIST struct rl_range_list whole = {}, after = {};
	struct step step[RL_RANGES_DEPTH6];
	__u32 count, next = space->next;
	int rc;

	*out = (struct rl_tree_store){.value = value};
	if (value & RL_RANGES_TREE) {
		rc = steps_find(space, shape, value, edit, step, &count);
		if (rc)
			return rc;
		do {
			space->next = next;
			count--;
			rc = step_edit(space, shape, &step[count], count, edit, out);
		} while (rc == -EAGAIN);
		return rc;
	}
	rc = rl_tree_read(space, shape, value, &whole);
	if (!rc)
		rc = list_edit(space, shape, &whole, shape->last, edit, &after);
	return rc || list_same(&whole, &after) ? rc : rl_tree_write(space, shape, &after, &out->value);
}

int rl_tree_find(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 value, __u64 key,
		 __u32 *out)
{
	const struct rl_tree_edit at = {.first = key, .last = key};
	struct step step[RL_RANGES_DEPTH6];
	__u32 count, leaf;
	int rc;

	if (!(value & RL_RANGES_TREE)) {
		*out = value;
		return 0;
	}
	rc = steps_find(space, shape, value, &at, step, &count);
	if (rc)
		return rc;
	leaf = step[count - 1].at;
	*out = rl_leaf_value(space, shape, leaf, rl_node_rank(space, shape, leaf, key));
	return 0;
}
