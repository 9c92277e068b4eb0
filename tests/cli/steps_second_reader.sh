#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two readers of step records, one in C and one in Python written from docs/format/steps.md, must see
# the same: in a whole trace, from any step on, in one that was cut off, in one with a flipped bit.
# weir-test: patient
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/steps_dump
second=$ROOT/tests/format/read_steps.py

if ! command -v zstd >zstd.txt; then
	skip "both readers see the same steps: there is no zstd program"
	finish
fi

# both FILE [STEP]: prints "same" and leaves what they say in first.txt and second.txt.
both() {
	local a=0 b=0
	"$dump" dump "$@" >first.txt 2>first.err || a=$?
	python3 "$second" "$@" >second.txt 2>second.err || b=$?
	if [ $a -ne 0 ] || [ $b -ne 0 ]; then
		echo "status $a and $b: $(cat first.err second.err)"
	else
		cmp first.txt second.txt && echo same
	fi
}

check "a trace with steps is written" "$dump" write all.weir
equal "both readers see the same steps, marks and data in a whole trace" same "$(both all.weir)"
equal "the trace has threads, marks and data to compare" "3 11 6" \
	"$(grep -c ^thread first.txt) $(grep -c mark first.txt) $(grep -c data first.txt)"
equal "the threads have their steps" "12000 steps 12 steps 44 steps" \
	"$(awk '/^thread/ { printf "%s%s steps", n++ ? " " : "", $(NF - 1) }' first.txt)"
equal "accesses are where they were then" \
	"2 '/lib/libone.so' '' 1000 2 '/lib/libone.so' '' 1000 1 '/lib/libone.so' 'table' 18 nowhere" \
	"$(awk '$3 == "data" && $4 ~ /^[56]000$/ { print }' first.txt | sort -k4,4 -k1,1n | cut -d ' ' -f 8- | paste -s -d ' ')"
equal "overwritten code has its version of each generation" "0 c3 3 90 5 0f05" \
	"$(awk '$4 == "2000" && $3 ~ /^1/ { printf "%s%s %s", n++ ? " " : "", $6, $8 }' first.txt)"
check "a step goes round" grep -q '^0 20 1/0 1000 x300 0 [0-9]* f3a4$' first.txt
for step in 1 4 4999 5000 12000; do
	equal "both readers see the same from step $step on" same "$(both all.weir $step)"
done

python3 "$ROOT/tests/format/read_trace.py" --chunks all.weir >chunks.txt
check "some chunks are packed" awk '$3 < $4 { p++ } END { exit !p }' chunks.txt
read -r cut _ < <(awk '$2 == "RECORDS"' chunks.txt | tail -n 1)
size=$(stat -c %s all.weir)
for n in $((cut + 60)) $((size - 1)); do
	head -c "$n" all.weir >cut.weir
	equal "both readers see the same in the first bytes of a trace that is cut at $n" same "$(both cut.weir)"
	check "steps are there" grep -q '^0 1000 7/0 4000 x1 0 [0-9]* b801020304$' first.txt
done

read -r middle _ < <(awk '$2 == "RECORDS" && $4 > 4000' chunks.txt | sed -n 2p)
python3 - $((middle + 60)) <<'END'
import sys
data = bytearray(open("all.weir", "rb").read())
data[int(sys.argv[1])] ^= 0x10
open("flip.weir", "wb").write(data)
END
both flip.weir >differ.txt
equal "both readers see the same steps where a bit of a chunk is flipped" \
	"$(md5sum <second.txt)" "$(grep -v '^damage' first.txt | md5sum)"
equal "such a bit costs 5000 steps" 7000 "$(grep -c ' 7/0 ' first.txt)"
check "and the first reader says so" grep -q 'check sum is wrong' first.err
