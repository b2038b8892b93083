// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "device.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "cleanup.h"

#define ALT_NAME_LEN 128 /* the kernel's ALTIFNAMSIZ */

/* The netdev family of generic netlink (Linux 6.3), missing from Debian 12's headers. */
#define NETDEV_CMD_DEV_GET	  1
#define NETDEV_A_DEV_IFINDEX	  1
#define NETDEV_A_DEV_XDP_FEATURES 3
#define NETDEV_XDP_ACT_BASIC	  (1 << 0)
#define NETDEV_XDP_ACT_RX_SG	  (1 << 5)

/* Send one request and give its answer to `on`. False where the kernel refuses. */
static bool netlink_ask(int bus, struct nlmsghdr *message, mnl_cb_t on, void *data)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct mnl_socket *nl = mnl_socket_open(bus);
	ssize_t got;
	bool ok;

	if (!nl)
		return false;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	message->nlmsg_seq = 1;
	ok = mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) == 0 &&
	     mnl_socket_sendto(nl, message, message->nlmsg_len) > 0;
	while (ok) {
		got = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (got > 0)
			got = mnl_cb_run(buf, (size_t)got, 1, mnl_socket_get_portid(nl), on, data);
		else
			got = -1;
		ok = got >= 0;
		if (got <= MNL_CB_STOP)
			break;
	}
	mnl_socket_close(nl);
	return ok;
}

/* A generic netlink request with one attribute. */
static bool genl_ask(__u16 family, __u8 command, __u16 attribute, const void *value, size_t size, mnl_cb_t on,
		     void *data)
{
	char buf[256];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

	message->nlmsg_type = family;
	header->cmd = command;
	header->version = 1;
	mnl_attr_put(message, attribute, size, value);
	return netlink_ask(NETLINK_GENERIC, message, on, data);
}

static int on_link(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);

	*(__u32 *)data = (__u32)link->ifi_index;
	return MNL_CB_OK;
}

/* if_nametoindex() stops at 15 bytes; netlink doesn't. */
__u32 rl_device_index(const char *name)
{
	char buf[512];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(message, sizeof(*link));
	__u32 ifindex = 0;

	if (!*name || strlen(name) >= ALT_NAME_LEN)
		return 0;
	message->nlmsg_type = RTM_GETLINK;
	link->ifi_family = AF_UNSPEC;
	mnl_attr_put_strz(message, IFLA_ALT_IFNAME, name); /* finds plain names too */
	netlink_ask(NETLINK_ROUTE, message, on_link, &ifindex);
	return ifindex;
}

int rl_device_name(const char *name, char out[RL_NAME_LEN], struct rl_error *err)
{
	__u32 ifindex = rl_device_index(name);
	char own[IF_NAMESIZE];

	_Static_assert(IF_NAMESIZE == RL_NAME_LEN, "a device's name has another length");
	if (ifindex && if_indextoname(ifindex, own))
		name = own;
	if (strlen(name) >= RL_NAME_LEN)
		return rl_error_set(
		    err, RL_ERROR_USAGE, ENODEV,
		    "device \"%.64s\": a name has at most %d bytes, this one %zu, and no device here "
		    "has it as an alternative name; expected one that `ip link` shows, such as eth0",
		    name, RL_NAME_LEN - 1, strlen(name));
	memset(out, 0, RL_NAME_LEN);
	snprintf(out, RL_NAME_LEN, "%s", name);
	return 0;
}

static int on_family(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *attribute;

	mnl_attr_for_each (attribute, message, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID &&
		    mnl_attr_get_payload_len(attribute) >= sizeof(__u16))
			*(__u16 *)data = mnl_attr_get_u16(attribute);
	return MNL_CB_OK;
}

static int on_features(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *attribute;

	mnl_attr_for_each (attribute, message, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attribute) == NETDEV_A_DEV_XDP_FEATURES &&
		    mnl_attr_get_payload_len(attribute) >= sizeof(__u64))
			*(__u64 *)data = mnl_attr_get_u64(attribute);
	return MNL_CB_OK;
}

static void read_features(struct rl_device_info *device)
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

int rl_device_mtu(const char *name)
{
	RL_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

int rl_device_read(const char *name, struct rl_device_info *out, struct rl_error *err)
{
	struct rl_device_info device = {.ifindex = rl_device_index(name)};
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	RL_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {};

	if (!device.ifindex || !if_indextoname(device.ifindex, device.name))
		return rl_error_set(err, RL_ERROR_USAGE, ENODEV,
				    "there is no device \"%s\" in this network namespace", name);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device.name);
	device.mtu = rl_device_mtu(device.name);
	if (fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &request) == 0)
		device.ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER ||
				  request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
	request.ifr_data = (char *)&driver;
	if (fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0)
		snprintf(device.driver, sizeof(device.driver), "%.31s", driver.driver);
	if (bpf_xdp_query((int)device.ifindex, 0, &query) == 0)
		device.program_id = query.prog_id;
	read_features(&device);
	*out = device;
	return 0;
}
