#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Recordings of Java Flight Recorder: small ones as async-profiler writes them, and one of the JDK, judged by `jfr print`.
. "$ROOT/tests/lib.sh"

# rows REPORT FILE EXPRESSION [OPTION...]: the expression of each row that has it, in the report's order
rows() { "$WEIR" report "$1" --json "$2" "${@:4}" | python3 -SE -c 'import json, sys
print(" ".join(str(t) for t in (eval(sys.argv[1]) for r in json.load(sys.stdin)["rows"]) if t))' "$3"; }
told() { "$WEIR" report loss "$1" | grep -q "$2"; }
flat() { rows flat "$1" 'r["base"] and "%s:%s" % (r["name"], r["base"])' --metric "$2"; }

make=$ROOT/tests/fixtures/foreign/make_jfr.py
python3 "$make" small.jfr && python3 "$make" plain.jfr plain
tree='pid_100::3 I:java.lang.Main.main(java.lang.String[]):[java]:1 write:libc.so.6:1 vfs_write::1 J:java.lang.Main.main(java.lang.String[]):[java]:2 J:java.lang.Main.in(int, long):[java]:2 pid_101::3 [the recording keeps no deeper stacks]::1 J:java.lang.Main.in(int, long):[java]:1'
for file in small plain; do
	equal "chunks have types of their own, numbers are packed or not ($file)" "$tree" \
		"$(rows tree $file.jfr '"%s:%s:%s" % (r["name"], r.get("image") or "", r["cum"])')"
	equal "threads have Java's names, or else the system's ($file)" "100:mäin:3 101:GC:3" "$(rows threads $file.jfr '"%s:%s:%s" % (r["tid"], r["name"], r["samples"])')"
done
equal "samples of elapsed time count as many as they stand for" "vfs_write:7" "$(flat small.jfr wall-samples)"
equal "a new TLAB counts as its size, or else as the object's" \
	"J:java.lang.Main.in(int, long):$((4096 + 48 + (1 << 40)))" "$(flat small.jfr allocated-tlab)"
equal "durations are told in nanoseconds" "vfs_write:250000" "$(flat small.jfr lock-wait)"
check "events that are not shown are told by name" told small.jfr "1  profiler.Malloc events are not shown"
check "and those without stacks together" told small.jfr "2  events without stacks"
check "a stack that is not there is told" told small.jfr "1  samples refer to a stack that the file does not have"
check "and so is one that was cut" told small.jfr "1  the recording keeps no deeper stacks"
gzip -c plain.jfr >plain.jfr.gz
equal "also packed" "$(rows tree plain.jfr 'r["name"]')" "$(rows tree plain.jfr.gz 'r["name"]')"
"$WEIR" import jfr - -o piped.weir <small.jfr
equal "and from standard input" "$(rows tree small.jfr 'r["name"]')" "$(rows tree piped.weir 'r["name"]')"
equal "files and lines stay, times begin with the recording" "7 2 1700000000000000000" "$(
	python3 "$ROOT/tests/format/read_trace.py" piped.weir >x.json && json x.json \
		'"%s %s %s" % ([s for s in j["symbols"] if len(s[2]) == 2][0][2][0][2], [s for s in j["symbols"] if len(s[2]) == 2][0][2][1][2] - 1, dict(j["meta"])["start_realtime_ns"])')"

n=$(stat -c %s small.jfr)
head -c $((n - 40)) small.jfr >cut.jfr
equal "of a file that is cut the complete chunks are read, and the status says so" "3 3" \
	"$("$WEIR" report flat --json cut.jfr >c.json 2>err.txt; echo "$? $(json c.json 'j["total"]')")"
check "and the rest is a loss" told cut.jfr "1  the last chunk is not complete"
head -c 500 small.jfr >short.jfr
fails "a first chunk that is cut is refused" 1 "^weir: 'short.jfr': ends before its first chunk is complete" "$WEIR" report flat short.jfr
{ printf 'FLR\0\0\1' && tail -c +7 small.jfr; } >old.jfr
fails "and so is another version" 1 "^weir: 'old.jfr': is of version 1 of JFR" "$WEIR" report flat old.jfr
{ cat small.jfr && head -c 100 /dev/zero; } >wrong.jfr
fails "and what is no chunk" 1 "^weir: 'wrong.jfr': has no chunk at byte $n" "$WEIR" report flat wrong.jfr

