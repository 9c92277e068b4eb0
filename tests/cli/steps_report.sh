# SPDX-License-Identifier: MIT
# weir report steps over a recorded program: what is listed, from where, in which order, folded.
. "$ROOT/tests/lib.sh"

# Two loops, one in the other; a string instruction; system calls, one that fails; a second process,
# which is waited for.
cat >prog.S <<'ASM'
	.globl _start
	.text
_start:	mov $3, %ecx
outer:	mov $10, %edx
inner:	dec %edx
	jnz inner
	dec %ecx
	jnz outer
	lea here(%rip), %rsi
	lea there(%rip), %rdi
	mov $20, %ecx
	rep movsb
	mov $1, %eax
	mov $99, %edi
	syscall
	mov $57, %eax
	syscall
	test %eax, %eax
	jz end
	mov $-1, %rdi
	xor %esi, %esi
	xor %edx, %edx
	xor %r10d, %r10d
	mov $61, %eax
	syscall
end:	mov $60, %eax
	xor %edi, %edi
	syscall
	.bss
here:	.skip 32
there:	.skip 32
ASM
if ! gcc -g -nostdlib -static -o prog prog.S 2>gcc.txt; then
	skip "report steps: no compiler for assembly"
	finish
fi
"$WEIR" steps -q -o prog.weir -- ./prog
main_steps=$((1 + 3 * (1 + 10 * 2 + 2) + 4 + 3 + 2 + 2 + 6 + 3))
rm prog # nothing of it is needed

# rows FILE: the lines of steps.
rows() { grep -E '^ *[0-9]+  0x' "$1"; }

"$WEIR" report steps prog.weir >all.txt
first=$(awk '$1 == "thread" { thread = $2 } $2 == "executes" { print thread; exit }' all.txt)
"$WEIR" report steps prog.weir --thread "$first" >main.txt
equal "every executed instruction is listed" "$main_steps" "$(rows main.txt | wc -l)"
equal "steps are numbered from 0" "$(seq 0 $((main_steps - 1)))" "$(rows main.txt | awk '{ print $1 }')"
check "a row has address, place, line and instruction" \
	grep -Eq '^ *0  0x[0-9a-f]+ +prog\(_start\+0x0\) +prog.S:3 +mov \$0x03, %ecx$' main.txt
check "a string instruction is one row with its iterations" grep -q 'rep movsb  x 20$' main.txt
check "a system call that fails has the name of its error" grep -q -- '-- write = -9 EBADF$' main.txt
check "a new process is said" grep -Eq -- '-- begins process [0-9]+_[0-9]+$' main.txt
check "the end of a thread is said" grep -q -- '-- exits with status 0$' main.txt
"$WEIR" report steps prog.weir --thread "$(sed -n 's/.*-- begins process //p' main.txt)" >child.txt
equal "the new process is listed, too" 5 "$(rows child.txt | wc -l)"

"$WEIR" report steps prog.weir --thread "$first" --at 50 >tail.txt
equal "a listing begins with the step that is asked for" \
	"$(sed -n '/^ *50  /,$p' main.txt)" "$(sed 1,2d tail.txt)"
equal "with --back it begins before it" 47 \
	"$("$WEIR" report steps prog.weir --thread "$first" --at 50 --back 3 --limit 1 | awk 'NR == 3 { print $1 }')"
equal "--limit counts rows" 2 "$("$WEIR" report steps prog.weir --at 1 --limit 2 | sed 1,2d | wc -l)"
check "--syntax intel is Intel syntax" \
	grep -q 'dec edx$' <("$WEIR" report steps prog.weir --syntax intel)
equal "--filter searches instructions" 30 \
	"$("$WEIR" report steps prog.weir --thread "$first" --filter '^dec %edx' | sed 1,2d | wc -l)"
equal "--filter searches system calls" "-- write = -9 EBADF" \
	"$("$WEIR" report steps prog.weir --filter '^write ' | sed '1,2d; s/^ *//')"
