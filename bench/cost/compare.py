# SPDX-License-Identifier: MIT
"""The cycle model against timed blocks, beside llvm-mca and a guess.

  compare.py TOOLS-FOLDER    prints Markdown; bench/run builds cost_model there

Blocks: bench/cost/blocks.txt. Times: each bench/cost/measured-*.txt (bench/cost/measure makes one). The
model's tables were tuned with the blocks of odd line numbers; the figures are those of the others. The
environment: BENCH_QUICK=1 (every tenth block only).
"""
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys

tools = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
quick = os.environ.get("BENCH_QUICK") == "1"
MEDIAN_AIM, SPEED_AIM = 10.0, 300_000
# What llvm-mca 14 calls the processor; it has no Zen 4.
MCA_NAMES = {"zen4": "znver3", "zen3": "znver3", "zen2": "znver2", "icelake": "icelake-server",
             "skylake": "skylake-avx512", "goldencove": "alderlake"}
MCA_FEATURES = "+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512vbmi,+avx512vbmi2,+vaes,+vpclmulqdq"
ITERATIONS = 100
LENGTHS = ((1, 3), (4, 8), (9, 16), (17, 40))


def run(argv, text):
    return subprocess.run(argv, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def read_measured(path):
    """({key: text} of the head, [cycles or None])"""
    head, cycles = {}, []
    with open(path) as f:
        for line in f:
            m = re.match(r"# (\w+): (.*)", line)
            if m:
                head[m[1]] = m[2]
            elif not line.startswith("#"):
                cycles.append(None if line.strip() == "-" else float(line))
    return head, cycles


def disassemble(blocks):
    """A list of instructions for each block; hlt, which no block has, stands between them."""
    text = "\n".join(" ".join("0x" + b[i:i + 2] for i in range(0, len(b), 2)) + "\n0xf4" for b in blocks)
    out = run(["llvm-mc", "--disassemble", "-triple=x86_64"], text).stdout
    lists, current = [], []
    for line in out.splitlines():
        line = line.split("#")[0].strip()
        if line == "hlt":
            lists.append(current)
            current = []
        elif line and not line.startswith("."):
            current.append(line)
    if len(lists) != len(blocks):
        raise SystemExit(f"llvm-mc: {len(lists)} of {len(blocks)} blocks")
    return lists


def mca(cpu, lists):
    """Cycles a block, None where llvm-mca refuses. A refused block refuses its whole input."""
    if not lists:
        return []
    text = "".join(f"# LLVM-MCA-BEGIN\n" + "\n".join(x) + "\n# LLVM-MCA-END\n" for x in lists)
    p = run(["llvm-mca", "-mcpu=" + cpu, "-mattr=" + MCA_FEATURES, f"-iterations={ITERATIONS}",
             "-resource-pressure=false", "-instruction-info=false"], text)
    cycles = re.findall(r"^Total Cycles:\s+(\d+)", p.stdout, re.M)
    if p.returncode == 0 and len(cycles) == len(lists):
        return [int(c) / ITERATIONS for c in cycles]
    if len(lists) == 1:
        return [None]
    half = len(lists) // 2
    return mca(cpu, lists[:half]) + mca(cpu, lists[half:])


def tau(xs, ys):
    """Kendall's tau-b."""
    both = x_ties = y_ties = pairs = 0
    for i in range(len(xs)):
        for j in range(i):
            a, b = xs[i] - xs[j], ys[i] - ys[j]
            x_ties += a == 0
            y_ties += b == 0
            both += (a > 0) * (b > 0) + (a < 0) * (b < 0) - (a > 0) * (b < 0) - (a < 0) * (b > 0)
            pairs += 1
    return both / ((pairs - x_ties) * (pairs - y_ties)) ** 0.5


def aim(ok):
    return "reached" if ok else "**not reached**"


def print_lengths(names, told, truth, lengths):
    """Most blocks are short, and short ones are easy: the error by length."""
    print("\n| median, mean error by instructions | " + " | ".join(names) + " |")
    print("|---|" + "--:|" * len(names))
    for low, high in LENGTHS:
        chosen = [k for k, n in enumerate(lengths) if low <= n <= high]
        if not chosen:
            continue
        cells = []
        for values in told:
            errors = [abs(values[k] - truth[k]) / truth[k] * 100 for k in chosen]
            cells.append(f"{statistics.median(errors):.1f} %, {statistics.mean(errors):.0f} %")
        print(f"| {low} to {high} ({len(chosen)} blocks) | " + " | ".join(cells) + " |")


def print_machine(model, path, blocks):
    head, cycles = read_measured(path)
    if len(cycles) != len(blocks):
        print(f"{os.path.basename(path)} is of other blocks: not compared.\n")
        return
    cpu = head["model"]
    held = [i for i in range(1, len(blocks), 20 if quick else 2) if cycles[i]]
    names = [f"weir, {cpu}"]
    told = [[float(c) for c in run([model, cpu], "\n".join(blocks[i] for i in held) + "\n").stdout.split()]]
    if shutil.which("llvm-mca") and shutil.which("llvm-mc"):
        lists = disassemble([blocks[i] for i in held])
        for mca_cpu in dict.fromkeys((MCA_NAMES.get(cpu, "native"), "icelake-server")):
            names.append(f"llvm-mca, {mca_cpu}")
            told.append(mca(mca_cpu, lists))
        names.append("instructions / 4")
        told.append([len(x) / 4 for x in lists])
    answered = [k for k in range(len(held)) if all(t[k] is not None for t in told)]
    truth = [cycles[held[k]] for k in answered]
    print(f"{head['machine']}; timed {head['date']}. {len(answered)} blocks of the half that no table was "
          f"tuned with ({len(held) - len(answered)} more are not known to all).\n")
    print("| | median error | mean error | within 10 % | Kendall's tau |")
    print("|---|--:|--:|--:|--:|")
    medians = []
    for name, values in zip(names, told):
        values = [values[k] for k in answered]
        errors = [abs(v - t) / t * 100 for v, t in zip(values, truth)]
        medians.append((statistics.median(errors), statistics.mean(errors)))
        print(f"| {name} | {medians[-1][0]:.1f} % | {medians[-1][1]:.1f} % | "
              f"{100 * sum(e <= 10 for e in errors) / len(errors):.0f} % | {tau(values, truth):.3f} |")
    if len(told) > 1:
        print_lengths(names, [[t[k] for k in answered] for t in told], truth, [len(lists[k]) for k in answered])
    print(f"\n- median error at most {MEDIAN_AIM:.0f} %: {medians[0][0]:.1f} %, {aim(medians[0][0] <= MEDIAN_AIM)}")
    if len(medians) > 1:
        best = min(medians[1:-1])
        print(f"- no worse than llvm-mca: {medians[0][0]:.1f} % : {best[0]:.1f} %, {aim(medians[0] <= best)}")
        print(f"- the guess beaten: {medians[0][0]:.1f} % : {medians[-1][0]:.1f} %, "
              f"{aim(2 * medians[0][0] <= medians[-1][0])}")
    print()


def main():
    with open(os.path.join(here, "blocks.txt")) as f:
        blocks = f.read().split()
    model = os.path.join(tools, "cost_model")
    print("## Cycle model\n")
    print(f"{len(blocks)} blocks of libsqlite3, libzstd, libcrypto, libc, libm and libstdc++, timed by "
          "bench/cost/timing.c: cycles of a block that runs again and again.\n")
    for path in sorted(glob.glob(os.path.join(here, "measured-*.txt"))):
        print_machine(model, path, blocks)
    text = "\n".join(blocks) + "\n"
    speed = max(int(run([model, "native", "10"], text).stdout.split()[1]) for _ in range(3 if quick else 12))
    print(f"- blocks a second of one CPU: {speed:,} (best of several; aim {SPEED_AIM:,}), {aim(speed >= SPEED_AIM)}\n")


main()
