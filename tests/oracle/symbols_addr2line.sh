#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Names, files and lines of random addresses, inline levels included, against addr2line and
# llvm-symbolizer: ten libraries of the system, one set of sources in every form that debug
# information takes, and a large C++ program. The rules of the comparison are in the .py file.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
unset WEIR_DEBUG_PATH DEBUGINFOD_URLS
export WEIR_CATALOG=$PWD/unused.wsym PYTHONDONTWRITEBYTECODE=1
for tool in addr2line llvm-symbolizer eu-addr2line; do
	command -v $tool >/dev/null || {
		skip "agrees with addr2line and llvm-symbolizer: $tool is not here (tools/deps check)"
		exit 0
	}
done
addresses=10000
[ -z "$WEIR_SAN" ] || addresses=1000

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
while read -r package image; do
	image=$(readlink -f "$image")
	if [ -f "$image" ] && dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -q '^installed'; then
		compare "resolves $(basename "$image") as the peers do" "$image"
	else
		skip "resolves $image as the peers do: the package $package is not installed"
	fi
done <<END
libc6-dbg $lib/libc.so.6
libc6-dbg $lib/libm.so.6
libc6-dbg $lib/ld-linux-x86-64.so.2
libc6-dbg $lib/libresolv.so.2
libpcre3-dbg $lib/libpcre.so.3
libgsl-dbg $lib/libgsl.so.27
liblua5.4-0-dbg $lib/liblua5.4.so.0
libnl-3-200-dbg $lib/libnl-3.so.200
libbinutils-dbg $lib/libbfd-2.40-system.so
libstdc++6-12-dbg $lib/debug/libstdc++.so.6
END

