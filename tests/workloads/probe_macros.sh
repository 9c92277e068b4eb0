# SPDX-License-Identifier: MIT
# weir-test: root: macros and functions of trace scripts
# Blocks as values, macros, functions of the script, typeof: what they give, in both modes, and whose variables are whose.
. "$ROOT/tests/lib.sh"

# gives SENTENCE EXPECTED SCRIPT [OPTION...]: what the script prints, in one line
gives() {
	local sentence=$1 expected=$2 script=$3
	shift 3
	timeout 120 "$WEIR" probe -q "$@" -e "$script" >out.txt 2>err.txt
	sed 's/^/  /' err.txt
	equal "$sentence" "$expected" "$(echo $(cat out.txt))"
}

# --- blocks ----------------------------------------------------------------------------------------------------
gives "a block's value is its last expression" "inside 7 8" \
	'begin { $x = { $y = 3; $y + 4 }; print({ print("inside"); $x }); print({ $x++; $x }); }'
gives "blocks are inside of blocks, conditions, keys, texts, tuples and predicates" "44 taken (5, red) true @of[blue]: 9" \
	'begin { $a = { $b = { let $c = 20; $c + 2 }; $b * 2 }; print($a); if ({ let $t = $a; $t > 40 }) { print("taken"); }
	print({ $n = 5; ($n, { $s = "red"; $s }) }); @of[{ let $k = "blue"; $k }] = { let $v = 9; $v }; }
	interval:ms:5 /{ $z = 1; $z == 1 }/ { print("true"); exit(); }'
gives "the left side keeps the value from before the block on the right" "1 3" \
	'begin { $i = 1; $sum = $i + { $i = 2; $i } - 2; print($sum); print({ $i++; $i }); }'
gives "_ takes a value that nobody wants" "seen" 'begin { _ = { print("seen"); 3 } }'
equal "and nothing is said about it" "" "$(cat err.txt)"

# --- macros ----------------------------------------------------------------------------------------------------
gives "an expression is put in as often as it is named" "one one 12" \
	'macro twice(x) { x; x; } macro sum(x) { $a = x; $b = x; $a + $b } begin { twice({ print("one") }); $n = 5; print(sum({ $n++; $n })  - 1 ); }'
gives "variables and maps are the caller's" "11 @seen[7]: 11 @calls: 3" \
	'macro note($n, @m, key) { $n += 1; @m[key] = $n; } macro tick(@t) { @t++; }
	begin { $n = 10; note($n, @seen, 3 + 4); print($n); tick(@calls); tick(@calls); tick(@calls); }'
gives "variables inside are others than those outside, at each use" "(9, 3, 30)" \
	'macro scaled(x) { $y = x * 3; $y } begin { $y = 9; $a = scaled(1); print(($y, $a, scaled(scaled($a) + 1))); }'
gives "a macro may hand over what it was handed" "(5, 1)" \
	'macro shown(a, b) { print((a, b)); } macro both(@m, $v) { shown(@m, $v); clear(@m); } begin { @five = 5; $one = 1; both(@five, $one); }'
gives "the order of macros does not matter, () may be missing without arguments" "6 4 4" \
	'macro three() { two() + one } macro one { 1 } begin { print(three + 3); print(four()); print(four); } macro two { 2 - { 0 } } macro four() { 4 }'
gives "kinds of parameters tell macros of one name apart" "value variable map 2" \
	'macro kind(x) { "value" } macro kind($x) { "variable" } macro kind(@x) { "map" } macro kind(x, y) { 2 }
	begin { $v = 1; @m = 1; print(kind(3)); print(kind($v)); print(kind(@m)); print(kind(1, 2)); clear(@m); }'
gives "a macro stands before a builtin of that name and number of arguments only" "mine 3" \
	'macro strlen() { "mine" } begin { print(strlen()); print(strlen("abc")); }'
gives "a macro is a format, an aggregation, a loop" "n=3 0 1 @n: 2" \
	'macro format() { "n=%d\n" } macro counted() { count() } macro upto(n) { for ($i : 0..n) { print($i); } }
	begin { printf(format(), 3); upto(2); @n = counted(); @n = counted(); }'
gives "typeof is the type of an expression" "(8, 6, -1) hello" \
	'macro kept(x) { let $k : typeof(x) = x; $k } begin { $s = kept("hello"); print((sizeof(typeof(pid + 1)), sizeof(typeof($s)) + 1, (typeof((int8)1))255)); print($s); }'

