# SPDX-License-Identifier: MIT
# A program that throws and catches everything does the same when code has been inserted in front of
# every block: in its own object, and in the C++ library, the unwinder and the C library too.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
source=$ROOT/tests/workloads/throw_everything.cc

said() { # PROGRAM
	timeout 60 "$1"
	echo "status $?"
	timeout 60 "$1" terminate
	echo "status $?"
}

# inserted SENTENCE MODE COMPILER FLAGS...
inserted() {
	local sentence=$1 mode=$2
	shift 2
	rm -f plain.o inserted.o plain inserted
	if ! "$@" -c -o plain.o "$source" || ! "$1" -o plain plain.o; then
		not_ok "$sentence: it is compiled"
	elif ! "$WEIR" insert -q --mode "$mode" plain.o -o inserted.o; then
		not_ok "$sentence: code is inserted"
	elif cmp -s plain.o inserted.o; then
		not_ok "$sentence: code is inserted: it is the same object"
	elif ! "$1" -o inserted inserted.o; then
		not_ok "$sentence: it is linked"
	else
		equal "$sentence" "$(said ./plain)" "$(said ./inserted)"
	fi
}

compilers=g++
if command -v clang++ >/dev/null; then compilers='g++ clang++'; else
	skip "exceptions of clang are caught as before: clang++ is not installed"
fi
for compiler in $compilers; do
	for flags in -O0 -O2 -Os "-O2 -fPIC -ffunction-sections" "-O3 -fcf-protection"; do
		inserted "exceptions of $compiler $flags are caught as before" nops $compiler $flags
	done
done
[ "$compilers" = g++ ] ||
	inserted "exceptions of clang++ with a section for each block are caught as before" nops \
		clang++ -O2 -fbasic-block-sections=all
inserted "exceptions of g++ -fnon-call-exceptions are caught as before" nops g++ -O2 -fnon-call-exceptions
equal "the program itself ends as it should" "status 0 status 3" "$(said ./plain | grep -o 'status.*' | xargs)"

gcc_dir=$(dirname "$(gcc -print-libgcc-file-name)")
libraries="$gcc_dir/libstdc++.a $gcc_dir/libgcc_eh.a $gcc_dir/libgcc.a /usr/lib/x86_64-linux-gnu/libc.a"
sentence="exceptions are caught as before when the libraries are inserted too"
if ! ls $libraries >/dev/null 2>&1; then
	skip "$sentence: static libraries are not installed"
else
	mkdir lib
	for library in $libraries; do
		"$WEIR" insert -q --mode nops "$library" -o "lib/$(basename "$library")" || not_ok "$sentence: $library"
	done
	g++ -O2 -c -o plain.o "$source" && "$WEIR" insert -q --mode nops plain.o -o inserted.o
	if g++ -static -o plain plain.o && g++ -static -L lib -Wl,-Map=map.txt -o inserted inserted.o; then
		equal "$sentence" "$(said ./plain)" "$(said ./inserted)"
		check "the inserted libraries were the ones linked" \
			[ "$(grep -Eo '^lib/(libc|libstdc\+\+|libgcc_eh)\.a' map.txt | sort -u | wc -l)" -eq 3 ]
	else
		not_ok "$sentence: it is linked"
	fi
fi
