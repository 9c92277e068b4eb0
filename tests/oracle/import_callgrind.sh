#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Profiles of callgrind and cachegrind; the judges are callgrind_annotate and cg_annotate.
# weir-test: once: the corpus of callgrind_fuzz is replayed in the other builds
. "$ROOT/tests/lib.sh"
corpus=$ROOT/tests/fuzz/corpus/callgrind

# flat FILE [METRIC]: what each function used itself
flat() { "$WEIR" report flat "$1" ${2:+--metric "$2"} --json | python3 -SE -c 'import json, sys, collections
sums = collections.Counter()
for r in json.load(sys.stdin)["rows"]:
    if r["kind"] != "thread": sums[r["name"]] += r["base"]
print("\n".join(sorted("%s %s" % i for i in sums.items() if i[1])))'; }
told() { "$WEIR" report loss "$1" | grep -q "$2"; }

equal "compressed names, relative positions and parts are understood; calls are not a function's own" \
	"$(printf 'f 4\nmain 11')" "$(flat "$corpus/parts")"
equal "each event is a metric" "main 3" "$(flat "$corpus/parts" Dr)"
equal "parts of threads are threads" "1 2" "$("$WEIR" report threads "$corpus/parts" --json >t.json && json t.json '" ".join(sorted(str(r["tid"]) for r in j["rows"]))')"
check "calls are told" told "$corpus/parts" "1  calls with what they cost"
check "and so are jumps" told "$corpus/parts" "2  jumps are not shown"
check "sums that fit are not told" sh -c "! '$WEIR' report loss '$corpus/parts' | grep -q 'own sum'"
sed 's/^0x10 3 5 2/0x10 3 6 2/' "$corpus/parts" >more.out
check "one that does not is" told more.out "1  the file's own sum of its first event is another one"
equal "what it used with all that it calls is not known" "[None, None, None]" \
	"$("$WEIR" report flat "$corpus/parts" --json >f.json && json f.json '[r["cum"] for r in j["rows"] if r["kind"] != "thread"]')"
fails "no tree is made up" 1 "has no call tree \(who called whom is not known\)" "$WEIR" report tree "$corpus/parts"
printf 'version: 1\nevents: Ir\nfn=(7)\n1 2\n' >name.out
fails "a name that nobody said is refused" 1 "^weir: 'name.out':3: nobody said which name \(7\) is" "$WEIR" import callgrind name.out -o x.weir
printf 'version: 1\nevents: Ir\nfn=f\nnonsense\n' >nonsense.out
fails "what is no line of a profile is refused" 1 "^weir: 'nonsense.out':4: is no line of a profile" "$WEIR" import callgrind nonsense.out -o x.weir

command -v valgrind callgrind_annotate cg_annotate >/dev/null || {
	skip "profiles of valgrind: it is not installed"
	finish
}
gcc -O1 -g -o counted "$ROOT/tests/fixtures/foreign/counted.c"
valgrind --tool=callgrind --callgrind-out-file=callgrind.out --dump-instr=yes --collect-jumps=yes --cache-sim=yes ./counted >valgrind.txt 2>&1
valgrind --tool=callgrind --callgrind-out-file=plain.out --compress-strings=no --compress-pos=no ./counted >valgrind.txt 2>&1
valgrind --tool=cachegrind --cachegrind-out-file=cachegrind.out ./counted >valgrind.txt 2>&1
# annotated TOOL FILE EVENT THRESHOLD: the sums of its functions by name
annotated() { "$1" --threshold="$4" --show="$3" --sort="$3" --auto=no --show-percs=no "$2" | python3 -SE -c 'import sys, re, collections
sums, is_body = collections.Counter(), False
for line in sys.stdin:
    is_body |= "file:function" in line
    m = re.match(r" *([0-9,]+) +(.*)$", line) if is_body else None
    if m: sums[re.sub(r" \[[^]]*\]$", "", m[2]).rsplit(":", 1)[1]] += int(m[1].replace(",", ""))
print("\n".join(sorted("%s %s" % i for i in sums.items() if i[1])))'; }
equal "instructions of functions are those of callgrind_annotate" "$(annotated callgrind_annotate callgrind.out Ir 100)" "$(flat callgrind.out)"
equal "and so are misses of a cache" "$(annotated callgrind_annotate callgrind.out D1mr 100)" "$(flat callgrind.out D1mr)"
equal "also of a file that is not compressed" "$(annotated callgrind_annotate plain.out Ir 100)" "$(flat plain.out)"
equal "those of cachegrind are those of cg_annotate" "$(annotated cg_annotate cachegrind.out Ir 0)" "$(flat cachegrind.out)"
"$WEIR" export callgrind callgrind.out -o again.out 2>/dev/null
equal "what is exported again has the same figures" "$(flat callgrind.out)" "$(flat again.out)"
"$WEIR" import callgrind callgrind.out -o c.weir
equal "and so have its lines" \
	"$(callgrind_annotate --threshold=100 --show=Ir --show-percs=no callgrind.out "$ROOT/tests/fixtures/foreign/counted.c" | grep -E '^ *[0-9,]+ .*(twice\(i\)|x \* 2)' | tr -s ' \t' ' ' | sed 's|^ ||')" \
	"$(callgrind_annotate --threshold=100 --show=instructions --show-percs=no again.out "$ROOT/tests/fixtures/foreign/counted.c" | grep -E '^ *[0-9,]+ .*(twice\(i\)|x \* 2)' | tr -s ' \t' ' ' | sed 's|^ ||')"
