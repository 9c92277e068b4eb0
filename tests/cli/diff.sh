# SPDX-License-Identifier: MIT
# weir diff: cases computed by hand, exact counts of two builds, several runs, names, limits, and what is refused.
. "$ROOT/tests/lib.sh"

# stacks N STACK: N samples of it.
stacks() { yes "$2" | head -n "$1"; }
# row FILE NAME EXPRESSION: of the row of this name, as `r`.
row() { json "$1" "[($3) for r in j['rows'] + [j['total']] if r and r['name'] == '$2']"; }

# ---- samples ----

{ stacks 100 'main parse' && stacks 200 'main eval' && stacks 30 'main old'; } >before.txt
{ stacks 100 'main parse' && stacks 400 'main eval' && stacks 30 'main new'; } >after.txt
"$WEIR" import samples before.txt -o before.weir && "$WEIR" import samples after.txt -o after.weir
"$WEIR" diff before.weir after.weir --noise 0 --json >diff.json 2>err.txt
equal "a diff of samples says nothing beside" "" "$(cat err.txt)"
equal "and which traces were compared" "[('before', 'before.weir', 330, 0), ('after', 'after.weir', 530, 0)]" \
	"$(json diff.json "[(t['side'], t['trace'], t['samples'], t['samples_lost']) for t in j['traces']]")"
equal "the total is that of all samples" "[(330, 530, 200, 'more')]" \
	"$(row diff.json total "r['before']['value'], r['after']['value'], r['difference'], r['verdict']")"
equal "what doubled is more" "[(200, 400, 200, 'more', True)]" \
	"$(row diff.json eval "r['before']['value'], r['after']['value'], r['difference'], r['verdict'], r['low'] > 0")"
# Exact Poisson limits of 100 are 81.364 and 121.627: +- hypot(18.636, 21.627). +-5 % is 5, and
# 200 / (5 / 1.95996)^2 = 30.73 times 530 samples are needed for that.
equal "of a hundred samples on both sides nothing can be said, and what would tell is said" \
	"[('cannot tell', 0, -28.55, 28.55, 16288)]" \
	"$(row diff.json parse "r['verdict'], r['difference'], round(r['low'], 2), round(r['high'], 2), r['needed_samples']")"
equal "what vanished is a row" "[('less', True, False, -30)]" \
	"$(row diff.json old "r['verdict'], r['before']['there'], r['after']['there'], r['difference']")"
equal "what is new is a row" "[('more', False, True, 30)]" \
	"$(row diff.json new "r['verdict'], r['before']['there'], r['after']['there'], r['difference']")"
equal "one row more than functions is the total" "4" "$(json diff.json "len(j['rows'])")"
"$WEIR" diff before.weir after.weir >out.txt 2>err.txt
check "that runs are assumed to differ is told" grep -q '^weir: note: one run a side does not show' err.txt
check "half as much again cannot be told of one run a side" grep -Eq '^cannot tell +330 +530 +\+200 ' out.txt
equal "stacks with two columns" "main;eval 200 400
main;new 0 30
main;old 30 0
main;parse 100 100" "$("$WEIR" diff --folded before.weir after.weir --noise 0 2>/dev/null | sort)"
"$WEIR" diff --folded before.weir before.weir 2>/dev/null | sed 's/ [0-9]*$//' >before.folded
"$WEIR" diff --folded after.weir after.weir 2>/dev/null | sed 's/ [0-9]*$//' >after.folded
"$WEIR" diff before.folded after.folded --noise 0 --json >folded.json 2>err.txt
equal "files of other tools are compared like traces" "$(json diff.json "[r['name'] + r['verdict'] for r in j['rows']]")" \
	"$(json folded.json "[r['name'] + r['verdict'] for r in j['rows']]")"
