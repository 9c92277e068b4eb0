#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The symbol tables of system images and of programs built here, against nm and objdump.
# weir-test: patient
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/symtab_dump
unset WEIR_DEBUG_PATH

# compare SENTENCE IMAGE MINIMUM NM-INPUT...
compare() {
	local sentence=$1 image=$2 minimum=$3
	shift 3
	if python3 "$ROOT/tests/oracle/symtab_nm.py" "$dump" "$image" "$minimum" "$@" >compare.txt 2>&1; then
		ok "$sentence: $(head -n 1 compare.txt)"
	else
		not_ok "$sentence"
		head -n 20 compare.txt
	fi
}

# has_symtab FILE
has_symtab() { readelf -SW "$1" 2>/dev/null | grep -q ' SYMTAB '; }

# system_image LABEL PATH MINIMUM: with its own tables, or those of its debug file when installed.
system_image() {
	local label=$1 path=$2 minimum=$3 debug inputs
	if [ ! -f "$path" ]; then
		skip "resolves every function of $label as nm lists it: $path is not installed"
		return
	fi
	inputs=("-D:$path")
	if has_symtab "$path"; then
		inputs+=("$path")
	elif debug=$("$dump" debug "$path"); then
		inputs+=("$debug")
	fi
	compare "resolves every function of $label as nm lists it" "$path" "$minimum" "${inputs[@]}"
}

system_image libc /usr/lib/x86_64-linux-gnu/libc.so.6 1000
system_image ld-linux "$(readlink -f /lib64/ld-linux-x86-64.so.2)" 50
system_image libstdc++ /usr/lib/x86_64-linux-gnu/libstdc++.so.6 1000
system_image perl /usr/bin/perl 1000
system_image python3.11 /usr/bin/python3.11 1000
system_image bash /bin/bash 1000
system_image sqlite3 /usr/bin/sqlite3 100 # it exports nothing: stubs only
system_image libsqlite3 /usr/lib/x86_64-linux-gnu/libsqlite3.so.0 500
system_image "gcc's cc1" "$(gcc -print-prog-name=cc1)" 1000
system_image "the 32-bit libc" /lib32/libc.so.6 1000
system_image libLLVM /usr/lib/x86_64-linux-gnu/libLLVM-14.so.1 1000

cat >program.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int __attribute__((noinline)) square(int x) { return x * x; }
int __attribute__((noinline)) cube(int x) { return x * square(x); }
int alias(int x) __attribute__((alias("cube")));
int weak_alias(int x) __attribute__((weak, alias("cube")));
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
/* A function with a size inside another, a label without one, and code without any size. */
__asm__(".text\n"
	".globl outer\n.type outer, @function\nouter:\n\tnop\n\tnop\n"
	"no_size_label:\n\tnop\n"
	".type inner, @function\ninner:\n\tnop\n\tnop\n\tret\n.size inner, . - inner\n"
	"\tnop\n\tret\n.size outer, . - outer\n"
	".globl sizeless\nsizeless:\n\tnop\n\tnop\n\tret\n"
	".globl sizeless_too\nsizeless_too:\n\tnop\n\tret\n");
int main(int argc, char **argv)
{
	int v[] = {3, 1, 2};

	(void)argv;
	qsort(v, 3, sizeof(v[0]), order);
	printf("%zu\n", strlen(getenv("HOME") ? getenv("HOME") : ""));
	return cube(v[argc % 3]) == 0;
}
C

# build OUT FLAGS...
can_build() {
	local out=$1
	shift
	gcc -O1 -g -o "$out" program.c "$@" 2>build.txt
}
build() {
	can_build "$@" && return
	not_ok "gcc builds $*"
	head -n 20 build.txt
	return 1
}
stubs() { "$dump" list "$1" | awk '$3 == 5 { print $4 }' | sort | tr '\n' ' '; }

build plain && compare "resolves a program with its own .symtab, nested functions and labels included" \
	plain 30 plain
