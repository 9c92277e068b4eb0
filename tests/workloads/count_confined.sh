# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Programs that give up system calls (seccomp, strict and by a filter) or the time-stamp counter run as
# they do without being counted, and what they count then is there.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

# figures: calls of unit and left, and what the report says is missing
figures() {
	"$WEIR" report flat counted/"$1".weir --json 2>/dev/null | python3 -c '
import json, sys
rows = {r["name"]: r["calls"] for r in json.load(sys.stdin)["rows"]}
print(rows.get("unit"), rows.get("left"))'
	"$WEIR" report loss counted/"$1".weir 2>/dev/null | grep -oE 'time-stamp counter|children that it had|counted together' | sort | xargs
}

libraries_of_links=()
build confined confined.c -O2 && build fixed confined.c -O2 -static || exit 1
count_options="-q --counts" build counts confined.c -O2
count_options="-q --time-foreign all" build timed confined.c -O0
for p in confined fixed timed; do
	for how in "strict prctl" "strict syscall" "strict tail" strict_exit callback; do
		# shellcheck disable=SC2086
		same "$p runs as before: $how" $p $how
		equal "$p has its counts: $how" "$(printf '3010 1024\ntime-stamp counter')" "$(figures $p)"
		more || break
	done
	same "$p runs as before: no time-stamp counter" $p tsc
	for how in "filter prctl" "filter syscall"; do
		# shellcheck disable=SC2086
		same "$p runs as before: $how" $p $how
		equal "$p has its counts: $how" "$(printf '3010 1024\n')" "$(figures $p)"
	done
	same "$p has threads under a filter" $p threads
	# Four more that have no counters of their own: the report says it.
	equal "$p: what threads under a filter count is told" "counted together" "$(figures $p | tail -n 1)"
	same "$p only asks whether there are filters" $p asks
	equal "$p: and everything is counted" "$(printf '3410 1024\n')" "$(figures $p)"
	same "$p has a child under a filter" $p child
	equal "$p: that the child is not counted is told" "$(printf '3010 1024\nchildren that it had')" "$(figures $p)"
	more || break
done
# Without a tree there are no calls, but instructions.
for how in strict strict_exit tsc filter threads child; do
	same "block counts only: $how" counts $how
done
