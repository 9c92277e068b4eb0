# SPDX-License-Identifier: MIT
# weir-test: root: 32-bit and 64-bit programs are traced at once
# One script, a 32-bit and a 64-bit program that run at once: every argument, field, string and result is
# right in both. Once with structures that the script declares, once with those of the programs' own debug
# information, and once at trace points that see both kinds of program and choose when they fire.
. "$ROOT/tests/lib.sh"

program=$ROOT/tests/fixtures/probe/mixed.c
gcc -m64 -O1 -g -o mixed64 "$program" || { not_ok "the 64-bit program compiles" && finish; }
if ! gcc -m32 -O1 -g -o mixed32 "$program" 2>gcc.txt; then
	skip "32-bit and 64-bit programs are traced at once: gcc -m32 does not work here"
	finish
fi
# Without -g for what must come from the script alone.
strip -g -o bare32 mixed32
strip -g -o bare64 mixed64

cat >both.sh <<'E'
"$1" 2 >out32.txt &
"$2" 2 >out64.txt
echo $? >status64
wait $!
echo $? >status32
E

# trace NAME SCRIPT PROGRAM32 PROGRAM64: its output, sorted by mode and by program order in each.
trace() {
	timeout 120 "$WEIR" probe -q -i "$2" -c "sh both.sh $3 $4" >"$1.txt" 2>"$1.err"
	echo "status $?" >>"$1.err"
}
of_mode() { grep "^$1 " "$2.txt" | cut -d' ' -f2-; } # MODE NAME

# --- declared in the script -----------------------------------------------------------------------
cat >declared.wr <<'E'
struct inner {
	short x;
	char tag[6];
};
struct item {
	char first;
	long l;
	long long ll;
	double d;
	float f;
	unsigned a : 3, b : 7;
	int c : 20;
	struct inner in;
	int arr[4];
	const char *name;
	struct item *next;
	union {
		int u_int;
		unsigned char u_bytes[4];
	};
	size_t size;
};
struct small { int x, y; };
int target(int a, long b, const char *s, struct item *it);
long long many(long long first, int second, double third, unsigned char fourth, short fifth, long long sixth,
	long seventh, void *eighth, long long ninth, float tenth);
struct small by_value(struct small s, int plus);
int negative(int x);

uprobe:./bare32:target, uprobe:./bare64:target {
	$it = (struct item *)arg3;
	printf("%d target %d %d %s\n", bits, arg0, arg1, str(arg2));
	printf("%d scalars %c %d 0x%x %s\n", bits, $it->first, $it->l, $it->ll, func);
	printf("%d floats %.2f %.2f\n", bits, $it->d, $it->f);
	printf("%d bits %d %d %d\n", bits, $it->a, $it->b, $it->c);
	printf("%d nested %d %s\n", bits, $it->in.x, $it->in.tag);
	printf("%d array %d %d %d %d\n", bits, $it->arr[0], $it->arr[1], $it->arr[2], $it->arr[3]);
	printf("%d text %s\n", bits, str($it->name));
	printf("%d next %c %d %s %d\n", bits, $it->next->first, $it->next->l, str($it->next->name), $it->next->next == 0);
	printf("%d union 0x%x %d %d\n", bits, $it->u_int, $it->u_bytes[0], $it->u_bytes[3]);
	printf("%d size %d %d\n", bits, $it->size == sizeof(struct item), sizeof(long) + sizeof($it));
	printf("%d offset %d\n", bits, offsetof(struct item, d));
	printf("%d global %d\n", bits, *(long *)uaddr("counter"));
	printf("%d table %s\n", bits, str(((struct item *)uaddr("table") + 1)->name));
	printf("%d named %d %d %s %d\n", bits, args.a, args.b, str(args.s), args.it->arr[1]);
}
uprobe:./bare32:many, uprobe:./bare64:many {
	printf("%d many 0x%x %d %d %d %d\n", bits, args.first, args.second, args.fourth, args.fifth, args.sixth);
	printf("%d stack %d %d 0x%x\n", bits, args.seventh, args.eighth != 0, args.ninth);
}
uprobe:./bare32:by_value, uprobe:./bare64:by_value { printf("%d by_value %d %d %d\n", bits, args.s.x, args.s.y, args.plus); }
uretprobe:./bare32:target, uretprobe:./bare64:target { printf("%d returned %d\n", bits, retval); }
uretprobe:./bare32:many, uretprobe:./bare64:many { printf("%d returned64 0x%x\n", bits, retval); @many[bits] = retval; }
uretprobe:./bare32:by_value, uretprobe:./bare64:by_value { printf("%d struct %d %d\n", bits, retval.x, retval.y); }
uretprobe:./bare32:negative, uretprobe:./bare64:negative { printf("%d negative %d\n", bits, retval); @n[bits] = count(); }
E
expect() { # MODE: what each call must show; $1 = 32 or 64
	local pair=8 off=16 c
	[ "$1" -eq 64 ] && pair=16 off=24
	for c in 6 7; do
		cat <<E
target 11 22 abc
scalars f -123456789 0x1122334455667788 target
floats 2.50 -0.75
bits 5 99 -77777
nested -7 inner
array 10 20 30 40
text hello-item
next s -2 second-item 1
union 0x4030201 1 4
size 1 $pair
offset $off
global $c
table hello-item
named 11 22 abc 20
returned 150
many 0x123456789abcdef0 -3 200 -300 -4000000000
stack 77 1 0x10000000000
returned64 0x12345777ac51b6d8
by_value 3 4 10
struct 13 4
negative -42
E
	done
}
trace declared declared.wr ./bare32 ./bare64
for mode in 32 64; do
	equal "structures of the script: all values of the $mode-bit program are right" "$(expect $mode)" "$(of_mode $mode declared)"
