# SPDX-License-Identifier: MIT
# weir-test: root: uprobes beside a recording
# Samples in the kernel's copy of an instruction that somebody probes: the function is not known there, so such a
# stack is none of the complete ones, and it is said.
. "$ROOT/tests/lib.sh"

cat >slot.c <<'C'
#include <stdio.h>
volatile long v;
__attribute__((noinline, naked)) void stepped(void)
{
	__asm__("lea 1(%rdi), %rax\n add $1, %rax\n mov %rax, v(%rip)\n ret");
}
__attribute__((noinline)) void caller(long n) { for (long i = 0; i < n; i++) stepped(); }
int main(void)
{
	caller(40000);
	return puts("x") < 0;
}
C
gcc -O1 -g -fno-pie -no-pie -o slot slot.c
"$WEIR" probe 'uprobe:./slot:stepped { @n = count(); }' >probe.out 2>probe.err &
pid=$!
for _ in $(seq 200); do
	grep -q '^Attached' probe.err && break
	sleep 0.05
done
"$WEIR" record -q -o slot.weir -- ./slot >/dev/null
kill -INT $pid
wait $pid
check "the probe counts every call" grep -qx '@n: 40000' probe.out
"$WEIR" report loss slot.weir --json >loss.json
"$WEIR" report samples slot.weir --json >samples.json
python3 - <<'P'
import json
loss = json.load(open("loss.json"))["loss"]
rows = json.load(open("samples.json"))["rows"]
phrase = "in the kernel's copy of a probed instruction, whose function is not known"
# By the stacks themselves: those whose innermost frame of the program is in that page.
user = [[f["name"] for f in r["stack"] if f.get("kind") != "kernel"] for r in rows if r.get("stack")]
in_copy = sum(any(name.startswith("[uprobes]") for name in stack) for stack in user)
print("ok some samples are in the copy" if in_copy else f"not ok some samples are in the copy: {len(rows)} samples")
short = loss["stacks"] - loss["stacks_complete"]
print("ok they are not counted as complete" if short >= in_copy > 0 else f"not ok they are not counted as complete: {in_copy} of {loss}")
print("ok and it is said why" if loss["reasons"].get(phrase, 0) >= in_copy > 0 else f"not ok and it is said why: {loss['reasons']}")
P
