# SPDX-License-Identifier: MIT
# weir symbols merge: which inputs become which images, by what right, and with how many symbols.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/fixtures/symbol_libraries.sh"

# --- a stripped library and its map ---

# The two functions that are not exported have the same size: which is which, a text without identity
# cannot prove.
agree="3 of 3 agree; 5 of 5 functions are where its unwind table has them"
exchangeable="$agree; others of the same extents could be in their place"

mkdir map && cp full/lib.map map/ && strip -o map/lib.so full/lib.so
merge map
equal "merging ends with 0" 0 $rc
equal "a stripped library and its map are one image" \
	"map/lib.so 64 5 symbols 0 lines: dynsym 3/3 (the image itself), ld map 3/3 ($agree), ld map 2/2 ($exchangeable)" "$(images)"
equal "the symbols are those of nm" "$(functions full/lib.so)" "$(symbols map/lib.so)"
mkdir nm && nm full/lib.so >nm/lib.nm && strip -o nm/lib.so full/lib.so
merge nm
equal "so are one and the output of nm" \
	"nm/lib.so 64 5 symbols 0 lines: dynsym 3/3 (the image itself), nm 3/3 ($agree), nm 2/2 ($exchangeable)" "$(images)"
equal "with the same symbols" "$(functions full/lib.so | sed 's/ [0-9]* / /')" "$(symbols nm/lib.so | sed 's/ [0-9]* / /')"
if command -v ld.lld >/dev/null; then
	mkdir lld && make_lib lld/full.so -fuse-ld=lld -Wl,-Map=lld/lib.map
	strip -o lld/lib.so lld/full.so && cp lld/full.so lld_full.so && rm lld/full.so
	merge lld
	equal "and one and its map by lld" \
		"lld/lib.so 64 5 symbols 0 lines: dynsym 3/3 (the image itself), lld map 3/3 ($agree), lld map 2/2 ($exchangeable)" "$(images)"
	equal "with the symbols of nm" "$(functions lld_full.so)" "$(symbols lld/lib.so)"
else
	skip "and one and its map by lld: ld.lld is not installed"
fi

mkdir other && make_lib other/full.so -DLONGER && nm other/full.so >other/lib.nm && rm other/full.so
strip -o other/lib.so full/lib.so
merge other/lib.so other/lib.nm
equal "names at other addresses are refused, and the status says so" 3 $rc
equal "the library stays alone" "other/lib.so 64 3 symbols 0 lines: dynsym 3/3 (the image itself)" "$(images)"
check "the reason counts what agrees and names the first that does not" grep -Eq \
	"^refused other/lib.nm: .*lib.so': [012] of 3 agree: api_(one|two|three) is at 0x[0-9a-f]+ in it, at 0x[0-9a-f]+ " <(refused)
mkdir othermap && make_lib othermap/full.so -DLONGER -Wl,-Map=othermap/lib.map && rm othermap/full.so
strip -o othermap/lib.so full/lib.so
merge othermap/lib.so othermap/lib.map
equal "a map with another .text is refused" "3 othermap/lib.map" "$rc $(refused | sed 's/^refused //; s/:.*//')"

mkdir -p tie/one tie/two tie/maps && strip -o tie/one/lib.so full/lib.so && strip -o tie/two/lib.so full/lib9.so
cp full/lib.map tie/maps/lib.map
equal "two versions may have all names at equal addresses" "$(functions full/lib.so)" "$(functions full/lib9.so)"
merge tie/one/lib.so tie/two/lib.so tie/maps/lib.map
equal "a map that fits two versions is refused" 3 $rc
check "with both identities" grep -Eq "^refused tie/maps/lib.map: ambiguous: .*one/lib.so' \(.*$(build_id full/lib.so).*two/lib.so' \(.*$(build_id full/lib9.so)" <(refused)
mv tie/maps/lib.map tie/two/
merge tie/one/lib.so tie/two/lib.so tie/two/lib.map
equal "but not when it lies beside one of them" \
	"0 tie/one/lib.so 64 3 symbols 0 lines: dynsym 3/3 (the image itself)
tie/two/lib.so 64 5 symbols 0 lines: dynsym 3/3 (the image itself), ld map 3/3 ($agree), ld map 2/2 ($exchangeable)" "$rc $(images)"

# --- a stripped library and its debug file ---

mkdir debug && strip -o debug/lib.so full/lib.so && objcopy --only-keep-debug full/lib.so debug/lib.so.debug
merge debug
equal "a stripped library and its debug file are one image, by build-id" \
	"debug/lib.so 64 5 symbols N lines: dynsym 3/3 (the image itself), debug file 5/5 (build-id equal), dwarf 5/5 (build-id equal)" \
	"$(images | lines_known)"
equal "with all symbols" "$(functions full/lib.so)" "$(symbols debug/lib.so)"
equal "and their lines" "$(addr2line -fe full/lib.so "$(address full/lib.so hidden_mul)" | paste -s -d ' ')" \
	"$("$WEIR" symbols resolve -q --catalog out.wsym --no-search --image debug/lib.so "$(address full/lib.so hidden_mul)" |
		sed 's/.*(\(.*\)+0x0) /\1 /')"

