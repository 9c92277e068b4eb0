# SPDX-License-Identifier: MIT
# weir count -- CMD: programs of the distribution and all their libraries have the counts that callgrind sees,
# instruction by instruction.
# weir-test: once: what counts runs inside other programs and has no sanitizer in any build
# weir-test: patient
. "$ROOT/tests/lib.sh"
command -v valgrind >/dev/null || { skip "what callgrind sees: valgrind is not installed" && finish; }
[ "$(uname -m)" = x86_64 ] || { skip "unmodified programs: they are counted on x86-64 alone" && finish; }

# libc, libcrypto and others choose functions by the processor, and valgrind emulates an older one: both get the oldest.
tunables=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-RTM,-BMI2
tunables=$tunables,-SSSE3,-SSE4_2,-SSE4_1,-Fast_Unaligned_Copy,-Fast_Unaligned_Load,-Prefer_No_VZEROUPPER
same_environment=(setarch -R env -i PATH=/usr/bin:/bin LC_ALL=C HOME="$PWD" GLIBC_TUNABLES=$tunables)

# judge COMMAND...: in both, same output; a program that is not here is skipped
judge() {
	local name=$1
	command -v "$1" >/dev/null || { skip "$name: it is not installed" && return; }
	"${same_environment[@]}" "$WEIR" count -q -o t.weir -- "$@" >counted.txt 2>weir.txt </dev/null
	local rc=$?
	"${same_environment[@]}" valgrind -q --tool=callgrind --dump-instr=yes --compress-strings=no --compress-pos=no \
		--skip-plt=no --callgrind-out-file="$PWD/callgrind.txt" "$@" >judged.txt 2>valgrind.txt </dev/null
	equal "$name: it ends as under callgrind" $? $rc
	check "$name: and prints the same" cmp counted.txt judged.txt
	python3 "$ROOT/tests/fixtures/translate/callgrind_equal.py" "$name" t.weir callgrind.txt
}

head -c 200000 "$WEIR" >input
(cd "$ROOT/docs/man" && cat weir*.1) >text
judge sort -k2 text
judge sed -E 's/(weir|trace) *([a-z]+)/\2 \1/g' text
judge mawk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) s += n[w] * length(w); print s }' text
judge xz -0 -c input
judge openssl prime 18446744073709551557 9223372036854775783
judge sqlite3 :memory: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 6000) SELECT sum(x * x % 7), count(DISTINCT x % 100) FROM c;'
judge perl -e '$h{$_ % 1000} .= "a" for 1..20000; print scalar(%h), "\n"'
printf '\nend\n'
