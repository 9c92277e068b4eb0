# SPDX-License-Identifier: MIT
# Where JVMs are, and what else is asked of them: in a container, of another user, several in one recording of the
# whole machine; their classes, their waits, Ctrl-C.
# weir-test: alone: shares of samples depend on the load
# weir-test: once: takes long; java_shapes.sh records with sanitizers
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"
reason=$(why_no_java)
[ -z "$reason" ] || {
	skip "JVMs in other places: $reason"
	finish
}
build_shapes classes || { not_ok "the program can be built" && finish; }
# Others may not see the folder that tests run in.
public=$(mktemp -d) && trap 'rm -rf "$public"' EXIT
chmod 777 "$public" && cp -r classes "$public" && chmod -R a+rX "$public/classes" && cd "$public" || finish

# has_java SENTENCE TRACE: the samples of Java's main thread reach main, and what they do has its names
has_java() {
	"$WEIR" report samples "$2" --json >samples.json 2>report.txt
	local n
	n=$(json samples.json "sum(any('shapes.Shapes.part(' in f['name'] for f in r['stack']) for r in j['rows'])")
	check "$1 ($n)" test "$n" -ge 30
	equal "$1: whatever is below part() is below main()" 0 "$(json samples.json "sum(any('shapes.Shapes.part(' in f['name'] for f in r['stack']) and not any('shapes.Shapes.main(' in f['name'] for f in r['stack']) for r in j['rows'])")"
}
# ready FILE
ready() { for _ in {1..500}; do grep -q ready "$1" 2>/dev/null && return || sleep 0.02; done; }

# --- another root, and another numbering of processes
if [ "$(id -u)" = 0 ] && unshare -mpf --mount-proc true 2>/dev/null; then
	mkdir -p jdk
	shapes "$PWD/jdk/bin/java" 20 shares recursion callbacks loop --
	mkfifo in
	unshare -mpf --mount-proc bash -c 'mount --bind "$1" jdk && shift && exec "$@"' bash "$(jdk_home)" "${command[@]}" <in >container.out 2>container.err &
	shell=$!
	exec 8>in
	ready container.out
	program=$(cat /proc/$shell/task/$shell/children)
	program=${program%% *}
	"$WEIR" record -q -p "$program" --duration 1 -o c.weir 2>err.txt
	rc=$?
	check "a JVM in a container: recorded (status $rc)" test $rc -eq 0 -o $rc -eq 3
	head -n 3 err.txt
	has_java "a JVM in a container has its names" c.weir
	"$WEIR" report threads c.weir --json >threads.json
	check "a JVM in a container: its threads have Java's names" test "$(json threads.json "any(r['name'] == 'main' for r in j['rows'])")" = True
	feed 8 end
	exec 8>&-
	wait $shell
	equal "a JVM in a container ends as alone" "7 done" "$? $(tail -n 1 container.out)"
else
	skip "a JVM in a container: needs root and namespaces"
fi

# --- of another user
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups test -r classes/libshapes.so; then
	shapes java 20 shares recursion loop --
	rm -f in truth && mkfifo in && chmod 666 in
	setpriv --reuid 65534 --clear-groups "${command[@]}" <in >other.out 2>other.err &
	program=$!
	exec 8>in
	ready other.out
	"$WEIR" record -q -p "$program" --duration 1 -o o.weir 2>err.txt
	has_java "another user's JVM has its names" o.weir
	setpriv --reuid 65533 --clear-groups "$WEIR" record -q -p "$program" --duration 1 -o /dev/null 2>err.txt
	equal "a user who may not look at it is told so" "1 1" "$? $(grep -c . err.txt)"
	feed 8 end
	exec 8>&-
	wait "$program"
	equal "another user's JVM ends as alone" "7 done" "$? $(tail -n 1 other.out)"

	# --- the whole machine
	shapes java 300 shares recursion --
	"${command[@]}" >one.out &
	"${command[@]/truth/truth2}" >two.out &
	"$WEIR" record -q -a --duration 2 -o a.weir 2>err.txt
	wait
	has_java "-a: JVMs have their names" a.weir
	equal "-a: both of them" 2 "$(json samples.json "len({r['pid'] for r in j['rows'] if any('shapes.Shapes.part(' in f['name'] for f in r['stack'])})")"
else
	skip "another user's JVM: needs root"
	skip "JVMs in a recording of the whole machine: needs root"
fi

# --- classes: what the JVM itself says that it loads
shapes java 2500 loading -- "-Xlog:class+load,class+unload:file=classes.log"
"$WEIR" record -q -o l.weir -- "${command[@]}" >out.txt 2>err.txt
"$WEIR" report modules l.weir --json >modules.json 2>report.txt
python3 - <<'PY'
import json, re
loaded, unloaded = set(), set()
for line in open("classes.log", encoding="utf-8"):
    if m := re.search(r"\] ?(\S+) source: ", line):
        loaded.add(m[1])
    elif m := re.search(r"unloading class (\S+)", line):
        unloaded.add(m[1])
report = json.load(open("modules.json", encoding="utf-8"))
rows = report.get("classes") or []
# Hidden classes have a number behind a slash or a plus, which differs in how it is written.
plain = lambda n: re.split(r"[/+]0x", n)[0]
names = {plain(r.get("name") or r.get("class") or "") for r in rows}
invented = {n for n in names if n not in {plain(x) for x in loaded} and not n.endswith("[]")}
print("ok" if len(names) >= 20 and not invented else "not ok", f"{len(names)} classes are listed, each of which the JVM says that it loaded")
for n in sorted(invented)[:5]:
    print("   ", n)
state = {plain(r.get("name") or r.get("class") or ""): r for r in rows}
text = json.dumps([state.get(n) for n in ("shapes.LoadedEven", "shapes.Shapes")])
even = state.get("shapes.LoadedEven") or {}
print("ok" if even and (even.get("unloads") or 0) >= 1 and (even.get("loads") or 0) >= (even.get("unloads") or 0) else "not ok", "a class that comes and goes was loaded and unloaded", text)
PY

# --- waits
shapes java 300 sleeps waitsForMonitor --
if "$WEIR" record -q -e wall -o w.weir -- "${command[@]}" >out.txt 2>err.txt || grep -q done out.txt; then
	"$WEIR" report flat w.weir --metric wait --json >flat.json 2>report.txt
	python3 - <<'PY'
import json
truth = {l.split("\t")[1]: int(l.split("\t")[3]) for l in open("truth", encoding="utf-8")}
flat = json.load(open("flat.json"))["rows"]
for name, want in truth.items():
    got = sum(r["cum"] for r in flat if f"shapes.{name}(" in r["name"])
    # Whoever has to share the processor waits for it, too.
    good = 0.95 * want <= got <= 1.5 * want + 1e8
    print("ok" if good else "not ok", f"-e wall: {name} waits {got / 1e6:.0f} ms of {want / 1e6:.0f}")
PY
else
	skip "-e wall: $(head -n 1 err.txt)"
fi

# --- Ctrl-C ends the program as it does alone
shapes java 20 shares loop --
alone=$(on_terminal ready "${command[@]}")
recorded=$(on_terminal ready "$WEIR" record -q -o i.weir -- "${command[@]}")
equal "Ctrl-C: the program ends as alone" "$alone" "$recorded"
"$WEIR" report flat i.weir >flat.txt 2>report.txt
rc=$?
check "Ctrl-C: what was recorded can be read (status $rc)" test $rc -eq 0 -o $rc -eq 3
