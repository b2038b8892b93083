#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Under full load: limits that are changed all the time, a flood of spoofed sources, and neighbours that must still be
# found where everything is denied. Real frames, judged by what was recorded and not by what was asked for.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=2

now_us() { echo "${EPOCHREALTIME/[.,]/}"; }

runs() { kill -0 "$1" 2>/dev/null; }

# ---- changes ----

# Set a limit to one thing and another in turn while FLOOD runs, and write down when each command began and ended and
# which rate it set: it took effect at some time between.
change_in_turn() { # FLOOD LOG TARGET RATE-PER-SECOND "TERMS" RATE-PER-SECOND "TERMS"
	local before rates=("$4" "$6") terms=("$5" "$7") i
	while runs "$1"; do
		for i in 1 0; do
			before=$(now_us)
			# shellcheck disable=SC2086 # words of a command
			agent set-limit "$3" ${terms[i]} >/dev/null
			echo "$before $(now_us) ${rates[i]}" >>"$2"
			sleep 0.1
		done
	done
}

# Everything else that can be changed, of others. What is deleted and set again is forgiven what it owed, as it was
# asked for; nobody else is.
change_others() { # FLOOD
	local rounds=0
	while runs "$1"; do
		agent set-limit 203.0.113.0/24 --rate 500pps --burst 100 --tenant b
		agent allow 192.0.2.0/24
		agent del-limit 198.51.100.0/24
		agent set-limit 2001:db8:1::/48 --shadow
		agent set-limit 198.51.100.0/24 --rate 200pps --burst 20
		agent set-limit 203.0.113.0/24 --rate 500pps --burst 100 --tenant a
		agent deny 192.0.2.0/24
		agent set-limit 2001:db8:1::/48 --enforce
		agent set-limit 10.0.0.0/8 --class udp --rate 1kpps
		agent del-limit 10.0.0.0/8
		rounds=$((rounds + 1))
	done >/dev/null
	echo "$rounds" >"$E2E_TMP/rounds"
}

# The integral of the rates over the time that the log spans; where one gives way to another, the higher one, and the
# lower one.
integrals() { # LOG END-US
	jq -cnR --argjson stop "$2" '([inputs | split(" ") | map(tonumber)] + [[$stop, $stop, 0]]) as $log |
		def sum(pick): [range(1; $log | length) | $log[.] as $to | $log[. - 1] as $from |
			($to[0] - $from[1]) * $from[2] + (if $to[0] == $stop then 0
				else ($to[1] - $to[0]) * ([$from[2], $to[2]] | pick) end)] | add / 1e6;
		[sum(max), sum(min)]' "$1"
}

# What passed is within the largest burst and the integral, and near to it: a generator that is held up for longer than
# the smallest burst lasts loses the rest.
assert_within() { # WHAT PASSED BURST [HIGHEST,LOWEST-INTEGRAL] TOLERANCE
	note "$1: $2 of at most $(jq -n "$4[0] + $3 | floor")"
	assert_between "$1" "$2" "$(jq -n "$4[1] * 0.8")" "$(jq -n "$4[0] + $3 + $5")"
}

within() { limit "$1" "(.passed.$2 - .shadow.$2)"; }

