# SPDX-License-Identifier: MIT
# Modules over time: what was loaded, used and unloaded, and how that is known.
# weir-test: alone: samples have to be as many as the time says
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/make_plugins.bash"
make_plugins plug 8 || exit 1
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1

history() { # COMMAND TRACE ...: of tests/format/module_history.py
	local command=$1 trace=$2
	shift 2
	python3 "$ROOT/tests/format/read_trace.py" "$trace" >trace.json &&
		python3 "$ROOT/tests/format/module_history.py" "$command" trace.json "$@"
}
# "" or why munmap calls are not recorded here
untraced=$("$WEIR" record -o note.weir -- true 2>&1 | grep -o 'munmap calls are not recorded.*')

# A host that is attached to in the middle of its life. tell LINE...: and it has been done.
start_host() {
	mkfifo in.fifo out.fifo
	./plugin_host plug <in.fifo >out.fifo &
	host=$!
	exec 7>in.fifo 8<out.fifo
}
tell() {
	for line in "$@"; do
		feed 7 "$line"
		read -r -t 60 done <&8 || not_ok "the host does not answer to '$line'"
	done
}
stop_host() {
	exec 7>&- 8<&-
	wait $host
	rm -f in.fifo out.fifo
}
# attach_for TRACE OPTIONS: until `detach`; returns when it records.
attach_for() {
	local trace=$1
	shift
	"$WEIR" record -q -o "$trace" -p $host "$@" 7>&- 8<&- &
	recorder=$!
	for ((i = 0; i < 200; i++)); do
		[ -s "$trace" ] && break
		sleep 0.05
	done
	sleep 0.3
}
detach() {
	kill -INT $recorder
	wait $recorder
}

start_host
tell "load 0" "load 1" "burn 0 1"
attach_for table.weir
tell "burn 0 60" "unload 1" "load 2" "burn 2 60" "unload 2" "load 3" "load 4" "unload 4"
detach
if [ -n "$untraced" ]; then
	skip "the table of an attached process is right: $untraced"
else
	equal "the table of an attached process is right" "lib0.so at-start used none
lib1.so at-start unused munmap
lib2.so during used munmap
lib3.so during unused none" "$(history table table.weir lib0.so lib1.so lib2.so lib3.so lib4.so | sort)"
fi
equal "its start snapshot has what was loaded then" "lib0.so lib1.so" \
	"$(history records table.weir | awk '$1=="start" && $5 ~ /^lib[0-9]/ {print $5}' | sort | xargs)"
equal "its end snapshot has what was loaded then" "lib0.so lib3.so" \
	"$(history records table.weir | awk '$1=="end" && $5 ~ /^lib[0-9]/ {print $5}' | sort | xargs)"
equal "load records are for what was used" "lib0.so lib2.so" \
	"$(history records table.weir | awk '$1=="load" && $5 ~ /^lib[0-9]/ {print $5}' | sort | xargs)"

attach_for all.weir --all-modules
tell "load 5" "unload 5" "load 6"
detach
equal "--all-modules: load records for what was not used, too" "lib0.so lib3.so lib5.so lib6.so" \
	"$(history records all.weir | awk '$1=="load" && $5 ~ /^lib[0-9]/ {print $5}' | sort | xargs)"

WEIR_NO_MUNMAP=1 attach_for gone.weir
tell "burn 3 60" "unload 3"
detach
equal "without munmap tracing the end snapshot finds what is gone" "lib3.so at-start used snapshot" \
	"$(history table gone.weir lib3.so)"
equal "and its unload record says so" "snapshot" \
	"$(history records gone.weir | awk '$1=="unload" && $5=="lib3.so" {print $6}')"

attach_for snap.weir --snapshots
tell "burn 6 60" "load 7" "burn 7 60"
detach
history records snap.weir >records.txt
equal "--snapshots: no load and unload records" 0 "$(grep -cE '^(un)?load ' records.txt)"
equal "--snapshots: the start" "lib0.so lib6.so" \
	"$(awk '$1=="start" && $5 ~ /^lib[0-9]/ {print $5}' records.txt | sort | xargs)"
equal "--snapshots: the end" "lib0.so lib6.so lib7.so" \
	"$(awk '$1=="end" && $5 ~ /^lib[0-9]/ {print $5}' records.txt | sort | xargs)"
equal "--snapshots: no address index" "" "$(history spans snap.weir)"
"$WEIR" report flat snap.weir --json >flat.json
check "--snapshots: functions have their names" test "$(json flat.json "any(r['name']=='burn_7' for r in j['rows'])")" = True
stop_host

# exec and exit
"$WEIR" record -q -o exec.weir -- perl -e '$x += $_ for 1..3e6; exec "./split", "recursion"' >/dev/null
history spans exec.weir >spans.txt
check "what exec replaces ends by exec" grep -qE ' perl [0-9]+ [0-9]+ exec 0 1$' spans.txt
check "what comes after it ends by exit" grep -qE ' split [0-9]+ [0-9]+ exit 0 1$' spans.txt
equal "the one begins after the other has ended" True "$(python3 -c '
rows = [l.split() for l in open("spans.txt")]
print(max(int(r[4]) for r in rows if r[5] == "exec") <= min(int(r[3]) for r in rows if r[2] == "split"))')"
equal "the last state of the process is that of the second program" "split" \
	"$(history records exec.weir | awk '$1=="end" && ($5=="split" || $5=="perl") {print $5}' | sort -u)"

