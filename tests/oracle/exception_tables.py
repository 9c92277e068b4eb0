# SPDX-License-Identifier: MIT
"""exception_tables.py DIR N [readelf]: compares the tables of DIR/1.in.o .. DIR/N.in.o with those of
N.out.o, whose code has moved by N.map (made by exception_tables_grow). A reader of its own: what each
FDE and each LSDA says must be the same at the moved places. With "readelf", the rows that readelf
prints too. Prints how much was compared; differences on stderr."""
import bisect
import struct
import subprocess
import sys

PC32, ABS64, ABS32, ABS32S, PC64 = 2, 1, 10, 11, 24


class Different(Exception):
    pass


def same(what, old, new):
    if old != new:
        raise Different(f"{what}: {old!r} became {new!r}")


class Bytes:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, n):
        if self.at + n > len(self.data):
            raise Different("a table ends early")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, n):
        return int.from_bytes(self.take(n), "little")

    def leb(self, signed=False):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value

    def encoded(self, encoding):
        form = encoding & 15
        if form == 1:
            return self.leb()
        return self.number({0: 8, 2: 2, 3: 4, 4: 8, 10: 2, 11: 4, 12: 8}[form])


class Object:
    def __init__(self, path):
        self.data = d = open(path, "rb").read()
        shoff, = struct.unpack_from("<Q", d, 0x28)
        n, strings = struct.unpack_from("<HH", d, 0x3c)
        zero = struct.unpack_from("<IIQQQQIIQQ", d, shoff)
        n, strings = n or zero[5], zero[6] if strings == 0xffff else strings
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", d, shoff + 64 * i) for i in range(n)]
        self.names = [self.text(strings, h[0]) for h in self.headers]
        self.symbols, self.relocs = [], {}
        for h in self.headers:
            if h[1] == 2:
                self.symbols = [struct.unpack_from("<IBBHQQ", d, h[4] + 24 * i) for i in range(h[5] // 24)]
                self.symbol_names = h[6]
        for h in self.headers:
            if h[1] == 4:
                table = self.relocs.setdefault(h[7], {})
                for i in range(h[5] // 24):
                    offset, info, addend = struct.unpack_from("<QQq", d, h[4] + 24 * i)
                    table.setdefault(offset, []).append((info & 0xffffffff, info >> 32, addend))

    def text(self, section, at):
        start = self.headers[section][4] + at
        return self.data[start:self.data.index(b"\0", start)].decode()

    def bytes_of(self, i):
        h = self.headers[i]
        return b"" if h[1] == 8 else self.data[h[4]:h[4] + h[5]]

    def target(self, section, offset):
        """(section, offset) that the field means; None without a relocation."""
        found = self.relocs.get(section, {}).get(offset)
        if not found:
            return None
        same("relocations of a field", 1, len(found))
        kind, symbol, addend = found[0]
        s = self.symbols[symbol]
        if s[3] == 0 or s[3] >= 0xff00:
            return (self.text(self.symbol_names, s[0]), addend)
        return (s[3], s[4] + addend)

    def described(self, section, start, end):
        """Relocations of a stretch of bytes, by what they mean."""
        table = self.relocs.get(section, {})
        return [(o - start, [r[0] for r in table[o]], self.target(section, o))
                for o in sorted(table) if start <= o < end]


class Maps:
    def __init__(self, path):
        self.rows, self.ranges, self.pads = {}, [], []
        for line in open(path):
            kind, *words = line.split()
            words = [int(w) for w in words]
            if kind == "row":
                self.rows.setdefault(words[0], []).append(words[1:])
            elif kind == "range":
                self.ranges.append(tuple(words))
            else:
                self.pads.append(tuple(words))
        self.olds = {s: [r[0] for r in rows] for s, rows in self.rows.items()}

    def label(self, section, old):
        if section not in self.rows:
            return old
        i = bisect.bisect_right(self.olds[section], old) - 1
        if i < 0:
            return old
        row = self.rows[section][i]
        return row[1] if row[0] == old else row[2] + old - row[0]

    def moved(self, place):
        if place is None or isinstance(place[0], str):
            return place
        return (place[0], self.label(*place))


# ---- frames ----

OPERANDS = {0: "", 0x0a: "", 0x0b: "", 5: "uu", 6: "u", 7: "u", 8: "u", 9: "uu", 0x0c: "uu", 0x0d: "u",
            0x0e: "u", 0x0f: "b", 0x10: "ub", 0x11: "us", 0x12: "us", 0x13: "s", 0x14: "uu", 0x15: "us",
            0x16: "ub", 0x2e: "u", 0x2f: "uu"}


def program(o, section, b, end, cie, location):
    """[(location, instruction)] without advances and nops."""
    out = []
    while b.at < end:
        at = b.at
        op = b.number(1)
        if op >> 6 == 1:
            location += (op & 63) * cie["code"]
        elif op >> 6 == 2:
            out.append((location, op, b.leb()))
        elif op >> 6 == 3:
            out.append((location, op))
        elif op in (2, 3, 4):
            location += b.number({2: 1, 3: 2, 4: 4}[op]) * cie["code"]
        elif op == 1:
            location = o.target(section, b.at)[1]
            b.encoded(cie["R"])
        elif op:
            values = []
            for letter in OPERANDS[op]:
                if letter == "b":
                    n = b.leb()
                    values.append((b.take(n), o.described(section, b.at - n, b.at)))
                else:
                    values.append(b.leb(letter == "s"))
            out.append((location, op, values))
        if b.at > end:
            raise Different(f"a program leaves its entry at {at:#x}")
    return out


def read_cie(o, section, data, at, end, wide):
    b = Bytes(data, at)
    cie = {"R": 0, "L": 0xff, "z": False, "P": None, "letters": ""}
    b.take(8 if wide else 4)
    cie["version"] = b.number(1)
    letters = data[b.at:data.index(b"\0", b.at)].decode()
    b.take(len(letters) + 1)
    cie["letters"] = letters
    if cie["version"] == 4:
        b.take(2)
    cie["code"], cie["data"] = b.leb(), b.leb(True)
    cie["ra"] = b.number(1) if cie["version"] == 1 else b.leb()
    if letters.startswith("z"):
        cie["z"] = True
        stop = b.leb()
        stop += b.at
        for letter in letters[1:]:
            if letter in "RL":
                cie[letter] = b.number(1)
            elif letter == "P":
                cie["P encoding"] = b.number(1)
                cie["P"] = o.described(section, b.at, b.at + 1)
                b.encoded(cie["P encoding"])
        same("the end of an augmentation", stop, b.at)
    cie["program"] = program(o, section, b, end, cie, 0)
    return cie


def read_frames(o, section):
    data, is_eh = o.bytes_of(section), o.names[section] == ".eh_frame"
    cies, fdes, at, last, ends, waiting = {}, [], 0, 0, [], []
    while at < len(data):
        b = Bytes(data, at)
        length = b.number(4)
        wide = length == 0xffffffff
        if wide:
            length = b.number(8)
        id_at, end = b.at, b.at + length
        if end > len(data):
            raise Different("an entry leaves the section")
        if not length:
            ends.append(len(fdes))
        else:
            last = end
            n = 8 if wide and not is_eh else 4
            ident = b.number(n)
            if ident == (0 if is_eh else (1 << 8 * n) - 1):
                cies[at] = read_cie(o, section, data, id_at, end, n == 8)
            else:
                where = id_at - ident if is_eh else ident
                if not is_eh and o.target(section, id_at):
                    same("the section of a CIE", section, o.target(section, id_at)[0])
                    where = o.target(section, id_at)[1]
                waiting.append((at, b.at, end, where))
        at = end
    for at, body, end, where in waiting:
        fdes.append(read_fde(o, section, data, (at, body, end), cies[where]))
    return {"fdes": fdes, "ends": ends, "last": last, "n": (len(cies), len(waiting))}


def read_fde(o, section, data, places, cie):
    at, body, end = places
    b = Bytes(data, body)
    pc = o.target(section, b.at)
    b.encoded(cie["R"])
    size = b.encoded(cie["R"])
    lsda = None
    if cie["z"]:
        stop = b.leb()
        stop += b.at
        if cie["L"] != 0xff and stop > b.at:
            lsda = o.target(section, b.at)
        b.at = stop
    is_here = pc is not None and not isinstance(pc[0], str)
    return {"at": at, "cie": cie, "pc": pc, "size": size, "lsda": lsda, "here": is_here,
            "program": program(o, section, b, end, cie, pc[1] if is_here else 0)}


# ---- LSDAs ----

def read_types(o, section, data, head, filters):
    """What the action records of a call site lead to."""
    out = []
    size = {0: 8, 2: 2, 3: 4, 4: 8, 10: 2, 11: 4, 12: 8}.get(head["T"] & 15)

    def type_of(index):
        where = head["types"] - index * size
        same("the alignment of types", 0, where % min(size, 4))
        return (o.described(section, where, where + 1), data[where:where + size])

    for f in filters:
        if f > 0:
            out.append(type_of(f))
        elif f < 0:
            b, indexes = Bytes(data, head["types"] - f - 1), []
            while True:
                index = b.leb()
                if not index:
                    break
                indexes.append(type_of(index))
            out.append(indexes)
        else:
            out.append(0)
    return out


def read_actions(data, actions, action):
    filters, at = [], actions + action - 1
    while action:
        b = Bytes(data, at)
        filters.append(b.leb(True))
        at = b.at
        step = b.leb(True)
        if not step:
            break
        at += step
    return filters


def read_lsda(o, place, code, starts):
    section, at = place
    data = o.bytes_of(section)
    b, head = Bytes(data, at), {}
    following = bisect.bisect_right(starts, at)
    limit = starts[following] if following < len(starts) else len(data)
    encoding, base = b.number(1), code
    if encoding != 0xff:
        base = o.target(section, b.at)
        b.encoded(encoding)
    head["T"] = b.number(1)
    if head["T"] != 0xff:
        distance = b.leb()
        head["types"] = b.at + distance
    form = b.number(1)
    length = b.leb()
    actions, sites = b.at + length, []
    end = min(actions, limit)
    while end - b.at >= 4 or (end == actions and b.at < end):
        start, size, pad, action = b.encoded(form), b.encoded(form), b.encoded(form), b.leb()
        filters = read_actions(data, actions, action)
        sites.append({"start": (code[0], code[1] + start), "end": (code[0], code[1] + start + size),
                      "pad": (base[0], base[1] + pad) if pad else None, "action": action,
                      "types": read_types(o, section, data, head, filters) if "types" in head else filters})
    if end == actions:
        same("the end of the call sites", actions, b.at)
    return {"encoding": encoding, "T": head["T"], "form": form, "base": base, "sites": sites}


# ---- comparison ----

def compare_fde(old, new, maps):
    same("the CIE", old["cie"], new["cie"])
    same("the start of a range", maps.moved(old["pc"]), new["pc"])
    same("the LSDA", maps.moved(old["lsda"]), new["lsda"])
    if not old["here"]:
        return
    section, start = old["pc"]
    same("the end of a range", maps.label(section, start + old["size"]), new["pc"][1] + new["size"])
    same("a program", [(maps.label(section, i[0]),) + i[1:] for i in old["program"]], new["program"])


def compare_lsda(old, new, maps):
    for what in ("encoding", "T", "form"):
        same(what, old[what], new[what])
    same("the base of landing pads", maps.moved(old["base"]), new["base"])
    same("call sites", len(old["sites"]), len(new["sites"]))
    for x, y in zip(old["sites"], new["sites"]):
        for what in ("start", "end", "pad"):
            same(f"a call site's {what}", maps.moved(x[what]), y[what])
        same("an action", x["action"], y["action"])
        same("what is caught", x["types"], y["types"])


def lsda_starts(frames):
    starts = {}
    for f in frames:
        for fde in f["fdes"]:
            if fde["lsda"]:
                starts.setdefault(fde["lsda"][0], set()).add(fde["lsda"][1])
    return {s: sorted(v) for s, v in starts.items()}


def readelf_rows(path):
    """[[(location, rules)] of each FDE], in readelf's words."""
    text = subprocess.run(["readelf", "-wF", path], capture_output=True, text=True)
    if "arning" in text.stderr:
        raise Different("readelf: " + text.stderr.splitlines()[0])
    out = []
    for line in text.stdout.splitlines():
        words = line.split()
        if " FDE " in line:
            out.append([])
        elif " CIE " in line:
            out.append(None)
        elif out and out[-1] is not None and words and len(words[0]) == 16 and words[0] != "LOC":
            out[-1].append((int(words[0], 16), words[1:]))
    return [rows for rows in out if rows is not None]


def compare_readelf(stem, fdes, maps):
    old, new = readelf_rows(stem + ".in.o"), readelf_rows(stem + ".out.o")
    same("FDEs that readelf finds", (len(fdes), len(fdes)), (len(old), len(new)))
    for fde, x, y in zip(fdes, old, new):
        if not fde["here"]:
            continue
        section = fde["pc"][0]
        same("readelf's rows", [(maps.label(section, at), rules) for at, rules in x], y)


def compare(stem, counts, with_readelf):
    old, new, maps = Object(stem + ".in.o"), Object(stem + ".out.o"), Maps(stem + ".map")
    sections = [i for i, name in enumerate(old.names) if name in (".eh_frame", ".debug_frame")]
    frames = [(read_frames(old, i), read_frames(new, i)) for i in sections]
    for i in range(1, len(old.headers)):
        if i not in maps.rows and not old.headers[i][2] & 4 and (
                old.names[i].startswith(".gcc_except") or i in sections):
            same("the size of " + old.names[i], len(old.bytes_of(i)), len(new.bytes_of(i)))
    old_starts, new_starts = (lsda_starts([f[side] for f in frames]) for side in (0, 1))
    ranges, pads = [], set()
    for section, (x, y) in zip(sections, frames):
        same("entries", (x["n"], x["ends"]), (y["n"], y["ends"]))
        if x["last"] % 8 == 0:
            same("the end of the last entry modulo 8", 0, y["last"] % 8)
        for a, b in zip(x["fdes"], y["fdes"]):
            same("the alignment of an entry", a["at"] % 4, b["at"] % 4)
            compare_fde(a, b, maps)
            counts["fdes"] += 1
            counts["rules"] += len(a["program"])
            if a["here"] and old.names[section] == ".eh_frame":
                ranges.append(a["pc"] + (a["size"],))
            if not a["lsda"]:
                continue
            p = read_lsda(old, a["lsda"], a["pc"], old_starts[a["lsda"][0]])
            q = read_lsda(new, b["lsda"], b["pc"], new_starts[b["lsda"][0]])
            compare_lsda(p, q, maps)
            counts["lsdas"] += 1
            counts["sites"] += len(p["sites"])
            pads.update(site["pad"] for site in p["sites"] if site["pad"])
    same("ranges", ranges, maps.ranges)
    same("landing pads", sorted(pads), maps.pads)
    for i in range(1, len(old.headers)):
        same("relocations of " + old.names[i], sum(map(len, old.relocs.get(i, {}).values())),
             sum(map(len, new.relocs.get(i, {}).values())))
        if not any(maps.rows) and i not in maps.rows:
            same("the bytes of " + old.names[i], old.bytes_of(i), new.bytes_of(i))
    if with_readelf:
        compare_readelf(stem, [fde for f in frames for fde in f[0]["fdes"]], maps)


def main():
    folder, n, with_readelf = sys.argv[1], int(sys.argv[2]), "readelf" in sys.argv[3:]
    counts = {"fdes": 0, "rules": 0, "lsdas": 0, "sites": 0}
    failed = 0
    for i in range(1, n + 1):
        try:
            compare(f"{folder}/{i}", counts, with_readelf)
        except (Different, IndexError, KeyError, TypeError) as e:
            failed += 1
            print(f"{folder}/{i}: {type(e).__name__} {str(e)[:600]}", file=sys.stderr)
    print(f"{n} objects, {counts['fdes']} FDEs, {counts['rules']} rules, {counts['lsdas']} LSDAs,"
          f" {counts['sites']} call sites")
    sys.exit(1 if failed or not n else 0)


if __name__ == "__main__":
    main()
