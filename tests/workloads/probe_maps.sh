# SPDX-License-Identifier: MIT
# weir-test: root: it loads BPF programs
# Maps of scripts: what is added up over processors, time series, drawings, limits. The truth is what the traced
# program does a known number of times, and what is computed here.
. "$ROOT/tests/lib.sh"

# probe NAME ARGUMENTS...: NAME.txt, NAME.err, $rc
probe() {
	local name=$1
	shift
	timeout 120 "$WEIR" probe -q "$@" >"$name.txt" 2>"$name.err"
	rc=$?
	[ -s "$name.err" ] && sed "s/^/  $name: /" "$name.err"
}

# --- aggregations are read over all processors -----------------------------------------------------------------
# A process on each of two processors calls step(1), step(2), ... step(100); the script reads after each call.
cat >steps.c <<'E2'
#define _GNU_SOURCE
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void step(int n) { __asm__ volatile("" ::"r"(n)); }
__attribute__((noinline)) void done(void) { __asm__ volatile(""); }
int main(void)
{
	for (int cpu = 0; cpu < 2; cpu++) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
		sched_setaffinity(0, sizeof(set), &set);
		for (int i = 1; i <= 100; i++)
			step(i - 20 * cpu);
	}
	done();
	return 0;
}
E2
cat >steps.wr <<'E2'
uprobe:./steps*:step {
	$n = (int32)arg0;
	@count = count(); @sum[bits] = sum($n); @min = min($n); @max[0] = max($n); @avg = avg($n);
	@seen[bits] = max(@count);
	if (@count == 150) { printf("at 150: %d\n", @sum[bits]); }
}
uprobe:./steps*:done { print((@count, @sum[bits], @min, @max[0], @avg, @seen[bits])); }
E2
for m in 64 32; do
	gcc -m$m -O1 -g -o steps$m steps.c || not_ok "the $m-bit program compiles"
	# 100 calls of 1 ... 100 and 100 of -19 ... 80: 5050 + 3050 = 8100; after 150 calls 5050 + (-19 ... 30: 275)
	probe steps$m -i steps.wr -c ./steps$m
	equal "aggregations are added up over processors when a script reads them ($m bit)" \
		"at 150: 5325 (200, 8100, -19, 100, 40, 200)" "$(echo $(head -n 2 steps$m.txt))"
done
WEIR_PROBE_WITHOUT=percpu-read timeout 120 "$WEIR" probe -q 'begin { @c = count(); print(@c + 1); }' >without.txt 2>without.err
equal "a kernel that cannot read other processors' values: refused with the reason" "1 1" \
	"$? $(grep -c "cannot read the values of other processors" without.err)"

# --- the depth of stacks, the length of arrays --------------------------------------------------------------------
cat >deep.c <<'E2'
struct row { int cells[7]; } row;
__attribute__((noinline)) int inner(struct row *r) { __asm__ volatile("" ::"r"(r) : "memory"); return r->cells[0]; }
__attribute__((noinline)) int outer(struct row *r) { return inner(r) + 1; }
/* Stacks are known as soon as weir has learnt to walk them. */
int main(void)
{
	int s = 0;
	for (int i = 0; i < 20000; i++)
		s += outer(&row) - 1;
	return s;
}
E2
for m in 64 32; do
	gcc -m$m -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -o deep$m deep.c || not_ok "the $m-bit program compiles"
	probe deep$m "uprobe:./deep$m:inner { \$s = ustack(2); @kept[1] = ustack; @scalar = ustack(1); \$n = @n++;
		if (\$n == 19999) { print((len(\$s), len(ustack(3)), len(@kept[1]) >= 3, len(@scalar), len(args.r->cells), len(@kept))); }
		if (\$n == 19999) { clear(@kept); clear(@scalar); clear(@n); } }" -c ./deep$m
	equal "len() of stacks, arrays and maps ($m bit)" "(2, 3, true, 1, 7, 1)" "$(grep . deep$m.txt)"
done

# --- a stack that is not known yet ---------------------------------------------------------------------------------
cat >once.c <<'E2'
__attribute__((noinline)) int once(int n) { __asm__ volatile("" ::"r"(n) : "memory"); return n; }
int main(int n, char **v) { return once(n - 1) + !v; }
E2
gcc -g -O1 -o once once.c
timeout 120 "$WEIR" probe -q 'uprobe:./once:once { @seen[ustack] = 7; printf("it is %d\n", @seen[ustack]); }' -c ./once >unknown.txt 2>unknown.err
equal "what stands under a stack that is not known yet is not 0 without a word: status 3" 3 $?
check "and it is said" grep -q '1 stack that was not walked yet' unknown.err
check "and nothing is printed" [ -z "$(grep 'it is' unknown.txt)" ]

