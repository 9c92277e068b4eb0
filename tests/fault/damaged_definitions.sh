# SPDX-License-Identifier: MIT
# A trace in which one chunk of definitions is damaged: reports go on with what is left, say what is
# missing and end with status 3.
. "$ROOT/tests/lib.sh"

cat >events.txt <<'END'
10 enter outer
20 enter inner
30 leave inner
35 sample outer inner
40 leave outer
END
"$WEIR" import events events.txt -o whole.weir || exit 1

# One file for each chunk that is neither RECORDS, INDEX nor FUNCTIONS: its last byte is another one.
python3 - >types.txt <<'PY'
import struct
whole = open("whole.weir", "rb").read()
at = 16
while whole[at:at + 4] == b"wCHK":
    kind, flags, stream, stored = struct.unpack_from("<HHII", whole, at + 4)
    if kind not in (11, 12, 15):
        b = bytearray(whole)
        b[at + 48 + stored - 1] ^= 0x55
        open("bad.%d.weir" % at, "wb").write(b)
        print(at, kind)
    at += 48 + stored
PY
check "there are chunks of several tables" test "$(cut -d' ' -f 2 types.txt | sort -u | wc -l)" -ge 6
while read -r at kind; do
	for report in summary flat tree arcs threads loss; do
		"$WEIR" report $report bad.$at.weir >out.txt 2>err.txt
		rc=$?
		[ $rc -eq 3 ] || break
	done
	equal "type $kind: every report is made, with status 3 ($report)" 3 $rc
	check "type $kind: the loss names the chunk" grep -q "chunk at offset $at: its check sum is wrong" out.txt
	"$WEIR" export folded bad.$at.weir >folded.txt 2>err.txt
	equal "type $kind: an export, too" 3 $?
done <types.txt
