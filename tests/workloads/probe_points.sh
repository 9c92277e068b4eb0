# SPDX-License-Identifier: MIT
# weir-test: root: probes need it
# Kinds of trace points that are neither functions nor events: signals to weir, watchpoints, iterators; patterns that
# match nothing; lists. What is counted is compared with what the traced program says itself.
. "$ROOT/tests/lib.sh"

modes=
for mode in 64 32; do
	gcc -m$mode -g -O1 -pthread -o watched$mode "$ROOT/tests/fixtures/probe/watched.c" 2>gcc.txt && modes="$modes $mode" ||
		skip "$mode-bit watchpoints: gcc -m$mode does not work here"
done

# --- watchpoints ----------------------------------------------------------------------------------------------------
for mode in $modes; do
	timeout 120 "$WEIR" probe -q -O w.txt 'watchpoint:0x20000000:4:w { @[bits, tid == pid ? 1 : 0] = count(); }' -c ./watched$mode >said.txt 2>w.err
	rc=$?
	equal "$mode-bit, -c: writes of the command, its thread and its child are counted" "0 15 writes, the last 104
@[$mode, 0]: 5
@[$mode, 1]: 10" "$rc $(cat said.txt)
$(grep . w.txt | sort)"
	timeout 120 "$WEIR" probe -q -O x.txt 'watchpoint:0x20000400:1:x { printf("%d %lx\n", bits, reg("ip")); }' -c ./watched$mode >/dev/null 2>x.err
	equal "$mode-bit: execution is seen at its address" "$mode 20000400" "$(cat x.txt)"
	timeout 120 "$WEIR" probe -q -O rw.txt 'watchpoint:0x20000000:4:rw { @ = count(); }' -c ./watched$mode >/dev/null 2>rw.err
	equal "$mode-bit: rw counts the read, too" "@: 16" "$(grep . rw.txt)"

	mkfifo in$mode
	./watched$mode wait <in$mode >running.txt &
	pid=$!
	exec 5>in$mode
	until_line running.txt ready $pid
	rm -f p.err # what the other mode was told is no answer here
	timeout 120 "$WEIR" probe -O p.txt 'watchpoint:0x20000000:4:w { @[tid == pid ? 1 : 0] = count(); }' -p $pid 2>p.err &
	weir=$!
	until_line p.err Attached $weir
	feed 5
	exec 5>&-
	wait $weir
	equal "$mode-bit, -p: threads that are there already are watched, and children" "@[0]: 5 @[1]: 10" "$(echo $(grep . p.txt | sort))"
	wait $pid
