// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "class.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_SHOWN 64 /* bytes of the offending text that an error repeats */
#define PORT_MAX   65535
#define COST_MAX   65535
#define PER_MAX	   128
#define DIGITS_MAX 5 /* of the largest of them */
#define DIGITS	   "0123456789"

#define EXPECTED_CLASS "expected tcp, syn, udp, icmp, frag, or a service: tcp/443, udp/53, udp/1000-2000"
#define EXPECTED_COSTS                                                                                       \
	"expected classes with what a packet of each takes, 1 to 65535, such as syn=10,icmp=2,frag=4"
#define EXPECTED_RESERVE "expected high, normal or both with a share, such as high=20%%,normal=5%%"

/* Adds one item of a list to *terms, or says what is wrong with it. */
typedef int (*item_parser)(const char *item, struct rl_terms *terms, struct rl_error *err);

static const struct {
	const char *name;
	__u8 kind; /* enum rl_kind */
	bool has_ports;
} kinds[] = {
    {"tcp", RL_KIND_TCP, true},	   {"syn", RL_KIND_SYN, false},	  {"udp", RL_KIND_UDP, true},
    {"icmp", RL_KIND_ICMP, false}, {"frag", RL_KIND_FRAG, false},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *rl_kind_name(unsigned int i, __u8 *kind)
{
	if (i >= KINDS)
		return NULL;
	*kind = kinds[i].kind;
	return kinds[i].name;
}

static const char *const priorities[RL_PRIORITIES] = {
    [RL_PRIORITY_HIGH] = "high",
    [RL_PRIORITY_NORMAL] = "normal",
    [RL_PRIORITY_LOW] = "low",
};

static const char *const actions[RL_ACTIONS] = {
    [RL_ACTION_LIMIT] = "limit",
    [RL_ACTION_ALLOW] = "allow",
    [RL_ACTION_DENY] = "deny",
};

/* `length` digits as a number: -EINVAL for anything else and for leading zeros, -ERANGE below 1 and above max. */
static int read_number(const char *text, size_t length, unsigned int max, unsigned int *out)
{
	unsigned int value = 0;

	if (!length || strspn(text, DIGITS) < length || (text[0] == '0' && length > 1))
		return -EINVAL;
	if (length > DIGITS_MAX)
		return -ERANGE;
	for (size_t i = 0; i < length; i++)
		value = value * 10 + (unsigned int)(text[i] - '0');
	if (value < 1 || value > max)
		return -ERANGE;
	*out = value;
	return 0;
}

/* "443" or "1000-2000". */
static int parse_ports(const char *text, const char *ports, struct rl_class *class, struct rl_error *err)
{
	const char *dash = strchr(ports, '-');
	unsigned int from, to;
	int ret = read_number(ports, dash ? (size_t)(dash - ports) : strlen(ports), PORT_MAX, &from);

	to = from;
	if (!ret && dash)
		ret = read_number(dash + 1, strlen(dash + 1), PORT_MAX, &to);
	if (ret)
		return rl_error_set(
		    err, RL_ERROR_USAGE, -ret,
		    "class \"%.*s\": expected a port or a range of ports from 1 to %d behind the "
		    "/, such as tcp/443 or udp/1000-2000",
		    TEXT_SHOWN, text, PORT_MAX);
	if (from > to)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "class \"%.*s\": the range of ports runs backwards; expected %.*s/%u-%u",
				    TEXT_SHOWN, text, (int)(ports - text - 1), text, to, from);
	class->kinds |= RL_KIND_PORTS;
	class->from = (__u16)from;
	class->to = (__u16)to;
	return 0;
}

static int refuse_class(const char *text, const char *why, struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL, "class \"%.*s\" %s; " EXPECTED_CLASS, TEXT_SHOWN,
			    text, why);
}

int rl_class_parse(const char *text, struct rl_class *out, struct rl_error *err)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text), i = 0;
	struct rl_class class = {.to = PORT_MAX};

	if (!*text)
		return refuse_class(text, "is empty", err);
	while (i < KINDS && (strlen(kinds[i].name) != length || memcmp(kinds[i].name, text, length) != 0))
		i++;
	if (i == KINDS)
		return refuse_class(text, "is not a class of packets", err);
	if (slash && !kinds[i].has_ports)
		return refuse_class(text, "has a port, which only tcp and udp have", err);
	class.kinds = kinds[i].kind;
	if (slash) {
		int ret = parse_ports(text, slash + 1, &class, err);

		if (ret)
			return ret;
	}
	*out = class;
	return 0;
}

