#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Names, files and lines of random addresses, inline levels included, against addr2line and
# llvm-symbolizer: ten libraries of the system, one set of sources in every form that debug
# information takes, and with WEIR_SLOW a large C++ program. The rules of the comparison are in the .py file.
# weir-test: once: takes long; unit tests and fuzz targets take the same readers through the sanitizers
# weir-test: patient
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
unset WEIR_DEBUG_PATH DEBUGINFOD_URLS
export WEIR_CATALOG=$PWD/unused.wsym PYTHONDONTWRITEBYTECODE=1
for tool in addr2line llvm-symbolizer eu-addr2line gdb clang dwz; do
	command -v $tool >/dev/null || {
		skip "agrees with addr2line and llvm-symbolizer: $tool is not here (tools/deps check)"
		finish
	}
done
# The forms below share their code: fewer addresses of each are enough. A sanitized program reads
# the same bytes: fewer of everything are enough there.
addresses=10000 form_addresses=1000
[ -z "${WEIR_SLOW:-}" ] || form_addresses=10000
[ -z "$WEIR_SAN" ] || addresses=1000 form_addresses=1000 # one may differ

# compare SENTENCE IMAGE OPTION...
compare() {
	local sentence=$1 image=$2
	shift 2
	if python3 "$ROOT/tests/oracle/symbols_addr2line.py" --weir "$WEIR" --addresses $addresses \
		"$@" "$image" >compare.txt 2>&1; then
		ok "$sentence: $(tail -n 1 compare.txt)"
		sed '$d' compare.txt
	else
		not_ok "$sentence: $(tail -n 1 compare.txt)"
		sed '$d' compare.txt | head -n 60
	fi
}

# --- ten libraries of the system, and the packages with their debug information ---
lib=/usr/lib/x86_64-linux-gnu
system_library() { # PACKAGE IMAGE
	local image
	image=$(readlink -f "$2")
	if [ -f "$image" ] &&
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; then
		compare "resolves $(basename "$image") as the peers do" "$image"
	else
		skip "resolves $2 as the peers do: the package $1 is not installed"
	fi
}
system_library libc6-dbg $lib/libc.so.6
system_library libstdc++6-12-dbg $lib/debug/libstdc++.so.6
system_library liblua5.4-0-dbg $lib/liblua5.4.so.0 # has a file that dwz made for several images
if [ -z "$WEIR_SAN" ]; then
	system_library libc6-dbg $lib/libm.so.6
	system_library libc6-dbg $lib/ld-linux-x86-64.so.2
	system_library libc6-dbg $lib/libresolv.so.2
	system_library libpcre3-dbg $lib/libpcre.so.3
	system_library libgsl-dbg $lib/libgsl.so.27
	system_library libnl-3-200-dbg $lib/libnl-3.so.200
	system_library libbinutils-dbg $lib/libbfd-2.40-system.so # likewise, and optimised at link time
fi

