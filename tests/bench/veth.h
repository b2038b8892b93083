/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * veth.h - a network of our own: a namespace that frames are sent from, and for each subject a veth pair whose other end is
 * in another namespace. Nothing of it has a name outside or outlives the process: namespaces are held by descriptors alone.
 */
#ifndef BENCH_VETH_H
#define BENCH_VETH_H

#include <stdbool.h>
#include <linux/types.h>

#include "../../user/error.h"

struct veth {
	int home;   /* where this process was */
	int sender; /* where it is while this is open; both network namespaces' descriptors */
};

struct veth_port {
	int netns;	/* of the receiving end, SUBJECT_DEVICE */
	__u32 sender;	/* index of the sending end, in veth.sender */
	__u32 receiver; /* index of the receiving end */
	int counters;	/* /proc/net/dev of its namespace */
	int link;	/* of its XDP program */
};

#define VETH_INIT                                                                                            \
	{                                                                                                    \
		.home = -1, .sender = -1                                                                     \
	}
#define VETH_PORT_INIT                                                                                       \
	{                                                                                                    \
		.netns = -1, .counters = -1, .link = -1                                                      \
	}

int veth_open(struct veth *veth, struct rl_error *err);
void veth_close(struct veth *veth); /* back home */

/* Make port `number`. Its receiving end has the address that frames are sent to. */
int veth_port_open(const struct veth *veth, int number, struct veth_port *port, struct rl_error *err);
void veth_port_close(struct veth_port *port);

/* Let an XDP program take the frames. Without one, what is sent out of an XDP program doesn't get into a veth. */
int veth_port_attach(const struct veth *veth, struct veth_port *port, int program, struct rl_error *err);

/* Frames that the receiving device took in, whatever became of them then. */
int veth_port_received(const struct veth_port *port, __u64 *out);

#endif
