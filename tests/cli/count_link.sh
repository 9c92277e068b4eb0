# SPDX-License-Identifier: MIT
# weir count: links of all kinds get the same files in the same order, copies instead of objects, and the
# programs do what they did.
# weir-test: patient
. "$ROOT/tests/lib.sh"
export WEIR_CACHE=$PWD/cache
unset COMPILER_PATH XDG_CACHE_HOME WEIR_OUT

mkdir 'with blanks' src
cat >src/main.c <<'C'
#include <math.h>
#include <stdio.h>
#include <string.h>
int twice(int), thrice(int);
const char *name(void);
int main(int argc, char **argv)
{
	printf("%s %d %d %.3f\n", name(), twice(argc), thrice(argc + 1), cbrt(argc + 7.0));
	return argc > 1 ? (int)strlen(argv[1]) : 0;
}
C
echo 'int twice(int i) { return 2 * i; } int unused(int i) { return i; }' >src/twice.c
echo 'int twice(int); int thrice(int i) { return twice(i) + i; }' >src/thrice.c
echo 'const char *name(void) { return "name"; }' >'with blanks/a name.c'
cat >src/throw.cc <<'CC'
#include <cstdio>
#include <stdexcept>
#include <string>
static int depth(int n) { if (!n) throw std::runtime_error("bottom"); return depth(n - 1) + 1; }
int main() { try { return depth(5); } catch (const std::exception &e) { std::puts(e.what()); } return 7; }
CC
for f in main twice thrice; do gcc -O2 -c -o $f.o src/$f.c || exit 1; done
gcc -O2 -c -o 'with blanks/a name.o' 'with blanks/a name.c'
g++ -O2 -c -o throw.o src/throw.cc
mkdir lib && ar rc lib/libnumbers.a twice.o thrice.o && ar rcT lib/libthin.a twice.o thrice.o
gcc -shared -fPIC -o lib/libshared.so src/twice.c src/thrice.c

runs_as_before() { # SENTENCE PROGRAM [ARGUMENTS]: prints and returns what ./plain does
	local sentence=$1 program=$2 expected actual
	shift 2
	expected=$(LD_LIBRARY_PATH=lib ./plain "$@" 2>&1; echo "status $?")
	actual=$(LD_LIBRARY_PATH=lib WEIR_OUT=run.weir "$program" "$@" 2>&1; echo "status $?")
	equal "$sentence" "$expected" "$actual"
}

# The files that a linker says it has opened, without folders and without our library.
trace_of() { grep -E '(\.o|\.a|\.so[.0-9]*|\))$' | sed 's,^.*/,,' | grep -v libweircount; }

# linked SENTENCE COMMAND...: makes ./plain by the command alone and ./counted by weir count.
linked() {
	local sentence=$1
	shift
	rm -f plain counted
	"${@//@OUT@/plain}" >plain.txt 2>&1 || { not_ok "$sentence: the plain link fails" && head -n 5 plain.txt; }
	if "$WEIR" count "${@//@OUT@/counted}" >counted.txt 2>&1; then
		check "$sentence: our library is in it" grep -q weir_count counted
		runs_as_before "$sentence: the program does what it did" ./counted
		runs_as_before "$sentence: with an argument, too" ./counted abcde
	else
		not_ok "$sentence: the link"
		head -n 10 counted.txt
	fi
}

objects=(main.o twice.o thrice.o 'with blanks/a name.o')
have() { command -v "$1" >/dev/null || { skip "$2: $1 is not installed" && false; }; }

