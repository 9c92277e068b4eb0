# SPDX-License-Identifier: MIT
# The program, the recorder or both are killed at random moments: the trace opens, what was called until
# then is in it, and a program whose recorder has died goes on without hooks.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"
rounds=20
[ -z "$WEIR_SAN" ] || rounds=8
[ -z "${WEIR_SLOW:-}" ] || rounds=100
export busy=busy_$$ # a name of its own, for pgrep
build $busy busy.c -O2 || exit 1

steps() { od -A n -t u8 -w8 -v "$1" | awk '{s+=$1} END {print s}'; }
recorded() { # TRACE
	"$WEIR" report flat "$1" --json >flat.json 2>report.txt
	case $? in 0 | 3) ;; *) echo "unreadable: $(head -n 1 report.txt)" && return ;; esac
	json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name']=='step')"
}

# begin SECONDS: sets recorder and target; the program has begun to work.
begin() {
	rm -f progress t.weir
	"$WEIR" record -q --events '*' -o t.weir -- ./$busy progress "$1" 2 >out.txt 2>err.txt &
	recorder=$! target=
	for _ in $(seq 200); do
		[ -n "$target" ] || target=$(pgrep -P $recorder -x "${busy:0:15}")
		[ -n "$target" ] && [ -s progress ] && [ "$(steps progress)" -gt 0 ] && return
		sleep 0.02
	done
	not_ok "the program has begun ($(cat err.txt))"
}
a_while() { sleep 0.$((RANDOM % 2))$((RANDOM % 10)); }

# --- the program
bad=0
for ((i = 0; i < rounds / 2; i++)); do
	begin 20
	a_while
	kill -9 $target
	wait $recorder 2>/dev/null
	status=$?
	have=$(recorded t.weir) want=$(steps progress)
	# Each of the two threads may be within a call.
	if [ $status -ne 137 ] || ! [ "$have" -ge "$want" ] 2>/dev/null || [ "$have" -gt $((want + 2)) ]; then
		bad=$((bad + 1))
		echo "status $status, $want steps done, recorded: $have"
	fi
done
equal "the program is killed $((rounds / 2)) times: each call until then is in the trace" 0 $bad

# --- both
bad=0
for ((i = 0; i < rounds / 4; i++)); do
	begin 20
	a_while
	kill -9 $target $recorder
	wait $recorder 2>/dev/null
	have=$(recorded t.weir)
	[ "$have" -ge 0 ] 2>/dev/null && [ "$have" -le $(($(steps progress) + 2)) ] || { bad=$((bad + 1)) && echo "recorded: $have"; }
done
equal "both are killed $((rounds / 4)) times: the trace opens" 0 $bad

# --- the recorder: its programs go on, several at the same time, so that their waiting adds up once
bad=0 batch=5
[ -z "$WEIR_SAN" ] || batch=2
for ((done = 0; done < rounds / 4; done += batch)); do
	for ((i = 0; i < batch; i++)); do
		rm -rf k$i && mkdir k$i
		(cd k$i && exec "$WEIR" record -q --events '*' -o t.weir -- ../$busy progress 60 1 >out.txt 2>err.txt) &
		recorders[i]=$! targets[i]=
	done
	for ((i = 0; i < batch; i++)); do
		for _ in $(seq 200); do
			targets[i]=$(pgrep -P ${recorders[i]} -x "${busy:0:15}") && [ -s k$i/progress ] && [ "$(steps k$i/progress)" -gt 0 ] && break
			sleep 0.02
		done
	done
	sleep 1
	for ((i = 0; i < batch; i++)); do
		a_while
		steps k$i/progress >k$i/at_kill
		kill -9 ${recorders[i]}
		wait ${recorders[i]} 2>/dev/null
	done
	sleep 3
	for ((i = 0; i < batch; i++)); do
		printf 1 | dd of=k$i/progress bs=1 seek=$((63 * 8)) conv=notrunc status=none # it may end
		for _ in $(seq 100); do
			[ -e /proc/${targets[i]} ] || break
			sleep 0.1
		done
		have=$(recorded k$i/t.weir) said=$(cat k$i/out.txt)
		if [ "$said" != "wrong 0, changed 0" ] || ! [ "$have" -gt 0 ] 2>/dev/null || [ "$have" -gt "$(steps k$i/progress)" ]; then
			bad=$((bad + 1))
			echo "the program said: $said; $(steps k$i/progress) steps done, $(cat k$i/at_kill) when the recorder was killed, recorded: $have"
		fi
	done
done
equal "the recorder is killed $done times: the program goes on unhooked, and the trace opens" 0 $bad
