# SPDX-License-Identifier: MIT
"""Trace scripts against bpftrace: one run, the same scripts and programs, interleaved.

  probe.py WORK-FOLDER TOOLS-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (fewer hits, 2 rounds), BENCH_ROUNDS=n,
BENCH_PARTS=starts,compiles,costs,many_functions (some of them only). Figures are the smallest of the
rounds: on a machine that others use too, noise only adds. Both tools start the traced command themselves,
after everything is attached: the command's own clock, read as its first act, ends the start of the tracer,
and its CPU time is the cost of the hits. Needs root; bpftrace needs a tracefs that is mounted, so all of it
runs in a mount namespace of its own.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

work, tools = os.path.join(os.path.abspath(sys.argv[1]), "probe"), os.path.abspath(sys.argv[2])
here = os.path.dirname(os.path.abspath(__file__))
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "2" if quick else "7"))
weir, bpftrace = os.environ["WEIR"], shutil.which("bpftrace")
HITS = 10_000 if quick else 30_000
SYSCALLS = 20 * HITS
MANY, PEER_MANY = 1_000, 100
START_AIM, RSS_AIM, COST_AIM, MANY_MS_AIM = 1 / 20, 1 / 20, 1.0, 100.0
COST_NOISE = 1.05  # the trap of a uprobe, 10 us here, is never the same twice
STATS = "/proc/sys/kernel/bpf_stats_enabled"
os.makedirs(work, exist_ok=True)
hits, many = os.path.join(work, "hits"), os.path.join(work, "many")
usage_file, mark_file = os.path.join(work, "usage"), os.path.join(work, "mark")
ENV = dict(os.environ, BENCH_USAGE=usage_file, BENCH_MARK=mark_file, BPFTRACE_MAX_PROBES=str(2 * MANY),
           BPFTRACE_MAX_BPF_PROGS=str(2 * MANY), BPFTRACE_STRLEN="128")
TOOLS = {"weir": [weir, "probe", "-q"], "bpftrace": [bpftrace, "-q"]}
ITEM = "struct item { long id; int size; char *name; };"
TARGET = f"uprobe:{hits}:target"


def own_mounts():
    """Once more, in a mount namespace with a tracefs where bpftrace looks for it."""
    if os.environ.get("BENCH_MOUNTED") or os.path.isdir("/sys/kernel/tracing/events"):
        return
    os.execvpe("unshare", ["unshare", "-m", "sh", "-c",
                           'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"', "sh",
                           sys.executable, *sys.argv], dict(os.environ, BENCH_MOUNTED="1"))


def build():
    cc = ["gcc", "-std=gnu17", "-O2", "-g", "-D_GNU_SOURCE"]
    subprocess.run([*cc, "-o", hits, os.path.join(here, "workloads", "hits.c")], check=True)
    with open(many + ".c", "w") as f:
        for i in range(MANY):
            f.write(f"long work_{i:04}(long n);\nlong work_{i:04}(long n)\n{{\n\treturn n * {i} + {i % 7};\n}}\n\n")
        f.write('#define main hits_main\n#include "%s"\n#undef main\n'
                "int main(int argc, char **argv)\n{\n\treturn hits_main(argc, argv);\n}\n" %
                os.path.join(here, "workloads", "hits.c"))
    subprocess.run([*cc, "-o", many, many + ".c"], check=True)


class Run:
    """What one run of a tool took: ms until the command began and after it ended, kB, output."""

    def __init__(self, argv):
        if os.path.exists(mark_file):
            os.unlink(mark_file)
        p = subprocess.run([hits, "run", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, cwd=work, env=ENV)
        self.out = p.stdout
        with open(usage_file) as f:
            start, end, self.kb, cpu_us, status = (int(x) for x in f.read().split())
        if status:
            raise SystemExit(f"{argv}: wait status {status}: {p.stderr}")
        self.cpu_ms = cpu_us / 1e3
        self.all_ms = (end - start) / 1e6
        if os.path.exists(mark_file):
            with open(mark_file) as f:
                mark = int(f.read())
            self.before_ms, self.after_ms = (mark - start) / 1e6, (end - mark) / 1e6


def argv_of(tool, script, command=None):
    return TOOLS[tool] + ["-e", script] + (["-c", command] if command else [])


def least(runs, field):
    return min(getattr(r, field) for r in runs)


def interleaved(commands):
    """{tool: [Run]} of {tool: argv}"""
    runs = {tool: [] for tool in commands}
    for _ in range(rounds):
        for tool, argv in commands.items():
            runs[tool].append(Run(argv))
    return runs


def cell(weir_figure, peer_figure, aim, unit=""):
    ratio = weir_figure / peer_figure
    shown = f"1/{1 / ratio:.0f}" if ratio < 0.5 else f"{ratio:.2f}"
    return f"{weir_figure:.2f}{unit} | {peer_figure:.2f}{unit} | {shown}{'' if ratio <= aim else ' (aim missed)'}"


def scripts():
    libc = next(iter(glob.glob("/lib/x86_64-linux-gnu/libc.so.6") + glob.glob("/lib64/libc.so.6")))
    return [
        ("`BEGIN` alone", "BEGIN { @ = 1; }"),
        ("uprobe, struct, `str()`", f"{ITEM} {TARGET} {{ @[str(((struct item *)arg2)->name)] = count(); }}"),
        ("uprobe on libc's malloc, `hist()`", f"uprobe:{libc}:malloc {{ @[comm] = hist(arg0); }}"),
        ("system call's tracepoint", "tracepoint:syscalls:sys_enter_openat { @[comm] = count(); }"),
    ]


def starts():
    alone = least([Run([hits, "mark"]) for _ in range(4 * rounds)], "before_ms")
    print("From exec to the first act of the traced command, everything attached, less the "
          f"{alone:.2f} ms that this takes without a tracer (aim: at most 1/{1 / START_AIM:.0f} "
          f"of bpftrace's), and the tracer's largest resident size (aim: 1/{1 / RSS_AIM:.0f}); the CPU time "
          "is that of the whole run, command and detaching included: it hardly depends on what else the machine does:\n")
    print("| script | weir, ms | bpftrace, ms | | weir, CPU ms | bpftrace, CPU ms | | weir, MB | bpftrace, MB | |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for title, script in scripts():
        print(f"bench: probe, start: {title}", file=sys.stderr)
        runs = interleaved({t: argv_of(t, script, f"{hits} mark") for t in TOOLS})
        ms = [least(runs[t], "before_ms") - alone for t in ("weir", "bpftrace")]
        cpu = [least(runs[t], "cpu_ms") for t in ("weir", "bpftrace")]
        mb = [least(runs[t], "kb") / 1024 for t in ("weir", "bpftrace")]
        print(f"| {title} | {cell(*ms, START_AIM)} | {cell(*cpu, float('inf'))} | {cell(*mb, RSS_AIM)} |", flush=True)
    print()
    kernel_wait()


def kernel_wait():
    """How long the kernel alone takes to put a probe into a file nobody runs, and one into a further file."""
    libc = next(iter(glob.glob("/lib/x86_64-linux-gnu/libc.so.6") + glob.glob("/lib64/libc.so.6")))
    script = f"{TARGET} {{ @ = count(); }} uprobe:{libc}:malloc {{ @m = count(); }}"
    log = os.path.join(work, "strace")
    if not shutil.which("strace"):
        return
    took, further = [], []
    for _ in range(rounds):
        subprocess.run(["strace", "-f", "-T", "-e", "trace=bpf,perf_event_open", "-o", log, *argv_of("weir", script, f"{hits} mark")],
                       check=True, stdout=subprocess.DEVNULL, env=ENV)
        with open(log) as f:
            # By a link of many points, or by one event a point.
            calls = sorted(float(x) for x in re.findall(
                r"(?:BPF_LINK_CREATE.*attach_type=0x30|perf_event_open\().*<([\d.]+)>", f.read()))
        took.append(calls[-1])
        further.append(calls[-2])
    took.sort()
    further.sort()
    print(f"Of a start with a uprobe, {took[len(took) // 2] * 1e3:.1f} ms (the median; {took[0] * 1e3:.1f} to "
          f"{took[-1] * 1e3:.1f}) are the kernel's own registration of the probe, a grace period of RCU, which bpftrace "
          "waits for, too (from `strace -T`). It is waited for once: a further file takes "
          f"{further[len(further) // 2] * 1e3:.2f} ms.\n")


def compiles():
    print("bench: probe, compile only", file=sys.stderr)
    print("Compiling only (`weir probe --dump` against `bpftrace -d`, whole command):\n")
    print("| script | weir, ms | bpftrace, ms | | weir, MB | bpftrace, MB | |\n|---|--:|--:|--:|--:|--:|--:|")
    for title, script in scripts():
        runs = interleaved({"weir": [weir, "probe", "--dump", "-e", script],
                            "bpftrace": [bpftrace, "-d", "-e", script]})
        ms = [least(runs[t], "all_ms") for t in ("weir", "bpftrace")]
        mb = [least(runs[t], "kb") / 1024 for t in ("weir", "bpftrace")]
        print(f"| {title} | {cell(*ms, START_AIM)} | {cell(*mb, RSS_AIM)} |", flush=True)
    print()


def spent(out):
    return int(re.search(r"spent (\d+)", out).group(1))


def program_ns(out):
    n, ns = (int(x) for x in re.search(r"program (\d+) (\d+)", out).groups())
    return ns / n if n else float("inf")


class Counted:
    """While it lasts, the kernel times every BPF program."""

    def write(self, text):
        with open(STATS, "w") as f:
            f.write(text)

    def __enter__(self):
        with open(STATS) as f:
            self.before = f.read()
        self.write("1")

    def __exit__(self, *_):
        self.write(self.before)


def costs():
    calls, calls_of_kernel = f"call {HITS}", f"syscall {SYSCALLS}"
    rows = [
        ("uprobe, `count()`", TARGET + " { @ = count(); }", calls),
        ("uprobe, `hist(arg0)`", TARGET + " { @ = hist(arg0); }", calls),
        ("uprobe, `@[arg0 & 63] = count()`", TARGET + " { @[arg0 & 63] = count(); }", calls),
        ("uprobe, `@[pid, comm] = sum(arg0)`", TARGET + " { @[pid, comm] = sum(arg0); }", calls),
        ("uprobe, predicate on `str()`", TARGET + ' /str(arg1) == "another text"/ { @ = count(); }', calls),
        ("uprobe, struct, map by `str()`", f"{ITEM} {TARGET} {{ @[str(((struct item *)arg2)->name)] = count(); }}",
         calls),
        ("uretprobe, `hist(retval)`", f"uretprobe:{hits}:target {{ @ = hist(retval); }}", calls),
        ("system call's tracepoint, `count()`", "tracepoint:syscalls:sys_enter_getppid { @ = count(); }",
         calls_of_kernel),
        ("system call's tracepoint, `@[comm] = count()`",
         "tracepoint:syscalls:sys_enter_getppid { @[comm] = count(); }", calls_of_kernel),
    ]
    print("A hit, ns of the traced program's CPU time on top of the program alone (aim: at most bpftrace's); of it in the "
          "BPF program as the kernel times it, its two clock readings included:\n")
    print("| script | weir, ns | bpftrace, ns | | weir's program, ns | bpftrace's, ns | |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for title, script, what in rows:
        print(f"bench: probe, cost: {title}", file=sys.stderr)
        n = int(what.split()[1])
        commands = {t: argv_of(t, script, f"{hits} {what}") for t in TOOLS}
        runs = interleaved(dict(commands, none=[hits, *what.split()]))
        none = min(spent(r.out) for r in runs["none"])
        cost = [(min(spent(r.out) for r in runs[t]) - none) / n for t in TOOLS]
        with Counted():
            runs = interleaved(commands)
        own = [min(program_ns(r.out) for r in runs[t]) for t in TOOLS]
        print(f"| {title} | {cell(*cost, COST_AIM * COST_NOISE)} | {cell(*own, COST_AIM * COST_NOISE)} |",
              flush=True)
    print(f"\nUp to {COST_NOISE:.2f} counts as the same. With `-c`, weir's programs look at which process it is and follow "
          "its children; bpftrace's uprobes are for the one process, its tracepoints for all.\n")


def many_functions():
    print("bench: probe, many functions", file=sys.stderr)
    print(f"Functions of one file: until the command runs, and from its first act to the end (aim: both together, for "
          f"{MANY:,}, at most {MANY_MS_AIM:.0f} ms; bpftrace once, with fewer, as it takes minutes for {MANY:,}):\n")
    print("| | functions | attached, ms | detached and ended, ms | together, ms | MB |\n|---|--:|--:|--:|--:|--:|")
    for tool, functions, n in (("weir", "work_*", MANY), ("weir", "work_00*", PEER_MANY),
                               ("bpftrace", "work_00*", PEER_MANY)):
        argv = argv_of(tool, f"uprobe:{many}:{functions} {{ @[probe] = count(); }}", f"{many} mark")
        runs = [Run(argv) for _ in range(1 if tool == "bpftrace" else rounds)]
        both = min(x.before_ms + x.after_ms for x in runs)
        late = " (aim missed)" if tool == "weir" and both > MANY_MS_AIM else ""
        print(f"| {tool} | {n:,} | {least(runs, 'before_ms'):.1f} | {least(runs, 'after_ms'):.1f} | {both:.1f}{late} "
              f"| {least(runs, 'kb') / 1024:.1f} |", flush=True)
    print()


own_mounts()
print("## Trace scripts: weir probe\n")
if not bpftrace or os.geteuid() != 0:
    print("Left out: " + ("bpftrace is not here.\n" if not bpftrace else "not run by root.\n"))
    sys.exit(0)
build()
version = subprocess.run([bpftrace, "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
print(f"Against {version}, 64-bit programs, strings of 128 bytes in both; the smallest of {rounds} rounds, interleaved. "
      f"Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; load average at the start: "
      f"{' '.join(f'{x:.2f}' for x in os.getloadavg())}.\n")
for part in (starts, compiles, costs, many_functions):
    if not os.environ.get("BENCH_PARTS") or part.__name__ in os.environ["BENCH_PARTS"].split(","):
        part()
