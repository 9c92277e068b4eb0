# SPDX-License-Identifier: MIT
"""Compares a run under weir with the native one, and weir's figures with the program's own counters."""
import collections
import fnmatch
import json
import os
import re
import subprocess

# Sentences by which weir tells that figures are not complete; its usual last line is none.
SAYS_INCOMPLETE = re.compile(r"not (be )?(hooked|followed|recorded|counted|traced|attached|complete)|lost|no room|"
                             r"No space|cannot|could not|refuse|may not|missing|without hooks|untraced|cut", re.I)

# Notes of reports that do the same; each has its number of processes or programs, not of calls.
SAYS_UNHOOKED = re.compile(r"unhooked from then on|not hooked|without hooks|not followed")


HERE_OF = {"calls": "here", "java": "javahere"}


def counters(output, word="calls"):
    """({function: (at least, at most)}, the lines that are the same in each run)"""
    calls, rest = collections.defaultdict(lambda: (0, 0)), []
    for line in output.splitlines():
        words = line.split()
        if words[:1] in ([word], [HERE_OF[word]]) and len(words) > 2:
            low, high = int(words[2]), int(words[-1])
            calls[words[1]] = (calls[words[1]][0] + low, calls[words[1]][1] + high)
        if words[:1] not in ([here] for here in HERE_OF.values()):
            rest.append(line)
    return calls, sorted(rest)


NO_CALL = "no call was recorded, without a word"


class Figures:
    """weir's calls of each function, and why any of them may be missing."""

    def __init__(self):
        self.calls, self.methods, self.reasons, self.incomplete, self.faults = collections.Counter(), {}, {}, [], []


