# SPDX-License-Identifier: MIT
# tests/run itself, on a small tree of made-up tests: what is a failure, and which build runs what.
# weir-test: once: looks at tests/run alone
. "$ROOT/tests/lib.sh"
unset T WEIR_SLOW WEIR_TEST_SECONDS
mkdir -p tree/tests/{unit/base,fuzz/corpus/f,cli} tree/build{,-san,-tsan}/tests/{unit/base,fuzz}
cp "$ROOT"/tests/{run,whole.bash,lib.sh} tree/tests/
cd tree || exit 1

# made FILE LINES...: a shell test
made() {
	local file=tests/cli/$1.sh
	shift
	printf '%s\n' '. "$ROOT/tests/lib.sh"' "$@" >"$file"
}
# run [BUILDS]: rc, out.txt
run() { tests/run "${@:-build}" >out.txt 2>&1; rc=$?; }
for build in build build-san build-tsan; do
	printf '#!/bin/sh\necho ok unit\necho end\n' >$build/tests/unit/base/u_test
	cp $build/tests/unit/base/u_test $build/tests/fuzz/f_fuzz
	cp $build/tests/unit/base/u_test $build/weir
	chmod +x $build/weir $build/tests/{unit/base,fuzz}/*
done
echo '/* weir-test: tsan */' >tests/unit/base/u_test.c
touch tests/fuzz/f_fuzz.c

made good 'ok one' 'skip "two: no reason"'
run
equal "tests of all kinds are found and counted" "0 3 passed, 0 failed, 1 skipped" "$rc $(tail -n 1 out.txt)"

# bad SENTENCE WHY LINES...: a test of these lines fails, and the log says why, each time and at the end
bad() {
	local sentence=$1 why=$2
	shift 2
	made bad "$@"
	T=cli/bad run
	equal "$sentence" "1 ${times_told:-3}" "$rc $(grep -c "$why" out.txt)"
	rm tests/cli/bad.sh
}
bad "a test that stops half-way with status 0 fails" "stopped half-way" 'ok one' 'exit 0' 'ok two'
bad "so does one that stops in a function" "stopped half-way" 'f() { ok one; exit; }' 'f' 'ok two'
bad "one that ends with another status fails" "ended with status 3" 'ok one' 'exit 3'
bad "and one whose last command fails" "ended with status 1" 'ok one' 'false'
bad "one that says nothing fails" "printed no verdict" 'true'
bad "one that uses an unset name fails" "ended with status" 'ok one' 'echo "$nosuch"' 'ok two'
bad "one that says so fails" "^  | not ok one" 'ok zero' 'not_ok one'
times_told=2 bad "a sanitizer's report in a process that nobody looks at fails" "a sanitizer reports" \
	'(echo report >"${ASAN_OPTIONS##*log_path=}.17") &' 'wait' 'ok one'
bad "one whose helper in Python dies fails" "a part of it stopped half-way" 'ok one' 'python3 -c "print(\"ok two\"); 1 / 0"' 'ok three'
bad "one whose subshell dies fails" "a part of it stopped half-way" 'ok one' '(ok two; echo "$nosuch"; ok three)' 'ok four'
bad "one that calls what is not there fails" "a part of it stopped half-way" 'ok one' 'nosuch --verdict' 'ok two'
WEIR_TEST_SECONDS=1 bad "one that takes too long fails" "ended with status 124" 'ok one' 'sleep 20'

# bad_program KIND FILE LINES...: likewise for the program of a test in C
bad_program() {
	local program=build/tests/$2
	cp "$program" kept
	printf '%s\n' '#!/bin/sh' "${@:3}" >"$program"
	T=$2 run
	equal "a $1 that stops half-way with status 0 fails" "1 2" "$rc $(grep -c "stopped half-way" out.txt)"
	mv kept "$program"
}
bad_program "unit test" unit/base/u_test 'echo ok one'
bad_program "fuzz target" fuzz/f_fuzz 'echo ok one'

made early 'ok one' 'skip "two: not here"' 'finish' 'not_ok never'
T=cli/early run
equal "finish ends a test early" "0 1 passed, 0 failed, 1 skipped" "$rc $(tail -n 1 out.txt)"
rm tests/cli/early.sh

made root '# weir-test: root: what root may do' 'ok one'
mkdir fake
for id in 0 1000; do
	printf '#!/bin/sh\necho %s\n' $id >fake/id
	chmod +x fake/id
	PATH=$PWD/fake:$PATH run
	equal "one that needs root, as user $id" "0 $([ $id = 0 ] && echo "4 passed, 0 failed, 1" || echo "3 passed, 0 failed, 2") skipped" \
		"$rc $(tail -n 1 out.txt)"
done
equal "says what is skipped as a whole" "  skip what root may do: needs root" "$(grep 'needs root' out.txt)"
rm -r tests/cli/root.sh fake

