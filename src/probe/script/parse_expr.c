/* SPDX-License-Identifier: MIT */
/* Operators, with the precedence of C. */
#include <string.h>

#include "probe/script/parser.h"

static const struct binary {
	int token;
	enum op op;
	int level; /* higher binds tighter */
} binaries[] = {
	{TOKEN_LOGICAL_OR, OP_LOGICAL_OR, 1},
	{TOKEN_LOGICAL_AND, OP_LOGICAL_AND, 2},
	{'|', OP_OR, 3},
	{'^', OP_XOR, 4},
	{'&', OP_AND, 5},
	{TOKEN_EQ, OP_EQ, 6},
	{TOKEN_NE, OP_NE, 6},
	{'<', OP_LT, 7},
	{TOKEN_LE, OP_LE, 7},
	{'>', OP_GT, 7},
	{TOKEN_GE, OP_GE, 7},
	{TOKEN_SHL, OP_SHL, 8},
	{TOKEN_SHR, OP_SHR, 8},
	{'+', OP_ADD, 9},
	{'-', OP_SUB, 9},
	{'*', OP_MUL, 10},
	{'/', OP_DIV, 10},
	{'%', OP_MOD, 10},
};

static const struct prefix {
	int token;
	enum op op;
} prefixes[] = {
	{'-', OP_NEGATE},
	{'~', OP_COMPLEMENT},
	{'!', OP_NOT},
	{'*', OP_DEREF},
	{'&', OP_ADDRESS},
};

static struct expr *parse_unary(struct parser *p);

/* --- operators ---------------------------------------------------------------------------- */

/* What can be changed is the script's own; the program's memory is only read. */
static void check_target(struct parser *p, const struct expr *e)
{
	if (p->panic || e->kind == EXPR_LOCAL || e->kind == EXPR_SELF || e->kind == EXPR_MAP)
		return;
	diag_error(
		p->diags, e->place, "assign", "only $local, self->x and @map can be assigned to");
}

/* member = ("." | "->") (name | digits) */
static struct expr *parse_member(struct parser *p, struct expr *of, uint32_t from)
{
	struct expr *e = expr_new(p, EXPR_MEMBER, from);

	e->a = of;
	e->is_arrow = parser_at(p, TOKEN_ARROW);
	parser_take(p);
	e->name = "";
	if (parser_at(p, TOKEN_NAME) || (parser_at(p, TOKEN_NUMBER) && !e->is_arrow)) {
		e->name = parser_text(p, p->token, 0);
		if (parser_at(p, TOKEN_NUMBER) && strspn(e->name, "0123456789") != strlen(e->name))
			parser_error(p, parser_here(p), "number",
				"a part of a tuple is named by plain digits, such as .0");
		parser_take(p);
	} else {
		parser_expected(p, "the name of a field");
	}
	return expr_finish(p, e);
}

static struct expr *parse_index(struct parser *p, struct expr *of, uint32_t from)
{
	struct expr *e = expr_new(p, EXPR_INDEX, from);
	struct token open = p->token;

	parser_take(p);
	e->a = of;
	e->b = parse_expr(p);
	expr_need_number(p, e->b);
	parser_expect_closing(p, ']', open);
	return expr_finish(p, e);
}

static struct expr *new_step(struct parser *p, struct expr *of, bool is_increment, uint32_t from)
{
	struct expr *e = expr_new(p, EXPR_STEP, from);

	e->a = of;
	e->op = is_increment ? OP_ADD : OP_SUB;
	check_target(p, of);
	return e;
}

/* postfix = primary { member | "[" expr "]" | "++" | "--" } */
static struct expr *parse_postfix(struct parser *p)
{
	uint32_t from = p->token.from;
	struct expr *e = parse_primary(p);

