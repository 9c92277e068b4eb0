#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a merged symbol file, from docs/format/catalog-file.md alone, and prints it as JSON.

    read_catalog.py FILE           everything in it but what is inside the images
    read_catalog.py --map FILE     one line a thing: offset, length, what
    read_catalog.py --hash FILE    the content hash of an ELF file

It is the second reader of the format: plain, slow, and without a line of the first. Exit status 1
and a sentence when the file cannot be read.
"""
import json
import struct
import sys

MAGIC = bytes.fromhex("8977 7379 6d0d 0a1a")
ROOT = struct.Struct("<8sHHIQQQQ")
SEGMENT = struct.Struct("<4sHHQQI")
IMAGE = struct.Struct("<QQQIHBBQQ")
BODY = 8192


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


def u32_at(data, offset):
    return struct.unpack_from("<I", data, offset)[0]


class Bytes:
    """A payload and a place in it."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Bad("the directory is cut off")
        self.at += n
        return self.data[self.at - n:self.at]

    def unpack(self, form):
        return form.unpack(self.take(form.size))

    def u32(self):
        return u32_at(self.take(4), 0)

    def text(self):
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise Bad("a text has no end")
        return self.take(end + 1 - self.at)[:-1]


def in_order(items, what):
    if any(a >= b for a, b in zip(items, items[1:])):
        raise Bad(what + " are not in order")


class Root:
    def __init__(self, block, name):
        self.name = name
        self.state = "damaged"
        if not any(block):
            self.state = "empty"
        if len(block) < 512 or block[:8] != MAGIC or crc32c(block[:508]) != u32_at(block, 508):
            return
        (_, major, _, _, self.generation, self.dir_offset, self.dir_bytes,
         self.committed) = ROOT.unpack_from(block)
        if major != 1:
            raise Bad(f"is a symbol catalog of version {major}")
        if self.generation:
            self.state = "valid"


class Catalog:
    def __init__(self, data):
        self.data = data
        roots = [Root(data[at:at + 512], name) for at, name in ((0, "A"), (4096, "B"))]
        valid = [r for r in roots if r.state == "valid"]
        valid.sort(key=lambda r: r.generation, reverse=True)
        if not valid:
            raise Bad("is not a symbol catalog")
        self.damaged = any(r.state == "damaged" for r in roots)
        failure = None
        for root in valid:
            try:
                self.use(root)
                self.damaged = self.damaged or failure is not None
                return
            except Bad as bad:
                failure = failure or bad
        raise failure

    def segment(self, offset, kind, length, number, end):
        """Payload and stated CRC of a segment that ends at or before `end`."""
        header = self.data[offset:offset + 64]
        if offset + 64 > end or len(header) < 64:
            raise Bad(f"the segment at {offset} lies outside the file")
        magic, its_kind, _, its_length, its_number, crc = SEGMENT.unpack_from(header)
        if magic != b"wSEG" or crc32c(header[:60]) != u32_at(header, 60):
            raise Bad(f"the segment header at {offset} is damaged")
        if (its_kind, its_length, its_number) != (kind, length, number):
            raise Bad(f"the segment at {offset} is another one")
        if length > end - offset - 64:
            raise Bad(f"the segment at {offset} reaches beyond the file")
        return self.data[offset + 64:offset + 64 + length], crc

    def use(self, root):
        if root.committed > len(self.data):
            raise Bad(f"the file has {len(self.data)} bytes instead of {root.committed}")
        if root.dir_offset < BODY or root.dir_offset % 64:
            raise Bad(f"the directory cannot be at {root.dir_offset}")
        payload, crc = self.segment(root.dir_offset, 2, root.dir_bytes, 0, root.committed)
        if crc32c(payload) != crc:
            raise Bad("the check sum of the directory is wrong")
        b = Bytes(payload)
        self.facts = [(b.text(), b.text()) for _ in range(b.u32())]
        in_order([key for key, _ in self.facts], "the facts")
        self.images = []
        bases = []
        for _ in range(b.u32()):
            bases.append(b.text())
            n = b.u32()
            if not n:
                raise Bad("a base name has no images")
            images = [self.image(b, bases[-1], root.committed) for _ in range(n)]
            in_order([(i["path"], i["id"]) for i in images], "the images")
            self.images += images
        in_order(bases, "the base names")
        if b.at != len(payload):
            raise Bad("the directory has bytes left over")
        self.root = root

    @staticmethod
    def image(b, base, committed):
        number, offset, length, crc, machine, bits, n_build_id, symbols, rows = b.unpack(IMAGE)
        build_id = b.take(n_build_id)
        path = b.text()
        if n_build_id > 32 or bits not in (0, 32, 64):
            raise Bad("an image is impossible")
        if offset < BODY or offset % 64 or offset + 64 + length > committed:
            raise Bad("an image lies outside the file")
        return {"id": number, "base": base, "path": path, "bits": bits, "machine": machine,
                "build_id": build_id.hex(), "symbols": symbols, "rows": rows, "bytes": length,
                "offset": offset, "crc": crc}

    def content(self, image):
        """The image's bytes, or None when they are damaged."""
        try:
            payload, crc = self.segment(image["offset"], 1, image["bytes"], image["id"],
                                        len(self.data))
        except Bad:
            return None
        return payload if crc == image["crc"] == crc32c(payload) else None


