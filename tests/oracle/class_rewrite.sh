# SPDX-License-Identifier: MIT
# Rewritten classes, judged by JVMs: their verifier takes each, programs do what they did, and as many calls are
# entered and left as the program counts itself.
# weir-test: once: the classes run in a JVM; the rewriter itself is fuzzed with sanitizers
# weir-test: patient
. "$ROOT/tests/lib.sh"
fixtures=$ROOT/tests/fixtures/class_rewrite
rewrite=$BUILD/tests/oracle/class_rewrite

# jdks: folders of those that are here, of different versions.
jdks() {
	local first
	first=$(readlink -f "$(command -v javac)")
	printf '%s\n' "${first%/bin/javac}" /usr/lib/jvm/temurin-25-jdk-amd64 | sort -u | while read -r jdk; do
		[ ! -x "$jdk/bin/javac" ] || echo "$jdk"
	done
}

command -v javac >/dev/null || { skip "rewritten classes are verified: no javac" && finish; }
for jdk in $(jdks); do
	name=$(basename "$jdk")
	mkdir -p "$name/old" "$name/hook" && cd "$name" || exit 1
	"$jdk/bin/javac" --patch-module java.base="$fixtures" -d hook "$fixtures/WeirHook.java"
	"$jdk/bin/javac" -g -d old "$fixtures/Counted.java" 2>javac.txt || cat javac.txt
	"$jdk/bin/javac" -d . "$fixtures/Started.java" "$fixtures/LinkClasses.java"
	"$jdk/bin/java" -cp old Counted >expected.txt
	for first in 1 40000 "1 count"; do # numbers that are instructions' operands, and constants; bytecodes are counted
		rm -rf new && "$rewrite" old new $first >ids.txt
		for mode in -Xmixed -Xint -Xcomp; do
			"$jdk/bin/java" $mode -Xverify:all -Xlog:disable --patch-module java.base=hook --add-exports java.base/java.lang=ALL-UNNAMED \
				-cp new:. Started counts.txt Counted >got.txt 2>err.txt
			equal "$name $mode, ids from $first: the program prints the same" "$(cat expected.txt)" "$(cat got.txt err.txt | grep -v '^OpenJDK.*warning')"
			equal "$name $mode, ids from $first: every call that it counts is entered" "$(grep '^count' expected.txt | cut -d' ' -f2- | sort)" \
				"$(awk 'NR == FNR { n[$1] = $2; next } $1 in n { i = $1; $1 = ""; print n[i] $0 }' counts.txt ids.txt |
					grep -Fxf <(grep '^count' expected.txt | cut -d' ' -f2-) | sort)"
			# An exception in a superclass's constructor is not seen in those that called it.
			equal "$name $mode, ids from $first: every call that is entered is left, but one" "1" \
				"$(awk '$2 != $3 { n += $2 - $3 } END { print n + 0 }' counts.txt)"
		done
	done
	for module in java.xml jdk.compiler; do
		rm -rf old && "$jdk/bin/jimage" extract --dir old --include "regex:/$module/.*" "$jdk/lib/modules"
		[ -d old/$module ] || { skip "$name: the classes of $module are verified: the JDK has none" && continue; }
		for first in 1 "1 count"; do
			rm -rf new && "$rewrite" old new $first >ids.txt
			# Some are nearly as long as the compilers take.
			equal "$name: every method of $module with code is rewritten ($first)" "" "$(grep ': ' ids.txt | grep -v -e 'it has no bytecode$' \
				-e 'it would become longer than 8000 bytes, and the JVM does not compile such methods$')"
			check "$name: 1 of 1000 or fewer of $module are left alone for their length ($first)" test \
				$(($(grep -c 'longer than 8000 bytes' ids.txt) * 1000)) -le "$(wc -l <ids.txt)"
			(cd old/$module && find . -name '*.class' ! -name 'module-info*' | sed 's,^\./,,; s,/,.,g; s,\.class$,,') >list.txt
			equal "$name: the verifier takes all classes of $module ($first)" "some linked, 0 refused" \
				"$("$jdk/bin/java" -Xverify:all -Xlog:disable --patch-module java.base=hook --patch-module $module=new/$module \
					--add-modules $module -cp . LinkClasses list.txt 2>/dev/null)"
		done
	done
	cd .. || exit 1
done
finish
