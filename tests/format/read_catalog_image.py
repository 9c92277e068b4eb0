#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the images of a merged symbol file, from docs/format/catalog.md alone, and prints them as
JSON in the words of `weir symbols show --symbols --json` and `weir symbols resolve --json`.

    read_catalog_image.py FILE                every image, with all its symbols
    read_catalog_image.py FILE ID ADDRESS...  what is at these addresses (hexadecimal) of one image

It is the second reader of the format: plain, and without a line of the first. It is strict: a rule
of the document that does not hold, a byte or a bit that has no meaning there, and it fails.
"""
import bisect
import ctypes
import json
import struct
import sys

from read_catalog import Bad, Catalog, as_text

HEADER = struct.Struct("<8sHHIQQ")
ENTRY = struct.Struct("<IIQQ")
TABLE = struct.Struct("<IIQQ")
CHUNK = struct.Struct("<QQIIII")
IDENTITY = struct.Struct("<BBHIQQQIIB")
SEGMENT = struct.Struct("<QQQQI")
SECTION = struct.Struct("<QQQ")
PARTS = ("IDENTITY", "SOURCES", "SECTIONS", "NOTES", "TEXTS", "FILES", "SYMBOLS", "ALIASES",
         "SITES", "RANGES", "RUNGS", "DATA", "SYMBOL_FILES", "COLUMNS")
RUNGS = (None, "segments", "path", "checksum", "build-id")
TEXT_KINDS = ("ld map", "lld map", "nm")
SHIFTS = {"COLUMNS": 0, "SYMBOL_FILES": 10, "DATA": 10, "FILES": 10, "SYMBOLS": 10, "ALIASES": 10, "SITES": 12, "RANGES": 0}
IMAGE_KINDS = (None, "elf", "kernel", "vdso", "jit", "other")
MACHINES = {0: None, 3: "i386", 62: "x86-64"}
SOURCES = (None, "symtab", "dynsym", "debugdata", "debug file", "plt", "perf map", "kallsyms",
           "dwarf", "ld map", "lld map", "nm", "jitdump", "gopclntab")
STRONGEST = ("symtab", "debug file", "dwarf", "debugdata", "gopclntab", "ld map", "lld map", "nm", "dynsym",
             "plt", "perf map", "kallsyms", "jitdump")
SIZED, FILLER = 16, 32  # flags of symbols
RAW_BYTES = {"COLUMNS": 1 << 16, "SYMBOL_FILES": 1 << 16, "DATA": 1 << 16, "TEXTS": 4 << 20, "FILES": 1 << 16, "SYMBOLS": 1 << 17, "ALIASES": 1 << 16,
             "SITES": 1 << 18, "RANGES": 1 << 18}
TEXT_BYTES, TEXT_CHUNK_BYTES = 65536, 2 << 20
ZSTD = ctypes.CDLL("libzstd.so.1")
for name in ("ZSTD_decompress", "ZSTD_findFrameCompressedSize"):
    getattr(ZSTD, name).restype = ctypes.c_size_t
ZSTD.ZSTD_decompress.argtypes = (ctypes.c_char_p, ctypes.c_size_t) * 2
ZSTD.ZSTD_findFrameCompressedSize.argtypes = (ctypes.c_char_p, ctypes.c_size_t)


def need(holds, rule):
    if not holds:
        raise Bad("an image breaks a rule: " + rule)


def unfold(n):
    return ~(n >> 1) if n & 1 else n >> 1


def rising(items, rule):
    need(all(a < b for a, b in zip(items, items[1:])), rule)


def changes(owners):
    """Of (address, owner): those with another owner than the one before."""
    before = [(0, None)] + owners
    return [b for a, b in zip(before, owners) if a[1] != b[1]]


def zeroed(texts):
    return sum(map(len, texts)) + len(texts)


def text_shift(texts):
    for shift in range(12, 0, -1):
        n = 1 << shift
        if zeroed(texts) * n // len(texts) <= 65536 and all(
                zeroed(texts[i:i + n]) <= TEXT_CHUNK_BYTES for i in range(0, len(texts), n)):
            return shift
    return 0


class Fields:
    """Bytes that are read one field behind the other."""

    def __init__(self, data, what):
        self.data, self.at, self.what = data, 0, what

    def take(self, n):
        need(n <= len(self.data) - self.at, self.what + " is long enough")
        self.at += n
        return self.data[self.at - n:self.at]

    def unpack(self, form):
        return form.unpack(self.take(form.size))

    def text(self):
        end = self.data.find(b"\0", self.at)
        need(end >= 0, self.what + ": a text has an end")
        return self.take(end + 1 - self.at)[:-1]

    def uleb(self, n, bits=32):
        """A column of n numbers."""
        data, at, out = self.data, self.at, []
        try:
            for _ in range(n):
                byte = data[at]
                at += 1
                value = byte & 127
                shift = 7
                while byte > 127:
                    byte = data[at]
                    at += 1
                    value |= (byte & 127) << shift
                    shift += 7
                need(value >> bits == 0 and (byte or shift == 7), f"{self.what}: short ulebs")
                out.append(value)
        except IndexError:
            raise Bad(self.what + " is too short") from None
        self.at = at
        return out

    def end(self):
        left = len(self.data) - self.at
        need(left == 0, f"{self.what} is used up, with no {left} bytes left")


class Table:
    """The chunks of a chunked table, unpacked."""

    def __init__(self, data, name):
        f = Fields(data, name)
        n_chunks, self.shift, self.n, self.own = f.unpack(TABLE)
        entries = [f.unpack(CHUNK) for _ in range(n_chunks)]
        need(self.n < 2**32 - 1 and self.n == sum(e[4] for e in entries), name + ": items")
        need(self.shift == SHIFTS.get(name, self.shift) and self.shift <= 12, name + ": shift")
        self.chunks = []  # (key, number of items, Fields)
        self.n_packed = sum(e[5] for e in entries)
        offset = index = 0
        for i, (key, at, stored, raw, n, flags) in enumerate(entries):
            need(at == offset and n >= 1 and flags <= 1 and raw <= RAW_BYTES[name],
                 f"{name}: chunk {i}")
            if name in ("RANGES", "COLUMNS"):
                need(n <= 4096, name + ": at most 4096 items in a chunk")
            else:
                need(key == index and (n == 1 << self.shift or
                     i == n_chunks - 1 and n < 1 << self.shift), f"{name}: chunk {i} is indexed")
            packed = f.take(stored)
            if flags:
                need(raw // 32 <= stored < raw, name + ": packed to 1/32 or more")
                frame = ZSTD.ZSTD_findFrameCompressedSize(packed, stored)
                need(frame == stored, name + ": a packed chunk is one frame")
                out = ctypes.create_string_buffer(raw)
                need(ZSTD.ZSTD_decompress(out, raw, packed, stored) == raw, name + ": raw bytes")
                packed = out.raw
            need(len(packed) == raw, name + ": raw bytes")
            self.chunks.append((key, n, Fields(packed, f"{name}, chunk {i}")))
            offset += stored
            index += n
        f.end()


class Image:
    def __init__(self, data):
        self.data = data
        parts = self.directory()
        self.read_identity(Fields(parts["IDENTITY"], "IDENTITY"))
        self.read_sources(Fields(parts["SOURCES"], "SOURCES"))
        self.read_rungs(parts)
        self.read_sections(parts)
        self.read_notes(parts)
        self.tables = {name: Table(parts[name], name) for name in PARTS[4:10] + PARTS[11:] if name in parts}
        need(not any(t.own for n, t in self.tables.items() if n not in ("SYMBOLS", "RANGES")),
             "own number 0")
        self.texts = self.read_texts()
        self.files = [0] + self.read_files()
        self.symbols, self.n_aliases = self.read_symbols()
        self.symbol_files = self.read_symbol_files()
        self.aliases = self.read_aliases()
        self.variables = self.read_data()
        self.sites = self.read_sites()
        self.ranges = self.read_ranges()
        self.starts = [r[0] for r in self.ranges]
        self.columns = self.read_columns()
        self.column_starts = [c[0] for c in self.columns]
        self.check_uses()
        self.check_owners()
        for i, source in enumerate(self.sources):
            need(self.accepted(i) == source[5] <= source[4], "symbols accepted of those offered")
        need(self.id == self.computed_id(), "the id is that of the content")

    def directory(self):
        need(len(self.data) >= HEADER.size, "a header")
        magic, major, minor, n, length, self.id = HEADER.unpack_from(self.data)
        need(magic == b"WSYMIMG1" and (major, minor) == (1, 0), "magic and version")
        need(length == len(self.data) and n <= 64, "bytes of the image")
        parts, end, types = {}, HEADER.size + n * ENTRY.size, []
        for i in range(n):
            kind, zero, at, size = ENTRY.unpack_from(self.data, HEADER.size + i * ENTRY.size)
            need(zero == 0 and 1 <= kind <= len(PARTS) and size, f"directory entry {i}")
            need(at == (end + 7) // 8 * 8 and not any(self.data[end:at]), "parts follow each other")
            end = at + size
            need(end <= length, "a part ends in the image")
            types.append(kind)
            parts[PARTS[kind - 1]] = self.data[at:end]
        rising(types, "parts in the order of their types")
        need(not any(self.data[end:]) and length - end < 8, "nothing behind the last part")
        need({"IDENTITY", "SOURCES", "TEXTS"} <= set(parts), "parts that are always there")
        return parts

    def read_identity(self, f):
        (self.kind, self.bits, self.machine, self.pid, self.content_hash, self.file_bytes,
         self.mtime_ns, self.debuglink_crc, self.file_crc, n_build_id) = f.unpack(IDENTITY)
        need(1 <= self.kind <= 5 and self.bits in (0, 32, 64) and n_build_id <= 32, "IDENTITY")
        self.build_id = f.take(n_build_id)
        self.path = f.text()
        n, = f.uleb(1)
        need(n <= 256, "at most 256 segments")
        self.segments = [(f.text(), *f.unpack(SEGMENT)) for _ in range(n)]
        need(all(len(s[0]) <= 31 for s in self.segments), "names of segments")
        f.end()

    def read_sources(self, f):
        n, = f.uleb(1)
        need(n <= 64, "at most 64 sources")
        self.sources = []
        for _ in range(n):
            kind = f.take(1)[0]
            need(1 <= kind < len(SOURCES), "kind of source")
            self.sources.append((SOURCES[kind], f.text(), f.text(), f.text(), *f.uleb(2, 64)))
        n, = f.uleb(1)
        self.sets = [f.unpack(struct.Struct("<Q"))[0] for _ in range(n)]
        need(self.sets and self.sets[0] == 0 and len(set(self.sets)) == n, "sets, first the empty")
        need(all(s >> len(self.sources) == 0 for s in self.sets), "sets of sources that are there")
        f.end()

    def read_rungs(self, parts):
        kinds = [s[0] for s in self.sources]
        self.rungs = [1 if kind in TEXT_KINDS else 4 for kind in kinds]
        if "RUNGS" in parts:
            f = Fields(parts["RUNGS"], "RUNGS")
            self.rungs = list(f.take(len(self.sources)))
            f.end()
            need(min(self.rungs) < 4, "rungs are there when one is below the highest")
            need(all(1 <= r <= (3 if k in TEXT_KINDS else 4) for r, k in zip(self.rungs, kinds)),
                 "rungs of the ladder, and none of a text is the highest")

    def read_sections(self, parts):
        self.sections = []
        if "SECTIONS" in parts:
            f = Fields(parts["SECTIONS"], "SECTIONS")
            n, = f.uleb(1)
            need(0 < n <= 65536, "number of sections")
            self.sections = [(f.text(), *f.unpack(SECTION)) for _ in range(n)]
            f.end()

    def read_notes(self, parts):
        self.notes = []
        if "NOTES" in parts:
            f = Fields(parts["NOTES"], "NOTES")
            self.notes = f.text().split(b"\n")
            f.end()
            need(b"" not in self.notes, "a note has characters")

    def chunks(self, name):
        return self.tables[name].chunks if name in self.tables else []

    def read_texts(self):
        texts = []
        for _, n, f in self.chunks("TEXTS"):
            before, first = b"", len(texts)
            shared = f.uleb(n)
            need(shared[0] == 0, "the first text of a chunk shares nothing")
            for k in shared:
                text = before[:k] + f.text()
                need(k <= len(before) and len(text) <= TEXT_BYTES, "length of texts")
                most = 31 * (len(text) + 2) // 32
                need(k == most or k < most and (k == len(before) or
                     text[k:k + 1] != before[k:k + 1]),
                     "as much is shared as can be, up to 31/32")
                texts.append(text)
                before = text
            need(zeroed(texts[first:]) <= TEXT_CHUNK_BYTES, "length of a chunk of texts")
            f.end()
        need(texts and texts[0] == b"", "text 0 is empty")
        rising(texts, "texts are sorted")
        control = set(range(32)) | {127}
        need(not control & set(b"".join(texts)), "no control characters in texts")
        need(self.tables["TEXTS"].shift == text_shift(texts), "TEXTS: shift")
        return texts

    def read_files(self):
        files = []
        for _, n, f in self.chunks("FILES"):
            files += f.uleb(n)
            f.end()
        rising(files, "files ascend")
        return files

    def read_symbols(self):
        """(start, size, text, flags, set, first alias, number of aliases, order)."""
        symbols, n_aliases = [], 0
        self.later_wins = "SYMBOLS" in self.tables and self.tables["SYMBOLS"].own == 1
        need("SYMBOLS" not in self.tables or self.tables["SYMBOLS"].own < 2, "SYMBOLS: own number")
        for _, n, f in self.chunks("SYMBOLS"):
            start, before = f.unpack(struct.Struct("<QI"))
            need(before == n_aliases, "aliases before a chunk of symbols")
            steps, sizes, texts = f.uleb(n, 64), f.uleb(n, 64), f.uleb(n)
            flags, sets, counts = f.take(n), f.uleb(n), f.uleb(n)
            orders = f.uleb(n) if self.later_wins else [None] * n
            f.end()
            need(steps[0] == 0, "the first step of a chunk of symbols is 0")
            for step, *rest, count, order in zip(steps, sizes, texts, flags, sets, counts, orders):
                start += step
                symbols.append((start, *rest, n_aliases, count, order))
                n_aliases += count
        rising([s[:2] if self.later_wins else s[:1] for s in symbols], "symbols are sorted")
        need(all(s[1] for s in symbols), "symbols have a size")
        need(not self.later_wins or {s[7] for s in symbols} == set(range(len(symbols))),
             "places in the order of painting")
        need(all(s[3] < 64 and s[3] & 3 < 3 and s[3] & 12 < 12 for s in symbols), "symbols: flags")
        return symbols, n_aliases

    def read_symbol_files(self):
        """{start and order of a symbol: text}."""
        files = []
        for _, n, f in self.chunks("SYMBOL_FILES"):
            files += f.uleb(n)
            f.end()
        need(len(files) in (0, len(self.symbols)), "a file for each symbol")
        need(not files or any(files), "some symbol has a file")
        return {(s[0], s[7]): file for s, file in zip(self.symbols, files) if file}

    def read_data(self):
        """(start, size, text)."""
        data = []
        for _, n, f in self.chunks("DATA"):
            start, = f.unpack(struct.Struct("<Q"))
            steps, sizes, texts, binds = f.uleb(n, 64), f.uleb(n, 64), f.uleb(n), f.take(n)
            f.end()
            need(steps[0] == 0, "the first step of a chunk of data is 0")
            need(all(b < 3 for b in binds), "data: binding")
            for step, size, text in zip(steps, sizes, texts):
                start += step
                data.append((start, size, text))
        rising([d[0] for d in data], "data are sorted")
        need(all(d[1] for d in data), "data have a size")
        return data

    def read_aliases(self):
        aliases = []
        for _, n, f in self.chunks("ALIASES"):
            aliases += zip(f.uleb(n), f.take(n), f.uleb(n))
            f.end()
        need(len(aliases) == self.n_aliases, "number of aliases")
        need(all(a[1] & 3 < 3 and a[1] < 12 for a in aliases), "aliases: flags")
        return aliases

    def read_sites(self):
        """(the site around it, text of the function, file and line of the call); site 0 is none."""
        sites = [None]
        for _, n, f in self.chunks("SITES"):
            for less, *rest in zip(f.uleb(n), f.uleb(n), f.uleb(n), f.uleb(n)):
                need(less < len(sites), "a site comes behind the one around it")
                sites.append((len(sites) - less if less else 0, *rest))
            f.end()
        return sites

    def read_ranges(self):
        """(start, index of the symbol or None, file, line, site); holes are all none."""
        ranges, with_row = [], 0
        for key, n, f in self.chunks("RANGES"):
            heads, steps = f.take(n), [0] + f.uleb(n - 1)
            need(0 not in steps[1:] and sum(steps) < 2**32 - 1, "starts of a chunk")
            in_symbols = iter(f.uleb(sum(h >> 4 & 1 for h in heads), 64))
            in_sites = iter(f.uleb(sum(h >> 5 & 1 for h in heads), 64))
            in_files = iter(f.uleb(sum(h >> 6 & 1 for h in heads)))
            in_lines = iter(f.uleb(sum(h & 15 == 15 for h in heads), 64))
            f.end()
            start, symbol, last, site, file, line = key, None, -1, 0, 0, 0
            for head, step in zip(heads, steps):
                start += step
                if head & 128:
                    need(head == 128, "a hole has no other bits")
                    ranges.append((start, None, 0, 0, 0))
                    continue
                if head & 16:
                    number = next(in_symbols)
                    symbol = last + 1 + unfold(number - 1) if number else None
                    last = symbol if number else last
                    need(-1 <= last < len(self.symbols) and symbol != -1, "symbol of a range")
                site += unfold(next(in_sites)) if head & 32 else 0
                file = next(in_files) if head & 64 else file
                line += unfold(next(in_lines)) if head & 15 == 15 else (head & 15) - 5
                need(0 <= site < len(self.sites) and 0 <= line < 2**32, "site and line of a range")
                with_row += bool(file or line)
                ranges.append((start, symbol, file, line, site))
        rising([r[0] for r in ranges], "ranges ascend")
        need(all(a[1:] != b[1:] for a, b in zip(ranges, ranges[1:])), "neighbours differ")
        if ranges:
            need(ranges[-1][1:] == (None, 0, 0, 0), "the last range is a hole")
            need(self.tables["RANGES"].own == with_row, "number of ranges with a row")
        self.n_rows = with_row
        return ranges

    def read_columns(self):
        """(start, column)."""
        columns = []
        for key, n, f in self.chunks("COLUMNS"):
            steps, values = [0] + f.uleb(n - 1), f.uleb(n)
            f.end()
            need(0 not in steps[1:] and sum(steps) < 2**32 - 1, "addresses of a chunk of columns")
            for step, value in zip(steps, values):
                key += step
                columns.append((key, value))
        rising([c[0] for c in columns], "columns ascend")
        need(all(a[1] != b[1] for a, b in zip(columns, columns[1:])), "neighbouring columns differ")
        need(all(c[1] < 65536 for c in columns) and (not columns or not columns[-1][1]), "columns end with none")
        return columns

    def column(self, address):
        i = bisect.bisect_right(self.column_starts, address) - 1
        return self.columns[i][1] if i >= 0 else 0

    def check_uses(self):
        """Numbers lead somewhere, and what is stored is in use."""
        texts, files, sites, sets = {0}, {0}, [], {0}
        for s in self.symbols:
            texts.add(s[2])
            sets.add(s[4])
        for text, _, in_set in self.aliases:
            texts.add(text)
            sets.add(in_set)
        for _, text, file, _ in self.sites[1:]:
            texts.add(text)
            files.add(file)
        texts |= set(self.files) | {d[2] for d in self.variables} | set(self.symbol_files.values())
        for start, _ in self.symbol_files:
            need(not any(self.range_at(start)[2:]), "the file of a symbol stands where no line does")
        seen = 0
        for _, _, file, _, site in self.ranges:
            files.add(file)
            chain = []
            while site > seen:
                chain.append(site)
                site = self.sites[site][0]
            for number in reversed(chain):
                need(number == seen + 1, "sites count in the order in which ranges need them")
                seen = number
        need(seen == len(self.sites) - 1, "no site that nothing needs")
        need(texts == set(range(len(self.texts))), "every text is there and in use")
        need(files == set(range(len(self.files))), "every file is there and in use")
        need(sets == set(range(len(self.sets))), "every set is there and in use")

    def check_owners(self):
        """The symbols of the ranges follow from starts, sizes and flags (the section "Names")."""
        def rank(symbol):
            start, _, _, flags, *_, order = symbol
            return order if self.later_wins else (not flags & FILLER, flags & SIZED, start)

        at_edge = {}
        for i, symbol in enumerate(self.symbols):
            at_edge.setdefault(symbol[0], []).append(i)
            at_edge.setdefault(symbol[0] + symbol[1], [])
        wanted, inside = [], []  # owners from an address on; symbols that have begun, best last
        for edge in sorted(at_edge):
            for i in at_edge[edge]:
                bisect.insort(inside, (rank(self.symbols[i]), i))
            while inside and sum(self.symbols[inside[-1][1]][:2]) <= edge:
                inside.pop()
            wanted.append((edge, inside[-1][1] if inside else None))
        seen = [r[:2] for r in self.ranges]
        need(changes(seen) == changes(wanted), "the best symbol has the address")
        having = {i for _, i in seen} - {None}
        need(having == set(range(len(self.symbols))), "every symbol has an address")

    def computed_id(self):
        h = 0xCBF29CE484222325
        known = self.path + b"\0"
        if len(self.build_id) >= 8 and len(set(self.build_id)) > 1:
            known += b"b" + self.build_id
        elif self.content_hash:
            known += b"c" + struct.pack("<Q", self.content_hash)
        elif self.file_bytes and self.mtime_ns:
            known += b"t" + struct.pack("<QQ", self.file_bytes, self.mtime_ns)
        else:
            known += b"s" + struct.pack("<Q", self.pid) + b"".join(
                struct.pack("<QQ", s[0], s[1]) + self.texts[s[2]] + b"\0" for s in self.symbols)
        for byte in known:
            h = (h ^ byte) * 0x100000001B3 % 2**64
        return h

    def accepted(self, source):
        """How many symbols and aliases the source has; fillers are not counted."""
        names = [s[4] for s in self.symbols if not s[3] & FILLER] + [a[2] for a in self.aliases]
        return sum(self.sets[n] >> source & 1 for n in names)

    def kind_of(self, in_set):
        kinds = {s[0] for i, s in enumerate(self.sources) if self.sets[in_set] >> i & 1}
        return next((kind for kind in STRONGEST if kind in kinds), None)

    def rung_of(self, in_set):
        rungs = [r for i, r in enumerate(self.rungs) if self.sets[in_set] >> i & 1]
        return RUNGS[max(rungs, default=4)]

    def range_at(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        return self.ranges[i] if i >= 0 else (0, None, 0, 0, 0)

    def at(self, address):
        """(symbol or None, levels as (text, text of the file, line) with the innermost first)."""
        _, symbol, file, line, site = self.range_at(address)
        levels = []
        while site:
            around, text, call_file, call_line = self.sites[site]
            levels.append((text, self.files[file], line))
            site, file, line = around, call_file, call_line
        symbol = None if symbol is None else self.symbols[symbol]
        if symbol or levels or file or line:
            own = self.symbol_files.get((symbol[0], symbol[7]), 0) if symbol else 0
            levels.append((symbol[2] if symbol else 0, self.files[file] or own, line))
        else:
            i = bisect.bisect_right(self.variables, (address, 2**64, 0)) - 1
            if i >= 0 and address - self.variables[i][0] < self.variables[i][1]:
                symbol = self.variables[i]
                levels.append((symbol[2], 0, 0))
        return symbol, levels


def known(value, form=None):
    """JSON has null for what is not known."""
    return None if not value else form % value if form else value


def shown(raw):
    return as_text(raw) or None


def show(image):
    """As `weir symbols show --symbols --json`, without names for display."""
    return {
        "id": "%016x" % image.id, "path": as_text(image.path), "bits": known(image.bits),
        "machine": MACHINES[image.machine], "build_id": known(image.build_id.hex()),
        "symbols": len(image.symbols), "lines": image.n_rows, "sites": len(image.sites) - 1,
        "image_kind": IMAGE_KINDS[image.kind], "content_hash": known(image.content_hash, "%#x"),
        "debuglink_crc": known(image.debuglink_crc, "%#x"),
        "file_crc": known(image.file_crc, "%#x"), "file_bytes": known(image.file_bytes),
        "mtime_ns": known(image.mtime_ns), "pid": known(image.pid),
        "segments": [{"name": shown(n), "address": hex(a), "offset": hex(o), "file_bytes": f,
                      "memory_bytes": m, "flags": p} for n, a, o, f, m, p in image.segments],
        "sections": [{"name": shown(n), "address": hex(a), "bytes": b, "flags": f}
                     for n, a, b, f in image.sections],
        "sources": [{"kind": k, "path": shown(p), "identity": shown(i), "verdict": shown(v),
                     "offered": o, "accepted": a, "match": RUNGS[r]}
                    for (k, p, i, v, o, a), r in zip(image.sources, image.rungs)],
        "notes": [as_text(n) for n in image.notes],
        "rows": [{"address": hex(start), "size": size, "linkage_name": as_text(image.texts[text]),
                  "source": image.kind_of(in_set), "match": image.rung_of(in_set),
                  "file": shown(image.texts[image.symbol_files.get((start, order), 0)]),
                  "aliases": [as_text(image.texts[a[0]]) for a in image.aliases[first:first + n]]}
                 for start, size, text, _, in_set, first, n, order in image.symbols],
    }


def resolve(image, address):
    """As a row of `weir symbols resolve --json`, without names for display."""
    symbol, levels = image.at(address)
    last = len(levels) - 1
    return {"address": hex(address), "offset": address - symbol[0] if symbol else None,
            "levels": [{"linkage_name": shown(image.texts[text]),
                        "file": shown(image.texts[file]), "line": known(line),
                        "column": known(image.column(address)) if line and not i else None,
                        "inline": i < last} for i, (text, file, line) in enumerate(levels)]}


def images_of(path):
    """{id: Image} of a merged symbol file; what its directory says of them is compared, too."""
    with open(path, "rb") as f:
        catalog = Catalog(f.read())
    images = {}
    for entry in catalog.images:
        content = catalog.content(entry)
        if content is None:
            raise Bad("an image is damaged")
        image = Image(content)
        own = (image.id, image.path, image.bits, image.machine, image.build_id.hex(),
               len(image.symbols), image.n_rows)
        need(own == tuple(entry[k] for k in ("id", "path", "bits", "machine", "build_id", "symbols",
                                             "rows")), "the directory says the same as the image")
        images["%016x" % image.id] = image
    return images


def main():
    path, *rest = sys.argv[1:]
    try:
        images = images_of(path)
    except Bad as bad:
        sys.exit(f"'{path}': {bad}")
    if rest:
        out = [resolve(images[rest[0]], int(address, 16)) for address in rest[1:]]
    else:
        out = [show(image) for image in images.values()]
    json.dump(out, sys.stdout)
    print()


if __name__ == "__main__":
    main()
