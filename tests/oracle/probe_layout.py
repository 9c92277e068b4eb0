#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Structures and function calls by chance, compiled by gcc in both modes, against what
src/probe/types says of the same declarations.

  probe_layout.py structs DUMP SEED N    sizes, offsets and bits of N structures
  probe_layout.py calls DUMP SEED N      places of the arguments and results of N functions

A bit-field's place is found by setting all its bits. Where arguments are is found by calling a
function in assembler that stores all registers and the stack; every argument is filled with a byte
of its own.
"""
import itertools
import math
import random
import struct
import subprocess
import sys

INTS = ["char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int",
        "long", "unsigned long", "long long", "unsigned long long", "int64_t", "uint8_t",
        "enum color", "bool"]
OTHERS = ["float", "double", "long double", "void *", "char *", "size_t", "time_t"]
PRELUDE = "enum color { RED, GREEN = 5, BLUE };\nenum sign { MINUS = -1, PLUS = 0x7fffffff };\n" \
          "enum wide { WIDE = 0x100000000 };\nenum top { TOP = 0xffffffff };\n" \
          "enum little { LITTLE = 200 } __attribute__((packed));\n"
BITS = {"char": 8, "signed char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16,
        "int": 32, "unsigned int": 32, "long": 32, "unsigned long": 32, "long long": 64,
        "unsigned long long": 64, "int64_t": 64, "uint8_t": 8, "enum color": 32, "bool": 1}


class Body:
    """The fields of one structure: their text, and the paths to look at."""

    def __init__(self, rng, done, outer=None):
        self.rng, self.done = rng, done
        self.depth = outer.depth + 1 if outer else 0
        self.lines, self.paths = [], []
        self.names = outer.names if outer else itertools.count()

    def name(self):
        return f"f{next(self.names)}"

    def attribute(self):
        if self.rng.random() < 0.06:
            return f" __attribute__((aligned({self.rng.choice([2, 4, 8, 16])})))"
        return " __attribute__((packed))" if self.rng.random() < 0.04 else ""

    def bit_field(self):
        kind = self.rng.choice(INTS)
        chance = self.rng.random()
        if chance < 0.10:
            self.lines.append(f"{kind} : 0;")
        elif chance < 0.20:
            self.lines.append(f"{kind} : {self.rng.randint(1, BITS[kind])};")
        else:
            name = self.name()
            # Widths that fill a whole byte or word are another path through the compiler.
            width = min(self.rng.choice([1, 3, 8, 16, 32, 33, self.rng.randint(1, 64)]), BITS[kind])
            self.lines.append(f"{kind} {name} : {width}{self.attribute()};")
            self.paths.append((name, True))

    def plain(self):
        kind, name = self.rng.choice(INTS + OTHERS), self.name()
        chance = self.rng.random()
        if chance < 0.25:
            n = self.rng.choice(["3", "1 << 2", "sizeof(long)", "BLUE - 1", "sizeof(enum wide) / 2"])
            self.lines.append(f"{kind} {name}[{n}]{self.attribute()};")
        elif chance < 0.30:
            self.lines.append(f"int (*{name})(long, char *);")
        else:
            self.lines.append(f"{kind} {name}{self.attribute()};")
        self.paths.append((name, False))

    def nested(self):
        if self.rng.random() < 0.5 and self.done:
            inner, name = self.rng.choice(self.done), self.name()
            suffix = self.rng.choice(["", "", "[2]"])
            attribute = self.rng.choice(["", "", " __attribute__((aligned(8)))"])
            self.lines.append(f"{inner} {name}{suffix}{attribute};")
            self.paths.append((name, False))
            return
        if self.depth > 1:
            return
        inner = Body(self.rng, self.done, self)
        inner.fill(self.rng.randint(1, 3))
        name = self.name() if self.rng.random() < 0.5 else ""
        word = self.rng.choice(["struct", "union"])
        attribute = self.rng.choice(["", "", " __attribute__((packed))", " __attribute__((aligned(8)))"])
        self.lines.append(f"{word} {{ {' '.join(inner.lines)} }}{attribute} {name};")
        if name:
            self.paths.append((name, False))
        self.paths += [(f"{name}.{p}" if name else p, b) for p, b in inner.paths]

    def fill(self, n):
        for _ in range(n):
            self.rng.choice([self.bit_field, self.bit_field, self.plain, self.plain, self.nested])()
        if not self.paths:
            self.lines.append(f"char {(name := self.name())};")
            self.paths.append((name, False))


def make_structs(rng, n):
    """(declarations, [(C name, name, paths)])"""
    text, all_types, done = PRELUDE, [], []
    for e in ("color", "sign", "wide", "top", "little"):
        all_types.append((f"enum {e}", e, []))
    for i in range(n):
        body = Body(rng, done)
        body.fill(rng.randint(1, 7))
        if rng.random() < 0.1:
            body.lines.append("long tail[];")
            flexible = True
        else:
            flexible = False
        word = "union" if rng.random() < 0.2 and not flexible else "struct"
        attribute = rng.choice([""] * 6 + [" __attribute__((packed))", " __attribute__((aligned(16)))",
                                           " __attribute__((packed, aligned(2)))"])
        name, c_name = f"item{i}", f"{word} item{i}"
        if rng.random() < 0.2:
            text += f"typedef {word} {{ {' '.join(body.lines)} }}{attribute} {name};\n"
            c_name = name
        else:
            text += f"{word} {name} {{ {' '.join(body.lines)} }}{attribute};\n"
        all_types.append((c_name, name, body.paths))
        if not flexible:
            done.append(c_name)
    return text, all_types


C_HEAD = """#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#define MODE ((int)sizeof(long) * 8)
static void bits(const char *name, const unsigned char *p, size_t n)
{
	size_t first = n * 8, count = 0;
	for (size_t i = 0; i < n * 8; i++)
		if (p[i / 8] >> i % 8 & 1) {
			if (first == n * 8) first = i;
			count++;
		}
	printf("%d %s %zu %zu %zu\\n", MODE, name, first / 8, first % 8, count);
}
"""


def structs_program(text, all_types):
    out = C_HEAD + text + "int main(void)\n{\n"
    for c_name, name, paths in all_types:
        out += f'\tprintf("%d {name} %zu\\n", MODE, sizeof({c_name}));\n'
        for path, is_bits in paths:
            if is_bits:
                out += f"\t{{ {c_name} v; memset(&v, 0, sizeof(v)); v.{path} = -1;\n" \
                       f'\t  bits("{name}.{path}", (void *)&v, sizeof(v)); }}\n'
            else:
                out += f'\tprintf("%d {name}.{path} %zu 0 0\\n", MODE, offsetof({c_name}, {path}));\n'
    return out + "\treturn 0;\n}\n"


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stderr[:2000]}")
    return done.stdout


def build(name, program, flags=("-O1", "-w", "-Wno-packed-bitfield-compat")):
    with open(f"{name}.c", "w") as f:
        f.write(program)
    jobs = [subprocess.Popen(["gcc", f"-m{bits}", *flags, "-o", f"{name}{bits}", f"{name}.c"])
            for bits in (32, 64)]
    if any([j.wait() for j in jobs]):
        raise SystemExit("gcc failed")
    return run([f"./{name}32"]) + run([f"./{name}64"])


def dump(program, text):
    with open("declarations.wr", "w") as f:
        f.write(text + "begin { exit(); }\n")
    return run([program, "declarations.wr"])


def structs(program, seed, n):
    text, all_types = make_structs(random.Random(seed), n)
    theirs = build("structs", structs_program(text, all_types)).splitlines()
    ours = set(dump(program, text).splitlines())
    wrong = [line for line in theirs if line not in ours]
    for line in wrong[:10]:
        key = " ".join(line.split()[:2]) + " "
        print("gcc:", line, "| weir:", next((o for o in ours if o.startswith(key)), "nothing"))
    print(f"{len(theirs)} sizes and places of {n} structures, {len(wrong)} wrong")
    return not wrong and len(theirs) > n * 4


# --- calls -----------------------------------------------------------------------------------

CALL_TYPES = """struct one { char c; };
struct two { int a; short b; };
struct word { long l; };
struct pair { long a; char *b; };
struct mixed { long a; double b; };
struct floats { float x, y, z; };
struct point { double x, y; };
struct big { long v[3]; };
struct odd { char v[11]; };
struct packed { char c; int i; } __attribute__((packed));
struct bits { unsigned a : 3; unsigned b : 20; long long c : 40; };
struct wide { long double d; };
struct in { struct two t; float f; };
struct aligned { int a; } __attribute__((aligned(16)));
union choice { double d; long l; };
union just { float f; double d; };
"""
ARGS = ["char", "short", "int", "unsigned", "long", "long long", "void *", "float", "double",
        "long double", "struct one", "struct two", "struct word", "struct pair", "struct mixed",
        "struct floats", "struct point", "struct big", "struct odd", "struct packed", "struct bits",
        "struct wide", "struct in", "struct aligned", "union choice", "union just"]
RESULTS = ["void"] + ARGS

ASM = r"""
unsigned char seen_stack[1024], seen_vectors[128], returned[256];
unsigned char result_floats[512] __attribute__((aligned(16))); /* fxsave: st0 at 32, xmm0 at 160 */
unsigned long seen_regs[6], result_regs[2];
#ifdef __x86_64__
__asm__(".text\ntake:\ntake_hidden:\n"
	"lea seen_regs(%rip), %rax\n"
	"mov %rdi, (%rax)\nmov %rsi, 8(%rax)\nmov %rdx, 16(%rax)\n"
	"mov %rcx, 24(%rax)\nmov %r8, 32(%rax)\nmov %r9, 40(%rax)\n"
	"lea seen_vectors(%rip), %rax\n"
	"movups %xmm0, (%rax)\nmovups %xmm1, 16(%rax)\nmovups %xmm2, 32(%rax)\nmovups %xmm3, 48(%rax)\n"
	"movups %xmm4, 64(%rax)\nmovups %xmm5, 80(%rax)\nmovups %xmm6, 96(%rax)\nmovups %xmm7, 112(%rax)\n"
	"mov %rdi, %r10\nmov %rsp, %rsi\nlea seen_stack(%rip), %rdi\nmov $512, %ecx\nrep movsb\n"
	"mov %r10, %rax\nret\n"
	"capture:\npush %rbx\nmov %rdi, %rax\nlea returned(%rip), %rdi\ncall *%rax\n"
	"lea result_regs(%rip), %rbx\nmov %rax, (%rbx)\nmov %rdx, 8(%rbx)\n"
	"fxsave result_floats(%rip)\nfninit\npop %rbx\nret\n");
