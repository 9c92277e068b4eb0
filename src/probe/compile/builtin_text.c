/* SPDX-License-Identifier: MIT */
/* Functions that give or take texts: str, strlen, strcmp, strstr, strftime, ... */
#include <string.h>

#include "probe/compile/builtin.h"

/* --- reading ---------------------------------------------------------------------------------- */

bool check_length(
	struct check_clause *c, struct expr *a, const char *what, int64_t least, int64_t *out)
{
	if (!check_constant(c, a, what, out))
		return false;
	if (*out >= least && *out <= CHECK_STRING_MAX)
		return true;
	return check_error(c, a->place, "range", "%s must be from %lld to %d", what,
		(long long)least, CHECK_STRING_MAX);
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
	if (!type_is_scalar(type) && !type_is_text(type))
		return check_refuse(c, a->place, "type", "%s() needs a pointer, and this is a %s",
			e->name, type_text(c, type));
	if (type_is_text(type) && !a->next)
		n = (int64_t)check_text_bytes(type);
	if (n > CHECK_STRING_MAX)
		n = CHECK_STRING_MAX;
	return types_string(check_types(c), (uint64_t)n);
}

static void str_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	const struct expr *a = e->args;
	const struct type *t = type_of(l, a);
	uint32_t limit = (uint32_t)type_of(l, e)->n, bytes = limit < n ? limit : n;
	bool is_kernel = lower_row(l, e)->detail == SPACE_KERNEL ||
			 (t->kind == TYPE_POINTER && t->space == SPACE_KERNEL);
	enum space space = is_kernel ? SPACE_KERNEL : SPACE_USER;

	if (t->kind == TYPE_ARRAY || t->kind == TYPE_STRING)
		lower_into(l, a, mem, at, bytes);
	else if (!a->next && bytes < limit) /* its beginning is enough */
		lower_read_text(l, space, lower_value(l, a), bytes, mem, at);
	else if (!a->next)
		lower_read_text_to_limit(l, space, lower_value(l, a), bytes, mem, at);
	else if (a->next->is_constant[l->mode])
		lower_read_full_text(l, space, lower_value(l, a), bytes, mem, at);
	else
		lower_read_text_up_to(
			l, space, lower_value(l, a), lower_value(l, a->next), bytes, mem, at);
	ir_zero(&l->ir, mem, (int32_t)(at + bytes), n - bytes);
}

/* --- comparing -------------------------------------------------------------------------------- */

static bool check_text(struct check_clause *c, struct expr *e, struct expr *a)
{
	const struct type *type = check_value(c, a);

	if (type->kind == TYPE_BAD)
		return false;
	if (type_is_text(type))
		return check_text_fits(c, type, a->place);
	check_error(c, a->place, "type", "%s() needs a string, and this is a %s", e->name,
		type_text(c, type));
	if (type_is_scalar(type))
		check_hint(c, "str(POINTER) reads the text that it points to");
	return false;
}

static const struct type *check_strlen(struct check_clause *c, struct expr *e)
{
	return check_text(c, e, e->args) ? check_int(c, 8, false) : check_bad(c);
}

static const struct type *check_compare(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args, *b = a->next;
	bool ok = check_text(c, e, a);
	int64_t n;

	ok &= check_text(c, e, b);
	if (b->next)
		ok &= check_length(c, b->next, "the length of strncmp()", 0, &n);
	return ok ? check_int(c, 8, true) : check_bad(c);
}

static ir_value lower_differ(struct lower *l, const struct expr *e)
{
	const struct expr *a = e->args, *b = a->next;
	int64_t n = b->next ? (int64_t)b->next->constant[l->mode] : -1;

	return ir_alu_imm(&l->ir, BPF_XOR, lower_text_equal(l, a, b, n), 1);
}