"$WEIR" diff --cum before.weir after.weir --noise 0 --json >cum.json
equal "with callees the caller has all" "[(330, 530)]" "$(row cum.json main "r['before']['value'], r['after']['value']")"
"$WEIR" diff --by image --noise 0 before.weir after.weir --json >image.json
equal "images" "[(330, 530)]" "$(row image.json '[no image]' "r['before']['value'], r['after']['value']")"
"$WEIR" diff --per sample --noise 0 before.weir after.weir --json >share.json
equal "figures per sample are shares, and say so" "('1/sample', 'sample', [0.303, 0.1887])" \
	"$(json share.json "j['metric']['unit'], j['per'], [round(r[s]['value'], 4) for r in j['rows'] if r['name'] == 'parse' for s in ('before', 'after')]")"
equal "rows are sorted, restricted and limited" "new old" \
	"$("$WEIR" diff --sort name --filter '^(old|new)$' --limit 2 --json before.weir after.weir 2>/dev/null >some.json && json some.json "' '.join(r['name'] for r in j['rows'])")"

printf '# callgrind format\nevents: Ir\nfl=a.c\nfn=f\n1 100\n2 50\nfn=g\n7 30\n' >callgrind.out.1
printf '# callgrind format\nevents: Ir\nfl=a.c\nfn=f\n1 101\n2 50\nfn=g\n7 30\n' >callgrind.out.2
"$WEIR" diff callgrind.out.1 callgrind.out.2 --json >callgrind.json 2>err.txt
equal "what callgrind counted is exact" "[('f', 150, 151, 'more', None), ('g', 30, 30, 'same', None)] " \
	"$(json callgrind.json "[(r['name'], r['before']['value'], r['after']['value'], r['verdict'], r['low']) for r in j['rows']]") $(cat err.txt)"
fails "what has no call paths is refused" 1 "has no call paths" "$WEIR" diff --cum callgrind.out.1 callgrind.out.2

# ---- another frequency: weights, not numbers of samples ----

{ for i in $(seq 400); do echo "$i sample=1 1: main"; done; } >often.txt
{ for i in $(seq 100); do echo "$i sample=4 1: main"; done; } >seldom.txt
if "$WEIR" import events often.txt -o often.weir 2>err.txt && "$WEIR" import events seldom.txt -o seldom.weir 2>err.txt; then
	"$WEIR" diff often.weir seldom.weir --noise 0 --json >weights.json
	equal "a quarter of the samples of four times the weight is no difference" "(400, 400, 400, 100, 'cannot tell')" \
		"$(json weights.json "tuple(j['total'][s]['value'] for s in ('before', 'after')) + tuple(j['total'][s]['samples'] for s in ('before', 'after')) + (j['total']['verdict'],)")"
else
	not_ok "samples with weights are imported: $(cat err.txt)"
fi

# ---- events: more calls and dearer calls ----

# calls N COST CALLER...: each caller calls f N times at this cost.
calls() {
	local time=0 n=$1 cost=$2 caller i
	shift 2
	for caller; do
		echo "$((time++)) enter $caller"
		for ((i = 0; i < n; i++)); do
			printf '%s enter f\n%s leave f\n' $time $((time += cost))
		done
		echo "$((++time)) leave $caller"
	done
}
calls 10 5 a >one.txt && calls 12 7 a b >two.txt
"$WEIR" import events one.txt -o one.weir && "$WEIR" import events two.txt -o two.weir
"$WEIR" diff one.weir two.weir --json >split.json 2>err.txt
# From a: 2 calls more at 5 are 10, 12 calls by 2 dearer are 24; b is new: all of its 84 is more calls.
equal "a difference is more calls and dearer calls" "[(50, 168, 118, 94, 24)]" \
	"$(row split.json f "r['before']['value'], r['after']['value'], r['difference'], r['more_calls'], r['dearer_calls']")"
equal "by caller" "[[('a', 10, 24), ('b', 84, 0)]]" \
	"$(row split.json f "[(c['name'], c['more_calls'], c['dearer_calls']) for c in r['callers']]")"
