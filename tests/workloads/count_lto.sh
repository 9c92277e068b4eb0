# SPDX-License-Identifier: MIT
# Link-time optimisation: what gcc's plug-in makes is counted, function by function as callgrind sees it; of what
# cannot be counted (clang, plug-ins that nobody knows) the reports say so.
# weir-test: patient
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"
mkdir -p src tmp
export TMPDIR=$PWD/tmp

cat >src/main.c <<'C'
#include <stdio.h>
int across(int), plain(int), archived(int), callback(int (*)(int), int);
__attribute__((noinline)) static int local(int x) { return x * 3 + 1; }
__attribute__((noipa)) int called_back(int x) { return local(x) ^ 5; }
__attribute__((noinline)) int seen_by_plain(int x) { return x > 3 ? seen_by_plain(x - 3) + 1 : x; }
int main(int argc, char **argv)
{
	int sum = 0;
	(void)argv;
	for (int i = 0; i < 500 * argc; i++)
		sum += across(i) + plain(i) % 7 + archived(i) + callback(called_back, i) + local(i) % 5;
	printf("%d\n", sum);
	return sum & 63;
}
C
cat >src/across.c <<'C'
__attribute__((noinline)) static int local(int x) { return x * 5 + 1; }
int plain(int);
__attribute__((noinline)) int across(int x) { return local(x) * 2 + (x % 10 ? 0 : plain(x)); }
C
cat >src/plain.c <<'C'
int seen_by_plain(int);
int plain(int x) { return seen_by_plain(x % 20) + x; }
int callback(int (*f)(int), int x) { return f(x) + 1; }
C
cat >src/archived.c <<'C'
#include <stdlib.h>
int plain(int);
__attribute__((noipa)) int archived(int x) { return abs(x - 100) + plain(x & 7); }
C
echo 'int unused(int x) { return x; }' >src/unused.c

# objects FLAGS...: of the files for link-time optimisation; the archive is thin inside, too
objects() {
	gcc "$@" -c src/main.c src/across.c src/archived.c src/unused.c && gcc -O2 -c src/plain.c || return 1
	rm -f libarchived.a
	gcc-ar rcs libarchived.a archived.o unused.o
}

# both NAME FLAGS...: the plain program and the counted one, from the same files
both() {
	local name=$1
	shift
	gcc "$@" -o plain/"$name" main.o across.o plain.o -L. -larchived || return 1
	"$WEIR" count -v gcc "$@" -o counted/"$name" main.o across.o plain.o -L. -larchived 2>left_alone.txt
}
own='("main", "local", "across", "plain", "callback", "called_back", "archived", "seen_by_plain")'

# counted NAME SENTENCE [static]: compared with callgrind; no own function is taken for a foreign one, and nothing is
# missing. With libc in it the program is compared by its calls alone: what that does depends on the processor.
counted() {
	same "$2: the program does the same" "$1" || return
	! more || [ -n "${3:-}" ] || exact "$1"
	equal "$2: calls" "500 500 1050 500 500" \
		"$(for f in called_back archived plain callback across; do calls_of $f; done | paste -sd' ')"
	equal "$2: each function is one, and counted" "[]" \
		"$(json flat.json "[r['name'] for r in j['rows'] if r['name'].split('.')[0] in $own and not r['base']]")"
	[ -z "${3:-}" ] || return 0
	"$WEIR" report counted/"$1".weir >summary.txt
	check "$2: the summary says that all is counted" grep -q '^  counted exactly: ' summary.txt
}

command -v gcc-ar >/dev/null || { skip "link-time optimisation: gcc has none here" && finish; }
objects -O2 -flto || { skip "link-time optimisation: gcc has none here" && finish; }

both thin -O2 -flto
counted thin "thin objects"
check "and nobody says that something is not counted" sh -c '! grep -q "not counted" left_alone.txt'
check "-v tells of the code that was made" grep -q "^weir: 'counted/thin (link-time optimisation)': [1-9][0-9]* of" left_alone.txt
both pieces -O2 -flto -flto-partition=max
counted pieces "in as many pieces as there are functions"
both gold -O2 -flto -fuse-ld=gold && counted gold "linked by gold"
both without -O2 && counted without "without -flto at the link, where the plug-in optimises all the same"
both static -O2 -flto -static && counted static "a static program" static
equal "nothing is left of the temporary files" "" "$(ls tmp)"

objects -O2 -g -flto -ffat-lto-objects
both fat -O2 -g -flto && counted fat "objects that have machine code, too"
equal "lines are those of the sources" "[True, True]" \
	"$("$WEIR" report coverage counted/fat.weir --json >coverage.json
	json coverage.json '[any(r["function"] == f and (r["file"] or "").endswith(s) and r["lines_executed"] for r in j["rows"]) for f, s in (("main", "src/main.c"), ("across", "src/across.c"))]')"
both code -O2 -fno-lto && counted code "their machine code, linked without the plug-in"
if command -v ld.lld >/dev/null; then
	both lld -O2 -fuse-ld=lld && counted lld "their machine code, linked by lld, which has no plug-in"
else
	skip "linked by lld: it is not installed"
fi

# --- C++
for source in exceptions thunks; do
	build $source $source.cc -O2 -flto
	same "$source.cc does the same" $source
	: >left_alone.txt
	more && exact $source
done

