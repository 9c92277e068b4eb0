# SPDX-License-Identifier: MIT
"""Programs of the matrix, built once for each (hazard, kind of build, word size), and run natively once."""
import os
import shutil
import subprocess
import threading

from methods import KINDS, KINDS_32

HERE = os.path.dirname(os.path.abspath(__file__))


class BuildError(Exception):
    pass


class Once:
    """Values by key, each computed by one thread while others wait for it."""

    def __init__(self):
        self.lock, self.values, self.locks = threading.Lock(), {}, {}

    def get(self, key, make):
        with self.lock:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.values:
                try:
                    self.values[key] = (make(), None)
                except BuildError as e:
                    self.values[key] = (None, e)
            value, error = self.values[key]
        if error:
            raise error
        return value


class Programs:
    def __init__(self, folder, weir, say=lambda text: None):
        self.folder, self.weir, self.say, self.once = folder, weir, say, Once()

    def folder_of(self, hazard, kind, bits):
        """A folder with `program`, its libraries, and `other` where the hazard wants it."""
        return self.once.get((hazard.name, kind, bits), lambda: self.build(hazard, kind, bits))

    def build(self, hazard, kind, bits):
        folder = os.path.join(self.folder, f"{hazard.name}.{kind}{bits}")
        os.makedirs(folder)
        for name, source, flags in hazard.libraries:
            library_kind = "plain" if kind in ("static", "counted", "counts") else kind
            self.compile(folder, source, name.removeprefix("dl:"), library_kind, bits,
                         ["-shared", "-fPIC"] + flags.split())
        libraries = [name for name, _, _ in hazard.libraries if not name.startswith("dl:")]
        if kind == "static" and hazard.dynamic:
            kind = "plain"
        flags = hazard.flags + [hazard.static] * (kind == "static")
        if hazard.classes:
            flags = flags + self.java(folder, hazard.classes)
        self.compile(folder, hazard.source, "program", kind, bits, flags, libraries)
        if hazard.other:
            kind = "plain" if kind in ("counted", "counts") else kind
            self.compile(folder, hazard.source, "other", kind, 96 - bits, flags, libraries)
        return folder

    def java(self, folder, sources):
        """Compiles the classes. Flags of the compiler and linker for a program with a JVM."""
        self.run(["javac", "-g", "-d", folder, *(f"{HERE}/programs/{source}" for source in sources)], folder)
        home = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("javac"))))
        library = home + "/lib/server"
        return [f"-I{home}/include", f"-I{home}/include/linux", f"-L{library}", f"-Wl,-rpath,{library}",
                "-Wl,--no-as-needed", "-ljvm"]

    def run(self, command, folder):
        self.say(f"(cd {folder} && {quoted(command)})")
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise BuildError(f"cannot be built: {(done.stdout.strip() or 'no output').splitlines()[0]}")

    def compile(self, folder, source, output, kind, bits, flags, libraries=()):
        compiler = "g++" if source.endswith(".cc") else "gcc"
        command = [compiler, "-w", "-g", "-O2", f"-m{bits}", f"-I{HERE}/programs", *KINDS[kind].split()]
        if bits == 32:
            command += KINDS_32.get(kind, "").split()
        command += [*flags, "-o", output, f"{HERE}/programs/{source}", *libraries, "-lpthread", "-ldl"]
        if libraries:
            command += ["-Wl,-rpath,$ORIGIN"]
        if kind in ("counted", "counts"):
            command = [self.weir, "count", "-q"] + (["--counts"] if kind == "counts" else []) + command
        self.run(command, folder)
        if not os.path.exists(os.path.join(folder, output)):
            raise BuildError("cannot be built: nothing was made")


def quoted(command):
    import shlex
    return " ".join(shlex.quote(word) for word in command)


def copy_of(built, folder):
    """The program's files get inodes of their own: probes of one cell are not on those of another.

    By another process: a file that this one writes to, in one thread, is busy for the children of others."""
    subprocess.run(["cp", "-r", built + "/.", folder], check=True)
