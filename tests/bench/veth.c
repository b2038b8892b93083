// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "veth.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "subject.h"

#define RECEIVER_MAC "02:00:00:00:00:02" /* the destination that tests/lib/frame.h has */
#define SETTINGS     "/proc/sys/net/ipv6/conf/default/"

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int enter(int netns, struct rl_error *err)
{
	if (setns(netns, CLONE_NEWNET))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't enter a network namespace: %s",
				    strerror(errno));
	return 0;
}

/* Back from a receiver's namespace, with what came of it there. */
static int leave(const struct veth *veth, int rc, struct rl_error *err)
{
	struct rl_error ignored;
	int back = enter(veth->sender, rc ? &ignored : err);

	return rc ?: back;
}

static int open_own(struct rl_error *err)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd
		       : rl_error_set(err, RL_ERROR_KERNEL, errno, "can't open this network namespace: %s",
				      strerror(errno));
}

/* No addresses, so nobody but the sender sends anything. Where there is no IPv6, nothing has to be done. */
static void be_silent(void)
{
	int fd = open(SETTINGS "addr_gen_mode", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1", 1) < 0)
		fprintf(stderr, "bench: the kernel may send IPv6 frames of its own: %s\n", strerror(errno));
	close(fd);
}

/* A new namespace, which this process is in then. */
static int make_netns(struct rl_error *err)
{
	if (unshare(CLONE_NEWNET))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't make a network namespace: %s",
				    strerror(errno));
	be_silent();
	return open_own(err);
}

int veth_open(struct veth *veth, struct rl_error *err)
{
	*veth = (struct veth){.home = open_own(err), .sender = -1};
	if (veth->home < 0)
		return veth->home;
	veth->sender = make_netns(err);
	return veth->sender < 0 ? veth->sender : 0;
}

void veth_close(struct veth *veth)
{
	if (veth->home >= 0 && setns(veth->home, CLONE_NEWNET))
		perror("bench: can't return to the network namespace that it began in");
	close_fd(&veth->sender);
	close_fd(&veth->home);
}

/* The pair, up, from within the receiver's namespace. */
static int make_pair(const struct veth *veth, int number, struct veth_port *port, struct rl_error *err)
{
	int rc = fcntl(veth->sender, F_SETFD, 0); /* for `ip`, which takes a path to it */

	rc = rc
		 ?: command_line(port->netns, err,
				 "ip link add " SUBJECT_DEVICE " address " RECEIVER_MAC
				 " type veth peer name gen%d netns /proc/self/fd/%d",
				 number, veth->sender);
	fcntl(veth->sender, F_SETFD, FD_CLOEXEC);
	rc = rc ?: command_line(veth->sender, err, "ip link set gen%d up", number);
	return rc ?: command_line(port->netns, err, "ip link set " SUBJECT_DEVICE " up");
}

int veth_port_open(const struct veth *veth, int number, struct veth_port *port, struct rl_error *err)
{
	char name[IF_NAMESIZE];
	int rc;

	*port = (struct veth_port){.netns = make_netns(err), .counters = -1, .link = -1};
	if (port->netns < 0)
		return port->netns;
	rc = make_pair(veth, number, port, err);
	port->receiver = if_nametoindex(SUBJECT_DEVICE);
	port->counters = open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC);
	rc = leave(veth, rc, err);
	snprintf(name, sizeof(name), "gen%d", number);
	port->sender = if_nametoindex(name);
	if (!rc && (!port->receiver || !port->sender || port->counters < 0))
		rc = rl_error_set(err, RL_ERROR_KERNEL, ENODEV, "the veth pair isn't there");
	if (rc)
		veth_port_close(port);
	return rc;
}

void veth_port_close(struct veth_port *port)
{
	close_fd(&port->link);
	close_fd(&port->counters);
	close_fd(&port->netns);
}

int veth_port_attach(const struct veth *veth, struct veth_port *port, int program, struct rl_error *err)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_DRV_MODE);
	int rc;

	rc = enter(port->netns, err);
	if (rc)
		return rc;
	port->link = bpf_link_create(program, (int)port->receiver, BPF_XDP, &options);
	if (port->link < 0)
		rc = rl_error_set(err, RL_ERROR_KERNEL, errno, "can't attach to a veth: %s", strerror(errno));
	return leave(veth, rc, err);
}

int veth_port_received(const struct veth_port *port, __u64 *out)
{
	char text[2048];
	ssize_t n = pread(port->counters, text, sizeof(text) - 1, 0);
	char *at;

	if (n < 0)
		return -errno;
	text[n] = '\0';
	at = strstr(text, SUBJECT_DEVICE ":");
	if (!at)
		return -ENODEV;
	at += strlen(SUBJECT_DEVICE ":");
	strtoull(at, &at, 10); /* bytes */
	*out = strtoull(at, NULL, 10);
	return 0;
}
