# SPDX-License-Identifier: MIT
# weir-test: slow: a dozen JVMs, one of them interpreted, one compiling all
# Entries and exits of Java methods: a program that counts its own calls is what they are judged by.
. "$ROOT/tests/lib.sh"
command -v javac >/dev/null || { skip "calls of Java methods are counted: no javac" && finish; }
javac -g -d classes "$ROOT/tests/fixtures/class_rewrite/Counted.java"
java -cp classes Counted >expected.txt

# calls TRACE: "N NAME" of all that were called, as the program prints its own.
calls() {
	"$WEIR" report hooks "$1" --json --limit 0 |
		python3 -c 'import json,sys; [print(r["hits"], r["function"]) for r in json.load(sys.stdin)["rows"] if r["hits"]]'
}

mode=
# counts SENTENCE COMMAND...: the program prints what it always does, and the recording has the counts that it prints.
counts() {
	local sentence=$1
	shift
	timeout 200 "$WEIR" record -q $mode -o t.weir --functions 'Counted*:*' -- "$@" >got.txt 2>err.txt
	equal "$sentence: the status is the program's" 0 $?
	equal "$sentence: so is the output" "$(cat expected.txt)" "$(cat got.txt err.txt)"
	equal "$sentence: each count is the program's own" "$(sed -n 's/^count //p' expected.txt | sort)" \
		"$(calls t.weir | grep -Fxf <(sed -n 's/^count //p' expected.txt) | sort)"
	# An exception in a superclass's constructor ends a call of Round's.
	[ -n "$mode" ] || equal "$sentence: every call but one is left when it ends" 1 \
		"$("$WEIR" report loss t.weir | sed -n 's/^ *\([0-9]*\)  enter and leave events do not match/\1/p')"
	equal "$sentence: no event is lost" "" "$("$WEIR" report loss t.weir | grep 'events lost' | grep -v ' 0 ')"
}
counts "as it is run" java -cp classes Counted
counts "interpreted" java -Xint -cp classes Counted
check "the summary does not say how methods ran that events are of" grep -q '^  Java: .* % in hooked ones;' <("$WEIR" report t.weir)
mode=--tree
counts "with a tree" java -cp classes Counted
counts "with a tree, interpreted" java -Xint -cp classes Counted
mode=
if [ -z "${WEIR_SAN:-}" ]; then
	counts "compiled" java -Xcomp -cp classes Counted
	counts "by one compiler" java -XX:TieredStopAtLevel=1 -cp classes Counted
	counts "with every class verified, and another collector" java -Xverify:all -Xlog:disable -XX:+UseZGC -cp classes Counted
	counts "started by a shell, and with its agents refused" sh -c 'java -XX:+DisableAttachMechanism -cp classes Counted; exit $?'
	other=/usr/lib/jvm/temurin-25-jdk-amd64/bin/java
	if [ -x $other ]; then
		counts "another version" $other -cp classes Counted
		cat >Virtual.java <<'J'
public class Virtual {
	static int step(int i) throws Exception { if (i % 3 == 0) Thread.sleep(1); return i; }
	public static void main(String[] args) throws Exception {
		Thread[] threads = new Thread[50];
		for (int i = 0; i < threads.length; i++)
			threads[i] = Thread.ofVirtual().start(() -> { try { for (int k = 0; k < 20; k++) step(k); } catch (Exception e) { } });
		for (Thread t : threads)
			t.join();
	}
}
J
		${other}c -d virtual Virtual.java
		"$WEIR" record -o v.weir --functions 'Virtual:step' -- $other -cp virtual Virtual 2>err.txt
		equal "calls on virtual threads are counted" "1000 Virtual.step(int)" "$(calls v.weir)"
		check "and it is said that their times are not known" grep -q 'virtual threads' err.txt
	else
		skip "another version: no $other"
	fi
fi

