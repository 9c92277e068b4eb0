#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dwarf_addr2line.py DUMP IMAGE STEP MINIMUM

Asks dwarf_dump, addr2line and llvm-symbolizer about every STEP-th address of the executable
sections of IMAGE, and about both ends of every function, and compares names, files and lines at
every inline level. Prints one line of figures, then differences. Fails when fewer than MINIMUM
addresses were resolved, or when more than one of a thousand differ from both tools, or from the
only one that is installed. Both have bugs of their own: binutils 2.40 takes file 0 for file 1 up to
the first DW_LNS_set_file of a DWARF 5 sequence, LLVM 14 knows no lines outside of functions.

What is not compared, since the tools differ there among themselves:
- addresses that neither knows from debug information;
- outermost names letter by letter: the tools take them from the symbol table, addr2line when the
  debug information has no linkage name, llvm-symbolizer always. They must be the same function's;
- innermost names of addr2line that have no linkage name: it puts the symbol's name there too;
- "./" and "x/../" in file names, and text behind the line, such as "(discriminator 3)".
"""
import os
import re
import shutil
import subprocess
import sys

SHOWN_MAX = int(os.environ.get("SHOWN_MAX", "5"))


def sections(image):
    out = subprocess.run(["readelf", "-SW", image], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        m = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)\s+\S+\s+(\S*X\S*)\s", line)
        if m and "A" in m.group(4):
            yield m.group(1), int(m.group(2), 16), int(m.group(3), 16)


def addresses(dump, image, step):
    found = set()
    for name, start, size in sections(image):
        if not name.startswith(".plt"):
            found.update(range(start, start + size, step))
    out = subprocess.run([dump, "functions", image], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        start, end = line.lstrip("*").split(" ")[:2]
        found.update((int(start, 16), int(end, 16) - 1))
    return sorted(found)


def ask(command, addrs):
    text = "".join(f"{a:#x}\n" for a in addrs)
    out = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    answers, now = {}, None
    for line in out.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            now = answers.setdefault(int(line, 16), [])
        elif now is not None and line:
            now.append(line)
    return answers


def clean_place(place):
    place = re.sub(r" \(discriminator \d+\)$", "", place)
    file, _, line = place.rpartition(":")
    parts = line.split(":")
    if file.count(":") and file.rpartition(":")[2].isdigit():  # llvm prints a column too
        file, _, parts[0] = file.rpartition(":")
    if file in ("??", ""):
        return "??:0"
    return f"{os.path.normpath(file)}:{0 if parts[0] in ('?', '') else int(parts[0])}"


def chain(lines):
    return [(lines[i], clean_place(lines[i + 1])) for i in range(0, len(lines) - 1, 2)]


def known(c):
    return any(place != "??:0" for _, place in c)


def equal(ours, theirs, outer_names):
    if len(ours) != len(theirs):
        return False
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a[1] != b[1] and not (a[1].endswith(":0") and b[1].endswith(":0")):
            return False
        is_outer = i == len(ours) - 1
        if a[0] != b[0] and not (is_outer and (a[0] == "??" or not outer_names)):
            return False
    return True


def demangled(names):
    names = sorted(names)
    out = subprocess.run(["c++filt"], input="\n".join(names) + "\n", capture_output=True, text=True, check=True)
    return dict(zip(names, out.stdout.splitlines()))


def strange_names(outer):
    """Outermost names {(ours, theirs...): count} that cannot be the same function. The symbol table
    has "f.cold" for a part of f, and the mangled name where gcc's DWARF has only the plain one."""
    plain = demangled({name for names in outer for name in names})
    for names, count in outer.items():
        ours, theirs = names[0], names[1:]
        base = re.match(r"operator\W*|[~\w.]+|", ours).group(0)
        if ours != "??" and not any(t == ours or t.startswith(ours + ".") or base and base in plain[t] for t in theirs):
            yield names, count


def tool_answers(image, addrs):
    """Per tool: whether its outermost names count, and its answers."""
    tools = {}
    if shutil.which("addr2line"):
        tools["addr2line"] = (True, ask(["addr2line", "-a", "-f", "-i", "-e", image], addrs))
    if shutil.which("llvm-symbolizer"):
        command = ["llvm-symbolizer", "--addresses", "--inlines", "--functions=linkage", "--no-demangle",
                   "--output-style=GNU", "-e", image]
        tools["llvm-symbolizer"] = (False, ask(command, addrs))
    return tools


def main():
    dump, image, step, minimum = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    addrs = addresses(dump, image, step)
    ours = ask([dump, "find", image], addrs)
    tools = tool_answers(image, addrs)
    if not tools:
        sys.exit("neither addr2line nor llvm-symbolizer is installed")
    n = inlined = alone = 0
    differ = {tool: 0 for tool in tools}
    shown, outer = [], {}
    for a in addrs:
        x = chain(ours.get(a, []))
        theirs = {tool: chain(answers.get(a, [])) for tool, (_, answers) in tools.items()}
        if not known(x) and not any(known(y) for y in theirs.values()):
            continue
        n += 1
        inlined += len(x) > 1
        names = tuple(y[-1][0] for y in [x, *theirs.values()] if y)
        outer[names] = outer.get(names, 0) + 1
        wrong = [tool for tool, y in theirs.items() if not equal(x, y, tools[tool][0])]
        for tool in wrong:
            differ[tool] += 1
        if len(wrong) == len(tools):
            alone += 1
            if len(shown) < SHOWN_MAX:
                shown.append(f"{a:#x}:\n  ours {x}\n" + "\n".join(f"  {t} {y}" for t, y in theirs.items()))
    for names, count in strange_names(outer):
        alone += count
        shown.append(f"{count} times: {' / '.join(names)}")
    figures = ", ".join(f"{k} differ from {tool}" for tool, k in differ.items())
    print(f"{n} addresses, {inlined} of them inlined, {figures}, {alone} from all")
    print("\n".join(shown[:SHOWN_MAX]))
    return 0 if n >= minimum and alone * 1000 <= n else 1


sys.exit(main())
