// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * send.c - rl-send: put raw frames on a device, for tests and the demonstration.
 *
 *   rl-send --dev veth0 --src 203.0.113.7 --rate 2000 --seconds 10
 *
 * Frames go through an AF_PACKET socket past the queueing discipline, in small batches paced by the clock.
 * Frame i comes from --src number i modulo their count; with --sources N each of them stands for N addresses
 * in a row (/64 networks for IPv6), taken in turn.
 *
 * Ends after --count frames, after --seconds, or at SIGINT or SIGTERM, and prints one JSON line:
 *   {"frames":N,"bytes":N,"retries":N,"first_ns":N,"last_ns":N}
 * first_ns is CLOCK_MONOTONIC just before the first frame, last_ns just after the last one: a limiter that
 * saw these frames may have admitted burst + rate * (last_ns - first_ns) of them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <popt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"

#define BATCH	    64 /* well under a veth ring's 256 */
#define SOURCES_MAX 64
#define NS_PER_S    1000000000ULL

struct options {
	const char *dev;
	const char **src;
	const char **vlan;
	const char *dst, *dst_mac, *src_mac;
	long long sources, rate, count;
	double seconds, model_rate, model_burst;
	int model_bytes;
	int len, pad, sport, dport, proto;
};

/* A frame to copy, and where the fields are that depend on its source. */
struct template
{
	uint8_t frame[RL_FRAME_MAX];
	size_t len;
	size_t source;	/* offset of the 32-bit word that tells sources apart: IPv4's address, IPv6's second
			   word */
	size_t sums[2]; /* offsets of the checksums that cover it */
	int sum_count;
};

struct batch {
	uint8_t frame[BATCH][RL_FRAME_MAX];
	struct iovec iov[BATCH];
	struct mmsghdr msg[BATCH];
};

/* Tokens and the time that they were counted at: on purpose not the arithmetic that is under test. */
struct model {
	double tokens;
	uint64_t time;
	double admitted;
};

struct result {
	uint64_t frames, bytes, retries, first_ns, last_ns;
	struct model model;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void fail(const char *what, const char *which)
{
	fprintf(stderr, "rl-send: %s: %s\n", which, what);
	exit(1);
}

static void parse_mac(const char *text, uint8_t mac[6])
{
	struct ether_addr address;

	if (!ether_aton_r(text, &address))
		fail("not a MAC address", text);
	memcpy(mac, address.ether_addr_octet, 6);
}

static void build_template(const struct options *options, const char *src, struct template *out)
{
	struct rl_frame_spec spec = {
	    .src = src,
	    .dst = options->dst,
	    .proto = (uint8_t)options->proto,
	    .sport = (uint16_t)options->sport,
	    .dport = (uint16_t)options->dport,
	    .len = (size_t)options->len,
	};
	bool v6 = strchr(src, ':');
	uint8_t address[16];
	size_t l3 = 14, l4;
	int tags = 0;

	if (inet_pton(v6 ? AF_INET6 : AF_INET, src, address) != 1)
		fail("not an address", src);
	for (; options->vlan && options->vlan[tags]; tags++) {
		if (tags == 4)
			fail("more than four tags", "--vlan");
		spec.vlan[tags] = (uint16_t)strtoul(options->vlan[tags], NULL, 0);
	}
	if (options->dst_mac)
		parse_mac(options->dst_mac, spec.dst_mac);
	if (options->src_mac)
		parse_mac(options->src_mac, spec.src_mac);
	out->len = rl_frame_build(&spec, out->frame, sizeof(out->frame));
	if (out->len + (size_t)options->pad > sizeof(out->frame))
		fail("too long", "--pad");
	memset(out->frame + out->len, 0, (size_t)options->pad);
	out->len += (size_t)options->pad;

	l3 += 4 * (size_t)tags;
	l4 = l3 + (v6 ? 40 : 20);
	out->source = l3 + 12; /* of either header */
	out->sum_count = 0;
	if (!v6)
		out->sums[out->sum_count++] = l3 + 10;
	if (!options->proto || options->proto == IPPROTO_UDP)
		out->sums[out->sum_count++] = l4 + 6;
	else if (options->proto == IPPROTO_TCP)
		out->sums[out->sum_count++] = l4 + 16;
	else if (v6 && options->proto == IPPROTO_ICMPV6)
		out->sums[out->sum_count++] = l4 + 2;
}

/* RFC 1624: what a checksum becomes when `old` changes to `new` in what it covers. */
static uint16_t update_sum(uint16_t sum, uint32_t old, uint32_t new)
{
	uint32_t s = (uint16_t)~sum;

	s += (uint16_t) ~(old >> 16) + (uint32_t)(uint16_t)~old + (new >> 16) + (new & 0xffff);
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

/* Copy the template's frame with its `index`-th source. */
static void fill(const struct template *template, uint64_t index, uint8_t *frame)
{
	uint32_t old, new;

	memcpy(frame, template->frame, template->len);
	if (!index)
		return;
	memcpy(&old, frame + template->source, sizeof(old));
	old = ntohl(old);
	new = old + (uint32_t)index;
	for (int i = 0; i < template->sum_count; i++) {
		uint16_t sum;

		memcpy(&sum, frame + template->sums[i], sizeof(sum));
		sum = htons(update_sum(ntohs(sum), old, new));
		memcpy(frame + template->sums[i], &sum, sizeof(sum));
	}
	new = htonl(new);
	memcpy(frame + template->source, &new, sizeof(new));
}

static int open_socket(const char *dev)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(dev)};
	int fd, one = 1, size = 4 << 20;

