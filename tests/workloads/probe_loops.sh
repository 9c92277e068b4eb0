# SPDX-License-Identifier: MIT
# weir-test: root: loops of trace scripts
# Loops of any length and over maps in programs of both modes, where the kernel counts their turns and where it
# does not; what the program says itself is compared with what the script saw.
. "$ROOT/tests/lib.sh"

cat >list.c <<'E2'
#include <stdio.h>
#include <stdlib.h>
struct node { long value; struct node *next; };
static struct node *make(long n)
{
	struct node *first = NULL;

	for (long i = 1; i <= n; i++) {
		struct node *node = malloc(sizeof(*node));

		node->value = i * 3 - 7;
		node->next = first;
		first = node;
	}
	return first;
}
__attribute__((noinline)) long walk(struct node *list)
{
	long sum = 0;

	for (; list; list = list->next)
		sum += list->value;
	return sum;
}
int main(void)
{
	printf("%d %ld\n", (int)sizeof(long) * 8, walk(make(20000)));
}
E2
gcc -g -O1 -m64 -o list64 list.c || { not_ok "the program compiles" && finish; }
modes=64
gcc -g -O1 -m32 -o list32 list.c 2>/dev/null && modes="64 32"

probe() { # NAME ARGUMENT...: NAME.txt, NAME.err, $rc
	timeout 120 "$WEIR" probe -q "${@:2}" >"$1.txt" 2>"$1.err"
	rc=$?
}

for mode in $modes; do
	./list$mode >truth.txt
	probe walk 'uprobe:./list*:walk { $sum = 0; $p = args.list;
		while ($p != 0) { $sum += $p->value; $p = $p->next; } printf("%d %d\n", bits, $sum); }' -c ./list$mode
	equal "a list of 20000 entries is walked, $mode bit" "0 $(cat truth.txt) twice" \
		"$rc $(sort -u walk.txt) $([ "$(wc -l <walk.txt)" -eq 2 ] && echo twice)"
	probe map 'struct pair { long number; char c; };
		uprobe:./list*:walk { @seen[args.list->value] = sizeof(struct pair); @seen[5] = 1; $n = 0;
			for ($kv : @seen) { $n += $kv.0 * 10 + $kv.1; if ($kv.0 == 5) { @v[bits] = args.list->next->value; } }
			printf("%d %d %d\n", bits, $n, @v[bits]); }' -c ./list$mode
	equal "a loop over a map reads the program's memory, $mode bit" \
		"$mode $(((59993 + 5) * 10 + mode / 4 + 1)) 59990" "$(grep "^$mode .* .*" map.txt)"
done

# A stream is for kernels of both kinds.
probe write -o loops.wprobe 'begin { @m[1] = 2; $n = 0; $i = 0; while ($i < 1000) { $i++; $n += $i; }
	for ($kv : @m) { $n += $kv.1; } print($n); clear(@m); }'
probe run loops.wprobe
equal "a stream with loops runs" "0 500502" "$rc $(head -n 1 run.txt)"
probe limit --without turns loops.wprobe
equal "and where the kernel does not count turns" "0 500502" "$rc $(head -n 1 limit.txt)"
check "the second reader takes it" python3 "$ROOT/tests/format/read_probe_stream.py" loops.wprobe >/dev/null

# Cut short is told.
probe bounded --without turns 'begin { $n = 0; while ($n < 100000) { $n++; } print($n); }'
equal "a loop that is cut at a limit is a loss" "3 2000 1 loop cut short" \
	"$rc $(cat bounded.txt) $(grep -o '1 loop cut short' bounded.err)"
probe known --without turns 'begin { $n = 0; for ($i : 0..1900) { $n++; } print($n); }'
equal "one of a known number of turns is not cut" "0 1900" "$rc $(cat known.txt)"
probe endless 'begin { $n = 0; while (1) { $n++; } print($n > 2000); }'
equal "a loop that does not end is a loss" "3 1 loop cut short" \
	"$rc $(grep -o '1 loop cut short' endless.err)"
probe status 'begin { @m["a"] = 1; for ($kv : @m) { exit(4); } }'
equal "exit() in a loop over a map has its status" 4 $rc
probe failed 'begin { @m[0] = 1; for ($kv : @m) { print(7 / $kv.0); } print("behind"); } error { printf("line %d\n", errline); }'
equal "a failure in a loop over a map ends the clause" "3 line 1 0" "$rc $(head -n 1 failed.txt) $(grep -c behind failed.txt)"
probe functions 'fn find($key : int64) : int64 { for ($kv : @m) { if ($kv.0 == $key) { return $kv.1; } } return -1; }
	fn root($of : int64) : int64 { for ($i : 0..100000) { if ($i * $i >= $of) { return $i; } } return -1; }
	begin { @m[1] = 10; @m[2] = 20; print((find(2), find(3), find(1), root(1000000))); }'
equal "return leaves functions of the script out of loops" "0 (20, -1, 10, 1000)" "$rc $(head -n 1 functions.txt)"

# What is too much for the verifier says which clause, as other messages do.
body=$(for i in {0..19}; do echo "if (@a$i == \$k) { @b[@a$i]++; @c[\$k] = hist(@a$i); }"; done)
set=$(for i in {0..19}; do echo "@a$i = 1;"; done)
printf 'begin { @a = 1; }\nbegin {\n\t$i = 0; while ($i < 10) { $i++; for ($k : 0..100) { %s } }\n}\nend { %s }\n' \
	"${body//$'\n'/ }" "${set//$'\n'/ }" >big.wr
probe big big.wr
equal "a clause that is too much for the verifier is named" "1 big.wr:2:1: error: [size] ^~~~~~~ 1" \
	"$rc $(sed -n '1s/\(error:\).*\[/\1 [/p' big.err) $(sed -n '3s/ //gp' big.err) $(grep -c 'hint: ' big.err)"
finish
