# SPDX-License-Identifier: MIT
# A timer's handler that forks, at any moment of a hook: the child goes on from there, calls hooked
# functions and ends as it would without weir.
. "$ROOT/tests/lib.sh"

cat >forks.c <<'C'
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t is_child, n_forks, n_bad;
static volatile unsigned sink;

__attribute__((noipa)) static unsigned called(unsigned n) { return n * 12345 + 77777; }

/* Once, so that the program goes on between two of them. */
static void arm(void)
{
	struct itimerval once = {{0, 0}, {0, 200 + n_forks}};

	setitimer(ITIMER_REAL, &once, NULL);
}

static void on_tick(int number)
{
	int status;
	pid_t pid = fork();

	(void)number;
	if (!pid) {
		is_child = 1;
		return;
	}
	n_forks++;
	if (waitpid(pid, &status, 0) != pid || status)
		n_bad++;
	arm();
}

int main(void)
{
	struct sigaction a = {.sa_handler = on_tick};

	sigaction(SIGALRM, &a, NULL);
	arm();
	while (n_forks < 150 && !is_child)
		sink += called(sink);
	if (is_child) {
		for (int i = 0; i < 20; i++)
			sink += called(sink);
		_exit(0);
	}
	printf("%d forks, %d bad\n", (int)n_forks, (int)n_bad);
	return n_bad != 0;
}
C
for bits in 64 32; do
	gcc -g -O2 "-m$bits" -o "forks$bits" forks.c 2>build.txt || { skip "$bits bits: $(head -n 1 build.txt)" && continue; }
	for mode in --tree ''; do
		timeout 60 "$WEIR" record -q $mode --events called -o t.weir -- "./forks$bits" >out.txt 2>&1
		if grep -qE '^15[0-9] forks, 0 bad$' out.txt; then
			ok "$bits bits $mode: children that are forked inside a hook live"
		else
			not_ok "$bits bits $mode: children that are forked inside a hook live: $(tail -n 1 out.txt)"
		fi
	done
done
