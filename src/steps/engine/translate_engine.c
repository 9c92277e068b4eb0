/* SPDX-License-Identifier: MIT */
#include "steps/engine/translate_engine.h"

#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "process/launch.h"
#include "process/proc.h"
#include "translate/translate_session.h"

/* What the kernel has in the result register of a call that it is about to make again. */
#define RESTART_FIRST (-516)
#define RESTART_LAST  (-512)
#define TAKE_NS	      500000000u /* so old what threads have written may become before it is recorded */

/* --- marks ------------------------------------------------------------------------------------- */

static bool is_named(const struct translated_thread *d, const char *threads)
{
	char name[64], *end;
	long tid = strtol(threads, &end, 10);

	if (!*end)
		return tid == (long)d->track->tid;
	proc_name((pid_t)d->track->pid, (pid_t)d->track->tid, name, sizeof(name));
	return !fnmatch(threads, name, 0);
}

static void begin(struct translate_engine *e, struct translated_thread *d)
{
	const char *threads = e->s->options->threads;

	d->is_wanted = !threads || is_named(d, threads);
	e->has_wanted_thread |= d->is_wanted;
	if (d->is_wanted && !d->is_marked_in && !d->is_out)
		step_session_mark(e->s, d->track, STEP_MARK_RESUME, STEP_WHY_START, 0, 0);
	d->is_marked_in |= d->is_wanted && !d->is_out;
	d->is_in = d->is_wanted && !d->is_out;
}

/* The system call that `d` becomes another program by, or its process does. */
static void mark_exec_call(struct translate_engine *e, struct translated_thread *d)
{
	if (d->exec_call && d->is_in)
		step_session_mark(e->s, d->track, STEP_MARK_SYSCALL, (int64_t)d->exec_call, 0, 0);
	d->exec_call = 0;
}

static void signal_acts(struct translate_engine *e, struct translated_thread *d)
{
	if (d->given.a && d->is_in)
		step_session_mark(
			e->s, d->track, STEP_MARK_SIGNAL, d->given.a, d->given.b, d->given.c);
	d->given.a = 0;
}

/* --- programs ---------------------------------------------------------------------------------- */

static void note(void *ctx, const char *sentence)
{
	const struct step_options *o = ((struct translate_engine *)ctx)->s->options;

	if (o->note)
		o->note(o->ctx, sentence);
}

static void tell(
	void *ctx, struct traced_program *p, bool is_loss, uint64_t n, const char *sentence)
{
	struct step_session *s = ((struct translate_engine *)ctx)->s;

	(void)p;
	trace_writer_loss(s->env.w, s->life_stream, clock_mono_ns(),
		is_loss ? RECORD_LOSS_EVENTS : RECORD_LOSS_NOTE, n, sentence);
	s->result->n_lost += is_loss ? n : 0;
}

static void new_program(struct traced_program *p, struct translated_rows *parent)
{
	struct translated_program *d = mem_zalloc(sizeof(*d));

	p->data = d;
	translated_program_begin(d);
	d->rows = translated_rows_new(parent, parent ? p->n_rows : 0);
	if (parent)
		mem_grow_zero((void **)&d->fast.v, &d->fast.n, &d->fast.cap, p->n_rows,
			sizeof(*d->fast.v));
}

static void program_gone(void *ctx, struct traced_program *p)
{
	struct translated_program *d = p->data;

	(void)ctx;
	translated_rows_drop(d->rows);
	vec_release(&d->fast);
	map_release(&d->joined);
	free(d->edges);
	free(d);
}

static void process_new(void *ctx, struct traced_program *p, bool was_running)
{
	(void)ctx;
	(void)was_running; /* the session knows it already */
	new_program(p, NULL);
}

/* --- threads ----------------------------------------------------------------------------------- */

static void new_thread(struct traced_thread *t, struct step_track *track)
{
	struct translated_thread *d = mem_zalloc(sizeof(*d));

	d->track = track;
	t->data = d;
}

static void thread_new(void *ctx, struct traced_thread *t)
{
	struct translate_engine *e = ctx;

	new_thread(t, step_session_thread(e->s, t->program->pid, t->tid));
}

static void begins(void *ctx, struct traced_thread *t)
{
	begin(ctx, t->data);
}

