/* SPDX-License-Identifier: MIT */
/* The renderers over a trace with images, lines, losses and facts about the run, which the golden
 * traces of text do not have. */
#include "check.h"

#include <regex.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/report/report.h"
#include "cmd/report/table.h"

static const char path[] = "report_render_test.weir";

static uint32_t frame_at(struct trace_writer *w, uint32_t image, enum frame_kind kind,
	uint64_t addr, const char *name, const char *inlined)
{
	struct trace_frame frame = {.kind = kind, .image = image, .addr = addr, .is_caller = true};
	struct trace_symbol_level levels[2], *last = levels;
	struct trace_symbol symbol = {.frame = trace_writer_frame(w, &frame), .levels = levels};

	if (inlined)
		*last++ = (struct trace_symbol_level){.name = trace_writer_string(w, inlined),
			.file = trace_writer_string(w, "small.h"),
			.line = 7,
			.offset = 0x10};
	*last++ = (struct trace_symbol_level){.name = trace_writer_string(w, name), .offset = 0x10};
	symbol.n_levels = (uint32_t)(last - levels);
	trace_writer_symbol(w, &symbol);
	return symbol.frame;
}

/* A plug-in that came and went, with symbols that are only perhaps its own. */
static void write_plugin(struct trace_writer *w, uint32_t life)
{
	struct trace_image plugin = {
		.kind = IMAGE_KIND_ELF, .path = trace_writer_string(w, "/opt/lib/plug.so")};
	uint32_t id = trace_writer_image(w, &plugin);
	uint64_t load[9] = {7, 0, 0x500000, 0x1000, 5, id, 0, 0, 0x500000};
	uint64_t unload[5] = {7, 0, 0x500000, 0x1000, MODULE_END_MUNMAP};

	trace_writer_numbers(w, life, 110, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD, load, 9);
	trace_writer_numbers(w, life, 150, RECORD_MAJOR_MODULE, RECORD_MODULE_UNLOAD, unload, 5);
	trace_writer_match(w, &(struct trace_match){.image = id,
				      .rung = 2,
				      .reason = trace_writer_string(w, "nothing but the path"),
				      .catalog_id = trace_writer_string(w, "0123456789abcdef"),
				      .sources = trace_writer_string(w, "symtab"),
				      .n_symbols = 12});
}

static void write_trace(void)
{
	static const char *const facts[][2] = {{"command", "prog 'a b'\nc"},
		{"wall_ns", "2000000000"}, {"cpu_ns", "300000000"}, {"user_ns", "200000000"},
		{"sys_ns", "100000000"}, {"exit_status", "3"}, {"event", "cpu-clock"},
		{"frequency", "999"}, {"n_processes", "1"}, {"n_threads", "2"}, {"mode", "launch"},
		{"clock", "monotonic"}};
	struct trace_image elf = {
		.kind = IMAGE_KIND_ELF, .build_id_n = 2, .build_id = {0xab, 0x01}};
	struct trace_image kernel = {.kind = IMAGE_KIND_KERNEL};
	struct trace_thread t1 = {7, 7, 0}, t2 = {7, 8, 0};
	struct trace_sample s = {.weight = 1000000};
	uint32_t life, cpu, elf_id, kernel_id, main_frame, hot, sys;
	uint64_t load[8] = {7, 0, 0x400000, 0x1000, 5, 0, 0, 1}, name[4] = {0, 0, 0, 0};
	struct trace_writer *w;
	struct err err = {0};

	unlink(path);
	CHECK_EQ(trace_writer_open(&w, path, &err), 0);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		trace_writer_meta(w, facts[i][0], facts[i][1]);
	s.metric = trace_writer_metric(w, "cpu", "ns");
	life = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	cpu = trace_writer_stream(w, STREAM_KIND_CPU, 3);
	elf.path = trace_writer_string(w, "/opt/bin/prog");
	kernel.path = trace_writer_string(w, "[kernel]");
	elf_id = trace_writer_image(w, &elf);
	kernel_id = trace_writer_image(w, &kernel);
	load[5] = elf_id;
	trace_writer_numbers(w, life, 100, RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD, load, 8);
	write_plugin(w, life);
	main_frame = frame_at(w, elf_id, FRAME_KIND_NATIVE, 0x1010, "main", NULL);
	hot = frame_at(w, elf_id, FRAME_KIND_NATIVE, 0x2010, "hot(int)", "small");
	sys = frame_at(w, kernel_id, FRAME_KIND_KERNEL, 0xffffffff81000010, "do_syscall_64", NULL);
	s.thread = trace_writer_thread(w, &t1);
	s.stack = trace_writer_stack(w, trace_writer_stack(w, 0, main_frame), hot);
	for (uint64_t i = 0; i < 3; i++)
		trace_writer_sample(w, cpu, 1000 + i, &s);
	s.thread = trace_writer_thread(w, &t2);
	name[0] = s.thread;
	name[3] = trace_writer_string(w, "worker");
	trace_writer_numbers(w, life, 200, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, name, 4);
	s.stack = trace_writer_stack(w, trace_writer_stack(w, 0, main_frame), sys);
	trace_writer_sample(w, cpu, 1005, &s);
	trace_writer_loss(w, life, 300, RECORD_LOSS_SAMPLES, 4, "ring \"full\"");
	CHECK_EQ(trace_writer_close(w, &err), 0);
}

