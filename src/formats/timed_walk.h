/* SPDX-License-Identifier: MIT */
/*
 * What a trace says in order of time, as exports with a time line need it: samples, calls, waits, and what
 * befell threads or was lost. Calls are put right as in reports: whatever is left is one that is open; what
 * was entered later has ended by then, and what is open at the end of its thread ends there. So on each stack
 * of a thread calls nest, at equal times too. Times are as in the trace, with what hooks cost in them.
 */
#ifndef WEIR_FORMATS_TIMED_WALK_H
#define WEIR_FORMATS_TIMED_WALK_H

#include "calltree/build.h"
#include "calltree/sample_walk.h"
#include "formats/export_stacks.h"

struct timed_call {
	uint32_t thread;
	uint32_t
		lane; /* its stack: the number of the thread, or beyond all threads of a further one */
	uint32_t chain;	   /* 0: the stack that the thread began on; others are coroutines */
	uint32_t function; /* of the export's stacks */
	uint32_t frame;	   /* entered */
	uint32_t depth;	   /* how many are open below it on its stack */
	uint64_t from, to; /* to: when it is left */
};

struct timed_wait {
	uint32_t thread;
	uint64_t from, to;
	bool is_ready; /* it could have gone on: another thread was given the CPU */
};

enum timed_mark_kind {
	TIMED_MARK_LOST_SAMPLES,
	TIMED_MARK_LOST_EVENTS,
	TIMED_MARK_LOST_RECORDS,
	TIMED_MARK_NOTE, /* an imperfection */
	TIMED_MARK_THREAD_ENDED,
	TIMED_N_MARKS
};
struct timed_mark {
	enum timed_mark_kind kind;
	uint32_t thread; /* 0 = of the whole trace */
	uint64_t time;
	uint64_t n;	    /* how many were lost */
	const char *reason; /* "" when there is none */
};
const char *timed_mark_name(enum timed_mark_kind kind);
bool timed_mark_is_loss(enum timed_mark_kind kind);

/* Functions may be NULL. */
struct timed_visitor {
	/* One that counts in the metric of the profile, with its weight in it. */
	void (*sample)(void *to, const struct sample_view *sample, uint64_t weight);
	void (*enter)(void *to, const struct timed_call *call); /* call->to is not known yet */
	void (*leave)(void *to, const struct timed_call *call);
	void (*wait)(void *to, const struct timed_wait *wait);
	void (*mark)(void *to, const struct timed_mark *mark);
};

/* Of the threads and the window of the profile. What cannot be read was counted when it was built. */
int timed_walk(struct export_stacks *stacks, const struct timed_visitor *visitor, void *to,
	struct err *err);

#endif
