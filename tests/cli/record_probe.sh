# SPDX-License-Identifier: MIT
# record --probe: a script runs beside the recording; its lines and maps are in the trace.
# weir-test: tsan
. "$ROOT/tests/lib.sh"
if ! "$WEIR" probe -q 'begin { exit(); }' >probe.txt 2>&1; then
	skip "scripts run beside a recording: $(head -n 1 probe.txt)"
	finish
fi
cat >prog.c <<'C'
#include <stdio.h>
#include <unistd.h>
volatile unsigned long n;
__attribute__((noinline, noclone)) int step(int k, const char *s)
{
	for (int i = 0; i < 20000000; i++) n++;
	return k + s[0];
}
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 3; i++) sum += step(i, "word");
	printf("%d\n", sum);
	return 5;
}
C
gcc -O1 -g -o prog prog.c || exit 1
cat >lines.wr <<'W'
uprobe:./prog:step { printf("step %d %s\n", arg0, str(arg1)); @calls = count(); }
W
cat >maps.wr <<'W'
uretprobe:./prog:step { @results[retval - 119] = count(); }
begin { printf("begun\n"); }
W

out=$("$WEIR" record -q --probe lines.wr --probe maps.wr -- ./prog)
equal "the command's status and output are its own" "5 360" "$? $out"
"$WEIR" report probes >text.txt
equal "lines are in order, with both scripts' maps behind them" \
	$'begun\nstep 0 word\nstep 1 word\nstep 2 word\n@calls: 3\n@results[0]: 1\n@results[1]: 1\n@results[2]: 1' \
	"$(sed '1d; s/^ *[0-9]* *[0-9]* *[0-9]*  \([a-z]\)/\1/; /^$/d' text.txt)"
"$WEIR" report probes --json >probes.json
equal "JSON has lines with times and threads, and maps with their JSON" \
	"True True 4 ['@calls', '@results'] 3" \
	"$(json probes.json '(lambda l, m: " ".join(map(str, [
		all(a["time"] <= b["time"] for a, b in zip(l, l[1:])), all(r["pid"] == r["tid"] for r in l[1:]), len(l),
		sorted(r["name"] for r in m), json.loads([r for r in m if r["name"] == "@calls"][0]["json"])["data"]["@calls"]])))(
		[r for r in j["rows"] if r["kind"] == "line"], [r for r in j["rows"] if r["kind"] == "map"])')"
"$WEIR" report samples --json >samples.json
equal "the lines stand among the samples, by time" "True 4 True" \
	"$(json samples.json '" ".join(map(str, [all(a["time"] <= b["time"] for a, b in zip(j["rows"], j["rows"][1:])),
		sum(r["kind"] == "script" for r in j["rows"]), sum(r["kind"] == "sample" for r in j["rows"]) > 10]))')"
"$WEIR" report samples | grep -q '  script  step 1 word$' && ok "as text, too" || not_ok "as text, too"
equal "--limit and --filter are about lines" "1" "$("$WEIR" report probes --filter 'step' --limit 1 | grep -c step)"
equal "nothing unknown is in the trace" 0 "$("$WEIR" report loss --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["loss"]["records_unknown"])')"
"$WEIR" report >summary.txt
equal "the summary is as ever" 0 $?

echo 'uprobe:./prog:step { printf("%s\n", str(0)); }' >bad_read.wr
"$WEIR" record -o loss.weir --probe bad_read.wr -- ./prog >/dev/null 2>err.txt
equal "the status is the command's even then" 5 $?
check "losses of the script are said" grep -q 'the script lost something' err.txt
"$WEIR" report loss loss.weir >loss.txt
check "and counted in the trace" grep -q '3  script: memory could not be read' loss.txt

echo 'uprobe:./prog:nosuch { @ = count(); }' >wrong.wr
"$WEIR" record -o wrong.weir --probe wrong.wr -- ./prog >out.txt 2>err.txt
equal "a wrong script: the command does not run" "1 0" "$? $(wc -c <out.txt | tr -d ' ')"
check "and the message has its place" grep -q '^wrong.wr:1:1: error: .*no-symbol' err.txt
check "and no trace is left" test ! -e wrong.weir
fails "a script that is not there" 1 "nosuch.wr" "$WEIR" record --probe nosuch.wr -- ./prog
"$WEIR" record -q -o plain.weir -- ./prog >/dev/null
check "a trace without scripts says so" grep -q 'No script ran' <("$WEIR" report probes plain.weir)
