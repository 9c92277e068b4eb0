/* SPDX-License-Identifier: MIT */
/*
 * Where a method counts the bytecodes that it executes. A group is a run of instructions of which, once the first one is
 * executed, all are: nobody jumps into it, and only its last one may jump, call, or throw. In front of each group
 * a local variable grows by the group's length.
 *
 *	lload v; lconst_1 (or sipush n; i2l); ladd; lstore v
 *
 * An instruction that throws was executed. What may be thrown once, when a constant is first used, is left out of this.
 */
#include "classfile/rewrite_internal.h"

#include "classfile/bytecode.h"

#define GROUP_MAX 32767u /* what a sipush holds */
#define OP_WIDE	  0xc4
#define OP_RET	  0xa9

/* Ranges of instructions behind which a group ends: array accesses, divisions, calls, fields, objects, locks. */
static const struct {
	uint8_t first, last;
} ends[] = {{0x2e, 0x35}, {0x4f, 0x56}, {0x6c, 0x6d}, {0x70, 0x71}, {0x99, 0xc3}, {0xc5, 0xc9}};

static bool ends_group(struct span code, uint32_t at)
{
	uint8_t op = code.p[at];

	if (op == OP_WIDE)
		return code.n - at > 1 && code.p[at + 1] == OP_RET;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (op >= ends[i].first && op <= ends[i].last)
			return true;
	return false;
}

static bool mark(struct method_move *v, int64_t at)
{
	if (at < 0 || at >= (int64_t)v->code.n) {
		v->reason = "its code is damaged";
		return false;
	}
	v->group[at] = 1;
	return true;
}

static int32_t number_at(struct span code, uint32_t at, bool is_wide)
{
	struct cursor in = cursor_of(span_sub(code, at, code.n - at));

	return is_wide ? (int32_t)cursor_be32(&in) : (int16_t)cursor_be16(&in);
}

static bool mark_switch(struct method_move *v, uint32_t at, uint32_t n)
{
	bool is_table = v->code.p[at] == BYTECODE_TABLESWITCH;
	uint32_t from = at + 1 + bytecode_switch_padding(at);

	if (!mark(v, (int64_t)at + number_at(v->code, from, true)))
		return false;
	for (uint32_t i = from + 12; i < at + n; i += is_table ? 4 : 8)
		if (!mark(v, (int64_t)at + number_at(v->code, i, true)))
			return false;
	return true;
}

/* Where somebody jumps to. */
static bool mark_targets(struct method_move *v, struct span exceptions)
{
	struct cursor in = cursor_of(exceptions);

	for (uint32_t at = 0, n; at < v->code.n; at += n) {
		uint8_t op = v->code.p[at];
		bool is_wide = bytecode_is_wide_branch(op);

		n = bytecode_length(v->code, at);
		if (!n)
			return mark(v, -1);
		if (bytecode_is_switch(op) && !mark_switch(v, at, n))
			return false;
		if ((is_wide || bytecode_is_branch(op)) &&
			!mark(v, (int64_t)at + number_at(v->code, at + 1, is_wide)))
			return false;
	}
	while (cursor_left(&in)) {
		cursor_skip(&in, 4);
		if (!mark(v, cursor_be16(&in)))
			return false;
		cursor_skip(&in, 2);
	}
	return true;
}

bool bytecodes_group(struct method_move *v, struct span exceptions)
{
	uint32_t first = 0;
	bool is_over = true;

	if (!mark_targets(v, exceptions))
		return false;
	for (uint32_t at = 0; at < v->code.n; at += bytecode_length(v->code, at)) {
		if (is_over || v->group[at] || v->group[first] == GROUP_MAX) {
			first = at;
			v->group[at] = 0;
		}
		v->group[first]++;
		is_over = ends_group(v->code, at);
	}
	return true;
}

/* --- the instructions ---------------------------------------------------------------------- */

static uint32_t access_bytes(const struct method_move *v)
{
	return v->counter > UINT8_MAX ? 4 : 2;
}

uint32_t bytecodes_begin_bytes(const struct method_move *v)
{
	return v->group ? 1 + access_bytes(v) : 0;
}

uint32_t bytecodes_load_bytes(const struct method_move *v)
{
	return v->group ? access_bytes(v) : 0;
}

uint32_t bytecodes_count_bytes(const struct method_move *v, uint32_t at)
{
	if (!v->group || !v->group[at])
		return 0;
	return 2 * access_bytes(v) + 1 + (v->group[at] == 1 ? 1 : 4);
}

static void put_access(const struct method_move *v, uint8_t op, struct buf *to)
{
	if (v->counter > UINT8_MAX) {
		buf_put_u8(to, OP_WIDE);
		buf_put_u8(to, op);
		put_be16(to, v->counter);
	} else {
		buf_put_u8(to, op);
		buf_put_u8(to, (uint8_t)v->counter);
	}
}

void bytecodes_put_begin(const struct method_move *v, struct buf *to)
{
	if (!v->group)
		return;
	buf_put_u8(to, BYTECODE_LCONST_0);
	put_access(v, BYTECODE_LSTORE, to);
}

void bytecodes_put_load(const struct method_move *v, struct buf *to)
{
	if (v->group)
		put_access(v, BYTECODE_LLOAD, to);
}

void bytecodes_put_count(const struct method_move *v, uint32_t at, struct buf *to)
{
	if (!v->group || !v->group[at])
		return;
	put_access(v, BYTECODE_LLOAD, to);
	if (v->group[at] == 1) {
		buf_put_u8(to, BYTECODE_LCONST_1);
	} else {
		buf_put_u8(to, BYTECODE_SIPUSH);
		put_be16(to, v->group[at]);
		buf_put_u8(to, BYTECODE_I2L);
	}
	buf_put_u8(to, BYTECODE_LADD);
	put_access(v, BYTECODE_LSTORE, to);
}
