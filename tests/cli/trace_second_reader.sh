#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two readers of the trace format, one in C and one in Python written from docs/format/trace.md,
# must see the same: in a whole file, in one that was cut off, in one with a flipped bit.
# weir-test: patient
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/trace_dump
second=$ROOT/tests/format/read_trace.py

if ! command -v zstd >zstd.txt; then
	skip "both readers see the same: there is no zstd program"
	finish
fi

# both FILE: prints "same", "both refuse it", or what differs.
both() {
	local a=0 b=0
	"$dump" dump "$1" >first.json 2>first.err || a=$?
	python3 "$second" "$1" >second.json 2>second.err || b=$?
	if [ $a -eq 1 ] && [ $b -eq 1 ] && [ -s first.err ] && [ -s second.err ]; then
		echo "both refuse it"
	elif [ $a -ne 0 ] || [ $b -ne 0 ]; then
		echo "status $a and $b: $(cat first.err second.err)"
	else
		python3 - <<-'END'
			import json
			a, b = (json.load(open(f)) for f in ("first.json", "second.json"))
			differ = [k for k in sorted({*a, *b}) if a.get(k) != b.get(k)]
			print("differ in " + ", ".join(differ) if differ else "same")
		END
	fi
}

# flip FILE OFFSET TO: a copy with one bit changed.
flip() {
	python3 - "$@" <<-'END'
		import sys
		data = bytearray(open(sys.argv[1], "rb").read())
		data[int(sys.argv[2])] ^= 0x10
		open(sys.argv[3], "wb").write(data)
	END
}

check "a trace with everything in it is written" "$dump" write all.weir
equal "both readers see the same in a whole trace" same "$(both all.weir)"
equal "the whole trace is not called recovered" False "$(json second.json "j['recovered']")"
equal "the trace has records, samples and symbols to compare" True \
	"$(json second.json "len(j['records']) > 60 and len(j['samples']) > 20 and len(j['symbols']) == 3")"
equal "the trace has facts, verdicts, function tables and an address index to compare" "[2, 2, 2, 5]" \
	"$(json second.json "[len(j[k]) for k in ('image_facts', 'matches', 'functions', 'addresses')]")"
equal "an inlined function appears below its caller in a sample's stack" "['main', 'inner', 'main']" \
	"$(json second.json "j['samples'][-1][3][:3]")"

size=$(stat -c %s all.weir)
python3 "$second" --chunks all.weir >chunks.txt
check "some chunks are packed and some are not" awk '{ $3 < $4 ? p++ : u++ } END { exit !(p && u) }' chunks.txt
read -r cut _ < <(awk '$2 == "RECORDS"' chunks.txt | sed -n 5p)
for n in 16 17 $((cut - 1)) "$cut" $((cut + 50)) $((size / 2)) $((size - 30)) $((size - 1)); do
	head -c "$n" all.weir >cut.weir
	equal "both readers see the same in the first $n of $size bytes" same "$(both cut.weir)"
	equal "the first $n bytes are called recovered" True "$(json first.json "j['recovered']")"
done
for n in 0 7 15; do
	head -c "$n" all.weir >cut.weir
	equal "both readers refuse the first $n bytes" "both refuse it" "$(both cut.weir)"
done

flip all.weir $((cut + 60)) flip.weir
equal "both readers see the same when a bit of a record chunk is flipped" same "$(both flip.weir)"
equal "such a bit costs one chunk" 1 "$(json first.json "j['damaged_chunks']")"
read -r functions _ < <(awk '$2 == "FUNCTIONS"' chunks.txt)
flip all.weir $((functions + 50)) flip.weir
equal "both readers see the same when a bit of a function table is flipped" same "$(both flip.weir)"
equal "such a bit costs the functions of one image" "[1, 1, 0]" \
	"$(json first.json "[j['damaged_functions'], len(j['functions']), j['damaged_chunks']]")"
for n in $((functions - 1)) "$functions" $((functions + 60)); do
	head -c "$n" all.weir >cut.weir
	equal "both readers see the same in a trace cut at byte $n, by its function tables" same "$(both cut.weir)"
done
# The second reader gives up at a damaged table. The first one goes on: what does it see otherwise?
other_parts() {
	"$dump" dump all.weir >whole.json && "$dump" dump flip.weir >rest.json || return
	python3 - <<-'END'
		import json
		a, b = (json.load(open(f)) for f in ("whole.json", "rest.json"))
		print(*[k for k in sorted({*a, *b}) if a.get(k) != b.get(k)])
	END
}
read -r rows _ < <(awk '$2 == "ADDRESSES"' chunks.txt)
flip all.weir $((rows + 50)) flip.weir
equal "a flipped bit in the address index costs that index alone" addresses "$(other_parts)"
equal "which then counts as none" "[]" "$(json rest.json "j['addresses']")"
read -r table _ < <(awk '$2 == "STACKS"' chunks.txt)
flip all.weir $((table + 49)) flip.weir
equal "a flipped bit in the stacks costs those stacks, and adds the frame that stands in for them" \
	"frames samples stacks strings" "$(other_parts)"
equal "a sample has its time, thread and weight as before" True "$(python3 -c '
import json
a, b = (json.load(open(f))["samples"] for f in ("whole.json", "rest.json"))
print([x[:3] + x[4:] for x in a] == [x[:3] + x[4:] for x in b] and a != b)')"
flip all.weir $((size - 20)) flip.weir
equal "both readers find everything by a scan when the trailer is damaged" same "$(both flip.weir)"
flip all.weir 8 flip.weir
equal "both readers refuse another major version" "both refuse it" "$(both flip.weir)"
