// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lockout.h"

#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "ssh.h"
#include "target.h"

/* The first `bits` bits of a host's key: the target whose limit matched it. */
static struct rl_prefix prefix_of(const struct rl_prefix *host, __u32 prefixlen)
{
	struct rl_prefix prefix = {.prefixlen = prefixlen};
	__u32 bits = prefixlen > RL_PREFIX_FAMILY_BITS ? prefixlen - RL_PREFIX_FAMILY_BITS : 0;

	if (prefixlen)
		prefix.family = host->family;
	for (__u32 i = 0; i < bits; i++)
		prefix.addr[i / 8] |= host->addr[i / 8] & (0x80 >> i % 8);
	return prefix;
}

void rl_lockout_warn(const struct rl_state *state, const struct rl_prefix *changed)
{
	char client_text[RL_TARGET_TEXT], target_text[RL_TARGET_TEXT], terms_text[RL_TERMS_TEXT];
	struct rl_prefix client, target;
	struct rl_limit limit;

	if (!rl_ssh_client(&client) || (changed && !rl_target_covers(changed, &client)) ||
	    !rl_policy_match(state, &client, &limit) ||
	    (changed && limit.prefixlen > changed->prefixlen)) /* a narrower limit holds, as before */
		return;
	target = prefix_of(&client, limit.prefixlen);
	rl_target_print(&target, target_text);
	fprintf(stderr,
		"rl-agent: warning: %s, where this SSH session comes from, is held to %s by the limit of %s; "
		"`rl-agent del-limit %s` or `rl-agent pause` lets it pass\n",
		rl_target_print(&client, client_text), rl_terms_print(&limit.terms, terms_text), target_text,
		target_text);
}
