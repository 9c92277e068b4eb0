#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Layouts of structures and places of arguments in both modes, against gcc -m32 and -m64.
# weir-test: patient
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/probe_layout_dump

# compare SENTENCE structs|calls SEED N
compare() {
	local sentence=$1
	shift
	if python3 "$ROOT/tests/oracle/probe_layout.py" "$1" "$dump" "$2" "$3" >compare.txt 2>&1; then
		ok "$sentence: $(tail -n 1 compare.txt)"
	else
		not_ok "$sentence"
		head -n 20 compare.txt
	fi
}

if ! echo 'int main(void) { return 0; }' | gcc -m32 -x c -o m32 - 2>/dev/null; then
	skip "structures are laid out as gcc does: gcc cannot build 32-bit programs (gcc-multilib)"
	finish
fi
n=$((${WEIR_SLOW:+9} + 1)) # times as many when there is time
compare "structures are laid out as gcc does" structs 1 $((60 * n))
compare "arguments and results are where gcc puts them" calls 1 $((30 * n))
