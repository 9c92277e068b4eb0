# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Functions that move their return address, and programs that look for return addresses on their stacks.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

for bits in 64 32; do
	build movers movers.c -O2 -m$bits || { skip "$bits bits: gcc -m$bits does not work here ($(head -n 1 build.txt))" && continue; }
	same "return addresses that are moved, $bits bits" '*' ./movers
	equal "what is seen to move its return address is refused, $bits bits" "refused it reads or moves its own return address" \
		"$(json case_$((n_cases - 1))/hooks.json "' '.join(r['method'] + ' ' + r['reason'] for r in j['rows'] if r['function'] == 'mover_seen')")"
done

# V8 moves return addresses, and walks its stacks to collect garbage and to throw.
if command -v node >/dev/null; then
	node_image= # all of it is in the program itself, or in a library
	! ldd "$(command -v node)" | grep -q libnode || node_image='libnode*:'
	same "node, V8's own code" "${node_image}Builtins_*" node -e 1
	same "node, every function of it" "$node_image*" node --expose-gc "$hook_fixtures/garbage.js"
	equal "calls of node's functions are recorded" True \
		"$(json case_$((n_cases - 1))/flat.json "sum(r['calls'] or 0 for r in j['rows']) > 100000")"
else
	skip "V8: no node here"
fi

# HotSpot finds the frame of the method that called it by the return address.
if command -v java >/dev/null; then
	same "java, what the code that it makes calls" 'libjvm.so:*Runtime*' java -Xcomp -XX:TieredStopAtLevel=1 -version
	equal "what finds its caller by the return address is refused" True \
		"$(json case_$((n_cases - 1))/hooks.json "sum('finds the caller' in (r['reason'] or '') for r in j['rows']) > 100")"
else
	skip "HotSpot: no java here"
fi
judge_counts
