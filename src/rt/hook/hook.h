/* SPDX-License-Identifier: MIT */
/*
 * The hook library inside a traced program. Rules of this folder:
 * 1. No libc: system calls are raw, memory is mapped, nothing is allocated, locked or printed.
 * 2. General registers only: the program's vector state is never touched.
 * 3. What a signal handler may interrupt, it may also enter: hooks take what they need (a record,
 * an entry) in one instruction before they write it.
 * 4. A return address that was replaced stays valid for as long as it may be on a stack.
 *
 *   patched function --> trampoline --> weir_enter (events.c) --> ring
 *   replaced return address --> slot in the region --> weir_leave (events.c) --> ring
 */
#ifndef WEIR_RT_HOOK_HOOK_H
#define WEIR_RT_HOOK_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/inside.h"
#include "../base/proc_self.h"
#include "../base/proc_text.h"
#include "hook_abi.h"
#include "hook_tree.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#ifdef __x86_64__
#define HOOK_BITS    64
#define REGION_BYTES (224u << 20) /* all that we take is to stay below 256 MiB */
#define REGPARM
#else
#define HOOK_BITS    32
#define REGION_BYTES (32u << 20)
#define REGPARM	     __attribute__((regparm(3)))
#endif
#define N_BLOCKS (REGION_BYTES / HOOK_BLOCK_BYTES)

/* Saves the registers that it uses, all of them: hooks run where the compiler expects none to
 * change (gcc's -fipa-ra keeps values in any register across calls of local functions). */
#define KEEPS_REGISTERS __attribute__((no_caller_saved_registers)) REGPARM

/* In the region, written by chains.c. */
struct hook_block {
	uintptr_t stub; /* what the slots call: weir_leave_stub */
	struct chain *chain;
	struct hook_block *next; /* of the same chain; allocated when depth first reached it */
	struct hook_block *previous;
};

enum chain_kind {
	CHAIN_FREE = 0,
	CHAIN_TAKEN,   /* is being made into one of the others */
	CHAIN_OWN,     /* a thread's own stack */
	CHAIN_SIGNAL,  /* sigaltstack */
	CHAIN_CONTEXT, /* makecontext was told of it */
	CHAIN_GUESSED, /* nobody has told of it */
};

/* A call that is being recorded (ring.h). */
struct writer {
	uintptr_t slot;		  /* the stack word of its return address; 0 = none */
	struct hook_record *from; /* what it takes is not before this */
};
#define N_WRITERS 8 /* more handlers than that within each other take the slow way */

/*
 * The open calls on one stack. Entries lie in blocks; the first of each block is no call, it
 * repeats the stack pointer of the call before. An entry's not_sp is 0 when it is free or about to
 * be filled, HOOK_LEFT when its call has ended below one that is still open.
 */
struct chain {
	struct hook_entry *top; /* the next free one */
	uintptr_t start, bytes; /* where calls are taken for this stack's without a further look */
	struct writer
		writers[N_WRITERS]; /* each within the handlers that interrupted those before */
	uintptr_t low, high;	    /* of the stack; GUESSED: `high` is that of the first call */
	uint32_t number;	    /* 0 = a thread's own */
	uint32_t owner;		    /* thread id that ran on it last */
	struct hook_entry *first;   /* top when nothing is open */
	struct hook_block *block;
	struct hook_tree *tree; /* --tree: where its open calls are counted */
	struct thread *user;	/* went on here last */
	uint32_t kind;		/* enum chain_kind */
	bool has_stacks_inside; /* of coroutines */
} __attribute__((aligned(64)));
#define HOOK_LEFT 1u

/* Private to the process and wiped by fork, so that a child finds `limit` 0 and takes the slow way
 * instead of writing into its parent's ring. */
struct thread {
	struct hook_record *pos;   /* the next record */
	struct hook_record *limit; /* end of the current part; NULL: nothing may be written */
	struct chain *chain;	   /* the stack it runs on */
	uint32_t number;	   /* of that, as last recorded */
	uint32_t tid;
	struct hook_thread *shared;
	struct hook_record *ring, *ring_end;
	struct chain *own;
	uint64_t ticks_of_heartbeat;
	uint64_t gave_up_at; /* `consumed` + 1 when waiting for it was in vain; 0 = never */
	uint32_t heartbeat;
	uint32_t session;	/* the recording that it is registered for */
	struct hook_tree *tree; /* with --tree, in place of the ring */
	uintptr_t n_entries;	/* with --tree: to look around now and then */
	uint32_t cost_at
		[HOOK_COST_N]; /* how far it was when a cost was last measured (self_cost.c) */
	uint8_t costs_known;   /* bits: of those that were measured at all */
	bool is_measuring;
	uint32_t slow_inner, slow_outer; /* ticks on the slow way, as HOOK_COST_SLOW counts them */
	uint32_t block_ticks[2]; /* to block signals, the last time; and while is_measuring */
	uint64_t recorded_at;	 /* ticks of the last record on that way */
	uint64_t
		java_bytes; /* 1 + what it has allocated on the JVM's heap, as last recorded; 0 = not yet */
};

