# SPDX-License-Identifier: MIT
# Switches by hand to stacks among a thread's own frames look like jumps: what may be wrong then is said.
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
. "$ROOT/tests/lib.sh"
sentence="left by a jump or an exception; or .*went on, unseen, on a stack made by hand"
cat >deep.c <<'C'
#include <setjmp.h>
static jmp_buf back;
static volatile int sum;
__attribute__((noinline, noclone)) void deep(int n)
{
	if (!n)
		longjmp(back, 1);
	deep(n - 1);
	sum++;
}
__attribute__((noinline, noclone)) void leaf(void) { sum++; }
int main(void)
{
	for (int i = 0; i < 10; i++) {
		if (!setjmp(back))
			deep(2000);
		leaf();
	}
	return sum;
}
C
# told PROGRAM...: "yes" or "no" by record and by the report of losses, and the program's status
told() {
	local said=no kept=no rc
	"$WEIR" record --no-sample ${tree:+--tree} --events 'h_*,deep,leaf' -o t.weir -- "$@" >out.txt 2>err.txt
	rc=$?
	grep -q "$sentence" err.txt && said=yes
	"$WEIR" report loss t.weir | grep -q "$sentence" && kept=yes
	echo "$said $kept $rc"
}
calls() { "$WEIR" report flat t.weir --json >flat.json; json flat.json "sum(r['calls'] for r in j['rows'] if r['name'] == '$1')"; }
for bits in 64 32; do
	for name in "coroutines -DHAND_MADE -DON_LOCAL -DSTACK_BYTES=65536" "plain"; do
		read -r name flags <<<"$name"
		gcc -w -O2 -g -m$bits $flags -I"$ROOT/tests/hazards/programs" -o $name$bits \
			"$ROOT/tests/hazards/programs/$name.c" -lpthread || exit 1
	done
	gcc -O1 -g -m$bits -o deep$bits deep.c || exit 1
	for tree in "" 1; do
		how="$bits bit${tree:+, as a tree}"
		equal "$how: hand-made stacks in a local array are told" "yes yes 7" "$(told ./coroutines$bits 100 once)"
		equal "$how: all of their calls are counted" "$(awk '$1 == "calls" && $2 == "h_yields" { print $3 }' out.txt)" "$(calls h_yields)"
		equal "$how: a program without jumps has no such note" "no no 7" "$(told ./plain$bits 100 once)"
		equal "$how: jumps out of many calls are told" "yes yes 10" "$(told ./deep$bits)"
		equal "$how: the calls are counted" "20010 10" "$(calls deep) $(calls leaf)"
	done
done
