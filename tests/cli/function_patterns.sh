# SPDX-License-Identifier: MIT
# Patterns of functions mean the same in weir record, weir steps and weir probe, and when nothing matches
# each of them says what is near.
. "$ROOT/tests/lib.sh"

cat >named.cc <<'CODE'
#define KEEP __attribute__((noinline, noclone))
namespace ns
{
KEEP int add(int a, int b) { __asm__ volatile(""); return a + b; }
KEEP int add(long a) { __asm__ volatile(""); return (int)a; }
template <typename T> KEEP T twice(T v) { __asm__ volatile(""); return v + v; }
} // namespace ns
extern "C" KEEP int work(int n) { __asm__ volatile(""); return n + 1; }
extern "C" KEEP int worked(int n) { __asm__ volatile(""); return n + 2; }
int main() { return work(1) + worked(1) + ns::add(1, 2) + ns::add(3L) + ns::twice(4) != 19; }
CODE
g++ -O1 -o named named.cc 2>gcc.txt || { skip "patterns of functions: g++ does not work here" && finish; }

hooked() { # PATTERNS: the functions with calls, without parameters
	"$WEIR" record -q --no-sample --events "$1" -o hooked.weir -- ./named 2>err.txt || cat err.txt
	"$WEIR" report hooks hooked.weir --json >hooked.json 2>err.txt
	json hooked.json "' '.join(sorted(r['function'].split('(')[0].split('<')[0].split(' ')[-1] for r in j['rows'] if r['hits']))"
}

stepped() { # PATTERN: the functions that stepping begins with
	"$WEIR" steps -q --around "$1" -o stepped.weir -- ./named 2>err.txt || cat err.txt
	"$WEIR" report flat stepped.weir --json >stepped.json 2>err.txt
	json stepped.json "' '.join(sorted(r['name'].split('(')[0].split('<')[0].split(' ')[-1] for r in j['rows'] if r['calls'] and r['kind'] != 'thread'))"
}

probed() { # PATTERN: the functions of the sites
	"$WEIR" probe --dry-run -v -f json "uprobe:./named:\"$1\" { @ = count(); }" >probed.json 2>err.txt || cat err.txt
	json probed.json "' '.join(sorted(s['function'] for r in j['rows'] for f in r['files'] for s in f['sites']))" |
		c++filt | sed -E 's/(int|long) (ns::twice)/\2/g; s/\([^)]*\)|<[^>]*>//g'
}

same() { # PATTERN FUNCTIONS
	equal "record: $1" "$2" "$(hooked "$1")"
	equal "steps: $1" "$2" "$(stepped "$1")"
	equal "probe: $1" "$2" "$(probed "$1")"
}

same work work
same 'wor*' 'work worked'
same '/^work(ed)?$/' 'work worked'
same ns::add 'ns::add ns::add'
same 'ns::add(int, int)' ns::add
same 'ns::add( int,int )' ns::add
same ns::twice ns::twice
same 'ns::twice<int>' ns::twice
same 'ns::t*' ns::twice
same '*wice*' ns::twice

check "record: what is near is told" test -n "$("$WEIR" record --no-sample --events wrok -o t.weir -- ./named 2>&1 |
	grep "no function matches 'wrok'; is it 'work'?")"
check "record: also of a glob" test -n "$("$WEIR" record --no-sample --events 'ns::twise*' -o t.weir -- ./named 2>&1 |
	grep "no function matches 'ns::twise\*'; is it 'ns::twice'?")"
check "steps: what is near is told" test -n "$("$WEIR" steps --around wrok -o t.weir -- ./named 2>&1 |
	grep -- "--around: there is no function 'wrok' in .*; is it 'work'[ ,]")"
check "steps: also of an end" test -n "$("$WEIR" steps --from work --to ns::ad -o t.weir -- ./named 2>&1 |
	grep -- "--to: there is no function 'ns::ad' in .*; is it 'ns::add'?")"
check "probe: what is near is told" test -n "$("$WEIR" probe --dry-run 'uprobe:./named:wrok { }' 2>&1 | grep "is it 'work'?")"
check "probe: also of a glob" test -n "$("$WEIR" probe --dry-run 'uprobe:./named:ns::twise* { }' 2>&1 | grep "is it 'ns::twice'?")"

"$WEIR" record -q --no-sample --events work,wrok -o t.weir -- ./named 2>err.txt
equal "but the command's status stays, and -q is quiet" "0 " "$? $(cat err.txt)"
sleep 100 &
pid=$!
"$WEIR" record --no-sample --events libc:slepe --duration 0.1 -o t.weir -p $pid 2>err.txt
equal "record: without a command the status tells it" "1 1" "$? $(grep -c "no function matches 'libc:slepe'; is it 'sleep'" err.txt)"
"$WEIR" steps --around slepe --duration 0.1 -o t.weir -p $pid 2>err.txt
equal "steps: likewise" "1 1" "$? $(grep -c "there is no function 'slepe' .*is it 'sleep'" err.txt)"
fails "record: -q does not take the reason away" 1 "no function matches 'libc:slepe'" \
	"$WEIR" record -q --no-sample --events libc:slepe --duration 0.1 -o t.weir -p $pid
fails "steps: likewise" 1 "there is no function 'slepe'" "$WEIR" steps -q --around slepe --duration 0.1 -o t.weir -p $pid
kill $pid
fails "record: a wrong expression is refused" 1 "'/\(/': Unmatched" "$WEIR" record --events '/(/' -o none.weir -- ./named
fails "steps: a wrong expression is refused" 2 "steps: --around: '/\(/': Unmatched" "$WEIR" steps --around '/(/' -o none.weir -- ./named
fails "steps: a wrong address is refused" 2 "steps: --from: '0x12z' is not an address" "$WEIR" steps --from 0x12z -o none.weir -- ./named
"$WEIR" probe --dry-run -f json 'uprobe:./named:"/(/" { }' >out.txt 2>err.json
equal "probe: a wrong expression is an error of the point" "1 point" "$? $(json err.json "j[0]['tag']")"
check "nothing is left of what was refused" test ! -e none.weir
