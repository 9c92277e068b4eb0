#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Linker maps, nm's output, kallsyms and jitdump files of real programs, against nm on the images.
#
# What a map of GNU ld does not have, by design: local functions that share a section with others
# (all, without -ffunction-sections), local second names of a function, symbols that the linker
# script assigns, PLT stubs.
# weir-test: patient
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/text_source_dump
can_m32=
export LC_ALL=C.UTF-8

# agree SENTENCE READER TEXT IMAGE MINIMUM [OPTION...]
agree() {
	local sentence=$1
	shift
	if python3 "$ROOT/tests/oracle/text_sources.py" "$dump" "$@" >agree.txt 2>&1; then
		ok "$sentence: $(head -n 1 agree.txt)"
	else
		not_ok "$sentence"
		head -n 20 agree.txt
	fi
}

cat >program.c <<'C'
#include <stdio.h>
#include <stdlib.h>
extern int from_archive(int);
static int __attribute__((noinline)) square(int x) { return x * x; }
int __attribute__((noinline)) cube(int x) { return x * square(x); }
int unused_function(int x) { return x + 9; }
int weak_alias(int x) __attribute__((weak, alias("cube")));
int __attribute__((noinline)) a_function_with_a_name_that_is_too_long_for_the_column(int x) { return x * 3; }
__attribute__((section("mycode"), noinline)) int in_own_section(int x) { return x + 1; }
__attribute__((cold, noinline)) int cold_function(int x) { return puts("cold") + x; }
__attribute__((noinline)) int hot_and_cold(int x)
{
	if (__builtin_expect(x > 1000, 0)) {
		cold_function(x);
		abort();
	}
	return x + 5;
}
static int __attribute__((noinline)) local_hot_and_cold(int x)
{
	if (x > 2000) {
		cold_function(x + 1);
		abort();
	}
	return x + 6;
}
static int __attribute__((constructor, noinline)) at_start(void) { return square(7); }
int some_data = 4, some_bss;
const int some_constant[4] = {1, 2, 3, 4};
__asm__(".text\n.globl asm_function\n.type asm_function, @function\nasm_function:\n\tnop\n.Linside:\n\tret\n"
	".size asm_function, . - asm_function\n.globl asm_label\nasm_label:\n\tnop\n\tret\n");
int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", cube(argc) + from_archive(argc) + in_own_section(argc) + some_data + some_bss +
		a_function_with_a_name_that_is_too_long_for_the_column(argc) + some_constant[argc & 3] +
		hot_and_cold(argc) + local_hot_and_cold(argc));
	return 0;
}
C
cat >archive.c <<'C'
int from_archive(int x) { return x + 2; }
int from_archive_too(int x) { return x - 1; }
C
cat >program.cc <<'C'
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
namespace ns {
template <class T> struct box {
	T v;
	__attribute__((noinline)) T get(int a) const { return v + a; }
	bool operator==(const box &o) const { return v == o.v; }
	box &operator=(const box &o) { v = o.v + 1; return *this; }
};
__attribute__((noinline)) std::string operator+(const box<int> &b, const std::string &s) { return s + std::to_string(b.v); }
}
namespace { __attribute__((noinline)) int anonymous(int x) { return x * 7; } }
struct base { virtual ~base() {} virtual int f() { return 1; } explicit operator bool() const { return true; } };
struct derived : base { int f() override { return anonymous(3); } };
__attribute__((noinline)) bool operator|(const base &a, int b) { return bool(a) || b; }
int main(int argc, char **)
{
	std::map<std::string, std::vector<int>> m;
	m["a"].push_back(argc);
	ns::box<int> b{argc}, c{2};
	std::string s = "x";
	base *d = new derived;
	std::vector<int> v(100, argc);
	std::sort(v.begin(), v.end(), [&](int x, int y) { return x + argc < y; });
	c = b;
	std::cout << (b + s) << b.get(1) << d->f() << m.size() << (*d | 1) << (b == c) << v[3] << "\n";
	delete d;
	return 0;
}
C
cat >library.c <<'C'
#include <stdio.h>
static int __attribute__((noinline)) hidden_helper(int x) { return x * 5; }
int lib_one(int x) { return hidden_helper(x) + puts("one"); }
int lib_two_old(int x) { return x + 2; }
int lib_two_new(int x) { return x + 22; }
__asm__(".symver lib_two_old, lib_two@V1");
__asm__(".symver lib_two_new, lib_two@@V2");
C
printf 'V1 { global: lib_one; lib_two; local: *; };\nV2 { } V1;\n' >library.version
gcc -O1 -c archive.c && ar rcs libarchive.a archive.o
gcc -m32 -O1 -c -o archive32.o archive.c 2>/dev/null && gcc -m32 -o try32 -x c - <<<'int main(void){return 0;}' 2>/dev/null &&
	ar rcs libarchive32.a archive32.o && can_m32=1

