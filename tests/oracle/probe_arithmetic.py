# SPDX-License-Identifier: MIT
# Random integer expressions of the probe language, and what they are worth by its rules (64 bits that wrap;
# unsigned when an operand is an unsigned 64-bit one, signed otherwise; what ~ gives is unsigned; division truncates; shifts as the left
# operand says, all bits gone from 64 on; comparisons give a bool, which is 0 or 1 in arithmetic; casts cut and extend).
#   make N SEED SCRIPT EXPECTED: writes a script that prints each expression three times: over maps, over
#   locals, and folded by the compiler
#   compare EXPECTED ACTUAL: verdict lines
import random
import sys

MASK = (1 << 64) - 1
SIGNED = [0, 1, -1, 2, 7, -128, 255, 65535, -32769, 2**31 - 1, -2**31, 2**32, -2**40 + 3, 2**62 + 5, 2**63 - 1, -2**63]
UNSIGNED = [0, 1, 3, 0x7f, 0x8000, 0xffffffff, 0x123456789abcdef, 2**63, 2**64 - 1, 2**64 - 2]
CASTS = [("int8", 8, True), ("uint8", 8, False), ("int16", 16, True), ("uint16", 16, False), ("int32", 32, True),
         ("uint32", 32, False), ("int64", 64, True), ("uint64", 64, False)]


class Skip(Exception):
    pass


def signed(v):
    v &= MASK
    return v - (1 << 64) if v >> 63 else v


class Value:
    def __init__(self, bits, is_unsigned, is_bool=False):
        self.bits, self.is_unsigned, self.is_bool = bits & MASK, is_unsigned, is_bool

    def shown(self):
        return str(bool(self.bits)).lower() if self.is_bool else str(self.number())

    def number(self):
        return self.bits if self.is_unsigned else signed(self.bits)


class Leaf:
    def __init__(self, name, value):
        self.name, self.value = name, value

    def text(self, how):
        if how == "fold":
            n = self.value.number()
            if self.value.is_unsigned:
                return "(uint64)%d" % n
            return "(%d)" % n if n != -2**63 else "(-9223372036854775807 - 1)"
        return ("@" if how == "map" else "$") + self.name

    def eval(self):
        return self.value


class Unary:
    def __init__(self, op, a):
        self.op, self.a = op, a

    def text(self, how):
        return "%s(%s)" % (self.op, self.a.text(how))

    def eval(self):
        v = self.a.eval()
        if self.op == "!":
            return Value(v.bits == 0, False, True)
        return Value(-v.bits, v.is_unsigned) if self.op == "-" else Value(~v.bits, True)


class Cast:
    def __init__(self, name, bits, is_signed, a):
        self.name, self.bits, self.is_signed, self.a = name, bits, is_signed, a

    def text(self, how):
        return "(%s)(%s)" % (self.name, self.a.text(how))

    def eval(self):
        v = self.a.eval().bits & ((1 << self.bits) - 1)
        if self.is_signed and v >> (self.bits - 1):
            v -= 1 << self.bits
        return Value(v, self.bits == 64 and not self.is_signed)


class Choice:
    def __init__(self, c, a, b):
        self.c, self.a, self.b = c, a, b

    def text(self, how):
        return "(%s ? %s : %s)" % (self.c.text(how), self.a.text(how), self.b.text(how))

    def eval(self):
        a, b = self.a.eval(), self.b.eval()
        v = a if self.c.eval().bits else b
        return Value(v.bits, a.is_unsigned or b.is_unsigned, a.is_bool and b.is_bool)


