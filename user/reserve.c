// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reserve.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "cleanup.h"

/* One map; each is made by whichever thread is free. */
struct made {
	const struct bpf_map *map;
	int result; /* its file descriptor, or a negative errno; 0: not tried */
};

struct work {
	struct made *made;
	size_t count;
	size_t next; /* the first that no thread has taken */
	bool failed; /* no others need be begun */
};

static int map_make(const struct bpf_map *map)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = bpf_map__map_flags(map));

	return bpf_map_create(bpf_map__type(map), bpf_map__name(map), bpf_map__key_size(map),
			      bpf_map__value_size(map), bpf_map__max_entries(map), &options);
}

/* Until there is none left. The object isn't touched here: libbpf's are for one thread. */
static void *work_do(void *context)
{
	struct work *work = context;

	while (!__atomic_load_n(&work->failed, __ATOMIC_RELAXED)) {
		size_t i = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);

		if (i >= work->count)
			break;
		work->made[i].result = map_make(work->made[i].map);
		if (work->made[i].result < 0)
			__atomic_store_n(&work->failed, true, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Without a second thread it takes longer. */
static void work_share(struct work *work)
{
	pthread_t other;
	bool alone = pthread_create(&other, NULL, work_do, work) != 0;

	work_do(work);
	if (!alone)
		pthread_join(other, NULL);
}

int rl_reserve(struct bpf_map *const *maps, size_t count, const struct bpf_map **refused)
{
	RL_FREE struct made *made = calloc(count, sizeof(*made));
	struct work work = {.made = made, .count = count};
	int rc = 0;

	*refused = NULL;
	if (!made)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		made[i].map = maps[i];
	work_share(&work);
	for (size_t i = 0; i < count; i++) {
		RL_CLOSE int fd = made[i].result > 0 ? made[i].result : -1;

		if (rc || !made[i].result)
			continue;
		rc = fd < 0 ? made[i].result : bpf_map__reuse_fd(maps[i], fd);
		if (rc)
			*refused = maps[i];
	}
	return rc;
}
