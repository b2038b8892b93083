// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cleanup.h"
#include "state.h"

static const struct rl_probe table[] = {
    [RL_PROBE_PRIVILEGE] = {"privilege", "root, with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
			    "run rl-agent with sudo", true},
    [RL_PROBE_BPFFS] = {"bpffs", "the BPF file system on " RL_BPFFS, "attach mounts it", false},
    [RL_PROBE_COOKIE] = {"netns_cookie", "network namespace cookies (Linux 5.14)",
			 "attach refuses: the kernel is too old", true},
    [RL_PROBE_XDP] = {"xdp", "XDP programs (Linux 4.8)",
		      "attach refuses: the kernel is too old or built without BPF", true},
    [RL_PROBE_FRAGS] = {"xdp_frags", "XDP over frames of several buffers (Linux 5.18)",
			"attach needs --no-frags, and refuses jumbo frames", false},
    [RL_PROBE_CAS] = {"cas", "compare-and-swap in BPF (Linux 5.12)", "attach refuses: the kernel is too old",
		      true},
    [RL_PROBE_LPM] = {"lpm_trie", "longest prefix match maps (Linux 4.11)",
		      "attach refuses: the kernel is too old", true},
    [RL_PROBE_LRU] = {"lru_hash", "least-recently-used hash maps (Linux 4.10)",
		      "attach refuses: the kernel is too old", true},
    [RL_PROBE_JIT] = {"jit", "BPF compiled to machine code",
		      "everything works, several times slower: sysctl "
		      "net.core.bpf_jit_enable=1",
		      false},
};
_Static_assert(sizeof(table) / sizeof(table[0]) == RL_PROBES, "a probe without a row");

const struct rl_probe *rl_probe_table(void)
{
	return table;
}

/* A loaded program, to be closed, or -1. */
static int program_load(const struct bpf_insn *insns, size_t count, __u32 flags)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = flags);

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "rl_probe", "GPL", insns, count, &options);
}

static bool map_makes(enum bpf_map_type type, __u32 key_size, __u32 flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = flags);
	RL_CLOSE int fd = bpf_map_create(type, "rl_probe", key_size, 8, 16, &options);

	return fd >= 0;
}

static const struct bpf_insn pass_insns[] = {
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
    {.code = BPF_JMP | BPF_EXIT},
};
#define PASS_INSNS (sizeof(pass_insns) / sizeof(pass_insns[0]))

static bool probe_xdp(__u32 flags)
{
	RL_CLOSE int fd = program_load(pass_insns, PASS_INSNS, flags);

	return fd >= 0;
}

static bool probe_cas(void)
{
	RL_CLOSE int fd = -1;
	const struct bpf_insn insns[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = 1},
	    {.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .src_reg = BPF_REG_0, .off = -8},
	    {.code = BPF_STX | BPF_ATOMIC | BPF_DW,
	     .dst_reg = BPF_REG_10,
	     .src_reg = BPF_REG_1,
	     .off = -8,
	     .imm = BPF_CMPXCHG},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
	    {.code = BPF_JMP | BPF_EXIT},
	};

	fd = program_load(insns, sizeof(insns) / sizeof(insns[0]), 0);
	return fd >= 0;
}

/* By the program's own length in machine code: the sysctl is hidden from network namespaces but the first. */
static bool probe_jit(void)
{
	RL_CLOSE int fd = program_load(pass_insns, PASS_INSNS, 0);
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && info.jited_prog_len > 0;
}

bool rl_probe_run(enum rl_probe_id id)
{
	struct rl_error ignored;
	__u64 cookie;

	switch (id) {
	case RL_PROBE_PRIVILEGE:
		return rl_privilege_check("probe", &ignored) == 0;
	case RL_PROBE_BPFFS:
		return rl_state_bpffs_mounted();
	case RL_PROBE_COOKIE:
		return rl_state_cookie(&cookie, &ignored) == 0;
	case RL_PROBE_XDP:
		return probe_xdp(0);
	case RL_PROBE_FRAGS:
		return probe_xdp(BPF_F_XDP_HAS_FRAGS);
	case RL_PROBE_CAS:
		return probe_cas();
	case RL_PROBE_LPM:
		return map_makes(BPF_MAP_TYPE_LPM_TRIE, sizeof(struct rl_prefix), BPF_F_NO_PREALLOC);
	case RL_PROBE_LRU:
		return map_makes(BPF_MAP_TYPE_LRU_HASH, sizeof(struct rl_source_key), 0);
	case RL_PROBE_JIT:
		return probe_jit();
	case RL_PROBES:
		break;
	}
	return false;
}
