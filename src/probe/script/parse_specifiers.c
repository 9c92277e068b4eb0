/* SPDX-License-Identifier: MIT */
/*
 * What stands before the names of a declaration: words of types, structures and enumerations with
 * their bodies, attributes.
 *
 * A tag is defined once in the tree: "struct a { ... } x, y;" gives the definition to the first
 * that can have it and a mere reference to the others. Only a definition without a tag is shared.
 */
#include <string.h>

#include "probe/script/decl_parser.h"

#define ALIGN_MAX     (1u << 28)
#define ALIGN_BIGGEST 16 /* __attribute__((aligned)) on x86 */

/* Attributes that move fields in a way that nothing here knows. */
static const char *const refused_attributes[] = {"mode", "vector_size", "ms_struct",
	"scalar_storage_order", "transparent_union", "address_space", NULL};

struct decl_type *type_new(struct parser *p, enum decl_kind kind, struct token at)
{
	struct decl_type *t = arena_zalloc(p->arena, sizeof(*t));

	t->kind = kind;
	t->place = parser_place(p, at.from, at.to);
	return t;
}

/* Levels of pointers, arrays, functions and structures within. */
static unsigned type_height(const struct decl_type *t)
{
	unsigned n = 1, highest = 0;

	for (; t; t = t->of, n++)
		if (n + t->height > highest)
			highest = n + t->height;
	return n > highest ? n : highest;
}

struct decl_type *type_limit_height(struct parser *p, struct decl_type *t)
{
	if (type_height(t) <= SCRIPT_NESTING_MAX)
		return t;
	parser_error(
		p, t->place, "nesting", "the type has more than %d levels", SCRIPT_NESTING_MAX);
	return type_new(p, DECL_INT, p->token);
}

void type_add_field(struct decl_type *to, struct decl_field ***next, struct decl_field *f)
{
	unsigned height = type_height(f->type) + 1;

	if (height > to->height)
		to->height = (uint16_t)height;
	**next = f;
	*next = &f->next;
}

/* --- attributes --------------------------------------------------------------------------- */

/* alignment = "(" number ")" */
static uint32_t parse_alignment(struct parser *p)
{
	struct token open = p->token;
	const struct expr *e = NULL;

	parser_expect(p, '(', "'(' and an alignment");
	if (parser_at(p, TOKEN_NUMBER)) {
		struct place place = parser_here(p);

		e = parse_number(p);
		if (!e->value || e->value > ALIGN_MAX || (e->value & (e->value - 1)))
			parser_error(p, place, "declaration", "an alignment is a power of two");
	} else {
		parser_error(p, parser_here(p), "declaration",
			"an alignment is written as a number here");
	}
	parser_expect_closing(p, ')', open);
	return e && !p->panic ? (uint32_t)e->value : 0;
}

static void skip_parentheses(struct parser *p)
{
	struct token open = p->token;
	unsigned depth = 0;

	while (!p->panic && !parser_at(p, TOKEN_END)) {
		if (parser_at(p, '('))
			depth++;
		if (parser_at(p, ')') && !--depth)
			break;
		parser_take(p);
	}
	parser_expect_closing(p, ')', open);
}

/* attribute = "packed" | "aligned" [alignment] | name [ "(" ... ")" ] */
static void parse_attribute(struct parser *p, struct attributes *to)
{
	struct place place = parser_here(p);

	if (parser_accept_word(p, "packed") || parser_accept_word(p, "__packed__")) {
		to->is_packed = true;
	} else if (parser_accept_word(p, "aligned") || parser_accept_word(p, "__aligned__")) {
		to->align = parser_at(p, '(') ? parse_alignment(p) : ALIGN_BIGGEST;
	} else if (parser_at(p, TOKEN_NAME) && word_in(p, p->token, refused_attributes)) {
		parser_error(p, place, "declaration",
			"the attribute '%s' changes the layout in a way that is not known here",
			parser_text(p, p->token, 0));
		return;
	} else {
		parser_expect(p, TOKEN_NAME, "an attribute");
		if (parser_at(p, '('))
			skip_parentheses(p);
		return;
	}
	to->place = place;
}

/* attributes = { "__attribute__" "((" [attribute { "," attribute }] "))" } */
void parse_attributes(struct parser *p, struct attributes *to)
{
	while (parser_accept_word(p, "__attribute__")) {
		struct token open = p->token, inner;

		parser_expect(p, '(', "'((' after __attribute__");
		inner = p->token;
		parser_expect(p, '(', "'((' after __attribute__");
		while (!p->panic && !parser_at(p, ')')) {
			parse_attribute(p, to);
			if (!parser_accept(p, ','))
				break;
		}
		parser_expect_closing(p, ')', inner);
		parser_expect_closing(p, ')', open);
	}
}

struct decl_type *type_with_attributes(
	struct parser *p, struct decl_type *t, const struct attributes *a, bool is_field)
{
	if (!a->is_packed && !a->align)
		return t;
	if (a->is_packed && (!is_field || t->kind == DECL_STRUCT)) {
		parser_error(p, a->place, "declaration", "packed belongs to a structure here");
		diag_hint(p->diags, "write it between '}' and the name");
		return t;
	}
	t = arena_dup(p->arena, t, sizeof(*t));
	t->is_packed = a->is_packed;
	if (a->align)
		t->align = a->align;
	return t;
}

