/* SPDX-License-Identifier: MIT */
/*
 * The top of the grammar (scripts, clauses, config) and the tools of all of it. See parser.h for
 * how errors are handled.
 */
#include "probe/script/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/script/parser.h"

#define SETTINGS_MAX	 100
#define SHOWN_BYTES_MAX	 32 /* of a token in a message */

/* Trace points without a ':'. */
static const char *const plain_points[] = {"begin", "end", "error", "BEGIN", "END", NULL};

/* --- tokens ------------------------------------------------------------------------------- */

struct place parser_here(const struct parser *p)
{
	if (p->token.kind == TOKEN_END)
		return parser_place(p, p->last_to, p->last_to);
	return parser_place(p, p->token.from, p->token.to);
}

struct place parser_since(const struct parser *p, uint32_t from)
{
	return parser_place(p, from, p->last_to > from ? p->last_to : from);
}

void parser_take(struct parser *p)
{
	if (p->panic)
		return;
	p->last_to = p->token.to;
	p->token = lexer_next(&p->lexer);
}

struct token parser_peek(const struct parser *p)
{
	struct lexer ahead = p->lexer;

	ahead.diags = NULL;
	return lexer_next(&ahead);
}

bool parser_at(const struct parser *p, int kind)
{
	return !p->panic && p->token.kind == kind;
}

bool parser_accept(struct parser *p, int kind)
{
	if (!parser_at(p, kind))
		return false;
	parser_take(p);
	return true;
}

bool token_is(const struct parser *p, struct token t, const char *word)
{
	return t.kind == TOKEN_NAME && strlen(word) == t.to - t.from &&
	       !memcmp(p->lexer.text + t.from, word, t.to - t.from);
}

bool word_in(const struct parser *p, struct token t, const char *const *words)
{
	for (; *words; words++)
		if (token_is(p, t, *words))
			return true;
	return false;
}

bool parser_at_word(const struct parser *p, const char *word)
{
	return !p->panic && token_is(p, p->token, word);
}

bool parser_accept_word(struct parser *p, const char *word)
{
	if (!parser_at_word(p, word))
		return false;
	parser_take(p);
	return true;
}

bool parser_starts_line(const struct parser *p)
{
	return memchr(p->lexer.text + p->last_to, '\n', p->token.from - p->last_to) != NULL;
}

bool parser_at_clause(const struct parser *p)
{
	int next;

	if (!parser_at(p, TOKEN_NAME))
		return false;
	if (p->lexer.text[p->token.to] == ':')
		return true;
	next = parser_peek(p).kind;
	return word_in(p, p->token, plain_points) && (next == '{' || next == ',' || next == '/');
}

char *parser_text(struct parser *p, struct token t, uint32_t skip)
{
	return arena_strndup(p->arena, p->lexer.text + t.from + skip, t.to - t.from - skip);
}

/* --- errors ------------------------------------------------------------------------------- */

void parser_error(struct parser *p, struct place place, const char *tag, const char *fmt, ...)
{
	char text[600];
	va_list args;

	p->diags->last_is_kept = false; /* no place for a hint to what is not said */
	if (p->panic)
		return;
	p->panic = true;
	if (p->token.kind == TOKEN_BAD || (p->token.kind == TOKEN_END && p->lexer.is_cut))
		return; /* the lexer has said what is wrong here */
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	diag_error(p->diags, place, tag, "%s", text);
}

void parser_expected(struct parser *p, const char *what)
{
	struct token t = p->token;

	if (t.kind == TOKEN_END)
		parser_error(p, parser_here(p), "expected",
			"%s is missing at the end of the script", what);
	else if (t.to - t.from > SHOWN_BYTES_MAX)
		parser_error(p, parser_here(p), "expected", "expected %s, but found '%.*s...'",
			what, SHOWN_BYTES_MAX, p->lexer.text + t.from);
	else
		parser_error(p, parser_here(p), "expected", "expected %s, but found '%.*s'", what,
			(int)(t.to - t.from), p->lexer.text + t.from);
}

