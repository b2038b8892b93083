#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Who is limited, by what, and how it is counted, on real frames.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

# One packet an hour refills nothing while a test runs, so what passes is the burst, exactly.
test_a_polite_source_beside_a_flood_loses_nothing() {
	local flood polite sent got
	net_make
	attach
	agent set-limit any --rate 1000pps
	start_send --src 198.51.100.66 --rate 200000 --seconds 6 >"$E2E_TMP/flood"
	flood=$PID
	sleep 0.5
	sent=$(send --src 203.0.113.7 --rate 500 --seconds 5)
	wait "$flood"
	polite=$(agent top --once --json | jq -c '.sources[] | select(.source == "203.0.113.7")')
	echo "$sent $polite"
	got=$(jq '.passed.packets' <<<"$polite")
	assert_eq "polite packets dropped" "$(jq '.dropped.packets' <<<"$polite")" 0
	assert_all_counted
	# What never reached the device, the veth ring dropped.
	local lost=$(($(jq .frames <<<"$sent") + $(jq .frames "$E2E_TMP/flood") - $(frames_received)))
	assert_between "polite packets passed" "$got" $(($(jq .frames <<<"$sent") - lost)) "$(jq .frames <<<"$sent")"
	[ "$got" -gt 1000 ] || fail "only $got polite packets came"
	note "polite: $got of $(jq .frames <<<"$sent") passed, flood of $(jq .frames "$E2E_TMP/flood"), $lost lost before the device"
}

test_the_longest_prefix_decides() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 3
	agent set-limit 203.0.113.0/24 --rate 1/h --burst 20
	agent set-limit 203.0.113.7 --rate 1/h --burst 40
	send --src 203.0.113.7 --src 203.0.113.8 --src 203.0.113.9 --src 192.0.2.1 --src 2001:db8::1 --count 500
	assert_eq "the address" "$(limit 203.0.113.7 .passed.packets)" 40
	assert_eq "two sources of the prefix" "$(limit 203.0.113.0/24 .passed.packets)" 40
	assert_eq "one source of each family under any" "$(limit any .passed.packets)" 6
	assert_eq "dropped by any" "$(limit any .dropped.packets)" 194
	assert_all_counted
	agent del-limit 203.0.113.7
	send --src 203.0.113.7 --count 100
	assert_eq "the prefix holds it now" "$(limit 203.0.113.0/24 .passed.packets)" 60
	expect 1 agent del-limit 203.0.113.7
}

test_tagged_frames_are_limited_by_their_source() {
	net_make
	attach
	agent set-limit 203.0.113.7 --rate 1/h --burst 10
	send --src 203.0.113.7 --vlan 0x8100 --count 20
	send --src 203.0.113.7 --vlan 0x88a8 --vlan 0x8100 --count 20
	assert_eq "passed" "$(limit 203.0.113.7 .passed.packets)" 10
	assert_eq "dropped" "$(limit 203.0.113.7 .dropped.packets)" 30
	send --src 203.0.113.7 --vlan 0x88a8 --vlan 0x8100 --vlan 0x8100 --count 20
	assert_eq "three tags: counted as unparsed" "$(device .reasons.unparsed)" 20
	assert_all_counted
}

test_ipv6_sources_are_limited_by_their_network() {
	net_make
	attach
	agent set-limit 2001:db8::/32 --rate 1/h --burst 10
	send --src 2001:db8:0:1::1 --src 2001:db8:0:1::2 --src 2001:db8:0:2::1 --count 300
	assert_eq "two /64 networks, two bursts" "$(limit 2001:db8::/32 .passed.packets)" 20
	send --src 2001:db8:0:3::1 --vlan 0x8100 --count 100
	assert_eq "a tagged one" "$(limit 2001:db8::/32 .passed.packets)" 30
	assert_all_counted
}

test_packets_and_bits_hold_together() {
	net_make
	attach
	agent set-limit 203.0.113.7 --rate 1/h --burst 50 --rate 1kbit --burst 20kb
	send --src 203.0.113.7 --len 60 --count 200
	assert_eq "small frames: the packets' burst" "$(limit 203.0.113.7 .passed.packets)" 50
	agent set-limit 203.0.113.8 --rate 1/h --burst 50 --rate 1kbit --burst 20kb
	send --src 203.0.113.8 --len 1000 --count 200
	assert_eq "large frames: the bytes' burst" "$(limit 203.0.113.8 .passed.packets)" 20
	assert_eq "charged bytes are the frame's" "$(limit 203.0.113.8 .passed.bytes)" 20000
}

test_a_changed_limit_resets_nothing() {
	net_make
	attach
	agent set-limit 203.0.113.7 --rate 1/h --burst 100
	send --src 203.0.113.7 --count 150
	agent set-limit 203.0.113.7 --rate 2/h --burst 100
	send --src 203.0.113.7 --count 150
	assert_eq "still empty" "$(limit 203.0.113.7 .passed.packets)" 100
	assert_eq "counters go on" "$(limit 203.0.113.7 .dropped.packets)" 200
	agent set-limit 203.0.113.7 --rate 2/h --burst 100
	send --src 203.0.113.7 --count 10
	assert_eq "set to the same again" "$(limit 203.0.113.7 .passed.packets)" 100
}

test_the_bound_holds_through_a_loop_of_changes() {
	local flood sent
	net_make
	attach
	agent set-limit any --rate 1000pps --burst 100
	start_send --src 203.0.113.7 --rate 20000 --seconds 4 >"$E2E_TMP/sent"
	flood=$PID
	while kill -0 "$flood" 2>/dev/null; do
		agent set-limit any --rate 999pps --burst 100
		agent set-limit any --rate 1000pps --burst 100
	done
	wait "$flood"
	sent=$(cat "$E2E_TMP/sent")
	assert_between "passed" "$(limit any .passed.packets)" 3000 \
		"$(jq '100 + 1000 * (.last_ns - .first_ns) / 1e9 + 1' <<<"$sent")"
	note "passed $(limit any .passed.packets) in 4 s at 1000pps, burst 100"
}

is_resolved() { ip -n "$TX" neigh show 192.0.2.2 | grep -q lladdr; }

test_what_is_not_ip_passes() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 1
	ip -n "$RX" address add 192.0.2.2/24 dev "$DEV"
	ip -n "$TX" address add 192.0.2.1/24 dev gen0
	# Datagrams use up `any` at once; the address is still resolved, each time anew.
	for _ in 1 2 3; do
		ip -n "$TX" neigh flush dev gen0
		in_tx bash -c 'echo >/dev/udp/192.0.2.2/9'
		wait_for 2 is_resolved
	done
	[ "$(device .reasons.not_ip)" -ge 3 ] || fail "ARP isn't counted as not_ip"
}

e2e_main "$@"
