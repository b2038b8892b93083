// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "statement.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "cmd.h"
#include "limit.h"
#include "target.h"
#include "units.h"

/* The options as they were given; the tables below point here. */
static struct said {
	const char **rates, **bursts;
	const char *tenant, *class, *cost, *priority, *reserve, *per;
	int shared, shadow, enforce;
} said;

const struct poptOption rl_set_limit_options[] = {
    {"rate", 'r', POPT_ARG_ARGV, &said.rates, 0,
     "packets (1000pps, 5kpps, 10/m) or bits (10mbit); twice for both", "RATE"},
    {"burst", 'b', POPT_ARG_ARGV, &said.bursts, 0, "packets (2000) or bytes (256kb, 64kib); twice for both",
     "BURST"},
    {"tenant", 't', POPT_ARG_STRING, &said.tenant, 0, "whom the target belongs to", "NAME"},
    {"class", 0, POPT_ARG_STRING, &said.class, 0,
     "one class of its packets: tcp, syn, udp, icmp, frag, tcp/443", "CLASS"},
    {"cost", 0, POPT_ARG_STRING, &said.cost, 0,
     "what packets of a class take from a packet bucket: syn=10,frag=4", "COSTS"},
    {"priority", 0, POPT_ARG_STRING, &said.priority, 0, "high, normal or low, where a reserve is kept",
     "PRIORITY"},
    {"reserve", 0, POPT_ARG_STRING, &said.reserve, 0,
     "of the burst, for higher priorities: high=20%,normal=5%", "SHARES"},
    {"shared", 0, POPT_ARG_NONE, &said.shared, 0, "one bucket for the whole target", NULL},
    {"per", 0, POPT_ARG_STRING, &said.per, 0, "one bucket for each prefix of this length inside the target",
     "/LENGTH"},
    {"shadow", 0, POPT_ARG_NONE, &said.shadow, 0, "drop nothing, count what would have been dropped", NULL},
    {"enforce", 0, POPT_ARG_NONE, &said.enforce, 0, "drop again (default)", NULL},
    POPT_TABLEEND,
};

const struct poptOption rl_deny_options[] = {
    {"shadow", 0, POPT_ARG_NONE, &said.shadow, 0, "drop nothing, count what would have been dropped", NULL},
    POPT_TABLEEND,
};

static const struct rl_command grammars[RL_ACTIONS] = {
    [RL_ACTION_LIMIT] = {.name = RL_SET_LIMIT,
			 .arguments = RL_SET_LIMIT_ARGUMENTS,
			 .options = rl_set_limit_options},
    [RL_ACTION_ALLOW] = {.name = RL_ALLOW, .arguments = RL_ALLOW_ARGUMENTS},
    [RL_ACTION_DENY] = {.name = RL_DENY, .arguments = RL_DENY_ARGUMENTS, .options = rl_deny_options},
};

static void list_free(const char **list)
{
	for (const char **word = list; word && *word; word++)
		free((void *)*word);
	free((void *)list);
}

/* For the next statement: popt adds to lists that are there. */
static void said_forget(void)
{
	list_free(said.rates);
	list_free(said.bursts);
	free((void *)said.tenant);
	free((void *)said.class);
	free((void *)said.cost);
	free((void *)said.priority);
	free((void *)said.reserve);
	free((void *)said.per);
	said = (struct said){};
}

static int tenant_parse(struct rl_terms *terms, struct rl_error *err)
{
	int rc = rl_tenant_check(said.tenant, err);

	if (!rc)
		snprintf(terms->tenant, sizeof(terms->tenant), "%s", said.tenant);
	return rc;
}

static int rates_parse(struct rl_terms *terms, struct rl_error *err)
{
	int rc = 0;

	for (const char **rate = said.rates; !rc && rate && *rate; rate++)
		rc = rl_rate_parse(*rate, terms, err);
	for (const char **burst = said.bursts; !rc && burst && *burst; burst++)
		rc = rl_burst_parse(*burst, terms, err);
	return rc;
}

/* The options that can be given once. */
static int words_parse(struct rl_terms *terms, struct rl_error *err)
{
	int rc = 0;

	if (said.tenant)
		rc = tenant_parse(terms, err);
	if (!rc && said.class)
		rc = rl_class_parse(said.class, &terms->class, err);
	if (!rc && said.cost)
		rc = rl_costs_parse(said.cost, terms, err);
	if (!rc && said.priority)
		rc = rl_priority_parse(said.priority, &terms->priority, err);
	if (!rc && said.reserve)
		rc = rl_reserve_parse(said.reserve, terms, err);
	if (!rc && said.per)
		rc = rl_per_parse(said.per, &terms->per, err);
	return rc;
}

static bool said_bare(void)
{
	return (said.shadow || said.enforce) && !said.shared && !said.rates && !said.bursts && !said.tenant &&
	       !said.cost && !said.priority && !said.reserve && !said.per;
}

