# SPDX-License-Identifier: MIT
# weir symbols resolve: addresses of files, processes and traces, with inline chain, file and line.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/fixtures/symbol_libraries.sh"

cat >prog.cc <<'C'
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>
namespace shop {
template <typename T> static inline __attribute__((always_inline)) T square(volatile T *x)
{
	return *x * *x;
}
static inline __attribute__((always_inline)) int cube(volatile int *x)
{
	return square(x) *
	       *x;
}
__attribute__((noinline, noclone)) int work(int n)
{
	volatile int v = n;
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += cube(&v);
	return sum;
}
}
extern "C" int api_one(int);
static void plugin(const char *path, double seconds)
{
	void *h = dlopen(path, RTLD_NOW);
	int (*spin)(int) = h ? (int (*)(int))dlsym(h, "plug_spin") : nullptr;
	if (!spin)
		exit(9);
	printf("%p\n", (void *)spin);
	for (clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC); clock() < end;)
		spin(200000);
	dlclose(h);
}
int main(int argc, char **argv)
{
	printf("%d %p %p %p %p\n", (int)getpid(), (void *)shop::work, (void *)main, (void *)api_one,
		(void *)getauxval(AT_SYSINFO_EHDR));
	fflush(stdout);
	if (argc > 2) {
		plugin(argv[1], 0.2);
		plugin(argv[2], 0.2);
		return 0;
	}
	if (argc > 1) {
		unsigned long sum = 0;
		for (int i = 0; i < 1500; i++)
			sum += (unsigned)shop::work(40000) + (unsigned)api_one(i);
		return sum == 1;
	}
	return getchar() == 'x';
}
C
mkdir app && cp full/lib.so app/liblib.so
g++ -O2 -g -o app/prog prog.cc app/liblib.so -Wl,-rpath,'$ORIGIN' -ldl || exit 1
g++ -O2 -g -fno-pie -no-pie -o app/fixed prog.cc app/liblib.so -Wl,-rpath,'$ORIGIN' -ldl || exit 1

ask() { # ARGUMENTS: out.json, rc
	"$WEIR" symbols resolve --json "$@" >out.json
	rc=$?
}
# NAME FILE:LINE of each level of each row, as addr2line -fi prints them; "?? ??:0" for none.
chains() { python3 - out.json <<'PY'
import json, sys
for r in json.load(open(sys.argv[1]))["rows"]:
    for l in r["levels"] or [{"name": None, "file": None, "line": None}]:
        print(l["name"] or "??", "%s:%d" % (l["file"] or "??", l["line"] or 0))
PY
}
field() { json out.json "' '.join(str(r['$1']) for r in j['rows'])"; }

# --- an image ---

work=$(nm -C app/prog | awk '/ shop::work\(int\)$/ { print $1; exit }')
size=$(nm -C -S app/prog | awk '/ shop::work\(int\)$/ { print $2; exit }')
python3 -c "print('\n'.join('%x' % (0x$work + i) for i in range(0x$size)))" >addresses.txt
"$WEIR" symbols resolve --json --image app/prog - <addresses.txt >out.json
equal "every address of a function is resolved" 0 $?
equal "with the lines of addr2line" "$(addr2line -ie app/prog <addresses.txt | sed 's/ (discriminator.*//')" "$(chains | sed 's/.* //')"
if command -v llvm-addr2line >/dev/null; then # GNU addr2line has the outer name for the innermost code, too
	equal "with the inline chains of llvm-addr2line" \
		"$(llvm-addr2line -Cfie app/prog <addresses.txt | paste -d ' ' - - | sed 's/ (discriminator.*//')" "$(chains)"
else
	skip "with the inline chains of llvm-addr2line: it is not installed"
