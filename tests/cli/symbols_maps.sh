# SPDX-License-Identifier: MIT
# Linker maps and nm output of another build: refused where they cannot be the image's own, and where
# that cannot be told, their names stand on a rung of their own. The judge is nm of the unstripped file.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/fixtures/symbol_libraries.sh"

cat >m.c <<'C'
int parse(int), solve(int), api(int);
int main(void) { volatile int s = 0; for (int i = 0; i < 400000; i++) s += parse(i) + solve(i); return 0; }
C
cat >a.c <<'C'
int parse(int x) { int s = 0; for (int i = 0; i < 40; i++) s = s * 31 + (x ^ i); return s; }
C
echo 'int solve(int x) { return x * 3 + 7; }' >b.c
gcc -O1 -c m.c a.c b.c || exit 1
link() { # OUT OBJECTS: without a build-id, with a map
	gcc -Wl,--build-id=none -Wl,-Map="$1.map" -o "$@"
}
link one m.o a.o b.o && link two m.o b.o a.o
mkdir swap && strip -o swap/prog one
shared=0
for address in $(nm one | awk '$3 == "parse" || $3 == "solve" || $3 == "main" { print $1 }'); do
	nm two | grep -q "^$address T" && shared=$((shared + 1))
done
check "both builds have functions at equal addresses, as nm says" test "${shared:-0}" -ge 1

merge swap/prog two.map
equal "a map of another order of objects is refused" 3 $rc
check "and the reason names the function that is cut" grep -Eq \
	"^refused two.map: .*input section of the map is 0x[0-9a-f]+ to 0x[0-9a-f]+, but its unwind table has one function from 0x[0-9a-f]+ to " <(refused)
merge swap/prog one.map
equal "its own is accepted" 0 $rc
"$WEIR" symbols resolve --catalog out.wsym --no-search --json --image swap/prog "$(address one parse)" >r.json
equal "but since no exported name confirms it, its names stand on the lowest rung" "parse segments" \
	"$(json r.json '"%(symbol)s %(match)s" % j["rows"][0]')"
check "and the reason says why" grep -q "no exported names to compare; .* of .* functions are where its unwind table has them" r.json

"$WEIR" record -q -o t.weir -- swap/prog
"$WEIR" symbols verify --catalog out.wsym --no-search --json t.weir >v.json
equal "verify says so, and the status" "3 segments build-id" \
	"$? $(json v.json '[r["match"] + " " + r["image_match"] for r in j["rows"] if r["path"].endswith("swap/prog")][0]')"
"$WEIR" report modules --catalog out.wsym --json t.weir >modules.json
equal "so does the report of modules" "segments True" \
	"$(json modules.json '[r["match"] + " " + str("ld map" in r["reason"]) for r in j["rows"] if r["path"].endswith("swap/prog")][0]')"
"$WEIR" report flat --catalog out.wsym --json t.weir >flat.json
equal "whose names are in the report" parse "$(json flat.json 'max(j["rows"], key=lambda r: r["base"])["name"]')"
summary() { "$WEIR" report "$@" >summary.txt && "$WEIR" report --json "$@" >summary.json; }
summary --catalog out.wsym t.weir
check "the summary says in its first lines that they are not sure" sh -c \
	'sed -n 2,4p summary.txt | grep -Eq "^  measured by .*% of the stacks are complete; [0-9.]+ % is in functions whose names may be those of another version \(prog: rung segments;"'
check "and does not say that every frame has its name" sh -c '! grep -q "every frame has its name" summary.txt'
equal "their share is that of the functions that have a name by the map" \
	"$(json flat.json 'sum(r["base"] for r in j["rows"] if (r["image"] or "").endswith("/prog") and "+0x" not in r["name"])')" "$(json summary.json 'j["run"]["weakly_named"]')"
check "which is most of the time" test "$(json summary.json 'j["run"]["weakly_named"] > j["total"] / 2')" = True
summary t.weir
equal "what has no name has none that is not sure" "0 0" "$(grep -c 'another version' summary.txt) $(json summary.json 'j["run"]["weakly_named"]')"
"$WEIR" symbols merge -q --no-search -o sure.wsym one
"$WEIR" record -q -o sure.weir -- ./one && summary --catalog sure.wsym sure.weir
equal "names that are sure are not told of" "0 0 True" \
	"$(grep -c 'another version' summary.txt) $(json summary.json 'j["run"]["weakly_named"], any(r["name"] == "parse" for r in j["rows"])' | tr -d '(,)')"

# --- functions of equal extent ---

echo 'int parse(int x) { return x * 5 + 1; }' >a.c
echo 'int solve(int x) { return x * 5 + 2; }' >b.c
cat >api.c <<'C'
int parse(int), solve(int);
int api(int x) { return parse(x) - solve(x); }
int long_one(int x) { int s = 0; for (int i = 0; i < x; i++) s = s * 31 + (x ^ i); return s; }
C
gcc -O1 -fPIC -fvisibility=hidden -c a.c b.c && gcc -O1 -fPIC -c api.c || exit 1
library() { gcc -shared -nostdlib -Wl,--build-id=none -Wl,-Map="$1.map" -o "$@"; }
library equal1.so api.o a.o b.o && library equal2.so api.o b.o a.o
equal "two orders of functions of equal size differ in nothing but names" \
	"$(nm -n equal1.so | awk '$2 ~ /[tT]/ { print $1, $2 }')" "$(nm -n equal2.so | awk '$2 ~ /[tT]/ { print $1, $2 }')"
