/* SPDX-License-Identifier: MIT */
/* The tree built from events and samples, against the vectors of tests/golden. */
#include "check.h"
#include "models.h"

#include <stdlib.h>

#include "calltree/arcs.h"
#include "calltree/calltree.h"
#include "calltree/flat.h"
#include "calltree/tree_internal.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

struct event {
	uint64_t time;
	char what; /* '+' enter, '-' leave, '(' suspend, ')' resume, '0'.. change to that stack */
	const char *name;
};

/* tests/golden/events.txt */
static const struct event figure_18a[] = {
	{0, '+', "C"},
	{1, '+', "A"},
	{2, '+', "B"},
	{3, '-', "B"},
	{4, '+', "B"},
	{5, '+', "B"},
	{6, '-', "B"},
	{7, '-', "B"},
	{8, '-', "A"},
	{9, '+', "B"},
	{10, '+', "A"},
	{11, '+', "B"},
	{12, '+', "A"},
	{13, '-', "A"},
	{14, '-', "B"},
	{15, '+', "X"},
	{16, '-', "X"},
	{17, '-', "A"},
	{18, '-', "B"},
	{19, '-', "C"},
};

static uint32_t routine(struct calltree *t, const char *name)
{
	return calltree_routine(t, name, "", FRAME_KIND_NATIVE);
}

static struct calltree *play(
	const struct event *events, size_t n, uint64_t *unmatched, uint64_t *open)
{
	struct calltree *t = calltree_new();
	struct calltree_thread *thread =
		calltree_thread_new(t, calltree_root(t, "pid_tid"), events[0].time);

	for (size_t i = 0; i < n; i++) {
		const struct event *e = &events[i];

		if (e->what == '+')
			calltree_enter(thread, e->time, routine(t, e->name));
		else if (e->what == '-')
			calltree_leave(thread, e->time, routine(t, e->name));
		else if (e->what == '(')
			calltree_suspend(thread, e->time);
		else if (e->what >= '0' && e->what <= '9')
			calltree_change_stack(thread, e->time, (uint64_t)e->what - '0');
		else
			calltree_resume(thread, e->time);
	}
	calltree_thread_end(thread, events[n - 1].time);
	if (unmatched)
		*unmatched = calltree_thread_unmatched(thread);
	if (open)
		*open = thread->n_open_at_end;
	calltree_thread_free(thread);
	calltree_finish(t);
	return t;
}

/* "level rl calls base cum name" of every node, depth first. */
static void print_tree(const struct calltree *t, char *out, size_t n)
{
	uint32_t id = calltree_first_root(t);
	size_t used = 0;

	out[0] = 0;
	while (id) {
		const struct calltree_node *node = calltree_get(t, id);

		used += (size_t)snprintf(out + used, n - used, "%u %u %d %d %d %s\n", node->level,
			node->rl, (int)node->calls, (int)node->base, (int)node->cum,
			calltree_get_routine(t, node->routine)->name);
		if (node->first_child) {
			id = node->first_child;
			continue;
		}
		while (id && !calltree_get(t, id)->next_sibling)
			id = calltree_get(t, id)->parent;
		id = id ? calltree_get(t, id)->next_sibling : 0;
	}
}

static struct flat_row row_of(const struct calltree *t, const char *name)
{
	for (uint32_t r = 1; r < calltree_n_routines(t); r++)
		if (!strcmp(calltree_get_routine(t, r)->name, name))
			return flat_sum_routine(t, r);
	CHECK(!"the routine is there");
	return (struct flat_row){.routine = 0};
}

static void tree_of_events(void)
{
	struct calltree *t = play(figure_18a, N(figure_18a), NULL, NULL);
	char text[1000];

	print_tree(t, text, sizeof(text));
	CHECK_STR(text, "0 1 1 0 19 pid_tid\n1 1 1 3 19 C\n2 1 1 3 7 A\n3 1 2 3 4 B\n4 2 1 1 1 B\n"
			"2 1 1 2 9 B\n3 1 1 3 7 A\n4 2 1 2 3 B\n5 2 1 1 1 A\n4 1 1 1 1 X\n");
	CHECK_EQ(calltree_total(t), 19);
	CHECK(calltree_has_events(t) && !calltree_has_samples(t));
	calltree_free(t);
}

