# SPDX-License-Identifier: MIT
# The summary is for people: places instead of stacks, who waits, one clock, no success among the losses.
# Judges: the program's own shape, the tree in JSON, added up here by itself, and the accounts of the kernel.
# weir-test: alone: which paths are the heaviest depends on who gets the processor
. "$ROOT/tests/lib.sh"
gcc -O1 -g -fno-optimize-sibling-calls -o places "$ROOT/tests/fixtures/places.c" -lpthread || exit 1
if ! "$WEIR" record -q -o r.weir -- ./places recursion 2>err.txt; then
	skip "the summary of a real recording: $(head -n 1 err.txt)"
	finish
fi
cat >places.py <<'PY'
# The places of a tree in JSON: {path: base}, and with "waits" the time in the scheduler by the function of the program
# around it.
import collections, json, sys
nodes = {r["id"]: r for r in json.load(open(sys.argv[1]))["rows"]}
START = {"_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "clone", "__clone", "clone3", "__clone3", "start_thread"}
def stack(r):
    names = []
    while r["parent"] is not None:
        names.append(r)
        r = nodes[r["parent"]]
    return names[::-1]
found = collections.Counter()
for r in nodes.values():
    if not r["base"]:
        continue
    frames = stack(r)
    if sys.argv[2] == "waits":
        if frames and frames[-1]["kind"] == "kernel" and frames[-1]["name"] in ("schedule", "__schedule"):
            users = [f["name"] for f in frames if f["kind"] != "kernel"]
            found[users[-1] if users else ""] += r["base"]
        continue
    names = [f["name"] for f in frames]
    while names and names[0] in START:
        names.pop(0)
    place = []
    for n in names:
        if n in place:
            del place[place.index(n) + 1:]
        else:
            place.append(n)
    found[" > ".join(place)] += r["base"]
print(json.dumps(found))
PY
"$WEIR" report summary r.weir >r.txt
"$WEIR" report summary r.weir --json >r.json
"$WEIR" report tree r.weir --json >tree.json
python3 places.py tree.json places >found.json
paths() { sed -n '/^Heaviest paths/,/^$/p' r.txt; }
equal "no path begins with the start of the program or of a thread" "" "$(paths | grep -E '%  (_start|start_thread|__?clone3?|__libc_start[a-z_]*)( |$)')"
equal "all threads and depths are one path: the two callers of the recursion" \
	"recursion > descend (recursive) > spin
work > descend (recursive) > spin" "$(paths | grep -o '[a-z]* > descend.*spin$' | sort)"
cat >compare.py <<'PY'
import json
found = json.load(open("found.json"))
for p in json.load(open("r.json"))["paths"]:
    place = " > ".join(p["stack"][::-1])
    if found.get(place) != p["base"]:
        print(place, p["base"], found.get(place))
PY
equal "its share is the sum over all of them" "" "$(python3 compare.py)"
equal "the heaviest of all places is the first" "True" \
	"$(python3 -c 'import json; print(max(json.load(open("found.json")).values()) == json.load(open("r.json"))["paths"][0]["base"])')"

# Through templates and libraries: what is left out is not what somebody has written.
cat >templates.cc <<'CC'
#include <algorithm>
#include <string>
#include <vector>
__attribute__((noinline)) bool by_end(const std::string &a, const std::string &b)
{
	volatile unsigned long spent = 0;
	for (int i = 0; i < 300; i++) spent += i;
	return a.back() < b.back();
}
__attribute__((noinline)) void arrange(std::vector<std::string> &v) { std::stable_sort(v.begin(), v.end(), by_end); }
int main()
{
	std::vector<std::string> v;
	for (int i = 0; i < 30000; i++) v.push_back(std::to_string(i * 7919 % 30011));
	for (int i = 0; i < 3; i++) arrange(v);
	return v.empty();
}
CC
g++ -O0 -g -o templates templates.cc || exit 1
"$WEIR" record -q -o t.weir -- ./templates
"$WEIR" report summary t.weir >t.txt
path=$(sed -n '/^Heaviest paths/,/^$/p' t.txt | sed -n 2p)
check "the functions of the program are on its path" test "$(grep -cE '%  main > arrange\(.*\) > .*by_end\(' <<<"$path")" -eq 1
check "what was left out between them is counted" grep -qE '\([0-9]+ more\)' <<<"$path"
equal "names have no arguments in their brackets" "" "$(grep -oE '<[^>]*basic_string' <<<"$path")"

# Who waits.
if "$WEIR" record -q -e wall -o w.weir -- ./places waits 2>err.txt; then
	"$WEIR" report summary w.weir --metric wall >w.txt
	"$WEIR" report summary w.weir --metric wall --json >w.json
	"$WEIR" report tree w.weir --metric wall --json >tree.json
	"$WEIR" report flat w.weir --metric wall --json >flat.json
	python3 places.py tree.json waits >waits.json
	check "the kernel's scheduler is where the samples end" test "$(json waits.json 'len(j) > 1')" = True
	equal "the summary does not show it" "" "$(sed '/^Next/,$d' w.txt | grep -w schedule)"
	cat >waits.py <<'PY'
import json
waits = json.load(open("waits.json"))
flat = {}
for r in json.load(open("flat.json"))["rows"]:
    flat[r["name"]] = flat.get(r["name"], 0) + r["base"]
rows = {r["name"]: r["base"] for r in json.load(open("w.json"))["rows"]}
for name in waits:
    if name in rows and rows[name] != flat[name] + waits[name]:
        print(name, rows[name], flat[name], waits[name])
print(sum(n in rows for n in waits) > 1)
PY
	equal "what is waited is that of the function that waits, to the nanosecond" True "$(python3 waits.py)"
	check "the path of the longest wait ends in the function that asked for it" \
		grep -qE '^ *[0-9.]+ %  main > napper > [a-zA-Z_]*nanosleep( > [a-zA-Z_]*nanosleep)?$' w.txt
	check "the other wait has its path, too" grep -qE '%  main > reader > [a-zA-Z_]*read$' w.txt
	"$WEIR" report summary w.weir >cpu.txt
	check "the summary of CPU time says how to see the waits that were recorded" \
		grep -q 'weir report summary w.weir --metric wall  *where it waits' cpu.txt
else
	skip "who waits: $(head -n 1 err.txt)"
fi

# One clock: the parts are those of the whole, for commands that run for less than a fork takes, too.
cat >clock.py <<'PY'
import re, sys
line = next(l for l in open(sys.argv[1]) if " of CPU" in l)
unit = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}
def ns(word):
    m = re.search(word, line)
    return float(m.group(1)) * unit.get(m.group(2), 1) if m else None
