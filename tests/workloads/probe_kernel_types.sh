# SPDX-License-Identifier: MIT
# weir-test: root: system calls and tracepoints are traced
# Structures that programs hand to system calls, by the kernel's own types: 32-bit programs have other layouts.
# Fields of tracepoints that point to structures of the kernel.
. "$ROOT/tests/lib.sh"

[ -r /sys/kernel/btf/vmlinux ] || { skip "types of the kernel: it does not tell them" && finish; }
cat >handed.wr <<'E2'
syscall:nanosleep:entry { printf("waits %d %d\n", args.rqtp.tv_sec, args.rqtp->tv_nsec); }
syscall:clock_nanosleep:entry, syscall:clock_nanosleep_time64:entry { printf("waits again %d\n", args.rqtp->tv_nsec); }
syscall:writev:entry {
	$second = args.vec + 1;
	printf("writes %d %d %s\n", args.vec->iov_len, $second->iov_len, str((char *)args.vec[1].iov_base));
}
syscall:clock_gettime:entry { self->tp = args.tp; }
syscall:clock_gettime:return /self->tp != 0/ { printf("time %d %d\n", self->tp->tv_sec, self->tp->tv_nsec); self->tp = 0; }
E2
for bits in 64 32; do
	gcc -m$bits -O1 -o handed$bits "$ROOT/tests/fixtures/probe/handed.c" 2>gcc.txt || {
		skip "structures of $bits-bit programs: gcc -m$bits does not work here"
		continue
	}
	timeout 120 "$WEIR" probe -q -i handed.wr -c "sh -c './handed$bits >said$bits.txt'" >out$bits.txt 2>err$bits.txt
	grep -E '^(waits|writes|time)' out$bits.txt >ours.txt
	equal "structures of a $bits-bit program have the fields that it has put there" "$(cat said$bits.txt)" "$(cat ours.txt)"
done
timeout 120 "$WEIR" probe -q -e 'syscall:nanosleep:entry { if (bits == 32) { print(sizeof(*args.rqtp)); } }' --dry-run >dry.txt 2>&1
check "a structure of a system call has a size" [ -s dry.txt ]

timeout 120 "$WEIR" probe --dry-run -e 'tracepoint:napi:napi_poll { printf("%s", args.napi->dev->name); }' >napi.txt 2>&1
rc=$?
if grep -q 'not-found\|no-tracefs\|kernel-lacks' napi.txt; then
	skip "pointers in tracepoints have the kernel's types: there is no napi:napi_poll"
else
	equal "pointers in tracepoints have the kernel's types" 0 "$rc"
fi
timeout 120 "$WEIR" probe --dry-run -e 'syscall:writev:entry { print(args.vec->nothing); }' >wrong.txt 2>&1
check "a field that such a structure has not is an error with its name" grep -q "struct compat_iovec has no field 'nothing'" wrong.txt
# A structure that only the kernel has is the kernel's, also at a system call and in both modes.
"$WEIR" probe -q 'syscall:getcwd:entry { $v = curtask.fs.pwd.mnt; $m = (struct mount *)((uint64)$v - offsetof(struct mount, mnt)); printf("%d %d\n", bits, $m->mnt.mnt_root == $v->mnt_root); }' \
	-c 'perl -MPOSIX -e "POSIX::getcwd()"' >mount.txt 2>mount.err
equal "a structure of the kernel is read at a system call" "64 1" "$(sort -u mount.txt)"
# --- enumerators keep their names, of the kernel and of programs ------------------------------------------------
"$WEIR" probe -q 'begin { $t = BPF_MAP_TYPE_ARRAY; printf("%d %s %s\n", $t, $t, BPF_MAP_TYPE_HASH); print(BPF_MAP_TYPE_HASH + 1); @[$t] = count(); }' >kernel.txt 2>&1
equal "enumerators of the kernel have names and numbers" "2 BPF_MAP_TYPE_ARRAY BPF_MAP_TYPE_HASH 2 @[BPF_MAP_TYPE_ARRAY]: 1" "$(echo $(cat kernel.txt))"
cat >refused.py <<'E'
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", 9))
for _ in range(2):
    try:
        s.send(b"x")
    except ConnectionRefusedError:
        pass
E
"$WEIR" probe -q 'tracepoint:skb:kfree_skb { $r = args.reason; @[$r, $r == SKB_DROP_REASON_NO_SOCKET] = count(); printf("%d\n", args.reason); }' -c 'python3 refused.py' >dropped.txt 2>&1
equal "enumerators in records of tracepoints have names" "SKB_DROP_REASON_NO_SOCKET, true" "$(grep -o 'SKB_DROP_REASON_NO_SOCKET, true' dropped.txt)"
cat >colours.c <<'C'
#include <stdio.h>
enum colour { RED = 1, GREEN = 5, DARK = -3 };
__attribute__((noinline)) int paint(enum colour c) { __asm__ volatile(""); return c; }
int main(void)
{
	printf("GREEN %d DARK %d %d\n", GREEN, DARK, (int)sizeof(enum colour));
	fflush(stdout);
	return paint(DARK) == GREEN;
}
C
for bits in 64 32; do
	gcc -m$bits -g -O1 -o colours$bits colours.c 2>gcc.txt || { skip "enumerators of $bits-bit programs: gcc -m$bits does not work here" && continue; }
	timeout 120 "$WEIR" probe -q -O enums.txt "uprobe:./colours$bits:paint /args.c == DARK/ { printf(\"%s %d %s %d %d\n\", GREEN, GREEN, DARK, DARK, sizeof(DARK)); @[RED] = count(); }" -c ./colours$bits >said.txt 2>&1
	equal "enumerators of a $bits-bit program have names and numbers" "$(cat said.txt) @[RED]: 1" "$(echo $(cat enums.txt))"
done
finish