mkdir equal && strip -o equal/lib.so equal1.so
for text in equal2.so.map equal1.so.map; do
	merge equal/lib.so $text
	equal "$text: exported names confirm it" 0 $rc
	equal "$text: functions that could be exchanged stand on the lowest rung, exported ones on the highest" \
		"api build-id, long_one build-id, parse segments, solve segments" "$("$WEIR" symbols show --catalog out.wsym --symbols --json lib.so >show.json
			json show.json '", ".join(sorted(r["name"] + " " + r["match"] for r in j["rows"]))')"
done
check "the verdict says so" grep -q "2 of 2 agree; 4 of 4 functions are where its unwind table has them; others of the same extents could be in their place" show.json
nm equal2.so >equal.nm && merge equal/lib.so equal.nm
equal "output of nm is judged alike" "api build-id, long_one build-id, parse segments, solve segments" "$("$WEIR" symbols show --catalog out.wsym --symbols --json lib.so >show.json
	json show.json '", ".join(sorted(r["name"] + " " + r["match"] for r in j["rows"]))')"

# --- functions that nothing else could be in the place of ---

echo 'int parse(int x) { return x * 5 + 1 + (x >> 3) * 77; }' >a.c
gcc -O1 -fPIC -fvisibility=hidden -c a.c && library pinned.so api.o a.o b.o && library unpinned.so api.o b.o a.o
mkdir pinned && strip -o pinned/lib.so pinned.so
merge pinned/lib.so pinned.so.map
equal "a function of its own extent is sure, when exported names agree" \
	"api build-id, long_one build-id, parse checksum, solve checksum" "$("$WEIR" symbols show --catalog out.wsym --symbols --json lib.so >show.json
		json show.json '", ".join(sorted(r["name"] + " " + r["match"] for r in j["rows"]))')"
merge pinned/lib.so unpinned.so.map
equal "and the map of another order is refused" 3 $rc
nm -S unpinned.so >unpinned.nm && merge pinned/lib.so unpinned.nm
equal "as is its output of nm" 3 $rc
check "which names a function that does not fit" grep -Eq "functions are where its unwind table has them: (parse|solve) " <(refused)
if command -v ld.lld >/dev/null; then
	gcc -fuse-ld=lld -shared -nostdlib -Wl,--build-id=none -Wl,-Map=lld1.map -o lld1.so api.o a.o b.o
	gcc -fuse-ld=lld -shared -nostdlib -Wl,--build-id=none -Wl,-Map=lld2.map -o lld2.so api.o b.o a.o
	mkdir lld && strip -o lld/lib.so lld1.so
	merge lld/lib.so lld2.map
	equal "so it is with maps of lld: refused" 3 $rc
	merge lld/lib.so lld1.map
	equal "or sure" "parse checksum, solve checksum" "$("$WEIR" symbols show --catalog out.wsym --symbols --json lib.so >show.json
		json show.json '", ".join(sorted(r["name"] + " " + r["match"] for r in j["rows"] if r["name"] in ("parse", "solve")))')"
else
	skip "so it is with maps of lld: ld.lld is not installed"
fi

# --- a map that is added later: the catalog has no unwind table ---

"$WEIR" symbols merge -q --no-search -o later.wsym pinned/lib.so && "$WEIR" symbols add -q --catalog later.wsym pinned.so.map
equal "without an unwind table names of a map stand on the lowest rung" \
	"api build-id, long_one build-id, parse segments, solve segments" "$("$WEIR" symbols show --catalog later.wsym --symbols --json lib.so >show.json
		json show.json '", ".join(sorted(r["name"] + " " + r["match"] for r in j["rows"]))')"
equal "and sections are compared with those that the catalog has" "1 .text" \
	"$("$WEIR" symbols merge -q --no-search -o later.wsym pinned/lib.so && gcc -shared -nostdlib -Wl,--build-id=none -Wl,-Map=longer.map -o longer.so api.o a.o b.o b.o -Wl,-z,muldefs &&
		{ "$WEIR" symbols add -q --catalog later.wsym longer.map >add.txt 2>/dev/null; echo $? "$(grep -o '\.text is 0x' add.txt | cut -d ' ' -f 1)"; })"

# --- a real library: the output of nm belongs to it ---

libc=$(ldd /bin/true | awk '/libc\.so/ { print $3 }')
mkdir real && cp "$libc" real/libc.so.6
nm -D --defined-only "$libc" | sed 's/@.*//' >real.nm
merge real/libc.so.6 real.nm
equal "hand-written code in a real library does not speak against its own names" 0 $rc
