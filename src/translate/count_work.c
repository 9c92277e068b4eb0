/* SPDX-License-Identifier: MIT */
/* What translators tell of their programs, as counts (translate/counts.h); programs, threads and what is mapped as
 * records of the trace's life. */
#include "translate/count_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "process/proc.h"

#define STACK_BYTES_MAX (8u << 20)
#define CODE_BYTES_MAX	(64u << 10)

/* Memory whose code is in a file, and need not be kept. */
struct file_code {
	uint64_t start, end;
};

struct counted_program {
	struct process *process;
	struct counts *counts;
	VEC(struct file_code)
	files; /* in the order in which they were asked for: the last one is right */
};

static struct counted_program *data_of(const struct traced_program *p)
{
	return p->data;
}

static void note(void *ctx, const char *sentence)
{
	const struct count_session *s = ctx;

	if (s->options->note)
		s->options->note(s->options->ctx, sentence);
}

static void tell(
	void *ctx, struct traced_program *p, bool is_loss, uint64_t n, const char *sentence)
{
	(void)ctx;
	counts_tell(data_of(p)->counts, is_loss, n, sentence);
}

/* --- stacks ------------------------------------------------------------------------------------ */

struct stack_search {
	uint64_t sp, guard_end, low, high;
};

/* One with a name of the kernel's, or memory behind a page that cannot be used, as threads get it. */
static void look_for_stack(void *ctx, const struct proc_mapping *m)
{
	struct stack_search *search = ctx;
	bool is_stack = !strcmp(m->path, "[stack]");

	if (search->sp >= m->start && search->sp < m->end && m->prot & PROT_WRITE &&
		(is_stack || (!m->path[0] && m->start == search->guard_end))) {
		search->high = m->end;
		/* It grows. */
		search->low = is_stack && m->end - m->start < STACK_BYTES_MAX
				      ? m->end - STACK_BYTES_MAX
				      : m->start;
	}
	search->guard_end = m->prot & (PROT_READ | PROT_WRITE | PROT_EXEC) ? 0 : m->end;
}

bool count_find_stack(void *pid, uint64_t sp, uint64_t *low, uint64_t *high)
{
	struct stack_search search = {.sp = sp};

	if (proc_each_mapping(*(const pid_t *)pid, look_for_stack, &search, NULL) < 0 || !search.high)
		return false;
	*low = search.low;
	*high = search.high;
	return true;
}

/* --- programs and threads ---------------------------------------------------------------------- */

static void begin_program(struct traced_program *p, struct process *process)
{
	struct counted_program *d = mem_zalloc(sizeof(*d));

	p->data = d;
	d->process = process;
	d->counts = counts_new(p->pid);
	counts_set_space(d->counts, &process->space);
	counts_set_stacks(d->counts, count_find_stack, &p->pid);
}

/* Its figures go to the trace. */
static void program_gone(void *ctx, struct traced_program *p)
{
	struct count_session *s = ctx;
	struct counted_program *d = p->data;

	count_trace_add(s->figures, d->counts, d->process, clock_mono_ns());
	counts_free(d->counts);
	vec_release(&d->files);
	free(d);
}

static void process_new(void *ctx, struct traced_program *p, bool was_running)
{
	struct count_session *s = ctx;
	char command_line[4096];
	uint64_t time = clock_mono_ns();
	struct process *process;

	proc_command_line(p->pid, command_line, sizeof(command_line));
	process = processes_start(s->processes, (uint32_t)p->pid, (uint32_t)proc_parent(p->pid),
		was_running ? proc_start_ns(p->pid) : time, time, was_running ? command_line : "");
	process->was_running = was_running;
	process->is_named = true;
	s->result->n_processes++;
	begin_program(p, process);
}

static void look_at_name(struct count_session *s, const struct traced_thread *t)
{
	char name[64];

	proc_name(t->program->pid, t->tid, name, sizeof(name));
	if (name[0])
		processes_name_thread(s->processes, (uint32_t)t->program->pid, (uint32_t)t->tid,
			clock_mono_ns(), name);
}

