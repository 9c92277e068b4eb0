# SPDX-License-Identifier: MIT
"""What a recording holds: samples, losses, bytes, and how many stacks reach their thread's start.

One judge for every tool: the outermost frame of a stack must lie in the first bytes at its image's
entry point (_start), or in a function whose call-frame information says that nobody called it
(clone, clone3). Samples without a user part are left out.
"""
import bisect
import collections
import functools
import json
import re
import struct
import subprocess

KERNEL_START, KERNEL_END = 0xFFFF800000000000, 0xFFFFFFFFFFFFF000
START_BYTES = 128  # of _start, and of _dl_start_user behind it in the dynamic linker
Contents = collections.namedtuple("Contents", "samples lost stacks complete frames")


class Image:
    def __init__(self, path):
        with open(path, "rb") as f:
            head = f.read(64)
            if head[:5] != b"\x7fELF\x02":
                raise ValueError("not a 64-bit ELF file")
            self.entry, phoff = struct.unpack_from("<QQ", head, 24)
            size, n = struct.unpack_from("<HH", head, 54)
            f.seek(phoff)
            table = f.read(size * n)
        rows = [struct.unpack_from("<IIQQQQ", table, i * size) for i in range(n)]
        self.loads = [(r[2], r[3], r[5]) for r in rows if r[0] == 1]
        self.path = path

    def offset_to_addr(self, offset):
        for start, addr, n in self.loads:
            if start <= offset < start + n:
                return offset - start + addr
        return None

    @functools.cached_property
    def outermost(self):
        """Sorted (start, end) of functions whose return address is undefined."""
        out, bounds = [], None
        dump = subprocess.run(
            ["readelf", "-wf", self.path], capture_output=True, text=True, check=False
        ).stdout
        for line in dump.splitlines():
            m = re.search(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            if m:
                bounds = int(m[1], 16), int(m[2], 16)
            elif bounds and "DW_CFA_undefined" in line and "rip" in line:
                out.append(bounds)
        return sorted(set(out))

    def is_start(self, addr):
        if self.entry <= addr <= self.entry + START_BYTES:
            return True
        if "libc" not in self.path and "libpthread" not in self.path:
            return False
        i = bisect.bisect(self.outermost, (addr, 1 << 64)) - 1
        return i >= 0 and self.outermost[i][0] <= addr <= self.outermost[i][1]


@functools.lru_cache(maxsize=None)
def image_at(path):
    try:
        return Image(path)
    except (OSError, ValueError, struct.error):
        return None


@functools.lru_cache(maxsize=None)
def is_start(path, addr, is_offset):
    image = image_at(path)
    if image is None or addr is None:
        return False
    return image.is_start(image.offset_to_addr(addr) or 0 if is_offset else addr)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def of_weir(weir, outermost, trace):
    """Contents by our judge, and the stacks and complete ones that weir itself claims."""
    samples = frames = stacks = complete = 0
    for line in run([outermost, trace]).splitlines():
        if line.startswith("samples "):
            samples, frames = int(line.split()[1]), int(line.split()[3])
            continue
        n, kind, addr, path = line.split(" ", 3)
        if kind != "kernel":
            stacks += int(n)
            complete += int(n) * (kind == "native" and is_start(path, int(addr, 16), False))
    answer = subprocess.run(
        [weir, "report", "loss", trace, "--json"], capture_output=True, text=True, check=False
    )
    if answer.returncode not in (0, 3):
        raise SystemExit(answer.stderr)
    loss = json.loads(answer.stdout)["loss"]
    own = loss["stacks"], loss["stacks_complete"]
    return Contents(samples, loss["samples_lost"], stacks, complete, frames), own


def of_perf(perf, data, env):
    stats = run([perf, "report", "--stats", "-i", data], env=env)
    lost = sum(int(n) for n in re.findall(r"LOST(?:_SAMPLES)? events:\s+(\d+)", stats))
    if lost:  # each record stands for some; those that perf itself counted are in the dump
        dump = run([perf, "script", "-i", data, "--show-lost-events", "-F", "tid"], env=env)
        lost = sum(int(n) for n in re.findall(r"PERF_RECORD_LOST lost (\d+)", dump)) or lost
    script = subprocess.Popen(
        [perf, "script", "-i", data, "--no-inline", "--max-stack", "4096", "-F", "tid,ip,sym,dso"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
    )
    samples = frames = stacks = complete = 0
    last = None
    for line in script.stdout:
        if line.startswith((" ", "\t")) and line.rstrip().endswith(")"):
            last = line
            frames += "ffffffffffffffff [unknown]" not in line  # perf's mark of a walk that failed
        elif not line.strip():
            if last is not None:
                ip, rest = last.split(None, 1)
                path = rest[rest.rindex("(") + 1 : rest.rindex(")")]
                if not KERNEL_START <= int(ip, 16) < KERNEL_END:
                    stacks += 1
                    complete += is_start(path, int(ip, 16), True)
            last = None
        else:
            samples += 1
    if script.wait():
        raise SystemExit("perf script failed on " + data)
    return Contents(samples, lost, stacks, complete, frames)


def weir_chunk_bytes(trace):
    """Bytes of the file by chunk type (docs/format/trace.md); 11 is RECORDS."""
    by_type = collections.Counter()
    with open(trace, "rb") as f:
        f.seek(16)
        while True:
            head = f.read(48)
            if len(head) < 48 or head[:4] != b"wCHK":
                return by_type
            kind, _, _, stored = struct.unpack_from("<HHII", head, 4)
            by_type[kind] += 48 + stored
            f.seek(stored, 1)
