#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second, naive model of the call tree, to compare weir's reports with.

  model.py tree|flat|arcs events|samples FILE   the rows that `weir report` must print
  model.py random SEED                          an events file for that
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

    def see(self, path):
        for i in range(1, len(path) + 1):
            if path[:i] not in self.base:
                self.order.append(path[:i])
                self.calls[path[:i]] = self.base[path[:i]] = 0

    def load_events(self, path):
        threads = {}
        self.counted = True
        for word in words(path):
            time, what, name = int(word[0]), word[1], word[2]
            tid = word[3] if len(word) > 3 else "tid"
            root = ("pid_" + tid,)
            if tid not in threads:
                threads[tid] = [root, time]
                self.see(root)
                self.calls[root] = 1
            here, last = threads[tid]
            self.base[here] += time - last
            if what == "enter":
                here = here + (name,)
                self.see(here)
                self.calls[here] += 1
            elif name in here[1:]:
                at = len(here) - 1 - here[::-1].index(name)
                here = here[:at]
            threads[tid] = [here, time]

    def load_samples(self, path):
        self.counted = False
        for word in words(path):
            root = "pid_tid"
            if word[0].endswith(":") and word[0][:-1].isdigit():
                root = "pid_" + word.pop(0)[:-1]
            self.see((root,) + tuple(word))
            self.base[(root,) + tuple(word)] += 1

    def cum(self, path):
        return sum(b for p, b in self.base.items() if p[: len(path)] == path)

    def rl(self, path):
        return path[1:].count(path[-1]) if len(path) > 1 else 1

    def is_root(self, path):
        return len(path) == 1

    def depth_first(self, under=()):
        for path in self.order:
            if len(path) == len(under) + 1 and path[:-1] == under:
                yield path
                yield from self.depth_first(path)

    def show_calls(self, n):
        return str(n) if self.counted else "."

    def tree(self):
        for p in self.depth_first():
            yield (f"{len(p) - 1} {self.rl(p)} {self.show_calls(self.calls[p])} {self.base[p]} "
                   f"{self.cum(p)} {'- ' * (len(p) - 1)}{p[-1]}")

    def routines(self):
        """(is root, name) in order of cum, with (calls, base, cum, cum2)."""
        rows = {}
        for p in self.order:
            row = rows.setdefault((self.is_root(p), p[-1]), [0, 0, 0, 0])
            row[0] += self.calls[p]
            row[1] += self.base[p]
            row[2] += self.cum(p) if self.rl(p) == 1 else 0
            row[3] += self.cum(p)
        return sorted(rows.items(), key=lambda item: -item[1][2])

    def flat(self):
        for (_, name), (calls, base, cum, cum2) in self.routines():
            yield f"{self.show_calls(calls)} {base} {cum} {cum2 if cum2 != cum else '.'} {name}"

    def groups(self, rows, by):
        """rows: (name, recursive, calls, base, cum); added up, grouped, ordered."""
        found = {}
        for key, recursive, *numbers in rows:
            group = found.setdefault(key, {})
            old = group.get(recursive, [0, 0, 0])
            group[recursive] = [a + b for a, b in zip(old, numbers)]
        ranked = sorted(found.items(),
                        key=lambda g: (False not in g[1], -(g[1].get(False) or g[1][True])[by]))
        for key, group in ranked:
            for recursive in (False, True):
                if recursive in group:
                    yield key, recursive, group[recursive]

    def arcs(self):
        for i, (key, (calls, base, cum, cum2)) in enumerate(self.routines()):
            if i:
                yield "="
            mine = [p for p in self.order if (self.is_root(p), p[-1]) == key]
            up = [((self.is_root(p[:-1]), p[-2]), self.rl(p) > 1, self.calls[p], self.base[p],
                   self.cum(p)) for p in mine if len(p) > 1]
            down = [((False, c[-1]), self.rl(p) > 1, self.calls[c], self.base[c], self.cum(c))
                    for p in mine for c in self.order if c[:-1] == p]
            for (_, name), recursive, n in self.groups(up, 0 if calls else 2):
                yield f"{'r' * recursive}Parent {self.show_calls(n[0])} {n[1]} {n[2]} {name}"
            shown = f"{cum}/{cum2}" if cum != cum2 else cum
            yield f"Self {self.show_calls(calls)} {base} {shown} {key[1]}"
            for (_, name), recursive, n in self.groups(down, 2):
                yield f"{'r' * recursive}Child {self.show_calls(n[0])} {n[1]} {n[2]} {name}"


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
        self_, parents, children = row["self"], row["parents"], row["children"]
        plain = [p for p in parents if not p["recursive"]]
        if row["kind"] == "thread":
            ok = not parents
        else:
            ok = (sum(p["calls"] or 0 for p in parents) == (self_["calls"] or 0)
                  and sum(p["base"] for p in parents) == self_["base"]
                  and sum(p["cum"] for p in plain) == self_["cum"]
                  and sum(p["cum"] for p in parents) == self_["cum2"])
        ok = ok and sum(c["cum"] for c in children) == self_["cum2"] - self_["base"]
        if not ok:
            bad.append(row["name"])
    if bad or not report["rows"]:
        print("broken stanzas:", bad or "there are none at all")
        sys.exit(1)


def main():
    if sys.argv[1] == "random":
        random_events(int(sys.argv[2]))
    elif sys.argv[1] == "check-arcs":
        check_arcs(sys.argv[2])
    else:
        model = Model()
        getattr(model, "load_" + sys.argv[2])(sys.argv[3])
        for line in getattr(model, sys.argv[1])():
            print(line)


main()
