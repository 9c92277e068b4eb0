# SPDX-License-Identifier: MIT
# Attached to a program that changes the protection of its own code, and to one that others trace, too.
# weir-test: alone: attaches within a time
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
injector=$BUILD/tests/unit/process/ptrace/inject_test
libraries="$BUILD/lib/x86_64-linux-gnu/libweir.so $BUILD/lib/i386-linux-gnu/libweir.so"
trap 'kill $(jobs -p) 2>/dev/null' EXIT

# At each line it sets the protection of its code, and tells what it is: by a letter of how, and the bits.
cat >own.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) int h_work(int n)
{
	__asm__ volatile("nop; nop; nop; nop; nop" ::: "memory");
	return n + 1;
}
static void tell(void)
{
	unsigned long low, high, here = (unsigned long)h_work;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096], bits[8];

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &low, &high, bits) == 3 && low <= here && here < high)
			puts(bits);
	fclose(f);
}
int main(void)
{
	void *page = (void *)((unsigned long)h_work & ~4095ul);
	int prot, n = 0;
	char how;

	setbuf(stdout, NULL);
	for (tell(); scanf(" %c%d", &how, &prot) == 2; tell()) {
		n = h_work(n);
		if (how == 'l')
			mprotect(page, 4096, prot);
		else if (how == 's')
			syscall(SYS_mprotect, page, 4096, prot);
	}
	return n == 0;
}
C
widths=64
gcc -m64 -O1 -o own64 own.c || exit 1
if gcc -m32 -O1 -o own32 own.c 2>build.txt; then widths="64 32"; else skip "32-bit programs: gcc -m32 does not work here"; fi

# lines N: waits until the program has told N times
lines() {
	for ((i = 0; i < 1000; i++)); do
		[ "$(wc -l <out.txt)" -ge "$1" ] && return
		sleep 0.01
	done
}
# start WIDTH: the program, $pid; its input is $in
start() {
	rm -f in.fifo
	mkfifo in.fifo
	"./own$1" <in.fifo >out.txt 2>&1 &
	pid=$!
	exec {in}>in.fifo
	lines 1
}
# attach: $weir records it, and h_work is hooked
attach() {
	"$WEIR" record -q --no-sample -p "$pid" --events h_work -o t.weir 2>err.txt &
	weir=$!
	for ((i = 0; i < 1000; i++)); do
		grep -q 'rwxp.*/own' "/proc/$pid/maps" && break
		sleep 0.01
	done
	sleep 0.2
}
finish() {
	exec {in}>&-
	wait "$pid"
}

for width in $widths; do
	for case in "l7 rwxp" "s7 rwxp" "l5 r-xp" "n0 r-xp"; do
		start "$width"
		attach
		feed "$in" "${case% *}"
		lines 2
		kill -INT $weir
		wait $weir
		feed "$in" n0
		lines 3
		equal "$width bit: after ${case% *} code stays ${case#* } when the recording has ended" "${case#* }" "$(tail -n 1 out.txt)"
		finish
	done
done

# trace SECONDS: another process traces the program; it has begun when this returns
trace() {
	python3 -c "import ctypes, sys, time
sys.exit('ptrace') if ctypes.CDLL(None).ptrace(0x4206, $pid, None, None) < 0 else time.sleep($1)" &
	tracer=$!
	for ((i = 0; i < 500; i++)); do
		grep -q '^TracerPid:.[1-9]' "/proc/$pid/status" && break
		sleep 0.01
	done
}

start 64
attach
trace 30
"$injector" detach "$pid" $libraries @elsewhere >said.txt 2>&1
check "a process of another recorder is told from ours without a stop" grep -q 'is hooked by another recorder' said.txt
kill $tracer
wait $tracer 2>/dev/null
trace 0.7
kill -INT $weir
wait $weir
equal "a tracer that goes soon is waited for at the end" "0 " "$? $(cat err.txt)"
equal "and the code is restored then" r-xp "$(sed -n 's/^[^ ]* \(..xp\).*\/own64$/\1/p' "/proc/$pid/maps")"
finish
true
