# SPDX-License-Identifier: MIT
# Real runs of the same programs, recorded here, are called different in at most one row in a thousand: some pairs, and two
# hundred of each program in make check-slow. A program that does twice the work is found when the machine lets it.
# weir-test: alone: runs differ more where others have the processor
# weir-test: once: recordings by the plain build are what it is about; diff.sh runs with sanitizers
. "$ROOT/tests/lib.sh"
runs=5 pairs=10
[ -z "${WEIR_SLOW:-}" ] || runs=60 pairs=200

record() { # NAME NUMBER COMMAND...
	local name=$1 number=$2
	shift 2
	"$WEIR" record -q -o "$name.$number.weir" -- "$@" >/dev/null 2>err.txt
}
if ! record try 1 perl -e '1'; then
	skip "pairs of runs are compared: $(head -n 1 err.txt)"
	finish
fi
for ((i = 1; i <= runs; i++)); do
	record perl $i perl -e '$h{$_ % 9973} .= join ",", sort map { $_ ^ 5 } 1..9 for 1..100000'
	record python $i python3 -SE -c 'import json
d = [{"a": i, "b": str(i), "c": [i] * 5} for i in range(2000)]
for _ in range(12):
    json.loads(json.dumps(d)).sort(key=lambda x: x["b"])'
done

# different NAME OPTIONS...: "ROWS DIFFERENT WHICH" of pairs of its runs.
different() {
	python3 -SE - "$WEIR" $runs $pairs "$@" <<'P'
import itertools, json, random, subprocess, sys
weir, runs, n, name, options = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:]
random.seed(1)
rows, different = 0, []
for a, b in random.sample(list(itertools.combinations(range(1, runs + 1), 2)), n):
    p = subprocess.run([weir, "diff", "--json", *options, f"{name}.{a}.weir", f"{name}.{b}.weir"], capture_output=True)
    if p.returncode not in (0, 3):
        sys.exit(p.stderr.decode())
    for row in json.loads(p.stdout)["rows"]:
        rows += 1
        if row["verdict"] in ("more", "less"):
            different.append(f'{row["name"]} {row["before"]["value"]} {row["after"]["value"]} of {a} and {b}')
print(rows, len(different), "; ".join(different))
P
}
for name in perl python; do
	for options in "" "--cum" "--by stack" "--by line"; do
		# shellcheck disable=SC2086
		read -r rows n which <<<"$(different $name $options)"
		if [ "${rows:-0}" -gt 100 ] && [ $((n * 1000)) -le $((rows > 1000 ? rows : 1000)) ]; then
			ok "pairs of equal runs of $name are not called different ($options)"
		else
			not_ok "pairs of equal runs of $name are not called different ($options): $n of $rows rows: $which"
		fi
	done
done
"$WEIR" diff --json perl.[123].weir -- perl.[45].weir >several.json 2>err.txt
equal "nor are several runs of a side" 0 "$(json several.json "sum(r['verdict'] in ('more', 'less') for r in j['rows'])")"
