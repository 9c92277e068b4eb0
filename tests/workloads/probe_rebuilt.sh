# SPDX-License-Identifier: MIT
# weir-test: root: a compiled script is run
# A compiled script and a program that was built again since: what was taken from the old build (places of
# arguments, layouts, addresses) is not used with the new one; what is found by name is.
. "$ROOT/tests/lib.sh"

build() { # OPTION...: args.b is the second or the third argument
	cat >prog.c <<C
#include <stdio.h>
struct pair { $FIELDS };
__attribute__((noinline)) int work($PARAMETERS, struct pair *p) { return a + b + p->x; }
int counter = 33;
int main(void) { struct pair p = {.x = 44, .y = 55}; return work($VALUES, &p) == 0; }
C
	gcc -O0 -g "$@" -o prog prog.c
}
first() { FIELDS='int x, y;' PARAMETERS='int a, int b' VALUES='11, 22' build "$@"; }
second() { FIELDS='int y, x;' PARAMETERS='int b, long unused, int a' VALUES='22, 0, 11' build "$@"; }
run() { timeout 120 "$WEIR" probe -q "$1" -c ./prog >out.txt 2>err.txt; echo "$? $(tr '\n' ';' <out.txt)"; }
first || { not_ok "the program compiles" && finish; }

compile() { timeout 120 "$WEIR" probe -q -o "$1" -e "$2" >compile.txt 2>&1; }
compile named.wprobe 'uprobe:./prog:work { printf("%d %d %d\n", args.a, args.b, args.p->x); }'
compile global.wprobe 'uprobe:./prog:work { printf("%d\n", counter); }'
compile offset.wprobe 'uprobe:./prog:work+1 { printf("there\n"); }'
compile glob.wprobe 'uprobe:./prog:wor* { printf("%d\n", args.a); } uprobe:./prog:mai* { printf("main %d\n", sizeof(struct pair)); }'
compile plain.wprobe 'uprobe:./prog:work { printf("%d\n", bits); }'
equal "a compiled script runs with the build it was made for" "0 11 22 44; 0 33; 0 there; 0 64;" \
	"$(run named.wprobe) $(run global.wprobe) $(run offset.wprobe) $(run plain.wprobe)"
run glob.wprobe >glob.txt
check "one with a glob, too" grep -q '^11$' out.txt
cp prog old
second
for script in named global offset glob; do
	equal "another build is refused, not traced wrongly ($script)" "1 " "$(run $script.wprobe)"
	check "both build-ids are in the sentence ($script)" \
		grep -q "was compiled for another build: build-id [0-9a-f]* wanted, [0-9a-f]* in .*prog" err.txt
done
equal "what depends on no build is found by name" "0 64;" "$(run plain.wprobe)"
cp old prog
equal "with the old build it runs again" "0 11 22 44;" "$(run named.wprobe)"

first -Wl,--build-id=none
compile bare.wprobe 'uprobe:./prog:work { printf("%d %d %d\n", args.a, args.b, args.p->x); }'
equal "without build-ids the code tells builds apart" "0 11 22 44;" "$(run bare.wprobe)"
second -Wl,--build-id=none
equal "another one is refused, too" "1 " "$(run bare.wprobe)"
check "the sentence says by what" grep -q "content hash" err.txt

# --- built again while it is traced --------------------------------------------------------------------------------
cat >again.c <<'C'
__attribute__((noinline)) int again(int n) { __asm__ volatile(""); return n + 1; }
int main(void) { return again(1) == 0; }
C
gcc -O1 -g -o again again.c && cp again other || not_ok "the program compiles"
changed() { # NAME COMMAND: what is said when the command has changed ./again meanwhile
	timeout 120 "$WEIR" probe "begin { printf(\"on\\n\"); } uprobe:./again:again { @n = count(); }" >"$1.txt" 2>"$1.err" &
	until_line "$1.err" Attached $!
	./again
	eval "$2"
	kill -INT $!
	wait $!
	sed -n "s/^weir: note: '.\/again' \(was [a-z]*\).*/\1/p" "$1.err"
}
equal "a file that is replaced by another is told" "was replaced @n: 1" "$(changed moved 'cp other new && mv new again') $(grep @n moved.txt)"
equal "so is one that is written over" "was written @n: 1" "$(changed over 'cat other >again') $(grep @n over.txt)"
equal "one that stays is not" " @n: 1" "$(changed same :) $(grep @n same.txt)"

# --- another kernel ------------------------------------------------------------------------------------------------
cat >kernel.py <<'E'
import struct, sys
sys.path.insert(0, sys.argv[1])
from read_probe_stream import crc32c
data = bytearray(open(sys.argv[2], "rb").read())
row = 32  # of the facts, the first section
at, n = struct.unpack_from("<QQ", data, row + 8)
id_n = struct.unpack_from("<I", data, at + 17)[0]
if id_n:
    data[at + 21] ^= 0xff
    struct.pack_into("<I", data, row + 4, crc32c(data[at:at + n]))
    struct.pack_into("<I", data, 24, crc32c(data[32:32 + 32 * 12]))
    struct.pack_into("<I", data, 28, crc32c(data[0:28]))
    open(sys.argv[3], "wb").write(data)
print("bound" if id_n else "free")
E
foreign() { # NAME SCRIPT: whether it is bound to a kernel, what it prints, and what is said where that is another
	local there=
	timeout 120 "$WEIR" probe -q -o "$1.wprobe" "$2" >compile.txt 2>&1
	bound=$(python3 kernel.py "$ROOT/tests/format" "$1.wprobe" "$1-other.wprobe")
	[ "$bound" = free ] || there=$(timeout 120 "$WEIR" probe -q "$1-other.wprobe" 2>&1 | grep -o 'compiled for another kernel')
	echo "$bound $(timeout 120 "$WEIR" probe -q "$1.wprobe" 2>&1 | head -n 1)${there:+ $there}"
}
if grep -qa GNU /sys/kernel/notes && [ -e /sys/kernel/btf/vmlinux ]; then
	equal "code with structures of the kernel is for this kernel only" "bound true compiled for another kernel" \
		"$(foreign task 'begin { print(curtask.tgid > 0); }')"
	equal "so is code that reads records of tracepoints" "bound true compiled for another kernel" \
		"$(foreign record 'tracepoint:raw_syscalls:sys_enter { print(args.id >= 0); exit(); }')"
else
	skip "scripts for another kernel: this one has no build-id or BTF"
fi
equal "other code runs on any" "free 7" "$(foreign any 'begin { print(7); } tracepoint:raw_syscalls:sys_enter { @ = count(); clear(@); exit(); }')"
finish
