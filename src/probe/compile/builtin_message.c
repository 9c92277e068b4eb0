/* SPDX-License-Identifier: MIT */
/*
 * Messages: of the run (errorf, warnf), of the kernel's own trace (debugf), and of the compiler (fail,
 * static_assert). assert() is an errorf() and an exit() behind a condition.
 */
#include <inttypes.h>
#include <string.h>

#include "probe/compile/builtin.h"

#define DEBUG_VALUES_MAX 3 /* that the kernel's helper takes besides the text */
#define DEBUG_TEXT_MAX	 512

static const struct type *check_message(struct check_clause *c, struct expr *e)
{
	check_printf(c, e, (enum format_kind)check_row(c, e)->detail);
	return check_void(c);
}

static ir_value lower_message(struct lower *l, const struct expr *e)
{
	lower_record(l, e, meaning_of(l, e)->format, e->args->next);
	return 0;
}

/* --- debugf ----------------------------------------------------------------------------------- */

/* What the kernel's own printf knows: no precision, and no letters but these. */
static bool is_for_kernel(const struct expr *text)
{
	for (const char *p = text->text; (p = strchr(p, '%')); p++) {
		p += 1 + strspn(p + 1, "-+ #0123456789");
		p += strspn(p, "ljzt");
		if (!*p || !strchr("%diuxXpsc", *p))
			return false;
	}
	return true;
}

static const struct type *check_debug(struct check_clause *c, struct expr *e)
{
	struct expr *text = e->args;

	if (!check_format(c, e))
		return check_void(c);
	if (e->n_args - 1 > DEBUG_VALUES_MAX)
		check_error(c, e->place, "arguments", "debugf() takes at most %d values",
			DEBUG_VALUES_MAX);
	else if (!is_for_kernel(text))
		check_error(c, text->place, "format",
			"debugf() has the conversions %%d %%i %%u %%x %%X %%p %%s %%c, with a width");
	for (struct expr *a = text->next; a; a = a->next) {
		const struct type *type = a->type[c->mode];

		if (!lower_is_value(type) && !type_is_text(type))
			check_error(c, a->place, "type", "debugf() prints numbers and texts");
	}
	return check_void(c);
}

/* Values have 64 bits: "%d" becomes "%lld". */
static void debug_text(const char *text, struct buf *out)
{
	while (*text) {
		size_t plain = strcspn(text, "%");

		buf_put(out, text, plain);
		text += plain;
		if (!*text)
			break;
		plain = 1 + strspn(text + 1, "-+ #0123456789");
		buf_put(out, text, plain);
		text += plain + strspn(text + plain, "ljzt");
		if (strchr("diuxX", *text))
			buf_put_cstr(out, "ll");
		buf_put_u8(out, (uint8_t)*text++);
	}
}

/* A text is an address of ours with a NUL behind it. */
static struct ir_arg debug_value(struct lower *l, const struct expr *a)
{
	const struct type *t = type_of(l, a);
	ir_mem mem;

	if (lower_is_value(t))
		return IR_V(lower_value(l, a));
	mem = ir_new_memory(&l->ir, (uint32_t)t->n + 8);
	lower_into(l, a, mem, 0, (uint32_t)t->n);
	ir_zero(&l->ir, mem, (int32_t)t->n, 8);
	return IR_M(mem, 0);
}

static ir_value lower_debug(struct lower *l, const struct expr *e)
{
	struct ir_arg args[2 + DEBUG_VALUES_MAX];
	struct buf text = {0};
	uint32_t n, n_args = 2;
	ir_mem mem;

	debug_text(e->args->text, &text);
	n = (uint32_t)text.n + 1;
	mem = ir_new_memory(&l->ir, (n + 7) & ~7u);
	lower_bytes(l, buf_text(&text), n - 1, mem, 0, (n + 7) & ~7u);
	buf_release(&text);
	args[0] = IR_M(mem, 0);
	args[1] = IR_I(n);
	for (const struct expr *a = e->args->next; a && n_args < 2 + DEBUG_VALUES_MAX; a = a->next)
		args[n_args++] = debug_value(l, a);
	return ir_call(&l->ir, BPF_FUNC_trace_printk, args, (int)n_args);
}

/* --- assert ----------------------------------------------------------------------------------- */

static struct expr *new_call(
	struct check_clause *c, const struct expr *e, const char *name, struct expr *argument)
{
	struct expr *call = arena_zalloc(c->session->script->arena, sizeof(*call));

	call->kind = EXPR_CALL;
	call->place = e->place;
	call->name = name;
	call->args = argument;
	call->n_args = 1;
	return call;
}

