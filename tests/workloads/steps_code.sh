# SPDX-License-Identifier: MIT
# Code that is made, changed and moved while a program runs: the trace has the bytes that were executed,
# each time. Code of the vdso, of the other table of system calls and of the other size.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"
sizes=(64)
if small made32 made_code.c -m32 >/dev/null; then sizes+=(32); else skip "32-bit programs: gcc -m32 does not work here"; fi

for bits in "${sizes[@]}"; do
	small made made_code.c -m$bits || continue
	for mode in in_place ahead two_views in_turn moved no_reading at_the_edge patched by_a_thread; do
		[ "$mode $bits" != "by_a_thread 32" ] || continue
		same "made code, $mode, $bits-bit" ./made $mode
		SENTENCE="made code, $mode, $bits-bit" judge ./made <<'PY'
name = os.environ["SENTENCE"]
said = [tuple(line.split()[1:]) for line in open("out.plain") if line.startswith("called")]
called = {int(a, 16) for a, _ in said}
# mov $N, %eax
seen = [(f"{s.addr:x}", f"{int.from_bytes(s.code.bytes[1:5], 'little'):x}") for s in t.steps() if s.addr in called]
equal(f"{name}: each call has the bytes that it executed", said, seen)
bad = foreign(t, {os.path.realpath(program)})
check(f"{name}: all {t.n_steps()} steps have their bytes", t.n_steps() > 100 and not [b for b in bad if "memfd" not in b], *bad[:5])
bad = [b for b in broken(t, program) if int(b.split(":")[0].split()[0], 16) not in called]
check(f"{name}: no step is missing between two others", not bad, *bad[:5])
PY
	done
	small vdso vdso.c -m$bits || continue
	same "vdso and other system calls, $bits-bit" ./vdso
	sound "vdso and other system calls, $bits-bit" ./vdso
	BITS=$bits judge ./vdso <<'PY'
bits = os.environ["BITS"]
in_vdso = [s for s in t.steps() if s.code.image.kind == "vdso"]
check(f"steps in the vdso, {bits}-bit, are there ({len(in_vdso)})", len(in_vdso) > 20)
calls = t.marks("syscall")
check(f"the call by the i386 table is marked as one, {bits}-bit", any((m.a, m.c) == (20, 1) for m in calls), calls)
if bits == "64":
    check("calls by the other table are not", any((m.a, m.c) == (39, 0) for m in calls), calls)
    other = [s for s in t.steps() if s.code.bits == 32]
    equal("32-bit code in a 64-bit process: its three instructions", ["b834120000", "40", "cb"], [s.code.bytes.hex() for s in other])
PY
done
judge_sound
