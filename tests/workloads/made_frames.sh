# SPDX-License-Identifier: MIT
# Frames that no compiler makes: code that keeps its caller's stack pointer in the red zone, and a C
# library whose start code has no call-frame information. Each stack goes from the function that works to
# the start, by names that are known.
# weir-test: alone: shares of samples depend on the load
. "$ROOT/tests/lib.sh"
# A folder that other users reach; that of the test is its own.
place=$(mktemp -d /tmp/weir-frames-XXXXXX) && chmod 777 "$place" && cd "$place" || exit 1
trap 'cd /; rm -rf "$place"' EXIT

# stacks FILE: "complete of all"
stacks() {
	"$WEIR" report loss "$1" --json >loss.json
	json loss.json "'%d of %d' % (j['loss']['stacks_complete'], j['loss']['stacks'])"
}
# whole SENTENCE FILE [PERMILLE]: 99.5 % of the stacks (or so many) are complete, and there are enough of them.
whole() {
	local text permille=${3:-995}
	text=$(stacks "$2")
	check "$1 ($text)" python3 -c 'import sys; a, b = map(int, sys.argv[1].split(" of ")); sys.exit(not (b >= 20 and a * 1000 >= b * int(sys.argv[2])))' "$text" $permille
	json loss.json "[k for k in j['loss']['reasons'].items()] if j['loss']['stacks_complete'] < j['loss']['stacks'] else ''"
}
# under FILE OUTER INNER: the share in percent of INNER's time that is below OUTER
under() {
	"$WEIR" report tree "$1" --json >tree.json
	python3 - "$2" "$3" <<'PY'
import json, sys
outer, inner = sys.argv[1:]
path, below, every = [], 0, 0
for r in json.load(open("tree.json"))["rows"]:
    del path[r["level"]:]
    path.append(r["name"])
    if r["name"] == inner:
        every += r["base"]
        below += r["base"] if outer in path else 0
print(round(100 * below / every) if every else -1)
PY
}

cat >red.S <<'END'
	.globl keep_below
	.type keep_below, @function
keep_below:
	.cfi_startproc
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	sub $512, %rsp
	and $-64, %rsp
	mov %rax, -8(%rsp)
	.cfi_escape 0x0f, 0x05, 0x77, 0x78, 0x06, 0x23, 0x08 /* CFA = [rsp - 8] + 8 */
1:	dec %rdi
	jnz 1b
	mov -8(%rsp), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size keep_below, . - keep_below
	.section .note.GNU-stack, "", @progbits
END
cat >red.c <<'END'
void keep_below(unsigned long n);
__attribute__((noipa)) static int caller(unsigned long n) { keep_below(n); return 1; }
int main(void) { return caller(1500000000) - 1; }
END
gcc -O2 -o red red.c red.S || exit 1
if [ "$(id -u)" = 0 ] && "$WEIR" doctor | grep -q 'by BPF'; then
	"$WEIR" record -q -o red.weir -- ./red
	whole "a frame whose caller is kept below the stack pointer is walked" red.weir
	equal "and its time is its caller's" 100 "$(under red.weir caller keep_below)"
	if command -v openssl >/dev/null; then
		"$WEIR" record -q -o ssl.weir -- openssl speed -seconds 2 -bytes 8192 sha512 >/dev/null 2>&1
		whole "libcrypto's SHA-512: the stacks are complete" ssl.weir
	else
		skip "libcrypto's SHA-512: openssl is not installed"
	fi
else
	skip "a frame whose caller is kept below the stack pointer is walked: BPF is not permitted"
fi

# Without BPF it cannot be had: that is the reason that is given.
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
reason="caller's place kept below the stack pointer, which the kernel does not copy"
if [ "$(id -u)" = 0 ] && nobody test -x "$WEIR" && nobody "$WEIR" record -o plain.weir -- ./red 2>plain.err; then
	"$WEIR" report loss plain.weir --json >loss.json
	check "without BPF the reason is that the kernel does not copy what is below the stack pointer" \
		test "$(json loss.json "j['loss']['reasons'].get(\"$reason\", 0) * 10 > j['loss']['stacks'] * 9")" = True
	check "and how to get it is said" grep -q 'below the stack pointer.*root or CAP_BPF and CAP_PERFMON' plain.err
else
	skip "without BPF the reason is told: another user cannot record here: $(head -n 1 plain.err 2>/dev/null)"
fi

# musl's code has no call-frame information: main's caller, and that of a thread's routine, is none that can
# be walked, but the first call of the process or thread is near.
cat >musl.c <<'END'
#include <pthread.h>
static volatile unsigned long sink;
__attribute__((noipa)) static void work(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
__attribute__((noipa)) static void *routine(void *p) { work(300000000); return p; }
__attribute__((constructor)) static void construct(void) { work(800000000); sink++; } // alone with sink, and so faster
int main(void)
{
	pthread_t t;

	if (pthread_create(&t, 0, routine, 0))
		return 1;
	work(300000000);
	return pthread_join(t, 0);
}
END
for how in "" "-static" "-static -s" "-fno-omit-frame-pointer"; do
	if ! command -v musl-gcc >/dev/null || ! musl-gcc -O2 $how -o musl musl.c 2>musl.err; then
		skip "musl $how: $(head -n 1 musl.err 2>/dev/null || echo musl-gcc is not installed)"
		continue
	fi
	"$WEIR" record -q -o musl.weir -- ./musl
	# A sample or a few are inside of musl, which is what cannot be walked.
	whole "musl${how:+ $how}: the stacks are complete" musl.weir 980
	[ "$how" = "-static -s" ] || for outer in main routine construct; do
		check "musl${how:+ $how}: work is below $outer" test "$(under musl.weir $outer work)" -gt 5
	done
done
