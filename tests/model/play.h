/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * play.h - the same operations to the model and to the program, and the first difference between them: in a packet's
 * reason when it comes, in any counter every so often and at the end.
 */
#ifndef MODEL_PLAY_H
#define MODEL_PLAY_H

#include "model.h"
#include "ops.h"

#define PLAY_CLOCK 1000000000000000ULL /* ns: where the clock begins */
#define PLAY_TEXT  512

/*
 * What is compared with the model. Devices are those of ops_device_names, attached from the beginning. Counters of what
 * isn't there are zero.
 */
struct backend {
	const char *name;
	void *state;
	/* Everything as if just attached, without a limit. */
	void (*open)(struct backend *backend);
	void (*close)(struct backend *backend);
	void (*clock)(struct backend *backend, __u64 now);
	enum rl_reason (*packet)(struct backend *backend, unsigned int device, const uint8_t *frame,
				 __u32 len);
	/* 0, or a negative errno where it is refused. */
	int (*set)(struct backend *backend, const struct rl_target *target, const struct rl_terms *terms,
		   __u64 now);
	int (*erase)(struct backend *backend, const struct rl_target *target, const struct rl_class *class,
		     __u64 now);
	void (*device)(struct backend *backend, unsigned int device, bool paused, bool shadow);
	void (*reset)(struct backend *backend);
	void (*limit_count)(struct backend *backend, const struct rl_target *target,
			    const struct rl_class *class, struct rl_limit_count *out);
	void (*device_count)(struct backend *backend, unsigned int device, struct rl_device_count *out);
	/*
	 * Of the source, cut to its granularity, under the target's general limit; NULL: of the limit's one bucket. False:
	 * it can't be told, because the limit's granularity is another by now.
	 */
	bool (*tally)(struct backend *backend, const struct rl_target *target, const struct rl_prefix *source,
		      struct rl_tally *out);
};

struct play {
	struct model model;
	struct backend *backend;
	__u64 now;
	char difference[PLAY_TEXT]; /* empty: none so far */
	__u64 packets, changes;
	__u64 reasons[RL_REASONS]; /* how often each was given */
};

void play_open(struct play *play, struct backend *backend);
void play_close(struct play *play);

/* One operation. Returns whether both agree. */
bool play_op(struct play *play, const struct op *op);

/* All counters. Returns whether both agree. */
bool play_compare(struct play *play);

#endif
