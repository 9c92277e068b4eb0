# SPDX-License-Identifier: MIT
# The examples of the manual pages and of the README's tour run as they are printed: each page's in
# one shell and one folder, in order, and each ends with status 0. A busy machine may lose samples, so
# all but the recording of a command may also end with 3, which is documented as "done, but data was lost".
. "$ROOT/tests/lib.sh"
mkdir bin && ln -s "$WEIR" bin/weir
export PATH=$PWD/bin:$PATH
top=$PWD

# Lines "$ COMMAND" between .EX and .EE of a manual page, as a reader sees them.
manual_examples() {
	awk '/^\.SH/ { inside = ($2 == "EXAMPLES") } inside && /^\.EX/ { example = 1; next }
	/^\.EE/ { example = 0 } example' "$1" | sed -n 's/^\$ //p' |
		sed "s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\(dq/\"/g; s/\\\\&//g; s/\\\\e/\\\\/g"
}

# Lines "$ COMMAND" of the README's console blocks; those of make are tests of their own.
readme_examples() {
	awk '/^```console/ { inside = 1; next } /^```/ { inside = 0 } inside' "$1" |
		sed -n 's/^\$ //p' | grep -Ev '^(make|git|cd|sudo) '
}

# Run in the current shell of a subshell, so that $! and variables go from line to line.
run_examples() { # SOURCE FILE
	local command rc
	while IFS= read -r command <&3; do
		case "$command" in *' -a '*) if [ -z "$may_record_all" ]; then
			skip "$1: $command: recording the whole machine is not permitted here"
			left_out=1
			continue
		fi ;; esac
		case "$command" in 'weir probe '* | *' --probe '*) if [ -z "$may_probe" ]; then
			skip "$1: $command: BPF programs are not permitted here"
			continue
		fi ;; esac
		case "$command" in *machine.weir*) if [ -n "$left_out" ]; then
			skip "$1: $command: needs the recording before it"
			continue
		fi ;; esac
		eval "$command" >"$top/out.txt" 2>"$top/err.txt" </dev/null
		rc=$?
		case "$rc $command" in "3 weir report"* | "3 weir diff"* | "3 weir export"* | "3 weir record -"[ap]* | "3 weir record "*"&& weir report"*) rc=0 ;; esac
		if [ $rc -eq 0 ]; then ok "$1: $command"; else
			not_ok "$1: status $rc from: $command"
			head -n 5 "$top/err.txt"
		fi
	done 3<"$2"
}

may_record_all=
[ "$("$WEIR" doctor --json | python3 -c 'import json, sys
print([r["verdict"] for r in json.load(sys.stdin)["rows"] if r["name"] == "system-wide"][0])')" = good ] &&
	may_record_all=1
may_probe=
"$WEIR" probe -q 'begin { exit(); }' >probe.txt 2>&1 && may_probe=1
if ! "$WEIR" doctor >doctor.txt; then
	skip "examples run: nothing can be recorded here: $(grep '^missing' doctor.txt | head -n 1)"
	finish
fi
for page in "$ROOT"/docs/man/*.1; do
	name=$(basename "$page")
	manual_examples "$page" >"$top/$name.examples"
	check "$name has an example" [ -s "$top/$name.examples" ]
	mkdir "$top/$name.d"
	(left_out= && cd "$top/$name.d" && run_examples "$name" "$top/$name.examples")
done
readme_examples "$ROOT/README.md" >"$top/readme.examples"
check "the README has a tour" [ "$(wc -l <"$top/readme.examples")" -ge 5 ]
mkdir "$top/readme.d"
(left_out= && cd "$top/readme.d" && run_examples README.md "$top/readme.examples")
