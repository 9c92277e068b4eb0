# SPDX-License-Identifier: MIT
# Archives that are read and written anew: ar lists and extracts the same, nm finds the same index,
# and linkers take from them the members that are needed and no others.
# weir-test: patient
. "$ROOT/tests/lib.sh"
tool=$BUILD/tests/oracle/archive_copy
gcc_dir=$(dirname "$(gcc -print-libgcc-file-name)")
lib=/usr/lib/x86_64-linux-gnu

# The index as nm prints it: "name in member".
index() { nm -s "$1" 2>/dev/null | sed -n '/^Archive index:/,/^$/p'; }

# copied SENTENCE [-w] ARCHIVE: into copy.a
copied() {
	local sentence=$1 said
	shift
	rm -f copy.a
	if ! said=$("$tool" "$@" copy.a 2>&1); then
		not_ok "$sentence: $said"
		return 1
	fi
}

# same SENTENCE [-w] ARCHIVE: copy.a has the same members, in the same order, and the same index.
same() {
	local in=${*: -1}
	copied "$@" || return
	equal "$1: members" "$(ar tv "$in")" "$(ar tv copy.a)"
	equal "$1: contents" "$(ar p "$in" | sha256sum)" "$(ar p copy.a | sha256sum)"
	if [ -z "$(index copy.a)" ]; then not_ok "$1: there is an index"; fi
	equal "$1: index" "$(index "$in")" "$(index copy.a)"
}

for archive in $lib/libc.a "$(echo $lib/libm-*.a)" $lib/libz.a $lib/libcrypto.a $lib/libsqlite3.a "$gcc_dir/libstdc++.a"; do
	name=$(basename "$archive")
	if [ ! -f "$archive" ]; then
		skip "$name is written as it was: $archive is not installed"
		continue
	fi
	same "$name is written as it was" "$archive"
	"$tool" copy.a again.a
	check "$name is written the same again" cmp -s copy.a again.a
done

# ---- archives made here ----
mkdir -p src/deep
cat >src/used.c <<'C'
int shared_counter; /* a common symbol with -fcommon */
int helper(int);
int used(int x) { return helper(x) + shared_counter; }
C
cat >src/a_helper_with_a_long_name.c <<'C'
__attribute__((weak)) int helper(int x) { return x * 2; }
C
cat >src/deep/not_needed.c <<'C'
extern int nobody_defines_this;
int not_needed(void) { return nobody_defines_this; }
C
cat >main.c <<'C'
#include <stdio.h>
int used(int);
int main(void) { printf("%d\n", used(21)); return 0; }
C
printf 'odd' >src/notes.txt
objects=()
for f in src/used src/a_helper_with_a_long_name src/deep/not_needed; do
	gcc -fcommon -c -o $f.o $f.c
	objects+=($f.o)
done
gcc -c -o main.o main.c
ar rcs plain.a "${objects[@]}" src/notes.txt
ar rcsT thin.a "${objects[@]}"
ar rcS bare.a "${objects[@]}"
ar rcsU timed.a "${objects[@]}"
if command -v llvm-ar >/dev/null; then llvm-ar --format=bsd rcs bsd.a "${objects[@]}"; fi

# linked SENTENCE: with copy.a by each linker; only what is needed comes in
linked() {
	local linker
	for linker in bfd gold lld; do
		if ! command -v ld.$linker >/dev/null; then
			skip "$1: ld.$linker links it: it is not installed"
			continue
		fi
		rm -f program
		gcc -fuse-ld=$linker -o program main.o copy.a 2>said.txt
		equal "$1: ld.$linker links it" "42 0 0" "$(./program 2>&1) $(nm program 2>&1 | grep -c not_needed) \
$(wc -l <said.txt)"
	done
}

same "an archive with long names and a text" plain.a
linked "an archive with long names and a text"
same "an archive with times and owners" timed.a
copied "a 64-bit index" -w plain.a
equal "a 64-bit index: nm reads it" "$(index plain.a)" "$(index copy.a)"
check "a 64-bit index is one" grep -aq SYM64 copy.a
linked "a 64-bit index"
"$tool" copy.a again.a
check "a 64-bit index stays one" cmp -s copy.a again.a

copied "a thin archive" thin.a
equal "a thin archive becomes an ordinary one" \
	"$(printf '%s\n' used.o a_helper_with_a_long_name.o not_needed.o)" "$(ar t copy.a)"
equal "a thin archive: contents" "$(cat "${objects[@]}" | sha256sum)" "$(ar p copy.a | sha256sum)"
linked "a thin archive"

copied "an archive without an index" bare.a
equal "an archive without an index gets one" "$(index plain.a)" "$(index copy.a)"
linked "an archive without an index"

if [ -f bsd.a ]; then
	copied "a BSD archive" bsd.a
	equal "a BSD archive: members" "$(ar t plain.a | grep -v notes)" "$(ar t copy.a)"
	equal "a BSD archive: contents" "$(cat "${objects[@]}" | sha256sum)" "$(ar p copy.a | sha256sum)"
	linked "a BSD archive"
else
	skip "a BSD archive is read: llvm-ar is not installed"
fi

# An index that lies: every offset and name changed.
python3 - <<'P'
data = bytearray(open("plain.a", "rb").read())
size = int(data[56:66])
data[68:68 + size] = bytes([0, 0, 0, 3]) + b"\xff" * (size - 4)
open("lies.a", "wb").write(data)
P
copied "an index that is wrong" lies.a
equal "an index that is wrong is made anew" "$(index plain.a)" "$(index copy.a)"

# Inside a thin archive, an ordinary one.
ar rcsT nested.a plain.a 2>/dev/null
if grep -aq '^/[0-9]*:[0-9]' nested.a; then
	fails "an archive inside of a thin archive is refused" 1 'not supported' "$tool" nested.a copy.a
else
	skip "an archive inside of a thin archive is refused: this ar does not make them"
fi

# Code for link-time optimisation: only the compiler's plug-in knows its symbols.
if gcc -flto -fno-fat-lto-objects -c -o lto.o src/used.c 2>/dev/null; then
	rm -f lto.a
	gcc-ar rcs lto.a lto.o src/a_helper_with_a_long_name.o
	same "entries of code for link-time optimisation" lto.a
	check "entries of code for link-time optimisation are there" grep -q '^used in lto.o' <(index copy.a)
	gcc -flto -o program main.o copy.a 2>said.txt
	equal "code for link-time optimisation links" 42 "$(./program 2>&1)"
else
	skip "entries of code for link-time optimisation: this gcc has none"
fi
if command -v clang llvm-ar llvm-nm >/dev/null; then
	clang -flto -c -o bitcode.o src/used.c
	rm -f bitcode.a
	llvm-ar rcs bitcode.a bitcode.o src/a_helper_with_a_long_name.o
	copied "entries of bitcode" bitcode.a
	equal "entries of bitcode" "$(llvm-nm --print-armap bitcode.a 2>/dev/null | sed '/^$/q')" \
		"$(llvm-nm --print-armap copy.a 2>/dev/null | sed '/^$/q')"
else
	skip "entries of bitcode: clang or llvm-ar is not installed"
fi

# More sections than 16 bits count: section numbers of symbols lie in a table of their own.
awk 'BEGIN { for (i = 0; i < 66000; i++) printf ".section .text.f%d,\"ax\"\n.globl f%d\nf%d: ret\n", i, i, i }' |
	gcc -c -x assembler -o many.o -
rm -f many.a
ar rcs many.a many.o
copied "an object of 66000 sections" many.a
check "an object of 66000 sections is indexed" cmp -s many.a copy.a
