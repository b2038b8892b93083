#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Tenants, devices, classes, costs, trust, shadow, new sources and a full table, on real frames; and what is refused.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=2

# One packet an hour refills nothing while a test runs, so what passes is the burst, exactly.

reason() { device ".reasons.$1"; }

passed() { device .passed.packets; }

# The limit of a class: stats has one entry for the target as a whole, and one for each class.
class_limit() { # TARGET CLASS FIELD
	stats | jq --arg t "$1" --arg c "$2" ".limits[] | select(.target == \$t and .class == \$c) | $3"
}

policy() { agent list --json | jq -c .limits; }

# ---- levels ----

test_a_tenants_prefixes_share_its_bucket() {
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 1/h --burst 25 --tenant acme
	agent set-limit 2001:db8::/32 --rate 1/h --burst 25 --tenant acme
	agent set-limit 203.0.113.7 --rate 1/h --burst 25
	agent set-limit 192.0.2.0/24 --rate 1/h --burst 25
	expect 0 agent set-limit tenant:acme --rate 1/h --burst 60
	assert_match "what is said" "$OUT" '^tenant:acme: 1/h burst 60p'
	send --src 203.0.113.7 --src 203.0.113.8 --src 2001:db8::1 --src 192.0.2.1 --count 120
	assert_eq "passed of the tenant's and of the other" "$(passed)" 85
	assert_eq "the tenant's" "$(limit tenant:acme .passed.packets)" 60
	assert_eq "dropped by the tenant's limit" "$(limit tenant:acme .dropped.packets)" "$(reason tenant_limit)"
	[ "$(reason tenant_limit)" -ge 15 ] || fail "the tenant's limit dropped $(reason tenant_limit)"
	assert_eq "dropped by a source's" "$(reason source_limit)" $((120 - 85 - $(reason tenant_limit)))
	# A packet that the tenant drops is charged to nobody: with more room there, the sources have theirs.
	agent set-limit tenant:acme --rate 1/h --burst 1000
	send --src 203.0.113.7 --src 203.0.113.8 --src 2001:db8::1 --count 300
	assert_between "each of them" "$(limit 203.0.113.7 .passed.packets)" 16 25
	assert_all_counted
}

# A tenant keeps its place, not its debt: without prefixes or with them, del-limit forgives.
test_a_tenants_deleted_limit_is_forgiven() {
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 1mpps --tenant acme
	agent set-limit tenant:acme --rate 1mpps
	send --src 203.0.113.7 --count 20
	refused 'forgive it: .rl-agent del-limit tenant:acme., then set-limit' set-limit tenant:acme --rate 1/h --burst 20
	expect 0 agent del-limit tenant:acme
	send --src 203.0.113.7 --count 20
	expect 0 agent set-limit tenant:acme --rate 1/h --burst 20
	assert_no_match "note" "$ERR" 'note'
	send --src 203.0.113.7 --count 50
	assert_eq "passed: a whole burst" "$(limit tenant:acme .passed.packets)" 60
	agent del-limit tenant:acme
	agent set-limit tenant:acme --rate 1/h --burst 30
	send --src 203.0.113.7 --count 50
	assert_eq "and another" "$(limit tenant:acme .passed.packets)" 90
	# Not said again is not deleted: what is owed then stays.
	agent set-limit tenant:acme --rate 1/h --burst 40
	send --src 203.0.113.7 --count 50
	assert_eq "passed of ten more" "$(limit tenant:acme .passed.packets)" 100
	assert_all_counted
}

test_a_devices_limit_holds_all_that_it_receives() {
	net_make
	attach
	expect 0 agent set-limit "dev:$DEV" --rate 1/h --burst 30
	send --src 203.0.113.7 --src 192.0.2.1 --src 2001:db8::1 --count 60
	assert_eq "passed" "$(passed)" 30
	assert_eq "dropped" "$(reason device_limit)" 30
	agent set-limit 203.0.113.7 --rate 1/h --burst 5
	agent set-limit "dev:$DEV" --rate 1/h --burst 40
	send --src 203.0.113.7 --count 20
	# Its limit goes with the name, also where the device is attached anew.
	agent detach --keep "$DEV"
	attach
	send --src 192.0.2.1 --count 20
	assert_eq "dropped after all" "$(reason device_limit)" "$(limit "dev:$DEV" '.dropped.packets - 30')"
	[ "$(reason device_limit)" -ge 15 ] || fail "only $(reason device_limit) dropped after it was attached anew"
	agent del-limit "dev:$DEV"
	send --src 192.0.2.1 --count 20
	assert_eq "passed without it" "$(reason no_limit)" 20
}

