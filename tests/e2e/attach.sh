#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Attaching, adopting, detaching, and what stands in the way: each refusal says what to do and leaves nothing behind.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=2

# An XDP program that isn't ours, on the device.
attach_foreign() {
	cat >"$E2E_TMP/foreign.c" <<-'C'
		__attribute__((section("xdp"), used)) int neighbours_prog(void *ctx) { return 2; }
		__attribute__((section("license"), used)) char license_of_it[] = "GPL";
	C
	clang -O2 -target bpf -c -o "$E2E_TMP/foreign.o" "$E2E_TMP/foreign.c"
	in_rx ip link set dev "$DEV" xdp obj "$E2E_TMP/foreign.o" sec xdp
}

test_attach_detach_attach_again() {
	net_make
	for _ in 1 2 3; do
		expect 0 agent attach "$DEV"
		agent set-limit any --rate 1/h --burst 5
		send --src 203.0.113.7 --count 20
		assert_eq "passed" "$(device .passed.packets)" 5
		assert_all_counted_since_attach
		expect 0 agent detach "$DEV"
		assert_nothing_left
		expect 3 agent stats
	done
	expect 3 agent detach "$DEV"
}

# The device counts over its life, the program since it was attached.
assert_all_counted_since_attach() { assert_eq "received" "$(device .received.packets)" 20; }

test_attach_twice_adopts_without_a_gap() {
	local flood before after
	net_make
	attach
	agent set-limit any --rate 1000pps --burst 100
	before=$(link_ids)
	start_send --src 203.0.113.7 --rate 20000 --seconds 4 --model-rate 1000 --model-burst 100 >"$E2E_TMP/sent"
	flood=$PID
	for _ in 1 2 3 4 5; do
		sleep 0.5
		expect 0 agent attach "$DEV"
	done
	wait "$flood"
	after=$(link_ids)
	assert_eq "the link's id" "${after% *}" "${before% *}"
	[ "${after#* }" != "${before#* }" ] || fail "the program wasn't replaced"
	assert_all_counted
	assert_rate 1000pps "$(limit any .passed.packets)" 1000 100 1 "$(cat "$E2E_TMP/sent")"
}

test_detach_keep_keeps_policy_and_buckets() {
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 1/h --burst 10 --tenant acme
	agent set-limit 198.51.100.1 --rate 1/h --burst 5
	send --src 203.0.113.7 --src 198.51.100.1 --count 60
	expect 0 agent detach --keep "$DEV"
	assert_eq "program on the device" "$(xdp_id)" 0
	expect 0 agent attach "$DEV"
	assert_match "list" "$(agent list)" 'acme'
	send --src 203.0.113.7 --src 198.51.100.1 --count 60
	assert_eq "the dynamic bucket is still empty" "$(limit 203.0.113.0/24 .passed.packets)" 10
	assert_eq "and so is the target's own" "$(limit 198.51.100.1 .passed.packets)" 5
	expect 0 agent detach "$DEV"
	assert_nothing_left
}

test_two_devices_share_buckets_and_count_apart() {
	net_make
	ip -n "$RX" link add rl1 type veth peer name gen1 netns "$TX"
	ip -n "$RX" link set rl1 up
	ip -n "$TX" link set gen1 up
	agent attach rl0
	agent set-limit any --rate 1/h --burst 10
	agent attach rl1
	send --src 203.0.113.7 --count 8
	in_tx "$SEND" --dev gen1 --src 203.0.113.7 --count 8
	assert_eq "one bucket for both" "$(limit any .passed.packets)" 10
	assert_eq "first device" "$(DEV=rl0 device .passed.packets)" 8
	assert_eq "second device" "$(DEV=rl1 device .passed.packets)" 2
	expect 0 agent detach rl0
	assert_eq "program on the first" "$(xdp_id)" 0
	assert_eq "policy is still there" "$(limit any .rate_pps | jq '. > 0')" true
	in_tx "$SEND" --dev gen1 --src 203.0.113.7 --count 8
	assert_eq "the second still limits" "$(DEV=rl1 device .dropped.packets)" 14
	expect 0 agent detach rl1
	assert_nothing_left
}

test_a_killed_attach_is_adopted_by_the_next() {
	local i pid
	net_make
	for i in $(seq 45); do
		start_agent attach --max-sources 10k "$DEV" >/dev/null 2>&1
		pid=$PID
		sleep "0.0$((RANDOM % 8))$((RANDOM % 10))"
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
		[ $((i % 3)) -ne 0 ] || continue # several crashes in a row, too
		expect 0 attach
		assert_eq "program on the device is the link's" "$(xdp_id)" "$(link_ids | cut -d' ' -f2)"
		assert_eq "devices" "$(stats | jq '.devices | length')" 1
		agent set-limit any --rate 1/h --burst 5
		send --src "203.0.113.$i" --count 10
		assert_eq "passed under the limit" "$(agent top --once --json |
			jq --arg s "203.0.113.$i" '.sources[] | select(.source == $s) | .passed.packets')" 5
		[ $((i % 2)) -eq 0 ] || expect 0 agent detach "$DEV"
	done
	attach
	expect 0 agent detach "$DEV"
	assert_nothing_left
}

