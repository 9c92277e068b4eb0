# SPDX-License-Identifier: MIT
# The engine `translate`: the same output, status, steps and marks as by single steps, address by address; and what
# it does not do is done by another one, or told.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"
"$WEIR" steps -q --engine translate -o there.weir -- true 2>there.txt ||
	{ skip "the engine translate: $(head -n 1 there.txt)" && finish; }

# Programs that use restartable sequences where there are some go other ways where there are none.
export GLIBC_TUNABLES=glibc.pthread.rseq=0
# Numbers of processes and what stands for them are left out; the lines of the command first.
exported() {
	"$WEIR" export steps "$1" | awk -F'\t' '{ line[NR] = $0 } !first && $4 ~ /^executes / { first = NR }
		END { for (i = 0; i < NR; i++) print line[(first - 1 + i) % NR + 1] }' | cut -f 2- |
		sed -E 's/[0-9]+_[0-9]+$/PID/; s/(fork|clone3?|getpid|gettid|getppid|set_tid_address|wait4|waitid) = [0-9]+$/\1 = PID/'
}
# alike SENTENCE ARGUMENTS OF STEPS...: by both engines.
alike() {
	local sentence=$1 by
	shift
	for by in ptrace translate; do
		{ timeout 100 setarch -R "$WEIR" steps -q --engine $by -o $by.weir "$@" >$by.out 2>&1 </dev/null; } 2>/dev/null
		echo "status $?" >>$by.out
		exported $by.weir >$by.txt
	done
	check "$sentence: the same output and status by both engines" cmp ptrace.out translate.out
	check "$sentence: there are steps" [ "$(wc -l <ptrace.txt)" -gt 20 ]
	check "$sentence: the same steps and marks by both engines" cmp ptrace.txt translate.txt
}

for program in exact.S ways.S strings.c made_code.c signals.c waits_again.c guarded.c; do small "${program%.*}" $program || exit 1; done
alike "exact" -- ./exact
alike "rows of blocks that are left in all kinds of ways" -- ./ways
alike "repeated string instructions, with faults in their midst" -- ./strings
for mode in in_place ahead two_views in_turn moved patched; do alike "made code, $mode" -- ./made_code $mode; done
for mode in sent faults restarted; do alike "signals, $mode" -- ./signals $mode; done
alike "a wait that is begun again" -- ./waits_again
for mode in killed strict strict_killed errno trap; do alike "seccomp, $mode" -- ./guarded $mode; done
build exceptions exceptions.cc -O1 -g -static
alike "exceptions" --max 60000 -- ./exceptions
alike "--max 30" --max 30 -- ./exact
alike "--user-code" --user-code 'libc.so*' --max 3000 -- true
alike "--threads" --threads exact -- ./exact

python3 "$ROOT/tests/format/read_steps.py" translate.weir >second.txt
"$BUILD/tests/oracle/steps_dump" dump translate.weir >first.txt
check "the second reader has the same steps" cmp first.txt second.txt
check "they are told as blocks" eval '"$BUILD/tests/oracle/steps_dump" dump translate.weir | grep -q "^104 \|^103 "'

# --- a large one --------------------------------------------------------------------------------
"$WEIR" steps --engine translate -o large.weir -- sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; ls / | sort' >large.out 2>large.txt
equal "a shell with a pipe: the status" 0 $?
check "its output" cmp large.out <(find / -mindepth 1 -maxdepth 1 ! -name '.*' -printf '%f\n' | sort)
read -r n bytes < <(sed -nE 's/.*: ([0-9]+) steps in .* by translate, ([0-9]+) bytes.*/\1 \2/p' large.txt)
check "some million steps take less than a tenth of a byte each (${n:-no} steps, ${bytes:-no} bytes)" \
	[ "${n:-0}" -gt 5000000 -a "${bytes:-0}" -lt $((${n:-0} / 10)) ]

# --- what it does not do ------------------------------------------------------------------------
small flags flags.c
"$WEIR" steps --engine translate -o leaves.weir -- ./flags >leaves.out 2>leaves.txt
equal "a system call of the i386 table: the status is the program's" 0 $?
check "steps are missing, it is said" grep -q "steps lost" leaves.txt
check "and why" grep -q "not traced from here on: it has an instruction that the translator does not know" leaves.txt
check "the program ends as always" cmp leaves.out <(./flags)
check "the trace says where" eval '"$WEIR" export steps leaves.weir | grep -q "untraced"'
if small exact32 exact.S -m32 2>/dev/null; then
	"$WEIR" steps -o small.weir -- ./exact32 2>small.txt
	check "32-bit programs are traced by another engine" grep -q "engine 'translate' does not do 32-bit programs.*'ptrace' is used instead" small.txt
	check "in whole" grep -q "104 steps.*by ptrace" small.txt
	"$WEIR" steps -o execs.weir -- sh -c 'exec ./exact32' 2>execs.txt
	check "one that is come to by exec: steps are missing, it is said" grep -q "steps lost" execs.txt
	check "and why, and how it is traced" grep -q "is not traced: it is a 32-bit program (--engine ptrace traces it)" execs.txt
else
	skip "32-bit programs: gcc -m32 does not work here"
fi
for option in "--around main" "--from main" "--to main" "--every 100" --data --no-follow; do
	# shellcheck disable=SC2086
	"$WEIR" steps -q --engine translate $option -- ./exact >refused.out 2>refused.txt
	check "$option is refused in a sentence" grep -q "^weir: engine 'translate' does not do ${option%% *}$" refused.txt
done

# --- uprobes of others --------------------------------------------------------------------------
small probed probed.c
timeout 60 "$WEIR" probe "uprobe:$PWD/probed:f_* { @[func] = count(); }" >observer.txt 2>&1 &
observer=$!
for ((i = 0; i < 500; i++)); do
	grep -q Attached observer.txt || ! kill -0 $observer 2>/dev/null && break
	sleep 0.02
done
if grep -q Attached observer.txt; then
	alike "uprobes of another observer" -- ./probed 3
	equal "no int3 of theirs" 0 "$("$WEIR" report steps translate.weir --limit 100000 | grep -c int3)"
else
	skip "uprobes of others: there are none here: $(tail -n 1 observer.txt)"
fi
kill -INT $observer 2>/dev/null
wait $observer

# --- a process that runs ------------------------------------------------------------------------
small loop loop.c
./loop rounds >loop.txt &
loop=$!
runs $loop
"$WEIR" steps -q --engine translate -o attached.weir -p $loop --max 5000
equal "attached: weir ends" 0 $?
judge ./loop attached.weir <<'PY'
equal("attached: --max 5000 are 5000 steps", 5000, t.n_steps())
bad = broken(t, program)
check("attached: no step is missing", not bad, *bad[:5])
PY
equal "attached: nobody traces it any more" 0 "$(awk '/^TracerPid/ { print $2 }' /proc/$loop/status)"
kill -TERM $loop
wait $loop
equal "attached: it ends as it should" 0 $?
finish
