// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "contestant.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define BESIDE 8 /* times as many packets: the second CPU is to be busy for longer than the first */

static int open_port(const struct contest *contest, struct contestant *contestant, struct rl_error *err)
{
	int rc = veth_port_open(&contest->veth, (int)contestant->index, &contestant->port, err);

	return rc ?: sender_enter_port(&contest->senders[0], contestant->index, &contestant->port, err);
}

/* The program is put where it is reached from: at the port, or in the drivers' arrays. */
static int place(const struct contest *contest, struct contestant *contestant, struct rl_error *err)
{
	bool bare = contestant->subject.id == SUBJECT_DROP;
	int program = bare ? sender_drop(&contest->senders[0]) : contestant->subject.program, rc;

	if (program < 0)
		program = sender_pass(&contest->senders[0]);
	if (contest->scenario->drive == DRIVE_VETH)
		return veth_port_attach(&contest->veth, &contestant->port, program, err);
	rc = sender_enter_program(&contest->senders[0], contestant->index, program, err);
	if (rc || !contest->senders[1].driver)
		return rc;
	if (bare)
		program = sender_drop(&contest->senders[1]);
	return sender_enter_program(&contest->senders[1], contestant->index, program, err);
}

int contestant_open(const struct contest *contest, struct contestant *contestant, enum subject_id id,
		    struct rl_error *err)
{
	int rc = 0;

	contestant->there = true;
	contestant->index = id;
	contestant->port = (struct veth_port)VETH_PORT_INIT;
	if (contest->scenario->drive == DRIVE_VETH)
		rc = open_port(contest, contestant, err);
	rc = rc ?: subject_open(id, contest->scenario, contestant->port.netns, &contestant->subject, err);
	return rc ?: place(contest, contestant, err);
}

void contestant_close(struct contestant *contestant)
{
	if (!contestant->there)
		return;
	subject_close(&contestant->subject);
	veth_port_close(&contestant->port);
	contestant->there = false;
}

static struct stream stream_of(const struct contest *contest, const struct contestant *contestant,
			       enum traffic traffic, __u32 packets)
{
	return (struct stream){.index = contestant->index,
			       .port = contest->scenario->drive == DRIVE_VETH ? &contestant->port : NULL,
			       .traffic = traffic,
			       .packets = packets};
}

/* The second CPU's part. */
struct beside {
	struct sender *sender;
	int cpu;
	struct stream stream;
	int rc;
};

static void *send_beside(void *argument)
{
	struct beside *beside = argument;
	struct rl_error ignored;

	beside->rc = sender_stay(beside->sender, beside->cpu, &ignored);
	beside->rc = beside->rc ?: sender_busy(beside->sender, &beside->stream);
	sender_leave(beside->sender);
	return NULL;
}

/*
 * While the second CPU does the same. What this one takes for a packet then is taken for the other's, too: two packets in that
 * time.
 */
static int send_on_both(struct contest *contest, const struct stream *stream, struct sent *out)
{
	struct beside beside = {
	    .sender = &contest->senders[1], .cpu = contest->options->beside, .stream = *stream};
	pthread_t thread;
	int rc;

	beside.stream.packets *= BESIDE;
	sender_prepare(beside.sender, &beside.stream);
	rc = -pthread_create(&thread, NULL, send_beside, &beside);
	if (rc)
		return rc;
	rc = sender_await_busy(beside.sender);
	rc = rc ?: sender_send(&contest->senders[0], stream, out);
	sender_end_busy(beside.sender);
	pthread_join(thread, NULL);
	out->ns /= 2;
	return rc ?: beside.rc;
}

int contestant_send(struct contest *contest, struct contestant *contestant, int lane, __u32 packets,
		    struct sent *out, struct rl_error *err)
{
	enum compare compare = contest->scenario->compare;
	enum traffic traffic = lane && compare == NEW_TO_KNOWN ? TRAFFIC_NEW : TRAFFIC_KNOWN;
	struct stream stream = stream_of(contest, contestant, traffic, packets);
	bool both = lane && compare == TWO_CPUS_TO_1;
	int rc = both ? send_on_both(contest, &stream, out) : sender_send(&contest->senders[0], &stream, out);

	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "can't send packets: %s", strerror(-rc));
	contestant->sent += packets;
	contestant->received += out->packets;
	return 0;
}

int contestant_fill(struct contest *contest, struct contestant *contestant, struct rl_error *err)
{
	struct stream stream = stream_of(contest, contestant, TRAFFIC_FILL, contest->scenario->sources);
	struct sent sent;
	int rc = sender_send(&contest->senders[0], &stream, &sent);

	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "can't send packets: %s", strerror(-rc));
	return 0;
}

int contestant_count(struct contestant *contestant, struct rl_error *err)
{
	const struct subject_kind *kind = contestant->subject.kind;
	__u64 dropped = contestant->received;
	int rc = kind->dropped ? kind->dropped(&contestant->subject, &dropped) : 0;

	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "can't read what %s dropped: %s",
				    subject_name(contestant->subject.id), strerror(-rc));
	contestant->dropped = dropped - contestant->dropped_before;
	contestant->dropped_before = dropped;
	return 0;
}
