# SPDX-License-Identifier: MIT
"""What weir writes for other tools and reads of them: each format of weir export, from one trace of a million samples and
one of calls, and files of other tools through weir import.

  exchange.py WORK-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (a tenth of the samples, one round), BENCH_ROUNDS=n. Each part
is a function that prints its table (PARTS). The samples are an import: 5,000 stacks of 5 to 19
functions, the one at rank k k times as rare as the first, in three threads; the calls are a recording's shape:
pairs of enter and leave, eight deep. Times are the smallest of the rounds, CPU time and largest resident memory with them.
"""
import gzip
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


def write_apart(path, make):
    """By another process: what this one has in memory counts as that of the commands that it starts."""
    pid = os.fork()
    if not pid:
        with open(path, "wb") as file:
            file.writelines(line if isinstance(line, bytes) else line.encode() for line in make())
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(f"{path}: cannot be made")


def imported(kind, name, make):
    text, trace = os.path.join(work, f"{name}.txt"), os.path.join(work, f"{name}.weir")
    write_apart(text, make)
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
    table(imported("samples", "samples", sample_lines), f"{SAMPLES:,} samples", not quick)


def write_calls():
    table(imported("events", "calls", call_lines), f"{CALLS:,} calls", False)


def uleb(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def number(field, n):
    return uleb(field << 3) + uleb(n)


def message(field, content):
    return uleb(field << 3 | 2) + uleb(len(content)) + content


def pprof_profile():
    """One sample each, as a tool writes them that does not add up: 20,000 stacks of 2,000 functions."""
    pick = random.Random(7)
    strings = ["", "samples", "count", "cpu", "nanoseconds", "/bin/big"] + [f"f{i}" for i in range(2000)]
    out = [message(1, number(1, 1) + number(2, 2)), message(1, number(1, 3) + number(2, 4))]
    stacks = [message(1, b"".join(uleb(pick.randint(1, 2000)) for _ in range(pick.randint(6, 23)))) for _ in range(20000)]
    out += [message(2, pick.choice(stacks) + message(2, uleb(1) + uleb(10000000 + i % 100))) for i in range(SAMPLES)]
    out.append(message(3, number(1, 1) + number(2, 0x400000) + number(3, 0x500000) + number(5, 5)))
    for i in range(2000):
        line = message(4, number(1, i + 1) + number(2, i % 900 + 1))
        out.append(message(4, number(1, i + 1) + number(2, 1) + number(3, 0x400000 + 16 * i) + line))
        out.append(message(5, number(1, i + 1) + number(2, i + 6)))
    yield gzip.compress(b"".join(out + [message(6, text.encode()) for text in strings]), 6)


def folded_lines():
    for line in sample_lines():
        yield line.split(": ")[1].strip().replace(" ", ";") + " 1\n"


def foreign_files():
    """(format, what, path)"""
    path = os.path.join(work, "foreign.")
    write_apart(path + "pprof", pprof_profile)
    yield "pprof", f"{SAMPLES:,} samples, gzip", path + "pprof"
    write_apart(path + "folded", folded_lines)
    yield "folded", f"{SAMPLES:,} lines", path + "folded"
    for form in ("speedscope", "firefox"):
        run_timed(weir, "export", form, os.path.join(work, "samples.weir"), "-o", path + form)
        yield form, f"{SAMPLES:,} samples", path + form
    run_timed(weir, "export", "chrome", os.path.join(work, "calls.weir"), "-o", path + "chrome")
    yield "chrome", f"{CALLS:,} calls", path + "chrome"


def read_files():
    print("### Reading")
    print()
    print(f"`weir import`, smallest of {rounds}; the aim is a second for pprof.")
    print()
    print("| format | what | file MB | s | CPU s | largest resident MB |")
    print("|---|---|--:|--:|--:|--:|")
    for form, what, path in foreign_files():
        wall, cpu, memory = best(weir, "import", form, path, "-o", os.path.join(work, "read.weir"))
        print(f"| {form} | {what} | {os.path.getsize(path) / 1e6:.1f} | {wall:.2f} | {cpu:.2f} | {memory:.0f} |")
        os.unlink(path)
    print()


PARTS = (write_samples, write_calls, read_files)

print("bench: exchange", file=sys.stderr)
print("## Exchange")
print()
for part in PARTS:
    part()
