// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any text as a rate, burst, count or target: refused with a reason and without a trace, or a value in range
 * that is printed and parsed back to itself. The first byte chooses which.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/limit.h"
#include "../../user/target.h"
#include "../../user/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check_refusal(int ret, const struct rl_error *err)
{
	require(ret < 0 && err->kind == RL_ERROR_USAGE && err->text[0]);
}

static void check_rate(const char *text)
{
	struct rl_terms terms = {0}, back = {0}, zero = {0};
	struct rl_error err = {0};
	char buf[RL_UNIT_TEXT];
	int ret = rl_rate_parse(text, &terms, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!memcmp(&terms, &zero, sizeof(terms)));
		return;
	}
	if (terms.packets_per_hour)
		rl_rate_print_packets(terms.packets_per_hour, buf);
	else
		rl_rate_print_bits(terms.bits_per_second, buf);
	require(!rl_rate_parse(buf, &back, &err) && !memcmp(&terms, &back, sizeof(terms)));
	require(!rl_terms_complete(&terms, &err)); /* every rate has a default burst that fits */
}

static void check_burst(const char *text)
{
	struct rl_terms terms = {0}, back = {0}, zero = {0};
	struct rl_error err = {0};
	char buf[RL_UNIT_TEXT];
	int ret = rl_burst_parse(text, &terms, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!memcmp(&terms, &zero, sizeof(terms)));
		return;
	}
	if (terms.burst_packets)
		rl_burst_print_packets(terms.burst_packets, buf);
	else
		rl_burst_print_bytes(terms.burst_bytes, buf);
	require(!rl_burst_parse(buf, &back, &err) && !memcmp(&terms, &back, sizeof(terms)));
}

static void check_count(const char *text)
{
	__u64 value = 0, back = 0;
	struct rl_error err = {0};
	char buf[RL_UNIT_TEXT];
	int ret = rl_count_parse(text, "sources", 5000000, &value, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!value);
		return;
	}
	require(value >= 1 && value <= 5000000);
	snprintf(buf, sizeof(buf), "%llu", value);
	require(!rl_count_parse(buf, "sources", 5000000, &back, &err) && back == value);
}

static void check_target(const char *text)
{
	struct rl_prefix target = {0}, back;
	struct rl_error err = {0};
	char buf[RL_TARGET_TEXT];
	int ret = rl_target_parse(text, &target, &err);

	if (ret) {
		check_refusal(ret, &err);
		return;
	}
	require(target.prefixlen <= RL_PREFIX_MAX_BITS);
	require(!rl_target_parse(rl_target_print(&target, buf), &back, &err));
	require(!memcmp(&target, &back, sizeof(target)) && !rl_target_compare(&target, &back));
	require(rl_target_covers(&target, &back));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(const char *) = {check_rate, check_burst, check_count, check_target};
	char *text;

	if (!size)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	checks[data[0] % 4](text);
	free(text);
	return 0;
}
