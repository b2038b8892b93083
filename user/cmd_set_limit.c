// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "cmd.h"
#include "limit.h"
#include "policy.h"
#include "ssh.h"
#include "target.h"
#include "units.h"

static const char **rates, **bursts;
static const char *tenant;

static const struct poptOption options[] = {
    {"rate", 'r', POPT_ARG_ARGV, &rates, 0, "packets (1000pps, 5kpps, 10/m) or bits (10mbit); twice for both",
     "RATE"},
    {"burst", 'b', POPT_ARG_ARGV, &bursts, 0, "packets (2000) or bytes (256kb, 64kib); twice for both",
     "BURST"},
    {"tenant", 't', POPT_ARG_STRING, &tenant, 0, "whom the target belongs to", "NAME"},
    POPT_TABLEEND,
};

/* Printable ASCII: a name is shown on terminals, in JSON and in files where a space ends a word. */
static int tenant_parse(const char *name, struct rl_terms *terms, struct rl_error *err)
{
	if (!*name || strlen(name) >= sizeof(terms->tenant))
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "tenant \"%.40s\": a name has 1 to %zu bytes, this one %zu", name,
				    sizeof(terms->tenant) - 1, strlen(name));
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~')
			return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
					    "the tenant's name has a space or a character that isn't "
					    "printable ASCII at byte %zu: use "
					    "letters, digits and punctuation",
					    (size_t)(c - name) + 1);
	strcpy(terms->tenant, name);
	return 0;
}

static int terms_parse(struct rl_terms *terms, struct rl_error *err)
{
	int rc = 0;

	for (const char **rate = rates; !rc && rate && *rate; rate++)
		rc = rl_rate_parse(*rate, terms, err);
	for (const char **burst = bursts; !rc && burst && *burst; burst++)
		rc = rl_burst_parse(*burst, terms, err);
	if (!rc && tenant)
		rc = tenant_parse(tenant, terms, err);
	return rc ? rc : rl_terms_complete(terms, err);
}

static const char *terms_print(const struct rl_terms *terms, char *buf, size_t size)
{
	char rate[RL_UNIT_TEXT], burst[RL_UNIT_TEXT];
	int len = 0;

	buf[0] = '\0';
	if (terms->packets_per_hour)
		len = snprintf(buf, size, "%s burst %s", rl_rate_print_packets(terms->packets_per_hour, rate),
			       rl_burst_print_packets(terms->burst_packets, burst));
	if (terms->bits_per_second)
		snprintf(buf + len, size - (size_t)len, "%s%s burst %s", len ? " and " : "",
			 rl_rate_print_bits(terms->bits_per_second, rate),
			 rl_burst_print_bytes(terms->burst_bytes, burst));
	return buf;
}

/* Whoever limits the address that he is logged in from shall know it before the shell stalls. */
static void warn_of_lockout(const struct rl_state *state, const struct rl_prefix *target, const char *terms)
{
	char client_text[RL_TARGET_TEXT], target_text[RL_TARGET_TEXT];
	struct rl_prefix client;
	struct rl_limit limit;

	if (!rl_ssh_client(&client) || !rl_target_covers(target, &client))
		return;
	if (!rl_policy_match(state, &client, &limit) || limit.prefixlen != target->prefixlen)
		return; /* a narrower limit holds for it */
	rl_target_print(target, target_text);
	fprintf(stderr,
		"rl-agent: warning: %s covers %s, where this SSH session comes from: it is held to %s now; "
		"`rl-agent del-limit %s` takes that back\n",
		target_text, rl_target_print(&client, client_text), terms, target_text);
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	RL_STATE struct rl_state state = RL_STATE_INIT;
	struct rl_terms terms = {};
	char target_text[RL_TARGET_TEXT], text[4 * RL_UNIT_TEXT];
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
	terms_print(&terms, text, sizeof(text));
	printf("%s: %s%s%s\n", rl_target_print(&target, target_text), text,
	       terms.tenant[0] ? ", tenant " : "", terms.tenant);
	warn_of_lockout(&state, &target, text);
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
