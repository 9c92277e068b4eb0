/* SPDX-License-Identifier: MIT */
/*
 * The translator: a code cache inside the program. Its design is in docs/design/translate.md.
 *
 *	layout.h, thread_area.h a thread's area, to which gs points
 *	insn.h			what an instruction is
 *	block_plan.c		what is in a group of blocks
 *	block_emit.c		its machine code
 *	cache.c			where groups are: numbers, memory, look-up, links, what is stale
 *	regions.c		what is executable, and which functions are there
 *	dispatch.c		from one block to the next where no link leads
 *	calls.c, tasks.c	system calls; those that make and end threads and processes
 *	signals.c, frames.c	signals; what a handler finds on the stack
 *	entry.S			ways in and out
 *
 * Rules:
 * 1. No libc, nothing relocated (rt/base/inside.h). General registers only: the program's vector state stays in
 *    the registers while the translator runs.
 * 2. Every address that the program can see is its own. Only pc is in translated code.
 * 3. Code in the cache is never overwritten while it may run, but for the four bytes of a link and the first
 *    five bytes of a block that is stale, each within one cache line.
 * 4. A thread with a signal waiting has all signals blocked, and gets to the translator at the end of the block
 *    that it is in: the rest of that block runs in a copy whose exits all lead here.
 */
#ifndef WEIR_RT_TRANSLATE_TRANSLATE_H
#define WEIR_RT_TRANSLATE_TRANSLATE_H

#include "../base/inside.h"
#include "insn.h"
#include "layout.h"
#include "thread_area.h"
#include "translate_abi.h"

#pragma GCC visibility push(hidden)

/* The same under a name that others find is weir_translate_header. */
extern struct translate_header translate_header;
#define header translate_header

/* How control comes to a block: blocks of one address differ in the event they begin with. */
enum variant {
	VARIANT_PLAIN,
	VARIANT_ENTER, /* TRANSLATE_EVENT_ENTER */
	VARIANT_LAND,  /* TRANSLATE_EVENT_LAND */
};

#define NO_BLOCK TRANSLATE_NO_BLOCK

/* ---- entry.S ---- */

/* The program's registers are in `t`; never returns. */
void translate_resume(struct thread *t) __attribute__((noreturn));
/* Kills what would be a call of the program that is left open: the same, on the thread's own stack from its
 * top, into translate_dispatch(). */
void translate_redispatch(void);
/* Makes the system call that `regs` has, unless a signal waits: then false, and nothing was done. The result is
 * in t->result. */
bool translate_safe_call(struct thread *t, const uint64_t *regs);
extern const char translate_safe_start[], translate_safe_end[], translate_safe_abort[];
extern const char translate_leave_start[], translate_leave_end[];
void translate_asked(void); /* for the recorder: header.asked */
extern const char translate_image_start[], translate_image_end[]; /* all of our code */
/* clone with these arguments; the child goes on in translate_child() on its own stack. */
int64_t translate_clone(long number, const uint64_t args[6], struct thread *child);
int64_t translate_service(uint64_t number, const void *a, uint64_t b);
/* Copies; false: the other side's memory is not there. */
bool translate_copy(void *to, const void *from, size_t n);
extern const char translate_copy_start[], translate_copy_end[], translate_copy_failed[];
void translate_behind_sigreturn(void);
void translate_begin(void);
void translate_enter(void);
void translate_miss_return(void);
void translate_miss_jump(void);
extern const char translate_service_at[];
void translate_master(void); /* the handler of all signals, for the kernel */
void translate_restorer(void);
void translate_thread_exit(struct thread *t, long status) __attribute__((noreturn));
/* Goes on behind a real rt_sigreturn from the frame at sp. */
void translate_sigreturn(void *sp) __attribute__((noreturn));
void translate_xsave(void *area, uint64_t features);
void translate_xrstor(const void *area, uint64_t features);
void translate_store_event(struct thread *t, const struct translate_event *e);
void translate_store_word(struct thread *t, uint32_t word);
uint64_t translate_get_gs(void);
void translate_set_gs(uint64_t base);

