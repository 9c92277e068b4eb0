#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two readers of the merged symbol file, one in C and one in Python written from
# docs/format/catalog-file.md, must see the same: in whole files, in files cut anywhere, with flipped
# bits, and with each rule of the directory broken under right check sums.
source "$ROOT/tests/lib.sh"
export driver=$BUILD/tests/oracle/catalog_driver

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