test_a_devices_limit_follows_the_name() {
	net_make
	attach
	agent set-limit "dev:$DEV" --rate 1/h --burst 5
	ip -n "$RX" link set "$DEV" down
	ip -n "$RX" link set "$DEV" name wan0
	ip -n "$RX" link set wan0 up
	DEV=wan0
	wait_for 5 in_rx ip link show dev wan0 up
	agent set-limit dev:wan0 --rate 1/h --burst 9
	send --src 203.0.113.7 --count 20
	assert_eq "passed under the new name's limit" "$(passed)" 9
	assert_eq "limits" "$(policy | jq -c '[.[].target]')" '["dev:rl0","dev:wan0"]'
	ip -n "$RX" link property add dev wan0 altname uplink
	agent set-limit dev:uplink --rate 1/h --burst 12
	assert_eq "by another name" "$(policy | jq -c '[.[].target]')" '["dev:rl0","dev:wan0"]'
	agent del-limit dev:rl0
	agent del-limit dev:wan0
	assert_eq "limits" "$(policy)" '[]'
}

rename() { # FROM TO
	ip -n "$RX" link set "$1" down
	ip -n "$RX" link set "$1" name "$2"
	ip -n "$RX" link set "$2" up
}

# What a renamed device loses or gets by its new name is said by the command that notices, whoever it is about, once.
test_a_renamed_device_that_leaves_its_limit_is_told() {
	net_make
	attach
	ip -n "$RX" link add rl1 type veth peer name gen1 netns "$TX"
	agent attach rl1
	agent set-limit dev:rl0 --rate 1mpps --burst 2000 --rate 10mbit --reserve high=20%
	agent set-limit dev:rl1 --rate 7pps --shadow
	rename rl0 wan0
	expect 0 agent attach wan0
	assert_match "attach" "$ERR" 'wan0 was called rl0.*dev:rl0 \(1mpps.*set-limit dev:wan0 --rate 1mpps --burst 2000p --rate 10mbit --burst 312.5kb --reserve high=20%`'
	expect 0 agent attach wan0
	assert_no_match "a second time" "$ERR" 'rl0'
	# By a command about another device.
	rename rl1 lan0
	expect 0 agent set-limit dev:wan0 --rate 1mpps
	assert_match "set-limit" "$ERR" 'lan0 was called rl1.*set-limit dev:lan0 --rate 7pps --burst 16p --shadow`'
	expect 0 agent set-limit dev:lan0 --rate 9pps
	assert_eq "a second time" "$ERR" ''
	# A name that has a limit: that one holds it from then on, also where it had none before.
	rename wan0 rl0
	expect 0 agent set-limit dev:lan0 --rate 9pps
	assert_match "another one" "$ERR" 'rl0 was called wan0.*dev:wan0 \(1mpps.*that of dev:rl0 \(1mpps burst 2000p.*set-limit dev:rl0 --rate 1mpps --burst 250000p`'
	agent del-limit dev:rl0
	agent set-limit dev:lan0 --rate 8pps
	rename rl0 wan0
	expect 0 agent attach lan0
	assert_match "one that it didn't have" "$ERR" 'wan0 was called rl0.*dev:wan0 \(1mpps.* holds it'
}

# Not only a rename of an attached device: one that was detached meanwhile leaves its limit too.
test_a_limit_that_waits_for_a_name_is_told_by_attach() {
	net_make
	ip -n "$RX" link add rl1 type veth peer name gen1 netns "$TX"
	attach
	agent set-limit dev:rl0 --rate 1mpps --burst 2000
	expect 0 agent attach rl1
	assert_eq "one that isn't about rl1" "$ERR" ''
	agent detach rl1
	agent detach --keep rl0
	rename rl0 wan0
	expect 0 agent attach wan0
	assert_match "told" "$ERR" 'warning: wan0 has no limit of its own; that of dev:rl0 \(1mpps burst 2000p\) holds no device.*set-limit dev:wan0 --rate 1mpps --burst 2000p`.*del-limit dev:rl0'
	agent set-limit dev:wan0 --rate 1mpps
	agent detach --keep wan0
	expect 0 agent attach wan0
	assert_eq "with a limit of its own" "$ERR" ''
	agent del-limit dev:rl0
	expect 0 agent attach rl1
	assert_eq "nothing waits" "$ERR" ''
}

# A renamed device keeps the limit of its old name until a command succeeds that puts another in its place.
test_what_is_refused_takes_no_limit_from_a_renamed_device() {
	net_make
	attach
	agent set-limit "dev:$DEV" --rate 1/h --burst 10
	rename rl0 wan0
	DEV=wan0
	wait_for 5 in_rx ip link show dev wan0 up
	refused 'nosuch.* attached' set-limit dev:nosuch --rate 10kpps
	refused 'no limit that --shadow' set-limit dev:wan0 --shadow
	refused 'rate' set-limit dev:wan0 --burst 5
	refused 'store' attach wan0 --store lru
	send --src 203.0.113.7 --count 100
	assert_eq "passed under the old name's limit" "$(passed)" 10
	expect 0 agent attach wan0
	assert_match "told" "$ERR" 'wan0 was called rl0'
}

