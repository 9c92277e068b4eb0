# SPDX-License-Identifier: MIT
# weir report branches and weir report mix over a program whose every branch is known.
. "$ROOT/tests/lib.sh"

# Labels are looked up by nm. With an argument it forks (vfork: a recording ends with the command, so the child
# must be first), and both run the same code.
cat >shape.S <<'ASM'
	.globl _start, first, second
	.text
_start:
	cmpq $2, (%rsp)
	jb only
	mov $58, %eax
	syscall
only:	mov $10, %ebx
round:	test $1, %bl
parity:	jz even
	nop
even:	dec %ebx
back:	jnz round
	mov $3, %ecx
itself:	loop itself
empty:	jrcxz over
	ud2
over:	cmp %eax, %eax
nowhere: je behind
behind:	mov $4, %ebx
more:	lea table(%rip), %rax
	cmp $2, %ebx
	je other
through: call *(%rax)
	jmp done
other:	nop
through2: call *8(%rax)
done:	dec %ebx
	jnz more
	lea last(%rip), %rax
across:	jmp *%rax
	ud2
last:	lea table(%rip), %rsi
	lea copy(%rip), %rdi
	mov $5, %ecx
	rep movsb
	lock incl copy(%rip)
	addsd %xmm0, %xmm0
	push %rax
	pop %rax
	mov $60, %eax
	xor %edi, %edi
	syscall
	.type first, @function
first:	nop
out:	ret
	.size first, . - first
	.type second, @function
second:	nop
	ret
	.size second, . - second
	.data
table:	.quad first, second
copy:	.quad 0
ASM
cat >tick.c <<'C'
/* A handler interrupts a loop that is little else than a branch, often before its outcome is seen. */
static long call(long n, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return r;
}
volatile int hits;
static void handler(int s) { hits += s == 14; }
__attribute__((naked)) static void restorer(void) { __asm__("mov $15,%eax\n syscall"); }
struct { void (*h)(int); unsigned long f; void (*r)(void); unsigned long m; } act = {handler, 0x04000000, restorer, 0};
struct { long a, b, c, d; } timer = {0, 3000, 0, 3000};
void _start(void)
{
	call(13, 14, (long)&act, 0, 8);
	call(38, 0, (long)&timer, 0, 0);
	__asm__ volatile("1: cmpl $4, %0\n jl 1b" : : "m"(hits));
	call(231, 0, 0, 0, 0);
}
C
gcc -static -nostdlib -no-pie -g -o shape shape.S || exit 1
gcc -O1 -static -nostdlib -no-pie -fno-stack-protector -o tick tick.c || exit 1
nm shape >names.txt
objdump -d --no-show-raw-insn shape >code.txt

# report NAME ARGUMENTS...: as JSON into NAME.json
report() { "$WEIR" report "${@:2}" --json >"$1.json"; }

check "the program is traced" timeout 60 "$WEIR" steps -q -o t.weir -- ./shape
check "its branches are reported without a loss" report branches branches t.weir
report returns branches t.weir --returns
report by_side branches t.weir --sort not-taken --limit 2
report by_address branches t.weir --sort address
report only_loop branches t.weir --filter '^loop '
report listing steps t.weir
check "its mix is reported without a loss" report mix mix t.weir
report mix_of_first mix t.weir --filter '^first$'
timeout 60 "$WEIR" steps -q -o cut.weir --max 2 -- ./shape
report cut branches cut.weir
report cut_mix mix cut.weir
timeout 60 "$WEIR" steps -q -o tick.weir -- ./tick
report tick branches tick.weir --filter '^jl '
timeout 60 "$WEIR" steps -q -o forked.weir -- ./shape twice
report forked branches forked.weir
child=$("$WEIR" report steps forked.weir | sed -n 's/^thread [0-9]*_\([0-9]*\).*/\1/p' | tail -n 1)
report child branches forked.weir --thread "$child"

python3 - <<'PY'
import json, re
def equal(sentence, expected, actual):
    print("ok" if expected == actual else "not ok", sentence)
    if expected != actual:
        print("expected", expected, "\nis", actual)
def load(name):
    return json.load(open(name + ".json"))
