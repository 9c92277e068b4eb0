/* SPDX-License-Identifier: MIT */
/*
 * Count files into traces: made here from the structures of count_abi.h, imported into memory, and
 * asked by way of the profile and of the model of code.
 */
#include "check.h"
#include "models.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "calltree/arcs.h"
#include "calltree/build.h"
#include "calltree/code_counts.h"
#include "formats/import_counts.h"
#include "rt/count/count_abi.h"

#define BASE	      0x555555554000ull
#define TEXT	      (BASE + 0x1000)
#define UNITS	      (BASE + 0x100000)
#define COUNTERS      (BASE + 0x200000)
#define FUNCTION_SIZE 64u
#define N_FUNCTIONS   4u /* main, A, _Z1Di, never: two blocks each, of 3 and 2 instructions */
#define N_BLOCKS      (2 * N_FUNCTIONS)
#define HEADER_BYTES  (offsetof(struct count_header, areas) + 8 * sizeof(struct count_area))

enum { MAIN, A, D, NEVER };

static struct count_header head;
static uint32_t unit_flags;
static VEC(struct count_node) nodes;
static struct count_thread thread;
static uint64_t counts[N_BLOCKS];
static struct buf file;
static struct trace_reader *reader;
static struct profile *profile;
static struct err err;

/* ---- a count file ---- */

static void begin(void)
{
	head = (struct count_header){.version = COUNT_FILE_VERSION,
		.header_bytes = HEADER_BYTES,
		.pid = 100,
		.base = BASE,
		.flags = COUNT_FILE_TREE,
		.ticks_per_s = 2000000000};
	memcpy(head.magic, COUNT_FILE_MAGIC, 8);
	unit_flags = COUNT_UNIT_TREE;
	nodes.n = 0;
	vec_push(&nodes, ((struct count_node){.min = UINT64_MAX}));
	thread = (struct count_thread){.tid = 101, .name = "worker"};
	memset(counts, 0, sizeof(counts));
	memset(&err, 0, sizeof(err));
}

static uint64_t key_of(unsigned function)
{
	return TEXT + function * FUNCTION_SIZE + 5;
}

static uint32_t add_node(uint32_t parent, uint64_t key, uint64_t calls, uint64_t cost)
{
	vec_push(&nodes, ((struct count_node){.parent = parent,
				 .key = key,
				 .calls = calls,
				 .cost = cost,
				 .min = UINT64_MAX}));
	return (uint32_t)nodes.n - 1;
}

static void put_unit(struct buf *b)
{
	static const char names[] = "\0main\0A\0_Z1Di\0never\0write\0a.o";
	static const uint32_t name_at[] = {1, 6, 8, 14};
	struct count_unit unit = {.magic = COUNT_UNIT_MAGIC,
		.version = COUNT_UNIT_VERSION,
		.flags = unit_flags,
		.text = (int32_t)(TEXT - (UNITS + offsetof(struct count_unit, text))),
		.counters = (int32_t)(COUNTERS - (UNITS + offsetof(struct count_unit, counters))),
		.text_bytes = N_FUNCTIONS * FUNCTION_SIZE,
		.n_functions = N_FUNCTIONS,
		.n_blocks = N_BLOCKS,
		.n_foreign = 1,
		.names_bytes = sizeof(names),
		.object_name = 26};
	struct count_foreign_site site = {.site = 20, .name = 20};
	size_t at = b->n;

	buf_put(b, &unit, sizeof(unit));
	for (uint32_t i = 0; i < N_FUNCTIONS; i++) {
		struct count_function f = {.start = i * FUNCTION_SIZE,
			.bytes = FUNCTION_SIZE,
			.entry = i * FUNCTION_SIZE + 5,
			.name = name_at[i],
			.first_block = 2 * i,
			.n_blocks = 2};

		buf_put(b, &f, sizeof(f));
	}
	for (uint32_t i = 0; i < N_BLOCKS; i++) {
		struct count_block block = {.start = i * FUNCTION_SIZE / 2,
			.end = (i + 1) * FUNCTION_SIZE / 2,
			.n_insns = i % 2 ? 2 : 3};

		buf_put(b, &block, sizeof(block));
	}
	buf_put(b, &site, sizeof(site));
	buf_put(b, names, sizeof(names));
	while ((b->n - at) % 8)
		buf_put_u8(b, 0);
	unit.bytes = (uint32_t)(b->n - at);
	memcpy(b->p + at, &unit, sizeof(unit));
}

static void put_area(
	size_t i, enum count_area_kind kind, const void *bytes, size_t n, uint64_t first)
{
	struct count_area row = {.kind = kind, .offset = file.n, .bytes = n, .first = first};

	buf_put(&file, bytes, n);
	while (file.n % 8)
		buf_put_u8(&file, 0);
	memcpy(file.p + offsetof(struct count_header, areas) + i * sizeof(row), &row, sizeof(row));
}

