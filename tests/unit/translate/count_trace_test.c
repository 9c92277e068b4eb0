/* SPDX-License-Identifier: MIT */
/* Blocks and events of this very program, as if it had been translated, into a trace and back. */
#include "translate/count_trace.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calltree/build.h"
#include "calltree/code_counts.h"
#include "calls_world.h"
#include "models.h"
#include "process/proc.h"

/* One instruction is a byte, but for the jump: 2. */
__asm__(".pushsection .text\n"
	".type traced_one, @function\n"
	"traced_one: nop; nop; jne 1f; nop; 1: ret\n"
	".size traced_one, . - traced_one\n"
	".type traced_two, @function\n"
	"traced_two: nop; nop; ret\n"
	".size traced_two, . - traced_two\n"
	".type traced_two.cold, @function\n"
	"traced_two.cold: nop; nop; nop; ret\n"
	".size traced_two.cold, . - traced_two.cold\n"
	".skip 4096, 0x90\n" /* without a name */
	"traced_nothing = .\n"
	"nop; nop; nop; ret\n"
	".type traced_border, @function\n"
	"traced_border: ret\n"
	".size traced_border, . - traced_border\n"
	".skip 4096, 0x90\n"
	"nop; nop; nop; ret\n" /* without even a label */
	".type traced_three, @function\n"
	"traced_three: nop; nop; ret\n"
	".size traced_three, . - traced_three\n"
	"nop; nop; nop; nop; ret\n" /* the same */
	".popsection\n");
extern const char traced_one[], traced_two[], traced_cold[] __asm__("traced_two.cold"), traced_nothing[], traced_three[];

struct traced {
	struct trace_writer *w;
	struct trace_reader *r;
	struct images *images;
	struct process process;
	struct count_trace *t;
	struct count_totals totals;
	struct code_counts *code;
	struct profile *profile;
	int fd;
};

static void take_mapping(void *ctx, const struct proc_mapping *m)
{
	struct traced *w = ctx;
	struct image_query query = {.pid = (uint32_t)getpid(), .mapping = *m};
	struct mapping to = {.start = m->start, .end = m->end, .offset = {m->offset}};

	if (!(m->prot & PROT_EXEC) || !strcmp(m->path, "[vsyscall]"))
		return;
	to.image = images_ensure(w->images, &query);
	to.bias = images_bias(w->images, to.image, to.start, to.offset);
	addrspace_map(&w->process.space, &to);
}

static void must(int rc, const struct err *err)
{
	if (rc == 0)
		return;
	puts(err->text);
	exit(1);
}

static void begin(struct traced *w)
{
	struct err err;

	memset(w, 0, sizeof(*w));
	w->fd = memfd_create("trace", MFD_CLOEXEC);
	must(trace_writer_open_fd(&w->w, dup(w->fd), "trace", &err), &err);
	w->images = images_new();
	w->process = (struct process){.pid = 100, .space = addrspace_new()};
	must(proc_each_mapping(getpid(), take_mapping, w, &err), &err);
	w->t = count_trace_new(w->w, trace_writer_stream(w->w, STREAM_KIND_LIFE, 0), w->images);
	world = NULL;
}

static void begin_program(struct traced *w)
{
	world = counts_new(100);
	world_cost = 0;
	world_thread = 1;
	counts_set_space(world, &w->process.space);
}

/* Block number i. */
static void block(uint32_t i, const void *pc, uint32_t bytes, uint16_t n_insns)
{
	struct translate_block row = {
		.pc = (uint64_t)(uintptr_t)pc, .bytes = bytes, .n_insns = n_insns};

	counts_blocks(world, i, &row, 1);
}

static void end_program(struct traced *w, const uint64_t *counters, size_t n)
{
	counts_thread(world, 1, 100, "thread", world_cost, counters, n);
	count_trace_add(w->t, world, &w->process, 5);
	counts_free(world);
}

