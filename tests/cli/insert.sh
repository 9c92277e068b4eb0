# SPDX-License-Identifier: MIT
# weir insert: options, reports, failures. What the inserted code does is tested elsewhere.
. "$ROOT/tests/lib.sh"

cat >a.c <<'C'
int helper(int);
int first(int i) { return i ? helper(i) : 3; }
int second(int i) { int s = 0; while (i--) s += first(i); return s; }
C
echo 'int helper(int i) { return i * 7; }' >b.c
gcc -O2 -c a.c && gcc -O2 -c b.c && ar rc lib.a a.o b.o && ar rcT thin.a a.o b.o || exit 1

check "an object is inserted" "$WEIR" insert a.o -o a.w.o
check "it is larger" [ "$(stat -c %s a.w.o)" -gt "$(stat -c %s a.o)" ]
check "readelf reads it without a warning" sh -c '[ -z "$(readelf -aW a.w.o 2>&1 >/dev/null)" ]'
equal "it defines the same names" "$(nm --defined-only -g a.o | cut -d ' ' -f 2-)" \
	"$(nm --defined-only -g a.w.o | cut -d ' ' -f 2- | grep -v ' weir_')"
check "an archive is inserted" "$WEIR" insert lib.a -o lib.w.a
equal "it has the same members" "$(ar t lib.a)" "$(ar t lib.w.a)"
check "a thin archive is inserted" "$WEIR" insert thin.a -o thin.w.a
equal "its members are in the copy" "$(ar t lib.a)" "$(mkdir x && cd x && ar x ../thin.w.a && ls)"
check "the options may come behind" "$WEIR" insert -o other.o a.o
check "twice the same gives the same" cmp other.o a.w.o
equal "nothing is printed" "" "$("$WEIR" insert a.o -o other.o 2>&1)"

"$WEIR" insert -v lib.a -o lib.w.a >out.txt
for f in 'a.o: first' 'a.o: second' 'b.o: helper'; do
	check "-v has a line for $f" grep -qE "^  $f: [0-9]+ blocks, [0-9]+ instructions, [0-9]+ -> [0-9]+ bytes$" out.txt
done
check "-v sums up" grep -qE "^'lib.a': 3 of 3 functions inserted \([0-9]+ blocks\) in 2 objects" out.txt
"$WEIR" insert --json lib.a -o lib.w.a >out.json
equal "--json counts functions" "insert lib.a lib.w.a 2 3 3" \
	"$(json out.json '" ".join(str(j[k]) for k in ("kind", "input", "output", "objects", "functions", "inserted"))')"
equal "--json has a row for each" "a.o first True None,a.o second True None,b.o helper True None" \
	"$(json out.json '",".join(sorted(" ".join(str(r[k]) for k in ("member", "name", "inserted", "reason")) for r in j["rows"]))')"
check "--json tells that text grew" [ "$(json out.json 'j["new_text"] > j["old_text"] > 0')" = True ]

chosen() { # OPTIONS: names of the functions inserted
	"$WEIR" insert --json "$@" lib.a -o chosen.a >chosen.json
	json chosen.json '" ".join(sorted(r["name"] for r in j["rows"] if r["inserted"]))'
}
equal "--only chooses" "first" "$(chosen --only first)"
equal "--only takes globs and lists" "first helper" "$(chosen --only 'f*,help*')"
equal "--only may be given twice" "first second" "$(chosen --only first --only=second)"
equal "--skip leaves out" "helper second" "$(chosen --skip 'fir*')"
equal "--only and --skip go together" "second" "$(chosen --only first,second --skip first)"
equal "--only takes expressions" "first second" "$(chosen --only '/^(first|second)$/')"
fails "--only of nothing that is there is an error" 1 "'lib.a': no function matches 'fisrt'; is it 'first'?" \
	"$WEIR" insert --only fisrt lib.a -o none.a
check "and nothing is written" test ! -e none.a
fails "an image cannot be named" 2 "'lib.a:first': all that is linked is one image" "$WEIR" insert --only lib.a:first lib.a -o none.a
equal "those left out have a reason" "not asked for" \
	"$(chosen --skip first >/dev/null; json chosen.json '[r["reason"] for r in j["rows"] if not r["inserted"]][0]')"

chmod 640 a.o
"$WEIR" insert a.o -o mode.o
equal "permissions are kept" 640 "$(stat -c %a mode.o)"
cp a.o same.o
check "the output may be the input" "$WEIR" insert same.o -o same.o
check "and is then changed" cmp same.o a.w.o
"$WEIR" insert --mode nothing a.o -o nothing.o
for section in .text .eh_frame .comment; do
	objcopy -O binary --set-section-flags $section=alloc --only-section=$section a.o one.bin
	objcopy -O binary --set-section-flags $section=alloc --only-section=$section nothing.o two.bin
	check "inserting nothing leaves $section as it is" cmp one.bin two.bin
done
check "--counts gives less code" [ "$("$WEIR" insert --counts --json a.o -o c.o >c.json && json c.json 'j["new_text"]')" -lt \
	"$("$WEIR" insert --json a.o -o c.o >c.json && json c.json 'j["new_text"]')" ]

# --- failures ---------------------------------------------------------------------------------

echo old >kept.o
keeps_output() { # SENTENCE PATTERN ARGUMENTS
	local sentence=$1 pattern=$2
	shift 2
	fails "$sentence" 1 "$pattern" "$WEIR" insert "$@" -o kept.o
	equal "$sentence: the output is not touched" old "$(cat kept.o)"
}
keeps_output "a missing file" "^weir: 'missing.o': cannot open" missing.o
keeps_output "a folder" "^weir: '\.': " .
echo text >text.o
keeps_output "a text" "^weir: 'text.o': is neither a relocatable object for x86-64 nor an archive$" text.o
: >empty.o
keeps_output "an empty file" "^weir: 'empty.o': is neither" empty.o
keeps_output "a program" "^weir: '$WEIR': is neither" "$WEIR"
head -c 200 a.o >cut.o
keeps_output "a cut object" "^weir: 'cut.o': " cut.o
head -c 100 lib.a >cut.a
keeps_output "a cut archive" "^weir: 'cut.a': " cut.a
cp thin.a gone.a && mkdir away && cp gone.a away/
keeps_output "a thin archive without its members" "^weir: 'away/gone.a': " away/gone.a
equal "no temporary file is left" "" "$(find . -name '*.o.*' ! -name '*.txt')"
fails "a folder that is not there" 1 "^weir: 'no/where.o': cannot write" "$WEIR" insert a.o -o no/where.o
fails "no input is wrong usage" 2 "^weir: insert: needs one object" "$WEIR" insert -o x.o
fails "two inputs are wrong usage" 2 "^weir: insert: needs one object" "$WEIR" insert a.o b.o -o x.o
fails "no output is wrong usage" 2 "^weir: insert: needs -o OUT" "$WEIR" insert a.o
fails "an unknown mode is wrong usage" 2 "^weir: insert: --mode: 'magic'" "$WEIR" insert --mode magic a.o -o x.o
fails "cycles with counts only are wrong usage" 2 "^weir: insert: cycles" "$WEIR" insert --counts --metrics cycles a.o -o x.o