static void flat_of_events(void)
{
	struct calltree *t = play(figure_18a, N(figure_18a), NULL, NULL);
	struct flat flat;
	char text[300];
	size_t used = 0;

	flat_init(&flat, t);
	for (size_t i = 0; i < flat.n_rows; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%d %d %d %d %s\n",
			(int)flat.rows[i].calls, (int)flat.rows[i].base, (int)flat.rows[i].cum,
			(int)flat.rows[i].cum2,
			calltree_get_routine(t, flat.rows[i].routine)->name);
	CHECK_STR(text, "1 0 19 19 pid_tid\n1 3 19 19 C\n3 7 14 15 A\n5 8 13 17 B\n1 1 1 1 X\n");
	CHECK_EQ(row_of(t, "B").min, 1); /* the calls of B cost 1, 3, 1, 9 and 3 */
	CHECK_EQ(row_of(t, "B").max, 9);
	flat_release(&flat);
	calltree_free(t);
}

static void print_arcs(const struct arcs *arcs, const struct calltree *t, char *text, size_t n)
{
	size_t used = 0;

	for (size_t s = 0; s < arcs->n_stanzas; s++) {
		const struct arc_stanza *stanza = &arcs->stanzas[s];

		for (size_t i = 0; i <= stanza->n_parents + stanza->n_children; i++) {
			bool is_child = i > stanza->n_parents;
			const struct arc_row *row = &arcs->rows.v[stanza->first_row + i - is_child];

			if (i == stanza->n_parents)
				used += (size_t)snprintf(text + used, n - used,
					"Self %d %d %d/%d %s\n", (int)stanza->self.calls,
					(int)stanza->self.base, (int)stanza->self.cum,
					(int)stanza->self.cum2,
					calltree_get_routine(t, stanza->self.routine)->name);
			else
				used += (size_t)snprintf(text + used, n - used,
					"%s%s %d %d %d %s\n", row->is_recursive ? "r" : "",
					is_child ? "Child" : "Parent", (int)row->calls,
					(int)row->base, (int)row->cum,
					calltree_get_routine(t, row->routine)->name);
		}
	}
}

static void arcs_of_events(void)
{
	struct calltree *t = play(figure_18a, N(figure_18a), NULL, NULL);
	struct flat flat;
	struct arcs arcs;
	char text[1000];

	flat_init(&flat, t);
	arcs_init(&arcs, t, &flat);
	CHECK(arcs_check(&arcs, t, NULL));
	print_arcs(&arcs, t, text, sizeof(text));
	CHECK_STR(text,
		"Self 1 0 19/19 pid_tid\nChild 1 3 19 C\n"
		"Parent 1 3 19 pid_tid\nSelf 1 3 19/19 C\nChild 1 2 9 B\nChild 1 3 7 A\n"
		"Parent 1 3 7 C\nParent 1 3 7 B\nrParent 1 1 1 B\nSelf 3 7 14/15 A\nChild 3 5 7 B\n"
		"Child 1 1 1 X\n"
		"Parent 2 3 4 A\nrParent 1 2 3 A\nParent 1 2 9 C\nrParent 1 1 1 B\nSelf 5 8 13/17 B\n"
		"Child 1 3 7 A\nrChild 1 1 1 A\nChild 1 1 1 B\n"
		"Parent 1 1 1 A\nSelf 1 1 1/1 X\n");
	arcs_release(&arcs);
	flat_release(&flat);
	calltree_free(t);
}

static void broken_arcs_are_noticed(void)
{
	struct calltree *t = play(figure_18a, N(figure_18a), NULL, NULL);
	struct flat flat;
	struct arcs arcs;
	size_t broken = 99;

	flat_init(&flat, t);
	arcs_init(&arcs, t, &flat);
	for (size_t i = 0; i < arcs.rows.n; i++) {
		arcs.rows.v[i].cum++;
		CHECK(!arcs_check(&arcs, t, &broken));
		CHECK(arcs.stanzas[broken].first_row <= i);
		arcs.rows.v[i].cum--;
	}
	arcs.stanzas[2].self.calls++;
	CHECK(!arcs_check(&arcs, t, &broken));
	CHECK_EQ(broken, 2);
	arcs_release(&arcs);
	flat_release(&flat);
	calltree_free(t);
}

