// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attached.h"
#include "class.h"
#include "cleanup.h"
#include "clock.h"
#include "cmd.h"
#include "frames.h"
#include "limit.h"
#include "lockout.h"
#include "plain.h"
#include "policy.h"
#include "statement.h"
#include "target.h"
#include "view_text.h"

/* The target by the name that its device has at present, where it was given by another one. */
static int device_resolve(const struct rl_state *state, struct rl_target *target, struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	size_t count;
	int rc;

	if (target->kind != RL_TARGET_DEVICE)
		return 0;
	rc = rl_state_attached(state, true, attached, &count, err);
	return rc ? rc : rl_attached_resolve(attached, count, target, err);
}

static int refuse_general(const struct rl_limit *limit, const char *word, struct rl_error *err)
{
	char text[RL_TARGET_TEXT], class[RL_CLASS_TEXT], classes[RL_MAX_CLASSES * (RL_CLASS_TEXT + 2)] = "";
	size_t used = 0;

	for (int i = 0; i < limit->class_count && i < RL_MAX_CLASSES; i++)
		used += (size_t)snprintf(classes + used, sizeof(classes) - used, "%s%s", used ? ", " : "",
					 rl_class_print(&limit->class[i].class, class));
	rl_target_print(&limit->target, text);
	rl_class_print(&limit->class[0].class, class);
	return rl_error_set(
	    err, RL_ERROR_USAGE, ENOENT,
	    "%s has no general limit that --%s could change, only those of its classes (%s): `rl-agent set-limit "
	    "%s --class %s --%s` changes one of these",
	    text, word, classes, text, class, word);
}

/* The terms that the limit has, but for the one that is to change. */
static int terms_keep(const struct rl_state *state, struct rl_statement *statement, struct rl_error *err)
{
	char text[RL_TARGET_TEXT], what[RL_CLASS_TEXT] = "";
	bool is_class = rl_class_is_set(&statement->terms.class);
	__u8 in_shadow = statement->terms.shadow;
	const char *word = in_shadow ? "shadow" : "enforce";
	struct rl_limit limit;

	if (rl_policy_find(state, &statement->target, &statement->terms.class, &limit)) {
		if (!rl_limit_says(&limit)) /* it is there for its classes alone */
			return refuse_general(&limit, word, err);
		statement->terms = limit.terms;
		statement->terms.shadow = in_shadow;
		return rl_words_check(&statement->target, &statement->terms, err);
	}
	rl_target_print(&statement->target, text);
	if (is_class)
		rl_class_print(&statement->terms.class, what);
	return rl_error_set(
	    err, RL_ERROR_USAGE, ENOENT,
	    "%s%s%s has no limit that --%s could change: give it one with --rate; `rl-agent list` "
	    "shows the targets that have one",
	    text, is_class ? " --class " : "", what, word);
}

/* A class limit brings its prefix a limit of its own, and so takes it out of the one around it. */
static void note_of_wider(const struct rl_limit *wider, const char *target)
{
	char wider_text[RL_TARGET_TEXT], terms[RL_TERMS_TEXT];

	fprintf(
	    stderr,
	    "rl-agent: note: %s had no limit of its own: its sources were under %s (%s) and are not any more; "
	    "`rl-agent set-limit %s --rate ...` gives them one beside this class\n",
	    target, rl_target_print(&wider->target, wider_text), rl_terms_print(&wider->terms, terms),
	    target);
}

/* Terms that are whole, against the devices and the other limits. */
static int terms_check(const struct rl_state *state, struct rl_statement *statement, struct rl_error *err)
{
	struct rl_terms *terms = &statement->terms;
	int rc = rl_frames_fit(state, &statement->target, statement->burst_said, terms, err);

	return rc ? rc : rl_policy_check(state, &statement->target, &terms->class, terms, err);
}

/* Set it; *wider tells the limit that the target's sources leave by that, its id is 0 where they leave none. */
static int request_run(const struct rl_state *state, struct rl_statement *statement, struct rl_limit *wider,
		       struct rl_error *err)
{
	const struct rl_target *target = &statement->target;
	struct rl_limit own;
	int rc = device_resolve(state, &statement->target, err);

	if (!rc)
		rc = statement->bare ? terms_keep(state, statement, err) : terms_check(state, statement, err);
	if (rc)
		return rc;
	*wider = (struct rl_limit){};
	if (target->kind == RL_TARGET_PREFIX && rl_class_is_set(&statement->terms.class) &&
	    !rl_policy_find(state, target, NULL, &own))
		rl_policy_match(state, &target->prefix, wider);
	rc = rl_policy_set(state, target, &statement->terms, rl_clock_ns(), err);
	return rc || target->kind != RL_TARGET_DEVICE ? rc : rl_attached_rename(state, err);
}

