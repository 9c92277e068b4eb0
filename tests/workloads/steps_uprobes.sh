# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Another observer has uprobes on the code that is stepped: the program, its steps and their listing are as
# without; whether the uprobes are there before, come and go meanwhile, or the program ran already.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"
export WEIR_STEPS_EMULATE_BLOCKS=1

small probed probed.c || exit 1

# observe KIND PROGRAM: its functions f_*, until `ignore`.
observe() {
	local i
	: >observer.txt
	timeout 100 "$WEIR" probe "$1:$PWD/$2:f_* { @[func] = count(); }" >observer.txt 2>&1 &
	observer=$!
	for ((i = 0; i < 500; i++)); do
		grep -q Attached observer.txt && return 0
		kill -0 $observer 2>/dev/null || break
		sleep 0.02
	done
	return 1
}
ignore() {
	kill -INT $observer
	wait $observer
}
# listing TRACE: addresses and instructions.
listing() { "$WEIR" report steps "$1" --limit 1000000 | sed -n 's/^ *[0-9]*  *\(0x[0-9a-f]*  .*\)/\1/p'; }

if ! observe uprobe probed; then
	skip "uprobes of others: there are none here: $(tail -n 1 observer.txt)"
	finish
fi
ignore

# both PROGRAM ENGINES...: with uprobes and uretprobes that are there before the program.
both() {
	local program=$1 plain kind
	shift
	plain=$(./"$program" 3)
	for engine in "$@"; do
		setarch -R "$WEIR" steps -q --engine "$engine" -o "$program.$engine" -- ./"$program" 3 >/dev/null
		listing "$program.$engine" >"$program.$engine.txt"
	done
	for kind in uprobe uretprobe; do
		observe $kind "$program" || not_ok "$kind, $program: the observer is there"
		for engine in "$@"; do
			local name="$kind, $program, $engine"
			equal "$name: the output" "$plain" "$(timeout 60 setarch -R "$WEIR" steps -q --engine "$engine" -o u.weir -- ./"$program" 3; echo $? >status.txt)"
			equal "$name: the status" 7 "$(cat status.txt)"
			listing u.weir >u.txt
			check "$name: some hundred steps ($(wc -l <u.txt))" test "$(wc -l <u.txt)" -gt 500
			equal "$name: the same listing as without" "$(cat "$program.$engine.txt")" "$(cat u.txt)"
			equal "$name: no int3" 0 "$(grep -c int3 u.txt)"
			equal "$name: no page of the kernel's" 0 "$("$WEIR" report steps u.weir --limit 1000000 | grep -c uprobes)"
		done
		ignore
		equal "$kind, $program: the observer has seen each call" $((3 * $#)) "$(awk '$1 == "@[f_sub]:" { print $2 }' observer.txt)"
	done
}
both probed ptrace branch
if small probed32 probed.c -m32 >/dev/null; then
	both probed32 ptrace branch
else
	skip "32-bit programs: gcc -m32 does not work here"
fi

# They come and go while the program is stepped.
count() { "$WEIR" export steps "$1" -o - 2>/dev/null | wc -l; }
for engine in ptrace; do
	setarch -R "$WEIR" steps -q --engine $engine -o plain.weir -- ./probed 120 >plain.txt
	setarch -R "$WEIR" steps -q --engine $engine -o u.weir -- ./probed 120 >out.txt &
	weir=$!
	n=0
	while kill -0 $weir 2>/dev/null && [ $n -lt 20 ]; do
		observe u$( ((n % 2)) && echo ret)probe probed && n=$((n + 1))
		ignore
	done
	wait $weir
	equal "coming and going, $engine: the status" 7 $?
	equal "coming and going, $engine: the output" "$(cat plain.txt)" "$(cat out.txt)"
	check "coming and going, $engine: $n times" test $n -gt 0
	listing plain.weir >plain.list
	listing u.weir >u.list
	check "coming and going, $engine: the same steps" cmp -s plain.list u.list
	diff plain.list u.list | head -n 20
done

# A program that runs, with uprobes on it: it is stepped for a while, and let go.
for engine in ptrace; do
	./probed 2000000000 >out.txt &
	program=$!
	runs $program
	observe uprobe probed
	for ((i = 0; i < 6; i++)); do
		timeout 20 "$WEIR" steps -q --engine $engine -o a.weir -p $program --max $((200 + 37 * i)) || not_ok "attached, $engine: the recording"
		listing a.weir >a.txt
		grep -q int3 a.txt && not_ok "attached, $engine: no int3"
		[ "$(wc -l <a.txt)" -eq $((200 + 37 * i)) ] || not_ok "attached, $engine: as many steps as were asked for"
	done
	check "attached, $engine: the program lives on" kill -0 $program
	ignore
	kill -KILL $program
	{ wait $program; } 2>/dev/null
done

# The program's own traps are its own.
small signals signals.c || exit 1
cp signals probed_signals
timeout 60 "$WEIR" probe "uprobe:$PWD/probed_signals:* { @ = count(); }" >observer.txt 2>&1 &
observer=$!
for ((i = 0; i < 500; i++)); do grep -q Attached observer.txt && break || sleep 0.02; done
for engine in ptrace; do
	stepper=(timeout 120 setarch -R "$WEIR" steps -q --engine "$engine")
	for mode in sent traps faults nested; do same "the program's own signals under uprobes, $mode, $engine" ./probed_signals $mode; done
done
ignore
true
