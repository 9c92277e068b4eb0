# SPDX-License-Identifier: MIT
# Java and Node, attached to for short bursts while they compile: every step has the bytes that were
# executed, also in code that is made and made anew. (made_code.c proves the same byte by byte.)
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"

# Bursts of a process that says "warm" in NAME.txt: NAME PID OPTIONS...
bursts() {
	local name=$1 pid=$2 i
	shift 2
	for ((i = 0; i < 1500; i++)); do grep -q warm "$name.txt" && break || sleep 0.01; done
	check "$name: it is warm" grep -q warm "$name.txt"
	# Bursts may all fall into the collection of garbage or a compilation: then once more, later.
	for try in 1 2 3; do
		timeout 60 "$WEIR" steps -q "${engine_option[@]}" -o "$name.weir" -p "$pid" --every 30 --for 1500 --max 30000 "$@" 2>steps.txt
		rc=$?
		made=$(judge - "$name.weir" <<<'print(sum(1 for s in t.steps() if s.code.image and s.code.image.kind == "made"))')
		[ $rc -eq 0 ] && [ "$made" -le 1000 ] || break
	done
	equal "$name: it is traced in bursts" 0 $rc
	head -n 3 steps.txt
	check "$name: it goes on" kill -0 "$pid"
	equal "$name: nobody traces it any more" 0 "$(awk '/^TracerPid/ { print $2 }' "/proc/$pid/status")"
	NAME=$name judge - "$name.weir" <<'PY'
name = os.environ["NAME"]
bad = foreign(t, None)
check(f"{name}: all {t.n_steps()} steps have their bytes", t.n_steps() >= 10000 and not bad, *bad[:5])
made = [s for s in t.steps() if s.code.image and s.code.image.kind == "made"]
check(f"{name}: many of them in code that it has made ({len(made)})", len(made) > 1000)
# Steps in a straight line: the next address is where the bytes end, unless they branch.
wrong = 0
for thread in t.threads:
    last = None
    for i in thread.items:
        if i.is_step and last is not None and not branches(last.code.bytes) and i.addr != last.addr + len(last.code.bytes):
            wrong += 1
        last = i if i.is_step else None
equal(f"{name}: each instruction ends where the next one begins", 0, wrong)
PY
	"$WEIR" report steps "$name.weir" --limit 100000 >listing.txt 2>listing.err
	check "$name: the listing has them" [ "$(wc -l <listing.txt)" -gt 10000 ]
	equal "$name: none of them is unknown there" 0 "$(grep -ciE 'not captured|unknown bytes|\(bad\)' listing.txt)"
}

if command -v java >/dev/null && command -v javac >/dev/null; then
	cp "$step_fixtures/Recompiled.java" . && javac Recompiled.java
	java -XX:+UseSerialGC -Xmx64m Recompiled >java.txt 2>&1 &
	java=$!
	bursts java $java
	kill $java
	{ wait $java; } 2>/dev/null
else
	skip "Java: there is no java here"
fi
if command -v node >/dev/null; then
	node "$step_fixtures/recompiled.js" >node.txt 2>&1 &
	node=$!
	bursts node $node --threads $node # its other threads wait for each other most of the time
	kill $node
	{ wait $node; } 2>/dev/null
else
	skip "Node: there is no node here"
fi
true
