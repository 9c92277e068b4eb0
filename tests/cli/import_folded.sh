#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Folded stacks of many tools, read by content.
. "$ROOT/tests/lib.sh"

# flat FILE [OPTION...]: base and cum of each function, in the order of the report
flat() { "$WEIR" report flat --json "$@" | python3 -SE -c 'import json, sys
print(" ".join("%s=%s/%s" % (r["name"], r["base"], r["cum"]) for r in json.load(sys.stdin)["rows"] if r["kind"] != "thread"))'; }
threads() { "$WEIR" export folded "$@" | cut -d ';' -f 1 | cut -d ' ' -f 1 | sort -u | tr '\n' ' '; }

printf 'main;a b;c 3\nmain;a b 2\r\n\nmain 1\n' >plain.folded
equal "names may have blanks; the number is behind the last one" "main=1/6 a b=2/5 c=3/3" "$(flat plain.folded)"
gzip -k plain.folded && zstd -q plain.folded
equal "a file that is packed by gzip is the same" "$(flat plain.folded)" "$(flat plain.folded.gz)"
equal "and one that is packed by zstd" "$(flat plain.folded)" "$(flat plain.folded.zst)"
equal "standard input is told by its content, too" "$(flat plain.folded)" "$(flat - <plain.folded)"
head -c 30 plain.folded.gz >cut.gz
fails "a packed file that is cut is refused" 1 "^weir: 'cut.gz': ends in the midst of what is packed" \
	"$WEIR" import folded cut.gz -o cut.weir
check "and leaves nothing behind" test ! -e cut.weir

printf 'm;x_[j];y_[i];k_[k] 2\nm;x_[j] 1\nm;z[k] 4\n' >kinds.folded
equal "endings of names say how they ran" "k:kernel m:native x:jitted y:jitted z:kernel" \
	"$("$WEIR" import folded kinds.folded --first function -o kinds.weir && "$WEIR" report flat kinds.weir --json >kinds.json &&
	json kinds.json '" ".join(sorted(r["name"] + ":" + r["kind"] for r in j["rows"] if r["kind"] != "thread"))')"
printf 'perl;main;f 3\nbash;f 1\n' >comm.folded
equal "names of threads are not functions" "f=4/4 main=0/3" "$(flat comm.folded | tr ' ' '\n' | sort | tr '\n' ' ' | sed 's/ $//')"
equal "and stay what they are" "bash perl " "$(threads comm.folded)"
printf 'f;g 3\nh;f 1\n' >functions.folded
equal "a name that is met deeper, too, is a function" "f=1/4 g=3/3 h=0/1" "$(flat functions.folded)"
printf '[main tid=71];f 3\n[GC tid=72];f 1\n' >async.folded
equal "threads of async-profiler have their numbers" "pid_71=main pid_72=GC" \
	"$("$WEIR" report threads async.folded --json >t.json && json t.json '" ".join(sorted("pid_%s=%s" % (r["tid"], r["name"]) for r in j["rows"]))')"
printf 'perl-12/13;f 3\nperl-12/14;f 1\n' >pids.folded
equal "and so have those of stackcollapse-perf --tid" "12_13 12_14" \
	"$("$WEIR" report threads pids.folded --json >t.json && json t.json '" ".join(sorted("%s_%s" % (r["pid"], r["tid"]) for r in j["rows"]))')"

printf 'main;f 1 2\nmain;g 0 5\n' >diff.folded
equal "of two columns the second is shown" "main=0/7 g=5/5 f=2/2" "$(flat diff.folded)"
equal "and the first can be" "main=0/1 f=1/1" "$(flat diff.folded --metric before)"
printf 'main;f 1.25\nmain;g 2.75\n' >fraction.folded
"$WEIR" report loss fraction.folded >loss.txt
check "fractions are told" grep -q "2 .*numbers with a fraction" loss.txt
equal "and add up" "main=0/4 g=3/3 f=1/1" "$(flat fraction.folded)"
"$WEIR" import folded fraction.folded --unit us --metric off-cpu -o off.weir
equal "microseconds have no fractions of nanoseconds" "main=0/4000 g=2750/2750 f=1250/1250" "$(flat off.weir)"
equal "the metric is called as it is said" "off-cpu ns" \
	"$("$WEIR" report flat off.weir --json >off.json && json off.json 'j["metric"]["name"] + " " + j["metric"]["unit"]')"

printf 'main;f\n' >wrong.folded
fails "a line without a number is refused" 1 "^weir: 'wrong.folded':1: the line does not end with a number" \
	"$WEIR" import folded wrong.folded -o wrong.weir
fails "a unit that nobody knows is refused" 1 "'parsec' is none of" "$WEIR" import folded plain.folded --unit parsec -o wrong.weir
fails "and what is no first name" 2 "--first: 'x' is neither" "$WEIR" import folded plain.folded --first x
printf 'a;b 18446744073709551615\n' >large.folded
fails "a number that is too large is refused" 1 "':1: the number is too large" \
	"$WEIR" import folded large.folded --unit us -o wrong.weir
