#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the symbol table of an image with nm and objdump.

    symtab_nm.py DUMP IMAGE MINIMUM NM-INPUT...

NM-INPUT is FILE for nm's .symtab or -D:FILE for its .dynsym. What each address must resolve to is
worked out here from nm's list by the rules of symtab.h, in a way of its own: the symbols that cover
the address are all looked at. Fails when fewer than MINIMUM addresses could be compared, or when
one differs. Prints a line of counts.
"""
import bisect
import subprocess
import sys


def run(*argv, text=None):
    return subprocess.run(argv, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="surrogateescape", check=True).stdout


def executable_sections(path):
    """name -> (start, end) of the sections with code."""
    out = {}
    for line in run("readelf", "-SW", path).splitlines():
        head, _, rest = line.partition("]")
        fields = rest.split()
        if not head.strip().startswith("[") or len(fields) < 8 or "X" not in fields[6]:
            continue
        start = int(fields[2], 16)
        out[fields[0]] = (start, start + int(fields[4], 16))
    return out


def read_nm(argument):
    """[(addr, size, name, section, kind)] of function-like symbols."""
    flags = []
    path = argument
    if argument.startswith("-D:"):
        flags, path = ["-D"], argument[3:]
    code = executable_sections(path)
    out = []
    for line in run("nm", *flags, "--defined-only", "-f", "sysv", path).splitlines():
        fields = [f.strip() for f in line.split("|")]
        if len(fields) != 7 or not fields[1]:
            continue
        name, kind, section = fields[0].split("@")[0], fields[3], fields[6]
        if kind not in ("FUNC", "NOTYPE", "IFUNC", "<OS specific>: 10") or section not in code:
            continue
        addr = int(fields[1], 16)
        if not code[section][0] <= addr < code[section][1]:
            continue
        if kind == "NOTYPE" and (name.startswith(".") or name.startswith("$")):
            continue
        out.append((addr, int(fields[4] or "0", 16), name, section, kind))
    return out


def read_stubs(path):
    """addr -> name of the stubs that objdump makes names for."""
    out = {}
    sections = [s for s in (".plt", ".plt.sec", ".plt.got") if s in executable_sections(path)]
    for section in sections:
        for line in run("objdump", "-d", "--no-show-raw-insn", "-j", section, path).splitlines():
            if line.endswith("@plt>:"):
                addr, _, name = line.partition(" ")
                out[int(addr, 16)] = name[1:-2]
    return out


class Expected:
    def __init__(self, symbols, code):
        self.aliases = {}
        size_of = {}
        self.section_of = {}
        self.indirect = {s[2] for s in symbols if s[4] in ("IFUNC", "<OS specific>: 10")}
        for addr, size, name, section, _ in symbols:
            self.aliases.setdefault(addr, set()).add(name)
            size_of[addr] = max(size, size_of.get(addr, 0))
            self.section_of[addr] = section
        self.starts = sorted(self.aliases)
        self.size_of = size_of
        self.code = code
        self.reach = []  # of each start: the highest end of all symbols up to it
        for start in self.starts:
            end = start + size_of[start]
            self.reach.append(max(end, self.reach[-1]) if self.reach else end)

    def covering(self, addr, i):
        """The last of the first i + 1 starts whose size covers addr, or None."""
        while i >= 0 and self.reach[i] > addr:
            if addr < self.starts[i] + self.size_of[self.starts[i]]:
                return self.starts[i]
            i -= 1
        return None

    def at(self, addr):
        """The set of right answers; {"-"} for none."""
        i = bisect.bisect_right(self.starts, addr) - 1
        start = self.covering(addr, i)
        if start is not None:
            return self.aliases[start]
        # No size covers it: the nearest symbol before may be one without a size, and outside others.
        while i >= 0 and not self.size_of[self.starts[i]]:
            start = self.starts[i]
            if self.covering(start, i - 1) is None:
                end = self.code[self.section_of[start]][1]
                return self.aliases[start] if addr < end else {"-"}
            i -= 1
        return {"-"}

    def probes(self):
        """Every start, and first padding byte, middle and end of every function with a size."""
        for start in self.starts:
            size = self.size_of[start]
            yield from (start, start + size // 2, start + max(size, 1) - 1, start + size)


def main():
    dump, image, minimum = sys.argv[1], sys.argv[2], int(sys.argv[3])
    symbols = [s for argument in sys.argv[4:] for s in read_nm(argument)]
    code = executable_sections(image)
    expected = Expected(symbols, code)
    plt = [code[s] for s in (".plt", ".plt.sec", ".plt.got") if s in code]
    probes = sorted({a for a in expected.probes()
                     if not any(start <= a < end for start, end in plt)})
    stubs = read_stubs(image)
    asked = probes + sorted(stubs)
    answer = run(dump, "find", image, text="".join(f"{a:x}\n" for a in asked)).splitlines()
    got = [line.split(" ", 1)[1] for line in answer]
    bad = []
    if len(got) != len(asked):
        bad.append(f"{len(asked)} addresses asked, {len(got)} answered")
    for addr, name in zip(asked, got):
        if addr in stubs:
            right = {stubs[addr]}
            if stubs[addr] == "*ABS*@plt":  # of 32-bit images: the resolver is not told
                right = {n + "@plt" for n in expected.indirect}
            elif stubs[addr].startswith("*ABS*+0x"):
                resolver = int(stubs[addr][len("*ABS*+0x"):-len("@plt")], 16)
                right = {n + "@plt" for n in expected.aliases.get(resolver, [])} or right
            elif "@@" in stubs[addr] or stubs[addr].count("@") > 1:
                right = {stubs[addr].split("@")[0] + "@plt"}
        else:
            right = expected.at(addr)
        if name not in right:
            bad.append(f"{addr:x}: '{name}', expected one of {sorted(right)[:4]}")
    starts = sum(1 for a in probes if a in expected.aliases)
    print(f"{len(probes)} addresses ({starts} starts), {len(stubs)} stubs, {len(bad)} differ")
    for line in bad[:10]:
        print("  " + line)
    if len(asked) < minimum:
        print(f"  fewer than the {minimum} addresses that this image should have")
    sys.exit(1 if bad or len(asked) < minimum else 0)


main()
