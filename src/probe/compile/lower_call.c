/* SPDX-License-Identifier: MIT */
/* Functions of the language. Where a new one is added: here, and in builtins.c. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "probe/compile/lower.h"

#define RING_FLAGS 0
#define USER_STACK (1ull << 8)		/* BPF_F_USER_STACK */
#define STACK_HASH 0x9e3779b97f4a7c15ll /* 2^64 / golden ratio, odd */

/* --- records
 * ---------------------------------------------------------------------------------------- */

static bool is_action(enum format_kind kind)
{
	return kind >= FORMAT_EXIT;
}

/* Two fields at a time: see lower_index. */
static void put_head(struct lower *l, uint32_t format, ir_mem mem)
{
	uint64_t clause = l->clause->clause_i | (l->mode == MODE_64 ? 1u << 31 : 0);
	ir_value both, low, high;

	ir_store(&l->ir, mem, 0, 8, ir_call(&l->ir, BPF_FUNC_ktime_get_ns, NULL, 0));
	ir_store_imm(&l->ir, mem, offsetof(struct stream_record, format), 8,
		(int64_t)(format | clause << 32));
	both = ir_call(&l->ir, BPF_FUNC_get_current_pid_tgid, NULL, 0);
	low = ir_alu_imm(&l->ir, BPF_RSH, both, 32);
	high = ir_alu_imm(&l->ir, BPF_LSH, both, 32);
	ir_store(&l->ir, mem, offsetof(struct stream_record, pid), 8,
		ir_alu(&l->ir, BPF_OR, low, high));
}

/* join: the texts that the words of an array point to, up to a NULL or as many as there is room. */
static void put_words(
	struct lower *l, const struct expr *e, const struct shape *room, ir_mem mem, uint32_t at)
{
	const struct type *t = type_of(l, e);
	enum space space = t->kind == TYPE_POINTER ? t->space : SPACE_USER;
	uint32_t word = space == SPACE_USER && l->mode == MODE_32 ? 4 : 8;
	struct object o = {.kind = OBJECT_ADDRESS, .space = space, .address = lower_value(l, e)};
	ir_label end = ir_new_label(&l->ir);

	ir_zero(&l->ir, mem, (int32_t)at, room->size);
	for (uint32_t i = 0; i < room->n_fields; i++) {
		const struct shape_field *f = &room->fields[i];
		ir_value p;

		o.offset = (int64_t)i * word;
		p = lower_read(l, &o, word, false);
		ir_branch_imm(&l->ir, BPF_JEQ, p, 0, end);
		lower_read_text(l, space, p, f->shape->n, mem, at + f->offset);
	}
	ir_place_label(&l->ir, end);
}

/* struct stream_record, then the arguments; one call puts it into the ring. */
void lower_record(struct lower *l, const struct expr *e, uint32_t format, const struct expr *args)
{
	const struct stream_format *f = &l->stream->formats.v[format];
	uint32_t size = sizeof(struct stream_record), at = size;
	ir_label ok = ir_new_label(&l->ir);
	ir_value rc;
	ir_mem mem;

	for (uint32_t i = 0; i < f->n_args; i++)
		size += f->args[i]->size;
	mem = ir_new_memory(&l->ir, size);
	put_head(l, format, mem);
	for (uint32_t i = 0; args && i < f->n_args; i++, args = args->next) {
		if (f->kind == FORMAT_JOIN)
			put_words(l, args, f->args[i], mem, at);
		else
			lower_canonical(l, args, f->args[i], mem, at);
		at += f->args[i]->size;
	}
	l->ir.place = e->place;
	rc = IR_CALL_(&l->ir, BPF_FUNC_ringbuf_output,
		IR_MAP(is_action(f->kind) ? STREAM_MAP_CONTROL : STREAM_MAP_RECORDS), IR_M(mem, 0),
		IR_I(size), IR_I(RING_FLAGS));
	ir_branch_imm(&l->ir, BPF_JEQ, rc, 0, ok);
	lower_count_loss(l, offsetof(struct clause_loss, lost_records));
	ir_place_label(&l->ir, ok);
}

