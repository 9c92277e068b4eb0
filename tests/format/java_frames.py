#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""java_frames.py TRACE: reads the frames of JVMs in a trace as docs/format/trace.md has them (FRAMES, images `[java]`),
by the second reader, and prints "ok N frames of M methods", or what does not obey."""
import collections
import json
import os
import subprocess
import sys

reader = os.path.join(os.path.dirname(os.path.abspath(__file__)), "read_trace.py")
trace = json.loads(subprocess.run([sys.executable, reader, sys.argv[1]], check=True, capture_output=True).stdout)
symbols = {row[0]: row[1:] for row in trace["symbols"]}
images = [None] + trace["images"]
# What bits 62-63 say -> kind of frame, begin of the name
WHAT = {0: (3, "I:"), 1: (4, "J:"), 2: (1, "F:"), 3: (1, "[stub ")}
wrong, n = [], 0
methods = collections.defaultdict(set)
for number, frame in enumerate(trace["frames"], 1):
    if not frame[2] or images[frame[2]][1] != "[java]":
        continue
    kind, _, image, name, addr = frame
    what, code = addr >> 62, addr >> 32 & 0x3FFFFFFF
    n += 1
    if (kind, True) != (WHAT[what][0], name.startswith(WHAT[what][1])):
        wrong.append(f"frame {number}: kind {kind}, {name} is no {WHAT[what]}")
    if number not in symbols or symbols[number][1][-1][0] != name:
        wrong.append(f"frame {number}: its symbol is not that of {name}")
    if not symbols.get(number, ["?"])[0]:
        methods[image, what, code].add(name)
for key, names in methods.items():
    if key[1] != 3 and len(names) != 1:
        wrong.append(f"code {key} is {names}")
if any(image and image[1] == "[java]" and (image[0] != 4 or image[2] != 64 or not image[5]) for image in images):
    wrong.append("an image [java] is not of kind JIT, 64 bits, with a time")
print("\n".join(wrong[:5]) if wrong else f"ok {n} frames of {len(methods)} methods")
