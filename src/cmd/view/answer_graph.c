/* SPDX-License-Identifier: MIT */
/* The call graph with its places, as JSON: it has hundreds of boxes, not millions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cmd/report/report.h"
#include "cmd/view/engine.h"
#include "query/call_graph.h"

#define NAME_CHARS     32
#define NAME_CHARS_MAX 200
#define SIGN_CHARS     2   /* of a difference, and a blank */
#define CHAR_WIDTH     7.0 /* of the page's font, in its pixels */
#define BOX_HEIGHT     24.0
#define BOXES_MAX      3000

struct asked {
	struct graph_question q;
	VEC(struct graph_choice) choices;
	VEC(struct graph_place) places;
};

static bool is_routine(double number)
{
	return number >= 0 && number < UINT32_MAX && number == (double)(uint32_t)number;
}

static int take_choices(struct asked *a, const struct question *q, const char *key,
	enum graph_state state, struct err *err)
{
	struct question_list list = {question_text(q, key), key};
	double routine;
	int rc;

	while ((rc = question_list_next(&list, &routine, 1, err)) > 0) {
		struct graph_choice choice = {.state = state};

		if (!is_routine(routine))
			return err_set(err, ERR_FORMAT, "%s: has no numbers of functions", key);
		choice.routine = (uint32_t)routine;
		vec_push(&a->choices, choice);
	}
	return rc;
}

static int take_places(struct asked *a, const struct question *q, struct err *err)
{
	struct question_list list = {question_text(q, "places"), "places"};
	double numbers[2];
	int rc;

	while ((rc = question_list_next(&list, numbers, 2, err)) > 0) {
		struct graph_place place = {.y = numbers[1]};

		if (!is_routine(numbers[0]))
			return err_set(err, ERR_FORMAT, "places: has no numbers of functions");
		place.routine = (uint32_t)numbers[0];
		vec_push(&a->places, place);
	}
	return rc;
}

static int take_numbers(struct asked *a, const struct question *q, struct err *err)
{
	const char *filter = question_text(q, "filter");
	uint64_t tenths = GRAPH_FILTER_AUTO, root = 0, chars = NAME_CHARS, max = BOXES_MAX;

	if (filter && strcmp(filter, "auto") != 0 && question_u64(q, "filter", &tenths, err) < 0)
		return err->code;
	if (tenths != GRAPH_FILTER_AUTO && tenths > GRAPH_FILTER_MAX)
		return err_set(err, ERR_FORMAT, "filter: more than %u tenths of a percent",
			GRAPH_FILTER_MAX);
	if (question_u64(q, "root", &root, err) < 0 || question_u64(q, "names", &chars, err) < 0 ||
		question_u64(q, "max", &max, err) < 0)
		return err->code;
	a->q = (struct graph_question){.filter = (uint32_t)tenths,
		.root = root < UINT32_MAX ? (uint32_t)root : UINT32_MAX,
		.name_chars = chars < NAME_CHARS_MAX ? (uint32_t)chars : NAME_CHARS_MAX,
		.char_width = CHAR_WIDTH,
		.box_height = BOX_HEIGHT,
		.max_boxes = max && max < BOXES_MAX ? (uint32_t)max : BOXES_MAX};
	return 0;
}

/* ---- the answer ---- */

/* What a graph is of: a tree; of two traces the tree of both, whose figures are for widths alone. */
struct graphed {
	const struct calltree *tree;
	const struct profile *profile;	    /* of two, the newer one */
	const struct view_comparison *both; /* NULL: of one */
	uint64_t total;
};

/* The newer trace's, or the older one's when it is in that alone. */
static const struct flat_row *row_of(const struct graphed *of, const struct graph_function *f)
{
	const struct tree_diff_row *row;

	if (!of->both || !f->routine)
		return &f->row;
	row = &of->both->diff->rows[f->routine];
	return &row->sides[row->is_there[DIFF_AFTER] ? DIFF_AFTER : DIFF_BEFORE];
}

static bool is_exact(const struct graphed *of, const struct graph_function *f)
{
	return f->routine ? row_of(of, f)->exact : calltree_has_events(of->profile->tree);
}

static void put_figures(struct json *j, const struct graphed *of, const struct graph_function *f)
{
	const struct report report = {.profile = of->profile};
	const struct flat_row *row = row_of(of, f);
	bool is_measured;

	if (of->both && f->routine) {
		const struct tree_diff_row *both = &of->both->diff->rows[f->routine];

		view_put_function_diff(j, of->both, both);
		row = &both->sides[DIFF_AFTER];
	}
	is_measured = !f->routine || report_is_measured(&report, row->exact);
	json_u64_if(j, "calls", row->has_events && report_has_calls(&report), row->calls);
	json_u64_if(j, "base", is_measured, row->base);
	json_u64_if(j, "cum", is_measured, of->both && !f->routine ? of->total : row->cum);
	json_bool(j, "exact", is_exact(of, f));
}

static void put_box(struct json *j, const struct graphed *of, const struct call_graph *g, size_t i)
{
	static const char *const states[] = {"leaf", "folded", "filtered", "open"};
	const struct graph_function *f = &g->functions[i];
	const struct graph_box *box = &g->layout.boxes[i];
	const struct calltree_routine *r = calltree_get_routine(of->tree, f->routine);

	json_object_begin(j, NULL);
	json_u64(j, "routine", f->routine);
	json_string(j, "name", f->routine ? r->name : "program");
	json_string(j, "image", f->routine && *r->image ? r->image : NULL);
	json_string(j, "state", states[f->state]);
	put_figures(j, of, f);
	json_bool(j, "recursive", f->is_recursive);
	json_u64(j, "callees", f->n_callees);
	json_u64(j, "shown", f->n_shown);
	json_u64(j, "layer", box->layer);
	json_double(j, "x", box->x);
	json_double(j, "y", box->y);
	json_double(j, "w", box->width);
	json_double(j, "h", box->height);
	json_object_end(j);
}

