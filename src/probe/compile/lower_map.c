/* SPDX-License-Identifier: MIT */
/*
 * Maps: keys and values are canonical. Adding is atomic, so that nothing is lost when threads meet
 * at a key, or when one is interrupted in the middle of it (per-CPU values).
 */
#include <stddef.h>

#include "probe/compile/lower.h"

#define MAP_ANY	    0 /* flags of bpf_map_update_elem */
#define MAP_NOEXIST 1

static int64_t number_of(const struct map_use *map)
{
	return STREAM_MAP_FIRST_OF_SCRIPT + (int64_t)map->number;
}

ir_mem lower_map_key(struct lower *l, const struct map_use *map, const struct expr *keys)
{
	const struct shape *shape = map->key;
	ir_mem mem;

	if (!keys || shape->kind == SHAPE_NONE) {
		mem = ir_new_memory(&l->ir, 8);
		ir_zero(&l->ir, mem, 0, 8);
		return mem;
	}
	mem = ir_new_memory(&l->ir, shape->size);
	if (!keys->next) {
		lower_canonical(l, keys, shape, mem, 0);
		return mem;
	}
	for (uint32_t i = 0; keys && i < shape->n_fields; i++, keys = keys->next)
		lower_canonical(l, keys, shape->fields[i].shape, mem, shape->fields[i].offset);
	return mem;
}

ir_value lower_map_find(struct lower *l, const struct map_use *map, ir_mem key)
{
	return IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(number_of(map)), IR_M(key, 0));
}

void lower_load_found(struct lower *l, ir_value p, uint32_t at, ir_value result)
{
	ir_label none = ir_new_label(&l->ir);

	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, none);
	ir_copy(&l->ir, result, ir_load_at(&l->ir, p, (int32_t)at, 8, false));
	ir_place_label(&l->ir, none);
}

void lower_copy_found(struct lower *l, ir_value p, uint32_t at, ir_mem mem, uint32_t n)
{
	ir_label none = ir_new_label(&l->ir);

	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, none);
	for (uint32_t i = 0; i < n; i += 8)
		ir_store(&l->ir, mem, (int32_t)i, 8,
			ir_load_at(&l->ir, p, (int32_t)(at + i), 8, false));
	ir_place_label(&l->ir, none);
}

ir_value lower_map_value(struct lower *l, const struct expr *e)
{
	const struct map_use *map = meaning_of(l, e)->map;
	ir_value result = ir_new_value(&l->ir);
	ir_mem key = lower_map_key(l, map, e->args);

	ir_set_const(&l->ir, result, 0);
	lower_load_found(l, lower_map_find(l, map, key), 0, result);
	return result;
}

struct object lower_map_object(struct lower *l, const struct expr *e)
{
	const struct map_use *map = meaning_of(l, e)->map;
	uint32_t n = map->value->size;
	struct object o = {.kind = OBJECT_MEMORY, .mem = ir_new_memory(&l->ir, n)};
	ir_mem key = lower_map_key(l, map, e->args);

	ir_zero(&l->ir, o.mem, 0, n);
	lower_copy_found(l, lower_map_find(l, map, key), 0, o.mem, n);
	return o;
}

static void count_if_failed(struct lower *l, ir_value rc)
{
	ir_label ok = ir_new_label(&l->ir);

	ir_branch_imm(&l->ir, BPF_JEQ, rc, 0, ok);
	lower_count_loss(l, offsetof(struct clause_loss, map_full));
	ir_place_label(&l->ir, ok);
}

static ir_value update(
	struct lower *l, const struct map_use *map, ir_mem key, struct ir_arg value, int flags)
{
	return IR_CALL_(&l->ir, BPF_FUNC_map_update_elem, IR_MAP(number_of(map)), IR_M(key, 0),
		value, IR_I(flags));
}

void lower_map_assign(struct lower *l, const struct expr *e, const struct expr *value)
{
	const struct map_use *map = meaning_of(l, e)->map;
	ir_mem mem = ir_new_memory(&l->ir, map->value->size), key;

	lower_canonical(l, value, map->value, mem, 0);
	key = lower_map_key(l, map, e->args);
	count_if_failed(l, update(l, map, key, IR_M(mem, 0), MAP_ANY));
}

void lower_map_store(struct lower *l, const struct expr *e, ir_value v)
{
	const struct map_use *map = meaning_of(l, e)->map;
	ir_mem mem = ir_new_memory(&l->ir, 8), key = lower_map_key(l, map, e->args);

	ir_store(&l->ir, mem, 0, 8, v);
	count_if_failed(l, update(l, map, key, IR_M(mem, 0), MAP_ANY));
}

