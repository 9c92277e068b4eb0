# SPDX-License-Identifier: MIT
# weir-test: root: programs under probes
# Programs of all kinds under probes: counts are exact whatever threads, recursion, jumps and signals do, names and
# arguments are found, and the program never notices, not even when weir is killed.
. "$ROOT/tests/lib.sh"
fixtures=$ROOT/tests/fixtures/probe
gcc -O1 -g -pthread -o hammer64 $fixtures/hammer.c && gcc -O1 -g -o odd64 $fixtures/odd_calls.c &&
	gcc -O1 -g -static -o odd_static64 $fixtures/odd_calls.c && gcc -O1 -g -o ticking64 $fixtures/ticking.c ||
	{ not_ok "the programs compile" && finish; }
gcc -O1 -g -o late64 $fixtures/late.c -ldl
echo '__attribute__((noinline)) int plug(int a) { __asm__ volatile(""); return a * 2; }' >plug.c
gcc -shared -fPIC -O1 -g -o plug64.so plug.c
modes=64 odd="odd64 odd_static64"
if gcc -m32 -O1 -g -pthread -o hammer32 $fixtures/hammer.c 2>gcc.txt; then
	modes="64 32" odd="$odd odd32 odd_fixed32"
	gcc -m32 -O1 -g -o odd32 $fixtures/odd_calls.c
	gcc -m32 -O1 -g -no-pie -o odd_fixed32 $fixtures/odd_calls.c
	gcc -m32 -O1 -g -no-pie -o ticking32 $fixtures/ticking.c
	gcc -m32 -O1 -g -o late32 $fixtures/late.c -ldl
	gcc -m32 -shared -fPIC -O1 -g -o plug32.so plug.c
	gcc -m32 -O2 -g -o registers32 $fixtures/registers.c
else
	skip "32-bit programs under probes: gcc -m32 does not work here"
fi

# probe NAME ARGUMENTS...: NAME.txt, NAME.err, $rc
probe() {
	local name=$1
	shift
	timeout 120 "$WEIR" probe -q -O "$name.txt" "$@" 2>"$name.err"
	rc=$?
}

# code PID FILE: the first bytes of `tick` in the memory of a process
code() {
	python3 - "$1" "$2" <<'PY'
import subprocess, sys
pid, path = sys.argv[1:]
lines = subprocess.run(["nm", path], capture_output=True, text=True).stdout.split("\n")
at = next(int(l.split()[0], 16) for l in lines if l.endswith(" tick"))
base = next(int(l.split("-")[0], 16) for l in open("/proc/%s/maps" % pid) if l.rstrip().endswith("/" + path))
with open("/proc/%s/mem" % pid, "rb") as f:
    f.seek(at if at >= base else base + at)
    print(f.read(8).hex())
PY
}

