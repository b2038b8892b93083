// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attached.h"
#include "cleanup.h"
#include "cmd.h"
#include "limit.h"
#include "lockout.h"
#include "policy.h"
#include "target.h"
#include "units.h"

static const char **rates, **bursts, **tenants;

static const struct poptOption options[] = {
    {"rate", 'r', POPT_ARG_ARGV, &rates, 0, "packets (1000pps, 5kpps, 10/m) or bits (10mbit); twice for both",
     "RATE"},
    {"burst", 'b', POPT_ARG_ARGV, &bursts, 0, "packets (2000) or bytes (256kb, 64kib); twice for both",
     "BURST"},
    {"tenant", 't', POPT_ARG_ARGV, &tenants, 0, "whom the target belongs to", "NAME"},
    POPT_TABLEEND,
};

/*
 * A letter, then letters, digits, '.', '_' and '-': such a name needs no quotes anywhere, and can't be taken for an
 * address, a prefix or an option.
 */
static int tenant_parse(const char *name, struct rl_terms *terms, struct rl_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(name);

	if (terms->tenant[0])
		return rl_error_set(err, RL_ERROR_USAGE, EEXIST,
				    "--tenant is given twice: a target has one tenant");
	if (!len || len >= sizeof(terms->tenant))
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "tenant \"%.40s\": a name has 1 to %zu bytes, this one %zu", name,
				    sizeof(terms->tenant) - 1, len);
	if (!strchr(letters, name[0]) || strspn(name, others) != len || !strcmp(name, "any"))
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "tenant \"%.40s\": expected a letter, then letters, digits, '.', '_' or "
				    "'-', and not \"any\"",
				    name);
	memcpy(terms->tenant, name, len + 1);
	return 0;
}

static int terms_parse(struct rl_terms *terms, struct rl_error *err)
{
	int rc = 0;

	for (const char **rate = rates; !rc && rate && *rate; rate++)
		rc = rl_rate_parse(*rate, terms, err);
	for (const char **burst = bursts; !rc && burst && *burst; burst++)
		rc = rl_burst_parse(*burst, terms, err);
	for (const char **tenant = tenants; !rc && tenant && *tenant; tenant++)
		rc = tenant_parse(*tenant, terms, err);
	return rc ? rc : rl_terms_complete(terms, err);
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
	struct rl_terms terms = {};
	char target_text[RL_TARGET_TEXT], text[RL_TERMS_TEXT];
	RL_CLOSE int lock = -1;
	struct rl_prefix target;
	const char *word;
	int count, rc;

	rc = rl_cmd_parse(&rl_cmd_set_limit, argc, argv, 1, 1, &word, &count, err);
	if (!rc)
		rc = rl_target_parse(word, &target, err);
	if (!rc)
		rc = terms_parse(&terms, err);
	if (!rc)
		rc = rl_privilege_check("set-limit", err);
	if (!rc)
		rc = rl_state_lock(false, &lock, err);
	if (!rc)
		rc = rl_state_open(&state, err);
	if (!rc)
		rc = rl_policy_set(&state, &target, &terms, err);
	if (rc)
		return rc;
	printf("%s: %s%s%s\n", rl_target_print(&target, target_text), rl_terms_print(&terms, text),
	       terms.tenant[0] ? ", tenant " : "", terms.tenant);
	warn_of_no_device(&state);
	rl_lockout_warn(&state, &target);
	return 0;
}

const struct rl_command rl_cmd_set_limit = {
    .name = "set-limit",
    .arguments = "TARGET --rate RATE [--rate RATE] [--burst BURST ...] [--tenant NAME]",
    .summary = "Hold each source of TARGET to a rate",
    .help = "TARGET is an address, a prefix, or `any`: every source that no longer prefix names. Each source "
	    "inside it\n"
	    "has its own bucket: an IPv4 address, or an IPv6 /64. A target that has a limit already is "
	    "changed in place,\n"
	    "and its buckets keep what they owe.\n\n"
	    "  RATE   pps kpps mpps, N/s N/m N/h (packets); kbit mbit gbit (10^3, bits a second)\n"
	    "  BURST  a bare count, p, k, m (packets); kb mb (10^3 bytes), kib mib (2^10 bytes)\n"
	    "         default: 100 ms of the rate, at least 16 packets, at least 16kib\n\n"
	    "With two rates, one in packets and one in bits, both must hold. Bits are those of the frame "
	    "from the Ethernet\n"
	    "header on.\n",
    .options = options,
    .run = run,
};
