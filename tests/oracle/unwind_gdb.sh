# SPDX-License-Identifier: MIT
# The unwinder against gdb's, frame by frame, over real programs stopped at random moments and in
# single steps from there. unwind_stops.py (inside gdb) writes the stacks down, unwind_replay walks
# them again. Differences with a known cause are named and counted by unwind_replay; of the others
# at most one in a thousand is allowed, and the known causes may not be the rule.
# weir-test: once: takes long, most of it in gdb; unit tests take the unwinder through the sanitizers
. "$ROOT/tests/lib.sh"

command -v gdb >/dev/null || {
	skip "unwinds like gdb: gdb is not installed"
	finish
}
if ! gdb -nx -batch -ex 'set startup-with-shell off' -ex starti /bin/true 2>&1 | grep -q 'Program stopped'; then
	skip "unwinds like gdb: gdb cannot run a program here (no ptrace)"
	finish
fi
replay=$BUILD/tests/oracle/unwind_replay
stops=85
sleep_ms=15
[ -z "${WEIR_SLOW:-}" ] || stops=200 sleep_ms=60
all_stacks=0 all_unexplained=0 all_explained=0

# like_gdb NAME LEAST_COMPLETE_PERMILLE COMMAND...; equal_percent: of the stacks are equal, at least
equal_percent=50
like_gdb() {
	local name=$1 least=$2 line stacks equal explained unexplained complete frames
	shift 2
	# Now and then gdb loses a program whose interrupt comes at the wrong moment: again, then.
	for attempt in 1 2 3; do
		OUT=$PWD/$name.stacks STOPS=$stops SLEEP_MS=$sleep_ms SEED=$((${SEED:-1} + attempt)) timeout 120 \
			gdb -nx -batch -x "$ROOT/tests/oracle/unwind_stops.py" --args "$@" >"$name.log" 2>&1
		[ "$(grep -ac '^stack ' "$name.stacks")" -lt $((stops / 2)) ] || break
		echo "$name: attempt $attempt gave too few stops: $(tail -n 1 "$name.log")"
	done
	if ! "$replay" "$name.stacks" >"$name.out" 2>&1; then
		not_ok "unwinds $name like gdb"
		tail -n 5 "$name.log" "$name.out"
		return
	fi
	line=$(tail -n 1 "$name.out")
	read -r _ stacks _ equal _ explained _ unexplained _ complete _ frames <<<"$line"
	echo "$name: $line; causes: $(grep -oE '^(past-start|no-cfi|gdb-blind|eh-return|left-code|start-ret|go-end|gdb-stopped)' "$name.out" |
		sort | uniq -c | tr -s ' \n' ' ')"
	all_stacks=$((all_stacks + stacks)) all_explained=$((all_explained + explained))
	all_unexplained=$((all_unexplained + unexplained))
	if [ "$stacks" -ge $((stops / 2)) ] && [ $((equal * 100)) -ge $((stacks * equal_percent)) ] &&
		[ $((unexplained * 1000)) -le "$stacks" ]; then
		ok "unwinds $name like gdb"
	else
		not_ok "unwinds $name like gdb"
		grep -A 6 '^difference' "$name.out" | head -n 40
	fi
	if [ $((complete * 1000)) -ge $((stacks * least)) ]; then
		ok "reaches the outermost frame of $name"
	else
		not_ok "reaches the outermost frame of $name: $complete of $stacks"
		grep 'end with' "$name.out"
	fi
	rm -f "$name.stacks"
}

# shapes NAME LEAST_COMPLETE_PERMILLE COMPILER FLAGS...: the program with every shape of stack.
shapes() {
	local name=$1 least=$2
	shift 2
	if "$@" -o "$name" "$ROOT/tests/oracle/unwind_shapes.cc" -pthread 2>"$name.err"; then
		like_gdb "$name" "$least" "./$name"
	else
		skip "unwinds $name like gdb: cannot be compiled here: $(head -n 1 "$name.err")"
	fi
}

cat >work.pl <<'END'
my %h;
for my $i (1 .. 1e9) {
	$h{$i % 1000} .= "x";
	$h{$i % 1000} = "" if length($h{$i % 1000}) > 50;
	my @a = sort { $a <=> $b } map { $_ * 7 % 13 } 1 .. 20;
	(my $s = "abcabc" x 5) =~ s/(b)(c)/uc($1).$2/ge;
}
END
cat >work.py <<'END'
import json, re, zlib
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while True:
    fib(12)
    json.loads(json.dumps({"a": [1, 2, 3] * 50}))
    zlib.compress(b"abc" * 2000)
    sorted(range(1000), key=lambda x: -x)
    re.sub(r"(a|b)+c", lambda m: m.group(0), "ababac" * 50)
