# SPDX-License-Identifier: MIT
"""Function entries and exits against uftrace: one run, the same programs, interleaved.

  events.py WORK-FOLDER TOOLS-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (fewer calls, 2 rounds), BENCH_ROUNDS=n. Times are the
smallest of the rounds: on a machine that others use too, noise only adds. The cost of a call is that of
the traced program itself (its CPU time, as it measures it); wall times are those of the whole command,
the recorder included.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

work, tools = sys.argv[1:3]
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "2" if quick else "5"))
weir = os.environ["WEIR"]
uftrace = shutil.which("uftrace")
CALL_ROUNDS = 250_000 if quick else 2_500_000
PAIR_NS_AIM, PAIR_BYTES_AIM, COST_AIM, REPORT_AIM = 40.0, 8.0, 3.0, 10.0
CFLAGS = ["-std=gnu17", "-O2", "-g", "-D_GNU_SOURCE"]


def run(argv, cwd=work):
    """(wall s, CPU s of all processes, standard output)"""
    with open(os.path.join(work, "out"), "w+") as out:
        start = time.monotonic()
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
                             cwd=cwd)
        _, status, usage = os.wait4(p.pid, 0)
        wall = time.monotonic() - start
        p.returncode = status
        if os.waitstatus_to_exitcode(status) not in (0, 3):
            raise SystemExit(f"{argv}: status {os.waitstatus_to_exitcode(status)}")
        out.seek(0)
        return wall, usage.ru_utime + usage.ru_stime, out.read()


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


class Tool:
    """How a tool records a command, and how it reports."""

    def __init__(self, name, data, record, report, build):
        self.name, self.data, self.record, self.report, self.build = name, data, record, report, build
        self.seen, self.failure = [], None

    def measure(self, command, tries=3, shows=None):
        """A peer that fails is tried again, and then left out, which is said; weir is not. `shows`: is called
        after each run."""
        if self.failure:
            return
        try:
            self.measure_once(command)
            if shows:
                shows(self)
        except SystemExit as e:
            if self.record[0] == weir:
                raise
            print(f"bench: {self.name} failed: {e}", file=sys.stderr)
            if tries == 1:
                self.failure = str(e)
            else:
                self.measure(command, tries - 1, shows)

    def measure_once(self, command):
        data = os.path.join(work, self.data)
        shutil.rmtree(data, ignore_errors=True)
        wall, cpu, out = run([w.replace("DATA", data) for w in self.record] + command)
        report_wall, _, _ = run([w.replace("DATA", data) for w in self.report])
        self.seen.append({"wall": wall, "cpu": cpu, "out": out, "bytes": size_of(data),
                          "report": report_wall})

    def least(self, key):
        return min(s[key] for s in self.seen)


def tools_of():
    list_ = [
        Tool("weir", "w1", [weir, "record", "-q", "--functions", "*", "--no-sample", "-o", "DATA", "--"],
             [weir, "report", "flat", "DATA"], "plain"),
        Tool("weir with samples", "w2", [weir, "record", "-q", "--functions", "*", "-o", "DATA", "--"],
             [weir, "report", "flat", "DATA"], "plain"),
        Tool("weir --tree", "w3", [weir, "record", "-q", "--functions", "*", "--tree", "-o", "DATA", "--"],
             [weir, "report", "flat", "DATA"], "plain"),
        Tool("weir, -pg build", "w4",
             [weir, "record", "-q", "--functions", "*", "--no-sample", "-o", "DATA", "--"],
             [weir, "report", "flat", "DATA"], "pg"),
    ]
    if uftrace:
        record = [uftrace, "record", "--no-pager", "--no-libcall", "-d", "DATA"]
        report = [uftrace, "report", "--no-pager", "-d", "DATA"]
        list_ += [Tool("uftrace -P.", "u1", record + ["-P", "."], report, "plain"),
                  Tool("uftrace, -pg build", "u2", record, report, "pg")]
    return list_


def number(x, digits=1):
    return f"{x:,.{digits}f}"


def aim(ok):
    return "reached" if ok else "**not reached**"


UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 6e10}


def shown_base(tool, options=()):
    """What the tool's report says of the last run: ns of base of inner and outer"""
    data = os.path.join(work, tool.data)
    if tool.record[0] == weir:
        report = run([weir, "report", "flat", data, "--json", *options])[2]
        return sum(r["base"] for r in json.loads(report)["rows"] if r["name"] in ("inner", "outer"))
    report = run([w.replace("DATA", data) for w in tool.report])[2]
    return sum(float(m[1]) * UNITS[m[2]] for m in re.finditer(
        r"^ *[\d.]+ +[a-z]+ +([\d.]+) +([a-z]+) +\d+  (?:inner|outer)$", report, re.M))


def note_shown(tool):
    seen = tool.seen[-1]
    seen["shown"] = shown_base(tool)
    if tool.record[0] == weir:
        seen["uncorrected"] = shown_base(tool, ("--uncorrected",))


def print_shown(list_, pairs, native_ns):
    """A program that only calls: what is shown beyond the truth is the cost of measuring."""
    print("What reports show as the time of a call, base of the two functions (elapsed time with --tree and "
          "uftrace, CPU time else):\n")
    print("| | ns a call |")
    print("|---|--:|")
    print(f"| without any tool, main included | {number(native_ns, 2)} |")
    for t in list_:
        if t.failure:
            continue
        print(f"| {t.name} | {number(t.least('shown') / pairs, 2)} |")
        if t.record[0] == weir:
            print(f"| {t.name}, report --uncorrected | {number(t.least('uncorrected') / pairs, 2)} |")
    print()


