/* SPDX-License-Identifier: MIT */
/*
 * The programs beside those of bpf/followed.h, in pseudo-C:
 *
 *   is_followed(task):   tasks[task] || (!on_exec && roots[tid] && (delete roots[tid], tasks[task] = 1))
 *   sched_process_exec:  if (on_exec && roots[tid]) { delete roots[tid]; tasks[current] = 1; }
 *   a sample:            return is_followed(current);
 */
#include "record/task_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <linux/perf_event.h>

#include "base/file.h"
#include "base/mem.h"
#include "bpf/attach.h"
#include "bpf/followed.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"

#define TASKS_MAX	   65536 /* followed at a time */
#define ROOTS_MAX	   65536
#define FIRST_NAMESPACE_ID 0xeffffffcu /* PROC_PID_INIT_INO: the same on every machine */

#define AT_TASK	  (TASK_FILTER_STACK - 8)
#define AT_NUMBER (TASK_FILTER_STACK - 16) /* struct bpf_pidns_info */
#define AT_CHILD  (TASK_FILTER_STACK - 24) /* and what struct followed needs */

struct task_filter {
	bool on_exec;
	int tasks_fd;	/* address of a task -> 1 */
	int roots_fd;	/* tid of one that was added, until it is seen -> 1 */
	int program_fd; /* -1 = not loaded yet */
	struct followed followed;
	VEC(int) links;
};

/* False: another one than the first. */
static bool is_first_namespace(struct stat *ns)
{
	return stat("/proc/self/ns/pid", ns) < 0 || ns->st_ino == FIRST_NAMESPACE_ID;
}

bool task_numbers_are_whole(void)
{
	struct stat ns;

	return is_first_namespace(&ns);
}

void task_number_emit(struct bpf_code *c)
{
	struct stat ns;

	if (is_first_namespace(&ns)) {
		bpf_call(c, BPF_FUNC_get_current_pid_tgid);
		bpf_alu_imm(c, BPF_LSH, BPF_REG_0, 32);
		bpf_alu_imm(c, BPF_RSH, BPF_REG_0, 32);
		return;
	}
	bpf_load_imm64(c, BPF_REG_1, ns.st_dev);
	bpf_load_imm64(c, BPF_REG_2, ns.st_ino);
	bpf_stack_address(c, BPF_REG_3, AT_NUMBER);
	bpf_mov_imm(c, BPF_REG_4, sizeof(struct bpf_pidns_info));
	bpf_call(c, BPF_FUNC_get_ns_current_pid_tgid); /* zeros when it is in another one */
	bpf_load(c, BPF_W, BPF_REG_0, BPF_REG_10, AT_NUMBER);
}

/* The current task, when it was added by its number. */
static void emit_take_root(struct bpf_code *c, const struct task_filter *f, int leave)
{
	task_number_emit(c);
	bpf_store(c, BPF_W, BPF_REG_10, AT_NUMBER, BPF_REG_0);
	bpf_find(c, f->roots_fd, AT_NUMBER);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	bpf_load_map(c, BPF_REG_1, f->roots_fd);
	bpf_stack_address(c, BPF_REG_2, AT_NUMBER);
	bpf_call(c, BPF_FUNC_map_delete_elem);
	bpf_call(c, BPF_FUNC_get_current_task);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_TASK, BPF_REG_0);
	followed_emit_add(c, &f->followed, AT_TASK);
}

void task_filter_emit(struct bpf_code *c, const struct task_filter *f, int leave)
{
	int followed = bpf_label(c);

	if (!f)
		return;
	bpf_call(c, BPF_FUNC_get_current_task);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_TASK, BPF_REG_0);
	bpf_find(c, f->tasks_fd, AT_TASK);
	if (f->on_exec) {
		bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
	} else {
		bpf_jump_imm(c, BPF_JNE, BPF_REG_0, 0, followed);
		emit_take_root(c, f, leave);
	}
	bpf_place(c, followed);
}

static void emit_current(struct bpf_code *c, void *context, int leave)
{
	task_filter_emit(c, context, leave);
}

/* Its address is the first word of the context. */
static void emit_key(struct bpf_code *c, void *context, bool is_birth, int leave)
{
	(void)context, (void)is_birth, (void)leave;
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_6, 0);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_CHILD, BPF_REG_1);
}

static void emit_born(struct bpf_code *c, const struct task_filter *f)
{
	followed_emit_born(c, &f->followed);
}

static void emit_gone(struct bpf_code *c, const struct task_filter *f)
{
	followed_emit_gone(c, &f->followed);
}

