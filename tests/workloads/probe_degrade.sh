# SPDX-License-Identifier: MIT
# weir-test: root: probes with less
# Where something is missing - privilege, BTF, uprobe_multi, programs that sleep, task storage, a site that can be
# probed - there is one sentence, and the next best way gives the same values.
. "$ROOT/tests/lib.sh"
gcc -m64 -O1 -g -o mixed64 "$ROOT/tests/fixtures/probe/mixed.c" || { not_ok "the program compiles" && finish; }
gcc -m32 -O1 -g -o mixed32 "$ROOT/tests/fixtures/probe/mixed.c" 2>gcc.txt || cp mixed64 mixed32
second=$(readelf -h mixed32 | grep -q 'ELF32' && echo 32 || echo 64)

# probe NAME ARGUMENTS...: NAME.txt, NAME.err, $rc
probe() {
	local name=$1
	shift
	timeout 120 "$WEIR" probe "$@" >"$name.txt" 2>"$name.err"
	rc=$?
}

# --- without privilege ---
chmod 755 . && chmod 755 mixed64
if setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$WEIR" 2>/dev/null; then
	nobody=$WEIR
else
	cp "$WEIR" weir && nobody=$PWD/weir
fi
as_nobody() { timeout 120 setpriv --reuid 65534 --regid 65534 --clear-groups "$nobody" probe "$@"; }
if as_nobody --help >/dev/null 2>&1; then
	for script in 'begin { print(1); }' 'uprobe:./mixed64:target { exit(); }' 'syscall:openat { exit(); }'; do
		fails "without privilege: $script" 1 '^weir: .*(root|CAP_BPF)' as_nobody "$script"
	done
	as_nobody 'tracepoint:sched:sched_switch { exit(); }' >out.txt 2>err.txt
	equal "without privilege: tracepoints" "1 [no-tracefs]" "$? $(grep -o '\[no-[a-z]*\]' err.txt)"
	as_nobody --dry-run 'uprobe:./mixed64:target { exit(); }' >out.txt 2>err.txt
	equal "without privilege: --dry-run works" "0 " "$? $(cat err.txt)"
	as_nobody -o stream.wprobe 'begin { print(1); }' >out.txt 2>err.txt
	as_nobody --dump 'begin { print(1); }' >out.txt 2>err.txt
	equal "without privilege: --dump works" "0 " "$? $(cat err.txt)"
else
	skip "without privilege: 'nobody' cannot reach this folder"
fi

# --- one way less at a time ---
cat >script.wr <<'E'
uprobe:./mixed32:target, uprobe:./mixed64:target {
	printf("%d target %d %s %d %s\n", bits, args.a, str(args.s), args.it->l, args.it->in.tag);
	@a[tid] = args.a;
}
uretprobe:./mixed32:target, uretprobe:./mixed64:target { printf("%d returned %d %d\n", bits, retval, @a[tid]); delete(@a, tid); }
uprobe:./mixed32:many, uprobe:./mixed64:many { printf("%d many %d %d\n", bits, args.sixth, args.ninth); }
syscall:write:entry /comm == "mixed32" || comm == "mixed64"/ { printf("%d write %d\n", bits, args.count); }
E
cat >both.sh <<'E'
./mixed32 >out32.txt &
./mixed64 >out64.txt
wait
E
expected=$(for m in 32 64; do
	printf '%d target 11 abc -123456789 inner\n%d returned 150 11\n%d many -4000000000 1099511627776\n%d write 5\n' $m $m $m $m
done)
[ "$second" = 32 ] || expected=
says() { # what the note of each is about
	case $1 in
	multi) echo 'uprobe_multi' ;;
	sleep) echo 'sleep' ;;
	*) echo '' ;; # nothing in this script needs it
	esac
}
for less in multi sleep btf task-storage; do
	probe less --without $less -i script.wr -c 'sh both.sh'
	[ -z "$expected" ] || equal "without $less: the values are the same" "$expected" "$(sort -s -k1,1 less.txt)"
	equal "without $less: the run is fine" 0 $rc
	note=$(grep '^weir: ' less.err)
	check "without $less: one sentence says what is missing" \
		[ "$(grep -c . <<<"$note")" -le 1 ]
	[ -z "$(says $less)" ] || check "without $less: and it names it" grep -q "$(says $less)" <<<"$note"
done
probe all --without multi,sleep,btf,task-storage -i script.wr -c 'sh both.sh'
[ -z "$expected" ] || equal "without all of them the values are the same" "$expected" "$(sort -s -k1,1 all.txt)"
probe profile --without btf 'profile:hz:500 { @[bits] = count(); } interval:ms:50 { exit(); }'
check "without btf: where modes cannot be told apart that is said" grep -q '^weir: note: .*BTF.*64-bit' profile.err
fails "thread-locals without task storage: a sentence with another way" 1 'weir: .*@x\[tid\]' \
	timeout 120 "$WEIR" probe -q --without task-storage 'begin { self->x = 1; }'
