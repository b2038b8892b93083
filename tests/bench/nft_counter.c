// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "nft_counter.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sched.h>
#include <string.h>

#include "../../user/cleanup.h"

#define SEQUENCE 1
#define SIZE	 8192

static int on_count(const struct nlattr *attr, void *data)
{
	if (mnl_attr_get_type(attr) == NFTA_COUNTER_PACKETS && !mnl_attr_validate(attr, MNL_TYPE_U64))
		*(__u64 *)data = be64toh(mnl_attr_get_u64(attr));
	return MNL_CB_OK;
}

static int on_attribute(const struct nlattr *attr, void *data)
{
	return mnl_attr_get_type(attr) == NFTA_OBJ_DATA ? mnl_attr_parse_nested(attr, on_count, data)
							: MNL_CB_OK;
}

static int on_object(const struct nlmsghdr *message, void *data)
{
	return mnl_attr_parse(message, sizeof(struct nfgenmsg), on_attribute, data);
}

static struct nlmsghdr *ask(char *buf, const char *table, const char *name)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *head;

	message->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	message->nlmsg_seq = SEQUENCE;
	head = mnl_nlmsg_put_extra_header(message, sizeof(*head));
	head->nfgen_family = NFPROTO_NETDEV;
	head->version = NFNETLINK_V0;
	mnl_attr_put_strz(message, NFTA_OBJ_TABLE, table);
	mnl_attr_put_strz(message, NFTA_OBJ_NAME, name);
	mnl_attr_put_u32(message, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	return message;
}

static int talk(struct mnl_socket *socket, const char *table, const char *name, __u64 *packets)
{
	char buf[SIZE];
	ssize_t n;
	int more = MNL_CB_OK;

	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, buf, ask(buf, table, name)->nlmsg_len) < 0)
		return -errno;
	while (more > MNL_CB_STOP) {
		n = mnl_socket_recvfrom(socket, buf, sizeof(buf));
		if (n < 0)
			return -errno;
		more =
		    mnl_cb_run(buf, (size_t)n, SEQUENCE, mnl_socket_get_portid(socket), on_object, packets);
	}
	return more < 0 ? -errno : 0;
}

/* A socket belongs to the namespace that it was opened in. */
static struct mnl_socket *open_in(int netns)
{
	RL_CLOSE int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	struct mnl_socket *socket;

	if (here < 0 || setns(netns, CLONE_NEWNET))
		return NULL;
	socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (setns(here, CLONE_NEWNET)) {
		if (socket)
			mnl_socket_close(socket);
		return NULL;
	}
	return socket;
}

int nft_counter_read(int netns, const char *table, const char *name, __u64 *packets)
{
	struct mnl_socket *socket = open_in(netns);
	__u64 count = 0;
	int rc;

	if (!socket)
		return -errno;
	rc = talk(socket, table, name, &count);
	mnl_socket_close(socket);
	if (!rc)
		*packets = count;
	return rc;
}
