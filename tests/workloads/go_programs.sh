# SPDX-License-Identifier: MIT
# Go programs whose symbols and debug information were stripped: names, callers and lines come from Go's own
# table. The judges are the same program with its symbols, go tool nm and go tool addr2line.
# weir-test: alone: shares of samples depend on the load
# weir-test: slow: Go's library is compiled again for a position-independent program
. "$ROOT/tests/lib.sh"
command -v go >/dev/null || {
	skip "stripped Go programs: go is not installed"
	finish
}
export GOCACHE=$PWD/cache GO111MODULE=off GOFLAGS= HOME=$PWD
# built NAME SOURCE OPTIONS...
built() {
	local name=$1 source=$2
	shift 2
	go build -o "$name" "$@" "$ROOT/tests/fixtures/go/$source" 2>"$name.err"
}
built plain work.go && built stripped work.go -ldflags='-s -w' || {
	skip "stripped Go programs: $(head -n 1 plain.err stripped.err)"
	finish
}

# whole SENTENCE TRACE PERMILLE
whole() {
	"$WEIR" report loss "$2" --json >loss.json
	local text
	text=$(json loss.json "'%d of %d' % (j['loss']['stacks_complete'], j['loss']['stacks'])")
	check "$1 ($text)" python3 -c 'import sys; a, b = map(int, sys.argv[1].split(" of ")); sys.exit(not (b >= 100 and a * 1000 >= b * int(sys.argv[2])))' "$text" "$3"
	[ "$(json loss.json "j['loss']['stacks_complete'] < j['loss']['stacks']")" = False ] || json loss.json "j['loss']['reasons']"
}
# chains TRACE NS: the callers of main's functions that have more than this, outermost first, once each
chains() {
	"$WEIR" report tree "$1" --json >"$1.json"
	python3 - "$1.json" "$2" <<'PY'
import json, sys
path, seen, least = [], set(), float(sys.argv[2])
for r in json.load(open(sys.argv[1]))["rows"]:
    del path[r["level"]:]
    path.append(r["name"])
    if r["name"].startswith("main.") and "grow" not in r["name"] and "sum" not in r["name"]:
        if r["cum"] > least: # symbols of assembler functions have a suffix
            seen.add(" ".join(path[1:]).replace(".abi0", ""))
print("\n".join(sorted(seen)))
PY
}

# stripped_one NAME COMPLETE_PERMILLE: what is said of stripped programs, whatever their kind
stripped_one() {
	local name=$1
	"$WEIR" record -q -F 1999 -o "$name.weir" -- "./$name" 60 >"$name.out" 2>"$name.err"
	equal "$name: the program prints what it prints alone" "$(./"$name" 60)" "$(cat "$name.out")"
	whole "$name: stacks are complete" "$name.weir" "$2"
	equal "$name: every Go frame has a name" 0 \
		"$(json loss.json "sum(v for k, v in j['loss']['reasons'].items() if 'no symbol' in k)")"
	"$WEIR" report flat "$name.weir" --json >flat.json
	check "$name: main.spin is found below main.worker and main.main" test "$(json flat.json \
		"all(any(r['name'] == n and r['cum'] > 0 for r in j['rows']) for n in ('main.spin', 'main.worker', 'main.main', 'runtime.goexit'))")" = True
}
stripped_one stripped 985
"$WEIR" record -q -F 1999 -o plain.weir -- ./plain 60 >/dev/null 2>&1
whole "the program with symbols: stacks are complete" plain.weir 985
# What has 10 ms in one run is seen in the other, too, however little it has there.
missing() { chains $1 1e7 >often.txt && chains $2 0 >ever.txt && comm -23 often.txt ever.txt; }
check "there are such paths" test "$(chains plain.weir 1e7 | wc -l)" -ge 2
equal "callers are those of the program with symbols" " " "$(missing plain.weir stripped.weir) $(missing stripped.weir plain.weir)"

# Names and lines at random addresses: those of Go's tools, which read the program with symbols.
"$WEIR" symbols merge -q -o s.cat stripped 2>err.txt
"$WEIR" symbols show stripped --catalog s.cat --json >show.json
equal "the source is called gopclntab" "['gopclntab']" "$(json show.json "[s['kind'] for s in j['sources']]")"
go tool nm -size plain >nm.txt
cat >judge.py <<'PY'
import json, random, re, subprocess, sys
functions = []
for line in open("nm.txt"):
    addr, size, kind, name = line.split(None, 3)
    if kind in "Tt" and int(size) and name.strip() not in ("runtime.text", "runtime.etext", "go.buildid", "go:buildid"):
        functions.append((int(addr, 16), int(size), name.strip()))
random.seed(7)
asked = [(a + (0 if i % 2 else random.randrange(size)), name) for i, (a, size, name) in enumerate(functions * 2)]
text = "".join("%#x\n" % a for a, _ in asked)
weir = subprocess.run([sys.argv[1], "symbols", "resolve", "-", "--image", "stripped", "--catalog", "s.cat", "--json"],
                      input=text, capture_output=True, text=True).stdout
