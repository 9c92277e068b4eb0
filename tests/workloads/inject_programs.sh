# SPDX-License-Identifier: MIT
# A library is injected into running programs, again and again, and they do not notice: every system
# call that waits goes on waiting, no signal is lost, all registers keep their values, and nothing
# happens to the program when the one who injects is killed.
# weir-test: alone: attaches within a time
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
injector=$BUILD/tests/unit/process/ptrace/inject_test
fixtures=$ROOT/tests/fixtures
cycles=4
[ -z "${WEIR_SLOW:-}" ] || cycles=20
trap 'kill $(jobs -p) 2>/dev/null' EXIT

build() { # WIDTH
	gcc "-m$1" -O1 -g -o "program$1" "$fixtures/inject_program.c" -lpthread &&
		gcc "-m$1" -O1 -shared -fPIC -o "library$1.so" "$fixtures/inject_library.c"
}
widths=64
build 64 || { not_ok "the fixtures are built" && exit 1; }
# The sanitizers look at the injector, which does the same for both kinds: one is enough for them.
if [ -n "$WEIR_SAN" ]; then
	:
elif build 32 2>build32.txt; then widths="64 32"; else skip "32-bit programs: gcc -m32 does not work here"; fi
libraries="$PWD/library64.so $PWD/library32.so"
parts=

# start WIDTH MODE: the program is waiting or busy; $pid, and its input is $in
start() {
	name=$2.$1
	rm -f "in.$name" "log.$name"
	mkfifo "in.$name"
	INJECT_LOG=$PWD/log.$name "./program$1" "$2" <"in.$name" >"out.$name" 2>&1 &
	pid=$!
	exec {in}>"in.$name"
	for ((i = 0; i < 500; i++)); do
		grep -q ready "out.$name" && break
		sleep 0.01
	done
	sleep 0.05 # from saying so to being in the call
}

# finish EXPECTED OUTPUT LINES...: the program is told to end; its verdict is $sentence
finish() {
	local mode=${name%.*} rc
	case $mode in malloc_alone | coroutines) kill -USR1 "$pid" ;; esac
	feed "$in"
	exec {in}>&-
	wait "$pid"
	rc=$?
	equal "$sentence" "$(printf '%s\n' "status 0" "$@")" \
		"$(echo "status $rc"; grep -vE '^(ready|[0-9a-f]+ [0-9a-f]+)$' "out.$name")"
}

seen() { # how often the library was loaded, attached, ...
	sed 's/bad 0$/well/' "log.$name"
}

disturb() { # COUNT
	timeout 120 "$injector" cycle "$pid" $libraries ok "$1" 2>err.txt || head -n 3 err.txt
}

undisturbed() { # MODE EXPECTED LINES...
	local mode=$1 width
	shift
	for width in $widths; do
		start "$width" "$mode"
		disturb $cycles
		sentence="$mode ($width bit) does not notice $cycles attachments"
		finish "$@"
		equal "$mode ($width bit): the library was loaded once, each call arrived" \
			"loaded 1 attached $cycles detached $cycles well" "$(seen)"
	done
}