# built SENTENCE COMMAND...: says when a program cannot be built, which is a failure of the test.
built() {
	"$@" 2>build.txt && return
	not_ok "builds: $*"
	head -n 5 build.txt
	return 1
}

# --- GNU ld ---
bfd() { "$1" -fuse-ld=bfd -o "$2" -Wl,-Map="$2.map" "${@:3}"; }
built bfd gcc plain -O1 -g program.c libarchive.a &&
	agree "reads the map of a C program" ld plain.map plain 14
built bfd gcc fixed -O2 -no-pie program.c libarchive.a &&
	agree "reads the map of a program at a fixed address" ld fixed.map fixed 14
built bfd gcc sections -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections -Wl,--cref program.c libarchive.a &&
	agree "finds local functions by the names of sections, and nothing that was discarded" \
		ld sections.map sections 12 locals
found=$("$dump" ld sections.map 2>/dev/null | cut -d' ' -f5-)
equal "has no function that was discarded" "" "$(grep unused_function <<<"$found")"
check "names the cold part of a function" grep -qx hot_and_cold.cold <<<"$found"
check "names a cold function by itself" grep -qx cold_function <<<"$found"
equal "knows the image of a map" sections "$("$dump" output ld sections.map)"
built bfd g++ cxx -O1 -ffunction-sections -Wl,--gc-sections program.cc &&
	agree "reads the map of a C++ program, with sizes and linkage names" ld cxx.map cxx 20 locals own-sizes
built bfd g++ cxx_mangled -O2 -ffunction-sections -Wl,--no-demangle program.cc &&
	agree "reads a map with mangled names" ld cxx_mangled.map cxx_mangled 20 locals own-sizes
built bfd g++ cxx_shared_text -O2 program.cc &&
	agree "reads the map of a C++ program without sections for functions" ld cxx_shared_text.map cxx_shared_text 10
built bfd gcc static -O2 -static program.c libarchive.a &&
	agree "reads the map of a static program" ld static.map static 1000
built bfd g++ cxx_static -O2 -static -ffunction-sections -Wl,--gc-sections program.cc &&
	agree "reads the map of a static C++ program" ld cxx_static.map cxx_static 2000
built bfd gcc library.so -O1 -shared -fPIC -Wl,--version-script=library.version library.c &&
	agree "reads the map of a library with versions" ld library.so.map library.so 3
built bfd gcc lto -O2 -flto -ffunction-sections program.c archive.c &&
	agree "reads the map of a program that was optimised as a whole" ld lto.map lto 6
if [ "$can_m32" ]; then
	built bfd gcc plain32 -m32 -O1 program.c libarchive32.a &&
		agree "reads the map of a 32-bit program" ld plain32.map plain32 14
else
	skip "reads the map of a 32-bit program: gcc cannot build them (gcc-multilib)"
fi
# A script of its own: symbols that are assigned among functions, and code in a section of any name.
ld.bfd --verbose | sed '1,/^=====/d; /^=====/,$d' |
	sed 's/^  \.text  .*:/  .text : { script_start = .; *(.text.startup*) script_middle = .; } .firmware :/' >own.ld
