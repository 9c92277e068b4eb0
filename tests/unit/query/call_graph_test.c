/* SPDX-License-Identifier: MIT */
/* What the call graph shows, against figures by hand; tests/golden/average.txt is one of the trees. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

#include "query/call_graph.h"

struct world {
	struct calltree *t;
	struct flat flat;
	struct call_graph g;
	struct graph_question q;
};

static void begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->t = calltree_new();
	w->q = (struct graph_question){.filter = 0,
		.name_chars = 20,
		.char_width = 7,
		.box_height = 22,
		.max_boxes = GRAPH_BOXES_MAX};
}

static uint32_t named(struct world *w, const char *name)
{
	return calltree_routine(w->t, name, "", FRAME_KIND_NATIVE);
}

static uint32_t call(
	struct world *w, uint32_t parent, const char *name, uint64_t calls, uint64_t base)
{
	uint32_t id = calltree_child(w->t, parent, named(w, name));
	struct calltree_calls c = {.calls = calls, .base = base, .min = 1, .max = 0};

	calltree_add_calls(w->t, id, &c, true);
	return id;
}

static uint32_t thread(struct world *w)
{
	uint32_t root = calltree_root(w->t, "1_1");

	calltree_add_calls(w->t, root, &(struct calltree_calls){.calls = 1, .min = 1}, true);
	return root;
}

static void ask(struct world *w)
{
	call_graph_release(&w->g);
	call_graph_init(&w->g, w->t, &w->flat, &w->q);
}

static void end(struct world *w)
{
	call_graph_release(&w->g);
	flat_release(&w->flat);
	calltree_free(w->t);
}

/* Seconds in tenths: start > main > A > {B, C}, and both call D 40 times. */
static void average_example(struct world *w)
{
	uint32_t node;

	begin(w);
	node = call(w, call(w, call(w, thread(w), "start", 1, 1), "main", 1, 10), "A", 1, 100);
	call(w, call(w, node, "B", 10, 200), "D", 40, 300);
	call(w, call(w, node, "C", 10, 300), "D", 40, 100);
	calltree_finish(w->t);
	flat_init(&w->flat, w->t);
}

static const struct graph_function *function(const struct world *w, const char *name)
{
	for (size_t i = 0; i < w->g.layout.n_boxes; i++) {
		uint32_t r = w->g.functions[i].routine;

		if (!strcmp(r ? calltree_get_routine(w->t, r)->name : "program", name))
			return &w->g.functions[i];
	}
	return NULL;
}

static const struct graph_arc *arc(const struct world *w, const char *from, const char *to)
{
	const struct graph_function *a = function(w, from), *b = function(w, to);

	for (size_t i = 0; a && b && i < w->g.layout.n_lines; i++)
		if (&w->g.functions[w->g.layout.lines[i].from] == a &&
			&w->g.functions[w->g.layout.lines[i].to] == b)
			return &w->g.arcs[i];
	return NULL;
}

static void arcs_have_what_their_caller_is_responsible_for(void)
{
	struct world w;

	average_example(&w);
	ask(&w);
	CHECK_EQ(w.g.layout.n_boxes, 7); /* the program, start, main, A, B, C, D */
	CHECK_EQ(w.g.layout.n_lines, 7);
	CHECK_EQ(w.g.whole, 1011);
	CHECK_EQ(arc(&w, "A", "B")->cum, 500);
	CHECK_EQ(arc(&w, "A", "C")->cum, 400);
	CHECK_EQ(arc(&w, "B", "D")->cum, 300);
	CHECK_EQ(arc(&w, "C", "D")->cum, 100);
	CHECK_EQ(arc(&w, "C", "D")->calls, 40);
	CHECK_EQ(function(&w, "D")->row.cum, 400);
	CHECK_EQ(function(&w, "D")->state, GRAPH_LEAF);
	CHECK_EQ(function(&w, "A")->state, GRAPH_FILTERED);
	end(&w);
}