const char *rl_class_print(const struct rl_class *class, char buf[RL_CLASS_TEXT])
{
	size_t i = 0;

	while (i < KINDS && !(class->kinds & kinds[i].kind))
		i++;
	if (i == KINDS)
		buf[0] = '\0';
	else if (!(class->kinds & RL_KIND_PORTS))
		snprintf(buf, RL_CLASS_TEXT, "%s", kinds[i].name);
	else if (class->from == class->to)
		snprintf(buf, RL_CLASS_TEXT, "%s/%u", kinds[i].name, class->from);
	else
		snprintf(buf, RL_CLASS_TEXT, "%s/%u-%u", kinds[i].name, class->from, class->to);
	return buf;
}

int rl_class_is_set(const struct rl_class *class)
{
	return class->kinds != 0;
}

int rl_class_same(const struct rl_class *a, const struct rl_class *b)
{
	return a->kinds == b->kinds && a->from == b->from && a->to == b->to;
}

/* Every item of a comma-separated list in turn, into a copy of *terms that takes its place when all were good. */
static int parse_list(const char *text, item_parser parse, struct rl_terms *terms, struct rl_error *err)
{
	struct rl_terms all = *terms;
	char *copy = strdup(text), *rest = copy, *item;
	int ret = 0;

	if (!copy)
		return rl_error_set(err, RL_ERROR_USAGE, ENOMEM, "\"%.*s\": out of memory", TEXT_SHOWN, text);
	while (!ret && (item = strsep(&rest, ",")))
		ret = parse(item, &all, err);
	free(copy);
	if (!ret)
		*terms = all;
	return ret;
}

static int refuse_cost(const char *item, int code, const char *why, struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_USAGE, code, "cost \"%.*s\" %s; " EXPECTED_COSTS, TEXT_SHOWN, item,
			    why);
}

/* "syn=10", behind those that are there. */
static int parse_cost(const char *item, struct rl_terms *terms, struct rl_error *err)
{
	const char *equals = strchr(item, '=');
	char name[TEXT_SHOWN + 1];
	struct rl_cost cost;
	unsigned int tokens;
	int ret;

	if (!equals)
		return refuse_cost(item, EINVAL, *item ? "has no number" : "is empty", err);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - item < TEXT_SHOWN ? equals - item : TEXT_SHOWN),
		 item);
	ret = rl_class_parse(name, &cost.class, err);
	if (ret)
		return ret;
	ret = read_number(equals + 1, strlen(equals + 1), COST_MAX, &tokens);
	if (ret)
		return refuse_cost(item, -ret, ret == -ERANGE ? "is out of range" : "is not a whole number",
				   err);
	for (int i = 0; i < terms->cost_count; i++)
		if (rl_class_same(&terms->cost[i].class, &cost.class))
			return refuse_cost(item, EEXIST, "is of a class that has a cost already", err);
	if (terms->cost_count >= RL_MAX_COSTS)
		return rl_error_set(err, RL_ERROR_USAGE, E2BIG,
				    "cost \"%.*s\" is one too many: expected at most %d classes with a cost",
				    TEXT_SHOWN, item, RL_MAX_COSTS);
	cost.tokens = (__u16)tokens;
	terms->cost[terms->cost_count++] = cost;
	return 0;
}

int rl_costs_parse(const char *text, struct rl_terms *terms, struct rl_error *err)
{
	return parse_list(text, parse_cost, terms, err);
}

const char *rl_costs_print(const struct rl_terms *terms, char buf[RL_COSTS_TEXT])
{
	char class[RL_CLASS_TEXT];
	int used = 0;

	buf[0] = '\0';
	for (int i = 0; i < terms->cost_count && i < RL_MAX_COSTS; i++)
		used += snprintf(buf + used, RL_COSTS_TEXT - (size_t)used, "%s%s=%u", i ? "," : "",
				 rl_class_print(&terms->cost[i].class, class), terms->cost[i].tokens);
	return buf;
}

/* Which priority a name of `length` bytes is; RL_PRIORITIES: none. */
static enum rl_priority find_priority(const char *name, size_t length)
{
	int i = 0;

	while (i < RL_PRIORITIES &&
	       (strlen(priorities[i]) != length || memcmp(priorities[i], name, length) != 0))
		i++;
	return (enum rl_priority)i;
}

