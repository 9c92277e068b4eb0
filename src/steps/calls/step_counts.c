/* SPDX-License-Identifier: MIT */
/*
 * Threads are walked in order of their first steps, so that a process comes behind the one that
 * forked it. All counts have the time at which the trace begins: they are of no time, and a
 * stream's times must not go back.
 */
#include "steps/calls/step_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "steps/calls/step_blocks.h"
#include "steps/calls/step_calls.h"
#include "steps/calls/step_functions.h"
#include "steps/calls/step_pads.h"
#include "steps/read/step_mark_words.h"
#include "steps/read/steps.h"
#include "trace/copy.h"
#include "trace/step_ways.h"

struct counter {
	const struct steps *steps;
	struct trace_reader *r;
	struct trace_writer *w;
	struct step_functions functions;
	uint32_t *frames; /* by function */
	struct step_call_insn *insns;
	bool *is_setjmp; /* by function */
	uint64_t *executed;
	uint64_t *sums; /* by function, of one thread */
	struct step_calls calls;
	struct step_pads *pads;
	uint32_t life; /* stream */
	uint64_t start;
	bool tells_when;
	uint64_t n_unknown_gaps; /* what is lost in others the recorder told */
};

static void tell(struct counter *c, enum record_minor_loss what, uint64_t n, const char *sentence)
{
	if (n)
		trace_writer_loss(c->w, c->life, c->start, what, n, sentence);
}

/* ---- what is known before the walk ---- */

static void define_functions(struct counter *c)
{
	const struct step_function *f = c->functions.v.v;
	size_t n = c->functions.v.n;

	c->frames = mem_calloc(n, sizeof(*c->frames));
	c->is_setjmp = mem_calloc(n, sizeof(*c->is_setjmp));
	c->sums = mem_calloc(n, sizeof(*c->sums));
	for (size_t i = 0; i < n; i++) {
		struct trace_symbol_level level = {.name = trace_writer_string(c->w, f[i].name)};
		struct trace_symbol symbol = {.n_levels = 1, .levels = &level};

		symbol.frame = c->frames[i] = step_function_frame(c->w, &f[i]);
		trace_writer_symbol(c->w, &symbol);
		c->is_setjmp[i] = f[i].is_setjmp;
	}
}

static void describe_insn(struct counter *c, uint32_t number)
{
	const struct step_insn *from = steps_insn(c->steps, number);
	uint32_t function = c->functions.of_insn[number];
	const struct step_function *f = &c->functions.v.v[function];
	struct step_call_insn *to = &c->insns[number];
	uint64_t addr = from->frame ? trace_reader_frame(c->r, from->frame)->addr : from->addr;

	*to = (struct step_call_insn){.addr = from->addr,
		.function = f->owner,
		.length = from->length,
		.flow = from->flow,
		.is_start = addr == f->start && f->owner == function,
		.is_transfer = from->flow == X86_FLOW_CALL || from->flow == X86_FLOW_CALL_FAR ||
			       from->flow == X86_FLOW_RETURN};
	if (from->has_target && (from->flow == X86_FLOW_CALL || from->flow == X86_FLOW_JUMP ||
					from->flow == X86_FLOW_BRANCH))
		to->target = steps_find(c->steps, from->space, from->target, from->generation);
}

static void prepare(struct counter *c)
{
	uint32_t n = steps_n_insns(c->steps);

	step_functions_init(&c->functions, c->steps, c->r);
	define_functions(c);
	c->insns = mem_calloc(n + 1, sizeof(*c->insns));
	c->executed = mem_calloc(n + 1, sizeof(*c->executed));
	for (uint32_t i = 1; i < n; i++)
		describe_insn(c, i);
	c->calls.insns = c->insns;
	c->calls.is_setjmp = c->is_setjmp;
	c->calls.executed = c->executed;
	c->calls.lands = step_pads_lands;
	c->calls.lands_ctx = c->pads = step_pads_new(c->steps, c->r);
	step_calls_init(&c->calls, (uint32_t)c->functions.v.n);
}

/* ---- a thread ---- */

static int walk_thread(struct counter *c, uint32_t i, struct err *err)
{
	struct step_cursor *cursor;
	struct step_item item;
	uint64_t n_steps = 0;
	int rc = step_cursor_open(&cursor, c->steps, i, err);

	if (rc < 0)
		return rc;
	while ((rc = step_cursor_next(cursor, &item)) > 0) {
		switch (item.kind) {
		case STEP_ITEM_STEPS:
			step_calls_steps(&c->calls, item.steps, item.n);
			n_steps += item.n;
			break;
		case STEP_ITEM_MARK:
			step_calls_mark(&c->calls, &item.mark);
			c->n_unknown_gaps += item.mark.kind == STEP_MARK_LOST && !item.mark.a;
			break;
		case STEP_ITEM_DAMAGE:
			tell(c, RECORD_LOSS_RECORDS, 1, item.sentence);
			step_calls_mark(&c->calls, &(struct step_mark){.kind = STEP_MARK_LOST});
			break;
		case STEP_ITEM_DATA:
			break;
		}
	}
	step_cursor_close(cursor);
	assert(c->calls.n_steps == n_steps);
	return 0;
}

