# SPDX-License-Identifier: MIT
# cfi_readelf.py FILE CFI_ROWS: compares every row that `readelf -wF FILE` prints with the rule that
# the program CFI_ROWS finds at the row's first and last address. Prints "rows N wrong N".
import re
import subprocess
import sys

FOLLOWED = set(
    "ra rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 "
    "eax edx ecx ebx esi edi ebp esp".split()
)
HEAD = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ (CIE|FDE)(.*)")


def words(columns, cells):
    """A row in the words of CFI_ROWS, registers sorted."""
    places = [
        "%s=%s" % (name, cell)
        for name, cell in zip(columns[1:], cells[1:])
        if name in FOLLOWED and cell not in ("u", "s")
    ]
    return " ".join([cells[0]] + sorted(places))


def expected_rows(path):
    """(first address, end, words) for each row."""
    text = subprocess.run(
        ["readelf", "-wF", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ).stdout
    cie_rows, kind, offset, low, high, columns, rows = {}, None, None, 0, 0, [], []

    def finish():
        if kind == "CIE" and rows:
            cie_rows[offset] = rows[-1][1]
        if kind != "FDE" or low == 0 or low == high:
            return
        here = rows or [(low, cie_rows.get(cie))]
        merged = dict(here)  # of several rows at one address the last one counts
        starts = sorted(a for a in merged if low <= a < high)
        for start, end in zip(starts, starts[1:] + [high]):
            yield start, end, merged[start]

    cie = None
    for line in text.splitlines() + ["0 0 0 CIE"]:
        head = HEAD.match(line)
        if head:
            yield from finish()
            kind, rows, offset = head[1], [], int(line.split()[0], 16)
            if kind == "FDE":
                cie = int(re.search(r"cie=([0-9a-f]+)", line)[1], 16)
                low, high = (int(x, 16) for x in re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", line).groups())
        elif line.strip().startswith("LOC"):
            columns = line.split()[1:]
        elif kind and re.match(r"^[0-9a-f]{8,16} ", line):
            cells = re.sub(r" \(\w+\)", "", line).split()  # "r1 (ecx)"
            rows.append((int(cells[0], 16), words(columns, cells[1:])))


def main():
    path, program = sys.argv[1:]
    rows = list(expected_rows(path))
    addresses = [a for start, end, _ in rows for a in (start, end - 1)]
    found = subprocess.run(
        [program, path], input="\n".join("%x" % a for a in addresses), stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()
    wrong = 0
    for i, (start, end, row) in enumerate(rows):
        for k, address in enumerate((start, end - 1)):
            parts = found[2 * i + k].split() if 2 * i + k < len(found) else ["nothing"]
            ours = " ".join(parts[:1] + sorted(parts[1:]))
            if ours != row:
                wrong += 1
                if wrong < 6:
                    print("%x: ours '%s', readelf '%s'" % (address, ours, row))
    print("rows %d wrong %d" % (len(rows), wrong))


main()
