# SPDX-License-Identifier: MIT
# Costs and calls are charged to the right callers: programs whose every function costs a known number of
# instructions, whatever way their calls end.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

# tree NAME ARGUMENTS...: the calls of the run below main, as name:calls(children), with foreign functions left out,
# what was charged to no call, and the functions of crtbegin.o.
tree() {
	local name=$1
	shift
	rm -f counted/"$name".weir*
	(cd counted && timeout 60 ./"$name" "$@") >/dev/null
	"$WEIR" report tree counted/"$name".weir --json >tree.json 2>/dev/null
	"$WEIR" report flat counted/"$name".weir --json >flat.json 2>/dev/null
	python3 - <<'PY'
import json
rows = json.load(open("tree.json"))["rows"]
below = {}
for r in rows:
    below.setdefault(r["parent"], []).append(r)
def text(r):
    if r["name"] in ("[start-up]", "frame_dummy", "__do_global_dtors_aux"):
        return ""
    inner = " ".join(sorted(filter(None, map(text, below.get(r["id"], [])))))
    if r["kind"] == "thread" or not r["image"] or r["name"] in ("_start", "main"):
        return inner
    return f"{r['name'].split('(')[0]}:{r['calls']}" + (f"({inner})" if inner else "")
print(" ".join(filter(None, (text(r) for r in below[None]))))
PY
}

build attribution attribution.c -O2 -fno-reorder-functions || exit 1

# --- golden/average.txt as a program
tree attribution average >tree.txt
expected=$(sed -n 's/^\(start\|main\|[A-D]\) *\([0-9.]*\) \/ *\([0-9.]*\).*/\1 \2 \3/p' "$ROOT/tests/golden/average.txt")
equal "costs are charged to the caller that caused them, not shared by calls" "$expected" "$(python3 - <<'PY'
import json
rows = {r["name"]: r for r in json.load(open("flat.json"))["rows"]}
for name in ("start", "main", "A", "B", "C", "D"):
    r = rows["main_part" if name == "main" else name]
    print(name, f"{r['base'] / 200000:.1f} {r['cum'] / 200000:.1f}")
PY
)"
equal "the tree of it" "start:1(main_part:1(A:1(B:1(D:40) C:1(D:40))))" "$(cat tree.txt)"
"$WEIR" report arcs counted/attribution.weir --json >arcs.json
equal "three quarters of D are B's" "B 40 30.0, C 40 10.0" "$(python3 - <<'PY'
import json
d = next(r for r in json.load(open("arcs.json"))["rows"] if r["name"] == "D")
print(", ".join(f"{p['name']} {p['calls']} {p['cum'] / 200000:.1f}" for p in sorted(d["parents"], key=lambda p: p["name"])))
PY
)"
"$WEIR" report flat counted/attribution.weir --metric calls --json >calls.json
equal "--metric calls adds up calls" "80 80 40" \
	"$(json calls.json '" ".join(str(next(r for r in j["rows"] if r["name"] == n)[c]) for n, c in (("D", "base"), ("D", "cum"), ("B", "cum")))' | awk '{ print $1, $2, $3 - 1 }')"

# --- ways to call and to leave
equal "what a tail call costs is below the function that made it" "tail_a:1(tail_b:2(tail_c:2))" "$(tree attribution tail)"
equal "a tail call's work is the callee's, to 1 %" "20 10 1" \
	"$(for f in tail_c tail_b tail_a; do base_of $f; done | awk '{ print int($1 / 200) }' | xargs)"
equal "recursion: each level is a node" \
	"recurses:1(leaf:1 $(for i in 1 2 3 4 5 6 7 8; do printf 'recurses:1(leaf:1 '; done)recurses:1(leaf:1))))))))))" \
	"$(tree attribution recursion)"
equal "recursion: a function's cost with its callees is not counted twice" True \
	"$(json flat.json '[r["cum"] for r in j["rows"] if r["name"] == "recurses"][0] <= j["total"]')"
equal "longjmp: what comes behind it is the setter's" \
	"calls_sets_place:1(after_jump:1 sets_place:10(after_jump:10 jumps:10(jumps:10(jumps:10(jumps:10)))))" \
	"$(tree attribution longjmp)"
