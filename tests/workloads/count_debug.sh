# SPDX-License-Identifier: MIT
# A counted program can be debugged and sampled: frames, lines, arguments and local variables are those of the
# plain program, wherever it is stopped.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

# Addresses, offsets and process numbers are different, and nothing else may be.
normal() { sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/<([A-Za-z_]+)\+[0-9]+>/<\1>/g; /^\[(Thread|Inferior|New)/d; /^Using host|^warning: Error disabling|^$/d'; }

# gdb_same SENTENCE NAME SUM COMMANDS: what gdb says is the same of both; it has SUM lines that match "#".
gdb_same() {
	local sentence=$1 name=$2 frames=$3 side
	shift 3
	printf '%s\n' "set confirm off" "set width 0" "set debuginfod enabled off" "$@" >gdb.in
	for side in plain counted; do
		(cd $side && timeout 60 gdb -q -nx -batch -x ../gdb.in ./"$name" 2>&1 </dev/null) | normal >$side/gdb.txt
	done
	equal "$sentence" "$(cat plain/gdb.txt)" "$(cat counted/gdb.txt)"
	check "$sentence: with all its frames" [ "$(grep -c '^#' counted/gdb.txt)" -ge "$frames" ]
}

build debugged debugged.c -O0 -g -rdynamic || exit 1
if ! command -v gdb >/dev/null; then
	skip "gdb shows what it shows of the plain program: gdb is not installed"
else
	# In front of the code that a compiler puts at the beginning of a function without optimisation, gdb does not
	# recognise it, and "break FUNCTION" stops before arguments are stored: these stop at lines.
	line() { echo "debugged.c:$(grep -n "stop in $1" "$count_fixtures/debugged.c" | cut -d: -f1)"; }
	gdb_same "gdb shows a recursion and a switch, -O0" debugged 9 "break $(line bottom)" run bt "info locals" up "info locals" up "info locals" \
		up "info locals" "print copy" finish
	if more; then
		gdb_same "gdb steps by lines, -O0" debugged 1 "break $(line chosen)" run next "info args" next next "bt 1" "print result" finish
		gdb_same "gdb stops under a condition, -O0" debugged 2 "break $(line bottom) if twice == 16" run "bt 2" "info source"
		gdb_same "lines begin where they did" debugged 0 "info line bottom" "info line down" "info line main" "info line debugged.c:45" \
			"info scope chosen"
		build debugged_fast debugged.c -O2 -g
		gdb_same "gdb shows a recursion and a switch, -O2" debugged_fast 8 "break bottom" run bt finish
		build debugged_split debugged.c -O1 -g -gdwarf-4 -ffunction-sections -no-pie
		gdb_same "DWARF 4, sections for functions, -O1" debugged_split 9 "break bottom" run bt "info args" up "info line"
		if command -v clang >/dev/null; then
			COMPILER=clang build debugged_clang debugged.c -O0 -g && gdb_same "gdb shows a program of clang" debugged_clang 9 \
				"break $(line bottom)" run bt "info locals" up "info locals" finish
		fi
		# In the middle of the inserted code and of the library: at each instruction main is the outermost frame.
		cat >gdb.in <<-'END'
			set confirm off
			set width 0
			break down
			run
			set $i = 0
			while $i < 300
			stepi
			bt -1
			set $i = $i + 1
			end
		END
		(cd counted && timeout 100 gdb -q -nx -batch -x ../gdb.in ./debugged_fast 2>&1 </dev/null) >gdb.txt
		equal "gdb finds main from each of 300 instructions" 300 "$(grep -c '^#.* main (' gdb.txt)"
	fi
fi

same "backtrace() names the same functions" debugged backtrace
check "backtrace() has seen all of them" [ "$(grep -cx down counted/out.txt)" -eq 6 ]
if more && build throws exceptions.cc -O2 -g; then same "exceptions pass inserted frames" throws; fi

# --- lines: every row of the line table of a function is there, in its order
if command -v readelf >/dev/null && more; then
	lines() { readelf --debug-dump=decodedline "$1" 2>readelf.txt | awk '$1 == "debugged.c" && $2 ~ /^[0-9]+$/ { print $2 }' | uniq; }
	equal "the line table has the lines of the plain program" "$(lines plain/debugged)" "$(lines counted/debugged)"
fi

# --- split debug information is of the code as it was: nothing of it may be shown in a wrong place
cat >inlined.c <<'C'
#include <stdio.h>
static inline __attribute__((always_inline)) int small(int x) { for (int i = 0; i < 9; i++) x = x * 3 ^ i; return x; }
__attribute__((noinline)) int below(int x) { int r = x; if (x > 3) r += small(x); return r + 1; }
__attribute__((noinline)) int above(int x) { int r = below(x) * 2; return x & 1 ? r : small(r) + below(r); }
int main(int argc, char **argv) { return !argv || printf("%d\n", above(argc)) < 0; }
C
# Of each instruction of the three functions: how many are said to be of others than by the symbols of the linker
# (padding is of none), and the line of the first of `below`.
misplaced() {
	objdump -d --no-show-raw-insn "$1" | awk '/^[0-9a-f]+ <(below|above|main)>:/ { f = substr($2, 2, length($2) - 3); next }
		/^$/ { f = "" } f && /^ +[0-9a-f]+:/ { sub(":", "", $1); print "0x" $1, f }' >instructions.txt
	awk '{ print $1 }' instructions.txt | "$WEIR" symbols resolve --image "$1" --json - >resolved.json 2>resolve.txt
	python3 - <<'PY'
import json
want = [l.split()[1] for l in open("instructions.txt")]
rows = json.load(open("resolved.json"))["rows"]
wrong = sum(any(l["name"] not in (w, None) for l in r["levels"]) for r, w in zip(rows, want))
named = sum(r["symbol"] == w for r, w in zip(rows, want))
first = rows[want.index("below")]["levels"][0]
print(len(rows) == len(want), wrong, named > 0.8 * len(want), first["file"].split("/")[-1], first["line"])
PY
}
for compiler in gcc clang; do
	for version in 4 5; do
		name=split_$compiler$version
		if ! $compiler -O2 -g -gdwarf-$version -gsplit-dwarf -c -o objects/$name.o inlined.c 2>build.txt; then
			skip "split debug information of $compiler, DWARF $version: it cannot be made here"
			continue
		fi
		"$WEIR" count -v $compiler -o counted/$name objects/$name.o >count.txt 2>&1
		check "split debug information of $compiler, DWARF $version: it is said that lines alone stay" \
			grep -q "split debug information (.dwo) is of the code as it was" count.txt
		equal "split debug information of $compiler, DWARF $version: no instruction is named after another function" \
			"True 0 True inlined.c 3" "$(misplaced counted/$name)"
	done
done

# --- samples
(cd counted && "$WEIR" record -q -o samples.weir -- ./debugged burn) >out.txt 2>err.txt
if [ ! -s counted/samples.weir ]; then
	skip "samples of a counted program are complete stacks: $(head -n 1 err.txt)"
else
	"$WEIR" report flat counted/samples.weir --json >flat.json 2>/dev/null
	check "there are samples of a counted program" [ "$(json flat.json 'j["loss"]["stacks"]')" -gt 50 ]
	check "at least 99 % of them have complete stacks" \
		[ "$(json flat.json 'j["loss"]["stacks_complete"] * 100 >= 99 * j["loss"]["stacks"]')" = True ]
	equal "bottom is below main in at least 95 % of them" True \
		"$(json flat.json 'next(r["cum"] for r in j["rows"] if r["name"] == "bottom") >= 0.9 * j["total"] and next(r["cum"] for r in j["rows"] if r["name"] == "main") >= 0.95 * j["total"]')"
fi
