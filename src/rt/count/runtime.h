/* SPDX-License-Identifier: MIT */
/*
 * libweircount.a inside. It runs in other people's programs: no libc, no locks that a signal
 * handler could wait for, nothing that needs relocation (inserted code may run before a static-pie
 * has relocated itself).
 *
 *	entry.S		what inserted code calls: the fast ways, and the way into C
 *	count_events.c	the same events in full, in C
 *	count_nodes.c	the call tree of a thread
 *	count_left.c	calls that do not come back
 *	count_stacks.c	which stack is this, and the frames of it
 *	count_threads.c	a thread's copy of counters and state
 *	count_file.c	the file and its areas
 *	file_name.c	where it goes
 *	image.c		what the program's own file says: the units, its identity
 *	count_start.c	start, fork, exit
 *	confined.c	programs that give up system calls
 *
 * 1. A thread's state is written by that thread alone. While `busy` is set, handlers of signals
 *    that come in between leave it alone.
 * 2. Everything that takes the lock runs with signals blocked and on a stack of ours
 *    (count_apart()): stacks of signal handlers and coroutines are small.
 * 3. A thread's copy is never unmapped: a thread that it created may not have one of its own yet.
 */
#ifndef WEIR_RT_COUNT_RUNTIME_H
#define WEIR_RT_COUNT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/inside.h"
#include "count_abi.h"

/* Hidden: addressed without a table that would have to be relocated. */
#pragma GCC visibility push(hidden)

#define N_STACKS     232
#define N_NEST	     24
#define STATE_HOT    1024
#define FRAMES_SKIP  2048 /* bytes in front of the frames, for the same reason */
#define N_CACHE	     2048
#define CACHE_FACTOR 0x5bd1e995 /* a positive 32-bit odd number: imul takes it as it is */

/* An open call. The two lowest bits and the third of `sp` are lent, see FRAME_*. 32 bytes. */
struct frame {
	struct count_node *node;
	uint64_t sp; /* where the return address is, less FRAME_* */
	union {
		uint64_t ticks; /* of a foreign call: when its clock began to run; 0: stands still */
		uint64_t ret;	/* of any other: the return address; 0: the block there is settled */
	};
	uint64_t self; /* cost so far */
};
/* Subtracted from sp, so that the fast ways, which compare all of it, leave such frames to C. */
#define FRAME_FOREIGN  1u /* sp is the stack pointer in front of the call */
#define FRAME_CALLBACK 2u /* called by foreign code, whose clock goes on at its end */
#define FRAME_LOST     4u /* has no node of its own */

static inline uint64_t frame_sp(const struct frame *f)
{
	return (f->sp + 7) & ~(uint64_t)7;
}

static inline uint32_t frame_flags(const struct frame *f)
{
	return (uint32_t)(frame_sp(f) - f->sp);
}

/* The one that is never popped. */
static inline bool frame_is_first(const struct frame *f)
{
	return f->sp == UINT64_MAX;
}

static inline bool frame_is_foreign(const struct frame *f)
{
	return (frame_flags(f) & FRAME_FOREIGN) && !frame_is_first(f);
}

/* Which child is entered: that of `parent` with this key. Behind a tail call the key has
 * KEY_TAIL, and `root` is the open frame's node, which is not the parent. */
struct cache_line {
	const struct count_node *parent;
	uint64_t key;
	struct count_node *node;
	const struct count_node *root;
	uint64_t not_used[4];
};
#define KEY_TAIL (1ull << 62)

/* A stack that the thread has run on. Its frames begin with one that is never popped. */
struct stack {
	uint64_t lo, hi;
	struct frame *frames, *top, *limit;
	uint64_t frames_bytes; /* 0: no such stack */
	uint32_t flags;	       /* STACK_* */
	uint32_t used;	       /* by state.n_switches: which one was left longest ago */
};
#define STACK_GUESSED 1u /* several may be in this mapping */
#define STACK_SIGNAL  2u

/* What a fast way works with, and a handler that interrupts it must find and leave unchanged. */
struct context {
	struct frame *top, *limit;
	uint64_t last_cost, last_cycles;
	uint64_t tail_sp, tail_ret;
	struct count_node *tail_node;
	uint64_t current_node;
};

/* A signal handler in the midst of a fast way: it has frames of its own below the thread's root,
 * and takes away what it has added to the sums when it is over. */
