/* SPDX-License-Identifier: MIT */
/*
 * What a frame is called: the names of its symbol, or one made up from what is known, so that every
 * frame has a name in every report.
 */
#ifndef WEIR_CALLTREE_FRAME_NAMES_H
#define WEIR_CALLTREE_FRAME_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "calltree/calltree.h"
#include "trace/reader.h"

#define FRAME_NAME_BYTES 256

struct frame_level {
	const char *name;
	const char *image; /* path as recorded; "" when not known */
	enum frame_kind kind;
	const char *file; /* NULL when not known */
	uint32_t line;	  /* 0 when not known */
	uint32_t offset;  /* from the function's start; meaningful with has_offset */
	bool has_offset;
};

struct frame_levels {
	struct frame_level v[SYMBOL_LEVELS_MAX]; /* innermost first */
	size_t n;				 /* at least 1 */
	char made_up[FRAME_NAME_BYTES]; /* storage of a name that the trace does not have */
};

/* Fills `levels`; texts are borrowed from the reader and from `levels` itself. */
void frame_names_get(const struct trace_reader *r, uint32_t frame, struct frame_levels *levels);

/* The name of a method without the mark that says how it ran (`I:`, `J:`, `F:`); other names as they are.
 * A part of `name`. */
const char *frame_name_bare(const char *name, const char *image);

/* NULL when the frame has its true name, else why not. Markers have theirs. */
const char *frame_names_unresolved_reason(const struct trace_reader *r, uint32_t frame);

/* The routines of frames, looked up once for each frame of a tree. */
struct frame_routines {
	const struct trace_reader *reader;
	struct calltree *tree;
	struct frame_routine_list *lists; /* by frame id */
	VEC(uint32_t) routines;
	struct frame_levels levels; /* being looked at */
	struct map methods;	    /* of Java, with events: hash of the name -> routine */
};

void frame_routines_init(
	struct frame_routines *f, const struct trace_reader *r, struct calltree *tree);
void frame_routines_release(struct frame_routines *f);
/* The frame is of a function that has events. An event of a Java method does not say how that ran: samples of the
 * method, interpreted and jitted, are of the same routine as its events. Before frames of samples are asked for. */
void frame_routines_add_hooked(struct frame_routines *f, uint32_t frame);
/* Outermost (the function that has code of its own) first; borrowed until the next call. */
const uint32_t *frame_routines_get(struct frame_routines *f, uint32_t frame, size_t *n);

#endif