int rl_priority_parse(const char *text, __u8 *out, struct rl_error *err)
{
	enum rl_priority priority = find_priority(text, strlen(text));

	if (priority == RL_PRIORITIES)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "priority \"%.*s\" is none; expected high, normal or low", TEXT_SHOWN,
				    text);
	*out = (__u8)priority;
	return 0;
}

const char *rl_priority_name(__u8 priority)
{
	return priority < RL_PRIORITIES ? priorities[priority] : NULL;
}

/* "20%", "0.01%" as parts of RL_RESERVE_WHOLE. Returns why it isn't one, or NULL. */
static const char *read_share(const char *text, __u16 *out)
{
	size_t whole = strspn(text, DIGITS), decimals = 0;
	unsigned int value = 0;

	if (!whole || (text[0] == '0' && whole > 1))
		return "is not a share";
	if (text[whole] == '.') {
		decimals = strspn(text + whole + 1, DIGITS);
		if (!decimals)
			return "is not a share";
	}
	if (strcmp(text + whole + (decimals ? decimals + 1 : 0), "%") != 0)
		return "does not end in %";
	if (decimals > 2)
		return "is finer than 0.01%";
	for (size_t i = 0; i < whole && value <= RL_RESERVE_WHOLE; i++)
		value = value * 10 + (unsigned int)(text[i] - '0');
	for (size_t i = 0; i < 2 && value <= RL_RESERVE_WHOLE; i++)
		value = value * 10 + (i < decimals ? (unsigned int)(text[whole + 1 + i] - '0') : 0);
	if (value < 1 || value > RL_RESERVE_WHOLE)
		return "is out of range: from 0.01% to 100%";
	*out = (__u16)value;
	return NULL;
}

static int refuse_reserve(const char *item, int code, const char *why, struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_USAGE, code, "reserve \"%.*s\" %s; " EXPECTED_RESERVE, TEXT_SHOWN,
			    item, why);
}

/* "high=20%". */
static int parse_share(const char *item, struct rl_terms *terms, struct rl_error *err)
{
	const char *equals = strchr(item, '='), *fault;
	enum rl_priority priority = find_priority(item, equals ? (size_t)(equals - item) : strlen(item));
	__u16 share;

	if (priority == RL_PRIORITY_LOW)
		return refuse_reserve(item, EINVAL, "keeps from nobody: nothing is below low", err);
	if (priority == RL_PRIORITIES)
		return refuse_reserve(item, EINVAL, *item ? "is for no priority" : "is empty", err);
	fault = equals ? read_share(equals + 1, &share) : "has no share";
	if (fault)
		return refuse_reserve(item, EINVAL, fault, err);
	if (terms->reserve[priority])
		return refuse_reserve(item, EEXIST, "is of a priority that has a reserve already", err);
	if (terms->reserve[0] + terms->reserve[1] + share > RL_RESERVE_WHOLE)
		return refuse_reserve(item, ERANGE,
				      "makes more than 100% together with what was reserved before", err);
	terms->reserve[priority] = share;
	return 0;
}

int rl_reserve_parse(const char *text, struct rl_terms *terms, struct rl_error *err)
{
	return parse_list(text, parse_share, terms, err);
}

/* "20%", "0.5%", "0.01%". */
static int print_share(const char *name, unsigned int share, char *buf, size_t size)
{
	unsigned int part = share % 100;

	if (!part)
		return snprintf(buf, size, "%s=%u%%", name, share / 100);
	if (part % 10 == 0)
		return snprintf(buf, size, "%s=%u.%u%%", name, share / 100, part / 10);
	return snprintf(buf, size, "%s=%u.%02u%%", name, share / 100, part);
}

const char *rl_reserve_print(const struct rl_terms *terms, char buf[RL_RESERVE_TEXT])
{
	int used = 0;

	buf[0] = '\0';
	for (int i = 0; i < 2; i++) {
		if (!terms->reserve[i])
			continue;
		if (used)
			buf[used++] = ',';
		used +=
		    print_share(priorities[i], terms->reserve[i], buf + used, RL_RESERVE_TEXT - (size_t)used);
	}
	return buf;
}

