/* SPDX-License-Identifier: MIT */
/*
 * Boxes and the bends of lines are items alike: a line that passes a layer has an item of its own there,
 * so that it takes its place among the boxes. A segment joins two items of neighbouring layers.
 */
#include "query/graph_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"

#define N_ORDER_TURNS 12
#define N_PLACE_TURNS 8
#define BEND_HEIGHT   6.0

struct item {
	uint32_t layer;
	double height, y; /* y: the middle */
	double wanted;
	double weight;					   /* how much it insists on `wanted` */
	bool is_kept;					   /* has an old place */
	uint32_t first_left, n_left, first_right, n_right; /* in segments */
};

struct segment {
	uint32_t left, right; /* items */
};

struct layouter {
	struct graph_layout *g;
	VEC(struct item) items; /* boxes first */
	VEC(struct segment) segments;
	uint32_t *by_left, *by_right; /* segments in order of their left, their right item */
	uint32_t *order, *first_of,
		*rank; /* items layer by layer; by layer; by item: place in it */
	uint32_t n_layers;
	bool has_kept;
};

/* ---- cycles and layers ---- */

struct open_box {
	uint32_t box, next; /* the line to look at next */
};

/* Lines of each box: starts[b] .. starts[b + 1] in `lines`. */
static uint32_t *lines_by_box(const struct graph_layout *g, uint32_t **starts_out)
{
	uint32_t *starts = mem_calloc(g->n_boxes + 2, sizeof(*starts));
	uint32_t *lines = mem_calloc(g->n_lines + 1, sizeof(*lines));

	for (size_t i = 0; i < g->n_lines; i++)
		starts[g->lines[i].from + 2]++;
	for (size_t b = 2; b < g->n_boxes + 2; b++)
		starts[b] += starts[b - 1];
	for (size_t i = 0; i < g->n_lines; i++)
		lines[starts[g->lines[i].from + 1]++] = (uint32_t)i;
	*starts_out = starts;
	return lines;
}

/* Depth first from box 0: lines to a box on the way are back lines. Gives the boxes in the order in
 * which they are left, callees first. */
static uint32_t *walk_depth_first(struct graph_layout *g)
{
	uint32_t *starts, *lines = lines_by_box(g, &starts);
	uint32_t *left = mem_calloc(g->n_boxes + 1, sizeof(*left)), n_left = 0;
	struct open_box *open = mem_calloc(g->n_boxes + 1, sizeof(*open));
	uint8_t *state = mem_calloc(g->n_boxes + 1, 1); /* 1: on the way, 2: left */
	size_t n_open = 0;

	open[n_open++] = (struct open_box){0, starts[0]};
	state[0] = 1;
	while (n_open) {
		struct open_box *top = &open[n_open - 1];
		struct graph_line *line;

		if (top->next == starts[top->box + 1]) {
			state[top->box] = 2;
			left[n_left++] = top->box;
			n_open--;
			continue;
		}
		line = &g->lines[lines[top->next++]];
		line->is_back = state[line->to] == 1;
		if (state[line->to])
			continue;
		state[line->to] = 1;
		open[n_open++] = (struct open_box){line->to, starts[line->to]};
	}
	free(starts);
	free(lines);
	free(open);
	free(state);
	return left;
}

/* A box is one layer behind the last of those that lead to it. */
static void set_layers(struct graph_layout *g)
{
	uint32_t *left = walk_depth_first(g), *starts, *lines = lines_by_box(g, &starts);

	for (size_t b = 0; b < g->n_boxes; b++)
		g->boxes[b].layer = 0;
	for (size_t i = g->n_boxes; i-- > 0;) {
		uint32_t from = left[i];

		for (uint32_t k = starts[from]; k < starts[from + 1]; k++) {
			const struct graph_line *line = &g->lines[lines[k]];
			struct graph_box *to = &g->boxes[line->to];
			uint32_t behind = g->boxes[from].layer + 1;

			if (!line->is_back && to->layer < behind)
				to->layer = behind;
		}
	}
	free(left);
	free(starts);
	free(lines);
}

/* ---- items and segments ---- */

static uint32_t add_item(struct layouter *l, uint32_t layer, double height)
{
	struct item item = {.layer = layer, .height = height, .weight = 1};

	vec_push(&l->items, item);
	return (uint32_t)l->items.n - 1;
}

