#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Functions, inlined functions and lines of programs built in many ways, against addr2line and
# llvm-symbolizer.
# weir-test: once: takes long; unit tests and fuzz targets take the readers of DWARF through the sanitizers
# weir-test: patient
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
dump=$BUILD/tests/oracle/dwarf_dump

# compare SENTENCE IMAGE MINIMUM [STEP]
compare() {
	local sentence=$1 image=$2 minimum=$3 step=${4:-1}
	# The sanitized reader reads all units for any address; the peers' time is spared.
	[ -z "${WEIR_SAN:-}" ] || { step=$((step * 10)) && minimum=$((minimum / 20)); }
	if python3 "$ROOT/tests/oracle/dwarf_addr2line.py" "$dump" "$image" "$step" "$minimum" >compare.txt 2>&1; then
		ok "$sentence: $(head -n 1 compare.txt)"
	else
		not_ok "$sentence"
		head -n 30 compare.txt
	fi
}

# no_notes SENTENCE IMAGE: everything could be read.
no_notes() { equal "$1" "" "$("$dump" notes "$2" 2>&1)"; }

# same SENTENCE IMAGE PLAIN: the two say the same of every row. The code must be the same.
same() {
	"$dump" all "$3" >plain.txt
	"$dump" all "$2" >other.txt 2>&1
	if [ -s plain.txt ] && cmp -s plain.txt other.txt; then
		ok "$1 ($(grep -c ^0x plain.txt) rows)"
	else
		not_ok "$1"
		diff plain.txt other.txt | head -n 20
	fi
}

cat >shapes.h <<'C'
static inline int twice(int x) { return x + x; }
static inline __attribute__((always_inline)) int mixed(int x, int y)
{
	if (x > y)
		x = twice(x) - y;
	else
		x = twice(y) - x;
	return x;
}
C
cat >part.c <<'C'
#include <stdio.h>
#include "shapes.h"
int shared_count;
int part(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += mixed(i, n) * twice(sum);
	return sum;
}
int unused_part(int n)
{
	shared_count += mixed(n, 3);
	return printf("%d\n", shared_count);
}
C
cat >main.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include "shapes.h"
int part(int n);
static __attribute__((noinline)) int cold_path(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}
int main(int argc, char **argv)
{
	int v[16];

	for (int i = 0; i < 16; i++)
		v[i] = mixed(argc, i) + part(i);
	if (__builtin_expect(v[argc] == 12345, 0))
		cold_path(argv[0]);
	return v[argc] & 1;
}
C
cat >nested.c <<'C'
#include <stdio.h>
int main(int argc, char **argv)
{
	int seen = 0;
	__attribute__((noinline)) int inner(int x)
	{
		int innermost(int y) { seen += y; return y * seen; }
		return innermost(x) + innermost(x + 1);
	}
	for (int i = 0; i < argc; i++)
		seen += inner(i) + printf("%s\n", argv[i]);
	return seen;
}
C
cat >templates.cc <<'C'
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>
namespace shapes {
struct shape {
	virtual ~shape() = default;
	virtual double area() const = 0;
};
template <class T> struct box : shape {
	T w, h;
	box(T a, T b) : w(a), h(b) {}
	double area() const override { return w * h; }
};
template <class T> static std::unique_ptr<shape> make(T a, T b) { return std::make_unique<box<T>>(a, b); }
}
static int local_class(int x)
{
	struct counter {
		int n;
		int __attribute__((noinline)) step() { return n += std::printf("%d\n", n); }
	} c{x};
	auto again = [&](int times) { for (int i = 0; i < times; i++) c.step(); return c.n; };
	return again(x) + again(2);
}
int main(int argc, char **)
{
	std::vector<int> numbers;
	std::vector<std::unique_ptr<shapes::shape>> all;

	for (int i = 0; i < argc; i++) {
		numbers.push_back(i * argc);
		all.push_back(i % 2 ? shapes::make(i, 2) : shapes::make(i * 0.5, 3.0));
	}
	std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return b < a; });
	std::sort(all.begin(), all.end(), [](auto &a, auto &b) { return a->area() < b->area(); });
	return (int)all[0]->area() + local_class(argc) + numbers[0];
}
C

