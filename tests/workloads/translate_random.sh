# SPDX-License-Identifier: MIT
# Random programs of every kind of instruction, with flags, red zones and vectors live over jumps, calls and returns,
# end translated with the registers, flags and memory that they have natively; among signals, too.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
fixtures=$ROOT/tests/fixtures/translate
"$WEIR" count -q -o true.weir -- true 2>err.txt || { skip "random programs: $(head -n 1 err.txt)" && finish; }
grep -q avx512bw /proc/cpuinfo && width=-DWIDE
[ -n "${width:-}" ] || { grep -qw avx /proc/cpuinfo && width=-DBROAD; }
gcc ${width:+"$width"} -c -o frame.o "$fixtures/random_frame.S" || { not_ok "the frame is built" && finish; }

# build SEED: odd ones use what is far below the stack pointer, one in three is below 2 GB
build() {
	local far='' low='' place=-Wl,-Ttext-segment=0x555500000000
	[ $(($1 % 2)) = 1 ] && far=far
	[ $(($1 % 3)) = 0 ] && low=low place=
	python3 -B "$fixtures/random_program.py" "$1" $far $low >program.s &&
		gcc -nostdlib -static -no-pie ${place:+"$place"} -o program frame.o program.s
}

# same SEED MODE ROUNDS: false when it is not; kept is what differs
same() {
	local status
	timeout 60 "$WEIR" count -q -o program.weir -- ./program "$2" "$3" >translated.bin 2>err.txt
	status=$?
	cmp -n "$(stat -c %s translated.bin)" native.bin translated.bin >diff.txt 2>&1 && [ -s translated.bin ] && [ $status = 0 ] && return
	echo "program $1 mode $2 rounds $3: status $status $(head -n 1 diff.txt) $(head -n 1 err.txt)"
	return 1
}

# all FROM TO ROUNDS
all() {
	local seed mode modes bad=''
	for ((seed = $1; seed <= $2; seed++)); do
		build $seed || { bad+=" $seed (not built)" && continue; }
		timeout 20 ./program 0 3 >native.bin && same $seed 0 3 || bad+=" $seed"
		timeout 20 ./program 0 "$3" >native.bin
		modes='1 3'
		[ $((seed % 2)) = 1 ] && modes=2
		for mode in $modes; do
			same $seed "$mode" "$3" || bad+=" $seed/$mode"
		done
	done
	equal "random programs $1 to $2 end as natively, among signals, too" "" "$bad"
}
all 1 10 500
[ -z "${WEIR_SLOW:-}" ] || all 1000 1200 3000
