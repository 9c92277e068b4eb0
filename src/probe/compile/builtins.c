/* SPDX-License-Identifier: MIT */
/* All builtins, and what is the same for each: finding it, and whether it may stand here. */
#include <string.h>

#include "probe/compile/builtin.h"

static const struct builtin *const tables[] = {name_builtins, task_builtins, stack_builtins,
	output_builtins, map_builtins, text_builtins, bytes_builtins, value_builtins,
	named_builtins, message_builtins, type_builtins};

const struct builtin *builtin_next(const struct builtin *b, size_t *table)
{
	b = b ? b + 1 : tables[ *table = 0];
	while (!b->name && *table + 1 < sizeof(tables) / sizeof(tables[0]))
		b = tables[++*table];
	return b->name ? b : NULL;
}

static const struct builtin *find(const char *name, bool is_function)
{
	static const char own[] = "__builtin_"; /* whatever macros are called */
	size_t table;

	if (!strncmp(name, own, sizeof(own) - 1))
		name += sizeof(own) - 1;
	for (const struct builtin *b = builtin_next(NULL, &table); b; b = builtin_next(b, &table)) {
		if ((is_function ? b->form != NULL : !b->form || b->is_name) &&
			!strcmp(b->name, name))
			return b;
	}
	return NULL;
}

bool check_has_builtin(const char *name, bool is_function)
{
	return find(name, is_function) != NULL;
}

static const char *nearest_of(const char *name, bool is_function)
{
	struct nearest n = {.name = name};
	size_t table;

	for (const struct builtin *b = builtin_next(NULL, &table); b; b = builtin_next(b, &table)) {
		if (is_function ? b->form != NULL : !b->form || b->is_name)
			nearest_offer(&n, b->name);
	}
	return n.best;
}

static bool is_at(const struct check_clause *c, const struct builtin *b)
{
	return !b->points || point_has(c->point->spec.kind, b->points);
}

static const struct type *check_use(struct check_clause *c, struct expr *e, const struct builtin *b)
{
	check_mean(c, e, MEANING_BUILTIN)->builtin = b;
	if (is_at(c, b))
		return b->check ? b->check(c, e) : check_int(c, b->bytes, false);
	check_error(
		c, e->place, "not-here", "'%s' does not exist at %s", e->name, check_point_text(c));
	if (b->not_here)
		b->not_here(c, e);
	return check_bad(c);
}

const struct type *check_builtin_name(struct check_clause *c, struct expr *e)
{
	const struct builtin *b = find(e->name, false);

	return b ? check_use(c, e, b) : NULL;
}

bool check_hint_builtin(struct check_clause *c, const struct expr *e)
{
	const struct builtin *function = find(e->name, true);
	const char *nearest = nearest_of(e->name, false);

	if (function)
		check_hint(c, "it is a function: %s", function->form);
	else if (nearest)
		check_hint(c, "did you mean '%s'?", nearest);
	return function || nearest;
}

static const struct type *unknown_function(struct check_clause *c, struct expr *e)
{
	const char *nearest = nearest_of(e->name, true);

	check_error(c, e->place, "unknown-function", "there is no function %s()", e->name);
	if (nearest)
		check_hint(c, "did you mean %s()?", nearest);
	else if (find(e->name, false))
		check_hint(c, "'%s' is a name: write it without ()", e->name);
	return check_bad(c);
}

const struct type *builtin_hint_form(struct check_clause *c, const struct expr *e)
{
	return check_hint(c, "%s", check_row(c, e)->form);
}

const struct type *check_call(struct check_clause *c, struct expr *e)
{
	const struct builtin *b = find(e->name, true);

	if (!b && !e->n_args && find(e->name, false)) /* pid() */
		return check_builtin_name(c, e);
	if (!b)
		return unknown_function(c, e);
	check_mean(c, e, MEANING_BUILTIN)->builtin = b;
	if (e->n_args < b->min_args || e->n_args > b->max_args) {
		check_error(c, e->place, "arguments", "%s() has too %s arguments", e->name,
			e->n_args < b->min_args ? "few" : "many");
		return builtin_hint_form(c, e);
	}
	if (!is_at(c, b))
		return check_refuse(c, e->place, "not-here", "%s() does not exist at %s", e->name,
			check_point_text(c));
	return b->check ? b->check(c, e) : check_int(c, b->bytes, false);
}

/* --- what several of them check --------------------------------------------------------------- */

bool check_literal(struct check_clause *c, struct expr *e, struct expr *a)
{
	check_expr(c, a);
	if (a->kind == EXPR_STRING)
		return a->type[c->mode]->kind != TYPE_BAD;
	return check_error(c, a->place, "constant", "%s() needs a literal text", e->name);
}

int check_word(struct check_clause *c, struct expr *e, const char *const *words)
{
	struct expr *a = e->args;

	if (!a)
		return 0;
	a->type[c->mode] = check_void(c);
	a->is_constant[c->mode] = false;
	for (int i = 0; words[i]; i++)
		if (a->kind == EXPR_NAME && !strcmp(a->name, words[i]))
			return i;
	check_error(c, a->place, "arguments", "%s() does not know that word", e->name);
	builtin_hint_form(c, e);
	return -1;
}

uint32_t check_stream_text(struct check_clause *c, const char *text)
{
	struct stream *stream = c->session->stream;
	size_t i = 0;

	if (c->session->pass != CHECK_FINAL)
		return 0;
	while (i < stream->strings.n && strcmp(stream->strings.v[i], text))
		i++;
	if (i == stream->strings.n)
		vec_push(&stream->strings, arena_strdup(stream->arena, text));
	return (uint32_t)i;
}

bool check_is_allowed(struct check_clause *c, struct expr *e)
{
	if (c->session->is_unsafe)
		return true;
	check_error(c, e->place, "unsafe", "%s() changes things outside of the trace", e->name);
	check_hint(c, "--unsafe allows it");
	return false;
}

const struct type *check_not_yet(struct check_clause *c, struct expr *e)
{
	check_error(c, e->place, "unknown-function", "%s() does not exist yet", e->name);
	return check_hint(c, "%s", check_row(c, e)->help);
}

/* --- code ------------------------------------------------------------------------------------- */

/* A text that is only mentioned is not read. */
ir_value lower_builtin(struct lower *l, const struct expr *e)
{
	const struct builtin *b = lower_row(l, e);

	return b->lower ? b->lower(l, e) : 0;
}

bool lower_builtin_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	const struct meaning *m = meaning_of(l, e);

	if (!m || m->kind != MEANING_BUILTIN || !m->builtin->into)
		return false;
	m->builtin->into(l, e, mem, at, n);
	return true;
}
