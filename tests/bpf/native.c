// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <string.h>

static inline unsigned long long rl_now(void)
{
	return 0; /* only refunds ask for it */
}

#include "../../bpf/rl_table.h"
#include "../../user/pending.h"
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

void native_add_pending(const struct rl_state *state, __u64 place, __u64 key, struct rl_source *out)
{
	RL_PENDINGS struct rl_pendings pendings = {};
	struct rl_error err;

	cr_assert_eq(rl_pendings_open(state, false, &pendings, &err), 0, "%s", err.text);
	rl_pendings_add(&pendings, place, key, &out->tally);
}

bool native_find_at(const struct rl_state *state, const struct rl_table *table, const struct rl_limit *limit,
		    __u8 family, const __u8 *addr, struct rl_source *out, __u64 *at)
{
	__u64 number = rl_table_number(table, family, addr), key = rl_table_key(limit->id, family, number);
	struct rl_rows rows = rl_table_rows(table, table->regions,
					    rl_table_spot((enum rl_level)limit->level, limit->id, number));
	struct rl_row row;
	int found = 0;

	for (int i = 0; i < 2; i++) {
		read_row(state, RL_MAP_ROWS, rows.row[i], &row);
		for (__u32 place = 0; place < RL_ROW; place++) {
			if (row.key[place] != key || !same_address(state, family, rows.row[i], place, addr))
				continue;
			*out = (struct rl_source){
			    .key = key,
			    .buckets = row.at[place].buckets,
			    .tally = {row.at[place].passed, row.at[place].dropped, row.shadow[place]},
			};
			*at = rl_place_number(rows.row[i], place);
			native_add_pending(state, *at, key, out);
			found++;
		}
	}
	cr_assert_leq(found, 1, "a source has %d buckets under one limit", found);
	return found;
}

bool native_find(const struct rl_state *state, const struct rl_table *table, const struct rl_limit *limit,
		 __u8 family, const __u8 *addr, struct rl_source *out)
{
	__u64 place;

	return native_find_at(state, table, limit, family, addr, out, &place);
}

void native_twins(const struct rl_table *table, __u32 n, __u8 *six, __u8 *four)
{
	memset(six, 0, 16);
	six[0] = 0x20;
	for (__u32 i = 0; i < 1U << 24; i++) {
		__u32 net = htonl(i), low;
		struct rl_rows rows, others;
		__u64 number;

		memcpy(six + 4, &net, sizeof(net));
		number = rl_table_number(table, 6, six);
		low = htonl((__u32)number);
		rows = rl_table_rows(table, table->regions, number);
		others = rl_table_rows(table, table->regions, (__u32)number);
		memcpy(four, &low, sizeof(low));
		if (four[0] && !memcmp(rows.row, others.row, sizeof(rows.row)) && !n--)
			return;
	}
	cr_assert_fail("no such sources");
}

__u64 native_taken(const struct rl_state *state, const struct rl_table *table, __u8 family)
{
	struct rl_row row;
	__u64 taken = 0;

	for (__u32 i = 0; i < table->regions * RL_REGION_ROWS; i++) {
		read_row(state, RL_MAP_ROWS, i, &row);
		for (__u32 place = 0; place < RL_ROW; place++)
			taken += row.key[place] && !(row.key[place] & RL_KEY_SIX) == (family == 4);
	}
	return taken;
}
