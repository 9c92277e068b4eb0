/* SPDX-License-Identifier: MIT */
#include "steps/engine/counted_steps.h"

#include <stdlib.h>
#include <string.h>

#include "arch/x86_code.h"
#include "base/clock.h"
#include "process/proc.h"
#include "translate/count_session.h"

#define BLOCK_INSNS_MAX 64u
#define BLOCK_BYTES_MAX (BLOCK_INSNS_MAX * X86_INSN_BYTES_MAX)
#define RESUMES_MAX	64 /* handlers in each other, of a thread */

/* A row of the block table, with its code. */
struct known_block {
	uint32_t n_insns, bytes;
	size_t code;
	uint32_t next; /* another one at the same address, plus 1; 0: none */
	bool is_32;
};

/* Where a program goes on when a handler has ended, and what brings it there. */
struct resume {
	uint64_t addr, sp;
	enum translate_event_kind kind; /* 0: nothing that is an event */
};

struct counted_space {
	pid_t pid;
	struct process *process;
	struct counts *counts;
	VEC(struct known_block) blocks; /* by row */
	VEC(uint8_t) code;
	struct map at;	      /* address -> row + 1 */
	uint32_t n_forgotten; /* of the space, which `at` is right for */
	VEC(uint64_t) told;   /* mappings whose functions are known, by start */
	uint64_t n_changes;   /* of the space, which `told` is right for */
	unsigned n_threads;
};

struct counted_track {
	struct counted_space *space;
	uint64_t number;
	uint64_t cost; /* of blocks that are finished */
	VEC(uint64_t) counters;
	/* The block that is being executed; n_insns 0: none. */
	uint64_t pc, next, entry_sp;
	enum translate_event_kind entry; /* 0: it has none */
	uint32_t n_insns, n_bytes;
	bool is_32;
	uint8_t code[BLOCK_BYTES_MAX];
	/* The last step: */
	uint64_t last;
	bool was_string;
	enum x86_flow flow; /* that led from the last block ... */
	uint64_t from;	    /* ... which began here */
	bool is_in_handler_entry, is_resumed;
	uint64_t resumed_sp;
	VEC(struct resume) resumes;
};

struct counted_steps {
	struct count_session *s;
	uint64_t n_numbers;
	VEC(struct counted_space *) spaces;
};

/* --- functions --------------------------------------------------------------------------------- */

/* What is mapped at the address is told to the counts. */
static void know_functions(struct counted_steps *c, const struct step_track *t, uint64_t addr)
{
	struct counted_track *d = t->sunk;
	struct counted_space *space = d->space;
	const struct mapping *m = addrspace_find(space->process->space, (struct vaddr){addr});
	struct region_functions functions = {0};

	if (space->n_changes != t->space->n_changes)
		space->told.n = 0;
	space->n_changes = t->space->n_changes;
	if (!m)
		return;
	for (size_t i = 0; i < space->told.n; i++)
		if (space->told.v[i] == m->start)
			return;
	vec_push(&space->told, m->start);
	region_functions_find(&functions, count_trace_functions(c->s->figures), m);
	counts_functions(space->counts, functions.v, functions.n);
	region_functions_release(&functions);
}

static bool is_function(const struct counted_space *space, uint64_t pc)
{
	const struct translate_function *f = counts_function_at(space->counts, pc);

	return f && f->start == pc;
}

static bool follows_call(const struct counted_space *space, uint64_t pc)
{
	uint8_t code[X86_CALL_BYTES_MAX];

	return proc_read_memory(space->pid, pc - sizeof(code), code, sizeof(code)) &&
	       x86_follows_call(code + sizeof(code), sizeof(code));
}

/* What going from one block to another is. */
static enum translate_event_kind kind_of(
	const struct counted_space *space, enum x86_flow flow, uint64_t from, uint64_t to)
{
	switch (flow) {
	case X86_FLOW_CALL:
	case X86_FLOW_CALL_FAR:
		return TRANSLATE_EVENT_ENTER;
	case X86_FLOW_NEXT:
	case X86_FLOW_JUMP:
	case X86_FLOW_BRANCH:
		return is_function(space, to) && counts_function_at(space->counts, from) !=
							 counts_function_at(space->counts, to)
			       ? TRANSLATE_EVENT_ENTER
			       : 0;
	case X86_FLOW_JUMP_FAR:
	case X86_FLOW_RETURN:
		if (is_function(space, to))
			return TRANSLATE_EVENT_ENTER;
		return flow == X86_FLOW_JUMP_FAR && follows_call(space, to) ? TRANSLATE_EVENT_LAND
									    : 0;
	case X86_FLOW_STOP:
	case X86_FLOW_SYSCALL:
		break;
	}
	return 0;
}

/* --- blocks ------------------------------------------------------------------------------------ */

