# SPDX-License-Identifier: MIT
# weir-test: slow: hundreds of reports, each a process of its own
# Figures of the page's two engines for random traces and for recorded ones of each kind, and random questions;
# WEIR_SEED repeats a run.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/browser.sh"
need_packages "figures of the page"

cat >work.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static int leaf(int n) { int s = 0; for (int i = 0; i < n; i++) s += i ^ n; return s; }
__attribute__((noinline)) static int twice(int n) { return leaf(n) + leaf(n / 2); }
__attribute__((noinline)) static int down(int n) { return n ? down(n - 1) + twice(2000) : 0; }
static void *work(void *n)
{
	volatile int s = 0;
	for (long i = 0; i < (long)n; i++)
		s += down(6) + twice(3000);
	usleep(1000);
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[3];
	long n = atol(argv[1]);
	for (int i = 2; i < argc; i++)
		fork();
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, (void *)(n + i));
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
C
gcc -O1 -g -o work work.c -lpthread
"$WEIR" record -q -o sampled.weir -- ./work 1000
"$WEIR" record -q --functions 'down,twice' -o merged.weir -- ./work 300 forks
"$WEIR" record -q --functions 'down,twice,leaf' --tree -o tree.weir -- ./work 300
"$WEIR" record -q -e cpu-clock,page-faults -o several.weir -- ./work 300 forks twice
"$WEIR" record -q --pc-only -o places.weir -- ./work 500
"$WEIR" record -q --no-sample --kinds +syscall -o calls.weir -- ./work 20
"$WEIR" record -q --functions leaf --stack-at leaf -o stacks.weir -- ./work 20
"$WEIR" record -q -e wall -o wall.weir -- ./work 300 || rm -f wall.weir # not permitted everywhere
"$WEIR" count gcc -O1 -g -o counted work.c -lpthread >/dev/null 2>&1 && ./counted 3 fork
"$WEIR" steps -q --max 20000 -o steps.weir -- ./work 1 fork >/dev/null 2>&1
python3 - "$RANDOM" <<'P'
import sys
b = bytearray(open("merged.weir", "rb").read())
b[len(b) // 4 + int(sys.argv[1]) % (len(b) // 5)] ^= 0x55 # in the records
open("hurt.weir", "wb").write(b)
P
head -c $(($(stat -c %s merged.weir) * 6 / 10)) merged.weir >cut.weir
traces=$(ls sampled.weir merged.weir tree.weir several.weir places.weir calls.weir stacks.weir wall.weir counted.weir steps.weir cut.weir hurt.weir 2>/dev/null)
check "there are traces of at least eight kinds" [ "$(wc -w <<<"$traces")" -ge 8 ]

# shellcheck disable=SC2086
timeout 400 node "$ROOT/tests/browser/figures.mjs" "${WEIR_SEED:-$RANDOM}" $traces || not_ok "the test ends well: status $?"
