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
		"$WEIR" export steps $engine.weir | awk -F'\t' '$3 ~ /^0x/' | cut -f 2- >$engine.txt
	done
	check "$program: the same output and status by both engines" cmp ptrace.out branch.out
	check "$program: there are steps" [ "$(wc -l <ptrace.txt)" -gt 20 ]
	check "$program: the same steps by both engines" cmp ptrace.txt branch.txt
done
check "branch: --data is refused with a sentence" eval \
	'! "$WEIR" steps -q --engine branch --data -- ./it 2>data.txt && grep -q -- "--data needs" data.txt'