check "--source shows source lines" \
	grep -q 'prog.S:5: inner:	dec %edx$' <("$WEIR" report steps prog.weir --source)
"$WEIR" report steps prog.weir --interleave >together.txt
equal "interleaved threads have the same rows" \
	"$(grep -v ^thread all.txt | sort)" "$(grep -v ^thread together.txt | sort)"

check "nested loops are folded" grep -q '^            x 3: 23 steps, 69 in all$' \
	<("$WEIR" report steps prog.weir --thread "$first" --fold)
check "the loops in them as well" grep -q '^|           x 10: 2 steps, 20 in all$' \
	<("$WEIR" report steps prog.weir --thread "$first" --fold)
"$WEIR" report steps prog.weir --json >plain.json
"$WEIR" report steps prog.weir --json --fold >folded.json
equal "a folded listing unfolds to the plain one" "same" "$(
	python3 - plain.json folded.json <<'PYTHON'
import json, sys

def rows(path):
    return json.load(open(path))["rows"]

def key(row):
    return sorted((k, str(v)) for k, v in row.items() if k not in ("time", "depth", "step"))

def unfold(rows, i, depth, out):
    while i < len(rows) and rows[i]["depth"] >= depth:
        row = rows[i]
        i += 1
        if row["kind"] != "loop":
            out.append(key(row))
            continue
        body = []
        i = unfold(rows, i, depth + 1, body)
        out.extend(body * row["times"])
    return i

out, folded = [], rows(sys.argv[2])
unfold(folded, 0, 0, out)
print("same" if out == [key(r) for r in rows(sys.argv[1])] else "different")
PYTHON
)"
equal "a folded listing is shorter" True \
	"$(python3 -c 'import json; print(len(json.load(open("folded.json"))["rows"]) < len(json.load(open("plain.json"))["rows"]) / 2)')"
equal "JSON has the steps of all threads" "$(rows all.txt | wc -l)" \
	"$(json plain.json 'sum(r["kind"] == "step" for r in j["rows"])')"
equal "and their total" "$(rows all.txt | wc -l)" "$(json plain.json 'j["total"]')"

# Stripped code: each instruction has an address of its own, as objdump says.
cat >bare.c <<'C'
void _start(void);
static __attribute__((noipa)) int leaf(int x) { return (x ^ 5) * 3 + 1; }
void _start(void) { int x = leaf(4); __asm__ volatile("syscall" : : "a"(60), "D"(x & 1)); }
C
gcc -O1 -nostdlib -static -o bare bare.c && strip -o bare.stripped bare
objdump -d bare | awk '/<leaf>:/ { on = 1; next } /^$/ { on = 0 } on && NF > 2 { sub(":", "", $1); print "bare.stripped+0x" $1 }' >wanted.txt
"$WEIR" steps -q -o bare.weir -- ./bare.stripped
"$WEIR" report steps bare.weir | grep -oF -f wanted.txt >listed.txt
check "a function has several instructions" test "$(wc -l <wanted.txt)" -ge 3
equal "instructions of a stripped function have their own addresses" "$(cat wanted.txt)" "$(cat listed.txt)"

printf '%s\n' '0 enter main' '9 leave main' | "$WEIR" import events - -o events.weir
fails "a trace without steps is one sentence" 1 "events.weir': has no steps" \
	"$WEIR" report steps events.weir
fails "a step that is not there is one sentence" 1 "there is no step 100000 " \
	"$WEIR" report steps prog.weir --at 100000
fails "a thread that is not there is one sentence" 1 "no steps of a thread 'nobody'" \
	"$WEIR" report steps prog.weir --thread nobody
fails "an unknown syntax is wrong usage" 2 "report: --syntax: 'masm'" \
	"$WEIR" report steps prog.weir --syntax masm
fails "--at with --interleave is wrong usage" 2 "report: --at counts the steps of a thread" \
	"$WEIR" report steps prog.weir --at 5 --interleave
fails "--at with --from is wrong usage" 2 "report: --at and --from" \
	"$WEIR" report steps prog.weir --at 5 --from 1ms