mkdir link && make_lib link/lib.so -Wl,--build-id=none && objcopy --only-keep-debug link/lib.so link/lib.dbg
(cd link && strip lib.so && objcopy --add-gnu-debuglink=lib.dbg lib.so)
crc=$(python3 -c 'import zlib; print("%08x" % zlib.crc32(open("link/lib.dbg", "rb").read()))')
merge link
equal "without a build-id they are one by the CRC of the debug link" \
	"link/lib.so 64 5 symbols N lines: dynsym 3/3 (the image itself), debug file 5/5 (debuglink CRC 0x$crc equal), dwarf 5/5 (debuglink CRC 0x$crc equal)" \
	"$(images | lines_known)"
mkdir broken && cp link/lib.so broken/ && { cat link/lib.dbg && echo; } >broken/lib.dbg
merge broken
equal "but not when one byte is more" \
	"broken/lib.dbg 64 5 symbols N lines: symtab 5/5, dwarf 5/5
broken/lib.so 64 3 symbols 0 lines: dynsym 3/3" "$(images | lines_known | without_verdicts)"
check "and the reason says so" grep -q "does not belong to .*broken/lib.so'" <(reason_of broken/lib.dbg)

# --- versions, paths, strangers ---

mkdir -p versions/old versions/new && cp full/lib.so versions/old/ && cp full/lib9.so versions/new/lib.so
merge versions
equal "two versions of one name in two folders are two images" \
	"versions/new/lib.so 64 5 symbols N lines: symtab 5/5, dynsym 3/3, dwarf 5/5
versions/old/lib.so 64 5 symbols N lines: symtab 5/5, dynsym 3/3, dwarf 5/5" "$(images | lines_known | without_verdicts)"
equal "with their own ids and build-ids" "2 $(build_id full/lib9.so) $(build_id full/lib.so)" \
	"$(json out.json '"%d %s" % (len({r["id"] for r in j["rows"]}), " ".join(r["build_id"] for r in j["rows"]))')"
mkdir -p copies/a copies/b && strip -o copies/a/lib.so full/lib.so && cp copies/a/lib.so copies/b/ &&
	objcopy --only-keep-debug full/lib.so copies/lib.debug
merge copies
equal "the same file at two paths is two images, and its debug file belongs to both" \
	"copies/a/lib.so 64 5 symbols N lines: dynsym 3/3, debug file 5/5, dwarf 5/5
copies/b/lib.so 64 5 symbols N lines: dynsym 3/3, debug file 5/5, dwarf 5/5" "$(images | lines_known | without_verdicts)"
mkdir strangers && strip -o strangers/prog full/lib.so && objcopy --only-keep-debug full/lib9.so strangers/prog.debug
merge strangers
equal "a library and a debug file of another version are two images" \
	"strangers/prog 64 3 symbols 0 lines: dynsym 3/3 (the image itself)
strangers/prog.debug 64 5 symbols N lines: symtab 5/5 (the image itself), dwarf 5/5 (inside the image)" \
	"$(images | lines_known)"
check "the reason names both build-ids" grep -q "does not belong to .*prog': .*$(build_id full/lib9.so) here, .*$(build_id full/lib.so) there" \
	<(reason_of strangers/prog.debug)

# --- other kinds of image ---

mkdir bits && make_lib bits/lib.so -m32 2>/dev/null && objcopy --only-keep-debug bits/lib.so bits/lib.debug && cp bits/lib.so full/lib32.so && strip bits/lib.so
if [ -s full/lib32.so ]; then
	merge bits
	# The 32-bit code may have a helper for its own address.
	equal "32-bit images and debug files are read alike" "$(functions full/lib32.so)" "$(symbols bits/lib.so)"
	equal "and marked" "32 i386" "$(json out.json '"%s %s" % (j["rows"][0]["bits"], j["rows"][0]["machine"])')"
	cp bits/lib.debug bits/../full/lib32.debug
	mkdir mixed && strip -o mixed/lib.so full/lib.so && cp full/lib32.debug mixed/lib.debug
	merge mixed
	check "a 32-bit debug file does not join a 64-bit library" grep -q 'mixed/lib.so 64 3 symbols 0 lines: dynsym 3/3 ' <(images)
else
	skip "32-bit images and debug files are read alike: gcc -m32 does not work here"
fi

mkdir mini && nm -D full/lib.so --format=posix --defined-only | awk '{ print $1 }' | sort >dynamic.txt
nm full/lib.so --format=posix --defined-only | awk '$2 ~ /[Tt]/ { print $1 }' | sort >all.txt
comm -13 dynamic.txt all.txt >keep.txt
objcopy -S --remove-section .gnu_debuglink --keep-symbols=keep.txt full/lib.so mini.elf 2>/dev/null
xz -k mini.elf && strip -o mini/lib.so full/lib.so && objcopy --add-section .gnu_debugdata=mini.elf.xz mini/lib.so
merge mini
equal ".gnu_debugdata gives the symbols that were stripped" \
	"mini/lib.so 64 5 symbols 0 lines: dynsym 3/3 (the image itself), debugdata 2/2 (inside the image)" "$(images)"
