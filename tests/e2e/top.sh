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

screen() { tmux -L e2e capture-pane -p; }
shows() { screen | grep -q -- "$1"; }

test_the_full_screen_shows_sources_and_quits() {
	local sender
	command -v tmux >/dev/null || skip "tmux isn't installed"
	net_make
	attach
	agent set-limit any --rate 1000pps
	start_send --src 203.0.113.7 --src 2001:db8::7 --rate 4000 --seconds 20 >/dev/null
	sender=$PID
	TMUX_TMPDIR=$E2E_TMP
	export TMUX_TMPDIR
	tmux -L e2e -f /dev/null new-session -d -x 110 -y 30 \
		"nsenter --net=/run/netns/$RX $AGENT top; echo top ended with \$?; sleep 20"
	wait_for 5 shows '203\.0\.113\.7'
	wait_for 5 shows '2001:db8:'
	shows "$DEV" || fail "no totals of the device"
	screen
	tmux -L e2e resize-window -x 60 -y 12
	sleep 1.5
	screen
	tmux -L e2e send-keys q
	wait_for 5 shows 'top ended with 0'
	stop "$sender"
}

e2e_main "$@"
