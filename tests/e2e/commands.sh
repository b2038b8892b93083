#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The commands around the limits: pause, status, exit codes, warnings, and being killed half way.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=2

test_the_readme_commands_work() {
	net_make
	expect 0 agent attach "$DEV"
	expect 0 agent set-limit 203.0.113.7 --rate 1000pps --burst 2000
	expect 0 agent set-limit 198.51.100.0/24 --rate 10mbit --burst 256kb --tenant acme
	expect 0 agent set-limit 2001:db8::/32 --rate 500pps
	expect 0 agent set-limit any --rate 5kpps
	send --src 203.0.113.7 --src 198.51.100.9 --src 2001:db8::1 --src 192.0.2.9 --rate 2000 --seconds 1
	expect 0 agent list
	for word in 203.0.113.7 1kpps 2000p 198.51.100.0/24 10mbit 256kb acme 2001:db8::/32 500pps any 5kpps; do
		assert_match "list" "$OUT" "(^|[^0-9a-z])$word([^0-9a-z]|\$)"
	done
	expect 0 agent stats
	expect 0 agent status
	assert_match "status" "$OUT" "$DEV"
	expect 0 agent top --once
	assert_match "top" "$OUT" '203\.0\.113\.7'
	expect 0 agent pause
	expect 0 agent resume "$DEV"
	expect 0 agent del-limit 198.51.100.0/24
	assert_eq "limits left" "$(agent list --json | jq '.limits | length')" 3
	expect 0 agent detach "$DEV"
	assert_nothing_left
}

test_paused_everything_passes_and_is_counted() {
	local link
	net_make
	attach
	agent set-limit any --rate 1/h --burst 5
	link=$(link_ids)
	send --src 203.0.113.7 --count 20
	expect 0 agent pause
	send --src 203.0.113.7 --count 30
	assert_eq "counted as paused" "$(device .reasons.paused)" 30
	assert_eq "dropped" "$(device .dropped.packets)" 15
	assert_match "status" "$(agent status)" 'paused'
	assert_eq "nothing was detached" "$(link_ids)" "$link"
	expect 0 agent attach "$DEV"
	send --src 203.0.113.7 --count 5
	assert_eq "attached again, still paused" "$(device .reasons.paused)" 35
	expect 0 agent resume "$DEV"
	send --src 203.0.113.7 --count 10
	assert_eq "dropped after resume" "$(device .dropped.packets)" 25
	expect 0 agent pause "$DEV"
	send --src 203.0.113.7 --count 10
	assert_eq "paused by name" "$(device .reasons.paused)" 45
	assert_all_counted
	expect 3 agent pause nosuch0
}

test_a_killed_top_changes_nothing() {
	local i pid before
	net_make
	attach
	agent set-limit any --rate 1/h --burst 5
	send --src 203.0.113.7 --count 20
	before=$(link_ids)
	for i in $(seq 20); do
		start_agent top -n 100 --json >/dev/null 2>&1
		pid=$PID
		sleep "0.0$((RANDOM % 10))"
		kill -9 "$pid"
		wait "$pid" 2>/dev/null || true
		send --src 203.0.113.7 --count 10 >/dev/null
		assert_eq "passed after kill $i" "$(limit any .passed.packets)" 5
		assert_eq "dropped after kill $i" "$(limit any .dropped.packets)" $((15 + i * 10))
	done
	assert_eq "link and program" "$(link_ids)" "$before"
	assert_all_counted
}

