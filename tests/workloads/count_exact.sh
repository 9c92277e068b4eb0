# SPDX-License-Identifier: MIT
# Instructions and calls of each function are those that callgrind sees in the plain program, for
# deterministic programs; each difference is listed with its cause. Sums and arcs agree.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
# weir-test: patient
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"
count_options=-v

# Bases add up to the total; callers' calls to the function's calls; base and callees to what it cost with them.
invariants() { # NAME
	"$WEIR" report arcs counted/"$1".weir --json >arcs.json 2>/dev/null
	"$WEIR" report flat counted/"$1".weir --json >flat.json 2>/dev/null
	python3 - "$1" <<'PY' || not_ok "$1: the reports are read"
import json, sys
arcs, flat = json.load(open("arcs.json")), json.load(open("flat.json"))
wrong = []
total = flat["total"]
if sum(r["base"] or 0 for r in flat["rows"]) != total or total != arcs["total"] or not total:
    wrong.append(f"bases add up to {sum(r['base'] or 0 for r in flat['rows'])}, total {total}")
for r in arcs["rows"]:
    name, own = r["name"], r["self"]
    if r["parents"] and sum(p["calls"] for p in r["parents"]) != own["calls"]:
        wrong.append(f"{name}: {own['calls']} calls, of its callers {sum(p['calls'] for p in r['parents'])}")
    if r["parents"] and sum(p["base"] for p in r["parents"]) != own["base"]:
        wrong.append(f"{name}: base {own['base']}, by callers {sum(p['base'] for p in r['parents'])}")
    if not any(a["recursive"] for a in r["parents"] + r["children"]):
        if own["base"] + sum(c["cum"] for c in r["children"]) != own["cum"]:
            wrong.append(f"{name}: base {own['base']} and callees are not its {own['cum']}")
        if r["parents"] and sum(p["cum"] for p in r["parents"]) != own["cum"]:
            wrong.append(f"{name}: the shares of its callers are not its {own['cum']}")
print("not ok" if wrong else "ok", f"{sys.argv[1]}: bases and arcs of {len(arcs['rows'])} functions add up")
for w in wrong[:20]:
    print(" ", w)
PY
}

# one NAME SOURCE FLAGS, ARGUMENTS: with the libraries of libraries_of_links
one() {
	local name=$1 source=$2 flags=$3
	shift 3
	# shellcheck disable=SC2086
	build "$name" "$source" $flags || { skip "$name: $(head -n 1 build.txt)" && return; }
	mv build.txt left_alone.txt
	same "$name does the same" "$name" "$@" || return
	invariants "$name"
	exact "$name" "$@"
}
library() { # NAME SOURCE "LIBRARIES" ARGUMENTS
	local name=$1 source=$2 l a
	libraries_of_links=()
	for l in $3; do
		[[ $l == -* ]] && libraries_of_links+=("$l") && continue
		a=$(static_library "$l") || { skip "$name: lib$l.a is not installed" && return; }
		libraries_of_links+=("$a")
	done
	shift 3
	one "$name" "$source" -O2 "$@"
	libraries_of_links=()
}

one control_flow control_flow.c "-O2"
library zlib drive_zlib.c z 5000

# Counters are single instructions: a handler in the midst of a block loses nothing.
"$WEIR" count -q gcc -O2 -o carry "$count_fixtures/carry_and_signals.c" && ./carry >carry.txt
read -r calls rounds wrong <carry.txt
equal "a loop that carries a flag is right among signals" 0 "$wrong"
equal "each round of it is counted, those in handlers too ($calls calls)" "$rounds" "$(python3 -B - carry.weir <<EOF
import sys
sys.path.insert(0, "$ROOT/tests/fixtures/count_runtime")
import read_counts
f = read_counts.CountFile(sys.argv[1])
counts = [f.counts(u)[i] for u in f.units for g in u.functions if g.name == "chain"
          for i in range(g.first_block, g.first_block + g.n_blocks)]
print(max(counts))
EOF
)"

# A handler of a signal comes between blocks that leave their costs to later ones, and goes elsewhere. The judge is
# the same program with block counters alone.
for level in O2 O0; do
	"$WEIR" count -q gcc -$level -o interrupted "$count_fixtures/interrupted.c" &&
		"$WEIR" count -q --counts gcc -$level -o interrupted_blocks "$count_fixtures/interrupted.c"
	./interrupted >interrupted.txt && ./interrupted_blocks >blocks.txt
	for program in interrupted interrupted_blocks; do
		"$WEIR" report flat --json $program.weir >$program.json
	done
	for function in branches on_trap note; do
		equal "$function, interrupted by handlers that come back and that do not, has the cost of its blocks (-$level)" \
			"$(json interrupted_blocks.json "[r['base'] for r in j['rows'] if r['name'] == '$function']")" \
			"$(json interrupted.json "[r['base'] for r in j['rows'] if r['name'] == '$function']")"
	done
	equal "calls that were interrupted are counted (-$level)" "$(cat interrupted.txt)" \
		"$(json interrupted.json "' '.join(str(r['calls']) for n in ('middle', 'branches') for r in j['rows'] if r['name'] == n)")"
	equal "no call cost less than nothing (-$level)" "[]" \
		"$(json interrupted.json "[r['name'] for r in j['rows'] if (r['max'] or 0) > 1000000]")"
done
more || finish
one control_flow_plain control_flow.c "-O0 -no-pie"
one exceptions exceptions.cc "-O2 -static-libstdc++ -static-libgcc"
library bzip2 drive_bzip2.c bz2 2000
library zstd drive_zstd.c zstd 5000
library sqlite3 drive_sqlite.c "sqlite3 -lm" 100
# valgrind does not know every instruction that libcrypto would choose here.
export OPENSSL_ia32cap=0:0
library libcrypto drive_crypto.c crypto 1000
