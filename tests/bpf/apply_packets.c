// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets while one policy takes the place of another, again and again: each is judged by one of them. The policies differ in
 * every part, so that a mixture of two would let a packet pass, or find no limit.
 */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/clock.h"
#include "../../user/policy.h"
#include "../../user/policy_apply.h"
#include "fixture.h"

#define POLICIES 4
#define CHANGES	 24
#define FILLING	 3000

/* A policy with many prefixes behind its own that no other has: what is done too early is seen for so much longer. */
static FILE *policy_open(const char *text, int number, char *buf, size_t size)
{
	size_t used = (size_t)snprintf(buf, size, "%s", text);

	for (int i = 0; i < FILLING; i++)
		used += (size_t)snprintf(buf + used, size - used, "allow 172.%d.%d.%d\n", 16 + number,
					 i / 250, i % 250);
	return fmemopen(buf, used, "r");
}

static int apply(const struct rl_state *state, const char *const *policies, int number)
{
	static char buf[FILLING * 32 + 4096];
	RL_POLICY_FILE struct rl_policy_file file = {};
	FILE *in = policy_open(policies[number], number, buf, sizeof(buf));
	struct rl_applied applied;
	struct rl_error err = {};
	int rc = in ? rl_policy_file_read(in, "p", &file, &err) : -1;

	if (in)
		fclose(in);
	if (!rc)
		rc = rl_policy_apply(state, &file, RL_APPLY, rl_clock_ns(), &applied, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc;
}

/* In a process of its own: one policy after the other until it is killed, or one is refused. */
static pid_t apply_in_turn(const struct rl_state *state, const char *const *policies)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails takes it along */
	for (int i = 0; i < 1000000; i++)
		if (apply(state, policies, i % POLICIES))
			_exit(1);
	_exit(0);
}

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status), "a policy was refused");
}

static __u64 reason_count(const struct fixture *fx, enum rl_reason reason)
{
	return fixture_device(fx).by_reason[reason].packets;
}

/* For whatever reason, a shadow's among them. */
static __u64 passed_count(const struct fixture *fx)
{
	struct rl_device_count count = fixture_device(fx);
	__u64 passed = 0;

	for (int reason = 0; reason < RL_REASONS; reason++)
		if (!rl_reason_drops((enum rl_reason)reason))
			passed += count.by_reason[reason].packets;
	return passed;
}

static void send(struct fixture *fx, const char *source, int times)
{
	struct rl_frame_spec spec = {.src = source};
	uint8_t frame[RL_FRAME_MAX];
	size_t len = rl_frame_build(&spec, frame, sizeof(frame));

	for (int i = 0; i < times; i++)
		cr_assert_geq(fixture_run(fx, frame, len, 1), 0);
	fixture_account(fx, (__u64)times, (__u64)times * len);
}

/* Every source's frames, once each, until so many epochs have gone by. */
static __u64 send_while(struct fixture *fx, const char *const *sources, int count, int epochs)
{
	__u32 only = 0, first, sent = 0;
	struct rl_settings settings;

	cr_assert_eq(bpf_map_lookup_elem(fx->state.map[RL_MAP_SETTINGS], &only, &settings), 0);
	first = settings.epoch;
	while (settings.epoch - first < (__u32)epochs) {
		for (int i = 0; i < count; i++) {
			send(fx, sources[i], 1);
			sent++;
		}
		cr_assert_eq(bpf_map_lookup_elem(fx->state.map[RL_MAP_SETTINGS], &only, &settings), 0);
	}
	return sent;
}

/* One level enforces in each policy, and its bucket is empty: whatever is in shadow in one is that of another. */
Test(apply_packets, no_packet_sees_parts_of_two_policies, .timeout = 120)
{
#define PREFIX "set-limit 10.0.0.0/8 --rate 1/h --burst 16 --tenant acme"
#define TENANT "set-limit tenant:acme --rate 1/h --burst 16"
#define DEVICE "set-limit dev:fixture0 --rate 1/h --burst 16"
	static const char *const policies[POLICIES + 1] = {
	    PREFIX "\n" TENANT " --shadow\n" DEVICE " --shadow\n",
	    PREFIX " --shadow\n" TENANT "\n" DEVICE " --shadow\nset-limit 10.1.0.0/16 --rate 1kpps\n",
	    PREFIX " --shadow\n" TENANT " --shadow\n" DEVICE
		   "\nset-limit 10.1.2.0/24 --class tcp --rate 5kpps\n"
		   "set-limit 10.1.2.3 --rate 1kpps\n",
	    PREFIX " --shadow\n" TENANT " --shadow\n" DEVICE
		   " --shadow\ndeny 10.1.0.0/16\ndeny 10.2.0.0/16\n",
	    PREFIX "\n",
	};
	static const char *const sources[] = {"10.1.2.3", "10.2.3.4"};
	struct fixture fx =
	    fixture_open_with(&(struct fixture_options){.real_clock = true, .all_limits = true});
	__u64 passed, sent;
	pid_t pid;

	/* Empty the buckets of both sources, then, by another source, those of tenant and device. */
	cr_assert_eq(apply(&fx.state, policies, POLICIES), 0);
	send(&fx, sources[0], 40);
	send(&fx, sources[1], 40);
	cr_assert_eq(apply(&fx.state, policies, 1), 0);
	send(&fx, "10.3.0.1", 40);
	cr_assert_eq(apply(&fx.state, policies, 3), 0);
	passed = passed_count(&fx);
	pid = apply_in_turn(&fx.state, policies);
	sent = send_while(&fx, sources, 2, CHANGES);
	stop(pid);
	cr_expect_eq(passed_count(&fx) - passed, 0, "%llu of %llu passed", passed_count(&fx) - passed, sent);
	cr_log_info("%llu packets in %d changes", sent, CHANGES);
	fixture_close(&fx);
}

/* Prefixes of every length come and go around and inside each other; some prefix holds every source at any time. */
Test(apply_packets, no_packet_falls_between_two_policies, .timeout = 120)
{
	static const char *const policies[POLICIES] = {
	    "deny 10.0.0.0/8\ndeny 10.1.2.0/24\ndeny 10.1.2.3\n",
	    "deny any\nset-limit 10.9.0.0/16 --rate 5pps\n",
	    "deny 10.0.0.0/9\ndeny 10.1.0.0/16\nset-limit 10.1.2.4 --rate 5pps\n",
	    "deny 10.1.2.0/25\ndeny 10.2.0.0/15\n",
	};
	static const char *const sources[] = {"10.1.2.3", "10.2.3.4"};
	struct fixture fx =
	    fixture_open_with(&(struct fixture_options){.real_clock = true, .all_limits = true});
	__u64 denied, sent;
	pid_t pid;

	cr_assert_eq(apply(&fx.state, policies, 3), 0);
	denied = reason_count(&fx, RL_DROP_DENIED);
	pid = apply_in_turn(&fx.state, policies);
	sent = send_while(&fx, sources, 2, CHANGES);
	stop(pid);
	cr_expect_eq(reason_count(&fx, RL_DROP_DENIED) - denied, sent);
	fixture_close(&fx);
}
