# SPDX-License-Identifier: MIT
# weir-test: root: random scripts pass the kernel's verifier
# Random valid scripts of the probe language are loaded for real: the kernel's verifier refuses none of them, and
# says the place in the script where it does refuse something.
. "$ROOT/tests/lib.sh"
{
	for i in 0 1 2 3 4 5 6 7 8 9; do
		echo "__attribute__((noinline)) long f$i(long a, void *p, long n) { return a + n + (p != 0); }"
	done
	echo "int main(void) { return (int)f0(1, 0, -1); }"
} >target.c
programs=
gcc -g -O0 -o target64 target.c && programs="./target64"
gcc -g -O0 -m32 -o target32 target.c 2>/dev/null && programs="$programs ./target32"
for seed in ${SEED:-7} $((${SEED:-7} + 1000)); do
	# shellcheck disable=SC2086
	python3 "$ROOT/tests/oracle/probe_verifier.py" "$seed" 150 "random$seed.wr" $programs
	timeout 30 "$WEIR" probe -q "random$seed.wr" >out.txt 2>err.txt
	code=$?
	equal "150 random clauses of seed $seed pass the kernel's verifier" "0 " \
		"$code $(grep -a 'error:\|refuses\|cannot' err.txt | head -n 5)"
	refused=$(sed -n 's/.*random[0-9]*\.wr:\([0-9]*\):[0-9]*: the kernel.s verifier.*/\1/p' err.txt | head -n 1)
	if [ -n "$refused" ]; then sed -n "${refused}p" "random$seed.wr"; fi
done

# Loops with an end that is not known, many clauses at one point, functions that are unrolled.
loads() { # SENTENCE SCRIPT
	timeout 30 "$WEIR" probe -q -e "$2" >out.txt 2>err.txt
	equal "$1" "" "$(grep -a 'error:\|refuses' err.txt | head -n 3)"
}
loads "a loop up to a condition on data is loaded" \
	'begin { $i = (uint64)0; while ($i < nsecs) { $i++; if (rand % 2) { @x += $i; } else { @y[comm] = count(); } } exit(); }'
loads "loops in loops up to conditions are loaded" \
	'begin { $i = 0; while ($i < rand) { $i++; for ($j : 0..rand) { @x += $j; while (@x > rand) { @x -= 3; } } } exit(); }'
# shellcheck disable=SC2016
loop='profile:s:1000 { $i = 0; while ($i < rand) { $i++; @x[$i] = $i; if (rand % 3) { @y++; } } }'
loads "four clauses with such loops at one point are loaded" "$loop $loop $loop $loop begin { exit(); }"
loads "a loop over the largest range is loaded" \
	'begin { for ($i : -9223372036854775807..9223372036854775807) { @x = $i; } exit(); }'
loads "strlen and strcontains several times are loaded" \
	'begin { $s = str(0, 500); @a = strlen($s) + strlen(comm) + strlen($s); if (strcontains(comm, "a") && strcontains(comm, "bcd") && strcontains(comm, "xyzw")) { @b = strlen($s); } exit(); }'
loads "several stacks in a clause are loaded" \
	'profile:s:1000 { @a[kstack, ustack] = count(); @b[kstack(3)] = count(); @c[ustack(9), ustack] = count(); } begin { exit(); }'
loads "unroll(100) is loaded" 'begin { unroll(100) { @x++; @h = hist(nsecs); @s[comm] = sum(@x); } exit(); }'
many=$(for i in $(seq 50); do
	printf 'interval:s:1000 /pid > %s/ { @a%s[comm] = hist(nsecs); printf("%%s %%d\\n", comm, strlen(comm)); } ' "$i" "$i"
done)
loads "fifty clauses at one point are loaded" "$many begin { exit(); }"

# What the kernel does refuse is shown where it is.
cat >refused.wr <<'END'
begin {
	for ($i : 0..1999) {
		if (rand % 3) { @a[comm] = count(); } else { @b[comm, $i] = sum(rand); }
		if (rand % 5) { @c[comm] = hist(rand); } else { @d = lhist(rand % 7, 0, 10, 1); }
	}
	exit();
}
END
timeout 30 "$WEIR" probe -q --without turns refused.wr >refused.out 2>refused.err
equal "what is too much for the verifier ends with status 1" 1 $?
check "and is shown with its clause" grep -qE '^refused.wr:1:1: error: the verifier of the kernel gives up: .*\[size\]$' refused.err
check "and with what to do" grep -q '^  hint: fewer conditions' refused.err
