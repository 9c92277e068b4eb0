# SPDX-License-Identifier: MIT
# Programs built with the compiler's own support for tracing are hooked through that.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

# by METHOD FLAGS...
by() {
	local method=$1 methods
	shift
	build program compiled_in.c "$@" || { skip "$*: the compiler cannot ($(head -n 1 build.txt))" && return; }
	same "$*" '*' ./program
	methods=$(json case_$((n_cases - 1))/hooks.json \
		"' '.join(sorted({r['method'] for r in j['rows'] if r['function'] in ('first', 'second', 'third', 'recursive', 'sixfold')}))")
	equal "$*: hooked by $method" "$method" "$methods"
}
by mcount -O2 -pg
by mcount -O2 -pg -mfentry
by mcount -O0 -pg
by mcount -O2 -pg -no-pie
by instrument -O2 -finstrument-functions
by nop -O2 -fpatchable-function-entry=5
by nop -O2 -fpatchable-function-entry=10,5
by nop -O0 -fpatchable-function-entry=5 -fcf-protection=full
by mcount -O2 -pg -m32
by instrument -O2 -finstrument-functions -m32
by nop -O2 -fpatchable-function-entry=5 -m32
# Too few bytes for a jump: as if there were none.
build program compiled_in.c -O2 -fpatchable-function-entry=1 && same "-fpatchable-function-entry=1" '*' ./program
if command -v clang >/dev/null; then
	clang -w -O2 -pg -o program "$hook_fixtures/compiled_in.c" && same "clang -pg" '*' ./program
	clang -w -O2 -o program "$hook_fixtures/compiled_in.c" && same "clang" '*' ./program
fi
judge_counts