linked "gcc" gcc -o @OUT@ "${objects[@]}" -lm
mkdir -p linkers && ln -sf "$(command -v ld)" linkers/ld
linked "a script that calls a compiler with a folder of linkers" sh -c 'out=$1; shift; gcc -Blinkers/ -o "$out" "$@" -lm' sh @OUT@ "${objects[@]}"
linked "gcc without PIE" gcc -no-pie -o @OUT@ "${objects[@]}" -lm
linked "gcc, a static program" gcc -static -o @OUT@ "${objects[@]}" -lm
linked "gcc, a static PIE" gcc -static-pie -o @OUT@ "${objects[@]}" -lm
linked "gcc, compiled and linked in one command" gcc -O2 -o @OUT@ src/main.c src/twice.c src/thrice.c 'with blanks/a name.c' -lm
linked "gcc with an archive by its path" gcc -o @OUT@ main.o 'with blanks/a name.o' lib/libnumbers.a -lm
linked "gcc with a thin archive" gcc -o @OUT@ main.o 'with blanks/a name.o' lib/libthin.a -lm
linked "gcc with -L and -l" gcc -o @OUT@ main.o 'with blanks/a name.o' -L lib -lnumbers -lm
linked "gcc with -l:" gcc -o @OUT@ main.o 'with blanks/a name.o' -Llib -l:libnumbers.a -lm
linked "gcc with -Bstatic" gcc -o @OUT@ main.o 'with blanks/a name.o' -Llib -Wl,-Bstatic -lnumbers -Wl,-Bdynamic -lm
linked "gcc with a group" gcc -o @OUT@ main.o 'with blanks/a name.o' -Wl,--start-group lib/libnumbers.a -lm -Wl,--end-group
linked "gcc with a shared library" gcc -o @OUT@ main.o 'with blanks/a name.o' -Llib -lshared -lm
linked "gcc, stripped and without unused sections" gcc -s -Wl,--gc-sections -o @OUT@ "${objects[@]}" -lm
printf '%s\n' main.o twice.o "'with blanks/a name.o'" @inner.rsp >outer.rsp
echo thrice.o -lm >inner.rsp
linked "gcc with response files" gcc -o @OUT@ @outer.rsp
printf -- '-L/nowhere/%0120d\n' {1..5000} >long.rsp
for linker in bfd gold lld; do
	have ld.$linker "a long command line for $linker" && linked "a command line that is too long for a process, with $linker" \
		gcc -fuse-ld=$linker -o @OUT@ "${objects[@]}" -Wl,@long.rsp -lm
done
linked "g++" g++ -o @OUT@ throw.o
linked "g++ with static libraries of the compiler" g++ -static-libgcc -static-libstdc++ -o @OUT@ throw.o
linked "an object inside a folder of its own" env -C src gcc -O2 -o ../@OUT@ main.c twice.c thrice.c '../with blanks/a name.o' -lm
have ld.gold "gold" && linked "gcc with gold" gcc -fuse-ld=gold -o @OUT@ "${objects[@]}" -lm
if have ld.lld "lld"; then
	linked "gcc with lld" gcc -fuse-ld=lld -o @OUT@ "${objects[@]}" -lm
	have clang "clang with lld" && linked "clang with lld" clang -fuse-ld=lld -o @OUT@ "${objects[@]}" -lm
	have clang "clang with the path of a linker" && linked "clang with the path of a linker" \
		clang --ld-path="$(command -v ld.lld)" -o @OUT@ "${objects[@]}" -lm
fi
have clang "clang" && linked "clang" clang -o @OUT@ "${objects[@]}" -lm

