# SPDX-License-Identifier: MIT
# Calls of deterministic programs, counted by hooks and by callgrind: the same number for every
# function that both know.
. "$ROOT/tests/lib.sh"
hook_fixtures=$ROOT/tests/fixtures/hooks
command -v valgrind >/dev/null || { skip "calls as callgrind counts them: no valgrind here" && finish; }

# count SENTENCE GLOBS IMAGE LEAST COMMAND...: compares the functions of the image (a part of its path);
# at least so many of them must have been called.
count() {
	local sentence=$1 globs=$2 image=$3 least=$4
	shift 4
	rm -f callgrind.out
	valgrind -q --tool=callgrind --callgrind-out-file=callgrind.out "$@" >out.callgrind 2>/dev/null
	"$WEIR" record -q --events "$globs" -o t.weir -- "$@" >out.weir 2>err.txt
	equal "$sentence: the same output" "$(md5sum <out.callgrind)" "$(md5sum <out.weir)"
	"$WEIR" report flat t.weir --json >flat.json 2>err.txt
	[ $? -le 3 ] || { not_ok "$sentence: the trace can be read" && return; }
	"$WEIR" report hooks t.weir --json >hooks.json
	python3 - "$sentence" "$image" "$least" <<'PY'
import collections, json, re, sys
sentence, image, least = sys.argv[1], sys.argv[2], int(sys.argv[3])

# callgrind.out: (id) name is said once, then (id) alone; an object stays until the next one is named.
names, want = {"ob": {}, "fn": {}}, collections.Counter()
def name(kind, text):
    m = re.match(r"\((\d+)\)(?: (.*))?$", text)
    if not m:
        return text
    if m.group(2) is not None:
        names[kind][m.group(1)] = m.group(2)
    return names[kind].get(m.group(1), "?")
ob = cob = cfn = None
for line in open("callgrind.out", errors="replace"):
    key, _, value = line.rstrip("\n").partition("=")
    if key == "ob":
        ob = name("ob", value)
    elif key == "fn":
        name("fn", value)
        cob = ob
    elif key == "cob":
        cob = name("ob", value)
    elif key == "cfn":
        cfn = name("fn", value)
    elif key == "calls":
        if image in cob:
            want[re.sub(r"'\d+$", "", cfn).split("@")[0]] += int(value.split()[0])
        cob = ob

got, hooked = collections.Counter(), {}
for row in json.load(open("flat.json"))["rows"]:
    if row["calls"] and image in (row["image"] or ""):
        got[row["name"].split("(")[0].split("@")[0]] += row["calls"]
for row in json.load(open("hooks.json"))["rows"]:
    hooked[row["function"].split("(")[0].split("@")[0]] = row["method"], row["reason"]
both = [f for f in want if hooked.get(f, ("refused", ""))[0] != "refused"]
wrong = {f: (want[f], got[f], hooked[f]) for f in both if want[f] != got[f]}
n = sum(want[f] for f in both)
ok = not wrong and len(both) >= least
print("ok" if ok else "not ok", f"{sentence}: {n} calls of {len(both)} functions, as callgrind counts them")
for f, (a, b, how) in sorted(wrong.items())[:20]:
    print(f"  {f}: callgrind {a}, weir {b}, {how}")
left_out = sorted(f for f in want if f not in both)
if not ok:
    print("  not hooked:", [(f, want[f], hooked.get(f)) for f in left_out][:20])
PY
}

gcc -w -O2 -o shapes "$hook_fixtures/shapes.c" && count "functions of odd shapes" '*' /shapes 25 ./shapes
if gcc -w -O2 -o squeeze "$hook_fixtures/squeeze.c" -lz 2>err.txt; then
	count "zlib" 'libz.so*:*,*' libz 8 ./squeeze
else
	skip "zlib: its headers are not here"
fi
# Under sanitizers the recorder is the same: two programs are enough.
[ -z "$WEIR_SAN" ] || finish
gcc -w -O2 -o deep "$hook_fixtures/deep.c" && count "recursions and tail calls" '*' /deep 6 ./deep 3000
gcc -w -O2 -o compiled_in "$hook_fixtures/compiled_in.c" && count "a plain program" '*' /compiled_in 5 ./compiled_in
head -c 300000 "$ROOT/docs/format/trace.md" >text.dat
for i in 1 2 3 4 5 6; do cat text.dat; done >more.dat
count "bzip2" 'libbz2*:*,*' libbz2 4 bzip2 -c more.dat
count "sqlite3" 'libsqlite3*:*' libsqlite3 40 sqlite3 :memory: "create table t(a,b); insert into t values(1,2),(3,4); select sum(a*b) from t;"
