# SPDX-License-Identifier: MIT
# Objects that are opened and written: unchanged, they are what they were; with sections and symbols
# added, readelf says the same of everything old, and linkers make programs of them that run.
# WEIR_SLOW=1 takes every member of the archives, otherwise a sample.
# weir-test: patient
. "$ROOT/tests/lib.sh"
tool=$BUILD/tests/oracle/elf_object_identity
step=${WEIR_SLOW:+1}
gcc_dir=$(dirname "$(gcc -print-libgcc-file-name)")
lib=/usr/lib/x86_64-linux-gnu

# unchanged SENTENCE STEP FILE...
unchanged() {
	local sentence=$1
	if "$tool" same "${@:2}" >said.txt 2>differences.txt; then
		ok "$sentence: $(cat said.txt)"
	else
		not_ok "$sentence: $(cat said.txt)"
		head -n 10 differences.txt
	fi
}

# What readelf says of old sections, groups, relocations and symbols: all but offsets, numbers of
# symbols, and symbols of sections, which old sections may have got.
described() { # OBJECT...
	readelf -SgrsW "$@" | awk '
	/^File: / { sub(/\.(in|out)\.o/, ""); print }
	/^Section Headers:|group section \[|^Relocation section|^Symbol table/ { mode = $1 }
	/group section \[/ { sub(/contains.*/, ""); print }
	/^Relocation section/ { keep = $3 !~ /weir_test|\.rela\.comment/ }
	/weir_test|\.rela\.comment|SYMTAB|STRTAB| NULL / { next }
	mode == "Section" && / GROUP / { sub(/[0-9a-f]+ +[0-9a-f]+ +04 .*/, ""); print; next }
	mode == "Section" && /0fff4c03|LOOS\+0xfff4c03/ { print $1, $2, $3; next }
	mode == "Section" && /^ *\[ *[0-9]+\]/ {
		match($0, / 0000000000000000 [0-9a-f]+ /)
		print substr($0, 1, RSTART), substr($0, RSTART + RLENGTH)
	}
	mode ~ /^(COMDAT|group)$/ && /^ *\[ *[0-9]+\]/ { print }
	/^Relocation section/ { print $3, $8; in_table = keep; next }
	/^$/ { in_table = 0 }
	in_table && /^[0-9a-f]+ +[0-9a-f]+ R_/ { $2 = ""; print }
	mode == "Symbol" && /^ *[0-9]+: / && $1 != "0:" && $4 != "SECTION" { $1 = ""; print }'
}

# The names in LLVM's lists of symbols.
listed() { # OBJECT...
	llvm-readelf --elf-output-style=LLVM --addrsig --cg-profile "$@" | sed -E '/^File/d; s/\([0-9]+\)//'
}

# changed SENTENCE STEP FILE: every changed object, against the same one before
changed() {
	local sentence=$1 n i before=() after=()
	rm -rf objects && mkdir objects
	if ! n=$("$tool" change "$2" "$3" objects 2>said.txt); then
		not_ok "$sentence: $(head -n 5 said.txt)"
		return
	fi
	for ((i = 1; i <= n; i++)); do before+=("objects/$i.in.o") after+=("objects/$i.out.o"); done
	described "${before[@]}" >before.txt 2>/dev/null
	described "${after[@]}" >after.txt 2>complaints.txt
	if [ -s complaints.txt ] || [ "$(wc -l <before.txt)" -lt 5 ] || ! cmp -s before.txt after.txt; then
		not_ok "$sentence ($n objects)"
		head -n 5 complaints.txt
		diff before.txt after.txt | head -n 10
	else
		ok "$sentence ($n objects, $(wc -l <after.txt) facts)"
	fi
}

for archive in $lib/libc.a:40 "$(echo $lib/libm-*.a):20" $lib/libz.a:1 $lib/libcrypto.a:20 $lib/libsqlite3.a:7 \
	"$gcc_dir/libstdc++.a:9"; do
	file=${archive%:*} some=${step:-${archive#*:}} name=$(basename "${archive%:*}")
	if [ ! -f "$file" ]; then
		skip "members of $name are written as they were: $file is not installed"
		continue
	fi
	unchanged "members of $name are written as they were" "$some" "$file"
	changed "readelf finds all that was in members of $name when sections are added" "$some" "$file"
done
unchanged "start-up objects are written as they were" 1 "$gcc_dir"/crt*.o $lib/*crt*.o
for object in "$gcc_dir/crtbegin.o" $lib/crt1.o; do
	changed "readelf finds all that was in $(basename "$object")" 1 "$object"
done

# ---- objects made here ----
cat >shapes.h <<'C'
#include <string>
#include <vector>
#include <stdexcept>
template <typename T> struct box {
	virtual ~box() {}
	virtual T twice(T x) const { static int calls; calls++; return x + x; }
};
inline int counted(int x) { static std::vector<int> seen; seen.push_back(x); return (int)seen.size(); }
C
cat >one.cc <<'C'
#include "shapes.h"
#include <cstdio>
extern "C" { extern unsigned long __start_weir_test[] __attribute__((weak)), __stop_weir_test[] __attribute__((weak));
char weir_test_anchor; void text_of_one() {} }
int other(int);
thread_local int per_thread = 3;
int main(int argc, char **)
{
	box<std::string> b;
	int records = 0;
	try {
		other(argc);
	} catch (const std::runtime_error &e) {
		printf("%s %s %d\n", e.what(), b.twice("ab").c_str(), counted(per_thread));
	}
	for (unsigned long *p = __start_weir_test; p < __stop_weir_test; p += 3, records++)
		if (p[1] != (unsigned long)&weir_test_anchor || p[2] != 0x7465737477656972 || !p[0])
			return 1;
	return records > 3 ? 0 : 2;
}
C
cat >two.cc <<'C'
#include "shapes.h"
static int __attribute__((noinline)) choose(int x)
{
	switch (x) {
	case 1: return counted(1) + 10;
	case 2: return counted(2) * 3;
	case 3: return -1;
	case 4: return counted(7) - 7;
	case 5: return 99;
	default: return 0;
	}
}
int other(int x)
{
	box<std::string> b;
	throw std::runtime_error(b.twice("x") + std::to_string(choose(x)));
}
C
expected='xx11 abab 2'

# links LABEL LINKER OBJECT...: the program runs and finds a record of every section of code.
links() {
	local label=$1 linker=$2
	shift 2
	if ! command -v "ld.$linker" >/dev/null; then
		skip "$label link with ld.$linker and run: it is not installed"
		return
	fi
	rm -f program
	g++ -fuse-ld="$linker" -o program "$@" >link.txt 2>&1
	if [ -s link.txt ]; then
		not_ok "$label link with ld.$linker: $(head -n 5 link.txt)"
		return
	fi
	equal "$label link with ld.$linker and run" "$expected 0" "$(./program) $?"
}

# made LABEL COMPILER FLAGS...
made() {
	local label=$1 i
	shift
	rm -rf made && mkdir made
	for i in one two; do
		if ! "$@" -c -o made/$i.o $i.cc; then
			not_ok "$label are compiled"
			return
		fi
		unchanged "$label ($i) are written as they were" 1 made/$i.o
		changed "readelf finds all that was in $label ($i)" 1 made/$i.o
		cp objects/1.out.o made/$i.changed.o
	done
	for linker in bfd gold lld; do links "$label" $linker made/one.changed.o made/two.changed.o; done
	if ! ld -r -o made/both.o made/one.changed.o made/two.changed.o 2>link.txt; then
		not_ok "ld -r takes $label: $(head -n 5 link.txt)"
		return
	fi
	unchanged "what ld -r makes of $label is written as it was" 1 made/both.o
	links "$label, through ld -r," bfd made/both.o
}
made "gcc's objects" g++ -O2 -g
made "gcc's objects with a section for each function and packed debug information" \
	g++ -O1 -g -gz -ffunction-sections -fdata-sections
if command -v clang++ >/dev/null; then
	made "clang's objects" clang++ -O2 -g
	made "clang's objects with a section for each function" clang++ -O0 -ffunction-sections -fdata-sections \
		-funique-section-names
	made "clang's objects with packed debug information" clang++ -O1 -g -gz
else
	skip "clang's objects are written as they were: clang++ is not installed"
fi

# Symbol numbers that are no relocations: LLVM's lists.
cat >lists.s <<'S'
	.text
	.globl f, g
	.type f, @function
f:	call g
	ret
local:	ret
	.cg_profile f, g, 32
	.cg_profile g, f, 11
	.addrsig
	.addrsig_sym g
	.addrsig_sym local
	.addrsig_sym f
S
if command -v clang llvm-readelf >/dev/null && clang -c -o lists.o lists.s; then
	unchanged "an object with LLVM's lists of symbols is written as it was" 1 lists.o
	changed "readelf finds all that was in an object with LLVM's lists" 1 lists.o
	check "the last object has these lists" grep -q Weight <(listed objects/1.in.o)
	equal "LLVM's lists name the same symbols" "$(listed objects/1.in.o)" "$(listed objects/1.out.o)"
else
	skip "LLVM's lists of symbols name the same symbols: clang or llvm-readelf is not installed"
fi

# More sections than 16 bits count.
chain() { # FUNCTIONS: each in a section of its own, jumping to the next
	awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf ".section .text.f%d,\"ax\"\n.globl f%d\n" \
		"f%d: jmp f%d\n", i, i, i, (i + 1) % n }' | gcc -c -x assembler -o many.o -
}
chain 33000
unchanged "an object of 66000 sections is written as it was" 1 many.o
if [ -n "${WEIR_SLOW:-}" ]; then # readelf takes its time
	changed "readelf finds all that was in an object that has more sections than fit 16 bits" 1 many.o
	chain 22000
	changed "readelf finds all that was in an object that gets more sections than fit 16 bits" 1 many.o
fi

# No symbols at all; no relocations at all.
gcc -c -x assembler -o bare.o - <<<'ret'
objcopy --strip-all bare.o stripped.o 2>/dev/null
unchanged "an object without symbols is written as it was" 1 stripped.o
if readelf -SW stripped.o | grep -q SYMTAB; then
	skip "an object without symbols gets a symbol table: objcopy leaves one"
else
	mkdir -p bare && "$tool" change 1 stripped.o bare >/dev/null
	equal "an object without symbols gets a symbol table" "weir_test_anchor" \
		"$(nm -u bare/1.out.o | awk '{ print $2 }')"
fi
