/* SPDX-License-Identifier: MIT */
/*
 * Each transform is one pass over the nodes: parents come before their children, so where a node goes
 * follows from where its parent went. A node goes to a node of the new tree; `into` says whether it
 * becomes that node or is a part of it.
 */
#include "query/transform.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "calltree/calltree.h"
#include "calltree/frame_names.h"

enum transform_kind { FOCUS, FOLD, DROP, FOLD_IMAGE, MERGE_RECURSION, N_KINDS };

static const struct {
	const char *word;
	bool has_name;
} kinds[N_KINDS] = {
	[FOCUS] = {"focus", true},
	[FOLD] = {"fold", true},
	[DROP] = {"drop", true},
	[FOLD_IMAGE] = {"fold-image", true},
	[MERGE_RECURSION] = {"merge-recursion", false},
};

struct transform {
	enum transform_kind kind;
	char *text; /* as given */
	char *name; /* in `text`; NULL with a regex */
	regex_t regex;
	bool is_regex;
};

struct transforms {
	VEC(struct transform) v;
};

/* ---- the text ---- */

static void transform_release(struct transform *t)
{
	if (t->is_regex)
		regfree(&t->regex);
	free(t->text);
}

void transforms_free(struct transforms *t)
{
	for (size_t i = 0; t && i < t->v.n; i++)
		transform_release(&t->v.v[i]);
	if (t)
		vec_release(&t->v);
	free(t);
}

size_t transforms_n(const struct transforms *t)
{
	return t ? t->v.n : 0;
}

const char *transforms_text(const struct transforms *t, size_t i)
{
	return t->v.v[i].text;
}

static bool find_kind(const char *word, size_t n, enum transform_kind *kind)
{
	for (int k = 0; k < N_KINDS; k++)
		if (strlen(kinds[k].word) == n && !memcmp(kinds[k].word, word, n)) {
			*kind = (enum transform_kind)k;
			return true;
		}
	return false;
}

/* "NAME" or "/REGEX/"; the slashes are cut off. */
static int parse_name(struct transform *t, char *name, struct err *err)
{
	size_t n = strlen(name);

	if (!n)
		return err_set(err, ERR_FORMAT, "'%s': needs a name", t->text);
	if (n < 2 || name[0] != '/' || name[n - 1] != '/') {
		t->name = name;
		return 0;
	}
	name[n - 1] = '\0';
	t->is_regex = !regcomp(&t->regex, name + 1, REG_EXTENDED | REG_NOSUB);
	if (t->is_regex)
		return 0;
	return err_set(err, ERR_FORMAT, "'%s/': is not a regular expression", name);
}

static int parse_one(struct transform *t, struct err *err)
{
	char *equals = strchr(t->text, '=');
	size_t n = equals ? (size_t)(equals - t->text) : strlen(t->text);

	if (!find_kind(t->text, n, &t->kind))
		return err_set(err, ERR_FORMAT,
			"'%s': is not a transform (focus=NAME, fold=NAME, drop=NAME, fold-image=IMAGE, "
			"merge-recursion)",
			t->text);
	if (!kinds[t->kind].has_name)
		return equals ? err_set(err, ERR_FORMAT, "'%s': takes no name", t->text) : 0;
	if (!equals)
		return err_set(err, ERR_FORMAT, "'%s': needs a name: %s=NAME", t->text, t->text);
	return parse_name(t, equals + 1, err);
}

/* Where the part ends: a ';' between slashes belongs to the expression. */
static size_t part_bytes(const char *text)
{
	const char *slash = strchr(text, '=');
	size_t n = strcspn(text, ";");

	if (!slash || (size_t)(slash - text) > n || slash[1] != '/')
		return n;
	for (const char *end = strchr(slash + 2, '/'); end; end = strchr(end + 1, '/'))
		if (end[1] == ';' || !end[1])
			return (size_t)(end + 1 - text);
	return n;
}

int transforms_parse(struct transforms **out, const char *text, struct err *err)
{
	struct transforms *all = mem_zalloc(sizeof(*all));
	int rc = 0;

	while (*text && rc >= 0) {
		size_t n = part_bytes(text);
		struct transform t = {.text = mem_strndup(text, n)};

		text += n + (text[n] == ';');
		if (!n) {
			free(t.text);
			continue;
		}
		rc = all->v.n < TRANSFORMS_MAX
			     ? parse_one(&t, err)
			     : err_set(err, ERR_LIMIT, "more than %d transforms", TRANSFORMS_MAX);
		vec_push(&all->v, t);
	}
	if (rc < 0)
		transforms_free(all);
	else
		*out = all;
	return rc < 0 ? rc : 0;
}

/* ---- one pass ---- */

struct pass {
	const struct transform *t;
	const struct calltree *from;
	struct calltree *to;
	bool *is_meant;	   /* by routine */
	bool *is_below;	   /* FOCUS, by node: a meant one is on the path */
	uint32_t *node;	   /* by node of `from`: where it went; 0 = it was dropped */
	uint32_t *routine; /* by routine of `from`: that of `to`; 0 = not yet there */
};

static bool matches(const struct transform *t, const char *text)
{
	return t->is_regex ? !regexec(&t->regex, text, 0, NULL, 0) : !strcmp(t->name, text);
}

