/* SPDX-License-Identifier: MIT */
/*
 * One method's code. In the new code each old instruction is as it was, but for three things: in front of a
 * return stand the calls, distances are others, and a goto that no longer reaches is a wide one.
 *
 *	new 0		sipush id; invokestatic enter
 *	to[0]		the old code; to[r] of a return r: sipush id; invokestatic leave; return
 *	to[end]		sipush id; invokestatic leave; athrow		the handler of all that is covered
 *
 * With counted bytecodes the counter becomes 0 at the start, grows in front of each group (bytecode_count.c), and is the
 * last argument of leave, which is done then.
 *
 * 1. Who branched to a return branches to the call in front of it; nobody branches to the call of enter.
 * 2. The calls of leave are not covered by the handler: an error in one does not lead to another.
 * 3. Entries of the exception table keep their order, and the handler's come last.
 */
#include "classfile/rewrite_internal.h"

#include <stdlib.h>

#include "classfile/bytecode.h"

#define CALL_BYTES   6u /* sipush or ldc_w, invokestatic */
#define CODE_MAX     65535u
#define COMPILED_MAX 8000u /* HotSpot interprets longer ones always (DontCompileHugeMethods) */
#define TABLE_MAX    65535u

/* The attribute's parts, as they were. */
struct old_code {
	uint16_t max_stack, max_locals;
	struct span exceptions;
	struct cursor attributes;
	uint32_t n_attributes;
	struct span frames; /* what the StackMapTable has */
};

static bool refuse(struct method_move *v, const char *reason)
{
	v->reason = reason;
	return false;
}

static bool damaged(struct method_move *v)
{
	return refuse(v, "its code is damaged");
}

bool method_moved(struct method_move *v, uint32_t at, uint32_t *to)
{
	if (at > v->code.n || v->to[at] == NOT_AN_INSTRUCTION)
		return damaged(v);
	*to = v->to[at];
	return true;
}

bool method_moved_itself(struct method_move *v, uint32_t at, uint32_t *to)
{
	if (at >= v->code.n || !method_moved(v, at, to))
		return damaged(v);
	*to += bytecodes_count_bytes(v, at);
	return true;
}

/* Where an instruction is, which is one. */
static uint32_t place_of(const struct method_move *v, uint32_t at)
{
	return v->to[at] + bytecodes_count_bytes(v, at);
}

static uint32_t leave_bytes(const struct method_move *v)
{
	return CALL_BYTES + bytecodes_load_bytes(v);
}

static bool read_old(struct method_move *v, struct old_code *old)
{
	const struct span all = v->c->bytes;
	struct cursor in = cursor_of(span_sub(all, v->m->code_at, all.n - v->m->code_at)), at;

	cursor_skip(&in, 2);
	in = cursor_of(cursor_bytes(&in, cursor_be32(&in)));
	old->max_stack = cursor_be16(&in);
	old->max_locals = cursor_be16(&in);
	v->code = cursor_bytes(&in, cursor_be32(&in));
	old->exceptions = cursor_bytes(&in, 8 * (uint64_t)cursor_be16(&in));
	old->n_attributes = cursor_be16(&in);
	old->attributes = in;
	at = in;
	for (uint32_t n = old->n_attributes; n && !at.failed; n--) {
		uint16_t name = cursor_be16(&at);
		struct span content = cursor_bytes(&at, cursor_be32(&at));

		if (class_file_text_is(v->c, name, "StackMapTable"))
			old->frames = content;
	}
	return !in.failed && !at.failed && v->code.n && v->code.n <= CODE_MAX ? true : damaged(v);
}

/* --- where everything goes ---------------------------------------------------------------- */

