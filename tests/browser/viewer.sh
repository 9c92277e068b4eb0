# SPDX-License-Identifier: MIT
# weir-test: once: the browser is the same whatever weir is built with
# The page in a real browser: a sampled, an event, a merged, a counted, a stepped and an imported trace, by a server
# and as a file. Pictures are in BUILD/screens.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/browser.sh"
need_browser "the page in a browser"

cat >work.c <<'C'
#include <stdio.h>
__attribute__((noinline)) static int leaf(int n) { int s = 0; for (int i = 0; i < n; i++) s += i ^ n; return s; }
__attribute__((noinline)) static int twice(int n) { return leaf(n) + leaf(n / 2); }
__attribute__((noinline)) static int down(int n) { return n ? down(n - 1) + twice(20000) : 0; }
int main(int argc, char **argv)
{
	int s = 0;
	for (int i = 0; i < (argc > 1 ? 2 : 2500); i++)
		s += down(6) + twice(3000);
	printf("%d\n", s + !argv);
	return 0;
}
C
gcc -O1 -g -o work work.c
"$WEIR" record -q -o sampled.weir -- ./work >/dev/null
"$WEIR" record -q --functions 'down,twice' -o merged.weir -- ./work >/dev/null
"$WEIR" record -q --functions 'down,twice,leaf' --tree -o tree.weir -- ./work >/dev/null
"$WEIR" count gcc -O1 -g -o counted work.c >/dev/null 2>&1 && ./counted few >/dev/null
"$WEIR" steps -q --max 20000 -o steps.weir -- ./work few >/dev/null 2>&1
grep -v '^#' "$ROOT/tests/golden/events.txt" | "$WEIR" import events - -o events.weir >/dev/null 2>&1

by_server() { # NAME TRACE KIND
	"$WEIR" report flat "$2" --json >"$1.json" 2>/dev/null
	start_view "$1" "$2"
	timeout 120 node "$ROOT/tests/browser/panes.mjs" "$1" "$url" "$1.json" "$3" || not_ok "$1: its test ends well: status $?"
	kill -INT $pid
	wait $pid
}
by_file() { # NAME TRACE KIND
	"$WEIR" report flat "$2" --json >"$1.json" 2>/dev/null
	"$WEIR" report --html "$1.html" "$2" || not_ok "$1: the file is written"
	timeout 120 node "$ROOT/tests/browser/panes.mjs" "$1" "file://$PWD/$1.html" "$1.json" "$3" || not_ok "$1: its test ends well: status $?"
}
# BEFORE and AFTER in one page: by a server, or as a file.
both_by_server() { # NAME BEFORE AFTER
	"$WEIR" report flat "$2" --json >"$1.before.json" 2>/dev/null
	"$WEIR" report flat "$3" --json >"$1.after.json" 2>/dev/null
	start_view "$1" "$2" "$3"
	timeout 120 node "$ROOT/tests/browser/diff.mjs" "$1" "$url" "$1.before.json" "$1.after.json" || not_ok "$1: its test ends well: status $?"
	kill -INT $pid
	wait $pid
}
both_by_file() { # NAME BEFORE AFTER
	"$WEIR" report flat "$2" --json >"$1.before.json" 2>/dev/null
	"$WEIR" report flat "$3" --json >"$1.after.json" 2>/dev/null
	"$WEIR" report --html "$1.html" "$2" "$3" || not_ok "$1: the file is written"
	timeout 120 node "$ROOT/tests/browser/diff.mjs" "$1" "file://$PWD/$1.html" "$1.before.json" "$1.after.json" || not_ok "$1: its test ends well: status $?"
}
# They wait most of their time.
together by_server sampled sampled.weir time -- by_file merged-file merged.weir time -- by_server merged merged.weir time -- \
	by_server tree tree.weir sums
together by_server counted counted.weir counts -- by_server steps steps.weir time -- by_file events-file events.weir time

# main > parse (30, then 10) > read (5), which is gone, and write (40), which is new; check stays as it is (7).
printf '%s\n' '0 enter main' '1 enter parse' '21 enter read' '26 leave read' '36 leave parse' '36 enter check' '43 leave check' \
	'44 leave main' | "$WEIR" import events - -o was.weir
printf '%s\n' '0 enter main' '1 enter parse' '6 enter write' '46 leave write' '51 leave parse' '51 enter check' '58 leave check' \
	'59 leave main' | "$WEIR" import events - -o is.weir
gcc -O1 -g -Dtwice=thrice -o other work.c
"$WEIR" record -q -o other.weir -- ./other >/dev/null
together both_by_server diff-events was.weir is.weir -- both_by_file diff-samples-file sampled.weir other.weir -- \
	both_by_server diff-mixed sampled.weir merged.weir -- both_by_server diff-other-metric was.weir sampled.weir
