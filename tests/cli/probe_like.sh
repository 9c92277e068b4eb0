# SPDX-License-Identifier: MIT
# weir-test: root: probes are attached
# --like: the forms of an older bpftrace, row by row of docs/probe-language.md, OUTPUT OF OLDER VERSIONS.
. "$ROOT/tests/lib.sh"
script=$ROOT/tests/fixtures/probe/like.wr
bar='@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@'

# probe NAME ARGUMENTS...: NAME.txt, NAME.err, $rc
probe() {
	local name=$1
	shift
	timeout 60 "$WEIR" probe --no-warnings "$@" >"$name.txt" 2>"$name.err"
	rc=$?
}

cat >new.expected <<EOF
begin
true
(GREEN, false)
1 5
-1
{ .m = 15, .n = 3 }
{ .low = -1, .rest = 0 }
ERROR: cat: '/does/not/exist': No such file or directory
end
@z_first: 0x20
@pointer[0x20]: 0xffffffffffffffff

@key[{ .m = 15, .n = 3 }]: 1

@number[18446744073709551615]: 2

@stats: { .count = 2, .average = 4, .total = 8 }
@several[1]: { .count = 1, .average = 3, .total = 3 }
@several[2]: { .count = 1, .average = 4, .total = 4 }

@average[1]: 2

@hist:
[2, 4)                 1 |$bar|

EOF
cat >old.expected <<EOF
Attaching 2 probes...
BEGIN
1
(5, 0)
8 5
15
{ .m = 15, .n = 3 }
{ .low = 15, .rest = 0 }
ERROR: failed to open file '/does/not/exist': No such file or directory
END


@average[1]: 2

@hist:$(printf ' ')
[2, 4)                 1 |$bar|

@key[{.m=15,.n=3}]: 1

@number[-1]: 2
@pointer[0x20]: -1
@several[1]: count 1, average 3, total 3
@several[2]: count 1, average 4, total 4

@stats: count 2, average 4, total 8

@z_first: 32
@zero: 0
EOF
cat >json.expected <<'EOF'
{"type": "attached_probes", "data": {"probes": 2}}
{"type": "value", "data": "BEGIN"}
{"type": "value", "data": 1}
{"type": "value", "data": [5,0]}
{"type": "printf", "data": "8 5\n"}
{"type": "printf", "data": "15\n"}
{"type": "value", "data": { "m": 15, "n": 3 }}
{"type": "value", "data": { "low": 15, "rest": 0 }}
{"type": "cat", "data": "ERROR: failed to open file '/does/not/exist': No such file or directory\n"}
{"type": "value", "data": "END"}
{"type": "stats", "data": {"@average": {"1": 2}}}
{"type": "hist", "data": {"@hist": [{"min": 2, "max": 3, "count": 1}]}}
{"type": "map", "data": {"@key": {"{.m=15,.n=3}": 1}}}
{"type": "map", "data": {"@number": {"-1": 2}}}
{"type": "map", "data": {"@pointer": {"0x20": -1}}}
{"type": "stats", "data": {"@several": {"1": {"count": 1, "average": 3, "total": 3}, "2": {"count": 1, "average": 4, "total": 4}}}}
{"type": "stats", "data": {"@stats": {"count": 2, "average": 4, "total": 8}}}
{"type": "map", "data": {"@z_first": 32}}
{"type": "map", "data": {"@zero": 0}}
EOF

# --- the forms ---
probe new "$script"
check "without --like the forms are those of 0.26" cmp new.txt new.expected
equal "the first line is a message" "Attached 2 probes" "$(cat new.err)"
probe named --like 0.26 "$script"
check "--like 0.26 is what there is without it" cmp named.txt new.expected
probe old --like 0.17 "$script"
check "--like 0.17: values, maps, their order and blank lines" cmp old.txt old.expected
equal "the first line is output, and nothing is a message" "0 " "$rc $(cat old.err)"
probe json --like 0.17 -f json "$script"
check "--like 0.17: JSON" cmp json.txt json.expected
if [ -n "$(command -v bpftrace)" ] && bpftrace --version | grep -q 'v0\.17\.'; then
	peer='BEGIN { @a[1] = 1; @b = (int8 *)32; @s = stats(-10); @t["x"] = stats(2); @v = avg(3); @w = hist(9); @c = count();
		@n[1] = 1; clear(@n); print(@a); print(@s); print((1, "x")); print(1 < 2); @u[(uint64)-1] = 1; exit(); }
		END { printf("%s", probe); }'
	probe peer --like 0.17 "$peer"
	if bpftrace -e "$peer" >bpftrace.txt 2>bpftrace.err; then
		equal "bpftrace 0.17 itself prints the same" "$(cat bpftrace.txt)" "$(cat peer.txt)"
	else
		skip "bpftrace 0.17 itself prints the same: it does not run here"
	fi
else
	skip "bpftrace 0.17 itself prints the same: it is not installed"
fi

# --- names of points, stacks ---
gcc -O1 -g -o calls "$ROOT/tests/fixtures/probe/like_calls.c" || not_ok "the program compiles"
probe points --like 0.17 -c ./calls 'tracepoint:syscalls:sys_enter_getppid { @[probe] = count(); }
	tracepoint:syscalls:sys_exit_getppid { @[probe] = count(); }'