/* tests/golden/times.txt, figure 18C and, with an interrupt from 5 to 6, figure 18D. */
static void interrupts_count_as_elapsed_only(void)
{
	static const struct event plain[] = {
		{0, '+', "A"}, {1, '+', "B"}, {9, '-', "B"}, {10, '-', "A"}};
	static const struct event interrupted[] = {{0, '+', "A"}, {1, '+', "B"}, {5, '(', ""},
		{6, ')', ""}, {10, '-', "B"}, {11, '-', "A"}};
	struct calltree *t = play(plain, N(plain), NULL, NULL);
	struct flat_row a = row_of(t, "A"), b = row_of(t, "B");

	CHECK(a.base == 2 && a.cum == 10 && a.elapsed == 10);
	CHECK(b.base == 8 && b.cum == 8 && b.elapsed == 8);
	calltree_free(t);
	t = play(interrupted, N(interrupted), NULL, NULL);
	a = row_of(t, "A");
	b = row_of(t, "B");
	CHECK(a.base == 2 && a.cum == 10 && a.elapsed == 11);
	CHECK(b.base == 8 && b.cum == 8 && b.elapsed == 9);
	calltree_free(t);
}

static void resources_are_charged_to_the_current_routine(void)
{
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);
	struct flat_row a, b;

	calltree_thread_charge_time(thread, false);
	calltree_enter(thread, 0, routine(t, "A"));
	calltree_add_resource(thread, 1);
	calltree_enter(thread, 10, routine(t, "B"));
	calltree_add_resource(thread, 3);
	calltree_leave(thread, 20, routine(t, "B"));
	calltree_add_resource(thread, 1);
	calltree_leave(thread, 30, routine(t, "A"));
	calltree_thread_end(thread, 30);
	calltree_thread_free(thread);
	calltree_finish(t);
	a = row_of(t, "A");
	b = row_of(t, "B");
	CHECK(a.base == 2 && a.cum == 5 && a.elapsed == 30);
	CHECK(b.base == 3 && b.cum == 3 && b.elapsed == 10);
	calltree_free(t);
}

static void deep_recursion(void)
{
	enum { DEPTH = 100000 };
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);
	uint32_t f = routine(t, "f");
	struct flat_row row;
	uint64_t time = 0;

	for (int i = 0; i < DEPTH; i++)
		calltree_enter(thread, time++, f);
	for (int i = 0; i < DEPTH; i++)
		CHECK(calltree_leave(thread, time++, f));
	calltree_thread_end(thread, time - 1);
	CHECK_EQ(calltree_thread_unmatched(thread), 0);
	calltree_thread_free(thread);
	calltree_finish(t);
	row = flat_sum_routine(t, f);
	CHECK_EQ(row.calls, DEPTH);
	CHECK_EQ(row.cum, 2 * DEPTH - 1);
	CHECK_EQ(row.base, row.cum);
	CHECK_EQ(calltree_get(t, (uint32_t)calltree_n_nodes(t) - 1)->rl, DEPTH);
	CHECK_EQ(calltree_get(t, (uint32_t)calltree_n_nodes(t) - 1)->level, DEPTH);
	calltree_free(t);
}

static void unmatched_events(void)
{
	static const struct event odd[] = {{0, '+', "A"}, {1, '-', "Z"}, {2, '+', "B"},
		{3, '+', "C"}, {5, '-', "A"}, {6, '-', "B"}, {7, '+', "D"}, {9, '+', "E"}};
	uint64_t unmatched, open;
	struct calltree *t = play(odd, N(odd), &unmatched, &open);
	char text[500];

	/* Z and the late leave of B; B and C closed by A. */
	CHECK_EQ(unmatched, 4);
	CHECK_EQ(open, 2); /* D and E */
	print_tree(t, text, sizeof(text));
	CHECK_STR(text, "0 1 1 2 9 pid_tid\n1 1 1 2 5 A\n2 1 1 1 3 B\n3 1 1 2 2 C\n1 1 1 2 2 D\n"
			"2 1 1 0 0 E\n");
	calltree_free(t);
}

