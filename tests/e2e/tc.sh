#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Devices without native XDP: the same limits through TC, by TCX and by clsact, and the same counts; packets that the kernel has
# merged are charged all that they were.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=2
TCP=$E2E_BUILD/tests/rl-tcp

attach_tc() { agent attach --mode tc --max-sources 10k "$DEV"; }

# A kernel without TCX (before Linux 6.6): the agent finds out by trying.
without_tcx() { export AGENT_ENV="RL_OLD=tcx LD_PRELOAD=$E2E_BUILD/tests/oldkernel.so"; }

filters() { in_rx tc -j filter show dev "$DEV" ingress | jq '[.[] | select(.options)] | length'; }
hook() { agent status --json | jq -r '.devices[0].hook'; }

# Programs that aren't ours, and let everything pass.
make_foreign() {
	cat >"$E2E_TMP/foreign.c" <<-'C'
		__attribute__((section("xdp"), used)) int neighbours_prog(void *ctx) { return 2; }
		__attribute__((section("tc"), used)) int neighbours_filter(void *ctx) { return -1; }
		__attribute__((section("license"), used)) char license_of_it[] = "GPL";
	C
	clang -O2 -target bpf -c -o "$E2E_TMP/foreign.o" "$E2E_TMP/foreign.c"
}

attach_foreign() {
	make_foreign
	in_rx ip link set dev "$DEV" xdp obj "$E2E_TMP/foreign.o" sec xdp
}

life() { # HOOK: attach, limit, attach again, pause, detach
	local program
	expect 0 attach_tc
	assert_eq "where it sits" "$(hook)" "$1"
	assert_eq "mode" "$(device .mode)" '"tc"'
	assert_eq "XDP program on the device" "$(xdp_id)" 0
	agent set-limit any --rate 1/h --burst 50
	send --src 203.0.113.7 --src 2001:db8::7 --count 200
	assert_eq "passed" "$(device .passed.packets)" 100
	assert_eq "dropped" "$(device .dropped.packets)" 100
	assert_eq "bytes, of frames of 60 and 62" "$(device '.received.bytes / .received.packets')" 61
	program=$(agent status --json | jq '.devices[0].program_id')
	expect 0 agent attach "$DEV"
	[ "$(agent status --json | jq '.devices[0].program_id')" != "$program" ] || fail "the program wasn't replaced"
	send --src 203.0.113.7 --count 10
	assert_eq "the bucket is still empty" "$(device .passed.packets)" 100
	expect 1 agent attach --mode native "$DEV"
	assert_match "what is there" "$ERR" "tc mode"
	agent pause
	send --src 203.0.113.7 --count 10
	assert_eq "while paused" "$(device .passed.packets)" 110
	agent resume
	expect 0 agent detach --keep "$DEV"
	assert_eq "filters" "$(filters)" 0
	send --src 203.0.113.7 --count 10
	expect 0 attach_tc
	send --src 203.0.113.7 --count 10
	assert_eq "the bucket is still empty" "$(device .passed.packets)" 0
	expect 0 agent detach "$DEV"
	assert_eq "filters" "$(filters)" 0
	assert_nothing_left
}

test_by_tcx() {
	net_make
	life tcx
}

test_by_clsact_where_there_is_no_tcx() {
	net_make
	without_tcx
	life clsact
}

# Replaced under a flood, no packet passes beside it.
replaced_under_a_flood() { # HOOK
	local flood
	net_make
	attach_tc
	assert_eq "where it sits" "$(hook)" "$1"
	agent set-limit any --rate 1000pps --burst 100
	start_send --src 203.0.113.7 --rate 20000 --seconds 4 --model-rate 1000 --model-burst 100 >"$E2E_TMP/sent"
	flood=$PID
	for _ in 1 2 3 4 5; do
		sleep 0.5
		expect 0 agent attach "$DEV"
	done
	wait "$flood"
	assert_all_counted
	assert_rate 1000pps "$(limit any .passed.packets)" 1000 100 1 "$(cat "$E2E_TMP/sent")"
}

test_replaced_without_a_gap() { replaced_under_a_flood tcx; }
test_replaced_without_a_gap_by_clsact() {
	without_tcx
	replaced_under_a_flood clsact
}

# What others have there stays, and is asked before and after.
test_filters_of_others_stay() {
	without_tcx
	net_make
	in_rx tc qdisc add dev "$DEV" clsact
	make_foreign
	in_rx tc filter add dev "$DEV" ingress prio 7 protocol ip bpf direct-action obj "$E2E_TMP/foreign.o" sec tc
	expect 0 attach_tc
	agent set-limit any --rate 1/h --burst 50
	send --src 203.0.113.7 --count 80
	assert_eq "passed" "$(device .passed.packets)" 50
	expect 0 agent detach --all
	assert_eq "filters" "$(filters)" 1
}

# Taken away by somebody else, as with the whole qdisc: said, and attached again.
test_a_filter_that_is_gone_is_said() {
	without_tcx
	net_make
	attach_tc
	in_rx tc qdisc del dev "$DEV" clsact
	assert_match "status" "$(agent status)" 'gone'
	expect 0 attach_tc
	assert_eq "filters" "$(filters)" 1
}

