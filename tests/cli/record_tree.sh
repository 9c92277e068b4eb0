# SPDX-License-Identifier: MIT
# --tree: the call tree is kept in the program. --snapshot: what a recording has so far.
. "$ROOT/tests/lib.sh"
prog=tree_$$
cat >prog.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define F __attribute__((noinline)) void
volatile unsigned long n;
volatile int asked;
F leaf(int k) { while (k--) n++; }
F heavy(void) { for (int i = 0; i < 20; i++) leaf(200000); n++; }
F light(void) { leaf(3); n++; }
F deep(int k) { if (k) deep(k - 1); else leaf(1); n++; }
F request(void) { heavy(); light(); light(); n++; }
F child(void) { leaf(1); leaf(2); n++; }
void *thread(void *p) { light(); n++; return p; }
void on_signal(int s) { asked = s; }
int main(int argc, char **argv)
{
	pthread_t t;
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 10; i++) request();
	deep(argc > 1 ? 1000 : 100000);
	for (int i = 0; i < 3; i++) { pthread_create(&t, 0, thread, 0); pthread_join(t, 0); }
	if (!fork()) { child(); _exit(0); }
	wait(0);
	while (argc > 1 && access(argv[1], F_OK) < 0 && !asked) usleep(10000);
	puts(asked ? "asked" : "done");
	return 0;
}
C
gcc -O1 -o $prog prog.c -lpthread || exit 1
ulimit -s unlimited # for the recursion

calls() { # TRACE: "function calls" of every function that was called, by name
	"$WEIR" report hooks "$1" --json >hooks.json
	json hooks.json '"\n".join(sorted("%s %d" % (r["function"], r["hits"]) for r in j["rows"] if r["hits"]))'
}
paths() { # TRACE: "level name calls" of the main thread's tree as far as it is not the recursion
	"$WEIR" report tree "$1" --metric calls --json >tree.json
	json tree.json '"\n".join("%d %s %s" % (r["level"], r["name"], r["calls"]) for r in j["rows"]
		if r["calls"] and not r["sampled"] and r["level"] in range(1, 4) and r["name"] != "deep")'
}

"$WEIR" record -q --no-sample --events '*' -o events.weir -- ./$prog >out.txt
"$WEIR" record -q --no-sample --tree --events '*' -o tree.weir -- ./$prog >out.txt
equal "the program's output is its own" "done" "$(cat out.txt)"
has() { grep -qx "$1" <<<"$2"; } # LINE TEXT
check "recursion 100,000 deep is counted" has 'deep 100001' "$(calls tree.weir)"
check "calls of threads and of a forked child are counted" has 'leaf 226' "$(calls tree.weir)"
equal "calls are those of a full trace" "$(calls events.weir)" "$(calls tree.weir)"
# main is open when the child is made: a full trace enters it again, the child's tree counts no call.
equal "paths are those of a full trace" "$(paths events.weir | sort -u)" "$(paths tree.weir | sort -u)"

"$WEIR" record -q --no-sample --tree --prune 0.01 --events '*' -o pruned.weir -- ./$prog >out.txt
equal "calls are the same when little things are pruned" "$(calls tree.weir)" "$(calls pruned.weir)"
equal "what has little of its caller's time is pruned" "" "$(paths pruned.weir | grep '^3 light')"
check "what has most of it is not" has '3 heavy 10' "$(paths pruned.weir)"

# --- snapshots ---

wait_for() { # COMMAND...: until it succeeds
	for _ in $(seq 300); do
		"$@" >wait.txt 2>&1 && return 0
		sleep 0.1
	done
	return 1
}
target() { pgrep -xn "${prog:0:15}"; }

"$WEIR" record -q --no-sample --tree --events '*' -o live.weir -- ./$prog stop >live.txt &
recorder=$!
wait_for target
pid=$(target)
sleep 1
path=$("$WEIR" record --snapshot "$pid")
equal "a snapshot is asked for by the program's pid" "$PWD/live.weir.1" "$path"
check "and by the recorder's" [ "$("$WEIR" record --snapshot $recorder)" = "$PWD/live.weir.2" ]
kill -USR1 $recorder
check "and by a signal" wait_for test -s live.weir.3
bytes=$(stat -c %s live.weir)
check "snapshots leave nothing in the trace itself" [ "$bytes" -lt 100000 ]
for i in 1 2 3; do
	"$WEIR" report flat live.weir.$i >flat.txt 2>err.txt
	equal "snapshot $i is a complete trace" "0" "$?$(cat err.txt)"
	check "snapshot $i has the calls so far, and main is open" \
		has '1 main 1' "$(paths live.weir.$i)"
done
check "the program runs on" kill -0 "$pid"
touch stop
wait $recorder
equal "and ends as it would have" "0 done" "$? $(cat live.txt)"
equal "the whole trace has all calls" "$(calls tree.weir | sed 's/^deep .*/deep 1001/')" "$(calls live.weir)"

rm stop
"$WEIR" record -q --no-sample --events 'request' -o flow.weir -- ./$prog stop >flow.txt &
recorder=$!
wait_for target
sleep 1
equal "without --tree the trace itself can be read" "$PWD/flow.weir" \
	"$("$WEIR" record --snapshot $recorder)"
"$WEIR" report flat flow.weir --metric calls --json >flat.json 2>err.txt
equal "up to that moment" 10 "$(json flat.json '[r["calls"] for r in j["rows"] if r["name"] == "request"][0]')"
kill -USR1 $recorder
wait $recorder
equal "and a plain signal is the program's" asked "$(cat flow.txt)"

sleep 60 &
fails "a process that nobody records has no snapshot" 1 'neither.*nor recorded' \
	"$WEIR" record --snapshot $!
kill $!
fails "a process that is not there has none" 1 'no such process' "$WEIR" record --snapshot 99999999
fails "a snapshot is of a process" 2 'not a process id' "$WEIR" record --snapshot x
