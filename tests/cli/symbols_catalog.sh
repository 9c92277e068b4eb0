# SPDX-License-Identifier: MIT
# weir symbols add, remove, list, show, diff, compact, stats: a merged symbol file over its life.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/fixtures/symbol_libraries.sh"

fails "without a merged symbol file the sentence says how to make one" 1 \
	"^weir: '.*/default.wsym': there is no merged symbol file \('weir symbols add PATH...' makes it\)$" "$WEIR" symbols list
fails "also for one that was named" 1 "'weir symbols add --catalog no.wsym PATH...' makes it" "$WEIR" symbols stats --catalog no.wsym
echo 'no catalog' >text.wsym
fails "a file of another kind is refused" 1 "'text.wsym'" "$WEIR" symbols list --catalog text.wsym
fails "and not written to" 1 "'text.wsym'" "$WEIR" symbols add --catalog text.wsym full/lib.so
equal "so that it stays" 'no catalog' "$(cat text.wsym)"

# add FILE...: to the user's own; rc, out.json
add() {
	"$WEIR" symbols add --no-search --json "$@" >out.json
	rc=$?
}
states() { json out.json '"\n".join("%s %s" % (r["state"], r["path"].split("/")[-1]) for r in j["rows"])'; }
ids() { "$WEIR" symbols list --json "$@" >l.json && json l.json '" ".join(r["id"] for r in j["rows"])'; }

# --- add ---

mkdir one && strip -o one/lib.so full/lib.so && objcopy --only-keep-debug full/lib.so one/lib.debug
add one/lib.so
equal "add makes the file" "0 new lib.so" "$rc $(states)"
check "in the place that WEIR_CATALOG names" test -s default.wsym
id=$(ids)
add one/lib.so
equal "the same again is known" "0  known" "$rc $(states) $(json out.json 'j["inputs"][0]["verdict"]')"
add one/lib.debug
equal "a debug file joins the image that is there" "0 changed lib.so" "$rc $(states)"
equal "which keeps its id" "$id" "$(ids)"
equal "and has the sources of both" \
	"one/lib.so 64 5 symbols N lines: dynsym 3/3 (the image itself), debug file 5/5 (build-id equal), dwarf 5/5 (build-id equal)" \
	"$(images | lines_known)"
mkdir two && strip -o two/lib.so full/lib9.so
add two/lib.so full/lib.map
equal "a map that fits two versions is refused here, too" "3 new lib.so" "$rc $(states)"
mkdir three && make_lib three/long.so -DLONGER -Wl,-Map=three.map && strip three/long.so
add three/long.so && add three.map
equal "a map joins the image that is there" "three/long.so 64 5 symbols 0 lines: dynsym 3/3 (the image itself), ld map 5/5 (3 of 3 agree; no unwind table to compare with; nothing more tells it from that of another build)" "$(images)"
"$WEIR" symbols add --no-search one/lib.so full/lib.so hello 2>&1 >text.txt
equal "the text has a line for each image, and one for what is refused" "known new refused" \
	"$(awk 'NR > 1 { print $1 }' text.txt | sort | paste -s -d ' ')"
equal "made later, it is the same as made at once" "$(
	"$WEIR" symbols merge -q --no-search -o once.wsym one && "$WEIR" symbols list --json --catalog once.wsym >l.json
	json l.json '"%s %d %d" % (j["rows"][0]["id"], j["rows"][0]["symbols"], j["rows"][0]["lines"])')" \
	"$("$WEIR" symbols list --json '*/one/lib.so' >l.json; json l.json '"%s %d %d" % (j["rows"][0]["id"], j["rows"][0]["symbols"], j["rows"][0]["lines"])')"
mkdir order && strip -o order/lib.so full/lib.so && objcopy --only-keep-debug full/lib.so order/lib.debug
"$WEIR" symbols add -q --no-search --catalog order.wsym order/lib.debug
"$WEIR" symbols add -q --no-search --catalog order.wsym order/lib.so
"$WEIR" symbols resolve --catalog order.wsym --no-search --image order/lib.so "$(address full/lib.so hidden_mul)" >order.txt
check "a debug file that was added first serves the library that comes later" grep -q '(hidden_mul+0x0) .*lib\.c:4 ' order.txt

