#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The call tree that steps add up to: against callgrind, number by number, and programs that leave
# functions in other ways than by returning.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
if ! command -v gcc >tools.txt; then
	skip "call trees of steps: gcc is missing"
	finish
fi
steps() { timeout 60 "$WEIR" steps -q -o "$@"; }

cat >calls.c <<'END'
#define CALLED __attribute__((noinline, noclone))
static volatile int sink = 1;
static CALLED int leaf(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i ^ sink;
	return sum;
}
static CALLED int fib(int n) { return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2); }
static CALLED int odd(int n);
static CALLED int even(int n) { return n ? odd(n - 1) : leaf(3); }
static CALLED int odd(int n) { return n ? even(n - 1) : leaf(4); }
static CALLED int tail(int n) { sink += n; return leaf(n + 1); }
static CALLED int pick(int n) { return n & 1 ? tail(n) : leaf(n); }
static CALLED int compare(int a, int b) { return a < b ? -1 : a > b; }
static CALLED void sort(int *v, int n, int (*order)(int, int))
{
	for (int i = 1; i < n; i++)
		for (int k = i; k && order(v[k - 1], v[k]) > 0; k--) {
			int t = v[k];
			v[k] = v[k - 1];
			v[k - 1] = t;
		}
}
static CALLED int chosen(int n)
{
	switch (n) {
	case 0: return leaf(2);
	case 1: return tail(3) + 1;
	case 2: return 5;
	case 3: return fib(3) + 2;
	case 4: return 9 * sink;
	default: return 0;
	}
}
static CALLED void fill(char *to, long n) { asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory"); }
static CALLED int run(void)
{
	int v[] = {3, 9, 1, 7, 5, 2}, sum = fib(7) + even(6) + tail(5);
	char bytes[40];
	for (int i = 0; i < 6; i++)
		sum += pick(i) + chosen(i);
	sort(v, 6, compare);
	fill(bytes, 40);
	return sum + v[0] + bytes[7];
}
__attribute__((force_align_arg_pointer)) void _start(void)
{
	int r = run();
	asm volatile("syscall" : : "a"(231), "D"(r & 0) : "rcx", "r11", "memory");
	__builtin_unreachable();
}
END

# Self, inclusive and calls by function. In callgrind's file: recursive calls are functions apart
# ("fib'2"), what is split off is one of its own ("chosen.cold").
cat >compare.py <<'END'
import json, re, sys
names, self_, cum, calls = {}, {}, {}, {}
fn = callee = None
def name(text):
    number, rest = re.match(r"\((\d+)\)(?: (.*))?$", text).groups()
    if rest:
        names[number] = rest
    return names[number]
for line in open("callgrind.out"):
    key, _, value = line.strip().partition("=")
    if key == "fn":
        fn = name(value)
    elif key == "cfn":
        callee = name(value)
    elif key == "calls":
        called = int(value.split()[0])
    elif re.match(r"[+*\d-]", line) and fn:
        cost = int(line.split()[1])
        cum[fn] = cum.get(fn, 0) + cost
        if callee:
            calls[callee] = calls.get(callee, 0) + called
        else:
            self_[fn] = self_.get(fn, 0) + cost
        callee = None
def plain(fn):
    return "_start" if fn == "(below main)" else fn.split("'")[0].removesuffix(".cold")
theirs = {}
for fn, cost in self_.items():
    theirs[plain(fn)] = theirs.get(plain(fn), 0) + cost
rows = {r["name"]: r for r in json.load(open("flat.json"))["rows"] if not re.match(r"\d+_\d+$", r["name"])}
ours = {n: r["base"] for n, r in rows.items()}
# The last block of a program is not charged by callgrind: it charges when the next one begins.
theirs["_start"] = ours["_start"] if ours["_start"] - theirs["_start"] in range(1, 8) else theirs["_start"]
# A repeated string instruction is one of ours and one a round of theirs, and one for the end.
theirs["fill"] -= 40
print("self", ours == theirs, "" if ours == theirs else (ours, theirs))
once = ["run", "leaf", "sort", "chosen", "tail", "pick", "compare", "even", "fib"]
# `run` contains `fill` and its rounds.
bad = [n for n in once if rows[n]["cum"] != cum[n] - (40 if n == "run" else 0)]
print("cum", not bad, [(n, rows[n]["cum"], cum[n]) for n in bad] or "")
# odd and even jump to each other; everything else is called as often.
counted = [n for n in once if n != "even"]
theirs = {n: sum(c for fn, c in calls.items() if plain(fn) == n and ".cold" not in fn) for n in counted}
bad = [n for n in counted if rows[n]["calls"] != theirs[n]]
print("calls", not bad, [(n, rows[n]["calls"], theirs[n]) for n in bad] or "")
END
flags="-g -static -nostdlib -fno-stack-protector -fno-builtin -fno-pic -no-pie -fcf-protection=none"
for level in 0 2; do
	# shellcheck disable=SC2086
	gcc -w -O$level $flags -o calls calls.c || continue
	steps t.weir -- ./calls
	"$WEIR" report flat t.weir --json >flat.json
	n=$("$WEIR" report steps t.weir --json | python3 -c 'import json,sys; print(sum(r["kind"] == "step" for r in json.load(sys.stdin)["rows"]))')
	equal "-O$level: the tree has every step" "$n" "$(json flat.json 'j["total"]')"
	equal "-O$level: functions add up to it" True "$(json flat.json 'sum(r["base"] for r in j["rows"]) == j["total"]')"
	if command -v valgrind >tools.txt && valgrind -q --tool=callgrind --callgrind-out-file=callgrind.out ./calls >out.txt 2>&1; then
		python3 compare.py >verdict.txt
		equal "-O$level: functions have the instructions that callgrind counts" "self True" "$(sed -n 's/ *$//;/^self/p' verdict.txt)"
		equal "-O$level: and with all that they call" "cum True" "$(sed -n 's/ *$//;/^cum/p' verdict.txt)"
		equal "-O$level: and are called as often" "calls True" "$(sed -n 's/ *$//;/^calls/p' verdict.txt)"
	else
		skip "-O$level: callgrind's numbers: valgrind is missing or cannot run this"
	fi
done

# paths TRACE NAME...: the tree with these functions alone, calls in front: "1 run>jumper".
cat >paths.py <<'END'
import json, sys
own = sys.argv[2:]
path = []
found = {}
for r in json.load(open(sys.argv[1]))["rows"]:
    del path[r["level"]:]
    path.append(r["name"].split("(")[0])
    if path[-1] in own:
        key = ">".join(p for p in path if p in own)
        found[key] = found.get(key, 0) + r["calls"]
for key, calls in found.items():
    print(calls, key)
END
paths() {
	"$WEIR" report tree "$1" --json >tree.json
	python3 paths.py tree.json "${@:2}"
}

cat >leave.c <<'END'
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define CALLED __attribute__((noinline, noclone))
static volatile int sink = 1;
static jmp_buf place;
static sigjmp_buf safe;
static CALLED int leaf(int n) { int s = 0; for (int i = 0; i < n; i++) s += sink; return s; }
static CALLED void deeper(int n) { if (!n) longjmp(place, 1); deeper(n - 1); sink++; }
/* It is open twice when the jump comes, and it comes to the outer one. */
static CALLED int jumper(int n)
{
	if (!n) { deeper(1); return 0; }
	if (!setjmp(place)) return jumper(0) + 1;
	return leaf(3);
}
static CALLED void handler(int s) { sink += leaf(4) + s; }
static CALLED int interrupted(void) { raise(SIGUSR1); return leaf(5); }
static CALLED void escape(int s) { leaf(s ? 6 : 0); siglongjmp(safe, 1); }
static CALLED int faulty(int *p) { if (!sigsetjmp(safe, 1)) return *(volatile int *)p; return leaf(7); }
static CALLED int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static CALLED int sorter(void) { int v[] = {4, 2, 9}; qsort(v, 3, sizeof(int), order); return v[0]; }
static CALLED int child(void) { leaf(8); _exit(3); }
static CALLED int parent(void)
{
	int status;
	pid_t pid = fork();
	if (!pid) child();
	waitpid(pid, &status, 0);
	return leaf(9) + status;
}
CALLED int run(void) { return jumper(1) + interrupted() + faulty((int *)8) + sorter() + parent(); }
int main(void) { signal(SIGUSR1, handler); signal(SIGSEGV, escape); sink = run(); return 0; }
END
gcc -w -O1 -g -static -o leave leave.c && steps leave.weir --from run -- ./leave
equal "longjmp, signals, faults, callbacks and forks have their places in the tree" \
"1 run
1 run>jumper
1 run>jumper>jumper
1 run>jumper>jumper>deeper
1 run>jumper>jumper>deeper>deeper
1 run>jumper>leaf
1 run>interrupted
1 run>interrupted>handler
1 run>interrupted>handler>leaf
1 run>interrupted>leaf
1 run>faulty
1 run>faulty>escape
1 run>faulty>escape>leaf
1 run>faulty>leaf
1 run>sorter
3 run>sorter>order
1 run>parent
1 run>parent>leaf
1 run>parent>child
1 run>parent>child>leaf" \
	"$(paths leave.weir run jumper deeper leaf interrupted handler faulty escape sorter order parent child)"
"$WEIR" report tree leave.weir --json >tree.json
equal "a forked process is inside its parent's calls, which are not its own" "[0] [1]" \
	"$(json tree.json '[r["calls"] for r in j["rows"] if r["name"]=="run"][1:], [r["calls"] for r in j["rows"] if r["name"]=="child"]' | tr -d '(),')"

cat >throw.cc <<'END'
#define CALLED __attribute__((noinline, noclone))
static volatile int sink = 1;
static CALLED int leaf(int n) { int s = 0; for (int i = 0; i < n; i++) s += sink; return s; }
struct guard { CALLED ~guard() { sink += leaf(1); } };
static CALLED void thrower(void) { guard g; if (sink) throw 5; sink++; }
/* Open four times when it is thrown: the innermost has no handler for it, the next one hands it on,
 * and the second of all catches it. */
static CALLED int passer(int n)
{
	if (!n) thrower();
	try { return passer(n - 1) + leaf(1); }
	catch (int x) { if (n < 2) { leaf(2); throw; } return leaf(3) + x; }
}
CALLED int run() { return passer(3); }
int main() { sink = run(); return 0; }
END
if command -v g++ >tools.txt && g++ -w -O1 -g -o throw throw.cc -Wl,-z,now; then
	steps throw.weir --around run -- ./throw
	equal "exceptions come to the call whose landing pad they reach" \
"1 run
1 run>passer
1 run>passer>passer
1 run>passer>passer>passer
1 run>passer>passer>passer>passer
1 run>passer>passer>passer>passer>thrower
1 run>passer>passer>passer>passer>thrower>guard::~guard
1 run>passer>passer>passer>passer>thrower>guard::~guard>leaf
1 run>passer>passer>passer>leaf
1 run>passer>passer>leaf
1 run>passer>leaf" \
		"$(paths throw.weir run thrower guard::~guard leaf passer)"
else
	skip "exceptions: g++ is missing"
fi
