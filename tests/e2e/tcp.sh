#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One TCP flow gets what its limit grants, with the burst that is the default: 90 % and more of the rate arrives, and
# never more than burst + rate * t. What the default burst is for is in user/limit.c; with 100 ms of the rate instead of
# 250 ms half of the limit is all that arrives here.
#
# A veth device hands on what its sender's stack gives it, segments of up to 64 KiB, as no wire does. So the sender's TSO
# and GSO are turned off (ethtool -K), and each frame is checked to have been one.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=4 # each mostly sleeps
TCP=$E2E_BUILD/tests/rl-tcp

tcp_net() {
	[ -x "$TCP" ] || fail "run \`make tests\` first"
	net_make
	attach
	in_rx sh -c "echo 0 >/proc/sys/net/ipv6/conf/$DEV/disable_ipv6"
	in_tx sh -c 'echo 0 >/proc/sys/net/ipv6/conf/gen0/disable_ipv6'
	ip -n "$RX" address add 192.0.2.2/24 dev "$DEV"
	ip -n "$TX" address add 192.0.2.1/24 dev gen0
	ip -n "$RX" address add 2001:db8::2/64 dev "$DEV" nodad
	ip -n "$TX" address add 2001:db8::1/64 dev gen0 nodad
	in_tx ethtool -K gen0 tso off gso off >/dev/null
}

listens() { in_rx ss -Hltn 'sport = :7000' | grep -q .; }

# One flow; what arrived after the first seconds is in GOT, what its sender says in SENT.
flow() { # SOURCE SKIP SECONDS CONGESTION
	local to=192.0.2.2 receiver sender
	[[ $1 != *:* ]] || to=2001:db8::2
	nsenter --net="/run/netns/$RX" "$TCP" --listen --skip "$2" --seconds "$3" >"$E2E_TMP/got" &
	receiver=$!
	wait_for 5 listens
	nsenter --net="/run/netns/$TX" "$TCP" --to "$to" --congestion "$4" >"$E2E_TMP/sent" &
	sender=$!
	wait "$receiver"
	wait "$sender"
	GOT=$(cat "$E2E_TMP/got") SENT=$(cat "$E2E_TMP/sent")
	echo "$GOT $SENT"
}

# Payload and headers that arrived, per second. TCP's header has its timestamps: 32 bytes.
per_second() { # HEADER-BYTES packets|bytes
	jq --argjson headers "$1" --arg unit "$2" '(if $unit == "bytes" then .bytes + .segments * $headers else .segments end) /
		(.last_ns - .first_ns) * 1e9' <<<"$GOT"
}

# The frames of the wire: none was longer than an Ethernet frame, by their mean for want of a list.
assert_real_frames() {
	assert_between "bytes a frame" "$(device '.received.bytes / .received.packets')" 60 1514
}

reaches() { # SOURCE RATE PER-SECOND BURST packets|bytes [CONGESTION]
	local headers=66 start got passed most
	[[ $1 != *:* ]] || headers=86
	tcp_net
	[ "$5" = bytes ] && [ "$3" -ge 100000000 ] && could_do "$1" "$3" "$headers"
	start=$(date +%s%N)
	agent set-limit "$1" --rate "$2"
	flow "$1" 2 5 "${6:-cubic}"
	ip -n "$TX" link set gen0 down # nothing more comes while counters are compared
	passed=$(limit "$1" ".passed.$5")
	most=$(jq -n --argjson burst "$4" --argjson rate "$3" --argjson ns $(($(date +%s%N) - start)) '$burst + $rate * $ns / 1e9')
	got=$(per_second "$headers" "$5")
	note "$(jq -rn --argjson got "$got" --argjson rate "$3" '$got / $rate * 1000 | round / 10') % of $2," \
		"$(limit "$1" '.dropped.packets / (.dropped.packets + .passed.packets) * 1000 | round / 10') % of the frames dropped"
	assert_between "$5 a second" "$got" "$(($3 * 9 / 10))" "$(jq -n "$4 / 5 * 2 + $3")"
	assert_between "$5 that passed in all" "$passed" 1 "$most"
	assert_real_frames
	assert_all_counted
}

# Without a limit the machine must be able to do half as much again.
could_do() { # SOURCE PER-SECOND HEADER-BYTES
	local able
	flow "$1" 0.5 1 cubic
	able=$(per_second "$3" bytes)
	jq -en --argjson able "$able" --argjson rate "$2" '$able >= $rate * 1.5' >/dev/null ||
		skip "without a limit $((${able%.*} / 125000)) mbit arrive, too little to limit a flow to $(($2 / 125000)) mbit"
}

test_one_flow_reaches_10_megabits() { reaches 192.0.2.1 10mbit 1250000 312500 bytes; }
test_one_flow_reaches_10_megabits_over_ipv6() { reaches 2001:db8::1 10mbit 1250000 312500 bytes; }
test_one_flow_reaches_10_megabits_with_reno() { reaches 192.0.2.1 10mbit 1250000 312500 bytes reno; }
test_one_flow_reaches_1000_packets_a_second() { reaches 192.0.2.1 1kpps 1000 250 packets; }
test_one_flow_reaches_50_megabits() { reaches 192.0.2.1 50mbit 6250000 1562500 bytes; }
test_one_flow_reaches_50_megabits_over_ipv6() { reaches 2001:db8::1 50mbit 6250000 1562500 bytes; }
test_one_flow_reaches_200_megabits() { reaches 192.0.2.1 200mbit 25000000 6250000 bytes; }
test_one_flow_reaches_200_megabits_over_ipv6() { reaches 2001:db8::1 200mbit 25000000 6250000 bytes; }
test_one_flow_reaches_1_gigabit() { reaches 192.0.2.1 1gbit 125000000 31250000 bytes; }
test_one_flow_reaches_1_gigabit_over_ipv6() { reaches 2001:db8::1 1gbit 125000000 31250000 bytes; }

# No full frame would ever pass, and the flow would hang.
test_a_burst_below_one_frame_is_refused() {
	local target before
	tcp_net
	agent set-limit 192.0.2.1 --rate 10mbit
	before=$(agent list --json | jq -c .limits)
	for target in 192.0.2.1 2001:db8::1 any tenant:acme "dev:$DEV"; do
		expect 1 agent set-limit "$target" --rate 10mbit --burst 1.521kb
		assert_match "why, and what would do" "$ERR" 'burst 1\.521kb is less than one full frame.*TCP.*at least 1\.522kb.*default'
	done
	expect 1 agent set-limit 192.0.2.1 --class tcp --rate 10mbit --burst 0.1kb
	assert_match "why" "$ERR" 'full frame'
	assert_eq "the policy" "$(agent list --json | jq -c .limits)" "$before"
	# The smallest that is accepted lets a flow move, however slowly.
	expect 0 agent set-limit 192.0.2.1 --rate 10mbit --burst 1.522kb
	flow 192.0.2.1 0 3 cubic
	assert_between "bytes that arrived" "$(jq .bytes <<<"$GOT")" 14480 12500000
	assert_real_frames
}

e2e_main "$@"