done
equal "structures of the script: results of 64 bits are canonical in maps" "@many[32]: 1311769562975418072
@many[64]: 1311769562975418072
@n[32]: 2
@n[64]: 2" "$(grep '^@' declared.txt | sort)"
equal "structures of the script: nothing was lost" "status 0" "$(cat declared.err)"
equal "the programs print what they print untraced" "2 72 7 2 96 7" "$(echo $(cat out32.txt status32 out64.txt status64))"

# --- out of the programs' debug information ----------------------------------------------------------
cat >dwarf.wr <<'E'
uprobe:./mixed32:target, uprobe:./mixed64:target {
	$it = args.it;
	printf("%d target %d %d %s\n", bits, args.a, args.b, str(args.s));
	printf("%d scalars %c %d 0x%x %s\n", bits, $it->first, $it->l, $it->ll, func);
	printf("%d floats %.2f %.2f\n", bits, $it->d, $it->f);
	printf("%d bits %d %d %d\n", bits, $it->a, $it->b, $it->c);
	printf("%d nested %d %s\n", bits, $it->in.x, $it->in.tag);
	printf("%d array %d %d %d %d\n", bits, $it->arr[0], $it->arr[1], $it->arr[2], $it->arr[3]);
	printf("%d text %s\n", bits, str($it->name));
	printf("%d next %c %d %s %d\n", bits, $it->next->first, $it->next->l, str($it->next->name), $it->next->next == 0);
	printf("%d union 0x%x %d %d\n", bits, $it->u_int, $it->u_bytes[0], $it->u_bytes[3]);
	printf("%d size %d %d\n", bits, $it->size == sizeof(struct item), sizeof(counter) + sizeof($it));
	printf("%d offset %d\n", bits, offsetof(struct item, d));
	printf("%d global %d\n", bits, counter);
	printf("%d table %s\n", bits, str(table[1].name));
	printf("%d named %d %d %s %d\n", bits, args.a, args.b, str(args.s), (*args.it).arr[1]);
}
uprobe:./mixed*:many {
	printf("%d many 0x%x %d %d %d %d\n", bits, args.first, args.second, args.fourth, args.fifth, args.sixth);
	printf("%d stack %d %d 0x%x\n", bits, args.seventh, args.eighth != 0, args.ninth);
	if (bits == 32) {
		printf("%d floating %.2f %.2f\n", bits, args.third, args.tenth);
	}
}
uprobe:./mixed*:by_value { printf("%d by_value %d %d %d\n", bits, args.s.x, args.s.y, args.plus); }
uretprobe:./mixed*:target { printf("%d returned %d\n", bits, retval); }
uretprobe:./mixed*:many { printf("%d returned64 0x%x\n", bits, retval); }
uretprobe:./mixed*:by_value { printf("%d struct %d %d\n", bits, retval.x, retval.y); }
uretprobe:./mixed*:negative { printf("%d negative %d\n", bits, retval); }
E
trace dwarf dwarf.wr ./mixed32 ./mixed64
for mode in 32 64; do
	expected=$(expect $mode)
	[ $mode -eq 32 ] && expected=$(sed '/^stack/a floating 1.50 0.50' <<<"$expected")
	equal "debug information: all values of the $mode-bit program are right" "$expected" "$(of_mode $mode dwarf)"
