# SPDX-License-Identifier: MIT
# Code that is made at run time: its names and lines come from the compiler's own jitdump, which the
# process maps, or from a perf map.
# weir-test: alone: samples have to be as many as the time says
. "$ROOT/tests/lib.sh"
command -v node >/dev/null || {
	skip "run-time code of a real compiler is named: node is not here"
	finish
}
cat >work.js <<'JS'
function hot(n) {
	let s = 0;
	for (let i = 0; i < n; i++)
		s = (s * 31 + i) % 1000003; /* line 4 */
	return s;
}
let t = 0;
for (let k = 0; k < 300; k++)
	t += hot(300000);
console.log(t);
JS
plain=$(node work.js)
"$WEIR" record -q -o dump.weir -- node --perf-prof work.js >out.txt
equal "the program's output is its own" "$plain" "$(cat out.txt)"
"$WEIR" report samples dump.weir --json >samples.json
cat >jit.py <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
hot = [s["stack"][-1] for s in rows if "hot " in s["stack"][-1]["name"]]
assert len(hot) * 2 > len(rows), "%d of %d samples are in hot" % (len(hot), len(rows))
if sys.argv[2] == "lines":
    lines = {f["line"] for f in hot}
    assert lines & {3, 4}, lines
    # The file is not compared: node 20 writes the name of a script after it has freed it.
PY
check "a jitdump names the functions, and knows their lines" python3 jit.py samples.json lines
"$WEIR" report modules dump.weir --json >modules.json
equal "the module says where its names are from" "path True" \
	"$(json modules.json '" ".join(str(x) for r in j["rows"] if r["kind"] == "jit" for x in (r["match"], "jit-" in r["reason"]))')"
"$WEIR" record -q -o map.weir -- node --perf-basic-prof work.js >/dev/null
"$WEIR" report samples map.weir --json >samples.json
check "a perf map names them as well" python3 jit.py samples.json names
"$WEIR" report threads map.weir --json >threads.json
rm -f "/tmp/perf-$(json threads.json 'j["rows"][0]["pid"]').map"