/* ---- cache.c ---- */

#define N_BLOCKS_MAX (1u << 21)
#define N_GROUPS_MAX (1u << 20)
#define N_EXITS_MAX  (1u << 22)
#define GROUP_BLOCKS 8
#define BLOCK_INSNS  64
#define GROUP_BYTES_MAX (GROUP_BLOCKS * 3072)

/* Blocks that were translated together, and lie behind each other. */
struct group {
	uint64_t cache;	   /* address */
	uint32_t bytes;	   /* all, stubs too */
	uint32_t stubs_at; /* from here on there are stubs of exits */
	uint32_t first_block, n_blocks;
	uint32_t first_exit, n_exits;
};

enum exit_kind {
	EXIT_KIND_DIRECT,  /* to `target`, may be linked */
	EXIT_KIND_FAR,	   /* the same, by a pointer behind the stub */
	EXIT_KIND_SYSCALL, /* the block ended with a system call; `target` is behind it */
	EXIT_KIND_LEAVE,   /* the program cannot go on translated at `target` */
};

struct exit {
	uint64_t target; /* in the program */
	uint64_t site;	 /* address of the 32-bit distance (direct) or of the pointer (far) that is the link */
	uint32_t block;
	uint8_t kind, variant, why;
};

extern struct group *groups;
extern struct exit *exits;
#define block_rows ((struct translate_block *)header.blocks)

bool cache_init(void);
/* Zero pages that cost nothing until they are touched; NULL: no memory. */
void *memory_reserve(uint64_t n);
void cache_lock(void);
void cache_unlock(void);
/* NO_BLOCK: there is none yet. The lock is held in all of these. */
uint32_t cache_find(uint64_t pc, enum variant variant);
/* Translates; NO_BLOCK: it cannot be (t->cannot says why). */
uint32_t cache_make(struct thread *t, uint64_t pc, enum variant variant);
/* Where the block's address is entered with rax, rcx and rdx in their slots; 0: no memory. */
uint64_t cache_restoring_entry(uint32_t block);
void cache_link(struct exit *e, uint32_t block);
/* The group around an address of translated code; NULL: none. Needs no lock. */
const struct group *cache_group_at(uint64_t address);
/* Room for n bytes near `address`, for the copy of a group; NULL: no memory. */
uint8_t *cache_room_near(struct thread *t, uint64_t address, size_t n, unsigned line_offset);
bool cache_is_code(uint64_t address);
/* What is at [start, end) is another code from now on. */
void cache_forget(uint64_t start, uint64_t end);
void cache_forget_all(void);
/* What it was translated from is what is there. */
bool cache_is_fresh(uint32_t block);
/* How a block was made. */
uint8_t cache_variant(uint32_t block);
uint8_t cache_why(uint32_t block);
/* One instruction, of a page that it may write to: as it is now, and nobody comes there again. */
uint32_t cache_make_alone(struct thread *t, uint64_t pc);
void cache_count_place(uint32_t block, uint16_t *at, bool *flags_dead);

/* ---- regions.c ---- */

struct region {
	uint64_t start, end;
	uint32_t flags; /* TRANSLATE_REGION_* */
	bool has_code;
	const struct translate_function *functions;
	uint32_t n_functions;
};