	if (!to.sll_ifindex)
		fail(strerror(errno), dev);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fail(strerror(errno), "AF_PACKET socket");
	if (setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		fail(strerror(errno), "PACKET_QDISC_BYPASS");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&to, sizeof(to)))
		fail(strerror(errno), dev);
	return fd;
}

/* How many frames may have been sent by now; at most a batch. 0: too early. */
static int frames_due(const struct options *options, uint64_t sent, uint64_t elapsed)
{
	uint64_t due = BATCH;

	if (options->rate) {
		due = 1 + (uint64_t)((unsigned __int128)elapsed * (uint64_t)options->rate / NS_PER_S);
		due = due > sent ? due - sent : 0;
	}
	if (options->count && (uint64_t)options->count - sent < due)
		due = (uint64_t)options->count - sent;
	return due < BATCH ? (int)due : BATCH;
}

static bool is_done(const struct options *options, uint64_t sent, uint64_t elapsed)
{
	if (stopped || (options->count && sent >= (uint64_t)options->count))
		return true;
	return options->seconds > 0 && (double)elapsed >= options->seconds * (double)NS_PER_S;
}

/* Sleep until frame number `sent` is due, and at least as long that a timer is worth it. */
static void sleep_until_due(const struct options *options, uint64_t start, uint64_t sent)
{
	uint64_t at = start + (uint64_t)((unsigned __int128)sent * NS_PER_S / (uint64_t)options->rate) + 1;
	uint64_t soonest = now_ns() + 50000;
	struct timespec ts;

	if (at < soonest)
		at = soonest;
	if (options->seconds > 0 && at > start + (uint64_t)(options->seconds * (double)NS_PER_S))
		at = start + (uint64_t)(options->seconds * (double)NS_PER_S);
	ts.tv_sec = (time_t)(at / NS_PER_S);
	ts.tv_nsec = (long)(at % NS_PER_S);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Returns how many of the batch's first n frames went out; a full queue is waited for. */
static int send_batch(int fd, struct batch *batch, int n, struct result *result)
{
	int done = 0;

	while (done < n && !stopped) {
		int sent = sendmmsg(fd, batch->msg + done, (unsigned int)(n - done), 0);

		if (sent > 0) {
			done += sent;
		} else if (errno == ENOBUFS || errno == EAGAIN) {
			result->retries++;
			usleep(50);
		} else if (errno != EINTR) {
			fail(strerror(errno), "send");
		}
	}
	return done;
}

static void model_admit(const struct options *options, struct model *model, uint64_t now, size_t len)
{
	double cost = options->model_bytes ? (double)len : 1;

	model->tokens += options->model_rate * (double)(now - model->time) / (double)NS_PER_S;
	model->time = now;
	if (model->tokens > options->model_burst)
		model->tokens = options->model_burst;
	if (model->tokens < cost)
		return;
	model->tokens -= cost;
	model->admitted += cost;
}

static void run(const struct options *options, const struct template *templates, uint64_t count,
		struct batch *batch, struct result *result)
{
	uint64_t sources = (uint64_t)options->sources;
	int fd = open_socket(options->dev);

	result->first_ns = now_ns();
	result->last_ns = result->first_ns;
	result->model = (struct model){.tokens = options->model_burst, .time = result->first_ns};
	while (!is_done(options, result->frames, now_ns() - result->first_ns)) {
		uint64_t now = now_ns();
		int n = frames_due(options, result->frames, now - result->first_ns), sent;

		if (!n) {
			sleep_until_due(options, result->first_ns, result->frames);
			continue;
		}
		for (int i = 0; i < n; i++) {
			uint64_t number = result->frames + (uint64_t)i;
			const struct template *template = &templates[number % count];

			fill(template, number / count % sources, batch->frame[i]);
			batch->iov[i] = (struct iovec){batch->frame[i], template->len};
			batch->msg[i].msg_hdr = (struct msghdr){.msg_iov = &batch->iov[i], .msg_iovlen = 1};
		}
		sent = send_batch(fd, batch, n, result);
		for (int i = 0; i < sent; i++) {
			result->bytes += batch->iov[i].iov_len;
			model_admit(options, &result->model, now, batch->iov[i].iov_len);
		}
		result->frames += (uint64_t)sent;
		result->last_ns = now_ns();
	}
	close(fd);
}

static void parse_options(int argc, const char **argv, struct options *options)
{
	const struct poptOption table[] = {
	    {"dev", 'd', POPT_ARG_STRING, &options->dev, 0, "send on this device", "DEV"},
	    {"src", 's', POPT_ARG_ARGV, &options->src, 0, "source address; repeat for more", "ADDR"},
	    {"sources", 'n', POPT_ARG_LONGLONG, &options->sources, 0, "addresses from each --src on", "N"},
	    {"rate", 'r', POPT_ARG_LONGLONG, &options->rate, 0, "frames a second; 0: as fast as possible",
	     "PPS"},
	    {"seconds", 't', POPT_ARG_DOUBLE, &options->seconds, 0, "stop after this time", "S"},
	    {"count", 'c', POPT_ARG_LONGLONG, &options->count, 0, "stop after this many frames", "N"},
	    {"len", 'l', POPT_ARG_INT, &options->len, 0, "length of the frame", "BYTES"},
	    {"pad", 0, POPT_ARG_INT, &options->pad, 0, "bytes more behind the packet, as padding", "BYTES"},
	    {"vlan", 0, POPT_ARG_ARGV, &options->vlan, 0, "tag (0x8100, 0x88a8), outermost first; repeat",
	     "TPID"},
	    {"dst", 0, POPT_ARG_STRING, &options->dst, 0, "destination address", "ADDR"},
	    {"dst-mac", 0, POPT_ARG_STRING, &options->dst_mac, 0, "destination MAC address", "MAC"},
	    {"src-mac", 0, POPT_ARG_STRING, &options->src_mac, 0, "source MAC address", "MAC"},
	    {"proto", 0, POPT_ARG_INT, &options->proto, 0, "IP protocol (17)", "N"},
	    {"model-rate", 0, POPT_ARG_DOUBLE, &options->model_rate, 0, "tokens a second of the model", "N"},
	    {"model-burst", 0, POPT_ARG_DOUBLE, &options->model_burst, 0, "tokens that the model holds", "N"},
	    {"model-bytes", 0, POPT_ARG_NONE, &options->model_bytes, 0, "a token is a byte, not a packet",
	     NULL},
	    {"sport", 0, POPT_ARG_INT, &options->sport, 0, "source port", "PORT"},
	    {"dport", 0, POPT_ARG_INT, &options->dport, 0, "destination port", "PORT"},
	    POPT_AUTOHELP POPT_TABLEEND};
	poptContext context = poptGetContext("rl-send", argc, argv, table, 0);
	int rc = poptGetNextOpt(context);

	if (rc < -1)
		fail(poptStrerror(rc), poptBadOption(context, 0));
	if (poptPeekArg(context))
		fail("unexpected word", poptPeekArg(context));
	if (!options->dev || !options->src)
		fail("needed", "--dev and --src");
	if (options->sources < 1 || options->rate < 0 || options->count < 0 || options->seconds < 0 ||
	    options->len < 0 || options->len > RL_FRAME_MAX || options->pad < 0 ||
	    options->pad > RL_FRAME_MAX)
		fail("out of range", "a number");
	poptFreeContext(context);
}

int main(int argc, const char **argv)
{
	static struct template templates[SOURCES_MAX];
	static struct batch batch;
	struct options options = {.sources = 1};
	struct sigaction action = {.sa_handler = on_signal};
	struct result result = {};
	uint64_t count = 0;

	parse_options(argc, argv, &options);
	for (; options.src[count]; count++) {
		if (count == SOURCES_MAX)
			fail("too many", "--src");
		build_template(&options, options.src[count], &templates[count]);
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (count)
		run(&options, templates, count, &batch, &result);
	printf("{\"frames\":%llu,\"bytes\":%llu,\"retries\":%llu,\"first_ns\":%llu,\"last_ns\":%llu,"
	       "\"expected\":%.0f}\n",
	       (unsigned long long)result.frames, (unsigned long long)result.bytes,
	       (unsigned long long)result.retries, (unsigned long long)result.first_ns,
	       (unsigned long long)result.last_ns, result.model.admitted);
	return 0;
}
