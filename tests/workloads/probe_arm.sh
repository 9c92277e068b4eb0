# SPDX-License-Identifier: MIT
# weir-test: alone: whoever starts a probe sweeps what a killed one has left in tracefs
# weir-test: root: breakpoints in some processes only
# -c and -p set breakpoints in the processes asked for and in no other, follow all that these make, and leave
# no names in tracefs, not even those of a weir that was killed.
. "$ROOT/tests/lib.sh"
if [ "$(printf '6.12\n%s\n' "$(uname -r)" | sort -V | head -n 1)" != 6.12 ]; then
	skip "breakpoints in some processes only: needs Linux 6.12"
	finish
fi
cat >lib.c <<'C'
__attribute__((noinline, noclone)) int marked(int n) { asm volatile("" ::: "memory"); return n * 2; }
__attribute__((noinline, noclone)) int other(int n) { asm volatile("" ::: "memory"); return n * 3; }
C
# Rounds of four threads; each calls four times, forks (which calls), and that begins the program again by vfork.
cat >tree.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int marked(int n);
int other(int n);
static const char *self;
static void *branch(void *arg)
{
	pid_t pid = fork(), again;

	if (pid == 0) {
		marked(1);
		again = vfork();
		if (again == 0) {
			execl(self, self, "leaf", NULL);
			_exit(1);
		}
		waitpid(again, NULL, 0);
		_exit(0);
	}
	if (pid < 0)
		puts("fork failed");
	for (int i = 0; i < 4; i++)
		marked(i);
	waitpid(pid, NULL, 0);
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t t[4];
	char line[8];

	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "leaf"))
		return marked(2) + other(2) == 0;
	if (argc > 1 && read(0, line, sizeof(line)) <= 0) /* waits for a line */
		return 0;
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 4; k++)
			pthread_create(&t[k], NULL, branch, NULL);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
	}
	puts("done");
	return 0;
}
C

# code PID LIBRARY: the first bytes of `marked` in that process
code() {
	python3 - "$1" "$2" <<'PY'
import subprocess, sys
pid, path = sys.argv[1:]
nm = subprocess.run(["nm", "-D", path], capture_output=True, text=True).stdout.split("\n")
at = next(int(l.split()[0], 16) for l in nm if l.endswith(" marked"))
base = next(int(l.split("-")[0], 16) for l in open("/proc/%s/maps" % pid) if l.rstrip().endswith("/" + path))
with open("/proc/%s/mem" % pid, "rb") as f:
    f.seek(base + at)
    print(f.read(4).hex())
PY
}
attached() { until_line "$1" Attached; }
# names PID: how many lines of that weir are in the kernel's list of named uprobes
mkdir tracefs && unshare -m sh -c 'mount -t tracefs t tracefs' 2>mount.err || { skip "names in tracefs: it cannot be mounted" && finish; }
names() { unshare -m sh -c 'mount -t tracefs t tracefs && cat tracefs/uprobe_events' | grep -c "weir_$1_"; }
child() { tr -d ' ' <"/proc/$1/task/$1/children"; } # of timeout

