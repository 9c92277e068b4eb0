# SPDX-License-Identifier: MIT
# libweircount.a without the inserter: programs with hand-made inserted code (tests/fixtures/count_runtime)
# leave the count files that they should, whatever happens to them.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
fixtures=$ROOT/tests/fixtures/count_runtime
library=$BUILD/lib/x86_64-linux-gnu/libweircount.a
unset WEIR_OUT WEIR_SITES

build() { # OUT SOURCE OPTION...
	local out=$1 source=$fixtures/$2 compiler=gcc
	shift 2
	case $source in *.cc) compiler=g++ ;; esac
	$compiler -O1 -g "$@" -o "$out" "$source" "$library" -lpthread 2>build.txt ||
		{ not_ok "$out is built" && head build.txt && exit 1; }
}

# tell FILE EXPRESSION: f is the count file, h its header, of(name) a row of its functions: calls, cost, ...
tell() {
	PYTHONPATH=$fixtures PYTHONDONTWRITEBYTECODE=1 python3 - "$@" 2>&1 <<'PY'
import sys, types
from read_counts import CountFile
sys.setrecursionlimit(10000)
f = CountFile(sys.argv[1])
h = types.SimpleNamespace(**f.header)
def of(name):
    return f.flat()[name]
def calls():
    return " ".join(f"{n}={r[0]}" for n, r in sorted(f.flat().items()))
def tree(n=None):
    n = n or f.threads[0].nodes[0]
    below = sorted(tree(c) for c in n.children)
    return (f"{n.name}:{n.calls}/{n.cost}" if n.number else "") + ("(" + " ".join(below) + ")" if below else "")
wrong = f.check()
value = wrong[0] if wrong else eval(f"({sys.argv[2]})")
print(*value) if isinstance(value, tuple) else print(value)
PY
}

