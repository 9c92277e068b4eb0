# SPDX-License-Identifier: MIT
# weir-test: once: the browser is the same whatever weir is built with
# What the pointer does in the call graph and the timeline, what an address keeps when the selection changes, and what
# panes say of a trace that has nothing.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/browser.sh"
need_browser "the pointer, addresses, and empty traces"

# main calls alpha (48: one 25, two 20, tiny 3), beta (30: three 28) and gamma (12: small 2), and has 10 itself.
cat >events.txt <<'E'
0 enter main
5 enter alpha
5 enter one
30 leave one
30 enter two
50 leave two
50 enter tiny
53 leave tiny
53 leave alpha
53 enter beta
55 enter three
83 leave three
83 leave beta
83 enter gamma
93 enter small
95 leave small
95 leave gamma
100 leave main
E
"$WEIR" import events events.txt -o pointer.weir || not_ok "the events are imported"
sed 's/ two$/ other/' events.txt | "$WEIR" import events - -o other.weir || not_ok "the others are imported"
"$WEIR" record -q -F 1 -o nothing.weir -- true || not_ok "a command that is too short for a sample is recorded"
: | "$WEIR" import samples - -o none.weir
head -c 100 pointer.weir >cut.weir
"$WEIR" report --html pointer.html pointer.weir || not_ok "the file is written"

pointer() { # NAME URL
	timeout 120 node "$ROOT/tests/browser/pointer.mjs" "$1" "$2" || not_ok "$1: its test ends well: status $?"
}
empty() { # NAME URL WORDS
	timeout 120 node "$ROOT/tests/browser/empty.mjs" "$1" "$2" "$3" || not_ok "$1: its test ends well: status $?"
}
apart() { # URL
	timeout 120 node "$ROOT/tests/browser/apart.mjs" "$1" || not_ok "what cannot be compared: its test ends well: status $?"
}
working() { # URL
	timeout 120 node "$ROOT/tests/browser/working.mjs" "$1" || not_ok "while weir reads: its test ends well: status $?"
}
pids=()
serve() { # NAME ARGUMENTS...: $url
	start_view "$@"
	pids+=("$pid")
}
serve pointer pointer.weir
pointer_url=$url
serve pair pointer.weir other.weir
pair_url=$url
serve apart none.weir pointer.weir
apart_url=$url
serve nothing nothing.weir
nothing_url=$url
serve none none.weir
none_url=$url
serve cut cut.weir
together pointer pointer "$pointer_url" -- working "$pointer_url" -- pointer pointer-file "file://$PWD/pointer.html" -- pointer pair "$pair_url" -- \
	empty nothing "$nothing_url" "There are no samples" -- apart "$apart_url" -- empty none "$none_url" "What was imported has nothing in it" -- \
	empty cut "$url" "a part of the trace is missing"
kill -INT "${pids[@]}"
wait "${pids[@]}"