def print_calls():
    programs = {}
    for build, flags in (("plain", []), ("pg", ["-pg"])):
        programs[build] = os.path.join(work, f"calls-{build}")
        subprocess.run(["gcc", *CFLAGS, *flags, "-o", programs[build],
                        os.path.join(root, "bench/workloads/calls.c")], check=True)
    native, list_ = [], tools_of()
    for _ in range(rounds):
        native.append([int(w) for w in run([programs["plain"], str(CALL_ROUNDS)])[2].split()])
        for t in list_:
            t.measure([programs[t.build], str(CALL_ROUNDS)], shows=note_shown)
    pairs = native[0][0]
    native_ns = min(n[1] for n in native) / pairs
    native_wall = min(n[2] for n in native)
    print(f"\nA program that does nothing but call ({pairs:,} calls, {number(native_ns, 2)} ns each):\n")
    print("| | ns a call | ns more | bytes a call | times slower | report, s |")
    print("|---|--:|--:|--:|--:|--:|")
    figures = {}
    for t in list_:
        own = [[int(w) for w in s["out"].split()] for s in t.seen]
        ns = min(n[1] for n in own) / pairs
        figures[t.name] = (ns - native_ns, t.least("bytes") / pairs, t.least("report"))
        print(f"| {t.name} | {number(ns)} | {number(ns - native_ns)} | "
              f"{number(t.least('bytes') / pairs, 2)} | "
              f"{number(min(n[2] for n in own) / native_wall)} | {number(t.least('report'), 2)} |")
    print()
    print_shown(list_, pairs, native_ns)
    ns, size, report = figures["weir"]
    print(f"- at most {PAIR_NS_AIM:.0f} ns a call: {number(ns)}, {aim(ns <= PAIR_NS_AIM)}")
    print(f"- at most {PAIR_BYTES_AIM:.0f} bytes a call: {number(size, 2)}, "
          f"{aim(size <= PAIR_BYTES_AIM)}")
    tree = figures["weir --tree"][0]
    print(f"- the tree kept in the program at most {PAIR_NS_AIM:.0f} ns a call: {number(tree)}, "
          f"{aim(tree <= PAIR_NS_AIM)}")
    if uftrace:
        for ours, theirs in (("weir", "uftrace -P."), ("weir, -pg build", "uftrace, -pg build")):
            ratio = figures[theirs][0] / figures[ours][0]
            print(f"- {ours} against {theirs}: 1/{number(ratio, 2)} of the cost "
                  f"(aim 1/{COST_AIM:.0f}), {aim(ratio >= COST_AIM)}; "
                  f"1/{number(figures[theirs][1] / figures[ours][1])} of the bytes")
            ratio = figures[theirs][2] / figures[ours][2]
            print(f"- report of the same run: {number(ratio)} times as fast as {theirs} "
                  f"(aim {REPORT_AIM:.0f}), {aim(ratio >= REPORT_AIM)}")


def build_weir(build, flags):
    """weir itself is the real program: C, with symbols, many small functions."""
    out = os.path.join(work, f"build-{build}")
    subprocess.run(["make", "-s", "-j2", f"BUILD={out}", f"OPT=-O2 {flags}", f"{out}/weir"],
                   cwd=root, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(out, "weir")


def print_real():
    libc = re.search(r"libc\.so\.6 => (\S+)", subprocess.run(
        ["ldd", weir], stdout=subprocess.PIPE, text=True, check=True).stdout)[1]
    programs = {"plain": build_weir("plain", ""), "pg": build_weir("pg", "-pg")}

    def command(build):
        return [programs[build], "symbols", "merge", "-o", os.path.join(work, "merged"), libc]
    native, list_ = [], tools_of()
    for _ in range(2 if quick else 3):
        native.append(run(command("plain"))[0])
        for t in list_:
            t.measure(command(t.build))
    base = min(native)
    events = re.search(r"([\d,]+) events", subprocess.run(
        [weir, "record", "--functions", "*", "--no-sample", "-o", os.path.join(work, "w1"), "--"] +
        command("plain"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr)
    pairs = int(events[1].replace(",", "")) / 2 if events else 0
    print(f"\nA real program, all of its functions (`weir symbols merge libc.so.6`, "
          f"{number(base, 2)} s, {pairs:,.0f} calls):\n")
    print("| | wall, s | times slower | CPU, s | MB | report, s |")
    print("|---|--:|--:|--:|--:|--:|")
    for t in list_:
        if t.failure:
            print(f"| {t.name} | failed three times in a row | | | | |")
            continue
        print(f"| {t.name} | {number(t.least('wall'), 2)} | {number(t.least('wall') / base)} | "
              f"{number(t.least('cpu'), 2)} | {number(t.least('bytes') / 1e6)} | "
              f"{number(t.least('report'), 2)} |")
    print()


print("## Function entries and exits")
print()
print(f"Against {subprocess.run([uftrace, '--version'], stdout=subprocess.PIPE, text=True).stdout.strip()}."
      if uftrace else "uftrace is not installed: weir alone.")
print_calls()
print_real()
