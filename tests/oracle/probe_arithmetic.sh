# SPDX-License-Identifier: MIT
# weir-test: root: arithmetic of the probe language
# Integer expressions of the probe language against Python: computed by the kernel over maps and locals, and
# folded by the compiler.
. "$ROOT/tests/lib.sh"
python3 "$ROOT/tests/oracle/probe_arithmetic.py" make 200 "${SEED:-7}" random.wr expected.txt
timeout 30 "$WEIR" probe -q -i random.wr >actual.txt 2>err.txt
equal "the script runs without complaint" "0 " "$? $(grep -v '^ \|warning' err.txt | head -n 5)"
python3 "$ROOT/tests/oracle/probe_arithmetic.py" compare expected.txt actual.txt
