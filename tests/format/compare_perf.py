#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare_perf.py FILE PROGRAM [TEXT] [--self] [--own]: the figures of `perf report` and of `weir report flat`, by function, for each event.

--self: no totals. --own: functions of PROGRAM alone. FILE is a perf.data; TEXT, what `perf script` says of it, is read by weir instead. Self figures are equal to the unit, totals to
perf's last digit (0.01 %). Prints what differs, and at the end how much was compared.

By design differs: of several names of one address each tool has its favourite, so that a name stands for its address; addresses
without a name are one row; and where frame pointers end, the word that is taken for a return address leads to what perf calls
__do_global_dtors_aux: weir looks for the call, one byte before.
"""
import json
import os
import re
import subprocess
import sys

options = [a for a in sys.argv[1:] if a.startswith("--")]
path, program, *text = [a for a in sys.argv[1:] if not a.startswith("--")]
ours = text[0] if text else path
weir = os.environ["WEIR"]


def run(*words):
    p = subprocess.run(words, capture_output=True, text=True)
    if p.returncode not in (0, 3):
        sys.exit(f"{words[0]}: {p.stderr.strip()[-300:]}")
    return p.stdout


def first_names(*texts):
    """Each name -> one of those that its address has."""
    first, name_of = {}, {}
    for text in texts:
        for line in text.splitlines():
            m = re.match(r"([0-9a-f]+) [tTwWiuV] (\S+)", line)
            if m:
                name_of.setdefault(m[2], first.setdefault(m[1], m[2]))
    return name_of


symbols = run("nm", program)
names = first_names(symbols, open("/proc/kallsyms").read())
own = {m[1] for m in re.finditer(r" [tT] (\S+)", symbols)}
AT_CHAIN_END = {"__do_global_dtors_aux", "register_tm_clones"}


def common(name):
    name = re.sub(r"@.*", "", name.strip())
    if not name or re.match(r"(0x)?[0-9a-f]{8,}$|\[unknown|\S+\+0x[0-9a-f]+$", name):
        return "?"
    return names.get(name, name)


def of_perf():
    """event -> name -> [self, total in percent]"""
    text = run("perf", "report", "--stdio", "-i", path, "--children", "-g", "none", "--percent-limit", "0", "-t", "|",
               "--no-inline", "-w", "0", "-F", "overhead_children,period,sym")
    events, event = {}, None
    for line in text.splitlines():
        m = re.match(r"# Samples: .* of event '(.*)'", line)
        if m:
            event = events.setdefault(m[1], {})
        f = line.split("|")
        if line.startswith("#") or len(f) < 3:
            continue
        row = event.setdefault(common(re.sub(r"^ *\[.\] ", "", f[-1])), [0, 0.0])
        row[0] += int(f[-2])
        if "--self" not in options:
            row[1] += float(f[0].strip().rstrip("%"))
    return events


def of_weir(event):
    metric = "cpu" if re.match("(cpu|task)-clock", event) else event
    j = json.loads(run(weir, "report", "flat", ours, "--json", "--metric", metric))
    rows = {}
    for r in j["rows"]:
        if r["kind"] not in ("thread", "marker"):
            row = rows.setdefault(common(r["name"]), [0, 0.0])
            row[0] += r["base"]
            row[1] += 100 * r["cum"] / j["total"]
    return rows


n_self = n_total = 0
for event, theirs in of_perf().items():
    mine = of_weir(event)
    for name in sorted(theirs.keys() | mine.keys()):
        if "--own" in options and name not in own:
            continue
        a, b = theirs.get(name, [0, 0.0]), mine.get(name, [0, 0.0])
        n_self += a[0] > 0
        if a[0] != b[0]:
            print(f"{event}: self of {name}: perf {a[0]}, weir {b[0]}")
        if name == "?" or name in AT_CHAIN_END or "--self" in options:
            continue
        n_total += 1
        if abs(a[1] - b[1]) > 0.011:
            print(f"{event}: total of {name}: perf {a[1]:.2f} %, weir {b[1]:.2f} %")
print("compared", "functions" if n_self else "nothing", "and totals" if n_total > 2 else "alone")