equal "says that names came from the image" symtab+plt "$("$dump" sources plain)"
build lazy -no-pie -Wl,-z,lazy && compare "resolves lazy PLT stubs" lazy 30 lazy
check "names the stub of qsort" grep -q 'qsort@plt' <<<"$(stubs lazy)"
build ibt -Wl,-z,ibtplt -fcf-protection && compare "resolves .plt.sec stubs" ibt 30 ibt
check "names .plt.sec stubs" grep -q 'qsort@plt' <<<"$(stubs ibt)"
build got -fno-plt -Wl,-z,now && compare "resolves a program without lazy stubs" got 30 got
build static -static && compare "resolves a static program with its indirect functions" static 1000 static
check "names the stubs of indirect functions" grep -q 'strcpy@plt' <<<"$(stubs static)"
if can_build plain32 -m32; then
	compare "resolves a 32-bit program" plain32 30 plain32
	check "names 32-bit stubs that jump relative to ebx" grep -q 'qsort@plt' <<<"$(stubs plain32)"
	build fixed32 -m32 -no-pie -fno-pic &&
		compare "resolves a 32-bit program at a fixed address" fixed32 30 fixed32
	check "names 32-bit stubs that jump to an absolute slot" grep -q 'qsort@plt' <<<"$(stubs fixed32)"
else
	skip "resolves 32-bit programs: gcc cannot build them (gcc-multilib)"
fi

# split NAME FLAGS...: NAME.full, NAME (stripped, with debuglink) and NAME.debug
split() {
	local name=$1
	shift
	build "$name.full" "$@" &&
		objcopy --only-keep-debug "$name.full" "$name.debug" &&
		strip -o "$name" "$name.full" &&
		objcopy --add-gnu-debuglink="$name.debug" "$name"
}
split linked
compare "finds the debug file beside the image" linked 30 linked.full
equal "says which debug file it took" "debug file $PWD/linked.debug" \
	"$("$dump" sources linked | sed 's/dynsym+//; s/+plt//')"
mkdir -p .debug && mv linked.debug .debug/
compare "finds the debug file in .debug" linked 30 linked.full
mkdir -p "root$PWD" && mv .debug/linked.debug "root$PWD/"
WEIR_DEBUG_PATH=/nonexistent:$PWD/root compare "finds the debug file by debuglink below WEIR_DEBUG_PATH" \
	linked 30 linked.full
equal "does not look there unless told" "no separate debug file is installed" "$("$dump" debug linked)"

id=$(readelf -n linked | awk '/Build ID/ { print $3 }')
mkdir -p "ids/.build-id/${id:0:2}"
mv "root$PWD/linked.debug" "ids/.build-id/${id:0:2}/${id:2}.debug"
objcopy --remove-section .gnu_debuglink linked
WEIR_DEBUG_PATH=$PWD/ids compare "finds the debug file by build-id" linked 30 linked.full
split other -DOTHER=1 -O2
cp other.debug "ids/.build-id/${id:0:2}/${id:2}.debug"
equal "refuses a debug file with another build-id" \
	"'$PWD/ids/.build-id/${id:0:2}/${id:2}.debug': is the debug file of another build: has another build-id" \
	"$(WEIR_DEBUG_PATH=$PWD/ids "$dump" debug linked)"

split crc -Wl,--build-id=none
compare "finds a debug file without build-id by its CRC" crc 30 crc.full
printf x >>crc.debug
equal "refuses a debug file with another CRC" "'$PWD/crc.debug': is the debug file of another build: CRC is wanted, it has" \
	"$("$dump" debug crc | sed 's/ 0x[0-9a-f]\{8\}//g')"
build self.full && objcopy --add-gnu-debuglink=self.full self.full self && mv self self.full &&
	equal "does not take an image for its own debug file" "no separate debug file is installed" \
		"$("$dump" debug self.full)"

build mini.full
nm -D mini.full --format=posix --defined-only | awk '{ print $1 }' | sort >dynamic.txt
nm mini.full --format=posix --defined-only | awk '$2 ~ /[TtDd]/ { print $1 }' | sort >all.txt
comm -13 dynamic.txt all.txt >keep.txt
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep.txt \
	mini.full mini.data 2>/dev/null
