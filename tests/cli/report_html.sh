# SPDX-License-Identifier: MIT
# The page as one file: the trace in it says what its original lacks, in the same words, and what cannot be made into a
# page is refused.
. "$ROOT/tests/lib.sh"

python3 - >events.txt <<'P'
import random
names = ["f%064x" % random.getrandbits(256) for _ in range(300)] # which do not pack well
time = 0
for i in range(9000):
    print(time, "enter main"); time += 1
    print(time, "enter", names[i % 300]); time += random.randrange(999)
    print(time, "leave", names[i % 300]); time += random.randrange(999)
    print(time, "leave main"); time += 1
P
"$WEIR" import events events.txt -o whole.weir >/dev/null 2>&1 || not_ok "the events are imported"
cat >trace_of.py <<'P'
# trace_of.py PAGE ID: the trace within a page.
import base64, gzip, re, sys
page = open(sys.argv[1]).read()
text = re.search(r'<script type="application/gzip" id="%s">([^<]*)</script>' % sys.argv[2], page).group(1)
sys.stdout.buffer.write(gzip.decompress(base64.b64decode(text)))
P
same_reports() { # NAME: of NAME.weir, and of the trace in its page
	local kind
	python3 trace_of.py "$1.html" weir-trace >"within-$1.weir" || not_ok "$1: there is a trace in the page"
	for kind in flat tree loss; do
		"$WEIR" report $kind "$1.weir" --json 2>/dev/null | sed 's/"trace": "[^"]*"/"trace": 0/' >expected
		"$WEIR" report $kind "within-$1.weir" --json 2>/dev/null | sed 's/"trace": "[^"]*"/"trace": 0/' >actual
		check "$1: $kind of the trace in the page is that of the trace" cmp expected actual
	done
}

"$WEIR" report --html whole.html whole.weir
check "a whole trace becomes a page with status 0" [ $? = 0 ]
same_reports whole

size=$(stat -c %s whole.weir)
head -c $((size * 6 / 10)) whole.weir >cut.weir
"$WEIR" report --html cut.html cut.weir 2>cut.err
check "without its end: status 3" [ $? = 3 ]
check "and a sentence" grep -q "^weir: 'cut.weir': its end is missing" cut.err
same_reports cut
check "the loss of the page says that a part is missing" [ "$(json expected 'j["loss"]["cut"]')" = True ]

damage() { # POSITION FILE: whole.weir with another byte there
	python3 - "$1" "$2" <<'P'
import sys
b = bytearray(open("whole.weir", "rb").read())
b[int(sys.argv[1])] ^= 0x55
open(sys.argv[2], "wb").write(b)
P
}
find_damage() { # KIND FILE: a byte in a chunk of that kind
	local at
	for at in $(seq $((size / 60)) $((size / 60)) $((size - 1))); do
		damage "$at" "$2"
		! "$WEIR" report loss "$2" 2>/dev/null | grep -q "$1 chunk" || return 0
	done
	not_ok "there is a chunk of $1"
}
find_damage RECORDS hurt.weir
"$WEIR" report --html hurt.html hurt.weir 2>hurt.err
check "with damaged records: status 3" [ $? = 3 ]
same_reports hurt

# A definition that is damaged: what stands in for it may be there twice, and ids would be those of others.
find_damage STRINGS names.weir
fails "with damaged definitions it is refused with the reason" 1 "^weir: 'names.weir': its definitions are damaged.*STRINGS chunk" \
	"$WEIR" report --html names.html names.weir
check "and leaves no page behind" [ ! -e names.html ]
"$WEIR" report --html - whole.weir >piped.html
check "'-' is standard output: status 0" [ $? = 0 ]
check "and the same page" cmp whole.html piped.html
cp whole.weir kept.weir
fails "a page is not written over its own trace" 1 "^weir: 'kept.weir': is the file that is read" \
	"$WEIR" report --html kept.weir kept.weir
fails "nor over the older one of two" 1 "'kept.weir': is the file that is read" "$WEIR" report --html kept.weir kept.weir whole.weir
ln -s kept.weir link.weir
fails "nor by a link to it" 1 "'link.weir': is the file that is read" "$WEIR" report --html link.weir kept.weir
fails "nor is an export" 1 "'kept.weir': is the file that is read" "$WEIR" export folded kept.weir -o kept.weir
check "the trace is as it was" cmp whole.weir kept.weir
"$WEIR" report --html none.html nothing.weir 2>/dev/null
check "no such trace: status 1" [ $? = 1 ]
check "and no page" [ ! -e none.html ]
mkdir folder
"$WEIR" report --html folder whole.weir 2>folder.err
check "a page that cannot be written: status 1" [ $? = 1 ]
