// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "mapping.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PART  2			/* pages */
#define PIECE ((size_t)4 << 20) /* bytes; a multiple of every page size that there is */

/* The part of a map that is mapped. */
struct rl_window {
	int fd;
	int protection;
	size_t from, size; /* bytes of the map; 0: nothing is mapped */
	char *base;
};

/* Addresses for all of a map, with memory behind those pieces that were asked for. */
struct rl_pieces {
	int fd;
	int protection;
	char *base;
	bool there[];
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static struct rl_window *window_make(int fd, int protection)
{
	struct rl_window *window = calloc(1, sizeof(*window));

	if (window)
		*window = (struct rl_window){.fd = fd, .protection = protection};
	return window;
}

/* Without memory behind them yet. */
static void *addresses_take(size_t size)
{
	return mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static struct rl_pieces *pieces_make(int fd, int protection, size_t size)
{
	struct rl_pieces *pieces = calloc(1, sizeof(*pieces) + size / PIECE + 1);

	if (!pieces)
		return NULL;
	*pieces = (struct rl_pieces){.fd = fd, .protection = protection, .base = addresses_take(size)};
	if (pieces->base != MAP_FAILED)
		return pieces;
	free(pieces);
	return NULL;
}

static int cant_map(enum rl_map map, struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't map %s into memory: %s", rl_map_name(map),
			    strerror(errno));
}

/* Its shape, without any memory. */
static int mapping_begin(const struct rl_state *state, enum rl_map map, size_t element,
			 struct rl_mapping *out, struct rl_error *err)
{
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);

	if (bpf_obj_get_info_by_fd(state->map[map], &info, &length))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't look at the map %s: %s",
				    rl_map_name(map), strerror(errno));
	if (info.value_size != element)
		return rl_error_set(err, RL_ERROR_KERNEL, EPROTO,
				    "the map %s has elements of %u bytes, expected %zu: it isn't rl-agent's; "
				    "`rl-agent detach --all` and attach make it anew",
				    rl_map_name(map), info.value_size, element);
	*out = (struct rl_mapping){
	    .size = (element * info.max_entries + page_size() - 1) / page_size() * page_size(),
	    .element = element,
	    .entries = info.max_entries,
	};
	return 0;
}

int rl_mapping_open(const struct rl_state *state, enum rl_map map, size_t element, bool writable,
		    enum rl_mapping_how how, struct rl_mapping *out, struct rl_error *err)
{
	int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	struct rl_mapping mapping;
	int rc = mapping_begin(state, map, element, &mapping, err);

	if (rc)
		return rc;
	if (how == RL_MAPPING_PARTS && mapping.size > PART * page_size()) {
		mapping.window = window_make(state->map[map], protection);
		if (!mapping.window)
			return cant_map(map, err);
	} else if (how == RL_MAPPING_GROWING) {
		mapping.pieces = pieces_make(state->map[map], protection, mapping.size);
		if (!mapping.pieces)
			return cant_map(map, err);
	} else {
		mapping.base = mmap(NULL, mapping.size, protection, MAP_SHARED, state->map[map], 0);
		if (mapping.base == MAP_FAILED)
			return cant_map(map, err);
	}
	*out = mapping;
	return 0;
}

int rl_mapping_open_part(const struct rl_state *state, enum rl_map map, size_t element, __u32 from,
			 __u32 count, struct rl_mapping *out, struct rl_error *err)
{
	size_t page = page_size(), begin = element * from / page * page,
	       end = element * ((size_t)from + count);
	struct rl_mapping mapping;
	int rc = mapping_begin(state, map, element, &mapping, err);

	if (rc)
		return rc;
	if (end > mapping.size)
		end = mapping.size;
	/* The addresses of all of it, and memory behind some. */
	mapping.base = addresses_take(mapping.size);
	if (mapping.base == MAP_FAILED)
		return cant_map(map, err);
	if (mmap((char *)mapping.base + begin, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 state->map[map], (off_t)begin) == MAP_FAILED) {
		rc = cant_map(map, err);
		munmap(mapping.base, mapping.size);
		return rc;
	}
	*out = mapping;
	return 0;
}

static void cant_go_on(void)
{
	perror("rl-agent: can't map a part of the policy into memory");
	abort();
}

static void window_close(struct rl_window *window)
{
	if (window->size)
		munmap(window->base, window->size);
	window->size = 0;
}

/* Where a part begins, and a page more, since an element may lie across its end. */
static void window_move(struct rl_window *window, size_t at, size_t whole)
{
	size_t part = PART * page_size(), from = at / part * part, size = part + page_size();

	window_close(window);
	if (size > whole - from)
		size = whole - from;
	window->base = mmap(NULL, size, window->protection, MAP_SHARED, window->fd, (off_t)from);
	if (window->base == MAP_FAILED)
		cant_go_on();
	window->from = from;
	window->size = size;
}

static void piece_map(struct rl_pieces *pieces, size_t piece, size_t whole)
{
	size_t from = piece * PIECE, size = whole - from < PIECE ? whole - from : PIECE;

	if (mmap(pieces->base + from, size, pieces->protection, MAP_SHARED | MAP_FIXED, pieces->fd,
		 (off_t)from) == MAP_FAILED)
		cant_go_on();
	pieces->there[piece] = true;
}

/* An element may lie across the end of a piece. */
static void *pieces_at(struct rl_pieces *pieces, size_t from, size_t size, size_t whole)
{
	size_t first = from / PIECE, last = (from + size - 1) / PIECE;

	if (!pieces->there[first])
		piece_map(pieces, first, whole);
	if (!pieces->there[last])
		piece_map(pieces, last, whole);
	return pieces->base + from;
}

void *rl_mapping_part_at(const struct rl_mapping *mapping, __u32 index)
{
	struct rl_window *window = mapping->window;
	size_t at = mapping->element * index;

	if (mapping->pieces)
		return pieces_at(mapping->pieces, at, mapping->element, mapping->size);
	if (at < window->from || at + mapping->element > window->from + window->size)
		window_move(window, at, mapping->size);
	return window->base + (at - window->from);
}

void rl_mapping_close(struct rl_mapping *mapping)
{
	if (mapping->base)
		munmap(mapping->base, mapping->size);
	if (mapping->window)
		window_close(mapping->window);
	if (mapping->pieces)
		munmap(mapping->pieces->base, mapping->size);
	free(mapping->window);
	free(mapping->pieces);
	*mapping = (struct rl_mapping){};
}