static void make_file(void)
{
	struct buf units = {0};

	buf_reset(&file);
	buf_put(&file, &head, HEADER_BYTES);
	put_unit(&units);
	thread.n_nodes = (uint32_t)nodes.n;
	put_area(0, COUNT_AREA_UNITS, units.p, units.n, UNITS);
	put_area(1, COUNT_AREA_THREAD, &thread, sizeof(thread), 0);
	put_area(2, COUNT_AREA_COUNTERS, counts, sizeof(counts), COUNTERS);
	put_area(3, COUNT_AREA_NODES, nodes.v, nodes.n * sizeof(*nodes.v), 0);
	buf_release(&units);
}

/* ---- from the file to a profile ---- */

static int import(struct span bytes)
{
	struct import_counts_options options = {.exe = "/nonexistent/program"};
	int fd = memfd_create("import_counts_test", 0), rc;
	struct trace_writer *w;
	char path[40];

	CHECK_EQ(trace_writer_open_fd(&w, dup(fd), "counts", &err), 0);
	rc = import_counts(bytes, &options, w, &err);
	CHECK_EQ(trace_writer_close(w, NULL), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (rc == 0)
		CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
	close(fd);
	return rc;
}

static void build(const char *metric)
{
	struct build_options options = BUILD_OPTIONS_ALL;

	options.metric = metric;
	profile_free(profile);
	profile = NULL;
	if (!reader) {
		make_file();
		CHECK_EQ(import(buf_span(&file)), 0);
	}
	CHECK_EQ(profile_build(&profile, reader, &options, &err), 0);
}

static void end(void)
{
	profile_free(profile);
	trace_reader_close(reader);
	profile = NULL;
	reader = NULL;
}

/* The node at the end of a path of names below the thread. */
static const struct calltree_node *at(const char *first, const char *second, const char *third)
{
	const char *const path[] = {first, second, third};
	const struct calltree *t = profile->tree;
	uint32_t id = calltree_first_root(t);

	for (size_t i = 0; i < 3 && path[i] && id; i++) {
		for (id = calltree_get(t, id)->first_child; id;
			id = calltree_get(t, id)->next_sibling)
			if (!strcmp(calltree_get_routine(t, calltree_get(t, id)->routine)->name,
				    path[i]))
				break;
	}
	CHECK(id);
	return calltree_get(t, id);
}

static uint64_t n_noted(const char *phrase)
{
	for (size_t i = 0; i < profile->loss.n_reasons; i++)
		if (strstr(profile->loss.reasons[i].phrase, phrase))
			return profile->loss.reasons[i].n;
	return 0;
}

/* ---- tests ---- */

/* main calls A and D, A calls D: 1, 10 and 5 executions of both blocks of each. */
static void three_functions(void)
{
	uint32_t m, a;

	begin();
	m = add_node(0, key_of(MAIN), 1, 5);
	a = add_node(m, key_of(A), 10, 50);
	add_node(m, key_of(D), 2, 10);
	add_node(a, key_of(D), 3, 15);
	counts[0] = counts[1] = 1;
	counts[2] = counts[3] = 10;
	counts[4] = counts[5] = 5;
}

static void layout(void)
{
	CHECK_EQ(offsetof(struct count_header, areas), 2216);
	CHECK_EQ(sizeof(struct count_unit), 48);
	CHECK_EQ(sizeof(struct count_function), 28);
	CHECK_EQ(sizeof(struct count_block), 16);
	CHECK_EQ(sizeof(struct count_thread), 56);
	CHECK_EQ(sizeof(struct count_call), 8);
	CHECK_EQ(sizeof(struct count_node), 64);
	CHECK_EQ(sizeof(struct count_area), 32);
}

static void tree_by_context(void)
{
	three_functions();
	build(NULL);
	CHECK_STR(profile->metric, "instructions");
	CHECK_EQ(profile->total, 80);
	CHECK_EQ(at("main", NULL, NULL)->cum, 80);
	CHECK_EQ(at("main", "A", NULL)->cum, 65);
	CHECK_EQ(at("main", "A", "D(int)")->base, 15);
	CHECK_EQ(at("main", "D(int)", NULL)->base, 10);
	CHECK_EQ(at("main", "D(int)", NULL)->calls, 2);
	CHECK_EQ(profile->counts.n_functions, 4);
	CHECK_EQ(profile->counts.n_executed, 3);
	CHECK_EQ(profile->counts.n_blocks, 8);
	CHECK_EQ(profile->counts.n_blocks_executed, 6);
	CHECK(!profile->counts.is_flat);
	CHECK_STR(profile->threads[1].name, "worker");
	CHECK(!loss_is_real(&profile->loss));
	build("calls");
	CHECK_EQ(profile->total, 16);
	end();
}

static void uncharged(void)
{
	three_functions();
	counts[4] += 100; /* D went on and was not left */
	thread.current = 4;
	build(NULL);
	CHECK_EQ(profile->total, 380);
	CHECK_EQ(at("main", "A", "D(int)")->base, 315);
	end();
}

static void uncharged_in_foreign(void)
{
	three_functions();
	thread.current = add_node(1, COUNT_KEY_FOREIGN | (TEXT + 20), 1, 0);
	counts[0] += 7;
	build(NULL);
	CHECK_EQ(at("main", "write", NULL)->base, 0);
	CHECK_EQ(at("main", NULL, NULL)->base, 26);
	end();
}

static void overcharged(void)
{
	three_functions();
	nodes.v[1].cost += 9;
	build(NULL);
	CHECK_EQ(n_noted("more instructions than their blocks"), 9);
	CHECK_EQ(profile->total, 89);
	end();
}

static void cheapest_and_dearest(void)
{
	struct flat_row row;

	three_functions();
	nodes.v[3].min = 4;
	nodes.v[3].max = 6;
	nodes.v[4].min = 2;
	nodes.v[4].max = 9;
	build(NULL);
	row = flat_sum_routine(profile->tree, at("main", "D(int)", NULL)->routine);
	CHECK(row.has_range);
	CHECK_EQ(row.min, 2);
	CHECK_EQ(row.max, 9);
	row = flat_sum_routine(profile->tree, at("main", NULL, NULL)->routine);
	CHECK(!row.has_range); /* it did not end */
	end();
}

static void cycles_by_node(void)
{
	three_functions();
	head.flags |= COUNT_FILE_CYCLES;
	for (size_t i = 0; i < nodes.n; i++)
		nodes.v[i].cycles = nodes.v[i].cost * 33;
	build("cycles");
	CHECK(!profile->counts.is_flat);
	CHECK_EQ(profile->total, 80 * 33 / 100);
	end();
}

static void foreign_time(void)
{
	uint32_t outer, back;

	three_functions();
	outer = add_node(1, COUNT_KEY_FOREIGN | (TEXT + 20), 1, 0);
	nodes.v[outer].cycles = 2000; /* ticks: 1000 ns */
	back = add_node(outer, key_of(A), 1, 0);
	nodes.v[add_node(back, COUNT_KEY_FOREIGN | (TEXT + 20), 1, 0)].cycles = 600;
	build("foreign");
	CHECK_STR(profile->unit, "ns");
	CHECK_EQ(profile->total, 1000);
	CHECK_EQ(at("main", "write", NULL)->base, 700);
	CHECK_EQ(at("main", "write", NULL)->cum, 1000);
	CHECK_EQ(at("main", "write", "A")->cum, 300);
	CHECK_STR(
		calltree_get_routine(profile->tree, at("main", "write", NULL)->routine)->image, "");
	end();
}

static void without_tree(void)
{
	three_functions();
	head.flags = 0;
	unit_flags = 0;
	nodes.n = 1;
	build(NULL);
	CHECK(profile->counts.is_flat);
	CHECK(!profile->counts.has_calls);
	CHECK_EQ(profile->total, 80);
	CHECK_EQ(at("A", NULL, NULL)->base, 50);
	end();
}

static void sites_apart(void)
{
	struct flat flat;
	struct arcs arcs;
	size_t n_parents = 0;

	three_functions();
	head.flags |= COUNT_FILE_SITES;
	nodes.v[3].site = TEXT + 0x20;
	nodes.v[add_node(1, key_of(D), 1, 0)].site = TEXT + 0x2c;
	nodes.v[add_node(1, key_of(D), 1, 0)].site = TEXT + 0x3000; /* main is gone by then */
	build(NULL);
	CHECK_STR(calltree_site_label(profile->tree, calltree_site(profile->tree, 4)), "main+0x20");
	flat_init(&flat, profile->tree);
	arcs_init(&arcs, profile->tree, &flat);
	CHECK(arcs_check(&arcs, profile->tree, NULL));
	for (size_t i = 0; i < arcs.n_stanzas; i++)
		if (arcs.stanzas[i].self.routine == at("main", "D(int)", NULL)->routine)
			n_parents = arcs.stanzas[i].n_parents;
	CHECK_EQ(n_parents, 4); /* main+0x20, main+0x2c, main, A */
	CHECK_EQ(flat_sum_routine(profile->tree, at("main", "D(int)", NULL)->routine).calls, 7);
	arcs_release(&arcs);
	flat_release(&flat);
	end();
}

static void model_of_code(void)
{
	struct code_counts *c;
	ptrdiff_t d;

	three_functions();
	build(NULL);
	CHECK_EQ(code_counts_build(&c, reader, &err), 0);
	CHECK_EQ(c->n_functions, 4);
	CHECK_EQ(c->n_blocks, 8);
	CHECK_EQ(c->n_lines, 8);
	CHECK(!c->has_cost);
	CHECK_STR(c->functions[0].name, "main");
	CHECK_EQ(c->functions[0].address, 0x1000);
	CHECK_STR(c->functions[0].object, "a.o");
	d = code_counts_find(c, "_Z1Di", 0);
	CHECK_EQ(d, 2);
	CHECK_EQ(code_counts_find(c, "D(int)", 0), 2);
	CHECK_EQ(code_counts_find(c, "D(int)", 3), -1);
	CHECK_EQ(c->functions[2].calls, 5);
	CHECK_EQ(c->functions[2].instructions, 25);
	CHECK_EQ(c->blocks[c->functions[2].first_block].count, 5);
	CHECK_EQ(c->blocks[c->functions[2].first_block].n_insns, 3);
	CHECK_EQ(c->functions[3].instructions, 0);
	code_counts_free(c);
	end();
}

static void bad_nodes(void)
{
	three_functions();
	nodes.v[2].parent = 3; /* behind it */
	nodes.v[3].parent = 4000000000u;
	add_node(1, BASE + 7, 1, 0); /* no function begins there */
	add_node(1, 0, 0, 0);	     /* was being made */
	thread.current = 4000000000u;
	build(NULL);
	CHECK_EQ(profile->total, 80);
	CHECK_EQ(n_noted("no parent before it"), 2);
	CHECK_EQ(n_noted("no unit describes"), 1);
	CHECK(loss_is_real(&profile->loss));
	end();
}

static void lost_calls(void)
{
	three_functions();
	head.calls_lost = 12;
	head.n_threads_lost = 1;
	build(NULL);
	CHECK_EQ(profile->loss.events_lost, 12);
	CHECK_EQ(n_noted("counted together with another"), 1);
	end();
}

static void cut_anywhere(void)
{
	size_t n_refused = 0, n_opened = 0, n_whole = 0;

	three_functions();
	make_file();
	for (size_t n = 0; n <= file.n; n += n < HEADER_BYTES ? 97 : 5) {
		uint8_t *copy = mem_dup(file.p, n ? n : 1);

		memset(&err, 0, sizeof(err));
		if (import((struct span){copy, n}) < 0) {
			n_refused++;
			CHECK(err.text[0]);
		} else {
			n_opened++;
			build(NULL);
			n_whole += profile->total == 80 && !loss_is_real(&profile->loss);
			CHECK(profile->total <= 80);
		}
		end();
		free(copy);
	}
	CHECK(n_refused > 10);
	CHECK(n_opened > 50);
	CHECK(n_whole <= 2); /* the last bytes may be padding */
}

static void refused(void)
{
	three_functions();
	head.version = 9;
	make_file();
	CHECK_EQ(import(buf_span(&file)), ERR_UNSUPPORTED);
	CHECK(strstr(err.text, "version 9"));
	head.version = COUNT_FILE_VERSION;
	head.magic[0] = 'X';
	make_file();
	CHECK(!import_counts_is(buf_span(&file)));
	CHECK_EQ(import(buf_span(&file)), ERR_FORMAT);
}

int main(void)
{
	static const struct test tests[] = {
		{"the structures are as the run-time library was built with", layout},
		{"a function's cost is that of each of its contexts", tree_by_context},
		{"what was not charged belongs to the current node", uncharged},
		{"foreign code is never charged with instructions", uncharged_in_foreign},
		{"nodes that have more than their blocks are told", overcharged},
		{"min and max are those of calls that ended", cheapest_and_dearest},
		{"cycles are summed before they are rounded", cycles_by_node},
		{"foreign time that lies within foreign time counts once", foreign_time},
		{"a program without call trees has figures by function", without_tree},
		{"calls from several places are kept apart in tree and arcs, not in flat",
			sites_apart},
		{"the model of code has every function, block and name", model_of_code},
		{"nodes that do not fit hang at the thread, and it is told", bad_nodes},
		{"calls and threads without memory are told", lost_calls},
		{"a file that was cut anywhere is refused or read as far as it goes", cut_anywhere},
		{"another version and another magic are refused with a sentence", refused},
	};
	int rc = RUN_TESTS(tests);

	vec_release(&nodes);
	buf_release(&file);
	return rc;
}
