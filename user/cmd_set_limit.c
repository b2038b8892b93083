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
#include "target.h"
#include "units.h"
#include "view_text.h"

static const char **rates, **bursts;
static const char *tenant, *class_text, *cost, *priority, *reserve, *per;
static int shared, shadow, enforce;

static const struct poptOption options[] = {
    {"rate", 'r', POPT_ARG_ARGV, &rates, 0, "packets (1000pps, 5kpps, 10/m) or bits (10mbit); twice for both",
     "RATE"},
    {"burst", 'b', POPT_ARG_ARGV, &bursts, 0, "packets (2000) or bytes (256kb, 64kib); twice for both",
     "BURST"},
    {"tenant", 't', POPT_ARG_STRING, &tenant, 0, "whom the target belongs to", "NAME"},
    {"class", 0, POPT_ARG_STRING, &class_text, 0,
     "one class of its packets: tcp, syn, udp, icmp, frag, tcp/443", "CLASS"},
    {"cost", 0, POPT_ARG_STRING, &cost, 0, "what packets of a class take from a packet bucket: syn=10,frag=4",
     "COSTS"},
    {"priority", 0, POPT_ARG_STRING, &priority, 0, "high, normal or low, where a reserve is kept",
     "PRIORITY"},
    {"reserve", 0, POPT_ARG_STRING, &reserve, 0, "of the burst, for higher priorities: high=20%,normal=5%",
     "SHARES"},
    {"shared", 0, POPT_ARG_NONE, &shared, 0, "one bucket for the whole target", NULL},
    {"per", 0, POPT_ARG_STRING, &per, 0, "one bucket for each prefix of this length inside the target",
     "/LENGTH"},
    {"shadow", 0, POPT_ARG_NONE, &shadow, 0, "drop nothing, count what would have been dropped", NULL},
    {"enforce", 0, POPT_ARG_NONE, &enforce, 0, "drop again (default)", NULL},
    POPT_TABLEEND,
};

/* What was asked for. */
struct request {
	struct rl_target target;
	struct rl_terms terms;
	bool bare;	   /* nothing but --shadow or --enforce: the rest stays */
	bool burst_chosen; /* that in bytes; otherwise it is the default */
};

static int tenant_parse(struct rl_terms *terms, struct rl_error *err)
{
	int rc = rl_tenant_check(tenant, err);

	if (!rc)
		snprintf(terms->tenant, sizeof(terms->tenant), "%s", tenant);
	return rc;
}

static int rates_parse(struct rl_terms *terms, struct rl_error *err)
{
	int rc = 0;

	for (const char **rate = rates; !rc && rate && *rate; rate++)
		rc = rl_rate_parse(*rate, terms, err);
	for (const char **burst = bursts; !rc && burst && *burst; burst++)
		rc = rl_burst_parse(*burst, terms, err);
	return rc;
}

/* The options that can be given once. */
static int words_parse(struct rl_terms *terms, struct rl_error *err)
{
	int rc = 0;

	if (tenant)
		rc = tenant_parse(terms, err);
	if (!rc && class_text)
		rc = rl_class_parse(class_text, &terms->class, err);
	if (!rc && cost)
		rc = rl_costs_parse(cost, terms, err);
	if (!rc && priority)
		rc = rl_priority_parse(priority, &terms->priority, err);
	if (!rc && reserve)
		rc = rl_reserve_parse(reserve, terms, err);
	if (!rc && per)
		rc = rl_per_parse(per, &terms->per, err);
	return rc;
}