done
equal "debug information: nothing was lost" "status 0" "$(cat dwarf.err)"

# --- points that see both and choose when they fire ---------------------------------------------------
cat >firing.wr <<'E'
struct pair { long a; void *b; };
syscall:write:entry /comm == "mixed32" || comm == "mixed64"/ {
	printf("%d write %d %s %d %d\n", bits, args.fd, str(args.buf), args.count, sizeof(struct pair));
	self->n = args.count;
}
syscall:write:return /self->n/ { printf("%d wrote %d %d\n", bits, retval, self->n); self->n = 0; }
tracepoint:sched:sched_process_exec { printf("%d exec %s\n", bits, args.filename); }
tracepoint:sched:sched_process_exit /comm == "mixed32" || comm == "mixed64"/ { printf("%d exit %s %d\n", bits, args.comm, sizeof(long)); }
profile:hz:999 /comm == "mixed32" || comm == "mixed64"/ { @samples[comm, bits] = count(); }
E
cat >spin.sh <<'E'
./mixed32 1500000 >out32.txt &
./mixed64 3000000 >out64.txt
wait
E
timeout 120 "$WEIR" probe -q -i firing.wr -c 'sh spin.sh' >firing.txt 2>firing.err
equal "one clause at system calls and tracepoints is right in a 32-bit program" "exec ./mixed32
write 1 1500000 72
 11 8
wrote 11 11
exit mixed32 4" "$(grep -A1 '^32 ' firing.txt | grep -v '^--\|^64\|^@' | sed 's/^32 //')"
equal "one clause at system calls and tracepoints is right in a 64-bit program" "exec ./mixed64
write 1 3000000 96
 11 16
wrote 11 11
exit mixed64 8" "$(grep -A1 '^64 \(exec ./\|w\|exit\)' firing.txt | grep -v '^--\|^32\|^@\|bin/sh' | sed 's/^64 //')"
# A sample inside execve has the new name and still the registers of the old program.
samples() { grep -F "@samples[$1, $2]:" firing.txt | sed 's/.*: //' | grep . || echo 0; }
for mode in 32 64; do
	right=$(samples mixed$mode $mode) wrong=$(samples mixed$mode $((96 - mode)))
	check "profile knows the mode of the $mode-bit program ($right of $((right + wrong)) samples)" \
		[ "$right" -ge 5 -a "$wrong" -le 1 ]
done
equal "points of both modes: nothing was lost" "" "$(cat firing.err)"

# --- static probes ------------------------------------------------------------------------------------
for mode in 32 64; do gcc -m$mode -O1 -o static$mode "$ROOT/tests/fixtures/probe/static_probe.c" || not_ok "the $mode-bit program with a static probe compiles"; done
cat >static.wr <<'E'
usdt:./static32:weirtest:fired, usdt:./static64:fired { printf("%d %d %s 0x%x %d %d\n", bits, arg0, str(arg1), arg2, arg3, arg4); }
E
timeout 120 "$WEIR" probe -q -O static.txt -i static.wr -c 'sh -c "./static32 >out32.txt & ./static64 >out64.txt; wait"' 2>static.err
for mode in 32 64; do
	equal "operands of a static probe in a $mode-bit program" "$mode -1 static text 0x1122334455667788 -7 -300
$mode 0 static text 0x1122334455667788 -7 -300" "$(grep "^$mode " static.txt)"
done
equal "semaphores of static probes are counted up, and down again" "semaphore 1 semaphore 1 semaphore 0 semaphore 0" \
	"$(echo $(cat out32.txt out64.txt) $(./static32) $(./static64))"

# --- the same as a stream in a file -------------------------------------------------------------------
timeout 120 "$WEIR" probe -q -o dwarf.wprobe -i dwarf.wr && timeout 120 "$WEIR" probe -q dwarf.wprobe -c 'sh both.sh ./mixed32 ./mixed64' >stream.txt 2>stream.err
for mode in 32 64; do
	equal "a stream out of a file: all values of the $mode-bit program are right" "$(of_mode $mode dwarf)" "$(of_mode $mode stream)"
done
