/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fixture.h - the real packet program in a test's hands: loaded but attached to nothing, with a clock that
 * the test sets, and frames sent through BPF_PROG_TEST_RUN.
 *
 * Every frame sent is accounted for at once: exactly one reason of exactly the fixture's device grew, by one
 * packet and by the frame's length; the verdict is the reason's; a frame that drops is counted as dropped by at most one
 * limit and as passed by none, one that passes is dropped by none. So a test that names the reason and the limit it
 * expects has checked verdict and counters, packets and bytes.
 *
 *   struct fixture fx = fixture_open();
 *   struct rl_limit limit = fixture_limit(&fx, "203.0.113.0/24", "1000pps", "2000", NULL);
 *   fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
 *   fixture_close(&fx);
 */
#ifndef RL_FIXTURE_H
#define RL_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../bpf/rl_abi.h"
#include "../../user/state.h"
#include "../lib/frame.h"

#define FIXTURE_LIMITS	    1024
#define FIXTURE_DEVICE	    5			/* not 0, so that a forgotten slot shows */
#define FIXTURE_FIRST_ID    101			/* likewise */
#define FIXTURE_CLOCK	    1000000000000000ULL /* where the clock begins, ns */
#define FIXTURE_MAX_SOURCES 4096
#define US		    1000ULL
#define MS		    1000000ULL
#define SEC		    1000000000ULL

struct rl_path;
struct offer;

struct fixture {
	struct rl_path *skel;
	struct rl_state state; /* the maps, as user/policy.h takes them */
	struct rl_table table; /* the table's shape, for native.h */
	struct offer *offer;   /* fixture_offer's program, loaded when it is first wanted */
	int program;
	bool real_clock;
	__u64 now;	  /* the clock, ns, where it is the test's */
	const char *what; /* the case at hand, for messages; NULL: none */
	struct rl_count sent;
	__u32 *
	    slots; /* whose counters are watched: every slot that a limit was ever in, FIXTURE_LIMITS of them at most */
	__u32 slot_count;
	__u32 fresh; /* the slot of `new`; 0: none */
};

struct fixture_options {
	__u32 max_sources; /* 0: FIXTURE_MAX_SOURCES */
	enum rl_store store;
	enum rl_when_full when_full;
	bool real_clock; /* CLOCK_MONOTONIC, and fixture_clock is of no use */
	bool tc;	 /* the TC program is loaded, too */
	bool all_limits; /* counters for as many as there can be, which take most of a second to make */
};

struct fixture fixture_open(void);
struct fixture fixture_open_with(const struct fixture_options *options);
void fixture_close(struct fixture *fx); /* checks received = sent on the device, and nothing on any other */

__u64 fixture_time(const struct fixture *fx); /* ns, of either clock */
void fixture_clock(struct fixture *fx, __u64 now);
void fixture_advance(struct fixture *fx, __u64 ns);

/*
 * Limit `target`, any that set-limit takes; the texts are rates and bursts in any order, and words such as "class=syn",
 * "tenant=acme", "cost=syn=10", "priority=low", "reserve=high=20%", "per=/28", "shared", "shadow", "allow", "deny", up to a
 * NULL. A limit that is there already is changed in place, as set-limit does. Returns the version in force.
 */
struct rl_limit fixture_limit(struct fixture *fx, const char *target, ...) __attribute__((sentinel));
void fixture_unlimit(struct fixture *fx, const char *target);
void fixture_unclass(struct fixture *fx, const char *target, const char *class);

/* Watch the counters of a limit that was set by other means. */
void fixture_watch(struct fixture *fx, const struct rl_limit *limit);

/* Write a slot's head, or FIXTURE_HEAD_ASK to leave it. Returns what it was. */
#define FIXTURE_HEAD_ASK (~0ULL)
__u64 fixture_head(struct fixture *fx, __u32 slot, __u64 head);

/* The limit of a target as it is now in force. */
struct rl_limit fixture_now(const struct fixture *fx, const char *target);

void fixture_when_full(struct fixture *fx, enum rl_when_full when_full);

/* Attach the fixture's device under this name: "dev:NAME" then limits it. */
void fixture_device_name(struct fixture *fx, const char *name);
void fixture_shadow(struct fixture *fx, bool shadow);
void fixture_pause(struct fixture *fx, bool paused);

#define FIXTURE_COUNTED 16
struct fixture_outcome {
	enum rl_reason reason;
	__u32 dropper;		      /* slot of the limit that dropped the frame; 0: none */
	__u32 passed;		      /* limits that counted it as passed, `new` apart */
	__u32 shadowed;		      /* limits that would have dropped it */
	__u32 slots[FIXTURE_COUNTED]; /* of those that counted it as passed */
};

struct fixture_outcome fixture_send_bytes(struct fixture *fx, const uint8_t *frame, size_t len);
struct fixture_outcome fixture_send(struct fixture *fx, const struct rl_frame_spec *spec);

/* Send one frame and assert its reason and its limit: that drops it, or is one of those that it passes (NULL: there is none). */
#define fixture_expect(fx, spec, reason, limit) fixture_expect_at(__LINE__, fx, spec, reason, limit)
#define fixture_expect_bytes(fx, frame, len, reason, limit)                                                  \
	fixture_expect_bytes_at(__LINE__, fx, frame, len, reason, limit)
void fixture_expect_at(int line, struct fixture *fx, const struct rl_frame_spec *spec, enum rl_reason reason,
		       const struct rl_limit *limit);
void fixture_expect_bytes_at(int line, struct fixture *fx, const uint8_t *frame, size_t len,
			     enum rl_reason reason, const struct rl_limit *limit);

/* Send the same frame n times at one instant; returns how many passed. Packets and bytes of all counters add
 * up. */
__u64 fixture_flood(struct fixture *fx, const struct rl_frame_spec *spec, __u32 n);
__u64 fixture_flood_bytes(struct fixture *fx, const uint8_t *frame, size_t len, __u32 n);

/* One bare test run; no assertion and no accounting, so that threads may call it. The verdict, or a negative
 * errno. */
int fixture_run(const struct fixture *fx, const uint8_t *frame, size_t len, __u32 n);

/*
 * `steps` times: move the clock on by `step` ns and send the frame `each` times. Accounted for; the caller
 * looks at the counters.
 */
void fixture_offer(struct fixture *fx, const uint8_t *frame, size_t len, __u64 step, __u32 each, __u32 steps);

/* Frames that fixture_run sent, for fixture_close's account. */
void fixture_account(struct fixture *fx, __u64 packets, __u64 bytes);

struct rl_device_count fixture_device(const struct fixture *fx);
struct rl_limit_count fixture_limit_count(const struct fixture *fx, const struct rl_limit *limit);

/* What is kept of a source under a limit. False where there is nothing. */
bool fixture_source(const struct fixture *fx, const struct rl_limit *limit, const char *source,
		    struct rl_source *out);

/* Assert a source's counters, all its frames having been of one length. */
#define fixture_expect_source(fx, limit, source, passed, dropped, len)                                       \
	fixture_expect_source_at(__LINE__, fx, limit, source, passed, dropped, len)
void fixture_expect_source_at(int line, const struct fixture *fx, const struct rl_limit *limit,
			      const char *source, __u64 passed, __u64 dropped, size_t len);

#endif
