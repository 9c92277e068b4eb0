# SPDX-License-Identifier: MIT
# weir-test: root: processes of other users
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Hooked processes that are another user's, have another root folder, or are in other namespaces: every
# call is counted, or it is said which were not, and why. Nothing stays behind when a recorder is killed.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
# A folder that other users reach; that of the test is its own.
place=$(mktemp -d /tmp/weir-users-XXXXXX) && chmod 777 "$place" && cd "$place" || exit 1
trap 'cd /; rm -rf "$place"' EXIT
build users users.c -O2 || exit 1
mkdir empty
cat >plugin.c <<'C'
__attribute__((noipa)) int plugin_step(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}
C
gcc -O1 -shared -fPIC -o plugin.so plugin.c || exit 1
plugin=$place/plugin.so

# calls FILE NAME: how often the function was called.
calls() {
	"$WEIR" report flat "$1" --json >flat.json 2>>err.txt
	json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name']=='$2')"
}
lost() { # FILE: events that were lost, and why
	"$WEIR" report flat "$1" --json >flat.json 2>>err.txt
	json flat.json "' '.join([str(j['loss']['events_lost'])] + sorted(k for k in j['loss']['reasons'] if 'recorder' in k or 'not hooked' in k))"
}

# exact OPTIONS HOW...: as many calls as the program makes.
exact() {
	local options=$1 said
	shift
	said=$("$WEIR" record -q $options --events 'step' -o t.weir -- ./users 1000 "$@" 2>err.txt)
	equal "a child with '$*'${options:+ ($options)}: every call is counted" "$said 0" "$(calls t.weir step) $(lost t.weir)"
}
exact "" user
exact "" root=empty
exact "" root=empty user four
exact --tree user
exact "" net
exact "" net root=/ four
exact "" pid four
equal "and its threads are those that the kernel knows" 0 \
	"$("$WEIR" report threads t.weir | awk 'NR > 1 && $4 > 0 && $NF != "users"' | wc -l)"
exact --tree pid user four
equal "and those with a tree, too" 0 "$("$WEIR" report threads t.weir | awk 'NR > 1 && $NF != "users"' | wc -l)"
exact "" exec
if nobody test -r "$BUILD/lib/x86_64-linux-gnu/libweir.so"; then
	exact "" user exec
else
	skip "a child with 'user exec': other users may not read $BUILD"
fi
"$WEIR" record -q --events 'plugin*:plugin_step' -o t.weir -- ./users 1000 user library=$plugin >out.txt 2>err.txt
equal "a library that another user's process loads is hooked" "1000 0" "$(calls t.weir plugin_step) $(lost t.weir)"

# Who cannot reach the recorder is counted.
"$WEIR" record -q --events step -o t.weir -- ./users 1000 net user >out.txt 2>err.txt
equal "a forked process that cannot reach the recorder is a loss" \
	"1 1 forked process that could not reach the recorder" "$(calls t.weir step) $(lost t.weir)"
"$WEIR" report loss t.weir >out.txt 2>&1
equal "and the status says so" 3 $?
"$WEIR" record -q --events 'step,plugin*:plugin_step' -o t.weir -- ./users 1000 step net user library=$plugin >out.txt 2>err.txt
equal "libraries that it loads are a loss" \
	"0 1 libraries loaded by a process that could not reach the recorder" "$(calls t.weir plugin_step) $(lost t.weir)"
if nobody test -r "$BUILD/lib/x86_64-linux-gnu/libweir.so"; then
	"$WEIR" record -q --events step -o t.weir -- ./users 1000 net user exec >out.txt 2>err.txt
	equal "a program that cannot reach the recorder is a loss" \
		"1 program 'users' was not hooked: it could not reach the recorder" "$(lost t.weir)"
else
	skip "a program that cannot reach the recorder: other users may not read $BUILD"
fi
echo 'int main(void) { return 0; }' >static.c && gcc -static -o fixed static.c || exit 1
"$WEIR" record -q --events step -o t.weir -- sh -c './fixed; env -i ./users 5; ./users 5; ./fixed' >out.txt 2>err.txt
equal "programs that LD_PRELOAD has no effect on are named, and are no loss" \
	"0 program 'fixed' was not hooked: it is statically linked program 'users' was not hooked: libweir.so was not preloaded (another environment or root folder, a limit on memory, or the file may not be read there)" \
	"$(lost t.weir)"

# A recorder without rights, and its own processes.
if nobody test -x "$WEIR"; then
	nobody "$WEIR" record -q --events step -o nobody.weir -- ./users 1000 four >out.txt 2>err.txt
	equal "a recorder without rights records its own processes" "4001 0" "$(calls nobody.weir step) $(lost nobody.weir)"
else
	skip "a recorder without rights: other users may not run $WEIR"
fi