equal "system calls have the names of tracepoints" "tracepoint:syscalls:sys_enter_getppid]: 3
tracepoint:syscalls:sys_exit_getppid]: 3" "$(sed -n 's/^@\[//p' points.txt | sort)"
probe stack --like 0.17 -c ./calls 'uprobe:./calls:inner { print(ustack(2)); @[1] = ustack(1); @[2] = ustack(1); }'
equal "stacks are functions without places; between those that are values is no blank line" "
        inner+0
        outer+N



@[1]:$(printf ' ')
        inner+0
@[2]:$(printf ' ')
        inner+0

." "$(sed '1d; s/outer+[0-9]*/outer+N/' stack.txt; echo .)"

# --- buf(), the end of a script, -o ---
probe buffer --like 0.17 -q 'BEGIN { @[buf("ab", 4)] = 1; exit(); }'
equal "zeros are behind a text that is shorter than buf() says" '@[ab\x00\x00]: 1' "$(grep @ buffer.txt)"
probe short 'BEGIN { @[buf("ab", 4)] = 1; exit(); }'
equal "without --like that is an error" "1 1" "$rc $(grep -c 'it has only 3 bytes' short.err)"
timeout -s INT 1 "$WEIR" probe --like 0.17 -q 'END { printf("over\n"); }' >waits.txt
equal "a script of END alone waits for Ctrl-C" "124 over" "$? $(grep . waits.txt)"
probe output --like 0.17 -o there.txt 'BEGIN { printf("x\n"); exit(); }'
equal "-o names the file of the output" "0  Attaching 1 probe... x" "$rc $(cat output.txt) $(echo $(cat there.txt))"

probe words --like 0.17 -q -c "echo 'a b'" 'BEGIN { printf("x\n"); } END { printf("y\n"); }'
equal "quotes of -c are letters" "'a b'" "$(grep a words.txt)"
probe sizes --like 0.17 -q 'enum colour { GREEN = 5 }; BEGIN { printf("%d %d\n", sizeof((1, 2)), sizeof(GREEN)); exit(); }'
equal "constants have 8 bytes" "16 8" "$(grep . sizes.txt)"
for word in "-p x1" "-p 5000000" "-f yaml" nowhere.bt; do
	probe refused --like 0.17 $word
	echo "$rc $(cat refused.err)"
done >lines.txt
equal "what is wrong on the command line is said as before" "1 ERROR: pid 'x1' is not a valid decimal number
1 ERROR: pid '5000000' out of valid pid range [1,4194304]
1 ERROR: Invalid output format \"yaml\"
1 ERROR: failed to open file 'nowhere.bt': No such file or directory" "$(cat lines.txt)"

timeout 60 "$WEIR" probe --like 0.17 -c ./calls 'uprobe:./calls:nobody, uprobe:./calls:inner { @n++; }' >missing.txt 2>missing.err
equal "a function that is not there is left out, and told" "1 @n: 1" \
	"$(grep -c "warning: there is no function 'nobody'" missing.err) $(grep @n missing.txt)"
for missing in error warn; do
	probe nothing --like 0.17 "config = { missing_probes = $missing } tracepoint:syscalls:nonsense { @n++; }"
	echo "$rc $(grep -c "none of the script's trace points is on this machine" nothing.err)"
done >lines.txt
equal "a script of which nothing is there is an error, whatever is only a warning" "1 1
1 1" "$(cat lines.txt)"
probe integer --like 0.17 -q 'BEGIN { printf("%d %u %d\n", (uint32)-1, (uint32)-1, (uint64)5000000000); print(~5); exit(); }'
equal "%d of an unsigned int is as in C, and what has 64 bits is whole; ~ keeps the sign" "-1 4294967295 5000000000
-6" "$(grep . integer.txt)"

# --- who says it ---
probe setting -q 'config = { like = "0.17" } BEGIN { print(1 < 2); exit(); }'
equal "a script says it" 1 "$(grep . setting.txt)"
BPFTRACE_LIKE=0.26 probe variable -q 'config = { like = "0.17" } BEGIN { print(1 < 2); exit(); }'
equal "the environment counts more" true "$(grep . variable.txt)"
BPFTRACE_LIKE=0.26 probe option -q --like 0.17 'config = { like = "0.26" } BEGIN { print(1 < 2); exit(); }'
equal "the option counts most" 1 "$(grep . option.txt)"
fails "a version that is not known is a usage error" 2 "--like: .*0.18" "$WEIR" probe --like 0.18 'BEGIN { exit(); }'
probe unknown 'config = { like = "0.18" } BEGIN { exit(); }'
equal "in a script it is an error with its place" "1 1" "$rc $(grep -c "1:19: error: 'like' is 0.26 or 0.17" unknown.err)"
probe compiled -o old.wprobe 'config = { like = "0.17" } BEGIN { @p = (int8 *)32; exit(); }'
probe loaded -q old.wprobe
equal "a compiled script keeps it" "@p: 32" "$(grep . loaded.txt)"
check "a second reader knows its flag" python3 "$ROOT/tests/format/read_probe_stream.py" old.wprobe >reader.txt
probe version --like 0.17 --version
equal "the version names both" "like bpftrace v0.17" "$(sed 's/^weir [0-9.]*, //' version.txt)"
finish