int rl_per_parse(const char *text, __u8 *out, struct rl_error *err)
{
	unsigned int bits;
	bool slash = text[0] == '/';
	int ret = read_number(text + slash, strlen(text + slash), PER_MAX, &bits);

	if (!slash && !ret)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "per \"%s\" has no /: write /%s for one bucket for each prefix of that length", text,
		    text);
	if (ret)
		return rl_error_set(
		    err, RL_ERROR_USAGE, -ret,
		    "per \"%.*s\" is not a prefix length; expected /1 to /32 for IPv4, /1 to /%d "
		    "for IPv6, such as /28 or /48",
		    TEXT_SHOWN, text, PER_MAX);
	*out = (__u8)bits;
	return 0;
}

const char *rl_object_print(const struct rl_target *target, const struct rl_class *class,
			    char buf[RL_OBJECT_TEXT])
{
	char text[RL_TARGET_TEXT], name[RL_CLASS_TEXT];

	rl_target_print(target, text);
	if (rl_class_is_set(class))
		snprintf(buf, RL_OBJECT_TEXT, "class %s of %s", rl_class_print(class, name), text);
	else
		snprintf(buf, RL_OBJECT_TEXT, "%s", text);
	return buf;
}

const char *rl_action_name(__u8 action)
{
	return action < RL_ACTIONS ? actions[action] : "unknown";
}

/* What a limit can say besides its rates. */
enum said {
	SAID_TENANT = 1 << 0,
	SAID_CLASS = 1 << 1,
	SAID_SHARED = 1 << 2,
	SAID_PER = 1 << 3,
	SAID_COST = 1 << 4,
	SAID_PRIORITY = 1 << 5,
	SAID_RESERVE = 1 << 6,
	SAID_SHADOW = 1 << 7,
};

static const struct {
	unsigned int said;
	const char *option;
	const char *whose;
} options[] = {
    {SAID_TENANT, "--tenant", "addresses, prefixes and any"},
    {SAID_CLASS, "--class", "addresses, prefixes and any"},
    {SAID_SHARED, "--shared", "addresses, prefixes and any"},
    {SAID_PER, "--per", "prefixes"},
    {SAID_COST, "--cost", "addresses, prefixes and any"},
    {SAID_PRIORITY, "--priority", "addresses, prefixes, any and tenants"},
    {SAID_RESERVE, "--reserve", "tenants and devices"},
    {SAID_SHADOW, "--shadow", "limits"},
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static const unsigned int can_say[RL_TARGETS] = {
    [RL_TARGET_PREFIX] =
	SAID_TENANT | SAID_CLASS | SAID_SHARED | SAID_PER | SAID_COST | SAID_PRIORITY | SAID_SHADOW,
    [RL_TARGET_TENANT] = SAID_PRIORITY | SAID_RESERVE | SAID_SHADOW,
    [RL_TARGET_DEVICE] = SAID_RESERVE | SAID_SHADOW,
    [RL_TARGET_NEW] = SAID_SHADOW,
};
#define CLASS_CAN_SAY (SAID_CLASS | SAID_SHADOW)

static const unsigned int action_can_say[RL_ACTIONS] = {
    [RL_ACTION_LIMIT] = ~0U,
    [RL_ACTION_ALLOW] = SAID_TENANT,
    [RL_ACTION_DENY] = SAID_TENANT | SAID_SHADOW,
};

static unsigned int what_is_said(const struct rl_terms *terms)
{
	return (terms->tenant[0] ? SAID_TENANT : 0U) | (rl_class_is_set(&terms->class) ? SAID_CLASS : 0U) |
	       (terms->shared ? SAID_SHARED : 0U) | (terms->per ? SAID_PER : 0U) |
	       (terms->cost_count ? SAID_COST : 0U) | (terms->priority < RL_PRIORITIES ? SAID_PRIORITY : 0U) |
	       (terms->reserve[0] || terms->reserve[1] ? SAID_RESERVE : 0U) |
	       (terms->shadow ? SAID_SHADOW : 0U);
}

/* What this target, this class of it, or a target with this action can't say. */
static int check_said(const struct rl_target *target, const struct rl_terms *terms, struct rl_error *err)
{
	unsigned int said = what_is_said(terms), target_can = can_say[target->kind];
	bool is_class = said & target_can & SAID_CLASS;
	char object[RL_OBJECT_TEXT], whole[RL_TARGET_TEXT];

	for (size_t i = 0; i < OPTIONS; i++) {
		unsigned int bit = options[i].said & said;

		if (bit & ~target_can)
			return rl_error_set(
			    err, RL_ERROR_USAGE, EINVAL, "%s takes no %s, which is for %s; leave it out",
			    rl_target_print(target, whole), options[i].option, options[i].whose);
		if (bit & ~action_can_say[terms->action])
			return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
					    "%s of %s takes no %s, which goes with a limit; leave it out",
					    actions[terms->action], rl_target_print(target, whole),
					    options[i].option);
		if (is_class && bit & ~CLASS_CAN_SAY)
			return rl_error_set(
			    err, RL_ERROR_USAGE, EINVAL,
			    "%s takes no %s: it goes with the limit of %s as a whole; expected --rate, "
			    "--burst and --shadow, or no --class",
			    rl_object_print(target, &terms->class, object), options[i].option,
			    rl_target_print(target, whole));
	}
	return 0;
}

