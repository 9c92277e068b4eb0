# SPDX-License-Identifier: MIT
# weir symbols verify: every rung of the ladder, every veto, ties and nothing at all, for one library
# of a recorded program.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/fixtures/symbol_libraries.sh"

cat >work.c <<'C'
static __attribute__((noipa)) unsigned hidden_step(unsigned x) { return x * 1664525u + ADD; }
__attribute__((noipa)) unsigned work(unsigned n)
{
	unsigned x = 1;
	while (n--)
		x = hidden_step(x);
	return x;
}
C
cat >host.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char **argv)
{
	void *h = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
	unsigned (*work)(unsigned) = h ? (unsigned (*)(unsigned))dlsym(h, "work") : 0;
	unsigned x = 0;
	if (!work)
		return puts("no library") < 0 || 1;
	for (clock_t end = clock() + CLOCKS_PER_SEC / 8; clock() < end;)
		x += work(100000);
	return x == 1;
}
C
gcc -O1 -o host host.c -ldl || exit 1
make_work() { gcc -O1 -g -fPIC -shared -nostdlib -DADD=${add:-1013904223} -o "$@" work.c; }
mkdir run kept
# The versions: with and without a build-id, two of each.
make_work kept/id.so -Wl,--build-id && add=1013904225 make_work kept/id2.so -Wl,--build-id
make_work kept/plain.so -Wl,--build-id=none && add=1013904225 make_work kept/plain2.so -Wl,--build-id=none
lib=$PWD/run/libwork.so

record() { # TRACE FILE: with that file as run/libwork.so
	cp "$2" run/libwork.so && "$WEIR" record -q -o "$1" -- ./host "$lib"
}
if ! record id.weir kept/id.so; then
	skip "verification of a trace: nothing can be recorded here"
	finish
fi
verify() { # TRACE OPTIONS: rc, out.json, row of the library
	"$WEIR" symbols verify --json "$@" >out.json
	rc=$?
	python3 - "$lib" >row.json <<'PY'
import json, sys
print(json.dumps([r for r in json.load(open("out.json"))["rows"] if r["path"] == sys.argv[1]][0]))
PY
}
rung() { echo "$rc $(json row.json '"%s %d" % (j["match"], j["tied"])')"; }
reason() { json row.json 'j["reason"]'; }
# verdict, rung and reason of candidate N
candidate() { json row.json "'%(verdict)s %(match)s %(reason)s' % j['candidates'][$1]"; }
has() { # SENTENCE PATTERN TEXT
	if grep -Eq -- "$2" <<<"$3"; then ok "$1"; else
		not_ok "$1"
		printf 'expected: %s\nhave: %s\n' "$2" "$3"
	fi
}

# --- exact identity ---

verify id.weir
equal "the file that ran stands on rung build-id" "0 build-id 0" "$(rung)"
equal "all used modules are counted" True "$(json out.json 'j["modules"] == j["verified"] >= 3')"
has "the reason names the file and the build-id" "file '$lib': build-id $(build_id kept/id.so), as in " "$(reason)"
"$WEIR" symbols verify id.weir >text.txt
has "in text: rung, kind, path" "^build-id  elf    $lib$" "$(cat text.txt)"
has "the chosen candidate" "^    chosen file '$lib': build-id" "$(cat text.txt)"
has "and a last line that counts" "^([0-9]+) of \1 modules stand on rung build-id or checksum$" "$(tail -n 1 text.txt)"
equal "-q says nothing when all is well" "" "$("$WEIR" symbols verify -q id.weir)"
cp id.weir trace.weir
equal "the default is trace.weir" "$(cat text.txt)" "$("$WEIR" symbols verify)"

# --- another build-id ---

cp kept/id2.so run/libwork.so
verify id.weir
equal "a file with another build-id is refused, and the status says so" "3 none 0" "$(rung)"
has "with both build-ids" "refused none build-id $(build_id kept/id.so) wanted, $(build_id kept/id2.so) in $lib" "$(candidate 0)"
has "the module, what was looked for and where is named" "'$lib' \(build-id $(build_id kept/id.so)\): no symbols; .*; no catalog" "$(reason)"
has "-q shows it" "^none      elf    $lib$" "$("$WEIR" symbols verify -q id.weir)"
"$WEIR" symbols merge -q --no-search -o both.wsym kept/id.so kept/id2.so
verify id.weir --catalog both.wsym
equal "a merged symbol file that has the version helps" "0 build-id 0" "$(rung)"
equal "the right one of two" "$("$WEIR" symbols show --json --catalog both.wsym kept/id.so >s.json; json s.json 'j["id"]')" "$(json row.json 'j["image"]')"
has "the file that is there now is still refused" "refused none build-id" "$(json row.json '"\n".join("%(verdict)s %(match)s %(reason)s" % c for c in j["candidates"] if c["where"].startswith("file"))')"
"$WEIR" symbols merge -q --no-search -o wrong.wsym kept/id2.so && cp kept/id2.so run/libwork.so
verify id.weir --catalog wrong.wsym
equal "one that has only the other does not" "3 none 0" "$(rung)"
equal "what the recording found is told, too" build-id "$(json row.json 'j["recorded"]["match"]')"
"$WEIR" report modules id.weir --catalog wrong.wsym --json >m.json
equal "reports keep the rung of the recording" build-id "$(json m.json "[r['match'] for r in j['rows'] if r['path'] == '$lib'][0]")"

# --- no build-id: the content ---

