#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Folders of uftrace; the judge is uftrace report.
# weir-test: once: the corpus of uftrace_fuzz is replayed in the other builds
. "$ROOT/tests/lib.sh"

python3 -SE - "$ROOT/tests/fuzz/corpus/uftrace/calls" <<'PY'
import os, sys
os.mkdir("made")
parts = open(sys.argv[1], "rb").read().split(b"==\n", 3)
for name, part in zip(("task.txt", "sid-1.map", "a.sym", "7.dat"), parts): open("made/" + name, "wb").write(part)
open("made/info", "wb").write(b"Ftrace!\0" + bytes(32))
PY
tree() { "$WEIR" report tree --json "$1" | python3 -SE -c 'import json, sys
print(" ".join("%s:%s:%s:%s" % (r["name"], r["calls"], r["base"], r["cum"]) for r in json.load(sys.stdin)["rows"]))'; }
equal "calls are one to one, arguments are passed over" "7_7:1:0:30 main:1:20:30 f:1:10:10" "$(tree made)"
"$WEIR" report loss made >loss.txt
check "what uftrace lost is lost" grep -q "^ *9  uftrace lost records" loss.txt
check "arguments are told" grep -q "^ *1  calls with arguments" loss.txt
check "and threads without records" grep -q "^ *1  threads without records" loss.txt
head -c 40 made/7.dat >cut.dat && mv cut.dat made/7.dat
fails "a file of records that is cut is refused" 1 "^weir: 'made/7.dat': .* at byte" "$WEIR" report flat made
fails "a folder of something else is no trace" 1 "^weir: '\.'" "$WEIR" report flat .

command -v uftrace >/dev/null || {
	skip "folders of uftrace record: it is not installed"
	finish
}
cat >u.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(int n) { int s = 0; for (volatile int i = 0; i < n; i++) s += i; return s; }
__attribute__((noinline)) int mid(int n) { return leaf(n) + leaf(n / 2); }
__attribute__((noinline)) int deep(int n) { return n ? deep(n - 1) + leaf(n) : 0; }
static void *thread(void *p) { deep(20); return p; }
int main(void)
{
	pthread_t t;
	long s = 0;
	for (int i = 0; i < 50; i++) s += mid(i * 10);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	if (fork() == 0) { deep(7); _exit(0); }
	wait(NULL);
	printf("%ld\n", s);
	return 0;
}
C
gcc -O1 -g -pg -o u u.c -pthread && uftrace record --no-sched -d data ./u >record.txt 2>&1 || {
	skip "folders of uftrace record: $(tail -n 1 record.txt)"
	finish
}
# fork is left twice and entered once, which uftrace takes for two calls, and what the child did in it for one of <0>.
# NAME CALLS SELF, as far as uftrace shows it: three decimals of a unit
uftrace report -d data --no-pager 2>/dev/null | python3 -SE -c 'import re, sys
for line in sys.stdin:
    m = re.match(r" *([\d.]+) +(\w+) +([\d.]+) +(\w+) +(\d+) +(\S+)$", line)
    if m and m[6] not in ("fork", "<0>"): print(m[6], m[5], m[3], m[4])' | sort >judge.txt
"$WEIR" report flat data --json | python3 -SE -c 'import json, sys
units = {w[0]: w[3] for w in map(str.split, open("judge.txt"))}
scale = {"us": 1000, "ms": 1000000, "s": 1000000000}
for r in json.load(sys.stdin)["rows"]:
    if r["kind"] == "thread" or r["name"] == "fork": continue
    unit = units.get(r["name"], "us")
    value = r["base"] * 1000 // scale[unit]
    print(r["name"], r["calls"], "%d.%03d" % (value // 1000, value % 1000), unit)' | sort >ours.txt
equal "calls and times of functions are those of uftrace report, of threads and children too" "$(cat judge.txt)" "$(cat ours.txt)"
check "there are some" grep -q '^deep 29 ' ours.txt