static int request_parse(int argc, const char **argv, struct request *out, struct rl_error *err)
{
	struct request request = {.terms = {.action = RL_ACTION_LIMIT, .priority = RL_PRIORITY_UNSET}};
	const char *word;
	int count, rc = rl_cmd_parse(&rl_cmd_set_limit, argc, argv, 1, 1, &word, &count, err);

	if (!rc)
		rc = rl_cmd_target(word, &request.target, err);
	if (!rc && shadow && enforce)
		rc = rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				  "--shadow and --enforce contradict each other: give one of them");
	if (!rc)
		rc = rates_parse(&request.terms, err);
	if (!rc)
		rc = words_parse(&request.terms, err);
	if (rc)
		return rc;
	request.terms.shared = shared != 0;
	request.terms.shadow = shadow != 0;
	request.burst_chosen = request.terms.burst_bytes != 0;
	request.bare = (shadow || enforce) && !shared && !rates && !bursts && !tenant && !cost && !priority &&
		       !reserve && !per;
	if (!request.bare)
		rc = rl_terms_complete(&request.target, &request.terms, err);
	if (!rc)
		*out = request;
	return rc;
}

/* Its limit would hold nothing, and nobody would notice. */
static int device_missing(const char *name, const struct rl_attached *attached, size_t count,
			  struct rl_error *err)
{
	char names[RL_MAX_DEVICES * (RL_NAME_LEN + 2)] = "";
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		if (attached[i].where != RL_GONE)
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
						 attached[i].name);
	return rl_error_set(
	    err, RL_ERROR_USAGE, ENOENT,
	    "the device \"%s\" isn't attached, and a limit would hold nothing: `rl-agent attach %s` "
	    "first%s%s",
	    name, name, used ? ", or name one that is: " : "; nothing is attached here", names);
}

/* The target by the name that its device has at present, where it was given by another one. */
static int device_resolve(const struct rl_state *state, struct rl_target *target, struct rl_error *err)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	const struct rl_attached *found;
	size_t count;
	int rc;

	if (target->kind != RL_TARGET_DEVICE)
		return 0;
	rc = rl_state_attached(state, true, attached, &count, err);
	if (rc)
		return rc;
	found = rl_attached_find(attached, count, target->name);
	if (!found || found->where == RL_GONE)
		return device_missing(target->name, attached, count, err);
	memset(target->name, 0, sizeof(target->name));
	memcpy(target->name, found->name, sizeof(found->name));
	return 0;
}

