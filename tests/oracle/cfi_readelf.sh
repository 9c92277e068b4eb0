# SPDX-License-Identifier: MIT
# Every row of the CFI tables of real files against readelf's interpretation of the same sections.
# weir-test: patient
. "$ROOT/tests/lib.sh"

# like_readelf NAME FILE
like_readelf() {
	local line rows wrong
	if [ ! -e "$2" ]; then
		skip "the rows of $1 are readelf's: $2 is not here"
		return
	fi
	python3 "$ROOT/tests/oracle/cfi_readelf.py" "$2" "$BUILD/tests/oracle/cfi_rows" >rows.txt 2>&1
	line=$(tail -n 1 rows.txt)
	read -r _ rows _ wrong <<<"$line"
	echo "$1: $line"
	if [ "${wrong:-1}" = 0 ] && [ "${rows:-0}" -gt 0 ]; then
		ok "the rows of $1 are readelf's"
	else
		not_ok "the rows of $1 are readelf's"
		head -n 10 rows.txt
	fi
}

cat >frames.c <<'END'
int g(int *);
int f(int a) { int v[a + 1]; return g(v) + a; }
int main(int n, char **v) { return f(n) * f(n + (int)**v) + 1; }
int g(int *p) { return *p; }
END
quiet="-O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables"
like_readelf "64-bit libc" "$(ldd /bin/sh | grep -o '/[^ ]*libc\.so\.6')"
like_readelf "the dynamic linker" "$(ldd /bin/sh | grep -o '/[^ ]*ld-linux[^ ]*')"
like_readelf "libstdc++" "$(gcc -print-file-name=libstdc++.so.6)"
like_readelf "perl" "$(readlink -f /usr/bin/perl)"
like_readelf "32-bit libc" /usr/lib32/libc.so.6
[ -z "${WEIR_SLOW:-}" ] || like_readelf "cc1" "$(gcc -print-prog-name=cc1)"
for bits in 64 32; do
	if gcc -m$bits $quiet -no-pie -o frames$bits frames.c 2>err.txt; then
		like_readelf "a $bits-bit .debug_frame" "$PWD/frames$bits"
	else
		skip "the rows of a $bits-bit .debug_frame are readelf's: gcc -m$bits does not work here"
	fi
done
