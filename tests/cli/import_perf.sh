#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# perf.data in all its forms, written here by perf itself: figures and names are those of `perf report`, to the unit.
. "$ROOT/tests/lib.sh"

cat >prog.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void spin(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) static void mul(int n) { for (int i = 0; i < n; i++) sink *= i | 1; }
__attribute__((noinline)) static void down(int d, int n) { if (d) { down(d - 1, n); sink++; } else { spin(n); mul(n); } }
__attribute__((noinline)) static void touch(void)
{
	char *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 1 << 20; i += 4096) p[i] = 1;
	munmap(p, 1 << 20);
}
static void *work(void *how)
{
	for (int i = 0; i < 120; i++) { spin(60000); down(i % 7, 40000); if (how && i % 4 == 0) touch(); }
	return 0;
}
int main(int n_args, char **args)
{
	pthread_t t;
	if (n_args < 2) { work(args[0]); return 0; }
	if (args[1][0] == 'q') { work(0); return 0; } /* quiet: no system calls */
	pthread_create(&t, 0, work, args);
	if (!fork()) { work(args); _exit(0); }
	work(args);
	pthread_join(t, 0);
	wait(0);
}
END
gcc -O2 -g -fno-omit-frame-pointer -static -Wl,--build-id -o prog prog.c || not_ok "builds the program"
gcc -O2 -g -fno-omit-frame-pointer -Wl,--build-id -o shared prog.c
export HOME=$PWD/home # perf keeps there what it records
command -v perf >/dev/null || { skip "perf.data: perf is not installed"; finish; }

# recorded FILE ARGUMENT... -- COMMAND...: perf's own reader must be able to read it, too.
recorded() {
	local file=$1
	shift
	perf record -q --buildid-mmap -o "$file" "$@" >out.txt 2>err.txt && [ -s "$file" ] || {
		echo "perf record: $(tail -n 1 err.txt)" >why.txt
		return 1
	}
}
# same SENTENCE FILE PROGRAM [WORD...]: all that compare_perf.py compares is equal.
same() {
	local sentence=$1 what="and totals"
	shift
	[[ " $* " != *" --self "* ]] || what=alone
	equal "$sentence" "compared functions $what" "$(python3 "$ROOT/tests/format/compare_perf.py" "$@" 2>&1)"
}
if ! recorded plain.data -F 1999 -e cpu-clock ./prog; then
	skip "perf.data: $(cat why.txt)"
	finish
fi

same "without call chains self figures are perf's" plain.data prog --self
recorded fp.data -F 1999 -e cpu-clock -g ./prog many && same "call chains by frame pointers, threads and a forked child: figures are perf's" fp.data prog
recorded dwarf.data -F 999 -e cpu-clock --call-graph dwarf ./shared && same "stack dumps, walked by our own unwinder: figures are perf's" dwarf.data shared --own
recorded large.data -F 499 -e cpu-clock --call-graph dwarf,65528 ./shared && same "dumps of 64 KiB" large.data shared --own
recorded static.data -F 999 -e cpu-clock --call-graph dwarf ./prog && same "dumps of a static program, which perf does not walk" static.data prog --self
equal "weir walks all of them" 100.00 "$("$WEIR" report flat static.data --json | json /dev/stdin '"%.2f" % (100 * max(r["cum"] for r in j["rows"] if r["name"] == "main") / j["total"])')"
recorded two.data -F 1999 -e cpu-clock -e page-faults -g ./prog && same "two events are two metrics" two.data prog
recorded packed.data -F 1999 -e cpu-clock -z -g ./prog many && same "compressed records" packed.data prog
perf record -q --buildid-mmap -F 999 -e cpu-clock --call-graph dwarf -o - ./shared >pipe.data 2>err.txt && same "what perf writes into a pipe" pipe.data shared --self
perf record -q --buildid-mmap -F 999 -e cpu-clock -z -g -o - ./prog >pipez.data 2>err.txt && same "and compressed" pipez.data prog --self
recorded switches.data -F 999 -e cpu-clock --switch-events -g ./prog many && same "with switches of threads" switches.data prog
perf inject -b -i fp.data -o injected.data 2>err.txt && same "what perf inject makes of it" injected.data prog
recorded faults.data -e exceptions:page_fault_user -g ./prog many && same "a tracepoint is an event of weight 1" faults.data prog
perf script -i fp.data >fp.txt 2>err.txt && same "the text of perf script, with chains" fp.data prog fp.txt --self
perf script -i plain.data -F comm,pid,tid,time,period,event,ip,sym,symoff,dso >plain.txt 2>err.txt &&
	same "and without" plain.data prog plain.txt --self