def weir_output(weir, arguments, figures, what):
    done = subprocess.run([weir, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    if done.returncode not in (0, 3):
        sentence = (done.stderr.strip() or "no sentence").splitlines()[0]
        figures.faults.append(f"{what} cannot be read: status {done.returncode}, {sentence}")
        return None
    if done.returncode == 3:
        figures.incomplete.append(f"{what} has losses")
    return done.stdout


JAVA_MARK = re.compile("^[IJF]:")  # how a method of Java ran


def read_flat(weir, trace, figures, has_hooks):
    text = weir_output(weir, ["report", "flat", trace, "--json"], figures, "the trace")
    if not text:
        return
    j = json.loads(text)
    for row in j["rows"]:
        figures.calls[JAVA_MARK.sub("", row["name"]).split("(")[0]] += row["calls"] or 0
    loss = j["loss"]
    if loss["events_lost"] or loss["records_lost"] or loss["cut"]:
        figures.incomplete.append(f"loss: {loss['events_lost']} events, {loss['reasons']}")
    figures.incomplete += [reason for reason in loss["reasons"] if SAYS_UNHOOKED.search(reason)]
    if has_hooks:
        # A trace that is cut has its calls, perhaps, and not what is written at its end.
        unread = Figures() if figures.incomplete else figures
        text = weir_output(weir, ["report", "hooks", trace, "--json"], unread, "the report of hooks")
        for row in json.loads(text)["rows"] if text else ():
            name = row["function"].split("(")[0]
            figures.methods.setdefault(name, set()).add(row["method"])
            if row["off"] is not None:
                figures.reasons[name] = "unhooked to keep the budget"
            elif row["method"] == "refused" and row["reason"]:
                figures.reasons[name] = "refused: " + row["reason"]


def read_left_alone(weir, trace, figures):
    """Functions that weir count left alone: the report of coverage says why."""
    text = weir_output(weir, ["report", "coverage", trace, "--json"], figures, "the report of coverage")
    j = json.loads(text) if text else {"rows": [], "loss": {"reasons": {}}}
    figures.incomplete += [reason for reason in j["loss"]["reasons"] if "counted at once, too little" in reason]
    for row in j["rows"]:
        if row["state"] == "not known" and row["reason"]:
            figures.reasons[row["function"].split("(")[0]] = "left alone: " + row["reason"]


def read_lcov(weir, trace, figures):
    text = weir_output(weir, ["export", "lcov", trace, "-o", "-"], figures, "the count file")
    for line in (text or "").splitlines():
        if line.startswith("FNDA:"):
            n, name = line[5:].split(",", 1)
            figures.calls[name.split("(")[0]] += int(n)


def read_maps(trace, figures):
    try:
        lines = open(trace).read().splitlines()
    except OSError as e:
        figures.faults.append(f"the script's output is not there: {e.strerror}")
        return
    for line in lines:
        record = json.loads(line)
        if record["type"] == "map":
            for values in record["data"].values():
                for name, n in values.items():
                    figures.calls[name] += n
        elif record["type"] == "loss":
            figures.incomplete.append(line)


def read_figures(weir, hazard, method, run):
    figures = Figures()
    for trace in run.traces:
        if method.figures == "lcov":
            read_lcov(weir, trace, figures)
        elif method.figures == "maps":
            read_maps(trace, figures)
        else:
            read_flat(weir, trace, figures, method.hooked)
        if method.how == "run":
            read_left_alone(weir, trace, figures)
    if not run.traces and not (hazard.disk and method.how == "run"):  # no file at all is a clear word
        figures.faults.append("there is no trace")
    for name in re.findall(r"'(\w+)' of '[^']*' is left out: ", run.said):
        figures.reasons[name] = "left out"
    said = [line for line in run.said.splitlines() if line.startswith("weir") and SAYS_INCOMPLETE.search(line)]
    figures.incomplete += said
    return figures


def judge_calls(hazard, method, calls, figures):
    """Each figure is that of the program, or is said to be incomplete; too many calls are always wrong."""
    faults, zero = [], all(figures.calls[name] == 0 for name in calls)
    for name, (low, high) in sorted(calls.items()):
        ours = figures.calls[name]
        if name in hazard.uncounted and method.how == "run":
            continue
        if method.how == "detach":
            low = 0
        if ours > high:
            faults.append(f"{name}: {ours} calls by weir, {high} by the program")
        elif ours < low and not figures.incomplete and name not in figures.reasons:
            faults.append(f"{name}: {ours} calls by weir without a word, {low} by the program")
    # One function or another may have to be hooked otherwise; a column whose method is used nowhere is none.
    ways = set().union(*(figures.methods.get(name, set()) for name in calls)) - {"refused"}
    if method.hooked and ways and method.hooked not in ways:
        faults.append(f"hooked by {' '.join(sorted(ways))}, not by {method.hooked}")
    if method.how == "detach" and zero and not hazard.once and calls and not figures.incomplete and not figures.reasons:
        faults.append(NO_CALL)
    return faults[:3] + [f"and {len(faults) - 3} more"] * (len(faults) > 3)


def allowed_refusal(hazard, method, run):
    """weir did not run the program, or not attach to it, said why, and the row says that this is right."""
    if run.weir_status != 1 or os.path.exists(run.traces[0] if run.traces else ""):
        return False
    return any(fnmatch.fnmatch(method.name, pattern) and re.search(words, run.said)
               for pattern, words in hazard.refused.items())


def compare(weir, hazard, method, native, run):
    """Sentences on what differed; none when the cell is fine."""
    is_refused = allowed_refusal(hazard, method, run)
    if is_refused and not run.output:
        return []
    faults = list(native.faults) + list(run.faults)
    if run.status != native.status:
        faults.append(f"status {run.status}, natively {native.status}")
    _, want = counters(native.output)
    calls, have = counters(run.output, method.counts)
    if method.how == "detach":  # as many rounds as there was time for
        want, have = (sorted({x for x in lines if not x.startswith(("calls ", "java "))}) for lines in (want, have))
    if have != want:
        missing = [line for line in want if line not in have][:2]
        extra = [line for line in have if line not in want][:2]
        faults.append(f"output differs: {' / '.join(missing) or 'nothing'} became {' / '.join(extra) or 'nothing'}")
    if is_refused:
        return faults
    try:
        figures = read_figures(weir, hazard, method, run)
    except (subprocess.TimeoutExpired, ValueError) as e:
        return faults + [f"the reports cannot be read: {e}"]
    faults += figures.faults
    if method.figures and not figures.faults:
        faults += judge_calls(hazard, method, calls, figures)
    is_full = hazard.disk and "No space" in run.said
    if method.how in ("attach", "detach", "probe") and run.weir_status not in (0, 3) and not is_full:
        faults.append(f"weir ended with {run.weir_status}")
    if run.weir_status == 1 and faults and run.said:
        faults.append("weir said: " + run.said.strip().splitlines()[-1])
    return faults
