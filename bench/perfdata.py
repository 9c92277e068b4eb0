# SPDX-License-Identifier: MIT
"""perf.data with stack dumps: weir report flat beside perf report, of the same recordings.

  perfdata.py WORK-FOLDER    prints Markdown

The environment: WEIR (program), PERF, BENCH_QUICK=1 (one program, one round), BENCH_ROUNDS=n. Times are the smallest of the
rounds, interleaved; perf's, which looks up inlined calls for minutes, is of one. A stack is complete when its outermost function is one
that a thread or program begins with.
"""
import json
import os
import re
import subprocess
import sys
import time

work = sys.argv[1]
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "1" if quick else "3"))
weir, perf = os.environ["WEIR"], os.environ.get("PERF", "perf")
TIME_MAX = 300
FASTER_AIM = 100
FIRST = re.compile(r"_start|__clone3?|__GI___clone3?|clone3?|start_thread|_dl_start_user|ret_from_fork.*")
PROGRAMS = [
    ("perl", ["perl", "-e", '$h{$_ % 5000} .= sprintf("%d", $_) for 1..3000000']),
    ("python", ["python3", "-c", "sum(i * i for i in range(4000000))"]),
    ("g++", ["g++", "-O2", "-c", "-x", "c++", "big.cc", "-o", "/dev/null"]),
]


def run(*argv):
    """(wall s, its output), or the limit."""
    start = time.monotonic()
    try:
        p = subprocess.run(argv, cwd=work, capture_output=True, text=True, timeout=TIME_MAX)
    except subprocess.TimeoutExpired:
        return TIME_MAX, ""
    if p.returncode not in (0, 3):
        raise SystemExit(f"{argv[:3]}: {p.stderr.strip()[-200:]}")
    return time.monotonic() - start, p.stdout


def perf_complete(file):
    """(samples with a stack of the program, complete ones), without looking up inlined calls."""
    stacks = run(perf, "script", "--no-inline", "-i", file, "-F", "ip,sym")[1].split("\n\n")
    outer = [s.strip().splitlines()[-1].split() for s in stacks if s.strip()]
    return len(outer), sum(1 for words in outer if len(words) > 1 and FIRST.fullmatch(words[1]))


def weir_complete(file):
    loss = json.loads(run(weir, "report", "loss", file, "--json")[1])["loss"]
    return loss["stacks"], loss["stacks_complete"]


print("bench: perf.data", file=sys.stderr)
print("## perf.data with stack dumps\n")
print("| recording | samples | weir report flat | perf report --no-inline | perf report | complete stacks, weir : perf |")
print("|---|---|---|---|---|---|")
with open(os.path.join(work, "big.cc"), "w") as source:
    source.write("#include <map>\n#include <regex>\n#include <string>\nint main(int c, char **v) { std::map<std::string, int> m; "
                 "m[v[0]] = c; return std::regex_match(v[0], std::regex(\"a+b\")) + m.size(); }\n")
ratios = []
for name, command in PROGRAMS[: 1 if quick else None]:
    file = os.path.join(work, f"{name}.data")
    run(perf, "record", "-q", "--buildid-mmap", "-F", "999", "-e", "cpu-clock", "--call-graph", "dwarf", "-o", file, "--", *command)
    ways = {"weir": (weir, "report", "flat", file), "plain": (perf, "report", "--stdio", "--no-inline", "-i", file),
            "perf": (perf, "report", "--stdio", "-i", file)}
    best = {}
    for _ in range(rounds):
        for key, argv in ways.items():
            if key != "perf" or key not in best:
                best[key] = min(best.get(key, TIME_MAX), run(*argv)[0])
    (n, theirs), (_, ours) = perf_complete(file), weir_complete(file)
    ratios.append((name, best["perf"] / best["weir"]))
    print(f"| {name}, {os.path.getsize(file) / 1e6:.1f} MB | {n} | {best['weir']:.2f} s | {best['plain']:.2f} s | {best['perf']:.2f} s "
          f"| {ours} : {theirs} |")
    os.unlink(file)
print()
said = ", ".join(f"{name} {ratio:.1f} times" for name, ratio in ratios)
reached = all(ratio >= FASTER_AIM for _, ratio in ratios)
print(f"Aim, {FASTER_AIM} times faster than `perf report`: **{'reached' if reached else 'not reached'}** ({said}).")
