# SPDX-License-Identifier: MIT
"""Instruction tracing against gdb's record, valgrind's lackey and bare ptrace, in one run, interleaved.

  steps.py WORK-FOLDER TOOLS-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (fewer instructions, 1 round), BENCH_ROUNDS=n,
BENCH_PARTS=engines,real_program,large_programs,resolution,outside (some of them only). Figures are the smallest of the
rounds: on a machine that others use too, noise only adds. The kernels read the clock themselves, around the
traced work: the start of a tool and what it does at the end are not in that time. The CPU time is that of the
tool and the program together, less that of the same command with no work; it hardly depends on what else
the machine does. All numbers of instructions are those that weir counts.
"""
import os
import re
import shutil
import subprocess
import sys
import time

work, tools = os.path.join(os.path.abspath(sys.argv[1]), "steps"), os.path.abspath(sys.argv[2])
here = os.path.dirname(os.path.abspath(__file__))
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "1" if quick else "3"))
weir, gdb, valgrind = os.environ["WEIR"], shutil.which("gdb"), shutil.which("valgrind")
NATIVE = 5_000  # rounds of a kernel, 20,000 to 30,000 instructions each
TRACED, TRACED_SLOW, TRACED_BY_GDB, TRANSLATED = (2, 1, 1, 10) if quick else (8, 2, 1, 40)
ROWS, PASSES, FULL_LISTING = (300, 1, 5_000_000) if quick else (1_400, 5, 20_000_000)
CALLS = 40
BYTES_AIM, RESOLUTION_AIM, MIDDLE_AIM, OUTSIDE_AIM = 1.0, 5e6, 1.0, 1.05
TIMEOUT = ["timeout", "-k", "5", "300"]
ENV = {k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"}
os.makedirs(work, exist_ok=True)
kernels, bare, bare_trap = (os.path.join(work, x) for x in ("steps_kernels", "bare_ptrace", "bare_trap"))
large, sqlite = os.path.join(work, "large.weir"), os.path.join(work, "steps_sqlite")
aims = []  # (what, figures, whether reached or None)
us = {}  # (engine, kernel) -> microseconds an instruction


def build():
    cc = ["gcc", "-std=gnu17", "-O2", "-g", "-D_GNU_SOURCE"]
    alone = ["-static", "-nostdlib", "-no-pie", "-fno-pie", "-fno-builtin", "-fno-stack-protector",
             "-fno-tree-vectorize", "-fno-tree-loop-distribute-patterns", "-fcf-protection=none"]
    for to, source, flags in ((kernels, "workloads/steps_kernels.c", alone), (bare, "steps/bare_ptrace.c", []),
                              (bare_trap, "steps/bare_trap.c", ["-mno-red-zone"])):
        subprocess.run([*cc, *flags, "-Wl,--build-id", "-o", to, os.path.join(here, source)], check=True)


class Run:
    """One command: its wall and CPU seconds, largest resident kB, output."""

    def __init__(self, argv, stdout=None):
        with open(os.path.join(work, "out"), "w+") as out, open(os.path.join(work, "err"), "w+") as err:
            start = time.monotonic()
            p = subprocess.Popen(TIMEOUT + argv, stdin=subprocess.DEVNULL, stdout=stdout or out, stderr=err,
                                 cwd=work, env=ENV)
            _, status, usage = os.wait4(p.pid, 0)
            self.s = time.monotonic() - start
            p.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read(), err.read()
        self.cpu_s, self.kb, self.status = usage.ru_utime + usage.ru_stime, usage.ru_maxrss, p.returncode

    def check(self, argv):
        if self.status:
            raise SystemExit(f"{argv}: status {self.status}: {self.err}")
        return self

    def said(self):
        return self.out + "\n" + self.err

    def number(self, pattern):
        return int(re.search(pattern, self.said()).group(1))


def run(argv, stdout=None):
    return Run(argv, stdout).check(argv)


class Tool:
    """A way to trace: `argv` goes in front of the command."""

    def __init__(self, name, argv, traced, file=None, memory=None):
        self.name, self.argv, self.traced, self.file, self.memory = name, argv, traced, file, memory

    def bytes_each(self, runs, nothing, n):
        if self.file:
            return f"{os.path.getsize(os.path.join(work, self.file)) / n:.2f}"
        if self.memory == "measured":
            return f"{(min(r.kb for r in runs) - nothing.kb) * 1024 / n:.0f} in memory"
        return self.memory or "."


def steps_command(engine, *options):
    return [weir, "steps", "--engine", engine, *options, "-o", engine + ".weir", "--"]


def hindrance(engine):
    """Why the engine does not work here, or None."""
    r = Run(steps_command(engine) + [kernels, "loop", "0"])
    return r.err.strip().removeprefix("weir: ") if r.status else None


def step_tools():
    left_out, found = [], []
    for engine in ("translate", "ptrace", "branch"):
        why = hindrance(engine)
        if why:
            left_out.append(f"weir: {why}.")
        else:
            found.append(Tool(f"weir, {engine}", steps_command(engine), NATIVE if engine == "translate" else TRACED,
                              engine + ".weir"))
    found.append(Tool("bare ptrace, both on one CPU", [bare, "one"], TRACED, memory="8 a stop in memory"))
    found.append(Tool("bare ptrace", [bare, "any"], TRACED_SLOW, memory="8 a stop in memory"))
    if gdb:
        found.append(Tool("gdb `record`", [gdb, "-nx", "-batch", "-ex", "starti", "-ex", "record", "-ex", "continue",
                                          "--args"], TRACED_BY_GDB, memory="measured"))
    if valgrind:
        lackey = [valgrind, "--tool=lackey", "--trace-mem=yes"]
        found.append(Tool("lackey, to a file", lackey + ["--log-file=lackey.txt"], TRANSLATED, "lackey.txt"))
        found.append(Tool("lackey, to /dev/null", lackey + ["--log-file=/dev/null"], TRANSLATED))
    return found, left_out


def traced_kernel(kernel, found):
    """The rows of one kernel."""
    count = {n: run(steps_command("ptrace") + [kernels, kernel, str(n)]).number(r"(\d+) steps") for n in (0, 2)}
    each = (count[2] - count[0]) / 2  # instructions of a round
    nothing = {t: run(t.argv + [kernels, kernel, "0"]) for t in found}
    native, runs = [], {t: [] for t in found}
    for _ in range(rounds):
        native.append(run([kernels, kernel, str(NATIVE)]))
        for t in found:
            print(f"bench: steps, {kernel}: {t.name}", file=sys.stderr)
            runs[t].append(run(t.argv + [kernels, kernel, str(t.traced)]))
    plain_us = min(r.number(r"spent (\d+)") for r in native) / 1e3 / NATIVE / each
    us["none", kernel] = plain_us, plain_us
    print(f"| {kernel} | none | {NATIVE * each:,.0f} | {1e6 / plain_us:,.0f} | {plain_us:.5f} | 1 | . |")
    for t in found:
        n = each * t.traced
        one_us = min(r.number(r"spent (\d+)") for r in runs[t]) / 1e3 / n
        cpu_us = (min(r.cpu_s for r in runs[t]) - nothing[t].cpu_s) * 1e6 / n
        us[t.name, kernel] = one_us, cpu_us
        print(f"| {kernel} | {t.name} | {n:,.0f} | {1e6 / one_us:,.0f} | {cpu_us:.2f} | {one_us / plain_us:,.0f} | "
              f"{t.bytes_each(runs[t], nothing[t], n)} |", flush=True)


def engines():
    found, left_out = step_tools()
    print("Static programs without a library, traced from the first instruction to the last: `loop` computes, "
          "`branchy` packs and sorts. The rate is by the program's own clock around its work; CPU time is that of tool "
          "and program together; slowdown is against the same work untraced:\n")
    print("| program | tracer | instructions | a second | CPU us each | slowdown, times | bytes each |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for kernel in ("loop", "branchy"):
        traced_kernel(kernel, found)
    print("\nBytes of weir are those of the whole file: order, instructions, names and lines; lackey's those of its "
          "text. Bare ptrace and gdb write nothing. " + " ".join(left_out) + "\n")
    trap, signal = least_trap()
    print("A bare handler of the trap flag in the thread itself, which stores the address and nothing else, takes "
          f"{trap:.1f} us of CPU time an instruction; a signal that the thread sends to itself, with the same "
          f"handler, {signal:.1f} us. The rest is the trap, which no engine that steps can do without.\n")
    ptrace_aims()


def least_trap():
    """us of a trap and of a signal."""
    runs = [run([bare_trap, "50000"]) for _ in range(2 * rounds)]
    return [min(r.number(word + r" (\d+)") for r in runs) / 1e3 for word in ("trap", "signal")]


def compared(tool, other, i):
    """How many times as fast as the other the tool is, at least; by the clock (0) or by CPU time (1)."""
    return min(us[other, kernel][i] / us[tool, kernel][i] for kernel in ("loop", "branchy"))


def ptrace_aims():
    if gdb:
        aims.append(("faster than gdb's `record` (no aim of its own)",
                     f"`ptrace` {compared('weir, ptrace', 'gdb `record`', 0):.1f} times by the clock, "
                     f"{compared('weir, ptrace', 'gdb `record`', 1):.1f} by CPU time", None))
    if ("weir, translate", "loop") not in us:
        aims.append(("`translate` at least 400 times as fast as `ptrace`", "it does not work here", None))
        return
    times = compared("weir, translate", "weir, ptrace", 0)
    slower = 1 / compared("weir, translate", "none", 0)
    aims.append(("`translate` at least 400 times as fast as `ptrace`, within 10 times of native",
                 f"{times:,.0f} times as fast, {slower:.1f} times native", times >= 400 and slower <= 10))
    if ("lackey, to a file", "loop") in us:
        times = compared("weir, translate", "lackey, to a file", 0)
        aims.append(("`translate` at least 20 times as fast as lackey", f"{times:,.0f} times", times >= 20))


def large_commands():
    with open(os.path.join(work, "input"), "wb") as out, open(weir, "rb") as source:
        out.write(source.read()[:2_000_000 if quick else 8_000_000])
    with open(os.path.join(work, "input.c"), "w") as out:
        subprocess.run([sys.executable, os.path.join(here, "workloads/make_input.py"), "c", "20" if quick else "60"],
                       stdout=out, check=True)
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, text=True).stdout.strip()
    sql = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 600000) "
           "SELECT sum(x * x % 7), count(DISTINCT x % 1000) FROM c;")
    return {"gzip": ["gzip", "-c", "input"], "sqlite3": ["sqlite3", ":memory:", sql],
            "python3": ["/usr/bin/python3", "-c", "s = 0\nfor i in range(2000000): s += i % 7\nprint(s)"],
            "cc1": [cc1, "-quiet", "-O2", "input.c", "-o", "/dev/null"]}


