# SPDX-License-Identifier: MIT
# Code of odd shapes is counted as callgrind sees it, instruction by instruction; what cannot be is told, timed and in
# no figure: never a figure that looks whole and is not.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
# weir-test: patient
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"
count_options=-v

if ! command -v valgrind >/dev/null; then
	skip "counts are those of callgrind: valgrind is not installed"
	finish
fi

# --- what compilers make ------------------------------------------------------------------------

shape switch_clang switch_gaps.c clang -O2
shape last_call_clang last_call.c clang -Os
shape thunks_gcc thunk_jumps.c gcc "-O2 -mindirect-branch=thunk -mfunction-return=thunk"
shape thunks_clang thunk_jumps.c clang "-Os -mretpoline"

# --- programs of any size: addresses are distances to the global offset table, and calls go by registers --------

for c in gcc clang; do
	for model in "large -fPIE -pie" "large -fno-pie -no-pie" "medium -fPIC -pie"; do
		shape "control_flow_${c}_${model%% *}${model##* }" control_flow.c $c "-O2 -mcmodel=$model"
	done
	shape switch_large_$c switch_gaps.c $c "-O2 -mcmodel=large -fPIE -pie"
	shape switch_medium_$c switch_gaps.c $c "-O0 -mcmodel=medium -fPIE -pie"
done
# Where a function's calls of swapcontext cannot be told from others, it is in no figure.
shape contexts_large_gcc contexts.c gcc "-O0 -mcmodel=large -fPIE -pie"
shape contexts_any_gcc contexts.c gcc "-O2 -mcmodel=large -fno-pie -no-pie"
if COMPILER=clang build contexts_large_clang contexts.c -O2 -mcmodel=large -fPIE -pie; then
	same "contexts_large_clang: the program does the same" contexts_large_clang
	places "contexts_large_clang: each function that is counted has the instructions of callgrind" contexts_large_clang
	equal "contexts_large_clang: functions that keep the address of swapcontext in memory are left alone" "body main" "$(not_known)"
fi

# --- functions without a size -------------------------------------------------------------------

gcc -c -o objects/parts.o "$count_fixtures/sizeless.S"
libraries_of_links=("$PWD/objects/parts.o")
shape_of_parts() { # NAME SENTENCE ARGUMENTS
	local name=$1 sentence=$2
	shift 2
	build "$name" sizeless.c -O2 || not_ok "$name: $(head -n 1 build.txt)"
	same "$sentence: the program does the same" "$name" "$@"
	places "$sentence: each function has the instructions of callgrind" "$name" "$@"
}
shape_of_parts sizeless "functions without a size"
equal "functions without a size: those with a table among their code are left alone" "pick" "$(not_known)"
whole=$(json flat.json 'j["total"]')
cp objects/parts.o objects/named.o
strip --strip-unneeded objects/parts.o
build sizeless_stripped sizeless.c -O2 || not_ok "sizeless_stripped: $(head -n 1 build.txt)"
same "a function that only calls in its own section lead to, without a symbol: the program does the same" sizeless_stripped
"$WEIR" report coverage counted/sizeless_stripped.weir --json >coverage.json
equal "a function that only calls in its own section lead to, without a symbol: it is counted" "$whole 343 pick" \
	"$(json flat.json 'j["total"]') $(json flat.json 'sum(r["calls"] for r in j["rows"] if r["name"].startswith("[unnamed]"))') $(not_known)"
mv objects/named.o objects/parts.o
shape_of_parts sizeless "a function that is left alone" 1
equal "a function that is left alone: calls of it are timed and counted" "50 True" \
	"$(json flat.json 'sum(r["calls"] for r in j["rows"] if r["name"] == "pick")') $("$WEIR" report flat counted/sizeless.weir --metric foreign --json >foreign.json && json foreign.json 'any(r["name"] == "pick" and r["base"] > 0 for r in j["rows"])')"
check "a function that is left alone: the summary tells how many and how long in its first lines" \
	grep -Eq '^  1 function was not counted, at least [0-9.]+ [num]?s in it: 1 its section holds data' <(head -n 5 summary.txt)
check "a function that is left alone: the counts are not called exact, and something is missing" \
	eval '! grep -Eq "counted exactly|Nothing was lost" summary.txt && grep -q "^Not everything was counted" summary.txt'
equal "a function that is left alone: so does JSON" "1 True" \
	"$(json summary.json 'j["run"]["functions_not_counted"], j["run"]["not_counted_ns"] > 0' | tr -d '(),')"
"$WEIR" report coverage counted/sizeless.weir >coverage.txt
check "a function that is left alone: coverage has it among all, and not as executed" \
	grep -Eq '^functions  ([0-9]+) of ([0-9]+) executed, [0-9.]+ %; 1 \([0-9.]+ %\) is not known$' coverage.txt
check "a function that is left alone: blocks are those that are known" grep -q '^   blocks  .* % of those that are known$' coverage.txt
equal "a function that is left alone: JSON counts it in, too" "True" \
	"$(json coverage.json 'j["totals"]["functions"] == len(j["rows"]) and j["totals"]["functions_executed"] == sum(r["state"] in ("executed", "partly executed") for r in j["rows"])')"

# A second entry is no function of its own: its blocks are right, and its cost is in the caller's, which is said.
shape_of_parts sizeless "a second entry" 1 1
equal "a second entry: both ways are counted, block by block" "[50, 300]" \
	"$(json counts.json '[b["count"] * b["instructions"] for f in j["functions"] if f["name"] == "triple_and_one" for b in f["blocks"]]')"
equal "a second entry: how many instructions are in the cost of others is told" 200 "$(misplaced)"

# --- jumps into the midst of what is left alone ---------------------------------------------------

gcc -c -o objects/parts.o "$count_fixtures/jumped_into.S"
build jumped_into jumped_into.c -O2 || not_ok "jumped_into: $(head -n 1 build.txt)"
same "jumps into what is left alone: the program does the same" jumped_into
places "jumps into what is left alone: all else has the instructions of callgrind" jumped_into
equal "jumps into what is left alone: who has moved the stack before is left alone, too" "goes_on_deeper loops" "$(not_known)"
equal "jumps into what is left alone: nothing is in the cost of others" 0 "$(misplaced)"
libraries_of_links=()

# --- libraries with hand-written code ---------------------------------------------------------------

library() { # NAME SOURCE LIBRARY
	local path
	path=$(static_library "$3") || { skip "$1: lib$3.a is not installed" && return; }
	libraries_of_links=("$path")
	build "$1" "$2" -O2 || { skip "$1: $(head -n 1 build.txt)" && return; }
	same "$1: the program does the same" "$1"
	places "$1: what is counted has the instructions of callgrind" "$1"
}
library gmp drive_gmp.c gmp
equal "gmp: a function that jumps to labels of its own is counted" False "$(json coverage.json 'any(r["function"] == "__gmpn_mul_basecase" and r["state"] == "not known" for r in j["rows"])')"
equal "gmp: nothing is left alone, not even sums with a carry in which no register is free" " True" \
	"$(not_known) $(json counts.json 'all(sum(b["count"] for f in j["functions"] if f["name"] == n for b in f["blocks"]) > 0 for n in ("__gmpn_add_n", "__gmpn_sub_n"))')"
export JSIMD_FORCESSE2=1 # valgrind would choose other code
library jpeg drive_jpeg.c jpeg
equal "jpeg: nothing is left alone" "" "$(not_known)"