# Everything that is done to programs of both widths, for that in $widths, in two parts.
while_waiting() {
	undisturbed read "read 1"
	undisturbed fgets "fgets 1"
	undisturbed poll "poll 1"
	undisturbed poll_timeout "poll 1"
	undisturbed select "select 1"
	undisturbed ppoll "ppoll 1"
	undisturbed epoll "epoll_wait 1"
	undisturbed futex "futex 0"
	undisturbed futex_timeout "futex 0"
	undisturbed nanosleep "nanosleep 0" "long enough"
	undisturbed clock_nanosleep "clock_nanosleep 0" "long enough"
	undisturbed accept "accept 0"
	undisturbed recv_timeout "recv 1"
	undisturbed wait4 "wait4 9"
	undisturbed pause "pause -1 Interrupted system call"
	undisturbed sigsuspend "sigsuspend -1 Interrupted system call" "still blocked: 1"
	undisturbed sigwait "sigwaitinfo 10"
	undisturbed semop "semop 0"
	undisturbed malloc "wrong bytes 0"
	undisturbed signals "signals 20000 sum right out of order 0 ticks some root right"
	undisturbed vectors "rounds many wrong 0"
	undisturbed threads "threads many"
	undisturbed first_thread_gone "the second thread ends it"
	undisturbed blocked_signals "read 1" "blocked 1 1 ignored 1 1"
	cycles=2 undisturbed coroutines "switches many"
	cycles=2 undisturbed malloc_alone "wrong bytes 0"
}
at_moments() {
	# dlopen at ever new moments of a program that allocates all the time.
	for width in $widths; do
		wrong=
		for ((k = 0; k < 4; k++)); do
			start "$width" malloc_alone
			wrong+=$(disturb 1)
			sentence="allocation"
			finish "wrong bytes 0" >verdict.txt
			wrong+=$(grep '^not ok' verdict.txt)
		done
		equal "a program that always allocates ($width bit) is entered four times" "" "$wrong"
	done

	# Threads in patched code are moved, also those that will make their system call again and those
	# that a signal handler returns to.
	moved() { # WIDTH MODE EXPECTED
		start "$1" "$2"
		read -r from to <"out.$name"
		timeout 60 "$injector" attach "$pid" $libraries ok 1 "$from" "$to" 2>err.txt || cat err.txt
		sentence="a thread is moved: $2 ($1 bit)"
		finish "$3"
	}
	for width in $widths; do
		moved "$width" moved "first some second some"
		moved "$width" moved_handler "first some second some"
		moved "$width" moved_handler_info "first some second some"
	done
	[ "$widths" = 32 ] || moved 64 moved_read "read 1 copy 2"

	# What the library answers becomes a sentence; a function that crashes does not end the program.
	answer() { # WIDTH SOCKET PATTERN
		start "$1" read
		fails "weir_attach answering '$2' ($1 bit) is a sentence" 1 "$3" \
			timeout 60 "$injector" attach "$pid" $libraries "$2"
		[[ $2 != -* ]] || check "and its library ($1 bit) is taken out again" \
			sh -c "! grep -q 'library$1.so' /proc/$pid/maps"
		sentence="and the program ($1 bit) goes on"
		finish "read 1"
	}
	for width in $widths; do
		answer "$width" -13 "may not connect to the recorder's socket"
		answer "$width" -2 "does not reach the recorder's socket"
		answer "$width" -16 "hooked already"
		answer "$width" -22 "weir_attach failed: Invalid argument"
		answer "$width" crash "was ended by a signal"
	done
	if [ -n "${WEIR_SLOW:-}" ] && [ "$widths" = 64 ]; then
		answer 64 wait "did not return in 10 s"
	fi

	# The injector is killed while dlopen is under way: the program finishes that alone.
	killed() { # WIDTH MODE EXPECTED LINES...
		local width=$1 mode=$2
		shift 2
		INJECT_SLOW_MS=500 start "$width" "$mode"
		"$injector" cycle "$pid" $libraries ok 1 &
		sleep 0.25
		kill -9 $! && wait $! 2>/dev/null
		sleep 0.5
		disturb 2
		sentence="$mode ($width bit) does not notice that the injector is killed in dlopen"
		finish "$@"
		equal "and the library ($width bit) can be used" "loaded 1 attached 2 detached 2 well" "$(seen)"
	}
	for width in $widths; do
		killed "$width" read "read 1"
		killed "$width" sigsuspend "sigsuspend -1 Interrupted system call" "still blocked: 1"
		killed "$width" vectors "rounds many wrong 0"
		killed "$width" malloc_alone "wrong bytes 0"
		killed "$width" blocked_signals "read 1" "blocked 1 1 ignored 1 1"
	done

	# And at any moment. (What says EINTR at every stop, and what has a timeout, may end by it here.)
	for width in $widths; do
		for mode in "read read 1" "vectors rounds many wrong 0" "threads threads many"; do
			start "$width" "${mode%% *}"
			for ((k = 0; k < 25; k++)); do
				"$injector" cycle "$pid" $libraries ok 100000 2>/dev/null &
				sleep "0.0$((RANDOM % 8 + 1))$RANDOM"
				kill -9 $! && wait $! 2>/dev/null
			done
			sentence="${mode%% *} ($width bit) does not notice 25 injectors that are killed"
			finish "${mode#* }"
		done
	done 2>/dev/null
}

for width in $widths; do
	for part in while_waiting at_moments; do
		(
			mkdir "$part$width" && cd "$part$width" && ln -s ../program* ../library* . || exit 1
			widths=$width
			$part
		) >"verdicts.$width.$part" 2>&1 &
		parts+=" $!"
	done
done
for part in $parts; do wait "$part" || echo "not ok a part of this test ended with status $?"; done
cat verdicts.*

