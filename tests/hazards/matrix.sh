# SPDX-License-Identifier: MIT
# weir-test: whole: cells have a time limit, by which livelocks are found, and several run at a time
# weir-test: slow: a quarter of the matrix takes minutes, all of it, ten times, hours
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Every hazard under every method (run says how to repeat a cell): a random quarter, and all that ever failed; with
# WEIR_SLOW all, ten times.
. "$ROOT/tests/lib.sh"
if [ -n "${WEIR_SLOW:-}" ]; then
	"$ROOT/tests/hazards/run" --all --times 10
else
	"$ROOT/tests/hazards/run" --quarter
fi