static void read_back(struct traced *w)
{
	struct build_options options = BUILD_OPTIONS_ALL;
	struct err err;
	char path[32];

	count_trace_finish(w->t, 6, &w->totals);
	must(trace_writer_close(w->w, &err), &err);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
	must(trace_reader_open(&w->r, path, &err), &err);
	must(code_counts_build(&w->code, w->r, &err), &err);
	must(profile_build(&w->profile, w->r, &options, &err), &err);
}

static void end(struct traced *w)
{
	profile_free(w->profile);
	code_counts_free(w->code);
	trace_reader_close(w->r);
	count_trace_free(w->t);
	addrspace_free(w->process.space);
	images_free(w->images);
	close(w->fd);
}

static const struct code_function *function_of(const struct traced *w, const char *name)
{
	static const struct code_function none;
	ptrdiff_t i = code_counts_find(w->code, name, 0);

	CHECK(i >= 0);
	return i < 0 ? &none : &w->code->functions[i];
}

static const struct code_block *block_of(const struct traced *w, const char *name, size_t i)
{
	static const struct code_block none;
	const struct code_function *f = function_of(w, name);

	CHECK(i < f->n_blocks);
	return i < f->n_blocks ? &w->code->blocks[f->first_block + i] : &none;
}

static struct flat_row row_of(const struct traced *w, const char *name)
{
	for (uint32_t r = 1; r < calltree_n_routines(w->profile->tree); r++)
		if (!strcmp(calltree_get_routine(w->profile->tree, r)->name, name))
			return flat_sum_routine(w->profile->tree, r);
	CHECK_STR("no such routine", name);
	return (struct flat_row){0};
}

static uint64_t reason(const struct traced *w, const char *beginning)
{
	for (size_t i = 0; i < w->profile->loss.n_reasons; i++)
		if (!strncmp(w->profile->loss.reasons[i].phrase, beginning, strlen(beginning)))
			return w->profile->loss.reasons[i].n;
	return 0;
}

/* ---------------------------------------------------------------------------------------------- */

static void blocks_that_overlap(void)
{
	uint64_t counters[] = {10, 4, 6};
	struct traced w;

	begin(&w);
	begin_program(&w);
	block(0, traced_one, 4, 3);
	block(1, traced_one + 4, 2, 2);
	block(2, traced_one + 5, 1, 1);
	enter(0, 'a', TOP); /* block 0 */
	leave(30 + 8 + 6, TOP);
	end_program(&w, counters, 3);
	read_back(&w);
	CHECK_EQ(w.totals.n_insns, 44);
	CHECK_EQ(w.totals.n_calls, 1);
	CHECK_EQ(w.totals.n_lost, 0);
	CHECK_EQ(w.profile->loss.n_reasons, 0);
	CHECK_EQ(function_of(&w, "traced_one")->n_blocks, 3);
	CHECK_EQ(function_of(&w, "traced_one")->instructions, 44);
	CHECK_EQ(function_of(&w, "traced_one")->calls, 1);
	CHECK_EQ(block_of(&w, "traced_one", 0)->n_insns, 3);
	CHECK_EQ(block_of(&w, "traced_one", 0)->count, 10);
	CHECK_EQ(block_of(&w, "traced_one", 1)->n_insns, 1);
	CHECK_EQ(block_of(&w, "traced_one", 1)->count, 4);
	CHECK_EQ(block_of(&w, "traced_one", 2)->count, 10);
	CHECK_EQ(row_of(&w, "traced_one").base, 44);
	CHECK_EQ(row_of(&w, "100_100").cum, 44);
	/* What has lines and could have been executed. */
	CHECK_EQ(function_of(&w, "main")->instructions, 0);
	CHECK(function_of(&w, "main")->n_blocks);
	CHECK(function_of(&w, "main")->line);
	end(&w);
}

