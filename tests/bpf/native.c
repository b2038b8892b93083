// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <string.h>

static inline unsigned long long rl_now(void)
{
	return 0; /* only refunds ask for it */
}

#include "../../bpf/rl_table.h"
#include "native.h"

static void read_row(const struct rl_state *state, enum rl_map map, __u32 row, void *out)
{
	cr_assert_eq(bpf_map_lookup_elem(state->map[map], &row, out), 0, "row %u", row);
}

/* Whether the place's whole address is this one; IPv4's key says all. */
static bool same_address(const struct rl_state *state, __u8 family, __u32 row, __u32 place, const __u8 *addr)
{
	struct rl_row_address address;

	if (family == 4)
		return true;
	read_row(state, RL_MAP_ADDRESS6, row, &address);
	return !memcmp(address.addr[place], addr, 16);
}

bool native_find(const struct rl_state *state, const struct rl_table *table, const struct rl_limit *limit,
		 __u8 family, const __u8 *addr, struct rl_source *out)
{
	__u64 number = rl_table_number(table, family, addr), key = rl_table_key(limit->id, number);
	struct rl_rows rows = rl_table_rows(table, table->regions,
					    rl_table_spot((enum rl_level)limit->level, limit->id, number));
	struct rl_row row;
	int found = 0;

	for (int i = 0; i < 2; i++) {
		read_row(state, family == 4 ? RL_MAP_ROWS4 : RL_MAP_ROWS6, rows.row[i], &row);
		for (__u32 place = 0; place < RL_ROW; place++) {
			if (row.key[place] != key || !same_address(state, family, rows.row[i], place, addr))
				continue;
			*out = (struct rl_source){
			    .key = key,
			    .buckets = row.at[place].buckets,
			    .tally = {row.at[place].passed, row.at[place].dropped, row.shadow[place]},
			};
			found++;
		}
	}
	cr_assert_leq(found, 1, "a source has %d buckets under one limit", found);
	return found;
}

__u64 native_taken(const struct rl_state *state, const struct rl_table *table, __u8 family)
{
	struct rl_row row;
	__u64 taken = 0;

	for (__u32 i = 0; i < table->regions * RL_REGION_ROWS; i++) {
		read_row(state, family == 4 ? RL_MAP_ROWS4 : RL_MAP_ROWS6, i, &row);
		taken += RL_ROW - rl_row_free(&row);
	}
	return taken;
}