static void the_root_cannot_be_left(void)
{
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);

	CHECK(!calltree_leave(thread, 1, routine(t, "pid_tid")));
	calltree_enter(thread, 2, routine(t, "pid_tid"));
	CHECK(calltree_leave(thread, 3, routine(t, "pid_tid")));
	calltree_thread_end(thread, 3);
	calltree_enter(thread, 4, routine(t, "A"));
	CHECK(!calltree_leave(thread, 5, routine(t, "A")));
	calltree_thread_end(thread, 6);
	calltree_thread_free(thread);
	calltree_finish(t);
	CHECK_EQ(calltree_total(t), 3);
	calltree_free(t);
}

static void times_that_go_back_charge_nothing(void)
{
	static const struct event odd[] = {
		{10, '+', "A"}, {5, '+', "B"}, {12, '-', "B"}, {11, '-', "A"}};
	struct calltree *t = play(odd, N(odd), NULL, NULL);

	CHECK_EQ(row_of(t, "A").cum, 2);
	CHECK_EQ(row_of(t, "B").cum, 2);
	CHECK_EQ(calltree_total(t), 2);
	calltree_free(t);
}

static void samples_make_a_tree(void)
{
	struct calltree *t = calltree_new();
	uint32_t root = calltree_root(t, "pid_tid"), c = calltree_child(t, root, routine(t, "C"));
	uint32_t a = calltree_child(t, c, routine(t, "A"));

	CHECK_EQ(calltree_child(t, root, routine(t, "C")), c);
	calltree_add_sample(t, c, 20, 2);
	calltree_add_sample(t, a, 30, 3);
	calltree_finish(t);
	calltree_finish(t);
	CHECK_EQ(calltree_get(t, c)->cum, 50);
	CHECK_EQ(calltree_get(t, c)->base, 20);
	CHECK_EQ(calltree_get(t, c)->samples, 2);
	CHECK_EQ(calltree_total(t), 50);
	CHECK(calltree_get(t, a)->sampled && calltree_has_samples(t) && !calltree_has_events(t));
	CHECK(!row_of(t, "A").has_events && !row_of(t, "A").has_range);
	calltree_free(t);
}

/* tests/golden/merge.txt: one sample of weight 1 below Event1 and Event2. */
static struct calltree *merge_golden(bool by_samples)
{
	static const char *const stack[] = {
		"Event1", "SampleA", "SampleB", "Event2", "SampleC", "SampleD", "SampleE"};
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);
	uint32_t routines[N(stack)];

	for (size_t i = 0; i < N(stack); i++)
		routines[i] = routine(t, stack[i]);
	if (by_samples) {
		calltree_thread_charge_time(thread, false);
		calltree_measure_by_samples(t);
	}
	calltree_enter(thread, 0, routine(t, "Event1"));
	calltree_enter(thread, 10, routine(t, "Event2"));
	calltree_merge_sample(thread, routines, N(stack), 1, 1);
	calltree_thread_end(thread, 30);
	calltree_thread_free(thread);
	calltree_finish(t);
	return t;
}

static void samples_hang_below_events(void)
{
	struct calltree *t = merge_golden(true);
	char text[500];

	print_tree(t, text, sizeof(text));
	CHECK_STR(text,
		"0 1 1 0 1 pid_tid\n1 1 1 0 1 Event1\n2 1 1 0 1 Event2\n3 1 0 0 1 SampleC\n"
		"4 1 0 0 1 SampleD\n5 1 0 1 1 SampleE\n2 1 0 0 0 SampleA\n3 1 0 0 0 SampleB\n");
	for (uint32_t id = 1; id < calltree_n_nodes(t); id++) {
		const struct calltree_node *node = calltree_get(t, id);
		const char *name = calltree_get_routine(t, node->routine)->name;

		CHECK_EQ(node->sampled, !strncmp(name, "Sample", 6));
		CHECK_EQ(node->occurrences, node->sampled);
		CHECK_EQ(calltree_begins_chain(t, id),
			!strcmp(name, "SampleA") || !strcmp(name, "SampleC"));
	}
	calltree_free(t);
}