static void blocks_that_faulted(void)
{
	uint64_t counters[] = {10};
	struct traced w;

	begin(&w);
	begin_program(&w);
	block(0, traced_one, 4, 3);
	enter(0, 'a', TOP);
	event(15, TRANSLATE_EVENT_FAULT, 2, 0);
	event(15, TRANSLATE_EVENT_FAULT, 3, 0);
	leave(0, TOP);
	end_program(&w, counters, 1);
	read_back(&w);
	CHECK_EQ(w.totals.n_insns, 25);
	CHECK_EQ(w.totals.n_lost, 0);
	CHECK_EQ(function_of(&w, "traced_one")->instructions, 25);
	CHECK_EQ(block_of(&w, "traced_one", 0)->n_insns, 1);
	CHECK_EQ(block_of(&w, "traced_one", 0)->count, 9);
	CHECK_EQ(block_of(&w, "traced_one", 1)->n_insns, 2);
	CHECK_EQ(block_of(&w, "traced_one", 1)->count, 8);
	CHECK_EQ(row_of(&w, "traced_one").base, 25);
	end(&w);
}

static void parts(void)
{
	uint64_t counters[] = {2, 1};
	struct traced w;

	begin(&w);
	begin_program(&w);
	block(0, traced_two, 3, 3);
	block(1, traced_cold, 4, 4);
	enter(0, 'a', TOP);
	leave(10, TOP);
	end_program(&w, counters, 2);
	read_back(&w);
	CHECK_EQ(row_of(&w, "traced_two").base, 10);
	CHECK_EQ(function_of(&w, "traced_two")->instructions, 6);
	CHECK_EQ(function_of(&w, "traced_two.cold")->instructions, 4);
	CHECK(function_of(&w, "traced_two.cold")->is_fragment);
	CHECK_EQ(w.profile->loss.n_reasons, 0);
	end(&w);
}

static void what_ran_outside_of_calls(void)
{
	uint64_t counters[] = {1, 3};
	struct traced w;

	begin(&w);
	begin_program(&w);
	block(0, traced_one, 4, 3);
	block(1, traced_two, 3, 3);
	enter(9, 'a', TOP); /* attached to within traced_two */
	leave(3, TOP);
	end_program(&w, counters, 2);
	read_back(&w);
	CHECK_EQ(row_of(&w, "traced_one").base, 3);
	CHECK_EQ(row_of(&w, "traced_two").base, 9);
	CHECK_EQ(row_of(&w, "100_100").base, 0);
	CHECK_EQ(w.profile->loss.n_reasons, 0);
	end(&w);
}

static void what_was_jumped_into(void)
{
	uint64_t counters[] = {1, 3};
	struct traced w;

	begin(&w);
	begin_program(&w);
	block(0, traced_one, 4, 3);
	block(1, traced_two + 1, 2, 2);
	enter(0, 'a', TOP);
	leave(9, TOP);
	end_program(&w, counters, 2);
	read_back(&w);
	CHECK_EQ(row_of(&w, "traced_one").base, 9);
	CHECK_EQ(function_of(&w, "traced_two")->instructions, 6);
	CHECK_EQ(reason(&w, "an instruction is in the cost of a function that jumped"), 6);
	CHECK_EQ(w.totals.n_lost, 0);
	end(&w);
}

/* Its name comes later, from who names frames. */
static void code_without_a_name(void)
{
	static const uint8_t code[] = {0x90, 0x90, 0xc3};
	uint64_t counters[] = {1, 7, 2};
	struct traced w;

	begin(&w);
	begin_program(&w);
	block(0, traced_nothing, 4, 4);
	block(1, (void *)0x10000, 3, 3); /* nowhere */
	block(2, (void *)0x10003, 2, 2); /* and nobody knows its code */
	counts_code(world, 1, code, 3);
	enter(0, 'a', TOP);
	enter(4, 'b', TOP - 16);
	leave(25, TOP - 16);
	leave(0, TOP);
	end_program(&w, counters, 3);
	read_back(&w);
	CHECK_EQ(w.totals.n_insns, 29);
	CHECK_EQ(reason(&w, "a block's code is not at hand"), 1);
	for (size_t i = 0; i < w.code->n_functions; i++) {
		const struct code_function *f = &w.code->functions[i];

		if (f->address != 0x10000)
			continue;
		CHECK_EQ(f->instructions, 25);
		CHECK_EQ(f->calls, 1);
		CHECK_EQ(f->bytes, 5);
		CHECK_EQ(f->n_blocks, 2);
	}
	end(&w);
}

