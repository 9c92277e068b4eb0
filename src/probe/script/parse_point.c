/* SPDX-License-Identifier: MIT */
/*
 * The trace points of a clause, as text: what is in them is the matter of points/. A text ends at
 * white space, ',' or '{', and where a predicate begins. A '/' may be that or part of a path:
 *   - behind white space it begins a predicate;
 *   - in the file of a point that has one (uprobe:/lib/x.so:f) it is part of the path;
 *   - in such a point's name (Go has those: main/x.f) it begins a predicate only if otherwise
 *     nothing that may follow a point would follow: uprobe:/a:f/pid == 1/ { }
 *   - in other points it begins a predicate: tracepoint:a:b/pid == 1/{ }
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "probe/script/parser.h"

/* Kinds of points whose second part is a file. */
static const char *const file_points[] = {"uprobe", "u", "uretprobe", "ur", "usdt", "U", NULL};

struct point_reader {
	struct parser *p;
	struct buf text;
	uint32_t at;
	uint32_t n_colons;
	bool has_file;
	uint32_t slash;	     /* first one in the name of a point with a file, 0 = none */
	size_t slash_text_n; /* text before it */
};

static bool is_file_point(const char *p, size_t n)
{
	for (const char *const *w = file_points; *w; w++)
		if (strlen(*w) == n && !memcmp(*w, p, n))
			return true;
	return false;
}

/* "..." : what is inside, as it is, but \" is a quote: regular expressions have other backslashes */
static bool read_quoted(struct point_reader *r)
{
	const struct lexer *l = &r->p->lexer;
	uint32_t from = r->at, end = from + 1;

	for (; end < l->n && l->text[end] != '"' && l->text[end] != '\n'; end++) {
		end += l->text[end] == '\\' && end + 1 < l->n && l->text[end + 1] == '"';
		buf_put_u8(&r->text, (uint8_t)l->text[end]);
	}
	if (end >= l->n || l->text[end] != '"') {
		parser_error(r->p, parser_place(r->p, from, end), "unterminated",
			"the text in the trace point has no closing \"");
		return false;
	}
	r->at = end + 1;
	return true;
}

/* $1 : the parameter */
static void read_parameter(struct point_reader *r)
{
	const struct lexer *l = &r->p->lexer;
	uint32_t from = r->at++;
	unsigned long i;

	while (isdigit((unsigned char)l->text[r->at]))
		r->at++;
	i = strtoul(l->text + from + 1, NULL, 10);
	if (i && i <= r->p->parameters->n)
		buf_put_cstr(&r->text, r->p->parameters->words[i - 1]);
	else
		parser_error(r->p, parser_place(r->p, from, r->at), "parameter",
			"the trace point needs $%lu, but %zu parameters are given", i,
			r->p->parameters->n);
}

/* name=uprobe:... : bpftrace has names for points, which mean nothing yet. */
static bool ends_name(const struct point_reader *r, char c)
{
	return c == '=' && !r->n_colons && r->text.n && r->p->lexer.text[r->at + 1] != '=';
}

static void count_colon(struct point_reader *r)
{
	if (!r->n_colons++)
		r->has_file = is_file_point((const char *)r->text.p, r->text.n);
}

static bool ends_point(const struct point_reader *r, char c)
{
	return isspace((unsigned char)c) || c == ',' || c == '{' || (c == '/' && !r->has_file);
}

static void read_point(struct point_reader *r)
{
	const struct lexer *l = &r->p->lexer;

	while (r->at < l->n && !r->p->panic && !ends_point(r, l->text[r->at])) {
		char c = l->text[r->at];

		if (c == '"') {
			if (!read_quoted(r))
				return;
			continue;
		}
		if (c == '$' && isdigit((unsigned char)l->text[r->at + 1])) {
			read_parameter(r);
			continue;
		}
		if (ends_name(r, c)) {
			r->text.n = 0;
			r->at++;
			continue;
		}
		if (c == ':')
			count_colon(r);
		if (c == '/' && r->n_colons > 1 && !r->slash) {
			r->slash = r->at;
			r->slash_text_n = r->text.n;
		}
		buf_put_u8(&r->text, (uint8_t)c);
		r->at++;
	}
}

/* Cuts off a predicate that stands directly behind the name of a point with a file. */
static void cut_predicate(struct point_reader *r)
{
	struct lexer ahead = r->p->lexer;
	char next;

	if (!r->slash)
		return;
	ahead.diags = NULL;
	ahead.pos = r->at;
	lexer_skip_space(&ahead);
	next = ahead.text[ahead.pos];
	if (ahead.text[r->at - 1] == '/' || !next || !strchr("{,/", next)) {
		r->at = r->slash;
		r->text.n = r->slash_text_n;
	}
}

/* point = [ name "=" ] { character except white space "," "{" | '"' { any } '"' | "$" digits } */
static struct point_text *parse_point(struct parser *p)
{
	struct point_text *point = arena_zalloc(p->arena, sizeof(*point));
	struct point_reader r = {.p = p, .at = p->token.from};

	read_point(&r);
	cut_predicate(&r);
	point->text = arena_strndup(p->arena, (const char *)r.text.p, r.text.n);
	point->place = parser_place(p, p->token.from, r.at);
	buf_release(&r.text);
	/* The lexer goes on behind the point. */
	p->last_to = r.at;
	p->lexer.pos = r.at;
	return point;
}

bool parser_begins_point(const struct parser *p)
{
	return parser_at(p, TOKEN_NAME) || parser_at(p, TOKEN_STRING) || parser_at(p, '*') ||
	       parser_at(p, TOKEN_PARAMETER);
}

/* points = point { "," point } */
struct point_text *parse_points(struct parser *p)
{
	struct point_text *first = NULL, **next = &first;

	for (;;) {
		*next = parse_point(p);
		next = &(*next)->next;
		p->token = lexer_next(&p->lexer);
		if (!parser_accept(p, ','))
			return first;
		if (!parser_begins_point(p)) {
			parser_expected(p, "a trace point after ','");
			return first;
		}
	}
}
