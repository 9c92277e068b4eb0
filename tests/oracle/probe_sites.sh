#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where trace points are, against nm, readelf and the kernel: an instruction that is called good must
# be one that a uprobe can be put on, and one that is left out must be one that the kernel refuses.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
sites=$BUILD/tests/oracle/probe_sites
unset WEIR_DEBUG_PATH

cat >hold.c <<'END' # maps a file for execution, as a program of its mode would
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int n, char **v)
{
	int fd = open(v[1], O_RDONLY);
	long bytes = n < 2 || fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	if (mmap(0, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	if (write(1, "x", 1) != 1)
		return 1;
	return sleep(60);
}
END
have_32=
gcc -m32 -o hold32 hold.c 2>/dev/null && have_32=1

# filled FILE: waits until something is in it.
filled() {
	local i
	for ((i = 0; i < 400; i++)); do
		[ ! -s "$1" ] || return 0
		sleep 0.01
	done
}

# hold FILE COMMAND...: runs it while a 32-bit process has the file mapped.
hold() {
	local file=$1 pid rc
	shift
	./hold32 "$file" >held.txt &
	pid=$!
	filled held.txt
	"$@"
	rc=$?
	kill "$pid"
	wait "$pid" 2>/dev/null
	return $rc
}

# agrees SENTENCE COMMAND...: 0 is agreement, 2 that this machine cannot tell.
agrees() {
	local sentence=$1 rc
	shift
	"$@" >check.txt 2>&1
	rc=$?
	case $rc in
	0) ok "$sentence: $(tail -n 1 check.txt)" ;;
	2) skip "$sentence: $(tail -n 1 check.txt)" ;;
	*)
		not_ok "$sentence"
		head -n 25 check.txt
		;;
	esac
}

# --- the kernel's opinion -----------------------------------------------------------------------
# Copies, because a probe in the system's libc would slow down everything that runs.
"$sites" make ops64
cp ops64 ops32
agrees "every 64-bit opcode and prefix is taken or refused as the kernel does" "$sites" raw 64 ops64
cp -L /lib/x86_64-linux-gnu/libc.so.6 libc64.so 2>/dev/null || cp -L /lib64/libc.so.6 libc64.so
agrees "the kernel takes every function of a 64-bit libc that is called good" \
	"$sites" check 'uprobe:./libc64.so:*'
if [ -n "$have_32" ]; then
	agrees "every 32-bit opcode and prefix is taken or refused as the kernel does" \
		hold ops32 "$sites" raw 32 ops32
	cp -L "$(gcc -m32 -print-file-name=libc.so.6)" libc32.so
	agrees "the kernel takes every function of a 32-bit libc that is called good" \
		hold libc32.so "$sites" check 'uprobe:./libc32.so:*'
else
	skip "32-bit opcodes and functions are as the kernel has them: gcc -m32 does not work"
fi

# --- functions, against nm ----------------------------------------------------------------------
# Code of libc lies at the same place in the file and in the image.
"$sites" dump 'uprobe:./libc64.so:*' >ours.txt 2>/dev/null
nm -D --defined-only libc64.so | awk '$2 ~ /^[TtWw]$/ {sub(/^0*/, "", $1); print "0x" $1}' | sort -u >nm.txt
awk '{print $3}' ours.txt | sort -u >offsets.txt
check "every function that nm lists in libc has a site or a reason" \
	test -z "$(comm -23 nm.txt offsets.txt | grep -v '^0x$')"

# --- C++ -----------------------------------------------------------------------------------------
cat >over.cc <<'END'
namespace ns {
template <class T> T twice(T v) { return v + v; }
template int twice<int>(int);
int f(int v) { return v + 1; }
int f(const char *s) { return *s; }
struct C { int get() const; int v; };
int C::get() const { return v; }
}
int main() { return ns::f(1) + ns::f("a") + ns::twice(3) + ns::C{4}.get(); }
END
g++ -O0 -o over over.cc
count() { "$sites" dump "$1" 2>/dev/null | wc -l; }
equal "a C++ name means all overloads, with parameters one of them" "2 1 1 1 1 3" \
	"$(count 'uprobe:./over:ns::f') $(count 'uprobe:./over:ns::f(char const *)') \
$(count 'uprobe:./over:ns::twice') $(count 'uprobe:./over:ns::twice<int>(int)') \
$(count 'uprobe:./over:ns::C::get() const') $(count 'uprobe:./over:ns::[ft]*')"

