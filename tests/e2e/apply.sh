#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The policy from a file: apply, attach --policy, list --policy, on real frames; refused, killed and repeated.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=2

# One packet an hour refills nothing while a test runs, so what passes is the burst, exactly.

said() { cat >"$E2E_TMP/policy"; }

policy() { agent list --json | jq -c .limits; }

applied() { # WHAT, as the last line of OUT says it
	assert_match "what is said" "$OUT" "^policy of .*$E2E_TMP/policy.* in force: $1\$"
}

example() {
	said <<-END
		# who is held to what
		set-limit any --rate 1/h --burst 30
		set-limit 203.0.113.0/24 --rate 1/h --burst 20 --tenant acme
		set-limit 203.0.113.0/24 --class udp --rate 1/h --burst 12
		set-limit tenant:acme --rate 1/h --burst 40
		set-limit dev:$DEV --rate 1/h --burst 1000
		set-limit new --rate 20kpps

		allow 192.0.2.0/28
		deny 192.0.2.66
	END
}

test_a_policy_comes_in_force_and_nothing_else_stays() {
	net_make
	attach
	agent set-limit 198.51.100.0/24 --rate 1/h --burst 5
	agent set-limit tenant:old --rate 5pps
	agent deny 192.0.2.0/28
	example
	expect 0 agent apply "$E2E_TMP/policy"
	applied '8 limits, 7 new, 1 changed, 2 deleted, 0 as they were'
	send --src 203.0.113.7 --count 30
	send --src 192.0.2.1 --count 100
	send --src 192.0.2.66 --count 100
	send --src 198.51.100.7 --count 50
	assert_eq "passed of a class" "$(limit 203.0.113.0/24 'select(.class == "udp") | .passed.packets')" 12
	assert_eq "allowed" "$(limit 192.0.2.0/28 .passed.packets)" 100
	assert_eq "denied" "$(limit 192.0.2.66 .dropped.packets)" 100
	assert_eq "of all others" "$(limit any .passed.packets)" 30
	assert_all_counted
}

# Applied again, before and after a change of others: what was used up stays used up, and what was counted counted.
test_what_is_said_again_is_not_refilled() {
	local before
	net_make
	attach
	example
	agent apply "$E2E_TMP/policy"
	send --src 203.0.113.7 --src 198.51.100.7 --count 100
	before=$(stats | jq -c '[.limits[] | {target, class, passed, dropped}]')
	expect 0 agent apply "$E2E_TMP/policy"
	applied '8 limits, 0 new, 0 changed, 0 deleted, 8 as they were'
	assert_eq "counters" "$(stats | jq -c '[.limits[] | {target, class, passed, dropped}]')" "$before"
	sed -i 's/^deny.*/deny 192.0.2.77/' "$E2E_TMP/policy"
	expect 0 agent apply "$E2E_TMP/policy"
	applied '8 limits, 1 new, 0 changed, 1 deleted, 7 as they were'
	send --src 203.0.113.7 --src 198.51.100.7 --count 100
	assert_eq "passed" "$(device .passed.packets)" 42
	# A smaller burst forgives nothing either, and that is told.
	sed -i 's/--burst 30/--burst 16/' "$E2E_TMP/policy"
	expect 0 agent apply "$E2E_TMP/policy"
	assert_match "note" "$ERR" 'note: 1 of the changed limits had a larger burst'
	send --src 198.51.100.7 --count 50
	assert_eq "passed after all" "$(device .passed.packets)" 42
}

refused() { # CODE TEXT REGEX
	local before
	before=$(policy)
	said <<<"$2"
	expect "$1" agent apply "$E2E_TMP/policy"
	assert_match "error" "$ERR" "$3"
	assert_eq "policy" "$(policy)" "$before"
}

test_a_bad_line_changes_nothing() {
	net_make
	attach
	example
	agent apply "$E2E_TMP/policy"
	refused 1 $'allow 192.0.2.1\n\nset-limit any --rate 5' "policy:3: .*\"5\""
	refused 1 $'allow 192.0.2.1\ndeny 192.0.2.1' 'policy:2: 192.0.2.1 is in line 1 already'
	refused 1 $'set-limit dev:nosuch0 --rate 5pps' "policy:1: the device \"nosuch0\" isn't attached.*$DEV"
	refused 1 $'set-limit any --shadow' 'policy:1: --shadow alone.*expected --rate'
	refused 1 $'set-limit dev:rl0 --rate 1kpps --burst 20\nset-limit any --rate 1kpps --burst 99 --cost syn=30' 'policy:2: cost syn=30'
	refused 1 "attach $DEV" 'policy:1: "attach" states no limit'
	expect 1 agent apply "$E2E_TMP/nosuch"
	assert_match "error" "$ERR" "can't open .*nosuch: No such file"
	expect 1 agent apply
	expect 1 agent apply "$E2E_TMP/policy" "$E2E_TMP/policy"
	example
	expect 0 agent apply --check "$E2E_TMP/policy"
	assert_match "check" "$OUT" 'is right, and would be in force: 8 limits, 0 new, 0 changed, 0 deleted, 8 as'
}

