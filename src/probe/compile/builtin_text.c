/* SPDX-License-Identifier: MIT */
/* Functions that give or take texts: str, buf, strlen, strcmp, strftime, ntop, ... */
#include <string.h>

#include "probe/compile/builtin.h"

#define AF_INET_NUMBER	2
#define AF_INET6_NUMBER 10

/* --- reading ---------------------------------------------------------------------------------- */

/* The length of a text or buffer, a constant up to the longest possible. */
static bool check_length(
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
	else if (!a->next || a->next->is_constant[l->mode])
		lower_read_full_text(l, space, lower_value(l, a), bytes, mem, at);
	else
		lower_read_text_up_to(
			l, space, lower_value(l, a), lower_value(l, a->next), bytes, mem, at);
	ir_zero(&l->ir, mem, (int32_t)(at + bytes), n - bytes);
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
	if (!type_is_scalar(type) && type->kind != TYPE_ARRAY)
		return check_refuse(c, a->place, "type",
			"buf() needs a pointer or an array, and this is a %s", type_text(c, type));
	if (!length && type->kind != TYPE_ARRAY) {
		check_error(c, e->place, "arguments", "buf() of a pointer needs a length");
		return builtin_hint_form(c, e);
	}
	if (type->kind == TYPE_ARRAY)
		n = (int64_t)type->size;
	if (length && length->is_constant[c->mode]) {
		if (!check_length(c, length, "the length of buf()", 1, &n))
			return check_bad(c);
		if (type->kind == TYPE_ARRAY && n > (int64_t)type->size)
			return check_refuse(c, length->place, "range",
				"the array has only %llu bytes", (unsigned long long)type->size);
	}
	if (n < 1 || n > CHECK_STRING_MAX)
		return check_refuse(
			c, e->place, "range", "buf() takes 1 to %d bytes", CHECK_STRING_MAX);
	return types_bytes(check_types(c), (uint64_t)n);
}

/* u32 length, u32 0, bytes. The verifier wants to see the bound of a length that is not constant.
 */
static void buf_into(
	struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n_room)
{
	uint32_t room = (uint32_t)type_of(l, e)->n;
	const struct expr *a = e->args, *b = a->next;
	const struct type *t = type_of(l, a);
	ir_value n = ir_new_value(&l->ir), address, rc;
	ir_label ok = ir_new_label(&l->ir);
	struct object o;

	(void)n_room;
	if (t->kind == TYPE_ARRAY && (!b || b->is_constant[l->mode])) {
		o = lower_object(l, a);
		ir_store_imm(&l->ir, mem, (int32_t)at, 8, room);
		lower_copy_object(l, &o, room, mem, at + 8);
		return;
	}
	if (b)
		ir_copy(&l->ir, n, lower_value(l, b));
	else
		ir_set_const(&l->ir, n, room);
	ir_branch_imm(&l->ir, BPF_JLE, n, room, ok);
	ir_set_const(&l->ir, n, room);
	ir_place_label(&l->ir, ok);
	address = lower_value(l, a);
	ir_zero(&l->ir, mem, (int32_t)at, 8 + room);
	ir_store(&l->ir, mem, (int32_t)at, 4, n);
	l->reads_user = true;
	rc = IR_CALL_(&l->ir,
		t->kind == TYPE_POINTER && t->space == SPACE_KERNEL ? BPF_FUNC_probe_read_kernel
								    : BPF_FUNC_copy_from_user,
		IR_M(mem, at + 8), IR_V(n), IR_V(address));
	lower_fail_unless_ok(l, rc, false, FAILURE_READ, address);
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

static const struct type *check_contains(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args, *b = a->next;
	bool ok = check_text(c, e, a);

	if (!check_literal(c, e, b) || !ok)
		return check_bad(c);
	if (a->type[c->mode]->n > CHECK_HAYSTACK_MAX) {
		check_error(c, a->place, "range", "strcontains() searches at most %d bytes",
			CHECK_HAYSTACK_MAX);
		return check_hint(c, "str(POINTER, %d)", CHECK_HAYSTACK_MAX);
	}
	return check_int(c, 8, true);
}

/* --- printed forms ---------------------------------------------------------------------------- */

static const struct type *check_strftime(struct check_clause *c, struct expr *e)
{
	struct stream *stream = c->session->stream;
	struct meaning *m = check_meaning(c, e);
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

static void time_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	(void)n;
	ir_store(&l->ir, mem, (int32_t)at, 8, lower_value(l, e->args->next));
	ir_store_imm(&l->ir, mem, (int32_t)at + 8, 8, meaning_of(l, e)->format);
}

static bool check_family(struct check_clause *c, struct expr *a, int64_t *family)
{
	*family = 0;
	if (a->kind == EXPR_NAME && !strncmp(a->name, "AF_INET", 7)) {
		*family = a->name[7] == '6' ? AF_INET6_NUMBER : AF_INET_NUMBER;
		check_set_constant(c, a, check_int(c, 8, true), (uint64_t)*family);
		return true;
	}
	if (!check_constant(c, a, "the family of ntop()", family))
		return false;
	if (*family == AF_INET_NUMBER || *family == AF_INET6_NUMBER)
		return true;
	return check_error(
		c, a->place, "range", "the family of ntop() is AF_INET (2) or AF_INET6 (10)");
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
		(bytes != 4 && bytes != 16))
		return check_refuse(
			c, a->place, "type", "ntop() needs an integer, or 4 or 16 bytes");
	if (family && (family == AF_INET_NUMBER) != (bytes == 4))
		return check_refuse(c, a->place, "type", "an address of AF_INET%s has %d bytes",
			family == AF_INET_NUMBER ? "" : "6", family == AF_INET_NUMBER ? 4 : 16);
	return types_special(check_types(c), TYPE_INET);
}

