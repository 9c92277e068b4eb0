# SPDX-License-Identifier: MIT
# Sourced: make_plugins FOLDER N makes libraries that differ in one name only, and the host.

make_plugins() {
	mkdir -p "$1" &&
		echo 'unsigned burn(unsigned n) { volatile unsigned x = 0; while (n--) x += n * 3; return x; }' >"$1/burn.c" &&
		gcc -O1 -fPIC -c -o "$1/burn.o" "$1/burn.c" &&
		gcc -O2 -o plugin_host "$ROOT/tests/workloads/plugin_host.c" -ldl || return 1
	for ((i = 0; i < $2; i++)); do
		objcopy --redefine-sym burn=burn_"$i" "$1/burn.o" "$1/burn_$i.o" &&
			ld -shared --build-id -z noexecstack -o "$1/lib$i.so" "$1/burn_$i.o" || return 1
		rm "$1/burn_$i.o"
	done
}