enum patch_state {
	PATCH_OUT = 0, /* every byte is the original one */
	PATCH_ON,
	PATCH_SILENT, /* the jump is there, and leads to the function without calling a hook */
	PATCH_PAD,    /* only the padding's jump is there, and nobody goes to it any more */
};

/* Who may be in the code while patches are taken out. */
enum patch_others {
	PATCH_OTHERS_RUN,
	PATCH_OTHERS_NONE,    /* this is the only thread */
	PATCH_OTHERS_STOPPED, /* by the recorder, and none of them stands at a jump of ours */
};

/* A function that is, or was, patched. */
struct patch {
	uintptr_t site;
	uint32_t id;
	uint8_t n, action, detail;
	uint8_t state; /* enum patch_state */
	uint8_t original[8], patched[8];
	uintptr_t pad_site; /* a short jump's long one; 0 = none */
	uint8_t pad_original[8];
	uintptr_t call; /* the trampoline: where a trap at the site goes on; 0 = it is gone */
};

struct library {
	struct hook_control *control; /* NULL = not recording */
	uintptr_t area;
	uint64_t area_bytes, ring_bytes;
	struct thread *threads; /* control->n_threads of them */
	uint32_t pid;
	bool is_off;
	bool is_attached;		/* to a program that was running already */
	bool is_forked;			/* the open calls are still the parent's */
	uint32_t session;		/* counts recordings; never 0 while one is on */
	const uint32_t *is_same_memory; /* 1; wiped by fork, so 0 in a child's copy */
	uint32_t serial; /* the recorder's number for this process, or, in a child that has not
			     spoken to it yet, for the parent */
	struct hook_family *family; /* also in children that have no area yet; NULL = none */
};
extern struct library library;

/* Found by name by recorders, which read it while the program runs: where the one is that records,
 * or was the last to, see HOOK_ENV. Written when a recording begins. */
extern __attribute__((visibility("default"))) char weir_place[HOOK_PLACE_BYTES];
/* Likewise: the recorder's calls of weir_attach and weir_detach run on it, since no stack of the
 * program is surely large enough. Used by one thread at a time, while the others stand still. */
#define CALL_STACK_BYTES (64u << 10)
extern __attribute__((visibility("default"))) uint8_t weir_call_stack[CALL_STACK_BYTES];

extern __thread struct thread *weir_thread __attribute__((tls_model("initial-exec")));
extern uint8_t weir_region[];

/* entry.S */
void weir_enter_stub(void);
void weir_enter_args_stub(void);
void weir_note_stub(void);
void weir_leave_stub(void);
void weir_enter_tree_stub(void);
void weir_leave_tree_stub(void);
void weir_debug_stub(void);
/* Empty functions that are hooked like those of a program, with a jump, a jump and --tree, an amount, int3. The last
 * goes on at a trampoline of the first two. */
void weir_cost_call(void);
void weir_cost_call_tree(void);
void weir_cost_amount(void);
void weir_cost_trap(void);
void weir_cost_trampoline(void);
void weir_cost_trampoline_tree(void);
void weir_sigreturn(void);
void weir_sigreturn_old(void); /* of 32-bit programs, without SA_SIGINFO */
/* What the fast functions call when something is out of the ordinary; saves every register. */
KEEPS_REGISTERS void weir_enter_slow(uintptr_t after_call, uintptr_t *slot);
KEEPS_REGISTERS void weir_leave_slow(uintptr_t *slot, struct hook_entry *e);
KEEPS_REGISTERS void weir_enter_tree(uintptr_t after_call, uintptr_t *slot);
KEEPS_REGISTERS void weir_leave_tree(uintptr_t *slot);

/* events.c: `after_call` is the address behind the trampoline's call, `slot` where the function's
 * return address is. */
