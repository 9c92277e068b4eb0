/* SPDX-License-Identifier: MIT */
/* Thread-locals: words of the task's storage, which the kernel frees with the thread. */
#include "probe/compile/lower.h"

#define STORAGE_CREATE 1 /* BPF_LOCAL_STORAGE_GET_F_CREATE */

static ir_value storage(struct lower *l, int flags)
{
	ir_value task = ir_call(&l->ir, BPF_FUNC_get_current_task_btf, NULL, 0);

	return IR_CALL_(&l->ir, BPF_FUNC_task_storage_get, IR_MAP(STREAM_MAP_SELF), IR_V(task),
		IR_I(0), IR_I(flags));
}

/* One that was never set is 0. */
ir_value lower_self_value(struct lower *l, const struct variable *v)
{
	ir_value result = ir_new_value(&l->ir);

	ir_set_const(&l->ir, result, 0);
	lower_load_found(l, storage(l, 0), v->offset, result);
	return result;
}

struct object lower_self_object(struct lower *l, const struct variable *v)
{
	uint32_t n = lower_padded_size(v->type[l->mode]);
	struct object o = {.kind = OBJECT_MEMORY, .mem = ir_new_memory(&l->ir, n)};

	ir_zero(&l->ir, o.mem, 0, n);
	lower_copy_found(l, storage(l, 0), v->offset, o.mem, n);
	return o;
}

void lower_self_set(struct lower *l, const struct variable *v, ir_value value)
{
	ir_label none = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value p = storage(l, STORAGE_CREATE);

	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, none);
	ir_store_at(&l->ir, p, (int32_t)v->offset, 8, value);
	lower_end_lost(l, none, done);
}

void lower_self_assign(struct lower *l, const struct variable *v, const struct expr *value)
{
	uint32_t n = lower_padded_size(v->type[l->mode]);
	ir_label none = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_mem mem = ir_new_memory(&l->ir, n);
	ir_value p;

	lower_store(l, value, (struct destination){v->type[l->mode], mem, 0});
	p = storage(l, STORAGE_CREATE);
	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, none);
	for (uint32_t i = 0; i < n; i += 8)
		ir_store_at(&l->ir, p, (int32_t)(v->offset + i), 8,
			ir_load(&l->ir, mem, (int32_t)i, 8, false));
	lower_end_lost(l, none, done);
}