struct nest {
	uint64_t owner; /* `busy` of whom it interrupted; 0: none */
	bool is_at_work;
	struct context own, before;
	uint64_t cost[COUNT_STRIPES], cycles[COUNT_STRIPES]; /* as they were */
	struct frame frames[N_NEST];
};

/* The section weir_state. Offsets are known to entry.S, down to `self`. All zero in a child of
 * fork. */
struct state {
	/* Frames and nodes, which begin at the beginning of a page, are written all the time: what
	 * has the same place in a page would be taken for the same by the processor at first. */
	uint8_t not_used[STATE_HOT];
	uint64_t cost[COUNT_STRIPES];
	uint64_t cycles[COUNT_STRIPES];
	uint64_t lo, size; /* of the stack in use; 0 before the start */
	uint64_t busy;	   /* stack pointer of whoever is at work, plus 1 in C; 0: nobody */
	struct frame *top;
	uint64_t last_cost, last_cycles; /* sums that have been charged */
	uint64_t tail_sp;		 /* 0: none */
	struct count_node *nodes;	 /* struct count_thread is one page in front of it */
	uint64_t tail_ret;
	struct count_node *tail_node;
	struct frame *limit; /* the last frame that can be pushed upon */
	uint64_t site_mask;  /* all ones: sites are apart */
	struct state *self;  /* 0: not set up */
	/* for C alone */
	uint64_t fs; /* base of fs: tells threads apart without a system call */
	uint32_t tid, slot;
	uint32_t n_places; /* for nodes, mapped */
	uint32_t hash_mask;
	uint32_t *hash; /* of parent, key and site: number of the node, 0 free */
	uint64_t retry; /* calls to lose before more room is tried for */
	uint32_t stack, n_switches;
	struct nest nest;
	struct stack stacks[N_STACKS];
	struct cache_line cache[N_CACHE] __attribute__((aligned(COUNT_PAGE)));
};
#define STATE_CACHE 16384 /* where the cache begins */
#define STATE_BYTES (STATE_CACHE + N_CACHE * 64)

enum event {
	EVENT_ENTER,
	EVENT_LEAVE,
	EVENT_TAIL,
	EVENT_RESYNC,
	EVENT_FOREIGN,
	EVENT_FOREIGN_DONE,
	EVENT_CYCLES = 16, /* added: cycle sums, too */
};

/* What outlives a thread. Written under the lock. */
struct slot {
	uint32_t tid;
	uint32_t n_places;
	uint8_t *copy; /* of [library.copy_start, + copy_bytes) */
	struct count_node *nodes;
	uint64_t nodes_bytes; /* reserved */
	uint32_t *hash;
	uint64_t hash_bytes;
	struct frame *top; /* at fork: its open calls */
};

/* Of the process. Written under the lock, or at the start. */
struct library {
	bool is_ready, has_fsgsbase;
	bool is_confined; /* no system call may be made any more */
	bool is_timeless; /* the time-stamp counter may not be read any more */
	bool is_full;	  /* the file could not grow, and that has been told */
	uint32_t *lock; /* in a page that is zero in a child of fork: nobody there holds it */
	uint32_t pid, n_areas;
	struct count_header *header;
	uint64_t file_bytes;
	uint64_t device, inode; /* of the count file */
	uint64_t stderr_device, stderr_inode; /* at the start; 0: it was closed */
	char path[COUNT_PATH_BYTES];
	char wanted[COUNT_PATH_BYTES]; /* as asked for, absolute; may have %p */
	size_t wanted_from;	       /* %p counts from here on */
	uint64_t units, units_bytes;   /* in memory */
	uint64_t copy_start, copy_bytes;
	uint64_t counters, counters_bytes; /* pages that have them */
	uint64_t site_mask;
	uint64_t reserve_max; /* bytes of address space for the nodes, or the frames, of a thread */
	uint64_t main_stack;  /* an address in it */
	struct slot *slots;
	uint32_t n_slots;
	uint8_t *lost_copy; /* for threads without room: counters of slot 0, always busy */
};
extern struct library count_library;

extern struct state weir_count_state;
/* Not there when nothing was inserted. */
extern uint64_t __start_weir_counters[] __attribute__((weak));
extern uint64_t __stop_weir_counters[] __attribute__((weak));

/* entry.S */
void weir_count_switch_stack(void (*f)(void *), void *arg, void *stack_end);
void weir_count_enter(void);

/* count_events.c */
void count_event(struct state *s, uint32_t event, uint64_t sp, uint64_t key);

