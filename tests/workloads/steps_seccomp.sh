# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Programs under seccomp filters: `ptrace` makes no system call in them; `inside` refuses those that are
# under one, and leaves a program before it puts itself under one.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"

build filtered filtered.c -O1 -pthread -static || exit 1
for engine in ptrace inside; do
	stepper=(timeout 120 setarch -R "$WEIR" steps -q --engine "$engine")
	for mode in later strict all own child; do same "$engine, $mode" ./filtered $mode; done
done

"$WEIR" steps --engine inside -o l.weir -- ./filtered later >out.txt 2>err.txt
check "inside: a note says where it ends, and why" grep -q 'runs on untraced: it puts itself under a seccomp filter' err.txt
"$WEIR" report steps l.weir --limit 10000000 >listing.txt
check "inside: there are steps up to there" test "$(wc -l <listing.txt)" -gt 1000
equal "inside: and a pause behind the last one" 1 "$(tail -n 3 listing.txt | grep -c 'runs untraced (engine)')"

mkfifo go
for engine in inside ptrace; do
	./filtered first <go >out.txt 2>ready.txt &
	program=$!
	exec 5>go
	for ((i = 0; i < 500; i++)); do grep -q ready ready.txt && break || sleep 0.01; done
	if [ $engine = inside ]; then
		fails "inside: a process under a filter is refused" 1 "process $program runs under a filter of system calls" \
			"$WEIR" steps -q --engine inside -o a.weir -p $program --max 100
		equal "inside: nothing of us is in it" 0 "$(grep -c weir /proc/$program/maps)"
	else
		"$WEIR" steps -q --engine ptrace -o a.weir -p $program --max 100
		equal "ptrace: a process under a filter is traced" 0 $?
	fi
	echo >&5
	exec 5>&-
	wait $program
	equal "$engine: it ends as it should" "6 sum 1" "$? $(cat out.txt)"
done
true