/* strcontains(TEXT, PART), strstr(TEXT, PART) */
static const struct type *check_search(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args, *b = a->next;
	bool ok = check_text(c, e, a);
	uint64_t words;

	ok &= check_text(c, e, b);
	if (!ok)
		return check_bad(c);
	words = (check_text_bytes(b->type[c->mode]) + 7) / 8;
	if (words * check_text_bytes(a->type[c->mode]) > CHECK_SEARCH_MAX ||
		check_text_bytes(a->type[c->mode]) > CHECK_HAYSTACK_MAX) {
		check_error(c, e->place, "range", "%s() takes too long with texts of this length",
			e->name);
		return check_hint(c, "str(POINTER, 64) takes the beginning of a text");
	}
	return check_row(c, e)->detail ? check_bool(c) : check_int(c, 8, true);
}

static ir_value lower_search(struct lower *l, const struct expr *e)
{
	return lower_text_find(l, e->args, e->args->next, lower_row(l, e)->detail);
}

/* How long a text may be: a number that is known now. */
static const struct type *check_strcap(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_value(c, e->args);

	if (!check_text(c, e, e->args))
		return check_bad(c);
	return check_set_constant(c, e, check_int(c, 8, true), type->n);
}

static const struct type *check_default_length(struct check_clause *c, struct expr *e)
{
	return check_set_constant(c, e, check_int(c, 8, false), c->session->string_bytes);
}

/* --- printed forms ---------------------------------------------------------------------------- */

/* nsecs(tai): a date out of it would be wrong by years. */
static bool is_other_clock(const struct expr *a)
{
	return a->kind == EXPR_CALL && !strcmp(a->name, "nsecs") && a->args &&
	       strcmp(a->args->name, "boot");
}

static const struct type *check_strftime(struct check_clause *c, struct expr *e)
{
	struct meaning *m = check_meaning(c, e);
	bool ok = check_literal(c, e, e->args);

	if (!check_integer(c, e->args->next, "the time of strftime()") || !ok)
		return check_bad(c);
	if (is_other_clock(e->args->next)) {
		check_error(c, e->args->next->place, "arguments",
			"strftime() takes nanoseconds since the machine was started");
		return check_hint(c, "nsecs, or nsecs(boot)");
	}
	m->format = check_stream_text(c, e->args->text);
	return types_special(check_types(c), TYPE_TIME);
}

static void time_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	(void)n;
	ir_store(&l->ir, mem, (int32_t)at, 8, lower_value(l, e->args->next));
	ir_store_imm(&l->ir, mem, (int32_t)at + 8, 8, meaning_of(l, e)->format);
}

const struct builtin text_builtins[] = {
#define INTO(checked, code)  .check = checked, .into = code
#define VALUE(checked, code) .check = checked, .lower = code
	{"strftime", "strftime(FORMAT, NANOSECONDS)", 2, 2, INTO(check_strftime, time_into)},
	{"str", "str(POINTER [, BYTES])", 1, 2, INTO(check_str, str_into)},
	{"copyinstr", "copyinstr(POINTER [, BYTES])", 1, 2, INTO(check_str, str_into)},
	{"kstr", "kstr(POINTER [, BYTES])", 1, 2, INTO(check_str, str_into),
		.detail = SPACE_KERNEL},
	{"strlen", "strlen(STRING)", 1, 1, VALUE(check_strlen, lower_text_length)},
	{"strncmp", "strncmp(STRING, STRING, BYTES)", 3, 3, VALUE(check_compare, lower_differ)},
	{"strcmp", "strcmp(STRING, STRING)", 2, 2, VALUE(check_compare, lower_differ)},
	{"strcontains", "strcontains(STRING, PART)", 2, 2, VALUE(check_search, lower_search),
		.detail = true},
	{"strstr", "strstr(STRING, PART)", 2, 2, VALUE(check_search, lower_search)},
	{"strcap", "strcap(STRING)", 1, 1, .check = check_strcap},
	{"default_str_length", "default_str_length()", 0, 0, .check = check_default_length,
		.is_name = true},
	{.name = NULL},
};
