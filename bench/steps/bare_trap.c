/* SPDX-License-Identifier: MIT */
/*
 * The least that tracing inside a thread can do: the processor's trap flag, and a handler that puts
 * the address of each instruction into a buffer.
 *
 *   bare_trap COUNT
 *
 * Prints "trap NS signal NS", CPU time: of a trap with its handler, and of a signal that the thread
 * sends to itself with a handler as small, which is everything but the trap.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
#define ROOM	  (1UL << 16)

static volatile uint64_t addresses[ROOM];
static volatile unsigned long n_traps, n_wanted;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void save_address(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	(void)info;
	addresses[n_traps % ROOM] = (uint64_t)regs[REG_RIP];
	n_traps = n_traps + 1;
	if (n_traps >= n_wanted)
		regs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = save_address, .sa_flags = SA_SIGINFO};
	pid_t pid = getpid(), tid = gettid();
	uint64_t start, trap_ns;

	n_wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	if (!n_wanted || sigaction(SIGTRAP, &action, NULL) < 0 ||
		sigaction(SIGUSR1, &action, NULL) < 0)
		return 2;
	start = now();
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
	while (n_traps < n_wanted)
		;
	trap_ns = now() - start;
	start = now();
	for (unsigned long i = 0; i < n_wanted; i++)
		syscall(SYS_tgkill, pid, tid, SIGUSR1);
	printf("trap %lu signal %lu\n", trap_ns / n_wanted, (now() - start) / n_wanted);
	return 0;
}
