/* SPDX-License-Identifier: MIT */
/*
 * C declarations: those between clauses, and the types that casts, sizeof and let name. What a name
 * means and whether a type makes sense is the matter of types/; here is only what C's grammar says.
 */
#include "probe/script/decl_parser.h"

/* --- declarators -------------------------------------------------------------------------- */

/* parameter = specifiers [declarator] ; arrays and functions become pointers */
static void parse_function_parameter(
	struct parser *p, struct decl_type *to, struct decl_field ***next)
{
	struct decl_field *f = arena_zalloc(p->arena, sizeof(*f));
	struct token name = {0};
	struct specifiers s;
	struct decl_type *type;

	if (!parse_specifiers(p, &s))
		parser_expected(p, "the type of a parameter");
	type = parse_declarator(p, s.type, &name);
	if (type->kind == DECL_ARRAY || type->kind == DECL_FUNCTION) {
		struct decl_type *pointer = type_new(p, DECL_POINTER, p->token);

		pointer->place = type->place;
		pointer->of = type->kind == DECL_ARRAY ? type->of : type;
		type = pointer;
	}
	parse_attributes(p, &s.attributes);
	f->type = type_limit_height(p, type);
	f->name = name.to ? parser_text(p, name, 0) : NULL;
	f->place = name.to ? parser_place(p, name.from, name.to) : type->place;
	type_add_field(to, next, f);
}

/* parameters = "(" [ "void" | parameter { "," parameter } [ "," "..." ] ] ")" */
static struct decl_type *parse_function(struct parser *p)
{
	struct decl_type *t = type_new(p, DECL_FUNCTION, p->token);
	struct decl_field **next = &t->fields;
	struct token open = p->token;

	parser_take(p);
	t->height = 1;
	if (parser_at_word(p, "void") && parser_peek(p).kind == ')')
		parser_take(p);
	while (!p->panic && !parser_at(p, ')')) {
		if (t->fields && parser_accept(p, TOKEN_ELLIPSIS)) {
			t->is_variadic = true;
			break;
		}
		parse_function_parameter(p, t, &next);
		if (!parser_accept(p, ','))
			break;
		if (parser_at(p, ')'))
			parser_expected(p, "a parameter after ','");
	}
	parser_expect_closing(p, ')', open);
	return t;
}

/* suffixes = { "[" [conditional] "]" } [ parameters ] */
static struct decl_type *parse_suffixes(struct parser *p, struct decl_type *base)
{
	struct decl_type *first = base, **hole = &first;

	while (parser_at(p, '[')) {
		struct decl_type *t = type_new(p, DECL_ARRAY, p->token);
		struct token open = p->token;

		parser_take(p);
		while (parser_at(p, TOKEN_NAME) && word_in(p, p->token, qualifier_words))
			parser_take(p);
		if (!parser_at(p, ']'))
			t->n = parse_conditional(p);
		parser_expect_closing(p, ']', open);
		t->of = base;
		*hole = t;
		hole = &t->of;
	}
	if (parser_at(p, '(')) {
		struct token open = p->token;
		struct decl_type *t;

		if (first != base)
			parser_error(p, parser_place(p, open.from, open.to), "declaration",
				"there are no arrays of functions");
		if (!parser_enter(p))
			return first;
		t = parse_function(p);
		parser_leave(p);
		t->of = base;
		*hole = t;
	}
	return first;
}

/* Whether "(" encloses a declarator and not parameters. */
static bool is_at_nested_declarator(const struct parser *p)
{
	struct token next = parser_peek(p);

	return parser_at(p, '(') && (next.kind == '*' || next.kind == '(' ||
					    (next.kind == TOKEN_NAME && !word_is_type(p, next)));
}

/* declarator = { "*" { qualifier } } [ name | "(" declarator ")" ] suffixes */
static struct decl_type *parse_bounded_declarator(
	struct parser *p, struct decl_type *base, struct token *name)
{
	while (parser_at(p, '*')) {
		struct decl_type *t = type_new(p, DECL_POINTER, p->token);

		t->of = base;
		base = t;
		parser_take(p);
		while (parser_at(p, TOKEN_NAME) && word_in(p, p->token, qualifier_words))
			parser_take(p);
	}
	if (is_at_nested_declarator(p)) {
		struct token open = p->token;
		/* What is inside is made of something that only what follows tells. */
		struct decl_type *inside = type_new(p, DECL_INT, p->token), *type;

		parser_take(p);
		type = parse_declarator(p, inside, name);
		parser_expect_closing(p, ')', open);
		base = parse_suffixes(p, base);
		if (type == inside)
			return base;
		*inside = *base;
		return type;
	}
	if (parser_at(p, TOKEN_NAME) && !word_in(p, p->token, tag_words) &&
		!token_is(p, p->token, "__attribute__")) {
		*name = p->token;
		parser_take(p);
	}
	return parse_suffixes(p, base);
}