test_auto_takes_tc_where_xdp_is_taken() {
	local foreign
	net_make
	attach_foreign
	foreign=$(xdp_id)
	expect 2 agent attach --mode native "$DEV"
	assert_match "whose" "$ERR" 'neighbours_prog'
	expect 0 agent attach "$DEV"
	assert_match "what, and why" "$ERR" "attached by TC.*--mode native"
	assert_eq "mode" "$(device .mode)" '"tc"'
	assert_eq "the other's program" "$(xdp_id)" "$foreign"
	agent set-limit any --rate 1/h --burst 50
	send --src 203.0.113.7 --count 80
	assert_eq "passed" "$(device .passed.packets)" 50
	expect 0 agent detach "$DEV"
	assert_eq "the other's program" "$(xdp_id)" "$foreign"
}

test_auto_takes_tc_where_the_driver_refuses() {
	net_make
	in_rx ip link set "$DEV" mtu 9000
	in_tx ip link set gen0 mtu 9000
	expect 2 agent attach --no-frags --mode native "$DEV"
	expect 0 agent attach --no-frags "$DEV"
	assert_match "what, and why" "$ERR" "takes no native XDP program .*attached by TC"
	assert_eq "mode" "$(device .mode)" '"tc"'
}

# What TC sees at once may be many packets: a bucket that can't hold them lets none through, however slowly they come.
test_bursts_too_small_for_merged_packets_are_refused() {
	net_make
	attach_tc
	expect 1 agent set-limit any --rate 10pps --burst 45
	assert_match "packets" "$ERR" 'burst 45p is less than .*merged.* rl0, whose MTU is 1500 .46 packets.*at least 46p'
	expect 1 agent set-limit any --rate 10mbit --burst 60kb
	assert_match "bytes" "$ERR" 'burst 60kb is less than .*merged.*68939 bytes.*at least 68\.939kb'
	expect 0 agent set-limit any --rate 10pps --burst 46
	expect 0 agent set-limit any --rate 1kbit --rate 1pps
	assert_match "defaults" "$(agent list --policy)" 'burst 46p? .*burst 68\.?939'
	# What is never merged needs less.
	expect 0 agent set-limit any --class syn --rate 10pps --burst 5
	expect 0 agent set-limit new --rate 10pps --burst 20
	# The larger the frames, the fewer.
	ip -n "$RX" link set "$DEV" mtu 9000
	expect 0 agent set-limit any --rate 10pps --burst 8
}

test_attach_names_limits_that_are_too_small_for_merged_packets() {
	net_make
	attach
	agent set-limit any --rate 10pps --burst 5
	agent set-limit 192.0.2.1 --rate 10mbit --burst 20kb
	agent set-limit 192.0.2.2 --rate 10mbit --burst 80kb
	expect 0 agent detach --keep "$DEV"
	expect 0 attach_tc
	assert_match "attach" "$ERR" 'warning: rl0 .*merged 46 packets .68939 bytes.*the limit of .* nor that of 1 other:'
	echo "set-limit any --rate 10pps --burst 5" >"$E2E_TMP/policy"
	expect 0 agent apply "$E2E_TMP/policy"
	assert_match "apply" "$ERR" 'warning: rl0 .*merged 46 packets .68939 bytes.*the limit of any .burst 5p.:'
	# Single frames pass all the same.
	send --src 203.0.113.7 --count 10
	assert_eq "passed" "$(device .passed.packets)" 5
}

tcp_net() {
	[ -x "$TCP" ] || fail "run \`make tests\` first"
	net_make
	ip -n "$RX" address add 192.0.2.2/24 dev "$DEV"
	ip -n "$TX" address add 192.0.2.1/24 dev gen0
}

listens() { in_rx ss -Hltn 'sport = :7000' | grep -q .; }

# Bytes a second that a flow gets from its limit, after two seconds.
flow() {
	local receiver sender
	nsenter --net="/run/netns/$RX" "$TCP" --listen --skip 2 --seconds 8 >"$E2E_TMP/got" &
	receiver=$!
	wait_for 5 listens
	nsenter --net="/run/netns/$TX" "$TCP" --to 192.0.2.2 --congestion cubic >/dev/null &
	sender=$!
	wait "$receiver"
	wait "$sender"
	jq '.bytes / (.last_ns - .first_ns) * 1e9 | floor' "$E2E_TMP/got"
}

# How a sender answers a loss is partly chance: the middle one of three.
flow_of_three() {
	for _ in 1 2 3; do flow; done | sort -n | sed -n 2p
}

# The same flow under the same limit, over native XDP and through TC: single frames there, merged ones here.
same_rate() { # on|off: whether the sender's stack sends merged packets
	local native tc
	tcp_net
	in_tx ethtool -K gen0 tso off gso off >/dev/null
	agent attach --max-sources 10k "$DEV"
	agent set-limit 192.0.2.1 --rate 20mbit --burst 2mb
	native=$(flow_of_three)
	expect 0 agent detach --keep "$DEV"
	in_tx ethtool -K gen0 tso "$1" gso "$1" >/dev/null
	attach_tc
	tc=$(flow_of_three)
	note "TC, with merged packets $1: $(jq -n "$tc / $native * 1000 | round / 10") % of native XDP's"
	assert_between "bytes a second through TC" "$tc" "$((native * 98 / 100))" "$((native * 102 / 100))"
	if [ "$1" = on ]; then
		assert_between "frames, each of its own" "$(device '.received.bytes / .received.packets')" 60 1514
	fi
}

test_a_flow_gets_the_same_rate() { same_rate off; }
test_a_flow_of_merged_packets_gets_the_same_rate() { same_rate on; }

e2e_main "$@"
