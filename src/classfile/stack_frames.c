/* SPDX-License-Identifier: MIT */
/*
 * StackMapTable (JVMS 4.7.4). A frame's address counts from the frame before, and a type may be the address of
 * the `new` that made an object: nothing else in a frame changes when code moves. What a frame means also
 * depends on those before it, which is needed for one question only: which of them still have the object of
 * a constructor that has not called its superclass's.
 */
#include "classfile/rewrite_internal.h"

enum frame_type {
	FRAME_SAME_LAST = 63,
	FRAME_ONE_ITEM = 64,
	FRAME_ONE_ITEM_LAST = 127,
	FRAME_ONE_ITEM_FAR = 247,
	FRAME_CHOP_FIRST = 248,
	FRAME_SAME_FAR = 251,
	FRAME_APPEND_LAST = 254,
	FRAME_FULL = 255
};
enum item_tag { ITEM_UNINITIALIZED_THIS = 6, ITEM_OBJECT = 7, ITEM_UNINITIALIZED = 8 };

struct frame_walk {
	struct method_move *v;
	struct cursor in;
	struct buf *to; /* NULL: only looked at */
	uint32_t at;	/* old address of the frame before; UINT32_MAX = none yet */
	uint32_t new_at;
	VEC(bool) raw_locals; /* of each: it is the constructor's object */
	bool has_raw_stack;
};

static bool damaged(struct method_move *v)
{
	v->reason = "its StackMapTable is damaged";
	return false;
}

/* One type of a frame; *is_raw as in raw_locals. */
static bool move_item(struct frame_walk *w, bool *is_raw)
{
	uint8_t tag = cursor_u8(&w->in);
	uint32_t n = 0;

	*is_raw = tag == ITEM_UNINITIALIZED_THIS;
	if (tag > ITEM_UNINITIALIZED || w->in.failed)
		return damaged(w->v);
	if (w->to)
		buf_put_u8(w->to, tag);
	if (tag < ITEM_OBJECT)
		return true;
	n = cursor_be16(&w->in);
	if (w->in.failed || (tag == ITEM_UNINITIALIZED && w->to && !method_moved(w->v, n, &n)))
		return damaged(w->v);
	if (w->to)
		put_be16(w->to, n);
	return true;
}

static bool move_locals(struct frame_walk *w, uint32_t n)
{
	bool is_raw;

	for (; n; n--) {
		if (!move_item(w, &is_raw))
			return false;
		vec_push(&w->raw_locals, is_raw);
	}
	return true;
}

static bool move_stack(struct frame_walk *w, uint32_t n)
{
	bool is_raw;

	for (; n; n--) {
		if (!move_item(w, &is_raw))
			return false;
		w->has_raw_stack |= is_raw;
	}
	return true;
}

static bool move_full(struct frame_walk *w)
{
	uint32_t n = cursor_be16(&w->in);

	if (w->to)
		put_be16(w->to, n);
	w->raw_locals.n = 0;
	if (!move_locals(w, n))
		return false;
	n = cursor_be16(&w->in);
	if (w->to)
		put_be16(w->to, n);
	return move_stack(w, n);
}

/* The frame's type and how far it is from the one before, which may need the longer form now. */
static void put_head(struct frame_walk *w, uint8_t type, uint32_t delta)
{
	bool is_same = type <= FRAME_SAME_LAST || type == FRAME_SAME_FAR;
	bool is_one = type >= FRAME_ONE_ITEM && type <= FRAME_ONE_ITEM_FAR;

	if ((is_same || is_one) && delta <= FRAME_SAME_LAST) {
		buf_put_u8(w->to, (uint8_t)(is_one ? FRAME_ONE_ITEM + delta : delta));
		return;
	}
	buf_put_u8(w->to, is_same ? FRAME_SAME_FAR : is_one ? FRAME_ONE_ITEM_FAR : type);
	put_be16(w->to, delta);
}

