/* SPDX-License-Identifier: MIT */
/*
 * Which processes are traced, when not all are: a map that programs look the current process up in,
 * kept right by the programs of bpf/followed.h. A task is followed when its process is in the map, and meant when it
 * is not a thread.
 *
 * A process is taken out when the kernel lets go of its first thread's structure, which is after
 * all threads have ended and before its number is given again (numbers go round). The numbers come
 * out of struct task_struct, by raw tracepoints: they are gone at once when closed, where perf's
 * keep us waiting for two of the kernel's grace periods. On kernels that do not complete programs
 * (before Linux 5.17, or without BTF) they come from the records of perf's tracepoints. Numbers are
 * those of the first pid namespace.
 */
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sys/stat.h>

#include "base/file.h"
#include "bpf/attach.h"
#include "bpf/followed.h"
#include "bpf/kernel_fields.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "probe/run/run.h"
#include "process/tracepoint.h"

#define FIRST_PID_NAMESPACE 0xeffffffcu /* the kernel's PROC_PID_INIT_INO */

#define AT_PARENT (-4)
#define AT_GROUP  (-8)
#define AT_CHILD  (-16) /* and what struct followed needs */

enum { FIELD_PID, FIELD_TGID };

/* How a program learns the number of the task that its tracepoint is about: from the tracepoint's
 * record, else from the task's structure. */
struct task_source {
	int processes_fd;
	bool has_record;
	struct tracepoint born, gone;
	struct kernel_fields fields;
};

static int find_records(struct probe_session *s, struct task_source *source, struct err *err)
{
	static const struct tracepoint_spec born = {"task/task_newtask", {"pid", "clone_flags"}};
	static const struct tracepoint_spec gone = {"sched/sched_process_free", {"pid"}};
	int rc;

	if (!s->features.has_tracefs)
		return err_set(err, ERR_UNSUPPORTED, "tracefs is switched off");
	rc = tracepoint_find(&source->born, &born, err);
	if (rc == 0)
		rc = tracepoint_find(&source->gone, &gone, err);
	source->has_record = rc == 0;
	return rc;
}

/* The word at `to` = a number of the task in the first word of the context. */
static void emit_task_word(
	struct bpf_code *c, struct kernel_fields *fields, uint32_t field_i, int to)
{
	bpf_load(c, BPF_DW, BPF_REG_3, BPF_REG_6, 0);
	kernel_fields_add_offset(fields, c, BPF_REG_3, field_i);
	bpf_read_kernel(c, to, 4);
}

/* A new task that is not its process's first one is not meant. */
static void emit_first_only(struct bpf_code *c, struct task_source *source, int leave)
{
	if (source->has_record) {
		bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_6, (int16_t)source->born.fields[1].at);
		bpf_alu_imm(c, BPF_AND, BPF_REG_1, CLONE_THREAD);
		bpf_jump_imm(c, BPF_JNE, BPF_REG_1, 0, leave);
		return;
	}
	emit_task_word(c, &source->fields, FIELD_TGID, AT_GROUP);
	bpf_load(c, BPF_W, BPF_REG_1, BPF_REG_10, AT_CHILD);
	bpf_load(c, BPF_W, BPF_REG_2, BPF_REG_10, AT_GROUP);
	bpf_jump_reg(c, BPF_JNE, BPF_REG_1, BPF_REG_2, leave);
}

static void emit_key(struct bpf_code *c, void *context, bool is_birth, int leave)
{
	struct task_source *source = context;
	const struct tracepoint *point = is_birth ? &source->born : &source->gone;

	if (source->has_record) {
		bpf_load(c, BPF_W, BPF_REG_1, BPF_REG_6, (int16_t)point->fields[0].at);
		bpf_store(c, BPF_W, BPF_REG_10, AT_CHILD, BPF_REG_1);
	} else {
		emit_task_word(c, &source->fields, FIELD_PID, AT_CHILD);
	}
	if (is_birth)
		emit_first_only(c, source, leave);
}

