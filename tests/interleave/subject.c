// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * subject.c - the packet path over struct world. Compiled with -fsanitize=thread, against the headers as they are and
 * against copies with a mistake (mutate): SUBJECT is the name of each.
 */
#include <string.h>

#include "world.h"

#ifndef SUBJECT
#define SUBJECT subject_true
#endif

static struct rl_limit_count limit_count[SCHEDULE_CPUS][SLOTS];
static struct rl_device_count device_count[SCHEDULE_CPUS];

static inline __u64 rl_now(void)
{
	return *(const volatile __u64 *)&world.clock;
}

static inline __u64 rl_tick(void)
{
	return *(const volatile __u64 *)&world.clock;
}

static inline __u32 rl_slice_shift(void)
{
	return world_slices;
}

static inline const struct rl_limit *rl_limit_at(__u32 cell)
{
	return cell ? &world_limits[cell] : NULL;
}

#include "../../bpf/rl_ref.h"

static inline __u32 rl_cell_of(__u32 epoch, __u32 slot)
{
	return slot ? rl_ref_cell(*(const volatile __u64 *)&world.head[slot], epoch) : 0;
}

static inline const struct rl_settings *rl_settings_at(void)
{
	return &world.settings;
}

static inline const struct rl_table *rl_table_at(void)
{
	return &world_table;
}

static inline struct rl_source *rl_own_at(__u32 slot)
{
	return &world.own[slot];
}

static inline struct rl_slice *rl_slice_at(__u32 slot)
{
	return &world.slice[schedule_cpu()][slot];
}

static inline struct rl_pending *rl_pending_at(__u32 index)
{
	(void)index;
	return &world.pending[schedule_cpu()];
}

/* Which of the two rows; there are no others. */
static inline int row_of(__u32 index)
{
	return index == world_rows[1];
}

static inline struct rl_row *rl_row_at(__u32 where, __u32 index)
{
	return where == RL_AT_GROUPS ? NULL : &world.row[row_of(index)];
}

static inline struct rl_row_address *rl_row_address_at(__u32 index)
{
	return &world.address[row_of(index)];
}

static inline struct rl_kept *rl_kept_at(__u32 index)
{
	return &world.kept[row_of(index)];
}

static inline __u32 *rl_lock_at(__u32 index)
{
	return &world.lock[index];
}

static inline struct rl_limit_count *rl_limit_count_at(__u32 slot)
{
	return &limit_count[schedule_cpu()][slot];
}

static inline struct rl_device_count *rl_device_count_at(__u32 device)
{
	(void)device;
	return &device_count[schedule_cpu()];
}

static inline const struct rl_device *rl_device_at(__u32 device)
{
	(void)device;
	return &world_device;
}

static inline struct rl_source *rl_nd_at(__u32 device)
{
	(void)device;
	return NULL;
}

static inline const struct rl_limit *rl_nd_budget(void)
{
	return NULL;
}

static inline __u32 rl_slot_of(const struct rl_packet *packet)
{
	int i = 0;

	while (memcmp(packet->src, world_source[i].addr, sizeof(packet->src)) != 0)
		i++;
	return *(const volatile __u32 *)&world.policy[i];
}

#include "../lib/no_lru.h"

static inline struct rl_source *rl_lru_at(const struct rl_job *job, const struct rl_limit *limit)
{
	(void)job, (void)limit;
	return NULL;
}

#include "../../bpf/rl_admit.h"

static enum rl_reason packet(struct rl_job *job, const uint8_t *frame, __u32 len)
{
	job->segments = 1;
	job->len = len;
	return rl_handle(job, frame, frame + len, 0);
}

extern const struct subject SUBJECT;
const struct subject SUBJECT = {.packet = packet};