record plain.weir kept/plain.so
verify plain.weir
equal "without a build-id the content of the code is the identity" "0 build-id 0" "$(rung)"
has "by its hash" "content hash 0x[0-9a-f]{16}, as in " "$(reason)"
touch -d '2001-02-03 04:05:06' run/libwork.so kept/plain.so kept/plain2.so
verify plain.weir
equal "another time stamp does not matter then" "0 build-id 0" "$(rung)"
cp -p kept/plain.so run/libwork.so && "$WEIR" record -q -o stamp.weir -- ./host "$lib"
cp -p kept/plain2.so run/libwork.so
equal "two versions of equal size and time stamp" "$(stat -c '%s %Y' kept/plain.so)" "$(stat -c '%s %Y' run/libwork.so)"
verify stamp.weir
equal "with other content are told apart" "3 none 0" "$(rung)"
has "by their hashes" "refused none content hash 0x([0-9a-f]{16}) wanted, 0x[0-9a-f]{16} in $lib" "$(candidate 0)"
make_work run/libwork.so -Wl,--build-id=none -DUNUSED -Wl,--section-start=.text=0x4000
verify plain.weir
equal "a replaced file at the same path is refused" "3 none 0" "$(rung)"
cp kept/plain.so run/libwork.so && strip run/libwork.so
verify plain.weir
equal "the same code, but stripped, is the same" "0 build-id 0" "$(rung)"

# --- weaker rungs: debug files have neither code nor, here, a build-id ---

objcopy --only-keep-debug kept/plain.so kept/libwork.debug && objcopy --only-keep-debug kept/plain2.so kept/libwork2.debug
rm run/libwork.so && "$WEIR" symbols merge -q --no-search -o segments.wsym kept/libwork.debug
verify plain.weir --catalog segments.wsym
equal "equal segments alone are a weak match" "3 segments 0" "$(rung)"
has "which says what is equal and what is not" "executable segments? equal in size and flags: content hash 0x[0-9a-f]+ wanted, .* in " "$(reason)"
# The two versions differ in a constant, which debug information does not have: a section tells them apart.
mkdir -p twin && objcopy --add-section .other=lib.c kept/libwork2.debug twin/libwork.debug
"$WEIR" symbols merge -q --no-search -o tie.wsym kept/libwork.debug twin/libwork.debug
verify plain.weir --catalog tie.wsym
equal "two versions on one rung are a tie" "3 segments 1" "$(rung)"
has "which is said" "ambiguous: 1 other candidate of another version fits as well" "$(reason)"
equal "both are shown" "chosen equal" "$(json row.json '" ".join(c["verdict"] for c in j["candidates"])')"

# The library without the bytes of its code at its own path: so that only path, size and time can speak.
cat >hollow.py <<'PY'
import struct, sys
elf = bytearray(open(sys.argv[1], "rb").read())
offset, size, n = (struct.unpack_from(f, elf, at)[0] for f, at in (("<Q", 0x20), ("<H", 0x36), ("<H", 0x38)))
for i in range(offset, offset + n * size, size):
    kind, flags = struct.unpack_from("<II", elf, i)
    if kind == 1 and flags & 1:
        struct.pack_into("<Q", elf, i + 0x20, 0)
open(sys.argv[2], "wb").write(elf)
PY
touch -d '2011-01-01' kept/plain.so && size=$(stat -c %s kept/plain.so)
cp -p kept/plain.so run/libwork.so && "$WEIR" record -q -o path.weir -- ./host "$lib"
python3 hollow.py kept/plain.so run/libwork.so
verify path.weir
equal "the same path and equal segments stand on rung path" "3 path 0" "$(rung)"
has "and the other time stamp is told" "path and [0-9]+ segments equal, but another time stamp" "$(reason)"
touch -d '2011-01-01' run/libwork.so
verify path.weir
equal "with size and time stamp it is rung checksum, which is good enough" "0 checksum 0" "$(rung)"
has "with what is equal" "size $size, time stamp and [0-9]+ segments equal" "$(reason)"
truncate -s +1 run/libwork.so
verify path.weir
equal "another size at the same path is a replaced file" "3 none 0" "$(rung)"
has "and called so" "same path, but size $size wanted, $((size + 1)) in .*: the file was replaced" "$(candidate 0)"

# --- other classes, nothing at all ---

rm run/libwork.so
verify id.weir
equal "nothing at all is rung none" "3 none 0" "$(rung)"
has "with where it was looked for" "'$lib' \(build-id [0-9a-f]+\): no symbols; no catalog; .*No such file" "$(reason)"
if make_work narrow.so -m32 -Wl,--build-id=none 2>/dev/null; then
	mkdir -p narrow && mv narrow.so narrow/libwork.so
	"$WEIR" symbols merge -q --no-search -o narrow.wsym narrow/libwork.so
	verify plain.weir --catalog narrow.wsym
	has "another class is a veto" "refused none (machine 62 wanted, machine 3 in|64-bit wanted, 32-bit in)" "$(candidate 0)"
else
	skip "another class is a veto: gcc -m32 does not work here"
fi
cp kept/id.so run/libwork.so
verify id.weir --no-search --catalog wrong.wsym
equal "--no-search asks the merged symbol file alone" "3 none 0" "$(rung)"
fails "a trace that is not there is a failure" 1 "no.weir" "$WEIR" symbols verify no.weir
fails "so is a catalog that was named and is not there" 1 "'no.wsym'" "$WEIR" symbols verify id.weir --catalog no.wsym
fails "two traces are wrong usage" 2 "at most one trace" "$WEIR" symbols verify id.weir plain.weir
missing=$(python3 - "$ROOT/docs/man/weir-symbols.1" <<'PY'
import json, re, sys
words = set(re.findall(r"[a-z0-9_]+", open(sys.argv[1]).read()))
j = json.load(open("out.json"))
print(" ".join(sorted((set(j) | set(j["rows"][0]) | set(j["rows"][0]["candidates"][0] if j["rows"][0]["candidates"] else [])) - words)))
PY
)
equal "the manual has every field" "" "$missing"