static void put_arc(struct json *j, const struct graphed *of, const struct call_graph *g, size_t i)
{
	static const char *const widths[] = {"none", "linear", "log", "adaptive"};
	const struct graph_arc *arc = &g->arcs[i];
	const struct graph_line *line = &g->layout.lines[i];
	const struct report report = {.profile = of->profile};
	bool is_exact_arc = of->both ? is_exact(of, &g->functions[line->to]) : arc->is_exact;

	json_object_begin(j, NULL);
	json_u64(j, "from", line->from);
	json_u64(j, "to", line->to);
	json_u64_if(j, "calls", arc->has_calls, arc->calls);
	json_u64_if(j, "cum", arc->has_cum && report_is_measured(&report, is_exact_arc), arc->cum);
	json_double(j, "share", arc->share);
	json_bool(j, "exact", is_exact_arc);
	json_bool(j, "recursive", arc->is_recursive);
	json_bool(j, "back", line->is_back);
	json_object_begin(j, "width");
	for (int k = 0; k < N_GRAPH_WIDTHS; k++)
		json_double(j, widths[k], arc->width[k]);
	json_object_end(j);
	json_array_begin(j, "points");
	for (uint32_t k = 0; k < line->n_points; k++) {
		json_double(j, NULL, g->layout.points[line->first_point + k].x);
		json_double(j, NULL, g->layout.points[line->first_point + k].y);
	}
	json_array_end(j);
	json_object_end(j);
}

/* What shares are of: of two traces the newer one's. */
static uint64_t whole_of(const struct graphed *of, const struct call_graph *g, uint32_t root)
{
	if (!of->both)
		return g->whole;
	return root && root < calltree_n_routines(of->tree)
		       ? of->both->diff->rows[root].sides[DIFF_AFTER].cum
		       : of->total;
}

static void put_graph(
	FILE *out, const struct graphed *of, const struct call_graph *g, uint32_t root)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j, NULL);
	json_u64(&j, "filter", g->filter);
	json_u64(&j, "functions", g->n_functions);
	json_u64(&j, "hidden", g->n_hidden);
	json_u64(&j, "root", root);
	json_u64(&j, "whole", whole_of(of, g, root));
	json_u64(&j, "total", of->total);
	json_double(&j, "w", g->layout.width);
	json_double(&j, "h", g->layout.height);
	json_array_begin(&j, "boxes");
	for (size_t i = 0; i < g->layout.n_boxes; i++)
		put_box(&j, of, g, i);
	json_array_end(&j);
	json_array_begin(&j, "arcs");
	for (size_t i = 0; i < g->layout.n_lines; i++)
		put_arc(&j, of, g, i);
	json_array_end(&j);
	json_object_end(&j);
}

static int answer(struct asked *a, const struct graphed *of, struct buf *out, struct err *err)
{
	struct call_graph g;
	struct flat flat;
	char *text = NULL;
	size_t n = 0;
	FILE *file;

	file = open_memstream(&text, &n);
	if (!file)
		return err_set(err, ERR_FAILED, "no memory for the answer");
	flat_init(&flat, of->tree);
	call_graph_init(&g, of->tree, &flat, &a->q);
	put_graph(file, of, &g, a->q.root);
	call_graph_release(&g);
	flat_release(&flat);
	fclose(file);
	buf_put(out, text, n);
	free(text);
	return 0;
}

static int take_and_answer(
	const struct question *q, const struct graphed *of, struct buf *out, struct err *err)
{
	struct asked a = {0};
	int rc = take_numbers(&a, q, err);

	a.q.mark_chars = of->both ? SIGN_CHARS : 0;
	if (rc >= 0)
		rc = take_choices(&a, q, "folded", GRAPH_FOLDED, err);
	if (rc >= 0)
		rc = take_choices(&a, q, "open", GRAPH_OPEN, err);
	if (rc >= 0)
		rc = take_places(&a, q, err);
	a.q.choices = a.choices.v;
	a.q.n_choices = a.choices.n;
	a.q.places = a.places.v;
	a.q.n_places = a.places.n;
	if (rc >= 0)
		rc = answer(&a, of, out, err);
	vec_release(&a.choices);
	vec_release(&a.places);
	return rc;
}

static int check_calls(const struct profile *p, struct err *err)
{
	return p->counts.is_flat ? err_set(err, ERR_NOT_FOUND,
					   "%s is known by function, not by call", p->metric)
				 : 0;
}

int view_answer_graph(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct graphed of = {0};
	struct profile *p;

	if (view_profile(e, q, &p, err) < 0 || check_calls(p, err) < 0)
		return err->code;
	of.tree = p->tree;
	of.profile = p;
	of.total = p->total;
	return take_and_answer(q, &of, out, err);
}

int view_answer_diff_graph(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct view_comparison c;
	struct graphed of = {.both = &c};

	if (view_compare(e, q, &c, err) < 0 || check_calls(c.sides[DIFF_BEFORE], err) < 0 ||
		check_calls(c.sides[DIFF_AFTER], err) < 0)
		return err->code;
	of.tree = c.diff->both;
	of.profile = c.sides[DIFF_AFTER];
	of.total = c.sides[DIFF_AFTER]->total;
	return take_and_answer(q, &of, out, err);
}
