/* SPDX-License-Identifier: MIT */
#include "bpf/followed.h"

#include "base/file.h"
#include "bpf/kernel_map.h"

static int mark_at(const struct followed *f)
{
	return f->at - FOLLOWED_STACK + 8;
}

int followed_open(struct followed *f, struct err *err)
{
	static const struct bpf_map_spec spec = {
		BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(uint64_t), 1, 0, "weir_left_out"};

	f->left_out_fd = bpf_map_open(&spec);
	return f->left_out_fd < 0
		       ? err_sys(err, -f->left_out_fd, "BPF map '%s': cannot be made", spec.name)
		       : 0;
}

void followed_close(struct followed *f)
{
	fd_cleanup(&f->left_out_fd);
}

uint64_t followed_n_left_out(const struct followed *f)
{
	uint64_t n = 0;
	uint32_t key = 0;

	if (f->left_out_fd >= 0 && bpf_map_find(f->left_out_fd, &key, &n) < 0)
		n = 0;
	return n + f->n_refused;
}

/* With the mark that lies on the stack. */
static void emit_add(struct bpf_code *c, const struct followed *f, int at)
{
	bpf_load_map(c, BPF_REG_1, f->map_fd);
	bpf_stack_address(c, BPF_REG_2, at);
	bpf_stack_address(c, BPF_REG_3, mark_at(f));
	bpf_mov_imm(c, BPF_REG_4, BPF_ANY);
	bpf_call(c, BPF_FUNC_map_update_elem);
}

void followed_emit_add(struct bpf_code *c, const struct followed *f, int at)
{
	bpf_store_imm(c, BPF_W, BPF_REG_10, (int16_t)mark_at(f), 1);
	emit_add(c, f, at);
}

static void emit_mark(struct bpf_code *c, const struct followed *f)
{
	if (f->emit_mark)
		f->emit_mark(c, f->context);
	else
		bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_store(c, BPF_W, BPF_REG_10, (int16_t)mark_at(f), BPF_REG_0);
}

static void emit_delete(struct bpf_code *c, const struct followed *f)
{
	bpf_load_map(c, BPF_REG_1, f->map_fd);
	bpf_stack_address(c, BPF_REG_2, f->at);
	bpf_call(c, BPF_FUNC_map_delete_elem);
}

void followed_emit_born(struct bpf_code *c, const struct followed *f)
{
	int leave = bpf_label(c), is_other = bpf_label(c);

	bpf_mov(c, BPF_REG_6, BPF_REG_1);
	f->emit_key(c, f->context, true, leave);
	f->emit_current(c, f->context, is_other);
	emit_mark(c, f);
	emit_add(c, f, f->at);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_store_imm(c, BPF_W, BPF_REG_10, (int16_t)mark_at(f), 0);
	bpf_find(c, f->left_out_fd, mark_at(f));
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_mov_imm(c, BPF_REG_1, 1);
	bpf_atomic(c, BPF_ADD, BPF_REG_0, 0, BPF_REG_1);
	bpf_jump(c, leave);
	bpf_place(c, is_other);
	emit_delete(c, f);
	bpf_place(c, leave);
	bpf_return_0(c);
}

void followed_emit_gone(struct bpf_code *c, const struct followed *f)
{
	int leave = bpf_label(c), is_it = bpf_label(c);

	bpf_mov(c, BPF_REG_6, BPF_REG_1);
	f->emit_key(c, f->context, false, leave);
	emit_mark(c, f);
	bpf_find(c, f->map_fd, f->at);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_load(c, BPF_W, BPF_REG_1, BPF_REG_0, 0);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_1, FOLLOWED_NO_MARK, is_it);
	bpf_load(c, BPF_W, BPF_REG_2, BPF_REG_10, (int16_t)mark_at(f));
	bpf_jump_reg(c, BPF_JNE, BPF_REG_1, BPF_REG_2, leave);
	bpf_place(c, is_it);
	emit_delete(c, f);
	bpf_place(c, leave);
	bpf_return_0(c);
}
