/* SPDX-License-Identifier: MIT */
/* Arithmetic on constants, as the code would do it: in 64 bits. */
#include "probe/types/type.h"

uint64_t fold_convert(const struct type *type, uint64_t value)
{
	unsigned shift;

	if (type->is_bool)
		return value != 0;
	if (type->size >= 8 || type->size == 0)
		return value;
	shift = 64 - 8 * (unsigned)type->size;
	if (type->kind == TYPE_INT && type->is_signed)
		return (uint64_t)((int64_t)(value << shift) >> shift);
	return value << shift >> shift;
}

static bool is_less(uint64_t a, uint64_t b, bool is_unsigned)
{
	return is_unsigned ? a < b : (int64_t)a < (int64_t)b;
}

/* b is not 0. */
static uint64_t divide(enum op op, uint64_t a, uint64_t b, bool is_unsigned)
{
	if (is_unsigned)
		return op == OP_DIV ? a / b : a % b;
	if (b == UINT64_MAX) /* INT64_MIN / -1 overflows in C */
		return op == OP_DIV ? 0 - a : 0;
	return (uint64_t)(op == OP_DIV ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
}

uint64_t fold_binary(enum op op, uint64_t a, uint64_t b, bool is_unsigned)
{
	switch (op) {
	case OP_ADD:
		return a + b;
	case OP_SUB:
		return a - b;
	case OP_MUL:
		return a * b;
	case OP_DIV:
	case OP_MOD:
		return b ? divide(op, a, b, is_unsigned) : 0;
	case OP_AND:
		return a & b;
	case OP_OR:
		return a | b;
	case OP_XOR:
		return a ^ b;
	case OP_SHL:
		return b < 64 ? a << b : 0;
	case OP_SHR:
		if (is_unsigned)
			return b < 64 ? a >> b : 0;
		return (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
	case OP_EQ:
		return a == b;
	case OP_NE:
		return a != b;
	case OP_LT:
		return is_less(a, b, is_unsigned);
	case OP_LE:
		return !is_less(b, a, is_unsigned);
	case OP_GT:
		return is_less(b, a, is_unsigned);
	case OP_GE:
		return !is_less(a, b, is_unsigned);
	default:
		return 0;
	}
}
