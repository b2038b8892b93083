#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What goes wrong around the agent: devices that move, states that are broken or another release's, a /sys without what
# belongs there, too little privilege, arguments made of anything, two at once.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=2

add_pair() { # DEV PEER [extra words]: one more device, and its other end in TX
	local dev=$1 peer=$2
	shift 2
	ip -n "$RX" link add "$dev" "$@" type veth peer name "$peer" netns "$TX"
	ip -n "$RX" link set "$dev" up
	ip -n "$TX" link set "$peer" up
}

send_by() { in_tx "$SEND" --dev "$@"; } # PEER OPTIONS...

states() { find /sys/fs/bpf/rl-agent -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null | sort | paste -sd' '; }

# ---- devices that move ----

# Move the attached rl0 out, and let a device in with its index.
move_out() { # NAME-OF-THE-NEWCOMER
	local index
	net_make
	attach
	agent set-limit any --rate 1/h --burst 5
	index=$(device .ifindex)
	ip netns add "rl-e2e-$$-third"
	ip -n "$RX" link set rl0 netns "rl-e2e-$$-third"
	add_pair "$1" gen1 index "$index"
	DEV=$1
	assert_eq "the newcomer's index" "$(ip -n "$RX" -j link show dev "$1" | jq '.[0].ifindex')" "$index"
	assert_eq "the newcomer's program" "$(xdp_id)" 0
	expect 0 agent status
	assert_match "status" "$OUT" 'rl0 .*moved'
	# Attached for real, and not taken for the one that moved.
	expect 0 agent attach "$1"
	assert_no_match "what attach says" "$OUT" 'was attached'
	[ "$(xdp_id)" != 0 ] || fail "no program on the newcomer"
	send_by gen1 --src 203.0.113.7 --count 20
	assert_eq "passed under the policy that was there" "$(limit any .passed.packets)" 5
	assert_eq "received by the newcomer" "$(stats | jq -c '[.devices[].received.packets] | sort')" '[0,20]'
}

moved_xdp_id() { ip -n "rl-e2e-$$-third" -d -j link show dev rl0 | jq '.[0].xdp.prog.id // 0'; }

test_a_device_that_moved_is_told_from_one_with_its_index() {
	move_out rl1
	[ "$(moved_xdp_id)" != 0 ] || fail "the program was to go with the device"
	expect 0 agent detach rl0
	assert_eq "program on the one that moved" "$(moved_xdp_id)" 0
	[ "$(xdp_id)" != 0 ] || fail "the program on the newcomer went as well"
	assert_eq "devices" "$(stats | jq -c '[.devices[].name]')" '["rl1"]'
	send_by gen1 --src 203.0.113.7 --count 20
	assert_eq "passed in all" "$(limit any .passed.packets)" 5
	expect 3 agent detach rl0
	expect 0 agent detach rl1
	assert_nothing_left
}

test_a_device_that_moved_is_told_from_one_with_its_name() {
	move_out rl0
	expect 0 agent detach rl0
	assert_eq "program on the newcomer" "$(xdp_id)" 0
	[ "$(moved_xdp_id)" != 0 ] || fail "the wrong one was detached"
	expect 0 agent detach rl0
	assert_eq "program on the one that moved" "$(moved_xdp_id)" 0
	assert_nothing_left
}

test_the_policy_waits_where_the_only_device_moved() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 5
	ip netns add "rl-e2e-$$-third"
	ip -n "$RX" link set rl0 netns "rl-e2e-$$-third"
	expect 0 agent list
	assert_match "policy" "$OUT" '^any'
	expect 0 agent detach --stale
	assert_match "what is attached isn't stale" "$OUT" 'nothing stale'
	expect 0 agent detach --keep rl0
	assert_eq "program on the one that moved" "$(moved_xdp_id)" 0
	add_pair rl1 gen1
	DEV=rl1
	expect 0 agent attach rl1
	send_by gen1 --src 203.0.113.7 --count 20
	assert_eq "passed under the policy that was kept" "$(limit any .passed.packets)" 5
}

# ---- names that a device has beside its own ----

