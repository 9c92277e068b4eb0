/* SPDX-License-Identifier: MIT */
/* Which functions a search means, and what part of the whole they and all below them are. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cmd/view/engine.h"

struct search {
	const char *text; /* in a name, large or small letters; NULL: the expression */
	regex_t regex;
};

/* "TEXT" or "/REGEX/". */
static int search_init(struct search *s, const char *text, struct err *err)
{
	size_t n = strlen(text);
	char *regex;
	int rc;

	s->text = text;
	if (n < 3 || text[0] != '/' || text[n - 1] != '/')
		return 0;
	regex = mem_strdup(text + 1);
	regex[n - 2] = 0;
	rc = regcomp(&s->regex, regex, REG_EXTENDED | REG_NOSUB);
	free(regex);
	if (rc)
		return err_set(err, ERR_FORMAT, "'%s': is not a regular expression", text);
	s->text = NULL;
	return 0;
}

static void search_release(struct search *s)
{
	if (!s->text)
		regfree(&s->regex);
}

/* Not threads, and not functions that are in the trace and not in the selection. */
static bool is_meant(const struct search *s, const struct calltree_routine *r)
{
	if (r->is_root || !r->first_instance)
		return false;
	return s->text ? strcasestr(r->name, s->text) != NULL
		       : regexec(&s->regex, r->name, 0, NULL, 0) == 0;
}

struct matches {
	bool *routines;
	uint64_t n, base, cum;
};

/* Parents come before their children. What lies below a function that is meant belongs to it once, however
 * many others that are meant lie on the way. */
static void add_shares(struct matches *m, const struct calltree *t)
{
	uint64_t *bases = calltree_split_bases(t);
	bool *is_below = mem_calloc(calltree_n_nodes(t), sizeof(*is_below));

	for (uint32_t id = 1; id < calltree_n_nodes(t); id++) {
		const struct calltree_node *node = calltree_get(t, id);

		is_below[id] = is_below[node->parent] || m->routines[node->routine];
		m->cum += is_below[id] ? bases[id] : 0;
		m->base += m->routines[node->routine] ? bases[id] : 0;
	}
	free(is_below);
	free(bases);
}

static void put_matches(
	FILE *out, const struct matches *m, const struct calltree *t, uint64_t total)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j, NULL);
	json_u64(&j, "matches", m->n);
	json_u64(&j, "base", m->base);
	json_u64(&j, "cum", m->cum);
	json_u64(&j, "total", total);
	json_array_begin(&j, "names");
	for (uint32_t r = 0; r < calltree_n_routines(t); r++)
		if (m->routines[r])
			json_string(&j, NULL, calltree_get_routine(t, r)->name);
	json_array_end(&j);
	json_object_end(&j);
}

static int answer(const struct profile *p, const struct search *s, struct buf *out, struct err *err)
{
	size_t n_routines = calltree_n_routines(p->tree), n = 0;
	struct matches m = {.routines = mem_calloc(n_routines, sizeof(*m.routines))};
	char *text = NULL;
	FILE *file = open_memstream(&text, &n);

	if (!file) {
		free(m.routines);
		return err_set(err, ERR_FAILED, "no memory for the answer");
	}
	for (uint32_t r = 1; r < n_routines; r++) {
		m.routines[r] = is_meant(s, calltree_get_routine(p->tree, r));
		m.n += m.routines[r];
	}
	add_shares(&m, p->tree);
	put_matches(file, &m, p->tree, p->total);
	fclose(file);
	buf_put(out, text, n);
	free(text);
	free(m.routines);
	return 0;
}

int view_answer_matches(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	const char *text = question_text(q, "search");
	struct search search;
	struct profile *p;
	int rc;

	if (!text || !*text)
		return err_set(err, ERR_FORMAT, "matches needs something to search");
	if (view_profile(e, q, &p, err) < 0 || search_init(&search, text, err) < 0)
		return err->code;
	rc = answer(p, &search, out, err);
	search_release(&search);
	return rc;
}
