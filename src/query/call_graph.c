/* SPDX-License-Identifier: MIT */
/*
 * Three steps: all pairs of caller and callee of the tree (links), the boxes that are reached by open
 * ways (a queue from the whole program on), the layout. Functions are known by their routine here, the
 * whole program by 0; boxes are numbered as they are found.
 */
#include "query/call_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"

#define SHARE_MIN   0.0001 /* of the smallest arc, for adaptive widths */
#define WIDTH_MAX   9.0
#define LAYER_GAP   60.0
#define BOX_GAP	    8.0
#define BOX_PADDING 34.0 /* for the arrow head and the sides */

struct link {
	uint32_t caller, callee; /* routines */
	struct graph_arc arc;
	bool has_plain; /* calls that are not within another call of the callee */
};

struct grapher {
	struct call_graph *g;
	const struct calltree *t;
	const struct graph_question *q;
	const struct flat_row **row_of; /* by routine; NULL: none */
	VEC(struct link) links;
	uint32_t *first_link; /* by routine, n + 1 of them: its callees, dearest first */
	uint32_t *box_of;     /* by routine: box + 1; 0 = none yet */
	enum graph_state *state_of;
	uint64_t total;
	VEC(struct graph_function) functions;
};

/* ---- formulas ---- */

uint32_t graph_filter_step(uint64_t part, uint64_t whole)
{
	long double tenths = whole ? ceill((long double)part * 1000 / whole) : 0;
	uint32_t step = tenths > GRAPH_FILTER_MAX ? GRAPH_FILTER_MAX : (uint32_t)tenths;

	if (step > GRAPH_FILTER_FINE)
		step = (step + 9) / 10 * 10;
	return step;
}

static int compare_values(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)b, *(const uint64_t *)a);
}

uint32_t graph_filter_auto(uint64_t *values, size_t n, uint64_t whole)
{
	if (n < GRAPH_RANK)
		return 0;
	qsort(values, n, sizeof(*values), compare_values);
	return graph_filter_step(values[GRAPH_RANK - 1], whole);
}

double graph_arc_width(enum graph_width kind, double share, double smallest)
{
	double low = smallest > SHARE_MIN ? smallest : SHARE_MIN;

	switch (kind) {
	case GRAPH_WIDTH_LINEAR:
		return fmin(10, fmax(1, ceil(share * 10 - 1e-9)));
	case GRAPH_WIDTH_LOG:
		return fmin(WIDTH_MAX, fmax(1, log2(1000 * share + .0001)));
	case GRAPH_WIDTH_ADAPTIVE:
		if (low >= 1)
			return WIDTH_MAX;
		return fmax(1, WIDTH_MAX - (WIDTH_MAX - 1) * log2(fmax(share, low)) / log2(low));
	default:
		return 1;
	}
}

/* ---- pairs of caller and callee ---- */

static uint32_t routine_at(const struct calltree *t, uint32_t node)
{
	uint32_t routine = calltree_get(t, node)->routine;

	return calltree_get_routine(t, routine)->is_root ? GRAPH_PROGRAM : routine;
}

static void add_to_link(
	struct link *link, const struct calltree_node *node, const struct flat_row *row)
{
	struct graph_arc *arc = &link->arc;

	arc->calls += node->calls;
	arc->has_calls |= !node->sampled;
	arc->is_exact |= row->exact && node->exact;
	if (node->rl > 1) {
		arc->is_recursive = true;
		return;
	}
	link->has_plain = true;
	arc->has_cum |= !row->exact || node->exact;
	if (!row->exact)
		arc->cum += node->sampled_cum;
	else if (node->exact)
		arc->cum += node->cum;
}

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	return ORDER(x->caller, y->caller) ?: ORDER(y->arc.cum, x->arc.cum)
		       ?: ORDER(y->arc.calls, x->arc.calls) ?: ORDER(x->callee, y->callee);
}