by_either_name() { # ALTERNATIVE-NAME
	net_make
	ip -n "$RX" link property add dev "$DEV" altname "$1"
	expect 0 agent attach "$1"
	[ "$(xdp_id)" != 0 ] || fail "no program on the device"
	agent set-limit any --rate 1/h --burst 5
	assert_eq "name in stats" "$(stats | jq -c '[.devices[].name]')" '["rl0"]'
	expect 0 agent attach "$DEV"
	assert_match "attached by the other name" "$OUT" 'was attached'
	expect 0 agent pause "$1"
	send --src 203.0.113.7 --count 10
	assert_eq "paused" "$(device .reasons.paused)" 10
	expect 0 agent resume "$DEV"
	expect 0 agent pause "$DEV"
	expect 0 agent resume "$1"
	send --src 203.0.113.7 --count 10
	assert_eq "resumed" "$(device .reasons.source_limit)" 5
	expect 0 agent probe "$1"
	assert_match "probe" "$OUT" 'driver veth, MTU 1500'
	expect 0 agent detach "$1"
	assert_nothing_left
	expect 0 agent attach "$1"
	expect 0 agent detach "$DEV"
	assert_nothing_left
}

test_an_alternative_name_is_as_good() { by_either_name uplink; }
test_a_long_alternative_name_is_as_good() { by_either_name uplink-of-the-left-hand-rack; }

# ---- states that nobody comes back to ----

test_an_unfinished_attach_is_cleared_as_stale() {
	net_make
	mkdir -m 0700 /sys/fs/bpf/rl-agent /sys/fs/bpf/rl-agent/999999999
	expect 0 agent detach --stale
	assert_match "line" "$OUT" '/sys/fs/bpf/rl-agent/999999999: cleared'
	assert_nothing_left
	expect 0 agent detach --stale
	assert_match "a second time" "$OUT" 'nothing stale'
	# Killed a little later, and of this namespace.
	attach
	rm "$(echo /sys/fs/bpf/rl-agent/*)/meta"
	expect 0 agent detach --stale
	assert_match "line" "$OUT" '/sys/fs/bpf/rl-agent/[0-9]+: cleared'
	assert_nothing_left
}

# The state that another release would have left: its settings have another size, and the rest is anything.
make_other_release() { # COOKIE
	mkdir -m 0700 "/sys/fs/bpf/rl-agent/$1"
	bpftool map create "/sys/fs/bpf/rl-agent/$1/meta" type array key 4 value 40 entries 1 name rl_meta
	bpftool map create "/sys/fs/bpf/rl-agent/$1/whatever" type array key 4 value 8 entries 1 name other
}

test_another_releases_state_is_cleared_once_its_namespace_is_gone() {
	local cookie
	net_make
	attach
	cookie=$(states)
	agent detach "$DEV"
	mkdir -m 0700 /sys/fs/bpf/rl-agent
	make_other_release 999999999
	expect 0 agent detach --stale
	assert_match "line" "$OUT" '/sys/fs/bpf/rl-agent/999999999: cleared.*namespace'
	assert_nothing_left
	# This namespace's own isn't stale, but in the way: named, and given up on demand.
	mkdir -m 0700 /sys/fs/bpf/rl-agent
	make_other_release "$cookie"
	for command in "attach $DEV" list "set-limit any --rate 1pps" "detach $DEV" "detach --stale"; do
		# shellcheck disable=SC2086 # words of a command
		expect 2 agent $command
		assert_match "message of $command" "$ERR" 'another release.*detach --all'
	done
	assert_eq "what is left" "$(states)" "$cookie"
	expect 0 agent detach --all
	assert_nothing_left
	expect 0 attach
}

