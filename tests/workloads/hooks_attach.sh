# SPDX-License-Identifier: MIT
# Attach to and detach from programs that are at work: nothing is lost, every byte of code is restored.
# weir-test: alone: attaches within a time
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"
times=5
[ -z "${WEIR_SLOW:-}" ] || times=10
[ -z "$WEIR_SAN" ] || times=3

cat >code.py <<'PY'
# code.py PID: how many bytes of executable mappings differ from their files.
import sys
pid, n, checked = sys.argv[1], 0, 0
with open(f"/proc/{pid}/mem", "rb") as mem:
    for line in open(f"/proc/{pid}/maps"):
        f = line.split(None, 5)
        if "x" not in f[1] or len(f) < 6 or not f[5].startswith("/") or "libweir.so" in f[5]:
            continue
        start, end = (int(x, 16) for x in f[0].split("-"))
        try:
            with open(f[5].strip(), "rb") as file:
                file.seek(int(f[2], 16))
                want = file.read(end - start)
        except OSError:
            continue
        mem.seek(start)
        got = mem.read(len(want))
        checked += len(want)
        n += sum(a != b for a, b in zip(want, got)) if want != got else 0
print(n if checked > 100000 else "nothing was compared")
PY

# A program that counts its own calls.
build busy busy.c -O2 || exit 1
for threads in 1 4; do
	rm -f progress
	./busy progress 60 $threads >out.txt 2>&1 &
	target=$!
	sleep 0.3
	for ((i = 0; i < 3; i++)); do
		"$WEIR" record -q -p $target --events '*' --duration 0.2 -o t.weir 2>err.txt
		status=$?
		[ $status -eq 0 ] || [ $status -eq 3 ] || { not_ok "attached to $threads threads (status $status)" && cat err.txt; }
	done
	"$WEIR" report flat t.weir --json >flat.json 2>err.txt
	check "attached to $threads threads: calls were recorded" test "$(json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name']=='step')")" -gt 100
	equal "detached from $threads threads: every byte is as before" 0 "$(python3 code.py $target)"
	printf 1 | dd of=progress bs=1 seek=$((63 * 8)) conv=notrunc status=none # it may end
	wait $target
	equal "attached to $threads threads: the program has worked" "wrong 0, changed 0" "$(cat out.txt)"
done

if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	port=$((20000 + RANDOM % 20000))
	redis-server --port $port --save '' --bind 127.0.0.1 --io-threads 2 >redis.txt 2>&1 &
	server=$!
	for _ in $(seq 50); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.1; done
	before=$(python3 code.py $server)
	(for ((i = 0; i < 1000; i++)); do
		[ -e stop ] || redis-benchmark -p $port -q -n 2000 -c 20 -t set,get,lpush,lrange_100 || echo "failed $?"
	done >benchmark.txt 2>&1) &
	load=$!
	sleep 0.3
	failed=0 events=0 bytes=0
	for ((i = 0; i < times; i++)); do
		"$WEIR" record -q -p $server --events 'libc.so*:/^(read|write|epoll_wait)$/,*' --duration 0.2 -o r$i.weir 2>err.txt
		status=$?
		[ $status -eq 0 ] || [ $status -eq 3 ] || { failed=$((failed + 1)) && cat err.txt; }
		[ "$(python3 code.py $server)" = "$before" ] || bytes=$((bytes + 1))
	done
	touch stop
	wait $load
	for ((i = 0; i < times; i++)); do
		"$WEIR" report hooks r$i.weir --json >hooks.json 2>err.txt
		n=$(json hooks.json "sum(r['hits'] or 0 for r in j['rows'])")
		[ "${n:-0}" -gt 0 ] && events=$((events + 1))
	done
	equal "redis-server: attached and detached $times times under load" 0 $failed
	equal "redis-server: calls were recorded each time" $times $events
	equal "redis-server: every byte of code was restored each time" 0 $bytes
	equal "redis-server: no request has failed" "" "$(grep -iE 'error|fail|closed' benchmark.txt | head -n 3)"
	check "redis-server: requests were served meanwhile" grep -q 'requests per second' benchmark.txt
	equal "redis-server: still answers" PONG "$(redis-cli -p $port ping)"
	kill $server
	wait $server
	equal "redis-server: ends as it should" 0 $?
	check "redis-server: and has not crashed" sh -c '! grep -iq "crash\|signal 11\|bug report" redis.txt'
