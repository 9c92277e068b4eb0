# SPDX-License-Identifier: MIT
# Files that lose their contents while the recorder has them open: what was read counts, what is gone
# has a reason, and the trace is whole.
. "$ROOT/tests/lib.sh"

cat >p.c <<'END'
static char fill[3 << 20] = {1}; /* so that symbols are pages away from the code */
__attribute__((noinline)) double spin_here(long n)
{
	double x = 1;
	for (long i = 0; i < n; i++)
		x = x * 1.0000001 + fill[i & 1023];
	return x;
}
int main(void) { return spin_here(60000000) < 0; }
END
gcc -O1 -g -o kept p.c || exit 1

cp kept p
"$WEIR" record -q -o kept.weir -- sh -c './p; sleep .2'
check "the function has its name while the file is there" grep -q spin_here <("$WEIR" report flat kept.weir)

# lost NAME COMMAND: what is done to the file once it has run.
lost() {
	cp kept p
	"$WEIR" record -q -o lost.weir -- sh -c "./p; $2; sleep .3" 2>err.txt
	equal "$1: the recorder lives" 0 $?
	"$WEIR" report loss lost.weir --json >loss.json
	equal "$1: its trace has an index" 0 $?
	"$WEIR" report flat lost.weir >flat.txt
	check "$1: other files have their names" grep -q __libc_start_main flat.txt
	check "$1: its frames count, by address" grep -q 'p+0x' flat.txt
	check "$1: no name is made of zeros or of other contents" test -z "$(grep -E 'spin_here|other_name' flat.txt)"
	check "$1: and a reason is given" grep -q "/p'.*no symbols" <("$WEIR" report loss lost.weir)
}
lost "truncated to nothing" ': >p'
lost "truncated to a few bytes" 'echo x >p'
sed 's/spin_here/other_name/' p.c >q.c
gcc -O1 -g -o q q.c || exit 1
lost "overwritten by another program" 'cat q >p'