test_a_killed_set_limit_leaves_the_policy_whole() {
	local i pid terms dropped=0
	net_make
	attach
	agent set-limit 203.0.113.7 --rate 1/h --burst 5
	agent set-limit any --rate 10/h --burst 50 --tenant old
	send --src 203.0.113.7 --count 20
	for i in $(seq 60); do
		# Old and new differ in everything: a mixture of the two would be neither.
		if [ $((i % 2)) -eq 1 ]; then
			start_agent set-limit any --rate 20/h --burst 70 --rate 20kbit --burst 70kb --tenant new
		else
			start_agent set-limit any --rate 10/h --burst 50 --tenant old
		fi
		pid=$PID
		sleep "0.00$((RANDOM % 10))"
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
		terms=$(agent list --json | jq -c '.limits[] | select(.target == "any") |
			[.tenant, .burst_packets, .rate_bits, .burst_bytes]')
		case $terms in
		'["old",50,null,null]' | '["new",70,20000,70000]') ;;
		*) fail "after kill $i the limit is $terms" ;;
		esac
		send --src 203.0.113.7 --count 5 >/dev/null
		assert_eq "the other limit's counter" "$(limit 203.0.113.7 .dropped.packets)" $((15 + i * 5))
	done
	# A new target each time: there whole, or not at all, and what was claimed for it isn't lost.
	for i in $(seq 40); do
		start_agent set-limit "192.0.2.$i" --rate 1/h --burst 7
		pid=$PID
		sleep "0.00$((RANDOM % 10))"
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
		dropped=$(agent list --json | jq --arg t "192.0.2.$i" '[.limits[] | select(.target == $t)] | length')
		[ "$dropped" -eq 1 ] || agent set-limit "192.0.2.$i" --rate 1/h --burst 7
		send --src "192.0.2.$i" --count 10 >/dev/null
		assert_eq "passed under the new limit" "$(limit "192.0.2.$i" .passed.packets)" 7
	done
	assert_eq "limits" "$(agent list --json | jq '.limits | length')" 42
	assert_all_counted
}

test_commands_at_the_same_time_serialise() {
	local i pids=()
	net_make
	attach
	for i in $(seq 20); do
		start_agent set-limit "192.0.2.$i" --rate 1/h --burst "$i"
		pids+=("$PID")
	done
	for i in "${pids[@]}"; do wait "$i" || fail "a set-limit failed"; done
	assert_eq "limits" "$(agent list --json | jq -c '[.limits[].burst_packets] | sort')" \
		"$(jq -nc '[range(1; 21)]')"
	for i in 1 10 20; do
		send --src "192.0.2.$i" --count 30 >/dev/null
		assert_eq "passed of 192.0.2.$i" "$(limit "192.0.2.$i" .passed.packets)" "$i"
	done
	# The same target by all of them: one entry, and one of the values.
	pids=()
	for i in $(seq 20); do
		start_agent set-limit any --rate 1/h --burst "$i"
		pids+=("$PID")
	done
	for i in "${pids[@]}"; do wait "$i" || fail "a set-limit failed"; done
	assert_eq "limits" "$(agent list --json | jq '.limits | length')" 21
}

test_a_renamed_device_is_followed() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 5
	ip -n "$RX" link set "$DEV" down
	ip -n "$RX" link set "$DEV" name wan0
	ip -n "$RX" link set wan0 up
	DEV=wan0
	wait_for 5 in_rx ip link show dev wan0 up
	send --src 203.0.113.7 --count 20
	assert_eq "stats under the new name" "$(device .passed.packets)" 5
	assert_match "status" "$(agent status)" 'wan0'
	expect 0 agent pause wan0
	expect 0 agent resume wan0
	expect 0 agent attach wan0
	assert_eq "devices" "$(stats | jq '.devices | length')" 1
	expect 3 agent detach rl0
	expect 0 agent detach wan0
	assert_nothing_left
}

test_what_a_gone_device_left_is_cleared() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 5
	ip -n "$TX" link del gen0
	expect 0 agent status
	assert_match "status" "$OUT" 'gone'
	expect 0 agent list
	expect 0 agent detach --stale
	assert_match "what is cleared and what is kept" "$OUT" 'rl0: cleared'
	assert_match "what is cleared and what is kept" "$OUT" 'kept.*detach --all'
	[ -z "$(find /sys/fs/bpf/rl-agent -name 'device-*')" ] || fail "a link is left behind"
	expect 0 agent detach --stale
	assert_match "a second time" "$OUT" 'nothing stale'
	# The namespace is there still, and its policy may be wanted for the device that comes back.
	expect 0 agent list
	assert_match "policy" "$OUT" '^any'
	expect 0 agent detach --all
	[ ! -e /sys/fs/bpf/rl-agent ] || fail "left behind: $(find /sys/fs/bpf/rl-agent)"
}

