// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tcp.c - rl-tcp: one TCP flow, as fast as it goes, and what arrived of it.
 *
 *   rl-tcp --listen --skip 2 --seconds 5           takes one connection, reads, then prints a JSON line:
 *   {"bytes":N,"segments":N,"first_ns":N,"last_ns":N}
 *   rl-tcp --to 192.0.2.2 --congestion cubic       sends until it is told to stop, or the other end has enough, then
 *   {"bytes":N,"retransmitted":N,"mss":N,"window":N,"rtt_us":N}
 *
 * bytes are those of the payload, in order and without what came twice. The listener doesn't count its first --skip
 * seconds, in which the sender finds its speed. first_ns and last_ns are CLOCK_MONOTONIC at the reads that begin and
 * end what is counted, so a process that was held up reports a longer time and not a lower count.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <popt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL

struct options {
	const char *to, *congestion;
	double skip, seconds;
	int listen, port;
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
	fprintf(stderr, "rl-tcp: %s: %s\n", which, what);
	exit(1);
}

static struct tcp_info read_info(int fd)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		fail(strerror(errno), "TCP_INFO");
	return info;
}

/* Both families: an IPv4 client comes as ::ffff:192.0.2.1. */
static int accept_one(const struct options *options)
{
	struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)options->port)};
	int server = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, off = 0, fd;

	if (server < 0)
		fail(strerror(errno), "socket");
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(server, (struct sockaddr *)&here, sizeof(here)) || listen(server, 1))
		fail(strerror(errno), "listen");
	fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		fail(strerror(errno), "accept");
	close(server);
	return fd;
}

static void take(const struct options *options)
{
	static char buf[1 << 20];
	uint64_t bytes = 0, first = 0, last = 0, begin, segments = 0;
	int fd = accept_one(options);
	ssize_t got;

	begin = now_ns() + (uint64_t)(options->skip * (double)NS_PER_S);
	while (!stopped && (got = read(fd, buf, sizeof(buf))) > 0) {
		last = now_ns();
		if (first) {
			bytes += (uint64_t)got;
		} else if (last >= begin) {
			first = last;
			segments = read_info(fd).tcpi_data_segs_in;
		}
		if (first && (double)(last - first) >= options->seconds * (double)NS_PER_S)
			break;
	}
	if (!first)
		fail("ended before --skip was over", "connection");
	segments = read_info(fd).tcpi_data_segs_in - segments;
	close(fd);
	printf("{\"bytes\":%llu,\"segments\":%llu,\"first_ns\":%llu,\"last_ns\":%llu}\n",
	       (unsigned long long)bytes, (unsigned long long)segments, (unsigned long long)first,
	       (unsigned long long)last);
}

static int connect_to(const struct options *options)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *address;
	char port[16];
	int fd, error;

	snprintf(port, sizeof(port), "%d", options->port);
	error = getaddrinfo(options->to, port, &hints, &address);
	if (error)
		fail(gai_strerror(error), options->to);
	fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fail(strerror(errno), "socket");
	if (options->congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options->congestion,
					      (socklen_t)strlen(options->congestion)))
		fail(strerror(errno), options->congestion);
	if (connect(fd, address->ai_addr, address->ai_addrlen))
		fail(strerror(errno), options->to);
	freeaddrinfo(address);
	return fd;
}

static void give(const struct options *options)
{
	static const char buf[1 << 16];
	int fd = connect_to(options);
	struct tcp_info info;
	uint64_t bytes = 0;
	ssize_t sent;

	while (!stopped && (sent = send(fd, buf, sizeof(buf), MSG_NOSIGNAL)) > 0)
		bytes += (uint64_t)sent;
	info = read_info(fd);
	close(fd);
	printf("{\"bytes\":%llu,\"retransmitted\":%u,\"mss\":%u,\"window\":%u,\"rtt_us\":%u}\n",
	       (unsigned long long)bytes, info.tcpi_total_retrans, info.tcpi_snd_mss, info.tcpi_snd_cwnd,
	       info.tcpi_rtt);
}

static void parse_options(int argc, const char **argv, struct options *options)
{
	const struct poptOption table[] = {
	    {"listen", 0, POPT_ARG_NONE, &options->listen, 0, "take one connection and count", NULL},
	    {"to", 0, POPT_ARG_STRING, &options->to, 0, "connect and send", "ADDR"},
	    {"port", 'p', POPT_ARG_INT, &options->port, 0, "port (7000)", "PORT"},
	    {"skip", 0, POPT_ARG_DOUBLE, &options->skip, 0, "listener: don't count this long", "S"},
	    {"seconds", 't', POPT_ARG_DOUBLE, &options->seconds, 0, "listener: then count this long", "S"},
	    {"congestion", 0, POPT_ARG_STRING, &options->congestion, 0, "sender: how it avoids congestion",
	     "NAME"},
	    POPT_AUTOHELP POPT_TABLEEND};
	poptContext context = poptGetContext("rl-tcp", argc, argv, table, 0);
	int rc = poptGetNextOpt(context);

	if (rc < -1)
		fail(poptStrerror(rc), poptBadOption(context, 0));
	if (poptPeekArg(context))
		fail("unexpected word", poptPeekArg(context));
	if (!options->listen == !options->to)
		fail("one of them is needed", "--listen, --to");
	if (options->port < 1 || options->port > 65535 || options->skip < 0 || options->seconds < 0)
		fail("out of range", "a number");
	poptFreeContext(context);
}

int main(int argc, const char **argv)
{
	struct options options = {.port = 7000, .seconds = 5};
	struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART: ends what waits */

	parse_options(argc, argv, &options);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (options.listen)
		take(&options);
	else
		give(&options);
	return 0;
}
