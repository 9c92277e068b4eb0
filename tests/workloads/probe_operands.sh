# SPDX-License-Identifier: MIT
# weir-test: root: static probes are traced
# Operands of static probes in every form: constants keep to their size, symbols are the file's own memory
# wherever it is loaded. The program says what they are.
. "$ROOT/tests/lib.sh"

script='{ printf("%lu %lu %ld %lu %lu %ld %lu %ld %lu %lu\n", arg0, arg1, arg2, arg3, arg4, arg5, arg6, arg7, arg8, arg9); }'
for bits in 64 32; do
	for kind in "-pie -fPIE" "-no-pie -fno-pie"; do
		# shellcheck disable=SC2086 # several options
		gcc -m$bits -O1 $kind -o "operands$bits" "$ROOT/tests/fixtures/probe/operands.c" 2>gcc.txt || {
			skip "operands in $bits-bit programs ($kind): it does not compile here"
			continue
		}
		"./operands$bits" >said.txt
		timeout 120 "$WEIR" probe -q -e "usdt:./operands$bits:weirtest:forms $script" \
			-c "sh -c './operands$bits >/dev/null'" >ours.txt 2>err.txt
		equal "operands of a $bits-bit probe are what the program says ($kind)" "$(cat said.txt)" "$(cat ours.txt err.txt)"
	done
done
cat >twice.c <<'C'
extern void other(void);
static int twin = 1;
int main(void) { twin++; other(); return 0; }
C
echo 'static int twin = 2; void other(void) { twin++; }' >other.c
sed -n '/__attribute__((noinline)) void fire/,/^}/p' "$ROOT/tests/fixtures/probe/operands.c" |
	sed 's/CONSTANTS " " SYMBOLS " " MEMORY " " HIGH/"4@twin(%%rip)"/; s/WORD/".8byte"/' >fire.txt
{ echo '#include <stdint.h>' && cat fire.txt && sed 's/other();/other(); fire(0, 0);/' twice.c; } >main.c
if gcc -O0 -o twice main.c other.c 2>gcc.txt; then
	timeout 120 "$WEIR" probe -e 'usdt:./twice:weirtest:forms { printf("%d\n", arg0); }' -c ./twice >twice.txt 2>twice.err
	check "a symbol that the file has twice is not guessed at" grep -q "has several of" twice.err
	equal "nothing is printed for it" "" "$(grep -v Attached twice.txt)"
else
	skip "a symbol that the file has twice: it does not compile here"
fi
finish
