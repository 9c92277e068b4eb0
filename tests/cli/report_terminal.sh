# SPDX-License-Identifier: MIT
# Reports on a terminal of a known width, and the same ones in a pipe.
. "$ROOT/tests/lib.sh"
cat >longest.py <<'PY'
# The longest line in columns, without what sets colours; commands that are to be copied are not cut.
import re, sys
lines = re.sub(r"\x1b\[[0-9;]*m", "", open(sys.argv[1], encoding="utf-8").read()).split("\n")
print(max(len(l) for l in lines if not l.startswith("  weir ")))
PY
screen() { # COLUMNS OUT COMMAND...: what it shows on a terminal of so many columns goes to OUT
	local out=$2
	ended=$(
		unset LC_ALL LC_CTYPE NO_COLOR
		export TERMINAL_COLUMNS=$1 LANG=$locale TERM=xterm PYTHONCOERCECLOCALE=0
		shift 2
		on_terminal never "$@"
	)
	mv shown.txt "$out"
	[ "$ended" = "exit 0" ]
}
locale=C.UTF-8
long=a_function_with_a_name_that_is_longer_than_any_terminal_is_wide_and_that_goes_on_and_on_for_ever_and_ever
cat >t.txt <<T
0 enter main
1000000 enter parse
3000000 enter lex
5000000 leave lex
6000000 leave parse
7000000 enter $long
9000000 enter inner
12000000 leave inner
14000000 leave $long
15000000 leave main
T
"$WEIR" import events t.txt -o t.weir || exit 1
for kind in summary flat tree arcs threads samples loss; do
	for columns in 40 80 200; do
		[ $kind$columns != summary40 ] || columns=50 # its sentences are not cut
		screen $columns s.txt "$WEIR" report $kind t.weir
		widest=$(python3 longest.py s.txt)
		check "$kind ends where a terminal of $columns columns does ($widest)" test "$widest" -le $columns
	done
	"$WEIR" report $kind t.weir >pipe.txt
	screen 80 s.txt "$WEIR" report $kind t.weir --plain
	check "$kind --plain is what a pipe gets" cmp -s s.txt pipe.txt
	"$WEIR" report $kind t.weir --json >pipe.txt
	screen 80 s.txt "$WEIR" report $kind t.weir --json
	check "$kind in JSON is the same on a terminal" cmp -s s.txt pipe.txt
done
plain() { sed 's/\x1b\[[0-9;]*m//g' "$1"; }
screen 200 s.txt "$WEIR" report tree t.weir
equal "the tree is drawn, with percent and units for people" \
	"  Cum%  Base%      Cum    Base  Calls  Function
100.00   0.00  15.00 M       0      1  pid_tid
100.00  20.00  15.00 M  3.00 M      1  main
 33.33  20.00   5.00 M  3.00 M      1  ├─ parse
 13.33  13.33   2.00 M  2.00 M      1  │  lex
 46.67  26.67   7.00 M  4.00 M      1  └─ $long
 20.00  20.00   3.00 M  3.00 M      1     inner" "$(plain s.txt)"
check "with colours" grep -q $'\033\\[1m' s.txt
screen 40 s.txt "$WEIR" report tree t.weir
check "what is cut shows that it is" grep -q '…$' s.txt
locale=C
screen 200 s.txt "$WEIR" report tree t.weir
equal "another locale gets ASCII" "|- parse,|  lex,\`- $long,   inner" "$(plain s.txt | tail -n 4 | cut -c 40- | paste -sd,)"
screen 60 s.txt "$WEIR" report tree t.weir
check "there the sign of a cut is, too" grep -q '\.\.\.$' s.txt
check "nothing else than ASCII is there" test "$(LC_ALL=C grep -cP '[^\x00-\x7f]' s.txt)" -eq 0
locale=C.UTF-8
screen 100 s.txt "$WEIR" report flat t.weir
equal "columns without a value are left out" "Calls Base Cum Base% Cum% Name" "$(plain s.txt | head -n 1 | xargs)"
equal "in a pipe they are there" "Calls Base Cum Cum2 Name" "$("$WEIR" report flat t.weir | head -n 1 | sed 's/\[[^]]*\]//g' | xargs)"
screen 100 s.txt env NO_COLOR=1 "$WEIR" report flat t.weir
equal "NO_COLOR is heeded" 0 "$(tr -cd '\033' <s.txt | wc -c)"
equal "--human and --percent work in a pipe" "Calls Base Cum Cum2 Base% Cum% Name" "$("$WEIR" report flat t.weir --human --percent | head -n 1 | xargs)"

# Deep paths that part often leave room for names.
python3 - >deep.txt <<'PY'
for i in range(60):
    print(" ".join("f%d" % k for k in range(i + 1)), "leaf%d" % i)
PY
sed 's/^/7: /' deep.txt >deep.samples
"$WEIR" import samples deep.samples -o deep.weir || exit 1
screen 60 s.txt "$WEIR" report tree deep.weir
equal "every name of a tree that parts 60 times can be read" 60 "$(plain s.txt | grep -oE 'leaf[0-9]+$' | sort -u | wc -l)"
widest=$(python3 longest.py s.txt)
check "and it ends where the terminal does" test "$widest" -le 60
