/* SPDX-License-Identifier: MIT */
/* Methods of Java in a profile: how they are called, their classes, the runtime's threads. */
#define WORLD_TRACE "java_profile_test.weir"
#include "profile_world.h"

#include "calltree/classes.h"
#include "calltree/frame_names.h"
#include "query/transform.h"

static uint32_t image;

/* A frame of a JVM whose levels, innermost first, have these names. */
static uint32_t method(enum frame_kind kind, uint64_t addr, size_t n, const char *const *names)
{
	struct trace_symbol_level levels[4] = {{0}};
	struct trace_symbol symbol = {.n_levels = (uint32_t)n, .levels = levels};

	for (size_t i = 0; i < n; i++)
		levels[i] = (struct trace_symbol_level){.name = trace_writer_string(w, names[i]),
			.file = trace_writer_string(w, "p/A.java"),
			.line = 7};
	symbol.frame = trace_writer_frame(
		w, &(struct trace_frame){
			   .kind = kind, .image = image, .name = levels[n - 1].name, .addr = addr});
	trace_writer_symbol(w, &symbol);
	return symbol.frame;
}
#define METHOD(kind, addr, ...)                                                                    \
	method(kind, addr, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),            \
		(const char *const[]){__VA_ARGS__})

static void class_record(uint32_t minor, const char *name, uint64_t loader, bool at_start)
{
	numbers(life_stream, 10, RECORD_MAJOR_MODULE, minor,
		minor == RECORD_MODULE_CLASS_LOAD ? 5 : 4, U(100), U(0), loader,
		U(trace_writer_string(w, name)), U(at_start));
}

/* main calls run, jitted, into which add is inlined; add is interpreted elsewhere. */
static void begin_java(void)
{
	uint32_t f_main, f_run, f_add, f_stub;

	begin();
	image = trace_writer_image(w, &(struct trace_image){.kind = IMAGE_KIND_JIT,
					      .path = trace_writer_string(w, JAVA_IMAGE_PATH),
					      .pid = 100});
	f_main = METHOD(FRAME_KIND_INTERPRETED, 1, "I:p.A.main(java.lang.String[])");
	f_run = METHOD(FRAME_KIND_JITTED, U(1) << 62 | 5, "J:p.B.add(int)", "J:p.A.run()");
	f_add = METHOD(FRAME_KIND_INTERPRETED, 2, "I:p.B.add(int)");
	f_stub = METHOD(FRAME_KIND_NATIVE, U(3) << 62, "[stub call_stub]");
	sample(1000, STACK(f_stub, f_main, f_run), 10);
	sample(1010, STACK(f_stub, f_main, f_add), 1);
	class_record(RECORD_MODULE_CLASS_LOAD, "java.lang.Object", 1, true);
	class_record(RECORD_MODULE_CLASS_LOAD, "p.A", 2, false);
	class_record(RECORD_MODULE_CLASS_LOAD, "p.Gone", 2, false);
	class_record(RECORD_MODULE_CLASS_LOAD, "p.Gone", 3, false);
	class_record(RECORD_MODULE_CLASS_UNLOAD, "p.Gone", 2, false);
}

static void inlined_methods_are_jitted_ones(void)
{
	begin_java();
	build_all();
	CHECK_EQ(row("J:p.B.add(int)").base, 10);
	CHECK_EQ(row("J:p.A.run()").base, 0);
	CHECK_EQ(row("J:p.A.run()").cum, 10);
	CHECK_EQ(row("I:p.B.add(int)").base, 1);
	CHECK_EQ(row("I:p.A.main(java.lang.String[])").cum, 11);
	for (uint32_t r = 1; r < calltree_n_routines(profile->tree); r++)
		if (!strncmp(calltree_get_routine(profile->tree, r)->name, "J:", 2))
			CHECK_EQ(calltree_get_routine(profile->tree, r)->kind, FRAME_KIND_JITTED);
	CHECK_EQ(profile->loss.frames_unresolved, 0);
	end();
}