static void both_kinds_of_figure_stand_apart(void)
{
	struct calltree *t = merge_golden(false);
	struct flat_row event = row_of(t, "Event2"), sampled = row_of(t, "SampleD");
	struct flat flat;
	struct arcs arcs;
	char text[500];

	print_tree(t, text, sizeof(text));
	CHECK_STR(text,
		"0 1 1 0 30 pid_tid\n1 1 1 10 30 Event1\n2 1 1 20 20 Event2\n3 1 0 0 1 SampleC\n"
		"4 1 0 0 1 SampleD\n5 1 0 1 1 SampleE\n2 1 0 0 0 SampleA\n3 1 0 0 0 SampleB\n");
	CHECK_EQ(calltree_total(t), 30); /* samples add nothing to it */
	CHECK(event.exact && event.base == 20 && event.cum == 20);
	CHECK(event.sampled.base == 0 && event.sampled.cum == 1);
	CHECK(!sampled.exact && !sampled.has_events && sampled.base == 0 && sampled.cum == 1);
	flat_init(&flat, t);
	arcs_init(&arcs, t, &flat);
	CHECK(arcs_check(&arcs, t, NULL));
	for (size_t i = 0; i < arcs.rows.n; i++) {
		arcs.rows.v[i].sampled_cum++;
		CHECK(!arcs_check(&arcs, t, NULL));
		arcs.rows.v[i].sampled_cum--;
	}
	arcs_release(&arcs);
	flat_release(&flat);
	calltree_free(t);
}

/* What is exported has each unit once: chains take theirs out of the event around them. */
static void exported_weights_add_up(void)
{
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);
	uint32_t f = routine(t, "f"), g = routine(t, "g"), h = routine(t, "h");
	uint64_t *weights, sum = 0;

	calltree_enter(thread, 0, f);
	calltree_merge_sample(thread, (uint32_t[]){f, h}, 2, 4, 1); /* of 10 */
	calltree_leave(thread, 10, f);
	calltree_enter(thread, 10, g);
	calltree_merge_sample(thread, (uint32_t[]){g, h}, 2, 200, 1); /* more than there is */
	calltree_leave(thread, 40, g);
	calltree_thread_end(thread, 45);
	calltree_thread_free(thread);
	calltree_finish(t);
	weights = calltree_split_bases(t);
	for (uint32_t id = 1; id < calltree_n_nodes(t); id++) {
		const struct calltree_node *node = calltree_get(t, id);

		sum += weights[id];
		if (node->routine == f)
			CHECK_EQ(weights[id], 6);
		if (node->routine == g)
			CHECK_EQ(weights[id], 0);
		if (node->routine == h)
			CHECK_EQ(weights[id], calltree_get(t, node->parent)->routine == f ? 4 : 30);
	}
	CHECK_EQ(sum, calltree_total(t));
	free(weights);
	calltree_free(t);
}

/* A coroutine: A is interrupted in the middle by B, which runs on another stack. */
static void each_stack_has_its_open_calls(void)
{
	static const struct event events[] = {{0, '+', "main"}, {1, '+', "A"}, {3, '1', ""},
		{4, '+', "B"}, {7, '0', ""}, {8, '-', "A"}, {9, '1', ""}, {11, '-', "B"},
		{12, '0', ""}, {14, '-', "main"}};
	uint64_t unmatched, open;
	struct calltree *t = play(events, N(events), &unmatched, &open);
	char text[300];

	CHECK(unmatched == 0 && open == 0);
	print_tree(t, text, sizeof(text));
	CHECK_STR(text, "0 1 1 2 14 pid_tid\n1 1 1 4 7 main\n2 1 1 3 3 A\n1 1 1 5 5 B\n");
	CHECK(row_of(t, "A").elapsed == 7 && row_of(t, "A").max == 3);
	CHECK(row_of(t, "B").elapsed == 7 && row_of(t, "B").max == 5);
	CHECK(row_of(t, "main").elapsed == 14 && row_of(t, "main").max == 7);
	CHECK(row_of(t, "pid_tid").max == 14);
	calltree_free(t);
}

