# SPDX-License-Identifier: MIT
# Branches, targets and memory accesses of a program without libraries, against valgrind's lackey, which
# executes the same code. Its counts are of the conditional exits of its own representation, which are
# the conditional branches and, explained below, the rounds of repeated string instructions; its list of
# accesses has each executed instruction with its loads and stores.
. "$ROOT/tests/lib.sh"
if ! command -v valgrind >/dev/null; then
	skip "branches are those of lackey: valgrind is not installed"
	finish
fi

# A sort, an interpreter with a jump table and calls through pointers, floating point, read-modify-write
# and, in the end, two copies by a string instruction.
cat >program.c <<'C'
static unsigned numbers[48], seed = 1;
static char from[32], to[32];
static unsigned next(void) { return (seed = seed * 1103515245 + 12345) >> 8; }
static void sort(unsigned *a, int n)
{
	for (int i = 1; i < n; i++) {
		unsigned x = a[i];
		int j = i;
		for (; j && a[j - 1] > x; j--)
			a[j] = a[j - 1];
		a[j] = x;
	}
}
static int add(int x) { return x + 3; }
static int times(int x) { return x * 5; }
static int half(int x) { return x & 1 ? x - 7 : x / 2; }
static int (*const volatile calls[])(int) = {add, times, half, add};
static int interpret(const unsigned char *code, int n)
{
	static int cells[8];
	int acc = 1, at = 0;
	while (n--)
		switch (code[at++ & 63]) {
		case 0: acc += 3; break;
		case 1: acc *= 5; break;
		case 2: acc ^= acc >> 3; break;
		case 3: if (acc & 1) at += 2; break;
		case 4: cells[acc & 7] += at; break;
		case 5: acc = calls[acc & 3](acc); break;
		case 6: acc = (unsigned)acc / 3; break;
		case 7: acc -= cells[at & 7]; break;
		}
	return acc;
}
static double series(int n)
{
	double sum = 0;
	for (int i = 1; i < n; i++)
		sum += (i & 3 ? 1.0 : -2.0) / i;
	return sum;
}
static __attribute__((noinline)) void copy(long n)
{
	void *d = to, *s = from;
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}
void _start(void)
{
	unsigned char code[64];
	/* Lackey leaves out tests and loads whose outcome it can tell from the instructions before. */
	static volatile long ten = 10, one = 1;
	volatile int result;
	for (int i = 0; i < 48; i++)
		numbers[i] = next();
	sort(numbers, 48);
	for (int i = 0; i < 64; i++)
		code[i] = next() >> 3 & 7;
	result = interpret(code, 400) + (int)series(40);
	copy(ten);
	copy(one);
	__asm__ volatile(
#ifdef __x86_64__
		"mov $231, %eax\n xor %edi, %edi\n syscall"
#else
		"mov $252, %eax\n xor %ebx, %ebx\n int $0x80"
#endif
	);
}
C