perf script -i two.data --ns -F comm,tid,time,period,event,ip,sym,dso >two.txt 2>err.txt && same "of two events" two.data prog two.txt
if gcc -m32 -O2 -g -fno-omit-frame-pointer -static -Wl,--build-id -o prog32 prog.c 2>err.txt; then
	recorded 32.data -F 1999 -e cpu-clock:u --call-graph dwarf ./prog32 q && same "a 32-bit program" 32.data prog32 --self
else
	skip "a 32-bit program: $(head -n 1 err.txt)"
fi
if recorded all.data -F 499 -e cpu-clock -a -g -- ./prog many; then
	equal "the whole machine: as many samples as perf has" "$(perf report --stdio -i all.data -g none 2>/dev/null | sed -n "s/^# Event count (approx.): //p")" \
		"$("$WEIR" report flat all.data --json 2>/dev/null | json /dev/stdin 'j["total"]')"
else
	skip "the whole machine: $(cat why.txt)"
fi

# What is told of it.
"$WEIR" import perf fp.data -o fp.weir
equal "the trace knows the command, the machine and the event" True "$(
	"$WEIR" report --json fp.weir >summary.json
	grep -q 'perf record' summary.json && grep -q "$(uname -n)" summary.json && grep -q cpu-clock summary.json && echo True)"
equal "the trace says what the file says" "$("$WEIR" report flat fp.data)" "$("$WEIR" report flat fp.weir)"
equal "from standard input, too" "$("$WEIR" report flat fp.data)" "$("$WEIR" report flat - <fp.data)"

# Another machine: nothing of this one is taken for its.
mkdir -p "root$PWD" && mv shared moved && echo 'int main(){}' | gcc -Wl,--build-id -x c -o shared -
check "another version of the program names nothing" test -z "$(HOME=/nowhere "$WEIR" report flat dwarf.data 2>/dev/null | grep -w spin)"
id=$(readelf -n moved | sed -n 's/.*Build ID: //p')
mkdir -p "home/.debug/.build-id/${id:0:2}/${id:2}" && cp moved "home/.debug/.build-id/${id:0:2}/${id:2}/elf"
check "what perf has kept of it by build-id does" test -n "$("$WEIR" report flat dwarf.data 2>/dev/null | grep -w spin)"
cp moved "root$PWD/shared"
HOME=/nowhere "$WEIR" import perf dwarf.data --sysroot root -o other.weir
check "below --sysroot the right one is found" test -n "$("$WEIR" report flat other.weir | grep -w spin)"
sed 's/^[0-9a-f]*\( [a-zA-Z] _s*text\)$/ffffffff91000000\1/' /proc/kallsyms >kallsyms
"$WEIR" import perf fp.data --kallsyms kallsyms -o kernel.weir
check "symbols of a kernel that was loaded elsewhere are refused" grep -q 'loaded elsewhere' <("$WEIR" report modules kernel.weir --json; "$WEIR" report loss kernel.weir)

# Files that are not whole.
head -c $(($(stat -c %s dwarf.data) * 2 / 3)) dwarf.data >cut.data
"$WEIR" report flat cut.data >cut.txt 2>cut.err
equal "a file that is cut is read up to there, with losses" 3 $?
check "which are told" grep -q 'the rest of the file: it ends within a record' <("$WEIR" report loss cut.data 2>/dev/null)
printf '2ELIFREP%096d' 0 >swapped.data
fails "the other byte order is refused" 1 'other byte order' "$WEIR" report flat swapped.data
head -c 60 dwarf.data >short.data
fails "a header that is cut is refused" 1 'cut within its header' "$WEIR" report flat short.data
gzip -k fp.data
fails "a packed file is to be unpacked first" 1 'unpacked first' "$WEIR" report flat fp.data.gz
gzip -k pipe.data
equal "a packed pipe is read" "$("$WEIR" report flat pipe.data)" "$("$WEIR" report flat pipe.data.gz)"
python3 - <<'P'
import struct
b = bytearray(open("fp.data", "rb").read())
at = struct.unpack_from("<Q", b, 40)[0]
for _ in range(100):
    at += struct.unpack_from("<H", b, at + 6)[0]
struct.pack_into("<H", b, at + 6, 3)
open("bad.data", "wb").write(b)
P
"$WEIR" report flat bad.data >out.txt 2>err.txt
equal "a record that makes no sense ends the file, with losses" 3 $?
check "and it is told where" grep -q 'a record that makes no sense at byte [0-9]' <("$WEIR" report loss bad.data 2>/dev/null)
finish