total = ns(r"([\d.]+) (\w+) of CPU")
user, system = ns(r"user ([\d.]+) ?(\w*)[,)]"), ns(r"system ([\d.]+) ?(\w*)[,)]")
print("no parts" if user is None else abs(total - user - system) <= 0.011 * max(total, 1) or line)
PY
for i in 1 2 3; do
	"$WEIR" -- true 2>t.txt
	"$WEIR" -- ls -R /usr/include >/dev/null 2>l.txt
	equal "user and system time add up to the CPU time ($i)" "True True" "$(python3 clock.py t.txt) $(python3 clock.py l.txt)"
done
# What nobody waits for is in the event's count alone.
"$WEIR" record -q -o d.weir -- sh -c '(sh -c "i=0; while [ \$i -lt 400000 ]; do i=\$((i + 1)); done; echo >spun.txt" &)
while [ ! -e spun.txt ]; do sleep 0.1; done'
"$WEIR" report d.weir >d.txt
equal "CPU time of processes that nobody waited for has no parts of others" "no parts" "$(python3 clock.py d.txt)"
check "and the samples are not said to stand for more than there was" \
	awk '/ of the CPU time/ { for (i = 1; i < NF; i++) if ($(i + 1) == "%" && $(i + 2) == "of" && $(i + 4) == "CPU" && $i > 130) exit 1 }' d.txt

# What went well is not among what was lost.
cat >deep.c <<'C'
volatile int sink;
__attribute__((noinline)) int down(int n)
{
	volatile char room[200];

	room[n % 200] = 1;
	if (n > 0)
		return down(n - 1) + room[n % 200];
	for (int i = 0; i < 300000000; i++)
		sink += i;
	return 1;
}
int main(void) { return down(1000) == 0; }
C
gcc -O1 -fno-optimize-sibling-calls -o deep deep.c || exit 1
"$WEIR" record -q -o deep.weir -- ./deep
"$WEIR" report deep.weir >deep.txt
"$WEIR" report loss deep.weir >deep.loss
"$WEIR" report tree deep.weir --json >deep.tree
if [ "$(json deep.tree 'max(r["level"] for r in j["rows"]) > 900')" = True ]; then # 200 kB: more than the kernel copies
	equal "deep stacks that were completed are no loss" "" "$(cat deep.txt deep.loss | grep -i 'completed')"
else
	skip "deep stacks that were completed are no loss: the machine does not permit to complete them"
fi

# Advice for those who can follow it.
"$WEIR" record -q -o s.weir -- sleep 0.3
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
	"$WEIR" report s.weir >root.txt
	check "root is told to record waiting" grep -q 'weir record -e wall -- sleep 0.3' root.txt
	mkdir pub && cp "$WEIR" pub/weir-copy && cp s.weir pub && chmod 777 pub && chmod a+x . ..
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env -C "$PWD/pub" "$@"; }
	if as_nobody ./weir-copy report s.weir >nobody.txt 2>err.txt; then
		equal "who may not is not" "" "$(grep -e '-e wall' nobody.txt)"
	else
		skip "who may not is not: nobody cannot enter here"
	fi
else
	skip "advice for those who can follow it: needs root, setpriv and perf_event_paranoid at 2"
fi
