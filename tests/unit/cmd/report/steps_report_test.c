/* SPDX-License-Identifier: MIT */
/* The listing of executed instructions over traces that are made here. */
#include "check.h"

#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cmd/report/report.h"
#include "steps_world.h"

static struct report_options options;
static struct build_options selection;
static struct loss loss;
static char *output;
static struct err error;

static void nothing_special(void)
{
	options = (struct report_options){0};
	selection = BUILD_OPTIONS_ALL;
	error = (struct err){0};
}

/* What a renderer writes; in `output` until the next one. */
static int rendered(struct steps_world *world, bool as_json)
{
	struct report report = {.options = &options, .selection = &selection, .loss = &loss};
	size_t n = 0;
	int rc;

	free(output);
	output = NULL;
	loss_release(&loss);
	loss = (struct loss){0};
	world_open(world);
	report.reader = world->r;
	report.steps = world->steps;
	report.out = open_memstream(&output, &n);
	options.json = as_json;
	rc = steps_report(&report, &error);
	fclose(report.out);
	world_close(world);
	return rc;
}

static const char *text_of(struct steps_world *world)
{
	CHECK_EQ(rendered(world, false), 0);
	return output;
}

/* The text without its head, blanks squeezed to one. */
static const char *squeezed(struct steps_world *world)
{
	static char text[20000];
	const char *from = strchr(text_of(world), '\n');
	size_t n = 0;

	for (from = from ? from + 1 : ""; *from && n + 1 < sizeof(text); from++)
		if (*from != ' ' || (n && text[n - 1] != ' ' && text[n - 1] != '\n'))
			text[n++] = *from;
	text[n] = 0;
	return text;
}

/* ---- a program ---- */

static uint32_t program;

/* One instruction of /opt/bin/prog: main begins at 0x1000, and `inlined` is part of it. */
static void add_code(
	struct steps_world *world, uint64_t addr, const char *bytes, uint8_t n, const char *inlined)
{
	struct trace_frame frame = {
		.kind = FRAME_KIND_NATIVE, .image = program, .addr = addr - 0x800};
	struct trace_symbol_level levels[2], *last = levels;
	struct trace_symbol symbol = {
		.frame = trace_writer_frame(world->w, &frame), .levels = levels};
	struct step_code_head head = {.space = 1, .pid = 7, .is_64 = true, .n = 1};
	struct step_code code = {.addr = addr, .frame = symbol.frame, .n = n};
	struct buf b = {0};

	if (inlined)
		*last++ =
			(struct trace_symbol_level){.name = trace_writer_string(world->w, inlined),
				.file = trace_writer_string(world->w, "/src/small.h"),
				.line = 7};
	*last++ = (struct trace_symbol_level){.name = trace_writer_string(world->w, "main"),
		.file = trace_writer_string(world->w, "/src/prog.c"),
		.line = 12,
		.offset = (uint32_t)(addr - 0x1000)};
	symbol.n_levels = (uint32_t)(last - levels);
	trace_writer_symbol(world->w, &symbol);
	memcpy(code.bytes, bytes, n);
	step_code_encode(&b, &head, &code);
	trace_writer_record(
		world->w, world->code, 1, RECORD_MAJOR_STEP, RECORD_STEP_CODE, b.p, b.n);
	buf_release(&b);
}

static void begin_program(struct steps_world *world)
{
	struct trace_image image = {.kind = IMAGE_KIND_ELF, .bits = 64};

	world_begin(world);
	image.path = trace_writer_string(world->w, "/opt/bin/prog");
	program = trace_writer_image(world->w, &image);
	add_code(world, 0x1000, "\x55", 1, NULL);	/* push %rbp */
	add_code(world, 0x1001, "\xf3\xa4", 2, NULL);	/* rep movsb */
	add_code(world, 0x1003, "\xff\xc9", 2, "tick"); /* dec %ecx */
	add_code(world, 0x1005, "\x75\xfc", 2, NULL);	/* jnz 0x1003 */
	add_code(world, 0x1007, "\x0f\x05", 2, NULL);	/* syscall */
	add_code(world, 0x1009, "\xeb\xf8", 2, NULL);	/* jmp 0x1003 */
}