KEEPS_REGISTERS void weir_enter(uintptr_t after_call, uintptr_t *slot);
/* `slot` holds an address in the region's slot; it becomes the true return address. */
KEEPS_REGISTERS void weir_leave(uintptr_t *slot);
REGPARM void weir_enter_late(uintptr_t after_call, uintptr_t *slot);
REGPARM void weir_leave_late(uintptr_t *slot, struct hook_entry *e);
/* Entry with arguments: `regs` as in struct hook_regs. */
REGPARM void weir_enter_args(uintptr_t after_call, uintptr_t *slot, struct hook_regs *regs);
REGPARM void weir_note(uintptr_t after_call, uintptr_t *slot, struct hook_regs *regs);
/* A call that needs no entry (compiled_in.c, rt/java). Of one whose function is `p` what it costs is measured now
 * and then; NULL = it is not. */
void record_late(enum hook_record_kind kind, uint32_t id, uintptr_t *slot, uint64_t data,
	const struct patch *p);
/* Such calls with --tree, when they are out of the ordinary (rt/java). `slot` is where the stack is. */
void tree_enter_late(uint32_t id, uintptr_t *slot);
void tree_leave_late(uint32_t id, uintptr_t *slot);
void hook_record_write(struct thread *t, enum hook_record_kind kind, uint32_t id, uint64_t data);

/* threads.c */
/* A call at `slot` of stack `c` has come: writers that it shows to be over are dropped, and what
 * they took and never wrote becomes padding. UINTPTR_MAX: all of the stack's are over. */
void thread_settle(struct thread *t, struct chain *c, uintptr_t slot);
/* The calling thread, registered when it was not; NULL when nothing is to be recorded. Signals are
 * blocked. */
struct thread *thread_ensure(uintptr_t sp);
/* Makes room for a record; false when it must be dropped. */
bool thread_next_part(struct thread *t);
/* False when the recording is over. */
bool thread_look_around(struct thread *t);
void thread_stop_all(void);

/* A call was not recorded, because the thread has no entry. */
void thread_miss_call(void);

/* slabs.c: the area. */
/* Maps the first `bytes` of it; NULL: there is no room. */
struct hook_control *slabs_open(int fd, uint64_t bytes);
/* It is the area in use from now on; false when its numbers make no sense. */
bool slabs_begin(const struct hook_control *control, uint64_t bytes);
/* The ring of the thread's entry, mapped when it was not; NULL: there is no room. Any thread, signals are
 * blocked. */
struct hook_record *slabs_ring(uint32_t thread_i);
/* In a child that does not have its parent's slabs: memory of its own in their places. */
bool slabs_fill(void);

/* chains.c */
struct chain *chain_new(enum chain_kind kind); /* NULL when the region is used up */
struct chain *chain_at(uint32_t i);	       /* NULL behind the last; some are free */
/* Nothing of it is open any more, and nobody is told. */
void chain_reset(struct chain *c);
/* Whether it was a thread's own, or that of a coroutine of it, and the thread has ended: it is free then. */
bool chain_free_ended(struct chain *c);
/* After a handler that jumped away where no entry was left. */
void chain_trim(struct chain *c);
/* Room for the next entry; false when the region is used up. */
bool chain_grow(struct chain *c);
/* The entry below `e`, across blocks; NULL when there is none. */
struct hook_entry *chain_below(const struct chain *c, struct hook_entry *e);
/* Ends the calls above `e`, and that of `e`, which are over. */
void chain_drop_to(struct thread *t, struct chain *c, struct hook_entry *e, uint64_t now);
/* Ends the calls that are over without having returned; one begins at `sp`, which goes on for
 * `caller` and returns to it (NULL: none). */
void chain_drop_stale(
	struct thread *t, struct chain *c, uintptr_t sp, const struct hook_entry *caller);
/* The call of `e` has returned. */
void chain_leave(struct thread *t, struct chain *c, struct hook_entry *e);
/* A handler's calls that were left by a jump out of it, when the thread goes on elsewhere. */
void chain_tell_left(struct thread *t, struct chain *c);
/* A new recording begins, and with it perhaps another way to leave: what is open belongs to none.
 */
void chains_disown(void);
/* Whether a hook may have been interrupted between its first and its last look at the area. */
bool chains_have_interrupted(void);
/* Where their trees were there is new memory. */
void chains_empty_trees(uint64_t bytes);
/* The open calls of a forked child, which go on in its own tree. */
void chains_adopt(struct hook_tree *tree);

/* stacks.c */
struct chain *chain_find(struct thread *t, uintptr_t sp);
struct chain *chain_own(uintptr_t sp, uint32_t tid);
void chain_add_stack(uintptr_t start, uintptr_t bytes); /* a coroutine will run there */

