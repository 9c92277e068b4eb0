/* SPDX-License-Identifier: MIT */
/*
 * The call graph of a tree as people look at it: a box for each function, an arc for each pair of
 * caller and callee, and of all that only what matters or was asked for.
 *
 * Filter. Functions under a share of the whole (self+descendants, tenths of a percent) are folded into
 * their callers. It goes from 0 to 20 %, in steps of 0.1 up to 2 % and of 1 above. When nothing else is
 * asked for, it is the share of the function of rank 30, rounded up to the next step.
 *
 * States. Each box shows none of its callees (folded), those over the filter (filtered), or all (open);
 * a leaf calls nothing. Without a choice a box is filtered. A box is there when an open way leads to it.
 *
 * Box 0 is the whole program: all threads.
 *
 * Figures are those of the models that reports show: of a function those of its flat row, of an arc those
 * of the callee's plain rows of the arcs model, so that the arcs into a function that is not recursive
 * add up to its self+descendants.
 */
#ifndef WEIR_QUERY_CALL_GRAPH_H
#define WEIR_QUERY_CALL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calltree/calltree.h"
#include "calltree/flat.h"
#include "query/graph_layout.h"

#define GRAPH_FILTER_AUTO UINT32_MAX
#define GRAPH_FILTER_MAX  200u /* tenths of a percent */
#define GRAPH_FILTER_FINE 20u  /* up to here in steps of 1, then of 10 */
#define GRAPH_RANK	  30
#define GRAPH_PROGRAM	  0 /* as a routine: the whole program */

enum graph_state { GRAPH_LEAF, GRAPH_FOLDED, GRAPH_FILTERED, GRAPH_OPEN };

struct graph_choice {
	uint32_t routine;
	enum graph_state state; /* not GRAPH_LEAF */
};
struct graph_place {
	uint32_t routine;
	double y;
};

struct graph_question {
	uint32_t filter;		    /* tenths of a percent, or GRAPH_FILTER_AUTO */
	const struct graph_choice *choices; /* others are filtered */
	size_t n_choices;
	uint32_t root; /* virtual root: a routine, or GRAPH_PROGRAM */
	const struct graph_place *places;
	size_t n_places;
	uint32_t name_chars; /* longest shown name; box widths follow */
	uint32_t mark_chars; /* in front of each name */
	double char_width, box_height;
	uint32_t max_boxes; /* at most GRAPH_BOXES_MAX */
};

struct graph_function {
	uint32_t routine; /* GRAPH_PROGRAM: all threads */
	enum graph_state state;
	struct flat_row row; /* of the program: cum alone */
	uint32_t n_callees, n_shown;
	bool is_recursive; /* it calls itself, at once */
};

/* How wide an arc is drawn, in pixels. */
enum graph_width {
	GRAPH_WIDTH_NONE,
	GRAPH_WIDTH_LINEAR,
	GRAPH_WIDTH_LOG,
	GRAPH_WIDTH_ADAPTIVE,
	N_GRAPH_WIDTHS
};

struct graph_arc {
	uint64_t calls, cum;
	bool has_calls, is_exact;
	bool has_cum; /* else samples alone know these calls, of a function that events measured */
	bool is_recursive; /* has calls of instances within instances, too; these are not in cum */
	double share;	   /* of the virtual root, 0 to 1 */
	double width[N_GRAPH_WIDTHS];
};

struct call_graph {
	uint32_t filter;		  /* that was used */
	size_t n_functions, n_hidden;	  /* of the tree; not shown because of max_boxes */
	struct graph_function *functions; /* as layout.boxes */
	struct graph_arc *arcs;		  /* as layout.lines */
	struct graph_layout layout;
	uint64_t whole; /* what shares are of */
};

/* The next allowed value that is not below so many parts of a whole. */
uint32_t graph_filter_step(uint64_t part, uint64_t whole);
/* By rank, of n values in any order; changes their order. */
uint32_t graph_filter_auto(uint64_t *values, size_t n, uint64_t whole);
/* For a share from 0 to 1; `smallest`: of the arcs shown. */
double graph_arc_width(enum graph_width kind, double share, double smallest);

/* `flat` must be that of `t`. */
void call_graph_init(struct call_graph *g, const struct calltree *t, const struct flat *flat,
	const struct graph_question *q);
void call_graph_release(struct call_graph *g);

#endif
