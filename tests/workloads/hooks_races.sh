# SPDX-License-Identifier: MIT
# weir-test: tsan
# Processes, threads and libraries that come and go while functions are hooked: what the recorder's
# threads share. In a build with SAN=thread every race that is seen is a failure.
. "$ROOT/tests/lib.sh"

cat >come_and_go.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int work(int i)
{
	__asm__ volatile("" : "+r"(i));
	return i * 3;
}
static void *run(void *arg)
{
	for (int i = 0; i < 1000; i++)
		work(i);
	return arg;
}
static void threads(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, run, 0);
	void *z = dlopen("libz.so.1", RTLD_NOW);
	if (z)
		dlclose(z);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
}
int main(void)
{
	for (int i = 0; i < 40; i++) {
		if (fork() == 0) {
			threads();
			_exit(0);
		}
		threads();
	}
	while (wait(0) > 0)
		;
	return 0;
}
END
gcc -O1 -o come_and_go come_and_go.c -lpthread -ldl || exit 1

without_moves= # TSan of older compilers cannot have its memory where the kernel may put ours
ldd "$WEIR" | grep -q libtsan && without_moves="setarch $(uname -m) -R"
export TSAN_OPTIONS="exitcode=66 log_path=$PWD/race ${TSAN_OPTIONS:-}"
for options in "--events work,libz.so*:zlibVersion" "--tree --events work,libz.so*:zlibVersion" \
	"--budget 1 --events work,libz.so*:*" "-e wall --events work"; do
	$without_moves "$WEIR" record -q $options -o t.weir -- ./come_and_go 2>err.txt
	equal "$options: the recorder ends as the program does" 0 $?
	equal "$options: its threads do not race" "" "$(cat race.* err.txt 2>/dev/null | grep -m 3 -A 8 'WARNING: ThreadSanitizer')"
	rm -f race.*
	case $options in
	*budget* | *tree*) continue ;; # unhooks on purpose; hooks_tree.sh counts those of trees
	esac
	"$WEIR" report flat t.weir --json >flat.json
	equal "$options: every call is counted" 320000 "$(json flat.json "sum(r['calls'] for r in j['rows'] if r['name'] == 'work')")"
done
