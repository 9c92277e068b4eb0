#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Trace events of Chrome, profiles of speedscope and of the Firefox Profiler.
. "$ROOT/tests/lib.sh"

# tree FILE [OPTION...]: NAME:calls:base:cum, as the tree has them
tree() { "$WEIR" report tree --json "$@" | python3 -SE -c 'import json, sys
print(" ".join("%s:%s:%s:%s" % (r["name"], r["calls"], r["base"], r["cum"]) for r in json.load(sys.stdin)["rows"]))'; }
told() { "$WEIR" report loss "$1" | grep -q "$2"; }
corpus=$ROOT/tests/fuzz/corpus

cat >x.json <<'JSON'
[{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"io"}},
{"ph":"X","name":"inner","ts":12,"dur":3,"pid":1,"tid":2},
{"ph":"X","name":"outer","ts":10,"dur":10.5,"pid":1,"tid":2},
{"ph":"X","name":"equal","ts":30,"dur":5,"pid":1,"tid":2},
{"ph":"X","name":"late","ts":33,"dur":5,"pid":1,"tid":2},
{"ph":"B","name":"a","ts":0,"pid":1,"tid":3},{"ph":"B","name":"b\u00e9","ts":1,"pid":1,"tid":3},
{"ph":"E","ts":4,"pid":1,"tid":3},{"ph":"E","ts":9,"pid":1,"tid":3},{"ph":"i","ts":3},
JSON
equal "calls of Chrome's events have their times, whatever their order" \
	"1_3:1:0:9000 a:1:6000:9000 bé:1:3000:3000 1_2:1:9500:25000 outer:1:7500:10500 inner:1:3000:3000 equal:1:3000:5000 late:1:2000:2000" "$(tree x.json)"
check "an end that is missing is told" told x.json "the end of the file is missing"
check "and so is a call that outlives its caller" told x.json "1 .*they were cut"
check "and what is no call" told x.json "1 .*events that are no calls"
equal "threads have their names" io "$("$WEIR" report threads x.json --json >t.json && json t.json '[r["name"] for r in j["rows"] if r["tid"] == 2][0]')"
{ printf '{"otherData":{"a":[{}]},"traceEvents":'; sed '$s/,$/]}/' x.json; } >object.json
equal "an object is the same as the array" "$(tree x.json)" "$(tree object.json)"
head -c 300 object.json >cut.json
fails "an object that is cut is refused" 1 "^weir: 'cut.json': ends too early at byte" "$WEIR" report flat cut.json
printf '{"traceEvents": [{"ph":"B" "ts":1}]}' >wrong.json
fails "and so is what is no JSON" 1 "^weir: 'wrong.json': is no JSON at byte" "$WEIR" report flat wrong.json
{ printf '{"traceEvents":'; printf '[%.0s' $(seq 300); } >deep.json
fails "and what is nested too deeply" 1 "^weir: 'deep.json': JSON is nested too deeply" "$WEIR" report flat deep.json

equal "both kinds of speedscope's profiles are read, frames behind them" \
	"pid_2:1:0:8000 main:1:8000:8000 f:1:0:0 pid_1:None:0:4000000 main:None:2500000:4000000 f:None:1000000:1500000 g:None:500000:500000" \
	"$(tree "$corpus/speedscope/both")"
printf '{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"f"}]},"profiles":[{"type":"sampled","name":"n","unit":"none","samples":[[0],[3]],"weights":[1,-1]}]}' >bad.json
check "frames that are not there are counted" told bad.json "2  frames that the file does not have"

equal "a processed profile has its tables in threads" "12_13:None:1:4 f:None:2:3 g:None:1:1" "$(tree "$corpus/firefox/old")"
equal "or once for all of them" "12_14:None:0:2 f:None:0:2 g:None:2:2" "$(tree "$corpus/firefox/new")"
gzip -c "$corpus/firefox/old" >old.json.gz
equal "also packed" "$(tree "$corpus/firefox/old")" "$(tree old.json.gz)"
check "markers are told" told old.json.gz "2  markers are not shown"
"$WEIR" import firefox old.json.gz -o ff.weir && python3 "$ROOT/tests/format/read_trace.py" ff.weir >ff.json
equal "files and lines stay" "['g', 'a.c', 7, 0]" "$(json ff.json 'j["symbols"][0][2][0]')"
