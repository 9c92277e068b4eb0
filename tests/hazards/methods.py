# SPDX-License-Identifier: MIT
"""The columns of the matrix, and how programs are built for them. A method is one row."""

# What is added to the compiler's command line.
KINDS = {
    "plain": "",
    "nopie": "-fno-pie -no-pie",
    "int3": "-fpatchable-function-entry=1 -DHAZARD_INT3",
    "nop": "-fpatchable-function-entry=5",
    "patchable": "-fpatchable-function-entry=10,5",
    "mcount": "-pg",
    "fentry": "-pg -mfentry",
    "instrument": "-finstrument-functions",
    "static": "",   # and what the hazard says
    "counted": "",  # linked by weir count
    "counts": "",   # by weir count --counts
}

# What 32-bit programs need besides: gcc has -mfentry for them only without position-independent code.
KINDS_32 = {"fentry": "-fno-pie -no-pie"}

METHODS = {}


class Method:
    """name     of the column
    kind     of build
    how      launch: weir starts the program; attach: to a program that waits, for a whole round;
             detach: in the middle of the work; run: the program itself counts; probe: by weir probe -c
    command  of weir; {globs} are those of the functions, {trace} and {pid} files and process
    figures  where calls are read from: flat, lcov (report or export), maps (of a script), or None
    hooked   by which method the report of hooks must say that functions were hooked
    work     all of it; "tiny": the small size, since every instruction takes microseconds; "third": since every call
             does, and a program takes as long as with other methods all the same
    counts   the word of the program's lines that have the calls to compare with; "java" needs a JVM
    """

    def __init__(self, name, kind, how, command, figures="flat", hooked=None, work="all", bits=64,
                 counts="calls", needs_java=False):
        self.name, self.kind, self.how, self.command = name, kind, how, command.split()
        self.figures, self.hooked, self.work, self.bits = figures, hooked, work, bits
        self.counts, self.needs_java = counts, needs_java or counts == "java"
        METHODS[name] = self


def both(name, *args, **kwargs):
    Method(name, *args, **kwargs)
    Method(name + "_32", *args, **kwargs, bits=32)


EVENTS = "record --no-sample --events {globs} -o {trace}"
both("jump", "plain", "launch", "record --events {globs} -o {trace}", hooked="jump")
Method("jump_nopie", "nopie", "launch", EVENTS, hooked="jump")
both("int3", "int3", "launch", EVENTS, hooked="int3", work="third")
both("nop", "nop", "launch", EVENTS, hooked="nop")
both("patchable", "patchable", "launch", EVENTS, hooked="nop")
both("mcount", "mcount", "launch", EVENTS, hooked="mcount")
both("fentry", "fentry", "launch", EVENTS, hooked="mcount")
both("instrument", "instrument", "launch", EVENTS, hooked="instrument")
both("tree", "plain", "launch", "record --tree --events {globs} -o {trace}", hooked="jump")
both("stack_at", "plain", "launch", "record --events {globs} --stack-at {stack_globs} -o {trace}", hooked="jump")
both("budget", "plain", "launch", "record --budget 1 --events {globs} -o {trace}", hooked="jump")
both("attach", "plain", "attach", "record --no-sample --events {globs} -o {trace} -p {pid}", hooked="jump")
both("detach", "plain", "detach", "record --no-sample --events {globs} -o {trace} --duration 0.1 -p {pid}", hooked="jump")
Method("count", "counted", "run", "", figures="flat")
Method("counts", "counts", "run", "", figures="lcov")
Method("translate", "plain", "launch", "count -o {trace}")
# What libc does before main is the same for all, and most of the instructions.
both("steps_ptrace", "static", "launch", "steps --engine ptrace --from main -o {trace}", work="tiny")
Method("steps_translate", "static", "launch", "steps --engine translate -o {trace}", work="tiny")
both("probe", "plain", "probe", "probe -f json -O {trace}", figures="maps", work="third")
both("sample", "plain", "launch", "record -o {trace}", figures=None)
# Programs with a JVM: calls of Java's methods; and samples, whose stacks are walked by what the JVM says of itself.
Method("sample_attach", "plain", "attach", "record -o {trace} -p {pid}", figures=None, needs_java=True)
Method("sample_detach", "plain", "detach", "record -o {trace} --duration 0.1 -p {pid}", figures=None, needs_java=True)
Method("java", "plain", "launch", "record --no-sample --events hazard.Work:* -o {trace}", counts="java")
Method("java_samples", "plain", "launch", "record --events hazard.Work:* -o {trace}", counts="java")
Method("java_amounts", "plain", "launch", "record --no-sample --kinds method,heap,bytecode --events hazard.Work:* -o {trace}", counts="java")
