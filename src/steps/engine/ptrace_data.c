/* SPDX-License-Identifier: MIT */
#include "arch/x86_memory.h"
#include "process/proc.h"
#include "steps/engine/ptrace_engine.h"

static void take_registers(struct x86_registers *to, const struct user_regs_struct *r)
{
	*to = (struct x86_registers){
		.general = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi, r->r8,
			r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15},
		.fs_base = r->fs_base,
		.gs_base = r->gs_base};
}

void tracee_record_data(struct ptrace_engine *e, struct tracee *t, uint64_t addr,
	const uint8_t *bytes, size_t n, const struct user_regs_struct *before)
{
	struct x86_access accesses[X86_ACCESSES_MAX];
	struct x86_registers registers;
	size_t n_accesses;

	take_registers(&registers, before);
	n_accesses = x86_accesses(accesses, (struct span){bytes, n}, addr, t->is_64, &registers);
	for (size_t i = 0; i < n_accesses; i++) {
		const struct x86_access *a = &accesses[i];
		size_t wanted = a->bytes < STEP_DATA_BYTES_MAX ? a->bytes : STEP_DATA_BYTES_MAX;
		uint8_t value[STEP_DATA_BYTES_MAX];
		bool has_value = proc_read_memory(t->pid, a->addr, value, wanted);

		step_session_datum(e->s, t->track, a->addr,
			(a->is_read ? STEP_DATA_READ : 0u) | (a->is_written ? STEP_DATA_WRITE : 0u),
			value, wanted, has_value);
	}
}
