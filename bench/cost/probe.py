# SPDX-License-Identifier: MIT
"""Times short sequences of instructions; the tables of src/insert/cost are made from such figures.

  probe.py WORK-FOLDER [CPU] <PROBES    prints: measured cycles, the model's, the sequence

A probe is a line of AT&T assembly, instructions separated by semicolons (bench/cost/probes.txt). CPU is
the model to compare with, by default this machine's. A mark stands where the two differ by over 10 %.
"""
import glob
import os
import re
import subprocess
import sys

work, cpu = sys.argv[1], (sys.argv[2:] or ["native"])[0]
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
FEATURES = ("+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512ifma,+bmi,+bmi2,+lzcnt,+popcnt,+adx,+aes,+vaes,"
            "+pclmul,+sha,+avx2,+fma")


def build(name, sources):
    out = os.path.join(work, name)
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-I" + os.path.join(root, "src"), "-o", out,
                    *sources, os.path.join(root, "src/base/mem.c"), "-lZydis"], check=True)
    return out


def encode(probe):
    p = subprocess.run(["llvm-mc", "-triple=x86_64", "-mattr=" + FEATURES, "--show-encoding"],
                       input=probe.replace(";", "\n") + "\n", stdout=subprocess.PIPE, text=True, check=True)
    return "".join(b[2:] for m in re.findall(r"encoding: \[([^\]]*)\]", p.stdout) for b in m.split(","))


def lines_of(argv, text):
    return subprocess.run(argv, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


probes = [line.strip() for line in sys.stdin if line.strip() and not line.startswith("#")]
timing = build("timing", [os.path.join(here, "timing.c"), os.path.join(root, "src/arch/x86_code.c")])
model = build("model", [os.path.join(here, "model.c"), *glob.glob(os.path.join(root, "src/insert/cost/*.c"))])
code = "\n".join(map(encode, probes)) + "\n"
for probe, measured, told in zip(probes, lines_of([timing, "40", "50"], code), lines_of([model, cpu], code)):
    is_near = measured != "-" and abs(float(measured) - float(told)) <= 0.1 * float(measured)
    print(f"{measured:>8} {told:>8} {' ' if is_near else '!'} {probe}")