END
cat >work.sql <<'END'
with recursive c(x) as (values(1) union all select x + 1 from c where x < 1000000000)
select count(*), sum(length(hex(randomblob(8)))), avg(x % 7) from c group by x % 100 order by 2;
END
cat >work.rs <<'END'
use std::collections::HashMap;
#[inline(never)]
fn deep(n: u64, m: &mut HashMap<String, u64>) -> u64 {
    *m.entry(format!("{}", n % 97)).or_insert(0) += n;
    if n % 40 == 0 { let mut v: Vec<u64> = (0..50).map(|x| x * n % 31).collect(); v.sort_by(|a, b| b.cmp(a)); return v[3]; }
    deep(n - 1, m) + m.len() as u64
}
fn work(seed: u64) {
    let mut m = HashMap::new();
    for n in seed.. {
        std::hint::black_box(deep(n, &mut m));
        let _ = std::panic::catch_unwind(|| { if n % 1000 == 0 { std::panic::resume_unwind(Box::new(n)); } });
    }
}
fn main() { std::thread::spawn(|| work(5)); work(1); }
END
for i in $(seq 3000); do
	echo "int f$i(int a, int *b) { int s = 0; for (int i = 0; i < a; i++) { s += b[i] * $i; if (s % 7 == $((i % 7))) s ^= a; switch (s & 7) { case 1: s++; break; case 3: s -= a; break; case 5: s *= 3; } } return s; }"
done >work.c
head -c 40000000 /dev/zero | tr '\0' 'a' >work.bin
dd if=/dev/urandom of=work.bin bs=1M count=16 conv=notrunc 2>/dev/null

# These throw all the time: see eh-return in unwind_replay.c.
shapes shapes 930 g++ -O2 -fomit-frame-pointer
shapes shapes-static 930 g++ -O2 -static
shapes shapes-O0 930 g++ -O0
shapes shapes-clang 930 clang++ -O2
# glibc's i386 makecontext plants a return address in code without CFI.
shapes shapes-32 800 gcc -x c -m32 -O2 -fomit-frame-pointer
shapes shapes-32-static 800 gcc -x c -m32 -O2 -static
like_gdb perl 995 /usr/bin/perl work.pl
like_gdb python 995 /usr/bin/python3 work.py
like_gdb cc1 995 "$(gcc -print-prog-name=cc1)" -quiet -O2 work.c -o /dev/null
like_gdb sqlite3 995 sqlite3 :memory: ".read work.sql"
like_gdb xz 995 xz -T2 -6 --block-size=4MiB -c work.bin
# AVX2 code that keeps its caller's stack pointer below its own, and other code made by hand.
if command -v openssl >/dev/null; then
	like_gdb sha512 995 openssl speed -seconds 100 -bytes 8192 sha512
	like_gdb aes-gcm 995 openssl speed -seconds 100 -bytes 8192 -evp aes-128-gcm
	like_gdb rsa 995 openssl speed -seconds 100 rsa2048
else
	skip "unwinds libcrypto like gdb: openssl is not installed"
fi
# By Go's own table here; by .debug_frame in gdb, which goes on where threads that sleep have their base.
if command -v go >/dev/null && GOCACHE=$PWD/cache GO111MODULE=off GOFLAGS= HOME=$PWD go build -o work-go "$ROOT/tests/fixtures/go/work.go" 2>go.err; then
	# Threads that gdb stops all the time are often seen reading the clock, on another stack; how many stacks
	# of a recording are complete is for go_programs.sh to judge.
	equal_percent=25
	like_gdb go 500 ./work-go 100000
	equal_percent=50
else
	skip "unwinds Go like gdb: no go here that works"
fi
if command -v rustc >/dev/null && rustc -O -o work-rs work.rs 2>rust.err; then
	like_gdb rust 995 ./work-rs
else
	skip "unwinds rust like gdb: no rustc here that works"
fi
echo "all: $all_stacks stacks, $all_explained with a known cause, $all_unexplained without"
check "at least 99.9 % of all stacks are gdb's or differ by a known cause" \
	test $((all_unexplained * 1000)) -le $all_stacks
check "enough stacks were compared" test $all_stacks -ge $((stops * 8))