"$WEIR" diff one.weir two.weir --metric calls --json >calls.json
equal "calls are exact" "[(10, 24, 14, None, 'more', True)]" \
	"$(row calls.json f "r['before']['value'], r['after']['value'], r['difference'], r['low'], r['verdict'], r['exact']")"
equal "a table of exact differences, by caller" "$(cat <<'T'
Verdict  Before  After  Difference    95%-interval    Diff%  More-calls  Dearer-calls  Needs  Name
more         11     26         +15           exact  +136.36           .             .         total
more         10     24         +14           exact  +140.00         +14             0         f
             10     12          +2  10 -> 12 calls                   +2             0           from a
              0     12         +12   0 -> 12 calls                  +12             0           from b
more          0      1          +1           exact      new          +1             0         b
              0      1          +1    0 -> 1 calls                   +1             0           from (thread)
same          1      1           0           exact    +0.00           0             0         a
              1      1           0    1 -> 1 calls                    0             0           from (thread)
2 more, 0 less, 1 same, 0 cannot be told; 1 are new, 0 are gone
T
)" "$("$WEIR" diff --callers --metric calls one.weir two.weir)"
"$WEIR" diff one.weir two.weir --per call --json >percall.json 2>/dev/null
equal "figures per call, of calls that may cost this or that" "[(5, 7, 2, 'cannot tell')]" \
	"$(row percall.json f "r['before']['value'], r['after']['value'], r['difference'], r['verdict']")"
printf '0 enter a\n1 enter f\n11 leave f\n12 sample=20 1: a g\n13 sample=20 1: a g\n20 leave a\n' >both.txt
"$WEIR" import events both.txt -o merged.weir && "$WEIR" diff --by image merged.weir merged.weir --json >image.json 2>/dev/null
equal "an image has what samples say, where these are, of functions with events and without" "[40]" \
	"$(row image.json '[no image]' "r['before']['value']")"
fails "noise is for single runs" 2 "several runs show theirs" "$WEIR" diff --noise 5 a.weir b.weir -- c.weir

# ---- counts: exact, of two builds ----

cat >prog.c <<'C'
static __attribute__((noinline)) int cost(int n) {
	int sum = 0;
	for (volatile int i = 0; i < n; i++)
		sum += i;
	return sum;
}
static __attribute__((noinline)) int parse(void) {
	int sum = 0;
	for (int i = 0; i < 100; i++)
		sum += cost(STEPS);
	return sum;
}
static __attribute__((noinline)) int eval(void) {
	int sum = 0;
	for (int i = 0; i < CALLS; i++)
		sum += cost(STEPS);
	return sum;
}
int main(void) {
	return parse() + eval() == 7;
}
C
mkdir old new && gcc -O1 -g -DCALLS=10 -DSTEPS=50 -o old/prog prog.c && gcc -O1 -g -DCALLS=40 -DSTEPS=60 -o new/prog prog.c
if "$WEIR" count -q -o old.weir -- old/prog 2>err.txt && "$WEIR" count -q -o new.weir -- new/prog 2>err.txt; then
	"$WEIR" report flat --json old.weir >old.json && "$WEIR" report flat --json new.weir >new.json
	"$WEIR" diff old.weir new.weir --json >counts.json 2>err.txt
	equal "counts have no notes" "" "$(cat err.txt)"
	equal "counts differ exactly as reports say" "True" "$(python3 -SE - <<'P'
import json
def rows(file):
    return {(r["name"], (r["image"] or "").split("/")[-1]): r for r in json.load(open(file))["rows"]}
def total(file):
    return json.load(open(file))["total"]
flat, diff = [rows("old.json"), rows("new.json")], rows("counts.json")
old, new, row = flat[0]["cost", "prog"], flat[1]["cost", "prog"], diff["cost", "prog"]
each = [old["base"] / old["calls"], new["base"] / new["calls"]]
wrong = [n for n, r in diff.items()
         if r["difference"] != flat[1].get(n, {"base": 0})["base"] - flat[0].get(n, {"base": 0})["base"]]