static void lower_output(struct lower *l, const struct expr *e)
{
	uint32_t format = meaning_of(l, e)->format;
	const struct expr *args = e->args;

	switch (l->stream->formats.v[format].kind) {
	case FORMAT_PRINTF:
	case FORMAT_CAT:
	case FORMAT_SYSTEM:
	case FORMAT_PRINT_MAP:
	case FORMAT_CLEAR_MAP:
	case FORMAT_ZERO_MAP:
		args = args ? args->next : NULL;
		break;
	case FORMAT_TIME:
		args = NULL;
		break;
	default:
		break;
	}
	lower_record(l, e, format, args);
	if (l->stream->formats.v[format].kind == FORMAT_EXIT)
		ir_jump(&l->ir, l->end);
}

/* --- stacks
 * ------------------------------------------------------------------------------------------- */

/* id = a hash of the addresses up to the first 0; never 0. */
static ir_value stack_id(struct lower *l, ir_mem mem, uint32_t n_frames)
{
	ir_label done = ir_new_label(&l->ir);
	ir_value id = ir_new_value(&l->ir), factor = ir_const(&l->ir, STACK_HASH), h;

	ir_set_const(&l->ir, id, 1);
	for (uint32_t i = 0; i < n_frames; i++) {
		ir_value frame = ir_new_value(&l->ir);

		ir_copy(&l->ir, frame, ir_load(&l->ir, mem, (int32_t)(8 + 8 * i), 8, false));
		ir_branch_imm(&l->ir, BPF_JEQ, frame, 0, done);
		h = ir_alu(&l->ir, BPF_MUL, ir_alu(&l->ir, BPF_XOR, id, frame), factor);
		ir_copy(&l->ir, id, ir_alu(&l->ir, BPF_XOR, h, ir_alu_imm(&l->ir, BPF_RSH, h, 29)));
	}
	ir_place_label(&l->ir, done);
	return ir_alu_imm(&l->ir, BPF_OR, id, 1);
}

/*
 * At the first instruction of a function its caller's frame is not linked yet, so a walk along
 * frame pointers misses the caller: the return address is still on top of the stack. Kernels
 * from 6.11 on know that where the instruction is a push.
 */
static bool may_miss_caller(const struct lower *l, bool is_user)
{
	const struct point_spec *spec = &l->clause->point->spec;

	return is_user && spec->kind == POINT_UPROBE && !spec->offset && !spec->has_address;
}

static ir_value walk(struct lower *l, bool is_user, ir_mem mem, uint32_t first, uint32_t n_frames)
{
	return IR_CALL_(&l->ir, BPF_FUNC_get_stack, IR_CTX, IR_M(mem, 8 + 8 * first),
		IR_I(8 * (n_frames - first)), IR_I(is_user ? USER_STACK : 0));
}

/* bytes = walk to frames[0..]; if (frames[1] != *sp) { walk to frames[1..]; frames[0] = frames[1];
 * frames[1] = *sp } */
static ir_value walk_stack(struct lower *l, bool is_user, ir_mem mem, uint32_t n_frames)
{
	ir_value bytes = ir_new_value(&l->ir), sp, caller;
	ir_label done = ir_new_label(&l->ir);
	ir_mem word;

	ir_copy(&l->ir, bytes, walk(l, is_user, mem, 0, n_frames));
	if (!may_miss_caller(l, is_user) || n_frames < 2)
		return bytes;
	word = ir_new_memory(&l->ir, 8);
	caller = ir_new_value(&l->ir);
	ir_branch_imm(&l->ir, BPF_JSLE, bytes, 0, done);
	ir_zero(&l->ir, word, 0, 8);
	sp = lower_register(l, PT_SP);
	IR_CALL_(&l->ir, BPF_FUNC_copy_from_user, IR_M(word, 0), IR_I(l->mode == MODE_32 ? 4 : 8),
		IR_V(sp));
	ir_copy(&l->ir, caller, ir_load(&l->ir, word, 0, 8, false));
	ir_branch(&l->ir, BPF_JEQ, caller, ir_load(&l->ir, mem, 16, 8, false), done);
	ir_copy(&l->ir, bytes, walk(l, is_user, mem, 1, n_frames));
	ir_branch_imm(&l->ir, BPF_JSLE, bytes, 0, done);
	ir_store(&l->ir, mem, 8, 8, ir_load(&l->ir, mem, 16, 8, false));
	ir_store(&l->ir, mem, 16, 8, caller);
	ir_copy(&l->ir, bytes, ir_alu_imm(&l->ir, BPF_ADD, bytes, 8));
	ir_place_label(&l->ir, done);
	return bytes;
}

