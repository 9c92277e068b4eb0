#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Profiles that a Go program writes of itself, as they are: the judge is go tool pprof.
# weir-test: once: what runs in the other builds is the same, and the corpus of pprof_fuzz is replayed there
. "$ROOT/tests/lib.sh"
command -v go >/dev/null || {
	skip "profiles of Go: go is not installed"
	finish
}
export GOCACHE=$PWD/cache GO111MODULE=off GOFLAGS= HOME=$PWD
go build -o profiled "$ROOT/tests/fixtures/foreign/profiled.go" 2>go.err && ./profiled 2>/dev/null || {
	skip "profiles of Go: $(head -n 1 go.err)"
	finish
}

# top FILE UNIT [INDEX]: flat and cum of each function, as go has them
top() { go tool pprof -top -unit="$2" -nodecount=1000 -nodefraction=0 ${3:+-sample_index=$3} "$1" 2>/dev/null |
	sed -n 's/ *(inline)$//; s/ *(partial-inline)$//; /flat%/,$p' | tail -n +2 | sed 's/\([0-9]\)[a-zA-Z]* /\1 /g' |
	awk '{ name = $6; for (i = 7; i <= NF; i++) name = name " " $i; print name, $1 + 0, $4 + 0 }' | sort; }
# flat FILE [METRIC]: the same as weir has them
flat() { "$WEIR" report flat "$1" ${2:+--metric "$2"} --json | python3 -SE -c 'import json, sys
for r in json.load(sys.stdin)["rows"]:
    if r["kind"] != "thread": print(r["name"], r["base"], r["cum"])' | sort; }
# same_top SENTENCE FILE UNIT [METRIC]
same_top() { equal "$1" "$(top "$2" "$3" "${4:-}")" "$(flat "$2" "${4:-}")"; }

same_top "a CPU profile has go's figures" cpu.pb.gz nanoseconds
same_top "and its number of samples" cpu.pb.gz count samples
same_top "a heap profile shows what go shows: what is in use" heap.pb.gz B
same_top "and what was allocated" heap.pb.gz B alloc_space
same_top "and how many objects" heap.pb.gz count alloc_objects
equal "the names of its metrics are go's" "alloc_objects alloc_space inuse_objects inuse_space" \
	"$("$WEIR" report flat heap.pb.gz --metric none 2>&1 | sed 's/.*it has: //; s/[,)]//g')"
same_top "a profile of waiting for mutexes has go's figures" mutex.pb.gz nanoseconds
"$WEIR" export pprof cpu.pb.gz -o again.pb.gz
equal "it can be written again" "$(top cpu.pb.gz nanoseconds cpu)" "$(top again.pb.gz nanoseconds cpu)"

gzip -dc cpu.pb.gz >cpu.pb
head -c $(($(wc -c <cpu.pb) - 3)) cpu.pb >cut.pb
fails "a profile that is cut is refused" 1 "^weir: 'cut.pb': ends in the midst of a field at byte" "$WEIR" report flat cut.pb
