# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Frame information is right at every instruction of a counted program: what unwinds from anywhere
# (cancelled threads, profilers, debuggers) finds the callers with their registers.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

compilers=(gcc)
if command -v clang >/dev/null; then compilers+=(clang); else skip "programs of clang: clang is not installed"; fi
more || compilers=(gcc)

# --- every instruction is stepped, and every frame from there compared with what was called
gcc -O2 -fPIC -shared -o libframe_checker.so "$count_fixtures/frame_checker.c" 2>build.txt ||
	{ not_ok "the checker is built" && cat build.txt && exit 1; }
libraries_of_links=("$PWD/libframe_checker.so" -Wl,-z,now)
right=$(printf 'many steps, many frames, 0 wrong\n1')
for c in "${compilers[@]}"; do
	for flags in -O0 "-O1 -fno-omit-frame-pointer" -O2 -Os; do
		# shellcheck disable=SC2086
		COMPILER=$c build frames frames.c $flags || { not_ok "frames.c is built: $c $flags" && continue; }
		equal "plain frames are right: $c $flags" "$right" "$(plain/frames 2>&1)"
		equal "counted frames are right at each instruction: $c $flags" "$right" "$(cd counted && ./frames 2>&1)"
		more || break
	done
done
count_options="-q --metrics instructions,cycles" build frames frames.c -O2
equal "counted frames are right at each instruction, with cycles" "$right" "$(cd counted && ./frames 2>&1)"
libraries_of_links=()

# --- threads that are cancelled in the midst of whatever they do
for c in "${compilers[@]}"; do
	for flags in -O0 "-O1 -fno-omit-frame-pointer" -O2; do
		# shellcheck disable=SC2086
		COMPILER=$c build cancelled cancelled.c $flags || { not_ok "cancelled.c is built: $c $flags" && continue; }
		same "100 threads are cancelled anywhere: $c $flags" cancelled 100
		equal "their cleanups run: $c $flags" "100 cancelled, 100 cleanups" "$(cat counted/out.txt)"
		more || break
	done
done