/*
 * Stacks are kept once, under a hash of their addresses, in a plain map: unlike the kernel's own
 * stack maps that loses none to collisions of buckets, and works in programs that may sleep.
 */
ir_value lower_stack(struct lower *l, bool is_user, uint32_t n_frames)
{
	ir_mem mem = ir_new_memory(&l->ir, 8 + 8 * STREAM_STACK_FRAMES),
	       key = ir_new_memory(&l->ir, 8);
	ir_label failed = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value id = ir_new_value(&l->ir), bytes, p;

	if (!n_frames || n_frames > STREAM_STACK_FRAMES)
		n_frames = STREAM_STACK_FRAMES;
	l->stream->uses_stacks = true;
	ir_set_const(&l->ir, id, 0);
	ir_zero(&l->ir, mem, 0, 8 + 8 * STREAM_STACK_FRAMES);
	bytes = walk_stack(l, is_user, mem, n_frames);
	ir_branch_imm(&l->ir, BPF_JSLE, bytes, 0, done); /* no stack there (a kernel thread) */
	ir_store(&l->ir, mem, 0, 8, ir_alu_imm(&l->ir, BPF_RSH, bytes, 3));
	ir_copy(&l->ir, id, stack_id(l, mem, n_frames));
	ir_store(&l->ir, key, 0, 8, id);
	p = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_STACKS), IR_M(key, 0));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, done);
	ir_branch_imm(&l->ir, BPF_JSLT,
		IR_CALL_(&l->ir, BPF_FUNC_map_update_elem, IR_MAP(STREAM_MAP_STACKS), IR_M(key, 0),
			IR_M(mem, 0), IR_I(BPF_ANY)),
		0, failed);
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, failed);
	ir_set_const(&l->ir, id, 0);
	lower_count_loss(l, offsetof(struct clause_loss, stack_failed));
	ir_place_label(&l->ir, done);
	return id;
}

/* ustack(), ustack(5), ustack(perf, 5): the last argument that is a number. */
static uint32_t frames_wanted(struct lower *l, const struct expr *e)
{
	uint32_t n = 0;

	for (const struct expr *a = e->args; a; a = a->next)
		if (a->is_constant[l->mode])
			n = (uint32_t)a->constant[l->mode];
	return n;
}

/* --- values
 * --------------------------------------------------------------------------------------------- */

static ir_value has_key(struct lower *l, const struct expr *e)
{
	const struct expr *map = e->args;
	const struct map_use *use = meaning_of(l, map)->map;
	ir_mem key = lower_map_key(l, use, map->args ? map->args : map->next);

	return ir_set_imm(&l->ir, BPF_JNE, lower_map_find(l, use, key), 0);
}

static void delete_key(struct lower *l, const struct expr *e)
{
	const struct expr *map = e->args;

	lower_map_delete(l, meaning_of(l, map)->map, map->args ? map->args : map->next);
}

static ir_value differ(struct lower *l, const struct expr *e, bool has_n)
{
	const struct expr *a = e->args, *b = a->next;
	int64_t n = has_n ? (int64_t)b->next->constant[l->mode] : -1;

	return ir_alu_imm(&l->ir, BPF_XOR, lower_text_equal(l, a, b, n), 1);
}

ir_value lower_call(struct lower *l, const struct expr *e)
{
	const struct expr *a = e->args;

	switch (meaning_of(l, e)->function->id) {
	case FUNCTION_DELETE:
		delete_key(l, e);
		return 0;
	case FUNCTION_HAS_KEY:
		return has_key(l, e);
	case FUNCTION_KPTR:
	case FUNCTION_UPTR:
	case FUNCTION_KSYM:
		return lower_value(l, a);
	case FUNCTION_REG:
		return lower_use_value(l, meaning_of(l, e)->reg);
	case FUNCTION_KSTACK:
		return lower_stack(l, false, frames_wanted(l, e));
	case FUNCTION_STRLEN:
		return lower_text_length(l, a);
	case FUNCTION_STRNCMP:
		return differ(l, e, true);
	case FUNCTION_STRCMP:
		return differ(l, e, false);
	case FUNCTION_STRCONTAINS:
		return lower_text_contains(l, a, a->next);
	case FUNCTION_BSWAP:
		return type_of(l, a)->size == 1
			       ? lower_value(l, a)
			       : ir_swap(&l->ir, lower_value(l, a), (uint32_t)type_of(l, a)->size);
	case FUNCTION_SIGNAL:
		return IR_CALL_(&l->ir, BPF_FUNC_send_signal, IR_V(lower_value(l, a)));
	case FUNCTION_NSECS:
		return ir_call(&l->ir, BPF_FUNC_ktime_get_boot_ns, NULL, 0);
	case FUNCTION_UADDR:
		return lower_global_address(l, meaning_of(l, e)->address);
	default:
		lower_output(l, e);
		return 0;
	}
}

