# SPDX-License-Identifier: MIT
# What recordings of Java cross with: waits, deep stacks, native code below methods, hooks, children, several JVMs, attaching,
# program counters alone, another pid namespace. What methods are and how long they run is for java_shapes.sh.
# weir-test: alone: shares of samples depend on the load
# weir-test: slow: a JVM takes its time to begin
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"

why=$(why_no_java)
[ -z "$why" ] || { skip "recordings of Java: $why" && finish; }
crossings=$ROOT/tests/fixtures/java/crossings
mkdir classes && javac --release 17 -g -d classes "$crossings/Crossings.java" || exit 1
java=(java -Xshare:auto -Xmx128m -cp classes crossings.Crossings)

# stacks EXPRESSION [REPORT-OPTIONS...]: of the last trace
stacks() {
	local what=$1
	shift
	"$WEIR" report samples t.weir --json "$@" >samples.json 2>>report.txt
	python3 -B "$crossings/stacks.py" samples.json "$what"
}

# mostly NAME EXPRESSION [REPORT-OPTIONS...]: the expression is a share of 0.99 or more
mostly() {
	local name=$1 got
	shift
	got=$(stacks "$@")
	check "$name ($got)" awk "BEGIN { exit !($got >= 0.99) }"
	awk "BEGIN { exit !($got < 0.99) }" && stacks 'reasons()' "${@:2}"
}

# some NAME EXPRESSION [REPORT-OPTIONS...]: a number of samples that is not small
some() {
	local name=$1 got
	shift
	got=$(stacks "$@")
	check "$name ($got)" test "$got" -ge 20
}

"$WEIR" record -q -o t.weir -- "${java[@]}" spin 800 >out.txt 2>err.txt
equal "a program in Java is recorded, and prints what it prints" "done" "$(cat out.txt err.txt)"
some "methods are in the stacks, called by their callers" \
	'len(having("F?:?.*I:crossings.Crossings.lambda.main.*;[IJ]:crossings.Crossings.spin.long.*mix"))'
mostly "almost all stacks are complete" 'complete()'
mostly "what the worker does is under the start of a thread" \
	'share("^(__clone3|clone3|__clone|clone|start_thread).*thread_native_entry.*java.lang.Thread.run", having("crossings.Crossings.spin"))'
mostly "methods have lines, in files below the root of the sources" \
	'sum(l["file"] == "crossings/Crossings.java" and bool(l["line"]) for s in samples for l in s.levels if ".Crossings." in l["name"]) / sum(".Crossings." in l["name"] for s in samples for l in s.levels)'
"$WEIR" report threads t.weir --json >threads.json
equal "the thread has its name of Java, in full" True \
	"$(json threads.json 'any(t["name"] == "a-worker-with-a-long-name" and t["role"] == "program" for t in j["rows"])')"
equal "compilers, collectors and others of the JVM are told apart" "True True True" \
	"$(json threads.json '" ".join(str(any(t["role"] == r for t in j["rows"])) for r in ("compiler", "collector", "runtime"))')"
"$WEIR" report modules t.weir --json >modules.json
equal "the class that was used is there, and others" "True True" \
	"$(json modules.json '" ".join(map(str, (any(c["name"] == "crossings.Crossings" and c["state"]["used"] for c in j["classes"]), len(j["classes"]) > 100)))')"
"$WEIR" export folded t.weir >folded.txt
check "folded stacks have methods, interpreted and jitted" grep -q 'I:crossings.Crossings.*[IJ]:crossings.Crossings.mix(long)' folded.txt
"$WEIR" report flat t.weir --transform 'focus=crossings.Crossings.spin(long)' >flat.txt 2>&1
check "focus takes a method without the mark of how it ran" grep -q 'crossings.Crossings.mix(long)' flat.txt
check "the summary says how Java ran" grep -q '^  Java: .* % in jitted methods' <("$WEIR" report t.weir)
"$WEIR" export pprof -o t.pb t.weir
check "a second reader of the format finds the frames as the document says" grep -q '^ok [1-9][0-9]* frames' \
	<(python3 -B "$ROOT/tests/format/java_frames.py" t.weir)
check "pprof has them" python3 -B "$ROOT/tests/format/read_pprof.py" t.pb >pprof.txt

"$WEIR" record -q -e wall -o t.weir -- "${java[@]}" wait 400 >/dev/null 2>&1
check "who waits in Java has a stack of Java" \
	test "$(stacks 'len(having("crossings.Crossings.main.*waitAWhile.long.*java.lang.Thread.sleep.*schedule"))' --metric wait)" -ge 18
mostly "stacks of waits are complete" 'complete()' --metric wait

"$WEIR" record -q -o t.weir -- "${java[@]}" deep 250 >/dev/null 2>&1
if "$WEIR" report t.weir | grep -q 'note: stacks deeper than'; then
	skip "four thousand frames of Java: stacks are not copied beyond 32 KiB here"