static bool is_meant(const struct transform *t, const struct calltree_routine *r)
{
	const char *bare;

	if (r->is_root || t->kind == MERGE_RECURSION)
		return false;
	if (t->kind == FOLD_IMAGE)
		return matches(t, r->image) || matches(t, path_base_name(r->image));
	bare = frame_name_bare(r->name, r->image);
	return matches(t, r->name) || (bare != r->name && matches(t, bare));
}

/* False when no function of the tree is. */
static bool mark_meant(struct pass *p)
{
	bool has_any = p->t->kind == MERGE_RECURSION;

	for (uint32_t id = 1; id < calltree_n_nodes(p->from); id++) {
		uint32_t r = calltree_get(p->from, id)->routine;

		if (!p->is_meant[r])
			p->is_meant[r] = is_meant(p->t, calltree_get_routine(p->from, r));
		has_any |= p->is_meant[r];
	}
	return has_any;
}

static uint32_t routine_of(struct pass *p, uint32_t routine)
{
	const struct calltree_routine *r = calltree_get_routine(p->from, routine);

	if (!p->routine[routine])
		p->routine[routine] = calltree_routine(p->to, r->name, r->image, r->kind);
	return p->routine[routine];
}

static uint32_t thread_of(const struct calltree *t, uint32_t node)
{
	while (calltree_get(t, node)->parent)
		node = calltree_get(t, node)->parent;
	return node;
}

/* The instance of a routine that is on the path to `node`, or 0. */
static uint32_t open_instance(const struct calltree *t, uint32_t node, uint32_t routine)
{
	while (node && calltree_get(t, node)->routine != routine)
		node = calltree_get(t, node)->parent;
	return node;
}

/* Where node `id` goes, whose parent went to `*at`, and how much of its figures goes there. */
static enum calltree_share place(struct pass *p, uint32_t id, uint32_t *at)
{
	const struct calltree_node *node = calltree_get(p->from, id);
	const char *site = calltree_site_label(p->from, calltree_site(p->from, id));
	bool meant = p->is_meant[node->routine];
	uint32_t outer;

	switch (p->t->kind) {
	case DROP:
		if (meant || !*at)
			return *at = 0, CALLTREE_SHARE_NONE;
		break;
	case FOLD:
	case FOLD_IMAGE:
		if (meant)
			return CALLTREE_SHARE_SELF;
		break;
	case FOCUS:
		p->is_below[id] = meant || p->is_below[node->parent];
		if (!p->is_below[id])
			return CALLTREE_SHARE_NONE;
		if (!p->is_below[node->parent])
			*at = thread_of(p->to, *at);
		break;
	default:
		outer = open_instance(p->to, *at, routine_of(p, node->routine));
		if (outer)
			return *at = outer, CALLTREE_SHARE_INNER;
	}
	*at = calltree_child_at(p->to, *at, routine_of(p, node->routine), site);
	return CALLTREE_SHARE_ALL;
}

static void walk(struct pass *p)
{
	size_t n = calltree_n_nodes(p->from);

	for (uint32_t id = 1; id < n; id++) {
		const struct calltree_node *node = calltree_get(p->from, id);
		enum calltree_share share;
		uint32_t at = p->node[node->parent];

		calltree_set_time(p->to, id);
		if (node->parent) {
			share = place(p, id, &at);
		} else {
			at = calltree_root(
				p->to, calltree_get_routine(p->from, node->routine)->name);
			share = p->t->kind == FOCUS ? CALLTREE_SHARE_KIND : CALLTREE_SHARE_ALL;
		}
		p->node[id] = at;
		calltree_add_figures(p->to, at, node, share);
	}
	calltree_finish(p->to);
}

/* Ids change when nodes are put in order; names of threads do not. */
static void renew_threads(struct profile *p)
{
	for (uint32_t i = 1; i < p->n_threads; i++) {
		struct profile_thread *thread = &p->threads[i];

		thread->root = thread->root ? calltree_root(p->tree, thread->root_name) : 0;
	}
}

/* Whether a function was meant; with `needs_one` the profile stays as it is when none was. */
static bool apply(const struct transform *t, struct profile *profile, bool needs_one)
{
	size_t n_nodes = calltree_n_nodes(profile->tree),
	       n_routines = calltree_n_routines(profile->tree);
	struct pass p = {.t = t, .from = profile->tree};
	bool has_any;

	p.is_meant = mem_calloc(n_routines, sizeof(*p.is_meant));
	p.is_below = mem_calloc(n_nodes, sizeof(*p.is_below));
	p.node = mem_calloc(n_nodes, sizeof(*p.node));
	p.routine = mem_calloc(n_routines, sizeof(*p.routine));
	has_any = mark_meant(&p);
	if (has_any || !needs_one) {
		p.to = calltree_new_like(p.from);
		walk(&p);
		calltree_free(profile->tree);
		profile->tree = p.to;
		profile->total = calltree_total(p.to);
		renew_threads(profile);
	}
	free(p.is_meant);
	free(p.is_below);
	free(p.node);
	free(p.routine);
	return has_any;
}

int transforms_apply(const struct transforms *t, struct profile *p, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < transforms_n(t); i++)
		rc = apply(&t->v.v[i], p, true)
			     ? 0
			     : err_set(err, ERR_NOT_FOUND, "'%s': no function here is meant",
				       t->v.v[i].text);
	return rc;
}

uint64_t transforms_apply_any(const struct transforms *t, struct profile *p)
{
	uint64_t met = 0;

	for (size_t i = 0; i < transforms_n(t); i++)
		met |= (uint64_t)apply(&t->v.v[i], p, false) << i;
	return met;
}
