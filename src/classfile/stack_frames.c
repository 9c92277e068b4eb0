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
enum item_tag {
	ITEM_TOP,
	ITEM_INTEGER,
	ITEM_FLOAT,
	ITEM_DOUBLE,
	ITEM_LONG,
	ITEM_UNINITIALIZED_THIS = 6,
	ITEM_OBJECT,
	ITEM_UNINITIALIZED
};

/* A type; of an object the class, of an uninitialised one the (new) address. */
struct frame_item {
	uint8_t tag;
	uint16_t number;
};

struct frame_walk {
	struct method_move *v;
	struct cursor in;
	struct buf *to; /* NULL: only looked at */
	uint32_t at;	/* old address of the frame before; UINT32_MAX = none yet */
	uint32_t new_at;
	bool is_copied; /* frames stay what they were; else each becomes a full one, with a counter */
	VEC(struct frame_item) locals, stack;
};

static bool damaged(struct method_move *v)
{
	v->reason = "its StackMapTable is damaged";
	return false;
}

static void put_item(struct buf *to, struct frame_item item)
{
	buf_put_u8(to, item.tag);
	if (item.tag >= ITEM_OBJECT)
		put_be16(to, item.number);
}

/* One type of a frame. */
static bool move_item(struct frame_walk *w, struct frame_item *item)
{
	uint8_t tag = cursor_u8(&w->in);
	uint32_t n = 0;

	if (tag > ITEM_UNINITIALIZED || w->in.failed)
		return damaged(w->v);
	if (tag >= ITEM_OBJECT)
		n = cursor_be16(&w->in);
	if (w->in.failed ||
		(tag == ITEM_UNINITIALIZED && w->to && !method_moved_itself(w->v, n, &n)))
		return damaged(w->v);
	*item = (struct frame_item){tag, (uint16_t)n};
	if (w->to && w->is_copied)
		put_item(w->to, *item);
	return true;
}

static bool move_locals(struct frame_walk *w, uint32_t n)
{
	struct frame_item item;

	for (; n; n--) {
		if (!move_item(w, &item))
			return false;
		vec_push(&w->locals, item);
	}
	return true;
}

static bool move_stack(struct frame_walk *w, uint32_t n)
{
	struct frame_item item;

	for (; n; n--) {
		if (!move_item(w, &item))
			return false;
		vec_push(&w->stack, item);
	}
	return true;
}

static bool move_full(struct frame_walk *w)
{
	uint32_t n = cursor_be16(&w->in);

	if (w->to && w->is_copied)
		put_be16(w->to, n);
	w->locals.n = 0;
	if (!move_locals(w, n))
		return false;
	n = cursor_be16(&w->in);
	if (w->to && w->is_copied)
		put_be16(w->to, n);
	return move_stack(w, n);
}

