#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Plans for all functions of real images: against objdump, by running libraries with all of their
# functions hooked, and for each way in which a compiler can prepare a program. WEIR_SLOW=1: more images.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/hook_plan_dump
libraries=/usr/lib/x86_64-linux-gnu
unset WEIR_DEBUG_PATH

# --- objdump ----------------------------------------------------------------------------------

# image LABEL PATH MINIMUM
image() {
	local sentence="patches whole instructions of $1 that no branch leads into, as objdump sees them"
	if [ ! -f "$2" ]; then
		skip "$sentence: $2 is not installed"
	elif python3 "$ROOT/tests/oracle/hook_plan.py" "$dump" "$2" "$3" >"image.$1.txt" 2>&1; then
		ok "$sentence ($(head -n 1 "image.$1.txt"))"
	else
		not_ok "$sentence"
		head -n 20 "image.$1.txt"
	fi
}

images() {
	image redis-server /usr/bin/redis-server 3000
	image libsqlite3 $libraries/libsqlite3.so.0 1300
	[ -n "${WEIR_SLOW:-}" ] || return 0
	image libstdc++ $libraries/libstdc++.so.6 3500
	image libcrypto $libraries/libcrypto.so.3 5000
	image "the 32-bit libstdc++" /usr/lib32/libstdc++.so.6 3500
	image perl /usr/bin/perl 1500
	image bash /bin/bash 1500
	image python3.11 /usr/bin/python3.11 1300
	image cc1 "$(gcc -print-prog-name=cc1)" 20000
}
images &
image libc $libraries/libc.so.6 3000
image "the 32-bit libc" /lib32/libc.so.6 2000
wait

# --- hooked libraries ---------------------------------------------------------------------------

# works WORKLOAD LIBRARY MINIMUM: of calls
works() {
	local sentence="$2 computes the same with all of its functions hooked" calls
	if [ ! -f "$libraries/$2" ]; then
		skip "$sentence: it is not installed"
		return
	fi
	"$BUILD/tests/oracle/hook_plan_run" "$1" "$libraries/$2" >run.txt 2>&1 </dev/null
	calls=$(sed -n 's/^.* functions, \([0-9]*\) calls, same$/\1/p' run.txt)
	check "$sentence: $(head -n 1 run.txt)" test "${calls:-0}" -ge "$3"
}
if [ -z "${WEIR_SAN:-}" ]; then # the libraries' memory is nobody's to free
	works z libz.so.1 100
	works sqlite libsqlite3.so.0 100000
	works crypto libcrypto.so.3 1000
	works gmp libgmp.so.10 10000
	works m libm.so.6 1000
fi

# --- compilers ----------------------------------------------------------------------------------

cat >program.c <<'C'
int other(int x);
static int __attribute__((noinline)) inner(int x) { return x * 3 + other(x); }
int outer(int a, int b)
{
	int s = 0;

	for (int i = 0; i < a; i++)
		s += other(i) * b + inner(i);
	return s;
}
int __attribute__((noinline, noclone)) leaf(int x) { return x + 1; }
int __attribute__((weak)) other(int x) { return x ^ 5; }
int main(int argc, char **argv) { return argv ? outer(argc, 2) + leaf(argc) : 1; }
C
names=inner,leaf,main,other,outer

# hooked SENTENCE METHODS FLAGS...: all functions of the program, with these flags
hooked() {
	local sentence=$1 methods=$2
	shift 2
	if ! gcc -O2 -o program program.c "$@" 2>build.txt; then
		skip "$sentence: gcc cannot build with $*"
		return
	fi
	equal "$sentence ($*)" "$methods" \
		"$("$dump" list "$names" program | sort -k 8 | awk '{ print $1 }' | uniq | tr '\n' ' ' | sed 's/ $//')"
}
hooked "hooks plain functions by jumps" jump
hooked "hooks functions that begin with endbr" jump -fcf-protection
hooked "hooks position-dependent functions" jump -no-pie -fno-pic
hooked "uses the nops of a patchable program" nop -fpatchable-function-entry=5
hooked "uses the nops behind endbr" nop -fpatchable-function-entry=8 -fcf-protection
hooked "uses the nops of a position-dependent program" nop -fpatchable-function-entry=8 -fcf-protection \
	-no-pie -fno-pic
