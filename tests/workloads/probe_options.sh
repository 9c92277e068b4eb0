# SPDX-License-Identifier: MIT
# weir-test: root: parameters and options of trace scripts
# What stands behind a script: $1, str($1), getopt().
. "$ROOT/tests/lib.sh"

cat >options.wr <<'S'
begin {
	printf("%d %d %s %d %d [%s] %d\n", getopt("count", 7, "how many"), getopt("low", -2), getopt("name", "nobody"),
		getopt("quick"), getopt("warm", true), str($1), $#);
}
S
# gives SENTENCE EXPECTED ARGUMENTS...
gives() {
	local sentence=$1 expected=$2
	shift 2
	timeout 120 "$WEIR" probe -q options.wr "$@" >out.txt 2>err.txt
	rc=$?
	equal "$sentence" "$expected" "$(cat out.txt)"
}
gives "without options the defaults hold" "7 -2 nobody 0 1 [] 0"
gives "options have values of their kinds" "9 -3 somebody 1 0 [] 0" -- --count=9 --low=-3 --name=somebody --quick --warm=false
gives "numbers may be hexadecimal, and truth 0 and 1" "255 0 a=b 1 0 [] 0" -- --count=0xff --low=0 --name=a=b --quick=1 --warm=0
gives "the last one counts, a text may be empty" "2 -2  0 1 [] 0" -- --count=1 --count=2 --name=
gives "words without -- are positional, on both sides" "7 -2 nobody 1 1 [first] 2" first -- --quick -5
gives "an option that the script does not have is an error" "" -- --counts=1
equal "and the message names those that it has" "1 1" "$rc $(grep -c 'hint: it has --count --low --name --quick --warm$' err.txt)"
gives "a number that is none is an error" "" -- --count=many
equal "at its getopt()" "1 options.wr:2:37 [parameter]" "$rc $(sed -n 's/^\(options.wr:[0-9:]*\): error.*\(\[.*\]\)$/\1 \2/p' err.txt)"
gives "a value that is missing is an error" "" -- --name
equal "with the tag of parameters" "1 [parameter]" "$rc $(grep -o '\[parameter\]$' err.txt)"
gives "--help prints the options and runs nothing" "$(printf 'Options of the script, behind --:\n  --count=NUMBER         how many (7)\n  --low=NUMBER           (-2)\n  --name=TEXT            ("nobody")\n  --quick                (false)\n  --warm                 (true)')" -- --help
equal "and ends well" "0 " "$rc $(cat err.txt)"
timeout 120 "$WEIR" probe -q 'begin { print(str($1 + 2)); print(str($1 + 6)); print(strlen(str($1 + 1, 3))); }' abcdef >out.txt 2>err.txt
equal "str(\$1 + 2) begins at the third character" "cdef 3" "$(echo $(cat out.txt))"
timeout 120 "$WEIR" probe -q 'begin { print(str($1 + 7)); }' abcdef >out.txt 2>err.txt
equal "behind its end there is nothing" "1 [parameter]" "$? $(grep -o '\[parameter\]$' err.txt)"
timeout 120 "$WEIR" probe -q 'fn slow() : int64 { return getopt("slow", 3); } macro shown() { getopt("text", "t") } begin { print((slow(), shown())); }' -- --slow=4 --text=u >out.txt 2>err.txt
equal "options are in macros and functions, too" "(4, u)" "$(cat out.txt)"
timeout 120 "$WEIR" probe -q -o kept.wprobe options.wr -- --name=kept --count=1 && timeout 120 "$WEIR" probe -q kept.wprobe >out.txt 2>err.txt
equal "a compiled script keeps the values" "1 -2 kept 0 1 [] 0" "$(cat out.txt)"

# --- options of weir probe, and those that users of bpftrace type --------------------------------------------------
cat >periods.wr <<'S'
begin { printf("begin "); }
interval:ms:7 { printf("seven "); exit(); }
interval:ms:30,interval:ms:40 { printf("later "); exit(); }
end { printf("end\n"); }
S
run() {
	timeout 120 "$WEIR" probe "$@" >out.txt 2>err.txt
	rc=$?
}
run -q --probe-filter 'ms:(30|40)$' periods.wr
equal "--probe-filter leaves out what does not match, begin and end stay" "begin later end" "$(cat out.txt)"
run -q --probe-filter 'kprobe' -e 'interval:ms:7 { exit(); }'
equal "a filter that leaves nothing is an error" "1 [no-sites]" "$rc $(grep -o '\[no-sites\]$' err.txt)"
run -q --probe-filter '(x' periods.wr
equal "an expression that is none is wrong usage" "2 1" "$rc $(grep -c -- "--probe-filter: '(x'" err.txt)"
run --no-warnings -e 'config = { log_size = 5 } begin { $unused = 1; print(3); }'
equal "--no-warnings" "3 0" "$(cat out.txt) $(grep -c warning err.txt)"
run -e 'config = { log_size = 5 } begin { $unused = 1; print(3); }'
equal "without it there are two" "3 2" "$(cat out.txt) $(grep -c warning err.txt)"
run -q -k -B line -I /usr/include --include no-such-header.h -e 'begin { print(4); }'
equal "-B, -I, -k and --include of a header are understood" "0 4 " "$rc $(cat out.txt) $(cat err.txt)"
run -q -B sometimes -e 'begin { print(4); }'
equal "-B has three modes" "2" "$rc"
run -q --cmd 'true' -e 'begin { print(5); }'
equal "--cmd is --command" "0 5" "$rc $(cat out.txt)"
run -V
equal "-V is the version" "$("$WEIR" --version)" "$(cat out.txt)"
run --info
check "--info names weir doctor" grep -q 'weir doctor' out.txt
timeout 120 "$WEIR" probe -q -e 'begin { print((__builtin_pid == pid(), __builtin_strlen("abc"))); }' >out.txt 2>err.txt
check "__builtin_NAME is NAME" grep -q '^(\(1\|true\), 3)$' out.txt

# --- --debuginfo ---------------------------------------------------------------------------------------------------
mkdir -p debug debug/none
printf '__attribute__((noinline)) int named(int number) { __asm__ volatile(""); return number; }\nint main(void) { return named(5) - 5; }\n' >bare.c
gcc -O1 -g -Wl,--build-id -o bare bare.c && objcopy --only-keep-debug bare debug/bare.debug && strip -g bare || not_ok "the program compiles"
with_debug() { timeout 120 "$WEIR" probe -q "$@" 'uprobe:./bare:named { print(args.number); }' -c ./bare 2>&1; }
equal "--debuginfo: files with debug information in a folder" "5" "$(with_debug --debuginfo debug/none --debuginfo debug)"
check "they are not found without" grep -q '\[[a-z-]*\]$' <<<"$(with_debug)"
printf 'int main(void) { return 0; }\n' | gcc -g -x c -o stranger - && cp stranger debug/bare.debug
check "that of another program is not taken" grep -q '\[[a-z-]*\]$' <<<"$(with_debug --debuginfo debug)"
