# SPDX-License-Identifier: MIT
# Programs nobody here wrote: at least 99.9 % of the user stacks reach the thread's start, and every
# exception has a reason in the loss table. Sampled fast, so that a short run says enough.
# weir-test: alone: shares of samples depend on the load
# weir-test: once: takes long; shares.sh and plugins.sh record with sanitizers
. "$ROOT/tests/lib.sh"
hz=4999 permille=1
# A recorder with sanitizers is several times slower, and late: it is run for its memory errors.
[ -z "$WEIR_SAN" ] || hz=1999 permille=5

# judge NAME TRACE
judge() {
	"$WEIR" report loss "$2" --json >loss.json
	[ $? -le 3 ] || { not_ok "$1: the trace can be read" && return; }
	python3 - "$1" loss.json "$permille" <<'PY'
import json, sys
name, l = sys.argv[1], json.load(open(sys.argv[2]))["loss"]
n, good = l["stacks"], l["stacks_complete"]
# Other tests set uprobes meanwhile, in libraries that this program has mapped, too.
good += sum(v for k, v in l["reasons"].items() if k.startswith("in the kernel's copy of a probed instruction"))
ok = n >= 200 and (n - good) * 1000 <= max(n, 1000) * int(sys.argv[3])
print("ok" if ok else "not ok", f"{name}: {good} of {n} stacks are complete" + ("" if ok else f": {l['reasons']}"))
ends = ("stack deeper", "caller in no", "code without CFI", "CFI that cannot", "no progress", "caller's frame", "caller's place", "caller on another", "too many frames")
why = sum(v for k, v in l["reasons"].items() if k.startswith(ends))
print("ok" if why == n - good else "not ok", f"{name}: each of the {n - good} others has a reason {l['reasons'] if why != n - good else ''}")
PY
}

# try NAME COMMAND...
try() {
	local name=$1 rc
	shift
	"$WEIR" record -q -F $hz -o t.weir -- "$@" >out.txt 2>err.txt
	rc=$?
	[ $rc -eq 0 ] || { not_ok "$name: ran with status $rc" && head -n 3 err.txt && return; }
	judge "$name" t.weir
}

head -c 12000000 /dev/zero | openssl enc -aes-128-ctr -pass pass:weir -nosalt 2>/dev/null >noise.dat ||
	head -c 12000000 /dev/urandom >noise.dat
cat /usr/bin/perl /usr/bin/python3.11 /usr/bin/gdb 2>/dev/null | head -c 20000000 >binary.dat
python3 - <<'PY'
with open("large.c", "w") as f:
    f.write("#include <string.h>\n")
    for i in range(250):
        f.write(f"static int f{i}(int a,int b,char*s){{int r=0;for(int i=0;i<a;i++)switch((i*b)%7){{case 0:r+=i;break;"
                f"case 1:r^=b*{i};break;case 2:r-=s[i&7];break;case 3:if(a>b)r+=strlen(s);else r*=3;break;"
                f"default:r+=(a+b)*(i-{i});}}return r;}}\n")
    f.write("int main(int c,char**v){int r=0;" + "".join(f"r+=f{i}(c,{i},v[0]);" for i in range(250)) + "return r;}\n")
PY

try "python3 (no frame pointers)" /usr/bin/python3 -c '
import json, re, hashlib
for i in range(2500):
    d = json.loads(json.dumps({"a": list(range(200)), "b": "x" * 300}))
    re.findall(r"(\d+),? ?", json.dumps(d))
    hashlib.sha256(json.dumps(d).encode() * 20).hexdigest()
def deep(n): return sorted([deep(n - 1) if n else 0, n], key=str)
for i in range(60): deep(60)'
try "perl (no frame pointers)" perl -e 'for $i (1..700000) { $h{$i % 1000} .= join(",", $i, $i * 2); $s += length(sprintf("%x", $i)); @a = sort { $a <=> $b } @a[0..5], $i; } sub f { my $n = shift; $n ? f($n - 1) + 1 : 0 } f(500) for 1..100; print $s'
try "gcc's cc1 on a large file" "$(gcc -print-prog-name=cc1)" -quiet -O2 large.c -o large.s
try "sqlite3" sqlite3 :memory: "create table t(a,b); insert into t with recursive c(x) as (select 1 union all select x+1 from c where x<300000) select x, x*7%1000 from c; create index i on t(b); select count(*), sum(t.a) from t join t u on u.a=t.b where t.a<150000; select b, count(*) from t group by b order by 2 desc limit 3;"
try "xz with threads" xz -T2 -1 -k -c binary.dat
try "zstd with threads" zstd -q -T2 -9 -c binary.dat
try "gzip" gzip -c binary.dat
try "a shell with a thousand short children" bash -c 'for i in {1..250}; do /bin/true; x=$(echo $i | tr 0-9 a-j); done'
try "a shell that uses vfork" sh -c 'i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i + 1)); done'
gcc -O2 -fomit-frame-pointer -o shape64 "$ROOT/tests/workloads/split.c" -lpthread && try "an optimised C program" ./shape64 threads
if gcc -m32 -O2 -o shape32 "$ROOT/tests/workloads/split.c" -lpthread 2>err.txt; then
	try "a 32-bit program" ./shape32 threads
	try "a 32-bit program that recurses" ./shape32 recursion
