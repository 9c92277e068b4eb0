/* SPDX-License-Identifier: MIT */
/* The numbers of the process and the thread that run: those by which weir itself finds them in /proc. */
#include <sys/stat.h>

#include "probe/compile/lower.h"

#define INIT_NAMESPACE 0xeffffffcu /* inode of the first namespace of processes, in all kernels */
#define NAMESPACE_PATH "/proc/self/ns/pid"

/* Whether numbers of processes are others for us than for the kernel. */
static bool is_in_namespace(struct stat *st)
{
	return !stat(NAMESPACE_PATH, st) && st->st_ino != INIT_NAMESPACE;
}

ir_value lower_kernel_task_number(struct lower *l, enum task_number which)
{
	ir_value both = ir_call(&l->ir, BPF_FUNC_get_current_pid_tgid, NULL, 0);

	return which == TASK_PROCESS ? ir_alu_imm(&l->ir, BPF_RSH, both, 32)
				     : ir_extend(&l->ir, both, 4, false);
}

/* struct bpf_pidns_info { u32 thread, process } */
ir_value lower_task_number(struct lower *l, enum task_number which, ir_value *rc)
{
	struct stat st;
	ir_mem pair;
	ir_value failed;

	if (!is_in_namespace(&st)) {
		if (rc)
			*rc = 0;
		return lower_kernel_task_number(l, which);
	}
	pair = ir_new_memory(&l->ir, 8);
	ir_zero(&l->ir, pair, 0, 8);
	failed = IR_CALL_(&l->ir, BPF_FUNC_get_ns_current_pid_tgid, IR_I(st.st_dev),
		IR_I(st.st_ino), IR_M(pair, 0), IR_I(8));
	if (rc)
		*rc = failed;
	return ir_load(&l->ir, pair, which == TASK_PROCESS ? 4 : 0, 4, false);
}
