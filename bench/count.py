# SPDX-License-Identifier: MIT
"""Exact counts by inserted code against gcc's arc counters, gprof and callgrind, interleaved.

  count.py WORK-FOLDER TOOLS-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (fewer programs, 2 rounds), BENCH_ROUNDS=n. Times are CPU
times of the program, the smallest of the rounds: on a machine that others use too, noise only adds.
Libraries are linked from their archives, which the compilers' own counters cannot be put into: those
columns are for the programs that are there as source.
"""
import os
import re
import shutil
import subprocess
import sys

work, tools = os.path.join(os.path.abspath(sys.argv[1]), "count"), os.path.abspath(sys.argv[2])
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count")
root = os.path.dirname(os.path.dirname(here))
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "2" if quick else "5"))
weir = os.environ["WEIR"]
TREE_AIM, COUNTS_AIM, CALL_NS_AIM, SPEED_AIM, TEXT_AIM = 1.5, 1.2, 5.0, 20.0, 2.0
CFLAGS = ["-std=gnu17", "-O2", "-g", "-D_GNU_SOURCE", "-I" + here]
LIBRARIES = {"zlib": ["-l:libz.a"], "bzip2": ["-l:libbz2.a"], "zstd": ["-l:libzstd.a"],
             "sqlite": ["-l:libsqlite3.a", "-lm"], "lua": ["-l:liblua5.4.a", "-lm", "-ldl"],
             "crypto": ["-l:libcrypto.a"]}
HEADERS = {"lua": ["-I/usr/include/lua5.4"]}
OWN = ["interpreter", "lz", "containers"]
# Not optimised: what short calls cost at the most.
CXX = {"containers": ["g++", "-O0", "-g"]}
ARCHIVES = ["libcrypto.a", "libc.a", "libstdc++.a", "libsqlite3.a"]
TIGHT, FIB = (5_000_000, 30) if quick else (50_000_000, 36)
os.makedirs(work, exist_ok=True)
ENV = dict(os.environ, WEIR_CACHE=os.path.join(work, "cache"), WEIR_OUT=os.path.join(work, "counts.weir"))


def build(argv):
    subprocess.run(argv, check=True, cwd=work, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def cpu_of(argv):
    """(CPU s, standard output)"""
    with open(os.path.join(work, "out"), "w+") as out:
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
                             cwd=work, env=ENV)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode:
            raise SystemExit(f"{argv}: status {p.returncode}")
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, out.read()


