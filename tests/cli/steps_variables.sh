# SPDX-License-Identifier: MIT
# weir steps --data: the names of what is read and written. The program prints where its variables are;
# gdb says which variable has an address.
. "$ROOT/tests/lib.sh"

cat >one.c <<'C'
int shared_level = 7;
int shared_list[4];
void shared_touch(void) { shared_list[2] += ++shared_level; }
C
for n in a b; do
	cat >plug_$n.c <<C
volatile int state_$n[8] = {1};
volatile int zeros_$n[3000];
void *plug_at(int i) { return i ? (void *)zeros_$n : (void *)state_$n; }
void plug_touch(void) { state_$n[3]++; zeros_$n[1]++; zeros_$n[2999]++; }
C
done
cat >prog.c <<'C'
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
extern int shared_level, shared_list[4];
void shared_touch(void);
volatile int counters[16] = {1};
static volatile long cold[4];
static const volatile char table[32] = "constant";
static volatile char *heap, *anonymous, *file;
static void (*plug)(void);

__attribute__((noinline)) void touch(void)
{
	volatile char local[4096 * 40];

	counters[3] += table[5];
	cold[1] += counters[15];
	heap[100]++;
	anonymous[5000]++;
	file[9]++;
	local[0] = local[sizeof(local) - 1] = 1; /* where the stack has not been */
	shared_touch();
	shared_level++;
	if (plug)
		plug();
}
static void print(const char *name, const volatile void *at, int bytes)
{
	printf("%s %lx %d\n", name, (unsigned long)at, bytes);
}
static void with_plug(const char *path, const char *state, const char *zeros)
{
	void *h = path ? dlopen(path, RTLD_NOW) : NULL;
	void *(*at)(int) = h ? (void *(*)(int))dlsym(h, "plug_at") : NULL;

	plug = h ? (void (*)(void))dlsym(h, "plug_touch") : NULL;
	if (at) {
		print(state, at(0), 32);
		print(zeros, at(1), 12000);
	}
	touch();
	if (h)
		dlclose(h);
}
int main(int argc, char **argv)
{
	int fd = open("file.bin", O_RDWR);

	heap = malloc(200);
	anonymous = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	print("counters", counters, sizeof(counters));
	print("cold", cold, sizeof(cold));
	print("table", table, sizeof(table));
	print("shared_level", &shared_level, sizeof(shared_level));
	print("shared_list", shared_list, sizeof(shared_list));
	print("[heap]", heap, 200);
	print("[anonymous]", anonymous, 8192);
	print("file.bin", file, 4096);
	with_plug(argc > 1 ? argv[1] : NULL, "state_a", "zeros_a");
	if (argc > 2)
		with_plug(argv[2], "state_b", "zeros_b");
	fflush(stdout);
	return 0;
}
C
head -c 8192 /dev/zero >file.bin

# Judges each access of the trace by what the program printed; says what is named otherwise, and which
# of the names were met.
cat >judge.py <<'PY'
import json, sys
said = []
for line in open(sys.argv[1]):
    name, at, size = line.split()
    said.append((name, int(at, 16), int(size)))
met, wrong, order, stack = set(), [], [], 0
for row in json.load(open(sys.argv[2]))["rows"]:
    for d in row.get("data", []):
        a = d["address"]
        fits = {n: a - s for n, s, size in said if s <= a < s + size}
        stack += d.get("place") == "[stack]"
        if not fits:
            if d.get("symbol") in [n for n, _, _ in said]:
                wrong.append((hex(a), d.get("place")))
            continue
        got = d.get("symbol") or (d.get("place") or "nothing").split("+")[0]
        if d.get("symbol"):
            is_right = fits.get(d.get("symbol")) == d.get("offset")
        elif got == "file.bin":
            is_right = d.get("place") == "file.bin+0x%x" % (4096 + fits.get("file.bin", 0))
        else:
            is_right = d.get("place") in fits
        if not is_right:
            wrong.append((hex(a), d.get("place"), sorted(fits)))
        met.add(got)
        if got.startswith(("state", "zeros")) and (not order or order[-1] != got):
            order.append(got)
