#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What other tools say of an export, and whether that is what weir's report says.

  judge_export.py FORMAT FILE FLAT.json [CALLS.json]

FLAT.json is weir report flat --json in the metric that the format has; its rows are compared with self and total
of every function that the judge knows. With CALLS.json, the same with --metric wall --uncorrected, calls and their
times are compared with it, and of samples self alone: reports hang them below calls, exports do not. Prints "same: N functions, SUM[, N calls]", or the first differences. Status 77 with a reason:
the judge is not here.

Judges: firefox, speedscope: the npm packages of tests/judges; pprof: go tool pprof; perfetto, otlp: the second
readers of tests/format; chrome: speedscope for calls, this file for samples; folded: this file.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FORMAT_FOLDER = os.path.join(os.path.dirname(HERE), "format")
PACKAGES = os.path.join(HERE, "node_modules")


def missing(reason):
    print(reason)
    sys.exit(77)


def run(*argv, **more):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **more)
    if done.returncode:
        print(f"{os.path.basename(argv[1])}: status {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
        sys.exit(1)
    return done.stdout


def need_node():
    if not shutil.which("node"):
        missing("node is not here (tools/deps check installs it)")
    if not os.path.isdir(PACKAGES):
        missing("tests/judges/node_modules is not here (make judge-deps gets it by npm ci)")


class Answer:
    """What a judge says: sum, self and total by function in the metric; calls and their time by function."""

    def __init__(self):
        self.sum = 0
        self.self, self.total = collections.Counter(), collections.Counter()
        self.calls, self.call_time = collections.Counter(), collections.Counter()


def folded(path, _):
    a = Answer()
    for line in open(path, errors="replace"):
        stack, value = line.rsplit(" ", 1)
        names = stack.split(";")[1:]
        a.sum += int(value)
        a.self[names[-1] if names else ""] += int(value)
        for name in set(names):
            a.total[name] += int(value)
    return a


def pprof(path, report):
    if not shutil.which("go"):
        missing("go is not here (tools/deps check installs it)")
    metric = report["metric"]["name"]
    unit = {"ns": "ns"}.get(report["metric"]["unit"], "count")
    text = run("go", "tool", "pprof", "-top", "-nodefraction=0", "-edgefraction=0", "-nodecount=1000000",
               "-symbolize=none", f"-unit={unit}", f"-sample_index={metric}", path,
               env=dict(os.environ, HOME=os.getcwd(), PPROF_TMPDIR=os.getcwd()))
    a = Answer()
    for line in text.split("flat%", 1)[1].splitlines()[1:]:
        value, _, _, cum, _, name = (line + " ").split(None, 5)
        name = name.rstrip("\n").removesuffix(" ").removesuffix(" (inline)").removesuffix(" (partial-inline)")
        a.self[name] += int(re.match(r"\d+", value)[0])
        a.total[name] += int(re.match(r"\d+", cum)[0])
    a.sum = sum(a.self.values())
    return a


def firefox(path, report):
    need_node()
    scale = 1e6 if report["metric"]["unit"] == "ns" else 1
    a = Answer()
    for thread in json.loads(run("node", os.path.join(HERE, "firefox.mjs"), path)):
        for name, (own, total) in thread["functions"].items():
            a.self[name] += round(own * scale)
            a.total[name] += round(total * scale)
        for marker in thread["markers"]:
            if marker["type"] == "call":
                a.calls[marker["name"]] += 1
    a.sum = sum(a.self.values())
    return a


def importer(path):
    need_node()
    return json.loads(run("node", os.path.join(HERE, "speedscope.mjs"), path))["profiles"]


def speedscope(path, _):
    a = Answer()
    for profile in importer(path):
        is_calls = profile["name"].endswith(": calls")
        for name, (own, total, _) in profile["functions"].items():
            if is_calls:
                a.call_time[name] += total
            else:
                a.self[name] += own
                a.total[name] += total
        a.sum += 0 if is_calls else profile["sum"]
    run("node", os.path.join(HERE, "valid.mjs"), path)
    with open(path) as file:  # the importer takes two calls with no time between them for one
        whole = json.load(file)
    for profile in whole["profiles"]:
        for event in profile.get("events", []):
            if event["type"] == "O":
                a.calls[whole["shared"]["frames"][event["frame"]]["name"]] += 1
    return a


def chrome(path, _):
    trace = json.load(open(path))
    a = Answer()
    frames = trace.get("stackFrames", {})
    for sample in trace.get("samples", []):
        names, at = [], sample.get("sf")
        while at is not None:
            names.append(frames[str(at)]["name"])
            at = frames[str(at)].get("parent")
        a.sum += sample["weight"]
        if names:
            a.self[names[0]] += sample["weight"]
        for name in set(names):
            a.total[name] += sample["weight"]
    threads, last = collections.defaultdict(list), {}
    for event in trace["traceEvents"]:
        key = event["pid"], event["tid"]
        if event["ph"] not in "BE":
            continue
        assert event["ts"] >= last.get(key, 0), "times go back"
        last[key] = event["ts"]
        if event["ph"] == "B":
            threads[key].append(event)
            a.calls[event["name"]] += 1
            continue
        begun = threads[key].pop()
        assert begun["name"] == event["name"], f"{event} ends {begun}"
        if event["name"] not in [e["name"] for e in threads[key]]:
            a.call_time[event["name"]] += round((event["ts"] - begun["ts"]) * 1000)
    assert not any(threads.values()), "calls stay open"
    if a.calls and not a.sum:  # speedscope shows events where there are no samples
        judged = collections.Counter()
        for profile in importer(path):
            for name, (_, _, calls) in profile["functions"].items():
                judged[name] += calls
        assert judged == a.calls, f"speedscope counts {judged}"
    return a


def second_reader(name, path):
    return json.loads(run("python3", os.path.join(FORMAT_FOLDER, name), path))


def perfetto(path, _):
    read = second_reader("read_perfetto.py", path)
    a = Answer()
    a.sum, a.self, a.total = read["samples"], collections.Counter(read["self"]), collections.Counter(read["total"])
    for name, (calls, time) in read["calls"].items():
        a.calls[name], a.call_time[name] = calls, time
    return a


def otlp(path, report):
    read = second_reader("read_otlp.py", path).get(report["metric"]["name"])
    a = Answer()
    if read:
        a.sum, a.self, a.total = read["sum"], collections.Counter(read["self"]), collections.Counter(read["total"])
    return a


JUDGES = {f.__name__: f for f in (folded, pprof, firefox, speedscope, perfetto, chrome, otlp)}


def rows_by_name(report):
    rows = collections.defaultdict(list)
    for row in report["rows"]:
        if row["kind"] != "thread":
            rows[row["name"]].append(row)
    return rows


def near(a, b):
    return abs(a - b) <= 1 + 1e-9 * max(a, b)


def differences(answer, report, calls):
    rows = rows_by_name(report)
    if not near(answer.sum, report["total"]):
        yield f"the sum is {answer.sum}, not {report['total']}"
    for name, same_name in rows.items():
        own, cum = sum(r["base"] for r in same_name), [r["cum"] for r in same_name]
        if not near(answer.self[name], own):
            yield f"self of {name!r} is {answer.self[name]}, not {own}"
        if not calls and len(cum) == 1 and not near(answer.total[name], cum[0]):
            yield f"total of {name!r} is {answer.total[name]}, not {cum[0]}"
    for name in set(answer.total) - set(rows):
        if answer.total[name]:
            yield f"there is a function {name!r} that the report does not have"
    if not calls:
        return
    for name, same_name in rows_by_name(calls).items():
        n, time = sum(r["calls"] or 0 for r in same_name), [r["elapsed"] for r in same_name if r["calls"]]
        if answer.calls[name] != n:
            yield f"{name!r} is called {answer.calls[name]} times, not {n}"
        if n and answer.call_time and len(time) == 1 and answer.call_time[name] != time[0]:
            yield f"calls of {name!r} last {answer.call_time[name]}, not {time[0]}"


def main():
    form, path, flat, *more = sys.argv[1:]
    report = json.load(open(flat))
    calls = json.load(open(more[0])) if more else None
    answer = JUDGES[form](path, report)
    found = list(differences(answer, report, calls))
    if found:
        print("\n".join(found[:8]))
        sys.exit(1)
    print(f"same: {len(rows_by_name(report))} functions, {answer.sum}"
          + (f", {sum(answer.calls.values())} calls" if calls else ""))


main()
