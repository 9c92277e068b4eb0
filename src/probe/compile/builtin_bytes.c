/* SPDX-License-Identifier: MIT */
/* Functions of bytes: buf, memcmp, addresses of networks and cards, writing to the program. */
#include <arpa/inet.h>
#include <string.h>

#include "probe/compile/builtin.h"

#define AF_INET_NUMBER	2
#define AF_INET6_NUMBER 10
#define MAC_BYTES	6
#define MAC_TEXT_BYTES	17 /* "02:42:AC:11:00:02" */

/* --- buf -------------------------------------------------------------------------------------- */

/* What is in memory of ours, or copied to it: its bytes. A literal has its NUL, too. */
static uint64_t bytes_of(const struct expr *a, const struct type *type)
{
	if (a->kind == EXPR_STRING)
		return a->text_n + 1;
	return type->kind == TYPE_STRING ? type->n : type->size;
}

static bool is_held(const struct type *type)
{
	return type->kind == TYPE_ARRAY || type->kind == TYPE_STRING || type->kind == TYPE_STRUCT;
}

/* The number of bytes that buf() may give at most. */
static bool check_room(struct check_clause *c, struct expr *e, const struct type *type, int64_t *n)
{
	struct expr *a = e->args, *length = a->next;

	if (is_held(type))
		*n = (int64_t)bytes_of(a, type) - (!length && a->kind == EXPR_STRING);
	if (length && length->is_constant[c->mode]) {
		int64_t has = *n;

		if (!check_length(c, length, "the length of buf()", 1, n))
			return false;
		if (is_held(type) && *n > has &&
			!(a->kind == EXPR_STRING && check_is_like_0_17(c))) /* zeros behind it */
			return check_error(c, length->place, "range", "it has only %lld bytes",
				(long long)has);
	}
	if (*n >= 1 && *n <= CHECK_STRING_MAX)
		return true;
	return check_error(c, e->place, "range", "buf() takes 1 to %d bytes", CHECK_STRING_MAX);
}

static const struct type *check_buf(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args, *length = a->next;
	const struct type *type = check_value(c, a);
	int64_t n = c->session->string_bytes;

	if (length && !check_integer(c, length, "the length of buf()"))
		return check_bad(c);
	if (type->kind == TYPE_BAD)
		return type;
	if (!type_is_scalar(type) && !is_held(type))
		return check_refuse(c, a->place, "type",
			"buf() needs a pointer, an array or a text, and this is a %s",
			type_text(c, type));
	if (!length && !is_held(type)) {
		check_error(c, e->place, "arguments", "buf() of a pointer needs a length");
		return builtin_hint_form(c, e);
	}
	if (!check_room(c, e, type, &n))
		return check_bad(c);
	return types_bytes(check_types(c), (uint64_t)n);
}

/* `room` bytes of what the script holds itself. */
static void held_into(struct lower *l, const struct expr *a, ir_mem mem, uint32_t at, uint32_t room)
{
	struct object o;

	if (a->kind == EXPR_STRING) {
		lower_bytes(l, a->text, a->text_n, mem, at, room);
	} else if (type_of(l, a)->kind == TYPE_STRING) {
		lower_into(l, a, mem, at, room);
	} else {
		o = lower_object(l, a);
		lower_copy_object(l, &o, room, mem, at);
	}
}

/* Bytes behind the length are zeros, so that a buffer can be a key. The verifier wants to see the
 * bound of a length that is not constant. */
