/* SPDX-License-Identifier: MIT */
/*
 * Which processes are traced, when not all are: a map that programs look the current process up in,
 * kept right by the programs of bpf/followed.h. A task is followed when its process is in the map, and meant when it
 * is not a thread.
 *
 * A process is taken out when the kernel lets go of its first thread's structure, which is after
 * all threads have ended; but its number may have been given again by then (numbers go round, and a
 * busy kernel lets go some 100 ms late). So each has the time of its beginning as a mark, in the
 * ticks in which /proc says it, too. The numbers come out of struct task_struct, by raw tracepoints:
 * they are gone at once when closed, where perf's keep us waiting for two of the kernel's grace
 * periods. On kernels that do not complete programs (before Linux 5.17, or without BTF) they come from
 * the records of perf's tracepoints, which do not have the time. Numbers are those of the first pid
 * namespace.
 */
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "bpf/attach.h"
#include "bpf/followed.h"
#include "bpf/kernel_fields.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "probe/run/run.h"
#include "process/proc.h"
#include "process/tracepoint.h"

#define FIRST_PID_NAMESPACE  0xeffffffcu /* the kernel's PROC_PID_INIT_INO */
#define FIRST_TIME_NAMESPACE 0xeffffffau /* PROC_TIME_INIT_INO */
#define STAT_START	     22		 /* of /proc/PID/stat, in ticks */
#define NS_A_TICK	     10000000	 /* USER_HZ is 100 on x86 */
#define ROUNDS_MAX	     100

#define AT_PARENT (-4)
#define AT_GROUP  (-8)
#define AT_CHILD  (-16) /* and what struct followed needs */
#define AT_START  (-40)

enum { FIELD_PID, FIELD_TGID, FIELD_START };

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

/* The n bytes at `to` = a field of the task in the first word of the context. */
static void emit_task_field(
	struct bpf_code *c, struct kernel_fields *fields, uint32_t field_i, int to, int32_t n)
{
	bpf_load(c, BPF_DW, BPF_REG_3, BPF_REG_6, 0);
	kernel_fields_add_offset(fields, c, BPF_REG_3, field_i);
	bpf_read_kernel(c, to, n);
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
	emit_task_field(c, &source->fields, FIELD_TGID, AT_GROUP, 4);
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
		emit_task_field(c, &source->fields, FIELD_PID, AT_CHILD, 4);
	}
	if (is_birth)
		emit_first_only(c, source, leave);
}

/* One more than the ticks. */
static void emit_mark(struct bpf_code *c, void *context)
{
	struct task_source *source = context;

	emit_task_field(c, &source->fields, FIELD_START, AT_START, 8);
	bpf_load(c, BPF_DW, BPF_REG_0, BPF_REG_10, AT_START);
	bpf_alu_imm(c, BPF_DIV, BPF_REG_0, NS_A_TICK);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_0, 1);
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

/* ---- processes that are there already ---- */

static bool is_in_namespace(const char *kind, uint32_t inode)
{
	char path[32];
	struct stat own;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return stat(path, &own) < 0 || own.st_ino == inode;
}

static bool add_process(struct probe_session *s, pid_t pid)
{
	uint32_t mark = FOLLOWED_NO_MARK;

	/* In a time namespace /proc has other ticks than the task. */
	if (is_in_namespace("time", FIRST_TIME_NAMESPACE))
		mark = (uint32_t)proc_stat_number(pid, STAT_START) + 1;
	return bpf_map_update(s->maps[STREAM_MAP_PROCESSES], &pid, &mark) == 0;
}

struct kinship {
	struct probe_session *s;
	bool has_grown;
};

static bool is_in_map(const struct probe_session *s, pid_t pid)
{
	uint32_t mark;

	return bpf_map_find(s->maps[STREAM_MAP_PROCESSES], &pid, &mark) == 0;
}

static void take_child(void *ctx, pid_t pid)
{
	struct kinship *k = ctx;

	if (is_in_map(k->s, pid) || !is_in_map(k->s, proc_parent(pid)))
		return;
	if (add_process(k->s, pid))
		k->has_grown = true;
	else
		k->s->followed.n_refused++;
}

/* Those that were made before births were seen, but after the caller looked. A command has not begun. */
static void take_children(struct probe_session *s)
{
	struct kinship k = {s, !s->options.command_pid || s->options.n_pids > 1};

	for (int i = 0; i < ROUNDS_MAX && k.has_grown; i++) {
		k.has_grown = false;
		s->followed.n_refused = 0;
		proc_each_task(0, take_child, &k);
	}
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
	struct task_source source = {.processes_fd = s->maps[STREAM_MAP_PROCESSES],
		.fields = {.type = "task_struct", .names = {"pid", "tgid", "start_boottime"}}};
	struct err why = {0};
	int rc = -1;

	if (!is_needed(s))
		return 0;
	if (!is_in_namespace("pid", FIRST_PID_NAMESPACE))
		return err_set(err, ERR_UNSUPPORTED,
			"weir is in a pid namespace of its own (a container), where processes have other "
			"numbers than in the kernel, so -c and -p cannot tell them apart: run weir outside, "
			"or without -c and -p");
	s->followed = (struct followed){.map_fd = source.processes_fd,
		.at = AT_CHILD,
		.emit_current = emit_current,
		.emit_key = emit_key,
		.emit_mark = emit_mark,
		.context = &source};
	rc = followed_open(&s->followed, err);
	if (rc < 0)
		return rc;
	rc = -1;
	if (s->features.has_btf)
		rc = watch_both(s, &source, &why);
	if (rc < 0)
		rc = find_records(s, &source, &why);
	s->followed.emit_mark = NULL;
	if (rc == 0 && source.has_record)
		rc = watch_both(s, &source, &why);
	kernel_fields_release(&source.fields);
	s->followed.context = NULL; /* the programs are made */
	if (rc == ERR_PERMISSION)
		return err_set(err, rc, "%s", why.text);
	if (rc < 0)
		session_note(s, "children of traced processes are not followed: %s", why.text);
	for (size_t i = 0; i < s->options.n_pids; i++)
		add_process(s, s->options.pids[i]);
	take_children(s);
	return 0;
}
