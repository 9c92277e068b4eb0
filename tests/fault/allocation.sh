# SPDX-License-Identifier: MIT
# Every Nth allocation fails once: a sentence and status 1, or the command went through before.
. "$ROOT/tests/lib.sh"
printf '0 enter C\n1 enter A\n5 leave A\n9 leave C\n' >e.txt
"$WEIR" import events e.txt -o g.weir || exit 1
bad=0 failed=0
for n in $(seq 1 3 400); do
	WEIR_FAIL_ALLOC=$n "$WEIR" report tree g.weir >out.txt 2>err.txt
	rc=$?
	if [ $rc -eq 1 ] && grep -q 'out of memory' err.txt; then
		failed=$((failed + 1))
	elif [ $rc -ne 0 ]; then
		bad=$((bad + 1))
		echo "allocation $n: status $rc" && head -n 3 err.txt
	fi
done
equal "a failed allocation in a report is a sentence and status 1" 0 $bad
check "the injection reached the code ($failed failures)" test $failed -gt 5
bad=0 failed=0
for n in 1 5 20 50 100 200 400 800 1500 3000; do
	WEIR_FAIL_ALLOC=$n timeout 20 "$WEIR" record -q -o f.weir -- perl -e 'for (1..300000) { $s += $_ }' >out.txt 2>err.txt
	rc=$?
	if [ $rc -eq 1 ] && grep -q 'out of memory' err.txt; then
		failed=$((failed + 1))
	elif [ $rc -ne 0 ]; then
		bad=$((bad + 1))
		echo "allocation $n: status $rc" && head -n 3 err.txt
	fi
done
equal "a failed allocation while recording is a sentence and status 1" 0 $bad
check "the injection reached the recorder ($failed failures)" test $failed -gt 3