hooked "uses the nops of a program with packed relocations" nop -fpatchable-function-entry=8 -fcf-protection \
	-Wl,-z,pack-relative-relocs
hooked "uses calls of mcount" mcount -pg
hooked "uses calls of mcount through stubs" mcount -pg -no-pie -fno-pic
hooked "uses calls of __fentry__" mcount -pg -mfentry
hooked "uses calls of __fentry__ through stubs" mcount -pg -mfentry -no-pie -fno-pic
hooked "uses calls of __cyg_profile_func_enter" instrument -finstrument-functions
equal "replaces the stubs of both" "4 1
4 2" "$("$dump" extras "$names" program | awk '{ print $1, $2 }' | sort)"
# What is told to __cyg_profile_func_enter is the function's return address, which a hook would have replaced.
hooked "patches what it may where there are no such stubs" "jump refused" -finstrument-functions -fno-plt
hooked "hooks 32-bit functions" jump -m32
hooked "hooks position-dependent 32-bit functions" jump -m32 -no-pie -fno-pic
hooked "uses the nops of a 32-bit program" nop -m32 -fpatchable-function-entry=5
names=${names/main,/} # has too much before the call
hooked "uses 32-bit calls of mcount" mcount -m32 -pg
hooked "uses 32-bit calls of mcount through stubs" mcount -m32 -pg -no-pie -fno-pic
hooked "uses 32-bit calls of __cyg_profile_func_enter" instrument -m32 -finstrument-functions

equal "finds the allocators of libc" "calloc malloc memalign posix_memalign pvalloc realloc reallocarray valloc" \
	"$("$dump" list @ $libraries/libc.so.6 | awk '$1 == "jump" { print $8 }' | sed 's/^__libc_//; s/^aligned_alloc$/memalign/' | sort | tr '\n' ' ' | sed 's/ $//')"
check "finds operator new" grep -q '_Znwm$' <("$dump" list @ $libraries/libstdc++.so.6)
equal "wants makecontext, prctl, syscall, mprotect and pkey_mprotect of libc" "5 7 8 9 9" \
	"$("$dump" extras nothing $libraries/libc.so.6 2>/dev/null | awk '$1 == 5 { print $2 }' | sort | tr '\n' ' ' | sed 's/ $//')"

# A switch whose table leads to the function's first instructions.
cat >switch.s <<'S'
	.section .note.GNU-stack,"",@progbits
	.text
	.globl interpret, plain
	.hidden interpret
	.type interpret, @function
interpret:
	movzbl (%rdi), %eax
	inc %rdi
	cmp $2, %eax
	ja 1f
	lea table(%rip), %rdx
	movslq (%rdx,%rax,4), %rax
	add %rdx, %rax
	jmp *%rax
1:	ret
	.size interpret, . - interpret
	.balign 16
	.type plain, @function
plain:
	mov %edi, %eax
	lea 2(%rax), %eax
	ret
	.size plain, . - plain
	.section .rodata
	.balign 4
table:	.long interpret - table, 1b - table, interpret - table
S
gcc -shared -o switch.so switch.s
equal "does not hook where a table leads back to the first instruction" \
	"interpret # a loop leads back to its first instruction
plain" "$("$dump" list 'interpret,plain' switch.so | cut -d ' ' -f 8-)"

if [ -z "${WEIR_SAN:-}" ]; then
	big=$(gcc -print-prog-name=cc1)
	read -r ns functions <<<"$(for _ in 1 2 3; do "$dump" time '*' "$big"; done | sort -n | head -n 1)"
	check "plans the $functions functions of $(basename "$big") in under a second of processor time ($((ns / 1000)) us)" \
		test "$ns" -lt 1000000000
fi
