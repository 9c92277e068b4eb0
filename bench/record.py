# SPDX-License-Identifier: MIT
"""weir record against perf record, side by side: one run, the same workloads, interleaved.

  record.py WORK-FOLDER TOOLS-FOLDER    prints Markdown

The environment: WEIR, PERF (programs), BENCH_QUICK=1 (2 rounds, 2 workloads), BENCH_ROUNDS=n,
BENCH_ONLY=perl,deep. CPU time is that of the target (user and system, from its own wait4), or of
the recorder (all that it and its children used, less the target). Everything is the smallest of the
rounds: on a machine that others use too, noise only adds.
"""
import collections
import json
import os
import subprocess
import sys
import threading
import time

import stacks

HZ = 999
LONG_HZ = 9999
LONG_ROUNDS = 3
REPORT_SECONDS_MAX = 120
REPORT_ROUNDS = 3
HWM_EVERY_S = 0.02
PERF_TRIES = 4
NOISE_MAX = 0.05  # of CPU time; above it, overheads of a few percent cannot be seen

work, tools = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
inputs = os.path.join(here, "workloads")
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "2" if quick else "5"))
weir, perf = os.environ["WEIR"], os.environ.get("PERF", "perf")
timed, outermost = (os.path.join(tools, n) for n in ("timed", "outermost"))
usage_file = os.path.join(work, "usage")
# perf must not ask a server for symbols: it would be unfair.
env = dict(os.environ, BENCH_USAGE=usage_file, HOME=work, LC_ALL="C", DEBUGINFOD_URLS="")

perf_failures = [0]
Run = collections.namedtuple("Run", "cpu wall recorder_cpu recorder_kb total_wall")
Recorded = collections.namedtuple("Recorded", "runs contents bytes trace own")


def make_input(name, *arguments):
    path = os.path.join(work, name)
    with open(path, "w", encoding="ascii") as f:
        subprocess.run(
            [sys.executable, os.path.join(inputs, "make_input.py"), *arguments],
            stdout=f, check=True,
        )
    return path


