# SPDX-License-Identifier: MIT
# weir symbols merge of merged symbol files: those of two machines become one. The judge is the merge of
# everything that they were made from.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/fixtures/symbol_libraries.sh"

mkdir -p a b && cp full/lib.so a/ && cp full/lib9.so b/lib.so
cp /bin/true b/
"$WEIR" symbols merge -q --no-search -o a.wsym a && "$WEIR" symbols merge -q --no-search -o b.wsym b
"$WEIR" symbols merge -q --no-search -o all.wsym a b
merge a.wsym b.wsym
equal "two merged symbol files become one" "0 " "$rc $(refused)"
same="equal: the same images with the same content"
equal "with the images of both, byte for byte those of one merge" "$same" "$("$WEIR" symbols diff all.wsym out.wsym)"
equal "and there are some" 3 "$("$WEIR" symbols list --json --catalog out.wsym >list.json; json list.json 'len(j["rows"])')"
cp out.wsym once.wsym && merge b.wsym a.wsym
equal "in any order" "$same" "$("$WEIR" symbols diff once.wsym out.wsym)"
merge a.wsym b
equal "files can be given beside" "$same" "$("$WEIR" symbols diff all.wsym out.wsym)"

# The same image, with other sources on each machine.
mkdir same && strip -o same/lib.so full/lib.so && cp full/lib.map same.map && objcopy --only-keep-debug full/lib.so same.debug
"$WEIR" symbols merge -q --no-search -o one.wsym same/lib.so same.map
"$WEIR" symbols merge -q --no-search -o two.wsym same/lib.so same.debug
merge one.wsym two.wsym
equal "the same image in both has the sources of both" \
	"0 same/lib.so 64 5 symbols N lines: dynsym 3/3, ld map 3/3, ld map 2/2, debug file 5/5, dwarf 5/5" \
	"$rc $(images | lines_known | sed 's/ ([^()]*)//g')"
equal "and the symbols of nm" "$(functions full/lib.so)" "$(symbols lib.so)"
equal "whose rung is that of the surest source" "build-id" \
	"$("$WEIR" symbols show --catalog out.wsym --symbols --json lib.so >show.json; json show.json '" ".join(sorted({r["match"] for r in j["rows"]}))')"
check "and lines" grep -q 'lib.c:4' <("$WEIR" symbols resolve -q --no-search --catalog out.wsym --image lib.so "$(address full/lib.so hidden_mul)")

cp one.wsym into.wsym
"$WEIR" symbols add -q --no-search --catalog into.wsym two.wsym b.wsym
equal "add joins them into one that is there" "debug file dwarf dynsym ld map ld map, 3" \
	"$("$WEIR" symbols show --json --catalog into.wsym same/lib.so >show.json 2>/dev/null || "$WEIR" symbols show --json --catalog into.wsym "$PWD/same/lib.so" >show.json
		"$WEIR" symbols list --json --catalog into.wsym >list.json
		echo "$(json show.json '" ".join(sorted(s["kind"] for s in j["sources"]))'), $(json list.json 'len(j["rows"])')")"
"$WEIR" symbols add --no-search --json --catalog into.wsym two.wsym >again.json
equal "a second time nothing is new" "0 0" "$? $(json again.json 'len([r for r in j["rows"] if r.get("state") in ("new", "changed")])')"

# A folder that holds one is a folder of files.
mkdir folder && cp full/lib.so one.wsym folder/
merge folder
equal "one that lies in a folder is not joined" "0 folder/lib.so" "$rc $(images | cut -d ' ' -f 1)"

dd if=one.wsym of=cut.wsym bs=1 count=5000 2>/dev/null
"$WEIR" symbols merge -q --no-search -o cut.out cut.wsym a.wsym >cut.txt
equal "one that is damaged is refused, and the status says so" "3 1" "$? $(grep -c '^refused .*cut.wsym' cut.txt)"
