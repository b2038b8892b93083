# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# e2e.sh - fixture of the end-to-end tests: real frames over veth, into the real agent.
#
# A test file sources this, defines functions test_* (the name says what behaviour holds) and ends with
# e2e_main "$@". Each test runs in a process of its own, inside mount and process namespaces of its own with a bpffs of
# its own; network namespaces are made on top with net_make. So whatever way a test ends, nothing of it is left: its
# processes, devices, pins and links go with the namespaces, and neither tests side by side nor an rl-agent that is at
# work on this machine can be touched.
#
# A line for each test: `ok NAME[: figures]`, `not ok NAME: reason` with the captured output, `skip NAME: reason`.
#
# What a test can use: net_make, net_use, in_rx, in_tx, agent, send, expect, the readers below, assert_*, note, skip,
# fail, wait_for.
set -euo pipefail

E2E_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
E2E_BUILD=${RL_BUILD:-$E2E_ROOT/build}
AGENT=$E2E_BUILD/rl-agent
SEND=$E2E_BUILD/tests/rl-send
E2E_JOBS=${E2E_JOBS:-1}        # tests of a file that may run side by side; a file sets it
E2E_TIMEOUT=${E2E_TIMEOUT:-90} # seconds for one test

# ---- outcome ----

note() { echo "$*" >>"$E2E_TMP/notes"; }

# Where in the test file we are, from inside the functions here.
e2e_line() {
	local i
	for i in "${!BASH_SOURCE[@]}"; do
		[ "${BASH_SOURCE[i]}" != "$0" ] || break
	done
	echo "line ${BASH_LINENO[i - 1]}"
}

fail() {
	echo "$(e2e_line): $*" | tee "$E2E_TMP/reason" >&2
	exit 1
}

skip() {
	echo "$*" >"$E2E_TMP/reason"
	exit 77
}

assert_eq() { # WHAT GOT WANT
	[ "$2" = "$3" ] || fail "$1: got '$2', want '$3'"
}

assert_between() { # WHAT GOT LOW HIGH; decimals
	jq -en --argjson v "$2" --argjson l "$3" --argjson h "$4" '$v >= $l and $v <= $h' >/dev/null ||
		fail "$1: got $2, want $3 to $4"
}

assert_match() { # WHAT TEXT REGEX; case is ignored
	grep -Eiq -- "$3" <<<"$2" || fail "$1: nothing matches '$3' in: $2"
}

assert_no_match() { # WHAT TEXT REGEX
	! grep -Eiq -- "$3" <<<"$2" || fail "$1: '$3' matches in: $2"
}

# Run a command, expect its exit code, leave its output in OUT and ERR.
expect() { # CODE COMMAND...
	local want=$1 code=0
	shift
	"$@" >"$E2E_TMP/out" 2>"$E2E_TMP/err" || code=$?
	OUT=$(cat "$E2E_TMP/out")
	ERR=$(cat "$E2E_TMP/err")
	printf '$ %s\n%s\n%s\n(exit %s)\n' "$*" "$OUT" "$ERR" "$code"
	[ "$code" -eq "$want" ] || fail "exit $code instead of $want: $* ($ERR)"
}

wait_for() { # SECONDS COMMAND...: until it succeeds
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -le "$end" ] || fail "waited in vain for: $*"
		sleep 0.05
	done
}

# ---- network ----

