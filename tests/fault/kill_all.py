#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills the recorder, the program or both (SIGKILL) at random moments, over all methods of the matrix.

  kill_all.py N [--only I]    WEIR_KILL_SEED repeats a run

A program that was not killed itself goes on with its own code and ends as it does natively; the trace, where
there is one, opens; no process and no temporary file is left.
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hazards"))
import process_state  # noqa: E402
from cell import Cell, Run, Stuck, limit  # noqa: E402
from hazards import HAZARDS  # noqa: E402
from methods import METHODS  # noqa: E402
from programs_built import Programs  # noqa: E402

AT_A_TIME = 3
LEFT_OUT = {"detach": "ends by itself", "detach_32": "ends by itself"}
SIGKILLED = 128 + signal.SIGKILL


class Kill:
    """One kill: what is killed, under which method, and when."""

    def __init__(self, number, seed):
        r = random.Random(f"{seed}.{number}")
        self.number = number
        self.method = r.choice([m for name, m in METHODS.items() if name not in LEFT_OUT])
        self.victim = r.choice(self.victims())
        # Often while things begin, else while the work goes on.
        self.delay = r.uniform(0, 0.06) if r.random() < 0.4 else r.uniform(0.06, 0.6)

    def victims(self):
        if self.method.how == "run":
            return ["program"]
        if self.method.counts == "java":
            # "loop" is no JVM: it calls nothing that is hooked, and hooks are what notices that the recorder is gone
            # (weir-record(1)). A real JVM loses its recorder in tests/workloads/java_*.sh.
            return ["program", "both"]
        return ["recorder", "program", "both"]

    def name(self):
        return f"kill {self.number}: {self.method.name}, {self.victim} after {self.delay * 1000:.0f} ms"


class Killing(Cell):
    """The program works in a loop until there is a line on its standard input."""

    def begin(self):
        how = self.method.how
        program = self.program("loop")
        if how == "attach":
            self.target = self.start_waiting("loop")
            self.go_on(self.target)
            self.recorder = self.start(self.command(self.target.pid), "weir")
            return
        if how == "run":
            command, errors = program, "program"
        elif how == "probe":
            script = "uprobe:./program:h_* { @[func] = count(); }"
            command, errors = self.command() + ["-e", script, "-c", " ".join(program)], "weir"
        else:
            command, errors = self.command() + ["--"] + program, "weir"
        self.target = self.recorder = self.start(command, "program", stdin=subprocess.PIPE, errors=errors)
        self.go_on(self.target)

    def pid_of_program(self):
        for pid in process_state.processes_of(self.number):
            try:
                if os.readlink(f"/proc/{pid}/exe") == self.folder + "/program":
                    return pid
            except OSError:
                pass
        return 0

    def kill(self, victim):
        """Returns the pid of the program, 0 when it had not begun."""
        pid = self.pid_of_program()
        if victim != "program" and self.method.how != "run":
            self.recorder.send_signal(signal.SIGKILL)
        if victim != "recorder" and pid:
            os.kill(pid, signal.SIGKILL)
        return pid

    def start_next(self):
        """What a weir has left that was killed as it began, the next one sweeps."""
        if not os.listdir(self.folder + "/tmp"):
            return
        command = [self.weir, "record", "-q", "--no-sample", "--functions", "h_*", "-o", self.folder + "/next.weir", "--"]
        self.wait(self.start(command + self.program("once"), "next"))

    def wait_restored(self, pid):
        """The program, which works, has its own code again, and no tracer."""
        # The manual: "within some seconds in which the program calls hooked functions".
        end = time.monotonic() + limit() / 3
        while time.monotonic() < end:
            n = process_state.patched_bytes(pid)
            traced = "TracerPid:\t0\n" not in process_state.read(f"/proc/{pid}/status")
            if not n and not traced or not process_state.mappings(pid):
                return []
            time.sleep(0.05)
        return [f"{n} bytes of code are not restored"] * bool(n) + ["is still traced"] * traced


