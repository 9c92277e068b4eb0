/* SPDX-License-Identifier: MIT */
/* A script's tree as text, one node a line, parts indented below it. */
#ifndef WEIR_TESTS_SCRIPT_PRINT_H
#define WEIR_TESTS_SCRIPT_PRINT_H

#include <inttypes.h>
#include <string.h>

#include "probe/script/parse.h"

static const char *const op_names[] = {
	[OP_NONE] = "",
	[OP_ADD] = "+",
	[OP_SUB] = "-",
	[OP_MUL] = "*",
	[OP_DIV] = "/",
	[OP_MOD] = "%",
	[OP_AND] = "&",
	[OP_OR] = "|",
	[OP_XOR] = "^",
	[OP_SHL] = "<<",
	[OP_SHR] = ">>",
	[OP_EQ] = "==",
	[OP_NE] = "!=",
	[OP_LT] = "<",
	[OP_LE] = "<=",
	[OP_GT] = ">",
	[OP_GE] = ">=",
	[OP_LOGICAL_AND] = "&&",
	[OP_LOGICAL_OR] = "||",
	[OP_NEGATE] = "-",
	[OP_COMPLEMENT] = "~",
	[OP_NOT] = "!",
	[OP_DEREF] = "*",
	[OP_ADDRESS] = "&",
};

static const char *const decl_names[] = {
	[DECL_VOID] = "void",
	[DECL_BOOL] = "bool",
	[DECL_CHAR] = "char",
	[DECL_SHORT] = "short",
	[DECL_INT] = "int",
	[DECL_LONG] = "long",
	[DECL_LONG_LONG] = "long long",
	[DECL_FIXED] = "fixed",
	[DECL_FLOAT] = "float",
	[DECL_DOUBLE] = "double",
	[DECL_LONG_DOUBLE] = "long double",
	[DECL_NAMED] = "named",
	[DECL_STRUCT] = "struct",
	[DECL_ENUM] = "enum",
	[DECL_POINTER] = "pointer",
	[DECL_ARRAY] = "array",
	[DECL_FUNCTION] = "function",
	[DECL_STRING] = "string",
};

static const char *const stmt_names[] = {
	[STMT_EXPR] = "expr",
	[STMT_IF] = "if",
	[STMT_WHILE] = "while",
	[STMT_FOR] = "for",
	[STMT_FOR_MAP] = "for-map",
	[STMT_UNROLL] = "unroll",
	[STMT_BREAK] = "break",
	[STMT_CONTINUE] = "continue",
	[STMT_RETURN] = "return",
	[STMT_BLOCK] = "block",
	[STMT_LET] = "let",
};

struct printer {
	struct buf *out;
	int depth;
};

static void print_expr(struct printer *p, const struct expr *e);
static void print_type(struct printer *p, const struct decl_type *t);

static void start_line(struct printer *p, const char *what)
{
	for (int i = 0; i < p->depth; i++)
		buf_put_cstr(p->out, "  ");
	buf_put_cstr(p->out, what);
}

static void print_text(struct printer *p, const char *text, size_t n)
{
	buf_put_cstr(p->out, " \"");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			buf_printf(p->out, "\\%c", c);
		else if (c == '\n')
			buf_put_cstr(p->out, "\\n");
		else if (c < ' ' || c >= 0x7f)
			buf_printf(p->out, "\\x%02x", c);
		else
			buf_put_u8(p->out, c);
	}
	buf_put_u8(p->out, '"');
}

/* --- types -------------------------------------------------------------------------------- */

static void print_fields(struct printer *p, const struct decl_field *f)
{
	for (; f; f = f->next) {
		start_line(p, "field");
		if (f->name)
			buf_printf(p->out, " %s", f->name);
		buf_put_u8(p->out, '\n');
		p->depth++;
		print_type(p, f->type);
		if (f->bits) {
			start_line(p, "bits\n");
			p->depth++;
			print_expr(p, f->bits);
			p->depth--;
		}
		p->depth--;
	}
}

static void print_enumerators(struct printer *p, const struct decl_enumerator *e)
{
	for (; e; e = e->next) {
		start_line(p, "enumerator ");
		buf_printf(p->out, "%s\n", e->name);
		p->depth++;
		if (e->value)
			print_expr(p, e->value);
		p->depth--;
	}
}

static void print_type(struct printer *p, const struct decl_type *t)
{
	start_line(p, t->is_unsigned && t->kind != DECL_BOOL ? "unsigned " : "");
	if (t->is_union)
		buf_put_cstr(p->out, "union");
	else
		buf_put_cstr(p->out, decl_names[t->kind]);
	if (t->kind == DECL_FIXED)
		buf_printf(p->out, " %u", t->bytes);
	if (t->name)
		buf_printf(p->out, " %s", t->name);
	if (t->is_packed)
		buf_put_cstr(p->out, " packed");
	if (t->align)
		buf_printf(p->out, " aligned %u", t->align);
	if (t->is_variadic)
		buf_put_cstr(p->out, " variadic");
	if (t->is_defined)
		buf_put_cstr(p->out, " defined");
	buf_put_u8(p->out, '\n');
	p->depth++;
	if (t->n)
		print_expr(p, t->n);
	if (t->of)
		print_type(p, t->of);
	print_fields(p, t->fields);
	print_enumerators(p, t->enumerators);
	p->depth--;
}

