#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What is promised in numbers, where it is hardest to keep: limits that change under a flood, tables that are full, and
# counters beside those of the device.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=2

# ---- changes mint nothing ----

# Set a limit to one thing and another in turn under a flood. However often, what passes is at most the largest burst
# and the highest rate for as long as it took; and at least the burst, since what was left of it isn't lost either.
in_turn() { # packets|bytes LENGTH RATE-PER-SECOND BURST "TERMS" "OTHER TERMS"
	local flood passed most least=$(($4 - 1)) changes=0
	[ "$1" = packets ] || least=$(($4 - $2))
	net_make
	attach
	# shellcheck disable=SC2086 # words of a command
	agent set-limit any $5
	start_send --src 203.0.113.7 --rate 10000 --len "$2" --seconds 3 >"$E2E_TMP/sent"
	flood=$PID
	while kill -0 "$flood" 2>/dev/null; do
		# shellcheck disable=SC2086
		agent set-limit any $6 >/dev/null
		# shellcheck disable=SC2086
		agent set-limit any $5 >/dev/null
		changes=$((changes + 2))
	done
	wait "$flood"
	most=$(jq --argjson rate "$3" --argjson burst "$4" '$burst + $rate * (.last_ns - .first_ns) / 1e9' "$E2E_TMP/sent")
	passed=$(limit any ".passed.$1")
	note "$passed of at most ${most%.*} $1, $changes changes"
	assert_between "$1 that passed" "$passed" "$least" "$most"
	assert_all_counted
}

test_a_burst_in_packets_that_shrinks_and_grows_refills_nothing() {
	in_turn packets 60 10 2000 '--rate 10pps --burst 2000' '--rate 10pps --burst 16'
}

test_a_burst_in_bytes_that_shrinks_and_grows_refills_nothing() {
	in_turn bytes 1000 10000 400000 '--rate 80kbit --burst 400kb' '--rate 80kbit --burst 16kb'
}

test_rate_and_burst_that_change_together_refill_nothing() {
	in_turn packets 60 50 2000 '--rate 10pps --burst 2000' '--rate 50pps --burst 16'
}

test_a_burst_left_out_every_other_time_refills_nothing() {
	in_turn packets 60 10 2000 '--rate 10pps --burst 2000' '--rate 10pps'
}

test_a_second_unit_that_comes_and_goes_refills_nothing() {
	in_turn packets 60 10 2000 '--rate 10pps --burst 2000' '--rate 10pps --burst 2000 --rate 1gbit --burst 10mb'
}

# ---- full tables ----

# Every source gets its one packet, from whichever processor it comes first, and no second one: none of those that the
# table was asked to hold is forgotten.
each_source_passes_once() { # SOURCES
	local cpus first second i
	mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | while IFS=- read -r first second; do
		seq "$first" "${second:-$first}"
	done)
	[ "${#cpus[@]}" -ge 2 ] || skip "takes two processors"
	net_make
	agent attach --max-sources 1000 "$DEV"
	agent set-limit any --rate 1/h --burst 1
	for i in 0 1; do
		nsenter --net="/run/netns/$TX" taskset -c "${cpus[i]}" "$SEND" --dev gen0 --src 10.0.0.0 --sources "$1" \
			--rate 20000 --count $((10 * $1)) >"$E2E_TMP/sent$i" &
	done
	wait
	assert_all_counted
	note "$(device .received.packets) frames, $(device .passed.packets) passed"
	assert_eq "passed" "$(device .passed.packets)" "$1"
	assert_eq "sources tracked" "$(agent top --once --interval 0.1 --json | jq .sources_tracked)" "$1"
	# Those who are in the table stay in it when one more looks in.
	send --src 192.0.2.1 --count 5 >/dev/null
	send --src 10.0.0.0 --sources "$1" --rate 20000 --count "$1" >/dev/null
	[ "$1" -ge 1000 ] || assert_eq "passed after one more" "$(device .passed.packets)" $(($1 + 1))
}

test_a_nearly_full_table_forgets_no_source() { each_source_passes_once 990; }
test_a_full_table_forgets_no_source() { each_source_passes_once 1000; }

# ---- counters beside the device's ----

# Bytes are those on the wire, without the four of the checksum.
test_padding_and_tags_count_with_their_length() {
	local sent bytes=0 start=$SECONDS
	net_make
	attach
	agent set-limit any --rate 1kbit --burst 100kb
	count() { # LENGTH OPTIONS...
		sent=$(send --src 203.0.113.7 --count 10 "${@:2}")
		assert_eq "bytes of 10 frames with ${*:2}" "$(jq .bytes <<<"$sent")" $((10 * $1))
		bytes=$((bytes + 10 * $1))
		assert_eq "bytes received, with ${*:2}" "$(device .received.bytes)" "$bytes"
		assert_eq "bytes charged, with ${*:2}" "$(limit any .passed.bytes)" "$bytes"
	}
	count 60 --len 42 --pad 18
	count 1500 --len 60 --pad 1440
	count 64 --vlan 0x8100 --len 46 --pad 18
	count 1518 --vlan 0x8100 --len 1518
	count 72 --vlan 0x88a8 --vlan 0x8100 --len 64 --pad 8
	count 1514 --proto 6 --len 1514
	assert_all_counted
	# The burst in bytes is used up to its last whole frame.
	send --src 203.0.113.7 --len 1000 --count 200 >/dev/null
	assert_between "bytes passed" "$(limit any .passed.bytes)" 99001 $((100000 + 125 * (SECONDS - start + 1)))
	assert_all_counted
}

