// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a frame: nothing is read beyond them, and what is said of them doesn't contradict itself.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/rl_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check_packet(const uint8_t *data, size_t size, const struct rl_packet *packet)
{
	static const __u8 zero[12];
	size_t len = packet->family == 4 ? 4 : 16;

	require(packet->family == 4 || packet->family == 6);
	require(size >= 14 + len && memmem(data + 14, size - 14, packet->src, len));
	require(packet->family == 6 || !memcmp(packet->src + 4, zero, sizeof(zero)));
	if (packet->flags & RL_PACKET_PORTS)
		require((packet->proto == 6 || packet->proto == 17) &&
			!(packet->flags & (RL_PACKET_FRAGMENT | RL_PACKET_MALFORMED)));
	else
		require(!packet->sport && !packet->dport);
	if (packet->flags & RL_PACKET_ND)
		require(packet->family == 6 && packet->proto == 58 && packet->flags == RL_PACKET_ND);
	if (packet->flags & RL_PACKET_MALFORMED)
		require(packet->flags == RL_PACKET_MALFORMED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rl_packet packet = {0}, longer = {0};
	uint8_t *more = malloc(size + 64);
	enum rl_parse_result result = rl_parse(data, data + size, &packet);

	if (result == RL_PARSE_IP)
		check_packet(data, size, &packet);

	/* More bytes behind the frame may tell more of what it carries, never another source. */
	memcpy(more, data, size);
	memset(more + size, 0xff, 64);
	require(result == RL_PARSE_UNPARSED || rl_parse(more, more + size + 64, &longer) == result);
	if (result == RL_PARSE_IP)
		require(packet.family == longer.family &&
			!memcmp(packet.src, longer.src, sizeof(packet.src)));
	free(more);
	return 0;
}