static void buf_read(struct lower *l, const struct expr *e, uint32_t room, ir_mem mem, uint32_t at)
{
	const struct expr *a = e->args, *b = a->next;
	const struct type *t = type_of(l, a);
	ir_value n = ir_new_value(&l->ir), address = 0, rc;
	ir_label ok = ir_new_label(&l->ir);
	struct ir_arg from;
	int helper = BPF_FUNC_probe_read_kernel;

	if (b)
		ir_copy(&l->ir, n, lower_value(l, b));
	else
		ir_set_const(&l->ir, n, room);
	ir_branch_imm(&l->ir, BPF_JLE, n, room, ok);
	ir_set_const(&l->ir, n, room);
	ir_place_label(&l->ir, ok);
	if (is_held(t)) {
		ir_mem held = ir_new_memory(&l->ir, room);

		held_into(l, a, held, 0, room);
		from = IR_M(held, 0);
	} else {
		address = lower_value(l, a);
		from = IR_V(address);
		if (t->kind != TYPE_POINTER || t->space != SPACE_KERNEL)
			helper = BPF_FUNC_copy_from_user;
		l->reads_user |= helper == BPF_FUNC_copy_from_user;
	}
	ir_store(&l->ir, mem, (int32_t)at, 4, n);
	rc = IR_CALL_(&l->ir, helper, IR_M(mem, at + 8), IR_V(n), from);
	lower_fail_unless_ok(l, rc, false, FAILURE_READ, address);
}

/* u32 length, u32 0, bytes */
static void buf_into(
	struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n_room)
{
	uint32_t room = (uint32_t)type_of(l, e)->n;
	const struct expr *a = e->args;

	ir_zero(&l->ir, mem, (int32_t)at, n_room > 8 + room ? n_room : 8 + room);
	if (!is_held(type_of(l, a)) || (a->next && !a->next->is_constant[l->mode])) {
		buf_read(l, e, room, mem, at);
		return;
	}
	ir_store_imm(&l->ir, mem, (int32_t)at, 8, room);
	if (a->kind == EXPR_STRING && room > bytes_of(a, type_of(l, a)))
		room = (uint32_t)bytes_of(a, type_of(l, a));
	held_into(l, a, mem, at + 8, room);
}

/* --- comparing -------------------------------------------------------------------------------- */

/* memcmp(a, b, N): of pointers what they point to. */
static bool check_side(struct check_clause *c, struct expr *e, struct expr *a, int64_t n)
{
	const struct type *type = check_value(c, a);

	if (type->kind == TYPE_BAD)
		return false;
	if (type->kind == TYPE_POINTER)
		return true;
	if (!is_held(type))
		return check_error(c, a->place, "type",
			"%s() needs a pointer, an array or a text, and this is a %s", e->name,
			type_text(c, type));
	if (n > (int64_t)bytes_of(a, type))
		return check_error(c, a->place, "range", "it has only %llu bytes",
			(unsigned long long)bytes_of(a, type));
	return true;
}

static const struct type *check_memcmp(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args, *b = a->next;
	int64_t n = 0;
	bool ok = check_length(c, b->next, "the length of memcmp()", 0, &n);

	ok &= check_side(c, e, a, n);
	ok &= check_side(c, e, b, n);
	return ok ? check_int(c, 8, true) : check_bad(c);
}

static ir_mem side_memory(struct lower *l, const struct expr *a, uint32_t n)
{
	const struct type *t = type_of(l, a);
	ir_mem mem = ir_new_memory(&l->ir, n ? (n + 7) & ~7u : 8);
	struct object o = {.kind = OBJECT_ADDRESS, .space = t->space};

	ir_zero(&l->ir, mem, 0, (n + 7) & ~7u);
	if (t->kind != TYPE_POINTER) {
		held_into(l, a, mem, 0, n);
		return mem;
	}
	o.address = lower_value(l, a);
	lower_copy_object(l, &o, n, mem, 0);
	return mem;
}

/* Words at a time; the first that differ are compared with their first byte as the highest. */
static ir_value lower_memcmp(struct lower *l, const struct expr *e)
{
	const struct expr *a = e->args, *b = a->next;
	uint32_t n = (uint32_t)b->next->constant[l->mode];
	ir_mem ma = side_memory(l, a, n), mb = side_memory(l, b, n);
	ir_label differ = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value va = ir_new_value(&l->ir), vb = ir_new_value(&l->ir),
		 result = ir_new_value(&l->ir);

	ir_set_const(&l->ir, result, 0);
	for (uint32_t i = 0; i < n; i += 8) {
		ir_copy(&l->ir, va, ir_load(&l->ir, ma, (int32_t)i, 8, false));
		ir_copy(&l->ir, vb, ir_load(&l->ir, mb, (int32_t)i, 8, false));
		ir_branch(&l->ir, BPF_JNE, va, vb, differ);
	}
	ir_jump(&l->ir, done);
	if (n) {
		ir_place_label(&l->ir, differ);
		va = ir_swap(&l->ir, va, 8);
		vb = ir_swap(&l->ir, vb, 8);
		ir_set_const(&l->ir, result, -1);
		ir_branch(&l->ir, BPF_JLT, va, vb, done);
		ir_set_const(&l->ir, result, 1);
	}
	ir_place_label(&l->ir, done);
	return result;
}

