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
