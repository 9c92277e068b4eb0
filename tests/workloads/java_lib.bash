# SPDX-License-Identifier: MIT
# Sourced by the tests of Java: a JDK, the program of known shape (fixtures/java), and the same output with and
# without weir.
java_fixtures=$ROOT/tests/fixtures/java
jdk_25=${WEIR_JDK_25:-/usr/lib/jvm/temurin-25-jdk-amd64}
java_parts=(shares recursion virtualCalls interfaceCalls lambdas streams exceptions callbacks loading deoptimised
	garbage threads)

# why_no_java: prints why nothing of Java can be tested here, or nothing.
why_no_java() {
	if ! command -v java >/dev/null || ! command -v javac >/dev/null; then
		echo "no JDK is installed (tools/deps check)"
	elif [ ! -d "$(jdk_home)/include" ]; then
		echo "the JDK has no jni.h"
	fi
}

jdk_home() { dirname "$(dirname "$(readlink -f "$(command -v javac)")")"; }

# build_shapes FOLDER: the program, its library, and what javap says of its classes.
build_shapes() {
	local home
	home=$(jdk_home)
	mkdir -p "$1" && javac --release 17 -encoding UTF-8 -g -d "$1" "$java_fixtures"/shapes/*.java &&
		gcc -O2 -shared -fPIC -I"$home/include" -I"$home/include/linux" -o "$1/libshapes.so" "$java_fixtures/shapes/shapes.c" &&
		javap -p -c -l -cp "$1" $(cd "$1" && find . -name '*.class' | sed 's,^\./,,; s,/,.,g; s,\.class$,,') >"$1/javap.txt"
}

# shapes JAVA MILLISECONDS PARTS... -- FLAGS...: sets `command` to that of the program; its truth goes to ./truth
shapes() {
	local java=$1 millis=$2 parts=()
	shift 2
	while [ "$1" != -- ]; do parts+=("$1") && shift; done
	shift
	command=("$java" -Xmx96m "$@" -cp classes -Djava.library.path="$PWD/classes" shapes.Shapes truth "$millis" "${parts[@]}")
}

# same_as_alone NAME [WEIR-OPTIONS...]: runs `command` alone and under weir record, into t.weir; both print the same
# and end with the same status, `expected`. The truth that is left is that of the recorded one.
expected=7
same_as_alone() {
	local name=$1 alone=$expected recorded=0
	shift
	if [ ! -e alone.out ]; then # the same program with other flags of the JVM does the same
		timeout 120 "${command[@]}" >alone.out 2>alone.err
		alone=$?
		[ $alone -eq $expected ] || not_ok "$name: alone it ends with $alone instead of $expected"
	fi
	timeout 200 "$WEIR" record -q "$@" -o t.weir -- "${command[@]}" >recorded.out 2>recorded.err || recorded=$?
	if cmp -s alone.out recorded.out && cmp -s alone.err recorded.err && [ $alone -eq $recorded ]; then
		ok "$name: the program prints what it prints alone, and ends as alone"
	else
		not_ok "$name: the program prints what it prints alone, and ends as alone (status $alone, recorded $recorded)"
		diff alone.out recorded.out | head -n 5
		diff alone.err recorded.err | head -n 5
	fi
}

# judge_shapes NAME MODE: what the truth says of t.weir
judge_shapes() {
	"$WEIR" report samples t.weir --json >classes/samples.json 2>report.txt
	"$WEIR" report threads t.weir --json >classes/threads.json 2>>report.txt
	"$WEIR" report loss t.weir --json >classes/loss.json 2>>report.txt
	cp truth classes/truth
	python3 "$java_fixtures/shapes/judge.py" "$1" classes "$2"
}
