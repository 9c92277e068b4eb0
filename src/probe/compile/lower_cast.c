/* SPDX-License-Identifier: MIT */
/* Casts that are no mere change of an integer's size: arrays, texts and buffers. */
#include "probe/compile/lower.h"

ir_value lower_cast_value(struct lower *l, const struct expr *e)
{
	const struct type *from = type_of(l, e->a), *to = type_of(l, e);
	struct object o;

	if (type_is_text(from) && to->is_bool) {
		o = (struct object){.kind = OBJECT_MEMORY, .mem = lower_text(l, e->a)};
		return ir_set_imm(&l->ir, BPF_JNE, lower_read(l, &o, 1, false), 0);
	}
	if (from->kind == TYPE_ARRAY) {
		o = lower_object(l, e->a);
		return lower_convert(
			l, lower_read(l, &o, (uint32_t)to->size, to->is_signed), to, to);
	}
	return lower_convert(l, lower_value(l, e->a), from, to);
}

/* An array: the bytes of an integer in their order, or of a text or buffer, and zeros behind them. */
struct object lower_cast_object(struct lower *l, const struct expr *e)
{
	const struct type *from = type_of(l, e->a), *to = type_of(l, e);
	uint32_t has = lower_padded_size(from), room = lower_padded_size(to);
	struct object o = {.kind = OBJECT_MEMORY};

	if (from->kind == TYPE_ARRAY)
		return lower_object(l, e->a);
	o.mem = ir_new_memory(&l->ir, 8 + (has > room ? has : room));
	if (from->kind == TYPE_INT) {
		ir_store(&l->ir, o.mem, 0, 8, lower_value(l, e->a));
		return o;
	}
	ir_zero(&l->ir, o.mem, 0, 8 + (has > room ? has : room));
	if (from->kind == TYPE_BYTES) {
		lower_store(l, e->a, (struct destination){from, o.mem, 0});
		o.offset = 8; /* behind the length */
	} else {
		lower_into(l, e->a, o.mem, 0, (uint32_t)to->size);
	}
	return o;
}

/* (string[N])x: as many bytes of a text, or of one at an address. */
void lower_cast_text(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	const struct type *from = type_of(l, e->a);
	uint32_t limit = (uint32_t)type_of(l, e)->n, bytes = limit < n ? limit : n;
	enum space space = from->kind == TYPE_POINTER ? from->space : SPACE_USER;

	if (type_is_text(from))
		lower_into(l, e->a, mem, at, bytes);
	else
		lower_read_text(l, space, lower_value(l, e->a), bytes, mem, at);
	ir_zero(&l->ir, mem, (int32_t)(at + bytes), n - bytes);
}