void parser_expect(struct parser *p, int kind, const char *what)
{
	if (!parser_accept(p, kind))
		parser_expected(p, what);
}

void parser_expect_closing(struct parser *p, int kind, struct token open)
{
	char what[] = {'\'', (char)kind, '\'', '\0'};

	if (p->panic || parser_accept(p, kind))
		return;
	if (p->token.kind != TOKEN_END) {
		parser_expected(p, what);
		return;
	}
	parser_error(p, parser_place(p, open.from, open.to), "unterminated",
		"'%.*s' is never closed", (int)(open.to - open.from), p->lexer.text + open.from);
	p->lexer.is_cut = true; /* those around it need not say the same */
}

bool parser_enter(struct parser *p)
{
	if (p->panic)
		return false;
	if (p->depth >= SCRIPT_NESTING_MAX) {
		parser_error(p, parser_here(p), "nesting",
			"this is nested more than %d levels deep", SCRIPT_NESTING_MAX);
		/* Nobody wrote this by hand: the rest is given up. */
		p->lexer.pos = p->lexer.n;
		p->lexer.is_cut = true;
		return false;
	}
	p->depth++;
	return true;
}

/* --- config ------------------------------------------------------------------------------- */

/* config value = number | string | name */
static struct expr *parse_config_value(struct parser *p)
{
	if (parser_at(p, TOKEN_NUMBER))
		return parse_number(p);
	if (parser_at(p, TOKEN_STRING))
		return parse_string(p);
	if (parser_at(p, TOKEN_NAME)) {
		bool is_true = parser_at_word(p, "true");
		bool is_number = is_true || parser_at_word(p, "false");
		struct expr *e = expr_new(p, is_number ? EXPR_INT : EXPR_STRING, p->token.from);

		e->value = is_true;
		e->text = is_number ? NULL : parser_text(p, p->token, 0);
		e->text_n = is_number ? 0 : p->token.to - p->token.from;
		parser_take(p);
		return expr_finish(p, e);
	}
	parser_error(p, parser_here(p), "config", "a setting is a number, a text or a word");
	return expr_finish(p, expr_new(p, EXPR_INT, p->token.from));
}

static void check_setting(struct parser *p, const struct expr *name)
{
	unsigned n = 0;

	for (const struct expr *e = p->script->config; e; e = e->next, n++)
		if (!strcmp(e->a->name, name->name))
			diag_error(
				p->diags, name->place, "config", "'%s' is set twice", name->name);
	if (n >= SETTINGS_MAX)
		parser_error(
			p, name->place, "config", "there are more than %d settings", SETTINGS_MAX);
}

/* setting = name "=" config value */
static void parse_setting(struct parser *p)
{
	struct expr *assign = expr_new(p, EXPR_ASSIGN, p->token.from);
	struct expr *name = expr_new(p, EXPR_NAME, p->token.from);

	if (!parser_at(p, TOKEN_NAME)) {
		parser_error(p, parser_here(p), "config", "expected the name of a setting");
		return;
	}
	name->name = parser_text(p, p->token, 0);
	parser_take(p);
	assign->a = expr_finish(p, name);
	if (!parser_accept(p, '=')) {
		parser_error(p, parser_here(p), "config", "expected '=' and a value after '%s'",
			name->name);
		return;
	}
	assign->b = parse_config_value(p);
	expr_finish(p, assign);
	if (!p->panic)
		check_setting(p, name);
	if (p->panic)
		return;
	*p->next_config = assign;
	p->next_config = &assign->next;
}

void parser_skip_to(struct parser *p, int a, int b)
{
	unsigned braces = 0;

	p->panic = false;
	while (!parser_at(p, TOKEN_END)) {
		if (!braces && (parser_at(p, a) || parser_at(p, b)))
			return;
		if (parser_at(p, '{'))
			braces++;
		else if (parser_at(p, '}') && braces)
			braces--;
		parser_take(p);
	}
}

/* Behind the ';' or the '}' of something that is wrong as a whole. */
static void skip_item(struct parser *p)
{
	parser_skip_to(p, ';', '{');
	if (parser_accept(p, '{')) {
		parser_skip_to(p, '}', '}');
		parser_accept(p, '}');
	}
}

