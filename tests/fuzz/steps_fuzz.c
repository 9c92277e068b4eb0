/* SPDX-License-Identifier: MIT */
/* Any bytes as a trace with steps: all code, all threads, from several places and merged. */
#include <stdlib.h>
#include <string.h>

#include "steps/read/steps.h"

/* Unpacked chunks are as large as 16 MiB each; walk what a second or so can hold. */
#define ITEMS_MAX   500
#define THREADS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink; /* keeps the reads */

static void need(bool condition)
{
	if (!condition)
		abort();
}

static void look_where(const struct steps *s, const struct step_item *item, uint64_t addr)
{
	struct step_where where;
	struct buf text = {0};

	for (uint32_t space = 0; space < 4; space++) {
		if (!steps_where(s, space, addr, item->time, &where))
			continue;
		need(where.kind > STEP_PLACE_NONE && where.kind < STEP_N_PLACES);
		step_where_put(&text, s, &where);
	}
	sink += text.n;
	buf_release(&text);
}

static void look_at(const struct steps *s, const struct step_item *item)
{
	struct step_data_walk w;
	struct step_datum datum;
	int rc;

	switch (item->kind) {
	case STEP_ITEM_STEPS:
		need(item->n > 0 && item->n <= STEP_ITEM_STEPS_MAX);
		for (uint32_t i = 0; i < item->n; i++) {
			const struct step *step = &item->steps[i];
			const struct step_insn *insn = steps_insn(s, step->insn);

			need(step->times > 0 && step->insn < steps_n_insns(s));
			need(!step->insn ||
				(insn->addr == step->addr && insn->space == item->space &&
					insn->generation <= item->generation));
		}
		break;
	case STEP_ITEM_MARK:
		sink += *trace_reader_string(steps_reader(s), item->mark.text);
		break;
	case STEP_ITEM_DATA:
		need(step_data_open(&w, item->data));
		while ((rc = step_data_next(&w, &datum)) > 0)
			look_where(s, item, datum.addr);
		need(rc == 0);
		break;
	case STEP_ITEM_DAMAGE:
		need(strlen(item->sentence) > 0);
		break;
	}
}

static void walk(const struct steps *s, struct step_cursor *c, uint64_t from_time)
{
	struct step_item item;
	uint64_t time = from_time;

	for (int i = 0; i < ITEMS_MAX && step_cursor_next(c, &item) > 0; i++) {
		look_at(s, &item);
		if (item.kind == STEP_ITEM_DAMAGE)
			continue;
		need(item.time >= time);
		time = item.time;
	}
}

static void walk_thread(const struct steps *s, uint32_t i)
{
	const struct step_thread *thread = steps_thread(s, i);
	uint64_t middle = thread->first_time + (thread->last_time - thread->first_time) / 2;
	struct step_cursor *c;
	struct err err;

	if (step_cursor_open(&c, s, i, &err) < 0)
		return;
	walk(s, c, 0);
	step_cursor_seek(c, thread->n_steps / 2);
	walk(s, c, 0);
	step_cursor_seek_time(c, middle);
	walk(s, c, middle);
	step_cursor_close(c);
	sink += strlen(thread->name);
}

static void walk_merged(const struct steps *s)
{
	struct step_merge *m = step_merge_new(s, NULL, 0);
	struct step_item item;
	uint64_t time = 0;
	uint32_t thread;

	for (int i = 0; i < ITEMS_MAX && step_merge_next(m, &thread, &item) > 0; i++) {
		need(thread < steps_n_threads(s));
		if (item.kind == STEP_ITEM_DAMAGE)
			continue;
		need(item.time >= time);
		time = item.time;
	}
	step_merge_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct trace_reader *r;
	struct steps *s;
	struct err err;

	if (trace_reader_open_bytes(&r, (struct span){data, n}, false, "fuzz", &err) < 0)
		return 0;
	s = steps_open(r);
	for (uint32_t i = 1; i < steps_n_insns(s); i++) {
		const struct step_insn *insn = steps_insn(s, i);

		need(steps_find(s, insn->space, insn->addr, insn->generation) == i);
		need(insn->length <= insn->n_bytes && insn->frame < trace_reader_n_frames(r));
	}
	for (uint32_t i = 0; i < steps_n_threads(s) && i < THREADS_MAX; i++)
		walk_thread(s, i);
	walk_merged(s);
	steps_close(s);
	trace_reader_close(r);
	return 0;
}
