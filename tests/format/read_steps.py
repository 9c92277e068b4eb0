#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the executed instructions of a trace, from docs/format/trace.md and docs/format/steps.md alone,
and prints them in the form of tests/oracle/steps_dump.c.

    read_steps.py FILE            each thread, each step, mark and datum, one a line
    read_steps.py FILE NUMBER     of each thread the items from that step on
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from read_trace import Bad, Bytes, Trace, U32, U64  # noqa: E402


def zigzag(p):
    v = p.uleb()
    return -(v >> 1) - 1 if v & 1 else v >> 1


def rest_is(condition, what):
    if not condition:
        raise Bad(what)


def read_run(payload):
    """(first, space, generation, [(address, times)])"""
    p = Bytes(payload)
    first, space, generation, n, address = p.uleb(), p.uleb(U32), p.uleb(U32), p.uleb(U32), p.uleb()
    rest_is(n and first + n < U64, "a run without steps or with too many")
    steps = []
    while True:
        times = 1
        if p.data[p.at:p.at + 1] == b"\0" and p.data[p.at + 1:p.at + 2] != b"\0":
            p.take(1)
            times = min(p.uleb() + 1, U64 - 1)
            rest_is(times > 1, "no iterations")
        steps.append((address, times))
        if len(steps) == n:
            break
        if p.data[p.at:p.at + 2] == b"\0\0":
            p.take(2)
            address += 1 << 63
        else:
            v = p.uleb()
            rest_is(v, "a difference that is none")
            address += -(v - 1 >> 1) - 1 if v - 1 & 1 else v - 1 >> 1
        address %= U64
    p.done()
    return first, space, generation, steps


def read_blocks(payload):
    """(space, first number, [[(address, is a repeated string instruction)]])"""
    p = Bytes(payload)
    space, first, n = p.uleb(U32), p.uleb(U32), p.uleb(U32)
    rest_is(first + n <= 1 << 24, "too many blocks")
    blocks, end = [], 0
    for _ in range(n):
        address, block = (end + zigzag(p)) % U64, []
        k = p.take(1)[0]
        rest_is(1 <= k <= 64, "no block")
        for v in p.take(k):
            rest_is(1 <= v & 15 and v < 32, "no instruction")
            block.append((address, v >= 16))
            address = (address + (v & 15)) % U64
        blocks.append(block)
        end = address
    p.done()
    return space, first, blocks


def way_head(p):
    """(first step, space, generation, steps, cut, first block, bytes of tokens)"""
    head = p.uleb(), p.uleb(U32), p.uleb(U32), p.uleb(U32), p.uleb(U32), p.uleb(U32), p.uleb()
    rest_is(1 <= head[3] <= 1 << 22 and head[0] + head[3] < U64 and head[4] < 64 and head[5] < 1 << 24, "no way")
    return head


def way_blocks(p, start, is_short):
    """The numbers of the blocks from the tokens."""
    shift, factor, places = (256, 1, 20) if is_short else (32, 0x85ebca6b, 16)
    history, by_history, by_block = start * factor % U32, {}, {}
    yield start
    last = start
    while True:
        token = p.uleb()
        for i in range((token >> 2) + 1):
            place = (history * 0x9e3779b1 % U32) >> places
            if i < token >> 2:
                rest_is(place in by_history, "a guess of nothing")
                block = by_history[place]
            elif token & 3 == 3:
                p.done()
                return
            else:
                newer, older = by_block.get(last, (None, None))
                block = last + zigzag(p) if token & 3 == 2 else older if token & 3 else newer
                rest_is(block is not None and 0 <= block < 1 << 24, "no block")
                by_history[place] = block
                if block != newer:
                    by_block[last] = block, newer
            history = (history * shift + block * factor) % U32
            last = block
            yield block


def read_way(payload, known, is_short):
    """As read_run; `known` has the blocks by space and number."""
    p = Bytes(payload)
    first, space, generation, n, cut, start, size = way_head(p)
    tokens, steps, left = Bytes(p.take(size)), [], 0
    for number in way_blocks(tokens, start, is_short):
        rest_is(len(steps) < n and not left, "more blocks than steps")
        rest_is((space, number) in known, "a block that was not told")
        block = known[space, number]
        left = max(len(steps) + len(block) - n, 0)
        for address, is_string in block[:len(block) - left]:
            times = p.uleb() if is_string else 1
            rest_is(times, "no iterations")
            steps.append((address, times))
    rest_is(len(steps) == n and left == cut, "not so many steps")
    p.done()
    return first, space, generation, steps


def read_code(payload):
    """(space, generation, is 64, [(address, frame, bytes)])"""
    p = Bytes(payload)
    space, generation, _, flags, n = p.uleb(U32), p.uleb(U32), p.uleb(U32), p.uleb(), p.uleb(U32)
    rest_is(flags in (0, 1), "unknown flags")
    entries, end, frame = [], 0, 0
    for _ in range(n):
        address = (end + zigzag(p)) % U64
        frame += zigzag(p)
        rest_is(0 <= frame < U32, "no frame")
        size = p.take(1)[0]
        rest_is(size <= 15, "too many bytes")
        entries.append((address, frame, p.take(size)))
        end = address + size
    p.done()
    return space, generation, flags, entries


def read_mark(payload):
    p = Bytes(payload)
    mark = [p.uleb(), p.uleb(), p.sleb(), p.sleb(), p.sleb(), p.uleb(U32)]
    p.done()
    rest_is(1 <= mark[1] <= 9, "an unknown kind")
    return mark