mkdir tests/meta
cp tests/cli/good.sh tests/meta/tree.sh
run
equal "what is said about the tree is counted apart" "0 meta: 1 passed, 0 failed/3 passed, 0 failed, 2 skipped" \
	"$rc $(tail -n 2 out.txt | paste -sd /)"
printf '. "$ROOT/tests/lib.sh"\nok one\nnot_ok two\n' >tests/meta/tree.sh
run
equal "and its failures are failures" "1 meta: 1 passed, 1 failed/3 passed, 1 failed, 1 skipped" \
	"$rc $(tail -n 2 out.txt | paste -sd /)"
rm -r tests/meta

made once '# weir-test: once: there is no other reason' 'ok one'
made threads '# weir-test: tsan' 'ok "is it here"'
made less 'ok "$WEIR_SAN"'
run build build-san build-tsan
equal "each build runs what is for it" "0 build cli/less.sh build cli/once.sh build-san cli/good.sh build-san cli/less.sh build-san cli/threads.sh build-san fuzz/f_fuzz build-san unit/base/u_test build-tsan cli/threads.sh build-tsan unit/base/u_test" \
	"$rc $(sed -n 's, tests/, ,; s/^\(build[^ ]* [^ ]*\) .* passed .*/\1/p' out.txt | sort | xargs)"
WEIR_SLOW=1 run build build-san build-tsan
equal "where time does not matter the first build runs all" "0 build cli/good.sh build cli/threads.sh" \
	"$rc $(sed -n 's, tests/, ,; s/^\(build cli.[gt][^ ]*\) .* passed .*/\1/p' out.txt | sort | xargs)"
rm build/tests/unit/base/u_test
run
equal "a test that was not built fails" "1 2" "$rc $(grep -c 'unit/base/u_test ended with status 127' out.txt)"

made odd '# weir-test: sometimes' 'ok one'
T=good run
equal "an unknown word is told before anything runs" "1 tests/cli/odd.sh: this says nothing to tests/run: # weir-test: sometimes" \
	"$rc $(cat out.txt)"
made odd '# weir-test: once' 'ok one'
T=good run
equal "and so is a missing reason" "1 tests/cli/odd.sh: 'once' needs a reason" "$rc $(cat out.txt)"
rm tests/cli/odd.sh

# Those that are alone do not meet each other, and those that are patient run beside them.
for i in 1 2; do
	made alone$i '# weir-test: alone: as a test' 'mkdir "$ROOT/lock" && ok "alone"' \
		'for i in {1..3000}; do [ -e "$ROOT/met" ] && break; sleep 0.01; done; sleep 0.1; rmdir "$ROOT/lock"'
	made patient$i '# weir-test: patient' 'ok "$(nice)"'
done
made patient1 '# weir-test: patient' 'for i in {1..3000}; do [ -e "$ROOT/lock" ] && break; sleep 0.01; done' \
	'check "beside one that is alone" [ -e "$ROOT/lock" ]; touch "$ROOT/met"'
made whole '# weir-test: whole: as a test' 'sleep 0.1' 'check "nothing else runs" [ "$(pgrep -fc "^bash $ROOT.*[w]hole.bash")" = 1 ]'
T=cli/ run
equal "patient tests run beside those that are alone" "0 9 passed, 0 failed" "$rc $(sed -n '$s/, [0-9]* skipped//p' out.txt)"

# A few that fail are run once more, alone, before it is a failure; but not what does not depend on the machine.
made twice 'echo >>"$ROOT/tries"' 'check "quiet" [ "$(wc -l <"$ROOT/tries")" -ge "$(cat "$ROOT/quiet_at")" ]'
echo 2 >quiet_at
T=twice run
equal "a test that fails is run once more, and that it failed is told" "0 1 passed, 0 failed 1 1 2" \
	"$rc $(sed -n '$p' out.txt) $(grep -c '^once more' out.txt) $(grep -c '^unsteady: .*cli/twice.sh' out.txt) $(grep -c '^  | not ok quiet' out.txt)"
rm tries && echo 3 >quiet_at
T=twice run
equal "and fails at the second time" "1 0 passed, 1 failed 2 0" \
	"$rc $(sed -n '$p' out.txt) $(wc -l <tries) $(grep -c '^unsteady' out.txt)"
rm tries
made twice 'echo >>"$ROOT/tries"; echo report >"${ASAN_OPTIONS##*log_path=}.17"; ok one; not_ok two'
T=twice run
equal "one of which a sanitizer reports is not asked twice" "1 1" "$rc $(wc -l <tries)"
rm tries tests/cli/twice.sh
mkdir tests/meta
made ../meta/twice 'echo >>"$ROOT/tries"; not_ok one'
T=twice run
equal "nor is what is said about the tree" "1 1" "$rc $(wc -l <tries)"
rm -r tries tests/meta
for i in {1..7}; do made twice$i 'echo >>"$ROOT/tries"; not_ok one'; done
T=twice run
equal "nor is anything when many fail" "1 0 passed, 7 failed 7" "$rc $(sed -n '$p' out.txt) $(wc -l <tries)"
