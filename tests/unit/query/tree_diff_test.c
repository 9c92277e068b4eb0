/* SPDX-License-Identifier: MIT */
/* Two trees as one: against figures by hand, and for random trees against sums over the texts of paths. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/path_name.h"
#include "query/tree_diff.h"

static uint32_t below(struct calltree *t, uint32_t parent, const char *name, const char *image)
{
	return calltree_child(t, parent, calltree_routine(t, name, image, FRAME_KIND_NATIVE));
}

static uint32_t calls(struct calltree *t, uint32_t node, uint64_t n, uint64_t base)
{
	calltree_add_calls(
		t, node, &(struct calltree_calls){.calls = n, .base = base, .min = 1}, true);
	return node;
}

static uint32_t samples(struct calltree *t, uint32_t node, uint64_t n)
{
	calltree_add_sample(t, node, 10 * n, n);
	return node;
}

/* The node that is reached by these names from a root on, or 0. */
static uint32_t find(const struct calltree *t, const char *const *names)
{
	uint32_t id = calltree_first_root(t);

	for (;; names++) {
		while (id && strcmp(calltree_get_routine(t, calltree_get(t, id)->routine)->name,
				     *names) != 0)
			id = calltree_get(t, id)->next_sibling;
		if (!id || !names[1])
			return id;
		id = calltree_get(t, id)->first_child;
	}
}
#define FIND(d, ...) find((d)->both, (const char *const[]){__VA_ARGS__, NULL})

static const struct calltree_node *side(const struct tree_diff *d, uint32_t node, int which)
{
	return calltree_get(d->sides[which], node);
}

static const struct tree_diff_row *row(const struct tree_diff *d, const char *name)
{
	for (uint32_t r = 1; r < calltree_n_routines(d->both); r++)
		if (!strcmp(calltree_get_routine(d->both, r)->name, name))
			return &d->rows[r];
	return NULL;
}

/* before: main (1) > parse (5), and in another thread main > parse (7) > read (3)
 * after: main (2) > parse (4) > write (9), in one thread and another folder */
static void paths_are_matched_and_threads_are_one(void)
{
	struct calltree *before = calltree_new(), *after = calltree_new();
	struct tree_diff d;
	uint32_t node;

	node = samples(before, below(before, calltree_root(before, "1_1"), "main", "/old/prog"), 1);
	samples(before, below(before, node, "parse", "/old/prog"), 5);
	node = below(before, calltree_root(before, "1_2"), "main", "/old/prog");
	node = samples(before, below(before, node, "parse", "/old/prog"), 7);
	samples(before, below(before, node, "read", "/lib/libc.so.6"), 3);
	calltree_finish(before);
	node = samples(
		after, below(after, calltree_root(after, "9_9"), "main", "/new/prog (deleted)"), 2);
	node = samples(after, below(after, node, "parse", "/new/prog (deleted)"), 4);
	samples(after, below(after, node, "write", "/lib/libc.so.6"), 9);
	calltree_finish(after);
	tree_diff_init(&d, before, after);
	calltree_free(before);
	calltree_free(after);

	CHECK_EQ(calltree_n_nodes(d.both), 6); /* the threads, main, parse, read, write */
	node = FIND(&d, "all threads", "main", "parse");
	CHECK(node != 0);
	CHECK_EQ(side(&d, node, DIFF_BEFORE)->base, 120);
	CHECK_EQ(side(&d, node, DIFF_BEFORE)->cum, 150);
	CHECK_EQ(side(&d, node, DIFF_AFTER)->base, 40);
	CHECK_EQ(side(&d, node, DIFF_AFTER)->cum, 130);
	CHECK_EQ(d.nodes[node].samples[DIFF_BEFORE], 15);
	CHECK_EQ(d.nodes[node].samples[DIFF_AFTER], 13);
	CHECK_EQ(calltree_get(d.both, node)->base, 120); /* holds both */
	CHECK_EQ(calltree_get(d.both, node)->cum, 120 + 30 + 90);
	node = FIND(&d, "all threads", "main", "parse", "write");
	CHECK(!d.nodes[node].is_there[DIFF_BEFORE] && d.nodes[node].is_there[DIFF_AFTER]);
	CHECK_EQ(side(&d, node, DIFF_BEFORE)->cum, 0);
	CHECK_EQ(row(&d, "main")->sides[DIFF_BEFORE].cum, 160);
	CHECK_EQ(row(&d, "main")->samples[DIFF_BEFORE], 16);
	CHECK_EQ(row(&d, "main")->sides[DIFF_AFTER].cum, 150);
	CHECK(!row(&d, "read")->is_there[DIFF_AFTER]);
	tree_diff_release(&d);
}

