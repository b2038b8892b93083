// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "target.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SHOWN 64 /* bytes of the offending text that an error repeats */

#define TENANT "tenant:"
#define DEVICE RL_TARGET_DEV
#define NEW    "new"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* What follows `prefix` in the text, or NULL. */
static const char *after(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(text, prefix, length) ? NULL : text + length;
}

/* Words that mean something else where a tenant can stand. */
static bool is_reserved(const char *name)
{
	static const char *const words[] = {"any", NEW, "all", "none"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(name, words[i]))
			return true;
	return false;
}

int rl_tenant_check(const char *name, struct rl_error *err)
{
	size_t length = strlen(name);

	if (!length || length >= RL_TENANT_LEN)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "tenant \"%.*s\": a name has 1 to %d bytes, this one %zu", TEXT_SHOWN,
				    name, RL_TENANT_LEN - 1, length);
	if (is_reserved(name))
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "tenant \"%s\": the word has a meaning of its own; expected another name, "
		    "such as acme",
		    name);
	if (!strchr(LETTERS, name[0]) || strspn(name, LETTERS "0123456789._-") != length)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "tenant \"%s\": expected a letter, then letters, digits, '.', '_' or '-', without spaces",
		    name);
	return 0;
}

/* Nearly the kernel's own rules: what else it refuses as a name is the name of no device that could be found. */
static int check_device(const char *name, struct rl_error *err)
{
	size_t length = strlen(name);

	if (!length || length >= RL_NAME_LEN)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "target \"" DEVICE "%.*s\": a device's name has 1 to %d bytes, this one "
				    "%zu; expected one that `ip link` shows, such as " DEVICE "eth0",
				    TEXT_SHOWN, name, RL_NAME_LEN - 1, length);
	for (const char *c = name; *c; c++)
		if (*c == '/' || isspace((unsigned char)*c))
			return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
					    "target \"" DEVICE
					    "%s\": a device's name has no '/' and no spaces; "
					    "expected one that `ip link` shows, such as " DEVICE "eth0",
					    name);
	return 0;
}

static int parse_name(enum rl_target_kind kind, const char *name, struct rl_target *out, struct rl_error *err)
{
	struct rl_target target = {.kind = kind};
	int ret = kind == RL_TARGET_TENANT ? rl_tenant_check(name, err) : check_device(name, err);

	if (ret)
		return ret;
	memcpy(target.name, name, strlen(name));
	*out = target;
	return 0;
}

/* A word where an address was expected: most likely a name without what it is a name of. */
static bool is_word(const char *text)
{
	struct rl_error ignored;

	return !rl_tenant_check(text, &ignored) || is_reserved(text) ||
	       (text[0] && strchr(LETTERS, text[0]) && !strpbrk(text, "/%") &&
		text[strspn(text, "0123456789abcdefABCDEF.:")]);
}

int rl_target_parse(const char *text, struct rl_target *out, struct rl_error *err)
{
	const char *tenant = after(text, TENANT), *device = after(text, DEVICE);
	struct rl_prefix prefix;
	int ret;

	if (tenant)
		return parse_name(RL_TARGET_TENANT, tenant, out, err);
	if (device)
		return parse_name(RL_TARGET_DEVICE, device, out, err);
	if (!strcmp(text, NEW)) {
		*out = (struct rl_target){.kind = RL_TARGET_NEW};
		return 0;
	}
	ret = rl_prefix_parse(text, &prefix, err);
	if (!ret)
		*out = rl_target_prefix(&prefix);
	else if (is_word(text))
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "target \"%.*s\" is neither an address nor a network; expected one, such as 203.0.113.7, "
		    "198.51.100.0/24, 2001:db8::/32, or any, " TENANT "NAME, " DEVICE "NAME, " NEW,
		    TEXT_SHOWN, text);
	return ret;
}

const char *rl_target_print(const struct rl_target *target, char buf[RL_TARGET_TEXT])
{
	switch (target->kind) {
	case RL_TARGET_TENANT:
		snprintf(buf, RL_TARGET_TEXT, TENANT "%.*s", RL_TENANT_LEN - 1, target->name);
		return buf;
	case RL_TARGET_DEVICE:
		snprintf(buf, RL_TARGET_TEXT, DEVICE "%.*s", RL_NAME_LEN - 1, target->name);
		return buf;
	case RL_TARGET_NEW:
		return strcpy(buf, NEW);
	default:
		return rl_prefix_print(&target->prefix, buf);
	}
}

int rl_target_compare(const struct rl_target *a, const struct rl_target *b)
{
	int order = (a->kind > b->kind) - (a->kind < b->kind);

	if (!order)
		order = rl_prefix_compare(&a->prefix, &b->prefix);
	if (!order)
		order = memcmp(a->name, b->name, sizeof(a->name));
	return order;
}

struct rl_target rl_target_prefix(const struct rl_prefix *prefix)
{
	return (struct rl_target){.kind = RL_TARGET_PREFIX, .prefix = *prefix};
}
