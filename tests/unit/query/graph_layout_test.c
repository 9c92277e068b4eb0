/* SPDX-License-Identifier: MIT */
/* Layouts of small graphs by hand, and of random ones by what must hold of every layout. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

#include "query/graph_layout.h"

#define GAP	  10.0
#define LAYER_GAP 40.0
#define N_RANDOM  40

struct drawn {
	struct graph_layout g;
	uint32_t seed;
};

static uint32_t next(struct drawn *d, uint32_t n)
{
	d->seed = d->seed * 1664525u + 1013904223u;
	return (d->seed >> 8) % n;
}

static void begin(struct drawn *d, size_t n_boxes, size_t n_lines)
{
	memset(d, 0, sizeof(*d));
	d->g = (struct graph_layout){.boxes = calloc(n_boxes + 1, sizeof(struct graph_box)),
		.n_boxes = n_boxes,
		.lines = calloc(n_lines + 1, sizeof(struct graph_line)),
		.n_lines = 0,
		.layer_gap = LAYER_GAP,
		.box_gap = GAP};
	for (size_t b = 0; b < n_boxes; b++)
		d->g.boxes[b] = (struct graph_box){.width = 100, .height = 20};
}

static void line(struct drawn *d, uint32_t from, uint32_t to)
{
	d->g.lines[d->g.n_lines++] = (struct graph_line){.from = from, .to = to};
}

static void end(struct drawn *d)
{
	graph_layout_release(&d->g);
	free(d->g.boxes);
	free(d->g.lines);
}

/* What holds of every layout. */
static void check_layout(const struct graph_layout *g)
{
	for (size_t a = 0; a < g->n_boxes; a++) {
		const struct graph_box *x = &g->boxes[a];

		CHECK(x->x >= 0 && x->x + x->width <= g->width + 1e-6);
		CHECK(x->y >= -1e-6 && x->y + x->height <= g->height + 1e-6);
		for (size_t b = a + 1; b < g->n_boxes; b++) {
			const struct graph_box *y = &g->boxes[b];

			CHECK(x->layer != y->layer || x->x == y->x);
			CHECK(x->layer != y->layer || x->y + x->height + GAP <= y->y + 1e-6 ||
				y->y + y->height + GAP <= x->y + 1e-6);
			CHECK(x->layer >= y->layer || x->x + x->width < y->x);
		}
	}
	for (size_t i = 0; i < g->n_lines; i++) {
		const struct graph_line *l = &g->lines[i];
		const struct graph_box *from = &g->boxes[l->from], *to = &g->boxes[l->to];
		const struct graph_point *p = &g->points[l->first_point];

		CHECK(l->is_back ? from->layer >= to->layer : from->layer < to->layer);
		CHECK(l->n_points >= 2 && l->first_point + l->n_points <= g->n_points);
		CHECK(fabs(p[0].y - from->y - from->height / 2) < 1e-6);
		CHECK(fabs(p[l->n_points - 1].y - to->y - to->height / 2) < 1e-6);
		for (uint32_t k = 1; k < l->n_points && from->layer != to->layer; k++)
			CHECK(l->is_back ? p[k].x <= p[k - 1].x : p[k].x >= p[k - 1].x);
	}
}

static void callers_are_left_of_callees(void)
{
	struct drawn d;

	begin(&d, 4, 4); /* 0 > 1 > 3, 0 > 2 > 3 */
	line(&d, 0, 1);
	line(&d, 0, 2);
	line(&d, 1, 3);
	line(&d, 2, 3);
	graph_layout_run(&d.g);
	check_layout(&d.g);
	CHECK_EQ(d.g.boxes[1].layer, 1);
	CHECK_EQ(d.g.boxes[2].layer, 1);
	CHECK_EQ(d.g.boxes[3].layer, 2);
	CHECK_EQ(d.g.boxes[3].x, 2 * (100 + LAYER_GAP));
	/* the one caller and the one callee stand in the middle of the two between them */
	CHECK(fabs(d.g.boxes[0].y - (d.g.boxes[1].y + d.g.boxes[2].y) / 2) < 1e-6);
	CHECK(fabs(d.g.boxes[3].y - (d.g.boxes[1].y + d.g.boxes[2].y) / 2) < 1e-6);
	end(&d);
}

static void the_longest_way_gives_the_layer(void)
{
	struct drawn d;

	begin(&d, 4, 4); /* 0 > 1 > 2 > 3, and 0 > 3, which passes two layers */
	line(&d, 0, 3);
	line(&d, 0, 1);
	line(&d, 1, 2);
	line(&d, 2, 3);
	graph_layout_run(&d.g);
	check_layout(&d.g);
	CHECK_EQ(d.g.boxes[3].layer, 3);
	CHECK_EQ(d.g.lines[0].n_points, 4);
	CHECK_EQ(d.g.lines[1].n_points, 2);
	end(&d);
}

