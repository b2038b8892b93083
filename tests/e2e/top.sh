#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Watching: top and list are right, and come to an end, whatever happens in the table while they read it.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

test_reading_ends_and_is_right_while_sources_come_and_go() {
	local flood i top
	net_make
	# A table much smaller than the flood: entries are evicted under the reader all the time.
	agent attach --max-sources 10k "$DEV"
	agent set-limit 203.0.113.7 --rate 1/h --burst 5
	agent set-limit any --rate 10pps
	send --src 203.0.113.7 --count 20
	start_send --src 10.0.0.0 --sources 16000000 --seconds 60 >"$E2E_TMP/flood"
	flood=$PID
	for i in 1 2 3 4; do
		top=$(timeout 10 nsenter --net="/run/netns/$RX" "$AGENT" top --once --json -n 20000) || fail "top didn't end"
		assert_eq "the source that was there before" \
			"$(jq -c '[.sources[] | select(.source == "203.0.113.7") | .passed.packets, .dropped.packets]' <<<"$top")" '[5,15]'
		assert_eq "sources shown twice" "$(jq '[.sources[].source] | length - (unique | length)' <<<"$top")" 0
		assert_eq "sources from nowhere" "$(jq '[.sources[] | select(.source | test("^(10\\.|203\\.0\\.113\\.7$|0\\.|11\\.)") | not)] |
			length' <<<"$top")" 0
		timeout 10 nsenter --net="/run/netns/$RX" "$AGENT" list >"$E2E_TMP/list" || fail "list didn't end"
		assert_match "list" "$(cat "$E2E_TMP/list")" '203\.0\.113\.7'
		timeout 10 nsenter --net="/run/netns/$RX" "$AGENT" stats >/dev/null || fail "stats didn't end"
	done
	stop "$flood"
	assert_all_counted
	note "$(jq .frames "$E2E_TMP/flood") frames of as many sources meanwhile"
}

test_100000_sources_are_read_in_time() {
	local start end i best=999999
	net_make
	agent attach "$DEV"
	agent set-limit any --rate 10pps
	send --src 10.0.0.0 --sources 100000 --rate 200000 --count 100000
	assert_all_counted
	assert_eq "sources" "$(agent top --once --json | jq .sources_tracked)" "$(frames_received)"
	for _ in 1 2 3; do
		start=$(date +%s%N)
		agent top --once --json >/dev/null
		end=$(date +%s%N)
		i=$(((end - start) / 1000000 - 1000))
		[ "$i" -ge "$best" ] || best=$i
	done
	# top reads twice, a second apart, so twice the time that a refresh may take.
	note "$((best / 2)) ms a refresh"
	assert_between "ms for two readings" "$best" 0 400
}

test_rates_are_those_of_the_interval() {
	local sender top
	net_make
	attach
	agent set-limit any --rate 1000pps --burst 16
	start_send --src 203.0.113.7 --src 203.0.113.8 --rate 4000 --seconds 8
	sender=$PID
	sleep 1
	top=$(agent top --once --json)
	assert_between "passed a second" "$(jq '.sources[0].passed_pps' <<<"$top")" 950 1050
	assert_between "dropped a second" "$(jq '.sources[0].dropped_pps' <<<"$top")" 900 1100
	for by in drops passed bits; do
		expect 0 agent top --once --by "$by"
		assert_match "top --by $by" "$OUT" '203\.0\.113\.8'
	done
	expect 1 agent top --once --by nonsense
	stop "$sender"
}

# ---- the full screen, in a terminal of its own ----

screen() { tmux -L e2e capture-pane -p; }
shows() { screen | grep -q -- "$1"; }
hides() { ! shows "$1"; }
keys() { tmux -L e2e send-keys "$@"; }
title() { screen | head -1; }
title_is_not() { [ "$(title)" != "$1" ]; }
titled() { grep -q -- "$1" <<<"$(title)"; }

open_top() { # [words for the command line]
	command -v tmux >/dev/null || skip "tmux isn't installed"
	export TMUX_TMPDIR=$E2E_TMP
	tmux -L e2e -f /dev/null new-session -d -x 110 -y 30 \
		"nsenter --net=/run/netns/$RX $AGENT top $*; echo top ended with \$?; sleep 20"
}

close_top() {
	keys q
	wait_for 5 shows 'top ended with 0'
	tmux -L e2e kill-server
}

test_the_full_screen_shows_sources_and_quits() {
	local sender
	net_make
	attach
	agent set-limit any --rate 1000pps
	start_send --src 203.0.113.7 --src 2001:db8::7 --rate 4000 --seconds 20 >/dev/null
	sender=$PID
	open_top
	wait_for 5 shows '203\.0\.113\.7'
	wait_for 5 shows '2001:db8:'
	shows "$DEV" || fail "no totals of the device"
	screen
	tmux -L e2e resize-window -x 60 -y 12
	sleep 1.5
	screen
	close_top
	stop "$sender"
}

# Three sources, each the first in one order: most dropped, most passed, most bits.
MOST_DROPPED=203.0.113.7 MOST_PASSED=198.51.100.9 MOST_BITS=192.0.2.44
open_top_on_three() {
	net_make
	attach
	agent set-limit any --rate 1000pps
	agent set-limit 198.51.100.0/24 --rate 2000pps --tenant acme
	start_send --src "$MOST_DROPPED" --rate 4000 --seconds 30 >/dev/null
	start_send --src "$MOST_PASSED" --rate 2500 --seconds 30 >/dev/null
	start_send --src "$MOST_BITS" --len 1400 --rate 900 --seconds 30 >/dev/null
	open_top --interval 0.5
	wait_for 5 titled '3 of 3 sources'
	wait_for 5 shows "$MOST_BITS"
}