def read_data(payload):
    p = Bytes(payload)
    data, step, address = [], 0, 0
    for _ in range(p.uleb(U32)):
        step += p.uleb()
        address = (address + zigzag(p)) % U64
        bits, size = p.take(1)[0], p.take(1)[0]
        rest_is(step < U64 and bits & 3 and not bits & ~7 and size <= 64, "no access")
        data.append((step, address, bits & 3, size, p.take(size).hex() if bits & 4 else "?"))
    p.done()
    return data


def read_place(payload):
    """(space, kind, start, end, image, at, name)"""
    p = Bytes(payload)
    space, kind, start, size = p.uleb(U32), p.uleb(), p.uleb(), p.uleb()
    image, at, name = p.uleb(U32), p.uleb(), p.uleb(U32)
    p.done()
    rest_is(kind <= 4 and size and start + size < U64, "no place")
    return space, kind, start, start + size, image, at, name


class Steps:
    def __init__(self, trace):
        self.trace, self.code, self.order = trace, {}, []
        self.places = []  # (time, place) in order of time
        self.blocks = {}
        self.streams = {}
        for record in trace.records:
            if record[2] == 0x57:
                self.streams.setdefault(record[1], []).append(record)
        for id_, stream in enumerate(trace.streams):
            if stream == [1, 2]:
                self.add_code(self.streams.get(id_, []))

    def add_code(self, records):
        for time, _, _, minor, payload in records:
            if minor == 5:
                self.add_place(time, payload)
            if minor == 7:
                self.add_blocks(payload)
            if minor != 2:
                continue
            try:
                space, generation, _, entries = read_code(payload)
            except Bad:
                continue
            for address, frame, code in entries:
                self.code.setdefault((space, address), {})[generation] = (frame, code)

    def add_blocks(self, payload):
        try:
            space, first, blocks = read_blocks(payload)
        except Bad:
            return
        for i, block in enumerate(blocks):
            self.blocks.setdefault((space, first + i), block)

    def add_place(self, time, payload):
        try:
            place = read_place(payload)
        except Bad:
            return
        if place[4] < len(self.trace.images) and place[6] < len(self.trace.strings):
            self.places.append((time, place))

    def where(self, space, address, time):
        """The newest place there that is not newer than the run."""
        for since, (of, kind, start, end, image, at, name) in reversed(self.places):
            if since <= time and of == space and start <= address < end:
                if not kind:
                    break
                path = self.trace.images[image][1] if image else ""
                return f"{kind} '{path}' '{self.trace.strings[name]}' {(address - start + at) % U64:x}"
        return "nowhere"

    def instruction(self, space, address, generation):
        versions = self.code.get((space, address), {})
        best = max((g for g in versions if g <= generation), default=None)
        if best is None:
            return "none"
        frame, code = versions[best]
        return f"{best} {frame if frame < len(self.trace.frames) else 0} {code.hex() or '-'}"

    def threads(self):
        for id_, (kind, number) in [*enumerate(self.trace.streams)][1:]:
            records = self.streams.get(id_, []) if kind == 3 else []
            if any(self.number(r) is not None for r in records):
                pid, tid, _ = self.trace.threads[number]
                yield pid, tid, id_, number, records

    @staticmethod
    def number(record):
        """Behind the record; None when it tells none."""
        try:
            if record[3] == 1:
                run = read_run(record[4])
                return run[0] + len(run[3])
            if record[3] in (8, 9):
                head = way_head(Bytes(record[4]))
                return head[0] + head[3]
            return read_mark(record[4])[0] if record[3] == 3 else None
        except Bad:
            return None

    def name(self, thread):
        name = ""
        for _, stream, major, minor, payload in self.trace.records:
            if major == 0x10 and minor == 0xAE and self.trace.streams[stream][0] == 1:
                p = Bytes(payload)
                numbers = [p.uleb() for _ in range(4)]
                if numbers[0] == thread:
                    name = self.trace.strings[numbers[3]]
        return name

    def items(self, records, start):
        """Lines; the data of a run come whole when some of its steps do."""
        is_on, space = start == 0, 0
        for time, _, _, minor, payload in records:
            try:
                if minor in (1, 8, 9):
                    first, space, generation, steps = (
                        read_run(payload) if minor == 1 else read_way(payload, self.blocks, minor == 8))
                    for i, (address, times) in enumerate(steps):
                        if first + i < start:
                            continue
                        is_on = True
                        yield (f"{first + i} {time} {space}/{generation} {address:x} x{min(times, U32 - 1)} "
                               + self.instruction(space, address, generation))
                elif minor == 3:
                    at, kind, a, b, c, text = read_mark(payload)
                    if at >= start:
                        is_on = True
                        rest_is(text < len(self.trace.strings), "no such string")
                        yield f"{at} {time} mark {kind} {a} {b} {c} '{self.trace.strings[text]}'"
                elif minor == 4 and is_on:
                    for step, address, how, size, value in read_data(payload):
                        yield f"{step} {time} data {address:x} {how} {size} {value} " + self.where(space, address, time)
            except Bad:
                yield "damage"


def main():
    with open(sys.argv[1], "rb") as file:
        steps = Steps(Trace(file.read()))
    start = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for pid, tid, _, thread, records in sorted(steps.threads()):
        n = [v for v in map(steps.number, records) if v is not None][-1]
        print(f"thread {pid} {tid} '{steps.name(thread)}' {n} steps")
        for line in steps.items(records, start):
            print(line)


try:
    main()
except Bad as bad:
    sys.exit(f"{sys.argv[1]}: {bad}")