static void thread_new(void *ctx, struct traced_thread *t)
{
	struct count_session *s = ctx;

	s->result->n_threads++;
	processes_thread(
		s->processes, (uint32_t)t->program->pid, (uint32_t)t->tid, clock_mono_ns());
	look_at_name(s, t);
}

static void forked(void *ctx, struct traced_thread *by, struct traced_thread *t)
{
	struct count_session *s = ctx;
	struct traced_program *parent = by->program, *p = t->program;
	struct counted_program *from = data_of(parent);

	processes_fork(s->processes, &(struct thread_id){(uint32_t)p->pid, (uint32_t)t->tid},
		&(struct thread_id){(uint32_t)parent->pid, (uint32_t)by->tid}, clock_mono_ns());
	if (p != parent) {
		begin_program(p, processes_get(s->processes, (uint32_t)p->pid, clock_mono_ns()));
		s->result->n_processes++;
		for (size_t i = 0; by->is_translated && i < from->files.n; i++)
			vec_push(&data_of(p)->files, from->files.v[i]);
	}
	thread_new(s, t);
	if (p != parent && t->is_translated && program_share_blocks(&s->tracer, parent, p)) {
		thread_read_events(&s->tracer, by, 0);
		counts_fork(data_of(p)->counts, t->number, t->tid, from->counts, by->number);
	}
}

static void thread_gone(void *ctx, struct traced_thread *t, bool has_ended, int status)
{
	struct count_session *s = ctx;
	struct process *process = data_of(t->program)->process;

	(void)status;
	if (!has_ended)
		return;
	if (process->n_live == 1)
		module_history_end(s->modules, process, clock_mono_ns(), MODULE_END_EXIT);
	processes_exit(s->processes, (uint32_t)t->program->pid, (uint32_t)t->tid, clock_mono_ns());
}

static void thread_replaced(void *ctx, struct traced_thread *t)
{
	struct count_session *s = ctx;

	processes_exit(s->processes, (uint32_t)t->program->pid, (uint32_t)t->tid, clock_mono_ns());
}

static void exec(void *ctx, struct traced_thread *t, struct traced_program *old)
{
	struct count_session *s = ctx;
	struct process *process = data_of(old)->process;
	uint32_t pid = (uint32_t)t->program->pid;
	char name[64];

	program_gone(s, old);
	module_history_exec(s->modules, process, clock_mono_ns());
	proc_name(t->program->pid, t->program->pid, name, sizeof(name));
	processes_exec(s->processes, pid, clock_mono_ns(), name);
	processes_name_thread(s->processes, pid, pid, clock_mono_ns(), name);
	begin_program(t->program, process);
}

/* What came before was the stepper's to tell. */
static void adopted(void *ctx, struct traced_thread *t)
{
	struct count_session *s = ctx;

	begin_program(t->program,
		processes_get(s->processes, (uint32_t)t->program->pid, clock_mono_ns()));
}

static void begins(void *ctx, struct traced_thread *t)
{
	(void)ctx;
	(void)t;
}

static void not_translated(void *ctx, struct traced_thread *t, const char *why)
{
	struct traced_program *p = t->program;
	char exe[4096], text[512];

	proc_exe(p->pid, exe, sizeof(exe));
	if (!exe[0])
		proc_name(p->pid, p->pid, exe, sizeof(exe));
	snprintf(text, sizeof(text), "'%s' (process %d) is not counted: %s", exe, p->pid, why);
	counts_tell(data_of(p)->counts, true, 1, text);
	note(ctx, text);
}

/* --- what is mapped, and blocks ---------------------------------------------------------------- */

/* 0, or 1 when the buffer is too small. */
static int64_t give_functions(
	struct traced_program *p, struct translate_region *region, const struct region_functions *f)
{
	region->n_functions = (uint32_t)f->n;
	counts_functions(data_of(p)->counts, f->v, f->n);
	if (f->n > region->n_room)
		return 1;
	if (!program_write(p, region->functions, f->v, f->n * sizeof(f->v[0])))
		region->n_functions = 0;
	return 0;
}

