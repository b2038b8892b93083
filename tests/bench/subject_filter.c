// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * subject_filter.c - what the kernel's packet filter limits sources with. A rule drops what is over the limit, the next one drops
 * the rest, which would have passed.
 *
 * nftables: in the netdev family's ingress hook, which sees a frame before the raw prerouting hook does, and costs less; a set with
 * a limit for each element.
 * iptables: xt_hashlimit in the raw table's PREROUTING, the first chain that iptables has; by iptables-legacy, which costs no more
 * than iptables-nft.
 * Each table is made for the sources there are: their number of buckets, and nothing expires while it is measured.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "nft_counter.h"
#include "subject.h"

#define HASHLIMIT_MAX                                                                                        \
	1048576U /* HASHLIMIT_MAX_SIZE in net/netfilter/xt_hashlimit.c: the kernel cuts off what is above */

/* hashlimit's rates are those that come nearest: it takes no more than a million a second. */
static const struct {
	const char *nft, *hashlimit;
} limits[] = {
    [PASSING] = {"148800000/second burst 10000000 packets", "1000000/second --hashlimit-burst 1000000"},
    [REJECTED] = {"1/hour burst 1 packets", "1/hour --hashlimit-burst 1"},
};

/* ---- nftables ---- */

static int nft_load(const struct subject *subject, const char *ruleset, struct rl_error *err)
{
	static const char *const argv[] = {"nft", "-f", "-", NULL};

	return command_run(&(struct command){.netns = subject->netns, .input = ruleset}, argv, err);
}

static int open_nft(struct subject *subject, struct rl_error *err)
{
	const struct scenario *scenario = subject->scenario;
	bool ip4 = scenario->family == 4;
	char ruleset[1024];

	snprintf(ruleset, sizeof(ruleset),
		 "table netdev bench {\n"
		 "	counter over { }\n"
		 "	set sources { type %s; size %u; flags dynamic,timeout; "
		 "timeout 1h; gc-interval 1h; }\n"
		 "	chain ingress {\n"
		 "		type filter hook ingress device %s priority -500;\n"
		 "		add @sources { %s saddr limit rate over %s } counter name over drop\n"
		 "		drop\n"
		 "	}\n"
		 "}\n",
		 ip4 ? "ipv4_addr" : "ipv6_addr", scenario->sources + scenario->sources / 4 + 16,
		 SUBJECT_DEVICE, ip4 ? "ip" : "ip6", limits[scenario->verdict].nft);
	return nft_load(subject, ruleset, err);
}

static int nft_dropped(const struct subject *subject, __u64 *out)
{
	return nft_counter_read(subject->netns, "bench", "over", out);
}

const struct subject_kind subject_nft = {.open = open_nft, .dropped = nft_dropped};

/* What a frame costs until a filter sees it, and a rule that drops it: no limiter at all. */
static int open_skb(struct subject *subject, struct rl_error *err)
{
	return nft_load(subject,
			"table netdev bench {\n"
			"	chain ingress {\n"
			"		type filter hook ingress device " SUBJECT_DEVICE " priority -500;\n"
			"		drop\n"
			"	}\n"
			"}\n",
			err);
}

const struct subject_kind subject_skb = {.open = open_skb};

/* ---- iptables ---- */

static const char *iptables(const struct subject *subject)
{
	return subject->scenario->family == 4 ? "iptables-legacy" : "ip6tables-legacy";
}

static int open_hashlimit(struct subject *subject, struct rl_error *err)
{
	__u32 sources = subject->scenario->sources;
	int rc;

	if (sources > HASHLIMIT_MAX)
		return rl_error_set(err, RL_ERROR_USAGE, EOPNOTSUPP, "xt_hashlimit holds at most %u sources",
				    HASHLIMIT_MAX);
	rc = command_line(subject->netns, err,
			  "%s -w -t raw -A PREROUTING -i %s -m hashlimit --hashlimit-name bench "
			  "--hashlimit-mode srcip --hashlimit-above %s --hashlimit-htable-size %u "
			  "--hashlimit-htable-max %u --hashlimit-htable-expire 3600000 "
			  "--hashlimit-htable-gcinterval 3600000 -j DROP",
			  iptables(subject), SUBJECT_DEVICE, limits[subject->scenario->verdict].hashlimit,
			  sources < 1024 ? 1024 : sources, HASHLIMIT_MAX);
	return rc
		   ?: command_line(subject->netns, err, "%s -w -t raw -A PREROUTING -i %s -j DROP",
				   iptables(subject), SUBJECT_DEVICE);
}

/* The first rule's packets: the first number of the third line, below the chain's name and the heading. */
static int hashlimit_dropped(const struct subject *subject, __u64 *out)
{
	const char *const argv[] = {iptables(subject), "-w", "-t", "raw", "-nvxL", "PREROUTING", NULL};
	char said[2048], *at = said;
	const struct command command = {.netns = subject->netns, .output = said, .size = sizeof(said)};
	struct rl_error err;
	int rc = command_run(&command, argv, &err);

	for (int line = 0; !rc && line < 2; line++) {
		at = strchr(at, '\n');
		if (!at)
			return -EPROTO;
		at++;
	}
	if (!rc)
		*out = strtoull(at, NULL, 10);
	return rc;
}

const struct subject_kind subject_hashlimit = {.open = open_hashlimit, .dropped = hashlimit_dropped};
