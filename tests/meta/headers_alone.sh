# SPDX-License-Identifier: MIT
# Every header includes what it needs: it compiles alone, with both compilers and without a warning.
# weir-test: patient
# weir-test: once: looks at the sources alone
. "$ROOT/tests/lib.sh"
flags="-std=gnu17 -D_GNU_SOURCE -I$ROOT/src -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Wwrite-strings -Werror -fsyntax-only -x c"

headers=$(cd "$ROOT/src" && find . -name '*.h' | sed 's,^\./,,' | sort)
check "there are headers" [ "$(echo "$headers" | wc -l)" -ge 50 ]
# Twice, so that a missing guard shows, too. All are compiled by one call, and singly if that fails.
n=0
for header in $headers; do
	printf '#include "%s"\n#include "%s"\n' "$header" "$header" >$((++n)).c
done
for compiler in gcc clang; do
	if ! command -v $compiler >/dev/null; then
		skip "headers compile alone with $compiler: it is not installed"
		continue
	fi
	# shellcheck disable=SC2086
	$compiler $flags ./*.c >errors.txt 2>&1 && all=true || all=false
	n=0
	for header in $headers; do
		# shellcheck disable=SC2086
		if $all || $compiler $flags $((++n)).c >errors.txt 2>&1; then ok "$header compiles alone with $compiler"; else
			not_ok "$header compiles alone with $compiler"
			head -n 5 errors.txt
		fi
	done
done
