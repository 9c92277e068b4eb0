# SPDX-License-Identifier: MIT
# Programs and libraries that are run from files in memory (/dev/shm, a memfd) are images like any other;
# what compilers put there is code made at run time. The content tells, not the path. The judges are nm of
# the file on disk and the program itself, which prints where its functions are.
# weir-test: alone: samples have to be as many as the time says
. "$ROOT/tests/lib.sh"
shm=$(mktemp -d /dev/shm/weir-test-XXXXXX) || {
	skip "a program in /dev/shm is an image: there is no /dev/shm to write to"
	finish
}
trap 'rm -rf "$shm"' EXIT

cat >work.c <<'C'
#include <stdio.h>
__attribute__((noipa)) unsigned shm_leaf(unsigned x) { for (int i = 0; i < 2000; i++) x = x * 31 + i; return x; }
__attribute__((noipa)) unsigned shm_middle(unsigned x) { return shm_leaf(x) + 1; }
unsigned work(void) { unsigned x = 1; for (int i = 0; i < 150000; i++) x += shm_middle(x); return x; }
#ifndef LIBRARY
int main(void) { unsigned x = work(); printf("%d\n", x == 7); return 0; }
#endif
C
cat >run.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
extern char **environ;
static int copy(const char *path)
{
	int from = open(path, O_RDONLY), to = memfd_create("copied", 0);
	char buf[4096];
	ssize_t n;
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, n) != n) abort();
	return to;
}
int main(int argc, char **argv)
{
	char path[64];
	void *lib;
	unsigned (*work)(void);
	if (!strcmp(argv[1], "exec")) {
		fexecve(copy(argv[2]), argv + 2, environ);
		return 1;
	}
	if (!strcmp(argv[1], "memfd")) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", copy(argv[2]));
		argv[2] = path;
	}
	lib = dlopen(argv[2], RTLD_NOW);
	if (!lib) { fprintf(stderr, "%s\n", dlerror()); return 1; }
	work = (unsigned (*)(void))dlsym(lib, "work");
	unsigned x = work();
	printf("%lx\n", (unsigned long)dlsym(lib, "shm_leaf"));
	if (argc > 3) { fflush(stdout); sleep(30); }
	return x == 7;
}
C
gcc -O1 -g -o work work.c && gcc -O1 -g -DLIBRARY -shared -fPIC -o work.so work.c && gcc -O1 -o run run.c -ldl || exit 1
cp work work.so "$shm/"

# samples FILE: NAME OF THE TOP, KIND OF ITS IMAGE, and whether nearly all stacks have all four functions
cat >top.py <<'PY'
import collections, json, sys
rows = json.load(open(sys.argv[1]))["rows"]
kinds = {r["path"]: r["kind"] for r in json.load(open(sys.argv[2]))["rows"]}
tops = collections.Counter((s["stack"][-1]["name"], kinds.get(s["stack"][-1].get("image"))) for s in rows)
whole = sum({"main", "work", "shm_middle"} <= {f["name"] for f in s["stack"]} for s in rows)
print(*tops.most_common(1)[0][0], whole * 10 > 9 * len(rows))
PY
top() { "$WEIR" report samples "$1" --json >samples.json && "$WEIR" report modules "$1" --json >modules.json && python3 top.py samples.json modules.json; }
record() { # NAME COMMAND
	local name=$1
	shift
	"$WEIR" record -q -o "$name.weir" -- "$@" >"$name.txt"
}

record shm "$shm/work"
equal "a program in /dev/shm has its names and whole stacks" "shm_leaf elf True" "$(top shm.weir)"
record exec ./run exec ./work
equal "so has one that is run from a memfd" "shm_leaf elf True" "$(top exec.weir)"
check "under the name of the memfd" grep -q '"path": *"/memfd:copied"' modules.json
record lib ./run path "$shm/work.so"
equal "a library in /dev/shm as well" "shm_leaf elf True" "$(top lib.weir)"
record memfd ./run memfd ./work.so
equal "and one in a memfd" "shm_leaf elf True" "$(top memfd.weir)"

# Stripped, named by the catalog: by its build-id alone.
"$WEIR" symbols merge -q --no-search -o c.wsym work && strip -o stripped work
record stripped ./run exec ./stripped
"$WEIR" report flat --catalog c.wsym --json stripped.weir >flat.json
equal "a catalog names a stripped one by its build-id" shm_leaf "$(json flat.json 'max(j["rows"], key=lambda r: r["base"])["name"]')"