/* The same name in another image is another function. */
static void images_tell_functions_apart(void)
{
	struct calltree *before = calltree_new(), *after = calltree_new();
	struct tree_diff d;

	samples(before, below(before, calltree_root(before, "1_1"), "init", "/lib/a.so"), 4);
	samples(after, below(after, calltree_root(after, "1_1"), "init", "/lib/b.so"), 4);
	calltree_finish(before);
	calltree_finish(after);
	tree_diff_init(&d, before, after);
	CHECK_EQ(calltree_n_nodes(d.both), 4);
	CHECK_EQ(row(&d, "init")->sides[DIFF_BEFORE].base, 40);
	CHECK_EQ(row(&d, "init")->sides[DIFF_AFTER].base, 0);
	tree_diff_release(&d);
	calltree_free(before);
	calltree_free(after);
}

/* A thread with events, main (100) > f (50, in 2 calls; samples say 30), and one that samples alone know:
 * main 20. Afterwards there are events alone: main (110) > f (80). */
static void exact_figures_and_estimates_stay_apart(void)
{
	struct calltree *before = calltree_new(), *after = calltree_new();
	struct tree_diff d;
	uint32_t node;

	node = calls(before, calltree_root(before, "1_1"), 1, 0);
	node = calls(before, below(before, node, "main", "p"), 1, 100);
	samples(before, calls(before, below(before, node, "f", "p"), 2, 50), 3);
	samples(before, below(before, calltree_root(before, "1_2"), "main", "p"), 2);
	calltree_finish(before);
	node = calls(after, calltree_root(after, "5_5"), 1, 0);
	node = calls(after, below(after, node, "main", "p"), 1, 110);
	calls(after, below(after, node, "f", "p"), 4, 80);
	calltree_finish(after);
	tree_diff_init(&d, before, after);

	node = FIND(&d, "threads with events", "main", "f");
	CHECK(node && side(&d, node, DIFF_BEFORE)->exact && side(&d, node, DIFF_AFTER)->exact);
	CHECK_EQ(side(&d, node, DIFF_BEFORE)->base, 50);
	CHECK_EQ(side(&d, node, DIFF_BEFORE)->sampled_base, 30);
	CHECK_EQ(side(&d, node, DIFF_BEFORE)->calls, 2);
	CHECK_EQ(side(&d, node, DIFF_AFTER)->base, 80);
	CHECK_EQ(side(&d, node, DIFF_AFTER)->calls, 4);
	node = FIND(&d, "threads with samples alone", "main");
	CHECK(node && !side(&d, node, DIFF_BEFORE)->exact);
	CHECK_EQ(side(&d, node, DIFF_BEFORE)->cum, 20);
	CHECK(!d.nodes[node].is_there[DIFF_AFTER]);
	CHECK_EQ(calltree_total(d.sides[DIFF_BEFORE]), 170);
	CHECK_EQ(calltree_total(d.sides[DIFF_AFTER]), 190);
	/* Of a function with both kinds reports show what events say. */
	CHECK(row(&d, "main")->sides[DIFF_BEFORE].exact);
	CHECK_EQ(row(&d, "main")->sides[DIFF_BEFORE].cum, 150);
	tree_diff_release(&d);
	calltree_free(before);
	calltree_free(after);
}

/* Events on one side, samples on the other: the same paths, each figure of its own kind. */
static void sides_may_be_known_in_different_ways(void)
{
	struct calltree *before = calltree_new(), *after = calltree_new();
	struct tree_diff d;
	uint32_t node;

	node = calls(before, calltree_root(before, "1_1"), 1, 0);
	calls(before, below(before, node, "main", "p"), 1, 100);
	samples(after, below(after, calltree_root(after, "1_1"), "main", "p"), 9);
	calltree_finish(before);
	calltree_finish(after);
	tree_diff_init(&d, before, after);
	CHECK_EQ(calltree_n_nodes(d.both), 3);
	node = FIND(&d, "all threads", "main");
	CHECK(side(&d, node, DIFF_BEFORE)->exact && !side(&d, node, DIFF_AFTER)->exact);
	CHECK_EQ(side(&d, node, DIFF_BEFORE)->cum, 100);
	CHECK_EQ(side(&d, node, DIFF_AFTER)->cum, 90);
	tree_diff_release(&d);
	calltree_free(before);
	calltree_free(after);
}

