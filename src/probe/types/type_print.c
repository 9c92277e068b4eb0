/* SPDX-License-Identifier: MIT */
/*
 * Types as C writes them. A declarator grows outwards from the name that is not there: "int", then
 * "*", "(*)[3]", "(*)(char *)"; `inner` is what was written so far.
 */

#include "probe/types/type.h"

#define PRINT_STEPS_MAX 1000 /* the rest of a larger type is ... */

static void print_declarator(
	const struct type *type, const char *inner, uint32_t *steps, struct buf *out);

const char *aggregation_name(enum aggregation a)
{
	static const char *const names[] = {[AGGREGATION_NONE] = "nothing",
		[AGGREGATION_COUNT] = "count()",
		[AGGREGATION_SUM] = "sum()",
		[AGGREGATION_MIN] = "min()",
		[AGGREGATION_MAX] = "max()",
		[AGGREGATION_AVG] = "avg()",
		[AGGREGATION_STATS] = "stats()",
		[AGGREGATION_HIST] = "hist()",
		[AGGREGATION_LHIST] = "lhist()",
		[AGGREGATION_TSERIES] = "tseries()"};

	return names[a];
}

static void print_list(const struct type *type, uint32_t *steps, struct buf *out)
{
	buf_put_cstr(out, "(");
	for (uint32_t i = 0; i < type->n_fields && *steps < PRINT_STEPS_MAX; i++) {
		if (i)
			buf_put_cstr(out, ", ");
		print_declarator(type->fields[i].type, "", steps, out);
	}
	if (type->is_variadic)
		buf_put_cstr(out, type->n_fields ? ", ..." : "...");
	else if (type->kind == TYPE_FUNCTION && !type->n_fields)
		buf_put_cstr(out, "void");
	buf_put_cstr(out, ")");
}

static void print_plain(const struct type *type, uint32_t *steps, struct buf *out)
{
	static const char *const names[] = {[TYPE_BAD] = "(unknown)",
		[TYPE_VOID] = "void",
		[TYPE_INT] = "int",
		[TYPE_FLOAT] = "float",
		[TYPE_USTACK] = "ustack",
		[TYPE_KSTACK] = "kstack",
		[TYPE_USYM] = "usym",
		[TYPE_KSYM] = "ksym",
		[TYPE_PROBE] = "probe",
		[TYPE_FUNC] = "func",
		[TYPE_TIME] = "time",
		[TYPE_INET] = "inet",
		[TYPE_NAME] = "name"};

	if (type->kind == TYPE_STRING && !type->n)
		buf_put_cstr(out, "string");
	else if (type->kind == TYPE_STRING || type->kind == TYPE_BYTES)
		buf_printf(out, "%s[%llu]", type->kind == TYPE_STRING ? "string" : "buf",
			(unsigned long long)type->n);
	else if (type->kind == TYPE_AGGREGATION)
		buf_put_cstr(out, aggregation_name(type->aggregation));
	else if (type->kind == TYPE_TUPLE)
		print_list(type, steps, out);
	else if (type->name)
		buf_put_cstr(out, type->name);
	else if (type->kind == TYPE_STRUCT)
		buf_put_cstr(out, type->is_union ? "union" : "struct");
	else
		buf_put_cstr(out, names[type->kind]);
}

static void print_derived(
	const struct type *type, const char *inner, uint32_t *steps, struct buf *out)
{
	struct buf b = {0};

	if (type->kind == TYPE_POINTER) {
		bool is_inside = type->of->kind == TYPE_ARRAY || type->of->kind == TYPE_FUNCTION;

		buf_printf(&b, is_inside ? "(*%s)" : "*%s", inner);
	} else if (type->kind == TYPE_ARRAY) {
		buf_printf(&b, "%s[%llu]", inner, (unsigned long long)type->n);
	} else {
		buf_put_cstr(&b, inner);
		print_list(type, steps, &b);
	}
	print_declarator(type->of, buf_text(&b), steps, out);
	buf_release(&b);
}

static void print_declarator(
	const struct type *type, const char *inner, uint32_t *steps, struct buf *out)
{
	if (++*steps > PRINT_STEPS_MAX) {
		buf_put_cstr(out, "...");
		return;
	}
	if (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY || type->kind == TYPE_FUNCTION) {
		print_derived(type, inner, steps, out);
		return;
	}
	print_plain(type, steps, out);
	if (*inner)
		buf_printf(out, "%s%s", *inner == '[' ? "" : " ", inner);
}

void type_print_named(const struct type *type, const char *name, struct buf *out)
{
	uint32_t steps = 0;

	print_declarator(type, name, &steps, out);
}

void type_print(const struct type *type, struct buf *out)
{
	type_print_named(type, "", out);
}