# --- a root that was damaged ---

cp default.wsym damaged.wsym
printf '\377' | dd of=damaged.wsym bs=1 seek=32 conv=notrunc status=none
"$WEIR" symbols list --catalog damaged.wsym >out.txt 2>err.txt
equal "a file with one damaged root is still read" 0 $?
check "and the damage is said" grep -q "^weir: 'damaged.wsym': .*damaged" err.txt

# --- by debuglink alone, and by several writers at once ---

mkdir link && gcc -DADD=7 -O1 -g -fPIC -shared -nostdlib -Wl,--build-id=none -o link/full.so lib.c
objcopy --only-keep-debug link/full.so link/lib.dbg && strip -o link/lib.so link/full.so
objcopy --add-gnu-debuglink=link/lib.dbg link/lib.so
"$WEIR" symbols add -q --no-search --catalog link.wsym link/lib.so
"$WEIR" symbols add --no-search --json --catalog link.wsym link/lib.dbg >out.json
equal "a debug file without a build-id joins an image that is there by its CRC" "changed lib.so" "$(states)"
"$WEIR" symbols add --no-search --json --catalog link.wsym link/lib.dbg >out.json
equal "and is known from then on" known "$(json out.json 'j["inputs"][0]["verdict"]')"

mkdir many && make_lib many/lib.so -Wl,-Map=many/lib.map && nm many/lib.so >many/lib.nm
objcopy --only-keep-debug many/lib.so many/lib.debug && strip many/lib.so
"$WEIR" symbols add -q --no-search --catalog many.wsym many/lib.so
for source in lib.map lib.nm lib.debug; do
	"$WEIR" symbols add -q --no-search --catalog many.wsym many/$source &
done
wait
"$WEIR" symbols show --json --catalog many.wsym many/lib.so >show.json
equal "of three writers at once none loses its source" "debug file dwarf dynsym ld map nm" \
	"$(json show.json '" ".join(sorted(s["kind"] for s in j["sources"]))')"
sleep 30 &
child=$!
runs $child
"$WEIR" symbols merge -q --no-search -o process.wsym --pid $child
kill $child
equal "a process gives all that it has mapped, its vdso too" True \
	"$("$WEIR" symbols list --json --catalog process.wsym >l.json
	json l.json '{"[vdso]", "libc", "sleep"} <= {r["base_name"] for r in j["rows"]}')"

# --- list and show ---

"$WEIR" symbols list >list.txt
equal "list has a line for each image" 5 "$(wc -l <list.txt)"
equal "with its columns" "Id Bits Build-id Symbols Lines Bytes Path" "$(head -n 1 list.txt | tr -s ' ')"
equal "a base name picks images" 3 "$("$WEIR" symbols list lib --json >l.json; json l.json 'len(j["rows"])')"
equal "so does a pattern" "long.so" "$("$WEIR" symbols list 'lo*' --json >l.json; json l.json 'j["rows"][0]["base_name"] + ".so"')"
equal "several names are alternatives" 4 "$("$WEIR" symbols list 'lo*' lib --json >l.json; json l.json 'len(j["rows"])')"
fails "a name that no image has is a failure" 1 "has no image named 'nobody'" "$WEIR" symbols list nobody
"$WEIR" symbols show "$id" >show.txt
for word in "^Image  *$id$" "^Path  *$PWD/one/lib.so$" "^Build-id  *$(build_id full/lib.so)$" '^Machine  *x86-64, 64 bit$' \
	' a-x  *\.text$' '^debug file  *5  *5  .*/one/lib.debug .*build-id equal'; do
	check "show says $word" grep -q -- "$word" show.txt
done
"$WEIR" symbols show --json "$id" >show.json
equal "the sections are those of readelf" "$(readelf -SW one/lib.so | sed -n 's/^ *\[ *[0-9]*\] \(\.[^ ]*\) .*/\1/p' |
	grep -E '^\.(text|dynsym|dynstr|eh_frame|eh_frame_hdr|gnu.hash|dynamic|note.gnu.build-id)$')" \
	"$(json show.json '"\n".join(s["name"] for s in j["sections"] if s["flags"] & 2)')"