/* Appends a step to an array. */
struct path {
	struct step_at at[1000];
	uint32_t n;
};

static void go(struct path *p, uint64_t addr, uint64_t times)
{
	p->at[p->n++] = (struct step_at){addr, times};
}

static void run_path(struct steps_world *world, uint32_t stream, uint64_t time, uint64_t first,
	const struct path *p)
{
	world_run(world, stream, time,
		&(struct step_run_head){.first = first, .space = 1, .n = p->n}, p->at);
}

/* push, rep movsb x 100, three rounds of dec and jnz, an address without code; a system call. */
static uint32_t add_thread(struct steps_world *world, uint32_t tid, uint64_t time)
{
	uint32_t stream = world_thread(world, 7, tid);
	struct path p = {0};

	go(&p, 0x1000, 1);
	go(&p, 0x1001, 100);
	for (int i = 0; i < 3; i++) {
		go(&p, 0x1003, 1);
		go(&p, 0x1005, 1);
	}
	go(&p, 0x7000, 1);
	go(&p, 0x1007, 1);
	world_mark(world, stream, time, &(struct step_mark){.at = 0, .kind = STEP_MARK_RESUME});
	run_path(world, stream, time + 10, 0, &p);
	world_mark(world, stream, time + 20,
		&(struct step_mark){.at = p.n, .kind = STEP_MARK_SYSCALL, .a = 1, .b = 12});
	return stream;
}

static void make_program(struct steps_world *world)
{
	begin_program(world);
	world_name(world, 7, 8, "worker");
	add_thread(world, 7, 100);
	add_thread(world, 8, 105);
	world_end(world);
}

/* ---- tests ---- */

#define MAIN	 "prog(main+0x"
#define THE_LOOP "0x1003 " MAIN "3) small.h:7 dec %ecx\n"
#define THE_JUMP "0x1005 " MAIN "5) prog.c:12 jnz 0x1003 <main+0x3>\n"

static void test_rows(void)
{
	struct steps_world world;

	nothing_special();
	make_program(&world);
	selection.thread = "7";
	CHECK_STR(squeezed(&world), "thread 7_7\n"
				    "-- tracing begins (start)\n"
				    "0 0x1000 " MAIN "0) prog.c:12 push %rbp\n"
				    "1 0x1001 " MAIN "1) prog.c:12 rep movsb x 100\n"
				    "2 " THE_LOOP "3 " THE_JUMP "4 " THE_LOOP "5 " THE_JUMP
				    "6 " THE_LOOP "7 " THE_JUMP "8 0x7000 . . (code not captured)\n"
				    "9 0x1007 " MAIN "7) prog.c:12 syscall\n"
				    "-- write = 12\n");
	CHECK(!loss_is_real(&loss));
	options.syntax = "intel";
	CHECK(strstr(text_of(&world), "dec ecx\n"));
	free(world.bytes);
}

static void test_threads(void)
{
	struct steps_world world;

	nothing_special();
	make_program(&world);
	options.query.limit = 2;
	selection.thread = "worker";
	CHECK_STR(squeezed(&world), "thread 7_8 worker\n"
				    "-- tracing begins (start)\n"
				    "0 0x1000 " MAIN "0) prog.c:12 push %rbp\n");
	selection.thread = "7_9";
	CHECK_EQ(rendered(&world, false), ERR_NOT_FOUND);
	CHECK_STR(error.text, "'steps': has no steps of a thread '7_9'");
	selection.thread = NULL;
	options.query.limit = 0;
	options.query.filter = NULL;
	CHECK(strstr(strstr(text_of(&world), "thread 7_7\n"), "thread 7_8 worker\n"));
	free(world.bytes);
}

