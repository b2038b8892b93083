// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "prefix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SHOWN  64 /* bytes of the offending text that an error repeats */
#define MAPPED_BITS 96 /* ::ffff:0:0/96 holds the IPv4-mapped addresses */

#define EXPECTED "expected any, an address or a network, such as 203.0.113.7, 198.51.100.0/24, 2001:db8::/32"

static unsigned int address_bits(const struct rl_prefix *target)
{
	return target->family == 4 ? 32 : 128;
}

struct rl_prefix rl_prefix_cut(__u8 family, const __u8 *addr, unsigned int bits)
{
	struct rl_prefix out = {.family = family};
	unsigned int most = address_bits(&out);

	if (bits > most) /* what lies behind an IPv4 address is none of it */
		bits = most;
	out.prefixlen = RL_PREFIX_FAMILY_BITS + bits;
	memcpy(out.addr, addr, (bits + 7) / 8);
	if (bits % 8)
		out.addr[bits / 8] &= (__u8)(0xff00 >> bits % 8);
	return out;
}

/* The address in front of a '/', as a whole one, or -EINVAL. */
static int parse_address(const char *text, size_t length, struct rl_prefix *out)
{
	struct rl_prefix target = {0};
	char copy[INET6_ADDRSTRLEN];

	if (length >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	target.family = strchr(copy, ':') ? 6 : 4;
	if (inet_pton(target.family == 4 ? AF_INET : AF_INET6, copy, target.addr) != 1)
		return -EINVAL;
	target.prefixlen = RL_PREFIX_FAMILY_BITS + address_bits(&target);
	*out = target;
	return 0;
}

/* Digits alone, without a sign or a leading zero; what is longer than any length becomes 999. -EINVAL
 * otherwise. */
static int parse_length(const char *text, unsigned int *out)
{
	const char *end = text;
	unsigned int value = 0;

	for (; *end >= '0' && *end <= '9'; end++)
		if (value < 999)
			value = value * 10 + (unsigned int)(*end - '0');
	if (end == text || *end || (text[0] == '0' && end > text + 1))
		return -EINVAL;
	*out = value > 999 ? 999 : value;
	return 0;
}

static bool is_mapped(const struct rl_prefix *target, unsigned int bits)
{
	return target->family == 6 && bits >= MAPPED_BITS &&
	       IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)target->addr);
}

static int refuse_mapped(const char *text, const struct rl_prefix *mapped, unsigned int bits,
			 struct rl_error *err)
{
	struct rl_prefix target = rl_prefix_cut(4, mapped->addr + MAPPED_BITS / 8, bits - MAPPED_BITS);
	char meant[RL_PREFIX_TEXT];

	return rl_error_set(
	    err, RL_ERROR_USAGE, EINVAL,
	    "target \"%.*s\" is IPv4 written as IPv6, which no packet carries as its source: write %s",
	    TEXT_SHOWN, text, rl_prefix_print(&target, meant));
}

/* An address that wasn't understood: say what it looks like. */
static int refuse_address(const char *text, struct rl_error *err)
{
	const char *why = "is not an address";

	if (!*text)
		why = "is empty";
	else if (strchr(text, '%'))
		why = "has a zone id; limits hold for a source on every device, so leave out what follows "
		      "the %";
	else if (text[strspn(text, "0123456789./")] == '\0')
		why = "is not an IPv4 address, which has four numbers from 0 to 255 without leading zeros";
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL, "target \"%.*s\" %s; " EXPECTED, TEXT_SHOWN, text,
			    why);
}

int rl_prefix_parse(const char *text, struct rl_prefix *out, struct rl_error *err)
{
	const char *slash = strchr(text, '/');
	struct rl_prefix address, target;
	char network[RL_PREFIX_TEXT];
	unsigned int bits, most;

	if (!strcmp(text, "any")) {
		*out = (struct rl_prefix){0};
		return 0;
	}
	if (parse_address(text, slash ? (size_t)(slash - text) : strlen(text), &address))
		return refuse_address(text, err);
	most = bits = address_bits(&address);
	if (slash && parse_length(slash + 1, &bits))
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "target \"%.*s\": what follows the / is not a prefix length; expected 0 to %u",
		    TEXT_SHOWN, text, most);
	if (bits > most)
		return rl_error_set(err, RL_ERROR_USAGE, ERANGE,
				    "target \"%.*s\": prefix length out of range; expected 0 to %u for IPv%u",
				    TEXT_SHOWN, text, most, address.family);
	if (is_mapped(&address, bits))
		return refuse_mapped(text, &address, bits, err);
	target = rl_prefix_cut(address.family, address.addr, bits);
	if (memcmp(target.addr, address.addr, sizeof(target.addr)))
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "target \"%.*s\" has host bits set: write %s for the network, or the address alone",
		    TEXT_SHOWN, text, rl_prefix_print(&target, network));
	*out = target;
	return 0;
}

const char *rl_prefix_print(const struct rl_prefix *target, char buf[RL_PREFIX_TEXT])
{
	unsigned int bits = target->prefixlen - RL_PREFIX_FAMILY_BITS;
	size_t used;

	if (!target->prefixlen)
		return strcpy(buf, "any");
	inet_ntop(target->family == 4 ? AF_INET : AF_INET6, target->addr, buf, RL_PREFIX_TEXT);
	used = strlen(buf);
	if (bits != address_bits(target))
		snprintf(buf + used, RL_PREFIX_TEXT - used, "/%u", bits);
	return buf;
}

bool rl_prefix_covers(const struct rl_prefix *outer, const struct rl_prefix *inner)
{
	unsigned int bits = outer->prefixlen - RL_PREFIX_FAMILY_BITS, whole = bits / 8;

	if (!outer->prefixlen)
		return true;
	if (outer->family != inner->family || outer->prefixlen > inner->prefixlen)
		return false;
	return !memcmp(outer->addr, inner->addr, whole) &&
	       (!(bits % 8) || !((outer->addr[whole] ^ inner->addr[whole]) >> (8 - bits % 8)));
}

bool rl_prefix_is_source(const struct rl_prefix *target)
{
	return target->prefixlen >= RL_PREFIX_FAMILY_BITS + (target->family == 4 ? 32 : 64);
}

int rl_prefix_compare(const struct rl_prefix *a, const struct rl_prefix *b)
{
	int order = (int)a->family - (int)b->family;

	if (!order)
		order = memcmp(a->addr, b->addr, sizeof(a->addr));
	if (!order)
		order = (a->prefixlen > b->prefixlen) - (a->prefixlen < b->prefixlen);
	return order;
}
