# SPDX-License-Identifier: MIT
# weir count -- CMD is killed at any moment, or its keeper, or the command: the program goes on and ends right, the
# trace has the counts up to there, and nothing is left behind.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
# weir-test: slow: it waits for programs that run on without their recorder
. "$ROOT/tests/lib.sh"
storm=storm_$$ # a name of its own
gcc -O1 -o $storm "$ROOT/tests/fixtures/translate/life_storm.c" -lpthread || exit 1
expected=$(./$storm 40000)

alive() { [ -n "$(pgrep -x -r R,S,D,T,t "$storm")" ]; }
wait_for_end() {
	local i
	for ((i = 0; i < 6000; i++)); do
		alive || return 0
		sleep 0.01
	done
	pkill -9 -x "$storm"
	return 1
}
child_of() { # of PID, once there is one
	local i
	for ((i = 0; i < 200; i++)); do
		pgrep -P "$1" && return
		sleep 0.01
	done
}
start() { # a recording of the program, its words as arguments: $weir, $keeper, $command
	"$WEIR" count -q -o k.weir -- "$@" >out.txt 2>err.txt &
	weir=$!
	keeper=$(child_of $weir)
	command=$(child_of "$keeper")
}
readable() { # with losses, too
	local rc
	"$WEIR" report flat k.weir >report.txt 2>&1
	rc=$?
	[ $rc -eq 0 ] || [ $rc -eq 3 ]
}
end() { { wait $weir; } 2>/dev/null; }

for delay in 0.05 0.2 0.4; do
	start ./$storm 40000
	sleep $delay
	kill -9 $weir
	end
	check "weir is killed after $delay s: the program ends" wait_for_end
	equal "weir is killed after $delay s: and prints what it should" "$expected" "$(cat out.txt)"
	check "weir is killed after $delay s: the trace is readable" readable

	start ./$storm 40000
	sleep $delay
	kill -9 "$keeper" $weir
	end
	check "both processes of weir are killed after $delay s: the program ends" wait_for_end
	equal "both processes of weir are killed after $delay s: and prints what it should" "$expected" "$(cat out.txt)"
done

start ./$storm 40000
sleep 0.3
kill -9 "$keeper"
wait $weir
equal "the keeper is killed: weir says so" \
	"weir: 'k.weir': the recording was ended by signal 9 (Killed); the trace holds what was written before" "$(cat err.txt)"
check "the keeper is killed: the program ends" wait_for_end
equal "the keeper is killed: and prints what it should" "$expected" "$(cat out.txt)"

start ./$storm 100000000
sleep 0.4
kill -9 "$command"
end
check "the command is killed: nothing of it is left" wait_for_end
work=$("$WEIR" report flat --json k.weir | json /dev/stdin "max(r['cum'] for r in j['rows'])")
check "the command is killed: what it did is counted ($work instructions)" [ "${work:-0}" -gt 1000000 ]

bad=0
for i in 1 2 3 4 5 6 7 8 9 10; do
	start ./$storm
	sleep 0.$((RANDOM % 30 + 10))
	kill -9 "$command" 2>/dev/null
	end
	readable || bad=$((bad + 1))
	wait_for_end || bad=$((bad + 1))
done
equal "a storm is killed at random moments: weir ends, the trace is readable, nothing is left" 0 $bad
