# SPDX-License-Identifier: MIT
# weir-test: root: system calls of both modes
# System calls by name in 32-bit and 64-bit programs: other numbers, other registers, calls that only one
# mode has, and a 32-bit call out of a 64-bit program.
. "$ROOT/tests/lib.sh"

program=$ROOT/tests/fixtures/probe/calls.c
gcc -m64 -O1 -o calls64 "$program" || { not_ok "the 64-bit program compiles" && finish; }
if ! gcc -m32 -O1 -o calls32 "$program" 2>gcc.txt; then
	skip "system calls of both modes: gcc -m32 does not work here"
	finish
fi
head -c 40 /dev/zero | tr '\0' x >calls-input.txt
cat >both.sh <<'E'
./calls32 >out32.txt &
./calls64 >out64.txt
echo $? >status64
wait $!
echo $? >status32
E

cat >calls.wr <<'E'
#!/usr/bin/env -S weir probe
syscall:openat:entry /(comm == "calls32" || comm == "calls64") && args.flags & 0x20000/ {
	printf("%d openat %d %s 0x%x\n", bits, args.dfd, str(args.filename), args.flags);
	self->opens = 1;
}
syscall:openat:return /self->opens/ { printf("%d opened %d\n", bits, retval); self->opens = 0; }
syscall:read:entry /args.count == 64/ { self->buffer = args.buf; }
syscall:read:return /self->buffer != 0/ { printf("%d read %d %s\n", bits, retval, str(self->buffer, 5)); self->buffer = 0; }
tracepoint:syscalls:sys_enter_write /comm == "calls32" || comm == "calls64"/ {
	printf("%d write %d %s %d %s", bits, args.fd, probe, args.count, str(args.buf));
}
tracepoint:syscalls:sys_exit_write /comm == "calls32" || comm == "calls64"/ { printf("%d wrote %d %d\n", bits, retval, args.ret); }
syscall:mmap2:entry /args.len == 28672/ { printf("%d mmap2 %d %d %d\n", bits, args.len, args.prot, args.pgoff); }
syscall:mmap:entry /bits == 64/ { if (arg1 == 28672) { printf("%d mmap %d %d %d\n", bits, arg1, arg2, arg5); } }
syscall:_llseek:entry { printf("%d _llseek 0x%x 0x%x %d\n", bits, args.offset_high, args.offset_low, args.whence); self->at = args.result; }
syscall:_llseek:return { printf("%d at 0x%x %d\n", bits, *(uint64 *)self->at, retval); }
syscall:getpid:entry /comm == "calls64"/ { printf("int80 %d getpid\n", bits); self->getpid = 1; }
syscall:getpid:return /self->getpid/ { printf("int80 %d pid %d\n", bits, retval == pid); self->getpid = 0; }
syscall:munmap:entry,syscall:close:entry /comm == "calls32" || comm == "calls64"/ { @entries[comm, probe] = count(); }
syscall:* /comm == "calls32" || comm == "calls64"/ { @all[bits] = count(); }
E
timeout 120 "$WEIR" probe -q -i calls.wr -c 'sh both.sh' >all.txt 2>all.err
rc=$?
of_mode() { grep "^$1 " all.txt | cut -d' ' -f2-; }
equal "calls of a 32-bit program have their names, arguments and results" "openat -100 calls-input.txt 0xa0000
opened 3
openat -100 calls-missing.txt 0x20000
opened -2
read 40 xxxxx
mmap2 28672 1 7
_llseek 0x12 0x34567890 0
at 0x1234567890 0
write 1 syscall:write:entry 13 calls-output
wrote 13 13" "$(of_mode 32)"
equal "calls of a 64-bit program have their names, arguments and results" "openat -100 calls-input.txt 0xa0000
opened 3
openat -100 calls-missing.txt 0x20000
opened -2
read 40 xxxxx
mmap 28672 1 28672
write 1 syscall:write:entry 13 calls-output
wrote 13 13" "$(of_mode 64)"
equal "a 32-bit call of a 64-bit program is a 32-bit one" "32 getpid
32 pid 1" "$(grep '^int80 ' all.txt | cut -d' ' -f2-)"
equal "nothing was lost" "0 " "$rc $(cat all.err)"
equal "the programs do what they do untraced" "40 40" "$(cat status32) $(cat status64)"

n32=$(grep -F '@all[32]' all.txt | sed 's/.*: //') n64=$(grep -F '@all[64]' all.txt | sed 's/.*: //')
check "a glob sees the calls of both ($n32, $n64)" [ "${n32:-0}" -ge 30 -a "${n64:-0}" -ge 30 ]

# Lists, short forms and globs; a call of one mode alone.
timeout 120 "$WEIR" probe -q 't:syscalls:sys_enter_open* /comm == "calls32" || comm == "calls64"/ { @[probe, bits] = count(); }
syscall:fstat*:entry, syscall:stat*:entry, syscall:newfstatat:entry, syscall:statx { @stat[comm, bits] = count(); }
syscall:close,syscall:munmap { @[probe, bits] = count(); }' -c 'sh both.sh' >globs.txt 2>globs.err
equal "globs and lists: probe is the call, in both modes" "2" \
	"$(grep -c '^@\[syscall:openat:entry, \(32\|64\)\]: [2-9]' globs.txt)"
equal "a call without entry or return is its entry" "@[syscall:munmap:entry, 32]: @[syscall:munmap:entry, 64]:" \
	"$(echo $(grep -o '^@\[syscall:munmap:[a-z]*, [0-9]*\]:' globs.txt | sort))"

timeout 120 "$WEIR" probe -q 'syscall:openatt:entry { exit(); }' >none.txt 2>none.err
equal "a call that does not exist is an error with place and tag" "1 -e:1:1: error: [not-found]" \
	"$? $(head -n 1 none.err | sed 's/error: .* \[/error: [/')"
timeout 120 "$WEIR" probe -l 'syscall:*llseek*' >list.txt
equal "-l lists calls of either mode" "syscall:_llseek:entry syscall:_llseek:return" "$(echo $(cat list.txt))"