objcopy --only-keep-debug mini.data mini.debug
xz -kf mini.debug
strip --strip-all -o mini mini.full
objcopy --add-section .gnu_debugdata=mini.debug.xz mini
compare "reads mini debug information" mini 30 mini.debug
equal "says that names came from it" debugdata "$("$dump" sources mini | sed 's/dynsym+//; s/+plt//')"

# Three address spaces, all different: the library's linker base is not 0, its text has a distance
# of its own from there, and of two copies only one can be loaded where the linker wished.
cat >loader.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	void *first = dlopen("./spaces.so", RTLD_NOW), *second = dlopen("./spaces2.so", RTLD_NOW);
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	if (!first || !second || !maps)
		return 1;
	printf("cube %llx\n", (unsigned long long)(unsigned long)dlsym(second, "cube"));
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, " r-xp ") && strstr(line, "spaces2.so"))
			fputs(line, stdout);
	return 0;
}
C
build spaces.so -shared -fPIC -Wl,-z,separate-code -Wl,-Ttext-segment=0x10000000 \
	-Wl,--section-start=.text=0x10203040 && cp spaces.so spaces2.so && gcc -o loader loader.c
compare "resolves a library whose addresses are no file offsets" spaces.so 30 spaces.so
./loader >run.txt || not_ok "the loader of the library runs"
vaddr=$((16#$(awk '/^cube/ { print $2 }' run.txt)))
iaddr=$((16#$(nm spaces.so | awk '$3 == "cube" { print $1 }')))
found='' foff=''
while read -r range _ offset _; do
	start=$((16#${range%-*})) end=$((16#${range#*-}))
	if [ $vaddr -ge $start ] && [ $vaddr -lt $end ]; then
		base=$((16#$("$dump" map spaces.so "$offset")))
		found=$((base + vaddr - start))
		foff=$((16#$offset + vaddr - start))
	fi
done < <(grep -v ^cube run.txt)
equal "goes from a mapping to the linker address" "$iaddr" "$found"
check "that library really has three different addresses" \
	test "$vaddr" -ne "$iaddr" -a "$iaddr" -ne "${foff:-$iaddr}" -a "$vaddr" -ne "${foff:-$vaddr}"

# One copy: the kernel's list changes whenever anybody loads a BPF program.
cat /proc/kallsyms >kallsyms.txt
kernel=$("$dump" kallsyms kallsyms.txt 2>err.txt | sed 1d | awk '{ print $1, $4 }' | wc -l)
if [ -s err.txt ]; then
	skip "reads the kernel's symbols: $(cat err.txt)"
else
	"$dump" kallsyms kallsyms.txt | sed 1d | awk '{ print $1 }' | sort >ours.txt
	awk '$2 ~ /^[tTwW]$/ { sub(/^0+/, "", $1); print $1 == "" ? "0" : $1 }' kallsyms.txt | sort -u >theirs.txt
	check "has a kernel function at every text address of kallsyms ($kernel)" diff -q ours.txt theirs.txt
fi

# Speed in CPU time, where no sanitizer slows it down: the fastest of five.
fastest() { for _ in 1 2 3 4 5; do "$@" | head -n 1; done | sort -n | head -n 1; }
if [ -z "${WEIR_SAN:-}" ]; then
	big=/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1
	[ -f "$big" ] || big=$(gcc -print-prog-name=cc1)
	read -r ns symbols <<<"$(fastest "$dump" time "$big")"
	check "loads the $symbols symbols of $(basename "$big") in under 100 ms ($((ns / 1000)) us)" \
		test "$ns" -lt 100000000
	if [ "$kernel" -gt 0 ]; then
		ns=$(fastest "$dump" kallsyms /proc/kallsyms)
		check "loads kallsyms in under 100 ms ($((ns / 1000)) us)" test "$ns" -lt 100000000
	fi
fi