# By whatever name a device is called, its own is what is shown and kept.
test_a_device_is_named_by_its_own_name() {
	local long=an-alternative-name-of-rl0 command name
	net_make
	ip -n "$RX" link property add dev rl0 altname "$long" altname uplink
	for name in "$long" uplink; do
		expect 0 agent attach --max-sources 10k "$name"
		assert_match "attach $name" "$OUT" '^rl0: attached'
		expect 0 agent set-limit "dev:$name" --rate 1mpps
		assert_match "set-limit $name" "$OUT" '^dev:rl0: 1mpps'
		expect 0 agent reset "dev:$name"
		assert_match "reset $name" "$OUT" '^dev:rl0: '
		expect 0 agent pause "$name"
		assert_match "pause $name" "$OUT" '^rl0: '
		expect 0 agent resume "$name"
		expect 0 agent probe "$name"
		assert_match "probe $name" "$OUT" '^rl0: driver'
		expect 0 agent probe "$name" --json
		assert_eq "probe $name" "$(jq -r .device.name <<<"$OUT")" rl0
		expect 0 agent explain 203.0.113.7 --dev "$name"
		assert_match "explain $name" "$OUT" 'rl0'
		expect 0 agent del-limit "dev:$name"
		assert_match "del-limit $name" "$OUT" '^dev:rl0: '
		expect 0 agent detach "$name"
		assert_match "detach $name" "$OUT" '^rl0: detached'
	done
	attach
	# What is no device's name can't be one that is gone either.
	for command in attach detach pause resume probe "set-limit --rate 1pps dev:" "del-limit dev:" "reset dev:" \
		"explain 203.0.113.7 --dev "; do
		name=nosuch-and-too-long
		case $command in *dev:) name=${command##* }$name command=${command% *} ;; esac
		# shellcheck disable=SC2086 # words of a command
		refused 'device "nosuch-and-too-long": a name has at most 15 bytes, this one 19, and no device here has it as an alternative name' \
			$command "$name"
	done
	# A limit under the very name comes first: it can be deleted.
	rename rl0 wan0
	agent set-limit dev:wan0 --rate 1kpps
	ip -n "$RX" link property del dev wan0 altname uplink
	rename wan0 uplink
	expect 0 agent set-limit dev:uplink --rate 2kpps
	rename uplink wan0
	ip -n "$RX" link property add dev wan0 altname uplink
	expect 0 agent del-limit dev:uplink
	assert_match "by its very name" "$OUT" '^dev:uplink: '
	expect 0 agent del-limit dev:uplink
	assert_match "by another name" "$OUT" '^dev:wan0: '
}

test_a_device_that_is_not_attached_gets_no_limit() {
	net_make
	attach
	ip -n "$RX" link add rl1 type veth peer name gen1 netns "$TX"
	refused '"rl1" .* attached.*attach rl1. first, or .*rl0' set-limit dev:rl1 --rate 1kpps
	agent attach rl1
	agent set-limit dev:rl1 --rate 1kpps
	ip -n "$RX" link del rl1
	refused 'rl1.* attached' set-limit dev:rl1 --rate 2kpps
	refused 'rl1.* attached' set-limit dev:rl1 --shadow
	rename rl0 wan0
	refused 'rl0.* attached.*wan0' set-limit dev:rl0 --rate 2kpps
	expect 0 agent del-limit dev:rl1
	DEV=wan0
	expect 0 agent detach --keep wan0
	refused '"wan0" .* attached.*attach wan0. first; nothing' set-limit dev:wan0 --rate 2kpps
}

test_tenants_move_under_load_and_nobody_gets_more() {
	local flood i
	net_make
	attach
	agent set-limit 10.0.0.0/8 --rate 1mpps --tenant a
	agent set-limit 10.1.0.0/16 --rate 1mpps
	agent set-limit 10.1.1.0/24 --rate 1mpps
	agent set-limit 10.1.1.7 --rate 1mpps
	agent set-limit tenant:a --rate 1/h --burst 300
	agent set-limit tenant:b --rate 1/h --burst 500
	start_send --src 10.0.0.1 --src 10.1.0.1 --src 10.1.1.1 --src 10.1.1.7 --rate 20000 --seconds 4 >/dev/null
	flood=$PID
	for i in $(seq 100); do
		kill -0 "$flood" 2>/dev/null || break
		agent set-limit 10.0.0.0/8 --rate 1mpps --tenant b
		agent set-limit 10.1.0.0/16 --rate 1mpps --tenant a
		agent del-limit 10.1.0.0/16
		agent set-limit 10.1.0.0/16 --rate 1mpps
		agent del-limit 10.0.0.0/8
		agent set-limit 10.0.0.0/8 --rate 1mpps --tenant a
	done >/dev/null
	wait "$flood"
	assert_eq "passed of a and b" "$(limit tenant:a .passed.packets) $(limit tenant:b .passed.packets)" "300 500"
	note "$i rounds of six changes"
	assert_all_counted
}