test_without_an_attach_there_is_nothing_to_apply_to() {
	net_make
	said <<<'allow 192.0.2.1'
	expect 3 agent apply "$E2E_TMP/policy"
	assert_nothing_left
}

test_the_policy_in_force_is_printed_to_be_applied_again() {
	local before
	net_make
	attach
	example
	agent apply "$E2E_TMP/policy"
	agent set-limit 2001:db8::/32 --rate 7/m --rate 10mbit --burst 64kib --per /48 --cost syn=10,udp/53=2 --priority low --shadow
	agent set-limit 198.51.100.0/24 --rate 500pps --shared
	agent deny 192.0.2.98 --shadow
	agent deny 192.0.2.99
	agent set-limit 192.0.2.99 --shadow
	agent set-limit "dev:$DEV" --rate 1mpps --reserve high=20%,normal=0.5%
	before=$(policy)
	expect 0 agent list --policy
	echo "$OUT" >"$E2E_TMP/printed"
	expect 0 agent apply - <"$E2E_TMP/printed"
	assert_match "what is said" "$OUT" '^policy of standard input in force: 12 limits, 0 new, 0 changed, 0 deleted, 12 as they were$'
	said <<<'# nothing'
	expect 0 agent apply --empty "$E2E_TMP/policy"
	assert_eq "policy" "$(policy)" '[]'
	agent list --policy >"$E2E_TMP/empty"
	assert_eq "lines of none" "$(wc -l <"$E2E_TMP/empty")" 0
	expect 0 agent apply "$E2E_TMP/printed"
	assert_eq "policy" "$(policy)" "$before"
	expect 1 agent list --policy --json
}

# What should have written it may have failed.
test_a_file_that_says_nothing_is_refused() {
	local before
	net_make
	attach
	agent set-limit any --rate 1kpps
	before=$(policy)
	said <<<'# nothing'
	expect 1 agent apply "$E2E_TMP/policy"
	assert_match "why, and what would do" "$ERR" 'says no limit at all.*nothing was changed.*--empty'
	expect 1 agent apply - </dev/null
	expect 1 agent apply --check "$E2E_TMP/policy"
	expect 1 agent attach --policy "$E2E_TMP/policy" "$DEV"
	assert_match "why" "$ERR" 'says no limit at all'
	assert_eq "policy" "$(policy)" "$before"
}

test_the_readme_example_works() {
	net_make
	attach
	sed -n '/^    # .*\.policy$/,/^$/p' "$E2E_ROOT/README.md" >"$E2E_TMP/policy"
	expect 0 agent apply --check "$E2E_TMP/policy"
	assert_match "check" "$OUT" 'would be in force: 5 limits, 5 new, 0 changed'
	expect 0 agent apply "$E2E_TMP/policy"
	applied '5 limits, 5 new, 0 changed, 0 deleted, 0 as they were'
}

test_attach_with_a_policy_lets_nothing_pass_before_it() {
	local flood
	net_make
	said <<-END
		deny 203.0.113.0/24
		set-limit dev:$DEV --rate 1/h --burst 20
	END
	expect 1 agent attach --policy <(echo 'set-limit dev:nosuch0 --rate 5pps') "$DEV"
	assert_match "error" "$ERR" ':1: the device "nosuch0"'
	assert_nothing_left
	start_send --src 203.0.113.7 --rate 20000 --seconds 3 >/dev/null
	flood=$PID
	sleep 0.5
	expect 0 agent attach --max-sources 10k --policy "$E2E_TMP/policy" "$DEV"
	applied '2 limits, 2 new, 0 changed, 0 deleted, 0 as they were'
	wait "$flood"
	assert_eq "passed" "$(device .passed.packets)" 0
	[ "$(device .dropped.packets)" -gt 1000 ] || fail "only $(device .dropped.packets) dropped"
	send --src 192.0.2.1 --count 30
	assert_eq "passed under the device's limit" "$(device .passed.packets)" 20
	# Attached again, the policy is the file's as well.
	said <<<'allow 203.0.113.0/24'
	expect 0 agent attach --policy "$E2E_TMP/policy" "$DEV"
	applied '1 limit, 0 new, 1 changed, 1 deleted, 0 as they were'
}

