# SPDX-License-Identifier: MIT
# The documents agree with the tree: record codes, files, functions, links, commands.
# weir-test: once: looks at the sources alone
. "$ROOT/tests/lib.sh"
cd "$ROOT" || exit 1

# --- record codes ---------------------------------------------------------------------------

# "MAJOR MINOR NAME" of each code in the header, numbers in lower-case hexadecimal.
header_codes() {
	python3 - src/trace/records.h <<'PYTHON'
import re, sys
text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
major = {n: int(v, 16) for n, v in re.findall(r"RECORD_MAJOR_(\w+)\s*=\s*(0x[0-9A-Fa-f]+)", text)}
define = {n: int(v, 16) for n, v in re.findall(r"#define\s+RECORD_(\w+)\s+(0x[0-9A-Fa-f]+)u?", text)}
used = set()
def show(name, minor):
    used.add(name)
    print("%#x %#x %s" % (major[name], minor, name))
for name, body in re.findall(r"enum record_minor_(\w+)\s*\{(.*?)\}", text, flags=re.S):
    for value in re.findall(r"=\s*(0x[0-9A-Fa-f]+)", body):
        show(name.upper(), int(value, 16))
for name in ("ROUTINE", "INTERPRETED"):
    show(name, define["ROUTINE_ENTER"])
    show(name, define["ROUTINE_ENTER"] + define["MINOR_EXIT"])
show("ROUTINE", define["ROUTINE_OPEN"])
for name in ("STACK_SAMPLE", "STACK_EVENT"):
    show(name, define["MINOR_STACK"])
show("RESOURCE", define["RESOURCE_ADD"])
# The minor codes of interrupts are levels; every other major code has its minors above.
for name in sorted(set(major) - used - {"INTERRUPT"}):
    print("%#x none %s" % (major[name], name))
print("%#x level %s" % (major["INTERRUPT"], "INTERRUPT"))
PYTHON
}

document_codes() { # "MAJOR MINOR" of each row; interrupt rows have a level
	grep -E '^\| *0x' docs/format/records.md | awk -F '|' '{ gsub(/ /, "", $2); gsub(/^ +| +$/, "", $3)
		if ($3 ~ /^level/) $3 = "level"; print tolower($2), tolower($3) }' |
		sed 's/0x0*\([0-9a-f]\)/0x\1/g' | sort -u
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
header_codes >"$work/header"
document_codes >"$work/document"
check "the header has record codes" [ "$(wc -l <"$work/header")" -ge 25 ]
equal "every record code of the header is in docs/format/records.md" "" \
	"$(while read -r major minor name; do
		grep -qx "$major $minor" "$work/document" || echo "$name: $major $minor"
	done <"$work/header")"
equal "every record code of docs/format/records.md is in the header" "" \
	"$(while read -r code; do
		grep -q "^$code " "$work/header" || echo "$code"
	done <"$work/document")"

# --- files, folders and functions that documents name ----------------------------------------

backticked() { grep -o '`[^`]*`' "$1" | tr -d '`' | sort -u; }

for document in ARCHITECTURE.md CONTRIBUTING.md README.md docs/design/lives.md docs/words.md; do
	missing=
	n=0
	while IFS= read -r name; do
		# Paths from the top, or from src/; a placeholder in capitals is not a path.
		[[ $name =~ ^[a-zA-Z0-9_.*-]+/[a-zA-Z0-9_./*-]*$ ]] || continue
		[[ ! $name =~ [A-Z]{3} || $name == *.md ]] || continue
		case $name in build*/* | ./*) continue ;; esac
		n=$((n + 1))
		compgen -G "$name" >/dev/null || compgen -G "src/$name" >/dev/null || missing+="$name "
	done < <(backticked $document)
	equal "every file named in $document is there" "" "$missing"
	missing=
	while IFS= read -r name; do
		[[ $name =~ ^([a-z][a-z0-9]*_[a-z0-9_]+)(\(\))?$ ]] || continue
		grep -rqwE --include='*.[ch]' --include='*.sh' "${BASH_REMATCH[1]}" src tests || missing+="$name "
	done < <(backticked $document)
	equal "every function and type named in $document is there" "" "$missing"
	[ $document != ARCHITECTURE.md ] || check "ARCHITECTURE.md names files" [ $n -ge 40 ]
done

missing=
for folder in src/*/ src/cmd/*/; do
	[ -z "$(find "$folder" -name '*.c')" ] || grep -q "\`${folder#src/}\`" ARCHITECTURE.md || missing+="$folder "
done
equal "every folder of src/ is in ARCHITECTURE.md" "" "$missing"

# --- links ----------------------------------------------------------------------------------

for document in *.md docs/*/*.md; do
	[ -f "$document" ] || continue
	broken=
	while IFS= read -r link; do
		case $link in http://* | https://* | mailto:*) continue ;; esac
		target=${link%%#*}
		[ -z "$target" ] || [ -e "$(dirname "$document")/$target" ] || broken+="$link "
	done < <(grep -oE '\]\([^)]+\)' "$document" | sed 's/^](//; s/)$//')
	equal "the links of $document lead somewhere" "" "$broken"
done

# --- patterns of functions ------------------------------------------------------------------

patterns() { sed -n '/^\.SH PATTERNS OF FUNCTIONS/,/^When nothing matches/p' docs/man/weir-"$1".1; }
check "the manual of weir record tells of patterns of functions" [ "$(patterns record | wc -l)" -ge 30 ]
for command in steps probe; do
	equal "weir $command tells of them in the same words" "$(patterns record)" "$(patterns $command)"
done

# --- commands -------------------------------------------------------------------------------

"$WEIR" help | sed -n 's/^  weir \([a-z]*\)  .*/\1/p' >"$work/commands"
for command in $(cat "$work/commands"); do
	check "the README lists $command" grep -qE "^\| *\`weir $command" README.md
done
unknown=
for command in $(grep -ohE '(^\$ |`)weir [a-z]+' README.md CONTRIBUTING.md ARCHITECTURE.md | sed 's/.*weir //' | sort -u); do
	grep -qx "$command" "$work/commands" || unknown+="$command "
done
equal "the documents use commands that exist" "" "$unknown"
targets=$(grep -ohE '\bmake [a-z][a-z-]+' README.md CONTRIBUTING.md ARCHITECTURE.md | cut -d ' ' -f 2 | sort -u)
unknown=
for target in $targets; do
	grep -qE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile || unknown+="$target "
done
equal "the documents use targets of the Makefile" "" "$unknown"
for target in demo check; do
	check "the README names make $target" grep -qE "^make $target\b" README.md
done
