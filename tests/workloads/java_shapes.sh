# SPDX-License-Identifier: MIT
# A Java program of known shape in each mode of the JVM: shares, callers, lines, threads. The program has measured
# itself; javap knows its lines and calls.
# weir-test: alone: shares of samples depend on the load
# weir-test: long
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"
reason=$(why_no_java)
[ -z "$reason" ] || {
	skip "Java programs of known shape: $reason"
	finish
}
build_shapes classes || { not_ok "the program can be built" && finish; }
millis=60
[ -z "${WEIR_SLOW:-}" ] || millis=400

# in_mode NAME MODE JAVA FLAGS...
in_mode() {
	local name=$1 mode=$2 java=$3
	shift 3
	[[ $name =~ ${ONLY:-.} ]] || return # by hand: some of them
	shapes "$java" $millis "${java_parts[@]}" -- "$@"
	same_as_alone "$name" -F 1999
	judge_shapes "$name" "$mode"
}

# A recorder with sanitizers is several times slower, and late: it is run for its memory errors.
if [ -n "$WEIR_SAN" ]; then
	shapes java $millis "${java_parts[@]}" --
	same_as_alone "with sanitizers" -F 499
	"$WEIR" report flat t.weir --json >flat.json 2>report.txt
	check "with sanitizers: methods have their names" test "$(json flat.json "any('shapes.Shapes.main(' in r['name'] for r in j['rows'])")" = True
	finish
fi
in_mode "interpreted" int java -Xint
in_mode "compiled at once" comp java -Xcomp
in_mode "compiled by C1" mixed java -XX:TieredStopAtLevel=1
in_mode "Serial" mixed java -XX:+UseSerialGC
in_mode "Parallel" mixed java -XX:+UseParallelGC
in_mode "ZGC" mixed java -XX:+UseZGC
in_mode "G1" mixed java -XX:+UseG1GC
in_mode "with notes of all that is compiled" exact java -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints
if [ -x "$jdk_25/bin/java" ]; then
	rm -f alone.out
	java_parts+=(virtualThreads)
	in_mode "JDK 25" mixed "$jdk_25/bin/java" --enable-native-access=ALL-UNNAMED
else
	skip "JDK 25: it is not at $jdk_25"
fi
