// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * classes.c - limits on one class of a prefix's packets, beside its general one; and what a packet of a class
 * costs.
 */
#include <stdio.h>
#include <string.h>

#include "stories.h"

enum { ICMP = 1, TCP = 6, UDP = 17, FRAGMENT = 44, ICMP6 = 58, SCTP = 132 };
enum { FIN = 0x01, SYN = 0x02, ACK = 0x10 };

/* The classes of the table below, as bits. */
static const char *const classes[] = {"tcp",  "syn",	 "udp",	   "icmp",
				      "frag", "tcp/443", "udp/53", "udp/1000-2000"};
enum { C_TCP = 1, C_SYN = 2, C_UDP = 4, C_ICMP = 8, C_FRAG = 16, C_443 = 32, C_53 = 64, C_RANGE = 128 };
#define CLASSES (sizeof(classes) / sizeof(classes[0]))

/* A packet and the classes that it is of; for IPv4 and IPv6, unless it says for which. */
struct packet {
	const char *name;
	struct rl_frame_spec spec; /* the source is filled in, and what makes a fragment */
	unsigned int of;
	bool fragment, later; /* the first one of several; a later one */
	__u8 family;
};

static const struct packet packets[] = {
    {"syn", {.proto = TCP, .tcp_flags = SYN, .dport = 80}, .of = C_TCP | C_SYN},
    {"syn and fin", {.proto = TCP, .tcp_flags = SYN | FIN, .dport = 80}, .of = C_TCP | C_SYN},
    {"syn and ack", {.proto = TCP, .tcp_flags = SYN | ACK, .dport = 80}, .of = C_TCP},
    {"ack", {.proto = TCP, .tcp_flags = ACK, .dport = 80}, .of = C_TCP},
    {"syn to 443", {.proto = TCP, .tcp_flags = SYN, .dport = 443}, .of = C_TCP | C_SYN | C_443},
    {"ack to 443", {.proto = TCP, .tcp_flags = ACK, .dport = 443}, .of = C_TCP | C_443},
    {"tcp to 442", {.proto = TCP, .tcp_flags = ACK, .dport = 442}, .of = C_TCP},
    {"tcp to 444", {.proto = TCP, .tcp_flags = ACK, .dport = 444}, .of = C_TCP},
    {"tcp from 443", {.proto = TCP, .tcp_flags = ACK, .sport = 443, .dport = 4000}, .of = C_TCP},
    {"tcp to 53", {.proto = TCP, .tcp_flags = ACK, .dport = 53}, .of = C_TCP},
    {"tcp to 1500", {.proto = TCP, .tcp_flags = ACK, .dport = 1500}, .of = C_TCP},
    {"udp to 53", {.dport = 53}, .of = C_UDP | C_53},
    {"udp from 53", {.sport = 53, .dport = 4000}, .of = C_UDP},
    {"udp to 443", {.dport = 443}, .of = C_UDP},
    {"udp to 999", {.dport = 999}, .of = C_UDP},
    {"udp to 1000", {.dport = 1000}, .of = C_UDP | C_RANGE},
    {"udp to 2000", {.dport = 2000}, .of = C_UDP | C_RANGE},
    {"udp to 2001", {.dport = 2001}, .of = C_UDP},
    {"udp to 65535", {.dport = 65535}, .of = C_UDP},
    {"icmp", {.proto = ICMP}, .of = C_ICMP, .family = 4},
    {"icmpv6 in ipv4", {.proto = ICMP6}, .of = 0, .family = 4},
    {"icmpv6", {.proto = ICMP6}, .of = C_ICMP, .family = 6},
    {"icmp in ipv6", {.proto = ICMP}, .of = 0, .family = 6},
    {"sctp", {.proto = SCTP}, .of = 0},
    {"udp, first fragment", {.dport = 53}, .of = C_UDP | C_FRAG, .fragment = true},
    {"udp, later fragment", {.dport = 1000}, .of = C_UDP | C_FRAG, .fragment = true, .later = true},
    {"syn, first fragment",
     {.proto = TCP, .tcp_flags = SYN, .dport = 443},
     .of = C_TCP | C_FRAG,
     .fragment = true},
    {"tcp, later fragment",
     {.proto = TCP, .dport = 443},
     .of = C_TCP | C_FRAG,
     .fragment = true,
     .later = true},
    {"icmp, first fragment", {.proto = ICMP}, .of = C_ICMP | C_FRAG, .fragment = true, .family = 4},
    {"icmpv6, first fragment", {.proto = ICMP6}, .of = C_ICMP | C_FRAG, .fragment = true, .family = 6},
};
#define PACKETS (sizeof(packets) / sizeof(packets[0]))

