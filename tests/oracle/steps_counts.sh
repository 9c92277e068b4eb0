# SPDX-License-Identifier: MIT
# Counts and addresses of steps against those of others: lackey's number of instructions, callgrind's
# number for each address, and the addresses of the plainest single stepper. Programs without libraries
# run the same code under all of them. Each difference is one of these:
#  - valgrind executes a repeated string instruction once for each round, and once more to see that the
#    counter is 0 (not when it ends by what it compares); for us it is one step.
#  - callgrind charges a block when the next one begins: the last one, which ends the program, has none.
#  - under valgrind handlers return through code of valgrind's own, as long as the program's.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"
build bare bare_step.c -O2 || exit 1

# against_bare SENTENCE COMMAND...: of one thread and process
against_bare() {
	local sentence=$1
	shift
	steps t.weir -- "$@" >out.traced 2>&1
	setarch -R ./bare bare.txt "$@" >out.bare 2>&1
	SENTENCE=$sentence judge "$1" <<'PY'
name = os.environ["SENTENCE"]
plain = []
for line in open("bare.txt"):
    line = line.strip()
    if line == "signal 17":
        pass  # ignored: the program goes on where it was
    elif line.startswith("signal"):
        plain.pop()  # where it was then is not executed before the handler
    else:
        plain.append(line)
strings = {s.addr for s in t.steps() if s.times > 1}
folded = [a for i, a in enumerate(plain) if not (i and plain[i - 1] == a and int(a, 16) in strings)]
equal(f"{name}: {len(folded)} addresses are those of a bare single stepper", folded, hexes(s.addr for s in t.steps()))
equal(f"{name}: and so are the rounds of string instructions", len(plain), sum(s.times for s in t.steps()))
PY
}
small strings strings.c && against_bare "string instructions" ./strings
small signals signals.c && against_bare "signals" ./signals sent plain
against_bare "faults" ./signals faults plain
against_bare "handlers in handlers" ./signals nested
small made made_code.c && against_bare "code made at run time" ./made in_place
if small strings32 strings.c -m32; then
	against_bare "string instructions, 32-bit" ./strings32
	small signals32 signals.c -m32 && against_bare "faults, 32-bit" ./signals32 faults plain
	small made32 made_code.c -m32 && against_bare "code made at run time, 32-bit" ./made32 in_turn
fi

if ! command -v valgrind >/dev/null; then
	skip "counts are those of lackey and callgrind: valgrind is not installed"
	finish
fi
# against_valgrind SENTENCE COMMAND...
against_valgrind() {
	local sentence=$1
	shift
	steps t.weir -- "$@" >out.traced 2>&1
	valgrind --tool=lackey --basic-counts=yes --log-file=lackey.txt "$@" >out.lackey 2>&1
	valgrind -q --tool=callgrind --dump-instr=yes --dump-line=no --compress-strings=no --compress-pos=no \
		--callgrind-out-file=callgrind.txt "$@" >out.callgrind 2>&1
	SENTENCE=$sentence judge "$1" <<'PY'
import collections, re
name = os.environ["SENTENCE"]
steps = t.steps()
lackey = int(re.search(r"guest instrs:\s+([\d,]+)", open("lackey.txt").read())[1].replace(",", ""))

# A string instruction goes round `times` and is looked at once more, unless what it compared ended it.
known = {a: (b, m) for a, b, m in instructions(program)}
labels = {a: f for f, a in symbols(program).items()}
def extra(s):
    mnemonic = known.get(s.addr, (b"", ""))[1]
    if s.code.bytes[:1] not in (b"\xf2", b"\xf3", b"\x67") or not re.match(r"(movs|stos|lods|scas|cmps)", mnemonic):
        return 0
    label = labels.get(s.addr, "")
    by_compare = re.match(r"rep_(scasb_61|scasb_found_at_once_1|cmpsb_6)$", label)
    empty = label in ("rep_movsb_0", "rep_scasb_0")
    return 0 if empty else s.times - 1 if by_compare else s.times
more = sum(extra(s) for s in steps)
equal(f"{name}: as many instructions as lackey counts, rounds of string instructions included", lackey, len(steps) + more)

counts = collections.Counter(s.addr for s in steps)
for s in steps:
    counts[s.addr] += extra(s)
restorer = symbols(program).get("raw_restorer")
for a in [a for a, _, _ in instructions(program) if restorer and restorer <= a][:2]:
    del counts[a]
# The last block: back from the last step to the last branch.
for s in reversed(steps):
    if s is not steps[-1] and re.match(r"j|call|ret|loop|syscall|int", known[s.addr][1]):
        break
    counts[s.addr] -= 1
theirs, calls = collections.Counter(), False
for line in open("callgrind.txt"):
    if line.startswith("calls="):
        calls = True  # the next line is the inclusive cost of the call
        continue
    match = re.match(r"(0x[0-9a-f]+) (?:\S+ )?(\d+)$", line)
    if match and not calls:
        theirs[int(match[1], 16)] += int(match[2])
    calls = False
wrong = {f"{a:x}": (theirs[a], counts[a]) for a in set(theirs) | set(counts) if theirs[a] != counts[a]}
check(f"{name}: {len(counts)} addresses were executed as often as callgrind says", not wrong and theirs, wrong)
PY
}
build exact exact.S -static -nostdlib -no-pie && against_valgrind "exact" ./exact
build regions regions.S -static -nostdlib -no-pie && against_valgrind "regions" ./regions
against_valgrind "string instructions" ./strings plain
against_valgrind "signals" ./signals sent plain
small made made_code.c && against_valgrind "code made at run time" ./made in_turn
build exact32 exact.S -m32 -static -nostdlib -no-pie && against_valgrind "exact, 32-bit" ./exact32
