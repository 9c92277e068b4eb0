# SPDX-License-Identifier: MIT
# JVMs that end in other ways than by the end of main(), with and without hooks in their methods: as they end alone, and
# every call until then is counted.
# weir-test: once: java_shapes.sh records with sanitizers
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"
reason=$(why_no_java)
[ -z "$reason" ] || {
	skip "ends of JVMs: $reason"
	finish
}
ulimit -c 0
cat >Ends.java <<'J'
public class Ends {
	static volatile long sink;
	static Object[] kept;
	static void step(int i) { sink += i; }
	public static void main(String[] args) throws Exception {
		System.out.println("begin");
		for (int i = 0; i < 1000; i++)
			step(i);
		switch (args[0]) {
		case "exit": System.exit(3);
		case "halt": Runtime.getRuntime().halt(5);
		case "throw": throw new IllegalStateException("thrown");
		case "memory": for (;;) kept = new Object[] {kept, new long[100000]};
		case "crash": crash();
		case "kill":
			new ProcessBuilder("kill", "-KILL", "" + ProcessHandle.current().pid()).start().waitFor();
			Thread.sleep(60000);
		}
	}
	static void crash() throws Exception {
		java.lang.reflect.Field f = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
		f.setAccessible(true);
		((sun.misc.Unsafe)f.get(null)).putLong(0, 1);
	}
}
J
javac -nowarn -g -d classes Ends.java 2>javac.txt || { not_ok "the program can be built" && finish; }

# ends_as_alone HOW: by what is in Ends.java
ends_as_alone() {
	local how=$1 alone status name
	local java=(java -Xmx16m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError -XX:ErrorFile=error.txt -cp classes Ends "$how")
	rm -f error.txt
	{ timeout 100 "${java[@]}" >alone.out 2>alone.err; } 2>shell.txt
	alone=$?
	[ ! -e error.txt ] || mv error.txt alone.txt
	{ timeout 100 "$WEIR" record -q -o t.weir --functions 'Ends:step' -- "${java[@]}" >hooked.out 2>hooked.err; } 2>shell.txt
	status=$?
	equal "$how: the status is that of the program alone" $alone $status
	# A crash tells numbers of processes and addresses.
	for name in out err; do
		sed -E 's/0x[0-9a-f]+|[0-9]{3,}//g' alone.$name >want.txt
		sed -E 's/0x[0-9a-f]+|[0-9]{3,}//g' hooked.$name >got.txt
		check "$how: it writes what it writes alone (std$name)" cmp -s want.txt got.txt
	done
	equal "$how: all calls are counted" "1000" \
		"$("$WEIR" report hooks t.weir --json --limit 0 | python3 -c 'import json,sys; print(sum(r["hits"] for r in json.load(sys.stdin)["rows"] if r["function"] == "Ends.step(int)"))')"
}
for how in exit halt throw memory kill crash; do
	ends_as_alone $how
done

# frames FILE: what the JVM says of where it crashed
frames() { awk '/^(Java|Native) frames/ { on = 1 } /^$/ { on = 0 } on' "$1" | sed -E 's/0x[0-9a-f]+//g; s/sp=.*//'; }
check "crash: the report has frames" test "$(frames alone.txt | wc -l)" -ge 4
equal "crash: the JVM's report has the frames that it has without weir" "$(frames alone.txt)" "$(frames error.txt)"
check "crash: the innermost of them is the JVM's own" grep -q '^# V  \[libjvm.so' error.txt
equal "crash: without weir nothing of weir is in it" 0 "$(grep -ci weir alone.txt)"
equal "crash: what it has of weir is the library, where it is told to be loaded, and the shared memory" "" \
	"$(grep -i weir error.txt | grep -vE 'libweir\.so|/memfd:weir')"

# A build tool is something that starts JVMs; several at once, of which one does not live long.
"$WEIR" record -q -o t.weir --functions 'Ends:step' -- sh -c '
	for how in exit halt throw kill; do java -Xmx16m -XX:+UseSerialGC -cp classes Ends $how & done; wait' >out.txt 2>err.txt
equal "four JVMs that a shell starts at once: all calls are counted" 4000 \
	"$("$WEIR" report hooks t.weir --json --limit 0 | python3 -c 'import json,sys; print(sum(r["hits"] for r in json.load(sys.stdin)["rows"] if r["function"] == "Ends.step(int)"))')"
equal "and they print what they print alone" 4 "$(grep -c begin out.txt)"
finish
