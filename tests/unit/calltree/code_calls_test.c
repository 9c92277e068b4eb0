/* SPDX-License-Identifier: MIT */
/*
 * Calls by function and parts of functions, from traces whose records of counts are written here;
 * and what the callgrind and the lcov export make of them.
 */
#include "calltree/code_calls.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calltree/build.h"
#include "check.h"
#include "formats/exports.h"

static struct trace_writer *w;
static uint32_t stream, thread, image;
static int fd;
static struct trace_reader *reader;
static struct code_counts *counts;
static struct code_calls *calls;
static struct err err;

/* ---- making ---- */

static void begin(void)
{
	struct trace_image i = {.kind = IMAGE_KIND_ELF, .bits = 64};
	struct trace_thread t = {.pid = 7, .tid = 7};

	fd = memfd_create("code_calls_test", 0);
	CHECK_EQ(trace_writer_open_fd(&w, dup(fd), "calls", &err), 0);
	stream = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	trace_writer_metric(w, "instructions", "1");
	thread = trace_writer_thread(w, &t);
	i.path = trace_writer_string(w, "/bin/prog");
	image = trace_writer_image(w, &i);
}

static uint32_t frame_of(const char *name, uint64_t addr)
{
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE,
		.image = addr ? image : 0,
		.name = trace_writer_string(w, name),
		.addr = addr};

	return trace_writer_frame(w, &frame);
}

static void put(uint32_t minor, const uint64_t *numbers, size_t n)
{
	trace_writer_numbers(w, stream, 0, RECORD_MAJOR_COUNT, minor, numbers, n);
}

/* A function of 0x40 bytes and one block. */
static uint32_t add_function(const char *name, uint64_t addr, const char *object, uint64_t flags)
{
	uint32_t frame = frame_of(name, addr);
	uint64_t n[6] = {frame, 0x40, 0, 1, flags, trace_writer_string(w, object)};

	put(RECORD_COUNT_FUNCTION, n, 6);
	return frame;
}

static void add_block(uint32_t frame, uint64_t addr, uint64_t n_insns, uint64_t count)
{
	uint64_t n[6] = {frame, addr, addr + 0x20, n_insns, 0, count};

	put(RECORD_COUNT_BLOCK, n, 6);
}

static void add_line(const char *file, uint64_t line, uint64_t n_insns, uint64_t addr)
{
	uint64_t n[4] = {trace_writer_string(w, file), line, n_insns, addr};

	put(RECORD_COUNT_LINE, n, 4);
}

static void add_node(uint64_t node, uint64_t parent, uint32_t frame, uint64_t n_calls,
	uint64_t instructions, uint64_t site)
{
	uint64_t n[11] = {thread, node, parent, frame, n_calls + 1, instructions, 0, 1, 0, 0, site};

	put(RECORD_COUNT_NODE, n, 11);
}

