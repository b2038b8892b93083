// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include "../../user/class.h"
#include "../../user/limit.h"
#include "../../user/target.h"
#include "../lib/frame.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define FRAME_LEN    1514 /* bytes of a frame that are there to be cut off */
#define IPV4_HEADER  20
#define IPV6_HEADER  40
#define STRAYS	     32 /* sources that come once in a while */
#define IPV6_LEAST   90 /* bytes that all headers fit in */
#define ETHERNET     14
#define TCP_FLAGS    13 /* offset in its header */
#define TCP_SYN	     0x02
#define TCP_ACK	     0x10

const char *const ops_device_names[MODEL_DEVICES] = {"eth0", "eth1"};

/* Near to each other and to the edges of the generator's prefixes; two in one /64, one /28, one /24. */
static const char *const sources[] = {
    "10.0.0.1",		 "10.0.0.2",	    "10.0.0.17",     "10.0.1.1",	  "10.1.2.3",
    "192.0.2.1",	 "192.0.2.200",	    "198.51.100.7",  "2001:db8::1",	  "2001:db8::2",
    "2001:db8::1:0:0:1", "2001:db8:0:1::1", "2001:db8:1::5", "2001:db8:1:0:1::1", "2001:db8:1:1::1",
    "2001:db8:ffff::1",	 "fd00::1",
};

/* Kinds of packets: how to build one, and what the model is told. */
static const struct what {
	const char *name;
	__u8 proto; /* of IPv4; ICMP becomes ICMPv6 */
	__u8 tcp_flags;
	__u16 dport;
	bool fragment;	/* not the first one */
	bool malformed; /* the IP version contradicts the Ethernet type */
	bool not_ip, cut;
	__u8 kinds;
} whats[] = {
    {.name = "udp/53", .proto = 17, .dport = 53, .kinds = RL_KIND_UDP | RL_KIND_PORTS},
    {.name = "udp/1000", .proto = 17, .dport = 1000, .kinds = RL_KIND_UDP | RL_KIND_PORTS},
    {.name = "udp/2001", .proto = 17, .dport = 2001, .kinds = RL_KIND_UDP | RL_KIND_PORTS},
    {.name = "tcp/443 syn",
     .proto = 6,
     .tcp_flags = TCP_SYN,
     .dport = 443,
     .kinds = RL_KIND_TCP | RL_KIND_SYN | RL_KIND_PORTS},
    {.name = "tcp/443 ack",
     .proto = 6,
     .tcp_flags = TCP_ACK,
     .dport = 443,
     .kinds = RL_KIND_TCP | RL_KIND_PORTS},
    {.name = "tcp/80 syn+ack",
     .proto = 6,
     .tcp_flags = TCP_SYN | TCP_ACK,
     .dport = 80,
     .kinds = RL_KIND_TCP | RL_KIND_PORTS},
    {.name = "icmp", .proto = 1, .kinds = RL_KIND_ICMP},
    {.name = "udp fragment", .proto = 17, .fragment = true, .kinds = RL_KIND_UDP | RL_KIND_FRAG},
    {.name = "gre", .proto = 47},
    {.name = "malformed", .proto = 47, .malformed = true},
    {.name = "arp", .not_ip = true},
    {.name = "cut", .cut = true},
};

int ops_sources(void)
{
	return COUNT(sources) + STRAYS;
}

int ops_whats(void)
{
	return COUNT(whats);
}

/* Its address as text; valid until the next call. */
static const char *source_text(int source)
{
	static char text[32];

	if (source < COUNT(sources))
		return sources[source];
	snprintf(text, sizeof(text), source % 2 ? "10.0.0.%d" : "2001:db8:2:%d::1", 100 + source);
	return text;
}

struct rl_prefix ops_source(int source)
{
	struct rl_prefix prefix = {0};
	struct rl_error err = {0};

	if (rl_prefix_parse(source_text(source), &prefix, &err)) {
		fprintf(stderr, "%s: %s\n", source_text(source), err.text);
		abort();
	}
	return prefix;
}

/* What a packet is doesn't depend on its length: each is built once. */
struct template
{
	uint8_t frame[FRAME_LEN];
	struct model_packet packet;
};

static void build_frame(int source, const struct what *what, uint8_t *out)
{
	uint8_t frame[RL_FRAME_MAX];
	bool v4 = ops_source(source).family == 4;
	struct rl_frame_spec spec = {.src = source_text(source),
				     .proto = what->proto == 1 && !v4 ? 58 : what->proto,
				     .dport = what->dport,
				     .len = FRAME_LEN};

	if (what->fragment && v4)
		spec.fragment = 100;
	if (what->fragment && !v4) {
		spec.ext[0] = (struct rl_frame_ext){.type = 44, .fragment = 100 << 3};
		spec.ext_count = 1;
	}
	if (what->malformed)
		spec.version = 5;
	if (what->not_ip)
		spec.ethertype = 0x0806;
	rl_frame_build(&spec, frame, RL_FRAME_MAX);
	if (what->tcp_flags)
		frame[ETHERNET + (v4 ? IPV4_HEADER : IPV6_HEADER) + TCP_FLAGS] = what->tcp_flags;
	if (what->cut) { /* three VLAN tags: one too many to be read */
		for (int tag = 0; tag < 3; tag++) {
			frame[12 + 4 * tag] = 0x81;
			frame[13 + 4 * tag] = 0x00;
		}
	}
	memcpy(out, frame, FRAME_LEN);
}