test_a_gone_device_can_come_back() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 5
	ip -n "$TX" link del gen0
	ip -n "$RX" link add "$DEV" type veth peer name gen0 netns "$TX"
	ip -n "$RX" link set "$DEV" up
	ip -n "$TX" link set gen0 up
	expect 0 agent attach "$DEV"
	send --src 203.0.113.7 --count 20
	assert_eq "the policy is in force" "$(limit any .passed.packets)" 5
	assert_eq "devices" "$(stats | jq '[.devices[] | select(.name == "rl0" and .ifindex > 0)] | length')" 1
}

only_one_state() { [ "$(find /sys/fs/bpf/rl-agent -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 1 ]; }

test_what_a_gone_namespace_left_is_cleared() {
	net_make other
	attach
	agent set-limit any --rate 1/h --burst 5
	net_make here
	attach
	agent set-limit any --rate 1/h --burst 6
	expect 0 agent status --all --json
	assert_eq "namespaces in status --all" "$(jq '[.. | .devices? // empty | arrays] | length' <<<"$OUT")" 2
	expect 0 agent detach --stale
	assert_eq "what is alive stays" "$(find /sys/fs/bpf/rl-agent -mindepth 1 -maxdepth 1 -type d | wc -l)" 2
	ip netns del "rl-e2e-$$-other-rx"
	ip netns del "rl-e2e-$$-other-tx"
	wait_for 10 eval "$(declare -f agent in_rx only_one_state); agent detach --stale && only_one_state"
	send --src 203.0.113.7 --count 20
	assert_eq "ours still limits" "$(limit any .passed.packets)" 6
	expect 0 agent detach "$DEV"
	assert_nothing_left
}

test_exit_codes_and_json_errors_agree() {
	local code
	net_make
	json_error() { # CODE COMMAND...
		expect "$@"
		[ -n "$ERR" ] || fail "no text: $*"
		code=$1
		shift
		expect "$code" "$@" --json
		assert_eq "JSON error of: $*" \
			"$(jq -c '[.schema_version, .error.code, (.error.message | length > 10)]' <<<"$OUT")" "[2,$code,true]"
	}
	for command in list stats status top pause resume; do
		expect 3 agent $command
		assert_match "what to do" "$ERR" 'attach'
	done
	json_error 3 agent list
	json_error 3 agent stats
	json_error 3 agent top --once
	expect 3 agent set-limit any --rate 1pps
	assert_match "what to do" "$ERR" 'attach'
	expect 3 agent del-limit any
	expect 1 agent
	expect 1 agent nonsense
	assert_match "message" "$ERR" 'nonsense'
	expect 0 agent help
	for command in attach detach set-limit del-limit allow deny list stats explain top reset status pause resume probe; do
		assert_match "help" "$OUT" "(^| )$command( |\$)"
	done
	expect 0 agent help set-limit
	assert_match "help set-limit" "$OUT" '--burst'
	expect 0 agent --version
	assert_match "version" "$OUT" '[0-9]+\.[0-9]+'
	expect 0 agent probe
	expect 0 agent probe "$DEV"
	expect 2 in_rx setpriv --reuid 65534 --regid 65534 --clear-groups "$AGENT" probe
	expect 2 in_rx setpriv --reuid 65534 --regid 65534 --clear-groups "$AGENT" probe --json
	assert_eq "one object" "$(jq -sc '[length, .[0].works]' <<<"$OUT")" '[1,false]'
	[ -n "$ERR" ] || fail "no text"
	attach
	expect 1 agent set-limit 10.0.0.1/8 --rate 1pps
	assert_match "the network meant" "$ERR" '10\.0\.0\.0/8'
	expect 1 agent set-limit 10.0.0.0/33 --rate 1pps
	expect 1 agent set-limit 2001:db8::/129 --rate 1pps
	expect 1 agent set-limit any
	expect 1 agent set-limit any --rate 100
	assert_match "hint" "$ERR" '100pps'
	expect 1 agent set-limit any --rate 1mbps
	assert_match "hint" "$ERR" 'mbit'
	expect 1 agent set-limit any --rate 10mbit --burst 1kb
	expect 1 agent set-limit any --rate 1pps --rate 2pps
	expect 1 agent set-limit any --rate 999gbit
	assert_match "the range" "$ERR" '800gbit'
	expect 1 agent del-limit any
	expect 1 agent stats --no-such-option
	json_error 2 in_rx setpriv --reuid 65534 --regid 65534 --clear-groups "$AGENT" stats
	assert_eq "limits" "$(stats | jq '.limits | length')" 0
}

test_an_option_given_twice_is_refused() {
	net_make
	expect 1 agent attach --max-sources 1000 --max-sources 2000 "$DEV"
	assert_match "which" "$ERR" '--max-sources is given twice.*usage'
	assert_nothing_left
	expect 1 agent explain 203.0.113.7 --proto tcp --proto=udp
	assert_match "which" "$ERR" '--proto is given twice'
	expect 1 agent set-limit any --rate 1pps --tenant a -t a
	assert_match "which" "$ERR" '--tenant is given twice'
	expect 1 agent del-limit any --class tcp --class udp
	assert_match "which" "$ERR" '--class is given twice'
	expect 1 agent top --interval 1 --interval 2 --once
	assert_match "which" "$ERR" '--interval is given twice'
	expect 1 agent list --json -j
	assert_match "which" "$ERR" '--json is given twice'
	assert_eq "JSON error" "$(jq -c '[.error.code, .error.message]' <<<"$OUT")" \
		"$(jq -nc --arg text "${ERR#rl-agent: }" '[1, $text]')"
}

test_words_too_many_are_refused() {
	local words
	for words in "help set-limit" "help help" help\ --help "--help list" --version -V "list --help" "list -h" list stats \
		status top "probe lo" "pause eth9" "resume eth9" "attach eth9" "detach eth9" "set-limit any" "del-limit any" \
		"allow any" "deny any" "reset any" "explain 203.0.113.7"; do
		# shellcheck disable=SC2086 # words of a command
		expect 1 "$AGENT" $words surplus
		assert_match "$words" "$ERR" 'too many arguments: "surplus" has no place; usage: rl-agent '
		assert_eq "output of $words" "$OUT" ""
	done
	for words in --version -V --help "help list" "list --help" "list -h"; do
		# shellcheck disable=SC2086
		expect 0 "$AGENT" $words
	done
}

test_an_empty_word_is_refused() {
	local command
	net_make
	for command in attach detach pause resume probe "detach --all" "detach --stale" "attach --shadow"; do
		# shellcheck disable=SC2086 # words of a command
		expect 1 agent $command ''
		assert_match "$command" "$ERR" "rl-agent: ${command%% *}: DEV is empty.*usage: rl-agent ${command%% *}"
	done
	attach
	for command in attach detach pause resume probe "detach --all" "detach --all --keep"; do
		# shellcheck disable=SC2086
		expect 1 agent $command ''
		assert_match "$command" "$ERR" 'DEV is empty'
	done
	assert_eq "still attached, and not paused" "$(stats | jq -c '[.devices[] | [.name, .paused // false]]')" '[["rl0",false]]'
	for command in set-limit del-limit reset; do
		expect 1 agent $command ''
		assert_match "$command" "$ERR" 'TARGET is empty'
	done
	expect 1 agent explain 203.0.113.7 --dev '' --json
	assert_match "explain" "$ERR" '--dev is empty'
	assert_eq "JSON error" "$(jq .error.code <<<"$OUT")" 1
	expect 1 agent explain 203.0.113.7 --dev=
	assert_match "explain" "$ERR" '--dev is empty'
	expect 3 agent explain 203.0.113.7 --dev nosuch0
	expect 1 agent explain '' --dev "$DEV"
	assert_match "explain" "$ERR" 'ADDRESS is empty'
	expect 1 agent allow ''
	assert_match "allow" "$ERR" 'PREFIX is empty'
	expect 1 agent set-limit any --rate 1pps --tenant ''
	assert_match "set-limit" "$ERR" '--tenant is empty'
	expect 1 agent top --once --filter ''
	assert_match "top" "$ERR" '--filter is empty'
	expect 1 agent attach "$DEV" --max-sources ''
	assert_match "attach" "$ERR" '--max-sources is empty'
}

test_a_refusal_tells_the_truth() {
	local seconds
	expect 1 "$AGENT" set-limit any --rate 999bit
	assert_match "999bit" "$ERR" '"bit" is no unit here.*1kbit.*is the lowest'
	assert_no_match "999bit" "$ERR" 'write 999'
	expect 1 "$AGENT" set-limit any --rate 900Gbps
	assert_no_match "900Gbps" "$ERR" 'write 900'
	for seconds in x 1s 0 61 nan -1 0.05; do
		expect 1 "$AGENT" top "--interval=$seconds"
		assert_match "--interval $seconds" "$ERR" "--interval \"$seconds\": expected seconds, from 0.1 to 60"
	done
	expect 1 "$AGENT" explain 203.0.113.7 --proto tcp --dport 70000
	assert_match "a port's range" "$ERR" 'from 1 to 65535'
	assert_no_match "a port's range" "$ERR" '1m'
}

test_options_that_contradict_each_other_are_refused() {
	net_make
	attach
	expect 1 agent detach --stale --keep
	assert_match "why" "$ERR" '--keep goes with.*--stale clears.*leave one'
	expect 1 agent detach --all --stale
	assert_match "why" "$ERR" 'one of a device.s name, --all and --stale'
	expect 1 agent detach --all "$DEV"
	expect 1 agent detach --stale "$DEV"
	expect 1 agent detach
	expect 1 agent detach --keep
	expect 1 agent attach --shadow --enforce "$DEV"
	expect 1 agent set-limit any --rate 1pps --shadow --enforce
	expect 1 agent set-limit any --rate 1pps --shared --per /24
	expect 1 agent explain 203.0.113.7 --proto udp --syn
	expect 1 agent explain 203.0.113.7 --proto tcp --dport 80 --frag
	expect 1 agent explain 203.0.113.7 --dport 80
	assert_eq "still attached" "$(stats | jq '.devices | length')" 1
	expect 0 agent detach --stale
	expect 0 agent detach --all --keep
}

test_explain_takes_the_lengths_that_a_frame_can_have() {
	local length
	net_make
	attach
	for length in 0 13 65558 131072 131073 1m 9999999999999999999999; do
		expect 1 agent explain 203.0.113.7 --bytes "$length"
		assert_match "$length" "$ERR" "--bytes \"$length\": it is out of range; expected a count from 14 to 65557"
	done
	for length in -1 60.5 x; do
		expect 1 agent explain 203.0.113.7 "--bytes=$length"
		assert_match "$length" "$ERR" 'from 14 to 65557'
	done
	for length in 14 60 1514 65557; do
		expect 0 agent explain 203.0.113.7 --bytes "$length" --json
	done
	expect 0 "$AGENT" help explain
	assert_match "help" "$OUT" '--bytes.*14 to 65557'
}

# A name that nobody has finds nothing; what can't be anybody's is a mistake.
test_a_filter_finds_nothing_or_is_refused() {
	local filter
	net_make
	attach
	agent set-limit any --rate 1kpps --tenant acme
	send --src 203.0.113.7 --count 5
	# shellcheck disable=SC2317 # expect calls it
	top() { agent top --once --interval 0.1 "$@"; }
	for filter in nosuch 192.0.2.0/24 2001:db8::1; do
		expect 0 top --filter "$filter"
		assert_match "$filter" "$OUT" 'no tracked source matches the filter'
		expect 0 top --filter "$filter" --json
		assert_eq "$filter" "$(jq -c '[.sources, .sources_tracked, .sources_matched]' <<<"$OUT")" '[[],1,0]'
	done
	for filter in acme any 203.0.113.0/24 203.0.113.7; do
		expect 0 top --filter "$filter" --json
		assert_eq "$filter" "$(jq -c '[.sources[].source]' <<<"$OUT")" '["203.0.113.7"]'
	done
	for filter in 'a b' -x new none 203.0.113.7/24 203.0.113 203.0.113.0/33 2001:db8: dev:rl0 'acme*' \
		a-name-that-is-longer-than-31-bytes; do
		expect 1 top "--filter=$filter" --json
		assert_match "$filter" "$ERR" '--filter "'
		assert_match "$filter" "$ERR" 'no address, no prefix and no tenant.s name: .'
		assert_eq "JSON error of $filter" "$(jq .error.code <<<"$OUT")" 1
	done
	expect 1 top --filter 203.0.113.7/24
	assert_match "the network meant" "$ERR" '203\.0\.113\.0/24'
}

test_json_output_has_the_fields_promised() {
	local all
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 1000pps --burst 5 --tenant acme
	agent set-limit any --rate 10mbit
	send --src 203.0.113.7 --count 20
	all=$(stats)
	assert_eq "device" "$(jq -c '.devices[0] | [.name, (.ifindex > 0), .direction != null, .mode, .received, .passed.packets,
		.dropped.packets, .reasons.within_limit, .reasons.source_limit]' <<<"$all")" \
		'["rl0",true,true,"native",{"packets":20,"bytes":1200},5,15,5,15]'
	assert_eq "limits" "$(jq -c '[.limits | sort_by(.target)[] | [.target, .tenant, .rate_pps, .burst_packets, .rate_bits,
		.burst_bytes, .passed.packets, .dropped.bytes]]' <<<"$all")" \
		'[["203.0.113.0/24","acme",1000,5,null,null,5,900],["any",null,null,null,10000000,312500,0,0]]'
	assert_eq "schema versions" "$(for c in stats list status "top --once"; do
		# shellcheck disable=SC2086
		agent $c --json | jq .schema_version
	done | tr '\n' ' ')" '2 2 2 2 '
	assert_eq "source" "$(agent top --once --json | jq -c '.sources[0] | [.source, .limit, .tenant, .passed,
		.dropped.packets, .passed_pps, .dropped_pps]')" \
		'["203.0.113.7","203.0.113.0/24","acme",{"packets":5,"bytes":300},15,0,0]'
}