static uint32_t add_row(struct counted_track *d, const struct step_space *space)
{
	struct counted_space *s = d->space;
	uint32_t row = (uint32_t)s->blocks.n;
	struct known_block block = {
		.n_insns = d->n_insns, .bytes = d->n_bytes, .code = s->code.n, .is_32 = d->is_32};
	const struct step_region *region = step_space_region(space, d->pc);

	vec_reserve(&s->code, s->code.n + d->n_bytes);
	memcpy(s->code.v + s->code.n, d->code, d->n_bytes);
	s->code.n += d->n_bytes;
	vec_push(&s->blocks, block);
	counts_blocks(s->counts, row,
		&(struct translate_block){.pc = d->pc,
			.bytes = d->n_bytes,
			.n_insns = (uint16_t)d->n_insns,
			.flags = d->is_32 ? COUNTS_BLOCK_I386 : 0},
		1);
	if (!region || !region->is_file || region->was_written)
		counts_code(s->counts, row, d->code, d->n_bytes);
	return row;
}

static uint32_t row_of(struct counted_track *d, const struct step_space *space)
{
	struct counted_space *s = d->space;
	uint64_t *at;

	if (s->n_forgotten != space->n_forgotten) { /* the same code may be another file's now */
		map_release(&s->at);
		memset(&s->at, 0, sizeof(s->at));
		s->n_forgotten = space->n_forgotten;
	}
	at = map_ensure(&s->at, d->pc, NULL);
	for (uint32_t i = (uint32_t)*at; i; i = s->blocks.v[i - 1].next) {
		const struct known_block *b = &s->blocks.v[i - 1];

		if (b->n_insns == d->n_insns && b->bytes == d->n_bytes && b->is_32 == d->is_32 &&
			!memcmp(s->code.v + b->code, d->code, d->n_bytes))
			return i - 1;
	}
	add_row(d, space);
	s->blocks.v[s->blocks.n - 1].next = (uint32_t)*at;
	*at = s->blocks.n;
	return (uint32_t)s->blocks.n - 1;
}

static void tell_event(
	struct step_track *t, uint64_t sp, uint32_t block, enum translate_event_kind kind)
{
	struct counted_track *d = t->sunk;
	const struct translate_event e = {.sp = sp, .cost = d->cost, .block = block, .kind = kind};

	counts_events(d->space->counts, d->number, (pid_t)t->tid, &e, 1);
}

/* What was executed of the block is all that there was. */
static void finish_block(struct step_track *t)
{
	struct counted_track *d = t->sunk;
	uint32_t row;

	if (!d->n_insns)
		return;
	row = row_of(d, t->space);
	if (d->entry)
		tell_event(t, d->entry_sp, row, d->entry);
	d->cost += d->n_insns;
	vec_ensure_zero(&d->counters, (size_t)row + 1);
	d->counters.v[row]++;
	if (d->flow == X86_FLOW_RETURN)
		tell_event(t, t->sp, row, TRANSLATE_EVENT_RETURN);
	d->n_insns = d->n_bytes = 0;
}

static struct resume take_resume(struct counted_track *d, uint64_t addr, uint64_t sp)
{
	struct resume none = {0};

	for (size_t i = d->resumes.n; i--;)
		if (d->resumes.v[i].addr == addr && d->resumes.v[i].sp == sp) {
			none = d->resumes.v[i];
			d->resumes.n = i;
			break;
		}
	return none;
}

static enum translate_event_kind entry_at(struct counted_track *d, uint64_t addr, uint64_t sp)
{
	if (d->is_in_handler_entry)
		return TRANSLATE_EVENT_ENTER;
	if (d->is_resumed)
		return take_resume(d, addr, sp).kind;
	return kind_of(d->space, d->flow, d->from, addr);
}

static void begin_block(struct counted_steps *c, struct step_track *t, uint64_t addr, bool is_64)
{
	struct counted_track *d = t->sunk;

	know_functions(c, t, addr);
	d->entry = entry_at(d, addr, t->sp);
	d->is_in_handler_entry = d->is_resumed = false;
	d->entry_sp = t->sp;
	d->pc = d->from = addr;
	d->is_32 = !is_64;
	d->flow = X86_FLOW_NEXT;
}

static bool step(
	void *ctx, struct step_track *t, uint64_t addr, const uint8_t *bytes, size_t n, bool is_64)
{
	struct counted_steps *c = ctx;
	struct counted_track *d = t->sunk;
	const struct step_entry *known = step_space_known(t->space, addr);
	struct x86_insn insn = {.length = 1};

	if (known && known->is_string && d->was_string && d->last == addr)
		return false;
	d->last = addr;
	d->was_string = known && known->is_string;
	if (!x86_decode(&insn, (struct span){bytes, n}, addr, is_64))
		insn = (struct x86_insn){.length = 1, .flow = X86_FLOW_NEXT};
	if (d->n_insns && (addr != d->next || d->is_32 == is_64 || d->n_insns == BLOCK_INSNS_MAX))
		finish_block(t);
	if (!d->n_insns)
		begin_block(c, t, addr, is_64);
	memcpy(d->code + d->n_bytes, n ? bytes : (const uint8_t *)"", insn.length);
	d->n_bytes += insn.length;
	d->n_insns++;
	d->next = addr + insn.length;
	d->flow = insn.flow;
	if (insn.flow != X86_FLOW_NEXT)
		finish_block(t);
	return true;
}