static void nothing_can_be_compared_with_something(void)
{
	struct calltree *before = calltree_new(), *after = calltree_new();
	struct tree_diff d;

	calltree_finish(before);
	samples(after, below(after, calltree_root(after, "1_1"), "main", "p"), 9);
	calltree_finish(after);
	tree_diff_init(&d, before, after);
	CHECK_EQ(row(&d, "main")->sides[DIFF_AFTER].cum, 90);
	CHECK(!row(&d, "main")->is_there[DIFF_BEFORE]);
	tree_diff_release(&d);
	tree_diff_init(&d, before, before);
	CHECK_EQ(calltree_n_nodes(d.both), 1);
	tree_diff_release(&d);
	calltree_free(before);
	calltree_free(after);
}

/* ---- random trees against texts ---- */

#define N_RANDOM   300
#define NODES_MAX  60
#define PATH_BYTES 1024

static unsigned random_state = 20;

static unsigned roll(unsigned n)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 16) % n;
}

/* Nodes with figures of their own below a few threads; with `kind` 0 of samples, 1 of events, 2 both. */
static struct calltree *random_tree(unsigned kind)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	static const char *const images[] = {"/x/p", "/y/p", "/x/q", ""};
	struct calltree *t = calltree_new();
	uint32_t nodes[NODES_MAX];
	bool is_event[NODES_MAX];
	unsigned n = 0, n_threads = 1 + roll(3), n_nodes = n_threads + roll(NODES_MAX - 3);

	for (; n < n_nodes; n++) {
		unsigned parent = n < n_threads ? n : roll(n);
		char name[20];

		snprintf(name, sizeof(name), "%u_%u", n, roll(100));
		nodes[n] = n < n_threads ? calltree_root(t, name)
					 : below(t, nodes[parent], names[roll(4)], images[roll(4)]);
		is_event[n] = n < n_threads ? kind == 1 || (kind == 2 && roll(2))
					    : is_event[parent] && (kind == 1 || roll(3));
		if (is_event[n])
			calls(t, nodes[n], 1 + roll(3), n < n_threads ? 0 : 100 + roll(100));
		if (kind != 1 && (!is_event[n] || roll(2)))
			samples(t, nodes[n], roll(4));
	}
	calltree_finish(t);
	return t;
}

/* "/a:p/b:q"; the thread is a first letter. */
static void path_of(const struct calltree *t, uint32_t id, char first, char *text)
{
	const struct calltree_node *node = calltree_get(t, id);
	const struct calltree_routine *r = calltree_get_routine(t, node->routine);

	if (!node->parent) {
		text[0] = first;
		text[1] = '\0';
		return;
	}
	path_of(t, node->parent, first, text);
	snprintf(text + strlen(text), PATH_BYTES - strlen(text), "/%s:%s", r->name,
		path_base_name(r->image));
}

static bool begins_with(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return !strncmp(path, prefix, n) && (path[n] == '/' || !path[n]);
}

static char letter_of(const struct calltree *t, uint32_t id, bool two)
{
	while (calltree_get(t, id)->parent)
		id = calltree_get(t, id)->parent;
	return !two ? '.' : calltree_get(t, id)->exact ? 'E' : 'S';
}

/* Threads of which nothing is known are in neither. */
static bool is_nothing(const struct calltree_node *node)
{
	return !node->parent && !node->first_child && !node->sampled_cum && !node->cum &&
	       !node->samples;
}

struct sums {
	uint64_t base, cum, sampled_base, sampled_cum, calls, samples;
	bool is_exact, is_there;
};

static struct sums sums_by_text(const struct calltree *t, bool two, const char *wanted)
{
	struct sums s = {0};
	char path[PATH_BYTES];