if grep -q '^  .text : { script_start' own.ld && built bfd gcc script -O2 -ffunction-sections -no-pie -T own.ld program.c libarchive.a; then
	"$dump" ld script.map 2>/dev/null | cut -d' ' -f5- >script.txt
	check "the script assigns symbols among functions" grep -q ' script_middle = ' script.map
	equal "leaves out what a linker script assigns" "" "$(grep '^script_' script.txt)"
	check "takes a section behind code for code" grep -qx cube script.txt
	check "reads the sections around them" grep -qx main script.txt
fi
readelf -SW sections | awk '$1 ~ /^\[/ || $2 ~ /\]$/ { sub(/^ *\[ *[0-9]+\] /, ""); if ($7 ~ /A/) print $1 }' | sort >expected.txt
"$dump" sections ld sections.map | cut -d' ' -f3- | sort >sections.txt
equal "lists the sections that are loaded" "$(cat expected.txt)" "$(cat sections.txt)"
if command -v ld.gold >/dev/null; then
	built g++ -fuse-ld=gold -O1 -ffunction-sections -o gold program.cc -Wl,-Map=gold.map &&
		agree "reads a map of gold" ld gold.map gold 20 locals own-sizes
	built gcc -fuse-ld=gold -O1 -o gold_c program.c libarchive.a -Wl,-Map=gold_c.map &&
		agree "reads a map of gold of a C program" ld gold_c.map gold_c 14
else
	skip "reads a map of gold: ld.gold is not installed (binutils-gold)"
fi

# --- lld ---
lld() { "$1" -fuse-ld=lld -o "$2" -Wl,-Map="$2.map" "${@:3}"; }
if command -v ld.lld >/dev/null && command -v llvm-cxxfilt >/dev/null; then
	built lld gcc lld_c -O1 program.c libarchive.a &&
		agree "reads a map of lld, local functions included" lld lld_c.map lld_c 20 locals own-sizes
	built lld gcc lld_sections -O2 -ffunction-sections -Wl,--gc-sections program.c libarchive.a &&
		agree "reads a map of lld after garbage collection" lld lld_sections.map lld_sections 16 locals own-sizes
	built lld g++ lld_cxx -O1 -ffunction-sections program.cc &&
		agree "reads demangled names with blanks in a map of lld" lld lld_cxx.map lld_cxx 20 locals own-sizes
	check "such a map has names with blanks" grep -q 'ns::box<int>::get(int) const$' lld_cxx.map
	built lld g++ lld_mangled -O2 -Wl,--no-demangle program.cc &&
		agree "reads mangled names in a map of lld" lld lld_mangled.map lld_mangled 20 locals own-sizes
	built lld gcc lld_static -O2 -static program.c libarchive.a &&
		agree "reads the map of a static program by lld" lld lld_static.map lld_static 1000 locals own-sizes
	built lld gcc lld_library.so -O1 -shared -fPIC library.c -Wl,--version-script=library.version &&
		agree "reads the map of a library by lld" lld lld_library.so.map lld_library.so 3 locals own-sizes
	[ "$can_m32" ] && built lld gcc lld_32 -m32 -O1 program.c libarchive32.a &&
		agree "reads the map of a 32-bit program by lld" lld lld_32.map lld_32 14 locals own-sizes
	# A function is demangled by the linker only when the symbol is in a section of its own name.
	check "adds the linkage name of a demangled one" grep -q ' _ZNK2ns3boxIiE3getEi$' \
		<<<"$("$dump" lld lld_cxx.map 2>/dev/null)"
else
	skip "reads maps of lld: ld.lld or llvm-cxxfilt is not installed (lld, llvm)"
fi

