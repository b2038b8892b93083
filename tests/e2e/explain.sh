#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# explain says what then happens; reset zeroes what is counted and nothing else; shadow has its own columns.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

STORES="table lru"

attach_store() { agent attach --store "$1" --max-sources 10k "$DEV"; }

explained() { # FIELD ADDRESS [options]
	local field=$1
	shift
	agent explain "$@" --json | jq -c "$field"
}

# Each source's tally: passed, dropped, in shadow, under the limit.
tally() { # SOURCE
	agent top --once --json -n 1000 --interval 0.1 | jq -c --arg s "$1" \
		'[.sources[] | select(.source == $s) | .passed.packets, .dropped.packets, .shadow.packets]'
}

shadow_pps_is_above() { # LEAST
	agent top --once --json --interval 0.5 | jq -e --argjson l "$1" '.sources[0].shadow_pps > $l'
}

# The same packets, one more than there are tokens: explain foretells each verdict.
foretell() { # ADDRESS TOKENS [options of explain]
	local address=$1 tokens=$2 before
	shift 2
	assert_eq "left of $address" "$(explained '.levels[0].packets.left' "$address" "$@")" "$tokens"
	assert_eq "verdict" "$(explained '.devices[0].verdict' "$address" "$@")" '"pass"'
	send --src "$address" --count "$tokens"
	assert_eq "left of $address" "$(explained '.levels[0].packets.left' "$address" "$@")" 0
	assert_eq "verdict and reason" "$(explained '.devices[0] | [.verdict, .reason]' "$address" "$@")" '["drop","source_limit"]'
	assert_between "seconds until it passes" "$(explained '.devices[0].passes_in_seconds' "$address" "$@")" 3590 3600
	before=$(device .dropped.packets)
	send --src "$address" --count 1
	assert_eq "the next packet dropped" $(($(device .dropped.packets) - before)) 1
	assert_eq "counted beside its bucket" "$(explained '[.passed.packets, .dropped.packets]' "$address" "$@")" "[$tokens,1]"
}

test_what_is_left_is_what_then_passes_in_either_store() {
	local store
	for store in $STORES; do
		net_make "$store"
		attach_store "$store"
		agent set-limit any --rate 1/h --burst 16
		agent set-limit 203.0.113.7 --rate 1/h --burst 20
		agent set-limit 198.51.100.0/24 --per /28 --rate 1/h --burst 5
		assert_eq "not known yet" "$(explained '[.levels[0].has_bucket, .passed]' 192.0.2.1)" '[false,null]'
		foretell 192.0.2.1 16
		foretell 2001:db8::7 16
		foretell 203.0.113.7 20
		foretell 198.51.100.17 5
		assert_eq "the neighbour in the /28" "$(explained '[.source, .levels[0].packets.left]' 198.51.100.30)" \
			'["198.51.100.16/28",0]'
		assert_eq "a neighbour in the /64" "$(explained '[.source, .levels[0].packets.left]' 2001:db8::99)" \
			'["2001:db8::/64",0]'
		assert_eq "another /64" "$(explained '.levels[0].packets.left' 2001:db8:0:1::7)" 16
		assert_all_counted
	done
}

# ---- no room ----

# The smallest table there is, its places taken by sources that owe something for the next hour.
attach_full() { # --when-full WORD
	agent attach --max-sources 1 --when-full "$1" "$DEV"
	agent set-limit any --rate 1/h --burst 16
	send --src 10.0.0.0 --src 2001:db8:8000:: --sources 16384 --rate 40000 --count 32768 >/dev/null
	assert_eq "sources tracked" "$(agent top --once --interval 0.1 --json | jq .sources_tracked)" 2048
}

# One packet, of which explain says before what becomes of it.
foretell_one() { # REASON ADDRESS [options of rl-send]
	local reason=$1 address=$2 before
	shift 2
	assert_eq "what is said of $address" "$(explained '.devices[0].reason' "$address")" "\"$reason\""
	before=$(device ".reasons.$reason")
	send --src "$address" --count 1 "$@" >/dev/null
	assert_eq "counted as $reason" $(($(device ".reasons.$reason") - before)) 1
}