# --- what the driver does stays
objects -O2 -flto
mkdir -p saved/plain saved/counted
(cd saved/plain && gcc -O2 -flto -save-temps -o program ../../main.o ../../across.o ../../plain.o -L../.. -larchived)
(cd saved/counted && "$WEIR" count gcc -O2 -flto -save-temps -o program ../../main.o ../../across.o ../../plain.o -L../.. -larchived)
equal "-save-temps saves the same files" "$(ls saved/plain)" "$(ls saved/counted)"
cat >src/wrong.c <<'C'
__attribute__((error("nobody may call this"))) int forbidden(int);
int main(int argc, char **argv) { (void)argv; return forbidden(argc); }
C
echo '__attribute__((noipa)) int forbidden(int x) { return x; }' >src/forbidden.c
gcc -O2 -flto -c src/wrong.c src/forbidden.c
gcc -O2 -flto -o wrong wrong.o forbidden.o >plain.txt 2>&1
status=$?
"$WEIR" count gcc -O2 -flto -o wrong wrong.o forbidden.o >counted.txt 2>&1
equal "an error of the optimiser ends the link the same way" "1 1" "$status $?"
check "it is one" grep -q "nobody may call this" counted.txt
# Programs are called by their paths then.
equal "and it is told as before" "$(sed -E 's:/[^ ]*/(gcc|ld[.a-z]*)\b:\1:' plain.txt)" "$(sed -E 's:/[^ ]*/(gcc|ld[.a-z]*)\b:\1:' counted.txt)"
equal "nothing is left of the temporary files then" "" "$(ls tmp)"
printf 'program: main.o across.o plain.o\n\t+gcc -O2 -flto=jobserver -o $@ $^ -L. -larchived\n' >Makefile
"$WEIR" count make -j2 program >made.txt 2>&1
equal "make's job server is used as before" "" "$(grep -i warn made.txt)"
check "and what make links is counted" sh -c './program >/dev/null; "$1" report flat program.weir | grep -q called_back' sh "$WEIR"
"$WEIR" count --only across gcc -O2 -flto -o only main.o across.o plain.o -L. -larchived 2>err.txt
equal "--only finds a function of such an object" "" "$(cat err.txt)"
"$WEIR" count --only acros gcc -O2 -flto -o only main.o across.o plain.o -L. -larchived 2>err.txt
check "and tells what is near to one that is not there" grep -q "no function matches 'acros'; is it .*across" err.txt
"$WEIR" count --no-cache gcc -O2 -flto -o uncached main.o across.o plain.o -L. -larchived && ./uncached >/dev/null
equal "without the cache it counts, too" 500 "$("$WEIR" report flat uncached.weir --json >flat.json; calls_of called_back)"
printf '%s\n' 'long g(void) { long x; __asm__ volatile("movq %%gs:0, %0" : "=r"(x)); return x; }' \
	'int main(int argc, char **argv) { (void)argv; return argc > 1 ? (int)g() : 0; }' >src/segment.c
gcc -O2 -flto -fno-inline -c src/segment.c && "$WEIR" count -q gcc -O2 -flto -fno-inline -o segment segment.o && ./segment
"$WEIR" report segment.weir >summary.txt
check "what cannot be counted of such an object is told" grep -q '^  1 function was not counted: 1 it uses the gs segment' summary.txt

# --- what cannot be counted is told by the reports
# told NAME OBJECTS: of counted/NAME
told() {
	(cd counted && ./"$1" >/dev/null)
	"$WEIR" report counted/"$1".weir >summary.txt
	"$WEIR" report counted/"$1".weir --json >summary.json
	"$WEIR" report coverage counted/"$1".weir --json >coverage.json
	check "$1: the summary says first that objects are not counted" \
		sh -c 'sed -n 3,4p summary.txt | tr "\n" " " | grep -Eq "^  counted: [0-9]+ instr.*  '"$2"' objects? with all (its|their) functions (was|were) not counted: '"$2"' made for link-time optimisation"'
	check "$1: and not that nothing is lost" sh -c 'grep -q "^Not everything was counted" summary.txt && ! grep -q "Nothing was lost" summary.txt'
	equal "$1: so does its JSON" "$2" "$(json summary.json 'j["run"]["objects_not_counted"]')"
	equal "$1: coverage does not know their functions" "$2 True" \
		"$(json coverage.json 'len([r for r in j["rows"] if r["function"].startswith("all functions of ") and r["state"] == "not known"])') \
$(json coverage.json 'any(r["function"] == "all functions of main.o" for r in j["rows"])')"
}
objects -O2 -flto -ffat-lto-objects
"$WEIR" count gcc -O2 -flto -Wl,-plugin-opt=-nop -o counted/skipped main.o across.o archived.o plain.o 2>err.txt
check "skipped: the link says so, too" grep -q "^weir: 'counted/skipped': 3 objects made for link-time optimisation" err.txt
told skipped 3
for linker in bfd gold; do
	"$WEIR" count -q gcc -O2 -flto -fuse-ld=$linker -Wl,-plugin-opt=-nop,--gc-sections -o counted/skipped main.o across.o archived.o plain.o
	told skipped 3
done
if command -v clang >/dev/null && command -v ld.lld >/dev/null && command -v llvm-ar >/dev/null; then
	clang -w -O2 -flto -c src/main.c src/across.c src/archived.c src/unused.c && clang -O2 -c src/plain.c
	rm -f libarchived.a
	llvm-ar rcs libarchived.a archived.o unused.o
	for flags in -Wl,-O1 -Wl,--gc-sections; do
		clang -O2 -flto -fuse-ld=lld $flags -o plain/bitcode main.o across.o plain.o -L. -larchived
		"$WEIR" count clang -O2 -flto -fuse-ld=lld $flags -o counted/bitcode main.o across.o plain.o -L. -larchived 2>err.txt
		check "bitcode: the link says so, too" grep -q "^weir: 'counted/bitcode': 4 objects made for link-time optimisation (the first: 'main.o'): not counted" err.txt
		same "bitcode: the program does the same" bitcode
		told bitcode 3
	done
else
	skip "bitcode: clang, lld or llvm-ar is not installed"
fi
