# SPDX-License-Identifier: MIT
# Sourced by test scripts: verdict lines and a few checks. A script runs in an empty folder of its
# own and prints one verdict a sentence.
set -u
: "${WEIR:?}" "${ROOT:?}" "${BUILD:?}"

ok() { echo "ok $*"; }
not_ok() { echo "not ok $*"; }
skip() { echo "skip $*"; } # SENTENCE: REASON

# finish: nothing more can be tested here. A test that stops in another way before its end has failed.
finish() {
	printf '\nend\n'
	exit 0
}

# check SENTENCE COMMAND...: the command succeeds.
check() {
	local sentence=$1
	shift
	if "$@"; then ok "$sentence"; else not_ok "$sentence"; fi
}

# equal SENTENCE EXPECTED ACTUAL
equal() {
	if [ "$2" = "$3" ]; then ok "$1"; else
		not_ok "$1"
		diff <(printf '%s\n' "$2") <(printf '%s\n' "$3") | head -n 20
	fi
}

# fails SENTENCE STATUS PATTERN COMMAND...: exits with STATUS, and stderr has one line that matches.
fails() {
	local sentence=$1 status=$2 pattern=$3 rc
	shift 3
	"$@" >out.txt 2>err.txt
	rc=$?
	if [ $rc -eq "$status" ] && [ "$(wc -l <err.txt)" -eq 1 ] && grep -Eq -- "$pattern" err.txt; then
		ok "$sentence"
	else
		not_ok "$sentence: status $rc, expected $status, stderr:"
		head -n 20 err.txt
	fi
}

# json FILE EXPRESSION: evaluates a Python expression over the parsed object `j`.
json() { python3 -SE -c 'import json,sys; j=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

# runs PID: waits until a process that was started in the background is the program that it will be.
runs() {
	local i
	for ((i = 0; i < 500; i++)); do
		[ "$(readlink "/proc/$1/exe")" = "$(readlink /proc/$$/exe)" ] || return 0
		sleep 0.01
	done
}

# until_line FILE PATTERN [PID]: waits until a file has such a line. The bound is for what never comes; not even PID's
# end, when the process that was to write it is given.
until_line() {
	local i
	for ((i = 0; i < 3000; i++)); do
		grep -q -- "$2" "$1" 2>/dev/null && return
		[ -z "${3:-}" ] || kill -0 "$3" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

# feed FD [LINE]: a line for a program behind a pipe that may have ended: the shell itself would die of writing it.
feed() { (printf '%s\n' "${2:-}" >&"$1") 2>/dev/null; }

# on_terminal WHEN COMMAND...: runs it on a terminal of its own, types Ctrl-C after WHEN seconds, when the text WHEN was
# shown, or "never". What it showed is in shown.txt; prints how it ended: "exit 0", "signal 2".
on_terminal() { python3 -B "$ROOT/tests/terminal.py" "$@"; }