#else
__asm__(".text\n"
	"take:\ncall take_stack\nret\n"
	"take_hidden:\ncall take_stack\nmov 4(%esp), %eax\nret $4\n"
	"take_stack:\npush %esi\npush %edi\nlea 12(%esp), %esi\nmov $seen_stack, %edi\nmov $512, %ecx\n"
	"rep movsb\npop %edi\npop %esi\nret\n"
	"capture:\npush %ebp\nmov %esp, %ebp\nmov 8(%ebp), %eax\nsub $8, %esp\nand $-16, %esp\n"
	"sub $12, %esp\npush $returned\ncall *%eax\nmov %eax, result_regs\nmov %edx, result_regs+4\n"
	"fxsave result_floats\nfninit\nleave\nret\n");
#endif
void take(void);
void take_hidden(void);
void capture(void *f);
static void hex(const char *what, const void *p, size_t n)
{
	printf("%s ", what);
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((const unsigned char *)p)[i]);
	printf("\n");
}
"""


def call_program(functions):
    out = C_HEAD + CALL_TYPES + ASM
    for i, (result, args) in enumerate(functions):
        if result != "void":
            out += f"static {result} make{i}(void) {{ {result} v; memset(&v, 0x71, sizeof(v)); return v; }}\n"
    out += "int main(void)\n{\n\tstatic char deep[8192]; memset(deep, 0, sizeof(deep));\n"
    for i, (result, args) in enumerate(functions):
        hidden = "take_hidden" if result.split()[0] in ("struct", "union") else "take"
        out += "\t{\n"
        for k, a in enumerate(args):
            out += f"\t\t{a} a{k}; memset(&a{k}, 0x41 + {k}, sizeof(a{k}));\n"
        out += f'\t\tprintf("== %d f{i}\\n", MODE);\n'
        out += "\t\tmemset(seen_regs, 0, sizeof(seen_regs)); memset(seen_vectors, 0, sizeof(seen_vectors));\n"
        names = ", ".join(f"a{k}" for k in range(len(args)))
        out += f"\t\t(({result} (*)({', '.join(args)})){hidden})({names});\n"
        out += '\t\thex("regs", seen_regs, sizeof(seen_regs)); hex("stack", seen_stack, 512);' \
               'hex("vectors", seen_vectors, sizeof(seen_vectors));\n'
        for k, a in enumerate(args):
            out += f'\t\tprintf("size{k} %zu\\n", sizeof({a}));\n'
        if result != "void":
            out += "\t\tmemset(returned, 0, sizeof(returned));\n" \
                   f"\t\tcapture((void *)make{i});\n" \
                   '\t\thex("result", result_regs, sizeof(result_regs)); hex("returned", returned, 64);' \
                   'hex("floats", result_floats, 176);\n' \
                   f'\t\tprintf("is_pointer %d\\nresult_size %zu\\n", result_regs[0] == (unsigned long)returned,' \
                   f' sizeof({result}));\n'
        out += "\t}\n"
    return out + "\treturn 0;\n}\n"


REGISTERS = {112: 0, 104: 1, 96: 2, 88: 3, 72: 4, 64: 5}  # pt_regs of di, si, dx, cx, r8, r9


def value_bytes(kind, size):
    """Bytes that certainly were passed: padding need not be."""
    return {"long double": 10, "struct wide": 10, "struct two": 6, "struct aligned": 4,
            "struct floats": 12, "struct bits": 1}.get(kind, size)


def check_call(seen, place, kind, fill, is_64, index):
    """Whether `place` (kind, registers, offset, bytes) holds the bytes of an argument."""
    size = int(seen[f"size{index}"])
    n, want = value_bytes(kind, size), bytes([fill])
    if int(place[3]) != size:
        return False
    if place[0] == "stack":
        offset = int(place[2])
        stack = bytes.fromhex(seen["stack"])
        return stack[offset:offset + n] == want * n
    if place[0] == "vector":
        # Not found anywhere that BPF could read, but where the ABI puts it: in some vector.
        return want * min(n, 4) in bytes.fromhex(seen["vectors"])
    registers = [REGISTERS[int(r)] for r in place[1].split(",")]
    words = bytes.fromhex(seen["regs"])
    value = b"".join(words[r * 8:r * 8 + 8] for r in registers)
    return is_64 and value[:n] == want * n


def extended(value):
    """The 10 bytes of a float or double in an x87 register."""
    if len(value) not in (4, 8):
        return None
    number, exponent = math.frexp(struct.unpack("<f" if len(value) == 4 else "<d", value)[0])
    return struct.pack("<QH", int(number * 2**64), exponent + 16382)


def check_result(seen, place, kind, is_64):
    size = int(seen["result_size"])
    n, want = value_bytes(kind, size), b"\x71"
    word = 8 if is_64 else 4
    words = bytes.fromhex(seen["result"])
    if int(place[3]) != size:
        return False
    if place[0] == "pointer":
        return seen["is_pointer"] == "1" and bytes.fromhex(seen["returned"])[:n] == want * n
    if place[0] == "vector":
        floats = bytes.fromhex(seen["floats"])
        in_x87 = floats[32:42] in (want * 10, extended(want * size))
        return seen["is_pointer"] == "0" and (in_x87 or is_64 and floats[160:164] == want * 4)
    order = {"80": words[:word], "96": words[word:2 * word]}
    value = b"".join(order[r] for r in place[1].split(","))
    return value[:n] == want * n


def calls(program, seed, n):
    rng = random.Random(seed)
    functions = [(rng.choice(RESULTS), [rng.choice(ARGS) for _ in range(rng.randint(1, 9))])
                 for _ in range(n)]
    text = CALL_TYPES + "".join(
        f"{r} f{i}({', '.join(f'{a} a{k}' for k, a in enumerate(args))});\n"
        for i, (r, args) in enumerate(functions))
    places = {}
    for line in dump(program, text).splitlines():
        words = line.split()
        if len(words) == 6 and "." in words[1]:
            places[words[0], words[1]] = words[2:]
    seen, key, wrong, checked = {}, None, 0, 0
    for line in build("calls", call_program(functions), ("-O0", "-w", "-fno-pie", "-no-pie")).splitlines():
        what, value = line.split(maxsplit=1)
        if what == "==":
            key = tuple(value.split())
            seen[key] = {}
        else:
            seen[key][what] = value
    for (mode, f), s in seen.items():
        result, args = functions[int(f[1:])]
        checks = [(str(k), check_call(s, places[mode, f"{f}.{k}"], a, 0x41 + k, mode == "64", k))
                  for k, a in enumerate(args)]
        if result != "void":
            checks.append(("result", check_result(s, places[mode, f"{f}.result"], result, mode == "64")))
        for k, good in checks:
            checked += 1
            wrong += not good
            if not good and wrong < 10:
                print(f"-m{mode} {result} {f}({', '.join(args)}): {k}: {places[mode, f'{f}.{k}']}")
    print(f"{checked} arguments and results of {n} functions, {wrong} wrong")
    return not wrong and checked > n * 4


if __name__ == "__main__":
    what, program, seed, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    sys.exit(0 if {"structs": structs, "calls": calls}[what](program, seed, n) else 1)
