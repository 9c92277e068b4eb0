/* SPDX-License-Identifier: MIT */
/*
 * Stacks in their forms (enum stack_form). Those without names stand at the beginning of a line, as
 * bpftrace has them, so that tools that resolve them later can take each line as it is. A stack that is
 * not complete ends with the reason in brackets.
 */
#include <inttypes.h>

#include "probe/print/print_internal.h"

struct stack_print {
	struct printer *p;
	const struct shape *shape;
	struct span value;
	enum stack_form form;
	unsigned indent;
	struct buf *out;
};

static void put_place(const struct printer_place *place, struct buf *out)
{
	if (place->file)
		buf_printf(out, "@%s:%u", place->file, place->line);
}

/* Functions that were inlined where the address is, innermost first; gives the place in the function
 * that has the address. */
static struct printer_place put_inlined(
	const struct stack_print *t, uint64_t address, uint64_t asked)
{
	struct printer_place places[PRINTER_PLACES_MAX];
	const struct printer_names *names = &t->p->names;
	size_t n = 0;

	if (t->shape->kind == SHAPE_USTACK && !(t->shape->n & STACK_FORM_NO_LINES) &&
		names->user_places)
		n = names->user_places(names->ctx, print_half_word(t->value, 8),
			print_half_word(t->value, 12), asked, places, PRINTER_PLACES_MAX);
	for (size_t i = 0; i + 1 < n; i++) {
		const char *name = places[i].inlined ? places[i].inlined : "?";

		if (t->form == STACK_FORM_PERF) {
			buf_printf(t->out, "%*s%" PRIx64 " %s (inlined)\n", (int)t->indent, "",
				address, name);
			continue;
		}
		buf_printf(t->out, "%*s[inlined] %s", (int)t->indent, "", name);
		put_place(&places[i], t->out);
		buf_put_u8(t->out, '\n');
	}
	return n ? places[n - 1] : (struct printer_place){0};
}

static void put_named(const struct stack_print *t, uint64_t address, uint64_t back)
{
	struct printer_symbol symbol = {0};
	struct printer_place place = put_inlined(t, address, address - back);
	bool is_known =
		print_find_symbol(t->p, t->shape, t->value, address - back, &symbol) && symbol.name;

	/* What a signal handler returns to was never called, and may begin its function. */
	if (!is_known && back) {
		back = 0;
		is_known = print_find_symbol(t->p, t->shape, t->value, address, &symbol) &&
			   symbol.name;
	}

	buf_printf(t->out, "%*s", (int)t->indent, "");
	if (t->form == STACK_FORM_PERF)
		buf_printf(t->out, "%" PRIx64 " ", address);
	if (is_known)
		buf_printf(t->out, "%s+%" PRIu64, symbol.name, symbol.offset + back);
	else
		buf_printf(
			t->out, t->form == STACK_FORM_PERF ? "[unknown]" : "0x%" PRIx64, address);
	if (t->form == STACK_FORM_NAMES)
		put_place(&place, t->out);
	else if (symbol.module && t->shape->kind == SHAPE_USTACK)
		buf_printf(t->out, " (%s)", symbol.module);
}

static void put_file_place(const struct stack_print *t, uint64_t address)
{
	const struct printer_names *names = &t->p->names;
	struct printer_file_place place;

	if (!names->user_file || !names->user_file(names->ctx, print_half_word(t->value, 8),
					 print_half_word(t->value, 12), address, &place)) {
		buf_printf(t->out, "%" PRIx64, address);
		return;
	}
	buf_put_hex(t->out, place.build_id);
	buf_printf(t->out, " 0x%" PRIx64, place.offset);
}

void print_stack(struct printer *p, const struct shape *s, struct span value, unsigned indent,
	struct buf *out)
{
	struct stack_print t = {
		p, s, value, (enum stack_form)(s->n & STACK_FORM_MASK), indent, out};
	uint64_t addresses[STREAM_STACK_FRAMES], id = print_word(value, 0);
	const char *reason = NULL;
	size_t n = 0;

	if (id && p->names.stack)
		n = p->names.stack(p->names.ctx, id, addresses, STREAM_STACK_FRAMES, &reason);
	buf_put_u8(out, '\n');
	for (size_t i = 0; i < n && i < STREAM_STACK_FRAMES; i++) {
		if (t.form == STACK_FORM_RAW)
			buf_printf(out, "%" PRIx64, addresses[i]);
		else if (t.form == STACK_FORM_BUILD_ID)
			put_file_place(&t, addresses[i]);
		else /* All but the innermost are where calls return to: the call is before it. */
			put_named(&t, addresses[i], i && addresses[i] ? 1 : 0);
		buf_put_u8(out, '\n');
	}
	if (reason)
		buf_printf(out, "%*s[%s]\n", (int)indent, "", reason);
}