# attached N HOW...: -p of the child; so many calls.
attached() {
	local target recorder
	rm -f go out.txt && mkfifo go
	./users 1000 "${@:2}" wait <go >out.txt &
	exec 9>go
	for ((i = 0; i < 500; i++)); do grep -q ready out.txt 2>/dev/null && break; sleep 0.02; done
	target=$(pgrep -P $!)
	rm -f p.weir
	"$WEIR" record -q -p "$target" --events step -o p.weir 2>err.txt &
	recorder=$!
	for ((i = 0; i < 500; i++)); do # from then on it is hooked
		kill -0 $recorder 2>/dev/null || break
		[ "$(python3 -c '
import sys
pid = sys.argv[1]
nm = __import__("subprocess").run(["nm", "users"], capture_output=True, text=True).stdout
at = int([l.split()[0] for l in nm.splitlines() if l.endswith(" T step")][0], 16)
base = next(int(l.split("-")[0], 16) for l in open(f"/proc/{pid}/maps") if l.rstrip().endswith("/users"))
mem = open(f"/proc/{pid}/mem", "rb")
mem.seek(base + at)
print(mem.read(1) in (b"\xe9", b"\xeb", b"\xcc"))' "$target")" = True ] && break
		sleep 0.02
	done
	feed 9
	exec 9>&-
	wait $recorder
	equal "attached to a child with '${*:2}'" "0 $1 0" "$? $(calls p.weir step) $(lost p.weir)"
	cat err.txt
	wait
}
# A process of another user loads the library itself.
if nobody test -r "$BUILD/lib/x86_64-linux-gnu/libweir.so"; then
	can_attach=1
	attached 1000 user
	attached 1000 net user
	attached 4000 pid net user four
else
	can_attach=0
	skip "attached to other users' processes: they may not read $BUILD"
fi

# The real thing.
if command -v nginx >/dev/null && id www-data >/dev/null 2>&1; then
	mkdir logs tmp && chown www-data tmp
	head -c 5000 /dev/zero | tr '\0' x >index.html
	port=$((20000 + RANDOM % 20000))
	cat >nginx.conf <<C
user www-data; worker_processes 2; pid logs/nginx.pid; daemon off; error_log logs/error.log;
events { worker_connections 64; }
http {
	access_log off; client_body_temp_path tmp/a; proxy_temp_path tmp/b; fastcgi_temp_path tmp/c;
	uwsgi_temp_path tmp/d; scgi_temp_path tmp/e; default_type text/plain;
	server { listen 127.0.0.1:$port; root .; }
}
C
	ask() { # N: so many requests, how many were answered
		python3 - $port "$1" <<'PY'
import sys, time, urllib.request
n = 0
for i in range(int(sys.argv[2])):
    for attempt in range(100):
        try:
            n += len(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/index.html").read()) == 5000
            break
        except OSError:
            time.sleep(0.05)
print(n)
PY
	}
	"$WEIR" record -q --events 'nginx:ngx_http_process_request' -o n.weir -- nginx -p "$place/" -c nginx.conf 2>err.txt &
	recorder=$!
	equal "nginx: requests are answered" 200 "$(ask 200)"
	kill -QUIT "$(cat logs/nginx.pid)"
	wait $recorder
	equal "nginx: each request is seen in the workers, which are www-data's" "0 200 0" \
		"$? $(calls n.weir ngx_http_process_request) $(lost n.weir)"
	sed -i 's/worker_processes 2/worker_processes 1/' nginx.conf
	nginx -p "$place/" -c nginx.conf 2>err.txt &
	server=$!
	equal "nginx: answers without a recorder" 1 "$(ask 1)"
	if [ $can_attach = 1 ]; then
		worker=$(pgrep -P $server)
		"$WEIR" record -q -p "$worker" --events 'nginx:ngx_http_process_request' -o w.weir 2>err.txt &
		recorder=$!
		for ((i = 0; i < 500; i++)); do grep -q libweir.so "/proc/$worker/maps" && break; sleep 0.02; done
		sleep 0.5
		n=$(ask 100)
		kill -INT $recorder
		wait $recorder
		status=$?
		equal "nginx: attached to a worker" "0 100 100 0" "$status $n $(calls w.weir ngx_http_process_request) $(lost w.weir)"
	else
		skip "nginx: attached to a worker: it may not read $BUILD"
	fi
	equal "nginx: answers after the recording" 10 "$(ask 10)"
	kill -QUIT $server
	wait $server
	equal "nginx: ends as it should" 0 $?
else
	skip "nginx: not installed, or there is no user www-data"
fi

# A recorder that is killed leaves nothing behind.
mkdir own_tmp
mkfifo hold
TMPDIR=$place/own_tmp "$WEIR" record -q --events step -o k.weir -- ./users 10 step wait <hold >out.txt 2>err.txt &
recorder=$!
exec 9>hold
for ((i = 0; i < 500; i++)); do [ -s out.txt ] && break; sleep 0.02; done
kill -9 $recorder
wait $recorder 2>/dev/null
equal "a killed recorder leaves no socket and no folder" "" "$(ls -A own_tmp)"
exec 9>&-