fi
check "which has three levels somewhere" test "$(json out.json 'max(len(r["levels"]) for r in j["rows"])')" = 3
equal "the function is the outermost level" "shop::work(int)" "$(json out.json 'sorted({r["symbol"] for r in j["rows"]})[0]')"
equal "and the offset counts from its start" "[0, 1, 2]" "$(json out.json '[r["offset"] for r in j["rows"]][:3]')"
ask --image app/prog "0x$work" "$work"
equal "0x may be there or not" "$(printf '0x%x 0x%x' "0x$work" "0x$work")" "$(field address)"
"$WEIR" symbols resolve --json --image app/prog - <addresses.txt >all.json
deep=$(json all.json '[r["address"] for r in j["rows"] if len(r["levels"]) == 3][0]')
"$WEIR" symbols resolve --image app/prog "$deep" >text.txt
equal "in text: image(function+offset), file:line:column, rung and source, then the chain" \
	"$deep $PWD/app/prog(shop::work(int)+0xN) $PWD/prog.cc:10:C  [build-id: $PWD/app/prog]
    in square<int> $PWD/prog.cc:10:C
    inlined into cube $PWD/prog.cc:N
    inlined into shop::work(int) $PWD/prog.cc:N" \
	"$(sed 's/+0x[0-9a-f]*)/+0xN)/; s/\(prog.cc:10\):[0-9][0-9]*/\1:C/; s/\(into.*:\)[0-9]*$/\1N/' text.txt)"
equal "as the text form of a row" "$PWD/app/prog(shop::work(int)+0x0)" \
	"$(ask --image app/prog "$work"; field text)"
ask --image app/prog 1 "$work"
equal "an address without a symbol makes the status 3" "3 None shop::work(int)" "$rc $(field symbol)"
equal "and its row says why, without levels" "[] None None True" \
	"$(json out.json '"%s %s %s %s" % (j["rows"][0]["levels"], j["rows"][0]["offset"], j["rows"][0]["from"], "no symbol covers" in j["rows"][0]["reason"])')"
printf '%s\n\n  %s  \nnonsense\n' "$work" 1 | "$WEIR" symbols resolve --image app/prog - >text.txt
equal "standard input: one a line, blank lines are nothing, nonsense is said" "3 3" "$? $(wc -l <text.txt)"
check "as what it is" grep -q "^nonsense ?  \['nonsense' is not an address\]$" text.txt

# --- from a merged symbol file ---

"$WEIR" symbols merge -q --no-search -o lib.wsym full/lib.so
id=$("$WEIR" symbols list --catalog lib.wsym --json >l.json; json l.json 'j["rows"][0]["id"]')
hidden=$(address full/lib.so hidden_add)
strip -o stripped.so full/lib.so
ask --catalog lib.wsym --image stripped.so "$hidden"
equal "a stripped file gets the symbols of its version" "0 hidden_add $id build-id" "$rc $(field symbol) $(field image_id) $(field match)"
strip -o other.so full/lib9.so
ask --catalog lib.wsym --image other.so "$hidden"
equal "another version does not" "3 None None" "$rc $(field symbol) $(field image_id)"
ask --catalog lib.wsym --image "$id" "$hidden"
equal "an image may be named by its id" "0 hidden_add" "$rc $(field symbol)"
rm stripped.so && mv full/lib.so kept.so
ask --catalog lib.wsym --image full/lib.so "$hidden"
equal "or by the path of a file that is gone" "0 hidden_add" "$rc $(field symbol)"
mv kept.so full/lib.so
fails "an image that is nowhere is a failure" 1 "'nowhere.so'" "$WEIR" symbols resolve --image nowhere.so 1
fails "a catalog that was named must be there" 1 "'no.wsym': there is no merged symbol file" "$WEIR" symbols resolve --catalog no.wsym --image app/prog 1
fails "one place is needed" 2 "needs one of --image, --pid and --trace" "$WEIR" symbols resolve 1
fails "and only one" 2 "needs one of" "$WEIR" symbols resolve 1 --pid 1 --image app/prog
fails "what is no address is wrong usage" 2 "'0xzz' is not an address" "$WEIR" symbols resolve 0xzz --image app/prog