/* The report as text; free() it. */
static char *render(const char *kind, const struct report_options *options)
{
	const struct report_kind *k = report_kind_find(kind);
	struct report report = {.options = options};
	struct build_options build = BUILD_OPTIONS_ALL;
	struct trace_reader *reader;
	struct profile *profile;
	struct err err = {0};
	char *text = NULL;
	size_t n;

	CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
	CHECK_EQ(profile_build(&profile, reader, &build, &err), 0);
	report.reader = reader;
	report.profile = profile;
	report.loss = &profile->loss;
	report.out = open_memstream(&text, &n);
	CHECK_EQ(k->render(&report, &err), 0);
	fclose(report.out);
	profile_free(profile);
	trace_reader_close(reader);
	return text;
}

/* Every text of `parts` (ended by NULL) occurs, in this order. */
static void check_has(const char *kind, struct report_options options, const char *const *parts)
{
	char *text = render(kind, &options);
	const char *from = text;

	for (; *parts && from; parts++) {
		from = strstr(from, *parts);
		if (!from) {
			check_failures++;
			printf("%s: not there or not in order: %s\nin: %s\n", kind, *parts, text);
		}
	}
	free(text);
}
#define HAS(kind, options, ...)                                                                    \
	check_has(kind, (struct report_options)options, (const char *const[]){__VA_ARGS__, NULL})
#define TEXT                                                                                       \
	{                                                                                          \
		0                                                                                  \
	}
#define AS_JSON                                                                                    \
	{                                                                                          \
		.json = true                                                                       \
	}

static void facts_of_the_run(void)
{
	HAS("summary", TEXT, "prog 'a b' c\n", "took 2.00 s, 300.00 ms of CPU", "user 200.00 ms",
		"ended with exit status 3", "1 process, 2 threads",
		"4 samples of cpu-clock at 999 Hz", "75.00", "small  (prog)",
		"75.00 %  main > hot(int) > small", "Threads", "7_8 worker", "Data was lost",
		"4 samples are lost", "4 x  ring \"full\"", "was waiting", "Next",
		"weir report loss report_render_test.weir");
	HAS("summary", AS_JSON, "\"command\": \"prog 'a b'\\nc\"", "\"max_rss_bytes\": null",
		"\"exit_status\": 3", "\"stack\": [\"small\", \"hot(int)\", \"main\"]");
}

static void units_and_kinds(void)
{
	HAS("flat", TEXT, "Base[ns]", "Cum[ns]", "Cum2[ns]", "3000000", "hot(int)");
	HAS("flat", {.human = true}, "Calls  ", "4.00 ms", "main");
	HAS("flat", AS_JSON, "{\"name\": \"cpu\", \"unit\": \"ns\"}", "\"total\": 4000000",
		"\"name\": \"main\", \"image\": \"/opt/bin/prog\", \"kind\": \"native\", \"calls\": null, "
		"\"base\": 0, \"cum\": 4000000, \"cum2\": 4000000, \"elapsed\": null, \"min\": null, "
		"\"max\": null, \"samples\": 0",
		"\"name\": \"small\", \"image\": \"/opt/bin/prog\", \"kind\": \"inline\"",
		"\"image\": \"[kernel]\", \"kind\": \"kernel\"", "\"samples_lost\": 4",
		"\"reasons\": {\"ring \\\"full\\\"\": 4}");
}

static void samples_have_lines(void)
{
	HAS("samples", AS_JSON, "\"time\": 900, \"pid\": 7, \"tid\": 7, \"cpu\": 3",
		"\"name\": \"main\"", "\"offset\": 16, \"file\": null, \"line\": null",
		"\"name\": \"hot(int)\"", "\"name\": \"small\"",
		"\"file\": \"small.h\", \"line\": 7");
	HAS("samples", TEXT, "Time[ns]", "900", "main;hot(int);small", "905", "main;do_syscall_64");
	HAS("samples", {.query.limit = 1}, "main;hot(int);small\n");
}