/* config = "config" "=" "{" [setting { (";" | ",") setting }] [";"] "}" [";"] */
static void parse_config(struct parser *p)
{
	struct token open;

	if (p->import_depth)
		diag_error(p->diags, parser_here(p), "config",
			"settings belong to the script that is run, not to one that it imports");
	parser_take(p);
	parser_take(p);
	open = p->token;
	if (!parser_accept(p, '{')) {
		parser_error(p, parser_here(p), "config", "expected '{' after 'config ='");
		skip_item(p);
		return;
	}
	while (!parser_at(p, '}') && !parser_at(p, TOKEN_END)) {
		if (parser_accept(p, ';') || parser_accept(p, ','))
			continue;
		parse_setting(p);
		if (!parser_at(p, ';') && !parser_at(p, ',') && !parser_at(p, '}') &&
			!parser_at(p, TOKEN_END))
			parser_error(
				p, parser_here(p), "config", "expected ';' between two settings");
		if (p->panic)
			parser_skip_to(p, ';', '}');
	}
	parser_expect_closing(p, '}', open);
	parser_accept(p, ';');
}

/* --- clauses ------------------------------------------------------------------------------ */

/* predicate = "/" expr "/" */
static struct expr *parse_predicate(struct parser *p)
{
	struct token open = p->token;
	struct expr *e;

	parser_take(p);
	p->is_in_predicate = true;
	e = parse_expr(p);
	if (!p->panic && !parser_at(p, '/')) {
		if (p->token.kind == TOKEN_END)
			parser_error(p, parser_place(p, open.from, open.to), "unterminated",
				"the predicate has no closing '/'");
		else
			parser_expected(p, "'/' and '{' after the predicate");
	}
	parser_accept(p, '/');
	p->is_in_predicate = false;
	return e;
}

/* clause = points [predicate] block */
static void parse_clause(struct parser *p)
{
	struct clause *c = arena_zalloc(p->arena, sizeof(*c));
	uint32_t from = p->token.from;

	c->points = parse_points(p);
	if (parser_at(p, '/'))
		c->predicate = parse_predicate(p);
	if (!p->panic && !parser_at(p, '{')) {
		parser_expected(p, c->predicate ? "'{' after the predicate"
						: "'{' or a '/predicate/' after the trace point");
		diag_hint(p->diags, "a trace point with blanks or commas in it is put into \"\"");
	}
	/* Errors in the action are worth finding even when what is before it is wrong. */
	if (p->panic)
		parser_skip_to(p, '{', '}');
	if (parser_at(p, '{'))
		c->body = parse_block(p);
	else
		parser_accept(p, '}');
	c->place = parser_since(p, from);
	*p->next_clause = c;
	p->next_clause = &c->next;
	p->script->n_clauses++;
}

/* --- scripts ------------------------------------------------------------------------------ */

/* Things of bpftrace and C that begin like a clause, but have no place here. */
static bool is_foreign_item(const struct parser *p)
{
	static const char *const words[] = {"subprog", NULL};
	int next = parser_peek(p).kind;

	return word_in(p, p->token, words) && (next == TOKEN_NAME || next == TOKEN_STRING);
}

/* "Item *make(int);" and "Item x;": a word that is no type as far as the script knows. */
static bool is_decl_of_unknown_type(const struct parser *p)
{
	struct lexer ahead = p->lexer;
	struct token t;

	if (word_in(p, p->token, plain_points))
		return false;
	ahead.diags = NULL;
	t = lexer_next(&ahead);
	while (t.kind == '*')
		t = lexer_next(&ahead);
	if (t.kind != TOKEN_NAME)
		return false;
	t = lexer_next(&ahead);
	return t.kind == ';' || t.kind == '(' || t.kind == '[';
}

static bool is_macro(const struct parser *p)
{
	static const char *const words[] = {"macro", "fn", NULL};

	return parser_at(p, TOKEN_NAME) && word_in(p, p->token, words) &&
	       parser_peek(p).kind == TOKEN_NAME;
}