/* --- expressions -------------------------------------------------------------------------- */

/* The node itself: its word and what it has besides parts. */
static void print_node(struct printer *p, const struct expr *e)
{
	static const char *const words[] = {
		[EXPR_INT] = "int",
		[EXPR_STRING] = "string",
		[EXPR_NAME] = "name ",
		[EXPR_LOCAL] = "local $",
		[EXPR_SELF] = "self ",
		[EXPR_MAP] = "map @",
		[EXPR_UNARY] = "unary ",
		[EXPR_BINARY] = "binary ",
		[EXPR_TERNARY] = "ternary",
		[EXPR_CAST] = "cast",
		[EXPR_SIZEOF] = "sizeof",
		[EXPR_OFFSETOF] = "offsetof ",
		[EXPR_CALL] = "call ",
		[EXPR_INDEX] = "index",
		[EXPR_MEMBER] = "member ",
		[EXPR_ASSIGN] = "assign ",
		[EXPR_STEP] = "step ",
		[EXPR_TUPLE] = "tuple",
		[EXPR_BLOCK] = "block",
	};

	start_line(p, words[e->kind]);
	if (e->kind == EXPR_INT && e->is_unsigned)
		buf_printf(p->out, " %" PRIu64 "u", e->value);
	else if (e->kind == EXPR_INT)
		buf_printf(p->out, " %" PRId64, (int64_t)e->value);
	if (e->kind == EXPR_STRING)
		print_text(p, e->text, e->text_n);
	if (e->kind == EXPR_MEMBER)
		buf_put_cstr(p->out, e->is_arrow ? "->" : ".");
	if (e->kind != EXPR_INT && e->kind != EXPR_STRING && e->name)
		buf_put_cstr(p->out, e->name);
	if (e->kind == EXPR_STEP)
		buf_put_cstr(p->out, e->is_post ? "after " : "before ");
	buf_printf(p->out, "%s%s\n", op_names[e->op], e->kind == EXPR_ASSIGN ? "=" : "");
}

static void print_expr(struct printer *p, const struct expr *e)
{
	print_node(p, e);
	p->depth++;
	if (e->decl)
		print_type(p, e->decl);
	if (e->a)
		print_expr(p, e->a);
	if (e->b)
		print_expr(p, e->b);
	if (e->c)
		print_expr(p, e->c);
	for (const struct expr *arg = e->args; arg; arg = arg->next)
		print_expr(p, arg);
	p->depth--;
}

/* --- statements --------------------------------------------------------------------------- */

static void print_statements(struct printer *p, const char *label, const struct stmt *s)
{
	start_line(p, label);
	buf_put_u8(p->out, '\n');
	p->depth++;
	for (; s; s = s->next) {
		/* An expression is a statement without a line of its own. */
		if (s->kind == STMT_EXPR) {
			print_expr(p, s->a);
			continue;
		}
		start_line(p, stmt_names[s->kind]);
		if (s->name && s->kind != STMT_LET)
			buf_printf(p->out, " $%s", s->name);
		buf_put_u8(p->out, '\n');
		p->depth++;
		if (s->a)
			print_expr(p, s->a);
		if (s->decl)
			print_type(p, s->decl);
		if (s->b)
			print_expr(p, s->b);
		if (s->body)
			print_statements(p, "body", s->body);
		if (s->other)
			print_statements(p, "else", s->other);
		p->depth--;
	}
	p->depth--;
}

static void print_clause(struct printer *p, const struct clause *c)
{
	start_line(p, "clause\n");
	p->depth++;
	for (const struct point_text *t = c->points; t; t = t->next) {
		start_line(p, "point");
		print_text(p, t->text, strlen(t->text));
		buf_put_u8(p->out, '\n');
	}
	if (c->predicate) {
		start_line(p, "predicate\n");
		p->depth++;
		print_expr(p, c->predicate);
		p->depth--;
	}
	print_statements(p, "body", c->body);
	p->depth--;
}

static inline void script_print(const struct script *s, struct buf *out)
{
	struct printer p = {out, 0};

	for (const struct decl *d = s->decls; d; d = d->next) {
		start_line(&p, d->is_typedef ? "typedef" : "declare");
		buf_printf(out, "%s%s\n", d->name ? " " : "", d->name ? d->name : "");
		p.depth++;
		print_type(&p, d->type);
		p.depth--;
	}
	if (s->config)
		start_line(&p, "config\n");
	p.depth++;
	for (const struct expr *e = s->config; e; e = e->next)
		print_expr(&p, e);
	p.depth--;
	for (const struct clause *c = s->clauses; c; c = c->next)
		print_clause(&p, c);
}

#endif