def workloads():
    """Name -> command. About one and a half seconds of CPU time each."""
    cc1 = subprocess.run(
        ["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True
    ).stdout.strip()
    source, text = make_input("input.c", "c", "110"), make_input("input.txt", "text", "7000000")
    of = lambda name: os.path.join(inputs, name)
    all_of_them = {
        "perl": ["perl", of("strings.pl"), "22000"],
        "python": ["/usr/bin/python3", of("objects.py"), "5000"],
        "cc1": [cc1, "-quiet", "-O2", source, "-o", "/dev/null"],
        "sqlite": ["sqlite3", ":memory:", ".read " + of("queries.sql")],
        "xz -T2": ["xz", "-T2", "-3", "--block-size=1MiB", "-c", text],
        "deep": [os.path.join(tools, "deep"), "8000"],
        "buffer": [os.path.join(tools, "buffer"), "1300000"],
        "switches": [os.path.join(tools, "switches"), "200000"],
        "dd bs=1": ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=3000000"],
    }
    names = list(all_of_them)
    if os.environ.get("BENCH_ONLY"):
        names = os.environ["BENCH_ONLY"].split(",")
    elif quick:
        names = ["perl", "deep"]
    return {name: all_of_them[name] for name in names}


def long_command(command):
    """The same with twice the rounds, for those whose last argument is their number."""
    return command[:-1] + [str(int(command[-1]) * 2)]


def tool_command(tool, trace, hz):
    # -N: perf would copy every image into ~/.debug
    perf_record = [perf, "record", "-q", "-N", "-F", str(hz), "-e", "cpu-clock", "-o", trace]
    return {
        "none": [],
        "weir": [weir, "record", "-q", "-F", str(hz), "-o", trace, "--"],
        "perf -g": perf_record + ["-g", "--"],
        "perf dwarf": perf_record + ["--call-graph", "dwarf", "--"],
    }[tool]


TOOLS = ["weir", "perf -g", "perf dwarf", "none"]


def watch_memory(pid, peak, stop):
    """The highest resident size of the recorder alone; wait4's also counts the target."""
    while not stop.wait(HWM_EVERY_S):
        try:
            with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as f:
                peak[0] = next((int(l.split()[1]) for l in f if l.startswith("VmHWM")), peak[0])
        except OSError:
            return


def run_once(tool, command, trace, hz):
    """perf 6.1 aborts when a sample falls into the vdso of some kernels: it may try again."""
    for _ in range(PERF_TRIES):
        status, run, errors = try_once(tool, command, trace, hz)
        if not status:
            return run
        if tool in ("none", "weir"):
            break
        perf_failures[0] += 1
    raise SystemExit("%s: %s: status %d\n%s" % (tool, command[0], status, errors.decode()))


def try_once(tool, command, trace, hz):
    if os.path.exists(usage_file):
        os.unlink(usage_file)
    peak, stop = [0], threading.Event()
    start = time.monotonic()
    process = subprocess.Popen(
        tool_command(tool, trace, hz) + [timed] + command,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env,
    )
    watcher = threading.Thread(target=watch_memory, args=(process.pid, peak, stop))
    if tool != "none":
        watcher.start()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    total_wall = time.monotonic() - start
    process.returncode = status
    stop.set()
    if tool != "none":
        watcher.join()
    if status:
        return status, None, errors
    with open(usage_file, encoding="ascii") as f:
        user, system, target_kb, wall_ns, _ = (int(x) for x in f.read().split())
    cpu = (user + system) / 1e6
    kb = usage.ru_maxrss if usage.ru_maxrss > target_kb else peak[0]
    return 0, Run(cpu, wall_ns / 1e9, usage.ru_utime + usage.ru_stime - cpu, kb, total_wall), errors


def contents_of(tool, trace):
    if tool == "weir":
        return stacks.of_weir(weir, outermost, trace)
    return stacks.of_perf(perf, trace, env), None


def share_complete(contents):
    return contents.complete / max(contents.stacks, 1)


def record_all(name, command, n_rounds, hz):
    """Interleaved rounds, each beginning with another tool. The last recording is looked into; of
    perf's dwarf stacks the best one: where libc has a separate debug file, it depends on the order
    of samples whether perf takes call-frame information from the wrong one."""
    runs, kept = {tool: [] for tool in TOOLS}, {}
    for i in range(n_rounds):
        for tool in TOOLS[i % 4 :] + TOOLS[: i % 4]:
            trace = os.path.join(work, "%s.%d.%s.%d" % (name, hz, tool, i)).replace(" ", "")
            runs[tool].append(run_once(tool, command, trace, hz))
            if tool == "perf dwarf" or (tool != "none" and i == n_rounds - 1):
                contents, own = contents_of(tool, trace)
                found = Recorded(runs[tool], contents, os.path.getsize(trace), trace, own)
                best = share_complete(kept[tool].contents) if tool in kept else 0
                if share_complete(contents) >= best:
                    kept[tool] = found
        say("%s at %d Hz: round %d of %d" % (name, hz, i + 1, n_rounds))
    kept["none"] = Recorded(runs["none"], None, 0, None, None)
    return kept


def report_seconds(command):
    """Smallest wall time of the rounds, caches warm; None when it took too long."""
    least = None
    for i in range(REPORT_ROUNDS + 1):
        start = time.monotonic()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env=env, timeout=REPORT_SECONDS_MAX, check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        seconds = time.monotonic() - start
        if done.returncode not in (0, 3):
            raise SystemExit("%s: status %d" % (" ".join(command), done.returncode))
        if i or seconds > 10:
            least = seconds if least is None else min(least, seconds)
        if seconds > 10:
            break
    return least


def reports(recorded):
    """Seconds of each way to a report over the same recording."""
    by_perf = lambda tool, *more: [perf, "report", "-i", recorded[tool].trace, "--stdio",
                                   "--no-children", *more]
    return {
        "weir report": report_seconds([weir, "report", recorded["weir"].trace]),
        "weir report flat": report_seconds([weir, "report", "flat", recorded["weir"].trace]),
        "weir report tree": report_seconds([weir, "report", "tree", recorded["weir"].trace]),
        "perf -g": report_seconds(by_perf("perf -g")),
        "perf dwarf": report_seconds(by_perf("perf dwarf")),
        "perf dwarf --no-inline": report_seconds(by_perf("perf dwarf", "--no-inline")),
    }


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


def least(runs, field):
    return min(getattr(r, field) for r in runs)


def noise(runs):
    """How well the smallest is known: the distance to the next one, as a share."""
    cpu = sorted(r.cpu for r in runs)
    return cpu[1] / cpu[0] - 1


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" + "--:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_recording(results):
    rows = []
    for name, (recorded, _) in results.items():
        bare = recorded["none"].runs
        cpu, wall = least(bare, "cpu"), least(bare, "wall")
        rows.append([name, "none", "%.3f s" % cpu, "1.000", "1.000"] + ["."] * 7)
        for tool in TOOLS[:3]:
            r = recorded[tool]
            c = r.contents
            rows.append([
                name, tool, "%.3f s" % least(r.runs, "cpu"),
                "%.3f" % (least(r.runs, "cpu") / cpu), "%.3f" % (least(r.runs, "wall") / wall),
                "%.0f ms" % (least(r.runs, "recorder_cpu") * 1e3),
                "%.1f MB" % (least(r.runs, "recorder_kb") / 1024),
                str(c.samples), str(c.lost), "%.1f" % (r.bytes / max(c.samples, 1)),
                "%.2f %%" % (100 * share_complete(c)),
                "%.1f" % (c.frames / max(c.samples, 1)),
            ])
    table(["workload", "recorder", "target CPU", "ratio", "wall ratio", "recorder CPU",
           "recorder RSS", "samples", "lost", "bytes/sample", "complete stacks", "frames/sample"],
          rows)


def seconds_text(s):
    return "> %d s" % REPORT_SECONDS_MAX if s is None else "%.0f ms" % (s * 1e3)


def ratio_text(slow, fast):
    text = "%.0f" % ((slow or REPORT_SECONDS_MAX) / fast)
    return "> " + text if slow is None else text


def print_reports(results):
    ways = ["weir report", "weir report flat", "weir report tree", "perf -g", "perf dwarf",
            "perf dwarf --no-inline"]
    table(["trace", "samples weir / dwarf"] + ways + ["dwarf : weir report"], [
        [name, "%d / %d" % (r["weir"].contents.samples, r["perf dwarf"].contents.samples)]
        + [seconds_text(t[way]) for way in ways] + [ratio_text(t["perf dwarf"], t["weir report"])]
        for name, (r, t) in results.items()
    ])


def print_bytes(results):
    rows = []
    names = {11: "records", 8: "stacks", 7: "frames", 2: "strings", 10: "symbols"}
    for name, (recorded, _) in results.items():
        by_type = stacks.weir_chunk_bytes(recorded["weir"].trace)
        n = recorded["weir"].contents.samples
        rest = sum(by_type.values()) - sum(by_type[k] for k in names)
        rows.append([name, str(n)] + ["%.1f" % (by_type[k] / n) for k in names]
                    + ["%.1f" % (rest / n)])
    table(["bytes a sample in", "samples"] + list(names.values()) + ["rest"], rows)


class Verdicts:
    def __init__(self):
        self.rows = []

    def add(self, aim, figures):
        """figures: (name, text, verdict) with verdict True, False or a phrase."""
        word = lambda v: {True: "reached", False: "not reached"}.get(v, v)
        groups = collections.OrderedDict()
        for name, text, verdict in figures:
            groups.setdefault(word(verdict), []).append("%s %s" % (name, text))
        self.rows.append([aim] + ["; ".join(
            "**%s**: %s" % (verdict, ", ".join(which)) for verdict, which in groups.items())])

    def print(self):
        print("| aim | figures |\n|---|---|")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")
        print()


def tolerance_of(recorded, peer):
    return max(noise(recorded[t].runs) for t in ("none", "weir", peer))


def compare(ours, theirs, tolerance, unit=1.0):
    """The same rule in both directions: a lead inside the noise is no lead. `unit` is what a whole
    run of the target amounts to in the figures that are compared."""
    if tolerance > NOISE_MAX:
        return "too noisy to tell"
    if abs(ours - theirs) <= tolerance * unit:
        return "within the noise"
    return ours < theirs


def cost_figures(long_result, peer):
    for name, (recorded, _) in long_result.items():
        ours, theirs = sample_cost_us(recorded, "weir"), sample_cost_us(recorded, peer)
        tolerance = tolerance_of(recorded, peer)
        whole = 1e6 * least(recorded["none"].runs, "cpu") / recorded["weir"].contents.samples
        yield (name, "%.1f : %.1f us (noise %.1f)" % (ours, theirs, tolerance * whole),
               compare(ours, theirs, tolerance, whole))


def overhead_figures(results, peer):
    for name, (recorded, _) in results.items():
        bare = least(recorded["none"].runs, "cpu")
        ours = least(recorded["weir"].runs, "cpu") / bare
        theirs = least(recorded[peer].runs, "cpu") / bare
        tolerance = tolerance_of(recorded, peer)
        yield (name, "%.3f : %.3f (noise %.3f)" % (ours, theirs, tolerance),
               compare(ours, theirs, tolerance))


def total_figures(results, peer):
    """Target and recorder together, where the machine has no core to spare."""
    for name, (recorded, _) in results.items():
        bare = least(recorded["none"].runs, "cpu")
        cost = lambda t: min(r.cpu + r.recorder_cpu for r in recorded[t].runs) / bare
        yield (name, "%.3f : %.3f" % (cost("weir"), cost(peer)),
               compare(cost("weir"), cost(peer), tolerance_of(recorded, peer)))


def print_verdicts(results, long_result):
    v = Verdicts()
    v.add("target's CPU overhead no more than `perf record --call-graph dwarf` (weir : perf)",
          overhead_figures(results, "perf dwarf"))
    v.add("target's CPU overhead no more than `perf record -g` (weir : perf)",
          overhead_figures(results, "perf -g"))
    v.add("target and recorder together no more than perf dwarf (weir : perf)",
          total_figures(results, "perf dwarf"))
    if long_result:
        v.add("a sample costs the target no more than with perf dwarf (weir : perf)",
              cost_figures(long_result, "perf dwarf"))
        v.add("a sample costs the target no more than with `perf record -g` (weir : perf)",
              cost_figures(long_result, "perf -g"))
    per_sample = lambda r: r.bytes / r.contents.samples
    shares = [(n, per_sample(r["perf dwarf"]) / per_sample(r["weir"]))
              for n, (r, _) in results.items()]
    v.add("bytes a sample at most 1/50 of perf dwarf's",
          [(n, "1/%.0f" % s, s >= 50) for n, s in shares])
    v.add("bytes a sample at most 8 in the whole file (informational)",
          [(n, "%.1f" % per_sample(r["weir"]), per_sample(r["weir"]) <= 8)
           for n, (r, _) in results.items()])
    complete = [(n, r["weir"].contents) for n, (r, _) in results.items()]
    v.add("at least 99.9 % of stacks reach the thread's start",
          [(n, "%d of %d" % (c.complete, c.stacks), c.complete >= 0.999 * c.stacks)
           for n, c in complete])
    v.add("weir's own count of complete stacks is the judge's",
          [(n, "%d : %d" % (r["weir"].own[1], r["weir"].contents.complete),
            r["weir"].own == (r["weir"].contents.stacks, r["weir"].contents.complete))
           for n, (r, _) in results.items()])
    v.add("no sample lost", [(n, str(c.lost), c.lost == 0) for n, c in complete])
    both = dict(results, **long_result)
    v.add("`weir report` 10 times faster than `perf report --stdio --no-children` on dwarf stacks",
          [(n, ratio_text(t["perf dwarf"], t["weir report"]) + " times",
            (t["perf dwarf"] or REPORT_SECONDS_MAX) >= 10 * t["weir report"])
           for n, (_, t) in both.items()])
    v.print()


def sample_cost_us(recorded, tool):
    extra = least(recorded[tool].runs, "cpu") - least(recorded["none"].runs, "cpu")
    return 1e6 * extra / recorded[tool].contents.samples


def print_long(recorded):
    table(["recorder", "target CPU", "a sample costs the target", "recorder CPU", "recorder RSS",
           "samples", "lost", "bytes/sample", "complete stacks"], [
        [tool, "%.3f s" % least(r.runs, "cpu"), "%.1f us" % sample_cost_us(recorded, tool),
         "%.0f ms" % (least(r.runs, "recorder_cpu") * 1e3),
         "%.1f MB" % (least(r.runs, "recorder_kb") / 1024), str(r.contents.samples),
         str(r.contents.lost), "%.1f" % (r.bytes / r.contents.samples),
         "%.2f %%" % (100 * share_complete(r.contents))]
        for tool, r in ((t, recorded[t]) for t in TOOLS[:3])
    ])
    print("The target alone: %.3f s.\n" % least(recorded["none"].runs, "cpu"))


SHORT = ["sh", "-c", "for i in $(seq 800); do /bin/true; done"]


def short_samples(tool, trace):
    """How many samples a tool has of the short processes, and ours the CPU time, too, in ms."""
    if tool == "weir":
        subprocess.run([weir, "record", "-q", "-o", trace, "--", *SHORT], env=env, check=True)
        report = json.loads(subprocess.run([weir, "report", trace, "--json"], env=env, check=False,
                                           capture_output=True).stdout)
        return report["run"]["samples"], report["run"]["cpu_ns"] / 1e6
    command = [perf, "record", "-q", "-N", "-F", str(HZ), "-e", "cpu-clock", "-o", trace]
    subprocess.run(command + (["-a"] if tool == "perf -a" else []) + ["--", *SHORT], env=env,
                   stderr=subprocess.DEVNULL, check=True)
    names = subprocess.run([perf, "script", "-i", trace, "-F", "comm"], env=env, check=False,
                           capture_output=True, text=True).stdout.split()
    return sum(n in ("sh", "true", "seq", "perf-exec") for n in names), None


def print_short():
    print("## Short processes\n\n800 times /bin/true from a shell at %d Hz: a sample stands for a "
          "millisecond of CPU time.\n" % HZ)
    rows = []
    for tool in ("weir", "perf", "perf -a"):
        samples, cpu_ms = short_samples(tool, os.path.join(work, "short"))
        rows.append([tool, str(samples), "." if cpu_ms is None else "%.0f ms" % cpu_ms])
    table(["recorder", "samples", "CPU time by the kernel's accounts"], rows)


def main():
    commands = workloads()
    results, long_result = {}, {}
    for name, command in commands.items():
        recorded = record_all(name, command, rounds, HZ)
        say("%s: reports" % name)
        results[name] = recorded, reports(recorded)
    for name in () if quick else ("python", "deep"):
        if name in commands:
            # At ten times the frequency, what a sample costs the target shows above the noise.
            recorded = record_all(name, long_command(commands[name]), LONG_ROUNDS, LONG_HZ)
            long_result["%s, %d Hz" % (name, LONG_HZ)] = recorded, reports(recorded)
    print("## Aims\n")
    print("Noise is the distance between the two best runs, the larger of those compared. A lead "
          "or a lag\nsmaller than it is *within the noise*; above %.0f %% it is *too noisy to tell*.\n"
          % (100 * NOISE_MAX))
    print_verdicts(results, long_result)
    print("## Recording at %d Hz\n\n%d rounds, interleaved, minima.\n" % (HZ, rounds))
    print_recording(results)
    if perf_failures[0]:
        print("perf record aborted %d times and was run again.\n" % perf_failures[0])
    print_bytes(results)
    if long_result:
        print("## Recording at %d Hz\n\n%d rounds, interleaved, minima.\n" % (LONG_HZ, LONG_ROUNDS))
        for name, (recorded, _) in long_result.items():
            print("### %s\n" % name)
            print_long(recorded)
    print_short()
    print("## Time to a report\n\nWall time, caches warm, smallest of %d.\n" % REPORT_ROUNDS)
    print_reports(dict(results, **long_result))


main()
