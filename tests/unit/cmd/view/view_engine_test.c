/* SPDX-License-Identifier: MIT */
/* Questions to a small trace, as a page asks them; the figures are by hand. */
#define WORLD_TRACE "view-engine.weir"
#include "profile_world.h"

#include <math.h>

#include "cmd/view/answer_export.h"
#include "cmd/view/answer_source.h"
#include "cmd/view/engine.h"

static struct view_engine *engine;
static struct buf answer;

/* main (base 3) calls a (base 5, twice) and b (base 2), which calls a (base 4). */
static void write_trace(void)
{
	uint32_t own, f_main, f_a, f_b;
	uint64_t t = 1000;

	begin();
	own = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f_main = named("main", FRAME_KIND_NATIVE);
	f_a = named("a<b>&\"", FRAME_KIND_NATIVE);
	f_b = named("b", FRAME_KIND_NATIVE);
	enter(own, t, f_main, false);
	enter(own, t += 1, f_a, false);
	enter(own, t += 3, f_a, true);
	enter(own, t, f_a, false);
	enter(own, t += 2, f_a, true);
	enter(own, t += 2, f_b, false);
	enter(own, t += 1, f_a, false);
	enter(own, t += 4, f_a, true);
	enter(own, t += 1, f_b, true);
	enter(own, t, f_main, true);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
}

static void begin_world(void)
{
	write_trace();
	engine = view_engine_new(reader, NULL, NULL);
	reader = NULL;
}

/* Before that: main (base 1) calls a (base 11, once), which calls c (base 2). */
static void begin_two_worlds(void)
{
	struct trace_reader *before;
	uint32_t own, f_main, f_a, f_c;

	begin();
	own = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f_main = named("main", FRAME_KIND_NATIVE);
	f_a = named("a<b>&\"", FRAME_KIND_NATIVE);
	f_c = named("c", FRAME_KIND_NATIVE);
	enter(own, 500, f_main, false);
	enter(own, 501, f_a, false);
	enter(own, 512, f_c, false);
	enter(own, 514, f_c, true);
	enter(own, 514, f_a, true);
	enter(own, 514, f_main, true);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK_EQ(trace_reader_open(&before, path, &err), 0);
	write_trace();
	engine = view_engine_new(reader, before, NULL);
	reader = NULL;
}

static void end_world(void)
{
	view_engine_free(engine);
	buf_release(&answer);
	unlink(path);
}

static bool ask(const char *question)
{
	buf_reset(&answer);
	err = (struct err){0};
	return view_answer(engine, question, strlen(question), &answer, &err) == 0;
}

static bool answer_has(const char *text)
{
	return strstr(buf_text(&answer), text) != NULL;
}

static void refuse(const char *question, const char *why)
{
	CHECK(!ask(question));
	CHECK_EQ(answer.n, 0);
	if (!strstr(err.text, why))
		CHECK_STR(err.text, why);
}

/* ---- arrays, read as the page does it ---- */

static const void *array(const char *name, uint32_t bytes, size_t *n)
{
	size_t at = 8;
	uint32_t n_arrays;

	CHECK(answer.n >= 8 && !memcmp(answer.p, "WV01", 4));
	memcpy(&n_arrays, answer.p + 4, 4);
	for (uint32_t i = 0; i < n_arrays; i++) {
		uint32_t head[2];
		uint64_t length;
		size_t data;

		memcpy(head, answer.p + at, 8);
		memcpy(&length, answer.p + at + 8, 8);
		data = at + 16 + (head[0] + 7) / 8 * 8;
		CHECK(at % 8 == 0 && data + length * head[1] <= answer.n);
		if (head[0] == strlen(name) && !memcmp(answer.p + at + 16, name, head[0])) {
			CHECK_EQ(head[1], bytes);
			*n = length;
			return answer.p + data;
		}
		at = (data + length * head[1] + 7) / 8 * 8;
	}
	CHECK_STR("no such array", name);
	*n = 0;
	return NULL;
}