for mode in $modes; do
	# --- threads ---
	./hammer$mode 3000 >plain.txt
	plain=$?
	probe hammer$mode "uprobe:./hammer$mode:blow { @a++; @b = count(); @c = sum(args.b); @d[tid]++; }
		uretprobe:./hammer$mode:blow { @e = count(); @f = max(retval); }" -c "sh -c './hammer$mode 3000 >command.txt; echo \$? >status.txt'"
	equal "$mode-bit: eight threads in one function are counted to the last, by ++, count() and sum()" \
		"@a: 24000 @b: 24000 @c: 24000 @e: 24000 @f: 3000 0" "$(echo $(grep -v '^@d\|^$' hammer$mode.txt | sort) $rc)"
	equal "$mode-bit: and each by itself" "8 3000" "$(echo $(grep -c '^@d' hammer$mode.txt) $(grep '^@d' hammer$mode.txt | cut -d: -f2 | sort -u))"
	equal "$mode-bit: output and status are the program's own" "$(cat plain.txt) $plain" "$(cat command.txt) $(cat status.txt)"

	probe whole$mode "uretprobe:./hammer$mode:* { @n = count(); }" -c "sh -c './hammer$mode 2 >command.txt; echo \$? >status.txt'"
	equal "$mode-bit: return probes on all functions of a program leave its arguments alone" "$(printf '2\n%.0s' 1 2 3 4 5 6 7 8) $plain" \
		"$(cat command.txt) $(cat status.txt)"

	# --- a library that comes later ---
	probe late$mode "uprobe:./plug$mode.so:plug { @n = count(); @a = sum(args.a); } uretprobe:./plug$mode.so:plug { @r = sum(retval); }" \
		-c "sh -c './late$mode ./plug$mode.so >command.txt'"
	equal "$mode-bit: a library is probed that the program loads later, closes and loads again" "@n: 13 @a: 48 @r: 96 90 6" \
		"$(echo $(cat late$mode.txt command.txt))"

	# --- weir is killed ---
	mkfifo in$mode
	./ticking$mode <in$mode >ticking.txt &
	pid=$!
	exec 5>in$mode
	runs $pid
	before=$(code $pid ticking$mode)
	"$WEIR" probe -q "uprobe:./ticking$mode:tick { printf(\"x\\n\"); } uretprobe:./ticking$mode:tick { @r++; }" >killed$mode.txt 2>&1 &
	weir=$!
	until_line killed$mode.txt . $weir
	check "$mode-bit: the program is probed" [ -s killed$mode.txt -a "$before" != "$(code $pid ticking$mode)" ]
	{ kill -9 $weir && wait $weir; } 2>kill.txt
	for ((i = 0; i < 1000; i++)); do [ "$before" = "$(code $pid ticking$mode)" ] && break || sleep 0.02; done
	equal "$mode-bit: when weir is killed its breakpoints go too" "$before" "$(code $pid ticking$mode)"
	probe after$mode "uprobe:./ticking$mode:tick { @n++; } interval:ms:200 { if (@n > 5) { exit(); } }" -p $pid -d 10
	feed 5
	wait $pid
	equal "$mode-bit: a program goes on when weir is killed, and can be probed again" "9 ticked 0" "$? $(cat ticking.txt) $rc"
	exec 5>&-
done

# --- two at once ---
"$WEIR" probe -q 'uprobe:./hammer64:blow { @n = count(); } begin { printf("begun\n"); }' >first.txt 2>first.err &
first=$!
until_line first.txt . $first
probe second 'uprobe:./hammer64:blow { @n = count(); } uretprobe:./hammer64:blow { @r = count(); }' -c "sh -c './hammer64 1000 >command.txt'"
kill -INT $first
wait $first
equal "a function that another weir has probed can be probed, and both count all" "0 @n: 8000 @r: 8000 begun @n: 8000" \
	"$rc $(echo $(cat second.txt first.txt second.err))"

# --- odd ways to return ---
for p in $odd; do
	./$p >plain.txt
	plain=$?
	probe $p "uprobe:./$p:deep { @in = count(); } uretprobe:./$p:deep { @out = count(); @max = max(retval); }
		uprobe:./$p:leap { @leap = count(); } uretprobe:./$p:leap { @landed = count(); }
		uretprobe:./$p:interrupted { @interrupted = retval; }" -c "sh -c './$p >command.txt; echo \$? >status.txt'"
	equal "$p: recursion, longjmp and a handler: entries and returns are exact" \
		"@in: 17 @interrupted: 2 @leap: 200 @max: 55 @out: 17" "$(echo $(grep . $p.txt | sort))"
	equal "$p: output and status are its own" "$(cat plain.txt) $plain" "$(cat command.txt) $(cat status.txt)"
done

# --- functions of libc, all of them ---
# On a copy: breakpoints are in every process that maps the file.
libc=$(ldd ./odd64 | sed -n 's/.*=> \(.*libc\.so\.6\) .*/\1/p')
if [ -r "$libc" ]; then
	mkdir copy && cp "$libc" copy/libc.so.6
	LD_LIBRARY_PATH=copy ./odd64 >plain.txt
	plain=$?
	for kind in uprobe uretprobe; do
		probe all "$kind:./copy/libc.so.6:* { @n = count(); }" -c "sh -c 'LD_LIBRARY_PATH=copy ./odd64 >command.txt; echo \$? >status.txt'"
		equal "a program with a $kind on every function of libc is as without" "$(cat plain.txt) $plain 0" "$(cat command.txt) $(cat status.txt) $rc"
		check "and they fire" grep -q '^@n: [1-9]' all.txt
	done
	probe twice 'uretprobe:./copy/libc.so.6:_setjmp { @++; }' -c true
	equal "a return probe on setjmp, which would end the program, is refused" "1 1" "$rc $(grep -c 'it uses its return address' twice.err)"
else
	skip "all functions of libc: libc is not a file here"