static int limit_parse(struct rl_statement *statement, struct rl_error *err)
{
	struct rl_terms *terms = &statement->terms;
	int rc = 0;

	if (said.shadow && said.enforce)
		rc = rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				  "--shadow and --enforce contradict each other: give one of them");
	if (!rc)
		rc = rates_parse(terms, err);
	if (!rc)
		rc = words_parse(terms, err);
	statement->burst_said[RL_PACKETS] = terms->burst_packets != 0;
	statement->burst_said[RL_BYTES] = terms->burst_bytes != 0;
	terms->shared = said.shared != 0;
	statement->bare = said_bare();
	return rc;
}

static int trust_check(const struct rl_command *grammar, const struct rl_target *target, struct rl_error *err)
{
	char text[RL_TARGET_TEXT];

	if (target->kind == RL_TARGET_PREFIX)
		return 0;
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
			    "%s takes sources, and %s is none; expected an address, a prefix, or any",
			    grammar->name, rl_target_print(target, text));
}

static int action_find(const char *word)
{
	for (int action = 0; action < RL_ACTIONS; action++)
		if (!strcmp(grammars[action].name, word))
			return action;
	return -ENOENT;
}

bool rl_statement_begins(const char *word)
{
	return action_find(word) >= 0;
}

static int parse(enum rl_action action, int argc, const char **argv, struct rl_statement *statement,
		 struct rl_error *err)
{
	const struct rl_command *grammar = &grammars[action];
	const char *word;
	int count, rc = rl_cmd_parse(grammar, argc, argv, 1, 1, &word, &count, err);

	if (!rc)
		rc = rl_cmd_target(word, &statement->target, err);
	if (!rc)
		rc = action == RL_ACTION_LIMIT ? limit_parse(statement, err)
					       : trust_check(grammar, &statement->target, err);
	statement->terms.shadow = said.shadow != 0;
	return rc || statement->bare ? rc : rl_terms_complete(&statement->target, &statement->terms, err);
}

int rl_statement_parse(int argc, const char **argv, struct rl_statement *out, struct rl_error *err)
{
	int action = action_find(argv[0]), rc;
	struct rl_statement statement = {.terms = RL_TERMS_INIT};

	if (action < 0)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "\"%.64s\": expected " RL_SET_LIMIT ", " RL_ALLOW " or " RL_DENY,
				    argv[0]);
	statement.terms.action = (__u8)action;
	rc = parse((enum rl_action)action, argc, argv, &statement, err);
	said_forget();
	if (!rc)
		*out = statement;
	return rc;
}

/* Appends to the text that is there. */
__attribute__((format(printf, 2, 3))) static void append(char buf[RL_STATEMENT_TEXT], const char *format, ...)
{
	size_t used = strlen(buf);
	va_list args;

	va_start(args, format);
	vsnprintf(buf + used, RL_STATEMENT_TEXT - used, format, args);
	va_end(args);
}

static void print_rates(const struct rl_terms *terms, char buf[RL_STATEMENT_TEXT])
{
	char rate[RL_UNIT_TEXT], burst[RL_UNIT_TEXT];

	if (terms->packets_per_hour)
		append(buf, " --rate %s --burst %s", rl_rate_print_packets(terms->packets_per_hour, rate),
		       rl_burst_print_packets(terms->burst_packets, burst));
	if (terms->bits_per_second)
		append(buf, " --rate %s --burst %s", rl_rate_print_bits(terms->bits_per_second, rate),
		       rl_burst_print_bytes(terms->burst_bytes, burst));
}

const char *rl_statement_print(const struct rl_target *target, const struct rl_terms *terms,
			       char buf[RL_STATEMENT_TEXT])
{
	char text[RL_TARGET_TEXT], class[RL_CLASS_TEXT], costs[RL_COSTS_TEXT], reserve[RL_RESERVE_TEXT];
	const char *command = terms->action < RL_ACTIONS ? grammars[terms->action].name : RL_SET_LIMIT;

	snprintf(buf, RL_STATEMENT_TEXT, "%s %s", command, rl_target_print(target, text));
	if (rl_class_is_set(&terms->class))
		append(buf, " --class %s", rl_class_print(&terms->class, class));
	print_rates(terms, buf);
	if (terms->tenant[0])
		append(buf, " --tenant %.*s", RL_TENANT_LEN - 1, terms->tenant);
	if (terms->cost_count)
		append(buf, " --cost %s", rl_costs_print(terms, costs));
	if (rl_priority_name(terms->priority))
		append(buf, " --priority %s", rl_priority_name(terms->priority));
	if (*rl_reserve_print(terms, reserve))
		append(buf, " --reserve %s", reserve);
	if (terms->shared)
		append(buf, " --shared");
	if (terms->per)
		append(buf, " --per /%u", terms->per);
	if (terms->shadow)
		append(buf, " --shadow");
	return buf;
}
