# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Children that go on alone when the recording is over: their code is as in the file, and they work.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

cat >code.py <<'PY'
# code.py PID: how many bytes of executable mappings differ from their files, how many mappings of files
# are writable and executable.
import sys
pid, n, n_writable, checked = sys.argv[1], 0, 0, 0
with open(f"/proc/{pid}/mem", "rb") as mem:
    for line in open(f"/proc/{pid}/maps"):
        f = line.split(None, 5)
        if "x" not in f[1] or len(f) < 6 or not f[5].startswith("/") or "libweir.so" in f[5]:
            continue
        n_writable += "w" in f[1]
        start, end = (int(x, 16) for x in f[0].split("-"))
        file = open(f[5].strip(), "rb")
        file.seek(int(f[2], 16))
        want = file.read(end - start)
        mem.seek(start)
        checked += len(want)
        n += sum(a != b for a, b in zip(want, mem.read(len(want))))
print(f"{n} bytes, {n_writable} writable" if checked > 100000 else "nothing was compared")
PY
appears() { # FILE: waits until it is there and not empty
	local i
	for ((i = 0; i < 1000; i++)); do [ -s "$1" ] && return 0; sleep 0.01; done
	return 1
}
# daemon_is_free SENTENCE: the daemon whose number is in `pid` is as if it had never been hooked.
daemon_is_free() {
	local daemon
	appears pid || { not_ok "$1: the daemon runs" && return; }
	daemon=$(cat pid)
	equal "$1: the code of the daemon is that of the files" "0 bytes, 0 writable" "$(python3 code.py "$daemon")"
	touch go
	check "$1: the daemon goes on" appears result
	equal "$1: and works" 2500500 "$(cat result)"
}

for m in 64 32; do
	if ! build daemon$m daemon.c -O2 -m$m; then
		skip "daemons of $m bits: gcc -m$m is not installed"
		continue
	fi
	# The command ends, the daemon has called nothing hooked.
	for mode in "" --tree; do
		rm -f pid go result
		# Not into a pipe: the daemon would hold it open.
		# shellcheck disable=SC2086
		"$WEIR" record -q $mode --events '*,libc.so*:read' -o t.weir -- ./daemon$m pid go result >out.txt 2>err.txt
		equal "$m bits $mode, a daemon: the command works" "0: 25050 " "$?: $(cat out.txt) $(cat err.txt)"
		daemon_is_free "$m bits $mode, a daemon"
	done

	# Attached to: the program and the daemon that it makes meanwhile go on.
	rm -f pid go result start
	./daemon$m pid go result start >out.txt 2>&1 &
	target=$!
	runs $target
	"$WEIR" record -q -p $target --events '*,libc.so*:read' --duration 1 -o t.weir 2>err.txt &
	recorder=$!
	for ((i = 0; i < 500; i++)); do grep -q "rwxp.*daemon$m" /proc/$target/maps && break; sleep 0.01; done
	touch start
	wait $recorder
	equal "$m bits, -p and a daemon: recorded" 0 $?
	daemon_is_free "$m bits, -p and a daemon"
	wait $target
	equal "$m bits, -p and a daemon: the first program works" "0: 25050 25050" "$?: $(echo $(cat out.txt))"
done

# The recorder is killed: the daemon takes the hooks out itself at its first call.
rm -f pid go result
touch start
"$WEIR" record -q --events '*' -o t.weir -- ./daemon64 pid go result start >out.txt 2>&1 &
recorder=$!
appears pid || not_ok "the recorder is killed: the daemon runs"
kill -KILL $recorder
wait $recorder 2>/dev/null
touch go
check "the recorder is killed: the daemon goes on" appears result
equal "the recorder is killed: the daemon works" 2500500 "$(cat result)"
