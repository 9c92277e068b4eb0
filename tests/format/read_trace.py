#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a weir trace, from docs/format/trace.md alone, and prints it as JSON.

    read_trace.py FILE            everything in it
    read_trace.py --chunks FILE   one line a chunk: offset, type, stored length, raw length, count
    read_trace.py --counts FILE   what the records 0x55 say, by name

It is the second reader of the format: plain, slow, and without a line of the first. zstd payloads
are unpacked by the zstd program. Exit status 1 and a sentence when the file cannot be read.
"""
import json
import struct
import subprocess
import sys

MAGIC = bytes.fromhex("89776569720d0a1a")
CHUNK = struct.Struct("<4sHHIIIIQQII")
TRAILER = struct.Struct("<QII8s")
NAMES = {1: "META", 2: "STRINGS", 3: "METRICS", 4: "STREAMS", 5: "IMAGES", 6: "THREADS",
         7: "FRAMES", 8: "STACKS", 9: "KINDS", 10: "SYMBOLS", 11: "RECORDS", 12: "INDEX",
         13: "IMAGE_FACTS", 14: "MATCHES", 15: "FUNCTIONS", 16: "ADDRESSES"}
RAW_MAX = 16777216
U32 = 1 << 32
U64 = 1 << 64


class Bad(Exception):
    """The file is not what the document says."""


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


class Bytes:
    """A payload and a place in it."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Bad("cut off")
        self.at += n
        return self.data[self.at - n:self.at]

    def uleb(self, below=1 << 64):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        if value >= below:
            raise Bad(f"{value} is too large")
        return value

    def sleb(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if byte & 0x40 else value

    def text(self):
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise Bad("a text without its end")
        text = self.take(end - self.at).decode("utf-8", "replace")
        self.take(1)
        return text

    def done(self):
        if self.at != len(self.data):
            raise Bad("bytes are left over")


class Chunk:
    """A chunk whose header, lengths and CRC are right."""

    def __init__(self, data, at, end):
        if end - at < CHUNK.size:
            raise Bad(f"offset {at}: the chunk's header is cut off")
        (magic, self.type, self.flags, self.stream, self.stored, self.raw, self.count, self.first,
         self.last, _, crc) = CHUNK.unpack_from(data, at)
        if magic != b"wCHK":
            raise Bad(f"offset {at}: no chunk begins here")
        if self.stored > RAW_MAX or self.raw > RAW_MAX or self.stored > end - at - CHUNK.size:
            raise Bad(f"offset {at}: the chunk's lengths are wrong")
        self.at, self.end = at, at + CHUNK.size + self.stored
        self.body = data[at + CHUNK.size:self.end]
        if crc32c(data[at:at + 44] + self.body) != crc:
            raise Bad(f"offset {at}: the chunk's check sum is wrong")

    def payload(self):
        body = self.body
        if self.flags & ~1:
            raise Bad(f"offset {self.at}: unknown flags")
        if self.flags & 1:
            body = subprocess.run(["zstd", "-dc"], input=body, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=True).stdout
        if len(body) != self.raw:
            raise Bad(f"offset {self.at}: the raw length is wrong")
        return Bytes(body)


def read_index(data):
    """The list of (offset, type, stream, count, first, last) and where the chunks end, or None."""
    if len(data) < 16 + TRAILER.size:
        return None
    end = len(data) - TRAILER.size
    at, n_chunks, crc, magic = TRAILER.unpack_from(data, end)
    if magic != MAGIC[::-1] or crc != crc32c(data[end:end + 12]):
        return None
    chunks_end, offset, entries = at, 0, []
    try:
        while at < end:
            chunk = Chunk(data, at, end)
            if chunk.type != 12:
                return None
            p = chunk.payload()
            for _ in range(chunk.count):
                offset += p.uleb()
                type_, stream, count, first = p.uleb(1 << 16), p.uleb(U32), p.uleb(U32), p.uleb()
                entries.append((offset, type_, stream, count, first, first + p.uleb()))
            p.done()
            at = chunk.end
    except Bad:
        return None
    return (entries, chunks_end) if len(entries) == n_chunks else None


def scan(data):
    at, chunks = 16, []
    while True:
        try:
            chunk = Chunk(data, at, len(data))
        except Bad:
            return chunks
        if chunk.type != 12:
            chunks.append(chunk)
        at = chunk.end


class Trace:
    """Everything in the file."""

    def __init__(self, data):
        if data[:8] != MAGIC or len(data) < 16:
            raise Bad("is not a weir trace")
        if struct.unpack_from("<H", data, 8)[0] != 1:
            raise Bad("is of another version")
        self.meta = {}
        self.strings, self.metrics, self.streams, self.images = [""], [None], [None], [None]
        self.threads, self.frames, self.stacks, self.kinds = [None], [None], [None], [None]
        self.symbols, self.records, self.damaged, self.unknown = {}, [], 0, 0
        self.facts, self.matches, self.functions, self.broken = {}, {}, {}, set()
        self.rows, self.n_rows = [], 0
        index = read_index(data)
        self.recovered = index is None
        if index is None:
            for chunk in scan(data):
                self.add(chunk)
            return
        entries, end = index
        for i, entry in enumerate(entries):
            if entry[1] not in NAMES:
                self.unknown += 1
                continue
            try:
                chunk = Chunk(data, entry[0], entries[i + 1][0] if i + 1 < len(entries) else end)
                if entry != (chunk.at, chunk.type, chunk.stream, chunk.count, chunk.first, chunk.last):
                    raise Bad(f"offset {entry[0]}: the index disagrees")
            except Bad:
                if entry[1] == 15:
                    self.image(entry[2])
                    self.broken.add(entry[2])
                elif entry[1] == 11:
                    self.damaged += 1
                else:
                    raise
                continue
            self.add(chunk)

    def add(self, chunk):
        name = NAMES.get(chunk.type)
        if name is None:
            self.unknown += 1
            return
        if name == "FUNCTIONS":
            self.add_functions(chunk)
            return
        p = chunk.payload()
        if name == "RECORDS":
            self.add_records(chunk, p)
        elif name == "ADDRESSES":
            self.add_addresses(chunk, p)
        elif name in ("META", "SYMBOLS", "IMAGE_FACTS", "MATCHES"):
            for _ in range(chunk.count):
                getattr(self, "add_" + name.lower())(p)
        elif name != "INDEX":
            table = getattr(self, name.lower())
            if p.uleb() != len(table):
                raise Bad(f"offset {chunk.at}: wrong first id")
            self.address = 0
            for _ in range(chunk.count):
                table.append(getattr(self, "get_" + name.lower())(p))
        p.done()

    def add_meta(self, p):
        key = p.text()
        self.meta[key] = p.text()

    def string(self, p):
        return self.strings[p.uleb(len(self.strings))]

    def get_strings(self, p):
        return p.text()

    def get_metrics(self, p):
        return [self.string(p), self.string(p)]

    def get_streams(self, p):
        return [p.uleb(4), p.uleb(U32)]

    def get_images(self, p):
        head = [p.uleb(6), self.string(p), p.uleb(65)]
        return head + [p.take(p.uleb(33)).hex(), p.uleb(), p.uleb(), p.uleb(U32)]

    def get_threads(self, p):
        return [p.uleb(U32), p.uleb(U32), p.uleb()]

    def get_frames(self, p):
        tag = p.take(1)[0]
        image = p.uleb(len(self.images)) if tag & 0x20 else 0
        self.address = (self.address + p.sleb()) % (1 << 64)
        return [tag & 0xF, bool(tag & 0x10), image, self.string(p) if tag & 0x40 else "",
                self.address]

    def get_stacks(self, p):
        own = len(self.stacks)
        return [own - p.uleb(own + 1), p.uleb(len(self.frames))]

    def get_kinds(self, p):
        return [p.uleb(U32), p.uleb(U32)]

    def add_symbols(self, p):
        frame, reason = p.uleb(len(self.frames)), self.string(p)
        self.symbols[frame] = [frame, reason,
                               [[self.string(p), self.string(p), p.uleb(U32), p.uleb(U32)]
                                for _ in range(p.uleb(65))]]

    def image(self, image):
        if not 0 < image < len(self.images):
            raise Bad(f"image {image} is not defined")
        return image

    def add_image_facts(self, p):
        image, machine = self.image(p.uleb()), p.uleb(1 << 16)
        content = struct.unpack("<Q", p.take(8))[0]
        self.facts[image] = [image, machine, content,
                             [[p.uleb(), p.uleb(), p.uleb(), p.uleb(), p.uleb(U32)]
                              for _ in range(p.uleb(257))]]

    def add_matches(self, p):
        image, rung = self.image(p.uleb()), p.uleb(5)
        self.matches[image] = [image, rung, self.string(p), self.string(p), self.string(p),
                               (p.uleb() - 1) % U64]

    def add_functions(self, chunk):
        table = self.functions.setdefault(self.image(chunk.stream), [])
        start = name = 0
        try:
            p = chunk.payload()
            for _ in range(chunk.count):
                start += p.uleb()
                size = p.uleb()
                name += p.sleb()
                if start + size >= U64 or not 0 <= name < len(self.strings):
                    raise Bad("a function that cannot be")
                if table and start < table[-1][0] or len(table) >= 16777216:
                    raise Bad("functions are out of order or too many")
                table.append([start, size, self.strings[name]])
            p.done()
        except Bad:
            self.broken.add(chunk.stream)

    def add_addresses(self, chunk, p):
        if p.uleb() != len(self.rows):
            raise Bad(f"offset {chunk.at}: wrong first row")
        n_rows = p.uleb()
        if self.rows and n_rows != self.n_rows or len(self.rows) + chunk.count > n_rows:
            raise Bad(f"offset {chunk.at}: wrong number of rows")
        self.n_rows = n_rows
        pid = process_start = start = since = 0
        for _ in range(chunk.count):
            pid += p.uleb()
            process_start = (process_start + p.sleb()) % U64
            start = (start + p.sleb()) % U64
            length = p.uleb()
            since = (since + p.sleb()) % U64
            duration = p.uleb()
            until = since + duration - 1 if duration else U64 - 1
            image, address, tag = self.image(p.uleb()), p.uleb(), p.take(1)[0]
            if pid >= U32 or not length or start + length >= U64 or until >= U64:
                raise Bad(f"offset {chunk.at}: a row that cannot be")
            if tag & 0xC0 or tag & 0xF > 6:
                raise Bad(f"offset {chunk.at}: an unknown tag")
            row = [pid, process_start, start, since, start + length, until, image,
                   (start - address) % U64, tag & 0xF, bool(tag & 0x10), bool(tag & 0x20)]
            if self.rows and row[:4] < self.rows[-1][:4]:
                raise Bad(f"offset {chunk.at}: rows are out of order")
            self.rows.append(row)

    def add_records(self, chunk, p):
        time = chunk.first
        for _ in range(chunk.count):
            major, minor = self.kinds[p.uleb(len(self.kinds))]
            length = p.uleb(1048577)
            time += p.uleb()
            self.records.append((time, chunk.stream, major, minor, p.take(length)))
        if time != chunk.last:
            raise Bad(f"offset {chunk.at}: the last time is wrong")

    def stack_names(self, stack):
        names = []
        while stack:
            stack, frame = self.stacks[stack]
            levels = self.symbols.get(frame, (0, 0, []))[2]
            _, _, _, name, address = self.frames[frame]
            names += [level[0] for level in levels] or [name or hex(address)]
        return names[::-1]

    def sample(self, time, payload):
        p = Bytes(payload)
        thread, stack, metric, weight = p.uleb(), p.uleb(), p.uleb(), p.uleb()
        pid, tid, _ = self.threads[thread]
        return [time, pid, tid, self.stack_names(stack), self.metrics[metric][0], weight]

    def frame_name(self, frame):
        levels = self.symbols.get(frame, (0, 0, []))[2]
        return levels[-1][0] if levels else self.frames[frame][3] if frame else ""

    def counts(self):
        """Functions with their blocks and lines, nodes of call trees, sums of threads by function."""
        functions, nodes, sums, block = {}, [], [], None
        for _, _, major, minor, payload in self.records:
            if major != 0x55:
                continue
            p = Bytes(payload)
            n = []
            while p.at < len(p.data):
                n.append(p.uleb())
            if minor == 1:
                node = dict(zip(("thread", "node", "parent", "frame", "calls", "instructions", "cycles", "min",
                                 "max", "time", "site"), n))
                node["thread"], node["name"] = self.threads[n[0]][1], self.frame_name(n[3])
                for key in "calls", "cycles", "time":
                    node[key] = node[key] - 1 if node[key] else None
                nodes.append(node)
            elif minor == 2:
                functions[n[0]] = {"name": self.frame_name(n[0]), "address": self.frames[n[0]][4], "bytes": n[1],
                                   "reason": self.strings[n[2]], "fragment": bool(n[4] & 1),
                                   "object": self.strings[n[5]], "blocks": [],
                                   "image": self.images[self.frames[n[0]][2]][1] if self.frames[n[0]][2] else ""}
            elif minor == 3:
                block = dict(zip(("address", "end", "instructions", "cost", "count"), n[1:]), lines=[])
                functions[n[0]]["blocks"].append(block)
            elif minor == 4:
                block["lines"].append([self.strings[n[0]], *n[1:4]])
            elif minor == 5:
                sums.append([self.threads[n[0]][1], self.frame_name(n[1]), n[2], n[3] - 1 if n[3] else None])
        return {"functions": [*functions.values()], "nodes": nodes, "sums": sums}

    def dump(self):
        self.records.sort(key=lambda r: r[:2])  # stable: the order within a stream stays
        return {
            "recovered": self.recovered, "unknown_chunks": self.unknown,
            "damaged_chunks": self.damaged, "meta": self.meta, "strings": self.strings,
            "metrics": self.metrics[1:], "streams": self.streams[1:], "images": self.images[1:],
            "threads": self.threads[1:], "frames": self.frames[1:], "stacks": self.stacks[1:],
            "symbols": [self.symbols[f] for f in sorted(self.symbols)],
            "records": [[*r[:4], r[4].hex()] for r in self.records],
            "image_facts": [self.facts[i] for i in sorted(self.facts)],
            "matches": [self.matches[i] for i in sorted(self.matches)],
            "functions": [[i, self.functions[i]] for i in sorted(self.functions)
                          if i not in self.broken and self.functions[i]],
            "damaged_functions": len(self.broken),
            "addresses": self.rows if len(self.rows) == self.n_rows else [],
            "samples": [self.sample(r[0], r[4]) for r in self.records
                        if r[2:4] == (0x40, 0x7FFFFFFF)],
        }


def main():
    path = sys.argv[-1]
    with open(path, "rb") as f:
        data = f.read()
    try:
        if sys.argv[1] == "--chunks":
            for chunk in scan(data):
                print(chunk.at, NAMES.get(chunk.type, chunk.type), chunk.stored, chunk.raw, chunk.count)
            return 0
        trace = Trace(data)
        json.dump(trace.counts() if sys.argv[1] == "--counts" else trace.dump(), sys.stdout)
    except Bad as bad:
        print(f"'{path}': {bad}", file=sys.stderr)
        return 1
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