static void emit_exec(struct bpf_code *c, const struct task_filter *f)
{
	int leave = bpf_label(c);

	emit_take_root(c, f, leave);
	bpf_place(c, leave);
	bpf_return_0(c);
}

static void emit_sample(struct bpf_code *c, const struct task_filter *f)
{
	int leave = bpf_label(c);

	task_filter_emit(c, f, leave);
	bpf_mov_imm(c, BPF_REG_0, 1);
	bpf_exit(c);
	bpf_place(c, leave);
	bpf_return_0(c);
}

static int watch(struct task_filter *f, const char *tracepoint,
	void (*emit)(struct bpf_code *c, const struct task_filter *f), struct err *err)
{
	struct bpf_code code = {0};
	FD_AUTO program = -1;
	int link;

	emit(&code, f);
	program = bpf_program_load(BPF_PROG_TYPE_RAW_TRACEPOINT, tracepoint, &code, err);
	bpf_code_release(&code);
	if (program < 0)
		return program;
	link = bpf_attach_raw_tracepoint(program, tracepoint);
	if (link < 0)
		return err_sys(err, -link, "the tracepoint %s", tracepoint);
	vec_push(&f->links, link);
	return 0;
}

static int open_map(int *fd, const struct bpf_map_spec *spec, struct err *err)
{
	*fd = bpf_map_open(spec);
	return *fd < 0 ? err_sys(err, -*fd, "BPF map '%s': cannot be made", spec->name) : 0;
}

static int open_maps(struct task_filter *f, struct err *err)
{
	/* Filled in advance: programs of perf events run where nothing can be allocated. */
	static const struct bpf_map_spec tasks = {
		BPF_MAP_TYPE_HASH, sizeof(uint64_t), sizeof(uint32_t), TASKS_MAX, 0, "weir_tasks"};
	struct bpf_map_spec roots = {BPF_MAP_TYPE_HASH, sizeof(uint32_t), sizeof(uint32_t),
		f->on_exec ? 1 : ROOTS_MAX, 0, "weir_roots"};
	int rc = open_map(&f->tasks_fd, &tasks, err);

	if (rc == 0)
		rc = open_map(&f->roots_fd, &roots, err);
	f->followed.map_fd = f->tasks_fd;
	if (rc == 0)
		rc = followed_open(&f->followed, err);
	return rc;
}

int task_filter_open(struct task_filter **out, bool on_exec, struct err *err)
{
	struct task_filter *f = mem_zalloc(sizeof(*f));
	int rc;

	f->on_exec = on_exec;
	f->tasks_fd = f->roots_fd = f->program_fd = -1;
	f->followed = (struct followed){.left_out_fd = -1,
		.at = AT_CHILD,
		.emit_current = emit_current,
		.emit_key = emit_key,
		.context = f};
	rc = open_maps(f, err);
	if (rc == 0)
		rc = watch(f, "sched_process_free", emit_gone, err);
	if (rc == 0)
		rc = watch(f, "task_newtask", emit_born, err);
	if (rc == 0 && on_exec)
		rc = watch(f, "sched_process_exec", emit_exec, err);
	if (rc < 0)
		task_filter_close(f);
	else
		*out = f;
	return rc;
}

void task_filter_close(struct task_filter *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->links.n; i++)
		fd_cleanup(&f->links.v[i]);
	vec_release(&f->links);
	fd_cleanup(&f->program_fd);
	fd_cleanup(&f->tasks_fd);
	fd_cleanup(&f->roots_fd);
	followed_close(&f->followed);
	free(f);
}

int task_filter_add(struct task_filter *f, pid_t tid, struct err *err)
{
	uint32_t number = (uint32_t)tid, one = 1;
	int rc = bpf_map_update(f->roots_fd, &number, &one);

	return rc < 0 ? err_sys(err, -rc, "thread %d: cannot be followed", tid) : 0;
}

int task_filter_attach(struct task_filter *f, int perf_fd, struct err *err)
{
	struct bpf_code code = {0};

	if (f->program_fd < 0) {
		emit_sample(&code, f);
		f->program_fd =
			bpf_program_load(BPF_PROG_TYPE_PERF_EVENT, "weir_filter", &code, err);
		bpf_code_release(&code);
	}
	if (f->program_fd < 0)
		return f->program_fd;
	if (ioctl(perf_fd, PERF_EVENT_IOC_SET_BPF, f->program_fd) < 0)
		return err_sys(err, errno, "BPF program 'weir_filter': cannot be attached");
	return 0;
}

uint64_t task_filter_n_left_out(const struct task_filter *f)
{
	return f ? followed_n_left_out(&f->followed) : 0;
}
