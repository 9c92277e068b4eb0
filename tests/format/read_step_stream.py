#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second reader of step streams, written from docs/format/step-stream.md alone.

    read_step_stream.py FILE              what was executed, thread by thread, one fact a line; status 1
                                          when the stream is refused
    read_step_stream.py --changes FILE N FOLDER
        N copies with one change each, and for each a line "NUMBER accepted|refused"

Lines are TID STEP and then ADDRESS BYTES TIMES, or "mark" KIND A B C TEXT, or "read|write|modify" ADDRESS
LENGTH VALUE, separated by tabs.
"""
import random
import struct
import sys

HEAD = b"weirstep" + struct.pack("<II", 1, 0)
AGAIN = 1 << 31


class Refused(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Refused(what)


def take(payload, form, rest=False):
    size = struct.calcsize("<" + form)
    need(len(payload) >= size, "too short")
    need(rest or len(payload) == size, "too long")
    return struct.unpack_from("<" + form, payload) + ((payload[size:],) if rest else ())


def text(payload):
    need(0 not in payload, "a zero byte in a text")
    return payload


class Stream:
    def __init__(self):
        self.threads, self.images, self.codes = [], [], []
        self.at = None  # thread
        self.last = None  # step that an access may be of
        self.n_steps = self.n_marks = self.n_accesses = 0
        self.has_ended = False
        self.readers = {1: self.thread, 2: self.image, 3: self.code, 4: self.go, 5: self.steps,
                        6: self.mark, 7: self.access, 8: self.end}

    def read(self, data):
        need(data[:16] == HEAD, "head")
        at = 16
        while not self.has_ended:
            need(at + 8 <= len(data), "no end")
            kind, n = struct.unpack_from("<II", data, at)
            need(n <= 65536 and at + 8 + (n + 7 & ~7) <= len(data), "length")
            payload = data[at + 8:at + 8 + n]
            at += 8 + (n + 7 & ~7)
            need(not any(data[at - (-n & 7):at]), "filling")
            if kind in self.readers:
                self.readers[kind](payload)
        need(at == len(data), "something behind the end")
        return self

    def thread(self, payload):
        number, pid, tid, zero, start, name = take(payload, "IIIIQ", True)
        need(number == len(self.threads) and zero == 0, "number of a thread")
        need(all(t["key"] != (pid, tid, start) for t in self.threads), "a thread twice")
        self.threads.append({"key": (pid, tid, start), "tid": tid, "name": text(name), "lines": [],
                             "n": 0, "time": 0})

    def image(self, payload):
        number, kind, bits, _, _, _, build_id, length, path = take(payload, "IIIIQQ32sI", True)
        need(number == len(self.images) + 1, "number of an image")
        need(1 <= kind <= 5 and bits in (0, 32, 64), "image")
        need(length <= 32 and not any(build_id[length:]), "build-id")
        self.images.append(text(path))

    def code(self, payload):
        number, _, addr, image, bits, n, zero, image_addr, code = take(payload, "IIQIBBHQ16s")
        need(number == len(self.codes) and number < AGAIN and zero == 0, "number of code")
        need(image <= len(self.images) and (image or not image_addr), "image of code")
        need(n <= 15 and not any(code[n:]), "bytes of code")
        need(bits in (32, 64) if n else bits == 0, "bits")
        self.codes.append((addr, code[:n]))

    def go(self, payload):
        number, zero, time = take(payload, "IIQ")
        need(number < len(self.threads) and zero == 0, "thread")
        self.at, self.last = self.threads[number], None
        need(time >= self.at["time"], "time")
        self.at["time"] = time

    def steps(self, payload):
        need(self.at and payload and len(payload) % 4 == 0, "row of steps")
        line = None
        for (word,) in struct.iter_unpack("<I", payload):
            if word & AGAIN:
                need(line and word != AGAIN, "rounds")
                line[-1] += word - AGAIN
            else:
                need(word < len(self.codes), "code")
                addr, code = self.codes[word]
                line = [self.at["n"], hex(addr), code.hex() or "-", 1]
                self.at["lines"].append(line)
                self.at["n"] += 1
                self.n_steps += 1
        self.last = {"number": self.at["n"] - 1, "accesses": 0}

    def mark(self, payload):
        kind, zero, a, b, c, words = take(payload, "IIqqq", True)
        need(self.at and 1 <= kind <= 9 and zero == 0, "mark")
        self.at["lines"].append([self.at["n"], "mark", kind, a, b, c, text(words).decode("utf-8", "replace")])
        self.last = None
        self.n_marks += 1

    def access(self, payload):
        addr, how, n, has_value, zeros, value = take(payload, "QBBB5s", True)
        need(1 <= how <= 3 and n <= 64 and has_value <= 1 and not any(zeros), "access")
        need(len(value) == (n if has_value else 0), "value")
        need(self.last and self.last["accesses"] < 4096, "step of an access")
        self.last["accesses"] += 1
        self.at["lines"].append([self.last["number"], ["", "read", "write", "modify"][how], hex(addr), n,
                                 value.hex() if has_value else "-"])
        self.n_accesses += 1

    def end(self, payload):
        need(take(payload, "QQQII") == (self.n_steps, self.n_marks, self.n_accesses, len(self.codes),
                                        len(self.threads)), "totals")
        self.has_ended = True


def packets(data):
    at, found = 16, []
    while at < len(data):
        n = struct.unpack_from("<I", data, at + 4)[0]
        found.append(data[at:at + 8 + (n + 7 & ~7)])
        at += len(found[-1])
    return found


def changed(data, rng):
    """One change: of a byte, of a word, or of the order of packets."""
    how = rng.randrange(5)
    if how == 0:
        at = rng.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
    if how == 1:
        at = rng.randrange(len(data) // 4) * 4
        return data[:at] + struct.pack("<I", rng.choice([0, 1, 2, 3, 64, 255, 65537, AGAIN])) + data[at + 4:]
    if how == 2:
        return data[:rng.randrange(len(data))]
    rows = packets(data)
    i, j = rng.randrange(len(rows)), rng.randrange(len(rows))
    if how == 3:
        rows[i], rows[j] = rows[j], rows[i]
    else:
        rows.insert(i, rows[j])
    return data[:16] + b"".join(rows)


def main():
    if sys.argv[1] == "--changes":
        data = open(sys.argv[2], "rb").read()
        rng = random.Random(1)
        for i in range(int(sys.argv[3])):
            copy = changed(data, rng)
            open("%s/%d" % (sys.argv[4], i), "wb").write(copy)
            try:
                Stream().read(copy)
                print(i, "accepted")
            except Refused:
                print(i, "refused")
        return 0
    try:
        stream = Stream().read(open(sys.argv[1], "rb").read())
    except Refused as refused:
        print("refused:", refused)
        return 1
    for thread in sorted(stream.threads, key=lambda t: t["key"]):
        for line in thread["lines"]:
            print(thread["tid"], *line, sep="\t")
    return 0


sys.exit(main())