test_a_foreign_program_is_named_and_left_alone() {
	local id
	net_make
	attach_foreign
	id=$(xdp_id)
	expect 2 agent attach --mode native "$DEV"
	assert_match "message" "$ERR" "neighbours_prog|\b$id\b"
	assert_match "message" "$ERR" "$DEV"
	assert_eq "the foreign program" "$(xdp_id)" "$id"
	[ ! -e /sys/fs/bpf/rl-agent ] || fail "half attached: $(find /sys/fs/bpf/rl-agent)"
	expect 3 agent detach "$DEV"
	assert_eq "the foreign program after detach" "$(xdp_id)" "$id"

	# And where ours is on another device.
	ip -n "$RX" link add rl1 type veth peer name gen1 netns "$TX"
	expect 0 agent attach rl1
	expect 2 agent attach --mode native "$DEV"
	expect 3 agent detach "$DEV"
	assert_eq "the foreign program beside ours" "$(xdp_id)" "$id"
	expect 0 agent detach rl1
	assert_eq "the foreign program after ours went" "$(xdp_id)" "$id"
	[ ! -e /sys/fs/bpf/rl-agent ] || fail "left behind: $(find /sys/fs/bpf/rl-agent)"
}

test_a_large_mtu_is_named_and_nothing_is_half_attached() {
	net_make
	ip -n "$RX" link set "$DEV" mtu 9000
	ip -n "$TX" link set gen0 mtu 9000
	expect 2 agent attach --no-frags --mode native "$DEV"
	assert_match "message" "$ERR" 'mtu'
	assert_match "the MTU" "$ERR" '9000'
	assert_match "what to do" "$ERR" 'ip link set'
	assert_nothing_left
	# With multi-buffer support there is nothing to refuse, and jumbo frames are charged whole.
	expect 0 agent attach "$DEV"
	agent set-limit 203.0.113.7 --rate 1kbit --burst 90kb
	send --src 203.0.113.7 --len 9000 --count 20
	assert_eq "bytes of jumbo frames" "$(limit 203.0.113.7 .passed.bytes)" 90000
	assert_all_counted
}

test_generic_mode_only_by_name_and_with_a_warning() {
	net_make
	expect 0 agent attach --mode generic "$DEV"
	assert_match "warning" "$ERR" 'merged|GRO'
	assert_eq "mode" "$(device .mode)" '"generic"'
	agent set-limit any --rate 1/h --burst 5
	send --src 203.0.113.7 --count 20
	assert_eq "passed" "$(device .passed.packets)" 5
	assert_eq "received" "$(device .received.packets)" 20
	expect 0 agent detach "$DEV"
	assert_nothing_left
	expect 0 agent attach "$DEV"
	assert_eq "mode by default" "$(device .mode)" '"native"'
	assert_no_match "warning" "$ERR" 'merged|GRO'
	expect 1 agent attach --mode offload "$DEV"
	assert_match "the modes there are" "$ERR" 'native'
}

# The kernel takes native and generic one at a time.
test_another_mode_while_attached_is_refused_or_switched() {
	net_make
	attach
	"$AGENT" --version >/dev/null
	if agent attach --mode generic "$DEV" 2>"$E2E_TMP/err"; then
		assert_eq "mode" "$(device .mode)" '"generic"'
	else
		assert_match "message" "$(cat "$E2E_TMP/err")" 'native'
		assert_eq "mode" "$(device .mode)" '"native"'
	fi
	agent set-limit any --rate 1/h --burst 5
	send --src 203.0.113.7 --count 20
	assert_eq "passed" "$(device .passed.packets)" 5
}

test_bpffs_is_mounted_where_it_is_missing() {
	net_make
	umount /sys/fs/bpf
	expect 0 agent attach "$DEV"
	assert_eq "file system" "$(stat -f -c %T /sys/fs/bpf)" bpf_fs
	agent set-limit any --rate 1/h --burst 5
	send --src 203.0.113.7 --count 20
	assert_eq "passed" "$(device .passed.packets)" 5
	expect 0 agent detach "$DEV"
	assert_nothing_left
}

test_somebody_elses_folder_is_refused_and_named() {
	net_make
	mkdir -m 0700 /sys/fs/bpf/rl-agent
	chown 65534 /sys/fs/bpf/rl-agent
	expect 2 agent attach "$DEV"
	assert_match "message" "$ERR" '/sys/fs/bpf/rl-agent'
	assert_match "message" "$ERR" '65534|nobody|owner|owned'
	assert_eq "program on the device" "$(xdp_id)" 0
	expect 2 agent list
	chown 0 /sys/fs/bpf/rl-agent
	chmod 0777 /sys/fs/bpf/rl-agent
	expect 2 agent attach "$DEV"
	assert_match "message" "$ERR" 'mode|writable|permission|777'
	assert_eq "mode is left as it was" "$(stat -c %a /sys/fs/bpf/rl-agent)" 777
	assert_eq "program on the device" "$(xdp_id)" 0
	chmod 0700 /sys/fs/bpf/rl-agent
	expect 0 agent attach "$DEV"
}

