# SPDX-License-Identifier: MIT
# Another's recorder in the same run: the JVM's own (JFR) beside weir, over a program that nobody here wrote.
# weir-test: alone: shares of samples depend on the load
# weir-test: once: takes long; java_shapes.sh records with sanitizers
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"
reason=$(why_no_java)
[ -n "$reason" ] || command -v jfr >/dev/null || reason="the JDK has no jfr"
[ -n "$reason" ] || [ -e /usr/share/java/h2.jar ] || reason="libh2-java is not installed"
[ -z "$reason" ] || {
	skip "Java by another's recorder: $reason"
	finish
}
times=4
[ -z "${WEIR_SLOW:-}" ] || times=25
python3 "$java_fixtures/make_work.py" . 60 || { not_ok "the work can be made" && finish; }
for ((i = 0; i < times; i++)); do cat work.sql; echo 'drop table t;'; done >long.sql

# both NAME FLAGS...
both() {
	local name=$1 rc
	shift
	"$WEIR" record -q -o t.weir -- java "$@" -Xlog:disable -Xlog:all=error:stderr \
		"-XX:StartFlightRecording:filename=r.jfr,settings=profile,jdk.ExecutionSample#period=5ms" -cp /usr/share/java/h2.jar \
		org.h2.tools.RunScript -url jdbc:h2:mem: -script long.sql -showResults >out.txt 2>err.txt
	rc=$?
	equal "$name: it ends as alone" 0 $rc
	jfr print --json --stack-depth 512 --events jdk.ExecutionSample r.jfr >jfr.json
	"$WEIR" report samples t.weir --json >samples.json 2>report.txt
	"$WEIR" report threads t.weir --json >threads.json 2>>report.txt
	python3 "$java_fixtures/jfr_judge.py" "$name" jfr.json samples.json threads.json
}
both "H2"
[ -z "${WEIR_SLOW:-}" ] || both "H2, interpreted" -Xint
[ -z "${WEIR_SLOW:-}" ] || both "H2, ZGC" -XX:+UseZGC
