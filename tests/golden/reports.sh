#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every kind of report and every option over four small traces, compared with reports/NAME.txt.
# UPDATE=1 rewrites the expected files; look at the difference before keeping it.
. "$ROOT/tests/lib.sh"
golden=$ROOT/tests/golden

"$WEIR" import events "$golden/events.txt" -o events.weir || not_ok "imports the events"
sed 's/^/12: /' "$golden/samples.txt" | sed 's/^12: #/#/' >two.txt
printf '34: main spin\n34: main\n' >>two.txt
"$WEIR" import samples two.txt -o samples.weir || not_ok "imports the samples"
"$WEIR" import events "$golden/merged.txt" -o merged.weir || not_ok "imports events with samples"
"$WEIR" import events "$golden/kept.txt" -o kept.weir || not_ok "imports a kept tree"

# report NAME STATUS ARGUMENTS...
report() {
	local name=$1 status=$2 rc
	shift 2
	"$WEIR" report "$@" >out.txt 2>err.txt
	rc=$?
	[ -z "${UPDATE:-}" ] || cp out.txt "$golden/reports/$name.txt"
	if [ $rc -eq "$status" ] && [ ! -s err.txt ] && cmp -s out.txt "$golden/reports/$name.txt"; then
		ok "weir report $*"
	else
		not_ok "weir report $*: status $rc"
		cat err.txt
		diff "$golden/reports/$name.txt" out.txt | head -n 20
	fi
}
for t in events samples merged; do
	for kind in summary flat tree arcs samples threads modules loss; do
		report $t.$kind 0 $kind $t.weir
		report $t.$kind.json 0 $kind $t.weir --json
		python3 -m json.tool "$golden/reports/$t.$kind.json.txt" >/dev/null || not_ok "$t.$kind.json is JSON"
	done
done
report merged.hooks 0 hooks merged.weir
report merged.hooks.json 0 hooks merged.weir --json
report merged.hooks.sort 0 hooks merged.weir --sort function --limit 3 --filter '^[^f]'
report merged.flat.bytes 0 flat merged.weir --metric bytes
report merged.flat.calls 0 flat merged.weir --metric calls
report merged.flat.samples 0 flat merged.weir --metric samples
report merged.flat.elapsed 0 flat merged.weir --elapsed
report merged.tree.elapsed 0 tree merged.weir --elapsed --percent
report merged.tree.wall 0 tree merged.weir --metric wall
report merged.arcs.human 0 arcs merged.weir --human --thread 7
report kept.tree 0 tree kept.weir --elapsed
report kept.tree.json 0 tree kept.weir --json
report kept.summary 0 summary kept.weir
report kept.tree.time 0 tree kept.weir --metric time
report flat.sort.base 0 flat events.weir --sort base
report flat.sort.name.limit 0 flat events.weir --sort name --limit 2
report flat.filter 0 flat events.weir --filter '^[AX]$'
report flat.percent 0 flat events.weir --percent
report flat.human 0 flat events.weir --human
report flat.color 0 flat events.weir --color
report flat.calls 0 flat events.weir --metric calls
report flat.thread 0 flat samples.weir --thread 34
report flat.window 0 flat events.weir --from 9 --to 14
report tree.sort 0 tree events.weir --sort cum
report tree.filter 0 tree events.weir --filter X
report tree.limit 0 tree events.weir --limit 4
report tree.percent 0 tree samples.weir --percent
report arcs.filter 0 arcs events.weir --filter '^B$'
report arcs.filter.json 0 arcs events.weir --filter '^B$' --json
report samples.filter 0 samples samples.weir --filter spin
report threads.sort 0 threads samples.weir --sort tid --limit 1
report flat.window.json 0 flat --json events.weir --to=5

cp events.weir trace.weir
equal "the default is the summary of trace.weir" "$("$WEIR" report summary trace.weir)" "$("$WEIR" report)"
equal "a trace alone gets its summary" "$("$WEIR" report summary events.weir)" "$("$WEIR" report events.weir)"

fails "an unknown metric is a failure" 1 "has no metric 'cycles' \(it has: time\)" "$WEIR" report flat events.weir --metric cycles
fails "an unknown thread is a failure" 1 "has no thread '99'" "$WEIR" report flat events.weir --thread 99
fails "a column that the kind does not have is wrong usage" 2 "has no column 'depth'" "$WEIR" report flat events.weir --sort depth
fails "a report without an order of its own cannot be sorted" 2 "loss cannot be sorted" "$WEIR" report loss events.weir --sort base
fails "a time that is none is wrong usage" 2 "'soon' is not a time" "$WEIR" report flat events.weir --from soon
fails "a bad expression is wrong usage" 2 "is not a regular expression" "$WEIR" report flat events.weir --filter '('
fails "two traces are wrong usage" 2 "report" "$WEIR" report flat events.weir samples.weir
fails "a trace that is not there is a failure" 1 "^weir: 'none.weir'" "$WEIR" report flat none.weir
for kind in hooks steps branches mix; do
	fails "$kind says that nothing of the kind was recorded" 1 "^weir: 'events.weir': has no .*nothing of that kind was recorded" \
		"$WEIR" report $kind events.weir
done
fails "coverage says that nothing was counted" 1 "^weir: 'events.weir': has no counts of blocks" "$WEIR" report coverage events.weir
fails "source of a function says the same" 1 "has no source lines" "$WEIR" report source main events.weir

head -c $(($(stat -c %s events.weir) - 10)) events.weir >cut.weir
"$WEIR" report flat cut.weir >cut.txt 2>cut.err
equal "a trace that was cut is reported with status 3" 3 $?
check "what was before the cut is all there" cmp -s cut.txt "$golden/reports/events.flat.txt"
"$WEIR" report summary cut.weir | grep -q '^Data was lost'
equal "its summary says so" 0 $?
# Every kind says it: by a line on stderr where its text does not, and in JSON by a field.
for kind in flat tree arcs samples threads modules loss; do
	"$WEIR" report $kind cut.weir >cut.txt 2>cut.err
	equal "$kind of it has status 3" 3 $?
	if [ $kind = loss ]; then
		check "loss says why in its rows" grep -q 'the end of the file is damaged' cut.txt
		equal "and on stderr nothing more" "" "$(cat cut.err)"
	else
		equal "$kind says in one line that data is missing" \
			"weir: 'cut.weir': its end is missing, or a part cannot be read: this is what is there ('weir report loss' says why)" "$(cat cut.err)"
	fi
	"$WEIR" report $kind cut.weir --json >cut.json 2>cut.err
	equal "$kind in JSON has it as a field, and stderr is left alone" "True " "$(json cut.json 'j["loss"]["cut"]') $(cat cut.err)"
	equal "a whole trace is silent ($kind)" "" "$("$WEIR" report $kind events.weir 2>&1 >/dev/null)"
done
"$WEIR" export folded cut.weir >cut.txt 2>cut.err
equal "an export says it, too" "3 1" "$? $(grep -c "^weir: 'cut.weir': its end is missing" cut.err)"
