/* SPDX-License-Identifier: MIT */
/*
 * Forbids itself system calls, works, and ends. SECCOMP_HOW: 1 strict; 2 a filter that kills; 3 a
 * filter that answers EPERM. Permitted are those that the program makes.
 */
#define FUNCTIONS(X) X(h_leaf) X(h_work)
#include "hazard.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_work(long n)
{
	CALLED(h_work);
	return h_leaf(n) + h_leaf(n + 1);
}

static int forbid(void)
{
#define PERMIT(nr)                                                                                 \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		PERMIT(__NR_read),
		PERMIT(__NR_write),
		PERMIT(__NR_exit),
		PERMIT(__NR_exit_group),
		PERMIT(__NR_rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K,
			SECCOMP_HOW == 2 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | 1),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	if (SECCOMP_HOW == 1)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static unsigned long hazard(int n)
{
	unsigned long sum = (unsigned long)h_work(1);

	if (forbid())
		return 1;
	for (int i = 0; i < n * 10; i++)
		sum += (unsigned long)h_work(i);
	result_print(sum);
	calls_print();
	syscall(__NR_exit, 9); /* exit_group is not permitted in strict mode */
	return 0;
}
