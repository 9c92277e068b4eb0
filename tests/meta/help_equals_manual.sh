# SPDX-License-Identifier: MIT
# What 'weir COMMAND -h' says, the manual page says, and the other way round.
# weir-test: once: compares texts
. "$ROOT/tests/lib.sh"
man_dir=$ROOT/docs/man

# page_text FILE: the page as plain text, unfilled enough that no word is broken.
page_text() {
	MANWIDTH=2000 MANPAGER=cat LC_ALL=C man --no-hyphenation --no-justification -E ascii -l "$1" 2>/dev/null
}

# section NAME: that section of the page on stdin.
section() { awk -v name="$1" '/^[A-Z]/ { inside = ($0 == name); next } inside'; }

squeeze() { tr -s ' \t' ' ' | sed 's/^ //; s/ $//'; }

# Options of -h, one a line: TAG HELP.
help_options() { awk 'NR > 2 && /^$/ { block++ } block == 1 && /^  +-/' "$1" | squeeze; }

# Options of the page, one a line: TAG TEXT. A tag stands at the section's margin, its text further
# right.
manual_options() {
	section OPTIONS <"$1" | awk '
		/^       -/ { if (text != "") print text; text = "" }
		{ text = text " " $0 }
		END { print text }' | squeeze
}

# Lines of $1 that begin no line of $2, but for the full stop of a sentence.
not_begun_by() {
	awk 'NR == FNR { lines[n++] = $0; next }
	{ for (i = 0; i < n; i++) {
		rest = substr(lines[i], length($0) + 1)
		if (index(lines[i], $0) != 1) continue
		if (rest ~ /^([.;,:].*)?$/ || ($0 ~ /[.]$/ && rest ~ /^ /)) next
	} print }' "$2" "$1"
}

# Lines of $1 that no line of $2 begins.
not_beginning_with() {
	awk 'NR == FNR { lines[n++] = $0; next }
	{ for (i = 0; i < n; i++) if (index($0, lines[i]) == 1) next
	print }' "$2" "$1"
}

compare_options() { # COMMAND
	help_options help.txt >help.options
	manual_options page.txt >page.options
	check "$1 -h lists some option" [ -s help.options ]
	equal "the manual of $1 has every option of -h with the same text" \
		"" "$(not_begun_by help.options page.options)"
	equal "-h of $1 has every option of the manual" \
		"" "$(not_beginning_with page.options help.options)"
	equal "the manual of $1 has the options in the order of -h" \
		"$(cut -d ' ' -f 1 help.options)" "$(cut -d ' ' -f 1 page.options)"
}

compare_page() { # COMMAND
	local page=$man_dir/weir-$1.1
	"$WEIR" "$1" -h >help.txt
	page_text "$page" >page.txt
	equal "the manual of $1 has the summary of -h" \
		"$(sed -n "1s/^weir $1: //p" help.txt)" \
		"$(section NAME <page.txt | squeeze | sed -n "s/^weir-$1 - //p")"
	equal "the manual of $1 has the synopsis of -h" \
		"$(sed -n '3,/^$/p' help.txt | squeeze | grep .)" \
		"$(section SYNOPSIS <page.txt | squeeze | grep .)"
	compare_options "$1"
	for name in DESCRIPTION 'EXIT STATUS' EXAMPLES 'SEE ALSO'; do
		check "the manual of $1 has a section $name" [ -n "$(section "$name" <page.txt)" ]
	done
}

if ! command -v man >/dev/null; then
	skip "help equals manual: man is not installed"
	finish
fi

