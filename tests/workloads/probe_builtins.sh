# SPDX-License-Identifier: MIT
# weir-test: root: names and functions of the probe language
# Names and functions in a 32-bit and a 64-bit program, compared with what the program itself prints.
. "$ROOT/tests/lib.sh"

cat >facts.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static unsigned char card[6] = {0x02, 0xab, 0x00, 0xff, 0x1c, 0x09}, v4[4] = {10, 1, 2, 3};
struct packet { long id; unsigned char mac[6], address[4]; char text[12]; };
__attribute__((noinline)) int facts(int n, const char *text, struct packet *p, char letter, long long wide,
	int a5, int a6, int a7, int a8, int a9, int a10, int a11)
{
	asm volatile("" ::: "memory");
	return n + (int)p->id + letter + (int)wide + a5 + a6 + a7 + a8 + a9 + a10 + a11;
}
int main(void)
{
	struct packet p = {7, {0}, {0}, "packet text"};
	const char *text = "the brown fox";

	memcpy(p.mac, card, 6);
	memcpy(p.address, v4, 4);
	prctl(PR_SET_NAME, "facts-thread");
	printf("process %d %d %d\n", getpid(), (int)syscall(SYS_gettid), getppid());
	printf("record { .n = -3, .text = %p, .p = %p, .letter = 120, .wide = -5, .a5 = 5, .a6 = 6, .a7 = 7, .a8 = 8, .a9 = 9, .a10 = 1010, .a11 = 1111 }\n",
		(void *)text, (void *)&p);
	printf("search %d %d %d\n", (int)(strstr(text, "brown") - text), strstr(text, "browns") != NULL, text[4]);
	printf("card %02X:%02X:%02X:%02X:%02X:%02X 10.1.2.3 %d\n", card[0], card[1], card[2], card[3], card[4],
		card[5], memcmp(card, v4, 4) < 0 ? -1 : 1);
	printf("call %d write\n", SYS_write);
	fflush(stdout);
	return facts(-3, text, &p, 'x', -5, 5, 6, 7, 8, 9, 1010, 1111) == 0;
}
C
cat >facts.wr <<'E2'
uprobe:FILE:facts {
	printf("process %d %d %d\n", pid(), tid(init), ppid(curtask));
	printf("record "); print(args);
	printf("search %d %d %d\n", strstr(str(args.text), "brown"), strcontains(str(args.text), "browns"), str(args.text)[4]);
	printf("card %s %s %d\n", macaddr(args.p->mac), ntop(args.p->address), memcmp(args.p->mac, args.p->address, 4));
	printf("call %d %s\n", __NR_write, syscall_name(__NR_write));
	printf("raw %d\n", bits == 64 ? arg10 : arg11);
	printf("rest %s %s %s %d %d %r %d\n", comm, probetype, username, usermode, cpid == pid, buf(args.p->text, 6), has_cpid);
	@record[args] = count();
}
E2
user=$(id -un)
for mode in 32 64; do
	gcc -m$mode -O1 -g -o facts$mode facts.c || not_ok "the $mode-bit program compiles"
	sed "s/FILE/.\/facts$mode/" facts.wr >facts$mode.wr
	# The program's output and weir's are kept apart, since -c shares the terminal.
	timeout 120 "$WEIR" probe -q -O weir$mode.txt -i facts$mode.wr -c ./facts$mode >own$mode.txt 2>weir$mode.err
	check "$mode bit: status 0, nothing lost" [ $? = 0 -a ! -s weir$mode.err ]
	[ -s weir$mode.err ] && cat weir$mode.err
	equal "$mode bit: what the program says of itself" "$(cat own$mode.txt)" "$(grep '^\(process\|record\|search\|card\|call\) ' weir$mode.txt)"
	# Word 10 of a 64-bit call; in 32-bit code the long long takes two words, so it is word 11.
	equal "$mode bit: arguments beyond the registers" "raw 1010" "$(grep '^raw' weir$mode.txt)"
	equal "$mode bit: names" "rest facts-thread uprobe $user 1 1 packet 1" "$(grep '^rest' weir$mode.txt)"
	equal "$mode bit: the record is a key" "@record[$(sed -n 's/^record //p' own$mode.txt)]: 1" "$(grep '^@record' weir$mode.txt)"
done
check "an address is a pointer of the mode" [ "$(grep -c 'text = 0x[0-9a-f]\{8\},' own32.txt)" = 1 ]

