# SPDX-License-Identifier: MIT
# On a terminal: a progress line, and Ctrl-C ends the recording, not the data.
# weir-test: alone: keys and progress lines come at certain times
. "$ROOT/tests/lib.sh"
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
equal "Ctrl-C ends the command by its signal" "signal 2" "$(on_terminal 1.5 "$WEIR" record -o a.weir -- ./split forever)"
check "a progress line was shown" grep -qE 'weir: [0-9.]+ s, [0-9]+ samples' shown.txt
"$WEIR" report flat a.weir --json >f.json
check "the data is kept" test "$(json f.json "sum(r['samples'] for r in j['rows']) > 50")" = True
equal "a command that ignores Ctrl-C is waited for, and its status is passed on" "exit 4" \
	"$(on_terminal 0.7 "$WEIR" record -o b.weir -- sh -c "trap '' INT; sleep 2; exit 4")"
check "the recording was complete before" grep -q "the recording is complete; 'sh' goes on running" shown.txt
./split forever &
pid=$!
equal "Ctrl-C ends an attached recording with status 0" "exit 0" \
	"$(on_terminal 1 "$WEIR" record -o c.weir -p $pid)"
check "the process goes on" kill -0 $pid
kill -9 $pid
"$WEIR" record -q -o d.weir -- true 2>quiet.txt
equal "-q says nothing" "" "$(cat quiet.txt)"
"$WEIR" record -o d.weir -- true 2>lines.txt
check "without a terminal there is no progress line" test "$(tr -cd '\r' <lines.txt | wc -c)" -eq 0
