# SPDX-License-Identifier: MIT
# weir steps is killed at any moment, or its target: the program goes on and ends right, the trace is
# readable up to there.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"
sum=sum_$$ # a name of its own
small $sum sum.c || exit 1
rounds=4000 # two threads: a few seconds of stepping

expected=$(./$sum $rounds)

alive() { pgrep -x "$sum" >/dev/null; }
# The program goes on without its tracer, and is gone soon.
wait_for_end() {
	local i
	for ((i = 0; i < 1000; i++)); do
		alive || return 0
		sleep 0.01
	done
	return 1
}
# waited PID: its status in $rc; one that does not end is shown, and ended.
waited() {
	local i
	for ((i = 0; i < 1500; i++)); do
		kill -0 $1 2>/dev/null || break
		sleep 0.02
	done
	if kill -0 $1 2>/dev/null; then
		not_ok "weir ends within 30 s"
		ps -eo pid,ppid,stat,wchan:20,args | grep -E "$sum|weir steps"
		grep -HE 'State|TracerPid|SigPnd|ShdPnd' /proc/$(pgrep -x $sum)/task/*/status
		pkill -9 -x $sum
		kill -9 $1
	fi
	{ wait $1; } 2>/dev/null
	rc=$?
}
# readable: a listing, and no step is missing but at its end
readable() { # SENTENCE TRACE
	"$WEIR" report steps "$2" --limit 20 >report.txt 2>report.err
	local rc=$?
	if [ $rc -eq 0 ] || [ $rc -eq 3 ]; then ok "$1: the trace is readable"; else
		not_ok "$1: the trace is readable (status $rc)"
		head -n 3 report.err
	fi
	SENTENCE=$1 judge ./$sum "$2" <<'PY'
bad = broken(t, program) + foreign(t, {os.path.realpath(program)})
check(f"{os.environ['SENTENCE']}: what it has is whole ({t.n_steps()} steps)", t.n_steps() and not bad, *bad[:5])
PY
}

n=0
for delay in 0.30 0.47 0.71 0.93; do
	n=$((n + 1))
	# Not through a shell function: the process that is killed must be weir itself.
	setarch -R "$WEIR" steps -q "${engine_option[@]}" -o k$n.weir -- ./$sum $rounds >out.txt 2>err.txt &
	w=$!
	sleep $delay
	kill -9 $w
	{ wait $w; } 2>/dev/null
	check "weir is killed after $delay s: the program ends" wait_for_end
	equal "weir is killed after $delay s: and prints what it should" "$expected" "$(cat out.txt)"
	readable "weir is killed after $delay s" k$n.weir
done
# Those that are sent to weir end the recording, and are passed on.
for sig in TERM HUP; do
	setarch -R "$WEIR" steps -q "${engine_option[@]}" -o k.weir -- ./$sum $rounds >out.txt 2>err.txt &
	w=$!
	sleep 0.5
	kill -$sig $w
	waited $w
	equal "weir gets SIG$sig: the program dies of it, and so does weir" $((128 + $(kill -l $sig))) $rc
	check "weir gets SIG$sig: the program is gone" wait_for_end
	readable "weir gets SIG$sig" k.weir
done
# A background job of a shell ignores this one, and runs on to its end.
setarch -R "$WEIR" steps -q "${engine_option[@]}" -o k.weir -- ./$sum $rounds >out.txt 2>err.txt &
w=$!
sleep 0.5
kill -INT $w
waited $w
equal "weir gets SIGINT, which the program ignores: the program ends as always" 5 $rc
equal "weir gets SIGINT, which the program ignores: and prints what it should" "$expected" "$(cat out.txt)"
readable "weir gets SIGINT" k.weir
for delay in 0.33 0.62; do
	setarch -R "$WEIR" steps -q "${engine_option[@]}" -o k.weir -- ./$sum $rounds >out.txt 2>err.txt &
	w=$!
	sleep $delay
	pkill -9 -x $sum
	waited $w
	equal "the program is killed after $delay s: so weir ends" 137 $rc
	readable "the program is killed after $delay s" k.weir
done