test_ones_own_session_is_warned() {
	net_make
	attach
	said <<<'deny 203.0.113.0/24'
	expect 0 in_rx env SSH_CONNECTION='203.0.113.50 50000 192.0.2.1 22' "$AGENT" apply "$E2E_TMP/policy"
	assert_match "warning" "$ERR" 'warning:.*203\.0\.113\.50.*denied'
	expect 0 in_rx env SSH_CONNECTION='203.0.113.50 50000 192.0.2.1 22' "$AGENT" apply "$E2E_TMP/policy"
	assert_no_match "warning of what was so before" "$ERR" '203\.0\.113\.50'
}

# 203.0.113.7 is denied by each, by another prefix; 192.0.2.1 is denied by one and allowed by the other.
two_policies() {
	{
		echo "deny 203.0.113.0/24"
		echo "deny 192.0.2.0/24"
		seq 0 999 | awk '{ printf "set-limit 10.0.%d.%d --rate 5pps --tenant t%d\n", $1 / 250, $1 % 250, $1 % 7 }'
	} >"$E2E_TMP/a"
	{
		echo "deny any"
		echo "allow 192.0.2.0/25"
		echo "set-limit dev:$DEV --rate 1kpps"
		seq 500 1499 | awk '{ printf "set-limit 10.0.%d.%d --rate 6pps --class syn\n", $1 / 250, $1 % 250 }'
	} >"$E2E_TMP/b"
	for one in a b; do
		agent apply "$E2E_TMP/$one" >/dev/null
		agent list --policy >"$E2E_TMP/$one.in-force"
	done
}

runs() { kill -0 "$1" 2>/dev/null; }

test_packets_see_one_policy_or_the_other() {
	local flood rounds=0 denied
	net_make
	attach
	two_policies
	start_send --src 203.0.113.7 --rate 20000 --seconds 6 >"$E2E_TMP/sent"
	flood=$PID
	while runs "$flood"; do
		agent apply "$E2E_TMP/a" >/dev/null
		agent apply "$E2E_TMP/b" >/dev/null
		rounds=$((rounds + 2))
	done
	wait "$flood"
	denied=$(device .reasons.denied)
	note "$rounds changes of 1000 limits in $(jq .frames "$E2E_TMP/sent") frames"
	assert_eq "denied" "$denied" "$(jq .frames "$E2E_TMP/sent")"
	assert_all_counted
}

test_a_killed_apply_leaves_one_policy_or_the_other() {
	local i found as_a=0 as_b=0
	net_make
	attach
	two_policies
	for i in $(seq 30); do
		agent apply "$E2E_TMP/a" >/dev/null
		start_agent apply "$E2E_TMP/b" >/dev/null
		sleep "0.$(printf '%03d' $((RANDOM % 300)))"
		kill -9 "$PID" 2>/dev/null || true
		wait "$PID" 2>/dev/null || true
		found=$(agent list --policy)
		if [ "$found" = "$(cat "$E2E_TMP/a.in-force")" ]; then
			as_a=$((as_a + 1))
		elif [ "$found" = "$(cat "$E2E_TMP/b.in-force")" ]; then
			as_b=$((as_b + 1))
		else
			fail "killed in round $i: $(diff <(echo "$found") "$E2E_TMP/a.in-force" | head -5)"
		fi
	done
	note "$as_a times the old policy, $as_b times the new one"
	agent apply "$E2E_TMP/b"
	assert_eq "in the end" "$(agent list --policy)" "$(cat "$E2E_TMP/b.in-force")"
}

took() { # NAME COMMAND...: how long it took, in OUT's stead a note
	local start=${EPOCHREALTIME/[.,]/} name=$1
	shift
	"$@" >/dev/null
	note "$name in $(((${EPOCHREALTIME/[.,]/} - start) / 1000)) ms"
	[ $((${EPOCHREALTIME/[.,]/} - start)) -lt 30000000 ] || fail "$name took half a minute"
}

