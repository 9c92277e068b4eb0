/* SPDX-License-Identifier: MIT */
/* Threads and stacks of a JFR chunk as those of the trace: each is made once a chunk, by its number. */
#ifndef WEIR_FORMATS_FOREIGN_JFR_STACKS_H
#define WEIR_FORMATS_FOREIGN_JFR_STACKS_H

#include "formats/foreign/foreign_trace.h"
#include "formats/foreign/jfr_chunk.h"

#define JFR_DEPTH_MAX 65536 /* a deeper stack loses its outer end */

enum jfr_mark { JFR_MARK_INTERPRETED, JFR_MARK_JITTED, JFR_MARK_NATIVE, JFR_N_MARKS };

/* Of a method that is run in some way. */
struct jfr_method {
	uint32_t name;	  /* in `names` */
	uint32_t library; /* the same: of code that is not Java's; 0: not known */
	bool is_java;
};

struct jfr_stacks {
	struct foreign_trace *trace;
	struct intern names; /* of all chunks; 0 is "" */
	/* Of the chunk, by number: */
	struct map stacks;		 /* stacks */
	struct map threads;		 /* threads */
	struct map methods[JFR_N_MARKS]; /* places in `known` */
	struct map kinds;		 /* of frames: enum frame_kind */
	VEC(struct jfr_method) known;
	VEC(uint32_t) frames; /* of the stack being read, innermost first */
	struct buf text, part;
	uint64_t n_missing; /* stacks that are referred to, and are not there */
	uint64_t n_deep;
};

void jfr_stacks_init(struct jfr_stacks *s, struct foreign_trace *trace);
void jfr_stacks_next_chunk(struct jfr_stacks *s);
void jfr_stacks_release(struct jfr_stacks *s);

/* Of fields of an event. A stack of 0: there is none. */
uint32_t jfr_stack(struct jfr_stacks *s, struct jfr_chunk *c, const struct jfr_value *stack);
uint32_t jfr_thread(struct jfr_stacks *s, struct jfr_chunk *c, const struct jfr_value *thread);

#endif
