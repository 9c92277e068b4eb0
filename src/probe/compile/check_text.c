/* SPDX-License-Identifier: MIT */
/* Functions that give or take texts: str, buf, strlen, strcmp, strftime, ntop, ... */
#include <string.h>

#include "probe/compile/checker.h"

#define AF_INET_NUMBER	2
#define AF_INET6_NUMBER 10

static const struct meaning *meaning_of(struct check_clause *c, const struct expr *e)
{
	return e->meaning[c->mode];
}

/* The length of a text or buffer, a constant up to the longest possible. */
static bool check_length(
	struct check_clause *c, struct expr *a, const char *what, int64_t least, int64_t *out)
{
	if (!check_constant(c, a, what, out))
		return false;
	if (*out >= least && *out <= CHECK_STRING_MAX)
		return true;
	check_error(c, a->place, "range", "%s must be from %lld to %d", what, (long long)least,
		CHECK_STRING_MAX);
	return false;
}

static const struct type *check_str(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;
	const struct type *type = check_value(c, a);
	int64_t n = c->session->string_bytes;

	if (a->next && !check_integer(c, a->next, "the length of str()"))
		return check_bad(c);
	if (type->kind == TYPE_BAD)
		return type;
	/* What is in the program's memory may have a length that is found out there. */
	if (a->next && (a->next->is_constant[c->mode] || !type_is_scalar(type)) &&
		!check_length(c, a->next, "the length of str()", 1, &n))
		return check_bad(c);
	if (!type_is_scalar(type) && !check_is_text(type)) {
		check_error(c, a->place, "type", "%s() needs a pointer, and this is a %s", e->name,
			check_type_text(c->session, type));
		return check_bad(c);
	}
	if (check_is_text(type) && !a->next)
		n = (int64_t)check_text_bytes(type);
	if (n > CHECK_STRING_MAX)
		n = CHECK_STRING_MAX;
	return types_string(check_types(c), (uint64_t)n);
}

static const struct type *check_buf(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args, *length = a->next;
	const struct type *type = check_value(c, a);
	int64_t n = c->session->string_bytes;

	if (length && !check_integer(c, length, "the length of buf()"))
		return check_bad(c);
	if (type->kind == TYPE_BAD)
		return type;
	if (!type_is_scalar(type) && type->kind != TYPE_ARRAY) {
		check_error(c, a->place, "type",
			"buf() needs a pointer or an array, and this is a %s",
			check_type_text(c->session, type));
		return check_bad(c);
	}
	if (!length && type->kind != TYPE_ARRAY) {
		check_error(c, e->place, "arguments", "buf() of a pointer needs a length");
		check_hint(c, "%s", meaning_of(c, e)->function->form);
		return check_bad(c);
	}
	if (type->kind == TYPE_ARRAY)
		n = (int64_t)type->size;
	if (length && length->is_constant[c->mode]) {
		if (!check_length(c, length, "the length of buf()", 1, &n))
			return check_bad(c);
		if (type->kind == TYPE_ARRAY && n > (int64_t)type->size) {
			check_error(c, length->place, "range", "the array has only %llu bytes",
				(unsigned long long)type->size);
			return check_bad(c);
		}
	}
	if (n < 1 || n > CHECK_STRING_MAX) {
		check_error(c, e->place, "range", "buf() takes 1 to %d bytes", CHECK_STRING_MAX);
		return check_bad(c);
	}
	return types_bytes(check_types(c), (uint64_t)n);
}

static bool check_text(struct check_clause *c, struct expr *e, struct expr *a)
{
	const struct type *type = check_value(c, a);

	if (type->kind == TYPE_BAD)
		return false;
	if (check_is_text(type))
		return check_text_fits(c, type, a->place);
	check_error(c, a->place, "type", "%s() needs a string, and this is a %s", e->name,
		check_type_text(c->session, type));
	if (type_is_scalar(type))
		check_hint(c, "str(POINTER) reads the text that it points to");
	return false;
}

static const struct type *check_compare(struct check_clause *c, struct expr *e, bool has_n)
{
	struct expr *a = e->args, *b = a->next;
	bool ok = check_text(c, e, a);
	int64_t n;

	ok &= check_text(c, e, b);
	if (has_n)
		ok &= check_length(c, b->next, "the length of strncmp()", 0, &n);
	return ok ? types_int(check_types(c), 8, true) : check_bad(c);
}

