# SPDX-License-Identifier: MIT
# Programs whose steps are known one by one: number and addresses, what instructions read and write, and
# parts of a program by --from, --to, --around, --max.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"

for bits in 64 32; do
	build exact exact.S -m$bits -static -nostdlib -no-pie || { skip "exact steps, $bits-bit: gcc -m$bits does not work here" && continue; }
	same "exact, $bits-bit" ./exact
	sound "exact, $bits-bit" ./exact
	BITS=$bits judge ./exact <<'PY'
bits = os.environ["BITS"]
at = [a for a, _, _ in instructions(program)]
order = [0] + 10 * [1, 7, 10, 11, 8, 10, 11, 9, 2, 3] + [4, 5, 6]
steps = t.steps()
equal(f"{bits}-bit: 104 steps, as counted by hand", 104, len(steps))
equal(f"{bits}-bit: each is at its address", hexes(at[i] for i in order), hexes(s.addr for s in steps))
check(f"{bits}-bit: all are of {bits}-bit code", all(s.code.bits == int(bits) for s in steps))
equal(f"{bits}-bit: one thread, which ends by its status", [3 << 8], [m.a for m in t.marks("exit")])
equal(f"{bits}-bit: no signal", [], t.marks("signal", "lost"))
PY
done

# --- parts ----------------------------------------------------------------------------------
build regions regions.S -static -nostdlib -no-pie || exit 1
same "regions" ./regions
judge ./regions <<'PY'
equal("all of it is 189 steps", 189, t.n_steps())
PY
# part SENTENCE STEPS CHECKS OPTIONS...: CHECKS is Python, over the addresses as labels
part() {
	local sentence=$1 n=$2 checks=$3
	shift 3
	steps t.weir "$@" -- ./regions
	equal "$sentence: the program ends as always" 3 $?
	SENTENCE=$sentence N=$n CHECKS=$checks judge ./regions <<'PY'
name, n = os.environ["SENTENCE"], int(os.environ["N"])
s = symbols(program)
names = sorted((a, f) for f, a in s.items() if f in ("_start", "begin_work", "work", "deep", "end_work", "leaf"))
of = lambda a: [f for start, f in names if start <= a][-1]
steps = t.steps()
equal(f"{name}: {n} steps", n, len(steps))
functions = [of(x.addr) for x in steps]
row = [f for i, f in enumerate(functions) if i == 0 or functions[i - 1] != f]
check(f"{name}: they are those that were asked for", eval(os.environ["CHECKS"]), row[:20], t.marks()[:10])
bad = broken(t, program)
check(f"{name}: no step is missing between two others", not bad, *bad[:5])
PY
}
part "--around work" 35 'row == 5 * ["work", "leaf", "work", "leaf"] + ["work"]' --around work
part "--around a function that calls itself" 90 'set(functions) == {"deep"}' --around deep
# Up to the first instruction of end_work: without its three, and without the branch back.
part "--from to --to" 155 '{"begin_work", "work", "leaf", "deep", "_start"} == set(functions)' --from begin_work --to end_work
part "--max" 50 'functions[0] == "_start"' --max 50
part "--max of one" 1 'steps[0].addr == s["_start"]' --max 1

# --- operands -------------------------------------------------------------------------------
build operands operands.S -static -nostdlib -no-pie || exit 1
step_options=(--data)
same "operands" ./operands
step_options=()
judge ./operands <<'PY'
s = symbols(program)
at = {}
for step in t.steps():
    at.setdefault(step.addr, step)
R, W, RW = 1, 2, 3
def q(v, n=8): return v.to_bytes(n, "little")
def one(label, offset=0): return at[s[label]].data
expected = {
    "store8": [(s["target"], W, 8, q(0x1122334455667788))],
    "load8": [(s["source"], R, 8, q(0x0102030405060708))],
    "add4": [(s["target"] + 8, RW, 4, q(1, 4))],
    "store1": [(s["target"] + 12, W, 1, b"\x5a")],
    "index": [(s["source"] + 16, R, 8, q(0x2122232425262728))],
    "padding": [],
    "hint": [],
    "load16": [(s["wide"], R, 16, q(0x3132333435363738) + q(0x4142434445464748))],
    "store16": [(s["target"] + 16, W, 16, q(0x3132333435363738) + q(0x4142434445464748))],
}
for label, data in expected.items():
    equal(f"--data: {label}", data, at[s[label]].data)
stack = at[s["push8"]].data
equal("--data: push writes what it pushes", [(W, 8, q(0x1122334455667788))], [d[1:] for d in stack])
equal("--data: pop reads it there", [(d[0], R, 8, d[3]) for d in stack], at[s["pop8"]].data)
equal("--data: call writes the address behind it", [(W, 8, q(s["behind"]))], [d[1:] for d in at[s["call8"]].data])
copy = at[s["copy3"]]
check("--data: a string instruction has what each round read and wrote",
      copy.times == 3 and {d[0] for d in copy.data if d[1] & W} == {s["target"] + 40 + i for i in range(3)}
      and {d[0] for d in copy.data if d[1] & R} == {s["bytes"] + i for i in range(3)}, copy.data)
PY
judge_sound