static void filter_by(regex_t *regex, const char *pattern)
{
	CHECK_EQ(regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	options.query.filter = regex;
}

static void test_interleaved(void)
{
	struct steps_world world;
	regex_t regex;

	nothing_special();
	make_program(&world);
	options.interleave = true;
	filter_by(&regex, "write|tracing|push");
	CHECK_STR(squeezed(&world), "thread 7_7, up to 99 ns\n"
				    "-- tracing begins (start)\n"
				    "thread 7_8 worker, up to 104 ns\n"
				    "-- tracing begins (start)\n"
				    "thread 7_7, up to 109 ns\n"
				    "0 0x1000 " MAIN "0) prog.c:12 push %rbp\n"
				    "thread 7_8 worker, up to 114 ns\n"
				    "0 0x1000 " MAIN "0) prog.c:12 push %rbp\n"
				    "thread 7_7, up to 119 ns\n"
				    "-- write = 12\n"
				    "thread 7_8 worker, up to 124 ns\n"
				    "-- write = 12\n");
	selection.from = 114;
	selection.to = 120;
	CHECK_STR(squeezed(&world), "thread 7_8 worker, up to 114 ns\n"
				    "0 0x1000 " MAIN "0) prog.c:12 push %rbp\n"
				    "thread 7_7, up to 119 ns\n"
				    "-- write = 12\n");
	regfree(&regex);
	free(world.bytes);
}

static void test_anywhere(void)
{
	struct steps_world world;

	nothing_special();
	make_program(&world);
	selection.thread = "7";
	options.at = 8;
	options.query.limit = 1;
	CHECK_STR(squeezed(&world), "thread 7_7\n8 0x7000 . . (code not captured)\n");
	options.back = 1;
	CHECK_STR(squeezed(&world), "thread 7_7\n7 " THE_JUMP);
	options.back = 9;
	CHECK_STR(squeezed(&world), "thread 7_7\n-- tracing begins (start)\n");
	options.back = 0;
	options.at = 10;
	CHECK_EQ(rendered(&world, false), ERR_NOT_FOUND);
	CHECK_STR(error.text, "'steps': --at: there is no step 10 (10 steps)");
	options.at = 0;
	selection.from = 119;
	CHECK_STR(squeezed(&world), "thread 7_7\n-- write = 12\n");
	free(world.bytes);
}

static void test_search(void)
{
	struct steps_world world;
	regex_t regex;

	nothing_special();
	make_program(&world);
	selection.thread = "7";
	filter_by(&regex, "^tick$"); /* the name of an inlined function */
	CHECK_STR(squeezed(&world), "thread 7_7\n2 " THE_LOOP "4 " THE_LOOP "6 " THE_LOOP);
	regfree(&regex);
	filter_by(&regex, "^syscall|^write");
	CHECK_STR(squeezed(&world),
		"thread 7_7\n9 0x1007 " MAIN "7) prog.c:12 syscall\n-- write = 12\n");
	regfree(&regex);
	filter_by(&regex, "nothing of it");
	CHECK_STR(squeezed(&world), "");
	regfree(&regex);
	free(world.bytes);
}

static void test_folded(void)
{
	struct steps_world world;
	struct path p = {0};
	uint32_t stream;
	regex_t regex;

	nothing_special();
	begin_program(&world);
	stream = world_thread(&world, 7, 7);
	go(&p, 0x1000, 1);
	for (int i = 0; i < 4; i++) { /* four times ten rounds, with a jump between */
		for (int j = 0; j < 10; j++) {
			go(&p, 0x1003, 1);
			go(&p, 0x1005, 1);
		}
		go(&p, 0x1009, 1);
	}
	run_path(&world, stream, 10, 0, &p);
	for (uint64_t i = 0; i < 5; i++) { /* five times the same system call */
		struct path call = {.at = {{0x1007, 1}}, .n = 1};

		run_path(&world, stream, 20 + i, 85 + i, &call);
		world_mark(&world, stream, 20 + i,
			&(struct step_mark){
				.at = 86 + i, .kind = STEP_MARK_SYSCALL, .a = 39, .b = 7});
	}
	world_end(&world);
	options.fold = true;
	CHECK_STR(squeezed(&world), "thread 7_7\n"
				    "0 0x1000 " MAIN "0) prog.c:12 push %rbp\n"
				    "x 4: 21 steps, 84 in all\n"
				    "| x 10: 2 steps, 20 in all\n"
				    "| | 1 " THE_LOOP "| | 2 " THE_JUMP "| 21 0x1009 " MAIN
				    "9) prog.c:12 jmp 0x1003 <main+0x3>\n"
				    "x 5: 1 step, 5 in all\n"
				    "| 85 0x1007 " MAIN "7) prog.c:12 syscall\n"
				    "| -- getpid = 7\n");
	filter_by(&regex, "getpid|push");
	CHECK_STR(squeezed(&world), "thread 7_7\n"
				    "0 0x1000 " MAIN "0) prog.c:12 push %rbp\n"
				    "x 5: 1 step, 5 in all\n"
				    "| -- getpid = 7\n");
	regfree(&regex);
	options.query.filter = NULL;
	options.query.limit = 2;
	options.at = 22;
	CHECK_STR(squeezed(&world), "thread 7_7\n"
				    "x 3: 21 steps, 63 in all\n"
				    "| x 10: 2 steps, 20 in all\n"
				    "| | 22 " THE_LOOP "| | 23 " THE_JUMP);
	free(world.bytes);
}

/* What the marks of a thread say, one a line. */
static const char *words(const struct step_mark *marks, size_t n, const char *text)
{
	struct steps_world world;
	uint32_t stream, string;
	const char *squeeze;

	nothing_special();
	world_begin(&world);
	stream = world_thread(&world, 7, 7);
	string = trace_writer_string(world.w, text);
	for (size_t i = 0; i < n; i++) {
		struct step_mark mark = marks[i];

		mark.text = *text ? string : 0;
		world_mark(&world, stream, 10, &mark);
	}
	world_end(&world);
	squeeze = squeezed(&world);
	free(world.bytes);
	return !strncmp(squeeze, "thread 7_7\n", 11) ? squeeze + 11 : squeeze;
}
#define WORDS(text, ...)                                                                           \
	words((const struct step_mark[]){__VA_ARGS__},                                             \
		sizeof((const struct step_mark[]){__VA_ARGS__}) / sizeof(struct step_mark), text)

static void test_calls(void)
{
	CHECK_STR(WORDS("", {.kind = STEP_MARK_SYSCALL, .a = 2, .b = -ENOENT},
			  {.kind = STEP_MARK_SYSCALL, .a = 5, .b = 3, .c = 1},
			  {.kind = STEP_MARK_SYSCALL, .a = 9, .b = 0x7f0000001000},
			  {.kind = STEP_MARK_SYSCALL, .a = 0, .b = -512},
			  {.kind = STEP_MARK_SYSCALL, .a = 231, .b = 0},
			  {.kind = STEP_MARK_SYSCALL, .a = 99999, .b = -1}),
		"-- open = -2 ENOENT\n-- open (i386) = 3\n-- mmap = 0x7f0000001000\n"
		"-- read = -512 ERESTARTSYS\n-- exit_group\n-- system call 99999 = -1 EPERM\n");
}

static void test_signals(void)
{
	CHECK_STR(WORDS("", {.kind = STEP_MARK_SIGNAL, .a = SIGSEGV, .b = SEGV_MAPERR, .c = 8},
			  {.kind = STEP_MARK_SIGNAL, .a = SIGUSR1, .b = SI_USER, .c = 8},
			  {.kind = STEP_MARK_SIGNAL, .a = 40, .b = -77}),
		"-- SIGSEGV (SEGV_MAPERR), address 0x8\n-- SIGUSR1 (SI_USER)\n"
		"-- signal 40 (code -77)\n");
}

static void test_life(void)
{
	CHECK_STR(WORDS("/bin/ls", {.kind = STEP_MARK_EXEC},
			  {.kind = STEP_MARK_MAP, .a = STEP_MAP_REMOVED, .b = 0x1000, .c = 4096}),
		"-- executes /bin/ls\n-- code removed: 0x1000, 4096 bytes, /bin/ls\n");
	CHECK_STR(WORDS("", {.kind = STEP_MARK_FORK, .a = 9, .b = 9},
			  {.kind = STEP_MARK_FORK, .a = 7, .b = 10, .c = 1},
			  {.kind = STEP_MARK_EXIT, .a = 3 << 8},
			  {.kind = STEP_MARK_EXIT, .a = SIGKILL}),
		"-- begins process 9_9\n-- begins thread 7_10\n-- exits with status 3\n"
		"-- killed by SIGKILL\n");
}

static void test_gaps(void)
{
	CHECK_STR(WORDS("", {.kind = STEP_MARK_PAUSE, .a = STEP_WHY_REGION},
			  {.kind = STEP_MARK_RESUME, .a = 77}, {.kind = STEP_MARK_LOST, .a = 1000},
			  {.kind = STEP_MARK_LOST}),
		"-- runs untraced (region)\n-- tracing begins (for an unknown reason)\n"
		"-- 1000 steps are lost\n-- steps are lost, not known how many\n");
	CHECK(loss_is_real(&loss));
	CHECK_EQ(loss.events_lost, 1001);
	CHECK_STR(WORDS("a debugger", {.kind = STEP_MARK_PAUSE, .a = STEP_WHY_ENGINE}),
		"-- runs untraced (a debugger)\n");
	CHECK(!loss_is_real(&loss));
}

static void test_data(void)
{
	struct step_datum data[] = {{.at = 0,
					    .addr = 0x5000,
					    .how = STEP_DATA_READ,
					    .n = 4,
					    .has_value = true,
					    .value = {0x78, 0x56, 0x34, 0x12}},
		{.at = 0, .addr = 0x6000, .how = STEP_DATA_WRITE, .n = 8},
		{.at = 5,
			.addr = 0x7000,
			.how = STEP_DATA_READ | STEP_DATA_WRITE,
			.n = 1,
			.has_value = true,
			.value = {0}}};
	struct steps_world world;
	uint32_t stream;

	nothing_special();
	world_begin(&world);
	stream = world_thread(&world, 7, 7);
	world_line(&world, stream, 10, 0, 0x9000, 6);
	world_data(&world, stream, 10, data, 3);
	world_line(&world, stream, 20, 6, 0x9000, 1);
	world_end(&world);
	options.query.limit = 1;
	CHECK_STR(squeezed(&world), "thread 7_7\n0 0x9000 . . (code not captured)\n"
				    "reads 4 at 0x5000: 0x12345678\nwrites 8 at 0x6000\n");
	options.at = 5;
	options.query.limit = 0;
	CHECK_STR(squeezed(&world), "thread 7_7\n5 0x9005 . . (code not captured)\n"
				    "changes 1 at 0x7000: 0x00\n"
				    "6 0x9000 . . (code not captured)\n");
	CHECK_EQ(rendered(&world, true), 0);
	CHECK(strstr(output, "\"data\": [{\"how\": \"read-write\", \"address\": 28672, "
			     "\"bytes\": 1, \"value\": \"00\", \"image\": null, "
			     "\"symbol\": null, \"offset\": null, \"place\": null}]"));
	CHECK(strstr(output, "\"data\": []"));
	free(world.bytes);
}

static void test_json(void)
{
	struct steps_world world;

	nothing_special();
	make_program(&world);
	selection.thread = "7";
	options.at = 6;
	options.query.limit = 1;
	CHECK_EQ(rendered(&world, true), 0);
	CHECK(strstr(output, "{\"weir\": 1, \"kind\": \"steps\", \"trace\": \"steps\", \"metric\": "
			     "{\"name\": \"instructions\", \"unit\": \"1\"}, \"total\": 20\n , "
			     "\"rows\": [\n "));
	CHECK(strstr(output,
		"{\"kind\": \"step\", \"pid\": 7, \"tid\": 7, \"time\": 109, \"step\": 6, "
		"\"address\": 4099, \"image\": \"/opt/bin/prog\", \"symbol\": \"main\", "
		"\"offset\": 3, \"inlined\": \"tick\", \"file\": \"/src/small.h\", \"line\": 7, "
		"\"bytes\": \"ffc9\", \"text\": \"dec %ecx\", \"times\": 1}"));
	options.at = 8;
	options.query.limit = 0;
	CHECK_EQ(rendered(&world, true), 0);
	CHECK(strstr(output, "\"step\": 8, \"address\": 28672, \"image\": null, \"symbol\": null, "
			     "\"offset\": null, \"inlined\": null, \"file\": null, \"line\": null, "
			     "\"bytes\": null, \"text\": null, \"times\": 1}"));
	CHECK(strstr(output, "{\"kind\": \"mark\", \"pid\": 7, \"tid\": 7, \"time\": 119, "
			     "\"step\": 10, \"mark\": \"syscall\", \"text\": \"write = 12\", "
			     "\"number\": 1, \"name\": \"write\", \"i386\": false, \"result\": 12, "
			     "\"errno\": null}"));
	options.at = 0;
	options.fold = true;
	CHECK_EQ(rendered(&world, true), 0);
	CHECK(strstr(output, "{\"kind\": \"loop\", \"pid\": 7, \"tid\": 7, \"time\": null, "
			     "\"step\": 2, \"depth\": 0, \"times\": 3, \"steps\": 2}"));
	CHECK(strstr(output, "\"step\": 3, \"depth\": 1, \"address\": 4101,"));
	free(world.bytes);
}

static void test_source(void)
{
	struct steps_world world;
	FILE *f = fopen("prog.c", "w");

	for (int i = 1; f && i < 13; i++)
		fprintf(f, "line %d\n", i);
	if (f)
		fclose(f);
	nothing_special();
	make_program(&world);
	selection.thread = "7";
	options.source_lines = true;
	options.at = 1;
	options.query.limit = 3;
	CHECK_STR(squeezed(&world), "thread 7_7\n"
				    "prog.c:12: line 12\n"
				    "1 0x1001 " MAIN "1) prog.c:12 rep movsb x 100\n"
				    "2 " THE_LOOP "prog.c:12: line 12\n"
				    "3 " THE_JUMP);
	CHECK_EQ(rendered(&world, true), 0);
	CHECK(strstr(output, "\"source\": \"line 12\""));
	free(world.bytes);
}

/* A record that is cut: what is around it is listed, and the gap is said. */
static void test_damage(void)
{
	struct steps_world world;
	uint32_t stream;

	nothing_special();
	world_begin(&world);
	stream = world_thread(&world, 7, 7);
	world_line(&world, stream, 10, 0, 0x9000, 2);
	world_record(&world, stream, 20, RECORD_STEP_RUN, "\xff", 1);
	world_line(&world, stream, 30, 5, 0x9000, 1);
	world_end(&world);
	CHECK(strstr(squeezed(&world), "1 0x9001 . . (code not captured)\n-- damage: "));
	CHECK(strstr(squeezed(&world), "\n5 0x9000 . . (code not captured)\n"));
	CHECK(loss.is_cut && loss_is_real(&loss));
	options.fold = true;
	CHECK(strstr(squeezed(&world), "1 0x9001 . . (code not captured)\n-- damage: "));
	CHECK(strstr(squeezed(&world), "\n5 0x9000 . . (code not captured)\n"));
	free(world.bytes);
}

int main(void)
{
	static const struct test tests[] = {
		{"a step has number, address, place, line and text; iterations are a count",
			test_rows},
		{"threads come one after the other, or the one that is asked for", test_threads},
		{"interleaved threads come in the order of time", test_interleaved},
		{"a listing begins at any step or time", test_anywhere},
		{"names, inlined ones too, instructions and marks are searched", test_search},
		{"loops and calls in them are folded with their numbers", test_folded},
		{"system calls have name, result and error", test_calls},
		{"signals have name, code and address", test_signals},
		{"programs, processes, threads and code come and go", test_life},
		{"gaps say why, and losses count", test_gaps},
		{"data stand below their steps", test_data},
		{"JSON has the fields of the contract and null for what is not known", test_json},
		{"source lines are shown where they change", test_source},
		{"damage is shown in its place", test_damage},
	};
	int rc = RUN_TESTS(tests);

	free(output);
	loss_release(&loss);
	return rc;
}
