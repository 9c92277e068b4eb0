#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two readers of the merged symbol file, one in C and one in Python written from
# docs/format/catalog-file.md and docs/format/catalog.md, must see the same. The container: in whole
# files, in files cut anywhere, with flipped bits, and with each rule of the directory broken under
# right check sums. The images: every symbol, and the levels of thousands of addresses.
# weir-test: patient
source "$ROOT/tests/lib.sh"
export driver=$BUILD/tests/oracle/catalog_driver

# --- the container --------------------------------------------------------------------------

check "a new file with some of everything is written" "$driver" make new.wsym
"$driver" make again.wsym
check "the same images and facts make the same bytes" cmp new.wsym again.wsym
cp new.wsym all.wsym
check "a file with real images is written" "$driver" images real.wsym
check "further changes are made" sh -c '"$driver" add all.wsym 20 1 3 >/dev/null'

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$ROOT/tests/format python3 - <<'END'
import json
import os
import random
import struct
import subprocess
from read_catalog import Bad, Catalog, as_json, crc32c


def first_reader(data):
    with open("case.wsym", "wb") as f:
        f.write(data)
    done = subprocess.run([os.environ["driver"], "dump", "case.wsym"], capture_output=True)
    if done.returncode == 1 and done.stderr.count(b"\n") == 1:
        return "refused"
    if done.returncode:
        return "status %d: %s" % (done.returncode, done.stderr.decode())
    return json.loads(done.stdout)


def second_reader(data):
    try:
        return as_json(Catalog(data))
    except Bad:
        return "refused"


def say(good, sentence, detail=""):
    print("ok" if good else "not ok", sentence)
    if not good and detail:
        print(detail)


def both(data):
    """What both readers see: (a word, the JSON)."""
    a, b = first_reader(bytes(data)), second_reader(bytes(data))
    if a != b:
        return "they differ: %.300s / %.300s" % (a, b), a
    return ("refused" if a == "refused" else "same"), a


def summary(seen):
    if not isinstance(seen, dict):
        return seen
    return {"generation": seen["generation"], "damaged": seen["damaged"],
            "missing": sum(i["content"] is None for i in seen["images"])}


def expect(sentence, data, generation=None, damaged=False, missing=0):
    """With a generation: both see that state; without: both refuse."""
    word, seen = both(data)
    if generation is None:
        say(word == "refused", "both readers refuse " + sentence, word)
        return None
    wanted = {"generation": generation, "damaged": damaged, "missing": missing}
    say(word == "same" and summary(seen) == wanted, "both readers see the same in " + sentence,
        "%s %s" % (word, summary(seen)))
    return seen


def flipped(data, offset):
    copy = bytearray(data)
    copy[offset] ^= 0x10
    return copy


expect("a file with real images", open("real.wsym", "rb").read(), 1)
new, whole = (open(name, "rb").read() for name in ("new.wsym", "all.wsym"))
seen = expect("a new file", new, 1)
say(len(seen["images"]) == 12 and len(seen["facts"]) == 5 and
    sum(i["base"] == "libshared" for i in seen["images"]) == 4,
    "it has images, facts and shared base names to compare")
seen = expect("a file after three further changes", whole, 4)
say(len(seen["images"]) == 15, "it has the images of all four")

catalog = Catalog(whole)
root, directory = catalog.root, catalog.root.dir_offset
assert root.name == "B"
image = next(i for i in catalog.images if i["bytes"] > 200)["offset"]
for into in (3, 9, 17, 25, 40, 63, 100):
    expect(f"a file with a flipped bit at {into} of an image", flipped(whole, image + into), 4,
           missing=1)
for into in (2, 16, 30, 100, 510):
    expect(f"a file with a flipped bit at {into} of the newer root", flipped(whole, 4096 + into), 3,
           damaged=True)
for into in (1, 8, 62, 70, 63 + root.dir_bytes):
    expect(f"a file with a flipped bit at {into} of the directory", flipped(whole, directory + into),
           3, damaged=True)
expect("a file whose older root is damaged", flipped(whole, 100), 4, damaged=True)
expect("a file with two damaged roots", flipped(flipped(whole, 100), 4200))
for n in (0, 5, 511, 512, 600, 4095, 4096, 4100, 4607, 4608, 8191, 8192, len(new) - 1):
    expect(f"the first {n} of {len(whole)} bytes", whole[:n])
for n in (directory - 1, len(whole) - 1):
    expect(f"the first {n} of {len(whole)} bytes", whole[:n], 3, damaged=True)

random.seed(4)
words = {}
for _ in range(150):
    copy = whole
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.choice((random.randrange(64), 4096 + random.randrange(64),
                            directory + random.randrange(64 + root.dir_bytes),
                            random.randrange(len(whole))))
        copy = flipped(copy, at)
    word, seen = both(copy)
    words[word] = words.get(word, 0) + 1