# --- a process ---

start() { # PROGRAM: pid, work, main, api, vdso of a process that waits
	rm -f in.fifo said.txt
	mkfifo in.fifo
	"$@" <in.fifo >said.txt &
	process=$!
	exec 7>in.fifo
	for _ in $(seq 100); do [ -s said.txt ] && break || sleep 0.05; done
	read -r pid work_at main_at api_at vdso_at <said.txt
}
stop() {
	exec 7>&-
	wait $process
}
for program in prog fixed; do
	start app/$program
	ask --pid "$pid" "$work_at" "$main_at"
	equal "functions of a running process ($program)" "0 shop::work(int) main" "$rc $(field symbol)"
	equal "at the addresses of the linker ($program)" "$(nm -C app/$program | awk '/ (shop::work\(int\)|main)$/ { print $1 }' | sort |
		while read -r a; do printf '0x%x\n' "0x$a"; done)" "$(json out.json '"\n".join(sorted((r["offset_in_image"] for r in j["rows"]), key=lambda a: "%16s" % a))')"
	ask --pid "$pid" "$api_at" 10
	check "of its libraries, and nothing where nothing is ($program)" test "$rc $(field pid)" = "3 $pid $pid" -a \
		"$(json out.json 'j["rows"][1]["reason"]')" = "nothing is mapped there in process $pid"
	[ $program = fixed ] || equal "with image and line" "$PWD/app/liblib.so(api_one+0x0) $PWD/lib.c 6" \
		"$(json out.json '"%s %s %s" % (j["rows"][0]["text"], j["rows"][0]["levels"][0]["file"], j["rows"][0]["levels"][0]["line"])')"
	stop
done
start app/prog
python3 - "$pid" "$vdso_at" >vdso.so <<'PY'
import sys
base = int(sys.argv[2], 16)
for line in open("/proc/%s/maps" % sys.argv[1]):
    if "[vdso]" in line:
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
with open("/proc/%s/mem" % sys.argv[1], "rb") as mem:
    mem.seek(start)
    sys.stdout.buffer.write(mem.read(end - start))
PY
if [ -s vdso.so ]; then
	at=$(nm -D vdso.so | awk '$3 ~ /^__vdso_clock_gettime(@|$)/ { print $1 }')
	ask --pid "$pid" "$(printf %x $((0x$at + vdso_at)))"
	equal "functions of the vdso" "[vdso]" "$(field image)"
	check "have their names" grep -Eq '^(__vdso_)?clock_gettime$' <(field symbol)
else
	skip "functions of the vdso: the memory of another process cannot be read here"
fi
stop
cp app/prog app/replaced && start app/replaced
g++ -O0 -g -o new.prog prog.cc app/liblib.so -ldl && mv new.prog app/replaced
ask --pid "$pid" "$work_at"
if [ -r "/proc/$pid/map_files" ] && ls "/proc/$pid/map_files" >/dev/null 2>&1; then
	equal "a program that was replaced while it runs is read through its mapping" "0 shop::work(int) 0" "$rc $(field symbol) $(field offset)"
else
	equal "a program that was replaced while it runs is not taken for the new one" "3 None" "$rc $(field symbol)"
