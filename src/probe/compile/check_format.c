/* SPDX-License-Identifier: MIT */
/* Formats of printf, cat and system, checked against their arguments; and the stream's formats. */
#include <string.h>

#include "probe/compile/checker.h"

#define FORMATS_LOOKED_AT 64 /* back from the last: those of the same clause at other points */

/* --- the stream's table ----------------------------------------------------------------------- */

static bool is_same_format(const struct stream_format *a, const struct stream_format *b)
{
	if (a->kind != b->kind || a->map_i != b->map_i || a->n_args != b->n_args ||
		a->place.from != b->place.from || a->place.source_i != b->place.source_i ||
		!name_is_same(a->text, b->text))
		return false;
	for (uint32_t i = 0; i < a->n_args; i++) {
		if (!shape_is_same(a->args[i], b->args[i]))
			return false;
	}
	return true;
}

void check_add_format(struct check_clause *c, struct expr *e, const struct stream_format *format)
{
	struct stream *stream = c->session->stream;
	struct meaning *m = (struct meaning *)e->meaning[c->mode];
	size_t n = stream->formats.n;
	struct stream_format f = *format;

	if (c->session->pass != CHECK_FINAL)
		return;
	f.place = e->place;
	for (size_t i = n; i > 0 && n - i < FORMATS_LOOKED_AT; i--) {
		if (is_same_format(&stream->formats.v[i - 1], &f)) {
			m->format = (uint32_t)(i - 1);
			return;
		}
	}
	if (f.text)
		f.text = arena_strdup(stream->arena, f.text);
	m->format = (uint32_t)n;
	vec_push(&stream->formats, f);
}

struct shape **check_argument_shapes(struct check_clause *c, struct expr *args, uint32_t n)
{
	struct shape **shapes =
		arena_zalloc(c->session->stream->arena, (n ? n : 1) * sizeof(*shapes));
	bool is_bad = false;
	uint32_t i = 0;

	for (struct expr *a = args; a && i < n; a = a->next, i++) {
		const struct type *type = a->type[c->mode];

		shapes[i] = NULL;
		if (type->kind != TYPE_BAD) {
			shapes[i] = check_shape(c->session, type, NULL, a->place);
			c->n_errors += !shapes[i];
			if (shapes[i] && shapes[i]->kind == SHAPE_INT && type->kind == TYPE_INT)
				shapes[i]->n = type->size <= 4 ? 4 : 0;
		}
		is_bad |= !shapes[i];
	}
	return is_bad ? NULL : shapes;
}

/* --- conversions ------------------------------------------------------------------------------ */

static bool is_printed_as_text(const struct type *type)
{
	return type_is_special(type) || type_is_text(type);
}

#define LETTER_FLAGS 'R' /* stands for %gr */

static bool suits(char letter, const struct type *type)
{
	if (letter == LETTER_FLAGS && type->kind == TYPE_FLOAT) /* %g, and an r */
		return true;
	if (strchr("diuxXop", letter) || letter == LETTER_FLAGS)
		return type_is_scalar(type);
	if (letter == 's')
		return is_printed_as_text(type) || type->is_bool || type->is_enum;
	return type->kind == (letter == 'c' ? TYPE_INT : letter == 'r' ? TYPE_BYTES : TYPE_FLOAT);
}

static char letter_for(const struct type *type)
{
	if (type->kind == TYPE_INT)
		return type->is_signed ? 'd' : 'u';
	if (type->kind == TYPE_POINTER)
		return 'p';
	if (type->kind == TYPE_FLOAT)
		return 'f';
	if (type->kind == TYPE_BYTES)
		return 'r';
	return is_printed_as_text(type) ? 's' : '\0';
}