else
	# The first ones tell how far the stack goes.
	mostly "four thousand frames of Java are walked to their end" 'complete(having("Crossings.mix")[30:])'
	check "all of them are there ($(stacks 'max(s.text.count("Crossings.deep(") for s in samples)'))" \
		test "$(stacks 'max(s.text.count("Crossings.deep(") for s in samples)')" -eq 4001
fi

"$WEIR" record -q -o t.weir -- "${java[@]}" sums 700 >/dev/null 2>&1
some "native code has the methods that call it" 'len(having("crossings.Crossings.sums.long..*Deflater.deflate"))'
mostly "stacks with native code are complete" 'complete()'

"$WEIR" record -q -o t.weir -- "${java[@]}" child 400 >out.txt 2>err.txt
equal "children of a JVM are recorded" "done" "$(cat out.txt err.txt)"
some "they have stacks of their own, without Java" 'len([s for s in samples if "[java]" not in str(s.levels) and s.pid != samples[0].pid])'
mostly "a JVM with children has complete stacks" 'complete()'

"$WEIR" record -q --pc-only -o t.weir -- "${java[@]}" spin 500 >/dev/null 2>&1
some "program counters alone have jitted methods" 'len(having("J:crossings.Crossings"))'

mkfifo input
"${java[@]}" loop <input >loop.txt &
loop=$!
exec 3>input
for _ in $(seq 100); do grep -q ready loop.txt && break || sleep 0.1; done
"$WEIR" record -q --duration 1 -o t.weir -p $loop
some "a JVM that runs already has its methods" 'len(having("crossings.Crossings.spin.long..*Crossings.mix"))'
mostly "its stacks are complete" 'complete()'
"$WEIR" report modules t.weir --json >modules.json
equal "its classes were there at the start" True \
	"$(json modules.json 'any(c["name"] == "crossings.Crossings" and c["state"]["at_start"] and not c["state"]["loaded"] for c in j["classes"])')"

"$WEIR" record -q -o t.weir -- sh -c "$(printf '%q ' "${java[@]}") spin 300 & $(printf '%q ' "${java[@]}") spin 300; wait; exec $(printf '%q ' "${java[@]}") spin 300" >out.txt 2>err.txt
equal "several JVMs in one recording" "done done done" "$(echo $(cat out.txt err.txt))"
equal "each has its methods" 3 "$(stacks 'len({s.pid for s in having("Crossings.mix")})')"
mostly "and complete stacks" 'complete()'
equal "a method is one function in all of them" 1 \
	"$("$WEIR" report flat t.weir --json | python3 -SE -c 'import json,sys; print(sum(r["name"] == "J:crossings.Crossings.mix(long)" for r in json.load(sys.stdin)["rows"]))')"

if [ "$(id -u)" -ne 0 ]; then
	skip "the whole machine, another pid namespace: only root may"
else
	"$WEIR" record -q -a --duration 1 -o t.weir
	some "with -a, too" 'len(having("crossings.Crossings.spin.long..*Crossings.mix"))'
	"$WEIR" record -q -o t.weir -- unshare --pid --fork --mount-proc "${java[@]}" spin 500 >/dev/null 2>&1
	some "in a pid namespace of its own it has methods" 'len(having("crossings.Crossings.spin.long..*Crossings.mix"))'
	"$WEIR" report threads t.weir --json >threads.json
	equal "and names of threads" True "$(json threads.json 'any(t["name"] == "a-worker-with-a-long-name" for t in j["rows"])')"
fi
feed 3
exec 3>&-
wait $loop
equal "the JVM that was recorded goes on to its end" "0 ready done" "$? $(echo $(cat loop.txt))"

# A file that is only called so.
mkdir fake && echo 'int f(void) { return 0; }' >fake.c && gcc -shared -fPIC -o fake/libjvm.so fake.c &&
	echo 'int f(void); int main(void) { for (volatile long i = 0; i < 100000000; i++); return f(); }' >main.c &&
	gcc -o main main.c -Lfake -ljvm -Wl,-rpath,"$PWD/fake"
"$WEIR" record -o t.weir -- ./main 2>err.txt
equal "what is called like a JVM and is none is recorded" 0 $?
check "and told of at the end" grep -q 'note: Java frames are addresses: process .*libjvm.so' err.txt
check "and in the trace" grep -q 'Java frames of a process are addresses: .*libjvm.so' <("$WEIR" report loss t.weir)

"$WEIR" record -q --functions 'libzip.so:*Deflater*' -o t.weir -- "${java[@]}" sums 500 >out.txt 2>err.txt
equal "native functions of a JVM are hooked" "done" "$(cat out.txt err.txt)"
some "and called by methods" 'len(having("crossings.Crossings.sums.long..*Deflater.deflateBytesBytes.*Java_java_util_zip_Deflater"))'
mostly "with complete stacks" 'complete()'
# Where the compiler knows a method it pushes registers in the midst of another, whose frame is larger then.
cat >Compares.java <<'J'
import java.util.Arrays;
public class Compares {
	static String[] names(int n) {
		String[] all = new String[n];
		for (int i = 0; i < n; i++)
			all[i] = "a name that is long enough to be compared " + i * 7919 % n;
		return all;
	}
	public static void main(String[] args) {
		String[] names = names(3000);
		long until = System.nanoTime() + 2_000_000_000L;
		while (System.nanoTime() < until)
			Arrays.sort(names.clone());
	}
}
J
javac -d classes Compares.java
"$WEIR" record -q -o c.weir -- java -cp classes Compares
read -r n complete < <("$WEIR" report loss c.weir | awk '/sampled stacks/ { n = $1 } /of them complete/ { c = $1 } END { print n, c }')
check "among compared strings 99 of 100 stacks are complete: $complete of $n" test $((complete * 100)) -ge $((n * 99))
finish
