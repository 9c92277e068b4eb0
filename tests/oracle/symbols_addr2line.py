#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what weir says of random addresses with addr2line and llvm-symbolizer.

    symbols_addr2line.py [OPTION...] IMAGE

    --weir PROGRAM      asks `weir symbols merge` and `weir symbols resolve` ($WEIR)
    --lookup PROGRAM    asks `PROGRAM answer IMAGE` instead (tests/oracle/catalog_lookup)
    --addresses N       this many, drawn evenly from the bytes of the executable sections (10000)
    --gnu FILE          asks addr2line about FILE instead, which must have the same code: for debug
    --llvm FILE         information that this peer cannot read; likewise llvm-symbolizer
    --minimum PERCENT   that must agree with each peer, rules applied (99.9)
    --differences N     print this many of the differences that no rule explains (8)
    --show RULE         print differences that this rule explains
    --spoil             tests the rules: every 20th answer of weir's is made wrong, in turn its
                        line, file, function or levels; fails unless 99 % of these are noticed

Compared are linkage name, file (without "./" and "x/../") and line of every inline level. Agreement
is counted twice: strictly, where every text is the same, and with rules, which name the ways in
which the peers are known to differ from each other. A rule looks for evidence and explains nothing
else: the symbol table as readelf prints it, the stubs as objdump names them, or a third opinion:
eu-addr2line, and for names gdb.
The last line is "N addresses, ..."; fails when a peer agrees with less than the minimum.
"""
import argparse
import bisect
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile

Level = collections.namedtuple("Level", "function file line")  # "", "" and 0 when not known
PEERS = {"gnu": "addr2line", "llvm": "llvm-symbolizer"}
SPOIL_EVERY = 20
SPOIL_NOTICED = 99.0  # percent
SUFFIX = re.compile(r"(\.(cold|part|constprop|isra|lto_priv|localalias|llvm)(\.\d+)*)+$")

KIND = re.compile(r"([CD])\d(?=[EI])")  # constructors and destructors: C1, C2 and, unified, C4
OPERATOR = re.compile(r"operator(\(\)|<=>|<<=?|>>=?|->\*?|[<>]=?)")


def run(*argv, text=None, ok=(0,)):
    done = subprocess.run(argv, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="surrogateescape", check=False)
    if done.returncode not in ok:
        sys.exit(f"{' '.join(argv)}: status {done.returncode}: {done.stderr[:500]}")
    return done.stdout


# --- what the image has ---

def sections(path):
    """[(name, start, end, is executable)]"""
    out = []
    for line in run("readelf", "-SW", path).splitlines():
        head, _, rest = line.partition("]")
        f = rest.split()
        if re.fullmatch(r"\[ *\d+", head.strip()) and len(f) >= 8:
            start = int(f[2], 16)
            out.append((f[0], start, start + int(f[4], 16), "X" in f[6]))
    return out


def debug_file(path):
    """The file with its debug information, by build-id; itself when there is none."""
    for line in run("readelf", "-n", path).splitlines():
        if "Build ID:" in line:
            i = line.split()[2]
            debug = f"/usr/lib/debug/.build-id/{i[:2]}/{i[2:]}.debug"
            if os.path.exists(debug):
                return debug
    return path


def draw(path, n):
    """At most n addresses, in order, the same ones on every run."""
    code = [s for s in sections(path) if s[3]]
    total = sum(end - start for _, start, end, _ in code)
    out = []
    for at in sorted(random.Random(os.path.basename(path)).sample(range(total), min(n, total))):
        for _, start, end, _ in code:
            if at < end - start:
                out.append(start + at)
                break
            at -= end - start
    return out


class Symbols:
    """What readelf and objdump say of the symbol tables of an image and of its debug file."""

    def __init__(self, path, debug):
        self.at = {}  # address -> names
        self.size = {}
        self.addresses = {}  # name -> addresses
        self.files = set()
        for p in sorted({path, debug}):
            self.read(p)
        self.starts = sorted(self.at)
        self.reach = []  # of each start: the highest end of all symbols up to it
        for start in self.starts:
            end = start + self.size[start]
            self.reach.append(max(end, self.reach[-1]) if self.reach else end)
        self.code = [(start, end) for _, start, end, x in sections(path) if x]
        self.stubs = self.read_stubs(path)
        self.plain = {}

    def read(self, path):
        for line in run("readelf", "-sW", path).splitlines():
            f = line.split()
            if len(f) < 8 or not f[0].endswith(":") or f[6] == "UND":
                continue
            if f[3] == "FILE":
                self.files.add(f[7])
            if f[3] not in ("FUNC", "IFUNC", "NOTYPE", "<OS") or not f[6].isdigit():
                continue
            addr, name = int(f[1], 16), f[7].split("@")[0]
            size = int(f[2], 16 if f[2].startswith("0x") else 10)
            self.at.setdefault(addr, set()).add(name)
            self.size[addr] = max(size, self.size.get(addr, 0))
            self.addresses.setdefault(name, set()).add(addr)

    def read_stubs(self, path):
        """[(start, names)] as objdump labels them."""
        out = []
        for name, _, _, is_code in sections(path):
            if not is_code or not name.startswith(".plt"):
                continue
            for line in run("objdump", "-d", "--no-show-raw-insn", "-j", name, path).splitlines():
                if not line.endswith("@plt>:"):
                    continue
                addr, _, label = line.partition(" ")
                names = {re.sub(r"@.*", "", label[1:])}
                m = re.match(r"<\*ABS\*\+0x([0-9a-f]+)@plt", label)
                if m:  # of an indirect function: only where its resolver is
                    names = self.at.get(int(m[1], 16), set())
                out.append((int(addr, 16), {n + "@plt" for n in names}))
        return sorted(out, key=lambda stub: stub[0])

    def before(self, addr):
        """Names of the nearest symbol at or before an address."""
        i = bisect.bisect_right(self.starts, addr) - 1
        return self.at[self.starts[i]] if i >= 0 else set()

    def cover(self, addr):
        """Names of all symbols whose size covers an address."""
        out = set()
        i = bisect.bisect_right(self.starts, addr) - 1
        while i >= 0 and self.reach[i] > addr:
            if addr < self.starts[i] + self.size[self.starts[i]]:
                out |= self.at[self.starts[i]]
            i -= 1
        return out

    def unsized_before(self, addr):
        """Names of the nearest symbol before it when that one has no size."""
        i = bisect.bisect_right(self.starts, addr) - 1
        if i < 0 or self.size[self.starts[i]]:
            return set()
        return self.at[self.starts[i]]

    def stub(self, addr):
        """Names of the PLT stub at an address."""
        i = bisect.bisect_right(self.stubs, addr, key=lambda stub: stub[0]) - 1
        return self.stubs[i][1] if i >= 0 and addr - self.stubs[i][0] < 16 else set()

    def are_aliases(self, a, b):
        return bool(self.addresses.get(a, set()) & self.addresses.get(b, set()))

    def demangle(self, names):
        """Notes the unqualified names of linkage names."""
        new = sorted({n for n in names if n.startswith("_Z") and n not in self.plain})
        if new:
            text = run("c++filt", text="\n".join(SUFFIX.sub("", n) for n in new) + "\n")
            self.plain.update(zip(new, map(unqualified, text.splitlines())))

    def is_plain_name(self, plain, linkage):
        """The unqualified name that debug information gives a function of this linkage name."""
        return bool(plain) and self.plain.get(linkage) == unqualified(plain)


def unqualified(text):
    """a::b<c>(d)::e<f>(g) const -> e"""
    text = OPERATOR.sub(lambda m: "operator" + m[1].translate(str.maketrans("<>()", "{}[]")), text)
    out, depth = [], 0
    for c in text:
        depth -= c in ">)"
        if depth == 0 and c not in "<>()":
            out.append(c)
        depth += c in "<("
    words = "".join(out).split("::")[-1].split()
    while words and words[-1] in ("const", "volatile", "&", "&&"):
        words.pop()
    return words[-1] if words else ""


# --- the tools ---

def input_of(addrs):
    return "".join(f"{a:#x}\n" for a in addrs)


def ask_weir(weir, image, addrs):
    with tempfile.TemporaryDirectory() as folder:
        catalog = folder + "/c.wsym"
        run(weir, "symbols", "merge", "-o", catalog, image)
        out = run(weir, "symbols", "resolve", "--catalog", catalog, "--image", image, "--json", "-",
                  text=input_of(addrs), ok=(0, 3))
    return read_rows(out, addrs)


def read_rows(text, addrs):
    rows = json.loads(text)["rows"]
    if [int(r["address"], 16) for r in rows] != addrs:
        sys.exit("weir's rows are not of the addresses that were asked for")
    return [[Level(v.get("linkage_name") or v.get("name") or "", clean(v.get("file") or ""),
                   v.get("line") or 0) for v in r["levels"]] for r in rows]


def clean(path):
    """./a/../b/./c and b/c are the same file."""
    return os.path.normpath(path) if path else ""


def place(text):
    """file:line[:column][ (discriminator N)]"""
    m = re.fullmatch(r"(.*?):(\d+|\?)(?::\d+)?(?: \(discriminator \d+\))?", text)
    if not m or m[1] == "??":
        return "", 0
    return clean(m[1]), int(m[2]) if m[2].isdigit() else 0


def read_pairs(text, addrs):
    out = []
    lines = iter(text.splitlines())
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]{8,16}", line):
            out.append([])
            continue
        function = line.split(" inlined at ")[0]  # eu-addr2line
        out[-1].append(Level("" if function == "??" else function, *place(next(lines))))
    if len(out) != len(addrs):
        sys.exit(f"{len(addrs)} addresses asked, {len(out)} answered")
    return out


def ask_gnu(image, addrs):
    return read_pairs(run("addr2line", "-a", "-f", "-i", "-e", image, text=input_of(addrs)), addrs)


def ask_eu(image, addrs):
    # Its status is 1 when one of the addresses is not known.
    return read_pairs(run("eu-addr2line", "-a", "-f", "-i", "-e", image, text=input_of(addrs),
                          ok=(0, 1)), addrs) if addrs else []


def ask_llvm(image, addrs):
    out = []
    for line in run("llvm-symbolizer", "--inlines", "--no-demangle", "--output-style=JSON",
                    "--obj=" + image, text=input_of(addrs)).splitlines():
        out.append([Level(s["FunctionName"], clean(s["FileName"]), s["Line"])
                    for s in json.loads(line)["Symbol"]])
    if len(out) != len(addrs):
        sys.exit(f"{len(addrs)} addresses asked, {len(out)} answered")
    return out


GDB_NAMES = """
import gdb
for line in open("addresses"):
    block, names = gdb.block_for_pc(int(line, 16)), []
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            names.append(block.function.linkage_name)
        block = block.superblock
    print("names " + " | ".join(names))
