# SPDX-License-Identifier: MIT
"""The merged symbol file against GSYM and the symbolizers: one run, the same inputs, interleaved.

  symbols.py WORK-FOLDER TOOLS-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (a smaller program, 2 rounds), BENCH_ROUNDS=n,
BENCH_BIG=program (one that is built already). Times are wall times, the smallest of the rounds: on
a machine that others use too, noise only adds. Everything is in the page cache.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import time

work, tools = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "2" if quick else "7"))
weir = os.environ["WEIR"]
gsymutil = shutil.which("llvm-gsymutil-14") or shutil.which("llvm-gsymutil")
UNITS = 2 if quick else 11  # of the C++ program: 18 or 100 MB
ADDRESSES = 10000
EU_ADDRESSES = 200  # eu-addr2line takes tens of milliseconds an address; scaled
SIZE_AIM, BUILD_AIM, RANGE_AIM, CHAIN_AIM = 10.0, 3.0, 50.0, 2.0
env = dict(os.environ, LC_ALL="C", DEBUGINFOD_URLS="", HOME=work)


def output(*argv, text=None):
    return subprocess.run(argv, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="replace", check=True, env=env).stdout


def run_timed(argv, stdin_path=None):
    """(wall s, CPU s, largest resident MB); output goes nowhere."""
    with open(stdin_path or os.devnull, "rb") as stdin:
        start = time.monotonic()
        process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
    process.returncode = status
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        raise SystemExit(f"{argv[:3]}: status {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def section_table(path):
    """[(name, address, bytes, flags)]"""
    out = []
    for line in output("readelf", "-SW", path).splitlines():
        head, _, rest = line.partition("]")
        f = rest.split()
        if re.fullmatch(r"\[ *\d+", head.strip()) and len(f) >= 8:
            out.append((f[0], int(f[2], 16), int(f[4], 16), f[6]))
    return out


def dwarf_bytes(path):
    """Uncompressed."""
    if any("C" in flags for _, _, _, flags in section_table(path)):
        plain = os.path.join(work, "uncompressed")
        output("objcopy", "--decompress-debug-sections", path, plain)
        path = plain
    return sum(n for name, _, n, _ in section_table(path) if name.startswith(".debug_"))


def debug_file(path):
    m = re.search(r"Build ID: (\w\w)(\w+)", output("readelf", "-n", path))
    debug = f"/usr/lib/debug/.build-id/{m[1]}/{m[2]}.debug" if m else ""
    return debug if os.path.exists(debug) else path


def draw(path):
    """In random order, evenly from the bytes of the executable sections."""
    code = [(addr, n) for _, addr, n, flags in section_table(path) if "X" in flags]
    rng = random.Random(1)
    starts = rng.choices(code, [n for _, n in code], k=ADDRESSES)
    return [addr + rng.randrange(n) for addr, n in starts]


def make_big():
    if os.environ.get("BENCH_BIG"):
        return os.environ["BENCH_BIG"]
    print(f"bench: building a C++ program of {UNITS} units", file=sys.stderr)
    folder = os.path.join(work, "big_cpp")
    os.makedirs(folder)
    output(sys.executable, os.path.join(root, "tests/oracle/make_big_cpp.py"), folder, str(UNITS))
    output("make", "-s", "-C", folder, "-j2")
    return os.path.join(folder, "big")


class Input:
    def __init__(self, label, image):
        self.label, self.image, self.debug = label, os.path.realpath(image), None
        if os.path.exists(image):
            self.debug = debug_file(self.image)
            self.dwarf = dwarf_bytes(self.debug)
        stem = os.path.join(work, label.split(",")[0].replace(" ", "_"))
        self.catalog, self.gsym = stem + ".wsym", stem + ".gsym"

    def is_usable(self):
        return self.debug and self.dwarf > 100000


# --- making the file ---

def build_commands(i):
    """(tool, threads) -> command"""
    out = {}
    for threads in (1, 2):
        out["weir", threads] = [weir, "symbols", "merge", "-o", i.catalog, i.image,
                                "--threads", str(threads)]
        if gsymutil:
            out["gsymutil", threads] = [gsymutil, "--convert=" + i.debug, "--out-file=" + i.gsym,
                                        f"--num-threads={threads}", "--quiet"]
    return out


def measure_builds(i):
    best, bytes_of = {}, {}
    for _ in range(rounds):
        for key, command in build_commands(i).items():
            to = i.catalog if key[0] == "weir" else i.gsym
            if os.path.exists(to):
                os.unlink(to)
            run = run_timed(command)
            best[key] = tuple(map(min, best[key], run)) if key in best else run
            bytes_of[key] = os.path.getsize(to)
    return best, bytes_of


def print_builds(inputs, builds):
    print(f"{rounds} rounds, interleaved, minima. Size is that of the file as part of the "
          "uncompressed DWARF; weir's has aliases, sections and sources besides. The C++ program "
          "is generated, and more alike from unit to unit than most; the debug file of libc is "
          "compressed, and its inflation a part of both tools' time.\n")
    print("| input | DWARF | tool | threads | wall | CPU | s per GB | memory | file | size |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for i in inputs:
        best, bytes_of = builds[i.label]
        for (tool, threads), (wall, cpu, rss) in best.items():
            n = bytes_of[tool, threads]
            print(f"| {i.label} | {i.dwarf / 1e6:.1f} MB | {tool} | {threads} | {wall:.3f} s "
                  f"| {cpu:.3f} s | {wall / i.dwarf * 1e9:.2f} | {rss:.0f} MB | {n / 1e6:.2f} MB "
                  f"| {100 * n / i.dwarf:.1f} % |")
    print()


# --- looking up ---

def lookup_commands(i, addrs):
    """tool -> (command, file of addresses, how many)"""
    def write(name, lines):
        path = os.path.join(work, name)
        with open(path, "w", encoding="ascii") as f:
            f.writelines(line + "\n" for line in lines)
        return path

    many = write("addresses", [f"{a:#x}" for a in addrs])
    few = write("few_addresses", [f"{a:#x}" for a in addrs[:EU_ADDRESSES]])
    resolve = [weir, "symbols", "resolve", "--catalog", i.catalog, "--image", i.image]
    out = {
        "weir resolve": (resolve + ["-"], many, len(addrs)),
        "weir resolve --json": (resolve + ["--json", "-"], many, len(addrs)),
        "addr2line -f -i": (["addr2line", "-f", "-i", "-e", i.image], many, len(addrs)),
        "llvm-symbolizer --inlines": (["llvm-symbolizer", "--inlines", "--obj=" + i.image], many,
                                      len(addrs)),
    }
    if gsymutil:
        pairs = write("gsym_addresses", [f"{a:#x} {i.gsym}" for a in addrs])
        out["llvm-gsymutil"] = [gsymutil, "--addresses-from-stdin"], pairs, len(addrs)
    if shutil.which("eu-addr2line"):
        out["eu-addr2line -f -i"] = (["eu-addr2line", "-f", "-i", "-e", i.image], few,
                                     min(EU_ADDRESSES, len(addrs)))
    return out


def measure_lookups(i):
    commands, best = lookup_commands(i, draw(i.image)), {}
    for r in range(rounds):
        for tool, (command, addresses, n) in commands.items():
            if tool.startswith("eu-") and r > 1:
                continue
            wall = run_timed(command, addresses)[0] * ADDRESSES / n
            best[tool] = min(wall, best.get(tool, wall))
    return best


def print_lookups(inputs, lookups):
    print(f"{ADDRESSES} random addresses in random order, the whole command from start to end, "
          f"catalog and GSYM file made before; eu-addr2line: {EU_ADDRESSES} addresses, scaled.\n")
    print("| input | tool | wall | addresses/s | weir resolve is faster by |")
    print("|---|---|--:|--:|--:|")
    for i in inputs:
        ours = lookups[i.label]["weir resolve"]
        for tool, wall in lookups[i.label].items():
            print(f"| {i.label} | {tool} | {wall:.3f} s | {ADDRESSES / wall:,.0f} "
                  f"| {wall / ours:.1f} |")
    print()


def measure_in_process(i):
    """name -> (value, unit, remark)"""
    out = {}
    for _ in range(min(3, rounds)):
        text = output(os.path.join(tools, "catalog_lookup"), "bench", i.image)
        for line in text.splitlines():
            name, value, unit, remark = line.split("\t")
            is_better = min if unit == "ns" else max
            value = is_better(float(value), out[name][0]) if name in out else float(value)
            out[name] = value, unit, remark
    return out


def print_in_process(inputs, measured):
    print("Inside one process, one thread:\n")
    print("| input | what | figure | unit | remark |")
    print("|---|---|--:|---|---|")
    for i in inputs:
        for name, (value, unit, remark) in measured[i.label].items():
            print(f"| {i.label} | {name} | {value} | {unit} | {remark} |")
    print()


# --- aims ---

def verdict(is_reached):
    return "**reached**" if is_reached else "**not reached**"


def print_aims(inputs, builds, measured):
    print("| aim | figures |\n|---|---|")
    sizes, speeds, ranges, chains = [], [], [], []
    for i in inputs:
        best, bytes_of = builds[i.label]
        percent = 100 * bytes_of["weir", 1] / i.dwarf
        gsym = bytes_of.get(("gsymutil", 1))
        beside = f" (GSYM {100 * gsym / i.dwarf:.1f} %)" if gsym else ""
        sizes.append(f"{verdict(percent <= SIZE_AIM)} {i.label} {percent:.1f} %{beside}")
        for threads in (1, 2) if gsymutil else ():
            times = best["gsymutil", threads][0] / best["weir", threads][0]
            speeds.append(f"{verdict(times >= BUILD_AIM)} {i.label}, threads: {threads}, "
                          f"{times:.1f} times")
        value = measured[i.label]["range look-up"][0]
        ranges.append(f"{verdict(value <= RANGE_AIM)} {i.label} {value} ns")
        value = measured[i.label]["whole chain, names known"][0]
        chains.append(f"{verdict(value >= CHAIN_AIM)} {i.label} {value} M/s")
    print(f"| the file is at most {SIZE_AIM:.0f} % of the DWARF | {'; '.join(sizes)} |")
    print(f"| made at least {BUILD_AIM:.0f} times faster than by llvm-gsymutil, same threads "
          f"| {'; '.join(speeds) or 'llvm-gsymutil is not here'} |")
    print(f"| range look-up in at most {RANGE_AIM:.0f} ns | {'; '.join(ranges)} |")
    print(f"| at least {CHAIN_AIM:.0f} M addresses/s/thread with inline chains "
          f"| {'; '.join(chains)} |")
    print()


def main():
    lib = "/usr/lib/x86_64-linux-gnu"
    inputs = [Input(f"C++ program of {UNITS} units", make_big()),
              Input("libc.so.6", lib + "/libc.so.6"),
              Input("libstdc++.so.6, debug build", lib + "/debug/libstdc++.so.6")]
    inputs = [i for i in inputs if i.is_usable()]
    builds, lookups, measured = {}, {}, {}
    for i in inputs:
        print(f"bench: symbols of {i.label}", file=sys.stderr)
        builds[i.label] = measure_builds(i)
        lookups[i.label] = measure_lookups(i)
        measured[i.label] = measure_in_process(i)
    print("## Symbols\n")
    print(f"Peers: {output('addr2line', '--version').splitlines()[0]}; "
          f"LLVM {output('llvm-symbolizer', '--version').split('version')[1].split()[0]}"
          f"{'' if gsymutil else ' without llvm-gsymutil'}; "
          f"{output('eu-addr2line', '--version').splitlines()[0]}.\n")
    print_aims(inputs, builds, measured)
    print("### Making the merged symbol file\n")
    print_builds(inputs, builds)
    print("### Looking up\n")
    print_lookups(inputs, lookups)
    print_in_process(inputs, measured)


main()