/* A prefix that has a general limit for the sake of its classes alone. */
static bool is_for_classes(const struct rl_limit *limit)
{
	return limit->level == RL_LEVEL_SOURCE && limit->action == RL_ACTION_LIMIT &&
	       !limit->terms.packets_per_hour && !limit->terms.bits_per_second;
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
static int terms_keep(const struct rl_state *state, struct request *request, struct rl_error *err)
{
	char text[RL_TARGET_TEXT], what[RL_CLASS_TEXT] = "";
	bool is_class = rl_class_is_set(&request->terms.class);
	__u8 in_shadow = request->terms.shadow;
	const char *word = in_shadow ? "shadow" : "enforce";
	struct rl_limit limit;

	if (rl_policy_find(state, &request->target, &request->terms.class, &limit)) {
		if (is_for_classes(&limit))
			return refuse_general(&limit, word, err);
		request->terms = limit.terms;
		request->terms.shadow = in_shadow;
		return rl_words_check(&request->target, &request->terms, err);
	}
	rl_target_print(&request->target, text);
	if (is_class)
		rl_class_print(&request->terms.class, what);
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
static int terms_check(const struct rl_state *state, struct request *request, struct rl_error *err)
{
	struct rl_terms *terms = &request->terms;
	int rc = rl_frames_fit(state, &request->target, request->burst_chosen, terms, err);

	return rc ? rc : rl_policy_check(state, &request->target, &terms->class, terms, err);
}

/* Set it; *wider tells the limit that the target's sources leave by that, its id is 0 where they leave none. */
static int request_run(const struct rl_state *state, struct request *request, struct rl_limit *wider,
		       struct rl_error *err)
{
	const struct rl_target *target = &request->target;
	struct rl_limit own;
	int rc = device_resolve(state, &request->target, err);

	if (!rc)
		rc = request->bare ? terms_keep(state, request, err) : terms_check(state, request, err);
	if (rc)
		return rc;
	*wider = (struct rl_limit){};
	if (target->kind == RL_TARGET_PREFIX && rl_class_is_set(&request->terms.class) &&
	    !rl_policy_find(state, target, NULL, &own))
		rl_policy_match(state, &target->prefix, wider);
	rc = rl_policy_set(state, target, &request->terms, rl_clock_ns(), err);
	return rc || target->kind != RL_TARGET_DEVICE ? rc : rl_attached_rename(state, err);
}

/* A smaller burst forgives nothing: who used up the larger one is shut out until that is made up for. */
static void note_of_debt(const struct rl_state *state, const struct request *request, const char *target)
{
	bool is_class = rl_class_is_set(&request->terms.class);
	bool is_prefix = request->target.kind == RL_TARGET_PREFIX;
	char duration[RL_DURATION_TEXT], class[RL_CLASS_TEXT] = "";
	struct rl_limit limit;
	__u64 longest;

	if (request->bare || request->terms.shadow ||
	    !rl_policy_find(state, &request->target, &request->terms.class, &limit))
		return;
	longest = rl_limit_overdrawn(&limit);
	if (!longest)
		return;
	if (is_class)
		rl_class_print(&request->terms.class, class);
	rl_plain_print(
	    stderr,
	    "rl-agent: note: %s used up the burst before the change passes nothing for up to %s; `rl-agent "
	    "del-limit %s%s%s` and setting it anew forgives that\n",
	    is_prefix ? "a source that" : "a bucket that", rl_text_duration(longest, duration), target,
	    is_class ? " --class " : "", class);
}

/* A policy can be kept without a device: then a limit waits. */
static void warn_of_no_device(const struct rl_state *state)
{
	struct rl_attached attached[RL_MAX_DEVICES];
	struct rl_error ignored;
	size_t count;

	if (rl_state_attached(state, true, attached, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++)
		if (attached[i].where != RL_GONE)
			return;
	fprintf(
	    stderr,
	    "rl-agent: warning: no device is attached: limits take effect with the next `rl-agent attach`\n");
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT], text[RL_TERMS_TEXT];
	struct request request;
	struct rl_limit wider;
	RL_CLOSE int lock = -1;
	bool is_class;
	int rc = request_parse(argc, argv, &request, err);

	if (!rc)
		rc = rl_privilege_check("set-limit", err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = request_run(&state, &request, &wider, err);
	if (rc)
		return rc;
	is_class = rl_class_is_set(&request.terms.class);
	rl_target_print(&request.target, target);
	rl_plain_print(stdout, "%s%s%s: %s\n", target, is_class ? " " : "",
		       is_class ? rl_class_print(&request.terms.class, class) : "",
		       rl_terms_print(&request.terms, text));
	if (wider.id)
		note_of_wider(&wider, target);
	note_of_debt(&state, &request, target);
	warn_of_no_device(&state);
	rl_lockout_warn(&state, &request.target);
	return 0;
}

const struct rl_command rl_cmd_set_limit = {
    .name = "set-limit",
    .arguments = "TARGET --rate RATE [--rate RATE] [--burst BURST ...] [--tenant NAME] [--class CLASS] "
		 "[--cost COSTS] [--priority PRIORITY] [--reserve SHARES] [--shared | --per /LENGTH] "
		 "[--shadow | --enforce]",
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
	"           each device that is attached\n"
	"  CLASS    tcp, syn, udp, icmp, frag, tcp/443, udp/1000-2000. A limit for these packets of the prefix beside\n"
	"           its general one, for each source; up to 8 classes a prefix.\n"
	"  COSTS    syn=10,icmp=2,frag=4: tokens that such a packet takes from packet buckets; others take 1. Refused\n"
	"           where a bucket of its own, its tenant's or a device's can never hold so many.\n"
	"  SHARES   high=20%,normal=5% of a tenant's or a device's burst: low stops at 25% left, normal at 20% left\n\n"
	"With two rates, one in packets and one in bits, both must hold. Bits are those of the frame from the Ethernet\n"
	"header on.\n",
    .options = options,
    .run = run,
};
