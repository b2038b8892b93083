// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "world.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/limit.h"
#include "../lib/frame.h"

static inline __u64 rl_now(void)
{
	return world.clock;
}

#include "../../bpf/rl_ref.h"
#include "../../bpf/rl_table.h"

struct world world;
__u32 world_slices;
struct rl_limit world_limits[2 * SLOTS];
struct rl_table world_table = {.seed = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b}, .regions = 1};
__u32 world_rows[2];
struct rl_device world_device;
struct world_source world_source[WORLD_SOURCES];
struct world_packet world_packet[WORLD_PACKETS];
int world_packets;
__u64 world_fast;

_Static_assert(sizeof(struct world) <= SCHEDULE_SHARED, "the world is what CPUs share");

static const struct subject *under_test;
static enum world_path way;
static __u8 family_of_all; /* of the sources */
static struct rl_job jobs[SCHEDULE_CPUS];

static __u32 id_of(enum world_slot slot)
{
	if (slot == SLOT_OTHER)
		return (100 + SLOT_SOURCE) ^ (__u32)world_source[0].number ^ (__u32)world_source[1].number;
	return 100 + slot;
}

static __u32 cell_of(enum world_slot slot, int version)
{
	return (__u32)(version * SLOTS) + slot;
}

const struct rl_limit *world_version(enum world_slot slot, int version)
{
	return &world_limits[cell_of(slot, version)];
}

/* --- sources --- */

/* The n-th source of a family: an IPv4 address, or an IPv6 /64. */
static void source_make(__u8 family, __u32 n, struct world_source *out)
{
	memset(out, 0, sizeof(*out));
	if (family == 4) {
		out->addr[0] = 10;
		out->addr[1] = (__u8)(n >> 16);
		out->addr[2] = (__u8)(n >> 8);
		out->addr[3] = (__u8)n;
	} else {
		out->addr[0] = 0x20;
		out->addr[5] = (__u8)(n >> 16);
		out->addr[6] = (__u8)(n >> 8);
		out->addr[7] = (__u8)n;
	}
	out->number = rl_table_number(&world_table, family, out->addr);
}

static void frame_make(__u8 family, enum world_path path, struct world_source *source)
{
	uint8_t frame[RL_FRAME_MAX];
	char text[INET6_ADDRSTRLEN];
	struct rl_frame_spec spec = {.src = text, .version = path == PATH_GENERAL ? 15 : 0};

	inet_ntop(family == 4 ? AF_INET : AF_INET6, source->addr, text, sizeof(text));
	source->len = (__u32)rl_frame_build(&spec, frame, sizeof(frame));
	if (source->len > sizeof(source->frame[path]))
		abort();
	memcpy(source->frame[path], frame, source->len);
}

static __u64 key_of(int source, enum world_slot slot)
{
	return rl_table_key(id_of(slot), family_of_all, world_source[source].number);
}

/* Could what the number differs by from the first one's be the difference of two ids (id_of)? */
static bool differs_like_ids(__u64 number)
{
	return (((__u32)number ^ (__u32)world_source[0].number) & ~(RL_MOST_IDS - 1)) == 0;
}

/* Sources that all belong to the same two rows, in this order. */
static void sources_make(__u8 family)
{
	int found = 0;

	for (__u32 n = 256; found < WORLD_SOURCES; n++) {
		struct world_source *source = &world_source[found];
		struct rl_rows rows;

		source_make(family, n, source);
		rows = rl_table_rows(&world_table, world_table.regions, source->number);
		if (!found)
			memcpy(world_rows, rows.row, sizeof(world_rows));
		if (memcmp(world_rows, rows.row, sizeof(world_rows)) != 0 ||
		    !differs_like_ids(source->number))
			continue;
		found++;
	}
	world_source[NEIGHBOUR] = world_source[0];
	world_source[NEIGHBOUR].addr[family == 6 ? 15 : 3] = 1;
	for (int i = 0; i < WORLD_SOURCES; i++)
		for (enum world_path path = PATH_GENERAL; path < PATHS; path++)
			frame_make(family, path, &world_source[i]);
}

/* --- the policy --- */

