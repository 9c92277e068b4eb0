# SPDX-License-Identifier: MIT
# Options that have a new name do the same under the old one, which is accepted and not advertised.
. "$ROOT/tests/lib.sh"

printf '%s\n' '__attribute__((noinline)) int work(int n) { __asm__(""); return n + 1; }' \
	'int main(void) { int n = 0; for (int i = 0; i < 50; i++) n = work(n); return n != 50; }' >prog.c
gcc -O1 -o prog prog.c || exit 1

for names in 'record functions events' 'record kinds hooks' 'record snapshot-of snapshot' \
	'record module-snapshots snapshots' 'probe program stream'; do
	read -r command new old <<<"$names"
	"$WEIR" "$command" -h >help.txt
	check "$command -h has --$new" grep -qE -- "--$new( |\$)" help.txt
	check "$command -h has no --$old any more" test -z "$(grep -E -- "--$old( |\$)" help.txt)"
done

# --- functions ---

calls() { # FILE: name, calls and how it was hooked
	"$WEIR" report hooks "$1" --json >hooks.json
	json hooks.json '[(r["function"], r["hits"], r["method"]) for r in j["rows"]]'
}
for name in functions events; do
	"$WEIR" record -q --no-sample --$name 'wor*,main' -o $name.weir -- ./prog
	equal "record --$name runs the command" 0 $?
done
check "record --functions counts calls" grep -q "'work', 50," <(calls functions.weir)
equal "record --events counts the same" "$(calls functions.weir)" "$(calls events.weir)"
fails "both names at once are refused" 2 '^weir: record: --functions and --events are one option' \
	"$WEIR" record --functions work --events main -o none.weir -- ./prog

# --- kinds ---

modules() { # OPTIONS...: which records of modules a recording with them has
	"$WEIR" record -q --no-sample --all-modules "$@" -o modules.weir -- ./prog || return
	python3 "$ROOT/tests/format/read_trace.py" modules.weir >modules.json
	json modules.json 'sorted(set(r[3] for r in j["records"] if r[2] == 0x19))'
}
all=$(modules)
check "modules are among the kinds of record" test "$all" != '[]'
equal "record --kinds -module leaves them out" '[]' "$(modules --kinds -module)"
equal "record --hooks -module does the same" '[]' "$(modules --hooks -module)"
fails "record --kinds: what is not known" 2 "^weir: record: --kinds: 'sycall' is not known \(there are method, " \
	"$WEIR" record --kinds sycall -o none.weir -- ./prog
sed 's/--kinds:/--hooks:/' err.txt >expected.txt
"$WEIR" record --hooks sycall -o none.weir -- ./prog 2>err.txt
equal "record --hooks: the same sentence, with the name that was used" "$(cat expected.txt)" "$(cat err.txt)"
fails "record --kinds method needs functions" 2 '^weir: record: --kinds: method: which functions\? give --functions,' \
	"$WEIR" record --kinds method -o none.weir -- ./prog
fails "record --hooks method, too" 2 '^weir: record: --hooks: method: which functions\? give --events,' \
	"$WEIR" record --hooks method -o none.weir -- ./prog
fails "both names of kinds at once are refused" 2 '^weir: record: --kinds and --hooks are one option' \
	"$WEIR" record --kinds stack --hooks stack -o none.weir -- ./prog
check "nothing was recorded meanwhile" test ! -e none.weir

# --- snapshots ---

apart=$(modules --module-snapshots)
check "record --module-snapshots has other records of modules" test "$apart" != "$all" -a "$apart" != '[]'
equal "record --snapshots has the same" "$apart" "$(modules --snapshots)"
for name in snapshot-of snapshot; do
	fails "record --$name: of a process" 2 "^weir: record: --snapshot-of: 'x' is not a process id" \
		"$WEIR" record --$name x
	fails "record --$name: no such process" 1 'no such process' "$WEIR" record --$name 99999999
done

# --- compiled scripts ---

for name in program stream; do
	"$WEIR" probe -q --$name $name.wprobe 'begin { printf("x\n"); }' 2>err.txt
	echo "$?" >$name.status
done
equal "probe --stream ends as --program" "$(cat program.status)" "$(cat stream.status)"
if [ -s program.wprobe ]; then
	check "probe --stream writes the bytes of --program" cmp program.wprobe stream.wprobe
else
	skip "probe --stream writes the bytes of --program: $(head -n 1 err.txt)"
fi
