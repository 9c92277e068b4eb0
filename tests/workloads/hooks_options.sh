# SPDX-License-Identifier: MIT
# What can be asked for beside --events: stacks at entries, a budget; and what cannot be had.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"
build busy busy.c -O2 && build compiled_in compiled_in.c -O2 || exit 1

"$WEIR" record -q --no-sample --stack-at 'recursive' -o t.weir -- ./compiled_in >/dev/null 2>err.txt
"$WEIR" report samples t.weir --json >samples.json 2>err.txt
equal "a stack at each entry, and no other" 5500 "$(json samples.json "len(j['rows'])")"
equal "its innermost frame is the function" "recursive" "$(json samples.json "' '.join({r['stack'][-1]['name'] for r in j['rows']})")"
equal "its callers are true ones, as deep as the recursion" "1 2 3 4 5 6 7 8 9 10" \
	"$(json samples.json "' '.join(map(str, sorted({sum(f['name'] == 'recursive' for f in r['stack']) for r in j['rows']})))")"
equal "below them the program's own" "main first recursive" \
	"$(json samples.json "' '.join(f['name'] for f in j['rows'][0]['stack'][-3:])")"

"$WEIR" record -q --budget 1 --events '*' -o t.weir -- ./busy progress 1.5 2 >out.txt 2>err.txt
equal "with a budget the program works" "wrong 0" "$(cut -d, -f1 out.txt)"
"$WEIR" report hooks t.weir --json >hooks.json 2>err.txt
check "functions that cost too much are unhooked, and the report says when" \
	test "$(json hooks.json "sum(1 for r in j['rows'] if r['off'])")" -ge 1
steps=$(od -A n -t u8 -w8 -v progress | awk '{s+=$1} END {print s}')
check "from then on they are not counted" test "$(json hooks.json "max(r['hits'] or 0 for r in j['rows'] if r['off'])")" -lt "$steps"
"$WEIR" report flat t.weir --json >flat.json 2>err.txt
check "but sampled" test "$(json flat.json "max([r['samples'] or 0 for r in j['rows'] if r['name'] in ('leaf', 'branch', 'step')] or [0])")" -gt 20

# A breakpoint costs a program a microsecond and more: it goes after the first look, also with --tree.
for bits in 64 32; do
	if ! build trapped$bits trapped.c -O2 -m$bits; then
		skip "breakpoints and a budget, $bits bits: gcc -m$bits does not work here ($(head -n 1 build.txt))"
		continue
	fi
	for option in --all-calls --tree; do
		[ $option = --tree ] && options=(--tree) || options=()
		"$WEIR" record -q --no-sample --budget 5 "${options[@]}" --events trapped -o t.weir -- ./trapped$bits 2000000 >out.txt 2>err.txt
		"$WEIR" report hooks t.weir --json >hooks.json 2>err.txt
		equal "a function that only a breakpoint fits is unhooked to keep the budget, $bits bits, ${option#--}" \
			"2000000 calls int3 True True" "$(cat out.txt) $(json hooks.json "' '.join(str(x) for r in j['rows'] for x in (r['method'], r['off'] > 0, 0 < r['hits'] < 1000000))")"
	done
done

if build static compiled_in.c -O2 -static; then
	"$WEIR" record --events '*' -o t.weir -- ./static >out.txt 2>err.txt
	equal "a static program runs as it would" "5 4257000" "$? $(cat out.txt)"
	check "and a note says why it is not hooked" grep -q 'statically linked' err.txt
else
	skip "a static program: there is no static libc here"
fi
"$WEIR" record --events 'none_such*,third' -o t.weir -- ./compiled_in >out.txt 2>err.txt
check "a glob that matches nothing is said" grep -q "none_such" err.txt
"$WEIR" report hooks t.weir --json >hooks.json
equal "the others are hooked" "third 3000" "$(json hooks.json "' '.join(f\"{r['function']} {r['hits']}\" for r in j['rows'] if r['hits'])")"

build instrumented compiled_in.c -O2 -finstrument-functions
"$WEIR" record -q --tree --events third -o t.weir -- ./instrumented >out.txt 2>err.txt
"$WEIR" report flat t.weir --json >flat.json
equal "a tree counts functions that have calls of their own, too" "third 3000" \
	"$(json flat.json "' '.join(f\"{r['name']} {r['calls']}\" for r in j['rows'] if r['name'] == 'third')")"

# As in libraries that BOLT has laid out anew: code, then data that is written, then code.
cat >late.c <<'C'
#include <stdio.h>
static int data[4096] = {1};
__attribute__((noinline)) int early(int i) { return data[i % 4096]++ + i; }
__attribute__((noinline, section(".late"))) int late(int i) { data[i % 4096] += 2; return early(i) + 1; }
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 5000; i++)
		sum += late(i);
	printf("%ld\n", sum);
	return 0;
}
C
if gcc -O2 -no-pie -Wl,--section-start=.late=0x900000 -o late late.c; then
	"$WEIR" record -q --events '*' -o t.weir -- ./late >out.txt 2>err.txt
	equal "data between two stretches of code stays writable" "0 $(./late)" "$? $(cat out.txt)"
	"$WEIR" report hooks t.weir --json >hooks.json
	equal "and both stretches are hooked" "early 5000 late 5000" \
		"$(json hooks.json "' '.join(sorted(f\"{r['function']} {r['hits']}\" for r in j['rows'] if r['hits'] == 5000))")"
else
	not_ok "a program with data between two stretches of code is built"
fi
