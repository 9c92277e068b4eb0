# SPDX-License-Identifier: MIT
# The recorder is stopped while very many threads look for it: they go on.
# weir-test: alone: runs more threads than there are processors
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
. "$ROOT/tests/lib.sh"
cat >many.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int is_over;
__attribute__((noipa)) long h_leaf(long n)
{
	return n * 3 + 1;
}
static void *work(void *arg)
{
	while (!is_over)
		h_leaf(1);
	return arg;
}
int main(void)
{
	static pthread_t t[400];

	for (int i = 0; i < 400; i++)
		if (pthread_create(&t[i], NULL, work, NULL))
			return 1;
	puts("begun");
	fflush(stdout);
	getchar(); /* the recorder stands still */
	sleep(2);
	is_over = 1;
	for (int i = 0; i < 400; i++)
		pthread_join(t[i], NULL);
	puts("done");
	return 7;
}
C
gcc -O2 -o many many.c -lpthread || exit 1

# until FILE WORD: waits, 30 s at most.
until_says() {
	local i
	for ((i = 0; i < 300; i++)); do
		! grep -q "$2" "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}
mkfifo line
"$WEIR" record -q --tree --no-sample --events 'h_*' -o many.weir -- ./many <line >out.txt 2>err.txt &
w=$!
exec 9>line
until_says out.txt begun
kill -STOP $w
feed 9
check "400 threads end though the recorder stands still" until_says out.txt done
kill -CONT $w
wait $w
equal "and the recorder passes on how the program ended" 7 $?
check "the trace has their calls" sh -c '"$WEIR" report flat many.weir --json >f.json; grep -q h_leaf f.json'