static double f64(const char *name, size_t i)
{
	size_t n;
	const double *v = array(name, 8, &n);

	CHECK(i < n);
	return v && i < n ? v[i] : -1;
}

static uint32_t u32(const char *name, size_t i)
{
	size_t n;
	const uint32_t *v = array(name, 4, &n);

	CHECK(i < n);
	return v && i < n ? v[i] : 0;
}

static size_t length(const char *name, uint32_t bytes)
{
	size_t n;

	array(name, bytes, &n);
	return n;
}

/* ---- tests ---- */

static void the_tree_is_arrays_depth_first(void)
{
	begin_world();
	CHECK(ask("tree"));
	/* thread, main, a, b, a: the dearer sibling first; b has 6 and a 5 */
	CHECK_EQ(length("node", 4), 5);
	CHECK_EQ(u32("depth", 0), 0);
	CHECK_EQ(u32("depth", 2), 2);
	CHECK_EQ(u32("depth", 3), 3);
	CHECK_EQ(u32("depth", 4), 2);
	CHECK_EQ(u32("end", 0), 5);
	CHECK_EQ(u32("end", 2), 4);
	CHECK_EQ(u32("end", 4), 5);
	CHECK(f64("cum", 0) == 14 && f64("cum", 1) == 14 && f64("cum", 2) == 6 &&
		f64("cum", 4) == 5);
	CHECK(f64("base", 1) == 3 && f64("base", 2) == 2 && f64("base", 3) == 4);
	CHECK(f64("calls", 4) == 2 && f64("calls", 3) == 1);
	CHECK(f64("left", 1) == 0 && f64("left", 2) == 0 && f64("left", 3) == 0 &&
		f64("left", 4) == 6);
	CHECK(f64("width", 1) == 14 && f64("width", 4) == 5);
	CHECK(ask("tree?order=time"));
	CHECK(f64("cum", 2) == 5 && f64("cum", 3) == 6);
	end_world();
}

static void callers_of_a_function_are_a_tree(void)
{
	size_t n;
	const char *names;

	begin_world();
	CHECK(ask("names"));
	names = array("name", 1, &n);
	CHECK(names != NULL && n > 10);
	CHECK(ask("report/arcs?filter=^a"));
	CHECK(ask("tree?order=time"));
	{
		char question[60];

		snprintf(question, sizeof(question), "callers?routine=%u", u32("routine", 2));
		CHECK(ask(question));
	}
	/* a: 9 of 3 calls; by b 4 of 1, by main 5 of 2; behind these main and the thread */
	CHECK(f64("cum", 0) == 9 && f64("calls", 0) == 3);
	CHECK(f64("cum", 1) == 5 && f64("calls", 1) == 2);
	CHECK_EQ(u32("depth", 1), 1);
	CHECK(f64("cum", 2) == 5); /* its thread */
	CHECK(f64("cum", 3) == 4 && f64("calls", 3) == 1);
	CHECK_EQ(u32("depth", 3), 1);
	CHECK(f64("cum", 4) == 4);
	CHECK_EQ(u32("depth", 4), 2);
	refuse("callers?routine=99", "there is no function of that number");
	refuse("callers", "there is no function of that number");
	end_world();
}

static void reports_are_those_of_the_command(void)
{
	begin_world();
	CHECK(ask("report/flat?sort=base&limit=1"));
	CHECK(answer_has("\"kind\":\"flat\"") || answer_has("\"kind\": \"flat\""));
	CHECK(answer_has("a<b>&\\\""));
	CHECK(!answer_has("\"name\": \"b\""));
	CHECK(ask("report/loss") && ask("report/threads") && ask("report/modules"));
	CHECK(ask("meta") && answer_has("\"total\": 14"));
	end_world();
}

