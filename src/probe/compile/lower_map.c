/* SPDX-License-Identifier: MIT */
/*
 * Maps: keys and values are canonical. Adding is atomic, so that nothing is lost when threads meet
 * at a key, or when one is interrupted in the middle of it (per-CPU values).
 */
#include <errno.h>
#include <stddef.h>

#include "probe/compile/lower.h"

ir_mem lower_map_key(struct lower *l, const struct map_use *map, const struct expr *keys)
{
	const struct type *type = map->key_type[l->mode];
	struct destination part;
	ir_mem mem;

	if (!keys || type->kind == TYPE_VOID) {
		mem = ir_new_memory(&l->ir, 8);
		ir_zero(&l->ir, mem, 0, 8);
		return mem;
	}
	mem = ir_new_memory(&l->ir, map->key->size);
	if (!keys->next) {
		lower_store(l, keys, (struct destination){type, mem, 0});
		return mem;
	}
	for (uint32_t i = 0; keys && i < type->n_fields; i++, keys = keys->next) {
		part = (struct destination){type->fields[i].type, mem, lower_tuple_offset(type, i)};
		lower_store(l, keys, part);
	}
	return mem;
}

/* A stack that weir is still to walk, out of a copy, has a number of its own each time: what is in the map
 * under it is not found by it, and none is not the same as not known. */
static void need_walked(struct lower *l, const struct shape *shape, ir_mem key, uint32_t at)
{
	ir_label known;
	ir_value id;

	for (uint32_t i = 0; shape->kind == SHAPE_TUPLE && i < shape->n_fields; i++)
		need_walked(l, shape->fields[i].shape, key, at + shape->fields[i].offset);
	if (shape->kind != SHAPE_USTACK)
		return;
	known = ir_new_label(&l->ir);
	id = ir_load(&l->ir, key, (int32_t)at, 8, false);
	ir_branch_imm(&l->ir, BPF_JEQ, id, 0, known);
	ir_branch_imm(&l->ir, BPF_JSET, id, 1, known);
	lower_fail(l, FAILURE_UNWALKED, ENOENT);
	ir_place_label(&l->ir, known);
}

ir_mem lower_map_read_key(struct lower *l, const struct map_use *map, const struct expr *keys)
{
	ir_mem key = lower_map_key(l, map, keys);

	if (map->key)
		need_walked(l, map->key, key, 0);
	return key;
}

ir_value lower_map_find(struct lower *l, const struct map_use *map, ir_mem key)
{
	return IR_CALL_(
		&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(lower_map_number(map)), IR_M(key, 0));
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
	ir_mem key = lower_map_read_key(l, map, e->args);

	if (shape_is_aggregation(map->value))
		return lower_aggregated(l, map, key);
	ir_set_const(&l->ir, result, 0);
	lower_load_found(l, lower_map_find(l, map, key), 0, result);
	return result;
}

struct object lower_map_object(struct lower *l, const struct expr *e)
{
	const struct map_use *map = meaning_of(l, e)->map;
	uint32_t n = map->value->size;
	struct object o = {.kind = OBJECT_MEMORY, .mem = ir_new_memory(&l->ir, n)};
	ir_mem key = lower_map_read_key(l, map, e->args);

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

ir_value lower_map_update(
	struct lower *l, const struct map_use *map, ir_mem key, struct ir_arg value, int flags)
{
	return IR_CALL_(&l->ir, BPF_FUNC_map_update_elem, IR_MAP(lower_map_number(map)),
		IR_M(key, 0), value, IR_I(flags));
}

void lower_map_assign(struct lower *l, const struct expr *e, const struct expr *value)
{
	const struct map_use *map = meaning_of(l, e)->map;
	ir_mem mem = ir_new_memory(&l->ir, map->value->size), key;

	lower_store(l, value, (struct destination){map->value_type[l->mode], mem, 0});
	key = lower_map_key(l, map, e->args);
	count_if_failed(l, lower_map_update(l, map, key, IR_M(mem, 0), BPF_ANY));
}

void lower_map_store(struct lower *l, const struct expr *e, ir_value v)
{
	const struct map_use *map = meaning_of(l, e)->map;
	ir_mem mem = ir_new_memory(&l->ir, 8), key = lower_map_key(l, map, e->args);

	ir_store(&l->ir, mem, 0, 8, v);
	count_if_failed(l, lower_map_update(l, map, key, IR_M(mem, 0), BPF_ANY));
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
	ir_branch_imm(
		&l->ir, BPF_JEQ, lower_map_update(l, map, key, IR_M(mem, 0), BPF_NOEXIST), 0, done);
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

ir_value lower_map_delete(struct lower *l, const struct map_use *map, const struct expr *keys)
{
	ir_mem key = lower_map_read_key(l, map, keys);

	return IR_CALL_(
		&l->ir, BPF_FUNC_map_delete_elem, IR_MAP(lower_map_number(map)), IR_M(key, 0));
}