/*
 * p = find(key)
 * if (!p) { if (!update(key, v, NOEXIST)) goto done; p = find(key) } -- another may have been first
 * if (p) *p += v; else count a loss
 */
ir_value lower_map_add(struct lower *l, const struct expr *e, ir_value v, bool is_post)
{
	const struct map_use *map = meaning_of(l, e)->map;
	ir_label there = ir_new_label(&l->ir), done = ir_new_label(&l->ir),
		 lost = ir_new_label(&l->ir);
	ir_value p = ir_new_value(&l->ir), result = ir_new_value(&l->ir);
	ir_mem key = lower_map_key(l, map, e->args), mem = ir_new_memory(&l->ir, 8);

	ir_set_const(&l->ir, result, 0);
	ir_copy(&l->ir, p, lower_map_find(l, map, key));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, there);
	ir_store(&l->ir, mem, 0, 8, v);
	if (!is_post)
		ir_copy(&l->ir, result, v);
	ir_branch_imm(&l->ir, BPF_JEQ, update(l, map, key, IR_M(mem, 0), MAP_NOEXIST), 0, done);
	ir_copy(&l->ir, p, lower_map_find(l, map, key));
	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, lost);
	ir_place_label(&l->ir, there);
	ir_copy(&l->ir, result, ir_load_at(&l->ir, p, 0, 8, false));
	ir_add_atomic(&l->ir, p, 0, v);
	if (!is_post)
		ir_copy(&l->ir, result, ir_alu(&l->ir, BPF_ADD, result, v));
	lower_end_lost(l, lost, done);
	return result;
}

void lower_map_delete(struct lower *l, const struct map_use *map, const struct expr *keys)
{
	ir_mem key = lower_map_key(l, map, keys);

	IR_CALL_(&l->ir, BPF_FUNC_map_delete_elem, IR_MAP(number_of(map)), IR_M(key, 0));
}

/* --- aggregations ----------------------------------------------------------------------------- */

/* The key's value on this CPU, made of zeros when there is none; goes to `lost` when it cannot. */
static ir_value ensure(struct lower *l, const struct map_use *map, ir_mem key, ir_label lost)
{
	ir_label there = ir_new_label(&l->ir);
	ir_value p = ir_new_value(&l->ir), zeros;
	ir_mem index;

	ir_copy(&l->ir, p, lower_map_find(l, map, key));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, there);
	index = lower_index(l, 0);
	zeros = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_ZERO), IR_M(index, 0));
	ir_branch_imm(&l->ir, BPF_JEQ, zeros, 0, lost);
	update(l, map, key, IR_V(zeros), MAP_NOEXIST);
	ir_copy(&l->ir, p, lower_map_find(l, map, key));
	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, lost);
	ir_place_label(&l->ir, there);
	return p;
}

/*
 * The bucket of a value: 0 below zero, 1 for zero, 2 + log2 above. Without branches, since the
 * kernel's verifier would follow each path to the end:
 *   for s in 32, 16, 8, 4, 2, 1: t = (v >> s) != 0; r += t * s; v >>= t * s
 */
static ir_value hist_bucket(struct lower *l, ir_value v, bool is_signed)
{
	ir_value bucket = ir_new_value(&l->ir), r = 0, rest = v;
	ir_label done = ir_new_label(&l->ir);

	if (is_signed) {
		ir_set_const(&l->ir, bucket, 0);
		ir_branch_imm(&l->ir, BPF_JSLT, v, 0, done);
	}
	ir_set_const(&l->ir, bucket, 1);
	ir_branch_imm(&l->ir, BPF_JEQ, v, 0, done);
	for (int s = 32; s; s /= 2) {
		ir_value high = ir_alu_imm(&l->ir, BPF_RSH, rest, s), t;

		t = ir_alu(&l->ir, BPF_OR, high, ir_alu_imm(&l->ir, BPF_MUL, high, -1));
		t = ir_alu_imm(&l->ir, BPF_RSH, t, 63);
		t = ir_alu_imm(&l->ir, BPF_MUL, t, s);
		rest = ir_alu(&l->ir, BPF_RSH, rest, t);
		r = r ? ir_alu(&l->ir, BPF_ADD, r, t) : t;
	}
	ir_copy(&l->ir, bucket, ir_alu_imm(&l->ir, BPF_ADD, r, 2));
	ir_place_label(&l->ir, done);
	return bucket;
}