static void transforms_and_windows_are_part_of_a_question(void)
{
	begin_world();
	CHECK(ask("tree?transform=fold%3Db"));
	CHECK_EQ(length("node", 4), 3);
	CHECK(f64("base", 1) == 5 && f64("cum", 2) == 9 && f64("calls", 2) == 3);
	CHECK(ask("meta?transform=drop=b") && answer_has("\"total\": 8"));
	CHECK(ask("meta?to=4") && answer_has("\"total\": 4"));
	CHECK(ask("meta") && answer_has("\"total\": 14")); /* those before are others */
	refuse("meta?transform=fold=c", "no function here is meant");
	refuse("meta?metric=nothing", "nothing");
	end_world();
}

static void a_selection_without_anything_has_empty_answers(void)
{
	begin_world();
	CHECK(ask("tree?from=5000") && length("node", 4) == 0 && length("cum", 8) == 0);
	CHECK(ask("names?from=5000"));
	CHECK(ask("timeline?from=5000") && length("span_from", 8) == 0);
	CHECK(ask("graph?from=5000&filter=0") && answer_has("\"functions\": 0"));
	CHECK(ask("matches?from=5000&search=a") && answer_has("{\"matches\": 0"));
	CHECK(ask("report/flat?from=5000") && ask("report/tree?from=5000"));
	CHECK(ask("meta?from=5000") && answer_has("\"total\": 0") &&
		answer_has("\"functions\": 0"));
	end_world();
}

static void the_graph_is_json(void)
{
	begin_world();
	CHECK(ask("graph?filter=0&names=5"));
	CHECK(answer_has("\"functions\": 3") && answer_has("\"hidden\": 0"));
	CHECK(answer_has("\"name\": \"program\""));
	CHECK(ask("graph?filter=auto&folded=2&open=1,3&root=1&places=1:5,2:7.5&max=2"));
	refuse("graph?filter=201", "more than 200 tenths");
	refuse("graph?folded=x", "'x' is not a list of numbers");
	refuse("graph?folded=1.5", "no numbers of functions");
	refuse("graph?places=1", "'1' is not a list of numbers");
	end_world();
}

static void every_answer_can_be_of_either_trace(void)
{
	begin_two_worlds();
	CHECK(ask("meta") && answer_has("\"number\": 2") && answer_has("\"functions\": 3"));
	CHECK(ask("meta?trace=2") && answer_has("\"number\": 2") && answer_has("\"total\": 14"));
	CHECK(ask("meta?trace=1") && answer_has("\"number\": 1") && answer_has("\"total\": 14"));
	CHECK(ask("report/flat") && answer_has("\"name\": \"b\"") &&
		!answer_has("\"name\": \"c\""));
	CHECK(ask("report/flat?trace=1") && answer_has("\"name\": \"c\"") &&
		!answer_has("\"name\": \"b\""));
	CHECK(ask("tree?trace=1") && length("node", 4) == 4 && f64("base", 2) == 11);
	CHECK(ask("tree") && length("node", 4) == 5);
	CHECK(ask("names?trace=1") && ask("timeline?trace=1") && ask("graph?trace=1&filter=0"));
	CHECK(answer_has("\"name\": \"c\""));
	CHECK(ask("report/threads?trace=1") && ask("report/loss?trace=1"));
	CHECK(ask("timeline?trace=1&look-from=3&look-to=9") && f64("window", 0) == 3 &&
		f64("window", 1) == 9);
	CHECK(ask("timeline?from=2&to=8&look-from=1&look-to=5") && f64("window", 0) == 2 &&
		f64("window", 1) == 5);
	refuse("timeline?look-to=x", "look-to: 'x' is not a number");
	refuse("tree?trace=3", "there is no trace 3 here, of 2");
	refuse("tree?trace=0", "there is no trace 0 here");
	refuse("tree?trace=x", "trace: 'x' is not a number");
	end_world();
}

/* Which box of an answer is of a function. */
static uint32_t box_of(const char *name, uint32_t depth)
{
	size_t n_names, n;
	const char *names = array("name", 1, &n_names);
	const uint32_t *routines = array("routine", 4, &n), *depths = array("depth", 4, &n);

	for (uint32_t i = 0; i < n; i++) {
		const char *text = names;

		for (uint32_t r = 0; r < routines[i]; r++)
			text += strlen(text) + 1;
		if (depths[i] == depth && !strcmp(text, name))
			return i;
	}
	CHECK_STR("no box of", name);
	return 0;
}