"$WEIR" help >overview.txt
commands=$(sed -n 's/^  weir \([a-z]*\)  .*/\1/p' overview.txt)
check "help lists some commands" [ "$(echo "$commands" | wc -l)" -ge 6 ]
page_text "$man_dir/weir.1" >weir.txt
for command in $commands; do
	if [ ! -f "$man_dir/weir-$command.1" ]; then
		not_ok "$command has a manual page"
		continue
	fi
	ok "$command has a manual page"
	compare_page "$command"
	summary=$(sed -n "s/^  weir $command  *//p" overview.txt)
	check "weir(1) lists $command with the summary of 'weir help'" \
		grep -qF "$command $summary" <(section COMMANDS <weir.txt | awk '
			/^       [a-z]/ { if (line) print line; line = "" }
			{ line = line " " $0 } END { print line }' | squeeze)
	check "weir(1) refers to weir-$command(1)" grep -qF "weir-$command(1)" <(section 'SEE ALSO' <weir.txt)
done
for page in "$man_dir"/*.1; do
	name=$(basename "$page" .1)
	case $name in weir) ;; weir-*) check "$name.1 is the page of a command" \
		grep -qx "${name#weir-}" <<<"$commands" ;;
	*) not_ok "$name.1 is the page of a command" ;;
	esac
	LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l "$page" >/dev/null 2>warnings.txt
	equal "$name.1 is formatted without a warning" "" "$(cat warnings.txt)"
	check "$name.1 names this version" grep -qF "\"weir $("$WEIR" --version | cut -d ' ' -f 2)\"" "$page"
	# Pages of others may be missing here; ours may not.
	for other in $(section 'SEE ALSO' < <(page_text "$page") | grep -o 'weir[a-z-]*(1)' | tr -d '()1'); do
		check "$name.1 refers to $other.1, which is there" [ -f "$man_dir/$other.1" ]
	done
done

# Kinds of report, events, fields of JSON: the same lists in program and manual.
page_text "$man_dir/weir-report.1" >page.txt
"$WEIR" report -h | sed -n '/^KIND is one of/,/^[^ K]/p' | grep '^  ' | squeeze >kinds.txt
section KINDS <page.txt | awk '/^       [a-z]/ { if (text != "") print text; text = "" }
	{ text = text " " $0 } END { print text }' | squeeze >page.kinds
check "report -h lists some kinds" [ "$(wc -l <kinds.txt)" -ge 8 ]
equal "the manual of report has the kinds of -h in their order" \
	"$(cut -d ' ' -f 1 kinds.txt)" "$(cut -d ' ' -f 1 page.kinds)"

page_text "$man_dir/weir-record.1" | section EVENTS | tr -d , | tr -s ' ' '\n' >words.txt
missing=
for event in $("$WEIR" doctor | sed -n 's/^ *events for -e *//p'); do
	grep -qx -- "$event" words.txt || missing="$missing $event"
done
equal "the manual of record has every event that doctor lists" "" "$missing"
check "doctor lists some events" grep -q 'events for -e  *cpu-clock ' <("$WEIR" doctor)

printf '%s\n' '0 enter main' '4 sample=3 main deep' '9 leave main' '9 hook main jump 1 .' | "$WEIR" import events - -o fields.weir
python3 "$ROOT/tests/fixtures/count_files/make_counts.py" average counts.weir
"$WEIR" steps -q --data --max 300 -o steps.weir -- "$(type -P true)"
{ section JSON <page.txt; section LOSS <page.txt; } | tr -cs 'a-z0-9_' '\n' | sort -u >words.txt
for kind in $(cut -d ' ' -f 1 kinds.txt); do
	case $kind in
	source) "$WEIR" report source B counts.weir --json --blocks --asm ;;
	coverage) "$WEIR" report coverage counts.weir --json ;;
	steps) "$WEIR" report steps steps.weir --json --source ;;
	branches | mix) "$WEIR" report "$kind" steps.weir --json ;;
	*) "$WEIR" report "$kind" fields.weir --json ;;
	esac >"$kind.json"
	python3 - "$kind.json" >keys.txt <<'PYTHON'
import json, sys
def keys(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key != "reasons":
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)
print("\n".join(sorted(set(keys(json.load(open(sys.argv[1])))))))
PYTHON
	check "report $kind --json has the common fields" grep -qx frames_unresolved keys.txt
	equal "the manual of report has every field of $kind --json" "" "$(comm -23 keys.txt words.txt)"
done
