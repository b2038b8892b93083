// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include "cleanup.h"
#include "state.h"

/* The netdev family of generic netlink (Linux 6.3), missing from Debian 12's headers. */
#define NETDEV_CMD_DEV_GET	  1
#define NETDEV_A_DEV_IFINDEX	  1
#define NETDEV_A_DEV_XDP_FEATURES 3
#define NETDEV_XDP_ACT_BASIC	  (1 << 0)
#define NETDEV_XDP_ACT_RX_SG	  (1 << 5)

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

/* One generic netlink request with one attribute, its answer given to `on`. False where the kernel refuses.
 */
static bool genl_ask(__u16 family, __u8 command, __u16 attribute, const void *value, size_t size, mnl_cb_t on,
		     void *data)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
	struct mnl_socket *nl = mnl_socket_open(NETLINK_GENERIC);
	ssize_t got;
	bool ok;

	message->nlmsg_type = family;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	message->nlmsg_seq = 1;
	header->cmd = command;
	header->version = 1;
	mnl_attr_put(message, attribute, size, value);
	if (!nl)
		return false;
	ok = mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) == 0 &&
	     mnl_socket_sendto(nl, message, message->nlmsg_len) > 0;
	while (ok) {
		got = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (got <= 0)
			ok = false;
		else
			got = mnl_cb_run(buf, (size_t)got, 1, mnl_socket_get_portid(nl), on, data);
		ok = ok && got >= 0;
		if (got <= MNL_CB_STOP)
			break;
	}
	mnl_socket_close(nl);
	return ok;
}

static int on_family(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *attribute;

	mnl_attr_for_each(
	    attribute, message,
	    sizeof(struct genlmsghdr)) if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID &&
					   mnl_attr_get_payload_len(attribute) >= sizeof(__u16)) *
	    (__u16 *)data = mnl_attr_get_u16(attribute);
	return MNL_CB_OK;
}

static int on_features(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *attribute;

	mnl_attr_for_each(
	    attribute, message,
	    sizeof(struct genlmsghdr)) if (mnl_attr_get_type(attribute) == NETDEV_A_DEV_XDP_FEATURES &&
					   mnl_attr_get_payload_len(attribute) >= sizeof(__u64)) *
	    (__u64 *)data = mnl_attr_get_u64(attribute);
	return MNL_CB_OK;
}

static void probe_features(struct rl_probe_device *device)
{
	__u16 family = 0;
	__u64 features = 0;

	genl_ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, "netdev", sizeof("netdev"),
		 on_family, &family);
	if (!family || !genl_ask(family, NETDEV_CMD_DEV_GET, NETDEV_A_DEV_IFINDEX, &device->ifindex,
				 sizeof(device->ifindex), on_features, &features))
		return;
	device->native = features & NETDEV_XDP_ACT_BASIC ? RL_NATIVE_YES : RL_NATIVE_NO;
	device->frags = features & NETDEV_XDP_ACT_RX_SG;
}

int rl_probe_device(const char *name, struct rl_probe_device *out, struct rl_error *err)
{
	struct rl_probe_device device = {.ifindex = if_nametoindex(name)};
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	RL_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {};

	if (!device.ifindex)
		return rl_error_set(err, RL_ERROR_USAGE, ENODEV,
				    "there is no device \"%s\" in this network namespace", name);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0)
		device.mtu = request.ifr_mtu;
	if (fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &request) == 0)
		device.ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER ||
				  request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
	request.ifr_data = (char *)&driver;
	if (fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0)
		snprintf(device.driver, sizeof(device.driver), "%.31s", driver.driver);
	if (bpf_xdp_query((int)device.ifindex, 0, &query) == 0)
		device.program_id = query.prog_id;
	probe_features(&device);
	*out = device;
	return 0;
}
