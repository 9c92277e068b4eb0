# SPDX-License-Identifier: MIT
# Programs nobody here wrote, with every function that has a symbol hooked: the same output and status.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

# try NAME GLOBS LEAST COMMAND...: at least so many functions are hooked and called.
try() {
	local name=$1 globs=$2 least=$3 n
	shift 3
	same "$name" "$globs" "$@"
	n=$(json case_$((n_cases - 1))/hooks.json "sum(1 for r in j['rows'] if r['method'] != 'refused' and r['hits'])" 2>/dev/null)
	check "$name: ${n:-no} functions were called" test "${n:-0}" -ge "$least"
}

cat "$ROOT"/src/*/*.c | head -c 1500000 >text.dat
bzip2 -k text.dat && gzip -k text.dat
python3 - <<'PY'
with open("large.c", "w") as f:
    for i in range(60):
        f.write(f"int f{i}(int a,int b,char*s){{int r=0;for(int i=0;i<a;i++)switch((i*b)%7){{case 0:r+=i;break;"
                f"case 1:r^=b*{i};break;case 2:r-=s[i&7];break;default:r+=(a+b)*(i-{i});}}return r;}}\n")
PY

try "bzip2" '*,libbz2*:*' 3 bzip2 -c text.dat
[ -n "$WEIR_SAN" ] || try "bunzip2" '*,libbz2*:*' 3 bzip2 -dc text.dat.bz2
try "gzip, with libc" '*,*:*' 20 gzip -c text.dat
try "gunzip of a file that is none" '*,*:*' 5 gzip -dc text.dat
try "sqlite3" '*,libsqlite3*:*' 40 sqlite3 :memory: "create table t(a,b); insert into t with recursive c(x) as (select 1 union all select x+1 from c where x<3000) select x, x*7%1000 from c; create index i on t(b); select count(*), sum(t.a) from t join t u on u.a=t.b; select * from nothing;"
try "python3" '*' 200 /usr/bin/python3 -c '
import json, re, sys, threading, zlib
d = json.loads(json.dumps({"a": list(range(200)), "b": "x" * 300}))
def deep(n): return sorted([deep(n - 1) if n else 0, n], key=str)
def f(n):
    try:
        return f(n - 1) if n else 1 // 0
    except ZeroDivisionError as e:
        raise ValueError(str(e)) from e
try: f(20)
except ValueError as e: print("caught", e)
t = [threading.Thread(target=deep, args=(20,)) for _ in range(4)]
[x.start() for x in t]; [x.join() for x in t]
print(len(d["a"]), re.findall(r"(\d+)", "a1b22c333"), zlib.crc32(b"x" * 1000), deep(5))
sys.exit(7)'
[ -n "$WEIR_SAN" ] || try "python3, with every image" '*,*:*' 300 /usr/bin/python3 -c 'import json, zlib; print(json.dumps(list(range(50))), zlib.crc32(zlib.compress(b"abc" * 500)))'
export PERL_HASH_SEED=0
try "perl" '*' 100 perl -e 'for $i (1..3000) { $h{$i % 100} .= join(",", $i); $s += length(sprintf("%x", $i)); } sub f { my $n = shift; $n ? f($n - 1) + 1 : die "deep\n" } eval { f(200) }; print $@, $s, "\n"; print `echo child`; $SIG{ALRM} = sub { print "alarm\n" }; kill ALRM => $$; exit 3'
[ -n "$WEIR_SAN" ] || try "perl, with every image" '*,*:*' 150 perl -e 'print join(" ", sort map { $_ * 3 } 1..50), "\n"'
# -ftime-report would differ; the assembly may not.
cc1=$(gcc -print-prog-name=cc1)
try "gcc's cc1" '*,libgmp*:*,libc.so*:/^(mem|str)/' 1 "$cc1" -quiet -O2 large.c -o -
try "bash" '*' 200 bash -c 'for i in {1..5}; do x=$(echo $i | tr 0-9 a-j); echo $x; done; (exit 9)'

if command -v redis-server >/dev/null; then
	port=$((20000 + RANDOM % 20000))
	"$WEIR" record -q --events '*,libjemalloc*:*,liblua*:*,libc.so*:/^(read|write|epoll_wait)$/' -o redis.weir -- \
		redis-server --port $port --save '' --bind 127.0.0.1 >redis.txt 2>err.txt &
	recorder=$!
	for _ in $(seq 100); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.1; done
	redis-benchmark -p $port -q -n 4000 -c 10 -t set,get,lpush,lrange_100,sadd,zadd >benchmark.txt 2>&1
	equal "redis-server: redis-benchmark is served" 0 $?
	equal "redis-server: no request has failed" "" "$(grep -iE 'error|fail|closed' benchmark.txt | head -n 3)"
	redis-cli -p $port set key value >/dev/null
	equal "redis-server: answers" value "$(redis-cli -p $port get key)"
	redis-cli -p $port eval 'return redis.call("get", KEYS[1])' 1 key >lua.txt
	equal "redis-server: runs scripts" value "$(cat lua.txt)"
	redis-cli -p $port shutdown nosave
	wait $recorder
	equal "redis-server: ends as it should" 0 $?
	"$WEIR" report flat redis.weir --json >flat.json 2>err.txt
	check "redis-server: its calls are there" test "$(json flat.json "sum(r['calls'] or 0 for r in j['rows'])")" -gt 10000
	check "redis-server: and has not crashed" sh -c '! grep -iq "crash\|signal 11\|bug report" redis.txt'
else
	skip "redis-server: not installed"
fi
