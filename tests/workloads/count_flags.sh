# SPDX-License-Identifier: MIT
# Where flags are in use all the time and no register is free, code is counted all the same: as callgrind sees it,
# with the red zone as it was, with handlers of signals anywhere, and with frames that are found at each instruction.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"
count_options=-v
right="0 wrong, 0 in handlers, 0 not unwound"

compilers=(gcc)
if command -v clang >/dev/null; then compilers+=(clang); else skip "programs of clang: clang is not installed"; fi
gcc -c -o objects/assembly.o "$count_fixtures/carries.S" || not_ok "carries.S is assembled"
libraries_of_links=("$PWD/objects/assembly.o")

# --- each instruction, as often as it was executed
for c in "${compilers[@]}"; do
	for flags in -O2 -Os; do
		# shellcheck disable=SC2086
		COMPILER=$c build carries carries.c $flags || { not_ok "carries.c is built: $c $flags" && continue; }
		same "the program does the same: $c $flags" carries
		equal "its results are right: $c $flags" "$right" "$(cat counted/out.txt)"
		if command -v valgrind >/dev/null; then
			places "each function has the instructions of callgrind: $c $flags" carries
			equal "only what walks its data with rsp is left alone: $c $flags" "carry_walks 0" "$(not_known) $(misplaced)"
		else
			skip "each function has the instructions of callgrind: valgrind is not installed"
		fi
		check "and why is said: $c $flags" grep -q "carry_walks: left alone: flags are in use where a counter would go, and neither a register nor the stack is free" build.txt
	done
done

# --- handlers that come in the midst of it, count the same code and unwind
same "a storm of signals: the program does the same" carries storm
equal "a storm of signals: results are right, and each handler finds its way to main" "$right" "$(cat counted/out.txt)"
equal "a storm of signals: nodes and blocks add up to the same" fine \
	"$(python3 -B "$ROOT/tests/fixtures/count_runtime/read_counts.py" counted/carries.weir check)"

# --- exceptions through it, from what it calls and from handlers
for c in g++ clang++; do
	command -v $c >/dev/null || continue
	COMPILER=$c build thrown carries_thrown.cc -O2 -fnon-call-exceptions || { not_ok "carries_thrown.cc is built: $c" && continue; }
	same "exceptions are thrown through it: $c" thrown
	equal "those who catch them have their registers: $c" "0 wrong" "$(cat counted/out.txt)"
done

# --- every instruction is stepped, and every frame from there compared with what was called
gcc -O2 -fPIC -shared -o libframe_checker.so "$count_fixtures/frame_checker.c" 2>build.txt || not_ok "the checker is built"
libraries_of_links+=("$PWD/libframe_checker.so" -Wl,-z,now)
for how in "" "--metrics instructions,cycles" --counts; do
	count_options="-q $how" build stepped carries.c -O2 -DSTEPPED || { not_ok "carries.c is built with the checker" && continue; }
	equal "frames are right at each instruction${how:+, with $how}" "many steps, many frames, 0 wrong
$right" "$(cd counted && ./stepped 2>&1)"
done
