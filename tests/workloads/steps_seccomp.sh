# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Programs under seccomp filters: no system call is made in them.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"

build filtered filtered.c -O1 -pthread -static || exit 1
stepper=(timeout 120 setarch -R "$WEIR" steps -q --engine ptrace)
for mode in later strict all own child; do same "$mode" ./filtered $mode; done

mkfifo go
./filtered first <go >out.txt 2>ready.txt &
program=$!
exec 5>go
for ((i = 0; i < 500; i++)); do grep -q ready ready.txt && break || sleep 0.01; done
"$WEIR" steps -q --engine ptrace -o a.weir -p $program --max 100
equal "a process under a filter is traced" 0 $?
feed 5
exec 5>&-
wait $program
equal "it ends as it should" "6 sum 1" "$? $(cat out.txt)"
