# SPDX-License-Identifier: MIT
# Stacks that the kernel's copy does not hold to their end: deep ones, and such with pages in the middle that nobody
# has touched. The first samples of a thread may be short, before it is known where its stack ends.
. "$ROOT/tests/lib.sh"
if [ "$(id -u)" != 0 ] || ! "$WEIR" doctor | grep -q 'by BPF'; then
	skip "stacks beyond the kernel's copy: BPF is not permitted"
	finish
fi
gcc -O2 -o deep "$ROOT/tests/workloads/deep_stack.c" -lpthread || exit 1

# walked WHERE DEPTH HOLE
walked() {
	"$WEIR" record -q -o "$1.weir" -- ./deep "$@"
	"$WEIR" report loss "$1.weir" --json >loss.json
	check "$1, $2 frames of a thousand bytes, $3 bytes untouched: most stacks are complete ($(stacks))" \
		test "$(json loss.json "j['loss']['stacks_complete'] * 3 > j['loss']['stacks'] * 2")" = True
	"$WEIR" report tree "$1.weir" --json >tree.json
	equal "and they have every frame" $(($2 + 1)) \
		"$(json tree.json "max(r['rl'] for r in j['rows'] if r['name'] == 'descend')")"
}
stacks() { json loss.json "'%d of %d' % (j['loss']['stacks_complete'], j['loss']['stacks'])"; }
walked main 3 9000
walked main 3 60000
walked thread 100 0
walked thread 100 60000
walked main 600 0
walked thread 3 400000
walked main 300 650000

# Deeper than all copies: that is the reason, and nothing else is.
"$WEIR" record -q -o deeper.weir -- ./deep main 2500 0
"$WEIR" report loss deeper.weir --json >loss.json
check "a stack of 2.5 MB is told to be deeper than the copy ($(stacks))" \
	test "$(json loss.json "j['loss']['reasons'].get('stack deeper than the copy', 0) * 3 > j['loss']['stacks'] * 2")" = True
