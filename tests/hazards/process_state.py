# SPDX-License-Identifier: MIT
"""What a running process has: processes of a cell, code that differs from its file, mappings, descriptors."""
import os
import struct

SECTION_EXECUTABLE = 4
SECTION_NO_BYTES = 8
STRETCH = 512


def read(path, mode="r"):
    try:
        with open(path, mode) as file:
            return file.read()
    except OSError:
        return "" if mode == "r" else b""


def processes():
    """(pid, inode of its folder) of all; another process with the same pid has another inode."""
    return [(entry.name, entry.inode()) for entry in os.scandir("/proc") if entry.name.isdigit()]


# Those that were there before any cell are of none, and most of what a machine has.
strangers = set(processes())


def processes_of(cell):
    """Pids of living processes with HAZARD_CELL=cell in their environment."""
    mark, pids = f"HAZARD_CELL={cell}".encode(), []
    for process in processes():
        if process not in strangers and mark in read(f"/proc/{process[0]}/environ", "rb").split(b"\0"):
            state = read(f"/proc/{process[0]}/stat").rpartition(")")[2].split()
            if state and state[0] not in "ZX":
                pids.append(int(process[0]))
    return pids


def command_of(pid):
    return read(f"/proc/{pid}/cmdline").replace("\0", " ").strip() or f"pid {pid}"


def code_sections(data):
    """(offset in the file, bytes) of the executable sections of an ELF file."""
    if data[:4] != b"\x7fELF":
        return []
    wide = data[4] == 2
    at, = struct.unpack_from("<Q" if wide else "<I", data, 0x28 if wide else 0x20)
    size, n = struct.unpack_from("<HH", data, 0x3a if wide else 0x2e)
    sections = []
    for i in range(n):
        if wide:
            _, kind, flags, _, offset, length = struct.unpack_from("<IIQQQQ", data, at + i * size)
        else:
            _, kind, flags, _, offset, length = struct.unpack_from("<IIIIII", data, at + i * size)
        if flags & SECTION_EXECUTABLE and kind != SECTION_NO_BYTES and length:
            sections.append((offset, length))
    return sections


files = {}


def code_of(path):
    """[(offset, bytes)] of the code in a file, read once."""
    if path not in files:
        data = read(path, "rb")
        files[path] = [(offset, data[offset:offset + n]) for offset, n in code_sections(data)]
    return files[path]


def mappings(pid):
    """(start, end, permissions, offset, path) of each mapping."""
    rows = []
    for line in read(f"/proc/{pid}/maps").splitlines():
        f = line.split(None, 5)
        start, end = (int(x, 16) for x in f[0].split("-"))
        rows.append((start, end, f[1], int(f[2], 16), f[5] if len(f) > 5 else ""))
    return rows


def differences(have, want):
    """Where they differ; whole stretches are compared first, of which nearly all are the same."""
    if have == want:
        return []
    return [i for at in range(0, len(want), STRETCH) if have[at:at + STRETCH] != want[at:at + STRETCH]
            for i, (x, y) in enumerate(zip(have[at:at + STRETCH], want[at:at + STRETCH]), at) if x != y]


def patched(pid, only=""):
    """Addresses of bytes of code that differ from the files that they were mapped from; only: part of the path."""
    addresses = []
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
            for start, end, permissions, offset, path in mappings(pid):
                if "x" not in permissions or not path.startswith("/") or "libweir" in path or only not in path:
                    continue
                for at, want in code_of(path):
                    low, high = max(at, offset), min(at + len(want), offset + end - start)
                    if low >= high:
                        continue
                    mem.seek(start + low - offset)
                    have, want = mem.read(high - low), want[low - at:high - at]
                    addresses += [start + low - offset + i for i in differences(have, want)]
    except OSError:
        pass
    return addresses


def patched_bytes(pid):
    return len(patched(pid))


def patched_places(pid, only):
    """How many functions: bytes of one patch are near each other."""
    addresses = sorted(patched(pid, only))
    return sum(1 for i, a in enumerate(addresses) if i == 0 or a - addresses[i - 1] > 8)


def files_mapped(pid):
    return {path for _, _, _, _, path in mappings(pid) if path.startswith("/")}


def descriptors(pid):
    found = {}
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            found[fd] = os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        pass
    return found
