# SPDX-License-Identifier: MIT
# weir count -- CMD of 32-bit programs: known counts, the counts of `weir steps` and of callgrind, families of both kinds.
# weir-test: once: what is tested is stepped, which takes as long in any build
. "$ROOT/tests/lib.sh"
fixtures=$ROOT/tests/fixtures/translate
if ! gcc -m32 -O2 -g -static -o calls "$fixtures/thirty_two.c" 2>build.txt; then
	skip "32-bit programs are counted: $(head -n 1 build.txt)"
	finish
fi
gcc -O1 -o sixty_four -x c - <<<'int main(void) { return 4; }' || exit 1
cat >exact.S <<'S'
	.globl _start
	.type _start, @function
_start:	mov $1000, %ecx
1:	call leaf
	dec %ecx
	jnz 1b
	mov $40, %ecx
	mov %esp, %edi
	sub $64, %edi
	rep stosb
	mov $1, %eax
	mov $7, %ebx
	int $0x80
	.size _start, . - _start
	.type leaf, @function
leaf:	nop
	ret
	.size leaf, . - leaf
	.section .note.GNU-stack, "", @progbits
S
gcc -m32 -g -nostdlib -static -o exact exact.S || exit 1

count() { # its status in $rc, what it says in err.txt
	"$WEIR" count "$@" >out.txt 2>err.txt
	rc=$?
}

# --- figures that are known
count -- ./exact
equal "the command's status is passed on" 7 $rc
check "instructions, blocks and calls are those of the program" \
	grep -qE "^weir: 'trace.weir': 5008 instructions, 5 blocks, 1000 calls in .* \(1 process, 1 thread\)" err.txt
check "a note says how slow that is" grep -qE "^weir: note: '.*/exact' \(process [0-9]+\) is a 32-bit program: .* step by step" err.txt
equal "there is no other sentence" 2 "$(wc -l <err.txt)"
"$WEIR" report flat --json trace.weir >flat.json
equal "it is complete" 0 $?
equal "each function has its calls and instructions" "[('_start', 3008, 1), ('leaf', 2000, 1000)]" "$(json flat.json \
	"sorted((r['name'], r['base'], r['calls'] or 1) for r in j['rows'] if r['name'] in ('_start', 'leaf'))")"
check "coverage knows the lines" grep -q '^DA:4,1000' <("$WEIR" export lcov trace.weir -o - 2>/dev/null)
check "so does the export for callgrind's tools" grep -qx 'summary: 5008' <("$WEIR" export callgrind trace.weir -o - 2>/dev/null)
check "the source view has the instructions" grep -qE '^ *804[0-9a-f]+ +5 +dec %ecx$' <("$WEIR" report source _start trace.weir --asm)

# --- the same as weir steps, and function by function as callgrind
setarch -R "$WEIR" count -q -o calls.weir -- ./calls >counted.txt
equal "a program with calls of all kinds ends as alone" 6 $?
equal "and prints the same" "$(./calls)" "$(cat counted.txt)"
"$WEIR" report flat --json calls.weir >flat.json
setarch -R "$WEIR" steps -q -o steps.weir -- ./calls >counted.txt
equal "as many instructions as weir steps has steps" "$("$WEIR" report steps --json steps.weir --limit 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["total"])')" \
	"$(json flat.json "j['total']")"
"$WEIR" report arcs --json calls.weir >arcs.json
equal "what a function costs is its own and its callees'" "[]" "$(json arcs.json "[r['name'] for r in j['rows']
	if not any(a['recursive'] for a in r['parents'] + r['children'])
	and r['self']['base'] + sum(c['cum'] for c in r['children']) != r['self']['cum']]")"
cat >compare.py <<'P'
import collections, json, re, subprocess, sys
names = {}
for line in subprocess.run(["nm", "calls"], capture_output=True, text=True).stdout.splitlines():
    address, kind, name = line.rsplit(" ", 2)
    if kind in "tT" and address.strip():
        names[int(address, 16)] = name
theirs = collections.defaultdict(lambda: [0, 0])
fn, is_call = "", False
for line in open("callgrind.txt"):
    key, _, value = line.rstrip("\n").partition("=")
    value = re.sub(r"'\d+$", "", value)
    if re.fullmatch("0x[0-9a-f]+", value):
        value = names.get(int(value, 16), value)
    if key == "fn":
        fn = value
    elif key == "cfn":
        to = value
    elif key == "calls":
        theirs[to][1] += int(value.split()[0])
        is_call = True
    elif line[:1].isdigit() or line[:1] in "+-*":
        if not is_call:
            theirs[fn][0] += int(line.split()[1])
        is_call = False
ours = {r["name"]: [r["base"], r["calls"]] for r in json.load(open("flat.json"))["rows"]}
wanted = """leaf tail fib chosen by_value qsort msort_with_tmp.part.0 printf __vfprintf_internal
    _itoa_word _setjmp __longjmp""".split()
