/* SPDX-License-Identifier: MIT */
/*
 * What hooks.c, server.c, drain.c and transcript.c share. Inside src/record/hooks only.
 *
 * 1. `lock` guards the list of processes, their layouts and references, the queues and the
 *    outcomes. It is never held across a system call that may block.
 * 2. `planner_lock` guards the planner; what a planned image points to never changes once made.
 * 3. A process object lives while it is in the list or somebody holds a reference.
 * 4. Fields marked (drain) belong to the drain thread alone, (taker) to the thread that calls
 *    hooks_take.
 */
#ifndef WEIR_RECORD_HOOKS_HOOKS_INTERNAL_H
#define WEIR_RECORD_HOOKS_HOOKS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/temporary_folder.h"
#include "record/hooks/area.h"
#include "record/hooks/hooks.h"
#include "record/hooks/hook_layout.h"
#include "record/hooks/listen.h"
#include "record/hooks/plan.h"

#define HOOK_CHUNK_RECORDS 4096u

/* Records of one thread, in their order. */
struct hook_chunk {
	struct hook_chunk *next;
	uint32_t n;
	/* The counter when the first and the last of them were taken: no record is younger than the
	 * latter by more than TICK_AHEAD_MAX. */
	uint64_t first_ticks, ticks;
	struct hook_record records[HOOK_CHUNK_RECORDS];
};

/* Numbers that the library counts for a thread. */
struct hook_thread_counts {
	uint64_t n_dropped, n_stalls, n_unhooked, n_jumped;
};

/* The stay of one thread in an entry of an area. */
struct hook_source {
	struct hook_process *process; /* a reference */
	uint32_t tid;
	uint32_t thread_i;
	struct hook_chunk *first, *last; /* to be taken */
	bool is_fresh;			 /* never handed over yet */
	bool is_listed;			 /* in the hooks' dirty list */
	bool is_over;			 /* nothing will come any more */
	struct hook_thread_counts counts;
	uint64_t n_unread;	     /* records that were skipped: damaged, too large */
	struct hook_chunk *mine;     /* (taker) taken, not yet used up */
	struct hook_chunk *mine_end; /* (taker) */
	bool mine_is_over;	     /* (taker) is_over, as of the last hooks_take */
	struct process_view *view;   /* (taker) */
};

struct drain_ring {
	struct hook_source *source; /* NULL = the entry is free */
	uint64_t taken;		    /* records; ours: the area's copy is only for the program */
	bool is_broken;
	uint64_t hole_at; /* `taken` when a record was missing in the middle, and for how many looks
			   */
	uint32_t hole_looks;
};

struct hook_process {
	uint32_t n_refs;
	uint64_t serial; /* counts up from 1 */
	uint32_t pid;	 /* as we see it */
	bool is_64;
	bool needs_tids; /* it is in a pid namespace: it sees other thread ids than we do */
	int pid_fd;
	uint64_t since_ticks;
	struct hook_layout *layout; /* one reference */
	struct hook_area area;	    /* closed when it has ended, but for trees */
	atomic_bool is_superseded;  /* exec: another program has its pid */
	atomic_bool has_ended; /* drained to the end, area closed; still listed for its layout */
	uint32_t n_exchanges;  /* connections that are being answered */
	/* (drain) */
	struct drain_ring *rings;
	uint32_t n_scanned; /* entries looked at in each round */
};

/* What became of a function, over all processes. */
struct hook_outcome {
	uint32_t n_hooked;
	uint32_t n_refused; /* by the library, in a process */
	uint32_t refusal;   /* the last one */
};

/* A program that said hello when it began. */
struct heard_program {
	uint32_t pid;
	uint32_t error; /* why it could not begin all the same (errno); 0 = it could */
	uint64_t ticks;
};

struct hooks {
	struct hooks_options options;
	char *library_folder;
	struct temporary_folder library_link; /* another way to it, where that is needed */
	char *libraries[2];		      /* paths for 32- and 64-bit programs */
	char *environment[5];
	struct listener listener;
	int family_fd;		    /* of the page that all hooked processes share */
	struct hook_family *family; /* that page */
	struct hook_family lost;    /* as it was when the recording ended */
	int event_fd;		    /* tells the taker */
	int wake_fd;		    /* tells the server to look around */
	uint64_t began_ns;	    /* CLOCK_MONOTONIC */
	double trap_ns;		    /* with a budget: what a breakpoint costs */
	pthread_t server_thread, drain_thread;
	bool server_runs, drain_runs;
	atomic_bool stop;	 /* set by hooks_close, read by both threads */
	atomic_bool is_off;	 /* set by hooks_stop */
	uint64_t stop_ticks;	 /* UINT64_MAX until hooks_stop */
	atomic_uint rounds_done; /* of the drain thread; wraps */

