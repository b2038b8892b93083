// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "top_screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "cleanup.h"
#include "grid.h"
#include "view.h"

#define MIN_COLUMNS    40
#define MIN_LINES      8
#define FIRST_INTERVAL 0.25 /* seconds until there is something to see */
#define FILTER_TEXT    64
#define KEY_ESCAPE     27

struct screen {
	struct rl_feed *feed;
	struct rl_top_query query;
	double interval;	  /* seconds */
	double due;		  /* CLOCK_MONOTONIC, of the next refresh */
	char filter[FILTER_TEXT]; /* what query.filter was parsed from */
	char edit[FILTER_TEXT];	  /* the filter being typed */
	char message[256];	  /* on the last line until the next key */
	bool measured;		  /* the feed has two snapshots */
	bool editing;
	bool frozen;
	bool help;
	bool quit;
};

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
}

/* The signals that end top or change its size are let in only while it waits, so none is missed in between.
 */
struct signals {
	sigset_t waiting;
	struct sigaction interrupt, terminate;
};

static void signals_take(struct signals *old)
{
	struct sigaction action = {.sa_handler = stop};
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGWINCH);
	sigprocmask(SIG_BLOCK, &blocked, &old->waiting);
	sigaction(SIGINT, &action, &old->interrupt);
	sigaction(SIGTERM, &action, &old->terminate);
}

static void signals_restore(const struct signals *old)
{
	sigaction(SIGINT, &old->interrupt, NULL);
	sigaction(SIGTERM, &old->terminate, NULL);
	sigprocmask(SIG_SETMASK, &old->waiting, NULL);
}

static double clock_seconds(void)
{
	return (double)rl_clock_ns() / 1e9;
}

/* One line, cut at the right edge: a longer one would go on below. */
static void put_line(int row, attr_t attributes, const char *text)
{
	size_t room = (size_t)COLS, bytes = 0;

	for (const char *c = text; *c && *c != '\n'; c++, bytes++) {
		if (((unsigned char)*c & 0xc0) == 0x80)
			continue;
		if (!room--)
			break;
	}
	attrset(attributes);
	mvaddnstr(row, 0, text, (int)bytes);
	attrset(A_NORMAL);
}

/* Put the lines of a printed table from `row` on, its titles reversed, up to `end`. The row behind it. */
static int put_table(int (*print)(const struct rl_top *top, FILE *out), const struct rl_top *top, bool titled,
		     int row, int end)
{
	char *text = NULL, *rest = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool first = titled;

	if (!out)
		return row;
	print(top, out);
	fclose(out);
	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && row < end;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (first) {
			char bar[512];

			snprintf(bar, sizeof(bar), "%-*s", COLS < 511 ? COLS : 511, line);
			put_line(row++, A_REVERSE, bar);
		} else {
			put_line(row++, A_NORMAL, line);
		}
		first = false;
	}
	free(text);
	return row;
}

static void put_title(const struct screen *screen, const struct rl_top *top)
{
	char text[512], clock[16];
	time_t now = time(NULL);
	struct tm local;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
	snprintf(text, sizeof(text), "rl-agent top  %s%s  by %s  %zu of %zu sources%s%s", clock,
		 screen->frozen ? "  FROZEN" : "", rl_top_by_name(screen->query.by), top->source_count,
		 top->matched, screen->filter[0] ? "  filter " : "", screen->filter);
	put_line(0, A_BOLD, text);
}

static void put_last_line(const struct screen *screen)
{
	const char *keys = "q quit  d/p/b sort by drops, passed, bits  f filter  space freeze  h help";
	char text[512];

	if (screen->editing) {
		snprintf(text, sizeof(text), "filter by prefix or tenant (empty: all): %s", screen->edit);
		put_line(LINES - 1, A_BOLD, text);
		curs_set(1);
		return;
	}
	curs_set(0);
	if (screen->message[0])
		put_line(LINES - 1, A_BOLD, screen->message);
	else
		put_line(LINES - 1, A_DIM, screen->measured ? keys : "measuring ...");
}