# Wherever in the folder's order the bad one comes.
test_an_untrusted_state_is_told_and_the_others_are_cleared() {
	local cookie
	net_make
	mkdir -m 0700 /sys/fs/bpf/rl-agent
	make_other_release 999999991
	mkdir -m 0700 /sys/fs/bpf/rl-agent/999999992
	mkdir -m 0777 /sys/fs/bpf/rl-agent/999999995
	chmod 0777 /sys/fs/bpf/rl-agent/999999995
	make_other_release 999999998
	mkdir -m 0700 /sys/fs/bpf/rl-agent/999999999
	expect 2 agent detach --stale
	assert_match "message" "$ERR" '/sys/fs/bpf/rl-agent/999999995.*777'
	for cookie in 999999991 999999992 999999998 999999999; do
		assert_match "line" "$OUT" "/sys/fs/bpf/rl-agent/$cookie: cleared"
	done
	assert_eq "what is left" "$(states)" 999999995
	expect 0 agent status --all
	assert_match "status --all" "$OUT" '999999995'
	expect 0 attach
	rmdir /sys/fs/bpf/rl-agent/999999995
	expect 0 agent detach "$DEV"
	assert_nothing_left
}

# ---- a /sys without what belongs there ----

refuses_under_ip_netns_exec() { # [words that come before the agent]
	local command
	for command in "status --all" status list stats "attach $DEV" "set-limit any --rate 1pps" "del-limit any" "top --once" \
		"explain 203.0.113.7" pause resume "detach $DEV" "detach --stale" "detach --all"; do
		# shellcheck disable=SC2086 # words of a command
		expect 2 timeout 5 ip netns exec "$RX" "$@" "$AGENT" $command
		assert_match "what $command says to do" "$ERR" 'nsenter --net=/run/netns/'
	done
}

test_every_command_notices_ip_netns_exec() {
	net_make
	refuses_under_ip_netns_exec
	attach
	agent set-limit any --rate 1/h --burst 5
	refuses_under_ip_netns_exec
	assert_eq "limits" "$(stats | jq '.limits | length')" 1
	# Without a look at process 1, as in containers.
	local blind=(setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace)
	! "${blind[@]}" stat -L /proc/1/ns/mnt >/dev/null 2>&1 || skip "process 1 can be looked at without CAP_SYS_PTRACE"
	refuses_under_ip_netns_exec "${blind[@]}"
	send --src 203.0.113.7 --count 20
	assert_eq "passed" "$(limit any .passed.packets)" 5
}

test_a_sys_without_bpffs_is_named_at_once() {
	local command
	net_make
	mount -t tmpfs tmpfs /sys
	expect 2 timeout 2 nsenter --net="/run/netns/$RX" "$AGENT" attach "$DEV"
	assert_match "message" "$ERR" '/sys/fs/bpf'
	for command in list stats status "set-limit any --rate 1pps" "detach $DEV"; do
		# shellcheck disable=SC2086 # words of a command
		expect 3 timeout 2 nsenter --net="/run/netns/$RX" "$AGENT" $command
	done
	umount /sys
	assert_nothing_left
	expect 0 attach
}

test_two_first_attaches_at_once_mount_one_bpffs() {
	local i first second start rounds=6
	[ -z "${RL_LONG:-}" ] || rounds=40
	net_make
	add_pair rl1 gen1
	umount /sys/fs/bpf
	start=$(date +%s%N)
	for i in $(seq "$rounds"); do
		start_agent attach --max-sources 1k rl0 >"$E2E_TMP/first" 2>&1
		first=$PID
		start_agent attach --max-sources 1k rl1 >"$E2E_TMP/second" 2>&1
		second=$PID
		wait "$first" || fail "round $i: $(cat "$E2E_TMP/first")"
		wait "$second" || fail "round $i: $(cat "$E2E_TMP/second")"
		assert_eq "round $i: mounts of bpffs" "$(awk '$2 == "/sys/fs/bpf"' /proc/self/mounts | wc -l)" 1
		agent set-limit any --rate 1/h --burst 5 >/dev/null
		send_by gen0 --src 203.0.113.7 --count 10 >/dev/null
		send_by gen1 --src 203.0.113.8 --count 10 >/dev/null
		assert_eq "round $i: passed on each" "$(stats | jq -c '[.devices[] | [.name, .passed.packets]] | sort')" \
			'[["rl0",5],["rl1",5]]'
		agent detach --all >/dev/null
		umount /sys/fs/bpf
	done
	note "$rounds rounds in $((($(date +%s%N) - start) / 1000000)) ms"
}

# ---- too little privilege ----