/* A line gets a bend in each layer between its ends; `first_point` remembers the first of them. */
static void add_bends(struct layouter *l, struct graph_line *line)
{
	uint32_t a = line->is_back ? line->to : line->from,
		 b = line->is_back ? line->from : line->to;
	uint32_t last = a;

	line->first_point = (uint32_t)l->items.n;
	for (uint32_t layer = l->g->boxes[a].layer + 1; layer < l->g->boxes[b].layer; layer++) {
		uint32_t bend = add_item(l, layer, BEND_HEIGHT);
		struct segment s = {last, bend};

		vec_push(&l->segments, s);
		last = bend;
	}
	if (l->g->boxes[a].layer < l->g->boxes[b].layer) {
		struct segment s = {last, b};

		vec_push(&l->segments, s);
	}
}

static void index_segments(struct layouter *l)
{
	size_t n = l->segments.n;
	uint32_t at_left = 0, at_right = 0;

	l->by_left = mem_calloc(n + 1, sizeof(*l->by_left));
	l->by_right = mem_calloc(n + 1, sizeof(*l->by_right));
	for (size_t i = 0; i < n; i++) {
		l->items.v[l->segments.v[i].left].n_right++;
		l->items.v[l->segments.v[i].right].n_left++;
	}
	for (size_t i = 0; i < l->items.n; i++) {
		struct item *item = &l->items.v[i];

		item->first_right = at_left;
		item->first_left = at_right;
		at_left += item->n_right;
		at_right += item->n_left;
		item->n_right = item->n_left = 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct item *left = &l->items.v[l->segments.v[i].left],
			    *right = &l->items.v[l->segments.v[i].right];

		l->by_left[left->first_right + left->n_right++] = (uint32_t)i;
		l->by_right[right->first_left + right->n_left++] = (uint32_t)i;
	}
}

static void make_items(struct layouter *l)
{
	struct graph_layout *g = l->g;

	for (size_t b = 0; b < g->n_boxes; b++) {
		uint32_t i = add_item(l, g->boxes[b].layer, g->boxes[b].height);

		l->items.v[i].is_kept = g->boxes[b].has_place;
		l->items.v[i].y = g->boxes[b].old_y + g->boxes[b].height / 2;
		l->has_kept |= g->boxes[b].has_place;
	}
	for (size_t i = 0; i < g->n_lines; i++)
		add_bends(l, &g->lines[i]);
	index_segments(l);
	for (size_t i = 0; i < l->items.n; i++)
		if (l->items.v[i].layer >= l->n_layers)
			l->n_layers = l->items.v[i].layer + 1;
}

/* ---- order within layers ---- */

static int compare_wanted(const void *a, const void *b, void *context)
{
	const struct layouter *l = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return ORDER(l->items.v[x].wanted, l->items.v[y].wanted)
		       ?: ORDER(l->rank[x], l->rank[y]) ?: ORDER(x, y);
}

static void sort_layer(struct layouter *l, uint32_t layer)
{
	uint32_t *v = l->order + l->first_of[layer];
	size_t n = l->first_of[layer + 1] - l->first_of[layer];

	qsort_r(v, n, sizeof(*v), compare_wanted, l);
	for (size_t i = 0; i < n; i++)
		l->rank[v[i]] = (uint32_t)i;
}

/* The items layer by layer, at first in the order of their numbers, which is that of the caller. */
static void make_order(struct layouter *l)
{
	size_t n = l->items.n;

	l->order = mem_calloc(n + 1, sizeof(*l->order));
	l->rank = mem_calloc(n + 1, sizeof(*l->rank));
	l->first_of = mem_calloc(l->n_layers + 2, sizeof(*l->first_of));
	for (size_t i = 0; i < n; i++)
		l->first_of[l->items.v[i].layer + 2]++;
	for (uint32_t k = 2; k < l->n_layers + 2; k++)
		l->first_of[k] += l->first_of[k - 1];
	for (size_t i = 0; i < n; i++) {
		uint32_t at = l->first_of[l->items.v[i].layer + 1]++;

		l->order[at] = (uint32_t)i;
		l->rank[i] = at - l->first_of[l->items.v[i].layer];
	}
}

