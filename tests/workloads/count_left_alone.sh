# SPDX-License-Identifier: MIT
# Objects that look odd are counted, and reports of a program tell of every function that is not.
# weir-test: once: the inserter's sanitized runs are those of the other tests of counted programs
. "$ROOT/tests/lib.sh"
export WEIR_CACHE=$PWD/cache
unset WEIR_OUT WEIR_SITES

# link NAME OBJECT...: and runs it; flat.json, loss.json, coverage.json
link() {
	local name=$1 kind
	shift
	"$WEIR" count -q gcc -o "$name" "$@" 2>link.txt && ./"$name" || return 1
	for kind in flat loss coverage; do "$WEIR" report $kind "$name.weir" --json >$kind.json || return 1; done
}
told() { json loss.json '[r["count"] for r in j["rows"] if "is not counted: '"$1"'" in r.get("reason", "")]'; }
left() { json coverage.json 'sorted(r["function"] for r in j["rows"] if r["reason"] and r["reason"].startswith("'"$1"'"))'; }

# Padding goes, so the section becomes smaller: old ranges must not be compared with the new size.
cat >padded.c <<'C'
#define PAD __asm__(".text\n.p2align 6\n.skip 2000, 0x90\n.p2align 6")
PAD; __attribute__((noipa)) int one(int n) { return n + 1; }
PAD; __attribute__((noipa)) int two(int n) { return one(n) + one(n); }
PAD; int main(int argc, char **argv) { (void)argv; return two(argc) - 4; }
C
gcc -O2 -g -fno-toplevel-reorder -falign-functions=1 -c padded.c
check "an object that is mostly padding is linked, and runs as it did" link padded padded.o
equal "its functions are counted" "['main', 'one', 'two'] 2" \
	"$(json flat.json 'sorted(r["name"] for r in j["rows"] if r["name"] in ("one", "two", "main")), sum(r["calls"] for r in j["rows"] if r["name"] == "one")' | tr -d '()' | sed 's/\], /] /')"
equal "nothing is said to be missing" "[]" "$(told '')"

# Nothing can be inserted into this object.
cat >segment.c <<'C'
long g(void) { long x; __asm__ volatile("movq %%gs:0, %0" : "=r"(x)); return x; }
long h(void) { long x; __asm__ volatile("movq %%gs:8, %0" : "=r"(x)); return x; }
C
cat >main.c <<'C'
long g(void);
int main(int argc, char **argv) { (void)argv; return argc > 1 ? (int)g() : 0; }
C
gcc -O2 -c segment.c main.c
check "a program with an object that is left alone" link alone main.o segment.o
equal "the report tells how many functions are not counted" "[2]" "$(told 'it uses the gs segment')"
equal "coverage has their names" "['g', 'h']" "$(left 'it uses the gs segment')"

# Exception tables of a version that nobody knows. The linker itself only says so.
python3 - segment.o damaged.o <<'P'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
at, size, n, names_i = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HHH", data, 58)
heads = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(n)]
names = heads[names_i][4]
for head in heads:
    if data[names + head[0]:].startswith(b".eh_frame\0"):
        data[head[4] + 8] = 9
open(sys.argv[2], "wb").write(data)
P
check "a program with an object whose exception tables are not understood" link damaged main.o damaged.o
equal "the report tells how many functions are not counted because of that" "[2]" "$(told 'the exception tables')"
equal "coverage has the names of those" "['g', 'h']" "$(left 'the exception tables')"

