# SPDX-License-Identifier: MIT
# A folder of src/ includes only itself and folders of lower layers, and only cmd/ prints and exits.
# weir-test: once: looks at the sources alone
. "$ROOT/tests/lib.sh"
declare -A layer=(
	[base]=0
	[arch]=1 [elf]=1 [trace]=1 [bpf]=1
	[dwarf]=2 [calltree]=2
	[symbols]=3 [unwind]=3 [insert]=3 [query]=3
	[process]=4 [formats]=4
	[record]=5
	[steps]=6 [probe]=6
	[cmd]=7
)
cd "$ROOT/src" || exit 1

for folder in *; do
	[ -d "$folder" ] || { not_ok "src/$folder is a folder" && continue; }
	[ "$folder" != rt ] || continue # below
	[ -n "$(find "$folder" -name '*.[ch]')" ] || continue
	if [ -z "${layer[$folder]:-}" ]; then
		not_ok "src/$folder has a layer"
		continue
	fi
	wrong=
	while IFS=: read -r file line text; do
		from=${text#*\"}
		to=${from%%/*}
		[ "$to" != "$from" ] || { wrong+="$file:$line: include without a folder: $text"$'\n' && continue; }
		[ "$to" != "$folder" ] || continue
		# What the recorder and the hook library agree on is the one thing shared with rt/.
		[ "$folder $from" != 'record rt/hook/hook_abi.h"' ] && [ "$folder $from" != 'record rt/hook/hook_tree.h"' ] || continue
		# Likewise what the inserter, the reader of count files and the counting library agree on.
		[ "$folder $from" != 'insert rt/count/count_abi.h"' ] && [ "$folder $from" != 'formats rt/count/count_abi.h"' ] || continue
		if [ -z "${layer[$to]:-}" ]; then
			wrong+="$file:$line: $to has no layer"$'\n'
		elif [ "${layer[$to]}" -ge "${layer[$folder]}" ]; then
			wrong+="$file:$line: $folder (${layer[$folder]}) includes $to (${layer[$to]})"$'\n'
		fi
	done < <(grep -rn --include='*.[ch]' '^#include "' "$folder")
	equal "$folder includes lower layers only" "" "${wrong%$'\n'}"
done

# What runs inside other programs includes nothing of ours but its own folder and rt/base.
equal "folders of rt include themselves and rt/base only" "" \
	"$(grep -rn '^#include "' rt | grep -vE '^rt/[a-z]+/[^/]*#include "(\.\./base/)?[^/]*"$')"

# The C files below cmd/ without comments and the content of strings, each line with its file in front.
code() {
	local file
	find "$1" -name '*.c' | sort | while read -r file; do
		gcc -fpreprocessed -dD -E -P -x c "$file" 2>/dev/null | sed 's/"\([^"\\]\|\\.\)*"/""/g' | sed "s,^,$file: ,"
	done
}

# name(: called, not part of a longer name, a member or a declaration attribute.
calls() { grep -E "(^|[^A-Za-z0-9_.>])($2)[[:space:]]*\(" "$1" | grep -v __attribute__; }

printing='printf|vprintf|puts|putchar|perror|err|errx|warn|warnx'
text=$(mktemp)
for folder in $(printf '%s\n' "${!layer[@]}" | sort); do
	[ "$folder" != cmd ] && [ -d "$folder" ] && [ -n "$(find "$folder" -name '*.c')" ] || continue
	code "$folder" >"$text"
	equal "$folder does not print" "" "$(calls "$text" "$printing"
		grep -wE 'stdout|stderr|STDOUT_FILENO|STDERR_FILENO' "$text")"
	# A forked child that cannot exec, or has only tried something, has no other way to end.
	equal "$folder does not exit" "" "$(calls "$text" 'exit|_exit|_Exit|quick_exit' |
		grep -vE '^process/launch\.c: ')"
done
rm "$text"
equal "main is in cmd/main.c only" cmd/main.c "$(grep -rlE --include='*.c' '^int main\(' . | sed 's,^\./,,')"
