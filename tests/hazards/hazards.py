# SPDX-License-Identifier: MIT
"""The rows of the matrix. A hazard is one row, and a program in programs/ where none of those does."""
import fnmatch

HAZARDS = {}
JVM_COLUMNS = ("sample", "sample_attach", "sample_detach", "java*", "jump", "tree", "attach", "detach")


class Hazard:
    """name      of the row
    source    in programs/; flags: of the compiler and linker
    size      of a round: 50 to 300 ms of native work at most; tiny: the same for instruction tracing,
              a few thousand instructions
    bits      word sizes that it can have
    needs     what must be there: root, or a program by its name
    once      one round is all that a process can do: it execs, changes its user, dies ...
    libraries (file, source, flags): shared libraries that it is linked with, or opens ("dl:" in front)
    static    how the program for instruction tracing is linked; where frames are unwound, -static-pie has the
              index of frames that spares a million instructions
    dynamic   cannot be linked statically, so that instruction tracing sees the loader, too
    uncounted functions that `weir count` does not reach: those of libraries and other programs
    other     has the program in the other word size beside it, as $HAZARD_OTHER
    beside    a shell command for the time that the program (beside.c) works; {pid}, {weir}
    disk      bytes of a file system of its own for the trace
    classes   sources in Java; then the program has a JVM in it, and has columns of its own
    not_with  {pattern of methods: why the cell does not apply}
    refused   {pattern of methods: what weir says (a regular expression) when it rightly does not run it, or does
              not attach to it}
    """

    def __init__(self, name, source, flags="", size=100, tiny=1, bits=(64, 32), needs=(), once=False,
                 libraries=(), static="-static", dynamic=False, uncounted=(), other=False, disk=0, beside=None,
                 not_with=None, refused=None, classes=()):
        self.name, self.source, self.flags, self.size, self.tiny = name, source, flags.split(), size, tiny
        self.bits, self.needs, self.once, self.libraries, self.dynamic = bits, needs, once, libraries, dynamic
        self.uncounted, self.other, self.disk, self.beside = set(uncounted), other, disk, beside
        self.not_with, self.refused = not_with or {}, refused or {}
        self.static, self.classes = static, classes
        HAZARDS[name] = self

    def reason_against(self, method):
        if method.bits not in self.bits:
            return f"is not for {method.bits} bit"
        if method.needs_java and not self.classes:
            return "there is no JVM"
        if self.classes and not any(fnmatch.fnmatch(method.name, pattern) for pattern in JVM_COLUMNS):
            return "a JVM adds nothing to this column"
        for pattern, reason in self.not_with.items():
            if fnmatch.fnmatch(method.name, pattern):
                return reason
        return None


Hazard("none", "plain.c", size=300)

# --- signals: ticks of 200 us are 5 kHz
NO_FENTRY = {"fentry_32": "gcc has no -mfentry for position-independent code of 32 bit, which libraries are"}
SLOW_CALL = "a call by breakpoint takes microseconds: 200 of them are longer than the tick"
Hazard("timer", "timer.c", "-DTICK_US=200", size=300)
Hazard("handler_calls", "timer.c", "-DTICK_US=200 -DHANDLER_CALLS=1", size=300)
Hazard("handler_calls_20khz", "timer.c", "-DTICK_US=50 -DHANDLER_CALLS=1", size=300,
       not_with={"int3*": "two breakpoints and a signal take longer than the tick of 50 us", "probe*": "the same"})
Hazard("handler_200_calls", "timer.c", "-DTICK_US=200 -DHANDLER_CALLS=200", size=300,
       not_with={"int3*": SLOW_CALL, "probe*": SLOW_CALL})
Hazard("handlers_nested", "timer.c", "-DTICK_US=200 -DHANDLER_NESTED", size=300)
Hazard("sigaltstack", "timer.c", "-DTICK_US=200 -DHANDLER_CALLS=3 -DON_ALTSTACK", size=300)
Hazard("siglongjmp", "timer.c", "-DTICK_US=200 -DHANDLER_JUMPS", size=300)
Hazard("siglongjmp_altstack", "timer.c", "-DTICK_US=200 -DHANDLER_JUMPS -DON_ALTSTACK", size=300)

# --- ends of frames
Hazard("cancel_async", "cancels.c", static="-static-pie")
Hazard("cancel_async_frames", "cancels.c", "-O0 -fno-omit-frame-pointer", static="-static-pie")
Hazard("exceptions", "throws.cc", static="-static-pie")
Hazard("exceptions_static_libgcc", "throws.cc", "-static-libgcc -static-libstdc++",
       not_with={"steps*": "programs for these are linked statically anyway"})
Hazard("forced_unwind", "unwinds.c", tiny=2, static="-static-pie")
Hazard("forced_unwind_exceptions", "unwinds.c", "-fexceptions", tiny=2, static="-static-pie")