equal "which are those of nm" "$(functions full/lib.so)" "$(symbols mini/lib.so)"

mkdir jit && printf '7f0000001000 40 Lprog;::loop\n7f0000002000 20 stub with blanks\n7f0000001010 10 Lprog;::later\n' >jit/perf-4711.map
merge jit
equal "a perf map is an image of run-time code" "jit/perf-4711.map None 3 symbols 0 lines: perf map 3/3 (code of process 4711)" "$(images)"
equal "where the later line wins" "Lprog;::later" \
	"$("$WEIR" symbols resolve --json --catalog out.wsym --image perf-4711.map 7f0000001018 >r.json; json r.json 'j["rows"][0]["symbol"]')"

sleep 60 &
pid=$!
runs $pid
merge --pid $pid
kill $pid
check "a process gives what it has mapped" grep -q '/sleep 64' <(images)
check "also its libraries" grep -q '/libc\.so\.6 64' <(images)
if [ "$(head -c 16 /proc/kallsyms)" != 0000000000000000 ]; then
	merge --kernel
	equal "the running kernel is an image" "[kernel] True" "$(json out.json '"%s %s" % (j["rows"][0]["path"], j["rows"][0]["symbols"] > 10000)')"
else
	skip "the running kernel is an image: kallsyms shows no addresses here"
fi

# --- refusals and statuses ---

echo hello >hello.txt && gcc -c -o lib.o -DADD=7 -x c lib.c
merge full/lib.so hello.txt nowhere lib.o
equal "an input that is refused makes the status 3" 3 $rc
equal "each with its reason" "refused hello.txt: no kind of symbol source
refused lib.o: an object file has no addresses before it is linked
refused nowhere: 'nowhere': No such file or directory" "$(refused)"
check "what can be used is used" grep -q '^full/lib.so 64 5 symbols' <(images)
mkdir folder && cp full/lib.so hello.txt folder/
merge folder
equal "other files in a folder are no refusals" "0 " "$rc $(refused)"
mkdir empty
fails "nothing to use is a failure" 1 "'none.wsym': .*none of the inputs" "$WEIR" symbols merge -o none.wsym hello.txt
check "and no file is made" test ! -e none.wsym
fails "a folder without files is a failure" 1 "no input" "$WEIR" symbols merge -o none.wsym empty
fails "merge needs -o" 2 "needs -o" "$WEIR" symbols merge full/lib.so
fails "merge needs an input" 2 "needs a path" "$WEIR" symbols merge -o none.wsym
fails "a process that is not there is a failure" 1 "none of the inputs" "$WEIR" symbols merge -o none.wsym --pid 999999999
check "and the answer says which" grep -q '^refused process 999999999: .*No such file' out.txt
fails "a file that cannot be written is a failure" 1 "hello.txt/x.wsym" "$WEIR" symbols merge -o hello.txt/x.wsym full/lib.so
"$WEIR" symbols merge -q -o quiet.wsym full/lib.so hello.txt >quiet.txt
equal "-q leaves what was refused" 1 "$(grep -c . quiet.txt)"

# --- equal inputs, equal bytes ---

inputs=(full map debug /usr/bin/perl "$WEIR" "$(ldd "$WEIR" | awk '/libc\.so/ { print $3 }')")
"$WEIR" symbols merge -q -o one.wsym --threads 1 "${inputs[@]}"
"$WEIR" symbols merge -q -o two.wsym --threads 2 "${inputs[@]}"
check "one thread and two give the same bytes" cmp one.wsym two.wsym
check "of a file that has lines" test "$("$WEIR" symbols stats --catalog one.wsym --json >s.json; json s.json 'j["lines"] > 1000')" = True
reversed=()
for ((i = ${#inputs[@]} - 1; i >= 0; i--)); do reversed+=("${inputs[i]}"); done
"$WEIR" symbols merge -q -o three.wsym --threads 5 "${reversed[@]}"
check "so does another order of the inputs" cmp one.wsym three.wsym
equal "no time is written by itself" None "$(json s.json 'j["facts"].get("made_at")')"
SOURCE_DATE_EPOCH=86400 "$WEIR" symbols merge -q -o four.wsym full && "$WEIR" symbols stats --catalog four.wsym --json >s.json
equal "but the one of SOURCE_DATE_EPOCH" 1970-01-02T00:00:00Z "$(json s.json 'j["facts"]["made_at"]')"
equal "how, on what and from what it was made is written" "weir True True full" \
	"$(json s.json '" ".join(str(x) for x in (j["facts"]["made_by"].split()[0], j["facts"]["made_on"].startswith("Linux "), int(j["facts"]["page_bytes"]) >= 4096, j["facts"]["made_from"]))')"