/* --- addresses of networks and cards ---------------------------------------------------------- */

static bool check_family(struct check_clause *c, struct expr *a, int64_t *family)
{
	*family = 0;
	if (a->kind == EXPR_NAME && !strncmp(a->name, "AF_INET", 7)) {
		*family = a->name[7] == '6' ? AF_INET6_NUMBER : AF_INET_NUMBER;
		check_set_constant(c, a, check_int(c, 8, true), (uint64_t)*family);
		return true;
	}
	if (!check_constant(c, a, "the family of ntop()", family))
		return false;
	if (*family == AF_INET_NUMBER || *family == AF_INET6_NUMBER)
		return true;
	return check_error(
		c, a->place, "range", "the family of ntop() is AF_INET (2) or AF_INET6 (10)");
}

static const struct type *check_ntop(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;
	const struct type *type;
	int64_t family = 0;
	uint64_t bytes;

	if (a->next) {
		if (!check_family(c, a, &family))
			return check_bad(c);
		a = a->next;
	}
	type = check_value(c, a);
	if (type->kind == TYPE_BAD)
		return type;
	bytes = type->kind == TYPE_INT ? 4 : type->size;
	if ((type->kind != TYPE_INT && type->kind != TYPE_ARRAY && type->kind != TYPE_STRUCT) ||
		(bytes != 4 && bytes != 16))
		return check_refuse(
			c, a->place, "type", "ntop() needs an integer, or 4 or 16 bytes");
	if (family && (family == AF_INET_NUMBER) != (bytes == 4))
		return check_refuse(c, a->place, "type", "an address of AF_INET%s has %d bytes",
			family == AF_INET_NUMBER ? "" : "6", family == AF_INET_NUMBER ? 4 : 16);
	return types_special(check_types(c), TYPE_INET);
}

static void inet_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t room)
{
	const struct expr *a = e->args;
	uint32_t n = 4;
	struct object o;

	if (a->next)
		a = a->next; /* ntop(AF_INET, address) */
	(void)room;
	ir_zero(&l->ir, mem, (int32_t)at, 24);
	if (lower_is_value(type_of(l, a))) {
		ir_store(&l->ir, mem, (int32_t)at + 8, 4, lower_value(l, a));
	} else {
		n = type_of(l, a)->size >= 16 ? 16 : 4;
		o = lower_object(l, a);
		lower_copy_object(l, &o, n, mem, at + 8);
	}
	ir_store_imm(&l->ir, mem, (int32_t)at, 8, n);
}

/* pton("ADDRESS"): its bytes, in the order of the network. */
static const struct type *check_pton(struct check_clause *c, struct expr *e)
{
	uint8_t bytes[16];
	int family;

	if (!check_literal(c, e, e->args))
		return check_bad(c);
	family = strchr(e->args->text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(family, e->args->text, bytes) != 1)
		return check_refuse(c, e->args->place, "range",
			"'%s' is no address of IPv4 or IPv6", e->args->text);
	return types_array(check_types(c), check_int(c, 1, false), family == AF_INET6 ? 16 : 4);
}

static void pton_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	uint8_t bytes[16] = {0};

	inet_pton(strchr(e->args->text, ':') ? AF_INET6 : AF_INET, e->args->text, bytes);
	lower_bytes(l, (const char *)bytes, type_of(l, e)->size, mem, at, n);
}

static const struct type *check_macaddr(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_value(c, e->args);

	if (type->kind == TYPE_BAD)
		return type;
	if (type->kind != TYPE_ARRAY || type->size != MAC_BYTES)
		return check_refuse(c, e->args->place, "type",
			"macaddr() needs an array of %d bytes, and this is a %s", MAC_BYTES,
			type_text(c, type));
	return types_string(check_types(c), MAC_TEXT_BYTES);
}