class Binary:
    def __init__(self, op, a, b):
        self.op, self.a, self.b = op, a, b

    def text(self, how):
        return "(%s %s %s)" % (self.a.text(how), self.op, self.b.text(how))

    def eval(self):
        a, b, op = self.a.eval(), self.b.eval(), self.op
        if op in ("&&", "||"):
            return Value((a.bits and b.bits) != 0 if op == "&&" else (a.bits or b.bits) != 0, False, True)
        if op in ("<<", ">>"):
            n = b.bits
            if n >= 64:
                raise Skip
            return Value(a.bits << n if op == "<<" else a.number() >> n, a.is_unsigned)
        u = a.is_unsigned or b.is_unsigned
        x, y = Value(a.bits, u).number(), Value(b.bits, u).number()
        if op in ("/", "%"):
            if y == 0:
                raise Skip
            q = abs(x) // abs(y)
            q = -q if (x < 0) != (y < 0) else q
            return Value(q if op == "/" else x - q * y, u)
        compare = {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
        if op in compare:
            return Value(compare[op], False, True)
        return Value({"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}[op], u)


OPS = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||"]


def tree(r, leaves, shifts, depth):
    if depth == 0 or r.random() < 0.1:
        return r.choice(leaves)
    kind = r.random()
    if kind < 0.12:
        return Unary(r.choice("-~!"), tree(r, leaves, shifts, depth - 1))
    if kind < 0.30:
        return Cast(*r.choice(CASTS), tree(r, leaves, shifts, depth - 1))
    if kind < 0.36:
        # Both sides of one type: where the condition is a constant the other side has no say.
        cast = r.choice(CASTS[6:])
        return Choice(tree(r, leaves, shifts, depth - 1), *(Cast(*cast, tree(r, leaves, shifts, depth - 1)) for _ in range(2)))
    op = r.choice(OPS)
    a = tree(r, leaves, shifts, depth - 1)
    return Binary(op, a, r.choice(shifts) if op in ("<<", ">>") else tree(r, leaves, shifts, depth - 1))


def make(n, seed, script, expected):
    r = random.Random(seed)
    leaves = [Leaf("s%d" % i, Value(v, False)) for i, v in enumerate(SIGNED)]
    leaves += [Leaf("u%d" % i, Value(v, True)) for i, v in enumerate(UNSIGNED)]
    shifts = [Leaf("n%d" % i, Value(v, False)) for i, v in enumerate([0, 1, 7, 31, 32, 33, 63])]
    trees = []
    while len(trees) < n:
        t = tree(r, leaves, shifts, r.choice([1, 2, 2, 3]))
        if isinstance(t, Leaf):
            continue  # print(@x) is about the map
        try:
            t.eval()
        except Skip:
            continue
        trees.append(t)
    with open(script, "w") as f:
        everything = leaves + shifts
        f.write("begin {\n" + "".join("\t@%s = %s;\n" % (l.name, l.text("fold")) for l in everything) + "}\n")
        for at in range(0, n, 10):  # a clause has 512 bytes of stack
            part = trees[at : at + 10]
            f.write("begin {\n")
            used = "".join(t.text("map") for t in part)
            for l in everything:
                if "@" + l.name in used:
                    f.write("\t$%s = @%s;\n" % (l.name, l.name))
            for t in part:
                for how in ("map", "local", "fold"):
                    f.write("\tprint(%s);\n" % t.text(how))
            f.write("}\n")
        f.write("begin {\n" + "".join("\tdelete(@%s);\n" % l.name for l in everything) + "}\n")
    with open(expected, "w") as f:
        for t in trees:
            f.write("%s\t%s\n" % (t.eval().shown(), t.text("fold")))


def compare(expected, actual):
    lines = [l.rstrip("\n").split("\t") for l in open(expected)]
    got = open(actual).read().split()
    print("ok" if len(got) == 3 * len(lines) else "not ok",
          "each of %d expressions is printed three times (%d values)" % (len(lines), len(got)))
    for i, how in enumerate(("over maps", "over locals", "folded")):
        wrong = [(t, e, g) for (e, t), g in zip(lines, got[i::3]) if e != g]
        print("not ok" if wrong else "ok", "%d expressions %s are worth what the rules say" % (len(lines), how))
        for t, e, g in wrong[:8]:
            print("  %s is %s, not %s" % (t, e, g))


if sys.argv[1] == "make":
    make(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
else:
    compare(sys.argv[2], sys.argv[3])