# The program becomes another one, or is killed, at any moment: a sentence, and nothing else.
for width in $widths; do
	gcc "-m$width" -O1 -o "exec$width" "$fixtures/inject_exec.c" -lpthread
	"./exec$width" 150 >out.exec &
	pid=$!
	while kill -0 $pid; do timeout 30 "$injector" cycle $pid $libraries ok 1 || echo $?; done >tries.txt
	wait $pid
	equal "a program that is always in exec ($width bit) does not notice" "0 done" "$? $(cat out.exec)"
	equal "and no attempt to enter it ($width bit) hangs" "" "$(grep -vx 1 tries.txt)"
done 2>/dev/null
: >tries.txt
for ((k = 0; k < 8; k++)); do
	start 64 threads
	timeout 30 "$injector" cycle "$pid" $libraries ok 100000 2>>tries.txt &
	injection=$!
	sleep "0.0$((RANDOM % 8 + 1))$RANDOM"
	kill -9 "$pid"
	wait "$pid"
	exec {in}>&-
	wait $injection
	echo "status $?" >>tries.txt
done 2>/dev/null
equal "an injection ends with a sentence when its program is killed" 8 "$(grep -cx 'status 1' tries.txt)"
equal "one each" 8 "$(grep -cvE '^status' tries.txt)"

# Refusals that need a program.
if gcc -O1 -static -o static64 "$fixtures/inject_program.c" -lpthread 2>/dev/null; then
	ln -sf static64 program_static
	mkfifo in.static
	./program_static read <in.static >out.static &
	pid=$!
	exec {in}>in.static
	sleep 0.2
	fails "a statically linked program is refused" 1 "statically linked" \
		timeout 60 "$injector" attach "$pid" $libraries ok
	feed "$in"
	exec {in}>&-
	wait "$pid"
	equal "and goes on" "ready read 1" "$(xargs <out.static)"
else
	skip "a statically linked program is refused: gcc -static does not work here"
fi

start 64 read
yes text | head -c 10000 >text.so
fails "a file that is no library is refused, with the loader's words" 1 \
	"does not load '.*text.so': .*text.so: invalid ELF header" \
	timeout 60 "$injector" attach "$pid" "$PWD/text.so" "$PWD/text.so" ok
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && chmod -R a+rX . .. &&
	setpriv --reuid 65534 --clear-groups test -x "$injector"; then
	fails "another user's program is refused, with a hint" 1 "run as root, or" \
		setpriv --reuid 65534 --clear-groups "$injector" attach "$pid" $libraries ok
else
	skip "another user's program is refused: needs root, setpriv and a readable build folder"
fi
sentence="the program goes on after these"
finish "read 1"

if unshare -m true 2>/dev/null; then
	mkdir -p hidden && cp library64.so hidden/
	mkfifo in.hidden
	unshare -m bash -c "mount -t tmpfs none hidden && exec ./program64 read" <in.hidden >out.hidden &
	pid=$!
	exec {in}>in.hidden
	for ((i = 0; i < 500; i++)); do
		grep -q ready out.hidden && break
		sleep 0.01
	done
	fails "a library that the program cannot see is refused" 1 "another root directory, in which .* is not there" \
		timeout 60 "$injector" attach "$pid" "$PWD/hidden/library64.so" "" ok
	disturb 2
	feed "$in"
	exec {in}>&-
	wait "$pid"
	equal "one that it can see is loaded" "ready read 1" "$(xargs <out.hidden)"
else
	skip "a library that the program cannot see is refused: unshare -m is not permitted"
fi

# A server under load.
if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	port=$((20000 + RANDOM % 20000))
	INJECT_LOG=$PWD/log.redis redis-server --port $port --save '' --appendonly no >redis.txt 2>&1 &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		redis-cli -p $port ping 2>/dev/null | grep -q PONG && break
		sleep 0.05
	done
	redis-benchmark -p $port -n 60000 -c 20 -t set,get --csv >bench.txt 2>&1 &
	bench=$!
	wrong=
	for ((k = 0; k < 10; k++)); do
		wrong+=$(disturb 1)
		sleep 0.1
	done
	equal "redis-server is entered and left ten times under load" "" "$wrong"
	wait $bench
	equal "redis-benchmark ends well" 0 $?
	equal "and saw no error" "" "$(grep -iE 'error|closed|refused' bench.txt)"
	equal "no request was lost" 120000 \
		"$(redis-cli -p $port info commandstats | tr -d '\r' | awk -F'[=,]' '/^cmdstat_(set|get):/ { n += $2 } END { print n }')"
	redis-cli -p $port shutdown nosave 2>/dev/null
	wait $pid
	equal "redis-server ends well" 0 $?
	name=redis
	equal "with the library in it" "loaded 1 attached 10 detached 10 well" "$(seen)"
else
	skip "a redis-server under load: redis is not installed"
fi
