# SPDX-License-Identifier: MIT
# The recorder is killed, the disk is full, the machine of children is large: the data stays.
# weir-test: alone: looks for what a killed recorder leaves
# weir-test: once: takes long; shares.sh and plugins.sh record with sanitizers
. "$ROOT/tests/lib.sh"
export split=split_$$ # a name of its own, for pkill
gcc -O2 -o $split "$ROOT/tests/workloads/split.c" -lpthread || exit 1

"$WEIR" record -q -o killed.weir -- ./$split forever &
w=$!
sleep 3.3
kill -9 $w
wait $w 2>/dev/null
pkill -9 -f "./$split forever"
"$WEIR" report flat killed.weir --json >f.json 2>err.txt
equal "a trace whose recorder was killed is readable, with losses" 3 $?
n=$(json f.json "sum(r['samples'] for r in j['rows'])")
check "it holds all but the last second or so ($n samples)" test "$n" -gt 1000
check "its functions are named when it is read" test "$(json f.json "any(r['name']=='seventy' for r in j['rows'])")" = True
check "and the report says that it was cut" sh -c '"$WEIR" report loss killed.weir | grep -q "index"'

# A full disk: a file size limit stands for it, and a real small file system where root can mount.
(
	trap '' XFSZ
	ulimit -f 8
	"$WEIR" record -q -F 20000 -o small.weir -- ./$split split
) >out.txt 2>err.txt
rc=$?
check "a file that may not grow: a sentence" grep -q "'small.weir': " err.txt
equal "the command was not disturbed" "done split" "$(cat out.txt)"
check "and weir says it failed" test $rc -eq 1
"$WEIR" report flat small.weir >out.txt 2>err.txt
check "the trace is readable up to there" test $? -eq 3
if mkdir -p mnt && mount -t tmpfs -o size=24k tmpfs mnt 2>/dev/null; then
	"$WEIR" record -q -F 20000 -o mnt/t.weir -- ./$split split >out.txt 2>err.txt
	check "a full disk gives a sentence" grep -q "No space left on device" err.txt
	check "and the recording is not called complete" eval '! grep -q "is complete" err.txt'
	"$WEIR" report flat mnt/t.weir >out.txt 2>err.txt
	check "and a readable trace" test $? -eq 3
	umount mnt
else
	skip "a full disk: no permission to mount a tmpfs"
fi

n=1000
"$WEIR" record -q -o forks.weir -- ./$split forks $n >/dev/null
equal "a target that forks $n children is followed" 0 $?
"$WEIR" report summary forks.weir --json >f.json
"$WEIR" report threads forks.weir --json >t.json
equal "all $n children and their parent are known" $((n + 1)) "$(json t.json "len({(r['pid'], r['tid']) for r in j['rows']})")"
"$WEIR" report flat forks.weir --json >f.json
check "and their time is there" test "$(json f.json "[r['samples']>0 and r['cum']>0.2*j['total'] for r in j['rows'] if r['name']=='spin_child']==[True]")" = True
"$WEIR" record -q -o many.weir -- ./$split many $n >/dev/null
"$WEIR" report threads many.weir --json >t.json
equal "$n threads at the same time are known" $((n + 1)) "$(json t.json "len(j['rows'])")"
equal "nothing is lost on the way" 0 "$(json t.json "j['loss']['samples_lost']")"
