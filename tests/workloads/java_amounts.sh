# SPDX-License-Identifier: MIT
# What methods of Java allocate, and how many bytecodes they execute: by the program's text, the JVM's own figures, and an
# agent that counts every bytecode as the JVM executes it.
# weir-test: once: JVMs; the rewriter itself is fuzzed with sanitizers
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"
reason=$(why_no_java)
[ -z "$reason" ] || { skip "what methods of Java use is counted: $reason" && finish; }
home=$(jdk_home)
javac --release 17 -g -d classes "$java_fixtures/amounts/Amounts.java"
gcc -O1 -shared -fPIC -I"$home/include" -I"$home/include/linux" -o libsteps.so "$java_fixtures/amounts/steps.c"
rounds=300
steps() { # JAVA: the truth, "COUNT METHOD", without parameters, which the two write differently
	# The interpreter makes one instruction of some pairs, and tells of one step then.
	"$1" -Xint -XX:-RewriteFrequentPairs -agentpath:"$PWD/libsteps.so=Amounts,$PWD/steps.txt" -cp classes Amounts $rounds >/dev/null
	sed 's/(.*//' steps.txt | grep -v ' run$\| applyAsLong$' | awk '{ n[$2] += $1 } END { for (m in n) print n[m], m }'
}
# used METRIC: "AMOUNT METHOD" of the recording
used() {
	"$WEIR" report flat t.weir --metric "$1" --limit 0 --json |
		python3 -c 'import collections, json, re, sys
n = collections.Counter()
for r in json.load(sys.stdin)["rows"]:
    if m := re.match(r"(?:[IJF]:)?Amounts\.([^(]+)\(", r["name"]): n[m[1]] += r["base"]
[print(n[m], m) for m in n if n[m]]'
}
# of METHOD METRIC
of() { used "$2" | awk -v m="$1" '$2 == m { print $1 }'; }
# below METHOD: bytes of its calls and of all below them, in the thread where that is most
below() { "$WEIR" report tree t.weir --metric heap --limit 0 | awk -v m="Amounts.$1(" 'index($NF, m) || index($0, m) { if ($5 > n) n = $5 } END { print n + 0 }'; }

# judge NAME JAVA FLAGS...
judge() {
	local name=$1 java=$2 got
	shift 2
	got=$(timeout 200 "$WEIR" record -q --kinds method,heap,bytecode -o t.weir --functions 'Amounts:*' -- \
		"$java" -Xverify:all -Xlog:disable "$@" -cp classes Amounts $rounds 2>err.txt)
	# Of Object's own constructor, <init>, in hidden classes, nothing is recorded.
	equal "$name: each method has the bytecodes that the JVM executes" "$(steps "$java" | grep -v '<init>' | sort)" \
		"$(used bytecodes | grep -v '<init>' | sort)"
	equal "$name: arrays are as large as they are" "$((303 * 10 * 104)) $((303 * (96 + 416))) $((2 * ((1 << 20) + 16)))" \
		"$(of small heap) $(of outer heap) $(of large heap)"
	# The JVM makes some objects, seldom, when it begins to compile a method.
	check "$name: who allocates nothing has nothing" test $(($(of none heap) + $(of fibonacci heap) + $(of locked heap) + 0)) -lt 1000
	# The JVM says how much the thread has allocated before and after: with a call more of that.
	check "$name: all of it is what the JVM says, ${got#allocated }" test $((${got#allocated } - $(below work))) -lt 4000 -a $((${got#allocated } - $(below work))) -ge 0
	equal "$name: nothing is lost" "" "$("$WEIR" report loss t.weir | grep -i '[1-9][0-9]* *events lost\|missing')"
}
judge "JDK 17" java
judge "JDK 17, interpreted" java -Xint
judge "JDK 17, one compiler, Serial" java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
judge "JDK 17, ZGC" java -XX:+UseZGC
if [ -n "${WEIR_SLOW:-}" ]; then
	judge "JDK 17, all compiled" java -Xcomp
	judge "JDK 17, without thread-local buffers" java -XX:-UseTLAB
fi
if [ -x "$jdk_25/bin/java" ]; then
	judge "JDK 25" "$jdk_25/bin/java"
else
	skip "another version: no $jdk_25"
fi

# A call that does not end has no figure, and that is said; so is what does not go together.
cat >Exits.java <<'J'
public class Exits {
	static void deeper() { System.exit(3); }
	public static void main(String[] args) { deeper(); }
}
J
javac -d classes Exits.java
"$WEIR" record -q --kinds method,bytecode -o e.weir --functions 'Exits:*' -- java -cp classes Exits 2>/dev/null
equal "the status is the program's" 3 $?
check "calls whose end is not seen are said" grep -q '^ *2 .*bytecodes are missing' <("$WEIR" report loss e.weir)
check "there are none in a tree" grep -q 'bytecodes' <("$WEIR" record --tree --kinds +bytecode --functions 'Exits:*' -- java -cp classes Exits 2>&1)

# Attached to, and the classes are given back.
cat >Loops.java <<'J'
public class Loops {
	static Object sink;
	static int step(int i) { sink = new byte[1000]; return i + 1; }
	public static void main(String[] args) throws Exception {
		int n = 0;
		for (int i = 0; i < 400; i++) { n = step(n); Thread.sleep(5); }
		System.out.println(n);
	}
}
J
javac -d classes Loops.java
java -cp classes Loops >loops.txt &
program=$!
sleep 0.7
"$WEIR" record -q --kinds method,heap,bytecode -o t.weir --functions 'Loops:step' -p $program --duration 0.6
calls=$("$WEIR" report flat t.weir --limit 0 | awk '/Loops.step/ { print $1 }')
equal "attached: each call has its bytes" "$((calls * 1016))" "$("$WEIR" report flat t.weir --metric heap --limit 0 | awk '/Loops.step/ { print $2 }')"
equal "attached: each call has its bytecodes" "$((calls * 7))" "$("$WEIR" report flat t.weir --metric bytecodes --limit 0 | awk '/Loops.step/ { print $2 }')"
wait $program
equal "and the program goes on as it was" 400 "$(cat loops.txt)"
finish