# Java calls C, which calls Java, which throws through both: hooked all of them.
jdk=$(readlink -f "$(command -v javac)")
include=${jdk%/bin/javac}/include
cat >Cross.java <<'J'
public class Cross {
	static native int down(int n);
	static int up(int n) { if (n % 5 == 0) throw new RuntimeException("up"); return n; }
	static int top(int n) { try { return down(n); } catch (RuntimeException e) { return -1; } }
	public static void main(String[] args) {
		int sum = 0;
		System.load(args[0]);
		for (int i = 1; i <= 10000; i++)
			sum += top(i);
		System.out.println(sum);
	}
}
J
cat >cross.c <<'C'
#include <jni.h>
__attribute__((noinline)) int helper(JNIEnv *jni, jclass class, int n)
{
	jmethodID up = (*jni)->GetStaticMethodID(jni, class, "up", "(I)I");
	int result = (*jni)->CallStaticIntMethod(jni, class, up, n);

	__asm__ volatile("");
	return result + 1;
}
JNIEXPORT jint JNICALL Java_Cross_down(JNIEnv *jni, jclass class, jint n)
{
	int result = helper(jni, class, n);

	__asm__ volatile("");
	return result * 2;
}
C
if [ -e "$include/jni.h" ]; then
	javac -d classes Cross.java
	gcc -O1 -shared -fPIC -I"$include" -I"$include/linux" -o libcross.so cross.c
	for option in --no-sample --tree; do
		"$WEIR" record -q $option -o x.weir --functions 'Cross:*,libcross.so:helper' -- java -cp classes Cross "$PWD/libcross.so" >got.txt 2>&1
		equal "$option: Java over C over Java prints what it does" 80014000 "$(cat got.txt)"
		equal "$option: all of them are in one tree" "1 Cross.main(java.lang.String[]), 10000 Cross.top(int), 10000 helper, 10000 Cross.up(int), " \
			"$("$WEIR" report tree x.weir --limit 0 | awk '$1 > 0 && $1 < 5 { printf "%s %s, ", $3, $NF }')"
	done
else
	skip "Java and C are in one tree: no jni.h"
fi

cat >Ends.java <<'J'
public class Ends {
	static class Missing { static int x = Integer.parseInt("none"); }
	static void run(int n) { if (n == 0) throw new IllegalStateException("the end"); run(n - 1); }
	static int deep(int n) { return deep(n + 1) + 1; }
	public static void main(String[] args) {
		try { System.out.println(Missing.x); } catch (ExceptionInInitializerError e) { System.out.println(e.getCause()); }
		try { deep(0); } catch (StackOverflowError e) { System.out.println("too deep"); }
		new Thread(() -> run(2)).start();
		Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
		System.exit(7);
	}
}
J
javac -g -d classes Ends.java
java -cp classes Ends >expected.txt 2>expected.err
"$WEIR" record -q -o e.weir --functions 'Ends*:*,java.lang.*:*,java.util.*:*' -- java -cp classes Ends >got.txt 2>got.err
equal "a program with the JDK's own methods hooked ends with its status" 7 $?
equal "and prints what it always does" "$(cat expected.txt)" "$(cat got.txt)"
equal "as an uncaught exception does" "$(grep -v '^\s*at java' expected.err)" "$(grep -v '^\s*at java' got.err)"
check "methods of the JDK were called" test "$(calls e.weir | grep -c ' java.lang.String.')" -gt 10
"$WEIR" record -o n.weir --functions 'Ends:rum' -- java -cp classes Ends >/dev/null 2>err.txt
check "a method that is not there is said, with one that is near" grep -q "run" err.txt
"$WEIR" record -q -o n.weir --stack-at 'Ends:run' -- java -cp classes Ends >/dev/null 2>&1
check "stacks at entries have a reason" grep -q 'stacks at entries of Java methods are not taken' <("$WEIR" report hooks n.weir)

# A sampled frame of a hooked method is of the method's node, however it ran.
javac -d classes "$ROOT/tests/fixtures/class_rewrite/Burning.java"
for mode in -Xint -Xmixed; do
	more=$mode # a word more for compiled code, which is ten times as fast
	"$WEIR" record -q -o b.weir --functions 'Burning:outer' -- java $mode -cp classes Burning ${more#-Xint}
	equal "$mode: events and samples of a method are one function" "10 Burning.outer(int)" \
		"$("$WEIR" report flat b.weir --limit 0 | awk '/Burning.outer/ { print $1, $NF }')"
	equal "$mode: what it calls is below it" "Burning.outer(int)" \
		"$("$WEIR" report tree b.weir --limit 0 | awk '/Burning.outer/ { n = NR } /Burning.(inner|burn)/ && n && !done { print "Burning.outer(int)"; done = 1 }')"
done

# The recorder is killed, or stands still, while classes are loaded and called.
cat >Long.java <<'J'
public class Long {
	static int step(int i) { return i + 1; }
	public static void main(String[] args) throws Exception {
		int n = 0;
		System.out.println("ready");
		for (int i = 0; i < 30; i++) {
			for (int k = 0; k < 10000; k++)
				n = step(n);
			Thread.sleep(20);
		}
		System.out.println(n);
	}
}
J
javac -d classes Long.java
mkfifo ready
"$WEIR" record -q -o k.weir --functions 'Long:*' -- java -cp classes Long >ready 2>/dev/null &
recorder=$!
exec 3<ready
read -r line <&3
kill -KILL $recorder
equal "a program whose recorder is killed goes on" "300000" "$(timeout 60 cat <&3)"
exec 3<&-
wait $recorder 2>wait.txt
finish