def judge_trace(weir, cell, faults, is_empty_fine):
    trace = cell.folder + "/program.weir" if cell.method.how == "run" else cell.trace()
    if cell.method.how == "probe" or not os.path.exists(trace):
        return
    if is_empty_fine and os.path.getsize(trace) == 0:
        return
    done = subprocess.run([weir, "report", "flat", trace], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, timeout=60)
    nothing_yet = done.returncode == 1 and "nothing" in done.stderr
    if done.returncode not in (0, 3) and not nothing_yet:
        faults.append(f"the trace does not open: status {done.returncode}, {done.stderr.strip()[:200]}")


def end_of(cell, kill, pid, faults):
    """What is alive ends as it should; then nothing is left."""
    how = cell.method.how
    if kill.victim == "recorder" and pid:
        faults += cell.wait_restored(pid)
    cell.go_on(cell.target)
    # A recorder that was alone ends with its program, and passes on how that ended.
    if kill.victim == "program" and how != "run":
        status = cell.wait(cell.recorder)
        allowed = (0, 3) if how in ("attach", "probe") else (SIGKILLED,)
        if pid and status not in allowed and not (how == "attach" and status == 1):
            faults.append(f"weir ended with {status}")
    end = time.monotonic() + 5
    while process_state.processes_of(cell.number) and time.monotonic() < end:
        time.sleep(0.02)
    text = cell.text("program.out")
    if kill.victim == "recorder" and pid and "result " not in text:
        faults.append("the program has not ended as it should")


def verdict(kill, programs, folder, native, say):
    faults, hazard = [], HAZARDS["none"]
    built = programs.folder_of(hazard, kill.method.kind, kill.method.bits)
    folder = os.path.join(folder, str(kill.number))
    os.makedirs(folder)
    cell = Killing(hazard, kill.method, programs.weir, folder, built, say)
    try:
        cell.begin()
        time.sleep(kill.delay)
        pid = cell.kill(kill.victim)
        end_of(cell, kill, pid, faults)
    except Stuck as e:
        faults.append(str(e))
    if kill.victim != "program":
        cell.start_next()
    left = Run()
    cell.judge_leftovers(left)
    faults += left.faults
    for line in cell.text("program.out").splitlines():
        if not line.startswith("here ") and line not in native[kill.method.bits, kill.method.work]:
            faults.append(f"the program says: {line}")
    judge_trace(programs.weir, cell, faults, kill.victim != "program")
    cell.close()
    if kill.delay and not faults:
        shutil.rmtree(folder, ignore_errors=True)
    return faults


def native_output(programs, folder):
    """What the program prints natively, by word size and how much work it has."""
    output = {}
    for name in ("jump", "jump_32", "int3", "int3_32", "steps_ptrace", "steps_ptrace_32"):
        method, hazard = METHODS[name], HAZARDS["none"]
        cell_folder = f"{folder}/native.{name}"
        os.makedirs(cell_folder)
        cell = Cell(hazard, method, programs.weir, cell_folder, programs.folder_of(hazard, method.kind, method.bits))
        run = cell.run_native("loop")
        cell.close()
        output[method.bits, method.work] = [line for line in run.output.splitlines() if not line.startswith("here ")]
    return output


def main():
    p = argparse.ArgumentParser()
    p.add_argument("n", type=int)
    p.add_argument("--only", type=int)
    o = p.parse_args()
    seed = os.environ.get("WEIR_KILL_SEED") or str(int(time.time()))
    print(f"seed {seed} (WEIR_KILL_SEED={seed} repeats it)", flush=True)
    folder = tempfile.mkdtemp(prefix="weir-kills-")
    programs = Programs(folder + "/programs", os.path.abspath(os.environ["WEIR"]))
    native = native_output(programs, folder)
    kills = [Kill(i, seed) for i in range(o.n) if o.only in (None, i)]
    say = print if o.only is not None else lambda text: None
    n_bad = 0
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        futures = [(kill, pool.submit(verdict, kill, programs, folder, native, say)) for kill in kills]
        for kill, future in futures:
            try:
                faults = future.result()
            except Exception as e:  # one that cannot be judged has failed, and the others go on
                faults = [f"{type(e).__name__}: {e}"]
            n_bad += bool(faults)
            print(f"not ok {kill.name()}: {'; '.join(faults)}" if faults else f"ok {kill.name()}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return n_bad != 0


if __name__ == "__main__":
    sys.exit(main())