# Two network namespaces with a veth pair between them: NAME-rx, where the agent works on $DEV, and NAME-tx, where
# frames are sent from. IPv6 is off on both ends, so that no frame comes that a test didn't send.
net_make() { # [NAME] [DEV] [extra words of `ip link add DEV`, such as: index 77]
	local name=${1:-net} dev=${2:-rl0} end
	shift $(($# < 2 ? $# : 2))
	for end in rx tx; do
		ip netns add "rl-e2e-$$-$name-$end"
		nsenter --net="/run/netns/rl-e2e-$$-$name-$end" \
			sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6' 2>/dev/null || true
	done
	ip -n "rl-e2e-$$-$name-rx" link add "$dev" "$@" type veth peer name gen0 netns "rl-e2e-$$-$name-tx"
	ip -n "rl-e2e-$$-$name-rx" link set "$dev" up
	ip -n "rl-e2e-$$-$name-tx" link set gen0 up
	net_use "$name" "$dev"
	wait_for 5 in_rx ip link show dev "$dev" up
}

# Which pair the helpers below work on.
net_use() { # NAME [DEV]
	RX=rl-e2e-$$-$1-rx
	TX=rl-e2e-$$-$1-tx
	DEV=${2:-rl0}
}

# `ip netns exec` would hide bpffs behind a /sys of its own.
in_rx() { nsenter --net="/run/netns/$RX" "$@"; }
in_tx() { nsenter --net="/run/netns/$TX" "$@"; }
# shellcheck disable=SC2086 # AGENT_ENV: assignments, as for env
agent() { in_rx env ${AGENT_ENV:-} "$AGENT" "$@"; }
send() { in_tx "$SEND" --dev gen0 "$@"; }

# With a small table, which is made and freed faster than the million entries that are the default.
attach() { agent attach --max-sources 10k "$DEV"; }

# Start a program in the background, its id in PID. nsenter becomes the program, so a kill hits it.
# shellcheck disable=SC2034 # PID is for the caller
start_agent() {
	nsenter --net="/run/netns/$RX" "$AGENT" "$@" &
	PID=$!
}
# shellcheck disable=SC2034
start_send() {
	nsenter --net="/run/netns/$TX" "$SEND" --dev gen0 "$@" &
	PID=$!
}
stop() { # PID...
	local pid
	for pid; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" || true
	done
}

# ---- readers ----

stats() { agent stats --json; }

device() { # FIELD, as in .received.packets
	stats | jq --arg d "$DEV" ".devices[] | select(.name == \$d) | $1"
}

limit() { # TARGET FIELD
	stats | jq --arg t "$1" ".limits[] | select(.target == \$t) | $2"
}

# Frames that the device itself counted as received.
frames_received() { ip -n "$RX" -s -j link show dev "$DEV" | jq '.[0].stats64.rx.packets'; }

# The frames that the program counted are those that the device received, each as passed or as dropped.
assert_all_counted() {
	local count
	count=$(device '[.received.packets, .passed.packets + .dropped.packets, ([.reasons[]] | add)] | join(" ")' | tr -d '"')
	local frames
	frames=$(frames_received)
	assert_eq "received, passed + dropped, sum of reasons" "$count" "$frames $frames $frames"
}

# The link of the first device: "LINK_ID PROGRAM_ID".
link_ids() {
	bpftool -j link show pinned "$(echo /sys/fs/bpf/rl-agent/*/device-0)" | jq -r 'if type == "array" then .[0] else . end |
		"\(.id) \(.prog_id)"'
}

# The XDP program on the device, or 0.
xdp_id() { ip -n "$RX" -d -j link show dev "$DEV" | jq '.[0].xdp.prog.id // 0'; }

assert_nothing_left() {
	[ ! -e /sys/fs/bpf/rl-agent ] || fail "left behind: $(find /sys/fs/bpf/rl-agent | tr '\n' ' ')"
	assert_eq "program on the device" "$(xdp_id)" 0
}

# Was what passed burst + rate * t: never above, and not below by more than 0.1 % or one packet? Where the generator was
# held up for so long that the bucket was full meanwhile, what the frames that were sent could get counts instead.
# SENT is the line of rl-send with --model-rate and --model-burst.
assert_rate() { # WHAT PASSED RATE-PER-SECOND BURST ONE SENT
	local line
	line=$(jq -nr --argjson got "$2" --argjson rate "$3" --argjson burst "$4" --argjson one "$5" --argjson sent "$6" '
		def places($n): . * pow(10; $n) | round / pow(10; $n);
		(($sent.last_ns - $sent.first_ns) / 1e9) as $t | ($burst + $rate * $t) as $most |
		([$most / 1000, $one] | max) as $slack | ([$most, $sent.expected] | min) as $least |
		(if $got <= $most + 0.001 and $got >= $least - $slack then "ok" else "off" end) +
		" passed \($got) of \($most | places(1)) in \($t | places(3)) s (\(($got / $most - 1) * 100 | places(3)) %)" +
		(if $most - $sent.expected > $slack then ", \($sent.expected) as sent" else "" end)')
	note "$1: ${line#* }"
	[ "${line%% *}" = ok ] || fail "$1: ${line#* }"
}

# ---- running ----

# Inside the test's own namespaces: lay them out, run the one test.
e2e_run() { # NAME
	mount --make-rprivate /
	mount -t tmpfs tmpfs /run
	mkdir -p /run/netns
	# Not on top of the machine's: a test that unmounts this one shall find none.
	while mountpoint -q /sys/fs/bpf; do umount /sys/fs/bpf; done
	mount -t bpf bpf /sys/fs/bpf
	set -E
	trap 'fail "failed: ${BASH_COMMAND%%$'\''\n'\''*}"' ERR
	"$1"
}

# From outside: run one test and leave its report in FILE.
e2e_report() { # NAME FILE
	local name=${1#test_} dir code=0 reason
	dir=$(mktemp -d "${TMPDIR:-/tmp}/rl-e2e.XXXXXX")
	E2E_TMP=$dir timeout --kill-after=5 "$E2E_TIMEOUT" unshare --mount --pid --fork --kill-child --mount-proc \
		env -u SSH_CONNECTION bash "$0" --run "$1" >"$dir/log" 2>&1 </dev/null || code=$?
	reason=$(cat "$dir/reason" 2>/dev/null || true)
	case $code in
	0) echo "ok $name$(sed '1s/^/: /' "$dir/notes" 2>/dev/null | paste -sd';' | sed 's/;/; /g')" ;;
	77) echo "skip $name: $reason" ;;
	124 | 137) echo "not ok $name: not done after $E2E_TIMEOUT s" ;;
	*) echo "not ok $name: ${reason:-exit $code}" ;;
	esac >"$2"
	case $code in 0 | 77) ;; *) sed 's/^/    | /' "$dir/log" >>"$2" ;; esac
	rm -rf "$dir"
	case $code in 0 | 77) ;; *) return 1 ;; esac
}