test_a_limit_on_ones_own_session_warns() {
	local ssh='203.0.113.50 50000 192.0.2.1 22'
	net_make
	attach
	expect 0 in_rx env SSH_CONNECTION="$ssh" "$AGENT" set-limit 203.0.113.0/24 --rate 1000pps
	assert_match "warning" "$ERR" '203\.0\.113\.50'
	expect 0 agent del-limit 203.0.113.0/24
	# sudo takes the variable away: the shell around it still has it.
	expect 0 in_rx env SSH_CONNECTION="$ssh" bash -c 'env -u SSH_CONNECTION "$@"; exit $?' - \
		"$AGENT" set-limit any --rate 1000pps
	assert_match "warning by a parent's environment" "$ERR" '203\.0\.113\.50'
	expect 0 in_rx env SSH_CONNECTION="2001:db8::5 50000 2001:db8::1 22" "$AGENT" set-limit 2001:db8::/64 --rate 1kpps
	assert_match "warning for IPv6" "$ERR" '2001:db8::5'
	expect 0 in_rx env SSH_CONNECTION="$ssh" "$AGENT" set-limit 198.51.100.0/24 --rate 1000pps
	assert_no_match "warning where it doesn't cover" "$ERR" '203\.0\.113\.50'
	expect 0 agent set-limit 203.0.113.0/24 --rate 1000pps
	assert_no_match "warning without a session" "$ERR" '203\.0\.113\.50'
	expect 0 in_rx env SSH_CONNECTION="$ssh" "$AGENT" set-limit any --rate 1000pps
	assert_no_match "warning where a narrower limit holds" "$ERR" '203\.0\.113\.50'
}

