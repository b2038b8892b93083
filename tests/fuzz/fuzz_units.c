// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any text as a rate, burst, count, target, class, or another word of a limit: refused with a reason and without a trace,
 * or a value in range that is printed and parsed back to itself. The first byte chooses which.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/class.h"
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
	const struct rl_target any = {.kind = RL_TARGET_PREFIX};
	struct rl_terms terms = RL_TERMS_INIT, back = terms, none = terms;
	struct rl_error err = {0};
	char buf[RL_UNIT_TEXT];
	int ret = rl_rate_parse(text, &terms, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!memcmp(&terms, &none, sizeof(terms)));
		return;
	}
	if (terms.packets_per_hour)
		rl_rate_print_packets(terms.packets_per_hour, buf);
	else
		rl_rate_print_bits(terms.bits_per_second, buf);
	require(!rl_rate_parse(buf, &back, &err) && !memcmp(&terms, &back, sizeof(terms)));
	require(!rl_terms_complete(&any, &terms, &err)); /* every rate has a default burst that fits */
}

static void check_burst(const char *text)
{
	struct rl_terms terms = RL_TERMS_INIT, back = terms, none = terms;
	struct rl_error err = {0};
	char buf[RL_UNIT_TEXT];
	int ret = rl_burst_parse(text, &terms, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!memcmp(&terms, &none, sizeof(terms)));
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

static void check_prefix(const char *text)
{
	struct rl_prefix prefix = {0}, back;
	struct rl_error err = {0};
	char buf[RL_PREFIX_TEXT];
	int ret = rl_prefix_parse(text, &prefix, &err);

	if (ret) {
		check_refusal(ret, &err);
		return;
	}
	require(prefix.prefixlen <= RL_PREFIX_MAX_BITS);
	require(!rl_prefix_parse(rl_prefix_print(&prefix, buf), &back, &err));
	require(!memcmp(&prefix, &back, sizeof(prefix)) && !rl_prefix_compare(&prefix, &back));
	require(rl_prefix_covers(&prefix, &back));
}

static void check_target(const char *text)
{
	struct rl_target target = {0}, back, none = target;
	struct rl_error err = {0};
	char buf[RL_TARGET_TEXT];
	int ret = rl_target_parse(text, &target, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!memcmp(&target, &none, sizeof(target)));
		return;
	}
	require(target.kind < RL_TARGETS && !target.name[RL_TENANT_LEN - 1]);
	require(!rl_target_parse(rl_target_print(&target, buf), &back, &err));
	require(!memcmp(&target, &back, sizeof(target)) && !rl_target_compare(&target, &back));
	require(target.kind != RL_TARGET_TENANT || !rl_tenant_check(target.name, &err));
}

static void check_class(const char *text)
{
	struct rl_class class = {0}, back, none = class;
	struct rl_error err = {0};
	char buf[RL_CLASS_TEXT];
	int ret = rl_class_parse(text, &class, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!memcmp(&class, &none, sizeof(class)));
		return;
	}
	require(rl_class_is_set(&class) && class.from <= class.to);
	require(!rl_class_parse(rl_class_print(&class, buf), &back, &err));
	require(!memcmp(&class, &back, sizeof(class)) && rl_class_same(&class, &back));
}

static void check_costs(const char *text)
{
	const struct rl_target any = {.kind = RL_TARGET_PREFIX};
	struct rl_terms terms = RL_TERMS_INIT, back = terms, none = terms;
	struct rl_error err = {0};
	char buf[RL_COSTS_TEXT];
	int ret = rl_costs_parse(text, &terms, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!memcmp(&terms, &none, sizeof(terms)));
		return;
	}
	require(terms.cost_count >= 1 && terms.cost_count <= RL_MAX_COSTS);
	require(!rl_costs_parse(rl_costs_print(&terms, buf), &back, &err));
	require(!memcmp(&terms, &back, sizeof(terms)));
	terms.packets_per_hour = RL_PACKETS_PER_HOUR_MAX / 1000;
	require(!rl_terms_complete(&any, &terms, &err)); /* the default burst holds every cost */
	for (int i = 0; i < terms.cost_count; i++)
		require(terms.cost[i].tokens >= 1 && terms.cost[i].tokens <= terms.burst_packets);
}

static void check_reserve(const char *text)
{
	const struct rl_target device = {.kind = RL_TARGET_DEVICE, .name = "eth0"};
	struct rl_terms terms = RL_TERMS_INIT, back = terms, none = terms;
	struct rl_error err = {0};
	char buf[RL_RESERVE_TEXT];
	struct rl_limit limit;
	int ret = rl_reserve_parse(text, &terms, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(!memcmp(&terms, &none, sizeof(terms)));
		return;
	}
	require(!rl_reserve_parse(rl_reserve_print(&terms, buf), &back, &err));
	require(!memcmp(&terms, &back, sizeof(terms)));
	terms.packets_per_hour = RL_PACKETS_PER_HOUR_MAX / 1000;
	ret = rl_terms_complete(&device, &terms, &err);
	require(!ret ==
		(terms.reserve[0] + terms.reserve[1] < RL_RESERVE_WHOLE)); /* all of it would be nothing */
	require(ret || !rl_limit_compute(&device, &terms, NULL, 1, 1, 1, &limit, &err));
	require(ret || limit.rate[RL_PACKETS].kept[RL_PRIORITY_LOW] < limit.rate[RL_PACKETS].burst);
}

static void check_words(const char *text)
{
	__u8 priority = 99, per = 0;
	struct rl_error err = {0};
	int ret = rl_priority_parse(text, &priority, &err);

	if (ret) {
		check_refusal(ret, &err);
		require(priority == 99);
	} else {
		require(priority < RL_PRIORITIES && !strcmp(rl_priority_name(priority), text));
	}
	ret = rl_per_parse(text, &per, &err);
	if (ret) {
		check_refusal(ret, &err);
		require(!per);
	} else {
		require(per >= 1 && per <= 128 && text[0] == '/');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(const char *) = {check_rate,   check_burst,   check_count,
						       check_prefix, check_target,  check_class,
						       check_costs,  check_reserve, check_words};
	char *text;

	if (!size)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	checks[data[0] % (sizeof(checks) / sizeof(checks[0]))](text);
	free(text);
	return 0;
}
