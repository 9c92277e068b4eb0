#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where functions begin, as translators are told, against nm and the unwind tables as readelf prints them.
# weir-test: patient
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/translated_functions
unset WEIR_DEBUG_PATH

cat >compare.py <<'P'
import bisect, re, subprocess, sys
dump, image = sys.argv[1:3]

def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace").stdout.splitlines()

ours = [line.split(" ") for line in lines(dump, image)]
starts = [int(f[0], 16) for f in ours]
assert starts == sorted(starts), "not in order"
parts = {int(f[0], 16) for f in ours if f[-1] == "part"}
ends = {int(f[0], 16): int(f[0], 16) + int(f[1], 16) for f in ours}
sections = [line.split() for line in lines("objdump", "-h", image) if re.match(r" *\d+ \S", line)]
code = [(int(s[3], 16), int(s[3], 16) + int(s[2], 16)) for s in sections if s[1].startswith((".text", ".init", ".fini"))]

def in_code(address):
    return any(low <= address < high for low, high in code)
wrong = []
n_symbols = n_frames = 0
for options in ["-D"], []:
    for line in lines("nm", *options, "--defined-only", image):
        m = re.match(r"([0-9a-f]+) ([TtWi]) (\S+)$", line)
        if not m or not in_code(int(m[1], 16)) or m[3].startswith(".L"):
            continue
        n_symbols += 1
        address = int(m[1], 16)
        if address not in ends:
            # labels without a size in sized functions are none
            at = bisect.bisect(starts, address) - 1
            if not any(starts[i] <= address < ends[starts[i]] for i in range(max(0, at - 50), at + 1)):
                wrong.append(f"symbol {line}")
for line in lines("readelf", "--debug-dump=frames", image):
    m = re.search(r"FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
    if not m or not in_code(int(m[1], 16)) or m[1] == m[2]:
        continue
    n_frames += 1
    low, high = int(m[1], 16), int(m[2], 16)
    at = bisect.bisect(starts, low) - 1
    if not any(starts[i] <= low < ends[starts[i]] for i in range(max(0, at - 50), at + 1)):
        wrong.append(f"range {line}")
print(f"{len(ours)} functions, {n_symbols} symbols, {n_frames} ranges")
print(*wrong[:20], sep="\n")
sys.exit(bool(wrong) or not ours or not n_frames)
P

# image LABEL PATH
image() {
	if [ ! -f "$2" ]; then
		skip "functions of $1 begin where nm and readelf say: $2 is not installed"
	elif python3 compare.py "$dump" "$2" >compare.txt 2>&1; then
		ok "functions of $1 begin where nm and readelf say: $(head -n 1 compare.txt)"
	else
		not_ok "functions of $1 begin where nm and readelf say"
		head -n 20 compare.txt
	fi
}
image "the C library" "$(ldd /bin/sh | sed -n 's/.*=> \(.*libc.so[^ ]*\) .*/\1/p')"
image "the dynamic linker" "$(readlink -f /lib64/ld-linux-x86-64.so.2)"
image perl "$(readlink -f "$(type -P perl)")"
image bash "$(readlink -f "$(type -P bash)")"
image weir "$WEIR"

cat >split.c <<'E'
#include <stdlib.h>
__attribute__((noinline)) int work(int n)
{
	if (__builtin_expect(n < 0, 0)) {
		for (int i = 0; i < -n; i++)
			n ^= rand();
		abort();
	}
	return n * 3;
}
int main(int argc, char **argv)
{
	(void)argv;
	return work(argc) != 3;
}
E
if ${CC:-cc} -O2 -freorder-blocks-and-partition -o split split.c 2>/dev/null && nm split | grep -q 'work.cold'; then
	check "what gcc has split off is no function" grep -q 'work.cold part' <("$dump" "$PWD/split")
	strip -o stripped split
	cold=$(nm split | sed -n 's/^0*\([0-9a-f]*\) .*work.cold.*/\1/p')
	work=$(nm split | sed -n 's/^0*\([0-9a-f]*\) . work$/\1/p')
	check "the same by the unwind table" grep -q "^$cold [0-9a-f]* - part$" <("$dump" "$PWD/stripped")
	check "the function itself is one" grep -q "^$work [0-9a-f]* -$" <("$dump" "$PWD/stripped")
else
	skip "what gcc has split off is no function: this compiler splits nothing"
fi