static struct rl_frame_spec build(const struct packet *packet, const struct family *family,
				  const char *source)
{
	struct rl_frame_spec spec = packet->spec;

	spec.src = source;
	spec.len = 100;
	if (!packet->fragment)
		return spec;
	if (family->family == 4) {
		spec.fragment = packet->later ? 185 : 0x2000;
	} else {
		spec.ext_count = 1;
		spec.ext[0] =
		    (struct rl_frame_ext){.type = FRAGMENT, .fragment = packet->later ? 185 << 3 : 1};
	}
	return spec;
}

/* The n-th source of the family's target. */
static const char *source_of(const struct family *family, size_t n, char text[48])
{
	if (family->family == 4)
		snprintf(text, 48, "203.0.113.%zu", n);
	else
		snprintf(text, 48, "2001:db8:1:%zx::7", n);
	return text;
}

/*
 * Each packet against one class: at its limit and one past it if it is of the class, never held by it if it
 * isn't. Each from a source of its own, so that they also show that the class's buckets are per source.
 */
static void against_all(struct fixture *fx, const struct family *family, size_t class)
{
	char word[32], text[48];
	struct rl_limit limit, general;
	__u64 passed = 0, dropped = 0;

	snprintf(word, sizeof(word), "class=%s", classes[class]);
	limit = fixture_limit(fx, family->target, word, "1/h", "2", NULL);
	general = fixture_now(fx, family->target);
	for (size_t i = 0; i < PACKETS; i++) {
		struct rl_frame_spec spec = build(&packets[i], family, source_of(family, i, text));
		bool of = packets[i].of & 1U << class;

		if (packets[i].family && packets[i].family != family->family)
			continue;
		fx->what = packets[i].name;
		for (int n = 0; n < 2; n++)
			fixture_expect(fx, &spec, RL_PASS_LIMIT, of ? &limit : &general);
		fixture_expect(fx, &spec, of ? RL_DROP_CLASS : RL_PASS_LIMIT, of ? &limit : &general);
		passed += of ? 2 : 0;
		dropped += of;
		cr_assert_eq(fixture_limit_count(fx, &limit).passed.packets, passed, "%s in %s",
			     packets[i].name, classes[class]);
	}
	cr_assert_eq(fixture_limit_count(fx, &limit).dropped.packets, dropped, "%s", classes[class]);
	fixture_unlimit(fx, family->target);
}

StoreTest(classes, every_packet_against_every_class)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++)
		for (size_t class = 0; class < CLASSES; class ++)
			against_all(&fx, &families[f], class);
	fixture_close(&fx);
}

/* A range that has every port has no fragment, and nothing that is cut before its ports. */
StoreTest(classes, what_shows_no_port_has_none)
{
	struct fixture fx = story_open(*store);
	static uint8_t frame[RL_FRAME_MAX];

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit every =
		    fixture_limit(&fx, family->target, "class=udp/1-65535", "1/h", "1", NULL);
		struct rl_limit udp = fixture_limit(&fx, family->target, "class=udp", "1/h", "100", NULL);
		struct packet packet = {.fragment = true};
		struct rl_frame_spec spec = {.src = family->source};
		size_t cut = (family->family == 4 ? 34 : 54) + 3;

		story_expect(&fx, family->source, RL_PASS_LIMIT, &every);
		story_expect(&fx, family->source, RL_DROP_CLASS, &every);
		for (int later = 0; later < 2; later++) {
			packet.later = later;
			spec = build(&packet, family, family->source);
			fixture_expect(&fx, &spec, RL_PASS_LIMIT, &udp);
		}
		spec = (struct rl_frame_spec){.src = family->source};
		rl_frame_build(&spec, frame, sizeof(frame));
		fixture_expect_bytes(&fx, frame, cut, RL_PASS_LIMIT, &udp);
		fixture_expect_bytes(&fx, frame, cut + 1, RL_DROP_CLASS, &every);
		fixture_unlimit(&fx, family->target);
	}
	fixture_close(&fx);
}

/*
 * A packet of several classes is charged to each; the first that refuses drops it, and nothing else is
 * charged.
 */