say(set(words) == {"same", "refused"} or set(words) == {"same"},
    "both readers see the same in 150 files with random flips", str(words))


def rewritten(payload, fall_back):
    """The file with another newest directory and right check sums everywhere."""
    data = bytearray(whole)
    header = data[directory:directory + 64]
    struct.pack_into("<Q", header, 8, len(payload))
    struct.pack_into("<I", header, 24, crc32c(payload))
    struct.pack_into("<I", header, 60, crc32c(header[:60]))
    data[directory:] = header + payload
    block = data[4096:4608]
    struct.pack_into("<QQ", block, 32, len(payload), len(data))
    struct.pack_into("<I", block, 508, crc32c(block[:508]))
    data[4096:4608] = block
    if not fall_back:
        data[:512] = bytes(512)
    return data


payload = whole[directory + 64:directory + 64 + root.dir_bytes]
base = payload.index(b"libshared\0")
first = base + 10 + 4  # its first image
path = payload.index(b"/usr/lib", first)
expect("a directory written anew", rewritten(payload, True), 4)
expect("a directory that was left with one root", rewritten(payload, False), 4)
BROKEN = {
    "too many facts": (0, "I", 0xFFFFFFFF), "facts out of order": (4, "B", ord("z")),
    "too many images": (base + 10, "I", 0xFFFFFFFF), "no images": (base + 10, "I", 0),
    "base names out of order": (base, "B", ord("a")),
    "an image in a root": (first + 8, "Q", 4096),
    "an image that is not aligned": (first + 8, "Q", 8193),
    "an image beyond the file": (first + 8, "Q", 1 << 40),
    "an image at the end of all numbers": (first + 8, "Q", (1 << 64) - 64),
    "an image that is too long": (first + 16, "Q", (1 << 64) - 1),
    "an image of 7 bits": (first + 30, "B", 7), "a build-id that is too long": (first + 31, "B", 33),
    "images out of order": (path + 1, "B", ord("z")),
    "a text without an end": (len(payload) - 1, "B", ord("x")),
    "a byte too many": (len(payload), "B", 0),
}
for what, (offset, form, value) in BROKEN.items():
    broken = bytearray(payload) + bytes(offset + 1 - len(payload) if offset >= len(payload) else 0)
    struct.pack_into("<" + form, broken, offset, value)
    expect("a directory with " + what, rewritten(broken, False))
    expect("a state before one with " + what, rewritten(broken, True), 3, damaged=True)
swapped = bytearray(payload)
struct.pack_into("<Q", swapped, first, 1)  # the segment has another id
expect("a directory that names another segment", rewritten(swapped, True), 4, missing=1)
END

# The content hash, by both.
cat >hash.c <<'END'
int main(void) { return 0; }
END
gcc -o separate hash.c && gcc -Wl,-z,noseparate-code -o joined hash.c || exit 1
for file in separate joined; do
	cp $file stripped && strip stripped && objcopy --only-keep-debug $file debug
	one=$("$driver" hash $file)
	equal "both readers compute the content hash of a program ($file)" \
		"$one" "$(python3 "$ROOT/tests/format/read_catalog.py" --hash $file)"
	equal "the stripped program has it, too ($file)" "$one" "$("$driver" hash stripped)"
	equal "its debug file has none ($file)" "0000000000000000" "$("$driver" hash debug)"
done
check "the two programs do not have the same" \
	test "$("$driver" hash separate)" != "$("$driver" hash joined)"

# --- the images -----------------------------------------------------------------------------

unset DEBUGINFOD_URLS WEIR_DEBUG_PATH
export catalog=images.wsym

# A library whose exported names depend on N, so that a map of one does not fit another.
cat >lib.c <<'END'
#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
int NAME(first_, N)(int x) { return x + 1; }
static int local(int x) { return x * N; }
int NAME(second_, N)(int x) { return local(NAME(first_, N)(x)); }
int NAME(other_, N)(int) __attribute__((alias("second_" STRING)));
int NAME(_weak_, N)(int) __attribute__((weak, alias("second_" STRING)));
END
make_lib() { # FILE N FLAGS...
	gcc -O1 -fno-inline -shared -fPIC "-DN=$2" "-DSTRING=\"$2\"" "${@:3}" -o "$1" lib.c
}
make_lib stripped.so 1 && make_lib mapped.so 2 -Wl,-Map=mapped.map && make_lib listed.so 3 &&
	make_lib noted.so 4 -Wl,--build-id && nm listed.so >listed.nm &&
	strip stripped.so mapped.so listed.so noted.so || exit 1

