/* SPDX-License-Identifier: MIT */
/* macro NAME(...) { ... } and fn NAME(...) : TYPE { ... }. They are only kept here; macros.c puts them where they
 * are used. */
#include <string.h>

#include "probe/script/parser.h"

#define PARAMETERS_MAX 32

/* parameter = local | map | name ; of a function: local ":" type name */
static struct macro_parameter *parse_macro_parameter(struct parser *p, const struct macro *m)
{
	struct macro_parameter *q = arena_zalloc(p->arena, sizeof(*q));
	bool is_local = parser_at(p, TOKEN_LOCAL), is_map = parser_at(p, TOKEN_MAP);

	q->place = parser_here(p);
	q->name = "";
	if (m->is_function && !is_local) {
		parser_expected(p, "a parameter such as $x : int64");
		return q;
	}
	if (!is_local && !is_map && !parser_at(p, TOKEN_NAME)) {
		parser_expected(p, "a parameter: $variable, @map or the name of an expression");
		return q;
	}
	q->kind = is_local ? PARAMETER_LOCAL : is_map ? PARAMETER_MAP : PARAMETER_VALUE;
	q->name = parser_text(p, p->token, is_local || is_map);
	parser_take(p);
	if (m->is_function) {
		parser_expect(p, ':', "':' and the type of the parameter");
		q->decl = parse_type_name(p);
	}
	return q;
}

static bool has_parameter(const struct macro *m, const struct macro_parameter *q)
{
	for (const struct macro_parameter *o = m->parameters; o; o = o->next)
		if (o->kind == q->kind && !strcmp(o->name, q->name))
			return true;
	return false;
}

/* parameters = "(" [ parameter { "," parameter } ] ")" */
static void parse_parameters(struct parser *p, struct macro *m)
{
	struct macro_parameter **next = &m->parameters;
	struct token open = p->token;

	parser_expect(p, '(', "'(' and the parameters");
	while (!p->panic && !parser_at(p, ')')) {
		struct macro_parameter *q = parse_macro_parameter(p, m);

		if (!p->panic && has_parameter(m, q))
			parser_error(
				p, q->place, "duplicate", "there are two parameters '%s'", q->name);
		if (++m->n_parameters > PARAMETERS_MAX)
			parser_error(p, q->place, "size", "there are more than %d parameters",
				PARAMETERS_MAX);
		*next = q;
		next = &q->next;
		if (!parser_accept(p, ','))
			break;
	}
	parser_expect_closing(p, ')', open);
}

static bool has_same_parameters(const struct macro *a, const struct macro *b)
{
	const struct macro_parameter *x = a->parameters, *y = b->parameters;

	for (; x && y; x = x->next, y = y->next)
		if (x->kind != y->kind)
			return false;
	return !x && !y;
}

/* Macros of one name may differ in their parameters, as functions of C++ do. */
static void check_name(struct parser *p, const struct macro *m)
{
	for (const struct macro *o = p->script->macros; o; o = o->next)
		if (!strcmp(o->name, m->name) &&
			(m->is_function || o->is_function || has_same_parameters(o, m)))
			diag_error(p->diags, m->place, "duplicate",
				"there is another '%s' with the same parameters", m->name);
}

/* macro = "macro" name [parameters] block ; function = "fn" name parameters [":" type name] block */
void parse_macro(struct parser *p)
{
	struct macro *m = arena_zalloc(p->arena, sizeof(*m));
	uint32_t from = p->token.from;

	m->is_function = parser_at_word(p, "fn");
	parser_take(p);
	m->name = parser_text(p, p->token, 0);
	parser_take(p);
	if (m->is_function || parser_at(p, '('))
		parse_parameters(p, m);
	if (m->is_function && parser_accept(p, ':'))
		m->result = parse_type_name(p);
	m->place = parser_since(p, from);
	if (!parser_at(p, '{'))
		parser_expected(p, "'{' and a body");
	if (!p->panic)
		check_name(p, m);
	/* Errors in the body are worth finding even when what is before it is wrong. */
	if (p->panic)
		parser_skip_to(p, '{', '}');
	if (!parser_at(p, '{')) {
		parser_accept(p, '}');
		return;
	}
	m->body = parse_block_value(p);
	*p->next_macro = m;
	p->next_macro = &m->next;
}