static void inet_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t room)
{
	const struct expr *a = e->args;
	uint32_t n = 4;
	struct object o;

	if (a->next)
		a = a->next; /* ntop(AF_INET, address) */
	(void)room;
	ir_zero(&l->ir, mem, (int32_t)at, 24);
	if (lower_is_value(type_of(l, a))) {
		ir_store(&l->ir, mem, (int32_t)at + 8, 4, lower_value(l, a));
	} else {
		n = type_of(l, a)->size >= 16 ? 16 : 4;
		o = lower_object(l, a);
		lower_copy_object(l, &o, n, mem, at + 8);
	}
	ir_store_imm(&l->ir, mem, (int32_t)at, 8, n);
}

const struct builtin text_builtins[] = {
#define INTO(checked, code)  .check = checked, .into = code
#define VALUE(checked, code) .check = checked, .lower = code
	{"strftime", "strftime(FORMAT, NANOSECONDS)", 2, 2, INTO(check_strftime, time_into)},
	{"str", "str(POINTER [, BYTES])", 1, 2, INTO(check_str, str_into)},
	{"copyinstr", "copyinstr(POINTER [, BYTES])", 1, 2, INTO(check_str, str_into)},
	{"buf", "buf(POINTER, BYTES)", 1, 2, INTO(check_buf, buf_into)},
	{"kstr", "kstr(POINTER [, BYTES])", 1, 2, INTO(check_str, str_into),
		.detail = SPACE_KERNEL},
	{"strlen", "strlen(STRING)", 1, 1, VALUE(check_strlen, lower_text_length)},
	{"strncmp", "strncmp(STRING, STRING, BYTES)", 3, 3, VALUE(check_compare, lower_differ)},
	{"strcmp", "strcmp(STRING, STRING)", 2, 2, VALUE(check_compare, lower_differ)},
	{"strcontains", "strcontains(STRING, \"TEXT\")", 2, 2,
		VALUE(check_contains, lower_text_contains)},
	{"ntop", "ntop([AF_INET | AF_INET6,] ADDRESS)", 1, 2, INTO(check_ntop, inet_into)},
	{.name = NULL},
};
