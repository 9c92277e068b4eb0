# SPDX-License-Identifier: MIT
"""Compares the plan of an image with objdump's view of its code.

hook_plan.py DUMP IMAGE [MINIMUM]

Every patched range must end where objdump sees an instruction end (or in the padding behind the
function), no branch that objdump shows may lead into one, and the padding that short jumps use must
be padding. A function that was left out because of a branch must have one, or a table. Prints one
line of figures, then what is wrong; fails when something is, or fewer than MINIMUM functions are
hooked, or fewer than 97 % of those that may be hooked at all have a jump.
"""
import bisect
import re
import subprocess
import sys

LOOP = "a loop leads back to its first instruction"
BRANCH = "a branch leads into its first instructions"
# Reasons that lie in what the function is, not in how its code looks.
BRANCH_LINE = re.compile(r"\s*([0-9a-f]+):\t(?:(?:bnd|notrack|data16|addr32|rex\.W|cs|ds) )*"
                         r"(j\w+|call|loop\w*|xbegin)\S*\s+([0-9a-f]+) ?<?")


class Function:
    def __init__(self, line):
        line, _, self.reason = line.partition(" # ")
        method, site, patched, original, pad, start, size, self.name = line.split(" ", 7)
        self.method = method
        self.site, self.pad, self.start = int(site, 16), int(pad, 16), int(start, 16)
        self.patched, self.original = int(patched), int(original)
        self.end = self.start + int(size)


def read_code(image, wanted):
    """Which of the wanted addresses begin instructions, their texts, and all direct branches."""
    starts, texts, branches = set(), {}, []
    with subprocess.Popen(["objdump", "-d", "-w", "--no-show-raw-insn", image], stdout=subprocess.PIPE,
                          text=True, errors="replace") as objdump:
        for line in objdump.stdout:
            colon = line.find(":\t")
            if colon < 0:
                continue
            at = line[:colon].strip()
            if at in wanted:
                starts.add(int(at, 16))
                texts[int(at, 16)] = line[colon + 2:].strip()
            if " <" in line:
                m = BRANCH_LINE.match(line)
                if m:
                    branches.append((int(m.group(3), 16), int(at, 16), m.group(2)))
    branches.sort()
    return starts, texts, branches


def is_padding(text):
    return bool(re.match(r"(?:(?:cs|ds|data16|rex\.W|xchg\s+%ax,%ax$|repz) ?)*(?:nop|xchg\s+%ax,%ax|int3|"
                         r"lea\s+0x0\(|lea\s+\(|mov\s+%esi,%esi|add\s+%al,\(%[re]ax\))", text)) or not text


def check(functions, starts, branches):
    wrong = []
    targets = [b[0] for b in branches]

    def inside(low, high):
        return branches[bisect.bisect_left(targets, low):bisect.bisect_left(targets, high)]

    for f in functions:
        if f.method in ("jump", "nop", "mcount", "int3"):
            if f.site not in starts:
                wrong.append(f"{f.name}: {f.site:x} begins no instruction")
            end = f.site + f.original
            if end not in starts and end < f.end:
                wrong.append(f"{f.name}: {end:x} ends no instruction")
            for target, source, kind in inside(f.site, f.site + f.patched):
                own = f.start <= source < f.end
                if target == f.site and target == f.start and (kind == "call" or not own):
                    continue
                wrong.append(f"{f.name}: {kind} at {source:x} leads to {target:x}, patched at {f.site:x}")
            for target, source, kind in inside(f.pad, f.pad + 5) if f.pad else []:
                wrong.append(f"{f.name}: {kind} at {source:x} leads to {target:x}, its padding")
        if f.reason == LOOP and f.method == "refused":
            f.seen = any(f.start <= s < f.end for t, s, k in inside(f.start, f.start + 5))
        elif f.reason == BRANCH:
            f.seen = bool(inside(f.start, f.start + 24))
    return wrong


def main():
    dump, image = sys.argv[1:3]
    minimum = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    out = subprocess.run([dump, "list", "*", image], capture_output=True, text=True, check=True).stdout
    functions = [Function(line) for line in out.splitlines()]
    wanted = set()
    for f in functions:
        wanted |= {f"{f.site:x}", f"{f.site + f.original:x}"}
        wanted |= {f"{f.pad + i:x}" for i in range(5)} if f.pad else set()
    starts, texts, branches = read_code(image, wanted)
    wrong = check(functions, starts, branches)
    for f in functions:
        for i in range(5) if f.pad else []:
            if not is_padding(texts.get(f.pad + i, "")):
                wrong.append(f"{f.name}: {f.pad + i:x} is no padding: {texts[f.pad + i]}")
    by_code = {"a loop leads back to its first instruction", "a branch leads into its first instructions",
               "it is too short for a jump", "its code is not understood",
               "a call is among its first instructions",
               "another function begins in its first instructions"}
    eligible = [f for f in functions if f.method != "refused" or f.reason in by_code]
    jumps = [f for f in eligible if f.method in ("jump", "nop", "mcount")]
    unseen = [f for f in functions if not getattr(f, "seen", True)]
    share = 100 * len(jumps) / max(len(eligible), 1)
    print(f"{len(functions)} functions, {len(jumps)} by a jump ({sum(1 for f in jumps if f.pad)} short), "
          f"{sum(f.method == 'int3' for f in functions)} by int3, "
          f"{len(eligible) - len(jumps) - sum(f.method == 'int3' for f in functions)} cannot be hooked, "
          f"{len(functions) - len(eligible)} must not: {share:.2f} %; "
          f"{len(branches)} branches of objdump, {len(unseen)} reasons that it does not show")
    for line in wrong[:20]:
        print(line)
    for f in unseen[:20]:
        print(f"not shown: {f.name} at {f.start:x}: {f.reason}")
    sys.exit(bool(wrong) or len(jumps) < minimum or share < 97)


main()
