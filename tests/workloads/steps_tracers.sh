# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Programs that trace others themselves: what they ask for is let go, and they work as without; nothing is
# left behind.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"

# left: names of processes in whose environment is a word of this test.
export STEPS_TRACERS=$$
left() {
	local pid
	for pid in $(pgrep -x 'tracer|strace|weir|gdb|exact'; pgrep -x weir-keeper); do
		{ tr "\0" "\n" <"/proc/$pid/environ"; } 2>/dev/null | grep -qx "STEPS_TRACERS=$$" && cat "/proc/$pid/comm"
	done
}

build tracer tracer.c -O1 -static || exit 1
small exact exact.S || exit 1
for engine in ptrace; do
	stepper=(timeout -k 1 60 setarch -R "$WEIR" steps -q --engine "$engine")
	for mode in traceme attach seize twice; do same "$engine, $mode" ./tracer $mode; done
done
"$WEIR" steps --engine ptrace -o n.weir -- ./tracer seize >/dev/null 2>err.txt
check "a note says what is not traced, and why" grep -Eq 'process [0-9]+ runs on untraced: process [0-9]+ traces it' err.txt
"$WEIR" report steps n.weir --limit 10000000 >listing.txt
check "so does the trace" grep -q 'runs untraced (engine)' listing.txt

# Large tracers run at their own speed: nothing of them is asked for.
stepper=(timeout -k 1 60 setarch -R "$WEIR" steps -q --engine ptrace)
step_options=(--around no_such_function)
same "weir in weir" "$WEIR" steps -q -o inner.weir -- ./exact
equal "weir in weir: the inner one has all steps" "$("$WEIR" steps -q -o one.weir -- ./exact >/dev/null; "$WEIR" report steps one.weir --limit 100000 | grep -c ' 0x')" \
	"$("$WEIR" report steps inner.weir --limit 100000 | grep -c ' 0x')"
if command -v strace >/dev/null; then
	same "strace" strace -o s.txt ./exact
	check "strace: it has seen the program" grep -q execve s.txt
	same "strace -f" strace -f -o s.txt sh -c './exact; ./exact'
else
	skip "strace: it is not there"
fi
if command -v gdb >/dev/null; then
	same "gdb" sh -c 'gdb -nx -batch -ex run --args ./exact 2>&1 | sed "s/process [0-9]*/process/"'
else
	skip "gdb: it is not there"
fi
STEPS_TRACERS=$$ "$WEIR" steps -q -o x.weir --around no_such_function -- sleep 5 &
sleeper=$!
sleep 0.3
check "what is there would be found" test -n "$(left)"
kill -TERM $sleeper
{ wait $sleeper; } 2>/dev/null
equal "nothing is left behind" "" "$(left)"
true
