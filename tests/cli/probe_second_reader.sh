# SPDX-License-Identifier: MIT
# Trace streams: the reader that was written from docs/format/probe-stream.md says the same as weir.
. "$ROOT/tests/lib.sh"
reader() { python3 "$ROOT/tests/format/read_probe_stream.py" "$@"; }

echo 'int target(int a) { return a; } int main(void) { return target(0); }' | gcc -g -x c - -o t64
cat >x.wr <<'WR'
struct item { long n; char *name; };
uprobe:./t64:target /arg0 == 11/ {
	$i = (struct item *)arg0;
	printf("%d %s\n", $i->n, str($i->name));
	@n[comm, bits] = hist(arg0);
	for ($kv : @m) { $k = 0; while ($k < arg1) { $k++; if ($k > $kv.1) { return; } } }
}
interval:s:1 { @m[1] = 2; print(@n, 3); clear(@n); time("%H\n"); @l = lhist(3, 0, 100, 7); self->x = 1; }
syscall:openat:entry { @[ustack] = count(); exit(); }
WR
"$WEIR" probe -o x.wprobe x.wr
equal "a stream is written" 0 $?

# What both tell: maps with the bytes of their values, points with the places of their code.
told() { sed -E 's/^(map [0-9]+: @[a-z]*)(\[.*)? = .*, ([0-9]+ bytes).*/\1 \3/; s/(instructions|functions);? ([0-9]+ bytes of scratch|wants|reads).*/\1/; s/: none:.*/: none/' | grep -E '^(map|point|  (32|64)-bit)'; }
"$WEIR" probe --dump x.wprobe | told >ours.txt
reader x.wprobe >theirs.txt
check "the second reader finds something" [ "$(wc -l <theirs.txt)" -ge 10 ]
equal "both readers tell the same of a stream" "$(cat theirs.txt)" "$(cat ours.txt)"

# Changed copies with right checksums: both accept them or both refuse them. The streams are made here, since the
# format is of one version only.
"$WEIR" probe -o small.wprobe 'uprobe:./t64:target /arg0/ { @bytes[comm] = hist(arg0); printf("%d\n", arg0); }'
n=${WEIR_SLOW:+2000}
n=${n:-60}
mkdir changed
: >theirs.txt
: >ours.txt
for sample in small x; do
	reader --changes $sample.wprobe "$n" changed >>theirs.txt
	for ((i = 0; i < n; i++)); do
		"$WEIR" probe --dump "changed/$i" >/dev/null 2>err.txt
		case $? in 0) echo "$i accepted" ;; 1) echo "$i refused" ;; *) echo "$i $(cat err.txt)" ;; esac
	done >>ours.txt
done
check "some changed streams are accepted and some refused" \
	[ "$(cut -d ' ' -f 2 theirs.txt | sort -u | wc -l)" -eq 2 ]
equal "both readers accept and refuse the same changed streams" "$(cat theirs.txt)" "$(cat ours.txt)"
