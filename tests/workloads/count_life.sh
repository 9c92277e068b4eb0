# SPDX-License-Identifier: MIT
# Threads and processes that begin and end in every way: no count is lost, and none is charged twice.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

# counts FILE: calls of unit, inner; instructions of units, unit, inner.
counts() {
	"$WEIR" report flat "$1" --json 2>/dev/null | python3 -c '
import json, sys
try:
    rows = {r["name"]: r for r in json.load(sys.stdin)["rows"] if r["image"]}
except ValueError:
    sys.exit("no report")
print(*(rows.get(f, {}).get("calls") for f in ("unit", "inner")), *(rows.get(f, {}).get("base") for f in ("units", "unit", "inner")))'
}

# run COMMAND...: in counted/, without older files; $status
run() {
	rm -f counted/*.weir counted/*.weir.old
	{ (cd counted && exec timeout 60 "$@" >out.txt 2>err.txt); } 2>/dev/null
	status=$?
}

build life life.c -O2 && build other life.c -O2 && build fixed life.c -O2 -static || exit 1
run ./life return 1000
expected=$(counts counted/life.weir)
check "1,000 units are counted" [ "${expected%% *}" = 1000 ]

# --- ends
for p in life fixed; do
	for mode in return exit _exit abort kill fault; do
		{ (cd plain && ./$p $mode 1000) >/dev/null 2>&1; } 2>/dev/null
		plain=$?
		run ./$p $mode 1000
		equal "$p ends by $mode: its status, and every count is there" "$plain $expected" "$status $(counts counted/$p.weir)"
	done
	more || break
done

# --- threads
run ./life threads 1
one=$(counts counted/life.weir | cut -d' ' -f 1,2,4,5)
first=$(cat counted/out.txt)
run ./life threads 8
equal "eight threads have counted what one has" "$one" "$(counts counted/life.weir | cut -d' ' -f 1,2,4,5)"
equal "eight threads compute what one does" "$first" "$(cat counted/out.txt)"
equal "there is a tree for each thread" 9 \
	"$("$WEIR" report tree counted/life.weir --json >tree.json; json tree.json 'len([r for r in j["rows"] if r["kind"] == "thread"])')"
equal "each of the eight has its eighth" "[1024]" \
	"$(json tree.json 'sorted({r["calls"] for r in j["rows"] if r["name"] == "unit"})')"
run ./life short_threads 200
equal "200 short threads: the calls of each are there" "200 400" "$(counts counted/life.weir | cut -d' ' -f 1,2)"
run ./fixed threads 8
equal "eight threads of a static program" "$one" "$(counts counted/fixed.weir | cut -d' ' -f 1,2,4,5)"

# --- processes
for mode in fork daemon; do
	run ./life $mode 1000
	child=$(cat counted/out.txt)
	equal "$mode: the parent has its own counts" "17 $expected" "$status $(counts counted/life.weir)"
	equal "$mode: the child has a file of its own" "2000 4000" "$(counts "counted/life.$child.weir" | cut -d' ' -f 1,2)"
done
run ./life vfork 1000 ./other exit 500
equal "vfork and exec of another counted program: both have files" "1000 500 10" \
	"$(counts counted/life.weir | cut -d' ' -f 1) $(counts counted/other.weir | cut -d' ' -f 1) $status"
run ./life vfork 1000 /bin/true
equal "vfork and exec of a program that is not counted" "0 $expected" "$status $(counts counted/life.weir)"
run ./life exec 1000 ./other exit 500
equal "exec of another counted program: both have files" "1000 500 10" \
	"$(counts counted/life.weir | cut -d' ' -f 1) $(counts counted/other.weir | cut -d' ' -f 1) $status"
run ./life exec 1000 ./life exit 500
equal "exec of itself: the older file is kept" "500 1000" \
	"$(counts counted/life.weir | cut -d' ' -f 1) $(counts counted/life.weir.old | cut -d' ' -f 1)"

# --- where the counts go
run ./life chdir 1000
equal "chdir: the file is where the program began" "$expected" "$(counts counted/life.weir)"
run bash -c './life return 10; ./life return 20'
equal "the file of the run before is kept" "20 10" \
	"$(counts counted/life.weir | cut -d' ' -f 1) $(counts counted/life.weir.old | cut -d' ' -f 1)"
run env WEIR_OUT=named-%p.weir ./life return 7
equal "WEIR_OUT names the file, with the process" 7 "$(counts counted/named-[0-9]*.weir | cut -d' ' -f 1)"
run bash -c 'cd /proc && "$OLDPWD"/life exit 1000'
equal "a folder that cannot be written: the program runs as before, and says why there are no counts" "10 0 1" \
	"$status $(wc -l <counted/out.txt) $(grep -c '^weir: .*nothing is recorded$' counted/err.txt)"
run bash -c 'ulimit -f 8; exec ./life exit 1000'
equal "a limit of file sizes: the program runs as before, and says why there are no counts" "10 1" \
	"$status $(grep -c '^weir: .*nothing is recorded$' counted/err.txt)"
rm -f counted/*.weir
(cd counted && exec ./life wait 30 >ready.1) &
first=$!
(cd counted && exec ./life wait 40 >ready.2) &
second=$!
until [ -s counted/ready.1 ] && [ -s counted/ready.2 ]; do sleep 0.01; done
kill -9 $first $second
{ wait $first $second; } 2>/dev/null
equal "two at once have a file each, and SIGKILL from outside loses nothing" "30 40" \
	"$(for f in counted/life*.weir; do counts "$f" | cut -d' ' -f 1; done | sort -n | xargs)"

# --- the program's own things
same "descriptors, errno and signals are the program's" life own
same "the same in a static program" fixed own