# compare SENTENCE FLAGS...
compare() {
	local sentence=$1
	shift
	if ! gcc -w -g -static -nostdlib -no-pie -fno-pic -fno-stack-protector -fno-builtin -fcf-protection=none \
		-o program program.c "$@" 2>build.txt; then
		skip "$sentence: gcc cannot build it: $(head -n 1 build.txt)"
		return
	fi
	if ! valgrind --tool=lackey --basic-counts=yes --log-file=counts.txt ./program ||
		! valgrind --tool=lackey --basic-counts=no --trace-mem=yes --log-file=accesses.txt ./program; then
		skip "$sentence: valgrind cannot run it: $(tail -n 1 counts.txt)"
		return
	fi
	timeout 60 "$WEIR" steps -q -o t.weir -- ./program
	"$WEIR" report branches t.weir --json --returns >branches.json
	"$WEIR" report mix t.weir --json >mix.json
	"$WEIR" report steps t.weir --json >steps.json
	SENTENCE=$sentence python3 - <<'PY'
import collections, json, os, re
name = os.environ["SENTENCE"]
def equal(sentence, theirs, ours):
    print("ok" if theirs == ours else "not ok", f"{name}: {sentence}")
    if theirs != ours:
        print("lackey", theirs, "\nweir", ours)
b, m, s = (json.load(open(f + ".json")) for f in ("branches", "mix", "steps"))
counts = open("counts.txt").read()
def lackey(label):
    return int(re.search(label + r":\s+([\d,]+)", counts)[1].replace(",", ""))

# A repeated string instruction is executed round by round. At the top of each round, and once more
# behind the last, the counter is compared with 0; going round is what lackey calls taken.
strings = [r["times"] for r in s["rows"] if r["kind"] == "step" and (r["text"] or "").startswith("rep ")]
equal("both string instructions are there", [10, 1], strings)
total = b["totals"]["conditional"]
equal(f"{total['executed']} conditional branches", lackey("total") - sum(n + 1 for n in strings), total["executed"])
equal("and as many of them taken", lackey("taken") - sum(strings), total["taken"])
equal("none is unknown", 0, total["unknown"])

# One entry for each executed instruction: [address, length, what it did to memory]. The rounds of a
# string instruction become one, with the accesses of all.
repeated = {r["address"] for r in s["rows"] if r["kind"] == "step" and (r["text"] or "").startswith("rep ")}
executed = []
for line in open("accesses.txt"):
    match = re.match(r"(I |\s[LSM]) ([0-9a-f]+),(\d+)$", line.rstrip())
    if not match:
        continue
    addr, size = int(match[2], 16), int(match[3])
    if match[1] != "I ":
        executed[-1][2] |= set({"L": "L", "S": "S", "M": "LS"}[match[1].strip()])
    elif not (executed and executed[-1][0] == addr and addr in repeated):
        executed.append([addr, size, set()])
equal("the same instructions", [e[0] for e in executed], [r["address"] for r in s["rows"] if r["kind"] == "step"])
names = {"": "no memory", "L": "load", "S": "store", "LS": "load and store"}
theirs = collections.Counter(names["".join(sorted(e[2]))] for e in executed)
equal("the same loads and stores", dict(theirs), {r["name"]: r["count"] for r in m["rows"] if r["group"] == "memory"})
lengths = collections.Counter(str(e[1]) for e in executed)
equal("the same lengths", dict(lengths), {r["name"]: r["count"] for r in m["rows"] if r["group"] == "length"})
lines = {b // 64 for e in executed for b in range(e[0], e[0] + e[1])}
equal("the same cache lines", (len({e[0] for e in executed}), len(lines)), (m["working_set"]["instructions"], m["working_set"]["lines"]))

# Where each branch went is the instruction behind it.
went = collections.defaultdict(collections.Counter)
for (addr, length, _), behind in zip(executed, executed[1:]):
    went[addr][behind[0]] += 1
length = {e[0]: e[1] for e in executed}
wrong = [r for r in b["rows"] if r["kind"] == "conditional" and
         (went[r["address"]][r["address"] + length[r["address"]]], went[r["address"]][r["target"]]) != (r["not_taken"], r["taken"])]
equal("each conditional branch goes each way as often", [], wrong)
indirect = [r for r in b["rows"] if r["kind"] != "conditional"]
kinds = {r["kind"] for r in indirect}
equal("there are indirect jumps, calls and returns", {"indirect-jump", "indirect-call", "return"}, kinds)
equal("each of them goes to the same targets", {r["address"]: dict(went[r["address"]]) for r in indirect},
      {r["address"]: {t["address"]: t["count"] for t in r["targets"]} for r in indirect})
PY
}
compare "64-bit" -O2
compare "64-bit, not optimised" -O0
# fldcw, which x87 code needs, has an exit for a warning; it counts, too.
compare "32-bit" -O2 -m32 -msse2 -mfpmath=sse
