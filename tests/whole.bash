# SPDX-License-Identifier: MIT
# Runs a shell test and says "end" behind its last line, so that one that stops half-way, with whatever
# status, is seen to have done so. A test that has nothing more to say ends with finish (tests/lib.sh).
# The test is sourced: $0 and the arguments are not its own. One that says "weir-test: root: SENTENCE" and
# runs without that is skipped as a whole.
whole_root=$(sed -n 's/^# weir-test: root: //p' "$1")
if [ -n "$whole_root" ] && [ "$(id -u)" -ne 0 ]; then
	printf 'skip %s: needs root\nend\n' "$whole_root"
	exit
fi
# shellcheck source=/dev/null
. "$1"
whole_status=$?
printf '\nend\n'
exit $whole_status