at = {f[2]: int(f[0], 16) for f in map(str.split, open("names.txt")) if len(f) == 3}
label = {v: k for k, v in at.items()}
def row(report, name, *fields):
    found = [r for r in report["rows"] if r["address"] == at[name]]
    return [tuple(r[f] for f in fields) for r in found]
def targets(report, name):
    return {label.get(t["address"], t["address"]): t["count"]
            for r in report["rows"] if r["address"] == at[name] for t in r["targets"]}
def sides(report, name):
    return row(report, name, "kind", "executed", "taken", "not_taken", "unknown", "mainline", "exceptions")

b = load("branches")
equal("a branch that goes both ways as often is even", [("conditional", 10, 5, 5, 0, "even", 5)], sides(b, "parity"))
equal("the end of a loop is the exception", [("conditional", 10, 9, 1, 0, "taken", 1)], sides(b, "back"))
equal("loop is a conditional branch, to itself too", [("conditional", 3, 2, 1, 0, "taken", 1)], sides(b, "itself"))
equal("jrcxz is one", [("conditional", 1, 1, 0, 0, "taken", 0)], sides(b, "empty"))
equal("a branch to the next instruction is not taken", [("conditional", 1, 0, 1, 0, "not-taken", 0)], sides(b, "nowhere"))
equal("an indirect call has no sides", [("indirect-call", 3, None, None, 0, None, None)], sides(b, "through"))
equal("but targets", {"first": 3}, targets(b, "through"))
equal("another one has its own", {"second": 1}, targets(b, "through2"))
equal("an indirect jump, too", ([("indirect-jump", 1)], {"last": 1}), (row(b, "across", "kind", "executed"), targets(b, "across")))
equal("a row tells where it is", [("shape", "across", 0, "shape.S", True)],
      [(i.split("/")[-1], s, o, f.split("/")[-1], n > 0) for i, s, o, f, n in row(b, "across", "image", "symbol", "offset", "file", "line")])
equal("and its instruction", [("jmp %rax",)], row(b, "across", "text"))
conditional = [r for r in b["rows"] if r["kind"] == "conditional"]
equal("the target of a branch is told", [], [r for r in conditional if hex(r["target"]) not in r["text"]])
equal("executed is taken, not taken and unknown in every row", [],
      [r for r in conditional if r["executed"] != r["taken"] + r["not_taken"] + r["unknown"]])
equal("the totals are those of the rows", [(k, sum(r["executed"] for r in b["rows"] if r["kind"].replace("-", "_") == k)) for k in b["totals"]],
      [(k, t["executed"]) for k, t in b["totals"].items()])
executed = [r["executed"] for r in b["rows"]]
equal("most executed first", sorted(executed, reverse=True), executed)
r = load("returns")
equal("returns are left out", [], row(b, "out", "kind"))
equal("unless they are asked for", ([("return", 3)], {at["through"] + 2: 3}), (row(r, "out", "kind", "executed"), targets(r, "out")))
by_side = [r["not_taken"] for r in load("by_side")["rows"] if r["kind"] == "conditional"]
equal("--sort, and --limit of each list", [5, 3], by_side)
equal("the other list has its two", 2, len(load("by_side")["rows"]) - 2)
addresses = [r["address"] for r in load("by_address")["rows"]]
equal("--sort address", sorted(addresses), addresses)
equal("--filter looks at instructions, too", [at["itself"]], [r["address"] for r in load("only_loop")["rows"]])

# --- what is not known
cut = load("cut")["rows"]
equal("a branch at the end of the trace is unknown", [(1, 0, 0, 1, None)],
      [tuple(r[f] for f in ("executed", "taken", "not_taken", "unknown", "mainline")) for r in cut])
equal("and so it is in the mix", [1], [r["count"] for r in load("cut_mix")["rows"] if r["name"] == "branch, side unknown"])
equal("handlers in between do not hide which way a branch went", [(0, 1, True)],
      [(r["unknown"], r["not_taken"], r["taken"] == r["executed"] - 1) for r in load("tick")["rows"]])

# --- several processes
f = load("forked")
equal("code of two processes is one row", [("conditional", 20, 10, 10, 0, "even", 10)], sides(f, "parity"))
equal("with the targets of both", {"first": 6}, targets(f, "through"))
equal("--thread tells them apart", [("conditional", 10, 5, 5, 0, "even", 5)], sides(load("child"), "parity"))