print("met", " ".join(sorted(met)))
print("order", " ".join(order))
print("stack", stack > 3)
print("wrong", wrong)
PY
own="[anonymous] [heap] cold counters file.bin shared_level shared_list"

record() { # NAME, OPTIONS ... : NAME.weir, NAME.said, NAME.json, verdict.txt
	local name=$1
	shift
	timeout 100 "$WEIR" steps -q --data -o "$name.weir" "$@" >"$name.said" 2>"$name.err" || return 1
	"$WEIR" report steps "$name.weir" --json >"$name.json"
	python3 judge.py "$name.said" "$name.json" >verdict.txt
}
verdict() { sed -n "s/^$1 *//p" verdict.txt; }

mkdir app && gcc -O1 -shared -fPIC -o app/libone.so one.c
for n in a b; do gcc -O1 -shared -fPIC -o plug_$n.so plug_$n.c; done
flags=(-O1 prog.c app/libone.so "-Wl,-rpath,\$ORIGIN" -ldl)
gcc -fPIE -pie -o app/prog "${flags[@]}" && gcc -fno-pie -no-pie -o app/fixed "${flags[@]}" || exit 1

if ! record pie --around touch -- app/prog ./plug_a.so ./plug_b.so; then
	skip "names of variables: weir steps does not work here: $(head -n 1 pie.err)"
	finish
fi
equal "variables of a program, its library and plug-ins are named, a file and memory without one, too" \
	"$own state_a state_b table zeros_a zeros_b" "$(verdict met)"
equal "as the program prints where they are" "[]" "$(verdict wrong)"
equal "the stack, also where it grows, is the stack" True "$(verdict stack)"
at() { awk -v n="$1" '$1 == n { print $2 }' pie.said; }
equal "both plug-ins were at one address" "$(at state_a)" "$(at state_b)"
equal "and each access has the name of its time" "state_a zeros_a state_b zeros_b" "$(verdict order)"

"$WEIR" report steps pie.weir >pie.txt
check "in text: image(variable+offset) behind the address" \
	grep -Eq "^ +(reads|changes|writes) 4 at 0x$(printf %x $((0x$(at counters) + 12))) prog\(counters\+0xc\): 0x" pie.txt
check "and memory by its name" grep -Eq '^ +writes 8 at 0x[0-9a-f]+ \[stack\]: 0x' pie.txt
"$WEIR" export steps pie.weir >pie.export
check "in the export: a column of its own" \
	grep -qP "\tread\t0x$(printf %x $((0x$(at table) + 5)))\t1\t[0-9a-f]{2}\tprog\(table\+0x5\)$" pie.export
equal "which every access has" 0 "$(awk -F '\t' '$3 ~ /^(read|write|modify)$/ && NF != 7' pie.export | wc -l)"

# The symbol, and the offset when it is not 0, of each address that the fixed program accesses in itself.
cat >accesses.py <<'PY'
import json, sys
seen = {}
for row in json.load(open("fixed.json"))["rows"]:
    for d in row.get("data", []):
        if d.get("image") == sys.argv[1] and d["symbol"]:
            seen[d["address"]] = d["symbol"] + (" + %d" % d["offset"] if d["offset"] else "")
for a in sorted(seen):
    print("0x%x %s" % (a, seen[a]))
PY
cat >images.py <<'PY'
import json
images = {}
for row in json.load(open("fixed.json"))["rows"]:
    for d in row.get("data", []):
        if (d.get("symbol") or "").startswith("shared"):
            images[d["symbol"]] = d["image"].split("/")[-1]