/* --- into memory
 * ------------------------------------------------------------------------------------------ */

static void str_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	const struct expr *a = e->args;
	const struct type *t = type_of(l, a);
	uint32_t limit = (uint32_t)type_of(l, e)->n, bytes = limit < n ? limit : n;
	bool is_kernel = meaning_of(l, e)->function->id == FUNCTION_KSTR ||
			 (t->kind == TYPE_POINTER && t->space == SPACE_KERNEL);
	enum space space = is_kernel ? SPACE_KERNEL : SPACE_USER;

	if (t->kind == TYPE_ARRAY || t->kind == TYPE_STRING)
		lower_into(l, a, mem, at, bytes);
	else if (!a->next)
		lower_read_text(l, space, lower_value(l, a), bytes, mem, at);
	else if (a->next->is_constant[l->mode])
		lower_read_full_text(l, space, lower_value(l, a), bytes, mem, at);
	else
		lower_read_text_up_to(
			l, space, lower_value(l, a), lower_value(l, a->next), bytes, mem, at);
	ir_zero(&l->ir, mem, (int32_t)(at + bytes), n - bytes);
}

/* u32 length, u32 0, bytes. The verifier wants to see the bound of a length that is not constant.
 */
static void buf_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at)
{
	uint32_t room = (uint32_t)type_of(l, e)->n;
	const struct expr *a = e->args, *b = a->next;
	const struct type *t = type_of(l, a);
	ir_value n = ir_new_value(&l->ir), address, rc;
	ir_label ok = ir_new_label(&l->ir);
	struct object o;

	if (t->kind == TYPE_ARRAY && (!b || b->is_constant[l->mode])) {
		o = lower_object(l, a);
		ir_store_imm(&l->ir, mem, (int32_t)at, 8, room);
		lower_copy_object(l, &o, room, mem, at + 8);
		return;
	}
	if (b)
		ir_copy(&l->ir, n, lower_value(l, b));
	else
		ir_set_const(&l->ir, n, room);
	ir_branch_imm(&l->ir, BPF_JLE, n, room, ok);
	ir_set_const(&l->ir, n, room);
	ir_place_label(&l->ir, ok);
	address = lower_value(l, a);
	ir_zero(&l->ir, mem, (int32_t)at, 8 + room);
	ir_store(&l->ir, mem, (int32_t)at, 4, n);
	l->reads_user = true;
	rc = IR_CALL_(&l->ir,
		t->kind == TYPE_POINTER && t->space == SPACE_KERNEL ? BPF_FUNC_probe_read_kernel
								    : BPF_FUNC_copy_from_user,
		IR_M(mem, at + 8), IR_V(n), IR_V(address));
	lower_fail_unless_ok(l, rc, false, FAILURE_READ, address);
}

static void inet_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at)
{
	const struct expr *a = e->args;
	uint32_t n = 4;
	struct object o;

	if (a->next)
		a = a->next; /* ntop(AF_INET, address) */
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

static void time_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at)
{
	ir_store(&l->ir, mem, (int32_t)at, 8, lower_value(l, e->args->next));
	ir_store_imm(&l->ir, mem, (int32_t)at + 8, 8, meaning_of(l, e)->format);
}

void lower_call_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	switch (meaning_of(l, e)->function->id) {
	case FUNCTION_STR:
	case FUNCTION_KSTR:
		str_into(l, e, mem, at, n);
		break;
	case FUNCTION_BUF:
		buf_into(l, e, mem, at);
		break;
	case FUNCTION_USYM:
		lower_user_address(l, lower_value(l, e->args), mem, at);
		break;
	case FUNCTION_USTACK:
		lower_user_address(l, lower_stack(l, true, frames_wanted(l, e)), mem, at);
		break;
	case FUNCTION_NTOP:
		inet_into(l, e, mem, at);
		break;
	case FUNCTION_STRFTIME:
		time_into(l, e, mem, at);
		break;
	default:
		ir_zero(&l->ir, mem, (int32_t)at, n);
		break;
	}
}
