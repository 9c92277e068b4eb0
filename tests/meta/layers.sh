# SPDX-License-Identifier: MIT
# A folder of src/ includes only itself and folders of lower layers, no two folders, sub-folders too, include
# each other, and only cmd/ prints and exits.
# weir-test: once: looks at the sources alone
. "$ROOT/tests/lib.sh"
declare -A layer=(
	[base]=0
	[arch]=1 [elf]=1 [trace]=1 [bpf]=1 [classfile]=1
	[dwarf]=2 [calltree]=2
	[symbols]=3 [unwind]=3 [insert]=3 [query]=3
	[process]=4 [formats]=4 [serve]=4
	[run]=5 [jvm]=5
	[record]=6 [remote]=6
	[probe]=7 [translate]=7 [perfdata]=7
	[steps]=8
	[cmd]=9
	[wasm]=10
)
work=$PWD
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
		# Likewise what the translator and its recorder agree on.
		[ "$folder $from" != 'translate rt/translate/translate_abi.h"' ] || continue
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
# The agent is part of the hook library.
equal "folders of rt include themselves and rt/base only, the agent for Java rt/hook, too" "" \
	"$(grep -rn '^#include "' rt | grep -vE '^rt/[a-z]+/[^/]*#include "(\.\./base/)?[^/]*"$' |
		grep -vE '^rt/java/[^/]*#include "\.\./hook/(hook|ring)\.h"$')"

# What the build for ThreadSanitizer takes as it is has nothing to judge.
one_thread=$(make -C "$ROOT" -pn SAN=thread 2>/dev/null | sed -n 's/^ONE_THREAD := //p')
check "folders that ThreadSanitizer leaves alone are known" test -n "$one_thread"
# shellcheck disable=SC2086
equal "they have no threads and no atomics" "" \
	"$(cd .. && grep -nE 'pthread_[a-z]+ ?\(|__atomic_|stdatomic' $(for f in $one_thread; do echo "$f"/*.[ch]; done))"

# Every folder with sources, record and record/hooks being two. Folders that reach each other by includes are
# named together, each pair of them with the lines that include.
cat >"$work/cycles.py" <<'P'
import os, re, sys
os.chdir(sys.argv[1])
lines = {}  # (from, to): the places of its includes
for folder, _, files in os.walk("."):
    for name in sorted(files):
        path = os.path.normpath(f"{folder}/{name}")
        for number, line in enumerate(open(path), 1):
            m = re.match(r'#include "([^"]+)"', line)
            if not m:
                continue
            to = m[1] if os.path.exists(m[1]) else os.path.normpath(f"{folder}/{m[1]}")
            pair = os.path.dirname(path), os.path.dirname(to)
            if pair[0] != pair[1]:
                lines.setdefault(pair, []).append(f"{path}:{number}")
folders = {folder for pair in lines for folder in pair}

def reached(folder, seen):
    for a, b in lines:
        if a == folder and b not in seen:
            seen.add(b)
            reached(b, seen)
    return seen
reach = {folder: reached(folder, set()) for folder in folders}
for together in sorted({tuple(sorted(b for b in folders if b in reach[a] and a in reach[b])) for a in folders} - {()}):
    print("together:", *together)
    for (a, b), places in sorted(lines.items()):
        if a in together and b in together:
            print(f"  {a} includes {b}:", *places)
P
equal "no two folders include each other, by whatever way" "" "$(python3 "$work/cycles.py" .)"

# The C files of a folder without comments and the content of strings, each line with its file in front.
cat >"$work/code.py" <<'P'
import os, re, sys
token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.S)

def without(m):
    return '""' if m[0][0] == '"' else m[0] if m[0][0] == "'" else " "
for folder, _, files in sorted(os.walk(sys.argv[1])):
    for name in sorted(name for name in files if name.endswith(".c")):
        path = f"{folder}/{name}"
        for line in token.sub(without, open(path).read()).splitlines():
            print(f"{path}: {line}")
P

# name(: called, not part of a longer name, a member or a declaration attribute.
calls() { grep -E "(^|[^A-Za-z0-9_.>])($2)[[:space:]]*\(" "$1" | grep -v __attribute__; }

printing='printf|vprintf|puts|putchar|perror|err|errx|warn|warnx'
text=$(mktemp)
for folder in $(printf '%s\n' "${!layer[@]}" | sort); do
	[ "$folder" != cmd ] && [ -d "$folder" ] && [ -n "$(find "$folder" -name '*.c')" ] || continue
	python3 "$work/code.py" "$folder" >"$text"
	equal "$folder does not print" "" "$(calls "$text" "$printing"
		grep -wE 'stdout|stderr|STDOUT_FILENO|STDERR_FILENO' "$text")"
	# A forked child that cannot exec, or has only tried something, has no other way to end.
	equal "$folder does not exit" "" "$(calls "$text" 'exit|_exit|_Exit|quick_exit' |
		grep -vE '^process/launch\.c: ')"
done
rm "$text"
equal "main is in cmd/main.c only" cmd/main.c "$(grep -rlE --include='*.c' '^int main\(' . | sed 's,^\./,,')"
