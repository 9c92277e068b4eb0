# SPDX-License-Identifier: MIT
# The source files of local functions without debug information: STT_FILE of the symbol table. readelf judges.
. "$ROOT/tests/lib.sh"

for n in parse lex; do
	cat >$n.c <<C
static int __attribute__((noinline, noclone)) helper(int x) { return x * $((${#n})); }
static int __attribute__((noinline, noclone)) only_$n(int x) { return helper(x) + 1; }
int run_$n(int x) { return only_$n(x); }
C
done
cat >main.c <<'C'
int run_parse(int), run_lex(int);
int main(int argc, char **argv)
{
	volatile int sum = 0;
	(void)argv;
	for (int i = 0; i < (argc > 1 ? 40000000 : 3); i++)
		sum += run_parse(i) + run_lex(i);
	return 0;
}
C
gcc -O1 -c parse.c lex.c main.c && gcc -o prog parse.o lex.o main.o || exit 1

# What readelf shows: ADDRESS NAME FILE of each local function, in the order of the table.
readelf -sW prog | awk '/\.symtab/ { on = 1 } !on { next } $4 == "FILE" { file = NF > 7 ? $8 : ""; next }
	$4 == "FUNC" && $5 == "LOCAL" && $7 != "UND" { sub(/^0+/, "0x", $2); print $2, $8, file == "" ? "-" : file }' | sort >theirs.txt
check "readelf has both helpers, in their files" test "$(grep -c ' helper \(parse\|lex\).c$' theirs.txt)" = 2
cut -d ' ' -f 1 theirs.txt >asked.txt
rows() { json "$1" '"\n".join("%s %s %s" % (r["address"], r["levels"][0]["name"], r["levels"][0]["file"] or "-") for r in j["rows"])'; }
"$WEIR" symbols resolve --json --image ./prog - <asked.txt >out.json
equal "every local function has the file that readelf shows" "$(cat theirs.txt)" "$(rows out.json)"
equal "and no line" "{None}" "$(json out.json '{l["line"] for r in j["rows"] for l in r["levels"]}')"
at() { awk -v f="$1" '$2 == "helper" && $3 == f { print $1 }' theirs.txt; }
equal "in text: behind the function" "$(at lex.c) $PWD/prog(helper+0x0) (in lex.c)
$(at parse.c) $PWD/prog(helper+0x0) (in parse.c)" "$("$WEIR" symbols resolve -q --image ./prog "$(at lex.c)" "$(at parse.c)")"
"$WEIR" symbols resolve --json --image ./prog "$(nm prog | awk '$3 == "run_lex" { print $1 }')" >global.json
equal "a global function has none" "run_lex None" "$(json global.json '"%s %s" % (j["rows"][0]["symbol"], j["rows"][0]["levels"][0]["file"])')"

"$WEIR" symbols merge -q --no-search -o all.wsym ./prog
"$WEIR" symbols resolve --json --no-search --catalog all.wsym --image ./prog - <asked.txt >kept.json
equal "a merged symbol file keeps them" "$(cat theirs.txt)" "$(rows kept.json)"
"$WEIR" symbols merge -q --no-search -o again.wsym all.wsym
"$WEIR" symbols resolve --json --no-search --catalog again.wsym --image ./prog - <asked.txt >again.json
equal "also when it is merged again" "$(cat theirs.txt)" "$(rows again.json)"
"$WEIR" symbols show --json --symbols --catalog all.wsym ./prog >show.json
equal "show has them, too" "lex.c parse.c" \
	"$(json show.json '" ".join(sorted(r["file"] for r in j["rows"] if r["linkage_name"] == "helper"))')"
PYTHONDONTWRITEBYTECODE=1 python3 "$ROOT/tests/format/read_catalog_image.py" all.wsym >second.txt
equal "the second reader takes the merged symbol file" 0 $?

# The files of debug information are whole paths and have lines: they come first.
gcc -g -O1 -c lex.c && gcc -o mixed parse.o lex.o main.o
nm mixed | awk '$3 == "helper" { print $1 }' >helpers.txt
"$WEIR" symbols resolve --json --image ./mixed - <helpers.txt >mixed.json
equal "where there are lines the file is theirs" "$PWD/lex.c 1 parse.c None" \
	"$(json mixed.json '" ".join(sorted("%s %s" % (r["levels"][0]["file"], r["levels"][0]["line"]) for r in j["rows"]))')"

# The file goes with a name into a trace.
if "$WEIR" steps -q --around run_lex --max 200 -o t.weir -- ./prog 2>steps.err; then
	"$WEIR" report steps t.weir --json >steps.json
	equal "steps of such a function have its file" "lex.c None" \
		"$(json steps.json '" ".join(sorted({"%s %s" % (r["file"], r["line"]) for r in j["rows"] if r.get("symbol") == "helper"}))')"
	"$WEIR" report steps t.weir >steps.txt
	check "in text, too" grep -Eq 'prog\(helper\+0x0\) +lex\.c +' steps.txt
else
	skip "steps of such a function have its file: weir steps does not work here: $(head -n 1 steps.err)"
fi
