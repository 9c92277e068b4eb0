# SPDX-License-Identifier: MIT
# The engine `branch`: refused with a reason where the processor does not stop at branches alone; and what it
# makes of such stops is what single steps say, address by address. The stops are made of single steps here
# (WEIR_STEPS_EMULATE_BLOCKS), since few machines have the real ones.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"
small exact exact.S
if "$WEIR" steps -q --engine branch -o real.weir -- ./exact >/dev/null 2>real.txt; then
	steps single.weir -- ./exact >/dev/null
	"$WEIR" export steps single.weir | cut -f 2- | grep -v '\[vdso\]' >single.txt
	"$WEIR" export steps real.weir | cut -f 2- | grep -v '\[vdso\]' >real.txt
	check "branch: the same steps as by single steps" cmp single.txt real.txt
else
	check "branch: it says in a sentence why not" grep -q "weir: engine 'branch' does not work here: PTRACE_SINGLEBLOCK" real.txt
	equal "branch: in one sentence" 1 "$(wc -l <real.txt)"
fi

# exported TRACE: its lines, those of the command first, also where the numbers of processes began anew behind it
exported() {
	"$WEIR" export steps "$1" | awk -F'\t' '{ line[NR] = $0 } !first && $4 ~ /^executes / { first = NR }
		END { for (i = 0; i < NR; i++) print line[(first - 1 + i) % NR + 1] }'
}
export WEIR_STEPS_EMULATE_BLOCKS=1
for program in exact.S strings.c flags.c made_code.c "signals.c sent" "signals.c faults" exceptions.cc; do
	read -r source argument <<<"$program"
	if [ "$source" = exceptions.cc ]; then build it $source -O1 -g -static; else small it $source; fi
	options=()
	[ "$source" != exceptions.cc ] || options=(--from main --max 60000)
	for engine in ptrace branch; do
		timeout 100 setarch -R "$WEIR" steps -q --engine $engine "${options[@]}" -o $engine.weir -- ./it $argument >$engine.out 2>&1
		echo "status $?" >>$engine.out
		# Process numbers differ from run to run, and so do the results of calls.
		exported $engine.weir | awk -F'\t' '$3 ~ /^0x/' | cut -f 2- >$engine.txt
	done
	check "$program: the same output and status by both engines" cmp ptrace.out branch.out
	check "$program: there are steps" [ "$(wc -l <ptrace.txt)" -gt 20 ]
	check "$program: the same steps by both engines" cmp ptrace.txt branch.txt
done

# Calls that are made again, and calls that do not return: what both record, beside the steps, is what
# strace shows. Numbers of processes are left out.
calls() { exported $1 | awk -F'\t' '$3 !~ /^0x/' | cut -f 2- | grep -v 'code added' |
	sed -E 's/[0-9]+_[0-9]+/PID/; s/(fork|getpid|wait4) = [0-9]+$/\1 = PID/'; }
small signals signals.c && small guarded guarded.c && small waits_again waits_again.c
for program in "signals restarted" waits_again "guarded killed" "guarded strict_killed" "guarded errno" "guarded trap"; do
	for engine in ptrace branch; do
		{ timeout 100 setarch -R "$WEIR" steps -q --engine $engine -o $engine.weir -- ./$program >$engine.out 2>&1; } 2>/dev/null
		echo "status $?" >>$engine.out
		exported $engine.weir | awk -F'\t' '$3 ~ /^0x/' | cut -f 2- >$engine.txt
		calls $engine.weir >$engine.calls
	done
	check "$program: the same output and status by both engines" cmp ptrace.out branch.out
	check "$program: the same steps by both engines" cmp ptrace.txt branch.txt
	check "$program: the same calls and signals by both engines" cmp ptrace.calls branch.calls
	case $program in
	"signals restarted")
		equal "an interrupted read is made again, or not" "read = -512 ERESTARTSYS
read = -512 ERESTARTSYS
read = 1" "$(grep -o 'read = .*' ptrace.calls)"
		;;
	waits_again)
		if command -v strace >/dev/null; then
			setarch -R strace -f -o strace.txt ./waits_again >/dev/null
			equal "a wait that is interrupted goes on as strace says" \
				"$(awk '{ print $1 }' strace.txt | head -1 >first.txt
				grep "^$(cat first.txt) " strace.txt | grep -oE '(nanosleep|restart_syscall)[ (].*= .*' | grep -oE '^[a-z_]+|= .*' | sed -E 's/= \? (ERESTART[A-Z_]*).*/= \1/' | paste -d ' ' - -)" \
				"$(grep -n '' ptrace.calls | sed -n '/fork/,/wait4/p' | grep -oE '(nanosleep|restart_syscall) = .*' | sed -E 's/= -[0-9]+ /= /')"
		else
			skip "a wait that is interrupted goes on as strace says: strace is not installed"
		fi
		;;
	"guarded killed") equal "a call that a filter kills has no result" "uname does not return
killed by SIGSYS" "$(tail -n 2 ptrace.calls | cut -f 3)" ;;
	"guarded strict_killed") equal "nor has one in strict mode" "getpid does not return
killed by SIGKILL" "$(tail -n 2 ptrace.calls | cut -f 3)" ;;
	esac
done
check "branch: --data is refused with a sentence" eval \
	'! "$WEIR" steps -q --engine branch --data -- ./it 2>data.txt && grep -q -- "--data needs" data.txt'