static void a_diff_is_the_tree_of_both(void)
{
	uint32_t i;

	begin_two_worlds();
	CHECK(ask("diff"));
	/* threads, main, a, c below it, b, a below that */
	CHECK_EQ(length("node", 4), 6);
	i = box_of("main", 1);
	CHECK(f64("cum", i) == 14 && f64("before_cum", i) == 14 && f64("more_cum", i) == 0);
	CHECK(f64("base", i) == 3 && f64("before_base", i) == 1 && f64("more_base", i) == 2);
	CHECK(f64("width", i) == 3 + 11 + 2 + 2 + 4);
	i = box_of("a<b>&\"", 2);
	CHECK(f64("cum", i) == 5 && f64("before_cum", i) == 13 && f64("more_cum", i) == -8);
	CHECK(f64("calls", i) == 2 && f64("before_calls", i) == 1);
	i = box_of("c", 3);
	CHECK(f64("cum", i) == 0 && f64("before_cum", i) == 2 && isnan(f64("calls", i)));
	i = box_of("b", 2);
	CHECK(f64("cum", i) == 6 && f64("before_cum", i) == 0);
	CHECK(f64("samples", i) == 0 && length("flags", 1) == 6 && length("before_flags", 1) == 6);

	CHECK(ask("diff-functions"));
	CHECK(answer_has("\"total\": {\"before\": 14, \"after\": 14, \"more\": 0}"));
	CHECK(answer_has("\"more\": {\"base\": -2, \"cum\": -4, \"calls\": 2}")); /* a: 9, was 13 */
	CHECK(answer_has("\"more\": {\"base\": -2, \"cum\": -2, \"calls\": -1}")); /* c is gone */
	CHECK(answer_has("\"more\": {\"base\": 2, \"cum\": 6, \"calls\": 1}"));	   /* b is new */
	CHECK(ask("diff-graph?filter=0") && answer_has("\"functions\": 4"));
	CHECK(answer_has("\"name\": \"b\"") && answer_has("\"name\": \"c\""));
	CHECK(answer_has("\"more\": {\"base\": -2, \"cum\": -4, \"calls\": 2}"));
	end_world();
}

static void a_diff_has_the_keys_of_a_selection(void)
{
	begin_two_worlds();
	CHECK(ask("diff?transform=fold%3Dmain&order=name") && length("node", 4) == 5);
	CHECK(ask("diff?to=4") && f64("cum", box_of("main", 1)) == 4 &&
		f64("before_cum", box_of("main", 1)) == 4);
	/* A function that one of the traces has is enough; in the other nothing is left. */
	CHECK(ask("diff?transform=focus=b") && f64("before_cum", 0) == 0 && f64("cum", 0) == 6);
	CHECK(ask("diff?transform=drop=c") && f64("before_cum", box_of("main", 1)) == 12 &&
		f64("cum", box_of("main", 1)) == 14);
	refuse("diff?transform=fold=nobody", "'fold=nobody': no function of either trace is meant");
	refuse("tree?transform=focus=c", "no function here is meant");
	refuse("diff?metric=nothing", "after, in ");
	refuse("diff?trace=1", "trace: diff is of both");
	CHECK(ask("diff") && length("node", 4) == 6);
	end_world();
	begin_world();
	refuse("diff", "there is one trace here");
	refuse("tree?trace=2", "there is no trace 2 here, of 1");
	CHECK(ask("tree?trace=1"));
	end_world();
}

/* main has events in both; s is known by a sample alone before, and by an event after. */
static void begin_sampled_before(void)
{
	struct trace_reader *before;
	uint32_t own, f_main, f_s;

	begin();
	own = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f_main = named("main", FRAME_KIND_NATIVE);
	f_s = named("s", FRAME_KIND_NATIVE);
	enter(own, 500, f_main, false);
	sample(502, STACK(f_main, f_s), 3);
	enter(own, 510, f_main, true);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK_EQ(trace_reader_open(&before, path, &err), 0);
	begin();
	own = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f_main = named("main", FRAME_KIND_NATIVE);
	f_s = named("s", FRAME_KIND_NATIVE);
	enter(own, 500, f_main, false);
	enter(own, 501, f_s, false);
	enter(own, 505, f_s, true);
	enter(own, 510, f_main, true);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
	engine = view_engine_new(reader, before, NULL);
	reader = NULL;
}