# ---- granularity, classes, costs ----

test_shared_and_grouped_sources() {
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 1/h --burst 10 --shared
	send --src 203.0.113.0 --sources 100 --count 200
	assert_eq "one bucket" "$(limit 203.0.113.0/24 .passed.packets)" 10
	agent set-limit 198.51.100.0/24 --rate 1/h --burst 10 --per /28
	send --src 198.51.100.0 --sources 64 --count 640
	assert_eq "four /28" "$(limit 198.51.100.0/24 .passed.packets)" 40
	agent set-limit 2001:db8::/32 --rate 1/h --burst 10 --per /48
	send --src 2001:db8:0:1::1 --src 2001:db8:0:2::1 --src 2001:db8:1:1::1 --count 300
	assert_eq "two /48" "$(limit 2001:db8::/32 .passed.packets)" 20
}

test_a_class_holds_beside_the_general_limit() {
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 1/h --burst 50
	expect 0 agent set-limit 203.0.113.0/24 --class syn --rate 1/h --burst 10
	assert_match "what is said" "$OUT" '^203\.0\.113\.0/24 syn: 1/h burst 10p'
	assert_no_match "note" "$ERR" 'note'
	agent set-limit 203.0.113.0/24 --class udp/53 --rate 1/h --burst 20
	send --src 203.0.113.7 --proto 6 --count 30
	assert_eq "SYN" "$(reason class_limit) $(passed)" "20 10"
	send --src 203.0.113.7 --proto 17 --dport 53 --count 30
	assert_eq "DNS too" "$(reason class_limit) $(passed)" "30 30"
	send --src 203.0.113.7 --proto 17 --dport 54 --count 30
	assert_eq "the rest" "$(reason source_limit) $(passed)" "10 50"
	assert_eq "counters of the class" "$(class_limit 203.0.113.0/24 syn '[.passed.packets, .dropped.packets]' | jq -c)" '[10,20]'
	agent del-limit 203.0.113.0/24 --class syn
	expect 1 agent del-limit 203.0.113.0/24 --class syn
	assert_eq "classes left" "$(policy | jq -c '[.[].class]')" '[null,"udp/53"]'
	agent del-limit 203.0.113.0/24
	assert_eq "limits" "$(policy)" '[]'
}

test_a_class_on_a_prefix_without_a_limit_says_what_it_leaves() {
	net_make
	attach
	agent set-limit any --rate 5kpps
	expect 0 agent set-limit 203.0.113.0/24 --class syn --rate 1/h --burst 5
	assert_match "note" "$ERR" 'note: 203\.0\.113\.0/24 .*any \(5kpps'
	expect 0 agent set-limit 203.0.113.0/24 --class udp --rate 1/h --burst 5
	assert_no_match "a second time" "$ERR" 'note'
	send --src 203.0.113.7 --proto 6 --count 10
	assert_eq "passed" "$(passed)" 5
}

test_costs_are_charged() {
	net_make
	attach
	agent set-limit 203.0.113.7 --rate 1/h --burst 100 --cost syn=10,udp=3
	send --src 203.0.113.7 --proto 6 --count 4
	send --src 203.0.113.7 --proto 17 --count 100
	assert_eq "4 of 10 and 20 of 3" "$(passed)" 24
}

test_high_priority_keeps_its_traffic_at_the_device() {
	local low high
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 1mpps --priority low
	agent set-limit 198.51.100.0/24 --rate 1mpps --priority high
	agent set-limit "dev:$DEV" --rate 1/h --burst 100 --reserve high=20%,normal=5%
	send --src 203.0.113.7 --count 200
	low=$(passed)
	send --src 192.0.2.1 --count 200
	assert_eq "low, then normal" "$low $(passed)" "75 80"
	send --src 198.51.100.7 --count 200
	high=$(limit 198.51.100.0/24 .passed.packets)
	assert_eq "high" "$high" 20
}

# ---- trust ----