static void emit_current(struct bpf_code *c, void *context, int leave)
{
	const struct task_source *source = context;

	bpf_call(c, BPF_FUNC_get_current_pid_tgid);
	bpf_alu_imm(c, BPF_RSH, BPF_REG_0, 32);
	bpf_store(c, BPF_W, BPF_REG_10, AT_PARENT, BPF_REG_0);
	bpf_find(c, source->processes_fd, AT_PARENT);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, leave);
}

static int watch(
	struct probe_session *s, struct task_source *source, bool is_birth, struct err *err)
{
	const char *name = is_birth ? "task_newtask" : "sched_process_free";
	const struct tracepoint *point = is_birth ? &source->born : &source->gone;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .config = point->id, .sample_period = 1};
	struct bpf_code c = {0};
	struct bpf_program_spec spec = {.name = name,
		.type = source->has_record ? BPF_PROG_TYPE_TRACEPOINT
					   : BPF_PROG_TYPE_RAW_TRACEPOINT};
	FD_AUTO fd = -1;
	int rc;

	(is_birth ? followed_emit_born : followed_emit_gone)(&c, &s->followed);
	spec.insns = c.insns.v;
	spec.n_insns = c.insns.n;
	fd = source->has_record ? bpf_program_open(&spec, NULL, 0)
				: kernel_fields_open_program(&source->fields, &spec);
	source->fields.uses.n = 0;
	bpf_code_release(&c);
	if (fd < 0)
		return kernel_refusal(err, -fd, name);
	if (source->has_record) {
		rc = attach_event(s, fd, &attr, 0, 0);
	} else {
		rc = bpf_attach_raw_tracepoint(fd, name);
		if (rc >= 0)
			attach_keep(s, rc, -1);
	}
	return rc < 0 ? kernel_refusal(err, -rc, name) : 0;
}

static int watch_both(struct probe_session *s, struct task_source *source, struct err *err)
{
	int rc = watch(s, source, true, err);

	return rc < 0 ? rc : watch(s, source, false, err);
}

static bool is_needed(const struct probe_session *s)
{
	for (size_t i = 0; s->filters && i < s->programs.n; i++)
		if (!point_has(s->programs.v[i].kind, POINT_IS_OURS))
			return true;
	return false;
}

int process_filter_open(struct probe_session *s, struct err *err)
{
	static const uint8_t one = 1;
	struct task_source source = {.processes_fd = s->maps[STREAM_MAP_PROCESSES],
		.fields = {.type = "task_struct", .names = {"pid", "tgid"}}};
	struct err why = {0};
	struct stat own;
	int rc = -1;

	if (!is_needed(s))
		return 0;
	if (stat("/proc/self/ns/pid", &own) == 0 && own.st_ino != FIRST_PID_NAMESPACE)
		return err_set(err, ERR_UNSUPPORTED,
			"weir is in a pid namespace of its own (a container), where processes have other "
			"numbers than in the kernel, so -c and -p cannot tell them apart: run weir outside, "
			"or without -c and -p");
	s->followed = (struct followed){.map_fd = source.processes_fd,
		.at = AT_CHILD,
		.emit_current = emit_current,
		.emit_key = emit_key,
		.context = &source};
	rc = followed_open(&s->followed, err);
	if (rc < 0)
		return rc;
	rc = -1;
	if (s->features.has_btf)
		rc = watch_both(s, &source, &why);
	if (rc < 0)
		rc = find_records(s, &source, &why);
	if (rc == 0 && source.has_record)
		rc = watch_both(s, &source, &why);
	kernel_fields_release(&source.fields);
	s->followed.context = NULL; /* the programs are made */
	if (rc == ERR_PERMISSION)
		return err_set(err, rc, "%s", why.text);
	if (rc < 0)
		session_note(s, "children of traced processes are not followed: %s", why.text);
	for (size_t i = 0; i < s->options.n_pids; i++)
		bpf_map_update(s->maps[STREAM_MAP_PROCESSES], &s->options.pids[i], &one);
	return 0;
}