else
	skip "redis-server: not installed"
fi

# At many of the system calls where dlopen could be called, the lock of the threads' stacks is held.
build joins joins.c -O2 || exit 1
mkfifo line
for ((i = 0; i < times; i++)); do
	./joins <line >out.txt &
	target=$!
	exec 9>line
	sleep 0.1
	timeout 60 "$WEIR" record -q -p $target --events 'join_*' --duration 0.05 -o t.weir 2>err.txt
	[ $? -eq 0 ] || { not_ok "attached to a program that gives back stacks of threads" && cat err.txt; }
	exec 9>&-
	for _ in $(seq 100); do [ -s out.txt ] && break; sleep 0.1; done
	grep -qx worked out.txt || not_ok "the program that gives back stacks goes on behind that"
	{ kill -KILL $target; wait $target; } 2>/dev/null
done
equal "attached to a program that gives back stacks of threads, $times times: it goes on" worked "$(cat out.txt)"

# Most of its time is in the traps of a function that is too short for a jump: a thread that is stopped in the midst of
# one keeps the signal, and gets it where it belongs.
cat >short.c <<'C'
#include <signal.h>
#include <unistd.h>
static volatile sig_atomic_t is_over;
static void on_end(int signal) { (void)signal; is_over = 1; }
__attribute__((noinline, noclone)) int tiny(int i) { __asm__ volatile(""); return i + 1; }
int main(void)
{
	volatile int n = 0;

	signal(SIGTERM, on_end);
	alarm(120);
	while (!is_over)
		n = tiny(n);
	return 7;
}
C
gcc -O1 -o short short.c
./short &
target=$!
for ((i = 0; i < 2 * times; i++)); do
	"$WEIR" record -q -p $target --functions tiny --duration 0.05 -o t.weir 2>err.txt || { cat err.txt && break; }
done
equal "a program full of breakpoints: attached again and again" $((2 * times)) $i
equal "a program full of breakpoints: its function is hooked by one" int3 \
	"$("$WEIR" report hooks t.weir --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["rows"][0]["method"])')"
kill -TERM $target
wait $target
equal "a program full of breakpoints ends as it would" 7 $?

# While a moment is looked for in which a function can be called, the program becomes another one: said at once, of it.
cat >leaves.c <<'C'
#include <stdlib.h>
#include <unistd.h>
static char room[1 << 20];
static size_t used;
void *malloc(size_t n) { used += (n + 15) & ~(size_t)15; return room + used; }
void free(void *p) { (void)p; }
__attribute__((noinline, noclone)) long leaves(long i) { return i * 5 + 3; }
int main(void)
{
	unsigned long long begin = __builtin_ia32_rdtsc();
	volatile long n = 0;

	while (__builtin_ia32_rdtsc() - begin < 4000000000u) /* no system call, which would be a moment */
		n = leaves(n);
	execl("/bin/sleep", "sleep", "60", NULL);
	return 1;
}
C
gcc -O1 -fno-builtin -o leaves leaves.c
./leaves &
target=$!
runs $target
fails "a program that is another one before it can be hooked" 1 'became another program or ended meanwhile$' \
	timeout 60 "$WEIR" record -q -p $target --functions leaves -o t.weir
equal "goes on as that" sleep "$(cat /proc/$target/comm)"
{ kill -KILL $target; wait $target; } 2>/dev/null
finish