def large_programs():
    """Everything that programs of seconds execute, drained to disk."""
    if hindrance("translate"):
        print("Large programs: `translate` does not work here.\n")
        return
    print("Programs of some seconds, everything that they execute, by `translate`; whole commands by the clock, smallest of "
          f"{max(2, rounds)} runs, interleaved. CPU: of recorder and program together, times that of the program alone:\n")
    print("| program | instructions | native, s | traced, s | times native | CPU, times | a second | bytes each |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    worst, most = {}, {}
    for name, command in large_commands().items():
        native, traced = [], []
        for _ in range(max(2, rounds)):
            print(f"bench: steps, {name}", file=sys.stderr)
            native.append(run(command, subprocess.DEVNULL))
            traced.append(run(steps_command("translate") + command, subprocess.DEVNULL))
        n = traced[0].number(r"(\d+) steps")
        plain, took = min(r.s for r in native), min(r.s for r in traced)
        each = os.path.getsize(os.path.join(work, "translate.weir")) / n
        worst[name], most[name] = took / plain, each
        cpu = min(r.cpu_s for r in traced) / min(r.cpu_s for r in native)
        print(f"| {name} | {n:,} | {plain:.3f} | {took:.2f} | {took / plain:.1f} | {cpu:.1f} | {n / took:,.0f} | {each:.3f} |",
              flush=True)
    print()
    aims.append(("`translate` at most 10 times native: " + ", ".join(worst),
                 ", ".join(f"{v:.1f}" for v in worst.values()), max(worst.values()) <= 10))
    aims.append(("at most 0.1 bytes an instruction, 0.25 for cc1", ", ".join(f"{n} {v:.3f}" for n, v in most.items()),
                 all(v <= (0.25 if n == "cc1" else 0.1) for n, v in most.items())))


def real_program():
    print("bench: steps, gzip", file=sys.stderr)
    text = os.path.join(work, "small.txt")
    with open(text, "w") as f:
        f.writelines(f"{i}\n" for i in range(20))
    command = [shutil.which("gzip"), "-c", text]
    all_tools = step_tools()[0]
    found = [t for t in all_tools if t.name.startswith(("weir", "bare ptrace, both", "lackey, to a file"))]
    native, runs = [], {t: [] for t in found}
    for _ in range(max(1, rounds - 1)):
        native += [run(command, subprocess.DEVNULL) for _ in range(20)]
        for t in found:
            runs[t].append(run(t.argv + command, subprocess.DEVNULL))
    n = runs[found[0]][0].number(r"(\d+) steps")
    print(f"A real program, `gzip` of {os.path.getsize(text)} bytes, {n:,} instructions with the dynamic loader's; "
          "whole commands, start and end of the tool included:\n")
    print("| tracer | s | instructions a second | CPU us each | slowdown, times | bytes each |")
    print("|---|--:|--:|--:|--:|--:|")
    plain = min(r.s for r in native)
    print(f"| none | {plain:.4f} | {n / plain:,.0f} | . | 1 | . |")
    for t in found:
        s, cpu = min(r.s for r in runs[t]), min(r.cpu_s for r in runs[t])
        print(f"| {t.name} | {s:.2f} | {n / s:,.0f} | {cpu * 1e6 / n:.2f} | {s / plain:,.0f} | "
              f"{t.bytes_each(runs[t], None, n)} |", flush=True)
    tool = next((t for t in all_tools if t.memory == "measured"), None)
    gave_up = tool and re.search(r"^Process record and replay.*", Run(tool.argv + command).said(), re.M)
    stops = runs[next(t for t in found if t.argv[0] == bare)][0].number(r"stops (\d+)")
    print(f"\nThe processor stops {stops:,} times, at each round of a repeated string instruction, which is one "
          "instruction here." + (f" gdb's `record` gives up: {gave_up.group().rstrip('.')}." if gave_up else "") + "\n")


def make_large():
    """(steps, bytes) of a trace of real code, made from what valgrind says was executed."""
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-g", "-static", "-no-pie", "-Wl,--build-id", "-o", sqlite,
                    os.path.join(here, "workloads", "steps_sqlite.c"), "-l:libsqlite3.a", "-lm"],
                   check=True, stderr=subprocess.DEVNULL)
    script = ('valgrind --tool=lackey --trace-mem=yes --log-fd=9 "$1" "$2" 9>&1 >/dev/null | grep "^I" >lines.txt && '
              'for ((i = 0; i < $3; i++)); do cat lines.txt; done | "$4" "$1" "$5"; rm -f lines.txt')
    made = subprocess.run(["bash", "-c", script, "bash", sqlite, str(ROWS), str(PASSES),
                           os.path.join(tools, "steps_generate"), large],
                          check=True, stdout=subprocess.PIPE, text=True, cwd=work).stdout
    return int(re.search(r"steps (\d+)", made).group(1)), os.path.getsize(large)


