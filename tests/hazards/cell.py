# SPDX-License-Identifier: MIT
"""One cell: a hazard's program under one method. Runs it, and collects what the comparison needs."""
import glob
import os
import select
import shlex
import signal
import subprocess
import time

import process_state
from programs_built import copy_of, quoted

RESTORED_WITHIN = 1.2  # seconds behind the end of weir, also for processes that do nothing
CPUS = os.cpu_count() or 1


def limit():
    """Seconds for a cell, whose program takes less than 0.3 natively; more where others want the machine, too."""
    if os.environ.get("WEIR_HAZARD_SECONDS"):
        return float(os.environ["WEIR_HAZARD_SECONDS"])
    return 20 * min(4, max(1, os.getloadavg()[0] / (4 * CPUS)))


def has_begun(trace):
    """The first byte of a count file is written last: before that, its process was killed and has counted nothing."""
    with open(trace, "rb") as file:
        return file.read(1) != b"\0"


class Stuck(Exception):
    pass


class Run:
    """What came of a program: output, status as a shell says it, what weir said, and what is wrong."""

    def __init__(self):
        self.output, self.status, self.said, self.weir_status = "", None, "", None
        self.traces, self.faults = [], []


def shell_status(code):
    return 128 - code if code < 0 else code


class Cell:
    def __init__(self, hazard, method, weir, folder, built, say=lambda text: None):
        self.hazard, self.method, self.weir, self.folder, self.say = hazard, method, weir, folder, say
        self.number = os.path.basename(folder) + f".{os.getpid()}"
        self.limit = limit()
        self.deadline = time.monotonic() + self.limit
        self.started = []
        os.makedirs(folder + "/tmp")
        copy_of(built, folder)
        self.environment = {**os.environ, "HAZARD_CELL": self.number, "TMPDIR": folder + "/tmp",
                            "HAZARD_OTHER": folder + "/other", "HAZARD_WEIR": weir, "LC_ALL": "C.UTF-8"}
        for name in ("LD_PRELOAD", "WEIR_OUT", "WEIR_SITES"):
            self.environment.pop(name, None)
        self.disk = None
        if hazard.disk:
            self.disk = folder + "/disk"
            os.mkdir(self.disk)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={hazard.disk}", "none", self.disk], check=True)

    def mode(self):
        """How the program is run; see programs/hazard.h."""
        if self.method.how not in ("attach", "detach"):
            return "once"
        if self.hazard.once:
            return "held"
        return "hold" if self.method.how == "attach" else "loop"

    def program(self, mode):
        size = {"all": self.hazard.size, "third": -(-self.hazard.size // 3), "tiny": self.hazard.tiny}[self.method.work]
        return ["./program", str(size), mode]

    def trace(self):
        return (self.disk or self.folder) + "/trace.weir"

    def command(self, pid=None):
        globs = "h_*" + "".join(f",{name.removeprefix('dl:')}:h_*" for name, _, _ in self.hazard.libraries)
        stack_globs = "h_top,h_work,h_parent,h_body,h_yields,h_resumes"
        words = {"globs": globs, "trace": self.trace(), "pid": pid, "stack_globs": stack_globs}
        return [self.weir] + [word.format(**words) for word in self.method.command]

    def start(self, command, name, stdin=subprocess.DEVNULL, stderr=None, errors=None):
        """Output in NAME.out, standard error in NAME.err, or in that of `errors`, or a pipe."""
        self.say(f"cd {self.folder} && HAZARD_CELL={self.number} TMPDIR={self.folder}/tmp {quoted(command)}")
        with open(f"{self.folder}/{name}.out", "ab") as out, open(f"{self.folder}/{errors or name}.err", "ab") as err:
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=stdin, stdout=out,
                                       stderr=stderr or err, start_new_session=True)
        self.started.append(process)
        return process

    def wait(self, process):
        try:
            return shell_status(process.wait(max(0.1, self.deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            raise Stuck(f"no end within {self.limit:.0f} s")

    def text(self, name):
        return process_state.read(f"{self.folder}/{name}")

    def run(self):
        """The program under the method."""
        run = Run()
        try:
            getattr(self, "run_" + self.method.how)(run)
        except Stuck as e:
            run.faults.append(str(e))
        self.judge_leftovers(run)
        run.output = self.text("program.out")
        run.said += self.text("weir.err")
        return run

    def run_native(self, mode=None):
        run, mode = Run(), mode or self.mode()
        try:
            if mode == "once":
                process = self.start(self.program("once"), "program")
                self.start_beside()
                run.status = self.wait(process)
            else:
                process = self.start_waiting(mode)
                self.go_on(process)
                self.start_beside()
                if mode == "hold":
                    self.ready(process)
                if mode != "held":
                    self.go_on(process)
                run.status = self.wait(process)
        except Stuck as e:
            run.faults.append("natively: " + str(e))
        self.judge_leftovers(run)
        run.output = self.text("program.out")
        if not run.faults and (run.status > 128 or "result " not in run.output):
            run.faults.append(f"natively: the program does not work: status {run.status}")
        return run

    # --- methods

    def run_launch(self, run):
        # weir's own sentences and the program's standard error are one stream here.
        command = self.command() + ["--"] + self.program("once")
        process = self.start(command, "program", errors="weir")
        self.start_beside()
        run.status = run.weir_status = self.wait(process)
        run.traces = [self.trace()]
        self.judge_outlivers(run)

    def run_run(self, run):
        if self.disk:
            self.environment["WEIR_OUT"] = self.trace()
        process = self.start(self.program("once"), "program")
        self.start_beside()
        run.status = self.wait(process)
        run.said += self.text("program.err")
        self.wait_for_outlivers()
        # A file that was there becomes .old: that of the program before its exec.
        run.traces = [f for f in sorted(glob.glob((self.disk or self.folder) + "/*.weir*")) if has_begun(f)]

    def run_probe(self, run):
        with open(self.folder + "/status", "w") as script:
            script.write('#!/bin/sh\n"$@"\necho $? >status.txt\n')
        os.chmod(self.folder + "/status", 0o755)
        files = ["program"] + ["other"] * self.hazard.other
        files += [name.removeprefix("dl:") for name, _, _ in self.hazard.libraries]
        script = " ".join(f"uprobe:./{name}:h_* {{ @[func] = count(); }}" for name in files)
        command = self.command() + ["-e", script, "-c", "./status " + " ".join(self.program("once"))]
        process = self.start(command, "program", errors="weir")
        self.start_beside()
        run.weir_status = self.wait(process)
        run.status = int(self.text("status.txt").strip() or -1)
        run.traces = [self.trace()]
        self.judge_outlivers(run)

    def run_attach(self, run):
        program = self.start_waiting(self.mode())
        before = self.state(program.pid)
        weir = self.start(self.command(program.pid), "weir")
        self.wait_until_hooked(program.pid, weir)
        self.go_on(program)
        self.start_beside()
        if not self.hazard.once:
            self.ready(program)
            self.interrupt(weir)
        run.weir_status = self.wait(weir)
        if not self.hazard.once:
            self.judge_state(run, program.pid, before)
            self.go_on(program)
        run.status = self.wait(program)
        run.traces = [self.trace()]
        self.judge_outlivers(run)

    def run_detach(self, run):
        program = self.start_waiting(self.mode())
        before = self.state(program.pid)
        if not self.hazard.once:
            self.go_on(program)
            self.start_beside()
            time.sleep(0.02)
        weir = self.start(self.command(program.pid), "weir")
        run.weir_status = self.wait(weir)
        self.judge_state(run, program.pid, before)
        self.go_on(program)
        run.status = self.wait(program)
        run.traces = [self.trace()]
        self.judge_outlivers(run)

    def start_beside(self):
        """What happens to the program at the same time; a file tells it when that is over."""
        if not self.hazard.beside:
            return
        pid = self.program_pid()
        command = self.hazard.beside.format(pid=pid, weir=self.weir)
        self.start(["sh", "-c", f"{{ {command}; }} </dev/null; touch beside.done"], "beside")

    def is_beside(self):
        is_over = os.path.exists(self.folder + "/beside.done") or time.monotonic() > self.deadline
        return self.hazard.beside and not is_over

    def program_pid(self):
        """The process that runs the program itself, as soon as there is one."""
        while time.monotonic() < self.deadline:
            for pid in process_state.processes_of(self.number):
                try:
                    if os.readlink(f"/proc/{pid}/exe") == self.folder + "/program":
                        return pid
                except OSError:
                    pass
            if self.started[0].poll() is not None:
                return 0
            time.sleep(0.01)
        raise Stuck(f"the program does not begin within {self.limit:.0f} s")

    # --- programs that wait

    def start_waiting(self, mode):
        process = self.start(self.program(mode), "program", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ready(process)
        return process

    def ready(self, process):
        """The program says that it waits, or ends."""
        while time.monotonic() < self.deadline:
            if select.select([process.stderr], [], [], 0.1)[0]:
                text = os.read(process.stderr.fileno(), 4096).decode(errors="replace")
                if not text or "ready" in text:
                    return
                with open(self.folder + "/program.err", "a") as file:
                    file.write(text)
        raise Stuck(f"the program does not get ready within {self.limit:.0f} s")

    def go_on(self, process):
        try:
            process.stdin.write(b"\n")
            process.stdin.flush()
        except OSError:
            pass

    def wait_until_hooked(self, pid, weir):
        """Until every function is patched; or some are, and no more come; or nothing comes. Samples need no patch."""
        if not self.method.figures:
            time.sleep(0.5)
            return
        symbols = subprocess.run(["nm", self.folder + "/program"], stdout=subprocess.PIPE, text=True).stdout
        wanted = sum(line.split()[-1].startswith("h_") and " T " in line for line in symbols.splitlines())
        last, since, end = 0, time.monotonic(), time.monotonic() + 4
        while time.monotonic() < end and weir.poll() is None:
            n = process_state.patched_places(pid, self.folder)
            if n != last:
                last, since = n, time.monotonic()
            if n >= wanted or n and time.monotonic() - since > 1:
                return
            time.sleep(0.02)

    def interrupt(self, weir):
        if weir.poll() is None:
            weir.send_signal(signal.SIGINT)

    # --- what must hold afterwards

    def state(self, pid):
        return process_state.files_mapped(pid), process_state.descriptors(pid)

    def judge_state(self, run, pid, before):
        if not os.path.exists(f"/proc/{pid}/maps") or not process_state.mappings(pid):
            return
        n, end = process_state.patched_bytes(pid), time.monotonic() + RESTORED_WITHIN
        while n and (time.monotonic() < end or self.is_beside()):
            time.sleep(0.02)
            n = process_state.patched_bytes(pid)
        if n:
            run.faults.append(f"{n} bytes of code are not restored")
        if self.hazard.once or self.method.how == "attach":
            # The manual: a library stays, and the range that it shared with weir.
            extra = {p for p in process_state.files_mapped(pid) - before[0]
                     if "libweir" not in p and "/memfd:weir" not in p}
            extra -= {p for p in extra if p.startswith(self.folder) or "/libgcc_s" in p}
            if self.hazard.classes:  # a JVM opens and maps what it needs when it needs it
                extra = {p for p in extra if "weir" in p}
            if extra:
                run.faults.append(f"mapped besides: {' '.join(sorted(extra))}")
            now = process_state.descriptors(pid)
            extra = [f"{fd} ({now[fd]})" for fd in now
                     if fd not in before[1] and (not self.hazard.classes or "weir" in now[fd])]
            if extra:
                run.faults.append(f"descriptors besides: {' '.join(extra)}")

    def judge_outlivers(self, run):
        """Processes that go on when weir has ended: each must be seen with its own code soon."""
        pending, end = {}, time.monotonic() + RESTORED_WITHIN
        while time.monotonic() < end:
            living = [p for p in process_state.processes_of(self.number) if p not in self.own_pids()]
            pending = {p: pending.get(p, True) and process_state.patched_bytes(p) for p in living}
            if not living:
                return
            if not any(pending.values()):
                break
            time.sleep(0.05)
        for pid, n in pending.items():
            if n:
                run.faults.append(f"{n} bytes of code are not restored in {process_state.command_of(pid)}")
        self.wait_for_outlivers()

    def own_pids(self):
        return {p.pid for p in self.started if p.poll() is None}

    def wait_for_outlivers(self):
        end = time.monotonic() + 3
        while time.monotonic() < end and process_state.processes_of(self.number):
            time.sleep(0.02)

    def judge_leftovers(self, run):
        left = process_state.processes_of(self.number)
        # Then weir is killed here, and what it leaves is not its fault.
        is_stuck = any("no end" in fault or "not get ready" in fault for fault in run.faults)
        if left and not run.faults:
            self.wait_for_outlivers()
            left = process_state.processes_of(self.number)
        if left and not is_stuck:
            run.faults.append("processes are left: " + "; ".join(process_state.command_of(p) for p in left[:4]))
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        files = sorted(os.path.relpath(p, self.folder) for p in glob.glob(self.folder + "/tmp/**", recursive=True)
                       if p.rstrip("/") != self.folder + "/tmp")
        if files and not is_stuck:
            run.faults.append("left behind: " + " ".join(files[:4]))

    def close(self):
        for process in self.started:
            for pipe in (process.stdin, process.stderr):
                try:
                    if pipe:
                        pipe.close()
                except BrokenPipeError:  # the program has ended without reading its line
                    pass
        if self.disk:
            subprocess.run(["umount", "-l", self.disk])
