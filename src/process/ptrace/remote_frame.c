/* SPDX-License-Identifier: MIT */
/*
 * The stack of a remote call. The called function returns to the stub (remote_call.c), which does
 * rt_sigreturn: the same way by which a thread returns from a signal handler. So the frame that
 * the kernel would have made for a handler is made here, with the registers of the moment at which
 * the thread was interrupted. While we live the stub's system call is caught and the state is put
 * back by ptrace; when we are killed in the middle, or give up waiting, the thread finds its way
 * back alone.
 *
 *   top        the thread's stack, less the red zone
 *              text
 *              vector state, a multiple of 64 (i386: the x87 state in FSAVE form before it)
 *              ucontext (i386: arguments and siginfo before it)
 *   addr       return address = the stub
 *
 * A system call that was interrupted is made anew when the thread returns by itself: rax is its
 * number and the pc that of its instruction. (Its timeout begins anew, too.)
 */
#include "process/ptrace/inject_internal.h"

#include <cpuid.h>
#include <string.h>
#include <ucontext.h>

#define RED_ZONE_BYTES 128
#define SYSCALL_BYTES  2 /* of the instruction: syscall, sysenter, int $0x80 */

/* The vector state: 512 bytes of FXSAVE form, of which the last 48 are free for software, a header
 * of 64 bytes that begins with the bits of what is in use, then the rest by number. */
#define XSTATE_LEGACY_BYTES 512
#define XSTATE_HEADER_BYTES 64
#define XSTATE_SW_OFFSET    464
#define XSTATE_X87_AND_SSE  3u
#define XSTATE_MAGIC1	    0x46505853u
#define XSTATE_MAGIC2	    0x46505845u
#define XSTATE_MXCSR_OFFSET 24
#define MXCSR_AT_START	    0x1f80u
#define X87_CW_AT_START	    0x37fu

/* What begins a ucontext_t, and all of it that rt_sigreturn reads. */
#define UCONTEXT64_BYTES 304
#define UC_FP_XSTATE	 1u
#define UC_SIGCONTEXT_SS 2u
#define UC_STRICT_SS	 4u

/* arch/x86/include/asm/sigframe.h of the kernel: struct rt_sigframe_ia32. */
struct frame32 {
	uint32_t ret;
	uint32_t args[3]; /* a handler's; here the function's */
	uint8_t siginfo[128];
	uint32_t uc_flags, uc_link;
	uint32_t stack[3];
	uint32_t gs, fs, es, ds;
	uint32_t edi, esi, ebp, esp, ebx, edx, ecx, eax;
	uint32_t trapno, err;
	uint32_t eip, cs, eflags, sp_at_signal, ss;
	uint32_t fpstate, oldmask, cr2;
	uint32_t sigmask[2];
};
_Static_assert(sizeof(struct frame32) == 144 + 20 + 88 + 8, "as in the kernel");

static uint64_t xstate_in_use(const struct remote_state *s)
{
	uint64_t bits = 0;

	if (s->n_xstate >= XSTATE_LEGACY_BYTES + sizeof(bits))
		memcpy(&bits, s->xstate + XSTATE_LEGACY_BYTES, sizeof(bits));
	return bits;
}

/* The kernel refuses a state longer than the thread may have (large ones need a permission), so
 * only as much is given as is in use. */
static size_t xstate_bytes_in_use(const struct remote_state *s)
{
	size_t n = XSTATE_LEGACY_BYTES + XSTATE_HEADER_BYTES;
	uint64_t bits = xstate_in_use(s);

	for (unsigned i = 2; i < 63; i++) {
		unsigned bytes = 0, offset = 0, c, d;

		if (!(bits >> i & 1))
			continue;
		__cpuid_count(0xd, i, bytes, offset, c, d);
		if (offset + bytes > n && offset + bytes <= s->n_xstate)
			n = offset + bytes;
	}
	return n;
}

void remote_state_clear_vectors(struct remote_state *s)
{
	const uint16_t cw = X87_CW_AT_START;
	const uint32_t mxcsr = MXCSR_AT_START;

	memset(s->xstate, 0, s->n_xstate);
	memcpy(s->xstate, &cw, sizeof(cw));
	memcpy(s->xstate + XSTATE_MXCSR_OFFSET, &mxcsr, sizeof(mxcsr));
}

/* Writes the state for rt_sigreturn at `to`, which has room for n + 4 bytes. */
static void put_xstate(uint8_t *to, const struct remote_state *s, size_t n)
{
	struct {
		uint32_t magic1, extended_bytes;
		uint64_t in_use;
		uint32_t bytes, padding[7];
	} sw = {
		.magic1 = XSTATE_MAGIC1,
		.extended_bytes = (uint32_t)n + sizeof(uint32_t) + sizeof(s->x87),
		.in_use = xstate_in_use(s) | XSTATE_X87_AND_SSE,
		.bytes = (uint32_t)n,
	};
	const uint32_t magic2 = XSTATE_MAGIC2;

	_Static_assert(sizeof(sw) == XSTATE_LEGACY_BYTES - XSTATE_SW_OFFSET, "fills the gap");
	memcpy(to, s->xstate, n);
	memcpy(to + XSTATE_SW_OFFSET, &sw, sizeof(sw));
	memcpy(to + n, &magic2, sizeof(magic2));
}

