// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lockout.h"

#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "plain.h"
#include "prefix.h"
#include "ssh.h"
#include "target.h"

static bool has_rate(const struct rl_limit *limit)
{
	return limit->terms.packets_per_hour || limit->terms.bits_per_second;
}

/* Does the limit, or a class of it, ever drop anything? */
static bool is_holding(const struct rl_state *state, const struct rl_limit *limit)
{
	struct rl_limit class;

	if (limit->action == RL_ACTION_ALLOW)
		return false;
	if (!limit->terms.shadow && (limit->action == RL_ACTION_DENY || has_rate(limit)))
		return true;
	for (__u32 i = 0; i < limit->class_count && i < RL_MAX_CLASSES; i++)
		if (rl_policy_slot(state, limit->class[i].slot, &class) && !class.terms.shadow)
			return true;
	return false;
}

static void warn(const struct rl_prefix *client, const char *how, const struct rl_limit *limit)
{
	char client_text[RL_PREFIX_TEXT], target_text[RL_TARGET_TEXT];

	rl_target_print(&limit->target, target_text);
	rl_plain_print(
	    stderr,
	    "rl-agent: warning: %s, where this SSH session comes from, is %s %s; `rl-agent del-limit %s` or "
	    "`rl-agent pause` lets it pass\n",
	    rl_prefix_print(client, client_text), how, target_text, target_text);
}

static void warn_of_source(const struct rl_state *state, const struct rl_prefix *client,
			   const struct rl_limit *limit)
{
	char terms[RL_TERMS_TEXT], how[RL_TERMS_TEXT + 64];

	if (!is_holding(state, limit))
		return;
	if (limit->action == RL_ACTION_DENY) {
		warn(client, "denied by what is said of", limit);
		return;
	}
	snprintf(how, sizeof(how), "held to %s%s by the limit of", rl_terms_print(&limit->terms, terms),
		 limit->class_count ? ", and to what its classes say," : "");
	warn(client, how, limit);
}

/* A tenant's limit, or a device's. */
static void warn_of_shared(const struct rl_prefix *client, const struct rl_limit *limit)
{
	char terms[RL_TERMS_TEXT], how[RL_TERMS_TEXT + 64];

	if (limit->terms.shadow || !has_rate(limit))
		return;
	snprintf(how, sizeof(how), "%s %s with others by the limit of",
		 limit->level == RL_LEVEL_DEVICE ? "held, where it arrives there, to" : "held to",
		 rl_terms_print(&limit->terms, terms));
	warn(client, how, limit);
}

void rl_lockout_warn(const struct rl_state *state, const struct rl_target *changed)
{
	struct rl_prefix client;
	struct rl_limit limit, tenant;
	bool found;

	if (!rl_ssh_client(&client))
		return;
	found = rl_policy_match(state, &client, &limit);
	if (changed && changed->kind == RL_TARGET_DEVICE) {
		if ((!found || limit.action == RL_ACTION_LIMIT) &&
		    rl_policy_find(state, changed, NULL, &tenant))
			warn_of_shared(&client, &tenant);
		return;
	}
	if (!found || (changed && changed->kind == RL_TARGET_NEW))
		return;
	/* A narrower limit holds, as before. */
	if (!changed || (changed->kind == RL_TARGET_PREFIX && rl_prefix_covers(&changed->prefix, &client) &&
			 limit.target.prefix.prefixlen <= changed->prefix.prefixlen))
		warn_of_source(state, &client, &limit);
	if (limit.action == RL_ACTION_LIMIT && rl_policy_slot(state, limit.tenant, &tenant) &&
	    (!changed || !rl_target_compare(changed, &tenant.target)))
		warn_of_shared(&client, &tenant);
}
