# SPDX-License-Identifier: MIT
# weir steps: wrong usage and impossible requests are one sentence and the status of the contract, and
# leave nothing behind.
. "$ROOT/tests/lib.sh"

usage() { # SENTENCE PATTERN ARGUMENTS...
	local sentence=$1 pattern=$2
	shift 2
	fails "$sentence" 2 "^weir: steps: $pattern.* \('weir help steps' tells more\)\$" "$WEIR" steps "$@"
}

"$WEIR" record -q -o trace.weir -- true
cp trace.weir kept
usage "nothing to trace" 'nothing to trace: give a command or -p PID'
usage "nothing to trace behind --" 'nothing to trace' --
usage "a command and -p" 'a command and -p exclude each other' -p 1 -- true
usage "an unknown option" "unknown option '--bogus'" --bogus -- true
usage "a missing value" '--max needs a value \(N\)' --max
usage "an unknown engine" "--engine: 'steam' is none of [a-z, ]*ptrace" --engine steam -- true
usage "an engine without a name" "--engine: '' is none of" --engine '' -- true
usage "a pid that is no number" "-p: 'foo' is not a list of process ids" -p foo
usage "a negative pid" "-p: '-1' is not a list of process ids" -p -1
usage "a list of pids with a hole" "-p: '1,,2' is not a list of process ids" -p 1,,2
usage "a pid beyond all pids" "-p: '4294967297' is not a list" -p 4294967297
usage "an empty list of pids" '-p: no process named' -p ''
usage "more pids than fit" '-p: more than 1024 processes' -p "$(seq -s , 100000 101100)"
usage "--max 0" '--max: must be at least 1' --max 0 -- true
usage "--max that is no number" "--max: 'many' is not a whole number" --max many -- true
usage "a negative --max" "--max: '-5' is not a whole number" --max -5 -- true
usage "--max beyond 64 bits" "--max: '99999999999999999999' is not" --max 99999999999999999999 -- true
usage "--for without --every" '--for: how often\? give --every MS, too' --for 5 -- true
usage "--every 0" "--every: '0' is not a number of milliseconds" --every 0 -- true
usage "a negative --every" "--every: '-1' is not a number of milliseconds" --every -1 -- true
usage "--every that is no number" "--every: 'nan' is not a number of milliseconds" --every nan -- true
usage "--every with something behind it" "--every: '5x' is not a number" --every 5x -- true
usage "--every forever" "--every: 'inf' is not a number" --every inf -- true
usage "--for 0" '--for: must be at least 1' --every 5 --for 0 -- true
usage "--around and --from" '--around and --from exclude each other' --around f --from g -- true
usage "--around and --to" '--around and --to exclude each other' --around f --to g -- true
for option in from to around; do
	usage "--$option without a name" "--$option: no function named" "--$option" '' -- true
done
usage "--threads without a name" '--threads: no thread named' --threads '' -- true
usage "--user-code without a path" '--user-code: no file named' --user-code '' -- true
usage "an output without a name" '--output: no file named' -o '' -- true
usage "--lossless and --lossy" '--lossless and --lossy exclude each other' --lossless --lossy -- true
usage "a buffer that is too small" '--buffer: must be from 65536 to 1073741824' --buffer 1 -- true
usage "a buffer that is too large" '--buffer: must be from 65536' --buffer 1073741825 -- true
usage "a negative duration" "--duration: '-3' is not a number of seconds" --duration -3 -- true
usage "a value for a flag" '--data takes no value' --data=yes -- true

fails "a command that does not exist" 1 "'nosuchcommand': cannot run: No such file" "$WEIR" steps -- nosuchcommand
fails "a path that does not exist" 1 "'./nope': cannot run: No such file" "$WEIR" steps -- ./nope
touch plain && chmod 644 plain
fails "a file that is not executable" 1 "'./plain': cannot run: Permission denied" "$WEIR" steps -- ./plain
fails "a directory" 1 "'/tmp': cannot run: Is a directory" "$WEIR" steps -- /tmp
fails "a pid that does not exist" 1 'process 4194000: there is no such process' "$WEIR" steps -p 4194000
sleep 0 & gone=$!
wait $gone
fails "a pid that has ended" 1 "process $gone: there is no such process" "$WEIR" steps -p $gone
fails "a folder that does not exist" 1 "'nodir/t.weir'" "$WEIR" steps -o nodir/t.weir -- sh -c 'touch ran'
check "then the command has not run" test ! -e ran
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir pub && chmod 777 pub && cp "$WEIR" pub/weir-copy
	chmod 755 . && chmod a+x "$(dirname "$PWD")" 2>/dev/null
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env -C "$PWD/pub" "$@"; }
	if as_nobody true 2>/dev/null; then
		fails "somebody else's process" 1 'process 1: .*may not be traced' as_nobody ./weir-copy steps -p 1
		fails "a folder that may not be written" 1 "'/nobody.weir': .*Permission denied" \
			as_nobody ./weir-copy steps -o /nobody.weir -- true
		as_nobody ./weir-copy steps -q --max 5 -o own.weir -- true
		equal "without privilege the own program is traced" 0 $?
		rm -f pub/own.weir
	else
		skip "tracing without privilege: the test folder cannot be entered by nobody"
	fi
else
	skip "tracing without privilege: needs root to become nobody"
fi
check "the older trace is untouched by all that" cmp -s trace.weir kept
equal "nothing else is left" "" "$(find . -name '*.weir*' ! -name trace.weir)"

"$WEIR" doctor --json >doctor.json
check "doctor says which engines work" test "$(json doctor.json "[r['verdict'] in ('good', 'limited', 'missing') and 'ptrace' in r['text'] for r in j['rows'] if r['name'] == 'steps']")" = '[True]'