# --- nm ---
# format SENTENCE FLAGS...
format() {
	local sentence=$1
	shift
	nm "$@" cxx_static >nm.txt
	agree "$sentence" nm nm.txt cxx_static 2000 locals
}
format "reads nm"
format "reads nm -S" -S
format "reads nm -n --defined-only" -n --defined-only
format "reads nm -A" -A
format "reads nm -P" -P
format "reads nm -f sysv" -f sysv
format "reads nm -C" -C
format "reads nm -C -S" -C -S
format "reads nm -C -P" -C -P
format "reads nm -C -f sysv" -C -f sysv
if command -v llvm-nm >/dev/null; then
	llvm-nm -S cxx_static >nm.txt && agree "reads llvm-nm -S" nm nm.txt cxx_static 2000 locals own-sizes
	llvm-nm -f posix cxx_static >nm.txt && agree "reads llvm-nm -f posix" nm nm.txt cxx_static 2000 locals own-sizes
fi
for image in /usr/lib/x86_64-linux-gnu/libc.so.6 /lib32/libc.so.6; do
	[ -f $image ] || continue
	nm -D -S $image >nm.txt
	agree "reads nm -D -S $image, names without versions" nm nm.txt $image 2000 dynamic own-sizes
	nm -D -P $image >nm.txt
	agree "reads nm -D -P $image, names without versions" nm nm.txt $image 2000 dynamic own-sizes
done
nm plain >nm.txt
equal "leaves out weak data" "" "$("$dump" nm nm.txt 2>/dev/null | grep data_start)"
nm archive.o program.cc plain fixed >nm.txt 2>/dev/null
fails "refuses nm's output of several images" 1 "must be of one: 'fixed' after 'plain'|must be of one: 'plain' after 'archive.o'" \
	"$dump" nm nm.txt
nm -A plain fixed >nm.txt
fails "refuses nm -A of several images" 1 "must be of one: 'fixed' after 'plain'" "$dump" nm nm.txt
nm -P plain fixed >nm.txt
fails "refuses nm -P of several images" 1 "must be of one: 'fixed' after 'plain'" "$dump" nm nm.txt
nm -f sysv plain >nm.txt
equal "knows the image of nm's output" plain "$("$dump" output nm nm.txt)"

# --- kallsyms ---
cat /proc/kallsyms >kallsyms.txt
if "$dump" kallsyms kallsyms.txt >ours.txt 2>err.txt; then
	awk '$2 ~ /^[tTwW]$/ { a = $1; sub(/^0+/, "", a); n = $0; sub(/^[^ ]* . /, "", n); print (a == "" ? "0" : a), n }' \
		kallsyms.txt | sort >theirs.txt
	check "reads every function of kallsyms ($(wc -l <ours.txt))" \
		diff -q theirs.txt <(cut -d' ' -f1,5- ours.txt | sort)
	equal "gives each the room up to the next symbol" "" \
		"$(awk '{ if ($3 == "0") print }' ours.txt | head -n 3)"
else
	skip "reads every function of kallsyms: $(cat err.txt)"
fi

