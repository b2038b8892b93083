/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sender.h - the driver (bench.bpf.c) on one CPU: sends packets to one of the programs, or into one of the ports, that were
 * entered, and tells what that took.
 */
#ifndef BENCH_SENDER_H
#define BENCH_SENDER_H

#include <stddef.h>
#include <stdint.h>

#include "scenario.h"
#include "traffic.h"
#include "veth.h"
#include "work.h"

#define SENDER_FRAME 64 /* bytes that a frame may have */

struct bench;

struct sender {
	struct bench *driver;
	__u32 sources;
	struct work work;
	uint8_t frame[SENDER_FRAME]; /* its source is the driver's to change */
	size_t len;
};

#define SENDER_INIT                                                                                          \
	{                                                                                                    \
		.work = WORK_INIT                                                                            \
	}

/* What is sent. */
struct stream {
	__u32 index;		      /* of the program, or of the port */
	const struct veth_port *port; /* NULL: the program alone is run */
	enum traffic traffic;
	__u32 packets;
};

/* What came of it. */
struct sent {
	__u64 packets; /* that arrived */
	double ns;     /* that the CPU worked for it, sending included */
};

int sender_open(struct sender *sender, const struct scenario *scenario, struct rl_error *err);
void sender_close(struct sender *sender);

/* The thread that calls this sends from now on, and stays on the CPU. Undone by sender_close, or by leaving: then another may. */
int sender_stay(struct sender *sender, int cpu, struct rl_error *err);
void sender_leave(struct sender *sender);

/* A bare XDP_DROP, and XDP_PASS. */
int sender_drop(const struct sender *sender);
int sender_pass(const struct sender *sender);

int sender_enter_program(const struct sender *sender, __u32 index, int program, struct rl_error *err);
int sender_enter_port(const struct sender *sender, __u32 index, const struct veth_port *port,
		      struct rl_error *err);

/* 0 or a negative errno. */
int sender_send(const struct sender *sender, const struct stream *stream, struct sent *out);

/*
 * Two threads, each on its own CPU: one keeps its CPU busy with a stream until the other says that it's enough, or for all of its
 * packets. The other prepares that, starts the thread, waits until it has begun (-ETIMEDOUT where it doesn't), and ends it.
 */
void sender_prepare(const struct sender *sender, const struct stream *stream);
int sender_busy(const struct sender *sender, const struct stream *stream);
int sender_await_busy(const struct sender *sender);
void sender_end_busy(const struct sender *sender);

#endif