tree attribution signal >tree.txt
check "a handler interrupts, and its caller goes on" grep -Eq '^(handler:5\(leaf:5\) )?raises:5\(after_jump:5( handler:5\(leaf:5\))?\)$' tree.txt
equal "a handler's work is its own" "4 15" "$(echo $(($(base_of handler) / 1000)) $(($(base_of after_jump) / 200)))"
tree attribution signal_stack >tree.txt
check "a handler on a stack of its own" grep -Eq '^(handler:5\(leaf:5\) )?raises:5\(after_jump:5( handler:5\(leaf:5\))?\)$' tree.txt
tree attribution coroutine >tree.txt
equal "coroutines: the calls of each stack are apart" "schedules:1(after_jump:7) yields:1(leaf:7)" "$(cat tree.txt)"

build thrower attribution.cc -O2 &&
	equal "exceptions: what comes behind the catch is the catcher's" \
		"calls_catches:1(after_catch:1 catches:10(after_catch:20 throws:10(throws:10(throws:10(throws:10)))))" \
		"$(tree thrower)"

# --- call sites
equal "call sites are not told apart unless asked" "caller:1(callee:2)" "$(tree attribution sites)"
export WEIR_SITES=1
equal "call sites are told apart on request" "caller:1(callee:1 callee:1)" "$(tree attribution sites)"
equal "each has its own cost" "2 10" \
	"$(json tree.json '" ".join(sorted((str(r["base"] // 1000) for r in j["rows"] if r["name"] == "callee"), key=int))')"
"$WEIR" report tree counted/attribution.weir >tree.txt
check "sites are labelled by their offset in the caller" [ "$(grep -cE 'callee \[caller\+0x[0-9a-f]+\]' tree.txt)" -eq 2 ]
unset WEIR_SITES

# --- the same by other compilers
for c in "gcc -O0" "gcc -Os" "clang -O2"; do
	command -v "${c%% *}" >/dev/null || { skip "$c: not installed" && continue; }
	more || break
	COMPILER=${c%% *} build other attribution.c "${c#* }" || continue
	equal "$c: a longjmp's tree" \
		"calls_sets_place:1(after_jump:1 sets_place:10(after_jump:10 jumps:10(jumps:10(jumps:10(jumps:10)))))" \
		"$(tree other longjmp)"
	tree other average >/dev/null
	equal "$c: B takes 50 and C 40" "50.0 40.0" \
		"$(json flat.json '" ".join("%.1f" % (next(r["cum"] for r in j["rows"] if r["name"] == n) / 200000) for n in "BC")')"
done

# --- trees without end: recursion is folded, calls and callers stay exact
build mutual mutual.c -O2
# arcs_of FILE NAME...: who of them, and main, called whom how often, as the program prints it
arcs_of() {
	"$WEIR" report arcs "$1" --json >arcs.json
	python3 - "${@:2}" <<'PY'
import json, sys
names = sys.argv[1:]
for r in sorted(json.load(open("arcs.json"))["rows"], key=lambda r: r["name"]):
    for caller in names + ["main"] if r["name"] in names else ():
        calls = sum(p["calls"] for p in r["parents"] if p["name"] == caller)
        if calls:
            print(r["name"], "by", caller, calls)
PY
}
for level in O1 O2; do
	build tails_out tails_out.c -$level && same "jumps out of counted code (-$level)" tails_out
	equal "what is called behind a jump to code that is not counted is the caller's child (-$level)" \
		"$(cat plain/out.txt)" "$(arcs_of counted/tails_out.weir inner jumps_in jumps_out)"
done
for depth in 12 22; do
	same "mutual recursion $depth deep" mutual $depth
	equal "mutual recursion $depth deep: calls by caller are those that the program has counted" \
		"$(cat plain/out.txt)" "$(arcs_of counted/mutual.weir east north south west)"
done
check "the tree of 8,388,607 contexts has a bounded number of nodes" [ "$(stat -c %s counted/mutual.weir)" -lt 20000000 ]
"$WEIR" report loss counted/mutual.weir >loss.txt
check "folded recursion is told" grep -q "1  a call tree has over 65536 nodes" loss.txt
"$WEIR" report counted/mutual.weir >summary.txt
check "and the summary says that something is to be known" grep -q "65536 nodes" summary.txt