struct decl_type *parse_declarator(struct parser *p, struct decl_type *base, struct token *name)
{
	struct decl_type *t;

	if (!parser_enter(p))
		return base;
	t = parse_bounded_declarator(p, base, name);
	parser_leave(p);
	return t;
}

/* type name = specifiers [declarator without a name] */
struct decl_type *parse_type_name(struct parser *p)
{
	struct token name = {0};
	struct specifiers s;
	struct decl_type *t;

	if (!parse_specifiers(p, &s))
		parser_expected(p, "a type");
	if (s.is_typedef)
		parser_error(p, s.type->place, "declaration", "typedef has no place here");
	t = parse_declarator(p, s.type, &name);
	if (name.to)
		parser_error(p, parser_place(p, name.from, name.to), "expected",
			"a type without a name is expected here");
	if (s.type->is_defined)
		parser_error(p, s.type->place, "declaration",
			"a type is declared before the clauses, not in an expression");
	t = type_limit_height(p, t);
	return t;
}

/* --- declarations ------------------------------------------------------------------------- */

static void add_decl(
	struct parser *p, const struct specifiers *s, struct decl_type *type, struct token name)
{
	struct decl *d = arena_zalloc(p->arena, sizeof(*d));

	d->type = type_limit_height(p, type);
	d->place = type->place;
	if (name.to) {
		d->is_typedef = s->is_typedef;
		d->name = parser_text(p, name, 0);
		d->place = parser_place(p, name.from, name.to);
		if (s->is_typedef)
			word_add_typedef(p, name);
	}
	*p->next_decl = d;
	p->next_decl = &d->next;
}

/* The part of C that is no declaration of a layout. */
static void refuse_rest(struct parser *p)
{
	if (parser_at(p, '{'))
		parser_error(p, parser_here(p), "declaration",
			"a function is declared here, not defined");
	else if (parser_at(p, '='))
		parser_error(p, parser_here(p), "declaration",
			"a declaration has no initial value here");
}

static void parse_declarators(struct parser *p, struct specifiers *s)
{
	struct decl_type *base = s->type;

	if (base->is_defined && base->name) {
		add_decl(p, s, base, (struct token){0});
		base = type_without_definition(p, base);
	}
	do {
		struct attributes attributes = s->attributes;
		struct token name = {0};
		struct decl_type *type = parse_declarator(p, base, &name);

		parse_attributes(p, &attributes);
		if (!p->panic && !name.to)
			parser_expected(p, "a name");
		if (p->panic)
			return;
		add_decl(p, s, type_with_attributes(p, type, &attributes, false), name);
	} while (parser_accept(p, ','));
	refuse_rest(p);
}

/* After a wrong declaration: behind its ';' or its body. */
static void skip_decl(struct parser *p)
{
	p->panic = false;
	while (!parser_at(p, TOKEN_END) && !parser_at(p, '{') && !parser_at(p, '}')) {
		if (parser_accept(p, ';'))
			return;
		parser_take(p);
	}
	if (parser_at(p, '{')) {
		parser_take(p);
		parser_skip_field(p);
		while (!parser_at(p, TOKEN_END) && !parser_at(p, '}'))
			parser_skip_field(p);
	}
	parser_accept(p, '}');
	parser_accept(p, ';');
}

/* declaration = specifiers [ declarator attributes { "," declarator attributes } ] ";"
 * The ';' may be missing after a body when a new line, another structure or a clause follows. */
void parse_decl(struct parser *p)
{
	struct specifiers s;
	bool has_body;

	if (!parse_specifiers(p, &s))
		parser_expected(p, "a type");
	has_body = s.type->is_defined;
	if (p->panic) {
		skip_decl(p);
		return;
	}
	if (parser_at(p, ';') || parser_at(p, TOKEN_END) ||
		(has_body &&
			(parser_starts_line(p) || parser_at_clause(p) ||
				(parser_at(p, TOKEN_NAME) && word_in(p, p->token, tag_words))))) {
		if (s.type->kind == DECL_ENUM || (s.type->kind == DECL_STRUCT && s.type->name))
			add_decl(p, &s, s.type, (struct token){0});
		else
			parser_error(p, s.type->place, "declaration",
				"this declares nothing that has a name");
	} else {
		parse_declarators(p, &s);
		has_body = false;
	}
	if (!parser_accept(p, ';') && !has_body)
		parser_expected(p, "';' after the declaration");
	if (p->panic)
		skip_decl(p);
}