# --- the same sources in every form ---
mkdir -p cpp && python3 "$ROOT/tests/oracle/make_big_cpp.py" cpp 1 1
unit=$PWD/cpp/unit_0.cc
sources=("$ROOT"/src/{base,elf,arch,calltree}/*.c)

# build NAME CC CXX FLAGS...: NAME.so from the sources above; CXX may be - for C alone.
build() {
	local name=$1 cc=$2 cxx=$3 ld=$3 source
	shift 3
	[ "$cxx" != - ] || ld=$cc
	mkdir -p "$name.d" && cd "$name.d" || exit 1
	if ! {
		for source in "${sources[@]}"; do
			echo "$cc -std=gnu17 -O2 -D_GNU_SOURCE -I$ROOT/src -fPIC $* -c -o $(basename "$source" .c).o $source"
		done | xargs -P 2 -d '\n' -n 1 sh -c 'eval "$0"' &&
			{ [ "$cxx" = - ] || "$cxx" -std=c++17 -O2 -fPIC "$@" -c -o unit_0.o "$unit"; } &&
			"$ld" -shared "$@" -o "../$name.so" ./*.o
	} 2>build.txt; then
		not_ok "$cc builds $name with $*"
		grep error build.txt | head -n 5
		cd ..
		return 1
	fi
	cd .. || exit 1
}

same_code() {
	cmp -s <(objcopy -O binary -j .text "$1" /dev/stdout) <(objcopy -O binary -j .text "$2" /dev/stdout)
}

# form SENTENCE NAME TWIN PEER...: NAME.so, where each PEER (gnu, llvm) cannot read this form and is
# asked about TWIN.so, the same code with debug information in a form that it reads.
form() {
	local sentence=$1 name=$2 twin=$3 peer
	local options=()
	shift 3
	if [ "$twin" != - ] && ! same_code "$name.so" "$twin.so"; then
		not_ok "$name and $twin have the same code"
		return
	fi
	for peer; do
		options+=("--$peer" "$twin.so")
	done
	compare "resolves $sentence" "$name.so" "${options[@]}"
}
is_slow_build=$WEIR_SAN # sanitizers change nothing about the compilers' output: fewer forms there

build gcc4 gcc g++ -gdwarf-4 && form "DWARF 4 of gcc" gcc4 -
build gcc5 gcc g++ -gdwarf-5 && form "DWARF 5 of gcc" gcc5 -
build clang4 clang clang++ -gdwarf-4 && form "DWARF 4 of clang" clang4 -
build clang5 clang clang++ -gdwarf-5 && form "DWARF 5 of clang" clang5 clang4 gnu
build split5 gcc g++ -gdwarf-5 -gsplit-dwarf && form "split DWARF 5 of gcc" split5 gcc5 gnu
build lto gcc g++ -g -flto=2 && form "an image of link-time optimisation" lto -
if gcc -m32 -xc -shared -o m32.probe - </dev/null 2>/dev/null; then
	build m32 gcc - -g -m32 && form "a 32-bit image" m32 -
else
	skip "resolves a 32-bit image: gcc cannot build one (gcc-multilib)"
fi
if [ -f gcc5.so ]; then
	cp gcc5.so dwz.so && dwz dwz.so && form "what dwz made smaller" dwz gcc5 gnu llvm
fi
if [ -z "$is_slow_build" ]; then
	build gcc2 gcc g++ -gdwarf-2 -gstrict-dwarf && form "DWARF 2 of gcc" gcc2 gcc4 gnu llvm
	build gcc3 gcc g++ -gdwarf-3 -gstrict-dwarf && form "DWARF 3 of gcc" gcc3 gcc4 gnu llvm
	build wide gcc g++ -gdwarf-5 -gdwarf64 && form "64-bit DWARF" wide gcc5 gnu llvm
	build types gcc g++ -g -fdebug-types-section && form "type units" types gcc5 gnu llvm
	build split4 gcc g++ -gdwarf-4 -gsplit-dwarf && form "split DWARF 4 of gcc" split4 gcc4 gnu
	build csplit4 clang clang++ -gdwarf-4 -gsplit-dwarf &&
		form "split DWARF 4 of clang" csplit4 clang4 gnu
	build csplit5 clang clang++ -gdwarf-5 -gsplit-dwarf &&
		form "split DWARF 5 of clang" csplit5 clang4 gnu
	build plain gcc g++ -g -O0 && form "code that is not optimised" plain -
	build unrolled gcc g++ -g -O3 && form "-O3" unrolled -
	build dropped gcc g++ -g -ffunction-sections -fvisibility=hidden -Wl,--gc-sections &&
		form "an image from which GNU ld dropped functions" dropped -
	build lld clang clang++ -g -gdwarf-4 -ffunction-sections -fvisibility=hidden \
		-Wl,--gc-sections -fuse-ld=lld &&
		form "an image from which lld dropped functions" lld -
fi
if [ -f gcc5.so ]; then
	objcopy --compress-debug-sections=zlib gcc5.so zlib.so && form "compressed sections" zlib -
	objcopy --compress-debug-sections=zlib-gnu gcc5.so zgnu.so &&
		form "sections compressed the old way" zgnu -
	if objcopy --compress-debug-sections=zstd gcc5.so zstd.so 2>/dev/null; then
		form "sections compressed with zstd" zstd gcc5 llvm
	else
		skip "resolves sections compressed with zstd: objcopy cannot"
	fi
	cp gcc5.so linked.so && objcopy --only-keep-debug linked.so linked.debug &&
		strip linked.so && objcopy --add-gnu-debuglink=linked.debug linked.so &&
		form "an image whose debug file lies beside it" linked -
fi
if [ -f gcc5.so ] && [ -f gcc4.so ] && [ -z "$is_slow_build" ]; then
	cp gcc5.so multi1.so && cp gcc4.so multi2.so && dwz -m shared.dwz multi1.so multi2.so &&
		form "an image that shares debug information with another" multi1 gcc5 gnu llvm
fi
if [ -f split5.so ] && command -v dwp >/dev/null; then
	cp split5.so packed.so && dwp -e packed.so -o packed.so.dwp 2>dwp.txt
	if [ -s packed.so.dwp ]; then
		mv split5.d split5.away
		form "split units in one package" packed gcc5 gnu llvm
	else
		skip "resolves split units in one package: dwp says $(head -n 1 dwp.txt)"
	fi
fi

# --- a large C++ program: 17 MB of debug information, 100 MB in check-slow ---
units=2
[ -z "${WEIR_SLOW:-}" ] || units=12
[ -z "$WEIR_SAN" ] || units=1
mkdir -p big && python3 "$ROOT/tests/oracle/make_big_cpp.py" big $units
if make -s -C big -j2 >big.txt 2>&1; then
	compare "resolves a C++ program of $units units and $(($(stat -c %s big/big) / 1000000)) MB" big/big
else
	not_ok "g++ builds the large program"
	grep error big.txt | head -n 5
fi