test_changes_under_full_load_refill_nothing() {
	local flood others in_bits start end t target
	net_make
	attach
	for target in a b; do agent set-limit "tenant:$target" --rate 400pps --burst 40; done
	agent set-limit 203.0.113.0/24 --rate 500pps --burst 100 --tenant a
	agent set-limit 2001:db8:1::/48 --rate 300pps --burst 30
	agent set-limit 198.51.100.0/24 --rate 200pps --burst 20
	agent set-limit 198.18.0.7 --rate 100pps --burst 50
	agent set-limit 2001:db8:2::/64 --rate 80kbit --burst 2kb
	agent set-limit "dev:$DEV" --rate 5kpps --burst 500
	start=$(now_us)
	echo "$start $start 100" | tee "$E2E_TMP/packets" | sed 's/100$/10000/' >"$E2E_TMP/bytes"
	start_send --src 198.18.0.7 --src 203.0.113.8 --src 198.51.100.7 --src 2001:db8:1::1 --src 2001:db8:2::1 \
		--len 100 --rate 40000 --seconds 8 >"$E2E_TMP/sent"
	flood=$PID
	change_others "$flood" &
	others=$!
	change_in_turn "$flood" "$E2E_TMP/bytes" 2001:db8:2::/64 10000 '--rate 80kbit --burst 2kb' \
		100000 '--rate 800kbit --burst 16kb' &
	in_bits=$!
	change_in_turn "$flood" "$E2E_TMP/packets" 198.18.0.7 100 '--rate 100pps --burst 50' \
		1000 '--rate 1000pps --burst 200'
	wait "$flood"
	end=$(now_us)
	wait "$others" || fail "a change of the others was refused"
	wait "$in_bits" || fail "a change of the limit in bits was refused"
	stats
	# The last commands may have begun when the flood had ended.
	awk -v end="$end" '$2 < end' "$E2E_TMP/packets" >"$E2E_TMP/p"
	awk -v end="$end" '$2 < end' "$E2E_TMP/bytes" >"$E2E_TMP/b"
	t=$(jq -n "($end - $start) / 1e6")
	note "$(cat "$E2E_TMP/rounds") rounds of 10 changes, $(($(wc -l <"$E2E_TMP/p") + $(wc -l <"$E2E_TMP/b"))) of two limits in" \
		"$(jq .frames "$E2E_TMP/sent") frames"
	assert_between "rounds" "$(cat "$E2E_TMP/rounds")" 5 100000
	assert_within "packets at 100 and 1000pps" "$(within 198.18.0.7 packets)" 200 "$(integrals "$E2E_TMP/p" "$end")" 1
	assert_within "bytes at 80 and 800kbit" "$(within 2001:db8:2::/64 bytes)" 16000 "$(integrals "$E2E_TMP/b" "$end")" 100
	assert_within "in and out of shadow" "$(within 2001:db8:1::/48 packets)" 30 "[300 * $t, 300 * $t]" 1
	# 203.0.113.0/24 goes from tenant to tenant: it has at most its own, and each of them at most theirs.
	assert_within "between tenants" "$(within 203.0.113.0/24 packets)" 100 "[500 * $t, 0]" 1
	assert_within "tenant a" "$(within tenant:a packets)" 40 "[400 * $t, 0]" 1
	assert_within "tenant b" "$(within tenant:b packets)" 40 "[400 * $t, 0]" 1
	# What a shadow let pass is charged to nobody, neither to the device (bpf/rl_admit.h).
	assert_within device "$(device '(.passed.packets - .shadow.packets)')" 500 "[5000 * $t, 0]" 1
	assert_all_counted
}

# ---- spoofed sources ----

known_sources() { # SECONDS
	local v4
	nsenter --net="/run/netns/$TX" "$SEND" --dev gen0 --src 203.0.113.7 --rate 300 --seconds "$1" >"$E2E_TMP/known4" &
	v4=$!
	send --src 2001:db8:7::1 --rate 300 --seconds "$1" >"$E2E_TMP/known6"
	wait "$v4"
}

