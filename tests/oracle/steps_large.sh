# SPDX-License-Identifier: MIT
# Traces with many steps, made from what valgrind says was executed (steps_generate.c): their size, that a
# listing from the middle is the same as that part of the whole one and reads little, and that no step is
# missing. About 1.3 million instructions; with WEIR_SLOW=1 a hundred million.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"

command -v valgrind >/dev/null || {
	skip "large traces of steps: valgrind is not installed"
	finish
}

# Real work of several kinds: compression, sorting, numbers to text and back, a hash table, moved memory.
cat >work.c <<'END'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned char text[16384], packed[32768];
static uint32_t seed = 1, heads[4096];
static uint32_t next(void) { return (seed = seed * 1664525 + 1013904223) >> 8; }
static void fill(void)
{
	static const char *const words[] = {"instruction", " ", "trace", "step", "\n", "address", "of ", "the "};
	size_t n = 0;
	while (n + 16 < sizeof text) {
		const char *word = words[next() & 7];
		memcpy(text + n, word, strlen(word));
		n += strlen(word);
	}
}
__attribute__((noinline)) static size_t pack(void)
{
	size_t n = 0;
	memset(heads, 0, sizeof heads);
	for (size_t i = 0; i + 4 < sizeof text;) {
		uint32_t key, at, length = 0;
		memcpy(&key, text + i, 4);
		key = key * 2654435761u >> 20;
		at = heads[key];
		heads[key] = (uint32_t)i;
		while (at && i + length < sizeof text && text[at + length] == text[i + length] && length < 255) length++;
		if (length > 3) { packed[n++] = (unsigned char)length; packed[n++] = (unsigned char)(i - at); i += length; }
		else packed[n++] = text[i++];
	}
	return n;
}
static int compare(const void *a, const void *b) { return memcmp(a, b, 4); }
int main(int argc, char **argv)
{
	double sum = 0;
	for (int round = argc > 1 ? atoi(argv[1]) : 1; round > 0; round--) {
		char number[40];
		fill();
		sum += (double)pack();
		qsort(packed, 256, 4, compare);
		for (int i = 0; i < 20; i++) {
			snprintf(number, sizeof number, "%.3f", sum / (next() % 100 + 1));
			sum += strtod(number, NULL);
		}
		__asm__ volatile("rep movsb" : : "S"(packed), "D"(text), "c"(100L) : "memory");
	}
	printf("%.0f\n", sum);
	return 0;
}
END
gcc -O2 -g -static -no-pie -Wno-unused-result -Wl,--build-id -o work work.c || exit 1
rounds=2
[ -z "${WEIR_SLOW:-}" ] || rounds=160

# The lines of instructions, and those of a further round of a repeated string instruction, by the
# disassembly of another tool.
objdump -d work | awk '/\trep(n?z)? (movs|stos|lods|scas|cmps)/ { sub(":", "", $1); print $1 }' >strings.txt
count_lines() {
	awk 'NR == FNR { string["0" $1] = string[$1] = 1; next }
	/^I  / { n++; split($2, part, ","); a = part[1]; sub(/^0*/, "", a); r += a == last && a in string; last = a }
	END { print n, r + 0 }' strings.txt -
}
lackey() { valgrind --tool=lackey --trace-mem=yes --log-fd=9 ./work $rounds 9>&1 >work.out; }
if [ -z "${WEIR_SLOW:-}" ]; then
	mkfifo lines
	count_lines <lines >counted.txt &
	counter=$!
	lackey | tee lines | "$BUILD/tests/oracle/steps_generate" "$PWD/work" large.weir >made.txt
	wait $counter
else
	lackey | "$BUILD/tests/oracle/steps_generate" "$PWD/work" large.weir >made.txt