	for (;;) {
		if (parser_at(p, '.') || parser_at(p, TOKEN_ARROW)) {
			e = parse_member(p, e, from);
		} else if (parser_at(p, '[')) {
			e = parse_index(p, e, from);
		} else if (parser_at(p, TOKEN_INCREMENT) || parser_at(p, TOKEN_DECREMENT)) {
			e = new_step(p, e, parser_at(p, TOKEN_INCREMENT), from);
			e->is_post = true;
			parser_take(p);
			e = expr_finish(p, e);
		} else {
			return e;
		}
	}
}

/* Whether a token can only begin an operand, so that "(x)" before it must be a cast. */
static bool is_operand_start(int kind)
{
	return kind == TOKEN_NAME || kind == TOKEN_NUMBER || kind == TOKEN_STRING ||
	       kind == TOKEN_CHAR || kind == TOKEN_LOCAL || kind == TOKEN_PARAMETER ||
	       kind == TOKEN_PARAMETER_COUNT || kind == TOKEN_MAP || kind == '(' || kind == '!' ||
	       kind == '~';
}

/* At "(": "(int", "(Item *)", "(Item)x" with a word that nobody has declared in the script. */
static bool is_at_cast(const struct parser *p)
{
	struct lexer ahead = p->lexer;
	struct token t;
	bool is_pointer = false;

	ahead.diags = NULL;
	t = lexer_next(&ahead);
	if (t.kind != TOKEN_NAME)
		return false;
	if (word_is_type(p, t))
		return true;
	t = lexer_next(&ahead);
	for (; t.kind == '*' || (is_pointer && token_is(p, t, "const")); t = lexer_next(&ahead))
		is_pointer = true;
	if (t.kind != ')')
		return false;
	return is_pointer || is_operand_start(lexer_next(&ahead).kind);
}

/* cast = "(" type name ")" unary */
static struct expr *parse_cast(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_CAST, p->token.from);
	struct token open = p->token;

	parser_take(p);
	e->decl = parse_type_name(p);
	parser_expect_closing(p, ')', open);
	e->a = parse_unary(p);
	expr_need_number(p, e->a);
	return expr_finish(p, e);
}

static enum op find_prefix(int token)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (prefixes[i].token == token)
			return prefixes[i].op;
	return OP_NONE;
}

static struct expr *parse_prefixed(struct parser *p)
{
	uint32_t from = p->token.from;
	struct expr *e;

	if (parser_at(p, '('))
		return parse_cast(p);
	if (parser_accept(p, '+')) {
		e = parse_unary(p);
		expr_need_number(p, e);
		return e;
	}
	if (parser_at(p, TOKEN_INCREMENT) || parser_at(p, TOKEN_DECREMENT)) {
		bool is_increment = parser_at(p, TOKEN_INCREMENT);

		parser_take(p);
		return expr_finish(p, new_step(p, parse_unary(p), is_increment, from));
	}
	e = expr_new(p, EXPR_UNARY, from);
	e->op = find_prefix(p->token.kind);
	parser_take(p);
	e->a = parse_unary(p);
	if (e->op == OP_NEGATE || e->op == OP_COMPLEMENT || e->op == OP_DEREF)
		expr_need_number(p, e->a);
	return expr_finish(p, e);
}

static bool is_at_prefix(const struct parser *p)
{
	int kind = p->token.kind;

	return find_prefix(kind) != OP_NONE || kind == '+' || kind == TOKEN_INCREMENT ||
	       kind == TOKEN_DECREMENT || (kind == '(' && is_at_cast(p));
}

/* unary = ("-" | "+" | "~" | "!" | "*" | "&" | "++" | "--") unary | cast | postfix */
static struct expr *parse_unary(struct parser *p)
{
	struct expr *e;

	if (p->panic || !is_at_prefix(p))
		return parse_postfix(p);
	if (!parser_enter(p))
		return expr_nothing(p);
	e = parse_prefixed(p);
	parser_leave(p);
	return e;
}

static const struct binary *find_binary(const struct parser *p)
{
	if (p->panic || (p->is_in_predicate && p->token.kind == '/' && parser_peek(p).kind == '{'))
		return NULL;
	for (size_t i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++)
		if (binaries[i].token == p->token.kind)
			return &binaries[i];
	return NULL;
}