StoreTest(classes, overlapping)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_frame_spec syn = {.src = family->source, .proto = TCP, .dport = 443, .len = 100};
		struct rl_frame_spec ack = syn, other = syn;
		struct rl_limit general, tcp, syns, port, range;
		struct ledger ledger;

		ack.tcp_flags = ACK;
		other.tcp_flags = ACK;
		other.dport = 1001;
		general = fixture_limit(&fx, family->target, "1/h", "100", NULL);
		tcp = fixture_limit(&fx, family->target, "class=tcp", "1/h", "7", NULL);
		syns = fixture_limit(&fx, family->target, "class=syn", "1/h", "2", NULL);
		port = fixture_limit(&fx, family->target, "class=tcp/443", "1/h", "4", NULL);
		range = fixture_limit(&fx, family->target, "class=tcp/400-1000", "1kbit", "2kb", NULL);
		for (int i = 0; i < 2; i++)
			cr_assert_eq(fixture_send(&fx, &syn).passed, 5);
		ledger = ledger_open(&fx, family->source, &general, &tcp, &syns, &port, &range, NULL);
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &syns);
		ledger_same(&ledger);
		fixture_expect(&fx, &ack, RL_PASS_LIMIT, &port);
		fixture_expect(&fx, &ack, RL_PASS_LIMIT, &range);
		ledger_charged(&ledger, 0, 2, 0);
		ledger_charged(&ledger, 1, 2, 0);
		ledger_charged(&ledger, 2, 0, 0);
		ledger_charged(&ledger, 3, 2, 0);
		ledger_charged(&ledger, 4, 0, 200);
		ledger = ledger_open(&fx, family->source, &general, &tcp, &syns, &port, &range, NULL);
		fixture_expect(&fx, &ack, RL_DROP_CLASS, &port);
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &syns);
		ledger_same(&ledger);
		for (int i = 0; i < 3; i++)
			fixture_expect(&fx, &other, RL_PASS_LIMIT, &tcp);
		fixture_expect(&fx, &other, RL_DROP_CLASS, &tcp);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &general);
		fixture_unlimit(&fx, family->target);
	}
	fixture_close(&fx);
}

/* The general limit holds beside the classes, and comes first. */
StoreTest(classes, beside_the_general_limit)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_frame_spec syn = {.src = family->source, .proto = TCP, .len = STORY_LEN};
		struct rl_limit general = fixture_limit(&fx, family->target, "1/h", "5", NULL);
		struct rl_limit syns = fixture_limit(&fx, family->target, "class=syn", "1/h", "3", NULL);

		for (int i = 0; i < 3; i++)
			fixture_expect(&fx, &syn, RL_PASS_LIMIT, &syns);
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &syns);
		story_repeat(&fx, family->source, 2, RL_PASS_LIMIT, &general);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &general);
		fixture_expect(&fx, &syn, RL_DROP_SOURCE, &general);
		/* Another source has its own of both. */
		syn.src = family->other;
		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &syns);
		story_counted(&fx, &syns, 4, 1, 0);
		story_counted(&fx, &general, 6, 2, 0);
		fixture_unlimit(&fx, family->target);
	}
	fixture_close(&fx);
}

/* As many levels as there can be: one packet is charged at eleven, and each can refuse it. */
StoreTest(classes, eight_and_every_other_level)
{
	static const char *const words[RL_MAX_CLASSES] = {
	    "class=tcp",	  "class=syn",	       "class=tcp/443",	    "class=tcp/1-1000",
	    "class=tcp/443-1000", "class=tcp/100-443", "class=tcp/1-65535", "class=tcp/440-450"};
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_frame_spec syn = {.src = family->source, .proto = TCP, .dport = 443, .len = 100};
		struct rl_limit class[RL_MAX_CLASSES], general, device;
		struct ledger ledger;

		general = fixture_limit(&fx, family->target, "1/h", "100", "tenant=acme", NULL);
		fixture_limit(&fx, "tenant:acme", "1/h", "100", NULL);
		device = fixture_limit(&fx, STORY_DEVICE, "1/h", "100", NULL);
		for (int i = 0; i < RL_MAX_CLASSES; i++)
			class[i] = fixture_limit(&fx, family->target, words[i], "1/h", "1", NULL);
		cr_assert_eq(fixture_send(&fx, &syn).passed, RL_MAX_HOLDS);
		ledger = ledger_open(&fx, family->source, &general, &device, &class[0], &class[1], &class[2],
				     &class[3], &class[4], &class[5], &class[6], &class[7], NULL);
		for (int i = 0; i < RL_MAX_CLASSES; i++) {
			fixture_expect(&fx, &syn, RL_DROP_CLASS, &class[i]);
			if (!i)
				ledger_same(&ledger);
			class[i] = fixture_limit(&fx, family->target, words[i], "1/h", "100", NULL);
		}
		cr_assert_eq(fixture_send(&fx, &syn).passed, RL_MAX_HOLDS);
		ledger_charged(&ledger, 0, 1, 0);
		ledger_charged(&ledger, 1, 1, 0);
		ledger = ledger_open(&fx, family->source, &class[0], &class[7], NULL);
		cr_assert_eq(fixture_send(&fx, &syn).passed, RL_MAX_HOLDS);
		ledger_charged(&ledger, 0, 1, 0);
		ledger_charged(&ledger, 1, 1, 0);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, "tenant:acme");
		fixture_unlimit(&fx, STORY_DEVICE);
	}
	fixture_close(&fx);
}

