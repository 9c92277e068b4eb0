/* SPDX-License-Identifier: MIT */
/* Statements. */
#include <string.h>

#include "probe/script/parser.h"

static struct stmt *parse_statement(struct parser *p);

/* The statement that begins with a word of its own; NULL for expressions. */
static const struct statement *find_statement(const struct parser *p);

static struct stmt *stmt_new(struct parser *p, enum stmt_kind kind)
{
	struct stmt *s = arena_zalloc(p->arena, sizeof(*s));

	s->kind = kind;
	s->place = parser_place(p, p->token.from, p->token.to);
	return s;
}

static struct stmt *stmt_finish(struct parser *p, struct stmt *s)
{
	s->place = parser_since(p, s->place.from);
	return s;
}

/* After an error: behind the next ';', or before something that a statement can begin with. */
static void skip_statement(struct parser *p)
{
	p->panic = false;
	while (!parser_at(p, TOKEN_END) && !parser_at(p, '}') && !parser_at(p, '{')) {
		if (parser_accept(p, ';'))
			return;
		if (parser_starts_line(p)) {
			if (find_statement(p) || parser_at_clause(p))
				return;
		}
		parser_take(p);
	}
}

/* block = "{" { statement } "}" */
struct stmt *parse_block(struct parser *p)
{
	struct stmt *first = NULL, **next = &first;
	struct token open = p->token;

	parser_expect(p, '{', "'{'");
	while (!p->panic && !parser_at(p, '}') && !parser_at(p, TOKEN_END)) {
		uint32_t from = p->token.from;

		if (parser_accept(p, ';'))
			continue;
		if (parser_at_clause(p)) {
			diag_error(p->diags, parser_place(p, open.from, open.to), "unterminated",
				"'{' is never closed: another clause begins before its '}'");
			return first;
		}
		*next = parse_statement(p);
		next = &(*next)->next;
		if (p->panic)
			skip_statement(p);
		if (p->token.from == from)
			parser_take(p); /* whatever it was: never stay */
	}
	parser_expect_closing(p, '}', open);
	return first;
}

/* body = block | statement */
static struct stmt *parse_body(struct parser *p)
{
	if (p->panic || parser_at(p, '{'))
		return parse_block(p);
	if (parser_accept(p, ';'))
		return NULL;
	return parse_statement(p);
}

/* condition = "(" expr ")" | expr, before a "{" */
struct expr *parse_condition(struct parser *p)
{
	struct token open = p->token;
	struct expr *e;

	if (!parser_at(p, '(')) {
		e = parse_expr(p);
		if (!parser_at(p, '{'))
			parser_expected(p, "'{' after a condition without parentheses");
		return e;
	}
	parser_take(p);
	e = parse_expr(p);
	parser_expect_closing(p, ')', open);
	return e;
}

/* if = "if" condition body [ "else" (if | body) ] */
static struct stmt *parse_if(struct parser *p, enum stmt_kind kind)
{
	struct stmt *s = stmt_new(p, kind);

	parser_take(p);
	s->a = parse_condition(p);
	stmt_finish(p, s);
	s->body = parse_body(p);
	if (parser_accept_word(p, "else"))
		s->other = parse_body(p);
	return s;
}

/* while = "while" condition body ; unroll = "unroll" condition body */
static struct stmt *parse_while(struct parser *p, enum stmt_kind kind)
{
	struct stmt *s = stmt_new(p, kind);

	parser_take(p);
	s->a = parse_condition(p);
	if (kind == STMT_UNROLL)
		expr_need_number(p, s->a);
	stmt_finish(p, s);
	s->body = parse_body(p);
	return s;
}

/* range = conditional ".." conditional | "(" range ")" */
static void parse_range(struct parser *p, struct stmt *s)
{
	struct parser before = *p;
	struct token open = p->token;

	/* "((1..5))" or "((1 + 2)..5)": only what follows the first expression tells. */
	if (parser_accept(p, '(')) {
		s->a = parse_conditional(p);
		if (parser_accept(p, TOKEN_RANGE)) {
			s->b = parse_conditional(p);
			parser_expect_closing(p, ')', open);
			return;
		}
		*p = before;
	}
	s->a = parse_conditional(p);
	if (s->a->kind == EXPR_MAP && !s->a->args && !parser_at(p, TOKEN_RANGE)) {
		s->kind = STMT_FOR_MAP;
		return;
	}
	parser_expect(p, TOKEN_RANGE, "'..' and the end of the range");
	s->b = parse_conditional(p);
	expr_need_number(p, s->a);
	expr_need_number(p, s->b);
}

/* for (i = 0; i < 10; i++): one message for all of it */
static void refuse_c_for(struct parser *p)
{
	unsigned depth = 0;

	parser_expected(p, "a variable and a range");
	diag_hint(p->diags, "for ($i : 0..10) { ... } and for ($kv : @map) { ... } are the loops");
	p->panic = false;
	while (!parser_at(p, TOKEN_END) && !parser_at(p, '{') && !parser_at(p, '}')) {
		if (parser_at(p, '('))
			depth++;
		if (parser_at(p, ')') && !depth--) {
			parser_take(p);
			return;
		}
		parser_take(p);
	}
}