# --- jitdump ---
cat >program.js <<'C'
function hotFunction(n) { let s = 0; for (let i = 0; i < n; i++) s += i * 7 % 13; return s; }
let total = 0;
for (let k = 0; k < 4000; k++) total += hotFunction(3000);
console.log(total + "\n" + process.pid);
C
if command -v node >/dev/null && node --perf-prof program.js >/dev/null 2>&1 && ls jit-*.dump >/dev/null 2>&1; then
	dump_file=$(echo jit-*.dump)
	"$dump" jitdump "$dump_file" >jit.txt 2>jit.err
	check "reads a jitdump of node ($(cat jit.err))" grep -q ' hotFunction\|hotFunction ' jit.txt
	check "understands every record of it" grep -q ' 0 unknown, 0 malformed' jit.err
	equal "finds every code of it at its time" 0 "$(grep -c 'is not found' jit.txt)"
	pid=${dump_file#jit-}
	check "knows the process" grep -q "^pid ${pid%.dump}," jit.err
	# The file grows while it is read: any part of it is read up to its last whole record.
	head -c "$(($(stat -c %s "$dump_file") * 2 / 3))" "$dump_file" >cut.dump
	"$dump" jitdump cut.dump >cut.txt 2>cut.err
	check "reads a cut one as far as it goes" grep -q ' 0 unknown, 0 malformed' cut.err
	n=$(grep -vc 'is not found' cut.txt)
	equal "finds the same codes in it" "$(head -n "$n" jit.txt | cut -d' ' -f1-3,5-)" "$(cut -d' ' -f1-3,5- cut.txt)"
	check "some codes are in the cut part" test "$n" -gt 10
else
	skip "reads a jitdump of node: node is not installed, or cannot write one"
fi

# --- kinds ---
# kind SENTENCE KIND FILE...
kind() {
	local sentence=$1 expected=$2
	shift 2
	equal "$sentence ($#)" "" "$("$dump" kind "$@" 2>&1 | grep -v ": $expected\$" | head -n 5)"
}
mapfile -t images < <(find /usr/lib/x86_64-linux-gnu /usr/bin -maxdepth 1 -type f -size -20M | sort | head -n 400 | while read -r f; do
	[ "$(head -c 4 "$f" | od -An -c | tr -d ' ')" = '177ELF' ] && echo "$f"
done)
readelf -hW "${images[@]}" 2>/dev/null | awk '/^File:/ { f = $2 } /Type:/ { print f, $2 }' >types.txt
mapfile -t images < <(awk '$2 == "DYN" || $2 == "EXEC" { print $1 }' types.txt)
kind "knows executables and shared objects" "shared object or executable" "${images[@]}" plain plain32 library.so
mapfile -t debugs < <(find /usr/lib/debug -name '*.debug' -size -20M 2>/dev/null | sort | head -n 20)
objcopy --only-keep-debug plain plain.debug && strip -o plain.stripped plain
kind "knows debug files" "debug file" plain.debug "${debugs[@]}"
kind "knows that a stripped program is no debug file" "shared object or executable" plain.stripped
kind "knows object files" "object file" archive.o
kind "knows maps of GNU ld" "GNU ld map" plain.map sections.map cxx_static.map library.so.map
[ ! -f gold.map ] || kind "knows maps of gold" "GNU ld map" gold.map
[ ! -f lld_cxx.map ] || kind "knows maps of lld" "lld map" lld_c.map lld_cxx.map lld_static.map lld_32.map
i=0
for flags in "" -S -D -n -P -A "-f sysv" -C "-C -S" "-C -P" "-C -f sysv" "-u"; do
	# shellcheck disable=SC2086
	nm $flags cxx_mangled >"nm-$i.txt"
	i=$((i + 1))
done
kind "knows every format of nm's output" "nm output" nm-*.txt
[ ! -s ours.txt ] || kind "knows kallsyms" kallsyms kallsyms.txt /proc/kallsyms
ls jit-*.dump >/dev/null 2>&1 && kind "knows jitdump" jitdump jit-*.dump cut.dump
if command -v node >/dev/null && pid=$(node --perf-basic-prof program.js | tail -n 1) && mv "/tmp/perf-$pid.map" some.map; then
	kind "knows a perf map of node by its content" "perf map" some.map
	equal "reads every line of it" "$(wc -l <some.map) symbols, 0 malformed" "$("$dump" perf-map some.map 2>&1 >/dev/null)"
else
	skip "knows a perf map of node by its content: node is not installed, or cannot write one"
fi
head -c 100000 /dev/urandom >random.bin
: >empty
mapfile -t others < <(find "$ROOT/src" "$ROOT/docs" "$ROOT/tests" /etc /usr/share/doc /usr/share/perl5 /usr/include \
	/usr/share/icons -type f -size -200k -not -path '*/corpus/*' -not -path '*/jitdump*' 2>/dev/null | sort | awk 'NR % 7 == 0' | head -n 1500)
kind "does not take other files for symbol sources" "unknown kind of file" random.bin empty libarchive.a \
	program.c program.cc own.ld "$ROOT/Makefile" "${others[@]}"
