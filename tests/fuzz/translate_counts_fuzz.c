/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what translators tell: blocks, code, functions, events, counters, of several programs one after the
 * other, into a trace and back. What is written can be read, and costs are charged exactly once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calltree/build.h"
#include "calltree/code_counts.h"
#include "translate/count_trace.h"
#include "translate/counts_internal.h"

#define CODE	 0x400000u
#define IMAGE	 0x500000u /* the vdso, as something that has functions */
#define BYTES	 0x2000u
#define TOP	 0x7ffd00000000u
#define N_THREADS 3
#define PROGRAMS_MAX 8
#define NAMES	 "abc"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct fuzz {
	const uint8_t *p, *end;
	struct images *images;
	struct process process;
	struct trace_writer *w;
	struct count_trace *trace;
	struct counts *c;
	uint64_t cost[N_THREADS];
	uint32_t n_rows;
	uint64_t n_programs, total;
};

static void need(bool condition)
{
	if (!condition)
		abort();
}

static uint64_t number(struct fuzz *f, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes && f->p < f->end; i++)
		v |= (uint64_t)*f->p++ << 8 * i;
	return v;
}

static bool find_bounds(void *ctx, uint64_t sp, uint64_t *low, uint64_t *high)
{
	(void)ctx;
	*low = sp & ~0xffffull;
	*high = *low + (sp & 0x10000 ? 0x10000 : 0x8000); /* where that is too little it is refused */
	return sp & 0x20000;
}

static void begin_program(struct fuzz *f, const struct counts *parent)
{
	f->c = counts_new(7);
	counts_set_space(f->c, &f->process.space);
	if (f->n_programs & 1)
		counts_set_stacks(f->c, find_bounds, NULL);
	memset(f->cost, 0, sizeof(f->cost));
	f->n_rows = 0;
	f->n_programs++;
	if (!parent)
		return;
	counts_fork(f->c, 0, 7, parent, 0);
	f->n_rows = (uint32_t)parent->rows.n;
}

/* What a thread is charged with is what it ran, but for what faulted. */
static uint64_t check_thread(const struct counts *c, const struct call_thread *t)
{
	uint64_t nodes = 0, faults = 0;

	for (size_t i = 0; i < t->nodes.n; i++) {
		need(!i || t->nodes.v[i].parent < i);
		need(t->nodes.v[i].function < c->by_number.n);
		nodes += t->nodes.v[i].cost;
	}
	for (size_t i = 0; i < t->faults.n; i++)
		faults += t->faults.v[i].n_left * t->faults.v[i].count;
	need(nodes + faults == t->last_cost);
	return nodes;
}

static void end_program(struct fuzz *f)
{
	counts_settle(f->c);
	for (size_t i = 0; i < f->c->threads.n; i++)
		f->total += check_thread(f->c, f->c->threads.v[i]);
	count_trace_add(f->trace, f->c, &f->process, f->n_programs);
}

static void next_program(struct fuzz *f, bool is_fork)
{
	struct counts *parent = f->c;

	if (f->n_programs == PROGRAMS_MAX)
		return;
	end_program(f);
	begin_program(f, is_fork ? parent : NULL);
	counts_free(parent);
}

static void add_blocks(struct fuzz *f, uint64_t how)
{
	struct translate_block rows[4];
	size_t n = how % 4 + 1;

	memset(rows, 0, sizeof(rows));
	for (size_t i = 0; i < n; i++) {
		rows[i].pc = (how & 16 ? IMAGE : CODE) + number(f, 2) % BYTES;
		rows[i].bytes = (uint32_t)number(f, 1);
		rows[i].n_insns = (uint16_t)number(f, 1);
		rows[i].flags = (uint16_t)how;
		if (how & 8)
			rows[i].pc = number(f, 8);
	}
	if (how & 32) { /* anywhere, but not so far that filling up takes long */
		counts_blocks(f->c, (uint32_t)number(f, 1) * (how & 64 ? 0x1000000u : 1), rows, n);
		f->n_rows = (uint32_t)f->c->rows.n;
		return;
	}
	counts_blocks(f->c, f->n_rows, rows, n);
	f->n_rows += (uint32_t)n;
}

static void add_functions(struct fuzz *f, uint64_t how)
{
	struct translate_function v[4];
	size_t n = how % 4 + 1;
	uint64_t at = CODE;

	for (size_t i = 0; i < n; i++) {
		at += how & 8 ? number(f, 8) : number(f, 1);
		v[i] = (struct translate_function){at, (uint32_t)number(f, 1), 0};
	}
	counts_functions(f->c, v, n);
}