/* for = "for" ["("] local ":" (range | map) [")"] body */
static struct stmt *parse_for(struct parser *p, enum stmt_kind kind)
{
	struct stmt *s = stmt_new(p, kind);
	struct token open;
	bool has_open;

	parser_take(p);
	open = p->token;
	has_open = parser_accept(p, '(');
	if (!parser_at(p, TOKEN_LOCAL) || parser_peek(p).kind != ':') {
		s->a = s->b = expr_finish(p, expr_new(p, EXPR_INT, p->token.from));
		s->name = "";
		if (parser_at(p, TOKEN_LOCAL))
			parser_take(p);
		refuse_c_for(p);
		s->body = parse_body(p);
		return s;
	}
	s->name = parser_text(p, p->token, 1);
	parser_take(p);
	parser_take(p);
	parse_range(p, s);
	if (has_open)
		parser_expect_closing(p, ')', open);
	stmt_finish(p, s);
	s->body = parse_body(p);
	return s;
}

static void expect_semicolon(struct parser *p)
{
	if (p->panic || parser_accept(p, ';') || parser_at(p, '}'))
		return;
	if (p->token.kind == TOKEN_END)
		return; /* the block says that it has no end */
	if (parser_starts_line(p)) {
		parser_expected(p, "';' before this line");
		p->panic = false; /* as if it were there */
		return;
	}
	parser_expected(p, "';'");
}

/* let = "let" local [":" type name] ["=" expr] ";" */
static struct stmt *parse_let(struct parser *p, enum stmt_kind kind)
{
	struct stmt *s = stmt_new(p, kind);

	parser_take(p);
	s->a = expr_new(p, EXPR_LOCAL, p->token.from);
	s->a->name = parser_at(p, TOKEN_LOCAL) ? parser_text(p, p->token, 1) : "";
	s->name = s->a->name;
	parser_expect(p, TOKEN_LOCAL, "a local variable such as $x");
	expr_finish(p, s->a);
	if (parser_accept(p, ':'))
		s->decl = parse_type_name(p);
	if (parser_accept(p, '='))
		s->b = parse_expr(p);
	stmt_finish(p, s);
	expect_semicolon(p);
	return s;
}

/* jump = ("break" | "continue" | "return" [expr]) ";" */
static struct stmt *parse_jump(struct parser *p, enum stmt_kind kind)
{
	struct stmt *s = stmt_new(p, kind);

	parser_take(p);
	if (kind == STMT_RETURN && !parser_at(p, ';') && !parser_at(p, '}') &&
		!parser_starts_line(p))
		s->a = parse_expr(p);
	stmt_finish(p, s);
	expect_semicolon(p);
	return s;
}

/* expression statement = ["_" "="] expr ";" */
static struct stmt *parse_expr_statement(struct parser *p)
{
	struct stmt *s = stmt_new(p, STMT_EXPR);

	if (parser_at_word(p, "delete") && parser_peek(p).kind == TOKEN_MAP) {
		parser_take(p);
		parser_expected(p, "'(' after delete");
		diag_hint(p->diags, "delete(@x[1]) and delete(@x, 1) are the forms");
	}
	if (parser_at_word(p, "_") && parser_peek(p).kind == '=') {
		parser_take(p);
		parser_take(p);
		s->is_discarded = true;
	}
	s->a = parse_expr(p);
	s->is_open = !s->is_discarded && parser_at(p, '}');
	stmt_finish(p, s);
	expect_semicolon(p);
	return s;
}

static const struct statement {
	const char *word;
	struct stmt *(*parse)(struct parser *p, enum stmt_kind kind);
	enum stmt_kind kind;
} statements[] = {
	{"if", parse_if, STMT_IF},
	{"while", parse_while, STMT_WHILE},
	{"unroll", parse_while, STMT_UNROLL},
	{"for", parse_for, STMT_FOR},
	{"let", parse_let, STMT_LET},
	{"break", parse_jump, STMT_BREAK},
	{"continue", parse_jump, STMT_CONTINUE},
	{"return", parse_jump, STMT_RETURN},
};

static const struct statement *find_statement(const struct parser *p)
{
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		if (parser_at_word(p, statements[i].word))
			return &statements[i];
	return NULL;
}

/* statement = if | while | unroll | for | let | jump | block | expression statement */
static struct stmt *parse_nested_statement(struct parser *p)
{
	const struct statement *statement = find_statement(p);

	if (statement)
		return statement->parse(p, statement->kind);
	if (parser_at(p, '{')) {
		struct stmt *s = stmt_new(p, STMT_BLOCK);

		s->body = parse_block(p);
		return stmt_finish(p, s);
	}
	return parse_expr_statement(p);
}

static struct stmt *parse_statement(struct parser *p)
{
	struct stmt *s;

	if (!parser_enter(p))
		return stmt_new(p, STMT_BLOCK);
	s = parse_nested_statement(p);
	parser_leave(p);
	return s;
}
