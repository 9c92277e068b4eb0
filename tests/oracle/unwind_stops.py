# SPDX-License-Identifier: MIT
# Runs inside gdb (gdb -x unwind_stops.py --args COMMAND...): stops the program at random moments and
# in single steps from there, and writes down for each thread what an unwinder needs (registers,
# stacks, mappings) and what gdb's own unwinder says. tests/oracle/unwind_replay.c reads the file.
#
#   OUT=file  STOPS=n  SLEEP_MS=longest time between stops  SEED=n
#
# The file: for each stack
#   stack BITS REG... (17 hexadecimal numbers in the order of enum cpu_reg)
#   map START END OFFSET PATH      (executable ones)
#   area START LENGTH              (and LENGTH raw bytes and a newline)
#   frame PC
#   blind                          (gdb did not know the image of one of the frames)
#   end REASON                     (gdb's)
import os
import random
import subprocess

import gdb

STACK_BYTES_MAX = 1 << 20
FRAMES_MAX = 4096
RED_ZONE_BYTES = 128  # below the stack pointer, which code may use
REGS_64 = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
REGS_32 = "eax edx ecx ebx esi edi ebp esp - - - - - - - - eip".split()
SETTINGS = """
set confirm off
set pagination off
set debuginfod enabled off
set breakpoint pending on
set print thread-events off
set backtrace past-main on
set backtrace past-entry on
set backtrace limit unlimited
set follow-fork-mode child
set detach-on-fork on
handle all nostop noprint pass
handle SIGINT stop print nopass
set inferior-tty /dev/null
"""


def read_maps(pid):
    for line in open("/proc/%d/maps" % pid):
        parts = line.split(None, 5)
        low, high = (int(x, 16) for x in parts[0].split("-"))
        yield low, high, parts[1], int(parts[2], 16), parts[5].strip() if len(parts) > 5 else ""


def read_bytes(pid, start, n):
    with open("/proc/%d/mem" % pid, "rb", 0) as f:
        f.seek(start)
        return f.read(n)


class Recorder:
    def __init__(self):
        self.out = open(os.environ["OUT"], "wb")
        self.vdso = os.environ["OUT"] + ".vdso"
        self.n_stacks = 0
        self.exec_lines = b""

    def put(self, text):
        self.out.write(text.encode() + b"\n")

    def read_mappings(self, pid):
        """Executable mappings as text, and the writable ones, where stacks are."""
        lines, writable = [], []
        for low, high, perms, offset, path in read_maps(pid):
            if path == "[vdso]":
                with open(self.vdso, "wb") as f:
                    f.write(read_bytes(pid, low, high - low))
                path = self.vdso
            if "x" in perms:
                lines.append("map %x %x %x %s" % (low, high, offset, path or "-"))
            elif "w" in perms:
                writable.append((low, high))
        return "\n".join(lines), writable

    def put_areas(self, pid, sps, writable):
        for low, high in writable:
            inside = [sp for sp in sps if low <= sp < high]
            if inside:
                start = max(low, min(inside) - RED_ZONE_BYTES)
                data = read_bytes(pid, start, min(high - start, STACK_BYTES_MAX))
                self.put("area %x %d" % (start, len(data)))
                self.out.write(data + b"\n")

    @staticmethod
    def is_unknown_to_gdb(pc, mappings):
        """The program has mapped a library of which gdb has not heard yet (ld.so is at work)."""
        space = gdb.current_progspace()
        for line in mappings.split("\n"):
            _, low, high, _, path = line.split(" ", 4)
            if int(low, 16) <= pc < int(high, 16):
                return ".so" in path and "ld-linux" not in path and space.solib_name(pc) is None
        return False

    def put_thread(self, pid, mappings, writable):
        frame = gdb.newest_frame()
        wide = "x86-64" in frame.architecture().name()
        mask = (1 << 64 if wide else 1 << 32) - 1
        names = REGS_64 if wide else REGS_32
        values = [int(frame.read_register(r)) & mask if r != "-" else 0 for r in names]
        pcs, sps, reason = [], [], "outermost"
        try:
            while frame is not None and len(pcs) < FRAMES_MAX:
                if pcs and not int(frame.pc()) & mask:
                    break  # no code: what Go's goexit, which nobody called, has for a return address
                if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                    pcs.append(int(frame.pc()) & mask)
                    sps.append(int(frame.read_register("rsp" if wide else "esp")) & mask)
                reason = gdb.frame_stop_reason_string(frame.unwind_stop_reason())
                frame = frame.older()
        except gdb.error as e:
            reason = "error: %s" % e
        self.put("stack %d %s" % (64 if wide else 32, " ".join("%x" % v for v in values)))
        self.put(mappings)
        self.put_areas(pid, sps, writable)
        for pc in pcs:
            self.put("frame %x" % pc)
        if any(self.is_unknown_to_gdb(pc, mappings) for pc in pcs):
            self.put("blind")
        self.put("end %s" % reason)
        self.n_stacks += 1

    def put_stop(self, all_threads):
        inferior = gdb.selected_inferior()
        mappings, writable = self.read_mappings(inferior.pid)
        here = gdb.selected_thread()
        for thread in inferior.threads() if all_threads else [here]:
            if thread.is_valid() and thread.is_stopped():
                thread.switch()
                self.put_thread(inferior.pid, mappings, writable)
        here.switch()


def is_alive():
    return gdb.selected_inferior().pid != 0 and gdb.selected_thread() is not None


def resume(command, seconds):
    """Runs a gdb command that resumes the program, and interrupts it after a while."""
    pid = gdb.selected_inferior().pid
    timer = subprocess.Popen(["/bin/sh", "-c", "sleep %f; exec kill -INT %d" % (seconds, pid)])
    try:
        gdb.execute(command, to_string=True)
    finally:
        timer.kill()
        timer.wait()


def in_system_call():
    pc = int(gdb.newest_frame().pc())
    code = bytes(gdb.selected_inferior().read_memory(pc - 2, 2))
    return code in (b"\x0f\x05", b"\xcd\x80", b"\x0f\x34")


def main():
    for line in SETTINGS.split("\n"):
        if line:
            gdb.execute(line, to_string=True)
    rng = random.Random(int(os.environ.get("SEED", "1")))
    wanted = int(os.environ["STOPS"])
    longest = float(os.environ.get("SLEEP_MS", "20")) / 1000
    recorder = Recorder()
    gdb.execute("starti", to_string=True)
    # The dynamic linker's first steps have frames of their own kind.
    for _ in range(3):
        resume("stepi %d" % rng.randrange(1, 40), 2)
        recorder.put_stop(False)
    while is_alive() and recorder.n_stacks < wanted:
        resume("continue", rng.random() * longest)
        if not is_alive():
            break
        recorder.put_stop(True)
        for _ in range(3):
            if not is_alive() or in_system_call():
                break
            resume("stepi %d" % rng.randrange(1, 12), 1)
            if is_alive():
                recorder.put_stop(False)
    recorder.out.close()
    print("stacks %d" % recorder.n_stacks)
    if is_alive():
        gdb.execute("kill", to_string=True)


main()
