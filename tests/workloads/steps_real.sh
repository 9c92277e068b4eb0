# SPDX-License-Identifier: MIT
# Real programs, traced: gzip from its first instruction to its last, one query of sqlite3, exceptions of
# C++, threads of the C library. They print and end as always; every step is in code of theirs.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"

# own SENTENCE PATTERN: every step has its bytes, and is of images whose paths match
own() {
	SENTENCE=$1 PATTERN=$2 judge - <<'PY'
import re
name, pattern = os.environ["SENTENCE"], os.environ["PATTERN"]
bad = foreign(t, None)
check(f"{name}: all {t.n_steps()} steps have their bytes, none is ours", t.n_steps() and not bad, *bad[:5])
paths = {i.path for i in t.images[1:] if i.kind == "file"}
check(f"{name}: they are in its own images", all(re.search(pattern, p) for p in paths), paths)
equal(f"{name}: nothing is lost", [], t.marks("lost"))
PY
}

echo "a small file, a small file, a small file" >small.txt
if command -v gzip >/dev/null; then
	same "gzip of a small file" gzip -nc small.txt
	check "gzip of a small file: what it wrote is good" cmp -s <(gzip -dc out.traced) small.txt
	own "gzip of a small file" '/gzip$|/ld-linux|/libc\.so'
	judge - <<'PY'
first, last = t.threads[0].steps[0], t.threads[0].steps[-1]
check("gzip: it begins in the loader and ends with a system call",
      "ld-" in first.code.image.path and last.code.bytes == b"\x0f\x05" and t.n_steps() > 100000, first.code.image.path, last.code.bytes)
calls = [m.a for m in t.marks("syscall")]
check("gzip: its read, its write and its end are marked", 0 in calls and 1 in calls and [m.a for m in t.marks("exit")] == [0], calls, t.marks("exit"))
PY
else
	skip "gzip: it is not installed"
fi

if command -v sqlite3 >/dev/null && ldd "$(command -v sqlite3)" | grep -q libsqlite3; then
	step_options=(--around sqlite3_step)
	same "one query of sqlite3" sqlite3 :memory: "select 1 + 2, upper('x')"
	step_options=()
	own "one query of sqlite3" 'libsqlite3|/libc\.so|/ld-linux|/libm\.so'
	judge - <<'PY'
equal("one query of sqlite3: each stretch begins where sqlite3_step does", 1, len({s.addr for s in [
    next(i for i in th.items[k:] if i.is_step) for th in t.threads for k, m in enumerate(th.items)
    if not m.is_step and m.kind == "resume" and any(i.is_step for i in th.items[k:])]}))
PY
else
	skip "sqlite3: it is not installed, or has no library of its own"
fi

if build exceptions exceptions.cc -O1 -g -static-pie; then
	step_options=(--around first)
	same "exceptions of C++" ./exceptions
	step_options=()
	own "exceptions of C++" '/exceptions$'
	judge ./exceptions <<'PY'
s = symbols(program)
starts = [i for th in t.threads for i in th.steps if i.code.image_addr == s["first"]]
equal("exceptions of C++: three calls", 3, len(starts))
check("exceptions of C++: the way of the one that is thrown is in it", any(i.code.image_addr == s["_Unwind_RaiseException"] for i in t.steps()))
last = [th.items[k - 1] for th in t.threads for k, m in enumerate(th.items) if k and not m.is_step and m.kind == "pause" and th.items[k - 1].is_step]
check("exceptions of C++: each ends by a return", len(last) == 3 and all(i.code.bytes[-1:] == b"\xc3" for i in last), last)
PY
else
	skip "exceptions of C++: g++ -static-pie does not work here"
fi

if build pthreads pthreads.c -O1 -g -static -pthread; then
	same "threads of the C library" ./pthreads
	own "threads of the C library" '/pthreads$'
	judge ./pthreads <<'PY'
equal("threads of the C library: four, by their names", ["pthreads", "worker-1", "worker-2", "worker-3"], sorted(th.name for th in t.threads))
s = symbols(program)
equal("threads of the C library: each began its body once", [0, 1, 1, 1],
      sorted(len([x for x in th.steps if x.addr == s["body"]]) for th in t.threads))
bad = broken(t, program)
check("threads of the C library: no step is missing between two others", not bad, *bad[:5])
PY
else
	skip "threads of the C library: gcc -static does not work here"
fi

# --user-code: of a program that calls into the vdso, what is its own.
small vdso vdso.c && steps t.weir -- ./vdso >whole.txt && steps u.weir --user-code '*/vdso' -- ./vdso >part.txt
equal "--user-code: the same output" "$(cat whole.txt)" "$(cat part.txt)"
judge ./vdso u.weir <<'PY'
whole = load(weir, "t.weir")
check("--user-code: the whole is more than that", any(s.code.image.kind == "vdso" for s in whole.steps()))
is_own = lambda s: s.code.image.path.endswith("/vdso")
check("--user-code: steps of that file alone", t.n_steps() and all(is_own(s) for s in t.steps()))
equal("--user-code: all of those", hexes(s.addr for s in whole.steps() if is_own(s)), hexes(s.addr for s in t.steps()))
PY