for mode in 64 32; do
	lib=libarm$mode.so
	if ! gcc -m$mode -O1 -g -shared -fPIC -o $lib lib.c 2>gcc.txt || ! gcc -m$mode -O1 -g -pthread -o tree$mode tree.c -L. -larm$mode 2>gcc.txt; then
		skip "$mode-bit: breakpoints in some processes only: gcc -m$mode does not work here"
		continue
	fi
	export LD_LIBRARY_PATH=$PWD
	mkfifo bystander$mode target$mode command$mode
	rm -f command.err process.err # what the other mode was told is no answer here
	./tree$mode wait <bystander$mode >/dev/null &
	bystander=$!
	exec 5>bystander$mode
	./tree$mode wait <target$mode >target.txt &
	target=$!
	exec 6>target$mode
	runs $bystander
	runs $target
	until_line /proc/$bystander/maps $lib $bystander
	until_line /proc/$target/maps $lib $target
	plain=$(code $bystander $lib)

	# --- a command ---
	both="uprobe:./$lib:marked { @in = count(); } uretprobe:./$lib:marked { @out = count(); }"
	timeout 120 "$WEIR" probe -v "$both" -c "./tree$mode wait" <command$mode >command.txt 2>command.err &
	weir=$!
	exec 7>command$mode
	attached command.err
	equal "$mode-bit: -c: a process that was not asked for has no breakpoint" "$plain" "$(code $bystander $lib)"
	feed 7
	exec 7>&-
	wait $weir
	rc=$?
	equal "$mode-bit: -c: threads, fork, vfork and exec all count, each hit once" \
		"0 @in: 480 @out: 480 done" "$rc $(echo $(grep . command.txt | sort))"
	check "$mode-bit: -c: it says so" grep -q "breakpoints in the traced processes only" command.err

	# --- a process; its two functions are told apart ---
	timeout 120 "$WEIR" probe -O process.txt "uprobe:./$lib:marked,uprobe:./$lib:other { @[func] = count(); }" -p $target 2>process.err &
	weir=$!
	attached process.err
	pid=$(child $weir)
	during=$(names $pid)
	equal "$mode-bit: -p: only the process asked for has a breakpoint" "$plain cc" "$(code $bystander $lib) $(code $target $lib | cut -c1-2)"
	feed 6
	exec 6>&-
	wait $target
	wait $weir
	equal "$mode-bit: -p: its threads and children count, by function" "@[marked]: 480 @[other]: 80 done" \
		"$(echo $(grep '^@' process.txt | sort) $(cat target.txt))"
	equal "$mode-bit: no names stay in tracefs" "2 0" "$during $(names $pid)"
	exec 5>&-
	wait $bystander
done

# --- more than the events can do: everywhere, and said ---
many=
for ((i = 0; i < 9; i++)); do many+="__attribute__((noinline)) int many$i(int n) { asm volatile(\"\"); return n + $i; } "; done
echo "$many int main(void) { return many0(0) + many8(-8); }" >many.c
gcc -O1 -g -o many many.c
timeout 120 "$WEIR" probe -v 'uprobe:./many:many* { @[func] = count(); }' -c ./many >many.txt 2>many.err
equal "many sites that are told apart are counted in the same way" "@[many0]: 1 @[many8]: 1" "$(echo $(grep '^@' many.txt | sort))"
check "and it says that every process has the breakpoints" grep -q "breakpoints in every process that maps the file: more than 8 sites" many.err
WEIR_PROBE_WITHOUT=tracefs timeout 120 "$WEIR" probe -v 'uprobe:./many:many0 { @ = count(); }' -c ./many >many.txt 2>many.err
equal "without tracefs too" "@: 1 1" "$(echo $(grep '^@' many.txt)) $(grep -c "every process that maps the file: tracefs" many.err)"

# --- a weir that is killed ---
mkfifo in
./tree64 wait <in >killed.txt &
target=$!
exec 6>in
runs $target
"$WEIR" probe 'uprobe:./libarm64.so:marked { @ = count(); }' -p $target 2>killed.err &
weir=$!
attached killed.err
kill -9 $weir
wait $weir 2>wait.err
left=$(names $weir)
timeout 120 "$WEIR" probe -q 'uprobe:./many:many0 { @ = count(); }' -c ./many >/dev/null 2>&1
equal "what a killed weir leaves in tracefs goes with the next start" "1 0" "$left $(names $weir)"
feed 6
exec 6>&-
wait $target
equal "and the program goes on" "0 done" "$? $(cat killed.txt)"

# --- other rights ---
chmod a+rx . many && chmod u+s many
if as_user=$(setpriv --reuid 65534 --clear-groups sh -c './many; echo $?' 2>&1) && [ "$as_user" = 0 ]; then
	timeout 120 "$WEIR" probe -q 'uprobe:./many:many0 { @ = count(); }' -c "setpriv --reuid 65534 --clear-groups sh -c './many; exit 0'" >suid.txt 2>suid.err
	rc=$?
	if grep -q '^@: 1' suid.txt; then # its folder may be mounted without setuid
		equal "a setuid program that keeps its rights is counted" 0 $rc
	else
		equal "a setuid program takes the events away: that is a loss and said" "3 1" "$rc $(grep -c '1 program begun with other rights' suid.err)"
	fi
else
	skip "a setuid program takes the events away: another user cannot run it here"
fi
finish
