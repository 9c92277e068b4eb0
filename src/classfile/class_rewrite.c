/* SPDX-License-Identifier: MIT */
#include "classfile/rewrite_internal.h"

#define CONSTANTS_MAX 65535u /* their count, which is one more than the last number */
#define OWN_CONSTANTS 15u

enum constant_tag {
	CONSTANT_UTF8 = 1,
	CONSTANT_INTEGER = 3,
	CONSTANT_CLASS = 7,
	CONSTANT_METHODREF = 10,
	CONSTANT_NAME_AND_TYPE = 12
};

uint16_t constants_add_integer(struct new_constants *k, uint32_t value)
{
	if (k->n >= CONSTANTS_MAX)
		return 0;
	buf_put_u8(&k->bytes, CONSTANT_INTEGER);
	put_be32(&k->bytes, value);
	return (uint16_t)k->n++;
}

static uint16_t add_text(struct new_constants *k, const char *text)
{
	buf_put_u8(&k->bytes, CONSTANT_UTF8);
	put_be16(&k->bytes, (uint32_t)strlen(text));
	buf_put_cstr(&k->bytes, text);
	return (uint16_t)k->n++;
}

uint16_t constants_add_class(struct new_constants *k, struct span name)
{
	if (k->n + 2 > CONSTANTS_MAX)
		return 0;
	buf_put_u8(&k->bytes, CONSTANT_UTF8);
	put_be16(&k->bytes, (uint32_t)name.n);
	buf_put(&k->bytes, name.p, name.n);
	buf_put_u8(&k->bytes, CONSTANT_CLASS);
	put_be16(&k->bytes, k->n);
	k->n += 2;
	return (uint16_t)(k->n - 1);
}

static uint16_t add_pair(struct new_constants *k, enum constant_tag tag, uint16_t a, uint16_t b)
{
	buf_put_u8(&k->bytes, (uint8_t)tag);
	put_be16(&k->bytes, a);
	if (tag != CONSTANT_CLASS)
		put_be16(&k->bytes, b);
	return (uint16_t)k->n++;
}

static void add_calls(struct new_constants *k, const struct class_calls *calls)
{
	uint16_t owner = add_pair(k, CONSTANT_CLASS, add_text(k, calls->class_name), 0);
	uint16_t type = add_text(k, "(I)V");
	uint16_t enter = add_pair(k, CONSTANT_NAME_AND_TYPE, add_text(k, calls->enter), type);
	uint16_t leave =
		calls->done ? add_pair(k, CONSTANT_NAME_AND_TYPE, add_text(k, calls->done),
				      add_text(k, "(IJ)V"))
			    : add_pair(k, CONSTANT_NAME_AND_TYPE, add_text(k, calls->leave), type);

	k->enter = add_pair(k, CONSTANT_METHODREF, owner, enter);
	k->leave = add_pair(k, CONSTANT_METHODREF, owner, leave);
	k->throwable = add_pair(k, CONSTANT_CLASS, add_text(k, "java/lang/Throwable"), 0);
	k->stack_map = add_text(k, "StackMapTable");
	k->counts = calls->done != NULL;
}

static void refuse_all(const struct class_file *c, struct class_wish *wishes, const char *reason)
{
	for (size_t i = 0; i < c->methods.n; i++)
		if (wishes[i].id && !wishes[i].reason)
			wishes[i].reason = reason;
}

static const char *refusal_of(const struct class_method *m)
{
	if (m->code_at)
		return NULL;
	return m->flags & CLASS_FLAG_NATIVE ? "it is native: it has no bytecode"
					    : "it is abstract: it has no bytecode";
}

/* The method as it is, or with a new Code attribute; whether it was changed. */
static bool put_method(const struct class_file *c, const struct class_method *m,
	struct new_constants *k, struct class_wish *wish, struct buf *to)
{
	struct method_move v = {.c = c, .m = m, .k = k, .id = wish->id};
	struct cursor in = cursor_of(span_sub(c->bytes, m->code_at, m->end - m->code_at));
	struct buf code = {0};
	uint32_t code_end;
	bool is_done = wish->id && !wish->reason && method_rewrite(&v, &code);

	if (!is_done) {
		if (wish->id && !wish->reason)
			wish->reason = v.reason;
		buf_put(to, c->bytes.p + m->at, m->end - m->at);
	} else {
		cursor_skip(&in, 2);
		code_end = m->code_at + 6 + cursor_be32(&in);
		buf_put(to, c->bytes.p + m->at, m->code_at - m->at);
		buf_put(to, code.p, code.n);
		buf_put(to, c->bytes.p + code_end, m->end - code_end);
	}
	buf_release(&code);
	return is_done;
}

static size_t put_methods(const struct class_file *c, struct new_constants *k,
	struct class_wish *wishes, struct buf *to)
{
	size_t n_done = 0, end = c->methods_at + 2;

	buf_put(to, c->bytes.p + c->methods_at, 2);
	for (size_t i = 0; i < c->methods.n; i++) {
		n_done += put_method(c, &c->methods.v[i], k, &wishes[i], to);
		end = c->methods.v[i].end;
	}
	buf_put(to, c->bytes.p + end, c->bytes.n - end);
	return n_done;
}

size_t class_rewrite(const struct class_file *c, const struct class_calls *calls,
	struct class_wish *wishes, struct buf *to)
{
	struct new_constants k = {.n = (uint32_t)c->constants.n};
	struct buf rest = {0};
	size_t n_done = 0, n_wished = 0;

	for (size_t i = 0; i < c->methods.n; i++) {
		if (wishes[i].id && !wishes[i].reason)
			wishes[i].reason = refusal_of(&c->methods.v[i]);
		n_wished += wishes[i].id && !wishes[i].reason;
	}
	if (!n_wished)
		return 0;
	if (k.n + OWN_CONSTANTS > CONSTANTS_MAX) {
		refuse_all(c, wishes, "its class has no room for more constants");
		return 0;
	}
	add_calls(&k, calls);
	n_done = put_methods(c, &k, wishes, &rest);
	if (n_done) {
		buf_put(to, c->bytes.p, 8);
		put_be16(to, k.n);
		buf_put(to, c->bytes.p + 10, c->constants_end - 10);
		buf_put(to, k.bytes.p, k.bytes.n);
		buf_put(to, c->bytes.p + c->constants_end, c->methods_at - c->constants_end);
		buf_put(to, rest.p, rest.n);
	}
	buf_release(&k.bytes);
	buf_release(&rest);
	return n_done;
}