fi
read -r _ lines _ again _ steps _ codes _ outside <made.txt
equal "the program does its work under valgrind" "$(./work $rounds)" "$(cat work.out)"
echo "$lines lines, $again of them further rounds, $steps steps of $codes instructions"
[ -n "${WEIR_SLOW:-}" ] || equal "each line of lackey is a step or a further round of one" \
	"$(cat counted.txt)" "$lines $again"
check "there are many steps" [ "$steps" -ge $((rounds * 300000)) ]
check "string instructions are among them" [ "$again" -gt $((rounds * 100)) ]
equal "no instruction is outside the program" 0 "$outside"

bytes=$(stat -c %s large.weir)
echo "$bytes bytes, $((bytes * 1000 / steps)) thousandths of a byte for an instruction"
check "a step needs at most one byte" [ "$bytes" -le "$steps" ]

# The totals at the end of the stream.
equal "the stream has every step" "$steps" \
	"$("$WEIR" export step-stream large.weir -o - | tail -c 32 | od -An -t u8 -N 8 | tr -d ' ')"

# How many chunks are unpacked; sanitizers do not let others in front of them.
cat >count.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static unsigned long n;
size_t ZSTD_decompressDCtx(void *c, void *to, size_t room, const void *from, size_t bytes)
{
	static size_t (*real)(void *, void *, size_t, const void *, size_t);
	if (!real) *(void **)&real = dlsym(RTLD_NEXT, "ZSTD_decompressDCtx");
	n++;
	return real(c, to, room, from, bytes);
}
__attribute__((destructor)) static void tell(void)
{
	FILE *f = fopen(getenv("COUNT_FILE"), "w");
	fprintf(f, "%lu\n", n);
	fclose(f);
}
END
gcc -shared -fPIC -o count.so count.c -ldl || exit 1
chunks() { # COMMAND...: how many chunks it unpacks
	COUNT_FILE=unpacked.txt LD_PRELOAD=$PWD/count.so "$@" >/dev/null && cat unpacked.txt
}
middle=$((steps / 2))
if [ -z "$WEIR_SAN" ]; then
	opened=$(chunks "$WEIR" report steps large.weir --limit 1)
	far=$(chunks "$WEIR" report steps large.weir --at $middle --limit 50)
	all=$(chunks "$WEIR" export step-stream large.weir -o /dev/null)
	echo "chunks unpacked: $opened for the first step, $far for the middle, $all for all"
	check "there are several chunks" [ "$all" -ge $((opened + 4 * rounds)) ]
	# Halving: one chunk for each doubling of their number, and the ones that are shown.
	log=0
	for ((n = all; n > 1; n /= 2)); do log=$((log + 1)); done
	check "a listing from the middle unpacks few chunks" [ "$far" -le $((opened + log + 3)) ]
	check "and not all of them" [ "$far" -lt "$all" ]
fi
"$WEIR" report steps large.weir --at $middle --limit 50 | grep -P '^ *\d+  0x' >middle.txt
equal "the listing from the middle has the steps from there on" "$(seq $middle $((middle + 49)))" \
	"$(awk '{ print $1 }' middle.txt)"
if [ -z "${WEIR_SLOW:-}" ]; then
	"$WEIR" report steps large.weir | grep -P '^ *\d+  0x' >whole.txt
	equal "the whole listing has a line for each step" "$steps" "$(wc -l <whole.txt)"
	for from in 0 1 $middle $((steps - 50)); do
		equal "the listing from $from is that part of the whole one" \
			"$(sed -n "$((from + 1)),$((from + 50))p" whole.txt)" \
			"$("$WEIR" report steps large.weir --at "$from" --limit 50 | grep -P '^ *\d+  0x')"
	done
	"$WEIR" export steps large.weir | cut -f 3 >addresses.txt
	equal "text and listing have the same addresses" "$(awk '{ print $2 }' whole.txt | md5sum)" "$(md5sum <addresses.txt)"
	check "functions of the program are named" grep -q 'work(pack+0x' whole.txt
fi