void world_open(__u8 family, enum world_path path, const struct subject *subject)
{
	under_test = subject;
	way = path;
	world_fast = 0;
	world_device = (struct rl_device){.flags = RL_DEVICE_ATTACHED};
	memset(world_limits, 0, sizeof(world_limits));
	family_of_all = family;
	sources_make(family);
}

static struct rl_target target_of(enum world_slot slot)
{
	struct rl_target target = {.kind = RL_TARGET_PREFIX};

	if (slot == SLOT_TENANT) {
		target.kind = RL_TARGET_TENANT;
		strcpy(target.name, "acme");
	}
	if (slot == SLOT_NEW)
		target.kind = RL_TARGET_NEW;
	if (slot == SLOT_DEVICE) {
		target.kind = RL_TARGET_DEVICE;
		strcpy(target.name, "eth0");
	}
	return target;
}

void world_limit(enum world_slot slot, int version, __u64 packets_per_hour, __u64 burst, __u64 change)
{
	struct rl_terms terms = RL_TERMS_INIT;
	struct rl_target target = target_of(slot);
	struct rl_limit *limit = &world_limits[cell_of(slot, version)];
	struct rl_error err = {0};

	terms.packets_per_hour = packets_per_hour;
	terms.burst_packets = burst;
	if (rl_terms_complete(&target, &terms, &err) ||
	    rl_limit_compute(&target, &terms, version ? &world_limits[cell_of(slot, 0)] : NULL, id_of(slot),
			     slot, change, limit, &err)) {
		fprintf(stderr, "interleave: %s\n", err.text);
		exit(2);
	}
	if (slot == SLOT_TENANT)
		world_limits[cell_of(SLOT_SOURCE, 0)].tenant = SLOT_TENANT;
	if (slot == SLOT_DEVICE)
		world_device.limit = SLOT_DEVICE;
}

/* --- the beginning --- */

void world_begin(void)
{
	memset(&world, 0, sizeof(world));
	world_packets = 0;
	world.clock = WORLD_START;
	world.settings.when_full = RL_FULL_CLOSED;
	for (enum world_slot slot = SLOT_SOURCE; slot < SLOTS; slot++) {
		if (!world_limits[cell_of(slot, 0)].id || slot == SLOT_INNER)
			continue;
		world.head[slot] = rl_ref(cell_of(slot, 0));
		world.own[slot].key = id_of(slot);
		if (way == PATH_FAST && (slot == SLOT_TENANT || slot == SLOT_DEVICE))
			world_charge(&world.own[slot].buckets, slot, WORLD_START, WORLD_START);
	}
	for (int i = 0; i < WORLD_SOURCES; i++)
		world.policy[i] = SLOT_SOURCE;
	if (world.head[SLOT_NEW])
		world.settings.fresh = SLOT_NEW;
}

void world_charge(struct rl_buckets *buckets, enum world_slot slot, __u64 charged, __u64 full)
{
	const struct rl_limit *limit = world_version(slot, 0);

	buckets->version = rl_bucket_version(limit);
	buckets->word[RL_PACKETS] = rl_gcra_time(&limit->rate[RL_PACKETS], full) | rl_gcra_tag(limit->gen);
	buckets->stamp = (__u32)(charged >> RL_GCRA_STAMP);
}

void world_settle(int i, int source, __u64 charged, __u64 full)
{
	struct rl_row *row = &world.row[i / RL_ROW];

	row->key[i % RL_ROW] = source < 0 ? 1 + (__u64)i : key_of(source, SLOT_SOURCE);
	if (source >= 0)
		memcpy(world.address[i / RL_ROW].addr[i % RL_ROW], world_source[source].addr, 16);
	world_charge(&row->at[i % RL_ROW].buckets, SLOT_SOURCE, charged, full);
	row->at[i % RL_ROW].buckets.known = rl_known(0, row->key[i % RL_ROW]);
}

static __u64 place_number(int i)
{
	return rl_place_number(world_rows[i / RL_ROW], (__u32)i % RL_ROW);
}

void world_pend(int cpu, int i, __u64 drops)
{
	world.pending[cpu] = (struct rl_pending){
	    .place = place_number(i), .key = world.row[i / RL_ROW].key[i % RL_ROW], .dropped.packets = drops};
}