# C++ with inlines in inlines; then without the symbol of a cold part, which becomes a filler.
cat >inlines.cc <<'END'
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>
static inline int twice(int x) { return x * 2; }
static inline __attribute__((always_inline)) int four(int x) { return twice(twice(x)) + (x > 7); }
int main(int argc, char **argv)
{
	std::vector<std::string> all(argv, argv + argc);
	std::sort(all.begin(), all.end());
	int sum = 0;
	for (auto &one : all)
		sum += four(one.size());
	printf("%d\n", sum);
	return 0;
}
END
g++ -O2 -g -o inlines inlines.cc && objcopy --strip-symbol=main.cold inlines filled || exit 1

# More inline sites and ranges than one chunk holds.
python3 - >many.c <<'END'
print("#define IN static inline __attribute__((always_inline)) int")
print("static volatile int v;\nIN low(int x) { return v + x; }")
print("IN high(int x)\n{\n\tv = low(x);\n\treturn low(v) * 3;\n}")
for i in range(500):
    calls = "".join("\tx += high(x + %d);\n" % j for j in range(4))
    print("int function_%d(int x)\n{\n%s\treturn x;\n}" % (i, calls))
END
gcc -O1 -g -shared -fPIC -o many.so many.c || exit 1

# Rows of code that no symbol has, and no build-id.
cat >nameless.S <<'END'
	.text
	.globl _start
	.type _start, @function
_start:	nop
	ret
	.size _start, . - _start
	.section .other, "ax", @progbits
	nop
	.file 1 "nameless.src"
	.loc 1 7
	nop
	.loc 1 8
	ret
	.section .note.GNU-stack
END
gcc -nostdlib -static -no-pie -g -Wl,--build-id=none -o nameless nameless.S || exit 1

# Run-time code: functions over functions, far apart, with long names; and a jitdump with rows.
python3 - <<'END'
import random
import struct
random.seed(3)
address = 0x7F0000000000
with open("perf-99.map", "w") as f:
    for i in range(5000):
        name = "LClass%d;::method\t%d" % (i % 700, i) + "x" * (i % 50 == 0) * random.randrange(9000)
        start = address + random.randrange(-40, 40)
        f.write("%x %x %s\n" % (start, random.choice((16, 64, 300)), name))
        address += random.choice((16, 100, 400)) + (i % 1000 == 0) * (1 << 33)
    for size in (64, 48, 32):
        f.write("%x %x again_%d\n" % (address, size, size))


def record(kind, body):
    return struct.pack("<IIQ", kind, 16 + len(body), 1000) + body


with open("jit-77.dump", "wb") as f:
    f.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 77, 1, 0))
    for i in range(40):
        at = 0x10000 + 256 * (i % 30)
        rows = b"".join(struct.pack("<QII", at + 16 * j, 10 * i + j * j, 0) + b"%d.js\0" % (i % 3)
                        for j in range(6))
        f.write(record(2, struct.pack("<QQ", at, 6) + rows))
        load = struct.pack("<IIQQQQ", 77, 77, at, at, 200, i) + b"f%d\0" % i
        f.write(record(0, load + bytes(200)))
END

inputs=(stripped.so mapped.so listed.so listed.nm inlines filled many.so nameless perf-99.map
	jit-77.dump)
if make_lib lib32.so 5 -m32 -g 2>/dev/null; then
	inputs+=(lib32.so)
else
	skip "both readers see the same in a 32-bit library: gcc -m32 does not work (gcc-multilib)"
fi
if make_lib lld.so 6 -fuse-ld=lld -Wl,-Map=lld.map 2>/dev/null; then
	strip lld.so
	inputs+=(lld.so lld.map)
else
	skip "both readers see the same in a library with a map of lld: lld is not installed"
fi
libc=$(realpath "$(gcc -print-file-name=libc.so.6)")
id=$(readelf -n "$libc" | sed -n 's/.*Build ID: //p')
if [ -e "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" ]; then
	inputs+=("$libc")
else
	skip "both readers see the same in the C library: its debug file is not installed (libc6-dbg)"
fi
check "images of all kinds are merged" "$WEIR" symbols merge -q -o $catalog "${inputs[@]}"
check "a map joins its image later" "$WEIR" symbols add -q --catalog $catalog mapped.map
check "an image with a note is added" env DEBUGINFOD_URLS=http://127.0.0.1:9/ \
	"$WEIR" symbols add -q --catalog $catalog noted.so

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$ROOT/tests/format python3 - <<'END'
import json
import os
import random
import subprocess
from read_catalog import Bad
from read_catalog_image import Image, images_of, resolve, show

N = 2000  # random addresses, and as many at or beside the start of a range