static void forked(void *ctx, struct traced_thread *by, struct traced_thread *t)
{
	struct translate_engine *e = ctx;
	struct translated_thread *d = by->data;
	struct traced_program *p = t->program;
	struct translated_program *from = by->program->data;

	if (by->is_translated) {
		program_blocks(&e->tracer, by->program, false);
		thread_read_events(&e->tracer, by, 0);
		translated_settle(e, d, 0);
	}
	new_thread(t, step_session_forked(e->s, d->track, p->pid, t->tid));
	if (p != by->program) {
		bool is_copy =
			by->is_translated && program_share_blocks(&e->tracer, by->program, p);

		new_program(p, is_copy ? from->rows : NULL);
	}
	((struct translated_thread *)t->data)->skips_call = p->is_inherited;
	if (t->is_translated)
		begin(e, t->data);
}

static void before_exec(void *ctx, struct traced_thread *t, const struct translate_thread *area)
{
	struct translated_thread *d = t->data;

	translated_settle(ctx, d, 0);
	d->exec_call = area->regs[0];
}

static void thread_replaced(void *ctx, struct traced_thread *t)
{
	struct translate_engine *e = ctx;
	struct translated_thread *d = t->data;

	translated_settle(e, d, 0);
	mark_exec_call(e, d);
	step_session_exit(e->s, d->track, 0);
	free(d);
}

static void exec(void *ctx, struct traced_thread *t, struct traced_program *old)
{
	struct translate_engine *e = ctx;
	struct translated_thread *d = t->data;

	translated_settle(e, d, 0);
	mark_exec_call(e, d);
	d->kind = d->n_rounds = 0;
	d->skips_call = false;
	d->given.a = 0;
	step_session_exec(e->s, d->track);
	program_gone(e, old);
	new_program(t->program, NULL);
}

static void pause_thread(struct translate_engine *e, struct translated_thread *d, const char *why)
{
	if (d->is_marked_in)
		step_session_pause(e->s, d->track, STEP_WHY_ENGINE, why);
	d->is_marked_in = d->is_in = false;
}

static void not_translated(void *ctx, struct traced_thread *t, const char *why)
{
	struct translate_engine *e = ctx;
	struct traced_program *p = t->program;
	char exe[4096], text[512];

	proc_exe(p->pid, exe, sizeof(exe));
	snprintf(text, sizeof(text),
		"'%s' (process %d) is not traced: %s (--engine ptrace traces it)", exe, p->pid,
		why);
	((struct translated_thread *)t->data)->is_marked_in = true;
	pause_thread(e, t->data, why);
	tell(e, p, true, 1, text);
	note(e, text);
}

static void leaves(void *ctx, struct traced_thread *t, const char *why)
{
	struct translated_thread *d = t->data;

	translated_settle(ctx, d, 0);
	if (why)
		pause_thread(ctx, d, why);
}

static void thread_gone(void *ctx, struct traced_thread *t, bool has_ended, int status)
{
	struct translate_engine *e = ctx;
	struct translated_thread *d = t->data;

	translated_settle(e, d, 0);
	if (!has_ended) {
		translated_mark_out(e, d, step_session_why_over(e->s));
		step_session_look_at_name(e->s, d->track);
	}
	step_session_exit(e->s, d->track, has_ended && !d->is_out ? status : 0);
	free(d);
}

/* --- ends -------------------------------------------------------------------------------------- */

static bool is_in_cache(const struct traced_program *p, uint64_t pc)
{
	struct translate_header header;

	return program_header(p, &header) && header.cache_low <= pc && pc < header.cache_high;
}

/* In translated code: it has come to that one of the rows that the pending one implies, and not by a jump. */
static void go_on_to_place(struct translate_engine *e, struct traced_thread *t, uint64_t pc)
{
	const struct translated_thread *d = t->data;
	const struct translated_rows *r = ((struct translated_program *)t->program->data)->rows;
	uint32_t n = translated_rows_implied(r, d->pending_row);
	struct translate_header header;
	struct translate_block row;

	for (uint32_t i = d->pending_row; i <= d->pending_row + n; i++)
		if (program_header(t->program, &header) &&
			program_read(
				t->program, header.blocks + i * sizeof(row), &row, sizeof(row)) &&
			pc - row.cache - row.body < row.cache_bytes - row.body) {
			translated_go_on_to(e, t, i);
			return;
		}
}

/* How many instructions may have been executed of which nobody knows. */
static uint32_t n_unknown(const struct traced_thread *t)
{
	const struct translated_rows *r = ((struct translated_program *)t->program->data)->rows;
	const struct translated_thread *d = t->data;
	uint32_t n = d->pending.n;

	for (uint32_t i = translated_is_open(t) ? translated_rows_implied(r, d->pending_row) : 0; i;
		i--)
		n += translated_rows_get(r, d->pending_row + i)->n;
	return n;
}