test_allow_and_deny_by_the_longest_prefix() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 5
	expect 0 agent allow 203.0.113.0/24
	assert_match "what is said" "$OUT" '^203\.0\.113\.0/24: allowed'
	expect 0 agent deny 203.0.113.128/25
	agent set-limit 203.0.113.200 --rate 1/h --burst 7
	send --src 203.0.113.7 --count 20
	assert_eq "allowed" "$(reason allowed)" 20
	send --src 203.0.113.129 --count 20
	assert_eq "denied" "$(reason denied)" 20
	send --src 203.0.113.200 --count 20
	assert_eq "limited" "$(limit 203.0.113.200 .passed.packets)" 7
	send --src 192.0.2.1 --count 20
	assert_eq "any" "$(limit any .passed.packets)" 5
	assert_eq "counts" "$(limit 203.0.113.0/24 .passed.packets) $(limit 203.0.113.128/25 .dropped.packets)" "20 20"
	agent del-limit 203.0.113.128/25
	send --src 203.0.113.129 --count 20
	assert_eq "allowed by what is around" "$(reason allowed)" 40
	agent deny any
	send --src 192.0.2.1 --count 20
	assert_eq "denied by any" "$(reason denied)" 40
	expect 1 agent allow tenant:acme
	assert_match "what it takes" "$ERR" 'allow.*prefix'
	assert_all_counted
}

# ---- shadow ----

test_a_limit_in_shadow_counts_and_is_enforced_in_place() {
	net_make
	attach
	agent set-limit 203.0.113.7 --rate 1/h --burst 10 --shadow
	send --src 203.0.113.7 --count 30
	assert_eq "passed" "$(passed)" 30
	assert_eq "would have dropped" "$(reason shadow_source_limit) $(limit 203.0.113.7 .shadow.packets)" "20 20"
	expect 0 agent set-limit 203.0.113.7 --enforce
	assert_match "what is said" "$OUT" '1/h burst 10p$'
	send --src 203.0.113.7 --count 10
	assert_eq "the bucket is as it was" "$(reason source_limit)" 10
	assert_eq "and the counters" "$(limit 203.0.113.7 .shadow.packets)" 20
	agent set-limit 203.0.113.7 --shadow
	send --src 203.0.113.7 --count 10
	assert_eq "passed again" "$(reason shadow_source_limit)" 30
	# Deny and classes too.
	agent deny 192.0.2.0/24
	agent set-limit 192.0.2.0/24 --shadow
	send --src 192.0.2.1 --count 10
	assert_eq "would have been denied" "$(reason shadow_denied)" 10
	agent set-limit 192.0.2.0/24 --enforce
	send --src 192.0.2.1 --count 10
	assert_eq "denied" "$(reason denied)" 10
	agent set-limit 198.51.100.0/24 --class udp --rate 1/h --burst 3
	agent set-limit 198.51.100.0/24 --class udp --shadow
	send --src 198.51.100.1 --count 10
	assert_eq "class in shadow" "$(reason shadow_class_limit)" 7
	assert_all_counted
}

test_a_device_in_shadow_drops_nothing() {
	net_make
	expect 0 agent attach --max-sources 10k --shadow "$DEV"
	assert_match "what is said" "$OUT" 'shadow'
	agent set-limit any --rate 1/h --burst 5
	agent deny 192.0.2.0/24
	agent set-limit "dev:$DEV" --rate 1/h --burst 3
	send --src 203.0.113.7 --count 10
	send --src 192.0.2.1 --count 10
	assert_eq "dropped" "$(device .dropped.packets)" 0
	assert_eq "would have been" "$(reason shadow_denied) $(reason shadow_device_limit)" "10 7"
	expect 0 agent attach "$DEV"
	assert_match "not said: kept" "$OUT" 'shadow'
	expect 0 agent attach --enforce "$DEV"
	assert_no_match "what is said" "$OUT" 'shadow'
	send --src 192.0.2.1 --count 10
	assert_eq "dropped" "$(reason denied)" 10
	expect 1 agent attach --enforce --shadow "$DEV"
}

# ---- new sources, full table, store ----

test_new_sources_are_granted_a_bucket_at_their_rate() {
	net_make
	attach
	agent set-limit any --rate 1/h --burst 3
	send --src 203.0.113.7 --count 1
	agent set-limit new --rate 1/h --burst 20
	send --src 10.0.0.0 --sources 100 --count 100
	assert_eq "given a bucket" "$(limit new .passed.packets)" 20
	assert_eq "dropped" "$(reason new_source) $(limit new .dropped.packets)" "80 80"
	send --src 203.0.113.7 --count 10
	assert_eq "one that was there" "$(agent top --once --json --filter 203.0.113.7 | jq '.sources[].passed.packets')" 3
	agent del-limit new
	send --src 10.1.0.0 --sources 100 --count 100
	assert_eq "all of them are" "$(reason new_source)" 80
}

fill_the_table() { # WHEN-FULL
	net_make
	agent attach --max-sources 1 --when-full "$1" "$DEV"
	agent set-limit any --rate 1/h --burst 2
	send --src 10.0.0.0 --sources 4096 --count 8192 >/dev/null
}

test_a_full_table_closed() {
	fill_the_table closed
	assert_eq "outcomes" "$(device '[.reasons.table_full, .reasons.aggregate_limit, .reasons.table_full_open] | map(. > 0)' | jq -c)" \
		'[true,false,false]'
	assert_between "passed, 2048 sources twice" "$(passed)" 3900 4096
	assert_all_counted
}