# A server that takes one connection, and leaves what came in FILE.
# shellcheck disable=SC2016,SC2034 # perl's variables; PID is for the caller
start_server() { # FILE
	nsenter --net="/run/netns/$RX" perl -MIO::Socket::INET -e '
		my $server = IO::Socket::INET->new(LocalPort => 7000, Listen => 1, ReuseAddr => 1) or die $!;
		my $client = $server->accept or die $!;
		print while read $client, $_, 65536' >"$1" &
	PID=$!
}

listens() { in_rx grep -q ':1B58 00000000:0000 0A' /proc/net/tcp; }

# A transfer whose segments the kernel would merge. The limit sees and charges each frame; taken off half way, the rest
# comes at once, and nothing of it is lost or changed.
tcp_transfer() { # TERMS-OF-THE-LIMIT
	local server client before
	net_make
	ip -n "$RX" address add 192.0.2.2/24 dev "$DEV"
	ip -n "$TX" address add 192.0.2.1/24 dev gen0
	in_rx ethtool -K "$DEV" gro on >/dev/null
	before=$(frames_received)
	attach
	# shellcheck disable=SC2086 # words of a command
	agent set-limit any $1
	head -c 4000000 /dev/urandom >"$E2E_TMP/data"
	start_server "$E2E_TMP/got"
	server=$PID
	wait_for 5 listens
	in_tx bash -c "cat '$E2E_TMP/data' >/dev/tcp/192.0.2.2/7000" &
	client=$!
	sleep 1.5
	kill -0 "$client" || fail "the transfer wasn't held back"
	agent pause
	ip -n "$TX" link set gen0 down # nothing more comes while counters are compared
	sleep 0.1
	assert_eq "frames" "$(device '.received.packets')" $(($(frames_received) - before))
	assert_all_counted
	[ "$(device .dropped.packets)" -gt 0 ] || fail "nothing was dropped"
	note "$(device '[.passed.packets, .dropped.packets] | join(" passed, ")' | tr -d '"') dropped, $(stat -c %s "$E2E_TMP/got") bytes through"
	agent resume
	ip -n "$TX" link set gen0 up
	expect 0 agent detach "$DEV"
	wait "$client" || fail "the transfer was broken off"
	wait "$server"
	cmp "$E2E_TMP/data" "$E2E_TMP/got" || fail "what came isn't what was sent"
	assert_nothing_left
}

test_a_tcp_transfer_limited_in_bytes_is_counted_by_the_frame() { tcp_transfer '--rate 4mbit --burst 64kb'; }
test_a_tcp_transfer_limited_in_packets_is_counted_by_the_frame() { tcp_transfer '--rate 300pps --burst 50'; }

# What CPUs had taken ahead of a deleted tenant's bucket isn't for the tenant that has its slot now: there are as many
# limits between the two as the low bits of a limit's id, which buckets are told apart by, have values.
test_a_new_tenant_cannot_spend_what_was_a_deleted_ones() {
	local cpu before passed i most
	net_make
	agent attach --max-sources 10k --max-limits 987 "$DEV"
	agent set-limit tenant:acme --rate 1pps --burst 100000
	agent set-limit 198.51.100.0/24 --rate 1mpps --burst 1000000 --tenant acme
	for cpu in 0 1; do
		in_tx taskset -c $cpu "$SEND" --dev gen0 --src 198.51.100.1 --rate 20000 --count 20000
	done
	{
		echo "set-limit 198.51.100.0/24 --rate 1mpps --burst 1000000"
		for i in $(seq 1 985); do echo "set-limit 10.0.$((i / 250)).$((i % 250)) --rate 10pps"; done
	} | agent apply -
	agent set-limit tenant:beta --rate 1000pps --burst 3000
	agent set-limit 198.51.100.0/24 --rate 1mpps --burst 1000000 --tenant beta
	before=$(date +%s%N)
	for cpu in 0 1; do
		in_tx taskset -c $cpu "$SEND" --dev gen0 --src 198.51.100.1 --rate 60000 --count 60000
	done
	most=$((3000 + ($(date +%s%N) - before) / 1000000 + 1))
	passed=$(limit tenant:beta .passed.packets)
	note "passed $passed, at most $most"
	[ "$passed" -le "$most" ] || fail "passed $passed, at most $most"
}

e2e_main "$@"