static void finish(void)
{
	char path[40];

	CHECK_EQ(trace_writer_close(w, &err), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
	close(fd);
	CHECK_EQ(code_counts_build(&counts, reader, &err), 0);
	CHECK_EQ(code_calls_build(&calls, reader, counts, &err), 0);
}

static void end(void)
{
	code_calls_free(calls);
	code_counts_free(counts);
	trace_reader_close(reader);
	calls = NULL;
	counts = NULL;
	reader = NULL;
}

/* The sum over all places; NULL caller: the thread. */
static struct code_call sum_of(const char *caller, const char *callee)
{
	struct code_call sum = {0};

	for (size_t i = 0; i < calls->n_calls; i++) {
		const struct code_call *call = &calls->calls[i];

		if (strcmp(calls->parties[call->caller].name, caller ? caller : "") ||
			strcmp(calls->parties[call->callee].name, callee))
			continue;
		sum.calls += call->calls;
		sum.instructions += call->instructions;
		sum.site = call->site;
	}
	return sum;
}

/* ---- tests ---- */

static void test_sums(void)
{
	uint32_t m, f, g;

	begin();
	m = add_function("main", 0x1000, "a.o", 0);
	f = add_function("f", 0x1100, "a.o", 0);
	g = frame_of("foreign", 0);
	add_node(1, 0, m, 1, 10, 0);
	add_node(2, 1, f, 3, 30, 0);
	add_node(3, 2, f, 2, 20, 0); /* recursive */
	add_node(4, 1, g, 1, 0, 0);
	add_node(5, 4, f, 5, 50, 0); /* called back */
	finish();
	CHECK_EQ(sum_of(NULL, "main").calls, 1);
	CHECK_EQ(sum_of(NULL, "main").instructions, 110);
	CHECK_EQ(sum_of("main", "f").calls, 3);
	CHECK_EQ(sum_of("main", "f").instructions, 50);
	CHECK_EQ(sum_of("f", "f").instructions, 20);
	CHECK_EQ(sum_of("main", "foreign").instructions, 50);
	CHECK_EQ(sum_of("foreign", "f").calls, 5);
	CHECK(!calls->has_cost);
	CHECK_EQ(calls->parties[code_calls_find(calls, 0)].function, 0);
	end();
}

static void test_sites(void)
{
	uint32_t m, f;

	begin();
	m = add_function("main", 0x1000, "a.o", 0);
	f = add_function("f", 0x1100, "a.o", 0);
	add_node(1, 0, m, 1, 1, 0);
	add_node(2, 1, f, 1, 2, 0x1010);
	add_node(3, 1, f, 1, 4, 0x1020);
	add_node(4, 1, f, 1, 8, 0x9999); /* does not return into main: it jumped there */
	finish();
	CHECK_EQ(calls->n_calls, 4);
	CHECK_EQ(calls->calls[1].site, 0);
	CHECK_EQ(calls->calls[2].site, 0x1010);
	CHECK_EQ(calls->calls[3].site, 0x1020);
	CHECK_EQ(calls->calls[3].instructions, 4);
	end();
}

static void test_damaged(void)
{
	uint32_t m;

	begin();
	m = add_function("main", 0x1000, "a.o", 0);
	add_node(1, 1, m, 1, 10, 0);	     /* its own parent */
	add_node(2, 9, m, 1, 20, 0);	     /* a parent that is not there */
	add_node(2, 1, m, 100, 100, 0);	     /* twice */
	add_node(3, 1, 77, 1, 1, 0);	     /* a frame that is not there */
	add_node(1ull << 40, 1, m, 1, 1, 0); /* a number out of range */
	finish();
	CHECK_EQ(calls->n_calls, 1);
	CHECK_EQ(sum_of(NULL, "main").calls, 2);
	CHECK_EQ(sum_of(NULL, "main").instructions, 30);
	end();
}

static void test_owners(void)
{
	uint32_t *owners;
	size_t n_right = 0;

	begin();
	add_function("same", 0x1000, "a.o", 0);
	add_function("same", 0x2000, "b.o", 0);
	add_function("same.cold", 0x3000, "b.o", RECORD_COUNT_FRAGMENT);
	add_function("same.cold", 0x4000, "a.o", RECORD_COUNT_FRAGMENT);
	add_function("lost.cold", 0x5000, "a.o", RECORD_COUNT_FRAGMENT);
	add_function("same.cold.not", 0x6000, "a.o", 0);
	finish();
	owners = code_counts_owners(counts);
	for (uint32_t i = 0; i < counts->n_functions; i++) {
		const struct code_function *f = &counts->functions[i];
		const struct code_function *owner = &counts->functions[owners[i]];
		uint64_t expected = f->address == 0x3000   ? 0x2000
				    : f->address == 0x4000 ? 0x1000
							   : f->address;

		n_right += owner->address == expected;
	}
	CHECK_EQ(n_right, 6);
	free(owners);
	end();
}

/* What an export writes; free() it. */
static char *export_text(int (*export)(const struct profile *, FILE *, struct err *))
{
	struct build_options options = BUILD_OPTIONS_ALL;
	struct profile *profile;
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	CHECK_EQ(profile_build(&profile, reader, &options, &err), 0);
	CHECK_EQ(export(profile, out, &err), 0);
	fclose(out);
	profile_free(profile);
	return text;
}

/* A line in two blocks of a function and in another function, a part, code of another file. */
static void make_program(void)
{
	uint32_t m, f, cold;

	begin();
	m = add_function("main", 0x1000, "a.o", 0);
	f = add_function("f", 0x1100, "a.o", 0);
	cold = add_function("f.cold", 0x1200, "a.o", RECORD_COUNT_FRAGMENT);
	add_block(m, 0x1000, 3, 1);
	add_line("/s/a.c", 10, 2, 0x1000);
	add_line("/s/a.h", 5, 1, 0x1010);
	add_block(f, 0x1100, 4, 6);
	add_line("/s/a.c", 20, 4, 0x1100);
	add_block(f, 0x1120, 5, 2);
	add_line("/s/a.c", 20, 4, 0x1120);
	add_line("/s/a.h", 5, 1, 0x1130);
	add_block(cold, 0x1200, 1, 0);
	add_line("/s/a.c", 21, 1, 0x1200);
	add_node(1, 0, m, 1, 3, 0);
	add_node(2, 1, f, 6, 34, 0x1008);
	finish();
}

static void test_callgrind(void)
{
	char *text;

	make_program();
	text = export_text(export_callgrind);
	CHECK(strstr(text, "\nevents: Ir\nsummary: 37\n"));
	CHECK(strstr(text, "\nfl=(1) /s/a.c\nfn=(1) main\n10 2\nfi=(2) /s/a.h\n5 1\nfe=(1)\n"
			   "cfn=(2) f\ncalls=6 20\n10 34\n"));
	CHECK(strstr(text, "\nfl=(1)\nfn=(2)\n20 32\nfi=(2)\n5 2\nfe=(1)\n"));
	CHECK(strstr(text, "\ntotals: 37\n"));
	CHECK(!strstr(text, "cold"));
	free(text);
	end();
}

static void test_lcov(void)
{
	char *text;

	make_program();
	text = export_text(export_lcov);
	CHECK_STR(text, "TN:\nSF:/s/a.c\nFN:10,main\nFN:20,f\nFNDA:1,main\nFNDA:6,f\nFNF:2\nFNH:2\n"
			"DA:10,1\nDA:20,6\nDA:21,0\nLF:3\nLH:2\nend_of_record\n"
			"TN:\nSF:/s/a.h\nFNF:0\nFNH:0\nDA:5,3\nLF:1\nLH:1\nend_of_record\n");
	free(text);
	end();
}

int main(void)
{
	static const struct test tests[] = {
		{"sums up calls by function, recursion and callbacks included", test_sums},
		{"keeps places of calls apart, those within the caller", test_sites},
		{"leaves out what is damaged", test_damaged},
		{"finds the function of a part by name, object and image", test_owners},
		{"callgrind: lines, inlined code, parts and calls", test_callgrind},
		{"lcov: the greatest count in a function, added up over functions", test_lcov},
	};

	return RUN_TESTS(tests);
}