static int64_t region(void *ctx, struct traced_program *p, const struct proc_mapping *m,
	struct translate_region *region)
{
	struct count_session *s = ctx;
	struct counted_program *d = p->data;
	struct region_functions functions = {0};
	const struct mapping *mapping;
	int64_t answer;

	if (region->flags & TRANSLATE_REGION_FILE && !(region->flags & TRANSLATE_REGION_WRITABLE))
		vec_push(&d->files, ((struct file_code){m->start, m->end}));
	module_history_map(s->modules, d->process,
		&(struct image_query){.pid = (uint32_t)p->pid,
			.mapping = *m,
			.process_start_ns = d->process->start_ns},
		clock_mono_ns());
	mapping = addrspace_find(d->process->space, (struct vaddr){region->address});
	if (mapping) {
		count_trace_expect(s->figures, mapping->image);
		region_functions_find(&functions, count_trace_functions(s->figures), mapping);
	}
	answer = give_functions(p, region, &functions);
	region_functions_release(&functions);
	return answer;
}

static bool is_in_file(const struct counted_program *d, uint64_t pc)
{
	for (size_t i = d->files.n; i--;)
		if (pc >= d->files.v[i].start && pc < d->files.v[i].end)
			return true;
	return false;
}

/* Code that is in no file is kept, since it may be gone when somebody asks. */
static void keep_code(struct count_session *s, const struct traced_program *p, uint32_t first,
	const struct translate_block *rows, size_t n)
{
	struct buf *copied = &s->tracer.copied;

	for (size_t i = 0; i < n; i++) {
		uint32_t bytes = rows[i].bytes;

		if (is_in_file(data_of(p), rows[i].pc) || !bytes || bytes > CODE_BYTES_MAX)
			continue;
		buf_reset(copied);
		if (program_read(p, rows[i].code, buf_put_zeros(copied, bytes), bytes))
			counts_code(data_of(p)->counts, first + (uint32_t)i, copied->p, bytes);
	}
}

static void blocks(void *ctx, struct traced_program *p, uint32_t first,
	const struct translate_block *rows, size_t n)
{
	uint32_t n_known = p->n_rows > first ? p->n_rows - first : 0;

	counts_blocks(data_of(p)->counts, first, rows, n);
	if (n_known < n)
		keep_code(ctx, p, first + n_known, rows + n_known, n - n_known);
}

/* --- events and counters ----------------------------------------------------------------------- */

static void take(void *ctx, struct traced_thread *t, const uint8_t *bytes, size_t n)
{
	(void)ctx;
	counts_events(data_of(t->program)->counts, t->number, t->tid,
		(const struct translate_event *)bytes, n / TRANSLATE_EVENT_BYTES);
}

static void look(void *ctx, struct traced_thread *t, const struct translate_thread *area)
{
	struct count_session *s = ctx;
	struct traced_program *p = t->program;
	struct buf *copied = &s->tracer.copied;
	size_t bytes = p->n_rows * sizeof(uint64_t);
	char name[64];

	buf_reset(copied);
	if (bytes && !program_read(p, area->counters, buf_put_zeros(copied, bytes), bytes)) {
		tell(s, p, true, 1, "the counters of a thread could not be read");
		return;
	}
	proc_name(p->pid, t->tid, name, sizeof(name));
	counts_thread(data_of(p)->counts, t->number, t->tid, name, translate_thread_cost(area),
		(const uint64_t *)copied->p, p->n_rows);
}

const struct translate_work count_work = {
	.options = TRANSLATE_OPTION_COUNT | TRANSLATE_OPTION_CALLS,
	.unit = TRANSLATE_EVENT_BYTES,
	.done = "counted",
	.unread = "calls and returns",
	.for_32bit = "'weir record -p' samples it, 'weir steps -p' traces it",
	.note = note,
	.process_new = process_new,
	.thread_new = thread_new,
	.forked = forked,
	.thread_replaced = thread_replaced,
	.exec = exec,
	.adopted = adopted,
	.begins = begins,
	.not_translated = not_translated,
	.thread_gone = thread_gone,
	.program_gone = program_gone,
	.region = region,
	.blocks = blocks,
	.take = take,
	.look = look,
	.tell = tell,
};