# --- mix
m = load("mix")
n = sum(r["kind"] == "step" for r in load("listing")["rows"])
equal("the mix has as many instructions as the listing has steps", n, m["total"])
def group(name):
    return {r["name"]: r["count"] for r in m["rows"] if r["group"] == name}
for name in ("class", "memory", "extension", "width", "length", "mnemonic"):
    equal(f"group {name} adds up to them", n, sum(group(name).values()))
c = group("class")
t = b["totals"]["conditional"]
equal("branches by their side", (t["taken"], t["not_taken"]), (c["branch taken"], c["branch not taken"]))
equal("calls, jumps, returns", (4, 1, 3, 4), tuple(c[k] for k in ("indirect call", "indirect jump", "jump", "return")))
equal("system calls, strings, SSE, push and pop", (1, 1, 1, 2), tuple(c[k] for k in ("system call", "string", "SSE", "push and pop")))
equal("locked ones and repeated ones", {"locked": 1, "repeated": 1}, group("attribute"))
equal("a repeated instruction is one step of several iterations", {"rep movsb": 5}, group("iterations"))
equal("SSE computes with scalars", {"scalar float": 1}, group("vector"))
equal("loads and stores: calls through memory, the string, the locked one", 4 + 1 + 1, group("memory")["load and store"])
equal("stores: push; loads: pop, returns, the first comparison", (1, 1 + 4 + 1), (group("memory")["store"], group("memory")["load"]))

# Everything is executed but for the fork and two ud2.
rows = [(int(m[1], 16), m[2]) for m in re.finditer(r"^\s+([0-9a-f]+):\s+(\S.*)$", open("code.txt").read(), re.M)]
size = {a: b - a for (a, _), (b, _) in zip(rows, rows[1:])}
size[rows[-1][0]] = 1
skipped = {a for a, text in rows if text.startswith("ud2")} | {rows[2][0], rows[3][0]}
used = {a: n for a, n in size.items() if a not in skipped}
pieces = lambda n: len({b // n for a, k in used.items() for b in range(a, a + k)})
w = m["working_set"]
equal("the working set is the code that was executed", (len(used), sum(used.values()), pieces(64), pieces(4096)),
      tuple(w[k] for k in ("instructions", "bytes", "lines", "pages")))
equal("images have all of it", n, sum(i["executed"] for i in w["images"]))
equal("functions, too", (n, [(6, 2)]), (sum(i["executed"] for i in w["functions"]),
      [(i["executed"], i["instructions"]) for i in w["functions"] if i["function"] == "first"]))
cover = [k["instructions"] for k in w["covers"]] + [w["instructions"]]
equal("covers grow", ([50, 90, 99], sorted(cover)), ([k["percent"] for k in w["covers"]], cover))
equal("--filter makes the mix of a function", (6, 2), (load("mix_of_first")["total"], load("mix_of_first")["working_set"]["instructions"]))
PY

"$WEIR" report branches t.weir >text.txt
check "the text begins with totals" grep -Eq '^conditional branches  [0-9]+ executed at 8 places: [0-9]+ taken' text.txt
check "and shows a branch" grep -Eq '^ *10 +9 +1 +0 +1 +90\.00 +taken +shape\(back\+0x0\) +shape\.S:[0-9]+ +jnz .* <round>$' text.txt
check "and targets" grep -Eq '^ +3 +100\.00 +-> shape\(first\+0x0\)' text.txt
"$WEIR" report mix t.weir >text.txt
check "the mix as text begins with its total" grep -Eq '^[0-9]+ instructions executed$' text.txt
check "and has the working set" grep -Eq '^ +100 +[0-9]+ +[0-9]+ +[0-9]+ +1 +all that were executed' text.txt

printf '0 enter main\n9 leave main\n' | "$WEIR" import events - -o events.weir
for kind in branches mix; do
	fails "$kind of a trace without steps says so" 1 "events.weir': has no steps" "$WEIR" report $kind events.weir
	fails "$kind of a thread that is not there says so" 1 "no steps of a thread 'nobody'" "$WEIR" report $kind t.weir --thread nobody
done
fails "branches are not sorted by what they do not have" 2 "branches has no column 'cum'" "$WEIR" report branches t.weir --sort cum
fails "the mix cannot be sorted" 2 "mix cannot be sorted" "$WEIR" report mix t.weir --sort executed
