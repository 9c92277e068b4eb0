# SPDX-License-Identifier: MIT
# Odd compiler options, linkers and features of languages: a counted program prints and ends as the plain
# one does.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

# odd SENTENCE SOURCE FLAGS...
odd() {
	local sentence=$1 source=$2
	shift 2
	build odd "$source" "$@" || { skip "$sentence: $(head -n 1 build.txt)" && return; }
	same "$sentence" odd
}
cpu_has() { grep -qw "$1" /proc/cpuinfo; }

odd "computed goto, switches, tail calls, -O2" control_flow.c -O2
odd "longjmp, threads, timer signals" jumps_and_threads.c -O2
odd "assembly in statements and by hand" assembly.c -O2
odd "exceptions, -O0" exceptions.cc -O0
more || finish

# --- languages and machines
odd "assembly, -O0" assembly.c -O0
odd "nested functions, trampolines, variable arguments" nested_functions.c -O2
odd "nested functions, -O0" nested_functions.c -O0
odd "thunks, pointers to members, exceptions thrown again" thunks.cc -O2
for level in -O1 -Os; do odd "pointers to members, $level" member_pointers.cc $level; done
odd "coroutines and a signal stack" contexts.c -O2
odd "fork, vfork, system, popen" processes.c -O2
odd "-fsplit-stack" split_stack.c -O2 -fsplit-stack
for model in global-dynamic local-dynamic initial-exec; do
	odd "thread-local variables, $model" thread_local.c -O2 -fPIC -ftls-model=$model
done
odd "thread-local variables by descriptors" thread_local.c -O2 -fPIC -mtls-dialect=gnu2
odd "thread-local variables, static" thread_local.c -O2 -static
odd "a function that a resolver chooses" ifunc.c -O2
odd "a function that a resolver chooses, static" ifunc.c -O2 -static
if cpu_has avx2; then odd "AVX2" vector_code.c -O3 -mavx2 -mfma; else skip "AVX2: not in this processor"; fi
if cpu_has avx512bw && cpu_has avx512vl; then
	odd "AVX-512" vector_code.c -O3 -mavx512f -mavx512bw -mavx512vl -mprefer-vector-width=512
else
	skip "AVX-512: not in this processor"
fi

gcc -O2 -shared -fPIC -DCALLEE -o libcallee.so "$count_fixtures/return_table.c"
libraries_of_links=("$PWD/libcallee.so" "-Wl,-rpath,$PWD")
odd "a table of return addresses" return_table.c -O2
libraries_of_links=()
printf '%s\n' 'int f(int x) { return x + 1; }' '__asm__(".section .llvm_stackmaps,\"a\"; .long 1; .text");' >stackmaps.c
gcc -O2 -c stackmaps.c
equal "an object with a table of distances in its code is left alone" "0 depends" \
	"$("$WEIR" insert --json stackmaps.o -o inserted.o | python3 -c 'import json, sys; j = json.load(sys.stdin); print(j["inserted"], *[w for r in j["reasons"] for w in r.split() if w == "depends"])')"

# --- options
cases=("-fcf-protection=full" "-fno-plt" "-ffunction-sections -fdata-sections -Wl,--gc-sections" "-mcmodel=large -fno-pie -no-pie"
	"-static-pie -fPIE" "-fuse-ld=gold" "-fuse-ld=lld" "-flto -ffat-lto-objects" "-s" "-g -gz -gdwarf-4"
	"-mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none" "-fpatchable-function-entry=5,2")
[ -z "${WEIR_SLOW:-}" ] || cases+=("-pg" "-finstrument-functions" "-mcmodel=medium" "-no-pie -fno-pie" "-static"
	"-fuse-ld=bfd -Wl,-z,now" "-Wl,--icf=all -fuse-ld=gold" "-fsanitize=address" "-fprofile-arcs"
	"-fstack-protector-all -fstack-clash-protection" "-fomit-frame-pointer -Os" "-fno-omit-frame-pointer"
	"-fno-asynchronous-unwind-tables -fexceptions" "-g3 -gdwarf-5" "-gsplit-dwarf -g" "-falign-functions=64 -falign-loops=32"
	"-fharden-compares" "-fno-jump-tables" "-Wl,-z,separate-code" "-Wl,--build-id=none")
for flags in "${cases[@]}"; do
	# shellcheck disable=SC2086
	odd "C, $flags" control_flow.c -O2 $flags
done
for flags in "-fcf-protection=full -fno-plt" "-ffunction-sections -Wl,--gc-sections" "-fuse-ld=lld" "-fuse-ld=gold -Wl,--icf=all"; do
	# shellcheck disable=SC2086
	odd "C++, $flags" exceptions.cc -O1 $flags
done
if command -v clang >/dev/null; then
	cases=(-O0 "-O2 -fuse-ld=lld" "-O2 -fcf-protection=full -mretpoline")
	[ -z "${WEIR_SLOW:-}" ] || cases+=(-O2 -Os "-O3 -march=native" "-O2 -mcmodel=large" "-O2 -fbasic-block-sections=all")
	for flags in "${cases[@]}"; do
		# shellcheck disable=SC2086
		COMPILER=clang odd "clang $flags" control_flow.c $flags
	done
	COMPILER=clang++ odd "clang++ -O2, exceptions" thunks.cc -O2
else
	skip "clang: not installed"
fi