# --- processes and threads
Hazard("fork", "forks.c", "-DHOW_FORK")
Hazard("vfork", "forks.c", "-DHOW_VFORK")
Hazard("clone_vm", "forks.c", "-DHOW_CLONE")
Hazard("posix_spawn", "forks.c", "-DHOW_SPAWN")
Hazard("daemonize", "daemon.c", once=True)
Hazard("daemonize_idle", "daemon.c", "-DIDLE", once=True)
Hazard("exec_self", "exec_other.c", "-DEXEC_SELF", once=True)
Hazard("exec_other_bits", "exec_other.c", once=True, other=True, uncounted=["h_after"])
Hazard("thread_storm", "storm.c")
Hazard("dlopen_loop", "dlopens.c", libraries=[("dl:plugin.so", "plugin.c", "")], dynamic=True,
       uncounted=["h_plugin"], size=60, not_with=NO_FENTRY,
       refused={"detach*": "no thread was found at a moment when a function can be called"})

# --- stacks
Hazard("ucontext", "coroutines.c", "-DSTACK_BYTES=65536")
Hazard("ucontext_local", "coroutines.c", "-DSTACK_BYTES=65536 -DON_LOCAL")
Hazard("ucontext_local_4k", "coroutines.c", "-DSTACK_BYTES=4096 -DON_LOCAL -Wl,-z,now")
Hazard("ucontext_4k", "coroutines.c", "-DSTACK_BYTES=4096 -Wl,-z,now")
Hazard("switch_heap", "coroutines.c", "-DHAND_MADE -DSTACK_BYTES=65536")
Hazard("switch_local", "coroutines.c", "-DHAND_MADE -DSTACK_BYTES=65536 -DON_LOCAL")
Hazard("switch_4k", "coroutines.c", "-DHAND_MADE -DSTACK_BYTES=4096 -Wl,-z,now")
Hazard("coroutines20", "coroutines20.cc", "-std=c++20")

# --- handlers in the midst of other hazards
TICKS = "-DHAZARD_TICKS "
Hazard("ucontext_ticks", "coroutines.c", TICKS + "-DSTACK_BYTES=65536", size=1000)
Hazard("switch_heap_ticks", "coroutines.c", TICKS + "-DHAND_MADE -DSTACK_BYTES=65536", size=1000)
Hazard("switch_local_ticks", "coroutines.c", TICKS + "-DHAND_MADE -DSTACK_BYTES=65536 -DON_LOCAL", size=1000)
Hazard("exceptions_ticks", "throws.cc", TICKS, static="-static-pie")
Hazard("forced_unwind_ticks", "unwinds.c", TICKS + "-fexceptions", tiny=2, static="-static-pie")
Hazard("cancel_async_ticks", "cancels.c", TICKS, static="-static-pie")
Hazard("fork_ticks", "forks.c", TICKS + "-DHOW_FORK")
Hazard("thread_storm_ticks", "storm.c", TICKS)
Hazard("dlopen_ticks", "dlopens.c", TICKS, libraries=[("dl:plugin.so", "plugin.c", "")], dynamic=True,
       uncounted=["h_plugin"], size=60, not_with=NO_FENTRY,
       refused={"detach*": "no thread was found at a moment when a function can be called"})
Hazard("cache_lines_ticks", "cache_lines.c", TICKS + "-fno-toplevel-reorder -falign-functions=1", size=1000)

# --- layouts
Hazard("text_segment", "plain.c", "-fno-pie -no-pie -Wl,-Ttext-segment=0x40000000")
Hazard("text_segment_library", "dlopens.c", "-DLINKED", uncounted=["h_plugin", "h_second"], dynamic=True,
       libraries=[("libplugin.so", "plugin.c", "-Wl,-Ttext-segment=0x40000000"),
                  ("libsecond.so", "plugin_second.c", "-Wl,-Ttext-segment=0x40000000")], not_with=NO_FENTRY)
Hazard("noseparate_code", "plain.c", "-Wl,-z,noseparate-code")
Hazard("rwx_text", "rwx.c", not_with={"detach*": "it changes its code, which cannot be compared with the file"})
Hazard("huge_pages", "plain.c", "-Wl,-z,max-page-size=0x200000 -Wl,-z,common-page-size=0x200000")
Hazard("split_functions", "split.c", "-freorder-blocks-and-partition")
Hazard("cache_lines", "cache_lines.c", size=1000, flags="-fno-toplevel-reorder -falign-functions=1")
Hazard("asan", "plain.c", "-fsanitize=address", dynamic=True, refused={"*": "sanitizer|AddressSanitizer|libasan"},
       not_with={"steps*": "a start of millions of instructions",
                 "translate": "its search for leaks refuses to be traced"})

# --- limits
Hazard("limit_memory", "limits.c", "-DLIMIT=RLIMIT_AS -DLIMIT_VALUE=(100<<20)", once=True)
Hazard("limit_stack", "limits.c", "-DLIMIT=RLIMIT_STACK -DLIMIT_VALUE=(256<<10)", once=True)
Hazard("limit_files", "limits.c", "-DLIMIT=RLIMIT_NOFILE -DLIMIT_VALUE=4", once=True)
Hazard("full_disk", "plain.c", size=300, disk=65536, needs=["root"])

