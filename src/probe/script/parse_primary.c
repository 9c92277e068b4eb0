/* SPDX-License-Identifier: MIT */
/* What expressions are made of: literals, parameters, names, calls, maps. */
#include <stdlib.h>
#include <string.h>

#include "probe/script/parser.h"

/* --- nodes -------------------------------------------------------------------------------- */

struct expr *expr_new(struct parser *p, enum expr_kind kind, uint32_t from)
{
	struct expr *e = arena_zalloc(p->arena, sizeof(*e));

	e->kind = kind;
	e->height = 1;
	e->place = parser_place(p, from, from);
	return e;
}

static void raise_above(struct expr *e, const struct expr *part)
{
	if (part && e->height <= part->height)
		e->height = (uint16_t)(part->height + 1);
}

static unsigned stmts_height(const struct stmt *s)
{
	unsigned highest = 0;

	for (; s; s = s->next) {
		unsigned body = stmts_height(s->body), other = stmts_height(s->other);

		for (int i = 0; i < 2; i++) {
			const struct expr *e = i ? s->b : s->a;

			if (e && e->height > highest)
				highest = e->height;
		}
		if (body >= highest)
			highest = body + 1;
		if (other >= highest)
			highest = other + 1;
	}
	return highest;
}

struct expr *expr_finish(struct parser *p, struct expr *e)
{
	unsigned body = stmts_height(e->body);

	if (e->height <= body)
		e->height = (uint16_t)(body + 1);
	raise_above(e, e->a);
	raise_above(e, e->b);
	raise_above(e, e->c);
	for (const struct expr *arg = e->args; arg; arg = arg->next)
		raise_above(e, arg);
	e->place = parser_since(p, e->place.from);
	if (e->height > SCRIPT_NESTING_MAX) {
		parser_error(p, parser_here(p), "nesting", "the expression has more than %d levels",
			SCRIPT_NESTING_MAX);
		/* What is below is given up, so that the tree stays low even so. */
		e->kind = EXPR_INT;
		e->a = e->b = e->c = e->args = NULL;
		e->body = NULL;
		e->n_args = 0;
		e->height = 1;
	}
	return e;
}

struct expr *expr_nothing(struct parser *p)
{
	return expr_finish(p, expr_new(p, EXPR_INT, p->token.from));
}

void expr_need_number(struct parser *p, const struct expr *e)
{
	/* Only a parameter begins with '$' and yet is a text. */
	if (!e || e->kind != EXPR_STRING || p->lexer.text[e->place.from] != '$')
		return;
	diag_error(p->diags, e->place, "parameter",
		"the parameter %.*s is '%s', which is no number",
		(int)(e->place.to - e->place.from), p->lexer.text + e->place.from, e->text);
	diag_hint(p->diags, "str(%.*s) is its text", (int)(e->place.to - e->place.from),
		p->lexer.text + e->place.from);
}

/* --- literals ----------------------------------------------------------------------------- */

struct expr *parse_number(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_INT, p->token.from);
	const char *text = p->lexer.text + p->token.from, *why;
	uint32_t n = p->token.to - p->token.from;

	if (!literal_number(text, n, &e->value, &e->is_unsigned, &why)) {
		diag_error(p->diags, parser_here(p), "number", "the number %.*s %s",
			n > 60 ? 60 : (int)n, text, why);
		if (strstr(why, "letters"))
			diag_hint(p->diags, "times end in ns, us, ms, s, m, h or d; C's numbers in "
					    "u, l, ul, ll or ull");
	}
	parser_take(p);
	if (parser_at(p, '.') && p->lexer.text[p->last_to] == '.') {
		parser_take(p);
		if (parser_at(p, TOKEN_NUMBER))
			parser_take(p);
		parser_error(p, parser_since(p, e->place.from), "number",
			"numbers have no fraction: all arithmetic is on integers");
	}
	return expr_finish(p, e);
}

struct expr *parse_string(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_STRING, p->token.from);

	e->text = literal_text(&p->lexer, p->token, p->arena, &e->text_n);
	parser_take(p);
	return expr_finish(p, e);
}

static struct expr *parse_char(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_INT, p->token.from);
	size_t n;
	const char *text = literal_text(&p->lexer, p->token, p->arena, &n);

	if (n != 1)
		diag_error(p->diags, parser_here(p), "character",
			"between two ' is one character, not %zu bytes", n);
	e->value = n ? (uint64_t)(int64_t)(signed char)text[0] : 0;
	parser_take(p);
	return expr_finish(p, e);
}

