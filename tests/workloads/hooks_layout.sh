# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Hooked code in odd places: entries that cross a cache line and are unhooked while threads run, modules
# that were linked for another address, code that is writable. Programs work as without hooks, counts are
# exact, and code and its protection are the same afterwards.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

cat >code.py <<'PY'
# code.py PID NAME: the executable mappings of files whose names contain NAME: protection, length, and
# how many bytes differ from the file.
import sys
pid, name = sys.argv[1:]
with open(f"/proc/{pid}/mem", "rb") as mem:
    for line in open(f"/proc/{pid}/maps"):
        f = line.split(None, 5)
        if "x" not in f[1] or len(f) < 6 or name not in f[5].rsplit("/", 1)[-1]:
            continue
        start, end = (int(x, 16) for x in f[0].split("-"))
        file = open(f[5].strip(), "rb")
        file.seek(int(f[2], 16))
        want = file.read(end - start)
        mem.seek(start)
        print(f[1], end - start, sum(a != b for a, b in zip(want, mem.read(len(want)))))
PY

widths=(64)
if echo 'int main(void){return 0;}' | gcc -m32 -x c -o plain32 - 2>/dev/null; then widths+=(32); else
	skip "32-bit programs: gcc -m32 is not installed"
fi

# --- unhooked while threads run, by jumps that cross a line ---
for m in "${widths[@]}"; do
	build crossing$m crossing.c -O2 -m$m || { not_ok "crossing.c is built" && cat build.txt; }
	want=$(./crossing$m 3 40000)
	bad=0 off=0
	for ((i = 0; i < 10; i++)); do
		got=$("$WEIR" record -q --budget 1 --events 'cross_*' -o c.weir -- ./crossing$m 3 40000 2>err.txt)
		status=$?
		[ $status -eq 0 ] && [ "$got" = "$want" ] || { bad=$((bad + 1)) && echo "status $status, '$got' for '$want'" && cat err.txt; }
		"$WEIR" report hooks c.weir --json >hooks.json 2>err.txt
		off=$((off + $(json hooks.json "sum(r['off'] is not None for r in j['rows'])")))
	done
	equal "$m bits, entries that cross a cache line: unhooked while three threads run, 10 times" 0 $bad
	check "$m bits, entries that cross a cache line: they were unhooked ($off times)" test $off -gt 60
done

# --- modules that are not where their files say ---
# hosts NAME FLAGS...: two libraries linked alike, of which one cannot be where it was linked for.
hosts() {
	local name=$1
	shift
	gcc -w -O2 -shared -fPIC "$@" -o libbase_$name.so "$hook_fixtures/base.c" &&
		gcc -w -O2 -shared -fPIC "$@" -Dbase_inner=other_inner -Dbase_outer=other_outer \
			-o libbase_other_$name.so "$hook_fixtures/base.c"
}
# counted SENTENCE: the last recording has 5 calls of base_outer and 50 of base_inner.
counted() {
	"$WEIR" report flat b.weir --json >flat.json 2>err.txt
	equal "$1: calls are counted" "{'base_outer': 5, 'base_inner': 50}" \
		"$(json flat.json "{n: sum(r['calls'] or 0 for r in j['rows'] if r['name'] == n) for n in ('base_outer', 'base_inner')}")"
}
writable() { # FILE: its code segment is mapped writable, too
	python3 - "$1" <<'PY'
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
is_64 = b[4] == 2
at, = struct.unpack_from("<Q" if is_64 else "<I", b, 32 if is_64 else 28)
size, n = struct.unpack_from("<HH", b, 54 if is_64 else 42)
for i in range(n):
    p = at + i * size
    flags = p + (4 if is_64 else 24)
    if struct.unpack_from("<I", b, p)[0] == 1 and b[flags] & 1:
        b[flags] |= 2
open(sys.argv[1], "wb").write(b)
PY
}

for m in "${widths[@]}"; do
	for layout in far packed writable; do
		flags=(-m$m)
		case $layout in
		far) flags+=(-Wl,-Ttext-segment=0x40000000) ;;
		packed) flags+=(-Wl,-z,noseparate-code -Wl,-z,norelro) ;;
		esac
		name=$layout$m
		hosts $name "${flags[@]}" || { not_ok "$name is built" && continue; }
		[ $layout != writable ] || { writable libbase_$name.so && writable libbase_other_$name.so; }
		gcc -w -O2 -m$m -Wl,--no-as-needed -o host_$name "$hook_fixtures/base_host.c" \
			./libbase_other_$name.so ./libbase_$name.so
		out=$("$WEIR" record -q --events 'libbase*:base_*,libbase*:other_*' -o b.weir -- ./host_$name 5 2>err.txt)
		equal "$layout, $m bits: the program works" "0: 725 0" "$?: $out"
		counted "$layout, $m bits"

		rm -f end
		./host_$name 0 end >out.txt 2>&1 &
		target=$!
		runs $target
		before=$(python3 code.py $target base_)
		"$WEIR" record -q -p $target --events 'libbase*:base_*,libbase*:other_*' --duration 0.2 -o a.weir 2>err.txt
		equal "$layout, $m bits: attached to" 0 $?
		"$WEIR" report flat a.weir --json >flat.json 2>err.txt
		check "$layout, $m bits: attached: calls are recorded" test \
			"$(json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name'] == 'base_inner')")" -gt 9
		equal "$layout, $m bits: code and its protection are as before" "$before" "$(python3 code.py $target base_)"
		touch end
		wait $target
		equal "$layout, $m bits: attached: the program has worked" "0: 0 0" "$?: $(cat out.txt)"
	done
done

# A program whose addresses are fixed, at the usual place and far up.
for place in 0x400000 0x10000000; do
	gcc -w -O2 -no-pie -Wl,-Ttext-segment=$place -o fixed "$hook_fixtures/base.c" "$hook_fixtures/base_host.c"
	out=$("$WEIR" record -q --events 'base_*' -o b.weir -- ./fixed 5 2>err.txt)
	equal "a program at $place: works" "0: 725 0" "$?: $out"
	counted "a program at $place"
done