/* The digit of the 4 lowest bits: 10 and more are letters, which lie behind the digits. */
static ir_value hex_digit(struct lower *l, ir_value v)
{
	ir_value letter = ir_alu_imm(&l->ir, BPF_RSH, ir_alu_imm(&l->ir, BPF_ADD, v, 16 - 10), 4);

	v = ir_alu(&l->ir, BPF_ADD, v, ir_alu_imm(&l->ir, BPF_MUL, letter, 'A' - '9' - 1));
	return ir_alu_imm(&l->ir, BPF_ADD, v, '0');
}

static void mac_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	struct object o = lower_object(l, e->args);
	ir_mem bytes = ir_new_memory(&l->ir, 8), text = ir_new_memory(&l->ir, MAC_TEXT_BYTES);

	lower_copy_object(l, &o, MAC_BYTES, bytes, 0);
	for (int32_t i = 0; i < MAC_BYTES; i++) {
		ir_value byte = ir_load(&l->ir, bytes, i, 1, false);
		ir_value high = ir_alu_imm(&l->ir, BPF_RSH, byte, 4);

		if (i)
			ir_store_imm(&l->ir, text, 3 * i - 1, 1, ':');
		ir_store(&l->ir, text, 3 * i, 1, hex_digit(l, high));
		byte = ir_alu_imm(&l->ir, BPF_AND, ir_load(&l->ir, bytes, i, 1, false), 15);
		ir_store(&l->ir, text, 3 * i + 1, 1, hex_digit(l, byte));
	}
	ir_zero(&l->ir, mem, (int32_t)at, n);
	lower_copy_memory(l, text, 0, mem, at, n < MAC_TEXT_BYTES ? n : MAC_TEXT_BYTES);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* write_user(POINTER, VALUE, BYTES) */
static const struct type *check_write_user(struct check_clause *c, struct expr *e)
{
	struct expr *to = e->args, *from = to->next;
	int64_t n = 0;
	bool ok = check_is_allowed(c, e);

	ok &= check_scalar(c, to, "the first argument of write_user()");
	ok &= check_length(c, from->next, "the length of write_user()", 1, &n);
	ok &= check_side(c, e, from, n);
	if (ok && to->type[c->mode]->kind == TYPE_POINTER &&
		to->type[c->mode]->space == SPACE_KERNEL)
		ok = check_error(c, to->place, "type", "memory of the kernel cannot be written");
	return ok ? check_bool(c) : check_bad(c);
}

static ir_value lower_write_user(struct lower *l, const struct expr *e)
{
	const struct expr *to = e->args, *from = to->next;
	uint32_t n = (uint32_t)from->next->constant[l->mode];
	ir_value address = lower_value(l, to);
	ir_mem mem = side_memory(l, from, n);

	return ir_set_imm(&l->ir, BPF_JEQ,
		IR_CALL_(&l->ir, BPF_FUNC_probe_write_user, IR_V(address), IR_M(mem, 0), IR_I(n)),
		0);
}

const struct builtin bytes_builtins[] = {
#define INTO(checked, code)  .check = checked, .into = code
#define VALUE(checked, code) .check = checked, .lower = code
	{"buf", "buf(POINTER | ARRAY | TEXT [, BYTES])", 1, 2, INTO(check_buf, buf_into)},
	{"memcmp", "memcmp(LEFT, RIGHT, BYTES)", 3, 3, VALUE(check_memcmp, lower_memcmp)},
	{"ntop", "ntop([AF_INET | AF_INET6,] ADDRESS)", 1, 2, INTO(check_ntop, inet_into)},
	{"pton", "pton(\"ADDRESS\")", 1, 1, INTO(check_pton, pton_into)},
	{"macaddr", "macaddr(ARRAY)", 1, 1, INTO(check_macaddr, mac_into)},
	{"write_user", "write_user(POINTER, VALUE, BYTES)", 3, 3, POINT_HAS_STACK,
		VALUE(check_write_user, lower_write_user)},
	{.name = NULL},
};
