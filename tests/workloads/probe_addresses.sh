# SPDX-License-Identifier: MIT
# weir-test: root: system calls of both modes
# Results of system calls that are addresses: above 2 GiB they are positive in 32-bit programs, too, and only
# errors are negative. The program says what the kernel gave it; strace says the same of another run.
. "$ROOT/tests/lib.sh"

program=$ROOT/tests/fixtures/probe/addresses.c
gcc -m64 -O1 -o addresses64 "$program" || { not_ok "the 64-bit program compiles" && finish; }
gcc -m32 -O1 -o addresses32 "$program" 2>gcc.txt || { skip "addresses in 32-bit programs: gcc -m32 does not work here" && finish; }

cat >named.wr <<'E2'
syscall:mmap:return, syscall:mmap2:return, syscall:mremap:return, syscall:brk:return, syscall:shmat:return {
	printf("%s %d\n", probe, retval);
	@[retval < 0] = count();
}
E2
echo 'syscall:*:return { printf("%s %d\n", probe, retval); }' >all.wr
echo 'syscall:m*map*:return { printf("%s %d\n", probe, retval); }' >several.wr

# The program's calls are the last ones of each kind.
lines() { sed -n 's/^syscall:\([a-z0-9]*\):return /\1 /p' "$1" | grep -E "^(mmap2?|mremap|brk|shmat) "; }
for bits in 32 64; do
	for script in named all several; do
		timeout 120 "$WEIR" probe -q -i $script.wr -c "./addresses$bits" >$script$bits.txt 2>$script$bits.err
	done
	# Up to its own first call of each kind the program's start is in it, too.
	grep -E "^(mmap2?|mremap|brk|shmat) " named$bits.txt >own.txt
	n=$(wc -l <own.txt)
	equal "addresses that system calls of a $bits-bit program return are those that it gets" "$(cat own.txt)" \
		"$(lines named$bits.txt | tail -n "$n")"
	grep -E "^(mmap2?|mremap|brk|shmat) " all$bits.txt >own.txt
	equal "so they are in a clause about all calls ($bits bits)" "$(cat own.txt)" "$(lines all$bits.txt | tail -n "$n")"
	grep -E "^(mmap2?) " several$bits.txt >own.txt
	n=$(wc -l <own.txt)
	equal "and in one about several ($bits bits)" "$(cat own.txt)" "$(lines several$bits.txt | grep "^mmap" | tail -n "$n")"
	equal "what failed is negative, and nothing else ($bits bits)" "3" "$(sed -n 's/^@\[true\]: //p' named$bits.txt)"
	# The same addresses in every run.
	setarch -R timeout 120 "$WEIR" probe -q -i named.wr -c "./addresses$bits" >fixed.txt 2>fixed.err
	if command -v strace >/dev/null; then
		setarch -R strace -e trace=mmap,mmap2,mremap,brk,shmat -o strace.txt "./addresses$bits" >strace.out 2>&1
		strace_says=$(sed -n 's/^\([a-z0-9]*\)(.* = \(0x[0-9a-f]*\|-[0-9]*\).*/\1 \2/p' strace.txt |
			while read -r name value; do
				case $value in -*) echo "$name failed" ;; *) echo "$name $((value))" ;; esac
			done)
		equal "strace says the same ($bits bits)" "$strace_says" \
			"$(lines fixed.txt | sed 's/ -.*/ failed/')"
	else
		skip "strace says the same ($bits bits): strace is not here"
	fi
done
finish
