/* SPDX-License-Identifier: MIT */
/*
 * Transforms against a second way to have them: random runs are kept as lists of stacks, the stacks are
 * transformed as words are, and what is left is added up path by path.
 */
#include "check.h"

#include <stdlib.h>

#include "query/transform.h"

#define DEPTH_MAX  9
#define N_NAMES	   5 /* A to E */
#define N_EVENTS   400
#define N_RUNS	   60
#define N_PATHS	   20000
#define PATH_BYTES (DEPTH_MAX + 2)

/* What was used with this stack, and whether it was called then. */
struct use {
	char path[PATH_BYTES];
	uint64_t calls, base, sampled;
};

struct world {
	struct profile profile;
	struct use uses[N_PATHS];
	size_t n;
	uint32_t seed;
};

static uint32_t next(struct world *w, uint32_t n)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return (w->seed >> 8) % n;
}

static struct use *use_of(struct world *w, const char *path)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->uses[i].path, path))
			return &w->uses[i];
	snprintf(w->uses[w->n].path, PATH_BYTES, "%s", path);
	return &w->uses[w->n++];
}

static uint32_t routine(struct calltree *t, char letter)
{
	return calltree_routine(t, (char[]){letter, 0},
		letter < 'C' ? "/lib/one.so" : "/lib/two.so", FRAME_KIND_NATIVE);
}

/* Calls and returns at random, and samples of a deeper stack now and then. */
static void play(struct world *w, bool has_events)
{
	struct calltree *t = calltree_new();
	uint32_t root = calltree_root(t, "7_7"), time = 0;
	struct calltree_thread *thread = has_events ? calltree_thread_new(t, root, 0) : NULL;
	char path[PATH_BYTES] = "";
	size_t depth = 0;

	for (int i = 0; i < N_EVENTS; i++) {
		uint32_t passed = next(w, 4);

		use_of(w, path)->base += has_events ? passed : 0;
		time += passed;
		if (depth && (depth == DEPTH_MAX || next(w, 2))) {
			if (has_events)
				calltree_leave(thread, time, routine(t, path[depth - 1]));
			path[--depth] = '\0';
		} else {
			path[depth] = (char)('A' + next(w, N_NAMES));
			path[++depth] = '\0';
			if (has_events)
				calltree_enter(thread, time, routine(t, path[depth - 1]));
			use_of(w, path)->calls += has_events;
		}
		if (!has_events) {
			uint32_t node = root;

			for (size_t d = 0; d < depth; d++)
				node = calltree_child(t, node, routine(t, path[d]));
			calltree_add_sample(t, node, passed, 1);
			use_of(w, path)->sampled += passed;
		}
	}
	if (has_events)
		calltree_thread_end(thread, time);
	calltree_thread_free(thread);
	calltree_finish(t);
	w->profile.tree = t;
}

/* ---- the second way ---- */

/* False: nothing is left of it. `is_call`: whether a call of the innermost one is still one. */
static bool transform_path(const char *how, char *path, bool *is_call)
{
	char out[PATH_BYTES] = "", name = how[strcspn(how, "=")] ? how[strcspn(how, "=") + 1] : 0;
	size_t n = 0;

	*is_call = true;
	if (!strncmp(how, "drop", 4))
		return !strchr(path, name);
	if (!strncmp(how, "focus", 5)) {
		const char *at = strchr(path, name);

		if (at)
			memmove(path, at, strlen(at) + 1);
		return at != NULL;
	}
	for (const char *p = path; *p; p++) {
		char *open = !strncmp(how, "merge", 5) ? strchr(out, *p) : NULL;
		bool is_folded = !strncmp(how, "fold-image", 10)
					 ? *p < 'C'
					 : !strncmp(how, "fold", 4) && *p == name;

		*is_call = !is_folded;
		if (is_folded)
			continue;
		if (open)
			n = (size_t)(open - out);
		out[n++] = *p;
		out[n] = '\0';
	}
	memcpy(path, out, n + 1);
	return true;
}

static struct world *transform_world(const struct world *w, const char *how)
{
	struct world *out = calloc(1, sizeof(*out));

	for (size_t i = 0; i < w->n; i++) {
		char path[PATH_BYTES];
		bool is_call;
		struct use *use;

		memcpy(path, w->uses[i].path, PATH_BYTES);
		if (!transform_path(how, path, &is_call))
			continue;
		use = use_of(out, path);
		use->calls += is_call ? w->uses[i].calls : 0;
		use->base += w->uses[i].base;
		use->sampled += w->uses[i].sampled;
	}
	return out;
}

/* ---- compared ---- */

static void path_of(const struct calltree *t, uint32_t node, char *path)
{
	uint32_t level = calltree_get(t, node)->level;

	path[level] = '\0';
	for (; level; node = calltree_get(t, node)->parent)
		path[--level] = *calltree_get_routine(t, calltree_get(t, node)->routine)->name;
}

static void compare(const struct calltree *t, struct world *expected)
{
	uint64_t total = 0;

	for (uint32_t id = 1; id < calltree_n_nodes(t); id++) {
		const struct calltree_node *node = calltree_get(t, id);
		char path[PATH_BYTES];
		struct use *use;

		path_of(t, id, path);
		use = use_of(expected, path);
		if (node->parent) /* a thread's own is its beginning */
			CHECK_EQ(node->calls, use->calls);
		CHECK_EQ(node->base, use->base + use->sampled);
		*use = (struct use){.path = ""};
		use->path[0] = '?';
	}
	for (size_t i = 0; i < expected->n; i++)
		if (expected->uses[i].path[0] != '?')
			total += expected->uses[i].base + expected->uses[i].sampled +
				 expected->uses[i].calls;
	CHECK_EQ(total, 0); /* nothing is missing in the tree */
}