# --- the same sources in every form ---
library_addresses=$addresses
addresses=$form_addresses
cpp=$PWD/cpp
mkdir -p cpp && python3 "$ROOT/tests/oracle/make_big_cpp.py" cpp 1 1
sources=("$ROOT"/src/{base,calltree}/*.c)

compile_lines() { # CC CXX FLAGS...
	local cc=$1 cxx=$2 source
	shift 2
	# The slowest first: two run at a time.
	[ "$cxx" = - ] || for source in "$cpp"/{unit_0,main}.cc; do
		echo "$cxx -std=c++17 -O2 -fPIC $* -c $source"
	done
	for source in "${sources[@]}"; do
		echo "$cc -std=gnu17 -O2 -D_GNU_SOURCE -I$ROOT/src -fPIC $* -c $source"
	done
}

# build NAME CC CXX FLAGS...: NAME from the sources above, a shared object unless $link says
# something else; CXX may be - for C alone.
link=-shared
build() {
	local name=$1 cc=$2 cxx=$3 ld=$3
	shift 3
	[ "$cxx" != - ] || ld=$cc
	mkdir -p "$name.d" && cd "$name.d" || exit 1
	# shellcheck disable=SC2016,SC2086 # $0 is of sh; $link may be several words
	if ! { compile_lines "$cc" "$cxx" "$@" | xargs -P 2 -d '\n' -n 1 sh -c 'exec $0' &&
		"$ld" $link "$@" -o "../$name" ./*.o; } >build.txt 2>&1; then
		not_ok "$cc builds $name with $*"
		grep -i error build.txt | head -n 5
		cd .. || exit 1
		return 1
	fi
	cd .. || exit 1
}

code_of() { objcopy -O binary -j .text "$1" /dev/stdout; }

# form SENTENCE NAME [TWIN PEER...]: each PEER (gnu, llvm) cannot read this form and is asked about
# TWIN, the same code with debug information in a form that it reads.
form() {
	local sentence=$1 name=$2 twin=${3:-} peer options=()
	shift 2
	[ $# -eq 0 ] || shift
	if [ -n "$twin" ] && ! cmp -s <(code_of "$name") <(code_of "$twin"); then
		not_ok "resolves $sentence: $name and $twin do not have the same code"
		return
	fi
	for peer; do
		options+=("--$peer" "$twin")
	done
	compare "resolves $sentence" "$name" "${options[@]}"
}

build gcc5 gcc g++ -gdwarf-5 || exit 1
form "DWARF 5 of gcc" gcc5
compare "these comparisons notice wrong answers" gcc5 --spoil
build clang4 clang clang++ -gdwarf-4 && form "DWARF 4 of clang" clang4
build clang5 clang clang++ -gdwarf-5 && form "DWARF 5 of clang" clang5 clang4 gnu
build split5 gcc g++ -gdwarf-5 -gsplit-dwarf && form "split DWARF 5 of gcc" split5 gcc5 gnu llvm
if gcc -m32 -xc -shared -o m32.probe - </dev/null 2>/dev/null; then
	build m32 gcc - -g -m32 && form "a 32-bit image" m32
else
	skip "resolves a 32-bit image: gcc cannot build one (gcc-multilib)"
fi
cp gcc5 dwz && dwz dwz && form "what dwz made smaller" dwz gcc5 gnu llvm
objcopy --compress-debug-sections=zlib gcc5 zlib && form "compressed sections" zlib
objcopy --compress-debug-sections=zlib-gnu gcc5 zgnu &&
	form "sections compressed the old way" zgnu gcc5 gnu

more_forms() {
	build gcc4 gcc g++ -gdwarf-4 && form "DWARF 4 of gcc" gcc4
	build gcc3 gcc g++ -gdwarf-3 && form "DWARF 3 of gcc" gcc3 gcc4 gnu llvm
	build gcc2 gcc g++ -gdwarf-2 && form "DWARF 2 of gcc" gcc2 gcc4 gnu llvm
	build wide gcc g++ -gdwarf-5 -gdwarf64 && form "64-bit DWARF" wide gcc5 gnu llvm
	build types gcc g++ -g -fdebug-types-section && form "type units" types gcc5 gnu llvm
	build lto gcc g++ -g -flto=2 && form "an image of link-time optimisation" lto
	build plain gcc g++ -g -O0 && form "code that is not optimised" plain
	build unrolled gcc g++ -g -O3 && form "-O3" unrolled
	build split4 gcc g++ -gdwarf-4 -gsplit-dwarf && form "split DWARF 4 of gcc" split4 gcc4 gnu llvm
	build csplit4 clang clang++ -gdwarf-4 -gsplit-dwarf &&
		form "split DWARF 4 of clang" csplit4 clang4 gnu llvm
	build csplit5 clang clang++ -gdwarf-5 -gsplit-dwarf &&
		form "split DWARF 5 of clang" csplit5 clang4 gnu llvm
	if objcopy --compress-debug-sections=zstd gcc5 zstd 2>/dev/null; then
		form "sections compressed with zstd" zstd gcc5 llvm
	else
		skip "resolves sections compressed with zstd: objcopy cannot make them"
	fi
	cp gcc5 linked && objcopy --only-keep-debug linked linked.debug && strip linked &&
		objcopy --add-gnu-debuglink=linked.debug linked &&
		form "an image whose debug file lies beside it" linked
	cp gcc5 multi1 && cp gcc4 multi2 && dwz -m shared.dwz multi1 multi2 &&
		form "an image that shares debug information with another" multi1 gcc5 gnu llvm
}

# package NAME TWIN TOOL: the split units in one file, those beside the objects gone.
package() {
	local name=$1 twin=$2 tool=$3 sentence
	sentence="split units in one package of $tool"
	if ! command -v "$tool" >/dev/null; then
		skip "resolves $sentence: $tool is not here"
	elif ! (cd "$name.d" && timeout 60 "$tool" -e "../$name" -o "../$name.dwp") >dwp.txt 2>&1; then
		skip "resolves $sentence: it cannot make one of $name: $(head -n 1 dwp.txt)"
	else
		mv "$name.d" "$name.away"
		form "$sentence" "$name" "$twin" gnu llvm
	fi
}

# Dropped functions stay in the debug information, at address 0 or so.
dropped_functions() {
	local flags=(-g -gdwarf-4 -ffunction-sections "-Wl,--gc-sections")
	link=-no-pie
	build gc_ld gcc g++ "${flags[@]}" && form "a program from which GNU ld dropped functions" gc_ld
	build gc_lld clang clang++ "${flags[@]}" -fuse-ld=lld &&
		form "a program from which lld dropped functions" gc_lld
	# Nearly all functions are gone, and where they would be lies code of the compiler's library
	# without debug information: there, both peers print lines of functions that do not exist.
	link=-shared
	build gone gcc g++ "${flags[@]}" -fvisibility=hidden || return
	nm -S gone | awk '$4 ~ /^(get_available_features|__cpu_indicator_init)/ { print $1, $2 }' |
		while read -r start size; do
			seq -f '%.0f' $((16#$start)) $((16#$start + 16#$size - 1)) | xargs printf '0x%x\n'
		done >addresses.txt
	"$WEIR" symbols merge -o gone.wsym gone >merge.txt &&
		"$WEIR" symbols resolve --catalog gone.wsym --image gone --json - <addresses.txt >gone.json
	check "there is code where dropped functions would be" test "$(wc -l <addresses.txt)" -gt 1000
	equal "takes no dropped function for what lies at its address" 0 \
		"$(json gone.json "sum(1 for r in j['rows'] for v in r['levels'] if v.get('line'))")"
}

if [ -n "${WEIR_SLOW:-}" ]; then # dwarf_variants.sh reads these forms on every run
	more_forms
	package split4 gcc4 dwp
	package csplit5 clang4 llvm-dwp
fi
[ -n "$WEIR_SAN" ] || dropped_functions

# --- a large C++ program: 100 MB of debug information ---
[ -n "${WEIR_SLOW:-}" ] || finish
addresses=$library_addresses
units=11
[ -z "$WEIR_SAN" ] || finish
mkdir -p big && python3 "$ROOT/tests/oracle/make_big_cpp.py" big $units
if make -s -C big -j2 >big.txt 2>&1; then
	compare "resolves a C++ program of $units units, $(($(stat -c %s big/big) / 1000000)) MB" big/big
else
	not_ok "g++ builds the large program"
	grep -i error big.txt | head -n 5
fi