def first_reader(verb, *options, **more):
    done = subprocess.run([os.environ["WEIR"], "symbols", verb, "--catalog", os.environ["catalog"],
                           "--json", *options], capture_output=True, text=True, **more)
    return json.loads(done.stdout)


def verdict(trouble, sentence):
    print("not ok" if trouble else "ok", sentence)
    if trouble:
        print("%.600s" % (trouble,))


def difference(first, second, where=""):
    """Where the first has not all that the second has; None when it has."""
    if isinstance(second, dict):
        pairs = [(k, first.get(k, "nothing"), v) for k, v in second.items()]
    elif isinstance(second, list) and isinstance(first, list) and len(first) == len(second):
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip(first, second))]
    else:
        return None if first == second else f"{where}: {first!r} / {second!r}"
    found = (difference(a, b, f"{where}.{k}") for k, a, b in pairs)
    return next((d for d in found if d), None)


def renamed(rows):
    """A row whose name for display is not the stored one, though that is not mangled."""
    return next((r for r in rows if r["name"] != r["linkage_name"] and
                 (r["source"] in ("perf map", "jitdump") or r["linkage_name"][:2] != "_Z")), None)


random.seed(7)
try:
    images = images_of(os.environ["catalog"])
except Bad as bad:
    verdict(bad, "the second reader reads every image")
    raise SystemExit(1)
images = {os.path.basename(image.path.decode()): image for image in images.values()}
depth = 0
for name, image in images.items():
    number = "%016x" % image.id
    seen = first_reader("show", "--symbols", number)
    verdict(difference(seen, show(image)), "both readers see the same identity, sources, sections, "
            f"notes and {len(image.symbols)} symbols in {name}")
    verdict(renamed(seen["rows"]), f"only mangled names are shown as others in {name}")
    first, end = image.starts[0], image.starts[-1]
    addresses = [random.randrange(max(first - 9, 0), end + 9) for _ in range(N)]
    addresses += [s + random.choice((-1, 0, 0, 1)) for s in random.choices(image.starts, k=N)]
    seen = first_reader("resolve", "--no-search", "--image", number, "-",
                        input="".join("%x\n" % a for a in addresses))["rows"]
    second = [resolve(image, address) for address in addresses]
    verdict(difference(seen, second), f"both readers see the same at {2 * N} addresses of {name}")
    depth = max(depth, *(len(row["levels"]) for row in second))

every = images.values()
jit = images["perf-99.map"]
kinds = {s[0] for i in every for s in i.sources}
several = {table for i in every for table, t in i.tables.items() if len(t.chunks) > 1}
HAS = {
    "sources of many kinds": kinds >= {"symtab", "dynsym", "plt", "dwarf", "ld map", "nm",
                                       "perf map", "jitdump"},
    "tables of several chunks": several >= {"TEXTS", "SYMBOLS", "SITES", "RANGES"},
    "ranges far apart": any(b - a > 1 << 32 for a, b in zip(jit.starts, jit.starts[1:])),
    "inlines in inlines": depth > 2,
    "symbols with a size, without, and fillers": {s[3] & 48 for i in every for s in i.symbols} ==
    {0, 16, 48},
    "rows without a symbol": any(r[1] is None and r[2] for r in images["nameless"].ranges),
    "symbols of which the later one wins": jit.later_wins,
    "symbols with equal starts": len({s[0] for s in jit.symbols}) < len(jit.symbols),
    "aliases": len(images["stripped.so"].aliases) == 2,
    "a map": "ld map" in {s[0] for s in images["mapped.so"].sources},
    "rows of a jitdump": images["jit-77.dump"].n_rows > 30,
    "a note": len(images["noted.so"].notes) == 1,
    "a content hash": images["nameless"].content_hash != 0,
}
for what, there in HAS.items():
    verdict("" if there else "it is missing", "the compared images have " + what)


def content(image):
    return {k: v for k, v in vars(image).items() if k not in ("data", "tables")}


def unnoticed(image, bits):
    """(offset, bit) of what may change without a change of what is read."""
    for at in range(len(image.data)):
        for bit in random.sample(range(8), bits):
            changed = bytearray(image.data)
            changed[at] ^= 1 << bit
            try:
                if content(Image(bytes(changed))) == content(image):
                    yield at, bit
            except Bad:
                pass


# Not in packed bytes: zstd frames have bits without a meaning.
small = [name for name, i in images.items() if not any(t.n_packed for t in i.tables.values())]
verdict("" if "nameless" in small and "noted.so" in small else small, "small images are not packed")
for name, bits, what in ("nameless", 8, "bit"), ("noted.so", 1, "byte"):
    left = list(unnoticed(images[name], bits))
    verdict(left, f"every {what} of {name} matters to the second reader")
END