test_a_newcomer_is_told_what_is_so() {
	local word
	net_make
	expect 3 agent detach "$DEV"
	assert_match "nothing attached" "$ERR" 'nothing is attached'
	! grep -q 'rl-agent attach' <<<"$ERR" || fail "whoever detaches is told to attach: $ERR"
	expect 1 agent attach "$DEV" --mode foo
	assert_match "modes" "$ERR" 'native, generic, tc, auto'
	expect 0 agent attach "$DEV" --mode auto --shadow
	expect 0 agent pause
	assert_match "stats of a paused device" "$(agent stats)" "^$DEV +paused "
	assert_eq "and as JSON" "$(device .paused)" true
	expect 0 agent resume
	assert_match "resumed" "$OUT" 'in shadow'
	assert_match "stats of a device in shadow" "$(agent stats)" "^$DEV +shadow "
	assert_eq "and as JSON" "$(device .in_shadow)" true
	expect 0 agent set-limit 203.0.113.7 --rate 1000pps --burst 20k
	expect 1 agent set-limit 203.0.113.7 --burst 10
	assert_match "a burst alone" "$ERR" 'states the whole limit: repeat the rate'
	expect 0 agent set-limit 203.0.113.7 --rate 2000pps
	assert_match "note" "$ERR" 'note: a source that used up the burst before .* for up to 9\.75 s; .*del-limit 203\.0\.113\.7`'
	expect 0 agent del-limit 203.0.113.7
	expect 0 agent set-limit 203.0.113.7 --rate 2000pps
	! grep -q 'note:' <<<"$ERR" || fail "a note on what owes nothing: $ERR"
	expect 1 agent set-limit 2001:db8::1 --rate 1kpps --per /64
	assert_match "--per" "$ERR" 'one source already'
	expect 1 agent explain foo
	assert_match "explain" "$ERR" 'expected an address'
	for word in any 198.51.100.0/24 tenant:acme "dev:$DEV" new; do
		expect 1 agent explain "$word"
		assert_match "explain $word" "$ERR" 'expected an address, such as'
	done
	expect 0 agent status
	assert_match "memory" "$OUT" '^memory reserved for it all: [1-9][0-9.]*[kMG]B'
	# At least the table of a million sources: 1.6 places each, of 88 bytes and 16 of an IPv6 address.
	assert_between "memory" "$(agent status --json | jq .memory_bytes)" 166400000 1000000000
	expect 0 agent detach --keep "$DEV"
	for word in pause resume; do
		expect 3 agent "$word"
		assert_match "$word without a device" "$ERR" 'no device is attached.*attach DEV. puts the policy that was kept in force'
		expect 3 agent "$word" "$DEV"
		assert_match "$word of one that isn't attached" "$ERR" "attach $DEV"
	done
	assert_match "reasons" "$(agent help stats)" 'source_limit +over its'
}