static void make_links(struct grapher *m)
{
	struct map index = {0}; /* caller, callee -> link + 1 */
	size_t n_routines = calltree_n_routines(m->t);

	for (uint32_t id = 1; id < calltree_n_nodes(m->t); id++) {
		const struct calltree_node *node = calltree_get(m->t, id);
		uint32_t caller;
		uint64_t *at;

		if (!node->parent)
			continue;
		caller = routine_at(m->t, node->parent);
		at = map_ensure(&index, (uint64_t)caller << 32 | node->routine, NULL);
		if (!*at) {
			struct link link = {.caller = caller, .callee = node->routine};

			vec_push(&m->links, link);
			*at = m->links.n;
		}
		add_to_link(&m->links.v[*at - 1], node, m->row_of[node->routine]);
	}
	map_release(&index);
	for (size_t i = 0; i < m->links.n;
		i++) /* what is within another call alone has nothing of its own */
		m->links.v[i].arc.has_cum |= !m->links.v[i].has_plain;
	vec_sort(&m->links, compare_links);
	m->first_link = mem_calloc(n_routines + 1, sizeof(*m->first_link));
	for (size_t i = 0; i < m->links.n; i++)
		m->first_link[m->links.v[i].caller + 1]++;
	for (size_t r = 1; r <= n_routines; r++)
		m->first_link[r] += m->first_link[r - 1];
}

/* ---- what is shown ---- */

static uint64_t cum_of(const struct grapher *m, uint32_t routine)
{
	if (routine == GRAPH_PROGRAM)
		return m->total;
	return m->row_of[routine] ? m->row_of[routine]->cum : 0;
}

static bool passes(const struct grapher *m, uint32_t routine)
{
	return (long double)cum_of(m, routine) * 1000 >= (long double)m->g->filter * m->total;
}

static bool shows(const struct grapher *m, enum graph_state state, uint32_t callee)
{
	return state == GRAPH_OPEN || (state == GRAPH_FILTERED && passes(m, callee));
}

static void choose_filter(struct grapher *m, const struct flat *flat)
{
	uint64_t *values = mem_calloc(flat->n_rows + 1, sizeof(*values));
	size_t n = 0;

	for (size_t i = 0; i < flat->n_rows; i++)
		if (!calltree_get_routine(m->t, flat->rows[i].routine)->is_root)
			values[n++] = flat->rows[i].cum;
	m->g->n_functions = n;
	m->g->filter = m->q->filter <= GRAPH_FILTER_MAX ? m->q->filter
							: graph_filter_auto(values, n, m->total);
	free(values);
}

static bool add_box(struct grapher *m, uint32_t routine)
{
	bool has_callees = m->first_link[routine] < m->first_link[routine + 1];
	struct graph_function f = {.routine = routine,
		.state = has_callees ? m->state_of[routine] : GRAPH_LEAF,
		.n_callees = m->first_link[routine + 1] - m->first_link[routine]};

	if (m->box_of[routine])
		return true;
	if (m->functions.n == m->q->max_boxes)
		return false;
	f.row.cum = m->total;
	if (routine != GRAPH_PROGRAM)
		f.row = *m->row_of[routine];
	vec_push(&m->functions, f);
	m->box_of[routine] = (uint32_t)m->functions.n;
	return true;
}

/* Nearest to the program first, of each box the dearest callees first: what does not fit is farthest away. */
static void find_boxes(struct grapher *m)
{
	add_box(m, GRAPH_PROGRAM);
	for (size_t b = 0; b < m->functions.n; b++) {
		struct graph_function f = m->functions.v[b];

		for (uint32_t i = m->first_link[f.routine]; i < m->first_link[f.routine + 1]; i++) {
			uint32_t callee = m->links.v[i].callee;

			if (callee == f.routine)
				m->functions.v[b].is_recursive = true;
			else if (shows(m, f.state, callee) && !add_box(m, callee))
				m->g->n_hidden++;
		}
	}
	m->g->functions = m->functions.v;
}

/* ---- boxes and lines ---- */

static size_t count_lines(const struct grapher *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->links.n; i++)
		n += m->box_of[m->links.v[i].caller] && m->box_of[m->links.v[i].callee];
	return n;
}