static void mismatch(struct check_clause *c, char letter, struct expr *a, const struct type *type)
{
	bool is_char_pointer = type->kind == TYPE_POINTER && type->of->is_char;

	check_error(c, a->place, "format", "%%%s does not suit a %s",
		letter == LETTER_FLAGS ? "gr" : (const char[]){letter, '\0'}, type_text(c, type));
	if (letter == 's' && (is_char_pointer || type->kind == TYPE_INT))
		check_hint(c, is_char_pointer ? "str(POINTER) reads the text"
					      : "%%d prints a number; str(ADDRESS) reads a text");
	else if (letter_for(type))
		check_hint(c, "%%%c does", letter_for(type));
	else
		check_hint(c, "print() shows any value");
}

/* Gives the letter, or NUL for "%%" and -1 for something wrong; *at is moved behind it. */
static int next_conversion(struct check_clause *c, const struct expr *text, const char **at)
{
	const char *p = *at + 1, *from = *at;
	char shown[16];
	size_t n;

	if (*p == '%') {
		*at = p + 1;
		return 0;
	}
	p += strspn(p, "-+ #0");
	p += strspn(p, "0123456789");
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	p += strspn(p, "hljztqL");
	if (*p && strchr("diuxXocpsfFeEgGaAr", *p)) {
		char letter = *p;

		*at = p + 1;
		if (letter == 'g' && p[1] == 'r') {
			*at = p + 2;
			return LETTER_FLAGS;
		}
		if (letter == 'r' && (p[1] == 'x' || p[1] == 'h'))
			*at = p + 2;
		return letter;
	}
	n = (size_t)(p - from) + (*p != '\0');
	n = n < sizeof(shown) ? n : sizeof(shown) - 1;
	memcpy(shown, from, n);
	shown[n] = '\0';
	if (*p == '*')
		check_error(c, text->place, "format", "'%s': a width must be written in the format",
			shown);
	else if (*p)
		check_error(c, text->place, "format", "'%s' is no conversion", shown);
	else
		check_error(c, text->place, "format", "the format ends inside '%s'", shown);
	if (*p != '*')
		check_hint(c, "%%%% prints a percent sign");
	*at = p + (*p != '\0');
	return -1;
}

static void check_conversions(struct check_clause *c, struct expr *e)
{
	const struct expr *text = e->args;
	struct expr *a = text->next;
	uint32_t n = 0, n_args = e->n_args - 1;
	const char *p = text->text;

	if (memchr(text->text, '\0', text->text_n)) {
		check_error(c, text->place, "format", "a format cannot have \\0 in it");
		return;
	}
	while ((p = strchr(p, '%')) != NULL) {
		int letter = next_conversion(c, text, &p);

		if (letter < 0)
			return;
		if (!letter)
			continue;
		n++;
		if (a && a->type[c->mode]->kind != TYPE_BAD &&
			!suits((char)letter, a->type[c->mode]))
			mismatch(c, (char)letter, a, a->type[c->mode]);
		a = a ? a->next : NULL;
	}
	if (n != n_args)
		check_error(c, text->place, "format",
			"the format has %u conversion%s, and %u value%s follow%s", n,
			n == 1 ? "" : "s", n_args, n_args == 1 ? "" : "s", n_args == 1 ? "s" : "");
}

bool check_format(struct check_clause *c, struct expr *e)
{
	uint32_t n_errors = c->n_errors;
	struct expr *text = e->args;

	check_expr(c, text);
	for (struct expr *a = text->next; a; a = a->next)
		check_value(c, a);
	if (text->kind != EXPR_STRING)
		return check_error(c, text->place, "format",
			"the format of %s() must be a literal text", e->name);
	check_conversions(c, e);
	return c->n_errors == n_errors;
}

void check_printf(struct check_clause *c, struct expr *e, enum format_kind kind)
{
	struct stream_format f = {.kind = kind, .n_args = e->n_args - 1};
	bool ok = check_format(c, e);

	if (e->args->kind != EXPR_STRING)
		return;
	f.args = check_argument_shapes(c, e->args->next, f.n_args);
	f.text = e->args->text;
	if (f.args && ok)
		check_add_format(c, e, &f);
}