	pthread_mutex_t planner_lock;
	struct hook_planner *planner;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* exchanges ended, or queues were taken */
	VEC(struct hook_process *) processes;
	uint32_t version;		   /* of the list */
	uint32_t n_exchanges;		   /* over all processes */
	VEC(struct heard_program) heard;   /* in the order of time */
	VEC(struct hook_source *) dirty;   /* with something to take */
	VEC(uint32_t) off;		   /* functions unhooked to keep the budget */
	VEC(struct hook_outcome) outcomes; /* by id */
	struct hook_chunk *free_chunks;
	size_t n_free_chunks;
	uint64_t n_queued;	/* records to be taken */
	uint64_t drained_ticks; /* every record written before is in a queue */
	/* By the server, read at the end: */
	atomic_uint_fast64_t n_unread_modules, n_unread_classes, n_bad_hellos;
	uint64_t n_processes; /* ever hooked */
	/* Of processes that have ended; at the end, of all: */
	uint64_t n_threadless, n_memoryless;  /* threads that were not recorded */
	uint64_t n_missed;		      /* their calls */
	uint64_t n_filtered;		      /* processes with HOOK_STOP_FILTER */
	uint64_t n_jvms_left, n_classes_left; /* of Java, that stayed as they are */
	uint64_t n_archives;		      /* JVMs that write archives of classes */
	uint64_t n_virtual;		      /* JVMs with virtual threads */
	uint64_t n_without_bytes;	      /* JVMs whose allocations are not known */
	char *unread_program; /* (taker) not hooked, and nobody knows its functions; NULL = none */
	VEC(struct hook_process *) drained; /* (drain) those that have not ended */
	uint32_t drained_version;	    /* (drain) of the list it was made from */
};

/* Holds a lock up to the end of the block. */
#define HOLD(mutex)                                                                                \
	__attribute__((cleanup(hold_cleanup), unused)) pthread_mutex_t *held_ = hold_lock(mutex)
static inline pthread_mutex_t *hold_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}
static inline void hold_cleanup(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* What the planner knows: the greatest id, and the function of an id (NULL: there is none). */
uint32_t hooks_n_functions(struct hooks *h);
const struct planned_function *hooks_planned(
	struct hooks *h, uint32_t id, const struct planned_image **image);

/* With h->lock held: */
struct hook_process *hooks_find_process(const struct hooks *h, uint32_t pid); /* newest */
void hooks_add_process(struct hooks *h, struct hook_process *p);
void hooks_unref_process(struct hook_process *p);
struct hook_layout *hooks_ref_layout(struct hook_layout *l);
void hooks_unref_layout(struct hook_layout *l);
struct hook_outcome *hooks_outcome(struct hooks *h, uint32_t id);
/* What its library has counted, once. */
void hooks_take_counts(struct hooks *h, const struct hook_process *p);

/* For the taker: moves what is queued to `mine` of the sources, gives used chunks back. `fresh` is
 * called for each new source, without locks held. Returns the tick before which nothing is
 * missing. */
uint64_t hooks_take(struct hooks *h, struct hook_chunk **used,
	void (*fresh)(void *ctx, struct hook_source *source), void *ctx);
void hook_source_free(struct hooks *h, struct hook_source *s);
void hook_chunks_free(struct hook_chunk *c);
/* Ends both threads; may be called again. */
void hooks_halt(struct hooks *h);

/* server.c */
void *hook_server_main(void *hooks);
/* Lets the thread look around now: at where it listens, and whether it has to end. */
void hook_server_wake(struct hooks *h);

/* drain.c */
void *hook_drain_main(void *hooks);
/* One look at every ring of every process; returns how many records were taken. With
 * `looks_for_ends` threads and processes that have ended are noticed. */
uint64_t hook_drain_round(struct hooks *h, bool looks_for_ends);

#endif