static bool move_frame(struct frame_walk *w)
{
	uint8_t type = cursor_u8(&w->in);
	bool is_first = w->at == UINT32_MAX;
	uint32_t delta = type, new_at = 0;

	if (type > FRAME_ONE_ITEM_LAST && type < FRAME_ONE_ITEM_FAR)
		return damaged(w->v);
	if (type >= FRAME_ONE_ITEM && type <= FRAME_ONE_ITEM_LAST)
		delta = type - FRAME_ONE_ITEM;
	else if (type > FRAME_ONE_ITEM_LAST)
		delta = cursor_be16(&w->in);
	w->at = is_first ? delta : w->at + delta + 1;
	w->has_raw_stack = false;
	if (w->in.failed || w->at >= w->v->code.n)
		return damaged(w->v);
	if (w->to) {
		if (!method_moved(w->v, w->at, &new_at))
			return damaged(w->v);
		put_head(w, type, is_first ? new_at : new_at - w->new_at - 1);
		w->new_at = new_at;
	}
	if (type == FRAME_FULL)
		return move_full(w);
	if (type > FRAME_SAME_FAR)
		return move_locals(w, (uint32_t)type - FRAME_SAME_FAR);
	if (type >= FRAME_CHOP_FIRST && type < FRAME_SAME_FAR) {
		if (w->raw_locals.n < (size_t)(FRAME_SAME_FAR - type))
			return damaged(w->v);
		w->raw_locals.n -= (size_t)(FRAME_SAME_FAR - type);
		return true;
	}
	return type <= FRAME_SAME_LAST || type == FRAME_SAME_FAR || move_stack(w, 1);
}

/* The frame that a method begins with: its object, and one for each parameter. */
static void begin(struct frame_walk *w)
{
	const char *s = w->v->m->descriptor + 1;

	if (!(w->v->m->flags & 8)) /* static */
		vec_push(&w->raw_locals, strcmp(w->v->m->name, "<init>") == 0);
	for (; *s && *s != ')'; s++) {
		while (*s == '[')
			s++;
		if (*s == 'L')
			s = strchr(s, ';');
		if (!s || !*s)
			break;
		vec_push(&w->raw_locals, false);
	}
}

static void put_handler(struct frame_walk *w)
{
	bool is_first = w->at == UINT32_MAX;

	buf_put_u8(w->to, FRAME_FULL);
	put_be16(w->to, w->v->handler - (is_first ? 0 : w->new_at + 1));
	put_be16(w->to, 0);
	put_be16(w->to, 1);
	buf_put_u8(w->to, ITEM_OBJECT);
	put_be16(w->to, w->v->k->throwable);
}

bool stack_frames_move(struct method_move *v, struct span table, struct buf *to)
{
	struct frame_walk w = {.v = v, .in = cursor_of(table), .to = to, .at = UINT32_MAX};
	uint32_t n = table.n ? cursor_be16(&w.in) : 0;
	bool is_good = true;

	if (n == UINT16_MAX) {
		v->reason = "it has too many frames";
		return false;
	}
	put_be16(to, n + 1);
	begin(&w);
	for (; is_good && n; n--)
		is_good = move_frame(&w);
	if (is_good)
		put_handler(&w);
	vec_release(&w.raw_locals);
	return is_good;
}

static bool has_raw(const struct frame_walk *w)
{
	bool has = w->has_raw_stack;

	for (size_t i = 0; i < w->raw_locals.n; i++)
		has |= w->raw_locals.v[i];
	return has;
}

bool stack_frames_last_raw(struct method_move *v, struct span table, uint32_t *last)
{
	struct frame_walk w = {.v = v, .in = cursor_of(table), .at = UINT32_MAX};
	bool is_good = true;

	*last = 0;
	begin(&w);
	for (uint32_t n = table.n ? cursor_be16(&w.in) : 0; is_good && n; n--) {
		is_good = move_frame(&w);
		if (is_good && has_raw(&w))
			*last = w.at + 1;
	}
	vec_release(&w.raw_locals);
	return is_good;
}