static void calls_open_on_any_stack_end(void)
{
	static const struct event events[] = {{0, '+', "A"}, {1, '1', ""}, {2, '+', "B"},
		{3, '2', ""}, {4, '1', ""}, {6, '3', ""}, {7, '+', "C"}};
	uint64_t open;
	struct calltree *t = play(events, N(events), NULL, &open);

	CHECK_EQ(open, 3);
	CHECK_EQ(calltree_total(t), 7);
	CHECK(row_of(t, "A").base == 1 && row_of(t, "A").elapsed == 7);
	CHECK(row_of(t, "B").base == 3 && row_of(t, "B").elapsed == 5);
	calltree_free(t);
}

/* Routine z is open, but further in than the frame that is looked at; and deep stacks stay cheap.
 */
static void deep_stacks_are_merged(void)
{
	enum { DEPTH = 20000 };
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);
	uint32_t *stack = calloc(2 * DEPTH, sizeof(*stack)), f = routine(t, "f"),
		 g = routine(t, "g");
	uint32_t node = 0;

	for (size_t i = 0; i < DEPTH; i++) {
		calltree_enter(thread, i, f);
		stack[2 * i] = f;
		stack[2 * i + 1] = g;
	}
	for (int i = 0; i < 20; i++)
		node = calltree_merge_sample(thread, stack, 2 * DEPTH, 5, 1);
	calltree_thread_end(thread, DEPTH);
	calltree_thread_free(thread);
	calltree_finish(t);
	CHECK_EQ(calltree_get(t, node)->level, DEPTH + 1);
	CHECK_EQ(calltree_get(t, node)->samples, 20);
	CHECK_EQ(row_of(t, "g").sampled.base, 100);
	CHECK_EQ(calltree_n_nodes(t), 2 + 2 * DEPTH);
	free(stack);
	calltree_free(t);
}

static void kernel_frames_lie_in_the_system_call(void)
{
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);
	uint32_t f = routine(t, "f"), wrapper = routine(t, "read_wrapper"), node;
	uint32_t call = calltree_routine(t, "read", "[system calls]", FRAME_KIND_KERNEL);
	uint32_t entry = calltree_routine(t, "do_syscall", "[kernel]", FRAME_KIND_KERNEL);

	calltree_enter(thread, 0, f);
	calltree_enter(thread, 5, call);
	node = calltree_merge_sample(thread, (uint32_t[]){f, wrapper, entry}, 3, 1, 1);
	CHECK_EQ(calltree_get(t, calltree_get(t, node)->parent)->routine, call);
	calltree_leave(thread, 10, call);
	/* A page fault, not in a system call. */
	node = calltree_merge_sample(thread, (uint32_t[]){f, wrapper, entry}, 3, 1, 1);
	CHECK_EQ(calltree_get(t, calltree_get(t, node)->parent)->routine, wrapper);
	calltree_thread_end(thread, 20);
	calltree_thread_free(thread);
	calltree_free(t);
}

static void stacks_at_routines_weigh_nothing(void)
{
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);
	uint32_t f = routine(t, "f"), g = routine(t, "g"), node;

	calltree_enter(thread, 0, g);
	node = calltree_merge_stack_event(thread, (uint32_t[]){f, g}, 2);
	CHECK_EQ(calltree_get(t, node)->routine, g);
	CHECK_EQ(calltree_get(t, node)->stack_events, 1);
	CHECK_EQ(calltree_get(t, node)->samples, 0);
	calltree_thread_end(thread, 20);
	calltree_thread_free(thread);
	calltree_finish(t);
	CHECK(!calltree_has_samples(t) && !calltree_has_estimates(t));
	node = calltree_get_routine(t, f)->first_instance;
	CHECK_EQ(calltree_get(t, node)->occurrences, 1);
	CHECK_EQ(calltree_get(t, node)->stack_kinds, CALLTREE_STACK_EVENT);
	CHECK(calltree_begins_chain(t, node));
	calltree_free(t);
}