static void a_virtual_root_is_the_whole(void)
{
	struct world w;

	average_example(&w);
	w.q.root = named(&w, "A");
	ask(&w);
	CHECK_EQ(w.g.whole, 1000);
	CHECK(arc(&w, "A", "B")->share == .5);
	CHECK(arc(&w, "B", "D")->share == .3);
	CHECK(arc(&w, "main", "A")->share == 1);
	CHECK(arc(&w, "B", "D")->width[GRAPH_WIDTH_LINEAR] == 3);
	CHECK(fabs(arc(&w, "B", "D")->width[GRAPH_WIDTH_LOG] - 8.2288) < 1e-3); /* log2(300) */
	CHECK(arc(&w, "C", "D")->width[GRAPH_WIDTH_ADAPTIVE] == 1);		/* the smallest */
	CHECK(arc(&w, "main", "A")->width[GRAPH_WIDTH_ADAPTIVE] == 9);
	end(&w);
}

static void boxes_step_between_three_states(void)
{
	struct world w;
	struct graph_choice choice = {0};

	average_example(&w);
	choice.routine = named(&w, "A");
	w.q.filter = 100; /* 10 %: all but nothing */
	w.q.choices = &choice;
	w.q.n_choices = 1;
	choice.state = GRAPH_FOLDED;
	ask(&w);
	CHECK(function(&w, "A") && !function(&w, "B") && !function(&w, "C") && !function(&w, "D"));
	CHECK_EQ(function(&w, "A")->n_callees, 2);
	CHECK_EQ(function(&w, "A")->n_shown, 0);
	choice.state = GRAPH_FILTERED;
	w.q.filter = 200; /* B 49.5 %, C 39.6 %, D 39.6 % */
	ask(&w);
	CHECK(function(&w, "B") && function(&w, "C") && function(&w, "D"));
	end(&w);
}

static void open_boxes_show_what_the_filter_hides(void)
{
	struct world w;
	uint32_t main_node;
	struct graph_choice choice = {.state = GRAPH_OPEN};

	begin(&w);
	main_node = call(&w, thread(&w), "main", 1, 900);
	call(&w, main_node, "small", 3, 10);
	call(&w, call(&w, main_node, "large", 1, 80), "tiny", 1, 10);
	calltree_finish(w.t);
	flat_init(&w.flat, w.t);
	w.q.filter = 20; /* 2 % of 1000 */
	ask(&w);
	CHECK(function(&w, "large") && !function(&w, "small") && !function(&w, "tiny"));
	CHECK_EQ(function(&w, "large")->state, GRAPH_FILTERED); /* half, though it shows nothing */
	choice.routine = named(&w, "main");
	w.q.choices = &choice;
	w.q.n_choices = 1;
	ask(&w);
	CHECK(function(&w, "large") && function(&w, "small") && !function(&w, "tiny"));
	w.q.filter = 10; /* what is as much as the filter passes */
	w.q.n_choices = 0;
	ask(&w);
	CHECK(function(&w, "small") && function(&w, "tiny"));
	end(&w);
}

static void recursion_is_counted_once(void)
{
	struct world w;
	uint32_t node;

	begin(&w); /* f > f > g > f */
	node = call(&w, call(&w, thread(&w), "f", 1, 10), "f", 2, 20);
	call(&w, call(&w, node, "g", 1, 30), "f", 1, 40);
	calltree_finish(w.t);
	flat_init(&w.flat, w.t);
	ask(&w);
	CHECK(function(&w, "f")->is_recursive);
	CHECK_EQ(function(&w, "f")->row.cum, 100);
	CHECK_EQ(arc(&w, "program", "f")->cum, 100);
	CHECK(!arc(&w, "program", "f")->is_recursive);
	CHECK(arc(&w, "g", "f")->is_recursive);
	CHECK_EQ(arc(&w, "g", "f")->cum, 0);
	CHECK_EQ(arc(&w, "g", "f")->calls, 1);
	CHECK_EQ(arc(&w, "f", "g")->cum, 70);
	end(&w);
}

static void too_many_boxes_are_told(void)
{
	struct world w;
	uint32_t main_node;
	char name[20];

	begin(&w);
	main_node = call(&w, thread(&w), "main", 1, 1);
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		call(&w, main_node, name, 1, (uint64_t)(100 + i));
	}
	calltree_finish(w.t);
	flat_init(&w.flat, w.t);
	w.q.max_boxes = 12;
	ask(&w);
	CHECK_EQ(w.g.layout.n_boxes, 12);
	CHECK_EQ(w.g.n_hidden, 40);
	CHECK(function(&w, "f49") && !function(&w, "f0")); /* the dearest are there */
	CHECK_EQ(w.g.n_functions, 51);
	end(&w);
}