/* Free room of so many bytes, at most `reach` from [start, end), where no heap grows; 0 = none. */
uint64_t gap_near(uint64_t start, uint64_t end, uint64_t bytes, uint64_t reach);
/* The region of executable memory around pc; NULL: there is none. */
const struct region *region_at(uint64_t pc);
const struct translate_function *region_function(uint64_t pc);
/* Code there may be written by another mapping of the same memory. */
bool region_is_shared(uint64_t pc);
/* Of what a jump at `from` leads to: one that stays in its function begins none. */
enum variant region_variant(uint64_t from, uint64_t to);
void regions_changed(uint64_t start, uint64_t end);
/* Code of [start, end) is about to be translated: writes there must be seen. */
void region_watch(uint64_t start, uint64_t end);
/* A write to a watched page: it may be written now. False: it is none. */
bool region_written(uint64_t address);
/* All that is watched may be written; false: nothing was. */
bool regions_unwatch(void);

/* ---- dispatch.c ---- */

void translate_start(struct translate_boot *boot);
void translate_child(struct thread *t);
/* Sets t->go. */
void translate_dispatch(struct thread *t);
void translate_after_sigreturn(struct thread *t);
/* t->pc is where the program goes on; it goes on there natively, and is dead to us. So does each other thread of the
 * process, from the end of the block that it is in. */
extern bool is_leaving;
void translate_leave(struct thread *t, enum translate_why why);

/* ---- calls.c, tasks.c ---- */

extern bool is_confined; /* the program has a filter of system calls: we make none that it might not */

extern bool has_rseq; /* threads had restartable sequences before they began here */

/* The system call that t->regs has was reached; t->pc is behind it. False: a signal came first. */
bool calls_make(struct thread *t);
enum task_done { TASK_NOT_ONE, TASK_MADE, TASK_INTERRUPTED };
enum task_done task_call(struct thread *t, int64_t *result);

/* ---- signals.c, frames.c ---- */

#define N_SIGNALS 64
#define SIGNAL_BIT(n) (1ull << ((n) - 1))
/* Never blocked, and always handled by us: the translator itself raises them. */
#define SIGNALS_KEPT TRANSLATE_SIGNALS_RAISED

struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

bool signals_init(bool is_attached);
int64_t signals_action(struct thread *t, long number, uint64_t action, uint64_t old, uint64_t size);
/* rt_sigprocmask of the registers; false: a signal comes first. */
bool signals_mask(struct thread *t);
/* All wait from here on, *mask is what they did before; false: one waits already, and has to be given first. */
bool signals_hold(const struct thread *t, uint64_t *mask);
void signals_release(uint64_t mask);
/* A thread that begins here, with this mask, which is set when its program goes on. */
void signals_begin(struct thread *t, uint64_t mask);
/* All wait from here on, what waits already comes again. Returns the program's mask. */
uint64_t signals_end(struct thread *t);
int64_t signals_stack(struct thread *t, uint64_t stack, uint64_t old);
void signals_set_stack(struct thread *t);
/* Gives what waits to the program: t->pc is its handler then, and true; false: it goes on where it was. */
bool signals_deliver(struct thread *t);
void signals_return(struct thread *t) __attribute__((noreturn));
void signals_before_exec(struct thread *t);
void signals_exec_failed(struct thread *t);
void signals_restore(bool is_all);
extern struct kernel_action actions[N_SIGNALS + 1];
/* Makes what a handler finds; false: there is no room for it. */
bool frame_push(struct thread *t, const struct kernel_action *a);
/* Reads a frame back at t's rsp, whose vector state the kernel restores on the way; false: it is none. */
bool frame_pop(struct thread *t);

/* ---- events ---- */

void block_left(struct thread *t, uint32_t block, int32_t rest);
/* With TRANSLATE_OPTION_STEPS: TRANSLATE_WORD_LEFT. */
void left_put(struct thread *t, uint32_t block, uint64_t address);
/* With TRANSLATE_OPTION_STEPS: a word of this kind and those behind it. */
void words_put(struct thread *t, uint32_t kind, const uint32_t *words, unsigned n);
void call_put(struct thread *t, uint64_t number, int64_t result, bool ends);
void event_put(struct thread *t, enum translate_event_kind kind, uint32_t block, uint64_t sp);

#pragma GCC visibility pop

#endif