else
	skip "a 32-bit program: gcc -m32 does not work here ($(head -n 1 err.txt))"
fi
if command -v g++ >/dev/null; then
	cat >throw.cc <<'CC'
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static int thrower(int n) { if (n % 9973 == 0) throw std::runtime_error("x"); return n; }
static long work(int n) {
	std::map<std::string, int> m; long s = 0;
	for (int i = 0; i < n; i++) { try { m[std::to_string(i % 977)] += thrower(i); } catch (const std::exception &e) { s += e.what()[0]; } }
	return s + (long)m.size();
}
int main() { std::vector<std::thread> t; for (int i = 0; i < 3; i++) t.emplace_back([] { work(2000000); }); for (auto &x : t) x.join(); }
CC
	# While libgcc installs the context of a handler it overwrites the frame it runs in, so that no
	# unwinder finds its way; a program that does nothing but throw shows that, this one rarely.
	g++ -O2 -o throw throw.cc -lpthread && try "C++ with exceptions and threads" ./throw
fi
rust=$(command -v rustc)
if [ -n "$rust" ]; then
	echo 'use std::collections::HashMap; fn w(n:u64)->u64{let mut m=HashMap::new();for i in 0..n{*m.entry(i%1000).or_insert(0u64)+=i*i%7;}m.values().sum()} fn main(){let h:Vec<_>=(0..2).map(|i|std::thread::spawn(move||(0..120).map(|k|w(50000+i+k)).sum::<u64>())).collect();println!("{}",h.into_iter().map(|x|x.join().unwrap()).sum::<u64>());}' >r.rs
	rustc -O r.rs -o rusty 2>err.txt && try "a Rust program" ./rusty
else
	skip "a Rust program: no rustc here"
fi
if command -v redis-server >/dev/null; then
	port=$((20000 + RANDOM % 20000))
	redis-server --port $port --save '' --bind 127.0.0.1 >/dev/null 2>&1 &
	server=$!
	for _ in $(seq 50); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.1; done
	(redis-benchmark -p $port -q -n 60000 -t set,get,lpush,lrange_100,sadd,zadd >/dev/null 2>&1) &
	load=$!
	"$WEIR" record -q -F $hz -p $server --duration 3 -o t.weir 2>err.txt
	rc=$?
	check "redis-server: attached under load (status $rc)" test $rc -eq 0 -o $rc -eq 3
	wait $load
	check "redis-server: still answers" test "$(redis-cli -p $port ping)" = PONG
	kill $server
	wait $server 2>/dev/null
	judge "redis-server under redis-benchmark" t.weir
else
	skip "redis-server: not installed"
fi

# A hole in the stack: pages of a large local buffer that were never touched.
if [ "$(id -u)" = 0 ]; then
	cat >hole.c <<'C'
static volatile unsigned long sink;
__attribute__((noipa)) static void leaf(long n) { for (long i = 0; i < n; i++) sink += (unsigned long)(i * i); }
__attribute__((noipa)) static void hole(long n, char *p) { (void)p; leaf(n); sink++; }
__attribute__((noipa)) static void small(long n) { char b[64 << 10]; b[0] = 1; hole(n, b); sink += (unsigned long)b[0]; }
__attribute__((noipa)) static void large(long n) { char b[3 << 20]; b[0] = 1; hole(n, b); sink += (unsigned long)b[0]; }
__attribute__((noipa)) static void deep(int d, long n) { char b[400]; b[0] = (char)d; if (d) deep(d - 1, n); else hole(n, b); sink += (unsigned long)b[0]; }
int main(void) { small(250000000); deep(1500, 250000000); large(250000000); return 0; }
C
	# Walks of 1,500 frames and copies of 700 kB each: on a busy machine a few do not find room.
	hz=999 permille=10
	[ -z "$WEIR_SAN" ] || permille=100
	gcc -O1 -o hole hole.c && try "large local buffers that were never touched, and 700 kB of frames" ./hole
else
	skip "large local buffers that were never touched: needs root (BPF)"
fi
