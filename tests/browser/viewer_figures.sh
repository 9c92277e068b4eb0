# SPDX-License-Identifier: MIT
# Figures of the page's two engines for random traces and random questions; WEIR_SEED repeats a run.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/browser.sh"
need_packages "figures of the page"

timeout 300 node "$ROOT/tests/browser/figures.mjs" "${WEIR_SEED:-$RANDOM}" || not_ok "the test ends well: status $?"