def as_text(raw):
    return raw.decode("utf-8", "replace")


def as_json(catalog):
    images = []
    for image in catalog.images:
        content = catalog.content(image)
        shown = {k: v for k, v in image.items() if k not in ("offset", "crc")}
        shown.update(id="%016x" % image["id"], base=as_text(image["base"]),
                     path=as_text(image["path"]),
                     content=None if content is None else content.hex())
        images.append(shown)
    return {"generation": catalog.root.generation, "damaged": catalog.damaged,
            "facts": [[as_text(k), as_text(v)] for k, v in catalog.facts], "images": images}


def print_map(catalog):
    root = catalog.root
    print(0 if root.name == "A" else 4096, 512, "root", root.name)
    for image in sorted(catalog.images, key=lambda i: i["offset"]):
        print(image["offset"], 64 + image["bytes"], "image", "%016x" % image["id"])
    print(root.dir_offset, 64 + root.dir_bytes, "directory")


def content_hash(data):
    """The section "Content hash"; the ELF structures by their standard."""
    wide = data[4] == 2
    e = struct.unpack_from("<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH", data, 16)
    phoff, shoff, phentsize, phnum, shentsize, shnum = e[4], e[5], e[8], e[9], e[10], e[11]
    for i in range(shnum if shoff else 0):
        at = shoff + i * shentsize
        s = struct.unpack_from("<IIQQQQIIQQ" if wide else "<IIIIIIIIII", data, at)
        if s[2] & 6 == 6 and s[5]:
            if s[1] == 8:
                return 0
            break
    h, left, some = 0xCBF29CE484222325, len(data), False
    for i in range(phnum):
        p = struct.unpack_from("<IIQQQQQQ" if wide else "<IIIIIIII", data, phoff + i * phentsize)
        kind, flags, offset, vaddr, size = ((p[0], p[1], p[2], p[3], p[5]) if wide else
                                            (p[0], p[6], p[1], p[2], p[4]))
        if kind != 1 or not flags & 1 or not size:
            continue
        if size > left or offset + size > len(data):
            return 0
        left -= size
        code = bytearray(data[offset:offset + size])
        if offset == 0:
            for at in ((*range(40, 48), *range(58, 64)) if wide else (*range(32, 36), *range(46, 52))):
                if at < size:
                    code[at] = 0
        code += bytes(-size % 8)
        for word in (vaddr, size, *struct.unpack("<%dQ" % (len(code) // 8), code)):
            h = (h ^ word) * 0x100000001B3 % 2**64
            h ^= h >> 32
        some = True
    return (h or 1) if some else 0


def main():
    args = sys.argv[1:]
    path = args[-1]
    with open(path, "rb") as f:
        data = f.read()
    if args[0] == "--hash":
        print("%016x" % content_hash(data))
        return
    try:
        catalog = Catalog(data)
    except Bad as bad:
        sys.exit(f"'{path}': {bad}")
    if args[0] == "--map":
        print_map(catalog)
    else:
        json.dump(as_json(catalog), sys.stdout)
        print()


if __name__ == "__main__":
    main()
