#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Exports as other tools read them: self, total, sums, calls and their times of every function are those of
# weir's report, for traces of every kind. tests/judges/judge_export.py has who judges what.
# weir-test: long
. "$ROOT/tests/lib.sh"

# record NAME ARGUMENTS...: NAME.weir, or nothing with the reason in err.txt.
record() { "$WEIR" record -q -o "$1.weir" "${@:2}" >"$1.out" 2>err.txt; }

# judged TRACE WORD FORMAT...: the exports of a trace that is a WORD.
judged() {
	local trace=$1 word=$2 format metric calls file said rc
	shift 2
	[ -e "$trace.weir" ] || { skip "$word: $(head -n 1 err.txt)" && return; }
	calls=()
	"$WEIR" report flat --json --metric samples "$trace.weir" >"$trace.samples.json" 2>/dev/null
	[ -s "$trace.samples.json" ] || rm "$trace.samples.json"
	"$WEIR" report flat --json "$trace.weir" >"$trace.flat.json" 2>/dev/null
	"$WEIR" report flat --json --metric wall --uncorrected "$trace.weir" >"$trace.wall.json" 2>/dev/null
	if [ -s "$trace.wall.json" ] && [ "$(json "$trace.wall.json" 'any(r["calls"] for r in j["rows"])')" = True ]; then
		calls=("$trace.wall.json")
	fi
	for format in "$@"; do
		metric=() file=$trace.flat.json
		case $format in
		folded | perfetto) [ ! -e "$trace.samples.json" ] || file=$trace.samples.json ;;
		*) [ ${#calls[@]} -eq 0 ] || metric=(--metric samples) file=$trace.samples.json ;;
		esac
		[ "$format" = pprof ] && metric=()
		"$WEIR" export "$format" "${metric[@]}" -o "$trace.$format.speedscope.json" "$trace.weir" 2>export.err
		rc=$?
		[ $rc = 0 ] || [ $rc = 3 ] || { not_ok "$word: $format: status $rc: $(cat export.err)" && continue; }
		said=$(python3 -B "$ROOT/tests/judges/judge_export.py" "$format" "$trace.$format.speedscope.json" "$file" \
			$([ "$format" = otlp ] || echo "${calls[@]}") 2>&1)
		case $? in
		0) ok "$word: $format is read as it is reported (${said#same: })" ;;
		77) skip "$word: $format is read as it is reported: $said" ;;
		*) not_ok "$word: $format is read as it is reported" && echo "$said" ;;
		esac
	done
}

all=(folded pprof firefox speedscope perfetto chrome otlp)
record perl -- perl -e '$h{$_ % 9973} .= join ",", sort map { $_ ^ 5 } 1..9 for 1..60000'
judged perl "a recording of perl" "${all[@]}"

cat >tree.c <<'END'
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) double leaf(double x) { for (int i = 0; i < 20000; i++) x = x * 0.5 + i; return x; }
__attribute__((noinline)) double again(int n, double x) { return n ? again(n - 1, leaf(x)) + 1 : x; }
static void *work(void *name)
{
	double x = 0;
	prctl(PR_SET_NAME, name);
	for (int i = 0; i < 400; i++) x += again(i % 5, x);
	return x > 1e300 ? name : 0;
}
int main(int argc, char **argv)
{
	pthread_t t;
	int pid;
	while (argc > 1) work(argv[1]);
	pid = fork();
	pthread_create(&t, 0, work, "second");
	work("first");
	pthread_join(t, 0);
	if (pid) wait(0);
	return 0;
}
END
gcc -O1 -g -fno-inline -fno-optimize-sibling-calls -o tree tree.c -lpthread || not_ok "builds the program"
record threads -- ./tree
judged threads "two processes of two threads" pprof firefox speedscope perfetto chrome otlp
# The program is the first mapping: what most samples come from.
if command -v go >/dev/null; then
	main_of() { HOME=$PWD PPROF_TMPDIR=$PWD go tool pprof -top "$1" 2>/dev/null | head -n 1; }
	record children -- sh -c 'gzip -c "$1" >out.gz; ./tree' sh tree.c
	./tree endless &
	endless=$!
	runs $endless
	record attached --duration 0.2 -p $endless
	kill $endless
	wait $endless 2>/dev/null
	for trace in perl:perl threads:tree children:tree attached:tree; do
		[ -e "${trace%:*}.weir" ] || { skip "pprof names the program of ${trace%:*}: $(head -n 1 err.txt)" && continue; }
		"$WEIR" export pprof "${trace%:*}.weir" -o main.pb.gz 2>export.err
		equal "pprof names the program of ${trace%:*}" "File: ${trace#*:}" "$(main_of main.pb.gz)"
	done
else
	skip "pprof names the program: go is not here (tools/deps check installs it)"
fi
record calls --functions 'leaf,again' -- ./tree
judged calls "calls of hooked functions" firefox speedscope perfetto chrome
record lost --functions leaf -- sh -c "ulimit -n 4; exec ./tree"
judged lost "a trace with losses" firefox speedscope perfetto chrome otlp
gcc -O1 -g -w -o coroutines "$ROOT/tests/fixtures/hooks/coroutines.c" -lpthread || not_ok "builds the coroutines"
record coroutines --functions 'body,step,inner,walk,yield_in,leaf' -- ./coroutines context
judged coroutines "calls on stacks of coroutines" firefox speedscope perfetto chrome
command -v java >/dev/null && record java -- java -XshowSettings:all -version
[ -e java.weir ] || echo "java is not here" >err.txt
judged java "a recording of a JVM" pprof firefox speedscope perfetto otlp
"$WEIR" count -q -o counts.weir -- gzip -c tree.c >out.gz 2>err.txt
judged counts "counts of a program" firefox speedscope otlp

python3 - <<'END'
names = [b"main;x", b'"quoted"\\', b"std::map<std::pair<int,char>,std::vector<std::string>>::operator[](int&&)",
         b"bad\xff\xfe\x80utf8", "schön→".encode(), b"x" * 20000, b"\x01\x7f", b"'%s&<>", b"{\"a\":1}"]
with open("odd.txt", "wb") as f:
    for i, name in enumerate(names):
        f.write((b"%d: main " % (i % 3 + 1) + b" ".join(names[:i]) + b" " + name + b"\n") * (i + 1))
END
"$WEIR" import samples odd.txt -o odd.weir
judged odd "odd names" firefox speedscope perfetto chrome otlp
: >empty.txt
"$WEIR" import samples empty.txt -o empty.weir
judged empty "an empty trace" firefox speedscope perfetto chrome otlp
"$WEIR" import events "$ROOT/tests/golden/events.txt" -o golden.weir
"$WEIR" export chrome golden.weir -o golden.chrome 2>/dev/null
"$WEIR" export perfetto golden.weir -o golden.perfetto 2>/dev/null
equal "golden events: perfetto has each call with its time" \
	"{'B': [5, 13], 'A': [3, 14], 'X': [1, 1], 'C': [1, 19]}" \
	"$(python3 -B "$ROOT/tests/format/read_perfetto.py" golden.perfetto >golden.json && json golden.json 'j["calls"]')"