equal "the segments are those of readelf" "$(readelf -lW one/lib.so | grep -c LOAD)" "$(json show.json 'len(j["segments"])')"
equal "an image is found by its path" "$id" "$("$WEIR" symbols show --json one/lib.so >s.json; json s.json 'j["id"]')"
equal "by the beginning of its id" "$id" "$("$WEIR" symbols show --json "${id:0:9}" >s.json; json s.json 'j["id"]')"
equal "by a name that only it has" long "$("$WEIR" symbols show --json long.so >s.json; json s.json 'j["path"].split("/")[-1][:4]')"
fails "a name of several is refused, and they are listed" 1 "'lib.so': is 3 images; name one by its id: .*$id \(build-id " "$WEIR" symbols show lib.so
fails "one that is not there as well" 1 "'0123456789abcdef': the merged symbol file has no image" "$WEIR" symbols show 0123456789abcdef
equal "--symbols shows them, --limit some of them" "$(functions full/lib.so | sed -n 1,2p)" \
	"$("$WEIR" symbols show --symbols --limit 2 "$id" | tail -n 2 | awk '{ print $1, $2, $NF }')"
gcc -shared -nostdlib -fPIC -o aliased.so -x c - <<'C'
int _first(int x) { return x; }
extern int second_name(int) __attribute__((alias("_first")));
extern int weak_one(int) __attribute__((weak, alias("_first")));
C
"$WEIR" symbols merge -q -o alias.wsym --no-search aliased.so
"$WEIR" symbols show --catalog alias.wsym --symbols --json aliased.so >s.json
equal "of several names of one address one is chosen, the others are its aliases" "second_name ['_first', 'weak_one']" \
	"$(json s.json '"%s %s" % (j["rows"][0]["name"], sorted(j["rows"][0]["aliases"]))')"

# --- two versions at one path ---

cp full/lib9.so one/lib.so && add one/lib.so
equal "another version at the same path is another image" "0 new lib.so" "$rc $(states)"
fails "the path alone does not name one of them" 1 "one/lib.so': is 2 images; name one by its id: " "$WEIR" symbols remove one/lib.so
equal "and nothing is removed" 5 "$(ids | wc -w)"

# --- diff ---

cp default.wsym before.wsym
"$WEIR" symbols diff before.wsym default.wsym >diff.txt
equal "equal files are equal" "0 equal: the same images with the same content" "$? $(cat diff.txt)"
mkdir d && strip -o d/lib.so full/lib.so && cp full/lib9.so d/gone.so
"$WEIR" symbols merge -q --no-search -o a.wsym d && rm d/gone.so && cp full/lib.map d/ && cp three/long.so d/
"$WEIR" symbols merge -q --no-search -o b.wsym d
"$WEIR" symbols diff a.wsym b.wsym >diff.txt
equal "differences are no failure" 0 $?
equal "images of one and of the other, and what changed" "+ long.so
- gone.so
~ lib.so: symbols 3 -> 5, lines 0 -> 0, sources +ld map $PWD/d/lib.map" "$(sed -E 's,^(.) [0-9a-f]{16} [^ ]*/,\1 ,' diff.txt | LC_ALL=C sort)"
"$WEIR" symbols diff a.wsym b.wsym --json >diff.json
equal "so in JSON" "False added changed removed" "$(json diff.json '"%s %s" % (j["equal"], " ".join(sorted(r["change"] for r in j["rows"])))')"
fails "one file and something else cannot be compared" 1 "'lib.c'" "$WEIR" symbols diff a.wsym lib.c

