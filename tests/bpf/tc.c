// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tc.c - the TC entry point: a packet is judged as over XDP, and one that the kernel merged is charged all of those that it was,
 * or none.
 */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <string.h>

#include "fixture.h"
#include "rl_path.skel.h"

#define SEGMENT 100
#define HEADERS (14 + 20 + 20)

/* Run the TC program on a frame that was merged from so many. Returns whether it passed. */
static bool run_merged(struct fixture *fx, const uint8_t *frame, size_t len, __u32 segments, __u32 size)
{
	struct __sk_buff skb = {.gso_segs = segments, .gso_size = size};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (__u32)len, .ctx_in = &skb,
		    .ctx_size_in = sizeof(skb), .repeat = 1);

	cr_assert_eq(bpf_prog_test_run_opts(bpf_program__fd(fx->skel->progs.rl_tc), &opts), 0);
	cr_assert((int)opts.retval == TC_ACT_UNSPEC || opts.retval == TC_ACT_SHOT, "verdict %d",
		  (int)opts.retval);
	return opts.retval != TC_ACT_SHOT;
}

/* A TCP frame merged from `segments` of SEGMENT bytes each; accounted for. counted: the kernel says how many there are */
static bool offer_merged(struct fixture *fx, __u32 segments, bool counted)
{
	struct rl_frame_spec spec = {
	    .src = "203.0.113.7", .proto = 6, .tcp_flags = 0x10, .len = HEADERS + segments * SEGMENT};
	uint8_t frame[RL_FRAME_MAX];
	size_t len = rl_frame_build(&spec, frame, sizeof(frame));

	fixture_account(fx, segments, len + (segments - 1) * (size_t)HEADERS);
	return run_merged(fx, frame, len, counted ? segments : 0, segments > 1 ? SEGMENT : 0);
}

Test(tc, what_was_merged_is_charged_whole_or_not_at_all)
{
	for (int counted = 0; counted < 2; counted++) {
		struct fixture fx = fixture_open_with(&(struct fixture_options){.tc = true});
		struct rl_limit limit = fixture_limit(&fx, "203.0.113.0/24", "1/h", "25", NULL);
		struct rl_source source;

		cr_expect(offer_merged(&fx, 10, counted));
		cr_expect(offer_merged(&fx, 10, counted));
		cr_expect_not(offer_merged(&fx, 10, counted), "five are left");
		cr_expect(offer_merged(&fx, 5, counted));
		cr_expect_not(offer_merged(&fx, 1, counted));
		cr_expect_eq(fixture_limit_count(&fx, &limit).passed.packets, 25);
		cr_expect_eq(fixture_limit_count(&fx, &limit).dropped.packets, 11);
		cr_assert(fixture_source(&fx, &limit, "203.0.113.7", &source));
		cr_expect_eq(source.tally.passed.packets, 25);
		cr_expect_eq(source.tally.passed.bytes, 25 * (SEGMENT + HEADERS));
		cr_expect_eq(source.tally.dropped.packets, 11);
		cr_expect_eq(source.tally.dropped.bytes, 11 * (SEGMENT + HEADERS));
		fixture_close(&fx);
	}
}

Test(tc, bytes_are_those_on_the_wire)
{
	struct fixture fx = fixture_open_with(&(struct fixture_options){.tc = true});

	fixture_limit(&fx, "203.0.113.0/24", "1kbit", "1.54kb", NULL); /* ten frames of 154 bytes */
	cr_expect(offer_merged(&fx, 6, true));
	cr_expect_not(offer_merged(&fx, 5, true));
	cr_expect(offer_merged(&fx, 4, true));
	cr_expect_not(offer_merged(&fx, 1, true));
	fixture_close(&fx);
}

/* At each level, and where packets cost more than one token. */
Test(tc, every_level_is_charged_all_of_them)
{
	struct fixture fx = fixture_open_with(&(struct fixture_options){.tc = true});
	struct rl_limit tenant = fixture_limit(&fx, "tenant:acme", "1/h", "100", NULL), source, device;

	source = fixture_limit(&fx, "203.0.113.0/24", "1/h", "1000", "tenant=acme", "cost=tcp=7", NULL);
	fixture_device_name(&fx, "eth7");
	device = fixture_limit(&fx, "dev:eth7", "1/h", "1000", NULL);
	cr_expect(offer_merged(&fx, 10, true), "70 of 100");
	cr_expect_not(offer_merged(&fx, 5, true), "35 more");
	cr_expect(offer_merged(&fx, 4, true), "28 more");
	cr_expect_eq(fixture_limit_count(&fx, &tenant).dropped.packets, 5);
	cr_expect_eq(fixture_limit_count(&fx, &source).passed.packets, 14);
	(void)device;
	fixture_close(&fx);
}

/* The same frames through both entry points, which share all buckets. */
Test(tc, a_packet_is_judged_as_over_xdp)
{
	static const struct rl_frame_spec specs[] = {
	    {.src = "203.0.113.7"},  {.src = "203.0.113.7", .proto = 6},       {.src = "2001:db8::7"},
	    {.src = "198.51.100.1"}, {.src = "203.0.113.8", .vlan = {0x8100}}, {.ethertype = 0x0806},
	};
	struct fixture fx = fixture_open_with(&(struct fixture_options){.tc = true});
	int passed[2] = {0};

	fixture_limit(&fx, "203.0.113.0/24", "1/h", "10", NULL);
	fixture_limit(&fx, "2001:db8::/32", "1/h", "10", NULL);
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		uint8_t frame[RL_FRAME_MAX];
		size_t len = rl_frame_build(&specs[i], frame, sizeof(frame));

		for (int n = 0; n < 12; n++) {
			fixture_account(&fx, 1, len);
			if (n % 2)
				passed[1] += run_merged(&fx, frame, len, 0, 0);
			else
				passed[0] += fixture_run(&fx, frame, len, 1) == XDP_PASS;
		}
	}
	cr_expect_eq(passed[0], 5 + 0 + 5 + 6 + 5 + 6, "%d over XDP", passed[0]);
	cr_expect_eq(passed[1], 5 + 0 + 5 + 6 + 5 + 6, "%d over TC", passed[1]);
	fixture_close(&fx);
}