# A forked child has had its parent's mappings since it began.
"$WEIR" record -q -o fork.weir -- perl -e 'unless (fork) { $x += $_ for 1..3e6; exit } wait' >/dev/null
history spans fork.weir >spans.txt
equal "a child's mappings begin with the child" True "$(python3 -c '
rows = [l.split() for l in open("spans.txt") if " perl " in l]
print(any(int(r[1]) == int(r[3]) and r[7] == "1" for r in rows))')"

# A pid that is used again. Other programs start processes, too: the pid is asked for several times.
cat >reuse.py <<'PY'
import os, sys
def child(program):
    pid = os.fork()
    if pid == 0:
        os.execv(program[0], program)
    os.waitpid(pid, 0)
    return pid
null = os.open("/dev/null", os.O_WRONLY)
os.dup2(null, 1)
for attempt in range(50):
    first = child(["/usr/bin/perl", "-e", "$x += $_ for 1..1e6"])
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(first - 1))
    except OSError as e:
        sys.exit(str(e))
    if child(["./split", "recursion"]) == first:
        sys.stderr.write("%d\n" % first)
        sys.exit(0)
sys.exit("the pid was always taken by another process")
PY
if "$WEIR" record -q -o reuse.weir -- "$(python3 -c 'import sys; print(sys.executable)')" reuse.py 2>err.txt; then
	pid=$(tail -n 1 err.txt)
	history spans reuse.weir | awk -v pid="$pid" '$1==pid && $8==1' >spans.txt
	equal "a pid that is used again is two processes" 2 "$(cut -d' ' -f2 spans.txt | sort -u | wc -l)"
	equal "each with the modules of its own program" True "$(python3 -c '
rows = [l.split() for l in open("spans.txt")]
started = sorted({int(r[1]) for r in rows})
of = [{r[2] for r in rows if int(r[1]) == s} for s in started]
print("perl" in of[0] and "split" not in of[0] and "split" in of[1] and "perl" not in of[1])')"
	equal "the first has ended before the second began" True "$(python3 -c '
rows = [l.split() for l in open("spans.txt")]
second = max(int(r[1]) for r in rows)
print(all(int(r[4]) <= second for r in rows if int(r[1]) != second))')"
else
	skip "a pid that is used again is two processes: $(tail -n 1 err.txt)"
fi

# 32-bit programs: the kernel does not report their system calls at the tracepoint.
if gcc -m32 -O2 -o host32 "$ROOT/tests/workloads/plugin_host.c" -ldl 2>/dev/null &&
	echo 'unsigned burn_0(unsigned n) { volatile unsigned x = 0; while (n--) x += n * 3; return x; }' >burn.c &&
	mkdir -p plug32 && gcc -m32 -shared -fPIC -O1 -o plug32/lib0.so burn.c &&
	gcc -m32 -shared -fPIC -O1 -Dburn_0=burn_1 -o plug32/lib1.so burn.c; then
	printf 'load 0\nburn 0 40\nunload 0\nload 1\nburn 1 40\nunload 1\n' |
		"$WEIR" record -q -o m32.weir -- ./host32 plug32 >log.txt
	equal "32-bit: plug-ins in turn are told apart" "lib0.so during used overlap
lib1.so during used exit" "$(history table m32.weir lib0.so lib1.so | sort)"
	"$WEIR" report flat m32.weir --json >flat.json
	check "32-bit: each has its own function" test "$(json flat.json "{'burn_0','burn_1'} <= {r['name'] for r in j['rows']}")" = True
	[ -n "$untraced" ] || check "32-bit: a note says that the end is known late" \
		test "$(tr ',' '\n' <trace.json | grep -c 'munmap of 32-bit programs is not reported')" -ge 1
else
	skip "32-bit: plug-ins in turn are told apart: gcc -m32 does not work here"
fi

if [ "$(id -u)" = 0 ] || [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 0 ]; then
	./split forever &
	pid=$!
	"$WEIR" record -q -a --duration 0.6 -o system.weir
	kill -9 $pid
	history records system.weir >records.txt
	check "system-wide: the start snapshot has every process" test "$(awk '$1=="start" {print $3}' records.txt | sort -u | wc -l)" -gt 1
	check "system-wide: it is in the end snapshot, as it was hit" grep -qE "^end [0-9]+ $pid [0-9]+ split" records.txt
	check "system-wide: it was there at the start" test "$(history spans system.weir | grep -cE "^$pid [0-9]+ split [0-9]+ [0-9]+ none 1 1$")" = 1
else
	skip "system-wide: the start snapshot has every process: not permitted here"
fi

"$WEIR" record -q -o known.weir -- true
"$WEIR" report loss known.weir --json >loss.json
equal "every record of a recording has a code that reports know" 0 "$(json loss.json 'j["loss"]["records_unknown"]')"
