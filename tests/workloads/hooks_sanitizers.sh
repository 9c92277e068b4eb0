# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Programs that are built with sanitizers start, count their calls, and find their errors as without hooks.
. "$ROOT/tests/lib.sh"
# The runner has reports of our own programs put aside as failures; those of the fixture are meant.
unset ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS MSAN_OPTIONS
fixture=$ROOT/tests/fixtures/hooks/sanitized.c

# The environment that a shared runtime of clang needs to be found.
runtime=$(dirname "$(clang -print-file-name=libclang_rt.asan-x86_64.so 2>/dev/null)")

# sanitized COMPILER FLAGS...
sanitized() {
	local name=$* status expected
	if ! "$@" -O1 -g -o program "$fixture" -lpthread 2>build.txt; then
		skip "$name: this compiler cannot"
		return 1
	fi
	LD_LIBRARY_PATH=$runtime "$WEIR" record -q --events step -o t.weir -- ./program >out.txt 2>err.txt
	status=$?
	"$WEIR" report flat t.weir --json >flat.json 2>>err.txt
	equal "$name: starts, and every call is counted" "0 200 ${counted:-200}" \
		"$status $(cat out.txt) $(json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name']=='step')")"
	LD_LIBRARY_PATH=$runtime ./program bad >out.txt 2>err.plain
	expected="$? $(grep -o 'SUMMARY: [A-Za-z]*: [a-z-]*' err.plain)"
	LD_LIBRARY_PATH=$runtime "$WEIR" record -q --events step -o t.weir -- ./program bad >out.txt 2>err.txt
	equal "$name: finds what it finds without hooks" "$expected" "$? $(grep -o 'SUMMARY: [A-Za-z]*: [a-z-]*' err.txt)"
}
sanitized gcc -fsanitize=address
# refuses COMPILER: each function hands its return address to ThreadSanitizer, so a hook must not replace it.
refuses() {
	counted=0 sanitized "$1" -fsanitize=thread || return
	"$WEIR" report hooks t.weir --json >hooks.json 2>err.txt
	equal "$1 -fsanitize=thread: says why no call is counted" "it reads or moves its own return address" \
		"$(json hooks.json "[r['reason'] for r in j['rows'] if r['function'] == 'step'][0]")"
}
refuses gcc
sanitized gcc -fsanitize=undefined
sanitized gcc -fsanitize=leak
if command -v clang >/dev/null; then
	sanitized clang -fsanitize=address
	sanitized clang -fsanitize=address -shared-libasan
	refuses clang
	sanitized clang -fsanitize=memory
else
	skip "clang: not installed"
fi

# What the user has said stays, and programs further down start, too.
gcc -fsanitize=address -O1 -g -o program "$fixture" -lpthread 2>build.txt || skip "gcc -fsanitize=address: this compiler cannot"
ASAN_OPTIONS=exitcode=42 "$WEIR" record -q --events step -o t.weir -- sh -c './program bad; echo $?; echo $ASAN_OPTIONS' >out.txt 2>err.txt
equal "below a shell, with options of the user's own" "200 42 exitcode=42:verify_asan_link_order=0" "$(tr '\n' ' ' <out.txt | sed 's/ $//')"
