// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What packets took on the wire that the kernel has merged (rl_merged.h).
 */
#include <criterion/criterion.h>

#include "../../bpf/rl_merged.h"
#include "../lib/frame.h"

static const struct {
	const char *what;
	struct rl_frame_spec spec;
	__u32 headers;
} frames[] = {
    {"TCP", {.proto = 6}, 14 + 20 + 20},
    {"UDP", {.proto = 17}, 14 + 20 + 8},
    {"IPv4 options", {.proto = 6, .options = 3}, 14 + 32 + 20},
    {"another protocol", {.proto = 132}, 14 + 20},
    {"TCP over IPv6", {.src = "2001:db8::1", .proto = 6}, 14 + 40 + 20},
    {"UDP over IPv6", {.src = "2001:db8::1", .proto = 17}, 14 + 40 + 8},
    {"a tag", {.proto = 6, .vlan = {0x8100}}, 18 + 20 + 20},
    {"two tags", {.src = "2001:db8::1", .proto = 6, .vlan = {0x88a8, 0x8100}}, 22 + 40 + 20},
    {"ARP", {.ethertype = 0x0806}, 14},
};

Test(merged, headers)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		uint8_t frame[RL_FRAME_MAX];
		size_t len = rl_frame_build(&frames[i].spec, frame, sizeof(frame));

		cr_expect_eq(rl_merged_headers(frame, frame + len), frames[i].headers, "%s: %u",
			     frames[i].what, rl_merged_headers(frame, frame + len));
		/* Cut off anywhere: no byte behind is read (by the address sanitizer), and it is never more. */
		for (size_t cut = 0; cut < len; cut++) {
			uint8_t *copy = malloc(cut ? cut : 1);

			memcpy(copy, frame, cut);
			cr_expect_leq(rl_merged_headers(copy, copy + cut), frames[i].headers,
				      "%s of %zu bytes", frames[i].what, cut);
			free(copy);
		}
	}
}

Test(merged, segments)
{
	static const struct {
		__u32 headers, len, segments, size, expected;
	} cases[] = {
	    {54, 1514, 0, 0, 1},		    /* not merged */
	    {54, 1514, 7, 0, 1},		    /* likewise, whatever else is said */
	    {54, 1514, 0, 1460, 1},		    /* one packet of a guest's */
	    {54, 1515, 0, 1460, 2},		    /* and one more byte */
	    {54, 54 + 10 * 1448, 10, 1448, 10},	    /* counted by the kernel */
	    {54, 54 + 10 * 1448, 0, 1448, 10},	    /* or not */
	    {54, 54 + 9 * 1448 + 1, 0, 1448, 10},   /* the last one is shorter */
	    {54, 65535, 0, 1, 65481},		    /* the smallest that there can be */
	    {54, 524280, 0, 1, RL_MERGED_SEGMENTS}, /* more than there can be */
	    {54, 54, 3, 100, 1},		    /* headers alone */
	    {60, 54, 3, 100, 1},		    /* not even those */
	    {54, 1514, 0xffffffff, 1, RL_MERGED_SEGMENTS},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(
		    rl_merged_segments(cases[i].headers, cases[i].len, cases[i].segments, cases[i].size),
		    cases[i].expected, "case %zu", i);
}

Test(merged, bytes)
{
	cr_expect_eq(rl_merged_len(54, 1514, 1), 1514);
	cr_expect_eq(rl_merged_len(54, 54 + 10 * 1448, 10), 10 * 1502);
	cr_expect_eq(rl_merged_len(58, 58 + 44 * 1448 + 100, 45), 44 * 1506 + 158);
	cr_expect_eq(rl_merged_len(54, 524280, RL_MERGED_SEGMENTS), RL_MERGED_BYTES,
		     "more than a bucket can be charged");
}
