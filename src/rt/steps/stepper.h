/* SPDX-License-Identifier: MIT */
/*
 * The library that steps a program from inside (libweirsteps.so): what its files share. It runs as
 * the handler of SIGTRAP and of every signal that the program handles, with all signals blocked, on
 * a stack of its own, with the trap flag clear: nothing of it is in the trace, and nothing of the
 * program runs on top of it.
 *
 *   trap      records the instruction that was executed, looks at the next one  (step_trap.c)
 *   syscall   done here, or made in the thread's stub                           (step_call.c)
 *   signal    a frame like the kernel's is built where the program wants it     (step_signal.c)
 *   threads   states, slots, forks, leaving                                     (step_thread.c)
 *   ring      records, and waiting for the recorder                             (step_ring.c)
 *
 * No libc, no relocations, no writable data of its own: memory is found from the library's address.
 */
#ifndef WEIR_RT_STEPS_STEPPER_H
#define WEIR_RT_STEPS_STEPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../raw_call.h"
#include "steps_abi.h"

#define FLAG_TRAP    0x100ull
#define PAGE_BYTES   4096ull
#define SIG_MAX	     64
#define SIG_TRAP     5
#define SIG_TRAP_BIT (1ull << (SIG_TRAP - 1))
#define STUB_BYTES   16u
#define STUB_32	     8u /* offset of the part with int $0x80 */
#define STUB_BEHIND  2u /* offset behind the call */
#define STUB_END     3u /* and where its trap comes */
#define INSN_BYTES   15u
/* Ours has it always: rt_sigreturn gives the thread its own signal stack back only when it is not
 * made from the stack that is to be replaced. */
#define SS_AUTODISARM_ 0x80000000u

#define ERRNO_ESRCH  3
#define ERRNO_EFAULT 14
#define ERRNO_EINVAL 22
#define ERRNO_EPERM  1
#define ERRNO_ENOMEM 12

/* The kernel's: arch/x86/include/uapi/asm/sigcontext.h, ucontext.h. */
struct regs64 {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
	uint64_t flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
};
struct signal_stack {
	uint64_t sp;
	uint32_t flags, pad;
	uint64_t bytes;
};
struct context {
	uint64_t flags, link;
	struct signal_stack stack;
	struct regs64 r;
	uint64_t mask;
};
struct signal_info {
	int32_t number, error, code, pad;
	uint64_t addr;	/* of faults; or pid and uid */
	uint64_t value; /* of queued signals */
	uint64_t rest[12];
};
_Static_assert(sizeof(struct context) == 304 && sizeof(struct signal_info) == 128, "kernel layout");

/* A process: threads share one; a vfork child has its own in the same memory. */
struct process {
	uint32_t pid;	    /* 0 = not in use */
	uint32_t n_threads; /* that are traced, or about to be */
	uint32_t has_begun; /* its signal actions are known and ours are in place */
	uint32_t is_restored;
	uint32_t is_unfollowed;			  /* its children run untraced */
	struct steps_action actions[SIG_MAX + 1]; /* what the program thinks they are */
};

/* A system call that is being made in the stub. */
struct call {
	bool is_on;
	bool has_mask; /* it waits with a signal mask of its own: */
	uint64_t mask;
	uint64_t number;  /* as the program has it */
	uint64_t meaning; /* the number of the same call in the 64-bit table, if it matters to us */
	uint64_t ret;	  /* address behind the program's instruction */
	uint64_t rdi;	  /* the program's, if it was replaced */
	bool has_rdi;
	bool clears_actions; /* CLONE_CLEAR_SIGHAND, taken out */
	uint64_t clone_flags;
	bool is_32;	 /* by int $0x80 */
	uint64_t at;	 /* address of the instruction in the stub */
	uint32_t child;	 /* state of the thread to be; 0 = none (0 is never a child's) */
	uint32_t by_tid; /* who makes it */
	bool changes_maps;
};

#define N_VFORKS 4
#define N_PAGES	 16

struct suspended { /* of a parent while its vfork child uses its state */
	struct steps_slot *slot;
	struct process *process;
	struct call call;
	uint32_t tid;
	uint64_t saved;
	bool is_trap_blocked;
};

struct state {
	struct steps_state_head head;
	uint32_t index;
	struct signal_info pending_trap; /* if there is one */
	struct process *process;
	struct steps_slot *slot; /* NULL: records go nowhere */
	struct steps_record *ring;
	uint64_t n_lost;
	uint32_t n_syncs;
	struct call call;
	uint64_t pages[N_PAGES]; /* that can be read, by number */
	uint32_t pages_generation;
	uint64_t blind_page; /* that nobody can read, by its number + 1; of that generation */
	uint32_t n_vforks;
	struct suspended vforks[N_VFORKS];
	uint32_t n_until_look;
	uint32_t heartbeat;
	uint64_t heartbeat_ns;
	uint8_t clone_args[256];
};

#define N_PROCESSES 64

/* All that one address space has; copied by fork. */
struct memory {
	struct steps_config config;
	uint32_t lock;		 /* spin; for the owners and `processes` */
	uint32_t map_generation; /* moves when pages may have gone */
	uint32_t is_dead;	 /* the recorder is gone, or we gave up: everybody leaves */
	struct process processes[N_PROCESSES];
};
_Static_assert(sizeof(struct memory) <= STEPS_PRIVATE_BYTES, "fits");