static void write_tree(struct counter *c, const struct step_thread *thread, uint32_t stream)
{
	const struct step_node *nodes = c->calls.nodes.v;
	uint64_t total = 0;

	for (size_t i = 0; i < c->calls.nodes.n; i++) {
		const struct step_node *node = &nodes[i];
		uint64_t n[11] = {thread->thread, i, node->parent, 0, node->calls + 1, node->base,
			0, node->min, node->max, 0, 0};

		if (i) {
			n[3] = c->frames[node->function];
			c->sums[node->function] += node->base;
		} else {
			n[4] = 1 + 1;
		}
		total += node->base;
		trace_writer_numbers(
			c->w, stream, c->start, RECORD_MAJOR_COUNT, RECORD_COUNT_NODE, n, 11);
	}
	assert(total == c->calls.n_steps);
	for (size_t i = 0; i < c->functions.v.n; i++) {
		uint64_t n[4] = {thread->thread, c->frames[i], c->sums[i], 0};

		if (c->sums[i])
			trace_writer_numbers(
				c->w, stream, c->start, RECORD_MAJOR_COUNT, RECORD_COUNT_SUM, n, 4);
		c->sums[i] = 0;
	}
}

static int count_threads(struct counter *c, struct err *err)
{
	uint32_t n = steps_n_threads(c->steps);
	struct sort_pair *order = mem_calloc(n + 1, sizeof(*order));
	int rc = 0;

	for (uint32_t i = 0; i < n; i++)
		order[i] = (struct sort_pair){steps_thread(c->steps, i)->first_time, i};
	sort_pairs(order, n);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct step_thread *thread = steps_thread(c->steps, order[i].i);

		step_calls_begin(&c->calls, thread->pid, thread->tid);
		rc = walk_thread(c, order[i].i, err);
		if (rc == 0 && c->calls.n_steps)
			write_tree(c, thread, thread->stream);
	}
	free(order);
	return rc;
}

/* ---- the whole ---- */

static void tell_losses(struct counter *c)
{
	const char *first;
	uint32_t n_damaged = steps_n_damaged(c->steps, &first);

	tell(c, RECORD_LOSS_RECORDS, n_damaged, first ? first : "a record of code is damaged");
	tell(c, RECORD_LOSS_EVENTS, c->n_unknown_gaps,
		"instructions were lost, and it is not known how many");
	tell(c, RECORD_LOSS_NOTE, c->calls.n_without_frame,
		"a call was too deep to be followed: it is a part of its caller");
	tell(c, RECORD_LOSS_NOTE, c->calls.n_without_node,
		"a call had no node in the tree, for want of memory: it is a part of its caller");
	tell(c, RECORD_LOSS_NOTE, c->calls.n_without_fork,
		"the open calls of a forked process are not known, for want of memory");
	tell(c, RECORD_LOSS_NOTE, c->executed[0],
		"an instruction was executed whose code was not captured");
}

/* What a time line shows of steps that are counts now. */
static void tell_when(struct counter *c, const struct trace_record *record)
{
	uint64_t told[3] = {0, 1, 0}; /* kind, how many, string */
	struct step_run_head run;
	struct step_way_head way;
	struct step_mark mark;

	if (record->minor == RECORD_STEP_RUN && step_run_head(&run, record->payload)) {
		told[1] = run.n;
	} else if (step_is_way(record->minor) && step_way_head(&way, record->payload)) {
		told[1] = way.n;
	} else if (record->minor == RECORD_STEP_MARK && step_mark_decode(&mark, record->payload)) {
		struct buf words = {0};

		step_mark_put_words(&words, &mark, c->r);
		told[0] = mark.kind;
		told[2] = trace_writer_string(c->w, buf_text(&words));
		buf_release(&words);
	} else {
		return;
	}
	trace_writer_numbers(
		c->w, record->stream, record->time, RECORD_MAJOR_STEP, RECORD_STEP_TOLD, told, 3);
}

static bool is_no_step(void *ctx, const struct trace_record *record)
{
	struct counter *c = ctx;

	if (record->major != RECORD_MAJOR_STEP)
		return true;
	if (c->tells_when)
		tell_when(c, record);
	return false;
}

static int count(struct counter *c, enum step_counts_code code, struct err *err)
{
	int rc;

	c->life = trace_writer_stream(c->w, STREAM_KIND_LIFE, 0);
	c->start = trace_reader_start(c->r);
	trace_writer_metric(c->w, "instructions", "1");
	trace_writer_metric(c->w, "calls", "1");
	prepare(c);
	rc = count_threads(c, err);
	if (rc < 0)
		return rc;
	if (code != STEP_COUNTS_TREES)
		step_blocks_write(&(struct step_blocks_of){.steps = c->steps,
			.functions = &c->functions,
			.frames = c->frames,
			.executed = c->executed,
			.r = c->r,
			.w = c->w,
			.lines_only = code == STEP_COUNTS_COVERAGE,
			.stream = c->life,
			.time = c->start});
	tell_losses(c);
	return 0;
}

int step_counts_write(
	struct trace_writer *w, struct trace_reader *r, enum step_counts_code code, struct err *err)
{
	struct steps *steps = steps_open(r);
	struct counter c = {.steps = steps, .r = r, .w = w, .tells_when = code == STEP_COUNTS_TOLD};
	struct trace_copy_filter filter = {is_no_step, &c};
	int rc = trace_copy_definitions(w, r, err);

	if (rc == 0)
		rc = count(&c, code, err);
	if (rc == 0)
		rc = trace_copy_records(w, r, &filter, err);
	step_calls_release(&c.calls);
	step_pads_free(c.pads);
	step_functions_release(&c.functions);
	free(c.frames);
	free(c.is_setjmp);
	free(c.sums);
	free(c.insns);
	free(c.executed);
	steps_close(steps);
	return rc;
}
