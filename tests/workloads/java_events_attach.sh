# SPDX-License-Identifier: MIT
# weir-test: root: a running process is attached to
# weir-test: once: the JVM is attached to and let go many times; what runs in it has no sanitizer
# Methods of a JVM that runs already: hooked, counted, and given back.
. "$ROOT/tests/lib.sh"
command -v javac >/dev/null || { skip "methods of a running JVM are hooked: no javac" && finish; }
jdk=$(readlink -f "$(command -v javac)")
include=${jdk%/bin/javac}/include
[ -e "$include/jvmti.h" ] || { skip "methods of a running JVM are hooked: no jvmti.h" && finish; }

# The program says how long the bytecode of one of its methods is, which it asks the JVM.
cat >size.c <<'C'
#include <jvmti.h>
JNIEXPORT jint JNICALL Java_Served_size(JNIEnv *jni, jclass class)
{
	static jvmtiEnv *env;
	jvmtiCapabilities wanted = {.can_get_bytecodes = 1};
	unsigned char *bytes;
	jint n = -1;
	JavaVM *vm;

	if (!env) {
		(*jni)->GetJavaVM(jni, &vm);
		(*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_1_2);
		(*env)->AddCapabilities(env, &wanted);
	}
	(*env)->GetBytecodes(env, (*jni)->GetStaticMethodID(jni, class, "step", "(J)J"), &n, &bytes);
	return n;
}
C
gcc -shared -fPIC -I"$include" -I"$include/linux" -o libsize.so size.c
cat >Served.java <<'J'
public class Served {
	static native int size();
	static volatile long calls;
	static long step(long i) { return i * 31 + 7; }
	static long turn(long n) {
		for (int i = 0; i < 50; i++)
			n = step(n);
		calls += 50;
		return n;
	}
	public static void main(String[] args) throws Exception {
		System.load(args[0]);
		long n = 1;
		while (System.in.available() == 0) {
			n = turn(n);
			Thread.sleep(1);
			if (calls % 5000 == 0)
				System.out.println("size " + size());
		}
		System.out.println("done " + size());
	}
}
J
javac -d . Served.java
mkfifo in
for java in "$(command -v java)" /usr/lib/jvm/temurin-25-jdk-amd64/bin/java; do
	[ -x "$java" ] || { skip "another version: no $java" && continue; }
	name=$("$java" -version 2>&1 | sed -n '1s/[^"]*"\([0-9]*\).*/\1/p')
	"$java" -XX:+DisableAttachMechanism -cp . Served "$PWD/libsize.so" <in >out.txt 2>err.txt &
	program=$!
	exec 3>in
	for _ in $(seq 300); do grep -q size out.txt && break; sleep 0.05; done
	before=$(tail -n 1 out.txt)
	for cycle in 1 2 3; do
		"$WEIR" record -q --duration 1 -o t.weir --functions 'Served:step,Served:turn' -p $program 2>record.txt
		equal "Java $name, cycle $cycle: a running JVM is hooked" "0 " "$? $(cat record.txt)"
		equal "Java $name, cycle $cycle: each turn has its 50 steps, but for those at the two ends" yes "$("$WEIR" report hooks t.weir --json |
			python3 -c 'import json,sys
n = {r["function"]: r["hits"] for r in json.load(sys.stdin)["rows"]}
step, turn = n["Served.step(long)"], n["Served.turn(long)"]
print("yes" if turn > 1 and abs(step - 50 * turn) <= 100 else n)')"
	done
	# A recorder that is killed gives nothing back: the library does.
	"$WEIR" record -q -o k.weir --functions 'Served:step' -p $program 2>record.txt &
	recorder=$!
	for _ in $(seq 300); do [ "$(tail -n 1 out.txt)" = "$before" ] || break; sleep 0.05; done
	kill -KILL $recorder
	wait $recorder 2>wait.txt
	for _ in $(seq 300); do [ "$(tail -n 1 out.txt)" != "$before" ] || break; sleep 0.05; done
	equal "Java $name: the recorder is killed, and its bytecode becomes what it was" "$before" "$(tail -n 1 out.txt)"
	grep -v "$before" out.txt >during.txt
	check "Java $name: its bytecode was longer meanwhile" test -s during.txt
	feed 3
	exec 3>&-
	wait $program
	equal "Java $name: the program ends as it would" 0 $?
	equal "Java $name: its bytecode is what it was" "done ${before#size }" "$(tail -n 1 out.txt)"
	equal "Java $name: nothing is printed" "" "$(grep -v -e java.lang.System -e "native" err.txt)"
done
# A JVM that writes its classes to an archive refuses agents at its start; what is changed later would be in the archive,
# and fail in those that begin with it.
cat >Archived.java <<'J'
public class Archived {
	public static void main(String[] args) throws Exception {
		System.out.println("ready");
		while (args.length > 0 && System.in.available() == 0)
			Thread.sleep(1);
		System.out.println(Late.sum());
	}
}
class Late {
	static int sum() { return 42; }
}
J
javac -d archived Archived.java && jar cf archived.jar -C archived .
left_alone() { "$WEIR" report loss t.weir | grep -q '1  Java virtual machine that writes its classes to an archive: its methods are not hooked'; }
"$WEIR" record -q -o t.weir --functions 'Late:*,Archived:*' -- java -XX:ArchiveClassesAtExit=a.jsa -Xlog:disable -cp archived.jar Archived >out.txt 2>err.txt
equal "a JVM that writes an archive does what it does alone" "0 ready 42" "$? $(echo $(cat out.txt err.txt))"
check "and it is said that its methods are not hooked" left_alone
check "it has written its archive" test -s a.jsa
rm -f a.jsa
java -XX:ArchiveClassesAtExit=a.jsa -Xlog:disable -cp archived.jar Archived wait <in >out.txt 2>err.txt &
program=$!
exec 3>in
for _ in $(seq 300); do grep -q ready out.txt && break; sleep 0.05; done
"$WEIR" record -q -o t.weir --functions 'Late:*,Archived:*' -p $program 2>record.txt &
recorder=$!
for _ in $(seq 300); do grep -q weir-hooks "/proc/$program/maps" && break; sleep 0.05; done
sleep 0.5
feed 3
exec 3>&-
wait $program
wait $recorder
check "nor are those of one that runs already" left_alone
equal "who begins with its archive finds the classes as they were" "ready 42" \
	"$(echo $(java -XX:SharedArchiveFile=a.jsa -Xshare:auto -cp archived.jar Archived 2>&1))"
finish
