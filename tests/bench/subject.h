/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * subject.h - what packets are sent to: each is made ready for one scenario, tells how many packets it dropped, and goes.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include "../../user/error.h"
#include "scenario.h"

#define SUBJECT_DEVICE "rx0" /* in the subject's network namespace */

struct bpf_object;
struct dropping;
struct gcra;
struct rl_path;

struct subject {
	const struct subject_kind *kind;
	enum subject_id id;
	const struct scenario *scenario;
	int netns; /* where it works, with DRIVE_VETH */
	int program; /* to be run, or attached to the device: then it drops what passes, too; -1: it works behind the XDP hook */
	__u32 prefixes; /* that its policy has, where it took fewer than the scenario's */
	struct rl_path *ours;
	struct dropping *dropping; /* beside ours, with DRIVE_VETH */
	struct gcra *gcra;
};

struct subject_kind {
	int (*open)(struct subject *subject, struct rl_error *err);
	void (*close)(struct subject *subject); /* what open made; NULL: nothing */
	/* Packets that it dropped since it was opened; NULL: it limits nothing. */
	int (*dropped)(const struct subject *subject, __u64 *out);
	struct bpf_object *(*object)(const struct subject *subject); /* its maps; NULL: it has none */
};

/* Make one ready. On error nothing of it is left; -EOPNOTSUPP and -ENOENT: it can't be done here. */
int subject_open(enum subject_id id, const struct scenario *scenario, int netns, struct subject *out,
		 struct rl_error *err);
void subject_close(struct subject *subject);

extern const struct subject_kind subject_ours, subject_gcra, subject_skb, subject_hashlimit, subject_nft;

#endif
