# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Recorder, program or both are killed at random moments, over all methods: kill_all.py says what must hold.
. "$ROOT/tests/lib.sh"
n=60
[ -z "${WEIR_SLOW:-}" ] || n=1000
python3 "$ROOT/tests/fault/kill_all.py" $n
