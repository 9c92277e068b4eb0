# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Programs that forbid themselves system calls (seccomp), with hooks: they work and end as without, and
# the trace says that they were unhooked.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

# recorded SENTENCE: calls up to the filter are in the last trace, and so is what happened.
recorded() {
	"$WEIR" report hooks case.weir --json >hooks.json 2>report.txt
	equal "$1: calls before the filter are counted" "$2" "$(json hooks.json "[r['hits'] for r in j['rows'] if r['function'] == 'inner']")"
	"$WEIR" report loss case.weir >loss.txt 2>report.txt
	equal "$1: and it is said" 1 "$(grep -c 'installs a system call filter' loss.txt)"
}

for m in 64 32; do
	if ! build filter$m filter.c -O2 -m$m; then
		skip "filters of $m-bit programs: gcc -m$m is not installed"
		continue
	fi
	for how in strict filter seccomp; do
		for child in "" child; do
			for options in "--events *" "--tree --events *" "--stack-at inner --events *"; do
				[ "$options" = "--events *" ] || [ $how = strict ] || continue
				name="$m bits, $how $child, $options"
				set -f
				# shellcheck disable=SC2086
				{ ./filter$m $how $child >plain.txt; } 2>/dev/null
				plain=$?
				# shellcheck disable=SC2086
				{ "$WEIR" record -q $options -o case.weir -- ./filter$m $how $child >out.txt 2>err.txt; } 2>/dev/null
				hooked=$?
				equal "$name: the same output and status" "$plain $(cat plain.txt)" "$hooked $(cat out.txt err.txt)"
				set +f
			done
			recorded "$m bits, $how $child" "[$([ "$child" ] && echo 2000 || echo 1000)]"
		done
	done
	{ "$WEIR" record --no-sample --events '*' -o case.weir -- ./filter$m seccomp >out.txt 2>err.txt; } 2>/dev/null
	check "$m bits: weir says at the end that it was unhooked" grep -q 'weir: note: 1 process installed a system call filter: not hooked from then on' err.txt
	# The filter is there before the next program begins: that one is left alone.
	{ "$WEIR" record -q --events '*' -o case.weir -- ./filter$m seccomp exec /bin/echo lives >out.txt 2>err.txt; } 2>/dev/null
	equal "$m bits: a program executed under a filter works" "0 lives" "$? $(cat out.txt err.txt)"
done

# Running under one already: refused before anything is done.
cat >sleeps.c <<'C'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {1, code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	for (;;)
		usleep(1000);
}
C
gcc -w -o sleeps sleeps.c
./sleeps &
target=$!
for ((i = 0; i < 500; i++)); do grep -q 'Seccomp:.2' /proc/$target/status && break; sleep 0.01; done
fails "-p of a process under a filter is refused" 1 "process $target runs under a filter of system calls" \
	"$WEIR" record -q -p $target --events '*' --duration 0.1 -o case.weir
equal "and it is left alone" 0 "$(grep -c libweir /proc/$target/maps)"
kill $target
