# SPDX-License-Identifier: MIT
"""Java under weir, beside the JVM's own recorder (JFR) and perf: one run, the same programs, interleaved.

  java.py WORK-FOLDER TOOLS-FOLDER    prints Markdown

The environment: WEIR, PERF (programs), BENCH_QUICK=1 (2 rounds, less work), BENCH_ROUNDS=n. Figures are the
smallest of the rounds: on a machine that others use too, noise only adds. perf walks by frame pointers, which
compiled Java has only with -XX:+PreserveFramePointer; that flag is part of what perf costs. JFR is given its
shortest period, a millisecond. All of it runs with the highest priority, where that is permitted: programs that others
interrupt again and again lose what their caches hold, which costs more than what is measured here.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import time

import stacks

HZ = 999
PERF_TRIES = 6
OVERHEAD_AIM, CALL_AIM_NS, COMPLETE_AIM = 1.03, 40.0, 0.99

work, tools = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "2" if quick else "7"))
weir, perf = os.environ["WEIR"], os.environ.get("PERF", "perf")
timed, outermost = (os.path.join(tools, n) for n in ("timed", "outermost"))
usage_file = os.path.join(work, "usage")
h2_jar = "/usr/share/java/h2.jar"
WORK = ["2000", "5000"] if quick else ["4000", "15000"]
CALLS, CALL_ROUNDS = "500000", 20  # as in Rounds.java
env = dict(os.environ, BENCH_USAGE=usage_file, HOME=work, LC_ALL="C", DEBUGINFOD_URLS="")
Run = collections.namedtuple("Run", "cpu wall own bytes")


def program(name):
    """What follows the flags of the JVM."""
    if name == "rounds":
        return ["-cp", work, "Rounds", *WORK]
    return ["-cp", h2_jar, "org.h2.tools.RunScript", "-url", "jdbc:h2:mem:", "-script",
            os.path.join(work, "java/work.sql")]


def command(tool, name, trace):
    flags = []
    before = [timed, "java"]
    if tool == "weir":
        before = [weir, "record", "-q", "-F", str(HZ), "-o", trace, "--"] + before
    elif tool == "perf -g":
        before = [perf, "record", "-q", "-N", "-F", str(HZ), "-e", "cpu-clock", "-g", "-o", trace, "--"] + before
        flags = ["-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"]
    elif tool.startswith("JFR"):
        period = tool.split()[1]
        flags = ["-Xlog:disable", "-Xlog:all=error:stderr", "-XX:StartFlightRecording:filename=" + trace
                 + f",settings=profile,jdk.ExecutionSample#period={period}ms,jdk.NativeMethodSample#period={period}ms"]
    return before + flags + program(name)


TOOLS = ["none", "weir", "perf -g", "JFR 10 ms", "JFR 1 ms"]
MAINS = {"rounds": "Rounds.main(", "H2": "org.h2.tools.RunScript.main("}


def run_once(tool, name, trace):
    """perf 6.1 aborts when a sample falls into the vdso of some kernels: it may try again."""
    for i in range(PERF_TRIES):
        try:
            return try_once(tool, name, trace)
        except SystemExit:
            if tool != "perf -g":
                raise
    return None


def try_once(tool, name, trace):
    if os.path.exists(usage_file):
        os.unlink(usage_file)
    if os.path.exists(trace):
        os.unlink(trace)
    process = subprocess.Popen(command(tool, name, trace), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=env, text=True)
    out, errors = process.communicate()
    if process.returncode not in (0, 3):
        raise SystemExit(f"{tool}: {name}: status {process.returncode}\n{errors}")
    with open(usage_file, encoding="ascii") as f:
        user, system, _, wall, _ = (int(x) for x in f.read().split())
    own = re.search(r"^cpu (\d+)$", out, re.M)
    size = os.path.getsize(trace) if os.path.exists(trace) else 0
    return Run((user + system) / 1e6, wall / 1e9, int(own[1]) / 1e9 if own else None, size)


def least(runs, field):
    return min(getattr(r, field) for r in runs)


def noise(runs, field):
    seen = sorted(getattr(r, field) for r in runs)
    return seen[1] / seen[0] - 1 if len(seen) > 1 else 0


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


def record_all(name):
    runs = {tool: [] for tool in TOOLS}
    for i in range(rounds):
        for tool in TOOLS[i % 5:] + TOOLS[:i % 5]:
            run = run_once(tool, name, trace_of(name, tool))
            if run:  # else perf has failed each time
                runs[tool].append(run)
        say(f"Java: {name}: round {i + 1} of {rounds}")
    return runs


def trace_of(name, tool):
    return os.path.join(work, f"{name}.{tool.replace(' ', '')}.trace")


STARTS = ("clone3", "start_thread", "_start", "__libc_start_main", "thread_start")
Contents = collections.namedtuple("Contents", "samples lost stacks complete frames with_main")


def contents_of(found, samples, main):
    """What a recording holds, by `samples`: names of functions, outermost last. A walk by frame pointers ends in
    start_thread(), whose caller has none: that is complete, too."""
    package = main.split(".main(")[0].rsplit(".", 2)[0]
    has = lambda names, text: any(text in name for name in names)
    of_program = [names for names in samples if has(names, package)]
    return Contents(found.samples, found.lost, len(samples), sum(names[-1].startswith(STARTS) for names in samples),
                    found.frames, sum(has(names, main) for names in of_program) / max(1, len(of_program)))


def of_weir(trace, main):
    found = stacks.of_weir(weir, outermost, trace)[0]
    answer = subprocess.run([weir, "report", "samples", trace, "--json"], capture_output=True, text=True, check=False)
    rows = (r["stack"] for r in json.loads(answer.stdout)["rows"])
    names = ([f["name"] or "?" for f in reversed(stack)] for stack in rows if any(f["image"] != "[kernel]" for f in stack))
    return contents_of(found, [n for n in names if n], main)


def of_perf(trace, main):
    found = stacks.of_perf(perf, trace, env)
    script = subprocess.run([perf, "script", "--no-inline", "--max-stack", "4096", "-i", trace, "-F", "tid,ip,sym"],
                            capture_output=True, text=True, check=False, env=env).stdout
    samples = ([line.split(None, 1)[1] for line in block.splitlines()[1:] if len(line.split(None, 1)) > 1]
               for block in script.split("\n\n"))
    return contents_of(found, [n for n in samples if n], main)


def number(x, digits=3):
    return "." if x is None else f"{x:.{digits}f}"


def aim(is_reached):
    return "reached" if is_reached else "**not reached**"


def print_overhead(name, runs, aims):
    cpu, wall = least(runs["none"], "cpu"), least(runs["none"], "wall")
    has_own = runs["none"][0].own is not None
    own = least(runs["none"], "own") if has_own else None
    for tool in TOOLS:
        r = runs[tool]
        if not r:
            print(f"| {name} | {tool} | failed {PERF_TRIES} times in each round | | | | |")
            continue
        own_ratio = least(r, "own") / own if has_own else None
        print(f"| {name} | {tool} | {least(r, 'cpu'):.3f} s | {least(r, 'cpu') / cpu:.3f} | {number(own_ratio)} | "
              f"{least(r, 'wall') / wall:.3f} | {least(r, 'bytes') / 1e6:.2f} |")
    field = "own" if has_own else "cpu"
    ratio = least(runs["weir"], field) / least(runs["none"], field)
    spread = max(noise(runs[t], field) for t in ("none", "weir"))
    aims.append((f"{name}: sampling at {HZ} Hz costs less than 3 % of the program's CPU time",
                 f"{ratio:.3f} (noise {spread:.3f})", ratio < OVERHEAD_AIM))


def print_stacks(name, aims):
    for tool, of_tool in (("weir", of_weir), ("perf -g", of_perf)):
        if not os.path.exists(trace_of(name, tool)):
            continue
        try:
            c = of_tool(trace_of(name, tool), MAINS[name])
        except (SystemExit, subprocess.CalledProcessError):
            if tool == "weir":
                raise
            print(f"| {name} | {tool} | cannot be read by its own report | | | | |")
            continue
        share = c.complete / max(1, c.stacks)
        print(f"| {name} | {tool} | {c.samples} | {c.lost} | {100 * share:.2f} % | "
              f"{c.frames / max(1, c.samples):.1f} | {100 * c.with_main:.1f} % |")
        if tool == "weir":
            aims.append((f"{name}: 99 % of the stacks reach their thread's start", f"{100 * share:.2f} %",
                         share >= COMPLETE_AIM))
            aims.append((f"{name}: 99 % of those with methods of its own reach main()", f"{100 * c.with_main:.1f} %",
                         c.with_main >= COMPLETE_AIM))


def nanos_of_a_call(options):
    trace = os.path.join(work, "calls.trace")
    before = [weir, "record", "-q", "-o", trace, *options, "--"] if options else []
    done = subprocess.run(before + ["java", "-cp", work, "Rounds", "10", "10", CALLS], capture_output=True, text=True,
                          check=False, env=env)
    found = re.search(r"^call ([\d.]+)$", done.stdout, re.M)
    if done.returncode not in (0, 3) or not found:
        return None
    if options:  # as long as no call is recorded, it costs nothing
        flat = json.loads(subprocess.run([weir, "report", "flat", trace, "--json"], capture_output=True, text=True,
                                         check=False).stdout)
        calls = sum(r["calls"] or 0 for r in flat["rows"] if "Rounds.leaf(" in r["name"])
        if calls != CALL_ROUNDS * int(CALLS):
            say(f"Java: {calls} calls of leaf() were recorded instead of {CALL_ROUNDS * int(CALLS)}")
            return None
    return float(found[1])


def print_calls(aims):
    """A method that does next to nothing, in a loop that is compiled."""
    kinds = {"none": [], "events": ["--no-sample", "--events", "Rounds.leaf"],
             "tree": ["--no-sample", "--tree", "--events", "Rounds.leaf"]}
    seen = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, options in kinds.items():
            seen[kind].append(nanos_of_a_call(options))
    if None in seen["none"] or None in seen["events"]:
        print("Method events: not measured, weir records none of Java here.\n")
        return
    native = min(seen["none"])
    print("| a call of a method that does next to nothing | ns | ns more |")
    print("|---|--:|--:|")
    for kind, nanos in seen.items():
        if None not in nanos:
            print(f"| {kind} | {min(nanos):.1f} | {min(nanos) - native:.1f} |")
    print()
    more = min(seen["events"]) - native
    aims.append((f"an instrumented call costs at most {CALL_AIM_NS:.0f} ns", f"{more:.1f} ns", more <= CALL_AIM_NS))


def hurry():
    """Whether the programs run before those of others."""
    try:
        os.nice(-19)
    except PermissionError:
        return False
    return True


def build():
    subprocess.run(["javac", "-d", work, os.path.join(here, "workloads/Rounds.java")], check=True)
    subprocess.run([sys.executable, os.path.join(here, "../tests/fixtures/java/make_work.py"),
                    os.path.join(work, "java"), "40" if quick else "120"], check=True)


def main():
    print("## Java\n")
    if not shutil.which("javac"):
        print("Not measured: there is no JDK here.\n")
        return
    build()
    is_first = hurry()
    version = subprocess.run(["java", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[1]
    print(f"{version}; {rounds} rounds, interleaved, minima. Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; "
          f"load average at the start: {' '.join(f'{x:.2f}' for x in os.getloadavg())}; {'nice -19' if is_first else 'usual priority'}.\n")
    names, aims = ["rounds"] + ["H2"] * os.path.exists(h2_jar), []
    seen = {name: record_all(name) for name in names}
    print("The ratios are to the same program without any recorder: of the CPU time of the whole process, of that of "
          "the thread that works, measured by itself when it is warm, and of the time that passed.\n")
    print("| program | recorder | CPU | ratio | warm thread | wall ratio | MB |\n|---|---|--:|--:|--:|--:|--:|")
    for name, runs in seen.items():
        print_overhead(name, runs, aims)
    print("\n| program | recorder | samples | lost | complete stacks | frames a sample | with main(), of those with its methods |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name in names:
        print_stacks(name, aims)
    print()
    print_calls(aims)
    print("| aim | figures | |\n|---|---|---|")
    for what, figures, is_reached in aims:
        print(f"| {what} | {figures} | {aim(is_reached)} |")
    print()


main()
