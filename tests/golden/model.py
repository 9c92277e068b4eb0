#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second, naive model of the call tree, to compare weir's reports with.

  model.py tree|flat|arcs events|samples FILE   the rows that `weir report` must print
  model.py random SEED                          an events file for that
  model.py random-merged SEED                   one with samples, switches and several stacks too
  model.py check-arcs REPORT.json               the sums that every stanza must keep

It works on lists and paths, with no tree of nodes, so that it shares no idea with the program.
"""
import json
import random
import sys


def words(path):
    for line in open(path):
        line = line.split("#")[0].split()
        if line:
            yield line


class Model:
    """Everything is kept by path: a tuple of names from the root on."""

    def __init__(self):
        self.order, self.calls, self.base = [], {}, {}
        self.sampled, self.samples, self.entered = {}, {}, set()
        self.merged = False

    def see(self, path):
        for i in range(1, len(path) + 1):
            if path[:i] not in self.base:
                self.order.append(path[:i])
                self.calls[path[:i]] = self.base[path[:i]] = 0
                self.sampled[path[:i]] = self.samples[path[:i]] = 0

    def load_events(self, path):
        threads = {}
        self.counted = True
        for word in words(path):
            time, what, name = int(word[0]), word[1], word[2] if len(word) > 2 else ""
            tid = word[3] if len(word) > 3 else "tid"
            if what.startswith("switch"):
                tid = name or "tid"
            elif what.startswith("sample"):
                tid = name[:-1] if name.endswith(":") else "tid"
            root = ("pid_" + tid,)
            if tid not in threads:
                threads[tid] = {"chains": {"0": root}, "chain": "0", "last": time, "runs": True}
                self.see(root)
                self.calls[root] = 1
                self.entered.add(root)
            t = threads[tid]
            here = t["chains"][t["chain"]]
            if t["runs"]:
                self.base[here] += time - t["last"]
            t["last"] = time
            if what.startswith("sample="):
                self.merge(here, word[3:] if name.endswith(":") else word[2:], int(what[7:]))
            elif what.startswith("switch"):
                t["runs"] = what == "switch-in"
            elif what == "stack":
                t["chain"] = name
                t["chains"].setdefault(name, root)
            elif what == "enter":
                here = here + (name,)
                self.see(here)
                self.calls[here] += 1
                self.entered.add(here)
                t["chains"][t["chain"]] = here
            elif name in here[1:]:
                at = len(here) - 1 - here[::-1].index(name)
                t["chains"][t["chain"]] = here[:at]

    def merge(self, open_, stack, weight):
        """The frames that are open calls, in order, and chains below those."""
        self.merged = True
        at, path = 1, open_[:1]
        for frame in stack:
            if frame in open_[at:]:
                at = open_.index(frame, at) + 1
                path = open_[:at]
            else:
                path = path + (frame,)
                self.see(path)
        self.sampled[path] += weight
        self.samples[path] += 1

    def load_samples(self, path):
        self.counted = False
        for word in words(path):
            root = "pid_tid"
            if word[0].endswith(":") and word[0][:-1].isdigit():
                root = "pid_" + word.pop(0)[:-1]
            self.see((root,) + tuple(word))
            self.sampled[(root,) + tuple(word)] += 1

    def exact(self, path):
        return path in self.entered

    def own(self, path):
        return self.base[path] if self.exact(path) else self.sampled[path]

    def cum(self, path):
        if not self.exact(path):
            return self.scum(path)
        return sum(b for p, b in self.base.items() if p[: len(path)] == path)

    def scum(self, path):
        return sum(b for p, b in self.sampled.items() if p[: len(path)] == path)

    def rl(self, path):
        return path[1:].count(path[-1]) if len(path) > 1 else 1

    def is_root(self, path):
        return len(path) == 1

    def depth_first(self, under=()):
        for path in self.order:
            if len(path) == len(under) + 1 and path[:-1] == under:
                yield path
                yield from self.depth_first(path)

    def show_calls(self, n, was_entered=True):
        return str(n) if self.counted and was_entered else "."

    def mark(self, name):
        """What no event ever entered is marked, in a trace with events."""
        if not self.counted or any(p[-1] == name for p in self.entered):
            return name
        return "+" + name

    def tree(self):
        for p in self.depth_first():
            name = p[-1] if self.exact(p) or not self.counted else "+" + p[-1]
            yield (f"{len(p) - 1} {self.rl(p)} {self.show_calls(self.calls[p], self.exact(p))} "
                   f"{self.own(p)} {self.cum(p)} {'- ' * (len(p) - 1)}{name}")

    def routines(self):
        """(is root, name) in order of cum, with a row of figures."""
        rows = {}
        for p in self.order:
            row = rows.setdefault((self.is_root(p), p[-1]), {
                "exact": False, "calls": 0, "base": 0, "cum": 0, "cum2": 0,
                "samples": 0, "sbase": 0, "scum": 0, "scum2": 0})
            outermost = self.rl(p) == 1
            row["calls"] += self.calls[p]
            row["samples"] += self.samples[p]
            row["sbase"] += self.sampled[p]
            row["scum"] += self.scum(p) if outermost else 0
            row["scum2"] += self.scum(p)
            if self.exact(p):
                row["exact"] = True
                row["base"] += self.base[p]
                row["cum"] += self.cum(p) if outermost else 0
                row["cum2"] += self.cum(p)
        for row in rows.values():
            if not row["exact"]:
                row["base"], row["cum"], row["cum2"] = row["sbase"], row["scum"], row["scum2"]
        return sorted(rows.items(), key=lambda item: -item[1]["cum"])

    def flat(self):
        for (_, name), r in self.routines():
            sampled = f"{r['samples']} {r['sbase']} {r['scum']} " if self.merged else ""
            yield (f"{self.show_calls(r['calls'], r['exact'])} {r['base']} {r['cum']} "
                   f"{r['cum2'] if r['cum2'] != r['cum'] else '.'} {sampled}{self.mark(name)}")

    def groups(self, rows, by_calls):
        """rows: (name, recursive, node); added up, grouped, ordered."""
        found = {}
        for key, recursive, figures in rows:
            group = found.setdefault(key, {})
            old = group.get(recursive, [0] * 5)
            group[recursive] = [a + b for a, b in zip(old, figures[:5])] + [
                figures[5] or (len(old) > 5 and old[5]), figures[6] or (len(old) > 5 and old[6])]

        def rank(item):
            row = item[1].get(False) or item[1][True]
            return (False not in item[1],) + ((-row[0],) if by_calls else (-row[2], -row[4]))
        for key, group in sorted(found.items(), key=rank):
            for recursive in (False, True):
                if recursive in group:
                    yield key, recursive, group[recursive]

    def figures(self, path, self_is_exact):
        """calls, base and cum of Self's kind, those of samples; entered? of Self's kind?"""
        fits = not self_is_exact or self.exact(path)
        base = self.base[path] if self_is_exact else self.sampled[path]
        cum = self.cum(path) if self_is_exact else self.scum(path)
        return [self.calls[path], base * fits, cum * fits, self.sampled[path], self.scum(path),
                self.exact(path), fits]

    def arcs(self):
        for i, (key, r) in enumerate(self.routines()):
            if i:
                yield "="
            mine = [p for p in self.order if (self.is_root(p), p[-1]) == key]
            up = [((self.is_root(p[:-1]), p[-2]), self.rl(p) > 1, self.figures(p, r["exact"]))
                  for p in mine if len(p) > 1]
            down = [((False, c[-1]), self.rl(p) > 1, self.figures(c, r["exact"]))
                    for p in mine for c in self.order if c[:-1] == p]
            yield from self.arc_rows("Parent", self.groups(up, r["calls"] > 0))
            sampled = f"{r['sbase']} {self.both(r['scum'], r['scum2'])} " if self.merged else ""
            yield (f"Self {self.show_calls(r['calls'], r['exact'])} {r['base']} "
                   f"{self.both(r['cum'], r['cum2'])} {sampled}{self.mark(key[1])}")
            yield from self.arc_rows("Child", self.groups(down, False))

    def both(self, cum, cum2):
        return f"{cum}/{cum2}" if cum != cum2 else cum

    def arc_rows(self, source, rows):
        for (_, name), recursive, (calls, base, cum, sbase, scum, entered, fits) in rows:
            own = f"{base} {cum}" if fits else ". ."
            sampled = f"{sbase} {scum} " if self.merged else ""
            yield (f"{'r' * recursive}{source} {self.show_calls(calls, entered)} {own} "
                   f"{sampled}{self.mark(name)}")


def random_merged(seed):
    """Three threads on two stacks each; samples of what is open with frames in between."""
    rng = random.Random(seed)
    stacks = {(tid, chain): [] for tid in ("", "7", "9") for chain in "01"}
    chain = {"": "0", "7": "0", "9": "0"}
    runs = {"": True, "7": True, "9": True}
    time, tid = 0, ""
    print("0 enter A\n1 enter A 7\n2 enter A 9")
    for t in chain:
        stacks[t, "0"].append("A")
    for _ in range(rng.randint(20, 250)):
        last, tid = tid, rng.choice(list(chain))
        stack = stacks[tid, chain[tid]]
        behind = " " + tid if tid else ""
        time += rng.randint(0 if tid == last and time > 2 else 3, 4)
        what = rng.random()
        if what < 0.1:
            chain[tid] = rng.choice("01")
            print(f"{time} stack {chain[tid]}{behind}")
        elif what < 0.2:
            runs[tid] = not runs[tid]
            print(f"{time} switch-{'in' if runs[tid] else 'out'}{behind}")
        elif what < 0.45:
            frames = []
            for name in stack:
                frames += [rng.choice("xyzA") for _ in range(rng.randint(0, 2))] + [name]
            frames += [rng.choice("xyz") for _ in range(rng.randint(0 if frames else 1, 3))]
            print(f"{time} sample={rng.randint(1, 9)}{behind and behind + ':'} {' '.join(frames)}")
        elif stack and (len(stack) > 6 or what < 0.7):
            print(f"{time} leave {stack.pop()}{behind}")
        else:
            stack.append(rng.choice("ABCDz"))
            print(f"{time} enter {stack[-1]}{behind}")


def random_events(seed):
    rng = random.Random(seed)
    names = "ABCDEFG"
    stacks = {"": [], " 7": [], " 9": []}
    time, tid = 0, ""
    for _ in range(rng.randint(20, 300)):
        last, tid = tid, rng.choice(list(stacks))
        stack = stacks[tid]
        # Equal times only within a thread: across threads their order is not the file's.
        time += rng.randint(0 if tid == last else 1, 3)
        if stack and (len(stack) > 9 or rng.random() < 0.5):
            at = len(stack) - 1 if rng.random() < 0.9 else rng.randrange(len(stack))
            name = stack[at]
            at = len(stack) - 1 - stack[::-1].index(name)
            del stack[at:]
            print(f"{time} leave {name}{tid}")
        elif rng.random() < 0.05:
            name = rng.choice("XYZ")
            print(f"{time} leave {name}{tid}")
        else:
            stack.append(rng.choice(names))
            print(f"{time} enter {stack[-1]}{tid}")


def check_arcs(path):
    report = json.load(open(path))
    bad = []
    for row in report["rows"]:
        is_root = row["kind"] == "thread"
        if is_root and row["parents"] or not is_root and (
                sum(p["calls"] or 0 for p in row["parents"]) != (row["self"]["calls"] or 0)):
            bad.append(row["name"])
        for prefix in ("", "sampled_"):
            if not figures_hold(row, prefix, is_root):
                bad.append(prefix + row["name"])
    if bad or not report["rows"]:
        print("broken stanzas:", bad or "there are none at all")
        sys.exit(1)


def figures_hold(row, prefix, is_root):
    """What was not measured (null) adds nothing."""
    self_ = {key: row["self"][prefix + key] or 0 for key in ("base", "cum", "cum2")}
    up = [(p[prefix + "base"] or 0, p[prefix + "cum"] or 0, p["recursive"])
          for p in row["parents"]]
    if sum(c[prefix + "cum"] or 0 for c in row["children"]) != self_["cum2"] - self_["base"]:
        return False
    return is_root or (sum(p[0] for p in up) == self_["base"]
                       and sum(p[1] for p in up if not p[2]) == self_["cum"]
                       and sum(p[1] for p in up) == self_["cum2"])


def main():
    if sys.argv[1] == "random":
        random_events(int(sys.argv[2]))
    elif sys.argv[1] == "random-merged":
        random_merged(int(sys.argv[2]))
    elif sys.argv[1] == "check-arcs":
        check_arcs(sys.argv[2])
    else:
        model = Model()
        getattr(model, "load_" + sys.argv[2])(sys.argv[3])
        for line in getattr(model, sys.argv[1])():
            print(line)


main()