void world_occupy(int from)
{
	for (int i = from; i < 2 * RL_ROW; i++)
		world_settle(i, -1, WORLD_START, WORLD_START + 60 * WORLD_MINUTE);
}

/* --- what CPUs do --- */

void world_offer(int source, int count)
{
	const struct world_source *from = &world_source[source];
	struct rl_job *job = &jobs[schedule_cpu()];

	while (count--) {
		struct world_packet packet = {
		    .cpu = schedule_cpu(), .source = source, .epoch = world.settings.epoch};

		memset(job, 0xa5, sizeof(*job)); /* of any content */
		job->count = 0;			 /* rl_fast.h leaves it alone */
		packet.reason = under_test->packet(job, from->frame[way], from->len);
		packet.now = job->now;
		packet.fast = !job->count;
		packet.slot = packet.fast ? job->tier[0].slot : job->hold[0].slot;
		world_fast += packet.fast;
		if (world_packets == WORLD_PACKETS)
			abort();
		world_packet[world_packets++] = packet;
	}
}

void world_wait(__u64 ns)
{
	schedule_before_write(&world.clock, sizeof(world.clock));
	world.clock += ns;
}

static void set(__u32 *word, __u32 value)
{
	schedule_before_write(word, sizeof(*word));
	*word = value;
}

static void set_head(enum world_slot slot, __u64 ref)
{
	schedule_before_write(&world.head[slot], sizeof(world.head[slot]));
	world.head[slot] = ref;
}

void world_switch(enum world_slot slot)
{
	set_head(slot, rl_ref(cell_of(slot, 1)));
}

void world_enter(int source)
{
	__u32 around = cell_of(SLOT_SOURCE, 0), inner = cell_of(SLOT_INNER, 0),
	      next = world.settings.epoch + 1;

	set_head(SLOT_INNER, rl_ref_staged(around, inner, next));
	if (source == NEIGHBOUR)
		set(&world.settings.split, 1);
	set(&world.policy[source], SLOT_INNER);
	set(&world.settings.epoch, next);
	set_head(SLOT_INNER, rl_ref(inner));
}

void world_settle_other(__u64 charged)
{
	world.policy[0] = SLOT_OTHER;
	world_settle(0, 0, charged, charged);
	world.row[0].key[0] = key_of(0, SLOT_OTHER);
	world_charge(&world.row[0].at[0].buckets, SLOT_OTHER, charged, charged);
	world.row[0].at[0].buckets.known = rl_known(0, world.row[0].key[0]);
}

/* --- what became of it --- */

static bool counts(const struct world_packet *packet, int source)
{
	return (source < 0 || packet->source == source) && !rl_reason_drops(packet->reason);
}

int world_passed(int source)
{
	int passed = 0;

	for (int i = 0; i < world_packets; i++)
		passed += counts(&world_packet[i], source);
	return passed;
}

/* The source's place, 0 to 15, or -1; and how many it has. */
static int place_of(int source, int *places)
{
	__u64 key = key_of(source, world.policy[source]);
	int found = -1;

	*places = 0;
	for (int i = 0; i < 2 * RL_ROW; i++) {
		if (world.row[i / RL_ROW].key[i % RL_ROW] != key)
			continue;
		found = i;
		++*places;
	}
	return found;
}

const struct rl_buckets *world_buckets(int source, int *places)
{
	int place = place_of(source, places);

	return place < 0 ? NULL : &world.row[place / RL_ROW].at[place % RL_ROW].buckets;
}

bool world_tally(int source, struct rl_tally *out)
{
	int places, place = place_of(source, &places);
	const struct rl_row *row = place < 0 ? NULL : &world.row[place / RL_ROW];

	if (!row)
		return false;
	*out = (struct rl_tally){.passed = row->at[place % RL_ROW].passed,
				 .dropped = row->at[place % RL_ROW].dropped};
	for (int cpu = 0; cpu < SCHEDULE_CPUS; cpu++)
		if (world.pending[cpu].key == row->key[place % RL_ROW] &&
		    world.pending[cpu].place == place_number(place))
			out->dropped.packets += world.pending[cpu].dropped.packets;
	return true;
}