print(not wrong and old["calls"] == 110 and new["calls"] == 140
      and row["difference"] == new["base"] - old["base"] and row["low"] is None and row["verdict"] == "more"
      and row["more_calls"] == 30 * each[0]
      and row["dearer_calls"] == 100 * (each[1] - each[0]) + 40 * (each[1] - each[0])
      and row["more_calls"] + row["dearer_calls"] == row["difference"]
      and sum(r["difference"] for r in diff.values()) == total("new.json") - total("old.json"))
P
)"
	"$WEIR" diff old.weir new.weir --by line --json >lines.json
	equal "the lines that changed are those of the source, exactly" "$(json counts.json "sum(r['difference'] for r in j['rows'])")" \
		"$(json lines.json "sum(r['difference'] for r in j['rows'])")"
	"$WEIR" diff old.weir old.weir --json >equal.json
	equal "the same counts are the same" "{'same'}" "$(json equal.json "set(r['verdict'] for r in j['rows'])")"
	"$WEIR" diff old.weir new.weir --fail-on +5% >out.txt 2>err.txt
	equal "a limit ends with status 4" 4 $?
	check "what is over a limit is said" grep -q '^weir: cost is surely over +5%$' err.txt
	"$WEIR" diff old.weir new.weir --fail-on cost:+60% --fail-on total:+20% >out.txt
	equal "a limit that is kept is none" 0 $?
	"$WEIR" diff old.weir new.weir --fail-on total:+5% >out.txt 2>err.txt
	equal "a limit on the total" 4 $?
else
	skip "counts of two builds are compared: $(head -n 1 err.txt)"
fi
fails "a limit on what is not there is a failure" 1 "no row is called 'nothing'" "$WEIR" diff one.weir two.weir --noise 0 --fail-on nothing:+5%

# ---- several runs ----

# make_runs PREFIX N...: a trace of each number of samples.
make_runs() {
	local prefix=$1 n i=0
	shift
	for n; do
		stacks "$n" main >run.txt && "$WEIR" import samples run.txt -o "$prefix$((++i)).weir"
	done
}
make_runs a 1000 1200 1400 1200 1200 && make_runs b 2000 2200 2400 2200 2200
"$WEIR" diff a?.weir -- b?.weir --json >out.txt 2>err.txt
equal "an option behind -- is a trace that is not there" 1 $?
"$WEIR" diff --json a?.weir -- b?.weir >runs.json 2>err.txt
equal "several runs need no assumption" "" "$(cat err.txt)"
# Means 1200 and 2200, variances 20000 each: +- 2.306 * sqrt(2 * 20000 / 5).
equal "several runs are compared by how they differ" "(1200, 2200, 'more', 794, 1206)" \
	"$(json runs.json "j['total']['before']['value'], j['total']['after']['value'], j['total']['verdict'], round(j['total']['low']), round(j['total']['high'])")"

# ---- names ----

{ stacks 50 'main scan read' && stacks 90 'main write'; } >before.txt
{ stacks 52 'main scan_all read' && stacks 90 'main write'; } >after.txt
"$WEIR" import samples before.txt -o names1.weir && "$WEIR" import samples after.txt -o names2.weir
"$WEIR" diff --cum names1.weir names2.weir --json >names.json 2>/dev/null
equal "a function with other name and the same callers and callees is proposed" "[('scan', 'scan_all', 2, 2)]" \
	"$(json names.json "[(r['old'], r['new'], r['common'], r['neighbours']) for r in j['renamed']]")"
