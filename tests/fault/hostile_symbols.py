#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that were made to exhaust whoever reads symbols from them.

hostile_symbols.py make CASE FILE     makes one of them (and FILE.image where it needs an image)
hostile_symbols.py run SECONDS BYTES COMMAND...
    runs a command with that much time and (unless BYTES is 0) address space, its output in out.txt
    and err.txt, and prints "STATUS PEAK_RSS_KIB MILLISECONDS"; a signal is 128 + its number.
"""
import os
import resource
import struct
import subprocess
import sys
import time
import zlib

BASE = 0x401000  # where the code is
CODE = 0x4000000  # bytes of it in memory
MIB = 1 << 20

# --- ELF ---------------------------------------------------------------------------------------

PROGBITS, SYMTAB, STRTAB, NOTE, NOBITS = 1, 2, 3, 7, 8
ALLOC, EXEC, COMPRESSED = 2, 4, 0x800


def section(name, data=b"", kind=PROGBITS, flags=0, addr=0, link=0, entsize=0, size=None, offset=None):
    return dict(name=name, data=data, kind=kind, flags=flags, addr=addr, link=link,
                entsize=entsize, size=size, offset=offset)


def elf(sections, n_note_segments=0, long_name=b""):
    """An executable with a piece of code and these sections, which count from 2."""
    head = 64 + 56 * (1 + n_note_segments)
    body, names = bytearray(head), bytearray(b"\0")
    rows = [bytes(64)]
    sections = [section(".text", b"\x90" * 64, flags=ALLOC | EXEC, addr=BASE, size=64)] + sections
    names += long_name + b"\0" if long_name else b""
    offsets = {}
    for s in sections + [section(".shstrtab", None, STRTAB)]:
        name = s["name"]
        if isinstance(name, int):  # an offset into the long name
            at = name
        else:
            if name not in offsets:
                offsets[name] = len(names)
                names += name.encode() + b"\0"
            at = offsets[name]
        data = bytes(names) if s["data"] is None else s["data"]
        offset = s["offset"]
        if offset is None:
            body += bytes(-len(body) % 16)
            offset = len(body)
            body += data
        size = len(data) if s["size"] is None else s["size"]
        rows.append(struct.pack("<IIQQQQIIQQ", at, s["kind"], s["flags"], s["addr"], offset, size,
                                s["link"], 0, 1, s["entsize"]))
    body += bytes(-len(body) % 16)
    shoff, n = len(body), len(rows)
    if n >= 0xff00:  # the count is in the first section's size, the names' index in its link
        rows[0] = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, n, n - 1, 0, 0, 0)
    body += b"".join(rows)
    body[:64] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, BASE, 64, shoff, 0, 64, 56, 1 + n_note_segments, 64,
        n if n < 0xff00 else 0, n - 1 if n < 0xff00 else 0xffff)
    body[64:120] = struct.pack("<IIQQQQQQ", 1, 5, head, BASE, BASE, 64, CODE, 4096)
    for i in range(n_note_segments):
        body[120 + 56 * i:176 + 56 * i] = struct.pack("<IIQQQQQQ", 4, 4, 0, 0, 0, 1 << 40, 0, 4)
    return bytes(body)


def compressed(method, claim, data):
    return struct.pack("<IIQQ", method, 0, claim, 1) + data


def zlib_zeros(n):
    """A whole zlib stream of n zeros, n being a multiple of 16 MiB."""
    part = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = part.compress(bytes(16 * MIB)) + part.flush(zlib.Z_FULL_FLUSH)
    return (b"\x78\xda" + block * (n // (16 * MIB)) + b"\x03\x00" +
            struct.pack(">I", (n % 65521) << 16 | 1))


def zstd_zeros(n):
    """A zstd frame of n zeros in blocks of one repeated byte, n being a multiple of 128 KiB."""
    n_blocks = n // 131072
    block = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", 131072 << 3 | 1 << 1 | 1)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd\xc0\x38" + struct.pack("<Q", n) + block * (n_blocks - 1) + last


def symtab_of(n, names, name_of, addr_of):
    rows = b"".join(struct.pack("<IBBHQQ", name_of(i), 0x12, 0, 1, addr_of(i), 0) for i in range(n))
    return [section(".symtab", bytes(24) + rows, SYMTAB, link=3, entsize=24),
            section(".strtab", b"\0" + names + b"\0", STRTAB)]


# --- DWARF -------------------------------------------------------------------------------------

AT_SIBLING, AT_NAME, AT_STMT_LIST, AT_LOW, AT_HIGH, AT_DIR = 1, 3, 0x10, 0x11, 0x12, 0x1b
AT_PRODUCER, AT_ORIGIN, AT_RANGES, AT_LINKAGE = 0x25, 0x31, 0x55, 0x6e
ADDR, DATA2, DATA4, DATA8, STRING, DATA1, STRP, UDATA, REF4 = 1, 5, 6, 7, 8, 0xb, 0xe, 0xf, 0x13
SEC_OFFSET, FLAG_PRESENT, STRX1, LINE_STRP = 0x17, 0x19, 0x25, 0x1f
CU, SUBPROGRAM, INLINED, BLOCK = 0x11, 0x2e, 0x1d, 0x0b


def uleb(v):
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7f | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def abbrevs(*rows):
    """(code, tag, has children, [(attribute, form)...])"""
    out = bytearray()
    for code, tag, children, attrs in rows:
        out += uleb(code) + uleb(tag) + bytes([children])
        out += b"".join(uleb(a) + uleb(f) for a, f in attrs) + b"\0\0"
    return bytes(out) + b"\0"


def unit(dies, version=4, abbrev=0, length=None):
    head = struct.pack("<HIB", version, abbrev, 8) if version < 5 else \
        struct.pack("<HBBI", version, 1, 8, abbrev)
    length = len(head) + len(dies) if length is None else length
    return struct.pack("<I", length) + head + dies


UNIT_HEAD = 11  # bytes in front of the first entry, version 4


def dwarf(info, abbrev, **others):
    return elf([section(".debug_info", info), section(".debug_abbrev", abbrev)] +
               [section(".debug_" + k, v) for k, v in others.items()])


def line_table(program, version=4, min_inst=1, max_ops=1, line_base=-5, line_range=14, tables=None):
    params = bytes([min_inst, max_ops, 1, line_base & 0xff, line_range, 13,
                    0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    params += tables if tables is not None else b"\0a.c\0\0\0\0\0"
    body = struct.pack("<H", version) + (b"\x08\0" if version >= 5 else b"")
    body += struct.pack("<I", len(params)) + params + program
    return struct.pack("<I", len(body)) + body


def set_address(addr):
    return b"\0\x09\x02" + struct.pack("<Q", addr)


END = b"\0\x01\x01"
WITH_LINES = abbrevs((1, CU, 0, [(AT_STMT_LIST, SEC_OFFSET)]))


def lines_only(table, version=4, **others):
    return dwarf(unit(b"\x01\0\0\0\0", version), WITH_LINES, line=table, **others)


def ranges(n, step=4):
    """One list of .debug_ranges: n pieces of 2 bytes."""
    start = BASE + 0x1000
    return b"".join(struct.pack("<QQ", start + i * step, start + i * step + 2)
                    for i in range(n)) + bytes(16)


# --- the cases ---------------------------------------------------------------------------------

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


@case
def claim_2_40():
    # a debug section that claims a terabyte
    return elf([section(".debug_info", compressed(1, 1 << 40, b"\x78\x9c" + bytes(1000)), flags=COMPRESSED)])


@case
def claim_2_40_zdebug():
    return elf([section(".zdebug_info", b"ZLIB" + struct.pack(">Q", 1 << 40) + bytes(1000))])


def bomb(name, packed):
    info, abbrev = unit(b"\x01\0\0\0\0"), WITH_LINES
    rest = [section(n, d) for n, d in ((".debug_info", info), (".debug_abbrev", abbrev)) if n != name]
    return elf([section(name, packed, flags=COMPRESSED)] + rest)


@case
def zlib_bomb_info():
    return bomb(".debug_info", compressed(1, 1 << 30, zlib_zeros(1 << 30)))


@case
def zlib_bomb_str():
    return bomb(".debug_str", compressed(1, 1 << 30, zlib_zeros(1 << 30)))


@case
def zstd_bomb_line():
    return bomb(".debug_line", compressed(2, 1 << 30, zstd_zeros(1 << 30)))


@case
def zstd_bomb_info():
    # padded to pass the ratio that a section may claim
    return bomb(".debug_info", compressed(2, 60 * MIB, zstd_zeros(60 * MIB) + bytes(MIB)))


@case
def zdebug_bomb():
    return elf([section(".zdebug_info", b"ZLIB" + struct.pack(">Q", 1 << 30) + zlib_zeros(1 << 30))])


@case
def zlib_within_ratio():
    # 64 : 1 by half a section of noise: all of it zeros for units that have no length
    noise = os.urandom(MIB)
    packed = zlib.compress(noise + bytes(59 * MIB), 9)
    return bomb(".debug_info", compressed(1, 60 * MIB, packed))


@case
def xz_bomb():
    import lzma  # here, because every run of this file would pay for it
    packed = lzma.compress(bytes(64 * MIB), preset=0)
    return elf([section(".gnu_debugdata", packed)])


@case
def xz_dictionary():
    import lzma
    # the header asks for a dictionary of 4 GiB - 1
    packed = bytearray(lzma.compress(b"\x7fELF" + bytes(1000), preset=0))
    size = (packed[12] + 1) * 4
    packed[12 + 4] = 40
    packed[12 + size - 4:12 + size] = struct.pack("<I", zlib.crc32(bytes(packed[12:12 + size - 4])))
    return elf([section(".gnu_debugdata", bytes(packed))])


@case
def sections_overlap():
    # 65,000 sections that each are the whole file, as code, notes, tables and debug information
    kinds = [(".debug_info", PROGBITS, 0), (".symtab", SYMTAB, 0), (".note", NOTE, ALLOC),
             (".text.x", PROGBITS, ALLOC | EXEC), (".plt", PROGBITS, ALLOC | EXEC)]
    return elf([section(n, kind=k, flags=f, addr=BASE + i, size=1 << 22, offset=0, link=2)
                for i in range(13000) for n, k, f in kinds], n_note_segments=4000)


@case
def section_names():
    # 65,000 sections whose names are the ends of one text of 64 kB
    text = b"n" * 65000
    return elf([section(i + 1, kind=NOBITS, flags=ALLOC, addr=BASE + i, size=16)
                for i in range(65000)], long_name=text)


@case
def symbol_names():
    # 300,000 symbols that are named by the rest of one text of 64 kB
    text = b"".join(b"%07x" % i for i in range(9000))
    return elf(symtab_of(300000, text, lambda i: 1 + i % 60000, lambda i: BASE + i % 64))


@case
def symbol_names_endless():
    # names of 4 MB: too long, and that must not be found out byte by byte
    return elf(symtab_of(300000, b"n" * (4 * MIB), lambda i: 1 + i % 60000, lambda i: BASE + i % 64))


@case
def symbols_of_one_address():
    text = b"\0".join(b"f%d" % i for i in range(200000))
    return elf(symtab_of(500000, text, lambda i: 1 + i, lambda i: BASE))


@case
def nested_deep():
    a = abbrevs((1, CU, 1, [(AT_LOW, ADDR)]), (2, BLOCK, 1, []),
                (3, INLINED, 1, [(AT_LOW, ADDR), (AT_HIGH, DATA4)]),
                (4, SUBPROGRAM, 1, [(AT_LOW, ADDR), (AT_HIGH, DATA4), (AT_NAME, STRING)]))
    inlined = b"\x03" + struct.pack("<QI", BASE, 64)
    dies = (b"\x01" + bytes(8) + b"\x04" + struct.pack("<QI", BASE, 64) + b"f\0" +
            inlined * 100000 + b"\x02" * 100000)
    return dwarf(unit(dies), a)


@case
def nested_inlines():
    # inlined calls 250 deep, many times over: chains of sites
    a = abbrevs((1, CU, 1, [(AT_LOW, ADDR)]),
                (3, INLINED, 1, [(AT_LOW, ADDR), (AT_HIGH, DATA4)]),
                (4, SUBPROGRAM, 1, [(AT_LOW, ADDR), (AT_HIGH, DATA4), (AT_NAME, STRING)]))
    dies = b""
    for f in range(400):
        low = BASE + 600 * f
        dies += b"\x04" + struct.pack("<QI", low, 600) + b"f\0"
        dies += b"".join(b"\x03" + struct.pack("<QI", low + k, 600 - 2 * k) for k in range(250))
        dies += bytes(251)
    return dwarf(unit(b"\x01" + bytes(8) + dies + b"\0"), a)


BY_RANGES = abbrevs((1, CU, 1, [(AT_LOW, ADDR)]),
                    (2, SUBPROGRAM, 0, [(AT_NAME, STRING), (AT_RANGES, SEC_OFFSET)]),
                    (3, INLINED, 0, [(AT_RANGES, SEC_OFFSET)]))


@case
def ranges_shared():
    # one list of 100,000 ranges, and 100,000 entries that have it
    dies = b"\x01" + bytes(8) + b"\x02f\0\0\0\0\0" * 50000 + b"\x03\0\0\0\0" * 50000 + b"\0"
    return dwarf(unit(dies), BY_RANGES, ranges=ranges(100000))


@case
def ranges_many_units():
    # the same from 50,000 units of one function each
    one = unit(b"\x01" + bytes(8) + b"\x02f\0\0\0\0\0\x03\0\0\0\0\0")
    return dwarf(one * 50000, BY_RANGES, ranges=ranges(100000))


@case
def names_many_units():
    # 50,000 units whose functions are named by the rest of one long text
    a = abbrevs((1, CU, 1, [(AT_LOW, ADDR)]),
                (2, SUBPROGRAM, 0, [(AT_LINKAGE, STRP), (AT_LOW, ADDR), (AT_HIGH, DATA4)]))
    info = b"".join(unit(b"\x01" + bytes(8) + b"\x02" +
                         struct.pack("<IQI", i, BASE + 8 * i, 8) + b"\0") for i in range(50000))
    return dwarf(info, a, str=b"".join(b"%07x" % i for i in range(17000)) + b"\0")


@case
def names_one_unit():
    a = abbrevs((1, CU, 1, [(AT_LOW, ADDR)]),
                (2, SUBPROGRAM, 0, [(AT_LINKAGE, STRP), (AT_LOW, ADDR), (AT_HIGH, DATA4)]))
    dies = b"".join(b"\x02" + struct.pack("<IQI", i, BASE + 8 * i, 8) for i in range(60000))
    return dwarf(unit(b"\x01" + bytes(8) + dies + b"\0"), a,
                 str=b"".join(b"%07x" % i for i in range(17000)) + b"\0")


ORIGINS = abbrevs((1, CU, 1, [(AT_LOW, ADDR)]),
                  (2, SUBPROGRAM, 0, [(AT_ORIGIN, REF4), (AT_LOW, ADDR), (AT_HIGH, DATA4)]),
                  (3, INLINED, 0, [(AT_ORIGIN, REF4)]),
                  (4, SUBPROGRAM, 0, [(AT_PRODUCER, STRING), (AT_ORIGIN, REF4)]))


@case
def origin_cycle():
    first = UNIT_HEAD + 9
    dies = bytearray(b"\x01" + bytes(8))
    for i in range(100000):  # each leads to the other of its pair
        to = first + 17 * (i ^ 1)
        dies += b"\x02" + struct.pack("<IQI", to, BASE + 4 * i, 4)
    return dwarf(unit(dies + b"\0"), ORIGINS)


@case
def origin_chain():
    first = UNIT_HEAD + 9
    dies = bytearray(b"\x01" + bytes(8))
    for i in range(200000):  # each leads to the next, the last to nothing
        dies += b"\x02" + struct.pack("<IQI", first + 17 * (i + 1), BASE + 4 * i, 4)
    return dwarf(unit(dies + b"\0"), ORIGINS)


@case
def origin_long_entries():
    # a million inlined calls that lead to entries of 128 kB without a name, 16 in a row
    start = UNIT_HEAD + 9
    text = b"\x04" * 120000 + b"\0" + struct.pack("<I", start)
    dies = b"\x01" + bytes(8) + text
    dies += b"".join(b"\x03" + struct.pack("<I", start + i % 119000) for i in range(1000000))
    return dwarf(unit(dies + b"\0"), ORIGINS)


@case
def line_rows():
    # 4 million rows of one byte each
    return lines_only(line_table(set_address(BASE) + bytes([13 + 14 + 6, 13 + 14 + 4]) * 2000000 +
                                 b"\x02\x04" + END))


@case
def line_rows_unsorted():
    # rows that go back by 2^64 - 1 again and again
    back = b"\x02" + uleb((1 << 64) - 3) + b"\x1f"
    return lines_only(line_table(set_address(BASE + 0x2000000) + back * 300000 + END))


@case
def line_advances():
    # steps of 2^63 with the largest instruction and operation counts
    step = b"\x02" + uleb(1 << 63) + b"\xff" + b"\x08\x01" + b"\x09\xff\xff\x01"
    return lines_only(line_table(set_address(BASE) + step * 200000 + END, min_inst=255, max_ops=255))


@case
def line_sequences():
    # 100,000 sequences that lie over each other
    one = b"".join(set_address(BASE + i % 977) + b"\x14\x02" + uleb(1 + i % 50000) + END
                   for i in range(100000))
    return lines_only(line_table(one))


@case
def line_define_files():
    return lines_only(line_table((b"\0\x06\x03a\0\0\0\0") * 1000000))


def files_5(formats, n, entries=b""):
    no_dirs = b"\0\0"
    table = no_dirs + bytes([len(formats)]) + b"".join(uleb(c) + uleb(f) for c, f in formats)
    return line_table(b"", version=5, tables=table + uleb(n) + entries)


@case
def files_of_no_bytes():
    # 2^32 files whose entries take no bytes
    return lines_only(files_5([(1, FLAG_PRESENT), (2, FLAG_PRESENT)], 1 << 32))


@case
def files_without_format():
    return lines_only(files_5([], 1 << 32))


@case
def files_of_one_byte():
    return lines_only(files_5([(2, UDATA)], 4000000, bytes(4000000)))


@case
def files_long_names():
    # 2 million files that are named by one text of 64 kB
    a = abbrevs((1, CU, 0, [(AT_STMT_LIST, SEC_OFFSET)]))
    return dwarf(unit(b"\x01\0\0\0\0", 5), a,
                 line=files_5([(1, STRX1)], 2000000, bytes(2000000)),
                 str_offsets=struct.pack("<IHHI", 8, 5, 0, 0), str=b"n" * 65535 + b"\0")


@case
def files_long_names_again():
    # 20,000 units that read the same table of such files
    a = abbrevs((1, CU, 0, [(AT_STMT_LIST, SEC_OFFSET)]))
    return dwarf(unit(b"\x01\0\0\0\0", 5) * 20000, a,
                 line=files_5([(1, STRX1)], 4000, bytes(4000)),
                 str_offsets=struct.pack("<IHHI", 8, 5, 0, 0), str=b"n" * 65535 + b"\0")


@case
def files_in_long_folders():
    # each row has a file of its own, all in one folder of 8000 bytes
    n = 20000
    tables = b"n" * 8000 + b"\0\0" + b"".join(b"%x\0\x01\0\0" % i for i in range(1, n)) + b"\0"
    program = set_address(BASE) + b"".join(b"\x04" + uleb(i) + b"\x21" for i in range(1, n)) + END
    return lines_only(line_table(program, tables=tables))


@case
def abbrev_attributes():
    # 2^20 attributes of no size, and 2^20 entries that have them
    many = [(AT_PRODUCER, FLAG_PRESENT)] * (1 << 20)
    a = abbrevs((1, CU, 1, [(AT_LOW, ADDR)]), (2, INLINED, 0, many))
    return dwarf(unit(b"\x01" + bytes(8) + b"\x02" * (1 << 20) + b"\0"), a)


@case
def abbrev_attributes_uleb():
    many = [(AT_PRODUCER, UDATA)] * (1 << 20)
    a = abbrevs((1, CU, 1, [(AT_LOW, ADDR)]), (2, INLINED, 0, many))
    return dwarf(unit(b"\x01" + bytes(8) + (b"\x02" + bytes(1 << 20)) * 4 + b"\0"), a)


@case
def abbrev_overlap():
    # 100,000 units with tables that begin at each byte of one table
    a = abbrevs(*[(i, INLINED, 0, [(AT_LOW, ADDR)]) for i in range(1, 15000)])
    return dwarf(b"".join(unit(b"\x01" + bytes(8), abbrev=i) for i in range(100000)), a)


@case
def abbrev_codes():
    # codes that are far apart
    a = abbrevs(*[(1 + i * 0x10000001, INLINED, 0, [(AT_LOW, ADDR)]) for i in range(100000)])
    return dwarf(unit(b"\x01" + bytes(8)), a)


@case
def units_overlap():
    # lengths that are too long, too short, 64 bits wide
    bad = [unit(b"\x01" + bytes(8), length=n) for n in (0, 1, 7, 8, 0x7fffffff, 0xfffffff0)]
    wide = struct.pack("<IQHQB", 0xffffffff, (1 << 64) - 1, 4, 0, 8)
    info = b"".join(bad[:4]) * 50000 + bad[4] + bad[5] + wide
    return dwarf(info, BY_RANGES)


@case
def units_smallest():
    # the smallest units there are
    return dwarf(unit(b"\x01\0\0\0\0") * 500000, WITH_LINES, line=line_table(b""))


@case
def units_empty():
    return dwarf(bytes(4 * MIB), BY_RANGES)


# Texts, with an image that they could belong to.

TEXT_HEADS = {
    "ld_map": b"\nLinker script and memory map\n\n.text           0x0000000000401000     0x1000\n",
    "lld_map": b"             VMA              LMA     Size Align Out     In      Symbol\n",
    "nm": b"0000000000401000 T f0\n0000000000401000 T f1\n",
    "perf_map": b"401000 10 f0\n401010 10 f1\n",
    "kallsyms": b"ffffffff81000000 T f0\nffffffff81000010 t f1\n",
}
TEXT_LINES = {
    "ld_map": lambda i: b"                0x%016x                s%d\n" % (BASE + i, i),
    "lld_map": lambda i: b"          %6x           %6x        1     1                 s%d\n"
    % (BASE + i, BASE + i, i),
    "nm": lambda i: b"%016x t s%d\n" % (BASE + i, i),
    "perf_map": lambda i: b"%x 1 s%d\n" % (BASE + i, i),
    "kallsyms": lambda i: b"%x t s%d\n" % (0xffffffff81000000 + i, i),
}


def text_image():
    rows = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, BASE, 0)
    return elf([section(".symtab", rows, SYMTAB, link=3, entsize=24),
                section(".strtab", b"\0f0\0", STRTAB)])


for kind in TEXT_HEADS:
    def one_line(kind=kind):
        return TEXT_HEADS[kind] * 200 + TEXT_LINES[kind](1)[:-1] + b"n" * ((100 if kind in ("ld_map", "nm") else 20) * 1000000) + b"\n"

    def many_lines(kind=kind):
        n = 1000000 if kind in ("nm", "kallsyms", "perf_map") else 400000
        return TEXT_HEADS[kind] + b"".join(map(TEXT_LINES[kind], range(n)))

    def equal_lines(kind=kind):
        return TEXT_HEADS[kind] + TEXT_LINES[kind](1) * 1000000
    CASES[kind + "_one_line"] = one_line
    CASES[kind + "_many_lines"] = many_lines
    CASES[kind + "_equal_lines"] = equal_lines


# jitdump

def jitdump(records):
    return struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1234, 1, 0) + records


def jit_record(kind, body, size=None, at=1):
    return struct.pack("<IIQ", kind, len(body) + 16 if size is None else size, at) + body


def jit_load(addr, size, at=1, name=b"f\0", code=b""):
    return jit_record(0, struct.pack("<IIQQQQ", 1234, 1, addr, addr, size, 1) + name + code, at=at)


@case
def jitdump_record_4g():
    return jitdump(jit_load(BASE, 16) + jit_record(0, bytes(64), size=0xffffffff))


@case
def jitdump_record_0():
    return jitdump(jit_load(BASE, 16) + jit_record(0, bytes(64), size=0) * 100000)


@case
def jitdump_lines_2_64():
    return jitdump(jit_record(2, struct.pack("<QQ", BASE, (1 << 64) - 1) + bytes(MIB)) +
                   jit_load(BASE, 1 << 62))


@case
def jitdump_overlap():
    # 200,000 codes, each over a part of all others
    return jitdump(b"".join(jit_load(BASE + i, 1 << 40 if i & 1 else 400000 - i, at=i)
                            for i in range(200000)))


@case
def jitdump_moves():
    # code with 1000 lines that is moved 100,000 times
    lines = b"".join(struct.pack("<QII", BASE + i, i, 0) + b"a\0" for i in range(1000))
    moves = b"".join(jit_record(1, struct.pack("<IIQQQQQ", 1234, 1, 0, BASE + i, BASE + i + 1, 2000, 1),
                                at=i + 2) for i in range(100000))
    return jitdump(jit_record(2, struct.pack("<QQ", BASE, 1000) + lines) + jit_load(BASE, 2000) + moves)


# Merged symbol files. These change a whole one, FILE.image, and make its check sums right again.

def crc32c_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


def crc32c(data):
    table = crc32c_table()
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def seal_segment(file, at, payload_n):
    crc = crc32c(file[at + 64:at + 64 + payload_n])
    file[at + 24:at + 28] = struct.pack("<I", crc)
    file[at + 60:at + 64] = struct.pack("<I", crc32c(file[at:at + 60]))
    return crc


def seal_root(file):
    file[508:512] = struct.pack("<I", crc32c(file[:508]))


def catalog_parts(file):
    """Where the image's segment is, its length and its parts by type."""
    at = 8192
    n, = struct.unpack_from("<Q", file, at + 8)
    base = at + 64
    n_parts, = struct.unpack_from("<I", file, base + 12)
    parts = {}
    for i in range(n_parts):
        kind, _, offset, size = struct.unpack_from("<IIQQ", file, base + 32 + 24 * i)
        parts[kind] = (base + offset, size, base + 32 + 24 * i)
    return at, n, parts