test_a_full_table_open() {
	fill_the_table open
	assert_eq "outcomes" "$(device '[.reasons.table_full, .reasons.aggregate_limit, .reasons.table_full_open] | map(. > 0)' | jq -c)" \
		'[false,false,true]'
	assert_eq "dropped" "$(device .dropped.packets)" 0
	# By a later attach.
	expect 0 agent attach --when-full closed "$DEV"
	send --src 10.1.0.0 --sources 256 --count 256
	[ "$(reason table_full)" -gt 200 ] || fail "dropped by a full table: $(reason table_full)"
	expect 0 agent attach "$DEV"
	assert_eq "not said: kept" "$(agent status --json | jq -r .when_full)" closed
}

test_a_full_table_aggregates_by_default() {
	net_make
	agent attach --max-sources 1 "$DEV"
	assert_eq "the default" "$(agent status --json | jq -rc '[.store, .when_full, .max_sources]')" '["table","aggregate",1280]'
	agent set-limit any --rate 1/h --burst 2
	send --src 10.0.0.0 --sources 4096 --count 8192 >/dev/null
	assert_between "passed, twice each of the 8 or more /24s without places" "$(reason aggregated)" 16 32
	assert_eq "the rest" "$(device '[.reasons.table_full, .reasons.table_full_open]' | jq -c)" '[0,0]'
	[ "$(reason aggregate_limit)" -gt 3500 ] || fail "dropped by their /24: $(reason aggregate_limit)"
	assert_all_counted
}

test_the_store_is_made_once() {
	net_make
	agent attach --store lru --max-sources 5k "$DEV"
	assert_eq "status" "$(agent status --json | jq -rc '[.store, .when_full, .max_sources]')" '["lru",null,5000]'
	agent set-limit any --rate 1/h --burst 5
	send --src 203.0.113.7 --src 2001:db8::1 --count 40
	assert_eq "passed" "$(limit any .passed.packets)" 10
	expect 1 agent attach --store table "$DEV"
	assert_match "the way out" "$ERR" 'lru.*detach --all'
	expect 1 agent attach --max-sources 6k "$DEV"
	assert_match "the way out" "$ERR" '5000.*detach --all'
	expect 0 agent attach --store lru --max-sources 5k --when-full open "$DEV"
	assert_match "what that means there" "$ERR" 'warning: --when-full'
	expect 0 agent attach "$DEV"
	send --src 203.0.113.7 --count 10
	assert_eq "buckets went on" "$(limit any .passed.packets)" 10
	expect 1 agent attach --store hash "$DEV"
	assert_match "what there is" "$ERR" 'table, lru'
	expect 1 agent attach --when-full maybe "$DEV"
	assert_match "what there is" "$ERR" 'aggregate, open, closed'
}

# ---- what is refused ----

# Exit 1, a text that matches, and a policy as it was.
refused() { # REGEX ARGUMENTS...
	local regex=$1 before
	shift
	before=$(policy)
	expect 1 agent "$@"
	assert_match "message" "$ERR" "$regex"
	assert_eq "the policy" "$(policy)" "$before"
}

test_contradictions_are_refused_and_change_nothing() {
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 100pps --burst 50 --tenant acme
	agent set-limit 203.0.113.0/24 --class syn --rate 10pps
	agent set-limit tenant:acme --rate 1kpps
	agent allow 192.0.2.0/24
	refused 'cost' set-limit 203.0.113.0/24 --rate 100pps --burst 50 --cost syn=51
	refused 'twice|already' set-limit 203.0.113.0/24 --rate 100pps --cost syn=2,syn=3
	refused 'twice' set-limit 203.0.113.0/24 --rate 100pps --class syn --class udp
	refused 'twice' set-limit 203.0.113.0/24 --rate 100pps --priority high --priority low
	refused 'twice' set-limit 203.0.113.0/24 --rate 100pps --tenant a --tenant b
	refused '100 ?%' set-limit tenant:acme --rate 1kpps --reserve high=80%,normal=30%
	refused 'reserve' set-limit 203.0.113.0/24 --rate 100pps --reserve high=80%
	refused 'attached' set-limit dev:lo --rate 1kpps
	refused 'attached' set-limit dev:nosuch0 --rate 1kpps
	refused '31 bytes' set-limit 203.0.113.0/24 --rate 100pps --tenant "$(printf 'a%.0s' $(seq 32))"
	refused '31 bytes' set-limit "tenant:$(printf 'a%.0s' $(seq 32))" --rate 100pps
	refused 'tenant' set-limit 203.0.113.0/24 --rate 100pps --tenant 'a b'
	refused 'tenant' set-limit 'tenant:a b' --rate 100pps
	refused 'shared.*per|per.*shared' set-limit 203.0.113.0/24 --rate 100pps --shared --per /28
	refused 'per|/24' set-limit 203.0.113.0/24 --rate 100pps --per /16
	refused 'per|/32' set-limit 203.0.113.0/24 --rate 100pps --per /33
	refused 'per|any' set-limit any --rate 100pps --per /28
	refused 'contradict' set-limit 203.0.113.0/24 --shadow --enforce
	refused 'no limit' set-limit 198.51.100.0/24 --shadow
	refused 'allow of .* takes no --shadow' set-limit 192.0.2.0/24 --shadow
	refused 'no limit' set-limit 203.0.113.0/24 --class icmp --enforce
	refused 'allowed' set-limit 192.0.2.0/24 --class syn --rate 10pps
	refused 'class' set-limit tenant:acme --class syn --rate 10pps
	refused 'class' set-limit 203.0.113.0/24 --class sctp --rate 10pps
	refused 'packets|bit' set-limit new --rate 1mbit
	refused 'rate' set-limit tenant:other
	refused 'no limit' del-limit tenant:other
	refused 'no limit' del-limit 203.0.113.0/24 --class udp
	refused 'no limit' del-limit new
	refused 'prefix' deny new
	refused 'priority' set-limit 203.0.113.0/24 --rate 100pps --priority urgent
	refused 'argument' allow
	assert_eq "limits" "$(policy | jq -c '[.[] | [.target, .class]]')" \
		'[["192.0.2.0/24",null],["203.0.113.0/24",null],["203.0.113.0/24","syn"],["tenant:acme",null]]'
}