/* binary = unary { operator unary }, by levels: || && | ^ & (== !=) (< <= > >=) (<< >>) (+ -)
 * (* / %) */
static struct expr *parse_binary(struct parser *p, int level)
{
	uint32_t from = p->token.from;
	struct expr *a = parse_unary(p);
	const struct binary *binary;

	while ((binary = find_binary(p)) && binary->level >= level) {
		struct expr *e = expr_new(p, EXPR_BINARY, from);

		parser_take(p);
		e->op = binary->op;
		e->a = a;
		e->b = parse_binary(p, binary->level + 1);
		if (e->op < OP_EQ || (e->op > OP_NE && e->op < OP_LOGICAL_AND)) {
			expr_need_number(p, e->a);
			expr_need_number(p, e->b);
		}
		a = expr_finish(p, e);
	}
	return a;
}

static struct expr *new_local(struct parser *p, const char *name, struct place place)
{
	struct expr *e = expr_new(p, EXPR_LOCAL, place.from);

	e->name = name;
	e->place = place;
	return e;
}

/* a ?: c is { let $t = a; $t ? $t : c } with a variable that no script can name. */
static struct expr *keep_condition(struct parser *p, struct expr *ternary)
{
	struct expr *block = expr_new(p, EXPR_BLOCK, ternary->place.from);
	struct stmt *let = arena_zalloc(p->arena, sizeof(*let));
	struct expr *a = ternary->a;
	const char *name = arena_printf(p->arena, "?%u", ternary->place.from);

	*let = (struct stmt){.kind = STMT_LET, .place = a->place, .name = name, .b = a};
	let->a = new_local(p, name, a->place);
	ternary->a = new_local(p, name, a->place);
	ternary->b = new_local(p, name, a->place);
	block->body = let;
	block->a = expr_finish(p, ternary);
	return expr_finish(p, block);
}

/* conditional = binary [ "?" [expr] ":" conditional ] */
struct expr *parse_conditional(struct parser *p)
{
	uint32_t from = p->token.from;
	struct expr *a, *e;

	a = parse_binary(p, 1);
	if (!parser_accept(p, '?'))
		return a;
	e = expr_new(p, EXPR_TERNARY, from);
	e->a = a;
	if (!parser_at(p, ':'))
		e->b = parse_expr(p);
	parser_expect(p, ':', "':' and what holds otherwise");
	if (parser_enter(p)) {
		e->c = parse_conditional(p);
		parser_leave(p);
	} else {
		e->c = expr_nothing(p);
	}
	if (p->panic && !e->b)
		e->b = expr_nothing(p);
	return e->b ? expr_finish(p, e) : keep_condition(p, e);
}

/* assignment = conditional [ ("=" | "+=" | "-=" | ...) assignment ] */
static struct expr *parse_assignment(struct parser *p)
{
	uint32_t from = p->token.from;
	struct expr *a = parse_conditional(p), *e;
	int kind = p->token.kind;
	bool is_compound = kind >= TOKEN_ASSIGN_ADD && kind <= TOKEN_ASSIGN_SHR;

	if (p->panic || (kind != '=' && !is_compound))
		return a;
	check_target(p, a);
	parser_take(p);
	e = expr_new(p, EXPR_ASSIGN, from);
	/* += to >>= stand in the order of + to >>. */
	e->op = is_compound ? (enum op)(OP_ADD + (kind - TOKEN_ASSIGN_ADD)) : OP_NONE;
	e->a = a;
	e->b = parse_expr(p);
	if (is_compound)
		expr_need_number(p, e->b);
	return expr_finish(p, e);
}

/* expr = assignment */
struct expr *parse_expr(struct parser *p)
{
	struct expr *e;

	if (!parser_enter(p))
		return expr_nothing(p);
	e = parse_assignment(p);
	parser_leave(p);
	return e;
}