test_capabilities_without_root_are_refused_and_leave_nothing() {
	local caps command
	local nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	net_make
	for caps in +bpf,+net_admin +bpf,+net_admin,+perfmon,+sys_admin,+dac_override; do
		assert_match "capabilities of the test itself" \
			"$("${nobody[@]}" --inh-caps "$caps" --ambient-caps "$caps" grep CapEff /proc/self/status)" 'CapEff:.*[1-9a-f]'
		for command in "attach $DEV" list "set-limit any --rate 1pps" "detach $DEV" "detach --stale" "status --all"; do
			# shellcheck disable=SC2086 # words of a command
			expect 2 in_rx "${nobody[@]}" --inh-caps "$caps" --ambient-caps "$caps" "$AGENT" $command
			assert_match "message of $command" "$ERR" 'root'
			assert_nothing_left
		done
	done
	# Nor does root without the capabilities.
	expect 2 in_rx setpriv --bounding-set -sys_admin,-bpf --inh-caps -sys_admin,-bpf "$AGENT" attach "$DEV"
	assert_match "message" "$ERR" 'CAP_BPF'
	assert_nothing_left
	expect 0 attach
	agent set-limit any --rate 1/h --burst 5
	send --src 203.0.113.7 --count 20
	assert_eq "passed" "$(limit any .passed.packets)" 5
	expect 2 in_rx "${nobody[@]}" --inh-caps "$caps" --ambient-caps "$caps" "$AGENT" detach "$DEV"
	[ "$(xdp_id)" != 0 ] || fail "it was detached all the same"
}

# ---- arguments made of anything ----

# Commands that are to fail, each with one JSON object on standard output whose code is the exit code, and with one line
# of text on the other, without characters that drive a terminal. Looked at all together by json_failures_are_right.
json_fails() { # ARGUMENTS...
	local code=0 file
	FAILURES=$((FAILURES + 1))
	file=$E2E_TMP/json/$FAILURES
	agent "$@" >"$file" 2>>"$E2E_TMP/json/texts" || code=$?
	printf '%s 2 %s true:%s\n' "$FAILURES" "$code" "$(printf ' %q' "$@")" >>"$E2E_TMP/json/wanted"
	case $code in 1 | 2 | 3) ;; *) fail "exit $code:$(printf ' %q' "$@")" ;; esac
}

json_failures_are_right() {
	cd "$E2E_TMP/json"
	seq "$FAILURES" | xargs jq -r '"\(input_filename) \(.schema_version) \(.error.code) \(.error.message | length > 10)"' \
		>got || true
	sed 's/:.*//' wanted | diff - got >difference ||
		fail "$(head -3 difference | paste -sd' '); see: $(grep "^$(sed -n '2s/[<>] \([0-9]*\).*/\1/p' difference) " wanted)"
	seq "$FAILURES" | xargs cat | LC_ALL=C grep -n '[^ -~]' && fail "JSON with what no terminal should get"
	LC_ALL=C grep -n '[^ -~]' texts && fail "text with what no terminal should get"
	assert_eq "lines of text" "$(grep -c '^rl-agent: ' texts) of $(wc -l <texts)" "$FAILURES of $FAILURES"
	note "$FAILURES failures"
}

test_json_errors_stay_one_object_whatever_the_arguments_are() {
	local word command
	FAILURES=0
	mkdir "$E2E_TMP/json"
	net_make
	for command in list stats status "top --once"; do
		# shellcheck disable=SC2086 # words of a command
		json_fails $command -j
	done
	attach
	for word in $'\xff\xfe' $'\xc3' $'\xed\xa0\x80' $'\e[31m\a\b' $'a\nb\tc' 'quote" \ slash' '%s%n%1000000d' 'ümläut' \
		"$(printf 'x%.0s' $(seq 3000))" ''; do
		for command in list stats top status; do
			json_fails "$command" --json "$word"
			json_fails "$command" "--$word=1" --json
		done
		json_fails explain -j "$word"
		json_fails explain "--$word=1" 203.0.113.7 --json
		json_fails probe -j "$word"
		json_fails probe "--$word=1" --json
		json_fails "$word" --json
		json_fails help "x$word" --json
		json_fails top --json --filter "1/$word"
		json_fails top --json --by "$word"
		json_fails top -jn "$word"
		json_fails top --interval "x$word" --json
		json_fails set-limit "$word" --rate "$word" --json
	done
	json_fails top -jn 0
	json_fails top -jn
	json_fails top -n 0 -j
	json_fails list -jx
	json_fails list -xj
	json_fails list -j -- --json
	json_failures_are_right
}

