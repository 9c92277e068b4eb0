# SPDX-License-Identifier: MIT
# Linkers that drop sections which nothing refers to (--gc-sections): what is left is counted as callgrind has seen it
# in the plain program, what is left is described, and what is dropped stays dropped.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/count_lib.bash"
count_options=-v

# What main does not reach refers to a function that nobody has: it must go, or the link fails.
cat >unused.c <<'C'
int defined_nowhere(int);
int unused_inner(int i) { return defined_nowhere(i) + 1; }
int unused_outer(int i) { return unused_inner(i) * 2; }
C
gcc -O2 -ffunction-sections -fdata-sections -c -o unused.o unused.c || finish

# described NAME: the functions of the object that the reports know; has NAME: those that nm finds in the program
described() {
	"$WEIR" report coverage counted/"$1".weir --json >coverage.json
	json coverage.json '"\n".join(sorted({r["function"].split("(")[0] for r in j["rows"]} & set(open("defined.txt").read().split())))'
}
has() { nm --defined-only counted/"$1" | awk '$2 ~ /^[tT]$/ { print $3 }' | sort -u | grep -xFf defined.txt; }

for linker in bfd gold lld mold; do
	name=control_flow_$linker
	# mold keeps sections that are called like variables in C, as those that describe functions are, and all code with them.
	libraries_of_links=(unused.o)
	[ $linker != mold ] || libraries_of_links=()
	command -v ld.$linker >linker.txt || { skip "$linker: it is not installed" && continue; }
	build "$name" control_flow.c -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections -fuse-ld=$linker ||
		{ skip "$name: $(head -n 1 build.txt)" && continue; }
	mv build.txt left_alone.txt
	same "$name does the same" "$name" || continue
	nm --defined-only objects/"$name".o unused.o | awk '$2 ~ /^[tT]$/ { print $3 }' | grep -v '[.]' | sort -u >defined.txt
	check "$linker: there are functions to drop and functions to keep" [ "$(wc -l <defined.txt)" -ge 10 ]
	equal "$linker: the reports know the functions that the program has" "$(has "$name")" "$(described "$name")"
	[ $linker = mold ] || check "$linker: what nothing refers to is dropped" sh -c '! nm "$1" | grep -q unused_' sh counted/"$name"
	"$WEIR" report counted/"$name".weir >summary.txt 2>&1
	check "$linker: all is counted exactly" grep -q '^  counted exactly: ' summary.txt
	exact "$name"
done
