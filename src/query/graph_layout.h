/* SPDX-License-Identifier: MIT */
/*
 * Where the boxes of a graph stand: in layers from left to right, callers left of what they call. Knows
 * nothing of functions; boxes are numbers, box 0 is the one that all others are reached from.
 *
 *   cycles      an arc back to a box on the way from box 0 is drawn backwards and does not count
 *   layers      a box is right of all boxes that call it
 *   order       few crossings: each box near the middle of its neighbours, in turns
 *   places      as near to the neighbours as the order permits
 *
 * A box that had a place keeps it as nearly as that is possible, so that a picture does not jump when a
 * box is opened: order and places then follow the old ones, and only new boxes look for a place.
 */
#ifndef WEIR_QUERY_GRAPH_LAYOUT_H
#define WEIR_QUERY_GRAPH_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRAPH_BOXES_MAX 20000

struct graph_box {
	double width, height; /* wanted */
	bool has_place;	      /* it had one: old_y */
	double old_y;
	/* The answer: the left upper corner, and the layer from 0 on. */
	double x, y;
	uint32_t layer;
};

struct graph_point {
	double x, y;
};

struct graph_line {
	uint32_t from, to; /* boxes; not the same */
	/* The answer: */
	bool is_back;
	uint32_t first_point, n_points; /* in graph_layout.points: from the one box to the other */
};

struct graph_layout {
	struct graph_box *boxes; /* the caller's */
	size_t n_boxes;
	struct graph_line *lines; /* the caller's */
	size_t n_lines;
	double layer_gap, box_gap; /* between layers, between boxes of a layer */
	/* The answer: */
	struct graph_point *points;
	size_t n_points;
	double width, height;
};

/* Every box is reached from box 0. O(n log n) for each of a fixed number of turns, n with one for each
 * layer that a line passes. */
void graph_layout_run(struct graph_layout *g);
void graph_layout_release(struct graph_layout *g); /* the points */

#endif
