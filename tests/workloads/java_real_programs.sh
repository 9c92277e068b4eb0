# SPDX-License-Identifier: MIT
# Programs in Java that nobody here wrote: ant with a JVM that it starts, Eclipse's compiler, the database H2. They do
# and print what they do alone; their stacks are complete, and have the methods that they are known for.
# weir-test: alone: shares of samples depend on the load
# weir-test: once: takes long; java_shapes.sh records with sanitizers
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"
reason=$(why_no_java)
[ -z "$reason" ] || {
	skip "real programs in Java: $reason"
	finish
}
size=12
[ -z "${WEIR_SLOW:-}" ] || size=150
python3 "$java_fixtures/make_work.py" . $size || { not_ok "the work can be made" && finish; }

# What differs from run to run: how long it took.
timeless() { sed -E 's/Total time: .*/Total time/; s/[0-9]+ (m?s|milliseconds|seconds)\b/TIME/g' "$1"; }

# judge_real NAME METHODS...: of t.weir
judge_real() {
	local name=$1 method text
	shift
	"$WEIR" report loss t.weir --json >loss.json 2>report.txt
	"$WEIR" report flat t.weir --json >flat.json 2>>report.txt
	text=$(json loss.json "'%d of %d' % (j['loss']['stacks_complete'], j['loss']['stacks'])")
	check "$name: 99 % of the stacks are complete ($text)" test "$(json loss.json \
		"j['loss']['stacks'] >= 200 and j['loss']['stacks_complete'] * 1000 >= j['loss']['stacks'] * 990")" = True
	json loss.json "j['loss']['reasons']"
	for method; do
		check "$name: $method has a twentieth of the time or more" test "$(json flat.json \
			"sum(r['cum'] for r in j['rows'] if ':$method(' in r['name']) * 20 >= j['total']")" = True
	done
}

# real NAME "MADE FOLDERS" COMMAND...: alone, and recorded from its start; what it prints and makes is the same.
real() {
	local name=$1 made=$2 alone recorded sums
	shift 2
	rm -rf $made
	"$@" >alone.out 2>alone.err
	alone=$?
	sums=$(find $made -type f ! -name '*.jar' 2>/dev/null -exec md5sum {} + | sort)
	rm -rf $made
	"$WEIR" record -q -F 1999 -o t.weir -- "$@" >recorded.out 2>recorded.err
	recorded=$?
	equal "$name: it ends as alone" $alone $recorded
	equal "$name: it prints what it prints alone" "$(timeless alone.out) $(timeless alone.err)" "$(timeless recorded.out) $(timeless recorded.err)"
	equal "$name: it makes what it makes alone" "$sums" "$(find $made -type f ! -name '*.jar' 2>/dev/null -exec md5sum {} + | sort)"
}

if command -v ant >/dev/null; then
	real ant "classes copied sums made.jar" ant -q -f build.xml
	judge_real ant org.apache.tools.ant.Main.runBuild
	check "ant: the JVM that it starts is there, too" test "$(json flat.json "any('made.Made0.chosen(' in r['name'] for r in j['rows'])")" = True
else
	skip "ant: it is not installed"
fi

ecj=/usr/share/java/eclipse-jdt-core.jar
if [ -e $ecj ]; then
	real "Eclipse's compiler" ecj java -cp $ecj org.eclipse.jdt.internal.compiler.batch.Main -17 -proc:none -nowarn -d ecj src
	judge_real "Eclipse's compiler" org.eclipse.jdt.internal.compiler.batch.Main.compile org.eclipse.jdt.internal.compiler.Compiler.compile
	[ -z "${WEIR_SLOW:-}" ] || real "Eclipse's compiler, interpreted" ecj java -Xint -cp $ecj org.eclipse.jdt.internal.compiler.batch.Main -17 -proc:none -nowarn -d ecj src
	[ -z "${WEIR_SLOW:-}" ] || judge_real "Eclipse's compiler, interpreted" org.eclipse.jdt.internal.compiler.batch.Main.compile org.eclipse.jdt.internal.compiler.Compiler.compile
else
	skip "Eclipse's compiler: ecj is not installed"
fi

h2=/usr/share/java/h2.jar
if [ -e $h2 ]; then
	sql=(java -cp $h2 org.h2.tools.RunScript -url jdbc:h2:mem: -script work.sql -showResults)
	real H2 none "${sql[@]}"
	judge_real H2 org.h2.tools.RunScript.runTool org.h2.command.Command.executeUpdate
	# Attached to while it works.
	for _ in {1..6}; do cat work.sql; echo 'drop table t;'; done >long.sql
	sql=(java -cp $h2 org.h2.tools.RunScript -url jdbc:h2:mem: -script long.sql -showResults)
	"${sql[@]}" >alone.out 2>alone.err
	"${sql[@]}" >attached.out 2>attached.err &
	program=$!
	runs $program
	sleep 0.6
	"$WEIR" record -q -F 1999 -p $program --duration 1.5 -o t.weir 2>err.txt
	rc=$?
	check "H2, attached to: recorded (status $rc)" test $rc -eq 0 -o $rc -eq 3
	head -n 3 err.txt
	wait $program
	equal "H2, attached to: it ends as alone" 0 $?
	equal "H2, attached to: it prints what it prints alone" "$(cat alone.out alone.err | md5sum)" "$(cat attached.out attached.err | md5sum)"
	judge_real "H2, attached to" org.h2.tools.RunScript.runTool
else
	skip "H2: libh2-java is not installed"
fi
