#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What read_trace.py's JSON says about modules, for the checks of shell tests.

    module_history.py spans FILE          one line a span of the address index:
        pid process-start base-name from to how start? used?
    module_history.py records FILE        one line a load, unload or snapshot record:
        load|unload|start|end time pid process-start base-name how
    module_history.py table FILE NAME...  one line a module of these, from index and snapshots:
        name at-start|during used|unused how-it-ended
    module_history.py plugins FILE LOG    compares a trace with what tests/workloads/plugin_host
        printed: verdict lines, or one line of what is wrong
"""
import json
import os
import sys

HOW = ["none", "overlap", "munmap", "exec", "exit", "reused", "snapshot"]


def numbers(text):
    out, value, shift = [], 0, 0
    for byte in bytes.fromhex(text):
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            out.append(value)
            value = shift = 0
    return out


class Trace:
    def __init__(self, path):
        self.j = json.load(open(path))
        self.images = [""] + [os.path.basename(i[1]) for i in self.j["images"]]

    def spans(self):
        keys = ("pid", "started", "start", "from", "end", "to", "image", "bias", "how",
                "at_start", "used")
        for row in self.j["addresses"]:
            span = dict(zip(keys, row))
            span["image"] = self.images[span["image"]]
            span["how"] = HOW[span["how"]]
            yield span

    def records(self):
        loaded = {}
        for time, _, major, minor, payload in self.j["records"]:
            if major != 0x19:
                continue
            n = numbers(payload)
            place = tuple(n[:3])
            if minor == 0x38:
                loaded[place] = self.images[n[5]]
                yield "load", time, n[0], n[1], n[2], loaded[place], ""
            elif minor == 0x39:
                yield "unload", time, n[0], n[1], n[2], loaded.pop(place, "?"), HOW[n[4]]
            elif minor == 0x3A:
                yield ("end" if n[6] else "start"), time, n[0], n[1], n[2], self.images[n[4]], ""


def print_spans(trace):
    for s in trace.spans():
        print(s["pid"], s["started"], s["image"], s["from"], s["to"], s["how"],
              int(s["at_start"]), int(s["used"]))


def print_records(trace):
    for what, time, pid, started, _, image, how in trace.records():
        print(what, time, pid, started, image, how)


def print_table(trace, names):
    for s in trace.spans():
        if s["image"] in names:
            print(s["image"], "at-start" if s["at_start"] else "during",
                  "used" if s["used"] else "unused", s["how"])


def wrong_samples(trace, log):
    """Samples in a burn function other than the one that ran then."""
    burns = [(l[3], l[4], "burn_%d" % l[1]) for l in log if l[0] == "burn"]
    n, wrong = {}, []
    for time, _, _, names, _, _ in trace.j["samples"]:
        for begin, end, name in burns:
            if begin <= time <= end and names and names[-1].startswith(("burn", "lib")):
                n[name] = n.get(name, 0) + 1
                if names[-1] != name:
                    wrong.append((time, names[-1], name))
    return n, wrong


def between(log, what, number, time):
    return any(l[0] == what and l[1] == number and l[3] <= time <= l[4] for l in log)


def plugin_rows(trace):
    for s in trace.spans():
        if s["image"].startswith("lib") and s["image"][3:-3].isdigit():
            yield int(s["image"][3:-3]), s


def check_plugins(trace, log, say):
    burnt = {l[1] for l in log if l[0] == "burn"}
    n, wrong = wrong_samples(trace, log)
    say("every sample in a plug-in is named by the one that was loaded then",
        not wrong and len(n) >= 0.95 * len(burnt), (wrong[:3], len(n)))
    names = {}
    for frame, _, levels in trace.j["symbols"]:
        image = trace.images[trace.j["frames"][frame - 1][2]]
        if levels and levels[0][0].startswith("burn_"):
            names.setdefault(image, set()).add(levels[0][0])
    bad = {k: v for k, v in names.items() if v != {"burn_" + k[3:-3]}}
    say("each plug-in's frames have its own function only", names and not bad, bad)
    rows = list(plugin_rows(trace))
    say("the index has one span for each plug-in that ran",
        sorted(i for i, _ in rows) == sorted(i for i in burnt if "burn_%d" % i in n),
        sorted(i for i, _ in rows))
    say("each span begins while its plug-in was being loaded",
        all(between(log, "load", i, s["from"]) for i, s in rows),
        [(i, s["from"]) for i, s in rows if not between(log, "load", i, s["from"])][:3])
    return rows


def main():
    command, trace = sys.argv[1], Trace(sys.argv[2])
    if command == "spans":
        print_spans(trace)
    elif command == "records":
        print_records(trace)
    elif command == "table":
        print_table(trace, sys.argv[3:])
    elif command == "plugins":
        def say(sentence, good, detail=""):
            print(("ok " if good else "not ok ") + sentence + ("" if good else ": %s" % (detail,)))
        log = [[l.split()[0]] + [int(x) for x in l.split()[1:]] for l in open(sys.argv[3])]
        rows = check_plugins(trace, log, say)
        ends = {s["how"] for _, s in rows}
        if "munmap" in ends:
            say("each span ends by munmap, while its plug-in was being unloaded",
                ends == {"munmap"} and all(between(log, "unload", i, s["to"]) for i, s in rows),
                [(i, s["how"], s["to"]) for i, s in rows
                 if not between(log, "unload", i, s["to"])][:3])
        else:
            say("without munmap tracing each span ends by overlap when another plug-in is loaded",
                [s["how"] for _, s in sorted(rows, key=lambda r: r[1]["from"])] ==
                ["overlap"] * (len(rows) - 1) + ["exit"], [s["how"] for _, s in rows])


if __name__ == "__main__":
    main()
