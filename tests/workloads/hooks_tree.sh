# SPDX-License-Identifier: MIT
# The tree that the program keeps itself (--tree): the same totals as a full trace.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"
build busy busy.c -O2 && build deep deep.c -O2 && build throws throws.cpp -O2 && build threads threads.c -O2 || exit 1

# agree SENTENCE COMMAND...
agree() {
	local sentence=$1
	shift
	rm -f progress
	"$@" >plain.txt 2>&1
	"$WEIR" record -q --no-sample --events '*' -o full.weir -- "$@" >full.txt 2>&1
	"$WEIR" record -q --no-sample --events '*' --tree --prune 0 -o tree.weir -- "$@" >tree.txt 2>&1
	equal "$sentence: the same output with a tree" "$(sed 's/, changed.*//' plain.txt)" "$(sed 's/, changed.*//' tree.txt)"
	equal "$sentence: the same totals in a tree and in a full trace" "$(totals full.weir)" "$(totals tree.weir)"
}
agree "four threads" ./busy progress x30000 4
agree "recursions and tail calls" ./deep 3000
agree "exceptions" ./throws
agree "threads that come and go" ./threads 2

# Pruning folds nodes; no call is missing in the totals.
"$WEIR" record -q --no-sample --events '*' -o full.weir -- ./throws >/dev/null
"$WEIR" record -q --no-sample --events '*' --tree --prune 0.5 -o tree.weir -- ./throws >/dev/null
equal "pruned: the same totals" "$(totals full.weir)" "$(totals tree.weir)"

# A library that is replaced and loaded again: each call has the name that its version has. The first two versions differ
# in what is at an address; the last is the first once more.
for version in 1 2; do
	gcc -w -O2 -shared -fPIC -DLIBRARY=$version -o version$version.so "$hook_fixtures/replaced.c" || exit 1
done
build replaced replaced.c -O2 -ldl || exit 1
for option in --all-calls --tree; do
	[ $option = --tree ] && options=(--tree) || options=()
	"$WEIR" record -q --no-sample "${options[@]}" --events 'replaced.so:replaced*' -o t.weir -- \
		./replaced version1.so version2.so version1.so >out.txt 2>err.txt
	equal "a library that is replaced and loaded again, ${option#--}" "6 calls replaced_other 2 replaced_work 6" \
		"$(cat out.txt) $(echo $(totals t.weir))"
done

# Where there is hardly any room within reach, that of a library that is gone is used again.
build crowded crowded.c -O2 -ldl || exit 1
for option in --all-calls --tree; do
	[ $option = --tree ] && options=(--tree) || options=()
	"$WEIR" record -q --no-sample "${options[@]}" --events 'version1.so:replaced*' -o t.weir -- \
		./crowded ./version1.so 50 >out.txt 2>err.txt
	equal "a library that is loaded fifty times where there is little room, ${option#--}" "500 calls replaced_work 500" \
		"$(cat out.txt) $(echo $(totals t.weir))"
done

# What is shared with the recorder lies where it takes nothing of the room within reach of libraries.
"$WEIR" record -q --no-sample --tree --events 'libc.so*:malloc' -o t.weir -- cat /proc/self/maps >maps.txt 2>err.txt
equal "the trees lie away from the libraries" True "$(python3 - <<'PY'
lines = [l.split() for l in open("maps.txt")]
ranges = [(int(a, 16), int(b, 16), " ".join(l[5:])) for l in lines for a, b in [l[0].split("-")]]
ours = [r for r in ranges if "weir-hooks" in r[2] and r[1] - r[0] > 4096]
code = [r for r in ranges if ".so" in r[2]]
print(bool(ours and code) and all(max(o[0] - c[1], c[0] - o[1]) > 1 << 31 for o in ours for c in code))
PY
)"
if command -v openssl >/dev/null; then
	"$WEIR" record -q --no-sample --tree --events 'libcrypto*:*' -o t.weir -- openssl dgst -sha256 /etc/passwd >out.txt 2>err.txt
	"$WEIR" report hooks t.weir --json >hooks.json 2>err.txt
	check "thousands of functions of one library are hooked" \
		test "$(json hooks.json "sum(r['method'] == 'jump' for r in j['rows'])")" -gt 5000
else
	skip "thousands of functions of one library: openssl is not installed"
fi
