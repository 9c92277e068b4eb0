# SPDX-License-Identifier: MIT
# weir-test: root: settings of trace scripts
# config = { ... } and the BPFTRACE_ variables of the environment: what they set, and which of them counts.
. "$ROOT/tests/lib.sh"

# probe NAME ARGUMENTS...: NAME.txt, NAME.err, $rc; warnings are only counted
probe() {
	local name=$1
	shift
	timeout 120 "$WEIR" probe -q "$@" >"$name.txt" 2>"$name.err"
	rc=$?
}

probe hidden 'config = { print_maps_on_exit = false } begin { @one = 1; @two["k"] = count(); printf("ran\n"); }'
equal "print_maps_on_exit = false: maps are not printed" "ran" "$(echo $(cat hidden.txt))"
probe shown 'config = { print_maps_on_exit = 1 } begin { @one = 1; }'
equal "print_maps_on_exit = 1: they are" "@one: 1" "$(echo $(cat shown.txt))"
probe kept -o kept.wprobe 'config = { print_maps_on_exit = 0; max_cat_bytes = 4 } begin { @one = 1; cat("text"); }'
echo "abcdefgh" >text
probe kept kept.wprobe
equal "a compiled script keeps its settings" "abcd" "$(echo $(cat kept.txt))"

echo 'config = { MAX_CAT_BYTES = 5; } begin { cat("text"); }' >cat.wr
probe long -i cat.wr
equal "names may be in capitals" "abcde" "$(cat long.txt)"
BPFTRACE_MAX_CAT_BYTES=2 probe short -i cat.wr
equal "a variable of the environment counts more than the script" "ab" "$(cat short.txt)"
BPFTRACE_CAT_BYTES_MAX=3 probe short -i cat.wr
equal "so does one by its name of earlier" "abc" "$(cat short.txt)"
BPFTRACE_PRINT_MAPS_ON_EXIT=0 probe hidden 'begin { @one = 1; }'
equal "a variable counts without a config block" "" "$(cat hidden.txt)"
BPFTRACE_KERNEL_SOURCE=/x BPFTRACE_LOG_SIZE=5 BPFTRACEX=1 probe foreign 'begin { print(7); }'
equal "variables that mean nothing here are passed over" "0 7 " "$rc $(cat foreign.txt) $(cat foreign.err)"
BPFTRACE_MISSING_PROBES=maybe probe wrong 'begin { print(7); }'
equal "a variable with a wrong value is an error" "1 [range]" "$rc $(grep -o '\[range\]$' wrong.err)"

probe missing 'config = { missing_probes = ignore } uprobe:libc:no_such_function_there { @ = 1; } begin { print("began"); }'
equal "missing_probes = ignore" "began" "$(echo $(cat missing.txt))"
gcc -O1 -x c -o many - <<'C'
__attribute__((noinline)) int many_one(int n) { __asm__ volatile(""); return n + 1; }
__attribute__((noinline)) int many_two(int n) { __asm__ volatile(""); return n + 2; }
__attribute__((noinline)) int many_three(int n) { __asm__ volatile(""); return n + 3; }
int main(int argc, char **argv) { (void)argv; return many_one(argc) + many_two(argc) + many_three(argc) == 9 ? 0 : 1; }
C
probe sites 'config = { max_probes = 2 } uprobe:./many:many_* { @ = count(); }' -c ./many
equal "max_probes = 2: three sites are refused" "1 [config]" "$rc $(grep -o '\[config\]$' sites.err)"
probe sites 'config = { max_probes = 3 } uprobe:./many:many_* { @ = count(); }' -c ./many
equal "max_probes = 3: they are not" "@: 3" "$(grep '^@' sites.txt)"
probe ring 'config = { perf_rb_pages = 1 } begin { for ($i : 0..900) { printf("%d a record that is as long as this one is, so that few of them have room in a small ring\n", $i); } }'
equal "perf_rb_pages = 1: the ring is small, and what it has no room for is counted" "3 1" "$rc $(grep -c 'lost\|full' ring.err)"
probe licence 'config = { license = "Dual BSD/GPL"; unstable_macro = enable; stack_mode = bpftrace } begin { print(1); }'
check "licences and unstable features are not warned about" [ "$(grep -c "'license'\|'unstable_macro'" licence.err)" = 0 ]