rows = json.loads(weir)["rows"]
judge = subprocess.run(["go", "tool", "addr2line", "plain"], input=text, capture_output=True, text=True).stdout.split("\n")
names = lines = 0
for i, ((addr, name), row) in enumerate(zip(asked, rows)):
    level = (row.get("levels") or [{}])[0]
    # Symbols of assembler functions have a suffix, and those of generic ones arguments, that Go's table has not.
    if level.get("name") != re.sub(r"\[.*\]", "[...]", name.removesuffix(".abi0")):
        names += 1
        print("name of %#x: %s instead of %s" % (addr, level.get("name"), name))
    if "%s:%s" % (level.get("file"), level.get("line")) != judge[2 * i + 1]:
        lines += 1
        print("line of %#x: %s:%s instead of %s" % (addr, level.get("file"), level.get("line"), judge[2 * i + 1]))
n = len(asked)
print("ok" if len(rows) == n > 2000 and not names else "not ok", f"{n} addresses have the names of go tool nm")
print("ok" if len(rows) == n > 2000 and not lines else "not ok", f"{n} addresses have the lines of go tool addr2line")
PY
python3 judge.py "$WEIR" >judged.txt
grep -v '^name of\|^line of' judged.txt
grep '^name of\|^line of' judged.txt | head -n 10

# Stepping by a name that only Go's table has, with its lines.
if "$WEIR" steps -q --around main.spin --max 5000 -o steps.weir -- ./stripped 0 >/dev/null 2>steps.err; then
	"$WEIR" report steps steps.weir --limit 200 >steps.txt 2>&1
	check "steps are told with Go's names and lines" grep -Eq 'main\.spin\+0x[0-9a-f]+\) +work\.go:[0-9]+' steps.txt
	"$WEIR" report source main.spin steps.weir --json >source.json 2>err.txt
	first=$(grep -n '^func spin' "$ROOT/tests/fixtures/go/work.go" | cut -d: -f1)
	equal "report source shows the lines of the loop in main.spin" "True True" \
		"$(json source.json "' '.join(str(any(r.get('line') == $first + k for r in j['rows'])) for k in (1, 2))")"
else
	not_ok "steps are told with Go's names and lines: $(head -n 1 steps.err)"
fi

if built pie work.go -buildmode=pie -ldflags='-s -w'; then
	stripped_one pie 985
else
	skip "a position-independent Go program: $(head -n 1 pie.err)"
fi

# Without section headers nothing but the segments is left.
cp stripped bare
printf '\0\0\0\0\0\0\0\0' | dd of=bare bs=1 seek=40 conv=notrunc 2>/dev/null
printf '\0\0\0\0' | dd of=bare bs=1 seek=60 conv=notrunc 2>/dev/null
stripped_one bare 985

# Through C and back: what C was called for is on another stack, and that is said.
for kind in default pie; do
	if ! built "cgo-$kind" through_c.go -buildmode=$kind -ldflags='-s -w'; then
		skip "$kind, through cgo: $(head -n 1 "cgo-$kind.err")"
		continue
	fi
	"$WEIR" record -q -o c.weir -- "./cgo-$kind" >c.out 2>c.err
	equal "$kind, through cgo: the program prints what it prints alone" "$(./"cgo-$kind")" "$(cat c.out)"
	"$WEIR" report loss c.weir --json >loss.json
	check "$kind, through cgo: 99 % of the stacks are complete, on another stack, or deeper than can be copied" test "$(json loss.json \
		"(j['loss']['stacks_complete'] + sum(v for k, v in j['loss']['reasons'].items() if k.startswith(('caller on another', 'stack deeper')))) * 100 >= j['loss']['stacks'] * 99")" = True
	"$WEIR" report tree c.weir --json >tree.json
	python3 - "$kind" <<'PY'
import json, sys
path, c_time, callback = [], 0, 0
for r in json.load(open("tree.json"))["rows"]:
    del path[r["level"]:]
    path.append(r["name"])
    if path[1:2] == ["[caller on another stack, which is not copied]"] and path[2:3] == ["runtime.asmcgocall"]:
        c_time += r["base"]
    if r["name"] == "main.spin" and path[1] == "runtime.goexit" and "main.callsBack" in path and "main.main" in path:
        callback += r["base"]
print("ok" if c_time > 5e7 else "not ok", sys.argv[1] + ", through cgo: C code is below asmcgocall, whose caller is said to be on another stack")
print("ok" if callback > 5e7 else "not ok", sys.argv[1] + ", through cgo: Go code that C calls is below what called C")
PY
done

# With C in it, its linker gives Go's table no section of its own: it is a Go program all the same.
if built named through_c.go -buildmode=pie; then
	"$WEIR" probe --dry-run 'uretprobe:./named:main.callsC { @ = count(); }' >probe.txt 2>&1
	check "a position-independent Go program with C gets no return probes" grep -q 'a Go program must not have return probes' probe.txt
	"$WEIR" record -q -o n.weir -- ./named >/dev/null 2>&1
	whole "with symbols, through cgo: the stacks are walked by Go's table" n.weir 750
fi
