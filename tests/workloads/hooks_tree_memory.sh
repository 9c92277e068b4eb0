# SPDX-License-Identifier: MIT
# The tree that the program keeps itself (--tree) is in memory that does not grow, readable while the program runs.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"
build busy busy.c -O2 || exit 1

seconds=3
rm -f progress
[ -z "${WEIR_SLOW:-}" ] || seconds=600
"$WEIR" record -q --no-sample --events '*' --tree -o t.weir -- ./busy progress $seconds 2 >out.txt 2>err.txt &
recorder=$!
for _ in $(seq 50); do target=$(pgrep -P $recorder -x busy) && [ -s progress ] && break; sleep 0.1; done
memory() { awk '/VmRSS/{print $2}' /proc/$target/status; }
sleep 0.7
rss1=$(memory) size1=$(stat -c %s t.weir 2>/dev/null || echo 0) own1=$(awk '/VmRSS/{print $2}' /proc/$recorder/status)
snapshot=$("$WEIR" record --snapshot $recorder 2>err.snapshot)
status=$?
sleep $((seconds - 2))
rss2=$(memory) size2=$(stat -c %s t.weir 2>/dev/null || echo 0) own2=$(awk '/VmRSS/{print $2}' /proc/$recorder/status)
check "the program's memory does not grow ($rss1 and $rss2 kB)" test $((rss2 - rss1)) -le 256
# The sanitizer keeps freed memory for a while.
check "nor does the recorder's ($own1 and $own2 kB)" test $((own2 - own1)) -le $((WEIR_SAN ? 16384 : 1024))
check "nor does the trace ($size1 and $size2 bytes)" test $((size2 - size1)) -le 65536
if [ $status -eq 0 ] && [ -s "$snapshot" ]; then
	cp "$snapshot" snapshot.weir
	calls=$(totals snapshot.weir | awk '$1=="step"{print $2}')
	check "a snapshot has what was called so far (${calls:-none} calls of step)" test "${calls:-0}" -gt 1000
else
	not_ok "a snapshot can be made while it runs (status $status: $(head -n 1 err.snapshot))"
fi
wait $recorder
equal "the program has worked" "wrong 0" "$(cut -d, -f1 out.txt)"
steps=$(od -A n -t u8 -w8 -v progress | awk '{s+=$1} END {print s}')
equal "its steps are all in the tree" "step $steps" "$(totals t.weir | grep '^step ')"
