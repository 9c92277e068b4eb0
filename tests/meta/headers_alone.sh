# SPDX-License-Identifier: MIT
# Every header includes what it needs: it compiles alone, with both compilers and without a warning.
# weir-test: patient
# weir-test: once: looks at the sources alone
. "$ROOT/tests/lib.sh"
flags="-std=gnu17 -D_GNU_SOURCE -I$ROOT/src -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Wwrite-strings -Werror -fsyntax-only -x c"

# Twice, so that a missing guard shows, too.
compile() { # COMPILER HEADER
	# shellcheck disable=SC2086
	printf '#include "%s"\n#include "%s"\n' "$2" "$2" | $1 $flags - 2>&1
}

headers=$(cd "$ROOT/src" && find . -name '*.h' | sed 's,^\./,,' | sort)
check "there are headers" [ "$(echo "$headers" | wc -l)" -ge 50 ]
for compiler in gcc clang; do
	if ! command -v $compiler >/dev/null; then
		skip "headers compile alone with $compiler: it is not installed"
		continue
	fi
	for header in $headers; do
		if compile $compiler "$header" >errors.txt; then ok "$header compiles alone with $compiler"; else
			not_ok "$header compiles alone with $compiler"
			head -n 5 errors.txt
		fi
	done
done