/* What an item's neighbours on one side have in the mean; false when there are none. */
static bool mean_of_neighbours(
	const struct layouter *l, uint32_t i, bool on_left, bool by_rank, double *mean)
{
	const struct item *item = &l->items.v[i];
	uint32_t n = on_left ? item->n_left : item->n_right;
	double sum = 0;

	for (uint32_t k = 0; k < n; k++) {
		const struct segment *s =
			on_left ? &l->segments.v[l->by_right[item->first_left + k]]
				: &l->segments.v[l->by_left[item->first_right + k]];
		uint32_t other = on_left ? s->left : s->right;

		sum += by_rank ? l->rank[other] : l->items.v[other].y;
	}
	*mean = n ? sum / n : 0;
	return n != 0;
}

static void order_layer(struct layouter *l, uint32_t layer, bool by_left)
{
	for (uint32_t k = l->first_of[layer]; k < l->first_of[layer + 1]; k++) {
		struct item *item = &l->items.v[l->order[k]];

		if (!mean_of_neighbours(l, l->order[k], by_left, true, &item->wanted))
			item->wanted = l->rank[l->order[k]];
	}
	sort_layer(l, layer);
}

static void order_anew(struct layouter *l)
{
	for (int turn = 0; turn < N_ORDER_TURNS; turn++) {
		for (uint32_t layer = 1; layer < l->n_layers; layer++)
			order_layer(l, layer, true);
		for (uint32_t layer = l->n_layers - 1; layer-- > 0;)
			order_layer(l, layer, false);
	}
	for (uint32_t layer = 1; layer < l->n_layers; layer++)
		order_layer(l, layer, true);
}

/* Those that had a place stay in the order of these; others come where their callers are. */
static void order_as_before(struct layouter *l)
{
	for (uint32_t layer = 0; layer < l->n_layers; layer++) {
		for (uint32_t k = l->first_of[layer]; k < l->first_of[layer + 1]; k++) {
			uint32_t i = l->order[k];
			struct item *item = &l->items.v[i];

			if (!item->is_kept && !mean_of_neighbours(l, i, true, false, &item->y))
				item->y = 0;
			item->wanted = item->y;
		}
		sort_layer(l, layer);
	}
}

/* ---- places ---- */

/* Items of a layer that touch, and so move as one. */
struct block {
	double sum,
		weight; /* of the wanted places of its first item, as each of its items has it */
	size_t n;
};

/* The places that are nearest to the wanted ones (least squares) in which none overlaps: neighbours that
 * want to overlap become a block with the mean of what they want. */
static void place_layer(struct layouter *l, uint32_t layer)
{
	const uint32_t *v = l->order + l->first_of[layer];
	size_t n = l->first_of[layer + 1] - l->first_of[layer], n_blocks = 0, at = 0;
	struct block *blocks = mem_calloc(n + 1, sizeof(*blocks));
	double *offset = mem_calloc(n + 1, sizeof(*offset)); /* of an item, were all one block */

	for (size_t i = 0; i < n; i++) {
		const struct item *item = &l->items.v[v[i]];

		if (i)
			offset[i] = offset[i - 1] +
				    (l->items.v[v[i - 1]].height + item->height) / 2 +
				    l->g->box_gap;
		blocks[n_blocks++] =
			(struct block){(item->wanted - offset[i]) * item->weight, item->weight, 1};
		while (n_blocks > 1 &&
			blocks[n_blocks - 2].sum * blocks[n_blocks - 1].weight >=
				blocks[n_blocks - 1].sum * blocks[n_blocks - 2].weight) {
			blocks[n_blocks - 2].sum += blocks[n_blocks - 1].sum;
			blocks[n_blocks - 2].weight += blocks[n_blocks - 1].weight;
			blocks[n_blocks - 2].n += blocks[n_blocks - 1].n;
			n_blocks--;
		}
	}
	for (size_t b = 0; b < n_blocks; b++)
		for (size_t k = 0; k < blocks[b].n; k++, at++)
			l->items.v[v[at]].y = blocks[b].sum / blocks[b].weight + offset[at];
	free(blocks);
	free(offset);
}

static void want_places(struct layouter *l, uint32_t layer, bool by_left)
{
	for (uint32_t k = l->first_of[layer]; k < l->first_of[layer + 1]; k++) {
		struct item *item = &l->items.v[l->order[k]];

		item->weight = item->is_kept ? 100 : 1;
		if (item->is_kept)
			item->wanted = l->g->boxes[l->order[k]].old_y + item->height / 2;
		else if (!mean_of_neighbours(l, l->order[k], by_left, false, &item->wanted))
			item->wanted = item->y;
	}
	place_layer(l, layer);
}

