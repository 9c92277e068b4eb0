# SPDX-License-Identifier: MIT
# Programs with many threads: all calls are counted, places of threads that have ended are used again, and what has no
# place is told: threads as threads, calls as calls. The judge is what the program itself has counted.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

# crowd NAME OPTIONS COMMAND...: records it; "CALLS MISSED THREADS" of the trace, and in `printed` what the program says.
crowd() {
	"$WEIR" record --no-sample $1 --events step -o t.weir -- "${@:2}" >out.txt 2>said.txt
	printed=$(cut -d' ' -f1 out.txt)
	"$WEIR" report flat t.weir --json >flat.json 2>err.txt
	"$WEIR" report loss t.weir --json >loss.json 2>err.txt
	status=$?
	calls=$(json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name']=='step')")
	missed=$(json loss.json "j['loss']['reasons'].get('call of a thread that was not recorded', 0)")
	events=$(json loss.json "j['loss']['events_lost']")
	threads=$(json loss.json "sum(n for k, n in j['loss']['reasons'].items() if k.startswith('thread not recorded, because $reason'))")
}
sizes=(crowd)
build crowd crowd.c -O2 || exit 1
build crowd32 crowd.c -O2 -m32 && sizes+=(crowd32) || skip "32-bit programs: gcc -m32 does not work here ($(head -n 1 build.txt))"

reason=
for program in ${sizes[@]}; do
	for option in "" --tree; do
		crowd "$option" ./$program 1300 20
		equal "$program $option: 1300 threads at the same time" "26000 26000 0 0" "$printed $calls $events $status"
		crowd "$option" ./$program 700 5 4
		equal "$program $option: 2800 threads, 700 at a time" "14000 14000 0 0" "$printed $calls $events $status"
	done
done

# More than there is place for; a 32-bit program has less.
most=8192
[ ${#sizes[@]} -eq 1 ] || { most=2048 && sizes=(crowd32); }
for option in "" --tree; do
	reason="too many"
	crowd "$option" ./${sizes[0]} $((most + 50)) 3
	# The first thread calls nothing. With trees of 1 MiB a 32-bit program may run out of memory before.
	[ "$option" ] || equal "threads beyond $most are told as threads" 50 "$threads"
	reason=
	equal "${sizes[0]} $option: what is not counted is said, by calls" \
		"$(((most + 50) * 3)) $missed 3" "$((calls + missed)) $events $status"
	check "and by the recorder, too" grep -q "weir: note: .* threads were not recorded, because .*: $missed of their calls are missing" said.txt
	check "and in the summary" sh -c "'$WEIR' report summary t.weir | grep -q ' x  thread not recorded, because '"
done

# A limit on the address space: the program has what it needs, and some threads are not recorded.
reason="its process had no"
crowd "" sh -c 'ulimit -v 300000; exec ./crowd 100 7'
equal "under ulimit -v the program works, and each call is counted or missed" "700 700 3" "$printed $((calls + missed)) $status"
check "threads without memory are told ($threads)" test "$threads" -gt 0 -a $((threads * 7)) -eq "$missed"
