# SPDX-License-Identifier: MIT
# The server of weir view: who may ask, what it refuses, and that it bears whatever comes.
. "$ROOT/tests/lib.sh"

python3 - >events.txt <<'P'
# A tree with some thousand nodes, so that an answer does not fit into what the kernel keeps for a socket.
time = 0
def call(name, depth):
    global time
    print(time, "enter", name); time += 1
    if depth:
        for i in range(6):
            call(f"{name[:20]}_{i}", depth - 1)
    time += 1
    print(time, "leave", name)
call("main", 5)
P
"$WEIR" import events events.txt -o big.weir >/dev/null 2>&1 || not_ok "the events are imported"

start_view() { # ARGUMENTS...: $pid, $url
	rm -f view.out # of the one before
	"$WEIR" view "$@" >view.out 2>view.err &
	pid=$!
	for _ in $(seq 100); do
		url=$(grep -o 'http://127[^ ]*' view.out | head -n 1)
		[ -z "$url" ] || return 0
		sleep 0.1
	done
	not_ok "weir view says its address: $(cat view.err)"
}

SSH_CONNECTION= start_view big.weir
check "the address is on loopback, with a token of 32 characters" grep -qE 'http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/ ' view.out

cat >ask.py <<'P'
import http.client, json, re, socket, struct, sys, threading, time
from urllib.parse import urlparse
url = urlparse(sys.argv[1])
token = url.path.strip("/")
failed = []

def verdict(what, is_so, more=""):
    print(("ok " if is_so else "not ok ") + what + ("" if is_so else f": {more}"))

def get(path, headers=None, method="GET", body=None):
    c = http.client.HTTPConnection("127.0.0.1", url.port, timeout=20)
    c.request(method, path, body=body, headers=headers or {})
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, data, r.headers

def refused(what, status, *args, **kw):
    got = get(*args, **kw)
    verdict(what, got[0] == status and b"{" not in got[1] and len(got[1]) < 200, got)