/* A smaller burst forgives nothing: who used up the larger one is shut out until that is made up for. */
static void note_of_debt(const struct rl_state *state, const struct rl_statement *statement,
			 const char *target)
{
	bool is_class = rl_class_is_set(&statement->terms.class);
	bool is_prefix = statement->target.kind == RL_TARGET_PREFIX;
	char duration[RL_DURATION_TEXT], class[RL_CLASS_TEXT] = "";
	struct rl_limit limit;
	__u64 longest;

	if (statement->bare || statement->terms.shadow ||
	    !rl_policy_find(state, &statement->target, &statement->terms.class, &limit))
		return;
	longest = rl_limit_overdrawn(&limit);
	if (!longest)
		return;
	if (is_class)
		rl_class_print(&statement->terms.class, class);
	rl_plain_print(
	    stderr,
	    "rl-agent: note: %s used up the burst before the change passes nothing for up to %s; `rl-agent "
	    "del-limit %s%s%s` and setting it anew forgives that\n",
	    is_prefix ? "a source that" : "a bucket that", rl_text_duration(longest, duration), target,
	    is_class ? " --class " : "", class);
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT], text[RL_TERMS_TEXT];
	struct rl_statement statement;
	struct rl_limit wider;
	RL_CLOSE int lock = -1;
	bool is_class;
	int rc = rl_statement_parse(argc, argv, &statement, err);

	if (!rc)
		rc = rl_privilege_check(RL_SET_LIMIT, err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = request_run(&state, &statement, &wider, err);
	if (rc)
		return rc;
	is_class = rl_class_is_set(&statement.terms.class);
	rl_target_print(&statement.target, target);
	rl_plain_print(stdout, "%s%s%s: %s\n", target, is_class ? " " : "",
		       is_class ? rl_class_print(&statement.terms.class, class) : "",
		       rl_terms_print(&statement.terms, text));
	if (wider.id)
		note_of_wider(&wider, target);
	note_of_debt(&state, &statement, target);
	rl_attached_warn_none(&state);
	rl_lockout_warn(&state, &statement.target);
	return 0;
}

const struct rl_command rl_cmd_set_limit = {
    .name = RL_SET_LIMIT,
    .arguments = RL_SET_LIMIT_ARGUMENTS,
    .summary = "Hold each source of TARGET, a tenant, a device or new sources to a rate",
    .help =
	"TARGET is one of\n"
	"  an address, a prefix, or `any`: every source that no longer prefix names. Each source inside it has its\n"
	"              own bucket: an IPv4 address, or an IPv6 /64. --shared: one bucket for all of it. --per /28: one\n"
	"              for each /28 inside it.\n"
	"  tenant:NAME all packets of the prefixes that belong to it (--tenant NAME), and of those inside them that\n"
	"              name no other.\n"
	"  dev:DEV     all packets that an attached device receives, but for those of allowed and denied sources, which are\n"
	"              charged nowhere.\n"
	"  new         how many sources a second are given a bucket; beyond that their packets drop.\n"
	"A packet must be within all that apply, and is charged to all of them or to none.\n\n"
	"This states the whole limit: what isn't said is taken back. Only --shadow or --enforce alone keeps the rest.\n"
	"Buckets keep what they owe; another --per or --shared makes other buckets, and those start full.\n\n"
	"  RATE     pps kpps mpps, N/s N/m N/h (packets); kbit mbit gbit (10^3, bits a second)\n"
	"  BURST    a bare count, p, k, m (packets); kb mb (10^3 bytes), kib mib (2^10 bytes)\n"
	"           default: 250 ms of the rate, at least 16 packets, at least 16kib. In bytes at least a full frame of\n"
	"           each device that is attached; through TC what the kernel may merge into one, 46 packets of 1500 bytes\n"
	"  CLASS    tcp, syn, udp, icmp, frag, tcp/443, udp/1000-2000. A limit for these packets of the prefix beside\n"
	"           its general one, for each source; up to 8 classes a prefix.\n"
	"  COSTS    syn=10,icmp=2,frag=4: tokens that such a packet takes from packet buckets; others take 1. Refused\n"
	"           where a bucket of its own, its tenant's or a device's can never hold so many.\n"
	"  SHARES   high=20%,normal=5% of a tenant's or a device's burst: low stops at 25% left, normal at 20% left\n\n"
	"With two rates, one in packets and one in bits, both must hold. Bits are those of the frame from the Ethernet\n"
	"header on.\n",
    .options = rl_set_limit_options,
    .run = run,
};
