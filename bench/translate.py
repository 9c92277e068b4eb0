# SPDX-License-Identifier: MIT
"""Exact counts of unmodified programs (weir count -- CMD) beside valgrind's tools and qemu-user, interleaved.

  translate.py WORK-FOLDER TOOLS-FOLDER    prints Markdown

The environment: WEIR (program), BENCH_QUICK=1 (2 rounds), BENCH_ROUNDS=n. Times are wall times of the whole
command, the smallest of the rounds: weir's recorder works beside the program. What is slow runs once.
"""
import os
import shutil
import subprocess
import sys
import time

work = os.path.abspath(sys.argv[1])
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
quick = os.environ.get("BENCH_QUICK") == "1"
rounds = int(os.environ.get("BENCH_ROUNDS", "2" if quick else "5"))
weir = os.environ["WEIR"]
env = dict(os.environ, LC_ALL="C")
trace = os.path.join(work, "translated.weir")
LOOPS_AIM, BRANCHY_AIM, START_MS_AIM = 3.0, 5.0, 30.0


def make_inputs():
    with open(os.path.join(work, "input"), "wb") as out, open(weir, "rb") as source:
        out.write(source.read()[:8_000_000])
    with open(os.path.join(work, "input.c"), "w") as out:
        subprocess.run([sys.executable, os.path.join(root, "bench/workloads/make_input.py"), "c", "60"],
                       stdout=out, check=True)


def programs():
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, text=True).stdout.strip()
    sql = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 600000) "
           "SELECT sum(x * x % 7), count(DISTINCT x % 1000) FROM c;")
    return {
        "gzip": (["gzip", "-c", os.path.join(work, "input")], LOOPS_AIM),
        "sqlite3": (["sqlite3", ":memory:", sql], BRANCHY_AIM),
        "perl": (["perl", "-e", '$h{$_ % 1000} .= "a", $x += $_ * 2 for 1..1500000; print $x'], BRANCHY_AIM),
        "python3": (["/usr/bin/python3", "-c", "s = 0\nfor i in range(2000000): s += i % 7\nprint(s)"], BRANCHY_AIM),
        "cc1": ([cc1, "-quiet", "-O2", os.path.join(work, "input.c"), "-o", "/dev/null"], BRANCHY_AIM),
        "true": (["/bin/true"], None),
    }


def tools():
    none = os.path.join(work, "callgrind.out")
    found = {
        "native": [],
        "weir count": [weir, "count", "-q", "-o", trace, "--"],
        "valgrind none": ["valgrind", "-q", "--tool=none"],
        "callgrind": ["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=" + none],
        "lackey": ["valgrind", "-q", "--tool=lackey", "--basic-counts=yes"],
        "qemu-x86_64": ["qemu-x86_64"],
    }
    return {name: argv for name, argv in found.items() if not argv or shutil.which(argv[0])}


SLOW = {"callgrind", "lackey"}


def seconds(argv):
    began = time.perf_counter()
    rc = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL).returncode
    return time.perf_counter() - began if rc == 0 else None


def measure(command, which):
    best, failed = {}, set()
    for turn in range(rounds):
        for name, before in which.items():
            if name in failed or (turn and name in SLOW):
                continue
            took = seconds(before + command)
            if took is None:
                failed.add(name)
                best.pop(name, None)
            else:
                best[name] = min(best.get(name, took), took)
    return best


def main():
    make_inputs()
    which, results = tools(), {}
    for name, (command, _) in programs().items():
        print("bench: translate:", name, file=sys.stderr)
        results[name] = measure([shutil.which(command[0]) or command[0], *command[1:]], which)
    print("## Counts of unmodified programs: weir count -- CMD\n")
    print("Wall time of the whole command, times that of the program alone; trace with call tree, names and source "
          f"positions included. Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC.\n")
    print("| program | native, s |" + "".join(f" {name} |" for name in which if name != "native"))
    print("|---|--:|" + "--:|" * (len(which) - 1))
    for name, best in results.items():
        cells = [f"{best[tool] / best['native']:.2f}" if tool in best else "failed" for tool in which if tool != "native"]
        print(f"| {name} | {best['native']:.4f} | " + " | ".join(cells) + " |")
    print("\n| aim | figures |\n|---|---|")
    for aim, title in ((LOOPS_AIM, "loops"), (BRANCHY_AIM, "interpreters, compilers")):
        rows = [(n, results[n]["weir count"] / results[n]["native"]) for n, (_, a) in programs().items()
                if a == aim and "weir count" in results[n]]
        print(f"| at most {aim:.0f} times native ({title}) | "
              + ", ".join(f"{'**reached**' if r <= aim else '**not reached**'}: {n} {r:.2f}" for n, r in rows) + " |")
    more = (results["true"]["weir count"] - results["true"]["native"]) * 1e3
    print(f"| a small program takes at most {START_MS_AIM:.0f} ms more | "
          f"{'**reached**' if more <= START_MS_AIM else '**not reached**'}: {more:.1f} ms |\n")


main()
