# SPDX-License-Identifier: MIT
"""exception_tables_nops.py TOOL EVERY FILE.s...: puts a nop in front of every EVERYth instruction of
compiler output and lets the assembler make the tables. Those that are made from the object without
nops, with the map from one object's code to the other's, must say the same; .eh_frame to the byte.
Prints how much was compared; differences on stderr."""
import os
import re
import subprocess
import sys

import exception_tables as tables

MARK = "nopw 0x77656972(%rax,%rax,1)"


def with_nops(lines, every):
    """The lines without alignment of code, and the same with nops."""
    plain, marked, in_code, n = [], [], True, 0
    for line in lines:
        word = line.split()[0] if line.split() else ""
        if word in (".text", ".data", ".bss"):
            in_code = word == ".text"
        elif word == ".section":
            in_code = bool(re.search(r'"a?[A-Za-z]*x', line)) or ".text" in line
        if in_code and word in (".p2align", ".align"):
            continue
        if in_code and re.match(r"\t[a-z]", line):
            n += 1
            if n % every == 0:
                marked.append("\t" + MARK)
        plain.append(line)
        marked.append(line)
    return plain, marked


def assembled(path, lines):
    assembler = "clang" if any(".addrsig" in line for line in lines) else "gcc"
    subprocess.run([assembler, "-c", "-x", "assembler", "-o", path, "-"], check=True, text=True,
                   input="\n".join(lines) + "\n")
    return tables.Object(path)


def instructions(path):
    """[[(address, is_mark)]] of each section of code, in their order."""
    out = []
    text = subprocess.run(["objdump", "-dw", "--no-show-raw-insn", path], capture_output=True, text=True)
    for line in text.stdout.splitlines():
        if line.startswith("Disassembly of section"):
            out.append([])
        found = re.match(r" *([0-9a-f]+):\s+(\S.*)", line)
        if found:
            out[-1].append((int(found.group(1), 16), "0x77656972(" in found.group(2)))
    return out


def code_sections(o):
    return [i for i, h in enumerate(o.headers) if h[1] == 1 and h[2] & 4 and h[5]]


def write_rows(path, old, new, plain, marked):
    sections = code_sections(old)
    tables.same("sections of code", len(sections), len(plain))
    with open(path, "w") as f:
        for section, new_section, rows, new_rows in zip(sections, code_sections(new), plain, marked):
            pairs, label = [], None
            for address, is_mark in new_rows:
                if is_mark:
                    label = address
                else:
                    pairs.append((address if label is None else label, address))
                    label = None
            tables.same("instructions of " + old.names[section], len(rows), len(pairs))
            print(section, len(new.bytes_of(new_section)), file=f)
            for (address, _), (label, place) in zip(rows, pairs):
                print(section, address, label, place, file=f)


def compare(stem, counts):
    """What we made against what the assembler made."""
    new, ours = tables.Object(stem + ".new.o"), tables.Object("1.out.o")
    frames = []
    for o in (new, ours):
        i = o.names.index(".eh_frame")
        frames.append((o.bytes_of(i), tables.read_frames(o, i)["fdes"]))
    for x, y in zip(frames[0][1], frames[1][1]):
        for what in ("cie", "size", "program"):
            tables.same(what, x[what], y[what])
        counts[0] += 1
        if not x["lsda"]:
            continue
        p, q = (tables.read_lsda(o, fde["lsda"], fde["pc"], tables.lsda_starts([{"fdes": f[1]}])[fde["lsda"][0]])
                for o, fde, f in ((new, x, frames[0]), (ours, y, frames[1])))
        tables.same("an LSDA", p, q)
        counts[1] += len(p["sites"])
    tables.same("the bytes of .eh_frame", frames[0][0].hex(" "), frames[1][0].hex(" "))


def main():
    tool, every, counts, failed = sys.argv[1], int(sys.argv[2]), [0, 0], 0
    for path in sys.argv[3:]:
        stem = os.path.basename(path)
        try:
            plain, marked = with_nops(open(path).read().split("\n"), every)
            old, new = assembled(stem + ".old.o", plain), assembled(stem + ".new.o", marked)
            write_rows("rows.txt", old, new, instructions(stem + ".old.o"), instructions(stem + ".new.o"))
            subprocess.run([tool, "rows", "rows.txt", "1", stem + ".old.o", "."], check=True,
                           stdout=subprocess.DEVNULL)
            compare(stem, counts)
        except (tables.Different, subprocess.CalledProcessError) as e:
            failed += 1
            print(f"{stem}: {str(e)[:1500]}", file=sys.stderr)
    print(f"{counts[0]} FDEs, {counts[1]} call sites")
    sys.exit(1 if failed or not counts[0] else 0)


main()
