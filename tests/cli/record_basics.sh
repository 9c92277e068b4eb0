# SPDX-License-Identifier: MIT
# The command line of recording: output, exit status, signals, attach, duration, files.
# weir-test: alone: samples have to be as many as the time says
. "$ROOT/tests/lib.sh"
export split=split_$$ # a name of its own, for pkill
gcc -O2 -o $split "$ROOT/tests/workloads/split.c" -lpthread || exit 1

out=$("$WEIR" -- ./$split status 0 2>err.txt) rc=$?
equal "weir -- CMD returns the command's status" 0 $rc
"$WEIR" -- ./$split recursion >out.txt 2>err.txt
equal "standard output belongs to the command alone" "done recursion" "$(cat out.txt)"
check "the summary is on standard error and names the hottest function" grep -q spin_recursive err.txt
check "the trace is trace.weir" test -s trace.weir
for n in 1 3 42 255; do
	"$WEIR" record -q -- ./$split status $n >/dev/null
	equal "exit status $n is passed on" $n $?
done
for s in 6 9 15; do
	bash -c '"$WEIR" record -q -- ./$split signal '$s'; exit $?' 2>/dev/null
	equal "death by signal $s is passed on" $((128 + s)) $?
done
python3 - <<'PY'
import os, subprocess
r = subprocess.run([os.environ["WEIR"], "record", "-q", "--", "./" + os.environ["split"], "signal", "15"])
print("ok" if r.returncode == -15 else "not ok", "weir itself dies of the command's signal")
PY
echo hello | "$WEIR" record -q -- cat >out.txt
equal "standard input reaches the command" hello "$(cat out.txt)"
"$WEIR" record -q -- sh -c 'echo $FOO; umask; ulimit -n; ls /proc/self/fd | wc -l' >a.txt
sh -c 'echo $FOO; umask; ulimit -n; ls /proc/self/fd | wc -l' >b.txt
equal "environment, limits and descriptors are the command's own" "$(cat b.txt)" "$(cat a.txt)"

rm -f trace.weir*
"$WEIR" record -q -- true && "$WEIR" record -q -- true
check "an older trace is kept as trace.weir.old" test -s trace.weir.old -a -s trace.weir
"$WEIR" record -q -o other.weir -- true
check "-o names the file" test -s other.weir

./$split forever &
pid=$!
sleep 0.2
"$WEIR" record -q -p $pid --duration 0.7 -o attach.weir
equal "attaching for a while exits 0" 0 $?
check "the process still runs" kill -0 $pid
"$WEIR" report flat attach.weir --json >flat.json
check "its samples are there and named" test "$(json flat.json "[r['samples']>100 for r in j['rows'] if r['name']=='seventy'] == [True]")" = True
("$WEIR" record -q -p $pid -o end.weir; echo $? >rc.txt) &
sleep 0.7
kill -9 $pid
wait
equal "the end of the process ends the recording" 0 "$(cat rc.txt)"
check "kill -9 of the target loses nothing" test "$("$WEIR" report flat end.weir --json >f.json; json f.json "sum(r['samples'] for r in j['rows']) > 50")" = True

python3 - <<'PY'
import os, signal, subprocess, time
p = subprocess.Popen([os.environ["WEIR"], "record", "-q", "-o", "int.weir", "--", "./" + os.environ["split"], "forever"])
time.sleep(1)
p.send_signal(signal.SIGINT)
print("ok" if p.wait(20) == -2 else "not ok", "SIGINT to weir ends the command and the recording")
PY
check "and the data is kept" test "$("$WEIR" report flat int.weir --json >f.json; json f.json "sum(r['samples'] for r in j['rows']) > 100")" = True

"$WEIR" record -q -o bg.weir -- ./$split forever & # a background job ignores SIGINT
w=$!
sleep 0.7
kill -INT $w
wait $w
equal "SIGINT to weir ends the recording of a command that ignores it" 0 $?
check "which goes on running" pkill -KILL -f "./$split forever"
check "and that data is kept" "$WEIR" report flat bg.weir >/dev/null
"$WEIR" record -q --duration 0.3 -o dur.weir -- sh -c './$split recursion; exit 5' >/dev/null 2>&1
equal "a command that outlives --duration still gives its status" 5 $?
check "the trace of that is whole" "$WEIR" report flat dur.weir >/dev/null

"$WEIR" record -q --pc-only -o pc.weir -- ./$split recursion >/dev/null
"$WEIR" report flat pc.weir --json >f.json
check "--pc-only charges the function itself" test "$(json f.json "[r['base']/j['total']>0.8 for r in j['rows'] if r['name']=='spin_recursive'] == [True]")" = True
"$WEIR" record -q --no-sample -o ns.weir -- ./$split recursion >/dev/null
check "--no-sample records switches and no samples" test "$("$WEIR" report threads ns.weir --json >f.json; json f.json "sum(r['samples'] or 0 for r in j['rows'])")" = 0
"$WEIR" record -q -e page-faults -o pf.weir -- perl -e '$x = "a" x 20000000' &&
	"$WEIR" report flat pf.weir --json >f.json
check "-e page-faults counts faults in its own metric" test "$(json f.json "j['metric']['name']=='page-faults' and j['total']>1000")" = True
"$WEIR" record -q -e cpu-clock,page-faults -o two.weir -- perl -e '$x = "a" x 50000000; for (1..2000000) { $s += $_ }'
check "two events in one run keep their metrics" test "$("$WEIR" report flat two.weir --metric page-faults --json >f.json; json f.json "j['total']>1000")" = True
check "and the clock is the default" test "$("$WEIR" report flat two.weir --json >f.json; json f.json "j['metric']['name']")" = cpu