e2e_main() { # [--only REGEX] | --list | --run NAME
	local only=. tests name out failed=0 running=()
	mapfile -t tests < <(grep -Eo '^test_[a-z0-9_]+' "$0")
	case ${1:-} in
	--run) e2e_run "$2"; return ;;
	--list) printf '%s\n' "${tests[@]#test_}"; return ;;
	--only) only=$2 ;;
	esac
	[ "$(id -u)" -eq 0 ] || { echo "$0: needs root, for namespaces and BPF" >&2; exit 2; }
	if ! [ -x "$AGENT" ] || ! [ -x "$SEND" ]; then
		echo "$0: run \`make all tests\` first" >&2
		exit 2
	fi
	out=$(mktemp -d "${TMPDIR:-/tmp}/rl-e2e.XXXXXX")
	# shellcheck disable=SC2064 # the folder as it is now
	trap "rm -rf '$out'" EXIT
	for name in "${tests[@]}"; do
		grep -Eq -- "$only" <<<"${name#test_}" || continue
		[ "${#running[@]}" -lt "$E2E_JOBS" ] || e2e_collect
		e2e_report "$name" "$out/$name" &
		running+=("$! $out/$name")
	done
	while [ "${#running[@]}" -gt 0 ]; do e2e_collect; done
	return "$failed"
}

# Wait for the oldest running test and print its report.
e2e_collect() {
	wait "${running[0]% *}" || failed=1
	cat "${running[0]#* }"
	running=("${running[@]:1}")
}