static void threads_and_modules(void)
{
	HAS("threads", AS_JSON,
		"\"pid\": 7, \"tid\": 7, \"name\": null, \"role\": \"program\", "
		"\"samples\": 3, \"events\": null, "
		"\"base\": 3000000, \"switches\": null",
		"\"tid\": 8, \"name\": \"worker\"");
	HAS("modules", AS_JSON, "\"path\": \"/opt/bin/prog\", \"build_id\": \"ab01\"",
		"\"match\": null",
		"\"at_start\": true, \"loaded\": false, \"unloaded\": false, \"used\": true",
		"\"symbols\": null", "\"path\": \"[kernel]\", \"build_id\": null",
		"\"at_start\": null, \"loaded\": null, \"unloaded\": null, \"used\": true",
		"\"path\": \"/opt/lib/plug.so\", \"build_id\": null",
		"\"image\": \"0123456789abcdef\", \"match\": \"path\", "
		"\"reason\": \"nothing but the path\"",
		"\"at_start\": false, \"loaded\": true, \"unloaded\": true, \"used\": false",
		"\"symbols\": 12, \"sources\": \"symtab\", \"ends\": {\"munmap\": 1}",
		"\"unloads\": [{\"pid\": 7, \"address\": \"0x500000\", \"time\": 50, "
		"\"how\": \"munmap\"}]");
	HAS("modules", TEXT, "Kind  ", "Match", "Symbols", "elf", "yes", "start", "ab01",
		"/opt/bin/prog", "elf", "no", "loaded unloaded", "path", "12", "/opt/lib/plug.so\n",
		"\n/opt/lib/plug.so: path: nothing but the path\n");
	HAS("loss", TEXT, "4  samples lost", "ring \"full\"");
	HAS("loss", AS_JSON, "{\"reason\": \"ring \\\"full\\\"\", \"count\": 4}");
}

static void limits_cut(void)
{
	struct report_options one = {.query.limit = 1};
	char *text = render("samples", &one);
	size_t lines = 0;

	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	CHECK_EQ(lines, 2); /* the head and one sample */
	free(text);
}

static void human_numbers(void)
{
	CHECK_STR(value_human(0, "ns").s, "0");
	CHECK_STR(value_human(999, "ns").s, "999 ns");
	CHECK_STR(value_human(1234567, "ns").s, "1.23 ms");
	CHECK_STR(value_human(UINT64_MAX, "ns").s, "18446744073.71 s");
	CHECK_STR(value_human(1500, "bytes").s, "1.50 kB");
	CHECK_STR(value_human(12, "1").s, "12");
	CHECK_STR(value_human(2500000, "1").s, "2.50 M");
	CHECK_STR(value_percent(1, 3).s, "33.33");
	CHECK_STR(value_percent(0, 0).s, "0.00");
}

static void columns_fit(void)
{
	struct table t = {.left_columns = 1};
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	table_row(&t, TABLE_STYLE_PLAIN);
	table_cell(&t, "a");
	table_cell(&t, "b");
	table_cell(&t, "c");
	table_line(&t, "=");
	table_row(&t, TABLE_STYLE_HOT);
	table_cell(&t, "\xc3\xa4\xc3\xb6"); /* two characters, four bytes */
	table_number(&t, 18446744073709551615u);
	table_cell(&t, "");
	table_print(&t, true, out);
	fclose(out);
	CHECK_STR(text,
		"a                      b  c\n=\n\033[31m\xc3\xa4\xc3\xb6  18446744073709551615  \033[0m\n");
	free(text);
	table_release(&t);
}

static void every_kind_has_both_forms(void)
{
	for (size_t i = 0; i < REPORT_N_KINDS; i++)
		CHECK(report_kinds[i].render && report_kinds[i].options);
	CHECK(!report_kind_find("nothing"));
	CHECK(strstr(report_kind_find("flat")->columns, "cum2"));
	CHECK(!report_kind_find("loss")->columns);
}

static const struct test tests[] = {
	{"the summary tells what ran, where the time went and what was lost", facts_of_the_run},
	{"tables show units, and JSON the kinds and nulls", units_and_kinds},
	{"samples show their lines and the CPU", samples_have_lines},
	{"threads, modules and losses are shown", threads_and_modules},
	{"a limit cuts the samples", limits_cut},
	{"numbers for people have three digits or so", human_numbers},
	{"columns fit their widest cell", columns_fit},
	{"every kind of report has both forms", every_kind_has_both_forms},
};

int main(void)
{
	int status;

	write_trace();
	status = RUN_TESTS(tests);
	unlink(path);
	return status;
}