static void make_lines(struct grapher *m)
{
	struct graph_layout *layout = &m->g->layout;
	size_t n = count_lines(m);

	layout->lines = mem_calloc(n + 1, sizeof(*layout->lines));
	m->g->arcs = mem_calloc(n + 1, sizeof(*m->g->arcs));
	for (size_t b = 0; b < m->functions.n; b++) {
		struct graph_function *f = &m->functions.v[b];

		for (uint32_t i = m->first_link[f->routine]; i < m->first_link[f->routine + 1];
			i++) {
			const struct link *link = &m->links.v[i];
			uint32_t to = m->box_of[link->callee];

			if (!to || link->callee == f->routine || !shows(m, f->state, link->callee))
				continue;
			f->n_shown++;
			m->g->arcs[layout->n_lines] = link->arc;
			layout->lines[layout->n_lines++] =
				(struct graph_line){.from = (uint32_t)b, .to = to - 1};
		}
	}
}

static void make_boxes(struct grapher *m)
{
	struct graph_layout *layout = &m->g->layout;
	const struct graph_question *q = m->q;

	layout->n_boxes = m->functions.n;
	layout->boxes = mem_calloc(layout->n_boxes, sizeof(*layout->boxes));
	for (size_t b = 0; b < layout->n_boxes; b++) {
		uint32_t routine = m->functions.v[b].routine;
		const char *name = routine ? calltree_get_routine(m->t, routine)->name : "program";
		size_t chars = strlen(name);

		chars = (chars < q->name_chars ? chars : q->name_chars) + q->mark_chars;
		layout->boxes[b].width = BOX_PADDING + (double)chars * q->char_width;
		layout->boxes[b].height = q->box_height;
	}
	for (size_t i = 0; i < q->n_places; i++) {
		uint32_t routine = q->places[i].routine;
		uint32_t box = routine < calltree_n_routines(m->t) ? m->box_of[routine] : 0;

		if (!box)
			continue;
		layout->boxes[box - 1].has_place = true;
		layout->boxes[box - 1].old_y = q->places[i].y;
	}
	layout->layer_gap = LAYER_GAP;
	layout->box_gap = BOX_GAP;
}

static void set_widths(struct call_graph *g)
{
	double smallest = 1;

	for (size_t i = 0; i < g->layout.n_lines; i++) {
		struct graph_arc *arc = &g->arcs[i];

		arc->share = g->whole ? fmin(1, (double)arc->cum / (double)g->whole) : 0;
		if (arc->share < smallest)
			smallest = arc->share;
	}
	for (size_t i = 0; i < g->layout.n_lines; i++)
		for (int k = 0; k < N_GRAPH_WIDTHS; k++)
			g->arcs[i].width[k] =
				graph_arc_width((enum graph_width)k, g->arcs[i].share, smallest);
}

static void take_choices(struct grapher *m)
{
	size_t n = calltree_n_routines(m->t);

	m->state_of = mem_calloc(n + 1, sizeof(*m->state_of));
	for (size_t r = 0; r < n; r++)
		m->state_of[r] = GRAPH_FILTERED;
	for (size_t i = 0; i < m->q->n_choices; i++)
		if (m->q->choices[i].routine < n)
			m->state_of[m->q->choices[i].routine] = m->q->choices[i].state;
}

void call_graph_init(struct call_graph *g, const struct calltree *t, const struct flat *flat,
	const struct graph_question *q)
{
	struct grapher m = {.g = g, .t = t, .q = q, .total = calltree_total(t)};
	size_t n_routines = calltree_n_routines(t);

	memset(g, 0, sizeof(*g));
	m.row_of = mem_calloc(n_routines + 1, sizeof(*m.row_of));
	m.box_of = mem_calloc(n_routines + 1, sizeof(*m.box_of));
	for (size_t i = 0; i < flat->n_rows; i++)
		m.row_of[flat->rows[i].routine] = &flat->rows[i];
	take_choices(&m);
	choose_filter(&m, flat);
	make_links(&m);
	find_boxes(&m);
	make_lines(&m);
	make_boxes(&m);
	g->whole = q->root < n_routines ? cum_of(&m, q->root) : m.total;
	set_widths(g);
	graph_layout_run(&g->layout);
	free(m.row_of);
	free(m.box_of);
	free(m.state_of);
	free(m.first_link);
	vec_release(&m.links);
}

void call_graph_release(struct call_graph *g)
{
	graph_layout_release(&g->layout);
	free(g->layout.boxes);
	free(g->layout.lines);
	free(g->functions);
	free(g->arcs);
	memset(g, 0, sizeof(*g));
}
