#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sizes, offsets and bit-fields as compilers make them, printed by the programs themselves, against
# what is read from their debug information; and the kernel's BTF against what the kernel promises.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/type_dump
fixture=$ROOT/tests/fixtures/probe_types

# agrees SENTENCE PROGRAM [FILE]: FILE (the program itself) says of its types what the program says.
agrees() {
	"./$2" >want.txt
	"$dump" "${3:-./$2}" <want.txt >got.txt 2>&1
	if [ "$(wc -l <want.txt)" -gt 20 ] && cmp -s want.txt got.txt; then
		ok "$1: $(wc -l <want.txt) answers"
	else
		not_ok "$1"
		diff want.txt got.txt | head -n 20
	fi
}

# builds SENTENCE PROGRAM COMMAND...: the compiler can do this; else the sentence is skipped.
builds() {
	local sentence=$1 program=$2
	shift 2
	rm -f -- "$program"
	if "$@" -no-pie -w -o "$program" >build.txt 2>&1; then return 0; fi
	skip "$sentence: $1 cannot build it here: $(head -n 1 build.txt)"
	return 1
}

for bits in 32 64; do
	for cc in gcc clang; do
		for options in "-gdwarf-4" "-gdwarf-5 -O2"; do
			s="C types of $cc -m$bits $options"
			# shellcheck disable=SC2086
			builds "$s" prog $cc -m$bits -g $options "$fixture.c" && agrees "$s" prog
		done
	done
	s="C types of gcc -m$bits -gdwarf-2 -O2, with bit-fields counted from the other end"
	builds "$s" prog gcc -m$bits -g -gdwarf-2 -gstrict-dwarf -O2 "$fixture.c" && agrees "$s" prog
done
for cc in g++ clang++; do
	s="C++ types of $cc -m32"
	builds "$s" prog $cc -m32 -g "$fixture.cc" && agrees "$s" prog
done
s="C++ types of g++ -fdebug-types-section, in type units"
builds "$s" prog g++ -g -fdebug-types-section "$fixture.cc" && agrees "$s" prog
s="types in .debug_types, where DWARF 4 has them"
builds "$s" prog gcc -g -gdwarf-4 -fdebug-types-section "$fixture.c" && agrees "$s" prog
s="types in a .dwo file"
builds "$s" prog gcc -g -gsplit-dwarf "$fixture.c" && agrees "$s" prog
s="types of a program optimized at link time"
builds "$s" prog gcc -g -O2 -flto "$fixture.c" && agrees "$s" prog
s="types in compressed sections of a separate debug file"
if builds "$s" prog gcc -g -gz "$fixture.c"; then
	objcopy --only-keep-debug prog prog.debug
	objcopy --strip-debug --add-gnu-debuglink=prog.debug prog
	agrees "$s" prog
fi
s="types that dwz moved to a shared file"
if ! command -v dwz >/dev/null; then
	skip "$s: dwz is not installed"
elif builds "$s" one gcc -g "$fixture.c" && builds "$s" two g++ -g "$fixture.cc" &&
	builds "$s" three gcc -g -O1 "$fixture.c"; then
	dwz -m shared.debug one two three 2>build.txt
	agrees "$s" one
fi

if [ -r /sys/kernel/btf/vmlinux ]; then
	cat >want.txt <<-'END'
		type|struct task_struct|comm|char[16]
		size|struct list_head|16
		offset|struct list_head|prev|8|8
		type|struct list_head|next|struct list_head *
		size|u64|8
		size|struct pt_regs|168
		offset|struct pt_regs|sp|152|8
		type|struct task_struct|mm.owner|struct task_struct *
		bits|struct iphdr|ihl|0|4|unsigned
		bits|struct iphdr|version|4|4|unsigned
		size|struct no_such_struct|none
		variable|jiffies|none
	END
	"$dump" btf <want.txt >got.txt 2>&1
	equal "the kernel's BTF has what the kernel promises" "$(cat want.txt)" "$(cat got.txt)"
	if command -v pahole >/dev/null; then
		# It tells by standard error which kinds of a newer kernel it does not know.
		pahole -F btf --sizes --structs /sys/kernel/btf/vmlinux 2>pahole.txt | awk '!seen[$1]++ { print "size|struct " $1 "|" $2 }' |
			grep -v '|struct (' | awk 'NR % 97 == 0' >want.txt
		"$dump" btf <want.txt >got.txt 2>&1
		check "pahole knows structures of this kernel" test -s want.txt
		equal "sizes of $(wc -l <want.txt) structures are those of pahole" "$(cat want.txt)" "$(cat got.txt)"
	else
		skip "sizes of the kernel's structures are those of pahole: pahole is not installed"
	fi
else
	skip "the kernel's BTF has what the kernel promises: /sys/kernel/btf/vmlinux is not there"
fi
