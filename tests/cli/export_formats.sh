#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# weir export on the command line: standard output, terminals, full disks, what a format has no place for, collectors.
. "$ROOT/tests/lib.sh"

printf '1: main parse\n1: main parse\n2: main\n' >samples.txt
"$WEIR" import samples samples.txt -o s.weir
"$WEIR" import events "$ROOT/tests/golden/events.txt" -o e.weir
profiles=(folded pprof firefox speedscope perfetto chrome otlp callgrind)
binary=(pprof firefox perfetto otlp)

for kind in "${profiles[@]}"; do
	for trace in s e; do
		"$WEIR" export "$kind" "$trace.weir" -o file.out 2>/dev/null
		check "$kind: '-o -' is standard output, with the same bytes ($trace)" cmp -s file.out \
			<("$WEIR" export "$kind" "$trace.weir" -o - 2>/dev/null)
	done
	check "$kind: no file is called -" test ! -e -
	fails "$kind: a full disk is a failure" 1 "^weir: '/dev/full'" "$WEIR" export "$kind" s.weir -o /dev/full
	"$WEIR" export "$kind" s.weir -o - >/dev/full 2>err.txt
	equal "$kind: so is a full standard output" "1 1" "$? $(grep -c 'standard output: cannot write' err.txt)"
done
if "$WEIR" steps -q --max 100 -o t.weir -- /bin/true 2>err.txt; then
	for kind in steps step-stream; do
		"$WEIR" export $kind t.weir -o file.out
		check "$kind: '-o -' is standard output, with the same bytes" cmp -s file.out \
			<("$WEIR" export $kind t.weir -o -)
	done
else
	skip "steps to standard output: $(head -n 1 err.txt)"
fi
for kind in "${binary[@]}"; do
	equal "$kind: a terminal gets a sentence" "exit 1" "$(on_terminal never "$WEIR" export "$kind" s.weir -o -)"
	check "$kind: which says what to do" grep -q "'$kind' is binary, .*: name a file with -o" shown.txt
done
equal "text is for terminals, too" "exit 0" "$(on_terminal never "$WEIR" export folded s.weir)"

# What a format has no place for
said() { "$WEIR" export "$1" "$2" -o out.x 2>&1 >/dev/null; }
equal "folded: calls are said to be missing" "weir: note: folded has no place for calls: not in it" "$(said folded e.weir)"
equal "pprof: their times are" "weir: note: pprof has no place for times of calls: not in it" "$(said pprof e.weir)"
for kind in firefox speedscope perfetto chrome; do
	equal "$kind has all that a trace of events has" "" "$(said $kind e.weir)"
done
for kind in "${profiles[@]}"; do
	equal "$kind: of samples alone nothing is missing" "" "$(said "$kind" s.weir)"
done
printf '0 enter A\n1 add io 7\n2 add net 3\n3 leave A\n' >add.txt
"$WEIR" import events add.txt -o add.weir
check "a second metric is said to be missing" grep -q 'a second metric' <(said speedscope add.weir)
cp s.weir cut.weir
truncate -s -20 cut.weir
check "what was lost is said to be missing" grep -q 'folded has no place for losses' <(said folded cut.weir)
check "where there are markers it is not" sh -c "! '$WEIR' export firefox cut.weir -o out.x 2>&1 | grep -q 'no place'"
if "$WEIR" count -q -o c.weir -- /bin/true 2>err.txt; then
	for kind in perfetto chrome; do
		fails "$kind: a trace without times is refused" 1 "^weir: 'c.weir': has no times, which $kind needs" \
			"$WEIR" export $kind c.weir -o no.x
	done
	check "and leaves no file" test ! -e no.x
	check "another one says that its unit is not that of time" \
		grep -q 'firefox has no place for .*the unit of the metric' <(said firefox c.weir)
	"$WEIR" export callgrind c.weir -o file.out
	check "callgrind of counts: '-o -' is standard output, with the same bytes" cmp -s file.out \
		<("$WEIR" export callgrind c.weir -o -)
else
	skip "counts without times: $(head -n 1 err.txt)"
fi
printf 'int main(int n, char **v) { return n > 1 && v; }\n' >lines.c
if "$WEIR" count gcc -g -o lines lines.c 2>err.txt && ./lines && "$WEIR" export lcov lines.weir -o file.out; then
	check "lcov: '-o -' is standard output, with the same bytes" cmp -s file.out <("$WEIR" export lcov lines.weir -o -)
else
	skip "lcov to standard output: $(head -n 1 err.txt)"
fi

# Collectors
cat >collector.py <<'END'
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        open("got.body", "wb").write(body)
        open("got.head", "w").write(f"{self.path} {self.headers['Content-Type']}\n")
        status = 503 if "busy" in self.path else 200
        answer = b"come back later\n" if status == 503 else b"only a part\n" if "part" in self.path else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open("port.new", "w").write(f"{server.server_port}\n")
import os; os.rename("port.new", "port")
server.serve_forever()
END
python3 collector.py &
collector=$!
trap 'kill $collector' EXIT
until_line port . $collector
url=http://127.0.0.1:$(cat port)
"$WEIR" export otlp s.weir -o file.out
"$WEIR" export otlp s.weir --post "$url" >said.txt 2>&1
equal "a collector gets the profile, and nothing is said" "0 " "$? $(cat said.txt)"
check "with the bytes of the file" cmp -s file.out got.body
equal "at the path of the protocol" "/v1development/profiles application/x-protobuf" "$(cat got.head)"
"$WEIR" export otlp s.weir --post "$url/part" 2>said.txt
equal "what it answers is shown" "0 weir: note: '$url/part' answers: only a part?" "$? $(cat said.txt)"
fails "a collector that refuses is a failure, with its words" 1 "^weir: '$url/busy': answers with status 503: come back later$" \
	"$WEIR" export otlp s.weir --post "$url/busy"
kill $collector
wait $collector 2>/dev/null
fails "one that is not there is a failure" 1 "^weir: '$url': cannot connect: " "$WEIR" export otlp s.weir --post "$url"
fails "https is refused with a way out" 1 "only http is spoken here" "$WEIR" export otlp s.weir --post https://collector:4318
fails "what is no URL is refused" 1 "^weir: 'collector:4318': is not http://HOST" "$WEIR" export otlp s.weir --post collector:4318
fails "a URL cannot end the line of the request" 1 "^weir: a URL has no blanks and no control" "$WEIR" export otlp s.weir --post $'http://h/x HTTP/1.1\r\nA: b'
fails "a collector and a file are one too many" 2 "one too many" "$WEIR" export otlp s.weir --post "$url" -o x
fails "another format is not for collectors" 2 "post" "$WEIR" export folded s.weir --post "$url"
trap - EXIT
