#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a source is given over ten seconds is what was asked for: burst + rate * t, within 0.1 % or one packet.
# shellcheck source=tests/lib/e2e.sh
source "$(dirname "$0")/../lib/e2e.sh"

E2E_JOBS=4 # each mostly sleeps

# Offer more than the limit for ten seconds, compare what passed. One token is a packet or a byte.
rate_holds() { # SOURCE OFFERED-PPS LENGTH RATE PER-SECOND BURST packets|bytes
	local sent one=1 model=()
	[ "$7" = packets ] || { one=$3 && model=(--model-bytes); }
	net_make
	agent attach "$DEV"
	agent set-limit "$1" --rate "$4"
	sent=$(send --src "$1" --rate "$2" --len "$3" --seconds 10 --model-rate "$5" --model-burst "$6" "${model[@]}")
	echo "$sent"
	stats
	assert_rate "$4" "$(limit "$1" ".passed.$7")" "$5" "$6" "$one" "$sent"
	assert_all_counted
}

test_10_packets_a_second_are_exact() { rate_holds 203.0.113.7 100 60 10pps 10 16 packets; }
test_1000_packets_a_second_are_exact() { rate_holds 203.0.113.7 3000 60 1000pps 1000 250 packets; }
test_10_megabits_are_exact() { rate_holds 203.0.113.7 2500 1000 10mbit 1250000 312500 bytes; }
test_1000_packets_a_second_are_exact_over_ipv6() { rate_holds 2001:db8::7 3000 62 1kpps 1000 250 packets; }

# The one that needs a processor: alone.
test_100000_packets_a_second_are_exact() { rate_holds 203.0.113.7 150000 60 100kpps 100000 25000 packets; }

e2e_main "$@"
