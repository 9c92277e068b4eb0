# SPDX-License-Identifier: MIT
# Traces that are cut, or have a wrong bit, and files that are no traces: a report, or one sentence.
# weir-test: once: fuzz targets take the same reader through the sanitizers
. "$ROOT/tests/lib.sh"
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
"$WEIR" record -q -o whole.weir -- ./split recursion >/dev/null
python3 - <<'PY'
import random
whole = open("whole.weir", "rb").read()
for i in range(1, 61):
    open(f"cut{i}.weir", "wb").write(whole[:len(whole) * i // 61])
for i in range(1, 101):
    b = bytearray(whole)
    random.seed(i)
    b[random.randrange(len(b))] ^= 1 << random.randrange(8)
    open(f"flip{i}.weir", "wb").write(b)
PY

# reported FILES...: those of which there is neither a report nor one sentence
reported() {
	local file rc
	for file; do
		"$WEIR" report flat "$file" >out.txt 2>err.txt
		rc=$?
		case $rc in
		0 | 3) ;;
		1) [ "$(wc -l <err.txt)" = 1 ] || echo "$file: no sentence" ;;
		*) echo "$file: status $rc" ;;
		esac
	done
}
equal "60 truncated traces: a report or one sentence each" "" "$(reported cut*.weir)"
equal "100 bit flips: a report or one sentence each" "" "$(reported flip*.weir)"
fails "an empty file" 1 "'empty.weir'" sh -c ': >empty.weir; "$WEIR" report empty.weir'
fails "a foreign file" 1 "'/bin/true': is not a weir trace" "$WEIR" report /bin/true
fails "a file that is not there" 1 "'absent.weir': cannot open: No such file" "$WEIR" report absent.weir
fails "a folder" 1 "'.': is a directory" "$WEIR" report flat .
