/* SPDX-License-Identifier: MIT */
/* Blocks and ifs where a value is wanted: the value of a block is its last expression, without ';'. */
#include "probe/script/parser.h"

static struct stmt **last_link(struct stmt **list)
{
	while ((*list)->next)
		list = &(*list)->next;
	return list;
}

/* Whether statements end in a value: in an expression, or in an if with one in each branch. */
static bool has_value(struct stmt *list)
{
	struct stmt *last = list ? *last_link(&list) : NULL;

	if (last && last->kind == STMT_IF)
		return has_value(last->body) && has_value(last->other);
	return last && last->kind == STMT_EXPR && last->is_open;
}

/* { x } is x. */
static struct expr *value_of(struct parser *p, struct stmt *list, uint32_t from)
{
	struct expr *e = expr_new(p, EXPR_BLOCK, from), *ternary;
	struct stmt **link, *last;

	if (has_value(list)) {
		link = last_link(&list);
		last = *link;
		*link = NULL;
		e->a = last->a;
		if (last->kind == STMT_IF) {
			ternary = expr_new(p, EXPR_TERNARY, last->place.from);
			ternary->a = last->a;
			ternary->b = value_of(p, last->body, last->place.from);
			ternary->c = value_of(p, last->other, last->place.from);
			e->a = expr_finish(p, ternary);
		}
	}
	e->body = list;
	return e->a && !list ? e->a : expr_finish(p, e);
}

/* block expression = "{" { statement } [ expr | if ] "}" */
struct expr *parse_block_value(struct parser *p)
{
	bool is_in_predicate = p->is_in_predicate;
	uint32_t from = p->token.from;
	struct stmt *list;

	if (!parser_enter(p))
		return expr_nothing(p);
	p->is_in_predicate = false;
	list = parse_block(p);
	p->is_in_predicate = is_in_predicate;
	parser_leave(p);
	return value_of(p, list, from);
}

/* if expression = "if" condition block expression "else" ( if expression | block expression ) */
struct expr *parse_if_value(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_TERNARY, p->token.from);

	if (!parser_enter(p))
		return expr_nothing(p);
	parser_take(p);
	e->a = parse_condition(p);
	e->b = parse_block_value(p);
	if (!parser_accept_word(p, "else"))
		parser_expected(p, "'else' and what holds otherwise");
	e->c = parser_at_word(p, "if") ? parse_if_value(p) : parse_block_value(p);
	parser_leave(p);
	return expr_finish(p, e);
}
