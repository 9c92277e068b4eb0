# SPDX-License-Identifier: MIT
# weir-test: root: losses of probes
# Nothing is lost silently: memory that cannot be read, full maps, full rings, loops cut short; each is counted
# for its clause, told at the end, and seen by error{}, the exit status and --strict.
. "$ROOT/tests/lib.sh"
gcc -m64 -O1 -g -o absent64 "$ROOT/tests/fixtures/probe/absent.c" || { not_ok "the program compiles" && finish; }
modes=64
if gcc -m32 -O1 -g -o absent32 "$ROOT/tests/fixtures/probe/absent.c" 2>gcc.txt; then
	modes="32 64"
else
	skip "texts of 32-bit programs that are not in memory: gcc -m32 does not work here"
fi
{
	head -c 4096 /dev/zero
	printf 'text on the second page'
	head -c 8000 /dev/zero
} >pages.bin
sync pages.bin

# probe NAME ARGUMENTS...: NAME.txt, NAME.err, $rc
probe() {
	local name=$1
	shift
	timeout 120 "$WEIR" probe -q "$@" >"$name.txt" 2>"$name.err"
	rc=$?
}

for mode in $modes; do
	# --- texts that are not resident ---
	probe text$mode "uprobe:./absent$mode:takes_text { printf(\"%d %s\\n\", args.n, str(args.text)); }" -c "./absent$mode pages.bin"
	equal "$mode-bit: a text that is not in memory is read all the same, one that is nowhere is not printed" "1 text on the second page
3 resident text" "$(cat text$mode.txt)"
	equal "$mode-bit: the one that is nowhere is counted for its clause" \
		"3 weir: -e:1: clause 'uprobe:./absent$mode:takes_text': 1 failed read" "$rc $(cat text$mode.err)"
	probe wait$mode --without sleep "uprobe:./absent$mode:takes_text { printf(\"%d %s\\n\", args.n, str(args.text)); }" -c "./absent$mode pages.bin"
	equal "$mode-bit: without sleep it is a failed read and never an empty text" "3 resident text" "$(grep '^[0-9]' wait$mode.txt)"
	check "$mode-bit: and both are counted" grep -q '2 failed reads' wait$mode.err
	# At a system call nothing may sleep.
	probe call$mode "syscall:openat:entry /args.dfd == -1/ { printf(\"%s\\n\", str(args.filename)); }" -c "./absent$mode pages.bin"
	equal "$mode-bit: at a system call a text that is not in memory is a failed read" \
		"3  weir: -e:1: clause 'syscall:openat:entry': 1 failed read" "$rc $(cat call$mode.txt) $(cat call$mode.err)"
done

# --- error{} ---
probe error 'uprobe:./absent64:takes_text {
	printf("%d\n", args.n);
	printf("%s\n", str(args.text));
	printf("after %d\n", args.n);
}
error { printf("failed at line %d: address 0x%x errno %d in %s\n", errline, erraddr, errno, comm); }' -c "./absent64 pages.bin"
equal "error{} knows line, address and error; the clause ends there" "1
text on the second page
after 1
2
failed at line 3: address 0x8 errno -14 in absent64
3
resident text
after 3" "$(sed 's/errno 14/errno -14/' error.txt)"
equal "what error{} has handled is a loss all the same" "3" "$rc"