# Objects that linkers take and that are not what an object should be: two sections share their bytes.
printf '%s\n' 'int work(int n) { int i = 0, s = 0; for (; i < n; i++) s += i ^ n; return s & 1; }' >odd.c
printf '%s\n' 'int work(int); int main(int argc, char **argv) { (void)argv; return work(argc * 1000) & 0; }' >caller.c
gcc -O1 -c odd.c caller.c
python3 - odd.o <<'P'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
at, size, n, names_i = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HHH", data, 58)
heads = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(n)]
names = heads[names_i][4]
place = {bytes(data[names + h[0]:]).split(b"\0")[0]: i for i, h in enumerate(heads)}
struct.pack_into("<Q", data, at + place[b".comment"] * size + 24, heads[place[b".text"]][4])
open(sys.argv[1], "wb").write(data)
P
rm -f libodd.a && ar rc libodd.a odd.o
for odd in odd.o libodd.a; do
	for linker in bfd gold; do
		member=
		[ $odd = odd.o ] || member="member 'odd.o': "
		"$WEIR" count gcc -fuse-ld=$linker -Wl,--gc-sections -o odd caller.o $odd 2>err.txt || { skip "$odd, $linker: $(tail -n 1 err.txt)" && continue; }
		equal "$odd, $linker: the link says why it is not counted" 1 "$(grep -c "^weir: '$odd': ${member}sections [0-9]* and [0-9]* overlap (linked as it is)$" err.txt)"
		./odd
		equal "$odd, $linker: the program does what it did" 0 $?
		"$WEIR" report odd.weir >summary.txt
		check "$odd, $linker: the first lines of the summary have the object and the reason" sh -c \
			'sed -n 3,4p summary.txt | paste -sd " " | grep -q "^  counted: .* 1 object with all its functions was not counted: 1 could not be given counting code; the first object: all functions of $1: $2sections [0-9]* and [0-9]* overlap"' sh $odd "$member"
		check "$odd, $linker: and not all is counted" grep -q '^Not everything was counted' summary.txt
		"$WEIR" report odd.weir --json >summary.json
		equal "$odd, $linker: so does its JSON" 1 "$(json summary.json 'j["run"]["objects_not_counted"]')"
		equal "$odd, $linker: the report tells of it" "[1]" "$("$WEIR" report loss odd.weir --json >loss.json; told 'could not be given counting code')"
		"$WEIR" report flat --metric foreign odd.weir --json >flat.json
		equal "$odd, $linker: calls of its functions are timed" "True" "$(json flat.json 'any(r["name"] == "work" and r["base"] for r in j["rows"])')"
	done
done

"$WEIR" count -q --skip main gcc -o skipped main.o segment.o && ./skipped && "$WEIR" report loss skipped.weir --json >loss.json
equal "what was not asked for is not missed" "[]" "$(told 'not asked')"
"$WEIR" report skipped.weir >summary.txt
check "but the summary says how many functions that are" grep -q '^  1 function was left out on purpose' summary.txt

# The C library's return from signals has no size either; unwinders know it by its bytes and by the one in front of it.
cat >handler.c <<'C'
#include <execinfo.h>
#include <signal.h>
#include <stdint.h>
static volatile int found;
__attribute__((noinline)) static void interrupted(void) { raise(SIGUSR1); __asm__ volatile(""); }
static void handler(int n)
{
	void *frames[50];
	int n_frames = backtrace(frames, 50);

	(void)n;
	for (int i = 0; i < n_frames; i++)
		found |= (uintptr_t)frames[i] - (uintptr_t)interrupted < 200;
}
int main(void) { signal(SIGUSR1, handler); interrupted(); return !found; }
C
if gcc -O1 -static -o handler handler.c 2>static.txt && ./handler; then
	check "a static program finds its way out of a handler of signals" eval '"$WEIR" count -q gcc -O1 -static -o handler.counted handler.c && WEIR_OUT=handler.weir ./handler.counted'
	"$WEIR" report coverage handler.weir --json >coverage.json
	equal "and the function beside it is counted" "['executed']" \
		"$(json coverage.json '[r["state"].replace("partly ", "") for r in j["rows"] if r["function"] == "__libc_sigaction"]')"
else
	skip "a static program finds its way out of a handler of signals: it does not as it is"
fi