# Half a million sources of both families, none of which is seen often enough for a limit of its own.
test_a_spoofed_flood_is_held_by_tenant_and_device_and_known_sources_pass() {
	local flood start t source file got lost
	net_make
	attach
	agent set-limit any --rate 100pps
	agent set-limit 203.0.113.7 --rate 1kpps --priority high
	agent set-limit 2001:db8:7::/64 --rate 1kpps --priority high
	agent set-limit 10.0.0.0/8 --rate 100pps --tenant acme
	agent set-limit 2001:db8:8000::/34 --rate 100pps --tenant acme
	agent set-limit tenant:acme --rate 500pps --burst 100
	agent set-limit "dev:$DEV" --rate 3kpps --burst 600 --reserve high=20%
	agent set-limit new --rate 8kpps --burst 800
	start=$(now_us)
	send --src 203.0.113.7 --src 2001:db8:7::1 --count 20 >/dev/null
	start_send --src 10.0.0.0 --src 2001:db8:8000:: --src 172.16.0.0 --sources 1000000 --rate 80000 --seconds 7 >"$E2E_TMP/flood"
	flood=$PID
	sleep 1
	known_sources 5
	wait "$flood"
	t=$(jq -n "($(now_us) - $start) / 1e6")
	stats
	note "$(jq .frames "$E2E_TMP/flood") spoofed frames in $(jq -n "$t * 10 | round / 10") s"
	assert_eq "dropped by a source's own limit" "$(device .reasons.source_limit)" 0
	assert_within tenant "$(limit tenant:acme .passed.packets)" 100 "[500 * $t, 500 * ($t - 1)]" 1
	assert_within device "$(limit "dev:$DEV" .passed.packets)" 600 "[3000 * $t, 3000 * ($t - 1)]" 1
	assert_within new "$(limit new .passed.packets)" 800 "[8000 * $t, 0]" 1
	[ "$(device .reasons.new_source)" -gt 0 ] || fail "new dropped nothing"
	# What never reached the device, the veth ring dropped; of how many of the known that is, nobody knows.
	lost=$(($(jq -s 'map(.frames) | add' "$E2E_TMP"/{flood,known4,known6}) + 20 - $(frames_received)))
	for source in 203.0.113.7:known4 2001:db8:7::/64:known6; do
		file=$E2E_TMP/${source##*:}
		source=${source%:*}
		got=$(limit "$source" .passed.packets)
		note "$source: $got of $(jq '.frames + 10' "$file") passed, $lost lost before the device"
		assert_between "$source" "$got" "$(jq "(.frames + 10 - $lost) * 0.99" "$file")" "$(jq '.frames + 10' "$file")"
		[ "$got" -gt 1000 ] || fail "only $got frames of $source passed"
	done
	assert_all_counted
}

# ---- neighbours ----

# Addresses of both families on both ends; neighbours are held for reachable for half a second, not for half a minute.
neighbours() {
	local run dev family
	for run in in_rx in_tx; do
		dev=gen0
		[ "$run" = in_tx ] || dev=$DEV
		"$run" sh -c "echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6"
		for family in ipv4 ipv6; do
			"$run" sh -c "cd /proc/sys/net/$family/neigh/$dev && echo 500 >base_reachable_time_ms &&
				echo 1 >delay_first_probe_time && echo 0 >locktime" 2>/dev/null || true
		done
	done
	ip -n "$RX" address add 192.0.2.2/24 dev "$DEV"
	ip -n "$TX" address add 192.0.2.1/24 dev gen0
	ip -n "$RX" address add 2001:db8::2/64 dev "$DEV" nodad
	ip -n "$TX" address add 2001:db8::1/64 dev gen0 nodad
}

flush() {
	ip -n "$TX" neigh flush dev gen0
	ip -n "$RX" neigh flush dev "$DEV"
}

# Does the other end answer? Nothing listens: it refuses the connection at once, which is an answer as good as ping's.
answers() { # in_rx|in_tx ADDRESS
	local error
	error=$("$1" timeout 2 bash -c "exec 3<>/dev/tcp/$2/9" 2>&1) || true
	grep -q 'refused' <<<"$error" || fail "$2 gave no answer: ${error:-none in 2 s}"
}

is_known() { # in_rx|in_tx DEV ADDRESS
	"$1" ip neigh show to "$3" dev "$2" | grep -q lladdr
}

# ASK: send something, whether or not it may arrive, so that the neighbour has to be found.
ask() { # in_rx|in_tx ADDRESS
	"$1" bash -c "echo >/dev/udp/$2/9"
}

neighbours_are_found() { # COMMAND OF THE AGENT...
	local flood i nd arp
	net_make
	attach
	neighbours
	agent "$@"
	# Whatever is not allowed is dropped, and the packets that look up neighbours are not: each time anew, on both ends.
	start_send --src 203.0.113.7 --src 2001:db8:7::1 --rate 2000 --seconds 20 >/dev/null
	flood=$PID
	for i in 1 2 3; do
		flush
		ask in_tx 192.0.2.2
		ask in_tx 2001:db8::2
		ask in_rx 192.0.2.1
		ask in_rx 2001:db8::1
		wait_for 3 is_known in_tx gen0 192.0.2.2
		wait_for 3 is_known in_tx gen0 2001:db8::2
		wait_for 3 is_known in_rx "$DEV" 192.0.2.1
		wait_for 3 is_known in_rx "$DEV" 2001:db8::1
	done
	# With the other end's own addresses allowed there are answers, by neighbours found anew, and by those that have to
	# prove after each half second that they are still there.
	agent allow 192.0.2.1
	agent allow 2001:db8::1
	for i in $(seq 12); do
		[ $((i % 4)) -ne 0 ] || flush
		answers in_tx 192.0.2.2
		answers in_tx 2001:db8::2
		answers in_rx 192.0.2.1
		answers in_rx 2001:db8::1
		sleep 0.4
	done
	runs "$flood" || fail "the flood was over before"
	stop "$flood"
	stats
	arp=$(device .reasons.not_ip) nd=$(device .reasons.neighbour_discovery)
	note "$arp ARP, $nd ND, $(device .reasons.allowed) allowed, $(device .dropped.packets) dropped"
	# Six times all was forgotten; what one end asks may tell it to the other too.
	assert_between "ARP frames" "$arp" 6 10000
	assert_between "ND packets" "$nd" 6 10000
	[ "$(device .dropped.packets)" -gt 1000 ] || fail "hardly anything was dropped"
}

test_neighbours_are_found_where_all_is_denied() { neighbours_are_found deny any; }
test_neighbours_are_found_under_a_very_low_limit() { neighbours_are_found set-limit any --rate 1/h --burst 1; }
test_neighbours_are_found_under_a_very_low_device_limit() { neighbours_are_found set-limit "dev:rl0" --rate 1/h --burst 1; }

e2e_main "$@"