# Whatever packets of a prefix cost, the buckets that they share must be able to hold; in any order of the commands.
test_a_cost_fits_into_every_bucket_that_it_is_taken_from() {
	local costly=(198.51.100.128/25 --rate 1kpps --burst 1000)
	net_make
	attach
	agent set-limit tenant:acme --rate 100pps --burst 50
	refused 'cost syn=100 of 198\.51\.100\.128/25.*tenant:acme.*50.*burst 50p.*at most 50.*at least 100p' \
		set-limit "${costly[@]}" --tenant acme --cost syn=100
	agent set-limit "${costly[@]}" --tenant acme --cost syn=50
	refused 'cost syn=50.*tenant:acme.*burst 49p' set-limit tenant:acme --rate 100pps --burst 49
	refused 'priority normal.*reserve high=20%' set-limit tenant:acme --rate 100pps --burst 50 --reserve high=20%
	agent set-limit tenant:acme --rate 100pps --burst 50 --reserve normal=20%
	refused 'priority low' set-limit "${costly[@]}" --tenant acme --cost syn=50 --priority low
	refused 'priority low' set-limit tenant:acme --rate 100pps --burst 50 --reserve normal=20% --priority low
	# The tenant of a prefix around it.
	agent set-limit any --rate 1kpps --tenant acme
	refused 'tenant:acme' set-limit "${costly[@]}" --cost syn=51
	agent set-limit 198.51.100.0/24 --rate 1kpps --tenant other
	agent set-limit "${costly[@]}" --cost syn=51
	refused '198\.51\.100\.128/25.*tenant:acme' set-limit 198.51.100.0/24 --rate 1kpps
	refused '198\.51\.100\.128/25.*tenant:acme' allow 198.51.100.0/24
	refused '198\.51\.100\.128/25.*tenant:acme' del-limit 198.51.100.0/24
	# Devices.
	refused 'cost syn=51.*dev:rl0' set-limit "dev:$DEV" --rate 1kpps --burst 50
	agent set-limit "dev:$DEV" --rate 1kpps --burst 100 --reserve high=20%,normal=5%
	refused 'dev:rl0.*priority low, 75' set-limit "${costly[@]}" --cost syn=76 --priority low
	agent set-limit "${costly[@]}" --cost syn=80
	refused 'dev:rl0.*priority low' set-limit tenant:other --priority low
	agent set-limit "${costly[@]}" --cost syn=100 --priority high
	refused 'dev:rl0.*priority normal, 80' set-limit "${costly[@]}" --cost syn=100
	agent set-limit "${costly[@]}" --shadow
}

