/* SPDX-License-Identifier: MIT */
/*
 * The stacks of a profile as nodes, for formats that have such a table: a node is a place in a function below
 * the node of its caller, functions that were inlined have nodes of their own. Nodes are made when they are first asked for, callers
 * before what they call. Functions are those of reports: the same name, image and kind.
 */
#ifndef WEIR_FORMATS_EXPORT_STACKS_H
#define WEIR_FORMATS_EXPORT_STACKS_H

#include "base/mem.h"
#include "calltree/build.h"
#include "calltree/frame_names.h"
#include "calltree/sample_walk.h"

struct export_place {
	uint32_t function; /* a routine of `functions` */
	uint32_t frame;	   /* in the trace; 0 = of a tree, which has no addresses */
	uint32_t line;	   /* 0 = not known */
	uint32_t depth;	   /* how deep it is inlined; 0 = it has code of its own */
	const char *file;  /* NULL = not known; borrowed from the reader */
};

struct export_node {
	uint32_t parent, place; /* parent 0 = outermost */
};

struct export_stacks {
	const struct profile *profile;
	const struct calltree *functions;
	struct calltree *own; /* `functions`, unless they are of the profile's tree */
	struct frame_routines names;
	struct frame_levels levels;
	VEC(struct export_place) places; /* from 1 on */
	VEC(struct export_node) nodes;	 /* from 1 on */
	uint32_t *first_place;		 /* by frame: of its outermost level; 0 = none yet */
	uint32_t *n_places;		 /* by frame */
	uint32_t *of_stack, *of_frame;	 /* nodes; 0 = none yet */
	VEC(uint32_t) path;
};

/* Of the samples and calls of a profile; it must outlive this. */
void export_stacks_init(struct export_stacks *s, const struct profile *profile);
void export_stacks_release(struct export_stacks *s);
/* The innermost node of a sample; 0 when it has no stack. */
uint32_t export_stacks_node(struct export_stacks *s, const struct sample_view *sample);
/* The function of calls of this frame. */
uint32_t export_stacks_function(struct export_stacks *s, uint32_t frame);
const struct calltree_routine *export_stacks_routine(
	const struct export_stacks *s, uint32_t function);

/* A profile that has a tree, but neither samples nor times of calls (counts, trees kept in the program). */
bool export_has_tree_alone(const struct profile *profile);
/* Of such a profile: its nodes that have weight, each once, as if it were one sample. `add` gets the thread, the
 * innermost node and the weight; all weights add up to the profile's total. */
void export_stacks_of_tree(struct export_stacks *s,
	void (*add)(void *to, uint32_t thread, uint32_t node, uint64_t weight), void *to);

#endif