static void what_is_not_measured_is_no_number(void)
{
	uint32_t i;

	begin_sampled_before();
	CHECK(ask("diff?metric=calls"));
	i = box_of("main", 1);
	CHECK(f64("before_cum", i) == 1 && f64("cum", i) == 2 && f64("more_cum", i) == 1);
	i = box_of("s", 2);
	CHECK(isnan(f64("before_cum", i)) && isnan(f64("before_base", i)) &&
		isnan(f64("before_calls", i)));
	CHECK(f64("cum", i) == 1 && f64("base", i) == 1 && f64("calls", i) == 1);
	CHECK(isnan(f64("more_cum", i)) && isnan(f64("more_base", i)));
	CHECK(f64("before_samples", i) == 1 && f64("samples", i) == 0);
	CHECK(ask("diff-functions?metric=calls"));
	CHECK(answer_has("\"more\": {\"base\": null, \"cum\": null, \"calls\": null}"));
	/* Nor in the trace itself: its tree, its graph. */
	CHECK(ask("tree?metric=calls&trace=1"));
	CHECK(length("node", 4) == 3 && f64("cum", 1) == 1 && isnan(f64("cum", 2)) &&
		isnan(f64("base", 2)) && isnan(f64("calls", 2)));
	CHECK(ask("graph?metric=calls&trace=1&filter=0"));
	CHECK(answer_has("\"calls\": null, \"base\": null, \"cum\": null"));
	end_world();
}

static bool matches(const char *question, unsigned n, unsigned base, unsigned cum)
{
	char expected[100];

	snprintf(expected, sizeof(expected), "{\"matches\": %u, \"base\": %u, \"cum\": %u, ", n,
		base, cum);
	return ask(question) && !strncmp(buf_text(&answer), expected, strlen(expected));
}

static void a_search_has_its_part_of_the_whole(void)
{
	begin_world();
	CHECK(matches("matches?search=a<B", 1, 9, 9)); /* large or small */
	CHECK(answer_has("\"total\": 14, \"names\": [\"a<b>&\\\"\"]"));
	CHECK(matches("matches?search=/^b$/", 1, 2, 6));
	CHECK(matches("matches?search=/^(b|a.*)$/", 2, 11, 11)); /* a below b counts once */
	CHECK(matches("matches?search=main", 1, 3, 14));
	CHECK(matches("matches?search=nothing", 0, 0, 0));
	CHECK(matches("matches?search=/^b$/&transform=drop=/^a/", 1, 2, 2));
	CHECK(matches("matches?search=/^a/&to=4", 1, 3, 3));
	CHECK(matches("matches?search=/a", 0, 0, 0)); /* a text that begins with a slash */
	refuse("matches", "matches needs something to search");
	refuse("matches?search=", "matches needs something to search");
	refuse("matches?search=/(/", "'/(/': is not a regular expression");
	refuse("matches?search=a&order=cum", "'order' is not a key of matches");
	end_world();
}