static int32_t be32_at(const uint8_t *p)
{
	return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

static int32_t be16_at(const uint8_t *p)
{
	return (int16_t)(p[0] << 8 | p[1]);
}

/* A class's initialiser runs once. */
static bool may_be_compiled(const struct method_move *v)
{
	return v->code.n <= COMPILED_MAX && strcmp(v->m->name, "<clinit>") != 0;
}

static bool lay_out(struct method_move *v)
{
	uint32_t pos = CALL_BYTES + bytecodes_begin_bytes(v);

	for (uint32_t at = 0, n; at < v->code.n; at += n) {
		uint8_t op = v->code.p[at];

		n = bytecode_length(v->code, at);
		if (!n)
			return damaged(v);
		v->to[at] = pos;
		pos = place_of(v, at) + n;
		if (bytecode_is_return(op))
			pos += leave_bytes(v);
		else if (bytecode_is_switch(op))
			pos = pos - bytecode_switch_padding(at) +
			      bytecode_switch_padding(place_of(v, at));
		else if (v->is_wide[at])
			pos += 2;
	}
	v->to[v->code.n] = v->handler = pos;
	if (pos + leave_bytes(v) + 1 > CODE_MAX)
		return refuse(v, "it would become longer than 64 KiB");
	if (pos + leave_bytes(v) + 1 > COMPILED_MAX && may_be_compiled(v))
		return refuse(v,
			"it would become longer than 8000 bytes, and the JVM does not compile such methods");
	return true;
}

/* The distance of a branch as it is now. */
static bool branch_distance(struct method_move *v, uint32_t at, int32_t old, int32_t *now)
{
	int64_t target = (int64_t)at + old;
	uint32_t to;

	if (target < 0 || target >= (int64_t)v->code.n || !method_moved(v, (uint32_t)target, &to))
		return damaged(v);
	*now = (int32_t)to - (int32_t)place_of(v, at);
	return true;
}

/* *has_grown: once more. */
static bool widen_branches(struct method_move *v, bool *has_grown)
{
	*has_grown = false;
	for (uint32_t at = 0; at < v->code.n; at += bytecode_length(v->code, at)) {
		uint8_t op = v->code.p[at];
		int32_t now;

		if (!bytecode_is_branch(op) || v->is_wide[at])
			continue;
		if (!branch_distance(v, at, be16_at(v->code.p + at + 1), &now))
			return false;
		if (now == (int16_t)now)
			continue;
		if (op != BYTECODE_GOTO && op != BYTECODE_JSR)
			return refuse(v, "a branch would become longer than 32 KiB");
		v->is_wide[at] = 1;
		*has_grown = true;
	}
	return true;
}

/* --- constructors -------------------------------------------------------------------------- */

static bool is_constructor_call(const struct method_move *v, uint32_t at)
{
	uint16_t member = (uint16_t)be16_at(v->code.p + at + 1);
	uint16_t name = class_file_part(v->c, class_file_part(v->c, member, 1), 0);

	return class_file_text_is(v->c, name, "<init>");
}

/*
 * Behind the call of the superclass's constructor, or of another of this class: the <init> that no `new` in
 * front of it has made an object for. Between them there may be branches, but none back; and what is said to
 * be raw further down shows that it was another one.
 */
static bool find_initialised(struct method_move *v, const struct old_code *old)
{
	uint32_t last_raw, n_new = 0, n;

	v->covered_from = 0;
	if (strcmp(v->m->name, "<init>") != 0 || !v->c->super)
		return true;
	if (!stack_frames_last_raw(v, old->frames, &last_raw))
		return false;
	for (uint32_t at = 0; at < v->code.n; at += n) {
		uint8_t op = v->code.p[at];

		n = bytecode_length(v->code, at);
		if (bytecode_is_branch(op) && be16_at(v->code.p + at + 1) < 0)
			break;
		if (op == BYTECODE_NEW) {
			n_new++;
		} else if (op == BYTECODE_INVOKESPECIAL && is_constructor_call(v, at)) {
			if (!n_new && at + n >= last_raw) {
				v->covered_from = at + n;
				return true;
			}
			n_new -= n_new > 0;
		}
	}
	return refuse(v, "it is a constructor in which the call of the other one cannot be found");
}

/* --- writing ------------------------------------------------------------------------------- */

static void put_id(const struct method_move *v, struct buf *to)
{
	buf_put_u8(to, v->push_constant ? BYTECODE_LDC_W : BYTECODE_SIPUSH);
	put_be16(to, v->push_constant ? v->push_constant : v->id);
}

static void put_call(struct buf *to, uint16_t method)
{
	buf_put_u8(to, BYTECODE_INVOKESTATIC);
	put_be16(to, method);
}

static void put_leave(const struct method_move *v, struct buf *to)
{
	put_id(v, to);
	bytecodes_put_load(v, to);
	put_call(to, v->k->leave);
}

static bool put_branch(struct method_move *v, uint32_t at, struct buf *to)
{
	uint8_t op = v->code.p[at];
	bool was_wide = bytecode_is_wide_branch(op), is_wide = was_wide || v->is_wide[at];
	int32_t old = was_wide ? be32_at(v->code.p + at + 1) : be16_at(v->code.p + at + 1), now;

	if (!branch_distance(v, at, old, &now))
		return false;
	if (is_wide && !was_wide)
		op = op == BYTECODE_GOTO ? BYTECODE_GOTO_W : BYTECODE_JSR_W;
	buf_put_u8(to, op);
	if (is_wide)
		put_be32(to, (uint32_t)now);
	else
		put_be16(to, (uint32_t)now);
	return true;
}

static bool put_switch(struct method_move *v, uint32_t at, uint32_t n, struct buf *to)
{
	bool is_table = v->code.p[at] == BYTECODE_TABLESWITCH;
	uint32_t from = at + 1 + bytecode_switch_padding(at), head = is_table ? 8 : 4;
	int32_t now;

	buf_put_u8(to, v->code.p[at]);
	buf_put_zeros(to, bytecode_switch_padding(place_of(v, at)));
	if (!branch_distance(v, at, be32_at(v->code.p + from), &now))
		return false;
	put_be32(to, (uint32_t)now);
	buf_put(to, v->code.p + from + 4, head);
	for (uint32_t i = from + 4 + head; i < at + n; i += 4) {
		if (!is_table) {
			buf_put(to, v->code.p + i, 4);
			i += 4;
		}
		if (!branch_distance(v, at, be32_at(v->code.p + i), &now))
			return false;
		put_be32(to, (uint32_t)now);
	}
	return true;
}

static bool put_code(struct method_move *v, struct buf *to)
{
	bytecodes_put_begin(v, to);
	put_id(v, to);
	put_call(to, v->k->enter);
	for (uint32_t at = 0, n; at < v->code.n; at += n) {
		uint8_t op = v->code.p[at];

		n = bytecode_length(v->code, at);
		bytecodes_put_count(v, at, to);
		if (bytecode_is_switch(op)) {
			if (!put_switch(v, at, n, to))
				return false;
			continue;
		}
		if (bytecode_is_branch(op) || bytecode_is_wide_branch(op)) {
			if (!put_branch(v, at, to))
				return false;
			continue;
		}
		if (bytecode_is_return(op))
			put_leave(v, to);
		buf_put(to, v->code.p + at, n);
	}
	put_leave(v, to);
	buf_put_u8(to, BYTECODE_ATHROW);
	return true;
}

static uint32_t put_covered(
	const struct method_move *v, uint32_t from, uint32_t to_end, struct buf *to)
{
	if (from >= to_end)
		return 0;
	put_be16(to, from);
	put_be16(to, to_end);
	put_be16(to, v->handler);
	put_be16(to, 0);
	return 1;
}

static bool put_exceptions(struct method_move *v, const struct old_code *old, struct buf *to)
{
	struct cursor in = cursor_of(old->exceptions);
	size_t count_at = to->n;
	uint32_t n = 0, from = v->to[v->covered_from];

	put_be16(to, 0);
	while (cursor_left(&in)) {
		uint32_t start = cursor_be16(&in), end = cursor_be16(&in),
			 handler = cursor_be16(&in);

		if (!method_moved(v, start, &start) || !method_moved(v, end, &end) ||
			!method_moved(v, handler, &handler))
			return false;
		put_be16(to, start);
		put_be16(to, end);
		put_be16(to, handler);
		put_be16(to, cursor_be16(&in));
		n++;
	}
	for (uint32_t at = v->covered_from; at < v->code.n; at += bytecode_length(v->code, at))
		if (bytecode_is_return(v->code.p[at])) {
			n += put_covered(v, from, v->to[at], to);
			from = place_of(v, at) + leave_bytes(v) + 1;
		}
	n += put_covered(v, from, v->handler, to);
	if (n > TABLE_MAX)
		return refuse(v, "it has too many returns");
	to->p[count_at] = (uint8_t)(n >> 8);
	to->p[count_at + 1] = (uint8_t)n;
	return true;
}

/* Its start stays the method's, so that the call of enter has a line, too. */
static bool put_lines(struct method_move *v, struct cursor in, struct buf *to)
{
	uint32_t n = cursor_be16(&in);

	put_be16(to, n);
	for (; n; n--) {
		uint32_t at = cursor_be16(&in), line = cursor_be16(&in);

		if (in.failed || (at && !method_moved(v, at, &at)))
			return damaged(v);
		put_be16(to, at);
		put_be16(to, line);
	}
	return true;
}

/* LocalVariableTable and LocalVariableTypeTable. */
static bool put_variables(struct method_move *v, struct cursor in, struct buf *to)
{
	uint32_t n = cursor_be16(&in);

	put_be16(to, n);
	for (; n; n--) {
		uint32_t start = cursor_be16(&in), end = start + cursor_be16(&in);
		struct span rest = cursor_bytes(&in, 6);

		if (in.failed || !method_moved(v, end, &end) ||
			(start && !method_moved(v, start, &start)))
			return damaged(v);
		put_be16(to, start);
		put_be16(to, end - start);
		buf_put(to, rest.p, rest.n);
	}
	return true;
}

/* What else there may be (annotations of types inside of code, attributes of compilers) has addresses, means
 * nothing to a JVM, and is left out. */
static bool put_attribute(
	struct method_move *v, uint16_t name, struct span content, struct buf *to, uint32_t *n)
{
	bool is_lines = class_file_text_is(v->c, name, "LineNumberTable");
	size_t at = to->n;
	bool is_good;

	if (!is_lines && !class_file_text_is(v->c, name, "LocalVariableTable") &&
		!class_file_text_is(v->c, name, "LocalVariableTypeTable"))
		return true;
	put_be16(to, name);
	put_be32(to, 0);
	is_good = is_lines ? put_lines(v, cursor_of(content), to)
			   : put_variables(v, cursor_of(content), to);
	set_be32(to, at + 2, (uint32_t)(to->n - at - 6));
	(*n)++;
	return is_good;
}

static bool put_frames(
	struct method_move *v, const struct old_code *old, struct buf *to, uint32_t *n)
{
	size_t at = to->n;

	if (v->c->major < MAJOR_WITH_FRAMES)
		return true;
	put_be16(to, v->k->stack_map);
	put_be32(to, 0);
	if (!stack_frames_move(v, old->frames, to))
		return false;
	set_be32(to, at + 2, (uint32_t)(to->n - at - 6));
	(*n)++;
	return true;
}

static bool put_attributes(struct method_move *v, const struct old_code *old, struct buf *to)
{
	struct cursor in = old->attributes;
	size_t count_at = to->n;
	uint32_t n = 0;

	put_be16(to, 0);
	for (uint32_t i = old->n_attributes; i; i--) {
		uint16_t name = cursor_be16(&in);

		if (!put_attribute(v, name, cursor_bytes(&in, cursor_be32(&in)), to, &n))
			return false;
	}
	if (!put_frames(v, old, to, &n))
		return false;
	to->p[count_at] = (uint8_t)(n >> 8);
	to->p[count_at + 1] = (uint8_t)n;
	return true;
}

static bool put_all(struct method_move *v, const struct old_code *old, struct buf *to)
{
	const struct span name = span_sub(v->c->bytes, v->m->code_at, 2);
	uint32_t stack = old->max_stack + (v->group ? 4u : 1u), least = v->group ? 4 : 2;
	size_t at = to->n;

	if (stack > UINT16_MAX)
		return refuse(v, "its stack is too deep");
	buf_put(to, name.p, name.n);
	put_be32(to, 0);
	put_be16(to, stack < least ? least : stack); /* an exception, the id, what is counted */
	put_be16(to, v->max_locals + (v->group ? 2u : 0u));
	put_be32(to, v->handler + leave_bytes(v) + 1);
	if (!put_code(v, to) || !put_exceptions(v, old, to) || !put_attributes(v, old, to))
		return false;
	set_be32(to, at + 2, (uint32_t)(to->n - at - 6));
	return true;
}

/* The counter is behind all other variables. */
static bool begin_counting(struct method_move *v, const struct old_code *old)
{
	if (old->max_locals > UINT16_MAX - 2)
		return refuse(v, "it has too many variables");
	v->counter = old->max_locals;
	v->group = mem_zalloc((v->code.n + 1) * sizeof(*v->group));
	return bytecodes_group(v, old->exceptions);
}

static bool rewrite(struct method_move *v, struct buf *to)
{
	struct old_code old = {0};
	bool has_grown = true;

	if (!read_old(v, &old))
		return false;
	v->to = mem_alloc((v->code.n + 1) * sizeof(*v->to));
	memset(v->to, 0xff, (v->code.n + 1) * sizeof(*v->to));
	v->is_wide = mem_zalloc(v->code.n + 1);
	v->max_locals = old.max_locals;
	if (v->k->counts && !begin_counting(v, &old))
		return false;
	while (has_grown)
		if (!lay_out(v) || !widen_branches(v, &has_grown))
			return false;
	if (v->id > INT16_MAX) {
		v->push_constant = constants_add_integer(v->k, v->id);
		if (!v->push_constant)
			return refuse(v, "its class has no room for more constants");
	}
	return find_initialised(v, &old) && put_all(v, &old, to);
}

bool method_rewrite(struct method_move *v, struct buf *to)
{
	size_t before = to->n;
	bool is_done = rewrite(v, to);

	free(v->to);
	free(v->is_wide);
	free(v->group);
	if (!is_done)
		to->n = before;
	return is_done;
}
