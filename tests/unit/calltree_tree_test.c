/* SPDX-License-Identifier: MIT */
/* The tree built from events and samples, against the vectors of tests/golden. */
#include "check.h"

#include "calltree/arcs.h"
#include "calltree/calltree.h"
#include "calltree/flat.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

struct event {
	uint64_t time;
	char what; /* '+' enter, '-' leave, '(' suspend, ')' resume */
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

static struct calltree *play(const struct event *events, size_t n, uint64_t *unmatched)
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
		else
			calltree_resume(thread, e->time);
	}
	calltree_thread_end(thread, events[n - 1].time);
	if (unmatched)
		*unmatched = calltree_thread_unmatched(thread);
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
	struct calltree *t = play(figure_18a, N(figure_18a), NULL);
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
	struct calltree *t = play(figure_18a, N(figure_18a), NULL);
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
			const struct arc_row *row = &arcs->rows[stanza->first_row + i - is_child];

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
	struct calltree *t = play(figure_18a, N(figure_18a), NULL);
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
	struct calltree *t = play(figure_18a, N(figure_18a), NULL);
	struct flat flat;
	struct arcs arcs;
	size_t broken = 99;

	flat_init(&flat, t);
	arcs_init(&arcs, t, &flat);
	for (size_t i = 0; i < arcs.n_rows; i++) {
		arcs.rows[i].cum++;
		CHECK(!arcs_check(&arcs, t, &broken));
		CHECK(arcs.stanzas[broken].first_row <= i);
		arcs.rows[i].cum--;
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
	struct calltree *t = play(plain, N(plain), NULL);
	struct flat_row a = row_of(t, "A"), b = row_of(t, "B");

	CHECK(a.base == 2 && a.cum == 10 && a.elapsed == 10);
	CHECK(b.base == 8 && b.cum == 8 && b.elapsed == 8);
	calltree_free(t);
	t = play(interrupted, N(interrupted), NULL);
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
	uint64_t unmatched;
	struct calltree *t = play(odd, N(odd), &unmatched);
	char text[500];

	/* Z and the late leave of B; B and C closed by A; D and E by the end. */
	CHECK_EQ(unmatched, 6);
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
	struct calltree *t = play(odd, N(odd), NULL);

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

/* tests/golden/merge.txt */
static void samples_hang_below_events(void)
{
	static const char *const stack[] = {
		"Event1", "SampleA", "SampleB", "Event2", "SampleC", "SampleD", "SampleE"};
	struct calltree *t = calltree_new();
	struct calltree_thread *thread = calltree_thread_new(t, calltree_root(t, "pid_tid"), 0);
	uint32_t routines[N(stack)];
	char text[500];

	for (size_t i = 0; i < N(stack); i++)
		routines[i] = routine(t, stack[i]);
	calltree_thread_charge_time(thread, false);
	calltree_enter(thread, 0, routine(t, "Event1"));
	calltree_enter(thread, 1, routine(t, "Event2"));
	calltree_merge_sample(thread, routines, N(stack), 1, 1);
	calltree_thread_end(thread, 2);
	calltree_thread_free(thread);
	calltree_finish(t);
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
	{"code that is inlined and called is one routine", inlined_and_called_is_one_routine},
};

int main(void)
{
	return RUN_TESTS(tests);
}