test_a_large_policy_is_applied_in_about_a_second() {
	net_make
	attach
	seq 0 59999 | awk '{ printf "set-limit 10.%d.%d.0/24 --rate %dkpps --tenant t%d\n", $1 / 256, $1 % 256, 1 + $1 % 9, $1 % 100 }' \
		>"$E2E_TMP/policy"
	took "60000 new" agent apply "$E2E_TMP/policy"
	took "60000 again" agent apply "$E2E_TMP/policy"
	sed '1,3000s/--rate.*--/--rate 77pps --/' "$E2E_TMP/policy" >"$E2E_TMP/changed"
	took "3000 changed" agent apply "$E2E_TMP/changed"
	took "all deleted" agent apply --empty /dev/null
	assert_eq "policy" "$(policy)" '[]'
}

# IPv4 and IPv6, with others inside them, in no order; sent to are some of the last ones and of those that have none.
test_a_policy_larger_than_usual() {
	local before after
	net_make
	awk 'BEGIN {
		for (i = 0; i < 49000; i++)
			printf "set-limit %d.%d.%d.%d/30 --rate %dkpps\n", 1 + i % 90, i / 90 % 256, i / 23040 % 256, i / 5898240 * 4, 1 + i % 9
		for (i = 0; i < 20995; i++)
			printf "set-limit 2001:%x:%x::/48 --rate 1mbit\n", i % 50000 + 1, i / 50000 + 1
		print "set-limit 198.51.100.0/24 --rate 1/h --burst 20"
		print "set-limit 198.51.100.7 --rate 1/h --burst 5"
		print "deny 198.51.100.64/26"
		print "allow 198.51.100.72"
		print "set-limit any --rate 1/h --burst 30"
	}' >"$E2E_TMP/policy"
	expect 0 agent attach "$DEV" --policy "$E2E_TMP/policy"
	applied '70000 limits, 70000 new, 0 changed, 0 deleted, 0 as they were'
	send --src 198.51.100.7 --count 40
	send --src 198.51.100.9 --count 40
	send --src 198.51.100.70 --count 40
	send --src 198.51.100.72 --count 40
	send --src 203.0.113.9 --count 40
	assert_eq "of one address" "$(limit 198.51.100.7 .passed.packets)" 5
	assert_eq "of the prefix around it" "$(limit 198.51.100.0/24 .passed.packets)" 20
	assert_eq "denied" "$(limit 198.51.100.64/26 .dropped.packets)" 40
	assert_eq "allowed" "$(limit 198.51.100.72 .passed.packets)" 40
	assert_eq "of no other" "$(limit any .passed.packets)" 30
	before=${EPOCHREALTIME/[.,]/}
	agent set-limit 198.51.100.10 --rate 1/h --burst 3
	after=${EPOCHREALTIME/[.,]/}
	note "one set-limit in $(((after - before) / 1000)) ms"
	send --src 198.51.100.10 --count 40
	assert_eq "of a prefix that came" "$(limit 198.51.100.10 .passed.packets)" 3
	agent del-limit 198.51.100.0/24
	send --src 198.51.100.11 --count 40
	assert_eq "under what is around one that went" "$(limit any .passed.packets)" 60
	took "70000 as they are, but for one" agent apply "$E2E_TMP/policy"
	send --src 198.51.100.10 --count 40
	assert_eq "of a prefix that went by the file" "$(limit 198.51.100.0/24 .passed.packets)" 20
	expect 1 agent attach "$DEV" --max-limits 5
	assert_match "another size" "$ERR" "with room for [0-9]+ limits, and can't change its size"
	took "70000 deleted" agent apply --empty /dev/null
	assert_eq "policy" "$(policy)" '[]'
	assert_all_counted
}

test_max_limits_is_what_there_is_room_for() {
	net_make
	expect 0 agent attach "$DEV" --max-limits 3
	agent set-limit 192.0.2.1 --rate 5pps
	agent set-limit 192.0.2.2 --rate 5pps
	agent set-limit 192.0.2.3 --rate 5pps
	expect 2 agent set-limit 192.0.2.4 --rate 5pps
	assert_match "full" "$ERR" 'the policy is full: 3 limits'
	assert_match "full: way out" "$ERR" '--max-limits'
	agent del-limit 192.0.2.2
	expect 0 agent set-limit 192.0.2.4 --rate 5pps
	assert_eq "policy" "$(agent list --policy | awk '{ printf "%s ", $2 }')" "192.0.2.1 192.0.2.3 192.0.2.4 "
}

e2e_main "$@"