# The kernel takes any byte but spaces, '/' and ':'; a terminal would obey some.
test_a_devices_name_is_shown_and_not_obeyed() {
	local name=$'r\e[31m\x07' shown='r\\x1b\[31m\\x07' command
	net_make
	ip -n "$RX" link add "$name" type veth peer name gen1 netns "$TX" 2>/dev/null || skip "ip takes no such name"
	attach
	# shellcheck disable=SC2317 # called below
	plain() { # COMMAND...
		expect 0 agent "$@"
		! grep -q "[^[:print:][:space:]]" <<<"$OUT$ERR" || fail "$1: what isn't printable is printed"
		assert_match "$1" "$OUT$ERR" "$shown"
	}
	plain attach --mode generic "$name"
	plain set-limit "dev:$name" --rate 1kpps --burst 20k
	plain set-limit "dev:$name" --rate 1kpps --burst 20
	for command in list stats status "top --once --interval 0.1" "explain 203.0.113.7"; do
		# shellcheck disable=SC2086 # words of a command
		plain $command
	done
	assert_eq "JSON" "$(agent list --json | jq -r '.limits[0].target')" "dev:$name"
	plain pause "$name"
	plain resume "$name"
	plain reset "dev:$name"
	plain probe "$name"
	plain del-limit "dev:$name"
	plain detach "$name"
	expect 3 agent detach "$name"
	assert_match "an error" "$ERR" "$shown"
}

test_every_command_has_help() {
	local command
	for command in attach detach set-limit del-limit allow deny list stats explain top reset status pause resume probe; do
		expect 0 "$AGENT" help "$command"
		assert_match "usage" "$OUT" "^Usage: rl-agent $command"
	done
	expect 1 "$AGENT" help nosuch
	expect 1 "$AGENT"
}

test_make_installs_one_binary() {
	make -s -C "$E2E_ROOT" install DESTDIR="$E2E_TMP/root" PREFIX=/usr >/dev/null
	assert_eq "what is installed" "$(cd "$E2E_TMP/root" && find . -type f)" ./usr/sbin/rl-agent
	"$E2E_TMP/root/usr/sbin/rl-agent" --version >/dev/null
}

e2e_main "$@"
