# SPDX-License-Identifier: MIT
"""Compares what a reader of symbol sources finds with nm on the unstripped image.

   text_sources.py DUMP ld|lld|nm TEXT IMAGE MINIMUM [OPTION...]

Prints one line of figures, or one line for each disagreement and exits with 1. Options:
   locals     local functions must be found too, but for those of crt*.o
   own-sizes  every function with a size in nm must have one, but for those of crt*.o
   dynamic    compares with nm -D
"""
import re
import subprocess
import sys

dump, reader, text, image, minimum = sys.argv[1:6]
options = sys.argv[6:]
CRT = {"deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy",
       "_init", "_fini", "_start", "_dl_relocate_static_pie"}
# Assigned by linker scripts; the map shows assignments, not symbols.
ASSIGNED = {"_etext", "etext", "__etext", "__executable_start", "__ehdr_start",
            "__preinit_array_start", "__preinit_array_end"}


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def code_sections():
    found = {}
    for line in lines("readelf", "-SW", image):
        m = re.match(r" *\[ *\d+\] (\S+) +\S+ +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) +\S+ +([A-Z]*X[A-Z]*) ",
                     line)
        if m:
            found[m[1]] = (int(m[2], 16), int(m[3], 16))
    return found


def without_version(name):
    return name if name.endswith("@plt") else name.split("@")[0]


def nm_functions():
    """(address, name) -> (class, size), for functions in code sections."""
    sections, found = code_sections(), {}
    command = ["nm", "-f", "sysv"] + (["-D"] if "dynamic" in options else []) + [image]
    for line in lines(*command):
        columns = [c.strip() for c in line.rsplit("|", 6)]
        if len(columns) != 7 or columns[2] not in "tTwWiI" or not columns[1]:
            continue
        if columns[6] not in sections or columns[3] in ("OBJECT", "TLS", "SECTION", "FILE"):
            continue
        name, addr = without_version(columns[0]), int(columns[1], 16)
        start, size = sections[columns[6]]
        if name in ASSIGNED or name.startswith((".L", "$")) or addr >= start + size:
            continue
        if columns[6].startswith((".plt", ".iplt")):
            continue
        found[addr, name] = (columns[2], int(columns[4] or "0", 16))
    return found


nm = nm_functions()
names = sorted({name for _, name in nm})
readable = dict(zip(names, subprocess.run(
    ["c++filt", "--no-verbose"], input="\n".join(names) + "\n", check=True, capture_output=True,
    text=True).stdout.splitlines()))
llvm = dict(readable)
if reader == "lld":
    llvm = dict(zip(names, subprocess.run(
        ["llvm-cxxfilt"], input="\n".join(names) + "\n", check=True, capture_output=True,
        text=True).stdout.splitlines()))
by_addr = {}
for (addr, name), (kind, size) in nm.items():
    by_addr.setdefault(addr, []).append((name, kind, size))

ours, wrong = {}, []
for line in lines(dump, reader, text):
    start, size, room, bind, name = line.split(" ", 4)
    ours.setdefault(int(start, 16), []).append((name, int(size, 16), int(room, 16)))

n_sized = 0
for addr, symbols in ours.items():
    there = by_addr.get(addr, [])
    known = {n for n, _, _ in there} | {readable[n] for n, _, _ in there} | {llvm[n] for n, _, _ in there}
    sizes = {s for _, _, s in there if s}
    for name, size, room in symbols:
        if name not in known:
            wrong.append(f"{addr:x} {name}: nm has {sorted(known)[:3]}")
        if size and sizes and size not in sizes:
            wrong.append(f"{addr:x} {name}: size {size:x}, nm has {[hex(s) for s in sizes]}")
        if not size and sizes and reader != "nm" and room < min(sizes):
            wrong.append(f"{addr:x} {name}: room {room:x}, nm has {[hex(s) for s in sizes]}")
        n_sized += size > 0

n_locals = 0
for addr, symbols in by_addr.items():
    mine = {name for name, _, _ in ours.get(addr, [])}
    for name, kind, size in symbols:
        if addr in ours:
            # A demangled name stands for all that read so, and the linkage name for its readable form.
            if not mine & {name, readable[name], llvm[name]} and \
                    readable[name] not in {readable.get(m) for m in mine}:
                if kind == "t" and reader == "ld":
                    n_locals += 1  # a second, local name
                    continue
                wrong.append(f"{addr:x} {name}: found is only {sorted(mine)[:3]}")
            if "own-sizes" in options and size and name not in CRT and \
                    not any(s for _, s, _ in ours[addr]):
                wrong.append(f"{addr:x} {name}: has no size, nm has {size:x}")
        elif kind == "t" and ("locals" not in options or name in CRT):
            n_locals += 1
        else:
            wrong.append(f"{addr:x} {name} ({kind}) is missing")

n = sum(len(s) for s in ours.values())
if n < int(minimum):
    wrong.append(f"only {n} functions were found, {minimum} were expected")
print(f"{n} functions, {n_sized} with a size, {n_locals} local ones not in the text"
      if not wrong else f"{len(wrong)} of {n} disagree")
for line in wrong[:20]:
    print(line)
sys.exit(1 if wrong else 0)