equal "and not joined" "[(50, 0)]" "$(row names.json scan "r['before']['value'], r['after']['value']")"
printf '# names\nscan scan_all\n' >map.txt
"$WEIR" diff --cum --map map.txt names1.weir names2.weir --json >names.json 2>/dev/null
equal "a map joins both" "([(50, 52)], [])" "($(row names.json scan_all "r['before']['value'], r['after']['value']"), $(json names.json "j['renamed']"))"
printf 'scan scan_all\nonly\n' >bad.txt
fails "a bad map is refused with its line" 1 "^weir: 'bad.txt': there are not two names .* in line 2" "$WEIR" diff --map bad.txt names1.weir names2.weir

# ---- what is refused, and what is said ----

fails "another metric is refused" 1 "has no metric 'samples'|they are not compared" "$WEIR" diff before.weir one.weir
echo '# nothing' >empty.txt && "$WEIR" import samples empty.txt -o empty.weir
"$WEIR" diff --fail-on +5% --noise 0 before.weir empty.weir >out.txt 2>err.txt
equal "a side on which nothing was measured is told" "weir: note: 'empty.weir': has nothing of the metric samples" "$(cat err.txt)"
fails "one trace is wrong usage" 2 "needs two traces" "$WEIR" diff before.weir
fails "three traces without sides are wrong usage" 2 "need a -- between" "$WEIR" diff a.weir b.weir c.weir
fails "a side without traces is wrong usage" 2 "on both sides" "$WEIR" diff a.weir --
fails "a limit that is none is wrong usage" 2 "'5%' is none of" "$WEIR" diff one.weir two.weir --fail-on 5%
fails "a column that there is not" 2 "there is no column 'depth'" "$WEIR" diff one.weir two.weir --sort depth
fails "lines of events are refused" 1 "by function, not by line" "$WEIR" diff --by line one.weir two.weir
fails "a file that is no trace is refused" 1 "map.txt" "$WEIR" diff map.txt one.weir
"$WEIR" record -q -F 499 -o perl.weir -- perl -e '$x += $_ for 1..2e6' 2>err.txt
if [ -s perl.weir ]; then
	"$WEIR" record -q -F 1999 -o more.weir -- perl -e '$x += $_ for 1..4e6' 2>err.txt
	"$WEIR" diff perl.weir more.weir --json >recorded.json 2>err.txt
	"$WEIR" export pprof -o perl.pb.gz perl.weir && "$WEIR" export pprof -o more.pb.gz more.weir
	"$WEIR" diff --noise 0 --json perl.weir more.weir >native.json 2>out.txt
	"$WEIR" diff --noise 0 --json perl.pb.gz more.pb.gz >pprof.json 2>out.txt
	equal "sums of samples say the same as samples" "$(json native.json "j['rows']")" "$(json pprof.json "j['rows']")"
	check "another frequency is said" grep -q "sampled at 499 Hz, .* at 1999 Hz" err.txt
	check "other arguments are said" grep -q "had other arguments" err.txt
	equal "and both are in the notes" 3 "$(json recorded.json "len(j['notes'])")"
	check "twice the work is about twice the time, not eight times" \
		[ "$(json recorded.json "1 <= j['total']['after']['value'] / j['total']['before']['value'] <= 5")" = True ]
	"$WEIR" record -q -o sh.weir -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done' 2>err.txt
	fails "another program is refused" 1 "is of the program perl, 'sh.weir' of sh" "$WEIR" diff perl.weir sh.weir
	"$WEIR" diff --any-program perl.weir sh.weir >out.txt 2>err.txt
	equal "unless that is wanted" 0 $?
	"$WEIR" diff --html both.html perl.weir more.weir
	check "the page of weir view has both" grep -qi '<!doctype html' both.html
	head -c $(($(stat -c %s perl.weir) - 9)) perl.weir >cut.weir
	"$WEIR" diff cut.weir more.weir >out.txt 2>err.txt
	equal "a trace that is cut ends with status 3" 3 $?
	check "and is said" grep -q "'cut.weir': its end is missing" err.txt
else
	skip "recordings are compared: $(head -n 1 err.txt)"
fi