/* --- primaries ---------------------------------------------------------------------------- */

/* arguments = expr { "," expr }, up to what closes them; behind those that are there already */
static void parse_arguments(struct parser *p, struct expr *e, int close, struct token open)
{
	struct expr **next = &e->args;

	while (*next)
		next = &(*next)->next;
	while (!p->panic && !parser_at(p, close)) {
		*next = parse_expr(p);
		next = &(*next)->next;
		e->n_args++;
		if (!parser_accept(p, ','))
			break;
		if (parser_at(p, close))
			parser_expected(p, "an expression after ','");
	}
	parser_expect_closing(p, close, open);
}

/* call = name "(" [arguments] ")" */
static struct expr *parse_call(struct parser *p, struct token name)
{
	struct expr *e = expr_new(p, EXPR_CALL, name.from);
	struct token open = p->token;

	e->name = parser_text(p, name, 0);
	parser_take(p);
	if (token_is(p, name, "str") && parser_at(p, TOKEN_PARAMETER)) {
		struct expr *text = parse_parameter_text(p);

		if (text && parser_at(p, ')')) {
			parser_take(p);
			text->place = parser_since(p, name.from);
			return text;
		}
		e->args = text;
		e->n_args = text != NULL;
		if (text)
			parser_expect(p, ',', "')' or ','");
	}
	parse_arguments(p, e, ')', open);
	expr_finish(p, e);
	return token_is(p, name, "getopt") ? option_value(p, e) : e;
}

/* map = "@" [name] [ "[" arguments "]" ] ; @x[(a, b)] is @x[a, b] */
static struct expr *parse_map(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_MAP, p->token.from);
	struct token open;

	e->name = parser_text(p, p->token, 1);
	parser_take(p);
	open = p->token;
	if (parser_accept(p, '[')) {
		if (parser_at(p, ']'))
			parser_expected(p, "a key");
		parse_arguments(p, e, ']', open);
		if (e->n_args == 1 && e->args->kind == EXPR_TUPLE && e->args->n_args > 1 &&
			!e->args->args->label) {
			e->n_args = e->args->n_args;
			e->args = e->args->args;
		}
	}
	return expr_finish(p, e);
}

/* variable = ("self" | "thread" | "this") "->" name */
static struct expr *parse_thread_local(struct parser *p, enum expr_kind kind)
{
	struct expr *e = expr_new(p, kind, p->token.from);

	parser_take(p);
	parser_take(p);
	e->name = parser_at(p, TOKEN_NAME) ? parser_text(p, p->token, 0) : "";
	parser_expect(p, TOKEN_NAME, "the name of a variable");
	return expr_finish(p, e);
}

/* Whether "sizeof(" is followed by a type: a type's word, or "Item *". */
static bool is_at_type(const struct parser *p)
{
	struct lexer ahead = p->lexer;
	struct token t;

	if (!parser_at(p, TOKEN_NAME))
		return false;
	if (word_is_type(p, p->token))
		return true;
	ahead.diags = NULL;
	t = lexer_next(&ahead);
	if (t.kind != '*')
		return false;
	while (t.kind == '*' || token_is(p, t, "const"))
		t = lexer_next(&ahead);
	return t.kind == ')';
}

/* sizeof = "sizeof" "(" (type name | expr) ")" */
static struct expr *parse_sizeof(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_SIZEOF, p->token.from);
	struct token open;

	parser_take(p);
	open = p->token;
	parser_expect(p, '(', "'(' after sizeof");
	if (is_at_type(p))
		e->decl = parse_type_name(p);
	else
		e->a = parse_expr(p);
	parser_expect_closing(p, ')', open);
	return expr_finish(p, e);
}

/* offsetof = "offsetof" "(" type name "," name { "." name } ")" */
static struct expr *parse_offsetof(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_OFFSETOF, p->token.from);
	struct token open;
	uint32_t from;

	parser_take(p);
	open = p->token;
	parser_expect(p, '(', "'(' after offsetof");
	e->decl = parse_type_name(p);
	parser_expect(p, ',', "',' and a field");
	from = p->token.from;
	e->name = "";
	do {
		struct token name = p->token;

		parser_expect(p, TOKEN_NAME, "the name of a field");
		e->name = arena_printf(p->arena, "%s%s%.*s", e->name, *e->name ? "." : "",
			p->panic ? 0 : (int)(name.to - name.from), p->lexer.text + name.from);
	} while (parser_accept(p, '.') && p->token.from - from < 1000);
	parser_expect_closing(p, ')', open);
	return expr_finish(p, e);
}

