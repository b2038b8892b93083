// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sender.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "../lib/frame.h"
#include "bench/bench.skel.h"

#define ARRIVAL_MS    1	    /* between two looks at whether more frames came */
#define BEGIN_LOOKS   50000 /* 0.1 ms apart */
#define ARRIVAL_LOOKS 20    /* in vain, one after another */

/* 10.0.0.0 and 2001:db8:a00:: are what the driver begins with. */
static void build_frame(struct sender *sender, __u8 family)
{
	static uint8_t frame[RL_FRAME_MAX];
	const struct rl_frame_spec spec = {.src = family == 4 ? "10.0.0.0" : "2001:db8:a00::1"};

	sender->len = rl_frame_build(&spec, frame, sizeof(frame));
	if (sender->len > sizeof(sender->frame))
		sender->len = sizeof(sender->frame); /* never so */
	memcpy(sender->frame, frame, sender->len);
}

int sender_open(struct sender *sender, const struct scenario *scenario, struct rl_error *err)
{
	*sender = (struct sender){.driver = bench__open_and_load(), .work = WORK_INIT};
	if (!sender->driver)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "the driver doesn't load: %s",
				    strerror(errno));
	sender->sources = scenario->sources;
	sender->driver->bss->step = TRAFFIC_MAX / scenario->sources;
	sender->driver->bss->family = scenario->family;
	build_frame(sender, scenario->family);
	return 0;
}

int sender_stay(struct sender *sender, int cpu, struct rl_error *err)
{
	sender->driver->data->random_state ^= (__u64)cpu << 32; /* two CPUs don't send the same */
	return work_open(&sender->work, cpu, err);
}

void sender_leave(struct sender *sender)
{
	work_close(&sender->work);
}

void sender_close(struct sender *sender)
{
	work_close(&sender->work);
	bench__destroy(sender->driver);
	sender->driver = NULL;
}

int sender_drop(const struct sender *sender)
{
	return bpf_program__fd(sender->driver->progs.empty);
}

int sender_pass(const struct sender *sender)
{
	return bpf_program__fd(sender->driver->progs.pass);
}

int sender_enter_program(const struct sender *sender, __u32 index, int program, struct rl_error *err)
{
	if (bpf_map_update_elem(bpf_map__fd(sender->driver->maps.programs), &index, &program, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't chain a program: %s",
				    strerror(errno));
	return 0;
}

int sender_enter_port(const struct sender *sender, __u32 index, const struct veth_port *port,
		      struct rl_error *err)
{
	if (bpf_map_update_elem(bpf_map__fd(sender->driver->maps.ports), &index, &port->sender, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't send into a veth: %s",
				    strerror(errno));
	return 0;
}

static int send_frames(const struct sender *sender, __u32 packets)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = sender->frame, .data_size_in = (__u32)sender->len,
		    .repeat = (int)packets, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	return bpf_prog_test_run_opts(bpf_program__fd(sender->driver->progs.generate), &opts);
}

static int run_program(const struct sender *sender, __u32 packets)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = sender->frame, .data_size_in = (__u32)sender->len,
		    .repeat = (int)packets);
	int rc = bpf_prog_test_run_opts(bpf_program__fd(sender->driver->progs.bench), &opts);

	return rc ?: opts.retval == XDP_ABORTED ? -EIO : 0;
}

/* Frames that ksoftirqd still has to take in are waited for; those that a full ring lost never come. */
static int await(const struct veth_port *port, __u64 before, __u32 packets, __u64 *received)
{
	const struct timespec pause = {.tv_nsec = ARRIVAL_MS * 1000000};
	__u64 now = before, last;
	int rc;

	for (int looks = 0; looks < ARRIVAL_LOOKS; looks++) {
		last = now;
		rc = veth_port_received(port, &now);
		if (rc)
			return rc;
		if (now - before >= packets)
			break;
		if (now != last)
			looks = 0;
		nanosleep(&pause, NULL);
	}
	*received = now - before;
	return 0;
}

static int send_to_port(const struct sender *sender, const struct stream *stream, struct sent *out)
{
	__u64 before, received;
	double start;
	int rc = veth_port_received(stream->port, &before);

	start = work_of_both(&sender->work);
	rc = rc ?: send_frames(sender, stream->packets);
	rc = rc ?: await(stream->port, before, stream->packets, &received);
	if (!rc)
		*out = (struct sent){.packets = received, .ns = work_of_both(&sender->work) - start};
	return rc;
}

void sender_prepare(const struct sender *sender, const struct stream *stream)
{
	struct bench__bss *bss = sender->driver->bss;

	bss->program = bss->port = stream->index;
	bss->traffic = stream->traffic;
	bss->sources = sender->sources;
	bss->sent = 0;
}

int sender_send(const struct sender *sender, const struct stream *stream, struct sent *out)
{
	double start;
	int rc;

	sender_prepare(sender, stream);
	if (stream->port)
		return send_to_port(sender, stream, out);
	start = work_of_thread(&sender->work);
	rc = run_program(sender, stream->packets);
	if (!rc)
		*out = (struct sent){.packets = stream->packets, .ns = work_of_thread(&sender->work) - start};
	return rc;
}

int sender_busy(const struct sender *sender, const struct stream *stream)
{
	int rc = run_program(sender, stream->packets);

	return rc == -EIO && !sender->driver->bss->sources ? 0 : rc;
}

int sender_await_busy(const struct sender *sender)
{
	const struct timespec pause = {.tv_nsec = 100000};
	const volatile __u32 *packets = &sender->driver->bss->sent;

	for (int looks = 0; looks < BEGIN_LOOKS; looks++) {
		if (*packets)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

/* Without a source the driver does nothing with the packets that are left. */
void sender_end_busy(const struct sender *sender)
{
	*(volatile __u32 *)&sender->driver->bss->sources = 0;
}
