# SPDX-License-Identifier: MIT
"""Blocks of real programs, for timing: straight code between branch targets, calls and branches.

  extract.py COUNT FILE...    prints hexadecimal bytes, one block a line

Disassembles with objdump, takes the same number from each file, leaves out what cannot run alone
(system calls, string instructions with rep, writes of segments, privileged ones) and repetitions.
"""
import random
import re
import subprocess
import sys

LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(?:\t(.*))?$")
ENDS = re.compile(r"^(?:bnd |notrack |cs |ds |es |repz )*(j\w+|call\w*|ret\w*|loop\w*|ud2|hlt|int3|int|xbegin|iret\w*)\b")
NOT_ALONE = re.compile(
    r"^(?:lock |data16 )*(syscall|sys\w+|rep\w*|cpuid|rdtsc\w*|rdpmc|xgetbv|rdrand|rdseed|in|out|ins\w|outs\w|std|cli|sti|popf\w*"
    r"|pushf\w*|leave\w*|enter\w*|xsave\w*|xrstor\w*|fx\w+|f?n?ldcw|fldenv|fn?stenv|fn?init|frstor|fn?save|ldmxcsr|vldmxcsr"
    r"|wr\w+base|rd\w+base|clflush\w*|lgdt|vmcall|vmmcall|mfence|lfence|pause|xtest|xend|xabort|\(bad\)|wbinvd|inc\w*ssp\w*"
    r"|f\w+|rdssp\w|bnd\w+|str|sldt|monitor\w*|mwait\w*|clwb|cldemote|emms|maskmov\w*|.*%[efg]s)\b|%[fg]s:|%es:|,%[c-g]s$|\(bad\)")
BYTES_MAX, INSTRUCTIONS_MAX = 160, 40


def instructions(path):
    """(address, hexadecimal bytes, text) of each instruction"""
    out = subprocess.run(["objdump", "-d", "-j", ".text", "--wide", "--insn-width=15", path],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in out.splitlines():
        m = LINE.match(line)
        if m and m[3]:
            yield int(m[1], 16), m[2].replace(" ", ""), m[3].split("#")[0].split("<")[0].strip()


def blocks_of(path):
    listing = list(instructions(path))
    targets = set()
    for _, _, text in listing:
        m = re.match(r"^(?:bnd )?j\w+\s+([0-9a-f]+)$", text)
        if m:
            targets.add(int(m[1], 16))
    block, is_bad, found = [], False, set()

    def end():
        nonlocal block, is_bad
        code = "".join(b for b, _ in block)
        # padding between functions is no block
        if block and not is_bad and not all(re.match(r"(nop|xchg\s+%ax,%ax|data16|cs nop|int3)", t)
                                            for _, t in block):
            if len(code) <= 2 * BYTES_MAX and len(block) <= INSTRUCTIONS_MAX:
                found.add(code)
        block, is_bad = [], False
    for address, code, text in listing:
        if address in targets:
            end()
        if ENDS.match(text):
            end()
            continue
        if NOT_ALONE.search(text):
            is_bad = True
        block.append((code, text))
    return sorted(found)


def main():
    count, files = int(sys.argv[1]), sys.argv[2:]
    pick = random.Random(5)
    taken = set()
    for i, path in enumerate(files):
        found = [b for b in blocks_of(path) if b not in taken]
        pick.shuffle(found)
        taken.update(found[:(count - len(taken)) // (len(files) - i)])
    for block in sorted(taken):
        print(block)


main()
