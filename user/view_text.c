// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "view_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot.h"

const char *rl_text_number(__u64 value, char buf[RL_NUMBER_TEXT])
{
	snprintf(buf, RL_NUMBER_TEXT, "%" PRIu64, (uint64_t)value);
	return buf;
}

const char *rl_text_bytes(__u64 bytes, char buf[RL_UNIT_TEXT])
{
	rl_human((double)bytes, buf);
	strncat(buf, "B", RL_UNIT_TEXT - strlen(buf) - 1);
	return buf;
}

/* "1kpps", "10mbit" or "1kpps,10mbit"; each part is "" where that unit isn't limited. */
static const char *pair(const char *packets, const char *bytes, char buf[RL_PAIR_TEXT])
{
	snprintf(buf, RL_PAIR_TEXT, "%s%s%s", packets, packets[0] && bytes[0] ? "," : "", bytes);
	return buf;
}

const char *rl_text_rates(const struct rl_terms *terms, char buf[RL_PAIR_TEXT])
{
	char packets[RL_UNIT_TEXT] = "", bits[RL_UNIT_TEXT] = "";

	if (terms->action == RL_ACTION_ALLOW)
		return "allow";
	if (terms->action == RL_ACTION_DENY)
		return "deny";
	if (terms->packets_per_hour)
		rl_rate_print_packets(terms->packets_per_hour, packets);
	if (terms->bits_per_second)
		rl_rate_print_bits(terms->bits_per_second, bits);
	return pair(packets, bits, buf);
}

const char *rl_text_bursts(const struct rl_terms *terms, char buf[RL_PAIR_TEXT])
{
	char packets[RL_UNIT_TEXT] = "", bytes[RL_UNIT_TEXT] = "";

	if (terms->burst_packets)
		rl_burst_print_packets(terms->burst_packets, packets);
	if (terms->burst_bytes)
		rl_burst_print_bytes(terms->burst_bytes, bytes);
	return pair(packets, bytes, buf);
}

const char *rl_text_duration(__u64 ns, char buf[RL_DURATION_TEXT])
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
	size_t i = 0;

	while (i + 1 < sizeof(units) / sizeof(units[0]) && (double)ns < units[i].ns)
		i++;
	snprintf(buf, RL_DURATION_TEXT, "%.3g %s", (double)ns / units[i].ns, units[i].name);
	return buf;
}

const char *rl_text_class(const struct rl_terms *terms, char buf[RL_CLASS_TEXT])
{
	buf[0] = '\0';
	return rl_class_is_set(&terms->class) ? rl_class_print(&terms->class, buf) : buf;
}

const char *rl_text_verdict(enum rl_reason reason)
{
	if (rl_reason_shadows(reason))
		return "shadow";
	return rl_reason_drops(reason) ? "drop" : "pass";
}

const char *rl_text_device_state(const struct rl_attached *attached)
{
	if (attached->where == RL_GONE)
		return "gone";
	if (attached->where == RL_MOVED)
		return "moved";
	if (attached->device.flags & RL_DEVICE_PAUSED)
		return "paused";
	return attached->device.flags & RL_DEVICE_SHADOW ? "shadow" : "enforcing";
}

const char *rl_text_device_mode(const struct rl_attached *attached)
{
	const __u32 unusual = RL_DEVICE_PAUSED | RL_DEVICE_SHADOW;

	return attached->where == RL_HERE && !(attached->device.flags & unusual)
		   ? rl_mode_name(attached->device.mode)
		   : rl_text_device_state(attached);
}