# --- functions -------------------------------------------------------------------------------------------------
gives "a function has copies, returns from within loops, and starts anew each time" "3 -1 3 0" \
	'fn find($n : int64) : int64 { for ($i : 0..10) { if ($i * $i == $n) { return $i; } } if ($n < 50) { return -1; } }
	begin { $n = 9; print(find($n)); print(find(10)); print(find(9)); print(find(60)); }'
gives "a function gives texts" "(few, very many)" \
	'fn words($n : int64, $more : string) : string { if ($n < 3) { return "few"; } return $more; } begin { print((words(1, "no"), words(4, "very many"))); }'
gives "a function changes maps, and not its caller's variables" "1 @log[2]: 1" \
	'fn log($x : int64) : void { $x = $x + 1; @log[$x]++; return; print("never"); } begin { $x = 1; log($x); print($x); }'
gives "the clause goes on behind a function, and ends at its own return" "inner after" \
	'fn say() { print("inner"); return; } begin { say(); print("after"); return; print("never"); }'
gives "parameters have the sizes of their types" "-56" 'fn low($x : int8) : int64 { return $x; } begin { print(low(200)); }'

# --- both modes ------------------------------------------------------------------------------------------------
cat >pair.c <<'E'
struct pair { long a; char *text; long long b; };
__attribute__((noinline)) long target(struct pair *p, long n) { __asm__ volatile("" : : "r"(p) : "memory"); return n; }
int main(void) { struct pair p = {-3, "deep", 1LL << 40}; return (int)target(&p, 0); }
E
for bits in 32 64; do
	gcc -m$bits -O1 -g -o pair$bits pair.c 2>gcc.err || { cat gcc.err; not_ok "pair.c compiles for $bits bits"; }
	cat >pair.wr <<'S'
struct pair { long a; char *text; long long b; };
macro of(p) { (struct pair *)p }
macro told(p, @m) { $q = of(p); @m[bits, sizeof(struct pair)] = ($q->a, $q->b); str($q->text) }
fn half($b : int64) : int64 { return $b / 2; }
S
	printf 'uprobe:./pair%d:target { print((told(arg0, @seen), half(of(arg0)->b) == 1 << 39 ? 1 : 0)); }\n' $bits >>pair.wr
	timeout 120 "$WEIR" probe -q -i pair.wr -c ./pair$bits >out.txt 2>err.txt
	sed 's/^/  /' err.txt
	equal "macros and functions have the sizes of $bits-bit programs" \
		"(deep, 1) @seen[$bits, $((bits == 32 ? 16 : 24))]: (-3, 1099511627776)" "$(echo $(cat out.txt))"
done

# --- messages ---------------------------------------------------------------------------------------------------
cat >wrong.wr <<'S'
macro inner(x) { x + "text" }
macro outer(x) { inner(x) }
begin { print(outer(1)); }
S
timeout 120 "$WEIR" probe -q -i wrong.wr >out.txt 2>err.txt
equal "a message has its place in the macro and those of its uses" \
	"wrong.wr:1:18 in inner(), used at wrong.wr:2:18 in outer(), used at wrong.wr:3:15" \
	"$(echo $(sed -n 's/^\(wrong.wr:[0-9:]*[0-9]\): error.*/\1/p; /used at/p' err.txt))"
timeout 120 "$WEIR" probe -q -f json -i wrong.wr >out.txt 2>err.txt
equal "in JSON, too" "1:18 inner 2:18 outer 3:15" "$(python3 -c '
import json
m = json.load(open("err.txt"))[0]
print("%d:%d" % (m["line"], m["column"]), *("%s %d:%d" % (u["macro"], u["line"], u["column"]) for u in m["uses"]))')"
printf 'macro m0(x) { x; x }\n' >deep.wr
for i in $(seq 40); do printf 'macro m%d(x) { m%d(x); m%d(x) }\n' $i $((i - 1)) $((i - 1)); done >>deep.wr
echo 'begin { print(m40(1)); }' >>deep.wr
timeout 120 "$WEIR" probe -q -i deep.wr >out.txt 2>err.txt
rc=$?
equal "macros that would become endless text are refused" "1 [size]" "$rc $(grep -o '\[size\]$' err.txt | head -n 1)"