/* Stands in the midst of a block: nobody knows how much of it was executed. */
static void drop_pending(struct translate_engine *e, struct traced_thread *t, uint64_t pc)
{
	struct translated_thread *d = t->data;
	uint32_t n;
	char text[128];

	if (translated_is_open(t))
		go_on_to_place(e, t, pc);
	n = d->has_pending ? n_unknown(t) : 0;
	if (n < 2) {
		translated_settle(e, d, 0);
		return;
	}
	d->has_pending = false;
	d->n_rounds = 0;
	snprintf(text, sizeof(text),
		"ended within a row of up to %u instructions, which are left out", n);
	if (d->is_in)
		step_session_pause(e->s, d->track, STEP_WHY_ENGINE, text);
	d->is_marked_in = false;
	trace_writer_loss(e->s->env.w, e->s->life_stream, clock_mono_ns(), RECORD_LOSS_NOTE, 1,
		"a thread was ended within a row of instructions, which are left out");
}

/* The system call that it never came back from. */
static void mark_last_call(struct translate_engine *e, struct translated_thread *d,
	const struct user_regs_struct *regs)
{
	translated_settle(e, d, 0);
	if (!d->is_in)
		return;
	if (d->given.a)
		step_session_mark(e->s, d->track, STEP_MARK_SYSCALL, (int64_t)regs->orig_rax,
			(int64_t)regs->rax, 0);
	else
		step_session_mark(e->s, d->track, STEP_MARK_SYSCALL, (int64_t)regs->orig_rax, 0,
			STEP_CALL_NO_RETURN);
}

static bool ends_in_call(const struct traced_program *p, const struct translated_thread *d)
{
	const struct translated_row *r =
		translated_rows_get(((struct translated_program *)p->data)->rows, d->pending_row);

	return d->has_pending && r && r->ends_in_call;
}

static void ending(void *ctx, struct traced_thread *t, int status)
{
	struct translate_engine *e = ctx;
	struct translated_thread *d = t->data;
	struct user_regs_struct regs;

	step_session_look_at_name(e->s, d->track);
	if ((status & 0x7f) != d->given.a)
		d->given.a = 0;
	if (t->is_translated && ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) == 0) {
		if (regs.rip == t->program->place.waits && ends_in_call(t->program, d))
			mark_last_call(e, d, &regs);
		else if (translated_is_open(t) || is_in_cache(t->program, regs.rip))
			drop_pending(e, t, regs.rip);
	}
	translated_settle(e, d, 0);
	signal_acts(e, d);
}

static void take_signal(void *ctx, struct traced_thread *t, const siginfo_t *info)
{
	struct translate_engine *e = ctx;
	struct user_regs_struct regs;
	struct translated_thread *d = t->data;
	int number = info->si_signo;
	bool has_address =
		number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE;

	if (t->is_translated && !t->is_ending && ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) == 0 &&
		regs.rip == t->program->place.waits && (int64_t)regs.orig_rax >= 0 &&
		(int32_t)regs.rax >= RESTART_FIRST && (int32_t)regs.rax <= RESTART_LAST) {
		thread_peek_events(&e->tracer, t);
		translated_interrupted(e, d, regs.orig_rax, (int64_t)regs.rax);
	} else {
		d->has_stood = false;
	}
	d->given = (struct step_mark){.kind = STEP_MARK_SIGNAL,
		.a = number,
		.b = info->si_code,
		.c = has_address ? (int64_t)(uintptr_t)info->si_addr : 0};
}

/* The block that it is in is recorded behind the mark. */
static void stands(void *ctx, struct traced_thread *t)
{
	struct translate_engine *e = ctx;

	if (t->is_translated && !t->is_ending)
		thread_peek_events(&e->tracer, t);
	signal_acts(e, t->data);
	((struct translated_thread *)t->data)->has_stood = true;
}

/* --- memory ------------------------------------------------------------------------------------ */

static int64_t region(void *ctx, struct traced_program *p, const struct proc_mapping *m,
	struct translate_region *region)
{
	(void)ctx;
	(void)p;
	(void)m;
	(void)region; /* it has no functions: nobody asks for calls */
	return 0;
}

static void blocks(void *ctx, struct traced_program *p, uint32_t first,
	const struct translate_block *rows, size_t n)
{
	translated_rows_add(ctx, p, first, rows, n);
}

