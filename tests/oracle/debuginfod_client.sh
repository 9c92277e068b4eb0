#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Debug files and executables from a real debuginfod on the loopback interface.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/text_source_dump
export DEBUGINFOD_CACHE_PATH=$PWD/cache HOME=$PWD
unset DEBUGINFOD_URLS DEBUGINFOD_TIMEOUT DEBUGINFOD_MAXTIME DEBUGINFOD_MAXSIZE DEBUGINFOD_PROGRESS
server='' listener=''
cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	[ -z "$listener" ] || kill "$listener" 2>/dev/null
	wait 2>/dev/null
}
trap cleanup EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
ask() { timeout 60 "$dump" debuginfod "$@" 2>err.txt; }
build_id() { readelf -n "$1" 2>/dev/null | awk '/Build ID/ { print $3 }'; }

id=00112233445566778899aabbccddeeff00112233
equal "says what to do when no server is named" \
	"-6 debuginfod: no server is named; set DEBUGINFOD_URLS, for example to https://debuginfod.elfutils.org/" \
	"$(ask debug $id)"
equal "takes an empty list for none" \
	"-6 debuginfod: no server is named; set DEBUGINFOD_URLS, for example to https://debuginfod.elfutils.org/" \
	"$(DEBUGINFOD_URLS=' ' ask debug $id)"
if ! ldconfig -p | grep -q 'libdebuginfod\.so\.1'; then
	skip "gets a debug file: libdebuginfod.so.1 is not installed (libdebuginfod1)"
	finish
fi
check "refuses to ask for no build-id" grep -q '^-3 ' <<<"$(DEBUGINFOD_URLS=http://127.0.0.1:1/ ask debug '')"
DEBUGINFOD_URLS=http://127.0.0.1:1/ ask debug $id >answer.txt
check "says when a server cannot be reached" grep -Eq '^-[13] debuginfod: ' answer.txt

# A server that accepts and never answers: the time that was given ends the wait, not the library's
# own 90 seconds.
python3 - >port.txt <<'C' &
import socket, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(8)
print(s.getsockname()[1], flush=True)
held = []
while True:
    held.append(s.accept())
C
listener=$!
for _ in $(seq 100); do
	[ -s port.txt ] && break
	sleep 0.1
done
rm -rf cache
answer=$(DEBUGINFOD_URLS=http://127.0.0.1:$(cat port.txt)/ timeout 45 "$dump" debuginfod debug $id 2)
equal "gives up on a server that never answers" \
	"-1 debuginfod: the debug file of build-id $id did not come within 2 s" "$answer"
# The library would, and then say for ten minutes that nobody has it.
equal "does not remember such a wait as a miss" "" "$(find cache -type f -name 'debuginfo*')"
kill $listener 2>/dev/null
listener=''

if ! command -v debuginfod >/dev/null; then
	skip "gets a debug file from a real server: debuginfod is not installed"
	finish
fi
mkdir files
cat >program.c <<'C'
#include <stdio.h>
int answer(int x) { return x * 42; }
int main(int argc, char **argv) { (void)argv; return printf("%d\n", answer(argc)) < 0; }
C
gcc -g -O1 -Wl,--build-id -o full program.c
objcopy --only-keep-debug full files/program.debug
strip -o files/program full
id=$(build_id full)
port=$(free_port)
debuginfod -F -d :memory: -p "$port" -I '/files/' files >server.txt 2>&1 &
server=$!
export DEBUGINFOD_URLS=http://127.0.0.1:$port/
found=''
for _ in $(seq 60); do
	# A miss is kept in the cache; the server may still be looking at its files.
	rm -rf cache
	found=$(ask debug "$id" 5) && break
	kill -0 $server 2>/dev/null || break
	sleep 0.5
done
if ! kill -0 $server 2>/dev/null; then
	not_ok "the server runs"
	head -n 20 server.txt
	finish
fi
check "gets a debug file ($found)" test -f "$found"
equal "gets the debug file of that build-id" "$id" "$(build_id "$found")"
check "gets the one with debug information" grep -q '\.debug_info' <<<"$(readelf -SW "$found" 2>/dev/null)"
check "keeps it where the library keeps its files" grep -q "^$PWD/cache/" <<<"$found"
program=$(ask executable "$id" 20)
equal "gets the executable of that build-id" "$id" "$(build_id "$program")"
check "gets the program itself" cmp -s "$program" files/program
unknown=ffffffffffffffffffffffffffffffffffffffff
equal "says that no server has it" "-3 debuginfod: no server has the debug file of build-id $unknown" \
	"$(ask debug $unknown 20)"
kill $server
wait $server 2>/dev/null
server=''
equal "finds it again without the server" "$found" "$(ask debug "$id" 5)"
# Nobody could read a 3 MB file within 2 MB.
truncate -s 3M "$found"
check "refuses a file that is too large" grep -Eq '^-5 debuginfod: .* is larger than 2 MB$' <<<"$(ask debug "$id" 5 2)"