static void build(int source, int index, struct template *out)
{
	const struct what *what = &whats[index];
	struct rl_prefix prefix = ops_source(source);

	build_frame(source, what, out->frame);
	out->packet = (struct model_packet){
	    .not_ip = what->not_ip,
	    .unparsed = what->cut,
	    .malformed = what->malformed,
	    .family = prefix.family,
	    .kinds = what->kinds,
	    .port = what->dport,
	};
	memcpy(out->packet.addr, prefix.addr, sizeof(prefix.addr));
}

static const struct template *template_of(const struct op *op)
{
	static struct template *templates;

	if (!templates) {
		templates = calloc((size_t)ops_sources() * COUNT(whats), sizeof(*templates));
		if (!templates)
			abort();
		for (int i = 0; i < ops_sources() * COUNT(whats); i++)
			build(i / COUNT(whats), i % COUNT(whats), &templates[i]);
	}
	return &templates[op->source * COUNT(whats) + op->what];
}

struct model_packet ops_packet(const struct op *op)
{
	struct model_packet packet = template_of(op)->packet;

	packet.len = packet.family == 6 && op->len < IPV6_LEAST ? IPV6_LEAST : op->len;
	return packet;
}

const uint8_t *ops_frame(const struct op *op)
{
	return template_of(op)->frame;
}

static void print_set(FILE *file, const struct op *op)
{
	char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT], terms[RL_TERMS_TEXT];

	fprintf(file, "set %s", rl_target_print(&op->target, target));
	if (rl_class_is_set(&op->terms.class))
		fprintf(file, " class %s", rl_class_print(&op->terms.class, class));
	fprintf(file, " %s\n", rl_terms_print(&op->terms, terms));
}

void ops_print(FILE *file, const struct op *op)
{
	char target[RL_TARGET_TEXT], class[RL_CLASS_TEXT];

	switch ((enum op_kind)op->kind) {
	case OP_PACKET:
		fprintf(file, "packet %s %s, %u bytes, on %s\n", source_text(op->source),
			whats[op->what].name, op->len, ops_device_names[op->device]);
		break;
	case OP_CLOCK:
		fprintf(file, "clock +%lluns\n", op->step);
		break;
	case OP_SET:
		print_set(file, op);
		break;
	case OP_DELETE:
		fprintf(file, "delete %s", rl_target_print(&op->target, target));
		if (rl_class_is_set(&op->terms.class))
			fprintf(file, " class %s", rl_class_print(&op->terms.class, class));
		fprintf(file, "\n");
		break;
	case OP_PAUSE:
		fprintf(file, "%s %s\n", op->on ? "pause" : "resume", ops_device_names[op->device]);
		break;
	case OP_SHADOW:
		fprintf(file, "%s %s\n", op->on ? "shadow" : "enforce", ops_device_names[op->device]);
		break;
	case OP_RESET:
		fprintf(file, "reset\n");
		break;
	case OP_KINDS:
		break;
	}
}

const char *ops_reason_name(enum rl_reason reason)
{
	static const char *const names[] = {
	    [RL_PASS_NO_LIMIT] = "PASS_NO_LIMIT",
	    [RL_PASS_LIMIT] = "PASS_LIMIT",
	    [RL_PASS_ALLOWED] = "PASS_ALLOWED",
	    [RL_PASS_NOT_IP] = "PASS_NOT_IP",
	    [RL_PASS_ND] = "PASS_ND",
	    [RL_PASS_PAUSED] = "PASS_PAUSED",
	    [RL_PASS_UNPARSED] = "PASS_UNPARSED",
	    [RL_PASS_MALFORMED] = "PASS_MALFORMED",
	    [RL_PASS_AGGREGATE] = "PASS_AGGREGATE",
	    [RL_PASS_OPEN] = "PASS_OPEN",
	    [RL_PASS_ERROR] = "PASS_ERROR",
	    [RL_SHADOW_SOURCE] = "SHADOW_SOURCE",
	    [RL_SHADOW_CLASS] = "SHADOW_CLASS",
	    [RL_SHADOW_TENANT] = "SHADOW_TENANT",
	    [RL_SHADOW_DEVICE] = "SHADOW_DEVICE",
	    [RL_SHADOW_NEW] = "SHADOW_NEW",
	    [RL_SHADOW_AGGREGATE] = "SHADOW_AGGREGATE",
	    [RL_SHADOW_FULL] = "SHADOW_FULL",
	    [RL_SHADOW_DENIED] = "SHADOW_DENIED",
	    [RL_SHADOW_CONTENDED] = "SHADOW_CONTENDED",
	    [RL_DROP_SOURCE] = "DROP_SOURCE",
	    [RL_DROP_CLASS] = "DROP_CLASS",
	    [RL_DROP_TENANT] = "DROP_TENANT",
	    [RL_DROP_DEVICE] = "DROP_DEVICE",
	    [RL_DROP_NEW] = "DROP_NEW",
	    [RL_DROP_AGGREGATE] = "DROP_AGGREGATE",
	    [RL_DROP_FULL] = "DROP_FULL",
	    [RL_DROP_DENIED] = "DROP_DENIED",
	    [RL_DROP_CONTENDED] = "DROP_CONTENDED",
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == RL_REASONS, "a name for each reason");
	return reason < RL_REASONS ? names[reason] : "?";
}
