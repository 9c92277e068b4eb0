/* SPDX-License-Identifier: MIT */
/*
 * steps_dump write FILE          writes a trace with every kind of step record
 * steps_dump dump FILE [NUMBER]  prints the items of each thread from that step on, in the form of
 *                                tests/format/read_steps.py
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/steps_world.h"

#define LOOP_STEPS 12000

static int say(const struct err *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

/* A thread with more steps than an item or a chunk has: a loop over some instructions. */
static void add_loop(struct steps_world *world)
{
	uint32_t stream = world_thread(world, 7, 7), first = 0;
	static struct step_at steps[LOOP_STEPS];

	for (uint32_t i = 0; i < 16; i++)
		world_code(world, 7, 0, 0x4000 + 5 * i, "\xb8\x01\x02\x03\x04", 5);
	for (uint32_t i = 0; i < LOOP_STEPS; i++)
		steps[i] = (struct step_at){0x4000 + 5 * (uint64_t)(i % (i % 17 + 1)), 1};
	while (first < LOOP_STEPS) {
		uint32_t n = first + 5000 < LOOP_STEPS ? 5000 : LOOP_STEPS - first;

		world_run(world, stream, 1000 + first,
			&(struct step_run_head){.first = first, .space = 7, .n = n}, steps + first);
		world_cut(world);
		first += n;
	}
}

static int write_trace(const char *path)
{
	struct steps_world world;
	FILE *file = fopen(path, "w");
	bool is_written;

	world_begin(&world);
	world_add_everything(&world);
	add_loop(&world);
	world_end(&world);
	is_written = file && fwrite(world.bytes, 1, world.n_bytes, file) == world.n_bytes;
	free(world.bytes);
	return !file || fclose(file) || !is_written;
}

static void print_hex(const uint8_t *bytes, size_t n, const char *nothing)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	printf("%s", n ? "" : nothing);
}

static void print_steps(const struct steps *s, const struct step_item *item)
{
	for (uint32_t i = 0; i < item->n; i++) {
		const struct step *step = &item->steps[i];
		const struct step_insn *insn = steps_insn(s, step->insn);

		printf("%" PRIu64 " %" PRIu64 " %" PRIu32 "/%" PRIu32 " %" PRIx64 " x%" PRIu32,
			item->first + i, item->time, item->space, item->generation, step->addr,
			step->times);
		if (step->insn) {
			printf(" %" PRIu32 " %" PRIu32 " ", insn->generation, insn->frame);
			print_hex(insn->bytes, insn->n_bytes, "-");
			printf("\n");
		} else {
			printf(" none\n");
		}
	}
}

static void print_where(
	const struct steps *s, uint32_t space, uint64_t time, const struct step_datum *d)
{
	const struct trace_reader *r = steps_reader(s);
	struct step_where where;

	if (!steps_where(s, space, d->addr, time, &where))
		printf(" nowhere\n");
	else
		printf(" %d '%s' '%s' %" PRIx64 "\n", where.kind,
			trace_reader_string(r, trace_reader_image(r, where.image)->path),
			trace_reader_string(r, where.name), where.offset);
}

static void print_data(const struct steps *s, uint32_t space, const struct step_item *item)
{
	struct step_data_walk w;
	struct step_datum d;

	if (!step_data_open(&w, item->data))
		return;
	while (step_data_next(&w, &d) > 0) {
		printf("%" PRIu64 " %" PRIu64 " data %" PRIx64 " %u %u ", d.at, item->time, d.addr,
			d.how, d.n);
		if (d.has_value)
			print_hex(d.value, d.n, "");
		else
			printf("?");
		print_where(s, space, item->time, &d);
	}
}

/* *space is that of the last steps. */
static void print_item(const struct steps *s, uint32_t *space, const struct step_item *item)
{
	const struct step_mark *m = &item->mark;

	switch (item->kind) {
	case STEP_ITEM_STEPS:
		print_steps(s, item);
		*space = item->space;
		break;
	case STEP_ITEM_MARK:
		printf("%" PRIu64 " %" PRIu64 " mark %d %" PRId64 " %" PRId64 " %" PRId64 " '%s'\n",
			m->at, item->time, m->kind, m->a, m->b, m->c,
			trace_reader_string(steps_reader(s), m->text));
		break;
	case STEP_ITEM_DATA:
		print_data(s, *space, item);
		break;
	case STEP_ITEM_DAMAGE:
		printf("damage\n");
		fprintf(stderr, "%s\n", item->sentence);
		break;
	}
}

static int dump(const char *path, uint64_t from)
{
	struct step_cursor *c;
	struct step_item item;
	struct trace_reader *r;
	struct steps *s;
	struct err err;

	if (trace_reader_open(&r, path, &err) < 0)
		return say(&err);
	s = steps_open(r);
	for (uint32_t i = 0; i < steps_n_threads(s); i++) {
		const struct step_thread *t = steps_thread(s, i);
		uint32_t space = 0;

		printf("thread %" PRIu32 " %" PRIu32 " '%s' %" PRIu64 " steps\n", t->pid, t->tid,
			t->name, t->n_steps);
		if (step_cursor_open(&c, s, i, &err) < 0)
			return say(&err);
		if (from)
			step_cursor_seek(c, from);
		while (step_cursor_next(c, &item) > 0)
			print_item(s, &space, &item);
		step_cursor_close(c);
	}
	steps_close(s);
	trace_reader_close(r);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "write"))
		return write_trace(argv[2]);
	if (argc >= 3 && argc <= 4 && !strcmp(argv[1], "dump"))
		return dump(argv[2], argc == 4 ? strtoull(argv[3], NULL, 10) : 0);
	fprintf(stderr, "usage: steps_dump write FILE | dump FILE [NUMBER]\n");
	return 2;
}