/* --- structures and enumerations ---------------------------------------------------------- */

void parser_skip_field(struct parser *p)
{
	parser_skip_to(p, ';', '}');
	parser_accept(p, ';');
}

struct decl_type *type_without_definition(struct parser *p, struct decl_type *t)
{
	struct decl_type *copy;

	if (!t->is_defined || !t->name)
		return t;
	copy = arena_dup(p->arena, t, sizeof(*t));
	copy->is_defined = copy->is_packed = false;
	copy->fields = NULL;
	copy->enumerators = NULL;
	copy->height = 0;
	copy->align = 0;
	return copy;
}

/* field = specifiers [ declarator [":" bits] attributes { "," ... } ] ";" ; the last ';' may be
 * missing */
static void parse_fields(struct parser *p, struct decl_type *to, struct decl_field ***next)
{
	struct specifiers s;
	struct decl_type *base;

	if (!parse_specifiers(p, &s))
		parser_expected(p, "a field or '}'");
	base = s.type;
	if (parser_at(p, ';') && (base->kind != DECL_STRUCT || base->name))
		parser_error(p, base->place, "declaration", "the field has no name");
	while (!p->panic) {
		struct decl_field *f = arena_zalloc(p->arena, sizeof(*f));
		struct attributes attributes = s.attributes;
		struct token name = {0};
		struct decl_type *type = base;

		if (!parser_at(p, ':') && !parser_at(p, ';'))
			type = parse_declarator(p, base, &name);
		f->place = name.to ? parser_place(p, name.from, name.to) : base->place;
		f->name = name.to ? parser_text(p, name, 0) : NULL;
		if (parser_accept(p, ':'))
			f->bits = parse_conditional(p);
		else if (!name.to && (type->kind != DECL_STRUCT || type->name))
			parser_expected(p, "the name of the field");
		parse_attributes(p, &attributes);
		f->type = type_limit_height(p, type_with_attributes(p, type, &attributes, true));
		type_add_field(to, next, f);
		base = type_without_definition(p, base);
		if (!parser_accept(p, ','))
			break;
	}
	if (!parser_at(p, '}')) /* as gcc and clang allow */
		parser_expect(p, ';', "';' after the field");
}

/* structure body = "{" { field } "}" */
static void parse_struct_body(struct parser *p, struct decl_type *t)
{
	struct decl_field **next = &t->fields;
	struct token open = p->token;

	parser_take(p);
	t->is_defined = true;
	t->height = 1;
	while (!p->panic && !parser_at(p, '}') && !parser_at(p, TOKEN_END)) {
		uint32_t from = p->token.from;

		if (parser_accept(p, ';'))
			continue;
		parse_fields(p, t, &next);
		if (p->panic)
			parser_skip_field(p);
		if (p->token.from == from)
			parser_take(p); /* whatever it was: never stay */
	}
	parser_expect_closing(p, '}', open);
}

/* enumerator = name [ "=" conditional ] ; body = "{" enumerator { "," enumerator } [","] "}" */
static void parse_enum_body(struct parser *p, struct decl_type *t)
{
	struct decl_enumerator **next = &t->enumerators;
	struct token open = p->token;

	parser_take(p);
	t->is_defined = true;
	do {
		struct decl_enumerator *e;

		if (parser_at(p, '}') && t->enumerators)
			break;
		e = arena_zalloc(p->arena, sizeof(*e));
		e->place = parser_here(p);
		e->name = parser_at(p, TOKEN_NAME) ? parser_text(p, p->token, 0) : "";
		parser_expect(p, TOKEN_NAME, "the name of a constant");
		if (parser_accept(p, '='))
			e->value = parse_conditional(p);
		*next = e;
		next = &e->next;
	} while (parser_accept(p, ','));
	parser_expect_closing(p, '}', open);
}

/* tagged = ("struct" | "union" | "enum") attributes [name] [body attributes] */
static struct decl_type *parse_tagged(struct parser *p)
{
	bool is_enum = parser_at_word(p, "enum");
	struct decl_type *t = type_new(p, is_enum ? DECL_ENUM : DECL_STRUCT, p->token);
	struct attributes attributes = {0};

	t->is_union = parser_at_word(p, "union");
	parser_take(p);
	parse_attributes(p, &attributes);
	if (parser_at(p, TOKEN_NAME)) {
		t->name = parser_text(p, p->token, 0);
		parser_take(p);
	}
	t->place = parser_since(p, t->place.from);
	if (parser_at(p, '{') && parser_enter(p)) {
		if (is_enum)
			parse_enum_body(p, t);
		else
			parse_struct_body(p, t);
		parser_leave(p);
		parse_attributes(p, &attributes);
		if (parser_accept_word(p, "__packed"))
			attributes.is_packed = true;
	} else if (!t->name) {
		parser_expected(p, "a name or '{'");
	}
	t->is_packed = attributes.is_packed;
	t->align = attributes.align;
	return t;
}

