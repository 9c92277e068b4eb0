#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Exports of a real recording: addresses, images, build-ids, threads; sums equal to the report's.
. "$ROOT/tests/lib.sh"

cat >busy.c <<'END'
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
__attribute__((noinline)) static double spin(double x) { for (int i = 0; i < 1000; i++) x = x * 0.5 + i; return x; }
__attribute__((noinline)) static void *work(void *name)
{
	struct timespec t = {0};
	double x = 0;
	prctl(PR_SET_NAME, name);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < 250) {
		for (int i = 0; i < 1000; i++) x += spin(x);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	}
	return x > 1e300 ? name : 0;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, work, "second");
	work("first");
	pthread_join(t, 0);
}
END
gcc -O1 -g -fno-inline -Wl,--build-id -o busy busy.c -lpthread || not_ok "builds the program"
if ! "$WEIR" record -q -o r.weir -- ./busy 2>err.txt; then
	skip "exports of a real recording: $(head -n 1 err.txt)"
	finish
fi
"$WEIR" export pprof r.weir -o r.pb.gz
python3 "$ROOT/tests/format/read_pprof.py" r.pb.gz >p.json || not_ok "a recorded trace makes a valid profile"
"$WEIR" report flat r.weir --json >cpu.json
"$WEIR" report flat r.weir --json --metric samples >samples.json
"$WEIR" export folded r.weir >r.folded
equal "the profile has samples and CPU time" "[['samples', 'count'], ['cpu', 'nanoseconds']]" "$(json p.json 'j["types"]')"
equal "its sums are those of the report" "[$(json samples.json 'j["total"]'), $(json cpu.json 'j["total"]')]" "$(json p.json 'j["totals"]')"
equal "so is the sum of the folded counts" "$(json samples.json 'j["total"]')" "$(awk '{n += $NF} END {print n}' r.folded)"
build_id=$(readelf -n busy | sed -n 's/.*Build ID: //p')
equal "the program is a mapping with its build-id" "['$build_id']" \
	"$(json p.json '[m["build_id"] for m in j["mappings"] if m["file"].endswith("/busy")]')"
equal "the first mapping is the program, whatever was sampled first" "$PWD/busy $build_id" \
	"$(json p.json '"%s %s" % (j["mappings"][0]["file"], j["mappings"][0]["build_id"])')"
check "libraries and the kernel have mappings, too, none of which overlaps another" test "$(json p.json 'len(j["mappings"]) > 1')" = True
# Readers that have the file go from an address to the file's offset: nm and readelf say where spin is there.
spin=$(nm busy | awk '$3 == "spin" {print $1}')
segment=$(readelf -lW busy | awk '$1 == "LOAD" && /R E/ {print $2, $3}')
equal "addresses lead into the right place of the file" True \
	"$(json p.json "0 <= j['file_addresses']['spin'][1] - (0x$spin - ${segment#* } + ${segment% *}) < 200")"
if command -v go >/dev/null && HOME=$PWD go tool pprof -h 2>&1 | grep -q pprof; then
	HOME=$PWD PPROF_TMPDIR=$PWD go tool pprof -top r.pb.gz >go.txt 2>go.err
	equal "go tool pprof reads it and names the program" "File: busy" "$(head -n 1 go.txt)"
	equal "its total is that of the report" True \
		"$(python3 -c '
import json, re
n, unit = re.search(r"Total samples = ([\d.]+)(\w+)", open("go.txt").read()).groups()
total = json.load(open("cpu.json"))["total"]
print(abs(float(n) * {"s": 1e9, "ms": 1e6}[unit] - total) < total * 0.01)')"
	check "it finds spin" grep -q ' spin$' go.txt
	HOME=$PWD PPROF_TMPDIR=$PWD go tool pprof -disasm=spin r.pb.gz >go.disasm 2>go.err
	check "it disassembles it from the file, with the samples on its instructions" \
		grep -qE '^ +[0-9.]+m?s +[0-9.]+m?s +[0-9a-f]+:' go.disasm
else
	skip "go tool pprof reads it: go is not installed"
fi
"$WEIR" record -q --functions 'spin,work' -o h.weir -- ./busy 2>err.txt && "$WEIR" export pprof h.weir -o h.pb.gz &&
	python3 "$ROOT/tests/format/read_pprof.py" h.pb.gz >h.json
equal "of hooked functions the first mapping is the program, too" "$PWD/busy" "$(json h.json 'j["mappings"][0]["file"]')"
equal "every location is used" "$(json p.json 'j["locations"]')" "$(json p.json 'j["locations_used"]')"
equal "the threads are labelled" True "$(json p.json '{"first", "second"} <= set(j["threads"])')"
equal "the period is that of the frequency" "['cpu', 'nanoseconds'] $((1000000000 / 999))" "$(json p.json '"%s %d" % (j["period_type"], j["period"])')"
equal "it says when and for how long" True "$(json p.json 'j["time"] > 1600000000 * 10**9 and j["duration"] > 2 * 10**8')"
equal "spin is where the time went, in both threads" True \
	"$(json p.json 'sum(n for s, n in j["folded"].items() if "work;spin" in s) > 0.9 * j["totals"][0]')"
check "folded lines begin with the thread's name" grep -q '^second;.*;work;spin ' r.folded
equal "the function has the same share in pprof and in the report" \
	"$(json samples.json '[r["cum"] for r in j["rows"] if r["name"] == "work"]')" \
	"$(json p.json '[sum(n for s, n in j["folded"].items() if "work" in s.split(";"))]')"
equal "the arcs of a recording keep their sums" 0 \
	"$("$WEIR" report arcs r.weir --json >arcs.json; python3 "$ROOT/tests/golden/model.py" check-arcs arcs.json; echo $?)"