fails "fentry without BTF: a sentence" 1 'weir: .*BTF' timeout 120 "$WEIR" probe -q --without btf 'fentry:vfs_read { exit(); }'
fails "--without something else is wrong usage" 2 'weir: probe: --without' "$WEIR" probe --without everything 'begin { exit(); }'

# --- files and sites that cannot be probed ---
cat >x32.c <<'E'
int f(int x) { return x; }
int _start(void) { return f(1); }
E
if gcc -mx32 -nostdlib -static -o x32 x32.c 2>gcc.txt; then
	probe x32 'uprobe:./x32:f { exit(); }'
	equal "x32 files are refused" "1 [x32]" "$rc $(grep -o '\[x32\]' x32.err)"
else
	skip "x32 files are refused: gcc -mx32 does not work here"
fi
gcc -m64 -O1 -o refused "$ROOT/tests/fixtures/probe/refused.c" || not_ok "a program with functions that cannot be probed compiles"
probe rest 'uprobe:./refused:*_* { @[func] = count(); }' -c ./refused
equal "a glob attaches what can be probed" "@[fine_first]: 1 @[fine_last]: 1" "$(echo $(grep fine_ rest.txt))"
equal "and says what is left out" "0 1 1" "$rc $(grep -c "\[left-out\]" rest.err) $(grep -c "refused_lock" rest.err)"
probe strict --strict 'uprobe:./refused:*_* { @[func] = count(); }' -c ./refused
equal "--strict does not begin then" "3 0" "$rc $(grep -c . strict.txt)"
probe named 'uprobe:./refused:refused_lock { exit(); }'
equal "a function of that kind by name is an error with the reason" "1 lock prefix [no-sites]" \
	"$rc $(grep -o 'lock prefix' named.err) $(grep -o '\[no-sites\]' named.err)"
probe plan --dry-run 'uprobe:./refused:*_* { exit(); }'
equal "--dry-run has both with their reasons" "2" "$(grep -c 'left out: refused_' plan.txt)"
check "--dry-run has the cost of each site" grep -q 'single-stepped\|emulated' plan.txt

# --- files that do not agree ---
cat >differs.c <<'E'
#ifdef OTHER
char pad[100] = "x";
#endif
T value = 7;
struct pair { char c; T y; };
__attribute__((noinline, noclone)) int takes(T x, struct pair *p)
{
	asm volatile("" ::: "memory");
	return p->y + x;
}
int main(void)
{
	struct pair p = {1, 2};
	return takes(5, &p) - value;
}
E
gcc -O1 -g -DT=long -o same1 differs.c && gcc -O1 -g -DT=long -o same2 differs.c && gcc -O1 -g -DT=short -DOTHER -o same3 differs.c
probe same -q 'uprobe:./same[12]:takes { print((args.x, args.p->y, value)); }' -c 'sh -c "./same1; ./same2"'
equal "files of a glob that agree are one" "(5, 2, 7) (5, 2, 7)" "$(echo $(cat same.txt))"
probe each -q 'uprobe:./same[13]:takes { print((sizeof(args.x), args.x)); }' -c 'sh -c "./same1; ./same3"'
equal "arguments are those of each file" "(8, 5) (2, 5)" "$(echo $(cat each.txt))"
probe differs -q 'uprobe:./same[13]:takes { print((value, ((struct pair *)arg1)->y)); }'
equal "what they know differently is not known" "1 [unknown-name] [incomplete]" "$rc $(echo $(grep -o '\[[a-z-]*\]$' differs.err))"
probe each -q 'uprobe:./same1:takes, uprobe:./same3:takes { print((args.x, args.p->y, value)); }' -c 'sh -c "./same1; ./same3"'
equal "each by its own name has its own layout" "(5, 2, 7) (5, 2, 7)" "$(echo $(cat each.txt))"
strip -g -o bare same1
probe bare -q 'long value; uprobe:./bare:takes { print((value, *(long *)uaddr("value"))); }' -c ./bare
equal "without debug information the symbol table knows variables" "(7, 7)" "$(cat bare.txt)"
probe none -q 'long valu; uprobe:./bare:takes { print(valu); }'
equal "a variable that no file has is unknown, declared or not" "1 [unknown-name]" "$rc $(grep -o '\[[a-z-]*\]$' none.err)"

# --- what does not exist ---
probe missing -e 'uprobe:./no-such-file:f { exit(); }
uprobe:./mixed64:no_such_function { exit(); }
uprobe:./mixed64:targat { exit(); }'
equal "files and functions that do not exist: all in one run, with hints" "1 [not-found] [no-symbol] [no-symbol] 'target'" \
	"$rc $(echo $(grep -o '\[no[a-z-]*\]' missing.err)) $(grep -o "'target'" missing.err)"