"""


def ask_gdb(image, addrs):
    """Names of the levels, innermost first. gdb has no lines of places where code was inlined."""
    if not addrs:
        return []
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/addresses", "w", encoding="ascii") as f:
            f.write(input_of(addrs))
        with open(folder + "/names.py", "w", encoding="ascii") as f:
            f.write(GDB_NAMES.replace('"addresses"', repr(folder + "/addresses")))
        text = run("gdb", "-nx", "-batch", "-x", folder + "/names.py", image, ok=range(256))
    out = [line[6:].split(" | ") for line in text.splitlines() if line.startswith("names ")]
    return out if len(out) == len(addrs) else [[] for _ in addrs]


# --- the rules ---

class Judge:
    """Explains differences at one address. Each method returns the rules it needed or None."""

    def __init__(self, symbols):
        self.symbols = symbols

    def function(self, addr, ours, theirs, is_outer):
        if ours == theirs:
            return []
        s = self.symbols
        theirs_bare = theirs.split("@")[0]
        if ours.endswith("@plt"):
            return ["a PLT stub, which peers do not name"] if ours in s.stub(addr) else None
        if not is_outer:
            return None
        if not theirs:
            if ours in s.cover(addr) or ours in s.unsized_before(addr):
                return ["no name where a symbol table has one"]
            return None
        if not ours:
            if theirs_bare in s.before(addr) and not s.cover(addr):
                return ["padding behind a function, named after it by the peer"]
            return None
        if ours == theirs_bare:
            return ["symbol version in the name"]
        a, b = SUFFIX.sub("", ours), SUFFIX.sub("", theirs_bare)
        if a == b:
            return ["suffix of a function's part"]
        if s.are_aliases(ours, theirs_bare) or s.are_aliases(a, b):
            return ["another name of the same address"]
        if KIND.sub(r"\1", a) == KIND.sub(r"\1", b):
            return ["another kind of the same constructor or destructor"]
        if s.is_plain_name(theirs, ours) or s.is_plain_name(ours, theirs):
            return ["plain name where debug information has no linkage name"]
        return None

    def place(self, ours, theirs):
        if (ours.file, ours.line) == (theirs.file, theirs.line):
            return []
        if not ours.file and not ours.line and not theirs.line \
                and theirs.file in self.symbols.files:
            return ["file name from the symbol table, without a line"]
        if not theirs.file and not theirs.line and not ours.line and ours.file in self.symbols.files:
            return ["file name from the symbol table, without a line"]
        return None

    def level(self, addr, ours, theirs, is_outer):
        f = self.function(addr, ours.function, theirs.function, is_outer)
        p = self.place(ours, theirs)
        return None if f is None or p is None else f + p

    def chain(self, addr, ours, theirs):
        ours, theirs = (c or [Level("", "", 0)] for c in (ours, theirs))
        if len(ours) != len(theirs):
            return None
        rules = []
        for i, (o, t) in enumerate(zip(ours, theirs)):
            found = self.level(addr, o, t, i == len(ours) - 1)
            if found is None:
                return None
            rules += found
        return rules

    def outvoted(self, addr, answers, peer):
        """One peer against weir, the other peer and a third opinion, which may be missing."""
        ours, theirs = answers["weir"], answers[peer]
        other = answers["llvm" if peer == "gnu" else "gnu"]
        if len(ours) != len(theirs):
            known = self.same_places(ours, other) and (
                self.chain(addr, ours, answers["eu"]) is not None
                or self.same_names(addr, ours, answers["gdb"]))
            return [f"{PEERS[peer]} alone has other inline levels"] if known else None
        rules = []
        for i, (o, t) in enumerate(zip(ours, theirs)):
            is_outer = i == len(ours) - 1
            f = self.function(addr, o.function, t.function, is_outer)
            p = self.place(o, t)
            if f is None:
                f = self.name_outvoted(addr, answers, peer, i)
            if p is None and self.same_places(ours, other) and i < len(answers["eu"]) \
                    and self.place(o, answers["eu"][i]) is not None:
                p = [f"{PEERS[peer]} alone has another {'file' if o.line == t.line else 'line'}"]
            if f is None or p is None:
                return None
            rules += f + p
        return rules

    def name_outvoted(self, addr, answers, peer, i):
        ours, theirs = answers["weir"], answers[peer][i].function
        other = answers["llvm" if peer == "gnu" else "gnu"]
        third, names = answers["eu"], answers["gdb"]
        is_outer = i == len(ours) - 1
        if peer == "gnu" and i == 0 and theirs in self.symbols.cover(addr) \
                and self.chain(addr, ours, other) is not None:
            return ["addr2line names an inlined function after the symbol around it"]
        if self.same_names(addr, ours, names) or (
                i < len(third) and self.level(addr, ours[i], third[i], is_outer) is not None):
            return [f"{PEERS[peer]} alone has {'another' if theirs else 'no'} name"]
        return None

    def same_places(self, ours, other):
        return len(ours) == len(other) and all(
            self.place(o, t) is not None for o, t in zip(ours, other))

    def same_names(self, addr, ours, names):
        """gdb writes scope and parameters where debug information has no linkage name."""
        return len(ours) == len(names) and all(
            self.function(addr, o.function, name, i == len(ours) - 1) is not None
            or (not name.startswith("_Z") and unqualified(o.function) == unqualified(name))
            for i, (o, name) in enumerate(zip(ours, names)))


def compare(symbols, addrs, answers, thirds):
    """peer -> (strict, {address index: rules or None}), and the third opinions asked for"""
    judge = Judge(symbols)
    result, asked = {}, collections.defaultdict(dict)
    symbols.demangle({v.function for said in answers.values() for c in said for v in c[-1:]})
    for peer in PEERS:
        differ = [i for i in range(len(addrs)) if answers["weir"][i] != answers[peer][i]]
        result[peer] = len(addrs) - len(differ), {
            i: judge.chain(addrs[i], answers["weir"][i], answers[peer][i]) for i in differ}
    for tool, ask in thirds.items():
        open_ones = sorted({i for _, explained in result.values()
                            for i, rules in explained.items() if rules is None})
        for i, said in zip(open_ones, ask([addrs[i] for i in open_ones])):
            asked[i][tool] = said
        for peer, (_, explained) in result.items():
            for i in open_ones:
                if i in explained and explained[i] is None:
                    at = {"eu": [], "gdb": []} | {t: said[i] for t, said in answers.items()}
                    explained[i] = judge.outvoted(addrs[i], at | asked[i], peer)
    return result, asked


def text_of(chain):
    return " < ".join(f"{v.function[:64] or '??'} {v.file[-48:] or '??'}:{v.line}"
                      for v in chain) or "nothing"


def print_differences(addr, answers, third, i):
    print(f"    {addr:#x}")
    for tool, said in answers.items():
        print(f"      {tool:5} {text_of(said[i])}")
    for tool, said in third.get(i, {}).items():
        if tool != "none":
            print(f"      {tool:5} {text_of(said) if tool == 'eu' else ' < '.join(said)}")


def report(arguments, addrs, answers, result, third):
    n, worst, line = len(addrs), 100.0, []
    for peer, (strict, explained) in result.items():
        unexplained = [i for i, rules in explained.items() if rules is None]
        agree = 100.0 * (n - len(unexplained)) / n
        worst = min(worst, agree)
        line.append(f"{PEERS[peer]}: {100.0 * strict / n:.2f} % strictly, {agree:.2f} % with rules")
        counts = collections.Counter(r for rules in explained.values() for r in set(rules or []))
        for rule, count in counts.most_common():
            print(f"  {PEERS[peer]}: {count:5} {rule}")
        if unexplained:
            print(f"  {PEERS[peer]}: {len(unexplained):5} not explained")
        step = max(1, len(unexplained) // max(1, arguments.differences))
        for i in unexplained[::step][:arguments.differences]:
            print_differences(addrs[i], answers, third, i)
        shown = [i for i, rules in explained.items() if arguments.show in (rules or [])]
        for i in shown[::max(1, len(shown) // 8)][:8]:
            print_differences(addrs[i], answers, third, i)
    print(f"{n} addresses; " + "; ".join(line))
    return worst


def spoil(answers):
    """Makes answers wrong; returns which, and how."""
    done, rng = {}, random.Random(1)
    named = [c for c in answers if c and c[-1].function and c[-1].file]
    for k, i in enumerate(range(0, len(answers), SPOIL_EVERY)):
        chain, other = answers[i] or [Level("", "", 0)], rng.choice(named)[-1]
        at = rng.randrange(len(chain))
        how = ("line", "file", "function", "levels")[k % 4]
        wrong = {"line": chain[at]._replace(line=chain[at].line + 1),
                 "file": chain[at]._replace(file=other.file),
                 "function": chain[at]._replace(function=other.function),
                 "levels": None}[how]
        changed = chain[:at] + ([wrong] if wrong else []) + chain[at + 1:]
        if changed != chain and (len(chain) > 1 or how != "levels"):
            answers[i] = changed
            done[i] = how
    return done


def report_spoiled(spoiled, result):
    """Noticed is what at least one peer does not agree with."""
    missed = collections.Counter(
        how for i, how in spoiled.items()
        if all(explained.get(i, []) is not None for _, explained in result.values()))
    noticed = len(spoiled) - sum(missed.values())
    print(f"{noticed} of {len(spoiled)} wrong answers noticed; missed: {dict(missed)}")
    return 100.0 * noticed / len(spoiled)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("image")
    p.add_argument("--weir", default=os.environ.get("WEIR", "weir"))
    p.add_argument("--lookup")
    p.add_argument("--addresses", type=int, default=10000)
    p.add_argument("--gnu")
    p.add_argument("--llvm")
    p.add_argument("--minimum", type=float, default=99.9)
    p.add_argument("--differences", type=int, default=8)
    p.add_argument("--show", default=None)
    p.add_argument("--spoil", action="store_true")
    a = p.parse_args()
    addrs = draw(a.image, a.addresses)
    if a.lookup:
        ours = read_rows(run(a.lookup, "answer", a.image, text=input_of(addrs)), addrs)
    else:
        ours = ask_weir(a.weir, a.image, addrs)
    spoiled = spoil(ours) if a.spoil else {}
    gnu, llvm = a.gnu or a.image, a.llvm or a.image
    answers = {"weir": ours, "gnu": ask_gnu(gnu, addrs), "llvm": ask_llvm(llvm, addrs)}
    # The third opinion reads what the more able of the two peers reads.
    third_image = gnu if gnu == llvm else a.image
    symbols = Symbols(a.image, debug_file(a.image))
    result, third = compare(symbols, addrs, answers, {
        "none": lambda some: [[] for _ in some],  # what can be told without
        "eu": lambda some: ask_eu(third_image, some), "gdb": lambda some: ask_gdb(a.image, some)})
    if a.spoil:
        sys.exit(0 if report_spoiled(spoiled, result) >= SPOIL_NOTICED else 1)
    worst = report(a, addrs, answers, result, third)
    sys.exit(0 if worst >= a.minimum else 1)


main()
