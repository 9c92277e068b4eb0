# SPDX-License-Identifier: MIT
# weir symbols merge and add get debug files from a real debuginfod on the loopback interface.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/fixtures/symbol_libraries.sh"
export DEBUGINFOD_CACHE_PATH=$PWD/cache HOME=$PWD
unset DEBUGINFOD_TIMEOUT DEBUGINFOD_MAXTIME DEBUGINFOD_MAXSIZE DEBUGINFOD_PROGRESS
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null' EXIT
if ! command -v debuginfod >/dev/null || ! ldconfig -p | grep -q 'libdebuginfod\.so\.1'; then
	skip "debug files from a server: debuginfod and libdebuginfod1 are not installed"
	finish
fi

mkdir served app
objcopy --only-keep-debug full/lib.so served/lib.debug && strip -o app/lib.so full/lib.so
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
debuginfod -F -d :memory: -p "$port" -I '/served/' served >server.txt 2>&1 &
server=$!
url=http://127.0.0.1:$port/
for _ in $(seq 120); do
	python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5).read()' \
		"${url}buildid/$(build_id full/lib.so)/debuginfo" 2>/dev/null && break
	kill -0 $server 2>/dev/null || break
	sleep 0.5
done
if ! kill -0 $server 2>/dev/null; then
	not_ok "the server runs"
	head -n 20 server.txt
	finish
fi

"$WEIR" symbols merge --json -o out.wsym app >out.json
equal "without servers a stripped library has what it exports" "0 app/lib.so 64 3 symbols 0 lines: dynsym 3/3" "$? $(images | without_verdicts)"
DEBUGINFOD_URLS=$url "$WEIR" symbols merge --json -o out.wsym --no-search app >out.json
equal "also with --no-search" "0 app/lib.so 64 3 symbols 0 lines: dynsym 3/3" "$? $(images | without_verdicts)"
DEBUGINFOD_URLS=$url "$WEIR" symbols merge --json -o out.wsym app >out.json
equal "a server that has the debug file gives all symbols and lines" \
	"0 app/lib.so 64 5 symbols N lines: dynsym 3/3 (the image itself), debug file 5/5 (build-id equal, from debuginfod), dwarf 5/5 (build-id equal, from debuginfod)" \
	"$? $(images | lines_known)"
equal "those of nm" "$(functions full/lib.so)" "$(symbols app/lib.so)"
check "and of addr2line" grep -q "(hidden_mul+0x0) $PWD/lib.c:4 " <("$WEIR" symbols resolve --catalog out.wsym --no-search --image app/lib.so "$(address full/lib.so hidden_mul)")
cp out.wsym served.wsym
kill $server && wait $server 2>/dev/null
server=
DEBUGINFOD_URLS=$url "$WEIR" symbols merge -q -o again.wsym app
check "the cache answers when the server is gone, with the same bytes" cmp served.wsym again.wsym
strip -o app/lib.so full/lib9.so && rm -rf cache
DEBUGINFOD_URLS=$url "$WEIR" symbols merge --json -o out.wsym app >out.json
equal "a server that does not answer is no failure" "0 app/lib.so 64 3 symbols 0 lines: dynsym 3/3" "$? $(images | without_verdicts)"
"$WEIR" symbols show --catalog out.wsym app/lib.so --json >s.json
check "but a note" grep -q debuginfod <(json s.json 'j["notes"]')