/* Hidden: reached without a table that somebody would have to relocate. */
#pragma GCC visibility push(hidden)
extern const uint8_t steps_image[] __asm__("__ehdr_start");
extern const uint8_t steps_stubs[];
extern const uint8_t steps_restorer[];
extern const uint8_t weir_steps_entry[];
#pragma GCC visibility pop

static inline struct memory *memory(void)
{
	return (struct memory *)(uintptr_t)(steps_image + STEPS_PRIVATE_AT);
}

static inline struct steps_area *area(void)
{
	return (struct steps_area *)(uintptr_t)(steps_image + STEPS_AREA_AT);
}

static inline struct state *state_at(uint32_t i)
{
	return (struct state *)(uintptr_t)(steps_image + STEPS_STATES_AT +
					   (size_t)i * STEPS_STATE_BYTES);
}

static inline uint64_t stub_of(uint32_t i)
{
	return (uint64_t)(uintptr_t)steps_stubs + (uint64_t)i * STUB_BYTES;
}

static inline bool is_off(void)
{
	return __atomic_load_n(&area()->is_off, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&memory()->config.is_over, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&memory()->is_dead, __ATOMIC_RELAXED);
}

static inline void copy_bytes(void *to, const void *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static inline void clear_bytes(void *to, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
}

static inline void lock_memory(void)
{
	while (__atomic_exchange_n(&memory()->lock, 1, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
}

static inline void unlock_memory(void)
{
	__atomic_store_n(&memory()->lock, 0, __ATOMIC_RELEASE);
}

/* --- step_ring.c ---------------------------------------------------------------------------- */

void ring_step(struct state *t, uint64_t addr, const uint8_t *bytes, size_t n);
void ring_write(
	struct state *t, enum steps_record_kind kind, uint64_t addr, uint32_t a, uint32_t b);
/* Writes a SYNC record (enum steps_sync and its flags) and waits until it is answered; false when
 * nobody will. */
bool ring_sync(struct state *t, uint32_t what, uint64_t addr);
/* Now and then: does the recorder live? */
void ring_look_around(struct state *t);

/* --- step_trap.c ---------------------------------------------------------------------------- */

/* The instruction at `addr` was executed. */
void trap_record(struct state *t, uint64_t addr);
/* Reads memory of the program without ever faulting; returns how much could be read. */
size_t peek(struct state *t, uint64_t addr, uint8_t *to, size_t n);
/* The same for the instruction there, as it is executed: where a uprobe of another observer is on
 * it, what the file has. */
size_t peek_code(struct state *t, uint64_t addr, uint8_t *to, size_t n);
/* Data of the program, for system calls that we do ourselves. */
bool data_read(struct state *t, uint64_t addr, void *to, size_t n);
bool data_write(struct state *t, uint64_t addr, const void *from, size_t n);

/* --- step_call.c ---------------------------------------------------------------------------- */

/* The next instruction is a system call, `length` bytes long. True when it was done here (the
 * context is then behind it), false when it is made in the stub. */
bool call_begin(struct state *t, struct context *c, unsigned length, bool is_32);
/* The call came back into the stub. */
void call_end(struct state *t, struct context *c);
/* A signal comes at the stub's first instruction: the call was not made, or is to be made again. */
void call_take_back(struct state *t, struct context *c);

/* --- step_signal.c -------------------------------------------------------------------------- */

/* Learns the program's actions and puts ours in place; once in a process. */
void signals_begin(struct state *t);
void signals_restore(struct process *p);
/* Gives the program a signal, the way the kernel would. */
void signal_deliver(struct state *t, int number, const struct signal_info *info, struct context *c);
/* It was taken from a thread that is not traced any more, which now gets it from the kernel. */
void signal_send_again(int number, struct signal_info *info);
/* A signal for a thread that is not traced, in a process that is. */
void signal_pass_on(int number, struct signal_info *info, struct context *c);
int64_t signal_call_action(struct state *t, const struct regs64 *r);
int64_t signal_call_mask(struct state *t, struct context *c);
int64_t signal_call_stack(struct state *t, const struct regs64 *r);
/* False when the frame cannot be read. */
bool signal_return(struct state *t, struct context *c);
/* All actions but ignored ones become the default; for CLONE_CLEAR_SIGHAND. */
void signals_clear(struct process *p);
/* What the program blocks has changed: a SIGTRAP that waited may be due. */
void signal_check_pending(struct state *t, struct context *c);

/* --- step_thread.c -------------------------------------------------------------------------- */

/* The state of the thread that the handler runs in; NULL when it has none. */
struct state *thread_state(const struct context *c);
/* The first trap of a thread. False: it is not traced. */
bool thread_begin(struct state *t, struct context *c, enum steps_slot_how how, uint32_t by_tid);
void thread_leave(struct state *t, struct context *c, int why);
/* Before a call that makes a thread or process; false: there is no room for it. */
bool clone_begin(struct state *t, struct context *c, uint64_t flags);
/* It returned in the one who called ... */
void clone_end_parent(struct state *t, int64_t result);
/* ... and in the new one, which is what `t` is now. */
void clone_end_child(struct state *t, struct context *c);
/* Whether it is the parent that comes back while its state is a vfork child's; puts it back. */
void vfork_look(struct state *t, const struct context *c);
/* Before a call that ends the thread; and when it was not made after all. */
void exit_begin(struct state *t, uint64_t addr, uint32_t status, bool is_all);
void exit_take_back(struct state *t);

#endif
