# SPDX-License-Identifier: MIT
# Trees without some of what is in them, in reports, JSON and exports; the figures are by hand, of the events
# of tests/golden/events.txt.
. "$ROOT/tests/lib.sh"

grep -v '^#' "$ROOT/tests/golden/events.txt" | sed '/^$/d' >events.txt
"$WEIR" import events events.txt -o e.weir >/dev/null 2>&1 || not_ok "the events are imported"

tree() { # LIST: level, calls, base, cum, name
	"$WEIR" report tree e.weir --transform "$1" | awk 'NR > 1 { print $1, $3, $4, $5, $NF }' | sed 1d
}

equal "focus begins at the outermost instance" "1 2 6 14 A
2 3 5 7 B
3 1 1 1 B
3 1 1 1 A
2 1 1 1 X" "$(tree focus=A)"
equal "fold gives the time to callers" "1 1 6 19 C
2 3 8 13 B
3 2 4 4 B
3 1 1 1 X" "$(tree fold=A)"
equal "drop takes the time away" "1 1 3 5 C
2 1 2 2 B" "$(tree drop=A)"
equal "merge-recursion makes the inner instance the outer one" "1 1 3 19 C
2 1 3 7 A
3 3 4 4 B
2 2 4 9 B
3 2 4 5 A
4 1 1 1 X" "$(tree merge-recursion)"
equal "a list goes from left to right" "1 1 6 19 C
2 5 12 13 B
3 1 1 1 X" "$(tree 'fold=A;merge-recursion')"
equal "JSON has the same figures" "14 7" "$("$WEIR" report flat e.weir --json --transform focus=A |
	python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["total"], *(r["base"] for r in d["rows"] if r["name"] == "A"))')"
equal "folded stacks have them" "pid_tid;C 6
pid_tid;C;B 8
pid_tid;C;B;B 4
pid_tid;C;B;X 1" "$("$WEIR" export folded e.weir --transform fold=A | sort)"

refused() { # STATUS SENTENCE ARGUMENTS...
	local status=$1 sentence=$2
	shift 2
	"$WEIR" "$@" >out.txt 2>err.txt
	[ $? = "$status" ] && grep -qF -- "$sentence" err.txt && [ ! -s out.txt ] && ok "refused: $sentence" ||
		not_ok "refused: $sentence: $(cat err.txt)"
}
refused 1 "'fold=nothing': no function here is meant" report flat e.weir --transform fold=nothing
refused 2 "'hide=A': is not a transform" report flat e.weir --transform 'fold=A;hide=A'
refused 2 "--transform is not an option of modules" report modules e.weir --transform fold=A
refused 2 "--transform is not an option of pprof" export pprof e.weir --transform fold=A
refused 2 "--html has all of the trace in it" report --html page.html e.weir --transform fold=A
check "and no page is written" [ ! -e page.html ]

# --- the page as a file says losses as reports do --------------------------------------------------------------
head -c $(($(stat -c %s e.weir) - 30)) e.weir >cut.weir
"$WEIR" report --html page.html e.weir 2>whole.err
equal "a page of a whole trace: status 0, and no word" "0 " "$? $(cat whole.err)"
"$WEIR" report --html page.html cut.weir 2>cut.err
equal "a page of a trace that is cut: status 3" 3 $?
check "and a line that says so" [ -s cut.err ]
