/* SPDX-License-Identifier: MIT */
/*
 * The kernel takes a task's perf events away when it begins a program with other rights (setuid,
 * file capabilities) or one that may not be read. Uprobes that hang on events do not see that
 * program, nor what it starts; it is counted, so that nothing is missing without a word:
 *
 *   sched_process_exec:  if (processes[current's process] && !task->perf_event_ctxp)
 *                                unseen++;
 */

#include "base/file.h"
#include "bpf/attach.h"
#include "bpf/kernel_fields.h"
#include "bpf/kernel_map.h"
#include "probe/run/run.h"

#define AT_KEY	   (-4)
#define AT_POINTER (-16)

static void emit(struct bpf_code *c, const struct probe_session *s, struct kernel_fields *fields)
{
	int leave = bpf_label(c);

	bpf_mov(c, BPF_REG_6, BPF_REG_1);
	bpf_call(c, BPF_FUNC_get_current_pid_tgid);
	bpf_alu_imm(c, BPF_RSH, BPF_REG_0, 32);
	bpf_store(c, BPF_W, BPF_REG_10, AT_KEY, BPF_REG_0);
	bpf_find(c, s->maps[STREAM_MAP_PROCESSES], AT_KEY);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_load(c, BPF_DW, BPF_REG_3, BPF_REG_6, 0);
	kernel_fields_add_offset(fields, c, BPF_REG_3, 0);
	bpf_read_kernel(c, AT_POINTER, 8);
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_10, AT_POINTER);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_1, 0, leave);
	bpf_store_imm(c, BPF_W, BPF_REG_10, AT_KEY, 0);
	bpf_find(c, s->named.unseen_map, AT_KEY);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_mov_imm(c, BPF_REG_1, 1);
	bpf_atomic(c, BPF_ADD, BPF_REG_0, 0, BPF_REG_1);
	bpf_place(c, leave);
	bpf_return_0(c);
}

int exec_watch_open(struct probe_session *s, struct err *err)
{
	static const struct bpf_map_spec map = {BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0, "unseen"};
	struct kernel_fields fields = {
		.type = "task_struct", .names = {"perf_event_ctxp"}, .is_pointer = {true}};
	struct bpf_program_spec spec = {
		.name = "sched_process_exec", .type = BPF_PROG_TYPE_RAW_TRACEPOINT};
	struct bpf_code c = {0};
	FD_AUTO fd = -1;
	int link;

	s->named.unseen_map = bpf_map_open(&map);
	if (s->named.unseen_map < 0)
		return err_sys(err, -s->named.unseen_map, "a map");
	emit(&c, s, &fields);
	spec.insns = c.insns.v;
	spec.n_insns = c.insns.n;
	fd = kernel_fields_open_program(&fields, &spec);
	bpf_code_release(&c);
	kernel_fields_release(&fields);
	link = fd < 0 ? fd : bpf_attach_raw_tracepoint(fd, spec.name);
	if (link < 0)
		return err_sys(err, -link, "the tracepoint %s", spec.name);
	attach_keep(s, link, -1);
	return 0;
}
