# SPDX-License-Identifier: MIT
# weir-test: root: benchmarks of trace scripts
# bench:NAME clauses and --bench.
. "$ROOT/tests/lib.sh"

cat >bench.wr <<'S'
begin { @setup = 3; print("begin"); }
bench:short { @short++; }
bench:long { @long++; $n = 0; unroll (100) { $n += strlen(comm); } if ($n == 1) { print($n); } }
interval:ms:1 { @ticks++; }
end { print("end"); clear(@setup); clear(@ticks); }
S
timeout 120 "$WEIR" probe -q --bench bench.wr >out.txt 2>err.txt
equal "--bench ends well, between begin and end" "0 begin end" "$? $(echo $(grep '^begin\|^end' out.txt))"
row() { sed -n "s/^$1  *\([0-9][0-9]*\)  *\([0-9][0-9]*\)$/\\$2/p" out.txt; }
equal "each ran as often as its row says" "$(row short 2) $(row long 2)" "$(echo $(sed -n 's/^@\(short\|long\): //p' out.txt | sort -nr))"
check "each ran at least a hundred times" [ "$(row short 2)" -ge 100 -a "$(row long 2)" -ge 100 ]
check "a hundred texts take longer than one step ($(row short 1), $(row long 1))" [ "$(row short 1)" -lt "$(row long 1)" ]
timeout 120 "$WEIR" probe -q -f json --mode bench bench.wr >out.txt 2>err.txt
equal "JSON has a line for each" "long short" "$(python3 -c '
import json
rows = [json.loads(l) for l in open("out.txt")]
found = {n: v for r in rows if r["type"] == "benchmark_result" for n, v in r["data"].items()}
print(*sorted(n for n, v in found.items() if v["average"] > 0 and v["iters"] >= 100))')"
timeout 120 "$WEIR" probe -q -e 'begin { print("begin"); } bench:never { print("bench"); }' >out.txt 2>err.txt
equal "without --bench they do not run" "begin" "$(cat out.txt)"
timeout 120 "$WEIR" probe -q --bench -e 'begin { }' >out.txt 2>err.txt
equal "--bench without such a clause is an error" "1 1" "$? $(grep -c 'no clause bench:NAME' err.txt)"
timeout 120 "$WEIR" probe -q -o kept.wprobe bench.wr && timeout 120 "$WEIR" probe -q --bench kept.wprobe >out.txt 2>err.txt
check "a compiled script keeps them" [ "$(row long 2)" -ge 100 ]