static void check_transforms(const char *const *how, size_t n, bool has_events)
{
	struct world *w = calloc(1, sizeof(*w)), *now = calloc(1, sizeof(*now)), *after;
	char list[200] = "";
	struct transforms *t;
	struct err err = {0};

	for (uint32_t run = 0; run < N_RUNS; run++) {
		memset(w, 0, sizeof(*w));
		w->seed = run * 7919 + 1;
		play(w, has_events);
		memcpy(now, w, sizeof(*w));
		list[0] = '\0';
		for (size_t i = 0; i < n; i++) {
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				i ? ";" : "", how[i]);
			after = transform_world(now, how[i]);
			memcpy(now, after, sizeof(*now));
			free(after);
		}
		CHECK_EQ(transforms_parse(&t, list, &err), 0);
		CHECK_EQ(transforms_n(t), n);
		if (transforms_apply(t, &w->profile, &err) == 0) {
			compare(w->profile.tree, now);
			CHECK_EQ(w->profile.total, calltree_total(w->profile.tree));
		} else {
			CHECK(strstr(err.text, "no function here is meant") != NULL);
		}
		transforms_free(t);
		calltree_free(w->profile.tree);
	}
	free(w);
	free(now);
}

static void each_kind_of_transform(bool has_events)
{
	static const char *const all[] = {
		"focus=B", "fold=A", "drop=C", "fold-image=one.so", "merge-recursion"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		check_transforms(&all[i], 1, has_events);
}

static void events_are_as_transformed_stacks(void)
{
	each_kind_of_transform(true);
}

static void samples_are_as_transformed_stacks(void)
{
	each_kind_of_transform(false);
}

static void lists_go_from_left_to_right(void)
{
	check_transforms((const char *const[]){"focus=B", "fold=C", "merge-recursion"}, 3, true);
	check_transforms((const char *const[]){"merge-recursion", "focus=D", "drop=A"}, 3, false);
	check_transforms(
		(const char *const[]){"fold=A", "fold=B", "fold=C", "fold=D", "fold=E"}, 5, true);
}

/* Samples below an event: what is dropped of them stays in the event's base, which is measured. */
static void estimates_are_not_taken_out_of_what_was_measured(void)
{
	struct profile p = {.tree = calltree_new()};
	uint32_t root = calltree_root(p.tree, "7_7"), a = routine(p.tree, 'A'),
		 b = routine(p.tree, 'B');
	struct calltree_thread *thread = calltree_thread_new(p.tree, root, 0);
	struct err err = {0};
	struct transforms *t;

	calltree_enter(thread, 0, a);
	calltree_merge_sample(thread, (uint32_t[]){a, b}, 2, 40, 1);
	calltree_leave(thread, 100, a);
	calltree_thread_end(thread, 100);
	calltree_thread_free(thread);
	calltree_finish(p.tree);
	CHECK_EQ(transforms_parse(&t, "drop=B", &err), 0);
	CHECK_EQ(transforms_apply(t, &p, &err), 0);
	CHECK_EQ(calltree_n_nodes(p.tree), 3);
	CHECK_EQ(calltree_get(p.tree, 2)->base, 100);
	CHECK_EQ(calltree_get(p.tree, 2)->sampled_cum, 0);
	CHECK_EQ(p.total, 100);
	transforms_free(t);
	calltree_free(p.tree);
}

static void refuse(const char *text, const char *why)
{
	struct transforms *t = NULL;
	struct err err = {0};

	CHECK(transforms_parse(&t, text, &err) < 0);
	CHECK(strstr(err.text, why) != NULL);
	CHECK(t == NULL);
}

static void wrong_texts_are_refused(void)
{
	char many[TRANSFORMS_MAX * 7 + 8] = "";
	struct transforms *t;
	struct err err = {0};

	refuse("focus", "'focus': needs a name: focus=NAME");
	refuse("focus=", "'focus=': needs a name");
	refuse("merge-recursion=A", "takes no name");
	refuse("fold=A;hide=B", "'hide=B': is not a transform");
	refuse("fold=/(/", "is not a regular expression");
	for (int i = 0; i <= TRANSFORMS_MAX; i++)
		strcat(many, "fold=A;");
	refuse(many, "more than 64");
	CHECK_EQ(transforms_parse(&t, "fold=/a;b/;;drop=operator==;focus=/usr", &err), 0);
	CHECK_EQ(transforms_n(t), 3);
	transforms_free(t);
}

int main(void)
{
	static const struct test tests[] = {
		{"events in a transformed tree are those of the transformed stacks",
			events_are_as_transformed_stacks},
		{"samples in a transformed tree are those of the transformed stacks",
			samples_are_as_transformed_stacks},
		{"transforms are applied from left to right", lists_go_from_left_to_right},
		{"what was measured stays when estimates are dropped",
			estimates_are_not_taken_out_of_what_was_measured},
		{"wrong lists of transforms are refused", wrong_texts_are_refused},
	};

	return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