static int by_start(const void *a, const void *b)
{
	const struct step_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The translator's memory is none of the program's. */
static void find_own(struct translate_engine *e, struct traced_program *p, struct step_space *space)
{
	struct translate_arena arenas[TRANSLATE_ARENAS_MAX];
	struct translate_header header;
	size_t n;

	space->engine_own.n = 0;
	if (!program_header(p, &header))
		return;
	n = header.n_arenas < TRANSLATE_ARENAS_MAX ? header.n_arenas : TRANSLATE_ARENAS_MAX;
	if (n && !program_read(p, header.arenas, arenas, n * sizeof(arenas[0])))
		n = 0;
	for (size_t i = 0; i < n; i++)
		vec_push(&space->engine_own, ((struct step_range){arenas[i].start, arenas[i].end}));
	vec_push(&space->engine_own,
		((struct step_range){p->place.base, p->place.base + e->tracer.image.bytes}));
	qsort(space->engine_own.v, space->engine_own.n, sizeof(space->engine_own.v[0]), by_start);
}

static void maps(void *ctx, struct traced_thread *t)
{
	struct translate_engine *e = ctx;
	struct translated_thread *d = t->data;

	translated_settle(e, d, 0);
	find_own(e, t->program, d->track->space);
	step_session_maps(e->s, d->track);
}

/* --- words ------------------------------------------------------------------------------------- */

static void take(void *ctx, struct traced_thread *t, const uint8_t *bytes, size_t n)
{
	struct translate_engine *e = ctx;

	translated_take(e, t, (const uint32_t *)(const void *)bytes, n / sizeof(uint32_t));
	step_session_progress(e->s);
}

static void look(void *ctx, struct traced_thread *t, const struct translate_thread *area)
{
	(void)ctx;
	(void)t;
	(void)area;
}

static void idle(void *ctx)
{
	struct translate_engine *e = ctx;
	uint64_t now = clock_mono_ns();

	if (now - e->taken_ns < TAKE_NS)
		return;
	e->taken_ns = now;
	translate_look_around(&e->tracer, now);
	translate_take_all(&e->tracer);
}

static const struct translate_work stepping = {
	.options = TRANSLATE_OPTION_STEPS,
	.unit = sizeof(uint32_t),
	.done = "traced",
	.unread = "steps",
	.for_32bit = "'--engine ptrace' traces it",
	.note = note,
	.process_new = process_new,
	.thread_new = thread_new,
	.forked = forked,
	.thread_replaced = thread_replaced,
	.exec = exec,
	.begins = begins,
	.not_translated = not_translated,
	.thread_gone = thread_gone,
	.program_gone = program_gone,
	.region = region,
	.blocks = blocks,
	.take = take,
	.look = look,
	.tell = tell,
	.maps = maps,
	.before_exec = before_exec,
	.signal = take_signal,
	.stands = stands,
	.leaves = leaves,
	.ending = ending,
	.idle = idle,
};

/* --- the engine -------------------------------------------------------------------------------- */

const char *translate_engine_hindrance(void)
{
	return translate_hindrance();
}

int translate_engine_accepts(const struct step_session *s, struct err *err)
{
	const struct step_options *o = s->options;
	const char *what = o->data	  ? "--data"
			   : o->around	  ? "--around"
			   : o->from	  ? "--from"
			   : o->to	  ? "--to"
			   : o->burst	  ? "--every"
			   : o->no_follow ? "--no-follow"
					  : NULL;
	char *path = NULL;
	int rc = 0;

	if (what)
		return err_set(err, ERR_UNSUPPORTED, "engine 'translate' does not do %s", what);
	/* What runs for long is stepped unless somebody asks for all of it, which is a lot. */
	if (o->n_pids && !o->engine)
		return err_set(err, ERR_UNSUPPORTED, "%s", "");
	if (o->command && launch_find(o->command[0], &path, NULL) == 0 && program_is_32bit(path))
		rc = err_set(err, ERR_UNSUPPORTED,
			"engine 'translate' does not do 32-bit programs, and '%s' is one",
			o->command[0]);
	free(path);
	return rc;
}

int translate_engine_run(struct step_session *s, struct err *err)
{
	struct translate_engine e = {.s = s,
		.tracer = {.work = &stepping,
			.run = &s->run,
			.command = s->options->command,
			.pids = s->options->pids,
			.n_pids = s->options->n_pids}};
	char *translator = translator_find();
	int rc = translator_image_open(&e.tracer.image, translator ? translator : "", err);

	free(translator);
	e.tracer.ctx = &e;
	if (rc == 0)
		rc = translate_drive(&e.tracer, err);
	if (rc == 0 && !e.has_wanted_thread)
		step_session_note(s, "--threads: no thread was called '%s'", s->options->threads);
	translate_tracer_release(&e.tracer);
	return rc;
}