# A frame that is larger than the bucket would never pass, however slowly it is sent.
test_a_byte_burst_holds_the_frames_of_attached_devices() {
	net_make
	ip -n "$RX" link set "$DEV" mtu 9000
	ip -n "$RX" link add rl1 type veth peer name gen1 netns "$TX"
	attach
	agent attach rl1
	refused 'burst 4kb is less than a full frame of rl0, whose MTU is 9000 .9022 bytes.*at least 9\.022kb' \
		set-limit any --rate 1mbit --burst 4kb
	refused 'burst 9\.021kb is less' set-limit 203.0.113.0/24 --class udp --rate 1mbit --burst 9.021kb
	expect 0 agent set-limit any --rate 1mbit --burst 9.022kb
	refused 'burst 18kb leaves the lowest priority less .*rl0.*reserve high=50%.*at least 18\.044kb' \
		set-limit tenant:acme --rate 10kbit --burst 18kb --reserve high=50%
	expect 0 agent set-limit tenant:acme --rate 10kbit --reserve high=50%
	assert_match "the default is raised" "$OUT" 'burst 18\.044kb'
	refused 'rl0' set-limit dev:rl0 --rate 1mbit --burst 4kb
	expect 0 agent set-limit dev:rl1 --rate 1mbit --burst 4kb
	agent detach rl0
	expect 0 agent set-limit any --rate 1mbit --burst 4kb
	expect 0 agent attach rl0
	assert_match "attach" "$ERR" 'warning: rl0 has an MTU of 9000, and its full frames never pass the limit of any .burst 4kb.:.*at least 9\.022kb'
	assert_no_match "dev:rl1 isn't concerned" "$ERR" 'other'
	agent set-limit any --rate 1mbit
	agent detach rl0
	agent set-limit 203.0.113.0/24 --class udp --rate 1mbit --burst 4kb
	agent set-limit 203.0.113.0/24 --class tcp --rate 1mbit --burst 5kb
	expect 0 agent attach rl0
	assert_match "of classes" "$ERR" 'class udp of 203\.0\.113\.0/24 .burst 4kb. nor that of 1 other'
	assert_eq "lines" "$(wc -l <<<"$ERR")" 1
	expect 0 agent attach rl1
	assert_eq "a device of small frames" "$ERR" ''
}

test_a_word_alone_needs_a_limit_that_it_changes() {
	net_make
	attach
	agent set-limit 203.0.113.0/24 --class syn --rate 10pps
	agent set-limit 203.0.113.0/24 --class udp/53 --rate 10pps
	refused '203\.0\.113\.0/24 .*classes.*syn, udp/53.*--class syn --shadow' set-limit 203.0.113.0/24 --shadow
	refused '203\.0\.113\.0/24 .*classes.*--class syn --enforce' set-limit 203.0.113.0/24 --enforce
	agent set-limit 203.0.113.0/24 --class syn --shadow
	assert_eq "the class" "$(class_limit 203.0.113.0/24 syn .shadow.packets)" 0
}

test_room_that_is_used_up_is_no_wrong_usage() {
	local port
	net_make
	attach
	for port in 1 2 3 4 5 6 7 8; do agent set-limit 203.0.113.0/24 --class "tcp/$port" --rate 10pps; done
	expect 2 agent set-limit 203.0.113.0/24 --class tcp/9 --rate 10pps
	assert_match "the way out" "$ERR" '203\.0\.113\.0/24 has 8 classes.*del-limit'
}

test_what_a_bare_word_keeps_and_a_whole_one_does_not() {
	net_make
	attach
	agent set-limit 203.0.113.0/24 --rate 100pps --rate 1mbit --tenant acme --per /28 --cost syn=3 --priority high
	agent set-limit 203.0.113.0/24 --shadow
	assert_eq "kept" "$(policy | jq -c '.[0] | [.tenant, .per, .cost, .priority, .rate_pps, .rate_bits, .shadow]')" \
		'["acme",28,{"syn":3},"high",100,1000000,true]'
	agent set-limit 203.0.113.0/24 --rate 100pps
	assert_eq "taken back" "$(policy | jq -c '.[0] | [.tenant, .per, .priority, .rate_bits, .shadow]')" '[null,null,null,null,false]'
}

test_ones_own_session_denied_or_under_a_tenant_or_device_warns() {
	local ssh=(in_rx env SSH_CONNECTION='203.0.113.50 50000 192.0.2.1 22' "$AGENT")
	net_make
	attach
	expect 0 "${ssh[@]}" deny 203.0.113.0/24
	assert_match "warning" "$ERR" '203\.0\.113\.50.* denied .*203\.0\.113\.0/24.*del-limit'
	expect 0 "${ssh[@]}" allow 203.0.113.50
	assert_no_match "warning" "$ERR" 'SSH'
	expect 0 "${ssh[@]}" set-limit 203.0.113.50 --rate 1kpps --tenant acme --shadow
	assert_no_match "warning of a limit in shadow" "$ERR" 'SSH'
	expect 0 "${ssh[@]}" set-limit tenant:acme --rate 1kpps
	assert_match "warning" "$ERR" '203\.0\.113\.50.*tenant:acme'
	expect 0 "${ssh[@]}" set-limit tenant:other --rate 1kpps
	assert_no_match "warning of another tenant" "$ERR" 'SSH'
	expect 0 "${ssh[@]}" set-limit "dev:$DEV" --rate 1kpps
	assert_match "warning" "$ERR" "203\.0\.113\.50.*dev:$DEV"
}

e2e_main "$@"
