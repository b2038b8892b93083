// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "frame.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_LEN 60 /* Ethernet's minimum without the frame check sequence */

enum {
	ICMP = 1,
	TCP = 6,
	UDP = 17,
	FRAGMENT = 44,
	AUTHENTICATION = 51,
	ICMPV6 = 58,
};

/* The frame as far as it is built. */
struct builder {
	const struct rl_frame_spec *spec;
	uint8_t *buf;
	size_t size, used;
	size_t ip;	/* where the IP header begins */
	size_t payload; /* and what it carries */
	uint8_t family, proto;
	uint8_t src[16], dst[16];
};

static void fail(const char *what)
{
	fprintf(stderr, "rl_frame_build: %s\n", what);
	abort();
}

/* `len` more bytes, zero. */
static uint8_t *append(struct builder *b, size_t len)
{
	uint8_t *at = b->buf + b->used;

	if (len > b->size - b->used)
		fail("the frame is larger than its buffer");
	memset(at, 0, len);
	b->used += len;
	return at;
}

static void put16(uint8_t *p, unsigned int value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

/* RFC 1071, not yet folded; only the last part may have an odd length. */
static uint64_t sum16(uint64_t sum, const uint8_t *p, size_t len)
{
	for (; len > 1; p += 2, len -= 2)
		sum += (uint64_t)p[0] << 8 | p[1];
	return len ? sum + ((uint64_t)p[0] << 8) : sum;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void start(struct builder *b)
{
	const char *src = b->spec->src ? b->spec->src : "192.0.2.1", *dst = b->spec->dst;
	int af = strchr(src, ':') ? AF_INET6 : AF_INET;

	b->family = af == AF_INET6 ? 6 : 4;
	if (!dst)
		dst = b->family == 6 ? "2001:db8::2" : "192.0.2.2";
	if (inet_pton(af, src, b->src) != 1)
		fail("src is not an address");
	if (inet_pton(af, dst, b->dst) != 1)
		fail("dst is not an address of src's family");
	b->proto = b->spec->proto_zero || b->spec->proto ? b->spec->proto : UDP;
}

static void put_mac(uint8_t *at, const uint8_t mac[6], uint8_t last)
{
	static const uint8_t unset[6];

	memcpy(at, mac, 6);
	if (memcmp(mac, unset, 6))
		return;
	at[0] = 2; /* locally administered */
	at[5] = last;
}

static void put_ethernet(struct builder *b)
{
	const struct rl_frame_spec *spec = b->spec;
	uint8_t *at = append(b, 12);

	put_mac(at, spec->dst_mac, 2);
	put_mac(at + 6, spec->src_mac, 1);
	for (unsigned int i = 0; i < 4 && spec->vlan[i]; i++) {
		at = append(b, 4);
		put16(at, spec->vlan[i]);
		put16(at + 2, i + 1);
	}
	put16(append(b, 2), spec->ethertype ? spec->ethertype : b->family == 4 ? 0x0800 : 0x86dd);
}

static void put_ipv4(struct builder *b)
{
	const struct rl_frame_spec *spec = b->spec;
	unsigned int words = 5U + spec->options, ihl = spec->ihl_zero ? 0 : spec->ihl ? spec->ihl : words;
	uint8_t *at = append(b, words * 4);

	if (ihl > 15 || words > 15)
		fail("the IPv4 header is longer than 15 words");
	at[0] = (uint8_t)((spec->version ? spec->version : 4) << 4 | ihl);
	put16(at + 6, spec->fragment);
	at[8] = spec->hop_limit ? spec->hop_limit : 64;
	at[9] = b->proto;
	memcpy(at + 12, b->src, 4);
	memcpy(at + 16, b->dst, 4);
}

/* Extension headers of an unknown type are written in the common format, which a parser must not believe. */
static size_t ext_size(const struct rl_frame_ext *ext)
{
	switch (ext->type) {
	case FRAGMENT:
		return 8;
	case AUTHENTICATION:
		return ((size_t)ext->len + 2) * 4;
	default:
		return ((size_t)ext->len + 1) * 8;
	}
}

static void put_ipv6(struct builder *b)
{
	const struct rl_frame_spec *spec = b->spec;
	uint8_t *at = append(b, 40);

	if (spec->ext_count < 0 || spec->ext_count > RL_FRAME_EXT)
		fail("ext_count is out of range");
	at[0] = (uint8_t)((spec->version ? spec->version : 6) << 4);
	at[6] = spec->ext_count ? spec->ext[0].type : b->proto;
	at[7] = spec->hop_limit ? spec->hop_limit : 64;
	memcpy(at + 8, b->src, 16);
	memcpy(at + 24, b->dst, 16);
	for (int i = 0; i < spec->ext_count; i++) {
		at = append(b, ext_size(&spec->ext[i]));
		at[0] = i + 1 < spec->ext_count ? spec->ext[i + 1].type : b->proto;
		at[1] = spec->ext[i].len;
		if (spec->ext[i].type == FRAGMENT)
			put16(at + 2, spec->ext[i].fragment);
	}
}

static void put_payload(struct builder *b)
{
	const struct rl_frame_spec *spec = b->spec;
	uint8_t *at;

	switch (b->proto) {
	case TCP:
		at = append(b, 20);
		at[12] = 5 << 4;					 /* header length in words */
		at[13] = b->spec->tcp_flags ? b->spec->tcp_flags : 0x02; /* SYN */
		put16(at + 14, 0xffff);
		break;
	case UDP:
		at = append(b, 8);
		break;
	case ICMP:
	case ICMPV6:
		at = append(b, 8);
		at[0] = spec->icmp_type ? spec->icmp_type : b->proto == ICMP ? 8 : 128; /* echo request */
		at[1] = spec->icmp_code;
		return;
	default:
		return;
	}
	put16(at, spec->sport ? spec->sport : 4000);
	put16(at + 2, spec->dport ? spec->dport : 4001);
}

static void finish_ip(struct builder *b)
{
	uint8_t *at = b->buf + b->ip;

	if (b->used - b->ip > 0xffff)
		fail("the packet is longer than its length field can say");
	if (b->family == 6) {
		put16(at + 4, (unsigned int)(b->used - b->ip - 40));
		return;
	}
	put16(at + 2, (unsigned int)(b->used - b->ip));
	put16(at + 10, fold(sum16(0, at, b->payload - b->ip)));
}

static uint64_t sum_pseudo_header(const struct builder *b, size_t len)
{
	size_t address = b->family == 4 ? 4 : 16;

	return sum16(sum16(b->proto + len, b->src, address), b->dst, address);
}

static void finish_payload(struct builder *b)
{
	uint8_t *at = b->buf + b->payload, *checksum;
	size_t len = b->used - b->payload;
	uint16_t sum;

	switch (b->proto) {
	case TCP:
		checksum = at + 16;
		break;
	case UDP:
		put16(at + 4, (unsigned int)len);
		checksum = at + 6;
		break;
	case ICMP:
	case ICMPV6:
		checksum = at + 2;
		break;
	default:
		return;
	}
	sum = fold(sum16(b->proto == ICMP ? 0 : sum_pseudo_header(b, len), at, len));
	put16(checksum, b->proto == UDP && !sum ? 0xffff : sum); /* a UDP checksum of 0 means none, RFC 768 */
}

size_t rl_frame_build(const struct rl_frame_spec *spec, uint8_t *buf, size_t size)
{
	struct builder b = {.spec = spec, .buf = buf, .size = size};
	size_t len = spec->len ? spec->len : FRAME_LEN;

	start(&b);
	put_ethernet(&b);
	b.ip = b.used;
	if (b.family == 4)
		put_ipv4(&b);
	else
		put_ipv6(&b);
	b.payload = b.used;
	put_payload(&b);
	if (len > b.used)
		append(&b, len - b.used);
	finish_ip(&b);
	finish_payload(&b);
	return spec->len && spec->len < b.used ? spec->len : b.used;
}