/* code_memory.c */
/* Makes the pages of [low, high) writable and keeps in mind what they were. They stay writable for
 * as long as there is a patch in them. */
enum hook_refusal code_open(uintptr_t low, uintptr_t high);
void code_look_again(void); /* before the first code_open of a kind: modules have come or gone */
/* Makes sure that they still are; false when they cannot be written. */
bool code_reopen(uintptr_t low, uintptr_t high);
/* Pages in which nothing `is_in_use` become what they were. */
void code_give_back(bool (*is_in_use)(uintptr_t low, uintptr_t high));
void code_forget(uintptr_t start, uintptr_t end); /* is mapped no more */
/* Whether some of [low, high) was made writable here. May be asked at any time. */
bool code_is_open(uintptr_t low, uintptr_t high);
/* The program itself is about to set the protection of these pages: that is what they become. */
void code_note_protection(uintptr_t low, uintptr_t high, int prot);
bool code_crosses_line(uintptr_t at, unsigned n);
/* n bytes that lie within one cache line, at once, as every other processor sees it. */
void code_write(uintptr_t at, const uint8_t *bytes, unsigned n);
/* No processor executes what was there before this call. */
void code_serialise(void);

/* patch.c */
struct module_seen {
	uintptr_t bias, dynamic; /* l_addr and l_ld: they name it */
	uintptr_t start, end;
};
/* Applies the plan and fills one result for each entry. */
void patch_apply(const uint8_t *plans, uint32_t n, const struct module_seen *modules,
	struct hook_result *results);
/* One thread changes code at a time. False when another one does, and goes on doing so;
 * patch_apply, patch_remove and patch_forget take it themselves. */
#define LOCK_TRIES 1000 /* of a millisecond */
bool patch_lock(unsigned n_tries);
void patch_unlock(void);
void patch_remove_all(enum patch_others others);
void patch_remove(uint32_t id);
/* Pages without patches are protected as before. */
void patch_give_back(void);
void patch_note_protection(uintptr_t low, uintptr_t high, int prot); /* see code_memory.c */
void patch_forget(uintptr_t start, uintptr_t end);		     /* the module is gone */
const struct patch *patch_at(uintptr_t site);
uintptr_t patch_near(uintptr_t site, uintptr_t bytes);
bool patch_jump(uintptr_t site, uintptr_t target, uint8_t *original);
void patch_unjump(uintptr_t site, const uint8_t *original);

/* trap.c */
bool trap_install(void);
/* Lets a trap of our own through while signals are blocked; false when none may come. */
bool trap_let_through(void);
void trap_block(void);

/* self_cost.c */
/* Now and then: calls an empty function that is hooked in this way, and says what that costs.
 * Signals are blocked, and no hook of this thread is under way. `site`: of a function that calls us
 * itself (HOOK_COST_INSTRUMENT). */
void cost_look(struct thread *t, enum hook_cost_kind kind, uintptr_t site);

/* modules.c */
/* With a refusal, the recorder is told why nothing is hooked, and the result is negative. */
int modules_start(enum hook_refusal refusal);
void modules_changed(void);
void modules_watch(void);
void modules_unwatch(void);

/* exchange.c */
struct exchange {
	int fd;
	int area_fd, family_fd;
	struct hook_reply reply;
	uint8_t *plans;
	uint64_t plan_bytes;
};
/* A negative errno when the recorder could not be spoken to, which is counted where it will see it
 * (struct hook_family). */
int exchange_open(
	struct exchange *x, struct hook_hello *hello, const void *modules, size_t module_bytes);
/* The same, for no longer than so many ms. */
int exchange_open_for(struct exchange *x, struct hook_hello *hello, const void *content,
	size_t content_bytes, long patience_ms);
void exchange_results(struct exchange *x, const struct hook_result *results, uint32_t n);
/* The library cannot do what it said hello for. `error` is negative; `x` is for START only. */
void exchange_give_up(const struct exchange *x, enum hook_hello_kind kind, int error);
void exchange_close_area(struct exchange *x); /* the two descriptors that came with the reply */
void exchange_close(struct exchange *x);
bool exchange_recorder_lives(void);

uintptr_t own_function(enum hook_own own);

/* compiled_in.c */
void weir_cyg_enter(void *function, void *call_site);
void weir_cyg_exit(void *function, void *call_site);
/* A call's entry and exit, recorded as the library's own; and what a program does without hooks. */
void weir_cost_instrument(void);
void weir_cost_instrument_none(void);
extern uintptr_t weir_cost_site; /* of the function that they are said to be in */

