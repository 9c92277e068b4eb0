# SPDX-License-Identifier: MIT
# Where count files cannot be: the program is unharmed, and what is missing is told. Where several processes
# have one number, each has a file.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
export WEIR_CACHE=$PWD/cache
unset WEIR_OUT WEIR_SITES

cat >places.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) long leaf(long n) { return n + 1; }
__attribute__((noipa)) long other(long n);
/* A tree of 2^n nodes. */
__attribute__((noipa)) long path(long n) { return n < 2 ? leaf(n) : path(n - 1) + other(n - 1) + 1; }
__attribute__((noipa)) long other(long n) { return n < 2 ? leaf(n) : path(n - 1) + other(n - 1) + 2; }
int main(int argc, char **argv)
{
	char c;

	if (!strcmp(argv[1], "wait")) { /* for the end of standard input */
		for (int i = 0; i < 100; i++)
			leaf(i);
		if (write(1, "x", 1) != 1 || read(0, &c, 1) != 0)
			return 2;
	} else if (!strcmp(argv[1], "jail")) {
		mkdir("jail", 0755);
		if (chroot("jail") || chdir("/"))
			return 2;
		if (fork() == 0) {
			leaf(1);
			_exit(0);
		}
		wait(NULL);
	} else {
		path(argc > 2 ? atoi(argv[2]) : 1);
	}
	return 5;
}
C
check "a program is linked" "$WEIR" count -q gcc -O1 -o places places.c
calls() { "$WEIR" report flat "$1" --json 2>/dev/null | python3 -c '
import json, sys
print(sum(r["calls"] or 0 for r in json.load(sys.stdin)["rows"] if r["name"] == "leaf"))'; }
notes() { "$WEIR" report loss "$1" --json >loss.json; json loss.json "sum('$2' in r.get('reason', '') for r in j['rows'])"; }

# --- standard error that must not be waited for, or written to
mkfifo pipe
exec 8<>pipe 9>pipe 8<&-
WEIR_OUT=nowhere/x.weir ./places path 2>&9
equal "a sentence that nobody reads does not kill the program" 5 $?
exec 8<>pipe
python3 -c '
import os
os.set_blocking(9, False)
try:
    while os.write(9, b"x" * 4096): pass
except BlockingIOError: pass
os.set_blocking(9, True)'
WEIR_OUT=nowhere/x.weir timeout -s KILL 10 ./places path 2>&9
equal "a pipe that is full does not make the program wait" 5 $?
exec 8<&- 9>&-

# --- a name for a moment that is taken
(echo 'exec 2>err.txt; export WEIR_OUT=left.weir; >left.weir.tmp.$BASHPID; exec ./places path 3' | bash)
equal "a temporary file that was left does not keep a process from counting" "5 4 0" \
	"$? $(calls left.weir) $(wc -l <err.txt)"

if [ "$(id -u)" -ne 0 ]; then
	skip "chroot, full disks and pid namespaces: they need root"
	finish
fi

# --- chroot
./places jail 2>err.txt
equal "a child in another root directory: the program is unharmed" 5 $?
equal "one sentence tells that it is not counted" 1 "$(grep -c 'places.weir: cannot be created: no such directory; nothing is recorded$' err.txt)"
equal "and so does the report of its parent" 1 "$(notes places.weir 'a child could not create its count file')"

# --- a disk that fills up
mkdir full
if mount -t tmpfs -o size=320k tmpfs full 2>/dev/null; then
	WEIR_OUT=full/x.weir ./places path 15 2>err.txt
	equal "a disk that fills up: the program is unharmed" 5 $?
	equal "it is told once" "1 $PWD/full/x.weir: cannot grow: no space left; counts are not complete" \
		"$(wc -l <err.txt) $(sed 's/^weir: //' err.txt)"
	equal "what is there can be read, and the loss is told" 1 "$(notes full/x.weir 'a call had no node')"
	umount full
else
	skip "a disk that fills up: nothing can be mounted here"
fi

# --- other pid namespaces: both are process 1, and neither sees the other
if unshare -p -f true 2>/dev/null; then
	rm -f places*.weir*
	mkfifo go said
	exec 7<>go 6<>said
	for i in 1 2 3 4; do
		unshare -p -f ./places wait <go >said 7>&- 6>&- &
		read -r -n 1 -t 20 <&6
	done
	exec 7>&-
	wait
	exec 6>&-
	equal "four processes of the same number have a file each" "100 100 100 100" \
		"$(echo $(for i in places*.weir; do calls "$i"; done))"
	equal "none was moved away" "" "$(ls | grep old)"
else
	skip "other pid namespaces: there are none here"
fi
