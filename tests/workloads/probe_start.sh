# SPDX-License-Identifier: MIT
# weir-test: root: weir probe says when it is ready, and ends its lines
# Whoever starts a program when "Attached" is there finds it traced; what begin { } sets is there by then.
. "$ROOT/tests/lib.sh"

echo 'int target(int a) { return a; } int main(void) { return target(0); }' | gcc -g -x c - -o target
cat >ready.py <<'E'
import subprocess, sys

missed = 0
for _ in range(int(sys.argv[2])):
    weir = subprocess.Popen([sys.argv[1], "probe", 'begin { @first = 1; } uprobe:./target:target { @n[@first] = count(); }'],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in weir.stderr:
        if line.startswith(b"Attached"):
            break
    subprocess.run(["./target"], check=True)
    weir.send_signal(2)
    missed += b"@n[1]: 1\n" not in weir.communicate(timeout=30)[0]
print(missed)
E
n=${WEIR_SLOW:+300}
equal "no program is missed that is started when it says Attached" 0 "$(timeout 300 python3 ready.py "$WEIR" "${n:-60}")"

# --- what begin{} prints is behind the line, whichever of them has a newline --------------------------------------
timeout 120 "$WEIR" probe 'begin { printf("begins"); errorf("told"); } end { printf("-ends\n"); }' >both.txt 2>&1
equal "the line comes before what begin{} prints" "Attached 2 probes
begins-ends" "$(grep -v '^-e' both.txt)"
timeout 120 "$WEIR" probe -f json 'begin { print(7); }' 2>/dev/null >both.txt
equal "in JSON, too" "attached_probes value" "$(sed 's/{"type": "\([a-z_]*\)".*/\1/' both.txt | tr '\n' ' ' | sed 's/ $//')"
equal "but not with -q" '{"type": "value", "data": 7}' "$(timeout 120 "$WEIR" probe -q -f json 'begin { print(7); }' 2>&1)"

"$WEIR" probe -q 'begin { printf("no end"); @x = 7; }' >end.txt
equal "maps at the end begin lines of their own" "$(printf 'no end\n@x: 7')" "$(head -n 2 end.txt)"
"$WEIR" probe -q 'begin { printf("an end\n"); @x = 7; }' >end.txt
equal "and no empty ones" "$(printf 'an end\n@x: 7')" "$(head -n 2 end.txt)"
finish