# --- system calls and errors have names in both modes ----------------------------------------------------------
cat >fails.c <<'C'
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	open("/no/such/file", O_RDONLY);
	puts(strerror(errno));
	return 0;
}
C
for mode in 32 64; do
	gcc -m$mode -O1 -o fails$mode fails.c || not_ok "the $mode-bit program compiles"
	timeout 120 "$WEIR" probe -q -O named$mode.txt -c ./fails$mode \
		'syscall:openat:return /retval == -ENOENT/ { self->n++; printf("%s\n", strerror(-retval)); } syscall:openat:entry { print(args); }' >own.txt 2>named.err
	equal "$mode bit: an error by its name" "$(cat own.txt)" "$(grep -v '^{' named$mode.txt | tail -n 1)"
	check "$mode bit: arguments of a system call as a record" grep -q '^{ .dfd = -100, .filename = 0x[0-9a-f]*, .flags = [0-9]*, .mode = 0 }' named$mode.txt
done

# --- messages ---------------------------------------------------------------------------------------------------
timeout 120 "$WEIR" probe 'begin { errorf("bad %d", 5); warnf("odd %s\n", "thing"); printf("printed\n"); }' >out.txt 2>messages.txt
equal "errorf and warnf: standard error, with their places" "-e:1:9-28: ERROR: bad 5
-e:1:30-56: WARNING: odd thing" "$(grep '^-e' messages.txt)"
equal "printf: standard output" "printed" "$(cat out.txt)"
timeout 120 "$WEIR" probe -q 'begin { errorf("bad"); warnf("odd"); }' >out.txt 2>messages.txt
equal "-q leaves warnings out" "-e:1:9-22: ERROR: bad" "$(cat out.txt messages.txt)"
timeout 120 "$WEIR" probe --no-warnings 'begin { errorf("bad"); warnf("odd"); }' >out.txt 2>messages.txt
equal "--no-warnings, too" "-e:1:9-22: ERROR: bad" "$(grep '^-e' messages.txt)"
timeout 120 "$WEIR" probe -q -f json 'begin { errorf("bad \"%d\"", 5); }' >out.txt 2>messages.txt
equal "JSON: type, message and place" "errorf bad \"5\" -e 1 9" "$(python3 -c '
import json
r = [json.loads(l) for l in open("out.txt") if "errorf" in l][0]
print(r["type"], r["msg"], r["filename"], r["line"], r["col"])')"
timeout 120 "$WEIR" probe -q 'begin { assert(nsecs > 0, "no"); assert(nsecs == 0, "100% sure"); printf("not here\n"); }' >out.txt 2>messages.txt
equal "assert ends the run where it does not hold" "1 -e:1:34-65: ERROR: assert failed: 100% sure" "$? $(cat out.txt messages.txt)"
timeout 120 "$WEIR" probe -q 'begin { if (bits == 32) { fail("not reached: %d", 7); } static_assert(sizeof(int16) == 2, "no"); print(1); }' >out.txt 2>&1
equal "what a constant condition leaves out does not fail" "1" "$(cat out.txt)"

# --- a compiled script that is kept -----------------------------------------------------------------------------
timeout 120 "$WEIR" probe -q -o kept.wprobe 'begin { print(kaddr("schedule")); }' >out.txt 2>messages.txt
equal "addresses of this kernel are for this run" "1 [not-here]" "$? $(grep -o '\[[a-z-]*\]$' messages.txt)"
timeout 120 "$WEIR" probe -q -o kept.wprobe 'begin { print((strerror(2), cgroup_path(1, "no*"), comm(1) != 0)); errorf("%d", 1); }' >out.txt 2>&1 ||
	timeout 120 "$WEIR" probe -q -o kept.wprobe 'begin { print((strerror(2), cgroup_path(1, "no*"))); }' >out.txt 2>&1
equal "names of numbers are found where the stream runs" "(No such file or directory, 1)" "$(timeout 120 "$WEIR" probe -q kept.wprobe 2>&1)"

# --- long texts ---------------------------------------------------------------------------------------------------
long=$(head -c 3900 /dev/zero | tr '\0' y)
timeout 120 "$WEIR" probe -q --strlen 4000 'begin { $t = str($1); @[$t] = strlen($t); print(strcontains($t, "yz")); }' "$long" >out.txt 2>messages.txt
equal "texts of thousands of characters are kept and searched" "0 false @[$long]: 3900" "$? $(echo $(cat out.txt))"
cat messages.txt

# --- the kernel's own trace ------------------------------------------------------------------------------------
mkdir trace
timeout 120 unshare -m bash -c 'mount -t tracefs t trace && "$0" probe -q "begin { debugf(\"%s|%4d|%x|%%\", comm, -5, 0x123456789a); }" && tail -n 20 trace/trace' "$WEIR" >traced.txt 2>&1
equal "debugf writes into the kernel's trace" "weir|  -5|123456789a|%" "$(sed -n 's/.*bpf_trace_printk: \(weir|.*\)/\1/p' traced.txt | tail -n 1)"