static const struct type *check_contains(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args, *b = a->next;
	bool ok = check_text(c, e, a);

	if (!check_literal(c, e, b) || !ok)
		return check_bad(c);
	if (a->type[c->mode]->n > CHECK_HAYSTACK_MAX) {
		check_error(c, a->place, "range", "strcontains() searches at most %d bytes",
			CHECK_HAYSTACK_MAX);
		check_hint(c, "str(POINTER, %d)", CHECK_HAYSTACK_MAX);
		return check_bad(c);
	}
	return types_int(check_types(c), 8, true);
}

static const struct type *check_strftime(struct check_clause *c, struct expr *e)
{
	struct stream *stream = c->session->stream;
	struct meaning *m = (struct meaning *)e->meaning[c->mode];
	bool ok = check_literal(c, e, e->args);

	if (!check_integer(c, e->args->next, "the time of strftime()") || !ok)
		return check_bad(c);
	if (c->session->pass == CHECK_FINAL) {
		size_t i = 0;

		while (i < stream->strings.n && strcmp(stream->strings.v[i], e->args->text))
			i++;
		if (i == stream->strings.n)
			vec_push(&stream->strings, arena_strdup(stream->arena, e->args->text));
		m->format = (uint32_t)i;
	}
	return types_special(check_types(c), TYPE_TIME);
}

static bool check_family(struct check_clause *c, struct expr *a, int64_t *family)
{
	*family = 0;
	if (a->kind == EXPR_NAME && !strncmp(a->name, "AF_INET", 7)) {
		*family = a->name[7] == '6' ? AF_INET6_NUMBER : AF_INET_NUMBER;
		check_set_constant(c, a, types_int(check_types(c), 8, true), (uint64_t)*family);
		return true;
	}
	if (!check_constant(c, a, "the family of ntop()", family))
		return false;
	if (*family == AF_INET_NUMBER || *family == AF_INET6_NUMBER)
		return true;
	check_error(c, a->place, "range", "the family of ntop() is AF_INET (2) or AF_INET6 (10)");
	return false;
}

static const struct type *check_ntop(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;
	const struct type *type;
	int64_t family = 0;
	uint64_t bytes;

	if (a->next) {
		if (!check_family(c, a, &family))
			return check_bad(c);
		a = a->next;
	}
	type = check_value(c, a);
	if (type->kind == TYPE_BAD)
		return type;
	bytes = type->kind == TYPE_INT ? 4 : type->size;
	if ((type->kind != TYPE_INT && type->kind != TYPE_ARRAY && type->kind != TYPE_STRUCT) ||
		(bytes != 4 && bytes != 16)) {
		check_error(c, a->place, "type", "ntop() needs an integer, or 4 or 16 bytes");
		return check_bad(c);
	}
	if (family && (family == AF_INET_NUMBER) != (bytes == 4)) {
		check_error(c, a->place, "type", "an address of AF_INET%s has %d bytes",
			family == AF_INET_NUMBER ? "" : "6", family == AF_INET_NUMBER ? 4 : 16);
		return check_bad(c);
	}
	return types_special(check_types(c), TYPE_INET);
}

const struct type *check_text_function(struct check_clause *c, struct expr *e, enum function_id id)
{
	switch (id) {
	case FUNCTION_STR:
	case FUNCTION_KSTR:
		return check_str(c, e);
	case FUNCTION_BUF:
		return check_buf(c, e);
	case FUNCTION_STRLEN:
		return check_text(c, e, e->args) ? types_int(check_types(c), 8, false)
						 : check_bad(c);
	case FUNCTION_STRNCMP:
	case FUNCTION_STRCMP:
		return check_compare(c, e, id == FUNCTION_STRNCMP);
	case FUNCTION_STRCONTAINS:
		return check_contains(c, e);
	case FUNCTION_STRFTIME:
		return check_strftime(c, e);
	case FUNCTION_NTOP:
		return check_ntop(c, e);
	default:
		return NULL;
	}
}
