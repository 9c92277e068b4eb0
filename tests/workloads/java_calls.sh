# SPDX-License-Identifier: MIT
# Entries and exits of Java's methods: each call is counted, in each mode of the JVM, and the program does what it
# does alone.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
# weir-test: long
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"
reason=$(why_no_java)
[ -z "$reason" ] || {
	skip "calls of Java's methods: $reason"
	finish
}
mkdir classes && javac --release 17 -encoding UTF-8 -g -d classes "$java_fixtures"/calls/*.java || { not_ok "the program can be built" && finish; }
times=2000
[ -z "${WEIR_SLOW:-}" ] || times=50000

# counted NAME JAVA "FLAGS" WEIR-OPTIONS...
counted() {
	local name=$1 java=$2 flags=$3
	shift 3
	# shellcheck disable=SC2086
	command=("$java" $flags -cp classes calls.Calls truth classes $times)
	expected=9
	same_as_alone "$name" --events 'calls.*' "$@"
	"$WEIR" report flat t.weir --json >flat.json 2>report.txt
	"$WEIR" report hooks t.weir --json >hooks.json 2>>report.txt
	python3 "$java_fixtures/calls/judge.py" "$name" truth flat.json hooks.json
}

counted "interpreted" java -Xint --no-sample
counted "compiled at once" java -Xcomp --no-sample
counted "compiled by C1" java -XX:TieredStopAtLevel=1 --no-sample
counted "mixed" java "" --no-sample
counted "mixed, with samples" java ""
counted "ZGC" java -XX:+UseZGC --no-sample
counted "with a verifier for all classes" java "-XX:+UnlockDiagnosticVMOptions -XX:+BytecodeVerificationLocal" --no-sample
counted "a tree" java "" --no-sample --tree
if [ -x "$jdk_25/bin/java" ]; then
	rm -f alone.out
	counted "JDK 25" "$jdk_25/bin/java" "" --no-sample
else
	skip "JDK 25: it is not at $jdk_25"
fi
