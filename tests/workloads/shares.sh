# SPDX-License-Identifier: MIT
# Programs of known shape: the shares come out within sampling error.
# weir-test: alone: shares of samples depend on the load
. "$ROOT/tests/lib.sh"
gcc -O2 -fomit-frame-pointer -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1

# share FILE NAME COLUMN: percent of the total
share() { json "$1" "next((100.0*r['$3']/j['total'] for r in j['rows'] if r['name']=='$2'), -1)"; }
near() { # SENTENCE ACTUAL EXPECTED TOLERANCE
	if python3 -c "import sys; sys.exit(not abs($2-$3)<=$4)"; then ok "$1 ($2)"; else not_ok "$1: $2 instead of $3 +- $4"; fi
}

"$WEIR" record -q -o s.weir -- ./split split >/dev/null
"$WEIR" report flat s.weir --json >flat.json
near "seventy() has 70 % of the time" "$(share flat.json seventy cum)" 70 5
near "twenty() has 20 % of the time" "$(share flat.json twenty cum)" 20 5
near "ten() has 10 % of the time" "$(share flat.json ten cum)" 10 4
near "main() has all of it" "$(share flat.json main cum)" 100 2
n=$(json flat.json "sum(r['samples'] for r in j['rows'])")
check "about 2,000 samples were taken in 2 s of CPU ($n)" test "$n" -gt 1200 -a "$n" -lt 2600
near "their sum is the CPU time used" "$(json flat.json "j['total']/1e7")" 200 60

"$WEIR" record -q -o r.weir -- ./split recursion >/dev/null
"$WEIR" report flat r.weir --json >flat.json
"$WEIR" report tree r.weir --json >tree.json
near "recursion: cum counts the outermost instance only" "$(share flat.json down cum)" 100 3
near "recursion: cum2 counts all 21 instances" "$(share flat.json down cum2)" 2100 80
equal "recursion: the deepest instance has recursion level 21" 21 \
	"$(json tree.json "max(r['rl'] for r in j['rows'] if r['name']=='down')")"

"$WEIR" record -q -o t.weir -- ./split threads >/dev/null
"$WEIR" report threads t.weir --json >threads.json
near "two threads: the heavy one has 75 %" \
	"$(json threads.json "100.0*max(r['base'] for r in j['rows'])/sum(r['base'] for r in j['rows'])")" 75 6
"$WEIR" report flat t.weir --json >flat.json
near "two threads: 25 % in twenty()" "$(share flat.json twenty cum)" 25 6

"$WEIR" record -q -o z.weir -- ./split sleep >/dev/null
"$WEIR" report flat z.weir --json >flat.json
near "sleeping is not charged as CPU: half a second in all" "$(json flat.json "j['total']/1e7")" 50 20
near "and it is where the work was" "$(share flat.json spin_before_sleep cum)" 97 6
"$WEIR" report threads z.weir --json >threads.json
equal "switches are not recorded unless they are used" None "$(json threads.json "j['rows'][0]['switches']")"
"$WEIR" record -q --kinds stack,switch,module -o z.weir -- ./split sleep >/dev/null
"$WEIR" report threads z.weir --json >threads.json
check "the sleep shows as a switch" test "$(json threads.json "j['rows'][0]['switches']")" -ge 1

if "$WEIR" record -q -e wall -o w.weir -- ./split sleep >/dev/null 2>err.txt; then
	"$WEIR" report flat w.weir --metric wait --json >flat.json
	# Whoever has to share the CPU waits for it, too: the sleep alone is of known length.
	near "-e wall: the sleep is a wait of 1 s" "$(json flat.json "max((r['cum']/1e7 for r in j['rows'] if 'nanosleep' in r['name'] and r['kind']=='native'), default=-1)")" 100 25
	wait=$(json flat.json "j['total']/1e7")
	check "-e wall: the wait is charged to the call that waits" test "$(json flat.json "any('sleep' in r['name'] and r['cum']>9e8 for r in j['rows'])")" = True
	"$WEIR" report flat w.weir --metric wall --json >flat.json
	wall=$(json flat.json "j['total']/1e7")
	"$WEIR" report flat w.weir --json >flat.json
	near "-e wall: the CPU time is not changed by it" "$(json flat.json "j['total']/1e7")" 50 20
	near "-e wall: wall is work and wait together" "$(json flat.json "$wall-$wait-j['total']/1e7")" 0 1
else
	skip "-e wall: $(head -n 1 err.txt)"
fi