missing = [n for n in wanted if n not in ours and n not in theirs]
print("not known:", missing)
for n in wanted:
    if n not in missing and ours.get(n) != theirs.get(n):
        print(n, "counted", ours.get(n), "callgrind", theirs.get(n))
# The first block behind a longjmp, of three instructions, is the left function's for callgrind: its frame lies above,
# among the arguments of setjmp.
for n, more in ("main", 9), ("leaves", -9):
    print(n, ours[n][0] - theirs[n][0] - more, ours[n][1] - theirs[n][1])
# A repeated instruction is one: callgrind has one for each round, and one more to see that there are none left.
print("rounds:", theirs["rounds"][0] - ours["rounds"][0], theirs["rounds"][1] - ours["rounds"][1])
P
if command -v valgrind >/dev/null && valgrind -q --tool=callgrind --skip-plt=no --compress-strings=no --compress-pos=no \
	--callgrind-out-file=callgrind.txt ./calls >/dev/null 2>valgrind.txt || [ -s callgrind.txt ]; then
	equal "functions of the program and of the C library have callgrind's instructions and calls" \
		"$(printf 'not known: []\nmain 0 0\nleaves 0 0\nrounds: 203 0')" "$(python3 compare.py)"
else
	skip "functions have callgrind's instructions and calls: valgrind does not work here for 32-bit programs"
fi

# --- families of both kinds
gcc -m32 -O1 -static -o thirty -x c - <<'C' || exit 1
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static sigjmp_buf place;
static volatile int n_handled;
__attribute__((noinline)) static int work(int n)
{
	return n ? work(n - 1) + 1 : 0;
}
static void comes_back(int number) { n_handled += number == SIGUSR1; }
static void jumps(int number) { siglongjmp(place, number); }
static void *other(void *arg) { return (void *)(long)work(10) + (arg != NULL); }
int main(int argc, char **argv)
{
	pthread_t thread;
	int status = 0;
	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
	signal(SIGUSR1, comes_back);
	raise(SIGUSR1);
	signal(SIGSEGV, jumps);
	if (!sigsetjmp(place, 1))
		*(volatile int *)0 = 1;
	if (!fork())
		_exit(work(20));
	wait(&status);
	printf("%d %d\n", n_handled, WEXITSTATUS(status));
	fflush(stdout);
	if (argc > 1)
		execv(argv[1], argv + 1);
	return 5;
}
C
count -- sh -c './exact; echo $?; ./thirty ./sixty_four; echo $?; ./sixty_four; echo $?'
equal "programs of both kinds do what they do alone" "7 1 20 4 4" "$(xargs <out.txt)"
check "each process and thread is counted" grep -qF '(5 processes, 6 threads)' err.txt
equal "nothing is lost, and one note tells of all" "0 1" "$(grep -cE 'losses|not counted' err.txt) $(grep -c step.by.step err.txt)"
"$WEIR" report flat --json trace.weir >flat.json
cat >calls_of.py <<'PY'
import collections, json
calls = collections.Counter()
for r in json.load(open("flat.json"))["rows"]:
    if r["image"] and r["image"].rsplit("/", 1)[-1] in ("exact", "thirty", "sixty_four"):
        calls[r["name"]] += r["calls"] or 0
print(*(f"{n}={calls[n]}" for n in ("comes_back", "jumps", "leaf", "main", "other", "work")))
PY
equal "functions of 32-bit programs and of what they become have their calls" \
	"comes_back=1 jumps=1 leaf=1000 main=3 other=1 work=32" "$(python3 calls_of.py)"

# --- what goes on when the recording ends
gcc -m32 -O1 -static -o waits -x c - <<<'#include <unistd.h>
int main(void) { char c; return read(0, &c, 1) + 8; }' || exit 1
mkfifo pipe
"$WEIR" count --duration 1 -o waits.weir -- ./waits <pipe 2>err.txt &
weir=$!
exec 5>pipe
for ((i = 0; i < 200; i++)); do
	! grep -q 'goes on running' err.txt || break
	sleep 0.1
done
pid=$(pgrep -f -x ./waits)
equal "a program that outlives its recording is not traced any more" 0 "$(sed -n 's/^TracerPid:\t//p' "/proc/$pid/status")"
feed 5 x
wait $weir
equal "and ends as it would" 9 $?
equal "what was counted until then is there" 0 "$("$WEIR" report flat waits.weir >/dev/null 2>err.txt; echo $?)"

# --- nothing at all can be counted
(ulimit -v 300000 && "$WEIR" count -o none.weir -- ./sixty_four) 2>err.txt
equal "where nothing can be counted the command keeps its status" 4 $?
check "the reason is told" grep -q 'is not counted from here on: there is no memory for translated code' err.txt
check "and that nothing was counted" grep -qE "'none.weir': 0 instructions.*with losses.*; nothing was counted$" err.txt
"$WEIR" report flat none.weir >/dev/null 2>&1
equal "a report of that has status 3" 3 $?
