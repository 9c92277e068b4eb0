# SPDX-License-Identifier: MIT
"""How far the cycle model is from the time that functions take, caches and branches included.

  functions.py WORK-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (two programs, 2 rounds). Each program of bench/count is sampled
as it is and counted once; of both, each counted function has a share of the sum over all counted functions. What
is printed is the part of the time that stands in another function than it was measured in: half of the sum of
the differences. The same between two halves of the samples is the error of the measurement itself.
"""
import collections
import json
import os
import subprocess
import sys

work = os.path.join(os.path.abspath(sys.argv[1]), "functions")
sources = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "count")
weir = os.environ["WEIR"]
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = 2 if quick else 10
RATE = "4999"
PROGRAMS = {"zlib": ["-l:libz.a"], "sqlite": ["-l:libsqlite3.a", "-lm"], "bzip2": ["-l:libbz2.a"],
            "zstd": ["-l:libzstd.a"]}
os.makedirs(work, exist_ok=True)
ENV = dict(os.environ, WEIR_CACHE=os.path.join(work, "cache"))


def run(*argv, **more):
    subprocess.run(argv, check=True, cwd=work, env=dict(ENV, **more), stdout=subprocess.DEVNULL)


def bases(trace, *options):
    """{function: base}"""
    out = subprocess.run([weir, "report", "flat", "--json", trace, *options], check=True, cwd=work, env=ENV,
                         stdout=subprocess.PIPE).stdout
    total = collections.Counter()
    for row in json.loads(out)["rows"]:
        total[row["name"]] += row["base"] or 0
    return total


def shares(of, names):
    whole = sum(of[n] for n in names)
    return {n: of[n] / whole for n in names}


def misplaced(a, b, names):
    a, b = shares(a, names), shares(b, names)
    return 50 * sum(abs(a[n] - b[n]) for n in names)


def one(name):
    # Without debug information, so that samples are of functions as the linker has them, too.
    link = ["gcc", "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-I" + sources, os.path.join(sources, name + ".c"),
            *PROGRAMS[name]]
    run(*link, "-o", name)
    run(weir, "count", "-q", "--counts", *link, "-o", name + ".counted")
    run("./" + name + ".counted", WEIR_OUT=name + ".counts")
    halves = [collections.Counter(), collections.Counter()]
    for i in range(rounds):
        run(weir, "record", "-q", "-F", RATE, "-o", "samples.weir", "--", "./" + name)
        halves[i % 2] += bases("samples.weir")
    time, instructions = halves[0] + halves[1], bases(name + ".counts")
    names = [n for n in instructions if instructions[n]]
    cycles = bases(name + ".counts", "--metric", "cycles")
    return [misplaced(x, time, names) for x in (cycles, instructions)] + [misplaced(*halves, names), len(names)]


print("### Cycles of functions against their time\n")
print(f"Part of the time that stands in the wrong function, %, by samples at {RATE} Hz of {rounds} runs; caches and "
      "branch prediction are not in the model.\n")
print("| program | counted functions that ran | weir cycles | instructions | two halves of the samples |")
print("|---|--:|--:|--:|--:|")
for program in list(PROGRAMS)[:2] if quick else PROGRAMS:
    print(f"bench: cycles of functions, {program}", file=sys.stderr)
    model, plain, noise, n = one(program)
    print(f"| {program} | {n} | {model:.1f} | {plain:.1f} | {noise:.1f} |", flush=True)
print()