def resolution():
    if not valgrind:
        print("The large trace is left out: valgrind is not here.\n")
        return
    print("bench: steps, making the large trace", file=sys.stderr)
    n, size = make_large()
    listed = min(n, FULL_LISTING)
    commands = {
        "`report steps --at MIDDLE --limit 20`": (
            [weir, "report", "steps", large, "--at", str(n // 2), "--limit", "20"], 20),
        "`report steps`": ([weir, "report", "steps", large, "--limit", str(listed)], listed),
        "`report flat`": ([weir, "report", "flat", large], n),
        "`report tree`": ([weir, "report", "tree", large], n),
        "`report branches`": ([weir, "report", "branches", large], n),
        "`report mix`": ([weir, "report", "mix", large], n),
        "`export step-stream`": ([weir, "export", "step-stream", large, "-o", "/dev/null"], n),
    }
    runs = {title: [] for title in commands}
    for _ in range(rounds):
        for title, (argv, _) in commands.items():
            print(f"bench: steps, {title}", file=sys.stderr)
            runs[title].append(run(argv, subprocess.DEVNULL))
    print(f"A trace of {n:,} instructions of SQLite ({PASSES} times the same {n // PASSES:,}, as valgrind has them), "
          f"{size:,} bytes: {size / n:.3f} an instruction. Whole commands, output to /dev/null:\n")
    print("| command | instructions | s | CPU s | M instructions a second of CPU | MB |\n|---|--:|--:|--:|--:|--:|")
    rate = {}
    for title, (_, count) in commands.items():
        s, cpu = min(r.s for r in runs[title]), min(r.cpu_s for r in runs[title])
        rate[title] = count / cpu
        print(f"| {title} | {count:,} | {s:.3f} | {cpu:.3f} | {count / cpu / 1e6:.2f} | "
              f"{min(r.kb for r in runs[title]) / 1024:.0f} |")
    print(flush=True)
    middle = min(r.s for r in runs[next(iter(commands))])
    slowest = min(list(rate)[1:], key=rate.get)
    aims.append((f"listing from the middle of 100 M instructions within {MIDDLE_AIM:.0f} s", f"{middle:.3f} s of {n:,}",
                 middle <= MIDDLE_AIM))
    aims.append((f"resolution at least {RESOLUTION_AIM / 1e6:.0f} M instructions/s",
                 f"{rate['`report steps`'] / 1e6:.1f} M/s listed as text; the slowest of all, {slowest}, "
                 f"{rate[slowest] / 1e6:.1f} M/s", rate[slowest] >= RESOLUTION_AIM))
    aims.append((f"at most {BYTES_AIM:.0f} byte an instruction on disk", f"{size / n:.3f}", size / n <= BYTES_AIM))
    os.unlink(large)


def outside():
    print("bench: steps, outside", file=sys.stderr)
    command = [kernels, "outside", str(CALLS)]
    around = {e: steps_command(e, "--around", "traced_part") + command for e in ("ptrace",)}
    refused = {e: r.err.strip().removeprefix("weir: ") for e in around for r in [Run(around[e])] if r.status}
    argvs = {"none": command, **{f"weir, {e}": a for e, a in around.items() if e not in refused}}
    runs = {name: [] for name in argvs}
    for _ in range(3 * rounds):
        for name, argv in argvs.items():
            runs[name].append(run(argv))
    print(f"`--around traced_part`: {CALLS} calls of it, and some 68 million instructions between two of them; "
          "the program's own clock:\n")
    print("| tracer | steps | between two calls, ms | times | a call, us |\n|---|--:|--:|--:|--:|")
    plain = min(r.number(r"rest (\d+)") for r in runs["none"]) / 1e6
    for name, of_tool in runs.items():
        rest = min(r.number(r"rest (\d+)") for r in of_tool) / 1e6
        call = min(r.number(r"spent (\d+)") for r in of_tool) / 1e3 / CALLS
        steps = of_tool[0].number(r"(\d+) steps") if name != "none" else 0
        print(f"| {name} | {steps:,} | {rest:.2f} | {rest / plain:.3f} | {call:.1f} |", flush=True)
        if name != "none":
            aims.append(("full speed outside of `--around`",
                         f"{rest / plain:.3f} times ({name}; up to {OUTSIDE_AIM} counts as the same)",
                         rest / plain <= OUTSIDE_AIM))
    print("\n" + "".join(f"weir: {why}.\n" for why in refused.values()))


print("## Instruction tracing: weir steps\n")
build()
peers = [run([t, "--version"]).out.split("\n")[0] for t in (gdb, valgrind) if t] + ["bare loops of ptrace"]
print(f"Against {', '.join(peers)}; the smallest of {rounds} round{'s'[:rounds - 1]}, interleaved. "
      f"Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; load average at the start: "
      f"{' '.join(f'{x:.2f}' for x in os.getloadavg())}.\n")
for part in (engines, real_program, large_programs, resolution, outside):
    if not os.environ.get("BENCH_PARTS") or part.__name__ in os.environ["BENCH_PARTS"].split(","):
        part()
if aims:
    print("| aim | figures | |\n|---|---|---|")
for what, figures, is_reached in aims:
    print(f"| {what} | {figures} | {'.' if is_reached is None else 'reached' if is_reached else 'not reached'} |")
print()
