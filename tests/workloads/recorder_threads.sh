# SPDX-License-Identifier: MIT
# The recorder's own threads at work at once: a program whose threads start, end, load and unload libraries
# and have children, by each way of recording. Small, so that ThreadSanitizer can watch all of them.
# weir-test: tsan
# weir-test: long
. "$ROOT/tests/lib.sh"
cat >work.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline, noclone)) unsigned leaf(unsigned n)
{
	for (unsigned i = 0; i < 2000; i++)
		sink += n;
	return n;
}

__attribute__((noinline, noclone)) void *work(void *arg)
{
	char name[32];

	for (unsigned i = 0; i < 4; i++) {
		void *lib;
		unsigned (*plug)(unsigned);

		snprintf(name, sizeof(name), "./plug%u.so", (i + (unsigned)(long)arg) % 4);
		lib = dlopen(name, RTLD_NOW);
		plug = lib ? (unsigned (*)(unsigned))dlsym(lib, "plug") : NULL;
		if (!plug)
			abort();
		for (unsigned k = 0; k < 10; k++)
			leaf(plug(k));
		dlclose(lib);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;

	(void)argv;
	for (int i = 0; i < rounds; i++) {
		pthread_t t[4];

		for (long k = 0; k < 4; k++)
			pthread_create(&t[k], NULL, work, (void *)k);
		if (!fork())
			_exit((int)leaf(0));
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
		wait(NULL);
	}
	puts("done");
	return 0;
}
C
gcc -O1 -g -o work work.c -lpthread -ldl || exit 1
for i in 0 1 2 3; do
	echo "unsigned plug(unsigned n) { return n + $i; }" >plug.c
	gcc -O1 -fPIC -shared -o plug$i.so plug.c || exit 1
done
hits() { # TRACE: calls of leaf and of work
	"$WEIR" report hooks "$1" --json >hooks.json
	json hooks.json '" ".join(str(sum(r["hits"] for r in j["rows"] if r["function"] == f)) for f in ("leaf", "work"))'
}
# recorded SENTENCE CALLS OPTIONS...: the program is itself, and its calls are these
recorded() {
	local sentence=$1 calls=$2 out
	shift 2
	out=$("$WEIR" record -q -o t.weir "$@" -- ./work 2>err.txt)
	equal "$sentence: the program is as without" "0 done" "$? $out"
	[ -z "$calls" ] || equal "$sentence: its calls" "$calls" "$(hits t.weir)"
	"$WEIR" report flat t.weir >flat.txt 2>err.txt || { not_ok "$sentence: the trace is whole" && cat err.txt; }
}
recorded "samples" ""
recorded "events" "3220 80" --events 'leaf,work,plug*.so:*'
recorded "events without samples" "3220 80" --no-sample --events 'leaf,work,plug*.so:*'
recorded "a tree" "3220 80" --tree --events 'leaf,work,plug*.so:*'
recorded "a budget" "" --budget 1 --events 'leaf,work,plug*.so:*'
recorded "stacks at entries" "" --stack-at work
if "$WEIR" record -q -e wall -o t.weir -- true 2>err.txt; then
	recorded "the wall clock" "" -e wall
else
	skip "the wall clock: $(head -n 1 err.txt)"
fi

# A recorder that comes while the threads are at work, is asked for a snapshot, and goes before they do.
./work 100000 >/dev/null &
pid=$!
runs $pid
attached() { # rc, and err.txt
	local recorder
	"$WEIR" record -q -p $pid --tree --events 'leaf,work,plug*.so:*' --duration 1.5 -o t.weir 2>err.txt &
	recorder=$!
	for ((i = 0; i < 300; i++)); do
		"$WEIR" record --snapshot $pid >snapshot.txt 2>&1 && break
		sleep 0.1
		[ -d /proc/$recorder ] || break
	done
	wait $recorder
	rc=$?
}
# All threads load libraries all the time: a moment when none does may not come within the time for it.
for try in 1 2 3; do
	attached
	grep -q "no thread was found at a moment" err.txt || break
done
check "a running program is recorded (status $rc, try $try)" test $rc -eq 0 -o $rc -eq 3
[ $rc -eq 0 ] || [ $rc -eq 3 ] || cat err.txt
"$WEIR" report flat t.weir >flat.txt 2>err.txt
rc=$?
check "and its trace can be read (status $rc)" test $rc -eq 0 -o $rc -eq 3
check "it goes on afterwards" kill -0 $pid
kill $pid
wait $pid 2>/dev/null

if "$WEIR" probe -q 'begin { exit(); }' >probe.txt 2>&1; then
	echo 'uprobe:./work:work { @n = count(); }' >work.wr
	recorded "a script beside the samples" "" --probe work.wr
	check "the script saw the threads" grep -q '@n: 80' <("$WEIR" report probes t.weir)
	equal "a script alone" "@n: 80" "$("$WEIR" probe -q work.wr -c ./work | grep '^@n')"
else
	skip "scripts: $(head -n 1 probe.txt)"
fi