/* count_nodes.c */
#define COUNT_FIRST_NODES_BYTES (5 * COUNT_PAGE) /* of the file, for a thread's record and first nodes */
/* Makes it, when it is new; none where there is no room. */
struct count_node *count_node_enter(
	struct state *s, const struct count_node *parent, uint64_t key, uint64_t site);
bool count_nodes_open(struct slot *slot, struct state *s);
void count_nodes_grow(void *state);
void count_nodes_reserve(struct state *s, uint32_t n); /* room for so many. Under the lock */

/* count_left.c */
/* The call of this frame, which is on the thread's stack and whose caller is the one below it, does not
 * come back; or comes back once more, in a child of fork. */
void count_left(struct state *s, const struct frame *f);
void count_left_not(struct state *s, const struct frame *f);
/* All that are open: the thread has ended, or the program ends here. Under the lock. */
void count_left_open(struct state *s);
void count_left_at_end(void);

/* count_stacks.c */
bool count_stack_switch(struct state *s, uint64_t sp); /* one that is known */
bool count_stack_find(struct state *s, uint64_t sp);   /* looks for it. Under the lock */
void count_stacks_reserve(struct state *s);	       /* frames for some more. Under the lock */

/* count_threads.c */
long count_thread_first(uint64_t sp);	  /* of the program: 0 or a negative errno */
long count_thread_forked(uint64_t sp);	  /* of a child */
void count_thread_note_top(bool is_open); /* in front of fork */
/* What threads without a slot share. Under the lock. */
void count_thread_make_lost(void);
void count_thread_join_lost(void);
/* Gives this thread a slot; none: it has joined those without. Under the lock. */
struct slot *count_thread_open(uint64_t sp);
struct state *count_slot_state(const struct slot *slot);
uint64_t count_gs_get(void);
bool count_gs_set(uint64_t base);
uint64_t count_fs_get(void);
struct state *count_gs_state(void);
/* Gone, whatever thread group it was in: children by vfork share memory with us. */
bool count_thread_has_ended(uint32_t tid);

/* count_file.c. All under the lock. */
#define COUNT_HEADER_BYTES PAGE_UP(sizeof(struct count_header))
long count_file_create(void); /* at library.path; 0 or a negative errno */
/* More of it, mapped in place of what is at `at`. */
bool count_file_extend(void *at, uint64_t bytes, uint64_t *offset);
bool count_file_map(void *at, uint64_t bytes, uint64_t offset); /* what it has already */
bool count_file_add_area(
	enum count_area_kind kind, uint32_t slot, uint64_t offset, uint64_t bytes, uint64_t first);
const struct count_area *count_file_find_area(enum count_area_kind kind, uint32_t slot);

/* file_name.c */
void count_name_set(const char *wanted, const char *exe); /* library.wanted */
/* 0, or the negative errno of what is there and cannot be a file of counts. */
long count_name_look(void);
/* Makes the file under a name of its own, library.path: 0 or a negative errno. */
long count_name_create(void);
/* Moves the file to where it is wanted: 0 or a negative errno. */
long count_name_take(bool is_child);
void count_name_complain(long error); /* the one sentence */
void count_name_complain_growth(long error);

/* image.c */
struct image {
	char path[COUNT_PATH_BYTES];
	uint64_t base;
	uint64_t units, units_bytes;
	uint64_t size, mtime_ns, inode;
	uint8_t build_id_bytes, build_id[39];
};
void count_image_read(struct image *image, const char *execfn);

/* count_start.c */
/* With the lock, signals blocked, on our stack. In a confined program signals are not blocked, and it
 * is not done (false) when the lock is not to be had. */
bool count_apart(void (*f)(void *), void *arg);
void count_forked(uint64_t sp); /* in a child, or a thread without a state. Under the lock */

/* confined.c */
enum gate { GATE_PRCTL, GATE_SYSCALL, GATE_LOAD };
void count_gate(uint32_t gate, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
void count_child_is_lost(void); /* in a child of a confined process */

static inline uint64_t count_ticks(void)
{
	return count_library.is_timeless ? 0 : ticks_now();
}

static inline struct count_thread *state_thread(const struct state *s)
{
	return (struct count_thread *)((uint8_t *)s->nodes - COUNT_PAGE);
}

static inline void count_calls_lost(uint64_t n)
{
	__atomic_fetch_add(&count_library.header->calls_lost, n, __ATOMIC_RELAXED);
}

#pragma GCC visibility pop

#endif