# build COMPILER OUT SOURCES-AND-FLAGS...
build() {
	local compiler=$1 out=$2
	shift 2
	"$compiler" -o "$out" "$@" 2>build.txt
}
# variant SENTENCE MINIMUM COMPILER FLAGS...: a program in C or C++, compared when it can be built.
variant() {
	local sentence=$1 minimum=$2 compiler=$3 sources="main.c part.c" name
	shift 3
	if ! command -v "$compiler" >/dev/null; then
		skip "$sentence: $compiler is not installed"
		return 1
	fi
	case $compiler in *++) sources=templates.cc ;; esac
	name=v$((++n_variants))
	# shellcheck disable=SC2086
	if build "$compiler" $name $sources "$@"; then
		compare "$sentence" $name "$minimum"
		no_notes "$sentence, all of it" $name
		built=$name
	else
		skip "$sentence: $compiler cannot: $(head -n 1 build.txt)"
		return 1
	fi
}
n_variants=0

for version in 2 3 4 5; do
	variant "reads DWARF $version of gcc" 200 gcc -O2 -gdwarf-$version -gstrict-dwarf
	variant "reads DWARF $version of g++" 1000 g++ -O2 -gdwarf-$version
	variant "reads DWARF $version of clang" 200 clang -O2 -gdwarf-$version
done
variant "reads DWARF 4 of clang++" 1000 clang++ -O2 -gdwarf-4
variant "reads DWARF 5 of clang++" 1000 clang++ -O2 -gdwarf-5
variant "reads 64-bit DWARF" 200 gcc -O2 -g -gdwarf64
variant "reads 64-bit DWARF of clang" 200 clang -O2 -gdwarf-5 -gdwarf64
variant "reads code that is not optimised" 1000 g++ -O0 -g
variant "reads code that is optimised for debugging" 1000 g++ -Og -g3
variant "reads units without inlined functions" 1000 g++ -O2 -g1
variant "reads line tables only" 1000 clang++ -O2 -gline-tables-only
variant "reads link-time optimised code" 200 gcc -O2 -g -flto
variant "reads link-time optimised C++" 1000 g++ -O2 -g -flto
variant "reads link-time optimised code of clang" 200 clang -O2 -g -flto -fuse-ld=lld
variant "reads 32-bit code" 200 gcc -m32 -O2 -g
variant "reads 32-bit code in DWARF 4" 200 gcc -m32 -O2 -gdwarf-4
variant "reads code at a fixed address" 200 gcc -O2 -g -no-pie
variant "reads addresses that count from the segment of the header" 200 gcc -O2 -g -Wl,-z,noseparate-code

# The same code, with the same to say about it in other places.
for version in 4 5; do
	build g++ plain$version templates.cc -O2 -gdwarf-$version || not_ok "g++ builds DWARF $version"
	for flag in -gz=zlib -gz=zlib-gnu -gz=zstd -fdebug-types-section; do
		if build g++ other templates.cc -O2 -gdwarf-$version $flag; then
			same "reads DWARF $version with $flag" other plain$version
			no_notes "reads DWARF $version with $flag, all of it" other
		else
			skip "reads DWARF $version with $flag: $(head -n 1 build.txt)"
		fi
	done
done
if objcopy --compress-debug-sections=zstd plain5 other 2>build.txt; then
	same "reads zstd sections" other plain5
else
	skip "reads zstd sections: $(head -n 1 build.txt)"
fi
objcopy --only-keep-debug plain5 plain5.debug
same "reads a separate debug file as it does the whole one" plain5.debug plain5
strip -o bare plain5
check "says that there is no debug information" \
	grep -q 'has no debug information' <<<"$("$dump" notes bare 2>&1)"
check "says that a relocatable file is not supported" \
	grep -q 'is a relocatable file' <<<"$(gcc -g -c part.c -o part.o && "$dump" notes part.o 2>&1)"

# dropped SENTENCE LINKER FLAGS...
dropped() {
	local sentence=$1 linker=$2
	shift 2
	variant "$sentence" 150 gcc -O2 -ffunction-sections -Wl,--gc-sections -fuse-ld="$linker" "$@" &&
		equal "$sentence: none is in the table" "" "$("$dump" functions "$built" | grep unused_part)"
}
for linker in bfd gold lld; do
	for version in 4 5; do
		if command -v ld.$linker >/dev/null; then
			dropped "leaves out functions that $linker dropped, DWARF $version" $linker -gdwarf-$version
		else
			skip "leaves out functions that $linker dropped, DWARF $version: not installed"
		fi
	done
done
dropped "leaves out functions dropped to address 0 inside of a segment, DWARF 4" bfd -gdwarf-4 -Wl,-z,noseparate-code
dropped "leaves out functions dropped to address 0 inside of a segment, DWARF 5" bfd -gdwarf-5 -Wl,-z,noseparate-code
if command -v ld.gold >/dev/null; then
	variant "reads functions that gold folded" 1000 g++ -O2 -g -ffunction-sections -fuse-ld=gold -Wl,--icf=all
fi

