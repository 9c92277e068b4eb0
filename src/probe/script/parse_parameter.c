/* SPDX-License-Identifier: MIT */
/* Positional parameters: the words behind the script. */
#include <stdlib.h>
#include <string.h>

#include "probe/script/parser.h"

/* The parameter that a token names, NULL when it is not given. */
static const char *parameter_word(struct parser *p, struct token t)
{
	unsigned long i = strtoul(p->lexer.text + t.from + 1, NULL, 10);

	for (uint32_t at = t.from + 1; at < t.to; at++) {
		if (p->lexer.text[at] >= '0' && p->lexer.text[at] <= '9' && i)
			continue;
		parser_error(p, parser_place(p, t.from, t.to), "parameter",
			"parameters are named $1, $2 and so on");
		return NULL;
	}
	return i <= p->parameters->n ? p->parameters->words[i - 1] : NULL;
}

static void set_text(struct parser *p, struct expr *e, const char *text)
{
	e->kind = EXPR_STRING;
	e->text_n = text ? strlen(text) : 0;
	e->text = arena_strndup(p->arena, text, e->text_n);
}

/* parameter = "$" digits | "$#" */
struct expr *parse_parameter(struct parser *p)
{
	struct expr *e = expr_new(p, EXPR_INT, p->token.from);
	const char *word, *why;

	if (parser_accept(p, TOKEN_PARAMETER_COUNT)) {
		e->value = p->parameters->n;
		return expr_finish(p, e);
	}
	word = parameter_word(p, p->token);
	if (word) {
		const char *digits = word + (*word == '-');

		if (!literal_number(digits, strlen(digits), &e->value, &e->is_unsigned, &why) ||
			(*word == '-' && e->value > (uint64_t)INT64_MAX + 1))
			set_text(p, e, word);
		else if (*word == '-')
			e->value = -e->value, e->is_unsigned = false;
	}
	parser_take(p);
	return expr_finish(p, e);
}

/* The text from its `skip`th character on. */
static const char *text_behind(struct parser *p, const char *text, uint64_t skip)
{
	size_t n = text ? strlen(text) : 0;

	if (skip <= n)
		return text ? text + skip : NULL;
	parser_error(p, parser_here(p), "parameter",
		"the parameter is '%s', which has %zu characters", text ? text : "", n);
	return NULL;
}

/* A text even if it looks like a number: str($1), str($1 + 2). */
struct expr *parse_parameter_text(struct parser *p)
{
	struct lexer ahead = p->lexer;
	struct token plus, number = {0}, behind;
	struct expr *e;
	const char *text;
	uint64_t skip = 0;

	ahead.diags = NULL;
	plus = behind = lexer_next(&ahead);
	if (plus.kind == '+') {
		bool is_unsigned;
		const char *why;

		number = lexer_next(&ahead);
		behind = lexer_next(&ahead);
		if (number.kind != TOKEN_NUMBER ||
			!literal_number(p->lexer.text + number.from, number.to - number.from, &skip,
				&is_unsigned, &why))
			return NULL;
	}
	if (behind.kind != ')' && behind.kind != ',')
		return NULL;
	e = expr_new(p, EXPR_STRING, p->token.from);
	text = parameter_word(p, p->token);
	parser_take(p);
	if (plus.kind == '+') {
		parser_take(p);
		text = text_behind(p, text, skip);
		parser_take(p);
	}
	set_text(p, e, text);
	return expr_finish(p, e);
}