static void set_places(struct layouter *l)
{
	for (size_t i = 0; i < l->items.n && !l->has_kept; i++)
		l->items.v[i].y = l->rank[i] * l->g->box_gap;
	for (int turn = 0; turn < N_PLACE_TURNS; turn++) {
		for (uint32_t layer = 0; layer < l->n_layers; layer++)
			want_places(l, layer, true);
		if (turn == N_PLACE_TURNS - 1)
			break;
		for (uint32_t layer = l->n_layers; layer-- > 0;)
			want_places(l, layer, false);
	}
}

/* ---- the answer ---- */

static double *layer_columns(struct layouter *l)
{
	double *x = mem_calloc(l->n_layers + 1, sizeof(*x)),
	       *width = mem_calloc(l->n_layers + 1, sizeof(*width));

	for (size_t b = 0; b < l->g->n_boxes; b++)
		if (l->g->boxes[b].width > width[l->g->boxes[b].layer])
			width[l->g->boxes[b].layer] = l->g->boxes[b].width;
	for (uint32_t k = 0; k < l->n_layers; k++)
		x[k + 1] = x[k] + width[k] + l->g->layer_gap;
	free(width);
	return x;
}

static void add_point(struct graph_layout *g, double x, double y)
{
	g->points[g->n_points++] = (struct graph_point){x, y};
}

/* From the right side of the one to the left side of the other; a back line the other way round. */
static void set_points(struct layouter *l, struct graph_line *line, const double *columns)
{
	struct graph_layout *g = l->g;
	const struct graph_box *from = &g->boxes[line->from], *to = &g->boxes[line->to];
	uint32_t bend = line->first_point;
	uint32_t n = from->layer < to->layer ? to->layer - from->layer : from->layer - to->layer;

	line->first_point = (uint32_t)g->n_points;
	n = n ? n - 1 : 0;
	add_point(g, from->x + (line->is_back ? 0 : from->width), from->y + from->height / 2);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = bend + (line->is_back ? n - 1 - k : k);

		add_point(g, columns[l->items.v[i].layer], l->items.v[i].y);
	}
	add_point(g, to->x + (line->is_back ? to->width : 0), to->y + to->height / 2);
	line->n_points = (uint32_t)g->n_points - line->first_point;
}

static void set_answer(struct layouter *l)
{
	struct graph_layout *g = l->g;
	double *columns = layer_columns(l), top = 0, bottom = 0;

	for (size_t i = 0; i < l->items.n; i++) {
		const struct item *item = &l->items.v[i];

		if (!i || item->y - item->height / 2 < top)
			top = item->y - item->height / 2;
		if (!i || item->y + item->height / 2 > bottom)
			bottom = item->y + item->height / 2;
	}
	if (l->has_kept && top > 0) /* what was there stays where it was */
		top = 0;
	for (size_t i = 0; i < l->items.n; i++)
		l->items.v[i].y -= top;
	for (size_t b = 0; b < g->n_boxes; b++) {
		g->boxes[b].x = columns[g->boxes[b].layer];
		g->boxes[b].y = l->items.v[b].y - g->boxes[b].height / 2;
	}
	g->points = mem_calloc(l->items.n - g->n_boxes + 2 * g->n_lines + 1, sizeof(*g->points));
	for (size_t i = 0; i < g->n_lines; i++)
		set_points(l, &g->lines[i], columns);
	g->height = bottom - top;
	g->width = l->n_layers ? columns[l->n_layers] - g->layer_gap : 0;
	free(columns);
}

void graph_layout_run(struct graph_layout *g)
{
	struct layouter l = {.g = g};

	g->points = NULL;
	g->n_points = 0;
	g->width = g->height = 0;
	if (!g->n_boxes)
		return;
	set_layers(g);
	make_items(&l);
	make_order(&l);
	if (l.has_kept)
		order_as_before(&l);
	else
		order_anew(&l);
	set_places(&l);
	set_answer(&l);
	vec_release(&l.items);
	vec_release(&l.segments);
	free(l.by_left);
	free(l.by_right);
	free(l.order);
	free(l.first_of);
	free(l.rank);
}

void graph_layout_release(struct graph_layout *g)
{
	free(g->points);
	g->points = NULL;
	g->n_points = 0;
}
