# SPDX-License-Identifier: MIT
"""What weir writes for other tools: each format of weir export, from one trace of a million samples and one of calls.

  exchange.py WORK-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (a tenth of the samples, one round), BENCH_ROUNDS=n. Each part
is a function that prints its table (PARTS). The samples are an import: 5,000 stacks of 5 to 19
functions, the one at rank k k times as rare as the first, in three threads; the calls are a recording's shape:
pairs of enter and leave, eight deep. Times are the smallest of the rounds, CPU time and largest resident memory with them.
"""
import os
import random
import subprocess
import sys
import time

work = sys.argv[1]
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "1" if quick else "5"))
weir = os.environ["WEIR"]
SAMPLES = 100_000 if quick else 1_000_000
CALLS = 50_000 if quick else 500_000
SECONDS_AIM = 2.0  # for a million samples
FORMATS = ("folded", "pprof", "firefox", "speedscope", "perfetto", "chrome", "otlp", "callgrind")


def run_timed(*argv):
    """(wall s, CPU s, largest resident MB)"""
    start = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise SystemExit(f"{argv[1:4]}: status {process.returncode}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def best(*argv):
    return min(run_timed(*argv) for _ in range(rounds))


def imported(kind, name, lines):
    text, trace = os.path.join(work, f"{name}.txt"), os.path.join(work, f"{name}.weir")
    with open(text, "w") as file:
        file.writelines(lines)
    run_timed(weir, "import", kind, text, "-o", trace)
    os.unlink(text)
    return trace


def sample_lines():
    pick = random.Random(1)
    stacks = []
    for _ in range(5000):
        depth = pick.randint(4, 18)
        stacks.append(" ".join(["main"] + [f"f{pick.randint(0, min(400, 10 * (k + 1)))}" for k in range(depth)]))
    weights = [1 / (rank + 1) for rank in range(len(stacks))]
    for stack in pick.choices(stacks, weights, k=SAMPLES):
        yield f"{pick.randint(1, 3)}: {stack}\n"


def call_lines():
    depth, t = 8, 0
    for i in range(CALLS // depth):
        for level in range(depth):
            yield f"{t} enter f{level * 50 + i % 50}\n"
            t += 7
        for level in reversed(range(depth)):
            yield f"{t} leave f{level * 50 + i % 50}\n"
            t += 3


def table(trace, what, aim):
    print(f"### Writing {what}")
    print()
    print(f"The trace has {os.path.getsize(trace) / 1e6:.1f} MB. Whole commands, smallest of {rounds}.")
    print()
    print("| format | s | CPU s | largest resident MB | file MB |" + (" aim: 2 s |" if aim else ""))
    print("|---|--:|--:|--:|--:|" + ("---|" if aim else ""))
    for form in FORMATS:
        path = os.path.join(work, f"exported.{form}")
        wall, cpu, memory = best(weir, "export", form, trace, "-o", path)
        print(f"| {form} | {wall:.2f} | {cpu:.2f} | {memory:.0f} | {os.path.getsize(path) / 1e6:.1f} |"
              + ((" met |" if wall <= SECONDS_AIM else " missed |") if aim else ""))
        os.unlink(path)
    print()


def write_samples():
    table(imported("samples", "samples", sample_lines()), f"{SAMPLES:,} samples", not quick)


def write_calls():
    table(imported("events", "calls", call_lines()), f"{CALLS:,} calls", False)


PARTS = (write_samples, write_calls)

print("bench: exchange", file=sys.stderr)
print("## Exchange")
print()
for part in PARTS:
    part()