def with_image(change):
    """A catalog of one image in which `change` changed the image's bytes."""
    def make(path):
        file = bytearray(open(path + ".image", "rb").read())
        at, n, parts = catalog_parts(file)
        old = file[at + 24:at + 28]
        change(file, parts)
        new = struct.pack("<I", seal_segment(file, at, n))
        directory, length = struct.unpack_from("<QQ", file, 24)
        where = file.find(old, directory + 64)  # the CRC is in the directory, too
        file[where:where + 4] = new
        seal_segment(file, directory, length)
        return bytes(file)
    return make


def put(file, at, form, *values):
    struct.pack_into(form, file, at, *values)


TEXTS, FILES, SYMBOLS, ALIASES, SITES, RANGES = 5, 6, 7, 8, 9, 10
CATALOGS = {
    "chunks": lambda f, p: put(f, p[TEXTS][0], "<I", 0xffffffff),
    "chunk_raw": lambda f, p: put(f, p[TEXTS][0] + 24 + 20, "<I", 0xffffffff),
    "chunk_raw_64m": lambda f, p: put(f, p[SYMBOLS][0] + 24 + 20, "<I", 64 << 20),
    "chunk_items": lambda f, p: put(f, p[SYMBOLS][0] + 24 + 24, "<I", 0xffffffff),
    "items": lambda f, p: put(f, p[SYMBOLS][0] + 8, "<Q", 0xfffffffe),
    "chunk_stored": lambda f, p: put(f, p[RANGES][0] + 24 + 16, "<I", 0xffffffff),
    "part": lambda f, p: put(f, p[RANGES][2] + 16, "<Q", 1 << 60),
    "part_offset": lambda f, p: put(f, p[RANGES][2] + 8, "<Q", (1 << 64) - 8),
}
for name, how in CATALOGS.items():
    CASES["catalog_" + name] = with_image(how)