# run FILE COMMAND...: with an empty folder for files; the status is in $status.
run() {
	rm -f ./*.weir ./*.weir.old
	timeout 120 "$@" >out.txt 2>err.txt
	status=$?
}

# --- every kind of program --------------------------------------------------------------------
basics_tree='(counted_main:1/10(down:1/10(down:1/10(down:1/10(down:1/10))) jumper:3/30(leaf:3/30) leaf:3/30 middle:3/30(leaf:6/60)))'
kinds=(dynamic:-pie fixed:'-no-pie -fno-pie' static:-static static-pie:-static-pie
	collected:'-ffunction-sections -Wl,--gc-sections')
command -v ld.lld >/dev/null && kinds+=(lld:-fuse-ld=lld)
for kind in "${kinds[@]}"; do
	# shellcheck disable=SC2086
	build "basics_${kind%%:*}" basics.c ${kind#*:}
	run "./basics_${kind%%:*}" 3
	equal "a program linked ${kind#*:} runs as before" "0 done" "$status $(cat out.txt err.txt)"
	equal "a program linked ${kind#*:} leaves its tree" "$basics_tree" \
		"$(tell "basics_${kind%%:*}.weir" 'tree()')"
done
run ./basics_dynamic 3
equal "the header tells the program, its arguments and that it ended" \
	"$PWD/basics_dynamic ./basics_dynamic 3 ['tree', 'ended'] True" \
	"$(tell basics_dynamic.weir 'h.exe, h.command, h.flag_names, h.end_ns > h.start_ns > 0')"
equal "the build-id is the program's" "$(readelf -n basics_dynamic | sed -n 's/.*Build ID: //p')" \
	"$(tell basics_dynamic.weir h.build_id)"
equal "blocks are counted" "leaf 12" "$(python3 -B "$fixtures/read_counts.py" basics_dynamic.weir blocks | grep leaf)"

build unusual unusual.c
build unusual_static unusual.c -static

# both SENTENCE EXPECTED EXPRESSION MODE [N]: dynamic and static.
both() {
	local sentence=$1 expected=$2 expression=$3 p
	shift 3
	for p in unusual unusual_static; do
		run ./$p "$@"
		equal "$sentence ($p)" "$expected" "$(tell $p.weir "$expression")"
	done
}

# --- calls, jumps, stacks ---------------------------------------------------------------------
ulimit -S -s unlimited 2>/dev/null || ulimit -S -s "$(ulimit -H -s)"
equal "a recursion 50,000 deep is a path of as many nodes" "down=50001 leaf=1 50003 0 0" \
	"$(run ./unusual deep 50000; tell unusual.weir 'calls(), len(f.threads[0].nodes), h.calls_lost, f.threads[0].folded')"
run ./unusual deep 1000000
equal "one 1,000,000 deep is folded where the tree has 65,536 nodes" "down=1000001 leaf=1 65537 0 1" \
	"$(tell unusual.weir 'calls(), len(f.threads[0].nodes), h.calls_lost, f.threads[0].folded')"
ulimit -S -s 8192
both "1,000,000 jumps between two functions are two nodes" "(leaf:1/10 ping:500000/5000000(pong:500000/5000000))" \
	'tree()' tails 1000000
both "longjmp ends the calls that it leaves" \
	"(sets_jump:100/1000(calls_jumper:100/1000(jumps_away:100/1000(leaf:100/1000)) leaf:100/1000))" 'tree()' long_jumps 100
both "callbacks are children of the foreign call, and its time is there" \
	"(calls_foreign:9/90(f_calls_foreign (foreign):9/0(leaf:9/90 middle:9/90(leaf:18/180))) sets_jump_for_foreign:9/90(calls_foreign_jumper:9/90(f_calls_foreign_jumper (foreign):9/0(leaf:9/90)) leaf:9/90)) True" \
	'tree() + " " + str(all(n.cycles > 0 for n in f.threads[0].nodes if n.is_foreign))' foreign 9
build exceptions exceptions.cc
build exceptions_static exceptions.cc -static
for p in exceptions exceptions_static; do
	run ./$p 50
	equal "exceptions end the calls that they leave ($p)" \
		"(catches:50/500(leaf:50/500 passes:50/500(throws:50/500(leaf:50/500))))" "$(tell $p.weir 'tree()')"
done
both "a handler on a signal stack has a tree of its own, and the interrupted call its cost" \
	"(handler:80/800(leaf:80/800) middle:40/400(leaf:80/800) raises:40/400(leaf:40/400))" 'tree()' signal_stack_inside 40
coroutine_tree='(schedules:20/200(leaf:20/200) yields:160/1600(leaf:312/3120))'
both "coroutines in the heap have frames of their own" "$coroutine_tree" 'tree()' coroutines 20
both "coroutines with guard pages have frames of their own" "$coroutine_tree" 'tree()' coroutines_guarded 20
WEIR_SITES=1 run ./unusual two_sites
equal "call sites are apart on request" "(leaf:1/10 leaf:1/10) (leaf:1/10 leaf:1/10) 2 sites" \
	"$(tell unusual.weir '" ".join(tree(m)[11:] for m in f.threads[0].nodes[0].children) + f" {len({m.site for m in f.threads[0].nodes[0].children})} " + f.header["flag_names"][1]')"

# --- signals ----------------------------------------------------------------------------------
for mode in signals signals_in_threads; do
	for p in unusual unusual_static; do
		# A handler in the midst of making a node is lost, and told. It is rare.
		for i in $(seq 10); do
			run ./$p $mode 400000
			[ "$(tell $p.weir h.calls_lost)" = 0 ] && break
		done
		n=$(sed -n 's/signals //p' out.txt)
		m=$([ $mode = signals ] && echo 1 || echo 4)
		equal "$mode: no call of $n handlers is lost or charged to another ($p)" \
			"$n $((10 * n)) $((m * 800000 + n)) $((10 * (m * 800000 + n))) $((m * 400000)) $((m * 4000000)) 0" \
			"$(tell $p.weir '*of("handler")[:2], *of("leaf")[:2], *of("middle")[:2], h.calls_lost')"
	done
done
for p in unusual unusual_static; do
	run ./$p signals_that_jump 1000
	equal "handlers that jump out of whatever they interrupt do no harm ($p)" "0 True 10 True" \
		"$status $(tell $p.weir '1000 - h.calls_lost <= of("handler")[0] <= 1000, [c for n in f.threads[0].nodes[0].children if n.name == "worker" for c in n.children][0].calls, 0 <= of("middle")[0] - f.function_counts()["middle"] <= 1000')"
done

# --- threads ----------------------------------------------------------------------------------
both "eight threads have eight trees, and their counts add up" \
	"9 leaf=18000 middle=9000 worker=9 {30010}" \
	'len(f.threads), calls(), {sum(n.cost for n in t.nodes) for t in f.threads}' \
	eight_threads 1000
both "1,000 threads in turn have a row each" "1001 {100} leaf=6000 middle=3000 worker=1000 0 0" \
	'len(f.threads), {sum(n.cost for n in t.nodes) for t in f.threads[1:]}, calls(), h.n_threads_lost, sum(t.n_shared for t in f.threads)' \
	threads_in_turn 1000
both "3,000 in turn have more than 2,000 rows, and those that are shared know how many threads they are of" \
	"True 3001 leaf=18000 middle=9000 worker=3000 0" \
	'2000 < len(f.threads) < 3000, len(f.threads) + sum(t.n_shared for t in f.threads), calls(), h.n_threads_lost' \
	threads_in_turn 3000
"$WEIR" report loss unusual_static.weir >loss.txt
equal "reports say how many threads share rows" "$(tell unusual_static.weir 'sum(t.n_shared for t in f.threads)')" \
	"$(sed -n 's/^ *\([0-9]*\)  a thread shares its row.*/\1/p' loss.txt)"
both "400 threads at once have 400 trees" "401 leaf=2400 middle=1200 worker=800 {0, 110}" \
	'len(f.threads), calls(), {sum(n.cost for n in t.nodes) for t in f.threads}' \
	threads_at_once 400

both "threads on stacks that the program made are told apart" "9 ['', 'large:1/10(worker:1/10(middle:999/9990(leaf:1998/19980)))']" \
	'len(f.threads), sorted({tree(t.nodes[0])[1:-1] for t in f.threads})' threads_in_heap 999

# --- processes --------------------------------------------------------------------------------
for p in unusual unusual_static; do
	run ./$p fork 7
	child=$(sed -n 's/child //p' out.txt)
	equal "a parent of fork has its own counts ($p)" "(forks:1/10 middle:1/10(leaf:2/20))" "$(tell $p.weir 'tree()')"
	equal "a child of fork goes on in the open calls, from 0 ($p)" \
		"(forks:0/0(leaf:1/10 worker:1/10(middle:7/70(leaf:14/140)))) True" \
		"$(tell "$p.$child.weir" "tree(), h.pid == $child")"
	run ./$p raw_fork 7
	child=$(sed -n 's/child //p' out.txt)
	equal "a child of the bare system call is noticed ($p)" "(worker:1/10(middle:7/70(leaf:14/140)))" \
		"$(tell "$p.$child.weir" 'tree()')"
	run ./$p fork_and_threads 6
	equal "threads of a child of fork are counted ($p)" "3 leaf=24 middle=12 worker=2" \
		"$(tell $p.*.weir 'len(f.threads), calls()')"
	run ./$p vfork_exec
	equal "a child of vfork counts with its parent ($p)" "(leaf:1/10 middle:2/20(leaf:4/40))" "$(tell $p.weir 'tree()')"
	run ./$p exec_self
	equal "a program that executes itself leaves two files ($p)" "leaf=14 middle=7 worker=1 leaf=2 middle=1" \
		"$(tell $p.weir 'calls()') $(tell $p.weir.old 'calls()')"
done
both "SIGKILL loses nothing" "leaf=10 middle=5 worker=1 ['tree']" 'calls(), h.flag_names' killed 5
both "abort loses nothing" "(aborts:1/10(leaf:1/10) worker:1/10(middle:5/50(leaf:10/100)))" 'tree()' abort 5
both "_exit loses nothing" "leaf=10 middle=5 worker=1" 'calls()' exits 5

# --- where the file goes ----------------------------------------------------------------------
run ./unusual plain 2
./unusual plain 3
equal "an older file is kept" "worker=1 worker=1" \
	"$(tell unusual.weir 'calls()' | cut -d' ' -f3) $(tell unusual.weir.old 'calls()' | cut -d' ' -f3)"
equal "the older file is the one before" 4 "$(tell unusual.weir.old 'of("leaf")[0]')"
rm -f ./*.weir ready.*
./unusual waits 3 >ready.txt &
first=$!
until [ -s ready.txt ]; do sleep 0.01; done
./unusual plain 5
equal "a file that a process still writes keeps its name" "6 10" \
	"$(tell unusual.weir 'of("leaf")[0]') $(tell unusual.[0-9]*.weir 'of("leaf")[0]')"
kill $first
wait $first 2>/dev/null
rm -f ./*.weir*
processes=()
for i in 1 2 3 4 5 6 7 8; do
	./unusual waits 20 >ready.$i &
	processes+=($!)
done
until [ "$(cat ready.[1-8] | wc -l)" -eq 8 ]; do sleep 0.01; done
kill "${processes[@]}"
wait "${processes[@]}" 2>/dev/null
equal "eight that start at once leave eight files" "8 8" \
	"$(ls unusual*.weir | wc -l) $(for i in unusual*.weir; do tell "$i" 'of("leaf")[0]'; done | grep -cx 40)"
rm -f ./*.weir*
mkdir -p elsewhere
WEIR_OUT=elsewhere/x%p.weir ./unusual plain 1
equal "WEIR_OUT says where, with the process number" 1 "$(ls elsewhere/x[0-9]*.weir | wc -l)"
WEIR_OUT=$PWD/elsewhere/y ./unusual plain 1
equal "WEIR_OUT is taken as it is" "leaf=2 middle=1 worker=1" "$(tell elsewhere/y 'calls()')"
equal "no temporary file stays" "" "$(ls | grep tmp)$(ls elsewhere | grep tmp)"
sentence() { # SENTENCE PATTERN COMMAND...
	local sentence=$1 pattern=$2
	shift 2
	rm -f ./*.weir*
	"$@" >out.txt 2>err.txt
	if [ $? -eq 0 ] && [ "$(wc -l <err.txt)" -eq 1 ] && grep -Eq "^weir: $pattern; nothing is recorded\$" err.txt &&
		[ -z "$(ls | grep tmp)" ]; then ok "$sentence"; else not_ok "$sentence: $(cat err.txt)"; fi
}
sentence "a folder that is not there gives a sentence, and the program runs" \
	"$PWD/nowhere/z.weir: cannot be created: no such directory" env WEIR_OUT=nowhere/z.weir ./unusual eight_threads 100
sentence "a file-size limit gives a sentence, and no signal" \
	"$PWD/unusual.weir: cannot be created: larger than the limit .*" bash -c 'ulimit -f 100; exec ./unusual plain 9'
mkdir -p d/unusual.weir
sentence "a folder of that name gives a sentence" "$PWD/d/unusual.weir: cannot be created: there is a directory .*" \
	bash -c 'cd d && exec ../unusual plain 9'
if [ "$(id -u)" -eq 0 ] && mkdir -p full && mount -t tmpfs -o size=280k tmpfs full 2>/dev/null; then
	sentence "a full disk gives a sentence" "$PWD/full/unusual.weir: cannot be created: no space left" \
		bash -c 'cd full && exec ../unusual plain 9'
	mount -o remount,size=400k full
	(cd full && ../unusual many_paths 14)
	equal "a disk that fills up costs nodes, no counts" "0 327670 True 32767" \
		"$? $(tell full/unusual.weir 'sum(n.cost for n in f.threads[0].nodes), h.calls_lost > 0, h.calls_lost + sum(r[0] for r in f.flat().values())')"
	rm -f full/*
	(cd full && ../unusual threads_at_once 100)
	equal "threads without room are counted with the first" "0 True 101" \
		"$? $(tell full/unusual.weir 'h.n_threads_lost > 0, len(f.threads) + h.n_threads_lost')"
	mount -o remount,ro full
	rm -f ./*.weir
	sentence "a read-only folder gives a sentence" "$PWD/full/unusual.weir: cannot be created: read-only file system" \
		bash -c 'cd full && exec ../unusual plain 9'
	umount full
else
	skip "full and read-only folders: mounting needs root"
fi
run bash -c 'ulimit -f 400; exec ./unusual many_paths 14'
equal "a limit that is reached later costs nodes, no counts" "0 327670 True" \
	"$status $(tell unusual.weir 'sum(n.cost for n in f.threads[0].nodes), h.calls_lost > 0')"
run bash -c 'ulimit -v 400000; exec ./unusual many_paths 12'
equal "little address space is enough" "0 4096 0" "$status $(tell unusual.weir 'of("left")[0], h.calls_lost')"

# --- older systems ----------------------------------------------------------------------------
# No instruction to set gs base (before Linux 5.9), no question about one mapping (before 6.11).
if ! gcc -std=gnu17 -O2 -D_GNU_SOURCE -fPIC -fvisibility=hidden -ffreestanding -mgeneral-regs-only -fno-stack-protector \
	-fno-tree-loop-distribute-patterns -fno-strict-aliasing -fno-jump-tables -fno-tree-switch-conversion -fcf-protection=none \
	-DHWCAP2_FSGSBASE=0 -DQUERY=0 -r -nostdlib -o older.o "$ROOT"/src/rt/{base/*.c,count/*.[cS]}; then
	not_ok "the library is built for older systems"
fi
library=older.o
for kind in -pie -static -static-pie; do
	build older unusual.c $kind
	run ./older eight_threads 100
	equal "threads are counted on older systems ($kind)" "9 leaf=1800 middle=900 worker=9 [3010]" \
		"$(tell older.weir 'len(f.threads), calls(), sorted({sum(n.cost for n in t.nodes) for t in f.threads})')"
	run ./older signal_stack_inside 40
	equal "signal stacks are known on older systems ($kind)" \
		"(handler:80/800(leaf:80/800) middle:40/400(leaf:80/800) raises:40/400(leaf:40/400))" "$(tell older.weir 'tree()')"
	run ./older fork_and_threads 6
	equal "children of fork are counted on older systems ($kind)" "3 leaf=24 middle=12 worker=2" \
		"$(tell older.*.weir 'len(f.threads), calls()')"
done

# --- the program's own things -----------------------------------------------------------------
library=$BUILD/lib/x86_64-linux-gnu/libweircount.a
build registers registers.c
run ./registers
equal "all registers are kept, and flags where that is promised" kept "$(cat out.txt)"
equal "vector and floating-point registers are not used" 0 "$(objdump -d "$library" | grep -c '%[xyz]mm\|%st')"
equal "no function of libc is called but __register_atfork, and that where it is; threads and the end are asked after by what is there" \
	"_GLOBAL_OFFSET_TABLE_ __ehdr_start __libc_single_threaded __register_atfork __start_weir_counters __stop_weir_counters exit pthread_create" \
	"$(nm -u "$library" | sed -n 's/^ *[Uw] //p' | sort | xargs)"
build cycles cycles.c
run ./cycles
equal "cycles are summed beside the cost" "[('outer', 100, 1000, 70000), ('inner', 200, 2000, 6000)]" \
	"$(tell cycles.weir '[(n.name, n.calls, n.cost, n.cycles) for n in f.threads[0].nodes[1:]]')"
run ./unusual untouched 4
equal "descriptors and signals are the program's" "next descriptor 3" "$(cat out.txt)"
if command -v gdb >/dev/null; then
	# 60 instructions of the fast way, then 400 of the way through C.
	for place in weir_count_enter weir_count_leave weir_count_tail weir_count_foreign weir_count_foreign_done; do
		mode=plain
		case $place in *tail) mode=tails ;; *foreign*) mode=foreign ;; esac
		for way in "60 2" "400 0"; do
			cat >gdb.in <<-END
				break *$place
				run $mode 9
				ignore 1 ${way#* }
				$([ "${way#* }" = 0 ] || echo continue)
				set \$i = 0
				while \$i < ${way% *}
				stepi
				bt
				set \$i = \$i + 1
				end
			END
			rm -f ./*.weir*
			gdb -q -batch -x gdb.in ./unusual >gdb.txt 2>&1
			equal "gdb shows main at each of ${way% *} instructions from $place on" "${way% *}" \
				"$(grep -c ' main (argc=3' gdb.txt)"
		done
	done
else
	skip "callers from within, shown by gdb: no gdb here"
fi