status, page, headers = get(f"/{token}/")
verdict("the page is served", status == 200 and b"<div id=\"page\">" in page)
csp = headers["Content-Security-Policy"]
verdict("the page may ask its own server alone", "default-src 'none'" in csp and "connect-src 'self'" in csp and "unsafe" not in csp, csp)
verdict("no other site may have it", headers["Cross-Origin-Resource-Policy"] == "same-origin" and "frame-ancestors 'none'" in csp and headers["Access-Control-Allow-Origin"] is None)
verdict("nothing is kept by the browser", headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer")
meta = json.loads(get(f"/{token}/q/meta")[1])
verdict("questions are answered", meta["trace"] == "big.weir" and meta["functions"] > 1000, meta)

refused("no token: 403", 403, "/")
refused("no token in front of a question: 403", 403, "/q/meta")
refused("a wrong token: 403", 403, f"/{'0' * 32}/q/meta")
refused("a token that is too short: 403", 403, f"/{token[:31]}/q/meta")
refused("a token that goes on: 403", 403, f"/{token}0/q/meta")
refused("another Host: 403", 403, f"/{token}/q/meta", {"Host": "example.org"})
refused("a name that was made to lead here: 403", 403, f"/{token}/q/meta", {"Host": f"evil.example:{url.port}"})
refused("another port in Host: 403", 403, f"/{token}/q/meta", {"Host": "127.0.0.1:1"})
refused("another origin: 403", 403, f"/{token}/q/meta", {"Origin": "http://example.org"})
verdict("its own origin is served", get(f"/{token}/q/meta", {"Origin": f"http://127.0.0.1:{url.port}"})[0] == 200)
verdict("localhost is served", get(f"/{token}/", {"Host": f"localhost:{url.port}"})[0] == 200)
for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
    refused(f"{method}: 405", 405, f"/{token}/q/meta", method=method, body="x" * 100 if method in ("POST", "PUT") else None)
verdict("HEAD has no body", get(f"/{token}/", method="HEAD")[1] == b"")
for path in ("../../etc/passwd", "..%2f..%2fetc/passwd", "/etc/passwd", "page.js/../../x", "%00", "q/../page.js", "view.out"):
    got = get(f"/{token}/{path}")
    verdict(f"no file of the machine: {path}", got[0] in (400, 404) and b"root:" not in got[1], got[:2])
verdict("a wrong question is a sentence", get(f"/{token}/q/tree?colour=1")[:2] == (400, b"'colour' is not a key of tree\n"))
verdict("source is not read from where a question says",
        get(f"/{token}/q/source?function=%2Fetc%2Fpasswd")[0] in (400, 404))
got = get(f"/{token}/q/tree?order=" + "a" * 60000)
verdict("a long question is refused by what is wrong with it", got[0] == 400, got[0])

def raw(data, wait=1.0):
    s = socket.create_connection(("127.0.0.1", url.port))
    s.settimeout(wait)
    s.sendall(data)
    got = b""
    try:
        while chunk := s.recv(65536):
            got += chunk
    except (TimeoutError, ConnectionResetError):
        pass
    s.close()
    return got
host = f"Host: 127.0.0.1:{url.port}\r\n".encode()
for name, data in (("nothing but a line", b"hello\r\n\r\n"), ("no Host", f"GET /{token}/ HTTP/1.0\r\n\r\n".encode()),
                   ("bytes of no text", bytes(range(256)) * 20), ("half a request", f"GET /{token}/ HT".encode()),
                   ("200 kB of address", b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\n" + host + b"\r\n"),
                   ("200 kB of headers", b"GET / HTTP/1.1\r\n" + host + b"X: " + b"b" * 200000 + b"\r\n\r\n"),
                   ("a negative length", b"POST / HTTP/1.1\r\n" + host + b"Content-Length: -5\r\n\r\n"),
                   ("a huge length", b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 99999999999999999999\r\n\r\n")):
    try:
        answer = raw(data)
    except (BrokenPipeError, ConnectionResetError):
        answer = b""
    verdict(f"broken request, {name}: nothing is told", b"200 OK" not in answer and token.encode() not in answer, answer[:80])
verdict("it still answers", get(f"/{token}/q/meta")[0] == 200)

# A client that asks for much and does not read.
stuck = []
for _ in range(20):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", url.port))
    s.sendall(f"GET /{token}/q/tree HTTP/1.1\r\n".encode() + host + b"\r\n")
    stuck.append(s)
verdict("clients that stop reading do not stop others", get(f"/{token}/q/meta")[0] == 200)
for s in stuck:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()

answers = []
def many():
    for _ in range(25):
        try:
            answers.append(get(f"/{token}/q/report/flat?limit=3")[0])
        except OSError as e:
            answers.append(str(e))
threads = [threading.Thread(target=many) for _ in range(40)]
for t in threads: t.start()
for t in threads: t.join()
verdict("how much of the trace is read is said at once", json.loads(get(f"/{token}/q/progress")[1]) == {"done": 0, "whole": 0})
for family, address in ((socket.AF_INET6, "::1"), (socket.AF_INET, socket.gethostbyname(socket.gethostname())), (socket.AF_INET, "127.0.0.2")):
    if address == "127.0.0.1":
        continue
    try:
        socket.create_connection((address, url.port), timeout=5).close()
        verdict(f"nobody is served on {address}", False)
    except OSError:
        verdict(f"nobody is served on {address}", True)
verdict("1,000 requests at once are all answered", answers.count(200) == 1000, set(answers))
P
first=${url%/} first=${first##*/}
python3 ask.py "$url" || not_ok "the client ends"

status=$(ps -o rss= -p $pid)
check "memory is bounded" [ "${status:-999999}" -lt "${WEIR_SAN:+2}400000" ]
"$WEIR" view big.weir --port "$(sed 's/.*127.0.0.1:\([0-9]*\).*/\1/;q' view.out)" >other.out 2>other.err
check "a port that is taken: status 1" [ $? = 1 ]
check "and a sentence" grep -q 'port [0-9]* on 127.0.0.1' other.err
kill -INT $pid
wait $pid
check "Ctrl-C ends it with status 0" [ $? = 0 ]

port=$(sed 's/.*127.0.0.1:\([0-9]*\).*/\1/;q' view.out) # free again
unset SSH_CONNECTION
start_view big.weir
check "nothing is said of ssh where nobody came by it" [ "$(grep -c ssh view.out)" = 0 ]
kill $pid
wait $pid
start_view big.weir --port "$port"
check "with a port that was chosen the command is printed, too: sudo hides how one came" grep -qE "ssh -N -L $port:127\.0\.0\.1:$port " view.out
kill $pid
wait $pid

SSH_CONNECTION="10.0.0.1 5 10.0.0.2 22" start_view big.weir
check "over ssh the command that leads the port is printed" grep -qE 'ssh -N -L ([0-9]+):127\.0\.0\.1:\1 ' view.out
check "another run has another token" [ "${#first}$(grep -c "$first" view.out)" = 320 ]
kill $pid
wait $pid
timeout 20 "$WEIR" view big.weir >/dev/full 2>full.err
check "an address that cannot be told is of no use to anybody: status 1" [ $? = 1 ]
check "and a sentence" grep -q '^weir: the address of the page cannot be told: standard output: No space left' full.err
timeout 20 "$WEIR" view big.weir >&- 2>closed.err
check "likewise where there is no standard output" [ $? = 1 ]
"$WEIR" view nothing.weir >/dev/null 2>none.err
check "no such trace: status 1" [ $? = 1 ]
"$WEIR" view big.weir --port 70000 >/dev/null 2>&1
check "a port over 65535 is wrong usage" [ $? = 2 ]