/* v8.c: calls the function that has to be told. */
enum hook_refusal own_tell(enum hook_own own, uintptr_t function);

/* rt/java/agent_start.c; see java.h there. */
/* A JVM is about to be made, with these options (JavaVMInitArgs). */
void java_note_create(uintptr_t args);
void java_tell_jvms(uintptr_t function);		       /* JNI_GetCreatedJavaVMs */
void java_tell_table(enum hook_own which, uintptr_t variable); /* HOOK_OWN_VM_... */

/* start.c: what the recorder calls in a running program; 0 or a negative errno. */
__attribute__((visibility("default"))) int weir_attach(const char *place);
/* Ends the recording of the recorder of this place; -ESRCH when it is that of another one. With
 * `others_stopped`, every other thread stands still, and none at a jump. -EAGAIN: one of them was
 * changing code; once more, a little later. */
__attribute__((visibility("default"))) int weir_detach(const char *place, int others_stopped);
int library_open_area(const struct exchange *x);
/* Takes every patch out, as far as other threads allow it (patch.c). Nothing of ours makes a system
 * call in this process afterwards. */
void library_stop(void);
/* The program calls prctl, mprotect or syscall. */
#define HOOK_NOTE_ARGS 4
void library_note_call(enum hook_own own, const uintptr_t args[HOOK_NOTE_ARGS], uintptr_t sp);
bool library_is_copy(void); /* made by fork, and has not said hello for itself */
/* A forked child says hello first, one of its threads for all. False: the library is off in it, or the
 * memory is the parent's (vfork). Signals are blocked. */
bool library_is_own(void);

/* Of this process. */
static inline bool thread_has_ended(uint32_t tid)
{
	return raw_call(SYS_tgkill, library.pid, tid, 0) == -ESRCH;
}

static inline struct hook_block *block_of(const struct hook_entry *e)
{
	return (struct hook_block *)(((uintptr_t)e & ~(uintptr_t)(HOOK_BLOCK_BYTES - 1)) +
				     HOOK_HEADER_OFFSET);
}

/* Hooks take an entry before they ask whether there is one. A handler in between asks, too: it is
 * further behind the block's end then. */
static inline bool is_in_block(const struct hook_entry *e)
{
	return (uintptr_t)e & HOOK_ENTRY_OFFSET;
}

static inline uintptr_t entry_sp(const struct hook_entry *e)
{
	return ~(uintptr_t)e->not_sp;
}

/* In 32-bit programs the upper half is always 0. */
static inline void entry_set_not_sp(struct hook_entry *e, uintptr_t not_sp)
{
	*(volatile uintptr_t *)&e->not_sp = not_sp;
}

/* The replaced return address that leads to the entry's slot. */
static inline uintptr_t slot_address(const struct hook_entry *e)
{
	uintptr_t block = (uintptr_t)e & ~(uintptr_t)(HOOK_BLOCK_BYTES - 1);
	uintptr_t i = ((uintptr_t)e & (HOOK_ENTRY_OFFSET - 1)) / sizeof(struct hook_entry);

	return block + i * HOOK_SLOT_BYTES + HOOK_RETURN_OFFSET;
}

/* From any address within a slot. */
static inline struct hook_entry *entry_of_slot(uintptr_t address)
{
	uintptr_t block = address & ~(uintptr_t)(HOOK_BLOCK_BYTES - 1);

	return (struct hook_entry *)(block + HOOK_ENTRY_OFFSET +
				     ((address & (HOOK_HEADER_OFFSET - HOOK_SLOT_BYTES)) *
					     (sizeof(struct hook_entry) / HOOK_SLOT_BYTES)));
}

static inline bool is_in_region(uintptr_t address)
{
	return address - (uintptr_t)weir_region < REGION_BYTES;
}

/* Eight bytes at once, if they are still *old; else *old is what they are. */
static inline bool exchange_word(uint64_t *word, uint64_t *old, uint64_t wanted)
{
#ifdef __x86_64__
	return __atomic_compare_exchange_n(
		word, old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#else
	bool done;

	__asm__ volatile("lock cmpxchg8b %1; sete %0"
			 : "=qm"(done), "+m"(*word), "+A"(*old)
			 : "b"((uint32_t)wanted), "c"((uint32_t)(wanted >> 32))
			 : "memory", "cc");
	return done;
#endif
}

#endif
