// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * size.c - what the programs cost to load: instructions that the verifier walks through (the kernel gives up at a million),
 * and their own length. Growth by more than a fifth wants a look at what it came from, and then new figures here.
 */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../../bpf/rl_abi.h"
#include "rl_reset.skel.h"
#include "rl_path.skel.h"
#include "rl_zero.skel.h"

/* Measured with clang 14 on this kernel, 2026-12-01. `scripts/bench` prints them for any. */
#define KERNEL "6.18."

static const struct size {
	const char *program;
	__u32 verified; /* instructions */
	__u32 xlated;	/* bytes, as the verifier leaves it */
} measured[] = {
    {"rl_xdp", 148967, 127216},
    {"rl_tc", 148000, 126000},
    {"rl_reset", 384, 1000},
    {"rl_zero", 42, 488},
};

/* Other kernels walk other ways: there the bound is a rough one. */
static double growth_allowed(void)
{
	struct utsname name;

	return uname(&name) == 0 && !strncmp(name.release, KERNEL, strlen(KERNEL)) ? 1.2 : 2.5;
}

static void check(const struct size *size, int fd)
{
	struct bpf_prog_info info = {};
	__u32 length = sizeof(info);

	cr_assert_eq(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
	cr_expect_leq(info.verified_insns, growth_allowed() * size->verified,
		      "%s: the verifier walks through %u instructions, measured were %u", size->program,
		      info.verified_insns, size->verified);
	cr_expect_leq(info.xlated_prog_len, growth_allowed() * size->xlated,
		      "%s: it is %u bytes long, measured were %u", size->program, info.xlated_prog_len,
		      size->xlated);
	/* Figures that are far too high let everything pass. */
	cr_expect_geq(2 * info.verified_insns, size->verified, "%s: %u instructions, measured were %u",
		      size->program, info.verified_insns, size->verified);
	cr_expect_geq(2 * info.xlated_prog_len, size->xlated, "%s: %u bytes, measured were %u", size->program,
		      info.xlated_prog_len, size->xlated);
}

Test(size, no_program_has_grown_by_a_fifth)
{
	struct rl_path *packet;
	struct rl_reset *reset;
	struct rl_zero *zero;

	if (geteuid())
		cr_skip_test("loading BPF programs needs root");
	packet = rl_path__open();
	cr_assert(packet && !bpf_program__set_autoload(packet->progs.rl_tc, true) && !rl_path__load(packet));
	reset = rl_reset__open_and_load();
	zero = rl_zero__open_and_load();
	cr_assert(reset && zero);
	check(&measured[0], bpf_program__fd(packet->progs.rl_xdp));
	check(&measured[1], bpf_program__fd(packet->progs.rl_tc));
	check(&measured[2], bpf_program__fd(reset->progs.rl_reset));
	check(&measured[3], bpf_program__fd(zero->progs.rl_zero));
	rl_path__destroy(packet);
	rl_reset__destroy(reset);
	rl_zero__destroy(zero);
}