grep -q '^ok diff-events: by hand' together.0 || not_ok "the diff of two small traces has the figures by hand"

features_by_server() { # NAME TRACE KIND
	start_view "features-$1" "$2"
	timeout 120 node "$ROOT/tests/browser/features.mjs" "features-$1" "$url" "$3" || not_ok "features of $1: the test ends well: status $?"
	kill -INT $pid
	wait $pid
}
features_by_file() { # NAME TRACE KIND
	"$WEIR" report --html "features-$1.html" "$2" || not_ok "$1: the file is written"
	timeout 120 node "$ROOT/tests/browser/features.mjs" "features-$1" "file://$PWD/features-$1.html" "$3" || not_ok "features of $1: the test ends well: status $?"
}
together features_by_server merged merged.weir time -- features_by_server counted counted.weir counts -- \
	features_by_file sampled sampled.weir time

# Two programs with functions of the same names.
for k in 1 3; do
	printf '__attribute__((noinline)) static unsigned hot(unsigned n) { for (unsigned i = 0; i < 20000000u; i++) n += i ^ n; return n; }
int main(void) { unsigned n = 1; for (int i = 0; i < %d; i++) n += hot(n); return n == 7; }' $k >twin$k.c
	gcc -O1 -o twin$k twin$k.c
done
"$WEIR" record -q --functions hot -o twins.weir -- sh -c './twin1; ./twin3'
"$WEIR" report flat twins.weir --json >twins.json 2>/dev/null
start_view twins twins.weir
timeout 100 node "$ROOT/tests/browser/twins.mjs" twins "$url" twins.json || not_ok "twins: the test ends well: status $?"
kill -INT $pid
wait $pid

look_by_server() { # NAME TRACE
	start_view "look-$1" "$2"
	timeout 120 node "$ROOT/tests/browser/look.mjs" "look-$1" "$url" || not_ok "look of $1: the test ends well: status $?"
	kill -INT $pid
	wait $pid
}
look_by_file() { # NAME TRACE
	"$WEIR" report --html "look-$1.html" "$2" || not_ok "$1: the file is written"
	timeout 120 node "$ROOT/tests/browser/look.mjs" "look-$1" "file://$PWD/look-$1.html" || not_ok "look of $1: the test ends well: status $?"
}
together look_by_server merged merged.weir -- look_by_file sampled sampled.weir

# tests/golden/average.txt, as events and as a program: 40 calls of D from B cost three times as much as 40 from C.
python3 - >average.events <<'P'
t = 0
def at(d, what, name):
    global t
    t += d
    print(t, what, name)
at(0, "enter", "start"); at(1, "enter", "main"); at(10, "enter", "A"); at(100, "enter", "B")
for i in range(40):
    at(5, "enter", "D"); at(7 + i % 2, "leave", "D")
at(0, "leave", "B"); at(0, "enter", "C")
for i in range(40):
    at(7 + i % 2, "enter", "D"); at(2 + i % 2, "leave", "D")
at(0, "leave", "C"); at(0, "leave", "A"); at(0, "leave", "main"); at(0, "leave", "start")
P
"$WEIR" import events average.events -o average-events.weir >/dev/null 2>&1
cat >average.c <<'C'
static volatile unsigned sink;
#define WORK(n) for (unsigned i = 0; i < (n) * 10000u; i++) sink = i
__attribute__((noinline)) static void D(unsigned n) { WORK(n); }
__attribute__((noinline)) static void B(void) { WORK(800); for (int k = 0; k < 40; k++) D(30); }
__attribute__((noinline)) static void C(void) { WORK(1200); for (int k = 0; k < 40; k++) D(10); }
__attribute__((noinline)) static void A(void) { WORK(400); B(); C(); }
int main(void) { WORK(40); A(); return 0; }
C
"$WEIR" count gcc -O1 -fno-ipa-cp -o average average.c >/dev/null 2>&1 && ./average
average_page() { # NAME TRACE TOLERANCE
	"$WEIR" report --html "$1.html" "$2" || not_ok "$1: the file is written"
	timeout 100 node "$ROOT/tests/browser/average.mjs" "$1" "file://$PWD/$1.html" "$3" || not_ok "$1: the test ends well: status $?"
}
together average_page average-events average-events.weir 0 -- average_page average-program average.weir 0.5

# The picture of README.
"$WEIR" record -q --functions 'Perl_pp_sort,Perl_pp_helem,Perl_pp_join' -o perl.weir -- \
	perl -e '$h{$_ % 9973} .= join ",", sort map { $_ ^ 5 } 1..9 for 1..200000'
"$WEIR" report --html perl.html perl.weir
timeout 120 node "$ROOT/tests/browser/picture.mjs" "file://$PWD/perl.html" || not_ok "the picture is made: status $?"
