# SPDX-License-Identifier: MIT
# objects.py ROUNDS: calls, dictionaries, JSON, regular expressions, sorting.
import json
import re
import sys


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Node:
    def __init__(self, key):
        self.key, self.left, self.right = key, None, None

    def insert(self, key):
        side = "left" if key < self.key else "right"
        child = getattr(self, side)
        if child:
            child.insert(key)
        else:
            setattr(self, side, Node(key))

    def walk(self):
        if self.left:
            yield from self.left.walk()
        yield self.key
        if self.right:
            yield from self.right.walk()


def main(rounds):
    total, seed = 0, 1
    vowels = re.compile(r"(a|e)+[b-d]*")
    for _ in range(rounds):
        total += fib(13)
        root = Node(500)
        for _ in range(120):
            seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
            root.insert(seed % 1000)
        keys = list(root.walk())
        text = json.dumps({"keys": keys, "names": ["k%d" % k for k in keys]})
        total += len(json.loads(text)["names"])
        total += len(vowels.sub(lambda m: m.group(0).upper(), "abcaed" * 40))
        total += sorted(keys, key=lambda k: -k)[0]
    print(total)


main(int(sys.argv[1]))
