# SPDX-License-Identifier: MIT
# weir-test: root: stacks of programs under probes
# Stacks of programs without frame pointers are whole: in records and as keys, in threads, handlers, children, programs
# begun by others and ended ones, in both modes. What they must be is known from the program, and from gdb.
. "$ROOT/tests/lib.sh"
ways=$ROOT/tests/fixtures/probe/stack_ways.c
flags="-O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -pthread -Wno-unused-result"
gcc $flags -o ways64 $ways || { not_ok "the program compiles" && finish; }
gcc $flags -no-pie -o fixed64 $ways
gcc $flags -no-pie -DFIXED_TOO -O1 -o other64 $ways
modes=64
if gcc -m32 $flags -o ways32 $ways 2>gcc.txt; then
	modes="64 32"
	gcc -m32 $flags -no-pie -o fixed32 $ways
	gcc -m32 $flags -no-pie -O1 -o other32 $ways
else
	skip "32-bit stacks: gcc -m32 does not work here"
fi

# probe NAME ARGUMENTS...: NAME.txt, NAME.err, $rc
probe() {
	local name=$1
	shift
	timeout 120 "$WEIR" probe -q -O "$name.txt" "$@" 2>"$name.err"
	rc=$?
}
# own FILE: of each stack the program's functions in a line, innermost first, and its last line when it is in brackets
own() {
	awk 'function flush() { if (line != "") print line; line = "" }
	/^$/ { flush(); next }
	/^ *\[[^]]*\]$/ { sub(/^ */, ""); line = line " " $0; next }
	{ name = $1; sub(/[+@].*/, "", name)
	  if (name ~ /^(marked|lower|upper|compare|on_signal|raiser|body|deep|wide|spin|main|stepped|stepping)$/) {
		if (name == last && (name == "deep" || name == "wide")) { n++; sub(/( x[0-9]+)?$/, " x" n, line) }
		else { n = 1; line = line (line == "" ? "" : " ") name } last = name } else last = "" }
	END { flush() }' "$1"
}
# keys FILE PROGRAM: awk over the entries of a file: map, n (count), text (frames), last (the last frame's line)
keys() {
	awk 'function at(frame) { text = text frame "\n"; last = frame }
	/^@/ { map = $0; sub(/\[.*/, "", map); text = last = ""; next }
	/^    / { at($0); next }
	/]: [0-9]+$/ { n = $NF; entry() }
	'"$2" "$1"
}
# In each map: the sum of the counts, and whether one key has nine of ten.
counted_keys() {
	keys "$1" 'function entry() { sum[map] += n; if (n > most[map]) most[map] = n }
	END { for (m in sum) print m, sum[m], (most[m] >= 0.9 * sum[m] ? "whole" : "in parts of up to " most[m]) }' |
		sort | paste -sd, | sed 's/,/, /g'
}
largest_keys() {
	keys "$1" 'function entry() { if (n > most[map]) { most[map] = n; stack[map] = text } }
	END { print stack["@"] "\n" stack["@s"] }'
}
no_silent_key() {
	keys "$1" 'function entry() { if (n < 30000 && last !~ /^ *\[.*\]$/) silent++ } END { exit silent > 0 }'
}
stacks='config = { show_debug_info = 0 } uprobe:./ways:marked { print(ustack); }'