# A process that is gone before the recorder looks leaves its build-id and places in its file. In a program
# of lld these are not its addresses.
cat >later.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
	close(open("ready", O_CREAT | O_WRONLY, 0600));
	while (access("go", F_OK)) usleep(10000);
	if (!fork()) {
		int from = open(argv[1], O_RDONLY), to = memfd_create("copied", MFD_CLOEXEC);
		char b[4096];
		ssize_t n;
		while ((n = read(from, b, sizeof(b))) > 0) if (write(to, b, n) != n) abort();
		fexecve(to, argv + 1, environ);
		_exit(1);
	}
	wait(NULL);
	close(open("done", O_CREAT | O_WRONLY, 0600));
	return 0;
}
C
if command -v ld.lld >/dev/null && gcc -O1 -fuse-ld=lld -Wl,--build-id -o lld work.c; then
	gcc -O1 -o later later.c && strip -o lld.stripped lld && "$WEIR" symbols merge -q --no-search -o lld.wsym lld
	"$WEIR" record -q -F 100 -o later.weir -- ./later ./lld.stripped >/dev/null &
	recorder=$!
	for _ in $(seq 200); do [ -e ready ] && break; sleep 0.05; done
	kill -STOP $recorder
	touch go
	for _ in $(seq 600); do [ -e done ] && break; sleep 0.05; done
	kill -CONT $recorder
	wait $recorder
	"$WEIR" report modules --json later.weir >modules.json
	if [ "$(json modules.json '[r["kind"] for r in j["rows"] if r["path"] == "/memfd:copied"][:1]')" = "['other']" ]; then
		"$WEIR" report flat --catalog lld.wsym --json later.weir >flat.json
		equal "one that was gone is named by its build-id, where its code was" shm_leaf "$(json flat.json 'max(j["rows"], key=lambda r: r["base"])["name"]')"
	else
		skip "one that was gone is named by its build-id, where its code was: the kernel gives no build-ids of mappings"
	fi
else
	skip "one that was gone is named by its build-id, where its code was: ld.lld is not installed"
fi

# A running process: the program says where its function is.
./run memfd ./work.so stay >place.txt &
pid=$!
for _ in $(seq 200); do [ -s place.txt ] && break; sleep 0.05; done
"$WEIR" symbols resolve -q --pid $pid "$(cat place.txt)" >resolved.txt
kill $pid
check "resolve --pid knows its functions" grep -Eq '/memfd:copied.*\(shm_leaf\+0x0\)' resolved.txt

# The user without privileges cannot open mappings, but its own program and open files.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && id nobody >/dev/null 2>&1; then
	mkdir -m 777 own && chmod 755 . 2>/dev/null
	install -m 755 "$WEIR" own/weir # the folder of the build may be closed to others
	setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups --no-new-privs ./run memfd ./work.so stay >own/place.txt 2>/dev/null &
	pid=$!
	for _ in $(seq 200); do [ -s own/place.txt ] && break; sleep 0.05; done
	if [ -s own/place.txt ]; then
		setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups env WEIR_CATALOG=none.wsym ./own/weir symbols resolve -q --pid $pid "$(cat own/place.txt)" >own.txt 2>&1
		check "also of a user without privileges" grep -Eq '/memfd:copied.*\(shm_leaf\+0x0\)' own.txt
	else
		skip "also of a user without privileges: that user cannot start the program here"
	fi
	kill $pid 2>/dev/null
fi

# --- steps ---

cat >short.c <<'C'
__attribute__((noipa)) int short_leaf(int x) { return x * 3; }
int main(void) { return short_leaf(5) == 4; }
C
gcc -O1 -o short short.c
"$WEIR" steps -q -o s.weir --around short_leaf -- ./run exec ./short >/dev/null 2>steps.txt ||
	"$WEIR" steps -q -o s.weir -- ./run exec ./short >/dev/null
"$WEIR" report steps --json s.weir >steps.json
check "steps of a program in a memfd have its names" grep -q '"short_leaf' steps.json

# --- code made at run time ---

cat >jit.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* mov ecx, edi; loop: imul eax, eax, 31; dec ecx; jnz loop; ret */
static const unsigned char code[] = {0x89, 0xf9, 0x6b, 0xc0, 0x1f, 0xff, 0xc9, 0x75, 0xf9, 0xc3};
int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0700) : memfd_create("jit", 0);
	char name[64];
	if (ftruncate(fd, 8192)) return 1;
	char *w = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *x = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	memcpy(w + 64, code, sizeof(code));
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	FILE *f = fopen(name, "w");
	fprintf(f, "%lx %x made_at_run_time\n", (unsigned long)x + 64, (unsigned)sizeof(code));
	fclose(f);
	for (int i = 0; i < 3000; i++)
		((int (*)(int))((char *)x + 64))(100000);
	return 0;
}
C
gcc -O1 -o jit jit.c
for where in memfd /dev/shm; do
	"$WEIR" record -q -o jit.weir -- ./jit ${shm:+$([ $where = memfd ] || echo "$shm/code")}
	"$WEIR" report samples jit.weir --json >samples.json && "$WEIR" report modules jit.weir --json >modules.json
	equal "$where: code that a program writes there is made at run time, and has the names of its perf map" \
		"made_at_run_time jit" "$(python3 top.py samples.json modules.json | cut -d ' ' -f 1,2)"
	"$WEIR" report threads jit.weir --json >threads.json
	rm -f "/tmp/perf-$(json threads.json 'j["rows"][0]["pid"]').map"
done
