# SPDX-License-Identifier: MIT
# weir-test: root: programs of both modes are traced
# args.NAME is what the program itself says it was given, or is refused: never wrong. All compilers that are
# here, both modes, with and without optimisation; the least number that must be right shows that not all
# is refused.
. "$ROOT/tests/lib.sh"

fixture=$ROOT/tests/fixtures/probe
matrix() { # SOURCE LEAST NAME COMPILER...
	local source=$1 least=$2 name=$3 said
	shift 3
	"$@" -g -o "$name" "$source" 2>compile.txt || { skip "arguments of $name: it does not compile here" && return; }
	said=$(timeout 60 python3 -SE "$fixture/places.py" "$WEIR" "./$name" 2>&1)
	case $said in
	right*"wrong 0") ;;
	*) not_ok "arguments of $name are right or refused: $said" && return ;;
	esac
	set -- $said
	check "arguments of $name are right or refused, and at least $least right" [ "$2" -ge "$least" ]
}

matrix "$fixture/places.c" 57 gcc-64-O0 gcc -m64 -O0 -w
matrix "$fixture/places.c" 57 gcc-32-O0 gcc -m32 -O0 -w
matrix "$fixture/places.c" 50 gcc-64-O2 gcc -m64 -O2 -w
matrix "$fixture/places.c" 50 gcc-32-O2 gcc -m32 -O2 -w
matrix "$fixture/places.c" 50 gcc-32-Os gcc -m32 -Os -w -fno-pie -no-pie
matrix "$fixture/places.c" 50 gcc-64-O1-dwarf4 gcc -m64 -O1 -w -gdwarf-4
matrix "$fixture/places.c" 50 gcc-32-O1-dwarf4 gcc -m32 -O1 -w -gdwarf-4
matrix "$fixture/places.c" 50 gcc-64-O2-split gcc -m64 -O2 -w -gsplit-dwarf
matrix "$fixture/places.c" 57 clang-64-O0 clang -m64 -O0 -w
matrix "$fixture/places.c" 57 clang-32-O0 clang -m32 -O0 -w
matrix "$fixture/places.c" 52 clang-64-O2 clang -m64 -O2 -w
matrix "$fixture/places.c" 46 clang-32-O2 clang -m32 -O2 -w
matrix "$fixture/places.c" 46 clang-32-Os clang -m32 -Os -w
matrix "$fixture/places.cc" 16 g++-64-O0 g++ -m64 -O0
matrix "$fixture/places.cc" 14 g++-32-O2 g++ -m32 -O2
matrix "$fixture/places.cc" 16 clang++-64-O2 clang++ -m64 -O2
matrix "$fixture/places.cc" 16 clang++-32-O0 clang++ -m32 -O0
if command -v rustc >/dev/null; then
	matrix "$fixture/places.rs" 20 rust-O0 rustc
	matrix "$fixture/places.rs" 18 rust-O2 rustc -C opt-level=2
else
	skip "arguments of Rust programs: rustc is not here"
fi

# --- a structure of which the function uses a part: callers in the same file need not give the rest -------
cat >partly.c <<'C'
#include <stdio.h>
struct pair { int a; long long b; };
__attribute__((noinline)) int partly(char c, double k, struct pair h)
{
	__asm__ volatile("");
	return h.a + c + (int)k;
}
int main(int argc, char **argv)
{
	struct pair p = {argc, 1234567890123};
	(void)argv;
	return partly(1, argc, p) == 0;
}
C
for cc in "clang -m32 -O1" "clang -m64 -O2" "gcc -m32 -O2" "gcc -m64 -O2"; do
	$cc -g -o partly partly.c 2>compile.txt || { skip "structures used in part: $cc does not work here" && continue; }
	timeout 120 "$WEIR" probe -q 'uprobe:./partly:partly { print(args.h.b); }' -c ./partly >partly.txt 2>&1
	check "a field that $cc has not stored is never another number" grep -qE '^1234567890123$|\[unreadable\]$' partly.txt
done

# --- arguments of which debug information says nothing, and room that is made by push ------------------------
cat >gone.c <<'C'
struct one { long f; };
volatile long long sum;
__attribute__((noinline)) int gone(char used, int unused, short other) { sum += used + other; __asm__ volatile(""); return 1; }
static __attribute__((noinline)) unsigned pushed(long a, short b, signed char c, unsigned d, struct one e, float f, long g)
{
	(void)e, (void)f, (void)g;
	sum += a; sum += b; sum += c; sum += d;
	__asm__ volatile("");
	return 2;
}
int main(void) { return gone(1, -77, 2) + pushed(1, 2, 3, 4, (struct one){-521536327}, 2.5, 6) == 0; }
C
for cc in "clang -m64 -O2" "clang -m32 -O0" "clang -m32 -O1" "gcc -m64 -O2" "gcc -m32 -O0"; do
	$cc -g -w -o gone gone.c 2>compile.txt || { skip "unused arguments: $cc does not work here" && continue; }
	timeout 120 "$WEIR" probe -q 'uprobe:./gone:gone { print(args.unused); }' -c ./gone >gone.txt 2>&1
	check "an argument that nobody uses is right or refused ($cc)" grep -qE '^-77$|\[unreadable\]$' gone.txt
	[[ $cc != *-O0 ]] && continue
	timeout 120 "$WEIR" probe -q 'uprobe:./gone:pushed { print(args.e.f); }' -c ./gone >gone.txt 2>&1
	equal "a register that is pushed to make room is no argument ($cc)" "-521536327" "$(cat gone.txt)"
done

# --- further inside a function -----------------------------------------------------------------
# Behind the first call of a function at -O0 its slots are written; in front of the store they are not.
cat >inside.c <<'C'
#include <stdio.h>
__attribute__((noinline)) int inner(int n) { return n + 1; }
__attribute__((noinline)) int outer(int n, long long w)
{
	int m = inner(n);
	n = 99;
	return inner(m + n + (int)w);
}
int main(void) { return outer(7, 5000000000ll) == 0; }
C
for bits in 32 64; do
	gcc -m$bits -O0 -g -o inside$bits inside.c 2>compile.txt || { skip "places inside functions of $bits bits: gcc -m$bits does not work here" && continue; }
	sites=$(objdump -d --no-show-raw-insn inside$bits | sed -n '/<outer>:/,/^$/p' |
		sed -n 's/^ *\([0-9a-f]*\):.*/0x\1/p')
	script=
	for site in $sites; do
		script="$script uprobe:./inside$bits:$site { printf(\"%d %d\\n\", args.n, args.w); }"
	done
	timeout 120 "$WEIR" probe -q -e "$script" -c "./inside$bits" >inside.txt 2>inside.err
	equal "at each instruction of a function of $bits bits its arguments are what they are there" "7 5000000000
99 5000000000" "$(uniq inside.txt)"
done
finish