print(sorted(images.items()))
PY
if record fixed --around touch -- app/fixed; then
	equal "without position-independent code, too" "$own table []" "$(verdict met) $(verdict wrong)"
	equal "where a variable of the library is copied into the program" \
		"[('shared_level', 'fixed'), ('shared_list', 'fixed')]" "$(python3 images.py)"
	if command -v gdb >/dev/null; then
		python3 accesses.py "$PWD/app/fixed" >ours.txt
		cut -d ' ' -f 1 ours.txt | sed 's/^/info symbol /' >ask.gdb
		gdb -nx -batch -x ask.gdb app/fixed 2>&1 | sed 's/ in section.*//' | paste -d ' ' <(cut -d ' ' -f 1 ours.txt) - >theirs.txt
		check "there are some to compare with gdb" test "$(wc -l <ours.txt)" -ge 6
		equal "gdb has the same names" "$(cat theirs.txt)" "$(cat ours.txt)"
	else
		skip "gdb has the same names: it is not installed"
	fi
else
	not_ok "a fixed program is recorded: $(head -n 1 fixed.err)"
fi

if gcc -m32 -O1 -shared -fPIC -o app/libone32.so one.c 2>m32.err &&
	gcc -m32 -O1 -o app/prog32 prog.c app/libone32.so "-Wl,-rpath,\$ORIGIN" -ldl 2>m32.err; then
	record small --around touch -- app/prog32 || not_ok "a 32-bit program is recorded"
	equal "variables of a 32-bit program" "$own table []" "$(verdict met) $(verdict wrong)"
else
	skip "variables of a 32-bit program: gcc cannot make one: $(head -n 1 m32.err)"
fi

# A forked child has the memory of its parent.
cat >family.c <<'C'
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int of_child[4], of_parent[4];
__attribute__((noinline)) void touch(int is_child) { (is_child ? of_child : of_parent)[2]++; }
int main(void)
{
	printf("of_child %lx 16\nof_parent %lx 16\n", (unsigned long)of_child, (unsigned long)of_parent);
	fflush(stdout);
	if (!fork()) {
		touch(1);
		_exit(0);
	}
	wait(NULL);
	touch(0);
	return 0;
}
C
gcc -O1 -o family family.c
record family --around touch -- ./family
equal "a forked child has names, too" "of_child of_parent []" "$(verdict met) $(verdict wrong)"

# From the first instruction on, the dynamic loader included.
cat >whole.c <<'C'
volatile int global[4] = {1, 2};
int main(void) { return global[1] - 2; }
C
gcc -O1 -o whole whole.c
timeout 200 "$WEIR" steps -q --data -o whole.weir -- ./whole
equal "a program that is traced as a whole runs as it does by itself" 0 $?
"$WEIR" export steps whole.weir >whole.txt
check "its variable is named" grep -qP '\tread\t0x[0-9a-f]+\t4\t02000000\twhole\(global\+0x4\)$' whole.txt
equal "no access is nowhere" 0 "$(awk -F '\t' '$3 ~ /^(read|write|modify)$/ && $7 == "-"' whole.txt | wc -l)"

# A record of accesses is full in the middle of a step: it has them all.
cat >pushes.S <<'S'
	.globl _start
_start:	mov var(%rip), %rax
	mov $5000, %ecx
1:	pushq var(%rip)
	add $8, %rsp
	dec %ecx
	jnz 1b
	mov $60, %eax
	xor %edi, %edi
	syscall
	.data
var:	.quad 7
	.type var, @object
	.size var, 8
S
gcc -nostdlib -static -o pushes pushes.S
"$WEIR" steps -q --data -o pushes.weir -- ./pushes
"$WEIR" export steps pushes.weir | awk -F '\t' '$3 == "read" || $3 == "write" { print $3, $7 }' | sort | uniq -c | awk '{ print $1, $2, $3 }' >pushes.txt
equal "no access is lost where a record of them ends" "5001 read pushes(var+0x0)
5000 write [stack]" "$(cat pushes.txt)"

# What was made without places is read as before.
"$WEIR" export step-stream whole.weir -o whole.stream && "$WEIR" import step-stream whole.stream -o again.weir
"$WEIR" report steps again.weir --json --limit 300 >again.json
equal "traces without places name nothing" True \
	"$(json again.json 'all(d["place"] is d["symbol"] is None for r in j["rows"] for d in r.get("data", []))')"