# Neighbours: they share a bucket where there is none for each; and one of another neighbourhood.
neighbours() {
	cat <<-END
		198.51.100.7 198.51.100.200 198.51.101.7 198.51.100.0/24
		2001:db8:1:7::1 2001:db8:1:8::1 2001:db8:2:7::1 2001:db8:1::/48
	END
}

test_without_room_the_neighbourhoods_bucket_is_told() {
	local source neighbour other group
	net_make
	attach_full aggregate
	while read -r source neighbour other group; do
		assert_eq "$source" "$(explained '.levels[0] | [.has_bucket, .no_room, .aggregate, .packets.left]' "$source")" \
			"[false,\"aggregate\",\"$group\",16]"
		# Until one of those that have a place has paid what it owes.
		assert_between "room" "$(explained '.levels[0].room_in_seconds' "$source")" 3500 3603
		foretell_one aggregated "$source"
		send --src "$neighbour" --count 14 >/dev/null
		assert_eq "left" "$(explained '[.levels[0].packets.left, .passed]' "$source")" '[1,null]'
		foretell_one aggregated "$neighbour"
		assert_eq "left" "$(explained '.levels[0].packets.left' "$source")" 0
		foretell_one aggregate_limit "$source"
		foretell_one aggregate_limit "$neighbour"
		assert_between "seconds" "$(explained '.devices[0].passes_in_seconds' "$neighbour")" 3400 3600
		foretell_one aggregated "$other"
		expect 0 agent explain "$source"
		assert_match "what is said" "$OUT" "^source: .* no room .* the bucket of $group \(--when-full aggregate\)"
		assert_match "what to do" "$OUT" 'detach --all.*--max-sources'
		assert_match "the table" "$OUT" '^source +any +- +1/h +0p +16p '
		assert_match "the verdict" "$OUT" "^$DEV +enforcing +drop +aggregate_limit +in "
	done < <(neighbours)
	# Who has a place, and who needs none.
	assert_eq "known" "$(explained '.levels[0] | [.has_bucket, .no_room, .packets.left]' 10.0.0.1)" '[true,null,15]'
	agent set-limit 203.0.113.7 --rate 1/h --burst 20
	assert_eq "of its own" "$(explained '.levels[0] | [.no_room, .packets.left]' 203.0.113.7)" '[null,20]'
	assert_all_counted
}

test_without_room_open_and_closed_are_told() {
	local source neighbour other group
	net_make
	attach_full open
	while read -r source neighbour other group; do
		foretell_one table_full_open "$source"
		assert_eq "$source" "$(explained '[.levels[0].no_room, .levels[0].aggregate, .levels[0].packets, .devices[0].passes_in_seconds]' "$source")" \
			'["open",null,null,0]'
		agent attach --when-full closed "$DEV" >/dev/null
		foretell_one table_full "$source"
		assert_eq "$source" "$(explained '[.levels[0].no_room, .levels[0].packets, .devices[0].verdict]' "$source")" '["closed",null,"drop"]'
		assert_between "seconds" "$(explained '.devices[0].passes_in_seconds' "$source")" 3400 3605
		expect 0 agent explain "$source"
		assert_match "what is said" "$OUT" '^source: .* no room .* dropped \(--when-full closed\); .* room in '
		agent attach --shadow "$DEV" >/dev/null
		foretell_one shadow_table_full "$source"
		agent attach --enforce --when-full aggregate "$DEV" >/dev/null
		foretell_one aggregated "$neighbour"
		agent attach --when-full open "$DEV" >/dev/null
		expect 0 agent explain "$other"
		assert_match "what is said" "$OUT" '^source: .* no room .* no bucket holds it \(--when-full open\)'
	done < <(neighbours)
	assert_all_counted
}

# A class's bucket has a place of its own.
test_a_class_without_room_is_told() {
	net_make
	agent attach --max-sources 1 --when-full closed "$DEV"
	agent set-limit any --rate 1/h --burst 16
	send --src 198.51.100.7 --count 1 >/dev/null
	send --src 10.0.0.0 --sources 16384 --rate 40000 --count 20000 >/dev/null
	agent set-limit any --class udp --rate 1/h --burst 5
	assert_eq "levels" "$(explained '[.levels[] | .level, .has_bucket, .no_room]' 198.51.100.7 --proto udp)" \
		'["source",true,null,"class",false,"closed"]'
	assert_eq "reason" "$(explained '.devices[0].reason' 198.51.100.7 --proto udp)" '"table_full"'
	assert_eq "another's" "$(explained '.devices[0].reason' 198.51.100.7 --proto tcp)" '"within_limit"'
	send --src 198.51.100.7 --count 1 >/dev/null
	assert_between "dropped by it" "$(stats | jq '.limits[] | select(.class == "udp") | .dropped.packets')" 1 1
	expect 0 agent explain 198.51.100.7 --proto udp
	assert_match "what is said" "$OUT" '^class udp: the table has no room'
}