# What gcc tells the linker, told to the linker directly.
mkdir listening
printf '#!/bin/sh\nprintf "%%s\\0" "$@" >words.bin\nexec %s "$@"\n' "$(command -v ld)" >listening/ld && chmod +x listening/ld
gcc -B listening/ -fno-lto -o @OUT@ "${objects[@]}" -lm
mapfile -d '' -t words < <(tr '\0' '\n' <words.bin | grep -v '^-plugin' | grep -v 'liblto_plugin\|lto-wrapper' | tr '\n' '\0')
check "gcc calls the linker" [ ${#words[@]} -ge 20 ]
linked "ld itself" ld "${words[@]}"
linked "ld by its path" "$(command -v ld)" "${words[@]}"
linked "a linker in a folder of -B" gcc -B listening/ -o @OUT@ "${objects[@]}" -lm
rm words.bin && "$WEIR" count gcc -B listening -o counted "${objects[@]}" -lm
check "a linker in a folder of -B is the one that links" [ -s words.bin ]

cat >Makefile <<'MAKE'
program: main.o twice.o thrice.o
	$(CC) -o $@ $^ 'with blanks/a name.o' -lm
MAKE
rm -f plain && gcc -o plain "${objects[@]}" -lm
check "make runs under weir count" "$WEIR" count make -s program
runs_as_before "a program linked by make does what it did" ./program
check "make linked our library" grep -q weir_count program
equal "weir count within weir count" "" "$("$WEIR" count "$WEIR" count gcc -o nested "${objects[@]}" -lm 2>&1)"
runs_as_before "a program linked by it does what it did" ./nested

# --- the same files in the same order ---------------------------------------------------------

gcc -Wl,-t -o plain main.o 'with blanks/a name.o' lib/libnumbers.a -lm 2>/dev/null | trace_of >plain.trace
"$WEIR" count gcc -Wl,-t -o counted main.o 'with blanks/a name.o' lib/libnumbers.a -lm 2>/dev/null >raw.trace
trace_of <raw.trace >counted.trace
check "the linker tells its files" [ "$(wc -l <plain.trace)" -ge 8 ]
equal "the linker gets the same files in the same order" "$(cat plain.trace)" "$(cat counted.trace)"
check "objects are replaced by copies" [ "$(grep -c '^main\.o$\|^lib/libnumbers' raw.trace)" -eq 0 ]
check "the copies have the names of the originals" grep -q "^$PWD/cache/.*/a name\.o$" raw.trace
check "shared libraries are not replaced" grep -qE '^/[^(]*libm\.so\.6$' raw.trace

# --- messages and exit statuses ---------------------------------------------------------------

for missing in missing.o -lmissing; do
	gcc -o plain main.o $missing 2>&1 | sed 's,^[^ ]*ld: ,,' >plain.txt
	"$WEIR" count gcc -o counted main.o $missing >raw.txt 2>&1
	equal "a missing file ($missing) gives the linker's status" 1 $?
	equal "a missing file ($missing) gives the linker's message" "$(cat plain.txt)" "$(sed 's,^[^ ]*ld: ,,' raw.txt)"
done
"$WEIR" count gcc -o counted main.o twice.o thrice.o -lm >raw.txt 2>&1
equal "an undefined name gives the linker's status" 1 $?
check "an undefined name is said with the name of the object" grep -q 'main\.o: in function .*main' raw.txt
check "the linker by itself gives its own status" test "$(ld --bad-option >/dev/null 2>&1; echo $?)" = "$("$WEIR" count ld --bad-option >/dev/null 2>&1; echo $?)"
equal "the linker's version is the linker's" "$(ld --version)" "$("$WEIR" count ld --version)"
"$WEIR" count sh -c 'exit 37' 2>/dev/null
equal "the command's status is passed on" 37 $?
equal "so is its death" 143 "$(bash -c '"$WEIR" count sh -c "kill -TERM \$\$"; echo $?' 2>/dev/null)"
fails "a command that is not there is said" 1 "^weir: 'no-such-command': cannot run" "$WEIR" count no-such-command
fails "no command is wrong usage" 2 "^weir: count: nothing to count: give a link command, or -- and a command, or -p PID" "$WEIR" count -v
fails "an unknown option is wrong usage" 2 "^weir: count: unknown option '--frobnicate'" "$WEIR" count --frobnicate gcc
fails "an unknown metric is wrong usage" 2 "^weir: count: --metrics: 'watts'" "$WEIR" count --metrics instructions,watts gcc
fails "an unknown processor is wrong usage" 2 "^weir: count: --cpu: 'abacus'" "$WEIR" count --cpu abacus gcc
fails "an unknown way of timing is wrong usage" 2 "^weir: count: --time-foreign: 'some'" "$WEIR" count --time-foreign=some gcc
"$WEIR" count gcc -c -o nothing.o src/main.c 2>err.txt
check "a command that links nothing is told of it" grep -q "^weir: 'gcc' linked nothing" err.txt
"$WEIR" count -q gcc -c -o nothing.o src/main.c 2>err.txt
check "unless -q is given" [ ! -s err.txt ]
"$WEIR" count gcc -o counted "${objects[@]}" -lm >out.txt 2>err.txt
equal "an ordinary link says nothing" "" "$(cat out.txt err.txt)"

# --- what is left alone -----------------------------------------------------------------------

"$WEIR" count gcc -shared -fPIC -o libs.so src/twice.c 2>err.txt
equal "a shared library is linked as it is, with a sentence" \
	"weir: 'libs.so': shared libraries are not inserted: their code is timed, not counted" "$(cat err.txt)"
check "and without our library" sh -c '! grep -q weir_count libs.so'
"$WEIR" count -q gcc -shared -fPIC -o libs.so src/twice.c 2>err.txt
equal "no sentence with -q" "" "$(cat err.txt)"
gcc -r -o plain.o twice.o thrice.o && "$WEIR" count gcc -r -o counted.o twice.o thrice.o
check "objects linked into an object are as before" cmp plain.o counted.o
rm -f plain && gcc -o plain "${objects[@]}" -lm
gcc -O2 -flto -c -o lto.o src/twice.c
"$WEIR" count gcc -flto -o counted lto.o main.o thrice.o 'with blanks/a name.o' -lm 2>err.txt
equal "objects for link-time optimisation are counted: nothing is said" "" "$(cat err.txt)"
runs_as_before "a program with such an object does what it did" ./counted
printf 'not an object at all\n' >text.o
"$WEIR" count gcc -o counted text.o 2>err.txt
equal "a file that is no object is the linker's matter" 1 $?
head -c 300 main.o >cut.o
"$WEIR" count gcc -o counted cut.o twice.o thrice.o 2>err.txt
equal "and so is a damaged one" 1 $?
if echo 'int main(void) { return 0; }' | gcc -m32 -x c - -o plain32 2>/dev/null; then
	echo 'int main(void) { return 5; }' | "$WEIR" count gcc -m32 -x c - -o counted32 2>err.txt
	equal "a program for i386 is linked as it is, with a sentence" \
		"weir: 'counted32': is not for x86-64: not counted" "$(cat err.txt)"
	./counted32
	equal "it runs" 5 $?
else
	skip "programs for i386: they cannot be linked here"
fi
printf 'data.o' >data.o.txt
ld -r -b binary -z noexecstack -o blob.o data.o.txt
"$WEIR" count gcc -o counted "${objects[@]}" blob.o -lm
runs_as_before "data made into an object does no harm" ./counted

# --- linker scripts that name files -------------------------------------------------------------

mkdir scripts && cp twice.o scripts/second.o && cp thrice.o scripts/third.o
echo "INPUT($PWD/twice.o) GROUP(\"$PWD/with blanks/a name.o\" AS_NEEDED(-lm))" >absolute.ld
echo '/* beside it */ INPUT(third.o second.o)' >scripts/beside.ld
echo 'INPUT(-lnumbers)' >lib/libtext.so
echo 'INPUT(scripts/beside.ld)' >outer.ld
echo 'INPUT(thrice.o second.o)' >scripts/doubtful.ld
# What each of the link's own functions was counted with.
counted_functions() {
	WEIR_OUT=script.weir "$@" >/dev/null && "$WEIR" report flat script.weir --json >flat.json &&
		json flat.json '" ".join(sorted(r["name"] for r in j["rows"] if r["name"] in ("main", "name", "twice", "thrice") and r["base"]))'
}
script() { # SENTENCE COMMAND...
	linked "$@"
	equal "$1: what it names is counted" "main name thrice twice" "$(counted_functions ./counted)"
}
script "a script with absolute names" gcc -o @OUT@ main.o thrice.o absolute.ld
script "a script with names beside it" gcc -o @OUT@ main.o 'with blanks/a name.o' scripts/beside.ld -lm
script "a script in place of a shared library" gcc -o @OUT@ main.o 'with blanks/a name.o' -Llib -ltext -lm
script "a script that names a script" gcc -o @OUT@ main.o 'with blanks/a name.o' outer.ld -lm
for linker in gold lld; do
	command -v ld.$linker >linker.txt || { skip "scripts with ld.$linker: it is not installed" && continue; }
	script "a script with absolute names, ld.$linker" gcc -fuse-ld=$linker -o @OUT@ main.o thrice.o absolute.ld
done
ld --verbose | sed '1,/^=====/d; /^=====/,$d' >whole.ld
echo 'INPUT(twice.o thrice.o)' >>whole.ld
script "a whole script given with -T" gcc -o @OUT@ -Wl,-T,whole.ld main.o 'with blanks/a name.o' -lm
echo 'int thrice(int i) { return 30 * i; }' >src/other.c && gcc -O2 -c -o scripts/thrice.o src/other.c
"$WEIR" count gcc -o counted main.o 'with blanks/a name.o' scripts/doubtful.ld -lm 2>err.txt
check "a name that two files have is told" grep -q "scripts/doubtful.ld': it is not known which file 'thrice.o' in this linker script is: nothing that it names is counted" err.txt
runs_doubtful=$(./counted)
gcc -o plain main.o 'with blanks/a name.o' scripts/doubtful.ld -lm
equal "and the linker takes the one that it takes" "$(./plain)" "$runs_doubtful"
rm scripts/thrice.o

# Scripts that include scripts, and folders that they name.
mkdir more && cp lib/libnumbers.a more/libmore.a
echo 'INCLUDE scripts/inner.ld' >including.ld
echo 'INCLUDE "innermost one.ld" INPUT(thrice.o)' >scripts/inner.ld
echo 'INPUT(twice.o)' >'more/innermost one.ld'
echo 'SEARCH_DIR(more)' >folder.ld
echo 'SEARCH_DIR(more) INPUT(-lmore)' >folder-library.ld
cp whole.ld whole-including.ld && sed -i '$d' whole-including.ld && echo 'INCLUDE including.ld' >>whole-including.ld
cp whole-including.ld more/found.ld
script "a script that includes scripts" gcc -o @OUT@ main.o 'with blanks/a name.o' including.ld -Lmore -lm
script "a whole script that includes scripts" gcc -o @OUT@ -Lmore -Wl,-T,whole-including.ld main.o 'with blanks/a name.o' -lm
script "a whole script found in a folder of -L" gcc -o @OUT@ -Lmore -Wl,-T,found.ld main.o 'with blanks/a name.o' -lm
script "a library in a folder that a script names" gcc -o @OUT@ main.o 'with blanks/a name.o' folder.ld -lmore -lm
script "a library that a script names, in a folder that it names" gcc -o @OUT@ main.o 'with blanks/a name.o' folder-library.ld -lm
cp including.ld innermost.ld && echo 'INPUT(twice.o)' >>innermost.ld && echo 'INPUT(thrice.o)' >scripts/inner.ld
echo 'INCLUDE innermost.ld' >>folder.ld
script "scripts that include scripts and name folders" gcc -o @OUT@ main.o 'with blanks/a name.o' folder.ld -lm
command -v ld.lld >linker.txt && script "scripts that include scripts, ld.lld" gcc -fuse-ld=lld -o @OUT@ main.o 'with blanks/a name.o' folder.ld -lm

echo 'INCLUDE round2.ld INPUT(twice.o)' >round.ld && echo 'INCLUDE round.ld' >round2.ld
gcc -o plain main.o 'with blanks/a name.o' round.ld thrice.o -lm 2>plain.txt
plain_status=$?
timeout 60 "$WEIR" count gcc -o counted main.o 'with blanks/a name.o' round.ld thrice.o -lm 2>err.txt
equal "scripts that include each other end as the linker ends" $plain_status $?
check "and are told" grep -q "^weir: '.*round2*.ld': names '.*round2*.ld', which names it: linker scripts that contain themselves are left to the linker$" err.txt

# A sysroot: absolute names of scripts in it begin there, as '=' and $SYSROOT do everywhere.
mkdir -p root/objects && cp lib/libnumbers.a root/objects/libinside.a && cp twice.o thrice.o root/objects
echo 'INPUT(/objects/twice.o) GROUP(/objects/thrice.o)' >root/objects/libtext.so
echo 'SEARCH_DIR("=/objects") INPUT(-linside)' >root/objects/folder.ld
echo 'INPUT($SYSROOT/objects/twice.o =/objects/thrice.o)' >outside.ld
sysroot=(-Wl,--sysroot="$PWD/root")
for linker in bfd gold lld; do
	command -v ld.$linker >linker.txt || { skip "a sysroot with ld.$linker: it is not installed" && continue; }
	script "a script in place of a library in a sysroot, ld.$linker" gcc -fuse-ld=$linker "${sysroot[@]}" -o @OUT@ main.o 'with blanks/a name.o' -L"$PWD/root/objects" -ltext -lm
done
script "a script in a sysroot that names a folder in it" gcc "${sysroot[@]}" -o @OUT@ main.o 'with blanks/a name.o' root/objects/folder.ld -lm
script "a script outside that names files in a sysroot" gcc "${sysroot[@]}" -o @OUT@ main.o 'with blanks/a name.o' outside.ld -lm
script "files in a sysroot" gcc "${sysroot[@]}" -o @OUT@ main.o 'with blanks/a name.o' -Wl,=/objects/twice.o,=/objects/thrice.o -lm
# gold and others take different files for a script that is given by its name.
mkdir -p "root$PWD" && cp twice.o "root$PWD" && echo "INPUT($PWD/twice.o)" >root/objects/both.ld
"$WEIR" count gcc "${sysroot[@]}" -o counted main.o 'with blanks/a name.o' root/objects/both.ld thrice.o -lm 2>err.txt
check "a name that is in the sysroot and outside is told" grep -q "both.ld': it is not known which file '$PWD/twice.o' in this linker script is: nothing that it names is counted" err.txt

# --- what is said with -v ---------------------------------------------------------------------

"$WEIR" count -v gcc -o counted "${objects[@]}" -lm 2>err.txt
for f in main.o 'with blanks/a name.o'; do
	check "-v has a line for '$f'" grep -q "^weir: '$f': [0-9]* of [0-9]* functions inserted" err.txt
done
check "-v names the shared libraries that are left" grep -q "libm.so': left as it is: a linker script that names nothing to be counted" err.txt
check "-v has a line for an archive that a script names" grep -q "libc_nonshared.a': [0-9]* of [0-9]* functions inserted" err.txt
"$WEIR" count -v gcc -o counted "${objects[@]}" -lm 2>again.txt
equal "a link from the cache says the same" "$(cat err.txt)" "$(cat again.txt)"

# --- the cache --------------------------------------------------------------------------------

objects_in() { find "$1" -name .object | sort; }
rm -rf cache
"$WEIR" count gcc -o counted "${objects[@]}" -lm
objects_in cache | xargs ls -l --time-style=full-iso >before.txt
check "the cache has copies" [ "$(wc -l <before.txt)" -ge 8 ]
"$WEIR" count gcc -o counted "${objects[@]}" -lm
equal "the same link makes no copy" "$(cat before.txt)" "$(objects_in cache | xargs ls -l --time-style=full-iso)"
gcc -O1 -c -o twice.o src/twice.c
echo 'int changed;' | cat src/twice.c - >changed.c && gcc -O2 -c -o twice.o changed.c
"$WEIR" count gcc -o counted "${objects[@]}" -lm
equal "a changed object makes one more" $(($(wc -l <before.txt) + 1)) "$(objects_in cache | wc -l)"
"$WEIR" count --counts gcc -o counted "${objects[@]}" -lm
check "other options make other copies" [ "$(objects_in cache | wc -l)" -ge $(($(wc -l <before.txt) + 5)) ]
check "no half-written file is left" [ -z "$(find cache -name '.*.??????')" ]
rm -rf cache
mkdir tmp
TMPDIR=$PWD/tmp "$WEIR" count --no-cache gcc -o counted "${objects[@]}" -lm
runs_as_before "--no-cache links" ./counted
equal "--no-cache leaves nothing behind" "" "$(find cache tmp -mindepth 1 2>/dev/null)"
# The linker waits for a reader of its map, and all is killed meanwhile.
mkfifo map
TMPDIR=$PWD/tmp setsid "$WEIR" count --no-cache gcc -o counted "${objects[@]}" -lm -Wl,-Map=map >killed.txt 2>&1 &
killed=$!
for ((i = 0; i < 6000; i++)); do [ -z "$(find tmp -name .object)" ] || break; sleep 0.01; done
kill -9 -- -$killed
wait $killed 2>/dev/null
equal "one that is killed does" 1 "$(find tmp -name 'weir-count-*' | wc -l)"
TMPDIR=$PWD/tmp "$WEIR" count --no-cache gcc -o counted "${objects[@]}" -lm
equal "and the next one sweeps it" "" "$(find tmp -name 'weir-*')"
rm -rf tmp/*
env -u WEIR_CACHE XDG_CACHE_HOME="$PWD/xdg" "$WEIR" count gcc -o counted "${objects[@]}" -lm
check "XDG_CACHE_HOME is used" [ -n "$(objects_in xdg/weir/count)" ]
env -u WEIR_CACHE HOME="$PWD/home" "$WEIR" count gcc -o counted "${objects[@]}" -lm
check "otherwise the home folder is" [ -n "$(objects_in home/.cache/weir/count)" ]
env -u WEIR_CACHE HOME=/proc/none TMPDIR="$PWD/tmp" "$WEIR" count gcc -o counted "${objects[@]}" -lm
runs_as_before "without a place for a cache there is a temporary one" ./counted
equal "which is removed" "" "$(find tmp -mindepth 1)"
(cd src && WEIR_CACHE=relative "$WEIR" count gcc -O2 -o ../counted main.c twice.c thrice.c '../with blanks/a name.o' -lm)
runs_as_before "a relative place is one" ./counted
rm -rf cache
pids=
for i in 1 2 3 4; do
	"$WEIR" count gcc -o "same$i" "${objects[@]}" -lm &
	pids+=" $!"
done
failed=
for pid in $pids; do wait "$pid" || failed=1; done
equal "links at the same time do" "" "$failed"
for i in 1 2 3 4; do runs_as_before "program $i of them does what it did" "./same$i"; done

# Entries used long ago go when there is too much; a sparse file is large enough.
old=cache/aa/$(printf '%062d' 0)
mkdir -p "$old" && truncate -s 3G "$old/.object" && touch -d '2 hours ago' "$old"
new=cache/ab/$(printf '%062d' 1)
mkdir -p "$new" && truncate -s 3G "$new/.object"
touch -d '1 hour ago' cache/trimmed
echo 'int other;' | gcc -c -x c - -o other.o
"$WEIR" count gcc -o counted "${objects[@]}" other.o -lm
check "an entry used long ago is removed when the cache is too large" [ ! -e "$old" ]
check "one used lately is not" [ -e "$new/.object" ]