/* The variables, the counter behind the last of them, and the stack. */
static bool put_full(struct frame_walk *w, uint32_t delta)
{
	uint32_t n_slots = 0, n_tops;

	for (size_t i = 0; i < w->locals.n; i++)
		n_slots += w->locals.v[i].tag == ITEM_DOUBLE || w->locals.v[i].tag == ITEM_LONG ? 2
												: 1;
	if (n_slots > w->v->max_locals)
		return damaged(w->v);
	n_tops = w->v->max_locals - n_slots;
	buf_put_u8(w->to, FRAME_FULL);
	put_be16(w->to, delta);
	put_be16(w->to, (uint32_t)w->locals.n + n_tops + 1);
	for (size_t i = 0; i < w->locals.n; i++)
		put_item(w->to, w->locals.v[i]);
	buf_put_zeros(w->to, n_tops); /* ITEM_TOP */
	buf_put_u8(w->to, ITEM_LONG);
	put_be16(w->to, (uint32_t)w->stack.n);
	for (size_t i = 0; i < w->stack.n; i++)
		put_item(w->to, w->stack.v[i]);
	return true;
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

/* What the frame has, behind its type and distance. */
static bool move_content(struct frame_walk *w, uint8_t type)
{
	w->stack.n = 0;
	if (type == FRAME_FULL)
		return move_full(w);
	if (type > FRAME_SAME_FAR)
		return move_locals(w, (uint32_t)type - FRAME_SAME_FAR);
	if (type >= FRAME_CHOP_FIRST && type < FRAME_SAME_FAR) {
		if (w->locals.n < (size_t)(FRAME_SAME_FAR - type))
			return damaged(w->v);
		w->locals.n -= (size_t)(FRAME_SAME_FAR - type);
		return true;
	}
	return type <= FRAME_SAME_LAST || type == FRAME_SAME_FAR || move_stack(w, 1);
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
	if (w->in.failed || w->at >= w->v->code.n)
		return damaged(w->v);
	if (!w->to)
		return move_content(w, type);
	if (!method_moved(w->v, w->at, &new_at))
		return damaged(w->v);
	delta = is_first ? new_at : new_at - w->new_at - 1;
	w->new_at = new_at;
	if (w->is_copied)
		put_head(w, type, delta);
	return move_content(w, type) && (w->is_copied || put_full(w, delta));
}

static void add_local(struct frame_walk *w, uint8_t tag, uint16_t number)
{
	vec_push(&w->locals, ((struct frame_item){tag, number}));
}

/* A parameter's class: `[I`, or what is between L and ; of a descriptor. 0 where nobody asks. */
static bool add_object(struct frame_walk *w, const char *from, const char *end)
{
	bool is_array = *from == '[';
	struct span name = {
		(const uint8_t *)from + !is_array, (size_t)(end - from) - (is_array ? 0 : 2)};
	bool is_wanted = w->to && !w->is_copied;
	uint16_t class = is_wanted ? constants_add_class(w->v->k, name) : 0;

	add_local(w, ITEM_OBJECT, class);
	if (!is_wanted || class)
		return true;
	w->v->reason = "its class has no room for more constants";
	return false;
}

/* The frame that a method begins with: its object, and one for each parameter. */
static bool begin(struct frame_walk *w)
{
	const char *s = w->v->m->descriptor + 1;
	bool is_raw = w->v->c->super && strcmp(w->v->m->name, "<init>") == 0;

	if (!(w->v->m->flags & 8)) /* static */
		add_local(w, is_raw ? ITEM_UNINITIALIZED_THIS : ITEM_OBJECT, w->v->c->self);
	for (const char *from = s; *s && *s != ')'; from = ++s) {
		while (*s == '[')
			s++;
		if (*s == 'L')
			s = strchr(s, ';');
		if (!s || !*s)
			break;
		if (*from == '[' || *from == 'L') {
			if (!add_object(w, from, s + 1))
				return false;
			continue;
		}
		add_local(w,
			*s == 'J'   ? ITEM_LONG
			: *s == 'D' ? ITEM_DOUBLE
			: *s == 'F' ? ITEM_FLOAT
				    : ITEM_INTEGER,
			0);
	}
	return true;
}

/* Of the variables only the counter is known there. */
static bool put_handler(struct frame_walk *w)
{
	bool is_first = w->at == UINT32_MAX;
	uint32_t delta = w->v->handler - (is_first ? 0 : w->new_at + 1);

	w->locals.n = w->stack.n = 0;
	vec_push(&w->stack, ((struct frame_item){ITEM_OBJECT, w->v->k->throwable}));
	if (!w->is_copied)
		return put_full(w, delta);
	buf_put_u8(w->to, FRAME_FULL);
	put_be16(w->to, delta);
	put_be16(w->to, 0);
	put_be16(w->to, 1);
	put_item(w->to, w->stack.v[0]);
	return true;
}

static void release(struct frame_walk *w)
{
	vec_release(&w->locals);
	vec_release(&w->stack);
}

bool stack_frames_move(struct method_move *v, struct span table, struct buf *to)
{
	struct frame_walk w = {
		.v = v, .in = cursor_of(table), .to = to, .at = UINT32_MAX, .is_copied = !v->group};
	uint32_t n = table.n ? cursor_be16(&w.in) : 0;
	bool is_good;

	if (n == UINT16_MAX) {
		v->reason = "it has too many frames";
		return false;
	}
	put_be16(to, n + 1);
	is_good = begin(&w);
	for (; is_good && n; n--)
		is_good = move_frame(&w);
	is_good = is_good && put_handler(&w);
	release(&w);
	return is_good;
}

static bool has_raw(const struct frame_walk *w)
{
	bool has = false;

	for (size_t i = 0; i < w->locals.n; i++)
		has |= w->locals.v[i].tag == ITEM_UNINITIALIZED_THIS;
	for (size_t i = 0; i < w->stack.n; i++)
		has |= w->stack.v[i].tag == ITEM_UNINITIALIZED_THIS;
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
	release(&w);
	return is_good;
}