/* part = [ name "=" ] expr */
static struct expr *parse_part(struct parser *p)
{
	const char *label = NULL;
	struct expr *e;

	if (parser_at(p, TOKEN_NAME) && parser_peek(p).kind == '=') {
		label = parser_text(p, p->token, 0);
		parser_take(p);
		parser_take(p);
	}
	e = parse_expr(p);
	e->label = label;
	return e;
}

static void check_labels(struct parser *p, const struct expr *e)
{
	for (const struct expr *a = e->args; a; a = a->next) {
		if (!a->label != !e->args->label)
			parser_error(p, a->place, "expected",
				"either all parts of a record have names, or none has");
		for (const struct expr *b = a->next; b && a->label; b = b->next)
			if (b->label && !strcmp(a->label, b->label))
				parser_error(p, b->place, "duplicate",
					"'%s' is twice in this record", a->label);
	}
}

/* group = "(" expr ")" ; tuple = "(" [ part { "," part } [","] ] ")" */
static struct expr *parse_group(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_TUPLE, p->token.from), **next = &e->args;
	struct token open = p->token;
	bool is_tuple = false;

	parser_take(p);
	if (parser_at(p, ')'))
		parser_expected(p, "an expression");
	while (!p->panic && !parser_at(p, ')')) {
		*next = parse_part(p);
		is_tuple |= (*next)->label != NULL;
		next = &(*next)->next;
		e->n_args++;
		if (!parser_accept(p, ','))
			break;
		is_tuple = true;
	}
	parser_expect_closing(p, ')', open);
	if (e->n_args == 1 && !is_tuple)
		return e->args;
	check_labels(p, e);
	return expr_finish(p, e);
}

/* named = "true" | "false" | sizeof | offsetof | thread-local | call | name */
static struct expr *parse_named(struct parser *p)
{
	struct token name = p->token;
	int next = parser_peek(p).kind;
	const struct lexer_define *define = define_find(p, name, next);
	struct expr *e;

	if (define)
		return parse_defined(p, *define);
	if (parser_at_word(p, "if"))
		return parse_if_value(p);
	if (next == '(' && parser_at_word(p, "sizeof"))
		return parse_sizeof(p);
	if (next == '(' && parser_at_word(p, "offsetof"))
		return parse_offsetof(p);
	if (next == TOKEN_ARROW && (parser_at_word(p, "self") || parser_at_word(p, "thread")))
		return parse_thread_local(p, EXPR_SELF);
	if (next == TOKEN_ARROW && parser_at_word(p, "this"))
		return parse_thread_local(p, EXPR_LOCAL);
	parser_take(p);
	if (next == '!' && p->lexer.text[p->token.to] == '(') {
		parser_take(p); /* name!(...): that it is a macro is known without */
		next = '(';
	}
	if (next == '(')
		return parse_call(p, name);
	e = expr_new(p, EXPR_NAME, name.from);
	e->name = parser_text(p, name, 0);
	if (token_is(p, name, "true") || token_is(p, name, "false")) {
		e->kind = EXPR_INT;
		e->is_bool = true;
		e->value = token_is(p, name, "true");
	}
	return expr_finish(p, e);
}

/* primary = number | string | char | parameter | local | map | named | group | tuple
 *         | block expression | if expression */
struct expr *parse_primary(struct parser *p)
{
	struct expr *e;

	if (p->panic)
		return expr_nothing(p);
	switch (p->token.kind) {
	case TOKEN_NUMBER:
		return parse_number(p);
	case TOKEN_STRING:
		return parse_string(p);
	case TOKEN_CHAR:
		return parse_char(p);
	case TOKEN_PARAMETER:
	case TOKEN_PARAMETER_COUNT:
		return parse_parameter(p);
	case TOKEN_MAP:
		return parse_map(p);
	case TOKEN_NAME:
		return parse_named(p);
	case '(':
		return parse_group(p);
	case '{':
		return parse_block_value(p);
	case TOKEN_LOCAL:
		e = expr_new(p, EXPR_LOCAL, p->token.from);
		e->name = parser_text(p, p->token, 1);
		parser_take(p);
		return expr_finish(p, e);
	default:
		parser_expected(p, "an expression");
		return expr_nothing(p);
	}
}
