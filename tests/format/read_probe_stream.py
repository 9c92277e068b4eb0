#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second reader of trace streams, written from docs/format/probe-stream.md alone.

    read_probe_stream.py FILE             what is in it, one fact a line; status 1 when it is refused
    read_probe_stream.py --changes FILE N FOLDER
        N copies with one change each, checksums right, and for each a line "NUMBER accepted|refused"
"""
import random
import struct
import sys

MAGIC = b"weirprobe\n"
N_SECTIONS = 12
FIRST = 32 + 32 * N_SECTIONS
NAMES = ["", "facts", "sources", "shapes", "maps", "formats", "strings", "clauses", "points",
         "code32", "code64", "lines32", "lines64"]
LIMITS = {1: (1, 1), 2: (1, 1024), 3: (0, 65536), 4: (0, 240), 5: (0, 65536), 6: (0, 65536),
          7: (0, 4096), 8: (0, 65536), 9: (0, 4194304), 10: (0, 4194304), 11: (0, 4194304),
          12: (0, 4194304)}
FIXED_SIZES = {0: 0, 1: 8, 2: 8, 3: 8, 6: 16, 7: 8, 8: 16, 9: 8, 10: 8, 11: 8, 12: 16, 13: 24, 14: 16, 17: 8,
               18: 8, 19: 16, 20: 16, 21: 16, 22: 16}


class Refused(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Refused(what)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def padded(n):
    return n + 7 & ~7


class Items:
    """The bytes of a section, taken from the front."""

    def __init__(self, data, sources):
        self.data, self.at, self.sources = data, 0, sources

    def take(self, n):
        need(self.at + n <= len(self.data), "cut off")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def u8(self):
        return self.number("B")

    def u32(self):
        return self.number("I")

    def u64(self):
        return self.number("Q")

    def bytes(self):
        return self.take(self.u32())

    def text(self):
        text = self.bytes()
        need(0 not in text, "zero byte in a text")
        return text.decode("utf-8", "surrogateescape")

    def optional_text(self):
        if self.data[self.at:self.at + 4] == b"\xff\xff\xff\xff":
            self.at += 4
            return None
        return self.text()

    def flags(self, known):
        flags = self.u8()
        need(not flags & ~known, "unknown flags")
        return flags

    def place(self):
        source, start, end = self.u32(), self.u32(), self.u32()
        need(source < len(self.sources), "no such source")
        need(start <= end <= len(self.sources[source][1]), "place is not in its source")
        return source, start, end


class Shape:
    depth = weight = 1

    def __init__(self, items, earlier):
        self.kind = items.u8()
        need(self.kind <= 25, "kind of shape")
        flags = items.flags(3)
        self.signed, self.is_bool = flags & 1, flags & 2
        self.n, self.size = items.u32(), items.u32()
        self.min, self.max, self.step = items.number("q"), items.number("q"), items.number("q")
        enumerators = items.optional_text()
        self.enumerators = dict(e.split("=") for e in enumerators.split(" ")) if enumerators else {}
        need(self.kind == 1 or not (self.is_bool or self.enumerators), "names of numbers")
        need(all(int(value) < 2 ** 63 for value in self.enumerators.values()), "an enumerator")
        need(self.size % 8 == 0 and self.size <= 65536, "size of a shape")
        need(self.size_is_right(), "size of a shape")
        n_fields = items.u32()
        need(n_fields <= (16384 if self.kind in (15, 16) else 0), "fields")
        for _ in range(n_fields):
            self.add_field(items, earlier)

    def size_is_right(self):
        if self.kind in (4, 15):
            return self.size == padded(self.n)
        if self.kind == 5:
            return self.size == padded(8 + self.n)
        if self.kind == 16:
            return True
        if self.kind == 23:
            return self.n <= 5 and self.size == 8 * (1 + (65 - self.n) * 2 ** self.n)
        if self.kind == 25:
            return 0 < self.max <= 1000 and self.step > 0 and 0 <= self.min <= 4 and self.size == 32 * self.max
        if self.kind == 24:
            if self.step <= 0 or self.max <= self.min:
                return False
            steps = (self.max - self.min) // self.step
            up = -(-(self.max - self.min) // self.step)
            return self.size // 8 - 2 in (steps, up) and self.size > 16
        if self.kind == 3 and self.n not in (4, 8):
            return False
        return self.size == FIXED_SIZES[self.kind]

    def add_field(self, items, earlier):
        items.optional_text()
        number, offset = items.u32(), items.u32()
        length, bit, bits = items.u8(), items.u8(), items.u8()
        need(number < len(earlier), "a field of a later shape")
        of = earlier[number]
        need(0 < of.kind < 17, "shape of a field")
        need(length <= 16 and bit <= 7 and bits <= 64, "bits of a field")
        if bits:
            length = (bit + bits + 7) // 8
        elif not length:
            length = of.n if of.kind in (4, 15) else of.size
        need(offset + length <= self.size, "a field does not fit")
        self.depth = max(self.depth, of.depth + 1)
        self.weight += of.weight
        need(self.depth <= 32 and self.weight <= 65536, "too deep")


class Stream:
    def __init__(self, data):
        self.data = data
        self.sources, self.shapes, self.maps, self.formats, self.strings = [], [], [], [], []
        self.clauses, self.points = [], []
        self.code, self.lines = ([], []), ([], [])
        self.read_header()
        self.read_sections()
        for mode in (0, 1):
            self.check_code(mode)

    def read_header(self):
        data = self.data
        need(data[:10] == MAGIC and len(data) >= FIRST, "no stream")
        major, minor, n = struct.unpack_from("<HHH", data, 10)
        length, table_crc, crc = struct.unpack_from("<QII", data, 16)
        need(crc32c(data[:28]) == crc, "header")
        need((major, minor) == (2, 3) and n == N_SECTIONS, "version")
        need(length == len(data) <= 256 << 20, "length")
        need(crc32c(data[32:FIRST]) == table_crc, "section table")

    def read_sections(self):
        end = FIRST
        for kind in range(1, N_SECTIONS + 1):
            row = struct.unpack_from("<IIQQII", self.data, 32 * kind)
            is_kind, crc, offset, length, count, zero = row
            need(is_kind == kind and zero == 0, "row")
            need(offset == padded(end) and offset + length <= len(self.data), "place of a section")
            need(not any(self.data[end:offset]), "bytes between sections")
            need(LIMITS[kind][0] <= count <= LIMITS[kind][1], "number of items")
            end = offset + length
            section = self.data[offset:end]
            need(crc32c(section) == crc, NAMES[kind])
            items = Items(section, self.sources)
            for _ in range(count):
                self.read_item(kind, items)
            need(items.at == length, "bytes left over")
        need(end == len(self.data), "bytes behind the last section")

    def read_item(self, kind, items):
        if kind == 1:
            self.self_bytes, self.zero_bytes = items.u32(), items.u32()
            need(self.self_bytes % 8 == 0 and self.self_bytes <= 65536, "thread-locals")
            need(self.zero_bytes % 8 == 0 and self.zero_bytes <= 65536, "values")
            self.stacks = items.flags(7)
            need(items.u32() <= 1 << 18, "pages of the ring")
            items.u32()
            need(len(items.bytes()) <= 64, "build-id of the kernel")
        elif kind == 2:
            self.sources.append((items.text(), items.bytes()))
        elif kind == 3:
            self.shapes.append(Shape(items, self.shapes))
        elif kind == 4:
            self.read_map(items)
        elif kind == 5:
            self.read_format(items)
        elif kind == 6:
            self.strings.append(items.text())
        elif kind == 7:
            self.clauses.append((items.place(), items.flags(1)))
        elif kind == 8:
            self.read_point(items)
        elif kind <= 10:
            self.code[kind - 9].append(struct.unpack("<BBhi", items.take(8)))
        else:
            lines, first = self.lines[kind - 11], items.u32()
            lines.append((first, items.place()))
            need(first < len(self.code[kind - 11]), "line behind the code")
            need(len(lines) < 2 or lines[-2][0] <= first, "order of lines")

    def shape(self, items):
        number = items.u32()
        need(number < len(self.shapes), "no such shape")
        return self.shapes[number]

    def read_map(self, items):
        name, key, value = items.text(), self.shape(items), self.shape(items)
        entries = items.u32()
        items.flags(1)
        items.place()
        need(name[:1] == "@" and key.kind < 17 and value.size, "map")
        need(entries <= 1 << 28 and value.size <= self.zero_bytes, "map")
        self.maps.append((name, key, value, entries))

    def read_format(self, items):
        kind, text, number = items.u8(), items.optional_text(), items.u32()
        need(kind <= 15, "kind of format")
        n = items.u32()
        need(n <= 1024, "arguments")
        args = [self.shape(items) for _ in range(n)]
        items.place()
        need(all(a.kind for a in args) and sum(a.size for a in args) <= 65536, "arguments")
        need(number < len(self.maps) if kind in (5, 6, 7, 13) else number == 0, "map of a format")
        need(text is not None or kind not in (0, 8, 9, 10, 14, 15), "no text")
        need(args or kind not in (1, 4, 11, 12, 13), "no argument")
        self.formats.append((kind, text, number, args))

    def read_point(self, items):
        clause, kind, flags = items.u32(), items.u8(), items.flags(3)
        text = items.text()
        items.optional_text()
        provider, name = items.optional_text(), items.optional_text()
        items.u64()
        items.u64()
        period = items.u64()
        items.u64()
        items.place()
        need(clause < len(self.clauses) and kind <= 21, "point")
        need(kind not in (3, 4) or period, "period")
        need(kind not in (5, 6) or name is not None or flags & 1, "name")
        need(kind < 7 or name is not None, "name")
        need(kind != 10 or provider is not None, "category")
        items.optional_text()
        need(items.u8() <= 1, "mode")
        items.optional_text()
        self.points.append((clause, text, [self.piece(items), self.piece(items)]))
        n_images = items.u32()
        need(n_images <= 4096, "images")
        for _ in range(n_images):
            items.text()
            need(items.u8() <= 1, "mode of an image")
            need(len(items.bytes()) <= 64, "build-id")
            items.u64()
        has_site, image, address = items.flags(1), items.u32(), items.u64()
        need(image < n_images if has_site else not (image or address), "site")

    @staticmethod
    def piece(items):
        flags = items.flags(7)
        numbers = [items.u32() for _ in range(6)]
        items.optional_text()
        need(numbers[5] <= 32752, "scratch")
        need(numbers[4] <= numbers[3], "functions")
        need(flags & 1 or not (flags or any(numbers)), "piece that is not there")
        return [flags & 1] + numbers

    def check_code(self, mode):
        code = self.code[mode]
        second = self.check_constants(code)
        owners = {}
        for point in self.points:
            there, at, n, action_at, action_n, functions_n, _ = point[2][mode]
            if not there:
                continue
            need(not n or at + n == action_at, "action is not behind its predicate")
            piece = (at if n else action_at, action_at + action_n, functions_n)
            need(piece[0] <= piece[1] <= len(code), "piece outside of the code")
            if piece[0] == piece[1]:
                continue
            functions = piece[1] - functions_n
            need(not second & {piece[0], functions, piece[1]}, "piece cuts a constant")
            owned = {owners.get(i) for i in range(*piece[:2])}
            need(owned in ({None}, {piece}), "pieces overlap")
            owners.update((i, piece) for i in range(*piece[:2]))
            for i in range(piece[0], functions):
                self.check_insn(code, i, (piece[0], functions, False), piece, second)
            for i in range(functions, piece[1]):
                self.check_insn(code, i, (functions, piece[1], True), piece, second)

    def check_constants(self, code):
        second, i = set(), 0
        while i < len(code):
            if code[i][0] == 0x18:
                need(i + 1 < len(code) and code[i + 1][:3] == (0, 0, 0), "half a constant")
                source, number = code[i][1] >> 4, code[i][3]
                need(source in (0, 1, 4), "kind of constant")
                need(source != 4 or code[i + 1][3] == 0, "no such function")
                if source == 1:
                    need(0 <= number <= 11 or 16 <= number < 16 + len(self.maps), "no such map")
                    need(code[i + 1][3] == 0, "no such map")
                i += 1
                second.add(i)
            i += 1
        return second

    @staticmethod
    def check_insn(code, i, part, piece, second):
        """One of a part of a piece: (first, behind the last, whether it is the functions)."""
        operation, registers, offset, immediate = code[i]
        if i in second:
            return
        if operation == 0x18 and registers >> 4 == 4 or operation == 0x85 and registers >> 4 == 1:
            function = piece[1] - piece[2] + immediate
            need(0 <= immediate < piece[2] and function not in second, "no such function")
        if operation & 7 not in (5, 6):
            return
        kind = operation & 0xF0
        need(kind != 0x90 or part[2], "exit")
        if kind == 0x80:
            need(registers >> 4 in (0, 1), "call")
        if kind in (0x80, 0x90):
            return
        if operation == 0xE5:
            need(registers in (0, 0x10), "question of a loop")
            need(registers == 0 or (offset, immediate) == (0, 0), "question of a loop")
            if registers:
                return
        target = i + 1 + (immediate if operation & 7 == 6 and kind == 0 else offset)
        need(part[0] <= target <= part[1] - part[2], "jump out of its piece")
        need(target == part[1] or target not in second, "jump into a constant")

    def describe(self):
        for i, (name, _, value, _) in enumerate(self.maps):
            print(f"map {16 + i}: {name} {value.size} bytes")
        for i, (clause, text, pieces) in enumerate(self.points):
            print(f"point {i} of clause {clause}: {text}")
            for bits, (there, at, n, action_at, action_n, functions_n, _) in zip((32, 64), pieces):
                what = f"predicate {at}, {n} instructions; " if n else ""
                what += f"action {action_at}, {action_n} instructions"
                what += f", the last {functions_n} of functions" if functions_n else ""
                print(f"  {bits}-bit: {what if there else 'none'}")


def change(data, seed):
    """One byte of a section, or a number of four bytes, is another one; the frame stays right."""
    data, chance = bytearray(data), random.Random(seed)
    at = chance.randrange(FIRST, len(data))
    if chance.randrange(2):
        data[at] = chance.choice((0, 1, data[at] ^ 1 << chance.randrange(8), 255))
    elif at + 4 <= len(data):
        value = chance.choice((0, 1, 7, 0xFFFFFFFF, chance.randrange(64)))
        struct.pack_into("<I", data, at, value)
    for kind in range(1, N_SECTIONS + 1):
        offset, length = struct.unpack_from("<QQ", data, 32 * kind + 8)
        struct.pack_into("<I", data, 32 * kind + 4, crc32c(data[offset:offset + length]))
    struct.pack_into("<I", data, 24, crc32c(data[32:FIRST]))
    struct.pack_into("<I", data, 28, crc32c(data[:28]))
    return bytes(data)


def verdict(data):
    try:
        return Stream(data)
    except Refused:
        return None


def main(argv):
    if argv[1] == "--changes":
        with open(argv[2], "rb") as file:
            data = file.read()
        for i in range(int(argv[3])):
            copy = change(data, i)
            with open(f"{argv[4]}/{i}", "wb") as file:
                file.write(copy)
            print(i, "accepted" if verdict(copy) else "refused")
        return 0
    with open(argv[1], "rb") as file:
        data = file.read()
    try:
        Stream(data).describe()
    except Refused as why:
        print(f"refused: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