fi
stop
rm said.txt
python3 - >said.txt <<'PY' &
import ctypes, mmap, os, sys
m = mmap.mmap(-1, 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
with open("/tmp/perf-%d.map" % os.getpid(), "w") as f:
    f.write("%x 40 Lgame;::loop()\n%x 20 stub\n" % (at, at + 0x100))
print(os.getpid(), hex(at), flush=True)
import time
time.sleep(60)
PY
process=$!
for _ in $(seq 100); do [ -s said.txt ] && break || sleep 0.05; done
read -r pid at <said.txt
ask --pid "$pid" "$(printf %x $((at + 8)))" "$(printf %x $((at + 0x800)))"
equal "run-time code has the names of its perf map, and only there" "3 Lgame;::loop() None 8" "$rc $(field symbol) $(json out.json 'j["rows"][0]["offset"]')"
kill $process && rm -f "/tmp/perf-$pid.map"
fails "a process that is not there is a failure" 1 "999999999" "$WEIR" symbols resolve --pid 999999999 1

# --- a trace ---

for n in a b; do
	printf 'static volatile unsigned s;\nvoid plug_spin(int n) { while (n--) s += n; }\nint plug_%s;\n' $n >plug_$n.c
	gcc -O1 -g -fPIC -shared -nostdlib -o plug_$n.so plug_$n.c
done
if ! "$WEIR" record -q -o t.weir -- app/prog spin >said.txt; then
	skip "addresses of a trace: nothing can be recorded here"
	finish
fi
read -r pid work_at main_at api_at vdso_at <said.txt
ask --trace t.weir "$pid:$work_at" "$pid:$api_at" "$pid:10" 7777:10
equal "addresses of a recorded process" "3 shop::work(int) api_one None None" "$rc $(field symbol)"
equal "in their images" "$PWD/app/prog $PWD/app/liblib.so" "$(json out.json '" ".join(r["image"] for r in j["rows"][:2])')"
equal "and why not" "no module was mapped there in process $pid; the trace has no process 7777" \
	"$(json out.json '"; ".join(r["reason"] for r in j["rows"][2:])')"
ask --trace t.weir "$work_at"
equal "the pid may be left out when there is one process" "0 shop::work(int) $pid" "$rc $(field symbol) $(field pid)"
equal "as text" "$pid:$work_at $PWD/app/prog(shop::work(int)+0x0) $(addr2line -e app/prog "$work"):$(json out.json 'j["rows"][0]["levels"][0]["column"]')  [build-id: $PWD/app/prog]" \
	"$("$WEIR" symbols resolve --trace t.weir "$pid:$work_at")"
inside=$(printf '%s:0x%x' "$pid" $((work_at + 0x$(printf %x "$deep") - 0x$work)))
ask --trace t.weir "$inside"
equal "with the whole inline chain" 3 "$(json out.json 'len(j["rows"][0]["levels"])')"
mv app/prog gone.prog
ask --trace t.weir "$pid:$work_at" "$pid:$main_at"
equal "names stay when the program is gone" "0 shop::work(int) main" "$rc $(field symbol)"
equal "from the trace, on the rung of the recording" "True build-id" \
	"$(json out.json '"%s %s" % ("trace" in j["rows"][0]["from"], j["rows"][0]["match"])')"
mv gone.prog app/prog

"$WEIR" record -q -o p.weir -- app/prog ./plug_a.so ./plug_b.so >said.txt
{ read -r pid _ && read -r at_a && read -r at_b; } <said.txt
"$WEIR" report samples p.weir --json >samples.json
cat >times.py <<'PY'
import json, sys
times = [s["time"] for s in json.load(open("samples.json"))["rows"]
         if s["stack"] and (s["stack"][-1]["image"] or "").endswith(sys.argv[1])]
print(times[len(times) // 2] if times else "")
PY
time_a=$(python3 times.py plug_a.so) time_b=$(python3 times.py plug_b.so)
if [ "$at_a" = "$at_b" ] && [ -n "$time_a" ] && [ -n "$time_b" ]; then
	ask --trace p.weir "$pid:$at_a@$time_a" "$pid:$at_b@$time_b" "$pid:$at_b@${time_b}ns"
	equal "the time tells two modules at one address apart" "plug_a.so plug_b.so plug_b.so" \
		"$(json out.json '" ".join(r["image"].split("/")[-1] for r in j["rows"])')"
	equal "and is in the row" "$time_a $time_b $time_b" "$(field time)"
	ask --trace p.weir "$pid:$at_a"
	equal "without a time the last one counts" plug_b.so "$(json out.json 'j["rows"][0]["image"].split("/")[-1]')"
	ask --trace p.weir "$pid:$at_a@0"
	equal "before it was loaded nothing was there" "3 no module was mapped there in process $pid at that time" "$rc $(field reason)"
else
	not_ok "the plug-ins ran at one address ($at_a $at_b, samples at '$time_a' '$time_b')"
fi
"$WEIR" record -q -o two.weir -- sh -c 'ls / >/dev/null; ls /tmp >/dev/null'
fails "several processes need a pid" 1 "say PID:ADDR" "$WEIR" symbols resolve --trace two.weir 1000
fails "a time that is none is wrong usage" 2 "is not ADDR, PID:ADDR or PID:ADDR@TIME" "$WEIR" symbols resolve --trace t.weir 1:2@now
fails "a trace that is not there is a failure" 1 "no.weir" "$WEIR" symbols resolve --trace no.weir 1:2
missing=$(python3 - out.json "$ROOT/docs/man/weir-symbols.1" <<'PY'
import json, re, sys
words = set(re.findall(r"[a-z0-9_]+", open(sys.argv[2]).read()))
j = json.load(open(sys.argv[1]))
print(" ".join(sorted((set(j) | set(j["rows"][0])) - words)))
PY
)
equal "the manual has every field" "" "$missing"

# --- a debug file of another build ---

mkdir crc && cat >crc/f.c <<'C'
int f(int x) { return x * 3; }
C
gcc -g -shared -fPIC -nostdlib -Wl,--build-id=none -o crc/lib.so crc/f.c && objcopy --only-keep-debug crc/lib.so crc/lib.dbg
(cd crc && strip -g lib.so && objcopy --add-gnu-debuglink=lib.dbg lib.so)
"$WEIR" symbols resolve -q --image crc/lib.so "$(nm crc/lib.so | awk '$3 == "f" { print $1 }')" >crc.txt 2>crc.err
check "a debug file with the CRC of the link gives lines" grep -q 'f.c:1' crc.txt
equal "and no word" "" "$(cat crc.err)"
echo >>crc/lib.dbg
"$WEIR" symbols resolve -q --image crc/lib.so "$(nm crc/lib.so | awk '$3 == "f" { print $1 }')" >crc.txt 2>crc.err
check "one with another CRC gives none" grep -q '(f+0x0)$' crc.txt
check "and that is said" grep -Eq "^weir: '.*/crc/lib.dbg': is the debug file of another build: CRC 0x[0-9a-f]{8} is wanted, it has 0x$(python3 -c 'import zlib; print("%08x" % zlib.crc32(open("crc/lib.dbg", "rb").read()))')\$" crc.err

# --- two merged symbol files ---

fails "a second --catalog is not taken silently for the first" 2 "catalog: is given twice: 'a.wsym' and 'b.wsym'" \
	"$WEIR" symbols list --catalog a.wsym --catalog b.wsym
fails "nor is it in a report" 2 "catalog: is given twice" "$WEIR" report --catalog a.wsym --catalog b.wsym nothing.weir

# --- as a coprocess: each line is answered before the next is asked ---

mkdir co && cat >co/lib.c <<'C'
int first(int x) { return x * 3; }
int second(int x) { return x * 5; }
C
gcc -g -O1 -ffunction-sections -shared -fPIC -nostdlib -o co/lib.so co/lib.c
cat >coprocess.py <<'PY'
import select, subprocess, sys
weir, asked = sys.argv[1], sys.argv[2:]
p = subprocess.Popen([weir, "symbols", "resolve", "-q", "--no-search" if asked[0] == "catalog" else "-q",
                      "--catalog", "co.wsym", "--image", "co/lib.so", "-"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
for address in asked[1:]:
    p.stdin.write(address + "\n")
    p.stdin.flush()
    if not select.select([p.stdout], [], [], 60)[0]:
        p.kill()
        sys.exit("no answer to " + address)
    print(p.stdout.readline().split(" ", 1)[1].strip().split("(")[1])
p.stdin.close()
print("status", p.wait(60))
PY
first=$(nm co/lib.so | awk '$3 == "first" { print $1 }') second=$(nm co/lib.so | awk '$3 == "second" { print $1 }')
line() { addr2line -e co/lib.so "$1"; }
expected="first+0x0) $(line "$first")
second+0x0) $(line "$second")
first+0x0) $(line "$first")
status 0"
"$WEIR" symbols merge -q --no-search -o co.wsym co/lib.so
equal "lines are answered as they come, from a merged symbol file" "$expected" \
	"$(python3 coprocess.py "$WEIR" catalog "$first" "$second" "$first")"
"$WEIR" symbols merge -q --no-search -o co.wsym crc/lib.so
equal "and from the file itself" "$expected" "$(python3 coprocess.py "$WEIR" file "$first" "$second" "$first" | sed -E 's/(:[0-9]+):[0-9]+$/\1/')"
printf '%s\n\n  %s  \r\n%s' "$first" "$second" "$first" >asked.txt
equal "a file of addresses is taken as a whole, its last line may have no end" 3 \
	"$("$WEIR" symbols resolve -q --image co/lib.so - <asked.txt | grep -c 'co/lib.so(')"
equal "operands before and behind it keep their order" "second first first second" \
	"$(printf '%s\n' "$first" | "$WEIR" symbols resolve -q --image co/lib.so "$second" "$first" - "$second" | grep -oE '(first|second)\+' | tr -d + | paste -s -d ' ')"
equal "nothing asked is no answer, in JSON, too" "0 []" "$("$WEIR" symbols resolve --json --image co/lib.so - </dev/null >none.json; echo $? "$(json none.json 'j["rows"]')")"

# --- variables: nm is the judge, and the program, which prints where they are ---

cat >vars.c <<'C'
#include <stdio.h>
#include <unistd.h>
int counters[16] = {1};
static const char table[32] = "constant";
static long cold[4];
int main(int argc, char **argv)
{
	cold[argc] = (long)argv[0];
	if (argc > 1) {
		printf("%lx %lx\n", (unsigned long)&counters[3], (unsigned long)&table[5]);
		fflush(stdout);
		sleep(30);
	}
	return counters[argc] + table[argc] + (int)cold[0];
}
C
gcc -O1 -fPIE -pie -o vars vars.c
at() { printf '%x' $((0x$(nm vars | awk -v n="$1" '$3 == n { print $1 }') + $2)); }
asked=("$(at counters 12)" "$(at table 5)" "$(at cold 24)" 4)
names() { sed -E 's/.*\((.*)\).*/\1/'; }
expected="counters+0xc
table+0x5
cold+0x18"
equal "addresses in variables have their names" "$expected" "$("$WEIR" symbols resolve -q --image vars "${asked[@]:0:3}" | names)"
"$WEIR" symbols merge -q --no-search -o vars.wsym vars && strip -o vars.stripped vars
equal "also in a merged symbol file" "$expected" "$("$WEIR" symbols resolve -q --no-search --catalog vars.wsym --image vars "${asked[@]:0:3}" | names)"
"$WEIR" symbols resolve --json --no-search --catalog vars.wsym --image vars "${asked[@]}" "$(at main 0)" >vars.json
equal "what is in none is none, and code is no variable" "True True True False False" "$(json vars.json '" ".join(str(r["data"]) for r in j["rows"])')"
"$WEIR" symbols merge -q --no-search -o again.wsym vars.wsym
equal "joined, they stay" "$expected" "$("$WEIR" symbols resolve -q --no-search --catalog again.wsym --image vars "${asked[@]:0:3}" | names)"
./vars stay >vars.txt &
process=$!
for _ in $(seq 200); do [ -s vars.txt ] && break; sleep 0.05; done
read -r first second <vars.txt
equal "in a process, too" "counters+0xc
table+0x5" "$("$WEIR" symbols resolve -q --pid $process "$first" "$second" | names)"
kill $process