static void put_help(int row)
{
	static const char *const lines[] = {
	    "d       sort by dropped packets a second, those in shadow too",
	    "p       sort by passed packets a second",
	    "b       sort by bits a second, passed and dropped",
	    "f or /  show only a prefix's or a tenant's sources; empty: all; Esc: as it was",
	    "space   freeze the picture, or let it go on",
	    "h or ?  this help, or the sources",
	    "q       quit",
	    "",
	    "A source is listed once a limit names it: IPv4 by address, IPv6 by its /64, or as its limit says.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && row < LINES - 1; i++)
		put_line(row++, A_NORMAL, lines[i]);
}

/* The sources' table gets what the rest leaves. */
static void draw_tables(struct screen *screen)
{
	const struct rl_snapshot *before = screen->measured ? &screen->feed->before : &screen->feed->now;
	int devices_end = 2 + (LINES - 4) / 2, row = 2;
	struct rl_top_query query = screen->query;
	RL_TOP struct rl_top top = {};
	size_t devices = screen->feed->now.device_count + 1;
	size_t room = (size_t)(LINES - 5);

	room -= devices < (size_t)(devices_end - 2) ? devices : (size_t)(devices_end - 2);
	if (query.rows > room)
		query.rows = room;
	if (rl_top_compute(before, &screen->feed->now, &query, &top)) {
		put_line(0, A_BOLD, "out of memory");
		return;
	}
	put_title(screen, &top);
	row = put_table(rl_view_top_devices_table, &top, top.device_count, row, devices_end) + 1;
	if (screen->help)
		put_help(row);
	else
		put_table(rl_view_top_sources_table, &top, top.source_count, row, LINES - 1);
}

static void draw(struct screen *screen)
{
	erase();
	if (COLS < MIN_COLUMNS || LINES < MIN_LINES) {
		put_line(0, A_BOLD, "terminal too small");
	} else {
		draw_tables(screen);
		put_last_line(screen);
	}
	refresh();
}

static void apply_filter(struct screen *screen)
{
	struct rl_error err = {};

	if (rl_top_filter_parse(screen->edit, &screen->query.filter, &err)) {
		snprintf(screen->message, sizeof(screen->message), "no such filter: %.230s", err.text);
		return;
	}
	memcpy(screen->filter, screen->edit, sizeof(screen->filter));
}

static void edit_key(struct screen *screen, int key)
{
	size_t length = strlen(screen->edit);

	switch (key) {
	case '\n':
	case '\r':
	case KEY_ENTER:
		screen->editing = false;
		apply_filter(screen);
		break;
	case KEY_ESCAPE:
		screen->editing = false;
		break;
	case KEY_BACKSPACE:
	case '\b':
	case 0x7f:
		if (length)
			screen->edit[length - 1] = '\0';
		break;
	case 'U' - '@': /* control and U, as in a shell: all of it */
		memset(screen->edit, 0, sizeof(screen->edit));
		break;
	default:
		if (key > ' ' && key < 0x7f && length + 1 < sizeof(screen->edit))
			screen->edit[length] = (char)key;
	}
}

static int thaw(struct screen *screen, struct rl_error *err)
{
	screen->frozen = false;
	screen->due = clock_seconds() + screen->interval;
	/* The next picture is to show the interval that comes, not the mean over the time frozen. */
	return rl_feed_next(screen->feed, err);
}

static int command_key(struct screen *screen, int key, struct rl_error *err)
{
	screen->message[0] = '\0';
	switch (key) {
	case 'd':
		screen->query.by = RL_TOP_BY_DROPS;
		break;
	case 'p':
		screen->query.by = RL_TOP_BY_PASSED;
		break;
	case 'b':
		screen->query.by = RL_TOP_BY_BITS;
		break;
	case ' ':
		if (screen->frozen)
			return thaw(screen, err);
		screen->frozen = true;
		break;
	case 'f':
	case '/':
		memset(screen->edit, 0, sizeof(screen->edit));
		screen->editing = true;
		break;
	case 'h':
	case '?':
		screen->help = !screen->help;
		break;
	case 'q':
	case 'Q':
		screen->quit = true;
		break;
	}
	return 0;
}

static int handle_keys(struct screen *screen, struct rl_error *err)
{
	int key, rc = 0;

	while (!rc && !screen->quit && (key = getch()) != ERR) {
		if (key == KEY_RESIZE)
			continue;
		if (screen->editing)
			edit_key(screen, key);
		else
			rc = command_key(screen, key, err);
	}
	return rc;
}

/* Wait for a key, a signal or the next refresh. False where the terminal is gone. */
static bool wait_for_input(const struct screen *screen, const sigset_t *waiting)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	double left = screen->due - clock_seconds();
	struct timespec timeout;

	if (left < 0)
		left = 0;
	timeout.tv_sec = (time_t)left;
	timeout.tv_nsec = (long)((left - (double)timeout.tv_sec) * 1e9);
	if (ppoll(&input, 1, screen->frozen ? NULL : &timeout, waiting) <= 0)
		return true;
	return !(input.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static int loop(struct screen *screen, const sigset_t *waiting, struct rl_error *err)
{
	int rc = 0;

	screen->due =
	    clock_seconds() + (screen->interval < FIRST_INTERVAL ? screen->interval : FIRST_INTERVAL);
	while (!rc && !stopped && !screen->quit) {
		draw(screen);
		if (!wait_for_input(screen, waiting))
			return 0;
		rc = handle_keys(screen, err);
		if (rc || screen->frozen || clock_seconds() < screen->due)
			continue;
		rc = rl_feed_next(screen->feed, err);
		screen->measured = true;
		screen->due = clock_seconds() + screen->interval;
	}
	return rc;
}

static int no_terminal(struct rl_error *err, const char *why)
{
	return rl_error_set(err, RL_ERROR_USAGE, ENOTTY,
			    "top can't fill the screen: %s; use `rl-agent top --once`", why);
}

static int terminal_open(SCREEN **out, struct rl_error *err)
{
	const char *type = getenv("TERM");
	char why[128];
	SCREEN *terminal;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return no_terminal(err, "input or output isn't a terminal");
	setlocale(LC_CTYPE, "");
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal) {
		snprintf(why, sizeof(why), "the terminal's type TERM=%.80s is unknown", type ? type : "");
		return no_terminal(err, why);
	}
	if ((intptr_t)tigetstr("cup") <= 0 /* absent, or no such capability: (char *)-1 */) {
		snprintf(why, sizeof(why), "a terminal of type TERM=%.80s can't place text",
			 type ? type : "");
		endwin();
		delscreen(terminal);
		return no_terminal(err, why);
	}
	if (COLS < MIN_COLUMNS || LINES < MIN_LINES) {
		snprintf(why, sizeof(why), "the terminal has %d columns and %d lines, it takes %d and %d",
			 COLS, LINES, MIN_COLUMNS, MIN_LINES);
		endwin();
		delscreen(terminal);
		return no_terminal(err, why);
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	*out = terminal;
	return 0;
}

int rl_top_screen_run(struct rl_feed *feed, const struct rl_top_query *query, const char *filter,
		      double interval, struct rl_error *err)
{
	struct screen screen = {.feed = feed, .query = *query, .interval = interval};
	struct signals signals;
	SCREEN *terminal = NULL;
	int rc = terminal_open(&terminal, err);

	if (rc)
		return rc;
	if (filter)
		snprintf(screen.filter, sizeof(screen.filter), "%s", filter);
	stopped = 0;
	signals_take(&signals);
	rc = loop(&screen, &signals.waiting, err);
	endwin();
	delscreen(terminal);
	signals_restore(&signals);
	return rc;
}