/* item = config | macro | function | map declaration | declaration | clause */
static void parse_item(struct parser *p)
{
	if (parser_at_word(p, "config") && parser_peek(p).kind == '=') {
		parse_config(p);
	} else if (parser_at_word(p, "import") && parser_peek(p).kind == TOKEN_STRING) {
		parse_import(p);
	} else if (is_macro(p)) {
		parse_macro(p);
	} else if (parser_at_word(p, "let") && parser_peek(p).kind == TOKEN_MAP) {
		parse_map_decl(p);
	} else if (parser_at(p, TOKEN_NAME) && is_foreign_item(p)) {
		parser_error(p, parser_here(p), "declaration", "'%s' is not part of this language",
			parser_text(p, p->token, 0));
		skip_item(p);
	} else if (parser_at(p, TOKEN_NAME) && parser_peek(p).kind != ':' &&
		   (word_begins_decl(p, p->token) || is_decl_of_unknown_type(p))) {
		parse_decl(p);
	} else if (parser_begins_point(p)) {
		parse_clause(p);
	} else {
		parser_expected(p, "a trace point");
		parser_skip_to(p, '{', '}');
		if (parser_at(p, '{'))
			parse_block(p);
		else
			parser_accept(p, '}');
	}
	p->panic = false;
	p->depth = 0;
}

/* script = { item | ";" } */
static void parse_source(struct parser *p, uint32_t source_i)
{
	lexer_init(&p->lexer, p->sources, source_i, p->diags);
	p->lexer.defines = &p->defines;
	p->last_to = 0;
	p->panic = false;
	p->token = lexer_next(&p->lexer);
	while (!parser_at(p, TOKEN_END)) {
		uint32_t from = p->token.from;

		if (parser_accept(p, ';'))
			continue;
		parse_item(p);
		if (p->token.from == from && !parser_at(p, TOKEN_END))
			parser_take(p); /* whatever it was: never stay */
	}
}

void parse_another_source(struct parser *p, uint32_t source_i)
{
	struct lexer lexer = p->lexer;
	struct token token = p->token;
	uint32_t last_to = p->last_to;

	parse_source(p, source_i);
	p->lexer = lexer;
	p->token = token;
	p->last_to = last_to;
	p->panic = false;
}

struct script *script_parse(
	struct sources *sources, const struct script_parameters *parameters, struct diags *diags)
{
	static const struct script_parameters none;
	struct script *s = mem_zalloc(sizeof(*s));
	size_t n_errors = diags->n_errors;
	uint32_t n_sources;
	struct parser p = {
		.parameters = parameters ? parameters : &none, .script = s, .diags = diags};

	s->arena = p.arena = arena_new();
	p.next_decl = &s->decls;
	p.next_macro = &s->macros;
	p.next_clause = &s->clauses;
	p.next_config = &s->config;
	p.sources = sources;
	n_sources = (uint32_t)sources->v.n;
	for (uint32_t i = 0; i < n_sources; i++)
		import_remember_script(&p, sources->v.v[i].name);
	for (uint32_t i = 0; i < n_sources; i++) {
		p.defines.v.n = 0;
		if (sources->v.v[i].n > SOURCE_BYTES_MAX)
			diag_error(diags, (struct place){i, 0, 0, 0}, "size",
				"the script has %zu bytes, more than %u", sources->v.v[i].n,
				SOURCE_BYTES_MAX);
		else
			parse_source(&p, i);
	}
	if (!s->n_clauses && diags->n_errors == n_errors) {
		diag_error(diags, parser_place(&p, p.last_to, p.last_to), "no-clause",
			"the script has no clause, so there is nothing to trace");
		diag_hint(diags, "begin { printf(\"hello\\n\"); } is one");
	}
	options_check(&p);
	vec_release(&p.imports);
	map_release(&p.typedefs);
	vec_release(&p.defines.v);
	return s;
}

void script_free(struct script *s)
{
	if (!s)
		return;
	arena_free(s->arena);
	free(s);
}