# Nested functions are in no C++ program.
if build gcc nested -O1 -g nested.c; then
	compare "reads nested functions" nested 100
	check "names the nested function" grep -q ' inner' <<<"$("$dump" functions nested)"
else
	skip "reads nested functions: gcc cannot build them"
fi

# Split units, in .dwo files and in packages, against the same program in one piece.
split() {
	local compiler=$1 version=$2 sources="main.c part.c" sentence folder packer
	sentence="reads split DWARF $version of $compiler"
	folder=split_${compiler}_$version
	command -v "$compiler" >/dev/null || { skip "$sentence: not installed"; return; }
	case $compiler in *++) sources=templates.cc ;; esac
	mkdir -p "$folder/dwo"
	# shellcheck disable=SC2086
	if ! (cd "$folder" && cp ../*.c ../*.cc ../*.h . && $compiler -O2 -gdwarf-$version -o whole $sources &&
		$compiler -O2 -gdwarf-$version -gsplit-dwarf -c $sources && $compiler -o prog ./*.o) 2>build.txt; then
		skip "$sentence: $(head -n 1 build.txt)"
		return
	fi
	same "$sentence" "$folder/prog" "$folder/whole"
	no_notes "$sentence, all of it" "$folder/prog"
	for packer in dwp llvm-dwp; do
		rm -f "$folder/prog.dwp"
		command -v $packer >/dev/null || { skip "$sentence from a package of $packer: not installed"; continue; }
		# binutils 2.40 dwp crashes on DWARF 5.
		bash -c "cd '$folder' && $packer -e prog -o prog.dwp; exit \$?" >build.txt 2>&1
		if [ ! -s "$folder/prog.dwp" ]; then
			skip "$sentence from a package of $packer: it makes none: $(tail -n 1 build.txt)"
			continue
		fi
		mv "$folder"/*.dwo "$folder/dwo/"
		same "$sentence from a package of $packer" "$folder/prog" "$folder/whole"
		no_notes "$sentence from a package of $packer, all of it" "$folder/prog"
		mv "$folder"/dwo/*.dwo "$folder/"
	done
	rm -f "$folder/prog.dwp"
	mv "$folder" "moved_$folder"
	same "$sentence beside the image when the folder has moved" "moved_$folder/prog" "moved_$folder/whole"
	rm "moved_$folder"/*.dwo
	check "$sentence: says what is missing" grep -q 'is not there, so only its lines are known' \
		<<<"$("$dump" notes "moved_$folder/prog")"
	check "$sentence: has lines without the split unit" grep -qE '(main.c|templates.cc):[0-9]' \
		<<<"$("$dump" all "moved_$folder/prog")"
}
for version in 4 5; do
	for compiler in gcc g++ clang clang++; do split $compiler $version; done
done

# The shared file of dwz.
shared() {
	local version=$1
	for i in 1 2 3; do
		build gcc dwz$i.full main.c part.c -O2 -gdwarf-$version -DN=$i || return
		cp dwz$i.full dwz$i
	done
	cp plain$version alone
	if dwz alone 2>build.txt; then
		same "reads DWARF $version after dwz" alone plain$version
	else
		skip "reads DWARF $version after dwz: $(head -n 1 build.txt)"
	fi
	for i in 1 2 3; do cp plain$version cc$i; done
	rm -f shared.debug
	# Without -M the path that is written would be the absolute one.
	if ! dwz -m shared.debug -M shared.debug cc1 cc2 cc3 2>build.txt || [ ! -s shared.debug ]; then
		skip "reads DWARF $version with a shared file: $(head -n 1 build.txt)"
		return
	fi
	same "reads DWARF $version with a shared file" cc1 plain$version
	no_notes "reads DWARF $version with a shared file, all of it" cc1
	mkdir -p gone
	cp cc1 gone/
	equal "says that the shared file is not there, DWARF $version" \
		"the shared debug file 'shared.debug' is not there" "$("$dump" notes gone/cc1)"
	cp dwz3.full gone/shared.debug
	equal "refuses the shared file of another build, DWARF $version" \
		"'gone/shared.debug': is the shared debug file of another build" "$("$dump" notes gone/cc1)"
	rm -f gone/shared.debug
}
if command -v dwz >/dev/null; then
	shared 4
	shared 5
else
	skip "reads what dwz made: it is not installed"
fi

libc_debug=$(id=$(readelf -n /lib/x86_64-linux-gnu/libc.so.6 2>/dev/null | awk '/Build ID/ { print $3 }') &&
	echo "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug")
if [ -f "$libc_debug" ]; then
	compare "reads the C library" "$libc_debug" 50000 29
else
	skip "reads the C library: its debug file is not installed (libc6-dbg)"
fi
