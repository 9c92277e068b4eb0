# SPDX-License-Identifier: MIT
# weir-test: root: uprobes at hooked functions
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# A second observer at hooked functions: the kernel's breakpoints come and go while functions are hooked,
# and are there before. The program works, and both observers say what they do not see.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

for m in 64 32; do
	if ! gcc -m$m -w -O2 -shared -fPIC -o libseen$m.so "$hook_fixtures/base.c" 2>build.txt; then
		skip "uprobes at hooked functions of $m-bit programs: gcc -m$m is not installed"
		continue
	fi
	gcc -m$m -w -O2 -o host$m "$hook_fixtures/base_host.c" ./libseen$m.so
	point="uprobe:$PWD/libseen$m.so:base_inner { @hits = count(); }"

	# The hooks come first.
	rm -f end
	"$WEIR" record -q --events "libseen$m.so:base_*" -o t.weir -- ./host$m 5 "$PWD/end" >out.txt 2>err.txt &
	recorder=$!
	for ((i = 0; i < 500; i++)); do target=$(pgrep -P $recorder -x host$m) && grep -q "rwxp.*libseen$m" "/proc/$target/maps" && break; sleep 0.01; done
	: >notes.txt
	for ((i = 0; i < 4; i++)); do
		"$WEIR" probe "$point" --duration 0.1 >>probe.txt 2>>notes.txt
	done
	touch end
	wait $recorder
	equal "$m bits, observers come and go at hooked functions: the program works" "0: 725 0" "$?: $(cat out.txt)"
	equal "$m bits: the observer says what it does not see" 4 \
		"$(grep -c "process $target (host$m): code of 'libseen$m.so' is writable there" notes.txt)"
	"$WEIR" report hooks t.weir --json >hooks.json 2>err.txt
	check "$m bits: its calls are recorded all the same" test "$(json hooks.json "sum(r['hits'] or 0 for r in j['rows'])")" -gt 55

	# The breakpoint comes first, and goes while the other function is hooked.
	rm -f end
	"$WEIR" probe -e 'begin { printf("ready\n"); }' -e "$point" >probe.txt 2>notes.txt &
	probe=$!
	for ((i = 0; i < 500; i++)); do grep -q ready probe.txt && break; sleep 0.01; done
	"$WEIR" record -q --events "libseen$m.so:base_*" -o t.weir -- ./host$m 5 "$PWD/end" >out.txt 2>err.txt &
	recorder=$!
	for ((i = 0; i < 500; i++)); do target=$(pgrep -P $recorder -x host$m) && grep -q "rwxp.*libseen$m" "/proc/$target/maps" && break; sleep 0.01; done
	kill -INT $probe
	wait $probe
	sleep 0.1
	touch end
	wait $recorder
	equal "$m bits, a breakpoint that was there before: the program works" "0: 725 0" "$?: $(cat out.txt)"
	"$WEIR" report hooks t.weir --json >hooks.json 2>err.txt
	equal "$m bits, a breakpoint that was there before: that function is refused, with the reason" \
		"[('base_inner', 'refused', 'the code in memory is not that of the file'), ('base_outer', 'jump', None)]" \
		"$(json hooks.json "sorted((r['function'], r['method'], r['reason']) for r in j['rows'])")"
	check "$m bits, a breakpoint that was there before: the observer counts" grep -Eq '@hits: [0-9]{2,}' probe.txt
done