def text_of(path):
    out = subprocess.run(["size", "-A", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return sum(int(n) for n in re.findall(r"^\.text\S*\s+(\d+)", out, re.M))


def library_text():
    return text_of(os.path.join(os.path.dirname(os.path.abspath(weir)), "lib/x86_64-linux-gnu/libweircount.a"))


class Kind:
    """A way to build a program and to run it."""

    def __init__(self, name, before=(), flags=(), run=(), needs_source=False, rounds_max=99):
        self.name, self.before, self.flags, self.run = name, list(before), list(flags), list(run)
        self.needs_source, self.rounds_max = needs_source, rounds_max

    def program(self, name):
        return os.path.join(work, name + "." + self.name.replace(" ", "_"))

    def make(self, name):
        source = os.path.join(here, name + (".cc" if name in CXX else ".c"))
        compiler = CXX.get(name, ["gcc", *CFLAGS])
        # -g only tells lines; what callgrind runs is the plain program.
        build(self.before + [*compiler, *HEADERS.get(name, []), *self.flags, "-o", self.program(name), source,
                             *LIBRARIES.get(name, [])])


COUNT = [weir, "count", "-q"]
PLAIN = Kind("plain")
TREE = Kind("weir", COUNT)
COUNTS = Kind("weir --counts", COUNT + ["--counts"])
CYCLES = Kind("weir cycles", COUNT + ["--metrics", "instructions,cycles"])
ARCS = Kind("-fprofile-arcs", flags=["-fprofile-arcs"], needs_source=True)
GPROF = Kind("-pg", flags=["-pg"], needs_source=True)
CALLGRIND = Kind("callgrind", run=["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"],
                 rounds_max=1)
KINDS = [PLAIN, TREE, COUNTS, CYCLES, ARCS, GPROF] + ([CALLGRIND] if shutil.which("valgrind") else [])


def measure(name, arguments=(), kinds=None):
    """{kind: least CPU s}; every kind must print the same."""
    kinds = [k for k in kinds or KINDS if not k.needs_source or name not in LIBRARIES]
    least, said = {}, {}
    for k in kinds:
        k.make(name)
    for i in range(rounds):
        for k in kinds:
            if i >= k.rounds_max:
                continue
            s, out = cpu_of(k.run + [k.program(name), *arguments])
            least[k.name] = min(least.get(k.name, s), s)
            if said.setdefault("out", out) != out:
                raise SystemExit(f"{name}: '{k.name}' prints something else")
    return least


def programs():
    names = (["zlib"] if quick else list(LIBRARIES)) + OWN
    print("CPU time as a multiple of the plain program's (aims: weir at most "
          f"{TREE_AIM}, --counts at most {COUNTS_AIM}):\n")
    print("| program | plain, s | " + " | ".join(k.name for k in KINDS[1:]) + " | text, times | file, times |")
    print("|---|--:|" + "--:|" * (len(KINDS) + 1))
    for name in names:
        print(f"bench: count, {name}", file=sys.stderr)
        s = measure(name)
        plain, tree = PLAIN.program(name), TREE.program(name)
        cells = [f"{s[k.name] / s['plain']:.2f}" if k.name in s else "" for k in KINDS[1:]]
        print(f"| {name} | {s['plain']:.2f} | " + " | ".join(cells) +
              f" | {(text_of(tree) - library_text()) / text_of(plain):.2f}"
              f" | {os.path.getsize(tree) / os.path.getsize(plain):.2f} |", flush=True)
    print(f"\nText (aim: at most {TEXT_AIM:.0f} times) is that of the whole program, less the {library_text()} bytes of "
          "weir's run-time library, which the file's size has in it.\n")


def calls():
    print("bench: count, calls", file=sys.stderr)
    print(f"A call and its return, ns on top of the plain program (aim: about {CALL_NS_AIM:.0f}):\n")
    print("| | " + " | ".join(k.name for k in KINDS[1:-1]) + " |")
    print("|---|" + "--:|" * (len(KINDS) - 2))
    for title, arguments in (("a function that adds, called in a loop", ["tight", str(TIGHT)]),
                             (f"fib({FIB}), two calls a block", ["fib", str(FIB)])):
        s = measure("calls", arguments, KINDS[:-1])
        n = int(cpu_of([PLAIN.program("calls"), *arguments])[1])
        print(f"| {title} | " + " | ".join(f"{(s[k.name] - s['plain']) / n * 1e9:.2f}" for k in KINDS[1:-1]) +
              " |", flush=True)
    print()


def archive_path(name):
    path = subprocess.run(["gcc", "-print-file-name=" + name], stdout=subprocess.PIPE, text=True).stdout.strip()
    return path if os.path.isabs(path) else None


def insertion():
    print("bench: count, insertion", file=sys.stderr)
    print(f"Insertion, MB of text a second of CPU time (aim: at least {SPEED_AIM:.0f}); in memory, no cache:\n")
    print("| archive | text, MB | blocks | weir | --counts | cycles | text, times |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    speed = os.path.join(tools, "insert_speed")
    for name in ARCHIVES[:1] if quick else ARCHIVES:
        path = archive_path(name)
        if not path:
            print(f"| {name} | not here | | | | | |")
            continue
        rows = {}
        for mode in ("tree", "counts", "cycles"):
            _, out = cpu_of([speed, str(rounds), mode, path])
            rows[mode] = [float(x) for x in out.split("\t")[1:]]
        old, new, blocks = rows["tree"][:3]
        print(f"| {name} | {old / 1e6:.2f} | {blocks:,.0f} | " +
              " | ".join(f"{old / 1e6 / rows[m][3]:.1f}" for m in ("tree", "counts", "cycles")) +
              f" | {new / old:.2f} |", flush=True)
    print()


def model():
    compare = os.path.join(root, "bench", "cost", "compare.py")
    if not os.path.exists(compare):
        return
    print("bench: count, the cycle model", file=sys.stderr)
    p = subprocess.run([sys.executable, compare, tools], stdout=subprocess.PIPE, text=True)
    # Its headings belong below ours.
    print(re.sub(r"^#+ ", "### ", p.stdout, flags=re.M) if p.returncode == 0 else
          f"The comparison of the cycle model failed (status {p.returncode}).\n", flush=True)
    functions = os.path.join(root, "bench", "cost", "functions.py")
    if subprocess.run([sys.executable, functions, work], env=ENV).returncode:
        print("The comparison of cycles and time by function failed.\n")


print("## Exact counts: weir count\n")
programs()
calls()
insertion()
model()