/* Two threads, built one after the other: ids are as if they had been built together. */
static void ids_are_in_order_of_sight(void)
{
	struct calltree *t = calltree_new();
	struct calltree_thread *one, *two;
	char text[300];

	calltree_set_time(t, 0);
	one = calltree_thread_new(t, calltree_root(t, "1_1"), 0);
	calltree_enter(one, 0, routine(t, "late"));
	calltree_leave(one, 50, routine(t, "late"));
	calltree_enter(one, 60, routine(t, "last"));
	calltree_thread_end(one, 70);
	calltree_set_time(t, 10);
	two = calltree_thread_new(t, calltree_root(t, "1_2"), 10);
	calltree_enter(two, 10, routine(t, "last"));
	calltree_thread_end(two, 20);
	calltree_thread_free(one);
	calltree_thread_free(two);
	calltree_finish(t);
	CHECK_STR(calltree_get_routine(t, calltree_get(t, 1)->routine)->name, "1_1");
	CHECK_STR(calltree_get_routine(t, calltree_get(t, 2)->routine)->name, "late");
	CHECK_STR(calltree_get_routine(t, calltree_get(t, 3)->routine)->name, "1_2");
	CHECK_STR(calltree_get_routine(t, calltree_get(t, 4)->routine)->name, "last");
	CHECK_EQ(calltree_get(t, 4)->parent, 3);
	CHECK_EQ(calltree_get(t, 4)->next_instance, 5);
	CHECK_EQ(calltree_child(t, 3, routine(t, "last")), 4);
	print_tree(t, text, sizeof(text));
	CHECK_STR(text, "0 1 1 10 70 1_1\n1 1 1 50 50 late\n1 1 1 10 10 last\n0 1 1 0 10 1_2\n"
			"1 1 1 10 10 last\n");
	calltree_free(t);
}

static void inlined_and_called_is_one_routine(void)
{
	struct calltree *t = calltree_new();
	uint32_t f = calltree_routine(t, "f", "a.out", FRAME_KIND_INLINE);

	CHECK_EQ(calltree_get_routine(t, f)->kind, FRAME_KIND_INLINE);
	CHECK_EQ(calltree_routine(t, "f", "a.out", FRAME_KIND_NATIVE), f);
	CHECK_EQ(calltree_routine(t, "f", "a.out", FRAME_KIND_INLINE), f);
	CHECK_EQ(calltree_get_routine(t, f)->kind, FRAME_KIND_NATIVE);
	CHECK(calltree_routine(t, "f", "b.so", FRAME_KIND_NATIVE) != f);
	CHECK(calltree_routine(t, "f", "a.out", FRAME_KIND_KERNEL) != f);
	CHECK_STR(calltree_get_routine(t, f)->image, "a.out");
	calltree_free(t);
}

static const struct test tests[] = {
	{"the tree of the golden events has the golden numbers", tree_of_events},
	{"the flat profile of the golden events has the golden numbers", flat_of_events},
	{"the arcs of the golden events come in the golden order", arcs_of_events},
	{"the check of the arcs notices every wrong sum", broken_arcs_are_noticed},
	{"an interrupt counts as elapsed but not as base or cum", interrupts_count_as_elapsed_only},
	{"a resource is charged to the routine that uses it",
		resources_are_charged_to_the_current_routine},
	{"recursion 100,000 deep is followed", deep_recursion},
	{"enters and leaves that do not match are counted", unmatched_events},
	{"a thread's root cannot be left", the_root_cannot_be_left},
	{"times that go back charge nothing", times_that_go_back_charge_nothing},
	{"samples alone make a tree", samples_make_a_tree},
	{"samples hang below the events that enclose them", samples_hang_below_events},
	{"figures by events and by samples stand apart, and both keep their sums",
		both_kinds_of_figure_stand_apart},
	{"exported weights add up to the total", exported_weights_add_up},
	{"each stack of a thread has its own open calls", each_stack_has_its_open_calls},
	{"calls that are open on any stack end with the thread", calls_open_on_any_stack_end},
	{"deep stacks are merged with deep calls", deep_stacks_are_merged},
	{"kernel frames lie in the system call that is open", kernel_frames_lie_in_the_system_call},
	{"stacks at routines weigh nothing", stacks_at_routines_weigh_nothing},
	{"ids are in order of first sight, whatever order threads are built in",
		ids_are_in_order_of_sight},
	{"code that is inlined and called is one routine", inlined_and_called_is_one_routine},
};

int main(void)
{
	return RUN_TESTS(tests);
}