# --- rights
Hazard("seccomp_strict", "seccomp.c", "-DSECCOMP_HOW=1", once=True)
Hazard("seccomp_kills", "seccomp.c", "-DSECCOMP_HOW=2", once=True)
Hazard("seccomp_errno", "seccomp.c", "-DSECCOMP_HOW=3", once=True)
Hazard("setuid_drop", "privileges.c", "-DHOW_SETUID", once=True, needs=["root"])
Hazard("chroot", "privileges.c", "-DHOW_CHROOT", once=True, needs=["root"])
Hazard("pid_namespace", "privileges.c", "-DHOW_PIDNS", once=True, needs=["root"])

# --- others at the same time
Hazard("starved", "starved.c", tiny=1, size=30)
Hazard("stopped", "beside.c", size=10, tiny=1, refused={"detach*": "is stopped: let it go on first"},
       beside="for i in 1 2 3 4 5; do kill -STOP {pid}; sleep 0.01; kill -CONT {pid}; sleep 0.02; done")
GDB = "gdb -batch -nx -iex 'set debuginfod enabled off' -p {pid} "
ONE_TRACER = "a process has one tracer (the manual says so)"
Hazard("debugger", "beside.c", size=10, tiny=1, needs=["gdb"], beside=GDB + "-ex bt -ex detach",
       not_with={"steps*": ONE_TRACER, "int3*": "the debugger takes the signal of every breakpoint for its own"})
Hazard("debugger_breaks", "beside.c", size=10, tiny=1, needs=["gdb"],
       beside=GDB + "-ex 'break h_leaf' -ex continue -ex bt -ex delete -ex detach",
       not_with={"steps*": ONE_TRACER, "int3*": "the debugger takes the signal of every breakpoint for its own",
                 "probe*": "the debugger and the kernel put their breakpoints into the same function"})
Hazard("probe_beside", "beside.c", size=10, tiny=1, needs=["root"],
       beside="{weir} probe -q -d 0.2 -e 'uprobe:./program:h_* {{ @ = count(); }}'")
Hazard("record_beside", "beside.c", size=10, tiny=1, beside="{weir} record -q --duration 0.15 -o beside.trace -p {pid}")


# --- programs with a JVM in them
def jvm(name, flags="", **more):
    needs = ["javac", *more.pop("needs", ())]
    Hazard(name, "jvm.c", flags, bits=(64,), dynamic=True, classes=("Work.java", "Extra.java"), needs=needs, **more)


NOT_FIRST = {"*attach": "the process that is attached to is another one", "*detach": "the same"}
jvm("jvm")
jvm("jvm_ticks", TICKS, size=1000)
jvm("jvm_threads", '-DHOW="threads"')
jvm("jvm_classes", '-DHOW="classes"', size=30)
jvm("jvm_collect", '-DHOW="collect"', size=30)
jvm("jvm_processes", '-DHOW="processes"', size=30)
# A thread of several that is just within fork() holds the locks of libc, by which what is called there waits.
jvm("jvm_fork", "-DFORK", refused={"detach": "did not return in 10 s"})
jvm("jvm_exec", "-DEXEC", once=True)
jvm("jvm_exit", "-DEXIT", once=True)
jvm("jvm_namespace", "-DIN_NAMESPACE", once=True, needs=["root"], not_with=NOT_FIRST)
jvm("jvm_other_user", "-DOTHER_USER", needs=["root"])
jvm("jvm_files", "-DFILES=40")
jvm("jvm_stopped", "-DBESIDE", size=10, refused={"*detach": "is stopped: let it go on first"},
    beside="for i in 1 2 3 4 5; do kill -STOP {pid}; sleep 0.01; kill -CONT {pid}; sleep 0.02; done")
jvm("jvm_debugger", "-DBESIDE", size=10, needs=["gdb"], refused={"detach": "cannot be traced|is traced by"},
    beside=GDB + "-ex 'thread apply all bt 5' -ex detach")
# What asks a JVM to attach sends SIGQUIT, which ends one that does not listen yet.
READY = "until [ -e jvm.ready ]; do sleep 0.01; done; "
jvm("jvm_jstack", "-DBESIDE", size=10, needs=["jcmd"],
    beside=READY + "for i in 1 2 3; do jcmd {pid} Thread.print; jcmd {pid} GC.class_histogram; done >/dev/null 2>&1")
jvm("jvm_jfr", "-DBESIDE", size=10, needs=["jcmd"],
    beside=READY + "jcmd {pid} JFR.start name=r settings=profile; sleep 0.3; jcmd {pid} JFR.dump name=r filename=r.jfr; "
    "jcmd {pid} JFR.stop name=r")
jvm("jvm_record_beside", "-DBESIDE", size=10, beside="{weir} record -q --duration 0.3 -o beside.trace -p {pid}")