	for (uint32_t id = 1; id < calltree_n_nodes(t); id++) {
		const struct calltree_node *node = calltree_get(t, id);
		bool is_it;

		path_of(t, id, letter_of(t, id, two), path);
		if (is_nothing(node) || !begins_with(path, wanted))
			continue;
		is_it = !strcmp(path, wanted);
		s.cum += node->exact ? node->base : 0;
		s.sampled_cum += node->sampled_base;
		s.samples += node->samples;
		s.base += is_it && node->exact ? node->base : 0;
		s.sampled_base += is_it ? node->sampled_base : 0;
		s.calls += is_it ? node->calls : 0;
		s.is_exact |= is_it && node->exact;
		s.is_there |= is_it;
	}
	return s;
}

static void compare_side(
	const struct tree_diff *d, const struct calltree *t, bool two, uint32_t id, int which)
{
	const struct calltree_node *node = side(d, id, which);
	char path[PATH_BYTES], root = '.';
	uint32_t top = id;
	struct sums s;

	while (calltree_get(d->both, top)->parent)
		top = calltree_get(d->both, top)->parent;
	if (two)
		root = strstr(calltree_get_routine(d->both, calltree_get(d->both, top)->routine)
				       ->name,
			       "events")
			       ? 'E'
			       : 'S';
	path_of(d->both, id, root, path);
	s = sums_by_text(t, two, path);
	CHECK_EQ(d->nodes[id].is_there[which], s.is_there);
	CHECK_EQ(d->nodes[id].samples[which], s.samples);
	CHECK_EQ(node->calls, s.calls);
	CHECK_EQ(node->exact, s.is_exact);
	CHECK_EQ(node->base, s.is_exact ? s.base : s.sampled_base);
	CHECK_EQ(node->cum, s.is_exact ? s.cum : s.sampled_cum);
	CHECK_EQ(node->sampled_base, s.sampled_base);
	CHECK_EQ(node->sampled_cum, s.sampled_cum);
}

static bool text_has_two(const struct calltree *t)
{
	bool has[2] = {false, false};

	for (uint32_t id = 1; id < calltree_n_nodes(t); id++) {
		const struct calltree_node *node = calltree_get(t, id);

		if (!node->parent && !is_nothing(node))
			has[node->exact] = true;
	}
	return has[0] && has[1];
}

static void widths_hold_both(const struct tree_diff *d)
{
	for (int which = 0; which < N_DIFF_SIDES; which++) {
		uint64_t *width = calltree_split_bases(d->sides[which]);

		for (size_t id = calltree_n_nodes(d->both); id-- > 1;) {
			uint32_t parent = calltree_get(d->both, (uint32_t)id)->parent;

			CHECK(calltree_get(d->both, (uint32_t)id)->cum >= width[id]);
			width[parent] += width[id];
		}
		free(width);
	}
}

static void sums_over_texts_agree(void)
{
	for (int i = 0; i < N_RANDOM; i++) {
		struct calltree *before = random_tree(roll(3)), *after = random_tree(roll(3));
		bool two = text_has_two(before) || text_has_two(after);
		struct tree_diff d;

		tree_diff_init(&d, before, after);
		for (uint32_t id = 1; id < calltree_n_nodes(d.both); id++) {
			CHECK(d.nodes[id].is_there[0] || d.nodes[id].is_there[1]);
			compare_side(&d, before, two, id, DIFF_BEFORE);
			compare_side(&d, after, two, id, DIFF_AFTER);
		}
		CHECK_EQ(calltree_total(d.sides[DIFF_BEFORE]), calltree_total(before));
		CHECK_EQ(calltree_total(d.sides[DIFF_AFTER]), calltree_total(after));
		widths_hold_both(&d);
		tree_diff_release(&d);
		calltree_free(before);
		calltree_free(after);
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"paths are matched, threads are one", paths_are_matched_and_threads_are_one},
		{"the last part of the image tells functions apart", images_tell_functions_apart},
		{"exact figures and estimates stay apart", exact_figures_and_estimates_stay_apart},
		{"the sides may be known in different ways", sides_may_be_known_in_different_ways},
		{"a trace without anything is compared, too",
			nothing_can_be_compared_with_something},
		{"random trees: sums over the texts of paths agree", sums_over_texts_agree},
	};

	return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