cp full/lib.so short.so && make_lib longer.so -DLONGER && "$WEIR" symbols merge -q --no-search -o v.wsym short.so longer.so
"$WEIR" symbols diff --catalog v.wsym short.so longer.so >diff.txt
equal "of two images, symbols with another address or size" "$(python3 - <(functions short.so) <(functions longer.so) <<'PY'
import sys
a, b = ({l.split()[2]: l.split()[:2] for l in open(p)} for p in sys.argv[1:])
print("\n".join("~ %s -> %s size %s -> %s %s" % (a[n][0], b[n][0], a[n][1], b[n][1], n) for n in sorted(a) if a[n] != b[n]))
PY
)" "$(cat diff.txt)"
equal "an image equals itself" "equal: the same symbols at the same addresses" "$("$WEIR" symbols diff --catalog v.wsym short.so short.so)"
gcc -DADD=7 -Dapi_two=api_zwei -O1 -g -fPIC -shared -nostdlib -ffunction-sections -o renamed.so lib.c
"$WEIR" symbols merge -q --no-search -o v.wsym short.so renamed.so
equal "symbols that only one has" "+ api_zwei
- api_two" "$("$WEIR" symbols diff --catalog v.wsym short.so renamed.so | awk '{ print $1, $NF }' | LC_ALL=C sort)"
equal "--limit cuts" "1 ... 1 more" "$("$WEIR" symbols diff --catalog v.wsym --limit 1 short.so renamed.so | awk 'NR == 1 { n = 1 } NR == 2 { print n, $0 }')"

# --- remove, compact, stats ---

fails "one image that is not there keeps the others" 1 "'nobody'" "$WEIR" symbols remove "$id" nobody
equal "so that nothing is removed" 5 "$(ids | wc -w)"
equal "remove says what it removed" "removed $id $PWD/one/lib.so" "$("$WEIR" symbols remove "$id")"
equal "and it is gone" 4 "$(ids | wc -w)"
"$WEIR" symbols remove -q two/lib.so three/long.so
"$WEIR" symbols stats --json >before.json
check "what was removed still takes room" test "$(json before.json 'j["dead_bytes"] > 0')" = True
left=$(ids)
"$WEIR" symbols compact >compact.txt
equal "compact says how much it gave back" 0 $?
"$WEIR" symbols stats --json >after.json
equal "then nothing is dead" 0 "$(json after.json 'j["dead_bytes"]')"
check "the file is as large as it says, and smaller than before" test \
	"$(json after.json 'j["bytes"]') $(json before.json 'j["bytes"]')" = "$(stat -c %s default.wsym) $(sed -n 's/.*was \([0-9]*\) .*/\1/p' compact.txt)" -a \
	"$(json after.json 'j["bytes"]')" -lt "$(json before.json 'j["bytes"]')"
equal "and the images are the same" "$left" "$(ids)"
"$WEIR" symbols merge -q --no-search -o out.wsym one full/lib.so
"$WEIR" symbols stats --catalog out.wsym --json >s.json
equal "stats count the sources of all images" \
	"$("$WEIR" symbols list --catalog out.wsym --json >l.json; json l.json 'sum(r["symbols"] for r in j["rows"])')" "$(json s.json 'j["symbols"]')"
equal "by kind" "symtab 2 10 10, dynsym 2 6 6, debug file 1 5 5" \
	"$(json s.json '", ".join("%(source)s %(number)d %(offered)d %(accepted)d" % r for r in j["rows"] if r["source"] in ("symtab", "dynsym", "debug file"))')"

# --- usage, and the manual ---

fails "a verb is needed" 2 "needs a verb" "$WEIR" symbols
fails "one that exists" 2 "'frobnicate' is not a verb" "$WEIR" symbols frobnicate
fails "an option of another verb is wrong usage" 2 "list does not take --threads" "$WEIR" symbols list --threads 2
fails "so is a number of threads that cannot be" 2 "from 1 to 1024" "$WEIR" symbols merge -o x --threads 0 full
fails "or a missing image" 2 "show takes one image" "$WEIR" symbols show
page=$ROOT/docs/man/weir-symbols.1
for file in out.json l.json s.json show.json diff.json before.json; do
	missing=$(python3 - $file "$page" <<'PY'
import json, re, sys
words = set(re.findall(r"[a-z0-9_]+", open(sys.argv[2]).read().replace("\\-", "-")))
def keys(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)
print(" ".join(sorted(set(keys(json.load(open(sys.argv[1])))) - words)))
PY
)
	equal "the manual has every field of $file ($(json $file 'j["verb"]'))" "" "$missing"
done
for verb in merge add remove list show resolve verify diff compact stats; do
	check "the manual has the verb $verb" grep -qx "\.B $verb" "$page"
done