# A place that may be given away is room, from the moment that was told on.
test_room_comes_when_it_was_told() {
	local told end
	net_make
	agent attach --max-sources 1 --when-full closed "$DEV"
	agent set-limit any --rate 100pps --burst 16
	send --src 10.0.0.0 --sources 16384 --rate 40000 --count 20000 >/dev/null
	told=$(explained '.levels[0].room_in_seconds' 198.51.100.7)
	assert_between "seconds" "$told" 5 12
	assert_between "until then" "$(explained '.devices[0].passes_in_seconds' 198.51.100.7)" "$(jq -n "$told - 1")" "$told"
	end=$(jq -n "now + $told + 0.1")
	sleep "$(jq -n "$told - 5")"
	foretell_one table_full 198.51.100.7
	sleep "$(jq -n "[$end - now, 0] | max")"
	assert_eq "then" "$(explained '.levels[0] | [.has_bucket, .no_room, .packets.left]' 198.51.100.7)" '[false,null,16]'
	foretell_one within_limit 198.51.100.7
	assert_eq "after it" "$(explained '.levels[0].has_bucket' 198.51.100.7)" true
}

test_a_new_source_that_is_given_no_bucket_is_told() {
	local store
	for store in $STORES; do
		net_make "$store"
		attach_store "$store"
		agent set-limit any --rate 1/h --burst 16
		agent set-limit new --rate 1/h --burst 2
		foretell_one within_limit 203.0.113.1
		assert_eq "what is left" "$(explained '[.levels[] | .level, .packets.left]' 203.0.113.2)" '["source",16,"new",1]'
		foretell_one within_limit 203.0.113.2
		foretell_one new_source 203.0.113.3
		foretell_one within_limit 203.0.113.2
		assert_between "seconds" "$(explained '.devices[0].passes_in_seconds' 203.0.113.3)" 3590 3600
		expect 0 agent explain 203.0.113.3
		assert_match "what is said" "$OUT" "^source: .* a new source isn't given one now, .new. has a token in "
		# Passing without a bucket, it isn't held to its limit either.
		agent set-limit new --rate 1/h --burst 2 --shadow
		foretell_one shadow_new_source 203.0.113.3
		assert_eq "no room is no matter there" "$(explained '.levels[0].no_room' 203.0.113.3)" null
	done
}

# ---- levels ----

test_every_level_is_named_and_the_first_that_drops() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 500
	agent set-limit 203.0.0.0/16 --rate 1/h --burst 400 --tenant acme
	agent set-limit 203.0.113.0/24 --rate 1/h --burst 100 --cost udp/53=4
	agent set-limit 203.0.113.0/24 --class udp/53 --rate 1/h --burst 10
	agent set-limit tenant:acme --rate 1/h --burst 60
	agent set-limit "dev:$DEV" --rate 1/h --burst 200
	assert_eq "why" "$(explained '[.why, .limit, .wider, .tenant, .tenant_from]' 203.0.113.9)" \
		'["longest_prefix","203.0.113.0/24",["any","203.0.0.0/16"],"acme","203.0.0.0/16"]'
	assert_eq "levels" "$(explained '[.levels[].level]' 203.0.113.9)" '["source","tenant"]'
	assert_eq "the device's" "$(explained '.devices[0].level.packets.left' 203.0.113.9)" 200
	assert_eq "levels of udp/53" "$(explained '[.levels[] | .level, .class]' 203.0.113.9 --proto udp --dport 53)" \
		'["source",null,"class","udp/53","tenant",null]'
	assert_eq "cost of udp/53" "$(explained .packet.cost 203.0.113.9 --proto udp --dport 53)" 4
	send --src 203.0.113.9 --dport 53 --count 20
	assert_eq "left: 10 times 4, and 10 of the class" \
		"$(explained '[.levels[].packets.left, .devices[0].level.packets.left]' 203.0.113.9 --proto udp --dport 53)" '[60,0,20,160]'
	assert_eq "reason" "$(explained '.devices[0].reason' 203.0.113.9 --proto udp --dport 53)" '"class_limit"'
	assert_eq "of another port" "$(explained '.devices[0].reason' 203.0.113.9 --proto udp --dport 54)" '"within_limit"'
	send --src 203.0.113.10 --dport 54 --count 30
	assert_eq "another source of the tenant's" "$(explained '.devices[0].reason' 203.0.113.11)" '"tenant_limit"'
	assert_eq "counted by the tenant" "$(limit tenant:acme '[.passed.packets, .dropped.packets] | join(" ")')" '"30 10"'
	expect 0 agent explain 203.0.113.9 --proto udp --dport 53
	assert_match "the table" "$OUT" '^class +203\.0\.113\.0/24 +udp/53 '
	assert_match "the table" "$OUT" "^$DEV +enforcing +drop +class_limit +in "
	expect 3 agent explain 203.0.113.9 --dev nosuch
	expect 1 agent explain 203.0.113.0/24
	expect 1 agent explain 203.0.113.9 --dport 53
}