def catalog_root(change):
    def make(path):
        file = bytearray(open(path + ".image", "rb").read())
        change(file)
        seal_root(file)
        return bytes(file)
    return make


CASES["catalog_directory"] = catalog_root(lambda f: put(f, 32, "<Q", 1 << 60))
CASES["catalog_length"] = catalog_root(lambda f: put(f, 40, "<Q", 1 << 60))


def catalog_count(file):
    directory, length = struct.unpack_from("<QQ", file, 24)
    put(file, directory + 64, "<I", 0xffffffff)
    seal_segment(file, directory, length)


CASES["catalog_facts"] = catalog_root(catalog_count)


# --- commands ----------------------------------------------------------------------------------

def make(name, path):
    f = CASES[name]
    takes_path = name.startswith("catalog_")
    data = f(path) if takes_path else f()
    with open(path, "wb") as out:
        out.write(data)
    if name.split("_one_line")[0].split("_many_lines")[0].split("_equal_lines")[0] in ("ld_map", "lld_map", "nm"):
        with open(path + ".image", "wb") as out:
            out.write(text_image())


def run(seconds, n_bytes, command):
    def limit():
        if n_bytes:
            resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    start = time.monotonic()
    with open("out.txt", "wb") as out, open("err.txt", "wb") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                 preexec_fn=limit)
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            status = 124
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if status < 0:
        status = 128 - status
    print(status, peak, int((time.monotonic() - start) * 1000))


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3])
elif sys.argv[1] == "cases":
    print("\n".join(CASES))
else:
    run(float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
