/* SPDX-License-Identifier: MIT */
/*
 * System calls. Most are made as they are; those that the translator has a part in are here, or in tasks.c
 * (threads and processes), signals.c and frames.c.
 */
#include "translate.h"

#define ARCH_SET_GS_ 0x1001
#define ARCH_GET_GS_ 0x1004
#define ARCH_SHSTK_LOW 0x5001
#define ARCH_SHSTK_HIGH 0x5005
#define PR_SET_SECCOMP_ 22
#define PTRACE_TRACEME_ 0
#define SECCOMP_SET_MODE_FILTER_ 1

bool is_confined, has_rseq;

static bool is_failure(int64_t result)
{
	return result < 0 && result >= -4095;
}

/* The call of the registers, as it is. */
static bool make(struct thread *t)
{
	for (;;) {
		uint64_t number = t->a.regs[RAX];

		(void)number;
		if (!translate_safe_call(t, t->a.regs))
			return false;
		/* The kernel does not write to pages that are watched. */
		if (t->result != -EFAULT || is_confined || !regions_unwatch())
			return true;
	}
}

/* Memory has changed: what was translated of it is of the past. */
static bool make_memory(struct thread *t)
{
	const uint64_t *r = t->a.regs;
	uint64_t number = r[RAX], start = r[RDI], bytes = r[RSI];

	if (!make(t))
		return false;
	if (is_failure(t->result))
		return true;
	if (number == SYS_mremap) {
		regions_changed(start, PAGE_UP(start + bytes));
		start = (uint64_t)t->result;
		bytes = r[RDX];
	} else if (number == SYS_mmap || number == SYS_shmat) {
		start = (uint64_t)t->result;
	}
	if (number == SYS_shmat || number == SYS_shmdt) {
		start = PAGE_DOWN(number == SYS_shmat ? (uint64_t)t->result : start);
		bytes = PAGE_BYTES;
	}
	regions_changed(PAGE_DOWN(start), PAGE_UP(start + bytes));
	return true;
}

/* Writes to code that no permission of its page has a say in: by the file of the process's memory. */
static bool has_memory_file;

static bool is_memory_file(uint64_t path)
{
	static const char begin[] = "/proc/", end[] = "/mem";
	char c, last[sizeof(end) - 1] = {0};
	uint32_t n = 0;

	for (; translate_copy(&c, (const void *)(path + n), 1) && c; n++) {
		if (n < sizeof(begin) - 1 && c != begin[n])
			return false;
		for (uint32_t i = 0; i + 1 < sizeof(last); i++)
			last[i] = last[i + 1];
		last[sizeof(last) - 1] = c;
	}
	for (uint32_t i = 0; i < sizeof(last); i++)
		if (last[i] != end[i])
			return false;
	return true;
}

static bool make_open(struct thread *t)
{
	uint64_t path = t->a.regs[RAX] == SYS_open ? t->a.regs[RDI] : t->a.regs[RSI];

	has_memory_file |= is_memory_file(path);
	return make(t);
}

static bool make_write(struct thread *t)
{
	const uint64_t *r = t->a.regs;

	if (!make(t))
		return false;
	if (!has_memory_file && r[RAX] != SYS_process_vm_writev)
		return true;
	cache_lock();
	if (r[RAX] == SYS_pwrite64)
		cache_forget(r[R10], r[R10] + r[RDX]);
	else
		cache_forget_all();
	cache_unlock();
	return true;
}

static bool make_arch(struct thread *t)
{
	const uint64_t *r = t->a.regs;

	if (r[RDI] == ARCH_SET_GS_) {
		t->a.program_gs = r[RSI];
		t->result = 0;
	} else if (r[RDI] == ARCH_GET_GS_) {
		t->result = translate_copy((void *)r[RSI], &t->a.program_gs, 8) ? 0 : -EFAULT;
	} else if (r[RDI] >= ARCH_SHSTK_LOW && r[RDI] <= ARCH_SHSTK_HIGH) {
		t->result = -EOPNOTSUPP; /* as where there is no shadow stack: returns are jumps here */
	} else {
		return make(t);
	}
	return true;
}

