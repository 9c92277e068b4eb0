# SPDX-License-Identifier: MIT
# Exception tables of objects whose code grows: a second reader, readelf and the assembler find in
# them what was there before, at the new places. WEIR_SLOW=1 takes every member of the archives,
# otherwise a sample.
# weir-test: once: takes long; unit tests and fuzz targets take exception tables through the sanitizers
# weir-test: patient
. "$ROOT/tests/lib.sh"
tool=$BUILD/tests/oracle/exception_tables_grow
here=$ROOT/tests/oracle
export PYTHONDONTWRITEBYTECODE=1
gcc_dir=$(dirname "$(gcc -print-libgcc-file-name)")
lib=/usr/lib/x86_64-linux-gnu

# grown SENTENCE BYTES EVERY STEP FILE [readelf]
grown() {
	local sentence=$1 n
	rm -rf objects && mkdir objects
	n=$("$tool" "$2" "$3" "$4" "$5" objects 2>said.txt)
	if [ ! -s said.txt ] && python3 "$here/exception_tables.py" objects "$n" ${6-} >counts.txt 2>said.txt; then
		ok "$sentence: $(cat counts.txt)"
	else
		not_ok "$sentence"
		head -n 10 said.txt
	fi
}

cat >tables.cc <<'C'
#include <stdexcept>
#include <string>
struct guard { guard(int); ~guard(); int x; };
int work(int), more(int);
void rare(const char *) __attribute__((cold));
int nested(int n)
{
	guard g(n);
	try {
		std::string s("hello");
		try {
			n += work(n);
			if (__builtin_expect(n == 7, 0)) {
				rare("x");
				guard h(3);
				rare("y");
				n += work(8);
			}
		} catch (std::runtime_error &e) {
			n += more(n);
			throw;
		}
		n += s.size();
	} catch (const std::exception &e) {
		rare(e.what());
		guard h(2);
		n += more(3);
	} catch (int i) {
		n += i;
	} catch (...) {
		n -= 1;
		throw;
	}
	return n;
}
int never(int n) noexcept { guard g(n); return work(n); }
int nothing(int n) throw() { return work(n) + more(n); }
int loop(int n)
{
	for (int i = 0; i < n; i++)
		try { guard g(i); work(i); } catch (long l) { more(l); }
	return n;
}
template <class T> T either(T t) { try { guard g(1); return t + work(2); } catch (char c) { return c; } }
template int either(int);
template long either(long);
C
# An exception specification with types, which C++17 no longer has.
cat >old.cc <<'C'
int work(int);
int only(int n) throw(int, long) { return work(n); }
C

# compiled LABEL COMPILER FLAGS...: with several ways to grow
compiled() {
	local label=$1 file=$2 way
	shift 2
	if ! "$@" -c -o compiled.o "$file"; then
		not_ok "$label are compiled"
		return
	fi
	for way in "0 1" "1 1" "17 3" "300 2" "70000 5"; do
		grown "$label say the same with ${way% *} bytes more every ${way#* } instructions" \
			${way% *} ${way#* } 1 compiled.o readelf
	done
}
compilers=g++
if command -v clang++ >/dev/null; then compilers='g++ clang++'; else
	skip "tables of clang say the same: clang++ is not installed"
fi
for compiler in $compilers; do
	for flags in -O0 -O2 -Os "-O2 -fPIC -ffunction-sections" "-O2 -mcmodel=large" "-O2 -fno-pic" \
		"-O1 -g -fno-asynchronous-unwind-tables" "-O2 -fnon-call-exceptions"; do
		compiled "tables of $compiler $flags" tables.cc $compiler $flags
	done
	compiled "tables of $compiler with exception specifications" old.cc $compiler -O1 -std=c++14 -w
done
compiled "tables that g++ writes itself, with .debug_frame," tables.cc g++ -O2 -g -fno-dwarf2-cfi-asm
[ "$compilers" = g++ ] ||
	compiled "tables of clang++ with a section for each block" tables.cc clang++ -O2 -fbasic-block-sections=all

# The assembler is asked what the tables of code with nops in it are.
for compiler in $compilers; do
	for flags in -O0 -O2 -Os -ffunction-sections; do $compiler $flags -S -o "$compiler$flags.s" tables.cc; done
done
[ "$compilers" = g++ ] || clang++ -O2 -fbasic-block-sections=all -S -o blocks.s tables.cc
for every in 1 3 7; do
	if python3 "$here/exception_tables_nops.py" "$tool" $every ./*.s >counts.txt 2>said.txt; then
		ok "the assembler makes the same tables with a nop every $every instructions: $(cat counts.txt)"
	else
		not_ok "the assembler makes the same tables with a nop every $every instructions"
		cut -c 1-400 said.txt | head -n 10
	fi
done

for archive in "$gcc_dir/libstdc++.a:6" $lib/libc.a:20 $lib/libcrypto.a:20 "$gcc_dir/libgcc.a:20" \
	"$gcc_dir/libgcc_eh.a:1"; do
	file=${archive%:*} step=${WEIR_SLOW:+1} name=$(basename "${archive%:*}")
	step=${step:-${archive#*:}}
	if [ ! -f "$file" ]; then
		skip "tables of $name say the same: $file is not installed"
		continue
	fi
	grown "tables of $name are written as they were" 0 1 $step "$file"
	grown "tables of $name say the same with 9 bytes more every 2 instructions" 9 2 $step "$file"
	grown "tables of $name say the same with 300 bytes more every 3 instructions, to readelf too" \
		300 3 $((step * 3)) "$file" readelf
	grown "tables of $name say the same with 70000 bytes more every 9 instructions" 70000 9 $((step * 4)) "$file"
done
for object in "$gcc_dir"/crt{begin,end}.o $lib/{crt1,Scrt1,gcrt1,crti}.o; do
	[ -f "$object" ] || continue
	grown "tables of $(basename "$object") say the same with 300 bytes more every instruction" 300 1 1 "$object"
done