static void add_event(struct fuzz *f, uint64_t how)
{
	struct translate_event e = {.kind = (uint32_t)(how & 7)};
	uint64_t thread = how >> 3 & 1;

	e.sp = TOP - number(f, 1) * 8;
	e.block = (uint32_t)number(f, 1);
	if (how & 16) /* another stack, one way or the other */
		e.sp -= number(f, 1) << 16;
	if (e.kind == TRANSLATE_EVENT_FAULT)
		e.sp = number(f, 1);
	f->cost[thread] += number(f, 1);
	e.cost = f->cost[thread];
	if (how & 32) { /* makes no sense */
		e.sp = number(f, 8);
		e.kind = (uint32_t)number(f, 4);
		e.block = (uint32_t)number(f, 4);
	}
	counts_events(f->c, thread, 7 + (pid_t)thread, &e, 1);
}

static void add_thread(struct fuzz *f, uint64_t how)
{
	uint64_t thread = how % N_THREADS, counters[32];
	uint64_t ran = number(f, 1);
	size_t n = number(f, 1) % 33;

	for (size_t i = 0; i < n; i++)
		counters[i] = number(f, how & 8 ? 8 : 1);
	f->cost[thread] += ran;
	counts_thread(f->c, thread, 7 + (pid_t)thread, how & 4 ? NAMES : NULL, f->cost[thread],
		counters, n);
}

static void add_code(struct fuzz *f)
{
	uint32_t block = (uint32_t)number(f, 1);
	size_t n = block < f->c->rows.n ? f->c->rows.v[block].bytes : 3;
	uint8_t code[256];

	if (n > sizeof(code))
		return;
	for (size_t i = 0; i < n; i++)
		code[i] = (uint8_t)number(f, 1);
	counts_code(f->c, block, code, n);
}

static void play(struct fuzz *f)
{
	while (f->p < f->end) {
		uint64_t what = number(f, 1), how = what >> 3;

		switch (what & 7) {
		case 0:
			add_blocks(f, number(f, 1));
			break;
		case 1:
			add_functions(f, how);
			break;
		case 2:
			add_code(f);
			break;
		case 3:
			add_thread(f, how);
			break;
		case 4:
			if (how & 16)
				next_program(f, how & 1);
			else
				counts_tell(f->c, how & 1, how, NAMES);
			break;
		default:
			add_event(f, number(f, 1));
		}
	}
}

static uint64_t sum_of(const struct calltree *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < calltree_n_nodes(t); i++)
		sum += calltree_get(t, i)->base;
	return sum;
}

static void read_back(struct fuzz *f, int fd)
{
	struct build_options options = BUILD_OPTIONS_ALL;
	struct trace_reader *r;
	struct profile *profile;
	struct code_counts *code;
	char path[32];
	struct err err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	need(trace_reader_open(&r, path, &err) == 0);
	need(profile_build(&profile, r, &options, &err) == 0);
	need(code_counts_build(&code, r, &err) == 0);
	for (size_t i = 0; i < profile->loss.n_reasons; i++)
		need(!strstr(profile->loss.reasons[i].phrase, "damaged"));
	/* Without a single call functions are what their blocks add up to, which may be anything here. */
	need(profile->counts.is_flat || sum_of(profile->tree) == f->total);
	code_counts_free(code);
	profile_free(profile);
	trace_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fuzz f = {.p = data, .end = data + n, .process = {.pid = 7, .space = addrspace_new()}};
	struct image_query vdso = {.pid = (uint32_t)getpid(), .mapping = {.path = "[vdso]"}};
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct count_totals totals;
	struct mapping m = {.start = IMAGE, .end = IMAGE + BYTES, .bias = IMAGE};
	struct err err;

	need(fd >= 0 && trace_writer_open_fd(&f.w, dup(fd), "trace", &err) == 0);
	f.images = images_new();
	m.image = images_ensure(f.images, &vdso);
	addrspace_map(&f.process.space, &m);
	f.trace = count_trace_new(f.w, trace_writer_stream(f.w, STREAM_KIND_LIFE, 0), f.images);
	begin_program(&f, NULL);
	play(&f);
	end_program(&f);
	counts_free(f.c);
	count_trace_finish(f.trace, f.n_programs, &totals);
	need(trace_writer_close(f.w, &err) == 0);
	read_back(&f, fd);
	count_trace_free(f.trace);
	addrspace_free(f.process.space);
	images_free(f.images);
	close(fd);
	return 0;
}