for m in $modes; do
	script=${stacks/ways:/ways$m:}

	probe plain "$script" -c "./ways$m plain 1"
	equal "a stack without frame pointers is whole, $m bit" "marked lower upper main" "$(own plain.txt)"
	equal "it reaches the program's beginning, $m bit" _start "$(grep -v '^$' plain.txt | tail -n 1 | sed 's/ *//; s/+.*//')"

	probe thread "$script" -c "./ways$m thread"
	equal "the stack of a thread is whole, $m bit" "marked lower upper body" "$(own thread.txt)"

	probe fork "$script" -c "./ways$m fork"
	equal "the stack of a forked child, which has ended, is whole, $m bit" "marked lower upper main" "$(own fork.txt)"

	# Nothing but the length is asked. What weir has not learnt to walk yet is told as such, and is no number.
	probe length "uprobe:./ways$m:marked { @[len(ustack(3))] = count(); \$x = ustack; @all[len(\$x)] = count(); }" \
		-c "./ways$m plain 20000"
	equal "the length of a stack is that of its frames or a loss that says so, $m bit" "@[3] one 20000" \
		"$(grep -o '^@\[[0-9]*\]' length.txt) $(grep -c '^@all' length.txt | sed 's/^1$/one/') $(($(
			sed -n 's/^@all.*: //p' length.txt) + $(grep -o '[0-9]* stacks\? that w[a-z]* not walked yet' length.err |
			sed 's/ .*//')))"
	equal "it is no division by zero, $m bit" "" "$(grep 'by zero' length.err)"

	# In loops of every kind, also in each other and in functions of the script.
	probe loops "config = { show_debug_info = 0 } fn seen(\$n : int64) : int64 { for (\$i : 0..\$n) { @f[ustack(2)] = count(); } return \$n; }
		uprobe:./ways$m:marked { @m[1] = 1; \$i = 0;
			for (\$j : 0..3) { @a[ustack(2), \$j] = count(); for (\$k : 0..200) { @b[ustack(2)] = count(); } }
			while (\$i < (arg0 & 0) + 7) { \$i++; @c[ustack(2), kstack] = count(); @d[ustack(fp, 1)] = count(); }
			for (\$kv : @m) { @e[ustack(2)] = count(); } \$n = seen(5); print(ustack(2)); exit(); }" -c "./ways$m plain 1"
	equal "stacks in loops are those behind them, $m bit" "0 marked lower" "$rc $(own loops.txt | head -n 1)"
	equal "and each turn of a loop has counted, $m bit" "@a 1 @a 1 @a 1 @b 600 @c 7 @d 7 @e 1 @f 5" \
		"$(echo $(awk '/^@/ { map = $0; sub(/\[.*/, "", map) } /]: [0-9]+$/ && map != "@m" { print map, $NF }' loops.txt | sort))"

	if unshare --fork --pid --mount-proc true 2>/dev/null; then
		timeout 120 unshare --fork --pid --mount-proc sh -c "(sleep 1; ./ways$m plain 1) &
			exec '$WEIR' probe -q -d 3 '$script'" >inner.txt 2>inner.err
		equal "a stack has its names in a pid namespace, $m bit" "marked lower upper main" "$(own inner.txt)"
	else
		skip "stacks in a pid namespace: none can be made here"
	fi

	probe deep "$script" -c "./ways$m deep 100"
	equal "the stack of a recursion is whole, $m bit" "marked lower upper deep x101 main" "$(own deep.txt)"
	probe deeper "$script" -c "./ways$m deep 1000"
	equal "a stack of more frames than there may be says so, $m bit" \
		"marked lower upper deep x124 [more frames than the limit]" "$(own deeper.txt)"
	probe wide "$script" -c "./ways$m wide 100"
	equal "a stack that is longer than the copy is whole once it is known, and else says that it is not, $m bit" \
		"marked lower upper wide x101 main" "$(own wide.txt | tail -n 1)"
	equal "the first one says where it ends, $m bit" "[stack deeper than the copy]" "$(own wide.txt | head -n 1 | grep -o '\[.*')"

	probe keys "config = { show_debug_info = 0 } uprobe:./ways$m:marked { @[ustack] = count(); @s[ustack(2), bits] = sum(1); }" \
		-c "./ways$m spin"
	# A machine that is busy may let some calls pass before the first copy is walked: their keys say why they are short.
	equal "a stack is one key, however often it comes, and no call is lost, $m bit" "@ 300000 whole, @s 300000 whole" \
		"$(counted_keys keys.txt)"
	check "a key that is no whole stack says why, $m bit" no_silent_key keys.txt
	equal "it is the whole stack, $m bit" "marked lower upper spin main marked lower" \
		"$(largest_keys keys.txt >most.txt; own most.txt | tr '\n' ' ' | sed 's/ $//; s/  */ /g')"

	probe exec "config = { show_debug_info = 0 } uprobe:./fixed$m:marked, uprobe:./other$m:marked { print(ustack); }" \
		-c "./fixed$m exec ./other$m plain"
	equal "stacks of a process before and after it begins another program, $m bit" \
		"4 marked lower upper main" "$(own exec.txt | sort | uniq -c | sed 's/ *//')"

	probe returns "config = { show_debug_info = 0 } uretprobe:./ways$m:lower { @r[ustack] = count(); } uretprobe:./ways$m:main, uretprobe:./ways$m:upper { } uprobe:./ways$m:marked { @e[ustack] = count(); }" \
		-c "./ways$m plain 50"
	equal "return probes do not hide their functions, $m bit" "marked lower upper main 50
upper main 50" "$(own <(sed 's/^]: \(.*\)/\n[\1]/' returns.txt | sed 's/^\[\(.*\)\]/\1/' | awk '/^[0-9]+$/ { next } { print }') | sed 's/$/ 50/' | sort)"

	# By way of a page in which copies of probed instructions are executed.
	probe slots "config = { show_debug_info = 0 } uprobe:./ways$m:stepped { @hits = count(); } profile:hz:997 { @[ustack(1)] = count(); }" \
		-c "./ways$m stepping"
	check "samples in the page of copied instructions are those of the instruction, $m bit" \
		awk '/^    / { name = $1 } /^\]: / { if (name ~ /^0x/) bad += $2; if (name ~ /^stepped\+[0-9]+$/) good += $2 } END { exit !(good > 100 && bad * 20 < good) }' slots.txt
done

