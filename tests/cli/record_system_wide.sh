# SPDX-License-Identifier: MIT
# Recording of all processes.
# weir-test: alone: samples have to be as many as the time says
. "$ROOT/tests/lib.sh"
export split=split_$$
gcc -O2 -o $split "$ROOT/tests/workloads/split.c" -lpthread || exit 1

if [ "$(id -u)" = 0 ] || [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 0 ]; then
	./$split forever &
	pid=$!
	"$WEIR" record -q -a --duration 0.6 -o all.weir
	rc=$? # 3: done, but with losses, is possible for a recorder slowed by sanitizers
	check "system-wide recording works (status $rc)" test $rc -eq 0 -o "$WEIR_SAN$rc" = 13
	kill -9 $pid
	"$WEIR" report threads all.weir --json >t.json
	check "it sees the busy process" test "$(json t.json "any(r['pid']==$pid and r['samples']>50 for r in j['rows'])")" = True
else
	skip "system-wide recording works: not permitted here"
fi
