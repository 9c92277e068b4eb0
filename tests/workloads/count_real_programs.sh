# SPDX-License-Identifier: MIT
# Real libraries and programs, inserted whole: what they print and how they end stays the same, and the
# functions of the library are in the report.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"

# library NAME SOURCE FUNCTION LIBRARIES...: a driver of a static library.
library() {
	local name=$1 source=$2 function=$3 archives=() l a
	shift 3
	for l in "$@"; do
		[[ $l != -* ]] || { archives+=("$l") && continue; }
		a=$(static_library "$l") || { skip "$name: lib$l.a is not installed" && return; }
		archives+=("$a")
	done
	libraries_of_links=("${archives[@]}")
	build "$name" "$source" -O2 || { skip "$name: $(head -n 1 build.txt)" && return; }
	same "$name does the same when it is counted" "$name" "${size:-50000}" || return
	check "$function of $name is counted" [ "$(base_of "$function")" -gt 0 ]
	libraries_of_links=()
}

library zlib drive_zlib.c deflate z
more && library bzip2 drive_bzip2.c BZ2_compressBlock bz2
more && library zstd drive_zstd.c ZSTD_compress zstd
more && size=3000 library sqlite3 drive_sqlite.c sqlite3VdbeExec sqlite3 -lm
more && library libcrypto drive_crypto.c EVP_Digest crypto

sentence="Lua does the same when it is counted"
lua=$(ls /usr/lib/x86_64-linux-gnu/liblua5.[34].a 2>/dev/null | tail -n 1)
if [ -z "$lua" ]; then
	skip "$sentence: no liblua*.a is installed"
elif more; then
	libraries_of_links=("$lua" -lm -ldl)
	version=${lua##*/lib} && version=${version%.a}
	if build lua drive_lua.c -O2 -I/usr/include/"$version"; then
		same "$sentence" lua
		check "luaV_execute is counted" [ "$(base_of luaV_execute)" -gt 100000 ]
	else
		skip "$sentence: $(head -n 1 build.txt)"
	fi
	libraries_of_links=()
fi

more && build library drive_library.cc -O1 && same "a C++ program with exceptions in threads does the same" library
more && OBJECT=objects/library.o build library_all drive_library.cc -O1 -static-libstdc++ -static-libgcc &&
	same "the same with the C++ library and the unwinder inserted" library_all &&
	check "the unwinder is counted" [ "$(base_of _Unwind_RaiseException)" -gt 0 ]
more && build libc drive_libc.c -O2 -static && same "a static C program does the same with libc.a inserted" libc &&
	check "functions of libc.a are counted" [ "$(base_of __printf_fp_l)" -gt 0 -o "$(base_of vfprintf)" -gt 0 ]
more && OBJECT=objects/library.o build library_static drive_library.cc -O1 -static &&
	same "a static C++ program does the same with every library inserted" library_static

# The programs above once more with block counts only.
count_options="-q --counts"
libraries_of_links=("$(static_library z)")
OBJECT=objects/zlib.o build zlib_counts drive_zlib.c -O2 && same "zlib with counts only does the same" zlib_counts 50000
equal "counts only: no calls are told" "[]" "$(json flat.json '[r["calls"] for r in j["rows"] if r["calls"]]')"
