# SPDX-License-Identifier: MIT
# What the house style says and a machine can see.
# weir-test: once: looks at the sources alone
. "$ROOT/tests/lib.sh"
cd "$ROOT" || exit 1

sources() { # every source file that is ours; not what is built, nor corpora and expected outputs
	find src kern tests tools bench include web -type f \( -name '*.[chS]' -o -name '*.cc' -o -name '*.cpp' \
		-o -name '*.sh' -o -name '*.py' -o -name '*.js' -o -name '*.mjs' -o -name '*.ts' -o -name '*.tsx' -o -name '*.css' -o -name '*.java' -o -name '*.pl' \) \
		-not -path '*/corpus/*' -not -path '*/node_modules/*' -not -path 'web/dist/*' 2>/dev/null
	find tools tests/run bench/run .ci -type f -perm -u+x 2>/dev/null
	echo Makefile
}
mapfile -t files < <(sources | sort -u)
check "there are source files" [ ${#files[@]} -ge 100 ]

# The first line, or the second one below #!.
equal "every source file begins with its SPDX line" "" "$(awk '
	FNR == 1 { at = /^#!/ ? 2 : 1 }
	FNR == at && !/SPDX-License-Identifier: [A-Za-z0-9.-]+/ { print FILENAME }' "${files[@]}")"
equal "no source file has more than 800 lines" "" \
	"$(wc -l "${files[@]}" | awk '$2 != "total" && $1 > 800 { print $2 ": " $1 }')"
equal "no function has more than 60 lines" "" "$(find src -name '*.[ch]' | sort | xargs awk '
	FNR == 1 || /^}/ { if (FNR > 1 && from && FNR - from >= 60) print FILENAME ":" from ": " FNR - from + 1; from = 0 }
	/^\{/ { from = FNR }')"
equal "no source file has a mark of unfinished work" "" \
	"$(grep -nwE 'TODO|FIXME|XXX|HACK' "${files[@]}" | grep -v '^tests/meta/style.sh:')"
equal "no line ends with blanks" "" "$(grep -nE '[[:blank:]]+$' "${files[@]}" | head -n 20)"
equal "no source file has a name that says nothing" "" \
	"$(printf '%s\n' "${files[@]}" | grep -E '/(util|utils|misc|common|helper|helpers|manager)(_[a-z]+)?\.')"
equal "names of C files are unique in src/" "" "$(find src -name '*.c' -printf '%f\n' | sort | uniq -d)"
equal "every header has the guard of its path" "" "$(find src -name '*.h' | sort | xargs awk '
	function tell() { if (guard && n != 2) print file ": " guard }
	FNR == 1 { tell(); n = 0; file = FILENAME; guard = "WEIR_" toupper(substr(file, 5)); gsub("[/.]", "_", guard) }
	$0 == "#ifndef " guard || $0 == "#define " guard { n++ }
	END { tell() }')"
equal "every unit test is in a folder that src/ has" "" "$(cd tests/unit && find . -name '*_test.c' | sort |
	while read -r file; do [ -n "$(find "../../src/${file%/*}" -maxdepth 1 -name '*.[chS]' 2>/dev/null)" ] || echo "$file"; done)"
equal "no shell test dies of a program that reads no more: lines go through feed" "" \
	"$(grep -nE '^[^#]*\<(echo|printf)\>[^|()]*>&("?\$\{?[a-z]|[3-9])' -r --include='*.sh' tests)"
equal "struct types have no typedef" "" "$(grep -nE '^typedef (struct|union|enum)' -r --include='*.[ch]' src)"
for script in tests/run tools/* .ci/run; do
	[ -f "$script" ] || continue
	check "$script is executable" [ -x "$script" ]
done
for script in $(find tests tools -type f \( -name '*.sh' -o -path 'tools/*' -o -path tests/run \) | sort); do
	head -n 1 "$script" | grep -q python && continue
	check "$script is good bash" bash -n "$script"
done