static void cycles_are_drawn_backwards(void)
{
	struct drawn d;

	begin(&d, 4, 5); /* 0 > 1 > 2 > 3 > 1, and back from 3 to 2 */
	line(&d, 0, 1);
	line(&d, 1, 2);
	line(&d, 2, 3);
	line(&d, 3, 1);
	line(&d, 3, 2);
	graph_layout_run(&d.g);
	check_layout(&d.g);
	CHECK(!d.g.lines[0].is_back && !d.g.lines[1].is_back && !d.g.lines[2].is_back);
	CHECK(d.g.lines[3].is_back && d.g.lines[4].is_back);
	end(&d);
}

/* Each box but 0 has a caller in front of it; more lines go anywhere. */
static void random_graph(struct drawn *d, uint32_t seed, uint32_t n)
{
	begin(d, n, 3 * n);
	d->seed = seed;
	for (uint32_t b = 1; b < n; b++) {
		line(d, next(d, b), b);
		for (uint32_t k = next(d, 3); k > 0; k--) {
			uint32_t from = next(d, n);

			if (from != b)
				line(d, from, b);
		}
	}
}

static void random_graphs_have_no_overlaps(void)
{
	for (uint32_t seed = 1; seed <= N_RANDOM; seed++) {
		struct drawn d, again;

		random_graph(&d, seed, 2 + seed * 2);
		random_graph(&again, seed, 2 + seed * 2);
		graph_layout_run(&d.g);
		graph_layout_run(&again.g);
		check_layout(&d.g);
		for (size_t b = 0; b < d.g.n_boxes; b++)
			CHECK(d.g.boxes[b].x == again.g.boxes[b].x &&
				d.g.boxes[b].y == again.g.boxes[b].y);
		end(&d);
		end(&again);
	}
}

/* A tree of four, whose second box is opened: its three callees come, the others stay. */
static void opening_a_box_leaves_the_others(void)
{
	struct drawn d, more;

	begin(&d, 5, 4);
	for (uint32_t b = 1; b < 5; b++)
		line(&d, 0, b);
	graph_layout_run(&d.g);
	begin(&more, 8, 7);
	for (uint32_t b = 1; b < 5; b++)
		line(&more, 0, b);
	for (uint32_t b = 5; b < 8; b++)
		line(&more, 2, b);
	for (size_t b = 0; b < 5; b++) {
		more.g.boxes[b].has_place = true;
		more.g.boxes[b].old_y = d.g.boxes[b].y;
	}
	graph_layout_run(&more.g);
	check_layout(&more.g);
	for (size_t b = 0; b < 5; b++)
		CHECK(fabs(more.g.boxes[b].y - d.g.boxes[b].y) < 1e-6);
	end(&d);
	end(&more);
}

static void kept_places_are_kept_in_random_graphs(void)
{
	for (uint32_t seed = 1; seed <= N_RANDOM; seed++) {
		struct drawn d, again;

		random_graph(&d, seed, 40);
		random_graph(&again, seed, 40);
		graph_layout_run(&d.g);
		for (size_t b = 0; b < d.g.n_boxes; b++) {
			again.g.boxes[b].has_place = true;
			again.g.boxes[b].old_y = d.g.boxes[b].y;
		}
		graph_layout_run(&again.g);
		check_layout(&again.g);
		/* The order in each layer is the same; bends may push boxes by little. */
		for (size_t a = 0; a < d.g.n_boxes; a++)
			for (size_t b = 0; b < d.g.n_boxes; b++)
				if (d.g.boxes[a].layer == d.g.boxes[b].layer &&
					d.g.boxes[a].y < d.g.boxes[b].y)
					CHECK(again.g.boxes[a].y < again.g.boxes[b].y);
		end(&d);
		end(&again);
	}
}

static void one_box_and_none(void)
{
	struct drawn d;

	begin(&d, 1, 0);
	graph_layout_run(&d.g);
	check_layout(&d.g);
	CHECK(d.g.width == 100 && d.g.height == 20);
	end(&d);
	begin(&d, 0, 0);
	graph_layout_run(&d.g);
	CHECK(d.g.width == 0);
	end(&d);
}

int main(void)
{
	static const struct test tests[] = {
		{"callers are left of what they call, in the middle of it",
			callers_are_left_of_callees},
		{"the longest way to a box gives its layer", the_longest_way_gives_the_layer},
		{"arcs that close a cycle go backwards, others never", cycles_are_drawn_backwards},
		{"boxes of random graphs do not overlap, and twice stand in the same places",
			random_graphs_have_no_overlaps},
		{"the others stay when a box is opened", opening_a_box_leaves_the_others},
		{"boxes that had a place keep their order", kept_places_are_kept_in_random_graphs},
		{"a graph of one box, and of none", one_box_and_none},
	};

	return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