test_json_output_is_one_object_by_any_spelling() {
	local words
	net_make
	attach
	for words in "list -j" "stats -j" "status -j" "status --all -j" "probe -j" "probe -j $DEV" "probe $DEV --json" \
		"explain -j 203.0.113.7" "explain 203.0.113.7 --json" \
		"top -jn 1 --interval 0.1" "top -jn1 --interval 0.1" "top --once -j -n 1 --interval 0.1"; do
		# shellcheck disable=SC2086 # words of a command
		expect 0 agent $words
		assert_eq "objects, and no error, of: $words" "$(jq -sc '[length, .[0].schema_version, .[0].error]' <<<"$OUT")" "[1,2,null]"
		assert_eq "text beside: $words" "$ERR" ''
	done
}

# ---- shutting oneself out ----

by_ssh() { in_rx env SSH_CONNECTION='203.0.113.50 50000 192.0.2.1 22' "$AGENT" "$@"; }

warns() { # COMMAND...
	expect 0 by_ssh "$@"
	assert_match "warning of $*" "$ERR" 'warning:.*203\.0\.113\.50.*del-limit|warning:.*203\.0\.113\.50.*pause'
}

warns_not() { # COMMAND...
	expect 0 by_ssh "$@"
	assert_no_match "warning of $*" "$ERR" '203\.0\.113\.50'
}

test_whatever_puts_ones_own_session_under_a_limit_warns() {
	net_make
	warns_not attach "$DEV"
	agent set-limit 203.0.113.0/24 --rate 1000pps
	warns_not pause
	warns resume
	warns_not detach --keep "$DEV"
	warns attach "$DEV"
	# A narrower limit, generous or not, gives way to what is around it.
	agent set-limit 203.0.113.50 --rate 1mpps
	warns del-limit 203.0.113.50
	assert_match "whose limit it is now" "$ERR" '203\.0\.113\.0/24'
	warns_not del-limit 203.0.113.0/24
	agent set-limit any --rate 5kpps
	agent set-limit 203.0.113.0/24 --rate 1mpps
	warns del-limit 203.0.113.0/24
	assert_match "whose limit it is now" "$ERR" 'limit of any'
	warns_not del-limit any
}

test_what_changes_nothing_for_ones_own_session_does_not_warn() {
	net_make
	attach
	agent set-limit any --rate 5kpps
	agent set-limit 203.0.113.0/24 --rate 1000pps
	warns_not set-limit 198.51.100.0/24 --rate 1pps
	warns_not del-limit 198.51.100.0/24
	warns_not set-limit any --rate 4kpps
	warns_not del-limit any
	warns_not set-limit ::/0 --rate 1pps
	warns_not pause
}

test_what_was_in_force_before_does_not_warn_again() {
	net_make
	attach
	agent set-limit any --rate 5kpps
	warns_not resume
	warns_not attach "$DEV"
}

test_a_limit_without_a_device_warns() {
	net_make
	attach
	expect 0 agent set-limit any --rate 1/h --burst 5
	assert_no_match "warning with a device" "$ERR" 'no device'
	expect 0 agent detach --keep "$DEV"
	expect 0 agent set-limit any --rate 1/h --burst 6
	assert_match "warning" "$ERR" 'warning: no device is attached.*attach'
	assert_match "status" "$(agent status)" 'no device'
	expect 0 attach
	send --src 203.0.113.7 --count 20
	assert_eq "passed under the limit that waited" "$(limit any .passed.packets)" 6
	ip -n "$TX" link del gen0
	expect 0 agent set-limit any --rate 1/h --burst 7
	assert_match "warning where the device is gone" "$ERR" 'warning: no device is attached'
}

