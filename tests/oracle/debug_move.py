# SPDX-License-Identifier: MIT
"""debug_move.py GROW OBJECT BYTES EVERY [verify] [entries]: debug information of an object whose code has grown.

GROW is debug_move_grow. The object and its grown copy are linked so that each section of code has an
address of its own, llvm-dwarfdump prints both, the addresses in the old text are mapped, and the texts
must be equal. With EVERY 0 nothing moves, and every debug section must keep its bytes. With `verify` the
errors that llvm-dwarfdump --verify finds must be the same too. With `entries` the entries may be at
other offsets than before; what they refer to is compared by its name and kind. Prints "N lines M different", and the
differences above it.
"""
import bisect
import re
import subprocess
import sys

BASE, STEP = 0x10000000, 0x400000
VERIFY_SECONDS = 20


def run(command, may_fail=False):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode and not may_fail:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[:500]}")
    return done.stdout


def read_maps(text):
    maps, names = {}, {}
    for line in text.splitlines():
        word = line.split()
        if word[0] == "section":
            number = int(word[1])
            names[number] = word[2]
            maps[number] = ([], [], [])
        else:
            maps[number][0].append(int(word[1]))
            maps[number][1].append(int(word[2]))
            maps[number][2].append(int(word[3]))
    return maps, names


def new_address(maps, address):
    number, offset = divmod(address - BASE, STEP)
    olds, labels, places = maps[number]
    at = bisect.bisect_right(olds, offset) - 1
    if olds[at] == offset:
        return BASE + number * STEP + labels[at]
    return BASE + number * STEP + places[at] + offset - olds[at]


def link(obj, out, names):
    with open("debug_move.ld", "w") as script:
        script.write("SECTIONS {\n")
        for number, name in names.items():
            script.write(f" .code{number} {BASE + number * STEP:#x} : {{ *({name}) }}\n")
        script.write(" .rest 0x8000000 : { *(.rodata*) *(.data*) *(.bss*) *(.gcc_except_table*)"
                     " *(.init_array*) *(.tbss*) *(.tdata*) *(.tm_clone_table*) }\n"
                     " /DISCARD/ : { *(.eh_frame) *(.note*) }\n}\n")
    # Distances in the code are those of the old code, so an overflow says nothing.
    run(["ld", "-o", out, "-T", "debug_move.ld", "-e", "0", "--unresolved-symbols=ignore-all",
         "--no-relax", "--noinhibit-exec", "-z", "nognustack", obj], may_fail=True)


def dump(path):
    text = run(["llvm-dwarfdump", "--debug-info", "--debug-line", "--debug-aranges", path],
               may_fail=True)
    kept = []
    for line in text.splitlines():
        if "file format" in line or not line or "total_length" in line:
            continue
        # Offsets in sections that are laid out anew, and places in the line program.
        line = re.sub(r"^0x[0-9a-f]{8}: (?=[0-9a-f]{2} )", "", line)
        line = re.sub(r"(DW_AT_(?:stmt_list|location|ranges|frame_base|GNU_locviews|macros|call_value|"
                      r"string_length|rnglists_base|loclists_base|GNU_call_site_value)\b.*?)"
                      r"0x(?:[0-9a-f]{8}){1,2}(?![0-9a-f])", r"\1OFFSET", line)
        line = re.sub(r"rangelist = 0x[0-9a-f]{8}", "rangelist = OFFSET", line)
        line = re.sub(r"loclist = 0x[0-9a-f]{8}", "loclist = OFFSET", line)
        if "entries" in sys.argv:
            line = re.sub(r"0x[0-9a-f]{8}(?![0-9a-f])", "OFFSET", line)
        line = re.sub(r"debug_line\[0x[0-9a-f]+\]", "debug_line[]", line)
        kept.append(line)
    return kept


def move_line(maps, line):
    def replace(match):
        address, digits = int(match.group(1), 16), len(match.group(1))
        if not BASE <= address < BASE + STEP * 4096 or (address - BASE) // STEP not in maps:
            return match.group(0)
        return f"0x{new_address(maps, address):0{digits}x}"

    line = re.sub(r"(?<=DW_OP_addr )0x([0-9a-f]{1,15})(?![0-9a-f])", replace, line)
    return re.sub(r"0x([0-9a-f]{16})(?![0-9a-f])", replace, line)


def errors(path):
    """What --verify finds; None when it takes too long."""
    try:
        text = subprocess.run(["llvm-dwarfdump", "--verify", path], capture_output=True, text=True,
                              errors="replace", timeout=VERIFY_SECONDS).stdout
    except subprocess.TimeoutExpired:
        return None
    return sorted(re.sub(r"0x[0-9a-f]+", "N", line) for line in text.splitlines()
                  if line.startswith(("error:", "warning:")))


def changed_sections(old, new):
    names = set(re.findall(r"\.debug_[a-z_.]+", run(["readelf", "-WS", old])))
    changed = []
    for name in sorted(names):
        contents = []
        for path in (old, new):
            run(["objcopy", "--dump-section", f"{name}=section.bin", path, "copy.o"])
            with open("section.bin", "rb") as section:
                contents.append(section.read())
        if contents[0] != contents[1]:
            changed.append(name)
    return changed


def main():
    grow, obj, n_bytes, every = sys.argv[1:5]
    maps, names = read_maps(run([grow, obj, "grown.o", n_bytes, every]))
    link(obj, "old.elf", names)
    link("grown.o", "new.elf", names)
    old = [move_line(maps, line) for line in dump("old.elf")]
    new = dump("new.elf")
    for name, text in (("old.txt", old), ("new.txt", new)):
        with open(name, "w") as out:
            out.write("\n".join(text) + "\n")
    difference = run(["diff", "-U1", "old.txt", "new.txt"], may_fail=True).splitlines()[2:]
    different = sum(line[:1] in "+-" for line in difference)
    print("\n".join(difference))
    if "verify" in sys.argv:
        was, now = errors("old.elf"), errors("new.elf")
        if was != now and was is not None and now is not None:
            different += 1
            print("llvm-dwarfdump --verify said:", was[:5], "and now says:", now[:5])
    for name in changed_sections(obj, "grown.o") if every == "0" else []:
        different += 1
        print("other bytes in", name)
    print(len(new), "lines", different, "different")


main()
