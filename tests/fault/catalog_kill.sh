# SPDX-License-Identifier: MIT
# A writer of the catalog is killed, at random times and at every single write: what it called
# committed is there, whole, and the next writer goes on. Readers and writers at the same time.
# weir-test: patient
. "$ROOT/tests/lib.sh"
driver=$BUILD/tests/oracle/catalog_driver

# missing FILE: images that some writer called committed and that are not in FILE, or what is wrong.
missing() {
	if ! "$driver" check "$1" >has.txt 2>check.err; then
		cat check.err
		return
	fi
	comm -23 <(sed -n 's/^committed //p' committed.txt | sort -u) <(sed -n 's/^has //p' has.txt | sort -u)
}

# --- random times ---------------------------------------------------------------------------

: >committed.txt
next=0 bad=0 killed=0 leftover=0 commits=0
rounds=${WEIR_SLOW:+1000}
rounds=${rounds:-200}
RANDOM=4711
for ((i = 0; i < rounds; i++)); do
	# Killed some time behind one of its first commits, or behind its start: however busy the machine is,
	# three of four writers have committed something.
	exec {out}< <(exec "$driver" add random.wsym $next 1 1000 4 2>writer.err)
	writer=$!
	for ((behind = RANDOM % 4; behind > 0; behind--)); do
		read -r line <&$out && echo "$line" >>committed.txt
	done
	sleep "0.$(printf '%03d' $((RANDOM % 20)))"
	kill -9 $writer
	cat <&$out >>committed.txt
	exec {out}<&-
	wait $writer 2>/dev/null
	[ $? -ne 137 ] || killed=$((killed + 1))
	[ ! -s writer.err ] || { bad=$((bad + 1)) && cat writer.err; }
	[ ! -e random.wsym.new ] || leftover=$((leftover + 1))
	if [ -e random.wsym ]; then
		lost=$(missing random.wsym)
		[ -z "$lost" ] || { bad=$((bad + 1)) && echo "round $i: $lost"; }
		next=$(($(sed -n 's/^has //p' has.txt | sort -n | tail -n 1) + 1))
	fi
	# Images stay few, so that later rounds are not slower than the first ones.
	if [ $next -gt 60 ]; then
		commits=$((commits + next))
		rm -f random.wsym
		: >committed.txt
		next=0
	fi
done
equal "a writer killed at a random time loses nothing committed, $rounds times" 0 $bad
commits=$((commits + next))
check "all writers were killed ($killed, after $commits commits; $leftover left a new file behind)" \
	test $killed -eq $rounds -a $commits -gt $((rounds / 2))

# --- every single point ---------------------------------------------------------------------

# Three changes and a compaction behind a catalog of five, or behind nothing.
sweep() { # SENTENCE BASE
	local bad=0 n=0 rc lost permille
	for permille in 0 500 1000; do
		for ((n = 1; n < 100; n++)); do
			rm -f sweep.wsym sweep.wsym.new
			[ -z "$2" ] || cp "$2" sweep.wsym
			WEIR_CATALOG_CRASH_AT=$n WEIR_CATALOG_CRASH_PERMILLE=$permille \
				"$driver" add sweep.wsym 5 1 3 2 >committed.txt 2>writer.err
			rc=$?
			[ $rc -eq 137 ] || [ $rc -eq 0 ] || { bad=$((bad + 1)) && cat writer.err; }
			[ -z "$2" ] || seq -f 'committed %g' 0 4 >>committed.txt
			if [ -e sweep.wsym ]; then
				lost=$(missing sweep.wsym)
				[ -z "$lost" ] || { bad=$((bad + 1)) && echo "call $n, $permille of 1000: $lost"; }
			elif [ -s committed.txt ]; then
				bad=$((bad + 1)) && echo "call $n, $permille of 1000: there is no file"
			fi
			# The next writer goes on, also through a compaction.
			"$driver" add sweep.wsym 10 1 2 1 >>committed.txt 2>writer.err || {
				bad=$((bad + 1)) && cat writer.err
			}
			lost=$(missing sweep.wsym)
			[ -z "$lost" ] || { bad=$((bad + 1)) && echo "afterwards $n, $permille of 1000: $lost"; }
			[ ! -e sweep.wsym.new ] || { bad=$((bad + 1)) && echo "$n: a new file is left"; }
			[ $rc -ne 0 ] || break
		done
		[ $n -ge 16 ] || { bad=$((bad + 1)) && echo "only $n calls"; }
	done 2>/dev/null # the shell's remarks on killed processes
	equal "$1 ($n calls, each with 3 lengths of its last write)" 0 $bad
}
"$driver" add base.wsym 0 1 5 >/dev/null
sweep "a writer killed at any call loses nothing committed" base.wsym
sweep "a writer killed at any call while the file is new loses nothing committed" ""

# --- several at once ------------------------------------------------------------------------

# The reader is in step with the writer at each 20th image, and beside it otherwise.
exec {out}< <(exec "$driver" watch live.wsym 100 2>watch.err)
reader=$! wrong=0 seen=0 states=0
: >writer.err
for ((from = 0; from < 100; from += 20)); do
	"$driver" add live.wsym $from 1 20 7 >/dev/null 2>>writer.err || wrong=$((wrong + 1))
	while [ "$seen" -lt $((from + 20)) ] && read -r line <&$out; do
		seen=$line states=$((states + 1))
	done
done
equal "a writer that a reader watches succeeds" "0 " "$wrong $(cat writer.err)"
last=$(cat <&$out)
exec {out}<&-
wait $reader
equal "a reader sees whole states only, and never an older one" "0 " "$? $(cat watch.err)"
equal "it tells each of them" "saw $states states" "$(tail -n 1 <<<"$last")"
check "it saw more than one state ($states)" test $states -gt 3

"$driver" add both.wsym 0 2 40 7 >committed.txt 2>writer1.err &
first=$!
"$driver" add both.wsym 1 2 40 9 >committed2.txt 2>writer2.err
second=$?
wait $first
equal "two writers that also compact both succeed" "0 0 " "$? $second $(cat writer1.err writer2.err)"
cat committed2.txt >>committed.txt
equal "neither loses a change of the other" "" "$(missing both.wsym)"
equal "all 80 images of both are there" 80 "$(grep -c '^has' has.txt)"

# A file that may not grow stands for a full disk.
"$driver" add full.wsym 0 1 5 >committed.txt
size=$(stat -c %s full.wsym)
(
	trap '' XFSZ
	ulimit -f $((size / 1024 + 6))
	"$driver" add full.wsym 5 1 50 >>committed.txt 2>writer.err
)
check "a file that may not grow gives a sentence" grep -q "full.wsym': cannot write: File too large" writer.err
equal "and loses nothing" "" "$(missing full.wsym)"
"$driver" add full.wsym 60 1 1 >>committed.txt 2>writer.err
equal "and can be added to when there is room again" "0 " "$? $(cat writer.err)$(missing full.wsym)"