test_allowed_denied_and_unnamed() {
	net_make
	attach
	agent allow 192.0.2.0/24
	agent deny 198.51.100.0/24
	assert_eq "allowed" "$(explained '[.why, .limit, .devices[0].reason]' 192.0.2.1)" '["allowed","192.0.2.0/24","allowed"]'
	assert_eq "denied" "$(explained '[.why, .devices[0].reason, .devices[0].passes_in_seconds]' 198.51.100.1)" '["denied","denied",null]'
	assert_eq "unnamed" "$(explained '[.why, .limit, .devices[0].reason]' 203.0.113.1)" '["no_prefix",null,"no_limit"]'
	agent pause
	assert_eq "paused" "$(explained '.devices[0].reason' 198.51.100.1)" '"paused"'
	expect 0 agent list
	assert_match "list" "$OUT" '^192\.0\.2\.0/24 .*allow'
	assert_match "list" "$OUT" '^198\.51\.100\.0/24 .*deny'
}

test_a_changed_limit_keeps_what_is_owed() {
	local store left
	for store in $STORES; do
		net_make "$store"
		attach_store "$store"
		agent set-limit 203.0.113.0/24 --rate 1/h --burst 100
		send --src 203.0.113.9 --count 100
		agent set-limit 203.0.113.0/24 --rate 2/h --burst 100
		left=$(explained '[.levels[0].packets.left, .devices[0].reason]' 203.0.113.9)
		assert_eq "still empty" "$left" '[0,"source_limit"]'
		assert_between "half the time" "$(explained '.devices[0].passes_in_seconds' 203.0.113.9)" 1790 1800
	done
}

test_reset_zeroes_counters_and_no_bucket() {
	local store
	for store in $STORES; do
		net_make "$store"
		attach_store "$store"
		agent set-limit any --rate 1/h --burst 16
		agent set-limit 203.0.113.7 --rate 1/h --burst 16
		agent set-limit 198.51.100.0/24 --rate 1/h --burst 16
		agent set-limit 198.51.100.0/24 --class udp --rate 1/h --burst 10
		send --src 203.0.113.7 --src 198.51.100.1 --src 192.0.2.1 --src 2001:db8::1 --count 80

		# One target: its limit, its class, its sources.
		agent reset 198.51.100.0/24
		assert_eq "its own" "$(stats | jq -c '[.limits[] | select(.target == "198.51.100.0/24") | .passed.packets, .dropped.packets]')" '[0,0,0,0]'
		assert_eq "its source's" "$(tally 198.51.100.1)" '[0,0,0]'
		assert_eq "another's" "$(limit any '[.passed.packets, .dropped.packets] | join(" ")')" '"32 8"'
		assert_eq "another's source's" "$(tally 192.0.2.1)" '[16,4,0]'
		assert_eq "the device's" "$(device .received.packets)" 80
		agent reset 203.0.113.7
		assert_eq "its own bucket's" "$(explained '[.passed.packets, .dropped.packets, .levels[0].packets.left]' 203.0.113.7)" '[0,0,0]'

		agent reset
		assert_eq "limits" "$(stats | jq '[.limits[] | .passed, .dropped, .shadow | .packets, .bytes] | add')" 0
		assert_eq "device" "$(device '[.received.bytes, ([.reasons[]] | add)] | add')" 0
		assert_eq "sources" "$(agent top --once --json -n 1000 | jq -c '[.sources_tracked > 2, ([.sources[] | .passed, .dropped | .packets] | add)]')" \
			'[true,0]'
		# No bucket was refilled: nothing passes.
		send --src 203.0.113.7 --src 198.51.100.1 --src 192.0.2.1 --src 2001:db8::1 --count 80
		assert_eq "passed after it" "$(device '[.passed.packets, .dropped.packets] | join(" ")')" '"0 80"'
		assert_eq "counted again" "$(tally 2001:db8::/64)" '[0,20,0]'
		expect 1 agent reset 192.0.2.0/24
		agent reset "dev:$DEV"
		assert_eq "the device alone" "$(device .received.packets)" 0
		assert_eq "not a limit" "$(limit any .dropped.packets)" 40
	done
}