/* A class that is deleted holds nobody, the others go on as they were; set again it starts anew. */
StoreTest(classes, deleted)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_frame_spec syn = {
		    .src = family->source, .proto = TCP, .dport = 443, .len = STORY_LEN};
		struct rl_limit general = fixture_limit(&fx, family->target, "1/h", "20", NULL);
		struct rl_limit tcp = fixture_limit(&fx, family->target, "class=tcp", "1/h", "3", NULL);
		struct rl_limit syns = fixture_limit(&fx, family->target, "class=syn", "1/h", "1", NULL);
		struct rl_limit port = fixture_limit(&fx, family->target, "class=tcp/443", "1/h", "2", NULL);

		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &syns);
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &syns);
		fixture_unclass(&fx, family->target, "syn");
		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &tcp);
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &port);
		fixture_unclass(&fx, family->target, "tcp/443");
		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &tcp);
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &tcp);
		fixture_unclass(&fx, family->target, "tcp");
		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &general);
		syns = fixture_limit(&fx, family->target, "class=syn", "1/h", "1", NULL);
		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &syns);
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &syns);
		story_counted(&fx, &syns, 1, 1, 0);
		/* In place nothing is refilled. */
		syns = fixture_limit(&fx, family->target, "class=syn", "2/h", "1", NULL);
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &syns);
		story_counted(&fx, &syns, 1, 2, 0);
		/* The target goes with all that it has. */
		fixture_unlimit(&fx, family->target);
		fixture_expect(&fx, &syn, RL_PASS_NO_LIMIT, NULL);
	}
	fixture_close(&fx);
}

/*
 * Where the target has one bucket, a class of it has one too; where it groups its sources, so does the class.
 */
StoreTest(classes, as_fine_as_their_target)
{
	static const char *const per[2] = {"per=/28", "per=/48"};
	static const char *const near[2] = {"203.0.113.9", "2001:db8:0:ffff::"};
	static const char *const far[2] = {"203.0.113.17", "2001:db8:1::"};
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit udp;

		fixture_limit(&fx, family->target, "1/h", "100", "shared", NULL);
		udp = fixture_limit(&fx, family->target, "class=udp", "1/h", "1", NULL);
		cr_assert(udp.flags & RL_LIMIT_OWN_BUCKET);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &udp);
		story_expect(&fx, far[f], RL_DROP_CLASS, &udp);
		fixture_unlimit(&fx, family->target);

		udp = fixture_limit(&fx, family->host, "class=udp", "1/h", "1", NULL);
		cr_assert(udp.flags & RL_LIMIT_OWN_BUCKET);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &udp);
		story_expect(&fx, family->source, RL_DROP_CLASS, &udp);
		fixture_unlimit(&fx, family->host);

		/* The general limit is said last: its class follows. */
		udp = fixture_limit(&fx, family->target, "class=udp", "1/h", "1", NULL);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &udp);
		fixture_limit(&fx, family->target, "1/h", "100", per[f], NULL);
		story_expect(&fx, near[f], RL_PASS_LIMIT, &udp);
		story_expect(&fx, family->source, RL_DROP_CLASS, &udp);
		story_expect(&fx, far[f], RL_PASS_LIMIT, &udp);
		story_expect(&fx, far[f], RL_DROP_CLASS, &udp);
		fixture_unlimit(&fx, family->target);
	}
	fixture_close(&fx);
}

/* A packet, and what it costs under "tcp=3,syn=10,icmp=2,frag=4,udp/53=65,udp=5". */
struct cost_case {
	const char *name;
	struct packet packet;
	__u64 tokens;
};