/* The program makes the call natively; here it is made only when nobody was there to let it go. */
static bool leave_and_make(struct thread *t, enum translate_why why)
{
	t->a.pc -= 2;
	translate_leave(t, why);
	t->a.pc += 2;
	return make(t);
}

static bool make_ptrace(struct thread *t)
{
	return t->a.regs[RDI] == PTRACE_TRACEME_ ? leave_and_make(t, TRANSLATE_WHY_TRACED) : make(t);
}

/* A filter may end the program for a call that the translator makes. */
static bool make_confined(struct thread *t)
{
	bool is_question = t->a.regs[RAX] == SYS_seccomp && t->a.regs[RDI] > SECCOMP_SET_MODE_FILTER_;

	if (is_question)
		return make(t);
	is_confined = true;
	if (header.options & TRANSLATE_OPTION_STEPS)
		return make(t); /* with as few calls of ours as can be */
	return leave_and_make(t, TRANSLATE_WHY_CONFINED);
}

/* What comes from here on waits for the mask of what was interrupted. */
static bool make_sigreturn(struct thread *t)
{
	uint64_t mask;

	if (!signals_hold(t, &mask))
		return false;
	frame_pop(t);
	signals_release(mask);
	t->result = -EFAULT;
	return true;
}

static bool make_one(struct thread *t)
{
	const uint64_t *r = t->a.regs;

	switch (r[RAX]) {
	case SYS_rt_sigaction:
		t->result = signals_action(t, (long)r[RDI], r[RSI], r[RDX], r[R10]);
		return true;
	case SYS_rt_sigprocmask:
		return signals_mask(t);
	case SYS_sigaltstack:
		t->result = signals_stack(t, r[RDI], r[RSI]);
		return true;
	case SYS_rt_sigreturn:
		return make_sigreturn(t);
	case SYS_rseq:
		if (has_rseq) /* libc ends a program that had it, and has not any more */
			return make(t);
		t->result = -ENOSYS; /* code that is to be aborted would have to be at its own address */
		return true;
	case SYS_arch_prctl:
		return make_arch(t);
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_mremap:
	case SYS_shmat:
	case SYS_shmdt:
		return make_memory(t);
	case SYS_seccomp:
		return make_confined(t);
	case SYS_prctl:
		return r[RDI] == PR_SET_SECCOMP_ ? make_confined(t) : make(t);
	case SYS_ptrace:
		return make_ptrace(t);
	case SYS_open:
	case SYS_openat:
	case SYS_openat2:
		return make_open(t);
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_process_vm_writev:
		return make_write(t);
	default:
		return make(t);
	}
}

void call_put(struct thread *t, uint64_t number, int64_t result, bool ends)
{
	const uint32_t words[5] = {(uint32_t)number, (uint32_t)(number >> 32), (uint32_t)result,
		(uint32_t)((uint64_t)result >> 32), ends};

	words_put(t, TRANSLATE_WORD_CALL, words, 5);
}

static bool changes_maps(uint64_t number)
{
	return number == SYS_mmap || number == SYS_munmap || number == SYS_mprotect || number == SYS_mremap ||
	       number == SYS_pkey_mprotect || number == SYS_shmat || number == SYS_shmdt || number == SYS_brk || number == SYS_remap_file_pages;
}

bool calls_make(struct thread *t)
{
	uint64_t number = t->a.regs[RAX];
	int64_t result = 0;

	if (t->pending)
		return false;
	if (number == SYS_exit || number == SYS_exit_group)
		call_put(t, number, 0, true);
	switch (task_call(t, &result)) {
	case TASK_INTERRUPTED:
		return false;
	case TASK_MADE:
		t->result = result;
		break;
	case TASK_NOT_ONE:
		if (!make_one(t))
			return false;
		break;
	}
	call_put(t, number, t->result, false);
	if ((header.options & TRANSLATE_OPTION_STEPS) && changes_maps(number))
		translate_service(TRANSLATE_MAPS, t, 0);
	t->a.outcome = 0;
	t->a.regs[RAX] = (uint64_t)t->result;
	t->a.regs[RCX] = t->a.pc;
	t->a.regs[R11] = t->a.flags;
	return true;
}