/* --- specifiers --------------------------------------------------------------------------- */

/* One of the words that combine; false when it is none. */
static bool take_number_word(struct parser *p, struct specifiers *s)
{
	if (!parser_at(p, TOKEN_NAME) || !word_in(p, p->token, number_words))
		return false;
	s->n_char += parser_at_word(p, "char");
	s->n_short += parser_at_word(p, "short");
	s->n_int += parser_at_word(p, "int");
	s->n_long += parser_at_word(p, "long");
	s->n_double += parser_at_word(p, "double");
	s->is_unsigned |= parser_at_word(p, "unsigned");
	s->is_signed |= parser_at_word(p, "signed") || parser_at_word(p, "__signed__") ||
			parser_at_word(p, "__signed");
	if (s->type)
		parser_error(p, parser_here(p), "declaration", "there are two types here");
	s->has_number = true;
	parser_take(p);
	return true;
}

static bool number_is_wrong(const struct specifiers *s)
{
	return (s->is_signed && s->is_unsigned) || s->n_char > 1 || s->n_short > 1 ||
	       s->n_int > 1 || s->n_long > 2 || s->n_double > 1 || (s->n_short && s->n_long) ||
	       (s->n_char && (s->n_short || s->n_long || s->n_int || s->n_double)) ||
	       (s->n_double &&
		       (s->n_short || s->n_int || s->n_long > 1 || s->is_signed || s->is_unsigned));
}

/* The type that the words make together. */
static void finish_number(struct parser *p, struct specifiers *s)
{
	struct token t = {TOKEN_NAME, s->from, p->last_to};

	if (number_is_wrong(s))
		parser_error(p, parser_place(p, t.from, t.to), "declaration",
			"these words make no type together");
	s->type = type_new(p,
		s->n_char		   ? DECL_CHAR
		: s->n_double && s->n_long ? DECL_LONG_DOUBLE
		: s->n_double		   ? DECL_DOUBLE
		: s->n_short		   ? DECL_SHORT
		: s->n_long > 1		   ? DECL_LONG_LONG
		: s->n_long		   ? DECL_LONG
					   : DECL_INT,
		t);
	s->type->is_unsigned = s->is_unsigned;
}

/* A type of one word: of the table, or a name that the script or the program declares. */
static void take_named_type(struct parser *p, struct specifiers *s)
{
	const struct type_word *w = type_word_find(p, p->token);
	struct decl_type *t = type_new(p, w ? w->kind : DECL_NAMED, p->token);
	struct token open;

	if (w) {
		t->bytes = w->bytes;
		t->is_unsigned = w->is_unsigned;
	}
	if (t->kind == DECL_NAMED)
		t->name = parser_text(p, p->token, 0);
	s->type = t;
	parser_take(p);
	open = p->token;
	if (t->kind == DECL_STRING && parser_accept(p, '[')) {
		t->n = parse_conditional(p);
		parser_expect_closing(p, ']', open);
		t->place = parser_since(p, t->place.from);
	}
}

/* typeof = "typeof" "(" (type name | expr) ")" */
static void take_typeof(struct parser *p, struct specifiers *s)
{
	struct decl_type *t = type_new(p, DECL_TYPEOF, p->token);
	struct token open;

	parser_take(p);
	open = p->token;
	parser_expect(p, '(', "'(' after typeof");
	if (parser_at(p, TOKEN_NAME) && word_is_type(p, p->token))
		t = parse_type_name(p);
	else
		t->of_value = parse_expr(p);
	parser_expect_closing(p, ')', open);
	s->type = t;
}

/* Words that say something other than the type; false when it is none of them. */
static bool take_other_word(struct parser *p, struct specifiers *s)
{
	if (parser_at_word(p, "__attribute__")) {
		parse_attributes(p, &s->attributes);
		return true;
	}
	if (parser_accept_word(p, "_Alignas")) {
		s->attributes.align = parse_alignment(p);
		return true;
	}
	if (parser_accept_word(p, "typedef")) {
		s->is_typedef = true;
		return true;
	}
	if (!parser_at(p, TOKEN_NAME) ||
		!(word_in(p, p->token, qualifier_words) || word_in(p, p->token, storage_words)))
		return false;
	parser_take(p);
	return true;
}

/* specifiers = { qualifier | storage | attributes | number word | tagged | type word | name }
 * with one type in all. False when there is none; the type is then an int. */
bool parse_specifiers(struct parser *p, struct specifiers *s)
{
	bool has_type = true;

	*s = (struct specifiers){.from = p->token.from};
	while (!p->panic) {
		if (take_other_word(p, s) || take_number_word(p, s))
			continue;
		if (s->type || s->has_number || !parser_at(p, TOKEN_NAME))
			break;
		if (word_in(p, p->token, tag_words))
			s->type = parse_tagged(p);
		else if (parser_at_word(p, "typeof"))
			take_typeof(p, s);
		else
			take_named_type(p, s);
	}
	if (!s->type) {
		has_type = s->has_number;
		finish_number(p, s);
	}
	return has_type || p->panic;
}