static const struct cost_case costs[] = {
    {"no class", {.spec = {.proto = SCTP}}, 1},
    {"ack", {.spec = {.proto = TCP, .tcp_flags = ACK}}, 3},
    {"syn", {.spec = {.proto = TCP}}, 10},
    {"udp", {.spec = {.dport = 54}}, 5},
    {"dns", {.spec = {.dport = 53}}, 65},
    {"fragment of udp", {.fragment = true}, 5},
    {"fragment of tcp", {.spec = {.proto = TCP}, .fragment = true}, 4},
    {"fragment", {.spec = {.proto = SCTP}, .fragment = true}, 4},
};

/*
 * The highest cost that matches, at source, tenant and device, in packets; in bytes and in class buckets as
 * any packet.
 */
StoreTest(classes, costs_at_every_level)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		static const char *const words[] = {"class=tcp", "class=udp", "class=frag"};
		struct rl_limit limit[3], class[3];

		limit[0] = fixture_limit(&fx, family->target, "1/h", "1000", "1kbit", "100kb", "tenant=acme",
					 "cost=tcp=3,syn=10,icmp=2,frag=4,udp/53=65,udp=5", NULL);
		limit[1] = fixture_limit(&fx, "tenant:acme", "1/h", "1000", "1kbit", "100kb", NULL);
		limit[2] = fixture_limit(&fx, STORY_DEVICE, "1/h", "1000", "1kbit", "100kb", NULL);
		for (int i = 0; i < 3; i++)
			class[i] = fixture_limit(&fx, family->target, words[i], "1/h", "100", NULL);
		for (size_t warm = 3; warm < sizeof(costs) / sizeof(costs[0]); warm++) {
			struct rl_frame_spec spec = build(&costs[warm].packet, family, family->source);

			fixture_send(&fx, &spec);
		}
		for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
			const struct packet *packet = &costs[i].packet;
			struct rl_frame_spec spec = build(packet, family, family->source);
			struct ledger ledger = ledger_open(&fx, family->source, &limit[0], &limit[1],
							   &limit[2], &class[0], &class[1], &class[2], NULL);

			fx.what = costs[i].name;
			fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit[0]);
			for (int level = 0; level < 3; level++)
				ledger_charged(&ledger, level, costs[i].tokens, 100);
			ledger_charged(&ledger, 3, spec.proto == TCP, 0);
			ledger_charged(&ledger, 4, !spec.proto, 0);
			ledger_charged(&ledger, 5, packet->fragment, 0);
		}
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, "tenant:acme");
		fixture_unlimit(&fx, STORY_DEVICE);
	}
	fixture_close(&fx);
}

/* Exactly as many tokens as it costs: at each level a packet passes with them, and doesn't with one less. */
StoreTest(classes, costs_at_the_limit_and_one_past)
{
	static const enum rl_reason reasons[] = {RL_DROP_SOURCE, RL_DROP_TENANT, RL_DROP_DEVICE};
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_frame_spec syn = {.src = family->source, .proto = TCP, .len = STORY_LEN};

		for (int level = 0; level < 3; level++) {
			const char *burst[3] = {"1000", "1000", "1000"};
			struct rl_limit limit[3];

			burst[level] = "21";
			limit[0] = fixture_limit(&fx, family->target, "1/s", burst[0], "cost=syn=10",
						 "tenant=acme", NULL);
			limit[1] = fixture_limit(&fx, "tenant:acme", "1/s", burst[1], NULL);
			limit[2] = fixture_limit(&fx, STORY_DEVICE, "1/s", burst[2], NULL);
			fixture_expect(&fx, &syn, RL_PASS_LIMIT, &limit[level]);
			fixture_expect(&fx, &syn, RL_PASS_LIMIT, &limit[level]);
			fixture_expect(&fx, &syn, reasons[level], &limit[level]);
			story_expect(&fx, family->source, RL_PASS_LIMIT, &limit[level]); /* the last token */
			story_expect(&fx, family->source, reasons[level], &limit[level]);
			fixture_advance(&fx, 10 * SEC - 1);
			fixture_expect(&fx, &syn, reasons[level], &limit[level]);
			fixture_advance(&fx, 1);
			fixture_expect(&fx, &syn, RL_PASS_LIMIT, &limit[level]);
			fixture_expect(&fx, &syn, reasons[level], &limit[level]);
			fixture_unlimit(&fx, family->target);
			fixture_unlimit(&fx, "tenant:acme");
			fixture_unlimit(&fx, STORY_DEVICE);
		}
	}
	fixture_close(&fx);
}
