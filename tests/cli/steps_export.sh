# SPDX-License-Identifier: MIT
# Executed instructions in the forms of others: as text, as a stream and back. The second reader
# (tests/format/read_step_stream.py) and the reader printed in docs/format/step-stream.md say the same.
. "$ROOT/tests/lib.sh"
reader() { python3 "$ROOT/tests/format/read_step_stream.py" "$@"; }
corpus=$ROOT/tests/fuzz/corpus/step_stream

# What the text has that the stream has, too: no places, no disassembly, marks without words.
told() { awk -F '\t' -v OFS='\t' '$3 ~ /^0x/ { print $1, $2, $3, $4, (NF > 6 ? $7 : 1); next }
	$3 ~ /^(read|write|modify)$/ { print $1, $2, $3, $4, $5, $6; next }
	$3 == "mark" { print $1, $2, "mark"; next } { print }'; }
# Names of variables are not in a stream, and not found again.
without_variables() { awk -F '\t' -v OFS='\t' '$3 ~ /^(read|write|modify)$/ { $7 = "-" } { print }'; }
without_words() { awk -F '\t' -v OFS='\t' '$3 == "mark" { print $1, $2, "mark"; next } { print }'; }

# turns NAME: the trace as text and stream, the stream as trace, and that again as stream.
turns() {
	"$WEIR" export steps "$1.weir" -o "$1.txt"
	equal "$1: the text is exported" 0 $?
	"$WEIR" export step-stream "$1.weir" -o "$1.stream"
	equal "$1: the stream is exported" 0 $?
	equal "$1: the second reader finds in the stream what the text has" \
		"$(told <"$1.txt")" "$(reader "$1.stream" | without_words)"
	"$WEIR" import step-stream "$1.stream" -o "$1-again.weir"
	equal "$1: the stream is imported" 0 $?
	"$WEIR" export step-stream "$1-again.weir" -o - >"$1-again.stream"
	check "$1: a stream that was imported is exported byte for byte" cmp "$1.stream" "$1-again.stream"
	"$WEIR" export steps "$1-again.weir" >"$1-again.txt"
	equal "$1: names are found again by the images" "$(without_variables <"$1.txt")" "$(cat "$1-again.txt")"
	"$WEIR" import step-stream - -o "$1-piped.weir" <"$1.stream"
	check "$1: a stream from standard input gives the same trace" cmp "$1-again.weir" "$1-piped.weir"
}

# Without a recording, too.
for name in all overwritten; do
	"$WEIR" import step-stream "$corpus/$name" -o "$name.weir"
	turns $name
done
equal "code that is overwritten is shown as it was" "90 cc 90 cc cc 90 cc" \
	"$(cut -f 4 overwritten.txt | tr '\n' ' ' | sed 's/ $//')"

gcc -nostdlib -static -o exact "$ROOT/tests/fixtures/steps/exact.S"
if timeout 20 "$WEIR" steps -q --data -o exact.weir -- ./exact 2>steps.err; [ $? -eq 3 ]; then
	turns exact
	equal "the program executes 104 instructions" 104 "$(grep -c $'^[0-9]*\t[0-9]*\t0x' exact.txt)"
	equal "steps are numbered from 0" "$(seq 0 103)" "$(awk -F '\t' '$3 ~ /^0x/ { print $2 }' exact.txt)"
	equal "a line has address, bytes, place and instruction" 1 \
		"$(grep -cP '^\d+\t0\t0x[0-9a-f]+\tbb0a000000\texact\(_start\+0x0\)\tmov \$0x0a, %ebx$' exact.txt)"
	equal "each call writes its return address" 30 "$(grep -cP '\twrite\t0x[0-9a-f]+\t8\t[0-9a-f]{16}\t\[stack\]$' exact.txt)"
	equal "each return reads one" 30 "$(grep -cP '\tread\t0x[0-9a-f]+\t8\t[0-9a-f]{16}\t\[stack\]$' exact.txt)"
	check "marks are lines" grep -qP '^\d+\t0\tmark\texecutes /.*exact$' exact.txt
	sed -n '/^```c$/,/^```$/p' "$ROOT/docs/format/step-stream.md" | grep -v '^```' >reader.c
	if gcc -Wall -o reader reader.c; then ok "the reader of the document compiles"; else
		not_ok "the reader of the document compiles"
	fi
	equal "the reader of the document counts as the text does" \
		"$(awk -F '\t' '$3 ~ /^0x/ && NF >= 6 { n[$3]++ } END { for (a in n) print a, n[a] }' exact.txt | sort)" \
		"$(./reader <exact.stream | sed 's/^0*/0x/' | sort)"
	equal "a cut stream is not counted" 1 "$(head -c -8 exact.stream | ./reader >/dev/null; echo $?)"
	"$WEIR" export steps exact.weir --thread exact >one.txt
	equal "a thread by its name" "$(cat exact.txt)" "$(cat one.txt)"
	for kind in flat arcs; do
		"$WEIR" report $kind exact.weir --json >recorded.json
		"$WEIR" report $kind exact-again.weir --json >imported.json
		equal "report $kind says the same of an imported stream" "$(json recorded.json 'j["total"], j["rows"]')" \
			"$(json imported.json 'j["total"], j["rows"]')"
	done
	size=$(stat -c %s exact.weir)
	head -c $((size - 20)) exact.weir >cut.weir
	"$WEIR" export steps cut.weir >cut.txt
	equal "the steps of a trace without its end are exported, with status 3" "3 104" \
		"$? $(grep -c $'^[0-9]*\t[0-9]*\t0x' cut.txt)"
	fails "a full device is told" 1 'cannot write' "$WEIR" export step-stream exact.weir -o /dev/full
else
	skip "exports of a recording: weir steps does not work here: $(head -n 1 steps.err)"
fi

fails "a thread that is not there" 1 "has no thread 'nobody'" "$WEIR" export steps all.weir --thread nobody
fails "nothing is written then" 1 "has no thread 'nobody'" \
	"$WEIR" export step-stream all.weir --thread nobody -o nobody.stream
check "no half-written stream is left" [ ! -e nobody.stream ]
echo 'main work' | "$WEIR" import samples - -o samples.weir
fails "a trace of something else" 1 'has no steps' "$WEIR" export step-stream samples.weir -o none.stream
fails "a file that is no stream" 1 "'samples.weir': is not a step stream" \
	"$WEIR" import step-stream samples.weir -o none.weir
check "no trace is left of what is no stream" [ ! -e none.weir ]

# Changed copies: both readers accept them or both refuse them.
n=${WEIR_SLOW:+2000}
n=${n:-80}
mkdir changed
reader --changes "$corpus/all" "$n" changed >theirs.txt
for ((i = 0; i < n; i++)); do
	"$WEIR" import step-stream "changed/$i" -o changed.weir 2>err.txt
	case $? in 0) echo "$i accepted" ;; 1) echo "$i refused" ;; *) echo "$i $(cat err.txt)" ;; esac
done >ours.txt
check "some changed streams are accepted and some refused" \
	[ "$(cut -d ' ' -f 2 theirs.txt | sort -u | wc -l)" -eq 2 ]
equal "both readers accept and refuse the same changed streams" "$(cat theirs.txt)" "$(cat ours.txt)"