/* What stands between two stretches of it is not a part of it that was not executed. */
static void code_without_a_name_around_a_function(void)
{
	uint64_t counters[] = {1, 2, 3};
	struct traced w;

	begin(&w);
	begin_program(&w);
	block(0, traced_three - 4, 4, 4);
	block(1, traced_three, 3, 3);
	block(2, traced_three + 3, 5, 5); /* nobody has called it */
	enter(0, 'a', TOP);
	enter(4, 'b', TOP - 16);
	leave(10, TOP - 16);
	leave(25, TOP);
	end_program(&w, counters, 3);
	read_back(&w);
	CHECK_EQ(function_of(&w, "traced_three")->instructions, 6);
	for (size_t i = 0; i < w.code->n_functions; i++) {
		const struct code_function *f = &w.code->functions[i];

		if (f->instructions == 4 || f->instructions == 15)
			CHECK_EQ(f->bytes, f->instructions == 4 ? 4 : 5);
		else
			CHECK(f->instructions == 6 || !f->instructions);
	}
	end(&w);
}

static void several_programs(void)
{
	uint64_t counters[] = {5};
	struct traced w;

	begin(&w);
	for (int i = 0; i < 3; i++) { /* one thread that executes itself */
		begin_program(&w);
		block(0, traced_one, 4, 3);
		enter(0, 'a', TOP);
		leave(15, TOP);
		end_program(&w, counters, 1);
	}
	read_back(&w);
	CHECK_EQ(w.totals.n_insns, 45);
	CHECK_EQ(row_of(&w, "traced_one").base, 45);
	CHECK_EQ(row_of(&w, "traced_one").calls, 3);
	CHECK_EQ(block_of(&w, "traced_one", 0)->count, 15);
	CHECK_EQ(w.profile->loss.n_reasons, 0);
	end(&w);
}

static void losses(void)
{
	uint64_t counters[] = {5};
	struct traced w;

	begin(&w);
	begin_program(&w);
	block(0, traced_one, 4, 3);
	enter(0, 'a', TOP);
	leave(10, TOP); /* five too few */
	counts_tell(world, true, 2, "something that is lost");
	counts_tell(world, true, 3, "something that is lost");
	counts_tell(world, false, 1, "something to know");
	end_program(&w, counters, 1);
	begin_program(&w);
	enter(0, 'a', TOP); /* a block that nobody has told of */
	count_trace_add(w.t, world, &w.process, 5);
	counts_free(world);
	read_back(&w);
	CHECK_EQ(reason(&w, "an instruction is in the blocks of a thread and not in its call tree"), 5);
	CHECK_EQ(reason(&w, "something that is lost"), 5);
	CHECK_EQ(reason(&w, "something to know"), 1);
	CHECK_EQ(reason(&w, "an event of the translator makes no sense"), 1);
	CHECK_EQ(w.totals.n_lost, 11);
	end(&w);
}

int main(void)
{
	static const struct test tests[] = {
		{"blocks that overlap are counted instruction by instruction", blocks_that_overlap},
		{"a block that faulted counts up to there", blocks_that_faulted},
		{"what was split off a function is in its calls", parts},
		{"what ran before the first call is its function's", what_ran_outside_of_calls},
		{"what was jumped into is told", what_was_jumped_into},
		{"code without a name is counted", code_without_a_name},
		{"a function between stretches of code without a name is not of it",
			code_without_a_name_around_a_function},
		{"programs of one thread, and of one file, add up", several_programs},
		{"what is missing is told", losses},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
