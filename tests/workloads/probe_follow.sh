# SPDX-License-Identifier: MIT
# weir-test: root: probes follow children
# -c and -p: the command and its children and threads are traced, others are not, and the programs notice
# nothing: same output, and their code as it was when the probe has gone.
. "$ROOT/tests/lib.sh"
gcc -m64 -O1 -g -pthread -o family64 "$ROOT/tests/fixtures/probe/family.c" || { not_ok "the program compiles" && finish; }
modes=64
if gcc -m32 -O1 -g -pthread -o family32 "$ROOT/tests/fixtures/probe/family.c" 2>gcc.txt; then modes="32 64"; else
	skip "children of 32-bit programs are followed: gcc -m32 does not work here"
fi

# code PID FUNCTION-FILE: bytes of `marked` in the memory of a process, in hex
code() {
	python3 - "$1" "$2" <<'PY'
import re, subprocess, sys
pid, path = sys.argv[1:]
at = next(int(l.split()[0], 16) for l in subprocess.run(["nm", path], capture_output=True, text=True).stdout.split("\n") if l.endswith(" marked"))
for line in open("/proc/%s/maps" % pid):
    if line.rstrip().endswith(path.lstrip("./")):
        base = int(line.split("-")[0], 16)
        break
with open("/proc/%s/mem" % pid, "rb") as f:
    f.seek(base + at)
    print(f.read(8).hex())
PY
}

for mode in $modes; do
	p=./family$mode
	script="uprobe:$p:marked { printf(\"%d %d\\n\", bits, args.n); } uretprobe:$p:marked { @r[retval] = count(); }"
	$p >plain.txt 2>plain.err
	plain=$?
	# Another process that runs the same program is not traced.
	$p wait <<<"" >/dev/null 2>&1 &
	timeout 120 "$WEIR" probe -q -O probe.txt "$script" -c "sh -c \"$p; echo status \$?\"" >command.txt 2>command.err
	rc=$?
	wait $!
	equal "$mode-bit: a command, its children by fork and vfork and exec, and threads are traced, others are not" \
		"$(printf "$mode %d\n" 1 11 12 21 31 31 32 32)" "$(grep "^$mode " probe.txt | sort)"
	equal "$mode-bit: returns too" "@r[2]: 1 @r[22]: 1 @r[24]: 1 @r[42]: 1 @r[62]: 2 @r[64]: 2" "$(echo $(grep '^@r' probe.txt | sort -V))"
	equal "$mode-bit: the command's output is as it was, its status is its own" \
		"$(cat plain.txt plain.err) status $plain 0" "$(grep -v status command.txt; cat command.err) $(grep status command.txt) $rc"

	# --- a running process ---
	mkfifo in$mode
	rm -f attached.err # what the other mode was told is no answer here
	$p wait <in$mode >running.txt &
	pid=$!
	exec 5>in$mode
	runs $pid
	before=$(code $pid $p)
	timeout 120 "$WEIR" probe -O attached.txt "$script" -p $pid 2>attached.err &
	weir=$!
	until_line attached.err Attached $weir
	during=$(code $pid $p)
	$p >/dev/null 2>&1 # a stranger
	feed 5
	until_line running.txt again $pid
	kill -INT $weir
	wait $weir
	rc=$?
	after=$(code $pid $p)
	equal "$mode-bit: a running process and its later children are traced, others are not" \
		"$(printf "$mode %d\n" 40 50 21)" "$(grep "^$mode " attached.txt)"
	check "$mode-bit: while it is attached the code has a breakpoint" [ "$before" != "$during" ]
	equal "$mode-bit: the code is as it was when the probe has gone" "0 $before" "$rc $after"
	feed 5
	exec 5>&-
	wait $pid
	equal "$mode-bit: the process goes on as if nothing had been" "6 again again" "$? $(echo $(cat running.txt))"
done

# --- who is in the map of processes ---
# fed PID SCRIPT: traces it; when that is attached, it gets a line by descriptor 5. Prints status and maps.
fed() {
	local weir
	rm -f fed.err
	timeout 120 "$WEIR" probe -O fed.txt "$2" -p "$1" 2>fed.err &
	weir=$!
	until_line fed.err Attached $weir
	feed 5
	wait $weir
	echo $? $(grep . fed.txt) $(grep -o '[0-9]* processes that are not.*' fed.err)
}
gcc -O1 -o reused "$ROOT/tests/fixtures/probe/reused.c"
gcc -D_GNU_SOURCE -O1 -o crowd "$ROOT/tests/fixtures/probe/crowd.c"
mkfifo choose gather
./reused 5 <choose >number.txt &
pid=$!
exec 5>choose
if until_line number.txt . $pid; then
	equal "a process with the number of one that the kernel has not let go of yet is traced, if it is the program's" \
		"0 @: 5" "$(fed "$(cat number.txt)" 'syscall:getppid { @ = count(); }')"
else
	skip "processes that have each other's numbers: clone3 gives no number that is asked for"
fi
exec 5>&-
wait $pid
./crowd 10000 line <gather >gathered.txt &
pid=$!
exec 5>gather
until_line gathered.txt ready $pid
counted=$(fed $pid 'syscall:getppid { @ = count(); }')
exec 5>&-
wait $pid
equal "children that are made while weir attaches are traced" "0 @: $(sed -n 2p gathered.txt)" "$counted"

# --- the end of the run ---
timeout 120 "$WEIR" probe -q 'begin { printf("begin\n"); } end { printf("end\n"); }' -c 'sh -c "exit 3"' >end.txt 2>end.err
equal "the run ends with the command; its status is not weir's" "0 begin end" "$? $(echo $(cat end.txt))"
timeout 120 "$WEIR" probe -q 'interval:ms:50 { exit(); }' -c 'sh -c "trap \"echo term >term.txt; exit\" TERM; while :; do sleep 0.02; done"' >/dev/null 2>end.err
equal "a command that still runs when the script exits is told to end" "0 term" "$? $(cat term.txt)"
fails "a command that does not exist is one sentence" 1 "weir: .*no-such-command" timeout 120 "$WEIR" probe -q 'begin { exit(); }' -c no-such-command
fails "a process that does not exist is one sentence" 1 "weir: process 4194303" timeout 120 "$WEIR" probe -q 'begin { exit(); }' -p 4194303
# It lives until the script has begun, however long that takes.
: >gone.txt
bash -c 'until [ -s gone.txt ]; do sleep 0.05; done' &
timeout 120 "$WEIR" probe -q 'begin { printf("begin\n"); } interval:s:120 { printf("late\n"); }' -p $! >gone.txt 2>gone.err
equal "the run ends when the processes of -p have ended" "0 begin" "$? $(cat gone.txt)"

# --- Ctrl-C and a closed pipe ---
timeout 120 "$WEIR" probe -q 'begin { @n = count(); printf("begin\n"); } interval:ms:10 { @n = count(); } end { printf("end\n"); }' >int.txt 2>int.err &
weir=$!
until_line int.txt begin $weir
kill -INT $weir
wait $weir
equal "SIGINT ends the run: end{} and maps come" "0 begin end @n:" "$? $(echo $(sed 's/: [0-9]*$/:/' int.txt))"
timeout 120 "$WEIR" probe -q 'interval:ms:1 { printf("line\n"); }' 2>pipe.err | head -n 2 >pipe.txt
equal "a reader that goes away ends it without a complaint" "line line " "$(echo $(cat pipe.txt)) $(cat pipe.err)"