static void a_transform_finds_methods_with_and_without_their_mark(void)
{
	static const char *const texts[] = {"focus=J:p.B.add(int)", "focus=p.B.add(int)"};
	static const uint64_t totals[] = {10, 11};

	for (size_t i = 0; i < 2; i++) {
		struct transforms *t;

		begin_java();
		build_all();
		CHECK_EQ(transforms_parse(&t, texts[i], &err), 0);
		CHECK_EQ(transforms_apply(t, profile, &err), 0);
		CHECK_EQ(profile->total, totals[i]);
		transforms_free(t);
		end();
	}
}

static void only_methods_have_a_mark(void)
{
	CHECK_STR(frame_name_bare("J:p.A.run()", JAVA_IMAGE_PATH), "p.A.run()");
	CHECK_STR(frame_name_bare("[stub call_stub]", JAVA_IMAGE_PATH), "[stub call_stub]");
	CHECK_STR(frame_name_bare("J:x", "/usr/bin/x"), "J:x");
	CHECK_STR(frame_name_bare("", JAVA_IMAGE_PATH), "");
}

static const struct class_row *class_of(const struct classes *c, const char *name)
{
	for (size_t i = 0; i < c->rows.n; i++)
		if (!strcmp(c->rows.v[i].name, name))
			return &c->rows.v[i];
	CHECK_STR("no such class", name);
	return &c->rows.v[0];
}

static void classes_are_loaded_unloaded_and_used(void)
{
	struct classes c;

	begin_java();
	build_all();
	CHECK_EQ(classes_init(&c, profile, &err), 0);
	CHECK_EQ(c.rows.n, 4);
	CHECK_EQ(class_of(&c, "java.lang.Object")->n_start, 1);
	CHECK(!class_of(&c, "java.lang.Object")->is_used);
	CHECK_EQ(class_of(&c, "p.A")->n_loaded, 1);
	CHECK(class_of(&c, "p.A")->is_used);
	CHECK_EQ(class_of(&c, "p.Gone")->n_loaded, 2);
	CHECK_EQ(class_of(&c, "p.Gone")->n_unloaded, 1);
	CHECK(class_of(&c, "p.B")->is_used); /* no list had it */
	CHECK_EQ(class_of(&c, "p.B")->n_loaded, 0);
	CHECK_EQ(profile->loss.records_unknown, 0);
	classes_release(&c);
	end();
}

static void threads_of_the_runtime_are_told_apart(void)
{
	struct trace_thread t = {.pid = 100, .tid = 102};
	uint32_t other;

	begin_java();
	other = trace_writer_thread(w, &t);
	numbers(life_stream, 20, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, 4, U(other), U(0),
		U(RECORD_THREAD_IS_COMPILER), U(trace_writer_string(w, "C2 CompilerThread0")));
	/* The kernel names it again, and knows less. */
	numbers(life_stream, 21, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, 4, U(other), U(0), U(0),
		U(trace_writer_string(w, "C2 CompilerThre")));
	numbers(life_stream, 22, RECORD_MAJOR_THREAD, RECORD_THREAD_GC, 1, U(thread));
	build_all();
	CHECK_EQ(profile->threads[other].role, RECORD_THREAD_IS_COMPILER);
	CHECK_EQ(profile->threads[thread].role, RECORD_THREAD_IS_COLLECTOR);
	end();
}

int main(void)
{
	static const struct test tests[] = {
		{"inlined methods are jitted ones", inlined_methods_are_jitted_ones},
		{"a transform finds methods with and without their mark",
			a_transform_finds_methods_with_and_without_their_mark},
		{"only methods have a mark", only_methods_have_a_mark},
		{"classes are loaded, unloaded and used", classes_are_loaded_unloaded_and_used},
		{"threads of the runtime are told apart", threads_of_the_runtime_are_told_apart},
	};

	return RUN_TESTS(tests);
}