# --- texts that are cut: the program has them of 127 to 4000 characters ---
cat >long.c <<'C'
#include <string.h>
static char text[5000];
__attribute__((noinline)) int take(const char *s, int n) { __asm__ volatile("" ::: "memory"); return s[0] + n; }
int main(void)
{
	int lengths[] = {4000, 127, 128, 129, 5, 0};

	for (int i = 0; i < 6; i++) {
		memset(text, 0, sizeof(text));
		take(memset(text, 'x', lengths[i]), lengths[i]);
	}
	return 0;
}
C
for mode in $modes; do
	gcc -m$mode -O1 -g -o long$mode long.c
	probe long$mode "uprobe:./long$mode:take { print((args.n, strlen(str(args.s)))); }" -c ./long$mode
	equal "$mode-bit: texts that str() cuts are told, and are no loss" "0 (4000, 128) (127, 127) (128, 128) (129, 128) (5, 5) (0, 0) weir: -e:1: clause 'uprobe:./long$mode:take': 2 texts cut at the limit of str() (--strlen) or join()" \
		"$rc $(echo $(cat long$mode.txt long$mode.err))"
	probe long$mode "uprobe:./long$mode:take { print(str(args.s, 3)); if (str(args.s) == \"xx\") { print(1); } }" -c ./long$mode
	equal "$mode-bit: those of a given length, and comparisons, cut nothing" "0 " "$rc $(cat long$mode.err)"
	probe long$mode --strlen 4001 "uprobe:./long$mode:take { @ = max(strlen(str(args.s))); }" -c ./long$mode
	equal "$mode-bit: with a higher limit nothing is cut" "0 @: 4000" "$rc $(echo $(cat long$mode.txt long$mode.err))"
done
for mode in $modes; do
	cat >words.c <<'C'
#include <string.h>
#include <unistd.h>
int main(void)
{
	static char text[300];
	volatile size_t in_memory = strlen("/nowhere");
	char *words[] = {"true", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", text, "16", NULL, NULL};

	for (int i = 0; i < 256; i++)
		text[i] = 'x';
	for (int i = 0; i < 16; i++)
		in_memory += strlen(words[i]);
	for (int i = 0; i < 3; i++) {
		execve("/nowhere", words, words);
		words[16] = i ? words[16] : "17";
		text[256] = i ? 'x' : 0;
	}
	return 0;
}
C
	gcc -m$mode -O1 -o words$mode words.c
	probe words$mode 'syscall:execve:entry /str(args.filename) == "/nowhere"/ { join(args.argv); }' -c ./words$mode
	line="true 2 3 4 5 6 7 8 9 10 11 12 13 14 $(printf 'x%.0s' {1..256}) 16"
	equal "$mode-bit: join() tells the words that it leaves out, and the rest of those that are too long" "0 $line $line $line weir: -e:1: clause 'syscall:execve:entry': 3 texts cut at the limit of str() (--strlen) or join()" \
		"$rc $(echo $(cat words$mode.txt words$mode.err))"
done

# --- a full map ---
probe full --max-entries 10 'begin { $i = 0; while ($i < 15) { @m[$i] = $i; $i++; } }'
equal "a map without room keeps what it has" "10" "$(grep -c '^@m' full.txt)"
equal "and the rest is counted" "3 weir: -e:1: clause 'begin': 5 values that found no room in their map" \
	"$rc $(cat full.err)"

# --- a full ring ---
probe ring --ring 4 'begin { for ($i : 0..1500) { printf("%d abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz\n", $i); } }'
lost=$(grep -o '[0-9]* lost record' ring.err | cut -d' ' -f1)
equal "records are printed or counted as lost" "1500 3" "$(($(wc -l <ring.txt) + ${lost:-0})) $rc"
check "a ring of 4 KB loses some ($lost)" [ "${lost:-0}" -gt 0 ]

# --- a loop that is cut short ---
probe loop 'begin { @n = 5000; for ($i : 0..@n) { $i2 = $i; while ($i2 >= 0) { @turns = count(); } } printf("behind\n"); }'
check "a loop that is cut short is counted" [ $rc -eq 3 -a -s loop.err ]

# --- nothing is lost behind exit() ---
cat >hot.c <<'C'
__attribute__((noinline)) int hot(int i) { __asm__ volatile(""); return i + 1; }
int main(void) { for (int i = 0; i < 1000000; i++) hot(i); }
C
gcc -O1 -o hot hot.c
for status in 0 0 0 7; do
	probe hot --ring 4 "uprobe:./hot:hot { printf(\"%d abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz\n\", arg0);
		@hits = count(); if (arg0 == 20) { exit($status); } }" -c ./hot
	equal "exit($status) in a clause that goes on being hit loses nothing" "$status 21 @hits: 21 0" \
		"$rc $(grep -c abc hot.txt) $(grep @hits hot.txt) $(wc -c <hot.err)"
done

