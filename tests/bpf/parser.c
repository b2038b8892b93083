// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * parser.c - the parser inside BPF: the verifier takes all of it, it finds in every kind of frame what must
 * be found, and it agrees with the native one on random frames.
 */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

#include "kinds.h"
#include "tests/bpf/parse.skel.h"

#define RANDOM_FRAMES 200000
#define FIRST_BUFFER                                                                                         \
	2048 /* frames of more may lie in several buffers, of which the program reads the first */

static struct parse *open_parser(void)
{
	struct parse *skel;

	if (geteuid())
		cr_skip_test("loading BPF programs needs root");
	skel = parse__open_and_load();
	cr_assert_not_null(skel, "the parser doesn't load");
	return skel;
}

static int run(const struct parse *skel, const uint8_t *frame, size_t len, struct rl_packet *out)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (__u32)len);

	cr_assert_eq(bpf_prog_test_run_opts(bpf_program__fd(skel->progs.parse), &opts), 0);
	cr_assert_eq(opts.retval, XDP_PASS);
	*out = *(const struct rl_packet *)&skel->bss->parsed;
	return skel->bss->parsed_result;
}

static void expect_same(const struct parse *skel, const uint8_t *frame, size_t len, const char *name)
{
	struct rl_packet native = {}, bpf;
	int expected = rl_parse(frame, frame + len, &native), result = run(skel, frame, len, &bpf);

	cr_assert_eq(result, expected, "%s: %d in BPF, %d natively", name, result, expected);
	cr_assert_eq(memcmp(&bpf, &native, sizeof(bpf)), 0, "%s: BPF and native differ", name);
}

Test(parser, every_kind)
{
	static const __u8 source4[16] = {203, 0, 113, 7}, source6[16] = {0x20, 1, 0xd, 0xb8, 0, 1, [15] = 7};
	struct parse *skel = open_parser();
	static uint8_t frame[RL_FRAME_MAX];

	for (size_t i = 0; i < kind_count; i++) {
		const struct kind *kind = &kinds[i];
		size_t len = kind_build(kind, frame);
		bool v4 = !strcmp(kind->spec.src, KIND_SOURCE4), ports = kind->flags & RL_PACKET_PORTS;
		struct rl_packet packet;
		int result = run(skel, frame, len, &packet);

		cr_assert_eq(result, (int)kind->result, "%s: result %d", kind->name, result);
		expect_same(skel, frame, len, kind->name);
		if (kind->result != RL_PARSE_IP)
			continue;
		cr_assert_eq(packet.family, v4 ? 4 : 6, "%s", kind->name);
		cr_assert_eq(packet.flags, kind->flags, "%s: flags %#x", kind->name, packet.flags);
		cr_assert_eq(packet.proto, kind->proto, "%s: protocol %u", kind->name, packet.proto);
		cr_assert_eq(memcmp(packet.src, v4 ? source4 : source6, 16), 0, "%s: source", kind->name);
		cr_assert_eq(packet.sport, ports ? 4000 : 0, "%s: port %u", kind->name, packet.sport);
		cr_assert_eq(packet.dport, ports ? 4001 : 0, "%s: port %u", kind->name, packet.dport);
	}
	parse__destroy(skel);
}

/* The kernel runs no frame shorter than its Ethernet header. */
Test(parser, every_truncation)
{
	struct parse *skel = open_parser();
	static uint8_t frame[RL_FRAME_MAX];

	for (size_t i = 0; i < kind_count; i++) {
		size_t len = kind_build(&kinds[i], frame);

		for (size_t cut = 14; cut <= len && cut <= 256; cut++)
			expect_same(skel, frame, cut, kinds[i].name);
	}
	parse__destroy(skel);
}

static __u64 next_random(__u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A kind of frame with a few bytes changed, mostly among its headers, some to values that mean something
 * there. */
static size_t mutate(uint8_t *frame, size_t len, __u64 *state)
{
	static const uint8_t telling[] = {0,  1,  4,	6,    17,   43,	  44,	51,   58,
					  59, 60, 0x08, 0x81, 0x86, 0x88, 0xa8, 0xdd, 255};
	int changes = (int)(next_random(state) % 8);

	for (int i = 0; i < changes; i++) {
		size_t reach = next_random(state) % 4 ? 64 : len;
		size_t at = next_random(state) % (reach < len ? reach : len);

		frame[at] = next_random(state) % 2 ? telling[next_random(state) % sizeof(telling)]
						   : (uint8_t)next_random(state);
	}
	if (next_random(state) % 4 == 0)
		len = 14 + next_random(state) % (len - 13);
	return len;
}

Test(parser, random_frames)
{
	struct parse *skel = open_parser();
	static uint8_t frame[RL_FRAME_MAX];
	__u64 state = 88172645463325252ULL;

	for (int i = 0; i < RANDOM_FRAMES; i++) {
		const struct kind *kind = &kinds[next_random(&state) % kind_count];
		size_t len = kind_build(kind, frame);

		if (len > FIRST_BUFFER)
			len = FIRST_BUFFER;
		len = mutate(frame, len, &state);
		if (i % 16 == 0)
			for (size_t at = 14; at < len; at++)
				frame[at] = (uint8_t)next_random(&state);
		expect_same(skel, frame, len, kind->name);
	}
	parse__destroy(skel);
}