static void put_frame64(
	uint8_t *to, const struct remote_state *s, uint64_t ret, uint64_t xstate_addr)
{
	const struct user_regs_struct *r = &s->thread.regs.r64;
	bool again = remote_thread_is_restarting(&s->thread);
	const unsigned long long gregs[NGREG] = {
		[REG_R8] = r->r8,
		[REG_R9] = r->r9,
		[REG_R10] = r->r10,
		[REG_R11] = r->r11,
		[REG_R12] = r->r12,
		[REG_R13] = r->r13,
		[REG_R14] = r->r14,
		[REG_R15] = r->r15,
		[REG_RDI] = r->rdi,
		[REG_RSI] = r->rsi,
		[REG_RBP] = r->rbp,
		[REG_RBX] = r->rbx,
		[REG_RDX] = r->rdx,
		[REG_RAX] = again ? r->orig_rax : r->rax,
		[REG_RCX] = r->rcx,
		[REG_RSP] = r->rsp,
		[REG_RIP] = again ? r->rip - SYSCALL_BYTES : r->rip,
		[REG_EFL] = r->eflags,
		[REG_CSGSFS] = (r->cs & 0xffff) | (r->gs & 0xffff) << 16 | (r->fs & 0xffff) << 32 |
			       (r->ss & 0xffff) << 48,
	};
	ucontext_t uc;

	memset(&uc, 0, sizeof(uc));
	uc.uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_SS;
	memcpy(uc.uc_mcontext.gregs, gregs, sizeof(gregs));
	memcpy(&uc.uc_mcontext.fpregs, &xstate_addr, sizeof(xstate_addr));
	memcpy(&uc.uc_sigmask, &s->signal_mask, sizeof(s->signal_mask));
	memcpy(to, &ret, sizeof(ret));
	memcpy(to + sizeof(ret), &uc, UCONTEXT64_BYTES);
}

static void put_frame32(uint8_t *to, const struct remote_state *s, uint64_t ret, uint64_t x87_addr)
{
	const struct remote_regs32 *r = &s->thread.regs.r32;
	bool again = remote_thread_is_restarting(&s->thread);
	struct frame32 f = {
		.ret = (uint32_t)ret,
		.uc_flags = UC_FP_XSTATE,
		.gs = r->gs & 0xffff,
		.fs = r->fs & 0xffff,
		.es = r->es & 0xffff,
		.ds = r->ds & 0xffff,
		.edi = r->edi,
		.esi = r->esi,
		.ebp = r->ebp,
		.esp = r->esp,
		.ebx = r->ebx,
		.edx = r->edx,
		.ecx = r->ecx,
		.eax = again ? r->orig_eax : r->eax,
		.eip = again ? r->eip - SYSCALL_BYTES : r->eip,
		.cs = r->cs & 0xffff,
		.eflags = r->eflags,
		.sp_at_signal = r->esp,
		.ss = r->ss & 0xffff,
		.fpstate = (uint32_t)x87_addr,
	};

	memcpy(f.sigmask, &s->signal_mask, sizeof(s->signal_mask));
	memcpy(to, &f, sizeof(f));
}

int remote_frame_build(struct remote_frame *frame, const struct remote_state *s, uint64_t top,
	uint64_t ret, const char *text, struct err *err)
{
	bool is_64 = s->thread.is_64;
	size_t text_bytes = text ? strlen(text) + 1 : 0;
	size_t n_xstate = xstate_bytes_in_use(s);
	size_t n_x87 = is_64 ? 0 : sizeof(s->x87);
	size_t fixed = is_64 ? 8 + UCONTEXT64_BYTES : sizeof(struct frame32);
	uint64_t text_addr = (top - RED_ZONE_BYTES - text_bytes) & ~(uint64_t)63;
	uint64_t xstate_addr = (text_addr - n_xstate - sizeof(uint32_t)) & ~(uint64_t)63;
	uint64_t addr = (xstate_addr - n_x87 - fixed) & ~(uint64_t)15;

	/* At a function's entry the stack is a multiple of 16 above the return address. */
	addr -= is_64 ? 8 : 4;
	if (text_addr + text_bytes - addr > sizeof(frame->bytes))
		return err_set(err, ERR_LIMIT, "thread %d: the stack for a call would be too large",
			s->thread.tid);
	memset(frame, 0, sizeof(*frame));
	frame->addr = addr;
	frame->text = text_addr;
	frame->n = (size_t)(text_addr + text_bytes - addr);
	if (text)
		memcpy(frame->bytes + (text_addr - addr), text, text_bytes);
	put_xstate(frame->bytes + (xstate_addr - addr), s, n_xstate);
	if (is_64) {
		put_frame64(frame->bytes, s, ret, xstate_addr);
	} else {
		memcpy(frame->bytes + (xstate_addr - n_x87 - addr), s->x87, n_x87);
		put_frame32(frame->bytes, s, ret, xstate_addr - n_x87);
	}
	return 0;
}
