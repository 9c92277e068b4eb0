# SPDX-License-Identifier: MIT
# Wrong usage and impossible requests: one sentence, the status of the contract, nothing left.
. "$ROOT/tests/lib.sh"
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
fails "no command" 2 'no command' "$WEIR"
fails "an unknown command" 2 "'frobnicate' is not a command" "$WEIR" frobnicate
fails "weir -- without a command" 2 'no command' "$WEIR" --
fails "record without a target" 2 'nothing to record' "$WEIR" record
fails "an unknown option" 2 "unknown option '--bogus'" "$WEIR" record --bogus -- true
fails "an unknown letter" 2 "unknown option '-Z'" "$WEIR" record -Z -- true
fails "a missing value" 2 'needs a value' "$WEIR" record -o
fails "a frequency that is no number" 2 "'fast' is not a whole number" "$WEIR" record -F fast -- true
fails "a frequency of 0" 2 'must be from 1' "$WEIR" record -F 0 -- true
fails "a negative duration" 2 'is not a number of seconds' "$WEIR" record --duration -3 -- true
fails "two targets" 2 'exclude each other' "$WEIR" record -p 1 -- true
fails "a pid that is no number" 2 'not a list of process ids' "$WEIR" record -p foo
fails "an unknown event" 1 "'bananas': is not a known event" "$WEIR" record -e bananas -- true
"$WEIR" record -q -o trace.weir -- true
cp trace.weir kept
fails "a command that does not exist" 1 "'nosuchcommand': cannot run: No such file" "$WEIR" -- nosuchcommand
fails "a path that does not exist" 1 "'./nope': cannot run: No such file" "$WEIR" record -- ./nope
touch plain && chmod 644 plain
fails "a file that is not executable" 1 "'./plain': cannot run: Permission denied" "$WEIR" record -- ./plain
fails "a directory" 1 "'/tmp': cannot run: Is a directory" "$WEIR" record -- /tmp
printf 'not a program' >junk && chmod 755 junk
fails "a pid that does not exist" 1 'process 4194000: there is no such process' "$WEIR" record -p 4194000
sleep 0 & gone=$!
wait $gone
fails "a pid that has ended" 1 "process $gone: there is no such process" "$WEIR" record -p $gone
fails "a folder that does not exist" 1 "'nodir/t.weir'" "$WEIR" record -o nodir/t.weir -- true
check "the older trace is untouched by all that" cmp -s trace.weir kept
check "nothing else is left" test -z "$(find . -name '*.weir*' ! -name trace.weir)"
"$WEIR" doctor --json >doctor.json
if [ "$(json doctor.json "next(r['verdict'] for r in j['rows'] if r['name']=='counters')")" = good ]; then
	skip "a counter that is not there: this machine has hardware counters"
else
	fails "a counter that is not there" 1 "'cycles': this machine has no such counter" "$WEIR" record -e cycles -- true
fi
# A pid that ends while attaching: many short-lived ones in a row, each a success or one sentence.
bad=0
for i in $(seq 40); do
	sh -c 'exec sleep 0.01' &
	"$WEIR" record -q -p $! -o race.weir 2>err.txt
	rc=$?
	wait
	case $rc in
	0) ;;
	1) [ "$(wc -l <err.txt)" = 1 ] && grep -Eq 'there is no such process|ended while attaching|is gone' err.txt || bad=$((bad + 1)) ;;
	*) bad=$((bad + 1)) ;;
	esac
done
equal "a pid that ends while attaching gives a trace or a sentence, 40 times" 0 $bad
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
	mkdir pub && chmod 777 pub && cp split pub/
	chmod 755 . && chmod a+x "$(dirname "$PWD")" 2>/dev/null
	cp "$WEIR" pub/weir-copy
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env -C "$PWD/pub" "$@"; }
	if as_nobody true 2>/dev/null && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
		as_nobody ./weir-copy record -q -- ./split recursion >/dev/null 2>err.txt
		equal "without privilege the own program is recorded" 0 $?
		check "its stacks are named" sh -c 'as=$("$WEIR" report flat pub/trace.weir --limit 40) && echo "$as" | grep -q spin_recursive'
		as_nobody ./weir-copy record -- ./split status 0 2>err.txt >/dev/null
		check "what is missing is said once, with the way to get it" grep -q "perf_event_paranoid" err.txt
		fails "somebody else's process is refused" 1 'process 1: belongs to somebody else' as_nobody ./weir-copy record -p 1
		if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 0 ]; then
			fails "system-wide is refused" 1 'system-wide recording is not permitted' as_nobody ./weir-copy record -a --duration 1
		fi
	else
		skip "recording without privilege: the test folder cannot be entered by nobody, or paranoid is above 2"
	fi
else
	skip "recording without privilege: needs root to become nobody"
fi