/* --- signals ----------------------------------------------------------------------------------- */

static void handler(void *ctx, struct step_track *t, uint64_t addr)
{
	struct counted_track *d = t->sunk;
	struct resume resume = {.addr = addr, .sp = t->sp};
	bool is_midst = d->n_insns;

	finish_block(t);
	know_functions(ctx, t, addr);
	/* One that was to begin when the signal came begins behind it. */
	if (d->is_in_handler_entry || d->is_resumed || !is_midst)
		resume.kind = entry_at(d, addr, t->sp);
	d->is_resumed = false;
	if (d->resumes.n == RESUMES_MAX) { /* handlers are left by longjmp, too */
		d->resumes.n--;
		memmove(d->resumes.v, d->resumes.v + 1, d->resumes.n * sizeof(resume));
	}
	vec_push(&d->resumes, resume);
	tell_event(t, t->sp, TRANSLATE_NO_BLOCK, TRANSLATE_EVENT_SIGNAL);
	d->is_in_handler_entry = true;
	d->was_string = false;
}

static void handler_ended(void *ctx, struct step_track *t)
{
	struct counted_track *d = t->sunk;

	(void)ctx;
	finish_block(t);
	tell_event(t, t->sp, TRANSLATE_NO_BLOCK, TRANSLATE_EVENT_SIGRETURN);
	d->is_resumed = true;
	d->was_string = false;
}

/* --- programs and threads ---------------------------------------------------------------------- */

static void program(void *ctx, struct step_space *space)
{
	struct counted_steps *c = ctx;
	struct counted_space *s = mem_zalloc(sizeof(*s));

	s->pid = (pid_t)space->process->pid;
	s->process = space->process;
	s->counts = counts_new(s->pid);
	counts_set_space(s->counts, &s->process->space);
	counts_set_stacks(s->counts, count_find_stack, &s->pid);
	space->sunk = s;
	vec_push(&c->spaces, s);
}

/* A copy of what the parent has executed, in the same rows. */
static void copy_program(struct counted_track *d, const struct step_track *by, pid_t tid)
{
	const struct counted_track *parent = by->sunk;
	const struct counted_space *from = parent->space;
	struct counted_space *to = d->space;

	counts_fork(to->counts, d->number, tid, from->counts, parent->number);
	for (size_t i = 0; i < from->blocks.n; i++) {
		struct known_block b = from->blocks.v[i];

		b.next = 0;
		vec_push(&to->blocks, b);
	}
	vec_reserve(&to->code, from->code.n);
	memcpy(to->code.v, from->code.v, from->code.n);
	to->code.n = from->code.n;
	for (size_t i = 0; i < parent->resumes.n; i++)
		vec_push(&d->resumes, parent->resumes.v[i]);
}

static void thread(void *ctx, struct step_track *t, const struct step_track *by)
{
	struct counted_steps *c = ctx;
	struct counted_track *d = mem_zalloc(sizeof(*d));

	d->space = t->space->sunk;
	d->space->n_threads++;
	d->number = ++c->n_numbers;
	d->flow = X86_FLOW_SYSCALL;
	t->sunk = d;
	if (by && by->space != t->space)
		copy_program(d, by, (pid_t)t->tid);
}

static void end_program(struct counted_steps *c, struct counted_space *s)
{
	size_t i = 0;

	count_trace_add(c->s->figures, s->counts, s->process, clock_mono_ns());
	counts_free(s->counts);
	vec_release(&s->blocks);
	vec_release(&s->code);
	vec_release(&s->told);
	map_release(&s->at);
	while (c->spaces.v[i] != s)
		i++;
	c->spaces.v[i] = c->spaces.v[--c->spaces.n];
	free(s);
}

static void gone(void *ctx, struct step_track *t)
{
	struct counted_track *d = t->sunk;

	if (!d)
		return;
	finish_block(t);
	counts_thread(d->space->counts, d->number, (pid_t)t->tid, NULL, d->cost, d->counters.v,
		d->counters.n);
	if (!--d->space->n_threads) {
		t->space->sunk = NULL;
		end_program(ctx, d->space);
	}
	vec_release(&d->counters);
	vec_release(&d->resumes);
	free(d);
	t->sunk = NULL;
}

static void lost(void *ctx, struct step_track *t, uint64_t n, const char *why)
{
	const struct counted_track *d = t->sunk;

	(void)ctx;
	if (d)
		counts_tell(d->space->counts, true, n, why);
}

const struct step_sink counted_steps_sink = {.program = program,
	.thread = thread,
	.gone = gone,
	.step = step,
	.handler = handler,
	.handler_ended = handler_ended,
	.lost = lost};

struct counted_steps *counted_steps_new(struct count_session *s)
{
	struct counted_steps *c = mem_zalloc(sizeof(*c));

	c->s = s;
	return c;
}

void counted_steps_free(struct counted_steps *c)
{
	while (c->spaces.n)
		end_program(c, c->spaces.v[c->spaces.n - 1]);
	vec_release(&c->spaces);
	free(c);
}
