# SPDX-License-Identifier: MIT
# What weir count -- CMD may not do to programs that live dangerously: masks of signals, code that changes.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
fixtures=$ROOT/tests/fixtures/translate
"$WEIR" count -q -o true.weir -- true 2>err.txt || { skip "dangerous programs: $(head -n 1 err.txt)" && finish; }
gcc -O1 -o signal_masks "$fixtures/signal_masks.c" -lpthread || exit 1
gcc -O1 -o own_code "$fixtures/own_code.c" -lpthread 2>gcc.txt || exit 1

# same SENTENCE COMMAND...: what it prints, and its status, are as they are without us
same() {
	local sentence=$1 expected
	shift
	expected=$("$@" 2>&1) || expected+=" and fails"
	equal "$sentence" "$expected" "$("$WEIR" count -q -o t.weir -- "$@" 2>&1 || echo " and fails")"
}

same "masks are right among signals, and for programs that begin" ./signal_masks
same "a program that begins with SIGTRAP and SIGSEGV blocked keeps them so" ./signal_masks blocked
same "code that changes, in its own block, too, or by another mapping, is executed as it is" ./own_code