done
first=${modes# }
first=${first%% *}
script=
for i in 0 1 2 3 4; do script="$script watchpoint:0x2000000$((2 * i)):1:w { @ = count(); }"; done
timeout 120 "$WEIR" probe -q "$script" -c ./watched$first >out.txt 2>err.txt
equal "a fifth watchpoint: the processor has four" 1 $?
check "and the sentence says so" grep -q '4 debug registers' err.txt

# --- lines of source ------------------------------------------------------------------------------------------------
cat >lines.c <<'C'
#include <stdio.h>
static inline __attribute__((always_inline)) int twice(int x)
{
	return x + x;
}
int sum(int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += twice(i);
	return s;
}
int main(void)
{
	printf("%d\n", sum(3));
	printf("%d\n", twice(sum(4)));
	return 0;
}
C
for mode in $modes; do
	mkdir -p sub && cp lines.c sub/other.c
	gcc -m$mode -g -O0 -o lines$mode "$PWD/sub/other.c"
	timeout 120 "$WEIR" probe -q -O l.txt "uprobe:./lines$mode@other.c:10 { @loop = count(); } uprobe:./lines$mode@sub/other.c:4 { @inlined[func] = count(); }
uprobe:./lines$mode@$PWD/sub/other.c:15 { printf(\"%s %d\\n\", func, bits); }" -c ./lines$mode >/dev/null 2>l.err
	equal "$mode-bit: lines of source, in a loop and in what was inlined, run as often as the program says" \
		"main $mode @loop: 7 @inlined[main]: 1 @inlined[sum]: 7" "$(echo $(grep . l.txt))"
	at=$(gdb -batch -ex 'info line other.c:11' ./lines$mode 2>/dev/null | sed -n 's/.*starts at address \(0x[0-9a-f]*\).*/\1/p')
	ours=$("$WEIR" probe --dry-run "uprobe:./lines$mode@other.c:11 { @ = count(); }" | sed -n 's/.* at \(0x[0-9a-f]*\): .*/\1/p')
	if [ "$at" ]; then
		equal "$mode-bit: the address of a line is gdb's" "$at" "$(printf '0x%x' $((ours)))"
	else
		skip "$mode-bit: the address of a line is gdb's: gdb is not there or says nothing"
	fi
done
timeout 120 "$WEIR" probe -q "uprobe:./lines$first@other.c:6 { @ = count(); }" >/dev/null 2>l.err
equal "a line without code is an error, with the next one that has some" "1 no-symbol 7" \
	"$? $(echo $(sed -n 's/.*\[\(no-symbol\)\]$/\1/p; s/.*next line with code is //p' l.err))"

# --- signals --------------------------------------------------------------------------------------------------------
# signalled SIGNAL PATTERN SCRIPT: sends it to a weir that runs, waits for such a line, then ends that; output in s.txt
signalled() {
	local signal=$1 weir
	rm -f s.err s.txt
	timeout 120 "$WEIR" probe -O s.txt "$3" 2>s.err &
	until_line s.err Attached $!
	weir=$(pgrep -P $! -f 'probe -O s.txt')
	kill -$signal "$weir"
	until_line s.txt "$2" $!
	cp s.txt s.during
	kill -INT "$weir" 2>/dev/null # it may have ended
	wait $!
}
signalled USR1 '^@m' 'begin { @n = 6; @m[1, "a"] = 2; } interval:s:30 { } end { printf("end\n"); }'
equal "SIGUSR1 prints the maps, and the run goes on" "@n: 6 @m[1, a]: 2" "$(echo $(grep . s.during))"
equal "and they are printed once more at its end" "@n: 6 @m[1, a]: 2 end @n: 6 @m[1, a]: 2" "$(echo $(grep . s.txt))"
signalled USR1 two 'begin { @n = 6; } self:signal:SIGUSR1 { @n++; printf("one"); } self:signal:SIGUSR1 { printf(" two\n"); }'
equal "self:signal:SIGUSR1 runs its clauses in their order, in place of that" "one two @n: 7" "$(echo $(grep . s.txt))"
signalled USR2 '^self:' 'self:signal:SIGUSR2 { printf("%s %d %d\n", probe, bits, pid); exit(); }'
check "self:signal:SIGUSR2, too, and exit() ends the run" grep -Eq '^self:signal:SIGUSR2 64 [0-9]+$' s.txt
timeout 120 "$WEIR" probe -q 'self:signal:SIGUSR1 { printf("mine\n"); }' -O c.txt -c 'sh -c "trap \"echo caught\" USR1; kill -USR1 \$PPID; until grep -q mine c.txt; do sleep 0.05; done"' >command.txt 2>&1
equal "a clause keeps the signal from the command" "mine" "$(cat c.txt command.txt)"
timeout 120 "$WEIR" probe -q 'begin { @n = 1; }' -O c.txt -c 'sh -c "trap \"echo caught; exit\" USR1; kill -USR1 \$PPID; while :; do sleep 0.05; done"' >command.txt 2>&1
equal "without one the command gets it" "@n: 1 caught" "$(echo $(cat c.txt command.txt))"

# --- iterators ------------------------------------------------------------------------------------------------------
sleep 60 9<"$ROOT/tests/lib.sh" &
pid=$!
runs $pid
timeout 120 "$WEIR" probe -q -O i.txt "begin { printf(\"first\\n\"); } iter:task { if (ctx.task.tgid == $pid) { printf(\"%s %d\\n\", ctx.task.comm, ctx.task.pid); } } end { printf(\"last\\n\"); }" 2>i.err
equal "iter:task finds a process, between begin and end, and the run is over" "0 first sleep $pid last" "$? $(echo $(cat i.txt))"
timeout 120 "$WEIR" probe -q -O i.txt "iter:task_file { if (ctx.task.pid == $pid) { printf(\"%d\\n\", ctx.fd); } }" 2>i.err
equal "iter:task_file finds its open files" "$(ls /proc/$pid/fd | sort -n)" "$(sort -n i.txt)"
timeout 120 "$WEIR" probe -q -O i.txt "iter:task_vma { if (ctx.task.pid == $pid) { printf(\"%x-%x\\n\", ctx.vma.vm_start, ctx.vma.vm_end); } }" 2>i.err
equal "iter:task_vma finds its mappings" "$(sed 's/ .*//; s/^0*//' /proc/$pid/maps | grep -v ^ffffffffff600000)" "$(cat i.txt)"

# --- arguments of raw tracepoints -----------------------------------------------------------------------------------
timeout 120 "$WEIR" probe -q -O raw.txt 'rawtracepoint:sched_process_exec { printf("%s %d %d\n", str(args.bprm.filename), args.p.tgid == pid, args.old_pid == tid); }' -c 'sh -c "exec /bin/true"' 2>raw.err
check "args.NAME of a raw tracepoint has the kernel's types" grep -qx '/bin/true 1 1' raw.txt

# --- nothing matches ------------------------------------------------------------------------------------------------
timeout 120 "$WEIR" probe 'begin { print(1); } uprobe:libc:no_such_thing_* { }' >out.txt 2>err.txt
equal "a clause whose patterns match nothing does not wait for ever" "1 no-sites" "$? $(sed -n 's/.*error: .*\[\(.*\)\]$/\1/p' err.txt)"
timeout 120 "$WEIR" probe -q 'uprobe:libc:no_such_thing_*, begin { printf("goes on\n"); exit(); }' >out.txt 2>err.txt
equal "beside another point of the clause they do no harm" "0 goes on" "$? $(cat out.txt)"
timeout 120 "$WEIR" probe 'config = { missing_probes = warn } begin { printf("goes on\n"); exit(); } tracepoint:nothing:at_all { } rawtracepoint:nothing* { }' >out.txt 2>err.txt
equal "missing_probes = warn: each is told, the rest runs" "0 goes on 2" "$? $(cat out.txt) $(grep -c 'warning: the clause has no trace point' err.txt)"
timeout 120 "$WEIR" probe 'config = { missing_probes = ignore } tracepoint:nothing:at_all { }' >out.txt 2>err.txt
equal "a script without any trace point is an error in any case" "1 no-sites" "$? $(sed -n 's/.*error: .*\[\(.*\)\]$/\1/p' err.txt)"
timeout 120 "$WEIR" probe -q -O calls.txt 'tracepoint:syscalls:sys_*_nanosleep { @[probe] = count(); }' -c 'sleep 0.01' 2>err.txt
equal "a pattern of tracepoints of calls means entries and returns" \
	"@[syscall:clock_nanosleep:entry]: 1 @[syscall:clock_nanosleep:return]: 1" "$(echo $(grep . calls.txt | sort))"

# --- where numbers of processes are others --------------------------------------------------------------------------
if unshare --fork --pid --mount-proc true 2>unshare.err; then
	timeout 120 unshare --fork --pid --mount-proc "$WEIR" probe -q 'syscall:write:entry { @ = count(); }' -c 'echo x' >out.txt 2>err.txt
	equal "in a pid namespace of its own weir does not trace nobody without a word" "1 1" "$? $(grep -c 'in a pid namespace of its own' err.txt)"
	timeout 120 unshare --fork --pid --mount-proc "$WEIR" probe -q 'syscall:write:entry { @++; exit(); } interval:ms:10 { system("echo x"); }' --unsafe >out.txt 2>err.txt
	check "without -c and -p it traces there as everywhere" grep -q '^@: ' out.txt
else
	skip "weir in a pid namespace: unshare does not work here"
fi

# --- texts ----------------------------------------------------------------------------------------------------------
"$WEIR" probe -q --strlen 5 'begin { print(str($1)); }' abcdefgh >out.txt
timeout 120 "$WEIR" probe -q --strlen 5 -O strlen.txt 'uprobe:libc:puts { printf("%s\n", str(arg0)); } uprobe:libc:fputs { printf("%s\n", str(arg0)); }' -c "./watched$first" >/dev/null 2>&1
cat >text.c <<'C'
#include <stdio.h>
int main(void) { puts("1234567890"); puts("abcde"); puts("xyz"); return 0; }
C
gcc -O0 -o text text.c
timeout 120 "$WEIR" probe -q --strlen 5 -O strlen.txt 'uprobe:libc:puts { printf("%s|\n", str(arg0)); }' -c ./text >/dev/null 2>&1
equal "--strlen 5 is five characters" "12345| abcde| xyz|" "$(echo $(cat strlen.txt))"

"$WEIR" probe 'usdt:/bin/sh:"\"mark\"" { }' >out.txt 2>err.txt
check "a quote inside of quotes is part of the name" grep -qF "static probe '\"mark\"'" err.txt

# --- lists ----------------------------------------------------------------------------------------------------------
cat >listed.c <<'C'
struct pair { int a, b; };
int add_up(struct pair *pairs, unsigned long n, const char *name) { return pairs[n].a + name[0]; }
void nothing(void) { }
int main(void) { struct pair p = {1, 2}; nothing(); return add_up(&p, 0, "x"); }
C
for mode in $modes; do
	gcc -m$mode -g -O0 -o listed$mode listed.c
	"$WEIR" probe -lv "uprobe:./listed$mode:add_up,uretprobe:./listed$mode:add_up" >list.txt
	equal "$mode-bit: -lv tells a function's arguments out of its debug information, and what it returns" \
		"uprobe:./listed$mode:add_up
    struct pair* pairs
    unsigned long n
    char* name
uretprobe:./listed$mode:add_up
    int retval" "$(cat list.txt)"
done
"$WEIR" probe -l "uprobe:./listed$first:noth*,software:cs" "uprobe:./listed$first:nothing" begin >list.txt
equal "-l takes several patterns, sorts and drops doubles" "begin software:cs: uprobe:./listed$first:nothing" "$(echo $(cat list.txt))"
printf 'begin { }\nuprobe:./listed%s:add*, interval:s:2 { exit(); }\n' $first >listed.wr
"$WEIR" probe -l listed.wr >list.txt
equal "-l of a script lists its points" "begin interval:s: uprobe:./listed$first:add_up" "$(echo $(cat list.txt))"
"$WEIR" probe -l -e "$(cat listed.wr)" >other.txt
equal "-l -e likewise" "$(cat list.txt)" "$(cat other.txt)"
"$WEIR" probe -l -p $pid 'uprobe:*:puts' >list.txt
check "-l -p lists functions of the files that the process has mapped" grep -Eq '^uprobe:.*/libc[.-].*:puts$' list.txt
"$WEIR" probe -l "*:./listed$first:nothing" >list.txt
equal "a kind may be a pattern" "uprobe:./listed$first:nothing uretprobe:./listed$first:nothing" "$(echo $(cat list.txt))"
"$WEIR" probe -lv 'struct list_head,enum pid_type' >list.txt
equal "-lv shows structures and enumerations of the kernel" "enum pid_type {
    PIDTYPE_PID = 0,
struct list_head {
    struct list_head *next;
    struct list_head *prev;
};" "$(sed -n '1,2p; /struct list_head {/,$p' list.txt)"
"$WEIR" probe -lv 'iter:task' 'rawtracepoint:sched_process_exec' >list.txt
check "-lv knows ctx of iterators and arguments of raw tracepoints" \
	test "$(grep -c '^    struct task_struct\* ' list.txt)" -eq 2
kill $pid
wait $pid 2>/dev/null
finish
