/* SPDX-License-Identifier: MIT */
/*
 * Names of #define: their text is parsed again wherever they stand, as an expression. A parameter is a name of that
 * kind, too, for as long as its #define is parsed; what it stands for knows neither it nor its neighbours.
 */
#include <string.h>

#include "probe/script/parser.h"

#define EXPANSIONS_MAX 10000 /* names of #define, also inside others, in all scripts */

const struct lexer_define *define_find(const struct parser *p, struct token name, int next)
{
	for (size_t i = p->defines.v.n; i-- > 0;) {
		const struct lexer_define *d = &p->defines.v.v[i];

		if (d->to - d->from == name.to - name.from &&
			!memcmp(d->text + d->from, p->lexer.text + name.from, d->to - d->from))
			return !d->parameters || next == '(' ? d : NULL;
	}
	return NULL;
}

/* --- parameters ------------------------------------------------------------------------------- */

/* The text of an argument: up to a ',' or ')' of its own level, which stays. */
static void skip_argument(struct parser *p)
{
	unsigned depth = 0;

	while (!p->panic && !parser_at(p, TOKEN_END)) {
		int kind = p->token.kind;

		if (!depth && (kind == ',' || kind == ')'))
			return;
		if (kind == '(' || kind == '[' || kind == '{')
			depth++;
		else if (depth && (kind == ')' || kind == ']' || kind == '}'))
			depth--;
		parser_take(p);
	}
}

static struct lexer_define given(struct parser *p, const struct lexer_define *d, struct token name)
{
	struct lexer_define g = {.text = d->text,
		.from = name.from,
		.to = name.to,
		.body_text = p->lexer.text,
		.body_source_i = p->lexer.source_i,
		.body_from = p->token.from,
		.is_parameter = true,
		.n_visible = p->defines.v.n};

	skip_argument(p);
	g.body_to = p->last_to;
	if (g.body_to <= g.body_from)
		parser_expected(p, "an argument");
	return g;
}

/* arguments = "(" argument { "," argument } ")": one for each parameter. Stays at the ")". */
static void take_arguments(struct parser *p, const struct lexer_define *d)
{
	VEC(struct lexer_define) all = {0};
	struct lexer names = p->lexer;
	struct token name;

	names.text = d->text;
	names.source_i = d->body_source_i;
	names.pos = d->parameters + 1;
	names.n = d->body_from;
	names.defines = NULL;
	names.diags = NULL;
	parser_take(p);
	parser_take(p);
	for (name = lexer_next(&names); !p->panic && name.kind == TOKEN_NAME;
		name = lexer_next(&names)) {
		if (all.n && !parser_accept(p, ','))
			parser_expected(p, "',' and an argument");
		vec_push(&all, given(p, d, name));
		if (lexer_next(&names).kind != ',')
			break;
	}
	if (!p->panic && !parser_at(p, ')'))
		parser_expected(p, "')' behind the arguments");
	for (size_t i = 0; i < all.n; i++)
		vec_push(&p->defines.v, all.v[i]);
	vec_release(&all);
}

/* --- what stands for a name ------------------------------------------------------------------- */

/* From the current token on, which is the last one of the use. */
static struct expr *parse_body(struct parser *p, const struct lexer_define *d)
{
	struct lexer rest;
	struct token after;
	uint32_t last_to;
	struct expr *e;

	parser_take(p);
	rest = p->lexer;
	after = p->token;
	last_to = p->last_to;
	p->lexer.text = d->body_text;
	p->lexer.source_i = d->body_source_i;
	p->lexer.pos = d->body_from;
	p->lexer.n = d->body_to;
	p->token = lexer_next(&p->lexer);
	e = parse_conditional(p);
	if (!p->panic && p->token.kind != TOKEN_END)
		parser_error(p, (struct place){d->body_source_i, d->body_from, d->body_to, 0},
			"declaration", "'%.*s' can only stand for an expression",
			(int)(d->to - d->from), d->text + d->from);
	p->lexer = rest;
	p->token = after;
	p->last_to = last_to;
	return e;
}

/* What is given for a parameter is parsed with the names that were known where it is given. */
static struct expr *parse_given(struct parser *p, const struct lexer_define *d)
{
	size_t n = p->defines.v.n, n_hidden = n - d->n_visible;
	struct lexer_define *hidden =
		arena_dup(p->arena, p->defines.v.v + d->n_visible, n_hidden * sizeof(*hidden));
	struct expr *e;

	p->defines.v.n = d->n_visible;
	e = parse_body(p, d);
	p->defines.v.n = d->n_visible;
	for (size_t i = 0; i < n_hidden; i++)
		vec_push(&p->defines.v, hidden[i]);
	return e;
}

struct expr *parse_defined(struct parser *p, struct lexer_define d)
{
	uint32_t from = p->token.from;
	size_t n = p->defines.v.n;
	struct expr *e;

	if (++p->n_expanded > EXPANSIONS_MAX)
		parser_error(p, parser_here(p), "size",
			"names of #define stand for more than %d expressions", EXPANSIONS_MAX);
	if (!parser_enter(p))
		return expr_nothing(p);
	if (d.parameters)
		take_arguments(p, &d);
	e = d.is_parameter ? parse_given(p, &d) : parse_body(p, &d);
	if (d.parameters)
		p->defines.v.n = n;
	e->place = parser_since(p, from);
	parser_leave(p);
	return e;
}
