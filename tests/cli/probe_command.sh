# SPDX-License-Identifier: MIT
# weir probe as a command: where scripts come from, what ends a run, exit status, output, control.
# weir-test: tsan
. "$ROOT/tests/lib.sh"

cat >t.c <<'C'
#include <stdio.h>
__attribute__((noinline, noclone)) int target(int a, const char *s)
{
	__asm__ volatile("" : : "r"(s));
	return a + 1;
}
int main(int argc, char **argv)
{
	int r = 0;

	(void)argv;
	for (int i = 0; i < 3; i++)
		r += target(11 + i, "abc");
	printf("program %d\n", r);
	return argc > 1 ? 4 : 0;
}
C
gcc -g -O1 -o t64 t.c

# --- without privilege ---------------------------------------------------------------------------
fails "no script is wrong usage" 2 "no script" "$WEIR" probe
fails "a format that does not exist is wrong usage" 2 "neither text nor json" "$WEIR" probe -f xml 'begin { }'
fails "a process id that is none is wrong usage" 2 "not a list of process ids" "$WEIR" probe -p 1,x 'begin { }'
fails "an open quote in -c is wrong usage" 2 "quote is not closed" "$WEIR" probe -c "ls 'x" 'begin { }'
fails "a command that is not there is a sentence" 1 "'no-such-program': cannot run" \
	"$WEIR" probe -c no-such-program 'begin { }'
fails "a word that is neither file nor script is a sentence" 1 "neither a file nor a script" "$WEIR" probe nothing.wr
fails "a pattern of -l that matches nothing is a sentence" 1 "'b': no trace point matches" "$WEIR" probe -l begin b
"$WEIR" probe -o t.wprobe 'begin { printf("x\n"); }'
head -c 100 t.wprobe >cut.wprobe
fails "a stream that is cut off is a sentence" 1 "'cut.wprobe': trace stream: cut off" "$WEIR" probe cut.wprobe
fails "a stream takes no parameters" 2 "were compiled into it" "$WEIR" probe t.wprobe 1

"$WEIR" probe 'begin { foo; }' >out.txt 2>err.txt
equal "a script with an error gives status 1" 1 $?
check "an error of a script has its place and tag" grep -q '^-e:1:9: error: .*\[unknown-name\]$' err.txt
"$WEIR" probe -f json 'begin { foo; }' 2>err.txt
equal "messages are JSON with -f json" "-e 1 9 error unknown-name" "$(json err.txt \
	'" ".join(str(j[0][k]) for k in ("file", "line", "column", "severity", "tag"))')"

"$WEIR" probe --dry-run 'uprobe:./t64:target { @ = count(); }' >plan.txt
check "--dry-run says where a point is and what it costs" \
	grep -Eq '^  .*/t64: 64-bit, 1 site: 1 (emulated|single-stepped|at a 5-byte nop) ' plan.txt
"$WEIR" probe --dry-run -f json 'uprobe:./t64:target { @ = count(); }' >plan.json
equal "--dry-run as JSON has the site" "target 64" "$(json plan.json \
	'"%s %d" % (j["rows"][0]["files"][0]["sites"][0]["function"], j["rows"][0]["files"][0]["bits"])')"
"$WEIR" probe -l "uprobe:$PWD/t64:targ*" >list.txt
equal "-l lists what a pattern matches" "uprobe:$PWD/t64:target" "$(cat list.txt)"
fails "-l with nothing to list is a sentence" 1 "no trace point matches" "$WEIR" probe -l "uprobe:$PWD/t64:nothing*"
"$WEIR" probe --dump 'uprobe:./t64:target { @x[comm] = count(); }' >dump.txt
check "--dump has the script's lines" grep -qF -- '-e:1: uprobe:./t64:target { @x[comm] = count(); }' dump.txt
check "--dump has code with names of maps and helpers" grep -q ' r1 = map @x$' dump.txt

for unused in 'str(arg0)' 'usym(1)' 'kstr(arg0)' 'ntop(arg0)' 'buf(arg0, 4)' 'strftime("%H", nsecs)' func ustack; do
	"$WEIR" probe --dump "uprobe:./t64:target { $unused; }" >dump.txt 2>err.txt
	equal "a value that nobody uses is a warning: $unused" "0 1" "$? $(grep -c 'warning:' err.txt)"
done

# --- running --------------------------------------------------------------------------------------
if ! "$WEIR" probe -q 'begin { }' 2>why.txt; then
	skip "weir probe runs scripts: $(head -n 1 why.txt)"
	finish
fi

equal "the first word is the script" "hi" "$("$WEIR" probe -q 'begin { printf("hi\n"); }')"
echo 'begin { printf("%s\n", str($1)); }' >file.wr
equal "the first word is a script's file, the next a parameter" "par" "$("$WEIR" probe -q file.wr par)"
equal "a script comes from standard input" "par" "$("$WEIR" probe -q - par <file.wr)"
equal "several scripts run as one" "a b par" "$("$WEIR" probe -q -e 'begin { printf("a\n"); }' \
	-e 'begin { printf("b\n"); }' -i file.wr par | xargs)"
equal "a stream runs" "x" "$("$WEIR" probe -q t.wprobe)"
"$WEIR" probe -q -o p.wprobe file.wr kept
equal "parameters are compiled into a stream" "kept" "$("$WEIR" probe -q p.wprobe)"
"$WEIR" probe -q 'begin { exit(9); }'
equal "exit(N) is the exit status" 9 $?

"$WEIR" probe -c './t64 x' 'uprobe:./t64:target { printf("%d %s\n", arg0, str(arg1)); @n = count(); }' \
	>out.txt 2>err.txt