# --- keys and values of every kind ------------------------------------------------------------------------------
for m in 64 32; do
	probe kinds$m "uprobe:./deep$m:inner { @array[args.r->cells] = count(); @structure[*args.r, 1] = sum(5); @symbol[usym(reg(\"ip\")), func] = avg(2);
		@stack[ustack(2)] = max(4); @copied = args.r->cells; @copy = @copied; @whole[1] = *args.r; @wholes = @whole[1]; \$n = @n++;
		if (\$n == 19999) { print((@array[args.r->cells], @structure[*args.r, 1], @symbol[usym(reg(\"ip\")), func], @stack[ustack(2)], @wholes.cells[0])); } }" -c ./deep$m
	equal "arrays, structures, symbols and stacks are keys, and values are copied ($m bit)" "(20000, 100000, 2, 4, 0)
@array[[0,0,0,0,0,0,0]]: 20000
@copied: [0,0,0,0,0,0,0]
@copy: [0,0,0,0,0,0,0]
@n: 20000
@structure[{ .cells = [0,0,0,0,0,0,0] }, 1]: 100000
@symbol[inner, inner]: 2
@whole[1]: { .cells = [0,0,0,0,0,0,0] }
@wholes: { .cells = [0,0,0,0,0,0,0] }" "$(grep '^@[a-rt-z]\|^@s[ty][rm]\|^(' kinds$m.txt | sort | sed 's/+0x0//')"
done

# --- histograms with bits --------------------------------------------------------------------------------------
probe hist -f json 'begin { $i = 0; while ($i < 200) { @h = hist($i * 7, 2); $i++; } @h = hist(-1, 2); @top = hist((uint64)-1, 5); }'
python3 - <<'PY' || not_ok "the histograms are read"
import json
data = {}
for line in open("hist.txt"):
    row = json.loads(line)
    if row["type"] == "hist":
        data.update(row["data"])
rows, values = data["@h"], [7 * i for i in range(200)]
below, rest = rows[0], [r for r in rows[1:]]
right = below == {"max": -1, "count": 1} and all(
    r["count"] == sum(r["min"] <= v <= r["max"] for v in values) for r in rest)
whole = all(a["max"] + 1 == b["min"] for a, b in zip(rest, rest[1:])) and rest[0]["min"] == 0
# 4 buckets for each power of two
widths = all(r["max"] - r["min"] + 1 == 1 << max(0, r["min"].bit_length() - 3) for r in rest if r["min"])
print("ok" if right and whole and widths else "not ok", "hist(n, 2) has four buckets for each power of two", "" if right else rows)
top = data["@top"]
print("ok" if top == [{"min": 63 << 58, "max": 2**64 - 1, "count": 1}] else "not ok", "hist(n, 5) of the largest number", top)
PY
probe labels 'begin { @h = hist(9, 1); @h = hist(3, 1); @h = hist(2048, 1); }'
equal "buckets of histograms with bits have both ends" "@h: [3] [4, 6) [6, 8) [8, 12) ... [2K, 3K)" \
	"$(sed 's/^@h:$/@h: /; s/\(.*[])]\) *[0-9]* |.*/\1/' labels.txt | awk 'NF { a[n++] = $0 } END { print a[0] a[1], a[2], a[3], a[4], "...", a[n-1] }')"

# --- time series ------------------------------------------------------------------------------------------------
# The clock is a map: @t. 100 ms intervals from 07:00:00.
series() { # NAME FUNCTION ARGUMENTS...
	local name=$1 function=$2
	shift 2
	WEIR_PROBE_CLOCK=@t TZ=UTC probe "$name" "$@" "begin { @t = (uint64)25200000000000; \$i = 0;
		while (\$i < 12) { @s = tseries((\$i * 5) % 7 - 3, 100ms, 4$function); @t += 25ms; \$i++; } clear(@t); }"
}
# -3 2 0 -2 | 3 1 -1 -3 | 2 0 -2 3
series last ""
equal "a time series has a row for each interval" "@s:
             -3                                                  3
hh:mm:ss.ms  |___________________________________________________|
07:00:00.000 |       *                 .                         | -2
07:00:00.100 *                         .                         | -3
07:00:00.200 |                         .                         * 3
             v___________________________________________________v
             -3                                                  3" "$(cat last.txt)"
for f in avg:0:0:0 min:-3:-3:-2 max:2:3:3 sum:-3:0:3; do
	series $f ", \"${f%%:*}\"" -f json
	equal "tseries(..., \"${f%%:*}\")" "${f#*:}" "$(python3 -c '
import json
rows = [json.loads(l) for l in open("'$f'.txt")]
print(":".join(str(v["value"]) for r in rows if r["type"] == "tseries" for v in r["data"]["@s"]))')"
done
WEIR_PROBE_CLOCK=@t TZ=UTC probe ends 'begin { @t = (uint64)10000000000; @s["early"] = tseries(1, 1s, 3); @t += 1s; @s["early"] = tseries(5, 1s, 3);
	@t += 2s; @s["late"] = tseries(7, 1s, 3); @s["late"] = tseries(7, 1s, 3); clear(@t); }'
equal "series of one map end together, what is older than its intervals is gone, a constant is in the middle" "@s[early]:
 4 6
00:00:11.000 | * | 5
00:00:12.000 | | -
00:00:13.000 | | -
 4 6

@s[late]:
 6 8
00:00:13.000 | * | 7
 6 8" "$(grep -v '___' ends.txt | sed 's/  */ /g')"
before=$(date +%s)
probe clock -f json 'interval:ms:10 { @s = tseries(1, 1s, 5, "sum"); if (@n++ == 3) { exit(); } }'
after=$(date +%s)
check "intervals are told in the time of day" python3 -c '
import json, datetime
rows = [json.loads(l) for l in open("clock.txt")]
rows = [v for r in rows if r["type"] == "tseries" for v in r["data"]["@s"]]
at = [datetime.datetime.strptime(v["interval_start"][:19] + "+0000", "%Y-%m-%d %H:%M:%S%z").timestamp() for v in rows]
assert all('$before' - 1 <= t <= '$after' + 1 for t in at), (at, '$before')
assert sum(v["value"] for v in rows) == 4, rows'
probe zeroed -f json 'begin { @s = tseries(1, 1s, 5); zero(@s); } interval:ms:50 { exit(); }'
check "a zeroed series has no intervals" grep -q '"@s": \[\]' zeroed.txt

# --- an interval that is late does not go on behind exit() ------------------------------------------------------------
probe late 'interval:us:5 { @n++; @of[@n] = 1; exit(); }'
equal "exit() ends an interval whose ticks are late" "@n: 1 @of[1]: 1" "$(echo $(grep . late.txt))"

# --- delete() for what it does -------------------------------------------------------------------------------------
timeout 120 "$WEIR" probe 'begin { @a[1] = 1; delete(@a[1]); @b = 1; delete(@b); exit(); }' >deleted.txt 2>deleted.err
equal "delete() as a statement needs nobody to take its value" "0 0 Attached 1 probe" "$? $(grep -c . deleted.txt) $(cat deleted.err)"

# --- declared maps, and what maps take ---------------------------------------------------------------------------
probe declared 'let @small = hash(2); let @recent = lruhash(1); let @counts = percpuhash(2); let @last = percpulruhash(1); let @nobody = hash(7);
begin { @small[1] = 1; @small[2] = 2; @small[3] = 3; @counts[1] = count(); @counts[2] = count(); @counts[3] = count();
	@recent[1] = 1; @recent[2] = 2; @last[1] = sum(4); @last[2] = sum(5); }'
equal "hash(N) keeps N entries and counts the others as lost, lruhash(N) keeps the latest" \
	"@counts[1]: 1 @counts[2]: 1 @last[2]: 5 @recent[2]: 2 @small[1]: 1 @small[2]: 2" "$(echo $(grep . declared.txt | sort))"
equal "two values found no room" "3 1" "$rc $(grep -c ': 2 values that found no room' declared.err)"
timeout 120 "$WEIR" probe 'let @nobody = hash(7); begin { exit(); }' 2>declared.err
check "a map that is declared and never used is told" grep -q '1:1: warning: @nobody is declared and never used \[unused\]' declared.err
probe stream -o declared.wprobe 'let @last = percpulruhash(1); begin { @last[1] = sum(4); @last[2] = sum(5); }'
probe stream declared.wprobe
equal "a stream has the kinds of its maps" "@last[2]: 5" "$(grep . stream.txt)"
timeout 120 "$WEIR" probe -q --max-entries 100000000 'begin { @x[1] = 1; }' >large.txt 2>large.err
equal "a map that takes more than 1 GiB before it has an entry is refused" "1 50000000 entries fit" \
	"$? $(grep -o '[0-9]* entries fit' large.err)"
timeout 120 "$WEIR" probe --dry-run --max-entries 1000 'begin { @x[1] = 1; @y = count(); }' >plan.txt
equal "--dry-run says what maps take" "map @x: 1000 entries, 16 KiB at once, map @y: 1 entry, 1 KiB at once," \
	"$(echo $(grep '^map' plan.txt | sed 's/ [0-9]* KiB when full//'))"
timeout 120 "$WEIR" probe -v --max-entries 1000 'begin { @x[1] = 1; @z[1, 2] = 1; exit(); }' >verbose.txt 2>verbose.err
check "and -v says it of all" grep -q '^weir: 2 maps of the script: 32 KiB, [0-9]* KiB when full' verbose.err
check "and so does its JSON" python3 -c '
import json, subprocess, sys
plan = json.loads(subprocess.run([sys.argv[1], "probe", "--dry-run", "-f", "json", "begin { @x[1] = 1; }"], capture_output=True).stdout)
assert [(m["name"], m["entries"], m["bytes_at_once"]) for m in plan["maps"]] == [("@x", 16384, 16 * 16384)]' "$WEIR"