# The rows below the titles, and the first of them.
sources() { screen | awk '/^SOURCE/ { on = 1; next } !NF { on = 0 } on { print $1 }' | paste -sd' '; }
begins_with() { [[ "$(sources) " == "$1 "* ]]; }
lists() { [ "$(sources | tr ' ' '\n' | sort | paste -sd' ')" = "$1" ]; }

test_keys_choose_the_order() {
	open_top_on_three
	wait_for 5 begins_with "$MOST_DROPPED"
	titled 'by drops' || fail "the first order is that of drops: $(title)"
	keys p
	wait_for 5 titled 'by passed'
	wait_for 5 begins_with "$MOST_PASSED"
	keys b
	wait_for 5 titled 'by bits'
	wait_for 5 begins_with "$MOST_BITS"
	keys d
	wait_for 5 titled 'by drops'
	wait_for 5 begins_with "$MOST_DROPPED"
	keys x # which says nothing
	sleep 0.6
	titled 'by drops' || fail "a key without a meaning changed something: $(title)"
	close_top
}

test_space_freezes_the_picture_and_lets_it_go_on() {
	local before
	open_top_on_three
	wait_for 5 begins_with "$MOST_DROPPED"
	keys Space
	wait_for 5 titled FROZEN
	before=$(screen)
	sleep 1.6
	assert_eq "the frozen picture" "$(screen)" "$before"
	# Another order of what was measured.
	keys p
	wait_for 5 titled 'FROZEN.*by passed'
	begins_with "$MOST_PASSED" || fail "a frozen picture is sorted, too: $(sources)"
	keys Space
	wait_for 5 eval '! titled FROZEN'
	before=$(title)
	wait_for 5 title_is_not "$before"
	wait_for 5 begins_with "$MOST_PASSED"
	close_top
}

test_a_filter_is_typed_by_prefix_or_tenant() {
	open_top_on_three
	keys f
	wait_for 5 shows '^filter by prefix or tenant'
	keys 203.0.113.0/24 Enter
	wait_for 5 titled '1 of 1 sources  filter 203\.0\.113\.0/24'
	wait_for 5 lists "$MOST_DROPPED"
	keys f acmd BSpace e Enter
	wait_for 5 titled '1 of 1 sources  filter acme'
	wait_for 5 lists "$MOST_PASSED"
	# Thought better of.
	keys f 192.0.2.1
	wait_for 5 shows '^filter by.*192\.0\.2\.1'
	keys Escape
	wait_for 5 hides '^filter by'
	titled 'filter acme' || fail "Escape was to leave the filter alone: $(title)"
	# Letters that are keys elsewhere, and what is no prefix.
	keys f qdpbh
	wait_for 5 shows '^filter by.*qdpbh'
	keys Escape
	wait_for 5 hides '^filter by'
	keys f 192.0.2.300 Enter
	wait_for 5 shows '192\.0\.2\.300'
	titled 'filter acme' || fail "what is no prefix was to change nothing: $(title)"
	keys f 'acme*' Enter
	wait_for 5 shows '^no such filter: tenant "acme\*": expected a letter'
	titled 'filter acme ' || titled 'filter acme$' || fail "what is no name was to change nothing: $(title)"
	keys f nobody Enter
	wait_for 5 titled '0 of 0 sources  filter nobody'
	keys / Enter
	wait_for 5 titled '3 of 3 sources$'
	wait_for 5 lists "$(printf '%s\n' "$MOST_DROPPED" "$MOST_PASSED" "$MOST_BITS" | sort | paste -sd' ')"
	close_top
}

test_control_u_takes_back_all_that_was_typed() {
	open_top_on_three
	keys f nobody C-u acme Enter
	wait_for 5 titled 'filter '
	titled 'filter acme' || fail "what was typed before was to be gone: $(title)"
	wait_for 5 lists "$MOST_PASSED"
	close_top
}

has_keys_on_line() { screen | grep -n '^q quit' | grep -q "^$1:"; }

test_help_is_shown_and_the_window_may_change_its_size() {
	open_top_on_three
	keys h
	wait_for 5 shows 'sort by dropped packets'
	hides "$MOST_BITS" || fail "help was to take the place of the sources"
	shows "$DEV" || fail "the device's totals were to stay"
	keys h
	wait_for 5 shows "$MOST_BITS"
	hides 'sort by dropped packets' || fail "help was to go"
	tmux -L e2e resize-window -x 50 -y 10
	wait_for 5 has_keys_on_line 10
	titled 'by drops' || fail "no title in a small window"
	shows "$MOST_DROPPED" || fail "no source in a small window"
	tmux -L e2e resize-window -x 30 -y 5
	wait_for 5 shows 'terminal too small'
	tmux -L e2e resize-window -x 140 -y 40
	wait_for 5 titled '3 of 3 sources'
	wait_for 5 shows "$MOST_BITS"
	hides 'too small' || fail "something of the small window is left"
	close_top
}

e2e_main "$@"