static void an_export_is_that_of_weir_export(void)
{
	struct view_sources sources = {0};
	struct view_more more = {&sources, view_answer_here};

	write_trace();
	sources.engine = engine = view_engine_new(reader, NULL, &more);
	reader = NULL;
	CHECK(ask("export/folded"));
	CHECK(answer_has(";main 3\n") && answer_has(";main;b 2\n") &&
		answer_has(";main;a<b>&\" 5\n") && answer_has(";main;b;a<b>&\" 4\n"));
	CHECK(ask("export/folded?transform=fold=b"));
	CHECK(answer_has(";main 5\n") && answer_has(";main;a<b>&\" 9\n") && !answer_has(";b"));
	CHECK(ask("export/folded?metric=calls") && answer_has(";main;a<b>&\" 2\n"));
	CHECK(ask("export/folded?to=4") && answer_has(";main;a<b>&\" 3\n"));
	CHECK(ask("export/pprof") && answer.n > 30 && !memcmp(answer.p, "\x1f\x8b", 2));
	CHECK(ask("export/pprof?from=1&to=4&thread=101&metric=calls"));
	refuse("export/pprof?transform=fold=b", "which no transform changes");
	refuse("export/lcov", "'lcov': is no kind of export here");
	refuse("export/folded?order=cum", "'order' is not a key of export");
	refuse("export/folded?thread=7", "has no thread '7'");
	end_world();
	begin_world();
	refuse("export/folded", "'export': is no kind of question"); /* as in a file */
	end_world();
}

static void what_nobody_wants_is_given_up(void)
{
	atomic_bool is_unwanted = true;
	uint64_t done = 1, whole = 1;

	begin_world();
	view_until(engine, &is_unwanted);
	refuse("meta", "nobody waits for this selection any more");
	refuse("timeline", "nobody waits for this selection any more");
	view_until(engine, NULL);
	CHECK(ask("meta"));
	CHECK(answer_has("\"total\": 14"));
	view_until(engine, &is_unwanted);
	CHECK(ask("tree")); /* of a selection that is kept there is nothing to give up */
	refuse("timeline", "nobody waits for this picture any more");
	view_progress(engine, &done, &whole);
	CHECK_EQ(done, 0);
	CHECK_EQ(whole, 0);
	end_world();
}

static void wrong_questions_are_refused(void)
{
	char *many = malloc(QUESTION_BYTES_MAX + 2);

	begin_world();
	refuse("", "is no kind of question");
	refuse("nothing?x=1", "'nothing': is no kind of question");
	refuse("tree?colour=1", "'colour' is not a key of tree");
	refuse("report/summary", "'summary': is no kind of report here");
	refuse("report/flat?sort=colour", "flat has no column 'colour'");
	refuse("report/flat?limit=x", "limit: 'x' is not a number");
	refuse("report/flat?filter=(", "'(': is not a regular expression");
	refuse("tree?order=size", "'size' is none of cum, name, time");
	refuse("tree?order=%zz", "wrong percent sign");
	refuse("tree?order=%00", "wrong percent sign");
	refuse("tree?order=%4", "wrong percent sign");
	refuse("tree?order=cum&order=name", "has 'order' twice");
	memset(many, 'a', QUESTION_BYTES_MAX + 1);
	many[QUESTION_BYTES_MAX + 1] = '\0';
	refuse(many, "more than 65536");
	CHECK(ask("tree?order=cum&&order%20=") == false);
	free(many);
	end_world();
}

int main(void)
{
	static const struct test tests[] = {
		{"a tree is arrays, depth first", the_tree_is_arrays_depth_first},
		{"callers are a tree that begins at the function",
			callers_of_a_function_are_a_tree},
		{"reports are the JSON of weir report", reports_are_those_of_the_command},
		{"a question says its transforms and its window",
			transforms_and_windows_are_part_of_a_question},
		{"a selection without anything has empty answers",
			a_selection_without_anything_has_empty_answers},
		{"the call graph is JSON with places", the_graph_is_json},
		{"every answer can be of either trace", every_answer_can_be_of_either_trace},
		{"a diff is the tree of both", a_diff_is_the_tree_of_both},
		{"a diff has the keys of a selection", a_diff_has_the_keys_of_a_selection},
		{"what is not measured is no number, in either trace and in the difference",
			what_is_not_measured_is_no_number},
		{"a search has its part of the whole, once", a_search_has_its_part_of_the_whole},
		{"an export is that of weir export for the selection",
			an_export_is_that_of_weir_export},
		{"what nobody wants is given up, and made when it is asked again",
			what_nobody_wants_is_given_up},
		{"wrong questions are refused with a sentence", wrong_questions_are_refused},
	};

	return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