# The same one level below, where somebody could have put maps of his own.
test_somebody_elses_state_is_refused() {
	local folder
	net_make
	attach
	folder=$(echo /sys/fs/bpf/rl-agent/*)
	chown 65534 "$folder"
	expect 2 agent list
	assert_match "message" "$ERR" "$folder"
	expect 2 agent set-limit any --rate 1pps
	expect 2 agent attach "$DEV"
}

test_missing_privilege_is_named() {
	local command
	net_make
	for command in "attach $DEV" "list" "stats" "set-limit any --rate 1pps" "detach $DEV" "top --once"; do
		# shellcheck disable=SC2086 # words of a command
		expect 2 in_rx setpriv --reuid 65534 --regid 65534 --clear-groups "$AGENT" $command
		assert_match "message of $command" "$ERR" 'root|CAP_|privilege'
	done
	assert_nothing_left
	attach
	expect 2 in_rx setpriv --reuid 65534 --regid 65534 --clear-groups "$AGENT" list
	assert_match "message" "$ERR" 'root|CAP_|privilege'
}

test_a_missing_device_is_named() {
	net_make
	expect 1 agent attach nosuch0
	assert_match "message" "$ERR" 'nosuch0'
	assert_nothing_left
	expect 1 agent attach
	expect 1 agent attach a-name-too-long-for-a-device
	assert_nothing_left
}

test_equal_devices_of_two_namespaces_stay_apart() {
	net_make a eth0 index 77
	net_make b eth0 index 77
	net_use a eth0
	expect 0 agent attach eth0
	agent set-limit any --rate 1/h --burst 5
	net_use b eth0
	expect 3 agent list
	expect 0 agent attach eth0
	send --src 203.0.113.7 --count 20
	assert_eq "b has no limit" "$(device .passed.packets)" 20
	agent set-limit any --rate 1/h --burst 7
	send --src 203.0.113.7 --count 20
	assert_eq "b's own limit" "$(limit any .passed.packets)" 7
	net_use a eth0
	send --src 203.0.113.7 --count 30
	assert_eq "a's own limit" "$(limit any .passed.packets)" 5
	assert_eq "a's own counters" "$(device .received.packets)" 30
	expect 0 agent status --all
	expect 0 agent detach eth0
	assert_eq "a's program" "$(xdp_id)" 0
	net_use b eth0
	send --src 203.0.113.7 --count 20
	assert_eq "b still limits" "$(limit any .passed.packets)" 7
	expect 0 agent detach eth0
	assert_nothing_left
}

test_ip_netns_exec_is_noticed() {
	net_make
	expect 2 ip netns exec "$RX" "$AGENT" attach "$DEV"
	assert_match "what to do" "$ERR" 'nsenter'
	assert_eq "program on the device" "$(xdp_id)" 0
	attach
	expect 2 ip netns exec "$RX" "$AGENT" list
	assert_match "what to do" "$ERR" 'nsenter'
	expect 2 ip netns exec "$RX" "$AGENT" set-limit any --rate 1pps
	assert_eq "limits" "$(stats | jq '.limits | length')" 0
}

entries_of() { # MAP
	bpftool -j map show pinned "$(echo /sys/fs/bpf/rl-agent/*/"$1")" |
		jq 'if type == "array" then .[0] else . end | .max_entries'
}

# 5000 sources have 1.6 places each, eight a row; regions of 256 rows have a lock each, and so do the 32 of
# the neighbourhoods.
test_the_table_of_sources_is_sized_at_attach() {
	local map
	net_make
	expect 0 agent attach --max-sources 7 "$DEV"
	assert_match "the smallest table" "$ERR" 'note: .*room for 1280 sources,.*not for 7'
	assert_eq "status" "$(agent status --json | jq .max_sources)" 1280
	expect 0 agent attach --max-sources 8 "$DEV"
	expect 0 agent attach --max-sources 1280 "$DEV"
	assert_eq "nothing to note" "$ERR" ''
	agent detach --all
	expect 0 agent attach --max-sources 5k "$DEV"
	for map in rows address6; do
		assert_eq "rows of $map" "$(entries_of $map)" 1024
	done
	assert_eq "locks" "$(entries_of locks)" $((4 + 32))
	assert_eq "entries of the other store" "$(entries_of sources)" 1
	expect 1 agent attach --max-sources 0 "$DEV"
	# What is attached can't be resized in place.
	expect 1 agent attach --max-sources 6k "$DEV"
	assert_match "what to do" "$ERR" 'detach'
	assert_eq "rows" "$(entries_of rows)" 1024
	expect 0 agent detach "$DEV"
	expect 0 agent attach --store lru --max-sources 5k "$DEV"
	assert_between "entries of the LRU map" "$(entries_of sources)" 5000 20000
	assert_eq "rows" "$(entries_of rows)" 1
}

e2e_main "$@"