# A map taken out of the state by hand: the program runs on, so nothing may call that "not attached".
test_a_missing_map_is_damage_and_not_absence() {
	net_make other
	net_make here
	attach
	agent set-limit any --rate 1/h --burst 5
	rm "$(echo /sys/fs/bpf/rl-agent/*/nd)"
	for command in status list "set-limit any --rate 1pps" "attach $DEV"; do
		# shellcheck disable=SC2086 # words
		expect 2 agent $command
		assert_match "$command" "$ERR" 'nd is missing.*detach --all'
	done
	net_use other
	expect 2 agent detach --stale
	net_use here
	send --src 203.0.113.7 --count 20
	[ "$(xdp_id)" -gt 0 ] || fail "what was enforcing is gone"
	expect 0 agent detach --all
	assert_nothing_left
	attach
}

# Kept for a namespace that neither a process nor a name holds, as container engines do: it may come back.
test_a_kept_policy_of_an_unseen_namespace_is_left_alone() {
	net_make held
	attach
	agent set-limit any --rate 1/h --burst 5
	expect 0 agent detach --keep "$DEV"
	touch "$E2E_TMP/held"
	mount --bind "/run/netns/$RX" "$E2E_TMP/held"
	ip netns del "$RX"
	net_make here
	expect 0 agent detach --stale
	assert_match "what is said" "$OUT" 'left alone'
	expect 0 nsenter --net="$E2E_TMP/held" "$AGENT" list
	assert_match "policy" "$OUT" '^any'
	umount "$E2E_TMP/held"
}

# The kernel's clock isn't that of a process in a time namespace: a change made from there forgives nothing.
test_a_change_from_a_time_namespace_forgives_nothing() {
	local offset round
	unshare --time true 2>/dev/null || skip "no time namespaces here"
	net_make
	attach
	agent set-limit any --rate 10/m --burst 100
	for offset in 1000000 5 86400; do
		send --src 203.0.113.7 --count 200
		unshare --time --monotonic "$offset" --fork nsenter --net="/run/netns/$RX" "$AGENT" \
			set-limit any --rate "$((11 + offset % 7))/m" --burst 100
		send --src 203.0.113.7 --count 200
	done
	round=$(limit any .passed.packets)
	assert_between "passed" "$round" 100 103
	note "$round passed of 100 and a few seconds at 10/m"
}

# ---- what the kernel can't do ----

old_kernel() { in_rx env LD_PRELOAD="$E2E_BUILD/tests/oldkernel.so" RL_OLD="$1" "$AGENT" "${@:2}"; }

test_a_kernel_that_is_too_old_is_named() {
	net_make
	expect 2 old_kernel cookie attach "$DEV"
	assert_match "message" "$ERR" 'kernel .* is too old.*Linux 6\.1.*probe'
	assert_nothing_left
	expect 2 old_kernel program attach "$DEV"
	assert_match "message" "$ERR" 'kernel .* refused the packet program.*Linux 6\.1.*probe'
	assert_nothing_left
	assert_eq "program" "$(xdp_id)" 0
	expect 2 old_kernel program probe
	assert_match "what is missing" "$OUT" 'no +xdp .*too old'
	assert_match "what follows" "$OUT" "can't work here"
}

test_probe_tells_what_kernel_and_device_can_do() {
	net_make
	expect 0 agent probe "$DEV"
	assert_match "kernel" "$OUT" "^kernel $(uname -r)"
	assert_match "what follows" "$OUT" 'rl-agent works here'
	assert_match "device" "$OUT" "^$DEV: driver veth, MTU 1500"
	expect 0 agent probe --json "$DEV"
	assert_eq "works" "$(jq -c '[.schema_version, .works, .device.name, .device.driver]' <<<"$OUT")" '[2,true,"rl0","veth"]'
	assert_eq "checks without a finding" "$(jq '[.checks[] | select(.found == null)] | length' <<<"$OUT")" 0
	assert_eq "left on the device" "$(xdp_id)" 0
	expect 2 in_rx setpriv --reuid 65534 --regid 65534 --clear-groups "$AGENT" probe
	assert_match "without privilege" "$OUT" "\\? +xdp .*can't be told without privilege"
	attach
	expect 0 agent probe "$DEV"
	assert_match "an attached device" "$OUT" 'runs XDP program [0-9]+'
	expect 1 agent probe nosuch0
}

e2e_main "$@"