for tool in javac java jfr; do
	command -v $tool >/dev/null || { skip "a recording of the JDK is read: no $tool" && finish; }
done
cat >Hot.java <<'JAVA'
public class Hot {
	static long sink;
	static Object kept;
	static long sum(int i) { long s = 0; for (int k = 0; k < 1000; k++) s += (s ^ k) * i; return s; }
	static void spin(long ms) { long end = System.nanoTime() + ms * 1000000; while (System.nanoTime() < end) for (int i = 0; i < 1000; i++) sink += sum(i); }
	static void make(long ms) { long end = System.nanoTime() + ms * 1000000; while (System.nanoTime() < end) for (int i = 0; i < 100; i++) kept = new byte[4096]; }
	static void deep(int n) { if (n > 0) deep(n - 1); else spin(200); }
	public static void main(String[] a) throws Exception {
		Thread x = new Thread(() -> spin(400), "spinner"), y = new Thread(() -> make(400), "m\u00e4ker");
		x.start(); y.start(); deep(100); x.join(); y.join();
	}
}
JAVA
javac Hot.java && java -XX:StartFlightRecording=filename=hot.jfr,settings=profile Hot >java.txt 2>&1
[ -s hot.jfr ] || { skip "a recording of the JDK is read: this JVM makes none" && finish; }
jfr print --json --stack-depth 64 --events jdk.ExecutionSample,jdk.ObjectAllocationSample hot.jfr >print.json
# judge TYPE AMOUNT: by top frame, and by thread, what the JDK's own tool prints
cat >judge.py <<'PY'
import collections, json, re, sys

NAMES = {"Z": "boolean", "B": "byte", "C": "char", "S": "short", "I": "int", "J": "long", "F": "float", "D": "double"}


def parameters(signature):
    out = []
    for dims, cls, prim in re.findall(r"(\[*)(?:L([^;]*);|([ZBCSIJFD]))", signature[1:signature.index(")")]):
        out.append((cls.replace("/", ".") or NAMES[prim]) + "[]" * len(dims))
    return "(" + ", ".join(out) + ")"


kind, amount, by = sys.argv[1:]
sums = collections.Counter()
for event in json.load(open("print.json"))["recording"]["events"]:
    if event["type"] != kind:
        continue
    v = event["values"]
    thread = v.get("sampledThread") or v["eventThread"]
    key = thread["osThreadId"], thread["javaName"]
    if by == "top":
        top = v["stackTrace"]["frames"][0]
        m = top["method"]
        mark = {"Interpreted": "I", "Native": "F"}.get(top["type"], "J")
        name = re.sub(r"\+0x", "/0x", m["type"]["name"].replace("/", "."))
        key = "%s:%s.%s%s" % (mark, name, m["name"], parameters(m["descriptor"]))
    sums[key] += v[amount] if amount != "1" else 1
print(sorted(sums.items()))
PY
cat >ours.py <<'PY'
import json, sys

j = json.load(sys.stdin)
if sys.argv[1] == "top":
    print(sorted((r["name"], r["base"]) for r in j["rows"] if r["base"] and r["kind"] != "thread"))
else:
    print(sorted(((r["tid"], r["name"]), r["base"]) for r in j["rows"] if r["base"]))
PY
for what in "jdk.ExecutionSample 1 samples" "jdk.ObjectAllocationSample weight allocated"; do
	read -r event amount metric <<<"$what"
	check "there are events $event" grep -q "\"$event\"" print.json
	equal "$event: every top frame has the JDK's figure" "$(python3 judge.py "$event" "$amount" top)" \
		"$("$WEIR" report flat --json --metric "$metric" hot.jfr | python3 -SE ours.py top)"
	equal "$event: every thread has the JDK's figure and name" "$(python3 judge.py "$event" "$amount" thread)" \
		"$("$WEIR" report threads --json --metric "$metric" hot.jfr | python3 -SE ours.py thread)"
done
equal "the hot method is found" "Hot.sum(int)" "$("$WEIR" report flat hot.jfr --json | python3 -SE -c 'import json, sys
print(max((r for r in json.load(sys.stdin)["rows"] if r["kind"] != "thread" and "Hot.make" not in r["name"]), key=lambda r: r["base"])["name"][2:])')"
check "stacks deeper than the recording keeps are told" told hot.jfr "the recording keeps no deeper stacks"
finish