# Every frame after the last reset is counted once, however many resets there were before.
test_reset_under_load() {
	local store flood passed
	for store in $STORES; do
		net_make "$store"
		attach_store "$store"
		agent set-limit any --rate 1000pps --burst 100
		start_send --src 203.0.113.0 --sources 8 --rate 100000 --seconds 4 >"$E2E_TMP/sent"
		flood=$PID
		while kill -0 "$flood" 2>/dev/null; do agent reset >/dev/null; done
		wait "$flood"
		agent reset
		assert_eq "counted in all" "$(device '.received.packets')" 0
		assert_eq "tallies" "$(agent top --once --json | jq '[.sources[] | .passed, .dropped | .packets] | add')" 0
		send --src 203.0.113.0 --count 1000 >/dev/null
		passed=$(device '.received.packets')
		assert_eq "from then on" "$passed" 1000
	done
}

test_shadow_has_columns_of_its_own() {
	local sender
	net_make
	attach
	agent set-limit any --rate 1/h --burst 10 --shadow
	send --src 203.0.113.7 --count 30
	assert_eq "limit" "$(limit any '[.passed.packets, .dropped.packets, .shadow.packets] | join(" ")')" '"30 0 20"'
	assert_eq "device" "$(device '[.passed.packets, .dropped.packets, .shadow.packets, .reasons.shadow_source_limit] | join(" ")')" '"30 0 20 20"'
	assert_eq "source" "$(tally 203.0.113.7)" '[30,0,20]'
	assert_eq "explained" "$(explained '.devices[0] | [.verdict, .reason, .passes_in_seconds]' 203.0.113.7)" '["pass","shadow_source_limit",0]'
	assert_eq "said" "$(agent list --json | jq '.limits[0].shadow')" true
	expect 0 agent stats
	assert_match "stats" "$OUT" "^$DEV +shadow +shadow_source_limit +20 "
	start_send --src 203.0.113.7 --rate 1000 --seconds 20 >/dev/null
	sender=$PID
	wait_for 5 shadow_pps_is_above 500
	expect 0 agent top --once --interval 0.3
	assert_match "top" "$OUT" 'DROP pps +SHADOW pps'
	stop "$sender"

	# The same bucket holds from now on.
	agent set-limit any --enforce
	agent reset
	send --src 203.0.113.7 --count 30
	assert_eq "enforced" "$(limit any '[.passed.packets, .dropped.packets, .shadow.packets] | join(" ")')" '"0 30 0"'
}

test_status_says_store_and_what_happens_when_it_is_full() {
	net_make a
	agent attach --store lru --max-sources 10k "$DEV"
	assert_eq "lru" "$(agent status --json | jq -c '[.store, .max_sources, .when_full, .devices[0].in_shadow]')" '["lru",10000,null,false]'
	assert_match "lru" "$(agent status)" 'store lru, room for 10000 sources'
	net_make b
	agent attach --when-full closed --shadow --max-sources 10k "$DEV"
	assert_eq "table" "$(agent status --json | jq -c '[.store, .when_full, .devices[0].in_shadow]')" '["table","closed",true]'
	assert_match "table" "$(agent status)" 'store table.*dropped \(closed\)'
	assert_match "device" "$(agent status)" "^$DEV .* shadow "
}

e2e_main "$@"