fi

# --- registers ---
if [ -x registers32 ]; then
	probe registers "uprobe:./registers32:in_registers, uprobe:./registers32:in_two, uprobe:./registers32:on_stack {
		printf(\"%s %d %d %d\\n\", func, args.a, args.b, args.c); }" -c "sh -c './registers32 >command.txt'"
	equal "arguments of regparm and fastcall functions are where the debug information says" "in_registers 1 2 3
in_two 4 5 6
on_stack 7 8 9" "$(sort registers.txt)"
fi

# --- C++ ---
for mode in $modes; do
	g++ -m$mode -O1 -g -o shop$mode $fixtures/shop.cc 2>gcc.txt || { skip "$mode-bit C++: g++ does not work here" && continue; }
	probe shop$mode "uprobe:./shop$mode:\"shop::add(int, int)\" { printf(\"add %d %d\\n\", args.a, args.b); }
		uprobe:./shop$mode:shop::item::cost { printf(\"cost %d %d %d\\n\", args.this->price, args.this->id, args.n); }
		uprobe:./shop$mode:shop::add { @add = count(); } uprobe:./shop$mode:*twice* { @twice = count(); }
		uprobe:./shop$mode:shop::check { @check = count(); }" -c "sh -c './shop$mode >command.txt'"
	equal "$mode-bit: C++ functions by readable names, with their arguments; overloads and templates" \
		"@add: 2 @check: 1 @twice: 2 add 1 2 cost 7 99 3" "$(echo $(grep . shop$mode.txt | sort))"
	equal "$mode-bit: exceptions pass through a function that has a probe" "3 12 21 8 6 too many" "$(echo $(cat command.txt))"
	timeout 120 "$WEIR" probe --dry-run "uretprobe:./shop$mode:shop::check { @++; }" >dry.txt 2>dry.err
	check "$mode-bit: that they cannot pass through one with a return probe is said before" grep -q 'an exception that passes.*\[unsafe\]' dry.err
done
if readelf -n /usr/lib/x86_64-linux-gnu/libstdc++.so.6 2>/dev/null | grep -q libstdcxx && [ -x shop64 ]; then
	probe usdt 'usdt:libstdc++:throw { @throw = count(); } usdt:libstdc++:libstdcxx:catch { @catch = count(); }' -c "sh -c './shop64 >command.txt'"
	equal "static probes of libstdc++ fire" "@catch: 1 @throw: 1" "$(echo $(grep . usdt.txt | sort))"
else
	skip "static probes of libstdc++: it has none here"
fi
echo x >x.txt
objcopy --add-section .gopclntab=x.txt odd64 like_go
probe go 'uretprobe:./like_go:deep { @++; }' -c ./like_go
equal "return probes in Go programs are refused" "1 1" "$rc $(grep -c 'Go program.*\[unsafe\]' go.err)"

# --- scripts of other people ---
cat >foreign.wr <<'EOF'
#include <linux/sched.h>
#define LIMIT (2 * 5) // ten
config = { missing_probes = ignore; }
uprobe:./odd64:no_such_function, uprobe:./odd64:deep /arg0 == LIMIT/ { @n = count(); }
profile:hz:1 { $task = (task_struct *)curtask; @pid[$task->pid] = count(); }
tracepoint:syscalls:sys_enter_exec* { @argv[str(*args.argv)] = count(); }
end { clear(@pid); if LIMIT == 10 { printf("ten\n"); } else { printf("other\n"); } }
EOF
probe foreign foreign.wr -c "sh -c './odd64 >command.txt'"
equal "#define, #include, missing_probes, structures without the word and bare conditions are understood" \
	"0 ten @n: 1 odd64" "$rc $(echo $(grep '^ten\|^@n' foreign.txt)) $(grep -o 'odd64' foreign.txt | head -n 1)"
fails "a program is no script" 1 "is a program, not a script" "$WEIR" probe ./odd64

# --- places where nothing can be written ---
mknod full c 1 7 # as /dev/full, which a mistake would replace
for option in "-O full" "-l -O full" "--dump -O full" "-o full"; do
	fails "$option: is an error" 1 "No space left" "$WEIR" probe -q $option "$([ "${option#-l}" = "$option" ] && echo 'begin { printf("x\n"); }' || echo 'syscall:*')"
done
check "a device that a stream is written to stays one" [ -c full ]