# Handlers: the frame that the kernel makes, on the same stack and on another one.
for m in 64; do
	probe signal "${stacks/ways:/ways$m:}" -c "./ways$m signal"
	equal "the stack of a signal handler goes on to what was interrupted, $m bit" \
		"3 marked lower upper on_signal raiser main" "$(own signal.txt | sort | uniq -c | sed 's/ *//')"
	probe altstack "${stacks/ways:/ways$m:}" -c "./ways$m altstack"
	equal "also on another stack, once that is known; before it says so, $m bit" \
		"marked lower upper on_signal raiser main" "$(own altstack.txt | tail -n 1)"
done

# gdb walks the same stack: all addresses but that of the innermost frame, where it stands. What was inlined has the
# address of the frame around it there; of calls that were jumps it makes frames up, so that there is none here.
if gdb --version >gdb.txt 2>&1; then
	for m in $modes; do
		for way in plain "deep 20"; do
			gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set backtrace past-main on' -ex 'set backtrace past-entry on' \
				-ex 'break *marked' -ex run -ex 'bt' --args ./ways$m $way >gdb.txt 2>&1
			probe raw "uprobe:./ways$m:marked { print(ustack(raw)); exit(); }" -c "setarch -R ./ways$m $way"
			equal "the addresses are those of gdb, $way, $m bit" \
				"$(sed -n 's/^#[1-9][0-9]* *0x0*\([0-9a-f]*\) in.*/\1/p' gdb.txt | uniq)" "$(grep -v '^$' raw.txt | tail -n +2 | uniq)"
		done
	done
else
	skip "the addresses are those of gdb: it is not installed"
fi

# --- code without names ---------------------------------------------------------------------------------------
printf '#include <stdio.h>\nint main(void) { puts("text"); return 0; }\n' | gcc -O1 -s -x c -o nameless - || not_ok "the program compiles"
probe nameless 'uprobe:libc:puts { print(ustack(perf, 2)); }' -c ./nameless
check "the file of a frame without a name is said" grep -q '^ *[0-9a-f]* \[unknown\] (/.*/nameless)$' nameless.txt

# --- forms ------------------------------------------------------------------------------------------------------
probe forms "uprobe:./ways64:marked { print(ustack(perf, 2)); print(ustack(raw, 2)); print(ustack(build_id, 2)); print(ustack(2)); exit(); }" -c "./ways64 plain"
id=$(readelf -n ways64 | sed -n 's/.*Build ID: //p')
line() { addr2line -e ways64 "$1" | sed 's/ .*//'; }
marked=$(nm ways64 | sed -n 's/^0*\([0-9a-f]*\) . marked$/\1/p')
equal "forms of stacks" "A marked+0 ($PWD/ways64)
A lower+N ($PWD/ways64)
A
A
$id 0x$marked
$id 0xN
marked+0@$(line 0x$marked)
lower+N@$ways:N" "$(grep -v '^$' forms.txt | sed -E 's/^ *//; s/^[0-9a-f]{12}( |$)/A\1/; s/\+[1-9][0-9]*/+N/; s/^('$id' 0x)([0-9a-f]+)$/\1\2/' |
	awk '/^'$id'/ && ++n == 2 { sub(/0x.*/, "0xN") } /^lower.*@/ { sub(/:[0-9]+$/, ":N") } { print }')"
probe setting "config = { stack_mode = raw } uprobe:./ways64:marked { @[ustack(1)] = count(); exit(); }" -c "./ways64 plain"
check "the setting stack_mode" grep -Eq '^[0-9a-f]{12}$' setting.txt
cat >inlined.c <<'C'
int sink;
__attribute__((noinline)) void hit(int n) { sink += n; __asm__ volatile(""); }
static inline __attribute__((always_inline)) void inner(int n) { hit(n); }
static inline __attribute__((always_inline)) void middle(int n) { inner(n + 1); }
__attribute__((noinline)) void outer(int n) { middle(n); sink++; }
int main(void) { outer(1); return 0; }
C
gcc -O2 -g -o inlined inlined.c
probe inlined 'uprobe:./inlined:hit { print(ustack(2)); print(ustack(perf, 2)); }' -c ./inlined
equal "places in the source, and what was inlined" "hit+0@$PWD/inlined.c:2
[inlined] inner@$PWD/inlined.c:3
[inlined] middle@$PWD/inlined.c:4
outer+N@$PWD/inlined.c:5
A hit+0 ($PWD/inlined)
A inner (inlined)
A middle (inlined)
A outer+N ($PWD/inlined)" "$(grep -v '^$' inlined.txt | sed -E 's/^ *//; s/^[0-9a-f]{12}/A/; s/\+[1-9][0-9]*/+N/')"
timeout 120 "$WEIR" probe -O begin.txt 'begin { print(ustack); print(kstack); printf("done\n"); }' 2>begin.err
rc=$?
equal "stacks are empty in begin, with a warning" "done 2 0" "$(grep -v '^$' begin.txt) $(grep -c 'warning: [uk]stack is empty at begin' begin.err) $rc"
finish