/* Allow and deny: whom they can be for, and that they have no rate. */
static int check_action(const struct rl_target *target, const struct rl_terms *terms, struct rl_error *err)
{
	char text[RL_TARGET_TEXT];

	if (terms->action == RL_ACTION_LIMIT)
		return 0;
	rl_target_print(target, text);
	if (target->kind != RL_TARGET_PREFIX)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "%s can't have %s: expected an address, a prefix or any", text,
				    actions[terms->action]);
	if (terms->packets_per_hour || terms->bits_per_second || terms->burst_packets || terms->burst_bytes)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "%s of %s takes no rate and no burst; expected set-limit with them, or %s "
		    "without",
		    actions[terms->action], text, actions[terms->action]);
	return 0;
}

/* One bucket for each prefix of this length: it must lie inside the target, and inside one family. */
static int check_per(const struct rl_target *target, const struct rl_terms *terms, struct rl_error *err)
{
	const struct rl_prefix *prefix = &target->prefix;
	unsigned int own = prefix->prefixlen - RL_PREFIX_FAMILY_BITS;
	unsigned int most = prefix->family == 4 ? 32 : 128;
	char text[RL_TARGET_TEXT];

	if (!terms->per)
		return 0;
	rl_target_print(target, text);
	if (terms->shared)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "--shared makes one bucket of %s, --per /%u one for each /%u inside it; "
				    "expected one of the two",
				    text, terms->per, terms->per);
	if (!prefix->family)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "--per /%u of any: any has two families, whose lengths differ; expected it on "
		    "0.0.0.0/0 or ::/0",
		    terms->per);
	if (own == most && terms->per != most)
		return rl_error_set(
		    err, RL_ERROR_USAGE, ERANGE,
		    "--per /%u of %s: that is one source already; leave --per out, or give it to "
		    "a prefix that holds more of them",
		    terms->per, text);
	if (terms->per < own || terms->per > most)
		return rl_error_set(err, RL_ERROR_USAGE, ERANGE,
				    "--per /%u of %s is out of range; expected /%u to /%u", terms->per, text,
				    own ? own : 1, most);
	return 0;
}

int rl_words_check(const struct rl_target *target, const struct rl_terms *terms, struct rl_error *err)
{
	int ret = check_action(target, terms, err);

	if (!ret)
		ret = check_said(target, terms, err);
	if (!ret)
		ret = check_per(target, terms, err);
	return ret;
}

/* Appends to the text that is there, with a comma between two parts. */
__attribute__((format(printf, 2, 3))) static void append(char buf[RL_WORDS_TEXT], const char *format, ...)
{
	size_t used = strlen(buf);
	va_list args;

	if (used)
		used += (size_t)snprintf(buf + used, RL_WORDS_TEXT - used, ", ");
	va_start(args, format);
	vsnprintf(buf + used, RL_WORDS_TEXT - used, format, args);
	va_end(args);
}

const char *rl_words_print(const struct rl_terms *terms, char buf[RL_WORDS_TEXT])
{
	char costs[RL_COSTS_TEXT], reserve[RL_RESERVE_TEXT];

	buf[0] = '\0';
	if (terms->tenant[0])
		append(buf, "tenant %.*s", RL_TENANT_LEN - 1, terms->tenant);
	if (terms->shared)
		append(buf, "shared");
	if (terms->per)
		append(buf, "per /%u", terms->per);
	if (terms->cost_count)
		append(buf, "cost %s", rl_costs_print(terms, costs));
	if (rl_priority_name(terms->priority))
		append(buf, "priority %s", rl_priority_name(terms->priority));
	if (rl_reserve_print(terms, reserve)[0])
		append(buf, "reserve %s", reserve);
	if (terms->shadow)
		append(buf, "shadow");
	return buf;
}
