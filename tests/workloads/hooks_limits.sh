# SPDX-License-Identifier: MIT
# Programs that may open few files or have little memory: their calls are counted where that is possible, and
# where it is not the recording says so. Programs that an attached process executes are named, too.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

# calls: of step, by the trace; lost: events, with their reasons.
calls() {
	"$WEIR" report flat t.weir --json >flat.json 2>err.txt
	json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name']=='step')"
}
lost() {
	"$WEIR" report loss t.weir --json >loss.json 2>err.txt
	json loss.json "' '.join([str(j['loss']['events_lost'])] + sorted(k for k in j['loss']['reasons'] if 'program' in k or 'process' in k))"
}
build limited limited.c -O2 || exit 1

# under LIMIT PROGRAM...: records it under that option of ulimit. Nothing is sampled: it would count samples.
under() {
	"$WEIR" record --no-sample --events step -o t.weir -- sh -c "ulimit $1; exec \"\$@\"" sh "${@:2}" >out.txt 2>said.txt
}
under '-n 5' ./limited
equal "two more files are enough" "0 1000 0" "$? $(calls) $(lost)"
under '-n 4' ./limited
equal "a program that may open one more file runs, and is a loss" \
	"0 0 1 program 'limited' was not hooked: it may not open two more files" "$? $(calls) $(lost)"
"$WEIR" report loss t.weir >out.txt 2>&1
equal "and the status says so" 3 $?
for n in 3 4; do
	under '-n 100' ./limited files $n
	equal "a child that may open files below $n only is a loss" \
		"status 0 0 1 forked process that could not reach the recorder" "$(cat out.txt) $(calls) $(lost)"
done
under '-n 100' ./limited files 5
equal "with two it is counted" "status 0 1000 0" "$(cat out.txt) $(calls) $(lost)"

under '-v 240000' ./limited
equal "a program without memory for the hooks is a loss" \
	"0 0 1 program 'limited' was not hooked: it has no memory for the hooks (a limit on its address space)" "$? $(calls) $(lost)"
under '-v 100000' ./limited
equal "one without memory for the library runs" "0 0" "$? $(calls)"
check "and weir says that it was not hooked" grep -Eq "weir: note: program 'limited' was not hooked: .*(a limit on memory|the limit on its address space)" said.txt
(ulimit -v 260000; "$WEIR" record --no-sample --events step -o limit.weir -- ./limited >out.txt 2>said.txt)
equal "under a limit that leaves the program no room nothing is started" \
	"1 weir: hooked functions take up to 256 MiB of a program's address space, of which it may have 253 (ulimit -v)" "$? $(cat said.txt)"
check "and no trace is left" test ! -e limit.weir
(ulimit -v 290000; "$WEIR" record -q --no-sample --events step -o t.weir -- ./limited >out.txt 2>said.txt)
equal "where there is room it is hooked" "0 1000 0" "$? $(calls) $(lost)"
# grows PROGRAM OPTION...: by how many kB its address space does.
grows() {
	local plain=$(./$1 size)
	"$WEIR" record -q --no-sample --events step "${@:2}" -o t.weir -- ./$1 size >out.txt 2>said.txt
	echo $(($(cat out.txt) - plain))
}
for option in --all-calls --tree; do
	grown=$(grows limited ${option#--all-calls})
	check "a program has no more than 256 MiB less of address space, ${option#--} ($grown kB)" test "$grown" -lt 262144
done
under '-v 256000' ./limited
equal "a program that may have 256 MB is hooked" "0 1000 0" "$? $(calls) $(lost)"
if build limited32 limited.c -O2 -m32; then
	for option in --all-calls --tree; do
		grown=$(grows limited32 ${option#--all-calls})
		check "a 32-bit program has no more than 48 MiB less, ${option#--} ($grown kB)" test "$grown" -lt 49152
	done
	under '-v 50000' ./limited32
	equal "a 32-bit program needs little memory" "0 1000 0" "$? $(calls) $(lost)"
else
	skip "a 32-bit program: gcc -m32 does not work here ($(head -n 1 build.txt))"
fi

# A figure that lacks the calls of one process is not shown without a word: here SIGTRAP is blocked in the second.
gcc -w -O2 -fpatchable-function-entry=1 -DHAZARD_INT3 -o traps "$ROOT/tests/hazards/programs/plain.c" -lpthread || exit 1
cat >both.py <<'PY'
import os, signal, subprocess
subprocess.run(["./traps", "1", "once"])
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])
os.execv("./traps", ["./traps", "1", "once"])
PY
"$WEIR" record --no-sample --events 'h_*' -o t.weir -- python3 both.py >out.txt 2>said.txt
n=$(grep -c '^calls ' out.txt)
equal "functions that are hooked in one process and not in another are a loss" \
	"$((n / 2)) function that was hooked, but not in every process, or not each time it was loaded: a breakpoint is needed, and SIGTRAP is blocked or in use" "$(lost)"

# What an attached process executes has no hooks.
mkfifo line
./limited spawn <line >out.txt &
target=$!
exec 9>line
"$WEIR" record --no-sample --events step -o t.weir -p $target 2>said.txt &
recorder=$!
for ((i = 0; i < 500; i++)); do grep -q libweir /proc/$target/maps && break; sleep 0.02; done
sleep 0.2
feed 9
wait $recorder
status=$?
exec 9>&-
wait $target
equal "what an attached process executes runs" "status 0" "$(cat out.txt)"
equal "weir says that it was not hooked" \
	"0 weir: note: program 'exe' was not hooked: a process that weir attached to has executed it; only what weir starts passes hooks on (2 times)" \
	"$status $(grep 'not hooked' said.txt)"