/* ---- formulas ---- */

static void filter_steps_round_up(void)
{
	CHECK_EQ(graph_filter_step(0, 1000), 0);
	CHECK_EQ(graph_filter_step(1, 1000), 1);   /* 0.1 % */
	CHECK_EQ(graph_filter_step(11, 10000), 2); /* 0.11 % */
	CHECK_EQ(graph_filter_step(20, 1000), 20); /* 2 % */
	CHECK_EQ(graph_filter_step(21, 1000), 30); /* 2.1 %: by 1 % from there on */
	CHECK_EQ(graph_filter_step(30, 1000), 30);
	CHECK_EQ(graph_filter_step(301, 1000), 200); /* at most 20 % */
	CHECK_EQ(graph_filter_step(5, 0), 0);
}

static void the_filter_shows_thirty_functions(void)
{
	uint64_t values[40];

	for (size_t i = 0; i < 40; i++)
		values[i] = 100 * (i + 1);		     /* 100 .. 4000; rank 30 is 1100 */
	CHECK_EQ(graph_filter_auto(values, 40, 100000), 11); /* 1.1 % */
	CHECK_EQ(graph_filter_auto(values, 40, 50000), 30);  /* 2.2 %, rounded up */
	CHECK_EQ(graph_filter_auto(values, 29, 100000), 0);  /* there are no thirty */
	for (size_t i = 0; i < 40; i++)
		values[i] = i < 10 ? 900 : 50; /* many of one rank */
	CHECK_EQ(graph_filter_auto(values, 40, 10000), 5);
}

static void widths_of_arcs(void)
{
	CHECK(graph_arc_width(GRAPH_WIDTH_NONE, .7, .1) == 1);
	CHECK(graph_arc_width(GRAPH_WIDTH_LINEAR, 0, 0) == 1);
	CHECK(graph_arc_width(GRAPH_WIDTH_LINEAR, .1, 0) == 1);
	CHECK(graph_arc_width(GRAPH_WIDTH_LINEAR, .11, 0) == 2);
	CHECK(graph_arc_width(GRAPH_WIDTH_LINEAR, .3, 0) == 3);
	CHECK(graph_arc_width(GRAPH_WIDTH_LINEAR, 1, 0) == 10);
	CHECK(graph_arc_width(GRAPH_WIDTH_LOG, 0, 0) == 1);
	CHECK(graph_arc_width(GRAPH_WIDTH_LOG, .001, 0) == 1);		   /* log2(1.0001) */
	CHECK(fabs(graph_arc_width(GRAPH_WIDTH_LOG, .016, 0) - 4) < 1e-3); /* log2(16) */
	CHECK(fabs(graph_arc_width(GRAPH_WIDTH_LOG, .128, 0) - 7) < 1e-3); /* log2(128) */
	CHECK(graph_arc_width(GRAPH_WIDTH_LOG, 1, 0) == 9);		   /* 9.97 is too wide */
	CHECK(graph_arc_width(GRAPH_WIDTH_ADAPTIVE, .0625, .0625) == 1);
	CHECK(fabs(graph_arc_width(GRAPH_WIDTH_ADAPTIVE, .25, .0625) - 5) <
		1e-9); /* half of the way */
	CHECK(graph_arc_width(GRAPH_WIDTH_ADAPTIVE, 1, .0625) == 9);
	CHECK(graph_arc_width(GRAPH_WIDTH_ADAPTIVE, 1, 1) == 9);
	CHECK(graph_arc_width(GRAPH_WIDTH_ADAPTIVE, 0, 0) == 1);
}

int main(void)
{
	static const struct test tests[] = {
		{"an arc has what its caller is responsible for, not an average",
			arcs_have_what_their_caller_is_responsible_for},
		{"shares and widths are relative to the virtual root", a_virtual_root_is_the_whole},
		{"folded boxes hide what they call", boxes_step_between_three_states},
		{"open boxes show what the filter hides", open_boxes_show_what_the_filter_hides},
		{"recursion is counted once and marked", recursion_is_counted_once},
		{"boxes that are too many are told, the dearest are shown",
			too_many_boxes_are_told},
		{"the filter is rounded up to the next step", filter_steps_round_up},
		{"the filter sets itself to the function of rank 30",
			the_filter_shows_thirty_functions},
		{"arcs are as wide as the formulas say", widths_of_arcs},
	};

	return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