static const struct rl_limit *in_force(enum world_slot slot)
{
	return &world_limits[rl_ref_cell(world.head[slot], world.settings.epoch)];
}

/* In the order of their clocks: charged with the same packets in any other one, a bucket owes as much or more. */
__u64 world_ideal(int source, enum world_slot slot, __u64 tat)
{
	const struct rl_rate *rate = &in_force(slot)->rate[RL_PACKETS];
	__u64 full = rl_gcra_time(rate, tat), cost = rl_gcra_cost(rate, 1), last = 0;

	for (int left = world_passed(source); left;) {
		__u64 next = ~0ULL;

		for (int i = 0; i < world_packets; i++)
			if (counts(&world_packet[i], source) && world_packet[i].now > last &&
			    world_packet[i].now < next)
				next = world_packet[i].now;
		for (int i = 0; i < world_packets; i++) {
			__u64 t = rl_gcra_time(rate, next);

			if (!counts(&world_packet[i], source) || world_packet[i].now != next)
				continue;
			full = (full > t ? full : t) + cost;
			left--;
		}
		last = next;
	}
	return full > rl_gcra_time(rate, world.clock)
		   ? (full - rl_gcra_time(rate, world.clock)) >> rate->shift
		   : 0;
}

__u64 world_owed(const struct rl_buckets *buckets, enum world_slot slot)
{
	const struct rl_limit *limit = in_force(slot);
	struct rl_bucket seen = rl_bucket_load(buckets, RL_PACKETS);

	return rl_gcra_owes(limit, RL_PACKETS, &seen, world.clock) >> limit->rate[RL_PACKETS].shift;
}

static const char *buckets_part(size_t offset)
{
	if (offset < offsetof(struct rl_buckets, version))
		return offset < sizeof(__u64) ? "the word of packets" : "the word of bytes";
	if (offset < offsetof(struct rl_buckets, stamp))
		return "the version";
	return offset < offsetof(struct rl_buckets, known) ? "the stamp" : "known";
}

static bool row_is_tally(size_t in)
{
	return in >= offsetof(struct rl_row, shadow) ||
	       (in >= offsetof(struct rl_row, at) &&
		(in - offsetof(struct rl_row, at)) % sizeof(struct rl_row_place) >=
		    sizeof(struct rl_buckets));
}

bool world_is_tally(size_t offset)
{
	size_t in = offset - offsetof(struct world, row);

	return (offset >= offsetof(struct world, pending) && offset < offsetof(struct world, row)) ||
	       (in < sizeof(world.row) && row_is_tally(in % sizeof(struct rl_row)));
}

static void describe_row(size_t offset, char text[SCHEDULE_TEXT])
{
	size_t row = offset / sizeof(struct rl_row), in = offset % sizeof(struct rl_row),
	       place = in - offsetof(struct rl_row, at);

	if (row_is_tally(in))
		strcpy(text, "a tally");
	else if (in < offsetof(struct rl_row, at))
		snprintf(text, SCHEDULE_TEXT, "the key of place %zu", row * RL_ROW + in / sizeof(__u64));
	else
		snprintf(text, SCHEDULE_TEXT, "%s of place %zu",
			 buckets_part(place % sizeof(struct rl_row_place)),
			 row * RL_ROW + place / sizeof(struct rl_row_place));
}

void world_describe(size_t offset, char text[SCHEDULE_TEXT])
{
	if (offset < offsetof(struct world, settings))
		strcpy(text, "the clock");
	else if (offset < offsetof(struct world, head))
		strcpy(text, "the settings");
	else if (offset < offsetof(struct world, policy))
		strcpy(text, "a head");
	else if (offset < offsetof(struct world, lock))
		strcpy(text, "the policy");
	else if (offset < offsetof(struct world, own))
		strcpy(text, "a lock");
	else if (offset >= offsetof(struct world, pending) && offset < offsetof(struct world, row))
		strcpy(text, "what is pending");
	else if (offset < offsetof(struct world, row))
		snprintf(text, SCHEDULE_TEXT, "own bucket %zu",
			 (offset - offsetof(struct world, own)) / sizeof(struct rl_source));
	else if (offset < offsetof(struct world, address))
		describe_row(offset - offsetof(struct world, row), text);
	else
		strcpy(text, "an address");
}