static ir_value lhist_bucket(
	struct lower *l, ir_value v, const struct shape *shape, bool is_unsigned)
{
	ir_value bucket = ir_new_value(&l->ir), from_min;
	int64_t n = (shape->max - shape->min + shape->step - 1) / shape->step;
	ir_label done = ir_new_label(&l->ir);

	if (is_unsigned) { /* the upper half of 64 bits is large, not negative */
		ir_set_const(&l->ir, bucket, n + 1);
		ir_branch_imm(&l->ir, BPF_JSLT, v, 0, done);
	}
	ir_set_const(&l->ir, bucket, 0);
	ir_branch_imm(&l->ir, BPF_JSLT, v, shape->min, done);
	ir_set_const(&l->ir, bucket, n + 1);
	ir_branch_imm(&l->ir, BPF_JSGE, v, shape->max, done);
	from_min = shape->min ? ir_alu_imm(&l->ir, BPF_ADD, v, -shape->min) : v;
	ir_copy(&l->ir, bucket,
		ir_alu_imm(&l->ir, BPF_ADD, ir_alu_imm(&l->ir, BPF_DIV, from_min, shape->step), 1));
	ir_place_label(&l->ir, done);
	return bucket;
}

static void add_to_bucket(
	struct lower *l, ir_value p, ir_value bucket, uint32_t n_buckets, ir_label lost)
{
	ir_value at;

	ir_branch_imm(&l->ir, BPF_JGT, bucket, n_buckets - 1, lost);
	at = ir_alu(&l->ir, BPF_ADD, p, ir_alu_imm(&l->ir, BPF_LSH, bucket, 3));
	ir_add_atomic(&l->ir, at, 0, ir_const(&l->ir, 1));
}

/* n and the smallest or largest so far; the first value is taken whatever it is. */
static void keep_extreme(
	struct lower *l, ir_value p, ir_value v, enum shape_kind kind, bool is_signed)
{
	ir_label take = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	int keep = kind == SHAPE_MIN ? is_signed ? BPF_JSGE : BPF_JGE
		   : is_signed	     ? BPF_JSLE
				     : BPF_JLE;

	ir_branch_imm(&l->ir, BPF_JEQ, ir_load_at(&l->ir, p, 0, 8, false), 0, take);
	ir_branch(&l->ir, keep, v, ir_load_at(&l->ir, p, 8, 8, false), done);
	ir_place_label(&l->ir, take);
	ir_store_at(&l->ir, p, 8, 8, v);
	ir_place_label(&l->ir, done);
	ir_add_atomic(&l->ir, p, 0, ir_const(&l->ir, 1));
}

static void aggregate_value(struct lower *l, const struct shape *shape, const struct expr *call,
	ir_value p, ir_value v, ir_label lost)
{
	bool is_unsigned = call->args && type_is_unsigned64(type_of(l, call->args));

	switch (shape->kind) {
	case SHAPE_COUNT:
		ir_add_atomic(&l->ir, p, 0, ir_const(&l->ir, 1));
		break;
	case SHAPE_SUM:
		ir_add_atomic(&l->ir, p, 0, v);
		break;
	case SHAPE_MIN:
	case SHAPE_MAX:
		keep_extreme(l, p, v, shape->kind, shape->is_signed);
		break;
	case SHAPE_AVG:
	case SHAPE_STATS:
		ir_add_atomic(&l->ir, p, 0, ir_const(&l->ir, 1));
		ir_add_atomic(&l->ir, p, 8, v);
		break;
	case SHAPE_HIST:
		add_to_bucket(l, p, hist_bucket(l, v, shape->is_signed), shape->size / 8, lost);
		break;
	default:
		add_to_bucket(l, p, lhist_bucket(l, v, shape, is_unsigned), shape->size / 8, lost);
		break;
	}
}

/* @x[keys] = count() and the others. */
void lower_aggregate(struct lower *l, const struct expr *e, const struct expr *call)
{
	const struct map_use *map = meaning_of(l, e)->map;
	ir_label lost = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value v = call->args ? lower_value(l, call->args) : ir_const(&l->ir, 1);
	ir_mem key = lower_map_key(l, map, e->args);
	ir_value p = ensure(l, map, key, lost);

	aggregate_value(l, map->value, call, p, v, lost);
	lower_end_lost(l, lost, done);
}