equal "a command is traced from its start, and its status is not ours" \
	"0 11 abc 12 abc 13 abc program 39 @n: 3" "$? $(grep -v program out.txt | grep -v @n | xargs) $(grep program out.txt) $(grep @n out.txt)"
equal "the number of probes goes to standard error" "Attached 1 probe" "$(cat err.txt)"
"$WEIR" probe -q -O output.txt -c ./t64 'uprobe:./t64:target { printf("%d\n", arg0); }' >out.txt
equal "-O takes what is printed, and the command keeps its own" "11 12 13 program 39" \
	"$(xargs <output.txt) $(cat out.txt)"
equal "only the command is traced" "" \
	"$("$WEIR" probe -q -c true 'interval:ms:1 { @ = count(); } syscall:*:entry /comm != "true" && comm != "weir"/ { printf("%s\n", comm); }' | grep -v '^@')"

"$WEIR" probe -f json -c ./t64 'uprobe:./t64:target { printf("%d\n", arg0); @n[1] = count(); }' 2>/dev/null | grep '^{' >out.json
equal "records and maps are JSON lines" \
	'attached_probes printf printf printf map' \
	"$(python3 -c 'import json,sys; print(*[json.loads(l)["type"] for l in open("out.json")])')"

"$WEIR" probe -q -c ./t64 'uprobe:./t64:target { printf("%s\n", str(1)); }' >out.txt 2>err.txt
equal "failed reads give status 3" 3 $?
equal "failed reads are told with their clause" "weir: -e:1: clause 'uprobe:./t64:target': 3 failed reads" "$(cat err.txt)"
"$WEIR" probe -q -f json -c ./t64 'uprobe:./t64:target { printf("%s\n", str(1)); }' 2>/dev/null | grep loss >loss.json
equal "losses are a JSON line" "3 1" "$(json loss.json '"%d %d" % (j["data"]["failed_reads"], j["data"]["clause"])')"
timeout 120 "$WEIR" probe -q --strict -c 'sh -c "./t64; exec sleep 60"' 'uprobe:./t64:target { @[str(1)] = count(); }' >out.txt 2>err.txt
equal "--strict ends the run at a loss" "3 1" "$? $(grep -c 'strict: ended' err.txt)"

# began: waits until the run in the background has printed something into new.txt.
began() {
	until_line new.txt . $probe && return
	not_ok "what a run prints is seen while it goes on"
}

# --- what ends a run --------------------------------------------------------------------------------
timeout 120 "$WEIR" probe -q -d 0.1 'interval:s:60 { }'
equal "--duration ends a run" 0 $?
timeout 120 "$WEIR" probe -q -c 'sleep 60' 'interval:ms:10 { exit(); }'
equal "exit() ends a run, and the command gets a signal" 0 $?
timeout 120 "$WEIR" probe -q 'interval:ms:1 { printf("tick\n"); }' 2>err.txt | head -n 2 >out.txt
equal "a reader that has enough ends a run quietly" "141 tick tick " "${PIPESTATUS[0]} $(xargs <out.txt) $(cat err.txt)"
timeout 120 "$WEIR" probe -q 'begin { printf("x\n"); }' >/dev/full 2>err.txt
equal "output that cannot be written is a failure" "1 1" "$? $(grep -c 'No space left' err.txt)"
sleep 60 &
sleeper=$!
runs $sleeper
rm -f new.txt
"$WEIR" probe -q -p $sleeper 'begin { printf("begun\n"); } interval:s:60 { }' >new.txt &
probe=$!
began
kill $sleeper
wait $probe
equal "a run ends when the process of -p has ended" "0 begun" "$? $(cat new.txt)"
fails "a process that is not there is a sentence" 1 "process 4194999" "$WEIR" probe -p 4194999 'begin { }'

rm new.txt
"$WEIR" probe -q 'begin { printf("begun\n"); } interval:s:60 { } end { printf("ended\n"); }' >new.txt &
probe=$!
began
kill -TERM $probe
wait $probe
equal "SIGTERM ends a run with its end clauses" "0 begun ended" "$? $(xargs <new.txt)"

# --- control ------------------------------------------------------------------------------------------
# grows WORD: waits until there are 9 more of such lines in new.txt
grows() {
	local i n
	n=$(grep -c "$1" new.txt)
	for ((i = 0; i < 3000; i++)); do
		[ "$(grep -c "$1" new.txt)" -gt $((n + 8)) ] && return
		sleep 0.01
	done
}
rm -f new.txt new.err.txt
timeout 120 "$WEIR" probe -q --control fifo 'interval:ms:5 { printf("one\n"); } interval:ms:5 { printf("two\n"); }' >new.txt 2>new.err.txt &
probe=$!
began
printf 'disable 1\nsenseless\n' >fifo
until_line new.err.txt . $probe
grows two
before=$(grep -c one new.txt)
two=$(grep -c two new.txt)
grows two
equal "a clause that was disabled is silent" "$before" "$(grep -c one new.txt)"
check "the other clause goes on" [ "$(grep -c two new.txt)" -gt "$two" ]
echo 'enable 1' >fifo
grows one
check "a clause that was enabled again goes on" [ "$(grep -c one new.txt)" -gt "$before" ]
echo end >fifo
wait $probe
equal "'end' ends the run" 0 $?
equal "a line that is not understood is told" 1 "$(grep -c "'senseless' is none of" new.err.txt)"
check "the FIFO that was made is removed" [ ! -e fifo ]
equal "disable() takes the number of a clause from 1" "three" "$("$WEIR" probe -q -d 0.1 \
	'begin { disable(2); } interval:ms:5 { printf("two\n"); } interval:ms:5 { printf("three\n"); }' | sort -u)"