/* "assert failed: " and the text, with percent signs that stand for themselves. */
static struct expr *new_text(struct check_clause *c, const struct expr *e, const char *text)
{
	struct expr *t = arena_zalloc(c->session->script->arena, sizeof(*t));
	struct buf all = {0};

	buf_put_cstr(&all, "assert failed: ");
	for (; *text; text++)
		buf_put_cstr(&all, (char[]){*text, *text == '%' ? '%' : '\0', '\0'});
	t->kind = EXPR_STRING;
	t->place = e->place;
	t->text_n = all.n;
	t->text = arena_strdup(c->session->script->arena, buf_text(&all));
	buf_release(&all);
	return t;
}

static struct expr *new_one(struct check_clause *c, const struct expr *e)
{
	struct expr *one = arena_zalloc(c->session->script->arena, sizeof(*one));

	one->kind = EXPR_INT;
	one->place = e->place;
	one->value = 1;
	return one;
}

/* assert(CONDITION, "TEXT"): e->b is errorf("assert failed: TEXT"), e->c is exit(1). */
static const struct type *check_assert(struct check_clause *c, struct expr *e)
{
	struct expr *condition = e->args, *text = condition->next;
	bool ok = check_scalar(c, condition, "a condition");

	if (!check_literal(c, e, text) || !ok)
		return check_bad(c);
	if (!e->b) {
		e->b = new_call(c, e, "errorf", new_text(c, e, text->text));
		e->c = new_call(c, e, "exit", new_one(c, e));
	}
	check_expr(c, e->b);
	check_expr(c, e->c);
	return check_void(c);
}

static ir_value lower_assert(struct lower *l, const struct expr *e)
{
	ir_label failed = ir_new_label(&l->ir), done = ir_new_label(&l->ir);

	lower_condition(l, e->args, failed);
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, failed);
	lower_value(l, e->b);
	lower_value(l, e->c);
	ir_place_label(&l->ir, done);
	return 0;
}

/* --- while compiling -------------------------------------------------------------------------- */

static const struct type *check_static_assert(struct check_clause *c, struct expr *e)
{
	struct expr *condition = e->args, *text = condition->next;
	int64_t v;

	if (!check_constant(c, condition, "the condition of static_assert()", &v) ||
		!check_literal(c, e, text))
		return check_bad(c);
	if (!v)
		check_error(c, e->place, "assert", "%s", text->text);
	return check_void(c);
}

/* The next value of fail(), which is known now. */
static void put_known(struct check_clause *c, const struct expr *a, char letter, struct buf *out)
{
	if (a->kind == EXPR_STRING)
		buf_put_cstr(out, a->text);
	else if (letter == 'x' || letter == 'p')
		buf_printf(out, "%" PRIx64, a->constant[c->mode]);
	else if (letter == 'u')
		buf_printf(out, "%" PRIu64, a->constant[c->mode]);
	else
		buf_printf(out, "%" PRId64, (int64_t)a->constant[c->mode]);
}

/* Where the checker comes by, the script is refused: what a constant condition leaves out is not
 * checked. */
static const struct type *check_fail(struct check_clause *c, struct expr *e)
{
	const struct expr *a = e->args->next;
	const char *p = e->args->text;
	struct buf text = {0};

	if (!check_format(c, e))
		return check_bad(c);
	for (; a; a = a->next)
		if (a->kind != EXPR_STRING && !a->is_constant[c->mode])
			return check_refuse(
				c, a->place, "constant", "the values of fail() must be constants");
	for (a = e->args->next; *p; p++) {
		if (*p != '%' || p[1] == '%') {
			p += *p == '%';
			buf_put_u8(&text, (uint8_t)*p);
			continue;
		}
		p += 1 + strspn(p + 1, "-+ #0123456789.hljzt");
		put_known(c, a, *p, &text);
		a = a->next;
	}
	check_error(c, e->place, "assert", "%s", buf_text(&text));
	buf_release(&text);
	return check_bad(c);
}

const struct builtin message_builtins[] = {
#define MESSAGE(format) .check = check_message, .lower = lower_message, .detail = format
	{"errorf", "errorf(FORMAT, VALUE, ...)", 1, 64, MESSAGE(FORMAT_ERRORF)},
	{"warnf", "warnf(FORMAT, VALUE, ...)", 1, 64, MESSAGE(FORMAT_WARNF)},
	{"debugf", "debugf(FORMAT, VALUE, ...)", 1, 64, .check = check_debug, .lower = lower_debug},
	{"assert", "assert(CONDITION, \"TEXT\")", 2, 2, .check = check_assert,
		.lower = lower_assert},
	{"static_assert", "static_assert(CONDITION, \"TEXT\")", 2, 2, .check = check_static_assert},
	{"fail", "fail(FORMAT, VALUE, ...)", 1, 64, .check = check_fail},
	{.name = NULL},
};