# --- what is in the ring at the end ---
probe rest --ring 65536 'begin { $i = 0; while ($i < 1200000) { printf("%d\n", $i); $i++; } } end { printf("end\n"); }'
equal "records of a large ring are all printed" "0 1200000 end" "$rc $(($(wc -l <rest.txt) - 1)) $(tail -n 1 rest.txt)"
# A command of system() makes the next records, so there is always one; Ctrl-C is heard all the same.
cat >loaded.py <<'E'
import re, signal, subprocess, sys
weir = subprocess.Popen([sys.argv[1], "probe", "--unsafe", 'tracepoint:sched:sched_switch { system("echo command"); } '
                         'end { system("sleep 0.2; echo last"); printf("end\\n"); }'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
for n, line in enumerate(weir.stdout):
    if n == 20:
        break
weir.send_signal(signal.SIGINT)
try:
    out, err = weir.communicate(timeout=60)
    told = re.search(rb"(\d+) commands of system\(\) were not run", err)
    print(weir.returncode, out.decode().split("\n")[-3:], "told" if told or b"lost" in err else "silent")
except subprocess.TimeoutExpired:
    weir.kill()
    print("goes on after SIGINT")
E
equal "a script that keeps itself busy with commands ends when it is told to" "3 ['last', 'end', ''] told" "$(python3 loaded.py "$WEIR")"

# --- hits that the kernel does not run a program at ---
# The same point as a raw tracepoint, which the kernel does not skip, says how many there were; one that comes at the very
# moment when clauses are switched on, or off, may be in one number and not in the other.
cp "$(type -P true)" weir_slow
timeout 120 "$WEIR" probe -f json -O missed.txt 'tracepoint:sched:sched_process_exec /comm == "weir_slow"/ { $i = 0; while ($i < 3000000) { @turns = count(); $i++; } }
tracepoint:timer:hrtimer_expire_entry { @seen = count(); }
rawtracepoint:hrtimer_expire_entry { @all = count(); }' 2>missed.err &
weir=$!
until_line missed.err Attached $weir
for i in 1 2 3 4 5 6 7 8; do ./weir_slow; done
kill -INT $(pgrep -P $weir)
wait $weir
equal "hits that come while another program runs on the CPU are told" "3 True True" "$? $(python3 -c '
import json
rows = [json.loads(l)  for l in open("missed.txt")]
maps = {k: v for r in rows if r["type"] == "map" for k, v in r["data"].items()}
missed = {r["data"]["probe"]: r["data"]["missed"] for r in rows if r["type"] == "loss"}["tracepoint:timer:hrtimer_expire_entry"]
print(missed > 9, abs(maps["@all"] - maps["@seen"] - missed) <= 2 or (maps, missed))')"

# --- ticks that weir comes to too late ---
cat >late.py <<'E'
import json, signal, subprocess, sys, time
weir = subprocess.Popen([sys.argv[1], "probe", "-q", "-f", "json", 'interval:ms:1 { @n = count(); } interval:ms:300 { printf("x\\n"); }'],
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
weir.stdout.readline()
weir.send_signal(signal.SIGSTOP)
time.sleep(1.5)
weir.send_signal(signal.SIGCONT)
for _ in range(7): # five were due meanwhile
    weir.stdout.readline()
weir.send_signal(signal.SIGINT)
rows = [json.loads(line) for line in weir.communicate()[0].decode().split("\n") if line]
late = sum(r["data"]["late_ticks"] for r in rows if r["type"] == "loss")
counted = sum(r["data"]["@n"] for r in rows if r["type"] == "map")
print(weir.returncode, late > 0, counted >= 1000, counted + late >= 1500)
E
equal "ticks of an interval that was not served for long are run, or told" "3 True True True" "$(python3 late.py "$WEIR")"

# --- division by zero ---
probe zero 'begin { @d = 0; printf("%d\n", 1 / @d); } begin { printf("next\n"); }'
equal "a division by zero ends its clause and is counted" "3 next 1 division by zero" \
	"$rc $(grep -v '^@\|^$' zero.txt) $(grep -o '1 division by zero' zero.err)"

# --- --strict and JSON ---
probe strict --strict 'interval:ms:10 { @n++; } begin { @p = (uint8 *)8; printf("%d\n", *@p); } interval:s:10 { exit(); }'
equal "--strict ends the run with status 3" "3 1" "$rc $(grep -c -- --strict strict.err)"
probe json -f json 'begin { printf("%d\n", *(uint8 *)8); } begin { printf("fine\n"); }'
equal "JSON has a loss object with clause and numbers" "3 1 begin 1 1" "$rc $(python3 -c '
import json
rows = [json.loads(l) for l in open("json.txt")]
loss = [r["data"] for r in rows if r["type"] == "loss"]
print(len(loss), loss[0]["probe"], loss[0]["clause"], loss[0].get("failed_reads"))')"
probe fine 'begin { printf("%d\n", 5); }'
equal "a run without losses has status 0 and says nothing" "0 5 " "$rc $(cat fine.txt) $(cat fine.err)"
probe status 'begin { printf("%d\n", *(uint8 *)8); } begin { exit(4); }'
equal "exit(N) of the script is the status, losses or not" "4" "$rc"

# --- mappings of processes that were not heard of in time ---
cat >mapper.py <<'E'
import mmap, os
fd = os.open("/bin/true", os.O_RDONLY)
for i in range(120000):
    mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE).close()
E
"$WEIR" probe -f json -O mapped.txt 'uprobe:./absent64:takes_text { @[ustack] = count(); }' 2>mapped.err &
weir=$!
until_line mapped.err Attached $weir
kill -STOP $weir
python3 mapper.py
./absent64 pages.bin >absent.txt # has a stack, whose names are asked for
kill -CONT $weir
kill -INT $weir
wait $weir
equal "lost records of mappings are a loss of the run: status, sentence and JSON" "3 1 True 0" "$? $(
	grep -c '^weir: [0-9]* records of mappings were lost: names may be missing$' mapped.err) $(python3 -c '
import json
loss = [r["data"] for r in map(json.loads, open("mapped.txt")) if r["type"] == "loss" and "mappings" in r["data"]]
print(loss[0]["mappings"] > 0, loss[0]["commands"])')"

# --- more processes than are followed at a time ---
gcc -D_GNU_SOURCE -O1 -o crowd "$ROOT/tests/fixtures/probe/crowd.c" || not_ok "the program with many children compiles"
crowd=17000
if [ "$(./crowd $crowd)" = $crowd ]; then
	probe crowd -f json 'syscall:getppid { @n = count(); }' -c "./crowd $crowd"
	# Others may have processes, too: what the program itself says that it had is what counts.
	equal "processes that are too many to be followed are counted: those that are traced and those that are not are all" "3 $(grep -x '[0-9]*' crowd.txt)" "$rc $(python3 -c '
import json
rows = [json.loads(l) for l in open("crowd.txt") if l.startswith("{")]
loss = [r["data"]["left_out"] for r in rows if r["type"] == "loss"]
traced = [v for r in rows if r["type"] == "map" for v in r["data"].values()]
print(traced[0] + loss[0])')"
	mkfifo gather
	./crowd $crowd line now <gather >gathered.txt &
	pid=$!
	exec 5>gather
	until_line gathered.txt made $pid
	timeout 120 "$WEIR" probe -O there.txt 'syscall:getppid { @n = count(); }' -p $pid 2>there.err &
	weir=$!
	until_line there.err Attached $weir
	feed 5
	exec 5>&-
	wait $weir
	rc=$?
	wait $pid
	equal "so are those that are there already when weir comes" "3 $(grep -x '[0-9]*' gathered.txt)" \
		"$rc $(($(sed -n 's/^@n: //p' there.txt) + $(sed -n 's/.*: \([0-9]*\) processes that are not.*/\1/p' there.err)))"
	probe few 'syscall:getppid { @n = count(); }' -c "./crowd 100"
	equal "fewer are all traced" "0 @n: 100" "$rc $(grep -o '@n: .*' few.txt)"
else
	skip "more processes than are followed: this machine does not have $crowd at a time"
fi