# --- static probes, against readelf -------------------------------------------------------------
cat >static.c <<'END'
#if __SIZEOF_POINTER__ == 8
#define WORD ".8byte "
#else
#define WORD ".4byte "
#endif
unsigned short sema __attribute__((section(".probes"), used));
#define PROBE(name, sema, op, v)                                                                   \
	__asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"         \
			 ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n" \
			 "993: " WORD "990b\n" WORD "_.stapsdt.base\n" WORD sema "\n"             \
			 ".asciz \"prov\"\n.asciz \"" name "\"\n.asciz \"" op "\"\n994: .balign 4\n" \
			 ".popsection\n.ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\","  \
			 "\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n"               \
			 ".hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"                      \
			 ".size _.stapsdt.base,1\n.popsection\n.endif\n" ::"r"(v))
int main(int n, char **v)
{
	(void)v;
	PROBE("one", "sema", "-4@%0", n);
	PROBE("one", "sema", "-4@$7", n);
	PROBE("two", "0", "", n);
	return 0;
}
END
static_probes() { # MODE
	gcc "-m$1" -O1 -no-pie -o "static$1" static.c || return
	# provider, name, place and operands as readelf has them; its places are those of the image
	readelf -nW "static$1" | awk '/Provider:/ {p = $NF} /Name:/ {n = $2} /Location:/ {l = $2; sub(",", "", l); s = $NF}
		/Arguments:/ {sub(/^ *Arguments: ?/, ""); print p ":" n, l, (s ~ /^0x0*$/ ? "no" : "sema"), $0}' |
		while read -r name at sema rest; do
			segment=$(readelf -lW "static$1" | awk '$1 == "LOAD" && / R E / {print $2, $3; exit}')
			printf '0x%x %s %s %s\n' $((at - ${segment#* } + ${segment% *})) "$name" "$sema" "$rest"
		done | sort >readelf.txt
	"$sites" dump "usdt:./static$1:*" | awk '{s = $5 == "0x0" ? "no" : "sema"; o = $7 ~ /^\./ ? "" : $7
		print $3, $6, s, o}' | sort >ours.txt
	equal "static probes of a $1-bit program are those that readelf lists" \
		"$(sed 's/ *$//' readelf.txt)" "$(sed 's/ *$//' ours.txt)"
	equal "a $1-bit semaphore is found in the file" "$(nm "static$1" | awk '$3 == "sema"' | wc -l)" \
		"$("$sites" dump "usdt:./static$1:one" | awk '{print $5}' | sort -u | wc -l)"
}
static_probes 64
if [ -n "$have_32" ]; then static_probes 32; fi

# --- which file ----------------------------------------------------------------------------------
mkdir -p private other
echo 'int wanted(void) { return 1; }' |
	gcc -xc -shared -fPIC -Wl,-soname,libprivate.so.1 -o private/libprivate.so.1 -
# shellcheck disable=SC2016 # the loader expands it
echo 'int wanted(void); int main(void) { return wanted() - 1; }' |
	gcc -xc -o needs - -xnone private/libprivate.so.1 -Wl,-rpath,'$ORIGIN/private'
equal "a library of a command is found as the loader finds it" "wanted ./private/libprivate.so.1" \
	"$("$sites" dump uprobe:libprivate:wanted ./needs | awk '{print $6, $NF}')"
check "it is not found without the command" \
	grep -q '^not-found' <("$sites" dump uprobe:libprivate:wanted 2>&1)
printf '#! %s/needs\n' "$PWD" >script && chmod +x script
equal "the program of a script is its interpreter" "$PWD/needs" \
	"$("$sites" dump uprobe::main ./script | awk '{print $NF}')"
if unshare -m true 2>/dev/null; then
	# The library exists only in the mount namespace of the process.
	unshare -m bash -c "mount -t tmpfs none other && cp private/libprivate.so.1 other/libhidden.so.1 &&
		gcc -o other/hold hold.c && exec other/hold other/libhidden.so.1" >held2.txt &
	pid=$!
	filled held2.txt
	equal "a library of another mount namespace is found through its process" \
		"wanted /proc/$pid/root$PWD/other/libhidden.so.1" \
		"$("$sites" dump uprobe:libhidden:wanted "$pid" | awk '{print $6, $NF}')"
	kill "$pid"
	wait "$pid" 2>/dev/null || :
else
	skip "a library of another mount namespace is found: unshare is not permitted"
fi
